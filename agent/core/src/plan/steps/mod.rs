//! What VPP has to be asked for, object by object: one file for each area. Each knows the values that follow from what VPP
//! holds, and the actions that make, change and delete its objects; when they leave is decided in `diff`.

mod ike;
mod nat;
mod srv6;
mod tunnel;
mod wireguard;

use super::operation::VppAction;
use crate::desired::{ObjectEntry, ObjectKey, SetId, Spec, Store, Tunnel};

pub(super) use tunnel::index_of;
pub(super) use wireguard::{is_superseded, peers_of};

/// The value that an object shall have, as VPP is to be told it; or what has to be there first.
pub(super) fn value(store: &Store, key: &ObjectKey, entry: &ObjectEntry) -> Result<Option<Spec>, ObjectKey> {
    match key {
        ObjectKey::Unnumbered(_) => tunnel::lender(store).map(Some),
        ObjectKey::Mtu(of) => tunnel::mtu(store, of, entry).map(Some),
        // Its keys are part of what it is, and told when it is made.
        ObjectKey::Tunnel(Tunnel::Wireguard(_)) => Ok(None),
        // Nobody has said yet what it shall be.
        ObjectKey::WireguardPeer(..) if entry.desired.is_none() => Err(*key),
        ObjectKey::SnatAddresses => nat::addresses(entry).map(Some),
        ObjectKey::IkeProfile(ends) => ike::profile(store, ends, entry).map(Some),
        ObjectKey::Uplink
        | ObjectKey::FibSource
        | ObjectKey::Table(..)
        | ObjectKey::OtherRoute(_)
        | ObjectKey::DecapNext(_)
        | ObjectKey::Tunnel(_)
        | ObjectKey::Tag(_)
        | ObjectKey::Vrf(..)
        | ObjectKey::Gso(_)
        | ObjectKey::Cnat(_)
        | ObjectKey::Address(..)
        | ObjectKey::AdminUp(_)
        | ObjectKey::EncapSource
        | ObjectKey::Localsid(_)
        | ObjectKey::SrPolicy(_)
        | ObjectKey::SrSteering(_)
        | ObjectKey::WireguardPeer(..)
        | ObjectKey::IkeSession(_)
        | ObjectKey::AsyncCrypto
        | ObjectKey::SnatExclusion(_)
        | ObjectKey::SnatInterface(..)
        | ObjectKey::SnatPolicy => Ok(entry.desired.clone()),
    }
}

/// What makes an object, or gives it this value in place of another; or what has to be there first.
pub(super) fn create(store: &Store, key: &ObjectKey, spec: Option<&Spec>) -> Result<VppAction, ObjectKey> {
    match key {
        // Nothing can be done but wait until it appears.
        ObjectKey::Uplink | ObjectKey::OtherRoute(_) => Err(*key),
        ObjectKey::FibSource => Ok(VppAction::AddFibSource),
        ObjectKey::Table(table, family) => Ok(VppAction::AddTable { table: *table, family: *family }),
        ObjectKey::DecapNext(family) => Ok(VppAction::AddDecapNext { family: *family }),
        ObjectKey::Tunnel(tunnel) => tunnel::create(store, tunnel),
        ObjectKey::WireguardPeer(interface, public) => wireguard::add_peer(store, interface, public, spec),
        ObjectKey::Tag(_)
        | ObjectKey::Vrf(..)
        | ObjectKey::Unnumbered(_)
        | ObjectKey::Gso(_)
        | ObjectKey::Cnat(_)
        | ObjectKey::Mtu(_)
        | ObjectKey::Address(..)
        | ObjectKey::AdminUp(_) => tunnel::set(store, key, spec),
        ObjectKey::IkeProfile(_) | ObjectKey::IkeSession(_) | ObjectKey::AsyncCrypto => {
            ike::create(store, key, spec)
        }
        ObjectKey::SnatAddresses
        | ObjectKey::SnatExclusion(_)
        | ObjectKey::SnatInterface(..)
        | ObjectKey::SnatPolicy => nat::create(key, spec),
        ObjectKey::EncapSource
        | ObjectKey::Localsid(_)
        | ObjectKey::SrPolicy(_)
        | ObjectKey::SrSteering(_) => srv6::create(store, key, spec),
    }
}

/// What deletes an object; `None` where there is nothing to delete, or nothing that could.
pub(super) fn delete(store: &Store, key: &ObjectKey, entry: &ObjectEntry) -> Option<VppAction> {
    match key {
        ObjectKey::Tunnel(tunnel) => tunnel::delete(store, tunnel, entry),
        ObjectKey::WireguardPeer(..) => wireguard::remove_peer(entry),
        ObjectKey::SnatExclusion(prefix) => Some(nat::include(*prefix)),
        ObjectKey::SnatInterface(index, table) => Some(nat::forget(*index, *table)),
        ObjectKey::IkeProfile(ends) => Some(ike::delete(ends)),
        ObjectKey::Localsid(_) | ObjectKey::SrPolicy(_) | ObjectKey::SrSteering(_) => srv6::delete(key),
        ObjectKey::OtherRoute(key) => Some(VppAction::DelOther { table: key.table, prefix: key.prefix }),
        ObjectKey::Table(table, family) => Some(VppAction::DelTable { table: *table, family: *family }),
        ObjectKey::Uplink
        | ObjectKey::FibSource
        | ObjectKey::DecapNext(_)
        | ObjectKey::Tag(_)
        | ObjectKey::Vrf(..)
        | ObjectKey::Unnumbered(_)
        | ObjectKey::Gso(_)
        | ObjectKey::Cnat(_)
        | ObjectKey::Mtu(_)
        | ObjectKey::Address(..)
        | ObjectKey::AdminUp(_)
        | ObjectKey::IkeSession(_)
        | ObjectKey::AsyncCrypto
        | ObjectKey::SnatAddresses
        | ObjectKey::SnatPolicy
        | ObjectKey::EncapSource => None,
    }
}

/// Whether an object that nobody wants stays for now, for another reason than being used; it is touched when that ends.
pub(super) fn stays(store: &Store, key: &ObjectKey, entry: &ObjectEntry) -> bool {
    if let ObjectKey::Table(table, family) = key {
        return store.has_routes(*table, *family);
    }
    let ObjectKey::OtherRoute(route) = key else { return false };
    // Traffic must not fall between it and ours. One that leads into no tunnel is another agent's if ours says the same, or if it
    // is the cluster's by its prefix or its gateways: then it is left over from before. Else it may be anybody's.
    match store.route(route) {
        Some(ours) if ours.desired != SetId::NONE => ours.desired != ours.actual,
        Some(_) | None => match entry.held() {
            Some(Spec::Leads(_)) => false,
            Some(Spec::Through(gateways)) => !store.territory.has(&route.prefix, gateways),
            Some(_) | None => true,
        },
    }
}
