//! BGPConfiguration objects → `Event::BgpConfig`.

use agent_core::event::{Change, Event};
use agent_core::model::{self, BgpConfigName, PeerPort};
use bgp_core::Asn;

use crate::crd::{BgpConfiguration, ObjectName};

/// `None` for names that mean nothing, which reading the object has reported.
pub(super) fn key(name: &ObjectName) -> Option<BgpConfigName> {
    BgpConfigName::parse(name.as_str())
}

pub(super) fn value(config: &BgpConfiguration) -> model::BgpConfig {
    model::BgpConfig {
        mesh: config.mesh,
        asn: config.as_number.map(Asn),
        listen_port: config.listen_port.map(PeerPort),
        bind_node_ip: config.bind_node_ip,
        mesh_password: config.mesh_password.is_some(),
        mesh_max_restart_time: config.mesh_max_restart_time,
    }
}

pub(super) fn event(change: Change<BgpConfigName, model::BgpConfig>) -> Event {
    Event::BgpConfig(change)
}
