//! Where the speaker listens: on the port of the BGPConfiguration of this node, else of the default one, else 179; at
//! every address, or with `bindMode: NodeIP` at the node's own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bgp_core::Family;

use super::Cluster;

pub(super) fn addresses(cluster: &Cluster) -> Vec<SocketAddr> {
    let node_ip = cluster.default_config().is_some_and(|config| config.bind_node_ip);
    if node_ip && cluster.own().is_none() {
        // Our addresses are not known yet; no session could come up anyway.
        return Vec::new();
    }
    let port = cluster.port_of(&cluster.me).0;
    let families = Family::UNICAST.into_iter().filter(|family| cluster.enabled(*family));
    let address = |family: Family| {
        // A family without an address keeps the wildcard, as Calico has it.
        let own = if node_ip { cluster.own_address(family) } else { None };
        own.unwrap_or(if family.is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        })
    };
    families.map(|family| SocketAddr::new(address(family), port)).collect()
}
