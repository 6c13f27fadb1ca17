//! What is wanted of VPP, beside what VPP is known to hold: one entry for each object. Edits come from handlers; the
//! keys they touch are collected until the plan drains them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bgp_core::Family;
use bgp_core::time::Instant;

use super::noted::Noted;
use super::object::{ObjectKey, Owner, Path, Territory, Uplink, VppKey};
use super::owners::Claims;
use super::paths::{PathSets, SetId, Use};
use super::prefix_map::PrefixMap;
use super::spec::Spec;
use super::tunnel::IpipKey;
use crate::config::Srv6Pools;
use crate::effects::VppEdit;
use crate::event::{FibSourceId, SwIfIndex};
use crate::model::{RouteKey, TableId};

/// Where an entry is on its way from wanted to held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing to do, or nothing known yet.
    Idle,
    /// In the ready queue.
    Queued,
    /// An operation is out; looked at again when it ends.
    InFlight,
    /// Something that it needs is not there.
    Waiting,
    /// Failed; tried again later.
    Backoff,
    /// Refused; tried again when something about it changes.
    Rejected,
    /// Found in VPP, wanted by nobody yet; it goes once every source is in sync.
    Held,
    /// Wanted by nobody any more; it goes in a moment, unless somebody wants it again.
    Lingering,
}

/// A route: what is wanted, what VPP has, what an operation in flight makes of it. 24 bytes; there may be 100,000.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RouteEntry {
    pub(crate) desired: SetId,
    pub(crate) actual: SetId,
    /// What the operation in flight leaves; meaningless without one.
    pub(crate) target: SetId,
    pub(crate) owner: Option<Owner>,
    pub(crate) state: State,
    pub(crate) attempts: u8,
    /// Found in VPP, and nobody has wanted it since.
    pub(crate) adopted: bool,
}

const _: () = assert!(size_of::<RouteEntry>() == 24);

impl RouteEntry {
    const EMPTY: Self = Self {
        desired: SetId::NONE,
        actual: SetId::NONE,
        target: SetId::NONE,
        owner: None,
        state: State::Idle,
        attempts: 0,
        adopted: false,
    };
}

/// What VPP is known to hold of an object.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actual {
    /// Nothing.
    Absent,
    /// It is there.
    Present,
    /// It is an interface.
    Interface(SwIfIndex),
    /// It is a FIB source.
    Source(FibSourceId),
    /// It is something else that VPP gave a number.
    Index(u32),
}

/// Any object but a route.
#[derive(Clone, Debug)]
pub(crate) struct ObjectEntry {
    pub(crate) owners: BTreeSet<Owner>,
    /// What it shall be, where it has a value.
    pub(crate) desired: Option<Spec>,
    pub(crate) actual: Actual,
    /// What VPP has of its value, where that is known. Changed by [`Store`] only, which counts what it refers to.
    held: Option<Spec>,
    /// The value that the operation in flight gives it.
    sent: Option<Spec>,
    pub(crate) state: State,
    pub(crate) attempts: u8,
    /// The operation in flight removes the object.
    pub(crate) leaving: bool,
    /// Found in VPP, and nobody has wanted it since.
    pub(crate) adopted: bool,
    /// Wanted by nobody, and may go from then on.
    pub(crate) lingers: Option<Instant>,
}

impl Default for ObjectEntry {
    fn default() -> Self {
        Self {
            owners: BTreeSet::new(),
            desired: None,
            actual: Actual::Absent,
            held: None,
            sent: None,
            state: State::Idle,
            attempts: 0,
            leaving: false,
            adopted: false,
            lingers: None,
        }
    }
}

impl ObjectEntry {
    pub(crate) fn wanted(&self) -> bool {
        !self.owners.is_empty()
    }

    /// It is there, and no operation in flight removes it.
    pub(crate) fn present(&self) -> bool {
        self.actual != Actual::Absent && !self.leaving
    }

    /// What VPP has of its value, where that is known.
    pub(crate) const fn held(&self) -> Option<&Spec> {
        self.held.as_ref()
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) sets: PathSets,
    pub(crate) routes: BTreeMap<TableId, PrefixMap<RouteEntry>>,
    pub(crate) objects: BTreeMap<ObjectKey, ObjectEntry>,
    /// What belongs to the cluster; looked at only where another agent is to be taken over from.
    pub(crate) territory: Territory,
    pub(crate) uplink: Option<Uplink>,
    /// The largest packet of the uplink, where there is one.
    pub(crate) uplink_mtu: Option<u32>,
    /// Profiles of IKEv2 that were made just now: nothing was begun with them.
    pub(crate) fresh: BTreeSet<IpipKey>,
    /// What VPP may hold and doesn't show.
    pub(crate) noted: Noted,
    /// By what our part of SRv6 is known; nothing is ours without.
    pub(crate) srv6: Option<Srv6Pools>,
    /// What another agent left is taken over: its tunnels, and its routes once ours are there.
    pub(crate) adopts: bool,
    claims: Claims,
    /// How many sets of paths and values that VPP holds, or may hold, use an object.
    users: BTreeMap<ObjectKey, u32>,
    /// Interfaces found in VPP that nothing showed to be ours. VPP would make another one just like it of one that it lets be
    /// made twice, so that one is taken when it is wanted.
    pub(crate) strangers: BTreeMap<ObjectKey, SwIfIndex>,
    /// Keys whose wish or need changed, in order.
    pub(crate) touched: Vec<VppKey>,
}

impl Store {
    /// Applies one edit.
    pub(crate) fn edit(&mut self, edit: VppEdit) {
        match edit {
            VppEdit::Want(owner, key) => {
                let entry = self.objects.entry(key).or_default();
                entry.adopted = false;
                entry.lingers = None;
                if entry.owners.insert(owner) && entry.owners.len() == 1 {
                    self.touched.push(VppKey::Object(key));
                }
            }
            VppEdit::Define(key, spec) => {
                let entry = self.objects.entry(key).or_default();
                if entry.desired.as_ref() != Some(&spec) {
                    entry.desired = Some(spec);
                    if entry.wanted() {
                        self.touched.push(VppKey::Object(key));
                    }
                }
            }
            VppEdit::Release(owner, key) => {
                if let Some(entry) = self.objects.get_mut(&key)
                    && entry.owners.remove(&owner)
                    && entry.owners.is_empty()
                {
                    self.touched.push(VppKey::Object(key));
                }
            }
            VppEdit::WantRoute(owner, key, paths) => self.want_route(owner, key, &paths),
            VppEdit::ReleaseRoute(owner, key) => self.release_route(owner, key),
            VppEdit::Territory(territory) => {
                if self.territory != territory {
                    self.territory = territory;
                    let other = |key: &&ObjectKey| matches!(key, ObjectKey::OtherRoute(_));
                    let others = self.objects.keys().filter(other).map(|key| VppKey::Object(*key));
                    self.touched.extend(others);
                }
            }
            VppEdit::Uplink(uplink) => {
                if self.uplink != uplink {
                    self.uplink = uplink;
                    self.touched.push(VppKey::Object(ObjectKey::Uplink));
                }
            }
        }
    }

    fn want_route(&mut self, owner: Owner, key: RouteKey, paths: &Arc<[Path]>) {
        let id = self.sets.intern(paths);
        self.sets.retain(id, Use::Desired);
        let entry = Self::route_entry(&mut self.routes, key);
        entry.adopted = false;
        let before = entry.desired;
        let given_up = match entry.owner {
            None => {
                entry.owner = Some(owner);
                entry.desired = id;
                None
            }
            Some(holder) if holder == owner && !self.claims.any(&key) => {
                Some(std::mem::replace(&mut entry.desired, id))
            }
            Some(holder) => {
                // Whoever has it stands among the others, and what `owner` wanted before is given up.
                self.claims.insert(key, holder, entry.desired);
                let given_up = self.claims.insert(key, owner, id);
                if let Some((first, id)) = self.claims.next(&key, &self.sets) {
                    entry.owner = Some(first);
                    entry.desired = id;
                }
                given_up
            }
        };
        if entry.desired != before {
            self.touched.push(VppKey::Route(key));
        }
        if let Some(old) = given_up {
            self.sets.release(old, Use::Desired);
        }
    }

    fn release_route(&mut self, owner: Owner, key: RouteKey) {
        let Some(entry) = self.routes.get_mut(&key.table).and_then(|t| t.get_mut(&key.prefix)) else {
            return;
        };
        if entry.owner != Some(owner) {
            if let Some(old) = self.claims.remove(&key, owner) {
                self.sets.release(old, Use::Desired);
            }
            return;
        }
        let before = entry.desired;
        match self.claims.next(&key, &self.sets) {
            Some((next, id)) => {
                entry.owner = Some(next);
                entry.desired = id;
            }
            None => {
                entry.owner = None;
                entry.desired = SetId::NONE;
            }
        }
        if entry.desired != before {
            self.touched.push(VppKey::Route(key));
        }
        self.sets.release(before, Use::Desired);
    }

    fn route_entry(routes: &mut BTreeMap<TableId, PrefixMap<RouteEntry>>, key: RouteKey) -> &mut RouteEntry {
        routes.entry(key.table).or_default().get_or_insert(key.prefix, || RouteEntry::EMPTY)
    }

    pub(crate) fn route(&self, key: &RouteKey) -> Option<&RouteEntry> {
        self.routes.get(&key.table)?.get(&key.prefix)
    }

    pub(crate) fn route_mut(&mut self, key: &RouteKey) -> Option<&mut RouteEntry> {
        self.routes.get_mut(&key.table)?.get_mut(&key.prefix)
    }

    /// The entry of a route that was found in VPP.
    pub(crate) fn found_route(&mut self, key: RouteKey) -> &mut RouteEntry {
        Self::route_entry(&mut self.routes, key)
    }

    /// Drops the entry of a route that nobody wants and VPP does not hold.
    pub(crate) fn forget_route(&mut self, key: &RouteKey) {
        if let Some(table) = self.routes.get_mut(&key.table) {
            table.remove(&key.prefix);
            if table.is_empty() {
                self.routes.remove(&key.table);
            }
        }
    }

    /// Whether VPP has, or may soon have, a route of ours in a table.
    pub(crate) fn has_routes(&self, table: TableId, family: Family) -> bool {
        let mut routes = self.routes.get(&table).into_iter().flat_map(PrefixMap::iter);
        routes.any(|(prefix, entry)| {
            crate::plan::family(&prefix) == family
                && (entry.actual != SetId::NONE || entry.state == State::InFlight)
        })
    }

    /// VPP has, or may soon have, one more route with these paths.
    pub(crate) fn hold(&mut self, id: SetId) {
        if self.sets.retain(id, Use::Held) {
            for tunnel in tunnels(&self.sets.paths(id)) {
                self.used(tunnel);
            }
        }
    }

    /// VPP has one route less with these paths. What nothing uses any more is touched.
    pub(crate) fn unhold(&mut self, id: SetId) {
        // Read first: the last release frees the set.
        let last = self.sets.last_held(id);
        self.sets.release(id, Use::Held);
        for tunnel in last.iter().flat_map(|paths| tunnels(paths)) {
            self.unused(tunnel);
        }
    }

    fn used(&mut self, key: ObjectKey) {
        *self.users.entry(key).or_default() += 1;
    }

    fn unused(&mut self, key: ObjectKey) {
        let Some(users) = self.users.get_mut(&key) else { return };
        *users = users.saturating_sub(1);
        if *users == 0 {
            self.users.remove(&key);
            self.touched.push(VppKey::Object(key));
        }
    }

    /// Whether something in VPP uses, or may use, an object: a route leads into it, or another object's value names it.
    pub(crate) fn in_use(&self, key: &ObjectKey) -> bool {
        self.users.contains_key(key)
    }

    /// VPP has this of an object's value; `None` where it has none, or it is not known.
    pub(crate) fn set_held(&mut self, key: &ObjectKey, spec: Option<Spec>) {
        self.set_value(key, spec, |entry| &mut entry.held);
    }

    /// An operation leaves that gives an object this value.
    pub(crate) fn set_sent(&mut self, key: &ObjectKey, spec: Option<Spec>) {
        self.set_value(key, spec, |entry| &mut entry.sent);
    }

    /// The operation in flight is over. VPP has the value now if it was `done`.
    pub(crate) fn settle_sent(&mut self, key: &ObjectKey, done: bool) {
        let Some(entry) = self.objects.get_mut(key) else { return };
        // The count goes with the value.
        let sent = entry.sent.take();
        if done {
            let before = std::mem::replace(&mut entry.held, sent);
            if let Some(user) = before.and_then(|spec| spec.refers()) {
                self.unused(user);
            }
        } else if let Some(user) = sent.and_then(|spec| spec.refers()) {
            self.unused(user);
        }
    }

    fn set_value(
        &mut self,
        key: &ObjectKey,
        spec: Option<Spec>,
        of: impl Fn(&mut ObjectEntry) -> &mut Option<Spec>,
    ) {
        let uses = spec.as_ref().and_then(Spec::refers);
        let Some(entry) = self.objects.get_mut(key) else { return };
        let before = std::mem::replace(of(entry), spec).and_then(|spec| spec.refers());
        // In this order: what stays in use is not touched.
        if let Some(key) = uses {
            self.used(key);
        }
        if let Some(key) = before {
            self.unused(key);
        }
    }

    /// Nothing is known of any object, nothing in flight. Objects that nobody wants, nor did a moment ago, are dropped.
    pub(crate) fn forget_objects(&mut self) {
        self.objects.retain(|_, entry| {
            *entry = ObjectEntry {
                owners: std::mem::take(&mut entry.owners),
                desired: entry.desired.take(),
                lingers: entry.lingers,
                ..ObjectEntry::default()
            };
            entry.wanted() || entry.lingers.is_some()
        });
        self.users.clear();
        self.fresh.clear();
    }

    /// Whether an object is there and stays.
    pub(crate) fn present(&self, key: &ObjectKey) -> bool {
        self.objects.get(key).is_some_and(ObjectEntry::present)
    }

    /// The interface behind an object.
    pub(crate) fn interface(&self, key: &ObjectKey) -> Option<SwIfIndex> {
        match self.objects.get(key)?.actual {
            Actual::Interface(index) => Some(index),
            Actual::Absent | Actual::Present | Actual::Source(_) | Actual::Index(_) => None,
        }
    }
}

/// The tunnels that a set of paths leads into.
fn tunnels(paths: &[Path]) -> impl Iterator<Item = ObjectKey> {
    paths.iter().filter_map(|path| path.to.tunnel()).map(ObjectKey::Tunnel)
}

#[cfg(test)]
mod tests;
