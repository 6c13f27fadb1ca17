//! SR policies: a distinguisher, a color and an endpoint under one length (RFC 9830 section 2.1).
//!
//! The length counts bits and has one right value for each family. What has another one, of whole octets, is passed over,
//! and the rest of the field is read (RFC 9830 section 5). GoBGP 3 reads only the last one of a message rightly, so each
//! is sent in a message of its own.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use super::{Label, Nlri, NlriKey};
use crate::family::Family;

macro_rules! sr_policy {
    ($(#[$doc:meta])* $name:ident, $address:ty, $octets:literal, $family:expr, $value:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            /// Makes policies differ that have color and endpoint in common.
            pub distinguisher: u32,
            /// What the policy is for; routes name it by their color community.
            pub color: u32,
            /// Where it leads to; unspecified for "anywhere".
            pub endpoint: $address,
        }

        impl NlriKey for $name {
            const FAMILY: Family = $family;
            const MAX_ENCODED: usize = 1 + $octets;
            const ALONE: bool = true;

            #[inline]
            fn split_first(field: &[u8]) -> Option<(Self, Option<Label>, &[u8])> {
                let (_, rest) = field.split_first().filter(|(bits, _)| usize::from(**bits) == $octets * 8)?;
                let (distinguisher, rest) = rest.split_first_chunk()?;
                let (color, rest) = rest.split_first_chunk()?;
                let (endpoint, rest) = rest.split_first_chunk::<{ $octets - 8 }>()?;
                let key = Self {
                    distinguisher: u32::from_be_bytes(*distinguisher),
                    color: u32::from_be_bytes(*color),
                    endpoint: <$address>::from(*endpoint),
                };
                Some((key, None, rest))
            }

            fn skip(field: &[u8]) -> Option<&[u8]> {
                let (&bits, rest) = field.split_first()?;
                // The right length is that of a policy that is cut off.
                let known = bits != 0 && bits % 8 == 0 && usize::from(bits) != $octets * 8;
                if known { rest.get(usize::from(bits / 8)..) } else { None }
            }

            #[inline]
            fn write(self, _: Option<Label>, out: &mut [u8; 32]) -> usize {
                out[0] = $octets * 8;
                out[1..5].copy_from_slice(&self.distinguisher.to_be_bytes());
                out[5..9].copy_from_slice(&self.color.to_be_bytes());
                out[9..=$octets].copy_from_slice(&self.endpoint.octets());
                1 + $octets
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

        impl fmt::Display for $name {
            /// Distinguisher, color and endpoint: `1:100:192.0.2.1`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}:{}:{}", self.distinguisher, self.color, self.endpoint)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

sr_policy!(
    /// An SR policy with an IPv4 endpoint.
    SrPolicy4, Ipv4Addr, 12, Family::Ipv4SrPolicy, SrPolicy4
);
sr_policy!(
    /// An SR policy with an IPv6 endpoint.
    SrPolicy6, Ipv6Addr, 24, Family::Ipv6SrPolicy, SrPolicy6
);

/// Reads `1:100:192.0.2.1`; `None` where it is something else.
pub(super) fn parse(text: &str) -> Option<Nlri> {
    let (distinguisher, rest) = text.split_once(':')?;
    let (color, endpoint) = rest.split_once(':')?;
    let number = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()));
    let (distinguisher, color) = (number(distinguisher)?, number(color)?);
    Some(match endpoint.parse().ok()? {
        std::net::IpAddr::V4(endpoint) => SrPolicy4 { distinguisher, color, endpoint }.into(),
        std::net::IpAddr::V6(endpoint) => SrPolicy6 { distinguisher, color, endpoint }.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn another_length_is_no_policy() {
        let mut field = [0; 40];
        for bits in 0..=255 {
            field[0] = bits;
            assert_eq!(SrPolicy4::split_first(&field).is_some(), bits == 96);
            assert_eq!(SrPolicy6::split_first(&field).is_some(), bits == 192);
        }
        for (octets, bits) in [(12, 96), (24, 192)] {
            field[0] = bits;
            assert_eq!(SrPolicy4::split_first(&field[..octets]), None);
            assert_eq!(SrPolicy6::split_first(&field[..octets]), None);
        }
    }

    #[test]
    fn reads_and_shows_policies() {
        for text in ["1:100:192.0.2.1", "0:4294967295:2001:db8::1", "7:0:0.0.0.0", "7:0:::"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        for text in ["", "1:2", "1:2:", "-1:2:192.0.2.1", "1:4294967296:192.0.2.1", "1:2:192.0.2.0/24"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn policies_go_there_and_back(distinguisher: u32, color: u32, v4: u32, v6: u128, behind: Vec<u8>) {
            let mut octets = [0; 32];
            let key = SrPolicy4 { distinguisher, color, endpoint: v4.into() };
            let count = key.write(None, &mut octets);
            let field = [&octets[..count], &behind].concat();
            prop_assert_eq!(SrPolicy4::split_first(&field), Some((key, None, &behind[..])));
            prop_assert_eq!(SrPolicy4::of(key.into()), Some(key));
            let key = SrPolicy6 { distinguisher, color, endpoint: v6.into() };
            let count = key.write(None, &mut octets);
            let field = [&octets[..count], &behind].concat();
            prop_assert_eq!(SrPolicy6::split_first(&field), Some((key, None, &behind[..])));
            prop_assert_eq!(parse(&key.to_string()), Some(key.into()));
        }
    }
}
