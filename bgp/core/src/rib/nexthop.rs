//! Next hops: what the embedder says about reaching them, and interned sets of them.
//!
//! The speaker resolves nothing itself. A next hop that the embedder never mentioned is reachable at cost 0.
//!
//! *Never:* knows which paths hang on a next hop by name. An attribute set knows its next hop, and a next hop knows
//! when its state last changed; a review of the table finds the paths in question. That costs a walk per change of
//! the routing below BGP, and saves a back reference per path.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use bgp_wire::NextHop;

/// What the embedder knows about a next hop (RFC 4271 section 9.1.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHopState {
    /// Paths whose next hop cannot be reached take no part in the decision.
    pub reachable: bool,
    /// Interior cost of reaching it; smaller is better.
    pub metric: u32,
    /// The interface that leads there, where policy is to match on it.
    pub interface: Option<Arc<str>>,
}

impl Default for NextHopState {
    /// Reachable at cost 0.
    fn default() -> Self {
        Self { reachable: true, metric: 0, interface: None }
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
    sets: BTreeSet<Arc<[NextHop]>>,
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
    /// The set of this next hop alone, once asked for.
    alone: Option<NextHopSet>,
}

/// A set of next hops, in order and without duplicates. Cheap to clone; sets with equal members that come from one
/// speaker share their memory.
#[derive(Clone, Debug)]
pub struct NextHopSet(Arc<[NextHop]>);

impl NextHopSet {
    /// A set of these members.
    #[must_use]
    pub fn new(members: impl IntoIterator<Item = NextHop>) -> Self {
        Self(sorted(members).into())
    }

    /// The members, in order. Empty where this speaker itself is the next hop.
    #[must_use]
    pub fn as_slice(&self) -> &[NextHop] {
        &self.0
    }
}

impl Default for NextHopSet {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl PartialEq for NextHopSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for NextHopSet {}

impl NextHops {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        let none = Entry { hop: None, refs: 0, cost: 0, changed: 0, alone: Some(NextHopSet(Arc::new([]))) };
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

    /// States what is known about a next hop. True when the decision may come out differently because of it, so that
    /// the tables need a review.
    pub fn put(&mut self, address: IpAddr, state: NextHopState) -> bool {
        let cost = cost_of(&state);
        self.told.insert(address, state);
        self.set_cost(address, cost)
    }

    /// Nothing is known about a next hop any more: it is reachable at cost 0. The answer is as for [`NextHops::put`].
    pub fn delete(&mut self, address: IpAddr) -> bool {
        self.told.remove(&address);
        self.set_cost(address, 0)
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

    /// A set that shares its memory with every equal set in use.
    pub fn set(&mut self, members: impl IntoIterator<Item = NextHop>) -> NextHopSet {
        let members = sorted(members);
        if let Some(set) = self.sets.get(members.as_slice()) {
            return NextHopSet(Arc::clone(set));
        }
        if self.sets.len() >= self.purge_at {
            self.sets.retain(|set| Arc::strong_count(set) > 1);
            self.purge_at = (self.sets.len() * 2).max(64);
        }
        let set: Arc<[NextHop]> = members.into();
        self.sets.insert(Arc::clone(&set));
        NextHopSet(set)
    }

    /// The set of one interned next hop alone.
    pub(super) fn alone(&mut self, id: NextHopId) -> NextHopSet {
        let entry = &self.entries[id.0 as usize];
        if let Some(set) = &entry.alone {
            return set.clone();
        }
        let set = self.set(self.entries[id.0 as usize].hop);
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
        let cost = self.told.get(&address).map_or(0, cost_of);
        let entry = Entry { hop, refs: 1, cost, changed: 0, alone: None };
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

    fn set_cost(&mut self, address: IpAddr, cost: u32) -> bool {
        let generation = self.generation + 1;
        let mut changed = false;
        let from = (Bound::Included((address, None)), Bound::Unbounded);
        for (_, id) in self.by_address.range(from).take_while(|((at, _), _)| *at == address) {
            let entry = &mut self.entries[id.0 as usize];
            if entry.cost != cost {
                entry.cost = cost;
                entry.changed = generation;
                changed = true;
            }
        }
        self.generation += u64::from(changed);
        changed
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

fn sorted(members: impl IntoIterator<Item = NextHop>) -> Vec<NextHop> {
    let mut members: Vec<_> = members.into_iter().collect();
    members.sort_unstable();
    members.dedup();
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(text: &str) -> NextHop {
        text.parse::<IpAddr>().unwrap().into()
    }

    fn metric(metric: u32) -> NextHopState {
        NextHopState { metric, ..NextHopState::default() }
    }

    #[test]
    fn an_unknown_next_hop_is_reachable_at_cost_0() {
        let mut hops = NextHops::new();
        let id = hops.intern(Some(hop("192.0.2.1")));
        assert_eq!((hops.cost(id), hops.cost(NextHopId(0))), (0, 0));
        assert!(!hops.put(hop("192.0.2.1").address(), NextHopState::default()), "nothing new");
        assert!(!hops.put(hop("192.0.2.2").address(), metric(7)), "nobody uses it");
        let other = hops.intern(Some(hop("192.0.2.2")));
        assert_eq!(hops.cost(other), 7);
        assert_eq!(hops.state(hop("192.0.2.2").address()), Some(&metric(7)));
    }

    #[test]
    fn changes_are_dated() {
        let mut hops = NextHops::new();
        let (a, b) = (hops.intern(Some(hop("192.0.2.1"))), hops.intern(Some(hop("192.0.2.2"))));
        let before = hops.generation();
        assert!(hops.put(hop("192.0.2.1").address(), metric(5)));
        assert!(hops.changed_after(a, before) && !hops.changed_after(b, before));
        let between = hops.generation();
        assert!(!hops.changed_after(a, between));
        assert!(hops.put(hop("192.0.2.1").address(), NextHopState { reachable: false, ..metric(5) }));
        assert_eq!((hops.cost(a), hops.changed_after(a, between)), (UNREACHABLE, true));
        assert!(hops.delete(hop("192.0.2.1").address()));
        assert_eq!((hops.cost(a), hops.state(hop("192.0.2.1").address())), (0, None));
        assert!(hops.put(hop("192.0.2.1").address(), metric(u32::MAX)));
        assert_ne!(hops.cost(a), UNREACHABLE);
    }

    #[test]
    fn both_forms_of_an_ipv6_next_hop_follow_the_global_address() {
        let mut hops = NextHops::new();
        let global = "2001:db8::1".parse().unwrap();
        let one = hops.intern(Some(NextHop::V6 { global, link_local: None }));
        let two = hops.intern(Some(NextHop::V6 { global, link_local: Some("fe80::1".parse().unwrap()) }));
        let apart = hops.intern(Some(hop("2001:db8::2")));
        assert!(hops.put(global.into(), metric(3)));
        assert_eq!([one, two, apart].map(|id| hops.cost(id)), [3, 3, 0]);
    }

    #[test]
    fn a_next_hop_goes_with_its_last_set() {
        let mut hops = NextHops::new();
        let id = hops.intern(Some(hop("192.0.2.1")));
        assert_eq!(hops.intern(Some(hop("192.0.2.1"))), id);
        hops.release(id);
        assert_eq!(hops.intern(Some(hop("192.0.2.1"))), id);
        hops.release(id);
        hops.release(id);
        assert!(hops.by_address.is_empty());
        assert_eq!(hops.intern(Some(hop("192.0.2.9"))), id);
        hops.release(NextHopId(0));
    }

    #[test]
    fn equal_sets_share_their_memory_and_unused_ones_are_dropped() {
        let mut hops = NextHops::new();
        let (a, b) = (hop("192.0.2.1"), hop("192.0.2.2"));
        let set = hops.set([b, a, b]);
        assert_eq!(set.as_slice(), [a, b]);
        assert!(Arc::ptr_eq(&set.0, &hops.set([a, b]).0));
        assert_eq!(set, NextHopSet::new([a, b]));
        assert_ne!(set, NextHopSet::default());
        for n in 0..1000u32 {
            hops.set([NextHop::V4(n.into())]);
        }
        assert!(hops.sets.len() <= 64, "{}", hops.sets.len());
        assert!(Arc::ptr_eq(&set.0, &hops.set([a, b]).0), "one in use stays");
    }
}
