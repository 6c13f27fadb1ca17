//! SRv6. Ours are SIDs in the pool of local SIDs, policies with a binding SID of the pool of those, and what is steered into
//! them: VPP has no place for a mark. A policy that somebody else made up, with a binding SID from elsewhere, is known as
//! ours only while it is wanted.

use crate::desired::{Actual, ObjectEntry, ObjectKey, Spec, Store};
use crate::event::Srv6Dump;

pub(super) fn merge(store: &mut Store, dump: &Srv6Dump) {
    let pools = store.srv6;
    for (sid, behavior) in &dump.localsids {
        let ours = pools.is_some_and(|pools| pools.localsids.contains(sid));
        found(store, ObjectKey::Localsid(*sid), ours, behavior.map(Spec::Localsid));
    }
    for policy in &dump.policies {
        let ours = pools.is_some_and(|pools| pools.policies.contains(&policy.bsid));
        let spec = policy.says.as_ref();
        let spec = spec.map(|(source, lists)| Spec::SrPolicy { source: *source, lists: lists.clone() });
        found(store, ObjectKey::SrPolicy(policy.bsid), ours, spec);
    }
    for (route, bsid) in &dump.steering {
        let ours = pools.is_some_and(|pools| pools.policies.contains(bsid));
        found(store, ObjectKey::SrSteering(*route), ours, Some(Spec::SrSteering(*bsid)));
    }
}

fn found(store: &mut Store, key: ObjectKey, ours: bool, spec: Option<Spec>) {
    let wanted = store.objects.get(&key).is_some_and(ObjectEntry::wanted);
    if !wanted && !ours {
        return;
    }
    let entry = store.objects.entry(key).or_default();
    entry.actual = Actual::Present;
    entry.adopted = !wanted;
    store.set_held(&key, spec);
}
