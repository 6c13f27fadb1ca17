//! Node objects → `Event::Node`.

use agent_core::event::{Change, Event};
use agent_core::model;
use bgp_core::Asn;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::crd::{Node, NodeAddress, ObjectName};

pub(super) fn key(name: &ObjectName) -> model::NodeName {
    name.as_str().into()
}

pub(super) fn value(node: &Node) -> model::Node {
    model::Node {
        ipv4: node.ipv4.and_then(ipv4),
        ipv6: node.ipv6.and_then(ipv6),
        asn: node.as_number.map(Asn),
        cluster_id: node.cluster_id,
        wireguard: model::PerFamily { v4: node.wireguard_key, v6: node.wireguard_key_v6 },
        labels: node.labels.clone(),
    }
}

pub(super) fn event(change: Change<model::NodeName, model::Node>) -> Event {
    Event::Node(change)
}

fn ipv4(address: NodeAddress) -> Option<Ipv4Net> {
    match IpNet::new(address.address, address.prefix_len) {
        Ok(IpNet::V4(net)) => Some(net),
        Ok(IpNet::V6(_)) | Err(_) => None,
    }
}

fn ipv6(address: NodeAddress) -> Option<Ipv6Net> {
    match IpNet::new(address.address, address.prefix_len) {
        Ok(IpNet::V6(net)) => Some(net),
        Ok(IpNet::V4(_)) | Err(_) => None,
    }
}
