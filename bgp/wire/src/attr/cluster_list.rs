//! CLUSTER_LIST: optional, not transitive, cluster identifiers of four octets, between peers of one AS only
//! (RFC 4456 section 8; RFC 7606 section 7.10). The row of the attribute table says it all; here are its
//! tests.

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, discarded_for, external, internal, withdrawn_for};
    use crate::{error::AttrProblem, router_id::RouterId};

    #[test]
    fn counts_from_internal_peers_only() {
        let attr = [0x80, 10, 8, 0, 0, 0, 1, 0, 0, 0, 2];
        let kept = canonical_of(internal(), &attr);
        assert_eq!(kept.facts().cluster_len, 2);
        assert_eq!(kept.as_ref().cluster_list().collect::<Vec<_>>(), [RouterId(1), RouterId(2)]);
        assert_eq!(canonical_of(external(), &attr).facts().cluster_len, 0);
        assert_eq!(discarded_for(external(), &attr), [(10, AttrProblem::OutOfPlace)]);
    }

    #[test]
    fn no_multiple_of_four_is_treat_as_withdraw() {
        assert_eq!(withdrawn_for(internal(), &[0x80, 10, 5, 0, 0, 0, 0, 0]), Some((10, AttrProblem::Length)));
        assert_eq!(withdrawn_for(internal(), &[0x80, 10, 0]), Some((10, AttrProblem::Length)));
    }
}
