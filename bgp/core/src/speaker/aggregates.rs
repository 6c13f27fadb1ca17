//! Aggregates (RFC 4271 section 9.2.2.2): a route of our own that is there while there is a best path to something more
//! specific. Without AS_SET, which RFC 9774 forbids: an aggregate begins a path of its own, and says by ATOMIC_AGGREGATE
//! that a path was left out, where there was one.
//!
//! They follow the change log like any other reader, in slices: each destination is remembered with what it adds, so that
//! a change costs a look at the aggregates around it and nothing else. An aggregate adds nothing to another one.
//!
//! A new aggregate is announced before what is inside it is withheld (`summary_only`), and what is inside is announced
//! before the aggregate goes: see [`Group`](crate::egress::Group).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bgp_wire::attr::{Aggregator, Builder, Canonical, Community, LargeCommunity, Origin};
use bgp_wire::{Asn, RouterId};
use ipnet::IpNet;

use super::family::FamilyRib;
use super::state::Shared;
use crate::command::Aggregate;
use crate::egress::{ExportKey, Summaries};
use crate::rib::{Context, CursorId, DestId, Offer, Pages, SourceId};

/// The aggregates of one family.
#[derive(Debug, Default)]
pub(super) struct Aggregates {
    entries: BTreeMap<IpNet, Entry>,
    /// Their prefixes.
    all: Summaries,
    /// There has been a moment without upkeep to do.
    settled: bool,
    /// Where in the change log their upkeep stands; absent without aggregates.
    cursor: Option<CursorId>,
    /// The next destination of a count from scratch.
    count: Option<usize>,
    /// What each destination adds to the aggregates around it.
    shares: Pages<Share, 4096>,
    /// Aggregates that may be other routes than before.
    due: BTreeSet<IpNet>,
    /// The routes of aggregates that are no more wanted, which are to be withdrawn.
    gone: BTreeSet<IpNet>,
    /// There may be more of those than have been announced.
    more_stand: bool,
    /// Those that stand for what is inside them, as far as they have been announced.
    pub(super) summaries: Arc<Summaries>,
}

#[derive(Debug)]
struct Entry {
    aggregate: Aggregate,
    /// Contributors by ORIGIN.
    by_origin: [u32; 3],
    /// Those of them that have an AS path.
    with_path: u32,
}

/// What a destination adds: nothing, or its ORIGIN and whether there is an AS path.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Share(u8);

const WITH_PATH: u8 = 4;

impl Share {
    const NONE: Self = Self(0);

    fn of(origin: Origin, with_path: bool) -> Self {
        Self((origin.code() + 1) | if with_path { WITH_PATH } else { 0 })
    }

    fn origin(self) -> Option<usize> {
        usize::from(self.0 & !WITH_PATH).checked_sub(1)
    }
}

impl Entry {
    /// Counts a share in or out.
    fn count(&mut self, share: Share, by: i32) {
        if let Some(of_origin) = share.origin().and_then(|at| self.by_origin.get_mut(at)) {
            *of_origin = of_origin.saturating_add_signed(by);
            if share.0 & WITH_PATH != 0 {
                self.with_path = self.with_path.saturating_add_signed(by);
            }
        }
    }

    /// Its attributes; `None` without contributors. ORIGIN is the worst of theirs.
    fn attributes(&self, own: (Asn, RouterId)) -> Option<Vec<u8>> {
        let worst = self.by_origin.iter().rposition(|count| *count > 0)?;
        let mut builder = Builder::new(Origin::from_code(worst as u8).unwrap_or_default());
        let Aggregate { summary_only: _, communities, large_communities } = &self.aggregate;
        let large = large_communities.iter();
        builder
            .atomic_aggregate(self.with_path > 0)
            .aggregator(Some(Aggregator { asn: own.0, router_id: own.1 }))
            .add_communities(communities.iter().copied().map(Community))
            .add_large_communities(large.map(|&(global, one, two)| LargeCommunity::new(global, one, two)));
        Some(builder.build())
    }
}

impl Aggregates {
    /// Whether there is upkeep to do.
    fn is_due(&self) -> bool {
        self.count.is_some() || !self.due.is_empty() || !self.gone.is_empty()
    }

    /// A prefix is originated here, or not any more: its aggregate stands back for that, or comes forward.
    pub(super) fn touch(&mut self, prefix: Option<IpNet>) {
        self.due.extend(prefix.filter(|prefix| self.entries.contains_key(prefix)));
    }

    /// Who we are has changed, and each aggregate says that.
    pub(super) fn sign_again(&mut self) {
        self.due.extend(self.entries.keys().copied());
    }

    fn share(&mut self, dest: DestId, prefix: IpNet, share: Share) {
        let at = dest.index();
        if at >= self.shares.len() {
            if share == Share::NONE {
                return;
            }
            self.shares.extend_to(at + 1);
        }
        let before = std::mem::replace(&mut self.shares[at], share);
        if before == share {
            return;
        }
        for around in self.all.around(prefix) {
            let Some(entry) = self.entries.get_mut(&around) else { continue };
            entry.count(before, -1);
            entry.count(share, 1);
            self.due.insert(around);
        }
    }

    /// What is to stand for what is inside it does so from now on, and nothing else.
    fn stand(&mut self) {
        let standing = self.entries.iter().filter(|(_, entry)| entry.aggregate.summary_only);
        let standing = Summaries::new(standing.map(|(prefix, _)| *prefix));
        if *self.summaries != standing {
            self.summaries = Arc::new(standing);
        }
    }

    /// Whether all that was there at the beginning has been counted: before that End-of-RIB would be a lie.
    pub(super) fn are_settled(&self) -> bool {
        self.settled || self.cursor.is_none()
    }
}

impl<K: ExportKey> FamilyRib<K> {
    pub(super) fn aggregate(&self, prefix: IpNet) -> Option<&Aggregate> {
        self.aggregates.entries.get(&prefix).map(|entry| &entry.aggregate)
    }

    /// There is to be an aggregate.
    pub(super) fn put_aggregate(&mut self, prefix: IpNet, aggregate: Aggregate) {
        let aggregates = &mut self.aggregates;
        aggregates.gone.remove(&prefix);
        if let Some(entry) = aggregates.entries.get_mut(&prefix) {
            let narrows = entry.aggregate.summary_only && !aggregate.summary_only;
            entry.aggregate = aggregate;
            aggregates.more_stand |= entry.aggregate.summary_only;
            aggregates.due.insert(prefix);
            if narrows {
                Arc::make_mut(&mut aggregates.summaries).remove(prefix);
            }
            return;
        }
        aggregates.more_stand |= aggregate.summary_only;
        let entry = Entry { aggregate, by_origin: [0; 3], with_path: 0 };
        aggregates.entries.insert(prefix, entry);
        aggregates.all.insert(prefix);
        if aggregates.cursor.is_none() {
            aggregates.cursor = Some(self.table.add_cursor());
        }
        self.count_again();
    }

    /// There is to be no such aggregate.
    pub(super) fn delete_aggregate(&mut self, prefix: IpNet) -> bool {
        let aggregates = &mut self.aggregates;
        let Some(entry) = aggregates.entries.remove(&prefix) else { return false };
        aggregates.due.remove(&prefix);
        aggregates.gone.insert(prefix);
        aggregates.all.remove(prefix);
        if entry.aggregate.summary_only {
            Arc::make_mut(&mut aggregates.summaries).remove(prefix);
        }
        true
    }

    /// There is one more aggregate, of which nobody has counted what is inside.
    fn count_again(&mut self) {
        let aggregates = &mut self.aggregates;
        if aggregates.count == Some(0) {
            return;
        }
        aggregates.shares = Pages::new();
        aggregates.entries.values_mut().for_each(|entry| (entry.by_origin, entry.with_path) = ([0; 3], 0));
        aggregates.count = Some(0);
    }

    pub(super) fn has_aggregates_due(&self) -> bool {
        self.aggregates.is_due() || self.aggregates.cursor.is_some_and(|cursor| self.table.pending(cursor))
    }

    /// Does some of the upkeep, at most `budget` destinations; says how many it looked at.
    pub(super) fn aggregate_step(
        &mut self,
        budget: usize,
        own: (Asn, RouterId),
        now: u32,
        shared: &mut Shared,
    ) -> usize {
        let Some(cursor) = self.aggregates.cursor else { return 0 };
        let mut used = 0;
        // The other half is for telling, which a table that never comes to rest must not hold up.
        let half = budget.div_ceil(2);
        while used < half {
            if let Some(at) = self.aggregates.count {
                if at >= self.table.len_ids() {
                    self.aggregates.count = None;
                    let all = self.aggregates.entries.keys().copied();
                    self.aggregates.due.extend(all);
                    continue;
                }
                self.aggregates.count = Some(at + 1);
                self.look_at(DestId::from_index(at), shared);
            } else if let Some((_, dest)) = self.table.next_change(cursor) {
                self.look_at(dest, shared);
            } else {
                break;
            }
            used += 1;
        }
        if self.aggregates.count.is_none() {
            used += self.tell_aggregates(budget - used, own, now, shared);
        }
        self.aggregates.settled |= !self.aggregates.is_due() && !self.table.pending(cursor);
        if self.aggregates.entries.is_empty() && !self.aggregates.is_due() {
            self.table.remove_cursor(cursor);
            let summaries = std::mem::take(&mut self.aggregates.summaries);
            self.aggregates = Aggregates { summaries, ..Aggregates::default() };
        }
        shared.stats.looked_at += used as u64;
        used
    }

    fn look_at(&mut self, dest: DestId, shared: &Shared) {
        let key = self.table.key(dest);
        let Some(prefix) = key.into().unicast() else { return };
        let share = match self.table.best(dest) {
            Some(best) => {
                let aggregate = best.path.source().is_local()
                    && !self.originations.contains_key(&key)
                    && (self.aggregates.entries.contains_key(&prefix)
                        || self.aggregates.gone.contains(&prefix));
                let facts = shared.attrs.set(best.attrs).facts();
                if aggregate { Share::NONE } else { Share::of(facts.origin, facts.as_path_len > 0) }
            }
            None => Share::NONE,
        };
        self.aggregates.share(dest, prefix, share);
    }

    /// Announces and withdraws what is due, `budget` of it at most. Says for how many.
    fn tell_aggregates(
        &mut self,
        budget: usize,
        own: (Asn, RouterId),
        now: u32,
        shared: &mut Shared,
    ) -> usize {
        let mut used = 0;
        while used < budget {
            let aggregates = &mut self.aggregates;
            let Some(prefix) = aggregates.due.pop_first().or_else(|| aggregates.gone.pop_first()) else {
                break;
            };
            used += 1;
            let Some(key) = K::of(prefix.into()) else { continue };
            // What is originated on purpose comes first.
            if self.originations.contains_key(&key) {
                continue;
            }
            self.tell_aggregate(prefix, key, own, now, shared);
        }
        // What stands for others has to be out.
        if self.aggregates.due.is_empty() && std::mem::take(&mut self.aggregates.more_stand) {
            self.aggregates.stand();
        }
        used
    }

    /// Announces the aggregate of a prefix that is not originated on purpose, or withdraws it.
    pub(super) fn tell_aggregate(
        &mut self,
        prefix: IpNet,
        key: K,
        own: (Asn, RouterId),
        now: u32,
        shared: &mut Shared,
    ) {
        let octets = self.aggregates.entries.get(&prefix).and_then(|entry| entry.attributes(own));
        match octets {
            Some(octets) => {
                let attrs = shared.attrs.intern(&octets, None, || Canonical(&octets).facts());
                let offer = Offer { source: SourceId::LOCAL, pre: attrs, post: Ok(attrs), now };
                let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
                if let Err(full) = self.table.announce(key, offer, &mut cx) {
                    tracing::error!(%prefix, "{full}");
                }
                shared.attrs.release(attrs, 1);
            }
            None => {
                let mut cx = Context { attrs: &mut shared.attrs, sources: &shared.sources };
                self.table.withdraw(key, SourceId::LOCAL, &mut cx);
            }
        }
    }
}
