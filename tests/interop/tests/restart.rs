//! Graceful restart with real daemons, in both roles: neither end's death may be noticed by a third one.
//!
//! ```text
//! ours (peregrine speaker) ── theirs (BIRD or FRR)
//!        └───── watcher (BIRD) ─────┘
//! ```
//!
//! The watcher counts withdrawals. What a daemon can't do: FRR 8 without zebra sends no R bit after a SIGKILL, only F bits.

use std::time::Duration;

use test_support::bird::Bird;
use test_support::frr::Frr;
use test_support::lab::{Host, Lab};
use test_support::process::Process;
use test_support::programs::{self, BIRD, FRR, IP, available};
use test_support::wait;

const OURS: &str = "192.0.2.1";
const THEIRS: &str = "192.0.2.2";
const WATCHER: &str = "192.0.2.3";
const OUR_ROUTE: &str = "198.51.100.0/24";
const THEIR_ROUTE: &str = "203.0.113.0/24";

/// Three hosts, and the watcher's BIRD.
struct Scene {
    ours: Host,
    theirs: Host,
    watcher: Bird,
    speaker: Option<Process>,
}

impl Scene {
    fn new(lab: &Lab) -> Self {
        let host = |name: &str, address: &str| lab.host(name, &[&format!("{address}/24")]);
        let (ours, theirs, watcher) = (host("ours", OURS), host("theirs", THEIRS), host("watcher", WATCHER));
        let mut config = format!("log stderr all;\nrouter id {WATCHER};\nprotocol device {{ }}\n");
        for (name, address, asn) in [("ours", OURS, 65010), ("theirs", THEIRS, 65020)] {
            config += &format!(
                "protocol bgp {name} {{ local {WATCHER} as 65030; neighbor {address} as {asn}; connect delay time 1;\n\
                 \x20 connect retry time 1; error wait time 1, 2; ipv4 {{ import all; export none; }}; }}\n"
            );
        }
        let watcher = Bird::start(&watcher, &config);
        Self { ours, theirs, watcher, speaker: None }
    }

    fn start_speaker(&mut self) {
        let dir = self.ours.dir();
        let config = format!(
            "asn: 65010\nrouter-id: {OURS}\nlisten: [\"{OURS}:179\"]\nrequire-policy: false\napi: {}\n\
             graceful-restart: {{ restart-time: 60, forwarding-preserved: true }}\nneighbors:\n\
             - {{ address: {THEIRS}, asn: 65020, connect-retry: 1 }}\n\
             - {{ address: {WATCHER}, asn: 65030, connect-retry: 1 }}\n\
             originate:\n- {{ prefix: {OUR_ROUTE}, next-hop: self }}\n",
            dir.join("api.sock").display()
        );
        let file = dir.join("speaker.yaml");
        std::fs::write(&file, config).expect("the host's folder is ours");
        let binary = programs::peregrine();
        let argv = [&*binary.to_string_lossy(), "speaker", "--config", &*file.to_string_lossy()];
        self.speaker = Some(self.ours.spawn("speaker", &argv));
    }

    fn speaker(&mut self) -> &mut Process {
        self.speaker.as_mut().expect("the speaker runs")
    }

    /// What our speaker says of a neighbour.
    fn peer(&self, address: &str) -> Result<serde_json::Value, String> {
        let socket = self.ours.dir().join("api.sock");
        let binary = programs::peregrine();
        let output = self.ours.output(&[
            &*binary.to_string_lossy(),
            "peers",
            "-o",
            "json",
            "--socket",
            &*socket.to_string_lossy(),
        ]);
        let peers: Vec<serde_json::Value> =
            serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        peers.into_iter().find(|peer| peer["peer-address"] == address).ok_or_else(|| "no such peer".into())
    }

    /// Waits until our side of the session with the daemon is up and nothing in it is stale.
    fn await_settled(&self) {
        wait::until("the session is up and nothing is stale", || {
            let peer = self.peer(THEIRS)?;
            let settled = peer["session-state"] == "established"
                && peer["graceful-restart"]["stale-families"].is_null()
                && peer["families"][0]["accepted"] == 1;
            if settled { Ok(()) } else { Err(peer.to_string()) }
        });
    }

    /// Waits until our side keeps the daemon's routes while it is away.
    fn await_kept(&self) {
        wait::until("the routes of the dead daemon are kept", || {
            let peer = self.peer(THEIRS)?;
            let kept = peer["session-state"] != "established"
                && peer["graceful-restart"]["stale-families"] == serde_json::json!(["ipv4-unicast"]);
            if kept { Ok(()) } else { Err(peer.to_string()) }
        });
    }

    /// The watcher has both routes from both.
    fn await_routes(&self) {
        for prefix in [OUR_ROUTE, THEIR_ROUTE] {
            self.watcher.await_route(prefix, &["[ours", "[theirs"]);
        }
    }
}

fn bird() -> String {
    format!(
        "log stderr all;\nrouter id {THEIRS};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {THEIR_ROUTE} blackhole; }}\n\
         template bgp T {{ local {THEIRS} as 65020; connect delay time 1; connect retry time 1; error wait time 1, 2;\n\
         \x20 graceful restart on; graceful restart time 60; ipv4 {{ import all; export all; }}; }}\n\
         protocol bgp ours from T {{ neighbor {OURS} as 65010; }}\n\
         protocol bgp watcher from T {{ neighbor {WATCHER} as 65030; }}\n"
    )
}

fn frr() -> String {
    let neighbor = |address: &str, asn: u32| {
        format!(
            " neighbor {address} remote-as {asn}\n neighbor {address} timers connect 1\n neighbor {address} advertisement-interval 0\n"
        )
    };
    format!(
        "log stdout informational\nrouter bgp 65020\n bgp router-id {THEIRS}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n \
         bgp graceful-restart restart-time 60\n{}{} address-family ipv4 unicast\n  network {THEIR_ROUTE}\n exit-address-family\n",
        neighbor(OURS, 65010),
        neighbor(WATCHER, 65030),
    )
}

#[test]
fn bird_dies_and_returns_and_nobody_behind_us_notices() {
    if !available("interop restart of bird", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut scene = Scene::new(lab);
        let mut theirs = Bird::start(&scene.theirs, &bird());
        scene.start_speaker();
        scene.await_routes();
        scene.await_settled();
        theirs.kill();
        scene.await_kept();
        let theirs = Bird::recover(&scene.theirs, &bird());
        theirs.await_established("ours");
        scene.await_settled();
        scene.await_routes();
        assert_eq!(scene.watcher.withdrawals("ours"), 0);
    });
}

#[test]
fn frr_dies_and_returns_and_nobody_behind_us_notices() {
    if !available("interop restart of frr", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut scene = Scene::new(lab);
        let mut theirs = Frr::start(&scene.theirs, &frr());
        scene.start_speaker();
        scene.await_routes();
        scene.await_settled();
        theirs.kill();
        scene.await_kept();
        let theirs = Frr::start(&scene.theirs, &frr());
        theirs.await_established(OURS);
        scene.await_settled();
        scene.await_routes();
        assert_eq!(scene.watcher.withdrawals("ours"), 0);
    });
}

/// We die and return: once by SIGKILL, once by SIGTERM.
fn we_restart(scene: &mut Scene, established: impl Fn()) {
    scene.start_speaker();
    scene.await_routes();
    scene.await_settled();
    scene.speaker().kill();
    scene.start_speaker();
    established();
    scene.await_settled();
    scene.await_routes();
    let status = scene.speaker().terminate();
    assert!(status.success(), "{status}: {}", scene.speaker().log());
    scene.start_speaker();
    established();
    scene.await_settled();
    scene.await_routes();
    assert_eq!(scene.watcher.withdrawals("theirs"), 0);
}

#[test]
fn we_die_and_return_and_nobody_behind_bird_notices() {
    if !available("interop our restart with bird", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut scene = Scene::new(lab);
        let theirs = Bird::start(&scene.theirs, &bird());
        we_restart(&mut scene, || theirs.await_established("ours"));
    });
}

#[test]
fn we_die_and_return_and_nobody_behind_frr_notices() {
    if !available("interop our restart with frr", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut scene = Scene::new(lab);
        let theirs = Frr::start(&scene.theirs, &frr());
        we_restart(&mut scene, || theirs.await_established(OURS));
    });
}

#[test]
fn who_is_away_for_too_long_is_given_up() {
    if !available("interop restart time", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut scene = Scene::new(lab);
        let mut theirs = Bird::start(&scene.theirs, &bird().replace("time 60", "time 3"));
        scene.start_speaker();
        scene.await_routes();
        scene.await_settled();
        theirs.kill();
        scene.await_kept();
        wait::until_within(Duration::from_secs(20), "the route is withdrawn", || {
            let peer = scene.peer(THEIRS)?;
            if peer["families"][0]["received"] == 0 { Ok(()) } else { Err(peer.to_string()) }
        });
        scene.watcher.await_no_route(THEIR_ROUTE);
        assert_eq!(scene.watcher.withdrawals("ours"), 1);
    });
}

/// The agent says honestly what was kept: VPP goes on while it is away.
#[test]
fn the_agent_dies_and_returns_and_nobody_behind_bird_notices() {
    if !available("interop restart of the agent", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_020);
        let behind = lab.host("watcher", &[&format!("{WATCHER}/24")]);
        node.start_vpp(&interop::uplink());
        let ours = interop::OUR_IPV4;
        let theirs = interop::PEER_IPV4;
        let tor = Bird::start(
            &tor,
            &format!(
                "log stderr all;\nrouter id {theirs};\nprotocol device {{ }}\n\
                 protocol static s4 {{ ipv4; route {THEIR_ROUTE} blackhole; }}\n\
                 template bgp T {{ local {theirs} as 65020; connect delay time 1; connect retry time 1;\n\
                 \x20 error wait time 1, 2; graceful restart on; ipv4 {{ import all; export all; }}; }}\n\
                 protocol bgp sut4 from T {{ neighbor {ours} as {}; }}\n\
                 protocol bgp watcher from T {{ neighbor {WATCHER} as 65030; }}\n",
                interop::OUR_ASN
            ),
        );
        let watcher = Bird::start(
            &behind,
            &format!(
                "log stderr all;\nrouter id {WATCHER};\nprotocol device {{ }}\n\
                 protocol bgp tor {{ local {WATCHER} as 65030; neighbor {theirs} as 65020; connect delay time 1;\n\
                 \x20 connect retry time 1; error wait time 1, 2; ipv4 {{ import all; export none; }}; }}\n"
            ),
        );
        node.start();
        tor.await_established("sut4");
        watcher.await_route(interop::OUR_BLOCK4, &["[tor"]);
        node.await_route("ipv4-unicast", THEIR_ROUTE);
        wait::until("VPP has routes of ours", || {
            let vpp = node.try_ask(&["vpp"])?;
            let mut kinds = vpp["kinds"].as_array().into_iter().flatten();
            let held = kinds.any(|kind| kind["kind"] == "fib-source" && kind["present"] == 1);
            if held { Ok(()) } else { Err(vpp.to_string()) }
        });
        node.kill();
        node.start();
        tor.await_established("sut4");
        let offered = tor.ask("show protocols all sut4");
        let theirs = offered.split("Neighbor capabilities").nth(1).unwrap_or_default();
        for words in ["Restart recovery", "AF preserved: ipv4"] {
            assert!(theirs.contains(words), "no \"{words}\" in {offered}");
        }
        wait::until("BIRD has refreshed the route", || {
            let route = tor.ask(&format!("show route {} all", interop::OUR_BLOCK4));
            let fresh = tor.ask("show protocols all sut4");
            let settled =
                route.contains(interop::OUR_BLOCK4) && !fresh.contains("Neighbor graceful restart active");
            if settled { Ok(()) } else { Err(fresh) }
        });
        watcher.await_route(interop::OUR_BLOCK4, &["[tor"]);
        assert_eq!(watcher.withdrawals("tor"), 0);
    });
}
