//! What can be wrong with a recorded file, and where.

use std::fmt;

/// Where a record stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Place {
    /// Which record it is, counted from 1.
    pub record: u64,
    /// How many octets stand before it, after unpacking.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} at octet {}", self.record, self.offset)
    }
}

/// A record that cannot be read.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct MrtError {
    /// Which record.
    pub place: Place,
    /// What is wrong with it.
    pub fault: MrtFault,
}

/// What is wrong with a record.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MrtFault {
    /// The file ends inside a record. Nothing behind it can be read.
    #[error("the file ends inside it: {needed} octets are needed, {left} are left")]
    Truncated {
        /// Octets of the record, its header included.
        needed: u64,
        /// Octets that there are.
        left: u64,
    },
    /// It claims to be longer than [`super::RawRecord::MAX_LEN`]. Nothing behind it can be read.
    #[error("it claims {0} octets, which no record has")]
    TooLong(u32),
    /// It ends inside its own fixed part.
    #[error("it is too short for its type")]
    Short,
    /// The peer of this number, counted from 0, runs past the end of PEER_INDEX_TABLE.
    #[error("peer {0} runs past its end")]
    Peer(u16),
    /// Its prefix is none of its family.
    #[error("its prefix cannot be read")]
    Prefix,
    /// The path of this number, counted from 0, runs past the end.
    #[error("path {0} runs past its end")]
    Path(u16),
    /// It has more octets than it accounts for.
    #[error("{0} octets are left over at its end")]
    LeftOver(usize),
    /// An address family that a peer cannot have.
    #[error("address family {0} of a peer")]
    PeerFamily(u16),
}

impl MrtFault {
    /// Whether nothing behind the record can be read, as nobody knows where it ends.
    #[must_use]
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::TooLong(_))
    }
}
