//! Many requests in flight at once.
//!
//! Submitting never waits and completions are taken in batches, so one task can keep a window full while it works.
//! Each request carries a tag of the caller's; its reply is turned into an outcome where it lies in the receive
//! buffer. Nothing is allocated per request once the buffers have grown to the capacity.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use vpp_wire::{Message, ParseError, Reply, Request, Retval};

use crate::client::Client;
use crate::error::CallError;
use crate::outbox::{Answer, Sink};

/// An outcome that can be made from a reply. Called on the connection's task: keep it short.
///
/// The return value is left to the outcome, as some errors come with an answer (`IF_ALREADY_EXISTS` of a tunnel
/// names the interface). [`Retval`] is one for every reply.
pub trait FromReply<M: ?Sized>: Sized {
    /// From the reply in the receive buffer.
    fn from_reply(reply: &M) -> Self;
}

impl<M: Reply + ?Sized> FromReply<M> for Retval {
    fn from_reply(reply: &M) -> Self {
        reply.retval()
    }
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion<T, O> {
    /// The caller's.
    pub tag: T,
    /// From the reply; never [`CallError::Retval`].
    pub outcome: Result<O, CallError>,
}

/// The pipeline has as many requests outstanding as it may. The tag comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

type Decode<O> = fn(&[u8]) -> Result<O, ParseError>;

struct State<T, O> {
    outstanding: Vec<Option<(T, Decode<O>)>>,
    free: Vec<u32>,
    ready: Vec<Completion<T, O>>,
}

struct Shared<T, O> {
    state: Mutex<State<T, O>>,
    completed: Notify,
}

impl<T, O> Shared<T, O> {
    fn lock(&self) -> MutexGuard<'_, State<T, O>> {
        // Nothing under this lock panics half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send, O: Send> Sink for Shared<T, O> {
    fn details(&self, _: &[u8]) -> Result<(), ParseError> {
        Ok(())
    }

    fn done(&self, ticket: u32, outcome: Result<&[u8], CallError>) {
        let mut state = self.lock();
        let Some((tag, decode)) = state.outstanding.get_mut(ticket as usize).and_then(Option::take) else {
            return;
        };
        let outcome = outcome.and_then(|payload| decode(payload).map_err(CallError::Malformed));
        state.free.push(ticket);
        state.ready.push(Completion { tag, outcome });
        drop(state);
        self.completed.notify_one();
    }
}

/// Submits requests and collects what became of them. Made by [`Client::pipeline`].
pub struct Pipeline<T, O> {
    client: Client,
    shared: Arc<Shared<T, O>>,
    capacity: usize,
}

impl<T: Send + 'static, O: Send + 'static> Pipeline<T, O> {
    pub(crate) fn new(client: Client, capacity: u16) -> Self {
        let slots = usize::from(capacity);
        let state = State {
            outstanding: std::iter::repeat_with(|| None).take(slots).collect(),
            free: (0..u32::from(capacity)).rev().collect(),
            ready: Vec::with_capacity(slots),
        };
        Self {
            client,
            shared: Arc::new(Shared { state: Mutex::new(state), completed: Notify::new() }),
            capacity: slots,
        }
    }

    /// How many more requests may be submitted now. Completions count until they are taken.
    #[must_use]
    pub fn free(&self) -> usize {
        let state = self.shared.lock();
        state.free.len().saturating_sub(state.ready.len())
    }

    /// How many requests are submitted and not taken back as completions.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.capacity - self.free()
    }

    /// Submits a request. VPP gets the requests of all users of a client in the order submitted. What became of
    /// it, also when it cannot be sent, comes as a [`Completion`].
    ///
    /// # Errors
    /// [`Full`] when the pipeline's capacity is outstanding.
    pub fn submit<R: Request>(&self, request: &R, tag: T) -> Result<(), Full<T>>
    where
        O: FromReply<R::Reply>,
    {
        let ticket = {
            let mut state = self.shared.lock();
            if state.free.len() <= state.ready.len() {
                return Err(Full(tag));
            }
            let Some(ticket) = state.free.pop() else {
                return Err(Full(tag));
            };
            if let Some(place) = state.outstanding.get_mut(ticket as usize) {
                *place = Some((tag, |payload| R::Reply::parse(payload).map(O::from_reply)));
            }
            ticket
        };
        self.client.submit(request, Answer::new(Arc::clone(&self.shared) as Arc<dyn Sink>, ticket));
        Ok(())
    }

    /// Waits until there is a completion, then appends all there are to `out`. Mostly in the order submitted,
    /// but not where some could not be sent or were given up.
    ///
    /// Cancel safe: nothing is lost when the future is dropped.
    pub async fn completions(&self, out: &mut Vec<Completion<T, O>>) {
        loop {
            if self.try_completions(out) {
                return;
            }
            self.shared.completed.notified().await;
        }
    }

    /// Appends all completions there are to `out`; tells whether there were any.
    pub fn try_completions(&self, out: &mut Vec<Completion<T, O>>) -> bool {
        let mut state = self.shared.lock();
        let any = !state.ready.is_empty();
        out.append(&mut state.ready);
        any
    }
}
