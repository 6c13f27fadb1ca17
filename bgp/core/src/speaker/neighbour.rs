//! One neighbour: its session and its numbers; what happens when it connects, comes up and goes down.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_wire::{Asn, Capability, Family, FamilySet, Negotiated, NextHop, Open, PathId, Role, RouterId};
use ipnet::IpNet;

use super::complaint::Complaints;
use super::convergence::Quiet;
use super::family::Arrival;
use super::limits::Gauge;
use super::range::transport;
use super::state::{Conn, Speaker, for_family};
use super::{Output, PeerEventKind, SpeakerSettings};
use crate::command::PeerConfig;
use crate::egress::{Filter, GroupKey, Moved, PathRules, Rules};
use crate::outbox::Outbox;
use crate::peer_key::{ConnId, PeerIx, PeerKey};
use crate::rib::{PeerSource, SourceId};
use crate::session::role;
use crate::session::{
    self, CloseReason, ConnectError, Direction, DownReason, GracefulRestart, Helper, Kept, Link, Lost, Peer,
    State,
};
use crate::stats::MessageCounts;
use crate::time::Instant;

/// One neighbour.
pub(super) struct Neighbour {
    pub(super) key: PeerKey,
    pub(super) config: PeerConfig,
    pub(super) session: Peer,
    pub(super) disabled: bool,
    /// What an operator said when it was disabled.
    pub(super) shutdown_text: Arc<str>,
    /// It is about to be left: both ends are to prefer other paths (RFC 8326).
    pub(super) graceful_shutdown: bool,
    /// The configuration has been deleted; what is left waits for its paths to be removed.
    pub(super) gone: bool,
    /// The prefix that made it a neighbour; `None` for one that is configured itself.
    pub(super) range: Option<IpNet>,
    /// When it is to be forgotten, being dynamic and without a connection: its place among the departures.
    pub(super) departs: Option<Instant>,
    /// What was last told of the state.
    pub(super) state: State,
    /// The place in the speaker's list of deadlines.
    pub(super) deadline: Option<Instant>,
    /// The attempt to connect that is under way.
    pub(super) dial: Option<ConnId>,
    pub(super) up: Option<Up>,
    /// Follows its stale routes.
    pub(super) stale: Helper,
    /// The session that its stale routes came from, while it is away.
    pub(super) away: Option<Away>,
    /// Import policy.
    pub(super) import: Filter,
    pub(super) received: MessageCounts,
    pub(super) sent: MessageCounts,
    /// By family index.
    pub(super) families: [FamilyState; Family::COUNT],
    /// Which family's turn it is to send first.
    pub(super) turn: u8,
    /// Its faulty UPDATEs.
    pub(super) complaints: Complaints,
    /// It has a prefix limit, or lacks what was discarded under one.
    pub(super) limited: bool,
}

/// What holds while a session is Established.
pub(super) struct Up {
    pub(super) conn: ConnId,
    pub(super) link: Link,
    pub(super) negotiated: Arc<Negotiated>,
    /// The source of its paths, where they have no path identifiers.
    pub(super) source: SourceId,
    /// Its OPEN had the capability for long-lived graceful restart (RFC 9494), whatever ours had.
    pub(super) long_lived: bool,
    pub(super) quiet: Quiet,
}

impl Up {
    /// Our address.
    pub(super) fn local(&self) -> IpAddr {
        self.link.local.ip().to_canonical()
    }
}

/// What holds while a neighbour is away whose routes are kept: what held of the session that they came from.
pub(super) struct Away {
    pub(super) link: Link,
    pub(super) negotiated: Arc<Negotiated>,
    pub(super) source: SourceId,
}

/// One family at one neighbour.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct FamilyState {
    pub(super) received: u64,
    pub(super) accepted: u64,
    pub(super) end_of_rib: bool,
    /// It says everything again, and has not said yet that this is over (RFC 7313); until when it has time to.
    pub(super) repeating: Option<Instant>,
    /// It has been said that paths of it are ignored, since it has too many to one destination.
    pub(super) refuses_paths: bool,
    /// What it counts towards its limit.
    pub(super) gauge: Gauge,
    /// The update group.
    pub(super) group: Option<u32>,
}

impl Neighbour {
    pub(super) fn new(
        key: PeerKey,
        config: PeerConfig,
        session: Peer,
        import: Filter,
        range: Option<IpNet>,
    ) -> Self {
        Self {
            key,
            config,
            state: session.state(),
            session,
            disabled: false,
            shutdown_text: "".into(),
            graceful_shutdown: false,
            gone: false,
            range,
            departs: None,
            deadline: None,
            dial: None,
            up: None,
            stale: Helper::default(),
            away: None,
            import,
            received: MessageCounts::default(),
            sent: MessageCounts::default(),
            families: [FamilyState::default(); Family::COUNT],
            turn: 0,
            complaints: Complaints::default(),
            limited: false,
        }
    }

    /// Our own address as a next hop of one family, on an established session: the one configured, or that of the
    /// session. An IPv6 one serves IPv4 prefixes for want of an IPv4 one, where that was agreed (RFC 8950).
    fn own_next_hop(&self, family: Family, link: &Link, negotiated: &Negotiated) -> Option<NextHop> {
        let local = link.local.ip().to_canonical();
        match family {
            Family::Ipv4Unicast | Family::Ipv4Vpn => match (self.config.next_hop_v4, local) {
                (Some(address), _) | (None, IpAddr::V4(address)) => Some(NextHop::V4(address)),
                (None, IpAddr::V6(_)) if negotiated.extended_next_hop.contains(family) => {
                    self.own_ipv6(local)
                }
                (None, IpAddr::V6(_)) => None,
            },
            Family::Ipv6Unicast => self.own_ipv6(local),
            // RFC 4659 section 3.2.1.2: an IPv4 address that traffic is to be tunnelled to goes as an IPv6 one.
            Family::Ipv6Vpn => self.own_ipv6(local).or_else(|| match local {
                IpAddr::V4(local) => Some(self.config.next_hop_v4.unwrap_or(local).to_ipv6_mapped().into()),
                IpAddr::V6(_) => None,
            }),
            // RFC 9830 section 2.1: of either version. GoBGP 3 passes on only that of the family rightly.
            Family::Ipv4SrPolicy => self.own_ipv4(local).or_else(|| self.own_ipv6(local)),
            Family::Ipv6SrPolicy => self.own_ipv6(local).or_else(|| self.own_ipv4(local)),
        }
    }

    fn own_ipv4(&self, local: IpAddr) -> Option<NextHop> {
        match (self.config.next_hop_v4, local) {
            (Some(address), _) | (None, IpAddr::V4(address)) => Some(address.into()),
            (None, IpAddr::V6(_)) => None,
        }
    }

    fn own_ipv6(&self, local: IpAddr) -> Option<NextHop> {
        match (self.config.next_hop_v6, local) {
            (Some(global), _) => {
                let link_local = match local {
                    IpAddr::V6(local) if local.is_unicast_link_local() => Some(local),
                    IpAddr::V6(_) | IpAddr::V4(_) => None,
                };
                Some(NextHop::V6 { global, link_local })
            }
            (None, IpAddr::V6(local)) => {
                let link_local = local.is_unicast_link_local().then_some(local);
                Some(NextHop::V6 { global: local, link_local })
            }
            (None, IpAddr::V4(_)) => None,
        }
    }

    /// Where its paths come from that arrive at second `now`; `None` while it is down and nothing is kept of it.
    pub(super) fn arrival(
        &self,
        peer: PeerIx,
        settings: &SpeakerSettings,
        cluster: Option<RouterId>,
        now: u32,
    ) -> Option<Arrival<'_>> {
        let up = self.up.as_ref().map(|up| (up.link, &up.negotiated, up.source));
        let away = || self.away.as_ref().map(|away| (away.link, &away.negotiated, away.source));
        let (link, negotiated, source) = up.or_else(away)?;
        Some(Arrival {
            peer,
            source,
            import: &self.import,
            external: negotiated.ebgp,
            neighbor: self.key.address,
            own: [negotiated.local_asn, settings.asn],
            allow_own_as: self.config.allow_own_as,
            first_as: first_as(&self.config, negotiated),
            moved_from: moved_from(&self.config, negotiated, settings.asn),
            cluster: cluster.filter(|_| !negotiated.ebgp),
            router_id: settings.router_id,
            sr_policy_strict: self.config.sr_policy_strict,
            local: link.local.ip().to_canonical(),
            role: role_in(negotiated),
            graceful_shutdown: self.graceful_shutdown,
            now,
        })
    }

    /// Whether its paths of a family have identifiers (RFC 7911).
    pub(super) fn has_path_ids(&self, family: Family) -> bool {
        let up = self.up.as_ref().map(|up| &up.negotiated);
        let negotiated = up.or_else(|| self.away.as_ref().map(|away| &away.negotiated));
        negotiated.is_some_and(|negotiated| negotiated.add_path_receive.contains(family))
    }

    /// Families in which it has routes, or may have.
    pub(super) fn families_with_routes(&self) -> FamilySet {
        self.up.as_ref().map_or(self.stale.families(), |up| up.negotiated.families)
    }

    /// Whether it exchanges a family in which it can't be told of a route through us, for want of a next hop.
    pub(super) fn lacks_next_hop(&self, family: Family) -> bool {
        self.up.as_ref().is_some_and(|up| {
            up.negotiated.families.contains(family)
                && self.own_next_hop(family, &up.link, &up.negotiated).is_none()
        })
    }

    /// The key of its update group in a family, if the family is exchanged.
    pub(super) fn group_key(
        &self,
        family: Family,
        alone: bool,
        settings: &SpeakerSettings,
        cluster: Option<RouterId>,
    ) -> Option<GroupKey> {
        let up = self.up.as_ref()?;
        if !up.negotiated.families.contains(family) {
            return None;
        }
        let external = up.negotiated.ebgp;
        let both = self.config.local_asn.filter(|local| !local.replace_as && local.asn != settings.asn);
        let path = PathRules::new(
            both.map(|_| settings.asn),
            self.config.remove_private_as,
            self.config.as_override,
            up.negotiated.remote_asn,
        );
        let rules = Rules {
            family,
            external,
            local_asn: up.negotiated.local_asn,
            path: path.filter(|_| external),
            client: self.config.route_reflector_client && !external,
            cluster: cluster.filter(|_| !external),
            four_octet: up.negotiated.four_octet,
            max_message: up.negotiated.max_message,
            next_hop: self.config.next_hop,
            extended_next_hop: up.negotiated.extended_next_hop.contains(family),
            paths: self.config.add_path.send.filter(|_| up.negotiated.add_path_send.contains(family)),
            own: self.own_next_hop(family, &up.link, &up.negotiated),
            role: role_in(&up.negotiated).map(|(role, _)| role).filter(|_| role::concerns(family)),
            long_lived: up.long_lived,
            graceful_shutdown: self.graceful_shutdown,
        };
        let max_prefixes = self.config.max_prefixes_out.get(&family).copied();
        let alone = (alone || max_prefixes.is_some()).then_some(self.key);
        Some(GroupKey { rules, policy: self.config.export.clone(), alone, max_prefixes })
    }
}

/// Whether an OPEN has the capability for long-lived graceful restart, and the one without which it counts for nothing
/// (RFC 9494 section 4.5).
fn is_long_lived(open: &Open) -> bool {
    let graceful = |capability: &Capability| matches!(capability, Capability::GracefulRestart(_));
    let long_lived = |capability: &Capability| matches!(capability, Capability::LongLivedGracefulRestart(_));
    open.capabilities.iter().any(graceful) && open.capabilities.iter().any(long_lived)
}

/// Our role on a session, and the neighbour's AS number: on an external session only (RFC 9234 section 4).
pub(super) fn role_in(negotiated: &Negotiated) -> Option<(Role, Asn)> {
    negotiated.role.filter(|_| negotiated.ebgp).map(|role| (role, negotiated.remote_asn))
}

/// What the paths of a neighbour's routes must begin with (RFC 4271 section 6.3).
pub(super) fn first_as(config: &PeerConfig, negotiated: &Negotiated) -> Option<Asn> {
    (config.enforce_first_as && negotiated.ebgp).then_some(negotiated.remote_asn)
}

/// What is put in front of the paths of a neighbour's routes: the AS number by which it knows us, as if they had passed that
/// AS before they came to ours, `asn` (RFC 7705 section 3).
pub(super) fn moved_from(config: &PeerConfig, negotiated: &Negotiated, asn: Asn) -> Option<Asn> {
    let local = config.local_asn.filter(|local| negotiated.ebgp && !local.no_prepend && local.asn != asn)?;
    Some(local.asn)
}

/// Connections.
impl Speaker {
    pub(super) fn accepted(&mut self, now: Instant, conn: ConnId, link: Link, out: &mut Outbox<Output>) {
        let Some(peer) = self.expected(&link).or_else(|| self.admit(now, &link, out)) else {
            tracing::debug!(%conn, remote = %link.remote, "a connection from nobody we know");
            out.push(Output::Close { conn });
            return;
        };
        self.conns.insert(conn, Conn { peer, control: VecDeque::new(), idle: true, closing: false });
        self.session(now, peer, session::Input::Connected(conn, link), out);
    }

    /// The neighbour whose connection this is: by address and zone, as it may come from any port. Of several
    /// neighbours at one address the one that holds no connection yet is meant, or the first.
    pub(super) fn expected(&self, link: &Link) -> Option<PeerIx> {
        let remote = PeerKey::from_socket(link.remote);
        let here = |peer: &PeerIx| {
            self.peer(*peer).is_some_and(|neighbour| {
                let local = neighbour.config.local_address;
                local.is_none_or(|local| local == link.local.ip().to_canonical())
            })
        };
        let mut candidates = self.at_address(&remote).filter(here);
        let first = candidates.next()?;
        let waits = |peer: PeerIx| self.peer(peer).is_some_and(|neighbour| neighbour.state < State::OpenSent);
        if waits(first) { Some(first) } else { candidates.find(|peer| waits(*peer)).or(Some(first)) }
    }

    pub(super) fn connected(&mut self, now: Instant, conn: ConnId, link: Link, out: &mut Outbox<Output>) {
        let Some(peer) = self.take_dial(conn) else {
            out.push(Output::Close { conn });
            return;
        };
        let link = Link { direction: Direction::Active, ..link };
        self.conns.insert(conn, Conn { peer, control: VecDeque::new(), idle: true, closing: false });
        self.session(now, peer, session::Input::Connected(conn, link), out);
    }

    pub(super) fn connect_failed(
        &mut self,
        now: Instant,
        conn: ConnId,
        reason: ConnectError,
        out: &mut Outbox<Output>,
    ) {
        if let Some(peer) = self.take_dial(conn) {
            self.session(now, peer, session::Input::ConnectFailed(reason), out);
        }
    }

    fn take_dial(&mut self, conn: ConnId) -> Option<PeerIx> {
        let ix =
            self.peers.iter().position(|peer| peer.as_ref().is_some_and(|peer| peer.dial == Some(conn)))?;
        let peer = PeerIx(ix as u32);
        self.peer_mut(peer)?.dial = None;
        Some(peer)
    }

    pub(super) fn dial(&mut self, peer: PeerIx, out: &mut Outbox<Output>) {
        self.dialled += 1;
        let conn = ConnId::dialled(self.dialled);
        if let Some(neighbour) = self.peer_mut(peer) {
            neighbour.dial = Some(conn);
            let local_asn = neighbour.session.settings().local_asn;
            let transport = transport(&neighbour.config, local_asn, neighbour.key.socket());
            out.push(Output::Dial { conn, peer: neighbour.key, transport });
        }
    }

    pub(super) fn closed(
        &mut self,
        now: Instant,
        conn: ConnId,
        reason: CloseReason,
        out: &mut Outbox<Output>,
    ) {
        if let Some(entry) = self.conns.remove(&conn)
            && !entry.closing
        {
            self.session(now, entry.peer, session::Input::Closed(conn, reason), out);
        }
    }
}

/// Up and down.
impl Speaker {
    pub(super) fn up(
        &mut self,
        now: Instant,
        peer: PeerIx,
        conn: ConnId,
        negotiated: Arc<Negotiated>,
        out: &mut Outbox<Output>,
    ) {
        let Some(neighbour) = self.peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else { return };
        let status = neighbour.session.status();
        let Some(link) = status.link else { return };
        let long_lived = status.received.is_some_and(is_long_lived);
        let facts = PeerSource {
            external: negotiated.ebgp,
            router_id: negotiated.remote_router_id,
            address: neighbour.key.address,
            client: neighbour.config.route_reflector_client && !negotiated.ebgp,
        };
        let before = self.shared.sources.peer_facts(peer).map(|before| before.router_id);
        self.shared.sources.peer_up(peer, facts);
        let local = link.local.ip().to_canonical();
        let Some(source) = self.shared.sources.intern(peer, PathId::NONE) else { return };
        let families = negotiated.families;
        // As another kind of neighbour than before it had better start anew.
        let same =
            neighbour.away.take().is_none_or(|away| away.negotiated.remote_asn == negotiated.remote_asn);
        let agreed = negotiated.restart.filter(|_| same);
        let agreed_long_lived = negotiated.long_lived.filter(|_| same);
        let usual = GracefulRestart::USUAL.stale_time;
        let stale_time = neighbour.config.graceful_restart.map_or(usual, |graceful| graceful.stale_time);
        let gone = neighbour.stale.up(now, agreed.as_ref(), agreed_long_lived.as_ref(), stale_time);
        neighbour.up = Some(Up { conn, link, negotiated, source, long_lived, quiet: Quiet::new(now) });
        for state in &mut neighbour.families {
            state.end_of_rib = false;
            state.repeating = None;
            state.refuses_paths = false;
        }
        for family in families.iter().filter(|family| neighbour.lacks_next_hop(*family)) {
            tracing::warn!(
                peer = %neighbour.key, %family, %local,
                "routes that lead through us are not announced: there is no address of ours for their next hop"
            );
        }
        self.stale_gone(peer, gone);
        if before.is_some_and(|before| before != facts.router_id) {
            self.identify_again(peer, facts.external);
        }
        self.add_own_address(local);
        for family in families.iter() {
            if let Some(key) = self.group_key(peer, family) {
                self.join_group(peer, family, key, None);
            }
        }
        self.tell(peer, PeerEventKind::Up, out);
        self.review_convergence(now);
    }

    pub(super) fn down(
        &mut self,
        now: Instant,
        peer: PeerIx,
        reason: DownReason,
        kept: Kept,
        out: &mut Outbox<Output>,
    ) {
        if let Some(local) = self.peer(peer).and_then(|neighbour| neighbour.up.as_ref()).map(Up::local) {
            self.drop_own_address(local);
        }
        for family in Family::ALL {
            if let Some(moved) = self.leave_group(peer, family, false) {
                for_family!(self, family, rib => rib.discard(moved, &mut self.shared));
            }
        }
        if let Some(neighbour) = self.peer_mut(peer)
            && let Some(up) = neighbour.up.take()
        {
            let stale_before = neighbour.stale.families();
            let repeating = neighbour.families.map(|state| state.repeating.is_some());
            for state in &mut neighbour.families {
                state.repeating = None;
                state.gauge.down();
            }
            let Lost { kept: families, held } = neighbour.stale.down(now, kept);
            if !families.is_empty() {
                tracing::info!(peer = %neighbour.key, %families, time = ?kept.time, "routes are kept");
                let Up { link, negotiated, source, .. } = up;
                neighbour.away = Some(Away { link, negotiated, source });
            }
            // The routes count no more from this moment, but for those kept; the tables are rid of them slice by slice.
            self.shared.sources.peer_lost(peer, families, held);
            for family in Family::ALL {
                let all_stay = families.contains(family)
                    && (held.contains(family)
                        || !stale_before.contains(family) && !repeating[family.index()]);
                if !all_stay {
                    for_family!(self, family, rib => rib.review.begin());
                }
            }
            // Without a restart time they are long-lived stale at once.
            self.expire_stale(now, peer);
        }
        self.tell(peer, PeerEventKind::Down(reason), out);
        self.review_convergence(now);
    }

    /// One more session has this address as our end: routes that lead there lead back to us (RFC 4271 section 5.1.3).
    fn add_own_address(&mut self, address: IpAddr) {
        let count = self.shared.own_addresses.entry(address).or_insert(0);
        *count += 1;
        if *count > 1 {
            return;
        }
        let peers: Vec<PeerIx> = self.by_key.values().copied().collect();
        for family in Family::ALL {
            let known = for_family!(self, family, rib => !rib.table.is_empty());
            if known {
                peers.iter().for_each(|peer| for_family!(self, family, rib => rib.begin_reimport(*peer)));
            }
        }
    }

    /// One session fewer. What was refused for it stays so until it is said or judged again.
    fn drop_own_address(&mut self, address: IpAddr) {
        if let Some(count) = self.shared.own_addresses.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.shared.own_addresses.remove(&address);
            }
        }
    }

    /// Puts an established neighbour into the update group that it belongs to. `moved` is what it brings from another.
    fn join_group(&mut self, peer: PeerIx, family: Family, key: GroupKey, moved: Option<Moved>) {
        let filter = self.export_filter(&key.policy, family);
        let idle = self
            .peer(peer)
            .and_then(|neighbour| neighbour.up.as_ref())
            .is_some_and(|up| self.conns.get(&up.conn).is_some_and(|conn| conn.idle));
        let group = for_family!(self, family, rib => {
            let group = rib.join(peer, key, filter, moved, &mut self.shared);
            if idle && let Some(group) = rib.group_mut(group) {
                group.set_idle(peer);
            }
            group
        });
        if let Some(neighbour) = self.peer_mut(peer) {
            neighbour.families[family.index()].group = Some(group);
        }
    }

    fn leave_group(&mut self, peer: PeerIx, family: Family, moving: bool) -> Option<Moved> {
        let group = self.peer_mut(peer)?.families[family.index()].group.take()?;
        for_family!(self, family, rib => rib.leave(peer, group, moving, &mut self.shared))
    }

    fn group_key(&self, peer: PeerIx, family: Family) -> Option<GroupKey> {
        let neighbour = self.peer(peer)?;
        // Three reasons to be told something of one's own.
        let alone = self.policies.asks_who(&neighbour.config.export)
            || self.named.contains_key(&neighbour.key)
            || self.named_next_hops.contains_key(&neighbour.key.address);
        neighbour.group_key(family, alone, &self.settings, self.shared.cluster)
    }

    /// What decides about a neighbour's update groups may have changed: it moves where it belongs, and is told what is
    /// different there.
    pub(super) fn regroup(&mut self, peer: PeerIx) {
        for family in Family::ALL {
            let Some(key) = self.group_key(peer, family) else { continue };
            let group = self.peer(peer).and_then(|neighbour| neighbour.families[family.index()].group);
            let stays = group.is_some_and(|group| {
                for_family!(self, family, rib => rib.group(group).is_some_and(|group| *group.key() == key))
            });
            if !stays {
                let moved = self.leave_group(peer, family, true);
                self.join_group(peer, family, key, moved);
            }
        }
    }
}
