//! Source NAT.

use ipnet::IpNet;

use super::super::operation::{NatAction, VppAction};
use crate::desired::{ObjectEntry, ObjectKey, SnatTable, Spec};
use crate::event::SwIfIndex;

/// The addresses of source NAT, as they will be: those that are not wanted stay.
pub(super) fn addresses(entry: &ObjectEntry) -> Result<Spec, ObjectKey> {
    match (&entry.desired, entry.held()) {
        (Some(Spec::SnatAddresses(wanted)), Some(Spec::SnatAddresses(held))) => {
            Ok(Spec::SnatAddresses(wanted.over(*held)))
        }
        (Some(Spec::SnatAddresses(wanted)), _) => Ok(Spec::SnatAddresses(*wanted)),
        _ => Err(ObjectKey::SnatAddresses),
    }
}

/// Makes an object, or gives it this value.
pub(super) fn create(key: &ObjectKey, spec: Option<&Spec>) -> Result<VppAction, ObjectKey> {
    Ok(VppAction::Nat(match (key, spec) {
        (ObjectKey::SnatAddresses, Some(Spec::SnatAddresses(addresses))) => {
            NatAction::SetAddresses(*addresses)
        }
        (ObjectKey::SnatPolicy, _) => NatAction::SetPolicy,
        (ObjectKey::SnatExclusion(prefix), _) => NatAction::Exclude { prefix: *prefix, add: true },
        (ObjectKey::SnatInterface(index, table), _) => {
            NatAction::Interface { index: *index, table: *table, add: true }
        }
        _ => return Err(*key),
    }))
}

/// Deletes an exclusion.
pub(super) const fn include(prefix: IpNet) -> VppAction {
    VppAction::Nat(NatAction::Exclude { prefix, add: false })
}

/// Takes back what an interface is.
pub(super) const fn forget(index: SwIfIndex, table: SnatTable) -> VppAction {
    VppAction::Nat(NatAction::Interface { index, table, add: false })
}
