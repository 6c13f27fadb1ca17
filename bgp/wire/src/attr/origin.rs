//! ORIGIN: where the route came from (RFC 4271 sections 4.3 and 5.1.1).

use std::{fmt, str::FromStr};

use super::DecodeCtx;
use crate::error::AttrProblem;

/// ORIGIN. Ordered as route selection prefers: the lowest wins.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Origin {
    /// From within the originating AS.
    #[default]
    Igp = 0,
    /// Learnt by EGP (RFC 904).
    Egp = 1,
    /// By other means.
    Incomplete = 2,
}

impl Origin {
    /// The origin of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Igp),
            1 => Some(Self::Egp),
            2 => Some(Self::Incomplete),
            _ => None,
        }
    }

    /// The origin's code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Igp => "igp",
            Self::Egp => "egp",
            Self::Incomplete => "incomplete",
        })
    }
}

/// A text that is neither `igp`, `egp` nor `incomplete`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an origin (igp, egp, incomplete)")]
pub struct UnknownOrigin;

impl FromStr for Origin {
    type Err = UnknownOrigin;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "igp" => Ok(Self::Igp),
            "egp" => Ok(Self::Egp),
            "incomplete" => Ok(Self::Incomplete),
            _ => Err(UnknownOrigin),
        }
    }
}

pub(crate) fn check(value: &[u8], _: DecodeCtx) -> Result<(), AttrProblem> {
    match value {
        [0..=2] => Ok(()),
        _ => Err(AttrProblem::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{external, withdrawn_for};
    use super::*;

    #[test]
    fn texts_and_codes() {
        for origin in [Origin::Igp, Origin::Egp, Origin::Incomplete] {
            assert_eq!(Origin::from_code(origin.code()), Some(origin));
            assert_eq!(origin.to_string().parse(), Ok(origin));
        }
        assert_eq!("IGP".parse::<Origin>(), Err(UnknownOrigin));
    }

    #[test]
    fn undefined_value_or_length_is_treat_as_withdraw() {
        assert_eq!(withdrawn_for(external(), &[0x40, 1, 1, 3]), Some((1, AttrProblem::Value)));
        assert_eq!(withdrawn_for(external(), &[0x40, 1, 0]), Some((1, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0x40, 1, 2, 0, 0]), Some((1, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0xc0, 1, 1, 0]), Some((1, AttrProblem::Flags)));
        assert_eq!(withdrawn_for(external(), &[0x40, 1, 1, 2]), None);
    }
}
