//! Sessions, own prefixes and listening over the life of a node: start, VPP absent, lost and back.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::time::Duration;

use agent_core::event::VppEvent;
use agent_core::model::{
    Affinity, BgpConfig, BgpConfigName, Encapsulation, NextHopChoice, Node, NodeName, PeerEndpoint, PeerPort,
    PeerSpec, Pool,
};
use agent_core::plan::{VppAction, VppFailure, VppState};
use agent_core::{Change, Event, Forwarding};
use bgp_core::FamilySet;
use bgp_core::command::Command;
use bgp_core::policy::Flow;
use world::{Best, ME, World};

fn me() -> Node {
    Node {
        ipv4: Some("192.0.2.1/24".parse().unwrap()),
        ipv6: Some("2001:db8::1/64".parse().unwrap()),
        ..Node::default()
    }
}

/// A world in which everything is in sync, with one IPIP and one CrossSubnet pool.
fn world() -> World {
    let mut world = World::new();
    world.cluster.nodes.insert(NodeName::from(ME), me());
    for (name, cidr, ipip) in [
        ("always", "10.1.0.0/16", Encapsulation::Always),
        ("cross", "10.2.0.0/16", Encapsulation::CrossSubnet),
    ] {
        world.cluster.pools.insert(name.into(), Pool { ipip, ..Pool::new(cidr.parse().unwrap()) });
    }
    world.connect();
    world.list();
    world.converge();
    world.settle();
    world.log.clear();
    world
}

fn via(hops: &[&str]) -> Option<Best> {
    Some(Best::Via(hops.iter().map(|hop| hop.parse().unwrap()).collect()))
}

#[test]
fn peers_come_last_and_only_with_the_first_complete_picture() {
    let mut world = World::new();
    world.cluster.nodes.insert(NodeName::from(ME), me());
    world.cluster.nodes.insert(
        NodeName::from("node-b"),
        Node { ipv4: Some("192.0.2.2/24".parse().unwrap()), ..Node::default() },
    );
    let block = Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME));
    world.cluster.affinities.insert("row".into(), block);
    world.list();
    world.run();
    assert_eq!(world.peers(), Vec::<&str>::new(), "VPP has not been read");
    assert_eq!(world.originations(), Vec::<&str>::new());
    world.connect();
    world.run();
    assert_eq!(world.peers(), ["192.0.2.2"]);
    let order: Vec<usize> = [
        |c: &Command| matches!(c, Command::PutIdentity { .. }),
        |c: &Command| matches!(c, Command::PutSet(..)),
        |c: &Command| matches!(c, Command::PutPolicy(..)),
        |c: &Command| matches!(c, Command::PutOrigination(..)),
        |c: &Command| matches!(c, Command::LoadingDone),
        |c: &Command| matches!(c, Command::PutPeer(..)),
    ]
    .iter()
    .map(|what| world.commands.iter().position(what).unwrap())
    .collect();
    assert!(order.is_sorted(), "{order:?}");
    let last_set = world.commands.iter().rposition(|c| matches!(c, Command::PutSet(..))).unwrap();
    assert!(last_set < order[5]);
}

#[test]
fn without_vpp_peers_come_at_once_and_own_prefixes_with_vpp() {
    let mut world = World::new();
    world.cluster.nodes.insert(NodeName::from(ME), me());
    world.cluster.nodes.insert(
        NodeName::from("node-b"),
        Node { ipv4: Some("192.0.2.2/24".parse().unwrap()), ..Node::default() },
    );
    world
        .cluster
        .affinities
        .insert("row".into(), Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME)));
    world.list();
    world.run();
    assert_eq!(world.peers(), Vec::<&str>::new(), "VPP may be there in a moment");
    world.event(Event::Vpp(VppEvent::Lost));
    world.run();
    assert_eq!((world.peers(), world.originations()), (vec!["192.0.2.2"], vec![]), "VPP is not there");
    world.connect();
    world.settle();
    assert_eq!(world.originations(), ["10.1.7.0/26"]);
}

#[test]
fn a_vpp_that_says_nothing_holds_sessions_up_for_a_short_time_only() {
    let mut world = World::new();
    world.config.vpp.as_mut().unwrap().loss_grace = Duration::from_secs(3600);
    world.restart_agent();
    world.cluster.nodes.insert(NodeName::from(ME), me());
    world.cluster.nodes.insert(
        NodeName::from("node-b"),
        Node { ipv4: Some("192.0.2.2/24".parse().unwrap()), ..Node::default() },
    );
    world.list();
    world.run();
    let due = world.engine.deadline().unwrap();
    assert_eq!(due.saturating_since(world.now), Duration::from_secs(5));
    world.pass(Duration::from_millis(4999));
    assert_eq!(world.peers(), Vec::<&str>::new());
    world.pass(Duration::from_millis(1));
    assert_eq!(world.peers(), ["192.0.2.2"]);
    assert_eq!(world.engine.deadline(), None, "nothing has been announced that could be withdrawn");
}

#[test]
fn own_prefixes_go_after_the_grace_and_come_back_after_the_replay() {
    let mut world = world();
    world.affinity("row", Some(Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME))));
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let before = world.vpp.canonical();
    world.lose();
    world.pass(Duration::from_secs(4));
    assert_eq!(world.originations(), ["10.1.7.0/26"], "within the grace nothing happens");
    assert_eq!(world.engine.status().vpp.unwrap().state, VppState::Away);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.originations(), Vec::<&str>::new());
    assert_eq!(world.engine.status().forwarding, Forwarding::Withheld);
    world.restart_vpp();
    world.connect();
    // One operation at a time: the prefix must not be back before the last of them.
    world.window = 1;
    while world.vpp.canonical() != before {
        assert_eq!(world.originations(), Vec::<&str>::new());
        assert!(world.step(usize::MAX), "stuck");
    }
    world.settle();
    assert_eq!(world.originations(), ["10.1.7.0/26"]);
    assert!(world.engine.status().ready());
}

#[test]
fn what_leads_through_this_node_goes_with_its_own_prefixes() {
    let mut world = world();
    world.neighbours();
    let internal = PeerSpec {
        peer_ip: Some(PeerEndpoint { address: "192.0.2.2".parse().unwrap(), port: None }),
        asn: Some(bgp_core::Asn(64512)),
        ..PeerSpec::default()
    };
    world.cluster.peers.insert("node-b".into(), internal.clone());
    let through = PeerSpec {
        peer_ip: Some(PeerEndpoint { address: "192.0.2.3".parse().unwrap(), port: None }),
        next_hop: NextHopChoice::SelfAddress,
        ..internal
    };
    world.cluster.peers.insert("node-c".into(), through);
    world.list();
    world.settle();
    // Whether neighbours of each kind may hear of anything: no policy of theirs begins with an unconditional no.
    let open = |world: &World, neighbour: &str| {
        let peer =
            world.speaker.iter().find(|(key, _)| key.starts_with(&format!("peer {neighbour}"))).unwrap().1;
        let Command::PutPeer(_, config) = peer else { panic!("{peer:?}") };
        config.export.policies.iter().all(|name| {
            let Command::PutPolicy(_, policy) = &world.speaker[&format!("policy {name}")] else { panic!() };
            let first = policy.statements.first();
            first.is_none_or(|first| !first.when.is_empty() || first.then != Flow::Reject)
        })
    };
    let all = |world: &World| ["192.0.2.254", "192.0.2.2", "192.0.2.3"].map(|peer| open(world, peer));
    assert_eq!(all(&world), [true, true, true]);
    world.lose();
    world.pass(Duration::from_secs(4));
    assert_eq!(all(&world), [true, true, true], "within the grace nothing happens");
    world.pass(Duration::from_secs(2));
    assert_eq!(all(&world), [false, true, false], "only what keeps its next hop stays");
    world.restart_vpp();
    world.connect();
    world.settle();
    assert_eq!(all(&world), [true, true, true]);
}

#[test]
fn nothing_is_withdrawn_that_was_never_announced() {
    let mut world = World::new();
    world.connect();
    world.run();
    // The folder of manifests comes late; VPP was never away.
    world.pass(Duration::from_secs(60));
    assert!(matches!(world.engine.status().forwarding, Forwarding::Away(_)));
    assert_eq!(world.engine.deadline(), None, "nothing is due");
    world.cluster.nodes.insert(NodeName::from(ME), me());
    world.list();
    world.converge();
    world.settle();
    assert!(world.engine.status().ready(), "{:?}", world.engine.status());
}

#[test]
fn a_short_loss_withdraws_nothing() {
    let mut world = world();
    world.affinity("row", Some(Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME))));
    world.settle();
    world.commands.clear();
    world.lose();
    world.pass(Duration::from_secs(3));
    world.connect();
    world.settle();
    assert_eq!(world.commands, []);
}

#[test]
fn a_loss_that_was_not_seen_counts_all_the_same() {
    let mut world = world();
    world.affinity("row", Some(Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME))));
    world.settle();
    assert_eq!(world.originations(), ["10.1.7.0/26"]);
    // Another VPP answers, and nothing can be put into it.
    world.connected = false;
    world.broken = |action| matches!(action, VppAction::Dump).then_some(VppFailure::Unanswered);
    world.connect();
    world.run();
    world.pass(Duration::from_secs(5));
    assert_eq!(world.originations(), Vec::<&str>::new());
}

#[test]
fn interfaces_seen_while_a_dump_is_out_are_newer_than_the_dump() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let uplink = world.vpp.interfaces.remove(&1).unwrap();
    world.lose();
    world.connect();
    let mut ops = Vec::new();
    world.engine.next_vpp_ops(world.now, 16, &mut ops);
    let result = world.vpp.execute(&ops[0].action);
    world.vpp.interfaces.insert(1, uplink);
    let all = world.vpp.interfaces.values().cloned().collect();
    world.event(Event::Vpp(VppEvent::Interfaces(all)));
    world.event(Event::Vpp(VppEvent::Done(ops[0].id, result)));
    world.settle();
    assert!(world.engine.status().ready(), "{:?}", world.engine.status().vpp);
}

#[test]
fn where_to_listen_follows_the_configuration_and_the_node() {
    let mut world = World::new();
    world.cluster.nodes.insert(NodeName::from(ME), me());
    assert_eq!(world.engine.listen(), []);
    world.list();
    let listen =
        |world: &World| -> Vec<String> { world.engine.listen().iter().map(ToString::to_string).collect() };
    assert_eq!(listen(&world), ["0.0.0.0:179", "[::]:179"]);
    let mut config = |name: BgpConfigName, port: Option<u16>, bind_node_ip| {
        let config = BgpConfig { listen_port: port.map(PeerPort), bind_node_ip, ..BgpConfig::default() };
        world.event(Event::BgpConfig(Change::Upsert(name, config)));
        listen(&world)
    };
    let own = || BgpConfigName::Node(ME.into());
    assert_eq!(config(BgpConfigName::Node("node-b".into()), Some(1), true), ["0.0.0.0:179", "[::]:179"]);
    assert_eq!(config(BgpConfigName::Default, Some(1790), false), ["0.0.0.0:1790", "[::]:1790"]);
    assert_eq!(
        config(own(), Some(1791), true),
        ["0.0.0.0:1791", "[::]:1791"],
        "only the default one says where"
    );
    assert_eq!(config(BgpConfigName::Default, None, true), ["192.0.2.1:1791", "[2001:db8::1]:1791"]);
    assert_eq!(config(own(), None, false), ["192.0.2.1:179", "[2001:db8::1]:179"]);
    world.node(ME, Some(Node { ipv4: Some("192.0.2.77/24".parse().unwrap()), ..Node::default() }));
    assert_eq!(listen(&world), ["192.0.2.77:179", "[::]:179"], "a family without address has the wildcard");
    world.node(ME, None);
    assert_eq!(listen(&world), Vec::<String>::new());
}

/// The F bits of RFC 4724, of the sessions that are told last.
#[test]
fn peers_hear_whether_vpp_has_kept_what_an_earlier_run_wrote() {
    let mut world = world();
    let node_b = Node { ipv4: Some("192.0.2.2/24".parse().unwrap()), ..Node::default() };
    world.node("node-b", Some(node_b));
    world.route("203.0.113.0/24", via(&["192.0.2.2"]));
    world.settle();
    let told = |world: &World| {
        world.commands.iter().rev().find_map(|command| match command {
            Command::PutPeer(_, config) => Some(config.graceful_restart.unwrap().forwarding),
            _ => None,
        })
    };
    let start = |world: &mut World| {
        world.restart_agent();
        world.commands.clear();
        world.connect();
        world.list();
        world.settle();
    };
    assert_eq!(told(&world), Some(FamilySet::EMPTY), "VPP was new");
    start(&mut world);
    assert_eq!(told(&world), Some(FamilySet::UNICAST), "VPP has gone on");
    world.restart_vpp();
    start(&mut world);
    assert_eq!(told(&world), Some(FamilySet::EMPTY), "VPP has lost everything");
}
