//! MP_REACH_NLRI: reachable prefixes of any family, with their next hop (RFC 4760 section 3, RFC 2545, RFC 8950
//! section 3; RFC 7606 sections 5.3 and 7.11).
//!
//! Its faults end the session, since without it nobody knows which routes the message is about.

use super::{Class, NextHop, RawAttr};
use crate::{
    capability::Negotiated,
    error::{Fault, WireError},
    family::Family,
    nlri::{self, NlriKey, Prefixes},
};

/// The MP_REACH_NLRI of an UPDATE, in a family that the session agreed on.
#[derive(Copy, Clone, Debug)]
pub struct MpReach<'a> {
    /// Its family.
    pub family: Family,
    /// Where its routes lead.
    pub next_hop: NextHop,
    head: &'a [u8],
    field: &'a [u8],
    path_ids: bool,
}

/// What stands in an MP_REACH_NLRI that can be read.
pub(crate) enum Reach<'a> {
    /// A family of this session.
    Ours(MpReach<'a>),
    /// Another AFI and SAFI, and whether there are prefixes. They are ignored.
    Foreign(u16, u8, bool),
}

impl<'a> MpReach<'a> {
    pub(crate) fn parse(attr: &RawAttr<'a>, neg: &Negotiated) -> Result<Reach<'a>, WireError> {
        Self::read(attr, neg).ok_or_else(|| WireError::new(Fault::Multiprotocol(attr.code), attr.raw))
    }

    fn read(attr: &RawAttr<'a>, neg: &Negotiated) -> Option<Reach<'a>> {
        if attr.flags.kind() != Class::NonTransitive.flags() {
            return None;
        }
        let (&[afi_high, afi_low, safi, length], rest) = attr.value.split_first_chunk::<4>()?;
        let (next_hop, rest) = rest.split_at_checked(usize::from(length))?;
        // An octet that has no meaning any more (RFC 4760 section 3).
        let (_, field) = rest.split_first()?;
        let afi = u16::from_be_bytes([afi_high, afi_low]);
        let Some(family) = Family::from_afi_safi(afi, safi).filter(|family| neg.families.contains(*family))
        else {
            return Some(Reach::Foreign(afi, safi, !field.is_empty()));
        };
        let path_ids = neg.add_path_receive.contains(family);
        // RFC 8950 section 3: the length says of which version it is, where an IPv6 one was agreed for IPv4 prefixes.
        let extended = neg.extended_next_hop.contains(family);
        let next_hop = NextHop::parse(family, extended, next_hop)?;
        let good = nlri::check_family(family, field, path_ids);
        let head = attr.value.get(..4 + usize::from(length))?;
        good.then_some(Reach::Ours(Self { family, next_hop, head, field, path_ids }))
    }

    /// Its prefixes; none if its family is not that of `K`.
    #[inline]
    #[must_use]
    pub fn prefixes<K: NlriKey>(&self) -> Prefixes<'a, K> {
        if K::FAMILY == self.family { Prefixes::new(self.field, self.path_ids) } else { Prefixes::empty() }
    }

    /// Whether it holds no prefix.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.field.is_empty()
    }

    /// AFI, SAFI, length of the next hop and next hop, as received.
    pub(crate) const fn head(&self) -> &'a [u8] {
        self.head
    }
}
