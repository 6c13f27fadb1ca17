//! Long-lived graceful restart (RFC 9494) with real daemons, in both roles.
//!
//! ```text
//!            ours (peregrine speaker) ── theirs (BIRD or FRR)
//!             │               │
//!      aware (BIRD)      plain (BIRD, does not know what that is)
//! ```
//!
//! What a daemon can't do: FRR 8.4 marks our routes but leaves them with a neighbour that has not sent the capability. OpenBGPD
//! and ExaBGP of Debian 12 do not have it.

use std::time::Duration;

use test_support::bird::Bird;
use test_support::frr::Frr;
use test_support::gobgp::Gobgp;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, FRR, GOBGP, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

const OURS: &str = "192.0.2.1";
const THEIRS: &str = "192.0.2.2";
const AWARE: &str = "192.0.2.3";
const PLAIN: &str = "192.0.2.4";
const OUR_ROUTE: &str = "198.51.100.0/24";
const THEIR_ROUTE: &str = "203.0.113.0/24";
const UNWILLING: &str = "203.0.114.0/24";
const LLGR_STALE: &str = "(65535,6)";

fn host(lab: &Lab, name: &str, address: &str) -> Host {
    lab.host(name, &[&format!("{address}/24")])
}

/// A BIRD that listens to `peer` and tells nothing; `more` goes into the session.
fn listener(host: &Host, own: &str, asn: u32, peer: &str, peer_asn: u32, more: &str) -> Bird {
    let config = format!(
        "log stderr all;\nrouter id {own};\nprotocol device {{ }}\n\
         protocol bgp peer {{ local {own} as {asn}; neighbor {peer} as {peer_asn}; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2; {more} ipv4 {{ import all; export none; }}; }}\n"
    );
    Bird::start(host, &config)
}

/// A BIRD that is not told otherwise knows what long-lived stale routes are.
const DOES_NOT_KNOW: &str = "graceful restart off; long lived graceful restart off;";
const KNOWS: &str = "graceful restart on; long lived graceful restart on; long lived stale time 60;";

fn speaker(restart: &str, neighbors: &[(&str, u32)]) -> String {
    let neighbors: String = neighbors
        .iter()
        .map(|(address, asn)| format!("- {{ address: {address}, asn: {asn}, connect-retry: 1 }}\n"))
        .collect();
    format!(
        "asn: 65010\nrouter-id: {OURS}\nlisten: [\"{OURS}:179\"]\nrequire-policy: false\n\
         graceful-restart: {{ {restart} }}\nneighbors:\n{neighbors}\
         originate:\n- {{ prefix: {OUR_ROUTE}, next-hop: self }}\n"
    )
}

/// The daemon that goes away: a willing route and one that does not want to be kept.
fn bird(restart: u32, stale: u32) -> String {
    format!(
        "log stderr all;\nrouter id {THEIRS};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {THEIR_ROUTE} blackhole; route {UNWILLING} blackhole; }}\n\
         filter telling {{ if net = {UNWILLING} then bgp_community.add((65535,7)); accept; }}\n\
         protocol bgp ours {{ local {THEIRS} as 65020; neighbor {OURS} as 65010; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2; graceful restart on; graceful restart time {restart};\n\
         \x20 long lived graceful restart on; long lived stale time {stale};\n\
         \x20 ipv4 {{ import all; export filter telling; }}; }}\n"
    )
}

/// Waits until a route of ours has or has not become long-lived stale.
fn await_stale(sut: &Speaker, prefix: &str, stale: bool) {
    wait::until(&format!("{prefix} is long-lived stale: {stale}"), || {
        let route = sut.await_route("ipv4-unicast", prefix);
        let path = &route["paths"][0];
        let marked = path["communities"].to_string().contains("llgr-stale");
        let is = path["long-lived-stale"] == true;
        if (marked, is) == (stale, stale) { Ok(()) } else { Err(route.to_string()) }
    });
}

fn await_agreed(sut: &Speaker, peer: &str) {
    sut.await_peer(peer, "has the long form", |peer| {
        let family = &peer["graceful-restart"]["long-lived"][0];
        peer["session-state"] == "established" && family["peer-stale-time-seconds"].is_u64()
    });
}

#[test]
fn birds_routes_are_a_last_resort_while_it_stays_away() {
    if !available("interop llgr, bird goes away", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = (host(lab, "ours", OURS), host(lab, "theirs", THEIRS));
        let aware = listener(&host(lab, "aware", AWARE), AWARE, 65030, OURS, 65010, KNOWS);
        let plain = listener(&host(lab, "plain", PLAIN), PLAIN, 65040, OURS, 65010, DOES_NOT_KNOW);
        let mut bird_there = Bird::start(&theirs, &bird(3, 60));
        let peers = [(THEIRS, 65020), (AWARE, 65030), (PLAIN, 65040)];
        let long = "restart-time: 3, long-lived-stale-time: 60, forwarding-preserved: true";
        let sut = Speaker::start(&ours, &speaker(long, &peers));
        await_agreed(&sut, THEIRS);
        for (bird, prefix) in [(&aware, THEIR_ROUTE), (&plain, THEIR_ROUTE), (&plain, UNWILLING)] {
            bird.await_route(prefix, &["BGP.as_path: 65010 65020"]);
        }
        bird_there.kill();
        await_stale(&sut, THEIR_ROUTE, true);
        // Marked where that is understood, withdrawn elsewhere; what does not want it has gone everywhere.
        aware.await_route(THEIR_ROUTE, &[LLGR_STALE]);
        plain.await_no_route(THEIR_ROUTE);
        sut.await_no_route("ipv4-unicast", UNWILLING);
        aware.await_no_route(UNWILLING);
        let peer = sut.peer(THEIRS).expect("it is configured");
        assert_eq!(peer["graceful-restart"]["long-lived-stale-families"][0], "ipv4-unicast", "{peer}");
        let reason = peer["state-reason"].as_str().unwrap_or_default();
        assert!(reason.contains("as a last resort"), "{reason}");
        assert_eq!(aware.withdrawals("peer"), 1, "the unwilling one only");

        // Back, it takes the mark off what it says again.
        let mut bird_there = Bird::recover(&theirs, &bird(3, 5));
        bird_there.await_established("ours");
        await_stale(&sut, THEIR_ROUTE, false);
        sut.await_peer(THEIRS, "is settled", |peer| peer["graceful-restart"]["stale-families"].is_null());
        plain.await_route(THEIR_ROUTE, &["BGP.as_path: 65010 65020"]);
        wait::until("the mark is off", || {
            let route = aware.ask(&format!("show route {THEIR_ROUTE} all"));
            if route.contains(LLGR_STALE) { Err(route) } else { Ok(()) }
        });
        assert_eq!(aware.withdrawals("peer"), 1);

        // It stays away for longer than its stale time, five seconds now.
        bird_there.kill();
        sut.await_no_route("ipv4-unicast", THEIR_ROUTE);
        aware.await_no_route(THEIR_ROUTE);
    });
}

/// `theirs` helps us; the listeners are behind it. `start` starts it, and gives what tells whether our route is marked there.
fn we_go_away(
    lab: &Lab,
    withdraws: bool,
    start: impl FnOnce(&Host) -> Box<dyn Fn() -> Result<bool, String>>,
) {
    let (ours, theirs) = (host(lab, "ours", OURS), host(lab, "theirs", THEIRS));
    let aware = listener(&host(lab, "aware", AWARE), AWARE, 65030, THEIRS, 65020, KNOWS);
    let plain = listener(&host(lab, "plain", PLAIN), PLAIN, 65040, THEIRS, 65020, DOES_NOT_KNOW);
    let marked = start(&theirs);
    let long = "restart-time: 3, long-lived-stale-time: 60, forwarding-preserved: true";
    let file = speaker(long, &[(THEIRS, 65020)]);
    let sut = Speaker::start(&ours, &file);
    await_agreed(&sut, THEIRS);
    for bird in [&aware, &plain] {
        bird.await_route(OUR_ROUTE, &["BGP.as_path: 65020 65010"]);
    }
    // SIGKILL.
    drop(sut);
    let is_marked = |wanted: bool| {
        wait::until(&format!("our route is marked at the helper: {wanted}"), || match marked()? {
            is if is == wanted => Ok(()),
            is => Err(is.to_string()),
        });
    };
    is_marked(true);
    aware.await_route(OUR_ROUTE, &[LLGR_STALE]);
    if withdraws {
        plain.await_no_route(OUR_ROUTE);
    }
    let sut = Speaker::start(&ours, &file);
    sut.await_established(THEIRS);
    is_marked(false);
    plain.await_route(OUR_ROUTE, &["BGP.as_path: 65020 65010"]);
    assert_eq!(aware.withdrawals("peer"), 0, "whoever knows what that is lost nothing");
}

#[test]
fn our_routes_are_a_last_resort_at_bird_while_we_stay_away() {
    if !available("interop llgr, bird helps", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        we_go_away(lab, true, |theirs| {
            let session = |name: &str, peer: &str, asn: u32| {
                format!(
                    "protocol bgp {name} {{ local {THEIRS} as 65020; neighbor {peer} as {asn}; connect delay time 1;\n\
                     \x20 connect retry time 1; error wait time 1, 2; {KNOWS} ipv4 {{ import all; export all; }}; }}\n"
                )
            };
            let config = format!("log stderr all;\nrouter id {THEIRS};\nprotocol device {{ }}\n")
                + &session("ours", OURS, 65010)
                + &session("knowing", AWARE, 65030)
                + &session("unknowing", PLAIN, 65040);
            let bird = Bird::start(theirs, &config);
            Box::new(move || {
                let route = bird.ask(&format!("show route {OUR_ROUTE} all"));
                if route.contains(OUR_ROUTE) { Ok(route.contains(LLGR_STALE)) } else { Err(route) }
            })
        });
    });
}

fn frr(sessions: &[(&str, u32)]) -> String {
    let neighbors: String = sessions
        .iter()
        .map(|(address, asn)| {
            format!(
                " neighbor {address} remote-as {asn}\n neighbor {address} timers connect 1\n neighbor {address} advertisement-interval 0\n"
            )
        })
        .collect();
    format!(
        "log stdout informational\nrouter bgp 65020\n bgp router-id {THEIRS}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n \
         bgp graceful-restart restart-time 3\n bgp long-lived-graceful-restart stale-time 60\n{neighbors} \
         address-family ipv4 unicast\n  network {THEIR_ROUTE}\n exit-address-family\n"
    )
}

#[test]
fn our_routes_are_a_last_resort_at_frr_while_we_stay_away() {
    if !available("interop llgr, frr helps", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        we_go_away(lab, false, |theirs| {
            let frr = Frr::start(theirs, &frr(&[(OURS, 65010), (AWARE, 65030), (PLAIN, 65040)]));
            Box::new(move || {
                let answer = frr.ask(&format!("show bgp ipv4 unicast {OUR_ROUTE} json"))?;
                let path = &answer["paths"][0];
                if path.is_null() {
                    return Err(answer.to_string());
                }
                Ok(path["community"]["string"].to_string().contains("llgr-stale"))
            })
        });
    });
}

/// `start` starts the daemon, which announces its route, and gives what kills it. Listeners are behind us.
fn it_stays_away(lab: &Lab, start: impl FnOnce(&Host) -> Box<dyn FnOnce()>) {
    let (ours, theirs) = (host(lab, "ours", OURS), host(lab, "theirs", THEIRS));
    let aware = listener(&host(lab, "aware", AWARE), AWARE, 65030, OURS, 65010, KNOWS);
    let plain = listener(&host(lab, "plain", PLAIN), PLAIN, 65040, OURS, 65010, DOES_NOT_KNOW);
    let kill = start(&theirs);
    let peers = [(THEIRS, 65020), (AWARE, 65030), (PLAIN, 65040)];
    // Ours is the shorter stale time, so it counts.
    let long = "restart-time: 3, long-lived-stale-time: 15, forwarding-preserved: true";
    let sut = Speaker::start(&ours, &speaker(long, &peers));
    await_agreed(&sut, THEIRS);
    for bird in [&aware, &plain] {
        bird.await_route(THEIR_ROUTE, &["BGP.as_path: 65010 65020"]);
    }
    kill();
    aware.await_route(THEIR_ROUTE, &[LLGR_STALE]);
    plain.await_no_route(THEIR_ROUTE);
    wait::until_within(Duration::from_secs(60), "the stale time is over", || {
        let peer = sut.peer(THEIRS)?;
        if peer["graceful-restart"]["stale-families"].is_null() { Ok(()) } else { Err(peer.to_string()) }
    });
    aware.await_no_route(THEIR_ROUTE);
}

#[test]
fn frrs_routes_are_a_last_resort_while_it_stays_away() {
    if !available("interop llgr, frr goes away", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        it_stays_away(lab, |theirs| {
            let mut frr = Frr::start(theirs, &frr(&[(OURS, 65010)]));
            Box::new(move || frr.kill())
        });
    });
}

#[test]
fn gobgps_routes_are_a_last_resort_while_it_stays_away() {
    if !available("interop llgr, gobgp goes away", &[BIRD, GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        it_stays_away(lab, |theirs| {
            let mut gobgp = Gobgp::start(theirs, &gobgp(&[(OURS, 65010)]));
            gobgp.announce("ipv4", THEIR_ROUTE);
            Box::new(move || gobgp.kill())
        });
    });
}

fn gobgp(neighbors: &[(&str, u32)]) -> String {
    let neighbors: String = neighbors
        .iter()
        .map(|(address, asn)| {
            format!(
                "[[neighbors]]\n  [neighbors.config]\n  neighbor-address = \"{address}\"\n  peer-as = {asn}\n  \
                 [neighbors.timers.config]\n  connect-retry = 1\n  idle-hold-time-after-reset = 1\n  \
                 [neighbors.graceful-restart.config]\n  enabled = true\n  restart-time = 3\n  long-lived-enabled = true\n  \
                 [[neighbors.afi-safis]]\n    [neighbors.afi-safis.config]\n    afi-safi-name = \"ipv4-unicast\"\n    \
                 [neighbors.afi-safis.mp-graceful-restart.config]\n    enabled = true\n    \
                 [neighbors.afi-safis.long-lived-graceful-restart.config]\n    enabled = true\n    restart-time = 60\n"
            )
        })
        .collect();
    format!("[global.config]\nas = 65020\nrouter-id = \"{THEIRS}\"\n{neighbors}")
}

#[test]
fn our_routes_are_a_last_resort_at_gobgp_while_we_stay_away() {
    if !available("interop llgr, gobgp helps", &[BIRD, GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        we_go_away(lab, true, |theirs| {
            let gobgp = Gobgp::start(theirs, &gobgp(&[(OURS, 65010), (AWARE, 65030), (PLAIN, 65040)]));
            Box::new(move || {
                let paths = gobgp.paths("ipv4", OUR_ROUTE)?;
                let path = paths.first().ok_or("no path")?.to_string();
                // 65535:6 as a number.
                Ok(path.contains("4294901766"))
            })
        });
    });
}
