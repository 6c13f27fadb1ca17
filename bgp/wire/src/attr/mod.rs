//! Path attributes: the table of those we know, one file for each, and the canonical form of a set of them.
//!
//! [`decode()`] checks the attributes of an UPDATE with RFC 7606 in one pass and writes the **canonical
//! form**: 4-octet AS numbers, ascending type codes, the shortest headers, without what belongs to the
//! message and not to the route (NEXT_HOP, MP_REACH_NLRI, MP_UNREACH_NLRI). [`Canonical`] reads it,
//! [`AttrFacts`] is what route selection wants to know of it, [`Builder`] makes and changes it, [`encode()`]
//! turns it into what a peer is sent.
//!
//! An attribute we do not know is kept if it is optional and transitive, with the Partial bit set, and
//! dropped if it is optional and not transitive (RFC 4271 section 5).
//!
//! *Absent on purpose:* what a value means for a route. Attributes are never copied between peers here.

pub mod aggregator;
pub mod as_path;
mod atomic_aggregate;
mod build;
mod canonical;
mod cluster_list;
pub mod community;
mod decode;
mod encode;
pub mod ext_community;
mod facts;
pub mod large_community;
mod local_pref;
mod med;
pub(crate) mod mp_reach;
pub(crate) mod mp_unreach;
pub mod next_hop;
mod only_to_customer;
pub mod origin;
mod originator;
pub mod prefix_sid;
mod raw;
mod row;
pub mod tunnel_encap;
mod unknown;

pub use aggregator::Aggregator;
pub use as_path::{AsPath, Segment, SegmentKind};
pub use build::Builder;
pub use canonical::Canonical;
pub use community::Community;
pub use decode::{DecodeCtx, Decoded, decode};
pub use encode::encode;
pub use ext_community::ExtCommunity;
pub use facts::{AttrFacts, FactFlags};
pub use large_community::LargeCommunity;
pub use mp_reach::MpReach;
pub use mp_unreach::MpUnreach;
pub use next_hop::NextHop;
pub use origin::Origin;
pub use prefix_sid::PrefixSid;
pub use raw::{AttrFlags, AttrIter, RawAttr};
pub use tunnel_encap::TunnelEncap;

use crate::error::Consequence::{DiscardAttribute, TreatAsWithdraw};
pub(crate) use row::{Class, Row, Sender, Size};

/// Type codes of the attributes that we know.
pub mod code {
    /// ORIGIN (RFC 4271 section 5.1.1).
    pub const ORIGIN: u8 = 1;
    /// AS_PATH (RFC 4271 section 5.1.2).
    pub const AS_PATH: u8 = 2;
    /// NEXT_HOP (RFC 4271 section 5.1.3).
    pub const NEXT_HOP: u8 = 3;
    /// MULTI_EXIT_DISC (RFC 4271 section 5.1.4).
    pub const MED: u8 = 4;
    /// LOCAL_PREF (RFC 4271 section 5.1.5).
    pub const LOCAL_PREF: u8 = 5;
    /// ATOMIC_AGGREGATE (RFC 4271 section 5.1.6).
    pub const ATOMIC_AGGREGATE: u8 = 6;
    /// AGGREGATOR (RFC 4271 section 5.1.7).
    pub const AGGREGATOR: u8 = 7;
    /// COMMUNITIES (RFC 1997).
    pub const COMMUNITIES: u8 = 8;
    /// ORIGINATOR_ID (RFC 4456).
    pub const ORIGINATOR_ID: u8 = 9;
    /// CLUSTER_LIST (RFC 4456).
    pub const CLUSTER_LIST: u8 = 10;
    /// MP_REACH_NLRI (RFC 4760).
    pub const MP_REACH_NLRI: u8 = 14;
    /// MP_UNREACH_NLRI (RFC 4760).
    pub const MP_UNREACH_NLRI: u8 = 15;
    /// EXTENDED COMMUNITIES (RFC 4360).
    pub const EXT_COMMUNITIES: u8 = 16;
    /// AS4_PATH (RFC 6793).
    pub const AS4_PATH: u8 = 17;
    /// AS4_AGGREGATOR (RFC 6793).
    pub const AS4_AGGREGATOR: u8 = 18;
    /// TUNNEL_ENCAPSULATION (RFC 9012).
    pub const TUNNEL_ENCAP: u8 = 23;
    /// LARGE_COMMUNITY (RFC 8092).
    pub const LARGE_COMMUNITIES: u8 = 32;
    /// ONLY_TO_CUSTOMER (RFC 9234).
    pub const ONLY_TO_CUSTOMER: u8 = 35;
    /// PREFIX_SID (RFC 8669).
    pub const PREFIX_SID: u8 = 40;
}

/// The attribute table: one row for each attribute we know, in the order of its codes. Columns: code, name,
/// flags that its type asks for, size rule, from whom it is taken, what follows if it is malformed (for flags
/// that contradict the type it is always treat-as-withdraw, RFC 7606 section 3(c)), and the check of its
/// value.
///
/// The two multiprotocol attributes are read when the UPDATE is cut into its sections (`mp_reach.rs`,
/// `mp_unreach.rs`), since their faults end the session; their rows say their names and flags.
#[rustfmt::skip]
static TABLE: [Row; 19] = [
    Row::new(code::ORIGIN,            "ORIGIN",               Class::WellKnown,     Size::Exact(1),     Sender::Anyone,   TreatAsWithdraw,  origin::check),
    Row::new(code::AS_PATH,           "AS_PATH",              Class::WellKnown,     Size::Any,          Sender::Anyone,   TreatAsWithdraw,  as_path::check_as_path),
    Row::new(code::NEXT_HOP,          "NEXT_HOP",             Class::WellKnown,     Size::Exact(4),     Sender::Anyone,   TreatAsWithdraw,  next_hop::check),
    Row::new(code::MED,               "MULTI_EXIT_DISC",      Class::NonTransitive, Size::Exact(4),     Sender::Anyone,   TreatAsWithdraw,  row::anything),
    Row::new(code::LOCAL_PREF,        "LOCAL_PREF",           Class::WellKnown,     Size::Exact(4),     Sender::Internal, TreatAsWithdraw,  row::anything),
    Row::new(code::ATOMIC_AGGREGATE,  "ATOMIC_AGGREGATE",     Class::WellKnown,     Size::Exact(0),     Sender::Anyone,   DiscardAttribute, row::anything),
    Row::new(code::AGGREGATOR,        "AGGREGATOR",           Class::Transitive,    Size::Any,          Sender::Anyone,   DiscardAttribute, aggregator::check_aggregator),
    Row::new(code::COMMUNITIES,       "COMMUNITIES",          Class::Transitive,    Size::Multiple(4),  Sender::Anyone,   TreatAsWithdraw,  row::anything),
    Row::new(code::ORIGINATOR_ID,     "ORIGINATOR_ID",        Class::NonTransitive, Size::Exact(4),     Sender::Internal, TreatAsWithdraw,  row::anything),
    Row::new(code::CLUSTER_LIST,      "CLUSTER_LIST",         Class::NonTransitive, Size::Multiple(4),  Sender::Internal, TreatAsWithdraw,  row::anything),
    Row::new(code::MP_REACH_NLRI,     "MP_REACH_NLRI",        Class::NonTransitive, Size::Any,          Sender::Anyone,   TreatAsWithdraw,  row::anything),
    Row::new(code::MP_UNREACH_NLRI,   "MP_UNREACH_NLRI",      Class::NonTransitive, Size::Any,          Sender::Anyone,   TreatAsWithdraw,  row::anything),
    Row::new(code::EXT_COMMUNITIES,   "EXTENDED_COMMUNITIES", Class::Transitive,    Size::Multiple(8),  Sender::Anyone,   TreatAsWithdraw,  row::anything),
    Row::new(code::AS4_PATH,          "AS4_PATH",             Class::Transitive,    Size::Any,          Sender::TwoOctet, DiscardAttribute, as_path::check_as4_path),
    Row::new(code::AS4_AGGREGATOR,    "AS4_AGGREGATOR",       Class::Transitive,    Size::Exact(8),     Sender::TwoOctet, DiscardAttribute, aggregator::check_as4_aggregator),
    Row::new(code::TUNNEL_ENCAP,      "TUNNEL_ENCAPSULATION", Class::Transitive,    Size::Any,          Sender::Anyone,   TreatAsWithdraw,  tunnel_encap::check),
    Row::new(code::LARGE_COMMUNITIES, "LARGE_COMMUNITIES",    Class::Transitive,    Size::Multiple(12), Sender::Anyone,   TreatAsWithdraw,  row::anything),
    Row::new(code::ONLY_TO_CUSTOMER,  "ONLY_TO_CUSTOMER",     Class::Transitive,    Size::Exact(4),     Sender::Anyone,   TreatAsWithdraw,  row::anything),
    Row::new(code::PREFIX_SID,        "PREFIX_SID",           Class::Transitive,    Size::Any,          Sender::Anyone,   DiscardAttribute, prefix_sid::check),
];

/// The row of a code, if it is one that we know.
#[inline]
pub(crate) fn row(code: u8) -> Option<&'static Row> {
    TABLE.get(usize::from(*row::PLACES.get(usize::from(code))?))
}

/// An attribute's name: that of its RFC, or `unknown`.
#[must_use]
pub fn name(code: u8) -> &'static str {
    row(code).map_or("unknown", |row| row.name)
}
