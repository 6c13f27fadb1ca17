//! IKEv2.

use std::net::IpAddr;

use super::super::operation::{IkeAction, IkeRequest, VppAction};
use super::tunnel::index_of;
use crate::desired::{IkeHeld, IpipKey, ObjectEntry, ObjectKey, Spec, Store, Tunnel};

/// A profile as VPP is to be told it: with the interfaces of now.
pub(super) fn profile(store: &Store, ends: &IpipKey, entry: &ObjectEntry) -> Result<Spec, ObjectKey> {
    let Some(Spec::IkeProfile(profile)) = &entry.desired else { return Err(ObjectKey::IkeProfile(*ends)) };
    let uplink = || store.interface(&ObjectKey::Uplink).ok_or(ObjectKey::Uplink);
    Ok(Spec::IkeHeld(IkeHeld {
        ends: *ends,
        index: index_of(store, Tunnel::Ipip(*ends))?,
        psk: Some(profile.psk.clone()),
        begins: if profile.initiates { Some(uplink()?) } else { None },
        whole: true,
    }))
}

/// Makes a profile, or an association.
pub(super) fn create(store: &Store, key: &ObjectKey, spec: Option<&Spec>) -> Result<VppAction, ObjectKey> {
    Ok(VppAction::Ike(match (key, spec) {
        (ObjectKey::IkeProfile(_), Some(Spec::IkeHeld(held))) => {
            IkeAction::PutProfile(Box::new(request(held).ok_or(*key)?))
        }
        (ObjectKey::IkeSession(ends), _) => {
            let of = ObjectKey::IkeProfile(*ends);
            let Spec::IkeHeld(held) = profile(store, ends, store.objects.get(&of).ok_or(of)?)? else {
                return Err(of);
            };
            // Nothing can be done but wait until the other one begins.
            if held.begins.is_none() {
                return Err(*key);
            }
            let renew = !store.fresh.contains(ends);
            IkeAction::Initiate { profile: Box::new(request(&held).ok_or(of)?), renew }
        }
        (ObjectKey::AsyncCrypto, Some(Spec::CryptoThreads(threads))) => {
            IkeAction::AsyncCrypto { threads: *threads }
        }
        _ => return Err(*key),
    }))
}

fn request(held: &IkeHeld) -> Option<IkeRequest> {
    let (IpAddr::V4(local), IpAddr::V4(remote)) = (held.ends.local, held.ends.remote) else { return None };
    Some(IkeRequest { local, remote, index: held.index, psk: held.psk.clone()?, begins: held.begins })
}

/// Deletes a profile.
pub(super) const fn delete(ends: &IpipKey) -> VppAction {
    VppAction::Ike(IkeAction::DeleteProfile { ends: *ends })
}
