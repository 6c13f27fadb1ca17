//! Which sessions come of which objects.

#![allow(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;
use std::time::Duration;

use bgp_core::command::{Chain, LocalAsn, NextHopMode, PeerConfig};
use bgp_core::session::RemoteAsn;

use super::*;
use crate::model::{NextHopChoice, PeerEndpoint, SourceAddress};

/// A handler with what it has asked for.
struct Bench {
    handler: PeerHandler,
    sessions: BTreeMap<String, PeerConfig>,
    identity: Option<(Asn, RouterId)>,
    cluster_id: Option<RouterId>,
    conditions: BTreeMap<String, Vec<Condition>>,
    /// Sessions put or deleted by the last event.
    edits: usize,
    /// What the last event wanted of VPP.
    vpp: Vec<VppEdit>,
}

impl Bench {
    fn new() -> Self {
        Self::with(Config::new(NodeName::from("a")))
    }

    fn with(config: Config) -> Self {
        Self {
            handler: PeerHandler::new(&config),
            sessions: BTreeMap::new(),
            identity: None,
            cluster_id: None,
            conditions: BTreeMap::new(),
            edits: 0,
            vpp: Vec::new(),
        }
    }

    /// The lists are in: these nodes, no objects.
    fn started(nodes: &[(&str, Node)]) -> Self {
        let mut bench = Self::new();
        bench.start(nodes);
        bench
    }

    fn start(&mut self, nodes: &[(&str, Node)]) {
        let nodes = nodes.iter().map(|(name, node)| (NodeName::from(*name), node.clone())).collect();
        self.hear(&Change::<BgpConfigName, BgpConfig>::Resync(Vec::new()));
        self.hear(&Change::<PeerName, PeerSpec>::Resync(Vec::new()));
        self.hear(&Change::<FilterName, Filter>::Resync(Vec::new()));
        self.hear(&Change::Resync(nodes));
    }

    fn hear<E>(&mut self, event: &E)
    where
        PeerHandler: Handler<E>,
    {
        let mut fx = Effects::default();
        self.handler.on(Instant::ZERO, event, &mut fx);
        self.edits = 0;
        for edit in fx.bgp {
            match edit {
                BgpEdit::Put(BgpObject::Peer(key, config, _)) => {
                    self.edits += 1;
                    self.sessions.insert(key.to_string(), *config);
                }
                BgpEdit::Put(BgpObject::Identity { asn, router_id }) => {
                    self.identity = Some((asn, router_id));
                }
                BgpEdit::Put(BgpObject::Cluster(id)) => self.cluster_id = id,
                BgpEdit::Delete(BgpKey::Peer(key)) => {
                    self.edits += 1;
                    self.sessions.remove(&key.to_string()).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        self.vpp = fx.vpp;
        for patch in fx.status {
            self.conditions.insert(patch.subject.to_string(), patch.conditions);
        }
    }

    fn node(&mut self, name: &str, node: Node) {
        self.hear(&Change::Upsert(NodeName::from(name), node));
    }

    fn peer(&mut self, name: &str, spec: PeerSpec) {
        self.hear(&Change::Upsert(PeerName::from(name), spec));
    }

    fn config(&mut self, name: BgpConfigName, config: BgpConfig) {
        self.hear(&Change::Upsert(name, config));
    }

    fn no_mesh(&mut self) {
        self.config(BgpConfigName::Default, BgpConfig { mesh: Some(false), ..BgpConfig::default() });
    }

    fn keys(&self) -> Vec<&str> {
        self.sessions.keys().map(String::as_str).collect()
    }

    fn reasons(&self) -> Vec<String> {
        self.conditions.values().flatten().map(ToString::to_string).collect()
    }
}

fn v4(text: &str) -> Node {
    Node { ipv4: Some(text.parse().unwrap()), ..Node::default() }
}

fn dual(v4: &str, v6: &str) -> Node {
    Node { ipv4: Some(v4.parse().unwrap()), ipv6: Some(v6.parse().unwrap()), ..Node::default() }
}

fn labelled(node: Node, label: &str) -> Node {
    Node { labels: BTreeMap::from([(label.to_owned(), String::new())]), ..node }
}

fn peer_ip(address: &str, asn: u32) -> PeerSpec {
    PeerSpec {
        peer_ip: Some(PeerEndpoint { address: address.parse().unwrap(), port: None }),
        asn: Some(Asn(asn)),
        ..PeerSpec::default()
    }
}

#[test]
fn the_mesh_joins_nodes_by_family() {
    let mut bench =
        Bench::started(&[("a", dual("192.0.2.1/24", "2001:db8::1/64")), ("b", v4("192.0.2.2/24"))]);
    assert_eq!(bench.keys(), ["192.0.2.2"]);
    bench.node("b", dual("192.0.2.2/24", "2001:db8::2/64"));
    assert_eq!(bench.keys(), ["192.0.2.2", "2001:db8::2"]);
    assert_eq!(bench.edits, 1, "the session that was there is left alone");
    bench.node("c", Node::default());
    assert_eq!(bench.edits, 0, "a node without addresses yields none");
    let v4_session = &bench.sessions["192.0.2.2"];
    assert_eq!(v4_session.families, bgp_core::FamilySet::only(Family::Ipv4Unicast));
    assert_eq!(v4_session.local_address, Some("192.0.2.1".parse().unwrap()));
    assert_eq!(v4_session.remote_asn, RemoteAsn::Is(DEFAULT_ASN));
    assert_eq!(v4_session.export, Chain::named("calico-export"));
    assert_eq!(v4_session.multihop_ttl, None);
    bench.node("a", v4("192.0.2.1/24"));
    assert_eq!(bench.keys(), ["192.0.2.2"], "we have no IPv6 address any more");
    bench.hear(&Change::<NodeName, Node>::Delete(NodeName::from("b")));
    assert_eq!(bench.keys(), Vec::<&str>::new());
}

#[test]
fn the_smaller_address_as_text_connects() {
    let bench =
        Bench::started(&[("a", v4("10.0.0.9/24")), ("b", v4("10.0.0.10/24")), ("c", v4("10.0.0.91/24"))]);
    assert!(!bench.sessions["10.0.0.10"].passive, "\"10.0.0.10\" < \"10.0.0.9\": we connect");
    assert!(bench.sessions["10.0.0.91"].passive, "\"10.0.0.91\" > \"10.0.0.9\": we wait");
}

#[test]
fn reflectors_take_no_part_in_the_mesh() {
    let reflector = Node { cluster_id: Some("1.0.0.1".parse().unwrap()), ..v4("192.0.2.2/24") };
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24")), ("b", reflector), ("c", v4("192.0.2.3/24"))]);
    assert_eq!((bench.keys(), bench.cluster_id), (vec!["192.0.2.3"], None));
    bench.node("a", Node { cluster_id: Some("1.0.0.1".parse().unwrap()), ..v4("192.0.2.1/24") });
    assert_eq!((bench.keys(), bench.cluster_id), (Vec::new(), Some(RouterId(0x0100_0001))));
    bench.node("a", v4("192.0.2.1/24"));
    assert_eq!((bench.keys(), bench.cluster_id), (vec!["192.0.2.3"], None));
}

#[test]
fn as_numbers_and_ports_come_from_node_then_cluster_then_default() {
    let mut bench = Bench::started(&[
        ("a", v4("192.0.2.1/24")),
        ("b", Node { asn: Some(Asn(65001)), ..v4("192.0.2.2/24") }),
        ("c", v4("192.0.2.3/24")),
    ]);
    assert_eq!(bench.identity, Some((DEFAULT_ASN, RouterId::from(std::net::Ipv4Addr::new(192, 0, 2, 1)))));
    bench.config(
        BgpConfigName::Default,
        BgpConfig { asn: Some(Asn(64999)), listen_port: Some(PeerPort(1790)), ..BgpConfig::default() },
    );
    bench.config(
        BgpConfigName::Node(NodeName::from("c")),
        BgpConfig { listen_port: Some(PeerPort(1791)), ..BgpConfig::default() },
    );
    assert_eq!(bench.keys(), ["192.0.2.2:1790", "192.0.2.3:1791"]);
    assert_eq!(bench.sessions["192.0.2.2:1790"].remote_asn, RemoteAsn::Is(Asn(65001)));
    assert_eq!(bench.sessions["192.0.2.2:1790"].multihop_ttl, Some(64), "an external session crosses VPP");
    assert_eq!(bench.sessions["192.0.2.3:1791"].remote_asn, RemoteAsn::Is(Asn(64999)));
    assert_eq!(bench.identity.map(|(asn, _)| asn), Some(Asn(64999)));
}

#[test]
fn nothing_is_wanted_before_all_lists_are_in() {
    let mut bench = Bench::new();
    bench.node("a", v4("192.0.2.1/24"));
    bench.node("b", v4("192.0.2.2/24"));
    bench.hear(&Change::<BgpConfigName, BgpConfig>::Resync(Vec::new()));
    bench.hear(&Change::<PeerName, PeerSpec>::Resync(Vec::new()));
    bench.hear(&Change::<FilterName, Filter>::Resync(Vec::new()));
    assert_eq!(bench.keys(), Vec::<&str>::new());
    let all = [("a", "192.0.2.1/24"), ("b", "192.0.2.2/24")];
    bench.hear(&Change::Resync(all.iter().map(|(name, net)| (NodeName::from(*name), v4(net))).collect()));
    assert_eq!(bench.keys(), ["192.0.2.2"]);
}

#[test]
fn a_peer_ip_becomes_a_session() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24"))]);
    let spec = PeerSpec {
        peer_ip: Some(PeerEndpoint { address: "198.51.100.9".parse().unwrap(), port: Some(PeerPort(1179)) }),
        local_asn: Some(Asn(65100)),
        keepalive_time: Some(Duration::from_millis(9_600)),
        next_hop: NextHopChoice::KeepExternal,
        ttl_security: 2,
        ..peer_ip("198.51.100.9", 65010)
    };
    bench.peer("tor", spec.clone());
    let session = &bench.sessions["198.51.100.9:1179"];
    assert_eq!(session.remote_asn, RemoteAsn::Is(Asn(65010)));
    assert_eq!(session.local_asn, Some(LocalAsn::new(Asn(65100))));
    assert_eq!(session.keepalive.map(std::num::NonZeroU16::get), Some(10));
    assert_eq!(session.next_hop, NextHopMode::Keep);
    assert_eq!((session.passive, session.multihop_ttl), (false, Some(64)));
    assert_eq!(session.ttl_security.map(std::num::NonZeroU8::get), Some(2));
    assert_eq!(session.local_address, Some("192.0.2.1".parse().unwrap()));
    assert_eq!(session.description, "BGPPeer tor");
    assert_eq!(bench.reasons(), Vec::<String>::new());
    bench.peer("tor", PeerSpec { source_address: SourceAddress::Any, ..spec });
    assert_eq!(bench.sessions["198.51.100.9:1179"].local_address, None);
    bench.hear(&Change::<PeerName, PeerSpec>::Delete(PeerName::from("tor")));
    assert_eq!(bench.keys(), Vec::<&str>::new());
}

#[test]
fn node_and_selector_say_whose_peer_it_is() {
    let mut bench = Bench::started(&[("a", labelled(v4("192.0.2.1/24"), "rack"))]);
    for (spec, expected) in [
        (PeerSpec { node: Some(NodeName::from("a")), ..peer_ip("198.51.100.1", 1) }, true),
        (PeerSpec { node: Some(NodeName::from("b")), ..peer_ip("198.51.100.1", 1) }, false),
        (PeerSpec { node_selector: Some("has(rack)".into()), ..peer_ip("198.51.100.1", 1) }, true),
        (PeerSpec { node_selector: Some("!has(rack)".into()), ..peer_ip("198.51.100.1", 1) }, false),
        (PeerSpec { node_selector: Some("has(".into()), ..peer_ip("198.51.100.1", 1) }, false),
    ] {
        bench.peer("p", spec.clone());
        assert_eq!(!bench.sessions.is_empty(), expected, "{spec:?}");
    }
    assert_eq!(
        bench.reasons(),
        [
            "BGPPeer p spec.nodeSelector: a label, has(), all() or ( is missing at byte 4, so it selects no node \
             (correct the selector)"
        ]
    );
    bench.peer("p", PeerSpec { node_selector: Some("has(spine)".into()), ..peer_ip("198.51.100.1", 1) });
    bench.node("a", labelled(v4("192.0.2.1/24"), "spine"));
    assert_eq!(bench.keys(), ["198.51.100.1"], "labels are looked at again");
}

#[test]
fn a_peer_selector_peers_with_the_nodes_it_picks() {
    let reflector = labelled(Node { asn: Some(Asn(65009)), ..dual("192.0.2.9/24", "2001:db8::9/64") }, "rr");
    let mut bench = Bench::started(&[("a", dual("192.0.2.1/24", "2001:db8::1/64")), ("r", reflector)]);
    bench.no_mesh();
    bench.peer("rr", PeerSpec { peer_selector: Some("has(rr)".into()), ..PeerSpec::default() });
    assert_eq!(bench.keys(), ["192.0.2.9", "2001:db8::9"]);
    assert_eq!(bench.sessions["192.0.2.9"].remote_asn, RemoteAsn::Is(Asn(65009)));
    assert!(!bench.sessions["192.0.2.9"].passive);
    bench.node("r", dual("192.0.2.9/24", "2001:db8::9/64"));
    assert_eq!(bench.keys(), Vec::<&str>::new(), "the label is gone");
}

#[test]
fn the_remote_end_gets_its_half_by_itself() {
    let us = labelled(v4("192.0.2.1/24"), "rr");
    let mut bench = Bench::started(&[("a", us), ("b", v4("192.0.2.2/24")), ("c", v4("192.0.2.3/24"))]);
    bench.no_mesh();
    let spec = PeerSpec {
        node: Some(NodeName::from("b")),
        peer_selector: Some("has(rr)".into()),
        ..PeerSpec::default()
    };
    bench.peer("b-to-rr", spec.clone());
    assert_eq!(bench.keys(), ["192.0.2.2"]);
    bench.peer("b-to-rr", PeerSpec { manual_reverse: true, ..spec });
    assert_eq!(bench.keys(), Vec::<&str>::new());
    // By address, where AS and port agree.
    let by_address = PeerSpec { node: Some(NodeName::from("c")), ..peer_ip("192.0.2.1", DEFAULT_ASN.0) };
    bench.peer("c-to-a", by_address.clone());
    assert_eq!(bench.keys(), ["192.0.2.3"]);
    bench.peer("c-to-a", PeerSpec { asn: Some(Asn(65000)), ..by_address });
    assert_eq!(bench.keys(), Vec::<&str>::new());
}

#[test]
fn global_beats_node_beats_reverse_beats_mesh() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24")), ("b", v4("192.0.2.2/24"))]);
    let by_node = |asn| PeerSpec { node: Some(NodeName::from("a")), ..peer_ip("192.0.2.2", asn) };
    assert_eq!(bench.sessions["192.0.2.2"].description, "mesh with node b");
    bench.peer("z-node", by_node(65001));
    assert_eq!(bench.sessions["192.0.2.2"].description, "BGPPeer z-node");
    bench.peer("y-global", peer_ip("192.0.2.2", 65002));
    assert_eq!(bench.sessions["192.0.2.2"].description, "BGPPeer y-global");
    bench.peer("x-global", peer_ip("192.0.2.2", 65003));
    assert_eq!(bench.sessions["192.0.2.2"].description, "BGPPeer x-global", "by name within a kind");
    assert_eq!(bench.sessions.len(), 1);
    let losers: Vec<String> =
        bench.conditions["session 192.0.2.2"].iter().map(|c| c.object.to_string()).collect();
    assert_eq!(losers, ["BGPPeer y-global", "BGPPeer z-node"]);
    for name in ["x-global", "y-global", "z-node"] {
        bench.hear(&Change::<PeerName, PeerSpec>::Delete(PeerName::from(name)));
    }
    assert_eq!(bench.sessions["192.0.2.2"].description, "mesh with node b");
    assert_eq!(bench.reasons(), Vec::<String>::new());
}

#[test]
fn one_address_may_have_sessions_on_several_ports() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24"))]);
    let on = |port| PeerSpec {
        peer_ip: Some(PeerEndpoint { address: "198.51.100.1".parse().unwrap(), port: Some(PeerPort(port)) }),
        ..peer_ip("198.51.100.1", 65001)
    };
    bench.peer("one", on(1790));
    bench.peer("two", on(1791));
    assert_eq!(bench.keys(), ["198.51.100.1:1790", "198.51.100.1:1791"]);
}

#[test]
fn a_peer_ip_of_a_node_takes_its_port_and_the_passive_rule() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24")), ("b", v4("192.0.2.2/24"))]);
    bench.config(
        BgpConfigName::Node(NodeName::from("b")),
        BgpConfig { listen_port: Some(PeerPort(1790)), ..BgpConfig::default() },
    );
    bench.peer("global", peer_ip("192.0.2.2", DEFAULT_ASN.0));
    assert!(
        bench.sessions["192.0.2.2:1790"].passive,
        "a global object towards a node follows the mesh's rule"
    );
    bench.peer("global", PeerSpec { node: Some(NodeName::from("a")), ..peer_ip("192.0.2.2", DEFAULT_ASN.0) });
    assert!(!bench.sessions["192.0.2.2:1790"].passive);
    bench.peer("global", peer_ip("192.0.2.2", 65001));
    assert_eq!(bench.keys(), ["192.0.2.2"], "not the AS of that node: the usual port");
}

#[test]
fn no_session_with_ourselves_or_without_an_address_of_the_family() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24"))]);
    bench.peer("me", peer_ip("192.0.2.1", DEFAULT_ASN.0));
    bench.peer("six", peer_ip("2001:db8::9", 65001));
    assert_eq!(bench.keys(), Vec::<&str>::new());
    assert_eq!(bench.reasons().len(), 1, "{:?}", bench.reasons());
    bench.node("a", dual("192.0.2.1/24", "2001:db8::1/64"));
    assert_eq!(bench.keys(), ["2001:db8::9"]);
}

#[test]
fn the_mode_limits_families() {
    let mut bench = Bench::with(Config { mode: BgpMode::V6Only, ..Config::new(NodeName::from("a")) });
    bench.start(&[
        ("a", dual("192.0.2.1/24", "2001:db8::1/64")),
        ("b", dual("192.0.2.2/24", "2001:db8::2/64")),
    ]);
    assert_eq!(bench.keys(), ["2001:db8::2"]);
}

#[test]
fn an_ipv6_node_has_the_identifier_of_the_settings() {
    let config = Config {
        fallback_router_id: std::net::Ipv4Addr::new(25, 79, 212, 8),
        ..Config::new(NodeName::from("a"))
    };
    let mut bench = Bench::with(config);
    bench.start(&[("a", Node { ipv6: Some("2001:db8::1/64".parse().unwrap()), ..Node::default() })]);
    assert_eq!(
        bench.identity.map(|(_, id)| id),
        Some(RouterId::from(std::net::Ipv4Addr::new(25, 79, 212, 8)))
    );
}

#[test]
fn values_that_make_no_sense_are_named_with_a_remedy() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24"))]);
    let cases: [(PeerSpec, &str, bool); 8] = [
        (PeerSpec::default(), "BGPPeer p spec: it names no remote end (set peerIP or peerSelector)", false),
        (
            PeerSpec {
                node: Some(NodeName::from("a")),
                node_selector: Some("all()".into()),
                ..peer_ip("198.51.100.1", 1)
            },
            "BGPPeer p spec.nodeSelector: node and nodeSelector exclude each other (remove one of them)",
            false,
        ),
        (
            peer_ip("224.0.0.5", 1),
            "BGPPeer p spec.peerIP: 224.0.0.5 cannot be a neighbor (set a unicast address)",
            false,
        ),
        (
            PeerSpec { asn: None, ..peer_ip("198.51.100.1", 1) },
            "BGPPeer p spec.asNumber: no AS number for 198.51.100.1; the cluster's default 64512 is used (set asNumber)",
            true,
        ),
        (
            PeerSpec { keepalive_time: Some(Duration::from_secs(100)), ..peer_ip("198.51.100.1", 1) },
            "BGPPeer p spec.keepaliveTime: 100s is not between 1 s and the hold time of 90 s; a third of the hold time \
             is used (set a time from 1s to 90s)",
            true,
        ),
        (
            PeerSpec { password: true, ..peer_ip("198.51.100.1", 1) },
            "BGPPeer p spec.password: passwords are not supported yet, so there is no session (remove password)",
            false,
        ),
        (
            PeerSpec { filters: vec!["f".into()], ..peer_ip("198.51.100.1", 1) },
            "BGPPeer p spec.filters: there is no BGPFilter f; until there is one, the session goes without it (create the \
             BGPFilter, or take its name out)",
            true,
        ),
        (
            PeerSpec { peer_selector: Some("all()".into()), ..peer_ip("198.51.100.1", 0) },
            "BGPPeer p spec.peerSelector: peerIP and peerSelector exclude each other (remove one of them)",
            false,
        ),
    ];
    for (spec, reason, session) in cases {
        bench.peer("p", spec.clone());
        assert_eq!(bench.reasons(), [reason], "{spec:?}");
        assert_eq!(!bench.sessions.is_empty(), session, "{spec:?}");
    }
    bench.hear(&Change::<PeerName, PeerSpec>::Delete(PeerName::from("p")));
    assert_eq!(bench.reasons(), Vec::<String>::new(), "conditions go with their object");
}

#[test]
fn a_mesh_that_asks_for_a_password_waits() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24")), ("b", v4("192.0.2.2/24"))]);
    bench.config(BgpConfigName::Default, BgpConfig { mesh_password: true, ..BgpConfig::default() });
    assert_eq!(bench.keys(), Vec::<&str>::new());
    assert_eq!(bench.reasons().len(), 1);
    bench.hear(&Change::<BgpConfigName, BgpConfig>::Delete(BgpConfigName::Default));
    assert_eq!(bench.keys(), ["192.0.2.2"]);
    assert_eq!(bench.reasons(), Vec::<String>::new());
}

/// Vector S3: the mesh, from the default object only, and from one moment to the next.
#[test]
fn the_mesh_has_the_restart_time_of_its_configuration() {
    let secs = |bench: &Bench, key: &str| bench.sessions[key].graceful_restart.unwrap().restart_time.secs();
    let config =
        |secs| BgpConfig { mesh_max_restart_time: Some(Duration::from_secs(secs)), ..BgpConfig::default() };
    let mut bench = Bench::started(&[
        ("a", dual("192.0.2.1/24", "2001:db8::1/64")),
        ("b", dual("192.0.2.2/24", "2001:db8::2/64")),
    ]);
    assert_eq!((secs(&bench, "192.0.2.2"), secs(&bench, "2001:db8::2")), (120, 120));
    bench.config(BgpConfigName::Node(NodeName::from("a")), config(30));
    assert_eq!(secs(&bench, "192.0.2.2"), 120, "one node's object has no say");
    bench.config(BgpConfigName::Default, config(10));
    assert_eq!((secs(&bench, "192.0.2.2"), secs(&bench, "2001:db8::2")), (10, 10));
    // A BGPPeer has its own.
    bench.peer("b", peer_ip("192.0.2.2", 64512));
    assert_eq!((secs(&bench, "192.0.2.2"), secs(&bench, "2001:db8::2")), (120, 10));
    bench.config(BgpConfigName::Default, config(4096));
    assert_eq!(secs(&bench, "2001:db8::2"), 120);
    let reasons = bench.conditions["BGPConfiguration"].iter().map(ToString::to_string).collect::<String>();
    assert!(reasons.contains("spec.nodeMeshMaxRestartTime"), "{reasons}");
}

/// Vector S11, and sections 2.4 and 2.5 for who else gets it.
#[test]
fn a_peer_has_the_restart_time_of_its_object() {
    let secs = |bench: &Bench, key: &str| bench.sessions[key].graceful_restart.unwrap().restart_time.secs();
    let mut bench = Bench::started(&[
        ("a", labelled(v4("192.0.2.1/24"), "here")),
        ("b", labelled(v4("192.0.2.2/24"), "there")),
    ]);
    bench.no_mesh();
    let by_ip = |millis| PeerSpec {
        node: Some(NodeName::from("a")),
        max_restart_time: Some(Duration::from_millis(millis)),
        ..peer_ip("192.0.2.9", 64512)
    };
    bench.peer("tor", by_ip(10_000));
    assert_eq!(secs(&bench, "192.0.2.9"), 10);
    bench.peer("tor", by_ip(10_001));
    assert_eq!(secs(&bench, "192.0.2.9"), 11, "whole seconds, rounded up");
    bench.peer("tor", by_ip(0));
    assert_eq!(secs(&bench, "192.0.2.9"), 0, "nothing is kept");
    bench.peer("tor", PeerSpec { max_restart_time: None, ..by_ip(0) });
    assert_eq!(secs(&bench, "192.0.2.9"), 120);
    // By selector, and the other half of an object that has our node as its remote end.
    for (selector, peers) in [("has(here)", "has(there)"), ("has(there)", "has(here)")] {
        bench.peer(
            "nodes",
            PeerSpec {
                node_selector: Some(selector.into()),
                peer_selector: Some(peers.into()),
                max_restart_time: Some(Duration::from_secs(7)),
                ..PeerSpec::default()
            },
        );
        assert_eq!(secs(&bench, "192.0.2.2"), 7, "{selector}");
    }
}

#[test]
fn port_zero_of_a_configuration_is_named_and_ignored() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24")), ("b", v4("192.0.2.2/24"))]);
    let name = BgpConfigName::Node(NodeName::from("b"));
    bench.config(name, BgpConfig { listen_port: Some(PeerPort(0)), ..BgpConfig::default() });
    assert_eq!(bench.keys(), ["192.0.2.2"]);
    assert_eq!(
        bench.reasons(),
        [
            "BGPConfiguration node.b spec.listenPort: nobody can listen on port 0; the field is taken as absent (set a \
             port from 1 to 65535)"
        ]
    );
}

#[test]
fn a_neighbour_behind_a_gateway_has_a_route_while_it_is_one() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24")), ("b", v4("192.0.2.2/24"))]);
    let spec = |gateway: &str| PeerSpec {
        reachable_by: Some(gateway.parse().unwrap()),
        ..peer_ip("198.51.100.9", 65010)
    };
    let key = RouteKey { table: TableId::MAIN, prefix: "198.51.100.9/32".parse().unwrap() };
    let wanted = |gateway: &str| {
        let path = Path { to: Target::Gateway(gateway.parse().unwrap()), weight: 1 };
        let source = VppEdit::Want(Owner::Session, ObjectKey::FibSource);
        vec![source, VppEdit::WantRoute(Owner::Session, key, Arc::from([path]))]
    };
    let released = vec![
        VppEdit::ReleaseRoute(Owner::Session, key),
        VppEdit::Release(Owner::Session, ObjectKey::FibSource),
    ];
    bench.peer("p", spec("192.0.2.254"));
    assert_eq!(bench.vpp, wanted("192.0.2.254"));
    bench.peer("p", spec("192.0.2.253"));
    assert_eq!(bench.vpp, wanted("192.0.2.253"));
    bench.peer("p", PeerSpec { keepalive_time: Some(Duration::from_secs(10)), ..spec("192.0.2.253") });
    assert_eq!(bench.vpp, []);
    bench.peer("p", peer_ip("198.51.100.9", 65010));
    assert_eq!(bench.vpp, released);
    bench.peer("p", spec("192.0.2.254"));
    bench.hear(&Change::<PeerName, PeerSpec>::Delete(PeerName::from("p")));
    assert_eq!(bench.vpp, released);
    bench.peer("p", spec("2001:db8::1"));
    assert_eq!((bench.vpp.len(), bench.keys()), (0, vec!["192.0.2.2"]), "{:?}", bench.reasons());
    // The object's other half is on the far side of the gateway.
    bench.peer(
        "p",
        PeerSpec { reachable_by: Some("192.0.2.254".parse().unwrap()), ..peer_ip("192.0.2.1", 64512) },
    );
    assert_eq!(bench.vpp, []);
}

#[test]
fn the_other_half_of_an_object_presents_the_nodes_own_as() {
    let mut bench = Bench::started(&[("a", v4("192.0.2.1/24")), ("b", labelled(v4("192.0.2.2/24"), "rr"))]);
    bench.no_mesh();
    let spec = PeerSpec {
        node: Some(NodeName::from("b")),
        local_asn: Some(Asn(65001)),
        allowed_local_asns: 3,
        ..peer_ip("192.0.2.1", 64512)
    };
    bench.peer("p", spec.clone());
    let reverse = &bench.sessions["192.0.2.2"];
    assert_eq!((reverse.local_asn, reverse.allow_own_as), (None, 0));
    bench.peer(
        "p",
        PeerSpec {
            node: Some(NodeName::from("a")),
            peer_ip: None,
            asn: None,
            peer_selector: Some("has(rr)".into()),
            ..spec
        },
    );
    let explicit = &bench.sessions["192.0.2.2"];
    assert_eq!((explicit.local_asn, explicit.allow_own_as), (Some(LocalAsn::new(Asn(65001))), 3));
}
