//! What we are to a neighbour, and what follows from that for routes (RFC 9234): the role that a session is given, and the
//! procedures of the ONLY_TO_CUSTOMER attribute (section 5), which find and prevent route leaks.
//!
//! They concern external sessions with a role of ours and IPv4 and IPv6 unicast only; nobody can alter them. Whether the
//! neighbour named its role does not matter (section 4.2). A leak stays in the Adj-RIB-In with its reason and takes no
//! part in the decision.

use bgp_wire::{Asn, Family, Role};

/// What we are to a neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct PeerRole {
    /// Our role; the neighbour must have the opposite one, where it names one.
    pub role: Role,
    /// There is no session unless the neighbour names its role (section 4.2, "strict mode").
    pub strict: bool,
}

impl PeerRole {
    /// A role, and no strict mode.
    #[must_use]
    pub const fn new(role: Role) -> Self {
        Self { role, strict: false }
    }
}

/// What becomes of a route that arrives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ingress {
    /// It stays as it is.
    Pass,
    /// It is a route leak, and ineligible.
    Leak,
    /// It gets ONLY_TO_CUSTOMER with this AS number.
    Mark(Asn),
}

/// What becomes of a route that is to leave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Egress {
    /// It stays as it is.
    Pass,
    /// It is not told.
    Withhold,
    /// It gets ONLY_TO_CUSTOMER with our AS number.
    Mark,
}

/// Whether the procedures concern a family.
pub(crate) const fn concerns(family: Family) -> bool {
    matches!(family, Family::Ipv4Unicast | Family::Ipv6Unicast)
}

/// Section 5, ingress, where our role is `role`: a route of a neighbour in AS `remote`, with `otc` as its
/// ONLY_TO_CUSTOMER.
pub(crate) fn ingress(role: Role, remote: Asn, otc: Option<Asn>) -> Ingress {
    match (role.opposite(), otc) {
        // 1. From a customer or a client of ours.
        (Role::Customer | Role::RouteServerClient, Some(_)) => Ingress::Leak,
        // 2. From a peer, and not marked by itself.
        (Role::Peer, Some(asn)) if asn != remote => Ingress::Leak,
        // 3. From above or from beside, and not marked yet.
        (Role::Provider | Role::Peer | Role::RouteServer, None) => Ingress::Mark(remote),
        (Role::Customer | Role::RouteServerClient, None)
        | (Role::Provider | Role::Peer | Role::RouteServer, Some(_)) => Ingress::Pass,
    }
}

/// Section 5, egress, where our role is `role`: a route that is marked already, or not.
pub(crate) const fn egress(role: Role, marked: bool) -> Egress {
    match (role.opposite(), marked) {
        // 1. To a customer, a peer or a client of ours.
        (Role::Customer | Role::Peer | Role::RouteServerClient, false) => Egress::Mark,
        // 2. Marked routes go to customers and clients only.
        (Role::Provider | Role::Peer | Role::RouteServer, true) => Egress::Withhold,
        (Role::Customer | Role::RouteServerClient, true) | (Role::Provider | Role::RouteServer, false) => {
            Egress::Pass
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: Asn = Asn(65020);
    const OTHER: Asn = Asn(65030);

    /// Our role where the neighbour has this one.
    fn to(neighbour: Role) -> Role {
        neighbour.opposite()
    }

    #[test]
    fn ingress_1_a_marked_route_from_a_customer_or_client_is_a_leak() {
        for neighbour in [Role::Customer, Role::RouteServerClient] {
            for otc in [REMOTE, OTHER] {
                assert_eq!(ingress(to(neighbour), REMOTE, Some(otc)), Ingress::Leak);
            }
            assert_eq!(ingress(to(neighbour), REMOTE, None), Ingress::Pass);
        }
    }

    #[test]
    fn ingress_2_a_route_from_a_peer_that_somebody_else_marked_is_a_leak() {
        assert_eq!(ingress(to(Role::Peer), REMOTE, Some(OTHER)), Ingress::Leak);
        assert_eq!(ingress(to(Role::Peer), REMOTE, Some(REMOTE)), Ingress::Pass);
    }

    #[test]
    fn ingress_3_what_is_not_marked_is_marked_with_the_remote_as() {
        for neighbour in [Role::Provider, Role::Peer, Role::RouteServer] {
            assert_eq!(ingress(to(neighbour), REMOTE, None), Ingress::Mark(REMOTE));
        }
        for neighbour in [Role::Provider, Role::RouteServer] {
            assert_eq!(ingress(to(neighbour), REMOTE, Some(OTHER)), Ingress::Pass, "kept unchanged");
        }
    }

    #[test]
    fn egress_1_what_goes_to_customers_peers_and_clients_is_marked() {
        for neighbour in [Role::Customer, Role::Peer, Role::RouteServerClient] {
            assert_eq!(egress(to(neighbour), false), Egress::Mark);
        }
        for neighbour in [Role::Provider, Role::RouteServer] {
            assert_eq!(egress(to(neighbour), false), Egress::Pass);
        }
    }

    #[test]
    fn egress_2_what_is_marked_goes_to_customers_and_clients_only() {
        for neighbour in [Role::Provider, Role::Peer, Role::RouteServer] {
            assert_eq!(egress(to(neighbour), true), Egress::Withhold);
        }
        for neighbour in [Role::Customer, Role::RouteServerClient] {
            assert_eq!(egress(to(neighbour), true), Egress::Pass, "kept unchanged");
        }
    }
}
