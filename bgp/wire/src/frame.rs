//! Framing: where one message ends and the next begins (RFC 4271 section 4.1, 6.1; RFC 8654).
//!
//! Looks at nothing but the 19 octets of the header. Never copies, never waits: it says what a buffer holds.

use bytes::{BufMut, BytesMut};
use std::fmt;

use crate::error::{Fault, WireError};

/// Octets of the message header: marker, length, type.
pub const HEADER_LEN: usize = 19;
/// The longest message, where long messages (RFC 8654) have not been agreed.
pub const MAX_LEN: usize = 4096;
/// The longest message where they have.
pub const EXTENDED_MAX_LEN: usize = 65535;

const MARKER: [u8; 16] = [0xff; 16];

/// The message types we speak.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum MessageType {
    /// RFC 4271 section 4.2.
    Open = 1,
    /// RFC 4271 section 4.3.
    Update = 2,
    /// RFC 4271 section 4.5.
    Notification = 3,
    /// RFC 4271 section 4.4.
    Keepalive = 4,
    /// RFC 2918.
    RouteRefresh = 5,
}

impl MessageType {
    /// The type of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Open),
            2 => Some(Self::Update),
            3 => Some(Self::Notification),
            4 => Some(Self::Keepalive),
            5 => Some(Self::RouteRefresh),
            _ => None,
        }
    }

    /// The type's code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The lengths a message of this type can have, header included (RFC 4271 section 6.1, RFC 8654 section
    /// 4).
    const fn lengths(self, max_len: usize) -> (usize, usize) {
        match self {
            Self::Open => (29, MAX_LEN),
            Self::Update => (23, max_len),
            Self::Notification => (21, max_len),
            Self::Keepalive => (HEADER_LEN, HEADER_LEN),
            Self::RouteRefresh => (23, max_len),
        }
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "OPEN",
            Self::Update => "UPDATE",
            Self::Notification => "NOTIFICATION",
            Self::Keepalive => "KEEPALIVE",
            Self::RouteRefresh => "ROUTE-REFRESH",
        })
    }
}

/// One whole message, borrowed from the buffer it arrived in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its type.
    pub kind: MessageType,
    /// What follows the header.
    pub body: &'a [u8],
    /// All of it; its length is how much of the buffer it took.
    pub raw: &'a [u8],
}

/// Cuts the next whole message off the front of `buf`. `Ok(None)` means that more octets are needed.
///
/// `max_len` is what the session allows: [`MAX_LEN`], or [`EXTENDED_MAX_LEN`].
///
/// # Errors
/// Marker, length or type are wrong: NOTIFICATION 1/1, 1/2 with the length field, 1/3 with the type. A fault
/// is found as soon as the octets that show it are there. Nothing behind it can be read.
#[inline]
pub fn split_message(buf: &[u8], max_len: usize) -> Result<Option<Frame<'_>>, WireError> {
    let Some((header, _)) = buf.split_first_chunk::<HEADER_LEN>() else {
        let marker = &buf[..buf.len().min(MARKER.len())];
        return if marker.iter().all(|octet| *octet == 0xff) {
            Ok(None)
        } else {
            Err(WireError::new(Fault::Marker, &[]))
        };
    };
    let (marker, rest) = header.split_at(MARKER.len());
    let &[high, low, code] = rest else { return Ok(None) };
    if marker != MARKER {
        return Err(WireError::new(Fault::Marker, &[]));
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length < HEADER_LEN || length > max_len {
        return Err(WireError::length(Fault::FrameLength(length as u16), length));
    }
    let Some(kind) = MessageType::from_code(code) else {
        return Err(WireError::new(Fault::MessageType(code), &[code]));
    };
    let (least, most) = kind.lengths(max_len);
    if length < least || length > most {
        return Err(WireError::length(Fault::MessageLength(kind), length));
    }
    Ok(buf.get(..length).map(|raw| Frame { kind, body: raw.get(HEADER_LEN..).unwrap_or_default(), raw }))
}

/// What [`whole_messages`] found.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Whole {
    /// How many leading octets are whole messages without a fault.
    pub bytes: usize,
    /// Whether what follows them is a fault, so that no more will ever be whole.
    pub fault: bool,
}

/// How many leading octets of `buf` are whole messages, for a reader that hands over whole messages only. It
/// stops at the first fault, which whoever parses the octets then finds again with [`split_message`].
#[must_use]
pub fn whole_messages(buf: &[u8], max_len: usize) -> Whole {
    let mut bytes = 0;
    loop {
        match split_message(buf.get(bytes..).unwrap_or_default(), max_len) {
            Ok(Some(frame)) => bytes += frame.raw.len(),
            Ok(None) => return Whole { bytes, fault: false },
            Err(_) => return Whole { bytes, fault: true },
        }
    }
}

/// Appends a header for a body of `body_len` octets, at most 65516.
pub(crate) fn put_header(out: &mut BytesMut, kind: MessageType, body_len: usize) {
    out.reserve(HEADER_LEN + body_len);
    out.put_slice(&MARKER);
    out.put_u16((HEADER_LEN + body_len) as u16);
    out.put_u8(kind.code());
}

/// Appends a KEEPALIVE.
pub fn put_keepalive(out: &mut BytesMut) {
    put_header(out, MessageType::Keepalive, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::{Notification, Reason};

    fn message(length: u16, code: u8, body: &[u8]) -> Vec<u8> {
        let mut raw = MARKER.to_vec();
        raw.extend_from_slice(&length.to_be_bytes());
        raw.push(code);
        raw.extend_from_slice(body);
        raw
    }

    fn refusal(raw: &[u8], max_len: usize) -> Notification {
        split_message(raw, max_len).unwrap_err().notification
    }

    #[test]
    fn cuts_message_after_message() {
        let mut raw = message(19, 4, &[]);
        raw.extend(message(21, 3, &[6, 2]));
        let first = split_message(&raw, MAX_LEN).unwrap().unwrap();
        assert_eq!((first.kind, first.body.len(), first.raw.len()), (MessageType::Keepalive, 0, 19));
        let second = split_message(&raw[19..], MAX_LEN).unwrap().unwrap();
        assert_eq!((second.kind, second.body), (MessageType::Notification, &[6, 2][..]));
        assert_eq!(split_message(&raw[40..], MAX_LEN), Ok(None));
        assert_eq!(whole_messages(&raw, MAX_LEN), Whole { bytes: 40, fault: false });
        for cut in 0..raw.len() {
            let whole = if cut < 19 { 0 } else { 19 };
            assert_eq!(whole_messages(&raw[..cut], MAX_LEN), Whole { bytes: whole, fault: false });
        }
    }

    #[test]
    fn a_bad_marker_is_seen_at_its_first_octet() {
        assert_eq!(refusal(&[0xff, 0xfe], MAX_LEN), Notification::new(Reason::NotSynchronized));
        let mut raw = message(19, 4, &[]);
        raw[15] = 0;
        assert_eq!(refusal(&raw, MAX_LEN), Notification::new(Reason::NotSynchronized));
    }

    #[test]
    fn lengths_out_of_range_are_told_with_the_length_field() {
        for (raw, max_len) in [
            (message(18, 4, &[]), MAX_LEN),
            (message(20, 4, &[0]), MAX_LEN),
            (message(4097, 2, &[]), MAX_LEN),
            (message(28, 1, &[]), MAX_LEN),
            (message(22, 2, &[]), MAX_LEN),
            (message(20, 3, &[]), MAX_LEN),
            (message(22, 5, &[]), MAX_LEN),
            (message(4097, 1, &[]), EXTENDED_MAX_LEN),
        ] {
            assert_eq!(
                refusal(&raw, max_len),
                Notification::with_data(Reason::BadMessageLength, &raw[16..18])
            );
        }
        assert_eq!(split_message(&message(4097, 2, &[]), EXTENDED_MAX_LEN), Ok(None));
    }

    #[test]
    fn an_unknown_type_is_told_with_the_type() {
        let mut raw = message(19, 4, &[]);
        raw.extend(message(19, 6, &[]));
        assert_eq!(refusal(&raw[19..], MAX_LEN), Notification::with_data(Reason::BadMessageType, &[6]));
        assert_eq!(whole_messages(&raw, MAX_LEN), Whole { bytes: 19, fault: true });
    }
}
