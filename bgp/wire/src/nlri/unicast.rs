//! Unicast prefixes: a length in bits and as many octets as hold them (RFC 4271 section 4.3).
//!
//! Bits behind the length are cleared when a prefix is made, as RFC 4271 says that they have no meaning.

use ipnet::{Ipv4Net, Ipv6Net};
use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use super::{Label, Nlri, NlriKey};
use crate::family::Family;

macro_rules! prefix {
    ($(#[$doc:meta])* $name:ident, $int:ty, $address:ty, $net:ty, $family:expr, $value:ident, $bits:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name {
            addr: $int,
            len: u8,
        }

        impl $name {
            /// The longest prefix, in bits.
            pub const MAX_LEN: u8 = $bits;
            const OCTETS: usize = $bits / 8;

            /// A prefix of `len` bits; the bits of `addr` (in host order) behind them are cleared. `None` if
            /// `len` is greater than [`Self::MAX_LEN`].
            #[inline]
            #[must_use]
            pub const fn new(addr: $int, len: u8) -> Option<Self> {
                if len > Self::MAX_LEN { None } else { Some(Self { addr: addr & Self::mask(len), len }) }
            }

            /// The address bits, in host order.
            #[inline]
            #[must_use]
            pub const fn addr(self) -> $int {
                self.addr
            }

            /// The length in bits.
            #[inline]
            #[must_use]
            pub const fn len(self) -> u8 {
                self.len
            }

            /// Whether this is the default route, which covers everything.
            #[inline]
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.len == 0
            }

            /// Whether `other` lies inside this prefix or is the same.
            #[inline]
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.len <= other.len && other.addr & Self::mask(self.len) == self.addr
            }

            #[inline]
            const fn mask(len: u8) -> $int {
                match <$int>::MAX.checked_shl(Self::MAX_LEN as u32 - len as u32) {
                    Some(mask) => mask,
                    None => 0,
                }
            }
        }

        impl NlriKey for $name {
            const FAMILY: Family = $family;
            const MAX_ENCODED: usize = 1 + Self::OCTETS;

            #[inline]
            fn split_first(field: &[u8]) -> Option<(Self, Option<Label>, &[u8])> {
                let (&len, rest) = field.split_first()?;
                if len > Self::MAX_LEN {
                    return None;
                }
                let octets = usize::from(len).div_ceil(8);
                let (own, after) = rest.split_at_checked(octets)?;
                // Nearly always there is more behind the prefix: one load and a mask instead of a copy by
                // octets.
                let addr = match rest.first_chunk() {
                    Some(chunk) => <$int>::from_be_bytes(*chunk),
                    None => {
                        let mut whole = [0; Self::OCTETS];
                        whole[..octets].copy_from_slice(own);
                        <$int>::from_be_bytes(whole)
                    }
                };
                Some((Self { addr: addr & Self::mask(len), len }, None, after))
            }

            #[inline]
            fn write(self, _: Option<Label>, out: &mut [u8; 32]) -> usize {
                out[0] = self.len;
                out[1..=Self::OCTETS].copy_from_slice(&self.addr.to_be_bytes());
                1 + usize::from(self.len).div_ceil(8)
            }

            fn of(nlri: Nlri) -> Option<Self> {
                if let Nlri::$value(net) = nlri { Some(net.into()) } else { None }
            }
        }

        impl From<$net> for $name {
            fn from(net: $net) -> Self {
                Self { addr: net.network().to_bits(), len: net.prefix_len() }
            }
        }

        impl From<$name> for $net {
            fn from(prefix: $name) -> Self {
                Self::new(<$address>::from_bits(prefix.addr), prefix.len).expect("a prefix is never too long")
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", <$address>::from_bits(self.addr), self.len)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

prefix!(
    /// An IPv4 prefix without host bits.
    Ipv4Prefix, u32, Ipv4Addr, Ipv4Net, Family::Ipv4Unicast, V4, 32
);
prefix!(
    /// An IPv6 prefix without host bits.
    Ipv6Prefix, u128, Ipv6Addr, Ipv6Net, Family::Ipv6Unicast, V6, 128
);

impl From<Ipv4Prefix> for Nlri {
    fn from(prefix: Ipv4Prefix) -> Self {
        Self::V4(prefix.into())
    }
}

impl From<Ipv6Prefix> for Nlri {
    fn from(prefix: Ipv6Prefix) -> Self {
        Self::V6(prefix.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn host_bits_are_cleared() {
        let prefix = Ipv4Prefix::new(0xcb00_71ff, 24).unwrap();
        assert_eq!(prefix.to_string(), "203.0.113.0/24");
        assert_eq!(Ipv4Prefix::split_first(&[20, 10, 1, 0xff, 7]).unwrap().0.to_string(), "10.1.240.0/20");
        assert_eq!(Ipv4Prefix::split_first(&[20, 10, 1, 0xff]).unwrap().0.to_string(), "10.1.240.0/20");
        assert_eq!(Ipv4Prefix::new(0, 33), None);
        assert_eq!(Ipv6Prefix::new(0, 129), None);
    }

    #[test]
    fn too_long_or_cut_off_is_no_prefix() {
        for field in [&[][..], &[33, 1, 2, 3, 4, 5], &[24, 1, 2], &[1], &[255]] {
            assert_eq!(Ipv4Prefix::split_first(field), None, "{field:?}");
        }
        assert_eq!(Ipv6Prefix::split_first(&[129; 20]), None);
        assert_eq!(Ipv6Prefix::split_first(&[128; 16]), None);
    }

    #[test]
    fn containment_is_by_leading_bits() {
        let prefix = |text: &str| Ipv4Prefix::from(text.parse::<Ipv4Net>().unwrap());
        assert!(prefix("0.0.0.0/0").contains(prefix("255.0.0.0/8")));
        assert!(prefix("10.0.0.0/8").contains(prefix("10.0.0.0/8")));
        assert!(!prefix("10.0.0.0/9").contains(prefix("10.0.0.0/8")));
        assert!(!prefix("10.0.0.0/9").contains(prefix("10.128.0.0/10")));
    }

    proptest! {
        #[test]
        fn v4_goes_there_and_back(addr: u32, len in 0u8..=32, behind: Vec<u8>) {
            let prefix = Ipv4Prefix::new(addr, len).unwrap();
            let mut octets = [0; 32];
            let count = prefix.write(None, &mut octets);
            let field = [&octets[..count], &behind].concat();
            prop_assert_eq!(Ipv4Prefix::split_first(&field), Some((prefix, None, &behind[..])));
            prop_assert_eq!(Ipv4Prefix::from(Ipv4Net::from(prefix)), prefix);
            prop_assert_eq!(prefix.to_string(), Ipv4Net::from(prefix).to_string());
        }

        #[test]
        fn v6_goes_there_and_back(addr: u128, len in 0u8..=128, behind: Vec<u8>) {
            let prefix = Ipv6Prefix::new(addr, len).unwrap();
            let mut octets = [0; 32];
            let count = prefix.write(None, &mut octets);
            let field = [&octets[..count], &behind].concat();
            prop_assert_eq!(Ipv6Prefix::split_first(&field), Some((prefix, None, &behind[..])));
            prop_assert_eq!(Ipv6Prefix::from(Ipv6Net::from(prefix)), prefix);
        }
    }
}
