//! What BIRD 2 and we do differently because of what was agreed: long messages, next hops of the other family, refreshes.

use std::fmt::Write as _;

use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6};
use test_support::bird::Bird;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

fn hosts(lab: &Lab) -> (Host, Host) {
    let ours = lab.host("sut", &[&format!("{OUR_IPV4}/24"), &format!("{OUR_IPV6}/64")]);
    let theirs = lab.host("tor", &[&format!("{PEER_IPV4}/24"), &format!("{PEER_IPV6}/64")]);
    (ours, theirs)
}

fn speaker(peer: &str, neighbor: &str, originate: &str) -> String {
    format!(
        "asn: 65010\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\", \"[{OUR_IPV6}]:179\"]\nrequire-policy: false\n\
         neighbors:\n  - {{ address: \"{peer}\", asn: 65001, connect-retry: 1, {neighbor} }}\noriginate: {originate}\n"
    )
}

fn bird(ours: &str, peer: &str, statics: &str, session: &str) -> String {
    format!(
        "log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n{statics}\n\
         protocol bgp sut {{ local {peer} as 65001; neighbor {ours} as 65010; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2; {session} }}\n"
    )
}

#[test]
fn ipv4_prefixes_with_ipv6_next_hops_both_ways() {
    if !available("interop bird extended next hop", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = hosts(lab);
        let statics = "protocol static s4 { ipv4; route 203.0.113.0/24 blackhole; }\n\
                       protocol static s6 { ipv6; route 2001:db8:f::/48 blackhole; }";
        let channels = "ipv4 { import all; export where source = RTS_STATIC; extended next hop on; };\n\
                        ipv6 { import all; export where source = RTS_STATIC; };";
        let bird = Bird::start(&theirs, &bird(OUR_IPV6, PEER_IPV6, statics, channels));
        let neighbor = "families: [ipv4-unicast, ipv6-unicast], extended-next-hop: true";
        let originate = "[{ prefix: 198.51.100.0/24 }, { prefix: \"2001:db8:e::/48\" }]";
        let sut = Speaker::start(&ours, &speaker(PEER_IPV6, neighbor, originate));
        bird.await_established("sut");
        sut.await_established(PEER_IPV6);
        for (family, prefix) in [("ipv4-unicast", "203.0.113.0/24"), ("ipv6-unicast", "2001:db8:f::/48")] {
            let route = sut.await_route(family, prefix);
            assert_eq!(route["paths"][0]["next-hop"], PEER_IPV6, "{route}");
            assert_eq!(route["paths"][0]["as-path"], "65001", "{route}");
        }
        for prefix in ["198.51.100.0/24", "2001:db8:e::/48"] {
            bird.await_route(prefix, &["BGP.as_path: 65010", &format!("BGP.next_hop: {OUR_IPV6}")]);
        }
        // Withdrawals find what was announced that way.
        let _ = bird.ask("disable s4");
        sut.await_no_route("ipv4-unicast", "203.0.113.0/24");
        let _ = bird.ask("enable s4");
        sut.await_route("ipv4-unicast", "203.0.113.0/24");
    });
}

#[test]
fn messages_beyond_4096_octets_both_ways() {
    if !available("interop bird extended messages", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = hosts(lab);
        // 1500 communities are 6000 octets of attributes.
        let mut statics =
            "protocol static s4 { ipv4; route 203.0.113.0/24 blackhole; }\nfilter many {\n".to_owned();
        for n in 1..=1500 {
            let _ = writeln!(statics, "bgp_community.add((65001, {n}));");
        }
        statics += "if source = RTS_STATIC then accept; reject; }\n";
        let session = "enable extended messages on; ipv4 { import all; export filter many; };";
        let bird = Bird::start(&theirs, &bird(OUR_IPV4, PEER_IPV4, &statics, session));
        // 3000 prefixes of one attribute set are 12,000 octets, which we send as one message.
        let prefixes: Vec<String> =
            (0..3000).map(|n| format!("{{ prefix: 10.{}.{}.0/24 }}", n / 256, n % 256)).collect();
        let sut = Speaker::start(&ours, &speaker(PEER_IPV4, "", &format!("[{}]", prefixes.join(", "))));
        bird.await_established("sut");
        sut.await_established(PEER_IPV4);
        let route = sut.await_route("ipv4-unicast", "203.0.113.0/24");
        assert_eq!(route["paths"][0]["communities"].as_array().map(Vec::len), Some(1500), "{route}");
        bird.await_route("10.11.183.0/24", &["BGP.as_path: 65010"]);
        wait::until("BIRD holds them all", || {
            let routes = bird.ask("show route protocol sut count");
            if routes.contains("3000 of ") { Ok(()) } else { Err(routes) }
        });
        let peer = sut.await_established(PEER_IPV4);
        assert_eq!(peer["established-transitions"], 1, "{peer}");
        // BIRD asks for everything again, and says everything again; both between markers.
        for command in ["reload in sut", "reload out sut"] {
            let _ = bird.ask(command);
        }
        wait::until("the refreshes are over", || {
            let protocol = bird.ask("show protocols all sut");
            let routes = bird.ask("show route protocol sut count");
            if routes.contains("3000 of ") { Ok(()) } else { Err(protocol + &routes) }
        });
        sut.await_route("ipv4-unicast", "203.0.113.0/24");
        let peer = sut.await_established(PEER_IPV4);
        assert_eq!(peer["established-transitions"], 1, "{peer}");
    });
}
