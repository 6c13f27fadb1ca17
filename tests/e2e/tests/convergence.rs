//! Whatever is interrupted, the end is the same: the agent is killed after each of its requests to VPP, VPP restarts
//! at each of them, and each time VPP's state ends up as in an undisturbed run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use e2e::{World, route_is};
use serde_json::Value;
use test_support::lab::Lab;
use test_support::peregrine::manifest;
use test_support::programs::{IP, available};
use vpp_sim::{Fault, When};

/// Labs that run at the same time: they mostly wait.
const WORKERS: u64 = 4;

/// The end state of an undisturbed run and how many requests it took.
fn undisturbed() -> (Value, u64) {
    let (sender, receiver) = std::sync::mpsc::channel();
    Lab::run(move |lab| {
        let mut world = World::new(lab);
        world.node.start();
        let meaning = world.await_everything();
        sender.send((meaning, world.sim.stats().requests)).expect("the test waits");
    });
    receiver.recv().expect("the lab has sent its result")
}

/// Runs `disturb` once for every request number of an undisturbed run, and then awaits its end state.
fn at_every_request(disturb: impl Fn(&mut World, u64) + Copy + Send + Sync + 'static) {
    let (reference, requests) = undisturbed();
    assert!(requests > 20, "{requests} requests are too few for this world");
    let next = AtomicU64::new(1);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let request = next.fetch_add(1, Ordering::Relaxed);
                    if request > requests {
                        break;
                    }
                    let reference = reference.clone();
                    Lab::run(move |lab| {
                        let mut world = World::new(lab);
                        disturb(&mut world, request);
                        let what = format!(
                            "the state of an undisturbed run, after a disturbance at request {request}"
                        );
                        world.await_meaning(&what, |meaning| difference(meaning, &reference));
                        world.await_idle();
                        assert_eq!(
                            world.sim.meaning(),
                            reference,
                            "after a disturbance at request {request}"
                        );
                    });
                }
            });
        }
    });
}

fn difference(meaning: &Value, reference: &Value) -> Result<(), String> {
    if meaning == reference { Ok(()) } else { Err(format!("{meaning:#}\ninstead of\n{reference:#}")) }
}

#[test]
fn the_agent_killed_after_any_request() {
    if !available("e2e the_agent_killed_after_any_request", &[IP]) {
        return;
    }
    at_every_request(|world, request| {
        // The connection ends right after the request was carried out, so nothing more gets through before the kill.
        world.sim.fault(Fault::Drop { message: None, nth: request, when: When::After });
        let before = world.sim.stats().requests;
        world.node.start();
        world.block_on(world.sim.until(|stats| stats.requests >= before + request));
        world.node.kill();
        world.sim.clear_faults();
        world.node.start();
    });
}

#[test]
fn vpp_restarted_at_any_request() {
    if !available("e2e vpp_restarted_at_any_request", &[IP]) {
        return;
    }
    at_every_request(|world, request| {
        let when = if request.is_multiple_of(2) { When::Before } else { When::After };
        world.sim.fault(Fault::Restart { message: None, nth: request, when });
        world.node.start();
        world.block_on(world.sim.until(|stats| stats.generation > 1));
    });
}

#[test]
fn what_changed_while_the_agent_was_dead_leaves_nothing_stale_and_nothing_missing() {
    if !available("e2e changes while the agent was dead", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut world = World::new(lab);
        world.node.start();
        world.await_everything();
        world.node.kill();

        world.tor_announces(&["203.0.113.0/24", "192.88.99.0/24"]);
        let pools = [
            manifest::ip_pool("plain-v4", "10.244.0.0/16", "Always"),
            manifest::ip_pool("tunnelled-v4", "10.245.0.0/16", "Never"),
            manifest::ip_pool("cross-subnet-v4", "10.246.0.0/16", "Never"),
            manifest::ip_pool("plain-v6", "fd00:10:244::/48", "Never"),
        ];
        world.node.apply("pools.yaml", &pools.join("---\n"));
        world.node.start();

        let meaning = world.await_meaning("the new routes are in VPP and the old ones are gone", |meaning| {
            route_is(meaning, "192.88.99.0/24", "recursive", "192.0.2.254")?;
            route_is(meaning, "203.0.113.0/24", "recursive", "192.0.2.254")?;
            route_is(meaning, "10.244.2.0/26", "attached", "ipip 192.0.2.1 -> 192.0.2.2 in table 0")?;
            route_is(meaning, "10.245.2.0/26", "recursive", "192.0.2.2")?;
            route_is(meaning, "10.246.9.0/26", "recursive", "198.18.0.9")?;
            let text = meaning.to_string();
            let stale = ["198.51.100.0/24", "-> 198.18.0.9"].iter().find(|stale| text.contains(**stale));
            stale.map_or(Ok(()), |stale| Err(format!("{stale} is still there: {meaning:#}")))
        });
        world.await_idle();
        assert_eq!(world.sim.meaning(), meaning);
    });
}
