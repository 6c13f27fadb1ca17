//! EXTENDED COMMUNITIES: optional, transitive, eight octets each (RFC 4360, 5668; RFC 7606 section 7.14).

use std::{
    fmt,
    net::{AddrParseError, Ipv4Addr},
    num::ParseIntError,
    str::FromStr,
};

use crate::asn::Asn;

/// An extended community.
///
/// Route targets and route origins are shown and read as `rt:65010:77`, `rt:192.0.2.1:77`, `soo:…`; a global
/// part above 65535 is a 4-octet AS number. Others are shown and read as `ext:` and sixteen hexadecimal
/// digits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExtCommunity(pub u64);

const RT: u8 = 0x02;
const SOO: u8 = 0x03;
const LINK_BANDWIDTH: u8 = 0x04;

impl ExtCommunity {
    /// The octets as they stand in a message.
    #[must_use]
    pub const fn octets(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Whether it may leave the AS: the Transitive bit (RFC 4360 section 2) is zero.
    #[must_use]
    pub const fn is_transitive(self) -> bool {
        self.octets()[0] & 0x40 == 0
    }

    /// Whether it is a route target of any form (RFC 4360 section 4, RFC 5668).
    #[must_use]
    pub const fn is_route_target(self) -> bool {
        let [kind, subtype, ..] = self.octets();
        kind <= 2 && subtype == RT
    }

    /// The address of a route target that begins with one.
    #[must_use]
    pub const fn route_target_address(self) -> Option<Ipv4Addr> {
        let [kind, subtype, a, b, c, d, ..] = self.octets();
        if kind == 1 && subtype == RT { Some(Ipv4Addr::new(a, b, c, d)) } else { None }
    }

    /// The link bandwidth that it says, in octets a second: a floating-point number that may be any, also none
    /// (draft-ietf-idr-link-bandwidth). It may be transitive or not.
    #[must_use]
    pub const fn link_bandwidth(self) -> Option<f32> {
        match self.octets() {
            [0x00 | 0x40, LINK_BANDWIDTH, _, _, octets @ ..] => Some(f32::from_be_bytes(octets)),
            _ => None,
        }
    }

    /// A link bandwidth in octets a second, of a link of this AS. It does not leave the AS.
    #[must_use]
    pub const fn of_link_bandwidth(asn: u16, octets: f32) -> Self {
        Self(0x40 << 56 | (LINK_BANDWIDTH as u64) << 48 | (asn as u64) << 32 | octets.to_bits() as u64)
    }

    /// A route target of an AS number and a number, in the 2-octet form where the AS number allows it; `None`
    /// if the number does not fit beside a 4-octet AS number.
    #[must_use]
    pub const fn route_target(asn: Asn, number: u32) -> Option<Self> {
        Self::of_as(RT, asn, number)
    }

    const fn of_as(subtype: u8, asn: Asn, number: u32) -> Option<Self> {
        let subtype = (subtype as u64) << 48;
        if asn.is_2octet() {
            Some(Self(subtype | (asn.0 as u64) << 32 | number as u64))
        } else if number <= 0xffff {
            Some(Self(0x02 << 56 | subtype | (asn.0 as u64) << 16 | number as u64))
        } else {
            None
        }
    }
}

impl From<[u8; 8]> for ExtCommunity {
    fn from(octets: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(octets))
    }
}

impl fmt::Display for ExtCommunity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [kind, subtype, a, b, c, d, e, g] = self.octets();
        let name = match subtype {
            RT => "rt",
            SOO => "soo",
            _ => return write!(f, "ext:{:016x}", self.0),
        };
        let low = u16::from_be_bytes([e, g]);
        match kind {
            0 => write!(f, "{name}:{}:{}", u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, g])),
            1 => write!(f, "{name}:{}:{low}", Ipv4Addr::new(a, b, c, d)),
            // A small number in the 4-octet form must not read like the 2-octet form, which is another
            // community.
            2 if a | b == 0 => write!(f, "ext:{:016x}", self.0),
            2 => write!(f, "{name}:{}:{low}", u32::from_be_bytes([a, b, c, d])),
            _ => write!(f, "ext:{:016x}", self.0),
        }
    }
}

/// A text that is no extended community.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtCommunityParseError {
    /// Not one of the forms.
    #[error(
        "not an extended community: \"{0}\" (rt:AS:number, rt:address:number, soo:…, ext:16 hexadecimal digits)"
    )]
    Form(String),
    /// A part is not the number that it should be.
    #[error(transparent)]
    Number(#[from] ParseIntError),
    /// The address is none.
    #[error(transparent)]
    Address(#[from] AddrParseError),
}

impl FromStr for ExtCommunity {
    type Err = ExtCommunityParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || ExtCommunityParseError::Form(text.to_owned());
        let (name, rest) = text.split_once(':').ok_or_else(form)?;
        let subtype = match name {
            "rt" => RT,
            "soo" => SOO,
            "ext" if rest.len() == 16 && !rest.starts_with('+') => {
                return Ok(Self(u64::from_str_radix(rest, 16)?));
            }
            _ => return Err(form()),
        };
        let (global, local) = rest.split_once(':').ok_or_else(form)?;
        if global.contains('.') {
            let [a, b, c, d] = global.parse::<Ipv4Addr>()?.octets();
            let [e, g] = local.parse::<u16>()?.to_be_bytes();
            return Ok([1, subtype, a, b, c, d, e, g].into());
        }
        Self::of_as(subtype, Asn(global.parse()?), local.parse()?).ok_or_else(form)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, external, withdrawn_for};
    use super::*;
    use crate::error::AttrProblem;

    #[test]
    fn texts() {
        for (text, octets) in [
            ("rt:65010:77", [0, 2, 0xfd, 0xf2, 0, 0, 0, 77]),
            ("rt:192.0.2.1:77", [1, 2, 192, 0, 2, 1, 0, 77]),
            ("soo:70000:77", [2, 3, 0, 1, 0x11, 0x70, 0, 77]),
            ("ext:0202000000010002", [2, 2, 0, 0, 0, 1, 0, 2]),
            ("ext:030b000000000064", [3, 11, 0, 0, 0, 0, 0, 100]),
        ] {
            let community = ExtCommunity::from(octets);
            assert_eq!(text.parse(), Ok(community), "{text}");
            assert_eq!(community.to_string(), text);
        }
        for wrong in ["rt:1", "rt:70000:65536", "rt:1.2.3:4", "xy:1:2", "ext:12", "ext:+123456789abcdef", ""]
        {
            assert!(wrong.parse::<ExtCommunity>().is_err(), "{wrong}");
        }
        assert_eq!(ExtCommunity::route_target(Asn(65010), 77), "rt:65010:77".parse().ok());
        let parse = |text: &str| text.parse::<ExtCommunity>().unwrap();
        let target = parse("rt:192.0.2.1:77");
        assert_eq!(target.route_target_address(), Some(Ipv4Addr::new(192, 0, 2, 1)));
        for (text, is_target) in [("rt:192.0.2.1:77", true), ("rt:1:2", true), ("soo:192.0.2.1:7", false)] {
            assert_eq!(parse(text).is_route_target(), is_target, "{text}");
        }
        assert_eq!(parse("rt:65010:77").route_target_address(), None);
        assert_eq!(parse("soo:192.0.2.1:7").route_target_address(), None);
    }

    #[test]
    fn are_kept_in_their_order() {
        let kept = canonical_of(external(), &[0xc0, 16, 8, 0x40, 2, 0xfd, 0xf2, 0, 0, 0, 77]);
        let list: Vec<_> = kept.as_ref().ext_communities().collect();
        assert_eq!(list, [ExtCommunity(0x4002_fdf2_0000_004d)]);
        assert!(!list[0].is_transitive());
    }

    #[test]
    fn no_multiple_of_eight_is_treat_as_withdraw() {
        assert_eq!(withdrawn_for(external(), &[0xc0, 16, 4, 0, 0, 0, 1]), Some((16, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0xc0, 16, 0]), Some((16, AttrProblem::Length)));
    }
}
