//! What executors are asked to do, and how it can fail.

mod ike;
mod nat;
mod srv6;
mod wireguard;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_core::Family;
use bgp_core::command::Command;
use ipnet::IpNet;

pub use ike::{IkeAction, IkeRequest, profile_ends, profile_name};
pub use nat::NatAction;

use crate::desired::{Tunnel, VxlanKey};
use crate::event::{FibPath, FibSourceId, SwIfIndex};
use crate::model::TableId;

pub use srv6::Srv6Action;
pub use wireguard::WireguardAction;

/// The name of our FIB source, which marks routes as ours.
pub const SOURCE_NAME: &str = "peregrine";

/// What the tags of our tunnels begin with; the kind and an address follow.
pub const TUNNEL_TAG: &str = "peregrine ";

/// The tag of a tunnel, at most 63 octets: what VPP bears.
#[must_use]
pub fn tag(tunnel: &Tunnel) -> Arc<str> {
    match tunnel {
        Tunnel::Ipip(key) => format!("{TUNNEL_TAG}ipip {}", key.remote),
        Tunnel::Vxlan(key) => format!("{TUNNEL_TAG}vxlan {}", key.remote),
        Tunnel::Wireguard(key) => format!("{TUNNEL_TAG}wireguard {}", key.local),
    }
    .into()
}

/// The address that a tunnel has of its own where it can't borrow any: one that no other interface has, of a range that nobody
/// sends to from elsewhere (RFC 3927, RFC 4193).
#[must_use]
pub fn own_address(index: SwIfIndex, family: Family) -> IpNet {
    let SwIfIndex(number) = index;
    if family.is_ipv4() {
        let [.., third, fourth] = number.to_be_bytes();
        IpAddr::from([169, 254, third, fourth]).into()
    } else {
        let [high, low] = [(number >> 16) as u16, number as u16];
        IpAddr::from([0xfd9c, 0x3e5b, 0x10a7, 0, 0, 0, high, low]).into()
    }
}

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
    /// Delete a table of a network, in which nothing of ours is left. [`VppFailure::Absent`] if there is none.
    DelTable {
        /// Its id.
        table: TableId,
        /// Its family.
        family: Family,
    },
    /// Give an interface an address.
    SetAddress {
        /// The interface.
        index: SwIfIndex,
        /// The address, as a prefix of one host.
        address: IpNet,
    },
    /// Learn where packets of a family go when they come out of a VXLAN tunnel. Answered by
    /// [`VppReply::Index`](crate::event::VppReply::Index).
    AddDecapNext {
        /// The family.
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
    /// Make a VXLAN tunnel. Answered by [`VppReply::SwIfIndex`](crate::event::VppReply::SwIfIndex);
    /// [`VppFailure::Taken`] if there is one already.
    AddVxlan {
        /// What makes it unique.
        key: VxlanKey,
        /// Where packets go when they come out of it, as VPP said to [`VppAction::AddDecapNext`].
        decap_next: u32,
    },
    /// Delete a VXLAN tunnel; [`VppFailure::Absent`] if there is none.
    DelVxlan {
        /// What makes it unique.
        key: VxlanKey,
        /// Where packets go when they come out of it.
        decap_next: u32,
    },
    /// Something about WireGuard.
    Wireguard(WireguardAction),
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
    /// Have packets of an interface pass source NAT and service translation.
    SetCnat {
        /// The interface.
        index: SwIfIndex,
    },
    /// Set the largest IP packet that an interface takes.
    SetMtu {
        /// The interface.
        index: SwIfIndex,
        /// Octets.
        mtu: u32,
    },
    /// Say in which table packets from an interface are looked up.
    SetVrf {
        /// The interface.
        index: SwIfIndex,
        /// Of which family.
        family: Family,
        /// The table.
        table: TableId,
    },
    /// Do something about SRv6.
    Srv6(Srv6Action),
    /// Set an interface administratively up.
    SetUp {
        /// The interface.
        index: SwIfIndex,
    },
    /// Something about IKEv2.
    Ike(IkeAction),
    /// Something about source NAT.
    Nat(NatAction),
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
    /// Remove another agent's route, which stands under VPP's own source; [`VppFailure::Absent`] counts as success.
    DelOther {
        /// Its table.
        table: TableId,
        /// Its destination.
        prefix: IpNet,
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
    /// VPP has such an object, which it had not when it was last read, and does not say which: everything is read anew.
    Taken,
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
            Self::Taken => f.write_str("somebody else has made one meanwhile"),
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
