//! One family's Adj-RIB-In and Loc-RIB: every path of every destination, the best of them, and the order in which
//! the best ones changed.
//!
//! A destination holds its key, its version and its best path in one block of 36 octets (IPv4 unicast); further
//! paths hang in a chain. The best path, if there is one, always stands first, so nothing has to name it.
//!
//! *Never:* allocates per prefix, knows a session, or runs policy: paths arrive with their verdict.

mod dest;
mod rank;
mod review;

use std::net::{IpAddr, Ipv4Addr};

use bgp_wire::RouterId;
use bgp_wire::attr::FactFlags;
use foldhash::quality::FixedState;
use smallvec::SmallVec;

use super::attrs::{AttrId, AttrStore};
use super::changes::{ChangeLog, CursorId};
use super::decision::{self, Candidate, DEFAULT_LOCAL_PREF, Rung};
use super::index::Index;
use super::key::TableKey;
use super::nexthop::{NextHopSet, UNREACHABLE};
use super::path::{EQUAL, Path, PathRejected};
use super::source::{SourceId, Sources};
use dest::{BEST, DEAD, Dest, Dests, FIRST, NO_BEST, Overflow};

pub use rank::rank;
pub use review::Review;

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
    /// The best path, or the set of paths equal to it, is another one now.
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

    /// The next hops of the best path and of those equal to it, `max` at the most. Empty without a best path, and for
    /// one of this speaker's own.
    pub fn hops(&self, id: DestId, max: usize, attrs: &mut AttrStore) -> NextHopSet {
        let Some(best) = self.best(id) else { return NextHopSet::default() };
        if best.path.source.is_local() {
            return NextHopSet::default();
        }
        if best.path.next == 0 || max <= 1 {
            return attrs.next_hop_set(best.attrs);
        }
        let mut hops: SmallVec<[_; 8]> = SmallVec::new();
        for path in self.paths(id).filter(|path| path.is_equal_to_best()) {
            if let Some(hop) = path.post.and_then(|post| attrs.set(post).next_hop())
                && !hops.contains(&hop)
            {
                hops.push(hop);
            }
        }
        // Which ones are left out must not depend on the order of arrival.
        if let Some(others) = hops.get_mut(1..) {
            others.sort_unstable();
        }
        hops.truncate(max);
        if hops.len() == 1 {
            return attrs.next_hop_set(best.attrs);
        }
        attrs.next_hops_mut().set(hops)
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

/// The parts.
impl<K: TableKey> Table<K> {
    #[inline]
    fn hash(&self, key: K) -> u64 {
        let (bits, len) = key.split();
        K::hash_parts(bits, len, &self.hasher)
    }

    #[inline]
    fn lookup(&self, key: K, hash: u64) -> Option<u32> {
        let (bits, len) = key.split();
        self.index.find(hash, |at| {
            let dest = &self.dests.pages[at as usize];
            dest.bits == bits && dest.len == len
        })
    }

    /// A destination for a key that has none: a tombstone, to be filled at once.
    fn add(&mut self, key: K, hash: u64) -> Result<u32, TableFull> {
        let id = self.dests.add(key);
        let (dests, hasher) = (&self.dests, &self.hasher);
        if !self.index.insert(hash, id, |at| dests.hash(at, hasher)) {
            self.dests.give_back(id);
            return Err(TableFull);
        }
        Ok(id)
    }

    /// Stores a path and decides.
    fn put(&mut self, id: u32, offer: Offer, epoch: u16, cx: &mut Context<'_>) -> Outcome {
        let mut new = Path {
            source: offer.source,
            pre: Some(offer.pre),
            post: offer.post.ok(),
            since: offer.now,
            flags: Path::verdict(offer.post),
            epoch,
            next: 0,
        };
        let before = self.best_of(id);
        let dest = &mut self.dests.pages[id as usize];
        // Somebody wants to know of it, whether it touches the best path or not.
        let watched = self.watched > 0;
        let mut disturbed = watched && offer.post.is_ok();
        let mut had = None;
        let mut was_stale = false;
        if dest.first.pre.is_none() {
            dest.first = new;
            hold(&new, cx.attrs);
            self.dests.tombstones -= 1;
            self.live += 1;
        } else if let Some((_, at)) = self.position(id, offer.source) {
            let old = self.path_mut(id, at);
            was_stale = old.epoch != epoch && cx.sources.is_stale(old, K::FAMILY);
            had = Some(Accepted(old.post.is_some()));
            if old.pre == new.pre {
                new.since = old.since;
            }
            let equal = old.flags & EQUAL;
            new.flags |= equal;
            new.next = old.next;
            if *old == new {
                return Outcome { dest: Some(DestId(id)), had, was_stale, changed: false };
            }
            // What was of no account may be told again in the same words.
            disturbed = equal != 0 && old.post != new.post
                || watched && (old.post, old.epoch) != (new.post, new.epoch);
            let old = std::mem::replace(old, new);
            // In this order: a set that stays must not be freed in between.
            hold(&new, cx.attrs);
            drop_path(&old, cx.attrs);
        } else {
            let first = &mut self.dests.pages[id as usize].first;
            new.next = first.next;
            first.next = self.more.push(new);
            hold(&new, cx.attrs);
        }
        let changed = self.decide(id, before, disturbed, cx);
        Outcome { dest: Some(DestId(id)), had, was_stale, changed }
    }

    /// Removes the path of a source and decides.
    fn take(&mut self, id: u32, source: SourceId, cx: &mut Context<'_>) -> Outcome {
        let Some((previous, at)) = self.position(id, source) else {
            return Outcome { dest: Some(DestId(id)), had: None, was_stale: false, changed: false };
        };
        let before = self.best_of(id);
        let old = *self.path_mut(id, at);
        if let Some(previous) = previous {
            self.path_mut(id, previous).next = old.next;
            self.more.give_back(at);
        } else {
            let second = old.next.checked_sub(1);
            self.dests.pages[id as usize].first =
                second.map_or_else(Path::default, |at| self.more.paths[at as usize]);
            if let Some(at) = second {
                self.more.give_back(at + 1);
            }
        }
        drop_path(&old, cx.attrs);
        let was_stale = cx.sources.is_stale(&old, K::FAMILY);
        let had = Some(Accepted(old.post.is_some()));
        let dest = Some(DestId(id));
        if self.dests.pages[id as usize].first.pre.is_some() {
            let watched = self.watched > 0 && old.post.is_some();
            let changed = self.decide(id, before, watched || old.flags & EQUAL != 0, cx);
            return Outcome { dest, had, was_stale, changed };
        }
        self.live -= 1;
        self.dests.tombstones += 1;
        self.dests.pages[id as usize].state = NO_BEST;
        if before.is_some() {
            self.stamp(id);
        }
        // Readers that do not know its last state yet keep it; then the log gives it back.
        if !self.log.holds(self.dests.pages[id as usize].version()) {
            self.free(id);
        }
        Outcome { dest, had, was_stale, changed: before.is_some() }
    }

    /// Finds the best path and puts it first. `before` is the best one before what happened, and `disturbed` says that
    /// a path equal to the best one has gone or changed. True if readers have to know.
    fn decide(
        &mut self,
        id: u32,
        before: Option<(SourceId, AttrId)>,
        disturbed: bool,
        cx: &Context<'_>,
    ) -> bool {
        let dest = &mut self.dests.pages[id as usize];
        let mut changed = disturbed;
        if dest.first.next == 0 {
            let usable = is_usable::<K>(&dest.first, cx);
            dest.first.flags = dest.first.flags & !EQUAL | if usable { EQUAL } else { 0 };
            dest.state = if usable { BEST } else { NO_BEST };
        } else {
            changed |= self.decide_among(id, cx);
        }
        changed |= before != self.best_of(id);
        if changed {
            self.stamp(id);
        }
        changed
    }

    /// The same for several paths. True if another set of paths is equal to the best one now.
    fn decide_among(&mut self, id: u32, cx: &Context<'_>) -> bool {
        let mut chain: SmallVec<[u32; 8]> = SmallVec::new();
        let mut candidates = Candidates::new();
        // Where in the chain each candidate stands.
        let mut places: SmallVec<[u32; 8]> = SmallVec::new();
        let mut at = FIRST;
        loop {
            let path = self.path_mut(id, at);
            if is_usable::<K>(path, cx)
                && let Some(post) = path.post
            {
                candidates.push(candidate(path.source, post, cx));
                places.push(chain.len() as u32);
            }
            chain.push(at);
            match path.next {
                0 => break,
                next => at = next,
            }
        }
        let decision = decision::decide(&candidates);
        let mut equal = decision.iter().flat_map(|d| &d.equal).map(|&c| places[c as usize]).peekable();
        let mut changed = false;
        for (place, &at) in chain.iter().enumerate() {
            let path = self.path_mut(id, at);
            let flag = if equal.next_if_eq(&(place as u32)).is_some() { EQUAL } else { 0 };
            changed |= path.flags & EQUAL != flag;
            path.flags = path.flags & !EQUAL | flag;
        }
        let Some(decision) = decision else {
            self.dests.pages[id as usize].state = NO_BEST;
            return changed;
        };
        self.dests.pages[id as usize].state = BEST + decision.rung as u8;
        let best = chain[places[decision.best] as usize];
        if best != FIRST {
            let first = &mut self.dests.pages[id as usize].first;
            let other = &mut self.more.paths[best as usize - 1];
            std::mem::swap(first, other);
            std::mem::swap(&mut first.next, &mut other.next);
        }
        changed
    }

    fn best_of(&self, id: u32) -> Option<(SourceId, AttrId)> {
        let dest = &self.dests.pages[id as usize];
        if dest.state < BEST {
            return None;
        }
        Some((dest.first.source, dest.first.post?))
    }

    /// Where the path of a source stands, and what stands before it.
    fn position(&self, id: u32, source: SourceId) -> Option<(Option<u32>, u32)> {
        let first = &self.dests.pages[id as usize].first;
        first.pre?;
        if first.source == source {
            return Some((None, FIRST));
        }
        let (mut previous, mut at) = (FIRST, first.next);
        while at != 0 {
            let path = &self.more.paths[at as usize - 1];
            if path.source == source {
                return Some((Some(previous), at));
            }
            (previous, at) = (at, path.next);
        }
        None
    }

    /// The path at a place in the chain.
    fn path_mut(&mut self, id: u32, at: u32) -> &mut Path {
        match at {
            FIRST => &mut self.dests.pages[id as usize].first,
            at => &mut self.more.paths[at as usize - 1],
        }
    }

    /// Gives a destination the next version.
    #[inline]
    fn stamp(&mut self, id: u32) {
        let dest = &mut self.dests.pages[id as usize];
        let old = dest.version();
        dest.set_version(self.log.next_seq());
        self.log.append(id, old, &self.dests);
    }

    /// Frees some of the tombstones that every reader has passed. Every call on a table that adds to them does this, so
    /// that they go faster than they come, and none takes long.
    #[inline]
    fn tidy(&mut self) {
        if !self.log.is_tidy() {
            self.tidy_some();
        }
    }

    #[cold]
    fn tidy_some(&mut self) {
        let mut freed = std::mem::take(&mut self.freed);
        self.log.search_dropped(TIDY_AT_ONCE, &self.dests, &mut freed);
        for id in freed.drain(..) {
            self.free(id);
        }
        self.freed = freed;
    }

    fn free(&mut self, id: u32) {
        self.index.remove(self.dests.hash(id, &self.hasher), id);
        self.dests.give_back(id);
    }
}

#[inline]
fn hold(path: &Path, attrs: &mut AttrStore) {
    for id in [path.pre, path.post.filter(|_| path.post != path.pre)].into_iter().flatten() {
        attrs.retain(id, 1);
    }
}

#[inline]
fn drop_path(path: &Path, attrs: &mut AttrStore) {
    for id in [path.pre, path.post.filter(|_| path.post != path.pre)].into_iter().flatten() {
        attrs.release(id, 1);
    }
}

/// Whether a path may take part in the decision (RFC 4271 section 9.1.2).
#[inline]
fn is_usable<K: TableKey>(path: &Path, cx: &Context<'_>) -> bool {
    path.post.is_some_and(|post| cx.attrs.cost(post) != UNREACHABLE)
        && cx.sources.is_valid(path.source, K::FAMILY, path.epoch)
}

fn candidate(source: SourceId, post: AttrId, cx: &Context<'_>) -> Candidate {
    let facts = cx.attrs.set(post).facts();
    let peer = cx.sources.facts(source);
    Candidate {
        local: source.is_local(),
        long_lived_stale: facts.flags.has(FactFlags::LLGR_STALE),
        local_pref: facts.local_pref.unwrap_or(DEFAULT_LOCAL_PREF),
        as_path_len: u32::from(facts.as_path_len),
        origin: facts.origin as u8,
        med: facts.med.unwrap_or(0),
        neighbor_as: facts.neighbor_as,
        external: peer.is_some_and(|peer| peer.external),
        cost: cx.attrs.cost(post),
        router_id: facts.originator.or(peer.map(|peer| peer.router_id)).unwrap_or(RouterId(0)),
        cluster_len: facts.cluster_len,
        address: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address),
        path_id: cx.sources.path_id(source),
    }
}

#[cfg(test)]
mod tests;
