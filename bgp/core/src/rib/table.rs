//! One family's Adj-RIB-In and Loc-RIB: every path of every destination, the best of them, and the order in which
//! the best ones changed.
//!
//! A destination holds its key, its version and its best path in one block of 36 octets (IPv4 unicast); further
//! paths hang in a chain. The best path, if there is one, always stands first, so nothing has to name it.
//!
//! *Never:* allocates per prefix, knows a session, or runs policy: paths arrive with their verdict.

mod decide;
mod dest;
mod rank;
mod review;
mod standing;
mod store;

use foldhash::quality::FixedState;
use smallvec::SmallVec;

use super::attrs::{AttrId, AttrStore};
use super::changes::{ChangeLog, CursorId};
use super::decision::{Candidate, DecisionSettings, Rung};
use super::index::Index;
use super::key::TableKey;
use super::nexthop::NextHopSet;
use super::path::{Path, PathRejected};
use super::source::{SourceId, Sources};
use dest::{BEST, DEAD, Dest, Dests, Overflow};

pub use review::Review;
pub use standing::{Loss, RungValue, Standing};

/// A destination of one table. The number is given out again some time after the destination has lost its last path
/// and every reader of the changes has passed that.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestId(u32);

impl DestId {
    /// The number as an index; dense, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The destination of this index. Any value is safe to ask a table about.
    #[must_use]
    pub const fn from_index(ix: usize) -> Self {
        Self(if ix > u32::MAX as usize { u32::MAX } else { ix as u32 })
    }
}

/// What a table needs to decide.
#[derive(Debug)]
pub struct Context<'a> {
    /// The attribute sets that paths name. The table keeps one reference for each path and set.
    pub attrs: &'a mut AttrStore,
    /// Who the paths came from.
    pub sources: &'a Sources,
}

/// A path as it arrives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Who it came from.
    pub source: SourceId,
    /// Attributes as received.
    pub pre: AttrId,
    /// Attributes after import policy, or why there are none.
    pub post: Result<AttrId, PathRejected>,
    /// Now, in seconds of the embedder's clock.
    pub now: u32,
}

/// What became of an announcement or a withdrawal.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The destination; `None` when a path was to be withdrawn that was not there.
    pub dest: Option<DestId>,
    /// Whether this source already had a path there, and whether that one had been accepted.
    pub had: Option<Accepted>,
    /// What it had there was stale, or counted no more.
    pub was_stale: bool,
    /// The best path, or the set of paths used beside it, is another one now.
    pub changed: bool,
}

/// Whether import policy let a path in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Accepted(pub bool);

/// The table has no number left for one more destination: it holds [`super::index::MAX_IDS`] of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table is full")]
pub struct TableFull;

/// The best path of a destination.
#[derive(Copy, Clone, Debug)]
pub struct Best<'a> {
    /// The path.
    pub path: &'a Path,
    /// Its attributes after import policy.
    pub attrs: AttrId,
    /// What decided.
    pub rung: Rung,
}

/// One family's routes. See the module's text.
#[derive(Debug)]
pub struct Table<K: TableKey> {
    dests: Dests<K>,
    more: Overflow,
    index: Index,
    hasher: FixedState,
    log: ChangeLog,
    settings: DecisionSettings,
    /// Several paths of a destination have been used at once, or may be: what was decided then stands until a review comes by.
    several: bool,
    /// Destinations with at least one path.
    live: usize,
    /// Numbers that the log gives back; empty between calls, kept for its memory.
    freed: Vec<u32>,
    /// How many readers want to know of every path, not of the best ones only.
    watched: u32,
}

/// How many entries of the log one call looks at for tombstones to free.
const TIDY_AT_ONCE: usize = 64;

/// Candidates of one destination with their place in its chain.
type Candidates = SmallVec<[Candidate; 4]>;

impl<K: TableKey> Table<K> {
    /// An empty table. `seed` must differ from process to process: neighbours choose the keys that are hashed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            dests: Dests::new(),
            more: Overflow::default(),
            index: Index::new(),
            hasher: FixedState::with_seed(seed),
            log: ChangeLog::default(),
            settings: DecisionSettings::RFC4271,
            several: false,
            live: 0,
            freed: Vec::new(),
            watched: 0,
        }
    }

    /// A path has arrived. It replaces what the same source sent for the same key before.
    ///
    /// # Errors
    /// [`TableFull`]; nothing has changed then.
    pub fn announce(&mut self, key: K, offer: Offer, cx: &mut Context<'_>) -> Result<Outcome, TableFull> {
        self.tidy();
        let hash = self.hash(key);
        let id = match self.lookup(key, hash) {
            Some(id) => id,
            None => self.add(key, hash)?,
        };
        let epoch = cx.sources.epoch(offer.source, K::FAMILY);
        Ok(self.put(id, offer, epoch, cx))
    }

    /// A path that is there is looked at again: it stays as old as it is, so that what is stale stays stale. `None` if
    /// there is no such path that counts.
    pub fn announce_at(&mut self, id: DestId, offer: Offer, cx: &mut Context<'_>) -> Option<Outcome> {
        let epoch = self.paths(id).find(|path| path.source == offer.source)?.epoch;
        let counts = cx.sources.is_valid(offer.source, K::FAMILY, epoch);
        counts.then(|| self.put(id.0, offer, epoch, cx))
    }

    /// A source has no path for this key any more.
    pub fn withdraw(&mut self, key: K, source: SourceId, cx: &mut Context<'_>) -> Outcome {
        self.tidy();
        match self.lookup(key, self.hash(key)) {
            Some(id) => self.take(id, source, cx),
            None => Outcome { dest: None, had: None, was_stale: false, changed: false },
        }
    }

    /// Fetches what [`Table::announce`] and [`Table::withdraw`] will look at for these keys, all at once instead of one
    /// after the other. Changes nothing but the time they take: worth it for the prefixes of an UPDATE, some 16 at a
    /// time.
    pub fn prefetch(&self, keys: impl IntoIterator<Item = K>) {
        let hashes: SmallVec<[u64; 16]> = keys.into_iter().map(|key| self.hash(key)).collect();
        let slots = hashes.iter().fold(0, |all, &hash| all ^ self.index.touch(hash));
        // The first entry whose few bits of the hash agree is the right one nearly always.
        let likely = hashes.iter().filter_map(|&hash| self.index.find(hash, |_| true));
        let states = likely.fold(0, |all, id| all ^ self.dests.pages[id as usize].state);
        std::hint::black_box((slots, states));
    }

    /// The destination of this key, if it has paths or readers have yet to learn that it has none.
    #[must_use]
    pub fn find(&self, key: K) -> Option<DestId> {
        self.lookup(key, self.hash(key)).map(DestId)
    }

    /// The key of a destination. A dead one has the key it had last.
    ///
    /// # Panics
    /// When `id` is not below [`Table::len_ids`].
    #[inline]
    #[must_use]
    pub fn key(&self, id: DestId) -> K {
        self.dests.key(id.0)
    }

    /// The best path; `None` if there is none.
    #[inline]
    #[must_use]
    pub fn best(&self, id: DestId) -> Option<Best<'_>> {
        let dest = self.dests.pages.get(id.index())?;
        let rung = *Rung::ALL.get(usize::from(dest.state.checked_sub(BEST)?))?;
        Some(Best { path: &dest.first, attrs: dest.first.post?, rung })
    }

    /// All paths, the best one first. Nothing for a dead destination.
    pub fn paths(&self, id: DestId) -> impl Iterator<Item = &Path> {
        let first =
            self.dests.pages.get(id.index()).filter(|dest| dest.state != DEAD).map(|dest| &dest.first);
        let first = first.filter(|path| path.pre.is_some());
        std::iter::successors(first, |path| path.next.checked_sub(1).map(|at| &self.more.paths[at as usize]))
    }

    /// The next hops of the best path and of those used beside it, with their weights. Empty without a best path, and for one
    /// of this speaker's own.
    pub fn hops(&self, id: DestId, attrs: &mut AttrStore) -> NextHopSet {
        let Some(best) = self.best(id) else { return NextHopSet::default() };
        if best.path.source.is_local() {
            return NextHopSet::default();
        }
        if best.path.next == 0 || !self.several {
            return attrs.next_hop_set(best.attrs);
        }
        let used = self.paths(id).filter(|path| path.is_used()).filter_map(|path| path.post);
        let used: SmallVec<[AttrId; 8]> = used.collect();
        match used.as_slice() {
            [alone] => attrs.next_hop_set(*alone),
            several => attrs.next_hop_set_of(several),
        }
    }

    /// The sequence number of the latest change of a destination; 0 if it has never had a best path.
    #[must_use]
    pub fn dest_version(&self, id: DestId) -> u64 {
        self.dests.pages.get(id.index()).map_or(0, Dest::version)
    }

    /// Whether the number is in use: the destination has paths, or is a tombstone.
    #[must_use]
    pub fn is_live(&self, id: DestId) -> bool {
        self.dests.pages.get(id.index()).is_some_and(|dest| dest.state != DEAD)
    }

    /// Every number in use is below this.
    #[must_use]
    pub fn len_ids(&self) -> usize {
        self.dests.pages.len()
    }

    /// How many destinations have paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether no destination has a path.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Heap octets of destinations, paths, index and log.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.dests.pages.heap_bytes()
            + self.more.paths.heap_bytes()
            + self.index.heap_bytes()
            + self.log.heap_bytes()
    }
}

/// Readers of changes.
impl<K: TableKey> Table<K> {
    /// The sequence number of the latest change; 0 before the first one.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.log.last_seq()
    }

    /// Adds a reader of everything that changes from now on.
    pub fn add_cursor(&mut self) -> CursorId {
        self.log.add_cursor()
    }

    /// Adds a reader at the place of another one.
    pub fn fork_cursor(&mut self, of: CursorId) -> CursorId {
        self.log.fork_cursor(of)
    }

    /// The last sequence number that a reader has passed.
    #[must_use]
    pub fn cursor_seq(&self, cursor: CursorId) -> u64 {
        self.log.cursor_seq(cursor)
    }

    /// Moves a reader forward to `seq`, unread; never back.
    pub fn advance_cursor(&mut self, cursor: CursorId, seq: u64) {
        self.log.advance_cursor(cursor, seq, &self.dests);
        self.tidy();
    }

    /// Whether a reader has changes before it; all of them may turn out to be superseded.
    #[must_use]
    pub fn pending(&self, cursor: CursorId) -> bool {
        self.log.pending(cursor)
    }

    /// The next destination that changed, with the number of its latest change. Each destination is reported once
    /// per reader and state, whatever the number of changes in between. One that has lost all its paths keeps its
    /// number and key until the next call that changes this table or moves any of its readers.
    pub fn next_change(&mut self, cursor: CursorId) -> Option<(u64, DestId)> {
        let found = self.log.next(cursor, &self.dests);
        self.tidy();
        found.map(|(seq, id)| (seq, DestId(id)))
    }

    /// Removes a reader.
    pub fn remove_cursor(&mut self, cursor: CursorId) {
        self.log.remove_cursor(cursor, &self.dests);
        self.tidy();
    }
}

#[cfg(test)]
mod tests;
