//! Queries.

use std::time::Duration;

use bgp_wire::attr::Canonical;
use bgp_wire::{Capability, Family, NextHop, Nlri, Open, PathId};
use smallvec::SmallVec;

use super::family::FamilyRib;
use super::neighbour::Neighbour;
use super::ribs::for_rib;
use super::state::{Shared, Speaker};
use crate::command::PeerConfig;
use crate::egress::{ExportKey, Form, Group, Told, canonical_form};
use crate::peer_key::{PeerIx, PeerKey};
use crate::policy::Direction;
use crate::query::{
    FamilyStatus, Idle, PathEntry, PeerPolicies, PeerStatus, PolicyStatus, QueryError, RouteCursor,
    RouteEntry, RoutePage, RouteQuery, RouteTable,
};
use crate::rib::{AttrId, AttrSet, Context, DestId, Path, Standing};
use crate::session::{ConnectError, DownReason};
use crate::stats::{SpeakerStats, TableSizes};
use crate::time::Instant;

/// Destinations looked at for one page, found or not.
const LOOKED_AT: usize = if cfg!(test) { 100 } else { 8 * 1024 };

/// Destinations on one page at the most, whatever is asked for: each takes a microsecond or two.
const LONGEST_PAGE: usize = 1000;

impl Speaker {
    /// Every configured neighbour, in the order of their keys.
    #[must_use]
    pub fn peers(&self, now: Instant) -> Vec<PeerStatus> {
        self.by_key.values().filter_map(|peer| Some(self.status(now, *peer, self.peer(*peer)?))).collect()
    }

    /// A page of a table: at most `limit` destinations, no more than a thousand, and fewer where it is long looked for them. Begin without
    /// `cursor`; go on with the one that the page gives, until it gives none.
    ///
    /// # Errors
    /// When the query names a peer that does not exist, or a prefix of another family.
    pub fn routes(
        &mut self,
        now: Instant,
        query: &RouteQuery,
        cursor: Option<RouteCursor>,
        limit: usize,
    ) -> Result<RoutePage, QueryError> {
        if let Some(nlri) = query.prefix.filter(|nlri| nlri.family() != query.family) {
            return Err(QueryError::WrongFamily { nlri, family: query.family });
        }
        let view = match &query.table {
            RouteTable::LocRib => View::LocRib,
            RouteTable::AdjRibIn(key) => View::In(self.known(key)?),
            RouteTable::AdjRibOut(key) => {
                let peer = self.known(key)?;
                let group = self.peer(peer).and_then(|peer| peer.families[query.family.index()].group);
                match group {
                    Some(group) => View::Out(peer, group),
                    None => return Ok(RoutePage::default()),
                }
            }
        };
        let peers = self.sources_of(query.family);
        let page = Page {
            view,
            family: query.family,
            now: now.as_secs(),
            peers: &peers,
            from: cursor.unwrap_or_default().0,
            limit: limit.min(LONGEST_PAGE),
        };
        let Self { ribs, shared, .. } = self;
        Ok(match query.prefix {
            Some(nlri) => for_rib!(ribs, query.family, rib => page.one(rib, nlri, shared)),
            None => for_rib!(ribs, query.family, rib => page.read(rib, shared)),
        })
    }

    /// Route policy as it is in force. Costs a copy of what has been declared; not for a moment at which messages wait.
    #[must_use]
    pub fn policies(&self) -> PolicyStatus {
        let of = |peer: &PeerIx| {
            let neighbour = self.peer(*peer)?;
            let (import, export) = (neighbour.config.import.clone(), neighbour.config.export.clone());
            Some(PeerPolicies { key: neighbour.key, import, export })
        };
        PolicyStatus {
            library: self.policies.library().clone(),
            import: self.policies.global(Direction::Import).to_vec(),
            export: self.policies.global(Direction::Export).to_vec(),
            peers: self.by_key.values().filter_map(of).collect(),
            interfaces: self.policies.interfaces(),
        }
    }

    /// By [`PeerIx`]: who it is, and whether its paths of a family have identifiers.
    pub(super) fn sources_of(&self, family: Family) -> Vec<Option<(PeerKey, bool)>> {
        let from =
            |peer: &Option<Box<Neighbour>>| peer.as_ref().map(|peer| (peer.key, peer.has_path_ids(family)));
        self.peers.iter().map(from).collect()
    }

    /// What the speaker has done so far.
    #[must_use]
    pub fn stats(&self) -> SpeakerStats {
        self.shared.stats
    }

    /// How large the tables are.
    #[must_use]
    pub fn sizes(&self) -> TableSizes {
        TableSizes {
            destinations: Family::ALL
                .map(|family| for_rib!(&self.ribs, family, rib => rib.table.len() as u64)),
            attribute_sets: self.shared.attrs.len() as u64,
            update_groups: Family::ALL
                .map(|family| for_rib!(&self.ribs, family, rib => rib.group_count() as u64))
                .iter()
                .sum(),
            waiting_octets: Family::ALL
                .map(|family| for_rib!(&self.ribs, family, rib => rib.waiting_octets()))
                .iter()
                .sum(),
            table_octets: Family::ALL
                .map(|family| for_rib!(&self.ribs, family, rib => rib.table.heap_bytes() as u64))
                .iter()
                .sum(),
        }
    }

    fn known(&self, key: &PeerKey) -> Result<PeerIx, QueryError> {
        self.by_key.get(key).copied().ok_or(QueryError::NoSuchPeer(*key))
    }

    fn status(&self, now: Instant, peer: PeerIx, neighbour: &Neighbour) -> PeerStatus {
        let status = neighbour.session.status();
        let settings = neighbour.session.settings();
        let configured = match settings.remote_asn {
            crate::session::RemoteAsn::Is(asn) => Some(asn),
            crate::session::RemoteAsn::Internal => Some(settings.local_asn),
            crate::session::RemoteAsn::External => None,
        };
        let up = neighbour.up.as_ref();
        let keepalive = |hold: u16| settings.keepalive.map_or(hold / 3, std::num::NonZeroU16::get);
        PeerStatus {
            key: neighbour.key,
            description: neighbour.config.description.clone(),
            local_asn: settings.local_asn,
            remote_asn: status.received.map(Open::asn).or(configured),
            remote_router_id: status.received.map(|open| open.router_id),
            state: status.state,
            disabled: neighbour.disabled,
            shutdown_text: neighbour.shutdown_text.to_string(),
            graceful_shutdown: neighbour.graceful_shutdown,
            uptime: up.map(|_| now.saturating_since(status.since)),
            established_count: status.established_count,
            idle: status.idle.map(|until| match until {
                Some(until) => Idle::For(until.saturating_since(now)),
                None => Idle::UntilStarted,
            }),
            last_error: status.last_error.map(|error| in_words(&error.reason, &neighbour.config)),
            families: neighbour
                .config
                .families
                .iter()
                .map(|family| self.family_status(peer, neighbour, family))
                .collect(),
            negotiated: up.map_or(bgp_wire::FamilySet::EMPTY, |up| up.negotiated.families),
            connect_retry: settings.connect_retry,
            configured_hold_time: settings.hold_time.secs(),
            configured_keepalive: keepalive(settings.hold_time.secs()),
            applied_hold_time: status.hold_time.map(crate::session::HoldTime::secs),
            applied_keepalive: status.keepalive.map(|interval| interval.as_secs() as u16),
            multihop_ttl: neighbour.config.multihop_ttl.unwrap_or(1),
            graceful_restart: neighbour.config.graceful_restart,
            restart_agreed: up.and_then(|up| up.negotiated.restart),
            long_lived_agreed: up.and_then(|up| up.negotiated.long_lived),
            stale: neighbour.stale.families(),
            long_lived_stale: neighbour.stale.long_lived(),
            stale_for: neighbour.stale.until().map(|at| at.saturating_since(now)),
            ttl_security: neighbour.config.ttl_security,
            role: neighbour.config.role,
            remote_role: status.received.and_then(Open::role),
            has_password: neighbour.config.password.is_some(),
            range: neighbour.range,
            local_capabilities: capabilities(status.sent),
            remote_capabilities: capabilities(status.received),
            local_address: status.link.map(|link| link.local),
            received: neighbour.received,
            sent: neighbour.sent,
            treated_as_withdraw: neighbour.complaints.treated_as_withdraw,
            attributes_discarded: neighbour.complaints.attributes_discarded,
        }
    }

    fn family_status(&self, peer: PeerIx, neighbour: &Neighbour, family: Family) -> FamilyStatus {
        let state = &neighbour.families[family.index()];
        let group = state.group.and_then(|group| for_rib!(&self.ribs, family, rib => rib.group(group)));
        let agreed = neighbour.up.as_ref().map(|up| &up.negotiated);
        FamilyStatus {
            family,
            add_path_receive: agreed.is_some_and(|agreed| agreed.add_path_receive.contains(family)),
            add_path_send: group.and_then(|group| group.key().rules.paths),
            received: state.received,
            accepted: state.accepted,
            advertised: group.map_or(0, |group| group.announced_to(peer)),
            end_of_rib_received: state.end_of_rib,
            end_of_rib_sent: group.is_some_and(|group| group.end_of_rib_sent(peer)),
            limit: state.gauge.status(),
            limit_out: neighbour.config.max_prefixes_out.get(&family).copied(),
            holds_back: group.is_some_and(Group::holds_back),
            lacks_next_hop: neighbour.lacks_next_hop(family),
        }
    }
}

/// What went wrong; and what may be behind it where silence is all that is seen of the cause.
fn in_words(reason: &DownReason, config: &PeerConfig) -> String {
    let mut words = reason.to_string();
    if matches!(reason, DownReason::NotConnected(ConnectError::TimedOut)) {
        words.push_str(match (config.password.is_some(), config.ttl_security.is_some()) {
            (true, true) => "; the passwords may differ, or the neighbor is too many hops away",
            (true, false) => "; the passwords may differ",
            (false, true) => "; the neighbor may be too many hops away for TTL security",
            (false, false) => "",
        });
    }
    words
}

/// The capabilities of an OPEN, each as a TLV.
fn capabilities(open: Option<&Open>) -> Vec<Vec<u8>> {
    let capabilities = open.map(|open| &open.capabilities[..]).unwrap_or_default();
    capabilities.iter().filter_map(Capability::to_octets).collect()
}

/// Which table a page is of.
#[derive(Copy, Clone)]
pub(super) enum View {
    LocRib,
    In(PeerIx),
    Out(PeerIx, u32),
}

/// A page being made.
pub(super) struct Page<'a> {
    pub(super) view: View,
    pub(super) family: Family,
    pub(super) now: u32,
    /// By [`PeerIx`]: who it is, and whether its paths have identifiers.
    pub(super) peers: &'a [Option<(PeerKey, bool)>],
    pub(super) from: u32,
    pub(super) limit: usize,
}

impl Page<'_> {
    fn one<K: ExportKey>(&self, rib: &mut FamilyRib<K>, nlri: Nlri, shared: &mut Shared) -> RoutePage {
        let dest = K::of(nlri).and_then(|key| rib.table.find(key));
        RoutePage {
            routes: dest.and_then(|dest| self.entry(rib, dest, shared)).into_iter().collect(),
            next: None,
        }
    }

    fn read<K: ExportKey>(&self, rib: &mut FamilyRib<K>, shared: &mut Shared) -> RoutePage {
        let mut page = RoutePage::default();
        let first = self.from as usize;
        let end = rib.table.len_ids();
        for at in first..end.min(first + LOOKED_AT) {
            if page.routes.len() >= self.limit {
                page.next = Some(RouteCursor(at as u32));
                return page;
            }
            shared.stats.looked_at += 1;
            page.routes.extend(self.entry(rib, DestId::from_index(at), shared));
        }
        page.next = (first + LOOKED_AT < end).then_some(RouteCursor((first + LOOKED_AT) as u32));
        page
    }

    pub(super) fn entry<K: ExportKey>(
        &self,
        rib: &mut FamilyRib<K>,
        dest: DestId,
        shared: &mut Shared,
    ) -> Option<RouteEntry> {
        let mut decided_by = None;
        let paths: Vec<PathEntry> = match self.view {
            View::LocRib => {
                decided_by = rib.table.best(dest).map(|best| best.rung);
                let standings = self.standings(rib, dest, shared);
                let after = |path: &Path| path.post().unwrap_or(path.pre());
                standings.iter().map(|(path, fared)| self.path(path, after(path), *fared, shared)).collect()
            }
            View::In(peer) => {
                if !rib.table.paths(dest).any(|path| shared.sources.peer(path.source()) == Some(peer)) {
                    return None;
                }
                let standings = self.standings(rib, dest, shared);
                let own = |(path, _): &&(Path, Standing)| shared.sources.peer(path.source()) == Some(peer);
                let own = standings.iter().filter(own);
                own.map(|(path, fared)| self.path(path, path.pre(), *fared, shared)).collect()
            }
            View::Out(peer, group) => {
                let told = rib.told(peer, group, dest, shared);
                let paths = told.iter().filter_map(|told| self.sent(rib, group, dest, told, shared));
                // The best one first, then by their identifiers.
                let mut paths: Vec<PathEntry> = paths.collect();
                paths.sort_by_key(|path| (!path.best, path.path_id));
                paths
            }
        };
        (!paths.is_empty()).then(|| RouteEntry { nlri: rib.table.key(dest).into(), decided_by, paths })
    }

    fn standings<K: ExportKey>(
        &self,
        rib: &FamilyRib<K>,
        dest: DestId,
        shared: &mut Shared,
    ) -> SmallVec<[(Path, Standing); 4]> {
        let cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
        rib.table.standings(dest, self.now, &cx)
    }

    fn path(&self, path: &Path, attrs: AttrId, standing: Standing, shared: &Shared) -> PathEntry {
        let attrs = shared.attrs.set(attrs).clone();
        let (source, has_id) = self.source(shared.sources.peer(path.source())).unzip();
        let path_id = shared.sources.path_id(path.source());
        PathEntry {
            source,
            path_id: has_id.filter(|has| *has || path_id != PathId::NONE).map(|_| path_id),
            next_hop: attrs.next_hop(),
            attrs,
            best: standing == Standing::Best,
            standing: Some(standing),
            age: Duration::from_secs(u64::from(self.now.saturating_sub(path.since()))),
            stale: shared.sources.is_stale(path, self.family),
            long_lived_stale: shared.sources.is_long_lived(path, self.family),
            rejected: path.rejected(),
        }
    }

    fn source(&self, peer: Option<PeerIx>) -> Option<(PeerKey, bool)> {
        self.peers.get(peer?.index()).copied().flatten()
    }

    /// A path that a member of a group has been told.
    fn sent<K: ExportKey>(
        &self,
        rib: &FamilyRib<K>,
        group: u32,
        dest: DestId,
        (path_id, told, form): &(Option<PathId>, Told, Form),
        shared: &Shared,
    ) -> Option<PathEntry> {
        let set = shared.attrs.set(told.attr);
        let label = set.label();
        let (octets, next_hop): (Vec<u8>, NextHop) = canonical_form(rib.group(group)?.key(), form, set)?;
        let same = |path: &&Path| {
            path.post() == Some(told.attr)
                && shared.sources.peer(path.source()) == told.origin.peer()
                && path_id.is_none_or(|id| id.0 as usize == path.source().index())
        };
        let path = rib.table.paths(dest).find(same);
        let since = path.map_or(self.now, Path::since);
        let best = rib.table.best(dest).map(|best| best.path.source());
        Some(PathEntry {
            source: self.source(told.origin.peer()).map(|(key, _)| key),
            path_id: *path_id,
            attrs: AttrSet::new(&octets, Some(next_hop), Canonical(&octets).facts()).with_label(label),
            next_hop: Some(next_hop),
            // Where one path is told it is the best one, though it may not be that any more at this moment.
            best: path_id.is_none() || best.is_some() && path.map(Path::source) == best,
            age: Duration::from_secs(u64::from(self.now.saturating_sub(since))),
            stale: false,
            long_lived_stale: false,
            rejected: None,
            standing: None,
        })
    }
}
