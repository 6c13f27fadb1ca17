//! Attributes that we do not know (RFC 4271 sections 5 and 6.3).

use super::{AttrFlags, RawAttr};
use crate::error::{Fault, WireError};

/// What becomes of an attribute without a row in the table: `Some(flags)` if it is kept, and with which
/// flags.
///
/// # Errors
/// It claims to be well-known: the session ends (3/2 with the attribute).
pub(crate) fn keep(attr: &RawAttr<'_>) -> Result<Option<AttrFlags>, WireError> {
    if !attr.flags.has(AttrFlags::OPTIONAL) {
        return Err(WireError::new(Fault::WellKnown(attr.code), attr.raw));
    }
    let kept = AttrFlags(AttrFlags::OPTIONAL.0 | AttrFlags::TRANSITIVE.0 | AttrFlags::PARTIAL.0);
    Ok(attr.flags.has(AttrFlags::TRANSITIVE).then_some(kept))
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, external, reset_for};
    use crate::notification::{Notification, Reason};

    #[test]
    fn optional_transitive_is_kept_with_partial_set() {
        for flags in [0xc0, 0xe0, 0xc7] {
            let kept = canonical_of(external(), &[flags, 255, 3, 7, 8, 9]);
            assert_eq!(kept.as_ref().attr(255).unwrap().raw, [0xe0, 255, 3, 7, 8, 9]);
        }
        assert_eq!(
            canonical_of(external(), &[0xd0, 255, 0, 1, 7]).as_ref().attr(255).unwrap().raw,
            [0xe0, 255, 1, 7]
        );
    }

    #[test]
    fn optional_non_transitive_is_dropped() {
        assert!(canonical_of(external(), &[0x80, 255, 1, 7]).as_ref().attr(255).is_none());
        // AIGP (RFC 7311) is one: what it says concerns one administration, which nobody has told us of.
        let aigp = [0x80, 26, 11, 1, 0, 11, 0, 0, 0, 0, 0, 0, 0, 9];
        assert!(canonical_of(external(), &aigp).as_ref().attr(26).is_none());
    }

    #[test]
    fn a_claim_to_be_well_known_ends_the_session() {
        let told = |attr: &[u8]| Notification::with_data(Reason::UnrecognizedWellKnown, attr);
        assert_eq!(reset_for(external(), &[0x40, 255, 1, 7]), Some(told(&[0x40, 255, 1, 7])));
        assert_eq!(reset_for(external(), &[0, 0, 0]), Some(told(&[0, 0, 0])));
    }
}
