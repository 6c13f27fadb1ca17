//! IPsec: IPIP tunnels whose traffic is encrypted by associations that IKEv2 negotiates, shared by every destination behind
//! them. The tunnels run over IPv4 only; an IPv6 next hop is reached at the IPv4 address of the same node.
//!
//! More than one address on each side gives more than one tunnel, so that more than one core encrypts: an address is
//! followed by those with the next numbers in the third octet, and traffic is shared among all tunnels.
//!
//! Nobody sets such a tunnel up: VPP does when there is an association, and down again without one. So nothing ever leaves
//! in the clear.

use std::net::{IpAddr, Ipv4Addr};

use bgp_core::Family;

use super::{Carriage, DesiredSet, Facts, Provider, Unserved};
use crate::desired::{IkeProfile, IpipKey, MtuRule, ObjectKey, Path, Spec, Target, Tunnel};
use crate::model::{Hop, RouteKey, TableId};

/// Octets that the outer address, ESP and its padding and tag add to a packet.
const OVERHEAD: u16 = 60;

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Ipsec;

impl Provider for Ipsec {
    fn name(&self) -> &'static str {
        "ipsec"
    }

    fn desired(&self, hop: Hop, _: Carriage, facts: &Facts, out: &mut DesiredSet) -> Result<(), Unserved> {
        let settings = facts.ipsec.as_ref().ok_or(Unserved::NoPreSharedKey)?;
        let psk = settings.psk.as_ref().ok_or(Unserved::NoPreSharedKey)?;
        let local = facts.own().and_then(|node| node.ipv4).ok_or(Unserved::NoLocalIpv4(hop.address))?.addr();
        let remote = match hop.address {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => {
                let node = facts.node_at(hop.address).and_then(|(_, node)| node.ipv4);
                node.ok_or(Unserved::NoRemoteIpv4(hop.address))?.addr()
            }
        };
        out.want([ObjectKey::Table(TableId::PODS, Family::Ipv4Unicast)]);
        if settings.async_threads > 0 {
            out.define(ObjectKey::AsyncCrypto, Spec::CryptoThreads(settings.async_threads));
        }
        let numbers = 0..=settings.extra_addresses;
        for from in numbers.clone() {
            for to in numbers.clone().filter(|to| settings.cross_tunnels || from == *to) {
                let (local, remote) = (nth(local, from), nth(remote, to));
                let key = IpipKey { local: local.into(), remote: remote.into() };
                let tunnel = Tunnel::Ipip(key);
                let into_tunnel = Path { to: Target::Tunnel(tunnel), weight: hop.weight };
                out.tunnel(tunnel, facts);
                out.define(ObjectKey::Mtu(tunnel), Spec::MtuRule(MtuRule::UplinkLess(OVERHEAD)));
                out.want([ObjectKey::IkeSession(key)]);
                // Both sides must agree who begins: the one with the greater address.
                let profile = IkeProfile { psk: psk.clone(), initiates: local > remote };
                out.define(ObjectKey::IkeProfile(key), Spec::IkeProfile(profile));
                let host = RouteKey { table: TableId::PODS, prefix: IpAddr::V4(remote).into() };
                out.route(host, Path { weight: 1, ..into_tunnel });
                out.paths.insert(into_tunnel);
            }
        }
        Ok(())
    }
}

/// The address with this number: 0 is the node's own. The third octet begins again at 0 after 255.
const fn nth(address: Ipv4Addr, number: u8) -> Ipv4Addr {
    let [a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c.wrapping_add(number), d)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::wildcard_enum_match_arm)]

    use super::*;
    use crate::config::{Encryption, IpsecConfig};
    use crate::event::Change;
    use crate::model::{Node, NodeName, Psk};

    fn facts(settings: IpsecConfig) -> Facts {
        let mut facts = Facts::new(NodeName::from("a"), Encryption::default());
        facts.ipsec = Some(settings);
        let own = Node {
            ipv4: Some("192.0.2.1/24".parse().unwrap()),
            ipv6: Some("2001:db8::1/64".parse().unwrap()),
            ..Node::default()
        };
        let other = Node {
            ipv4: Some("192.0.2.2/24".parse().unwrap()),
            ipv6: Some("2001:db8::2/64".parse().unwrap()),
            ..Node::default()
        };
        let only_v6 = Node { ipv4: None, ipv6: Some("2001:db8::3/64".parse().unwrap()), ..Node::default() };
        let all = vec![("a".into(), own), ("b".into(), other), ("c".into(), only_v6)];
        facts.nodes_changed(&Change::Resync(all));
        facts
    }

    fn settings() -> IpsecConfig {
        IpsecConfig { psk: Psk::new(b"key".to_vec()), ..IpsecConfig::default() }
    }

    fn desired(hop: &str, facts: &Facts) -> Result<DesiredSet, Unserved> {
        let mut out = DesiredSet::default();
        let hop = Hop { address: hop.parse().unwrap(), weight: 3 };
        Ipsec.desired(hop, Carriage::Plain, facts, &mut out).map(|()| out)
    }

    fn tunnels(set: &DesiredSet) -> Vec<String> {
        let tunnel = |key: &ObjectKey| match key {
            ObjectKey::Tunnel(tunnel) => Some(tunnel.to_string()),
            _ => None,
        };
        set.objects.keys().filter_map(tunnel).collect()
    }

    fn key(local: &str, remote: &str) -> IpipKey {
        IpipKey { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn a_tunnel_has_a_profile_and_is_never_set_up_by_us() {
        let set = desired("192.0.2.2", &facts(settings())).unwrap();
        let key = key("192.0.2.1", "192.0.2.2");
        let tunnel = Tunnel::Ipip(key);
        assert_eq!(tunnels(&set), ["ipip tunnel 192.0.2.1 to 192.0.2.2"]);
        assert!(!set.objects.contains_key(&ObjectKey::AdminUp(tunnel)));
        let profile = IkeProfile { psk: Psk::new(b"key".to_vec()).unwrap(), initiates: false };
        assert_eq!(set.objects[&ObjectKey::IkeProfile(key)], Some(Spec::IkeProfile(profile)));
        assert_eq!(set.objects[&ObjectKey::IkeSession(key)], None);
        assert_eq!(set.paths, [Path { to: Target::Tunnel(tunnel), weight: 3 }].into());
        let host = RouteKey { table: TableId::PODS, prefix: "192.0.2.2/32".parse().unwrap() };
        assert_eq!(set.routes, [(host, [Path { to: Target::Tunnel(tunnel), weight: 1 }].into())].into());
        assert!(!set.objects.contains_key(&ObjectKey::AsyncCrypto));
    }

    #[test]
    fn an_ipv6_next_hop_is_reached_at_the_ipv4_address_of_its_node() {
        let facts = facts(settings());
        let set = desired("2001:db8::2", &facts).unwrap();
        assert_eq!(set, desired("192.0.2.2", &facts).unwrap());
        let missing = |hop: &str| Unserved::NoRemoteIpv4(hop.parse().unwrap());
        assert_eq!(desired("2001:db8::3", &facts), Err(missing("2001:db8::3")), "it has none");
        assert_eq!(desired("2001:db8::9", &facts), Err(missing("2001:db8::9")), "nobody knows it");
        assert!(desired("203.0.113.9", &facts).is_ok(), "an IPv4 next hop need not be a node");
    }

    #[test]
    fn the_greater_address_begins() {
        for (own, remote, initiates) in [
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "192.0.1.255", true),
            ("192.0.2.1", "10.255.255.255", true),
            ("192.0.2.1", "192.0.10.1", false),
        ] {
            let set = desired(remote, &facts(settings())).unwrap();
            let Some(Spec::IkeProfile(profile)) = &set.objects[&ObjectKey::IkeProfile(key(own, remote))]
            else {
                panic!("{set:?}")
            };
            assert_eq!(profile.initiates, initiates, "{own} to {remote}");
        }
    }

    #[test]
    fn further_addresses_make_further_tunnels() {
        let set = desired("192.0.2.2", &facts(IpsecConfig { extra_addresses: 1, ..settings() })).unwrap();
        assert_eq!(
            tunnels(&set),
            ["ipip tunnel 192.0.2.1 to 192.0.2.2", "ipip tunnel 192.0.3.1 to 192.0.3.2"]
        );
        assert_eq!((set.paths.len(), set.routes.len()), (2, 2));
        let crossed = IpsecConfig { extra_addresses: 1, cross_tunnels: true, async_threads: 2, ..settings() };
        let set = desired("192.0.2.2", &facts(crossed)).unwrap();
        assert_eq!(
            tunnels(&set),
            [
                "ipip tunnel 192.0.2.1 to 192.0.2.2",
                "ipip tunnel 192.0.2.1 to 192.0.3.2",
                "ipip tunnel 192.0.3.1 to 192.0.2.2",
                "ipip tunnel 192.0.3.1 to 192.0.3.2"
            ]
        );
        assert_eq!(set.paths.len(), 4);
        assert!(
            set.routes.values().all(|paths| paths.len() == 2),
            "each remote address through both tunnels to it"
        );
        assert_eq!(set.objects[&ObjectKey::AsyncCrypto], Some(Spec::CryptoThreads(2)));
        assert_eq!(nth(Ipv4Addr::new(10, 0, 255, 1), 1), Ipv4Addr::new(10, 0, 0, 1));
    }

    #[test]
    fn without_a_key_or_an_address_nothing_is_half_made() {
        let no_key = IpsecConfig { psk: None, ..settings() };
        assert_eq!(desired("192.0.2.2", &facts(no_key)), Err(Unserved::NoPreSharedKey));
        let mut out = DesiredSet::default();
        let mut facts = facts(settings());
        let own = Node { ipv6: Some("2001:db8::1/64".parse().unwrap()), ..Node::default() };
        facts.nodes_changed(&Change::Upsert("a".into(), own));
        let hop = Hop { address: "192.0.2.2".parse().unwrap(), weight: 1 };
        let unserved = Ipsec.desired(hop, Carriage::Plain, &facts, &mut out);
        assert_eq!(unserved, Err(Unserved::NoLocalIpv4(hop.address)));
        assert_eq!(out, DesiredSet::default());
    }
}
