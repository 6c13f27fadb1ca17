//! Compiled policies, and chains of them. Everything a program can test or do is in this file.
//!
//! Programs can be compared: when a policy is declared again, or a set it names changes, routes need to be evaluated
//! again only if the program is another one. Names and labels are for people and don't count.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity, Origin};
use bgp_wire::{Asn, FamilySet, NextHop, Nlri, RouteDistinguisher};
use ipnet::IpNet;

use super::definition::{Default, Learned, Match, Otherwise, PeerType, PolicyName};
use super::pattern::{AsPathPattern, Glob};
use super::sets::{NeighborSet, NumberSet, PrefixSet};
use super::signature::{PrefixIndex, Signature, Ways};

/// A compiled policy.
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) name: PolicyName,
    pub(super) stmts: Box<[Stmt]>,
    /// Which of them a prefix may match.
    pub(super) ways: Ways,
    pub(super) default: Default,
    /// What it and those that it calls look at.
    pub(super) asks: Asks,
    /// How many statements a path may meet on its way through.
    pub(super) steps: usize,
    /// How many policies are inside one another.
    pub(super) depth: usize,
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.stmts == other.stmts && self.default == other.default
    }
}

impl Eq for Program {}

/// One statement.
#[derive(Clone, Debug)]
pub(super) struct Stmt {
    pub(super) label: Option<Arc<str>>,
    pub(super) when: Box<[Cond]>,
    pub(super) apply: Box<[Change]>,
    pub(super) then: Then,
}

impl PartialEq for Stmt {
    fn eq(&self, other: &Self) -> bool {
        self.when == other.when && self.apply == other.apply && self.then == other.then
    }
}

impl Eq for Stmt {}

/// Where a path that matched a statement goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Accept,
    Reject,
    Next,
    Call(Arc<Program>),
}

/// A test of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cond {
    Prefix(Arc<PrefixSet>),
    Rd(RouteDistinguisher),
    Neighbor(Arc<NeighborSet>),
    Learned(Learned),
    PeerType(PeerType),
    Family(FamilySet),
    Community(u128),
    LargeCommunity(u128),
    ExtCommunity(u128),
    Communities(Match, Arc<NumberSet>),
    LargeCommunities(Match, Arc<NumberSet>),
    ExtCommunities(Match, Arc<NumberSet>),
    Interface(Glob),
    NextHop(Box<[IpNet]>),
    Origin(Origin),
    AsPathLength(RangeInclusive<u32>),
    AsPath(Arc<[AsPathPattern]>),
    AsPathPrefix(Box<[Asn]>),
    LocalPref(RangeInclusive<u32>),
    Med(RangeInclusive<u32>),
    /// Never holds another `Not`.
    Not(Box<Self>),
    Any(Box<[Self]>),
    All(Box<[Self]>),
}

/// A change of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    LocalPref(u32),
    Med(u32),
    AddMed(i64),
    RemoveMed,
    Origin(Origin),
    NextHopSelf,
    NextHop(NextHop),
    Prepend(Asn, u8),
    Add(Community),
    AddLarge(LargeCommunity),
    AddExt(ExtCommunity),
    Remove(Arc<NumberSet>),
    RemoveLarge(Arc<NumberSet>),
    RemoveExt(Arc<NumberSet>),
    Replace(Box<[Community]>),
    ReplaceLarge(Box<[LargeCommunity]>),
    ReplaceExt(Box<[ExtCommunity]>),
}

/// What a verdict may depend on beside the attributes and where the path came from.
#[derive(Copy, Clone, Debug, std::default::Default, PartialEq, Eq)]
pub(super) struct Asks {
    /// The prefix, or the distinguisher before it.
    pub(super) prefix: bool,
    pub(super) neighbor: bool,
    pub(super) interface: bool,
}

impl Asks {
    pub(super) const fn or(self, other: Self) -> Self {
        Self {
            prefix: self.prefix || other.prefix,
            neighbor: self.neighbor || other.neighbor,
            interface: self.interface || other.interface,
        }
    }
}

impl Cond {
    pub(super) fn asks(&self) -> Asks {
        let nothing = Asks::default();
        match self {
            Self::Prefix(_) | Self::Rd(_) => Asks { prefix: true, ..nothing },
            Self::Neighbor(_) => Asks { neighbor: true, ..nothing },
            Self::Interface(_) => Asks { interface: true, ..nothing },
            Self::Not(inner) => inner.asks(),
            Self::Any(inner) | Self::All(inner) => inner.iter().map(Self::asks).fold(nothing, Asks::or),
            Self::Learned(_)
            | Self::PeerType(_)
            | Self::Family(_)
            | Self::Community(_)
            | Self::LargeCommunity(_)
            | Self::ExtCommunity(_)
            | Self::Communities(..)
            | Self::LargeCommunities(..)
            | Self::ExtCommunities(..)
            | Self::NextHop(_)
            | Self::Origin(_)
            | Self::AsPathLength(_)
            | Self::AsPath(_)
            | Self::AsPathPrefix(_)
            | Self::LocalPref(_)
            | Self::Med(_) => nothing,
        }
    }
}

impl Stmt {
    pub(super) fn asks(&self) -> Asks {
        let own = self.when.iter().map(Cond::asks).fold(Asks::default(), Asks::or);
        match &self.then {
            Then::Call(program) => own.or(program.asks),
            Then::Accept | Then::Reject | Then::Next => own,
        }
    }
}

impl Program {
    /// One without statements, which decides nothing.
    pub(super) fn empty(name: PolicyName) -> Self {
        let (stmts, ways) = (Box::new([]), Ways::default());
        Self { name, stmts, ways, default: Default::Next, asks: Asks::default(), steps: 0, depth: 1 }
    }

    /// The policy's name.
    #[must_use]
    pub const fn name(&self) -> &PolicyName {
        &self.name
    }

    /// Whether the verdict may differ between neighbours.
    #[must_use]
    pub const fn depends_on_neighbor(&self) -> bool {
        self.asks.neighbor
    }
}

/// A compiled chain of policies, and what happens to a path that none of them decides.
#[derive(Clone, Debug)]
pub struct Pipeline {
    pub(super) programs: Box<[Arc<Program>]>,
    pub(super) otherwise: Otherwise,
    asks: Asks,
    index: PrefixIndex,
}

impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        self.programs == other.programs && self.otherwise == other.otherwise
    }
}

impl Eq for Pipeline {}

impl Pipeline {
    /// These policies, in this order.
    #[must_use]
    pub fn new(programs: impl IntoIterator<Item = Arc<Program>>, otherwise: Otherwise) -> Self {
        let programs: Box<[Arc<Program>]> = programs.into_iter().collect();
        let asks = programs.iter().map(|program| program.asks).fold(Asks::default(), Asks::or);
        let index = PrefixIndex::new(&programs);
        Self { programs, otherwise, asks, index }
    }

    /// All that the chain can tell of a prefix.
    #[inline]
    pub(crate) fn signature(&self, nlri: &Nlri) -> Signature {
        if self.asks.prefix { self.index.signature(nlri) } else { Signature::default() }
    }

    /// Whether one look says that the chain can tell nothing of a prefix: its signature is the empty one.
    #[inline]
    pub(crate) fn is_outside(&self, nlri: &Nlri) -> bool {
        self.index.is_outside(nlri)
    }

    /// Whether it has been made of the very same programs.
    pub(crate) fn is_of(&self, programs: &[Arc<Program>]) -> bool {
        self.programs.len() == programs.len()
            && self.programs.iter().zip(programs).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// The policies.
    #[must_use]
    pub fn programs(&self) -> &[Arc<Program>] {
        &self.programs
    }

    /// Whether the verdict may differ between prefixes with the same attributes. If not, it is the same for all
    /// prefixes of an UPDATE.
    #[must_use]
    pub const fn depends_on_prefix(&self) -> bool {
        self.asks.prefix
    }

    /// Whether the verdict may differ between neighbours. If so, neighbours cannot share what it gives.
    #[must_use]
    pub const fn depends_on_neighbor(&self) -> bool {
        self.asks.neighbor
    }

    /// Whether the verdict may change with what the embedder tells of next hops.
    #[must_use]
    pub const fn depends_on_interface(&self) -> bool {
        self.asks.interface
    }
}
