//! BGP4MP: what was said on a session (RFC 6396 section 4.4, RFC 8050 section 3).

use std::net::IpAddr;

use super::{MrtFault, record::Fields};
use crate::{asn::Asn, family::FamilySet, frame::EXTENDED_MAX_LEN, negotiated::Negotiated};

/// A message of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RecordedMessage<'a> {
    /// AS of the peer.
    pub peer_asn: Asn,
    /// AS of whoever recorded it.
    pub local_asn: Asn,
    /// Address of the peer.
    pub peer: IpAddr,
    /// Address of whoever recorded it.
    pub local: IpAddr,
    /// AS numbers in it have four octets.
    pub four_octet: bool,
    /// Prefixes in it have path identifiers. Older files do not say so where they have.
    pub path_ids: bool,
    /// It went to the peer, it did not come from there.
    pub sent: bool,
    /// All of it, from its marker on. Nothing about it has been checked.
    pub octets: &'a [u8],
}

/// A session's change of state.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// AS of the peer.
    pub peer_asn: Asn,
    /// AS of whoever recorded it.
    pub local_asn: Asn,
    /// Address of the peer.
    pub peer: IpAddr,
    /// Address of whoever recorded it.
    pub local: IpAddr,
    /// The state before; 1 is Idle, 6 Established.
    pub old: u16,
    /// The state now.
    pub new: u16,
}

impl RecordedMessage<'_> {
    /// What the session may have agreed on, as far as one can know: every family, messages of any length. For
    /// [`crate::parse_message`].
    #[must_use]
    pub fn negotiated(&self) -> Negotiated {
        Negotiated {
            families: FamilySet::ALL,
            four_octet: self.four_octet,
            ebgp: self.peer_asn != self.local_asn,
            add_path_receive: if self.path_ids { FamilySet::ALL } else { FamilySet::EMPTY },
            extended_next_hop: FamilySet::ALL,
            local_asn: self.local_asn,
            remote_asn: self.peer_asn,
            max_message: EXTENDED_MAX_LEN as u16,
            max_received: EXTENDED_MAX_LEN as u16,
            ..Negotiated::default()
        }
    }
}

/// A record of a session.
pub(super) enum Session<'a> {
    /// A message.
    Message(RecordedMessage<'a>),
    /// A change of state.
    StateChange(StateChange),
}

impl<'a> Session<'a> {
    /// Reads the body of a record; `None` for a subtype that is not read.
    pub(super) fn parse(subtype: u16, body: &'a [u8]) -> Result<Option<Self>, MrtFault> {
        let (message, four_octet, sent, path_ids) = match subtype {
            0 => (false, false, false, false),
            5 => (false, true, false, false),
            1 => (true, false, false, false),
            4 => (true, true, false, false),
            6 => (true, false, true, false),
            7 => (true, true, true, false),
            8 => (true, false, false, true),
            9 => (true, true, false, true),
            10 => (true, false, true, true),
            11 => (true, true, true, true),
            _ => return Ok(None),
        };
        let mut fields = Fields(body);
        let (peer_asn, local_asn, peer, local) = head(&mut fields, four_octet)?;
        Ok(Some(if message {
            let octets = fields.0;
            Self::Message(RecordedMessage {
                peer_asn,
                local_asn,
                peer,
                local,
                four_octet,
                path_ids,
                sent,
                octets,
            })
        } else {
            let (old, new) = (fields.u16().ok_or(MrtFault::Short)?, fields.u16().ok_or(MrtFault::Short)?);
            Self::StateChange(StateChange { peer_asn, local_asn, peer, local, old, new })
        }))
    }
}

/// Both ends of a session.
fn head(fields: &mut Fields<'_>, four_octet: bool) -> Result<(Asn, Asn, IpAddr, IpAddr), MrtFault> {
    let asn = |fields: &mut Fields<'_>| {
        let number = if four_octet { fields.u32() } else { fields.u16().map(u32::from) };
        number.map(Asn).ok_or(MrtFault::Short)
    };
    let (peer_asn, local_asn) = (asn(fields)?, asn(fields)?);
    fields.u16().ok_or(MrtFault::Short)?;
    let afi = fields.u16().ok_or(MrtFault::Short)?;
    let address = |fields: &mut Fields<'_>| match afi {
        1 => fields.array::<4>().map(IpAddr::from).ok_or(MrtFault::Short),
        2 => fields.array::<16>().map(IpAddr::from).ok_or(MrtFault::Short),
        _ => Err(MrtFault::PeerFamily(afi)),
    };
    Ok((peer_asn, local_asn, address(fields)?, address(fields)?))
}
