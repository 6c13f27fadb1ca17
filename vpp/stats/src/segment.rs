//! The segment: its header, vectors, directory, and the protocol under which all of it is read.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, recvmsg, socket_with,
};
use thiserror::Error;

use crate::map::Map;

/// The layout that this crate reads; the same in all supported releases.
const VERSION: u64 = 2;
const BASE_AT: usize = 8;
const EPOCH_AT: usize = 16;
const IN_PROGRESS_AT: usize = 24;
const DIRECTORY_AT: usize = 32;
/// Bytes of an entry of the directory, and of the name at its end.
const ENTRY: usize = 144;
const NAME: usize = 128;
const NAME_AT: usize = 16;
/// A vector's length stands so far in front of its first element.
const LENGTH_BEFORE: usize = 8;
/// How long VPP may take to answer: one that hangs must not take whoever asks with it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Attempts to read while VPP changes things, each after letting others run.
const ATTEMPTS: u32 = 1000;

/// Why something cannot be read.
#[derive(Debug, Error)]
pub enum StatsError {
    /// The socket or the file cannot be opened.
    #[error("the statistics socket: {0}")]
    Io(#[from] io::Error),
    /// VPP sent no file descriptor.
    #[error("VPP sent no statistics segment")]
    NoSegment,
    /// A layout of another VPP.
    #[error("the statistics segment has version {0}, not 2")]
    Version(u64),
    /// A pointer or length that leads out of the segment.
    #[error("the statistics segment makes no sense")]
    Corrupt,
    /// VPP has been changing the segment for as long as was tried: try later.
    #[error("VPP is changing the statistics segment")]
    Busy,
}

/// What an entry of the directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A number, which is the value itself (VPP: scalar, gauge).
    Number,
    /// A counter for each element and thread.
    Simple,
    /// Packets and bytes for each element and thread.
    Combined,
    /// Texts by element.
    Names,
    /// One element of another entry: its place in the directory in the low half, the element in the high one.
    Link,
    /// Unused, removed, or of a kind that this crate has no use for.
    Other,
}

/// An entry of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// For example `/if/rx`.
    pub name: Box<str>,
    /// What it is.
    pub kind: EntryKind,
    value: u64,
}

/// The mapped segment of one VPP process.
#[derive(Debug)]
pub struct Segment {
    map: Map,
}

impl Segment {
    /// Gets the segment of the VPP that listens on the statistics socket at `path`. Blocks until VPP answers, which it does
    /// at once, or for two seconds.
    ///
    /// # Errors
    /// [`StatsError::Io`], [`StatsError::NoSegment`], [`StatsError::Version`].
    pub fn connect(path: &Path) -> Result<Self, StatsError> {
        Self::new(Map::new(receive(path)?)?)
    }

    /// Of a mapping.
    ///
    /// # Errors
    /// [`StatsError::Version`], [`StatsError::Corrupt`] when there is not even a header.
    pub fn new(map: Map) -> Result<Self, StatsError> {
        match map.u64_at(0, Ordering::Relaxed).ok_or(StatsError::Corrupt)? {
            VERSION => Ok(Self { map }),
            other => Err(StatsError::Version(other)),
        }
    }

    /// What changes when names or lengths do.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`].
    pub fn epoch(&self) -> Result<u64, StatsError> {
        self.map.u64_at(EPOCH_AT, Ordering::Acquire).ok_or(StatsError::Corrupt)
    }

    /// Reads with `read`, again until nothing has changed meanwhile. With the epoch that it holds for.
    ///
    /// # Errors
    /// That of `read` when nothing has changed, or [`StatsError::Busy`].
    pub fn consistent<T>(
        &self,
        mut read: impl FnMut(&Self) -> Result<T, StatsError>,
    ) -> Result<(T, u64), StatsError> {
        for _ in 0..ATTEMPTS {
            let epoch = self.epoch()?;
            if self.in_progress()? {
                std::thread::yield_now();
                continue;
            }
            let result = read(self);
            // What was read is read before the words are looked at again.
            fence(Ordering::Acquire);
            if !self.in_progress()? && self.epoch()? == epoch {
                return result.map(|read| (read, epoch));
            }
        }
        Err(StatsError::Busy)
    }

    fn in_progress(&self) -> Result<bool, StatsError> {
        Ok(self.map.u64_at(IN_PROGRESS_AT, Ordering::Acquire).ok_or(StatsError::Corrupt)? != 0)
    }

    /// All entries, in order, the unused ones too: links count them. To be called within [`Self::consistent`].
    ///
    /// # Errors
    /// [`StatsError::Corrupt`].
    pub fn directory(&self) -> Result<Vec<Entry>, StatsError> {
        let pointer = self.word(DIRECTORY_AT)?;
        let Some((at, length)) = self.vector(pointer, ENTRY)? else {
            return Ok(Vec::new());
        };
        (0..length).map(|index| self.entry(at + index * ENTRY)).collect()
    }

    fn entry(&self, at: usize) -> Result<Entry, StatsError> {
        let kind = match self.map.u32_at(at).ok_or(StatsError::Corrupt)? {
            1 | 9 => EntryKind::Number,
            2 => EntryKind::Simple,
            3 => EntryKind::Combined,
            4 => EntryKind::Names,
            6 => EntryKind::Link,
            _ => EntryKind::Other,
        };
        Ok(Entry { name: self.text(at + NAME_AT, NAME)?, kind, value: self.word(at + 8)? })
    }

    /// The counters of an entry of kind [`EntryKind::Simple`], those of all threads added up.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`].
    pub fn simple(&self, entry: &Entry) -> Result<Vec<u64>, StatsError> {
        let mut sums = Vec::new();
        self.each_thread(entry.value, 8, |at, length| {
            sums.resize(sums.len().max(length), 0_u64);
            for (index, sum) in sums.iter_mut().enumerate().take(length) {
                *sum = sum.wrapping_add(self.word(at + 8 * index)?);
            }
            Ok(())
        })?;
        Ok(sums)
    }

    /// Packets and bytes of an entry of kind [`EntryKind::Combined`], those of all threads added up.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`].
    pub fn combined(&self, entry: &Entry) -> Result<Vec<(u64, u64)>, StatsError> {
        let mut sums = Vec::new();
        self.each_thread(entry.value, 16, |at, length| {
            sums.resize(sums.len().max(length), (0_u64, 0_u64));
            for (index, (packets, bytes)) in sums.iter_mut().enumerate().take(length) {
                *packets = packets.wrapping_add(self.word(at + 16 * index)?);
                *bytes = bytes.wrapping_add(self.word(at + 16 * index + 8)?);
            }
            Ok(())
        })?;
        Ok(sums)
    }

    /// One element of an entry of kind [`EntryKind::Simple`], that of all threads added up; `None` if there is none.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`].
    pub fn element(&self, entry: &Entry, element: usize) -> Result<Option<u64>, StatsError> {
        let mut found = None;
        self.each_thread(entry.value, 8, |at, length| {
            if element < length {
                let one = self.word(at + 8 * element)?;
                found = Some(found.unwrap_or(0_u64).wrapping_add(one));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The texts of an entry of kind [`EntryKind::Names`]; holes are `None`.
    ///
    /// # Errors
    /// [`StatsError::Corrupt`].
    pub fn names(&self, entry: &Entry) -> Result<Vec<Option<Box<str>>>, StatsError> {
        let Some((at, length)) = self.vector(entry.value, 8)? else {
            return Ok(Vec::new());
        };
        let name = |index: usize| match self.word(at + 8 * index)? {
            0 => Ok(None),
            pointer => self.text(self.offset(pointer)?, NAME).map(Some),
        };
        (0..length).map(name).collect()
    }

    /// The number that an entry of kind [`EntryKind::Number`] is.
    #[must_use]
    pub const fn number(entry: &Entry) -> u64 {
        entry.value
    }

    /// Where a link leads: the place in the directory, and the element there.
    #[must_use]
    pub const fn link(entry: &Entry) -> (usize, usize) {
        ((entry.value & 0xffff_ffff) as usize, (entry.value >> 32) as usize)
    }

    fn each_thread(
        &self,
        pointer: u64,
        width: usize,
        mut each: impl FnMut(usize, usize) -> Result<(), StatsError>,
    ) -> Result<(), StatsError> {
        let Some((at, threads)) = self.vector(pointer, 8)? else {
            return Ok(());
        };
        for thread in 0..threads {
            if let Some((at, length)) = self.vector(self.word(at + 8 * thread)?, width)? {
                each(at, length)?;
            }
        }
        Ok(())
    }

    /// Where a vector's elements start, and how many there are, all of them in the segment; `None` for no vector.
    fn vector(&self, pointer: u64, width: usize) -> Result<Option<(usize, usize)>, StatsError> {
        if pointer == 0 {
            return Ok(None);
        }
        let at = self.offset(pointer)?;
        let before = at.checked_sub(LENGTH_BEFORE).ok_or(StatsError::Corrupt)?;
        let length = self.map.u32_at(before).ok_or(StatsError::Corrupt)? as usize;
        let end = length.checked_mul(width).and_then(|bytes| at.checked_add(bytes));
        if end.is_none_or(|end| end > self.map.len()) {
            return Err(StatsError::Corrupt);
        }
        Ok(Some((at, length)))
    }

    /// A pointer of VPP's as an offset.
    fn offset(&self, pointer: u64) -> Result<usize, StatsError> {
        let offset = pointer.checked_sub(self.word(BASE_AT)?).and_then(|offset| usize::try_from(offset).ok());
        offset.filter(|offset| *offset < self.map.len()).ok_or(StatsError::Corrupt)
    }

    fn word(&self, at: usize) -> Result<u64, StatsError> {
        self.map.u64_at(at, Ordering::Relaxed).ok_or(StatsError::Corrupt)
    }

    /// A text of at most `most` bytes, up to its NUL.
    fn text(&self, at: usize, most: usize) -> Result<Box<str>, StatsError> {
        let mut bytes = Vec::new();
        for index in 0..most {
            match self.map.u8_at(at + index).ok_or(StatsError::Corrupt)? {
                0 => break,
                byte => bytes.push(byte),
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into())
    }
}

/// Connects and takes the file descriptor that VPP sends.
fn receive(path: &Path) -> Result<OwnedFd, StatsError> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(io::Error::from)?;
    for what in [Timeout::Send, Timeout::Recv] {
        set_socket_timeout(&socket, what, Some(PATIENCE)).map_err(io::Error::from)?;
    }
    let address = SocketAddrUnix::new(path).map_err(io::Error::from)?;
    connect(&socket, &address).map_err(io::Error::from)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; 64];
    recvmsg(&socket, &mut [io::IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)
        .map_err(io::Error::from)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut files) = message
            && let Some(file) = files.next()
        {
            return Ok(file);
        }
    }
    Err(StatsError::NoSegment)
}
