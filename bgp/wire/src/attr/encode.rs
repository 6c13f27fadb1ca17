//! From the canonical form to what a peer is sent.

use std::net::Ipv4Addr;

use super::{AsPath, AttrFlags, AttrIter, Canonical, Class, RawAttr, as_path, code};
use crate::attr::Aggregator;

/// Appends the attributes of a set as one peer wants them, in ascending order of their codes.
///
/// `next_hop` is the NEXT_HOP of prefixes in the UPDATE's own field; `None` for those of MP_REACH_NLRI, which
/// [`crate::UpdateWriter`] writes. Without `four_octet` AS numbers have two octets, and AS4_PATH and
/// AS4_AGGREGATOR stand beside them where they are needed (RFC 6793 section 4.2.2).
pub fn encode(set: Canonical<'_>, next_hop: Option<Ipv4Addr>, four_octet: bool, out: &mut Vec<u8>) {
    let octets = set.octets();
    let mut after = AttrIter::new(octets);
    let mut split = 0;
    // NEXT_HOP has its place behind ORIGIN and AS_PATH.
    while let Some(attr) = after.next().filter(|attr| attr.code < code::NEXT_HOP) {
        split += attr.raw.len();
    }
    let (before, behind) = octets.split_at(split);
    let put_next_hop = |out: &mut Vec<u8>| {
        if let Some(address) = next_hop {
            RawAttr::write(out, Class::WellKnown.flags(), code::NEXT_HOP, &address.octets());
        }
    };
    if four_octet {
        out.reserve(octets.len() + 7);
        out.extend_from_slice(before);
        put_next_hop(out);
        out.extend_from_slice(behind);
        return;
    }
    let mut as4_path = None;
    for attr in AttrIter::new(before) {
        if attr.code == code::AS_PATH {
            let (two_octet, long) = as_path::narrow(AsPath::new(attr.value));
            as4_path = long;
            RawAttr::write(out, attr.flags, attr.code, &two_octet);
        } else {
            out.extend_from_slice(attr.raw);
        }
    }
    put_next_hop(out);
    let optional_transitive = Class::Transitive.flags();
    let mut late = [as4_path.map(|path| (code::AS4_PATH, optional_transitive, path)), None];
    for attr in AttrIter::new(behind) {
        if attr.code > code::AS4_AGGREGATOR {
            write_late(&mut late, out);
        }
        match (attr.code, Aggregator::parse(attr.value)) {
            (code::AGGREGATOR, Some(aggregator)) => {
                RawAttr::write(out, attr.flags, attr.code, &aggregator.octets_narrow());
                if !aggregator.asn.is_2octet() {
                    late[1] = Some((code::AS4_AGGREGATOR, attr.flags, aggregator.octets().into()));
                }
            }
            _ => out.extend_from_slice(attr.raw),
        }
    }
    write_late(&mut late, out);
}

type Late = Option<(u8, AttrFlags, Vec<u8>)>;

fn write_late(late: &mut [Late; 2], out: &mut Vec<u8>) {
    for (code, flags, value) in late.iter_mut().filter_map(Option::take) {
        RawAttr::write(out, flags, code, &value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Builder, Origin,
        decode::tests::{canonical_of, external, two_octet},
    };
    use super::*;
    use crate::{asn::Asn, router_id::RouterId};

    fn set() -> Vec<u8> {
        let mut builder = Builder::new(Origin::Egp);
        builder
            .prepend(Asn(70_000), 1)
            .prepend(Asn(65_010), 1)
            .med(Some(7))
            .aggregator(Some(Aggregator { asn: Asn(80_000), router_id: RouterId(9) }))
            .add_large_communities([super::super::LargeCommunity::new(1, 2, 3)]);
        builder.build()
    }

    fn codes(section: &[u8]) -> Vec<u8> {
        AttrIter::new(section).map(|attr| attr.code).collect()
    }

    #[test]
    fn four_octets_are_the_canonical_form_with_a_next_hop() {
        let set = set();
        let mut out = Vec::new();
        encode(Canonical(&set), Some(Ipv4Addr::new(192, 0, 2, 1)), true, &mut out);
        assert_eq!(codes(&out), [1, 2, 3, 4, 7, 32]);
        assert_eq!(canonical_of(external(), &out).as_ref().octets(), set);
        out.clear();
        encode(Canonical(&set), None, true, &mut out);
        assert_eq!(out, set);
    }

    #[test]
    fn two_octets_need_the_as4_attributes_beside_them() {
        let set = set();
        let mut out = Vec::new();
        encode(Canonical(&set), Some(Ipv4Addr::new(192, 0, 2, 1)), false, &mut out);
        assert_eq!(codes(&out), [1, 2, 3, 4, 7, 17, 18, 32]);
        assert_eq!(canonical_of(two_octet(), &out).as_ref().octets(), set);
    }

    #[test]
    fn two_octets_do_not_need_them_for_small_numbers() {
        let mut builder = Builder::new(Origin::Igp);
        builder.prepend(Asn(1), 2).aggregator(Some(Aggregator { asn: Asn(2), router_id: RouterId(9) }));
        let set = builder.build();
        let mut out = Vec::new();
        encode(Canonical(&set), None, false, &mut out);
        assert_eq!(codes(&out), [1, 2, 7]);
        assert_eq!(canonical_of(two_octet(), &out).as_ref().octets(), set);
    }
}
