//! What policy's edits make of an attribute set, on the way in as on the way out.

use bgp_wire::NextHop;
use bgp_wire::attr::{Builder, Canonical};

use crate::policy::{Edits, NextHopEdit};
use crate::rib::AttrSet;

/// The canonical form of a set after the edits. The next hop is not part of it, nor is what goes in front of the AS path
/// without `prepends`: towards an external peer it stands in front of our own number, which is not there yet. `None` where an
/// attribute would be longer than one can be.
pub(crate) fn edit(edits: &Edits, set: &AttrSet, prepends: bool) -> Option<Vec<u8>> {
    // Every field is named, so that a new one can't be forgotten.
    let Edits {
        med,
        local_pref,
        origin,
        next_hop: _,
        prepend,
        communities,
        large_communities,
        ext_communities,
        only_to_customer,
    } = edits;
    let mut builder = Builder::from(Canonical(set.canonical()));
    if let Some(med) = med {
        builder.med(med.of(set.view().med()));
    }
    if local_pref.is_some() {
        builder.local_pref(*local_pref);
    }
    if let Some(origin) = origin {
        builder.origin(*origin);
    }
    for &(asn, times) in prepend.iter().filter(|_| prepends) {
        builder.prepend(asn, times);
    }
    if !communities.is_empty() {
        builder.retain_communities(|community| communities.stays(community));
        builder.add_communities(communities.added.iter().copied());
    }
    if !large_communities.is_empty() {
        builder.retain_large_communities(|community| large_communities.stays(community));
        builder.add_large_communities(large_communities.added.iter().copied());
    }
    if !ext_communities.is_empty() {
        builder.retain_ext_communities(|community| ext_communities.stays(community));
        builder.add_ext_communities(ext_communities.added.iter().copied());
    }
    if only_to_customer.is_some() {
        builder.only_to_customer(*only_to_customer);
    }
    builder.fits().then(|| builder.build())
}

/// What edits make of a next hop on the way in.
pub(crate) fn next_hop(edits: &Edits, set: &AttrSet) -> Option<NextHop> {
    match edits.next_hop {
        Some(NextHopEdit::To(next_hop)) => Some(next_hop),
        // Our own address is one of export's.
        Some(NextHopEdit::Own) | None => set.next_hop(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ListEdit, MedEdit};
    use bgp_wire::Asn;
    use bgp_wire::attr::{AttrFacts, Community, LargeCommunity, Origin};

    #[test]
    fn every_edit_is_made_and_the_rest_stays() {
        let mut builder = Builder::new(Origin::Egp);
        builder.prepend(Asn(65020), 1).med(Some(1)).add_communities([Community::new(1, 1)]);
        let set = AttrSet::new(&builder.build(), None, AttrFacts::default());
        let target = "rt:1:1".parse().unwrap();
        let edits = Edits {
            med: Some(MedEdit::Add(6)),
            local_pref: Some(200),
            origin: Some(Origin::Incomplete),
            next_hop: Some(NextHopEdit::To("192.0.2.9".parse::<std::net::IpAddr>().unwrap().into())),
            prepend: [(Asn(65010), 2)].into_iter().collect(),
            communities: ListEdit::adding([Community::new(2, 2)]),
            large_communities: ListEdit::adding([LargeCommunity::new(1, 2, 3)]),
            ext_communities: ListEdit::adding([target]),
            only_to_customer: Some(Asn(65030)),
        };
        let octets = edit(&edits, &set, true).unwrap();
        let edited = Canonical(&octets);
        assert_eq!(
            (edited.origin(), edited.med(), edited.local_pref()),
            (Origin::Incomplete, Some(7), Some(200))
        );
        assert_eq!(edited.as_path().to_string(), "65010 65010 65020");
        assert_eq!(edited.communities().collect::<Vec<_>>(), [Community::new(1, 1), Community::new(2, 2)]);
        assert_eq!((edited.large_communities().count(), edited.ext_communities().next()), (1, Some(target)));
        assert_eq!(edited.only_to_customer(), Some(Asn(65030)));
        let behind = edit(&edits, &set, false).unwrap();
        assert_eq!(Canonical(&behind).as_path().to_string(), "65020");
        assert_eq!(edit(&Edits::default(), &set, true).unwrap(), set.canonical());
    }

    /// The length of an attribute has 16 bits: what stands behind them would be read as other attributes.
    #[test]
    fn more_than_an_attribute_can_hold_is_nothing() {
        let mut builder = Builder::new(Origin::Igp);
        builder.add_communities((0..16_380).map(|low| Community::new(1, low)));
        let set = AttrSet::new(&builder.build(), None, AttrFacts::default());
        let adding = |count| {
            let added = (0..count).map(|low| Community::new(2, low));
            edit(&Edits { communities: ListEdit::adding(added), ..Edits::default() }, &set, true)
        };
        assert_eq!(adding(3).map(|octets| Canonical(&octets).communities().count()), Some(16_383));
        assert_eq!(adding(4), None);
        let mut builder = Builder::new(Origin::Igp);
        for _ in 0..64 {
            builder.prepend(Asn(65020), 255);
        }
        let set = AttrSet::new(&builder.build(), None, AttrFacts::default());
        let prepended = Edits { prepend: [(Asn(65010), 255)].into_iter().collect(), ..Edits::default() };
        assert_eq!(edit(&prepended, &set, true), None);
    }
}
