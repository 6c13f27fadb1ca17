//! Leaving VPP. A client that just closes its socket can leave a descriptor behind on which VPP's main thread spins,
//! and sixteen of those stop it. So on every way out `sockclnt_delete` is sent, at a frame's border, and VPP's end of
//! the connection awaited for a short time.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use vpp_wire::api::memclnt::SockclntDelete;
use vpp_wire::{ClientIndex, Context, IntoBytes, frame};

use super::Link;
use crate::error::ConnectError;

/// How long a dropped link may hold up who drops it.
const PATIENCE: Duration = Duration::from_millis(200);

/// How long it waits between two looks.
const GLANCE: Duration = Duration::from_millis(1);

impl Link {
    /// Takes leave and waits for VPP to close, both within `patience`.
    pub(super) async fn leave(&mut self, patience: Duration) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        self.stage_farewell();
        // Whether VPP answers or not, there is nothing more to be done.
        let _ = tokio::time::timeout(patience, self.finish(&stream)).await;
    }

    async fn finish(&mut self, stream: &UnixStream) -> Result<(), ConnectError> {
        while self.written < self.admitted {
            stream.writable().await?;
            while self.write(stream)? {}
        }
        loop {
            stream.readable().await?;
            while self.read(stream)? {
                while self.inbox.next()?.is_some() {}
            }
        }
    }

    /// Leaves a VPP that does not answer, or is gone, without waiting: when it ever reads on, it reads this.
    pub(super) fn abandon(&mut self, reason: &ConnectError) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        if matches!(reason, ConnectError::Closed | ConnectError::Io(_)) {
            return;
        }
        self.stage_farewell();
        while matches!(self.write(&stream), Ok(true)) {}
    }

    /// What is admitted is finished, what is not is forgotten, then comes the farewell.
    fn stage_farewell(&mut self) {
        self.staged.bytes.truncate(self.admitted);
        let farewell = SockclntDelete::new(Context::new(0), self.handle);
        frame::push(&mut self.staged.bytes, |out| out.extend_from_slice(farewell.as_bytes()));
        self.admitted = self.staged.bytes.len();
    }
}

impl Drop for Link {
    /// The task was dropped: the runtime goes down, or a panic unwinds. There is nobody to wait any more, so this
    /// blocks, briefly.
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        self.stage_farewell();
        let Some(Ok(stream)) = Arc::into_inner(stream).map(UnixStream::into_std) else {
            return;
        };
        part(stream, self.staged.bytes.get(self.written..).unwrap_or_default());
    }
}

/// Writes the last bytes and waits for VPP to close, blocking this thread for a short time at most. The socket stays
/// non-blocking: that is a property of the connection, which another thread may still be reading.
fn part(mut stream: StdUnixStream, mut last: &[u8]) {
    let until = Instant::now() + PATIENCE;
    let mut rest = [0; 4096];
    while Instant::now() < until {
        let moved = if last.is_empty() {
            // What was in flight is answered first, then comes the reply to the farewell, then the end.
            stream.read(&mut rest)
        } else {
            stream.write(last).inspect(|bytes| last = last.get(*bytes..).unwrap_or_default())
        };
        match moved {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(GLANCE),
            Err(_) => return,
        }
    }
}

/// A second hold of the connection, for a process that ends at once: a panic hook.
#[derive(Debug, Default)]
pub(crate) struct Lifeline(Mutex<Option<Hold>>);

#[derive(Debug)]
struct Hold {
    stream: StdUnixStream,
    handle: ClientIndex,
    /// Whether the last frame begun is written to its end.
    at_border: bool,
}

impl Lifeline {
    pub(super) fn hold(&self, stream: &UnixStream, handle: ClientIndex) {
        // Without a second descriptor there is no emergency exit, but a connection all the same.
        let stream = stream.as_fd().try_clone_to_owned().ok().map(StdUnixStream::from);
        *self.lock() = stream.map(|stream| Hold { stream, handle, at_border: true });
    }

    pub(super) fn release(&self) {
        *self.lock() = None;
    }

    /// Nobody else writes while `write` does. It tells whether it has reached a frame's border.
    pub(super) fn writing<T>(&self, write: impl FnOnce() -> (T, bool)) -> T {
        let mut hold = self.lock();
        let (written, at_border) = write();
        if let Some(hold) = hold.as_mut() {
            hold.at_border = at_border;
        }
        written
    }

    /// Takes leave from outside the connection's task. Does nothing when not connected, or when half a frame is
    /// written: whatever is written into that would be taken for its other half.
    pub(crate) fn part(&self) {
        let hold = match self.0.try_lock() {
            Ok(mut hold) => hold.take(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().take(),
            // The panicking thread is the one that writes.
            Err(TryLockError::WouldBlock) => None,
        };
        let Some(hold) = hold.filter(|hold| hold.at_border) else {
            return;
        };
        let mut last = Vec::new();
        let farewell = SockclntDelete::new(Context::new(0), hold.handle);
        frame::push(&mut last, |out| out.extend_from_slice(farewell.as_bytes()));
        part(hold.stream, &last);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Hold>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
