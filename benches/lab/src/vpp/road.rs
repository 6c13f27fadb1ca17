//! An agent with one neighbour, which is on this thread, and a VPP of whatever kind.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

use test_support::lab::{Host, Lab};
use test_support::peregrine::{Node, manifest};

use crate::ends::{End, Ends};
use crate::table::{Family, Prefix, Route};

/// The neighbour.
pub(crate) const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);
/// The node.
pub(crate) const NODE: &str = "192.0.2.1";
/// The node's AS.
const ASN: u32 = 64_512;

/// See the module's text.
pub(crate) struct Road {
    /// Where the agent runs.
    pub(crate) node: Node,
    ends: Ends,
}

/// The node's host, with an address for the neighbour beside it.
///
/// # Panics
///
/// Where the lab can't be changed.
#[must_use]
pub(crate) fn host(lab: &Lab) -> Host {
    let host = lab.host("node-a", &[&format!("{NODE}/24")]);
    let status = Command::new("ip").args(["addr", "add", &format!("{SENDER}/24"), "dev", "br0"]).status();
    assert!(status.is_ok_and(|status| status.success()), "an address on the lab's bridge");
    host
}

impl Road {
    /// Starts the agent, whose VPP listens already, with these manifests beside those of the node and its neighbour in
    /// AS `asn`, and opens the session.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    pub(crate) fn open(host: &Host, asn: u32, manifests: &[(&str, String)]) -> Self {
        let mut node = Node::new(host, &Node::vpp_settings(host));
        node.apply("node.yaml", &manifest::node("node-a", &format!("{NODE}/24"), ""));
        node.apply("bgp.yaml", &manifest::bgp_configuration(ASN));
        node.apply("peer.yaml", &manifest::bgp_peer("sender", &SENDER.to_string(), asn));
        for (file, manifest) in manifests {
            node.apply(file, manifest);
        }
        node.start();
        let end = End {
            local: IpAddr::V4(SENDER),
            remote: NODE.parse().expect("an address"),
            asn,
            router_id: SENDER.to_bits(),
        };
        let mut road = Self { node, ends: Ends::new(Family::V4, vec![end]) };
        while !road.ends.all_up() {
            road.ends.connect();
            road.turn(Duration::from_millis(1));
        }
        road
    }

    /// Sends whole messages, as fast as they are taken during [`Road::turn`].
    pub(crate) fn send(&mut self, messages: Vec<u8>) {
        self.ends.send(0, messages.into());
    }

    /// Writes, reads, and waits no longer than that.
    ///
    /// # Panics
    ///
    /// When the session ends.
    pub(crate) fn turn(&mut self, wait: Duration) {
        self.ends.turn(wait, &mut |_, _| Ok(())).expect("the session stays up");
    }
}

/// The prefixes of a table.
#[must_use]
pub(crate) fn prefixes(table: &[Route]) -> Vec<Prefix> {
    table.iter().flat_map(|route| &route.prefixes).copied().collect()
}
