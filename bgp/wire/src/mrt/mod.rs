//! Recorded routes and messages: the MRT format of route collectors and of daemons' dumps.
//!
//! [`Reader`] cuts the octets of a file into records and reads them where they stand; who reads a stream cuts with
//! [`RawRecord::split_first`]. [`TableWriter`] writes a table. A table names its peers once, at its beginning
//! ([`PeerIndex`]), and every path by the number of its peer there.
//!
//! | read | written |
//! |---|---|
//! | TABLE_DUMP_V2, with and without path identifiers: unicast, and VPNs and SR policies as RIB_GENERIC | the same |
//! | TABLE_DUMP | |
//! | BGP4MP and BGP4MP_ET: messages and changes of state | |
//!
//! Records of other types, and of families that we do not speak, are passed over as [`Body::Other`]. A record that is
//! not what it claims is a [`MrtError`] that says where; the records behind it can still be read, unless its own
//! length is the lie.
//!
//! *Absent on purpose:* files, compression, and any memory of earlier records.
//!
//! RFCs: 6396 (MRT), 8050 (path identifiers). The attributes of a table are those of a message with two exceptions: AS
//! numbers have four octets, and MP_REACH_NLRI holds the next hop alone (RFC 6396 section 4.3.4); tables that have all
//! of it are read too. For RIB_GENERIC_ADDPATH, where RFC 8050 puts the path identifier into the NLRI and GoBGP and
//! OpenBGPD put it into the entries, both are read, and written is what the RFC says.

mod attrs;
mod error;
mod message;
mod old;
mod record;
mod table;
mod write;

pub use attrs::TableAttrs;
pub use error::{MrtError, MrtFault, Place};
pub use message::{RecordedMessage, StateChange};
pub use old::OldEntry;
pub use record::{Body, RawRecord, Reader, Record};
pub use table::{Entries, Entry, Peer, PeerIndex, Peers, Rib};
pub use write::{TableError, TablePath, TableWriter};

#[cfg(test)]
mod tests;
