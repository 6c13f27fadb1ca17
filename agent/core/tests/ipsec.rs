//! Tunnels that IKEv2 protects: add, delete, change, restarts at every step, other nodes that do not take part.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::time::Duration;

use agent_core::config::IpsecConfig;
use agent_core::explain::ObjectStanding;
use agent_core::model::{Encapsulation, Node, NodeName, Pool, PoolName, Psk};
use agent_core::plan::{IkeAction, VppAction, VppFailure};
use agent_core::{Change, Event};
use world::{Best, Cluster, ME, World};

const POD: &str = "10.1.0.0/26";
const REMOTE: &str = "192.0.2.50";
const GREATER: &str = "192.0.2.2";

fn node(ipv4: &str) -> Node {
    Node { ipv4: Some(ipv4.parse().unwrap()), ..Node::default() }
}

/// Our node has the smaller address of the two where the other one shall begin.
fn cluster(own: &str) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.nodes.insert(NodeName::from(ME), node(&format!("{own}/24")));
    let other = Node { ipv6: Some("2001:db8::2/64".parse().unwrap()), ..node(&format!("{GREATER}/24")) };
    cluster.nodes.insert(NodeName::from("node-b"), other);
    cluster.nodes.insert(NodeName::from("node-c"), node(&format!("{REMOTE}/24")));
    let pool = Pool { ipip: Encapsulation::Always, ..Pool::new("10.0.0.0/8".parse().unwrap()) };
    cluster.pools.insert(PoolName::from("pods"), pool);
    cluster
}

fn with(psk: &str) -> Option<IpsecConfig> {
    Some(IpsecConfig { psk: Psk::new(psk.as_bytes().to_vec()), ..IpsecConfig::default() })
}

fn world(own: &str, ipsec: Option<IpsecConfig>) -> World {
    let mut world = World::new();
    world.config.ipsec = ipsec;
    world.restart_agent();
    world.cluster = cluster(own);
    world
}

fn start(world: &mut World) {
    world.connect();
    world.list();
    world.converge();
    world.run();
}

fn via(hop: &str) -> Option<Best> {
    Some(Best::Via(vec![hop.parse().unwrap()]))
}

/// The tunnel to this address: whether it is there, and whether it is up.
fn tunnel(world: &World, remote: &str) -> Option<bool> {
    let remote = Some(remote.parse().unwrap());
    let ours = |(index, tunnel): (&u32, &agent_core::desired::Tunnel)| {
        (tunnel.remote() == remote).then(|| world.vpp.interfaces[index].admin_up)
    };
    world.vpp.tunnels.iter().find_map(ours)
}

fn ike_log(world: &World) -> Vec<&'static str> {
    let word = |action: &VppAction| match action {
        VppAction::Ike(IkeAction::PutProfile(_)) => Some("put"),
        VppAction::Ike(IkeAction::DeleteProfile { .. }) => Some("delete"),
        VppAction::Ike(IkeAction::Initiate { renew: false, .. }) => Some("begin"),
        VppAction::Ike(IkeAction::Initiate { renew: true, .. }) => Some("begin anew"),
        _ => None,
    };
    world.log.iter().filter_map(word).collect()
}

fn blocked(world: &World) -> Vec<String> {
    let report = world.engine.status().vpp.unwrap();
    report.blocked.iter().map(|blocked| format!("{}: {}", blocked.object, blocked.reason)).collect()
}

fn has_route(world: &World) -> bool {
    world.vpp.routes.keys().any(|key| key.prefix.to_string() == POD)
}

#[test]
fn the_greater_address_begins_and_the_tunnel_comes_up_with_the_association() {
    let mut world = world("192.0.2.77", with("key"));
    world.vpp.ike_peer(GREATER, Some("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    assert_eq!(tunnel(&world, GREATER), Some(true));
    assert_eq!(ike_log(&world), ["put", "begin"]);
    assert!(has_route(&world));
    assert!(
        !world.log.iter().any(|action| matches!(action, VppAction::SetUp { .. })),
        "nobody sets it up but VPP"
    );
    assert_eq!(blocked(&world), [""; 0]);
    world.settle();
    assert_eq!(ike_log(&world), ["put", "begin"], "what is up is left alone");
}

#[test]
fn the_other_one_begins_where_its_address_is_greater() {
    let mut world = world("192.0.2.1", with("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    world.settle();
    assert_eq!((tunnel(&world, GREATER), ike_log(&world)), (Some(false), vec!["put"]));
    let waits = "association of ipip tunnel 192.0.2.1 to 192.0.2.2: waits for 192.0.2.2 to begin";
    assert_eq!(blocked(&world), [waits]);
    assert!(world.engine.status().ready(), "another node's absence is not ours");
    let objects = world.engine.explain(POD.parse().unwrap()).objects;
    let session = objects.iter().find(|object| object.object.to_string().starts_with("association")).unwrap();
    assert_eq!(
        (session.standing, session.reason.as_str()),
        (ObjectStanding::Blocked, "waits for 192.0.2.2 to begin")
    );
    world.vpp.ike_peer(GREATER, Some("key"));
    world.news();
    world.run();
    assert_eq!((tunnel(&world, GREATER), blocked(&world)), (Some(true), vec![]));
    // It goes away: nothing to do but wait again.
    world.vpp.ike_peer(GREATER, None);
    world.news();
    world.run();
    let ended = "association of ipip tunnel 192.0.2.1 to 192.0.2.2: the association with 192.0.2.2 has ended";
    assert_eq!(blocked(&world), [ended]);
    world.settle();
    assert_eq!((blocked(&world), ike_log(&world)), (vec![waits.to_owned()], vec!["put"]));
}

#[test]
fn what_is_not_answered_is_begun_anew_less_and_less_often_and_not_at_all_once_nobody_wants_it() {
    let mut world = world("192.0.2.77", with("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    let mut beginnings = Vec::new();
    let began = world.now;
    while world.now.saturating_since(began) < Duration::from_secs(1200) {
        let count = ike_log(&world).len();
        world.pass(Duration::from_secs(1));
        if ike_log(&world).len() > count {
            beginnings.push(world.now.saturating_since(began).as_secs());
        }
    }
    assert_eq!(beginnings, [10, 30, 70, 150, 310, 610, 910]);
    assert_eq!(world.vpp.exchanges.len(), 1, "VPP has but one of them to go on with");
    assert!(blocked(&world)[0].contains("192.0.2.2 takes no part, beginnings: 8"), "{:?}", blocked(&world));
    world.route(POD, None);
    world.run();
    let before = ike_log(&world).len();
    for _ in 0..1200 {
        world.pass(Duration::from_secs(1));
    }
    assert_eq!(ike_log(&world)[before..], ["delete"]);
    assert_eq!((tunnel(&world, GREATER), world.vpp.profiles.len()), (None, 0));
}

#[test]
fn an_audit_begins_nothing_sooner() {
    let mut world = world("192.0.2.77", with("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    world.pass(Duration::from_secs(10));
    assert_eq!(ike_log(&world), ["put", "begin", "begin anew"]);
    world.pass(Duration::from_secs(5));
    world.engine.audit(world.now).unwrap();
    world.run();
    assert_eq!(world.engine.audited().map(|audit| audit.found), Some(0));
    world.pass(Duration::from_secs(14));
    assert_eq!(ike_log(&world).len(), 3, "{:?}", ike_log(&world));
    world.pass(Duration::from_secs(1));
    assert_eq!(ike_log(&world)[3..], ["begin anew"]);
}

#[test]
fn an_association_that_ends_is_given_time_and_then_begun_anew() {
    let mut world = world("192.0.2.77", with("key"));
    world.vpp.ike_peer(GREATER, Some("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    world.vpp.ike_peer(GREATER, None);
    world.news();
    world.pass(Duration::from_secs(5));
    assert_eq!(ike_log(&world), ["put", "begin"], "VPP begins again by itself");
    world.pass(Duration::from_secs(5));
    assert_eq!(ike_log(&world), ["put", "begin", "begin anew"]);
    world.vpp.ike_peer(GREATER, Some("key"));
    world.news();
    world.settle();
    assert_eq!((tunnel(&world, GREATER), blocked(&world).len()), (Some(true), 0));
}

#[test]
fn a_restart_adopts_by_name_and_disturbs_nothing() {
    let mut world = world("192.0.2.77", with("key"));
    world.vpp.ike_peer(GREATER, Some("key"));
    world.vpp.ike_peer(REMOTE, Some("key"));
    world.neighbours();
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    world.cluster.rib.insert("10.2.0.0/26".parse().unwrap(), via(REMOTE).unwrap());
    start(&mut world);
    assert_eq!((tunnel(&world, GREATER), tunnel(&world, REMOTE)), (Some(true), Some(true)));
    world.log.clear();
    world.restart_agent();
    world.cluster.rib.remove(&"10.2.0.0/26".parse().unwrap());
    world.connect();
    world.run();
    world.list();
    world.run();
    assert_eq!((ike_log(&world), tunnel(&world, REMOTE)), (vec![], Some(true)));
    world.converge();
    world.settle();
    assert_eq!((ike_log(&world), tunnel(&world, REMOTE)), (vec!["delete"], None));
    assert_eq!(tunnel(&world, GREATER), Some(true));
}

#[test]
fn another_key_makes_the_profile_anew() {
    let mut world = world("192.0.2.77", with("key"));
    world.vpp.ike_peer(GREATER, Some("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    world.log.clear();
    world.config.ipsec = with("other");
    world.restart_agent();
    world.vpp.ike_peer(GREATER, Some("other"));
    start(&mut world);
    assert_eq!(ike_log(&world), ["put", "begin"]);
    assert_eq!(tunnel(&world, GREATER), Some(true));
    assert!(
        !format!("{:?}{:?}", world.log, world.engine.status()).contains("other"),
        "a key is shown nowhere"
    );
}

#[test]
fn without_a_key_nothing_is_made_and_the_condition_says_so() {
    let mut world = world("192.0.2.77", Some(IpsecConfig::default()));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    assert_eq!((tunnel(&world, GREATER), has_route(&world), ike_log(&world)), (None, false, vec![]));
    let conditions: Vec<String> = world.engine.conditions().map(ToString::to_string).collect();
    assert!(
        conditions.iter().any(|condition| condition.starts_with("setting ipsec.psk: ")),
        "{conditions:?}"
    );
}

#[test]
fn ipip_and_ipsec_take_the_tunnel_over_from_one_another_and_nothing_leaves_in_the_clear_meanwhile() {
    let mut world = world("192.0.2.77", None);
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    assert_eq!((tunnel(&world, GREATER), world.vpp.profiles.len()), (Some(true), 0));
    world.config.ipsec = with("key");
    world.restart_agent();
    world.log.clear();
    start(&mut world);
    assert_eq!((tunnel(&world, GREATER), ike_log(&world)), (Some(false), vec!["put", "begin"]));
    world.vpp.ike_peer(GREATER, Some("key"));
    world.news();
    world.run();
    assert_eq!(tunnel(&world, GREATER), Some(true));
    // And back: the world refuses to have a protected tunnel set up.
    world.config.ipsec = None;
    world.restart_agent();
    start(&mut world);
    world.settle();
    assert_eq!((tunnel(&world, GREATER), world.vpp.profiles.len()), (Some(true), 0));
    assert!(has_route(&world));
}

#[test]
fn a_tunnel_that_vpp_takes_away_comes_back_with_its_profile_and_its_routes() {
    let mut world = world("192.0.2.1", with("key"));
    world.vpp.ike_peer(GREATER, Some("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    assert_eq!(tunnel(&world, GREATER), Some(true));
    world.vpp.disbelieve(GREATER);
    world.news();
    world.settle();
    assert_eq!((tunnel(&world, GREATER), has_route(&world)), (Some(true), true));
    assert_eq!(world.vpp.profiles.len(), 1);
}

#[test]
fn an_ipv6_next_hop_shares_the_tunnel_and_follows_its_node() {
    let mut world = world("192.0.2.77", with("key"));
    world.vpp.ike_peer(GREATER, Some("key"));
    world.vpp.ike_peer("192.0.2.3", Some("key"));
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    world.cluster.rib.insert("10.2.0.0/26".parse().unwrap(), via("2001:db8::2").unwrap());
    start(&mut world);
    assert_eq!(world.vpp.profiles.len(), 1);
    let moved = Node { ipv6: Some("2001:db8::2/64".parse().unwrap()), ..node("192.0.2.3/24") };
    world.node("node-b", Some(moved));
    world.settle();
    assert_eq!((tunnel(&world, "192.0.2.3"), world.vpp.profiles.len()), (Some(true), 2));
    world.event(Event::Node(Change::Delete(NodeName::from("node-b"))));
    world.settle();
    let conditions: Vec<String> = world.engine.conditions().map(ToString::to_string).collect();
    assert!(conditions.iter().any(|condition| condition.contains("next hop 2001:db8::2")), "{conditions:?}");
    assert_eq!(tunnel(&world, "192.0.2.3"), None);
}

#[test]
fn a_vpp_without_ikev2_carries_nothing_rather_than_in_the_clear() {
    let mut world = world("192.0.2.77", with("key"));
    world.broken = |action| match action {
        VppAction::Ike(_) => Some(VppFailure::Unsupported("ikev2_profile_add_del".into())),
        _ => None,
    };
    world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
    start(&mut world);
    world.settle();
    assert_eq!((tunnel(&world, GREATER), has_route(&world)), (Some(false), false));
    let blocked = blocked(&world);
    assert!(blocked.iter().any(|line| line.contains("this VPP has no ikev2_profile_add_del")), "{blocked:?}");
}

#[test]
fn interrupted_after_each_operation_it_ends_the_same() {
    let calm = {
        let mut world = world("192.0.2.77", with("key"));
        world.vpp.ike_peer(GREATER, Some("key"));
        world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
        start(&mut world);
        world.settle();
        world
    };
    for most in 0..calm.log.len() {
        for vpp_too in [false, true] {
            let mut world = world("192.0.2.77", with("key"));
            world.window = 1;
            world.vpp.ike_peer(GREATER, Some("key"));
            world.cluster.rib.insert(POD.parse().unwrap(), via(GREATER).unwrap());
            world.connect();
            world.list();
            world.converge();
            for _ in 0..most {
                world.step(1);
            }
            let peers = world.vpp.ike_peers.clone();
            if vpp_too {
                world.restart_vpp();
                world.vpp.ike_peers = peers;
            }
            world.restart_agent();
            world.window = 16;
            start(&mut world);
            world.settle();
            assert_eq!(world.vpp.canonical(), calm.vpp.canonical(), "after {most}, {vpp_too}");
            assert_eq!(tunnel(&world, GREATER), Some(true), "after {most}, {vpp_too}");
            assert_eq!(world.vpp.profiles.len(), 1);
        }
    }
}
