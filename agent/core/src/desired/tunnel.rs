//! Tunnels, by what makes each one unique. Each is an interface that this agent makes in VPP; what it carries besides,
//! addresses, offload, its state, are objects of their own.

use std::fmt;
use std::net::IpAddr;

use crate::model::{KeyId, TableId, Vni};

/// An interface of ours that leads to other nodes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tunnel {
    /// IP in IP; also what IPsec protects.
    Ipip(IpipKey),
    /// VXLAN carrying IP packets, without MAC addresses of pods.
    Vxlan(VxlanKey),
    /// WireGuard: one interface for all peers of an IP version.
    Wireguard(WireguardKey),
}

/// An IPIP tunnel, by its ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpipKey {
    /// Our address.
    pub local: IpAddr,
    /// The other node's address, of the same IP version.
    pub remote: IpAddr,
}

/// A VXLAN tunnel. VPP deletes it by all of this, not by its index.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VxlanKey {
    /// Our address.
    pub local: IpAddr,
    /// The other node's address, of the same IP version.
    pub remote: IpAddr,
    /// The network's number on the wire.
    pub vni: Vni,
    /// UDP port, of both ends.
    pub port: u16,
    /// The table in which the other node's address is looked up.
    pub table: TableId,
}

/// A WireGuard interface.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireguardKey {
    /// Our address.
    pub local: IpAddr,
    /// UDP port that it listens on.
    pub port: u16,
    /// Our key: with another one it is another interface, so that routes have somewhere to go before the old one goes.
    pub key: KeyId,
}

impl Tunnel {
    /// The kind, as a bounded label.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Ipip(_) => "ipip-tunnel",
            Self::Vxlan(_) => "vxlan-tunnel",
            Self::Wireguard(_) => "wireguard-interface",
        }
    }

    /// Our address.
    #[must_use]
    pub const fn local(&self) -> IpAddr {
        match self {
            Self::Ipip(key) => key.local,
            Self::Vxlan(key) => key.local,
            Self::Wireguard(key) => key.local,
        }
    }

    /// The other end, where there is but one.
    #[must_use]
    pub const fn remote(&self) -> Option<IpAddr> {
        match self {
            Self::Ipip(key) => Some(key.remote),
            Self::Vxlan(key) => Some(key.remote),
            Self::Wireguard(_) => None,
        }
    }

    /// Octets that the outer headers add to a packet.
    #[must_use]
    pub const fn overhead(&self) -> u16 {
        let outer = match self.local() {
            IpAddr::V4(_) => 20,
            IpAddr::V6(_) => 40,
        };
        outer
            + match self {
                Self::Ipip(_) => 0,
                // UDP, VXLAN, and the Ethernet header inside.
                Self::Vxlan(_) => 8 + 8 + 14,
                // UDP, and WireGuard's header and tag.
                Self::Wireguard(_) => 8 + 32,
            }
    }
}

impl fmt::Display for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ipip(key) => write!(f, "ipip tunnel {key}"),
            Self::Vxlan(key) => write!(f, "vxlan tunnel {key}"),
            Self::Wireguard(key) => write!(f, "wireguard interface {key}"),
        }
    }
}

impl fmt::Display for IpipKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.local, self.remote)
    }
}

impl fmt::Display for VxlanKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} vni {} port {}", self.local, self.remote, self.vni, self.port)?;
        if self.table == TableId::MAIN { Ok(()) } else { write!(f, " table {}", self.table) }
    }
}

impl fmt::Display for WireguardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {} key {}", self.local, self.port, self.key)
    }
}
