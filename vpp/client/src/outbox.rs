//! Requests on their way to the connection: encoded frames one behind the other, and what is to be known of each.
//!
//! Callers append under a short lock; the connection swaps the whole box for its own empty one, so in steady
//! state nothing is allocated and nothing copied. Callers bound what they have outstanding (a pipeline by its
//! capacity, calls by a semaphore), so the box is bounded by their sum.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use vpp_wire::message::Descriptor;
use vpp_wire::{Dump, Message, ParseError, Payload, Request, Stream, frame};

use crate::error::CallError;
use crate::state::Generation;

/// Who gets the answers.
pub(crate) trait Sink: Send + Sync {
    /// One of a dump's details.
    fn details(&self, payload: &[u8]) -> Result<(), ParseError>;
    /// The reply, or nothing behind the last details, or why there is none. Called once for each ticket.
    fn done(&self, ticket: u32, outcome: Result<&[u8], CallError>);
}

/// The right to an answer. Dropped without one it answers that the request was not sent, or is lost.
pub(crate) struct Answer {
    sink: Option<Arc<dyn Sink>>,
    ticket: u32,
    sent: bool,
}

impl Answer {
    pub(crate) fn new(sink: Arc<dyn Sink>, ticket: u32) -> Self {
        Self { sink: Some(sink), ticket, sent: false }
    }

    /// From now on VPP may carry it out.
    pub(crate) fn sent(mut self) -> Self {
        self.sent = true;
        self
    }

    pub(crate) fn details(&self, payload: &[u8]) -> Result<(), ParseError> {
        self.sink.as_ref().map_or(Ok(()), |sink| sink.details(payload))
    }

    pub(crate) fn done(mut self, outcome: Result<&[u8], CallError>) {
        if let Some(sink) = self.sink.take() {
            sink.done(self.ticket, outcome);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(sink) = self.sink.take() {
            let error = if self.sent { CallError::Lost } else { CallError::NotSent };
            sink.done(self.ticket, Err(error));
        }
    }
}

/// One request in the box.
pub(crate) struct Entry {
    pub(crate) request: &'static Descriptor,
    /// Reply, or details of a dump.
    pub(crate) answer: &'static Descriptor,
    /// Bytes of the frame, or of both when a ping follows.
    pub(crate) bytes: usize,
    /// A dump: the frame of a `control_ping` follows, this many bytes from the start.
    pub(crate) ping_at: Option<usize>,
    /// A stream: the reply behind its details.
    pub(crate) end: Option<&'static Descriptor>,
    /// Not to be sent to another generation.
    pub(crate) pin: Option<Generation>,
    pub(crate) to: Answer,
}

/// Frames and their entries, in order.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: VecDeque<Entry>,
}

impl Batch {
    pub(crate) fn request<R: Request>(&mut self, request: &R, pin: Option<Generation>, to: Answer) {
        let start = self.bytes.len();
        frame::push(&mut self.bytes, |out| request.encode(out));
        self.entries.push_back(Entry {
            request: descriptor::<R::Message>(),
            answer: descriptor::<R::Reply>(),
            bytes: self.bytes.len() - start,
            ping_at: None,
            end: None,
            pin,
            to,
        });
    }

    pub(crate) fn dump<D: Dump>(&mut self, dump: &D, pin: Option<Generation>, to: Answer) {
        let start = self.bytes.len();
        frame::push(&mut self.bytes, |out| dump.encode(out));
        let ping_at = Some(self.bytes.len() - start);
        frame::push(&mut self.bytes, |out| vpp_wire::api::memclnt::ControlPing::default().encode(out));
        self.entries.push_back(Entry {
            request: descriptor::<D::Message>(),
            answer: descriptor::<D::Details>(),
            bytes: self.bytes.len() - start,
            ping_at,
            end: None,
            pin,
            to,
        });
    }

    pub(crate) fn stream<S: Stream>(&mut self, stream: &S, pin: Option<Generation>, to: Answer) {
        let start = self.bytes.len();
        frame::push(&mut self.bytes, |out| stream.encode(out));
        self.entries.push_back(Entry {
            request: descriptor::<S::Message>(),
            answer: descriptor::<S::Details>(),
            bytes: self.bytes.len() - start,
            ping_at: None,
            end: Some(descriptor::<S::End>()),
            pin,
            to,
        });
    }
}

const fn descriptor<M: Message + ?Sized>() -> &'static Descriptor {
    struct Of<M: ?Sized>(std::marker::PhantomData<M>);
    impl<M: Message + ?Sized> Of<M> {
        const DESCRIPTOR: &'static Descriptor = &M::DESCRIPTOR;
    }
    Of::<M>::DESCRIPTOR
}

/// The box.
#[derive(Default)]
pub(crate) struct Outbox {
    batch: Mutex<Option<Batch>>,
    pub(crate) filled: Notify,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self { batch: Mutex::new(Some(Batch::default())), filled: Notify::new() }
    }

    /// Lets `put` append; a closed box answers by dropping what it was to append.
    pub(crate) fn put(&self, put: impl FnOnce(&mut Batch)) {
        if let Some(batch) = self.lock().as_mut() {
            put(batch);
        }
        self.filled.notify_one();
    }

    /// Swaps the contents for an empty batch.
    pub(crate) fn take(&self, empty: &mut Batch) {
        debug_assert!(empty.entries.is_empty());
        empty.bytes.clear();
        if let Some(batch) = self.lock().as_mut() {
            std::mem::swap(batch, empty);
        }
    }

    /// Answers everything in it that it has not been sent.
    pub(crate) fn refuse(&self) {
        let mut refused = Batch::default();
        self.take(&mut refused);
        for entry in refused.entries {
            entry.to.done(Err(CallError::NotSent));
        }
    }

    /// Takes no more.
    pub(crate) fn close(&self) {
        self.refuse();
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Batch>> {
        self.batch.lock().unwrap_or_else(|poisoned| {
            // A caller panicked while encoding: half a frame must never reach VPP.
            self.batch.clear_poison();
            let mut batch = PoisonError::into_inner(poisoned);
            if let Some(batch) = batch.as_mut() {
                batch.bytes.truncate(batch.entries.iter().map(|entry| entry.bytes).sum());
            }
            batch
        })
    }
}
