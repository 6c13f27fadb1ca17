//! `wireguard`: WireGuard interfaces and peers.
//!
//! What VPP accepts and gets wrong: a second interface on the same address and port (look into
//! `wireguard_interface_dump` first, see [`crate::beforehand`]), and allowed IPs with lengths that their family does
//! not have. Keys are of a type that cannot be printed, and are written straight into the send buffer.

use std::net::IpAddr;

use ipnet::IpNet;
use zerocopy::FromBytes;

use crate::message::{Payload, Refused, Request, Tailed};
use crate::types::{Bool, Prefix, SecretOctets, SwIfIndex, TableId};

include!(concat!(env!("OUT_DIR"), "/wireguard.rs"));

/// Octets of a key, private or public.
pub const KEY: usize = 32;

/// Makes an interface. Writes a [`WireguardInterfaceCreate`].
#[derive(Clone, Copy)]
pub struct InterfaceCreate<'a> {
    local: IpAddr,
    port: u16,
    private_key: &'a [u8; KEY],
}

impl<'a> InterfaceCreate<'a> {
    /// An interface that listens on that address and UDP port; VPP makes the public key of the private one.
    ///
    /// # Errors
    /// [`Refused::Unspecified`] without an address, [`Refused::Port`] for port 0, [`Refused::Key`] for a key of zeros.
    pub fn new(local: IpAddr, port: u16, private_key: &'a [u8; KEY]) -> Result<Self, Refused> {
        if local.is_unspecified() {
            return Err(Refused::Unspecified(local));
        }
        if port == 0 {
            return Err(Refused::Port(port));
        }
        if private_key.iter().all(|octet| *octet == 0) {
            return Err(Refused::Key(KEY));
        }
        Ok(Self { local, port, private_key })
    }
}

impl std::fmt::Debug for InterfaceCreate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InterfaceCreate")
            .field("local", &self.local)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Payload for InterfaceCreate<'_> {
    type Message = WireguardInterfaceCreate;

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + size_of::<WireguardInterfaceCreate>(), 0);
        let message = WireguardInterfaceCreate::mut_from_bytes(&mut out[start..]).expect("as long as it is");
        message.interface.user_instance = u32::MAX.into();
        message.interface.sw_if_index = SwIfIndex::NONE;
        message.interface.private_key = SecretOctets::new(*self.private_key);
        message.interface.port = self.port.into();
        message.interface.src_ip = self.local.into();
        message.generate_key = Bool::FALSE;
    }
}

impl Request for InterfaceCreate<'_> {
    type Reply = WireguardInterfaceCreateReply;
}

/// Adds a peer to an interface. Its allowed IPs cannot be changed later: it is removed and added. Writes a
/// [`WireguardPeerAdd`].
#[derive(Debug, Clone, Copy)]
pub struct PeerAdd<'a> {
    interface: SwIfIndex,
    public_key: &'a [u8; KEY],
    endpoint: IpAddr,
    port: u16,
    keepalive: u16,
    table: TableId,
    allowed: &'a [IpNet],
}

impl<'a> PeerAdd<'a> {
    /// A peer at `endpoint`, looked up in `table`. `keepalive` is in seconds, 0 for none. Host bits of allowed IPs do
    /// not count.
    ///
    /// # Errors
    /// [`Refused::NoInterface`], [`Refused::Unspecified`] without an endpoint, [`Refused::Port`], [`Refused::Key`] for a
    /// key of zeros, [`Refused::AllowedIps`] for none or more than 255.
    pub fn new(
        interface: SwIfIndex,
        public_key: &'a [u8; KEY],
        endpoint: IpAddr,
        port: u16,
        keepalive: u16,
        table: TableId,
        allowed: &'a [IpNet],
    ) -> Result<Self, Refused> {
        if interface == SwIfIndex::NONE {
            return Err(Refused::NoInterface);
        }
        if endpoint.is_unspecified() {
            return Err(Refused::Unspecified(endpoint));
        }
        if port == 0 {
            return Err(Refused::Port(port));
        }
        if public_key.iter().all(|octet| *octet == 0) {
            return Err(Refused::Key(KEY));
        }
        if allowed.is_empty() || allowed.len() > usize::from(u8::MAX) {
            return Err(Refused::AllowedIps(allowed.len()));
        }
        Ok(Self { interface, public_key, endpoint, port, keepalive, table, allowed })
    }
}

impl Payload for PeerAdd<'_> {
    type Message = WireguardPeerAdd;

    fn encode(&self, out: &mut Vec<u8>) {
        let message = WireguardPeerAdd::append(out, self.allowed.len()).expect("at most 255, in 8 bits");
        let peer = &mut message.peer;
        peer.public_key = *self.public_key;
        peer.port = self.port.into();
        peer.persistent_keepalive = self.keepalive.into();
        peer.table_id = self.table;
        peer.endpoint = self.endpoint.into();
        peer.sw_if_index = self.interface;
        for (place, net) in peer.allowed_ips.iter_mut().zip(self.allowed) {
            *place = Prefix::with_host(net.trunc());
        }
    }
}

impl Request for PeerAdd<'_> {
    type Reply = WireguardPeerAddReply;
}

impl WireguardInterface {
    /// Where it listens; `None` for an address of no family.
    #[must_use]
    pub fn listens(&self) -> Option<(IpAddr, u16)> {
        Some((self.src_ip.ip()?, self.port.get()))
    }
}
