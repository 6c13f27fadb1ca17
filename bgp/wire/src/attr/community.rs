//! COMMUNITIES: optional, transitive, four octets each (RFC 1997; RFC 7606 section 7.8).

use std::{fmt, str::FromStr};

/// A community. Shown and read as `high:low`; the well-known ones also by name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Community(pub u32);

impl Community {
    /// Not to be advertised outside the AS or confederation.
    pub const NO_EXPORT: Self = Self(0xffff_ff01);
    /// Not to be advertised at all.
    pub const NO_ADVERTISE: Self = Self(0xffff_ff02);
    /// Not to be advertised outside the member AS.
    pub const NO_EXPORT_SUBCONFED: Self = Self(0xffff_ff03);
    /// Not to be advertised by way of bilateral peering (RFC 3765).
    pub const NO_PEER: Self = Self(0xffff_ff04);
    /// The sender is about to shut down: prefer any other path (RFC 8326).
    pub const GRACEFUL_SHUTDOWN: Self = Self(0xffff_0000);
    /// The route is kept although who told it is gone for long: prefer any other (RFC 9494).
    pub const LLGR_STALE: Self = Self(0xffff_0006);
    /// Do not keep the route for a long time (RFC 9494).
    pub const NO_LLGR: Self = Self(0xffff_0007);
    /// Drop packets towards the prefix (RFC 7999).
    pub const BLACKHOLE: Self = Self(0xffff_029a);

    const NAMES: [(Self, &'static str); 8] = [
        (Self::NO_EXPORT, "no-export"),
        (Self::NO_ADVERTISE, "no-advertise"),
        (Self::NO_EXPORT_SUBCONFED, "no-export-subconfed"),
        (Self::NO_PEER, "no-peer"),
        (Self::GRACEFUL_SHUTDOWN, "graceful-shutdown"),
        (Self::LLGR_STALE, "llgr-stale"),
        (Self::NO_LLGR, "no-llgr"),
        (Self::BLACKHOLE, "blackhole"),
    ];

    /// A community of two halves.
    #[must_use]
    pub const fn new(high: u16, low: u16) -> Self {
        Self((high as u32) << 16 | low as u32)
    }

    /// The registered name, in lower case with hyphens, of a well-known community.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(community, _)| *community == self).map(|(_, name)| *name)
    }
}

impl fmt::Display for Community {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0 >> 16, self.0 & 0xffff)
    }
}

/// A text that is no community.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a community: \"{0}\" (two numbers up to 65535 with a colon between them, or a well-known name)")]
pub struct CommunityParseError(String);

impl FromStr for Community {
    type Err = CommunityParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((community, _)) = Self::NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(*community);
        }
        text.split_once(':')
            .and_then(|(high, low)| Some(Self::new(high.parse().ok()?, low.parse().ok()?)))
            .ok_or_else(|| CommunityParseError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, external, withdrawn_for};
    use super::*;
    use crate::{attr::FactFlags, error::AttrProblem};

    #[test]
    fn texts() {
        assert_eq!("65010:77".parse(), Ok(Community::new(65010, 77)));
        assert_eq!("no-export".parse(), Ok(Community::NO_EXPORT));
        assert_eq!(Community::NO_EXPORT.to_string(), "65535:65281");
        assert_eq!(Community::BLACKHOLE.name(), Some("blackhole"));
        for wrong in ["65536:1", "1", "1:2:3", ":", "no_export", ""] {
            assert!(wrong.parse::<Community>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn are_kept_in_their_order_and_the_well_known_ones_are_facts() {
        let attr = [0xc0, 8, 8, 0xfd, 0xfc, 0, 1, 0xff, 0xff, 0xff, 1];
        let kept = canonical_of(external(), &attr);
        let list: Vec<_> = kept.as_ref().communities().collect();
        assert_eq!(list, [Community::new(65020, 1), Community::NO_EXPORT]);
        assert!(kept.facts().flags.has(FactFlags::NO_EXPORT));
        assert!(!kept.facts().flags.has(FactFlags::NO_ADVERTISE));
    }

    #[test]
    fn partial_stays_set() {
        let kept = canonical_of(external(), &[0xe0, 8, 4, 0, 1, 0, 1]);
        assert_eq!(kept.as_ref().attr(8).unwrap().flags.0, 0xe0);
    }

    #[test]
    fn no_multiple_of_four_is_treat_as_withdraw() {
        assert_eq!(withdrawn_for(external(), &[0xc0, 8, 5, 0, 0, 0, 0, 0]), Some((8, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0xc0, 8, 0]), Some((8, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0x80, 8, 4, 0, 0, 0, 1]), Some((8, AttrProblem::Flags)));
    }
}
