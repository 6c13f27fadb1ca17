//! What each message does: read the request, change the state, write the answer. One file per VPP API module.
//!
//! A handler gets a payload of any length with any bytes and returns `None` when it is shorter than it says, which VPP does
//! not answer. Messages that `vpp-wire` has are read with its types where their fields are readable; the others, which
//! only other clients send, are declared here by name, CRC and offsets.
//!
//! Return values are those of VPP 26.06, as recorded; where VPP accepts nonsense, so does this.

pub(crate) mod feature;
pub(crate) mod fib;
pub(crate) mod interface;
pub(crate) mod ip;
pub(crate) mod ipip;
pub(crate) mod memclnt;
pub(crate) mod route;
pub(crate) mod vpe;

use vpp_wire::name::MsgName;
use vpp_wire::types::FixedString;
use vpp_wire::{Kind, Message};
use zerocopy::FromBytes;

use crate::state::key::Af;
use crate::vpp::Cx;

/// Success.
pub(crate) const OK: i32 = 0;
/// Anything.
pub(crate) const UNSPECIFIED: i32 = -1;
/// No such interface, or of another kind.
pub(crate) const INVALID_SW_IF_INDEX: i32 = -2;
/// No such table.
pub(crate) const NO_SUCH_FIB: i32 = -3;
/// Absent.
pub(crate) const NO_SUCH_ENTRY: i32 = -6;
/// A field has no acceptable value.
pub(crate) const INVALID_VALUE: i32 = -7;
/// As -2, for a second interface.
pub(crate) const INVALID_SW_IF_INDEX_2: i32 = -10;
/// Subscribed twice, or instance in use.
pub(crate) const INVALID_REGISTRATION: i32 = -31;
/// A route without paths.
pub(crate) const NO_PATHS_IN_ROUTE: i32 = -52;
/// The interface of a path does not exist.
pub(crate) const NO_MATCHING_INTERFACE: i32 = -54;
/// Prefix length too large.
pub(crate) const ADDRESS_LENGTH_MISMATCH: i32 = -59;
/// No such address there.
pub(crate) const ADDRESS_NOT_FOUND_FOR_INTERFACE: i32 = -60;
/// The classifier table of a path does not exist.
pub(crate) const NO_SUCH_TABLE: i32 = -65;
/// The tunnel exists.
pub(crate) const IF_ALREADY_EXISTS: i32 = -79;
/// A tunnel with equal ends.
pub(crate) const SAME_SRC_DST: i32 = -82;
/// The address or one that overlaps is there.
pub(crate) const ADDRESS_IN_USE: i32 = -105;
/// The interface has addresses.
pub(crate) const ADDRESS_FOUND_FOR_INTERFACE: i32 = -114;
/// The instance number is taken.
pub(crate) const INSTANCE_IN_USE: i32 = -147;
/// Mixed families.
pub(crate) const INVALID_PROTOCOL: i32 = -153;
/// Prefix length of a route.
pub(crate) const INVALID_PREFIX_LENGTH: i32 = -171;

/// A number that means none.
pub(crate) const NONE: u32 = u32::MAX;

/// Carries a request out; `None` when it is too short.
pub(crate) type Serve = fn(&mut Cx<'_>, &[u8]) -> Option<()>;

/// A request or dump that has a handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its id in this process.
    pub(crate) id: u16,
    /// The id of its reply or details.
    pub(crate) answer_id: u16,
    /// Its name.
    pub(crate) name: MsgName,
    /// The name of its reply or details.
    pub(crate) answer: MsgName,
    /// Where the context stands in the answer: a few echo a client index, which is 0, before it.
    pub(crate) answer_context_at: usize,
    /// Bytes of the reply without its variable part.
    pub(crate) answer_size: usize,
    /// Whether details answer it, any number of them.
    pub(crate) is_dump: bool,
    /// The handler.
    pub(crate) serve: Serve,
}

/// A row for a message that `vpp-wire` has, answered by `A`.
pub(crate) fn row<M: Message + ?Sized, A: Message + ?Sized>(serve: Serve) -> Row {
    let (message, answer) = (M::DESCRIPTOR, A::DESCRIPTOR);
    Row {
        id: 0,
        answer_id: 0,
        name: message.name,
        answer: answer.name,
        answer_context_at: answer.context_at.unwrap_or(2),
        answer_size: answer.layout.fixed,
        is_dump: message.kind == Kind::Dump,
        serve,
    }
}

/// A row for a request that only other clients send; the reply has `answer_size` bytes.
pub(crate) fn foreign(name: MsgName, answer: MsgName, answer_size: usize, serve: Serve) -> Row {
    Row { id: 0, answer_id: 0, name, answer, answer_context_at: 2, answer_size, is_dump: false, serve }
}

/// Every request and dump with a handler.
pub(crate) fn rows() -> impl Iterator<Item = Row> {
    [
        memclnt::rows(),
        vpe::rows(),
        interface::rows(),
        ip::rows(),
        route::rows(),
        fib::rows(),
        ipip::rows(),
        feature::rows(),
    ]
    .into_iter()
    .flatten()
}

/// The names of all messages there are: requests, their answers, events.
pub(crate) fn names() -> impl Iterator<Item = MsgName> {
    let events =
        vpp_wire::api::messages().filter(|message| message.kind == Kind::Notice).map(|message| message.name);
    let rows: Vec<Row> = rows().collect();
    rows.into_iter().flat_map(|row| [row.name, row.answer]).chain(events)
}

/// A big-endian number at an offset.
pub(crate) fn u32_at(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?))
}

/// A byte at an offset.
pub(crate) fn u8_at(payload: &[u8], at: usize) -> Option<u8> {
    payload.get(at).copied()
}

/// N bytes at an offset.
pub(crate) fn bytes_at<const N: usize>(payload: &[u8], at: usize) -> Option<&[u8; N]> {
    payload.get(at..)?.first_chunk()
}

/// An address at an offset: family and 16 bytes. Any family but IPv6's counts as IPv4.
pub(crate) fn address_at(payload: &[u8], at: usize) -> Option<(Af, [u8; 16])> {
    let af = Af::of_flag(u8_at(payload, at)? == 1);
    let mut addr = *bytes_at::<16>(payload, at + 1)?;
    if af == Af::Ip4 {
        addr[4..].fill(0);
    }
    Some((af, addr))
}

/// An address and a prefix length at an offset.
pub(crate) fn prefix_at(payload: &[u8], at: usize) -> Option<(Af, [u8; 16], u8)> {
    let (af, addr) = address_at(payload, at)?;
    Some((af, addr, u8_at(payload, at + 17)?))
}

/// Appends an address as it stands on the wire.
pub(crate) fn push_address(out: &mut Vec<u8>, af: Af, addr: [u8; 16]) {
    out.push(match af {
        Af::Ip4 => 0,
        Af::Ip6 => 1,
    });
    out.extend_from_slice(&addr);
}

/// The text in a fixed field: up to its NUL, and never all of the field.
pub(crate) fn text(field: &[u8]) -> &[u8] {
    let most = field.get(..field.len().saturating_sub(1)).unwrap_or(&[]);
    most.split(|byte| *byte == 0).next().unwrap_or(&[])
}

/// Appends a text as a fixed field of `N` bytes.
pub(crate) fn push_text<const N: usize>(out: &mut Vec<u8>, text: &[u8]) {
    let mut field = [0; N];
    for (place, byte) in field.iter_mut().take(N - 1).zip(text) {
        *place = *byte;
    }
    out.extend_from_slice(&field);
}

/// A text as a fixed field of 64 bytes.
pub(crate) fn fixed(text: &[u8]) -> FixedString<64> {
    let mut field = Vec::with_capacity(64);
    push_text::<64>(&mut field, text);
    FixedString::read_from_bytes(&field).unwrap_or(FixedString::EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_of_the_wire_has_a_handler() {
        let known: Vec<MsgName> = rows().map(|row| row.name).collect();
        for message in vpp_wire::api::messages() {
            match message.kind {
                Kind::Request | Kind::Dump => {
                    assert!(known.contains(&message.name), "{} is not served", message.name);
                }
                Kind::Reply | Kind::Details | Kind::Notice => {
                    assert!(names().any(|name| name == message.name), "{} is not sent", message.name);
                }
            }
        }
    }

    #[test]
    fn no_name_comes_twice() {
        let mut all: Vec<String> = names().map(|name| name.to_string()).collect();
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
