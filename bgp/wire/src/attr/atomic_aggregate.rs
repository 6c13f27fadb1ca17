//! ATOMIC_AGGREGATE: well-known, empty (RFC 4271 section 5.1.6; RFC 7606 section 7.6). The row of the
//! attribute table says it all; here are its tests.

#[cfg(test)]
mod tests {
    use super::super::{
        FactFlags,
        decode::tests::{canonical_of, discarded_for, external, withdrawn_for},
    };
    use crate::error::AttrProblem;

    #[test]
    fn is_a_fact() {
        assert!(canonical_of(external(), &[0x40, 6, 0]).facts().flags.has(FactFlags::ATOMIC_AGGREGATE));
        assert!(!canonical_of(external(), &[]).facts().flags.has(FactFlags::ATOMIC_AGGREGATE));
    }

    #[test]
    fn content_is_discarded_and_wrong_flags_are_treat_as_withdraw() {
        assert_eq!(discarded_for(external(), &[0x40, 6, 1, 0]), [(6, AttrProblem::Length)]);
        assert_eq!(withdrawn_for(external(), &[0x40, 6, 1, 0]), None);
        assert_eq!(withdrawn_for(external(), &[0xc0, 6, 0]), Some((6, AttrProblem::Flags)));
    }
}
