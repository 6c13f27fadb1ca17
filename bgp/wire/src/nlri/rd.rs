//! Route distinguishers (RFC 4364 section 4.2).

use std::{fmt, net::Ipv4Addr, str::FromStr};

/// What makes equal prefixes of different VPNs differ: eight octets, the first two of which are a type.
///
/// | type | administrator | number | written |
/// |---|---|---|---|
/// | 0 | AS number of two octets | four octets | `65000:100` |
/// | 1 | IPv4 address | two octets | `192.0.2.1:100` |
/// | 2 | AS number of four octets | two octets | `4200000000:100`, or `0.65000:100` if the AS number has two octets only |
///
/// Others are written as sixteen hexadecimal digits behind `0x`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RouteDistinguisher(u64);

impl RouteDistinguisher {
    /// The one of these eight octets.
    #[inline]
    #[must_use]
    pub const fn from_octets(octets: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(octets))
    }

    /// Its eight octets.
    #[inline]
    #[must_use]
    pub const fn octets(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Type 0.
    #[must_use]
    pub const fn two_octet_as(asn: u16, number: u32) -> Self {
        Self((asn as u64) << 32 | number as u64)
    }

    /// Type 1.
    #[must_use]
    pub const fn ipv4(address: Ipv4Addr, number: u16) -> Self {
        Self(1 << 48 | (address.to_bits() as u64) << 16 | number as u64)
    }

    /// Type 2.
    #[must_use]
    pub const fn four_octet_as(asn: u32, number: u16) -> Self {
        Self(2 << 48 | (asn as u64) << 16 | number as u64)
    }

    /// Its type.
    #[must_use]
    pub const fn kind(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

impl fmt::Display for RouteDistinguisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (middle, last) = ((self.0 >> 16) as u32, self.0 as u16);
        match self.kind() {
            0 => write!(f, "{}:{}", (self.0 >> 32) as u16, self.0 as u32),
            1 => write!(f, "{}:{last}", Ipv4Addr::from_bits(middle)),
            2 if middle > u32::from(u16::MAX) => write!(f, "{middle}:{last}"),
            2 => write!(f, "0.{middle}:{last}"),
            _ => write!(f, "0x{:016x}", self.0),
        }
    }
}

impl fmt::Debug for RouteDistinguisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no route distinguisher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a route distinguisher (such as 65000:100, 192.0.2.1:100 or 4200000000:100): \"{0}\"")]
pub struct RdParseError(String);

impl FromStr for RouteDistinguisher {
    type Err = RdParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| RdParseError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<RouteDistinguisher> {
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| digits.len() == 16) {
        let hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return u64::from_str_radix(digits, 16).ok().filter(|_| hexadecimal).map(RouteDistinguisher);
    }
    let (administrator, number) = text.split_once(':')?;
    if let Ok(address) = administrator.parse() {
        return Some(RouteDistinguisher::ipv4(address, decimal(number)?));
    }
    if let Some((high, low)) = administrator.split_once('.') {
        let asn = u32::from(decimal::<u16>(high)?) << 16 | u32::from(decimal::<u16>(low)?);
        return Some(RouteDistinguisher::four_octet_as(asn, decimal(number)?));
    }
    match u16::try_from(decimal::<u32>(administrator)?) {
        Ok(asn) => Some(RouteDistinguisher::two_octet_as(asn, decimal(number)?)),
        Err(_) => Some(RouteDistinguisher::four_octet_as(decimal(administrator)?, decimal(number)?)),
    }
}

/// A number without a sign.
fn decimal<N: FromStr>(text: &str) -> Option<N> {
    text.parse().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_type_has_its_octets_and_its_text() {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        for (rd, octets, text) in [
            (RouteDistinguisher::two_octet_as(65000, 100), [0, 0, 0xfd, 0xe8, 0, 0, 0, 100], "65000:100"),
            (RouteDistinguisher::two_octet_as(1, u32::MAX), [0, 0, 0, 1, 255, 255, 255, 255], "1:4294967295"),
            (RouteDistinguisher::ipv4(address, 65535), [0, 1, 192, 0, 2, 1, 255, 255], "192.0.2.1:65535"),
            (RouteDistinguisher::four_octet_as(65536, 7), [0, 2, 0, 1, 0, 0, 0, 7], "65536:7"),
            (RouteDistinguisher::four_octet_as(65000, 7), [0, 2, 0, 0, 0xfd, 0xe8, 0, 7], "0.65000:7"),
            (
                RouteDistinguisher::from_octets([0, 3, 0, 0, 0, 0, 0, 1]),
                [0, 3, 0, 0, 0, 0, 0, 1],
                "0x0003000000000001",
            ),
        ] {
            assert_eq!((rd.octets(), rd.to_string().as_str()), (octets, text));
            assert_eq!((text.parse(), rd.kind()), (Ok(rd), u16::from(octets[1])));
        }
        assert_eq!("1.10:5".parse(), Ok(RouteDistinguisher::four_octet_as(65546, 5)), "RFC 5396 asdot");
    }

    #[test]
    fn what_is_no_route_distinguisher() {
        for text in [
            "",
            "1",
            ":",
            "1:",
            ":1",
            "1:2:3",
            "-1:2",
            "1:+2",
            "65000:4294967296",
            "192.0.2.1:65536",
            "65536:65536",
            "4294967296:1",
            "1.65536:1",
            "1.2.3:4",
            "2001:db8::1",
            "0x1",
            "0x+003000000000001",
            "a:b",
        ] {
            assert!(text.parse::<RouteDistinguisher>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn text_and_octets_go_there_and_back(kind in 0u16..4, rest: [u8; 6]) {
            let [a, b] = kind.to_be_bytes();
            let [c, d, e, f, g, h] = rest;
            let rd = RouteDistinguisher::from_octets([a, b, c, d, e, f, g, h]);
            prop_assert_eq!(rd.to_string().parse(), Ok(rd));
            prop_assert_eq!(RouteDistinguisher::from_octets(rd.octets()), rd);
        }
    }
}
