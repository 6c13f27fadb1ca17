//! ORIGINATOR_ID: optional, not transitive, four octets, between peers of one AS only (RFC 4456 section 8;
//! RFC 7606 section 7.9). The row of the attribute table says it all; here are its tests.

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, discarded_for, external, internal, withdrawn_for};
    use crate::{error::AttrProblem, router_id::RouterId};

    #[test]
    fn counts_from_internal_peers_only() {
        let attr = [0x80, 9, 4, 192, 0, 2, 7];
        assert_eq!(canonical_of(internal(), &attr).facts().originator, Some(RouterId(0xc000_0207)));
        assert_eq!(canonical_of(external(), &attr).facts().originator, None);
        assert_eq!(discarded_for(external(), &attr), [(9, AttrProblem::OutOfPlace)]);
    }

    #[test]
    fn wrong_length_is_treat_as_withdraw() {
        assert_eq!(withdrawn_for(internal(), &[0x80, 9, 3, 0, 0, 0]), Some((9, AttrProblem::Length)));
        assert_eq!(withdrawn_for(internal(), &[0x80, 9, 0]), Some((9, AttrProblem::Length)));
    }
}
