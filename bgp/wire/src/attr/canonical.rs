//! The canonical form of an attribute set, read.
//!
//! Two sets that say the same have the same octets, save for the order that a peer chose inside one
//! attribute. The form: attributes in ascending order of their codes, none twice; headers as short as they
//! can be; AS numbers of four octets; flags as the attribute's type asks, with Partial as it was received, or
//! set for an attribute that we do not know; no NEXT_HOP, MP_REACH_NLRI, MP_UNREACH_NLRI, AS4_PATH or
//! AS4_AGGREGATOR.

use super::{
    Aggregator, AsPath, AttrFacts, AttrIter, Community, ExtCommunity, LargeCommunity, Origin, PrefixSid,
    RawAttr, TunnelEncap, code,
};
use crate::{asn::Asn, router_id::RouterId};

/// A borrowed attribute set in canonical form.
///
/// Made by [`super::decode()`] and [`super::Builder`]; octets from elsewhere are read as far as they are
/// attributes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Canonical<'a>(pub &'a [u8]);

impl<'a> Canonical<'a> {
    /// Its octets.
    #[must_use]
    pub const fn octets(self) -> &'a [u8] {
        self.0
    }

    /// Its attributes, in ascending order of their codes.
    #[must_use]
    pub const fn attrs(self) -> AttrIter<'a> {
        AttrIter::new(self.0)
    }

    /// The attribute with a code.
    #[must_use]
    pub fn attr(self, code: u8) -> Option<RawAttr<'a>> {
        self.attrs().find(|attr| attr.code >= code).filter(|attr| attr.code == code)
    }

    fn value(self, code: u8) -> &'a [u8] {
        self.attr(code).map(|attr| attr.value).unwrap_or_default()
    }

    fn number(self, code: u8) -> Option<u32> {
        self.value(code).try_into().ok().map(u32::from_be_bytes)
    }

    /// ORIGIN; IGP where it is missing.
    #[must_use]
    pub fn origin(self) -> Origin {
        self.value(code::ORIGIN).first().and_then(|code| Origin::from_code(*code)).unwrap_or_default()
    }

    /// AS_PATH; empty where it is missing.
    #[must_use]
    pub fn as_path(self) -> AsPath<'a> {
        AsPath::new(self.value(code::AS_PATH))
    }

    /// MULTI_EXIT_DISC.
    #[must_use]
    pub fn med(self) -> Option<u32> {
        self.number(code::MED)
    }

    /// LOCAL_PREF.
    #[must_use]
    pub fn local_pref(self) -> Option<u32> {
        self.number(code::LOCAL_PREF)
    }

    /// Whether ATOMIC_AGGREGATE is there.
    #[must_use]
    pub fn atomic_aggregate(self) -> bool {
        self.attr(code::ATOMIC_AGGREGATE).is_some()
    }

    /// AGGREGATOR.
    #[must_use]
    pub fn aggregator(self) -> Option<Aggregator> {
        Aggregator::parse(self.value(code::AGGREGATOR))
    }

    /// COMMUNITIES.
    pub fn communities(self) -> impl ExactSizeIterator<Item = Community> + Clone + 'a {
        self.value(code::COMMUNITIES)
            .as_chunks::<4>()
            .0
            .iter()
            .map(|octets| Community(u32::from_be_bytes(*octets)))
    }

    /// EXTENDED COMMUNITIES.
    pub fn ext_communities(self) -> impl ExactSizeIterator<Item = ExtCommunity> + Clone + 'a {
        self.value(code::EXT_COMMUNITIES).as_chunks::<8>().0.iter().map(|octets| ExtCommunity::from(*octets))
    }

    /// LARGE_COMMUNITY.
    pub fn large_communities(self) -> impl ExactSizeIterator<Item = LargeCommunity> + Clone + 'a {
        self.value(code::LARGE_COMMUNITIES)
            .as_chunks::<12>()
            .0
            .iter()
            .map(|octets| LargeCommunity::from(*octets))
    }

    /// ORIGINATOR_ID.
    #[must_use]
    pub fn originator(self) -> Option<RouterId> {
        self.number(code::ORIGINATOR_ID).map(RouterId)
    }

    /// CLUSTER_LIST, the last cluster first.
    pub fn cluster_list(self) -> impl ExactSizeIterator<Item = RouterId> + 'a {
        self.value(code::CLUSTER_LIST).as_chunks::<4>().0.iter().map(|octets| RouterId::from(*octets))
    }

    /// TUNNEL_ENCAPSULATION; without tunnels where it is missing.
    #[must_use]
    pub fn tunnel_encap(self) -> TunnelEncap<'a> {
        TunnelEncap::new(self.value(code::TUNNEL_ENCAP))
    }

    /// ONLY_TO_CUSTOMER.
    #[must_use]
    pub fn only_to_customer(self) -> Option<Asn> {
        self.number(code::ONLY_TO_CUSTOMER).map(Asn)
    }

    /// PREFIX_SID; without TLVs where it is missing.
    #[must_use]
    pub fn prefix_sid(self) -> PrefixSid<'a> {
        PrefixSid::new(self.value(code::PREFIX_SID))
    }

    /// The attributes that we do not know and pass on.
    pub fn unknown(self) -> impl Iterator<Item = RawAttr<'a>> {
        self.attrs().filter(|attr| super::row(attr.code).is_none())
    }

    /// What route selection wants to know of it.
    #[must_use]
    pub fn facts(self) -> AttrFacts {
        AttrFacts::of(self)
    }
}
