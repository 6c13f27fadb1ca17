//! WireGuard: one interface for all nodes of an IP version, each of them a peer of it.
//!
//! The interface is to VPP a network of neighbours: a route into it has a gateway, and the peer that may have the gateway's
//! address is where packets go. So all destinations behind a node have its address as their gateway, and what a peer is allowed to
//! send changes no route. The peers themselves, which need to know all those destinations, are the connectivity handler's.
//!
//! As with other tunnels a host route in the pods' table sends pods' traffic for the remote node itself this way, while the
//! host's own traffic, which is also what carries the encrypted packets, does not take it.

use std::net::IpAddr;

use super::{Carriage, DesiredSet, Facts, Provider, Unserved};
use crate::desired::{ObjectKey, Spec, Target, Tunnel, WireguardKey};
use crate::model::{Hop, KeyPair, family_of};

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Wireguard;

/// Our interface towards an address, and our keys on it.
pub(crate) fn interface(to: IpAddr, facts: &Facts) -> Result<(WireguardKey, &KeyPair), Unserved> {
    let family = family_of(to);
    let local = facts.local(to)?;
    let keys = facts.keys.of(family).as_ref().ok_or(Unserved::NoLocalKey(to))?;
    let port = facts.felix.wireguard_port(family);
    Ok((WireguardKey { local, port, key: keys.public().id() }, keys))
}

impl Provider for Wireguard {
    fn name(&self) -> &'static str {
        "wireguard"
    }

    fn desired(&self, hop: Hop, _: Carriage, facts: &Facts, out: &mut DesiredSet) -> Result<(), Unserved> {
        let (interface, keys) = interface(hop.address, facts)?;
        let tunnel = Tunnel::Wireguard(interface);
        out.carry(tunnel, Target::TunnelVia(tunnel, hop.address), hop, facts);
        out.define(ObjectKey::Tunnel(tunnel), Spec::WireguardKeys(keys.clone()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bgp_core::secret::Secret;

    use super::*;
    use crate::config::Encryption;
    use crate::desired::{MtuRule, Path};
    use crate::event::Change;
    use crate::model::{Node, NodeName, PerFamily, PublicKey, RouteKey, TableId};

    fn keys(fill: u8) -> KeyPair {
        KeyPair::new(Secret::new(vec![fill; 32]).unwrap(), PublicKey([fill; 32])).unwrap()
    }

    fn facts() -> Facts {
        let mut facts = Facts::new(NodeName::from("a"), Encryption::default());
        let own = Node {
            ipv4: Some("192.0.2.1/24".parse().unwrap()),
            ipv6: Some("2001:db8::1/64".parse().unwrap()),
            ..Node::default()
        };
        facts.nodes_changed(&Change::Upsert(NodeName::from("a"), own));
        facts.keys = PerFamily { v4: Some(keys(4)), v6: Some(keys(6)) };
        facts
    }

    #[test]
    fn each_ip_version_has_its_own_interface_with_its_port_and_key() {
        for (hop, local, port, fill, less) in
            [("198.51.100.2", "192.0.2.1", 51820, 4, 60), ("2001:db8:9::2", "2001:db8::1", 51821, 6, 80)]
        {
            let hop = Hop { address: hop.parse().unwrap(), weight: 3 };
            let mut out = DesiredSet::default();
            Wireguard.desired(hop, Carriage::Plain, &facts(), &mut out).unwrap();
            let key = WireguardKey { local: local.parse().unwrap(), port, key: keys(fill).public().id() };
            let tunnel = Tunnel::Wireguard(key);
            let to = Target::TunnelVia(tunnel, hop.address);
            assert_eq!(out.paths, [Path { to, weight: 3 }].into());
            let host = RouteKey { table: TableId::PODS, prefix: hop.address.into() };
            assert_eq!(out.routes, [(host, [Path { to, weight: 1 }].into())].into());
            let spec = |key| out.objects.get(&key).cloned().unwrap();
            assert_eq!(spec(ObjectKey::Tunnel(tunnel)), Some(Spec::WireguardKeys(keys(fill))));
            assert_eq!(spec(ObjectKey::Mtu(tunnel)), Some(Spec::MtuRule(MtuRule::UplinkLess(less))));
            for key in [ObjectKey::Tag(tunnel), ObjectKey::Unnumbered(tunnel), ObjectKey::AdminUp(tunnel)] {
                assert_eq!(out.objects.get(&key), Some(&None), "{key}");
            }
            assert!(!format!("{out:?}").contains(&format!("{fill}, {fill}, {fill}")), "a private key shows");
        }
    }

    #[test]
    fn settings_say_port_and_mtu() {
        let mut facts = facts();
        facts.felix.wireguard_port.v4 = Some(1234);
        facts.felix.wireguard_mtu.v4 = Some(1380);
        let hop = Hop { address: "198.51.100.2".parse().unwrap(), weight: 1 };
        let mut out = DesiredSet::default();
        Wireguard.desired(hop, Carriage::Plain, &facts, &mut out).unwrap();
        let (key, _) = interface(hop.address, &facts).unwrap();
        assert_eq!(key.port, 1234);
        let mtu = out.objects.get(&ObjectKey::Mtu(Tunnel::Wireguard(key))).unwrap();
        assert_eq!(*mtu, Some(Spec::MtuRule(MtuRule::Fixed(1380))));
    }

    #[test]
    fn without_an_address_or_a_key_there_is_no_interface() {
        let to: IpAddr = "198.51.100.2".parse().unwrap();
        let hop = Hop { address: to, weight: 1 };
        let mut out = DesiredSet::default();
        let mut keyless = facts();
        keyless.keys.v4 = None;
        assert_eq!(
            Wireguard.desired(hop, Carriage::Plain, &keyless, &mut out),
            Err(Unserved::NoLocalKey(to))
        );
        let mut homeless = Facts::new(NodeName::from("a"), Encryption::default());
        homeless.keys = facts().keys;
        assert_eq!(
            Wireguard.desired(hop, Carriage::Plain, &homeless, &mut out),
            Err(Unserved::NoLocalAddress(to))
        );
        assert_eq!(out, DesiredSet::default());
    }
}
