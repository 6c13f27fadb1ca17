//! Exact match: from a hash to a 26-bit id, four octets a slot.
//!
//! Extendible hashing. A directory of 2^depth entries names pages of 1,024 slots each; inside a page the probing is
//! linear. A full page is split in two and its entries are hashed again, so growth costs one page at a time: no
//! resize holds the speaker for long, and no second copy of the index ever exists. Each slot keeps six bits of the
//! hash beside the id, so that a probe rarely touches an element that is not the one looked for.
//!
//! The index stores neither keys nor hashes: the caller passes the hash of what it looks for, and a function that
//! hashes the element of an id again. Hashes must be seeded per process, since peers choose the keys.
//!
//! *Never:* iterates, so the order of the slots leaks nowhere.

/// Ids must be below this: the largest number of elements in one index.
pub const MAX_IDS: u32 = ID_MASK - 1;

const SLOTS: usize = 1024;
/// A page is split beyond this fill, or freed of its tombstones if there are many.
const FILL: usize = 864;
const ID_BITS: u32 = 26;
const ID_MASK: u32 = (1 << ID_BITS) - 1;
/// A slot never used: it ends a probe. No id reaches the two reserved values, whatever the tag.
const FREE: u32 = u32::MAX;
/// A slot whose element was removed: a probe goes on.
const GONE: u32 = u32::MAX - 1;
/// More bits than this are not used for the directory, so that endless equal hashes cannot double it for ever.
const MAX_DEPTH: u32 = 24;

/// The map from hash to id. See the module's text.
#[derive(Debug)]
pub struct Index {
    /// 2^depth page numbers; the top bits of the hash select one.
    directory: Vec<u32>,
    depth: u32,
    pages: Vec<Page>,
    len: usize,
}

#[derive(Debug)]
struct Page {
    slots: Box<[u32; SLOTS]>,
    /// Slots that are not `FREE`.
    used: u16,
    live: u16,
    /// How many top bits of the hash all entries of this page share.
    depth: u8,
}

impl Index {
    /// An empty index of one page.
    #[must_use]
    pub fn new() -> Self {
        Self { directory: vec![0], depth: 0, pages: vec![Page::new(0)], len: 0 }
    }

    /// How many ids it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heap octets in use, for the memory counters.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.directory.capacity() * 4 + self.pages.len() * (SLOTS * 4 + size_of::<Page>())
    }

    /// The id of hash `hash` for which `is` holds.
    #[inline]
    pub fn find(&self, hash: u64, mut is: impl FnMut(u32) -> bool) -> Option<u32> {
        let slots = &self.pages[self.page_of(hash)].slots;
        let tag = tag_of(hash);
        let mut at = start_of(hash);
        for _ in 0..SLOTS {
            let slot = slots[at];
            if slot == FREE {
                return None;
            }
            if slot & !ID_MASK == tag && slot != GONE && is(slot & ID_MASK) {
                return Some(slot & ID_MASK);
            }
            at = (at + 1) % SLOTS;
        }
        None
    }

    /// Reads where [`Index::find`] will begin for this hash. Doing so for several hashes before the first of them is
    /// looked for lets their cache misses overlap; the value means nothing.
    #[inline]
    #[must_use]
    pub fn touch(&self, hash: u64) -> u32 {
        self.pages[self.page_of(hash)].slots[start_of(hash)]
    }

    /// Adds `id`, which must not be in the index yet. `rehash` gives the hash of any id that is.
    ///
    /// False, and nothing is added, when `id` is not below [`MAX_IDS`], or when a page is full of entries whose hashes
    /// do not differ.
    #[must_use]
    pub fn insert(&mut self, hash: u64, id: u32, rehash: impl Fn(u32) -> u64) -> bool {
        if id >= MAX_IDS {
            return false;
        }
        let mut page = self.page_of(hash);
        while usize::from(self.pages[page].used) >= FILL {
            let tombstones = usize::from(self.pages[page].used - self.pages[page].live);
            if tombstones > FILL / 4 {
                self.pages[page].rebuild(&rehash);
            } else if !self.split(hash, &rehash) {
                break;
            }
            page = self.page_of(hash);
        }
        let put = self.pages[page].put(hash, id);
        self.len += usize::from(put);
        put
    }

    /// Removes `id` if it is there; says whether it was.
    pub fn remove(&mut self, hash: u64, id: u32) -> bool {
        let page = self.page_of(hash);
        let page = &mut self.pages[page];
        let wanted = tag_of(hash) | id;
        let mut at = start_of(hash);
        for _ in 0..SLOTS {
            let slot = page.slots[at];
            if slot == FREE {
                return false;
            }
            if slot == wanted {
                page.live -= 1;
                // Nothing probes past this slot when the next one is free: it may be free again, too.
                if page.slots[(at + 1) % SLOTS] == FREE {
                    page.slots[at] = FREE;
                    page.used -= 1;
                } else {
                    page.slots[at] = GONE;
                }
                self.len -= 1;
                return true;
            }
            at = (at + 1) % SLOTS;
        }
        false
    }

    #[inline]
    fn page_of(&self, hash: u64) -> usize {
        self.directory[self.entry_of(hash)] as usize
    }

    #[inline]
    fn entry_of(&self, hash: u64) -> usize {
        // Shifting twice keeps depth 0 from shifting by all 64 bits.
        ((hash >> 1) >> (63 - self.depth)) as usize
    }

    /// Splits the page of `hash` on the next bit. False when the hashes have no more bits to tell entries apart.
    fn split(&mut self, hash: u64, rehash: &impl Fn(u32) -> u64) -> bool {
        let page = self.page_of(hash);
        let depth = u32::from(self.pages[page].depth);
        if depth == MAX_DEPTH {
            return false;
        }
        if depth == self.depth {
            self.directory = self.directory.iter().flat_map(|&entry| [entry, entry]).collect();
            self.depth += 1;
        }
        let upper = self.pages.len();
        let entries = self.pages[page].take();
        let child_depth = self.pages[page].depth + 1;
        self.pages[page].depth = child_depth;
        self.pages.push(Page::new(child_depth));
        // The directory entries of the old page are neighbours: the second half of them now names the new page.
        let span = 1usize << (self.depth - depth);
        let first = self.entry_of(hash) / span * span;
        for entry in &mut self.directory[first + span / 2..first + span] {
            *entry = upper as u32;
        }
        for_each_hashed(&entries, rehash, |id, hash| {
            let to = self.page_of(hash);
            // Half of a page's entries always fit into a page.
            self.pages[to].put(hash, id);
        });
        true
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Page {
    fn new(depth: u8) -> Self {
        Self { slots: Box::new([FREE; SLOTS]), used: 0, live: 0, depth }
    }

    /// False when there is no slot left.
    fn put(&mut self, hash: u64, id: u32) -> bool {
        let mut at = start_of(hash);
        for _ in 0..SLOTS {
            let slot = &mut self.slots[at];
            if *slot >= GONE {
                self.used += u16::from(*slot == FREE);
                self.live += 1;
                *slot = tag_of(hash) | id;
                return true;
            }
            at = (at + 1) % SLOTS;
        }
        false
    }

    fn take(&mut self) -> Box<[u32; SLOTS]> {
        self.used = 0;
        self.live = 0;
        std::mem::replace(&mut self.slots, Box::new([FREE; SLOTS]))
    }

    /// Frees the tombstones.
    fn rebuild(&mut self, rehash: &impl Fn(u32) -> u64) {
        let entries = self.take();
        for_each_hashed(&entries, rehash, |id, hash| {
            self.put(hash, id);
        });
    }
}

/// Hashes every entry again, and then calls `each`. In two passes, since elements lie all over the memory: nothing but
/// loads in the first pass lets many of them be under way at once.
fn for_each_hashed(slots: &[u32; SLOTS], rehash: &impl Fn(u32) -> u64, mut each: impl FnMut(u32, u64)) {
    let mut ids = [0; SLOTS];
    let mut count = 0;
    for &slot in slots {
        ids[count] = slot & ID_MASK;
        count += usize::from(slot < GONE);
    }
    let mut hashes = [0; SLOTS];
    for (hash, &id) in hashes.iter_mut().zip(&ids[..count]) {
        *hash = rehash(id);
    }
    for (&id, &hash) in ids[..count].iter().zip(&hashes) {
        each(id, hash);
    }
}

#[inline]
fn start_of(hash: u64) -> usize {
    hash as usize % SLOTS
}

#[inline]
fn tag_of(hash: u64) -> u32 {
    ((hash >> 10) as u32) << ID_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Keys are `id / 2`, so that each key has its own hash and ids are not hashes.
    fn hash_of(key: u64) -> u64 {
        let x = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn a_hundred_thousand_entries_are_found_removed_and_found_missing() {
        let mut index = Index::new();
        for id in 0..100_000 {
            assert!(index.insert(hash_of(u64::from(id)), id, |id| hash_of(u64::from(id))));
        }
        assert_eq!(index.len(), 100_000);
        assert!(index.depth >= 6, "pages were split");
        for id in 0..100_000 {
            assert_eq!(index.find(hash_of(u64::from(id)), |found| found == id), Some(id));
        }
        assert_eq!(index.find(hash_of(100_001), |found| found == 100_001), None);
        for id in (0..100_000).step_by(2) {
            assert!(index.remove(hash_of(u64::from(id)), id));
            assert!(!index.remove(hash_of(u64::from(id)), id));
        }
        for id in 0..100_000 {
            assert_eq!(index.find(hash_of(u64::from(id)), |found| found == id).is_some(), id % 2 == 1);
        }
    }

    #[test]
    fn churn_does_not_grow_the_index() {
        let mut index = Index::new();
        for round in 0..200u64 {
            for id in 0..500u32 {
                let hash = hash_of(round * 500 + u64::from(id));
                assert!(index.insert(hash, id, |id| hash_of(round * 500 + u64::from(id))));
            }
            for id in 0..500u32 {
                assert!(index.remove(hash_of(round * 500 + u64::from(id)), id));
            }
        }
        assert!(index.is_empty());
        assert_eq!(index.pages.len(), 1);
    }

    #[test]
    fn equal_hashes_fill_one_page_and_are_then_refused() {
        let mut index = Index::new();
        let taken = (0..2000).filter(|&id| index.insert(7, id, |_| 7)).count();
        assert_eq!(taken, SLOTS);
        assert_eq!(index.find(7, |id| id == 1000), Some(1000));
        assert_eq!(index.find(7, |id| id == 1999), None);
    }

    #[test]
    fn an_id_out_of_range_is_refused() {
        let mut index = Index::new();
        assert!(!index.insert(1, MAX_IDS, |_| 1));
        assert!(index.insert(u64::MAX, MAX_IDS - 1, |_| u64::MAX));
        assert_eq!(index.find(u64::MAX, |_| true), Some(MAX_IDS - 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn equals_a_map(steps in proptest::collection::vec((proptest::bool::weighted(0.7), 0u32..3000), 0..5000)) {
            // Few distinct start slots, so that probes are long.
            let rehash = |id: u32| hash_of(u64::from(id)) & !0x3f0;
            let mut index = Index::new();
            let mut model = BTreeMap::new();
            for (add, id) in steps {
                if add {
                    if model.insert(id, ()).is_none() {
                        prop_assert!(index.insert(rehash(id), id, rehash));
                    }
                } else {
                    prop_assert_eq!(index.remove(rehash(id), id), model.remove(&id).is_some());
                }
            }
            prop_assert_eq!(index.len(), model.len());
            for id in 0..3000 {
                prop_assert_eq!(index.find(rehash(id), |found| found == id).is_some(), model.contains_key(&id));
            }
        }
    }
}
