//! TABLE_DUMP_V2: the peers of a table once, then a record for each destination (RFC 6396 section 4.3, RFC 8050 section
//! 4).

use std::net::IpAddr;

use super::{MrtFault, TableAttrs, record::Fields};
use crate::{
    asn::Asn,
    family::Family,
    nlri::{
        Ipv4Prefix, Ipv6Prefix, Label, Nlri, NlriKey, PathId, SrPolicy4, SrPolicy6, VpnIpv4Prefix,
        VpnIpv6Prefix,
    },
    router_id::RouterId,
};

pub(super) const PEER_INDEX_TABLE: u16 = 1;
pub(super) const RIB_IPV4_UNICAST: u16 = 2;
pub(super) const RIB_IPV6_UNICAST: u16 = 4;
pub(super) const RIB_GENERIC: u16 = 6;
pub(super) const RIB_IPV4_UNICAST_ADDPATH: u16 = 8;
pub(super) const RIB_IPV6_UNICAST_ADDPATH: u16 = 10;
pub(super) const RIB_GENERIC_ADDPATH: u16 = 12;

/// Bits of a peer's type.
pub(super) const PEER_IPV6: u8 = 1;
pub(super) const PEER_FOUR_OCTET: u8 = 2;

/// The peers of a table.
#[derive(Copy, Clone, Debug)]
pub struct PeerIndex<'a> {
    /// Identifier of whoever recorded the table.
    pub collector: RouterId,
    /// The name of the table, in UTF-8 if the recorder kept to the format; mostly empty.
    pub view: &'a [u8],
    peers: Peers<'a>,
}

/// A peer of a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its identifier.
    pub router_id: RouterId,
    /// Its address; unspecified, by custom, for the recorder itself.
    pub address: IpAddr,
    /// Its AS.
    pub asn: Asn,
}

impl<'a> PeerIndex<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, MrtFault> {
        let mut fields = Fields(body);
        let mut head = || {
            let collector = RouterId(fields.u32()?);
            let length = usize::from(fields.u16()?);
            Some((collector, fields.take(length)?, fields.u16()?))
        };
        let (collector, view, count) = head().ok_or(MrtFault::Short)?;
        let peers = Peers { rest: fields, count };
        let mut walk = peers;
        let read = walk.by_ref().count();
        if walk.count > 0 {
            // No more than `count`, which has 16 bits.
            return Err(MrtFault::Peer(read as u16));
        }
        if !walk.rest.0.is_empty() {
            return Err(MrtFault::LeftOver(walk.rest.0.len()));
        }
        Ok(Self { collector, view, peers })
    }

    /// The peers, in the order of their numbers.
    #[must_use]
    pub const fn peers(&self) -> Peers<'a> {
        self.peers
    }
}

/// Iterates over the peers of a table.
#[derive(Copy, Clone, Debug)]
pub struct Peers<'a> {
    rest: Fields<'a>,
    count: u16,
}

impl Iterator for Peers<'_> {
    type Item = Peer;

    fn next(&mut self) -> Option<Peer> {
        let left = self.count.checked_sub(1)?;
        let mut fields = self.rest;
        let kind = fields.u8()?;
        let router_id = RouterId(fields.u32()?);
        let address = if kind & PEER_IPV6 == 0 {
            IpAddr::from(fields.array::<4>()?)
        } else {
            IpAddr::from(fields.array::<16>()?)
        };
        let asn = if kind & PEER_FOUR_OCTET == 0 { u32::from(fields.u16()?) } else { fields.u32()? };
        self.rest = fields;
        self.count = left;
        Some(Peer { router_id, address, asn: Asn(asn) })
    }
}

/// A destination with its paths.
#[derive(Copy, Clone, Debug)]
pub struct Rib<'a> {
    /// The record's number in the table.
    pub sequence: u32,
    /// The destination.
    pub nlri: Nlri,
    /// The label of its paths, in a family that has labels.
    pub label: Option<Label>,
    entries: Entries<'a>,
}

impl<'a> Rib<'a> {
    /// Reads the body of a record; `None` for a subtype or family that is not read.
    pub(super) fn parse(subtype: u16, body: &'a [u8]) -> Result<Option<Self>, MrtFault> {
        let mut fields = Fields(body);
        let (family, path_ids) = match subtype {
            RIB_IPV4_UNICAST => (Family::Ipv4Unicast, false),
            RIB_IPV6_UNICAST => (Family::Ipv6Unicast, false),
            RIB_IPV4_UNICAST_ADDPATH => (Family::Ipv4Unicast, true),
            RIB_IPV6_UNICAST_ADDPATH => (Family::Ipv6Unicast, true),
            RIB_GENERIC | RIB_GENERIC_ADDPATH => {
                return Self::generic(fields, subtype == RIB_GENERIC_ADDPATH);
            }
            _ => return Ok(None),
        };
        let sequence = fields.u32().ok_or(MrtFault::Short)?;
        Self::read(sequence, family, fields, path_ids, false).map(Some)
    }

    fn generic(mut fields: Fields<'a>, path_ids: bool) -> Result<Option<Self>, MrtFault> {
        let mut head = || Some((fields.u32()?, fields.u16()?, fields.u8()?));
        let (sequence, afi, safi) = head().ok_or(MrtFault::Short)?;
        let Some(family) = Family::from_afi_safi(afi, safi) else { return Ok(None) };
        // With the path identifier before the prefix, as RFC 8050 has it, or in the entries.
        let read = Self::read(sequence, family, fields, false, path_ids);
        match read {
            Err(_) if path_ids => Self::read(sequence, family, fields, true, false).or(read),
            read => read,
        }
        .map(Some)
    }

    fn read(
        sequence: u32,
        family: Family,
        mut fields: Fields<'a>,
        path_ids: bool,
        path_id_first: bool,
    ) -> Result<Self, MrtFault> {
        let path_id = if path_id_first { Some(PathId(fields.u32().ok_or(MrtFault::Short)?)) } else { None };
        let (nlri, label) = prefix(family, &mut fields).ok_or(MrtFault::Prefix)?;
        let count = fields.u16().ok_or(MrtFault::Short)?;
        let entries = Entries { rest: fields, count, family, path_ids, path_id };
        let mut walk = entries;
        let read = walk.by_ref().count();
        if walk.count > 0 {
            return Err(MrtFault::Path(read as u16));
        }
        if !walk.rest.0.is_empty() {
            return Err(MrtFault::LeftOver(walk.rest.0.len()));
        }
        Ok(Self { sequence, nlri, label, entries })
    }

    /// Its paths.
    #[must_use]
    pub const fn entries(&self) -> Entries<'a> {
        self.entries
    }
}

/// Takes a destination of a family off the front.
fn prefix(family: Family, fields: &mut Fields<'_>) -> Option<(Nlri, Option<Label>)> {
    fn of<K: NlriKey>(fields: &mut Fields<'_>) -> Option<(Nlri, Option<Label>)> {
        let (key, label, rest) = K::split_first(fields.0)?;
        let taken = fields.0.len() - rest.len();
        fields.take(taken)?;
        Some((key.into(), label))
    }
    match family {
        Family::Ipv4Unicast => of::<Ipv4Prefix>(fields),
        Family::Ipv6Unicast => of::<Ipv6Prefix>(fields),
        Family::Ipv4Vpn => of::<VpnIpv4Prefix>(fields),
        Family::Ipv6Vpn => of::<VpnIpv6Prefix>(fields),
        Family::Ipv4SrPolicy => of::<SrPolicy4>(fields),
        Family::Ipv6SrPolicy => of::<SrPolicy6>(fields),
    }
}

/// Iterates over the paths of a destination.
#[derive(Copy, Clone, Debug)]
pub struct Entries<'a> {
    rest: Fields<'a>,
    count: u16,
    family: Family,
    path_ids: bool,
    /// That of all paths, where it stands before the prefix.
    path_id: Option<PathId>,
}

/// A path to a destination.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The number of its peer in the table's [`PeerIndex`], which may have no such peer.
    pub peer: u16,
    /// When it came, in seconds since 1970.
    pub originated: u32,
    /// Its path identifier, where the record has such.
    pub path_id: Option<PathId>,
    /// Its attributes; AS numbers have four octets.
    pub attrs: TableAttrs<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let left = self.count.checked_sub(1)?;
        let mut fields = self.rest;
        let (peer, originated) = (fields.u16()?, fields.u32()?);
        let path_id = if self.path_ids { Some(PathId(fields.u32()?)) } else { self.path_id };
        let length = usize::from(fields.u16()?);
        let attrs = TableAttrs { octets: fields.take(length)?, family: self.family, four_octet: true };
        self.rest = fields;
        self.count = left;
        Some(Entry { peer, originated, path_id, attrs })
    }
}
