//! VXLAN: a tunnel from our address to the next hop, shared by every destination behind it, that carries IP packets
//! without Ethernet of pods (RFC 7348 in all else).
//!
//! Every route into it has the other end as its gateway: a route that only names the interface would have VPP ask the
//! network for each destination's MAC address, and drop meanwhile. The tunnel borrows the uplink's addresses. A host route
//! in the pods' table sends pods' traffic for the remote node itself into the tunnel, while the host's own traffic, in the
//! main table, does not take it.
//!
//! A network beside the default one has tunnels of its own, with its number. What comes out of them is looked up in the network's
//! tables, and only routes there lead into them; the outer packets take the same way as all others. Such a tunnel can't borrow the
//! uplink's addresses, as VPP lends them within one table only, and takes no packets without any: it has addresses of its own.

use super::{Carriage, DesiredSet, Facts, Provider, Unserved};
use crate::desired::{ObjectKey, Target, Tunnel, VxlanKey};
use crate::model::{Hop, TableId, family_of};

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Vxlan;

impl Provider for Vxlan {
    fn name(&self) -> &'static str {
        "vxlan"
    }

    fn desired(
        &self,
        hop: Hop,
        carriage: Carriage,
        facts: &Facts,
        out: &mut DesiredSet,
    ) -> Result<(), Unserved> {
        let network = if let Carriage::Network(vni) = carriage { Some(vni) } else { None };
        let tunnel = Tunnel::Vxlan(VxlanKey {
            local: facts.local(hop.address)?,
            remote: hop.address,
            vni: network.unwrap_or_else(|| facts.vxlan_vni()),
            port: facts.vxlan_port(),
            table: TableId::MAIN,
        });
        out.want([ObjectKey::DecapNext(family_of(hop.address))]);
        let to = Target::TunnelVia(tunnel, hop.address);
        match network {
            Some(vni) => out.carry_network(tunnel, to, hop, vni, facts),
            None => out.carry(tunnel, to, hop, facts),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bgp_core::Family;

    use crate::config::Encryption;
    use crate::desired::{MtuRule, Path, Spec};
    use crate::event::Change;
    use crate::model::{FelixConfig, Node, NodeName, PerFamily, RouteKey, Vni};

    fn facts() -> Facts {
        let mut facts = Facts::new(NodeName::from("a"), Encryption::default());
        let own = Node {
            ipv4: Some("192.0.2.1/24".parse().unwrap()),
            ipv6: Some("2001:db8::1/64".parse().unwrap()),
            ..Node::default()
        };
        facts.nodes_changed(&Change::Upsert(NodeName::from("a"), own));
        facts
    }

    #[test]
    fn a_tunnel_comes_with_its_settings_and_every_route_names_the_other_end() {
        for (local, remote, overhead) in
            [("192.0.2.1", "198.51.100.2", 50), ("2001:db8::1", "2001:db8:9::2", 70)]
        {
            let hop = Hop { address: remote.parse().unwrap(), weight: 2 };
            let mut out = DesiredSet::default();
            Vxlan.desired(hop, Carriage::Plain, &facts(), &mut out).unwrap();
            let tunnel = Tunnel::Vxlan(VxlanKey {
                local: local.parse().unwrap(),
                remote: hop.address,
                vni: Vni::new(4096).unwrap(),
                port: 4789,
                table: TableId::MAIN,
            });
            let family = family_of(hop.address);
            let to = Target::TunnelVia(tunnel, hop.address);
            assert_eq!(out.paths, [Path { to, weight: 2 }].into());
            let host = RouteKey { table: TableId::PODS, prefix: hop.address.into() };
            assert_eq!(out.routes, [(host, [Path { to, weight: 1 }].into())].into());
            let mtu = Spec::MtuRule(MtuRule::UplinkLess(overhead));
            let objects = [
                (ObjectKey::FibSource, None),
                (ObjectKey::Table(TableId::PODS, family), None),
                (ObjectKey::DecapNext(family), None),
                (ObjectKey::Tunnel(tunnel), None),
                (ObjectKey::Tag(tunnel), None),
                (ObjectKey::Unnumbered(tunnel), None),
                (ObjectKey::Gso(tunnel), None),
                (ObjectKey::Cnat(tunnel), None),
                (ObjectKey::Mtu(tunnel), Some(mtu)),
                (ObjectKey::AdminUp(tunnel), None),
            ];
            assert_eq!(out.objects, objects.into());
        }
    }

    #[test]
    fn a_network_has_tunnels_and_tables_of_its_own() {
        for (local, remote) in [("192.0.2.1", "198.51.100.2"), ("2001:db8::1", "2001:db8:9::2")] {
            let hop = Hop { address: remote.parse().unwrap(), weight: 2 };
            let vni = Vni::new(77).unwrap();
            let mut out = DesiredSet::default();
            Vxlan.desired(hop, Carriage::Network(vni), &facts(), &mut out).unwrap();
            let (local, remote, port) = (local.parse().unwrap(), hop.address, 4789);
            let tunnel = Tunnel::Vxlan(VxlanKey { local, remote, vni, port, table: TableId::MAIN });
            let to = Target::TunnelVia(tunnel, hop.address);
            assert_eq!(out.paths, [Path { to, weight: 2 }].into());
            assert_eq!(out.routes, [].into(), "the default network's pods don't take it");
            let table = TableId::of_network(vni);
            for family in Family::UNICAST {
                assert!(out.objects.contains_key(&ObjectKey::Table(table, family)));
                let vrf = out.objects.get(&ObjectKey::Vrf(tunnel, family));
                assert_eq!(vrf, Some(&Some(Spec::Table(table, family))));
                assert!(out.objects.contains_key(&ObjectKey::Address(tunnel, family)));
            }
            assert!(!out.objects.contains_key(&ObjectKey::Table(TableId::PODS, family_of(remote))));
            assert!(out.objects.contains_key(&ObjectKey::AdminUp(tunnel)));
            assert!(!out.objects.contains_key(&ObjectKey::Unnumbered(tunnel)));
        }
    }

    #[test]
    fn port_network_and_size_come_from_the_settings() {
        let mut facts = facts();
        facts.felix = FelixConfig {
            vxlan_port: Some(8472),
            vxlan_vni: Some(7),
            vxlan_mtu: PerFamily { v4: Some(1400), v6: None },
            ..FelixConfig::default()
        };
        let mut out = DesiredSet::default();
        let hop = Hop { address: "198.51.100.2".parse().unwrap(), weight: 1 };
        Vxlan.desired(hop, Carriage::Plain, &facts, &mut out).unwrap();
        let tunnel = out.paths.first().unwrap().to.tunnel().unwrap();
        let Tunnel::Vxlan(key) = tunnel else { panic!("{tunnel}") };
        assert_eq!((key.port, key.vni), (8472, Vni::new(7).unwrap()));
        let mtu = Spec::MtuRule(MtuRule::Fixed(1400));
        assert_eq!(out.objects.get(&ObjectKey::Mtu(tunnel)), Some(&Some(mtu)));
    }
}
