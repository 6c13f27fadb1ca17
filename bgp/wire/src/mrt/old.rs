//! TABLE_DUMP: a table of the old form, a record for each path (RFC 6396 section 4.2).

use std::net::IpAddr;

use super::{MrtFault, TableAttrs, record::Fields};
use crate::{
    asn::Asn,
    family::Family,
    nlri::{Ipv4Prefix, Ipv6Prefix, Nlri},
};

/// A path of a table of the old form.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OldEntry<'a> {
    /// Which table of the file it is of.
    pub view: u16,
    /// Its number in the table, which begins again at 0 behind 65535.
    pub sequence: u16,
    /// Its destination.
    pub nlri: Nlri,
    /// When it came, in seconds since 1970.
    pub originated: u32,
    /// The peer that it came from.
    pub peer: IpAddr,
    /// The peer's AS.
    pub peer_asn: Asn,
    /// Its attributes; AS numbers have two octets.
    pub attrs: TableAttrs<'a>,
}

impl<'a> OldEntry<'a> {
    pub(super) fn parse(subtype: u16, body: &'a [u8]) -> Result<Option<Self>, MrtFault> {
        let family = match subtype {
            1 => Family::Ipv4Unicast,
            2 => Family::Ipv6Unicast,
            _ => return Ok(None),
        };
        let mut fields = Fields(body);
        let head = head(&mut fields, family).ok_or(MrtFault::Short)?;
        let (view, sequence, address, len, originated, peer, peer_asn, length) = head;
        let nlri = match address {
            IpAddr::V4(address) => Ipv4Prefix::new(address.to_bits(), len).map(Nlri::from),
            IpAddr::V6(address) => Ipv6Prefix::new(address.to_bits(), len).map(Nlri::from),
        };
        let nlri = nlri.ok_or(MrtFault::Prefix)?;
        let octets = fields.take(length).ok_or(MrtFault::Path(0))?;
        if !fields.0.is_empty() {
            return Err(MrtFault::LeftOver(fields.0.len()));
        }
        let attrs = TableAttrs { octets, family, four_octet: false };
        Ok(Some(Self { view, sequence, nlri, originated, peer, peer_asn, attrs }))
    }
}

type Head = (u16, u16, IpAddr, u8, u32, IpAddr, Asn, usize);

fn head(fields: &mut Fields<'_>, family: Family) -> Option<Head> {
    let address = |fields: &mut Fields<'_>| {
        if family.is_ipv4() {
            fields.array::<4>().map(IpAddr::from)
        } else {
            fields.array::<16>().map(IpAddr::from)
        }
    };
    let (view, sequence) = (fields.u16()?, fields.u16()?);
    let prefix = address(fields)?;
    // The length, and a status that has no meaning.
    let [len, _] = fields.array()?;
    let originated = fields.u32()?;
    let peer = address(fields)?;
    let asn = Asn(u32::from(fields.u16()?));
    Some((view, sequence, prefix, len, originated, peer, asn, usize::from(fields.u16()?)))
}
