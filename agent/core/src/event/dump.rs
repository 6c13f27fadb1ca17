//! What VPP is found to hold, as far as this agent cares: the answer to
//! [`VppAction::Dump`](crate::plan::VppAction::Dump).

mod srv6;
mod wireguard;

use std::sync::Arc;

use bgp_core::Family;
use ipnet::IpNet;

pub use wireguard::DumpedPeer;

use super::{DumpedProfile, FibPath, FibSourceId, SwIfIndex};
use crate::desired::{SnatAddresses, Tunnel};
use crate::model::{RouteKey, TableId};

pub use srv6::{DumpedPolicy, Srv6Dump};

/// What VPP holds, as far as this agent cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// All interfaces.
    pub interfaces: Vec<Interface>,
    /// All tables.
    pub tables: Vec<(TableId, Family)>,
    /// The FIB source with our name; the smallest id where there are several.
    pub fib_source: Option<FibSourceId>,
    /// The names of all FIB sources, VPP's own among them; one more entry for each source of a name.
    pub source_names: Vec<Arc<str>>,
    /// All interfaces of a kind that we make, whoever made them.
    pub tunnels: Vec<DumpedTunnel>,
    /// In which table packets from a tunnel are looked up, where it is not the main one.
    pub vrfs: Vec<(SwIfIndex, Family, TableId)>,
    /// SRv6; empty where VPP has no messages for it.
    pub srv6: Srv6Dump,
    /// All peers of WireGuard interfaces.
    pub wireguard: Vec<DumpedPeer>,
    /// All profiles of IKEv2.
    pub ike: Vec<DumpedProfile>,
    /// The addresses of source NAT; none where it has not been set up.
    pub snat: Option<SnatAddresses>,
    /// All routes of our FIB source, of all tables; empty where we have no source.
    pub routes: Vec<(RouteKey, Vec<FibPath>)>,
    /// Routes under VPP's own source, which any client's may be; empty unless another agent is to be taken over from.
    pub others: Vec<(RouteKey, Vec<FibPath>)>,
}

/// An interface of VPP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index.
    pub index: SwIfIndex,
    /// Its name.
    pub name: Arc<str>,
    /// Its tag; empty where it has none.
    pub tag: Arc<str>,
    /// Administratively up.
    pub admin_up: bool,
    /// The largest IP packet that it takes, in octets; 0 where it sets no limit of its own.
    pub mtu: u32,
    /// Its own addresses with their subnet lengths.
    pub addresses: Vec<IpNet>,
    /// The interface whose addresses it borrows.
    pub unnumbered: Option<SwIfIndex>,
}

/// An interface of a kind that we make, found in VPP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DumpedTunnel {
    /// Its interface.
    pub index: SwIfIndex,
    /// What makes it unique.
    pub tunnel: Tunnel,
}
