//! BGP-4 messages: bytes ⇄ values, and nothing else.
//!
//! A byte stream is cut into frames ([`frame`]), a frame becomes a [`message::Message`]; an UPDATE becomes an
//! [`update::UpdateView`], borrowed from the received bytes and checked when it is built, so that its
//! accessors cannot fail. Path attributes are decoded in one pass ([`attr::decode`]) into the *canonical
//! form*, the one encoding in which the rest of the speaker keeps, compares and sends attribute sets.
//! [`pack`] writes UPDATEs. [`mrt`] reads and writes recorded tables, and reads recorded messages.
//!
//! Every fault carries its consequence ([`error`]): the parser that sees it decides between session reset,
//! treat-as-withdraw and attribute discard (RFC 7606), and nobody decides again.
//!
//! *Absent on purpose:* sockets, clocks, sessions, routes, policy; anything that allocates per prefix or per
//! received message.
//!
//! RFCs: 4271, 4760 and 2545 (IPv6), 4364, 4659 and 8277 (VPNs and labels), 9830 (SR policies), 5492 and 9072 (capabilities), 2918 and 7313 (route refresh), 6793
//! (4-octet AS numbers), 7606 and 7607 (error handling), 7911 (path identifiers), 8654 (long messages), 8950
//! (IPv6 next hops of IPv4 prefixes), 9234 (role), 1997,
//! 4360, 8092 (communities), 4456 (reflection), 9012 (tunnels), 9830 (SR policies), 8669 (prefix SIDs), 4724 and 9494 (restart), 4486, 6608, 8538, 9003, 9687
//! (NOTIFICATION).

pub mod asn;
pub mod attr;
pub mod capability;
pub mod error;
pub mod family;
pub mod frame;
pub mod message;
pub mod mrt;
pub mod negotiated;
pub mod nlri;
pub mod notification;
pub mod open;
pub mod pack;
pub mod refresh;
pub mod router_id;
pub mod update;

pub use asn::Asn;
pub use attr::next_hop::NextHop;
pub use capability::{Capability, Role};
pub use error::{AttrFault, AttrProblem, Consequence, Fault, WireError};
pub use family::{Family, FamilySet};
pub use frame::{
    EXTENDED_MAX_LEN, Frame, HEADER_LEN, MAX_LEN, MessageType, Whole, split_message, whole_messages,
};
pub use message::{Message, parse_message};
pub use negotiated::Negotiated;
pub use nlri::{
    Ipv4Prefix, Ipv6Prefix, Label, Nlri, NlriKey, NlriParseError, PathId, Prefixes, RouteDistinguisher,
    SrPolicy4, SrPolicy6, VpnIpv4Prefix, VpnIpv6Prefix,
};
pub use notification::{Notification, Reason};
pub use open::Open;
pub use pack::{EncodeOptions, PackError, Packed, UpdateWriter};
pub use refresh::RouteRefresh;
pub use router_id::RouterId;
pub use update::UpdateView;
