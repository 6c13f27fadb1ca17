//! IPPool objects → `Event::Pool`.

use agent_core::event::{Change, Event};
use agent_core::model::{Encapsulation, Pool, PoolName};

use crate::crd::{EncapMode, IpPool, ObjectName};

pub(super) fn key(name: &ObjectName) -> PoolName {
    name.as_str().into()
}

pub(super) fn value(pool: &IpPool) -> Pool {
    let mode = |mode| match mode {
        EncapMode::Never => Encapsulation::Never,
        EncapMode::Always => Encapsulation::Always,
        EncapMode::CrossSubnet => Encapsulation::CrossSubnet,
    };
    Pool {
        cidr: pool.cidr,
        ipip: mode(pool.ipip),
        vxlan: mode(pool.vxlan),
        nat_outgoing: pool.nat_outgoing,
        disable_bgp_export: pool.disable_bgp_export,
    }
}

pub(super) fn event(change: Change<PoolName, Pool>) -> Event {
    Event::Pool(change)
}
