//! SRv6: local SIDs, policies, and what is steered into them.

use super::super::operation::{Srv6Action, VppAction};
use crate::desired::{Actual, ObjectKey, Spec, Store};

/// Makes an object, or changes it in place.
pub(super) fn create(store: &Store, key: &ObjectKey, spec: Option<&Spec>) -> Result<VppAction, ObjectKey> {
    let there = || store.objects.get(key).is_some_and(|entry| entry.actual != Actual::Absent);
    Ok(VppAction::Srv6(match (key, spec) {
        (ObjectKey::EncapSource, Some(Spec::EncapSource(source))) => Srv6Action::SetEncapSource(*source),
        (ObjectKey::Localsid(sid), Some(Spec::Localsid(behavior))) => {
            Srv6Action::AddLocalsid { sid: *sid, behavior: *behavior }
        }
        (ObjectKey::SrPolicy(bsid), Some(Spec::SrPolicy { source, lists })) => {
            let (bsid, source, lists) = (*bsid, *source, lists.clone());
            if there() {
                Srv6Action::ChangePolicy { bsid, source, lists }
            } else {
                Srv6Action::AddPolicy { bsid, source, lists }
            }
        }
        (ObjectKey::SrSteering(route), Some(Spec::SrSteering(bsid))) => {
            Srv6Action::Steer { route: *route, bsid: *bsid }
        }
        // Without the value that it is about: its owner has yet to say.
        _ => return Err(*key),
    }))
}

/// Deletes an object.
pub(super) const fn delete(key: &ObjectKey) -> Option<VppAction> {
    let action = if let ObjectKey::Localsid(sid) = key {
        Srv6Action::DelLocalsid { sid: *sid }
    } else if let ObjectKey::SrPolicy(bsid) = key {
        Srv6Action::DelPolicy { bsid: *bsid }
    } else if let ObjectKey::SrSteering(route) = key {
        Srv6Action::Unsteer { route: *route }
    } else {
        return None;
    };
    Some(VppAction::Srv6(action))
}
