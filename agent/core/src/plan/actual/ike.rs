//! Profiles of IKEv2, and whether their tunnels are up.
//!
//! Ours are those that are wanted; those that protect a tunnel of ours; and those of one of our addresses whose interface
//! is gone, as VPP may take a tunnel away by itself.

use std::collections::BTreeMap;

use super::super::operation::{TUNNEL_TAG, profile_ends};
use crate::desired::{Actual, IkeHeld, ObjectEntry, ObjectKey, Spec, Store, Tunnel};
use crate::event::{Dump, Interface, SwIfIndex};

pub(super) fn merge(store: &mut Store, dump: &Dump, interfaces: &BTreeMap<SwIfIndex, &Interface>) {
    for profile in &dump.ike {
        let Some(ends) = profile_ends(&profile.name) else { continue };
        let key = ObjectKey::IkeProfile(ends);
        let wanted = store.objects.get(&key).is_some_and(ObjectEntry::wanted);
        let ours = match interfaces.get(&profile.index) {
            Some(interface) => interface.tag.starts_with(TUNNEL_TAG),
            None => dump.interfaces.iter().any(|i| i.addresses.iter().any(|net| net.addr() == ends.local)),
        };
        if !wanted && !ours {
            continue;
        }
        let entry = store.objects.entry(key).or_default();
        entry.actual = Actual::Present;
        entry.adopted = !wanted && entry.lingers.is_none();
        let held = IkeHeld {
            ends,
            index: profile.index,
            psk: profile.psk.clone(),
            begins: profile.begins,
            whole: profile.whole,
        };
        store.set_held(&key, Some(Spec::IkeHeld(held)));
        let tunnel = store.interface(&ObjectKey::Tunnel(Tunnel::Ipip(ends)));
        let up = interfaces.get(&profile.index).is_some_and(|interface| interface.admin_up);
        if up && tunnel == Some(profile.index) {
            store.objects.entry(ObjectKey::IkeSession(ends)).or_default().actual = Actual::Present;
        }
    }
}
