//! Prefix limits, and repetitions without an end.

use super::*;
use crate::command::{Chain, Clear};
use crate::limit::{LimitAction, PrefixLimit};
use crate::policy::{Act, Condition, Default, Flow, PolicyDef, StatementDef};
use crate::query::{Idle, LimitStatus};
use crate::session::AddPath;
use bgp_wire::RouteRefresh;
use bytes::BytesMut;
use std::num::NonZeroU8;

const V4: Family = Family::Ipv4Unicast;
const RESET: LimitAction = LimitAction::Reset { restart: Some(Duration::from_secs(300)) };

/// 0 announces to 1, which has a limit.
fn world(limit: u32, action: LimitAction) -> World {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    set_limit(&mut world, Some(PrefixLimit { limit, action }));
    world
}

fn config(world: &World, limit: Option<PrefixLimit>) -> PeerConfig {
    let max_prefixes = limit.into_iter().map(|limit| (V4, limit)).collect();
    PeerConfig { passive: true, max_prefixes, ..world.config(0) }
}

fn set_limit(world: &mut World, limit: Option<PrefixLimit>) -> Applied {
    let config = config(world, limit);
    world.command(1, Command::PutPeer(key(0), config))
}

fn announce(world: &mut World, range: std::ops::Range<u32>) {
    for n in range {
        world.originate(0, nth(n), marked(n % 3));
    }
    world.settle();
}

fn withdraw(world: &mut World, range: std::ops::Range<u32>) {
    for n in range {
        world.command(0, Command::DeleteOrigination(nth(n)));
    }
    world.settle();
}

fn status(world: &World) -> LimitStatus {
    world.peer(1, 0).families[0].limit.expect("there is a limit")
}

fn condition(world: &World) -> String {
    status(world).condition().unwrap_or_default()
}

/// How many prefixes 1 has, which must be what it says it has.
fn held(world: &mut World) -> u64 {
    let held = world.heard(1, 0, V4).len() as u64;
    assert_eq!(world.peer(1, 0).families[0].received, held);
    held
}

fn asked(world: &World) -> u64 {
    world.peer(1, 0).sent.route_refresh
}

/// 0 says that it says everything again, or that it has.
fn marker(world: &mut World, subtype: u8) {
    let mut message = BytesMut::new();
    RouteRefresh::new(V4, subtype).encode(&mut message);
    world.inject(0, 1, message.to_vec());
    world.settle();
}

#[test]
fn a_warning_changes_nothing() {
    let mut world = world(100, LimitAction::Warn);
    announce(&mut world, 0..74);
    assert_eq!(condition(&world), "");
    announce(&mut world, 74..75);
    assert_eq!(condition(&world), "75 prefixes, close to the limit of 100");
    announce(&mut world, 75..100);
    assert_eq!(condition(&world), "100 prefixes, close to the limit of 100");
    announce(&mut world, 100..120);
    assert_eq!(condition(&world), "120 prefixes, more than the limit of 100");
    assert_eq!((held(&mut world), world.is_up(0, 1)), (120, true));
    withdraw(&mut world, 0..60);
    assert_eq!((condition(&world), status(&world).counted), (String::new(), 60));
}

#[test]
fn what_is_beyond_the_limit_is_discarded_until_there_is_room() {
    let mut world = world(100, LimitAction::Discard);
    announce(&mut world, 0..150);
    assert_eq!((held(&mut world), status(&world).discarded), (100, 50));
    assert_eq!(condition(&world), "50 announcements beyond the limit of 100 prefixes were not kept");
    assert!(world.is_up(0, 1));
    // What is kept may change, at the limit too.
    let kept = world.heard(1, 0, V4);
    let (prefix, _) = kept.iter().next_back().unwrap();
    world.originate(0, *prefix, marked(77));
    world.settle();
    assert_eq!(world.heard(1, 0, V4)[prefix].0, 77);
    assert_eq!(held(&mut world), 100);
    let kept: Vec<Nlri> = world.heard(1, 0, V4).into_keys().take(30).collect();
    for prefix in kept {
        world.command(0, Command::DeleteOrigination(prefix));
    }
    world.settle();
    assert_eq!((held(&mut world), asked(&world)), (70, 0), "there may be more withdrawals");
    world.pass(Duration::from_secs(1));
    assert_eq!((held(&mut world), asked(&world)), (100, 1));
    assert_eq!(status(&world).discarded, 20, "of 120 there are");
    // Not again within a minute.
    let kept: Vec<Nlri> = world.heard(1, 0, V4).into_keys().take(30).collect();
    for prefix in kept {
        world.command(0, Command::DeleteOrigination(prefix));
    }
    world.pass(Duration::from_secs(58));
    assert_eq!(asked(&world), 1);
    world.pass(Duration::from_secs(2));
    assert_eq!((held(&mut world), asked(&world), status(&world).discarded), (90, 2, 0));
    assert_eq!(world.heard(1, 0, V4).len(), world.best(0, V4).len(), "nothing is missing");
}

#[test]
fn a_higher_limit_brings_in_what_was_discarded() {
    for limit in [Some(PrefixLimit { limit: 120, action: LimitAction::Discard }), None] {
        let mut world = world(100, LimitAction::Discard);
        announce(&mut world, 0..150);
        assert_eq!(set_limit(&mut world, limit), Applied::Applied);
        world.pass(Duration::ZERO);
        assert_eq!((held(&mut world), asked(&world)), (limit.map_or(150, |_| 120), 1));
        assert_eq!(world.peer(1, 0).established_count, 1);
    }
}

#[test]
fn a_lower_limit_acts_at_once() {
    let mut world = world(200, LimitAction::Discard);
    announce(&mut world, 0..150);
    let lower = |action| Some(PrefixLimit { limit: 60, action });
    set_limit(&mut world, lower(LimitAction::Warn));
    world.settle();
    assert_eq!(
        (held(&mut world), condition(&world)),
        (150, "150 prefixes, more than the limit of 60".into())
    );
    set_limit(&mut world, lower(LimitAction::Discard));
    world.settle();
    assert_eq!((held(&mut world), status(&world).discarded, status(&world).counted), (60, 90, 60));
    assert_eq!(world.best(1, V4).len(), 60);
    assert_eq!(world.peer(1, 0).families[0].accepted, 60);
    set_limit(&mut world, Some(PrefixLimit { limit: 50, action: RESET }));
    world.settle();
    assert!(!world.is_up(1, 0));
    assert_eq!(world.best(1, V4).len(), 0);
}

#[test]
fn a_reset_is_told_with_its_reason_and_lasts_as_long_as_is_wanted() {
    let mut world = world(100, RESET);
    announce(&mut world, 0..100);
    assert!(world.is_up(0, 1));
    announce(&mut world, 100..101);
    let peer = world.peer(1, 0);
    assert_eq!((peer.state, peer.idle), (State::Idle, Some(Idle::For(Duration::from_secs(300)))));
    let words =
        "more than 100 prefixes of ipv4-unicast; sent Cease: Maximum Number of Prefixes Reached (6/1)";
    assert_eq!(peer.last_error.as_deref(), Some(words));
    let theirs = world.peer(0, 1).last_error.unwrap();
    let received = "received Cease: Maximum Number of Prefixes Reached (6/1), at most 100 of ipv4-unicast";
    assert_eq!(theirs, received);
    assert_eq!((world.best(1, V4).len(), peer.families[0].limit.unwrap().counted), (0, 0));
    withdraw(&mut world, 0..1);
    world.pass(Duration::from_secs(290));
    assert!(!world.is_up(0, 1));
    world.pass(Duration::from_secs(60));
    assert!(world.is_up(0, 1), "0 tries again now and then");
    assert_eq!(held(&mut world), 100);
}

#[test]
fn without_a_time_the_operator_decides() {
    let action = LimitAction::Reset { restart: None };
    let wakes: [fn(&mut World); 4] = [
        |world| assert_eq!(world.command(1, Command::ClearPeer(key(0), Clear::Hard)), Applied::Applied),
        |world| assert_eq!(world.command(1, Command::EnablePeer(key(0))), Applied::Applied),
        |world| assert_eq!(set_limit(world, None), Applied::Applied),
        |world| {
            let higher = Some(PrefixLimit { limit: 200, action: RESET });
            assert_eq!(set_limit(world, higher), Applied::Applied);
        },
    ];
    for wake in wakes {
        let mut world = world(100, action);
        announce(&mut world, 0..101);
        world.pass(Duration::from_secs(100_000));
        assert_eq!(world.peer(1, 0).idle, Some(Idle::UntilStarted));
        // A limit that is no help.
        set_limit(&mut world, Some(PrefixLimit { limit: 100, action: RESET }));
        set_limit(&mut world, Some(PrefixLimit { limit: 100, action }));
        world.pass(Duration::from_secs(60));
        assert_eq!(world.peer(1, 0).state, State::Idle);
        withdraw(&mut world, 0..1);
        wake(&mut world);
        world.pass(Duration::from_secs(60));
        assert!(world.is_up(0, 1));
        assert_eq!(held(&mut world), 100);
    }
}

#[test]
fn what_a_lost_session_left_behind_does_not_count() {
    // The routes of the first session are still in the table, to be removed slice by slice, when the others come.
    let mut world = world(100, RESET);
    announce(&mut world, 0..100);
    world.cut(0, 1, true);
    world.settle();
    for n in 0..100 {
        world.command(0, Command::DeleteOrigination(nth(n)));
    }
    for n in 1000..1100 {
        world.originate(0, nth(n), marked(1));
    }
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(60));
    assert!(world.is_up(0, 1));
    assert_eq!((held(&mut world), status(&world).counted), (100, 100));
}

#[test]
fn stale_routes_count_when_they_are_said_again() {
    let mut world = World::new(&[65010, 65020]);
    world.graceful_restart = Some(GracefulRestart::USUAL);
    world.join(0, 1);
    let limit = PrefixLimit { limit: 100, action: RESET };
    set_limit(&mut world, Some(limit));
    world.load();
    announce(&mut world, 0..90);
    world.cut(0, 1, true);
    world.settle();
    assert_eq!((held(&mut world), status(&world).counted), (90, 0), "kept, and not counted");
    withdraw(&mut world, 0..90);
    announce(&mut world, 1000..1090);
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(60));
    assert!(world.is_up(0, 1));
    assert_eq!((held(&mut world), status(&world).counted, world.peer(1, 0).established_count), (90, 90, 2));
}

#[test]
fn a_repetition_counts_anew_and_may_replace_everything() {
    for action in [RESET, LimitAction::Discard] {
        let mut world = world(100, action);
        announce(&mut world, 0..100);
        marker(&mut world, RouteRefresh::BEGIN);
        assert_eq!((held(&mut world), status(&world).counted), (100, 0));
        announce(&mut world, 500..590);
        assert_eq!((held(&mut world), status(&world).counted), (190, 90));
        withdraw(&mut world, 0..10);
        assert_eq!(
            (held(&mut world), status(&world).counted),
            (180, 90),
            "what is stale is withdrawn uncounted"
        );
        marker(&mut world, RouteRefresh::END);
        assert_eq!((held(&mut world), status(&world).counted, status(&world).discarded), (90, 90, 0));
        assert!(world.is_up(0, 1));
    }
}

#[test]
fn a_stale_route_that_is_said_again_beyond_the_limit_is_not_kept() {
    let mut world = world(100, LimitAction::Discard);
    announce(&mut world, 0..100);
    marker(&mut world, RouteRefresh::BEGIN);
    announce(&mut world, 500..600);
    // Said again, with something new about it.
    world.originate(0, nth(7), marked(99));
    world.settle();
    assert_eq!((held(&mut world), status(&world).counted, status(&world).discarded), (199, 100, 1));
    assert!(!world.heard(1, 0, V4).contains_key(&nth(7)));
    marker(&mut world, RouteRefresh::END);
    assert_eq!(held(&mut world), 100);
}

#[test]
fn a_limit_of_nothing_lets_nothing_in() {
    let mut world = world(0, LimitAction::Discard);
    assert_eq!(condition(&world), "");
    announce(&mut world, 0..3);
    assert_eq!((held(&mut world), status(&world).discarded), (0, 3));
    let mut world = self::world(0, RESET);
    announce(&mut world, 0..1);
    assert!(!world.is_up(0, 1));
}

#[test]
fn what_policy_rejects_counts_as_well() {
    let mut world = World::new(&[65010, 65020]);
    world.join(0, 1);
    set_limit(&mut world, Some(PrefixLimit { limit: 10, action: LimitAction::Discard }));
    world.load();
    world.settle();
    announce(&mut world, 0..15);
    let rejecting = PeerConfig {
        import: Chain::REJECT,
        ..config(&world, Some(PrefixLimit { limit: 10, action: LimitAction::Discard }))
    };
    world.command(1, Command::PutPeer(key(0), rejecting));
    world.settle();
    let family = world.peer(1, 0).families[0];
    assert_eq!((family.received, family.accepted, family.limit.unwrap().counted), (10, 0, 10));
}

#[test]
fn a_refresh_that_never_ends_is_ended() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    announce(&mut world, 0..100);
    marker(&mut world, RouteRefresh::BEGIN);
    let again: Vec<u32> = (0..40).collect();
    for n in &again {
        world.originate(0, nth(*n), marked(50));
    }
    world.pass(Duration::from_secs(359));
    assert_eq!(held(&mut world), 100, "stale routes count as before until then");
    world.pass(Duration::from_secs(1));
    assert_eq!(held(&mut world), 40);
    assert!(world.is_up(0, 1));
    // Its end comes too late to mean anything.
    marker(&mut world, RouteRefresh::END);
    assert_eq!(held(&mut world), 40);
    // A new one has its own time, and beginning again does not prolong it.
    marker(&mut world, RouteRefresh::BEGIN);
    world.pass(Duration::from_secs(300));
    marker(&mut world, RouteRefresh::BEGIN);
    world.pass(Duration::from_secs(59));
    assert_eq!(held(&mut world), 40);
    world.pass(Duration::from_secs(1));
    assert_eq!(held(&mut world), 0);
}

/// More beginnings than there are epochs, and no end.
fn begin_for_ever(world: &mut World) {
    for _ in 0..17_000 {
        begin(world);
    }
    world.settle();
}

fn begin(world: &mut World) {
    let mut message = BytesMut::new();
    RouteRefresh::new(V4, RouteRefresh::BEGIN).encode(&mut message);
    world.inject(0, 1, message.to_vec());
}

#[test]
fn refreshes_that_begin_for_ever_leave_the_count_exact() {
    let mut world = world(10, LimitAction::Discard);
    begin_for_ever(&mut world);
    announce(&mut world, 0..5);
    marker(&mut world, RouteRefresh::BEGIN);
    assert_eq!((held(&mut world), status(&world).counted), (5, 5));
    withdraw(&mut world, 0..1);
    assert_eq!((held(&mut world), status(&world).counted), (4, 4));
}

#[test]
fn refreshes_that_begin_for_ever_do_not_get_past_the_limit() {
    let mut world = world(10, LimitAction::Discard);
    announce(&mut world, 1000..1010);
    for round in 0..20 {
        marker(&mut world, RouteRefresh::BEGIN);
        announce(&mut world, 10 * round..10 * round + 10);
    }
    assert_eq!(held(&mut world), 20, "as much again as was there");
    begin_for_ever(&mut world);
    announce(&mut world, 500..510);
    assert_eq!((held(&mut world), status(&world).counted), (20, 10));
    marker(&mut world, RouteRefresh::END);
    assert_eq!((held(&mut world), status(&world).counted), (10, 10));
}

#[test]
fn refreshes_that_begin_for_ever_shut_nothing_out_without_a_limit() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    begin_for_ever(&mut world);
    announce(&mut world, 0..5);
    marker(&mut world, RouteRefresh::BEGIN);
    withdraw(&mut world, 0..1);
    announce(&mut world, 100..110);
    assert_eq!(held(&mut world), 14);
}

/// 0 announces to 1, which tells 2 of so many prefixes at the most; 3 hears everything.
fn limited_out(limit: u32) -> World {
    let mut world = World::joined(&[65010, 65020, 65030, 65040], &[(0, 1), (2, 1), (3, 1)]);
    set_limit_out(&mut world, Some(limit));
    world.settle();
    world
}

fn set_limit_out(world: &mut World, limit: Option<u32>) {
    let max_prefixes_out = limit.into_iter().map(|limit| (V4, limit)).collect();
    let config = PeerConfig { passive: true, max_prefixes_out, ..world.config(2) };
    assert_eq!(world.command(1, Command::PutPeer(key(2), config)), Applied::Applied);
    world.settle();
}

/// How many prefixes 2 has, which must be those that 1 believes it has told.
fn told(world: &mut World) -> usize {
    let heard = world.heard(2, 1, V4);
    assert!(heard == world.told(1, 2, V4), "1 is wrong about what it told");
    assert_eq!(world.peer(1, 2).families[0].advertised, heard.len() as u64);
    heard.len()
}

#[test]
fn a_neighbour_is_told_no_more_than_it_may_be() {
    let mut world = limited_out(100);
    announce(&mut world, 0..100);
    assert_eq!((told(&mut world), world.peer(1, 2).families[0].condition()), (100, None));
    announce(&mut world, 100..400);
    assert_eq!((told(&mut world), world.heard(3, 1, V4).len()), (100, 400));
    let words = "no more than 100 prefixes are announced, others are held back";
    assert_eq!(world.peer(1, 2).families[0].condition().as_deref(), Some(words));
    // What is told may change, and what is held back as well.
    let first = *world.heard(2, 1, V4).keys().next().unwrap();
    for n in 0..400 {
        world.originate(0, nth(n), marked(77));
    }
    world.settle();
    assert_eq!((told(&mut world), world.heard(2, 1, V4)[&first].0), (100, 77));
    // Where something goes, something else comes.
    withdraw(&mut world, 0..250);
    assert_eq!(told(&mut world), 100);
    withdraw(&mut world, 250..330);
    assert_eq!((told(&mut world), world.peer(1, 2).families[0].condition()), (70, None));
    assert_eq!(world.heard(2, 1, V4), world.told(1, 3, V4));
}

#[test]
fn a_limit_on_what_is_told_is_followed_at_once() {
    let mut world = World::joined(&[65010, 65020, 65030, 65040], &[(0, 1), (2, 1), (3, 1)]);
    announce(&mut world, 0..300);
    for (limit, expected) in [(Some(120), 120), (Some(20), 20), (Some(0), 0), (Some(200), 200), (None, 300)] {
        set_limit_out(&mut world, limit);
        assert_eq!(told(&mut world), expected, "{limit:?}");
    }
    assert_eq!(world.peer(1, 2).established_count, 1);
    // Those without a limit share a group again.
    assert_eq!(world.nodes[1].speaker.sizes().update_groups, 2);
    // A session that comes up, and one that is lost.
    set_limit_out(&mut world, Some(50));
    world.cut(1, 2, true);
    world.settle();
    world.cut(1, 2, false);
    world.pass(Duration::from_secs(60));
    assert_eq!(told(&mut world), 50);
}

#[test]
fn what_a_neighbour_said_itself_does_not_count_as_told() {
    let mut world = limited_out(10);
    for n in 0..8 {
        world.originate(2, nth(n), marked(5));
    }
    world.settle();
    announce(&mut world, 100..110);
    assert_eq!(told(&mut world), 10);
    // 0 announces the same with a shorter way: those become other people's routes, for which there is no room.
    for n in 0..8 {
        world.command(2, Command::DeleteOrigination(nth(n)));
    }
    announce(&mut world, 0..8);
    assert_eq!(told(&mut world), 10);
    withdraw(&mut world, 100..108);
    assert_eq!(told(&mut world), 10);
    assert_eq!(world.heard(3, 1, V4).len(), 10);
}

#[test]
fn a_route_that_a_neighbour_says_itself_makes_room_for_another() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (2, 1)]);
    let config = PeerConfig { passive: true, max_prefixes_out: [(V4, 1)].into(), ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    for n in 0..2 {
        world.originate(2, nth(n), marked(1));
        world.settle();
    }
    assert_eq!(world.heard(0, 1, V4).len(), 1);
    // What it was told it now announces itself, and is preferred.
    world.originate(0, nth(0), marked(1));
    world.settle();
    assert_eq!(world.best(1, V4)[&nth(0)].1, "65010");
    assert_eq!(world.heard(0, 1, V4).into_keys().collect::<Vec<_>>(), [nth(1)]);
}

#[test]
fn a_policy_that_changes_as_room_is_filled_changes_what_was_told_before() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (2, 1)]);
    let prepending = |asn| PolicyDef {
        statements: vec![StatementDef {
            label: None,
            when: vec![],
            apply: vec![Act::Prepend(Asn(asn), 1)],
            then: Flow::Accept,
        }],
        default: Default::Accept,
    };
    world.command(1, Command::PutPolicy("out".into(), prepending(65001)));
    let export = Chain::named("out");
    let config = PeerConfig { passive: true, export, max_prefixes_out: [(V4, 2)].into(), ..world.config(2) };
    world.command(1, Command::PutPeer(key(2), config));
    for n in 0..4 {
        world.originate(0, nth(n), marked(1));
        world.settle();
    }
    assert_eq!(world.heard(2, 1, V4).len(), 2);
    world.pull_octets = 1;
    world.command(0, Command::DeleteOrigination(nth(0)));
    // Until the withdrawal has been said, and no further.
    let before = world.nodes[1].sent.len();
    let mut nodes = (0..3).cycle();
    while world.nodes[1].sent.len() == before {
        world.step(nodes.next().unwrap());
    }
    world.command(1, Command::PutPolicy("out".into(), prepending(65002)));
    world.settle();
    let heard = world.heard(2, 1, V4);
    assert_eq!(heard, world.told(1, 2, V4));
    assert_eq!(heard.len(), 2);
    assert!(heard.values().all(|(_, path)| path == "65002 65020 65010"), "{heard:?}");
}

#[test]
fn a_route_too_large_for_a_message_takes_no_place() {
    for paths in [None, NonZeroU8::new(2)] {
        let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (2, 1)]);
        let policy = PolicyDef {
            statements: vec![StatementDef {
                label: None,
                when: vec![Condition::Prefix(vec!["10.0.0.0/24".parse().unwrap()])],
                apply: vec![Act::Prepend(Asn(9), 200)],
                then: Flow::Accept,
            }],
            default: Default::Accept,
        };
        world.command(1, Command::PutPolicy("out".into(), policy));
        let config = PeerConfig {
            passive: true,
            export: Chain::named("out"),
            extended_messages: false,
            max_prefixes_out: [(V4, 1)].into(),
            add_path: AddPath { receive: false, send: paths },
            ..world.config(2)
        };
        world.command(1, Command::PutPeer(key(2), config));
        let add_path = AddPath { receive: paths.is_some(), send: None };
        let config = PeerConfig { add_path, ..world.config(1) };
        world.command(2, Command::PutPeer(key(1), config));
        world.pass(Duration::from_secs(60));
        assert!(world.is_up(1, 2));
        let long = Origination { communities: (0..900).collect(), ..Origination::default() };
        world.originate(0, nth(0), long.clone());
        world.originate(0, nth(1), marked(1));
        world.settle();
        let heard = |world: &mut World| world.heard(2, 1, V4).into_keys().collect::<Vec<_>>();
        assert_eq!(heard(&mut world), [nth(1)], "{paths:?}");
        assert!(world.nodes[1].speaker.stats().too_large > 0);
        // One that was told grows beyond the message, and makes room for one that was held back.
        world.command(0, Command::DeleteOrigination(nth(1)));
        world.originate(0, nth(0), marked(1));
        world.settle();
        world.originate(0, nth(2), marked(1));
        world.settle();
        assert_eq!(heard(&mut world), [nth(0)], "{paths:?}");
        world.originate(0, nth(0), long);
        world.settle();
        assert_eq!(heard(&mut world), [nth(2)], "{paths:?}");
    }
}
