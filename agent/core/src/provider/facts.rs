//! What providers, and the choice between them, may know: our node, the others by their addresses, and the settings that
//! say how traffic travels.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bgp_core::Family;

use super::{SrPolicies, Unserved};
use crate::config::{Encryption, IpsecConfig};
use crate::desired::{MtuRule, Tunnel};
use crate::event::Change;
use crate::model::{FelixConfig, KeyPair, Node, NodeName, PerFamily, PublicKey, Vni, family_of};

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    me: NodeName,
    /// All nodes, ours included.
    nodes: BTreeMap<NodeName, Node>,
    /// Who has an address; more than one node only by mistake.
    by_address: BTreeMap<IpAddr, BTreeSet<NodeName>>,
    /// Who has published a key, for IPv4 or not; more than one node only by mistake.
    by_key: BTreeMap<(bool, PublicKey), BTreeSet<NodeName>>,
    /// Our keys for WireGuard.
    pub(crate) keys: PerFamily<Option<KeyPair>>,
    /// What FelixConfigurations say for this node.
    pub(crate) felix: FelixConfig,
    /// What SRv6 can carry, and how.
    pub(crate) policies: SrPolicies,
    /// IPsec protects what would go through IPIP tunnels.
    pub(crate) ipsec: Option<IpsecConfig>,
    /// What becomes of traffic where WireGuard is on.
    pub(crate) encryption: Encryption,
}

/// How far WireGuard can carry traffic to a next hop.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum WireguardReach {
    /// It is off.
    Off,
    /// We have no key.
    Keyless,
    /// No node has the next hop's address.
    Stranger,
    /// The next hop's node has published no key.
    NoKey,
    /// The next hop's node has published the key of another node, or ours.
    SharedKey,
    /// It can.
    Usable(PublicKey),
}

impl Facts {
    pub(crate) fn new(me: NodeName, encryption: Encryption) -> Self {
        Self {
            me,
            nodes: BTreeMap::new(),
            by_address: BTreeMap::new(),
            by_key: BTreeMap::new(),
            keys: PerFamily::default(),
            felix: FelixConfig::default(),
            policies: SrPolicies::default(),
            ipsec: None,
            encryption,
        }
    }

    /// Our own node.
    pub(crate) fn own(&self) -> Option<&Node> {
        self.nodes.get(&self.me)
    }

    /// The addresses of all nodes but ours.
    pub(crate) fn others(&self) -> impl Iterator<Item = IpAddr> {
        self.nodes.iter().filter(|(name, _)| **name != self.me).flat_map(|(_, node)| node.addresses())
    }

    /// Our own address of the IP version of `remote`, from which a tunnel to it goes.
    pub(crate) fn local(&self, remote: IpAddr) -> Result<IpAddr, Unserved> {
        let local = self.own().and_then(|node| node.address(family_of(remote)));
        local.ok_or(Unserved::NoLocalAddress(remote))
    }

    /// The node that has this address; the first by name where several have it.
    pub(crate) fn node_at(&self, address: IpAddr) -> Option<(&NodeName, &Node)> {
        let name = self.by_address.get(&address)?.first()?;
        self.nodes.get_key_value(name)
    }

    /// How far WireGuard can carry traffic to a next hop.
    pub(crate) fn wireguard(&self, hop: IpAddr) -> WireguardReach {
        let family = family_of(hop);
        if !self.felix.wireguard(family) {
            return WireguardReach::Off;
        }
        let Some(own) = self.keys.of(family) else { return WireguardReach::Keyless };
        let Some((name, node)) = self.node_at(hop) else { return WireguardReach::Stranger };
        let Some(key) = *node.wireguard.of(family) else { return WireguardReach::NoKey };
        let first = self.by_key.get(&(hop.is_ipv4(), key)).and_then(BTreeSet::first);
        if key == own.public() || first != Some(name) {
            return WireguardReach::SharedKey;
        }
        WireguardReach::Usable(key)
    }

    /// The keys that others shall know: where WireGuard is on and we have an address to be reached at by it.
    pub(crate) fn published(&self) -> PerFamily<Option<PublicKey>> {
        let key = |family| {
            let own = self.own()?.address(family);
            let on = own.is_some() && self.felix.wireguard(family);
            self.keys.of(family).as_ref().filter(|_| on).map(KeyPair::public)
        };
        PerFamily { v4: key(Family::Ipv4Unicast), v6: key(Family::Ipv6Unicast) }
    }

    /// UDP port of VXLAN, ours and that of other nodes.
    pub(crate) fn vxlan_port(&self) -> u16 {
        self.felix.vxlan_port()
    }

    /// The VNI of the default network.
    pub(crate) fn vxlan_vni(&self) -> Vni {
        Vni::new(self.felix.vxlan_vni()).unwrap_or(Vni::DEFAULT)
    }

    /// How large packets in a tunnel may be.
    pub(crate) fn mtu(&self, tunnel: &Tunnel) -> MtuRule {
        let family = family_of(tunnel.local());
        let set = match tunnel {
            Tunnel::Ipip(_) => self.felix.ipip_mtu,
            Tunnel::Vxlan(_) => *self.felix.vxlan_mtu.of(family),
            Tunnel::Wireguard(_) => *self.felix.wireguard_mtu.of(family),
        };
        set.map_or(MtuRule::UplinkLess(tunnel.overhead()), |mtu| MtuRule::Fixed(u32::from(mtu)))
    }

    /// Takes in what nodes there are. Answers which of them changed: what leads to their addresses of before and of now has to
    /// be looked at again.
    pub(crate) fn nodes_changed(&mut self, change: &Change<NodeName, Node>) -> NodesChanged {
        let mut changed = NodesChanged::default();
        match change {
            Change::Resync(all) => {
                let listed: BTreeSet<&NodeName> = all.iter().map(|(name, _)| name).collect();
                let gone: Vec<NodeName> =
                    self.nodes.keys().filter(|name| !listed.contains(name)).cloned().collect();
                for name in gone {
                    self.put(&name, None, &mut changed);
                }
                for (name, node) in all {
                    self.put(name, Some(node), &mut changed);
                }
            }
            Change::Upsert(name, node) => self.put(name, Some(node), &mut changed),
            Change::Delete(name) => self.put(name, None, &mut changed),
        }
        changed
    }

    fn put(&mut self, name: &NodeName, node: Option<&Node>, changed: &mut NodesChanged) {
        let before = self.nodes.get(name);
        // What carries traffic depends on nothing else of a node.
        let same = match (before, node) {
            (Some(before), Some(node)) => {
                (before.ipv4, before.ipv6, before.wireguard) == (node.ipv4, node.ipv6, node.wireguard)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            changed.own |= *name == self.me;
            let shared: BTreeSet<(bool, PublicKey)> =
                [before, node].into_iter().flatten().flat_map(keys).collect();
            // Whoever has a key in common with it may have one of its own now, or not any more.
            for other in shared.iter().filter_map(|key| self.by_key.get(key)).flatten() {
                changed.addresses.extend(self.nodes.get(other).into_iter().flat_map(Node::addresses));
            }
            for key in before.into_iter().flat_map(keys) {
                if let Some(names) = self.by_key.get_mut(&key) {
                    names.remove(name);
                    if names.is_empty() {
                        self.by_key.remove(&key);
                    }
                }
            }
            for key in node.into_iter().flat_map(keys) {
                self.by_key.entry(key).or_default().insert(name.clone());
            }
            for address in before.into_iter().flat_map(Node::addresses) {
                changed.addresses.insert(address);
                if let Some(names) = self.by_address.get_mut(&address) {
                    names.remove(name);
                    if names.is_empty() {
                        self.by_address.remove(&address);
                    }
                }
            }
            for address in node.into_iter().flat_map(Node::addresses) {
                changed.addresses.insert(address);
                self.by_address.entry(address).or_default().insert(name.clone());
            }
        }
        match node {
            Some(node) => drop(self.nodes.insert(name.clone(), node.clone())),
            None => drop(self.nodes.remove(name)),
        }
    }
}

/// The keys that a node has published, each with whether it is for IPv4.
fn keys(node: &Node) -> impl Iterator<Item = (bool, PublicKey)> {
    let PerFamily { v4, v6 } = node.wireguard;
    v4.map(|key| (true, key)).into_iter().chain(v6.map(|key| (false, key)))
}

/// Which nodes changed in a way that matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NodesChanged {
    /// Ours did.
    pub(crate) own: bool,
    /// Addresses of those that did, of before and of now.
    pub(crate) addresses: BTreeSet<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ipv4: &str) -> Node {
        Node { ipv4: Some(ipv4.parse().unwrap()), ..Node::default() }
    }

    #[test]
    fn nodes_are_found_by_their_addresses_of_now() {
        let mut facts = Facts::new(NodeName::from("a"), Encryption::default());
        let at = |facts: &Facts, address: &str| {
            facts.node_at(address.parse().unwrap()).map(|(name, _)| name.to_string())
        };
        let two = vec![("a".into(), node("192.0.2.1/24")), ("b".into(), node("192.0.2.2/24"))];
        let changed = facts.nodes_changed(&Change::Resync(two));
        assert!(changed.own);
        assert_eq!(at(&facts, "192.0.2.2").as_deref(), Some("b"));
        // Its labels are nothing to us.
        let labelled = Node { labels: [("x".to_owned(), "y".to_owned())].into(), ..node("192.0.2.2/24") };
        assert_eq!(facts.nodes_changed(&Change::Upsert("b".into(), labelled)), NodesChanged::default());
        let changed = facts.nodes_changed(&Change::Upsert("b".into(), node("192.0.2.3/24")));
        let both = ["192.0.2.2", "192.0.2.3"].map(|address| address.parse().unwrap());
        assert_eq!(changed, NodesChanged { own: false, addresses: both.into() });
        assert_eq!((at(&facts, "192.0.2.2"), at(&facts, "192.0.2.3").as_deref()), (None, Some("b")));
        // Two with the same address: the one that stays keeps it.
        facts.nodes_changed(&Change::Upsert("c".into(), node("192.0.2.3/24")));
        facts.nodes_changed(&Change::Delete("b".into()));
        assert_eq!(at(&facts, "192.0.2.3").as_deref(), Some("c"));
        facts.nodes_changed(&Change::Resync(Vec::new()));
        assert_eq!(at(&facts, "192.0.2.3"), None);
        assert!(facts.own().is_none());
    }
}
