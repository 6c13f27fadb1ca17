//! Route reflection (RFC 4456) among several speakers.

use super::*;
use crate::command::{Contradiction, NextHopMode, Refusal};
use crate::rib::PathRejected;

const V4: Family = Family::Ipv4Unicast;

/// Speakers of one AS, neighbours as in `pairs`; of each pair the second is a client of the first where that is said.
fn cluster(nodes: usize, pairs: &[(usize, usize, bool)]) -> World {
    let mut world = World::new(&vec![65010; nodes]);
    for &(reflector, other, client) in pairs {
        join(&mut world, reflector, other, client);
    }
    world.load();
    world.settle();
    world
}

fn join(world: &mut World, reflector: usize, other: usize, client: bool) {
    let config = PeerConfig { passive: true, ..world.config(reflector) };
    world.command(other, Command::PutPeer(key(reflector), config));
    set_client(world, reflector, other, client);
}

fn set_client(world: &mut World, reflector: usize, other: usize, client: bool) -> Applied {
    let config = PeerConfig { route_reflector_client: client, ..world.config(other) };
    world.command(reflector, Command::PutPeer(key(other), config))
}

fn id(node: usize) -> RouterId {
    RouterId(0xc000_0201 + node as u32)
}

fn heard(world: &mut World, node: usize, from: usize) -> Vec<Nlri> {
    world.heard(node, from, V4).into_keys().collect()
}

/// ORIGINATOR_ID, CLUSTER_LIST and verdict of a route that came from somewhere.
fn marks(
    world: &mut World,
    node: usize,
    from: usize,
) -> Vec<(Option<RouterId>, Vec<RouterId>, Option<PathRejected>)> {
    let routes = world.routes(node, RouteTable::AdjRibIn(key(from)), V4);
    let marks = routes.iter().map(|route| {
        let set = route.paths[0].attrs.view();
        (set.originator(), set.cluster_list().collect(), route.paths[0].rejected)
    });
    marks.collect()
}

/// RFC 4456 section 6.
#[test]
fn from_clients_to_everyone_and_from_others_to_clients() {
    // 0 reflects for 1 and 2, not for 3 and 4.
    let pairs = [(0, 1, true), (0, 2, true), (0, 3, false), (0, 4, false)];
    let mut world = cluster(5, &pairs);
    world.originate(0, nth(0), Origination::default());
    (1..5).for_each(|node| world.originate(node, nth(node as u32), Origination::default()));
    world.settle();
    assert_eq!(heard(&mut world, 1, 0), [nth(0), nth(2), nth(3), nth(4)]);
    assert_eq!(heard(&mut world, 2, 0), [nth(0), nth(1), nth(3), nth(4)]);
    assert_eq!(heard(&mut world, 3, 0), [nth(0), nth(1), nth(2)]);
    assert_eq!(heard(&mut world, 4, 0), [nth(0), nth(1), nth(2)]);
    let reflected = |node| (Some(id(node)), vec![id(0)], None);
    assert_eq!(marks(&mut world, 3, 0), [(None, vec![], None), reflected(1), reflected(2)]);
    // What is shown of what was told is what was told.
    let told = world.routes(0, RouteTable::AdjRibOut(key(3)), V4);
    assert_eq!(told[1].paths[0].attrs.view().originator(), Some(id(1)));
    // Two kinds of neighbours in two families.
    assert_eq!(world.nodes[0].speaker.sizes().update_groups, 4);

    world.command(1, Command::DeleteOrigination(nth(1)));
    world.settle();
    assert_eq!(heard(&mut world, 3, 0), [nth(0), nth(2)]);
}

/// RFC 4456 section 10: next hop, AS path, LOCAL_PREF and MED stay, unless the configuration says otherwise.
#[test]
fn a_reflected_route_is_the_same_route() {
    let mut world = cluster(3, &[(0, 1, true), (0, 2, true)]);
    let next_hop = Some(IpAddr::from([198, 51, 100, 7]));
    let own = Origination { next_hop, med: Some(7), local_pref: Some(70), ..Origination::default() };
    world.originate(1, nth(1), own);
    world.originate(1, nth(2), Origination::default());
    world.settle();
    let next_hops = |world: &mut World| {
        let routes = world.routes(2, RouteTable::AdjRibIn(key(0)), V4);
        routes.iter().map(|route| route.paths[0].next_hop.unwrap().address()).collect::<Vec<_>>()
    };
    assert_eq!(next_hops(&mut world), [IpAddr::from([198, 51, 100, 7]), address(1)]);
    let routes = world.routes(2, RouteTable::AdjRibIn(key(0)), V4);
    let set = routes[0].paths[0].attrs.view();
    assert_eq!((set.med(), set.local_pref(), set.as_path().is_empty()), (Some(7), Some(70), true));
    let next_hop = NextHopMode::SelfAddress;
    let config = PeerConfig { route_reflector_client: true, next_hop, ..world.config(2) };
    world.command(0, Command::PutPeer(key(2), config));
    world.settle();
    assert_eq!(next_hops(&mut world), [address(0), address(0)]);
}

/// RFC 4456 section 8: a ring of reflectors, each with its own cluster, and clients of two of them.
#[test]
fn routes_do_not_go_round_in_circles() {
    // Each of 0, 1, 2 is a client of the one before it; 3 is a client of 0 and of 1.
    let pairs = [(0, 1, true), (1, 2, true), (2, 0, true), (0, 3, true), (1, 3, true)];
    let mut world = cluster(4, &pairs);
    world.originate(3, nth(1), Origination::default());
    world.settle();
    for node in 0..3 {
        assert_eq!(world.best(node, V4).len(), 1, "{node}");
    }
    // 2 is told by 1 and, as a reflector with a client 0, by 0.
    assert_eq!(marks(&mut world, 2, 1), [(Some(id(3)), vec![id(1)], None)]);
    // The originator hears of it again and knows it.
    assert_eq!(marks(&mut world, 3, 0).len(), 0, "nobody is told what it told");
    world.command(3, Command::DeleteOrigination(nth(1)));
    world.settle();
    assert!((0..4).all(|node| world.best(node, V4).is_empty()), "nothing is left that lives on itself");
}

/// RFC 4456 section 8, both marks.
#[test]
fn what_has_been_here_before_is_refused_with_its_reason() {
    // 0 and 1 reflect for the same cluster, each as a client of the other; 2 is a client of 0 alone.
    let mut world = cluster(3, &[(0, 1, true), (0, 2, true)]);
    set_client(&mut world, 1, 0, true);
    let config = PeerConfig { passive: true, route_reflector_client: true, ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    for node in [0, 1] {
        assert_eq!(world.command(node, Command::PutClusterId(Some(RouterId(7)))), Applied::Applied);
        assert_eq!(world.command(node, Command::PutClusterId(Some(RouterId(7)))), Applied::Unchanged);
    }
    world.originate(2, nth(1), Origination::default());
    world.settle();
    let cluster = |rejected| (Some(id(2)), vec![RouterId(7)], rejected);
    assert_eq!(marks(&mut world, 1, 0), [cluster(Some(PathRejected::ClusterLoop))]);
    assert!(world.best(1, V4).is_empty());
    // In clusters of their own they need each other.
    world.command(1, Command::PutClusterId(Some(RouterId(8))));
    world.settle();
    assert_eq!(marks(&mut world, 1, 0), [cluster(None)]);
    assert_eq!(world.best(1, V4).len(), 1);
    world.command(1, Command::PutClusterId(Some(RouterId(7))));
    world.settle();
    assert!(world.best(1, V4).is_empty(), "what came in is judged again");
    // Without an identifier of its own choice the router's own counts.
    world.command(0, Command::PutClusterId(None));
    world.settle();
    assert_eq!(marks(&mut world, 1, 0), [(Some(id(2)), vec![id(0)], None)]);
}

/// RFC 4456 section 8: 2 tells 0 alone, but hears of its route from 1, which 0 has told.
#[test]
fn the_originator_knows_its_route_again() {
    let mut world = cluster(3, &[(0, 2, true), (0, 1, false), (1, 2, true)]);
    let silent = PeerConfig { passive: true, export: crate::command::Chain::REJECT, ..world.config(1) };
    world.command(2, Command::PutPeer(key(1), silent));
    world.originate(2, nth(1), Origination::default());
    world.settle();
    let looped = Some(PathRejected::OriginatorLoop);
    assert_eq!(marks(&mut world, 2, 1), [(Some(id(2)), vec![id(1), id(0)], looped)]);
}

/// A change of the flag costs no session: routes go to more neighbours, or are taken back.
#[test]
fn becoming_a_client_costs_no_session() {
    let mut world = cluster(4, &[(0, 1, false), (0, 2, false), (0, 3, false)]);
    (1..4).for_each(|node| world.originate(node, nth(node as u32), Origination::default()));
    world.settle();
    let all = |world: &mut World| [1, 2, 3].map(|node| heard(world, node, 0));
    assert_eq!(all(&mut world), [vec![], vec![], vec![]]);
    assert_eq!(set_client(&mut world, 0, 1, true), Applied::Applied);
    world.settle();
    assert_eq!(all(&mut world), [vec![nth(2), nth(3)], vec![nth(1)], vec![nth(1)]]);
    assert_eq!(set_client(&mut world, 0, 2, true), Applied::Applied);
    world.settle();
    assert_eq!(all(&mut world), [vec![nth(2), nth(3)], vec![nth(1), nth(3)], vec![nth(1), nth(2)]]);
    assert_eq!(set_client(&mut world, 0, 1, false), Applied::Applied);
    world.settle();
    assert_eq!(all(&mut world), [vec![nth(2)], vec![nth(1), nth(3)], vec![nth(2)]]);
    assert_eq!(set_client(&mut world, 0, 2, false), Applied::Applied);
    world.settle();
    assert_eq!(all(&mut world), [vec![], vec![], vec![]]);
    for node in 1..4 {
        assert_eq!(world.peer(0, node).established_count, 1);
    }
}

/// RFC 4456 section 6 knows clients in its own AS only.
#[test]
fn an_external_client_is_a_contradiction() {
    let mut world = World::new(&[65010, 65020]);
    let config = PeerConfig { route_reflector_client: true, ..world.config(1) };
    let refused = world.try_command(0, Command::PutPeer(key(1), config));
    assert_eq!(refused, Err(Refusal::Contradiction(Contradiction::ExternalClient)));
}

/// What reflection adds ends at the border of the AS (RFC 4456 section 8: both attributes are not transitive).
#[test]
fn outside_nobody_hears_of_clusters() {
    let mut world = World::new(&[65010, 65010, 65010, 65020]);
    join(&mut world, 0, 1, true);
    join(&mut world, 0, 2, true);
    world.join(2, 3);
    world.load();
    world.originate(1, nth(1), Origination::default());
    world.settle();
    assert_eq!(marks(&mut world, 2, 0), [(Some(id(1)), vec![id(0)], None)]);
    assert_eq!(marks(&mut world, 3, 2), [(None, vec![], None)]);
    assert_eq!(world.best(3, V4)[&nth(1)].1, "65010");
}
