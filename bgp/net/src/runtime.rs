//! The speaker task: one loop, one sleep, and the only place that calls the speaker.
//!
//! Each turn looks at what must not wait (connections that come and go, requests), then at the clock, then at received
//! messages, then at long work, then at writers that want UPDATEs, each in slices of at most [`SLICE`]; then it lets the
//! other tasks have theirs. What a session itself has to say, a KEEPALIVE above all, is written at once. It sleeps only
//! when nothing is left. It never waits for anyone: it writes what the system has room for and leaves the rest to the
//! connection's writer, and an answer goes into a place that was made for it. So a change of one prefix costs three system
//! calls: to wait, to read, to write.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use bgp_core::command::{Applied, Command, Refusal, StopMode};
use bgp_core::outbox::Outbox;
use bgp_core::peer_key::ConnId;
use bgp_core::rib::RibEvent;
use bgp_core::session::{ConnectError, Direction, Link};
use bgp_core::speaker::{Input, Output, Speaker, SpeakerSettings, SubscriberId};
use bgp_core::time::Instant;
use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{self, sleep_until};

use crate::conn::{CLOSE_DEADLINE, ConnHandle};
use crate::dial::{self, Attempt};
use crate::doors::Doors;
use crate::event::{Event, INBOUND, Inbound, Inlet, Outlet, queues};
use crate::farewell::Farewells;
use crate::handle::{Request, Requests, Stopped};
use crate::listen::{Listener, ListenerState};
use crate::reading::Reading;
use crate::{auth, socket};

/// How long one kind of work may keep the others waiting.
const SLICE: Duration = Duration::from_millis(2);

/// How many octets a writer is given at a time. Enough to keep a fast connection busy, and little enough that a
/// KEEPALIVE doesn't wait long behind it.
const BATCH: usize = 128 * 1024;

/// How many destinations of long work are asked for between two looks at the clock: about a tenth of a slice.
const UNITS: usize = 2048;

/// How many events a subscriber is given at a time, whatever it asks for.
const TAKEN_AT_ONCE: usize = 4096;

/// How many events are looked at in a turn.
const AT_ONCE: usize = 64;

/// How many read buffers are kept when a timer goes off.
const KEPT_BUFFERS: usize = 1;

/// Runs a speaker until it is shut down or all handles are gone.
pub(crate) async fn run(settings: SpeakerSettings, listen: Vec<SocketAddr>, requests: Requests) {
    let mut runtime = Runtime::new(settings, requests);
    runtime.listen(listen);
    runtime.run().await;
}

struct Runtime {
    speaker: Speaker,
    clock: Clock,
    out: Outbox<Output>,
    conns: BTreeMap<ConnId, ConnHandle>,
    /// Connections for which there may be something to write, in the order in which they asked. Each takes a while, since
    /// there may be UPDATEs to be made first.
    hungry: VecDeque<ConnId>,
    /// Memory for the next batch.
    batch: Vec<Bytes>,
    attempts: BTreeMap<ConnId, Attempt>,
    listeners: Vec<Listener>,
    accepted: u64,
    farewells: Farewells,
    /// Who may connect, and the version of the speaker's list that says so.
    doors: Doors,
    doors_version: u64,
    inlet: Inlet,
    outlet: Outlet,
    requests: Requests,
    /// The received messages that are being passed in.
    reading: Option<Reading>,
    /// The commands that are being carried out.
    commands: Option<Commands>,
    /// Subscribers that wait for something to take.
    waiting: BTreeMap<SubscriberId, Waiting>,
    shutdown: Option<Shutdown>,
}

struct Commands {
    left: std::vec::IntoIter<Command>,
    answers: Vec<Result<Applied, Refusal>>,
    reply: oneshot::Sender<Vec<Result<Applied, Refusal>>>,
}

struct Waiting {
    max: usize,
    reply: oneshot::Sender<Vec<RibEvent>>,
}

struct Shutdown {
    until: time::Instant,
    /// Dropped with the runtime, which is the answer.
    _reply: Option<oneshot::Sender<Stopped>>,
}

/// The speaker's time: since the runtime began.
#[derive(Debug)]
struct Clock(time::Instant);

impl Clock {
    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn at(&self, instant: Instant) -> time::Instant {
        self.0 + Duration::from_nanos(instant.as_nanos())
    }
}

impl Runtime {
    fn new(settings: SpeakerSettings, requests: Requests) -> Self {
        let (inlet, outlet) = queues();
        Self {
            speaker: Speaker::new(settings),
            clock: Clock(time::Instant::now()),
            out: Outbox::new(),
            conns: BTreeMap::new(),
            hungry: VecDeque::new(),
            batch: Vec::new(),
            attempts: BTreeMap::new(),
            listeners: Vec::new(),
            accepted: 0,
            farewells: Farewells::default(),
            doors: Doors::default(),
            doors_version: 0,
            inlet,
            outlet,
            requests,
            reading: None,
            commands: None,
            waiting: BTreeMap::new(),
            shutdown: None,
        }
    }

    async fn run(mut self) {
        let sleep = sleep_until(self.clock.0);
        tokio::pin!(sleep);
        loop {
            self.take_events();
            self.take_requests();
            if self.has_ended() {
                return;
            }
            if self.speaker.deadline().is_some_and(|at| at <= self.clock.now()) {
                self.tick().await;
            }
            self.take_inbound();
            self.work();
            self.feed();
            if self.has_more() {
                tokio::task::yield_now().await;
                continue;
            }
            let deadline = self.deadline();
            if let Some(at) = deadline
                && sleep.deadline() != at
            {
                sleep.as_mut().reset(at);
            }
            // Every branch takes something out of a queue and hands it over at once, so that none is lost.
            tokio::select! {
                biased;
                Some(event) = self.outlet.events.recv() => self.event(event),
                request = self.requests.requests.recv(), if self.shutdown.is_none() => match request {
                    Some(request) => self.request(request),
                    None => self.begin_shutdown(StopMode::Notify(String::new()), None),
                },
                Some(inbound) = self.outlet.inbound.recv() => self.inbound(inbound),
                () = &mut sleep, if deadline.is_some() => {}
            }
        }
    }

    /// Whether there is something to do without waiting.
    fn has_more(&self) -> bool {
        self.commands.is_some()
            || !self.hungry.is_empty()
            || self.reading.is_some()
            || self.speaker.has_work()
            || !self.outlet.events.is_empty()
            || !self.outlet.inbound.is_empty()
            || (self.shutdown.is_none() && !self.requests.requests.is_empty())
    }

    /// When something is due even if nothing happens.
    fn deadline(&self) -> Option<time::Instant> {
        let speaker = self.speaker.deadline().map(|at| self.clock.at(at));
        let shutdown = self.shutdown.as_ref().map(|shutdown| shutdown.until);
        [speaker, shutdown].into_iter().flatten().min()
    }
}

/// One turn: what came in.
impl Runtime {
    fn take_events(&mut self) {
        if self.outlet.events.is_empty() {
            return;
        }
        let started = time::Instant::now();
        for _ in 0..AT_ONCE {
            let Ok(event) = self.outlet.events.try_recv() else { break };
            self.event(event);
            if started.elapsed() >= SLICE {
                break;
            }
        }
    }

    fn take_requests(&mut self) {
        if self.commands.is_none() && self.requests.requests.is_empty() {
            return;
        }
        let started = time::Instant::now();
        self.carry_on_commands(started);
        while self.commands.is_none() && started.elapsed() < SLICE {
            let Ok(request) = self.requests.requests.try_recv() else { break };
            self.request(request);
            self.carry_on_commands(started);
        }
    }

    fn take_inbound(&mut self) {
        if self.reading.is_none() && self.outlet.inbound.is_empty() {
            return;
        }
        let started = time::Instant::now();
        self.read_on(started);
        for _ in 0..INBOUND {
            if self.reading.is_some() || self.outlet.inbound.is_empty() || started.elapsed() >= SLICE {
                break;
            }
            let Ok(inbound) = self.outlet.inbound.try_recv() else { break };
            self.inbound(inbound);
            self.read_on(started);
        }
    }

    /// Goes on passing in the messages of a buffer, if there is one, until the slice is over.
    fn read_on(&mut self, started: time::Instant) {
        let Some(mut reading) = self.reading.take() else { return };
        let conn = reading.conn();
        if self.conns.get(&conn).is_some_and(|handle| !handle.is_closing()) {
            while !reading.is_done() {
                let messages = reading.piece();
                self.speaker.handle(self.clock.now(), Input::Received { conn, messages }, &mut self.out);
                // A single message is the usual case, and a look at the clock costs as much as a prefix.
                if !reading.is_done() && started.elapsed() >= SLICE {
                    break;
                }
            }
            // Only now, so that writers find as much as possible to put into one batch.
            self.carry_out();
            if !reading.is_done() && self.conns.get(&conn).is_some_and(|handle| !handle.is_closing()) {
                self.reading = Some(reading);
                return;
            }
        }
        if let Some(handle) = self.conns.get(&conn) {
            handle.delivered();
        }
        self.inlet.pool.give_back(reading.into_buffer());
    }

    fn work(&mut self) {
        if !self.speaker.has_work() {
            return;
        }
        let started = time::Instant::now();
        loop {
            self.speaker.work(self.clock.now(), UNITS, &mut self.out);
            self.carry_out();
            if started.elapsed() >= SLICE || !self.speaker.has_work() {
                break;
            }
        }
    }

    /// Timers go off. Words that have arrived but weren't heard count as heard, so before a neighbour is lost for its
    /// silence, readers get a look at their sockets: several turns, as a tokio runtime gives a task its next one after
    /// about sixty others.
    async fn tick(&mut self) {
        let now = self.clock.now();
        let silent = self.speaker.silent(now);
        if !silent.is_empty() {
            for _ in 0..2 + self.conns.len() / 32 {
                tokio::task::yield_now().await;
            }
        }
        for conn in silent {
            if self.conns.get(&conn).is_some_and(|handle| handle.has_unread() && !handle.is_closing()) {
                self.speaker.handle(now, Input::Unread { conn }, &mut self.out);
            }
        }
        self.speaker.handle(now, Input::Tick, &mut self.out);
        self.carry_out();
        self.open_doors();
        // Now and then, rather than whenever there is nothing to do: new memory is dear, and many neighbours may speak
        // in turn.
        self.inlet.pool.trim(KEPT_BUFFERS);
    }

    /// Tells the listeners who may connect, if that has changed.
    fn open_doors(&mut self) {
        let version = self.speaker.doors_version();
        if std::mem::replace(&mut self.doors_version, version) != version {
            self.doors.set(self.speaker.doors());
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.speaker.handle(self.clock.now(), input, &mut self.out);
        self.carry_out();
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Accepted(stream, remote) => self.accepted(stream, remote),
            // An attempt that was given up may have come to an end already; the speaker knows nothing of it any more.
            Event::Connected(conn, stream) => {
                if self.attempts.remove(&conn).is_some() {
                    match (stream.local_addr(), stream.peer_addr()) {
                        (Ok(local), Ok(remote)) => {
                            self.start(conn, stream, remote.ip());
                            let link = Link { local, remote, direction: Direction::Active };
                            self.handle(Input::Connected { conn, link });
                        }
                        (Err(error), _) | (_, Err(error)) => {
                            let reason = ConnectError::Remote(error.kind());
                            self.handle(Input::ConnectFailed { conn, reason });
                        }
                    }
                }
            }
            Event::ConnectFailed(conn, reason) => {
                if self.attempts.remove(&conn).is_some() {
                    self.handle(Input::ConnectFailed { conn, reason });
                }
            }
            Event::Written(conn) => {
                if let Some(handle) = self.conns.get_mut(&conn) {
                    handle.written();
                }
                self.woken(conn);
            }
            Event::Unsubscribed(id) => {
                self.waiting.remove(&id);
                self.speaker.unsubscribe(id);
            }
        }
    }

    /// A neighbour has connected: it is heard if it is expected, and if its connection can be what it has to be.
    fn accepted(&mut self, stream: TcpStream, remote: SocketAddr) {
        let Ok(local) = stream.local_addr() else { return };
        let link = Link { local, remote, direction: Direction::Passive };
        let transport = self.speaker.welcome(&link).filter(|_| self.shutdown.is_none());
        let Some(transport) = transport else {
            socket::abandon(&stream);
            return;
        };
        if let Some(min) = transport.min_ttl
            && let Some(ttl) = auth::first_ttl(stream.as_fd())
            && ttl < min.get()
        {
            tracing::debug!(%remote, ttl, %min, "a connection from too far away");
            socket::abandon(&stream);
            return;
        }
        if let Err(error) = auth::protect(&stream, &transport) {
            tracing::warn!(%remote, "a connection is refused: {error}");
            socket::abandon(&stream);
            return;
        }
        let conn = ConnId::accepted(self.accepted);
        self.accepted += 1;
        self.start(conn, stream, remote.ip());
        self.handle(Input::Accepted { conn, link });
    }

    fn inbound(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Messages(conn, buffer) => {
                self.reading = Some(Reading::new(conn, buffer));
            }
            Inbound::Closed(conn, reason) => {
                if self.conns.get(&conn).is_some_and(|handle| !handle.is_closing()) {
                    self.handle(Input::Closed { conn, reason });
                }
                if let Some(handle) = self.conns.get_mut(&conn) {
                    handle.close(Vec::new());
                }
            }
            Inbound::Gone(conn) => {
                if let Some(handle) = self.conns.remove(&conn) {
                    self.farewells.end(conn, handle.remote());
                }
            }
        }
    }

    fn request(&mut self, request: Request) {
        match request {
            Request::Commands(commands, reply) => {
                let answers = Vec::with_capacity(commands.len());
                self.commands = Some(Commands { left: commands.into_iter(), answers, reply });
            }
            Request::Ask(job) => job(&mut self.speaker, self.clock.now()),
            Request::Subscribe(families, reply) => {
                let id = self.speaker.subscribe(families);
                let (alive, end) = oneshot::channel::<Stopped>();
                let events = self.inlet.events.clone();
                tokio::spawn(async move {
                    // Never sent: what counts is that the subscription drops it.
                    let _ = end.await;
                    let _ = events.send(Event::Unsubscribed(id)).await;
                });
                let _ = reply.send((id, alive));
            }
            Request::Take(id, max, reply) => {
                let max = max.min(TAKEN_AT_ONCE);
                self.waiting.insert(id, Waiting { max, reply });
                self.answer(id);
            }
            Request::Listen(addresses) => self.listen(addresses),
            Request::Listeners(reply) => {
                let mut states: Vec<_> = self.listeners.iter().map(Listener::watch).collect();
                let statuses: Vec<_> = self.listeners.iter().map(Listener::status).collect();
                tokio::spawn(async move {
                    let mut statuses = statuses;
                    for (status, state) in statuses.iter_mut().zip(&mut states) {
                        // An error means that the listener is no more; then its last state is the answer.
                        if let Ok(state) = state.wait_for(|state| *state != ListenerState::Starting).await {
                            status.state = state.clone();
                        }
                    }
                    let _ = reply.send(statuses);
                });
            }
            Request::Shutdown(mode, reply) => self.begin_shutdown(mode, Some(reply)),
        }
    }

    /// Goes on with the commands that are being carried out, if there are any, until the slice is over.
    fn carry_on_commands(&mut self, started: time::Instant) {
        let Some(mut commands) = self.commands.take() else { return };
        let now = self.clock.now();
        for command in commands.left.by_ref() {
            commands.answers.push(self.speaker.command(now, command, &mut self.out));
            self.carry_out();
            if started.elapsed() >= SLICE {
                break;
            }
        }
        // Before the answer: who has it may rely on what it says.
        self.open_doors();
        if commands.left.len() == 0 {
            let _ = commands.reply.send(commands.answers);
        } else {
            self.commands = Some(commands);
        }
    }
}

/// One turn: what comes of it.
impl Runtime {
    fn carry_out(&mut self) {
        while let Some(output) = self.out.pop() {
            match output {
                Output::Dial { conn, peer, transport } => {
                    if self.shutdown.is_none() {
                        tracing::debug!(%peer, %conn, "connecting");
                        self.attempts.insert(conn, dial::start(conn, transport, &self.inlet));
                    }
                }
                Output::Close { conn } => {
                    self.attempts.remove(&conn);
                    self.close(conn);
                }
                Output::Wake { conn } => self.woken(conn),
                Output::Peer(event) => {
                    // Nobody may be listening.
                    let _ = self.requests.peer_events.send(event);
                }
                Output::RibReady(id) => self.answer(id),
            }
        }
    }

    /// There is something for a writer, which it is given in its turn; but a word of the session goes at once.
    fn woken(&mut self, conn: ConnId) {
        if self.speaker.has_word(conn) {
            self.fill(conn, 0);
        } else {
            self.hungry.push_back(conn);
        }
    }

    /// Writes what there is for idle writers, until the slice is over.
    fn feed(&mut self) {
        if self.hungry.is_empty() {
            return;
        }
        let started = time::Instant::now();
        while let Some(conn) = self.hungry.pop_front() {
            self.fill(conn, BATCH);
            if !self.hungry.is_empty() && started.elapsed() >= SLICE {
                break;
            }
        }
    }

    /// Writes what there is for an idle writer: what the session has to say, and UPDATEs up to so many octets. If the
    /// system has taken it all, and there may be more, its next turn comes when the others have had theirs.
    fn fill(&mut self, conn: ConnId, octets: usize) {
        if let Some(handle) = self.conns.get_mut(&conn)
            && handle.is_idle()
        {
            let more = self.speaker.pull(self.clock.now(), conn, octets, &mut self.batch);
            handle.write(&mut self.batch, self.speaker.send_hold(conn));
            if more && handle.is_idle() {
                self.hungry.push_back(conn);
            }
        }
    }

    /// Closes a connection after its last words; without them where the neighbour has too many of that kind already.
    fn close(&mut self, conn: ConnId) {
        let Some(handle) = self.conns.get_mut(&conn) else { return };
        let mut last = Vec::new();
        self.speaker.pull(self.clock.now(), conn, BATCH, &mut last);
        if self.farewells.begin(conn, handle.remote()) {
            handle.close(last);
        } else {
            handle.cut();
        }
    }

    /// Answers a subscriber that waits, if there is something to say.
    fn answer(&mut self, id: SubscriberId) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        let mut events = Vec::new();
        self.speaker.take(id, waiting.max, &mut events);
        if events.is_empty() {
            self.waiting.insert(id, waiting);
        } else {
            // An error means that the subscription is gone.
            let _ = waiting.reply.send(events);
        }
    }

    fn start(&mut self, conn: ConnId, stream: TcpStream, remote: IpAddr) {
        self.conns.insert(conn, ConnHandle::start(conn, stream, remote, self.inlet.clone()));
    }

    fn listen(&mut self, addresses: Vec<SocketAddr>) {
        self.listeners.retain(|listener| addresses.contains(&listener.wanted()));
        for address in addresses {
            if !self.listeners.iter().any(|listener| listener.wanted() == address) {
                self.listeners.push(Listener::start(address, &self.doors, &self.inlet));
            }
        }
    }

    fn begin_shutdown(&mut self, mut mode: StopMode, reply: Option<oneshot::Sender<Stopped>>) {
        let until = time::Instant::now() + CLOSE_DEADLINE;
        self.shutdown = Some(Shutdown { until, _reply: reply });
        self.requests.requests.close();
        self.commands = None;
        self.listeners.clear();
        self.attempts.clear();
        match &mut mode {
            StopMode::Graceful(text) | StopMode::Notify(text) => {
                text.truncate(text.floor_char_boundary(bgp_wire::Notification::MAX_TEXT));
            }
            StopMode::Destroy => {}
        }
        // Nothing is left to refuse.
        let _ = self.speaker.command(self.clock.now(), Command::Stop(mode), &mut self.out);
        self.carry_out();
    }

    /// Whether the shutdown is over.
    fn has_ended(&self) -> bool {
        self.shutdown
            .as_ref()
            .is_some_and(|shutdown| self.conns.is_empty() || time::Instant::now() >= shutdown.until)
    }
}
