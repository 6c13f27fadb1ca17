//! What is wanted of VPP, beside what VPP is known to hold: one entry for each object. Edits come from handlers; the
//! keys they touch are collected until the plan drains them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::object::{IpipKey, ObjectKey, Owner, Path, Target, Uplink, VppKey};
use super::owners::Claims;
use super::paths::{PathSets, SetId, Use};
use super::prefix_map::PrefixMap;
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
    /// It is an interface, or (for borrowed addresses) comes from that interface.
    Interface(SwIfIndex),
    /// It is a FIB source.
    Source(FibSourceId),
}

/// Any object but a route.
#[derive(Clone, Debug)]
pub(crate) struct ObjectEntry {
    pub(crate) owners: BTreeSet<Owner>,
    pub(crate) actual: Actual,
    pub(crate) state: State,
    pub(crate) attempts: u8,
    /// The operation in flight removes the object.
    pub(crate) leaving: bool,
    /// Found in VPP, and nobody has wanted it since.
    pub(crate) adopted: bool,
}

impl Default for ObjectEntry {
    fn default() -> Self {
        Self {
            owners: BTreeSet::new(),
            actual: Actual::Absent,
            state: State::Idle,
            attempts: 0,
            leaving: false,
            adopted: false,
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
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) sets: PathSets,
    pub(crate) routes: BTreeMap<TableId, PrefixMap<RouteEntry>>,
    pub(crate) objects: BTreeMap<ObjectKey, ObjectEntry>,
    pub(crate) uplink: Option<Uplink>,
    claims: Claims,
    /// How many sets of paths that VPP holds, or may hold, lead into a tunnel.
    tunnel_users: BTreeMap<IpipKey, u32>,
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
                if entry.owners.insert(owner) && entry.owners.len() == 1 {
                    self.touched.push(VppKey::Object(key));
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
            Some(holder) if holder == owner => Some(std::mem::replace(&mut entry.desired, id)),
            Some(holder) if owner < holder => {
                self.claims.insert(key, holder, entry.desired);
                entry.owner = Some(owner);
                entry.desired = id;
                None
            }
            Some(_) => self.claims.insert(key, owner, id),
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
        match self.claims.next(&key) {
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

    /// VPP has, or may soon have, one more route with these paths.
    pub(crate) fn hold(&mut self, id: SetId) {
        if self.sets.retain(id, Use::Held) {
            for tunnel in tunnels(&self.sets.paths(id)) {
                *self.tunnel_users.entry(tunnel).or_default() += 1;
            }
        }
    }

    /// VPP has one route less with these paths. A tunnel that no route leads into any more is touched.
    pub(crate) fn unhold(&mut self, id: SetId) {
        // Read first: the last release frees the set.
        let paths = self.sets.paths(id);
        if !self.sets.release(id, Use::Held) {
            return;
        }
        for tunnel in tunnels(&paths) {
            let Some(users) = self.tunnel_users.get_mut(&tunnel) else { continue };
            *users = users.saturating_sub(1);
            if *users == 0 {
                self.tunnel_users.remove(&tunnel);
                self.touched.push(VppKey::Object(ObjectKey::Ipip(tunnel)));
            }
        }
    }

    /// Whether routes in VPP lead, or may lead, into a tunnel.
    pub(crate) fn tunnel_in_use(&self, tunnel: &IpipKey) -> bool {
        self.tunnel_users.contains_key(tunnel)
    }

    /// Whether an object is there and stays.
    pub(crate) fn present(&self, key: &ObjectKey) -> bool {
        self.objects.get(key).is_some_and(ObjectEntry::present)
    }

    /// The interface behind an object.
    pub(crate) fn interface(&self, key: &ObjectKey) -> Option<SwIfIndex> {
        match self.objects.get(key)?.actual {
            Actual::Interface(index) => Some(index),
            Actual::Absent | Actual::Present | Actual::Source(_) => None,
        }
    }
}

/// The tunnels that a set of paths leads into.
fn tunnels(paths: &[Path]) -> impl Iterator<Item = IpipKey> {
    paths.iter().filter_map(|path| match path.to {
        Target::Ipip(tunnel) => Some(tunnel),
        Target::Gateway(_) | Target::Drop => None,
    })
}

#[cfg(test)]
mod tests;
