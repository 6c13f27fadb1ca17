//! IPIP: an IP-in-IP tunnel from our address to the next hop, shared by every destination behind it.
//!
//! The tunnel borrows the uplink's addresses. A host route in the pods' table sends pods' traffic for the remote node
//! itself into the tunnel, while the host's own traffic, in the main table, does not take it.

use super::{DesiredSet, Facts, Provider, Unserved};
use crate::desired::{IpipKey, ObjectKey, Path, Target};
use crate::model::{Hop, RouteKey, TableId, family_of};

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Ipip;

impl Provider for Ipip {
    fn name(&self) -> &'static str {
        "ipip"
    }

    fn desired(&self, hop: Hop, facts: Facts<'_>, out: &mut DesiredSet) -> Result<(), Unserved> {
        let family = family_of(hop.address);
        let local = facts.node.address(family).ok_or(Unserved::NoLocalAddress(hop.address))?;
        let tunnel = IpipKey { local, remote: hop.address };
        let into_tunnel = Path { to: Target::Ipip(tunnel), weight: hop.weight };
        out.objects.extend([
            ObjectKey::FibSource,
            ObjectKey::Table(TableId::PODS, family),
            ObjectKey::Ipip(tunnel),
            ObjectKey::Tag(tunnel),
            ObjectKey::Unnumbered(tunnel),
            ObjectKey::Gso(tunnel),
            ObjectKey::AdminUp(tunnel),
        ]);
        let host = RouteKey { table: TableId::PODS, prefix: hop.address.into() };
        out.routes.push((host, Path { weight: 1, ..into_tunnel }));
        out.paths.push(into_tunnel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Node;

    fn node() -> Node {
        Node { ipv4: Some("192.0.2.1/24".parse().unwrap()), ..Node::default() }
    }

    #[test]
    fn a_tunnel_comes_with_its_settings_and_its_host_route() {
        let hop = Hop { address: "198.51.100.2".parse().unwrap(), weight: 1 };
        let mut out = DesiredSet::default();
        Ipip.desired(hop, Facts { node: &node() }, &mut out).unwrap();
        let tunnel = IpipKey { local: "192.0.2.1".parse().unwrap(), remote: hop.address };
        let path = Path { to: Target::Ipip(tunnel), weight: 1 };
        assert_eq!(out.paths, [path]);
        let host = RouteKey { table: TableId::PODS, prefix: "198.51.100.2/32".parse().unwrap() };
        assert_eq!(out.routes, [(host, path)]);
        for key in [
            ObjectKey::Ipip(tunnel),
            ObjectKey::Tag(tunnel),
            ObjectKey::Unnumbered(tunnel),
            ObjectKey::Gso(tunnel),
            ObjectKey::AdminUp(tunnel),
        ] {
            assert!(out.objects.contains(&key), "{key}");
        }
    }

    #[test]
    fn without_an_address_of_the_family_there_is_no_tunnel() {
        let hop = Hop { address: "2001:db8::2".parse().unwrap(), weight: 1 };
        let mut out = DesiredSet::default();
        let unserved = Ipip.desired(hop, Facts { node: &node() }, &mut out);
        assert_eq!(unserved, Err(Unserved::NoLocalAddress(hop.address)));
        assert_eq!(out, DesiredSet::default());
    }
}
