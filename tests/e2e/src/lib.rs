//! The whole binary between real BGP neighbours and a simulated VPP: a route in, VPP's state out.
//!
//! [`World`] is one node with everything around it: a top-of-rack router (eBGP) and another node (iBGP), both
//! `peregrine speaker`, and a VPP that lives in the test's process, so that faults can be set to the request.

use std::fs;

use serde_json::Value;
use test_support::lab::{Host, Lab};
use test_support::peregrine::{Node, manifest};
use test_support::process::Process;
use test_support::{programs, wait};
use tokio::runtime::Runtime;
use vpp_sim::{Sim, SimHandle};

/// One node and its surroundings.
#[derive(Debug)]
pub struct World {
    /// The node under test; its agent is not running at first.
    pub node: Node,
    /// The simulated VPP.
    pub sim: SimHandle,
    host: Host,
    router: Host,
    neighbors: Vec<Process>,
    // Declared last: what runs on it goes first.
    runtime: Runtime,
}

/// What the neighbours announce and which objects of VPP have to come of it: prefix, kind of path, next hop or tunnel.
pub const EXPECTED: [(&str, &str, &str); 8] = [
    // In no pool: straight to the next hop.
    ("203.0.113.0/24", "recursive", "192.0.2.254"),
    ("198.51.100.0/24", "recursive", "192.0.2.254"),
    ("2001:db8:f000::/36", "recursive", "2001:db8:1::fe"),
    // A pool without encapsulation.
    ("10.244.2.0/26", "recursive", "192.0.2.2"),
    ("fd00:10:244:2::/122", "recursive", "2001:db8:1::2"),
    // A pool with IPIP always, and one across subnets: near and far.
    ("10.245.2.0/26", "attached", "ipip 192.0.2.1 -> 192.0.2.2 in table 0"),
    ("10.246.2.0/26", "recursive", "192.0.2.2"),
    ("10.246.9.0/26", "attached", "ipip 192.0.2.1 -> 198.18.0.9 in table 0"),
];

impl World {
    /// Builds the world in `lab`. The neighbours run; the agent does not.
    ///
    /// # Panics
    ///
    /// When a part does not come up.
    #[must_use]
    pub fn new(lab: &Lab) -> Self {
        let host = lab.host("node-a", &["192.0.2.1/24", "2001:db8:1::1/64"]);
        let node_b = lab.host("node-b", &["192.0.2.2/24", "2001:db8:1::2/64"]);
        let tor = lab.host("tor", &["192.0.2.254/24", "2001:db8:1::fe/64"]);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for the simulated VPP");
        let sim = {
            let _inside = runtime.enter();
            Sim::builder(host.dir().join("vpp.sock"))
                .interface("host-eth0", &["192.0.2.1/24", "2001:db8:1::1/64"])
                .spawn()
                .expect("a socket in the host's folder")
        };
        let node = Node::new(&host, &Node::vpp_settings(&host));
        apply_manifests(&node);
        let neighbors = vec![
            start_speaker(&tor, &tor_config(&["203.0.113.0/24", "198.51.100.0/24"])),
            start_speaker(&node_b, NODE_B),
        ];
        Self { node, sim, host, router: tor, neighbors, runtime }
    }

    /// The host of the node under test.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Has the top-of-rack router announce these IPv4 prefixes from now on (it is started anew).
    ///
    /// # Panics
    ///
    /// When it does not come up again.
    pub fn tor_announces(&mut self, prefixes: &[&str]) {
        self.neighbors[0].kill();
        self.neighbors[0] = start_speaker(&self.router, &tor_config(prefixes));
    }

    /// Waits until what VPP's state means is as wanted, and returns it.
    ///
    /// # Panics
    ///
    /// When that never happens.
    #[track_caller]
    pub fn await_meaning(&self, what: &str, mut wanted: impl FnMut(&Value) -> Result<(), String>) -> Value {
        wait::until(what, || {
            let meaning = self.sim.meaning();
            wanted(&meaning).map(|()| meaning)
        })
    }

    /// Waits until everything of [`EXPECTED`] is in VPP and the agent has nothing left to do.
    #[track_caller]
    pub fn await_everything(&self) -> Value {
        self.await_meaning("everything announced is in VPP", |meaning| {
            EXPECTED.iter().try_for_each(|(prefix, kind, target)| route_is(meaning, prefix, kind, target))
        });
        self.await_idle();
        self.sim.meaning()
    }

    /// Waits until the agent says that it wants nothing more of VPP.
    ///
    /// # Panics
    ///
    /// When it never does.
    #[track_caller]
    pub fn await_idle(&self) {
        wait::until("the agent has nothing pending", || {
            let vpp = self.node.try_ask(&["vpp"])?;
            if vpp["converged"] == true { Ok(()) } else { Err(vpp.to_string()) }
        });
    }

    /// Runs something on the simulated VPP's runtime.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

/// Whether table 0 routes `prefix` by one path of this kind, to this next hop or through this interface.
///
/// # Errors
///
/// What is there instead.
pub fn route_is(meaning: &Value, prefix: &str, kind: &str, target: &str) -> Result<(), String> {
    let tables = meaning["tables"].as_array().into_iter().flatten().filter(|table| table["table_id"] == 0);
    let mut routes = tables.flat_map(|table| table["routes"].as_array().into_iter().flatten());
    let Some(route) = routes.find(|route| route["prefix"] == prefix) else {
        return Err(format!("no route to {prefix}"));
    };
    let path = &route["paths"][0];
    let is = path["kind"] == kind && (path["next_hop"] == target || path["interface"] == target);
    if is && route["dead"].is_null() { Ok(()) } else { Err(route.to_string()) }
}

fn apply_manifests(node: &Node) {
    let nodes = [
        manifest::node("node-a", "192.0.2.1/24", "2001:db8:1::1/64"),
        manifest::node("node-b", "192.0.2.2/24", "2001:db8:1::2/64"),
    ];
    node.apply("nodes.yaml", &nodes.join("---\n"));
    node.apply("bgp.yaml", &manifest::bgp_configuration(64_512));
    let peers = [
        manifest::bgp_peer("tor-v4", "192.0.2.254", 65_000),
        manifest::bgp_peer("tor-v6", "2001:db8:1::fe", 65_000),
        manifest::bgp_peer("node-b-v4", "192.0.2.2", 64_512),
        manifest::bgp_peer("node-b-v6", "2001:db8:1::2", 64_512),
    ];
    node.apply("peers.yaml", &peers.join("---\n"));
    let pools = [
        manifest::ip_pool("plain-v4", "10.244.0.0/16", "Never"),
        manifest::ip_pool("tunnelled-v4", "10.245.0.0/16", "Always"),
        manifest::ip_pool("cross-subnet-v4", "10.246.0.0/16", "CrossSubnet"),
        manifest::ip_pool("plain-v6", "fd00:10:244::/48", "Never"),
    ];
    node.apply("pools.yaml", &pools.join("---\n"));
    let blocks = [
        manifest::block("node-a-10-244-1-0-26", "node-a", "10.244.1.0/26"),
        manifest::block("node-a-fd00-10-244-1---122", "node-a", "fd00:10:244:1::/122"),
        manifest::block("node-b-10-244-2-0-26", "node-b", "10.244.2.0/26"),
    ];
    node.apply("blocks.yaml", &blocks.join("---\n"));
}

fn tor_config(prefixes: &[&str]) -> String {
    let mut config = "asn: 65000
router-id: 192.0.2.254
listen: [\"192.0.2.254:179\", \"[2001:db8:1::fe]:179\"]
require-policy: false
neighbors:
  - { address: 192.0.2.1, asn: 64512, connect-retry: 1, families: [ipv4-unicast] }
  - { address: \"2001:db8:1::1\", asn: 64512, connect-retry: 1, families: [ipv6-unicast] }
originate:
  - { prefix: \"2001:db8:f000::/36\", next-hop: self }
"
    .to_owned();
    for prefix in prefixes {
        config += &format!("  - {{ prefix: {prefix}, next-hop: self }}\n");
    }
    config
}

const NODE_B: &str = "asn: 64512
router-id: 192.0.2.2
listen: [\"192.0.2.2:179\", \"[2001:db8:1::2]:179\"]
neighbors:
  - { address: 192.0.2.1, asn: 64512, connect-retry: 1, families: [ipv4-unicast] }
  - { address: \"2001:db8:1::1\", asn: 64512, connect-retry: 1, families: [ipv6-unicast] }
originate:
  - { prefix: 10.244.2.0/26, next-hop: self }
  - { prefix: 10.245.2.0/26, next-hop: self }
  - { prefix: 10.246.2.0/26, next-hop: self }
  - { prefix: 10.246.9.0/26, next-hop: 198.18.0.9 }
  - { prefix: \"fd00:10:244:2::/122\", next-hop: self }
";

fn start_speaker(host: &Host, config: &str) -> Process {
    let file = host.dir().join("speaker.yaml");
    let socket = host.dir().join("speaker.sock");
    fs::write(&file, format!("api: {}\n{config}", socket.display())).expect("the host's folder is ours");
    // It outlives a SIGKILL.
    let _ = fs::remove_file(&socket);
    let (binary, file) = (programs::peregrine(), file.to_string_lossy().into_owned());
    let process = host.spawn("speaker", &[&binary.to_string_lossy(), "speaker", "--config", &file]);
    wait::until_true("the neighbour has made its socket", || socket.exists());
    process
}
