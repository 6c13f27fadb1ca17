//! Graceful restart of the agent: VPP goes on while it is away, and it says so. That of the speaker is in the matrix.

use test_support::bird::Bird;
use test_support::lab::Lab;
use test_support::programs::{BIRD, IP, available};
use test_support::wait;

const WATCHER: &str = "192.0.2.3";
const THEIR_ROUTE: &str = "203.0.113.0/24";

/// The agent says honestly what was kept: VPP goes on while it is away.
#[test]
fn the_agent_dies_and_returns_and_nobody_behind_bird_notices() {
    if !available("interop restart of the agent", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_020);
        let behind = lab.host("watcher", &[&format!("{WATCHER}/24")]);
        node.start_vpp(&interop::uplink());
        let ours = interop::OUR_IPV4;
        let theirs = interop::PEER_IPV4;
        let tor = Bird::start(
            &tor,
            &format!(
                "log stderr all;\nrouter id {theirs};\nprotocol device {{ }}\n\
                 protocol static s4 {{ ipv4; route {THEIR_ROUTE} blackhole; }}\n\
                 template bgp T {{ local {theirs} as 65020; connect delay time 1; connect retry time 1;\n\
                 \x20 error wait time 1, 2; graceful restart on; ipv4 {{ import all; export all; }}; }}\n\
                 protocol bgp sut4 from T {{ neighbor {ours} as {}; }}\n\
                 protocol bgp watcher from T {{ neighbor {WATCHER} as 65030; }}\n",
                interop::OUR_ASN
            ),
        );
        let watcher = Bird::start(
            &behind,
            &format!(
                "log stderr all;\nrouter id {WATCHER};\nprotocol device {{ }}\n\
                 protocol bgp tor {{ local {WATCHER} as 65030; neighbor {theirs} as 65020; connect delay time 1;\n\
                 \x20 connect retry time 1; error wait time 1, 2; ipv4 {{ import all; export none; }}; }}\n"
            ),
        );
        node.start();
        tor.await_established("sut4");
        watcher.await_route(interop::OUR_BLOCK4, &["[tor"]);
        node.await_route("ipv4-unicast", THEIR_ROUTE);
        wait::until("VPP has routes of ours", || {
            let vpp = node.try_ask(&["vpp"])?;
            let mut kinds = vpp["kinds"].as_array().into_iter().flatten();
            let held = kinds.any(|kind| kind["kind"] == "fib-source" && kind["present"] == 1);
            if held { Ok(()) } else { Err(vpp.to_string()) }
        });
        node.kill();
        node.start();
        tor.await_established("sut4");
        let offered = tor.ask("show protocols all sut4");
        let theirs = offered.split("Neighbor capabilities").nth(1).unwrap_or_default();
        for words in ["Restart recovery", "AF preserved: ipv4"] {
            assert!(theirs.contains(words), "no \"{words}\" in {offered}");
        }
        wait::until("BIRD has refreshed the route", || {
            let route = tor.ask(&format!("show route {} all", interop::OUR_BLOCK4));
            let fresh = tor.ask("show protocols all sut4");
            let settled =
                route.contains(interop::OUR_BLOCK4) && !fresh.contains("Neighbor graceful restart active");
            if settled { Ok(()) } else { Err(fresh) }
        });
        watcher.await_route(interop::OUR_BLOCK4, &["[tor"]);
        assert_eq!(watcher.withdrawals("tor"), 0);
    });
}
