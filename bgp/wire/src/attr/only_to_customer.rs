//! ONLY_TO_CUSTOMER: optional, transitive, the AS that sent the route down to a customer or across to a peer (RFC 9234
//! section 5). It is carried; what roles make of it is not done here.
//!
//! The row of the attribute table says it all; here are its tests.

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, external, internal, withdrawn_for};
    use crate::{asn::Asn, error::AttrProblem};

    #[test]
    fn is_carried_from_everyone() {
        let attr = [0xc0, 35, 4, 0, 1, 0x11, 0x70];
        for ctx in [external(), internal()] {
            let kept = canonical_of(ctx, &attr);
            assert_eq!(kept.as_ref().only_to_customer(), Some(Asn(70_000)));
            assert_eq!(kept.as_ref().attr(35).unwrap().raw, attr);
        }
        assert_eq!(canonical_of(external(), &[]).as_ref().only_to_customer(), None);
    }

    #[test]
    fn wrong_length_is_treat_as_withdraw() {
        for attr in [&[0xc0, 35, 0][..], &[0xc0, 35, 3, 0, 0, 1], &[0xc0, 35, 5, 0, 0, 0, 0, 1]] {
            assert_eq!(withdrawn_for(external(), attr), Some((35, AttrProblem::Length)));
        }
    }
}
