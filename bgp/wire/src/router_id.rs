//! BGP identifiers (RFC 4271 section 4.2, RFC 6286).

use std::{fmt, net::Ipv4Addr, str::FromStr};

/// A BGP Identifier: any four octets but zero, unique within the AS (RFC 6286). Written like an IPv4 address.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RouterId(pub u32);

impl RouterId {
    /// The octets as they stand in a message.
    #[must_use]
    pub const fn octets(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

impl From<Ipv4Addr> for RouterId {
    fn from(address: Ipv4Addr) -> Self {
        Self(address.to_bits())
    }
}

impl From<RouterId> for Ipv4Addr {
    fn from(id: RouterId) -> Self {
        Self::from_bits(id.0)
    }
}

impl From<[u8; 4]> for RouterId {
    fn from(octets: [u8; 4]) -> Self {
        Self(u32::from_be_bytes(octets))
    }
}

impl FromStr for RouterId {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<Ipv4Addr>().map(Self::from)
    }
}

impl fmt::Display for RouterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv4Addr::from(*self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_a_dotted_quad() {
        let id: RouterId = "192.0.2.10".parse().unwrap();
        assert_eq!(id, RouterId(0xc000_020a));
        assert_eq!(id.to_string(), "192.0.2.10");
        assert!("192.0.2".parse::<RouterId>().is_err());
    }
}
