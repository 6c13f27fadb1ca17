//! From bytes to the RIB.

use bgp_wire::{Family, MAX_LEN, MessageType, UpdateView, WireError, split_message};

use super::Output;
use super::family::Arrival;
use super::neighbour::{first_as, moved_from, role_in};
use super::ribs::for_rib;
use super::state::Speaker;
use crate::outbox::Outbox;
use crate::peer_key::{ConnId, PeerIx};
use crate::session;
use crate::time::Instant;

impl Speaker {
    /// Whole messages arrived on a connection.
    pub(super) fn received(&mut self, now: Instant, conn: ConnId, messages: &[u8], out: &mut Outbox<Output>) {
        let Some(peer) = self.conns.get(&conn).filter(|conn| !conn.closing).map(|conn| conn.peer) else {
            return;
        };
        let mut rest = messages;
        while !rest.is_empty() {
            let Some(neighbour) = self.peer_mut(peer) else { return };
            // An earlier message may have ended the connection.
            if !neighbour.session.holds(conn) {
                return;
            }
            let longest = neighbour.up.as_ref().map_or(MAX_LEN, |up| usize::from(up.negotiated.max_received));
            let fault = match split_message(rest, longest) {
                Ok(Some(frame)) => {
                    rest = rest.get(frame.raw.len()..).unwrap_or_default();
                    neighbour.received.count(frame.kind, 1);
                    let is_update = frame.kind == MessageType::Update;
                    let deliver = self.session(now, peer, session::Input::Received(conn, frame), out);
                    if !(is_update && deliver) {
                        continue;
                    }
                    let fault = self.update(now, peer, frame.body).err();
                    if fault.is_none() {
                        self.review_limits(now, peer, out);
                    }
                    fault
                }
                Ok(None) => {
                    tracing::error!(%conn, octets = rest.len(), "part of a message was passed in and is lost");
                    return;
                }
                Err(error) => Some(error),
            };
            if let Some(error) = fault {
                self.session(now, peer, session::Input::Malformed(conn, error), out);
                return;
            }
        }
    }

    /// An UPDATE of an established session enters the RIB.
    fn update(&mut self, now: Instant, peer: PeerIx, body: &[u8]) -> Result<(), WireError> {
        let up = self.peer_mut(peer).and_then(|neighbour| neighbour.up.as_mut());
        if up.is_some_and(|up| up.quiet.heard(now)) {
            self.no_longer_quiet(now);
        }
        let Self { peers, shared, ribs, settings, .. } = self;
        let Some(neighbour) = peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else {
            return Ok(());
        };
        let Some(up) = &mut neighbour.up else { return Ok(()) };
        let view = UpdateView::parse(body, &up.negotiated)?;
        shared.stats.updates_in += 1;
        let passed_over = view.passed_over();
        if passed_over > 0 {
            tracing::debug!(peer = %neighbour.key, passed_over, "SR policies of a wrong length are passed over");
        }
        if let Some(family) = view.end_of_rib() {
            self.end_of_rib(now, peer, family);
            return Ok(());
        }
        let external = up.negotiated.ebgp;
        let arrival = Arrival {
            peer,
            source: up.source,
            import: &neighbour.import,
            external,
            neighbor: neighbour.key.address,
            own: [up.negotiated.local_asn, settings.asn],
            allow_own_as: neighbour.config.allow_own_as,
            first_as: first_as(&neighbour.config, &up.negotiated),
            moved_from: moved_from(&neighbour.config, &up.negotiated, settings.asn),
            cluster: shared.cluster.filter(|_| !external),
            router_id: settings.router_id,
            sr_policy_strict: neighbour.config.sr_policy_strict,
            local: up.local(),
            role: role_in(&up.negotiated),
            graceful_shutdown: neighbour.graceful_shutdown,
            now: now.as_secs(),
        };
        let families = &mut neighbour.families;
        let classic = Family::Ipv4Unicast.index();
        ribs.v4.withdraw(view.withdrawn(), &arrival, &mut families[classic], shared);
        if let Some(unreach) = view.mp_unreach() {
            let state = &mut families[unreach.family.index()];
            for_rib!(ribs, unreach.family, rib => rib.withdraw(unreach.prefixes(), &arrival, state, shared));
        }
        if !view.has_reachable() {
            return Ok(());
        }
        let sets = shared.attrs.from_update(&view)?;
        let discarded = sets.discarded.len() as u64;
        shared.stats.attributes_discarded += discarded;
        neighbour.complaints.attributes_discarded += discarded;
        for fault in &sets.discarded {
            neighbour.complaints.note(now, &neighbour.key, fault, &view);
        }
        if let Some(fault) = &sets.treat_as_withdraw {
            shared.stats.treated_as_withdraw += 1;
            neighbour.complaints.treated_as_withdraw += 1;
            neighbour.complaints.note(now, &neighbour.key, fault, &view);
            ribs.v4.withdraw(view.announced(), &arrival, &mut families[classic], shared);
            if let Some(reach) = view.mp_reach() {
                let state = &mut families[reach.family.index()];
                for_rib!(ribs, reach.family, rib => rib.withdraw(reach.prefixes(), &arrival, state, shared));
            }
        }
        if let Some(attrs) = sets.classic {
            ribs.v4.announce(view.announced(), attrs, &arrival, &mut families[classic], shared);
            shared.attrs.release(attrs, 1);
        }
        if let Some(attrs) = sets.multiprotocol {
            if let Some(reach) = view.mp_reach() {
                let state = &mut families[reach.family.index()];
                for_rib!(ribs, reach.family, rib => rib.announce(reach.prefixes(), attrs, &arrival, state, shared));
            }
            shared.attrs.release(attrs, 1);
        }
        Ok(())
    }
}
