//! Roles and ONLY_TO_CUSTOMER (RFC 9234), with BIRD 2.

use interop::{OUR_IPV4, PEER_IPV4};
use serde_json::Value;
use test_support::bird::Bird;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, IP, available};
use test_support::speaker::Speaker;

const OURS: &str = "198.51.100.0/24";
const THEIRS: &str = "203.0.113.0/24";

fn hosts(lab: &Lab) -> (Host, Host) {
    (lab.host("sut", &[&format!("{OUR_IPV4}/24")]), lab.host("tor", &[&format!("{PEER_IPV4}/24")]))
}

fn speaker(role: &str) -> String {
    format!(
        "asn: 65010\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\"]\nrequire-policy: false\n\
         neighbors:\n  - {{ address: {PEER_IPV4}, asn: 65001, connect-retry: 1{role} }}\n\
         originate: [{{ prefix: {OURS} }}]\n"
    )
}

/// `session`: what BIRD's session has; `export`: what it does to its route.
fn bird(session: &str, export: &str) -> String {
    format!(
        "log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {THEIRS} blackhole; }}\n\
         protocol bgp sut {{ local {PEER_IPV4} as 65001; neighbor {OUR_IPV4} as 65010; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2; {session}\n\
         \x20 ipv4 {{ import all; export filter {{ if source = RTS_STATIC then {{ {export} accept; }} reject; }}; }}; }}\n"
    )
}

fn received(sut: &Speaker) -> Value {
    sut.await_route("ipv4-unicast", THEIRS)["paths"][0].clone()
}

#[test]
fn each_pair_of_roles_marks_what_it_must() {
    if !available("interop bird roles", &[BIRD, IP]) {
        return;
    }
    // Our role, BIRD's, our mark on what it hears, the mark of what we hear (theirs, or ours on the way in).
    for (ours, theirs, sent, heard) in [
        ("provider", "customer", Some(65010), None),
        ("customer", "provider", None, Some(65001)),
        ("peer", "peer", Some(65010), Some(65001)),
        ("rs", "rs_client", Some(65010), None),
        ("rs-client", "rs_server", None, Some(65001)),
    ] {
        Lab::run(move |lab| {
            let (our_host, their_host) = hosts(lab);
            let session = format!("local role {theirs}; require roles on;");
            let bird = Bird::start(&their_host, &bird(&session, ""));
            let sut = Speaker::start(&our_host, &speaker(&format!(", role: {ours}, role-strict: true")));
            bird.await_established("sut");
            let peer = sut.await_established(PEER_IPV4);
            assert_eq!(peer["role"], ours, "{peer}");
            let named = match theirs {
                "rs_client" => "rs-client",
                "rs_server" => "rs",
                other => other,
            };
            assert_eq!(peer["peer-role"], named, "{peer}");
            let route = bird.await_route(OURS, &["BGP.as_path: 65010"]);
            // BIRD marks on the way in what we have not marked, as we do.
            let expected = sent.or((ours == "customer" || ours == "rs-client").then_some(0));
            match expected {
                Some(0) | None => assert!(!route.contains("BGP.otc"), "{ours}: {route}"),
                Some(asn) => assert!(route.contains(&format!("BGP.otc: {asn}")), "{ours}: {route}"),
            }
            let path = received(&sut);
            assert_eq!(path["only-to-customer"].as_u64(), heard, "{ours}: {path}");
            assert!(path["rejected"].is_null(), "{ours}: {path}");
        });
    }
}

#[test]
fn a_leak_is_kept_with_its_reason() {
    if !available("interop bird route leak", &[BIRD, IP]) {
        return;
    }
    Lab::run(move |lab| {
        let (ours, theirs) = hosts(lab);
        // A customer that knows nothing of roles passes on what came from another provider of its.
        let bird = Bird::start(&theirs, &bird("", "bgp_otc = 65099;"));
        let mut sut = Speaker::start(&ours, &speaker(", role: provider"));
        bird.await_established("sut");
        let path = received(&sut);
        assert_eq!(
            (path["best"].as_bool(), path["only-to-customer"].as_u64()),
            (Some(false), Some(65099)),
            "{path}"
        );
        assert!(path["rejected"].as_str().is_some_and(|why| why.contains("route leak")), "{path}");
        let peer = sut.await_established(PEER_IPV4);
        assert_eq!(
            (&peer["families"][0]["received"], &peer["families"][0]["accepted"]),
            (&1.into(), &0.into())
        );
        // It is fine where the neighbour is a provider.
        sut.reload(&speaker(", role: customer"));
        sut.await_peer(PEER_IPV4, "is up again", |peer| peer["established-transitions"] == 2);
        let path = received(&sut);
        assert_eq!(
            (path["best"].as_bool(), path["only-to-customer"].as_u64()),
            (Some(true), Some(65099)),
            "{path}"
        );
    });
}

#[test]
fn roles_that_do_not_fit_keep_the_session_down() {
    if !available("interop bird role mismatch", &[BIRD, IP]) {
        return;
    }
    for (theirs, ours) in [
        ("local role provider;", ", role: provider"),
        ("", ", role: provider, role-strict: true"),
        ("local role customer; require roles on;", ""),
    ] {
        Lab::run(move |lab| {
            let (our_host, their_host) = hosts(lab);
            let bird = Bird::start(&their_host, &bird(theirs, ""));
            let sut = Speaker::start(&our_host, &speaker(ours));
            let peer = sut.await_peer(PEER_IPV4, "says why it is down", |peer| {
                peer["last-error"].as_str().is_some_and(|error| error.to_lowercase().contains("role"))
            });
            assert_eq!(peer["established-transitions"], 0, "{peer}");
            let protocol = bird.ask("show protocols all sut");
            assert!(!protocol.contains("Established"), "{protocol}");
        });
    }
}
