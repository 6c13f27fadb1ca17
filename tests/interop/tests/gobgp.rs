//! GoBGP.

use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6};
use test_support::gobgp::Gobgp;
use test_support::lab::Lab;
use test_support::programs::{GOBGP, IP, available};
use test_support::speaker::Speaker;

const ASN: u32 = 65_003;

fn theirs() -> String {
    let neighbor = |address: &str, family: &str| {
        format!(
            "[[neighbors]]\n  [neighbors.config]\n    neighbor-address = \"{address}\"\n    peer-as = 65010\n  \
             [neighbors.timers.config]\n    connect-retry = 1\n    hold-time = 9\n    keepalive-interval = 3\n  \
             [[neighbors.afi-safis]]\n    [neighbors.afi-safis.config]\n      afi-safi-name = \"{family}\"\n"
        )
    };
    format!("[global.config]\n  as = {ASN}\n  router-id = \"{PEER_IPV4}\"\n")
        + &neighbor(OUR_IPV4, "ipv4-unicast")
        + &neighbor(OUR_IPV6, "ipv6-unicast")
}

fn ours() -> String {
    format!(
        "asn: 65010\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\", \"[{OUR_IPV6}]:179\"]\nrequire-policy: false\n\
         neighbors:\n  - {{ address: {PEER_IPV4}, asn: {ASN}, connect-retry: 1 }}\n  \
         - {{ address: \"{PEER_IPV6}\", asn: {ASN}, connect-retry: 1, families: [ipv6-unicast] }}\n\
         originate: [{{ prefix: 198.51.100.0/24 }}, {{ prefix: \"2001:db8:e::/48\" }}]\n"
    )
}

#[test]
fn both_families_both_ways_through_restarts_of_either_side() {
    if !available("interop gobgp ebgp", &[GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let ours_host = lab.host("ours", &[&format!("{OUR_IPV4}/24"), &format!("{OUR_IPV6}/64")]);
        let theirs_host = lab.host("theirs", &[&format!("{PEER_IPV4}/24"), &format!("{PEER_IPV6}/64")]);
        let mut gobgp = Gobgp::start(&theirs_host, &theirs());
        let mut speaker = Speaker::start(&ours_host, &ours());
        for round in 0..3 {
            match round {
                1 => {
                    gobgp.kill();
                    gobgp = Gobgp::start(&theirs_host, &theirs());
                }
                2 => {
                    drop(speaker);
                    speaker = Speaker::start(&ours_host, &ours());
                }
                _ => {}
            }
            for (here, there) in [(OUR_IPV4, PEER_IPV4), (OUR_IPV6, PEER_IPV6)] {
                gobgp.await_established(here);
                speaker.await_established(there);
            }
            if round != 2 {
                gobgp.announce("ipv4", "203.0.113.0/24");
                gobgp.announce("ipv6", &format!("2001:db8:f::/48 nexthop {PEER_IPV6}"));
            }
            for (family, prefix, next_hop) in [
                ("ipv4-unicast", "203.0.113.0/24", PEER_IPV4),
                ("ipv6-unicast", "2001:db8:f::/48", PEER_IPV6),
            ] {
                let route = speaker.await_route(family, prefix);
                assert_eq!(route["paths"][0]["next-hop"], next_hop, "{route}");
                assert_eq!(route["paths"][0]["as-path"], "65003", "{route}");
            }
            gobgp.await_route("ipv4", "198.51.100.0/24");
            gobgp.await_route("ipv6", "2001:db8:e::/48");
        }
        gobgp.withdraw("ipv4", "203.0.113.0/24");
        speaker.await_no_route("ipv4-unicast", "203.0.113.0/24");
    });
}
