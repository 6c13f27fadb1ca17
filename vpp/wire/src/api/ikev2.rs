//! `ikev2`: IKEv2 (RFC 7296): profiles, security associations.
//!
//! Numbers of algorithms are those of the IKEv2 registries; VPP takes any. The constructors know those that VPP's agents for
//! Calico agree on, and nothing else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use zerocopy::big_endian::{U16, U32};

use crate::head::RequestHead;
use crate::message::{Dump, Payload, Refused, Request, Tailed};
use crate::types::{FixedString, SecretOctet, SwIfIndex};

include!(concat!(env!("OUT_DIR"), "/ikev2.rs"));

/// The name of a profile, at most 63 bytes.
pub type ProfileName = FixedString<64>;

/// Authentication by a shared key, as text.
pub const AUTH_SHARED_KEY: u8 = 2;
/// An identity that is an IPv4 address.
pub const ID_IPV4: u8 = 1;

const AES_CBC: u8 = 12;
const AES_GCM_16: u8 = 20;
const KEY_BITS: u32 = 256;
const HMAC_SHA1_96: u8 = 2;
const PRF_HMAC_SHA2_256: u8 = 5;
const MODP_2048: u8 = 14;
/// AES-GCM needs no other integrity.
const NONE: u8 = 0;

/// The name of a profile.
///
/// # Errors
/// [`Refused::NoName`], [`Refused::Text`] for more than 63 bytes.
pub fn profile_name(name: &str) -> Result<ProfileName, Refused> {
    if name.is_empty() { Err(Refused::NoName) } else { ProfileName::new(name) }
}

/// Has a profile's other side believed by a key that both share. Writes an [`Ikev2ProfileSetAuth`].
pub struct SharedKey<'a> {
    name: ProfileName,
    key: &'a [u8],
}

impl<'a> SharedKey<'a> {
    /// The key is text to VPP.
    ///
    /// # Errors
    /// [`Refused::NoKey`], [`Refused::Count`] for more than 64 KiB.
    pub fn new(name: ProfileName, key: &'a [u8]) -> Result<Self, Refused> {
        match key.len() {
            0 => Err(Refused::NoKey),
            length if length > usize::from(u16::MAX) => Err(Refused::Count(length)),
            _ => Ok(Self { name, key }),
        }
    }
}

impl fmt::Debug for SharedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Payload for SharedKey<'_> {
    type Message = Ikev2ProfileSetAuth;

    fn encode(&self, out: &mut Vec<u8>) {
        let message =
            Ikev2ProfileSetAuth::append(out, self.key.len()).expect("64 KiB are counted in 32 bits");
        message.name = self.name;
        message.auth_method = AUTH_SHARED_KEY;
        for (place, octet) in message.data.iter_mut().zip(self.key) {
            *place = SecretOctet::new(*octet);
        }
    }
}

impl Request for SharedKey<'_> {
    type Reply = Ikev2ProfileSetAuthReply;
}

/// Says that one side of a profile is known by its IPv4 address. Writes an [`Ikev2ProfileSetId`].
#[derive(Debug, Clone, Copy)]
pub struct AddressIdentity {
    name: ProfileName,
    local: bool,
    address: Ipv4Addr,
}

impl AddressIdentity {
    /// Of this side where it is `local`, else of the other one.
    #[must_use]
    pub const fn new(name: ProfileName, local: bool, address: Ipv4Addr) -> Self {
        Self { name, local, address }
    }
}

impl Payload for AddressIdentity {
    type Message = Ikev2ProfileSetId;

    fn encode(&self, out: &mut Vec<u8>) {
        let octets = self.address.octets();
        let message = Ikev2ProfileSetId::append(out, octets.len()).expect("4 bytes are counted");
        message.name = self.name;
        message.is_local = self.local.into();
        message.id_type = ID_IPV4;
        message.data.copy_from_slice(&octets);
    }
}

impl Request for AddressIdentity {
    type Reply = Ikev2ProfileSetIdReply;
}

impl Ikev2Ts {
    /// All packets of IPv4.
    #[must_use]
    pub fn all_ipv4(local: bool) -> Self {
        Self {
            sa_index: U32::new(0),
            child_sa_index: U32::new(0),
            is_local: local.into(),
            protocol_id: 0,
            start_port: U16::new(0),
            end_port: U16::MAX_VALUE,
            start_addr: IpAddr::V4(Ipv4Addr::UNSPECIFIED).into(),
            end_addr: IpAddr::V4(Ipv4Addr::BROADCAST).into(),
        }
    }
}

impl Ikev2ProfileSetTs {
    /// All packets of IPv4 on one side.
    #[must_use]
    pub fn all_ipv4(name: ProfileName, local: bool) -> Self {
        Self { head: RequestHead::BLANK, name, ts: Ikev2Ts::all_ipv4(local) }
    }
}

impl Ikev2SetResponder {
    /// Whom to begin with, and through which interface.
    ///
    /// # Errors
    /// [`Refused::NoInterface`], [`Refused::NextHop`] for no address: VPP would take both, and never begin.
    pub fn new(name: ProfileName, interface: SwIfIndex, address: Ipv4Addr) -> Result<Self, Refused> {
        if interface == SwIfIndex::NONE {
            return Err(Refused::NoInterface);
        }
        if address.is_unspecified() {
            return Err(Refused::NextHop(address.into()));
        }
        let responder = Ikev2Responder { sw_if_index: interface, addr: IpAddr::V4(address).into() };
        Ok(Self { head: RequestHead::BLANK, name, responder })
    }
}

impl Ikev2IkeTransforms {
    /// AES-CBC with 256 bits, HMAC-SHA1-96, SHA2-256 for keys, the group of 2048 bits.
    pub const AGREED: Self = Self {
        crypto_alg: AES_CBC,
        crypto_key_size: U32::new(KEY_BITS),
        integ_alg: HMAC_SHA1_96,
        prf_alg: PRF_HMAC_SHA2_256,
        dh_group: MODP_2048,
    };
}

impl Ikev2IkeTransforms2602 {
    /// As [`Ikev2IkeTransforms::AGREED`]; these releases know no other function for keys.
    pub const AGREED: Self = Self {
        crypto_alg: AES_CBC,
        crypto_key_size: U32::new(KEY_BITS),
        integ_alg: HMAC_SHA1_96,
        dh_group: MODP_2048,
    };
}

impl Ikev2EspTransforms {
    /// AES-GCM-16 with 256 bits.
    pub const AGREED: Self =
        Self { crypto_alg: AES_GCM_16, crypto_key_size: U32::new(KEY_BITS), integ_alg: NONE };
}

impl Ikev2SetIkeTransforms {
    /// Those of [`Ikev2IkeTransforms::AGREED`].
    #[must_use]
    pub const fn agreed(name: ProfileName) -> Self {
        Self { head: RequestHead::BLANK, name, tr: Ikev2IkeTransforms::AGREED }
    }
}

impl Ikev2SetIkeTransforms2602 {
    /// Those of [`Ikev2IkeTransforms2602::AGREED`].
    #[must_use]
    pub const fn agreed(name: ProfileName) -> Self {
        Self { head: RequestHead::BLANK, name, tr: Ikev2IkeTransforms2602::AGREED }
    }
}

impl Ikev2SetEspTransforms {
    /// Those of [`Ikev2EspTransforms::AGREED`].
    #[must_use]
    pub const fn agreed(name: ProfileName) -> Self {
        Self { head: RequestHead::BLANK, name, tr: Ikev2EspTransforms::AGREED }
    }
}

/// [`Ikev2ProfileDump`] to a release up to 26.02, which answers in another form.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ikev2ProfileDump2602(());

impl Payload for Ikev2ProfileDump2602 {
    type Message = Ikev2ProfileDump;

    fn encode(&self, out: &mut Vec<u8>) {
        Ikev2ProfileDump::default().encode(out);
    }
}

impl Dump for Ikev2ProfileDump2602 {
    type Details = Ikev2ProfileDetails2602;
}
