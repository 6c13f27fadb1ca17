//! Next hops: what the embedder says about reaching them, and interned sets of them.
//!
//! The speaker resolves nothing itself. A next hop that the embedder never mentioned is reachable at cost 0, and stands for
//! itself in sets; one that the embedder has resolved may stand for others.
//!
//! *Never:* knows which paths hang on a next hop by name. An attribute set knows its next hop, and a next hop knows
//! when its state last changed; a review of the table finds the paths in question. That costs a walk per change of
//! the routing below BGP, and saves a back reference per path.

mod set;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use bgp_wire::NextHop;

pub(super) use set::Share;
pub use set::{NextHopSet, WeightedNextHop};

/// What the embedder knows about a next hop (RFC 4271 section 9.1.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHopState {
    /// Paths whose next hop cannot be reached take no part in the decision.
    pub reachable: bool,
    /// Interior cost of reaching it; smaller is better.
    pub metric: u32,
    /// The interface that leads there, where policy is to match on it.
    pub interface: Option<Arc<str>>,
    /// The next hops of the routing below BGP that packets to it go to, where they are to stand in its place in the sets
    /// of the change stream: it is resolved by a route through these (RFC 4271 section 5.1.3). They share what goes to it
    /// equally. Empty where it is to stand for itself.
    pub via: Vec<IpAddr>,
}

impl Default for NextHopState {
    /// Reachable at cost 0.
    fn default() -> Self {
        Self { reachable: true, metric: 0, interface: None, via: Vec::new() }
    }
}

/// The cost of a next hop that cannot be reached. A metric of this value is counted as one less.
pub(super) const UNREACHABLE: u32 = u32::MAX;

/// An interned next hop. 0 is "none": this speaker itself.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NextHopId(u32);

/// Every next hop that an attribute set names, what is known about them, and the sets given out.
#[derive(Debug)]
pub struct NextHops {
    /// Entry 0 stands for "none".
    entries: Vec<Entry>,
    free: Vec<u32>,
    by_address: BTreeMap<(IpAddr, Option<NextHop>), NextHopId>,
    told: BTreeMap<IpAddr, NextHopState>,
    /// Counts changes of what is known.
    generation: u64,
    sets: BTreeSet<Arc<[WeightedNextHop]>>,
    /// `sets` is searched for sets that nobody holds any more when it has grown to this.
    purge_at: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    hop: Option<NextHop>,
    /// Attribute sets that name it.
    refs: u32,
    cost: u32,
    /// The generation in which its cost last changed.
    changed: u64,
    /// What stands in its place; nothing where it stands for itself.
    via: Arc<[NextHop]>,
    /// The generation in which that last changed.
    resolved: u64,
    /// The set of this next hop alone, once asked for.
    alone: Option<NextHopSet>,
}

impl NextHops {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        let none = Entry { alone: Some(NextHopSet::default()), ..Entry::new(None, None) };
        Self {
            entries: vec![none],
            free: Vec::new(),
            by_address: BTreeMap::new(),
            told: BTreeMap::new(),
            generation: 0,
            sets: BTreeSet::new(),
            purge_at: 64,
        }
    }

    /// States what is known about a next hop. True when the decision, or what comes of it, may be another one because of
    /// that, so that the tables need a review.
    pub fn put(&mut self, address: IpAddr, state: NextHopState) -> bool {
        let changed = self.set_state(address, Some(&state));
        self.told.insert(address, state);
        changed
    }

    /// Nothing is known about a next hop any more: it is reachable at cost 0. The answer is as for [`NextHops::put`].
    pub fn delete(&mut self, address: IpAddr) -> bool {
        self.told.remove(&address);
        self.set_state(address, None)
    }

    /// What the embedder said about this address.
    #[must_use]
    pub fn state(&self, address: IpAddr) -> Option<&NextHopState> {
        self.told.get(&address)
    }

    /// Counts changes; a review is told from which one on it has to look.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The set of these shares, which shares its memory with every equal set in use. Allocates for new sets only.
    pub(super) fn set(&mut self, shares: impl IntoIterator<Item = (NextHopId, Share)>) -> NextHopSet {
        let shares = shares.into_iter().filter_map(|(id, share)| {
            let entry = &self.entries[id.0 as usize];
            Some((entry.hop?, share, &*entry.via))
        });
        let members = set::members(shares);
        if let Some(set) = self.sets.get(members.as_slice()) {
            return NextHopSet(Arc::clone(set));
        }
        if self.sets.len() >= self.purge_at {
            self.sets.retain(|set| Arc::strong_count(set) > 1);
            self.purge_at = (self.sets.len() * 2).max(64);
        }
        let set: Arc<[WeightedNextHop]> = members.as_slice().into();
        self.sets.insert(Arc::clone(&set));
        NextHopSet(set)
    }

    /// The set of one interned next hop alone.
    pub(super) fn alone(&mut self, id: NextHopId) -> NextHopSet {
        if let Some(set) = &self.entries[id.0 as usize].alone {
            return set.clone();
        }
        let set = self.set([(id, Share::UNKNOWN)]);
        self.entries[id.0 as usize].alone = Some(set.clone());
        set
    }

    /// The number of a next hop, with one more reference.
    pub(super) fn intern(&mut self, hop: Option<NextHop>) -> NextHopId {
        let Some(some) = hop else { return NextHopId(0) };
        let address = some.address();
        if let Some(&id) = self.by_address.get(&(address, hop)) {
            self.entries[id.0 as usize].refs += 1;
            return id;
        }
        let entry = Entry { refs: 1, ..Entry::new(hop, self.told.get(&address)) };
        let id = if let Some(at) = self.free.pop() {
            self.entries[at as usize] = entry;
            NextHopId(at)
        } else {
            self.entries.push(entry);
            NextHopId(self.entries.len() as u32 - 1)
        };
        self.by_address.insert((address, hop), id);
        id
    }

    /// Gives back one reference.
    pub(super) fn release(&mut self, id: NextHopId) {
        let entry = &mut self.entries[id.0 as usize];
        let Some(hop) = entry.hop else { return };
        entry.refs -= 1;
        if entry.refs == 0 {
            entry.alone = None;
            self.by_address.remove(&(hop.address(), Some(hop)));
            self.free.push(id.0);
        }
    }

    /// The cost of reaching it; [`UNREACHABLE`] if it cannot be reached.
    #[inline]
    pub(super) fn cost(&self, id: NextHopId) -> u32 {
        self.entries[id.0 as usize].cost
    }

    /// Whether its cost changed after generation `since`.
    #[inline]
    pub(super) fn changed_after(&self, id: NextHopId, since: u64) -> bool {
        self.entries[id.0 as usize].changed > since
    }

    /// Whether what stands in its place changed after generation `since`.
    #[inline]
    pub(super) fn resolved_after(&self, id: NextHopId, since: u64) -> bool {
        self.entries[id.0 as usize].resolved > since
    }

    fn set_state(&mut self, address: IpAddr, state: Option<&NextHopState>) -> bool {
        let generation = self.generation + 1;
        let new = Entry::new(None, state);
        let mut changed = false;
        let from = (Bound::Included((address, None)), Bound::Unbounded);
        for (_, id) in self.by_address.range(from).take_while(|((at, _), _)| *at == address) {
            let entry = &mut self.entries[id.0 as usize];
            if entry.cost != new.cost {
                entry.cost = new.cost;
                entry.changed = generation;
                changed = true;
            }
            if entry.via != new.via {
                entry.via = Arc::clone(&new.via);
                entry.resolved = generation;
                entry.alone = None;
                changed = true;
            }
        }
        self.generation += u64::from(changed);
        changed
    }
}

impl Entry {
    fn new(hop: Option<NextHop>, state: Option<&NextHopState>) -> Self {
        Self {
            hop,
            refs: 0,
            cost: state.map_or(0, cost_of),
            changed: 0,
            via: state.into_iter().flat_map(|state| &state.via).copied().map(NextHop::from).collect(),
            resolved: 0,
            alone: None,
        }
    }
}

impl Default for NextHops {
    fn default() -> Self {
        Self::new()
    }
}

fn cost_of(state: &NextHopState) -> u32 {
    if state.reachable { state.metric.min(UNREACHABLE - 1) } else { UNREACHABLE }
}

#[cfg(test)]
mod tests;
