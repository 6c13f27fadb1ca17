//! Messages, and how connections get on and end (RFC 4271 events 19 to 28).

use std::sync::Arc;
use std::time::Duration;

use bgp_wire::notification::Reason;
use bgp_wire::{Frame, MessageType, Notification};
use bytes::{Bytes, BytesMut};

use super::{Admission, Peer, place_of};
use crate::outbox::Outbox;
use crate::peer_key::ConnId;
use crate::session::collision::survivor;
use crate::session::connection::{Agreed, Connection, Phase, Step};
use crate::session::restart::{Terms, hard_reset, kept};
use crate::session::timers::{PLACES, Place, Timer};
use crate::session::{DownReason, Kept, LastError, LongLived, Outgoing, Output, StopReason};
use crate::time::Instant;

/// The whole message.
pub(super) const KEEPALIVE: [u8; 19] = {
    let mut message = [0xff; 19];
    message[16] = 0;
    message[17] = 19;
    message[18] = 4;
    message
};

/// Connections of one collision reach their OPENs within this time of one another.
const COLLISION: Duration = Duration::from_secs(5);

/// Whether the state may have changed.
#[derive(PartialEq, Eq)]
pub(super) enum Changed {
    No,
    Yes,
}

impl Peer {
    pub(super) fn received(
        &mut self,
        now: Instant,
        place: Place,
        frame: Frame<'_>,
        out: &mut Outbox<Output>,
    ) -> Changed {
        let Some(conn) = &mut self.conns[place] else { return Changed::No };
        match conn.receive(&self.settings, frame) {
            Step::Alive => conn.last_received = now,
            Step::Ignored => {}
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

    /// The connection enters OpenConfirm, unless it loses to the other one.
    fn opened(&mut self, now: Instant, place: Place, agreed: Agreed, out: &mut Outbox<Output>) {
        let other = PLACES - 1 - place;
        if self.conns[other].as_ref().is_some_and(Connection::is_established) {
            if !self.supersedes(now, other, &agreed) {
                // A collision after all.
                self.probe(now, other, out);
                self.lose_collision(place, out);
                return;
            }
            // RFC 4724 section 5: without a word.
            if let Some(old) = self.remove(other) {
                out.push(Output::Close(old.id));
                self.report(now, &old, DownReason::Replaced, out);
            }
        }
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
        // RFC 4271 event 20: theirs has come before ours.
        self.send_open(now, place, out);
        let Some(conn) = &mut self.conns[place] else { return };
        conn.last_received = now;
        conn.phase = Phase::OpenConfirm(agreed);
        let hold = conn.hold();
        self.timers.set(Timer::Hold(place), now + hold);
        self.timers.stop(Timer::ConnectRetry);
        self.send_keepalive(now, place, out);
    }

    /// Whether the neighbour has restarted, so that an OPEN on a new connection ends the session on the one at `place`
    /// (RFC 4724 section 5). Its R bit says so; without that, a session that has stood for a while can't be one half of
    /// a collision.
    fn supersedes(&self, now: Instant, place: Place, new: &Agreed) -> bool {
        let restarted = |agreed: &Agreed| agreed.negotiated.restart.is_some_and(|restart| restart.restarting);
        let before = self.conns[place].as_ref().and_then(Connection::agreed).is_some_and(restarted);
        (restarted(new) && !before) || now.saturating_since(self.since) >= COLLISION
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
    pub(super) fn end(
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
        let other_lives = self.conns.iter().any(Option::is_some);
        if other_lives && !disagreement && !conn.is_established() {
            // Most likely the neighbour has settled a collision its own way.
            self.connect_retry_counter = self.connect_retry_counter.saturating_add(1);
        } else {
            self.report(now, &conn, reason, out);
        }
        if other_lives {
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
    pub(super) fn lose_collision(&mut self, place: Place, out: &mut Outbox<Output>) {
        if let Some(conn) = self.remove(place) {
            self.connect_retry_counter = self.connect_retry_counter.saturating_add(1);
            self.send_notification(&conn, &Notification::new(Reason::ConnectionCollision), out);
            out.push(Output::Close(conn.id));
        }
    }

    fn remove(&mut self, place: Place) -> Option<Connection> {
        self.timers.stop(Timer::Hold(place));
        self.timers.stop(Timer::Keepalive(place));
        self.timers.stop(Timer::DelayOpen(place));
        self.conns[place].take()
    }

    /// Tells and remembers why a connection ended.
    pub(super) fn report(
        &mut self,
        now: Instant,
        conn: &Connection,
        reason: DownReason,
        out: &mut Outbox<Output>,
    ) {
        if !conn.is_established() {
            return self.failed(now, reason, out);
        }
        self.remember(now, &reason);
        let longest = self.settings.graceful_restart.map_or(LongLived::NONE, |graceful| graceful.long_lived);
        let terms = conn.agreed().and_then(|agreed| {
            let restart = agreed.negotiated.restart?;
            Some(Terms { restart, long_lived: agreed.negotiated.long_lived, longest })
        });
        let kept = terms.map_or(Kept::NOTHING, |terms| kept(&terms, &reason));
        out.push(Output::Down(reason, kept));
    }

    /// Tells and remembers why there is no session.
    pub(super) fn failed(&mut self, now: Instant, reason: DownReason, out: &mut Outbox<Output>) {
        self.remember(now, &reason);
        out.push(Output::Failed(reason));
    }

    fn remember(&mut self, now: Instant, reason: &DownReason) {
        if !matches!(reason, DownReason::Stopped(_)) {
            self.connect_retry_counter = self.connect_retry_counter.saturating_add(1);
        }
        self.last_error = Some(LastError { at: now, reason: reason.clone() });
    }

    pub(super) fn send_keepalive(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        self.arm_keepalive(now, place);
        if let Some(conn) = &mut self.conns[place] {
            conn.last_sent = now;
            send(conn.id, MessageType::Keepalive, Bytes::from_static(&KEEPALIVE), out);
        }
    }

    /// Says why we end a connection that was fine: nothing before a restart where the neighbour keeps our routes, and
    /// so that it keeps none where it is not to.
    pub(super) fn send_farewell(&self, conn: &Connection, reason: &StopReason, out: &mut Outbox<Output>) {
        let restart =
            conn.agreed().filter(|_| conn.is_established()).and_then(|agreed| agreed.negotiated.restart);
        let helps = restart.is_some_and(|restart| !restart.own_families.is_empty());
        let plain = reason.notification();
        let said = match reason {
            StopReason::Restart(_) if helps => return,
            StopReason::Shutdown(_) | StopReason::Deconfigured => {
                self.hard_reset_of(conn, &plain).unwrap_or(plain)
            }
            StopReason::Restart(_) | StopReason::Reset(_) | StopReason::ConfigurationChange => plain,
        };
        self.send_notification(conn, &said, out);
    }

    /// The hard reset that says it so that the neighbour keeps nothing of ours, where it would else (RFC 8538 section 5.1).
    /// Without families of ours nothing is kept, but the N bit asks for it all the same.
    pub(super) fn hard_reset_of(&self, conn: &Connection, plain: &Notification) -> Option<Notification> {
        let agreed = conn.agreed().filter(|_| conn.is_established())?;
        let notification = agreed.negotiated.restart.is_some_and(|restart| restart.notification);
        notification.then(|| hard_reset(plain))
    }

    pub(super) fn send_notification(
        &self,
        conn: &Connection,
        notification: &Notification,
        out: &mut Outbox<Output>,
    ) {
        send(conn.id, MessageType::Notification, encoded(notification), out);
    }
}

pub(super) fn send(id: ConnId, kind: MessageType, bytes: Bytes, out: &mut Outbox<Output>) {
    out.push(Output::Send(id, Outgoing { kind, bytes }));
}

pub(super) fn encoded(notification: &Notification) -> Bytes {
    let mut bytes = BytesMut::new();
    notification.encode(&mut bytes);
    bytes.freeze()
}
