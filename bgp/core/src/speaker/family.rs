//! One family of the speaker: its table, its originations and its update groups; `groups.rs` is about the last.

mod groups;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bgp_wire::attr::{AsPath, Canonical, Community, FactFlags};
use bgp_wire::{Asn, Family, Label, Nlri, PathId, Prefixes, Role, RouterId};
use smallvec::SmallVec;

use super::aggregates::Aggregates;
use super::neighbour::FamilyState;
use super::state::Shared;
use crate::command::Origination;
use crate::egress::{AdjOut, Cx, ExportKey, Filter, Group, Scratch, edit, edited_next_hop};
use crate::peer_key::PeerIx;
use crate::policy::{Direction, Edits, Learned, PeerType, Route, Signature};
use crate::rib::sr_policy::names_its_headends;
use crate::rib::{
    Accepted, AttrId, AttrSet, Context, DestId, Offer, Outcome, Path, PathRejected, Review, SourceId,
    Sources, Table, Walk,
};
use crate::session::role::{self, Ingress};

/// One family.
pub(super) struct FamilyRib<K: ExportKey> {
    pub(super) table: Table<K>,
    pub(super) originations: BTreeMap<K, Origination>,
    pub(super) aggregates: Aggregates,
    groups: Vec<Option<Group>>,
    /// Which group's turn it is to work.
    turn: usize,
    scratch: Scratch<K>,
    pub(super) review: Review,
    pub(super) reimport: Reimport,
    /// What dissolved groups had told, and how far their references have been given back.
    pub(super) dissolved: Vec<(AdjOut, usize)>,
}

/// A walk that runs import policy again over the paths of some neighbours.
#[derive(Debug, Default)]
pub(super) struct Reimport {
    pub(super) peers: BTreeSet<PeerIx>,
    pub(super) walk: Walk,
}

/// A neighbour whose import policy runs again.
pub(super) struct Concerned<'a> {
    pub(super) arrival: Arrival<'a>,
    /// How many of its paths are above its limit.
    pub(super) surplus: u64,
}

/// Prefixes of a message whose places in memory are fetched together.
const AT_ONCE: usize = 16;

/// Where paths come from that arrive now, and what is done to them on the way in.
pub(super) struct Arrival<'a> {
    pub(super) peer: PeerIx,
    /// The source of paths without a path identifier.
    pub(super) source: SourceId,
    pub(super) import: &'a Filter,
    pub(super) external: bool,
    pub(super) neighbor: IpAddr,
    /// Our AS numbers: a path with one of them in it, more often than is allowed, has been here before.
    pub(super) own: [Asn; 2],
    /// How often each of them may be in it.
    pub(super) allow_own_as: u8,
    /// What an external neighbour's paths must begin with.
    pub(super) first_as: Option<Asn>,
    /// The AS number that we have moved from, which is put in front of the path (RFC 7705).
    pub(super) moved_from: Option<Asn>,
    /// The cluster that this speaker reflects for, where the neighbour is internal: a path that passed it has been here
    /// before (RFC 4456).
    pub(super) cluster: Option<RouterId>,
    pub(super) router_id: RouterId,
    /// SR policies count only if they name their headends.
    pub(super) sr_policy_strict: bool,
    /// Our address of the session.
    pub(super) local: IpAddr,
    /// Our role towards the neighbour, and its AS number (RFC 9234).
    pub(super) role: Option<(Role, Asn)>,
    /// We are about to leave the neighbour: what it says is the last resort (RFC 8326).
    pub(super) graceful_shutdown: bool,
    /// Now, in seconds.
    pub(super) now: u32,
}

/// What running import policy again has made of a path.
pub(super) enum Reimported {
    /// It was accepted or not, and is or is not now.
    Judged(Accepted, bool),
    /// It is gone: it would have become long-lived stale, and does not want to (RFC 9494 section 4.2).
    Removed(Accepted),
    /// It is gone: it was above the neighbour's prefix limit.
    Surplus(Outcome),
}

impl Arrival<'_> {
    /// Whether a next hop would bring packets back to us.
    fn is_ourselves(&self, next_hop: IpAddr) -> bool {
        next_hop == self.local || (next_hop.is_loopback() && !self.neighbor.is_loopback())
    }

    /// Whether a path has been here before.
    fn loops(&self, path: AsPath<'_>) -> bool {
        let times = |own: Asn| path.asns().filter(|asn| *asn == own).take(usize::from(u8::MAX) + 1).count();
        match self.allow_own_as {
            0 => self.own.iter().any(|own| path.contains(*own)),
            allowed => self.own.iter().any(|own| times(*own) > usize::from(allowed)),
        }
    }

    /// A path as import policy sees it.
    pub(super) fn route<'r>(&self, nlri: Nlri, attrs: &'r AttrSet) -> Route<'r> {
        let (learned, peer_type) = match self.external {
            true => (Learned::External, PeerType::External),
            false => (Learned::Internal, PeerType::Internal),
        };
        Route {
            direction: Direction::Import,
            nlri,
            attrs,
            learned,
            neighbor: self.neighbor,
            peer_type,
            front: &[],
            interfaces: None,
        }
    }

    /// The source of paths with this identifier, if there have been any.
    fn known_source(&self, id: PathId, sources: &Sources) -> Option<SourceId> {
        match id {
            PathId::NONE => Some(self.source),
            id => sources.find(self.peer, id),
        }
    }
}

/// Whether a neighbour has a path that it has said in the present epoch.
#[cold]
fn has_fresh<K: ExportKey>(
    table: &Table<K>,
    prefix: K,
    id: PathId,
    arrival: &Arrival<'_>,
    sources: &Sources,
) -> bool {
    let Some(source) = arrival.known_source(id, sources) else { return false };
    let fresh = |path: &Path| path.source() == source && !sources.is_stale(path, K::FAMILY);
    table.find(prefix).is_some_and(|dest| table.paths(dest).any(fresh))
}

impl<K: ExportKey> FamilyRib<K> {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            table: Table::new(seed),
            originations: BTreeMap::new(),
            aggregates: Aggregates::default(),
            groups: Vec::new(),
            turn: 0,
            scratch: Scratch::new(),
            review: Review::default(),
            reimport: Reimport::default(),
            dissolved: Vec::new(),
        }
    }

    fn split<'a>(&'a mut self, shared: &'a mut Shared) -> (&'a mut Vec<Option<Group>>, Cx<'a, K>) {
        let cx = Cx {
            table: &mut self.table,
            attrs: &mut shared.attrs,
            sources: &shared.sources,
            originations: &self.originations,
            summaries: &self.aggregates.summaries,
            scratch: &mut self.scratch,
            stats: &mut shared.stats,
        };
        (&mut self.groups, cx)
    }
}

/// Paths come in.
impl<K: ExportKey> FamilyRib<K> {
    /// Prefixes are announced with attributes `pre`, and with labels beside them where the family has them.
    pub(super) fn announce(
        &mut self,
        mut prefixes: Prefixes<'_, K>,
        pre: AttrId,
        arrival: &Arrival<'_>,
        state: &mut FamilyState,
        shared: &mut Shared,
    ) {
        let mut verdicts = Verdicts::new(K::FAMILY, pre, arrival, false, shared);
        let mut current = None;
        let prefixes = std::iter::from_fn(|| prefixes.next_labelled());
        self.in_blocks(prefixes, |table, id, prefix, label| {
            shared.stats.prefixes_announced += 1;
            if state.gauge.is_full() && !has_fresh(table, prefix, id, arrival, &shared.sources) {
                state.gauge.discarded();
                // Nor is kept what it said of it before it began to say everything again.
                if let Some(source) = arrival.known_source(id, &shared.sources) {
                    let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
                    let outcome = table.withdraw(prefix, source, &mut cx);
                    state.count_withdrawn(outcome.had);
                    if id != PathId::NONE && outcome.had.is_some() {
                        shared.sources.count(source, -1);
                    }
                }
                return;
            }
            if K::LABELLED && label != current {
                current = label;
                let labelled = Verdicts::labelled(K::FAMILY, pre, label, arrival, shared);
                std::mem::replace(&mut verdicts, labelled).release(shared);
            }
            let pre = verdicts.pre;
            let source = match id {
                PathId::NONE => Some(arrival.source),
                id if is_one_too_many(table, arrival.peer, id, prefix, shared) => {
                    shared.stats.paths_refused += 1;
                    if !std::mem::replace(&mut state.refuses_paths, true) {
                        let peer = arrival.neighbor;
                        tracing::warn!(%peer, %prefix, "paths beyond {PATHS_OF_ONE} of one destination are ignored");
                    }
                    return;
                }
                id => shared.sources.intern(arrival.peer, id),
            };
            let Some(source) = source else { return };
            let post = verdicts.of(prefix, arrival, shared);
            let offer = Offer { source, pre, post, now: arrival.now };
            let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
            let announced = table.announce(prefix, offer, &mut cx);
            match announced {
                Ok(outcome) => {
                    state.gauge.announced(&outcome);
                    state.count_announced(outcome, post.is_ok());
                }
                Err(full) => tracing::error!(%prefix, "{full}"),
            }
            if id != PathId::NONE {
                let is_new = announced.is_ok_and(|outcome| outcome.had.is_none());
                shared.sources.count(source, i32::from(is_new));
            }
        });
        verdicts.release(shared);
    }

    /// Prefixes are withdrawn.
    pub(super) fn withdraw(
        &mut self,
        prefixes: impl Iterator<Item = (PathId, K)>,
        arrival: &Arrival<'_>,
        state: &mut FamilyState,
        shared: &mut Shared,
    ) {
        let prefixes = prefixes.map(|(id, prefix)| (id, prefix, None));
        self.in_blocks(prefixes, |table, id, prefix, _| {
            shared.stats.prefixes_withdrawn += 1;
            // What was never announced need not be withdrawn.
            let Some(source) = arrival.known_source(id, &shared.sources) else { return };
            let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
            let outcome = table.withdraw(prefix, source, &mut cx);
            state.gauge.withdrawn(&outcome);
            state.count_withdrawn(outcome.had);
            if id != PathId::NONE && outcome.had.is_some() {
                shared.sources.count(source, -1);
            }
        });
    }

    /// Does something for each prefix of a message, and has the memory that it takes fetched for several at once.
    #[inline]
    fn in_blocks(
        &mut self,
        mut prefixes: impl Iterator<Item = (PathId, K, Option<Label>)>,
        mut each: impl FnMut(&mut Table<K>, PathId, K, Option<Label>),
    ) {
        let mut block: SmallVec<[(PathId, K, Option<Label>); AT_ONCE]> = SmallVec::new();
        loop {
            block.clear();
            block.extend(prefixes.by_ref().take(AT_ONCE));
            match block.as_slice() {
                [] => return,
                [_] => {}
                several => self.table.prefetch(several.iter().map(|(_, prefix, _)| *prefix)),
            }
            for &(id, prefix, label) in &block {
                each(&mut self.table, id, prefix, label);
            }
        }
    }

    /// What is originated here under this key, which must be one of this family.
    pub(super) fn origination(&self, nlri: Nlri) -> Option<&Origination> {
        self.originations.get(&K::of(nlri)?)
    }

    /// A prefix of this family is originated here, or was and is so no more.
    pub(super) fn originate(
        &mut self,
        nlri: Nlri,
        origination: Option<Origination>,
        attrs: Option<AttrId>,
        own: (Asn, RouterId),
        now: u32,
        shared: &mut Shared,
    ) {
        let Some(prefix) = K::of(nlri) else { return };
        match origination {
            Some(origination) => self.originations.insert(prefix, origination),
            None => self.originations.remove(&prefix),
        };
        self.aggregates.touch(nlri.unicast());
        let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
        match attrs {
            Some(pre) => {
                let offer = Offer { source: SourceId::LOCAL, pre, post: Ok(pre), now };
                if let Err(full) = self.table.announce(prefix, offer, &mut cx) {
                    tracing::error!(%prefix, "{full}");
                }
            }
            // An aggregate comes forward in its place, so that nobody is without both.
            None => match nlri.unicast() {
                Some(aggregated) => self.tell_aggregate(aggregated, prefix, own, now, shared),
                None => {
                    self.table.withdraw(prefix, SourceId::LOCAL, &mut cx);
                }
            },
        }
    }

    /// Removes paths of lost neighbours and compares next hops again, `budget` destinations at a time. Each path
    /// removed is reported.
    pub(super) fn review_step(
        &mut self,
        budget: usize,
        shared: &mut Shared,
        mut removed: impl FnMut(PeerIx, Accepted),
    ) {
        shared.stats.looked_at += budget as u64;
        let Shared { attrs, sources, .. } = shared;
        let mut cx = Context { attrs, sources };
        let mut gone: SmallVec<[SourceId; 16]> = SmallVec::new();
        self.table.review_step(&mut self.review, budget, &mut cx, |source, accepted| {
            if let Some(peer) = sources.peer(source) {
                removed(peer, accepted);
            }
            if sources.path_id(source) != PathId::NONE {
                gone.push(source);
            }
        });
        gone.into_iter().for_each(|source| sources.count(source, -1));
    }

    /// Import policy of a neighbour is to run again.
    pub(super) fn begin_reimport(&mut self, peer: PeerIx) {
        self.reimport.peers.insert(peer);
        self.reimport.walk.begin();
    }

    /// Runs import policy again, `budget` destinations at a time, for the neighbours concerned. Long-lived stale paths are
    /// marked as such, or go; and so does what is above a limit.
    pub(super) fn reimport_step(
        &mut self,
        budget: usize,
        shared: &mut Shared,
        concerned: &mut [Concerned<'_>],
        mut done: impl FnMut(PeerIx, Reimported),
    ) {
        for _ in 0..budget {
            let Some(at) = self.reimport.walk.step(self.table.len_ids()) else {
                self.reimport.peers.clear();
                return;
            };
            shared.stats.looked_at += 1;
            let dest = DestId::from_index(at);
            let paths: SmallVec<[(Path, usize); 4]> = self
                .table
                .paths(dest)
                .filter_map(|path| {
                    let peer = shared.sources.peer(path.source())?;
                    let at = concerned.iter().position(|of| of.arrival.peer == peer)?;
                    Some((*path, at))
                })
                .collect();
            for (path, at) in paths {
                let Concerned { arrival, surplus } = &mut concerned[at];
                let (source, pre, now, key) = (path.source(), path.pre(), path.since(), self.table.key(dest));
                if *surplus > 0 && !shared.sources.is_stale(&path, K::FAMILY) {
                    *surplus -= 1;
                    let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
                    let outcome = self.table.withdraw(key, source, &mut cx);
                    shared.sources.count(source, -1);
                    done(arrival.peer, Reimported::Surplus(outcome));
                    continue;
                }
                let long_lived = shared.sources.is_long_lived(&path, K::FAMILY);
                let mut verdicts = Verdicts::new(K::FAMILY, pre, arrival, long_lived, shared);
                let post = verdicts.of(key, arrival, shared);
                let unwilling = |set| shared.attrs.set(set).facts().flags.has(FactFlags::NO_LLGR);
                let goes = long_lived && (unwilling(pre) || post.is_ok_and(unwilling));
                let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
                if goes {
                    if let Some(had) = self.table.withdraw(key, source, &mut cx).had {
                        shared.sources.count(source, -1);
                        done(arrival.peer, Reimported::Removed(had));
                    }
                } else {
                    let outcome = self.table.announce_at(dest, Offer { source, pre, post, now }, &mut cx);
                    if let Some(had) = outcome.and_then(|outcome| outcome.had) {
                        done(arrival.peer, Reimported::Judged(had, post.is_ok()));
                    }
                }
                verdicts.release(shared);
            }
        }
    }
}

/// How many paths of one destination a neighbour may have, beside that of path identifier 0. What takes part in each
/// decision must be bounded, in time as in memory; a route reflector that passes on the paths of a whole cluster stays
/// below it. Over all destinations prefix limits bound the paths.
const PATHS_OF_ONE: usize = if cfg!(test) { 16 } else { 1024 };

/// Whether a path that arrives would exceed what a neighbour may have of one destination. Cheap for whoever uses few
/// path identifiers in all.
#[inline]
fn is_one_too_many<K: ExportKey>(
    table: &Table<K>,
    peer: PeerIx,
    id: PathId,
    prefix: K,
    shared: &Shared,
) -> bool {
    if shared.sources.path_ids(peer) < PATHS_OF_ONE {
        return false;
    }
    let Some(dest) = table.find(prefix) else { return false };
    let own = |path: &&Path| shared.sources.peer(path.source()) == Some(peer);
    let known = shared.sources.find(peer, id);
    table.paths(dest).filter(own).count() >= PATHS_OF_ONE
        && table.paths(dest).all(|path| Some(path.source()) != known)
}

/// Verdicts that are kept while the prefixes of one attribute set pass.
const SIGNATURES: usize = 4;

/// What import makes of one attribute set, prefix by prefix; evaluated once where the prefix does not matter.
struct Verdicts {
    pre: AttrId,
    /// One reference to `pre` is ours.
    labelled: bool,
    /// One end is about to go: LOCAL_PREF is 0 whatever policy says (RFC 8326 section 4).
    last_resort: bool,
    /// Communities that are added whatever policy says.
    marks: SmallVec<[Community; 2]>,
    /// ONLY_TO_CUSTOMER that is added whatever policy says.
    only_to_customer: Option<Asn>,
    /// What stands in front of the AS path before anything that policy puts there.
    moved_from: Option<Asn>,
    /// For all prefixes.
    all: Option<Result<AttrId, PathRejected>>,
    /// For prefixes of which policy can tell nothing.
    outside: Option<Result<AttrId, PathRejected>>,
    /// For prefixes of which policy can tell no more than this.
    judged: SmallVec<[(Signature, Result<AttrId, PathRejected>); SIGNATURES]>,
    /// Which of them makes way for the next.
    oldest: usize,
    /// Sets that edits have made: one reference each is ours.
    made: SmallVec<[(Edits, AttrId); 2]>,
}

impl Verdicts {
    /// `long_lived`: the path is long-lived stale.
    fn new(
        family: Family,
        pre: AttrId,
        arrival: &Arrival<'_>,
        long_lived: bool,
        shared: &mut Shared,
    ) -> Self {
        let set = shared.attrs.set(pre);
        let flags = set.facts().flags;
        let last_resort =
            arrival.graceful_shutdown || arrival.external && flags.has(FactFlags::GRACEFUL_SHUTDOWN);
        let marks =
            [(arrival.graceful_shutdown, Community::GRACEFUL_SHUTDOWN), (long_lived, Community::LLGR_STALE)];
        let marks = marks.into_iter().filter(|(wanted, _)| *wanted);
        let marks: SmallVec<_> = marks.map(|(_, community)| community).collect();
        let ingress =
            arrival.role.filter(|_| role::concerns(family)).map_or(Ingress::Pass, |(role, remote)| {
                role::ingress(role, remote, Canonical(set.canonical()).only_to_customer())
            });
        let only_to_customer = match ingress {
            Ingress::Mark(asn) => Some(asn),
            Ingress::Pass | Ingress::Leak => None,
        };
        let moved_from = arrival.moved_from;
        let plain = !last_resort && marks.is_empty() && only_to_customer.is_none() && moved_from.is_none();
        let mut verdicts = Self {
            pre,
            labelled: false,
            last_resort,
            marks,
            only_to_customer,
            moved_from,
            all: None,
            outside: None,
            judged: SmallVec::new(),
            oldest: 0,
            made: SmallVec::new(),
        };
        let view = Canonical(set.canonical());
        if arrival.first_as.is_some() && arrival.first_as != set.facts().neighbor_as {
            verdicts.all = Some(Err(PathRejected::FirstAs));
        } else if arrival.loops(view.as_path()) {
            verdicts.all = Some(Err(PathRejected::AsLoop));
        } else if set.facts().originator == Some(arrival.router_id) {
            verdicts.all = Some(Err(PathRejected::OriginatorLoop));
        } else if set.facts().cluster_len > 0
            && arrival.cluster.is_some_and(|own| view.cluster_list().any(|cluster| cluster == own))
        {
            verdicts.all = Some(Err(PathRejected::ClusterLoop));
        } else if set.next_hop().is_some_and(|next_hop| {
            let next_hop = next_hop.address();
            arrival.is_ourselves(next_hop) || shared.own_addresses.contains_key(&next_hop)
        }) {
            verdicts.all = Some(Err(PathRejected::OwnNextHop));
        } else if ingress == Ingress::Leak {
            verdicts.all = Some(Err(PathRejected::RouteLeak));
        } else if family.is_sr_policy()
            && arrival.sr_policy_strict
            && !names_its_headends(Canonical(set.canonical()), flags)
        {
            verdicts.all = Some(Err(PathRejected::NoTarget));
        } else {
            match arrival.import {
                Filter::Accept if plain => verdicts.all = Some(Ok(pre)),
                Filter::Reject => verdicts.all = Some(Err(PathRejected::ImportPolicy)),
                Filter::Accept | Filter::Policies { .. } | Filter::OwnOnly(_) => {}
            }
        }
        verdicts
    }

    /// What import makes of the same set with a label.
    fn labelled(
        family: Family,
        pre: AttrId,
        label: Option<Label>,
        arrival: &Arrival<'_>,
        shared: &mut Shared,
    ) -> Self {
        let pre = shared.attrs.relabel(pre, label);
        Self { labelled: true, ..Self::new(family, pre, arrival, false, shared) }
    }

    #[inline]
    fn of<K: ExportKey>(
        &mut self,
        prefix: K,
        arrival: &Arrival<'_>,
        shared: &mut Shared,
    ) -> Result<AttrId, PathRejected> {
        if let Some(verdict) = self.all {
            return verdict;
        }
        if !arrival.import.is_by_prefix() {
            let verdict = self.run(prefix, &Signature::default(), arrival, shared);
            self.all = Some(verdict);
            return verdict;
        }
        let nlri = prefix.into();
        if arrival.import.is_outside(&nlri) {
            if let Some(known) = self.outside {
                return known;
            }
            let verdict = self.run(prefix, &Signature::default(), arrival, shared);
            self.outside = Some(verdict);
            return verdict;
        }
        let signature = arrival.import.signature(&nlri);
        if let Some((_, known)) = self.judged.iter().find(|(seen, _)| *seen == signature) {
            return *known;
        }
        let verdict = self.run(prefix, &signature, arrival, shared);
        if self.judged.len() < SIGNATURES {
            self.judged.push((signature, verdict));
        } else {
            self.judged[self.oldest] = (signature, verdict);
            self.oldest = (self.oldest + 1) % SIGNATURES;
        }
        verdict
    }

    fn run<K: ExportKey>(
        &mut self,
        prefix: K,
        signature: &Signature,
        arrival: &Arrival<'_>,
        shared: &mut Shared,
    ) -> Result<AttrId, PathRejected> {
        let set = shared.attrs.set(self.pre);
        let route = arrival.route(prefix.into(), set);
        let Ok(edits) = arrival.import.run(&route, signature) else { return Err(PathRejected::ImportPolicy) };
        let mut edits = edits.unwrap_or_default();
        if self.last_resort {
            edits.local_pref = Some(0);
        }
        for mark in &self.marks {
            // One that the path came with may have been removed by policy.
            edits.communities.add(*mark, Canonical(set.canonical()).communities());
        }
        edits.only_to_customer = self.only_to_customer;
        if let Some(asn) = self.moved_from {
            edits.prepend.insert(0, (asn, 1));
        }
        if edits.is_empty() {
            return Ok(self.pre);
        }
        if let Some((_, made)) = self.made.iter().find(|(known, _)| *known == edits) {
            return Ok(*made);
        }
        let Some(octets) = edit(&edits, set, true) else { return Err(PathRejected::TooLong) };
        let (next_hop, label) = (edited_next_hop(&edits, set), set.label());
        let made = shared.attrs.intern_labelled(&octets, next_hop, label, || Canonical(&octets).facts());
        self.made.push((edits, made));
        Ok(made)
    }

    fn release(self, shared: &mut Shared) {
        for (_, made) in self.made {
            shared.attrs.release(made, 1);
        }
        if self.labelled {
            shared.attrs.release(self.pre, 1);
        }
    }
}

impl FamilyState {
    fn count_announced(&mut self, outcome: Outcome, accepted: bool) {
        match outcome.had {
            None => self.received += 1,
            Some(Accepted(before)) => self.accepted -= u64::from(before),
        }
        self.accepted += u64::from(accepted);
    }

    pub(super) fn count_withdrawn(&mut self, had: Option<Accepted>) {
        if let Some(Accepted(accepted)) = had {
            self.received -= 1;
            self.accepted -= u64::from(accepted);
        }
    }
}
