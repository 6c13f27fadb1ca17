//! Writing a table as TABLE_DUMP_V2.

use super::{
    Peer,
    record::TABLE_DUMP_V2,
    table::{
        PEER_FOUR_OCTET, PEER_INDEX_TABLE, PEER_IPV6, RIB_GENERIC, RIB_GENERIC_ADDPATH, RIB_IPV4_UNICAST,
        RIB_IPV4_UNICAST_ADDPATH, RIB_IPV6_UNICAST, RIB_IPV6_UNICAST_ADDPATH,
    },
};
use crate::{
    attr::{self, AttrFlags, Canonical, NextHop, RawAttr, code},
    family::Family,
    nlri::{Label, Nlri, PathId},
    router_id::RouterId,
};
use std::net::{IpAddr, Ipv4Addr};

/// What cannot be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A table has at most 65535 peers.
    #[error("{0} peers are more than the format can number")]
    TooManyPeers(usize),
    /// The name of a table has at most 65535 octets.
    #[error("a name of {0} octets is too long")]
    NameTooLong(usize),
    /// Attributes of a path have at most 65535 octets.
    #[error("a path to {nlri} has {octets} octets of attributes, more than the format can hold")]
    AttributesTooLong {
        /// Whose.
        nlri: Nlri,
        /// How many they are.
        octets: usize,
    },
}

/// A path as it is to be written.
#[derive(Copy, Clone, Debug)]
pub struct TablePath<'a> {
    /// The number of its peer, counted from 0.
    pub peer: u16,
    /// When it came, in seconds since 1970.
    pub originated: u32,
    /// Its path identifier, if its session has such.
    pub path_id: Option<PathId>,
    /// Its label, in a family that has labels.
    pub label: Option<Label>,
    /// Its next hop; without one it gets the unspecified address, as a route of the recorder's own.
    pub next_hop: Option<NextHop>,
    /// Its attributes.
    pub attrs: Canonical<'a>,
}

/// Writes the records of a table: its peers, then its destinations.
#[derive(Clone, Debug)]
pub struct TableWriter {
    timestamp: u32,
    pub(super) sequence: u32,
    /// The attributes of a path while they are put together.
    section: Vec<u8>,
}

impl TableWriter {
    /// A table as it was at a time, in seconds since 1970.
    #[must_use]
    pub const fn new(timestamp: u32) -> Self {
        Self { timestamp, sequence: 0, section: Vec::new() }
    }

    /// Appends the peers, which come first and once. They are numbered from 0, in this order.
    ///
    /// # Errors
    /// There are too many, or `view`, the table's name, is too long; nothing has been written.
    pub fn peers(
        &self,
        collector: RouterId,
        view: &str,
        peers: &[Peer],
        out: &mut Vec<u8>,
    ) -> Result<(), TableError> {
        let count = u16::try_from(peers.len()).map_err(|_| TableError::TooManyPeers(peers.len()))?;
        let name = u16::try_from(view.len()).map_err(|_| TableError::NameTooLong(view.len()))?;
        let start = self.begin(PEER_INDEX_TABLE, out);
        out.extend_from_slice(&collector.octets());
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(view.as_bytes());
        out.extend_from_slice(&count.to_be_bytes());
        for peer in peers {
            out.push(PEER_FOUR_OCTET | if peer.address.is_ipv6() { PEER_IPV6 } else { 0 });
            out.extend_from_slice(&peer.router_id.octets());
            match peer.address {
                IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
                IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
            }
            out.extend_from_slice(&peer.asn.0.to_be_bytes());
        }
        end(start, out);
        Ok(())
    }

    /// Appends a destination with its paths. Those with path identifiers, and those with a label each, take records of
    /// their own; without paths nothing is written.
    ///
    /// # Errors
    /// A path whose attributes are too long; none of the paths has been written.
    pub fn destination(
        &mut self,
        nlri: Nlri,
        paths: &[TablePath<'_>],
        out: &mut Vec<u8>,
    ) -> Result<(), TableError> {
        let before = (self.sequence, out.len());
        let written = self.records(nlri, paths, out);
        if written.is_err() {
            self.sequence = before.0;
            out.truncate(before.1);
        }
        written
    }

    fn records(&mut self, nlri: Nlri, paths: &[TablePath<'_>], out: &mut Vec<u8>) -> Result<(), TableError> {
        let unicast = match nlri.family() {
            Family::Ipv4Unicast => Some((RIB_IPV4_UNICAST, RIB_IPV4_UNICAST_ADDPATH)),
            Family::Ipv6Unicast => Some((RIB_IPV6_UNICAST, RIB_IPV6_UNICAST_ADDPATH)),
            Family::Ipv4Vpn | Family::Ipv6Vpn | Family::Ipv4SrPolicy | Family::Ipv6SrPolicy => None,
        };
        let Some((plain, with_ids)) = unicast else {
            for path in paths {
                self.generic(nlri, path, out)?;
            }
            return Ok(());
        };
        for (subtype, ids) in [(plain, false), (with_ids, true)] {
            let mut rest = paths.iter().filter(|path| path.path_id.is_some() == ids).peekable();
            while rest.peek().is_some() {
                let start = self.begin(subtype, out);
                out.extend_from_slice(&self.next_sequence());
                out.extend_from_slice(&nlri.octets(None));
                let at = out.len();
                out.extend_from_slice(&[0, 0]);
                let mut count = 0_u16;
                for path in rest.by_ref().take(usize::from(u16::MAX)) {
                    self.entry(nlri, path, ids, out)?;
                    count += 1;
                }
                if let Some(place) = out.get_mut(at..at + 2) {
                    place.copy_from_slice(&count.to_be_bytes());
                }
                end(start, out);
            }
        }
        Ok(())
    }

    /// A record of one path: the label, and the path identifier, belong to its NLRI.
    fn generic(&mut self, nlri: Nlri, path: &TablePath<'_>, out: &mut Vec<u8>) -> Result<(), TableError> {
        let subtype = if path.path_id.is_some() { RIB_GENERIC_ADDPATH } else { RIB_GENERIC };
        let start = self.begin(subtype, out);
        out.extend_from_slice(&self.next_sequence());
        out.extend_from_slice(&nlri.family().afi().to_be_bytes());
        out.push(nlri.family().safi());
        if let Some(id) = path.path_id {
            out.extend_from_slice(&id.0.to_be_bytes());
        }
        out.extend_from_slice(&nlri.octets(path.label));
        out.extend_from_slice(&[0, 1]);
        self.entry(nlri, path, false, out)?;
        end(start, out);
        Ok(())
    }

    fn entry(
        &mut self,
        nlri: Nlri,
        path: &TablePath<'_>,
        with_id: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), TableError> {
        self.section.clear();
        put_attributes(nlri.family(), path, &mut self.section);
        let octets = self.section.len();
        let length = u16::try_from(octets).map_err(|_| TableError::AttributesTooLong { nlri, octets })?;
        out.extend_from_slice(&path.peer.to_be_bytes());
        out.extend_from_slice(&path.originated.to_be_bytes());
        if with_id {
            out.extend_from_slice(&path.path_id.unwrap_or_default().0.to_be_bytes());
        }
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.section);
        Ok(())
    }

    fn next_sequence(&mut self) -> [u8; 4] {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        sequence.to_be_bytes()
    }

    /// Begins a record; gives where its header stands.
    fn begin(&self, subtype: u16, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&TABLE_DUMP_V2.to_be_bytes());
        out.extend_from_slice(&subtype.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        start
    }
}

/// Puts the length of a record in, now that it is whole.
fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start).saturating_sub(super::RawRecord::HEADER_LEN);
    if let Some(place) = out.get_mut(start + 8..start + 12) {
        place.copy_from_slice(&(length as u32).to_be_bytes());
    }
}

/// The attributes of a path with its next hop, in ascending order of their codes.
fn put_attributes(family: Family, path: &TablePath<'_>, out: &mut Vec<u8>) {
    let own = match family {
        Family::Ipv4Unicast | Family::Ipv4Vpn | Family::Ipv4SrPolicy => NextHop::from(Ipv4Addr::UNSPECIFIED),
        Family::Ipv6Unicast | Family::Ipv6Vpn | Family::Ipv6SrPolicy => {
            NextHop::from(std::net::Ipv6Addr::UNSPECIFIED)
        }
    };
    let hop = path.next_hop.unwrap_or(own);
    if let (Family::Ipv4Unicast, NextHop::V4(hop)) = (family, hop) {
        return attr::encode(path.attrs, Some(hop), true, out);
    }
    let mut value = vec![0];
    value.extend_from_slice(&hop.octets(family));
    // At most 48.
    let length = (value.len() - 1) as u8;
    if let Some(first) = value.first_mut() {
        *first = length;
    }
    let mut hop = Some(value);
    for attr in path.attrs.attrs() {
        if attr.code > code::MP_REACH_NLRI
            && let Some(value) = hop.take()
        {
            RawAttr::write(out, AttrFlags::OPTIONAL, code::MP_REACH_NLRI, &value);
        }
        out.extend_from_slice(attr.raw);
    }
    if let Some(value) = hop {
        RawAttr::write(out, AttrFlags::OPTIONAL, code::MP_REACH_NLRI, &value);
    }
}
