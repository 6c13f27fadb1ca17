//! What becomes of AS paths between us and BIRD, FRR, GoBGP and ExaBGP; aggregates; and communities that keep a route
//! where it is.

use interop::daemon::{Daemon, Kind, Neighbour, Settings};
use interop::{OUR_IPV4, PEER_IPV4, PEER_IPV6};
use serde_json::Value;
use test_support::bird::Bird;
use test_support::frr::Frr;
use test_support::gobgp::Gobgp;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, EXABGP, FRR, GOBGP, IP, available};
use test_support::route::Route;
use test_support::speaker::Speaker;
use test_support::wait;

const ASN: u32 = 65010;
const BIRD_IPV4: &str = "192.0.2.2";
const FRR_IPV4: &str = "192.0.2.3";
const GOBGP_IPV4: &str = "192.0.2.4";
const BIRDS: &str = "203.0.113.0/24";
const ALSO_BIRDS: &str = "203.0.112.0/24";
const AROUND: &str = "203.0.112.0/20";
const FRRS: &str = "198.51.100.0/24";
const OURS: &str = "100.65.0.0/24";

fn host(lab: &Lab, name: &str, address: &str) -> Host {
    lab.host(name, &[&format!("{address}/24")])
}

/// BIRD in an AS; `export` is what it does to its routes before it tells them.
fn bird(asn: u32, export: &str) -> String {
    format!(
        "log stderr all;\nrouter id {BIRD_IPV4};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {BIRDS} blackhole; route {ALSO_BIRDS} blackhole; }}\n\
         protocol bgp sut {{ local {BIRD_IPV4} as {asn}; neighbor {OUR_IPV4} as {ASN}; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2;\n\
         \x20 ipv4 {{ import all; export filter {{ if source = RTS_STATIC then {{ {export} accept; }} reject; }}; }}; }}\n"
    )
}

/// FRR in an AS; `session` is a line about its neighbour, `out` one about what it tells.
fn frr(asn: u32, remote: u32, session: &str, out: &str) -> String {
    format!(
        "log stdout informational\nrouter bgp {asn}\n bgp router-id {FRR_IPV4}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n no bgp default ipv4-unicast\n timers bgp 3 9\n \
         neighbor {OUR_IPV4} remote-as {remote}\n neighbor {OUR_IPV4} timers connect 1\n \
         neighbor {OUR_IPV4} advertisement-interval 0\n{session} address-family ipv4 unicast\n  network {FRRS}\n  \
         neighbor {OUR_IPV4} activate\n{out} exit-address-family\n"
    )
}

fn gobgp(asn: u32) -> String {
    format!(
        "[global.config]\n  as = {asn}\n  router-id = \"{GOBGP_IPV4}\"\n[[neighbors]]\n  [neighbors.config]\n    \
         neighbor-address = \"{OUR_IPV4}\"\n    peer-as = {ASN}\n  [neighbors.timers.config]\n    connect-retry = 1\n"
    )
}

/// Our file: neighbours with AS number and what else they have, and further lines.
fn ours(neighbours: &[(&str, u32, &str)], rest: &str) -> String {
    let mut file = format!(
        "asn: {ASN}\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\"]\nrequire-policy: false\nneighbors:\n"
    );
    for (address, asn, with) in neighbours {
        file += &format!("  - {{ address: {address}, asn: {asn}, connect-retry: 1{with} }}\n");
    }
    file + rest + &format!("originate: [{{ prefix: {OURS} }}]\n")
}

/// Waits until our path of a neighbour's route, as it counts, is this.
#[track_caller]
fn our_path(sut: &Speaker, prefix: &str, path: &str) {
    wait::until(&format!("our path to {prefix} is {path}"), || {
        let route = sut.try_ask(&["routes", "loc-rib", "ipv4-unicast", prefix])?;
        let entry = &route[0]["paths"][0];
        if entry["as-path"] == path && entry["rejected"].is_null() { Ok(()) } else { Err(route.to_string()) }
    });
}

/// Waits until we refuse a neighbour's route for this reason.
#[track_caller]
fn our_reason(sut: &Speaker, neighbour: &str, prefix: &str, reason: &str) {
    wait::until(&format!("we refuse {prefix}"), || {
        let asked = ["routes", "adj-rib-in", "ipv4-unicast", prefix, "--neighbor", neighbour];
        let routes = sut.try_ask(&asked)?;
        let why = routes[0]["paths"][0]["rejected"].as_str().unwrap_or_default();
        if why.contains(reason) { Ok(()) } else { Err(routes.to_string()) }
    });
}

/// Waits until FRR's path is this.
#[track_caller]
fn frrs_path(frr: &Frr, prefix: &str, path: &str) -> Value {
    wait::until(&format!("FRR's path to {prefix} is {path}"), || {
        let route = frr.await_route("ipv4", prefix);
        if route["aspath"]["string"] == path { Ok(route) } else { Err(route.to_string()) }
    })
}

/// RFC 7705, which FRR calls by the same words.
#[test]
fn another_as_number_for_frr_and_frrs_for_us() {
    if !available("interop frr local-as", &[FRR, IP]) {
        return;
    }
    // Ours, in each form: what FRR hears of us, and we make of what FRR tells.
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        let frr = Frr::start(&host(lab, "frr", FRR_IPV4), &frr(65_002, 65_099, "", ""));
        let file = |form: &str| ours(&[(FRR_IPV4, 65_002, &format!(", local-asn: {form}"))], "");
        let mut sut = Speaker::start(&our_host, &file("65099"));
        frr.await_established(OUR_IPV4);
        for (form, heard, made) in [
            ("65099", "65099", "65002"),
            ("{ asn: 65099, no-prepend: true, replace-as: false }", "65099 65010", "65002"),
            ("{ asn: 65099, no-prepend: false, replace-as: true }", "65099", "65099 65002"),
            ("{ asn: 65099, no-prepend: false, replace-as: false }", "65099 65010", "65099 65002"),
        ] {
            sut.reload(&file(form));
            frrs_path(&frr, OURS, heard);
            our_path(&sut, FRRS, made);
        }
        assert_eq!(sut.await_established(FRR_IPV4)["established-transitions"], 1);
    });
    // FRR's, in two of its forms: the same words mean the same.
    for (words, heard, made) in
        [("", "65099 65002", "65099 65010"), (" no-prepend replace-as", "65099", "65010")]
    {
        Lab::run(move |lab| {
            let our_host = host(lab, "sut", OUR_IPV4);
            let session = format!(" neighbor {OUR_IPV4} local-as 65099{words}\n");
            let frr = Frr::start(&host(lab, "frr", FRR_IPV4), &frr(65_002, ASN, &session, ""));
            let sut = Speaker::start(&our_host, &ours(&[(FRR_IPV4, 65_099, "")], ""));
            frr.await_established(OUR_IPV4);
            our_path(&sut, FRRS, heard);
            frrs_path(&frr, OURS, made);
        });
    }
}

#[test]
fn our_own_number_in_what_frr_tells() {
    if !available("interop frr allow-own-as", &[FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        let out = format!("  neighbor {OUR_IPV4} route-map loop out\n");
        let config = |path: &str| {
            frr(65_002, ASN, "", &out) + &format!("route-map loop permit 10\n set as-path prepend {path}\n")
        };
        // FRR puts its own number before what a route map prepends.
        let _frr = Frr::start(&host(lab, "frr", FRR_IPV4), &config("65010 7 65010"));
        let file = |with: &str| ours(&[(FRR_IPV4, 65_002, with)], "");
        let mut sut = Speaker::start(&our_host, &file(", allow-own-as: 1"));
        sut.await_established(FRR_IPV4);
        our_reason(&sut, FRR_IPV4, FRRS, "own AS number");
        sut.reload(&file(", allow-own-as: 2"));
        our_path(&sut, FRRS, "65002 65010 7 65010");
        sut.reload(&file(""));
        our_reason(&sut, FRR_IPV4, FRRS, "own AS number");
        assert_eq!(sut.await_established(FRR_IPV4)["established-transitions"], 1);
    });
}

/// RFC 7606 section 7.2.
#[test]
fn a_foreign_number_first_counts_as_withdrawn() {
    if !available("interop exabgp enforce-first-as", &[EXABGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        // It listens at an address of each family.
        let addresses = [format!("{PEER_IPV4}/24"), format!("{PEER_IPV6}/64")];
        let their_host = lab.host("exabgp", &addresses.each_ref().map(String::as_str));
        let next_hop = PEER_IPV4.parse().expect("an address");
        let foreign = (FRRS.to_owned(), Route::new("64999 65005", next_hop));
        let right = (BIRDS.to_owned(), Route::new("65005 64999", next_hop));
        let settings = Settings {
            originates: false,
            announces: vec![foreign, right],
            ..Settings::new(65_005, vec![Neighbour::new(OUR_IPV4, ASN)])
        };
        let exabgp = Daemon::start(Kind::Exabgp, &their_host, settings);
        let file = |with: &str| ours(&[(PEER_IPV4, 65_005, with)], "");
        let mut sut = Speaker::start(&our_host, &file(""));
        exabgp.await_established(OUR_IPV4);
        our_path(&sut, BIRDS, "65005 64999");
        our_reason(&sut, PEER_IPV4, FRRS, "does not begin with");
        sut.reload(&file(", enforce-first-as: false"));
        our_path(&sut, FRRS, "64999 65005");
        assert_eq!(sut.await_established(PEER_IPV4)["established-transitions"], 1);
    });
}

#[test]
fn sites_of_one_as_and_private_numbers() {
    if !available("interop as-override", &[BIRD, FRR, GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        let bird = Bird::start(&host(lab, "bird", BIRD_IPV4), &bird(65_001, ""));
        // Another site of BIRD's AS.
        let frr = Frr::start(&host(lab, "frr", FRR_IPV4), &frr(65_001, ASN, "", ""));
        let gobgp = Gobgp::start(&host(lab, "gobgp", GOBGP_IPV4), &gobgp(100));
        let file = |over: &str, remove: &str| {
            ours(&[(BIRD_IPV4, 65_001, over), (FRR_IPV4, 65_001, ""), (GOBGP_IPV4, 100, remove)], "")
        };
        let mut sut = Speaker::start(&our_host, &file(", as-override: true", ", remove-private-as: all"));
        bird.await_established("sut");
        frr.await_established(OUR_IPV4);
        gobgp.await_established(OUR_IPV4);
        bird.await_route(FRRS, &["BGP.as_path: 65010 65010"]);
        frr.await_no_route("ipv4", BIRDS);
        let gobgps = |expected: &str| {
            wait::until(&format!("GoBGP's path is {expected}"), || {
                let route = gobgp.route(BIRDS)?;
                if route.as_path == expected { Ok(()) } else { Err(format!("{route:?}")) }
            });
        };
        gobgps("65010");
        sut.reload(&file("", ", remove-private-as: { remove: leading, replace: true }"));
        gobgps("65010 65010");
        sut.reload(&file("", ""));
        gobgps("65010 65001");
        // BIRD knows its own number again, and refuses.
        bird.await_no_route(FRRS);
        for peer in [BIRD_IPV4, FRR_IPV4, GOBGP_IPV4] {
            assert_eq!(sut.await_established(peer)["established-transitions"], 1);
        }
    });
}

#[test]
fn an_aggregate_stands_for_birds_routes() {
    if !available("interop aggregate", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        let bird = Bird::start(&host(lab, "bird", BIRD_IPV4), &bird(65_001, ""));
        let frr = Frr::start(&host(lab, "frr", FRR_IPV4), &frr(65_002, ASN, "", ""));
        let file = |more: &str| {
            let aggregate =
                format!("aggregate: [{{ prefix: {AROUND}{more}, communities: [\"65010:5\"] }}]\n");
            ours(&[(BIRD_IPV4, 65_001, ""), (FRR_IPV4, 65_002, "")], &aggregate)
        };
        let mut sut = Speaker::start(&our_host, &file(", summary-only: true"));
        bird.await_established("sut");
        frr.await_established(OUR_IPV4);
        frrs_path(&frr, AROUND, "65010");
        let route = frr.route(AROUND).expect("it is there");
        assert!(route.atomic_aggregate, "{route:?}");
        assert_eq!(route.aggregator, Some((ASN, OUR_IPV4.parse().expect("an address"))));
        assert_eq!(route.communities, ["65010:5"]);
        for inside in [BIRDS, ALSO_BIRDS] {
            frr.await_no_route("ipv4", inside);
            sut.await_route("ipv4-unicast", inside);
        }
        // BIRD is told of it too, as the routes inside are not the same route.
        bird.await_route(AROUND, &["BGP.as_path: 65010"]);
        sut.reload(&file(""));
        for inside in [BIRDS, ALSO_BIRDS] {
            frrs_path(&frr, inside, "65010 65001");
        }
        sut.reload(&file(", summary-only: true"));
        frr.await_no_route("ipv4", BIRDS);
        // It goes with the last of them.
        let _ = bird.ask("disable s4");
        frr.await_no_route("ipv4", AROUND);
        frr.await_route("ipv4", OURS);
    });
}

/// RFC 1997, and what it says nothing of: own routes.
#[test]
fn what_must_stay_stays_and_what_is_ours_goes() {
    if !available("interop no-export", &[BIRD, FRR, GOBGP, IP]) {
        return;
    }
    for (community, inside) in [("65535,65281", true), ("65535,65283", true), ("65535,65282", false)] {
        Lab::run(move |lab| {
            let our_host = host(lab, "sut", OUR_IPV4);
            let export = format!("if net = {BIRDS} then bgp_community.add(({community}));");
            let bird = Bird::start(&host(lab, "bird", BIRD_IPV4), &bird(65_001, &export));
            let frr = Frr::start(&host(lab, "frr", FRR_IPV4), &frr(65_002, ASN, "", ""));
            let gobgp = Gobgp::start(&host(lab, "gobgp", GOBGP_IPV4), &gobgp(ASN));
            let own = format!("\"{}\"", community.replace(',', ":"));
            let neighbours = [(BIRD_IPV4, 65_001, ""), (FRR_IPV4, 65_002, ""), (GOBGP_IPV4, ASN, "")];
            let file = ours(&neighbours, "");
            let file = file.replace(" }]", &format!(", communities: [{own}] }}]"));
            let sut = Speaker::start(&our_host, &file);
            bird.await_established("sut");
            frr.await_established(OUR_IPV4);
            gobgp.await_established(OUR_IPV4);
            // Its neighbour in the list shows that all has been told.
            frrs_path(&frr, ALSO_BIRDS, "65010 65001");
            gobgp.await_route("ipv4", ALSO_BIRDS);
            sut.await_route("ipv4-unicast", BIRDS);
            frr.await_no_route("ipv4", BIRDS);
            if inside {
                gobgp.await_route("ipv4", BIRDS);
            } else {
                gobgp.await_no_route("ipv4", BIRDS);
            }
            frrs_path(&frr, OURS, "65010");
            bird.await_route(OURS, &[&format!("({community})")]);
        });
    }
}
