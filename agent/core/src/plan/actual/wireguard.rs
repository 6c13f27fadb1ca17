//! Peers of WireGuard interfaces: those of an interface of ours are ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::desired::{Actual, ObjectEntry, ObjectKey, Spec, Store, Tunnel, WireguardPeer};
use crate::event::{Dump, SwIfIndex};

pub(super) fn merge(store: &mut Store, dump: &Dump, tunnels: &BTreeMap<SwIfIndex, Tunnel>) {
    for peer in &dump.wireguard {
        let Some(tunnel @ Tunnel::Wireguard(interface)) = tunnels.get(&peer.interface) else { continue };
        if store.interface(&ObjectKey::Tunnel(*tunnel)) != Some(peer.interface) {
            continue;
        }
        let key = ObjectKey::WireguardPeer(*interface, peer.public);
        let mut allowed = peer.allowed.clone();
        allowed.sort_unstable();
        let mut held = WireguardPeer {
            interface: *interface,
            endpoint: peer.endpoint,
            port: peer.port,
            keepalive: peer.keepalive,
            allowed,
        };
        let entry = store.objects.entry(key).or_default();
        // A peer with a session is where it last spoke from, which something on the way may have changed. It has proved who it
        // is, so that is no reason to end the session.
        if let (true, Some(Spec::WireguardPeer(wanted))) = (peer.established, &entry.desired) {
            (held.endpoint, held.port) = (wanted.endpoint, wanted.port);
        }
        entry.actual = Actual::Index(peer.index);
        entry.adopted = !ObjectEntry::wanted(entry) && entry.lingers.is_none();
        store.set_held(&key, Some(Spec::WireguardPeer(Arc::new(held))));
    }
}
