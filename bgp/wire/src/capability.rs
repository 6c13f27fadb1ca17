//! Capabilities of an OPEN (RFC 5492), one file for each group of them; what two OPENs agree on is
//! [`Negotiated`]'s part.
//!
//! A capability that we do not know, or whose content is not what its RFC says, is kept as its bare octets
//! and has no effect: it must never end a session (RFC 5492 section 3).
//!
//! RFCs: 4760 (families), 2918 and 7313 (route refresh), 8950 (extended next hop), 8654 (long messages), 9234
//! (role), 4724, 8538 and 9494 (graceful restart), 6793 (4-octet AS numbers), 7911 (path identifiers); the
//! drafts walton-bgp-hostname-capability (FQDN) and abraitis-bgp-version-capability (software version).

mod families;
mod restart;
mod role;

pub use families::{AddPath, ExtendedNextHop};
pub use restart::{GracefulFamily, GracefulRestart, LongLivedFamily};
pub use role::{Role, UnknownRole};

pub use crate::negotiated::{AgreedLongLived, AgreedRestart, Negotiated};

use bytes::{BufMut, BytesMut};
use std::fmt;

use crate::{asn::Asn, family::Family};

const MULTIPROTOCOL: u8 = 1;
const ROUTE_REFRESH: u8 = 2;
const EXTENDED_NEXT_HOP: u8 = 5;
const EXTENDED_MESSAGE: u8 = 6;
const ROLE: u8 = 9;
const GRACEFUL_RESTART: u8 = 64;
const FOUR_OCTET_AS: u8 = 65;
const ADD_PATH: u8 = 69;
const ENHANCED_ROUTE_REFRESH: u8 = 70;
const LONG_LIVED_GRACEFUL_RESTART: u8 = 71;
const FQDN: u8 = 73;
const SOFTWARE_VERSION: u8 = 75;

/// One capability of an OPEN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// A family, as AFI and SAFI: it may be one that we do not speak (RFC 4760).
    Multiprotocol(u16, u8),
    /// ROUTE-REFRESH (RFC 2918).
    RouteRefresh,
    /// Next hops of another family than the prefixes (RFC 8950).
    ExtendedNextHop(Vec<ExtendedNextHop>),
    /// Messages of up to 65535 octets (RFC 8654).
    ExtendedMessage,
    /// What the sender is to the receiver (RFC 9234).
    Role(Role),
    /// Routes may outlive the session (RFC 4724, 8538).
    GracefulRestart(GracefulRestart),
    /// 4-octet AS numbers, and the sender's (RFC 6793).
    FourOctetAs(Asn),
    /// Path identifiers, for each family named (RFC 7911).
    AddPath(Vec<AddPath>),
    /// ROUTE-REFRESH with begin and end (RFC 7313).
    EnhancedRouteRefresh,
    /// Routes may outlive the session for long (RFC 9494).
    LongLivedGracefulRestart(Vec<LongLivedFamily>),
    /// The sender's name, to be shown.
    Fqdn {
        /// Host name; may be empty.
        host: Box<str>,
        /// Domain name; may be empty.
        domain: Box<str>,
    },
    /// The sender's software, to be shown; not empty.
    SoftwareVersion(Box<str>),
    /// Any other, or a malformed one.
    Unknown {
        /// Its code.
        code: u8,
        /// Its octets, at most 255.
        value: Box<[u8]>,
    },
}

impl Capability {
    /// The capability of a family that we speak.
    #[must_use]
    pub const fn family(family: Family) -> Self {
        Self::Multiprotocol(family.afi(), family.safi())
    }

    /// The capability's code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Multiprotocol(..) => MULTIPROTOCOL,
            Self::RouteRefresh => ROUTE_REFRESH,
            Self::ExtendedNextHop(_) => EXTENDED_NEXT_HOP,
            Self::ExtendedMessage => EXTENDED_MESSAGE,
            Self::Role(_) => ROLE,
            Self::GracefulRestart(_) => GRACEFUL_RESTART,
            Self::FourOctetAs(_) => FOUR_OCTET_AS,
            Self::AddPath(_) => ADD_PATH,
            Self::EnhancedRouteRefresh => ENHANCED_ROUTE_REFRESH,
            Self::LongLivedGracefulRestart(_) => LONG_LIVED_GRACEFUL_RESTART,
            Self::Fqdn { .. } => FQDN,
            Self::SoftwareVersion(_) => SOFTWARE_VERSION,
            Self::Unknown { code, .. } => *code,
        }
    }

    /// What a code is called, whether we use its capability or not; `None` where nobody has assigned it.
    #[must_use]
    pub const fn name(code: u8) -> Option<&'static str> {
        Some(match code {
            MULTIPROTOCOL => "multiprotocol",
            ROUTE_REFRESH => "route-refresh",
            3 => "outbound-route-filtering",
            EXTENDED_NEXT_HOP => "extended-next-hop",
            EXTENDED_MESSAGE => "extended-message",
            7 => "bgpsec",
            8 => "multiple-labels",
            ROLE => "role",
            GRACEFUL_RESTART => "graceful-restart",
            FOUR_OCTET_AS => "4-octet-as",
            67 => "dynamic-capability",
            68 => "multisession",
            ADD_PATH => "add-path",
            ENHANCED_ROUTE_REFRESH => "enhanced-route-refresh",
            LONG_LIVED_GRACEFUL_RESTART => "long-lived-graceful-restart",
            FQDN => "fqdn",
            74 => "bfd",
            SOFTWARE_VERSION => "software-version",
            76 => "paths-limit",
            77 => "link-local-next-hop",
            128 => "route-refresh-cisco",
            _ => return None,
        })
    }

    /// What a code and its octets say. Never fails: what is odd is [`Capability::Unknown`].
    #[must_use]
    pub fn parse(code: u8, value: &[u8]) -> Self {
        Self::parse_known(code, value).unwrap_or_else(|| Self::Unknown { code, value: value.into() })
    }

    fn parse_known(code: u8, value: &[u8]) -> Option<Self> {
        match (code, value) {
            (MULTIPROTOCOL, &[high, low, _, safi]) => {
                Some(Self::Multiprotocol(u16::from_be_bytes([high, low]), safi))
            }
            (ROUTE_REFRESH, []) => Some(Self::RouteRefresh),
            (EXTENDED_NEXT_HOP, triples) => ExtendedNextHop::parse_all(triples).map(Self::ExtendedNextHop),
            (EXTENDED_MESSAGE, []) => Some(Self::ExtendedMessage),
            (ROLE, &[role]) => Role::from_code(role).map(Self::Role),
            (GRACEFUL_RESTART, value) => GracefulRestart::parse(value).map(Self::GracefulRestart),
            (FOUR_OCTET_AS, &[a, b, c, d]) => Some(Self::FourOctetAs(Asn(u32::from_be_bytes([a, b, c, d])))),
            (ADD_PATH, families) => AddPath::parse_all(families).map(Self::AddPath),
            (ENHANCED_ROUTE_REFRESH, []) => Some(Self::EnhancedRouteRefresh),
            (LONG_LIVED_GRACEFUL_RESTART, families) => {
                LongLivedFamily::parse_all(families).map(Self::LongLivedGracefulRestart)
            }
            (FQDN, value) => {
                let (host, rest) = split_text(value)?;
                let (domain, []) = split_text(rest)? else { return None };
                Some(Self::Fqdn { host: host.into(), domain: domain.into() })
            }
            (SOFTWARE_VERSION, value) => {
                let (version, []) = split_text(value)? else { return None };
                (!version.is_empty()).then(|| Self::SoftwareVersion(version.into()))
            }
            _ => None,
        }
    }

    /// Code, length and octets, as they stand in an OPEN; `None` for more than 255 octets.
    #[must_use]
    pub fn to_octets(&self) -> Option<Vec<u8>> {
        let mut out = BytesMut::new();
        self.encode(&mut out).ok()?;
        Some(out.to_vec())
    }

    /// Appends code, length and octets.
    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), TooLong> {
        let start = out.len();
        out.put_slice(&[self.code(), 0]);
        match self {
            Self::Multiprotocol(afi, safi) => {
                out.put_u16(*afi);
                out.put_slice(&[0, *safi]);
            }
            Self::RouteRefresh | Self::ExtendedMessage | Self::EnhancedRouteRefresh => {}
            Self::ExtendedNextHop(triples) => triples.iter().for_each(|triple| triple.encode(out)),
            Self::Role(role) => out.put_u8(role.code()),
            Self::GracefulRestart(restart) => restart.encode(out),
            Self::FourOctetAs(asn) => out.put_u32(asn.0),
            Self::AddPath(families) => families.iter().for_each(|family| family.encode(out)),
            Self::LongLivedGracefulRestart(families) => families.iter().for_each(|family| family.encode(out)),
            Self::Fqdn { host, domain } => {
                put_text(host, out)?;
                put_text(domain, out)?;
            }
            Self::SoftwareVersion(version) => put_text(version, out)?,
            Self::Unknown { value, .. } => out.put_slice(value),
        }
        let length = u8::try_from(out.len() - start - 2).map_err(|_| TooLong)?;
        out[start + 1] = length;
        Ok(())
    }

    /// Reads capabilities that stand one behind the other; `None` if the last one is cut off.
    pub(crate) fn parse_all(mut octets: &[u8]) -> Option<Vec<Self>> {
        let mut capabilities = Vec::new();
        while !octets.is_empty() {
            let (&[code, length], rest) = octets.split_first_chunk::<2>()?;
            let (value, after) = rest.split_at_checked(usize::from(length))?;
            capabilities.push(Self::parse(code, value));
            octets = after;
        }
        Some(capabilities)
    }
}

/// A capability does not fit its one-octet length.
pub(crate) struct TooLong;

/// A text behind its one-octet length, and what follows it.
fn split_text(octets: &[u8]) -> Option<(&str, &[u8])> {
    let (&length, rest) = octets.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(length))?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

fn put_text(text: &str, out: &mut BytesMut) -> Result<(), TooLong> {
    out.put_u8(u8::try_from(text.len()).map_err(|_| TooLong)?);
    out.put_slice(text.as_bytes());
    Ok(())
}

/// A pair of AFI and SAFI, by its name where we know it.
struct Pair(u16, u16);

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(afi, safi) = *self;
        match u8::try_from(safi).ok().and_then(|safi| Family::from_afi_safi(afi, safi)) {
            Some(family) => write!(f, "{family}"),
            None => write!(f, "{afi}/{safi}"),
        }
    }
}

impl fmt::Display for Capability {
    /// The name, then what it says. Texts come from the peer: control characters are shown escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::name(self.code()) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "capability {}", self.code())?,
        }
        match self {
            Self::Multiprotocol(afi, safi) => write!(f, " {}", Pair(*afi, (*safi).into())),
            Self::RouteRefresh | Self::ExtendedMessage | Self::EnhancedRouteRefresh => Ok(()),
            Self::ExtendedNextHop(triples) => triples.iter().try_for_each(|triple| {
                write!(f, " {}:", Pair(triple.afi, triple.safi))?;
                match triple.next_hop_afi {
                    1 => f.write_str("ipv4"),
                    2 => f.write_str("ipv6"),
                    afi => write!(f, "{afi}"),
                }
            }),
            Self::Role(role) => write!(f, " {role}"),
            Self::GracefulRestart(restart) => {
                write!(f, " {} s", restart.time)?;
                for (there, word) in
                    [(restart.restarting, "restarting"), (restart.notification, "notification")]
                {
                    if there {
                        write!(f, " {word}")?;
                    }
                }
                restart.families.iter().try_for_each(|family| {
                    write!(f, " {}", Pair(family.afi, family.safi.into()))?;
                    f.write_str(if family.forwarding { ":forwarding" } else { "" })
                })
            }
            Self::FourOctetAs(asn) => write!(f, " {asn}"),
            Self::AddPath(families) => families.iter().try_for_each(|family| {
                let mode = match (family.receive, family.send) {
                    (true, true) => "both",
                    (true, false) => "receive",
                    (false, true) => "send",
                    (false, false) => "none",
                };
                write!(f, " {}:{mode}", Pair(family.afi, family.safi.into()))
            }),
            Self::LongLivedGracefulRestart(families) => families.iter().try_for_each(|family| {
                write!(f, " {}:{} s", Pair(family.afi, family.safi.into()), family.stale_time)?;
                f.write_str(if family.forwarding { ":forwarding" } else { "" })
            }),
            Self::Fqdn { host, domain } => {
                write!(f, " \"{}", host.escape_debug())?;
                if !domain.is_empty() {
                    write!(f, ".{}", domain.escape_debug())?;
                }
                f.write_str("\"")
            }
            Self::SoftwareVersion(version) => write!(f, " \"{}\"", version.escape_debug()),
            Self::Unknown { value, .. } => {
                if !value.is_empty() {
                    f.write_str(" ")?;
                }
                value.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
