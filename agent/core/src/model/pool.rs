//! An IPPool: which addresses pods get, and how their traffic travels between nodes.

use ipnet::IpNet;

/// The parts of an IPPool that routing depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its addresses, host bits cleared.
    pub cidr: IpNet,
    /// IP-in-IP between nodes.
    pub ipip: Encapsulation,
    /// VXLAN between nodes.
    pub vxlan: Encapsulation,
    /// Pods' traffic to addresses outside every pool leaves with the node's address.
    pub nat_outgoing: bool,
    /// Nothing inside is announced to any peer.
    pub disable_bgp_export: bool,
}

impl Pool {
    /// A pool without encapsulation.
    #[must_use]
    pub fn new(cidr: IpNet) -> Self {
        Self {
            cidr: cidr.trunc(),
            ipip: Encapsulation::Never,
            vxlan: Encapsulation::Never,
            nat_outgoing: false,
            disable_bgp_export: false,
        }
    }
}

/// When an encapsulation is used.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encapsulation {
    /// Never.
    #[default]
    Never,
    /// For every destination of the pool.
    Always,
    /// Where the next hop is outside our node's own subnet.
    CrossSubnet,
}
