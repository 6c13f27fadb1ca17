//! The chunks that an update group has encoded and its members have not all read yet.
//!
//! A chunk is encoded once and shared by every member. A member is a position in the ring; who has read everything
//! costs nothing. The ring is bounded: when it is full the oldest chunk goes, and whoever had not read it has fallen
//! off (its group then lets it catch up from the RIB). So a slow peer keeps a cursor, not a backlog.

use std::collections::VecDeque;

use bytes::Bytes;

use super::queue::Scope;
use crate::peer_key::PeerIx;

/// Whole UPDATE messages, encoded.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// The messages.
    pub(crate) bytes: Bytes,
    /// How many messages.
    pub(crate) messages: u32,
    /// Which members they are for.
    pub(crate) scope: Scope,
    /// Position in the table's log before the batch that this chunk is from: reading the log from here shows every
    /// change that the chunk and those behind it tell of.
    pub(crate) log: u64,
    /// Tells of something that the log does not show: a walk over the whole table, after a change of policy.
    pub(crate) unlogged: bool,
}

/// What a member has read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Where it stands now.
    pub(crate) position: u64,
    /// Octets that are for it, in so many messages.
    pub(crate) octets: usize,
    /// Messages.
    pub(crate) messages: u32,
}

#[derive(Debug)]
struct Slot {
    chunk: Chunk,
    unread: u32,
}

/// The chunks, oldest first. Positions count up for ever.
#[derive(Debug)]
pub(crate) struct Ring {
    slots: VecDeque<Slot>,
    first: u64,
    octets: usize,
}

impl Ring {
    /// How many octets stay for slow members.
    pub(crate) const LIMIT: usize = if cfg!(test) { 4096 } else { 1 << 20 };

    /// A ring without chunks.
    pub(crate) fn new() -> Self {
        Self { slots: VecDeque::new(), first: 0, octets: 0 }
    }

    /// The position behind the newest chunk: where a member stands that has read everything.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// How many octets there are.
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// The log position of the oldest chunk.
    pub(crate) fn log(&self) -> Option<u64> {
        self.slots.front().map(|slot| slot.chunk.log)
    }

    /// Appends a chunk that `members` members have to read. Without members it is gone at once.
    pub(crate) fn push(&mut self, chunk: Chunk, members: u32) {
        if members == 0 {
            debug_assert!(self.slots.is_empty(), "unread chunks without members");
            self.first += 1;
            return;
        }
        self.octets += chunk.bytes.len();
        self.slots.push_back(Slot { chunk, unread: members });
    }

    /// Reads on from a member's position, to the end or until there are about `max` octets. What is meant for that member
    /// goes into `into`.
    pub(crate) fn read(&mut self, position: u64, member: PeerIx, max: usize, into: &mut Vec<Bytes>) -> Read {
        let mut read = Read { position, octets: 0, messages: 0 };
        let from = position.checked_sub(self.first).and_then(|from| usize::try_from(from).ok());
        for slot in self.slots.iter_mut().skip(from.unwrap_or(usize::MAX)) {
            if read.octets >= max {
                break;
            }
            slot.unread -= 1;
            read.position += 1;
            if slot.chunk.scope.includes(member) {
                read.octets += slot.chunk.bytes.len();
                read.messages += slot.chunk.messages;
                into.push(slot.chunk.bytes.clone());
            }
        }
        self.drop_read();
        read
    }

    /// A member at `position` goes away.
    pub(crate) fn leave(&mut self, position: u64) {
        let from = usize::try_from(position.saturating_sub(self.first)).unwrap_or(usize::MAX);
        for slot in self.slots.iter_mut().skip(from) {
            slot.unread -= 1;
        }
        self.drop_read();
    }

    fn drop_read(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.unread == 0) {
            self.drop_first();
        }
    }

    /// Whether the oldest chunk has to go.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.octets > Self::LIMIT && self.slots.len() > 1
    }

    /// Whether the chunks from `position` on, up to the end, tell of something the log does not show.
    pub(crate) fn has_unlogged_from(&self, position: u64) -> bool {
        let from = usize::try_from(position.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.slots.iter().skip(from).any(|slot| slot.chunk.unlogged)
    }

    /// Position of the oldest chunk.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    fn drop_first(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            self.octets -= slot.chunk.bytes.len();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(len: usize, log: u64) -> Chunk {
        Chunk { bytes: Bytes::from(vec![0; len]), messages: 1, scope: Scope::All, log, unlogged: false }
    }

    /// Reads about so many octets; how many octets the chunks have, and the position behind them.
    fn read(ring: &mut Ring, position: u64, max: usize) -> (Vec<usize>, u64) {
        let mut chunks = Vec::new();
        let read = ring.read(position, PeerIx(7), max, &mut chunks);
        assert_eq!(read.octets, chunks.iter().map(Bytes::len).sum::<usize>());
        assert_eq!(read.messages as usize, chunks.len());
        (chunks.iter().map(Bytes::len).collect(), read.position)
    }

    #[test]
    fn a_chunk_goes_when_everyone_has_read_it() {
        let mut ring = Ring::new();
        ring.push(chunk(10, 1), 2);
        ring.push(chunk(20, 2), 2);
        assert_eq!(read(&mut ring, 0, 1), (vec![10], 1));
        assert_eq!(ring.first(), 0);
        assert_eq!(read(&mut ring, 0, 1), (vec![10], 1));
        assert_eq!((ring.first(), ring.log(), ring.octets), (1, Some(2), 20));
        ring.leave(1);
        assert_eq!(read(&mut ring, 1, 100), (vec![20], 2));
        assert_eq!((ring.first(), ring.end(), ring.log(), ring.octets), (2, 2, None, 0));
        assert_eq!(read(&mut ring, 2, 100), (vec![], 2));
    }

    #[test]
    fn a_member_reads_what_is_for_it_and_about_as_much_as_it_wants() {
        let mut ring = Ring::new();
        for (len, scope) in [(1, Scope::All), (2, Scope::Except(PeerIx(7))), (4, Scope::Only(PeerIx(8)))] {
            ring.push(Chunk { scope, ..chunk(len, 1) }, 2);
        }
        ring.push(Chunk { scope: Scope::Except(PeerIx(8)), ..chunk(8, 1) }, 2);
        ring.push(chunk(16, 1), 2);
        assert_eq!(read(&mut ring, 0, 9), (vec![1, 8], 4));
        assert_eq!(read(&mut ring, 4, 9), (vec![16], 5));
        assert_eq!(read(&mut ring, 0, usize::MAX), (vec![1, 8, 16], 5));
        assert_eq!((ring.first(), ring.octets), (5, 0));
    }

    #[test]
    fn without_members_nothing_is_kept() {
        let mut ring = Ring::new();
        ring.push(chunk(10, 1), 0);
        assert_eq!((ring.first(), ring.end(), ring.octets), (1, 1, 0));
    }

    #[test]
    fn the_limit_counts_octets_but_one_chunk_always_fits() {
        let mut ring = Ring::new();
        ring.push(chunk(Ring::LIMIT + 1, 1), 1);
        assert!(!ring.is_over_limit());
        ring.push(Chunk { unlogged: true, ..chunk(1, 2) }, 1);
        assert!(ring.is_over_limit());
        assert!(ring.has_unlogged_from(0) && ring.has_unlogged_from(1) && !ring.has_unlogged_from(2));
        ring.leave(0);
        assert_eq!(ring.first(), 2);
    }
}
