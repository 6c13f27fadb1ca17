//! What policy's edits make of an attribute set, on the way in as on the way out.

use bgp_wire::attr::{Builder, Canonical};

use crate::policy::Edits;
use crate::rib::AttrSet;

/// The canonical form of a set after the edits. The next hop is not part of it, nor is what goes in front of the AS path
/// without `prepends`: towards an external peer it stands in front of our own number, which is not there yet.
pub(crate) fn edit(edits: &Edits, set: &AttrSet, prepends: bool) -> Vec<u8> {
    // Every field is named, so that a new one can't be forgotten.
    let Edits {
        med,
        local_pref,
        next_hop_self: _,
        prepend,
        communities,
        large_communities,
        only_to_customer,
    } = edits;
    let mut builder = Builder::from(Canonical(set.canonical()));
    if med.is_some() {
        builder.med(*med);
    }
    if local_pref.is_some() {
        builder.local_pref(*local_pref);
    }
    for &(asn, times) in prepend.iter().filter(|_| prepends) {
        builder.prepend(asn, times);
    }
    if !communities.is_empty() {
        builder.add_communities(communities.iter().copied());
    }
    if !large_communities.is_empty() {
        builder.add_large_communities(large_communities.iter().copied());
    }
    if only_to_customer.is_some() {
        builder.only_to_customer(*only_to_customer);
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bgp_wire::Asn;
    use bgp_wire::attr::{AttrFacts, Community, LargeCommunity, Origin};

    #[test]
    fn every_edit_is_made_and_the_rest_stays() {
        let mut builder = Builder::new(Origin::Egp);
        builder.prepend(Asn(65020), 1).med(Some(1)).add_communities([Community::new(1, 1)]);
        let set = AttrSet::new(&builder.build(), None, AttrFacts::default());
        let edits = Edits {
            med: Some(7),
            local_pref: Some(200),
            next_hop_self: true,
            prepend: [(Asn(65010), 2)].into_iter().collect(),
            communities: [Community::new(2, 2)].into_iter().collect(),
            large_communities: [LargeCommunity::new(1, 2, 3)].into_iter().collect(),
            only_to_customer: Some(Asn(65030)),
        };
        let octets = edit(&edits, &set, true);
        let edited = Canonical(&octets);
        assert_eq!((edited.origin(), edited.med(), edited.local_pref()), (Origin::Egp, Some(7), Some(200)));
        assert_eq!(edited.as_path().to_string(), "65010 65010 65020");
        assert_eq!(edited.communities().collect::<Vec<_>>(), [Community::new(1, 1), Community::new(2, 2)]);
        assert_eq!(edited.large_communities().count(), 1);
        assert_eq!(edited.only_to_customer(), Some(Asn(65030)));
        let behind = edit(&edits, &set, false);
        assert_eq!(Canonical(&behind).as_path().to_string(), "65020");
        assert_eq!(edit(&Edits::default(), &set, true), set.canonical());
    }
}
