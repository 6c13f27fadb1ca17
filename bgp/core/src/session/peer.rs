//! One neighbour: whether it may have a session, when to try, and its one or two connections.
//!
//! RFC 4271 gives each connection a state machine of its own and joins them by collision detection (sections 6.8 and
//! 8.2.1). Here the peer is the machine in Idle, Connect and Active, and each [`Connection`] the one from OpenSent on;
//! the state shown is the furthest. Where the text leaves room, this is how it is used:
//!
//! - After a failure the RFC goes to Idle and may start again automatically (events 3 to 7). After a *disagreement*
//!   (a fault, a complaint) we stay in Idle for a growing while. After a mere loss we start again at once, but passively
//!   (event 7): connections are welcome in Active while our own next attempt waits as long.
//! - An attempt that fails leads to Active, not to Idle and at once to Active.
//! - While a connection that the neighbour opened is in OpenSent, attempts of our own go on: whoever holds it may never
//!   say a word.
//! - A passive peer never connects, so its ConnectRetryTimer doesn't run.
//! - While OPEN is held back (DelayOpen) on a connection that the neighbour opened, attempts of our own go on as well.
//!   SendNOTIFICATIONwithoutOPEN is TRUE: whoever is refused or misunderstood before our OPEN hears why.
//! - Too many prefixes are the one AutomaticStop (event 8).
//! - Where graceful restart is agreed, a connection that comes while another is Established is heard out until its OPEN
//!   (RFC 4724 section 5 would drop the old one at once, and a mere collision with it): see `exchange.rs`.
//!
//! Here are the door, the operator's events and the answers; `transport.rs` has those of connections that come and
//! attempts that fail, `exchange.rs` those of messages, `clock.rs` those of timers.

mod clock;
mod exchange;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use bgp_wire::notification::Reason;
use bgp_wire::{Family, Negotiated, Notification};

use self::exchange::Changed;
use super::connection::Connection;
use super::timers::{Jitter, PLACES, Place, Timer, Timers};
use super::{
    Direction, DownReason, Input, LastError, Output, PeerSettings, Reconfigured, State, Status, StopReason,
};
use crate::outbox::Outbox;
use crate::peer_key::ConnId;
use crate::time::Instant;

/// Whether the neighbour may have a session.
#[derive(Debug)]
enum Admission {
    /// Not until `Start`. `None` when it was never started.
    Stopped(Option<StopReason>),
    /// Not until the IdleHoldTimer goes off, or until `Start` where that doesn't run.
    Held,
    /// Yes.
    Open,
}

/// One neighbour's session. See the [module](super) for what it does; [`Peer::handle`] is the only door that changes
/// something, but for [`Peer::reconfigure`] and [`Peer::sent_update`].
#[derive(Debug)]
pub struct Peer {
    settings: PeerSettings,
    jitter: Jitter,
    admission: Admission,
    /// An attempt to connect is under way.
    dialling: bool,
    /// At most one connection for each direction.
    conns: [Option<Connection>; PLACES],
    timers: Timers,
    /// How many failures in a row, for the back-off.
    damping: u32,
    state: State,
    since: Instant,
    last_error: Option<LastError>,
    established_count: u64,
    connect_retry_counter: u32,
    /// Until when an OPEN says that this process is new, if there has been no session before.
    restarted_until: Instant,
}

const fn place_of(direction: Direction) -> Place {
    match direction {
        Direction::Active => 0,
        Direction::Passive => 1,
    }
}

impl Peer {
    /// A neighbour in Idle, waiting for [`Input::Start`]. `seed` decides all jitter; give every peer its own, or they
    /// act in step.
    #[must_use]
    pub fn new(settings: PeerSettings, seed: u64) -> Self {
        Self {
            settings,
            jitter: Jitter::new(seed),
            admission: Admission::Stopped(None),
            dialling: false,
            conns: [None, None],
            timers: Timers::new(),
            damping: 0,
            state: State::Idle,
            since: Instant::ZERO,
            last_error: None,
            established_count: 0,
            connect_retry_counter: 0,
            restarted_until: Instant::ZERO,
        }
    }

    /// Says that this process took the place of one that the neighbour may have had a session with: until then, and
    /// until the first session, OPENs have the R bit.
    pub fn restarted(&mut self, until: Instant) {
        self.restarted_until = until;
    }

    /// Takes one input and appends what it leads to.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox<Output>) {
        match input {
            Input::Received(id, frame) => {
                let Some(place) = self.place(id) else { return };
                if self.received(now, place, frame, out) == Changed::No {
                    return;
                }
            }
            Input::Malformed(id, error) => {
                if let Some(place) = self.place(id) {
                    let notification = error.notification.clone();
                    self.end(now, place, Some(notification), DownReason::Malformed(error), out);
                }
            }
            Input::Closed(id, reason) => {
                if let Some(place) = self.place(id) {
                    self.end(now, place, None, DownReason::Closed(reason), out);
                }
            }
            Input::Unread(id) => {
                if let Some(conn) = self.conn_mut(id) {
                    conn.unread_at = Some(now);
                }
            }
            Input::Tick => self.tick(now, out),
            Input::Start => self.start(now, out),
            Input::Stop(reason) => self.stop(now, reason, out),
            Input::TooManyPrefixes { family, limit, restart } => {
                self.too_many_prefixes(now, family, limit, restart, out);
            }
            Input::Connected(id, link) => self.connected(now, id, link, out),
            Input::ConnectFailed(error) => self.connect_failed(now, error, out),
        }
        self.note_state(now);
    }

    /// When [`Input::Tick`] is next due; `None` for never. A deadline may turn out to be early, since traffic moves
    /// the hold and keepalive timers without a word; then the tick only finds the next one.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Notes that UPDATEs were handed to the transport of the Established connection: they spare a KEEPALIVE (RFC 4271
    /// section 8.2.2, event 27).
    pub fn sent_update(&mut self, now: Instant) {
        if let Some(conn) = self.conns.iter_mut().flatten().find(|conn| conn.is_established()) {
            conn.last_sent = now;
        }
    }

    /// Puts new settings in force and says what that did. The caller has [checked](PeerSettings::check) them.
    pub fn reconfigure(&mut self, now: Instant, new: PeerSettings, out: &mut Outbox<Output>) -> Reconfigured {
        let mut done = self.settings.compare(&new);
        let old = std::mem::replace(&mut self.settings, new);
        match done {
            Reconfigured::Unchanged => return done,
            Reconfigured::Live => self.follow_settings(now, &old, out),
            Reconfigured::Reset => {
                if self.conns.iter().all(Option::is_none) {
                    done = Reconfigured::Live;
                }
                if !matches!(self.admission, Admission::Stopped(_)) {
                    self.end_all(now, &StopReason::ConfigurationChange, out);
                    self.begin(now, out);
                }
            }
        }
        self.note_state(now);
        done
    }

    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// What the session was told.
    #[must_use]
    pub const fn settings(&self) -> &PeerSettings {
        &self.settings
    }

    /// The connection on which the session is Established.
    #[must_use]
    pub fn established_conn(&self) -> Option<ConnId> {
        self.conns.iter().flatten().find(|conn| conn.is_established()).map(|conn| conn.id)
    }

    /// What both ends agreed, while Established.
    #[must_use]
    pub fn negotiated(&self) -> Option<&Arc<Negotiated>> {
        let conn = self.conns.iter().flatten().find(|conn| conn.is_established())?;
        conn.agreed().map(|agreed| &agreed.negotiated)
    }

    /// Whether the peer holds this connection.
    #[must_use]
    pub fn holds(&self, id: ConnId) -> bool {
        self.place(id).is_some()
    }

    /// How long a connection may take none of our octets before it counts as lost: SendHoldTime of RFC 9687. `None` for as
    /// long as it likes.
    #[must_use]
    pub fn send_hold(&self, id: ConnId) -> Option<Duration> {
        self.conns.iter().flatten().find(|conn| conn.id == id)?.send_hold()
    }

    /// Everything there is to tell.
    #[must_use]
    pub fn status(&self) -> Status<'_> {
        let conn = self.conns.iter().flatten().max_by_key(|conn| conn.state());
        let agreed = conn.and_then(Connection::agreed);
        Status {
            state: self.state,
            since: self.since,
            stopped: match &self.admission {
                Admission::Stopped(reason) => reason.as_ref(),
                Admission::Held | Admission::Open => None,
            },
            idle: match self.admission {
                Admission::Held => Some(self.timers.at(Timer::IdleHold)),
                Admission::Stopped(_) | Admission::Open => None,
            },
            last_error: self.last_error.as_ref(),
            conn: conn.map(|conn| conn.id),
            link: conn.map(|conn| conn.link),
            sent: conn.filter(|conn| !conn.is_delayed()).map(|conn| &conn.sent),
            received: agreed.map(|agreed| &agreed.received),
            negotiated: agreed.map(|agreed| &agreed.negotiated),
            hold_time: agreed.map(|agreed| agreed.hold_time),
            keepalive: agreed.map(|agreed| agreed.keepalive),
            established_count: self.established_count,
            connect_retry_counter: self.connect_retry_counter,
        }
    }

    // ---- events of the operator ----

    fn start(&mut self, now: Instant, out: &mut Outbox<Output>) {
        match self.admission {
            // RFC 4271 section 8.2.2: start events are ignored in every state but Idle.
            Admission::Open => {}
            Admission::Stopped(_) | Admission::Held => self.begin(now, out),
        }
    }

    /// Leaves Idle, if it is there, as if for the first time, and else spares the wait for the next attempt to connect.
    /// Says whether that made a difference. Not an event of RFC 4271: its start events are ignored outside Idle.
    pub fn hurry(&mut self, now: Instant, out: &mut Outbox<Output>) -> bool {
        let waits = !matches!(self.admission, Admission::Open);
        if waits {
            self.begin(now, out);
        } else if self.conns.iter().all(Option::is_none) && self.wants_connection() {
            self.damping = 0;
            self.connect(now, out);
        } else {
            return false;
        }
        self.note_state(now);
        true
    }

    /// Leaves Idle as if for the first time.
    fn begin(&mut self, now: Instant, out: &mut Outbox<Output>) {
        self.connect_retry_counter = 0;
        self.damping = 0;
        self.open(now, out);
    }

    fn open(&mut self, now: Instant, out: &mut Outbox<Output>) {
        self.admission = Admission::Open;
        self.timers.stop(Timer::IdleHold);
        if !self.settings.passive {
            self.connect(now, out);
        }
    }

    fn stop(&mut self, now: Instant, reason: StopReason, out: &mut Outbox<Output>) {
        self.end_all(now, &reason, out);
        self.connect_retry_counter = 0;
        self.damping = 0;
        self.admission = Admission::Stopped(Some(reason));
    }

    /// The neighbour has announced more than it may (RFC 4271 section 8.2.2, event 8). What is kept of it would be too much
    /// as well, so it keeps nothing of ours either: RFC 8538 section 5.1 wants a hard reset.
    fn too_many_prefixes(
        &mut self,
        now: Instant,
        family: Family,
        limit: u32,
        restart: Option<Duration>,
        out: &mut Outbox<Output>,
    ) {
        if !matches!(self.admission, Admission::Open) {
            return;
        }
        self.cancel_connect(out);
        for place in 0..PLACES {
            let Some(conn) = self.conns[place].take() else { continue };
            let plain = Notification::maximum_prefixes(family, limit);
            // One that isn't Established has told us nothing yet.
            let notification = match self.hard_reset_of(&conn, &plain) {
                Some(hard) => hard,
                None if conn.is_established() => plain,
                None => Notification::new(Reason::ConnectionRejected),
            };
            self.send_notification(&conn, &notification, out);
            out.push(Output::Close(conn.id));
            if conn.is_established() {
                self.report(now, &conn, DownReason::TooManyPrefixes { family, limit }, out);
            }
        }
        self.timers.stop_all();
        self.admission = Admission::Held;
        if let Some(restart) = restart {
            self.timers.set(Timer::IdleHold, now + restart);
        }
    }

    /// Ends everything there is, with Cease.
    fn end_all(&mut self, now: Instant, reason: &StopReason, out: &mut Outbox<Output>) {
        self.cancel_connect(out);
        for place in 0..PLACES {
            if let Some(conn) = self.conns[place].take() {
                self.send_farewell(&conn, reason, out);
                out.push(Output::Close(conn.id));
                self.report(now, &conn, DownReason::Stopped(reason.clone()), out);
            }
        }
        self.timers.stop_all();
    }

    /// Applies what changed in the settings without touching a session.
    fn follow_settings(&mut self, now: Instant, old: &PeerSettings, out: &mut Outbox<Output>) {
        if old.keepalive != self.settings.keepalive {
            for place in 0..PLACES {
                let Some(conn) = &mut self.conns[place] else { continue };
                let Some(agreed) = conn.agreed_mut() else { continue };
                agreed.keepalive = self.settings.keepalive_interval(agreed.hold_time);
                self.arm_keepalive(now, place);
            }
        }
        if !matches!(self.admission, Admission::Open) {
            return;
        }
        if self.settings.passive {
            self.cancel_connect(out);
            self.timers.stop(Timer::ConnectRetry);
        } else if old.passive && self.wants_connection() {
            self.connect(now, out);
        } else if old.connect_retry != self.settings.connect_retry
            && self.timers.is_running(Timer::ConnectRetry)
        {
            self.arm_connect_retry(now);
        }
    }

    // ---- places ----

    fn place(&self, id: ConnId) -> Option<Place> {
        self.conns.iter().position(|conn| conn.as_ref().is_some_and(|conn| conn.id == id))
    }

    fn conn_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.conns.iter_mut().flatten().find(|conn| conn.id == id)
    }

    fn note_state(&mut self, now: Instant) {
        let furthest =
            self.conns.iter().flatten().filter(|conn| !conn.is_delayed()).map(Connection::state).max();
        let state = furthest.unwrap_or(match self.admission {
            Admission::Stopped(_) | Admission::Held => State::Idle,
            // RFC 4271 section 8.2.2: while OPEN is held back, the state is the one before the connection came.
            Admission::Open if self.dialling || self.conns[place_of(Direction::Active)].is_some() => {
                State::Connect
            }
            Admission::Open => State::Active,
        });
        if state != self.state {
            self.state = state;
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests;
