//! Source NAT. VPP shows the addresses and nothing else, so what exclusions an earlier run, or an earlier connection, may
//! have left is what was noted before each was asked for. Without addresses there are none of them: VPP has been restarted.

use crate::desired::{Actual, ObjectKey, Spec, Store};
use crate::event::Dump;

pub(super) fn merge(store: &mut Store, dump: &Dump) {
    let Some(addresses) = dump.snat else {
        store.noted.clear();
        return;
    };
    let key = ObjectKey::SnatAddresses;
    store.objects.entry(key).or_default().actual = Actual::Present;
    store.set_held(&key, Some(Spec::SnatAddresses(addresses)));
    for prefix in store.noted.all() {
        let key = ObjectKey::SnatExclusion(prefix);
        let entry = store.objects.entry(key).or_default();
        entry.actual = Actual::Present;
        entry.adopted = !entry.wanted();
        store.set_held(&key, Some(Spec::Noted));
    }
}
