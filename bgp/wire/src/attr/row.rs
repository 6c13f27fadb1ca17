//! What one row of the attribute table holds, and how an attribute is held against it.

use super::{AttrFlags, DecodeCtx, RawAttr, TABLE};
use crate::error::{AttrFault, AttrProblem, Consequence};

/// What the Optional and Transitive bits must be (RFC 4271 section 5).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Well-known: not optional, transitive.
    WellKnown,
    /// Optional and transitive.
    Transitive,
    /// Optional, not transitive.
    NonTransitive,
}

impl Class {
    /// The flags of an attribute of this class.
    pub(crate) const fn flags(self) -> AttrFlags {
        match self {
            Self::WellKnown => AttrFlags::TRANSITIVE,
            Self::Transitive => AttrFlags(AttrFlags::OPTIONAL.0 | AttrFlags::TRANSITIVE.0),
            Self::NonTransitive => AttrFlags::OPTIONAL,
        }
    }
}

/// Which lengths are possible.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Exactly so many octets.
    Exact(usize),
    /// A multiple of so many octets, not zero.
    Multiple(usize),
    /// What the check of the value says.
    Any,
}

/// From whom an attribute is taken; from others it is discarded whatever it holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// Every peer.
    Anyone,
    /// Peers in our own AS.
    Internal,
    /// Peers that speak 2-octet AS numbers.
    TwoOctet,
}

/// One row of the attribute table.
pub(crate) struct Row {
    code: u8,
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    size: Size,
    from: Sender,
    malformed: Consequence,
    check: fn(&[u8], DecodeCtx) -> Result<(), AttrProblem>,
}

impl Row {
    pub(crate) const fn new(
        code: u8,
        name: &'static str,
        class: Class,
        size: Size,
        from: Sender,
        malformed: Consequence,
        check: fn(&[u8], DecodeCtx) -> Result<(), AttrProblem>,
    ) -> Self {
        Self { code, name, class, size, from, malformed, check }
    }

    /// Holds an attribute against the row.
    pub(crate) fn check(&self, attr: &RawAttr<'_>, ctx: DecodeCtx) -> Result<(), AttrFault> {
        let taken = match self.from {
            Sender::Anyone => true,
            Sender::Internal => !ctx.ebgp,
            Sender::TwoOctet => !ctx.four_octet,
        };
        if !taken {
            return Err(self.fault(AttrProblem::OutOfPlace, Consequence::DiscardAttribute));
        }
        if attr.flags.kind() != self.class.flags() {
            return Err(self.fault(AttrProblem::Flags, Consequence::TreatAsWithdraw));
        }
        let fits = match self.size {
            Size::Exact(octets) => attr.value.len() == octets,
            Size::Multiple(octets) => !attr.value.is_empty() && attr.value.len().is_multiple_of(octets),
            Size::Any => true,
        };
        if !fits {
            return Err(self.fault(AttrProblem::Length, self.malformed));
        }
        (self.check)(attr.value, ctx).map_err(|what| self.fault(what, self.malformed))
    }

    const fn fault(&self, what: AttrProblem, consequence: Consequence) -> AttrFault {
        AttrFault { code: self.code, what, consequence }
    }
}

/// The check of an attribute that may hold any octets.
pub(crate) const fn anything(_: &[u8], _: DecodeCtx) -> Result<(), AttrProblem> {
    Ok(())
}

/// Where each code's row stands in the table; beyond the table for codes that have none.
pub(crate) static PLACES: [u8; 256] = places();

const fn places() -> [u8; 256] {
    let mut places = [u8::MAX; 256];
    let mut place = 0;
    while place < TABLE.len() {
        places[TABLE[place].code as usize] = place as u8;
        place += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::{name, row};
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_their_codes_and_are_found_by_them() {
        assert!(TABLE.is_sorted_by_key(|row| row.code));
        for code in 0..=255 {
            let listed = TABLE.iter().find(|row| row.code == code);
            assert_eq!(row(code).map(|row| row.code), listed.map(|row| row.code));
        }
        assert_eq!((name(2), name(200)), ("AS_PATH", "unknown"));
    }
}
