//! A BGPPeer: one object that yields no, one or many sessions on this node.

use std::net::IpAddr;
use std::time::Duration;

use bgp_core::Asn;

use super::{FilterName, NodeName};

/// The parts of a BGPPeer that this agent reads. Texts that are empty count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerSpec {
    /// The node this peering belongs to; excludes `node_selector`.
    pub node: Option<NodeName>,
    /// The nodes this peering belongs to, as a selector. With neither: all nodes.
    pub node_selector: Option<String>,
    /// The remote end by address; excludes `peer_selector`.
    pub peer_ip: Option<PeerEndpoint>,
    /// The remote ends as nodes that a selector picks.
    pub peer_selector: Option<String>,
    /// Remote ends are workloads of this node.
    pub local_workload_selector: Option<String>,
    /// AS of the remote end; 0 counts as absent.
    pub asn: Option<Asn>,
    /// AS we present on this session instead of the node's; 0 counts as absent.
    pub local_asn: Option<Asn>,
    /// BGPFilters, in order.
    pub filters: Vec<FilterName>,
    /// A password is asked for. The Secret comes with its own watcher.
    pub password: bool,
    /// Our end of the connection.
    pub source_address: SourceAddress,
    /// Graceful-restart time.
    pub max_restart_time: Option<Duration>,
    /// KEEPALIVE interval; a third of the hold time where absent.
    pub keepalive_time: Option<Duration>,
    /// How often our AS may occur in a received path.
    pub allowed_local_asns: u32,
    /// GTSM hops; 0 is off.
    pub ttl_security: u8,
    /// Which next hop the remote end is told.
    pub next_hop: NextHopChoice,
    /// Gateway to the peer.
    pub reachable_by: Option<IpAddr>,
    /// No session is derived for the remote end from this object (`reversePeering: Manual`).
    pub manual_reverse: bool,
}

/// The `peerIP` of a BGPPeer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerEndpoint {
    /// Remote address.
    pub address: IpAddr,
    /// Remote port, where one was written.
    pub port: Option<PeerPort>,
}

/// A TCP port.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerPort(pub u16);

impl PeerPort {
    /// The port of BGP.
    pub const BGP: Self = Self(179);
}

/// `sourceAddress` of a BGPPeer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum SourceAddress {
    /// Our BGP address of the family.
    #[default]
    UseNodeIp,
    /// Whatever the kernel chooses.
    Any,
}

/// `nextHopMode` of a BGPPeer, with the deprecated `keepOriginalNextHop` folded in.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum NextHopChoice {
    /// BGP's default for the kind of session.
    #[default]
    Auto,
    /// Always our address.
    SelfAddress,
    /// Unchanged where the route has one.
    Keep,
    /// Unchanged on external sessions only (`keepOriginalNextHop`).
    KeepExternal,
}
