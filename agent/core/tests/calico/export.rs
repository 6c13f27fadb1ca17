//! Calico's built-in export table, step by step, and what follows from it.

use agent_core::Config;
use agent_core::config::RoutePriorities;
use agent_core::model::{
    AffinityState, BgpConfig, Encapsulation, Filter, MatchOperator, Node, Pool, PrefixAdvertisement,
    RoutePriority, ServiceRanges,
};
use bgp_core::policy::{Edits, ListEdit, PrefixRange, SetDef};
use bgp_core::{Asn, Community, LargeCommunity};

use crate::bench::{
    Bench, Candidate, MASTER, accept, community, external, filtered, internal, node, own, peer_ip, rule,
};

/// Sessions of the bench: with another node, and with a router.
const NODE: &str = "10.192.0.3";
const ROUTER: &str = "10.192.0.254";

fn pool(cidr: &str) -> Pool {
    Pool::new(cidr.parse().unwrap())
}

/// A node with blocks inside two pools, of which one keeps to itself, and one block outside both.
fn bench() -> Bench {
    configured(Config::new(MASTER.into()), node("10.192.0.2/16", None))
}

fn configured(config: Config, me: Node) -> Bench {
    let mut bench = Bench::configured(config, &[(MASTER, me), ("kube-node-1", node("10.192.0.3/16", None))]);
    bench.pool("open", pool("10.244.0.0/16"));
    bench.pool("closed", Pool { disable_bgp_export: true, ..pool("10.245.0.0/16") });
    for block in ["10.244.1.0/26", "10.244.2.7/32", "10.245.1.0/26", "10.9.0.0/26"] {
        bench.block(block, AffinityState::Confirmed);
    }
    bench.peer("tor", peer_ip(ROUTER, 65100));
    if !bench.sessions.contains_key(NODE) {
        bench.peer("node", peer_ip(NODE, 64512));
    }
    bench
}

fn steps(bench: &Bench, table: &[(Candidate, bool, &str)]) {
    for session in [NODE, ROUTER] {
        for (candidate, passes, by) in table {
            let answer = bench.export(session, candidate);
            assert_eq!((answer.passes, answer.by.as_str()), (*passes, *by), "{session} {candidate:?}");
        }
    }
}

#[test]
fn each_step_in_order() {
    let mut bench = bench();
    bench.set("services-v4", SetDef::Prefixes(vec![PrefixRange::or_longer("10.96.0.0/12".parse().unwrap())]));
    let closed = "IPPool closed: disableBGPExport";
    let last = "built-in: no block of this node, no address of a service, in no IPPool";
    steps(
        &bench,
        &[
            // 3, before own blocks.
            (own("10.245.1.0/26"), false, closed),
            (external("10.245.9.0/26"), false, closed),
            (own("10.245.1.5/32").metric(1), false, closed),
            // 7a
            (own("10.244.1.0/26"), true, "built-in: block of this node"),
            (own("10.244.2.7/32"), true, "built-in: block of this node"),
            (own("10.9.0.0/26"), true, "built-in: block of this node"),
            // 7b
            (
                own("10.244.1.5/32").metric(512),
                true,
                "built-in: elevated priority inside a block of this node",
            ),
            (
                own("10.244.1.5/32").metric(1023),
                true,
                "built-in: elevated priority inside a block of this node",
            ),
            (own("10.9.0.5/32").metric(512), true, "built-in: elevated priority inside a block of this node"),
            // 7c
            (own("10.244.1.5/32").metric(1024), false, "built-in: inside a block of this node"),
            (own("10.244.1.5/32"), false, "built-in: inside a block of this node"),
            (external("10.244.1.0/27"), false, "built-in: inside a block of this node"),
            // 8
            (own("10.96.0.0/12"), true, "built-in: address of a service"),
            (external("10.97.1.1/32"), true, "built-in: address of a service"),
            // 10
            (external("10.244.9.0/26"), true, "IPPool open"),
            (own("10.244.9.5/32"), true, "IPPool open"),
            (external("10.244.0.0/16"), true, "IPPool open"),
            // 11
            (external("10.244.0.0/15"), false, last),
            (external("0.0.0.0/0"), false, last),
            (external("203.0.113.0/24"), false, last),
            (own("10.192.0.0/16"), false, last),
            (external("2001:db8::/32"), false, last),
        ],
    );
}

#[test]
fn a_pool_that_goes_leaves_its_blocks_and_one_that_closes_takes_them() {
    let mut bench = bench();
    bench.pool("open", Pool { disable_bgp_export: true, ..pool("10.244.0.0/16") });
    bench.exports(NODE, &[(own("10.244.1.0/26"), false), (external("10.244.9.0/26"), false)]);
    bench.tell(agent_core::Event::Pool(agent_core::Change::Delete("open".into())));
    bench.exports(
        NODE,
        &[(own("10.244.1.0/26"), true), (own("10.244.1.5/32"), false), (external("10.244.9.0/26"), false)],
    );
}

#[test]
fn a_block_that_is_released_gives_its_addresses_back_to_the_pool() {
    let mut bench = bench();
    bench.block("10.244.1.0/26", AffinityState::PendingDeletion);
    bench.exports(ROUTER, &[(own("10.244.1.5/32"), true)]);
    bench.block("10.244.1.0/26", AffinityState::Pending);
    bench.exports(ROUTER, &[(own("10.244.1.5/32"), true)]);
    bench.block("10.244.1.0/26", AffinityState::Confirmed);
    bench.exports(ROUTER, &[(own("10.244.1.5/32"), false)]);
}

#[test]
fn encapsulation_and_whether_a_pool_is_in_use_make_no_difference() {
    let mut bench = bench();
    for (ipip, vxlan) in [
        (Encapsulation::Always, Encapsulation::Never),
        (Encapsulation::CrossSubnet, Encapsulation::Never),
        (Encapsulation::Never, Encapsulation::Always),
    ] {
        bench.pool("open", Pool { ipip, vxlan, ..pool("10.244.0.0/16") });
        bench.exports(NODE, &[(own("10.244.1.0/26"), true), (internal("10.244.9.0/26"), true)]);
    }
}

#[test]
fn a_filter_stands_before_everything_built_in() {
    let mut bench = bench();
    bench.config(BgpConfig {
        prefix_advertisements: Some(vec![advertisement("10.0.0.0/8", &["65000:1"])]),
        ..BgpConfig::default()
    });
    let leak = vec![rule(1, MatchOperator::In, "10.0.0.0/8", accept())];
    bench.filter("leak", Filter { export_v4: leak, ..Filter::default() });
    bench.peer("tor", filtered(peer_ip(ROUTER, 65100), &["leak"]));
    for prefix in ["10.245.1.0/26", "10.244.1.5/32", "10.244.1.0/26", "10.50.0.0/16"] {
        let answer = bench.export(ROUTER, &own(prefix));
        assert_eq!(
            (answer.passes, answer.by.as_str()),
            (true, "BGPFilter leak, exportV4 rule 1"),
            "{prefix}"
        );
        assert!(answer.edits.is_empty(), "it takes no communities by prefix");
    }
    let nothing = Filter {
        export_v4: vec![agent_core::model::FilterRule::every(1, agent_core::model::FilterAction::Reject)],
        ..Filter::default()
    };
    bench.filter("leak", nothing);
    bench.exports(ROUTER, &[(own("10.244.1.0/26"), false), (external("10.244.9.0/26"), false)]);
    bench.exports(NODE, &[(own("10.244.1.0/26"), true)]);
}

fn advertisement(cidr: &str, communities: &[&str]) -> PrefixAdvertisement {
    PrefixAdvertisement {
        cidr: cidr.parse().unwrap(),
        communities: communities.iter().map(|text| community(text)).collect(),
    }
}

#[test]
fn communities_by_prefix_add_up() {
    let mut bench = bench();
    bench.config(BgpConfig {
        prefix_advertisements: Some(vec![
            advertisement("10.244.0.0/16", &["65000:1", "65000:1:2"]),
            advertisement("10.244.1.0/24", &["65000:2", "65000:1"]),
            advertisement("fd00::/8", &["65000:6"]),
        ]),
        ..BgpConfig::default()
    });
    let (one, two) = (Community::new(65000, 1), Community::new(65000, 2));
    let large = LargeCommunity::new(65000, 1, 2);
    let marked = |standard: &[Community], large: &[LargeCommunity]| Edits {
        communities: ListEdit::adding(standard.iter().copied()),
        large_communities: ListEdit::adding(large.iter().copied()),
        ..Edits::default()
    };
    for session in [NODE, ROUTER] {
        let edits = |candidate: &Candidate| {
            let answer = bench.export(session, candidate);
            assert!(answer.passes, "{answer:?}");
            answer.edits
        };
        assert_eq!(edits(&own("10.244.1.0/26")), marked(&[one, two], &[large]));
        assert_eq!(edits(&external("10.244.9.0/26")), marked(&[one], &[large]), "learned ones too");
        let carrying = Candidate { communities: vec![one], ..own("10.244.1.0/26") };
        assert_eq!(edits(&carrying), marked(&[two], &[large]));
        assert_eq!(edits(&own("10.9.0.0/26")), Edits::default());
    }
    // A node's own list is in the place of the cluster's, for both families.
    bench.node_config(
        MASTER,
        BgpConfig {
            prefix_advertisements: Some(vec![advertisement("10.9.0.0/16", &["65000:9"])]),
            ..BgpConfig::default()
        },
    );
    assert!(bench.export(NODE, &own("10.244.1.0/26")).edits.is_empty());
    assert_eq!(bench.export(NODE, &own("10.9.0.0/26")).edits, marked(&[Community::new(65000, 9)], &[]));
    // A list of another node is not, and one that is not there isn't either.
    bench.node_config(
        "kube-node-1",
        BgpConfig { prefix_advertisements: Some(vec![]), ..BgpConfig::default() },
    );
    bench.node_config(MASTER, BgpConfig::default());
    assert_eq!(bench.export(NODE, &own("10.244.1.0/26")).edits, marked(&[one, two], &[large]));
}

#[test]
fn a_reflector_passes_addresses_of_services_on() {
    let services = ServiceRanges {
        cluster: vec!["10.96.0.0/12".parse().unwrap()],
        external: vec!["45.12.0.0/16".parse().unwrap(), "172.217.3.5/32".parse().unwrap()],
        load_balancer: vec!["80.15.0.0/24".parse().unwrap()],
        single_load_balancers: true,
    };
    let config = BgpConfig { services, ..BgpConfig::default() };
    let reflector = Node { cluster_id: Some("10.0.0.1".parse().unwrap()), ..node("10.192.0.2/16", None) };
    for (me, expected) in [(node("10.192.0.2/16", None), false), (reflector, true)] {
        let mut bench = configured(Config::new(MASTER.into()), me);
        bench.config(config.clone());
        for session in [NODE, ROUTER] {
            bench.exports(
                session,
                &[
                    (internal("45.12.70.5/32"), expected),
                    (internal("172.217.3.5/32"), expected),
                    (internal("80.15.0.7/32"), expected),
                    (internal("80.15.0.0/24"), expected),
                    (internal("10.96.0.11/32"), false),
                ],
            );
        }
    }
}

#[test]
fn priorities_of_own_routes() {
    let calico = Config { priorities: RoutePriorities::Calico, ..Config::new(MASTER.into()) };
    let mut bench = configured(calico, node("10.192.0.2/16", Some("fd00::2/64")));
    bench.block("fd80::/122", AffinityState::Confirmed);
    let sent = |bench: &Bench, prefix: &str| bench.originates(prefix).local_pref;
    assert_eq!(sent(&bench, "10.244.1.0/26"), Some(2_147_482_623));
    let priority = |n| RoutePriority::new(n);
    let other = BgpConfig {
        ipv4_normal_priority: priority(100),
        ipv6_normal_priority: priority(200),
        ..BgpConfig::default()
    };
    bench.config(other);
    assert_eq!(sent(&bench, "10.244.1.0/26"), Some(2_147_483_547));
    assert_eq!(sent(&bench, "fd80::/122"), Some(2_147_483_447));
    // What is elevated is measured against it.
    bench
        .exports(NODE, &[(own("10.244.1.5/32").metric(100), false), (own("10.244.1.5/32").metric(99), true)]);
    assert!(bench.export(NODE, &bench.originates("10.244.1.0/26")).passes);
    let classic = self::bench();
    assert_eq!(sent(&classic, "10.244.1.0/26"), None);
}

#[test]
fn sessions_that_share_their_filters_share_their_policies() {
    let mut bench = bench();
    bench.filter("f", Filter::default());
    bench.peer("tor", filtered(peer_ip(ROUTER, 65100), &["f"]));
    bench.peer("two", filtered(peer_ip("10.192.0.253", 65100), &["f"]));
    let chains = |session: &str| {
        let config = &bench.sessions[session];
        (config.import.clone(), config.export.clone())
    };
    assert_eq!(chains(ROUTER), chains("10.192.0.253"));
    let names = |chain: bgp_core::command::Chain| {
        chain.policies.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let (import, export) = chains(ROUTER);
    assert_eq!(names(import), "import-f");
    assert_eq!(names(export), "calico-export-through export-f calico-export");
    let (import, export) = chains(NODE);
    assert_eq!((names(import), names(export)), (String::new(), "calico-export".to_owned()));
    assert_eq!(bench.asns(ROUTER).1, Asn(64512).0);
}
