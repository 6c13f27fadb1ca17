//! Values of objects: what an object shall be, or is, beside its key. Two of them are compared to see whether VPP has what
//! is wanted, so a value must be one that VPP can be read back to, or one that VPP never shows.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use bgp_core::Family;
use ipnet::IpNet;

use crate::desired::{IkeHeld, IkeProfile, ObjectKey, SnatAddresses, Tunnel, WireguardKey};
use crate::event::SwIfIndex;
use crate::model::{KeyPair, SidList, SrBehavior, TableId};

/// The value of an object. Cheap to clone; secrets stand in types that cannot print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// Of [`ObjectKey::Unnumbered`]: whose addresses are borrowed. Nobody wants a certain index: it follows from who is
    /// the uplink, so handlers leave this value out.
    Lender(SwIfIndex),
    /// Of [`ObjectKey::Mtu`]: how it is to be worked out.
    MtuRule(MtuRule),
    /// Of [`ObjectKey::Mtu`]: octets of an IP packet.
    Mtu(u32),
    /// Of [`ObjectKey::Vrf`]: the table of the packets that come out of the tunnel, and its family.
    Table(TableId, Family),
    /// Of [`ObjectKey::EncapSource`]: the address.
    EncapSource(Ipv6Addr),
    /// Of [`ObjectKey::Localsid`]: what it does.
    Localsid(SrBehavior),
    /// Of [`ObjectKey::SrPolicy`]: what it encapsulates with.
    SrPolicy {
        /// The source address of the packets.
        source: Ipv6Addr,
        /// The lists of segments, ordered, of which there is at least one.
        lists: Arc<[SidList]>,
    },
    /// Of [`ObjectKey::SrSteering`]: the binding SID of the policy.
    SrSteering(Ipv6Addr),
    /// Of [`ObjectKey::OtherRoute`]: the tunnel that it leads into.
    Leads(Tunnel),
    /// Of [`ObjectKey::OtherRoute`]: the gateways that it leads through, looked up in the main table.
    Through(Arc<[IpAddr]>),
    /// Of a WireGuard interface: its keys. They are part of what the interface is, so they are only ever told.
    WireguardKeys(KeyPair),
    /// Of [`ObjectKey::WireguardPeer`].
    WireguardPeer(Arc<WireguardPeer>),
    /// Of [`ObjectKey::SnatAddresses`].
    SnatAddresses(SnatAddresses),
    /// Of [`ObjectKey::IkeProfile`]: what it shall be.
    IkeProfile(IkeProfile),
    /// Of [`ObjectKey::IkeProfile`]: what it is. It refers to its tunnel.
    IkeHeld(IkeHeld),
    /// Of [`ObjectKey::AsyncCrypto`]: how many workers do nothing but encrypt.
    CryptoThreads(u32),
    /// Of an object that VPP doesn't show, and of which a note says that VPP may hold it. Never wanted: whoever wants the
    /// object has it asked for again.
    Noted,
}

/// A peer of a WireGuard interface, besides its public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireguardPeer {
    /// The interface.
    pub interface: WireguardKey,
    /// The peer's address.
    pub endpoint: IpAddr,
    /// The peer's UDP port.
    pub port: u16,
    /// Seconds between words that say nothing; 0: never.
    pub keepalive: u16,
    /// Whose packets may come from it, ordered, at most [`WireguardPeer::MAX_ALLOWED`].
    pub allowed: Vec<IpNet>,
}

impl WireguardPeer {
    /// As many prefixes as VPP takes: their number is one octet.
    pub const MAX_ALLOWED: usize = 255;
}

/// How large packets in a tunnel may be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MtuRule {
    /// So many octets.
    Fixed(u32),
    /// What the uplink takes, less so many octets.
    UplinkLess(u16),
}

impl Spec {
    /// Another object that VPP uses as long as it has this value: it must not go before.
    pub(crate) fn refers(&self) -> Option<ObjectKey> {
        match self {
            Self::Leads(tunnel) => Some(ObjectKey::Tunnel(*tunnel)),
            Self::WireguardPeer(peer) => Some(ObjectKey::Tunnel(Tunnel::Wireguard(peer.interface))),
            Self::IkeHeld(held) => Some(ObjectKey::Tunnel(Tunnel::Ipip(held.ends))),
            Self::Table(table, family) => Some(ObjectKey::Table(*table, *family)),
            Self::SrSteering(bsid) => Some(ObjectKey::SrPolicy(*bsid)),
            Self::Lender(_)
            | Self::MtuRule(_)
            | Self::Mtu(_)
            | Self::Through(_)
            | Self::WireguardKeys(_)
            | Self::EncapSource(_)
            | Self::Localsid(_)
            | Self::SrPolicy { .. }
            | Self::SnatAddresses(_)
            | Self::IkeProfile(_)
            | Self::CryptoThreads(_)
            | Self::Noted => None,
        }
    }
}
