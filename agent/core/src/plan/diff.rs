//! One entry of the store, and the next step that brings VPP closer to it.

use std::sync::Arc;

use super::operation::{TUNNEL_TAG, VppAction};
use super::order::{Need, needs_of_object, needs_of_route};
use crate::desired::{Actual, ObjectEntry, ObjectKey, Path, SetId, State, Store, Target};
use crate::event::{FibPath, FibPathKind, FibSourceId, SwIfIndex};
use crate::model::{RouteKey, TableId};

/// What is to be done about an entry now.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing: what is wanted is there.
    Settled,
    /// Nothing, and the entry has no more use.
    Forget,
    /// It goes when every source is in sync.
    Hold,
    /// Nothing until this object is there.
    Wait(ObjectKey),
    /// Nothing until no route leads into the tunnel any more; the store touches it then.
    WaitForRoutes,
    /// Ask VPP.
    Emit {
        /// For what.
        action: VppAction,
        /// The object will be gone.
        leaving: bool,
    },
}

/// The next step for a route.
pub(super) fn route_step(store: &mut Store, key: RouteKey, may_delete: bool) -> Step {
    let Some(entry) = store.route(&key).copied() else { return Step::Settled };
    if entry.desired == entry.actual {
        return if entry.desired == SetId::NONE { Step::Forget } else { Step::Settled };
    }
    let RouteKey { table, prefix } = key;
    // No traffic is lost by its going, so it waits for nobody.
    if entry.actual == SetId::DEAD
        && let Some(source) = fib_source(store)
    {
        return Step::Emit { action: VppAction::DelRoute { source, table, prefix }, leaving: true };
    }
    if entry.desired == SetId::NONE {
        if entry.adopted && !may_delete {
            return Step::Hold;
        }
        let Some(source) = fib_source(store) else { return Step::Wait(ObjectKey::FibSource) };
        return Step::Emit { action: VppAction::DelRoute { source, table, prefix }, leaving: true };
    }
    let paths = store.sets.paths(entry.desired);
    let mut blocker = None;
    needs_of_route(&key, &paths, |need| {
        if !met(store, need) {
            blocker = Some(need.key());
        }
        blocker.is_none()
    });
    if let Some(blocker) = blocker {
        return Step::Wait(blocker);
    }
    let Some(source) = fib_source(store) else { return Step::Wait(ObjectKey::FibSource) };
    let paths = match store.sets.resolved(entry.desired) {
        Some(paths) => paths,
        None => match resolve(store, &paths) {
            Ok(resolved) => {
                store.sets.set_resolved(entry.desired, Arc::clone(&resolved));
                resolved
            }
            Err(missing) => return Step::Wait(missing),
        },
    };
    Step::Emit { action: VppAction::PutRoute { source, table, prefix, paths }, leaving: false }
}

/// The next step for anything else.
pub(super) fn object_step(store: &Store, key: ObjectKey, may_delete: bool) -> Step {
    let Some(entry) = store.objects.get(&key) else { return Step::Settled };
    if !entry.wanted() {
        return unwanted_step(store, key, entry, may_delete);
    }
    let settled = match key {
        // Borrowed addresses are right only while they come from the uplink of now.
        ObjectKey::Unnumbered(_) => match store.interface(&ObjectKey::Uplink) {
            Some(uplink) => entry.actual == Actual::Interface(uplink),
            None => false,
        },
        ObjectKey::Uplink
        | ObjectKey::FibSource
        | ObjectKey::Table(..)
        | ObjectKey::Ipip(_)
        | ObjectKey::Tag(_)
        | ObjectKey::Gso(_)
        | ObjectKey::AdminUp(_) => entry.actual != Actual::Absent,
    };
    if settled {
        return Step::Settled;
    }
    let mut blocker = None;
    needs_of_object(&key, |need| {
        if !met(store, need) {
            blocker = Some(need.key());
        }
        blocker.is_none()
    });
    if let Some(blocker) = blocker {
        return Step::Wait(blocker);
    }
    match create(store, &key) {
        Ok(action) => Step::Emit { action, leaving: false },
        Err(missing) => Step::Wait(missing),
    }
}

fn unwanted_step(store: &Store, key: ObjectKey, entry: &ObjectEntry, may_delete: bool) -> Step {
    match key {
        ObjectKey::Ipip(tunnel) => match entry.actual {
            Actual::Interface(index) => {
                if entry.adopted && !may_delete {
                    Step::Hold
                } else if store.tunnel_in_use(&tunnel) {
                    Step::WaitForRoutes
                } else {
                    Step::Emit { action: VppAction::DelIpip { index }, leaving: true }
                }
            }
            Actual::Absent | Actual::Present | Actual::Source(_) => Step::Forget,
        },
        // Settings go with their interface; until then they are remembered, in case it is wanted again.
        ObjectKey::Tag(tunnel)
        | ObjectKey::Unnumbered(tunnel)
        | ObjectKey::Gso(tunnel)
        | ObjectKey::AdminUp(tunnel) => {
            if store.present(&ObjectKey::Ipip(tunnel)) && entry.actual != Actual::Absent {
                Step::Settled
            } else {
                Step::Forget
            }
        }
        ObjectKey::Uplink | ObjectKey::FibSource | ObjectKey::Table(..) => Step::Settled,
    }
}

/// Whether something needed is there, or on its way where that is enough.
fn met(store: &Store, need: Need) -> bool {
    match need {
        Need::Present(key) => store.present(&key),
        Need::Underway(key) => store
            .objects
            .get(&key)
            .is_some_and(|entry| entry.present() || (entry.state == State::InFlight && !entry.leaving)),
    }
}

fn fib_source(store: &Store) -> Option<FibSourceId> {
    match store.objects.get(&ObjectKey::FibSource)?.actual {
        Actual::Source(id) => Some(id),
        Actual::Absent | Actual::Present | Actual::Interface(_) => None,
    }
}

fn create(store: &Store, key: &ObjectKey) -> Result<VppAction, ObjectKey> {
    let index_of = |key: ObjectKey| -> Result<SwIfIndex, ObjectKey> { store.interface(&key).ok_or(key) };
    Ok(match key {
        // Nothing can be done but wait until it appears.
        ObjectKey::Uplink => return Err(ObjectKey::Uplink),
        ObjectKey::FibSource => VppAction::AddFibSource,
        ObjectKey::Table(table, family) => VppAction::AddTable { table: *table, family: *family },
        ObjectKey::Ipip(tunnel) => VppAction::AddIpip { local: tunnel.local, remote: tunnel.remote },
        ObjectKey::Tag(tunnel) => VppAction::SetTag {
            index: index_of(ObjectKey::Ipip(*tunnel))?,
            tag: format!("{TUNNEL_TAG}{}", tunnel.remote).into(),
        },
        ObjectKey::Unnumbered(tunnel) => VppAction::SetUnnumbered {
            index: index_of(ObjectKey::Ipip(*tunnel))?,
            lender: index_of(ObjectKey::Uplink)?,
        },
        ObjectKey::Gso(tunnel) => VppAction::SetGso { index: index_of(ObjectKey::Ipip(*tunnel))? },
        ObjectKey::AdminUp(tunnel) => VppAction::SetUp { index: index_of(ObjectKey::Ipip(*tunnel))? },
    })
}

fn resolve(store: &Store, paths: &[Path]) -> Result<Arc<[FibPath]>, ObjectKey> {
    let resolved: Result<Vec<FibPath>, ObjectKey> = paths
        .iter()
        .map(|path| {
            let kind = match path.to {
                Target::Gateway(address) => FibPathKind::Recursive(address, TableId::MAIN),
                Target::Ipip(tunnel) => {
                    let key = ObjectKey::Ipip(tunnel);
                    FibPathKind::Attached(store.interface(&key).ok_or(key)?)
                }
                Target::Drop => FibPathKind::Drop,
            };
            Ok(FibPath { kind, weight: path.weight })
        })
        .collect();
    Ok(resolved?.into())
}
