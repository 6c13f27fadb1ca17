//! Making and changing attribute sets: what we originate, what policy edits, what export rewrites.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    Aggregator, AsPath, AttrFlags, Canonical, Community, ExtCommunity, LargeCommunity, Origin, RawAttr,
    as_path, code, row,
};
use crate::{asn::Asn, router_id::RouterId};

/// An attribute set being changed. What is not touched is borrowed from the set it began with.
#[derive(Clone, Debug)]
pub struct Builder<'a> {
    /// In ascending order of codes, none twice.
    attrs: Vec<Entry<'a>>,
}

#[derive(Clone, Debug)]
struct Entry<'a> {
    code: u8,
    flags: AttrFlags,
    value: Cow<'a, [u8]>,
}

impl<'a> From<Canonical<'a>> for Builder<'a> {
    fn from(set: Canonical<'a>) -> Self {
        let attrs = set
            .attrs()
            .map(|attr| Entry {
                code: attr.code,
                flags: AttrFlags(attr.flags.0 & !AttrFlags::EXTENDED.0),
                value: attr.value.into(),
            })
            .collect();
        Self { attrs }
    }
}

impl<'a> Builder<'a> {
    /// A set with ORIGIN and an empty AS_PATH: what a route of our own begins with.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        let mut builder = Self { attrs: Vec::with_capacity(8) };
        builder.origin(origin).put(code::AS_PATH, Vec::new());
        builder
    }

    fn value(&self, code: u8) -> &[u8] {
        match self.attrs.binary_search_by_key(&code, |entry| entry.code) {
            Ok(place) => self.attrs.get(place).map(|entry| &*entry.value).unwrap_or_default(),
            Err(_) => &[],
        }
    }

    /// Sets a value; the flags are those of the type, and Partial stays as it is.
    fn put(&mut self, code: u8, value: Vec<u8>) -> &mut Self {
        match self.attrs.binary_search_by_key(&code, |entry| entry.code) {
            Ok(place) => self.attrs[place].value = value.into(),
            Err(place) => {
                let flags = row(code).map_or(AttrFlags::OPTIONAL, |row| row.class.flags());
                self.attrs.insert(place, Entry { code, flags, value: value.into() });
            }
        }
        self
    }

    /// Takes an attribute out.
    pub fn remove(&mut self, code: u8) -> &mut Self {
        self.attrs.retain(|entry| entry.code != code);
        self
    }

    fn put_or_remove(&mut self, code: u8, value: Option<Vec<u8>>) -> &mut Self {
        match value {
            Some(value) => self.put(code, value),
            None => self.remove(code),
        }
    }

    /// Sets ORIGIN.
    pub fn origin(&mut self, origin: Origin) -> &mut Self {
        self.put(code::ORIGIN, vec![origin.code()])
    }

    /// Puts an AS number before AS_PATH, `times` times.
    pub fn prepend(&mut self, asn: Asn, times: u8) -> &mut Self {
        let path = as_path::prepend(AsPath::new(self.value(code::AS_PATH)), asn, times);
        self.put(code::AS_PATH, path)
    }

    /// Sets or clears MULTI_EXIT_DISC.
    pub fn med(&mut self, med: Option<u32>) -> &mut Self {
        self.put_or_remove(code::MED, med.map(|med| med.to_be_bytes().into()))
    }

    /// Sets or clears LOCAL_PREF.
    pub fn local_pref(&mut self, local_pref: Option<u32>) -> &mut Self {
        self.put_or_remove(code::LOCAL_PREF, local_pref.map(|local_pref| local_pref.to_be_bytes().into()))
    }

    /// Sets or clears ATOMIC_AGGREGATE.
    pub fn atomic_aggregate(&mut self, there: bool) -> &mut Self {
        self.put_or_remove(code::ATOMIC_AGGREGATE, there.then(Vec::new))
    }

    /// Sets or clears AGGREGATOR.
    pub fn aggregator(&mut self, aggregator: Option<Aggregator>) -> &mut Self {
        self.put_or_remove(code::AGGREGATOR, aggregator.map(|aggregator| aggregator.octets().into()))
    }

    /// Adds communities; those that are there stay where they are.
    pub fn add_communities(&mut self, communities: impl IntoIterator<Item = Community>) -> &mut Self {
        self.add(code::COMMUNITIES, communities.into_iter().map(|community| community.0.to_be_bytes()))
    }

    /// Keeps only the communities that `keep` accepts.
    pub fn retain_communities(&mut self, keep: impl Fn(Community) -> bool) -> &mut Self {
        self.retain(code::COMMUNITIES, |octets| keep(Community(u32::from_be_bytes(*octets))))
    }

    /// Adds extended communities; those that are there stay where they are.
    pub fn add_ext_communities(&mut self, communities: impl IntoIterator<Item = ExtCommunity>) -> &mut Self {
        self.add(code::EXT_COMMUNITIES, communities.into_iter().map(ExtCommunity::octets))
    }

    /// Keeps only the extended communities that `keep` accepts.
    pub fn retain_ext_communities(&mut self, keep: impl Fn(ExtCommunity) -> bool) -> &mut Self {
        self.retain(code::EXT_COMMUNITIES, |octets| keep((*octets).into()))
    }

    /// Adds large communities; those that are there stay where they are.
    pub fn add_large_communities(
        &mut self,
        communities: impl IntoIterator<Item = LargeCommunity>,
    ) -> &mut Self {
        self.add(code::LARGE_COMMUNITIES, communities.into_iter().map(LargeCommunity::octets))
    }

    /// Keeps only the large communities that `keep` accepts.
    pub fn retain_large_communities(&mut self, keep: impl Fn(LargeCommunity) -> bool) -> &mut Self {
        self.retain(code::LARGE_COMMUNITIES, |octets| keep((*octets).into()))
    }

    /// Sets or clears ORIGINATOR_ID.
    pub fn originator(&mut self, originator: Option<RouterId>) -> &mut Self {
        self.put_or_remove(code::ORIGINATOR_ID, originator.map(|originator| originator.octets().into()))
    }

    /// Sets or clears TUNNEL_ENCAPSULATION: the octets of its tunnels, such as [`super::tunnel_encap::CandidatePath::encode`]
    /// gives.
    pub fn tunnel_encap(&mut self, tunnels: Option<Vec<u8>>) -> &mut Self {
        self.put_or_remove(code::TUNNEL_ENCAP, tunnels)
    }

    /// Sets or clears ONLY_TO_CUSTOMER.
    pub fn only_to_customer(&mut self, asn: Option<Asn>) -> &mut Self {
        self.put_or_remove(code::ONLY_TO_CUSTOMER, asn.map(|asn| asn.0.to_be_bytes().into()))
    }

    /// Puts a cluster before CLUSTER_LIST (RFC 4456 section 8).
    pub fn prepend_cluster(&mut self, cluster: RouterId) -> &mut Self {
        let list = [&cluster.octets(), self.value(code::CLUSTER_LIST)].concat();
        self.put(code::CLUSTER_LIST, list)
    }

    fn add<const N: usize>(&mut self, code: u8, items: impl Iterator<Item = [u8; N]>) -> &mut Self {
        let old = self.value(code);
        let mut there: BTreeSet<[u8; N]> = old.as_chunks::<N>().0.iter().copied().collect();
        let mut list = old.to_vec();
        items.filter(|item| there.insert(*item)).for_each(|item| list.extend_from_slice(&item));
        self.put_or_remove(code, (!list.is_empty()).then_some(list))
    }

    fn retain<const N: usize>(&mut self, code: u8, keep: impl Fn(&[u8; N]) -> bool) -> &mut Self {
        let old = self.value(code).as_chunks::<N>().0;
        if old.iter().all(&keep) {
            return self;
        }
        let list: Vec<u8> = old.iter().filter(|item| keep(item)).flatten().copied().collect();
        self.put_or_remove(code, (!list.is_empty()).then_some(list))
    }

    /// Whether every attribute is as short as an attribute can be: has no more than 65535 octets. What was received is; what is
    /// added to that can be too much.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.attrs.iter().all(|entry| u16::try_from(entry.value.len()).is_ok())
    }

    /// The set in canonical form. Ask [`Self::fits`] before, where much may have been added.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.build_into(&mut out);
        out
    }

    /// Appends the set in canonical form.
    pub fn build_into(&self, out: &mut Vec<u8>) {
        out.reserve(self.attrs.iter().map(|entry| 4 + entry.value.len()).sum());
        self.attrs.iter().for_each(|entry| RawAttr::write(out, entry.flags, entry.code, &entry.value));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        FactFlags,
        decode::tests::{canonical_of, internal},
    };
    use super::*;

    #[test]
    fn a_route_of_our_own() {
        let mut builder = Builder::new(Origin::Igp);
        builder
            .local_pref(Some(100))
            .add_communities([Community::NO_EXPORT, Community::new(1, 2), Community::NO_EXPORT])
            .prepend(Asn(65010), 1)
            .med(Some(5))
            .aggregator(Some(Aggregator { asn: Asn(70000), router_id: RouterId(1) }))
            .atomic_aggregate(true);
        let octets = builder.build();
        let set = Canonical(&octets);
        assert_eq!(set.as_path().to_string(), "65010");
        assert_eq!(set.communities().collect::<Vec<_>>(), [Community::NO_EXPORT, Community::new(1, 2)]);
        let facts = set.facts();
        assert_eq!((facts.local_pref, facts.med, facts.as_path_len), (Some(100), Some(5), 1));
        assert!(facts.flags.has(FactFlags::NO_EXPORT) && facts.flags.has(FactFlags::ATOMIC_AGGREGATE));
        assert_eq!(canonical_of(internal(), &octets).as_ref(), set);
        builder.med(None).local_pref(None).atomic_aggregate(false).aggregator(None);
        builder.retain_communities(|_| false);
        let octets = builder.build();
        assert_eq!(Canonical(&octets).attrs().map(|attr| attr.code).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn what_is_not_touched_stays_as_it_is() {
        let section = [
            &[0x40, 1, 1, 2, 0x40, 2, 6, 2, 1, 0, 0, 0, 7][..],
            &[0xe0, 8, 4, 0, 1, 0, 1],
            &[0xc0, 16, 8, 0, 2, 0, 1, 0, 0, 0, 1],
            &[0xe0, 200, 2, 9, 9],
        ]
        .concat();
        let kept = canonical_of(internal(), &section);
        assert_eq!(Builder::from(kept.as_ref()).build(), kept.as_ref().octets());
        let mut builder = Builder::from(kept.as_ref());
        builder
            .add_communities([Community::new(2, 2)])
            .prepend_cluster(RouterId(3))
            .originator(Some(RouterId(4)));
        let octets = builder.build();
        let set = Canonical(&octets);
        // Partial stays set on what was received with it.
        assert_eq!(set.attr(8).unwrap().raw, [0xe0, 8, 8, 0, 1, 0, 1, 0, 2, 0, 2]);
        assert_eq!((set.facts().cluster_len, set.originator()), (1, Some(RouterId(4))));
        assert_eq!(set.attr(200), kept.as_ref().attr(200));
        assert_eq!(canonical_of(internal(), &octets).as_ref(), set);
    }

    #[test]
    fn an_attribute_can_be_too_long() {
        let mut builder = Builder::new(Origin::Igp);
        let most = u16::MAX / 4;
        builder.add_communities((0..most).map(|low| Community::new(1, low)));
        assert!(builder.fits());
        builder.add_communities([Community::new(1, most)]);
        assert!(!builder.fits());
    }

    #[test]
    fn lists_of_other_communities() {
        let mut builder = Builder::new(Origin::Igp);
        let (rt, big) = ("rt:1:1".parse().unwrap(), LargeCommunity::new(1, 2, 3));
        builder.add_ext_communities([rt, rt]).add_large_communities([big, big]);
        let octets = builder.build();
        assert_eq!(Canonical(&octets).ext_communities().collect::<Vec<ExtCommunity>>(), [rt]);
        assert_eq!(Canonical(&octets).large_communities().collect::<Vec<_>>(), [big]);
        builder.retain_ext_communities(|_| false).retain_large_communities(|_| false).add_communities([]);
        assert_eq!(builder.build(), Builder::new(Origin::Igp).build());
    }
}
