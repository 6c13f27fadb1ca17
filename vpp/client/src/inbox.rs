//! The receive buffer: frames are read in place, and only what is left of an unfinished one is ever moved.

use vpp_wire::frame::{self, Cut, FrameError, HEADER};

/// Enough for a few hundred small replies in one read.
const USUAL: usize = 128 << 10;

#[derive(Debug)]
pub(crate) struct Inbox {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; USUAL], start: 0, end: 0 }
    }

    /// Room for the next read: at least what the frame at the start still lacks.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            if self.buffer.len() > USUAL {
                self.buffer.truncate(USUAL);
                self.buffer.shrink_to(USUAL);
            }
        }
        if self.start > 0 && self.buffer.len() - self.end < USUAL / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if let Ok(Cut::Need(total)) = frame::cut(&self.buffer[self.start..self.end]) {
            let needed = self.start + total;
            if self.buffer.len() < needed {
                self.buffer.resize(needed, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// `bytes` were read into [`Self::room`].
    pub(crate) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    /// The payload of the next whole frame.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, FrameError> {
        match frame::cut(&self.buffer[self.start..self.end])? {
            Cut::Frame(payload) => {
                let from = self.start + HEADER;
                let to = from + payload.len();
                self.start = to;
                Ok(Some(&self.buffer[from..to]))
            }
            Cut::Need(_) => Ok(None),
        }
    }
}
