//! The instruction set of compiled policies. Everything a program can test or do is in this file.
//!
//! Programs can be compared: when a policy is declared again, or a set it names changes, routes need to be evaluated
//! again only if the program is another one.

use std::sync::Arc;

use bgp_wire::Asn;
use bgp_wire::attr::{Community, LargeCommunity};

use super::sets::{NeighborSet, PrefixSet};

/// A compiled policy: statements in order, and what happens to a path that none of them decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The statements.
    pub stmts: Box<[Stmt]>,
    /// For a path that reaches the end.
    pub default: Default,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// All of these must hold; without any, every path matches.
    pub when: Box<[Cond]>,
    /// Done to a path that matches, in order.
    pub apply: Box<[Act]>,
    /// Where a path that matches goes then.
    pub then: Flow,
}

/// A test of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond {
    /// The prefix is in the set.
    Prefix(Arc<PrefixSet>),
    /// The neighbour of the session on which the policy runs is in the set.
    Neighbor(Arc<NeighborSet>),
    /// The path carries this community.
    Community(Community),
    /// The path carries this large community.
    LargeCommunity(LargeCommunity),
    /// The path came from there.
    Learned(Learned),
    /// The other condition does not hold. Never holds another `Not`.
    Not(Box<Self>),
}

/// A change of a path. The last of several changes of one attribute counts; prepending and adding accumulate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sets MULTI_EXIT_DISC.
    SetMed(u32),
    /// Sets LOCAL_PREF.
    SetLocalPref(u32),
    /// On export, makes this speaker the next hop. Without effect on import.
    NextHopSelf,
    /// Puts an AS number in front of the AS_PATH, this many times.
    Prepend(Asn, u8),
    /// Adds a community if it is not there.
    AddCommunity(Community),
    /// Adds a large community if it is not there.
    AddLargeCommunity(LargeCommunity),
}

/// Where a path that matched a statement goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// It is accepted; no later statement sees it.
    Accept,
    /// It is rejected.
    Reject,
    /// On to the next statement.
    Next,
}

/// What happens to a path that no statement decides.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Default {
    /// It is accepted.
    Accept,
    /// It is rejected.
    Reject,
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

impl Program {
    /// A program of the default alone.
    #[must_use]
    pub fn constant(default: Default) -> Self {
        Self { stmts: Box::new([]), default }
    }

    /// Whether the verdict may differ between prefixes with the same attributes. If not, it is the same for all
    /// prefixes of an UPDATE.
    #[must_use]
    pub fn depends_on_prefix(&self) -> bool {
        self.tests(|cond| matches!(cond, Cond::Prefix(_)))
    }

    /// Whether the verdict may differ between neighbours. If so, neighbours cannot share what it gives.
    #[must_use]
    pub fn depends_on_neighbor(&self) -> bool {
        self.tests(|cond| matches!(cond, Cond::Neighbor(_)))
    }

    fn tests(&self, what: impl Fn(&Cond) -> bool) -> bool {
        let inner = |cond: &Cond| match cond {
            Cond::Not(cond) => what(cond),
            Cond::Prefix(_)
            | Cond::Neighbor(_)
            | Cond::Community(_)
            | Cond::LargeCommunity(_)
            | Cond::Learned(_) => what(cond),
        };
        self.stmts.iter().flat_map(|stmt| &stmt.when).any(inner)
    }
}
