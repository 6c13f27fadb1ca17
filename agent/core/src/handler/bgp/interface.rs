//! Through which interface a route leaves, by the names that Calico's nodes have for it, as a condition on the route.
//!
//! A learned route leaves through the tunnel device of the pool that holds it, where the pool's traffic to this next hop
//! is encapsulated, and through the uplink otherwise. What this node originates has no interface: its blocks lead nowhere
//! by themselves. So nothing needs to be looked up while routes pass.

use std::sync::Arc;

use bgp_core::Family;
use bgp_core::policy::{Condition as When, Learned, PrefixRange};
use ipnet::IpNet;

use super::filter::not;
use crate::model::{Encapsulation, Glob, Node, Pool};
use crate::plan::family;

const IPIP: &str = "tunl0";
const VXLAN: &str = "vxlan.calico";
const WIREGUARD: &str = "wireguard.cali";
/// How the names of workloads' interfaces begin.
const WORKLOAD: &str = "cali";

/// What is known of this node's interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interfaces {
    /// Names that the uplink goes by; none where it has not been told.
    uplink: Vec<Arc<str>>,
    /// Which routes go through which tunnel device.
    tunnels: Vec<Tunnel>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tunnel {
    device: &'static str,
    /// The pool.
    cidr: IpNet,
    /// Next hops in here are reached without the tunnel.
    beside: Option<IpNet>,
}

impl Interfaces {
    /// The interfaces of a node whose uplink has these names, in a cluster with these pools.
    pub(super) fn new<'a>(
        uplink: &[Arc<str>],
        node: Option<&Node>,
        pools: impl IntoIterator<Item = &'a Pool>,
    ) -> Self {
        let tunnel = |pool: &Pool| {
            let (device, mode) = match (pool.ipip, pool.vxlan) {
                (Encapsulation::Never, Encapsulation::Never) => return None,
                (Encapsulation::Never, mode) => (VXLAN, mode),
                (mode, _) => (IPIP, mode),
            };
            let subnet = node.and_then(|node| node.subnet(family(&pool.cidr))).map(|subnet| subnet.trunc());
            let beside = subnet.filter(|_| mode == Encapsulation::CrossSubnet);
            Some(Tunnel { device, cidr: pool.cidr, beside })
        };
        Self { uplink: uplink.to_vec(), tunnels: pools.into_iter().filter_map(tunnel).collect() }
    }

    /// That a route of a family leaves through an interface with such a name; `None` where no route does.
    pub(super) fn leaves_by(&self, glob: &Glob, of: Family) -> Option<When> {
        let tunnels = || self.tunnels.iter().filter(|tunnel| family(&tunnel.cidr) == of);
        let mut ways: Vec<When> =
            tunnels().filter(|tunnel| glob.matches(tunnel.device)).map(Tunnel::taken).collect();
        if self.uplink.iter().any(|name| glob.matches(name)) || any(glob) {
            let all: Vec<When> = tunnels().map(|tunnel| not(tunnel.taken())).collect();
            ways.push(When::All(all));
        }
        let learned = not(When::Learned(Learned::Local));
        (!ways.is_empty()).then(|| When::All(vec![learned, When::Any(ways)]))
    }

    /// Whether this may mean the uplink, whose name nobody has told.
    pub(super) fn unknown(&self, glob: &Glob) -> bool {
        let known = [IPIP, VXLAN, WIREGUARD].into_iter().any(|name| glob.matches(name));
        self.uplink.is_empty() && !known && !glob.as_str().starts_with(WORKLOAD)
    }
}

/// A pattern that every name fits.
fn any(glob: &Glob) -> bool {
    glob.as_str().bytes().all(|b| b == b'*')
}

impl Tunnel {
    /// That a route goes through the tunnel.
    fn taken(&self) -> When {
        let inside = When::Prefix(vec![PrefixRange::or_longer(self.cidr)]);
        match self.beside {
            None => inside,
            Some(subnet) => When::All(vec![inside, not(When::NextHop(vec![subnet]))]),
        }
    }
}
