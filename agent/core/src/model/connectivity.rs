//! Facts about where destinations are reached, and the keys of routes.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

/// Id of a VPP table: the same number names an IPv4 and an IPv6 table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

impl TableId {
    /// The main table.
    pub const MAIN: Self = Self(0);
    /// The table of pods of the default network. VPP's manager makes it.
    pub const PODS: Self = Self(2);
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A VXLAN network identifier: 24 bits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vni(u32);

impl Vni {
    /// The default network's, where the settings name no other.
    pub const DEFAULT: Self = Self(4096);

    /// The network's number, 0 to 2^24 - 1; `None` where it is larger.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number < 1 << 24 { Some(Self(number)) } else { None }
    }

    /// The network's number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Vni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What makes a route unique: its table and its prefix.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The table it stands in.
    pub table: TableId,
    /// The destination, host bits cleared.
    pub prefix: IpNet,
}

impl fmt::Display for RouteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} table {}", self.prefix, self.table)
    }
}

/// How a destination is reached, as BGP says: by these next hops. Never empty, ordered, without repetition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connectivity {
    /// The next hops.
    pub hops: Arc<[Hop]>,
}

/// One next hop of a destination.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Its address: the global one where IPv6 gave two.
    pub address: IpAddr,
    /// Its share of the traffic against the other hops; at least 1.
    pub weight: u8,
}

/// Where an address of this node comes from, which peers shall hear of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A block of pod addresses that belongs to this node.
    Block,
}
