//! The audit: all that VPP holds is read again and compared with what it was known to hold. What differs was changed
//! behind our back; putting it right is the plan's usual work after a dump, so nothing here acts.
//!
//! VPP lists a route only under its best source: one that somebody else's route hides looks absent each time. Such a
//! route is put again, which changes nothing, and is told apart from real repairs. What was put right and has been changed or
//! taken away again at the next audit is disputed: somebody else writes it too.

use std::collections::BTreeSet;
use std::time::Duration;

use bgp_core::time::Instant;

use super::diff::settled;
use super::order::{End, Rules};
use crate::desired::{Actual, ObjectEntry, ObjectKey, SetId, Store, VppKey};
use crate::event::SwIfIndex;

/// At most so many objects are named; the counts are complete.
const NAMED: usize = 100;

/// What an audit has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Counts audits, from 1.
    pub number: u64,
    /// So many objects were missing, superfluous or not as they had been put.
    pub found: usize,
    /// So many of them had been found by the audit before, too: most likely somebody else's routes hide them.
    pub again: usize,
    /// So many of those were changed or taken away anew after they had been put right: somebody else writes them too, or this VPP
    /// doesn't keep them.
    pub disputed: usize,
    /// The first hundred of what was found, what is disputed before the rest.
    pub objects: Vec<VppKey>,
}

/// When audits happen, and what the last one found.
#[derive(Debug, Default)]
pub(super) struct Audits {
    every: Option<Duration>,
    /// When the next one is due.
    pub(super) due: Option<Instant>,
    /// Of the last one that was begun.
    number: u64,
    under_way: bool,
    found: BTreeSet<VppKey>,
    last: Option<Audit>,
}

/// What was known right before VPP was read again.
#[derive(Debug)]
pub(super) struct Before {
    unsettled: BTreeSet<VppKey>,
    /// Objects that VPP doesn't show; of a setting also the interface that had it.
    unseen: Vec<(ObjectKey, Option<SwIfIndex>, ObjectEntry)>,
}

impl Before {
    pub(super) fn of(store: &Store) -> Self {
        let unseen = store.objects.iter().filter(|(key, entry)| !Rules::of(key).shown && entry.present());
        let unseen = unseen.map(|(key, entry)| (*key, carrier(store, key), entry.clone()));
        Self { unseen: unseen.collect(), unsettled: unsettled(store) }
    }

    /// VPP is the one of before, so what it doesn't show is still there: on an interface, if that is as it was.
    pub(super) fn keep_unseen(&self, store: &mut Store) {
        for (key, index, entry) in &self.unseen {
            let same = key
                .setting_of()
                .is_none_or(|tunnel| carrier(store, key) == *index && store.present(&ObjectKey::Tag(tunnel)));
            if same && let Some(now) = store.objects.get_mut(key) {
                now.actual = entry.actual;
                store.set_held(key, entry.held().cloned());
            }
        }
    }
}

/// The interface that a setting is of.
fn carrier(store: &Store, key: &ObjectKey) -> Option<SwIfIndex> {
    store.interface(&ObjectKey::Tunnel(key.setting_of()?))
}

impl Audits {
    pub(super) fn new(every: Option<Duration>) -> Self {
        Self { every, ..Self::default() }
    }

    /// One is under way.
    pub(super) const fn under_way(&self) -> bool {
        self.under_way
    }

    /// The next one has begun: its number.
    pub(super) fn begin(&mut self) -> u64 {
        self.due = None;
        if !std::mem::replace(&mut self.under_way, true) {
            self.number += 1;
        }
        self.number
    }

    /// The connection is gone.
    pub(super) fn cancel(&mut self) {
        self.under_way = false;
        self.due = None;
        self.found.clear();
    }

    /// VPP has been read, for an audit or otherwise.
    pub(super) fn read(&mut self, now: Instant, before: &Before, store: &Store) {
        self.due = self.every.map(|every| now + every);
        if !std::mem::take(&mut self.under_way) {
            return;
        }
        let found: BTreeSet<VppKey> = unsettled(store).difference(&before.unsettled).copied().collect();
        let again = found.intersection(&self.found).count();
        let is_disputed = |key: &VppKey| self.found.contains(key) && !looks_hidden(store, key);
        let (disputed, others): (Vec<VppKey>, Vec<VppKey>) = found.iter().partition(|key| is_disputed(key));
        let objects: Vec<VppKey> = disputed.iter().chain(&others).take(NAMED).copied().collect();
        let disputed = disputed.len();
        if disputed > 0 {
            let first = objects.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!(
                objects = disputed,
                first,
                "vpp: changed anew after it had been put right: another writer is at work; repairing"
            );
        } else if found.len() > again {
            let first = objects.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ");
            tracing::warn!(
                objects = found.len(),
                again,
                first,
                "vpp was changed by somebody else; repairing"
            );
        } else {
            tracing::debug!(objects = found.len(), "vpp audited");
        }
        self.last = Some(Audit { number: self.number, found: found.len(), again, disputed, objects });
        self.found = found;
    }

    pub(super) const fn last(&self) -> Option<&Audit> {
        self.last.as_ref()
    }
}

/// A route that isn't listed may be there, below a better one of somebody else's.
fn looks_hidden(store: &Store, key: &VppKey) -> bool {
    let VppKey::Route(route) = key else { return false };
    store.route(route).is_none_or(|entry| entry.actual == SetId::NONE)
}

/// Everything that is not in VPP as it shall be, as far as VPP shows it.
fn unsettled(store: &Store) -> BTreeSet<VppKey> {
    let objects = store
        .objects
        .iter()
        .filter(|(key, entry)| !as_wanted(store, key, entry))
        .map(|(key, _)| VppKey::Object(*key));
    let routes = store.routes.iter().flat_map(|(table, routes)| {
        routes
            .iter()
            .filter(|(_, entry)| entry.desired != entry.actual)
            .map(|(prefix, _)| VppKey::Route(crate::model::RouteKey { table: *table, prefix }))
    });
    objects.chain(routes).collect()
}

fn as_wanted(store: &Store, key: &ObjectKey, entry: &ObjectEntry) -> bool {
    let rules = Rules::of(key);
    if matches!(key, ObjectKey::Uplink | ObjectKey::IkeSession(_)) || !rules.shown {
        // The first is only ever found, the next comes and goes with the other node, the others are never seen.
        true
    } else if entry.wanted() {
        settled(store, key, entry)
    } else {
        // What goes by itself, or stays, is nobody's concern; nor is what lingers.
        rules.end != End::Deleted || entry.actual == Actual::Absent || entry.lingers.is_some()
    }
}
