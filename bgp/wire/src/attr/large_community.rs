//! LARGE_COMMUNITY: optional, transitive, twelve octets each (RFC 8092).

use std::{fmt, str::FromStr};

/// A large community. Shown and read as `global:local1:local2`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LargeCommunity {
    /// Global Administrator: an AS number.
    pub global: u32,
    /// Local Data Part 1.
    pub local1: u32,
    /// Local Data Part 2.
    pub local2: u32,
}

impl LargeCommunity {
    /// A large community of its three parts.
    #[must_use]
    pub const fn new(global: u32, local1: u32, local2: u32) -> Self {
        Self { global, local1, local2 }
    }

    /// The octets as they stand in a message.
    #[must_use]
    pub fn octets(self) -> [u8; 12] {
        let mut octets = [0; 12];
        for (place, part) in
            octets.as_chunks_mut::<4>().0.iter_mut().zip([self.global, self.local1, self.local2])
        {
            *place = part.to_be_bytes();
        }
        octets
    }
}

impl From<[u8; 12]> for LargeCommunity {
    fn from([a, b, c, d, e, f, g, h, i, j, k, l]: [u8; 12]) -> Self {
        Self {
            global: u32::from_be_bytes([a, b, c, d]),
            local1: u32::from_be_bytes([e, f, g, h]),
            local2: u32::from_be_bytes([i, j, k, l]),
        }
    }
}

impl fmt::Display for LargeCommunity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.global, self.local1, self.local2)
    }
}

/// A text that is no large community.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a large community: \"{0}\" (three numbers up to 4294967295 with colons between them)")]
pub struct LargeCommunityParseError(String);

impl FromStr for LargeCommunity {
    type Err = LargeCommunityParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(':').map(str::parse);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(global)), Some(Ok(local1)), Some(Ok(local2)), None) => {
                Ok(Self { global, local1, local2 })
            }
            _ => Err(LargeCommunityParseError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, external, withdrawn_for};
    use super::*;
    use crate::error::AttrProblem;

    #[test]
    fn texts() {
        let community = LargeCommunity::new(4_294_967_295, 1, 2);
        assert_eq!(community.to_string(), "4294967295:1:2");
        assert_eq!("4294967295:1:2".parse(), Ok(community));
        for wrong in ["1:2", "1:2:3:4", "1:2:4294967296", "a:b:c", ""] {
            assert!(wrong.parse::<LargeCommunity>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn repeated_ones_are_removed() {
        let (one, two) = (LargeCommunity::new(1, 1, 1), LargeCommunity::new(2, 2, 2));
        let mut attr = vec![0xc0, 32, 36];
        for community in [two, one, two] {
            attr.extend_from_slice(&community.octets());
        }
        let kept = canonical_of(external(), &attr);
        assert_eq!(kept.as_ref().large_communities().collect::<Vec<_>>(), [two, one]);
    }

    #[test]
    fn no_multiple_of_twelve_is_treat_as_withdraw() {
        assert_eq!(withdrawn_for(external(), &[0xc0, 32, 4, 0, 0, 0, 1]), Some((32, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0xc0, 32, 0]), Some((32, AttrProblem::Length)));
    }
}
