//! The embedder's end: commands, queries and the change stream, from any thread.
//!
//! A [`Handle`] is cheap to clone. Its calls cross to the speaker's thread and back, so ask for much at once where there
//! is much. When the speaker has stopped, every call answers [`Stopped`].

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use bgp_core::command::{Applied, Command, Refusal, StopMode};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::query::{PeerStatus, QueryError, RouteCursor, RouteEntry, RoutePage, RouteQuery};
use bgp_core::rib::RibEvent;
use bgp_core::speaker::{PeerEvent, Speaker, SubscriberId};
use bgp_core::time::Instant;
use bgp_core::{FamilySet, session::State};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::listen::ListenerStatus;

/// How many requests may wait for the speaker.
const REQUESTS: usize = 64;
/// How many peer events a slow listener may fall behind.
const PEER_EVENTS: usize = 1024;
/// How many routes [`Routes`] asks for at a time.
const PAGE: usize = 1000;

/// The speaker has stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the BGP speaker has stopped")]
pub struct Stopped;

/// Why a command came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The speaker refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The speaker has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why a question about routes has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutesError {
    /// The question makes no sense.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The speaker has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Something to do on the speaker's thread.
pub(crate) type Job = Box<dyn FnOnce(&mut Speaker, Instant) + Send>;

/// What a handle asks of the runtime.
pub(crate) enum Request {
    Commands(Vec<Command>, oneshot::Sender<Vec<Result<Applied, Refusal>>>),
    Ask(Job),
    Subscribe(FamilySet, oneshot::Sender<(SubscriberId, oneshot::Sender<Stopped>)>),
    Take(SubscriberId, usize, oneshot::Sender<Vec<RibEvent>>),
    Listen(Vec<SocketAddr>),
    Listeners(oneshot::Sender<Vec<ListenerStatus>>),
    Shutdown(StopMode, oneshot::Sender<Stopped>),
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commands(..) => "Commands",
            Self::Ask(_) => "Ask",
            Self::Subscribe(..) => "Subscribe",
            Self::Take(..) => "Take",
            Self::Listen(_) => "Listen",
            Self::Listeners(_) => "Listeners",
            Self::Shutdown(..) => "Shutdown",
        })
    }
}

/// The runtime's end of the handles.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) requests: mpsc::Receiver<Request>,
    pub(crate) peer_events: broadcast::Sender<PeerEvent>,
}

/// A way to a running speaker.
#[derive(Clone, Debug)]
pub struct Handle {
    instance: InstanceName,
    requests: mpsc::Sender<Request>,
    peer_events: broadcast::WeakSender<PeerEvent>,
}

pub(crate) fn channel(instance: InstanceName) -> (Handle, Requests) {
    let (requests_in, requests) = mpsc::channel(REQUESTS);
    let (peer_events, _) = broadcast::channel(PEER_EVENTS);
    let handle = Handle { instance, requests: requests_in, peer_events: peer_events.downgrade() };
    (handle, Requests { requests, peer_events })
}

impl Handle {
    /// The name of the speaker.
    #[must_use]
    pub const fn instance(&self) -> &InstanceName {
        &self.instance
    }

    /// Carries out one command.
    ///
    /// # Errors
    /// The speaker refuses it, or has stopped.
    pub async fn command(&self, command: Command) -> Result<Applied, CommandError> {
        let mut answers = self.commands(vec![command]).await?;
        Ok(answers.pop().ok_or(Stopped)??)
    }

    /// Carries out commands in their order; each is answered for itself, in the same order, and a refusal doesn't keep
    /// the next from being carried out.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn commands(&self, commands: Vec<Command>) -> Result<Vec<Result<Applied, Refusal>>, Stopped> {
        self.request(|answer| Request::Commands(commands, answer)).await
    }

    /// The neighbours and how they are.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn peers(&self) -> Result<Vec<PeerStatus>, Stopped> {
        self.ask(|speaker, now| speaker.peers(now)).await
    }

    /// One page of a table, at most `limit` routes, from where the last one ended.
    ///
    /// # Errors
    /// The question makes no sense, or the speaker has stopped.
    pub async fn route_page(
        &self,
        query: RouteQuery,
        from: Option<RouteCursor>,
        limit: usize,
    ) -> Result<RoutePage, RoutesError> {
        Ok(self.ask(move |speaker, now| speaker.routes(now, &query, from, limit)).await??)
    }

    /// All routes of a table, fetched page by page. What changes meanwhile may be seen before or after the change.
    #[must_use]
    pub fn routes(&self, query: RouteQuery) -> Routes {
        Routes { handle: self.clone(), query, next: Some(None), page: VecDeque::new() }
    }

    /// Runs a question on the speaker's thread. It must be short: sessions wait for it.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Speaker, Instant) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        self.request(|answer| {
            Request::Ask(Box::new(move |speaker, now| {
                // Nobody may be left to hear it.
                let _ = answer.send(question(speaker, now));
            }))
        })
        .await
    }

    /// Begins to follow the best paths of `families`: first all there are, then what changes.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn subscribe(&self, families: FamilySet) -> Result<Subscription, Stopped> {
        let (id, alive) = self.request(|answer| Request::Subscribe(families, answer)).await?;
        Ok(Subscription { id, requests: self.requests.clone(), waiting: None, _alive: alive })
    }

    /// Follows the states of the neighbours from now on. A listener that falls far behind is told that it
    /// [lagged](broadcast::error::RecvError::Lagged) and should ask for the [peers](Self::peers).
    ///
    /// # Errors
    /// The speaker has stopped.
    pub fn peer_events(&self) -> Result<broadcast::Receiver<PeerEvent>, Stopped> {
        self.peer_events.upgrade().map(|events| events.subscribe()).ok_or(Stopped)
    }

    /// Waits until a neighbour is in `state`.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn wait_for(&self, peer: &PeerKey, state: State) -> Result<(), Stopped> {
        loop {
            // Listens before it looks, so that nothing happens in between.
            let mut events = self.peer_events()?;
            let is_there = |peers: Vec<PeerStatus>| peers.iter().any(|p| p.key == *peer && p.state == state);
            if is_there(self.peers().await?) {
                return Ok(());
            }
            match events.recv().await {
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return Err(Stopped),
            }
        }
    }

    /// Listens at exactly these addresses from now on. Those that were listened at already go on undisturbed; sessions
    /// aren't touched.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn listen(&self, addresses: Vec<SocketAddr>) -> Result<(), Stopped> {
        self.requests.send(Request::Listen(addresses)).await.map_err(|_| Stopped)
    }

    /// Where the speaker listens, or would; waits until each address has been tried once.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn listeners(&self) -> Result<Vec<ListenerStatus>, Stopped> {
        self.request(Request::Listeners).await
    }

    /// Ends every session in this way, lets the last bytes leave (for at most two seconds) and stops the speaker. A text
    /// that is too long is cut.
    pub async fn shutdown(&self, mode: StopMode) {
        // An error means that it has stopped already.
        let _ = self.request(|answer| Request::Shutdown(mode, answer)).await;
    }

    async fn request<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Request) -> Result<T, Stopped> {
        let (answer_in, answer) = oneshot::channel();
        self.requests.send(make(answer_in)).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}

/// The routes of a table, page by page.
#[derive(Debug)]
pub struct Routes {
    handle: Handle,
    query: RouteQuery,
    /// Where the next page begins; `None` after the last.
    next: Option<Option<RouteCursor>>,
    page: VecDeque<RouteEntry>,
}

impl Routes {
    /// The next route; `None` after the last.
    ///
    /// # Errors
    /// The question makes no sense, or the speaker has stopped.
    pub async fn next(&mut self) -> Result<Option<RouteEntry>, RoutesError> {
        loop {
            if let Some(route) = self.page.pop_front() {
                return Ok(Some(route));
            }
            let Some(from) = self.next else { return Ok(None) };
            let page = self.handle.route_page(self.query.clone(), from, PAGE).await?;
            self.page = page.routes.into();
            self.next = page.next.map(Some);
        }
    }

    /// All that are left.
    ///
    /// # Errors
    /// As [`Routes::next`].
    pub async fn collect(mut self) -> Result<Vec<RouteEntry>, RoutesError> {
        let mut all = Vec::new();
        while let Some(route) = self.next().await? {
            all.push(route);
        }
        Ok(all)
    }
}

/// The change stream of one reader. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    id: SubscriberId,
    requests: mpsc::Sender<Request>,
    /// A question that was asked and not answered yet.
    waiting: Option<oneshot::Receiver<Vec<RibEvent>>>,
    /// Its end tells the runtime.
    _alive: oneshot::Sender<Stopped>,
}

impl Subscription {
    /// Waits for changes and takes at most `max` of them, merged per prefix. Nothing is lost when the future is dropped;
    /// the next call then answers with what that one was to get.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub async fn take(&mut self, max: usize) -> Result<Vec<RibEvent>, Stopped> {
        if self.waiting.is_none() {
            let place = self.requests.reserve().await.map_err(|_| Stopped)?;
            let (answer_in, answer) = oneshot::channel();
            place.send(Request::Take(self.id, max, answer_in));
            self.waiting = Some(answer);
        }
        let Some(answer) = &mut self.waiting else { return Err(Stopped) };
        let events = answer.await.map_err(|_| Stopped);
        self.waiting = None;
        events
    }
}
