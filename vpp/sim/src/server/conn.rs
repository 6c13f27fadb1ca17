//! One connection: bytes in, bytes out, in order. It reads only when all its answers are written.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::sync::{Notify, watch};

use super::process::{Life, Process, Step};
use crate::clients::ConnId;

/// Room made for each read, in bytes: more than a client's window of route requests.
const READ: usize = 64 * 1024;

/// A buffer that a dump or a huge request blew up beyond this is given back.
const KEEP: usize = 1 << 20;

/// Serves a connection until either side closes it.
pub(crate) async fn serve(process: Arc<Process>, stream: UnixStream, id: ConnId, wake: Arc<Notify>) {
    tracing::debug!(conn = id.0, "connected");
    let mut connection = Connection { life: process.life(), process, stream, id, wake };
    let end = connection.run().await;
    tracing::debug!(conn = connection.id.0, error = end.err().map(tracing::field::display), "disconnected");
    connection.process.disconnected(connection.id);
}

struct Connection {
    process: Arc<Process>,
    life: watch::Receiver<Life>,
    stream: UnixStream,
    id: ConnId,
    wake: Arc<Notify>,
}

impl Connection {
    async fn run(&mut self) -> io::Result<()> {
        let mut input = Vec::with_capacity(READ);
        let mut output = Vec::with_capacity(READ);
        let mut judged = false;
        loop {
            let step = self.process.work(self.id, &mut input, &mut output, judged);
            judged = false;
            if self.write(&output, step == Step::Close).await.is_err() || step == Step::Close {
                return Ok(());
            }
            output.clear();
            output.shrink_to(KEEP);
            match step {
                Step::Again => {}
                Step::Wait(time) => {
                    // a wake-up is no reason to answer early
                    tokio::select! {
                        () = tokio::time::sleep(time) => judged = true,
                        () = self.closed() => return Ok(()),
                    }
                }
                Step::Hang => {
                    let wake = &self.wake;
                    tokio::select! {
                        changed = self.life.changed() => changed.map_err(|_| io::Error::from(ErrorKind::NotConnected))?,
                        () = wake.notified() => {}
                    }
                }
                Step::Read => {
                    input.shrink_to(KEEP);
                    if !self.read(&mut input).await? {
                        return Ok(());
                    }
                }
                Step::Close => return Ok(()),
            }
        }
    }

    /// Waits for bytes or a wake-up. `false` at the end of the stream.
    async fn read(&self, input: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            tokio::select! {
                () = self.wake.notified() => return Ok(true),
                ready = self.stream.readable() => ready?,
            }
            input.reserve(READ);
            match self.stream.try_read_buf(input) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes everything; when `last`, only as much as goes at once.
    async fn write(&self, mut bytes: &[u8], last: bool) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or(&[]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.process.found_full();
                    if last {
                        return Ok(());
                    }
                    tokio::select! {
                        ready = self.stream.writable() => ready?,
                        () = self.closed() => return Err(ErrorKind::ConnectionAborted.into()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the process closes this connection. Other wake-ups are used up; what they announced is found by the
    /// next round of work.
    async fn closed(&self) {
        while !self.process.is_closed(self.id) {
            self.wake.notified().await;
        }
    }
}
