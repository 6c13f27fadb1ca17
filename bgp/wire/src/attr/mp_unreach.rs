//! MP_UNREACH_NLRI: withdrawn prefixes of any family (RFC 4760 section 4; RFC 7606 sections 5.3 and 7.12).
//! Empty, it is the End-of-RIB of its family (RFC 4724 section 2).
//!
//! Its faults end the session, since without it nobody knows which routes the message is about.

use super::{Class, RawAttr};
use crate::{
    capability::Negotiated,
    error::{Fault, WireError},
    family::Family,
    nlri::{self, NlriKey, Prefixes},
};

/// The MP_UNREACH_NLRI of an UPDATE, in a family that the session agreed on.
#[derive(Copy, Clone, Debug)]
pub struct MpUnreach<'a> {
    /// Its family.
    pub family: Family,
    field: &'a [u8],
    path_ids: bool,
}

impl<'a> MpUnreach<'a> {
    /// `Ok(Err(…))` is a family that the session did not agree on, as AFI and SAFI; it is ignored.
    pub(crate) fn parse(attr: &RawAttr<'a>, neg: &Negotiated) -> Result<Result<Self, (u16, u8)>, WireError> {
        Self::read(attr, neg).ok_or_else(|| WireError::new(Fault::Multiprotocol(attr.code), attr.raw))
    }

    fn read(attr: &RawAttr<'a>, neg: &Negotiated) -> Option<Result<Self, (u16, u8)>> {
        if attr.flags.kind() != Class::NonTransitive.flags() {
            return None;
        }
        let (&[afi_high, afi_low, safi], field) = attr.value.split_first_chunk::<3>()?;
        let afi = u16::from_be_bytes([afi_high, afi_low]);
        let Some(family) = Family::from_afi_safi(afi, safi).filter(|family| neg.families.contains(*family))
        else {
            return Some(Err((afi, safi)));
        };
        let path_ids = neg.add_path_receive.contains(family);
        let good = nlri::check_family(family, field, path_ids);
        good.then_some(Ok(Self { family, field, path_ids }))
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
}
