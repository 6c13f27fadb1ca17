//! Several paths of a destination on one session (RFC 7911).

use super::*;
use crate::command::{self, Chain};
use crate::policy::{Act, Condition, Flow, PolicyDef, StatementDef};
use crate::query::PathEntry;
use crate::rib::DecisionSettings;
use crate::session::AddPath;
use bgp_wire::attr::{Builder, Community, Origin};
use bgp_wire::{EncodeOptions, Ipv4Prefix, PathId, RouteRefresh, UpdateWriter};
use bytes::BytesMut;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::num::NonZeroU8;

const V4: Family = Family::Ipv4Unicast;
const V6: Family = Family::Ipv6Unicast;

fn sends(most: u8) -> AddPath {
    AddPath { receive: false, send: NonZeroU8::new(most) }
}

const RECEIVES: AddPath = AddPath { receive: true, send: None };

/// How a neighbour is configured that several paths go to, or come from.
fn with(world: &World, other: usize, add_path: AddPath) -> PeerConfig {
    PeerConfig { add_path, passive: true, ..world.config(other) }
}

/// `from` sends up to `most` paths to `to`.
fn join(world: &mut World, from: usize, to: usize, most: u8) {
    let config = with(world, to, sends(most));
    world.command(from, Command::PutPeer(key(to), config));
    let config = PeerConfig { passive: false, ..with(world, from, RECEIVES) };
    world.command(to, Command::PutPeer(key(from), config));
}

/// Nodes 0 to 2 originate; 3 hears them and sends up to `most` paths to 4.
fn world(most: u8) -> World {
    let mut world = World::new(&[65010, 65020, 65030, 65040, 65050]);
    for node in 0..3 {
        world.join(node, 3);
    }
    join(&mut world, 3, 4, most);
    world.load();
    world.settle();
    world
}

/// Says of a path what tells it from others: its identifier, its first community, its AS path.
fn told(path: &PathEntry) -> (u32, u32, String) {
    let set = Canonical(path.attrs.canonical());
    let mark = set.communities().next().map_or(0, |community| community.0);
    (path.path_id.expect("an identifier").0, mark, set.as_path().to_string())
}

type Paths = BTreeMap<Nlri, BTreeSet<(u32, u32, String)>>;

fn paths(world: &mut World, node: usize, table: RouteTable, family: Family) -> Paths {
    let routes = world.routes(node, table, family);
    routes.iter().map(|route| (route.nlri, route.paths.iter().map(told).collect())).collect()
}

/// What `node` has heard from `other`, once `other` believes that it told just that.
fn agreed(world: &mut World, node: usize, other: usize) -> Paths {
    let heard = paths(world, node, RouteTable::AdjRibIn(key(other)), V4);
    assert_eq!(heard, paths(world, other, RouteTable::AdjRibOut(key(node)), V4));
    let count: usize = heard.values().map(BTreeSet::len).sum();
    assert_eq!(world.peer(other, node).families[0].advertised, count as u64);
    assert_eq!(world.peer(node, other).families[0].received, count as u64);
    heard
}

/// The AS paths that `node` has heard of a prefix.
fn as_paths(world: &mut World, node: usize, other: usize, prefix: Nlri) -> Vec<String> {
    let heard = agreed(world, node, other);
    let mut paths: Vec<String> =
        heard.get(&prefix).into_iter().flatten().map(|(_, _, path)| path.clone()).collect();
    paths.sort();
    paths
}

fn refresh(family: Family) -> Vec<u8> {
    let mut octets = BytesMut::new();
    RouteRefresh::new(family, RouteRefresh::REQUEST).encode(&mut octets);
    octets.to_vec()
}

// ---- What is agreed (sections 4 and 5) ----

#[test]
fn paths_go_where_one_end_sends_and_the_other_receives() {
    for (ours, theirs, expected) in [
        (AddPath::ALL, AddPath::ALL, (true, Some(255))),
        (sends(4), RECEIVES, (false, Some(4))),
        (sends(4), AddPath::ALL, (false, Some(4))),
        (AddPath::ALL, sends(1), (true, None)),
        (RECEIVES, RECEIVES, (false, None)),
        (sends(4), sends(4), (false, None)),
        (AddPath::ALL, AddPath::NONE, (false, None)),
    ] {
        let mut world = World::new(&[65010, 65020]);
        let config = with(&world, 1, ours);
        world.command(0, Command::PutPeer(key(1), config));
        let config = PeerConfig { passive: false, ..with(&world, 0, theirs) };
        world.command(1, Command::PutPeer(key(0), config));
        world.load();
        world.settle();
        for family in world.peer(0, 1).families {
            let agreed = (family.add_path_receive, family.add_path_send.map(NonZeroU8::get));
            assert_eq!(agreed, expected, "{ours:?} {theirs:?}");
        }
        world.originate(0, nth(1), Origination::default());
        world.originate(1, nth(2), Origination::default());
        world.settle();
        assert_eq!((world.best(0, V4).len(), world.best(1, V4).len()), (2, 2), "{ours:?} {theirs:?}");
    }
}

#[test]
fn only_the_offer_is_in_the_open() {
    let mut world = world(2);
    let before = world.peer(3, 4).established_count;
    let config = with(&world, 4, sends(3));
    assert_eq!(world.command(3, Command::PutPeer(key(4), config)), Applied::Applied);
    let config = with(&world, 4, AddPath::NONE);
    assert_eq!(world.command(3, Command::PutPeer(key(4), config)), Applied::SessionReset);
    world.pass(Duration::from_secs(10));
    assert_eq!(world.peer(3, 4).established_count, before + 1);
}

// ---- What is sent ----

#[test]
fn the_best_paths_are_sent_and_replace_one_another() {
    let mut world = world(2);
    let prefix = nth(1);
    for node in 0..3 {
        world.originate(node, prefix, marked(1));
    }
    world.settle();
    // Equal up to the identifier of the neighbour.
    assert_eq!(as_paths(&mut world, 4, 3, prefix), ["65040 65010", "65040 65020"]);
    // One of them goes: the next one takes its place, and nothing else is said.
    let before = agreed(&mut world, 4, 3);
    world.command(0, Command::DeleteOrigination(prefix));
    world.settle();
    assert_eq!(as_paths(&mut world, 4, 3, prefix), ["65040 65020", "65040 65030"]);
    let after = agreed(&mut world, 4, 3);
    let kept: Vec<_> = before[&prefix].intersection(&after[&prefix]).collect();
    assert_eq!(kept.len(), 1, "the path of 65020 keeps its identifier");
    // It comes back and the third one leaves.
    world.originate(0, prefix, marked(7));
    world.settle();
    assert_eq!(as_paths(&mut world, 4, 3, prefix), ["65040 65010", "65040 65020"]);
    // A change beside the best path is told too.
    world.originate(1, prefix, marked(9));
    world.settle();
    let marks: BTreeSet<u32> = agreed(&mut world, 4, 3)[&prefix].iter().map(|(_, mark, _)| *mark).collect();
    assert_eq!(marks, [7, 9].into());
    for node in 0..3 {
        world.command(node, Command::DeleteOrigination(prefix));
    }
    world.settle();
    assert!(agreed(&mut world, 4, 3).is_empty());
    assert_eq!(world.nodes[3].speaker.sizes().attribute_sets, 0);
    assert_eq!(world.nodes[4].speaker.sizes().destinations[0], 0);
}

#[test]
fn both_families_have_identifiers() {
    let mut world = world(4);
    for node in 0..2 {
        world.originate(node, nlri("2001:db8:7::/48"), marked(1));
    }
    world.settle();
    let heard = paths(&mut world, 4, RouteTable::AdjRibIn(key(3)), V6);
    assert_eq!(heard[&nlri("2001:db8:7::/48")].len(), 2);
    world.command(0, Command::DeleteOrigination(nlri("2001:db8:7::/48")));
    world.settle();
    assert_eq!(paths(&mut world, 4, RouteTable::AdjRibIn(key(3)), V6)[&nlri("2001:db8:7::/48")].len(), 1);
}

#[test]
fn nobody_is_told_its_own_path_nor_another_in_its_place() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    for node in 0..3 {
        join(&mut world, 3, node, 2);
    }
    world.load();
    world.settle();
    for node in 0..3 {
        world.originate(node, nth(1), marked(1));
    }
    world.settle();
    assert_eq!(as_paths(&mut world, 0, 3, nth(1)), ["65040 65020"]);
    assert_eq!(as_paths(&mut world, 1, 3, nth(1)), ["65040 65010"]);
    assert_eq!(as_paths(&mut world, 2, 3, nth(1)), ["65040 65010", "65040 65020"]);
    assert_eq!(world.nodes[3].speaker.sizes().update_groups, 2, "one for each family");
    world.cut(0, 3, true);
    world.settle();
    assert_eq!(as_paths(&mut world, 1, 3, nth(1)), ["65040 65030"]);
    assert_eq!(as_paths(&mut world, 2, 3, nth(1)), ["65040 65020"]);
}

#[test]
fn the_best_path_is_among_those_sent_though_med_is_no_order() {
    // RFC 7911 section 5. Of 65010's two routers the second has the better MED, so 1 is best. Without 1, which may not
    // be told, 0 would be.
    let mut world = World::new(&[65010, 65010, 65030, 65040, 65050]);
    for node in 0..3 {
        world.join(node, 3);
    }
    join(&mut world, 3, 4, 1);
    world.load();
    world.settle();
    for (node, med) in [(0, 20), (1, 10), (2, 0)] {
        world.originate(node, nth(1), Origination { med: Some(med), ..marked(node as u32) });
    }
    world.settle();
    let marks = |world: &mut World| -> Vec<u32> {
        agreed(world, 4, 3)[&nth(1)].iter().map(|(_, mark, _)| *mark).collect()
    };
    assert_eq!(marks(&mut world), [1]);
    // Policy keeps it: of the others, by themselves, 0 is best.
    let reject = StatementDef {
        label: None,
        when: vec![Condition::Community(Community(1))],
        apply: vec![],
        then: Flow::Reject,
    };
    let policy = PolicyDef { statements: vec![reject], default: crate::policy::Default::Accept };
    world.command(3, Command::PutPolicy("out".into(), policy));
    let config = PeerConfig { export: Chain::named("out"), ..with(&world, 4, sends(1)) };
    world.command(3, Command::PutPeer(key(4), config));
    world.settle();
    assert_eq!(marks(&mut world), [0]);
}

/// The best path stays, and which of the others comes next does not.
#[test]
fn another_way_to_compare_is_another_order_behind_the_best_path() {
    let mut world = world(2);
    for (node, med) in [(0, 0), (1, 20), (2, 10)] {
        world.originate(node, nth(1), Origination { med: Some(med), ..marked(1) });
    }
    world.settle();
    assert_eq!(as_paths(&mut world, 4, 3, nth(1)), ["65040 65010", "65040 65020"]);
    for (always_compare_med, second) in [(true, "65040 65030"), (false, "65040 65020")] {
        let settings = DecisionSettings { always_compare_med, ..DecisionSettings::RFC4271 };
        world.command(3, Command::PutDecision(settings));
        world.settle();
        assert_eq!(as_paths(&mut world, 4, 3, nth(1)), ["65040 65010", second]);
    }
}

#[test]
fn an_edit_of_policy_is_told_path_by_path() {
    let mut world = world(3);
    for node in 0..3 {
        for n in 0..20 {
            world.originate(node, nth(n), marked(node as u32 * 100 + n));
        }
    }
    world.settle();
    assert_eq!(agreed(&mut world, 4, 3).values().map(BTreeSet::len).sum::<usize>(), 60);
    let text = |mark: u32| PolicyDef {
        statements: vec![StatementDef {
            label: None,
            when: vec![Condition::Community(Community(mark))],
            apply: vec![Act::Prepend(Asn(65099), 1)],
            then: Flow::Accept,
        }],
        default: crate::policy::Default::Accept,
    };
    world.command(3, Command::PutPolicy("out".into(), text(100)));
    let config = PeerConfig { export: Chain::named("out"), ..with(&world, 4, sends(3)) };
    world.command(3, Command::PutPeer(key(4), config));
    world.settle();
    let edited = |world: &mut World| -> Vec<u32> {
        let heard = agreed(world, 4, 3);
        let all = heard.values().flatten().filter(|(_, _, path)| path.contains("65099"));
        all.map(|(_, mark, _)| *mark).collect()
    };
    assert_eq!(edited(&mut world), [100]);
    let before = world.peer(4, 3).received.update;
    world.command(3, Command::PutPolicy("out".into(), text(203)));
    world.settle();
    assert_eq!(edited(&mut world), [203]);
    assert_eq!(world.peer(4, 3).received.update - before, 2, "what did not change is not said again");
}

#[test]
fn how_many_are_sent_changes_while_the_session_is_up() {
    let mut world = world(1);
    for node in 0..3 {
        for n in 0..200 {
            world.originate(node, nth(n), marked(node as u32 * 1000 + n));
        }
    }
    world.settle();
    for most in [3, 2, 1, 2, 3, 1] {
        let config = with(&world, 4, sends(most));
        world.command(3, Command::PutPeer(key(4), config));
        // In the middle of it as well.
        for step in 0..usize::from(most) * 7 {
            world.step(step % 5);
        }
    }
    world.settle();
    assert!(agreed(&mut world, 4, 3).values().all(|paths| paths.len() == 1));
    assert_eq!(world.peer(3, 4).established_count, 1);
}

// ---- Who comes late, asks again, or reads slowly ----

#[test]
fn late_and_slow_members_and_those_who_ask_again_have_it_right_in_the_end() {
    let mut world = World::new(&[65010, 65020, 65030, 65040, 65050, 65060]);
    for node in 0..3 {
        world.join(node, 3);
    }
    join(&mut world, 3, 4, 2);
    world.load();
    world.settle();
    let fill = |world: &mut World, round: u32| {
        for n in 0..300 {
            for node in 0..3 {
                if (n + round + node as u32).is_multiple_of(3) {
                    world.command(node, Command::DeleteOrigination(nth(n)));
                } else {
                    world.originate(node, nth(n), marked(round * 1000 + n % 7));
                }
            }
        }
    };
    fill(&mut world, 0);
    world.settle();
    // Late.
    join(&mut world, 3, 5, 2);
    world.pull_octets = 1;
    for step in 0..200 {
        world.step(step % 6);
    }
    fill(&mut world, 1);
    world.settle();
    assert_eq!(agreed(&mut world, 4, 3), agreed(&mut world, 5, 3));
    assert!(world.peer(5, 3).families[0].end_of_rib_received);
    assert_eq!(world.nodes[3].speaker.sizes().update_groups, 4, "two of those who send");
    // Slow: what it missed are withdrawals of paths that nobody remembers but the group.
    world.pull_octets = 64 * 1024;
    world.stall(5, 3, true);
    for round in 2..6 {
        fill(&mut world, round);
        world.settle();
    }
    assert!(world.nodes[3].speaker.stats().fell_behind > 0);
    world.stall(5, 3, false);
    world.settle();
    assert_eq!(agreed(&mut world, 4, 3), agreed(&mut world, 5, 3));
    // Asks again, with changes meanwhile.
    for round in 6..9 {
        world.inject(5, 3, refresh(V4));
        for step in 0..40 {
            world.step(step % 6);
        }
        fill(&mut world, round);
    }
    world.settle();
    assert_eq!(agreed(&mut world, 4, 3), agreed(&mut world, 5, 3));
    // Nothing is left behind.
    for n in 0..300 {
        for node in 0..3 {
            world.command(node, Command::DeleteOrigination(nth(n)));
        }
    }
    world.settle();
    assert!(agreed(&mut world, 5, 3).is_empty());
    assert_eq!(world.nodes[3].speaker.sizes().attribute_sets, 0);
    for other in [0, 1, 2, 4, 5] {
        world.command(3, Command::DeletePeer(key(other)));
    }
    world.settle();
    let sizes = world.nodes[3].speaker.sizes();
    assert_eq!((sizes.destinations, sizes.update_groups), ([0; Family::COUNT], 0));
    assert!(!world.nodes[3].speaker.has_work());
}

// ---- Received ----

/// An UPDATE of 10.0.1.0/24 without an identifier, with an AS path of two.
fn longer(first: u32, mark: u32) -> Vec<u8> {
    let mut builder = Builder::new(Origin::Igp);
    builder.prepend(Asn(65099), 1).prepend(Asn(first), 1).add_communities([Community(mark)]);
    let mut attrs = Vec::new();
    bgp_wire::attr::encode(Canonical(&builder.build()), Some([192, 0, 2, 9].into()), true, &mut attrs);
    let mut out = BytesMut::new();
    let prefix = Ipv4Prefix::new(0x0a00_0100, 24).unwrap();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
    writer.announce_v4(&attrs, [(PathId::NONE, prefix)]).unwrap();
    out.to_vec()
}

#[test]
fn what_happens_behind_the_best_path_is_told() {
    let mut world = world(2);
    let prefix = nth(1);
    world.originate(0, prefix, marked(1));
    world.settle();
    let marks = |world: &mut World| -> BTreeSet<u32> {
        world.settle();
        agreed(world, 4, 3)[&prefix].iter().map(|(_, mark, _)| *mark).collect()
    };
    world.inject(1, 3, longer(65020, 2));
    assert_eq!(marks(&mut world), [1, 2].into());
    world.inject(1, 3, longer(65020, 3));
    assert_eq!(marks(&mut world), [1, 3].into());
    // Unreachable, and reachable again.
    let hop = [192, 0, 2, 9].into();
    let gone = crate::rib::NextHopState { reachable: false, ..Default::default() };
    world.command(3, Command::PutNextHop(hop, gone));
    assert_eq!(marks(&mut world), [1].into());
    world.command(3, Command::DeleteNextHop(hop));
    assert_eq!(marks(&mut world), [1, 3].into());
    // Import policy lets it in no more, and again.
    for (import, expected) in [(Chain::REJECT, vec![1]), (Chain::ACCEPT, vec![1, 3])] {
        let config = PeerConfig { import, passive: true, ..world.config(1) };
        world.command(3, Command::PutPeer(key(1), config));
        assert_eq!(marks(&mut world), expected.into_iter().collect());
    }
    // Its neighbour goes.
    world.cut(1, 3, true);
    assert_eq!(marks(&mut world), [1].into());
}

/// An UPDATE that announces or withdraws paths of one prefix by their identifiers.
fn update(ids: impl Iterator<Item = u32>, announce: bool) -> Vec<u8> {
    let set = Builder::new(Origin::Igp).prepend(Asn(65010), 1).build();
    let mut attrs = Vec::new();
    bgp_wire::attr::encode(Canonical(&set), Some([192, 0, 2, 1].into()), true, &mut attrs);
    let mut out = BytesMut::new();
    let options = EncodeOptions { add_path: FamilySet::only(V4), ..EncodeOptions::default() };
    let mut writer = UpdateWriter::new(&mut out, options);
    let prefixes = ids.map(|id| (PathId(id), Ipv4Prefix::new(0x0a00_0100, 24).unwrap()));
    if announce {
        writer.announce_v4(&attrs, prefixes).unwrap();
    } else {
        writer.withdraw_v4(prefixes);
    }
    out.to_vec()
}

/// 0 sends several paths to 1.
fn receiver() -> World {
    let mut world = World::new(&[65010, 65020]);
    join(&mut world, 0, 1, 4);
    world.load();
    world.settle();
    world
}

fn received(world: &mut World) -> Vec<u32> {
    let routes = world.routes(1, RouteTable::AdjRibIn(key(0)), V4);
    let mut ids: Vec<u32> =
        routes.iter().flat_map(|route| &route.paths).map(|path| path.path_id.unwrap().0).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn paths_come_and_go_by_their_identifiers() {
    let mut world = receiver();
    world.inject(0, 1, update([7, 0, 9].into_iter(), true));
    assert_eq!(received(&mut world), [0, 7, 9]);
    // Section 5: the same identifier replaces; one not seen before is ignored.
    world.inject(0, 1, update([7].into_iter(), true));
    world.inject(0, 1, update([8, 1_000_000].into_iter(), false));
    assert_eq!(received(&mut world), [0, 7, 9]);
    world.inject(0, 1, update([0, 9].into_iter(), false));
    assert_eq!(received(&mut world), [7]);
    assert_eq!(world.peer(1, 0).families[0].received, 1);
    assert!(world.is_up(0, 1));
}

#[test]
fn one_destination_takes_a_bounded_number_of_paths() {
    let mut world = receiver();
    world.inject(0, 1, update(1..=100, true));
    assert_eq!(received(&mut world), (1..=16).collect::<Vec<_>>());
    assert_eq!(world.nodes[1].speaker.stats().paths_refused, 84);
    // Those that are there may change; one more may come when one has gone; the plain one is not counted.
    world.inject(0, 1, update([3, 50, 0].into_iter(), true));
    world.inject(0, 1, update([16].into_iter(), false));
    world.inject(0, 1, update([60, 61].into_iter(), true));
    let expected: Vec<u32> = (0..=15).chain([60]).collect();
    assert_eq!(received(&mut world), expected);
    assert!(world.is_up(0, 1));
}

#[test]
fn identifiers_leave_nothing_behind() {
    let mut world = receiver();
    for round in 0..50 {
        world.inject(0, 1, update(round * 10..round * 10 + 10, true));
        world.inject(0, 1, update(round * 10..round * 10 + 5_000, false));
    }
    assert_eq!(received(&mut world), [0; 0]);
    let peer = *world.nodes[1].speaker.by_key.get(&key(0)).unwrap();
    assert_eq!(world.nodes[1].speaker.shared.sources.path_ids(peer), 0);
    // With the session they go as well.
    world.inject(0, 1, update(1..=10, true));
    assert_eq!(world.nodes[1].speaker.shared.sources.path_ids(peer), 10);
    world.cut(0, 1, true);
    world.settle();
    assert_eq!(world.nodes[1].speaker.shared.sources.path_ids(peer), 0);
}

#[test]
fn paths_are_kept_over_a_restart_and_swept_by_identifier() {
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    world.graceful_restart = Some(GracefulRestart::USUAL);
    for node in 0..2 {
        world.join(node, 2);
    }
    join(&mut world, 2, 3, 4);
    world.load();
    world.settle();
    for node in 0..2 {
        world.originate(node, nth(1), marked(1));
        world.originate(node, nth(2), marked(2));
    }
    world.settle();
    let before = agreed(&mut world, 3, 2);
    assert!(before.len() == 2 && before.values().all(|paths| paths.len() == 2));
    world.cut(2, 3, true);
    world.settle();
    let stale = paths(&mut world, 3, RouteTable::AdjRibIn(key(2)), V4);
    assert_eq!(stale, before, "kept, with their identifiers");
    world.command(0, Command::DeleteOrigination(nth(1)));
    world.cut(2, 3, false);
    world.pass(Duration::from_secs(30));
    let after = agreed(&mut world, 3, 2);
    assert_eq!((after[&nth(1)].len(), after[&nth(2)].len()), (1, 2));
}

// ---- Whatever happens ----

/// One thing that happens where 0 to 2 originate, 3 passes on, 4 and 5 (inside 3's AS) take several paths.
#[derive(Clone, Debug)]
enum Happening {
    Originate(usize, u32, u32),
    Withdraw(usize, u32),
    Many(usize, u32, u32),
    ManyGone(usize, u32),
    Stall(usize, bool),
    Cut(usize, bool),
    Refresh(usize),
    /// 3 begins to keep routes of this mark to itself.
    Policy(u32),
    /// 3 sends a listener so many paths.
    Most(usize, u8),
    /// 3 compares MED, which is the mark, of all paths.
    Compare(bool),
    /// 3 aggregates all there is, or not; and lets that stand for it.
    Aggregate(Option<bool>),
    Steps(usize),
    Settle,
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        6 => (0usize..3, 0u32..40, 0u32..4).prop_map(|(node, n, mark)| Originate(node, n, mark)),
        4 => (0usize..3, 0u32..40).prop_map(|(node, n)| Withdraw(node, n)),
        2 => (0usize..3, 0u32..4, 0u32..4).prop_map(|(node, n, mark)| Many(node, n, mark)),
        1 => (0usize..3, 0u32..4).prop_map(|(node, n)| ManyGone(node, n)),
        2 => (4usize..6, any::<bool>()).prop_map(|(node, on)| Stall(node, on)),
        1 => (0usize..6, any::<bool>()).prop_map(|(node, on)| Cut(node, on)),
        1 => (4usize..6).prop_map(Refresh),
        1 => (0u32..5).prop_map(Policy),
        2 => (4usize..6, 1u8..4).prop_map(|(node, most)| Most(node, most)),
        2 => any::<bool>().prop_map(Compare),
        2 => prop::option::of(any::<bool>()).prop_map(Aggregate),
        4 => (1usize..20).prop_map(Steps),
        2 => Just(Settle),
        1 => (1u64..30).prop_map(Wait),
    ]
}

fn keep(mark: u32) -> PolicyDef {
    let statement = StatementDef {
        label: None,
        when: vec![Condition::Community(Community(mark))],
        apply: vec![],
        then: Flow::Reject,
    };
    PolicyDef { statements: vec![statement], default: crate::policy::Default::Accept }
}

fn listen(world: &mut World, listener: usize, most: u8) {
    let config = PeerConfig { export: Chain::named("out"), ..with(world, listener, sends(most)) };
    world.command(3, Command::PutPeer(key(listener), config));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 3, ..ProptestConfig::default() })]

    #[test]
    fn in_the_end_listeners_have_the_best_paths_after_export(
        happenings in prop::collection::vec(happening(), 1..60),
        pull in prop_oneof![Just(1usize), Just(5_000), Just(100_000)],
        graceful: bool,
    ) {
        let asns = [65010, 65020, 65030, 65040, 65050, 65040];
        let mut world = World::new(&asns);
        world.graceful_restart = graceful.then_some(GracefulRestart::USUAL);
        for node in 0..3 {
            world.join(node, 3);
        }
        for node in [4, 5] {
            join(&mut world, 3, node, 2);
        }
        world.load();
        world.settle();
        world.pull_octets = pull;
        let mut said = [const { BTreeMap::new() }; 3];
        let mut kept = 4;
        let mut most = [2, 2];
        let (mut by_mark, mut aggregate) = (false, None);
        let around: ipnet::IpNet = "10.0.0.0/8".parse().unwrap();
        let told = |mark: u32| Origination { med: Some(mark), ..marked(mark) };
        world.command(3, Command::PutPolicy("out".into(), keep(kept)));
        for node in [4, 5] {
            listen(&mut world, node, 2);
        }
        for happening in happenings {
            match happening {
                Happening::Originate(node, n, mark) => {
                    world.originate(node, nth(n), told(mark));
                    said[node].insert(nth(n), mark);
                }
                Happening::Withdraw(node, n) => {
                    world.command(node, Command::DeleteOrigination(nth(n)));
                    said[node].remove(&nth(n));
                }
                Happening::Many(node, n, mark) => {
                    for n in n * 100 + 50..n * 100 + 350 {
                        world.originate(node, nth(n), told((mark + n) % 5));
                        said[node].insert(nth(n), (mark + n) % 5);
                    }
                }
                Happening::ManyGone(node, n) => {
                    for n in n * 100 + 50..n * 100 + 350 {
                        world.command(node, Command::DeleteOrigination(nth(n)));
                        said[node].remove(&nth(n));
                    }
                }
                Happening::Stall(node, on) => world.stall(node, 3, on),
                Happening::Cut(3, _) => {}
                Happening::Cut(node, on) => world.cut(node, 3, on),
                Happening::Refresh(node) => {
                    world.command(3, Command::ClearPeer(key(node), command::Clear::SoftOut));
                }
                Happening::Policy(mark) => {
                    kept = mark;
                    world.command(3, Command::PutPolicy("out".into(), keep(kept)));
                }
                Happening::Most(node, count) => {
                    most[node - 4] = count;
                    listen(&mut world, node, count);
                }
                Happening::Compare(always_compare_med) => {
                    by_mark = always_compare_med;
                    let settings = DecisionSettings { always_compare_med, ..DecisionSettings::RFC4271 };
                    world.command(3, Command::PutDecision(settings));
                }
                Happening::Aggregate(how) => {
                    aggregate = how;
                    world.command(3, match how {
                        Some(summary_only) => {
                            let how = command::Aggregate { summary_only, ..command::Aggregate::default() };
                            Command::PutAggregate(around, how)
                        }
                        None => Command::DeleteAggregate(around),
                    });
                }
                Happening::Steps(count) => {
                    for step in 0..count {
                        world.step(step % 6);
                    }
                }
                Happening::Settle => world.settle(),
                Happening::Wait(secs) => world.pass(Duration::from_secs(secs)),
            }
        }
        for node in [0, 1, 2, 4, 5] {
            world.stall(node, 3, false);
            world.cut(node, 3, false);
        }
        world.pass(Duration::from_secs(200));
        // All paths are equal up to the identifier of whom they came from, but for the mark where that is compared, so the
        // order is that of the nodes.
        let mut open: BTreeMap<Nlri, Vec<(u32, u32)>> = BTreeMap::new();
        for (node, asn) in [(0, 65010), (1, 65020), (2, 65030)] {
            for (prefix, mark) in said[node].iter().filter(|(_, mark)| **mark != kept) {
                open.entry(*prefix).or_default().push((*mark, asn));
            }
        }
        if by_mark {
            open.values_mut().for_each(|paths| paths.sort_by_key(|(mark, _)| *mark));
        }
        let aggregate = aggregate.filter(|_| said.iter().any(|said| !said.is_empty()));
        if aggregate == Some(true) {
            open.clear();
        }
        for (listener, most, front) in [(4, most[0], "65040 "), (5, most[1], "")] {
            let mut expected: BTreeMap<Nlri, BTreeSet<(u32, String)>> = open
                .iter()
                .map(|(prefix, paths)| {
                    let best = paths.iter().take(usize::from(most));
                    (*prefix, best.map(|(mark, asn)| (*mark, format!("{front}{asn}"))).collect())
                })
                .collect();
            if aggregate.is_some() {
                expected.insert(around.into(), [(0, front.trim().to_owned())].into());
            }
            let heard = agreed(&mut world, listener, 3);
            let heard: BTreeMap<Nlri, BTreeSet<(u32, String)>> = heard
                .into_iter()
                .map(|(prefix, paths)| (prefix, paths.into_iter().map(|(_, mark, path)| (mark, path)).collect()))
                .collect();
            prop_assert_eq!(heard, expected, "{} hears up to {}", listener, most);
        }
        // Nothing is held that nobody needs.
        let own = usize::from(aggregate.is_some());
        let marks: BTreeSet<_> =
            (0..3).flat_map(|node| said[node].values().map(move |mark| (node, *mark))).collect();
        prop_assert_eq!(world.nodes[3].speaker.sizes().attribute_sets, (marks.len() + own) as u64);
        prop_assert_eq!(world.nodes[4].speaker.sizes().destinations[0], (open.len() + own) as u64);
    }
}
