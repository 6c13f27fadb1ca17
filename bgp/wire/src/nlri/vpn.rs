//! Prefixes of VPNs: a label, a route distinguisher and a prefix under one length (RFC 4364 section 4.3.4, RFC 4659
//! section 2, RFC 8277 section 2.2).
//!
//! The key is the distinguisher with the prefix. The label goes beside it. In a withdrawal it is written as 0x800000, and
//! whatever stands there is passed over when it is read (RFC 8277 section 2.4).

use ipnet::{Ipv4Net, Ipv6Net};
use std::{fmt, str::FromStr};

use super::{Ipv4Prefix, Ipv6Prefix, Label, Nlri, NlriKey, NlriParseError, RouteDistinguisher};
use crate::family::Family;

/// Bits of a label and a route distinguisher, which the length counts.
const HEAD_BITS: u8 = 24 + 64;
const HEAD: usize = HEAD_BITS as usize / 8;

macro_rules! vpn {
    ($(#[$doc:meta])* $name:ident, $prefix:ident, $int:ty, $net:ty, $family:expr, $value:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            /// Which VPN's.
            pub rd: RouteDistinguisher,
            /// The prefix there.
            pub prefix: $prefix,
        }

        impl NlriKey for $name {
            const FAMILY: Family = $family;
            const MAX_ENCODED: usize = HEAD + $prefix::MAX_ENCODED;
            const LABELLED: bool = true;

            #[inline]
            fn split_first(field: &[u8]) -> Option<(Self, Option<Label>, &[u8])> {
                let (&bits, rest) = field.split_first()?;
                let len = bits.checked_sub(HEAD_BITS).filter(|len| *len <= $prefix::MAX_LEN)?;
                let (label, rest) = rest.split_first_chunk()?;
                let (rd, rest) = rest.split_first_chunk()?;
                let (octets, rest) = rest.split_at_checked(usize::from(len).div_ceil(8))?;
                let mut whole = [0; size_of::<$int>()];
                whole.get_mut(..octets.len())?.copy_from_slice(octets);
                let prefix = $prefix::new(<$int>::from_be_bytes(whole), len)?;
                Some((Self { rd: RouteDistinguisher::from_octets(*rd), prefix }, Some(Label::parse(*label)), rest))
            }

            #[inline]
            fn write(self, label: Option<Label>, out: &mut [u8; 32]) -> usize {
                out[0] = HEAD_BITS + self.prefix.len();
                out[1..4].copy_from_slice(&Label::octets(label));
                out[4..=HEAD].copy_from_slice(&self.rd.octets());
                out[HEAD + 1..=HEAD + size_of::<$int>()].copy_from_slice(&self.prefix.addr().to_be_bytes());
                1 + HEAD + usize::from(self.prefix.len()).div_ceil(8)
            }

            fn of(nlri: Nlri) -> Option<Self> {
                if let Nlri::$value(key) = nlri { Some(key) } else { None }
            }
        }

        impl From<$name> for Nlri {
            fn from(key: $name) -> Self {
                Self::$value(key)
            }
        }

        impl $name {
            /// The prefix of one VPN.
            #[must_use]
            pub fn new(rd: RouteDistinguisher, net: $net) -> Self {
                Self { rd, prefix: net.into() }
            }
        }

        impl fmt::Display for $name {
            /// `65000:100:203.0.113.0/24`. A distinguisher has one colon, or none where it is hexadecimal, so it is
            /// clear where it ends.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}:{}", self.rd, self.prefix)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

vpn!(
    /// An IPv4 prefix of a VPN.
    VpnIpv4Prefix, Ipv4Prefix, u32, Ipv4Net, Family::Ipv4Vpn, VpnV4
);
vpn!(
    /// An IPv6 prefix of a VPN.
    VpnIpv6Prefix, Ipv6Prefix, u128, Ipv6Net, Family::Ipv6Vpn, VpnV6
);

/// Reads `65000:100:203.0.113.0/24`; `None` where no distinguisher stands in front, so that the text may be something
/// else.
pub(super) fn parse(text: &str) -> Option<Result<Nlri, NlriParseError>> {
    let colons = if text.starts_with("0x") { 1 } else { 2 };
    let (end, _) = text.match_indices(':').nth(colons - 1)?;
    let rd = RouteDistinguisher::from_str(text.get(..end)?).ok()?;
    let prefix = text.get(end + 1..)?.parse::<Nlri>();
    Some(prefix.and_then(|prefix| {
        let syntax = || NlriParseError::Syntax(text.to_owned());
        prefix.in_vpn(rd).ok_or_else(syntax)
    }))
}

#[cfg(test)]
mod tests;
