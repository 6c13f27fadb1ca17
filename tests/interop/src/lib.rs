//! Interoperation with real BGP daemons.
//!
//! `tests/matrix` has the same cells for each of five ([`daemon`], [`samples`]); the other files have what only some can do,
//! or what the agent does with its routes.
//!
//! Each test of the agent runs in a network and a mount namespace of its own: `node-a` runs `peregrine agent` with a simulated
//! VPP, the other host runs the daemon. Both exchange IPv4 and IPv6 routes, over a session for each family.
//!
//! Some tests have no daemon: `field_faults.rs`, `adversary`, `recorded.rs` and `reasons.rs` play the neighbours of a `peregrine speaker` themselves,
//! octet by octet ([`raw`], [`speaker`]).

pub mod daemon;
pub mod gobgp_api;
pub mod raw;
pub mod samples;
pub mod speaker;

use test_support::lab::{Host, Lab};
use test_support::peregrine::{Node, manifest};
use test_support::wait;

/// AS number of node-a.
pub const OUR_ASN: u32 = 64512;
/// Address of node-a.
pub const OUR_IPV4: &str = "192.0.2.1";
/// Address of node-a.
pub const OUR_IPV6: &str = "2001:db8:1::1";
/// Address of the daemon.
pub const PEER_IPV4: &str = "192.0.2.254";
/// Address of the daemon.
pub const PEER_IPV6: &str = "2001:db8:1::fe";
/// IPv4 block of node-a.
pub const OUR_BLOCK4: &str = "10.244.1.0/26";
/// IPv6 block of node-a.
pub const OUR_BLOCK6: &str = "fd00:10:244:1::/122";
/// What the daemon announces.
pub const PEER_ROUTE4: &str = "203.0.113.0/24";
/// What the daemon announces.
pub const PEER_ROUTE6: &str = "2001:db8:f::/48";

/// Both hosts of a test: node-a, prepared but not started, and the daemon's host.
///
/// # Panics
///
/// When the lab cannot be made.
#[must_use]
pub fn hosts(lab: &Lab, peer_asn: u32) -> (Node, Host) {
    let ours = lab.host("node-a", &[&format!("{OUR_IPV4}/24"), &format!("{OUR_IPV6}/64")]);
    let theirs = lab.host("tor", &[&format!("{PEER_IPV4}/24"), &format!("{PEER_IPV6}/64")]);
    let node = Node::new(&ours, &Node::vpp_settings(&ours));
    node.apply("node.yaml", &manifest::node("node-a", &format!("{OUR_IPV4}/24"), &format!("{OUR_IPV6}/64")));
    node.apply("bgp.yaml", &manifest::bgp_configuration(OUR_ASN));
    node.apply("peer4.yaml", &manifest::bgp_peer("tor-v4", PEER_IPV4, peer_asn));
    node.apply("peer6.yaml", &manifest::bgp_peer("tor-v6", PEER_IPV6, peer_asn));
    node.apply("pool4.yaml", &manifest::ip_pool("pods-v4", "10.244.0.0/16", "Never"));
    node.apply("pool6.yaml", &manifest::ip_pool("pods-v6", "fd00:10:244::/48", "Never"));
    node.apply("block4.yaml", &manifest::block("node-a-10-244-1-0-26", "node-a", OUR_BLOCK4));
    node.apply("block6.yaml", &manifest::block("node-a-fd00-10-244-1---122", "node-a", OUR_BLOCK6));
    (node, theirs)
}

/// Waits until the node has said of both families that their initial convergence has ended.
///
/// # Panics
///
/// When one of them only ended at the deadline.
pub fn converged(node: &mut Node) {
    wait::until("both families have converged", || {
        let log = node.agent().log();
        let lines: Vec<_> =
            log.lines().filter(|line| line.contains("initial convergence has ended")).collect();
        assert!(!log.contains("overdue=true"), "only at the deadline: {log}");
        if lines.len() == 2 { Ok(()) } else { Err(log) }
    });
}

/// The uplink's addresses as `vpp-sim --interface` takes them.
#[must_use]
pub fn uplink() -> String {
    format!("{OUR_IPV4}/24,{OUR_IPV6}/64")
}
