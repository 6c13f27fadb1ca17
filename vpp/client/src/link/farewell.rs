//! Leaving VPP. A client that just closes its socket can leave a descriptor behind on which VPP's main thread spins,
//! and sixteen of those stop it. So on every way out `sockclnt_delete` is sent, at a frame's border, and VPP's end of
//! the connection awaited for a short time.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use vpp_wire::api::memclnt::SockclntDelete;
use vpp_wire::{Context, IntoBytes, frame};

use super::Link;
use crate::error::ConnectError;

/// How long a dropped link may hold up who drops it.
const PATIENCE: Duration = Duration::from_millis(200);

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
        let Some(Ok(mut stream)) = Arc::into_inner(stream).map(UnixStream::into_std) else {
            return;
        };
        let prepared = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.write_all(self.staged.bytes.get(self.written..).unwrap_or_default()));
        if prepared.is_err() {
            return;
        }
        let mut rest = [0; 4096];
        for _ in 0..64 {
            match stream.read(&mut rest) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}
