//! The whole road at speed: a table sent over BGP becomes routes in a simulated VPP.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::{Duration, Instant};

use test_support::lab::Lab;
use test_support::peregrine::{Node, manifest};
use vpp_sim::Sim;

use crate::ends::{End, Ends};
use crate::table::{self, Family};
use crate::wire;

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
    let end = End {
        local: IpAddr::V4(SENDER),
        remote: NODE.parse().expect("an address"),
        asn: 65_001,
        router_id: SENDER.to_bits(),
    };
    let mut ends = Ends::new(Family::V4, vec![end]);
    while !ends.all_up() {
        ends.connect();
        turn(&mut ends);
    }
    let idle_ticks = node.agent().cpu_ticks();
    let bytes = [
        wire::updates(&table::build(Family::V4, count, 65_001, 0), IpAddr::V4(SENDER), None),
        wire::end_of_rib(Family::V4),
    ];
    let routes_before = sim.stats().routes;
    let start = Instant::now();
    ends.send(0, bytes.concat().into());
    let wanted = routes_before + count as usize;
    while sim.stats().routes < wanted {
        turn(&mut ends);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{count} routes, from the first UPDATE to the last route in vpp-sim: {seconds:.2} s, {:.0} routes/s; \
         agent: {:.2} CPU s, peak {:.1} MiB",
        f64::from(count) / seconds,
        ticks_to_seconds(node.agent().cpu_ticks() - idle_ticks),
        node.agent().peak_kib() as f64 / 1024.0,
    );
}

fn turn(ends: &mut Ends) {
    ends.turn(Duration::from_millis(1), &mut |_, _| Ok(())).expect("the session stays up");
}

/// Clock ticks of 10 ms to seconds.
pub(crate) fn ticks_to_seconds(ticks: u64) -> f64 {
    ticks as f64 / 100.0
}
