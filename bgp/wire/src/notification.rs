//! NOTIFICATION: codes, subcodes and their names, and the text an operator may send along.
//!
//! RFC 4271 section 4.5 and 6; subcodes from RFC 4486 (Cease), 5492 (capabilities), 6608 (state machine),
//! 7313 (route refresh), 8538 (hard reset), 9384 (BFD), 9687 (send hold timer). The text is RFC 9003. What a
//! peer sends is kept as it is: an unknown code or subcode is no error, only nameless.

use bytes::{BufMut, BytesMut};
use std::fmt;

use crate::{
    capability::Capability,
    error::{Fault, WireError},
    family::Family,
    frame::{HEADER_LEN, MessageType, put_header},
};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal / $subcode:literal, $words:literal;)*) => {
        /// Why a session ends: one variant for each assigned pair of code and subcode.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Error code and subcode.
            #[must_use]
            pub const fn codes(self) -> (u8, u8) {
                match self { $(Self::$name => ($code, $subcode),)* }
            }

            /// The name in words, without the name of the code.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }

            /// The reason that a pair stands for, where it is assigned.
            #[must_use]
            pub const fn from_codes(code: u8, subcode: u8) -> Option<Self> {
                match (code, subcode) { $(($code, $subcode) => Some(Self::$name),)* _ => None }
            }
        }
    };
}

reasons! {
    /// The marker is not all ones.
    NotSynchronized = 1/1, "Connection Not Synchronized";
    /// The length is out of range; data: the length field.
    BadMessageLength = 1/2, "Bad Message Length";
    /// The message type is unknown; data: the type field.
    BadMessageType = 1/3, "Bad Message Type";
    /// A fault in OPEN that has no subcode of its own.
    OpenUnspecific = 2/0, "Unspecific";
    /// The version is not 4; data: the largest version we speak, two octets.
    UnsupportedVersion = 2/1, "Unsupported Version Number";
    /// The AS number is not the expected one, or zero.
    BadPeerAs = 2/2, "Bad Peer AS";
    /// The identifier is zero, or our own on an internal session.
    BadBgpIdentifier = 2/3, "Bad BGP Identifier";
    /// An optional parameter other than capabilities.
    UnsupportedOptionalParameter = 2/4, "Unsupported Optional Parameter";
    /// A hold time of one or two seconds, or one that we refuse.
    UnacceptableHoldTime = 2/6, "Unacceptable Hold Time";
    /// A capability that we insist on is missing; data: that capability (RFC 5492).
    UnsupportedCapability = 2/7, "Unsupported Capability";
    /// The roles of the two ends do not fit (RFC 9234).
    RoleMismatch = 2/11, "Role Mismatch";
    /// Lengths inside UPDATE contradict one another, or a once-only attribute comes twice.
    MalformedAttributeList = 3/1, "Malformed Attribute List";
    /// An attribute claims to be well-known and is not; data: the attribute.
    UnrecognizedWellKnown = 3/2, "Unrecognized Well-known Attribute";
    /// A mandatory attribute is missing; data: its type.
    MissingWellKnown = 3/3, "Missing Well-known Attribute";
    /// Attribute flags contradict the attribute's type; data: the attribute.
    AttributeFlags = 3/4, "Attribute Flags Error";
    /// Attribute length contradicts the attribute's type; data: the attribute.
    AttributeLength = 3/5, "Attribute Length Error";
    /// ORIGIN has an undefined value; data: the attribute.
    InvalidOrigin = 3/6, "Invalid ORIGIN Attribute";
    /// NEXT_HOP is no host address; data: the attribute.
    InvalidNextHop = 3/8, "Invalid NEXT_HOP Attribute";
    /// An optional attribute cannot be read; data: the attribute.
    OptionalAttribute = 3/9, "Optional Attribute Error";
    /// A prefix cannot be read.
    InvalidNetworkField = 3/10, "Invalid Network Field";
    /// AS_PATH cannot be read.
    MalformedAsPath = 3/11, "Malformed AS_PATH";
    /// Nothing was heard for the hold time.
    HoldTimerExpired = 4/0, "no message within the hold time";
    /// A message that the state does not allow, state not told.
    FsmUnspecific = 5/0, "Unspecific";
    /// Unexpected message in OpenSent; data: its type (RFC 6608).
    UnexpectedInOpenSent = 5/1, "Receive Unexpected Message in OpenSent State";
    /// Unexpected message in OpenConfirm; data: its type (RFC 6608).
    UnexpectedInOpenConfirm = 5/2, "Receive Unexpected Message in OpenConfirm State";
    /// Unexpected message in Established; data: its type (RFC 6608).
    UnexpectedInEstablished = 5/3, "Receive Unexpected Message in Established State";
    /// Cease without a subcode.
    CeaseUnspecific = 6/0, "Unspecific";
    /// Too many prefixes; data: AFI, SAFI, the limit.
    MaximumPrefixes = 6/1, "Maximum Number of Prefixes Reached";
    /// Shut down by an operator; data: a text (RFC 9003).
    AdministrativeShutdown = 6/2, "Administrative Shutdown";
    /// The peer was removed from the configuration.
    PeerDeconfigured = 6/3, "Peer De-configured";
    /// Restarted by an operator; data: a text (RFC 9003).
    AdministrativeReset = 6/4, "Administrative Reset";
    /// The connection is refused for now.
    ConnectionRejected = 6/5, "Connection Rejected";
    /// The configuration changed in a way that needs a new session.
    OtherConfigurationChange = 6/6, "Other Configuration Change";
    /// The other one of two connections lives on.
    ConnectionCollision = 6/7, "Connection Collision Resolution";
    /// Out of resources.
    OutOfResources = 6/8, "Out of Resources";
    /// Routes must not be kept; data: the NOTIFICATION inside (RFC 8538).
    HardReset = 6/9, "Hard Reset";
    /// BFD declared the path down (RFC 9384).
    BfdDown = 6/10, "BFD Down";
    /// ROUTE-REFRESH of wrong length; data: the whole message (RFC 7313).
    RefreshLength = 7/1, "Invalid Message Length";
    /// The peer did not take our bytes for too long (RFC 9687).
    SendHoldTimerExpired = 8/0, "the peer did not read within the send hold time";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, subcode) = self.codes();
        write!(f, "{}: {} ({code}/{subcode})", code_name(code), self.words())
    }
}

const fn code_name(code: u8) -> &'static str {
    match code {
        1 => "Message Header Error",
        2 => "OPEN Message Error",
        3 => "UPDATE Message Error",
        4 => "Hold Timer Expired",
        5 => "Finite State Machine Error",
        6 => "Cease",
        7 => "ROUTE-REFRESH Message Error",
        8 => "Send Hold Timer Expired",
        _ => "unknown error code",
    }
}

/// A NOTIFICATION as sent or received. Its data is never interpreted beyond what [`Notification::text`] and
/// the display say.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Notification {
    /// Error code.
    pub code: u8,
    /// Error subcode; 0 where the code defines none.
    pub subcode: u8,
    /// Data, at most 4075 octets ([`Notification::MAX_DATA`]) when sent.
    pub data: Box<[u8]>,
}

impl Notification {
    /// How much data fits into a message of 4096 octets; more is cut off when encoding, as the data only
    /// explains.
    pub const MAX_DATA: usize = 4096 - HEADER_LEN - 2;
    /// How long a shutdown text may be, in octets (RFC 9003).
    pub const MAX_TEXT: usize = 255;

    /// A NOTIFICATION without data.
    #[must_use]
    pub fn new(reason: Reason) -> Self {
        Self::with_data(reason, &[])
    }

    /// A NOTIFICATION with data.
    #[must_use]
    pub fn with_data(reason: Reason, data: &[u8]) -> Self {
        let (code, subcode) = reason.codes();
        Self { code, subcode, data: data.into() }
    }

    /// A Cease with a text for the operator at the other end (RFC 9003; meant for
    /// [`Reason::AdministrativeShutdown`] and [`Reason::AdministrativeReset`]). A text of more than
    /// [`Notification::MAX_TEXT`] octets is cut at a character boundary; an empty one is left out.
    #[must_use]
    pub fn with_text(reason: Reason, text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(Self::MAX_TEXT)];
        if text.is_empty() {
            return Self::new(reason);
        }
        let mut data = Vec::with_capacity(1 + text.len());
        data.push(text.len() as u8);
        data.extend_from_slice(text.as_bytes());
        Self::with_data(reason, &data)
    }

    /// Unsupported Capability: the capabilities that we insist on and miss, as they would stand in an OPEN (RFC
    /// 5492 section 5). One that is too long for its length is left out.
    #[must_use]
    pub fn unsupported_capabilities<'c>(missing: impl IntoIterator<Item = &'c Capability>) -> Self {
        let data: Vec<u8> = missing.into_iter().filter_map(Capability::to_octets).flatten().collect();
        Self::with_data(Reason::UnsupportedCapability, &data)
    }

    /// The capabilities that an Unsupported Capability names; none for other codes, and for data that is no
    /// list of them.
    #[must_use]
    pub fn capabilities(&self) -> Vec<Capability> {
        match self.reason() {
            Some(Reason::UnsupportedCapability) => Capability::parse_all(&self.data).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// Too many prefixes of a family: its numbers and how many there may be (RFC 4486 section 4).
    #[must_use]
    pub fn maximum_prefixes(family: Family, limit: u32) -> Self {
        let [afi_high, afi_low] = family.afi().to_be_bytes();
        let [a, b, c, d] = limit.to_be_bytes();
        Self::with_data(Reason::MaximumPrefixes, &[afi_high, afi_low, family.safi(), a, b, c, d])
    }

    /// The AFI, SAFI and limit that come with Maximum Number of Prefixes Reached; they are optional (RFC 4486 section 4).
    #[must_use]
    pub fn prefix_limit(&self) -> Option<(u16, u8, u32)> {
        match (self.reason(), &*self.data) {
            (Some(Reason::MaximumPrefixes), &[afi_high, afi_low, safi, a, b, c, d]) => {
                let afi = u16::from_be_bytes([afi_high, afi_low]);
                Some((afi, safi, u32::from_be_bytes([a, b, c, d])))
            }
            _ => None,
        }
    }

    /// What the pair of code and subcode means, where it is assigned.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        Reason::from_codes(self.code, self.subcode)
    }

    /// The operator's text in a shutdown or reset (RFC 9003): absent, empty, overlong or not UTF-8 is no
    /// text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if !matches!((self.code, self.subcode), (6, 2 | 4)) {
            return None;
        }
        let (&len, rest) = self.data.split_first()?;
        let text = std::str::from_utf8(rest.get(..usize::from(len))?).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// The NOTIFICATION that a Hard Reset wraps (RFC 8538 section 3.1).
    #[must_use]
    pub fn inner(&self) -> Option<Self> {
        match (self.reason(), &*self.data) {
            (Some(Reason::HardReset), [code, subcode, data @ ..]) => {
                Some(Self { code: *code, subcode: *subcode, data: data.into() })
            }
            _ => None,
        }
    }

    /// Reads the body of a NOTIFICATION: everything behind the header.
    ///
    /// # Errors
    /// A body of fewer than two octets (1/2).
    pub fn parse(body: &[u8]) -> Result<Self, WireError> {
        match body {
            [code, subcode, data @ ..] => Ok(Self { code: *code, subcode: *subcode, data: data.into() }),
            _ => Err(WireError::length(
                Fault::MessageLength(MessageType::Notification),
                HEADER_LEN + body.len(),
            )),
        }
    }

    /// Appends the whole message.
    pub fn encode(&self, out: &mut BytesMut) {
        let data = &self.data[..self.data.len().min(Self::MAX_DATA)];
        put_header(out, MessageType::Notification, 2 + data.len());
        out.put_u8(self.code);
        out.put_u8(self.subcode);
        out.put_slice(data);
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => reason.fmt(f)?,
            None => write!(f, "{} ({}/{})", code_name(self.code), self.code, self.subcode)?,
        }
        if let Some(text) = self.text() {
            // A peer chose these characters; a control character must not reach a terminal or split a log
            // line.
            write!(f, ", \"{}\"", text.escape_debug())?;
        }
        // RFC 6608 section 4: which message it was.
        if let (5, &[kind]) = (self.code, &*self.data)
            && let Some(kind) = MessageType::from_code(kind)
        {
            write!(f, ": {kind}")?;
        }
        // A peer chose how many there are.
        for (place, capability) in self.capabilities().iter().take(8).enumerate() {
            write!(f, "{} {capability}", if place == 0 { ":" } else { "," })?;
        }
        self.write_limit(f)?;
        // One level only: a reset inside a reset is shown by its codes.
        if let Some(inner) = self.inner() {
            match inner.reason() {
                Some(reason) => write!(f, ", {reason}")?,
                None => write!(f, ", ({}/{})", inner.code, inner.subcode)?,
            }
            inner.write_limit(f)?;
        }
        Ok(())
    }
}

impl Notification {
    fn write_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix_limit() {
            Some((afi, safi, limit)) => match Family::from_afi_safi(afi, safi) {
                Some(family) => write!(f, ", at most {limit} of {family}"),
                None => write!(f, ", at most {limit} of AFI {afi} SAFI {safi}"),
            },
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notification({self}, data ")?;
        self.data.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asn::Asn;

    #[test]
    fn every_reason_has_its_own_codes() {
        for reason in Reason::ALL {
            let (code, subcode) = reason.codes();
            assert_eq!(Reason::from_codes(code, subcode), Some(*reason));
        }
        assert_eq!(Reason::from_codes(6, 99), None);
    }

    #[test]
    fn a_prefix_limit_goes_there_and_back_and_is_shown() {
        let sent = Notification::maximum_prefixes(Family::Ipv6Unicast, 70_000);
        assert_eq!((sent.code, sent.subcode, &*sent.data), (6, 1, &[0, 2, 1, 0, 1, 0x11, 0x70][..]));
        assert_eq!(sent.prefix_limit(), Some((2, 1, 70_000)));
        let words = "Cease: Maximum Number of Prefixes Reached (6/1)";
        assert_eq!(sent.to_string(), format!("{words}, at most 70000 of ipv6-unicast"));
        let data = [&[6, 1][..], &sent.data].concat();
        let hard = Notification::with_data(Reason::HardReset, &data);
        assert_eq!(
            hard.to_string(),
            format!("Cease: Hard Reset (6/9), {words}, at most 70000 of ipv6-unicast")
        );
        let other = Notification::with_data(Reason::MaximumPrefixes, &[0, 25, 70, 0, 0, 0, 9]);
        assert_eq!(other.to_string(), format!("{words}, at most 9 of AFI 25 SAFI 70"));
        for len in (0..7).chain([8]) {
            let odd = Notification::with_data(Reason::MaximumPrefixes, &vec![0; len]);
            assert_eq!((odd.prefix_limit(), odd.to_string()), (None, words.to_owned()));
        }
    }

    #[test]
    fn text_goes_there_and_back() {
        let sent = Notification::with_text(Reason::AdministrativeShutdown, "Wartung bis 04:00 – Grüße");
        let mut out = BytesMut::new();
        sent.encode(&mut out);
        let got = Notification::parse(&out[HEADER_LEN..]).unwrap();
        assert_eq!(got, sent);
        assert_eq!(got.text(), Some("Wartung bis 04:00 – Grüße"));
        assert_eq!(got.to_string(), "Cease: Administrative Shutdown (6/2), \"Wartung bis 04:00 – Grüße\"");
    }

    #[test]
    fn an_overlong_text_is_cut_between_characters() {
        let sent = Notification::with_text(Reason::AdministrativeReset, &"ü".repeat(200));
        assert_eq!(sent.data.len(), 1 + 254);
        assert_eq!(sent.text().map(str::len), Some(254));
        assert_eq!(Notification::with_text(Reason::AdministrativeReset, "").data.len(), 0);
    }

    #[test]
    fn a_bad_text_is_no_text_and_no_error() {
        for data in [&[][..], &[0], &[5, b'a'], &[1, 0xff]] {
            let got = Notification::with_data(Reason::AdministrativeShutdown, data);
            assert_eq!(got.text(), None);
            assert_eq!(got.to_string(), "Cease: Administrative Shutdown (6/2)");
        }
        let bell = Notification::with_text(Reason::AdministrativeShutdown, "a\u{7}\n");
        assert_eq!(bell.to_string(), "Cease: Administrative Shutdown (6/2), \"a\\u{7}\\n\"");
    }

    #[test]
    fn unknown_codes_are_kept() {
        let got = Notification::parse(&[200, 3, 1]).unwrap();
        assert_eq!((got.code, got.subcode, &*got.data), (200, 3, &[1][..]));
        assert_eq!(got.to_string(), "unknown error code (200/3)");
        assert_eq!(Notification::parse(&[6, 77]).unwrap().to_string(), "Cease (6/77)");
    }

    #[test]
    fn a_hard_reset_shows_what_it_wraps() {
        let got = Notification::parse(&[6, 9, 6, 2, 2, b'h', b'i']).unwrap();
        assert_eq!(got.inner().unwrap().text(), Some("hi"));
        assert_eq!(got.to_string(), "Cease: Hard Reset (6/9), Cease: Administrative Shutdown (6/2)");
        assert_eq!(Notification::parse(&[6, 9, 6]).unwrap().inner(), None);
    }

    #[test]
    fn missing_capabilities_are_listed_as_in_an_open() {
        let missing = [Capability::Multiprotocol(2, 1), Capability::FourOctetAs(Asn(65_020))];
        let sent = Notification::unsupported_capabilities(&missing);
        assert_eq!((sent.code, sent.subcode), (2, 7));
        assert_eq!(*sent.data, [1, 4, 0, 2, 0, 1, 65, 4, 0, 0, 0xfd, 0xfc]);
        assert_eq!(sent.capabilities(), missing);
        assert_eq!(
            sent.to_string(),
            "OPEN Message Error: Unsupported Capability (2/7): multiprotocol ipv6-unicast, 4-octet-as 65020"
        );
        for data in [&[][..], &[1], &[1, 4, 0]] {
            let odd = Notification::with_data(Reason::UnsupportedCapability, data);
            assert_eq!(odd.to_string(), "OPEN Message Error: Unsupported Capability (2/7)");
        }
        assert_eq!(Notification::with_data(Reason::BadPeerAs, &[2, 0]).capabilities(), []);
    }

    #[test]
    fn too_short_a_body_is_a_length_error() {
        let error = Notification::parse(&[6]).unwrap_err();
        assert_eq!(error.notification, Notification::with_data(Reason::BadMessageLength, &[0, 20]));
    }

    #[test]
    fn data_beyond_a_message_is_cut() {
        let mut out = BytesMut::new();
        Notification::with_data(Reason::OptionalAttribute, &[7; 5000]).encode(&mut out);
        assert_eq!(out.len(), 4096);
    }
}
