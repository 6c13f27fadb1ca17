//! VPP starts again and has forgotten everything: how long until it holds it again. The VPP is a simulated one in this
//! process, so what this process spends meanwhile is its share.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use test_support::lab::Lab;
use test_support::peregrine::manifest;
use vpp_sim::{Sim, SimHandle};

use super::road::{self, Road};
use crate::pipeline::ticks_to_seconds;
use crate::table::{Prefix, Route};
use crate::wire;

/// Within which everything must be back.
pub(crate) const MOST: Duration = Duration::from_secs(3);

/// The neighbour is an internal one, as it speaks for many next hops.
const ASN: u32 = 64_512;
/// Other nodes, each behind an IPIP tunnel.
const NODES: u32 = 1_000;
const FIRST_NODE: u32 = Ipv4Addr::new(10, 1, 0, 1).to_bits();
/// The pool of the routes, which are blocks of 64 addresses.
const POOL: &str = "10.128.0.0/9";
const FIRST_BLOCK: u32 = Ipv4Addr::new(10, 128, 0, 0).to_bits();
const BLOCK: u8 = 26;
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures the replay of `count` routes over a thousand tunnels, and prints the figures.
pub(crate) fn run(lab: &Lab, count: u32) -> Duration {
    let host = road::host(lab);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime for the simulated VPP");
    let inside = runtime.enter();
    let path = host.dir().join("vpp.sock");
    let sim = Sim::builder(path).interface("host-eth0", &["192.0.2.1/24"]).spawn();
    let sim = sim.expect("a socket in the host's folder");
    drop(inside);
    let (routes, interfaces) = (sim.stats().routes, sim.stats().interfaces);
    let mut nodes = String::new();
    for n in 0..NODES {
        let address = format!("{}/24", Ipv4Addr::from(FIRST_NODE + n * 256));
        write!(nodes, "---\n{}", manifest::node(&format!("node-{n}"), &address, "")).expect("a string");
    }
    let manifests = [("nodes.yaml", nodes), ("pool.yaml", manifest::ip_pool("pool", POOL, "Always"))];
    let mut road = Road::open(&host, ASN, &manifests);
    for n in 0..NODES {
        let prefixes = (n * count / NODES..(n + 1) * count / NODES).map(|block| Prefix {
            bits: u128::from(FIRST_BLOCK + (block << (32 - BLOCK))) << 96,
            length: BLOCK,
        });
        let route = Route { as_path: Vec::new(), communities: Vec::new(), prefixes: prefixes.collect() };
        let mut bytes = Vec::new();
        let next_hop = IpAddr::V4(Ipv4Addr::from(FIRST_NODE + n * 256));
        wire::announce(&mut bytes, &route, next_hop, Some(100));
        road.send(bytes);
    }
    road.send(wire::end_of_rib(crate::table::Family::V4));
    // With the way to each node.
    let wanted = (routes + (count + NODES) as usize, interfaces + NODES as usize);
    let filled = |sim: &SimHandle| sim.stats().routes >= wanted.0 && sim.stats().interfaces >= wanted.1;
    let begun = Instant::now();
    while !filled(&sim) {
        road.turn(Duration::from_millis(1));
        assert!(begun.elapsed() < PATIENCE, "{:?} of {wanted:?}", sim.stats());
    }
    runtime.block_on(sim.down());
    let (ticks, own) = (road.node.agent().cpu_ticks(), own_cpu());
    let start_at = Instant::now();
    runtime.block_on(sim.up());
    while !filled(&sim) {
        road.turn(Duration::from_millis(5));
        assert!(start_at.elapsed() < PATIENCE, "{:?} of {wanted:?}", sim.stats());
    }
    let took = start_at.elapsed();
    println!(
        "{count} routes and {NODES} tunnels, from the start of an empty VPP until it has them: {:.2} s; \
         agent: {:.2} CPU s, simulated VPP: {:.2} CPU s",
        took.as_secs_f64(),
        ticks_to_seconds(road.node.agent().cpu_ticks() - ticks),
        (own_cpu() - own).as_secs_f64(),
    );
    took
}

/// What this process has spent.
fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
