//! What can be wrong with received bytes, and what follows from it.
//!
//! Two kinds of fault: a [`WireError`] ends the session and holds the NOTIFICATION to send; an [`AttrFault`]
//! does not, and its [`Consequence`] says whether the routes are withdrawn or the attribute is dropped (RFC
//! 7606).

use std::fmt;

use crate::{
    family::Family,
    frame::MessageType,
    notification::{Notification, Reason},
};

/// A fault that ends the session. The parser has decided: send `notification`, close.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct WireError {
    /// What is wrong, and where.
    pub fault: Fault,
    /// What the peer is told.
    pub notification: Notification,
}

impl WireError {
    /// A fault with the data that its NOTIFICATION carries.
    #[must_use]
    pub fn new(fault: Fault, data: &[u8]) -> Self {
        Self { fault, notification: Notification::with_data(fault.reason(), data) }
    }

    /// A fault of a message's length; the data is the length field (RFC 4271 section 6.1).
    #[must_use]
    pub(crate) fn length(fault: Fault, length: usize) -> Self {
        Self::new(fault, &(length as u16).to_be_bytes())
    }
}

/// What is wrong with a message that ends a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The sixteen octets before a message are not all ones.
    #[error("message marker is not all ones")]
    Marker,
    /// The header's length is below 19 or above the session's maximum.
    #[error("message length {0} out of range")]
    FrameLength(u16),
    /// The length does not fit the type.
    #[error("{0} message of impossible length")]
    MessageLength(MessageType),
    /// A message type that nobody defined, or that we do not speak.
    #[error("unknown message type {0}")]
    MessageType(u8),
    /// OPEN names a version other than 4.
    #[error("BGP version {0} in OPEN")]
    OpenVersion(u8),
    /// OPEN names AS 0, in its own field or in the 4-octet capability (RFC 7607).
    #[error("AS 0 in OPEN")]
    OpenAsZero,
    /// OPEN names identifier 0.0.0.0.
    #[error("BGP identifier 0.0.0.0 in OPEN")]
    OpenRouterId,
    /// OPEN names a hold time of one or two seconds.
    #[error("hold time of {0} s in OPEN")]
    OpenHoldTime(u16),
    /// Lengths inside the optional parameters contradict one another.
    #[error("optional parameters of OPEN run past their length")]
    OpenParameters,
    /// An optional parameter other than capabilities.
    #[error("unknown optional parameter {0} in OPEN")]
    OpenParameter(u8),
    /// Withdrawn Routes Length or Total Path Attribute Length exceed the message (RFC 7606 section 3(b)).
    #[error("section lengths of UPDATE exceed the message")]
    UpdateLengths,
    /// A prefix that is too long or cut off (RFC 7606 section 5.3).
    #[error("bad prefix of {0}")]
    Prefix(Family),
    /// An attribute that claims to be well-known, of a type that is not (RFC 4271 section 6.3).
    #[error("unrecognized well-known attribute {0}")]
    WellKnown(u8),
    /// MP_REACH_NLRI or MP_UNREACH_NLRI more than once (RFC 7606 section 3(g)).
    #[error("attribute {0} more than once")]
    Repeated(u8),
    /// MP_REACH_NLRI (14) or MP_UNREACH_NLRI (15) whose prefixes cannot be found (RFC 7606 sections 7.11,
    /// 7.12).
    #[error("multiprotocol attribute {0} cannot be read")]
    Multiprotocol(u8),
    /// A fault that asks for treat-as-withdraw in an UPDATE without reachable prefixes, which may have lost
    /// them (RFC 7606 section 5.2).
    #[error("attribute {0} is malformed, and there are no prefixes to withdraw")]
    NothingToWithdraw(u8),
    /// ROUTE-REFRESH of a length that its subtype does not allow (RFC 7313 section 5).
    #[error("ROUTE-REFRESH of wrong length")]
    RefreshLength,
}

impl Fault {
    /// Code and subcode of the NOTIFICATION.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Marker => Reason::NotSynchronized,
            Self::FrameLength(_) | Self::MessageLength(_) => Reason::BadMessageLength,
            Self::MessageType(_) => Reason::BadMessageType,
            Self::OpenVersion(_) => Reason::UnsupportedVersion,
            Self::OpenAsZero => Reason::BadPeerAs,
            Self::OpenRouterId => Reason::BadBgpIdentifier,
            Self::OpenHoldTime(_) => Reason::UnacceptableHoldTime,
            Self::OpenParameters => Reason::OpenUnspecific,
            Self::OpenParameter(_) => Reason::UnsupportedOptionalParameter,
            Self::UpdateLengths | Self::Repeated(_) | Self::NothingToWithdraw(_) => {
                Reason::MalformedAttributeList
            }
            Self::Prefix(_) => Reason::InvalidNetworkField,
            Self::WellKnown(_) => Reason::UnrecognizedWellKnown,
            Self::Multiprotocol(_) => Reason::OptionalAttribute,
            Self::RefreshLength => Reason::RefreshLength,
        }
    }
}

/// What follows from a fault in a path attribute, weakest first, so that the strongest of several is the
/// maximum (RFC 7606 sections 2 and 3(h)). Session reset, the strongest, is a [`WireError`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Consequence {
    /// The attribute is dropped, the route is used.
    DiscardAttribute,
    /// Every prefix of the message counts as withdrawn.
    TreatAsWithdraw,
}

/// A fault in one path attribute that the session survives.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttrFault {
    /// The attribute's type code.
    pub code: u8,
    /// What is wrong with it.
    pub what: AttrProblem,
    /// What follows. Nobody decides again.
    pub consequence: Consequence,
}

impl fmt::Display for AttrFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.consequence {
            Consequence::DiscardAttribute => "attribute discarded",
            Consequence::TreatAsWithdraw => "routes treated as withdrawn",
        };
        write!(f, "{} (attribute {}): {}; {done}", crate::attr::name(self.code), self.code, self.what)
    }
}

/// What is wrong with an attribute.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AttrProblem {
    /// Optional or Transitive contradict the type (RFC 7606 section 3(c)).
    #[error("flags contradict the type")]
    Flags,
    /// The length contradicts the type, or is zero where it must not be.
    #[error("impossible length")]
    Length,
    /// A value that the attribute's RFC forbids.
    #[error("forbidden value")]
    Value,
    /// A mandatory attribute is missing (RFC 7606 section 3(d)).
    #[error("missing")]
    Missing,
    /// The attribute came before; the first one counts (RFC 7606 section 3(g)).
    #[error("repeated")]
    Repeated,
    /// The attribute runs past Total Path Attribute Length, or its header does (RFC 7606 section 4).
    #[error("runs past the end of the attributes")]
    Overrun,
    /// It has no business on this kind of session: LOCAL_PREF, ORIGINATOR_ID or CLUSTER_LIST from an external
    /// peer, AS4_PATH or AS4_AGGREGATOR from one that speaks 4-octet AS numbers.
    #[error("not for this kind of session")]
    OutOfPlace,
}
