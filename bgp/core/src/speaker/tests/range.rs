//! Dynamic neighbours, and what is said of who may connect.

use std::num::NonZeroU8;

use super::*;
use crate::command::{Chain, Contradiction, PeerRange, Refusal};
use crate::policy::PolicyDef;
use crate::secret::Secret;
use crate::session::{DownReason, StopReason};
use crate::speaker::Door;

const LINGER: Duration = Duration::from_secs(30);

fn range() -> PeerRange {
    PeerRange::new(PeerConfig { families: FamilySet::UNICAST, ..PeerConfig::new(RemoteAsn::External) })
}

fn put(world: &mut World, prefix: &str, range: PeerRange) -> Applied {
    world.command(0, Command::PutPeerRange(prefix.parse().unwrap(), range))
}

/// Node 0 with a prefix that holds the others, who connect to it.
fn world(range: PeerRange) -> World {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    assert_eq!(put(&mut world, "192.0.2.0/24", range), Applied::Applied);
    world.load();
    world
}

fn connect(world: &mut World, node: usize) {
    let config = PeerConfig { connect_retry: Duration::from_secs(1), ..world.config(0) };
    world.command(node, Command::PutPeer(key(0), config));
    world.settle();
}

fn known(world: &World) -> Vec<PeerKey> {
    world.nodes[0].speaker.peers(world.now).into_iter().map(|peer| peer.key).collect()
}

#[test]
fn who_connects_from_a_prefix_becomes_a_neighbour_and_exchanges_routes() {
    let mut world = world(range());
    world.originate(0, nth(1), marked(1));
    world.originate(1, nth(2), marked(2));
    assert_eq!(known(&world), []);
    connect(&mut world, 1);
    assert!(world.is_up(0, 1));
    assert_eq!(world.peer(0, 1).range, Some("192.0.2.0/24".parse().unwrap()));
    assert_eq!(world.best(1, Family::Ipv4Unicast).len(), 2);
    assert_eq!(world.best(0, Family::Ipv4Unicast).len(), 2);
    // It never connects to them.
    world.cut(0, 1, true);
    world.pass(Duration::from_secs(5));
    let states: Vec<_> = world.nodes[0].events.iter().map(|(_, kind)| kind.clone()).collect();
    assert!(!states.contains(&PeerEventKind::State(State::Connect)), "{states:?}");
    assert_eq!(world.peer(0, 1).state, State::Active);
}

#[test]
fn one_that_has_gone_is_forgotten_after_a_while_with_its_routes() {
    let mut world = world(range());
    world.originate(1, nth(2), marked(2));
    connect(&mut world, 1);
    world.cut(0, 1, true);
    world.pass(LINGER - Duration::from_secs(1));
    assert_eq!(known(&world), [key(1)]);
    // Back in time, it is the same neighbour.
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(40));
    assert_eq!((world.is_up(0, 1), world.peer(0, 1).established_count), (true, 2));
    world.cut(0, 1, true);
    world.pass(LINGER);
    assert_eq!(known(&world), []);
    assert!(world.best(0, Family::Ipv4Unicast).is_empty());
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(40));
    assert_eq!((world.is_up(0, 1), world.peer(0, 1).established_count), (true, 1));
}

#[test]
fn one_whose_routes_are_kept_is_known_until_they_are_not() {
    let graceful = Some(GracefulRestart::USUAL);
    let config = PeerConfig { graceful_restart: graceful, ..range().config };
    let mut world = world(PeerRange { limit: 1, ..PeerRange::new(config) });
    world.originate(1, nth(2), marked(2));
    let config = PeerConfig { graceful_restart: graceful, ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    world.settle();
    world.cut(0, 1, true);
    world.pass(2 * LINGER);
    assert_eq!((known(&world), world.best(0, Family::Ipv4Unicast).len()), (vec![key(1)], 1));
    // Nor is its place given away.
    connect(&mut world, 2);
    assert_eq!(known(&world), [key(1)]);
    // The two minutes of the restart time are over; the other gets the place.
    world.pass(3 * LINGER);
    assert!(world.best(0, Family::Ipv4Unicast).is_empty());
    assert!(!known(&world).contains(&key(1)));
}

#[test]
fn there_are_no_more_than_the_limit_and_those_without_a_session_make_way() {
    let mut world = world(PeerRange { limit: 2, ..range() });
    for node in 1..=3 {
        connect(&mut world, node);
    }
    assert_eq!(known(&world), [key(1), key(2)]);
    assert_eq!(put(&mut world, "192.0.2.0/24", PeerRange { limit: 3, ..range() }), Applied::Applied);
    world.pass(Duration::from_secs(60));
    assert_eq!(known(&world), [key(1), key(2), key(3)]);
    // A lower limit is for those who come.
    put(&mut world, "192.0.2.0/24", PeerRange { limit: 2, ..range() });
    world.pass(Duration::from_secs(60));
    assert!((1..=3).all(|node| world.is_up(0, node)));
    world.cut(0, 1, true);
    world.cut(0, 2, true);
    world.pass(Duration::from_secs(1));
    world.cut(0, 2, false);
    world.pass(Duration::from_secs(20));
    assert_eq!(known(&world), [key(1), key(2), key(3)], "it was there and came back");
}

#[test]
fn an_operators_stop_is_remembered() {
    let mut world = world(range());
    connect(&mut world, 1);
    world.command(0, Command::DisablePeer(key(1), "maintenance".into()));
    world.pass(10 * LINGER);
    assert_eq!(known(&world), [key(1)]);
    assert!(world.peer(0, 1).disabled);
    world.command(0, Command::EnablePeer(key(1)));
    world.pass(Duration::from_secs(60));
    assert!(world.is_up(0, 1));
}

#[test]
fn who_is_configured_himself_is_no_dynamic_neighbour_any_more() {
    let mut world = world(range());
    connect(&mut world, 1);
    let config = PeerConfig { passive: true, ..range().config };
    // The same in everything that matters to the session, which goes on.
    assert_eq!(world.command(0, Command::PutPeer(key(1), config.clone())), Applied::Applied);
    assert_eq!((world.peer(0, 1).range, world.peer(0, 1).established_count), (None, 1));
    world.cut(0, 1, true);
    world.pass(10 * LINGER);
    assert_eq!(known(&world), [key(1)], "not forgotten");
    world.command(0, Command::DeletePeer(key(1)));
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(60));
    assert!(world.peer(0, 1).range.is_some(), "and now it is one again");
    // At another port it makes way for the configured one.
    world.command(0, Command::PutPeer(key(1).with_port(1179), config));
    assert_eq!(known(&world), [key(1).with_port(1179)]);
    world.pass(Duration::from_secs(60));
    assert_eq!(known(&world), [key(1).with_port(1179)]);
}

#[test]
fn a_prefix_that_goes_takes_its_neighbours_along_and_no_others() {
    let mut world = world(range());
    connect(&mut world, 1);
    connect(&mut world, 2);
    // The longer prefix counts for who comes from now on.
    assert_eq!(put(&mut world, "192.0.2.4/30", range()), Applied::Applied);
    connect(&mut world, 3);
    assert_eq!(world.peer(0, 3).range, Some("192.0.2.4/30".parse().unwrap()));
    let gone = Command::DeletePeerRange("192.0.2.0/24".parse().unwrap());
    assert_eq!(world.command(0, gone.clone()), Applied::Applied);
    assert_eq!(world.command(0, gone), Applied::Unchanged);
    world.settle();
    assert_eq!(known(&world), [key(3)]);
    let down = PeerEventKind::Down(DownReason::Stopped(StopReason::Deconfigured));
    assert!(world.nodes[0].events.contains(&(key(1), down)));
    assert!(world.peer(1, 0).last_error.unwrap().contains("Peer De-configured"));
}

#[test]
fn a_prefix_that_makes_no_sense_is_refused() {
    let mut world = world(range());
    let mut refusal = |prefix: &str, range| {
        world.try_command(0, Command::PutPeerRange(prefix.parse().unwrap(), range)).unwrap_err()
    };
    for prefix in ["192.0.2.1/24", "224.0.0.0/24", "ff02::/16"] {
        assert_eq!(refusal(prefix, range()), Refusal::PeerRange(prefix.parse().unwrap()));
    }
    let local = "2001:db8::1".parse().unwrap();
    let config = PeerConfig { local_address: Some(local), ..range().config };
    let remote = [10, 0, 0, 0].into();
    let contradiction = Refusal::Contradiction(Contradiction::IpVersions { local, remote });
    assert_eq!(refusal("10.0.0.0/8", PeerRange::new(config)), contradiction);
    let config = PeerConfig { export: Chain::named("p"), ..range().config };
    assert_eq!(refusal("10.0.0.0/8", PeerRange::new(config.clone())), Refusal::NoSuchPolicy("p".into()));
    // And a policy that one names stays.
    let policy = PolicyDef { statements: Vec::new(), default: crate::policy::Default::Accept };
    world.command(0, Command::PutPolicy("p".into(), policy));
    put(&mut world, "10.0.0.0/8", PeerRange::new(config));
    let error = world.try_command(0, Command::DeletePolicy("p".into())).unwrap_err();
    assert_eq!(error.to_string(), "policy p is used by the dynamic peers of 10.0.0.0/8");
}

#[test]
fn doors_name_everybody_once_and_change_their_version() {
    let mut world = world(range());
    let version = |world: &World| world.nodes[0].speaker.doors_version();
    let before = version(&world);
    let secret = |text: &str| Some(Secret::new(text.into()).unwrap());
    let config = PeerConfig { password: secret("a"), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), config.clone()));
    let after = version(&world);
    assert_ne!(before, after);
    let door = |from: &str, password| Door { from: from.parse().unwrap(), password };
    let doors = |world: &World| world.nodes[0].speaker.doors();
    assert_eq!(doors(&world), [door("192.0.2.2/32", secret("a")), door("192.0.2.0/24", None)]);
    // A dynamic neighbour is let in by its prefix.
    connect(&mut world, 2);
    assert_eq!((doors(&world).len(), version(&world)), (2, after));
    world.command(0, Command::PutPeer(key(1), PeerConfig { password: secret("b"), ..config }));
    assert_ne!(version(&world), after);
    assert_eq!(doors(&world)[0], door("192.0.2.2/32", secret("b")));
}

#[test]
fn a_connection_is_made_as_the_neighbour_is_configured() {
    let mut world = world(range());
    let link = |from: &str| Link {
        local: "192.0.2.1:179".parse().unwrap(),
        remote: from.parse().unwrap(),
        direction: Direction::Passive,
    };
    let welcome = |world: &World, from: &str| world.nodes[0].speaker.welcome(&link(from));
    assert_eq!(welcome(&world, "198.51.100.1:4000"), None);
    let dynamic = welcome(&world, "192.0.2.2:4000").unwrap();
    assert_eq!((dynamic.ttl, dynamic.min_ttl, dynamic.password), (1, None, None));
    let cases = [
        (RemoteAsn::External, None, None, 1, None),
        (RemoteAsn::External, Some(64), None, 64, None),
        (RemoteAsn::Internal, None, None, 64, None),
        (RemoteAsn::Internal, None, Some(1), 255, Some(255)),
        (RemoteAsn::External, Some(64), Some(2), 255, Some(254)),
        (RemoteAsn::External, None, Some(255), 255, Some(1)),
    ];
    for (remote_asn, multihop_ttl, hops, ttl, min_ttl) in cases {
        let ttl_security = hops.and_then(NonZeroU8::new);
        let config = PeerConfig { passive: true, multihop_ttl, ttl_security, ..PeerConfig::new(remote_asn) };
        world.command(0, Command::PutPeer(key(1), config));
        let transport = welcome(&world, "192.0.2.2:4000").unwrap();
        assert_eq!((transport.ttl, transport.min_ttl.map(NonZeroU8::get)), (ttl, min_ttl), "{hops:?}");
    }
}
