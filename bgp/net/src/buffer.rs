//! Read buffers, shared by all connections of a runtime.
//!
//! A connection takes one only when its socket has bytes to read, and the speaker gives it back once it has read them,
//! so an idle session holds none.

use std::sync::{Mutex, PoisonError};

/// A buffer of [`Buffer::CAPACITY`] octets, the first `len` of which are filled.
#[derive(Debug)]
pub(crate) struct Buffer {
    octets: Box<[u8]>,
    len: usize,
}

impl Buffer {
    /// Room for a thousand usual messages, and for the longest there can be (RFC 8654: 65535 octets).
    pub(crate) const CAPACITY: usize = 64 * 1024;

    fn new() -> Self {
        Self { octets: vec![0; Self::CAPACITY].into_boxed_slice(), len: 0 }
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    /// The part that isn't filled. What is written there counts after [`Buffer::advance`].
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.octets[self.len..]
    }

    pub(crate) fn advance(&mut self, octets: usize) {
        debug_assert!(octets <= Self::CAPACITY - self.len);
        self.len += octets;
    }

    /// Appends octets, as many as there is room for at most.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.room()[..octets.len()].copy_from_slice(octets);
        self.advance(octets.len());
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

/// Buffers that nobody needs at the moment.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Buffer>>);

impl Pool {
    pub(crate) fn take(&self) -> Buffer {
        self.lock().pop().unwrap_or_else(Buffer::new)
    }

    pub(crate) fn give_back(&self, mut buffer: Buffer) {
        buffer.len = 0;
        self.lock().push(buffer);
    }

    /// Frees all but `keep` buffers.
    pub(crate) fn trim(&self, keep: usize) {
        self.lock().truncate(keep);
    }

    /// Whether a buffer waits to be used.
    #[cfg(test)]
    pub(crate) fn has_spare(&self) -> bool {
        !self.lock().is_empty()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Buffer>> {
        // The list is whole at every moment, whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_and_the_pool_can_shrink() {
        let pool = Pool::default();
        let (mut a, b) = (pool.take(), pool.take());
        a.push(b"abc");
        a.room()[..2].copy_from_slice(b"de");
        a.advance(2);
        a.truncate(4);
        assert_eq!(a.filled(), b"abcd");
        pool.give_back(b);
        pool.give_back(a);
        assert_eq!(pool.take().filled(), b"");
        pool.give_back(Buffer::new());
        pool.trim(1);
        assert_eq!(pool.lock().len(), 1);
    }
}
