//! Which of two connections between the same two speakers lives (RFC 4271 section 6.8, RFC 6286 section 2.3).
//!
//! Both ends apply the same rule to the same four numbers, so both keep the same connection.

use bgp_wire::{Asn, RouterId};

use super::Direction;

/// The direction, seen from here, of the connection that lives: the one that the speaker with the larger identifier
/// opened, or with equal identifiers (which only speakers of different ASes may have) the one with the larger AS number.
pub(super) fn survivor(ours: (RouterId, Asn), theirs: (RouterId, Asn)) -> Direction {
    if ours > theirs { Direction::Active } else { Direction::Passive }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_identifier_then_the_larger_as_keeps_its_own_connection() {
        // Identifiers compare as unsigned numbers, most significant octet first.
        for (ours, theirs, lives) in [
            ((0x0a00_0002, 1), (0x0a00_0001, 9), Direction::Active),
            ((0x0a00_0001, 9), (0x0a00_0002, 1), Direction::Passive),
            ((0xc000_0001, 1), (0x0aff_ffff, 1), Direction::Active),
            ((7, 65001), (7, 65002), Direction::Passive),
            ((7, 70000), (7, 65002), Direction::Active),
        ] {
            let side = |(id, asn)| (RouterId(id), Asn(asn));
            assert_eq!(survivor(side(ours), side(theirs)), lives);
            assert_ne!(survivor(side(theirs), side(ours)), lives, "both ends keep the same connection");
        }
    }
}
