//! WireGuard interfaces and their peers.
//!
//! When a peer goes, VPP drops what is sent to gateways that it could have, though another peer could have them too, until
//! one is added. So of two peers at one address, as after a change of the node's key, the old one goes before the new one comes.

use std::net::IpAddr;

use super::super::operation::{VppAction, WireguardAction};
use super::index_of;
use crate::desired::{Actual, ObjectEntry, ObjectKey, Spec, Store, Tunnel, WireguardKey};
use crate::model::PublicKey;

/// Makes an interface with our keys; or what has to be there first.
pub(super) fn add_interface(store: &Store, key: &WireguardKey) -> Result<VppAction, ObjectKey> {
    let object = ObjectKey::Tunnel(Tunnel::Wireguard(*key));
    match store.objects.get(&object).and_then(|entry| entry.desired.as_ref()) {
        Some(Spec::WireguardKeys(keys)) => {
            Ok(WireguardAction::AddInterface { local: key.local, port: key.port, keys: keys.clone() }.into())
        }
        // Its owner has yet to say.
        _ => Err(object),
    }
}

/// Adds a peer; or what has to be there, or gone, first.
pub(super) fn add_peer(
    store: &Store,
    interface: &WireguardKey,
    public: &PublicKey,
    spec: Option<&Spec>,
) -> Result<VppAction, ObjectKey> {
    let key = ObjectKey::WireguardPeer(*interface, *public);
    let Some(Spec::WireguardPeer(peer)) = spec else { return Err(key) };
    let index = index_of(store, Tunnel::Wireguard(*interface))?;
    let before = peers_of(store, interface).find(|(other, entry)| {
        **other != key
            && entry.actual != Actual::Absent
            && !entry.wanted()
            && endpoint(entry.held()) == Some(peer.endpoint)
    });
    match before {
        Some((other, _)) => Err(*other),
        None => Ok(WireguardAction::AddPeer { interface: index, public: *public, peer: peer.clone() }.into()),
    }
}

/// Removes a peer.
pub(super) fn remove_peer(entry: &ObjectEntry) -> Option<VppAction> {
    match entry.actual {
        Actual::Index(index) => Some(WireguardAction::DelPeer { index }.into()),
        Actual::Absent | Actual::Present | Actual::Interface(_) | Actual::Source(_) => None,
    }
}

/// The peers of an interface that anything is known of.
pub(in crate::plan) fn peers_of<'a>(
    store: &'a Store,
    interface: &WireguardKey,
) -> impl Iterator<Item = (&'a ObjectKey, &'a ObjectEntry)> {
    let end = |octet| ObjectKey::WireguardPeer(*interface, PublicKey([octet; PublicKey::LEN]));
    store.objects.range(end(0)..=end(u8::MAX))
}

/// Whether another peer at the same address is wanted, which can't come before this one goes.
pub(in crate::plan) fn is_superseded(store: &Store, key: &ObjectKey, entry: &ObjectEntry) -> bool {
    let ObjectKey::WireguardPeer(interface, _) = key else { return false };
    let Some(at) = endpoint(entry.held()) else { return false };
    peers_of(store, interface).any(|(other, other_entry)| {
        other != key && other_entry.wanted() && endpoint(other_entry.desired.as_ref()) == Some(at)
    })
}

fn endpoint(spec: Option<&Spec>) -> Option<IpAddr> {
    match spec {
        Some(Spec::WireguardPeer(peer)) => Some(peer.endpoint),
        _ => None,
    }
}
