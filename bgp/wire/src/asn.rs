//! Autonomous system numbers (RFC 4271, 6793, 5396, 7607).

use std::{fmt, num::ParseIntError, str::FromStr};

/// An autonomous system number, always held in four octets (RFC 6793).
///
/// Shown in decimal ("asplain"); read in decimal or as `high.low` ("asdot", RFC 5396).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Asn(pub u32);

impl Asn {
    /// AS 23456, which stands for a number that does not fit in two octets (RFC 6793 section 9).
    pub const TRANS: Self = Self(23456);
    /// AS 0, reserved: no peer has it and no path may contain it (RFC 7607).
    pub const ZERO: Self = Self(0);

    /// Whether the number fits in two octets.
    #[must_use]
    pub const fn is_2octet(self) -> bool {
        self.0 <= 0xffff
    }

    /// What a two-octet field holds for this number: itself, or [`Asn::TRANS`].
    #[must_use]
    pub const fn to_2octet(self) -> u16 {
        if self.is_2octet() { self.0 as u16 } else { Self::TRANS.0 as u16 }
    }
}

impl From<u32> for Asn {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl fmt::Display for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text that is no AS number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an AS number: {0}")]
pub struct AsnParseError(#[from] ParseIntError);

impl FromStr for Asn {
    type Err = AsnParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('.') {
            None => Self(text.parse()?),
            Some((high, low)) => {
                let (high, low): (u16, u16) = (high.parse()?, low.parse()?);
                Self(u32::from(high) << 16 | u32::from(low))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_plain_and_dotted_text() {
        assert_eq!("65010".parse(), Ok(Asn(65010)));
        assert_eq!("1.10".parse(), Ok(Asn(65546)));
        assert_eq!("4294967295".parse(), Ok(Asn(u32::MAX)));
        for wrong in ["", "AS1", "-1", "4294967296", "1.65536", "1.2.3", "."] {
            assert!(wrong.parse::<Asn>().is_err(), "{wrong}");
        }
        assert_eq!(Asn(65546).to_string(), "65546");
    }

    #[test]
    fn a_number_too_large_for_two_octets_becomes_as_trans() {
        assert_eq!(Asn(65535).to_2octet(), 65535);
        assert_eq!(Asn(65536).to_2octet(), 23456);
    }
}
