//! Two nodes, each with a real VPP and an agent. The VPPs are joined by memif, a cable of shared memory; the agents' session
//! goes over a link of the kernel's, and what it tells is all that they know of one another's pods.
//!
//! A pod is a packet generator's interface, known to source NAT as a pod's, as who attaches pods makes it: what goes into it is
//! injected, what comes out of it is seen in VPP's trace.

use test_support::lab::{Host, Lab};
use test_support::peregrine::{Node, manifest};
use test_support::vpp::RealVpp;
use test_support::wait;
use vpp_client::wire::api::cnat::{CnatSnatPolicyAddDelIf, CnatSnatPolicyTable};
use vpp_client::wire::api::interface::SwInterfaces;
use vpp_client::{Client, ClientSettings};

use crate::row::Row;

/// The interface of each VPP that leads to the other.
const UPLINK: &str = "memif1/0";

/// One of the two.
pub(crate) struct Side {
    pub(crate) node: Node,
    pub(crate) vpp: RealVpp,
    number: u8,
}

/// The two nodes, `node-a` and `node-b`.
pub(crate) struct Pair {
    pub(crate) sides: [Side; 2],
}

impl Pair {
    /// Starts both with what the row asks for.
    pub(crate) fn new(lab: &Lab, row: &Row) -> Self {
        let sides = [1, 2].map(|number| {
            let host = lab.host(name(number), &addresses(number).each_ref().map(String::as_str));
            let mut vpp = RealVpp::new(&host, &commands(lab, number));
            vpp.start();
            let node = Node::new(&host, &row.settings(&socket(&host), UPLINK, number));
            apply_manifests(&node, number, row);
            Side { node, vpp, number }
        });
        let mut pair = Self { sides };
        for side in &mut pair.sides {
            side.node.start();
            side.attach_pods();
        }
        if row.keys {
            pair.exchange_keys();
        }
        pair
    }

    /// Gives each node what the other has published.
    fn exchange_keys(&self) {
        let nodes = self.sides.each_ref().map(|side| {
            let file = side.node.dir().join("state/node-status.yaml");
            let published = wait::until(&format!("{} publishes its keys", name(side.number)), || {
                std::fs::read_to_string(&file).map_err(|error| error.to_string())
            });
            let annotations = published.lines().filter(|line| line.contains("/WireguardPublicKey"));
            let [ipv4, ipv6] = addresses(side.number);
            annotations.fold(manifest::node(name(side.number), &ipv4, &ipv6), |text, line| text + line + "\n")
        });
        for side in &self.sides {
            side.node.apply("nodes.yaml", &nodes.join("---\n"));
        }
    }

    /// Sends packets from a pod of one node (0 or 1) to a pod of the other, until one has come out of the other VPP as it
    /// went into the first, having passed `through` on arrival: the node of VPP's graph that takes the tunnel off, if there
    /// is one.
    #[track_caller]
    pub(crate) fn cross(&self, from: usize, family: usize, through: &str) {
        let (sender, receiver) = (&self.sides[from], &self.sides[1 - from]);
        let [source, destination] = [sender, receiver].map(|side| pod(side.number, family));
        let packet = format!("UDP: {source} -> {destination}");
        receiver.vpp.cli("clear trace");
        receiver.vpp.cli("trace add memif-input 1000");
        sender.vpp.cli("clear trace");
        sender.vpp.cli("trace add pg-input 1");
        wait::until(&format!("a packet {source} -> {destination} leaves {}", name(receiver.number)), || {
            sender.vpp.try_cli(&format!("packet-generator enable to-pod-{family}"))?;
            let trace = receiver.vpp.try_cli("show trace max 1000")?;
            let mut packets = trace.split("\nPacket ");
            let arrived = packets.any(|text| {
                let out = text.rsplit_once(&format!("pg{family}-tx")).map_or("", |(_, out)| out);
                let passed = through.is_empty() || text.contains(&format!(": {through}\n"));
                passed && out.contains(&packet)
            });
            if arrived { Ok(()) } else { Err(format!("{trace}\nand the sender:\n{}", sender.told())) }
        });
    }

    /// Stops both; nobody may have died.
    pub(crate) fn end(mut self) {
        for side in &mut self.sides {
            assert!(side.node.agent().terminate().success(), "the agent ends well");
        }
        for side in &mut self.sides {
            side.vpp.stop();
        }
    }
}

impl Side {
    /// Tells source NAT which interfaces are pods', as who attaches pods does it, once the agent has set it up.
    fn attach_pods(&self) {
        wait::until("source NAT is set up", || {
            let said = self.vpp.try_cli("show cnat snat")?;
            if said.contains("10.244.0.0/16") && said.contains("fd00:10:244::/48") {
                Ok(())
            } else {
                Err(said)
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime for the client").block_on(async {
            let socket = self.node.dir().join("vpp.sock");
            let (client, _notices) = Client::connect(socket, ClientSettings::default());
            client.ready().await.expect("VPP is there");
            for interface in client.dump_all(&SwInterfaces::all()).await.expect("VPP is there") {
                if ["pg0", "pg1"].contains(&&*interface.interface_name.to_str()) {
                    let table = CnatSnatPolicyTable::POD;
                    let attach = CnatSnatPolicyAddDelIf::new(interface.sw_if_index, 1, table);
                    client.call(&attach).await.expect("VPP takes it");
                }
            }
            client.close().await;
        });
        let said = self.vpp.cli("show cnat snat");
        let (_, pods) = said.split_once("k8s pod interfaces:").expect("a list of pods' interfaces");
        assert!(["pg0", "pg1"].iter().all(|pod| pods.contains(pod)), "{said}");
    }

    /// What may explain that nothing arrives.
    fn told(&self) -> String {
        let said = |what| self.vpp.try_cli(what).unwrap_or_else(|error| error);
        let vpp = self.node.try_ask(&["vpp"]).map_or_else(|error| error, |vpp| vpp.to_string());
        let said = ["show trace", "show interface", "show errors"].map(said).join("\n");
        format!("{vpp}\n{said}")
    }
}

fn name(number: u8) -> &'static str {
    if number == 1 { "node-a" } else { "node-b" }
}

fn addresses(number: u8) -> [String; 2] {
    [format!("192.0.2.{number}/24"), format!("2001:db8:1::{number}/64")]
}

fn socket(host: &Host) -> String {
    host.dir().join("vpp.sock").display().to_string()
}

/// A pod of a node; family 0 is IPv4. IPv6 addresses must not end alike: a VPP whose source NAT follows Kubernetes' rules takes two
/// with the same last four octets for one, a pod that is talking to itself by way of a service, and translates the source.
fn pod(number: u8, family: usize) -> String {
    if family == 0 { format!("10.244.{number}.5") } else { format!("fd00:10:244:{number}::{number}5") }
}

fn commands(lab: &Lab, number: u8) -> String {
    let role = if number == 1 { "master" } else { "slave" };
    let mut commands = format!(
        "create memif socket id 1 filename {}/memif.sock\n\
         create interface memif id 0 socket-id 1 {role}\n\
         set interface state {UPLINK} up\n",
        lab.dir().display()
    );
    for address in addresses(number) {
        commands += &format!("set interface ip address {UPLINK} {address}\n");
    }
    for family in 0..2 {
        let (ip, length) = if family == 0 { ("ip4", 32) } else { ("ip6", 128) };
        let [source, destination] = [number, 3 - number].map(|number| pod(number, family));
        commands += &format!(
            "create packet-generator interface pg{family} mode {ip}\n\
             set interface state pg{family} up\n\
             set interface unnumbered pg{family} use {UPLINK}\n\
             ip route add {source}/{length} via pg{family}\n\
             packet-generator new {{ name to-pod-{family} limit 1 node {ip}-input size 64-64 interface pg{family} \
             data {{ UDP: {source} -> {destination} UDP: 1111 -> 2222 incrementing 16 }} }}\n"
        );
    }
    commands
}

fn apply_manifests(node: &Node, number: u8, row: &Row) {
    let nodes = [1, 2].map(|number| {
        let [ipv4, ipv6] = addresses(number);
        manifest::node(name(number), &ipv4, &ipv6)
    });
    node.apply("nodes.yaml", &nodes.join("---\n"));
    node.apply("bgp.yaml", &manifest::bgp_configuration(64_512));
    let other = 3 - number;
    let peers = [
        manifest::bgp_peer("other-v4", &format!("192.0.2.{other}"), 64_512),
        manifest::bgp_peer("other-v6", &format!("2001:db8:1::{other}"), 64_512),
    ];
    node.apply("peers.yaml", &peers.join("---\n"));
    let block = |number: u8, cidr: String| {
        let family = if cidr.contains(':') { "v6" } else { "v4" };
        manifest::block(&format!("{}-{family}", name(number)), name(number), &cidr)
    };
    let blocks: Vec<String> = [1, 2]
        .into_iter()
        .flat_map(|number| {
            [format!("10.244.{number}.0/26"), format!("fd00:10:244:{number}::/122")]
                .map(|cidr| block(number, cidr))
                .into_iter()
                .chain(row.block_manifests(name(number), number))
        })
        .collect();
    node.apply("blocks.yaml", &blocks.join("---\n"));
    node.apply("pools.yaml", &row.pools());
    for (file, text) in row.manifests {
        node.apply(file, text);
    }
}
