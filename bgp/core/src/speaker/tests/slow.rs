//! Those who come late, read slowly, or ask again.

use super::*;
use bgp_wire::RouteRefresh;
use bytes::BytesMut;

const V4: Family = Family::Ipv4Unicast;

/// 0 originates, 1 passes on, 2 and 3 listen.
fn world() -> World {
    World::joined(&[65010, 65020, 65030, 65040], &[(0, 1), (2, 1), (3, 1)])
}

fn fill(world: &mut World, range: std::ops::Range<u32>, mark: u32) {
    for n in range {
        world.originate(0, nth(n), marked(mark + n % 7));
    }
}

fn clear(world: &mut World, range: std::ops::Range<u32>) {
    for n in range {
        world.command(0, Command::DeleteOrigination(nth(n)));
    }
}

/// What both listeners have, which must be the same, and what 1 believes that they have.
fn agreed(world: &mut World) -> BTreeMap<Nlri, (u32, String)> {
    let fast = world.heard(2, 1, V4);
    let slow = world.heard(3, 1, V4);
    assert_eq!(fast.len(), slow.len());
    assert!(fast == slow, "the listeners differ");
    assert!(world.told(1, 3, V4) == slow, "1 is wrong about what it told");
    assert_eq!(world.peer(1, 3).families[0].advertised, slow.len() as u64);
    slow
}

#[test]
fn a_late_neighbour_gets_everything_that_is_still_there() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    world.join(0, 1);
    world.join(2, 1);
    world.load();
    fill(&mut world, 0..1000, 100);
    world.settle();
    clear(&mut world, 300..600);
    world.settle();
    world.join(3, 1);
    world.settle();
    assert_eq!(agreed(&mut world).len(), 700);
    assert!(world.peer(3, 1).families[0].end_of_rib_received);
    // And it is a member like any other now.
    fill(&mut world, 500..800, 200);
    clear(&mut world, 0..100);
    world.settle();
    assert_eq!(agreed(&mut world).len(), 700);
    assert_eq!(world.nodes[1].speaker.sizes().update_groups, 2);
}

#[test]
fn routes_that_change_while_a_late_neighbour_walks_are_told_right() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    world.join(0, 1);
    world.join(2, 1);
    world.load();
    fill(&mut world, 0..1000, 100);
    world.settle();
    world.pull_octets = 1;
    world.join(3, 1);
    // Not quite to the end each time.
    for round in 0..40 {
        for _ in 0..round {
            for node in 0..4 {
                world.step(node);
            }
        }
        fill(&mut world, round * 20..round * 25 + 10, 200 + round);
        clear(&mut world, round * 9..round * 10);
    }
    world.settle();
    assert!(agreed(&mut world).len() > 500);
}

#[test]
fn a_slow_neighbour_falls_off_and_catches_up() {
    let mut world = world();
    fill(&mut world, 0..50, 100);
    world.settle();
    world.stall(3, 1, true);
    // More than the ring holds, several times over, and much of it comes and goes.
    for round in 0..5 {
        fill(&mut world, round * 100..round * 100 + 300, 1000 * round);
        world.settle();
        clear(&mut world, round * 100..round * 100 + 150);
        world.settle();
    }
    assert_eq!(world.heard(2, 1, V4), world.best(1, V4).into_iter().map(grown).collect());
    let behind = world.nodes[1].speaker.stats().fell_behind;
    assert_eq!(behind, 1);
    assert!(world.heard(3, 1, V4).len() <= 50 + 64, "what was on its way at the most");
    world.stall(3, 1, false);
    world.settle();
    // Of 700 prefixes 100 were withdrawn in each round but the last, and 150 in the last, of which some stayed gone.
    assert_eq!(agreed(&mut world).len(), 150);
    // It is back in the ring.
    fill(&mut world, 0..10, 5);
    world.settle();
    agreed(&mut world);
    assert_eq!(world.nodes[1].speaker.stats().fell_behind, behind);
}

/// A route as 1 sends it.
fn grown((prefix, (mark, path)): (Nlri, (u32, String))) -> (Nlri, (u32, String)) {
    (prefix, (mark, format!("65020 {path}")))
}

#[test]
fn a_slow_neighbour_is_told_less_not_later() {
    let mut world = world();
    world.stall(3, 1, true);
    for round in 0..50 {
        fill(&mut world, 0..300, 1000 * round);
        world.settle();
    }
    let before = world.peer(1, 3).sent.update;
    world.stall(3, 1, false);
    world.settle();
    agreed(&mut world);
    let [fast, slow] = [2, 3].map(|node| world.peer(1, node).sent.update);
    assert!(slow - before < 60, "{slow}: a table, not its history of {fast}");
    assert!(fast > 350);
}

#[test]
fn the_log_lets_go_of_what_a_lost_slow_neighbour_held() {
    let mut world = world();
    world.stall(3, 1, true);
    for round in 0..5 {
        fill(&mut world, 0..300, 1000 * round);
        world.settle();
    }
    world.cut(3, 1, true);
    world.stall(3, 1, false);
    clear(&mut world, 0..300);
    world.settle();
    assert_eq!(world.nodes[1].speaker.sizes().destinations, [0; Family::COUNT]);
    assert_eq!(world.nodes[1].speaker.sizes().attribute_sets, 0, "nobody holds a set any more");
}

#[test]
fn every_set_is_freed_when_the_last_one_leaves() {
    let mut world = world();
    fill(&mut world, 0..300, 0);
    world.settle();
    assert_eq!(world.nodes[1].speaker.sizes().attribute_sets, 7);
    for other in [0, 2, 3] {
        world.command(1, Command::DeletePeer(key(other)));
    }
    world.settle();
    let sizes = world.nodes[1].speaker.sizes();
    assert_eq!((sizes.destinations, sizes.attribute_sets, sizes.update_groups), ([0; Family::COUNT], 0, 0));
    assert!(!world.nodes[1].speaker.has_work());
    // Nobody expects 0 any more.
    world.pass(Duration::from_secs(10));
    assert!(world.nodes[1].speaker.peers(world.now).is_empty());
}

#[test]
fn route_refresh_is_answered_with_the_whole_table() {
    let mut world = world();
    fill(&mut world, 0..200, 0);
    world.settle();
    let [before2, before3] = [2, 3].map(|node| world.peer(1, node).sent.update);
    let mut refresh = BytesMut::new();
    RouteRefresh::new(V4, RouteRefresh::REQUEST).encode(&mut refresh);
    world.inject(3, 1, refresh.to_vec());
    world.settle();
    let [after2, after3] = [2, 3].map(|node| world.peer(1, node).sent.update);
    assert_eq!(after2, before2, "who did not ask hears nothing");
    assert!(after3 >= before3 + 7, "one UPDATE for each set at least");
    assert_eq!(agreed(&mut world).len(), 200);
    world.command(1, Command::ClearPeer(key(2), crate::command::Clear::SoftOut));
    world.settle();
    assert!(world.peer(1, 2).sent.update >= before2 + 7);
    fill(&mut world, 100..300, 9);
    world.settle();
    assert_eq!(agreed(&mut world).len(), 300);
}

#[test]
fn a_refresh_while_the_group_is_new_misses_nothing() {
    let mut world = World::new(&[65010, 65020, 65030]);
    world.join(0, 1);
    world.load();
    fill(&mut world, 0..500, 0);
    world.settle();
    world.pull_octets = 1;
    world.join(2, 1);
    for step in 0..60 {
        world.step(step % 3);
        world.command(1, Command::ClearPeer(key(2), crate::command::Clear::SoftOut));
    }
    world.settle();
    assert_eq!(world.heard(2, 1, V4).len(), 500);
}

#[test]
fn a_change_of_policy_while_someone_walks_is_told_right() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    let text = |range: &str| crate::policy::PolicyDef {
        statements: vec![crate::policy::StatementDef {
            label: None,
            when: vec![crate::policy::Condition::Prefix(vec![range.parse().unwrap()])],
            apply: vec![],
            then: crate::policy::Flow::Reject,
        }],
        default: crate::policy::Default::Accept,
    };
    world.command(1, Command::PutPolicy("out".into(), text("10.0.0.0/24 le 32")));
    world.join(0, 1);
    world.load();
    fill(&mut world, 0..600, 0);
    for other in [2, 3] {
        world.join(other, 1);
        let export = crate::command::Chain::named("out");
        let config = PeerConfig { passive: true, export, ..world.config(other) };
        world.command(1, Command::PutPeer(key(other), config));
        if other == 2 {
            world.settle();
        }
    }
    world.pull_octets = 1;
    for range in ["10.0.0.0/16", "10.0.0.0/17", "10.0.128.0/17", "10.1.0.0/16"] {
        for step in 0..25 {
            world.step(step % 4);
        }
        world.command(1, Command::PutPolicy("out".into(), text(&format!("{range} le 32"))));
    }
    world.stall(3, 1, true);
    world.settle();
    world.command(1, Command::PutPolicy("out".into(), text("10.0.64.0/18 le 32")));
    world.settle();
    world.stall(3, 1, false);
    world.settle();
    assert_eq!(agreed(&mut world).len(), 600 - 64);
}

#[test]
fn who_joins_a_group_that_someone_moved_into_gets_everything() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    world.join(0, 1);
    world.join(2, 1);
    world.load();
    fill(&mut world, 0..300, 0);
    world.settle();
    let own = |world: &World, other| {
        let next_hop = crate::command::NextHopMode::SelfAddress;
        Command::PutPeer(key(other), PeerConfig { passive: true, next_hop, ..world.config(other) })
    };
    let moved = own(&world, 2);
    world.command(1, moved);
    world.settle();
    world.join(3, 1);
    let same = own(&world, 3);
    world.command(1, same);
    world.settle();
    assert_eq!(agreed(&mut world).len(), 300);
    assert_eq!(world.nodes[1].speaker.sizes().update_groups, 4, "0 and the two others, in two families");
}

#[test]
fn prefixes_of_one_set_travel_together() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let before = world.peer(0, 1).sent.update;
    fill(&mut world, 0..60, 0);
    world.settle();
    assert_eq!(world.peer(0, 1).sent.update - before, 7);
}

#[test]
fn a_walk_is_not_fooled_by_changes_that_make_no_difference() {
    // 1 repeats what 0 says. Its paths are as good as those of 0 but not better: the set of equal paths changes, what is
    // told does not.
    let mut world = World::joined(&[65010, 65020, 65030, 65040], &[(0, 2), (1, 2), (3, 2)]);
    world.pull_octets = 1;
    for node in [0, 1] {
        fill_at(&mut world, node, 0..300);
        for step in 0..16 {
            world.step(step % 4);
        }
        world.command(2, Command::ClearPeer(key(3), crate::command::Clear::SoftOut));
        for step in 0..13 {
            world.step(step % 4);
        }
    }
    world.cut(1, 2, true);
    world.settle();
    assert_eq!(world.heard(3, 2, V4).len(), 300);
    assert_eq!(world.heard(3, 2, V4), world.told(2, 3, V4));
}

fn fill_at(world: &mut World, node: usize, range: std::ops::Range<u32>) {
    for n in range {
        world.originate(node, nth(n), marked(n % 5));
    }
}

#[test]
fn who_comes_late_is_told_to_withdraw_nothing_that_it_never_had() {
    // 1 has restarted, so that it says nothing of what it hears from 0 yet; 2 comes while it hears more.
    let mut world = World::graceful(&[65010, 65020, 65030], &[(0, 1), (2, 1)], restart::KEPT);
    world.originate_many(0, 0..10, 1);
    world.settle();
    world.crash(1, restart::End::Closing);
    world.originate(1, nth(100), marked(1));
    world.rejoin(1, &[0], restart::KEPT);
    world.settle();
    world.rejoin(1, &[2], restart::KEPT);
    while world.peer(1, 2).state != State::Established {
        for node in [1, 2] {
            world.step(node);
        }
    }
    world.stall(2, 1, true);
    world.originate_many(0, 10..20, 1);
    for step in 0..10 {
        world.step(step % 2);
    }
    world.stall(2, 1, false);
    world.settle();
    assert!(world.is_up(1, 2));
    world.command(1, Command::LoadingDone);
    world.pass(Duration::from_secs(200));
    assert_eq!(world.heard(2, 1, V4).len(), 21);
    assert_eq!(world.nodes[2].superfluous, []);
    world.crash(0, restart::End::Closing);
    world.pass(Duration::from_secs(200));
    assert_eq!(world.heard(2, 1, V4).len(), 1);
    assert_eq!(world.nodes[2].superfluous, []);
}

#[test]
fn who_comes_late_with_routes_of_its_own_is_not_told_to_withdraw_them() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    world.join(0, 1);
    world.join(2, 1);
    world.load();
    world.originate_many(0, 0..300, 1);
    world.originate_many(3, 300..600, 1);
    // 0's are as good as these, and its identifier is lower.
    world.originate_many(3, 0..50, 1);
    world.settle();
    world.pull_octets = 1;
    world.join(3, 1);
    world.settle();
    assert_eq!(agreed_without_own(&mut world), 300);
    // Asking again changes nothing about that, nor does a move to another group.
    world.command(1, Command::ClearPeer(key(3), crate::command::Clear::SoftOut));
    world.originate_many(3, 600..800, 1);
    world.settle();
    let next_hop = crate::command::NextHopMode::SelfAddress;
    world.command(1, Command::PutPeer(key(3), PeerConfig { passive: true, next_hop, ..world.config(3) }));
    world.originate_many(3, 800..900, 1);
    world.settle();
    assert_eq!(agreed_without_own(&mut world), 300);
    assert_eq!(world.nodes[3].superfluous, []);
    clear(&mut world, 0..100);
    world.settle();
    assert_eq!(agreed_without_own(&mut world), 200);
    assert_eq!(world.nodes[3].superfluous, []);
}

/// How many routes 3 has heard, which must be what 1 believes.
fn agreed_without_own(world: &mut World) -> usize {
    let heard = world.heard(3, 1, V4);
    assert_eq!(world.told(1, 3, V4), heard);
    heard.len()
}
