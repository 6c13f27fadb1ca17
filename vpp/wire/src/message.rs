//! What messages have in common.
//!
//! A message type is its own layout: [`Message::parse`] checks the length (and the counts inside) once and
//! hands out a reference into the receive buffer; `as_bytes` is the way back. A request of fixed size is sent as
//! it is; one with a variable part is written by a small borrowed value ([`Payload`]) straight into the send
//! buffer. Either way the head is blank until the client addresses the frame.

use std::net::IpAddr;

use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::layout::{Described, Layout, Shape};
use crate::name::MsgName;
use crate::retval::Retval;

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asks for one reply.
    Request,
    /// Asks for any number of details; a `control_ping` behind it marks their end.
    Dump,
    /// Asks for any number of details, with a reply behind them that tells whether there are more.
    Stream,
    /// Answers a request.
    Reply,
    /// One answer of a dump.
    Details,
    /// Comes unasked, after a subscription (VPP says event).
    Notice,
}

/// All that is known of a message without its type.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    /// Name and CRC, the key of the table learnt at connect.
    pub name: MsgName,
    /// What it is for.
    pub kind: Kind,
    /// Where the context stands in the payload; `None` in notices.
    pub context_at: Option<usize>,
    /// Its layout.
    pub layout: &'static Layout,
    /// The message that answers it: the reply of a request, the details of a dump or stream.
    pub answer: Option<MsgName>,
    /// The reply behind the details of a stream.
    pub end: Option<MsgName>,
    /// How many bytes of a payload the message takes, if there are enough.
    pub measure: fn(&[u8]) -> Result<usize, ParseError>,
}

/// A message as it lies on the wire, its id first.
pub trait Message: Described + Immutable + IntoBytes + KnownLayout + Unaligned + 'static {
    /// Name, kind and layout.
    const DESCRIPTOR: Descriptor;

    /// Reads a payload in place. Bytes behind the end are ignored, as VPP does. The id is not looked at: whose
    /// payload this is, the caller knows from the connection's table.
    ///
    /// # Errors
    /// [`ParseError`] when the payload is shorter than the fields and counts say.
    fn parse(payload: &[u8]) -> Result<&Self, ParseError>;
}

/// Something that is sent: a fixed message itself, or a value that writes one of variable size.
pub trait Payload {
    /// What is written.
    type Message: Message + ?Sized;

    /// Appends the payload with a blank head (id, handle and context zero).
    fn encode(&self, out: &mut Vec<u8>);
}

impl<M: Message> Payload for M {
    type Message = M;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

/// A request and the type of its reply.
pub trait Request: Payload {
    /// What VPP answers.
    type Reply: Reply + ?Sized;
}

/// A dump and the type of its details.
pub trait Dump: Payload {
    /// What VPP answers, any number of times.
    type Details: Message + ?Sized;
}

/// A stream and the types of its answers. VPP sends as much as it likes and says with the reply where to go on.
pub trait Stream: Payload {
    /// What VPP answers, any number of times.
    type Details: Message + ?Sized;
    /// What comes behind them.
    type End: Cursor;

    /// Where to begin: [`START`], or the cursor of the last reply.
    fn set_cursor(&mut self, cursor: u32);
}

/// The cursor with which a stream begins.
pub const START: u32 = u32::MAX;

/// The reply that ends one part of a stream. A return value of -165 (`EAGAIN`) says that there is more.
pub trait Cursor: Reply {
    /// Where to go on.
    fn cursor(&self) -> u32;
}

/// An answer with a return value.
pub trait Reply: Message {
    /// How it went. [`Retval::OK`] in the few replies that have none.
    fn retval(&self) -> Retval;
}

/// Comes unasked.
pub trait Notice: Message {}

/// A payload that is too short for its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{message} needs {needed} bytes and has {present}")]
pub struct ParseError {
    /// VPP's name of the message.
    pub message: &'static str,
    /// Bytes the fields and counts ask for.
    pub needed: usize,
    /// Bytes there are.
    pub present: usize,
}

/// A request that is not built because VPP would be hurt by it, or answer with an error for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// A route's prefix has bits set behind its length. VPP would take it and never match it again.
    #[error("{0}/{1} has host bits set")]
    HostBits(IpAddr, u8),
    /// Addresses of two families where one is needed.
    #[error("{0} and {1} are of different families")]
    MixedFamilies(IpAddr, IpAddr),
    /// A tunnel from an address to itself.
    #[error("a tunnel needs two different ends, not twice {0}")]
    SameEnds(IpAddr),
    /// A network's number that does not fit VXLAN's header. VPP would take it and use part of it.
    #[error("VNI {0} has more than 24 bits")]
    Vni(u32),
    /// More paths than VPP forwards over, or none in a route to add.
    #[error("a route has 1 to 228 paths, not {0}")]
    Paths(usize),
    /// A text that does not fit its field with the NUL behind it, or has a NUL inside.
    #[error("a text of {length} bytes does not fit a field of {field}")]
    Text {
        /// Bytes of the text.
        length: usize,
        /// Bytes of the field.
        field: usize,
    },
    /// A needed name is empty.
    #[error("a name is needed")]
    NoName,
    /// More labels than a path carries.
    #[error("a path has at most 16 labels, not {0}")]
    Labels(usize),
    /// More elements than the count field can say.
    #[error("{0} elements are more than the message can count")]
    Count(usize),
    /// A route source that would win over VPP's API source (priority 128; lower wins), or is VPP's invalid one.
    #[error("route source priority {0} is not between 129 and 254")]
    SourcePriority(u8),
    /// A route source number that means API (0) or invalid, where an own source is needed.
    #[error("route source {0} is not an own one")]
    Source(u8),
    /// Table 0 always exists; it is neither created nor deleted.
    #[error("the default table is neither created nor deleted")]
    DefaultTable,
    /// The "no interface" index where an interface is needed: VPP would look the packet up in a table instead.
    #[error("a path through an interface needs one")]
    NoInterface,
    /// Source translation without any address: VPP would forget everything that it was told about it.
    #[error("source translation needs an address")]
    NoAddress,
    /// An empty key.
    #[error("a key is needed")]
    NoKey,
    /// No address where one is needed.
    #[error("{0} is no address of anybody")]
    Unspecified(IpAddr),
    /// Port 0.
    #[error("{0} is no port")]
    Port(u16),
    /// A key of a length that its use does not have, or of zeros only.
    #[error("a key of {0} octets is none, or none of this kind")]
    Key(usize),
    /// A WireGuard peer needs at least one allowed IP, and VPP counts them in 8 bits.
    #[error("a peer has 1 to 255 allowed IPs, not {0}")]
    AllowedIps(usize),
    /// A timer or multiplier of 0.
    #[error("timers and multiplier must not be 0")]
    Timers,
    /// The unspecified address as next hop: VPP would take it for none.
    #[error("{0} is no next hop")]
    NextHop(IpAddr),
    /// A list of segments that is empty, of which VPP dies, or that has more than 16, of which it reads what stands behind.
    #[error("a list of segments has 1 to 16 SIDs, not {0}")]
    Sids(usize),
    /// `::` as SID or as source of SRv6.
    #[error(":: is no SID, and no source")]
    Sid,
    /// A share of the traffic that VPP divides by, or takes for another one.
    #[error("{0} is no weight of a list of segments")]
    NoWeight(u32),
    /// A behaviour of a local SID other than End.DT4 and End.DT6; VPP dies of those that it doesn't know.
    #[error("a local SID does End.DT4 or End.DT6, not {0}")]
    Behavior(u8),
}

/// A struct, message or part of one, that ends in a counted array.
pub trait Tailed:
    KnownLayout<PointerMetadata = usize> + FromBytes + IntoBytes + Immutable + Unaligned
{
    /// Bytes in front of the array.
    const FIXED: usize;
    /// Bytes of one element.
    const ELEMENT: usize;
    /// Where the count stands.
    const COUNT_AT: usize;
    /// Bytes of the count: 1, 2 or 4.
    const COUNT_WIDTH: usize;

    /// The count that stands in `bytes`; `None` when they end before it.
    #[must_use]
    fn elements(bytes: &[u8]) -> Option<usize> {
        let count = bytes.get(Self::COUNT_AT..Self::COUNT_AT + Self::COUNT_WIDTH)?;
        Some(count.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    /// Appends a zeroed struct with room for `count` elements, its count set, to be filled in place.
    ///
    /// # Errors
    /// [`Refused::Count`] when the count field is too narrow; then nothing is appended.
    fn append(out: &mut Vec<u8>, count: usize) -> Result<&mut Self, Refused> {
        let number = u32::try_from(count).map_err(|_| Refused::Count(count))?.to_be_bytes();
        let (above, number) = number.split_at(4 - Self::COUNT_WIDTH);
        if above.iter().any(|byte| *byte != 0) {
            return Err(Refused::Count(count));
        }
        let start = out.len();
        out.resize(start + Self::FIXED + count * Self::ELEMENT, 0);
        let fresh = &mut out[start..];
        fresh[Self::COUNT_AT..Self::COUNT_AT + Self::COUNT_WIDTH].copy_from_slice(number);
        Ok(Self::mut_from_bytes_with_elems(fresh, count).expect("sized for just that many"))
    }
}

pub(crate) const fn layout_of<T: Described + ?Sized>() -> &'static Layout {
    if let Shape::Struct(layout) = T::SHAPE {
        return layout;
    }
    panic!("a message is a struct")
}

pub(crate) fn measure<M: Message + ?Sized>(payload: &[u8]) -> Result<usize, ParseError> {
    M::parse(payload).map(|message| message.as_bytes().len())
}

pub(crate) fn parse_fixed<M: Message + FromBytes>(payload: &[u8]) -> Result<&M, ParseError> {
    M::ref_from_prefix(payload).map(|(message, _)| message).map_err(|_| short::<M>(payload, size_of::<M>()))
}

pub(crate) fn parse_tailed<M: Message + Tailed + ?Sized>(payload: &[u8]) -> Result<&M, ParseError> {
    let count = M::elements(payload).ok_or_else(|| short::<M>(payload, M::FIXED))?;
    M::ref_from_prefix_with_elems(payload, count)
        .map(|(message, _)| message)
        .map_err(|_| short::<M>(payload, M::FIXED.saturating_add(count.saturating_mul(M::ELEMENT))))
}

fn short<M: Message + ?Sized>(payload: &[u8], needed: usize) -> ParseError {
    ParseError { message: M::DESCRIPTOR.name.name(), needed, present: payload.len() }
}
