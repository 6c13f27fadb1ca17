//! SR policies, as whoever installs them wants to hear of them (RFC 9830 section 4.2.2).
//!
//! *Absent on purpose:* which candidate path of a policy is used. That is the installer's part (RFC 9256 section 2.9): it
//! knows paths from elsewhere, and which of them are valid.

use bgp_wire::attr::tunnel_encap::CandidatePath;
use bgp_wire::attr::{Canonical, FactFlags};
use bgp_wire::{Asn, RouterId};

/// A candidate path that this speaker may use. Endpoint, color and distinguisher are the route's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrPolicyPath {
    /// What it says.
    pub path: CandidatePath,
    /// Who made it.
    pub originator: Originator,
}

/// Who made a candidate path (RFC 9256 section 2.4). Of several with equal preference the one with the lowest originator
/// is used, then the one with the greatest distinguisher (section 2.9).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Originator {
    /// The AS that the route comes from: the last one of its path, or our own.
    pub asn: Asn,
    /// ORIGINATOR_ID, or the BGP Identifier of the neighbour that it came from, or our own.
    pub node: RouterId,
}

/// The candidate path of a route, and whether a speaker with this identifier may use it: it is meant for it, and nothing of
/// it is unknown. `None` for a route that is no SR policy.
#[must_use]
pub fn candidate_path(attrs: Canonical<'_>, router_id: RouterId) -> Option<(CandidatePath, bool)> {
    let path = attrs.tunnel_encap().candidate_path()?;
    let usable = path.is_supported() && is_meant_for(attrs, router_id);
    Some((path, usable))
}

/// RFC 9830 section 4.2.2: with route targets, one of them has to be the speaker's identifier.
fn is_meant_for(attrs: Canonical<'_>, router_id: RouterId) -> bool {
    let mut targets = attrs.ext_communities().filter(|community| community.is_route_target()).peekable();
    let own = std::net::Ipv4Addr::from_bits(router_id.0);
    targets.peek().is_none() || targets.any(|target| target.route_target_address() == Some(own))
}

/// RFC 9830 section 4.2.1: whether there is a route target of the right form, or NO_ADVERTISE.
pub(crate) fn names_its_headends(attrs: Canonical<'_>, flags: FactFlags) -> bool {
    flags.has(FactFlags::NO_ADVERTISE)
        || attrs.ext_communities().any(|community| community.route_target_address().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bgp_wire::attr::tunnel_encap::UnknownSubTlv;
    use bgp_wire::attr::{Builder, Community, Origin};

    fn set(path: &CandidatePath, targets: &[&str], communities: &[Community]) -> Vec<u8> {
        let mut builder = Builder::new(Origin::Igp);
        builder
            .add_ext_communities(targets.iter().map(|text| text.parse().unwrap()))
            .add_communities(communities.iter().copied())
            .tunnel_encap(Some(path.encode().unwrap()));
        builder.build()
    }

    #[test]
    fn with_route_targets_one_must_be_ours() {
        let path = CandidatePath::default();
        for (targets, usable) in [
            (&[][..], true),
            (&["rt:192.0.2.10:0"], true),
            (&["rt:192.0.2.9:0", "rt:192.0.2.10:7"], true),
            (&["rt:192.0.2.9:0"], false),
            // Of another form; it cannot be an identifier.
            (&["rt:65010:1"], false),
            (&["soo:192.0.2.9:0"], true),
        ] {
            let octets = set(&path, targets, &[]);
            let found = candidate_path(Canonical(&octets), RouterId(0xc000_020a));
            assert_eq!(found, Some((path.clone(), usable)), "{targets:?}");
        }
        assert_eq!(candidate_path(Canonical(&Builder::new(Origin::Igp).build()), RouterId(1)), None);
    }

    #[test]
    fn with_something_unknown_it_is_not_usable() {
        let unknown = vec![UnknownSubTlv { kind: 99, value: [].into() }];
        let path = CandidatePath { unknown, ..CandidatePath::default() };
        let found = candidate_path(Canonical(&set(&path, &[], &[])), RouterId(1));
        assert_eq!(found, Some((path, false)));
    }

    #[test]
    fn headends_are_named_by_address_or_not_at_all() {
        let named = |targets, communities| {
            let octets = set(&CandidatePath::default(), targets, communities);
            let attrs = Canonical(&octets);
            names_its_headends(attrs, attrs.facts().flags)
        };
        assert!(!named(&[], &[Community::NO_EXPORT]));
        assert!(!named(&["rt:65010:1", "soo:192.0.2.9:0"], &[]));
        assert!(named(&["rt:192.0.2.9:0"], &[]));
        assert!(named(&[], &[Community::NO_ADVERTISE]));
    }
}
