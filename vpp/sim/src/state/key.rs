//! Families, prefixes and addresses as this state keys them: address bytes as on the wire, IPv4 in the first four.

use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

/// An address family. VPP takes any value but IPv6's for IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Af {
    /// IPv4
    Ip4,
    /// IPv6
    Ip6,
}

impl Af {
    /// The family of a flag such as `is_ip6`.
    pub(crate) fn of_flag(is_ip6: bool) -> Self {
        if is_ip6 { Self::Ip6 } else { Self::Ip4 }
    }

    /// The longest prefix.
    pub(crate) fn max_len(self) -> u8 {
        match self {
            Self::Ip4 => 32,
            Self::Ip6 => 128,
        }
    }

    /// Position in arrays with one element per family.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Ip4 => 0,
            Self::Ip6 => 1,
        }
    }
}

/// A prefix without host bits, within a family. Sorts as dumps list: shorter first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    /// Address bytes behind the length are zero.
    pub(crate) addr: [u8; 16],
    /// Prefix length in bits.
    pub(crate) len: u8,
}

impl Key {
    /// The prefix of `len` bits that `addr` is in.
    pub(crate) fn new(addr: [u8; 16], len: u8) -> Self {
        Self { addr: mask(addr, len), len }
    }

    /// The prefix that holds only `addr`.
    pub(crate) fn host(af: Af, addr: [u8; 16]) -> Self {
        Self::new(addr, af.max_len())
    }

    /// Whether `other` lies within this prefix.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.len <= other.len && mask(other.addr, self.len) == self.addr
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.len, self.addr).cmp(&(other.len, other.addr))
    }
}

/// `addr` with all bits behind the first `len` zero.
pub(crate) fn mask(addr: [u8; 16], len: u8) -> [u8; 16] {
    let bits = u128::from_be_bytes(addr);
    let keep = match len {
        0 => 0,
        1..=127 => u128::MAX << (128 - u32::from(len)),
        128.. => u128::MAX,
    };
    (bits & keep).to_be_bytes()
}

/// The address that these bytes mean.
pub(crate) fn ip(af: Af, addr: [u8; 16]) -> IpAddr {
    match af {
        Af::Ip4 => {
            let [a, b, c, d, ..] = addr;
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        Af::Ip6 => IpAddr::V6(Ipv6Addr::from(addr)),
    }
}

/// The family and bytes of an address.
pub(crate) fn bytes_of(ip: IpAddr) -> (Af, [u8; 16]) {
    match ip {
        IpAddr::V4(v4) => {
            let mut addr = [0; 16];
            addr[..4].copy_from_slice(&v4.octets());
            (Af::Ip4, addr)
        }
        IpAddr::V6(v6) => (Af::Ip6, v6.octets()),
    }
}

/// A prefix to be printed.
pub(crate) struct Shown(pub(crate) Af, pub(crate) [u8; 16], pub(crate) u8);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", ip(self.0, self.1), self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str) -> [u8; 16] {
        bytes_of(text.parse().expect("an address")).1
    }

    #[test]
    fn host_bits_are_masked() {
        assert_eq!(Key::new(v4("10.1.2.3"), 16), Key::new(v4("10.1.0.0"), 16));
        assert_eq!(Key::new(v4("10.1.2.3"), 0).addr, [0; 16]);
        assert_eq!(Key::new([0xff; 16], 128).addr, [0xff; 16]);
    }

    #[test]
    fn covering_is_containment() {
        let wide = Key::new(v4("10.0.0.0"), 8);
        let narrow = Key::new(v4("10.9.0.0"), 16);
        assert!(wide.covers(narrow) && wide.covers(wide) && !narrow.covers(wide));
        assert!(!Key::new(v4("11.0.0.0"), 8).covers(narrow));
    }
}
