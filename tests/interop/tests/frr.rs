//! FRR's bgpd.

use interop::{
    OUR_ASN, OUR_BLOCK4, OUR_BLOCK6, OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6,
};
use test_support::frr::Frr;
use test_support::lab::Lab;
use test_support::peregrine::Node;
use test_support::programs::{FRR, IP, available};

fn config(asn: u32) -> String {
    format!(
        "log stdout informational\nrouter bgp {asn}\n bgp router-id {PEER_IPV4}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n no bgp default ipv4-unicast\n timers bgp 3 9\n neighbor P peer-group\n \
         neighbor P remote-as {OUR_ASN}\n neighbor P timers connect 1\n neighbor P advertisement-interval 0\n \
         neighbor {OUR_IPV4} peer-group P\n neighbor {OUR_IPV6} peer-group P\n address-family ipv4 unicast\n  \
         network {PEER_ROUTE4}\n  neighbor {OUR_IPV4} activate\n exit-address-family\n address-family ipv6 unicast\n  \
         network {PEER_ROUTE6}\n  neighbor {OUR_IPV6} activate\n exit-address-family\n"
    )
}

fn both_established(frr: &Frr, node: &Node) {
    for (ours, theirs) in [(OUR_IPV4, PEER_IPV4), (OUR_IPV6, PEER_IPV6)] {
        frr.await_established(ours);
        node.await_established(theirs);
    }
}

fn exchanged(frr: &Frr, node: &Node, as_path: &str) {
    for (family, block, next_hop) in [("ipv4", OUR_BLOCK4, OUR_IPV4), ("ipv6", OUR_BLOCK6, OUR_IPV6)] {
        let path = frr.await_route(family, block);
        assert_eq!(path["aspath"]["string"], "64512", "{path}");
        assert_eq!(path["origin"], "IGP", "{path}");
        assert_eq!(path["nexthops"][0]["ip"], next_hop, "{path}");
    }
    for (family, prefix, next_hop) in
        [("ipv4-unicast", PEER_ROUTE4, PEER_IPV4), ("ipv6-unicast", PEER_ROUTE6, PEER_IPV6)]
    {
        let route = node.await_route(family, prefix);
        assert_eq!(route["paths"][0]["next-hop"], next_hop, "{route}");
        assert_eq!(route["paths"][0]["as-path"], as_path, "{route}");
    }
}

#[test]
fn ebgp_both_families_both_ways_through_restarts_of_either_side() {
    if !available("interop frr ebgp", &[FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_002);
        node.start_vpp(&interop::uplink());
        let mut frr = Frr::start(&tor, &config(65_002));
        node.start();
        both_established(&frr, &node);
        exchanged(&frr, &node, "65002");

        frr.kill();
        let frr = Frr::start(&tor, &config(65_002));
        both_established(&frr, &node);
        exchanged(&frr, &node, "65002");

        node.kill();
        node.start();
        both_established(&frr, &node);
        exchanged(&frr, &node, "65002");
    });
}

#[test]
fn a_block_that_goes_is_withdrawn() {
    if !available("interop frr withdrawal", &[FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_002);
        node.start_vpp(&interop::uplink());
        let frr = Frr::start(&tor, &config(65_002));
        node.start();
        both_established(&frr, &node);
        exchanged(&frr, &node, "65002");
        node.remove("block4.yaml");
        frr.await_no_route("ipv4", OUR_BLOCK4);
        node.remove("block6.yaml");
        frr.await_no_route("ipv6", OUR_BLOCK6);
    });
}

#[test]
fn initial_convergence_does_not_wait_for_an_end_of_rib_that_never_comes() {
    if !available("interop frr convergence", &[FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_002);
        node.start_vpp(&interop::uplink());
        let frr = Frr::start(&tor, &config(65_002));
        node.start();
        both_established(&frr, &node);
        exchanged(&frr, &node, "65002");
        interop::converged(&mut node);
    });
}
