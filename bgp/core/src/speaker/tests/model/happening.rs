//! What can happen, made from small numbers so that it can be made smaller still.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use proptest::prelude::*;

use super::policy::{Act, Cond, Default as Otherwise, Flow, Learned, Pattern, Policy, Range};
use super::reference::{
    Decision, GRACEFUL_SHUTDOWN, Knobs, LLGR_STALE, NO_ADVERTISE, NO_EXPORT, NO_EXPORT_SUBCONFED,
    OUR_ADDRESS, OUR_ASN, OUR_ID,
};
use super::route::{Attrs, Hop};

/// AS number and identifier of each neighbour; the last octet of its address is its number plus one.
pub(super) const PEERS: [(u32, u32); 6] = [
    (65_001, 0x0a00_0005),
    (65_001, 0x0a00_0003),
    (65_002, 0x0a00_0003),
    (OUR_ASN, 0x0a00_0002),
    (OUR_ASN, 0x0a00_0009),
    (65_003, 0x0a00_0001),
];

/// What the neighbour of this number knows us by.
pub(super) const LOCAL: (usize, u32) = (2, 64_999);

pub(super) const NAMES: [&str; 3] = ["first", "second", "third"];

pub(super) const COMMUNITIES: [u32; 7] =
    [0xfde8_0001, 0xfde8_0002, NO_EXPORT, NO_ADVERTISE, NO_EXPORT_SUBCONFED, GRACEFUL_SHUTDOWN, LLGR_STALE];

pub(super) const LARGE: [u32; 3] = [65_000, 1, 2];
/// A route target, and what does not leave an AS.
const EXTENDED: [u64; 2] = [0x0002_fde8_0000_0001, 0x4300_0000_0000_0001];

pub(super) fn prefixes() -> Vec<Ipv4Net> {
    ["10.0.0.0/24", "10.0.1.0/24", "10.0.0.0/16", "10.1.0.0/16", "0.0.0.0/0", "203.0.113.7/32"]
        .map(|prefix| prefix.parse().unwrap())
        .to_vec()
}

/// One of many.
pub(super) fn nth(n: u8) -> Ipv4Net {
    Ipv4Net::new(Ipv4Addr::new(10, 2, n, 0), 24).unwrap()
}

pub(super) fn address(peer: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, peer as u8 + 1)
}

/// Next hops that are told of: two neighbours, one that nobody has, and ourselves.
pub(super) fn next_hops() -> [Ipv4Addr; 4] {
    [address(0), address(3), Ipv4Addr::new(192, 0, 2, 77), OUR_ADDRESS]
}

/// What is aggregated.
pub(super) fn aggregates() -> [Ipv4Net; 5] {
    ["10.0.0.0/8", "10.0.0.0/16", "0.0.0.0/0", "10.2.0.0/18", "10.0.0.0/23"]
        .map(|prefix| prefix.parse().unwrap())
}

/// What a route is like; all zero is the plainest.
#[derive(Clone, Debug, Default)]
pub(super) struct Spec {
    pub(super) origin: u8,
    pub(super) path: u8,
    pub(super) next_hop: u8,
    pub(super) med: u8,
    pub(super) local_pref: u8,
    pub(super) communities: u8,
    pub(super) reflected: u8,
    pub(super) extra: u8,
}

impl Spec {
    /// As neighbour `peer` says it.
    pub(super) fn attrs(&self, peer: usize) -> Attrs {
        let asn = PEERS[peer].0;
        let mut path = match self.path {
            0 => vec![],
            1 => vec![Hop::As(65_100)],
            2 => vec![Hop::As(65_100), Hop::As(65_101)],
            3 => vec![Hop::Set(vec![65_100, 65_101])],
            4 => vec![Hop::As(OUR_ASN)],
            5 => vec![Hop::As(65_003), Hop::As(3356), Hop::As(65_100)],
            6 => vec![Hop::As(OUR_ASN), Hop::As(OUR_ASN)],
            7 => vec![Hop::As(LOCAL.1), Hop::As(65_100)],
            _ => vec![Hop::As(65_001), Hop::As(65_100)],
        };
        let external = asn != OUR_ASN;
        // One that forgets itself.
        if external && self.extra != 4 {
            path.insert(0, Hop::As(asn));
        }
        let next_hop = match self.next_hop {
            0 => address(peer),
            n => next_hops()[usize::from(n - 1)],
        };
        let number = |n: u8| n.checked_sub(1).map(u32::from);
        let chosen = |n: u8| COMMUNITIES.get(usize::from(n)).copied();
        let reflected = !external && self.reflected > 0;
        Attrs {
            origin: self.origin,
            path,
            next_hop: Some(next_hop),
            med: number(self.med),
            local_pref: (!external).then_some(100 + u32::from(self.local_pref)),
            // None, one or two.
            communities: [self.communities % 8, self.communities / 8]
                .into_iter()
                .filter_map(|n| chosen(n.wrapping_sub(1)))
                .collect(),
            extended: match self.extra {
                5 => EXTENDED[1..2].iter().copied().collect(),
                6 => EXTENDED.into(),
                _ => BTreeSet::new(),
            },
            large: (self.extra == 1).then_some(LARGE).into_iter().collect(),
            originator: reflected.then_some(match self.reflected {
                1 => 0x0a00_0001,
                2 => OUR_ID,
                _ => 0x0a00_0007,
            }),
            clusters: match self.reflected {
                0 => vec![],
                _ if !reflected => vec![],
                1 => vec![1],
                2 => vec![3, 4],
                _ => vec![5, OUR_ID, 2],
            },
            unknown: match self.extra {
                2 => [(99, (false, vec![1, 2, 3]))].into(),
                3 => [(99, (true, vec![]))].into(),
                _ => BTreeMap::new(),
            },
        }
    }

    /// As we originate it.
    pub(super) fn own(&self) -> Attrs {
        let number = |n: u8| n.checked_sub(1).map(u32::from);
        Attrs {
            next_hop: self.next_hop.checked_sub(1).map(|n| next_hops()[usize::from(n)]),
            local_pref: number(self.local_pref).map(|n| 100 + n),
            path: vec![],
            origin: 0,
            unknown: BTreeMap::new(),
            originator: None,
            clusters: vec![],
            ..self.attrs(0)
        }
    }
}

pub(super) fn spec() -> impl Strategy<Value = Spec> {
    let few = |n: u8| prop_oneof![2 => Just(0u8), 1 => 0..n];
    (
        few(3),
        few(9),
        few(5),
        few(4),
        few(3),
        prop_oneof![3 => Just(0u8), 2 => 0u8..8, 1 => 0u8..64],
        few(4),
        few(7),
    )
        .prop_map(|(origin, path, next_hop, med, local_pref, communities, reflected, extra)| Spec {
            origin,
            path,
            next_hop,
            med,
            local_pref,
            communities,
            reflected,
            extra,
        })
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Happening {
    /// With the usual identifier or another one.
    Up(usize, bool),
    Down(usize),
    EndOfRib(usize),
    /// Longer than anything is kept of who went away.
    Wait,
    Leave(usize, bool),
    /// It asks for everything again.
    Refresh(usize),
    Announce(usize, usize, Spec),
    Withdraw(usize, usize),
    /// Many routes with one set of attributes, or with several.
    Many(usize, u8, u8, bool),
    ManyGone(usize, u8, u8),
    Originate(usize, Spec),
    NoMore(usize),
    Policy(usize, Policy),
    Set(Vec<Range>),
    /// Neighbour, import or export, which policies, and whether routes pass that these do not decide.
    Assign(usize, bool, Vec<usize>, bool),
    /// Import or export, which policies.
    Global(bool, Vec<usize>),
    NextHopMode(usize, u8),
    Knobs(usize, Knobs),
    Cluster(Option<u32>),
    Decision(Decision),
    /// Which, and what it costs; unreachable, or not known of.
    NextHop(usize, Option<Option<u32>>),
    /// Which, and what stands in its place.
    Via(usize, Vec<Ipv4Addr>),
    /// Which, and whether it is there and stands for what is inside it.
    Aggregate(usize, Option<bool>),
    Clear(usize, bool),
    Stall(usize, bool),
    Steps(u8),
    Settle,
}

pub(super) fn range() -> impl Strategy<Value = Range> {
    prop_oneof![
        Just(("10.0.0.0/8", 8, 32)),
        Just(("10.0.0.0/16", 16, 16)),
        Just(("10.0.0.0/16", 17, 24)),
        Just(("10.0.1.0/24", 24, 24)),
        Just(("10.2.0.0/18", 24, 24)),
        Just(("0.0.0.0/0", 0, 0)),
        Just(("0.0.0.0/0", 32, 32)),
    ]
    .prop_map(|(net, min, max)| Range { net: net.parse().unwrap(), min, max })
}

pub(super) fn asn() -> impl Strategy<Value = u32> {
    prop_oneof![Just(OUR_ASN), Just(65_001), Just(65_100), Just(65_101), Just(3356)]
}

pub(super) fn communities() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec((0..COMMUNITIES.len()).prop_map(|n| COMMUNITIES[n]), 1..3)
}

pub(super) fn cond() -> impl Strategy<Value = Cond> {
    let learned = prop_oneof![Just(Learned::Local), Just(Learned::External), Just(Learned::Internal)];
    let pattern = prop_oneof![
        asn().prop_map(Pattern::Has),
        asn().prop_map(Pattern::Begins),
        asn().prop_map(Pattern::Ends),
        Just(Pattern::Empty),
    ];
    let span = |n: u32| (0..n, 0..n).prop_map(|(from, more)| (from, from + more));
    let cond = prop_oneof![
        4 => prop::collection::vec(range(), 1..3).prop_map(Cond::Prefix),
        1 => Just(Cond::Set),
        1 => (0..PEERS.len()).prop_map(|peer| Cond::Neighbor(address(peer))),
        2 => (0..COMMUNITIES.len()).prop_map(|n| Cond::Community(COMMUNITIES[n])),
        1 => (any::<bool>(), communities()).prop_map(|(all, of)| Cond::Communities(all, of)),
        1 => Just(Cond::Large(LARGE)),
        1 => learned.prop_map(Cond::Learned),
        1 => any::<bool>().prop_map(Cond::External),
        1 => (0u8..3).prop_map(Cond::Origin),
        1 => span(4).prop_map(|(min, max)| Cond::PathLength(min, max)),
        1 => prop::collection::vec(asn(), 1..3).prop_map(Cond::PathBegins),
        1 => pattern.prop_map(Cond::Path),
        1 => span(3).prop_map(|(min, max)| Cond::LocalPref(99 + min, 99 + max)),
        1 => span(3).prop_map(|(min, max)| Cond::Med(min, max)),
        1 => (0..3usize).prop_map(|n| Cond::NextHop(Ipv4Net::new(next_hops()[n], 32).unwrap())),
    ];
    cond.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            2 => inner.clone().prop_map(|cond| Cond::Not(Box::new(cond))),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(Cond::Any),
            1 => prop::collection::vec(inner, 1..3).prop_map(Cond::All),
        ]
    })
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0u32..3).prop_map(|n| Act::LocalPref(99 + n)),
        (0u32..3).prop_map(Act::Med),
        (-2i64..3).prop_map(Act::AddMed),
        Just(Act::NoMed),
        (0u8..3).prop_map(Act::Origin),
        Just(Act::NextHopSelf),
        (0..3usize).prop_map(|n| Act::NextHop(next_hops()[n])),
        (asn(), 1u8..3).prop_map(|(asn, times)| Act::Prepend(asn, times)),
        prop::collection::vec(asn(), 1..3).prop_map(Act::PrependPath),
        (0..COMMUNITIES.len()).prop_map(|n| Act::Community(COMMUNITIES[n])),
        communities().prop_map(Act::NoCommunities),
        prop_oneof![Just(vec![]), communities()].prop_map(Act::TheseCommunities),
        Just(Act::Large(LARGE)),
        prop_oneof![Just(vec![]), Just(vec![[1, 2, 3]])].prop_map(Act::TheseLarge),
        (0..EXTENDED.len()).prop_map(|n| Act::Extended(EXTENDED[n])),
        prop_oneof![Just(vec![]), Just(EXTENDED.to_vec())].prop_map(Act::TheseExtended),
    ]
}

/// One that may call those behind `name`.
pub(super) fn policy(name: usize) -> impl Strategy<Value = Policy> {
    let called = NAMES[(name + 1).min(NAMES.len() - 1)];
    let call = if name + 1 < NAMES.len() { Flow::Call(called) } else { Flow::Next };
    let flow = prop_oneof![Just(Flow::Next), Just(Flow::Accept), Just(Flow::Reject), Just(call)];
    let statement = (prop::collection::vec(cond(), 0..3), prop::collection::vec(act(), 0..3), flow);
    // What is rejected is not to be changed: the speaker takes that for a mistake.
    let statement = statement
        .prop_map(|(when, apply, flow)| (when, if flow == Flow::Reject { vec![] } else { apply }, flow));
    let default =
        prop_oneof![3 => Just(Otherwise::Accept), 1 => Just(Otherwise::Reject), 2 => Just(Otherwise::Next)];
    (prop::collection::vec(statement, 0..4), default)
        .prop_map(|(statements, default)| Policy { statements, default })
}

pub(super) fn chain() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..NAMES.len(), 0..3)
}

pub(super) fn knobs() -> impl Strategy<Value = Knobs> {
    let private = prop::option::of((any::<bool>(), any::<bool>()));
    (any::<bool>(), 0u8..3, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), private).prop_map(
        |(client, allow_own_as, enforce_first_as, as_override, no_prepend, replace_as, remove_private)| {
            Knobs {
                no_prepend,
                replace_as,
                client,
                allow_own_as,
                enforce_first_as,
                as_override,
                remove_private,
            }
        },
    )
}

pub(super) fn decision() -> impl Strategy<Value = Decision> {
    let few = || prop::bool::weighted(0.3);
    (few(), few(), few(), 1usize..4, any::<bool>()).prop_map(
        |(always_compare_med, missing_med_worst, ignore_as_path_length, multipath, relax)| Decision {
            always_compare_med,
            missing_med_worst,
            ignore_as_path_length,
            multipath,
            relax,
        },
    )
}

pub(super) fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    let peer = || 0..PEERS.len();
    let prefix = || 0..prefixes().len();
    prop_oneof![
        2 => (peer(), prop::bool::weighted(0.3)).prop_map(|(peer, other)| Up(peer, other)),
        1 => peer().prop_map(Down),
        1 => peer().prop_map(EndOfRib),
        1 => Just(Wait),
        1 => (peer(), any::<bool>()).prop_map(|(peer, leaving)| Leave(peer, leaving)),
        1 => peer().prop_map(Refresh),
        12 => (peer(), prefix(), spec()).prop_map(|(peer, prefix, spec)| Announce(peer, prefix, spec)),
        4 => (peer(), prefix()).prop_map(|(peer, prefix)| Withdraw(peer, prefix)),
        2 => (peer(), 0u8..100, 1u8..150, any::<bool>()).prop_map(|(peer, from, n, one)| Many(peer, from, n, one)),
        1 => (peer(), 0u8..100, 1u8..150).prop_map(|(peer, from, n)| ManyGone(peer, from, n)),
        2 => (prefix(), spec()).prop_map(|(prefix, spec)| Originate(prefix, spec)),
        1 => prefix().prop_map(NoMore),
        2 => policy(0).prop_map(|policy| Policy(0, policy)),
        1 => policy(1).prop_map(|policy| Policy(1, policy)),
        1 => policy(2).prop_map(|policy| Policy(2, policy)),
        1 => prop::collection::vec(range(), 0..3).prop_map(Set),
        4 => (peer(), any::<bool>(), chain(), prop::bool::weighted(0.8))
            .prop_map(|(peer, export, chain, accepts)| Assign(peer, export, chain, accepts)),
        1 => (any::<bool>(), chain()).prop_map(|(export, chain)| Global(export, chain)),
        1 => (peer(), 0u8..3).prop_map(|(peer, mode)| NextHopMode(peer, mode)),
        2 => (peer(), knobs()).prop_map(|(peer, knobs)| Knobs(peer, knobs)),
        1 => prop::option::of(1u32..3).prop_map(Cluster),
        1 => decision().prop_map(Decision),
        2 => (0..4usize, prop::option::of(prop::option::of(0u32..3))).prop_map(|(hop, state)| NextHop(hop, state)),
        1 => (0..4usize, prop::collection::vec((0..3usize).prop_map(|n| next_hops()[n]), 0..3))
            .prop_map(|(hop, via)| Via(hop, via)),
        3 => (0..5usize, prop::option::weighted(0.8, any::<bool>())).prop_map(|(which, how)| Aggregate(which, how)),
        1 => (peer(), any::<bool>()).prop_map(|(peer, inward)| Clear(peer, inward)),
        1 => (peer(), any::<bool>()).prop_map(|(peer, stalled)| Stall(peer, stalled)),
        2 => (1u8..20).prop_map(Steps),
        8 => Just(Settle),
    ]
}
