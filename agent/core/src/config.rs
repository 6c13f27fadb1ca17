//! Settings of the agent, parsed once by the embedder and never changed.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bgp_core::{Family, FamilySet};
use ipnet::{IpNet, Ipv6Net};

use crate::model::{KeyPair, NodeName, PerFamily, Psk, Sids};

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node.
    pub node: NodeName,
    /// VPP, or `None` to speak BGP only.
    pub vpp: Option<VppConfig>,
    /// Which IP versions BGP sessions use.
    pub mode: BgpMode,
    /// Names by which filters may call the interface that leads to other nodes; none where they are not known.
    pub uplink_names: Vec<Arc<str>>,
    /// Ranges of services, besides those of the cluster's settings.
    pub service_prefixes: Vec<IpNet>,
    /// What an earlier run noted of VPP, as [`Engine::remembered`](crate::Engine::remembered) says.
    pub remembered: Vec<IpNet>,
    /// IPsec, where it is on.
    pub ipsec: Option<IpsecConfig>,
    /// What the priorities of own routes become on the wire.
    pub priorities: RoutePriorities,
    /// Our keys for WireGuard, by the IP version of the traffic between nodes. Where there is none it can't be used.
    pub wireguard_keys: PerFamily<Option<KeyPair>>,
    /// What becomes of pods' traffic where WireGuard is on.
    pub encryption: Encryption,
    /// There are networks beside the default one.
    pub multinet: bool,
    /// SRv6; without it nobody is told of SIDs, and policies are not heard.
    pub srv6: Option<Srv6Config>,
    /// Where SIDs came from, said while SRv6 is off: what VPP holds from when it was on goes.
    pub former_sids: Option<Srv6Pools>,
    /// BGP Identifier, where it shall not be the node's IPv4 address.
    pub router_id: Option<Ipv4Addr>,
    /// Node that has no IPv4 address and no explicit identifier: this one, derived from its name by the embedder.
    pub fallback_router_id: Ipv4Addr,
}

impl Config {
    /// Settings with their defaults for a node with VPP.
    #[must_use]
    pub fn new(node: NodeName) -> Self {
        Self {
            node,
            vpp: Some(VppConfig::default()),
            mode: BgpMode::DualStack,
            uplink_names: Vec::new(),
            service_prefixes: Vec::new(),
            remembered: Vec::new(),
            ipsec: None,
            priorities: RoutePriorities::Classic,
            encryption: Encryption::default(),
            wireguard_keys: PerFamily::default(),
            multinet: false,
            srv6: None,
            former_sids: None,
            router_id: None,
            fallback_router_id: Ipv4Addr::new(192, 0, 0, 1),
        }
    }
}

impl Config {
    /// The families whose best paths the engine wants to hear of.
    #[must_use]
    pub fn families(&self) -> FamilySet {
        let mut families = FamilySet::UNICAST;
        if self.srv6.is_some() {
            families.insert(Family::Ipv6SrPolicy);
        }
        if self.multinet {
            families.insert(Family::Ipv4Vpn);
            families.insert(Family::Ipv6Vpn);
        }
        families
    }
}

/// Where SIDs come from: what is in these in VPP is ours.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Srv6Pools {
    /// Local SIDs.
    pub localsids: Ipv6Net,
    /// Binding SIDs.
    pub policies: Ipv6Net,
}

/// Settings about SRv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Srv6Config {
    /// Where the nodes' local SIDs come from. Its prefixes are routed as they are, since encapsulated packets go there; what
    /// is in it in VPP is ours.
    pub localsid_pool: Ipv6Net,
    /// Where binding SIDs come from. Its prefixes are never installed: nothing is sent there. What is in it in VPP is ours.
    pub policy_pool: Ipv6Net,
    /// The SIDs of this node, where they are settings. Otherwise [`Event::Sids`](crate::Event::Sids) says them.
    pub sids: Option<Sids>,
}

/// Settings of IPsec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IpsecConfig {
    /// The key that all nodes share. Nothing is carried without one.
    pub psk: Option<Psk>,
    /// So many addresses each node has besides its own, with the next numbers in the third octet.
    pub extra_addresses: u8,
    /// There are tunnels from each address to each, rather than to its counterpart only.
    pub cross_tunnels: bool,
    /// So many of VPP's workers do nothing but encrypt; 0: each encrypts what it forwards.
    pub async_threads: u32,
}

/// What becomes of pods' traffic where WireGuard is on.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Encryption {
    /// Which traffic it carries.
    pub what: Encrypted,
    /// What it should carry and cannot is dropped, rather than sent in the clear.
    pub or_drop: bool,
}

/// Which traffic WireGuard carries, to nodes that have a key.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Encrypted {
    /// What would be encapsulated otherwise, as Calico/VPP's agents do.
    #[default]
    Encapsulated,
    /// All that goes to addresses of pools, whatever their encapsulation. Agents that don't do the same drop it.
    Pods,
}

/// Settings about VPP.
#[derive(Clone, Debug)]
pub struct VppConfig {
    /// Name of the uplink in VPP; found by the node's address where absent.
    pub uplink: Option<Arc<str>>,
    /// How long VPP may be away before own prefixes are withdrawn.
    pub loss_grace: Duration,
    /// How often all that VPP holds is compared with what is wanted; never where `None`.
    pub audit: Option<Duration>,
    /// Most operations in flight.
    pub window: usize,
    /// Take over what another agent left: its tunnels, and its routes once ours are there and every source has spoken.
    pub adopt: bool,
}

impl Default for VppConfig {
    fn default() -> Self {
        Self {
            uplink: None,
            loss_grace: Duration::from_secs(5),
            audit: Some(Duration::from_secs(300)),
            window: 128,
            adopt: false,
        }
    }
}

/// What the priorities of own routes become on the wire.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum RoutePriorities {
    /// Nothing: LOCAL_PREF 100.
    #[default]
    Classic,
    /// LOCAL_PREF 2147483647 less the priority, as Calico's BIRD sends.
    Calico,
}

/// Which IP versions BGP sessions use.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum BgpMode {
    /// Both, as far as the node has addresses.
    #[default]
    DualStack,
    /// IPv4 only.
    V4Only,
    /// IPv6 only.
    V6Only,
}
