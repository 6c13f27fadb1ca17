//! BIRD 2.

use interop::{
    OUR_ASN, OUR_BLOCK4, OUR_BLOCK6, OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6,
};
use test_support::bird::Bird;
use test_support::lab::Lab;
use test_support::programs::{self, BIRD, IP, available};

fn config(asn: u32) -> String {
    format!(
        "log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {PEER_ROUTE4} blackhole; }}\n\
         protocol static s6 {{ ipv6; route {PEER_ROUTE6} blackhole; }}\n\
         template bgp T {{ connect delay time 1; connect retry time 1; error wait time 1, 2; hold time 9; keepalive time 3; }}\n\
         protocol bgp sut4 from T {{ local {PEER_IPV4} as {asn}; neighbor {OUR_IPV4} as {OUR_ASN};\n\
         \x20 ipv4 {{ import all; export where source = RTS_STATIC; }}; }}\n\
         protocol bgp sut6 from T {{ local {PEER_IPV6} as {asn}; neighbor {OUR_IPV6} as {OUR_ASN};\n\
         \x20 ipv6 {{ import all; export where source = RTS_STATIC; }}; }}\n"
    )
}

fn both_established(bird: &Bird, node: &test_support::peregrine::Node) {
    for (protocol, address) in [("sut4", PEER_IPV4), ("sut6", PEER_IPV6)] {
        bird.await_established(protocol);
        node.await_established(address);
    }
}

#[test]
fn ebgp_both_families_both_ways_through_restarts_of_either_side() {
    if !available("interop bird ebgp", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_000);
        node.start_vpp(&interop::uplink());
        let mut bird = Bird::start(&tor, &config(65_000));
        node.start();
        both_established(&bird, &node);
        exchanged(&bird, &node);

        // BIRD dies without a word and comes back.
        bird.kill();
        let bird = Bird::start(&tor, &config(65_000));
        both_established(&bird, &node);
        exchanged(&bird, &node);

        // So do we.
        node.kill();
        node.start();
        both_established(&bird, &node);
        exchanged(&bird, &node);

        // An orderly stop is seen as one.
        let status = node.agent().terminate();
        assert!(status.success(), "{status}: {}", node.agent().log());
        node.start();
        both_established(&bird, &node);
        exchanged(&bird, &node);
    });
}

/// Both sides hold what the other announced, with the attributes that eBGP asks for.
fn exchanged(bird: &Bird, node: &test_support::peregrine::Node) {
    bird.await_route(
        OUR_BLOCK4,
        &["BGP.as_path: 64512", &format!("BGP.next_hop: {OUR_IPV4}"), "BGP.origin: IGP"],
    );
    bird.await_route(
        OUR_BLOCK6,
        &["BGP.as_path: 64512", &format!("BGP.next_hop: {OUR_IPV6}"), "BGP.origin: IGP"],
    );
    for (family, prefix, next_hop) in
        [("ipv4-unicast", PEER_ROUTE4, PEER_IPV4), ("ipv6-unicast", PEER_ROUTE6, PEER_IPV6)]
    {
        let route = node.await_route(family, prefix);
        let path = &route["paths"][0];
        assert_eq!(path["next-hop"], next_hop, "{route}");
        assert_eq!(path["as-path"], "65000", "{route}");
    }
}

#[test]
fn ibgp_carries_local_pref_and_no_path_change() {
    if !available("interop bird ibgp", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, OUR_ASN);
        node.start_vpp(&interop::uplink());
        let bird = Bird::start(&tor, &config(OUR_ASN));
        node.start();
        both_established(&bird, &node);
        let route =
            bird.await_route(OUR_BLOCK4, &[&format!("BGP.next_hop: {OUR_IPV4}"), "BGP.local_pref: 100"]);
        assert!(route.contains("BGP.as_path: \n"), "an empty path on iBGP: {route}");
        let route = node.await_route("ipv4-unicast", PEER_ROUTE4);
        assert_eq!(route["paths"][0]["local-pref"], 100, "{route}");
        assert_eq!(route["paths"][0]["as-path"], "", "{route}");
    });
}

#[test]
fn withdrawals_and_new_routes_are_followed_both_ways() {
    if !available("interop bird withdrawals", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_000);
        node.start_vpp(&interop::uplink());
        let bird = Bird::start(&tor, &config(65_000));
        node.start();
        both_established(&bird, &node);
        exchanged(&bird, &node);

        let other = config(65_000).replace(PEER_ROUTE4, "198.51.100.0/24");
        bird.reconfigure(&other);
        node.await_route("ipv4-unicast", "198.51.100.0/24");
        test_support::wait::until("the withdrawn route is gone", || {
            let routes = node.try_ask(&["routes", "loc-rib", "ipv4-unicast", PEER_ROUTE4])?;
            if routes == serde_json::json!([]) { Ok(()) } else { Err(routes.to_string()) }
        });

        node.remove("block4.yaml");
        bird.await_no_route(OUR_BLOCK4);
        node.apply(
            "block4.yaml",
            &test_support::peregrine::manifest::block("node-a-10-244-7-0-26", "node-a", "10.244.7.0/26"),
        );
        bird.await_route("10.244.7.0/26", &["BGP.as_path: 64512"]);
    });
}

#[test]
fn the_binary_under_test_is_there() {
    assert!(programs::peregrine().is_file());
}

#[test]
fn initial_convergence_ends_before_the_deadline() {
    if !available("interop bird convergence", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_000);
        node.start_vpp(&interop::uplink());
        let bird = Bird::start(&tor, &config(65_000));
        node.start();
        both_established(&bird, &node);
        exchanged(&bird, &node);
        interop::converged(&mut node);
    });
}
