//! The change stream, and convergence.

use super::*;
use crate::rib::{DecisionSettings, NextHopState, RibChange, WeightedNextHop};

const V4: FamilySet = FamilySet::only(Family::Ipv4Unicast);

fn told(events: &[RibEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event {
            RibEvent::Resync => "resync".into(),
            RibEvent::Replayed => "replayed".into(),
            RibEvent::Converged(family) => format!("converged {family}"),
            RibEvent::Change(RibChange { nlri, best, hops, local, .. }) => match (best, local) {
                (None, _) => format!("-{nlri}"),
                (Some(_), true) => format!("+{nlri} local"),
                (Some(_), false) => {
                    let hops: Vec<String> = hops
                        .members()
                        .iter()
                        .map(|WeightedNextHop { next_hop, weight }| match weight {
                            1 => next_hop.to_string(),
                            weight => format!("{next_hop}*{weight}"),
                        })
                        .collect();
                    format!("+{nlri} via {}", hops.join(" "))
                }
            },
        })
        .collect()
}

#[test]
fn a_reader_hears_everything_then_what_changes() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(0, nth(1), marked(1));
    world.originate(1, nth(2), marked(2));
    world.settle();
    let id = world.nodes[1].speaker.subscribe(V4);
    world.settle();
    let first = world.events(1, id);
    assert_eq!(
        told(&first),
        ["resync", "+10.0.2.0/24 local", "+10.0.1.0/24 via 192.0.2.1", "replayed", "converged ipv4-unicast"]
    );
    assert!(world.events(1, id).is_empty());
    let ready = world.nodes[1].rib_ready;
    world.command(0, Command::DeleteOrigination(nth(1)));
    world.originate(0, nth(3), marked(1));
    world.settle();
    assert_eq!(world.nodes[1].rib_ready, ready + 1, "said once");
    assert_eq!(told(&world.events(1, id)), ["-10.0.1.0/24", "+10.0.3.0/24 via 192.0.2.1"]);
}

#[test]
fn a_late_reader_gets_fewer_and_newer_answers() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let id = world.nodes[1].speaker.subscribe(V4);
    world.events(1, id);
    for round in 0..100 {
        world.originate(0, nth(1), marked(round));
        world.settle();
    }
    world.originate(0, nth(2), marked(1));
    world.settle();
    world.command(0, Command::DeleteOrigination(nth(2)));
    world.settle();
    let events = world.events(1, id);
    assert_eq!(told(&events), ["+10.0.1.0/24 via 192.0.2.1", "-10.0.2.0/24"]);
    let seqs: Vec<u64> = events
        .iter()
        .map(|event| match event {
            RibEvent::Change(change) => change.seq,
            RibEvent::Resync | RibEvent::Replayed | RibEvent::Converged(_) => 0,
        })
        .collect();
    assert!(seqs.is_sorted());
}

#[test]
fn changes_during_a_replay_are_told_once_and_the_rest_is_told_as_it_is() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    for n in 0..40 {
        world.originate(0, nth(n), marked(1));
    }
    world.settle();
    let id = world.nodes[1].speaker.subscribe(V4);
    let mut events = Vec::new();
    let mut last = BTreeMap::new();
    let mut count = 0;
    for n in 0..20 {
        events.clear();
        world.nodes[1].speaker.take(id, 3, &mut events);
        for text in told(&events) {
            count += 1;
            if text.starts_with(['+', '-']) {
                last.insert(text[1..].split(' ').next().unwrap().to_owned(), text.starts_with('+'));
            }
        }
        world.command(0, Command::DeleteOrigination(nth(n)));
        world.command(0, Command::DeleteOrigination(nth(39 - n)));
        world.originate(0, nth(100 + n), marked(1));
        world.settle();
    }
    let rest = world.events(1, id);
    for text in told(&rest).iter().filter(|text| text.starts_with(['+', '-'])) {
        count += 1;
        last.insert(text[1..].split(' ').next().unwrap().to_owned(), text.starts_with('+'));
    }
    let best: Vec<String> = world.best(1, Family::Ipv4Unicast).keys().map(ToString::to_string).collect();
    let known: Vec<String> = last.into_iter().filter(|(_, there)| *there).map(|(prefix, _)| prefix).collect();
    assert_eq!(known.len(), 20);
    assert!(best.iter().all(|prefix| known.contains(prefix)));
    assert!(count < 100, "{count} events for 40 + 60 changes");
}

#[test]
fn two_readers_do_not_disturb_one_another_and_one_can_go() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let a = world.nodes[1].speaker.subscribe(V4);
    let b = world.nodes[1].speaker.subscribe(V4);
    world.events(1, a);
    for n in 0..50 {
        world.originate(0, nth(n), marked(n));
    }
    world.settle();
    assert_eq!(world.events(1, a).len(), 50);
    assert_eq!(world.events(1, b).len(), 50 + 3);
    world.nodes[1].speaker.unsubscribe(a);
    assert!(world.events(1, a).is_empty());
    world.originate(0, nth(99), marked(1));
    world.settle();
    assert_eq!(world.events(1, b).len(), 1);
}

#[test]
fn convergence_waits_for_end_of_rib() {
    let mut world = World::new(&[65010, 65020]);
    world.join(0, 1);
    world.originate(0, nth(1), marked(1));
    let id = world.nodes[1].speaker.subscribe(V4);
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["resync", "+10.0.1.0/24 via 192.0.2.1", "replayed"]);
    world.command(1, Command::LoadingDone);
    world.pass(Duration::from_secs(2));
    assert!(world.events(1, id).is_empty(), "0 has not said End-of-RIB");
    world.originate(0, nth(2), marked(1));
    world.command(0, Command::LoadingDone);
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["+10.0.2.0/24 via 192.0.2.1", "converged ipv4-unicast"]);
}

#[test]
fn convergence_does_not_wait_long_for_who_never_comes() {
    // Case F15: one of two neighbours is dead.
    let mut world = World::new(&[65010, 65020, 65030]);
    world.cut(2, 1, true);
    world.join(0, 1);
    world.join(1, 2);
    world.load();
    let id = world.nodes[1].speaker.subscribe(V4);
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["resync", "replayed"]);
    world.pass(Duration::from_secs(2));
    assert!(world.events(1, id).is_empty());
    world.pass(Duration::from_secs(2));
    assert_eq!(told(&world.events(1, id)), ["converged ipv4-unicast"]);
}

#[test]
fn a_neighbour_that_never_says_end_of_rib_has_told_everything_once_it_is_quiet() {
    let mut world = World::new(&[65010, 65020]);
    world.join(0, 1);
    world.command(1, Command::LoadingDone);
    let id = world.nodes[1].speaker.subscribe(V4);
    // Its table takes a while, with pauses, and it sends the rest well after the grace.
    for n in 1..=5 {
        world.originate(0, nth(n), marked(1));
        world.pass(Duration::from_secs(2));
    }
    let events = told(&world.events(1, id));
    assert!(events.contains(&"+10.0.5.0/24 via 192.0.2.1".to_owned()));
    assert!(!events.iter().any(|event| event.starts_with("converged")), "not before it was quiet");
    world.pass(Duration::from_millis(900));
    assert!(world.events(1, id).is_empty());
    world.pass(Duration::from_millis(200));
    assert_eq!(told(&world.events(1, id)), ["converged ipv4-unicast"], "long before the deadline");
}

#[test]
fn a_neighbour_that_was_quiet_and_speaks_again_is_waited_for_again() {
    let mut world = World::new(&[65010, 65020, 65030]);
    world.join(0, 1);
    world.join(2, 1);
    world.command(1, Command::LoadingDone);
    let id = world.nodes[1].speaker.subscribe(V4);
    // One says nothing for long enough while the other one goes on.
    for n in 1..=4 {
        world.originate(2, nth(n), marked(1));
        world.pass(Duration::from_secs(2));
    }
    world.originate(0, nth(5), marked(1));
    world.pass(Duration::from_millis(2900));
    let events = told(&world.events(1, id));
    assert!(!events.iter().any(|event| event.starts_with("converged")), "{events:?}");
    world.pass(Duration::from_millis(200));
    assert_eq!(told(&world.events(1, id)), ["converged ipv4-unicast"]);
}

#[test]
fn convergence_ends_at_the_deadline_whatever_happens() {
    let mut world = World::new(&[65010, 65020]);
    world.join(0, 1);
    world.command(1, Command::LoadingDone);
    let id = world.nodes[1].speaker.subscribe(V4);
    // A neighbour that never pauses, and never says End-of-RIB.
    for round in 0..14 {
        world.originate(0, nth(1), marked(round));
        world.pass(Duration::from_secs(2));
    }
    assert!(world.is_up(0, 1));
    assert!(!told(&world.events(1, id)).contains(&"converged ipv4-unicast".to_owned()));
    world.originate(0, nth(1), marked(99));
    world.pass(Duration::from_secs(2));
    assert_eq!(told(&world.events(1, id)), ["+10.0.1.0/24 via 192.0.2.1", "converged ipv4-unicast"]);
}

fn several(multipath: u8) -> DecisionSettings {
    let multipath = std::num::NonZeroU8::new(multipath).unwrap();
    DecisionSettings { multipath, multipath_relax: true, ..DecisionSettings::RFC4271 }
}

#[test]
fn equal_paths_give_several_next_hops_where_that_is_wanted() {
    let mut world = World::joined(&[65010, 65020, 65010], &[(0, 1), (2, 1)]);
    world.command(1, Command::PutDecision(several(8)));
    world.originate(0, nth(1), marked(1));
    world.originate(2, nth(1), marked(1));
    world.settle();
    let id = world.nodes[1].speaker.subscribe(V4);
    let events = world.events(1, id);
    assert_eq!(told(&events)[1], "+10.0.1.0/24 via 192.0.2.1 192.0.2.3");
    world.command(2, Command::DeleteOrigination(nth(1)));
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["+10.0.1.0/24 via 192.0.2.1"], "the whole new set");
}

/// How paths are compared changes while sessions are up: what is concerned is told, once, and nothing else.
#[test]
fn another_way_to_compare_is_decided_anew() {
    let mut world = World::joined(&[65010, 65020, 65010], &[(0, 1), (2, 1)]);
    let far = |med| Origination { med: Some(med), ..marked(1) };
    world.originate(0, nth(1), far(2));
    world.originate(2, nth(1), far(1));
    world.originate(0, nth(2), marked(1));
    world.originate(2, nth(2), marked(1));
    world.originate(0, nth(3), marked(1));
    world.settle();
    let id = world.nodes[1].speaker.subscribe(V4);
    world.settle();
    assert_eq!(world.events(1, id).len(), 6);
    world.command(1, Command::PutDecision(several(8)));
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["+10.0.2.0/24 via 192.0.2.1 192.0.2.3"]);
    assert_eq!(world.command(1, Command::PutDecision(several(8))), Applied::Unchanged);
    let worst = DecisionSettings { missing_med_worst: true, ..several(8) };
    world.command(1, Command::PutDecision(worst));
    world.settle();
    assert!(world.events(1, id).is_empty(), "nothing comes out differently");
    world.command(1, Command::PutDecision(several(1)));
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["+10.0.2.0/24 via 192.0.2.1"]);
}

/// Weights follow the link bandwidth, and next hops that the embedder resolved stand in sets as what they came to.
#[test]
fn sets_have_weights_and_are_resolved() {
    let mut world = World::joined(&[65010, 65020, 65010], &[(0, 1), (2, 1)]);
    world.command(1, Command::PutDecision(several(4)));
    let wide = |octets| {
        let ext_communities = vec![bgp_wire::attr::ExtCommunity::of_link_bandwidth(65010, octets)];
        Origination { ext_communities, ..marked(1) }
    };
    world.originate(0, nth(1), wide(1.25e9));
    world.originate(2, nth(1), wide(5e9));
    world.settle();
    let id = world.nodes[1].speaker.subscribe(V4);
    assert_eq!(told(&world.events(1, id))[1], "+10.0.1.0/24 via 192.0.2.1 192.0.2.3*4");
    let via = ["10.9.0.1", "10.9.0.2"].map(|address| address.parse().unwrap()).to_vec();
    let state = NextHopState { via, ..NextHopState::default() };
    world.command(1, Command::PutNextHop("192.0.2.3".parse().unwrap(), state));
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["+10.0.1.0/24 via 10.9.0.1*2 10.9.0.2*2 192.0.2.1"]);
    let away = NextHopState { reachable: false, ..NextHopState::default() };
    world.command(1, Command::PutNextHop("192.0.2.3".parse().unwrap(), away));
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["+10.0.1.0/24 via 192.0.2.1"]);
    world.command(1, Command::DeleteNextHop("192.0.2.3".parse().unwrap()));
    world.settle();
    assert_eq!(told(&world.events(1, id)), ["+10.0.1.0/24 via 192.0.2.1 192.0.2.3*4"]);
}
