//! The whole road at speed: a table sent over BGP becomes routes in a simulated VPP.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::thread;
use std::time::Instant;

use test_support::lab::Lab;
use test_support::peregrine::{Node, manifest};
use test_support::wait;
use vpp_sim::Sim;

use crate::scenario::ticks_to_seconds;
use crate::table;
use crate::wire::{self, Session};

const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);
const NODE: &str = "192.0.2.1";

/// Measures `count` routes and prints the figures.
pub(crate) fn run(lab: &Lab, count: u32) {
    let host = lab.host("node-a", &[&format!("{NODE}/24")]);
    let status = Command::new("ip").args(["addr", "add", &format!("{SENDER}/24"), "dev", "br0"]).status();
    assert!(status.is_ok_and(|status| status.success()), "an address on the lab's bridge");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime for the simulated VPP");
    let inside = runtime.enter();
    let sim = Sim::builder(host.dir().join("vpp.sock")).interface("host-eth0", &["192.0.2.1/24"]).spawn();
    let sim = sim.expect("a socket in the host's folder");
    drop(inside);
    let mut node = Node::new(&host, &Node::vpp_settings(&host));
    node.apply("node.yaml", &manifest::node("node-a", "192.0.2.1/24", ""));
    node.apply("bgp.yaml", &manifest::bgp_configuration(64_512));
    node.apply("peer.yaml", &manifest::bgp_peer("sender", &SENDER.to_string(), 65_001));
    node.start();
    let remote = SocketAddr::new(NODE.parse().expect("an address"), 179);
    let mut sender = wait::until("the agent accepts a session", || {
        Session::open(IpAddr::V4(SENDER), remote, 65_001, SENDER.to_bits()).map_err(|error| error.to_string())
    });
    let idle_ticks = node.agent().cpu_ticks();
    let bytes = [wire::updates(&table::build(count, 65_001), SENDER.to_bits()), wire::end_of_rib()].concat();
    let routes_before = sim.stats().routes;
    let start = Instant::now();
    thread::spawn(move || {
        // The session must stay up until the end; reading ends when the agent is gone.
        if sender.send(&bytes).is_ok() {
            while sender.update().is_ok() {}
        }
    });
    let wanted = routes_before + count as usize;
    runtime.block_on(sim.until(|stats| stats.routes >= wanted));
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{count} routes, from the first UPDATE to the last route in vpp-sim: {seconds:.2} s, {:.0} routes/s; \
         agent: {:.2} CPU s, peak {:.1} MiB",
        f64::from(count) / seconds,
        ticks_to_seconds(node.agent().cpu_ticks() - idle_ticks),
        node.agent().peak_kib() as f64 / 1024.0,
    );
}
