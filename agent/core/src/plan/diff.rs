//! One entry of the store, and the next step that brings VPP closer to it.

use std::sync::Arc;

use bgp_core::time::Instant;

use super::operation::VppAction;
use super::order::{Changing, End, Need, Rules, needs_of_object, needs_of_route};
use super::steps;
use crate::desired::{Actual, ObjectEntry, ObjectKey, Path, SetId, Spec, State, Store, Target};
use crate::event::{FibPath, FibPathKind, FibSourceId};
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
    /// Nothing until nothing in VPP uses it any more; the store touches it then.
    WaitForUsers,
    /// Nothing before this time: somebody may want it again.
    Linger(Instant),
    /// Ask VPP.
    Emit {
        /// For what.
        action: VppAction,
        /// The value that the object has then.
        spec: Option<Spec>,
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
        return gone(VppAction::DelRoute { source, table, prefix });
    }
    if entry.desired == SetId::NONE {
        if entry.adopted && !may_delete {
            return Step::Hold;
        }
        // What takes its place comes first.
        let steering = ObjectKey::SrSteering(key);
        if store.objects.get(&steering).is_some_and(|entry| entry.wanted() && !entry.present()) {
            return Step::Wait(steering);
        }
        let Some(source) = fib_source(store) else { return Step::Wait(ObjectKey::FibSource) };
        return gone(VppAction::DelRoute { source, table, prefix });
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
    Step::Emit { action: VppAction::PutRoute { source, table, prefix, paths }, spec: None, leaving: false }
}

const fn gone(action: VppAction) -> Step {
    Step::Emit { action, spec: None, leaving: true }
}

/// The next step for anything else.
pub(super) fn object_step(store: &Store, key: ObjectKey, now: Instant, may_delete: bool) -> Step {
    let Some(entry) = store.objects.get(&key) else { return Step::Settled };
    if !entry.wanted() {
        return unwanted_step(store, key, entry, now, may_delete);
    }
    let spec = match steps::value(store, &key, entry) {
        Ok(spec) => spec,
        Err(missing) => return Step::Wait(missing),
    };
    let there = entry.actual != Actual::Absent;
    if there && entry.held() == spec.as_ref() {
        return Step::Settled;
    }
    let mut blocker = None;
    needs_of_object(&key, spec.as_ref(), |need| {
        if !met(store, need) {
            blocker = Some(need.key());
        }
        blocker.is_none()
    });
    if let Some(blocker) = blocker {
        return Step::Wait(blocker);
    }
    if there && Rules::of(&key).changing == Changing::Anew {
        return steps::delete(store, &key, entry).map_or(Step::Settled, gone);
    }
    match steps::create(store, &key, spec.as_ref()) {
        Ok(action) => Step::Emit { action, spec, leaving: false },
        Err(missing) => Step::Wait(missing),
    }
}

fn unwanted_step(store: &Store, key: ObjectKey, entry: &ObjectEntry, now: Instant, may_delete: bool) -> Step {
    let there = entry.actual != Actual::Absent;
    let rules = Rules::of(&key);
    match rules.end {
        End::Stays => Step::Settled,
        // Settings go with their interface; until then they are remembered, in case it is wanted again.
        End::WithTunnel => {
            let stays = key.setting_of().is_some_and(|tunnel| store.present(&ObjectKey::Tunnel(tunnel)));
            if stays && there { Step::Settled } else { Step::Forget }
        }
        End::Deleted if !there => Step::Forget,
        End::Deleted if steps::is_superseded(store, &key, entry) => {
            steps::delete(store, &key, entry).map_or(Step::Forget, gone)
        }
        End::Deleted if entry.adopted && !may_delete => Step::Hold,
        End::Deleted if store.in_use(&key) || steps::stays(store, &key, entry) => Step::WaitForUsers,
        End::Deleted => match entry.lingers {
            // What an earlier run left nobody has wanted for longer than that.
            None if !entry.adopted && !rules.linger.is_zero() => Step::Linger(now + rules.linger),
            Some(until) if until > now => Step::Linger(until),
            Some(_) | None => steps::delete(store, &key, entry).map_or(Step::Forget, gone),
        },
    }
}

/// Whether something is there as it shall be.
pub(super) fn settled(store: &Store, key: &ObjectKey, entry: &ObjectEntry) -> bool {
    let there = entry.actual != Actual::Absent;
    there && steps::value(store, key, entry).is_ok_and(|spec| entry.held() == spec.as_ref())
}

/// Whether something needed is there, or on its way where that is enough.
fn met(store: &Store, need: Need) -> bool {
    match need {
        Need::Present(key) => store.present(&key),
        Need::First(key) => store.objects.get(&key).is_none_or(|entry| !entry.wanted() || entry.present()),
        Need::Gone(key) => store.objects.get(&key).is_none_or(|entry| entry.actual == Actual::Absent),
        Need::After(key) => store.objects.get(&key).is_none_or(|entry| {
            !entry.wanted() || entry.present() || (entry.state == State::InFlight && !entry.leaving)
        }),
    }
}

fn fib_source(store: &Store) -> Option<FibSourceId> {
    match store.objects.get(&ObjectKey::FibSource)?.actual {
        Actual::Source(id) => Some(id),
        Actual::Absent | Actual::Present | Actual::Interface(_) | Actual::Index(_) => None,
    }
}

fn resolve(store: &Store, paths: &[Path]) -> Result<Arc<[FibPath]>, ObjectKey> {
    let resolved: Result<Vec<FibPath>, ObjectKey> = paths
        .iter()
        .map(|path| {
            let kind = match path.to {
                Target::Gateway(address) => FibPathKind::Recursive(address, TableId::MAIN),
                Target::Tunnel(tunnel) => FibPathKind::Attached(steps::index_of(store, tunnel)?),
                Target::TunnelVia(tunnel, gateway) => {
                    FibPathKind::Via(gateway, steps::index_of(store, tunnel)?)
                }
                Target::Drop => FibPathKind::Drop,
            };
            Ok(FibPath { kind, weight: path.weight })
        })
        .collect();
    Ok(resolved?.into())
}
