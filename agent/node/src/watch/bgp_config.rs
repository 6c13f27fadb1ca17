//! BGPConfiguration objects → `Event::BgpConfig`.

use agent_core::event::{Change, Event};
use agent_core::model::{
    self, BgpConfigName, PeerPort, PrefixAdvertisement, ProgramClusterRoutes, ServiceRanges,
};
use bgp_core::Asn;

use crate::crd::{BgpConfiguration, ObjectName, PROGRAM};

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
        prefix_advertisements: config.prefix_advertisements.as_ref().map(|all| {
            let entry = |(cidr, communities): &(_, Vec<_>)| PrefixAdvertisement {
                cidr: *cidr,
                communities: communities.clone(),
            };
            all.iter().map(entry).collect()
        }),
        ipv4_normal_priority: config.ipv4_normal_priority,
        ipv6_normal_priority: config.ipv6_normal_priority,
        program_cluster_routes: match config.program_cluster_routes.and_then(|place| PROGRAM.get(place)) {
            Some(&"Enabled") => ProgramClusterRoutes::Enabled,
            Some(&"Disabled") => ProgramClusterRoutes::Disabled,
            Some(&"EnabledIPIPOnly") => ProgramClusterRoutes::IpipOnly,
            Some(_) | None => ProgramClusterRoutes::NoEncapOnly,
        },
        services: ServiceRanges {
            cluster: config.service_cluster_ips.clone(),
            external: config.service_external_ips.clone(),
            load_balancer: config.service_load_balancer_ips.clone(),
            single_load_balancers: config.single_load_balancers,
        },
    }
}

pub(super) fn event(change: Change<BgpConfigName, model::BgpConfig>) -> Event {
    Event::BgpConfig(change)
}
