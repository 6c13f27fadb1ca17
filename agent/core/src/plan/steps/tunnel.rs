//! Tunnels and the settings of their interfaces.

use bgp_core::Family;

use super::super::operation::{VppAction, WireguardAction, own_address, tag};
use crate::desired::{Actual, MtuRule, ObjectEntry, ObjectKey, Spec, Store, Tunnel};
use crate::event::SwIfIndex;
use crate::model::family_of;

/// The smallest packet that every interface has to take, whatever a rule says (RFC 791, RFC 8200).
const fn smallest(tunnel: &Tunnel) -> u32 {
    if tunnel.local().is_ipv4() { 576 } else { 1280 }
}

/// The interface of a tunnel; or what has to be there first.
pub(in crate::plan) fn index_of(store: &Store, tunnel: Tunnel) -> Result<SwIfIndex, ObjectKey> {
    let key = ObjectKey::Tunnel(tunnel);
    store.interface(&key).ok_or(key)
}

/// Whose addresses are borrowed: those of the uplink of now.
pub(super) fn lender(store: &Store) -> Result<Spec, ObjectKey> {
    store.interface(&ObjectKey::Uplink).map(Spec::Lender).ok_or(ObjectKey::Uplink)
}

/// The largest packet, worked out from the uplink's.
pub(super) fn mtu(store: &Store, tunnel: &Tunnel, entry: &ObjectEntry) -> Result<Spec, ObjectKey> {
    let mtu = match &entry.desired {
        Some(Spec::MtuRule(MtuRule::Fixed(mtu)) | Spec::Mtu(mtu)) => *mtu,
        Some(Spec::MtuRule(MtuRule::UplinkLess(overhead))) => {
            store.uplink_mtu.ok_or(ObjectKey::Uplink)?.saturating_sub(u32::from(*overhead))
        }
        _ => return Err(ObjectKey::Mtu(*tunnel)),
    };
    Ok(Spec::Mtu(mtu.max(smallest(tunnel))))
}

/// Makes a tunnel.
pub(super) fn create(store: &Store, tunnel: &Tunnel) -> Result<VppAction, ObjectKey> {
    match tunnel {
        Tunnel::Ipip(key) => Ok(VppAction::AddIpip { local: key.local, remote: key.remote }),
        Tunnel::Vxlan(key) => {
            Ok(VppAction::AddVxlan { key: *key, decap_next: decap_next(store, family_of(key.local))? })
        }
        Tunnel::Wireguard(key) => super::wireguard::add_interface(store, key),
    }
}

/// Deletes a tunnel.
pub(super) fn delete(store: &Store, tunnel: &Tunnel, entry: &ObjectEntry) -> Option<VppAction> {
    let Actual::Interface(index) = entry.actual else { return None };
    match tunnel {
        Tunnel::Ipip(_) => Some(VppAction::DelIpip { index }),
        Tunnel::Vxlan(key) => {
            // VPP needs none to find the tunnel.
            let decap_next = decap_next(store, family_of(key.local)).unwrap_or(u32::MAX);
            Some(VppAction::DelVxlan { key: *key, decap_next })
        }
        Tunnel::Wireguard(_) => Some(WireguardAction::DelInterface { index }.into()),
    }
}

fn decap_next(store: &Store, family: Family) -> Result<u32, ObjectKey> {
    let key = ObjectKey::DecapNext(family);
    match store.objects.get(&key).map(|entry| entry.actual) {
        Some(Actual::Index(index)) => Ok(index),
        Some(Actual::Absent | Actual::Present | Actual::Interface(_) | Actual::Source(_)) | None => Err(key),
    }
}

/// Gives an interface a setting.
pub(super) fn set(store: &Store, key: &ObjectKey, spec: Option<&Spec>) -> Result<VppAction, ObjectKey> {
    let Some(tunnel) = key.setting_of() else { return Err(*key) };
    let index = index_of(store, tunnel)?;
    Ok(match (key, spec) {
        (ObjectKey::Tag(_), _) => VppAction::SetTag { index, tag: tag(&tunnel) },
        (ObjectKey::Unnumbered(_), Some(Spec::Lender(lender))) => {
            VppAction::SetUnnumbered { index, lender: *lender }
        }
        (ObjectKey::Vrf(_, family), Some(Spec::Table(table, _))) => {
            VppAction::SetVrf { index, family: *family, table: *table }
        }
        (ObjectKey::Mtu(_), Some(Spec::Mtu(mtu))) => VppAction::SetMtu { index, mtu: *mtu },
        (ObjectKey::Gso(_), _) => VppAction::SetGso { index },
        (ObjectKey::Cnat(_), _) => VppAction::SetCnat { index },
        (ObjectKey::Address(_, family), _) => {
            VppAction::SetAddress { index, address: own_address(index, *family) }
        }
        (ObjectKey::AdminUp(_), _) => VppAction::SetUp { index },
        // A setting without the value that it is about: its owner has yet to say.
        _ => return Err(*key),
    })
}
