//! `vxlan`: VXLAN tunnels (RFC 7348). VPP finds and deletes one by its ends, ports, network and table, not by its interface;
//! it takes a network's number of more than 24 bits and uses part of it.

use std::net::IpAddr;

use zerocopy::big_endian::{U16, U32};

use crate::head::RequestHead;
use crate::message::Refused;
use crate::types::{SwIfIndex, TableId};

include!(concat!(env!("OUT_DIR"), "/vxlan.rs"));

/// A tunnel that carries IP packets, by what makes it unique.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct VxlanTunnel {
    /// Own end.
    pub local: IpAddr,
    /// Other end, of the same family.
    pub remote: IpAddr,
    /// UDP port of both ends.
    pub port: u16,
    /// The network's number, at most 24 bits.
    pub vni: u32,
    /// Where the other end is looked up.
    pub table: TableId,
}

impl VxlanAddDelTunnelV3 {
    /// Makes a tunnel out of which packets go to `decap_next`, as `add_node_next` numbered it: IPv4's or IPv6's input. Of one
    /// that exists VPP answers -75, without its interface.
    ///
    /// # Errors
    /// [`Refused::MixedFamilies`], [`Refused::SameEnds`], [`Refused::Vni`].
    pub fn add(tunnel: &VxlanTunnel, decap_next: u32) -> Result<Self, Refused> {
        Self::new(tunnel, decap_next, true)
    }

    /// Removes a tunnel. Its routes must be gone before: what still uses it becomes a drop, for good.
    ///
    /// # Errors
    /// As of [`VxlanAddDelTunnelV3::add`].
    pub fn delete(tunnel: &VxlanTunnel) -> Result<Self, Refused> {
        Self::new(tunnel, u32::MAX, false)
    }

    fn new(tunnel: &VxlanTunnel, decap_next: u32, is_add: bool) -> Result<Self, Refused> {
        let VxlanTunnel { local, remote, port, vni, table } = *tunnel;
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(Refused::MixedFamilies(local, remote));
        }
        if local == remote {
            return Err(Refused::SameEnds(local));
        }
        if vni >= 1 << 24 {
            return Err(Refused::Vni(vni));
        }
        Ok(Self {
            head: RequestHead::BLANK,
            is_add: is_add.into(),
            instance: U32::MAX_VALUE,
            src_address: local.into(),
            dst_address: remote.into(),
            src_port: U16::new(port),
            dst_port: U16::new(port),
            mcast_sw_if_index: SwIfIndex::NONE,
            encap_vrf_id: table,
            decap_next_index: U32::new(decap_next),
            vni: U32::new(vni),
            is_l3: true.into(),
        })
    }
}

impl VxlanTunnelV2Dump {
    /// All tunnels.
    #[must_use]
    pub fn all() -> Self {
        Self::new(SwIfIndex::NONE)
    }
}
