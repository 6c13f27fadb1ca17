//! A BGPFilter: what a session takes and gives, as lists of rules, of which the first that matches decides.

use std::num::NonZeroU32;

use bgp_core::policy::PrefixRange;
use bgp_core::{Asn, Community, Family, LargeCommunity};
use ipnet::IpNet;

/// Which way routes go.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the neighbour to us.
    Import,
    /// From us to the neighbour.
    Export,
}

/// A BGPFilter. A list without rules decides nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `importV4`.
    pub import_v4: Vec<FilterRule>,
    /// `exportV4`.
    pub export_v4: Vec<FilterRule>,
    /// `importV6`.
    pub import_v6: Vec<FilterRule>,
    /// `exportV6`.
    pub export_v6: Vec<FilterRule>,
}

impl Filter {
    /// The rules of a direction and a family.
    #[must_use]
    pub fn rules(&self, direction: Direction, family: Family) -> &[FilterRule] {
        match (direction, family.is_ipv4()) {
            (Direction::Import, true) => &self.import_v4,
            (Direction::Import, false) => &self.import_v6,
            (Direction::Export, true) => &self.export_v4,
            (Direction::Export, false) => &self.export_v6,
        }
    }

    /// The name of the list that [`Self::rules`] gives.
    #[must_use]
    pub const fn list(direction: Direction, family: Family) -> &'static str {
        match (direction, family.is_ipv4()) {
            (Direction::Import, true) => "importV4",
            (Direction::Import, false) => "importV6",
            (Direction::Export, true) => "exportV4",
            (Direction::Export, false) => "exportV6",
        }
    }
}

/// One rule. All of its conditions must hold; without any, every route matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRule {
    /// The rule's place in its list as the object has it, from 1: rules that were left out are counted.
    pub number: usize,
    /// Which prefixes.
    pub prefixes: Option<PrefixMatch>,
    /// `source: RemotePeers`: the route was learned from a neighbour.
    pub learned: bool,
    /// The route leaves through an interface with such a name.
    pub interface: Option<Glob>,
    /// The kind of the session.
    pub peer_type: Option<PeerType>,
    /// The route carries this community.
    pub community: Option<AnyCommunity>,
    /// The AS path begins so. Empty: any does.
    pub as_path_prefix: Vec<Asn>,
    /// The route has this priority.
    pub priority: Option<RoutePriority>,
    /// What becomes of a route that matches.
    pub action: FilterAction,
}

impl FilterRule {
    /// A rule that does this to every route.
    #[must_use]
    pub const fn every(number: usize, action: FilterAction) -> Self {
        Self {
            number,
            prefixes: None,
            learned: false,
            interface: None,
            peer_type: None,
            community: None,
            as_path_prefix: Vec::new(),
            priority: None,
            action,
        }
    }
}

/// `cidr`, `matchOperator` and `prefixLength` together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PrefixMatch {
    /// The prefixes meant; `None` where no prefix can be meant, because the least length is above the greatest.
    pub range: Option<PrefixRange>,
    /// All others are meant instead (`NotEqual`, `NotIn`).
    pub negated: bool,
}

impl PrefixMatch {
    /// What the fields of a rule mean: the cidr or what is inside it, of these lengths, or everything but that.
    /// Host bits are cleared; lengths outside what is possible are brought inside.
    #[must_use]
    pub fn new(net: IpNet, operator: MatchOperator, min: Option<u8>, max: Option<u8>) -> Self {
        let net = net.trunc();
        let least = min.unwrap_or(0).max(net.prefix_len());
        let greatest = max.unwrap_or(u8::MAX).min(net.max_prefix_len());
        let (equal, negated) = match operator {
            MatchOperator::Equal => (true, false),
            MatchOperator::NotEqual => (true, true),
            MatchOperator::In => (false, false),
            MatchOperator::NotIn => (false, true),
        };
        // The lengths are one more thing to hold beside the cidr; `Equal` leaves its own length only.
        let range = match (equal, (least..=greatest).contains(&net.prefix_len())) {
            (true, true) => Some(PrefixRange::exact(net)),
            (true, false) => None,
            (false, _) => PrefixRange::new(net, least, greatest).ok(),
        };
        Self { range, negated }
    }
}

/// `matchOperator`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MatchOperator {
    /// The cidr itself.
    Equal,
    /// Anything but the cidr itself.
    NotEqual,
    /// The cidr and what is inside it.
    In,
    /// Anything but the cidr and what is inside it.
    NotIn,
}

/// `peerType`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PeerType {
    /// The neighbour is in another AS.
    External,
    /// The neighbour is in the session's own AS.
    Internal,
}

/// A standard or a large community.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnyCommunity {
    /// RFC 1997.
    Standard(Community),
    /// RFC 8092.
    Large(LargeCommunity),
}

/// What becomes of a route that matches a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilterAction {
    /// It passes, after these changes in order.
    Accept(Vec<Operation>),
    /// It does not.
    Reject,
}

/// One change of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `addCommunity`.
    AddCommunity(AnyCommunity),
    /// `prependASPath`: the path begins with these then, in this order.
    PrependAsPath(Vec<Asn>),
    /// `setPriority`.
    SetPriority(RoutePriority),
}

/// The priority of a route: 1 to 2147483646, of which the smaller is preferred. Between internal neighbours it travels as
/// LOCAL_PREF: 2147483647 less the priority.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoutePriority(NonZeroU32);

impl RoutePriority {
    /// What ordinary routes have where nothing else is said.
    pub const NORMAL: Self = Self(NonZeroU32::new(1024).expect("it is not zero"));
    /// The greatest LOCAL_PREF that a priority gives, plus one.
    const ALL: u32 = i32::MAX as u32;

    /// This priority; `None` outside 1 to 2147483646.
    #[must_use]
    pub fn new(priority: u32) -> Option<Self> {
        NonZeroU32::new(priority).filter(|priority| priority.get() < Self::ALL).map(Self)
    }

    /// As LOCAL_PREF.
    #[must_use]
    pub const fn local_pref(self) -> u32 {
        Self::ALL - self.0.get()
    }
}

/// A pattern of interface names: `*` stands for any run of characters, everything else for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// The longest pattern: that of an interface name in Linux.
    pub const MAX: usize = 15;

    /// Reads a pattern: 1 to 15 letters, digits, `_`, `.`, `-` and `*`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.-*".contains(c);
        ((1..=Self::MAX).contains(&text.len()) && text.chars().all(fits)).then(|| Self(text.to_owned()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name is so.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        bgp_core::policy::Glob::new(&self.0).matches(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_one_more_condition_for_every_operator() {
        let range = |operator, min, max| {
            let found = PrefixMatch::new("10.1.0.0/16".parse().unwrap(), operator, min, max);
            (found.range.map(|range| range.to_string()), found.negated)
        };
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            (MatchOperator::In, None, None, some("10.1.0.0/16 le 32"), false),
            (MatchOperator::In, Some(24), None, some("10.1.0.0/16 ge 24"), false),
            (MatchOperator::In, None, Some(24), some("10.1.0.0/16 le 24"), false),
            // Brought inside what is possible.
            (MatchOperator::In, Some(8), Some(40), some("10.1.0.0/16 le 32"), false),
            (MatchOperator::In, Some(26), Some(24), None, false),
            (MatchOperator::In, None, Some(8), None, false),
            (MatchOperator::NotIn, Some(26), Some(26), some("10.1.0.0/16 ge 26 le 26"), true),
            (MatchOperator::NotIn, Some(26), Some(24), None, true),
            (MatchOperator::Equal, None, None, some("10.1.0.0/16"), false),
            (MatchOperator::Equal, Some(16), Some(24), some("10.1.0.0/16"), false),
            (MatchOperator::Equal, Some(24), None, None, false),
            (MatchOperator::NotEqual, None, None, some("10.1.0.0/16"), true),
            (MatchOperator::NotEqual, Some(24), None, None, true),
        ];
        for (operator, min, max, expected, negated) in cases {
            assert_eq!(range(operator, min, max), (expected, negated), "{operator:?} {min:?} {max:?}");
        }
    }

    #[test]
    fn priorities_and_their_local_pref() {
        assert_eq!(RoutePriority::NORMAL.local_pref(), 2_147_482_623);
        assert_eq!(RoutePriority::new(512).map(RoutePriority::local_pref), Some(2_147_483_135));
        assert_eq!(RoutePriority::new(2_147_483_646).map(RoutePriority::local_pref), Some(1));
        assert_eq!([0, 2_147_483_647, u32::MAX].map(RoutePriority::new), [None; 3]);
    }

    #[test]
    fn globs() {
        for (pattern, name, expected) in [
            ("*", "eth0", true),
            ("*", "", true),
            ("eth0", "eth0", true),
            ("eth0", "eth01", false),
            ("eth0", "xeth0", false),
            ("eth*", "eth0", true),
            ("*.calico", "vxlan.calico", true),
            ("*.cali", "vxlan.calico", false),
            ("bpf*.cali", "bpfin.cali", true),
            ("a*b*c", "aXbXbYc", true),
            ("a*b*c", "aXbXbY", false),
            ("**", "x", true),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().matches(name), expected, "{pattern} {name}");
        }
        for bad in ["", "eth 0", "eth?", "eth[01]", "an-interface-too-long"] {
            assert_eq!(Glob::parse(bad), None, "{bad}");
        }
    }
}
