//! A table as MRT, for `/v1/routes?format=mrt` (TABLE_DUMP_V2, RFC 6396 and 8050).
//!
//! The peers of the table are the neighbours there are when the answer begins, behind this speaker itself, which is peer 0
//! with an unspecified address. What a neighbour says that comes later is not in it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use bgp_core::peer_key::PeerKey;
use bgp_core::query::{PathEntry, PeerStatus, RouteEntry};
use bgp_core::{Asn, RouterId};
use bgp_wire::attr::Canonical;
use bgp_wire::mrt::{Peer, TableError, TablePath, TableWriter};

/// Writes a table.
pub(super) struct Recorder {
    writer: TableWriter,
    peers: BTreeMap<PeerKey, u16>,
    /// Seconds since 1970.
    now: u32,
}

impl Recorder {
    /// Begins a table: appends the peers.
    ///
    /// # Errors
    /// There are more neighbours than the format can number.
    pub(super) fn begin(
        (asn, router_id): (Asn, RouterId),
        neighbors: &[PeerStatus],
        now: u32,
        out: &mut Vec<u8>,
    ) -> Result<Self, TableError> {
        let own = Peer { router_id, address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), asn };
        let all = neighbors.iter().map(|neighbor| Peer {
            router_id: neighbor.remote_router_id.unwrap_or(RouterId(0)),
            address: neighbor.key.address,
            asn: neighbor.remote_asn.unwrap_or(Asn::ZERO),
        });
        let all: Vec<Peer> = [own].into_iter().chain(all).collect();
        let writer = TableWriter::new(now);
        writer.peers(router_id, "", &all, out)?;
        // No more than 65535, as they have been written.
        let peers = neighbors.iter().zip(1..).map(|(neighbor, number)| (neighbor.key, number)).collect();
        Ok(Self { writer, peers, now })
    }

    /// Appends a destination of the table of `neighbor`, or of the Loc-RIB. Of that, paths that may not be used are left
    /// out: nothing in the format could say so.
    pub(super) fn destination(&mut self, neighbor: Option<PeerKey>, entry: &RouteEntry, out: &mut Vec<u8>) {
        let paths = entry.paths.iter().filter(|path| neighbor.is_some() || path.rejected.is_none());
        let paths: Vec<TablePath<'_>> = paths.filter_map(|path| self.path(neighbor, path)).collect();
        if self.writer.destination(entry.nlri, &paths, out).is_ok() {
            return;
        }
        // One of them is longer than the format allows; the others are written.
        for path in paths {
            if let Err(error) = self.writer.destination(entry.nlri, &[path], out) {
                tracing::warn!(%error, "a path is left out of a recorded table");
            }
        }
    }

    fn path<'a>(&self, neighbor: Option<PeerKey>, path: &'a PathEntry) -> Option<TablePath<'a>> {
        let peer = match neighbor.or(path.source) {
            Some(key) => *self.peers.get(&key)?,
            None => 0,
        };
        let age = u32::try_from(path.age.as_secs()).unwrap_or(u32::MAX);
        Some(TablePath {
            peer,
            originated: self.now.saturating_sub(age),
            path_id: path.path_id,
            label: path.attrs.label(),
            next_hop: path.next_hop,
            attrs: Canonical(path.attrs.canonical()),
        })
    }
}
