//! The address families we speak: what an AFI and SAFI pair stands for (RFC 4760).
//!
//! Pairs that we do not speak never become a [`Family`]; where a message names one, it stays a raw pair.

use std::{fmt, str::FromStr};

/// An address family that the speaker can exchange routes of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// AFI 1, SAFI 1: carried in the UPDATE's own fields (RFC 4271).
    Ipv4Unicast,
    /// AFI 2, SAFI 1: carried in MP_REACH_NLRI and MP_UNREACH_NLRI (RFC 4760, 2545).
    Ipv6Unicast,
    /// AFI 1, SAFI 128: IPv4 prefixes of VPNs, each with a label (RFC 4364).
    Ipv4Vpn,
    /// AFI 2, SAFI 128: IPv6 prefixes of VPNs, each with a label (RFC 4659).
    Ipv6Vpn,
    /// AFI 1, SAFI 73: SR policies with an IPv4 endpoint (RFC 9830).
    Ipv4SrPolicy,
    /// AFI 2, SAFI 73: SR policies with an IPv6 endpoint (RFC 9830).
    Ipv6SrPolicy,
}

impl Family {
    /// Every family, in the order of [`Family::index`].
    pub const ALL: [Self; Self::COUNT] = [
        Self::Ipv4Unicast,
        Self::Ipv6Unicast,
        Self::Ipv4Vpn,
        Self::Ipv6Vpn,
        Self::Ipv4SrPolicy,
        Self::Ipv6SrPolicy,
    ];
    /// How many families there are: the size of a table indexed by family.
    pub const COUNT: usize = 6;
    /// The two whose keys are plain prefixes.
    pub const UNICAST: [Self; 2] = [Self::Ipv4Unicast, Self::Ipv6Unicast];

    /// The Address Family Identifier.
    #[must_use]
    pub const fn afi(self) -> u16 {
        match self {
            Self::Ipv4Unicast | Self::Ipv4Vpn | Self::Ipv4SrPolicy => 1,
            Self::Ipv6Unicast | Self::Ipv6Vpn | Self::Ipv6SrPolicy => 2,
        }
    }

    /// The Subsequent Address Family Identifier.
    #[must_use]
    pub const fn safi(self) -> u8 {
        match self {
            Self::Ipv4Unicast | Self::Ipv6Unicast => 1,
            Self::Ipv4Vpn | Self::Ipv6Vpn => 128,
            Self::Ipv4SrPolicy | Self::Ipv6SrPolicy => 73,
        }
    }

    /// The family of a pair, if it is one that we speak.
    #[must_use]
    pub const fn from_afi_safi(afi: u16, safi: u8) -> Option<Self> {
        match (afi, safi) {
            (1, 1) => Some(Self::Ipv4Unicast),
            (2, 1) => Some(Self::Ipv6Unicast),
            (1, 128) => Some(Self::Ipv4Vpn),
            (2, 128) => Some(Self::Ipv6Vpn),
            (1, 73) => Some(Self::Ipv4SrPolicy),
            (2, 73) => Some(Self::Ipv6SrPolicy),
            _ => None,
        }
    }

    /// Whether its destinations are IPv4 ones.
    #[must_use]
    pub const fn is_ipv4(self) -> bool {
        self.afi() == 1
    }

    /// Whether a label goes with each prefix (RFC 8277).
    #[must_use]
    pub const fn is_labelled(self) -> bool {
        matches!(self, Self::Ipv4Vpn | Self::Ipv6Vpn)
    }

    /// Whether its destinations are SR policies (RFC 9830).
    #[must_use]
    pub const fn is_sr_policy(self) -> bool {
        matches!(self, Self::Ipv4SrPolicy | Self::Ipv6SrPolicy)
    }

    /// A dense index below [`Family::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in texts and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4Unicast => "ipv4-unicast",
            Self::Ipv6Unicast => "ipv6-unicast",
            Self::Ipv4Vpn => "ipv4-vpn",
            Self::Ipv6Vpn => "ipv6-vpn",
            Self::Ipv4SrPolicy => "ipv4-srpolicy",
            Self::Ipv6SrPolicy => "ipv6-srpolicy",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown address family \"{0}\" (known: ipv4-unicast, ipv6-unicast, ipv4-vpn, ipv6-vpn, ipv4-srpolicy, \
     ipv6-srpolicy)"
)]
pub struct UnknownFamily(String);

impl FromStr for Family {
    type Err = UnknownFamily;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|family| family.name() == text)
            .ok_or_else(|| UnknownFamily(text.to_owned()))
    }
}

/// A set of families.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FamilySet(u8);

impl FamilySet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// Every family.
    pub const ALL: Self = Self((1 << Family::COUNT) - 1);
    /// The families of [`Family::UNICAST`].
    pub const UNICAST: Self = Self(Self::only(Family::Ipv4Unicast).0 | Self::only(Family::Ipv6Unicast).0);

    /// The set of one family.
    #[must_use]
    pub const fn only(family: Family) -> Self {
        Self(1 << family.index())
    }

    /// Whether `family` is in the set.
    #[must_use]
    pub const fn contains(self, family: Family) -> bool {
        self.0 & (1 << family.index()) != 0
    }

    /// Adds a family.
    pub const fn insert(&mut self, family: Family) {
        self.0 |= 1 << family.index();
    }

    /// Takes a family out.
    pub const fn remove(&mut self, family: Family) {
        self.0 &= !(1 << family.index());
    }

    /// What both sets hold.
    #[must_use]
    pub const fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What either set holds.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The families, in the order of [`Family::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(move |family| self.contains(*family))
    }
}

impl Extend<Family> for FamilySet {
    fn extend<I: IntoIterator<Item = Family>>(&mut self, families: I) {
        families.into_iter().for_each(|family| self.insert(family));
    }
}

impl FromIterator<Family> for FamilySet {
    fn from_iter<I: IntoIterator<Item = Family>>(families: I) -> Self {
        let mut set = Self::EMPTY;
        set.extend(families);
        set
    }
}

impl fmt::Display for FamilySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, family) in self.iter().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            f.write_str(family.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_names_and_pairs_agree() {
        for (place, family) in Family::ALL.into_iter().enumerate() {
            assert_eq!(family.index(), place);
            assert_eq!(Family::from_afi_safi(family.afi(), family.safi()), Some(family));
            assert_eq!(family.to_string().parse(), Ok(family));
            assert!("".parse::<Family>().unwrap_err().to_string().contains(family.name()));
            assert_eq!(family.is_ipv4(), family.name().starts_with("ipv4"));
        }
        assert_eq!(Family::from_afi_safi(1, 2), None);
        assert!("ipv4".parse::<Family>().is_err());
    }

    #[test]
    fn a_set_is_a_set() {
        let mut set = FamilySet::EMPTY;
        assert!(set.is_empty());
        set.insert(Family::Ipv6Unicast);
        set.insert(Family::Ipv6Unicast);
        assert_eq!(set, FamilySet::only(Family::Ipv6Unicast));
        assert_eq!(set.len(), 1);
        assert_eq!(FamilySet::ALL.intersect(set), set);
        assert_eq!(FamilySet::UNICAST.to_string(), "ipv4-unicast ipv6-unicast");
        assert_eq!(FamilySet::UNICAST, Family::UNICAST.into_iter().collect());
        set.remove(Family::Ipv6Unicast);
        assert_eq!(set, FamilySet::EMPTY);
        assert_eq!(Family::ALL.into_iter().collect::<FamilySet>(), FamilySet::ALL);
    }
}
