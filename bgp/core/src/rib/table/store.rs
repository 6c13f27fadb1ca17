//! How paths come into a table and leave it.

use super::dest::{FIRST, NO_BEST};
use super::{Accepted, Context, DestId, Offer, Outcome, TIDY_AT_ONCE, Table, TableFull, TableKey};
use crate::rib::attrs::{AttrId, AttrStore};
use crate::rib::path::{Path, USED};
use crate::rib::source::SourceId;

impl<K: TableKey> Table<K> {
    #[inline]
    pub(super) fn hash(&self, key: K) -> u64 {
        let (bits, len) = key.split();
        K::hash_parts(bits, len, &self.hasher)
    }

    #[inline]
    pub(super) fn lookup(&self, key: K, hash: u64) -> Option<u32> {
        let (bits, len) = key.split();
        self.index.find(hash, |at| {
            let dest = &self.dests.pages[at as usize];
            dest.bits == bits && dest.len == len
        })
    }

    /// A destination for a key that has none: a tombstone, to be filled at once.
    pub(super) fn add(&mut self, key: K, hash: u64) -> Result<u32, TableFull> {
        let id = self.dests.add(key);
        let (dests, hasher) = (&self.dests, &self.hasher);
        if !self.index.insert(hash, id, |at| dests.hash(at, hasher)) {
            self.dests.give_back(id);
            return Err(TableFull);
        }
        Ok(id)
    }

    /// Stores a path and decides.
    pub(super) fn put(&mut self, id: u32, offer: Offer, epoch: u16, cx: &mut Context<'_>) -> Outcome {
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
            let equal = old.flags & USED;
            new.flags |= equal;
            new.next = old.next;
            if *old == new {
                return Outcome { dest: Some(DestId(id)), had, was_stale, changed: false };
            }
            // What was of no account may be told again in the same words.
            disturbed = equal != 0 && !leads_the_same_way(old.post, new.post, cx)
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
    pub(super) fn take(&mut self, id: u32, source: SourceId, cx: &mut Context<'_>) -> Outcome {
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
            let changed = self.decide(id, before, watched || old.flags & USED != 0, cx);
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
    pub(super) fn path_mut(&mut self, id: u32, at: u32) -> &mut Path {
        match at {
            FIRST => &mut self.dests.pages[id as usize].first,
            at => &mut self.more.paths[at as usize - 1],
        }
    }

    /// Gives a destination the next version.
    #[inline]
    pub(super) fn stamp(&mut self, id: u32) {
        let dest = &mut self.dests.pages[id as usize];
        let old = dest.version();
        dest.set_version(self.log.next_seq());
        self.log.append(id, old, &self.dests);
    }

    /// Frees some of the tombstones that every reader has passed. Every call on a table that adds to them does this, so
    /// that they go faster than they come, and none takes long.
    #[inline]
    pub(super) fn tidy(&mut self) {
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

/// Whether two paths send packets the same way, in the same share.
fn leads_the_same_way(one: Option<AttrId>, other: Option<AttrId>, cx: &Context<'_>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one == other || cx.attrs.leads_the_same_way(one, other),
        (one, other) => one == other,
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
