//! The cases, the same for every provider on every VPP.

use std::collections::BTreeMap;

use serde_json::Value;
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::wait;

use crate::drift;
use crate::pair::Pair;
use crate::relay::Cut;
use crate::row::Row;
use crate::target::On;
use crate::world::{DESTINATIONS, World};

/// More steps than any of these tests may take; reaching it means that the agent goes round in circles.
const MANY: u64 = 400;

/// Runs `test` in a world of its own where it can run.
fn run(on: On, row: Row, test: impl FnOnce(World) + Send + 'static) {
    if available("e2e suite of all providers", &[IP]) && on.available() {
        Lab::run(move |lab| test(World::new(lab, on, &row)));
    }
}

/// Destinations come and go; what is shared stays for as long as somebody needs it.
pub(crate) fn comes_and_goes(on: On, row: Row) {
    run(on, row, |mut world| {
        world.node.start();
        world.await_expected("at first");
        let [first, second, other] = [&DESTINATIONS[..2], &DESTINATIONS[2..4], &DESTINATIONS[4..]];
        for (what, announced) in [
            ("with one destination", first.to_vec()),
            ("with a second behind the same next hop", [first, second].concat()),
            ("with a third behind another one", DESTINATIONS.to_vec()),
            ("without the first, which leaves the second", [second, other].concat()),
            ("without the second, which was the last there", other.to_vec()),
            ("with it back", [second, other].concat()),
            ("with nothing", Vec::new()),
            ("with everything", DESTINATIONS.to_vec()),
        ] {
            let before = world.state().expect("VPP is there").interfaces;
            world.announce(&announced);
            let after = world.await_expected(what).interfaces;
            assert_eq!(common(&before, &after), common(&after, &before), "interfaces were made anew {what}");
        }
        world.end();
    });
}

/// Those of `all` that `other` has too, with the index they have in `all`.
fn common<V: Copy>(all: &BTreeMap<String, V>, other: &BTreeMap<String, V>) -> BTreeMap<String, V> {
    all.iter().filter(|(name, _)| other.contains_key(*name)).map(|(name, at)| (name.clone(), *at)).collect()
}

/// VPP has been given everything: the agent starts anew and takes it over as it is.
pub(crate) fn taken_over(on: On, row: Row) {
    run(on, row, |mut world| {
        world.announce(&DESTINATIONS);
        world.node.start();
        let before = world.await_expected("at first");
        world.restart_agent();
        let after = world.await_expected("after a restart of the agent");
        assert_eq!(before, after, "nothing was made anew");
        let steps = world.relay.steps();
        let made: Vec<_> = steps.iter().filter(|step| makes_or_ends_something(step)).collect();
        assert!(made.is_empty(), "what was there already was asked for again: {made:?} of {steps:?}");
        world.end();
    });
}

/// What no dump shows is asked for again, which does no harm: features of interfaces, edges of the graph, source NAT, the
/// source of what SRv6 encapsulates.
fn makes_or_ends_something(step: &str) -> bool {
    !["feature_", "add_node_next", "cnat_", "sr_set_encap_source"]
        .iter()
        .any(|unseen| step.starts_with(unseen))
}

/// The agent is killed after each of its steps while it fills an empty VPP.
pub(crate) fn agent_killed_at_every_step(on: On, row: Row) {
    run(on, row, |mut world| {
        world.announce(&DESTINATIONS);
        world.node.start();
        world.await_expected("at first");
        for step in 1..MANY {
            world.relay.arm(Cut::After(step));
            world.restart_vpp();
            if !reached(&world) {
                assert!(step > 6, "only {step} steps");
                return world.end();
            }
            world.restart_agent();
            world.await_expected(&format!("after the agent was killed at step {step}"));
        }
        panic!("the agent takes more than {MANY} steps");
    });
}

/// VPP is killed at each of the agent's steps while it is filled.
pub(crate) fn vpp_killed_at_every_step(on: On, row: Row) {
    run(on, row, |mut world| {
        world.announce(&DESTINATIONS);
        world.node.start();
        world.await_expected("at first");
        for step in 1..MANY {
            // Half of them have been carried out by a VPP that then can't say so.
            let cut = if step.is_multiple_of(2) { Cut::Before(step) } else { Cut::After(step) };
            world.relay.arm(cut);
            world.restart_vpp();
            if !reached(&world) {
                assert!(step > 6, "only {step} steps");
                return world.end();
            }
            world.relay.free();
            world.restart_vpp();
            world.await_expected(&format!("after VPP was killed at step {step}"));
        }
        panic!("the agent takes more than {MANY} steps");
    });
}

/// The agent is killed after each of its steps while everything that was announced is withdrawn.
pub(crate) fn agent_killed_at_every_step_of_a_removal(on: On, row: Row) {
    run(on, row, |mut world| {
        // One next hop of each family is enough: each costs the time that a tunnel lingers.
        let announced = &DESTINATIONS[..2];
        world.announce(announced);
        world.node.start();
        world.await_expected("at first");
        for step in 1..MANY {
            world.relay.arm(Cut::After(step));
            world.announce(&[]);
            if !reached(&world) {
                assert!(step > 2, "only {step} steps");
                return world.end();
            }
            world.restart_agent();
            world.await_expected(&format!("after the agent was killed at step {step} of a removal"));
            world.announce(announced);
            world.await_expected(&format!("with everything back after step {step} of a removal"));
        }
        panic!("the agent takes more than {MANY} steps");
    });
}

/// Waits until the cut has come, or VPP holds what it must without it.
fn reached(world: &World) -> bool {
    let expected = world.expected();
    wait::until("the cut comes, or everything is there", || {
        if world.relay.reached() {
            return Ok(true);
        }
        world.state()?.against(&expected)?;
        let vpp = world.node.try_ask(&["vpp"])?;
        // The cut may have come between the look at the relay and the look at VPP.
        if vpp["converged"] == true { Ok(world.relay.reached()) } else { Err(vpp.to_string()) }
    })
}

/// What somebody else deletes or changes is found by an audit and repaired.
pub(crate) fn drift_is_repaired(on: On, row: Row) {
    run(on, row, |mut world| {
        world.announce(&DESTINATIONS);
        world.node.start();
        world.await_expected("at first");
        let deeds = drift::deeds(&world.state().expect("VPP is there"));
        assert!(deeds.len() > 6, "there is something to spoil: {deeds:?}");
        for deed in deeds {
            let before = world.state().expect("VPP is there");
            // The agent is to find it after it happened, not while this test looks.
            world.relay.hold(true);
            world.with_client(async |client| drift::commit(client, &deed).await);
            let after = world.state().expect("VPP is there");
            assert_ne!(before.lines, after.lines, "{deed:?} has done nothing");
            world.relay.hold(false);
            audit(&world);
            world.await_expected(&format!("after {deed:?}"));
        }
        let answer = audit(&world);
        assert_eq!(answer["audit"]["found"], 0, "{answer}");
        world.end();
    });
}

/// Has the agent compare all that VPP holds with what it should. What VPP has told of may have been repaired before; while that
/// is under way there is no audit.
fn audit(world: &World) -> Value {
    wait::until("the agent has looked at everything", || {
        let answer = world.node.try_ask(&["vpp", "--drift"])?;
        if answer["audit"]["found"].is_number() { Ok(answer) } else { Err(answer.to_string()) }
    })
}

/// Every provider takes over from every other one, and leaves nothing behind.
pub(crate) fn changes_of_provider(on: On, rows: &'static [Row]) {
    let Some(first) = rows.first() else { return };
    run(on, first.clone(), move |mut world| {
        world.announce(&DESTINATIONS);
        world.node.start();
        world.await_expected(&format!("with {}", first.name));
        let mut now = first.name;
        for (from, to) in walk(rows.len()) {
            assert_eq!(now, rows[from].name, "the walk goes on where it was");
            world.change_to(&rows[to]);
            world.await_expected(&format!("with {} after {}", rows[to].name, now));
            now = rows[to].name;
        }
        world.end();
    });
}

/// A packet for a pod of another node enters one VPP and leaves the other as it went in, both ways, in both families.
pub(crate) fn packets_cross(row: Row) {
    if available("e2e suite of all providers", &[IP]) && On::Real.available() {
        Lab::run(move |lab| {
            let pair = Pair::new(lab, &row);
            for from in 0..2 {
                for (family, carried) in row.families().into_iter().enumerate() {
                    pair.cross(from, family, carried.through);
                }
            }
            pair.end();
        });
    }
}

/// A walk over every ordered pair of `count` things, from the first: there is one, as as many ways lead to each as from it.
fn walk(count: usize) -> Vec<(usize, usize)> {
    // Between the first and each other there and back; in between, round trips through pairs of the others.
    let mut steps = Vec::new();
    for low in 0..count {
        for high in low + 1..count {
            if low == 0 {
                steps.push((0, high));
                for other in high + 1..count {
                    steps.extend([(high, other), (other, high)]);
                }
                steps.push((high, 0));
            }
        }
    }
    steps
}

#[test]
fn the_walk_takes_every_pair_once() {
    for count in 2..7 {
        let steps = walk(count);
        assert!(steps.windows(2).all(|pair| pair[0].1 == pair[1].0), "{steps:?}");
        let unique: std::collections::BTreeSet<_> = steps.iter().collect();
        assert_eq!((steps.len(), unique.len()), (count * (count - 1), count * (count - 1)));
    }
}
