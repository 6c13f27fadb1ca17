//! The version log of one table: which destination changed, in what order, for readers that each go at their own pace.
//!
//! Every change of a destination gets the next sequence number; the destination remembers only its latest one. A
//! reader is a cursor. An entry whose destination has changed again since is stale and is skipped, so a late reader
//! gets fewer and newer answers. Superseding an entry is counted in its chunk, a chunk that is half stale is
//! compacted, and what every cursor has passed is dropped: the log is bounded by the number of destinations, however
//! slow a reader is. Without readers nothing is stored at all.
//!
//! Dropping an entry is also the moment when a tombstone (a destination without paths, kept so that readers can still
//! learn that it is gone) may be freed: the log hands such ids back to the table, a few at a time, since a reader that
//! goes may leave any number of them behind.
//!
//! *Never:* stores what changed, only that something did; the reader looks at the destination as it is now.

use std::collections::{BTreeMap, VecDeque};

/// Sequence numbers covered by one chunk: the unit of compaction and of dropping.
const CHUNK: u64 = 1024;
/// A chunk is compacted when half of it is stale, but not for fewer entries than this.
const WORTH_COMPACTING: usize = 16;

/// One reader of a table's changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CursorId(u32);

/// What the log must know about a destination.
pub(super) trait Versions {
    /// The sequence number of its latest change, 0 if there was none.
    fn version(&self, id: u32) -> u64;
    /// Whether it has no paths and waits for the readers only.
    fn is_tombstone(&self, id: u32) -> bool;
    /// Whether there are tombstones at all.
    fn any_tombstone(&self) -> bool;
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct ChangeLog {
    /// The latest sequence number given out.
    last: u64,
    /// No entry up to and including this number is stored any more.
    floor: u64,
    /// Full chunks, by sequence number / CHUNK; none is without a live entry.
    closed: BTreeMap<u64, Chunk>,
    /// The chunk of number `last / CHUNK`.
    open: Chunk,
    /// Chunks that every reader has passed, with their first numbers: they are yet to be searched for tombstones.
    dropped: VecDeque<(u64, Vec<Entry>)>,
    cursors: Vec<Option<Cursor>>,
    readers: usize,
}

#[derive(Debug, Default)]
struct Chunk {
    entries: Vec<Entry>,
    /// Entries that are not stale.
    live: u32,
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    /// Sequence number within the chunk.
    offset: u32,
    id: u32,
}

#[derive(Copy, Clone, Debug)]
struct Cursor {
    /// Every change up to and including this one has been read.
    passed: u64,
    /// Where in its chunk the next entry probably is.
    hint: u32,
}

impl ChangeLog {
    /// The latest sequence number given out; 0 before the first change.
    pub(super) fn last_seq(&self) -> u64 {
        self.last
    }

    /// The sequence number that the next [`ChangeLog::append`] stores.
    pub(super) fn next_seq(&self) -> u64 {
        self.last + 1
    }

    /// Whether an entry of this sequence number may still be stored.
    pub(super) fn holds(&self, seq: u64) -> bool {
        seq > self.floor
    }

    /// Records a change of `id`, whose version was `old` and is already [`ChangeLog::next_seq`].
    pub(super) fn append(&mut self, id: u32, old: u64, dests: &impl Versions) {
        if old > self.floor {
            self.supersede(old, dests);
        }
        self.last += 1;
        let seq = self.last;
        if self.readers == 0 {
            self.floor = seq;
            return;
        }
        if seq.is_multiple_of(CHUNK) {
            self.close(seq / CHUNK - 1, dests);
        }
        self.open.entries.push(Entry { offset: (seq % CHUNK) as u32, id });
        self.open.live += 1;
    }

    /// Adds a reader of everything that changes from now on.
    pub(super) fn add_cursor(&mut self) -> CursorId {
        self.insert(Cursor { passed: self.last, hint: u32::MAX })
    }

    /// Adds a reader at the place of another one; at the end if there is no such reader.
    pub(super) fn fork_cursor(&mut self, of: CursorId) -> CursorId {
        match self.cursor(of) {
            Some(cursor) => self.insert(cursor),
            None => self.add_cursor(),
        }
    }

    /// The last sequence number that the reader has passed; the latest of all for an unknown reader.
    pub(super) fn cursor_seq(&self, id: CursorId) -> u64 {
        self.cursor(id).map_or(self.last, |cursor| cursor.passed)
    }

    /// Whether the reader has changes before it (all of which may turn out to be stale).
    pub(super) fn pending(&self, id: CursorId) -> bool {
        self.cursor_seq(id) < self.last
    }

    /// Moves the reader forward to `seq`, unread; never back.
    pub(super) fn advance_cursor(&mut self, id: CursorId, seq: u64, dests: &impl Versions) {
        let last = self.last;
        if let Some(Some(cursor)) = self.cursors.get_mut(id.0 as usize) {
            cursor.passed = cursor.passed.max(seq.min(last));
            cursor.hint = u32::MAX;
            self.trim(self.last, dests);
        }
    }

    /// Removes a reader.
    pub(super) fn remove_cursor(&mut self, id: CursorId, dests: &impl Versions) {
        if let Some(slot @ Some(_)) = self.cursors.get_mut(id.0 as usize) {
            *slot = None;
            self.readers -= 1;
            self.trim(self.last, dests);
        }
    }

    /// The next change that is still the latest of its destination.
    pub(super) fn next(&mut self, id: CursorId, dests: &impl Versions) -> Option<(u64, u32)> {
        let mut cursor = self.cursor(id)?;
        if cursor.passed >= self.last {
            if self.floor < self.last {
                self.trim(self.last, dests);
            }
            return None;
        }
        let chunk_before = (cursor.passed + 1) / CHUNK;
        let found = self.seek(&mut cursor, dests);
        let left_chunk = (cursor.passed + 1) / CHUNK != chunk_before;
        if let Some(slot) = self.cursors.get_mut(id.0 as usize) {
            *slot = Some(cursor);
        }
        match found {
            // The entry found must survive this call, since the caller is yet to look at its destination.
            Some((seq, _)) if left_chunk => self.trim(seq - 1, dests),
            Some(_) => {}
            None => self.trim(self.last, dests),
        }
        found
    }

    /// Whether nothing is left for [`ChangeLog::search_dropped`].
    #[inline]
    pub(super) fn is_tidy(&self) -> bool {
        self.dropped.is_empty()
    }

    /// Looks at up to `budget` entries that every reader has passed, and appends to `free` the tombstones among them.
    pub(super) fn search_dropped(&mut self, budget: usize, dests: &impl Versions, free: &mut Vec<u32>) {
        if !dests.any_tombstone() {
            self.dropped.clear();
        }
        for _ in 0..budget {
            let Some((first, entries)) = self.dropped.front_mut() else { break };
            match entries.pop() {
                Some(Entry { offset, id }) => {
                    if dests.version(id) == *first + u64::from(offset) && dests.is_tombstone(id) {
                        free.push(id);
                    }
                }
                None => {
                    self.dropped.pop_front();
                }
            }
        }
    }

    /// How many entries are stored, stale ones included.
    #[cfg(test)]
    pub(super) fn stored(&self) -> usize {
        self.closed.values().map(|chunk| chunk.entries.len()).sum::<usize>() + self.open.entries.len()
    }

    /// Heap octets in use.
    pub(super) fn heap_bytes(&self) -> usize {
        let entries = self.closed.values().map(|chunk| chunk.entries.capacity()).sum::<usize>();
        (entries + self.open.entries.capacity()) * size_of::<Entry>()
    }

    fn cursor(&self, id: CursorId) -> Option<Cursor> {
        self.cursors.get(id.0 as usize).copied().flatten()
    }

    fn insert(&mut self, cursor: Cursor) -> CursorId {
        self.readers += 1;
        let slot = self.cursors.iter().position(Option::is_none).unwrap_or(self.cursors.len());
        if slot == self.cursors.len() {
            self.cursors.push(None);
        }
        self.cursors[slot] = Some(cursor);
        CursorId(slot as u32)
    }

    /// Moves the cursor past the next live entry, or to the end.
    fn seek(&self, cursor: &mut Cursor, dests: &impl Versions) -> Option<(u64, u32)> {
        while cursor.passed < self.last {
            let wanted = (cursor.passed + 1) / CHUNK;
            let (number, chunk) = match self.closed.range(wanted..).next() {
                Some((&number, chunk)) => (number, chunk),
                None => (self.last / CHUNK, &self.open),
            };
            let first = number * CHUNK;
            let from = chunk.position(cursor, first);
            for (at, entry) in chunk.entries.iter().enumerate().skip(from) {
                let seq = first + u64::from(entry.offset);
                if dests.version(entry.id) == seq {
                    *cursor = Cursor { passed: seq, hint: at as u32 + 1 };
                    return Some((seq, entry.id));
                }
            }
            *cursor = Cursor { passed: (first + CHUNK - 1).min(self.last), hint: 0 };
        }
        None
    }

    /// Files the open chunk under `number` and starts a new one.
    fn close(&mut self, number: u64, dests: &impl Versions) {
        if self.open.live == 0 {
            self.open.entries.clear();
            return;
        }
        let mut chunk = std::mem::take(&mut self.open);
        if chunk.is_worth_compacting() {
            chunk.compact(number * CHUNK, dests);
        }
        self.closed.insert(number, chunk);
        self.open.entries.reserve(CHUNK as usize);
    }

    /// Counts the entry `seq` as stale.
    fn supersede(&mut self, seq: u64, dests: &impl Versions) {
        let number = seq / CHUNK;
        if number == self.last / CHUNK {
            self.open.live -= 1;
            return;
        }
        let Some(chunk) = self.closed.get_mut(&number) else { return };
        chunk.live -= 1;
        if chunk.live == 0 {
            self.closed.remove(&number);
        } else if chunk.is_worth_compacting() {
            chunk.compact(number * CHUNK, dests);
        }
    }

    /// Drops what all readers have passed, of the entries up to `limit`.
    fn trim(&mut self, limit: u64, dests: &impl Versions) {
        let passed = self.cursors.iter().flatten().map(|cursor| cursor.passed).min();
        let passed = passed.unwrap_or(self.last).min(limit);
        if passed <= self.floor {
            return;
        }
        let search = dests.any_tombstone();
        let whole_chunks = (passed + 1) / CHUNK;
        while let Some(first) = self.closed.first_entry() {
            if *first.key() >= whole_chunks {
                break;
            }
            let (number, chunk) = first.remove_entry();
            if search {
                self.dropped.push_back((number * CHUNK, chunk.entries));
            }
        }
        self.floor = self.floor.max((whole_chunks * CHUNK).saturating_sub(1));
        if passed == self.last {
            if search && self.open.live > 0 {
                self.dropped.push_back((self.last / CHUNK * CHUNK, self.open.entries.clone()));
            }
            self.open.entries.clear();
            self.open.live = 0;
            self.floor = self.last;
        }
    }
}

impl Chunk {
    fn is_worth_compacting(&self) -> bool {
        self.entries.len() > WORTH_COMPACTING && self.live as usize * 2 < self.entries.len()
    }

    /// Removes the stale entries; `first` is the chunk's first number.
    fn compact(&mut self, first: u64, dests: &impl Versions) {
        self.entries.retain(|entry| dests.version(entry.id) == first + u64::from(entry.offset));
        self.entries.shrink_to_fit();
    }

    /// The index of the first entry after what the cursor has passed; `first` is the chunk's first number.
    fn position(&self, cursor: &Cursor, first: u64) -> usize {
        let passed = |entry: &Entry| first + u64::from(entry.offset) <= cursor.passed;
        let hint = cursor.hint as usize;
        let before = hint == 0 || hint.checked_sub(1).and_then(|at| self.entries.get(at)).is_some_and(passed);
        if before && !self.entries.get(hint).is_some_and(passed) {
            return hint;
        }
        self.entries.partition_point(passed)
    }
}

#[cfg(test)]
mod tests;
