//! How destinations and their further paths are stored.

use foldhash::quality::FixedState;

use super::TableKey;
use crate::rib::changes::Versions;
use crate::rib::pages::Pages;
use crate::rib::path::Path;

/// One destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Dest<B> {
    pub(super) bits: B,
    pub(super) len: u8,
    pub(super) state: u8,
    /// Bits 32 to 47 of the version.
    version_high: u16,
    version_low: u32,
    /// The best path, if there is one; any path otherwise. `pre` is absent if there is no path.
    pub(super) first: Path,
}

const _: () = assert!(size_of::<Dest<u32>>() == 36);

/// `Dest::state`: the number is not in use; `first.next` is the next such number plus one.
pub(super) const DEAD: u8 = 0;
/// There is no best path; without any path this is a tombstone.
pub(super) const NO_BEST: u8 = 1;
/// There is a best path, decided by `Rung::ALL[state - BEST]`.
pub(super) const BEST: u8 = 2;

/// All destinations of a table.
#[derive(Debug)]
pub(super) struct Dests<K: TableKey> {
    pub(super) pages: Pages<Dest<K::Bits>, 1024>,
    /// The first dead number plus one, or 0.
    free: u32,
    /// Destinations without a path that are not dead.
    pub(super) tombstones: usize,
}

/// The place of the first path in the chain of a destination. The places of the others are their numbers in the
/// overflow plus one.
pub(super) const FIRST: u32 = 0;

/// Paths that are not the first of their destination.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    pub(super) paths: Pages<Path, 1024>,
    free: u32,
}

impl<B> Dest<B> {
    #[inline]
    pub(super) fn version(&self) -> u64 {
        u64::from(self.version_high) << 32 | u64::from(self.version_low)
    }

    #[inline]
    pub(super) fn set_version(&mut self, seq: u64) {
        self.version_high = (seq >> 32) as u16;
        self.version_low = seq as u32;
    }
}

impl<K: TableKey> Dests<K> {
    pub(super) fn new() -> Self {
        Self { pages: Pages::new(), free: 0, tombstones: 0 }
    }

    #[inline]
    pub(super) fn key(&self, id: u32) -> K {
        let dest = &self.pages[id as usize];
        K::join(dest.bits, dest.len)
    }

    #[inline]
    pub(super) fn hash(&self, id: u32, hasher: &FixedState) -> u64 {
        let dest = &self.pages[id as usize];
        K::hash_parts(dest.bits, dest.len, hasher)
    }

    /// A tombstone of this key, to be filled at once.
    pub(super) fn add(&mut self, key: K) -> u32 {
        let (bits, len) = key.split();
        let dest = Dest { bits, len, state: NO_BEST, ..Dest::default() };
        self.tombstones += 1;
        match self.free.checked_sub(1) {
            Some(id) => {
                self.free = self.pages[id as usize].first.next;
                self.pages[id as usize] = dest;
                id
            }
            None => self.pages.push(dest) as u32,
        }
    }

    /// Makes the number of a tombstone dead.
    pub(super) fn give_back(&mut self, id: u32) {
        let dest = &mut self.pages[id as usize];
        dest.state = DEAD;
        self.tombstones -= 1;
        dest.first = Path { next: self.free, ..Path::default() };
        self.free = id + 1;
    }
}

impl<K: TableKey> Versions for Dests<K> {
    #[inline]
    fn version(&self, id: u32) -> u64 {
        self.pages[id as usize].version()
    }

    fn is_tombstone(&self, id: u32) -> bool {
        let dest = &self.pages[id as usize];
        dest.state == NO_BEST && dest.first.pre.is_none()
    }

    fn any_tombstone(&self) -> bool {
        self.tombstones > 0
    }
}

impl Overflow {
    /// Stores a path and gives its place in a chain.
    pub(super) fn push(&mut self, path: Path) -> u32 {
        match self.free.checked_sub(1) {
            Some(at) => {
                self.free = self.paths[at as usize].next;
                self.paths[at as usize] = path;
                at + 1
            }
            None => self.paths.push(path) as u32 + 1,
        }
    }

    /// Frees the path at a place in a chain.
    pub(super) fn give_back(&mut self, place: u32) {
        self.paths[place as usize - 1] = Path { next: self.free, ..Path::default() };
        self.free = place;
    }
}
