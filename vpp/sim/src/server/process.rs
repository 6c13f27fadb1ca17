//! One simulated VPP process after the other: the core that is alive now, the faults it is to have, who is connected.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Notify, watch};
use vpp_wire::frame::{self, Cut, HEADER};

use crate::clients::{ConnId, Outbox};
use crate::faults::{FaultPlan, Verdict, When};
use crate::options::SimOptions;
use crate::state::State;
use crate::vpp::{Death, Outcome, Vpp};

/// Output of one connection that is written before more of its requests are carried out, in bytes.
const ENOUGH: usize = 256 * 1024;

/// Events and misdirected answers kept for a connection that does not read, in bytes. A real VPP drops them too.
const PENDING_LIMIT: usize = 1 << 20;

/// So many sockets closed without a goodbye, after a socket was found full, stop a real VPP.
const FATAL_LEAKS: u32 = 16;

/// Numbers of a simulated VPP, published after each batch of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Which process this is, from 1; each restart adds one.
    pub generation: u64,
    /// Whether the process lives. A dead one has no socket and no state.
    pub alive: bool,
    /// Whether it serves nobody, although it lives.
    pub hung: bool,
    /// Connections that did the handshake.
    pub clients: usize,
    /// Requests and dumps seen by all processes, pings and handshakes included, faults or not.
    pub requests: u64,
    /// Prefixes in all tables, the built-in ones included.
    pub routes: usize,
    /// Interfaces, `local0` included.
    pub interfaces: usize,
}

/// What the tasks wait for besides their sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Whether there shall be a listening socket.
    pub(crate) listening: bool,
    /// Whether nobody is served.
    pub(crate) hung: bool,
    /// Whether the handle is gone and every task ends.
    pub(crate) over: bool,
}

/// A connection, as the others see it.
struct Connected {
    pending: Vec<u8>,
    wake: Arc<Notify>,
    closed: bool,
}

struct Inner {
    vpp: Option<Vpp>,
    faults: FaultPlan,
    connections: BTreeMap<ConnId, Connected>,
    next_connection: u64,
    generation: u64,
    requests: u64,
    death: Option<Death>,
    found_full: bool,
    leaked: u32,
}

/// What all tasks of one simulator share.
pub(crate) struct Process {
    options: SimOptions,
    inner: Mutex<Inner>,
    stats: watch::Sender<Stats>,
    life: watch::Sender<Life>,
}

/// What a connection does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Write the answers, then read on.
    Read,
    /// Write the answers, then carry out what else was read.
    Again,
    /// Write the answers, then wait this long and carry out the next request whatever the faults say.
    Wait(Duration),
    /// Wait until the process serves again.
    Hang,
    /// Write the answers and close.
    Close,
}

impl Process {
    /// A process with the state its options give it.
    pub(crate) fn new(options: SimOptions) -> Self {
        let vpp = Vpp::new(&options, 1);
        let process = Self {
            options,
            inner: Mutex::new(Inner {
                vpp: Some(vpp),
                faults: FaultPlan::default(),
                connections: BTreeMap::new(),
                next_connection: 1,
                generation: 1,
                requests: 0,
                death: None,
                found_full: false,
                leaked: 0,
            }),
            stats: watch::Sender::default(),
            life: watch::Sender::new(Life { listening: true, hung: false, over: false }),
        };
        process.publish(&process.lock());
        process
    }

    /// The options it was started with.
    pub(crate) fn options(&self) -> &SimOptions {
        &self.options
    }

    /// Follows the numbers.
    pub(crate) fn stats(&self) -> watch::Receiver<Stats> {
        self.stats.subscribe()
    }

    /// Follows life and death.
    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    /// Why the last process that died did.
    pub(crate) fn death(&self) -> Option<Death> {
        self.lock().death.clone()
    }

    /// Does something with the faults.
    pub(crate) fn with_faults<T>(&self, act: impl FnOnce(&mut FaultPlan) -> T) -> T {
        act(&mut self.lock().faults)
    }

    /// Looks at the core; `None` while the process is dead.
    pub(crate) fn with_vpp<T>(&self, look: impl FnOnce(&Vpp) -> T) -> Option<T> {
        self.lock().vpp.as_ref().map(look)
    }

    /// Something happens to the core without a client's doing.
    pub(crate) fn happen(&self, what: impl FnOnce(&mut State)) {
        let mut inner = self.lock();
        let Inner { vpp, connections, .. } = &mut *inner;
        let Some(vpp) = vpp else { return };
        let (mut nobody, mut others) = (Vec::new(), Vec::new());
        vpp.happen(what, &mut Outbox::new(ConnId(0), &mut nobody, &mut others));
        for (to, bytes) in others {
            deliver(connections, to, &bytes);
        }
        self.publish(&inner);
    }

    /// A new connection. `None` when nobody listens.
    pub(crate) fn connected(&self) -> Option<(ConnId, Arc<Notify>)> {
        let mut inner = self.lock();
        inner.vpp.as_ref()?;
        let id = ConnId(inner.next_connection);
        inner.next_connection += 1;
        let wake = Arc::new(Notify::new());
        inner
            .connections
            .insert(id, Connected { pending: Vec::new(), wake: Arc::clone(&wake), closed: false });
        Some((id, wake))
    }

    /// A connection has ended.
    pub(crate) fn disconnected(&self, id: ConnId) {
        let mut inner = self.lock();
        let Some(connection) = inner.connections.remove(&id) else { return };
        let unclean = inner.vpp.as_mut().is_some_and(|vpp| vpp.disconnected(id));
        if unclean && !connection.closed && inner.found_full && self.options.leaks {
            inner.leaked += 1;
            let leaked = inner.leaked;
            tracing::warn!(
                leaked,
                fatal = FATAL_LEAKS,
                "a client left without sockclnt_delete after a socket was full: VPP leaks the descriptor"
            );
            if leaked >= FATAL_LEAKS {
                tracing::error!(
                    "VPP's main thread spins on {leaked} leaked sockets: nothing is served until it is restarted"
                );
                self.life.send_modify(|life| life.hung = true);
            }
        }
        self.publish(&inner);
    }

    /// Whether the process has closed this connection.
    pub(crate) fn is_closed(&self, id: ConnId) -> bool {
        self.lock().connections.get(&id).is_none_or(|connection| connection.closed)
    }

    /// A connection could not write at once.
    pub(crate) fn found_full(&self) {
        self.lock().found_full = true;
    }

    /// Carries out what is whole at the start of `input`, and removes it; answers go to `output`.
    pub(crate) fn work(&self, id: ConnId, input: &mut Vec<u8>, output: &mut Vec<u8>, judged: bool) -> Step {
        let mut inner = self.lock();
        let mut used = 0;
        let step = self.serve(&mut inner, id, input, &mut used, output, judged);
        input.drain(..used);
        self.publish(&inner);
        step
    }

    fn serve(
        &self,
        inner: &mut MutexGuard<'_, Inner>,
        id: ConnId,
        input: &[u8],
        used: &mut usize,
        output: &mut Vec<u8>,
        mut judged: bool,
    ) -> Step {
        let hung = self.life.borrow().hung;
        let mut others = Vec::new();
        loop {
            let Inner { vpp: Some(vpp), faults, connections, requests, .. } = &mut **inner else {
                return Step::Close;
            };
            match connections.get_mut(&id) {
                Some(connection) if !connection.closed => output.append(&mut connection.pending),
                _ => return Step::Close,
            }
            if hung {
                return Step::Hang;
            }
            if output.len() >= ENOUGH {
                return Step::Again;
            }
            let rest = input.get(*used..).unwrap_or(&[]);
            let payload = match frame::cut(rest) {
                Ok(Cut::Frame(payload)) => payload,
                Ok(Cut::Need(_)) => return Step::Read,
                // it waits for that many bytes, and dies of what comes meanwhile
                Err(_) if rest.len() <= HEADER => return Step::Read,
                Err(error) => {
                    tracing::debug!(%error);
                    self.die(inner, Death::EndlessFrame);
                    return Step::Close;
                }
            };
            let name = vpp.name_of(payload);
            let verdict = match name {
                Some(name) if !judged && !faults.is_empty() => faults.judge(name),
                _ => Verdict::Serve,
            };
            if let Verdict::Wait(time) = verdict {
                return Step::Wait(time);
            }
            judged = false;
            *used += HEADER + payload.len();
            *requests += u64::from(name.is_some());
            let before = output.len();
            let mut outbox = Outbox::new(id, output, &mut others);
            let outcome = match verdict {
                Verdict::Serve
                | Verdict::Wait(_)
                | Verdict::Drop(When::After)
                | Verdict::Restart(When::After) => vpp.carry_out(payload, &mut outbox),
                Verdict::Refuse(retval) => {
                    vpp.refuse(payload, retval, &mut outbox);
                    Outcome::Served
                }
                Verdict::Swallow | Verdict::Drop(When::Before) | Verdict::Restart(When::Before) => {
                    Outcome::Served
                }
            };
            for (to, bytes) in others.drain(..) {
                deliver(connections, to, &bytes);
            }
            match verdict {
                Verdict::Drop(_) => {
                    output.truncate(before);
                    // VPP's own doing: nothing leaks
                    if let Some(own) = connections.get_mut(&id) {
                        own.closed = true;
                    }
                    return Step::Close;
                }
                Verdict::Restart(_) => {
                    output.truncate(before);
                    self.end(inner);
                    self.begin(inner);
                    return Step::Close;
                }
                Verdict::Serve | Verdict::Wait(_) | Verdict::Refuse(_) | Verdict::Swallow => {}
            }
            match outcome {
                Outcome::Served => {}
                Outcome::Healed => (inner.found_full, inner.leaked) = (false, 0),
                Outcome::Goodbye(other) if other == id => return Step::Close,
                Outcome::Goodbye(other) => {
                    if let Some(other) = connections.get_mut(&other) {
                        other.closed = true;
                        other.wake.notify_one();
                    }
                }
                Outcome::Died(death) => {
                    self.die(inner, death);
                    return Step::Close;
                }
            }
        }
    }

    /// Ends the process and starts the next, with the state its options give it.
    pub(crate) fn restart(&self) {
        let mut inner = self.lock();
        self.end(&mut inner);
        self.begin(&mut inner);
        self.publish(&inner);
    }

    /// Ends the process. Its socket goes too.
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        self.end(&mut inner);
        self.life.send_modify(|life| life.listening = false);
        self.publish(&inner);
    }

    /// Starts a process if there is none.
    pub(crate) fn start(&self) {
        let mut inner = self.lock();
        if inner.vpp.is_none() {
            self.begin(&mut inner);
            self.publish(&inner);
        }
    }

    /// Serves nobody from now on, or everybody again.
    pub(crate) fn hang(&self, hung: bool) {
        self.life.send_modify(|life| life.hung = hung);
        self.publish(&self.lock());
    }

    /// Ends every task.
    pub(crate) fn shut_down(&self) {
        self.stop();
        self.life.send_modify(|life| life.over = true);
    }

    fn die(&self, inner: &mut MutexGuard<'_, Inner>, death: Death) {
        tracing::error!(%death, "a real VPP would be dead now, and so is this one: all state is lost");
        inner.death = Some(death);
        self.end(inner);
        if self.options.respawn {
            self.begin(inner);
        } else {
            self.life.send_modify(|life| life.listening = false);
        }
    }

    fn end(&self, inner: &mut MutexGuard<'_, Inner>) {
        inner.vpp = None;
        for connection in inner.connections.values_mut() {
            connection.closed = true;
            connection.wake.notify_one();
        }
    }

    fn begin(&self, inner: &mut MutexGuard<'_, Inner>) {
        inner.generation += 1;
        inner.vpp = Some(Vpp::new(&self.options, inner.generation));
        inner.found_full = false;
        inner.leaked = 0;
        tracing::info!(generation = inner.generation, "a new process with empty state");
        self.life.send_modify(|life| (life.listening, life.hung) = (true, false));
    }

    fn publish(&self, inner: &MutexGuard<'_, Inner>) {
        let hung = self.life.borrow().hung;
        let counts = inner.vpp.as_ref().map_or((0, 0, 0), Vpp::counts);
        let stats = Stats {
            generation: inner.generation,
            alive: inner.vpp.is_some(),
            hung,
            clients: counts.0,
            routes: counts.1,
            interfaces: counts.2,
            requests: inner.requests,
        };
        self.stats.send_if_modified(|old| std::mem::replace(old, stats) != stats);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // a panic in a handler ends one connection; the state is as good as it was
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves bytes for a connection, which writes them when it wakes.
fn deliver(connections: &mut BTreeMap<ConnId, Connected>, to: ConnId, bytes: &[u8]) {
    if let Some(connection) = connections.get_mut(&to)
        && connection.pending.len() + bytes.len() <= PENDING_LIMIT
    {
        connection.pending.extend_from_slice(bytes);
        connection.wake.notify_one();
    }
}
