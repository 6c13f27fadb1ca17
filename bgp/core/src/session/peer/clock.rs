//! Timers, and what they wait for (RFC 4271 events 9 to 13).

use std::time::Duration;

use bgp_wire::Notification;
use bgp_wire::notification::Reason;

use super::Peer;
use super::transport::KEEPALIVE_PAUSE;
use crate::outbox::Outbox;
use crate::peer_key::ConnId;
use crate::session::connection::Connection;
use crate::session::timers::{Place, Timer};
use crate::session::{ConnectError, DownReason, Output};
use crate::time::Instant;

/// How long the promise of [`Input::Unread`](crate::session::Input::Unread) lasts.
const UNREAD_GRACE: Duration = Duration::from_secs(1);

impl Peer {
    pub(super) fn tick(&mut self, now: Instant, out: &mut Outbox<Output>) {
        for timer in Timer::ALL {
            if !self.timers.is_due(timer, now) {
                continue;
            }
            self.timers.stop(timer);
            match timer {
                Timer::Hold(place) => self.hold_timer(now, place, out),
                Timer::Keepalive(place) => self.keepalive_timer(now, place, out),
                Timer::DelayOpen(place) => self.send_open(now, place, out),
                Timer::IdleHold => self.open(now, out),
                Timer::ConnectRetry => {
                    if self.dialling {
                        self.failed(now, DownReason::NotConnected(ConnectError::TimedOut), out);
                        self.cancel_connect(out);
                    }
                    self.connect(now, out);
                }
            }
        }
    }

    /// The connections that [`Input::Tick`](crate::session::Input::Tick) would end at `now`, since the neighbour has been
    /// silent for the hold time. Before it does, whoever has the sockets may look whether it was: see
    /// [`Input::Unread`](crate::session::Input::Unread).
    pub fn silent(&self, now: Instant) -> impl Iterator<Item = ConnId> {
        let is_silent = move |(place, conn): (Place, &Option<Connection>)| {
            let conn = conn.as_ref()?;
            let due = self.timers.is_due(Timer::Hold(place), now) && Self::silence_ends(conn) <= now;
            due.then_some(conn.id)
        };
        self.conns.iter().enumerate().filter_map(is_silent)
    }

    /// When a neighbour has been silent for too long on a connection.
    fn silence_ends(conn: &Connection) -> Instant {
        let patience = conn.unread_at.map_or(Instant::ZERO, |at| at + UNREAD_GRACE);
        (conn.last_received + conn.hold()).max(patience)
    }

    fn hold_timer(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        let Some(conn) = &self.conns[place] else { return };
        let due = Self::silence_ends(conn);
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

    pub(super) fn arm_connect_retry(&mut self, now: Instant) {
        let wait = self.jitter.shorten(self.settings.connect_retry);
        self.timers.set(Timer::ConnectRetry, now + wait);
    }

    pub(super) fn arm_keepalive(&mut self, now: Instant, place: Place) {
        let interval = self.conns[place]
            .as_ref()
            .and_then(Connection::agreed)
            .map_or(Duration::ZERO, |agreed| agreed.keepalive);
        let wait = self.jitter.shorten(interval).max(KEEPALIVE_PAUSE);
        let Some(conn) = &mut self.conns[place] else { return };
        conn.keepalive_after = wait;
        if interval.is_zero() {
            self.timers.stop(Timer::Keepalive(place));
        } else {
            self.timers.set(Timer::Keepalive(place), now + wait);
        }
    }

    /// The next wait after a failure.
    pub(super) fn back_off(&mut self) -> Duration {
        let wait =
            self.settings.idle_hold.min.saturating_mul(1_u32.checked_shl(self.damping).unwrap_or(u32::MAX));
        self.damping = (self.damping + 1).min(31);
        self.jitter.shorten(wait.min(self.settings.idle_hold.max))
    }
}
