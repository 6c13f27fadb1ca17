//! VPP absent, hanging, refusing: sessions go on, own prefixes are withdrawn in time, and everything comes back.

use e2e::World;
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::wait;
use vpp_sim::Fault;

/// Waits until the router has, or has not, one of our blocks, and one that it hears from us though another node has it.
fn await_blocks(world: &World, there: bool) {
    for prefix in ["10.244.1.0/26", "10.244.2.0/26"] {
        await_block(world, prefix, there);
    }
}

fn await_block(world: &World, prefix: &str, there: bool) {
    let socket = world.host().dir().with_file_name("tor").join("speaker.sock");
    let binary = test_support::programs::peregrine();
    let argv = [
        &*binary.to_string_lossy(),
        "routes",
        "loc-rib",
        "ipv4-unicast",
        prefix,
        "-o",
        "json",
        "--socket",
        &socket.to_string_lossy(),
    ];
    wait::until(&format!("{prefix} is at the router: {there}"), || {
        let output = world.host().output(&argv);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if text.contains(prefix) == there { Ok(()) } else { Err(text) }
    });
}

#[test]
fn own_prefixes_leave_after_the_grace_and_return_after_the_replay() {
    if !available("e2e loss grace", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut world = World::new(lab);
        world.node.start();
        let before = world.await_everything();
        await_blocks(&world, true);

        world.block_on(world.sim.down());
        // The session stays; only the prefixes that nobody could forward to are withdrawn.
        await_blocks(&world, false);
        world.node.await_established("192.0.2.254");

        world.block_on(world.sim.up());
        await_blocks(&world, true);
        world.await_meaning("the same state as before", |meaning| {
            if *meaning == before { Ok(()) } else { Err(format!("{meaning:#}")) }
        });
    });
}

#[test]
fn an_absent_vpp_is_waited_for_while_sessions_run() {
    if !available("e2e absent VPP", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut world = World::new(lab);
        world.block_on(world.sim.down());
        world.node.start();
        world.node.await_established("192.0.2.254");
        world.node.await_route("ipv4-unicast", "203.0.113.0/24");
        world.block_on(world.sim.up());
        world.await_everything();
    });
}

#[test]
fn refusals_and_silence_are_retried_until_they_end() {
    if !available("e2e refusals", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut world = World::new(lab);
        let refuse = |message: &str, retval| Fault::Refuse {
            message: Some(message.to_owned()),
            retval,
            times: Some(3),
        };
        world.sim.fault(refuse("ip_route_add_del_v2", -107));
        // A number that no release knows.
        world.sim.fault(refuse("ipip_add_tunnel", -4242));
        world.sim.fault(Fault::Silence {
            message: Some("sw_interface_set_unnumbered".to_owned()),
            times: Some(1),
        });
        world.node.start();
        world.await_everything();
    });
}
