//! Long-lived graceful restart (RFC 9494) among speakers in memory.

use super::restart::{End, secs};
use super::*;
use crate::command::Chain;
use crate::policy::{Act, Condition, Flow, PolicyDef, PolicyName, PrefixRange, StatementDef};
use crate::rib::Rung;
use crate::session::{LongLived, RestartTime, StaleTime};

const V4: Family = Family::Ipv4Unicast;
const V6: Family = Family::Ipv6Unicast;

const LLGR_STALE: u32 = 0xffff_0006;
const NO_LLGR: u32 = 0xffff_0007;

/// Two minutes, then an hour; everything kept.
fn long() -> GracefulRestart {
    GracefulRestart {
        long_lived: LongLived::of(FamilySet::UNICAST, StaleTime::new(3600).unwrap()),
        forwarding: FamilySet::UNICAST,
        ..GracefulRestart::USUAL
    }
}

/// No restart time.
fn only_long() -> GracefulRestart {
    GracefulRestart { restart_time: RestartTime::new(0).unwrap(), ..long() }
}

const SHORT: GracefulRestart = GracefulRestart { forwarding: FamilySet::UNICAST, ..GracefulRestart::USUAL };

impl World {
    /// The communities of a path.
    fn communities(&mut self, node: usize, table: RouteTable, prefix: Nlri) -> Vec<u32> {
        let routes = self.routes(node, table, prefix.family());
        let route = routes.into_iter().find(|route| route.nlri == prefix).expect("the route is there");
        let set = Canonical(route.paths[0].attrs.canonical());
        set.communities().map(|community| community.0).collect()
    }

    /// How many of the best paths carry a community.
    fn marked_with(&mut self, node: usize, community: u32) -> usize {
        let routes = self.routes(node, RouteTable::LocRib, V4);
        let has = |set: Canonical<'_>| set.communities().any(|found| found.0 == community);
        routes.iter().filter(|route| has(Canonical(route.paths[0].attrs.canonical()))).count()
    }
}

/// 0 restarts, 1 helps; 2 hears of long-lived stale routes, 3 does not know what that is.
fn star(how: GracefulRestart) -> World {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    for (other, how) in [(0, Some(how)), (2, Some(how)), (3, Some(SHORT))] {
        world.join_gracefully(other, 1, how);
    }
    world.load();
    world.settle();
    world.originate_many(0, 0..300, 1);
    world.originate(0, nlri("2001:db8:1::/48"), marked(1));
    world.pass(secs(10));
    for node in [1, 2, 3] {
        assert_eq!((world.count(node, V4), world.count(node, V6)), (300, 1));
    }
    world
}

/// RFC 9494 section 7, tables 1 and 4.
#[test]
fn after_the_restart_time_routes_are_a_last_resort_until_the_stale_time_ends() {
    let mut world = star(long());
    let before = [2, 3].map(|node| world.updates(node, 1));
    world.crash(0, End::Closing);
    world.pass(secs(119));
    assert_eq!([2, 3].map(|node| world.updates(node, 1)), before, "preference is not affected");
    assert_eq!(world.peer(1, 0).long_lived_stale, FamilySet::EMPTY);
    assert_eq!(world.peer(1, 0).stale_for, Some(secs(3600 + 1)));
    world.pass(secs(2));
    let status = world.peer(1, 0);
    assert_eq!((status.stale, status.long_lived_stale), (FamilySet::UNICAST, FamilySet::UNICAST));
    assert_eq!((status.families[0].received, status.families[0].accepted), (300, 300));
    assert_eq!(status.stale_for, Some(secs(3599)));
    assert_eq!((world.marked_with(1, LLGR_STALE), world.count(1, V6)), (300, 1));
    let routes = world.routes(1, RouteTable::LocRib, V4);
    assert!(routes.iter().all(|route| route.paths[0].stale && route.paths[0].long_lived_stale));
    assert_eq!(world.communities(1, RouteTable::AdjRibIn(key(0)), nth(0)), [1], "as it was received");
    // Section 4.3: attached when advertised, and withdrawn from who has not sent the capability.
    assert_eq!((world.marked_with(2, LLGR_STALE), world.count(2, V6)), (300, 1));
    assert_eq!(world.communities(2, RouteTable::AdjRibIn(key(1)), nth(7)), [1, LLGR_STALE]);
    assert_eq!((world.count(3, V4), world.count(3, V6)), (0, 0));
    world.pass(secs(3598));
    assert_eq!((world.count(1, V4), world.count(2, V4)), (300, 300));
    world.pass(secs(2));
    for node in [1, 2] {
        assert_eq!((world.count(node, V4), world.count(node, V6)), (0, 0));
    }
    let status = world.peer(1, 0);
    assert_eq!((status.stale, status.stale_for, status.families[0].received), (FamilySet::EMPTY, None, 0));
}

/// RFC 9494 section 7, table 2; section 4.2 for the restart time of zero.
#[test]
fn without_a_restart_time_routes_are_a_last_resort_at_once() {
    let mut world = star(only_long());
    world.crash(0, End::Closing);
    world.settle();
    assert_eq!((world.marked_with(1, LLGR_STALE), world.marked_with(2, LLGR_STALE)), (300, 300));
    assert_eq!(world.count(3, V4), 0);
    world.pass(secs(3601));
    assert_eq!((world.count(1, V4), world.count(2, V4)), (0, 0));
}

/// RFC 9494 section 7, table 3.
#[test]
fn a_neighbour_that_is_back_takes_the_mark_off_what_it_says_again() {
    let mut world = star(long());
    world.crash(0, End::Closing);
    world.pass(secs(300));
    world.rejoin(0, &[1], long());
    world.originate_many(0, 0..200, 1);
    world.settle();
    assert!(world.is_up(0, 1));
    assert_eq!((world.marked_with(1, LLGR_STALE), world.marked_with(2, LLGR_STALE)), (100, 100));
    assert_eq!((world.count(2, V4), world.count(3, V4)), (300, 200));
    assert_eq!(world.peer(1, 0).long_lived_stale, FamilySet::UNICAST);
    world.command(0, Command::LoadingDone);
    world.pass(secs(5));
    assert_eq!(world.peer(1, 0).stale, FamilySet::EMPTY);
    for node in [1, 2, 3] {
        assert_eq!((world.count(node, V4), world.count(node, V6)), (200, 0));
        assert_eq!(world.marked_with(node, LLGR_STALE), 0);
    }
}

/// RFC 9494 section 4.4: less preferred than any other route; normal tie-breaking among its like.
#[test]
fn any_other_route_is_better() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    for other in [0, 2, 3] {
        world.join_gracefully(other, 1, Some(long()));
    }
    world.load();
    // 0 is preferred for its AS path: 2 prepends.
    let name = PolicyName::new("longer");
    let apply = vec![Act::Prepend(Asn(65030), 3)];
    let statement = StatementDef { label: None, when: vec![], apply, then: Flow::Accept };
    let def = PolicyDef { statements: vec![statement], default: crate::policy::Default::Accept };
    world.command(2, Command::PutPolicy(name.clone(), def));
    let export = Chain::named(name);
    let config = PeerConfig { export, graceful_restart: Some(long()), ..world.config(1) };
    world.command(2, Command::PutPeer(key(1), config));
    world.originate(0, nth(0), marked(1));
    world.originate(2, nth(0), marked(2));
    world.pass(secs(10));
    let best = |world: &mut World| {
        let route = world.routes(1, RouteTable::LocRib, V4).remove(0);
        (route.paths[0].source, route.decided_by.unwrap())
    };
    assert_eq!(best(&mut world), (Some(key(0)), Rung::AsPathLength));
    world.crash(0, End::Closing);
    world.pass(secs(60));
    assert_eq!(best(&mut world), (Some(key(0)), Rung::AsPathLength), "the restart time");
    world.pass(secs(61));
    assert_eq!(best(&mut world), (Some(key(2)), Rung::LongLivedStale));
    assert_eq!(world.best(3, V4)[&nth(0)].1, "65020 65030 65030 65030 65030");
    // Both of them.
    world.crash(2, End::Closing);
    world.pass(secs(121));
    assert_eq!(best(&mut world), (Some(key(0)), Rung::AsPathLength));
    assert_eq!(world.communities(3, RouteTable::AdjRibIn(key(1)), nth(0)), [1, LLGR_STALE]);
}

/// RFC 9494 section 4.3: a route that came with the mark is least preferred too, and goes on with it.
#[test]
fn what_others_have_marked_is_the_last_resort_as_well() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    for (other, how) in [(0, long()), (2, long()), (3, SHORT)] {
        world.join_gracefully(other, 1, Some(how));
    }
    world.load();
    world.originate(0, nth(0), marked(LLGR_STALE));
    world.pass(secs(10));
    assert_eq!((world.count(1, V4), world.count(2, V4), world.count(3, V4)), (1, 1, 0));
    assert_eq!(world.communities(2, RouteTable::AdjRibIn(key(1)), nth(0)), [LLGR_STALE]);
    world.originate(2, nth(0), marked(2));
    world.settle();
    assert_eq!(world.best(1, V4)[&nth(0)], (2, "65030".into()));
    assert_eq!(world.best(3, V4)[&nth(0)].1, "65020 65030");
}

/// RFC 9494 section 4.2: "either as sent by the peer or as the result of a configured policy".
#[test]
fn who_does_not_want_it_is_not_kept() {
    let mut world = star(long());
    let name = PolicyName::new("no-llgr");
    let when = vec![Condition::Prefix(vec![PrefixRange::exact("10.0.1.0/24".parse().unwrap())])];
    let apply = vec![Act::AddCommunity(bgp_wire::attr::Community(NO_LLGR))];
    let statement = StatementDef { label: None, when, apply, then: Flow::Accept };
    let def = PolicyDef { statements: vec![statement], default: crate::policy::Default::Accept };
    world.command(1, Command::PutPolicy(name.clone(), def));
    let import = Chain::named(name);
    let config = PeerConfig { passive: true, import, graceful_restart: Some(long()), ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    world.originate(0, nth(0), marked(NO_LLGR));
    world.settle();
    world.crash(0, End::Closing);
    world.pass(secs(119));
    assert_eq!(world.count(2, V4), 300, "the restart time is another matter");
    world.pass(secs(2));
    for node in [1, 2] {
        let best = world.best(node, V4);
        assert!(best.len() == 298 && !best.contains_key(&nth(0)) && !best.contains_key(&nth(1)));
    }
    let status = world.peer(1, 0);
    assert_eq!((status.families[0].received, status.families[0].accepted), (298, 298));
}

/// RFC 9494 section 4.2: consecutive restarts, the timer that is not moved, and the removals when the session is back.
#[test]
fn a_neighbour_that_goes_again_before_its_end_of_rib_loses_nothing() {
    let mut world = star(long());
    world.crash(0, End::Closing);
    world.pass(secs(1000));
    world.rejoin(0, &[1], long());
    world.originate_many(0, 0..50, 2);
    world.settle();
    assert_eq!((world.count(2, V4), world.marked_with(2, LLGR_STALE)), (300, 250));
    world.crash(0, End::Closing);
    world.settle();
    assert_eq!((world.count(2, V4), world.marked_with(2, LLGR_STALE)), (300, 250));
    world.pass(secs(121));
    assert_eq!((world.count(2, V4), world.marked_with(2, LLGR_STALE)), (300, 300));
    assert_eq!(world.peer(1, 0).stale_for, Some(secs(120 + 3600 - 1121)));
    // Back, but without the capability.
    world.rejoin(0, &[1], SHORT);
    world.settle();
    assert_eq!((world.is_up(0, 1), world.count(1, V4), world.count(2, V4)), (true, 0, 0));
}

#[test]
fn the_stale_time_ends_while_the_neighbour_is_back() {
    let mut world = star(long());
    world.crash(0, End::Closing);
    world.pass(secs(3700));
    world.rejoin(0, &[1], long());
    world.originate_many(0, 0..20, 1);
    world.pass(secs(10));
    assert_eq!((world.count(1, V4), world.count(2, V4)), (300, 300));
    world.pass(secs(11));
    assert_eq!((world.is_up(0, 1), world.count(1, V4), world.count(2, V4)), (true, 20, 20));
    // Not synchronised yet: nothing is kept of it.
    world.crash(0, End::Closing);
    world.settle();
    assert_eq!((world.count(1, V4), world.count(2, V4)), (0, 0));
}

/// RFC 9494 section 3.1: only where both ends name it, family by family; and honest F bits.
#[test]
fn what_is_agreed() {
    let mut world = World::new(&[65010, 65020, 65030]);
    let day = StaleTime::new(86_400).unwrap();
    let only_v4 = GracefulRestart { long_lived: LongLived::of(FamilySet::only(V4), day), ..SHORT };
    world.join_gracefully(0, 1, Some(long()));
    let config = PeerConfig { passive: true, graceful_restart: Some(only_v4), ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    world.join_gracefully(0, 2, Some(long()));
    let config = PeerConfig { passive: true, graceful_restart: Some(SHORT), ..world.config(0) };
    world.command(2, Command::PutPeer(key(0), config));
    world.load();
    world.pass(secs(10));
    let agreed = world.peer(0, 1).long_lived_agreed.unwrap();
    assert_eq!((agreed.families, agreed.own_families), (FamilySet::only(V4), FamilySet::UNICAST));
    assert_eq!((agreed.stale_time(V4), agreed.forwarding), (86_400, FamilySet::only(V4)));
    assert_eq!((world.peer(0, 2).long_lived_agreed, world.peer(2, 0).long_lived_agreed), (None, None));
    world.originate(1, nth(1), marked(1));
    world.settle();
    world.crash(1, End::Closing);
    world.pass(secs(1));
    assert_eq!(
        world.peer(0, 1).stale_for,
        Some(secs(119 + 3600)),
        "we don't keep it for longer than we like"
    );
    // A family without the long form is kept for the restart time only.
    world.pass(secs(121));
    assert_eq!(world.peer(0, 1).stale, FamilySet::only(V4));
}

/// Neighbours keep our routes for both times, so for so long a session with one of them is the first after a restart.
#[test]
fn the_restart_bit_is_said_for_as_long_as_anybody_keeps_our_routes() {
    for (wait, restarting) in [(200, true), (3719, true), (3721, false)] {
        let mut world = World::graceful(&[65010, 65020], &[(0, 1)], long());
        world.crash(0, End::Closing);
        world.command(0, Command::LoadingDone);
        world.pass(secs(wait));
        world.rejoin(0, &[1], long());
        world.settle();
        assert!(world.is_up(0, 1));
        assert_eq!(world.peer(1, 0).restart_agreed.unwrap().restarting, restarting, "{wait}");
    }
}

#[test]
fn the_long_form_costs_a_session_when_it_changes() {
    let mut world = World::graceful(&[65010, 65020], &[(0, 1)], long());
    let put = |world: &mut World, how| {
        let config = PeerConfig { graceful_restart: Some(how), ..world.config(1) };
        world.command(0, Command::PutPeer(key(1), config))
    };
    assert_eq!(put(&mut world, long()), Applied::Unchanged);
    assert_eq!(put(&mut world, SHORT), Applied::SessionReset);
}

/// What has become stale stays so whatever policy does to it meanwhile.
#[test]
fn policy_runs_again_over_long_lived_routes() {
    let mut world = star(only_long());
    world.crash(0, End::Closing);
    world.settle();
    let put = |world: &mut World, import| {
        let how = Some(only_long());
        let config = PeerConfig { passive: true, import, graceful_restart: how, ..world.config(0) };
        world.command(1, Command::PutPeer(key(0), config));
        world.settle();
    };
    put(&mut world, Chain::REJECT);
    assert_eq!((world.count(1, V4), world.count(2, V4)), (0, 0));
    put(&mut world, Chain::ACCEPT);
    assert_eq!((world.marked_with(1, LLGR_STALE), world.marked_with(2, LLGR_STALE)), (300, 300));
    // And an operator who gives up on the neighbour.
    world.command(1, Command::DisablePeer(key(0), String::new()));
    world.settle();
    assert_eq!((world.count(1, V4), world.count(2, V4)), (0, 0));
}
