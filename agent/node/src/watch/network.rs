//! Network objects → `Event::Network`.

use agent_core::event::{Change, Event};
use agent_core::model::{Network, NetworkName, Vni};

use crate::crd::{self, ObjectName};

pub(super) fn key(name: &ObjectName) -> NetworkName {
    name.as_str().into()
}

/// `None` for a number that doesn't exist, which decoding has refused.
pub(super) fn value(network: &crd::Network) -> Option<Network> {
    let crd::Network { vni, range, physical } = network;
    Some(Network { vni: Vni::new(*vni)?, range: *range, physical: physical.as_deref().map(Into::into) })
}

pub(super) fn event(change: Change<NetworkName, Network>) -> Event {
    Event::Network(change)
}
