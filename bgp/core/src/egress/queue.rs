//! Prefixes that wait to be written, sorted into runs of equal fate.
//!
//! A batch of changes goes in one prefix at a time and comes out as runs: all withdrawals first, then for each
//! attribute set all prefixes that leave with it, so that an UPDATE carries as many prefixes as fit. Within one batch a
//! prefix is either withdrawn from a member or announced to it, never both, so the order of the runs cannot matter to
//! anyone (RFC 4271 section 9.2).
//!
//! *Never:* allocates per prefix once it has grown to the size of a batch; depends on the order of a hash table.

use crate::peer_key::PeerIx;
use crate::rib::AttrId;

/// Which members of an update group something is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    /// All of them.
    All,
    /// All but the one that the routes came from.
    Except(PeerIx),
    /// One only: what it was told before became its own route.
    Only(PeerIx),
}

impl Scope {
    /// Whether `member` is meant.
    pub(crate) fn includes(self, member: PeerIx) -> bool {
        match self {
            Self::All => true,
            Self::Except(other) => other != member,
            Self::Only(other) => other == member,
        }
    }
}

/// What the prefixes of a run have in common.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunKey {
    /// The attribute set in the Loc-RIB; none for a withdrawal.
    pub(crate) attr: Option<AttrId>,
    /// What export makes of it, as a number that the caller gives a meaning.
    pub(crate) form: u32,
    /// Who is told.
    pub(crate) scope: Scope,
}

impl RunKey {
    /// A withdrawal for everyone.
    pub(crate) const WITHDRAW: Self = Self { attr: None, form: 0, scope: Scope::All };
}

#[derive(Copy, Clone, Debug)]
struct Run {
    key: RunKey,
    head: u32,
    tail: u32,
    slot: u32,
}

#[derive(Copy, Clone, Debug)]
struct Item<K> {
    key: K,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// One batch.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    items: Vec<Item<K>>,
    runs: Vec<Run>,
    /// Open addressing over the runs: run number + 1, or 0. Never more than half full.
    slots: Box<[u32]>,
    order: Vec<u32>,
    last: u32,
}

impl<K: Copy> Queue<K> {
    /// How many prefixes a batch holds. More of them find more companions; fewer are ready sooner. Tests make do with few,
    /// so that they meet the borders.
    pub(crate) const CAPACITY: usize = if cfg!(test) { 64 } else { 8192 };

    /// An empty batch.
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), runs: Vec::new(), slots: Box::default(), order: Vec::new(), last: NONE }
    }

    /// How many runs a batch has at the most, since each has its price beside that of its prefixes: a batch is to be
    /// encoded well within two milliseconds.
    const RUNS: usize = Self::CAPACITY / 4;

    /// Whether no further prefix should be added. One change adds two, to two runs; or more, where several paths of a
    /// destination are told, and then goes beyond the capacity once.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() + 2 > Self::CAPACITY || self.runs.len() + 2 > Self::RUNS
    }

    /// Adds a prefix to its run.
    #[inline]
    pub(crate) fn push(&mut self, key: RunKey, prefix: K) {
        let item = self.items.len() as u32;
        self.items.push(Item { key: prefix, next: NONE });
        // Neighbours in a table usually came in one message, hence with one attribute set.
        let run = match self.runs.get(self.last as usize) {
            Some(run) if run.key == key => self.last,
            Some(_) | None => self.run(key),
        };
        self.last = run;
        let run = &mut self.runs[run as usize];
        if run.head == NONE {
            run.head = item;
        } else {
            self.items[run.tail as usize].next = item;
        }
        run.tail = item;
    }

    fn run(&mut self, key: RunKey) -> u32 {
        if self.slots.len() <= 2 * self.runs.len() {
            self.grow();
        }
        let slot = match self.find(&key) {
            Ok(run) => return run,
            Err(slot) => slot,
        };
        self.runs.push(Run { key, head: NONE, tail: NONE, slot: slot as u32 });
        self.slots[slot] = self.runs.len() as u32;
        self.runs.len() as u32 - 1
    }

    /// The number of a run, or the slot where it belongs.
    fn find(&self, key: &RunKey) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let attr = key.attr.map_or(0, AttrId::get);
        let mut slot = (attr.wrapping_mul(0x9e37_79b1) >> 12) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return Err(slot),
                found if self.runs[found as usize - 1].key == *key => return Ok(found - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots = vec![0; (4 * self.runs.len()).max(2 * Self::RUNS)].into_boxed_slice();
        for at in 0..self.runs.len() {
            if let Err(slot) = self.find(&self.runs[at].key) {
                self.slots[slot] = at as u32 + 1;
                self.runs[at].slot = slot as u32;
            }
        }
    }

    /// Puts the runs into the order they are written in: withdrawals first; then by members, so that few chunks are
    /// for some of them only; then as they came.
    pub(crate) fn sort(&mut self) {
        self.order.clear();
        self.order.extend(0..self.runs.len() as u32);
        let runs = &self.runs;
        self.order.sort_unstable_by_key(|&run| {
            let key = runs[run as usize].key;
            (key.attr.is_some(), key.scope, run)
        });
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.order.len()
    }

    /// What the prefixes of the `n`th run have in common.
    pub(crate) fn key(&self, n: usize) -> RunKey {
        self.runs[self.order[n] as usize].key
    }

    /// The prefixes of the `n`th run, as they came.
    pub(crate) fn prefixes(&self, n: usize) -> impl Iterator<Item = K> {
        let mut next = self.runs[self.order[n] as usize].head;
        std::iter::from_fn(move || {
            let item = self.items.get(next as usize)?;
            next = item.next;
            Some(item.key)
        })
    }

    /// Forgets everything but the memory.
    pub(crate) fn clear(&mut self) {
        for run in &self.runs {
            self.slots[run.slot as usize] = 0;
        }
        self.items.clear();
        self.runs.clear();
        self.order.clear();
        self.last = NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rib::AttrStore;
    use bgp_wire::attr::AttrFacts;

    /// Numbers of so many attribute sets.
    fn sets(count: u32) -> Vec<AttrId> {
        let mut store = AttrStore::new(0);
        (0..count).map(|n| store.intern(&n.to_be_bytes(), None, AttrFacts::default)).collect()
    }

    fn announce(attr: AttrId) -> RunKey {
        RunKey { attr: Some(attr), form: 0, scope: Scope::All }
    }

    fn written(queue: &mut Queue<u32>) -> Vec<(RunKey, Vec<u32>)> {
        queue.sort();
        (0..queue.runs()).map(|n| (queue.key(n), queue.prefixes(n).collect())).collect()
    }

    #[test]
    fn prefixes_of_one_attribute_set_are_one_run() {
        let (sets, mut queue) = (sets(2), Queue::new());
        for (attr, prefix) in [(0, 1), (1, 2), (0, 3), (0, 4), (1, 5)] {
            queue.push(announce(sets[attr]), prefix);
        }
        assert_eq!(
            written(&mut queue),
            [(announce(sets[0]), vec![1, 3, 4]), (announce(sets[1]), vec![2, 5])]
        );
        queue.clear();
        queue.push(announce(sets[1]), 6);
        assert_eq!(written(&mut queue), [(announce(sets[1]), vec![6])]);
    }

    #[test]
    fn withdrawals_come_first_then_runs_by_members() {
        let (sets, mut queue) = (sets(2), Queue::new());
        let except = RunKey { scope: Scope::Except(PeerIx(1)), ..announce(sets[0]) };
        let only = RunKey { scope: Scope::Only(PeerIx(1)), ..RunKey::WITHDRAW };
        queue.push(announce(sets[0]), 1);
        queue.push(except, 2);
        queue.push(announce(sets[1]), 3);
        queue.push(only, 2);
        let expected =
            [(only, vec![2]), (announce(sets[0]), vec![1]), (announce(sets[1]), vec![3]), (except, vec![2])];
        assert_eq!(written(&mut queue), expected);
    }

    #[test]
    fn equal_sets_in_other_forms_stay_apart() {
        let (sets, mut queue) = (sets(1), Queue::new());
        queue.push(RunKey { form: 1, ..announce(sets[0]) }, 1);
        queue.push(RunKey { form: 2, ..announce(sets[0]) }, 2);
        assert_eq!(written(&mut queue).len(), 2);
    }

    #[test]
    fn a_full_batch_of_different_sets_is_found_again() {
        let (sets, mut queue) = (sets(Queue::<u32>::CAPACITY as u32), Queue::new());
        let mut count = 0;
        while !queue.is_full() {
            queue.push(announce(sets[count as usize]), count);
            count += 1;
        }
        assert_eq!(written(&mut queue).len(), count as usize);
        queue.clear();
        assert!(queue.slots.iter().all(|slot| *slot == 0));
    }

    #[test]
    fn one_destination_may_go_beyond_the_capacity() {
        let (sets, mut queue) = (sets(Queue::<u32>::CAPACITY as u32), Queue::new());
        for round in 0..2 {
            for (count, set) in (0..).zip(&sets) {
                queue.push(announce(*set), count);
                queue.push(RunKey::WITHDRAW, count);
            }
            let written = written(&mut queue);
            assert_eq!(written.len(), sets.len() + 1, "round {round}");
            assert_eq!(written[0].1.len(), sets.len());
            queue.clear();
            assert!(queue.slots.iter().all(|slot| *slot == 0));
        }
    }

    #[test]
    fn scopes_name_their_members() {
        let (a, b) = (PeerIx(1), PeerIx(2));
        assert!(Scope::All.includes(a));
        assert!(!Scope::Except(a).includes(a) && Scope::Except(a).includes(b));
        assert!(Scope::Only(a).includes(a) && !Scope::Only(a).includes(b));
    }
}
