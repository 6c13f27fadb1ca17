//! What can be wanted of a target, by key. Objects refer to one another by key, never by an index that a target gave
//! out: the index is looked up when the operation leaves.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_core::command::{Origination, PeerConfig};
use bgp_core::peer_key::PeerKey;
use bgp_core::policy::{PolicyDef, PolicyName, PrefixRange, SetName};
use bgp_core::{Asn, Family, RouterId};
use ipnet::IpNet;

use crate::model::{ObjectRef, RouteKey, TableId};

/// An IPIP tunnel, by its ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpipKey {
    /// Our address.
    pub local: IpAddr,
    /// The other node's address, of the same IP version.
    pub remote: IpAddr,
}

impl fmt::Display for IpipKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.local, self.remote)
    }
}

/// An object of VPP other than a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKey {
    /// The interface with the node's address. Only ever found, never made.
    Uplink,
    /// Our FIB source, which marks routes as ours. Never deleted.
    FibSource,
    /// A table of one family. Made where it is missing, never deleted: it belongs to VPP's manager.
    Table(TableId, Family),
    /// An IPIP tunnel.
    Ipip(IpipKey),
    /// The tag that marks a tunnel as ours. Goes with the tunnel, as the next three do.
    Tag(IpipKey),
    /// The tunnel borrows the uplink's addresses.
    Unnumbered(IpipKey),
    /// Generic segmentation offload on the tunnel.
    Gso(IpipKey),
    /// The tunnel is administratively up.
    AdminUp(IpipKey),
}

impl ObjectKey {
    /// The kind, as a bounded label.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Uplink => "uplink",
            Self::FibSource => "fib-source",
            Self::Table(..) => "table",
            Self::Ipip(_) => "ipip-tunnel",
            Self::Tag(_) => "tag",
            Self::Unnumbered(_) => "unnumbered",
            Self::Gso(_) => "gso",
            Self::AdminUp(_) => "admin-up",
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uplink => f.write_str("uplink"),
            Self::FibSource => f.write_str("fib source"),
            Self::Table(id, family) => write!(f, "table {id} {family}"),
            Self::Ipip(key) => write!(f, "ipip tunnel {key}"),
            Self::Tag(key) => write!(f, "tag of ipip tunnel {key}"),
            Self::Unnumbered(key) => write!(f, "addresses of ipip tunnel {key}"),
            Self::Gso(key) => write!(f, "gso of ipip tunnel {key}"),
            Self::AdminUp(key) => write!(f, "admin state of ipip tunnel {key}"),
        }
    }
}

/// How the uplink is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// By name.
    pub name: Option<Arc<str>>,
    /// Otherwise by one of these addresses.
    pub addresses: Vec<IpAddr>,
}

/// One path of a desired route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Where it leads.
    pub to: Target,
    /// Its share of the traffic; at least 1.
    pub weight: u8,
}

/// Where a desired path leads.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Through a gateway, resolved in the main table.
    Gateway(IpAddr),
    /// Into an IPIP tunnel.
    Ipip(IpipKey),
    /// Nowhere.
    Drop,
}

/// Who wants an object. Where two owners want a route to the same prefix, the smaller one has it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// This node itself: drop routes of its own blocks.
    Host,
    /// A session, whose neighbour is reached through a gateway of its own.
    Session,
    /// The way to a set of next hops, shared by all destinations behind it.
    Way(WayId),
    /// A destination learnt by BGP.
    Destination,
}

/// Number of a way: a set of next hops under one rule of encapsulation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WayId(pub u32);

/// Any object of VPP.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VppKey {
    /// Anything but a route.
    Object(ObjectKey),
    /// A route.
    Route(RouteKey),
}

impl fmt::Display for VppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(key) => key.fmt(f),
            Self::Route(key) => write!(f, "route {key}"),
        }
    }
}

/// An object of the speaker, by key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BgpKey {
    /// AS number and BGP Identifier.
    Identity,
    /// The cluster that this node reflects routes for.
    Cluster,
    /// A prefix set.
    PrefixSet(SetName),
    /// A route policy.
    Policy(PolicyName),
    /// An originated prefix.
    Origination(IpNet),
    /// All originations of the start are in.
    Loaded,
    /// A neighbour.
    Peer(PeerKey),
}

impl fmt::Display for BgpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Cluster => f.write_str("cluster id"),
            Self::PrefixSet(name) => write!(f, "prefix set {name}"),
            Self::Policy(name) => write!(f, "policy {name}"),
            Self::Origination(prefix) => write!(f, "origination {prefix}"),
            Self::Loaded => f.write_str("end of loading"),
            Self::Peer(key) => write!(f, "peer {key}"),
        }
    }
}

/// An object of the speaker with its value.
#[derive(Clone, Debug, PartialEq)]
pub enum BgpObject {
    /// AS number and BGP Identifier.
    Identity {
        /// AS of this node.
        asn: Asn,
        /// BGP Identifier.
        router_id: RouterId,
    },
    /// The cluster that this node reflects routes for; none where it doesn't.
    Cluster(Option<RouterId>),
    /// A prefix set and its members.
    PrefixSet(SetName, Vec<PrefixRange>),
    /// A route policy.
    Policy(PolicyName, PolicyDef),
    /// An originated prefix.
    Origination(IpNet, Origination),
    /// All originations of the start are in.
    Loaded,
    /// A neighbour, and the Kubernetes object that asks for it.
    Peer(PeerKey, Box<PeerConfig>, ObjectRef),
}

impl BgpObject {
    /// The key.
    #[must_use]
    pub fn key(&self) -> BgpKey {
        match self {
            Self::Identity { .. } => BgpKey::Identity,
            Self::Cluster(_) => BgpKey::Cluster,
            Self::PrefixSet(name, _) => BgpKey::PrefixSet(name.clone()),
            Self::Policy(name, _) => BgpKey::Policy(name.clone()),
            Self::Origination(prefix, _) => BgpKey::Origination(*prefix),
            Self::Loaded => BgpKey::Loaded,
            Self::Peer(key, ..) => BgpKey::Peer(*key),
        }
    }
}
