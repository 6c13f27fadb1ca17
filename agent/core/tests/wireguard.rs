//! A node's life with WireGuard, step by step.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::net::IpAddr;
use std::time::Duration;

use agent_core::config::{Encrypted, Encryption};
use agent_core::desired::{Tunnel, WireguardPeer};
use agent_core::event::VppEvent;
use agent_core::model::{Encapsulation, FelixConfig, KeyPair, Node, NodeName, PerFamily, Pool, PublicKey};
use agent_core::plan::{VppAction, WireguardAction};
use agent_core::{Engine, Event};
use world::{Best, ME, World, keys};

const NEAR: &str = "192.0.2.2";
const FAR: &str = "198.51.100.2";
const FAR6: &str = "2001:db8:9::2";

fn via(hop: &str) -> Option<Best> {
    Some(Best::Via(vec![hop.parse().unwrap()]))
}

fn on() -> FelixConfig {
    FelixConfig { wireguard_enabled: PerFamily { v4: Some(true), v6: Some(true) }, ..FelixConfig::default() }
}

fn node(v4: &str, v6: Option<&str>, key: Option<u8>) -> Node {
    let public = |fill: u8| PublicKey([fill; 32]);
    Node {
        ipv4: Some(v4.parse().unwrap()),
        ipv6: v6.map(|v6| v6.parse().unwrap()),
        wireguard: PerFamily {
            v4: key.map(public),
            v6: key.filter(|_| v6.is_some()).map(|key| public(key + 100)),
        },
        ..Node::default()
    }
}

fn world() -> World {
    world_with(Encryption::default())
}

/// Our node, one beside it without a key, one elsewhere with one; WireGuard is on, pools have and have no encapsulation.
fn world_with(encryption: Encryption) -> World {
    let mut world = World::new();
    world.config.encryption = encryption;
    world.engine = Engine::new(world.config.clone());
    let nodes = &mut world.cluster.nodes;
    nodes.insert(ME.into(), node("192.0.2.1/24", Some("2001:db8::1/64"), None));
    nodes.insert("near".into(), node("192.0.2.2/24", None, None));
    nodes.insert("far".into(), node("198.51.100.2/24", Some("2001:db8:9::2/64"), Some(2)));
    world.cluster.felix.insert(agent_core::model::FelixConfigName::Default, on());
    let pool = |cidr: &str, ipip| Pool { ipip, ..Pool::new(cidr.parse().unwrap()) };
    let pools = &mut world.cluster.pools;
    pools.insert("tunnelled".into(), pool("10.1.0.0/16", Encapsulation::Always));
    pools.insert("plain".into(), pool("10.2.0.0/16", Encapsulation::Never));
    pools.insert(
        "tunnelled-v6".into(),
        Pool { vxlan: Encapsulation::Always, ..pool("fd00:1::/32", Encapsulation::Never) },
    );
    world.connect();
    world.list();
    world.converge();
    world.settle();
    world.log.clear();
    world
}

fn peers(world: &World) -> Vec<(PublicKey, WireguardPeer)> {
    let mut peers: Vec<_> = world.vpp.peers.values().map(|peer| (peer.public, peer.value.clone())).collect();
    peers.sort_by_key(|(key, _)| *key);
    peers
}

fn allowed(world: &World) -> Vec<String> {
    let [(_, peer)] = &peers(world)[..] else { panic!("{:?}", peers(world)) };
    peer.allowed.iter().map(ToString::to_string).collect()
}

fn path(world: &World, prefix: &str) -> String {
    let routes = world.vpp.canonical().routes;
    routes.get(&format!("{prefix} table 0")).map_or_else(String::new, |paths| paths.join(" + "))
}

fn conditions(world: &World) -> Vec<String> {
    world.engine.conditions().map(ToString::to_string).collect()
}

fn peer_actions(world: &World) -> (usize, usize) {
    let count = |which: fn(&WireguardAction) -> bool| {
        world
            .log
            .iter()
            .filter(|action| matches!(action, VppAction::Wireguard(action) if which(action)))
            .count()
    };
    (
        count(|action| matches!(action, WireguardAction::AddPeer { .. })),
        count(|action| matches!(action, WireguardAction::DelPeer { .. })),
    )
}

#[test]
fn a_node_with_a_key_becomes_a_peer_of_the_interface_of_its_ip_version() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.route("fd00:1:5::/64", via(FAR6));
    world.settle();
    let [(key4, peer4), (key6, peer6)] = &peers(&world)[..] else { panic!("{:?}", peers(&world)) };
    assert_eq!((*key4, *key6), (PublicKey([2; 32]), PublicKey([102; 32])));
    let texts = |peer: &WireguardPeer| peer.allowed.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(peer4), ["10.1.5.0/26", "198.51.100.2/32"]);
    assert_eq!(
        texts(peer6),
        ["fd00:1:5::/64", "2001:db8:9::2/128"].map(str::to_owned).into_iter().rev().collect::<Vec<_>>()
    );
    assert_eq!((peer4.port, peer6.port, peer4.keepalive), (51820, 51821, 0));
    assert_eq!(
        (peer4.interface.key, peer6.interface.key),
        (keys(0xa4).public().id(), keys(0xa6).public().id())
    );
    let to = path(&world, "10.1.5.0/26");
    assert!(to.starts_with("198.51.100.2 in wireguard interface 192.0.2.1 port 51820"), "{to}");
    assert!(to.contains(&key4.to_string()), "the gateway leads to the peer: {to}");
    let host = world.vpp.canonical().routes["198.51.100.2/32 table 2"].join("");
    assert!(host.contains(&key4.to_string()), "{host}");
    let tunnel = &world.vpp.canonical().tunnels
        [&format!("wireguard interface 192.0.2.1 port 51820 key {}", keys(0xa4).public().id())];
    assert!(
        tunnel.contains("up=true") && tunnel.contains("mtu=8940") && tunnel.contains("cnat=true"),
        "{tunnel}"
    );
    let explained = world.engine.explain("10.1.5.0/26".parse().unwrap());
    assert_eq!(explained.carried.unwrap().hops[0].provider, Some("wireguard"));
    let objects: Vec<_> = explained.objects.iter().map(|object| object.object.to_string()).collect();
    assert!(objects.iter().any(|object| object.starts_with("wireguard peer")), "{objects:?}");
    assert!(world.engine.status().ready(), "{:?}", world.engine.status());
    let report = world.engine.status().vpp.unwrap().wireguard;
    assert_eq!(report.iter().map(|session| session.established).collect::<Vec<_>>(), [false, false]);
}

#[test]
fn what_happens_between_two_looks_at_the_executor_costs_one_change() {
    let mut world = world();
    for n in 0..50 {
        world.route(&format!("10.1.{n}.0/26"), via(FAR));
    }
    world.settle();
    assert_eq!(peer_actions(&world), (1, 0));
    assert_eq!(allowed(&world).len(), 51);
    world.log.clear();
    for n in 50..100 {
        world.route(&format!("10.1.{n}.0/26"), via(FAR));
    }
    world.route("10.1.0.0/26", None);
    world.settle();
    assert_eq!(peer_actions(&world), (1, 1));
    // The same again is no change.
    world.log.clear();
    world.relist();
    world.settle();
    let far = world.cluster.nodes[&NodeName::from("far")].clone();
    world.node("far", Some(Node { labels: [("a".to_owned(), "b".to_owned())].into(), ..far }));
    world.settle();
    assert_eq!(peer_actions(&world), (0, 0));
}

#[test]
fn more_prefixes_than_a_peer_can_have_are_covered_by_fewer() {
    let mut world = world();
    // Neighbours that can be joined.
    for n in 0..=255 {
        world.route(&format!("10.1.{n}.0/24"), via(FAR));
    }
    world.settle();
    assert_eq!(allowed(&world), ["10.1.0.0/16", "198.51.100.2/32"]);
    // And such as can't: their pool stands for them.
    for n in 0..=255 {
        world.route(&format!("10.1.{n}.0/24"), None);
        world.route(&format!("10.1.{n}.0/26"), via(FAR));
    }
    world.settle();
    assert_eq!(allowed(&world), ["10.1.0.0/16", "198.51.100.2/32"]);
}

#[test]
fn nodes_without_a_key_and_next_hops_of_no_node_are_said_aloud() {
    let mut world = world();
    world.route("10.1.6.0/26", via(NEAR));
    world.route("10.1.7.0/26", via("203.0.113.5"));
    world.settle();
    assert!(
        path(&world, "10.1.6.0/26").starts_with("tunnel 192.0.2.1 192.0.2.2"),
        "by the pool's encapsulation"
    );
    assert!(path(&world, "10.1.7.0/26").starts_with("tunnel 192.0.2.1 203.0.113.5"));
    let said = conditions(&world).join("\n");
    assert!(said.contains("Node near metadata.annotations.projectcalico.org/WireguardPublicKey: WireGuard is on and this node has published no key, so traffic to its pods is not encrypted"), "{said}");
    assert!(said.contains("NextHop 203.0.113.5: WireGuard is on and no node has this address"), "{said}");
    assert!(
        said.contains(
            "IPPool plain spec: WireGuard is on, and traffic of a pool without encapsulation is not encrypted"
        ),
        "{said}"
    );
    // It has one now: nothing is left to say, and traffic moves.
    world.node("near", Some(node("192.0.2.2/24", None, Some(3))));
    world.settle();
    assert!(path(&world, "10.1.6.0/26").starts_with("192.0.2.2 in wireguard"));
    assert!(!conditions(&world).join("\n").contains("Node near"));
    assert!(
        !world.vpp.canonical().tunnels.keys().any(|tunnel| tunnel.contains("192.0.2.2")),
        "its tunnel is gone"
    );
    // And loses it.
    world.node("near", Some(node("192.0.2.2/24", None, None)));
    world.settle();
    assert!(path(&world, "10.1.6.0/26").starts_with("tunnel 192.0.2.1 192.0.2.2"));
    assert_eq!(peers(&world).len(), 0);
}

#[test]
fn encrypt_or_drop() {
    let mut world = world_with(Encryption { what: Encrypted::Pods, or_drop: true });
    for (prefix, hop) in
        [("10.1.6.0/26", NEAR), ("10.2.6.0/26", NEAR), ("10.2.5.0/26", FAR), ("172.16.0.0/16", NEAR)]
    {
        world.route(prefix, via(hop));
    }
    world.settle();
    assert!(path(&world, "10.1.6.0/26").starts_with("Drop"));
    assert!(path(&world, "10.2.6.0/26").starts_with("Drop"), "whatever its pool's encapsulation");
    assert!(path(&world, "10.2.5.0/26").starts_with("198.51.100.2 in wireguard"));
    assert!(path(&world, "172.16.0.0/16").starts_with("Recursive"), "it is in no pool");
    assert!(conditions(&world).iter().any(|said| said.contains("Node near") && said.contains("is dropped")));
    // Of several next hops the encrypted ones do.
    world.route("10.2.7.0/26", Some(Best::Via(vec![NEAR.parse().unwrap(), FAR.parse().unwrap()])));
    world.settle();
    let to = path(&world, "10.2.7.0/26");
    assert!(to.starts_with("198.51.100.2 in wireguard") && !to.contains("Drop"), "{to}");
    world.felix(FelixConfig::default());
    world.settle();
    assert!(path(&world, "10.2.6.0/26").starts_with("Recursive"), "it is off");
}

#[test]
fn a_changed_key_is_a_new_peer_after_the_old_one_has_gone() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.settle();
    world.log.clear();
    world.node("far", Some(node("198.51.100.2/24", None, Some(9))));
    world.run();
    let order: Vec<_> = world
        .log
        .iter()
        .filter_map(|action| match action {
            VppAction::Wireguard(WireguardAction::AddPeer { .. }) => Some("add"),
            VppAction::Wireguard(WireguardAction::DelPeer { .. }) => Some("remove"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["remove", "add"], "at once, without lingering");
    assert!(
        path(&world, "10.1.5.0/26").contains(&PublicKey([9; 32]).to_string()),
        "{}",
        path(&world, "10.1.5.0/26")
    );
}

#[test]
fn a_key_that_moves_to_another_address_stays_one_peer() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.settle();
    // The node moves: first its object, then its routes.
    world.node("far", Some(node("198.51.100.7/24", None, Some(2))));
    world.settle();
    assert!(path(&world, "10.1.5.0/26").starts_with("tunnel"), "nobody is at the old address");
    world.route("10.1.5.0/26", via("198.51.100.7"));
    world.settle();
    let [(key, peer)] = &peers(&world)[..] else { panic!("{:?}", peers(&world)) };
    assert_eq!((*key, peer.endpoint), (PublicKey([2; 32]), "198.51.100.7".parse::<IpAddr>().unwrap()));
    assert!(path(&world, "10.1.5.0/26").contains(&key.to_string()));
}

#[test]
fn a_key_that_two_nodes_have_is_that_of_the_first() {
    let mut world = world();
    world.node("near", Some(node("192.0.2.2/24", None, Some(2))));
    world.route("10.1.5.0/26", via(FAR));
    world.route("10.1.6.0/26", via(NEAR));
    world.settle();
    assert!(path(&world, "10.1.5.0/26").starts_with("198.51.100.2 in wireguard"));
    assert!(path(&world, "10.1.6.0/26").starts_with("tunnel"));
    let said = conditions(&world).join("\n");
    assert!(said.contains("Node near") && said.contains("another node has published the same key"), "{said}");
    // The first one leaves it.
    world.node("far", Some(node("198.51.100.2/24", None, Some(5))));
    world.settle();
    assert!(path(&world, "10.1.6.0/26").starts_with("192.0.2.2 in wireguard"));
    assert_eq!(peers(&world).len(), 2);
}

#[test]
fn another_port_is_another_interface_and_routes_move_before_the_old_one_goes() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.settle();
    world.felix(FelixConfig { wireguard_port: PerFamily { v4: Some(1000), v6: None }, ..on() });
    // The world's VPP panics where a route still leads into what is deleted.
    world.settle();
    assert!(path(&world, "10.1.5.0/26").contains("port 1000"));
    let interfaces = world.vpp.canonical().tunnels;
    assert_eq!(interfaces.keys().filter(|key| key.starts_with("wireguard")).count(), 1, "{interfaces:?}");
    assert_eq!(peers(&world)[0].1.port, 1000);
    world.log.clear();
    world.felix(FelixConfig {
        wireguard_port: PerFamily { v4: Some(1000), v6: None },
        wireguard_keep_alive: Some(Duration::from_secs(25)),
        ..on()
    });
    world.settle();
    assert_eq!((peers(&world)[0].1.keepalive, peer_actions(&world)), (25, (1, 1)));
}

#[test]
fn a_restarted_agent_with_the_same_keys_changes_nothing_and_sweeps_what_is_no_longer_wanted() {
    let mut world = world();
    world.node("near", Some(node("192.0.2.2/24", None, Some(3))));
    world.route("10.1.5.0/26", via(FAR));
    world.route("10.1.6.0/26", via(NEAR));
    world.settle();
    let before = world.vpp.canonical();
    world.log.clear();
    world.restart_agent();
    world.connect();
    world.list();
    world.converge();
    world.settle();
    assert_eq!(peer_actions(&world), (0, 0));
    assert_eq!(world.vpp.canonical(), before);
    // It comes back to a cluster without one of them.
    world.cluster.rib.remove(&"10.1.6.0/26".parse().unwrap());
    world.log.clear();
    world.restart_agent();
    world.connect();
    world.list();
    world.run();
    assert_eq!(peer_actions(&world), (0, 0), "nothing goes before the RIB has converged");
    world.converge();
    world.settle();
    assert_eq!((peer_actions(&world), peers(&world).len()), ((0, 1), 1));
}

#[test]
fn an_interface_that_nothing_shows_to_be_ours_is_taken_when_it_is_wanted() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.settle();
    let calm = world.vpp.canonical();
    // An agent that died right after it had made the interface, in a VPP that had no uplink by then.
    let tagged = |(index, tunnel): (&u32, &Tunnel)| matches!(tunnel, Tunnel::Wireguard(_)).then_some(*index);
    let index = world.vpp.tunnels.iter().find_map(tagged).unwrap();
    let interface = world.vpp.interfaces.get_mut(&index).unwrap();
    (interface.tag, interface.admin_up, interface.unnumbered) = ("".into(), false, None);
    let addresses = std::mem::take(&mut world.vpp.interfaces.get_mut(&1).unwrap().addresses);
    world.vpp.peers.clear();
    world.vpp.bound.clear();
    world.vpp.routes.clear();
    world.restart_agent();
    world.connect();
    world.step(1);
    world.vpp.interfaces.get_mut(&1).unwrap().addresses = addresses;
    world.event(Event::Vpp(VppEvent::Interfaces(world.vpp.interfaces.values().cloned().collect())));
    world.list();
    world.converge();
    world.settle();
    assert_eq!(world.vpp.canonical(), calm);
    assert_eq!(world.vpp.tunnels.values().filter(|tunnel| matches!(tunnel, Tunnel::Wireguard(_))).count(), 1);
}

#[test]
fn a_restarted_agent_with_another_key_moves_over_to_another_interface() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.settle();
    world.config.wireguard_keys.v4 = Some(keys(0xb4));
    world.restart_agent();
    world.connect();
    world.list();
    world.converge();
    world.settle();
    let interfaces: Vec<_> =
        world.vpp.canonical().tunnels.into_keys().filter(|key| key.starts_with("wireguard")).collect();
    assert_eq!(
        interfaces,
        [format!("wireguard interface 192.0.2.1 port 51820 key {}", keys(0xb4).public().id())]
    );
    assert_eq!(peers(&world).len(), 1);
}

#[test]
fn a_peer_that_somebody_changed_or_took_away_is_put_right_and_a_roaming_one_is_left_alone() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.settle();
    let calm = world.vpp.canonical();
    let audit = |world: &mut World| {
        world.log.clear();
        world.engine.audit(world.now).unwrap();
        world.settle();
        (world.engine.audited().unwrap().found, peer_actions(world))
    };
    let (index, peer) = world.vpp.peers.iter().next().map(|(index, peer)| (*index, peer.clone())).unwrap();
    world.vpp.peers.get_mut(&index).unwrap().value.allowed.push("10.9.0.0/16".parse().unwrap());
    assert_eq!(audit(&mut world), (1, (1, 1)));
    assert_eq!(world.vpp.canonical(), calm);
    world.vpp.peers.remove(&index);
    world.vpp.bound.clear();
    assert_eq!(audit(&mut world), (1, (1, 0)));
    assert_eq!(world.vpp.canonical(), calm);
    // A stranger on our interface goes.
    let stranger = world::vpp::Peer { public: PublicKey([77; 32]), ..peer };
    world.vpp.peers.insert(9, stranger);
    assert_eq!(audit(&mut world).1, (0, 1));
    assert_eq!(world.vpp.canonical(), calm);
    // With a session it has proved who it is, wherever it speaks from.
    let peer = world.vpp.peers.get_mut(&index).unwrap();
    (peer.established, peer.value.endpoint, peer.value.port) = (true, "203.0.113.9".parse().unwrap(), 4711);
    assert_eq!(audit(&mut world), (0, (0, 0)));
    assert!(world.engine.status().vpp.unwrap().wireguard[0].established);
}

#[test]
fn sessions_are_known_and_missed_where_they_should_be_there() {
    let mut world = world();
    world.route("10.1.5.0/26", via(FAR));
    world.settle();
    let index = *world.vpp.peers.keys().next().unwrap();
    let tell = |world: &mut World, established| {
        world.event(Event::Vpp(VppEvent::WireguardSession { peer: index, established }));
        let up = world.engine.status().vpp.unwrap().wireguard[0].established;
        (up, conditions(world).iter().any(|said| said.contains("there is no WireGuard session")))
    };
    assert_eq!(tell(&mut world, true), (true, false));
    assert_eq!(tell(&mut world, false), (false, false), "there may be nothing to say");
    world.felix(FelixConfig { wireguard_keep_alive: Some(Duration::from_secs(25)), ..on() });
    world.settle();
    assert_eq!(tell(&mut world, false), (false, true));
    assert_eq!(tell(&mut world, true), (true, false));
    assert_eq!(tell(&mut world, false), (false, true));
    world.felix(on());
    world.settle();
    assert!(!conditions(&world).iter().any(|said| said.contains("no WireGuard session")), "it may be idle");
    world.felix(FelixConfig { wireguard_keep_alive: Some(Duration::from_secs(25)), ..on() });
    world.settle();
    assert_eq!(tell(&mut world, false), (false, true));
    world.route("10.1.5.0/26", None);
    world.settle();
    assert!(!conditions(&world).iter().any(|said| said.contains("no WireGuard session")), "it is nobody now");
}

#[test]
fn keys_are_published_where_wireguard_is_on_and_none_is_said_where_it_is_not() {
    let mut world = world();
    let both = PerFamily { v4: Some(keys(0xa4).public()), v6: Some(keys(0xa6).public()) };
    assert_eq!(world.engine.published_keys(), both);
    let only =
        FelixConfig { wireguard_enabled: PerFamily { v4: None, v6: Some(true) }, ..FelixConfig::default() };
    world.felix(only);
    assert_eq!(world.engine.published_keys(), PerFamily { v4: None, ..both });
    // No address to be reached at.
    world.node(ME, Some(node("192.0.2.1/24", None, None)));
    assert_eq!(world.engine.published_keys(), PerFamily::default());
    world.config.wireguard_keys.v4 = None::<KeyPair>;
    world.restart_agent();
    world.connect();
    world.cluster.felix.insert(agent_core::model::FelixConfigName::Default, on());
    world.list();
    assert!(
        conditions(&world)
            .iter()
            .any(|said| said.contains("wireguardEnabled is set and this node has no key"))
    );
}
