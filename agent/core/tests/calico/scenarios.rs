//! The scenarios of Calico's tests of its compiled configuration.
//!
//! Not here: what they say of passwords and of sessions with local workloads, which this agent has not yet.

use std::collections::BTreeSet;
use std::time::Duration;

use agent_core::Change;
use agent_core::Event;
use agent_core::model::{
    AffinityState, BgpConfig, Encapsulation, Filter, FilterAction, MatchOperator, NextHopChoice, NodeName,
    PeerPort, PeerSpec, Pool, ProgramClusterRoutes, ServiceRanges, SourceAddress,
};
use agent_core::service::{
    Announcer, Endpoint, EndpointSlice, ExternalTraffic, IpVersion, Service, ServiceKind,
};
use bgp_core::Asn;
use bgp_core::command::NextHopMode;
use bgp_core::policy::{PrefixRange, SetDef};
use ipnet::IpNet;

use crate::bench::{
    Bench, MASTER, accept, external, filtered, internal, labelled, no_mesh, node, own, peer_ip, rule,
    selecting,
};

fn pool(cidr: &str) -> Pool {
    Pool::new(cidr.parse().unwrap())
}

/// Our address, whether we wait, and the restart time.
fn shape(bench: &Bench, session: &str) -> (Option<String>, bool, u16) {
    let config = &bench.sessions[session];
    let restart = config.graceful_restart.unwrap().restart_time.secs();
    (config.local_address.map(|address| address.to_string()), config.passive, restart)
}

fn src(address: &str) -> Option<String> {
    Some(address.to_owned())
}

#[test]
fn s1_pools_with_export_switched_off() {
    let mut bench = Bench::fixture();
    for (name, cidr, off) in [
        ("a", "192.168.1.0/24", false),
        ("b", "192.168.2.0/24", true),
        ("c", "192.168.3.0/24", false),
        ("d", "2002:101::/64", false),
        ("e", "2002:102::/64", true),
        ("f", "2002:103::/64", false),
    ] {
        bench.pool(name, Pool { disable_bgp_export: off, ..pool(cidr) });
    }
    assert_eq!(bench.keys(), ["10.192.0.3", "10.192.0.4"]);
    for session in ["10.192.0.3", "10.192.0.4"] {
        assert_eq!(bench.asns(session), (64512, 64512));
        assert_eq!(shape(&bench, session), (src("10.192.0.2"), true, 120));
        bench.exports(
            session,
            &[
                (own("192.168.2.0/26"), false),
                (external("192.168.2.7/32"), false),
                (own("192.168.1.0/26"), true),
                (external("192.168.3.0/24"), true),
                (own("10.0.0.0/30"), true),
                (own("10.1.0.0/24"), true),
                (own("10.2.0.1/32"), true),
                (own("192.168.221.192/26"), true),
                (own("192.168.221.64/26"), true),
                (external("192.168.9.0/24"), false),
                (external("2002:102::/64"), false),
                (external("2002:101::/64"), true),
                (external("2002:103::1/128"), true),
            ],
        );
    }
    assert_eq!(bench.export("10.192.0.3", &own("192.168.2.0/26")).by, "IPPool b: disableBGPExport");
}

#[test]
fn s2_block_rows() {
    let mut bench = Bench::fixture();
    bench.pool("p", Pool { ipip: Encapsulation::Always, ..pool("192.168.0.0/16") });
    bench.exports(
        "10.192.0.3",
        &[
            (own("10.0.0.0/30"), true),
            (own("10.1.0.0/24"), true),
            (own("192.168.221.192/26"), true),
            (own("192.168.221.64/26"), true),
            (own("10.2.0.1/32"), true),
            (own("192.168.221.70/32").metric(1024), false),
            (own("192.168.221.70/32"), false),
            (own("192.168.221.70/32").metric(512), true),
            (own("192.168.221.0/26"), true),
            (own("192.168.221.5/32"), true),
            (own("10.9.0.1/32"), false),
        ],
    );
    let originated: Vec<String> = bench.originated.keys().map(ToString::to_string).collect();
    let expected = ["10.0.0.0/30", "10.1.0.0/24", "10.2.0.1/32", "192.168.221.64/26", "192.168.221.192/26"];
    assert_eq!(originated, expected, "the pending one is not");
}

#[test]
fn s3_dual_stack_mesh_with_restart_time() {
    let mut bench = Bench::started(&[
        (MASTER, node("10.192.0.2/16", Some("2001::103/64"))),
        ("kube-node-1", node("10.192.0.3/16", Some("2001::102/64"))),
        ("kube-node-2", node("10.192.0.4/16", Some("2001::104/64"))),
    ]);
    let restart = Duration::from_secs(10);
    bench.config(BgpConfig { mesh_max_restart_time: Some(restart), ..BgpConfig::default() });
    assert_eq!(bench.keys(), ["10.192.0.3", "10.192.0.4", "2001::102", "2001::104"]);
    for (session, source, passive) in [
        ("10.192.0.3", "10.192.0.2", true),
        ("10.192.0.4", "10.192.0.2", true),
        ("2001::102", "2001::103", false),
        ("2001::104", "2001::103", true),
    ] {
        assert_eq!(shape(&bench, session), (src(source), passive, 10), "{session}");
    }
}

#[test]
fn s4_global_peers_by_address_ports_and_binding() {
    let mut bench = Bench::started(&[
        (MASTER, node("10.192.0.2/16", None)),
        ("kube-node-1", node("10.192.0.3/16", None)),
        ("kube-node-2", node("10.192.0.1/16", None)),
    ]);
    bench.config(BgpConfig {
        asn: Some(Asn(64567)),
        listen_port: Some(PeerPort(150)),
        bind_node_ip: true,
        ..no_mesh()
    });
    bench.peer("a", PeerSpec { source_address: SourceAddress::Any, ..peer_ip("10.192.0.3", 64567) });
    bench.peer("b", peer_ip("10.192.0.1:166", 64567));
    bench.peer("c", peer_ip("10.192.0.1", 64567));
    assert_eq!(bench.keys(), ["10.192.0.1:150", "10.192.0.1:166", "10.192.0.3:150"]);
    assert_eq!(shape(&bench, "10.192.0.3:150"), (None, true, 120));
    assert_eq!(shape(&bench, "10.192.0.1:166"), (src("10.192.0.2"), false, 120));
    assert_eq!(shape(&bench, "10.192.0.1:150"), (src("10.192.0.2"), false, 120));
    for session in bench.keys() {
        assert_eq!(bench.asns(session), (64567, 64567));
    }
    assert_eq!(bench.listens(), ["10.192.0.2:150", "[::]:150"]);
}

#[test]
fn s5_global_v6_peers() {
    let mut bench = Bench::started(&[
        (MASTER, node("10.192.0.2/16", Some("2001::103/64"))),
        ("kube-node-1", node("10.192.0.3/16", Some("2001::102/64"))),
        ("kube-node-2", node("10.192.0.4/16", Some("2001::104/64"))),
    ]);
    bench.config(BgpConfig { asn: Some(Asn(64567)), ..no_mesh() });
    bench.peer("a", PeerSpec { source_address: SourceAddress::Any, ..peer_ip("2001::102", 64567) });
    bench.peer("b", peer_ip("2001::104", 64567));
    assert_eq!(bench.keys(), ["2001::102", "2001::104"]);
    assert_eq!(shape(&bench, "2001::102"), (None, false, 120));
    assert_eq!(shape(&bench, "2001::104"), (src("2001::103"), true, 120));
}

#[test]
fn s6_selectors_and_a_listen_port_of_one_node() {
    let one = |v4, v6, group| labelled(node(v4, Some(v6)), "group", group);
    let mut bench = Bench::started(&[
        (MASTER, one("10.192.0.2/16", "fd5f::2/96", "one")),
        ("kube-node-1", one("10.192.0.3/16", "fd5f::3/96", "two")),
        ("kube-node-2", one("10.192.0.4/16", "fd5f::4/96", "two")),
    ]);
    bench.no_mesh();
    bench.node_config("kube-node-1", BgpConfig { listen_port: Some(PeerPort(500)), ..BgpConfig::default() });
    bench.peer("p", selecting(Some("group=='one'"), "group=='two'"));
    assert_eq!(bench.keys(), ["10.192.0.3:500", "10.192.0.4", "[fd5f::3]:500", "fd5f::4"]);
    for session in bench.keys() {
        let source = if session.contains("fd5f") { "fd5f::2" } else { "10.192.0.2" };
        assert_eq!(shape(&bench, session), (src(source), false, 120), "{session}");
        assert_eq!(bench.asns(session), (64512, 64512));
    }
    bench.edits = 0;
    bench.node_config("kube-node-1", BgpConfig::default());
    assert_eq!(bench.keys(), ["10.192.0.3", "10.192.0.4", "fd5f::3", "fd5f::4"]);
    assert_eq!(bench.edits, 4, "two went and two came; the others were left alone");
}

/// Which neighbours are clients.
fn clients(bench: &Bench) -> Vec<&str> {
    let clients = bench.sessions.iter().filter(|(_, config)| config.route_reflector_client);
    clients.map(|(key, _)| key.as_str()).collect()
}

/// A cluster with a reflector, seen from one of its nodes.
fn reflected(from: &str, v6: bool) -> Bench {
    let v6 = |address| v6.then_some(address);
    let reflector = labelled(node("10.192.0.2/16", Some("fe0a::2/96")), "routeReflector", "true");
    let reflector = agent_core::model::Node { cluster_id: Some("10.0.0.1".parse().unwrap()), ..reflector };
    let mut nodes = vec![
        (MASTER, reflector),
        ("kube-node-1", node("10.192.0.3/16", v6("fe0a::3/96"))),
        ("kube-node-2", node("10.192.0.4/16", v6("fe0a::4/96"))),
    ];
    nodes.sort_by_key(|(name, _)| *name != from);
    let mut bench = Bench::started(&nodes);
    bench.config(BgpConfig { asn: Some(Asn(64532)), ..no_mesh() });
    bench
}

#[test]
fn s7_a_route_reflector() {
    let only = |spec| PeerSpec { node_selector: Some("has(routeReflector)".into()), ..spec };
    let with_peers = |from| {
        let mut bench = reflected(from, true);
        bench.peer("e4", only(peer_ip("172.19.4.87", 64533)));
        bench.peer("e6", only(peer_ip("[ac13::57]:50", 64533)));
        bench.peer("clients", selecting(Some("has(routeReflector)"), "!has(routeReflector)"));
        bench
    };
    let bench = with_peers(MASTER);
    assert_eq!(
        bench.keys(),
        ["10.192.0.3", "10.192.0.4", "172.19.4.87", "[ac13::57]:50", "fe0a::3", "fe0a::4"]
    );
    assert_eq!(clients(&bench), ["10.192.0.3", "10.192.0.4", "fe0a::3", "fe0a::4"]);
    assert_eq!(bench.cluster_id, Some("10.0.0.1".parse().unwrap()));
    assert_eq!(bench.asns("172.19.4.87"), (64533, 64532));
    assert!(bench.sessions.values().all(|config| !config.passive));
    let node = with_peers("kube-node-1");
    assert_eq!(node.keys(), ["10.192.0.2", "fe0a::2"]);
    assert_eq!((clients(&node), node.cluster_id), (vec![], None));
}

#[test]
fn s7_reflectors_of_one_cluster_are_no_clients_of_each_other() {
    let with_other = |cluster: &str| {
        let mut bench = reflected(MASTER, false);
        let other = agent_core::model::Node {
            cluster_id: Some(cluster.parse().unwrap()),
            ..node("10.192.0.5/16", None)
        };
        bench.node("rr", other);
        bench
    };
    for (cluster, expected) in [("10.0.0.1", vec![]), ("10.0.0.2", vec!["10.192.0.5"])] {
        let mut bench = with_other(cluster);
        bench.node("rr", labelled(with_cluster("10.192.0.5/16", cluster), "rr", "yes"));
        bench.peer("p", selecting(None, "has(rr)"));
        assert_eq!(clients(&bench), expected, "{cluster}");
    }
    // By address nothing is known of the other end.
    let mut bench = with_other("10.0.0.1");
    bench.peer("p", peer_ip("10.192.0.5", 64532));
    assert_eq!(clients(&bench), ["10.192.0.5"]);
}

fn with_cluster(v4: &str, cluster: &str) -> agent_core::model::Node {
    agent_core::model::Node { cluster_id: Some(cluster.parse().unwrap()), ..node(v4, None) }
}

#[test]
fn s8_next_hop() {
    let keep = |spec| PeerSpec {
        node_selector: Some("has(routeReflector)".into()),
        next_hop: NextHopChoice::KeepExternal,
        ..spec
    };
    let mut bench = reflected(MASTER, false);
    bench.peer("e4", keep(peer_ip("172.19.4.87", 64533)));
    bench.peer("e6", keep(peer_ip("ac13::57", 64533)));
    bench.peer("clients", selecting(Some("all()"), "has(routeReflector)"));
    let modes: Vec<_> = bench.sessions.iter().map(|(key, config)| (key.as_str(), config.next_hop)).collect();
    assert_eq!(
        modes,
        [
            ("10.192.0.3", NextHopMode::Default),
            ("10.192.0.4", NextHopMode::Default),
            ("172.19.4.87", NextHopMode::Keep),
            ("ac13::57", NextHopMode::Keep),
        ]
    );
    assert_eq!(clients(&bench), ["10.192.0.3", "10.192.0.4"]);

    let mut bench = Bench::started(&[(MASTER, node("10.192.0.2/16", Some("2001::103/64")))]);
    bench.no_mesh();
    // The original has ffee::10 and ::11, which are multicast, and refused here.
    for (name, address, asn, next_hop) in [
        ("a", "10.225.0.4", 65515, NextHopChoice::Keep),
        ("b", "10.225.0.5", 64512, NextHopChoice::SelfAddress),
        ("c", "fdee::10", 65515, NextHopChoice::Keep),
        ("d", "fdee::11", 64512, NextHopChoice::SelfAddress),
    ] {
        bench.peer(name, PeerSpec { next_hop, ..peer_ip(address, asn) });
    }
    let modes: Vec<_> = bench.sessions.values().map(|config| (config.next_hop, config.passive)).collect();
    let (keep, own) = ((NextHopMode::Keep, false), (NextHopMode::SelfAddress, false));
    assert_eq!(modes, [keep, own, keep, own]);
}

#[test]
fn s9_another_as_of_our_own() {
    let mut bench = Bench::fixture();
    bench.no_mesh();
    let local = |asn, spec| PeerSpec { node: Some(MASTER.into()), local_asn: Some(Asn(asn)), ..spec };
    bench.peer("a", PeerSpec { allowed_local_asns: 1, ..local(64512, peer_ip("10.192.0.3", 64512)) });
    bench.peer("b", local(65001, peer_ip("10.192.0.4", 64566)));
    let of = |session: &str| {
        let config = &bench.sessions[session];
        (bench.asns(session), config.allow_own_as, config.passive)
    };
    assert_eq!(of("10.192.0.3"), ((64512, 64512), 1, false));
    assert_eq!(of("10.192.0.4"), ((64566, 65001), 0, false));
}

#[test]
fn s10_overlapping_objects_and_deleted_nodes() {
    let labelled = |v4| labelled(node(v4, None), "node", "yes");
    let mut bench =
        Bench::started(&[("node1", labelled("10.24.0.1/24")), ("node2", labelled("10.24.0.2/24"))]);
    bench.no_mesh();
    bench.peer("node-specific", PeerSpec { node: Some("node1".into()), ..selecting(None, "has(node)") });
    bench.peer("global", selecting(None, "has(node)"));
    assert_eq!(bench.keys(), ["10.24.0.2"]);
    assert!(bench.sessions["10.24.0.2"].description.contains("global"));
    bench.edits = 0;
    bench.node("node2", labelled("10.24.0.2/24"));
    assert_eq!(bench.edits, 0);

    let names = ["node1", "node2", "node3", "node4"];
    let addresses = ["10.24.0.1/24", "10.24.0.2/24", "10.24.0.3/24", "10.24.0.4/24"];
    let nodes: Vec<_> = names.into_iter().zip(addresses.map(labelled)).collect();
    let mut bench = Bench::started(&nodes);
    bench.no_mesh();
    bench.peer("p", selecting(Some("has(node)"), "has(node)"));
    assert_eq!(bench.keys(), ["10.24.0.2", "10.24.0.3", "10.24.0.4"]);
    bench.edits = 0;
    bench.tell(Event::Node(Change::Delete(NodeName::from("node3"))));
    assert_eq!((bench.keys(), bench.edits), (vec!["10.24.0.2", "10.24.0.4"], 1));
}

#[test]
fn s11_source_address_and_restart_time_edited() {
    let mut bench =
        Bench::started(&[("node1", node("172.17.0.5/24", None)), ("node2", node("172.17.0.6/24", None))]);
    bench.no_mesh();
    let first = PeerSpec { node: Some("node1".into()), ..peer_ip("172.17.0.6", 64512) };
    bench.peer("p", first.clone());
    assert_eq!(shape(&bench, "172.17.0.6"), (src("172.17.0.5"), false, 120));
    let second = PeerSpec { source_address: SourceAddress::Any, ..first };
    bench.peer("p", second.clone());
    assert_eq!(shape(&bench, "172.17.0.6"), (None, false, 120));
    bench.peer("p", PeerSpec { max_restart_time: Some(Duration::from_secs(10)), ..second });
    assert_eq!(shape(&bench, "172.17.0.6"), (None, false, 10));
}

#[test]
fn s12_service_routes() {
    let mut bench = Bench::started(&[
        (MASTER, node("10.192.0.2/16", Some("fdf5:10::2/96"))),
        ("kube-node-1", node("10.192.0.3/16", Some("fdf5:10::3/96"))),
        ("kube-node-2", node("10.192.0.4/16", Some("fdf5:10::4/96"))),
    ]);
    bench.blocks();
    bench.pool("p", Pool { ipip: Encapsulation::Always, ..pool("192.168.0.0/16") });
    let ranges = ServiceRanges {
        cluster: nets(&["10.101.0.0/16", "fd00:96::/112"]),
        load_balancer: nets(&["80.15.0.0/24"]),
        ..ServiceRanges::default()
    };
    let service = |ip: &str| Service {
        kind: ServiceKind::LoadBalancer,
        traffic: ExternalTraffic::Local,
        cluster_ips: vec![ip.parse().unwrap()],
        versions: vec![IpVersion::of(ip.parse().unwrap())],
        ..Service::default()
    };
    let slice = |version, node: &str| EndpointSlice {
        version: Some(version),
        endpoints: vec![Endpoint { node: Some(node.into()), ready: true }],
    };
    let services = [
        (service("10.101.0.101"), vec![slice(IpVersion::V4, "kube-node-1"), slice(IpVersion::V4, MASTER)]),
        (service("10.101.0.102"), vec![slice(IpVersion::V4, "kube-node-1")]),
        (service("fd00:96::25"), vec![slice(IpVersion::V4, MASTER)]),
        (service("fd00:96::28"), vec![slice(IpVersion::V6, MASTER)]),
    ];
    let announcer = Announcer { node: &MASTER.into(), excluded: false, ranges: &ranges };
    let mut announced: BTreeSet<IpNet> = announcer.aggregates();
    for (service, slices) in &services {
        announced.extend(announcer.addresses(service, slices));
    }
    let expected: BTreeSet<IpNet> =
        nets(&["10.101.0.0/16", "10.101.0.101/32", "80.15.0.0/24", "fd00:96::/112", "fd00:96::28/128"])
            .into_iter()
            .collect();
    assert_eq!(announced, expected);

    let set = |bench: &mut Bench, prefixes: &BTreeSet<IpNet>| {
        for (name, v4) in [("services-v4", true), ("services-v6", false)] {
            let of = prefixes.iter().filter(|net| net.addr().is_ipv4() == v4);
            bench.set(name, SetDef::Prefixes(of.map(|net| PrefixRange::or_longer(*net)).collect()));
        }
    };
    let table = |announced: bool| {
        vec![
            (own("10.101.0.0/16"), announced),
            (own("10.101.0.101/32"), announced),
            (own("80.15.0.0/24"), announced),
            (external("10.101.7.0/24"), announced),
            (external("80.15.0.9/32"), announced),
            (own("10.0.0.0/30"), true),
            (external("192.168.9.0/26"), true),
            (external("90.15.0.1/32"), false),
        ]
    };
    set(&mut bench, &announced);
    bench.exports("10.192.0.3", &table(true));
    bench.exports("fdf5:10::3", &[(own("fd00:96::28/128"), true), (external("fd00:96::1/128"), true)]);
    assert_eq!(bench.export("10.192.0.3", &own("80.15.0.0/24")).by, "built-in: address of a service");
    set(&mut bench, &BTreeSet::new());
    bench.exports("10.192.0.3", &table(false));
    bench.exports("fdf5:10::3", &[(own("fd00:96::28/128"), false)]);
}

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The filter of sessions with local workloads, on external sessions with the same AS numbers.
#[test]
fn s13_a_filter_for_import_only() {
    let mut bench = Bench::started(&[(MASTER, node("10.192.0.2/16", Some("2001::102/64")))]);
    bench.no_mesh();
    bench.block("10.1.0.0/24", AffinityState::Confirmed);
    let filter = Filter {
        import_v4: vec![rule(1, MatchOperator::In, "44.0.0.0/16", accept())],
        import_v6: vec![rule(1, MatchOperator::In, "5000::/64", accept())],
        ..Filter::default()
    };
    bench.filter("import-only-filter", filter);
    let local = |asn, spec| PeerSpec { local_asn: Some(Asn(asn)), ..spec };
    let filters = &["import-only-filter"];
    bench.peer("g", filtered(local(65002, peer_ip("192.168.162.134", 64516)), filters));
    bench.peer("n", filtered(local(65001, peer_ip("192.168.162.136", 64517)), filters));
    bench.peer("6", filtered(peer_ip("fd00::a284", 64516), filters));
    assert_eq!(bench.asns("192.168.162.134"), (64516, 65002));
    assert_eq!(bench.asns("192.168.162.136"), (64517, 65001));
    for (session, prefix, by) in [
        ("192.168.162.134", "44.0.7.0/24", "BGPFilter import-only-filter, importV4 rule 1"),
        ("192.168.162.136", "45.0.0.0/24", "default"),
        ("fd00::a284", "5000::1/128", "BGPFilter import-only-filter, importV6 rule 1"),
        ("fd00::a284", "5001::/64", "default"),
    ] {
        let answer = bench.import(session, &external(prefix));
        assert_eq!((answer.passes, answer.by.as_str()), (true, by), "{prefix}");
    }
    bench.exports("192.168.162.134", &[(own("10.1.0.0/24"), true), (external("44.0.0.0/16"), false)]);
}

#[test]
fn s14_operators_and_a_filter_that_goes() {
    let one = |address| labelled(node(address, None), "peer", "yes");
    let mut bench = Bench::started(&[(MASTER, one("10.192.0.2/16")), ("kube-node-1", one("10.192.0.3/16"))]);
    bench.no_mesh();
    bench.blocks();
    let rules = |net: u8| {
        vec![
            rule(1, MatchOperator::In, &format!("{net}.0.0.0/16"), accept()),
            rule(2, MatchOperator::NotIn, &format!("{net}.1.0.0/16"), FilterAction::Reject),
            rule(3, MatchOperator::Equal, &format!("{net}.2.0.0/16"), accept()),
            rule(4, MatchOperator::NotEqual, &format!("{net}.3.0.0/16"), FilterAction::Reject),
        ]
    };
    let filter = Filter { import_v4: rules(44), export_v4: rules(77), ..Filter::default() };
    bench.filter("f", filter);
    bench.peer("p", filtered(selecting(None, "has(peer)"), &["f"]));
    let session = "10.192.0.3";
    for (prefix, passes, by) in [
        ("44.0.0.0/16", true, 1),
        ("44.0.7.0/24", true, 1),
        ("44.1.0.0/16", false, 4),
        ("44.1.9.0/24", false, 4),
        ("44.2.0.0/16", false, 2),
        ("44.3.0.0/16", false, 2),
        ("0.0.0.0/0", false, 2),
    ] {
        let answer = bench.import(session, &internal(prefix));
        assert_eq!(
            (answer.passes, answer.by),
            (passes, format!("BGPFilter f, importV4 rule {by}")),
            "{prefix}"
        );
    }
    let out = bench.export(session, &external("77.0.1.0/24"));
    assert_eq!((out.passes, out.by.as_str()), (true, "BGPFilter f, exportV4 rule 1"));
    for block in ["10.0.0.0/30", "10.1.0.0/24", "10.2.0.1/32", "192.168.221.64/26"] {
        let answer = bench.export(session, &own(block));
        assert_eq!((answer.passes, answer.by.as_str()), (false, "BGPFilter f, exportV4 rule 2"), "{block}");
    }
    bench.edits = 0;
    bench.delete_filter("f");
    assert_eq!((bench.keys(), bench.edits), (vec![session], 1), "the session stays, with other policies");
    assert!(bench.import(session, &internal("0.0.0.0/0")).passes);
    bench.exports(session, &[(external("77.0.1.0/24"), false), (own("10.1.0.0/24"), true)]);
    let conditions = bench.conditions();
    assert!(conditions.iter().any(|text| text.contains("there is no BGPFilter f")), "{conditions:?}");
}

#[test]
fn s14_a_filter_that_nobody_names_has_no_effect() {
    let mut bench = Bench::fixture();
    let filter = Filter {
        import_v4: vec![rule(1, MatchOperator::In, "0.0.0.0/0", FilterAction::Reject)],
        ..Filter::default()
    };
    bench.edits = 0;
    bench.filter("f", filter);
    assert_eq!(bench.edits, 0);
    assert!(bench.import("10.192.0.3", &internal("44.0.0.0/16")).passes);
}

#[test]
fn s15_who_programs_cluster_routes() {
    let mut bench = Bench::fixture();
    bench.pool("a", Pool { ipip: Encapsulation::Always, ..pool("192.168.0.0/16") });
    bench.pool("b", Pool { ipip: Encapsulation::CrossSubnet, ..pool("172.16.0.0/16") });
    for (name, cidr) in [("c", "172.17.0.0/16"), ("d", "2002::/64"), ("e", "2010::/64")] {
        bench.pool(name, pool(cidr));
    }
    bench.interface("10.192.0.99", "tunl0");
    bench.interface("10.192.0.98", "vxlan.calico");
    bench.interface("10.192.0.97", "bpfout.cali");
    let mut other = peer_ip("10.9.9.9", 64999);
    other.manual_reverse = true;
    bench.peer("external", other);
    for (program, tunnel_stops) in [
        (ProgramClusterRoutes::NoEncapOnly, true),
        (ProgramClusterRoutes::Enabled, false),
        (ProgramClusterRoutes::IpipOnly, false),
        (ProgramClusterRoutes::Disabled, true),
    ] {
        bench.config(BgpConfig { program_cluster_routes: program, ..BgpConfig::default() });
        let found = |prefix: &str, hop: &str| own(prefix).via(hop);
        bench.exports(
            "10.192.0.3",
            &[
                (external("192.168.9.0/26"), true),
                (external("172.16.9.0/26"), true),
                (external("172.17.9.0/26"), true),
                (external("2002::1/128"), true),
                (external("2010::1/128"), true),
                (found("192.168.9.0/26", "10.192.0.99"), !tunnel_stops),
                (found("192.168.9.0/26", "10.192.0.98"), false),
                (found("192.168.9.0/26", "10.192.0.97"), false),
                // Learned routes are this speaker's own affair, whichever way they leave.
                (internal("192.168.9.0/26").via("10.192.0.99"), true),
            ],
        );
        bench.exports(
            "10.9.9.9",
            &[
                (found("192.168.9.0/26", "10.192.0.99"), true),
                (found("192.168.9.0/26", "10.192.0.97"), false),
            ],
        );
    }
}
