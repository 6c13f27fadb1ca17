//! Policies as they are declared: sets are named, nothing is checked yet.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_wire::attr::{Community, LargeCommunity};

use super::program::{Act, Default, Flow, Learned};
use super::sets::PrefixRange;

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
    /// All of these must hold; without any, every path matches.
    pub when: Vec<Condition>,
    /// Done to a path that matches, in order.
    pub apply: Vec<Act>,
    /// Where a path that matches goes then.
    pub then: Flow,
}

/// A condition as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The prefix is in the named prefix set.
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
    /// The path came from there.
    Learned(Learned),
    /// The other condition does not hold.
    Not(Box<Self>),
}

impl PolicyDef {
    /// Whether the policy names this prefix set.
    #[must_use]
    pub fn names_prefix_set(&self, name: &SetName) -> bool {
        self.conditions().any(|condition| matches!(condition, Condition::PrefixSet(own) if own == name))
    }

    /// Whether the policy names this neighbour set.
    #[must_use]
    pub fn names_neighbor_set(&self, name: &SetName) -> bool {
        self.conditions().any(|condition| matches!(condition, Condition::NeighborSet(own) if own == name))
    }

    /// All conditions, without their negations.
    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.statements.iter().flat_map(|statement| &statement.when).map(Condition::positive)
    }
}

impl Condition {
    /// The condition inside all negations.
    fn positive(&self) -> &Self {
        let mut inner = self;
        while let Self::Not(condition) = inner {
            inner = condition;
        }
        inner
    }
}
