//! What executors are asked to do, and how it can fail.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_core::Family;
use bgp_core::command::Command;
use ipnet::IpNet;

use crate::event::{FibPath, FibSourceId, SwIfIndex};
use crate::model::TableId;

/// What the tags of our tunnels begin with; the remote address follows.
pub const TUNNEL_TAG: &str = "peregrine ipip ";

/// Number of an operation, never given out twice by one engine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u64);

/// One operation for VPP. Operations must be carried out in the order in which they were handed over; each must be
/// answered by [`VppEvent::Done`](crate::event::VppEvent::Done) unless the connection is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VppOp {
    /// Its number, for the answer.
    pub id: OpId,
    /// What to do.
    pub action: VppAction,
}

/// What to do in VPP. Indices are those of the connection's generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VppAction {
    /// Read everything that [`Dump`](crate::event::Dump) lists. Nothing else is in flight meanwhile. Answered by
    /// [`VppReply::Dump`](crate::event::VppReply::Dump).
    Dump,
    /// Make a FIB source with our name, ranked below VPP's own API source. Answered by
    /// [`VppReply::FibSource`](crate::event::VppReply::FibSource).
    AddFibSource,
    /// Make a table.
    AddTable {
        /// Its id.
        table: TableId,
        /// Its family.
        family: Family,
    },
    /// Make an IPIP tunnel whose outer addresses are looked up in the main table. Answered by
    /// [`VppReply::SwIfIndex`](crate::event::VppReply::SwIfIndex); [`VppFailure::Exists`] if there is one already.
    AddIpip {
        /// Outer source.
        local: IpAddr,
        /// Outer destination.
        remote: IpAddr,
    },
    /// Delete an IPIP tunnel; [`VppFailure::Absent`] if there is none.
    DelIpip {
        /// Its interface.
        index: SwIfIndex,
    },
    /// Put a tag on an interface.
    SetTag {
        /// The interface.
        index: SwIfIndex,
        /// The tag, at most 63 bytes.
        tag: Arc<str>,
    },
    /// Let an interface borrow the addresses of another one.
    SetUnnumbered {
        /// The borrower.
        index: SwIfIndex,
        /// The lender.
        lender: SwIfIndex,
    },
    /// Turn generic segmentation offload on.
    SetGso {
        /// The interface.
        index: SwIfIndex,
    },
    /// Set an interface administratively up.
    SetUp {
        /// The interface.
        index: SwIfIndex,
    },
    /// Add a route, or replace all its paths, in one message.
    PutRoute {
        /// Who it belongs to.
        source: FibSourceId,
        /// Its table.
        table: TableId,
        /// Its destination, host bits cleared.
        prefix: IpNet,
        /// Its paths; at least one. Shared between routes.
        paths: Arc<[FibPath]>,
    },
    /// Remove a route of ours; [`VppFailure::Absent`] counts as success.
    DelRoute {
        /// Who it belongs to.
        source: FibSourceId,
        /// Its table.
        table: TableId,
        /// Its destination.
        prefix: IpNet,
    },
}

/// How an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VppFailure {
    /// The object exists already, with this interface (`ipip_add_tunnel` answered -79). It is adopted.
    Exists(SwIfIndex),
    /// The object to be deleted isn't there.
    Absent,
    /// VPP said no for now, or said something unknown: tried again for ever, with growing pauses.
    Retry(Retval),
    /// VPP will say no until the request is another one: tried again when something about the object changes.
    Rejected(Retval),
    /// VPP doesn't know the message: as rejected, until the next connection.
    Unsupported(Arc<str>),
    /// No answer came in time: nobody knows whether it was carried out, so everything is read anew.
    Unanswered,
}

impl fmt::Display for VppFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists(index) => write!(f, "exists as interface {}", index.0),
            Self::Absent => f.write_str("not there"),
            Self::Retry(retval) | Self::Rejected(retval) => retval.fmt(f),
            Self::Unsupported(message) => write!(f, "this VPP has no {message}"),
            Self::Unanswered => f.write_str("no answer in time"),
        }
    }
}

/// A return value of VPP with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retval {
    /// The number.
    pub value: i32,
    /// Its name; empty where it has none.
    pub name: Arc<str>,
}

impl fmt::Display for Retval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(f, "VPP answered {}", self.value)
        } else {
            write!(f, "VPP answered {} ({})", self.value, self.name)
        }
    }
}

/// One command for the speaker. Commands must be carried out in order.
#[derive(Clone, Debug, PartialEq)]
pub struct SpeakerOp {
    /// Its number, for the answer.
    pub id: OpId,
    /// The command.
    pub command: Command,
}
