//! Networks beside the default one: tunnels and tables of their own, restarts at every step, teardown in order.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use agent_core::Engine;
use agent_core::event::SwIfIndex;
use agent_core::model::{Encapsulation, Network, Node, Pool, TableId, Vni};
use agent_core::plan::VppAction;
use bgp_core::Family;
use world::{Best, Fate, ME, World};

fn node(ipv4: &str, ipv6: &str) -> Node {
    Node { ipv4: Some(ipv4.parse().unwrap()), ipv6: Some(ipv6.parse().unwrap()), ..Node::default() }
}

fn network(vni: u32) -> Network {
    Network { vni: Vni::new(vni).unwrap(), range: "10.50.0.0/16".parse().unwrap(), physical: None }
}

fn table(vni: u32) -> TableId {
    TableId::of_network(Vni::new(vni).unwrap())
}

fn via(hop: &str) -> Option<Best> {
    Some(Best::Via(vec![hop.parse().unwrap()]))
}

/// Nothing has happened yet. Two networks have the same prefix, each behind its own node, and so has a pool.
fn fresh() -> World {
    let mut world = World::new();
    world.config.multinet = true;
    world.engine = Engine::new(world.config.clone());
    let cluster = &mut world.cluster;
    cluster.nodes.insert(ME.into(), node("192.0.2.1/24", "2001:db8::1/64"));
    cluster.nodes.insert("b".into(), node("192.0.2.2/24", "2001:db8::2/64"));
    let pool = Pool { ipip: Encapsulation::Always, ..Pool::new("10.50.0.0/16".parse().unwrap()) };
    cluster.pools.insert("pods".into(), pool);
    cluster.networks.insert("blue".into(), network(77));
    cluster.networks.insert("red".into(), network(78));
    for (nlri, hop) in [
        ("64512:77:10.50.1.0/24", "192.0.2.2"),
        ("64512:77:fd00:50::/64", "2001:db8::2"),
        ("64512:78:10.50.1.0/24", "192.0.2.3"),
        // Nobody has this network.
        ("64512:79:10.50.1.0/24", "192.0.2.2"),
    ] {
        cluster.vpn.insert(nlri.parse().unwrap(), via(hop).unwrap());
    }
    cluster.rib.insert("10.50.1.0/24".parse().unwrap(), via("192.0.2.2").unwrap());
    world
}

fn started() -> World {
    let mut world = fresh();
    start(&mut world);
    world
}

fn start(world: &mut World) {
    world.connect();
    world.list();
    world.converge();
    world.settle();
}

fn routes(world: &World) -> Vec<String> {
    let written = |(key, paths): (String, Vec<String>)| format!("{key}: {}", paths.join(", "));
    world.vpp.canonical().routes.into_iter().map(written).collect()
}

#[test]
fn each_network_has_tunnels_and_tables_of_its_own() {
    let world = started();
    let status = world.engine.status();
    assert!(status.settled(), "{status:?}");
    let (blue, red) = (table(77), table(78));
    let expected = [
        "10.50.1.0/24 table 0: tunnel 192.0.2.1 192.0.2.2 weight 1".to_owned(),
        format!(
            "10.50.1.0/24 table {blue}: 192.0.2.2 in vxlan tunnel 192.0.2.1 to 192.0.2.2 vni 77 port 4789 weight 1"
        ),
        format!(
            "10.50.1.0/24 table {red}: 192.0.2.3 in vxlan tunnel 192.0.2.1 to 192.0.2.3 vni 78 port 4789 weight 1"
        ),
        "192.0.2.2/32 table 2: tunnel 192.0.2.1 192.0.2.2 weight 1".to_owned(),
        format!(
            "fd00:50::/64 table {blue}: 2001:db8::2 in vxlan tunnel 2001:db8::1 to 2001:db8::2 vni 77 port 4789 weight 1"
        ),
    ];
    assert_eq!(routes(&world), expected);
    let tunnels = world.vpp.canonical().tunnels;
    let settings = &tunnels["vxlan tunnel 192.0.2.1 to 192.0.2.2 vni 77 port 4789"];
    for part in [
        "up=true from=None",
        "addresses=2",
        &format!("ipv4-unicast table={blue}"),
        &format!("ipv6-unicast table={blue}"),
    ] {
        assert!(settings.contains(part), "{settings}");
    }
    // VPP refuses another table to an interface that has addresses.
    let place = |what: &dyn Fn(&VppAction) -> bool| world.log.iter().position(what).unwrap();
    let index = |index: &SwIfIndex, of: u32| *index == SwIfIndex(of);
    for of in world.vpp.vrfs.keys().map(|(of, _)| *of) {
        let vrf = place(&|action| matches!(action, VppAction::SetVrf { index: at, .. } if index(at, of)));
        let dressed =
            place(&|action| matches!(action, VppAction::SetAddress { index: at, .. } if index(at, of)));
        assert!(vrf < dressed, "{:?}", world.log);
    }
}

#[test]
fn a_network_that_goes_takes_everything_along_in_order() {
    let mut world = started();
    world.log.clear();
    world.network("blue", None);
    world.settle();
    let kinds: Vec<&str> = world
        .log
        .iter()
        .map(|action| match action {
            VppAction::DelRoute { .. } => "route",
            VppAction::DelVxlan { .. } => "tunnel",
            VppAction::DelTable { .. } => "table",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["route", "route", "tunnel", "tunnel", "table", "table"]);
    let tables = world.vpp.canonical().tables;
    assert_eq!(tables, [(table(78), Family::Ipv4Unicast), (table(78), Family::Ipv6Unicast)]);
    world.network("blue", Some(network(77)));
    world.settle();
    assert_eq!(world.vpp.canonical(), started().vpp.canonical());
    // Its last destination takes the tunnel and the tables along, too.
    world.vpn("64512:78:10.50.1.0/24", None);
    world.settle();
    assert!(!world.vpp.canonical().tables.iter().any(|(at, _)| *at == table(78)));
}

#[test]
fn who_announces_under_another_distinguisher_is_heard_too() {
    let mut world = started();
    world.vpn("192.0.2.9:77:10.50.1.0/24", via("192.0.2.9"));
    world.vpn("192.0.2.9:77:10.50.9.0/24", via("192.0.2.9"));
    world.settle();
    let blue = table(77);
    let to = |prefix: &str, hop: &str| {
        routes(&world).iter().any(|route| route.starts_with(&format!("{prefix} table {blue}: {hop} in ")))
    };
    assert!(to("10.50.1.0/24", "192.0.2.2") && to("10.50.9.0/24", "192.0.2.9"));
    world.vpn("64512:77:10.50.1.0/24", None);
    world.settle();
    let to = |prefix: &str, hop: &str| {
        routes(&world).iter().any(|route| route.starts_with(&format!("{prefix} table {blue}: {hop} in ")))
    };
    assert!(to("10.50.1.0/24", "192.0.2.9"), "the other one is left");
}

#[test]
fn a_network_that_cannot_be_is_told_and_does_nothing() {
    let mut world = started();
    let before = world.vpp.canonical();
    let said = |world: &World| {
        world
            .engine
            .conditions()
            .map(|condition| format!("{} {}", condition.object.name, condition.field))
            .collect::<Vec<_>>()
    };
    world.network("twin", Some(network(77)));
    world.network("usual", Some(network(4096)));
    world.network("away", Some(Network { physical: Some("eth9".into()), ..network(90) }));
    world.settle();
    assert_eq!(said(&world), ["away spec.physicalNetworkName", "twin spec.vni", "usual spec.vni"]);
    assert_eq!(world.vpp.canonical(), before);
    // The first by name goes: the other one takes its place, and nothing changes in VPP.
    world.log.clear();
    world.network("blue", None);
    world.settle();
    assert_eq!(world.log, []);
    assert_eq!(said(&world), ["away spec.physicalNetworkName", "usual spec.vni"]);
}

#[test]
fn interrupted_after_each_operation() {
    let expected = started().vpp.canonical();
    for step in 0..200 {
        let mut world = fresh();
        world.connect();
        world.list();
        world.converge();
        world.window = 1;
        let mut done = 0;
        while done < step && world.step(1) {
            done += 1;
        }
        let finished = done < step;
        world.window = 16;
        // The agent is killed, and takes over what it left.
        world.restart_agent();
        start(&mut world);
        assert_eq!(world.vpp.canonical(), expected, "killed at step {step}");
        assert!(world.engine.status().settled(), "{:?}", world.engine.status());
        // VPP is, and is filled again.
        world.restart_vpp();
        world.connect();
        world.settle();
        assert_eq!(world.vpp.canonical(), expected, "VPP killed after step {step}");
        if finished {
            return;
        }
    }
    panic!("it never ends");
}

#[test]
fn what_is_taken_over_is_asked_for_only_where_vpp_does_not_show_it() {
    let mut world = started();
    world.restart_agent();
    world.log.clear();
    start(&mut world);
    for action in &world.log {
        let unseen = matches!(
            action,
            VppAction::Dump
                | VppAction::SetGso { .. }
                | VppAction::SetCnat { .. }
                | VppAction::AddDecapNext { .. }
                | VppAction::Nat(_)
        );
        assert!(unseen, "{action:?}");
    }
    // A network that went meanwhile is swept, tables and all.
    world.cluster.networks.remove(&"red".into());
    world.restart_agent();
    start(&mut world);
    assert!(!world.vpp.canonical().tables.iter().any(|(at, _)| *at == table(78)));
}

#[test]
fn answers_that_get_lost_change_nothing_in_the_end() {
    let expected = started().vpp.canonical();
    for fate in [Fate::Retry, Fate::Unanswered, Fate::Swallowed] {
        for at in 0..40 {
            let mut world = fresh();
            world.connect();
            world.list();
            world.converge();
            world.window = 1;
            for _ in 0..at {
                world.step(1);
            }
            world.fates.push_back(fate);
            world.window = 16;
            world.settle();
            assert_eq!(world.vpp.canonical(), expected, "{fate:?} at {at}");
        }
    }
}

#[test]
fn without_the_feature_there_are_no_networks() {
    let mut world = fresh();
    world.config.multinet = false;
    world.engine = Engine::new(world.config.clone());
    world.cluster.vpn.clear();
    start(&mut world);
    assert!(world.engine.status().settled());
    assert!(world.vpp.canonical().tables.is_empty());
    assert_eq!(world.engine.conditions().count(), 2);
}
