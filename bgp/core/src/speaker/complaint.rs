//! What is said of UPDATEs whose attributes are at fault (RFC 7606): with peer, prefixes and reason, but neither for every
//! message nor of every prefix, since whoever sends one faulty message may send a million.

use std::fmt;
use std::time::Duration;

use bgp_wire::error::AttrFault;
use bgp_wire::{Ipv4Prefix, Ipv6Prefix, UpdateView};

use crate::peer_key::PeerKey;
use crate::time::Instant;

/// How long after a line about a neighbour the next one is due. What comes between is counted.
const PAUSE: Duration = Duration::from_secs(10);

/// How many prefixes a line names.
const NAMED: usize = 8;

/// One neighbour's faulty messages.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Complaints {
    /// The next line may be written.
    next: Instant,
    /// How many there were since the last line.
    kept_back: u64,
    /// UPDATEs whose routes were treated as withdrawn.
    pub(super) treated_as_withdraw: u64,
    /// Attributes that were dropped from otherwise good UPDATEs.
    pub(super) attributes_discarded: u64,
}

impl Complaints {
    /// Notes a fault of `update`, and writes a line if one is due.
    pub(super) fn note(&mut self, now: Instant, peer: &PeerKey, fault: &AttrFault, update: &UpdateView<'_>) {
        if now < self.next {
            self.kept_back += 1;
            return;
        }
        let kept_back = std::mem::take(&mut self.kept_back);
        self.next = now + PAUSE;
        tracing::warn!(%peer, prefixes = %Announced(update), unreported_before = kept_back, "{fault}");
    }
}

/// The prefixes that an UPDATE announces, the first few by name.
struct Announced<'a>(&'a UpdateView<'a>);

impl fmt::Display for Announced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(update) = self;
        let v4 = update.announced().chain(update.mp_announced::<Ipv4Prefix>());
        let v6 = update.mp_announced::<Ipv6Prefix>();
        let mut count = 0;
        for (_, prefix) in v4.clone().take(NAMED) {
            write!(f, "{}{prefix}", if count == 0 { "" } else { " " })?;
            count += 1;
        }
        for (_, prefix) in v6.take(NAMED - count) {
            write!(f, "{}{prefix}", if count == 0 { "" } else { " " })?;
            count += 1;
        }
        match v4.count() + v6.count() - count {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bgp_wire::{Family, FamilySet, Negotiated};

    fn shown(prefixes: &[u8]) -> String {
        let negotiated =
            Negotiated { families: FamilySet::only(Family::Ipv4Unicast), ..Negotiated::default() };
        let body = [&[0, 0, 0, 0], prefixes].concat();
        Announced(&UpdateView::parse(&body, &negotiated).unwrap()).to_string()
    }

    #[test]
    fn a_line_names_a_few_prefixes_and_counts_the_rest() {
        assert_eq!(shown(&[8, 10, 24, 203, 0, 113]), "10.0.0.0/8 203.0.113.0/24");
        let many: Vec<u8> = (1..=20).flat_map(|n| [8, n]).collect();
        let text = shown(&many);
        assert!(
            text.starts_with("1.0.0.0/8 2.0.0.0/8 ") && text.ends_with(" 8.0.0.0/8 and 12 more"),
            "{text}"
        );
    }
}
