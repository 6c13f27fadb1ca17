//! Which prefix conditions of a chain hold for a prefix, all found in one look.
//!
//! All that a chain can tell of a prefix is in which of its sets that is, and which VPN it is of. So prefixes with the same
//! [`Signature`] and the same attributes have the same verdict, however many statements there are; and a chain of a hundred
//! prefix rules looks a prefix up once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bgp_wire::{Nlri, RouteDistinguisher};
use ipnet::IpNet;
use smallvec::SmallVec;

use super::program::{Cond, Program, Then};
use super::sets::PrefixSet;
use crate::rib::trie::{Bits, Trie};

/// What a chain can tell of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The sets that the prefix is in, by address, in order.
    sets: SmallVec<[usize; 6]>,
    rd: Option<RouteDistinguisher>,
}

impl Signature {
    /// Whether the prefix is in a set of the chain.
    pub(super) fn has(&self, set: &Arc<PrefixSet>) -> bool {
        match &*self.sets {
            [] => false,
            sets => sets.binary_search(&address(set)).is_ok(),
        }
    }
}

fn address(set: &Arc<PrefixSet>) -> usize {
    Arc::as_ptr(set).addr()
}

/// The prefix conditions of a chain.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixIndex {
    v4: Trie<Marks>,
    v6: Trie<Marks>,
    /// Sets too large to be written down once more.
    large: Vec<Arc<PrefixSet>>,
    /// Distinguishers count.
    rd: bool,
}

/// The lengths that a set wants below one prefix, and which set.
type Marks = SmallVec<[(u8, u8, usize); 1]>;

/// Ranges of a set that is asked by itself.
const LARGE: usize = 4096;

impl PrefixIndex {
    /// The conditions of these policies and of those that they call.
    pub(super) fn new(programs: &[Arc<Program>]) -> Self {
        let mut found = Found::default();
        programs.iter().for_each(|program| found.program(program));
        let mut index = Self { rd: found.rd, ..Self::default() };
        for (at, set) in found.sets {
            if set.len() > LARGE {
                index.large.push(set);
                continue;
            }
            set.each_range(|is_ipv4, prefix, (min, max)| {
                let trie = if is_ipv4 { &mut index.v4 } else { &mut index.v6 };
                let mut marks = trie.remove(prefix).unwrap_or_default();
                marks.push((min, max, at));
                trie.insert(prefix, marks);
            });
        }
        index
    }

    /// What the chain can tell of a prefix.
    #[inline]
    pub(super) fn signature(&self, nlri: &Nlri) -> Signature {
        let mut signature = Signature { sets: SmallVec::new(), rd: nlri.rd().filter(|_| self.rd) };
        let Some(net) = nlri.prefix() else { return signature };
        let trie = match net {
            IpNet::V4(_) => &self.v4,
            IpNet::V6(_) => &self.v6,
        };
        if !trie.is_empty() {
            let wanted = Bits::from(net);
            for (_, marks) in trie.covering(wanted) {
                let hold = marks.iter().filter(|(min, max, _)| (*min..=*max).contains(&wanted.len()));
                signature.sets.extend(hold.map(|(_, _, set)| *set));
            }
        }
        let large = self.large.iter().filter(|set| set.contains(nlri));
        signature.sets.extend(large.map(address));
        if signature.sets.len() > 1 {
            signature.sets.sort_unstable();
            signature.sets.dedup();
        }
        signature
    }
}

/// Sets found in programs, by address; each program is looked at once.
#[derive(Default)]
struct Found {
    sets: BTreeMap<usize, Arc<PrefixSet>>,
    seen: BTreeSet<usize>,
    rd: bool,
}

impl Found {
    fn program(&mut self, program: &Arc<Program>) {
        if !self.seen.insert(Arc::as_ptr(program).addr()) {
            return;
        }
        for stmt in &program.stmts {
            stmt.when.iter().for_each(|cond| self.cond(cond));
            if let Then::Call(called) = &stmt.then {
                self.program(called);
            }
        }
    }

    fn cond(&mut self, cond: &Cond) {
        match cond {
            Cond::Prefix(set) => {
                self.sets.insert(address(set), Arc::clone(set));
            }
            Cond::Rd(_) => self.rd = true,
            Cond::Not(inner) => self.cond(inner),
            Cond::Any(inner) | Cond::All(inner) => inner.iter().for_each(|cond| self.cond(cond)),
            Cond::Neighbor(_)
            | Cond::Learned(_)
            | Cond::PeerType(_)
            | Cond::Family(_)
            | Cond::Community(_)
            | Cond::LargeCommunity(_)
            | Cond::ExtCommunity(_)
            | Cond::Communities(..)
            | Cond::LargeCommunities(..)
            | Cond::ExtCommunities(..)
            | Cond::Interface(_)
            | Cond::NextHop(_)
            | Cond::Origin(_)
            | Cond::AsPathLength(_)
            | Cond::AsPath(_)
            | Cond::AsPathPrefix(_)
            | Cond::LocalPref(_)
            | Cond::Med(_) => {}
        }
    }
}
