//! `Node`: the Kubernetes object with Calico's annotations, and Calico's own Node. Both give the same facts.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use agent_core::model::PublicKey;

use super::value::{as_number, dotted_quad, non_empty};
use crate::yaml::{Fields, Item};

/// What BGP needs to know of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// The BGP address of family 4; its prefix length gives the node's subnet.
    pub(crate) ipv4: Option<NodeAddress>,
    /// The BGP address of family 6.
    pub(crate) ipv6: Option<NodeAddress>,
    /// The node's own AS number; 0 counts as unset.
    pub(crate) as_number: Option<u32>,
    /// The cluster id of a route reflector.
    pub(crate) cluster_id: Option<Ipv4Addr>,
    /// The public key for WireGuard over IPv4.
    pub(crate) wireguard_key: Option<PublicKey>,
    /// The public key for WireGuard over IPv6.
    pub(crate) wireguard_key_v6: Option<PublicKey>,
    /// Labels, as selectors see them.
    pub(crate) labels: BTreeMap<String, String>,
}

/// An address with the length of its subnet, host bits kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeAddress {
    /// The address.
    pub(crate) address: IpAddr,
    /// The prefix length of its subnet; that of a host where none is given.
    pub(crate) prefix_len: u8,
}

impl NodeAddress {
    fn parse(text: &str, ipv4: bool) -> Option<Self> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        if address.is_ipv4() != ipv4 {
            return None;
        }
        let bits = if ipv4 { 32 } else { 128 };
        let prefix_len = len.map_or(Some(bits), |len| len.parse().ok().filter(|len| *len <= bits))?;
        Some(Self { address, prefix_len })
    }
}

fn ipv4_address(item: &Item<'_>) -> Option<NodeAddress> {
    item.parse_with("an IPv4 address with its prefix length, such as 192.0.2.1/24", |text| {
        NodeAddress::parse(text, true)
    })
}

fn ipv6_address(item: &Item<'_>) -> Option<NodeAddress> {
    item.parse_with("an IPv6 address with its prefix length, such as 2001:db8::1/64", |text| {
        NodeAddress::parse(text, false)
    })
}

/// A key that can't be read is as good as none: its node's traffic then goes the way of nodes without one.
fn public_key(item: &Item<'_>) -> Option<PublicKey> {
    item.parse_with("a WireGuard public key: 32 octets in base64", PublicKey::parse)
}

/// An empty text counts as absent.
fn present(item: Option<Item<'_>>) -> Option<Item<'_>> {
    item.filter(|item| item.text() != Some(""))
}

impl Node {
    /// Read a Kubernetes Node: its labels, and the annotations that calico-node writes. All else is other people's.
    pub(crate) fn decode_kubernetes(metadata: Option<&Item<'_>>) -> Option<Self> {
        let mut node = Self::default();
        let Some(metadata) = metadata else { return Some(node) };
        let mut fields = metadata.fields()?;
        node.labels = labels(&mut fields);
        if let Some(item) = fields.take("annotations") {
            let mut notes = item.fields()?;
            let mut note = |key| present(notes.take(key));
            node.ipv4 = note("projectcalico.org/IPv4Address").and_then(|item| ipv4_address(&item));
            node.ipv6 = note("projectcalico.org/IPv6Address").and_then(|item| ipv6_address(&item));
            node.as_number =
                note("projectcalico.org/ASNumber").and_then(|item| as_number(&item)).filter(|asn| *asn != 0);
            node.cluster_id =
                note("projectcalico.org/RouteReflectorClusterID").and_then(|item| dotted_quad(&item));
            node.wireguard_key =
                note("projectcalico.org/WireguardPublicKey").and_then(|item| public_key(&item));
            node.wireguard_key_v6 =
                note("projectcalico.org/WireguardPublicKeyV6").and_then(|item| public_key(&item));
            notes.ignore_others();
        }
        fields.ignore_others();
        Some(node)
    }

    /// Read Calico's Node (`projectcalico.org/v3`).
    pub(crate) fn decode_calico(
        metadata: Option<&Item<'_>>,
        spec: &Item<'_>,
        status: Option<&Item<'_>>,
    ) -> Option<Self> {
        let mut node = Self::default();
        if let Some(mut fields) = metadata.and_then(Item::fields) {
            node.labels = labels(&mut fields);
            fields.ignore_others();
        }
        let mut fields = spec.fields()?;
        if let Some(bgp) = fields.take("bgp") {
            let mut bgp = bgp.fields()?;
            node.ipv4 = present(bgp.take("ipv4Address")).and_then(|item| ipv4_address(&item));
            node.ipv6 = present(bgp.take("ipv6Address")).and_then(|item| ipv6_address(&item));
            node.as_number = bgp.take("asNumber").and_then(|item| as_number(&item)).filter(|asn| *asn != 0);
            node.cluster_id =
                present(bgp.take("routeReflectorClusterID")).and_then(|item| dotted_quad(&item));
            bgp.ignore(&["ipv4IPIPTunnelAddr"]);
            bgp.finish();
        }
        fields.ignore(&[
            "addresses",
            "interfaces",
            "ipv4VXLANTunnelAddr",
            "ipv6VXLANTunnelAddr",
            "vxlanTunnelMACAddr",
            "vxlanTunnelMACAddrV6",
            "orchRefs",
            "wireguard",
        ]);
        fields.finish();
        if let Some(mut status) = status.and_then(Item::fields) {
            node.wireguard_key =
                present(status.take("wireguardPublicKey")).and_then(|item| public_key(&item));
            node.wireguard_key_v6 =
                present(status.take("wireguardPublicKeyV6")).and_then(|item| public_key(&item));
            status.ignore_others();
        }
        Some(node)
    }
}

fn labels(metadata: &mut Fields<'_>) -> BTreeMap<String, String> {
    let Some(item) = metadata.take("labels") else { return BTreeMap::new() };
    let label = |(key, value): (&str, Item<'_>)| {
        let value = if value.text() == Some("") { Some(String::new()) } else { non_empty(&value) };
        value.map(|value| (key.to_owned(), value))
    };
    item.entries().into_iter().filter_map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::super::object::tests::{one, problems};
    use super::*;

    fn expected() -> Node {
        Node {
            ipv4: Some(NodeAddress { address: "192.0.2.1".parse().unwrap(), prefix_len: 24 }),
            ipv6: Some(NodeAddress { address: "2001:db8:1::1".parse().unwrap(), prefix_len: 64 }),
            as_number: Some(64512),
            cluster_id: Some(Ipv4Addr::new(244, 0, 0, 1)),
            wireguard_key: PublicKey::parse("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="),
            wireguard_key_v6: PublicKey::parse("3p7bfXt9wbTTW2HC7OQ1cz+DQ8hbeGdNre+8QYb4gk8="),
            labels: [("rack".to_owned(), "r1".to_owned()), ("edge".to_owned(), String::new())].into(),
        }
    }

    #[test]
    fn both_kinds_of_node_give_the_same_facts() {
        let kubernetes = "\
apiVersion: v1
kind: Node
metadata:
  name: node-a
  uid: 1234
  labels: {rack: r1, edge: \"\"}
  annotations:
    projectcalico.org/IPv4Address: 192.0.2.1/24
    projectcalico.org/IPv6Address: 2001:db8:1::1/64
    projectcalico.org/ASNumber: \"64512\"
    projectcalico.org/RouteReflectorClusterID: 244.0.0.1
    projectcalico.org/WireguardPublicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
    projectcalico.org/WireguardPublicKeyV6: 3p7bfXt9wbTTW2HC7OQ1cz+DQ8hbeGdNre+8QYb4gk8=
    other.example/note: x
spec: {podCIDRs: [10.244.0.0/24], anything: 1}
status: {}
";
        let calico = "\
apiVersion: projectcalico.org/v3
kind: Node
metadata: {name: node-a, labels: {rack: r1, edge: \"\"}}
spec:
  bgp: {ipv4Address: 192.0.2.1/24, ipv6Address: '2001:db8:1::1/64', asNumber: 64512, routeReflectorClusterID: 244.0.0.1}
  orchRefs: [{nodeName: node-a, orchestrator: k8s}]
status:
  wireguardPublicKey: hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
  wireguardPublicKeyV6: 3p7bfXt9wbTTW2HC7OQ1cz+DQ8hbeGdNre+8QYb4gk8=
  podCIDRs: [10.244.0.0/24]
";
        for text in [kubernetes, calico] {
            assert_eq!(one(text).1, Object::Node(expected()));
        }
    }

    #[test]
    fn a_node_without_annotations_still_exists() {
        assert_eq!(one("apiVersion: v1\nkind: Node\nmetadata: {name: x}\n").1, Object::Node(Node::default()));
    }

    #[test]
    fn a_plain_address_is_a_subnet_of_its_own() {
        let v4 = NodeAddress::parse("192.0.2.9", true).unwrap();
        assert_eq!(v4.prefix_len, 32);
        assert_eq!(NodeAddress::parse("2001:db8::9", false).unwrap().prefix_len, 128);
        assert_eq!(NodeAddress::parse("192.0.2.9/33", true), None);
        assert_eq!(NodeAddress::parse("192.0.2.9/24", false), None);
    }

    #[test]
    fn bad_annotations_are_named() {
        let text = "\
apiVersion: v1
kind: Node
metadata:
  name: node-a
  annotations:
    projectcalico.org/IPv4Address: 192.0.2.1.7/24
    projectcalico.org/ASNumber: \"x\"
    projectcalico.org/WireguardPublicKey: abc
    projectcalico.org/WireguardPublicKeyV6: \"\"
";
        assert_eq!(
            problems(text),
            [
                "line 6: metadata.annotations.projectcalico.org/IPv4Address: must be an IPv4 address with its prefix \
                 length, such as 192.0.2.1/24, not \"192.0.2.1.7/24\"",
                "line 7: metadata.annotations.projectcalico.org/ASNumber: must be an AS number such as 64512 or 6.10, \
                 not \"x\"",
                "line 8: metadata.annotations.projectcalico.org/WireguardPublicKey: must be a WireGuard public key: 32 \
                 octets in base64, not \"abc\"",
            ]
        );
    }
}
