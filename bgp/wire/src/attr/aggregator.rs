//! AGGREGATOR and AS4_AGGREGATOR (RFC 4271 section 5.1.7; RFC 6793; RFC 7606 section 7.7; RFC 7607 for AS 0).

use std::fmt;

use super::DecodeCtx;
use crate::{asn::Asn, error::AttrProblem, router_id::RouterId};

/// Who formed an aggregate route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aggregator {
    /// The AS.
    pub asn: Asn,
    /// The speaker's identifier.
    pub router_id: RouterId,
}

impl Aggregator {
    /// Reads the 4-octet form (8 octets) or the 2-octet form (6).
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let (asn, router_id) = value.split_last_chunk::<4>()?;
        let asn = match *asn {
            [a, b] => u32::from(u16::from_be_bytes([a, b])),
            [a, b, c, d] => u32::from_be_bytes([a, b, c, d]),
            _ => return None,
        };
        Some(Self { asn: Asn(asn), router_id: (*router_id).into() })
    }

    /// The 4-octet form.
    #[must_use]
    pub const fn octets(self) -> [u8; 8] {
        ((self.asn.0 as u64) << 32 | self.router_id.0 as u64).to_be_bytes()
    }

    /// The 2-octet form, with AS_TRANS for a number that does not fit.
    pub(crate) fn octets_narrow(self) -> [u8; 6] {
        let [a, b] = self.asn.to_2octet().to_be_bytes();
        let [c, d, e, f] = self.router_id.octets();
        [a, b, c, d, e, f]
    }
}

impl fmt::Display for Aggregator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.asn, self.router_id)
    }
}

pub(crate) fn check_aggregator(value: &[u8], ctx: DecodeCtx) -> Result<(), AttrProblem> {
    if value.len() != if ctx.four_octet { 8 } else { 6 } {
        return Err(AttrProblem::Length);
    }
    check_as4_aggregator(value, ctx)
}

pub(crate) fn check_as4_aggregator(value: &[u8], _: DecodeCtx) -> Result<(), AttrProblem> {
    match Aggregator::parse(value) {
        Some(Aggregator { asn: Asn::ZERO, .. }) => Err(AttrProblem::Value),
        Some(_) => Ok(()),
        None => Err(AttrProblem::Length),
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, discarded_for, external, two_octet, withdrawn_for};
    use super::*;

    fn kept(ctx: DecodeCtx, attrs: &[u8]) -> Option<String> {
        canonical_of(ctx, attrs).as_ref().aggregator().map(|aggregator| aggregator.to_string())
    }

    #[test]
    fn both_forms_are_kept_in_the_long_one() {
        assert_eq!(
            kept(external(), &[0xc0, 7, 8, 0, 1, 0x11, 0x70, 192, 0, 2, 1]).unwrap(),
            "70000 192.0.2.1"
        );
        assert_eq!(kept(two_octet(), &[0xc0, 7, 6, 0xfd, 0xfc, 192, 0, 2, 1]).unwrap(), "65020 192.0.2.1");
    }

    #[test]
    fn malformed_is_discarded() {
        for (ctx, attr, problem) in [
            (external(), &[0xc0, 7, 6, 0xfd, 0xfc, 192, 0, 2, 1][..], AttrProblem::Length),
            (two_octet(), &[0xc0, 7, 8, 0, 0, 0xfd, 0xfc, 192, 0, 2, 1], AttrProblem::Length),
            (external(), &[0xc0, 7, 0], AttrProblem::Length),
            (external(), &[0xc0, 7, 8, 0, 0, 0, 0, 192, 0, 2, 1], AttrProblem::Value),
        ] {
            assert_eq!(discarded_for(ctx, attr), [(7, problem)]);
            assert_eq!(withdrawn_for(ctx, attr), None);
        }
        assert_eq!(withdrawn_for(external(), &[0x80, 7, 0]), Some((7, AttrProblem::Flags)));
    }

    #[test]
    fn as4_aggregator_supplies_what_as_trans_stands_for() {
        let short = [0xc0, 7, 6, 0x5b, 0xa0, 192, 0, 2, 1];
        let long = [0xc0, 18, 8, 0, 1, 0x11, 0x70, 192, 0, 2, 9];
        assert_eq!(kept(two_octet(), &[&short[..], &long].concat()).unwrap(), "70000 192.0.2.9");
        assert_eq!(kept(two_octet(), &[&long[..], &short].concat()).unwrap(), "70000 192.0.2.9");
        assert_eq!(kept(two_octet(), &long), None);
        assert_eq!(discarded_for(external(), &long), [(18, AttrProblem::OutOfPlace)]);
        assert_eq!(discarded_for(two_octet(), &[0xc0, 18, 2, 0, 1]), [(18, AttrProblem::Length)]);
    }

    #[test]
    fn an_aggregator_that_is_not_as_trans_rules_out_both_as4_attributes() {
        let attrs = [
            &[0xc0, 7, 6, 0xfd, 0xfc, 192, 0, 2, 1][..],
            &[0x40, 2, 4, 2, 1, 0x5b, 0xa0],
            &[0xc0, 17, 6, 2, 1, 0, 1, 0x11, 0x70],
            &[0xc0, 18, 8, 0, 1, 0x11, 0x70, 192, 0, 2, 9],
        ]
        .concat();
        let kept = canonical_of(two_octet(), &attrs);
        assert_eq!(kept.as_ref().aggregator().unwrap().to_string(), "65020 192.0.2.1");
        assert_eq!(kept.as_ref().as_path().to_string(), "23456");
        // Without an AS4_AGGREGATOR nobody aggregated, and AS4_PATH counts.
        let kept = canonical_of(two_octet(), &attrs[..attrs.len() - 11]);
        assert_eq!(kept.as_ref().aggregator().unwrap().to_string(), "65020 192.0.2.1");
        assert_eq!(kept.as_ref().as_path().to_string(), "70000");
    }
}
