//! The handle: calls, dumps, pipelines.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, Semaphore, oneshot, watch};
use vpp_wire::message::START;
use vpp_wire::{Cursor, Dump, Message, MessageTable, ParseError, Reply, Request, Stream, VppError};

use crate::conn::Conn;
use crate::error::CallError;
use crate::link::farewell::Lifeline;
use crate::notices::{Notices, Teller};
use crate::outbox::{Answer, Outbox, Sink};
use crate::pipeline::Pipeline;
use crate::settings::ClientSettings;
use crate::state::{ConnState, Counters, Generation, Tally};

/// What handles and the connection's task share.
pub(crate) struct Shared {
    pub(crate) outbox: Outbox,
    pub(crate) tally: Tally,
    /// Of the connection that is up, for [`Client::knows`].
    pub(crate) table: Mutex<Arc<MessageTable>>,
    pub(crate) closing: Notify,
    pub(crate) lifeline: Lifeline,
    calls: Semaphore,
}

impl Shared {
    pub(crate) fn set_table(&self, table: Arc<MessageTable>) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = table;
    }
}

/// Closes when the last handle goes.
struct Handles {
    shared: Arc<Shared>,
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.shared.closing.notify_one();
    }
}

/// A handle to the one connection to VPP. Clones share it; when the last is dropped, the client takes leave of VPP.
#[derive(Clone)]
pub struct Client {
    handles: Arc<Handles>,
    state: watch::Receiver<ConnState>,
    pin: Option<Generation>,
}

impl Client {
    /// Starts a client on the current tokio runtime. It connects to the socket at `path` for as long as it takes
    /// and as often as needed; follow it with [`Self::state`] or [`Self::ready`].
    #[must_use]
    pub fn connect(path: impl Into<PathBuf>, settings: ClientSettings) -> (Self, Notices) {
        let shared = Arc::new(Shared {
            outbox: Outbox::new(),
            tally: Tally::default(),
            table: Mutex::default(),
            closing: Notify::new(),
            lifeline: Lifeline::default(),
            calls: Semaphore::new(settings.window.requests()),
        });
        let (teller, notices) = Teller::new();
        let (state_sender, state) = watch::channel(ConnState::Connecting { attempt: 0, last_error: None });
        tokio::spawn(Conn::new(path.into(), settings, Arc::clone(&shared), teller, state_sender).run());
        (Self { handles: Arc::new(Handles { shared }), state, pin: None }, notices)
    }

    /// The state of the connection, to be followed.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<ConnState> {
        self.state.clone()
    }

    /// Waits until the connection is up; `None` when the client is closed.
    pub async fn ready(&self) -> Option<Generation> {
        let mut state = self.state.clone();
        let settled = state
            .wait_for(|state| match state {
                ConnState::Up { .. } | ConnState::Closed => true,
                ConnState::Connecting { .. } => false,
            })
            .await;
        settled.ok().and_then(|state| state.generation())
    }

    /// The generation, while connected.
    #[must_use]
    pub fn generation(&self) -> Option<Generation> {
        self.state.borrow().generation()
    }

    /// A handle whose requests go to this generation or nowhere ([`CallError::NotSent`]). To be used by everyone
    /// whose requests carry indices that VPP gave out.
    #[must_use]
    pub fn at(&self, generation: Generation) -> Self {
        Self { pin: Some(generation), ..self.clone() }
    }

    /// Whether the connected VPP has this message in this layout; `false` while not connected.
    #[must_use]
    pub fn knows<M: Message + ?Sized>(&self) -> bool {
        let table = self.shared().table.lock().unwrap_or_else(PoisonError::into_inner);
        table.id(&M::DESCRIPTOR.name).is_some()
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared().tally.snapshot()
    }

    /// Sends a request and waits for its reply; a return value other than 0 is an error.
    ///
    /// # Errors
    /// Every [`CallError`].
    pub async fn call<R: Request>(&self, request: &R) -> Result<R::Reply, CallError>
    where
        R::Reply: Copy + Send,
    {
        let reply = self.ask(request).await?;
        reply.retval().ok().map_err(CallError::Retval)?;
        Ok(reply)
    }

    /// Sends a request and waits for its reply, whatever its return value.
    ///
    /// # Errors
    /// Every [`CallError`] but `Retval`.
    pub async fn ask<R: Request>(&self, request: &R) -> Result<R::Reply, CallError>
    where
        R::Reply: Copy + Send,
    {
        let _permit = self.shared().calls.acquire().await.map_err(|_| CallError::NotSent)?;
        let (sender, receiver) = oneshot::channel();
        let sink = Arc::new(One::<R::Reply>(Mutex::new(Some(sender))));
        self.submit(request, Answer::new(sink, 0));
        receiver.await.unwrap_or(Err(CallError::Lost))
    }

    /// Sends a dump and folds its details into `into`, one by one as they arrive. `fold` runs on the connection's
    /// task, which reads nothing meanwhile: it has to be quick.
    ///
    /// # Errors
    /// Every [`CallError`] but `Retval`: what does not exist has no details.
    pub async fn dump<D: Dump, A: Send + 'static>(
        &self,
        dump: &D,
        into: A,
        fold: impl FnMut(&mut A, &D::Details) + Send + 'static,
    ) -> Result<A, CallError> {
        let _permit = self.shared().calls.acquire().await.map_err(|_| CallError::NotSent)?;
        let (sender, receiver) = oneshot::channel();
        let details = std::marker::PhantomData::<fn(&D::Details)>;
        let folding = Folding { into, fold, end: |_| Ok(()), sender, details };
        let sink = Arc::new(Fold(Mutex::new(Some(folding))));
        let to = Answer::new(sink, 0);
        self.shared().outbox.put(|batch| batch.dump(dump, self.pin, to));
        receiver.await.unwrap_or(Err(CallError::Lost)).map(|(into, ..)| into)
    }

    /// Sends a stream, again and again where VPP left off, and folds its details into `into`; as [`Self::dump`], but others
    /// are served in between.
    ///
    /// # Errors
    /// Every [`CallError`].
    pub async fn stream<S: Stream + Clone, A: Send + 'static>(
        &self,
        stream: &S,
        into: A,
        fold: impl FnMut(&mut A, &S::Details) + Send + 'static,
    ) -> Result<A, CallError> {
        let _permit = self.shared().calls.acquire().await.map_err(|_| CallError::NotSent)?;
        let (mut stream, mut state) = (stream.clone(), (into, fold));
        let mut cursor = START;
        loop {
            stream.set_cursor(cursor);
            let (sender, receiver) = oneshot::channel();
            let details = std::marker::PhantomData::<fn(&S::Details)>;
            let end = |payload: &[u8]| S::End::parse(payload).map(|end| (end.retval(), end.cursor()));
            let folding = Folding { into: state.0, fold: state.1, end, sender, details };
            let to = Answer::new(Arc::new(Fold(Mutex::new(Some(folding)))), 0);
            self.shared().outbox.put(|batch| batch.stream(&stream, self.pin, to));
            let (into, fold, (retval, next)) = receiver.await.unwrap_or(Err(CallError::Lost))?;
            match retval.ok() {
                // A cursor that stands still would ask for the same for ever.
                Err(VppError::EAGAIN) if next != cursor => cursor = next,
                Err(error) => return Err(CallError::Retval(error)),
                Ok(()) => return Ok(into),
            }
            state = (into, fold);
        }
    }

    /// Of a request that releases know in different forms, sends the one that this VPP has: `newer`, or else `older`.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn call_either<N: Request, O: Request<Reply = N::Reply>>(
        &self,
        newer: &N,
        older: &O,
    ) -> Result<N::Reply, CallError>
    where
        N::Reply: Copy + Send,
    {
        if self.knows::<N::Message>() { self.call(newer).await } else { self.call(older).await }
    }

    /// Sends a dump and collects copies of its details.
    ///
    /// # Errors
    /// As [`Self::dump`].
    pub async fn dump_all<D: Dump>(&self, dump: &D) -> Result<Vec<D::Details>, CallError>
    where
        D::Details: Copy + Send,
    {
        self.dump(dump, Vec::new(), |all, details| all.push(*details)).await
    }

    /// A pipeline for up to `capacity` requests outstanding; twice the window keeps the window full. `T` is the
    /// caller's tag, `O` what it wants to know from replies.
    #[must_use]
    pub fn pipeline<T: Send + 'static, O: Send + 'static>(&self, capacity: u16) -> Pipeline<T, O> {
        Pipeline::new(self.clone(), capacity)
    }

    /// Takes leave: nothing new is sent, what is in flight may finish, then VPP is told, and its farewell awaited.
    /// Returns when the connection is gone, within twice [`ClientSettings::farewell`].
    pub async fn close(&self) {
        self.shared().closing.notify_one();
        let mut state = self.state.clone();
        // An error means that the task has ended, which is as good.
        let _ = state.wait_for(|state| matches!(state, ConnState::Closed)).await;
    }

    /// Takes leave at once, from any thread, blocking for less than half a second: for a panic hook, where
    /// nothing will be awaited any more. Requests in flight are lost.
    pub fn part(&self) {
        self.shared().closing.notify_one();
        self.shared().lifeline.part();
    }

    pub(crate) fn submit<R: Request>(&self, request: &R, to: Answer) {
        self.shared().outbox.put(|batch| batch.request(request, self.pin, to));
    }

    fn shared(&self) -> &Shared {
        &self.handles.shared
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("state", &*self.state.borrow()).field("pin", &self.pin).finish()
    }
}

/// Waits for one reply.
struct One<M>(Mutex<Option<oneshot::Sender<Result<M, CallError>>>>);

impl<M: Reply + Copy + Send> Sink for One<M> {
    fn details(&self, _: &[u8]) -> Result<(), ParseError> {
        Ok(())
    }

    fn done(&self, _: u32, outcome: Result<&[u8], CallError>) {
        let outcome = outcome.and_then(|payload| M::parse(payload).copied().map_err(CallError::Malformed));
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // The caller may have stopped waiting.
            let _ = sender.send(outcome);
        }
    }
}

struct Folding<A, F, E, M: ?Sized> {
    into: A,
    fold: F,
    end: fn(&[u8]) -> Result<E, ParseError>,
    sender: oneshot::Sender<Result<(A, F, E), CallError>>,
    details: std::marker::PhantomData<fn(&M)>,
}

/// Folds details, and takes from the message behind them what a stream needs to know.
struct Fold<A, F, E, M: ?Sized>(Mutex<Option<Folding<A, F, E, M>>>);

impl<A: Send, F: FnMut(&mut A, &M) + Send, E: Send, M: Message + ?Sized> Sink for Fold<A, F, E, M> {
    fn details(&self, payload: &[u8]) -> Result<(), ParseError> {
        let details = M::parse(payload)?;
        if let Some(folding) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            (folding.fold)(&mut folding.into, details);
        }
        Ok(())
    }

    fn done(&self, _: u32, outcome: Result<&[u8], CallError>) {
        if let Some(folding) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let end = outcome.and_then(|payload| (folding.end)(payload).map_err(CallError::Malformed));
            // The caller may have stopped waiting.
            let _ = folding.sender.send(end.map(|end| (folding.into, folding.fold, end)));
        }
    }
}
