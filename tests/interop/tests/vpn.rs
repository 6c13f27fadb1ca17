//! Prefixes of VPNs (RFC 4364, 4659) with GoBGP, both ways: each type of route distinguisher, labels, route targets, and
//! every other attribute of what is told.

use interop::{OUR_IPV4, PEER_IPV4};
use serde_json::{Value, json};
use test_support::gobgp::Gobgp;
use test_support::lab::Lab;
use test_support::programs::{GOBGP, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

/// Family, distinguisher, prefix, label.
const ROUTES: [(&str, &str, &str, u32); 6] = [
    ("ipv4-vpn", "65000:100", "10.1.0.0/16", 100),
    ("ipv4-vpn", "192.0.2.1:7", "10.1.0.0/16", 101),
    ("ipv4-vpn", "4200000001:9", "10.1.2.3/32", 1_048_575),
    ("ipv6-vpn", "65000:100", "2001:db8:1::/48", 16),
    ("ipv6-vpn", "192.0.2.1:7", "2001:db8:1::/48", 17),
    ("ipv6-vpn", "4200000001:9", "::/0", 3),
];

fn theirs(asn: u32) -> String {
    let families = ["ipv4-unicast", "l3vpn-ipv4-unicast", "l3vpn-ipv6-unicast"].map(|family| {
        format!("  [[neighbors.afi-safis]]\n    [neighbors.afi-safis.config]\n      afi-safi-name = \"{family}\"\n")
    });
    format!(
        "[global.config]\n  as = {asn}\n  router-id = \"{PEER_IPV4}\"\n[[neighbors]]\n  [neighbors.config]\n    \
         neighbor-address = \"{OUR_IPV4}\"\n    peer-as = 65010\n  [neighbors.timers.config]\n    connect-retry = 1\n"
    ) + &families.concat()
}

fn ours(asn: u32, label_offset: u32) -> String {
    let routes = ROUTES.map(|(_, rd, prefix, label)| {
        let label = (label + label_offset).min(1_048_575);
        format!(
            "  - {{ prefix: \"{prefix}\", rd: \"{rd}\", label: {label}, med: 7, local-pref: 200, \
             communities: [\"65010:1\", \"65010:1:2\", \"rt:65000:100\", \"rt:192.0.2.1:7\", \"rt:4200000001:9\"] }}\n"
        )
    });
    format!(
        "asn: 65010\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\"]\nrequire-policy: false\nneighbors:\n  \
         - {{ address: {PEER_IPV4}, asn: {asn}, connect-retry: 1, families: [ipv4-unicast, ipv4-vpn, ipv6-vpn] }}\n\
         originate:\n"
    ) + &routes.concat()
}

/// GoBGP writes every AS number of four octets with a dot, and reads it only so.
fn dotted(rd: &str) -> String {
    rd.replace("4200000001", "64086.59905")
}

fn gobgp_family(family: &str) -> &'static str {
    if family == "ipv4-vpn" { "vpnv4" } else { "vpnv6" }
}

/// All that GoBGP must hold of a route of ours: each attribute, in the order of their types.
fn expected(asn: u32, rd: &str, prefix: &str, label: u32) -> Value {
    let (admin, assigned) = rd.split_once(':').expect("a distinguisher");
    let (kind, admin) = match admin {
        "65000" => (0, json!(65_000)),
        "192.0.2.1" => (1, json!(admin)),
        _ => (2, json!(4_200_000_001_u32)),
    };
    let assigned: u32 = assigned.parse().expect("a number");
    let nlri = json!({ "labels": [label], "prefix": prefix, "rd": { "admin": admin, "assigned": assigned, "type": kind } });
    let afi = if prefix.contains('.') { 1 } else { 2 };
    let path =
        if asn == 65_010 { json!([]) } else { json!([{ "asns": [65_010], "num": 1, "segment_type": 2 }]) };
    let mut attributes = vec![json!({ "type": 1, "value": 0 }), json!({ "type": 2, "as_paths": path })];
    attributes.push(json!({ "type": 4, "metric": 7 }));
    // LOCAL_PREF stays in its AS.
    attributes.extend((asn == 65_010).then(|| json!({ "type": 5, "value": 200 })));
    attributes.push(json!({ "type": 8, "communities": [65_010_u32 << 16 | 1] }));
    let target = |kind: u8, value: &str| json!({ "subtype": 2, "type": kind, "value": value });
    let targets = [target(0, "65000:100"), target(1, "192.0.2.1:7"), target(2, "64086.59905:9")];
    attributes.push(json!({ "type": 16, "value": targets }));
    attributes.push(json!({ "type": 32, "value": [{ "ASN": 65_010, "LocalData1": 1, "LocalData2": 2 }] }));
    // What GoBGP shows of ::ffff:192.0.2.1 is the IPv4 address in it.
    attributes.push(json!({ "type": 14, "afi": afi, "safi": 128, "nexthop": OUR_IPV4, "value": [nlri] }));
    Value::Array(attributes)
}

/// Waits until GoBGP holds every route of ours with these labels, and exactly as we told it.
#[track_caller]
fn await_ours(gobgp: &Gobgp, asn: u32, label_offset: u32) {
    for (family, rd, prefix, label) in ROUTES {
        let label = (label + label_offset).min(1_048_575);
        wait::until(&format!("GoBGP holds {rd}:{prefix} with label {label}"), || {
            let route = format!("{}:{prefix}", dotted(rd));
            let paths = gobgp.paths(gobgp_family(family), &route)?;
            let [path] = &paths[..] else { return Err(format!("{paths:?}")) };
            let expected = expected(asn, rd, prefix, label);
            if path["attrs"] == expected { Ok(()) } else { Err(format!("{path}\ninstead of {expected}")) }
        });
    }
}

/// What GoBGP announces: family, distinguisher, prefix, label, its words for the rest; and what we must make of that: next
/// hop, MED, communities.
type Theirs = (
    &'static str,
    &'static str,
    &'static str,
    u32,
    &'static str,
    (&'static str, Option<u32>, &'static [&'static str]),
);
const THEIRS: [Theirs; 6] = [
    (
        "ipv4-vpn",
        "65003:1",
        "10.9.0.0/16",
        300,
        "rt 65003:1 192.0.2.2:5 64086.59905:6 nexthop 192.0.2.99 med 5 community 65003:1 large-community 65003:1:2",
        ("192.0.2.99", Some(5), &["65003:1", "65003:1:2", "rt:65003:1", "rt:192.0.2.2:5", "rt:4200000001:6"]),
    ),
    ("ipv4-vpn", "192.0.2.2:1", "10.9.0.0/16", 1_048_575, "rt 65003:1", (PEER_IPV4, None, &["rt:65003:1"])),
    ("ipv4-vpn", "4200000001:1", "0.0.0.0/0", 16, "rt 65003:1", (PEER_IPV4, None, &["rt:65003:1"])),
    (
        "ipv6-vpn",
        "65003:1",
        "2001:db8:9::/48",
        301,
        "rt 65003:1 nexthop 2001:db8::99",
        ("2001:db8::99", None, &["rt:65003:1"]),
    ),
    (
        "ipv6-vpn",
        "192.0.2.2:1",
        "2001:db8:9::1/128",
        302,
        "rt 65003:1",
        ("::ffff:192.0.2.254", None, &["rt:65003:1"]),
    ),
    ("ipv6-vpn", "4200000001:1", "::/0", 303, "rt 65003:1", ("::ffff:192.0.2.254", None, &["rt:65003:1"])),
];

fn announcement((family, rd, prefix, label, words, _): &Theirs) -> (&'static str, String) {
    (gobgp_family(family), format!("{prefix} label {label} rd {} {words}", dotted(rd)))
}

fn both_ways(what: &str, asn: u32) {
    if !available(what, &[GOBGP, IP]) {
        return;
    }
    Lab::run(move |lab| {
        let ours_host = lab.host("ours", &[&format!("{OUR_IPV4}/24")]);
        let theirs_host = lab.host("theirs", &[&format!("{PEER_IPV4}/24")]);
        let gobgp = Gobgp::start(&theirs_host, &theirs(asn));
        let mut speaker = Speaker::start(&ours_host, &ours(asn, 0));
        gobgp.await_established(OUR_IPV4);
        speaker.await_established(PEER_IPV4);
        await_ours(&gobgp, asn, 0);
        speaker.reload(&ours(asn, 1000));
        await_ours(&gobgp, asn, 1000);

        for route in &THEIRS {
            let (family, words) = announcement(route);
            gobgp.announce(family, &words);
        }
        for (family, rd, prefix, label, _, (next_hop, med, communities)) in THEIRS {
            let route = speaker.await_route(family, &format!("{rd}:{prefix}"));
            assert_eq!(route["rd"], rd, "{route}");
            let path = &route["paths"][0];
            assert_eq!((&path["label"], &path["next-hop"]), (&json!(label), &json!(next_hop)), "{route}");
            assert_eq!((&path["med"], &path["origin"]), (&json!(med), &json!("incomplete")), "{route}");
            let as_path = if asn == 65_010 { "" } else { "65003" };
            assert_eq!(
                (&path["as-path"], &path["communities"]),
                (&json!(as_path), &json!(communities)),
                "{route}"
            );
            let local_pref = if asn == 65_010 { json!(100) } else { Value::Null };
            assert_eq!((&path["best"], &path["local-pref"]), (&json!(true), &local_pref), "{route}");
        }
        // Another label is another path, and what is said again is no second one.
        gobgp.announce("vpnv4", "10.9.0.0/16 label 400 rd 65003:1 rt 65003:2");
        wait::until("the new label is here", || {
            let route = speaker.await_route("ipv4-vpn", "65003:1:10.9.0.0/16");
            let path = (&route["paths"][0]["label"], &route["paths"][0]["communities"], &route["paths"][1]);
            if path == (&json!(400), &json!(["rt:65003:2"]), &Value::Null) {
                Ok(())
            } else {
                Err(route.to_string())
            }
        });
        let counts = speaker.await_peer(PEER_IPV4, "has counted", |peer| {
            let families = peer["families"].as_array().into_iter().flatten();
            families.filter(|family| family["safi"] == "mpls_vpn" && family["received"] == 3).count() == 2
        });
        for family in
            counts["families"].as_array().into_iter().flatten().filter(|of| of["safi"] == "mpls_vpn")
        {
            assert_eq!((&family["accepted"], &family["advertised"]), (&json!(3), &json!(3)), "{counts}");
        }

        // A refresh of either side changes nothing.
        gobgp.tell(&["neighbor", OUR_IPV4, "softreset", "-a", "vpnv4"]).expect("a soft reset");
        await_ours(&gobgp, asn, 1000);

        for route in &THEIRS {
            let (family, words) = announcement(route);
            gobgp.withdraw(family, &words);
            speaker.await_no_route(route.0, &format!("{}:{}", route.1, route.2));
        }
        let (nothing, _) =
            ours(asn, 0).split_once("originate:").map(|(head, _)| (head.to_owned(), ())).expect("a head");
        speaker.reload(&nothing);
        for (family, rd, prefix, _) in ROUTES {
            gobgp.await_no_route(gobgp_family(family), &format!("{}:{prefix}", dotted(rd)));
        }
        speaker.await_established(PEER_IPV4);
    });
}

#[test]
fn both_ways_with_an_external_neighbour() {
    both_ways("interop vpn gobgp ebgp", 65_003);
}

#[test]
fn both_ways_with_an_internal_neighbour() {
    both_ways("interop vpn gobgp ibgp", 65_010);
}
