//! What can be wanted of VPP, by key. Objects refer to one another by key, never by an index that a target gave
//! out: the index is looked up when the operation leaves.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use bgp_core::Family;
use ipnet::IpNet;

use super::{IpipKey, SnatTable, Tunnel, WireguardKey};
use crate::event::SwIfIndex;
use crate::model::{PublicKey, RouteKey, TableId};

/// An object of VPP other than a route. `plan/order.rs` has the rank of each and what it needs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKey {
    /// The interface with the node's address. Only ever found, never made.
    Uplink,
    /// Our FIB source, which marks routes as ours. Never deleted.
    FibSource,
    /// A table of one family, made where it is missing. A network's goes with it; all others belong to VPP's manager and stay.
    Table(TableId, Family),
    /// A route that another agent put there under VPP's own source. Never wanted; taken away once ours is in its place.
    OtherRoute(RouteKey),
    /// The place in VPP's graph where packets of one family go when they come out of a VXLAN tunnel. Never deleted.
    DecapNext(Family),
    /// A tunnel, or another interface of ours.
    Tunnel(Tunnel),
    /// The tag that marks a tunnel as ours. Goes with the tunnel, as the other settings below do.
    Tag(Tunnel),
    /// The table of a family that packets from the tunnel are looked up in. Value: [`Spec::Table`](super::Spec::Table).
    Vrf(Tunnel, Family),
    /// The tunnel borrows the uplink's addresses.
    Unnumbered(Tunnel),
    /// The tunnel has an address of its own in a family, for nothing but to have VPP take packets out of it: where it can't borrow
    /// the uplink's, which VPP lets it do in the uplink's table only.
    Address(Tunnel, Family),
    /// Generic segmentation offload on the tunnel.
    Gso(Tunnel),
    /// The tunnel's packets pass source NAT and service translation.
    Cnat(Tunnel),
    /// The largest packet that the tunnel takes. Value: [`Spec::MtuRule`](super::Spec::MtuRule).
    Mtu(Tunnel),
    /// The tunnel is administratively up.
    AdminUp(Tunnel),
    /// A peer of a WireGuard interface, by what VPP tells it from others by. Value:
    /// [`Spec::WireguardPeer`](super::Spec::WireguardPeer).
    WireguardPeer(WireguardKey, PublicKey),
    /// What IKEv2 has to know to protect an IPIP tunnel. Value: [`Spec::IkeProfile`](super::Spec::IkeProfile).
    IkeProfile(IpipKey),
    /// There is an association that protects the tunnel, for which VPP has set it up. Nobody can make it so alone: one end
    /// begins, and does so again now and then until the other one takes part.
    IkeSession(IpipKey),
    /// Workers that do nothing but encrypt. Value: [`Spec::CryptoThreads`](super::Spec::CryptoThreads).
    AsyncCrypto,
    /// The addresses that sources become by source NAT; never taken back. Value:
    /// [`Spec::SnatAddresses`](super::Spec::SnatAddresses).
    SnatAddresses,
    /// A destination for which sources are left alone.
    SnatExclusion(IpNet),
    /// What an interface that VPP's manager made is to source NAT. Its index is the manager's word, not ours to keep.
    SnatInterface(SwIfIndex, SnatTable),
    /// The rules for Kubernetes decide what is translated; never taken back.
    SnatPolicy,
    /// The source of what is encapsulated by SRv6. Value: [`Spec::EncapSource`](super::Spec::EncapSource). Never deleted.
    EncapSource,
    /// A SID of this node. Value: [`Spec::Localsid`](super::Spec::Localsid).
    Localsid(Ipv6Addr),
    /// An SR policy, by its binding SID. Value: [`Spec::SrPolicy`](super::Spec::SrPolicy).
    SrPolicy(Ipv6Addr),
    /// A prefix of a table whose packets an SR policy gets; in the place of a route, and before every route. Value:
    /// [`Spec::SrSteering`](super::Spec::SrSteering).
    SrSteering(RouteKey),
}

impl ObjectKey {
    /// The kind, as a bounded label.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Uplink => "uplink",
            Self::FibSource => "fib-source",
            Self::Table(..) => "table",
            Self::OtherRoute(_) => "other-route",
            Self::DecapNext(_) => "decap-next",
            Self::Tunnel(tunnel) => tunnel.kind(),
            Self::Tag(_) => "tag",
            Self::Vrf(..) => "vrf",
            Self::Unnumbered(_) => "unnumbered",
            Self::Gso(_) => "gso",
            Self::Cnat(_) => "cnat",
            Self::Mtu(_) => "mtu",
            Self::AdminUp(_) => "admin-up",
            Self::Address(..) => "address",
            Self::WireguardPeer(..) => "wireguard-peer",
            Self::IkeProfile(_) => "ike-profile",
            Self::IkeSession(_) => "ike-session",
            Self::AsyncCrypto => "async-crypto",
            Self::SnatAddresses => "snat-addresses",
            Self::SnatExclusion(_) => "snat-exclusion",
            Self::SnatInterface(..) => "snat-interface",
            Self::SnatPolicy => "snat-policy",
            Self::EncapSource => "encap-source",
            Self::Localsid(_) => "localsid",
            Self::SrPolicy(_) => "sr-policy",
            Self::SrSteering(_) => "sr-steering",
        }
    }

    /// The tunnel that an object is a setting of: it comes after it, and goes with it.
    #[must_use]
    pub const fn setting_of(&self) -> Option<Tunnel> {
        match self {
            Self::Tag(tunnel)
            | Self::Vrf(tunnel, _)
            | Self::Unnumbered(tunnel)
            | Self::Gso(tunnel)
            | Self::Cnat(tunnel)
            | Self::Mtu(tunnel)
            | Self::AdminUp(tunnel)
            | Self::Address(tunnel, _) => Some(*tunnel),
            Self::IkeSession(ends) => Some(Tunnel::Ipip(*ends)),
            Self::Uplink
            | Self::FibSource
            | Self::Table(..)
            | Self::OtherRoute(_)
            | Self::DecapNext(_)
            | Self::Tunnel(_)
            | Self::EncapSource
            | Self::Localsid(_)
            | Self::SrPolicy(_)
            | Self::SrSteering(_)
            | Self::WireguardPeer(..)
            | Self::IkeProfile(_)
            | Self::AsyncCrypto
            | Self::SnatAddresses
            | Self::SnatExclusion(_)
            | Self::SnatInterface(..)
            | Self::SnatPolicy => None,
        }
    }

    /// All settings that a tunnel's interface may carry.
    pub(crate) const fn settings(tunnel: Tunnel) -> [Self; 10] {
        [
            Self::Tag(tunnel),
            Self::Vrf(tunnel, Family::Ipv4Unicast),
            Self::Vrf(tunnel, Family::Ipv6Unicast),
            Self::Address(tunnel, Family::Ipv4Unicast),
            Self::Address(tunnel, Family::Ipv6Unicast),
            Self::Unnumbered(tunnel),
            Self::Gso(tunnel),
            Self::Cnat(tunnel),
            Self::Mtu(tunnel),
            Self::AdminUp(tunnel),
        ]
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uplink => f.write_str("uplink"),
            Self::FibSource => f.write_str("fib source"),
            Self::Table(id, family) => write!(f, "table {id} {family}"),
            Self::OtherRoute(key) => write!(f, "another agent's route {key}"),
            Self::DecapNext(family) => write!(f, "decapsulation of vxlan {family}"),
            Self::Tunnel(tunnel) => tunnel.fmt(f),
            Self::Tag(tunnel) => write!(f, "tag of {tunnel}"),
            Self::Vrf(tunnel, family) => write!(f, "{family} table of {tunnel}"),
            Self::Unnumbered(tunnel) => write!(f, "addresses of {tunnel}"),
            Self::Gso(tunnel) => write!(f, "gso of {tunnel}"),
            Self::Cnat(tunnel) => write!(f, "cnat of {tunnel}"),
            Self::Mtu(tunnel) => write!(f, "mtu of {tunnel}"),
            Self::Address(tunnel, family) => write!(f, "{family} address of {tunnel}"),
            Self::AdminUp(tunnel) => write!(f, "admin state of {tunnel}"),
            Self::WireguardPeer(interface, key) => {
                write!(f, "wireguard peer {key} of {} port {}", interface.local, interface.port)
            }
            Self::IkeProfile(ends) => write!(f, "ike profile of ipip tunnel {ends}"),
            Self::IkeSession(ends) => write!(f, "association of ipip tunnel {ends}"),
            Self::AsyncCrypto => f.write_str("asynchronous encryption"),
            Self::SnatAddresses => f.write_str("addresses of source nat"),
            Self::SnatExclusion(prefix) => write!(f, "exclusion of {prefix} from source nat"),
            Self::SnatInterface(index, table) => write!(f, "interface {} as {table} of source nat", index.0),
            Self::SnatPolicy => f.write_str("policy of source nat"),
            Self::EncapSource => f.write_str("source of srv6"),
            Self::Localsid(sid) => write!(f, "local sid {sid}"),
            Self::SrPolicy(bsid) => write!(f, "sr policy {bsid}"),
            Self::SrSteering(key) => write!(f, "steering of {key}"),
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

/// What belongs to the cluster, whoever wrote it: by this a route that another agent of the cluster left is told from anybody's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Territory {
    /// The prefixes of pools.
    pub pools: Vec<IpNet>,
    /// The addresses of the other nodes.
    pub nodes: BTreeSet<IpAddr>,
}

impl Territory {
    /// Whether a route through these gateways, looked up in the main table, is the cluster's.
    pub(crate) fn has(&self, prefix: &IpNet, gateways: &[IpAddr]) -> bool {
        let inside = || self.pools.iter().any(|pool| pool.contains(prefix));
        let to_nodes = || gateways.iter().all(|gateway| self.nodes.contains(gateway));
        !gateways.is_empty() && (inside() || to_nodes())
    }
}

/// One path of a desired route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Where it leads.
    pub to: Target,
    /// Its share of the traffic; at least 1.
    pub weight: u8,
}

impl Target {
    /// The tunnel that it leads into.
    pub(crate) const fn tunnel(&self) -> Option<Tunnel> {
        match self {
            Self::Tunnel(tunnel) | Self::TunnelVia(tunnel, _) => Some(*tunnel),
            Self::Gateway(_) | Self::Drop => None,
        }
    }
}

/// Where a desired path leads.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// Through a gateway, resolved in the main table.
    Gateway(IpAddr),
    /// Into a tunnel, whatever the packet's address: a tunnel with one other end.
    Tunnel(Tunnel),
    /// Through a gateway on a tunnel: one that looks at the gateway, or has no other way to know where to send to.
    TunnelVia(Tunnel, IpAddr),
    /// Nowhere.
    Drop,
}

/// Who wants an object. Where several want a route to the same prefix, the first in this list has it, and of several ways
/// the one with the greatest paths.
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
    /// All destinations behind a node, as a peer of WireGuard.
    Wireguard,
    /// Segment routing over IPv6, whoever uses it.
    Srv6,
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
