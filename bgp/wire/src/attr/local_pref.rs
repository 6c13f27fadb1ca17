//! LOCAL_PREF: well-known, four octets, between peers of one AS only (RFC 4271 section 5.1.5; RFC 7606
//! section 7.5). The row of the attribute table says it all; here are its tests.

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, discarded_for, external, internal, withdrawn_for};
    use crate::error::AttrProblem;

    #[test]
    fn counts_from_internal_peers_only() {
        let attr = [0x40, 5, 4, 0, 0, 0, 200];
        assert_eq!(canonical_of(internal(), &attr).facts().local_pref, Some(200));
        assert_eq!(canonical_of(external(), &attr).facts().local_pref, None);
        assert_eq!(discarded_for(external(), &attr), [(5, AttrProblem::OutOfPlace)]);
    }

    #[test]
    fn malformed_is_treat_as_withdraw_from_internal_and_dropped_from_external_peers() {
        for attr in [&[0x40, 5, 3, 0, 0, 0][..], &[0x40, 5, 0], &[0xc0, 5, 4, 0, 0, 0, 1]] {
            assert!(withdrawn_for(internal(), attr).is_some());
            assert_eq!(withdrawn_for(external(), attr), None);
            assert_eq!(discarded_for(external(), attr), [(5, AttrProblem::OutOfPlace)]);
        }
    }
}
