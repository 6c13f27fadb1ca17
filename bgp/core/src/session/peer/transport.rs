//! Attempts to connect, and connections that come of them or from the neighbour (RFC 4271 events 16 to 18).

use std::time::Duration;

use bgp_wire::capability::ExtendedNextHop;
use bgp_wire::notification::Reason;
use bgp_wire::{Capability, Family, MessageType, Notification, Open};
use bytes::BytesMut;

use super::exchange::{encoded, send};
use super::{Admission, Peer, place_of};
use crate::outbox::Outbox;
use crate::peer_key::ConnId;
use crate::session::connection::{Connection, Phase};
use crate::session::timers::{Place, Timer};
use crate::session::{ConnectError, Direction, DownReason, Link, Outgoing, Output, PeerRole};
use crate::time::Instant;

/// The shortest time between two KEEPALIVEs (RFC 4271 section 4.4).
pub(super) const KEEPALIVE_PAUSE: Duration = Duration::from_secs(1);

impl Peer {
    pub(super) fn connected(&mut self, now: Instant, id: ConnId, link: Link, out: &mut Outbox<Output>) {
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
            && !self.hears_out(up)
        {
            // RFC 4271 section 6.8: a collision with an Established connection closes the new one. A neighbour that
            // has lost its memory, though, will never answer on the old one.
            self.probe(now, up, out);
            self.refuse(id, Reason::ConnectionCollision, out);
            return;
        }
        if self.conns[place].as_ref().is_some_and(Connection::is_established) {
            self.change_places();
        }
        if self.conns[place].is_some() {
            // The neighbour opened a second one: it has given up the first.
            self.lose_collision(place, out);
        }
        if link.direction == Direction::Active {
            self.timers.stop(Timer::ConnectRetry);
        }
        self.conns[place] = Some(Connection::new(id, link, self.our_open(now), now));
        if self.settings.delay_open.is_zero() {
            self.send_open(now, place, out);
        } else {
            self.timers.set(Timer::DelayOpen(place), now + self.settings.delay_open);
        }
    }

    /// Sends the OPEN of a connection that has not sent it: it is in OpenSent then.
    pub(super) fn send_open(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        self.timers.stop(Timer::DelayOpen(place));
        let Some(conn) = self.conns[place].as_mut().filter(|conn| conn.is_delayed()) else { return };
        let mut bytes = BytesMut::new();
        conn.sent.encode(&mut bytes).expect("a handful of short capabilities fits into an OPEN");
        conn.phase = Phase::OpenSent;
        self.timers.set(Timer::Hold(place), now + conn.hold());
        out.push(Output::Send(conn.id, Outgoing { kind: MessageType::Open, bytes: bytes.freeze() }));
    }

    pub(super) fn connect_failed(&mut self, now: Instant, error: ConnectError, out: &mut Outbox<Output>) {
        if std::mem::replace(&mut self.dialling, false) {
            self.failed(now, DownReason::NotConnected(error), out);
            if self.wants_connection() {
                self.arm_connect_retry(now);
            }
        }
    }

    pub(super) fn connect(&mut self, now: Instant, out: &mut Outbox<Output>) {
        self.dialling = true;
        self.arm_connect_retry(now);
        out.push(Output::Connect);
    }

    pub(super) fn cancel_connect(&mut self, out: &mut Outbox<Output>) {
        if std::mem::replace(&mut self.dialling, false) {
            out.push(Output::CancelConnect);
        }
    }

    /// Whether a connection of our own should be tried for.
    pub(super) fn wants_connection(&self) -> bool {
        !self.settings.passive
            && !self.dialling
            && self.conns[place_of(Direction::Active)].is_none()
            && self.conns.iter().flatten().all(|conn| conn.agreed().is_none())
    }

    /// Refuses a connection that never became one of ours.
    fn refuse(&self, id: ConnId, reason: Reason, out: &mut Outbox<Output>) {
        send(id, MessageType::Notification, encoded(&Notification::new(reason)), out);
        out.push(Output::Close(id));
    }

    /// Finds out whether a connection still lives: a KEEPALIVE makes an end that has lost its memory say so now rather
    /// than after the hold time. Not more than one a second (RFC 4271 section 4.4), however many connections the
    /// neighbour opens: it may not be reading.
    pub(super) fn probe(&mut self, now: Instant, place: Place, out: &mut Outbox<Output>) {
        if self.conns[place].as_ref().is_some_and(|conn| now >= conn.last_sent + KEEPALIVE_PAUSE) {
            self.send_keepalive(now, place, out);
        }
    }

    /// Whether a connection beside the Established one at `place` is heard out: the neighbour may have restarted.
    fn hears_out(&self, place: Place) -> bool {
        let agreed = self.conns[place].as_ref().and_then(Connection::agreed);
        agreed
            .and_then(|agreed| agreed.negotiated.restart)
            .is_some_and(|restart| !restart.families.is_empty())
            || agreed
                .and_then(|agreed| agreed.negotiated.long_lived)
                .is_some_and(|long_lived| !long_lived.families.is_empty())
    }

    /// Makes room for another connection of the same direction as the Established one, which needs its place no more.
    fn change_places(&mut self) {
        self.conns.swap(0, 1);
        self.timers.swap(Timer::Hold(0), Timer::Hold(1));
        self.timers.swap(Timer::Keepalive(0), Timer::Keepalive(1));
        self.timers.swap(Timer::DelayOpen(0), Timer::DelayOpen(1));
    }

    fn our_open(&self, now: Instant) -> Open {
        let settings = &self.settings;
        let mut capabilities: Vec<_> = settings.families.iter().map(Capability::family).collect();
        capabilities.extend([
            Capability::RouteRefresh,
            Capability::FourOctetAs(settings.local_asn),
            Capability::EnhancedRouteRefresh,
        ]);
        if settings.extended_messages {
            capabilities.push(Capability::ExtendedMessage);
        }
        // RFC 8950 knows it for these. An SR policy's next hop is of either version anyway.
        let extended = [Family::Ipv4Unicast, Family::Ipv4Vpn].into_iter();
        let triples: Vec<_> = extended
            .filter(|family| settings.extended_next_hop && settings.families.contains(*family))
            .map(|family| ExtendedNextHop {
                afi: family.afi(),
                safi: family.safi().into(),
                next_hop_afi: Family::Ipv6Unicast.afi(),
            })
            .collect();
        if !triples.is_empty() {
            capabilities.push(Capability::ExtendedNextHop(triples));
        }
        capabilities.extend(settings.add_path.capability(settings.families));
        capabilities.extend(settings.role.map(|PeerRole { role, .. }| Capability::Role(role)));
        if let Some(graceful) = &settings.graceful_restart {
            let first = self.established_count == 0;
            let restarted = first && now < self.restarted_until;
            capabilities.extend(graceful.capabilities(settings.families, restarted, first));
        }
        Open::new(settings.local_asn, settings.hold_time.secs(), settings.local_router_id, capabilities)
    }
}
