//! BGPConfiguration: the cluster's settings, and the few that one node may override.

use std::sync::Arc;
use std::time::Duration;

use bgp_core::{Asn, Family};
use ipnet::IpNet;

use super::{AnyCommunity, NodeName, PeerPort, RoutePriority};

/// The AS of a cluster that names none.
pub const DEFAULT_ASN: Asn = Asn(64512);

/// Which BGPConfiguration an object is. Other names mean nothing; the watcher reports them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BgpConfigName {
    /// `default`: the whole cluster.
    Default,
    /// `node.<name>`: one node.
    Node(NodeName),
}

impl BgpConfigName {
    /// Reads an object's name; `None` where it is neither `default` nor `node.<name>`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name.strip_prefix("node.") {
            Some("") => None,
            Some(node) => Some(Self::Node(NodeName::from(node))),
            None => (name == "default").then_some(Self::Default),
        }
    }

    /// The object's name.
    #[must_use]
    pub fn object_name(&self) -> Arc<str> {
        match self {
            Self::Default => "default".into(),
            Self::Node(node) => format!("node.{node}").into(),
        }
    }
}

/// The parts of a BGPConfiguration that this agent reads. `None` means that the field is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BgpConfig {
    /// Sessions between all nodes; true where absent. `default` only.
    pub mesh: Option<bool>,
    /// AS of nodes that have none of their own. `default` only.
    pub asn: Option<Asn>,
    /// Port that nodes listen on.
    pub listen_port: Option<PeerPort>,
    /// `bindMode: NodeIP`: nodes listen on their BGP addresses only. `default` only.
    pub bind_node_ip: bool,
    /// Sessions of the mesh ask for a password. `default` only.
    pub mesh_password: bool,
    /// Graceful-restart time of the sessions of the mesh; 120 s where absent. `default` only.
    pub mesh_max_restart_time: Option<Duration>,
    /// Which communities routes get on their way out, by their prefix. A node's own list replaces that of `default`.
    pub prefix_advertisements: Option<Vec<PrefixAdvertisement>>,
    /// The priority of ordinary IPv4 routes. `default` only.
    pub ipv4_normal_priority: Option<RoutePriority>,
    /// The priority of ordinary IPv6 routes. `default` only.
    pub ipv6_normal_priority: Option<RoutePriority>,
    /// Who programs routes between nodes where others share the node. `default` only.
    pub program_cluster_routes: ProgramClusterRoutes,
    /// Addresses of services. `default` only.
    pub services: ServiceRanges,
}

impl BgpConfig {
    /// The priority of ordinary routes of a family.
    #[must_use]
    pub fn normal_priority(&self, family: Family) -> RoutePriority {
        let set = if family.is_ipv4() { self.ipv4_normal_priority } else { self.ipv6_normal_priority };
        set.unwrap_or(RoutePriority::NORMAL)
    }
}

/// One entry of `prefixAdvertisements`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixAdvertisement {
    /// The routes inside, host bits cleared.
    pub cidr: IpNet,
    /// What they get; names are resolved.
    pub communities: Vec<AnyCommunity>,
}

/// `programClusterRoutes`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ProgramClusterRoutes {
    /// Of pools with IP-in-IP and without encapsulation.
    Enabled,
    /// None.
    Disabled,
    /// Of pools with IP-in-IP.
    IpipOnly,
    /// Of pools without encapsulation.
    #[default]
    NoEncapOnly,
}

impl ProgramClusterRoutes {
    /// Routes of pools with IP-in-IP are programmed by the speaker, so those it finds on `tunl0` are its own.
    #[must_use]
    pub const fn ipip(self) -> bool {
        matches!(self, Self::Enabled | Self::IpipOnly)
    }
}

/// Addresses of services, as they are configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceRanges {
    /// `serviceClusterIPs`.
    pub cluster: Vec<IpNet>,
    /// `serviceExternalIPs`.
    pub external: Vec<IpNet>,
    /// `serviceLoadBalancerIPs`.
    pub load_balancer: Vec<IpNet>,
    /// `serviceLoadBalancerAggregation: Disabled`: ranges of load balancers are not announced as a whole.
    pub single_load_balancers: bool,
}

impl ServiceRanges {
    /// The ranges of all kinds.
    pub fn all(&self) -> impl Iterator<Item = IpNet> {
        self.cluster.iter().chain(&self.external).chain(&self.load_balancer).copied()
    }
}
