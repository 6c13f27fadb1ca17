//! From the RIB to bytes, as writers pull.

use std::time::Duration;

use std::sync::Arc;

use bgp_wire::{Family, FamilySet, MessageType, RouteRefresh};
use bytes::{Bytes, BytesMut};

use super::Output;
use super::state::{Speaker, for_family};
use crate::egress::{Next, Refresh};
use crate::outbox::Outbox;
use crate::peer_key::{ConnId, PeerIx};
use crate::session::GracefulRestart;
use crate::time::Instant;

/// Destinations that one `pull` looks at; what takes more is left to `work`.
const PULL_BUDGET: usize = if cfg!(test) { 100 } else { 16 * 1024 };

impl Speaker {
    /// Appends the next bytes of a connection: messages of the session first, then UPDATEs, until there are about
    /// `max_bytes` (a chunk is never split). Chunks are shared between connections and never copied.
    ///
    /// True where it ended at `max_bytes`, so that there may be more when those bytes are written. Else that is all, and
    /// the connection idle: there will be an [`Output::Wake`](super::Output::Wake), which may come before the bytes are
    /// written. After [`Output::Close`](super::Output::Close) it gives what was still to be said, once.
    pub fn pull(&mut self, now: Instant, conn: ConnId, max_bytes: usize, into: &mut Vec<Bytes>) -> bool {
        let Some(entry) = self.conns.get_mut(&conn) else { return false };
        let peer = entry.peer;
        let mut taken = 0;
        for bytes in entry.control.drain(..) {
            taken += bytes.len();
            into.push(bytes);
        }
        if entry.closing {
            self.conns.remove(&conn);
            return false;
        }
        let established =
            self.peer(peer).and_then(|neighbour| neighbour.up.as_ref()).is_some_and(|up| up.conn == conn);
        if established {
            taken += self.pull_updates(now, peer, max_bytes.saturating_sub(taken), into);
        }
        let more = taken > 0 && taken >= max_bytes;
        if !more {
            self.set_idle(conn);
        }
        more
    }

    /// Whether a session has something to say on a connection itself: a KEEPALIVE, or its last words. With `max_bytes` 0,
    /// [`Speaker::pull`] gives that alone, and takes no time.
    #[must_use]
    pub fn has_word(&self, conn: ConnId) -> bool {
        self.conns.get(&conn).is_some_and(|conn| !conn.control.is_empty())
    }

    /// How long the peer may take none of a connection's octets before the connection counts as lost, to be said of what
    /// [`Speaker::pull`] gave (SendHoldTime, RFC 9687); `None` for as long as it likes, where no hold time was agreed.
    #[must_use]
    pub fn send_hold(&self, conn: ConnId) -> Option<Duration> {
        let peer = self.conns.get(&conn)?.peer;
        self.peer(peer)?.session.send_hold(conn)
    }

    fn pull_updates(&mut self, now: Instant, peer: PeerIx, max_bytes: usize, into: &mut Vec<Bytes>) -> usize {
        let complete = self.complete_for(peer);
        let Some(neighbour) = self.peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else {
            return 0;
        };
        let mut taken = 0;
        let mut messages = 0;
        let mut budget = PULL_BUDGET;
        // Families take turns, so that a large one does not starve the others.
        neighbour.turn = neighbour.turn.wrapping_add(1);
        for n in 0..Family::COUNT {
            let family = Family::ALL[(n + usize::from(neighbour.turn)) % Family::COUNT];
            let Some(group) = neighbour.families[family.index()].group else { continue };
            let complete = complete.contains(family);
            while taken < max_bytes {
                let max = max_bytes - taken;
                let next = for_family!(self, family, rib => {
                    rib.next(peer, group, complete, max, &mut budget, into, &mut self.shared)
                });
                match next {
                    Next::Updates(octets, count) => {
                        taken += octets;
                        messages += u64::from(count);
                    }
                    Next::Marker(bytes) => {
                        taken += bytes.len();
                        neighbour.sent.count(MessageType::RouteRefresh, 1);
                        into.push(bytes);
                    }
                    Next::Busy | Next::Nothing => break,
                }
            }
        }
        if messages > 0 {
            neighbour.sent.count(MessageType::Update, messages);
            neighbour.session.sent_update(now);
        }
        taken
    }

    /// The families that a neighbour is told all of, and may be told the end of.
    fn complete_for(&self, peer: PeerIx) -> FamilySet {
        let Some(neighbour) = self.peer(peer) else { return FamilySet::EMPTY };
        let told = |family: &Family| neighbour.families[family.index()].group.is_some();
        Family::ALL.into_iter().filter(told).filter(|family| self.is_complete(*family)).collect()
    }

    /// A writer has written everything and waits.
    pub(super) fn set_idle(&mut self, conn: ConnId) {
        let Some(entry) = self.conns.get_mut(&conn) else { return };
        entry.idle = true;
        let peer = entry.peer;
        let Some(neighbour) = self.peers.get(peer.index()).and_then(Option::as_deref) else { return };
        if neighbour.up.as_ref().is_none_or(|up| up.conn != conn) {
            return;
        }
        for family in Family::ALL {
            if let Some(group) = neighbour.families[family.index()].group {
                for_family!(self, family, rib => {
                    if let Some(group) = rib.group_mut(group) {
                        group.set_idle(peer);
                    }
                });
            }
        }
    }

    /// A neighbour sent ROUTE-REFRESH: it asks for everything again (RFC 2918), or marks begin or end of saying
    /// everything again itself (RFC 7313), for which it has as long as for saying everything after a restart. Other
    /// subtypes, and families that were not agreed on, are ignored.
    pub(super) fn refresh_heard(
        &mut self,
        now: Instant,
        peer: PeerIx,
        refresh: RouteRefresh,
        out: &mut Outbox<Output>,
    ) {
        let Some(neighbour) = self.peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else { return };
        let Some(negotiated) = neighbour.up.as_ref().map(|up| Arc::clone(&up.negotiated)) else { return };
        let Some(family) = refresh.family().filter(|family| negotiated.families.contains(*family)) else {
            return;
        };
        let state = &mut neighbour.families[family.index()];
        match refresh.subtype {
            RouteRefresh::REQUEST => self.send_again(peer, family),
            RouteRefresh::BEGIN if negotiated.enhanced_refresh => {
                // RFC 7313 section 4: what a neighbour says after a restart ends with End-of-RIB, not with a marker.
                if negotiated.restart.is_some() && !state.end_of_rib {
                    tracing::warn!(peer = %neighbour.key, %family, "a refresh begins before End-of-RIB");
                    return;
                }
                // Whoever begins again before the end only goes on: else it could stay stale for ever, and have as much
                // as its limit allows once more for each beginning. What it does not mean any more it withdraws.
                if state.repeating.is_some() {
                    return;
                }
                let usual = GracefulRestart::USUAL.stale_time;
                let graceful = neighbour.config.graceful_restart;
                state.repeating = Some(now + graceful.map_or(usual, |graceful| graceful.stale_time));
                // What is not stale goes on counting.
                if self.shared.sources.mark_stale(peer, family) {
                    state.gauge.repeat_begins();
                }
            }
            RouteRefresh::END if negotiated.enhanced_refresh => {
                self.repeat_over(now, peer, family, out);
            }
            _ => {}
        }
    }

    /// Asks a neighbour for everything of these families again (RFC 2918), where it answers that.
    pub(super) fn ask_again(&mut self, peer: PeerIx, families: FamilySet, out: &mut Outbox<Output>) {
        let Some(neighbour) = self.peer_mut(peer) else { return };
        let Some(up) = neighbour.up.as_ref().filter(|up| up.negotiated.route_refresh) else { return };
        let (conn, families) = (up.conn, up.negotiated.families.intersect(families));
        families.iter().for_each(|family| neighbour.families[family.index()].gauge.asked());
        neighbour.sent.count(MessageType::RouteRefresh, families.len() as u64);
        let mut bytes = BytesMut::new();
        families
            .iter()
            .for_each(|family| RouteRefresh::new(family, RouteRefresh::REQUEST).encode(&mut bytes));
        self.send(conn, bytes.freeze(), out);
    }

    /// Everything is to be sent again.
    pub(super) fn send_again(&mut self, peer: PeerIx, family: Family) {
        let Some(neighbour) = self.peer(peer) else { return };
        let Some(up) = &neighbour.up else { return };
        let refresh = if up.negotiated.enhanced_refresh { Refresh::Marked } else { Refresh::Plain };
        if let Some(group) = neighbour.families[family.index()].group {
            for_family!(self, family, rib => {
                if let Some(group) = rib.group_mut(group) {
                    group.refresh(peer, refresh);
                }
            });
        }
    }
}
