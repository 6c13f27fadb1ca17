//! BGPFilters, edited while sessions are up: BIRD and the node follow at once, both ways, and no session notices.

use interop::{OUR_ASN, OUR_BLOCK4, OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6};
use serde_json::Value;
use test_support::bird::Bird;
use test_support::lab::Lab;
use test_support::peregrine::Node;
use test_support::programs::{BIRD, IP, available};
use test_support::wait;

const PEER_ASN: u32 = 65_000;

/// Announces these prefixes, of which the last comes with a community.
fn config() -> String {
    format!(
        "log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route 203.0.113.0/24 blackhole; route 203.0.112.0/24 blackhole;\n\
         \x20 route 198.51.100.0/24 blackhole {{ bgp_community.add((65000, 7)); }}; }}\n\
         protocol static s6 {{ ipv6; route 2001:db8:f::/48 blackhole; route 2001:db8:e::/48 blackhole; }}\n\
         template bgp T {{ connect delay time 1; connect retry time 1; error wait time 1, 2; hold time 9; keepalive time 3; }}\n\
         protocol bgp sut4 from T {{ local {PEER_IPV4} as {PEER_ASN}; neighbor {OUR_IPV4} as {OUR_ASN};\n\
         \x20 ipv4 {{ import all; export where source = RTS_STATIC; }}; }}\n\
         protocol bgp sut6 from T {{ local {PEER_IPV6} as {PEER_ASN}; neighbor {OUR_IPV6} as {OUR_ASN};\n\
         \x20 ipv6 {{ import all; export where source = RTS_STATIC; }}; }}\n"
    )
}

fn filter(rules: &str) -> String {
    format!("apiVersion: projectcalico.org/v3\nkind: BGPFilter\nmetadata: {{ name: edge }}\nspec:\n{rules}")
}

/// A peer with the filter.
fn peer(name: &str, address: &str) -> String {
    format!(
        "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {{ name: {name} }}\n\
         spec: {{ peerIP: \"{address}\", asNumber: {PEER_ASN}, filters: [edge] }}\n"
    )
}

/// Waits until the node uses routes to exactly these prefixes of a family: what a filter rejects is kept, and shown beside.
fn await_routes(node: &Node, family: &str, wanted: &[&str]) {
    wait::until(&format!("our Loc-RIB of {family} holds {wanted:?}"), || {
        let routes = node.try_ask(&["routes", "loc-rib", family])?;
        let used =
            |route: &&Value| route["paths"].as_array().into_iter().flatten().any(|path| path["best"] == true);
        let all = routes.as_array().into_iter().flatten().filter(used);
        let mut found: Vec<&str> = all.filter_map(|route| route["prefix"].as_str()).collect();
        found.sort_unstable();
        if found == wanted { Ok(()) } else { Err(routes.to_string()) }
    });
}

/// When BIRD's sessions came up: a reset shows.
fn since(bird: &Bird) -> Vec<String> {
    let line = |protocol| {
        let answer = bird.ask(&format!("show protocols {protocol}"));
        answer.lines().find(|line| line.starts_with(protocol)).unwrap_or_default().to_owned()
    };
    vec![line("sut4"), line("sut6")]
}

#[test]
fn an_edited_filter_counts_at_once_both_ways_without_a_reset() {
    if !available("interop filters", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, PEER_ASN);
        node.start_vpp(&interop::uplink());
        node.apply("peer4.yaml", &peer("tor-v4", PEER_IPV4));
        node.apply("peer6.yaml", &peer("tor-v6", PEER_IPV6));
        let bird = Bird::start(&tor, &config());
        node.start();
        for (protocol, address) in [("sut4", PEER_IPV4), ("sut6", PEER_IPV6)] {
            bird.await_established(protocol);
            node.await_established(address);
        }
        // Nobody has written the filter yet: everything comes in, and what Calico lets out goes out.
        let block6 = "fd00:10:244:1::/122";
        let all4 = [OUR_BLOCK4, "198.51.100.0/24", "203.0.112.0/24", "203.0.113.0/24"];
        await_routes(&node, "ipv4-unicast", &all4);
        await_routes(&node, "ipv6-unicast", &["2001:db8:e::/48", "2001:db8:f::/48", block6]);
        bird.await_route(OUR_BLOCK4, &["BGP.as_path: 64512"]);
        bird.await_route(block6, &["BGP.as_path: 64512"]);
        let before = since(&bird);
        assert!(before.iter().all(|line| line.contains("Established")), "{before:?}");

        node.apply(
            "filter.yaml",
            &filter(
                "  importV4:\n\
                 \x20 - {communities: {values: [\"65000:7\"]}, action: Accept}\n\
                 \x20 - {cidr: 203.0.112.0/23, matchOperator: In, asPathPrefix: [65000], action: Reject}\n\
                 \x20 importV6:\n\
                 \x20 - {cidr: \"2001:db8:f::/48\", matchOperator: NotEqual, action: Reject}\n\
                 \x20 exportV4:\n\
                 \x20 - {cidr: 10.244.0.0/16, matchOperator: In, peerType: eBGP, action: Accept,\n\
                 \x20    operations: [{addCommunity: {value: \"64512:1\"}}, {prependASPath: {prefix: [65099, 65098]}}]}\n\
                 \x20 exportV6:\n\
                 \x20 - {action: Reject}\n",
            ),
        );
        await_routes(&node, "ipv4-unicast", &[OUR_BLOCK4, "198.51.100.0/24"]);
        await_routes(&node, "ipv6-unicast", &["2001:db8:f::/48", block6]);
        bird.await_route(OUR_BLOCK4, &["BGP.as_path: 65099 65098 64512", "BGP.community: (64512,1)"]);
        bird.await_no_route(block6);

        // A mistake changes nothing, and is told with its place.
        node.apply("filter.yaml", &filter("  importV4:\n  - {cidr: 0.0.0.0/0, action: Reject}\n"));
        wait::until("the mistake is told", || {
            let text = node.try_ask(&["vpp"])?.to_string();
            let told = text.contains("cidr needs matchOperator") && text.contains("importV4 rule 1");
            if told { Ok(()) } else { Err(text) }
        });
        await_routes(&node, "ipv4-unicast", &[OUR_BLOCK4, "198.51.100.0/24"]);
        bird.await_route(OUR_BLOCK4, &["BGP.as_path: 65099 65098 64512"]);

        // The filter goes, and with it all it did.
        node.remove("filter.yaml");
        await_routes(&node, "ipv4-unicast", &all4);
        await_routes(&node, "ipv6-unicast", &["2001:db8:e::/48", "2001:db8:f::/48", block6]);
        wait::until("our block is told without the filter's marks", || {
            let route = bird.route(OUR_BLOCK4)?;
            let plain = route.communities.is_empty() && route.as_path == "64512";
            if plain { Ok(()) } else { Err(format!("{route:?}")) }
        });
        bird.await_route(block6, &["BGP.as_path: 64512"]);
        assert_eq!(since(&bird), before, "no session was reset");
    });
}
