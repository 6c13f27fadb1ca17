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

use std::sync::Arc;
use std::time::Duration;

use bgp_wire::notification::Reason;
use bgp_wire::{Capability, Frame, MessageType, Negotiated, Notification, Open};
use bytes::{Bytes, BytesMut};

use super::collision::survivor;
use super::connection::{Agreed, Connection, Phase, Step};
use super::timers::{Jitter, PLACES, Place, Timer, Timers};
use super::{
    ConnectError, Direction, DownReason, Input, LastError, Link, Outgoing, Output, PeerSettings,
    Reconfigured, State, Status, StopReason,
};
use crate::outbox::Outbox;
use crate::peer_key::ConnId;
use crate::time::Instant;

const KEEPALIVE: [u8; 19] = {
    let mut message = [0xff; 19];
    message[16] = 0;
    message[17] = 19;
    message[18] = 4;
    message
};

/// How long the promise of [`Input::Unread`] lasts.
const UNREAD_GRACE: Duration = Duration::from_secs(1);

/// Whether the neighbour may have a session.
#[derive(Debug)]
enum Admission {
    /// Not until `Start`. `None` when it was never started.
    Stopped(Option<StopReason>),
    /// Not until the IdleHoldTimer goes off.
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
        }
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
            last_error: self.last_error.as_ref(),
            conn: conn.map(|conn| conn.id),
            link: conn.map(|conn| conn.link),
            sent: conn.map(|conn| &conn.sent),
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

    /// Ends everything there is, with Cease.
    fn end_all(&mut self, now: Instant, reason: &StopReason, out: &mut Outbox<Output>) {
        self.cancel_connect(out);
        for place in 0..PLACES {
            if let Some(conn) = self.conns[place].take() {
                self.send_notification(&conn, &reason.notification(), out);
                out.push(Output::Close(conn.id));
                self.report(now, conn.is_established(), DownReason::Stopped(reason.clone()), out);
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

    // ---- events of the transport ----

    fn connected(&mut self, now: Instant, id: ConnId, link: Link, out: &mut Outbox<Output>) {
        let place = place_of(link.direction);
        let expected = match link.direction {
            Direction::Active => std::mem::replace(&mut self.dialling, false),
            Direction::Passive => matches!(self.admission, Admission::Open),
        };
        if !expected {
            self.refuse(id, Reason::ConnectionRejected, out);
            return;
        }
        if let Some(up) =
            self.conns.iter().position(|conn| conn.as_ref().is_some_and(Connection::is_established))
        {
            // RFC 4271 section 6.8: a collision with an Established connection closes the new one. A neighbour that
            // has lost its memory, though, will never answer on the old one; a KEEPALIVE makes its end say so now
            // rather than after the hold time.
            self.send_keepalive(now, up, out);
            self.refuse(id, Reason::ConnectionCollision, out);
            return;
        }
        if self.conns[place].is_some() {
            // The neighbour opened a second one: it has given up the first.
            self.lose_collision(place, out);
        }
        if link.direction == Direction::Active {
            self.timers.stop(Timer::ConnectRetry);
        }
        let open = self.our_open();
        let mut bytes = BytesMut::new();
        open.encode(&mut bytes).expect("a handful of short capabilities fits into an OPEN");
        let conn = Connection::new(id, link, open, now);
        self.timers.set(Timer::Hold(place), now + conn.hold());
        self.conns[place] = Some(conn);
        out.push(Output::Send(id, Outgoing { kind: MessageType::Open, bytes: bytes.freeze() }));
    }

    fn connect_failed(&mut self, now: Instant, error: ConnectError, out: &mut Outbox<Output>) {
        if std::mem::replace(&mut self.dialling, false) {
            self.report(now, false, DownReason::NotConnected(error), out);
            if self.wants_connection() {
                self.arm_connect_retry(now);
            }
        }
    }

    // ---- events of a connection ----

    fn received(
        &mut self,
        now: Instant,
        place: Place,
        frame: Frame<'_>,
        out: &mut Outbox<Output>,
    ) -> Changed {
        let Some(conn) = &mut self.conns[place] else { return Changed::No };
        match conn.receive(&self.settings, frame) {
            Step::Alive => conn.last_received = now,
            Step::Deliver => {
                conn.last_received = now;
                out.push(Output::Deliver);
            }
            Step::Refresh(refresh) => {
                conn.last_received = now;
                out.push(Output::Refresh(refresh));
            }
            Step::Opened(agreed) => {
                self.opened(now, place, *agreed, out);
                return Changed::Yes;
            }
            Step::Confirmed => {
                self.confirmed(now, place, out);
                return Changed::Yes;
            }
            Step::End(notification, reason) => {
                self.end(now, place, notification, reason, out);
                return Changed::Yes;
            }
        }
        Changed::No
    }

    /// OpenSent becomes OpenConfirm, unless the connection loses to the other one.
    fn opened(&mut self, now: Instant, place: Place, agreed: Agreed, out: &mut Outbox<Output>) {
        let other = PLACES - 1 - place;
        // An OpenSent other one hasn't identified its neighbour yet, and may never; it is compared once it has.
        if self.conns[other].as_ref().is_some_and(|conn| conn.agreed().is_some()) {
            let ours = (self.settings.local_router_id, self.settings.local_asn);
            let theirs = (agreed.received.router_id, agreed.received.asn());
            let lives = place_of(survivor(ours, theirs));
            self.lose_collision(PLACES - 1 - lives, out);
            if lives != place {
                return;
            }
        }
        let Some(conn) = &mut self.conns[place] else { return };
        conn.last_received = now;
        conn.phase = Phase::OpenConfirm(agreed);
        let hold = conn.hold();
        self.timers.set(Timer::Hold(place), now + hold);
        self.timers.stop(Timer::ConnectRetry);
        self.send_keepalive(now, place, out);
    }

    /// OpenConfirm becomes Established, and the only one.
    fn confirmed(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        self.lose_collision(PLACES - 1 - place, out);
        self.cancel_connect(out);
        let Some(conn) = self.conns[place].take() else { return };
        let Phase::OpenConfirm(agreed) = conn.phase else {
            self.conns[place] = Some(conn);
            return;
        };
        let (id, negotiated) = (conn.id, Arc::clone(&agreed.negotiated));
        let conn = Connection { phase: Phase::Established(agreed), last_received: now, ..conn };
        if conn.hold().is_zero() {
            self.timers.stop(Timer::Hold(place));
        } else {
            self.timers.set(Timer::Hold(place), now + conn.hold());
        }
        self.conns[place] = Some(conn);
        self.established_count += 1;
        out.push(Output::Up { conn: id, negotiated });
    }

    /// Ends one connection because of `reason`, and decides how to go on.
    fn end(
        &mut self,
        now: Instant,
        place: Place,
        notification: Option<Notification>,
        reason: DownReason,
        out: &mut Outbox<Output>,
    ) {
        let Some(conn) = self.remove(place) else { return };
        if let Some(notification) = &notification {
            self.send_notification(&conn, notification, out);
        }
        out.push(Output::Close(conn.id));
        let up_for = if conn.is_established() { now.saturating_since(self.since) } else { Duration::ZERO };
        if up_for > self.settings.idle_hold.max {
            self.damping = 0;
        }
        let disagreement = reason.is_disagreement();
        self.report(now, conn.is_established(), reason, out);
        if self.conns.iter().any(Option::is_some) {
            if self.wants_connection() && !self.timers.is_running(Timer::ConnectRetry) {
                self.arm_connect_retry(now);
            }
        } else if disagreement {
            self.cancel_connect(out);
            self.timers.stop(Timer::ConnectRetry);
            self.admission = Admission::Held;
            let wait = self.back_off();
            self.timers.set(Timer::IdleHold, now + wait);
        } else if self.dialling {
            if !self.timers.is_running(Timer::ConnectRetry) {
                self.arm_connect_retry(now);
            }
        } else if !self.settings.passive {
            let wait = self.back_off();
            self.timers.set(Timer::ConnectRetry, now + wait);
        }
    }

    /// Closes a connection, if there is one, in favour of another (RFC 4271 event 23).
    fn lose_collision(&mut self, place: Place, out: &mut Outbox<Output>) {
        if let Some(conn) = self.remove(place) {
            self.connect_retry_counter = self.connect_retry_counter.saturating_add(1);
            self.send_notification(&conn, &Notification::new(Reason::ConnectionCollision), out);
            out.push(Output::Close(conn.id));
        }
    }

    /// Refuses a connection that never became one of ours.
    fn refuse(&self, id: ConnId, reason: Reason, out: &mut Outbox<Output>) {
        send(id, MessageType::Notification, encoded(&Notification::new(reason)), out);
        out.push(Output::Close(id));
    }

    fn remove(&mut self, place: Place) -> Option<Connection> {
        self.timers.stop(Timer::Hold(place));
        self.timers.stop(Timer::Keepalive(place));
        self.conns[place].take()
    }

    /// Tells and remembers what went wrong.
    fn report(&mut self, now: Instant, was_up: bool, reason: DownReason, out: &mut Outbox<Output>) {
        if !matches!(reason, DownReason::Stopped(_)) {
            self.connect_retry_counter = self.connect_retry_counter.saturating_add(1);
            self.last_error = Some(LastError { at: now, reason: reason.clone() });
        }
        out.push(if was_up { Output::Down(reason) } else { Output::Failed(reason) });
    }

    // ---- timers ----

    fn tick(&mut self, now: Instant, out: &mut Outbox<Output>) {
        for timer in Timer::ALL {
            if !self.timers.is_due(timer, now) {
                continue;
            }
            self.timers.stop(timer);
            match timer {
                Timer::Hold(place) => self.hold_timer(now, place, out),
                Timer::Keepalive(place) => self.keepalive_timer(now, place, out),
                Timer::IdleHold => self.open(now, out),
                Timer::ConnectRetry => {
                    if self.dialling {
                        self.report(now, false, DownReason::NotConnected(ConnectError::TimedOut), out);
                        self.cancel_connect(out);
                    }
                    self.connect(now, out);
                }
            }
        }
    }

    fn hold_timer(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        let Some(conn) = &self.conns[place] else { return };
        let patience = conn.unread_at.map_or(Instant::ZERO, |at| at + UNREAD_GRACE);
        let due = (conn.last_received + conn.hold()).max(patience);
        if due > now {
            self.timers.set(Timer::Hold(place), due);
        } else {
            let notification = Notification::new(Reason::HoldTimerExpired);
            self.end(now, place, Some(notification), DownReason::HoldTimerExpired, out);
        }
    }

    fn keepalive_timer(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        let Some(conn) = &self.conns[place] else { return };
        let due = conn.last_sent + conn.keepalive_after;
        if due > now {
            self.timers.set(Timer::Keepalive(place), due);
        } else {
            self.send_keepalive(now, place, out);
        }
    }

    fn connect(&mut self, now: Instant, out: &mut Outbox<Output>) {
        self.dialling = true;
        self.arm_connect_retry(now);
        out.push(Output::Connect);
    }

    fn cancel_connect(&mut self, out: &mut Outbox<Output>) {
        if std::mem::replace(&mut self.dialling, false) {
            out.push(Output::CancelConnect);
        }
    }

    /// Whether a connection of our own should be tried for.
    fn wants_connection(&self) -> bool {
        !self.settings.passive
            && !self.dialling
            && self.conns[place_of(Direction::Active)].is_none()
            && self.conns.iter().flatten().all(|conn| conn.agreed().is_none())
    }

    fn arm_connect_retry(&mut self, now: Instant) {
        let wait = self.jitter.shorten(self.settings.connect_retry);
        self.timers.set(Timer::ConnectRetry, now + wait);
    }

    fn arm_keepalive(&mut self, now: Instant, place: Place) {
        let interval = self.conns[place]
            .as_ref()
            .and_then(Connection::agreed)
            .map_or(Duration::ZERO, |agreed| agreed.keepalive);
        // RFC 4271 section 4.4: not more often than once a second, jitter or not.
        let wait = self.jitter.shorten(interval).max(Duration::from_secs(1));
        let Some(conn) = &mut self.conns[place] else { return };
        conn.keepalive_after = wait;
        if interval.is_zero() {
            self.timers.stop(Timer::Keepalive(place));
        } else {
            self.timers.set(Timer::Keepalive(place), now + wait);
        }
    }

    /// The next wait after a failure.
    fn back_off(&mut self) -> Duration {
        let wait =
            self.settings.idle_hold.min.saturating_mul(1_u32.checked_shl(self.damping).unwrap_or(u32::MAX));
        self.damping = (self.damping + 1).min(31);
        self.jitter.shorten(wait.min(self.settings.idle_hold.max))
    }

    // ---- messages ----

    fn our_open(&self) -> Open {
        let settings = &self.settings;
        let mut capabilities: Vec<_> = settings.families.iter().map(Capability::family).collect();
        capabilities.extend([Capability::RouteRefresh, Capability::FourOctetAs(settings.local_asn)]);
        Open::new(settings.local_asn, settings.hold_time.secs(), settings.local_router_id, capabilities)
    }

    fn send_keepalive(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        self.arm_keepalive(now, place);
        if let Some(conn) = &mut self.conns[place] {
            conn.last_sent = now;
            send(conn.id, MessageType::Keepalive, Bytes::from_static(&KEEPALIVE), out);
        }
    }

    fn send_notification(&self, conn: &Connection, notification: &Notification, out: &mut Outbox<Output>) {
        send(conn.id, MessageType::Notification, encoded(notification), out);
    }

    // ---- places ----

    fn place(&self, id: ConnId) -> Option<Place> {
        self.conns.iter().position(|conn| conn.as_ref().is_some_and(|conn| conn.id == id))
    }

    fn conn_mut(&mut self, id: ConnId) -> Option<&mut Connection> {
        self.conns.iter_mut().flatten().find(|conn| conn.id == id)
    }

    fn note_state(&mut self, now: Instant) {
        let furthest = self.conns.iter().flatten().map(Connection::state).max();
        let state = furthest.unwrap_or(match self.admission {
            Admission::Stopped(_) | Admission::Held => State::Idle,
            Admission::Open if self.dialling => State::Connect,
            Admission::Open => State::Active,
        });
        if state != self.state {
            self.state = state;
            self.since = now;
        }
    }
}

/// Whether the state may have changed.
#[derive(PartialEq, Eq)]
enum Changed {
    No,
    Yes,
}

fn send(id: ConnId, kind: MessageType, bytes: Bytes, out: &mut Outbox<Output>) {
    out.push(Output::Send(id, Outgoing { kind, bytes }));
}

fn encoded(notification: &Notification) -> Bytes {
    let mut bytes = BytesMut::new();
    notification.encode(&mut bytes);
    bytes.freeze()
}

#[cfg(test)]
mod tests;
