//! MULTI_EXIT_DISC: optional, not transitive, four octets (RFC 4271 section 5.1.4). Any value will do, so the
//! row of the attribute table says it all; here are its tests.

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, external, withdrawn_for};
    use crate::error::AttrProblem;

    #[test]
    fn is_kept() {
        assert_eq!(canonical_of(external(), &[0x80, 4, 4, 0, 0, 0, 77]).facts().med, Some(77));
        assert_eq!(canonical_of(external(), &[]).facts().med, None);
    }

    #[test]
    fn wrong_length_or_flags_is_treat_as_withdraw() {
        assert_eq!(withdrawn_for(external(), &[0x80, 4, 3, 0, 0, 0]), Some((4, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0x80, 4, 0]), Some((4, AttrProblem::Length)));
        assert_eq!(withdrawn_for(external(), &[0xc0, 4, 4, 0, 0, 0, 0]), Some((4, AttrProblem::Flags)));
    }
}
