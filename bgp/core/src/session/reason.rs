//! Why sessions, connections and attempts end, in values for machines and in words for people.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use bgp_wire::{Asn, Family, Notification, Role, RouterId, WireError, notification::Reason};

/// Why we stop a session that was fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// An operator or the embedder shut it down; the text goes along (RFC 9003), empty for none.
    Shutdown(Arc<str>),
    /// An operator resets it; the text goes along, empty for none.
    Reset(Arc<str>),
    /// The neighbour was removed from the configuration.
    Deconfigured,
    /// The configuration changed in a way that a running session can't follow.
    ConfigurationChange,
    /// The process ends and may be back soon: no word is said where the neighbour keeps our routes meanwhile (RFC
    /// 4724); elsewhere it is a shutdown, and the text goes along, empty for none.
    Restart(Arc<str>),
}

impl StopReason {
    /// The Cease that says so (RFC 4486).
    #[must_use]
    pub fn notification(&self) -> Notification {
        match self {
            Self::Shutdown(text) | Self::Restart(text) => {
                Notification::with_text(Reason::AdministrativeShutdown, text)
            }
            Self::Reset(text) => Notification::with_text(Reason::AdministrativeReset, text),
            Self::Deconfigured => Notification::new(Reason::PeerDeconfigured),
            Self::ConfigurationChange => Notification::new(Reason::OtherConfigurationChange),
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, text) = match self {
            Self::Shutdown(text) => ("shut down", Some(text)),
            Self::Reset(text) => ("reset", Some(text)),
            Self::Deconfigured => ("removed from the configuration", None),
            Self::ConfigurationChange => ("the configuration changed", None),
            Self::Restart(text) => ("stopped for a restart", Some(text)),
        };
        f.write_str(what)?;
        match text {
            Some(text) if !text.is_empty() => write!(f, ": {text}"),
            Some(_) | None => Ok(()),
        }
    }
}

/// How a transport connection ended that we didn't close.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The neighbour closed it.
    EndOfStream,
    /// Reading or writing failed.
    Error(ErrorKind),
    /// The neighbour took none of our octets for too long (RFC 9687).
    SendHoldTimerExpired,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfStream => f.write_str("the neighbour closed the connection"),
            Self::Error(kind) => write!(f, "the connection failed: {kind}"),
            Self::SendHoldTimerExpired => write!(f, "{}", Reason::SendHoldTimerExpired),
        }
    }
}

/// Why an attempt to connect came to nothing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Our own address or socket couldn't be had.
    Local(ErrorKind),
    /// The neighbour, or the way to it, refused.
    Remote(ErrorKind),
    /// There was no answer in time.
    TimedOut,
    /// The connection can't be protected as it must be, so there is none.
    Protection(Protection, ErrorKind),
}

/// What a connection is protected by, or bound to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// TCP MD5 signatures (RFC 2385).
    Signature,
    /// TTL security (RFC 5082).
    Ttl,
    /// An interface.
    Device,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signature => "TCP MD5 signatures",
            Self::Ttl => "TTL security",
            Self::Device => "binding to the interface",
        })
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(kind) => write!(f, "can't connect from the local address: {kind}"),
            Self::Remote(kind) => write!(f, "can't connect: {kind}"),
            Self::TimedOut => f.write_str("can't connect: no answer"),
            Self::Protection(what, kind) => write!(f, "can't connect: {what} can't be had: {kind}"),
        }
    }
}

/// Why a session, a connection or an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DownReason {
    /// We were asked to.
    Stopped(StopReason),
    /// The neighbour said so.
    Received(Notification),
    /// What the neighbour sent can't be read; it was told.
    Malformed(WireError),
    /// The neighbour is in another AS than it should be; it was told.
    WrongAsn(Asn),
    /// The neighbour has our own identifier inside our AS; it was told.
    SameRouterId(RouterId),
    /// No family is offered by both ends; the neighbour was told.
    NoCommonFamily,
    /// The neighbour is not what it should be to us, or does not say so though it must (RFC 9234 section 4.2); it was told.
    RoleMismatch {
        /// Our role.
        ours: Role,
        /// Its role, where it names one that there is.
        theirs: Option<Role>,
    },
    /// The neighbour sent a message that its state doesn't allow; it was told.
    Unexpected(Notification),
    /// Nothing was heard for the hold time; the neighbour was told.
    HoldTimerExpired,
    /// The connection broke.
    Closed(CloseReason),
    /// There was no connection.
    NotConnected(ConnectError),
    /// The neighbour has connected anew as one that restarted, and goes on there (RFC 4724 section 5).
    Replaced,
    /// The neighbour announced more prefixes of a family than this limit; it was told.
    TooManyPrefixes {
        /// The family.
        family: Family,
        /// How many there may be.
        limit: u32,
    },
}

impl DownReason {
    /// Whether the two ends disagree, so that trying again at once would only repeat it. False where the neighbour or
    /// the network merely went away: then it may come back any moment, and is welcome.
    #[must_use]
    pub fn is_disagreement(&self) -> bool {
        match self {
            Self::Malformed(_)
            | Self::WrongAsn(_)
            | Self::SameRouterId(_)
            | Self::NoCommonFamily
            | Self::RoleMismatch { .. }
            | Self::Unexpected(_)
            | Self::TooManyPrefixes { .. } => true,
            // A neighbour that ceases, or heard nothing from us, doesn't complain about what we said; except that
            // after "too many prefixes" and "out of resources" the same would happen again.
            Self::Received(n) => {
                let inner = n.inner();
                let n = inner.as_ref().unwrap_or(n);
                match n.code {
                    4 | 8 => false,
                    6 => matches!(n.subcode, 1 | 8),
                    _ => true,
                }
            }
            Self::Stopped(_)
            | Self::HoldTimerExpired
            | Self::Closed(_)
            | Self::NotConnected(_)
            | Self::Replaced => false,
        }
    }
}

impl fmt::Display for DownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(reason) => reason.fmt(f),
            Self::Received(notification) => write!(f, "received {notification}"),
            Self::Malformed(error) => write!(f, "{error}; sent {}", error.notification),
            Self::WrongAsn(asn) => write!(f, "the neighbour is in AS {asn}; sent {}", Reason::BadPeerAs),
            Self::SameRouterId(id) => {
                write!(f, "the neighbour has our router id {id}; sent {}", Reason::BadBgpIdentifier)
            }
            Self::NoCommonFamily => {
                write!(f, "no address family in common; sent {}", Reason::UnsupportedCapability)
            }
            Self::RoleMismatch { ours, theirs } => {
                let (wanted, sent) = (ours.opposite(), Reason::RoleMismatch);
                match theirs {
                    Some(theirs) => write!(
                        f,
                        "we are its {ours}, but the neighbour is {theirs}, not {wanted}; sent {sent}"
                    ),
                    None => write!(f, "the neighbour does not say that it is {wanted}; sent {sent}"),
                }
            }
            Self::Unexpected(notification) => write!(f, "sent {notification}"),
            Self::HoldTimerExpired => write!(f, "sent {}", Reason::HoldTimerExpired),
            Self::Closed(reason) => reason.fmt(f),
            Self::NotConnected(error) => error.fmt(f),
            Self::Replaced => f.write_str("the neighbour restarted and connected anew"),
            Self::TooManyPrefixes { family, limit } => {
                write!(f, "more than {limit} prefixes of {family}; sent {}", Reason::MaximumPrefixes)
            }
        }
    }
}
