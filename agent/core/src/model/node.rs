//! A node, as its Kubernetes or Calico object describes it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use bgp_core::{Asn, Family};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::{PerFamily, PublicKey};

/// A node of the cluster, ours included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// BGP IPv4 address with the length of its subnet, host bits kept. Absent: no IPv4 sessions.
    pub ipv4: Option<Ipv4Net>,
    /// BGP IPv6 address with the length of its subnet, host bits kept. Absent: no IPv6 sessions.
    pub ipv6: Option<Ipv6Net>,
    /// The node's own AS number; the cluster's default where absent.
    pub asn: Option<Asn>,
    /// Route reflector cluster id; a node that has one takes no part in the mesh.
    pub cluster_id: Option<Ipv4Addr>,
    /// The keys by which traffic to its addresses is encrypted (WireGuard), where it has published any.
    pub wireguard: PerFamily<Option<PublicKey>>,
    /// Labels, which selectors see.
    pub labels: BTreeMap<String, String>,
}

impl Node {
    /// The BGP address of a family.
    #[must_use]
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        self.subnet(family).map(|net| net.addr())
    }

    /// The BGP address of a family with its subnet's length; CrossSubnet decides by it.
    #[must_use]
    pub fn subnet(&self, family: Family) -> Option<IpNet> {
        if family.is_ipv4() { self.ipv4.map(IpNet::V4) } else { self.ipv6.map(IpNet::V6) }
    }

    /// Both addresses that exist.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.ipv4.map(|net| IpAddr::V4(net.addr()));
        v4.into_iter().chain(self.ipv6.map(|net| IpAddr::V6(net.addr())))
    }
}

/// The unicast family of an address.
#[must_use]
pub(crate) const fn family_of(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::Ipv4Unicast,
        IpAddr::V6(_) => Family::Ipv6Unicast,
    }
}
