//! Reader and writer of one connection: bytes in flight, and nothing that matters after it is gone.
//!
//! The reader hands over buffers of whole messages. It takes a buffer only when the socket has bytes *and* the queue has
//! a place for them, so that TCP pushes back on a neighbour that sends faster than we read, and all connections together
//! hold no more buffers than the queue has places. The queue is fair, so connections are served in turn.
//!
//! A batch goes to the system at once, in the runtime's turn. What the system has no room for is left to the writer, which
//! says when it is written; until then there is no further batch: what a slow neighbour hasn't taken stays with the
//! speaker, as a cursor. So a KEEPALIVE waits for at most one batch.
//!
//! Closing: the writer finishes, says FIN, and the reader listens on (for nothing) until the neighbour's FIN comes.
//! Closing a socket with unread bytes would reset it, and a reset may overtake the NOTIFICATION. None of this takes
//! longer than [`CLOSE_DEADLINE`].

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bgp_core::peer_key::ConnId;
use bgp_core::session::CloseReason;
use bgp_wire::whole_messages;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use crate::buffer::Buffer;
use crate::event::{Event, Inbound, Inlet};

/// How long the last bytes may take to leave, and the neighbour to say goodbye.
pub(crate) const CLOSE_DEADLINE: Duration = Duration::from_secs(2);

/// The longest message that any session allows (RFC 8654). The reader does not know what this one agreed on; the speaker
/// does, and refuses a longer one when it has come whole.
const MAX_MESSAGE: usize = bgp_wire::EXTENDED_MAX_LEN;

/// How many chunks go to the kernel in one call, usually; where there are many, they are small.
const SLICES: usize = 16;
const MANY_SLICES: usize = 512;

/// What reader, writer and runtime share.
#[derive(Debug, Default)]
struct Shared {
    /// How many times the reader has found bytes that the speaker hasn't seen yet.
    unread: AtomicU32,
    closing: AtomicBool,
    /// There is nothing to finish: nothing was ever said.
    at_once: AtomicBool,
    close: Notify,
    /// What ended the writer, or is about to. The reader reports it when the neighbour's last words have been read, which may say why.
    write_fault: Mutex<Option<CloseReason>>,
}

impl Shared {
    async fn closed(&self) {
        // Created before the look at the flag, so that a call in between isn't missed.
        let notified = self.close.notified();
        if !self.closing.load(Ordering::Acquire) {
            notified.await;
        }
    }

    fn write_fault(&self) -> std::sync::MutexGuard<'_, Option<CloseReason>> {
        self.write_fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a writer is to write.
#[derive(Debug)]
struct Batch {
    chunks: Vec<Bytes>,
    /// How long the neighbour may take none of it (RFC 9687); `None` for as long as it likes.
    send_hold: Option<Duration>,
}

/// Where batches go.
#[derive(Debug)]
struct Outgoing {
    /// Shared with the writer. When both have let go of it, the neighbour gets our FIN.
    half: Arc<OwnedWriteHalf>,
    batches: mpsc::Sender<Batch>,
}

/// The runtime's end of a connection.
#[derive(Debug)]
pub(crate) struct ConnHandle {
    shared: Arc<Shared>,
    /// `None` once the last batch has been given.
    outgoing: Option<Outgoing>,
    writing: bool,
    /// Nothing was ever said.
    silent: bool,
    remote: IpAddr,
}

impl ConnHandle {
    /// Starts reader and writer of `stream` on the current tokio runtime.
    pub(crate) fn start(id: ConnId, stream: TcpStream, remote: IpAddr, inlet: Inlet) -> Self {
        let shared = Arc::<Shared>::default();
        // One batch under way and the last one behind it.
        let (batches_in, batches) = mpsc::channel(2);
        let (reader, writer) = stream.into_split();
        let writer = Arc::new(writer);
        let outgoing = Outgoing { half: Arc::clone(&writer), batches: batches_in };
        tokio::spawn(run(id, reader, writer, Arc::clone(&shared), batches, inlet));
        Self { shared, outgoing: Some(outgoing), writing: false, silent: true, remote }
    }

    /// Whether the writer has nothing to do and may be given something.
    pub(crate) const fn is_idle(&self) -> bool {
        !self.writing && self.outgoing.is_some()
    }

    pub(crate) const fn is_closing(&self) -> bool {
        self.outgoing.is_none()
    }

    /// Writes a batch while the writer is idle, and leaves to it what the system has no room for: none of that may the
    /// neighbour take for `send_hold`. The batch is empty afterwards, and its memory the caller's: there may be a thousand
    /// connections, and a batch of many small chunks has room for more octets than are in them.
    pub(crate) fn write(&mut self, chunks: &mut Vec<Bytes>, send_hold: Option<Duration>) {
        let Some(outgoing) = self.outgoing.as_ref().filter(|_| !chunks.is_empty()) else {
            chunks.clear();
            return;
        };
        self.silent = false;
        if let Err(error) = write_now(&outgoing.half, chunks) {
            // The system says it once. The writer will come upon the end, and has this reason.
            self.shared.write_fault().get_or_insert(CloseReason::Error(error.kind()));
        }
        if !chunks.is_empty() {
            // Not the memory itself, which is the caller's.
            let mut rest = Vec::with_capacity(chunks.len());
            rest.append(chunks);
            // There are two places, and this is the only batch; or the writer has failed, and then it shall get no more.
            let _ = outgoing.batches.try_send(Batch { chunks: rest, send_hold });
            self.writing = true;
        }
    }

    /// The batch is written.
    pub(crate) const fn written(&mut self) {
        self.writing = false;
    }

    /// Closes the connection after `last` has been written; at once where we never said a word, as to strangers, who
    /// may be many.
    pub(crate) fn close(&mut self, last: Vec<Bytes>) {
        if let Some(outgoing) = self.outgoing.take() {
            if !last.is_empty() {
                // The second place is for this. The time to close is short enough.
                let _ = outgoing.batches.try_send(Batch { chunks: last, send_hold: None });
            } else if self.silent {
                self.shared.at_once.store(true, Ordering::Release);
            }
            self.shared.closing.store(true, Ordering::Release);
            self.shared.close.notify_waiters();
        }
    }

    /// Closes the connection at once, whatever is still to be said.
    pub(crate) fn cut(&mut self) {
        self.silent = true;
        self.close(Vec::new());
    }

    /// Where the neighbour is.
    pub(crate) const fn remote(&self) -> IpAddr {
        self.remote
    }

    /// Whether there are bytes that the speaker hasn't seen.
    pub(crate) fn has_unread(&self) -> bool {
        self.shared.unread.load(Ordering::Relaxed) > 0
    }

    /// The speaker has seen one buffer.
    pub(crate) fn delivered(&self) {
        self.shared.unread.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for ConnHandle {
    fn drop(&mut self) {
        self.close(Vec::new());
    }
}

async fn run(
    id: ConnId,
    reader: OwnedReadHalf,
    writer: Arc<OwnedWriteHalf>,
    shared: Arc<Shared>,
    batches: mpsc::Receiver<Batch>,
    inlet: Inlet,
) {
    {
        let both = async {
            tokio::join!(read(id, reader, &shared, &inlet), write(id, writer, batches, &shared, &inlet));
        };
        let deadline = async {
            shared.closed().await;
            if !shared.at_once.load(Ordering::Acquire) {
                sleep(CLOSE_DEADLINE).await;
            }
        };
        tokio::select! {
            () = both => {}
            () = deadline => {}
        }
    }
    let _ = inlet.inbound.send(Inbound::Gone(id)).await;
}

async fn read(id: ConnId, mut half: OwnedReadHalf, shared: &Shared, inlet: &Inlet) {
    let reason = tokio::select! {
        reason = deliver(id, &mut half, shared, inlet) => reason,
        () = shared.closed() => None,
    };
    if let Some(reason) = reason {
        let reason = shared.write_fault().take().unwrap_or(reason);
        let _ = inlet.inbound.send(Inbound::Closed(id, reason)).await;
    } else {
        discard(&mut half, inlet).await;
    }
}

/// Hands over what arrives until the connection ends; `None` after a fault, behind which nothing can be read.
async fn deliver(
    id: ConnId,
    half: &mut OwnedReadHalf,
    shared: &Shared,
    inlet: &Inlet,
) -> Option<CloseReason> {
    // The beginning of a message whose end hasn't arrived.
    let mut begun = Vec::new();
    loop {
        if let Err(error) = half.readable().await {
            return Some(CloseReason::Error(error.kind()));
        }
        shared.unread.fetch_add(1, Ordering::Relaxed);
        // The runtime has ended when the queue is closed.
        let place = inlet.inbound.reserve().await.ok()?;
        let mut buffer = inlet.pool.take();
        buffer.push(&begun);
        let before = buffer.filled().len();
        let ended = read_once(half, &mut buffer).await.err();
        let whole = whole_messages(buffer.filled(), MAX_MESSAGE);
        let end = if whole.fault { buffer.filled().len() } else { whole.bytes };
        if buffer.filled().len() > before {
            begun.clear();
            begun.extend_from_slice(&buffer.filled()[end..]);
            if begun.is_empty() {
                begun = Vec::new();
            }
        }
        buffer.truncate(end);
        if buffer.filled().is_empty() {
            shared.unread.fetch_sub(1, Ordering::Relaxed);
            inlet.pool.give_back(buffer);
        } else {
            place.send(Inbound::Messages(id, buffer));
        }
        if whole.fault {
            return None;
        }
        if ended.is_some() {
            return ended;
        }
    }
}

/// Reads what there is, which may be nothing, without waiting.
async fn read_once(half: &mut OwnedReadHalf, buffer: &mut Buffer) -> Result<(), CloseReason> {
    let mut room = ReadBuf::new(buffer.room());
    // `poll_read`, unlike `try_read`, knows from a read that doesn't fill the buffer that the socket is empty, which
    // saves a system call for each buffer.
    let read = poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut *half).poll_read(cx, &mut room) {
            Poll::Pending => Err(ErrorKind::WouldBlock),
            Poll::Ready(read) => read.map_err(|error| error.kind()),
        })
    })
    .await;
    let octets = room.filled().len();
    buffer.advance(octets);
    match read {
        Ok(()) if octets == 0 => Err(CloseReason::EndOfStream),
        Ok(()) | Err(ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(()),
        Err(kind) => Err(CloseReason::Error(kind)),
    }
}

/// Reads and forgets until the neighbour has finished too.
async fn discard(half: &mut OwnedReadHalf, inlet: &Inlet) {
    while half.readable().await.is_ok() {
        let mut buffer = inlet.pool.take();
        let read = read_once(half, &mut buffer).await;
        inlet.pool.give_back(buffer);
        if read.is_err() {
            return;
        }
        // Nobody else may have a turn while a neighbour sends without pause.
        tokio::task::consume_budget().await;
    }
}

async fn write(
    id: ConnId,
    half: Arc<OwnedWriteHalf>,
    mut batches: mpsc::Receiver<Batch>,
    shared: &Shared,
    inlet: &Inlet,
) {
    while let Some(Batch { mut chunks, send_hold }) = batches.recv().await {
        if let Err(reason) = write_batch(&half, &mut chunks, send_hold).await {
            tracing::debug!(conn = %id, %reason, "write failed");
            shared.write_fault().get_or_insert(reason);
            if reason == CloseReason::SendHoldTimerExpired {
                // The neighbour may go on talking for ever; nobody else would end this.
                let _ = inlet.inbound.send(Inbound::Closed(id, reason)).await;
            }
            // Otherwise the reader will come upon the end. Until then what is written goes nowhere.
            batches.close();
            return;
        }
        // What was in the way at the first attempt, if anything, is so no more.
        shared.write_fault().take();
        // Not kept while there is no place to say so.
        drop(chunks);
        if inlet.events.send(Event::Written(id)).await.is_err() {
            return;
        }
    }
}

/// Writes all of `batch`, and empties it.
async fn write_batch(
    half: &OwnedWriteHalf,
    batch: &mut [Bytes],
    send_hold: Option<Duration>,
) -> Result<(), CloseReason> {
    let mut first = 0;
    while first < batch.len() {
        let writable = match send_hold {
            Some(time) => timeout(time, half.writable()).await,
            None => Ok(half.writable().await),
        };
        match writable {
            Err(_) => return Err(CloseReason::SendHoldTimerExpired),
            Ok(Err(error)) => return Err(CloseReason::Error(error.kind())),
            Ok(Ok(())) => {}
        }
        match write_some(half, &batch[first..]) {
            Ok(octets) => first += take(&mut batch[first..], octets),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(CloseReason::Error(error.kind())),
        }
        // A socket that takes everything must not keep the others from their turn.
        tokio::task::consume_budget().await;
    }
    Ok(())
}

/// Writes what the system has room for, and takes it out of `chunks`.
fn write_now(half: &OwnedWriteHalf, chunks: &mut Vec<Bytes>) -> io::Result<()> {
    let mut first = 0;
    let outcome = loop {
        let Some(rest) = chunks.get_mut(first..).filter(|rest| !rest.is_empty()) else { break Ok(()) };
        match write_some(half, rest) {
            Ok(octets) => first += take(rest, octets),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    chunks.drain(..first);
    outcome
}

/// Takes so many octets from the beginning; says how many chunks are empty now.
fn take(chunks: &mut [Bytes], mut octets: usize) -> usize {
    let mut empty = 0;
    while let Some(chunk) = chunks.get_mut(empty) {
        let taken = octets.min(chunk.len());
        chunk.advance(taken);
        octets -= taken;
        if !chunk.is_empty() {
            break;
        }
        empty += 1;
    }
    empty
}

fn write_some(half: &OwnedWriteHalf, chunks: &[Bytes]) -> io::Result<usize> {
    if chunks.len() <= SLICES {
        write_slices::<SLICES>(half, chunks)
    } else {
        write_slices::<MANY_SLICES>(half, chunks)
    }
}

fn write_slices<const COUNT: usize>(half: &OwnedWriteHalf, chunks: &[Bytes]) -> io::Result<usize> {
    let mut slices = [IoSlice::new(&[]); COUNT];
    for (slice, chunk) in slices.iter_mut().zip(chunks) {
        *slice = IoSlice::new(chunk);
    }
    half.try_write_vectored(&slices[..chunks.len().min(COUNT)])
}

#[cfg(test)]
mod tests;
