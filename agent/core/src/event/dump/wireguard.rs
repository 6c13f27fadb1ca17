//! Peers of WireGuard interfaces, as VPP shows them.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::event::SwIfIndex;
use crate::model::PublicKey;

/// A peer found in VPP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedPeer {
    /// The number that VPP gave it. Used again at once when the peer goes.
    pub index: u32,
    /// Its interface.
    pub interface: SwIfIndex,
    /// Its key.
    pub public: PublicKey,
    /// Its address: where it last spoke from.
    pub endpoint: IpAddr,
    /// Its UDP port.
    pub port: u16,
    /// Seconds between words that say nothing; 0: never.
    pub keepalive: u16,
    /// Whose packets may come from it.
    pub allowed: Vec<IpNet>,
    /// There is a session.
    pub established: bool,
}
