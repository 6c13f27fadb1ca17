//! The executor for VPP: operations → requests on one connection, in order and pipelined; dumps → what VPP holds.
//!
//! Indices never outlive their connection: everything is sent for one generation or not at all, and what was in flight
//! when a connection ended is forgotten, as the engine reads everything anew after the next one is up.

mod dump;
mod ike;
mod nat;
pub(crate) mod release;
mod request;
mod srv6;
mod tasks;
mod wireguard;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_core::event::{Event, Generation, Interface, VppEvent, VppReply};
use agent_core::model::TableId;
use agent_core::plan::{OpId, VppAction, VppFailure, VppOp};
use bgp_core::Family;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use vpp_client::wire::api::interface::{SwInterfaceEvent, WantInterfaceEvents};
use vpp_client::wire::api::sr::SrReply;
use vpp_client::wire::api::wireguard::WireguardPeerEvent;
use vpp_client::{CallError, Client, ClientSettings, Completion, ConnState, Heard, Notices, Pipeline};

use request::Outcome;
use srv6::Submitted;
use tasks::{Failed, Tasks};

/// Releases whose messages we speak.
pub(crate) const VPP_RELEASES: [&str; 4] = ["25.06", "25.10", "26.02", "26.06"];

/// Requests outstanding: enough to keep the client's window full while answers are taken.
const CAPACITY: u16 = 400;
/// News of interfaces within this time are looked at together.
const SETTLE: Duration = Duration::from_millis(50);

/// See the module's text.
#[derive(Debug)]
pub(crate) struct VppExecutor {
    client: Client,
    state: watch::Receiver<ConnState>,
    notices: Notices,
    up: Option<Up>,
    /// The engine knows that there is no connection.
    told_lost: bool,
    /// Answers that need no waiting for: operations that can't be put into a request.
    refused: Vec<Event>,
    /// What another agent left is read, too.
    adopt: bool,
}

/// What belongs to one connection.
struct Up {
    client: Client,
    pipeline: Pipeline<(OpId, Wanted), Outcome>,
    dump: Option<(OpId, Task<VppReply>)>,
    tasks: Tasks,
    look: Option<Task<Vec<Interface>>>,
    look_again: bool,
    /// Looks at how WireGuard peers stand, under way.
    peers: JoinSet<Vec<(u32, bool)>>,
    /// Tables that VPP has.
    tables: BTreeSet<(TableId, Family)>,
}

/// A dump under way; it ends with its owner.
#[derive(Debug)]
struct Task<T>(JoinHandle<Result<T, CallError>>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What an operation expects of its reply.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// Success.
    Nothing,
    /// The index of the interface made.
    Interface,
    /// The number of the source made.
    Source,
    /// The number of something else.
    Index,
    /// That something is gone.
    Absence,
    /// That an interface is gone, where VPP says so in its own way.
    NoInterface,
    /// The number of the WireGuard peer made.
    Peer,
    /// A table.
    Table(TableId, Family),
    /// What SRv6 says to this.
    Sr(SrReply),
}

/// How the connection stands, for the inspection socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Connection {
    /// It is up.
    pub(crate) up: bool,
    /// VPP's release.
    pub(crate) version: String,
    /// Why it isn't up.
    pub(crate) last_error: Option<String>,
}

impl VppExecutor {
    /// Begins to connect, for as long as it takes.
    pub(crate) fn connect(socket: &Path, adopt: bool) -> Self {
        let settings = ClientSettings { required: request::required(), ..ClientSettings::default() };
        let (client, notices) = Client::connect(socket, settings);
        let mut state = client.state();
        state.mark_changed();
        Self { client, state, notices, up: None, told_lost: false, refused: Vec::new(), adopt }
    }

    /// How many more operations may be handed over now.
    pub(crate) fn free(&self) -> usize {
        self.up.as_ref().map_or(0, |up| up.pipeline.free())
    }

    /// A connection is up, as far as the engine has been told.
    pub(crate) const fn is_up(&self) -> bool {
        self.up.is_some()
    }

    /// How the connection stands.
    pub(crate) fn connection(&self) -> Connection {
        match &*self.state.borrow() {
            ConnState::Up { version, .. } => {
                Connection { up: true, version: version.to_string(), last_error: None }
            }
            ConnState::Connecting { last_error, .. } => {
                let last_error = last_error.as_ref().map(ToString::to_string);
                Connection { up: false, version: String::new(), last_error }
            }
            ConnState::Closed => Connection::default(),
        }
    }

    /// Carry out an operation. What became of it comes from [`Self::next`].
    pub(crate) fn submit(&mut self, op: VppOp) {
        let VppOp { id, action } = op;
        // Without a connection the engine has been told, or will be, that all is lost.
        let Some(up) = &mut self.up else { return };
        if action == VppAction::Dump {
            let (client, adopt) = (up.client.clone(), self.adopt);
            let read = async move {
                dump::everything(&client, adopt).await.map(|dump| VppReply::Dump(Box::new(dump)))
            };
            up.dump = Some((id, Task(tokio::spawn(read))));
            return;
        }
        if let VppAction::Ike(action) = action {
            up.tasks.spawn(id, ike::carry_out(up.client.clone(), action));
            return;
        }
        let submitted = if let VppAction::Srv6(action) = action {
            match srv6::submit(&up.pipeline, id, &action, &up.tables) {
                Ok(Submitted::Several) => {
                    up.tasks.spawn(id, srv6::carry_out(up.client.clone(), action));
                    Ok(())
                }
                Ok(Submitted::Sent) => Ok(()),
                Err(failure) => Err(failure),
            }
        } else {
            request::submit(&up.client, &up.pipeline, id, &action)
        };
        if let Err(failure) = submitted {
            self.refused.push(Event::Vpp(VppEvent::Done(id, Err(failure))));
        }
    }

    /// Wait for news. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> Vec<Event> {
        if !self.refused.is_empty() {
            return std::mem::take(&mut self.refused);
        }
        let Self { state, notices, up, client, .. } = self;
        let mut completions = Vec::new();
        let Some(connection) = up else {
            if state.changed().await.is_err() {
                // The client is closed; nothing will ever happen again.
                return std::future::pending().await;
            }
            return self.follow().into_iter().collect();
        };
        tokio::select! {
            biased;
            changed = state.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
                self.follow().into_iter().collect()
            }
            () = connection.pipeline.completions(&mut completions) => {
                for completion in &completions {
                    connection.learn(completion);
                    connection.follow_peer(completion);
                }
                completions.into_iter().filter_map(answer).collect()
            }
            Some(Ok(sessions)) = connection.peers.join_next() => {
                sessions.into_iter().map(|(peer, established)| session(peer, established)).collect()
            }
            (id, outcome) = finished(&mut connection.dump) => {
                if let Ok(VppReply::Dump(dump)) = &outcome {
                    connection.tables = dump.tables.iter().copied().collect();
                }
                let event = outcome.map_or_else(|error| failed(id, &error), |reply| Some(done(id, reply)));
                event.into_iter().collect()
            }
            (id, outcome) = connection.tasks.next() => ended(id, outcome).into_iter().collect(),
            interfaces = looked(&mut connection.look) => {
                if std::mem::take(&mut connection.look_again) {
                    connection.look();
                }
                // A failure is that of the connection, which is told by itself.
                interfaces.into_iter().map(|interfaces| Event::Vpp(VppEvent::Interfaces(interfaces))).collect()
            }
            heard = notices.next() => match heard {
                Some(Heard::Notice(notice)) => {
                    let current = client.generation() == Some(notice.generation());
                    if current && notice.read::<SwInterfaceEvent>().is_some() {
                        connection.look();
                    }
                    let peer = notice.read::<WireguardPeerEvent>().filter(|_| current);
                    let news = peer.map(|event| (event.peer_index.get(), wireguard::is_established(event.flags)));
                    news.into_iter().map(|(peer, established)| session(peer, established)).collect()
                }
                Some(Heard::Missed) => {
                    connection.look();
                    connection.peers.spawn(wireguard::look(connection.client.clone()));
                    Vec::new()
                }
                None => std::future::pending().await,
            }
        }
    }

    /// The state of the connection changed.
    fn follow(&mut self) -> Option<Event> {
        let state = self.state.borrow_and_update().clone();
        match state {
            ConnState::Up { generation, .. } => {
                let client = self.client.at(generation);
                let pipeline = client.pipeline(CAPACITY);
                let subscriber = client.clone();
                tokio::spawn(async move {
                    let request = WantInterfaceEvents::new(true, std::process::id());
                    if let Err(error) = subscriber.call(&request).await {
                        tracing::warn!(%error, "vpp sends no news of interfaces");
                    }
                });
                self.told_lost = false;
                self.up = Some(Up {
                    client,
                    pipeline,
                    dump: None,
                    tasks: Tasks::default(),
                    look: None,
                    look_again: false,
                    peers: JoinSet::new(),
                    tables: BTreeSet::new(),
                });
                Some(Event::Vpp(VppEvent::Up(Generation(generation.number()))))
            }
            // The client has logged why. The first attempt is still under way where there is no error yet.
            ConnState::Connecting { last_error, .. } => {
                let lost = self.up.take().is_some() || (last_error.is_some() && !self.told_lost);
                self.told_lost |= lost;
                lost.then_some(Event::Vpp(VppEvent::Lost))
            }
            ConnState::Closed => {
                self.up = None;
                Some(Event::Vpp(VppEvent::Lost))
            }
        }
    }

    /// From now on a panic of any thread takes leave of VPP and ends the process: VPP would otherwise be left with half a
    /// connection, of which it bears few.
    pub(crate) fn part_on_panic(&self) {
        let client = self.client.clone();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            before(info);
            client.part();
            std::process::abort();
        }));
    }

    /// Takes leave of VPP at once, blocking for a moment.
    pub(crate) fn part(&self) {
        self.client.part();
    }

    /// Let requests in flight finish, and take leave of VPP.
    pub(crate) async fn close(&self) {
        self.client.close().await;
    }
}

impl fmt::Debug for Up {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Up")
            .field("client", &self.client)
            .field("outstanding", &self.pipeline.outstanding())
            .finish()
    }
}

impl Up {
    /// A WireGuard peer was added: how its sessions come and go is to be told.
    fn follow_peer(&mut self, completion: &Completion<(OpId, Wanted), Outcome>) {
        if let ((_, Wanted::Peer), Ok(outcome)) = (&completion.tag, &completion.outcome)
            && let Ok(VppReply::Index(peer)) = outcome.read(Wanted::Peer)
        {
            self.peers.spawn(wireguard::follow(self.client.clone(), peer));
        }
    }

    /// What an answer says that later requests depend on.
    fn learn(&mut self, completion: &Completion<(OpId, Wanted), Outcome>) {
        if let ((_, wanted @ Wanted::Table(table, family)), Ok(outcome)) =
            (completion.tag, &completion.outcome)
            && outcome.read(wanted).is_ok()
        {
            self.tables.insert((table, family));
        }
    }

    /// Read the interfaces, soon.
    fn look(&mut self) {
        if self.look.is_some() {
            self.look_again = true;
            return;
        }
        let client = self.client.clone();
        self.look = Some(Task(tokio::spawn(async move {
            tokio::time::sleep(SETTLE).await;
            dump::interfaces(&client).await
        })));
    }
}

/// Waits for ever where there is none.
async fn finished(dump: &mut Option<(OpId, Task<VppReply>)>) -> (OpId, Result<VppReply, CallError>) {
    let Some((id, task)) = dump else { return std::future::pending().await };
    // A panic in the dump is a panic of ours; an abort comes only with the runtime's end.
    let outcome = (&mut task.0).await.unwrap_or(Err(CallError::Lost));
    let id = *id;
    *dump = None;
    (id, outcome)
}

async fn looked(look: &mut Option<Task<Vec<Interface>>>) -> Result<Vec<Interface>, CallError> {
    let Some(task) = look else { return std::future::pending().await };
    let outcome = (&mut task.0).await.unwrap_or(Err(CallError::Lost));
    *look = None;
    outcome
}

fn session(peer: u32, established: bool) -> Event {
    Event::Vpp(VppEvent::WireguardSession { peer, established })
}

fn done(id: OpId, reply: VppReply) -> Event {
    Event::Vpp(VppEvent::Done(id, Ok(reply)))
}

/// What a task came to; `None` where the connection is gone, which is told by itself.
fn ended(id: OpId, outcome: tasks::Outcome) -> Option<Event> {
    match outcome {
        Ok(reply) => Some(done(id, reply)),
        Err(Failed::Call(error)) => failed(id, &error),
        Err(Failed::Action(failure)) => Some(Event::Vpp(VppEvent::Done(id, Err(failure)))),
    }
}

/// `None` where the connection is gone, which is told by itself.
fn failed(id: OpId, error: &CallError) -> Option<Event> {
    let failure = match error {
        CallError::Lost | CallError::NotSent => return None,
        CallError::Timeout | CallError::Malformed(_) | CallError::Unprepared(_) => VppFailure::Unanswered,
        CallError::Missing(name) => VppFailure::Unsupported(Arc::from(name.to_string())),
        CallError::Retval(error) => request::failure(*error),
    };
    Some(Event::Vpp(VppEvent::Done(id, Err(failure))))
}

fn answer(completion: Completion<(OpId, Wanted), Outcome>) -> Option<Event> {
    let (id, wanted) = completion.tag;
    match completion.outcome {
        Ok(outcome) => Some(Event::Vpp(VppEvent::Done(id, outcome.read(wanted)))),
        Err(error) => failed(id, &error),
    }
}
