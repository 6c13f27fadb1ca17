//! IPIP: an IP-in-IP tunnel from our address to the next hop, shared by every destination behind it.
//!
//! The tunnel borrows the uplink's addresses. A host route in the pods' table sends pods' traffic for the remote node
//! itself into the tunnel, while the host's own traffic, in the main table, does not take it.

use super::{Carriage, DesiredSet, Facts, Provider, Unserved};
use crate::desired::{IpipKey, Target, Tunnel};
use crate::model::Hop;

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Ipip;

impl Provider for Ipip {
    fn name(&self) -> &'static str {
        "ipip"
    }

    fn desired(&self, hop: Hop, _: Carriage, facts: &Facts, out: &mut DesiredSet) -> Result<(), Unserved> {
        let local = facts.local(hop.address)?;
        let tunnel = Tunnel::Ipip(IpipKey { local, remote: hop.address });
        out.carry(tunnel, Target::Tunnel(tunnel), hop, facts);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Encryption;
    use crate::desired::{MtuRule, ObjectKey, Path, Spec};
    use crate::event::Change;
    use crate::model::{Node, NodeName, RouteKey, TableId};

    fn facts() -> Facts {
        let mut facts = Facts::new(NodeName::from("a"), Encryption::default());
        let own = Node { ipv4: Some("192.0.2.1/24".parse().unwrap()), ..Node::default() };
        facts.nodes_changed(&Change::Upsert(NodeName::from("a"), own));
        facts
    }

    #[test]
    fn a_tunnel_comes_with_its_settings_and_its_host_route() {
        let hop = Hop { address: "198.51.100.2".parse().unwrap(), weight: 1 };
        let mut out = DesiredSet::default();
        Ipip.desired(hop, Carriage::Plain, &facts(), &mut out).unwrap();
        let key = IpipKey { local: "192.0.2.1".parse().unwrap(), remote: hop.address };
        let tunnel = Tunnel::Ipip(key);
        let path = Path { to: Target::Tunnel(tunnel), weight: 1 };
        assert_eq!(out.paths, [path].into());
        let host = RouteKey { table: TableId::PODS, prefix: "198.51.100.2/32".parse().unwrap() };
        assert_eq!(out.routes, [(host, [path].into())].into());
        for key in [
            ObjectKey::Tunnel(tunnel),
            ObjectKey::Tag(tunnel),
            ObjectKey::Unnumbered(tunnel),
            ObjectKey::Gso(tunnel),
            ObjectKey::Cnat(tunnel),
            ObjectKey::AdminUp(tunnel),
        ] {
            assert_eq!(out.objects.get(&key), Some(&None), "{key}");
        }
        let mtu = Spec::MtuRule(MtuRule::UplinkLess(20));
        assert_eq!(out.objects.get(&ObjectKey::Mtu(tunnel)), Some(&Some(mtu)));
    }

    #[test]
    fn without_an_address_of_the_family_there_is_no_tunnel() {
        let hop = Hop { address: "2001:db8::2".parse().unwrap(), weight: 1 };
        let mut out = DesiredSet::default();
        let unserved = Ipip.desired(hop, Carriage::Plain, &facts(), &mut out);
        assert_eq!(unserved, Err(Unserved::NoLocalAddress(hop.address)));
        assert_eq!(out, DesiredSet::default());
    }
}
