//! PREFIX_SID: optional, transitive, TLVs about the segment that a prefix is (RFC 8669 section 3; SRv6 services, RFC
//! 9252, use it too).
//!
//! Malformed, it is discarded and the route is used (RFC 8669 section 6): a TLV that runs past the end, and a
//! Label-Index or Originator SRGB of an impossible length. Other TLVs are sent on as they came.

use super::DecodeCtx;
use crate::error::AttrProblem;

const LABEL_INDEX: u8 = 1;
const ORIGINATOR_SRGB: u8 = 3;

/// A Prefix-SID attribute, borrowed from a canonical attribute set. The default holds no TLV.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct PrefixSid<'a>(&'a [u8]);

impl<'a> PrefixSid<'a> {
    /// The attribute of a canonical value. Octets that are no TLV end it where they begin.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// Its octets.
    #[must_use]
    pub const fn octets(self) -> &'a [u8] {
        self.0
    }

    /// Its TLVs: type and octets.
    pub fn tlvs(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (kind, value, after) = split_first(rest)?;
            rest = after;
            Some((kind, value))
        })
    }

    /// The label index, where there is one: the first counts.
    #[must_use]
    pub fn label_index(self) -> Option<u32> {
        let (_, value) = self.tlvs().find(|(kind, _)| *kind == LABEL_INDEX)?;
        // A reserved octet and two of flags stand before it.
        value.last_chunk::<4>().map(|octets| u32::from_be_bytes(*octets))
    }
}

fn split_first(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, high, low], rest) = octets.split_first_chunk::<3>()?;
    let (value, after) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((kind, value, after))
}

pub(crate) fn check(value: &[u8], _: DecodeCtx) -> Result<(), AttrProblem> {
    if value.is_empty() {
        return Err(AttrProblem::Length);
    }
    let mut rest = value;
    while !rest.is_empty() {
        let (kind, value, after) = split_first(rest).ok_or(AttrProblem::Length)?;
        let fits = match kind {
            LABEL_INDEX => value.len() == 7,
            // Flags, then ranges of six octets.
            ORIGINATOR_SRGB => value.len() > 2 && (value.len() - 2).is_multiple_of(6),
            _ => true,
        };
        if !fits {
            return Err(AttrProblem::Length);
        }
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, discarded_for, external, withdrawn_for};
    use super::*;

    #[test]
    fn label_index_and_others_are_kept() {
        let attr = [
            &[0xc0, 40, 27][..],
            &[99, 0, 1, 7],
            &[1, 0, 7, 0, 0, 0, 0, 0, 1, 44],
            &[3, 0, 8, 0, 0, 0, 62, 128, 0, 31, 64],
            &[4, 0],
        ]
        .concat();
        // The last TLV is cut short.
        assert_eq!(discarded_for(external(), &attr), [(40, AttrProblem::Length)]);
        let attr = [&[0xc0, 40, 25], &attr[3..28]].concat();
        let kept = canonical_of(external(), &attr);
        assert_eq!(kept.as_ref().attr(40).unwrap().raw, attr);
        let sid = kept.as_ref().prefix_sid();
        assert_eq!(sid.label_index(), Some(300));
        assert_eq!(
            sid.tlvs().map(|(kind, value)| (kind, value.len())).collect::<Vec<_>>(),
            [(99, 1), (1, 7), (3, 8)]
        );
        assert_eq!(PrefixSid::default().label_index(), None);
    }

    #[test]
    fn malformed_is_discarded_and_the_route_is_used() {
        for value in [
            &[][..],
            &[1],
            &[1, 0, 7, 0, 0],
            &[1, 0, 6, 0, 0, 0, 0, 0, 1],
            &[1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1],
            &[3, 0, 2, 0, 0],
            &[3, 0, 7, 0, 0, 1, 1, 1, 1, 1],
        ] {
            let attr = [&[0xc0, 40, value.len() as u8], value].concat();
            assert_eq!(discarded_for(external(), &attr), [(40, AttrProblem::Length)], "{value:?}");
            assert_eq!(withdrawn_for(external(), &attr), None);
        }
    }
}
