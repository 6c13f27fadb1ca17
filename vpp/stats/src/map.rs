//! A file of another process, mapped read-only.
//!
//! The other process writes while this one reads, so no reference to the bytes is ever made: each word is loaded by
//! itself as an atomic, at an offset that was checked.
#![allow(
    unsafe_code,
    reason = "mmap, and loads from memory that another process writes; see the proof at each use"
)]

use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The mapping.
#[derive(Debug)]
pub struct Map {
    start: NonNull<u8>,
    length: NonZeroUsize,
}

// SAFETY: the mapping belongs to the process, not to a thread; it is unmapped once, by the owner's drop; every access is an
// atomic load.
unsafe impl Send for Map {}
// SAFETY: as for `Send`: shared access is by atomic loads only.
unsafe impl Sync for Map {}

impl Map {
    /// Maps a whole file. VPP never makes the file smaller, which would end who reads behind its end.
    ///
    /// # Errors
    /// What `fstat` and `mmap` say; an empty file is invalid.
    pub fn new(file: impl AsFd) -> std::io::Result<Self> {
        let size = rustix::fs::fstat(&file)?.st_size;
        let length = usize::try_from(size).ok().and_then(NonZeroUsize::new);
        let length = length.ok_or(std::io::ErrorKind::InvalidData)?;
        // SAFETY: no address is asked for, so nothing that exists is mapped over; the length is not 0; the result is owned by
        // the value made of it, which alone unmaps it.
        let start = unsafe {
            mmap(std::ptr::null_mut(), length.get(), ProtFlags::READ, MapFlags::SHARED, file.as_fd(), 0)?
        };
        let start = NonNull::new(start.cast()).ok_or(std::io::ErrorKind::InvalidData)?;
        Ok(Self { start, length })
    }

    /// Bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length.get()
    }

    /// Never: an empty file is not mapped.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// A word; `None` outside the mapping, or where a word cannot stand.
    #[must_use]
    pub fn u64_at(&self, at: usize, order: Ordering) -> Option<u64> {
        let place = self.place(at, 8)?.cast::<AtomicU64>();
        // SAFETY: `place` has checked that eight bytes at `at` are in the mapping, which lives as long as `self`, and that they are
        // aligned. The memory is readable. A load of at most word size does not write.
        Some(unsafe { place.as_ref() }.load(order))
    }

    /// Half a word; `None` as for a word.
    #[must_use]
    pub fn u32_at(&self, at: usize) -> Option<u32> {
        let place = self.place(at, 4)?.cast::<AtomicU32>();
        // SAFETY: as in `u64_at`, for four bytes.
        Some(unsafe { place.as_ref() }.load(Ordering::Relaxed))
    }

    /// A byte; `None` outside the mapping.
    #[must_use]
    pub fn u8_at(&self, at: usize) -> Option<u8> {
        let place = self.place(at, 1)?.cast::<AtomicU8>();
        // SAFETY: as in `u64_at`, for one byte.
        Some(unsafe { place.as_ref() }.load(Ordering::Relaxed))
    }

    /// Where `width` bytes, aligned to themselves, stand at `at`. The mapping starts at a page.
    fn place(&self, at: usize, width: usize) -> Option<NonNull<u8>> {
        let end = at.checked_add(width)?;
        if end > self.length.get() || !at.is_multiple_of(width) {
            return None;
        }
        // SAFETY: `at` is less than the length of the mapping, so the sum stays in the one object that it is.
        Some(unsafe { self.start.add(at) })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: start and length are those that `mmap` was asked for and gave; nothing refers to the memory any more, as references
        // to it live no longer than a load. A failure would leave it mapped, which harms nobody.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length.get()) };
    }
}
