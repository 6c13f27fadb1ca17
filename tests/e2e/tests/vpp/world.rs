//! One node with its agent, its VPP behind a relay, and a neighbour that announces what the test wants.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use test_support::lab::{Host, Lab};
use test_support::peregrine::{Node, manifest};
use test_support::speaker::Speaker;
use test_support::wait;
use tokio::runtime::Runtime;
use vpp_client::{Client, ClientSettings};

use crate::relay::Relay;
use crate::row::Row;
use crate::state::State;
use crate::target::{On, UPLINK, Vpp};

/// The node's addresses.
const ADDRESSES: [&str; 2] = ["192.0.2.1/24", "2001:db8:1::1/64"];

/// The node's own blocks: whatever comes for a pod that is not there ends here.
pub(crate) const OWN: [&str; 2] = ["10.244.1.0/26", "fd00:10:244:1::/122"];

/// What the neighbour may announce.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) prefix: &'static str,
    pub(crate) hop: &'static str,
}

/// Everything that it announces: of each family two blocks behind node-b and one behind node-c.
pub(crate) const DESTINATIONS: [Destination; 6] = [
    Destination { prefix: "10.244.2.0/26", hop: "192.0.2.2" },
    Destination { prefix: "fd00:10:244:2::/122", hop: "2001:db8:1::2" },
    Destination { prefix: "10.244.2.64/26", hop: "192.0.2.2" },
    Destination { prefix: "fd00:10:244:2::40/122", hop: "2001:db8:1::2" },
    Destination { prefix: "10.244.3.0/26", hop: "192.0.2.3" },
    Destination { prefix: "fd00:10:244:3::/122", hop: "2001:db8:1::3" },
];

/// One node and its surroundings. The neighbour and VPP run; the agent does not, at first.
pub(crate) struct World {
    pub(crate) node: Node,
    pub(crate) relay: Relay,
    vpp: Vpp,
    observer: Client,
    neighbor: Speaker,
    neighbor_host: Host,
    host: Host,
    row: Row,
    announced: Vec<Destination>,
    // Declared last: what runs on it goes first.
    runtime: Runtime,
}

impl World {
    pub(crate) fn new(lab: &Lab, on: On, row: &Row) -> Self {
        let host = lab.host("node-a", &ADDRESSES);
        let node_b = lab.host("node-b", &["192.0.2.2/24", "2001:db8:1::2/64"]);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for the relay and the client");
        let vpp = Vpp::start(on, &host, &ADDRESSES, &runtime);
        let (socket, behind) = (host.dir().join("relay.sock"), host.dir().join("vpp.sock"));
        let (relay, observer) = {
            let _inside = runtime.enter();
            let settings = ClientSettings {
                name: "observer".to_owned(),
                // VPP's restarts are the tests' own.
                last_retry: Duration::from_millis(100),
                ..ClientSettings::default()
            };
            // Nobody listens: notices go when they are too many.
            let (observer, _notices) = Client::connect(&behind, settings);
            (Relay::listen(&socket, behind), observer)
        };
        let node = Node::new(&host, &settings(&socket, row));
        let neighbor = Speaker::start(&node_b, &speaker_file(row, &[]));
        let world = Self {
            node,
            relay,
            vpp,
            observer,
            neighbor,
            neighbor_host: node_b,
            host,
            row: row.clone(),
            announced: Vec::new(),
            runtime,
        };
        world.apply_manifests();
        world
    }

    fn apply_manifests(&self) {
        let nodes = [
            manifest::node("node-a", ADDRESSES[0], ADDRESSES[1]),
            manifest::node("node-b", "192.0.2.2/24", "2001:db8:1::2/64") + &keys('b'),
            manifest::node("node-c", "192.0.2.3/24", "2001:db8:1::3/64") + &keys('c'),
        ];
        self.node.apply("nodes.yaml", &nodes.join("---\n"));
        self.node.apply("bgp.yaml", &manifest::bgp_configuration(64_512));
        let peers = [
            manifest::bgp_peer("node-b-v4", "192.0.2.2", 64_512),
            manifest::bgp_peer("node-b-v6", "2001:db8:1::2", 64_512),
        ];
        self.node.apply("peers.yaml", &peers.join("---\n"));
        let block = |number: usize, cidr: &&str| manifest::block(&format!("node-a-{number}"), "node-a", cidr);
        let blocks: Vec<String> = OWN.iter().enumerate().map(|(number, cidr)| block(number, cidr)).collect();
        self.node.apply("blocks.yaml", &blocks.join("---\n"));
        self.apply_row();
    }

    fn apply_row(&self) {
        for (file, text) in self.row.manifests {
            self.node.apply(file, text);
        }
        self.node.apply("pools.yaml", &self.row.pools());
        self.node.apply("more-blocks.yaml", &self.row.block_manifests("node-a", 1).join("---\n"));
    }

    /// Has the neighbour announce these, and nothing else, from now on.
    pub(crate) fn announce(&mut self, destinations: &[Destination]) {
        self.announced = destinations.to_vec();
        self.neighbor.reload(&speaker_file(&self.row, destinations));
    }

    /// What VPP must hold now.
    pub(crate) fn expected(&self) -> BTreeSet<String> {
        self.row.expected(&self.announced)
    }

    /// Another provider takes over, as far as the settings that the agent reads at its start allow: if those differ, the
    /// agent is started anew, and the neighbour with it, as in [`Self::restart_agent`].
    pub(crate) fn change_to(&mut self, row: &Row) {
        let before = std::mem::replace(&mut self.row, row.clone());
        if before.settings != row.settings {
            self.node.kill();
            self.node.settings(&settings(&self.host.dir().join("relay.sock"), row));
        }
        for (file, _) in before.manifests {
            if row.manifests.iter().all(|(next, _)| next != file) {
                self.node.remove(file);
            }
        }
        self.apply_row();
        if before.settings != row.settings {
            self.neighbor.kill();
            self.neighbor = Speaker::start(&self.neighbor_host, &speaker_file(row, &self.announced));
            self.node.start();
        } else if (before.originate, before.ipv6_hops) != (row.originate, row.ipv6_hops) {
            self.neighbor.reload(&speaker_file(row, &self.announced));
        }
    }

    /// What VPP holds now.
    pub(crate) fn state(&self) -> Result<State, String> {
        let read = self.runtime.block_on(State::read(&self.observer));
        read.map_err(|error| format!("VPP can't be read: {error}"))
    }

    /// Waits until VPP holds what it must, no more and no less, and the agent knows that it does.
    #[track_caller]
    pub(crate) fn await_expected(&self, when: &str) -> State {
        let expected = self.expected();
        wait::until(&format!("VPP holds what it must {when}"), || {
            let state = self.state()?;
            state.against(&expected)?;
            let vpp = self.node.try_ask(&["vpp"])?;
            if vpp["converged"] == true { Ok(state) } else { Err(vpp.to_string()) }
        })
    }

    /// Does something to VPP over a connection of the test's own.
    pub(crate) fn with_client<T>(&self, deed: impl AsyncFnOnce(&Client) -> T) -> T {
        self.runtime.block_on(deed(&self.observer))
    }

    /// Kills the agent and starts it again, with everything let through. The neighbour is started anew, too: it would keep away
    /// for a while from somebody who loses session after session.
    #[track_caller]
    pub(crate) fn restart_agent(&mut self) {
        self.node.kill();
        self.relay.free();
        self.neighbor.kill();
        self.neighbor = Speaker::start(&self.neighbor_host, &speaker_file(&self.row, &self.announced));
        self.node.start();
    }

    /// VPP ends without warning and starts again, empty.
    pub(crate) fn restart_vpp(&mut self) {
        self.vpp.restart(&self.runtime);
    }

    /// Takes leave of VPP, which must have lived till now, and ends everything.
    pub(crate) fn end(mut self) {
        assert!(self.node.agent().terminate().success(), "the agent ends well");
        self.runtime.block_on(self.observer.close());
        self.vpp.stop();
    }
}

/// Annotations with public keys, which are the same text over and over.
fn keys(letter: char) -> String {
    let key = |first: char| format!("{first}{}A=", letter.to_string().repeat(41));
    manifest::wireguard_keys(&key('4'), &key('6'))
}

fn settings(socket: &Path, row: &Row) -> String {
    row.settings(&socket.display().to_string(), UPLINK, 1)
}

fn speaker_file(row: &Row, destinations: &[Destination]) -> String {
    let vpn = |family: &str| if row.rd.is_empty() { String::new() } else { format!(", {family}-vpn") };
    let mut file = format!(
        "asn: 64512
router-id: 192.0.2.2
listen: [\"192.0.2.2:179\", \"[2001:db8:1::2]:179\"]
neighbors:
  - {{ address: 192.0.2.1, asn: 64512, connect-retry: 1, families: [ipv4-unicast, ipv6-srpolicy{}], extended-next-hop: true }}
  - {{ address: \"2001:db8:1::1\", asn: 64512, connect-retry: 1, families: [ipv6-unicast, ipv6-srpolicy{}] }}
",
        vpn("ipv4"),
        vpn("ipv6")
    );
    let network = if row.rd.is_empty() { String::new() } else { format!(", rd: \"{}\", label: 0", row.rd) };
    if !destinations.is_empty() {
        file += "originate:\n";
        file += row.originate;
    }
    for destination in destinations {
        let (prefix, hop) = (destination.prefix, row.hop(destination));
        file += &format!("  - {{ prefix: \"{prefix}\", next-hop: \"{hop}\"{network} }}\n");
    }
    file
}
