//! `bfd`: Bidirectional Forwarding Detection (RFC 5880) over UDP.
//!
//! VPP takes a session from an address that its interface does not have, and such a session never comes up; so a
//! session is made of an address as VPP has told it.

use std::net::IpAddr;

use crate::api::ip::IpAddressDetails;
use crate::head::RequestHead;
use crate::message::Refused;
use crate::types::{Bool, SecretOctets, SwIfIndex};

include!(concat!(env!("OUT_DIR"), "/bfd.rs"));

/// When a session sends and gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BfdTimers {
    /// Wished interval between packets sent, in microseconds; not 0.
    pub desired_min_tx: u32,
    /// Shortest interval between packets received that is borne, in microseconds; not 0.
    pub required_min_rx: u32,
    /// After so many missing packets the session is down; not 0.
    pub detect_mult: u8,
}

/// How packets are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BfdAuthentication {
    /// Keyed SHA1.
    KeyedSha1,
    /// Meticulous keyed SHA1: the sequence number grows with every packet.
    MeticulousSha1,
}

impl BfdUdpAdd {
    /// A session from `local`, an address that VPP has said its interface has, to a neighbour.
    ///
    /// # Errors
    /// [`Refused::MixedFamilies`], [`Refused::SameEnds`], [`Refused::Timers`] for a timer or multiplier of 0,
    /// [`Refused::NoInterface`] when `local` is none.
    pub fn new(local: &IpAddressDetails, peer: IpAddr, timers: BfdTimers) -> Result<Self, Refused> {
        let address = local.prefix.address().ip().ok_or(Refused::NoInterface)?;
        if local.sw_if_index == SwIfIndex::NONE {
            return Err(Refused::NoInterface);
        }
        if address.is_ipv4() != peer.is_ipv4() {
            return Err(Refused::MixedFamilies(address, peer));
        }
        if address == peer {
            return Err(Refused::SameEnds(peer));
        }
        let BfdTimers { desired_min_tx, required_min_rx, detect_mult } = timers;
        if desired_min_tx == 0 || required_min_rx == 0 || detect_mult == 0 {
            return Err(Refused::Timers);
        }
        Ok(Self {
            head: RequestHead::BLANK,
            sw_if_index: local.sw_if_index,
            desired_min_tx: desired_min_tx.into(),
            required_min_rx: required_min_rx.into(),
            local_addr: address.into(),
            peer_addr: peer.into(),
            detect_mult,
            is_authenticated: Bool::FALSE,
            bfd_key_id: 0,
            conf_key_id: 0.into(),
        })
    }

    /// Signed with the key that VPP has under `key`, which packets name `id`.
    #[must_use]
    pub fn authenticated(self, key: u32, id: u8) -> Self {
        Self { is_authenticated: Bool::TRUE, bfd_key_id: id, conf_key_id: key.into(), ..self }
    }
}

impl BfdAuthSetKey {
    /// Gives VPP a key of 1 to 20 octets under the number `key`.
    ///
    /// # Errors
    /// [`Refused::Key`] for another length.
    pub fn new(key: u32, kind: BfdAuthentication, secret: &[u8]) -> Result<Self, Refused> {
        let mut octets = [0; 20];
        let place = octets.get_mut(..secret.len()).filter(|place| !place.is_empty());
        place.ok_or(Refused::Key(secret.len()))?.copy_from_slice(secret);
        Ok(Self {
            head: RequestHead::BLANK,
            conf_key_id: key.into(),
            key_len: u8::try_from(secret.len()).map_err(|_| Refused::Key(secret.len()))?,
            auth_type: match kind {
                BfdAuthentication::KeyedSha1 => 4,
                BfdAuthentication::MeticulousSha1 => 5,
            },
            key: SecretOctets::new(octets),
        })
    }
}
