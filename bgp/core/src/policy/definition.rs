//! Policies as they are declared: sets are named, nothing is checked yet.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity, Origin};
use bgp_wire::{Asn, Family, RouteDistinguisher};
use ipnet::IpNet;

use super::pattern::{AsPathPattern, CommunityPattern, ExtCommunityPattern, Glob, LargeCommunityPattern};
use super::sets::{PrefixRange, SetKind};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// This name.
            #[must_use]
            pub fn new(name: &str) -> Self {
                Self(name.into())
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// The name of a policy; unique in one speaker.
    PolicyName
}
name! {
    /// The name of a defined set; unique among the sets of its kind in one speaker.
    SetName
}

/// A policy as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDef {
    /// Its statements, in order.
    pub statements: Vec<StatementDef>,
    /// What happens to a path that no statement decides.
    pub default: Default,
}

/// One statement as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementDef {
    /// Where it comes from, for people. Two policies that differ in labels alone treat every path alike.
    pub label: Option<Arc<str>>,
    /// All of these must hold; without any, every path matches.
    pub when: Vec<Condition>,
    /// Done to a path that matches, in order.
    pub apply: Vec<Act>,
    /// Where a path that matches goes then.
    pub then: Flow,
}

impl StatementDef {
    /// A statement without a label.
    #[must_use]
    pub const fn new(when: Vec<Condition>, apply: Vec<Act>, then: Flow) -> Self {
        Self { label: None, when, apply, then }
    }

    /// The same with this label.
    #[must_use]
    pub fn labelled(self, label: &str) -> Self {
        Self { label: Some(label.into()), ..self }
    }
}

/// Where a path that matched a statement goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// It is accepted; no later statement sees it.
    Accept,
    /// It is rejected.
    Reject,
    /// On to the next statement.
    Next,
    /// Through another policy. What that accepts or rejects is so; a path that its default sends on
    /// ([`Default::Next`]) comes back to the next statement here, with what the other one has changed.
    Call(PolicyName),
}

/// What happens to a path that no statement of a policy decides.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Default {
    /// It is accepted.
    Accept,
    /// It is rejected.
    Reject,
    /// It goes on, with what has been changed: to the next policy of the chain, or back to where this one was called.
    Next,
}

/// What happens to a path that no policy of a chain decides.
#[derive(Copy, Clone, Debug, std::default::Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Otherwise {
    /// It is accepted.
    #[default]
    Accept,
    /// It is rejected.
    Reject,
}

/// Which way routes go.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From a neighbour to us.
    Import,
    /// From us to a neighbour.
    Export,
}

/// Where a path came from.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Learned {
    /// This speaker originates it.
    Local,
    /// From an external neighbour.
    External,
    /// From an internal neighbour.
    Internal,
}

/// The kind of the session on which a policy runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerType {
    /// With a neighbour in another AS.
    External,
    /// With a neighbour in our AS.
    Internal,
}

/// How many members of a set a path must have to do with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Match {
    /// It carries what one of them stands for. Never so for an empty set.
    Any,
    /// It carries something for each of them. Always so for an empty set.
    All,
}

/// Members of a set: those of a defined one, or these.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Members<T> {
    /// Those of the set of this name.
    Set(SetName),
    /// These.
    These(Vec<T>),
}

/// A condition as declared. Conditions see the path as earlier statements left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The prefix is in the named prefix set. Of a route of a VPN the prefix behind the distinguisher counts; an SR policy has
    /// none, and is in no set.
    PrefixSet(SetName),
    /// The prefix is in one of these ranges.
    Prefix(Vec<PrefixRange>),
    /// The neighbour is in the named neighbour set.
    NeighborSet(SetName),
    /// The neighbour is one of these.
    Neighbor(Vec<IpAddr>),
    /// The path carries this community.
    Community(Community),
    /// The path carries this large community.
    LargeCommunity(LargeCommunity),
    /// The path carries this extended community.
    ExtCommunity(ExtCommunity),
    /// The path carries communities of a set.
    Communities(Match, Members<CommunityPattern>),
    /// The path carries large communities of a set.
    LargeCommunities(Match, Members<LargeCommunityPattern>),
    /// The path carries extended communities of a set.
    ExtCommunities(Match, Members<ExtCommunityPattern>),
    /// The path came from there.
    Learned(Learned),
    /// The session on which the policy runs is of this type.
    PeerType(PeerType),
    /// The route is of one of these families.
    Family(Vec<Family>),
    /// The route is of a VPN with this distinguisher.
    Rd(RouteDistinguisher),
    /// The interface that leads to the path's next hop, as the embedder told it, has such a name. Never so for a path whose
    /// next hop is on no known interface.
    Interface(Glob),
    /// The path's next hop lies in one of these. Never so for a path whose next hop is ourselves.
    NextHop(Vec<IpNet>),
    /// ORIGIN.
    Origin(Origin),
    /// The length of the AS path, as the decision counts it.
    AsPathLength(RangeInclusive<u32>),
    /// A pattern of the named set of AS paths matches the path.
    AsPathSet(SetName),
    /// One of these matches the AS path. On the way to an external neighbour that is the path as it will be sent, with our
    /// AS number in front; likewise for the two around this one.
    AsPath(Vec<AsPathPattern>),
    /// The AS path begins with a sequence of exactly these.
    AsPathPrefix(Vec<Asn>),
    /// The path has a LOCAL_PREF, and it is one of these.
    LocalPref(RangeInclusive<u32>),
    /// The path has a MULTI_EXIT_DISC, and it is one of these.
    Med(RangeInclusive<u32>),
    /// The other condition does not hold.
    Not(Box<Self>),
    /// At least one of these holds.
    Any(Vec<Self>),
    /// All of these hold.
    All(Vec<Self>),
}

/// A change of a path as declared. Each sees what those before it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sets LOCAL_PREF.
    SetLocalPref(u32),
    /// Sets MULTI_EXIT_DISC.
    SetMed(u32),
    /// Adds to MULTI_EXIT_DISC, which is 0 where it is missing. What several of these add adds up, and is kept within what
    /// the attribute can be in the end.
    AddMed(i64),
    /// Takes MULTI_EXIT_DISC away.
    RemoveMed,
    /// Sets ORIGIN.
    SetOrigin(Origin),
    /// On export, makes this speaker the next hop. Without effect on import.
    NextHopSelf,
    /// Sets the next hop. A route whose family cannot have it is not told.
    SetNextHop(IpAddr),
    /// Puts an AS number in front of the AS_PATH, this many times; towards an external neighbour in front of our own.
    Prepend(Asn, u8),
    /// Puts AS numbers in front of the AS_PATH, so that it begins with these, in this order.
    PrependPath(Vec<Asn>),
    /// Adds a community if it is not there.
    AddCommunity(Community),
    /// Adds a large community if it is not there.
    AddLargeCommunity(LargeCommunity),
    /// Adds an extended community if it is not there.
    AddExtCommunity(ExtCommunity),
    /// Takes away the communities of a set.
    RemoveCommunities(Members<CommunityPattern>),
    /// Takes away the large communities of a set.
    RemoveLargeCommunities(Members<LargeCommunityPattern>),
    /// Takes away the extended communities of a set.
    RemoveExtCommunities(Members<ExtCommunityPattern>),
    /// Puts these communities in the place of all that are there.
    ReplaceCommunities(Vec<Community>),
    /// Puts these large communities in the place of all that are there.
    ReplaceLargeCommunities(Vec<LargeCommunity>),
    /// Puts these extended communities in the place of all that are there.
    ReplaceExtCommunities(Vec<ExtCommunity>),
}

impl PolicyDef {
    /// The sets that the policy names.
    #[must_use]
    pub fn sets(&self) -> BTreeSet<(SetKind, SetName)> {
        let mut names = BTreeSet::new();
        for statement in &self.statements {
            statement.when.iter().for_each(|condition| condition.sets(&mut names));
            names.extend(statement.apply.iter().filter_map(Act::set));
        }
        names
    }

    /// The policies that it calls.
    #[must_use]
    pub fn calls(&self) -> BTreeSet<PolicyName> {
        let call = |statement: &StatementDef| match &statement.then {
            Flow::Call(name) => Some(name.clone()),
            Flow::Accept | Flow::Reject | Flow::Next => None,
        };
        self.statements.iter().filter_map(call).collect()
    }
}

impl<T> Members<T> {
    fn set(&self, kind: SetKind) -> Option<(SetKind, SetName)> {
        match self {
            Self::Set(name) => Some((kind, name.clone())),
            Self::These(_) => None,
        }
    }
}

impl Condition {
    fn sets(&self, names: &mut BTreeSet<(SetKind, SetName)>) {
        match self {
            Self::PrefixSet(name) => names.extend([(SetKind::Prefixes, name.clone())]),
            Self::NeighborSet(name) => names.extend([(SetKind::Neighbors, name.clone())]),
            Self::AsPathSet(name) => names.extend([(SetKind::AsPaths, name.clone())]),
            Self::Communities(_, members) => names.extend(members.set(SetKind::Communities)),
            Self::LargeCommunities(_, members) => names.extend(members.set(SetKind::LargeCommunities)),
            Self::ExtCommunities(_, members) => names.extend(members.set(SetKind::ExtCommunities)),
            Self::Not(inner) => inner.sets(names),
            Self::Any(inner) | Self::All(inner) => {
                inner.iter().for_each(|condition| condition.sets(names));
            }
            Self::Prefix(_)
            | Self::Neighbor(_)
            | Self::Community(_)
            | Self::LargeCommunity(_)
            | Self::ExtCommunity(_)
            | Self::Learned(_)
            | Self::PeerType(_)
            | Self::Family(_)
            | Self::Rd(_)
            | Self::Interface(_)
            | Self::NextHop(_)
            | Self::Origin(_)
            | Self::AsPathLength(_)
            | Self::AsPath(_)
            | Self::AsPathPrefix(_)
            | Self::LocalPref(_)
            | Self::Med(_) => {}
        }
    }
}

impl Act {
    fn set(&self) -> Option<(SetKind, SetName)> {
        match self {
            Self::RemoveCommunities(members) => members.set(SetKind::Communities),
            Self::RemoveLargeCommunities(members) => members.set(SetKind::LargeCommunities),
            Self::RemoveExtCommunities(members) => members.set(SetKind::ExtCommunities),
            Self::SetLocalPref(_)
            | Self::SetMed(_)
            | Self::AddMed(_)
            | Self::RemoveMed
            | Self::SetOrigin(_)
            | Self::NextHopSelf
            | Self::SetNextHop(_)
            | Self::Prepend(..)
            | Self::PrependPath(_)
            | Self::AddCommunity(_)
            | Self::AddLargeCommunity(_)
            | Self::AddExtCommunity(_)
            | Self::ReplaceCommunities(_)
            | Self::ReplaceLargeCommunities(_)
            | Self::ReplaceExtCommunities(_) => None,
        }
    }
}
