//! Which addresses of services a node announces, as a pure function of services, their endpoints and the cluster's
//! settings.
//!
//! Ranges are announced as a whole by every node that takes part, so that they attract traffic wherever it comes in.
//! Single addresses are announced where that says more than the range: for services whose traffic must not leave the node
//! that it came to, by the nodes that have a ready endpoint; and for addresses that no range covers as a whole. The
//! decision is taken per IP version: an address needs an endpoint of its own version.
//!
//! *Absent on purpose:* memory. Whoever announces holds the answer against the last one; two services may give one address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::{NodeName, ServiceRanges};

/// The label that takes a node out of all this; its value must be `true`.
pub const EXCLUDED_LABEL: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// A Service, as far as its announcement depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// `type`.
    pub kind: ServiceKind,
    /// `externalTrafficPolicy`.
    pub traffic: ExternalTraffic,
    /// `clusterIP` is empty or `None`.
    pub headless: bool,
    /// `clusterIPs`.
    pub cluster_ips: Vec<IpAddr>,
    /// `externalIPs`.
    pub external_ips: Vec<IpAddr>,
    /// `loadBalancerIP`.
    pub load_balancer_ip: Option<IpAddr>,
    /// `status.loadBalancer.ingress[].ip`.
    pub ingress: Vec<IpAddr>,
    /// `ipFamilies`.
    pub versions: Vec<IpVersion>,
}

/// `type` of a Service.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ServiceKind {
    /// `ClusterIP`.
    #[default]
    ClusterIp,
    /// `NodePort`.
    NodePort,
    /// `LoadBalancer`.
    LoadBalancer,
    /// `ExternalName`, or a type that nobody knows here.
    Other,
}

/// `externalTrafficPolicy` of a Service.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ExternalTraffic {
    /// Not set.
    #[default]
    Unset,
    /// `Cluster`.
    Cluster,
    /// `Local`.
    Local,
}

/// An IP version.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Endpoints of a service: those of one EndpointSlice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// `addressType`; absent for host names, which are no addresses.
    pub version: Option<IpVersion>,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The node that it is on.
    pub node: Option<NodeName>,
    /// `conditions.ready`; true where that isn't set.
    pub ready: bool,
}

/// A node and the settings that say what it announces.
#[derive(Copy, Clone, Debug)]
pub struct Announcer<'a> {
    /// The node.
    pub node: &'a NodeName,
    /// The node has [`EXCLUDED_LABEL`].
    pub excluded: bool,
    /// The ranges.
    pub ranges: &'a ServiceRanges,
}

impl IpVersion {
    /// That of an address.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

impl Announcer<'_> {
    /// The ranges that the node announces as a whole.
    #[must_use]
    pub fn aggregates(&self) -> BTreeSet<IpNet> {
        let ServiceRanges { cluster, external, load_balancer, single_load_balancers } = self.ranges;
        if self.excluded {
            return BTreeSet::new();
        }
        let whole = |range: &&IpNet| !is_single(range);
        let balancers = load_balancer.iter().filter(whole).filter(|_| !single_load_balancers);
        cluster.iter().chain(external.iter().filter(whole)).chain(balancers).map(IpNet::trunc).collect()
    }

    /// The single addresses of a service that the node announces.
    #[must_use]
    pub fn addresses<'s>(
        &self,
        service: &Service,
        slices: impl IntoIterator<Item = &'s EndpointSlice>,
    ) -> BTreeSet<IpNet> {
        let nothing = BTreeSet::new();
        if self.excluded || service.kind == ServiceKind::Other || service.headless {
            return nothing;
        }
        let versions = if self.named_alone(service) {
            vec![IpVersion::V4, IpVersion::V6]
        } else {
            let local = service.traffic == ExternalTraffic::Local;
            if !local && !self.ranges.single_load_balancers {
                // The ranges attract the traffic, and any node can pass it on.
                return nothing;
            }
            let serves =
                |endpoint: &Endpoint| endpoint.ready && (!local || endpoint.node.as_ref() == Some(self.node));
            let versions = slices.into_iter().filter(|slice| slice.endpoints.iter().any(serves));
            versions.filter_map(|slice| slice.version).filter(|v| service.versions.contains(v)).collect()
        };
        let ServiceRanges { cluster, external, load_balancer, single_load_balancers: _ } = self.ranges;
        let cluster_ips = service.cluster_ips.iter().filter(|_| !cluster.is_empty());
        let external_ips = service.external_ips.iter().filter(|address| inside(external, **address));
        let ingress = service.ingress.iter().filter(|address| inside(load_balancer, **address));
        cluster_ips
            .chain(external_ips)
            .chain(ingress)
            .filter(|address| versions.contains(&IpVersion::of(**address)))
            .map(|address| IpNet::from(*address))
            .collect()
    }

    /// An address of the service is named in the settings by itself, which no range stands for, and any node may pass its
    /// traffic on: every node announces it, whatever its endpoints do.
    fn named_alone(&self, service: &Service) -> bool {
        let named = |ranges: &[IpNet], address: &IpAddr| ranges.contains(&IpNet::from(*address));
        let balanced = service.load_balancer_ip.iter().chain(&service.ingress);
        service.traffic == ExternalTraffic::Cluster
            && (service.kind == ServiceKind::LoadBalancer
                && balanced.into_iter().any(|address| named(&self.ranges.load_balancer, address))
                || service.external_ips.iter().any(|address| named(&self.ranges.external, address)))
    }
}

fn is_single(range: &IpNet) -> bool {
    range.prefix_len() == range.max_prefix_len()
}

fn inside(ranges: &[IpNet], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

#[cfg(test)]
mod tests;
