//! Graceful shutdown (RFC 8326) with real daemons, both ways: `peregrine peer gshut` is seen and obeyed, and FRR's `bgp
//! graceful-shutdown` is obeyed by us.
//!
//! What a daemon can't do: BIRD 2 leaves it to its filters to obey, so only the community and LOCAL_PREF are looked for there.

use test_support::bird::Bird;
use test_support::frr::Frr;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, FRR, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

const OURS: &str = "192.0.2.1";
const FIRST: &str = "192.0.2.2";
const SECOND: &str = "192.0.2.3";
const ROUTE: &str = "198.51.100.0/24";
const THEIR_ROUTE: &str = "203.0.113.0/24";
const OTHER_ROUTE: &str = "203.0.114.0/24";
const GRACEFUL_SHUTDOWN: &str = "(65535,0)";

fn host(lab: &Lab, name: &str, address: &str) -> Host {
    lab.host(name, &[&format!("{address}/24")])
}

fn speaker(neighbors: &[(&str, u32)]) -> String {
    let neighbors: String = neighbors
        .iter()
        .map(|(address, asn)| format!("- {{ address: {address}, asn: {asn}, connect-retry: 1 }}\n"))
        .collect();
    format!(
        "asn: 65010\nrouter-id: {OURS}\nlisten: [\"{OURS}:179\"]\nrequire-policy: false\nneighbors:\n{neighbors}\
         originate:\n- {{ prefix: {ROUTE}, next-hop: self }}\n"
    )
}

fn bird(own: &str, asn: u32, route: &str) -> String {
    format!(
        "log stderr all;\nrouter id {own};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {route} blackhole; }}\n\
         protocol bgp ours {{ local {own} as {asn}; neighbor {OURS} as 65010; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2; ipv4 {{ import all; export where source = RTS_STATIC; }}; }}\n"
    )
}

fn frr(own: &str, asn: u32, more: &str) -> String {
    format!(
        "log stdout informational\nrouter bgp {asn}\n bgp router-id {own}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n{more} neighbor {OURS} remote-as 65010\n neighbor {OURS} timers connect 1\n \
         neighbor {OURS} advertisement-interval 0\n address-family ipv4 unicast\n  network {THEIR_ROUTE}\n \
         exit-address-family\n"
    )
}

/// What is done and told at one neighbour.
fn tell(sut: &Speaker, words: &[&str]) {
    let done = sut.try_ask(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert_eq!(done[0]["result"], "applied", "{words:?}: {done}");
}

/// How many withdrawals have taken a route from BIRD, beside those of what it never had.
fn lost(bird: &Bird) -> String {
    let answer = bird.ask("show protocols all ours");
    let counts = answer.lines().find_map(|line| line.trim().strip_prefix("Import withdraws:"));
    counts.and_then(|counts| counts.split_whitespace().last()).unwrap_or_default().to_owned()
}

/// Our best path to what the neighbours announce: from whom, and its LOCAL_PREF.
fn await_best(sut: &Speaker, from: &str, local_pref: Option<u32>) {
    wait::until(&format!("the best path is from {from} with LOCAL_PREF {local_pref:?}"), || {
        let route = sut.await_route("ipv4-unicast", THEIR_ROUTE);
        let best = &route["paths"][0];
        let fits = best["source"] == from && best["local-pref"].as_u64() == local_pref.map(u64::from);
        if fits { Ok(()) } else { Err(route.to_string()) }
    });
}

#[test]
fn bird_hears_that_it_is_about_to_be_left() {
    if !available("interop gshut of bird", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let external = Bird::start(&host(lab, "external", FIRST), &bird(FIRST, 65020, THEIR_ROUTE));
        let internal = Bird::start(&host(lab, "internal", SECOND), &bird(SECOND, 65010, OTHER_ROUTE));
        let sut = Speaker::start(&host(lab, "ours", OURS), &speaker(&[(FIRST, 65020), (SECOND, 65010)]));
        external.await_route(ROUTE, &["BGP.as_path: 65010"]);
        internal.await_route(ROUTE, &["BGP.local_pref: 100"]);
        for peer in [FIRST, SECOND] {
            sut.await_established(peer);
            tell(&sut, &["peer", "gshut", peer]);
        }
        external.await_route(ROUTE, &[GRACEFUL_SHUTDOWN]);
        internal.await_route(ROUTE, &[GRACEFUL_SHUTDOWN, "BGP.local_pref: 0"]);
        // What they have told is the last choice here.
        for prefix in [THEIR_ROUTE, OTHER_ROUTE] {
            wait::until(&format!("the path to {prefix} has LOCAL_PREF 0"), || {
                let route = sut.await_route("ipv4-unicast", prefix);
                if route["paths"][0]["local-pref"] == 0 { Ok(()) } else { Err(route.to_string()) }
            });
        }
        tell(&sut, &["peer", "enable", "all"]);
        internal.await_route(ROUTE, &["BGP.local_pref: 100"]);
        for bird in [&external, &internal] {
            wait::until("the mark is off", || {
                let route = bird.ask(&format!("show route {ROUTE} all"));
                if route.contains(ROUTE) && !route.contains("65535") { Ok(()) } else { Err(route) }
            });
            assert_eq!(lost(bird), "0", "no route was gone for a moment");
        }
        for peer in [FIRST, SECOND] {
            let peer = sut.peer(peer).expect("it is configured");
            assert_eq!(peer["established-transitions"], 1, "{peer}");
        }
        // And now the shutdown itself, with a word.
        let done = sut.try_ask(&["peer", "disable", FIRST, "--message", "moving house"]).expect("it is done");
        assert_eq!(done[0]["result"], "session-reset", "{done}");
        wait::until("BIRD knows why", || {
            let told = external.process().log() + &external.ask("show protocols all ours");
            let why = told.contains("moving house") && told.contains("dministrative shutdown");
            if why { Ok(()) } else { Err(told) }
        });
    });
}

#[test]
fn frr_hears_that_it_is_about_to_be_left() {
    if !available("interop gshut of frr", &[FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let there = Frr::start(&host(lab, "external", FIRST), &frr(FIRST, 65020, ""));
        let sut = Speaker::start(&host(lab, "ours", OURS), &speaker(&[(FIRST, 65020)]));
        there.await_route("ipv4", ROUTE);
        sut.await_established(FIRST);
        let is_marked = |wanted: bool| {
            wait::until(&format!("FRR sees the community: {wanted}"), || {
                let path = there.await_route("ipv4", ROUTE);
                let is = path["community"]["string"].to_string().contains("graceful-shutdown");
                if is == wanted { Ok(()) } else { Err(path.to_string()) }
            });
        };
        tell(&sut, &["peer", "gshut", FIRST]);
        is_marked(true);
        tell(&sut, &["peer", "enable", FIRST]);
        is_marked(false);
    });
}

#[test]
fn frr_that_is_about_to_leave_is_left_for_bird() {
    if !available("interop gshut by frr", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let first = host(lab, "first", FIRST);
        let mut there = Frr::start(&first, &frr(FIRST, 65020, ""));
        let _other = Bird::start(&host(lab, "second", SECOND), &bird(SECOND, 65030, THEIR_ROUTE));
        let sut = Speaker::start(&host(lab, "ours", OURS), &speaker(&[(FIRST, 65020), (SECOND, 65030)]));
        for peer in [FIRST, SECOND] {
            sut.await_established(peer);
        }
        // The lower identifier decides.
        await_best(&sut, FIRST, None);
        there.kill();
        let _there = Frr::start(&first, &frr(FIRST, 65020, " bgp graceful-shutdown\n"));
        await_best(&sut, SECOND, None);
        wait::until("FRR's path is the last choice", || {
            let route = sut.await_route("ipv4-unicast", THEIR_ROUTE);
            let path = route["paths"].as_array().into_iter().flatten().find(|path| path["source"] == FIRST);
            let path = path.ok_or_else(|| route.to_string())?;
            let marked = path["communities"].to_string().contains("graceful-shutdown");
            if marked && path["local-pref"] == 0 { Ok(()) } else { Err(path.to_string()) }
        });
        assert_eq!(sut.await_route("ipv4-unicast", THEIR_ROUTE)["decided-by"], "local preference");
    });
}
