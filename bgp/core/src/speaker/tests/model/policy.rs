//! Policies as plain values, read one statement after the other; and what they are in the speaker's words.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use bgp_wire::Asn;
use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity, Origin};
use ipnet::Ipv4Net;

use super::route::{Attrs, Hop};
use crate::policy::{self, Members, PolicyDef, PrefixRange, SetDef, StatementDef};

/// The prefixes in `net` whose length is from `min` to `max`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) net: Ipv4Net,
    pub(super) min: u8,
    pub(super) max: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cond {
    Prefix(Vec<Range>),
    /// The one named set of prefixes.
    Set,
    Neighbor(Ipv4Addr),
    Community(u32),
    /// Any of them, or all.
    Communities(bool, Vec<u32>),
    Large([u32; 3]),
    Learned(Learned),
    /// The session is with another AS.
    External(bool),
    Origin(u8),
    PathLength(u32, u32),
    PathBegins(Vec<u32>),
    Path(Pattern),
    LocalPref(u32, u32),
    Med(u32, u32),
    NextHop(Ipv4Net),
    Not(Box<Self>),
    Any(Vec<Self>),
    All(Vec<Self>),
}

/// What an AS path is looked through for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Has(u32),
    Begins(u32),
    Ends(u32),
    Empty,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    Local,
    External,
    Internal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    LocalPref(u32),
    Med(u32),
    AddMed(i64),
    NoMed,
    Origin(u8),
    NextHopSelf,
    NextHop(Ipv4Addr),
    Prepend(u32, u8),
    PrependPath(Vec<u32>),
    Community(u32),
    NoCommunities(Vec<u32>),
    TheseCommunities(Vec<u32>),
    Large([u32; 3]),
    TheseLarge(Vec<[u32; 3]>),
    Extended(u64),
    TheseExtended(Vec<u64>),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Accept,
    Reject,
    Next,
    Call(&'static str),
}

/// What becomes of a route that no statement decides.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Default {
    Accept,
    Reject,
    Next,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) statements: Vec<(Vec<Cond>, Vec<Act>, Flow)>,
    pub(super) default: Default,
}

/// Policies by name.
pub(super) type Policies = BTreeMap<&'static str, Policy>;

/// What policies look at beside the attributes.
#[derive(Clone, Debug)]
pub(super) struct Seen<'a> {
    pub(super) policies: &'a Policies,
    pub(super) prefix: Ipv4Net,
    pub(super) neighbor: Ipv4Addr,
    /// The neighbour is in another AS.
    pub(super) external: bool,
    pub(super) learned: Learned,
    /// The MED before any policy.
    pub(super) med: Option<u32>,
    /// The named set.
    pub(super) set: &'a [Range],
    /// On the way out: our AS numbers, where they go in front of the path.
    pub(super) out: bool,
    pub(super) front: Vec<u32>,
}

/// What policies have made of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The path begins with what was put there, then comes what is in front anyway.
    pub(super) attrs: Attrs,
    /// Policy has had a say in the MED.
    pub(super) own_med: bool,
    /// What has been added to the MED that came, as long as it has not been set: it is kept within bounds in the end.
    added: Option<i64>,
    pub(super) next_hop: NextHop,
    /// What was put in front of the path, leftmost first.
    pub(super) prepended: Vec<u32>,
    /// Extended communities that policies added.
    pub(super) own_extended: BTreeSet<u64>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NextHop {
    AsItIs,
    Ours,
    This(Ipv4Addr),
}

/// What becomes of a route that a chain of policies has looked at; `None` if it does not pass.
pub(super) fn run(chain: &[&'static str], accepts: bool, attrs: &Attrs, seen: &Seen<'_>) -> Option<Made> {
    let mut made = Made {
        attrs: attrs.clone(),
        own_med: false,
        added: Some(0),
        next_hop: NextHop::AsItIs,
        prepended: vec![],
        own_extended: BTreeSet::new(),
    };
    made.attrs.path.splice(0..0, seen.front.iter().copied().map(Hop::As));
    for name in chain {
        match seen.policies[name].run(&mut made, seen) {
            Some(true) => return Some(made),
            Some(false) => return None,
            None => {}
        }
    }
    accepts.then_some(made)
}

impl Policy {
    /// Accepts everything.
    pub(super) const OPEN: Self = Self { statements: Vec::new(), default: Default::Accept };

    fn run(&self, made: &mut Made, seen: &Seen<'_>) -> Option<bool> {
        for (when, apply, then) in &self.statements {
            if !when.iter().all(|cond| cond.holds(made, seen)) {
                continue;
            }
            for act in apply {
                act.apply(made, seen);
            }
            match then {
                Flow::Accept => return Some(true),
                Flow::Reject => return Some(false),
                Flow::Next => {}
                Flow::Call(name) => {
                    if let Some(decided) = seen.policies[name].run(made, seen) {
                        return Some(decided);
                    }
                }
            }
        }
        match self.default {
            Default::Accept => Some(true),
            Default::Reject => Some(false),
            Default::Next => None,
        }
    }

    /// The same in the speaker's words.
    pub(super) fn def(&self) -> PolicyDef {
        let statements = self.statements.iter().map(|(when, apply, then)| {
            StatementDef::new(
                when.iter().map(Cond::def).collect(),
                apply.iter().map(Act::def).collect(),
                match then {
                    Flow::Accept => policy::Flow::Accept,
                    Flow::Reject => policy::Flow::Reject,
                    Flow::Next => policy::Flow::Next,
                    Flow::Call(name) => policy::Flow::Call((*name).into()),
                },
            )
        });
        let default = match self.default {
            Default::Accept => policy::Default::Accept,
            Default::Reject => policy::Default::Reject,
            Default::Next => policy::Default::Next,
        };
        PolicyDef { statements: statements.collect(), default }
    }
}

impl Range {
    fn contains(&self, prefix: Ipv4Net) -> bool {
        self.net.contains(&prefix) && self.min <= prefix.prefix_len() && prefix.prefix_len() <= self.max
    }

    fn def(&self) -> PrefixRange {
        PrefixRange::new(self.net.into(), self.min, self.max).unwrap()
    }
}

/// The name of the one set.
pub(super) const SET: &str = "set";

/// The one set in the speaker's words.
pub(super) fn set(ranges: &[Range]) -> SetDef {
    SetDef::Prefixes(ranges.iter().map(Range::def).collect())
}

impl Cond {
    fn holds(&self, made: &Made, seen: &Seen<'_>) -> bool {
        let attrs = &made.attrs;
        match self {
            Self::Prefix(ranges) => ranges.iter().any(|range| range.contains(seen.prefix)),
            Self::Set => seen.set.iter().any(|range| range.contains(seen.prefix)),
            Self::Neighbor(neighbor) => seen.neighbor == *neighbor,
            Self::Community(community) => attrs.communities.contains(community),
            Self::Communities(true, all) => all.iter().all(|one| attrs.communities.contains(one)),
            Self::Communities(false, any) => any.iter().any(|one| attrs.communities.contains(one)),
            Self::Large(community) => attrs.large.contains(community),
            Self::Learned(learned) => seen.learned == *learned,
            Self::External(external) => seen.external == *external,
            Self::Origin(origin) => attrs.origin == *origin,
            Self::PathLength(min, max) => (*min..=*max).contains(&(attrs.path.len() as u32)),
            Self::PathBegins(asns) => {
                asns.iter().enumerate().all(|(at, asn)| attrs.path.get(at) == Some(&Hop::As(*asn)))
            }
            Self::Path(Pattern::Has(asn)) => attrs.asns().contains(asn),
            Self::Path(Pattern::Begins(asn)) => attrs.path.first() == Some(&Hop::As(*asn)),
            Self::Path(Pattern::Ends(asn)) => attrs.path.last() == Some(&Hop::As(*asn)),
            Self::Path(Pattern::Empty) => attrs.path.is_empty(),
            Self::LocalPref(min, max) => attrs.local_pref.is_some_and(|own| *min <= own && own <= *max),
            Self::Med(min, max) => attrs.med.is_some_and(|own| *min <= own && own <= *max),
            Self::NextHop(net) => match made.next_hop {
                NextHop::AsItIs => attrs.next_hop.is_some_and(|hop| net.contains(&hop)),
                NextHop::Ours => false,
                NextHop::This(hop) => net.contains(&hop),
            },
            Self::Not(cond) => !cond.holds(made, seen),
            Self::Any(conds) => conds.iter().any(|cond| cond.holds(made, seen)),
            Self::All(conds) => conds.iter().all(|cond| cond.holds(made, seen)),
        }
    }

    fn def(&self) -> policy::Condition {
        use policy::Condition;
        let all = |conds: &[Self]| conds.iter().map(Self::def).collect();
        match self {
            Self::Prefix(ranges) => Condition::Prefix(ranges.iter().map(Range::def).collect()),
            Self::Set => Condition::PrefixSet(SET.into()),
            Self::Neighbor(neighbor) => Condition::Neighbor(vec![(*neighbor).into()]),
            Self::Community(community) => Condition::Community(Community(*community)),
            Self::Communities(all, of) => {
                let how = if *all { policy::Match::All } else { policy::Match::Any };
                Condition::Communities(how, members(of))
            }
            Self::Large(community) => Condition::LargeCommunity(large(community)),
            Self::Learned(learned) => Condition::Learned(match learned {
                Learned::Local => policy::Learned::Local,
                Learned::External => policy::Learned::External,
                Learned::Internal => policy::Learned::Internal,
            }),
            Self::External(external) => Condition::PeerType(match external {
                true => policy::PeerType::External,
                false => policy::PeerType::Internal,
            }),
            Self::Origin(of) => Condition::Origin(origin(*of)),
            Self::PathLength(min, max) => Condition::AsPathLength(*min..=*max),
            Self::PathBegins(asns) => Condition::AsPathPrefix(asns.iter().map(|asn| Asn(*asn)).collect()),
            Self::Path(pattern) => Condition::AsPath(vec![pattern.text().parse().unwrap()]),
            Self::LocalPref(min, max) => Condition::LocalPref(*min..=*max),
            Self::Med(min, max) => Condition::Med(*min..=*max),
            Self::NextHop(net) => Condition::NextHop(vec![(*net).into()]),
            Self::Not(cond) => Condition::Not(Box::new(cond.def())),
            Self::Any(conds) => Condition::Any(all(conds)),
            Self::All(conds) => Condition::All(all(conds)),
        }
    }
}

impl Pattern {
    fn text(self) -> String {
        match self {
            Self::Has(asn) => format!("_{asn}_"),
            Self::Begins(asn) => format!("^{asn}_"),
            Self::Ends(asn) => format!("_{asn}$"),
            Self::Empty => "^$".to_owned(),
        }
    }
}

fn members<T: From<Community>>(communities: &[u32]) -> Members<T> {
    Members::These(communities.iter().map(|community| Community(*community).into()).collect())
}

fn large([a, b, c]: &[u32; 3]) -> LargeCommunity {
    LargeCommunity::new(*a, *b, *c)
}

fn origin(of: u8) -> Origin {
    match of {
        0 => Origin::Igp,
        1 => Origin::Egp,
        _ => Origin::Incomplete,
    }
}

impl Act {
    fn apply(&self, made: &mut Made, seen: &Seen<'_>) {
        let attrs = &mut made.attrs;
        match self {
            Self::LocalPref(local_pref) => attrs.local_pref = Some(*local_pref),
            Self::Med(med) => (attrs.med, made.own_med, made.added) = (Some(*med), true, None),
            Self::AddMed(by) => {
                let sum = match &mut made.added {
                    Some(added) => {
                        *added += by;
                        i64::from(seen.med.unwrap_or(0)) + *added
                    }
                    None => i64::from(attrs.med.unwrap_or(0)) + by,
                };
                (attrs.med, made.own_med) = (Some(u32::try_from(sum.max(0)).unwrap()), true);
            }
            Self::NoMed => (attrs.med, made.own_med, made.added) = (None, true, None),
            Self::Origin(origin) => attrs.origin = *origin,
            Self::NextHopSelf if seen.out => made.next_hop = NextHop::Ours,
            Self::NextHopSelf => {}
            Self::NextHop(hop) => made.next_hop = NextHop::This(*hop),
            Self::Prepend(asn, times) => made.prepend(&vec![*asn; usize::from(*times)]),
            Self::PrependPath(asns) => made.prepend(asns),
            Self::Community(community) => {
                attrs.communities.insert(*community);
            }
            Self::NoCommunities(gone) => attrs.communities.retain(|one| !gone.contains(one)),
            Self::TheseCommunities(these) => attrs.communities = these.iter().copied().collect(),
            Self::Large(community) => {
                attrs.large.insert(*community);
            }
            Self::Extended(community) => {
                attrs.extended.insert(*community);
                made.own_extended.insert(*community);
            }
            Self::TheseExtended(these) => {
                attrs.extended = these.iter().copied().collect();
                made.own_extended = attrs.extended.clone();
            }
            Self::TheseLarge(these) => attrs.large = these.iter().copied().collect::<BTreeSet<_>>(),
        }
    }

    fn def(&self) -> policy::Act {
        use policy::Act;
        match self {
            Self::LocalPref(local_pref) => Act::SetLocalPref(*local_pref),
            Self::Med(med) => Act::SetMed(*med),
            Self::AddMed(by) => Act::AddMed(*by),
            Self::NoMed => Act::RemoveMed,
            Self::Origin(of) => Act::SetOrigin(origin(*of)),
            Self::NextHopSelf => Act::NextHopSelf,
            Self::NextHop(hop) => Act::SetNextHop((*hop).into()),
            Self::Prepend(asn, times) => Act::Prepend(Asn(*asn), *times),
            Self::PrependPath(asns) => Act::PrependPath(asns.iter().map(|asn| Asn(*asn)).collect()),
            Self::Community(community) => Act::AddCommunity(Community(*community)),
            Self::NoCommunities(gone) => Act::RemoveCommunities(members(gone)),
            Self::TheseCommunities(these) => {
                Act::ReplaceCommunities(these.iter().map(|one| Community(*one)).collect())
            }
            Self::Large(community) => Act::AddLargeCommunity(large(community)),
            Self::Extended(community) => Act::AddExtCommunity(ExtCommunity(*community)),
            Self::TheseExtended(these) => {
                Act::ReplaceExtCommunities(these.iter().map(|one| ExtCommunity(*one)).collect())
            }
            Self::TheseLarge(these) => Act::ReplaceLargeCommunities(these.iter().map(large).collect()),
        }
    }
}

impl Made {
    fn prepend(&mut self, asns: &[u32]) {
        self.prepended.splice(0..0, asns.iter().copied());
        self.attrs.path.splice(0..0, asns.iter().map(|asn| Hop::As(*asn)));
    }
}
