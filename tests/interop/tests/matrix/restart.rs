//! Graceful restart in both roles, by SIGKILL: neither end's death may be noticed by a third one, which counts every
//! withdrawal that it ever hears.
//!
//! ```text
//! ours ───── theirs
//!   └─ watcher ─┘
//! ```

use interop::daemon::{Daemon, Kind, Neighbour};
use interop::{OUR_IPV4, PEER_IPV4, PEER_ROUTE4};
use serde_json::json;
use test_support::bird::Bird;
use test_support::lab::Lab;
use test_support::speaker::Speaker;
use test_support::wait;

use crate::pair::{OUR_ASN, OUR_ROUTE4, Pair, head, neighbor, settings};

const WATCHER: &str = "192.0.2.3";
const WATCHER_ASN: u32 = 65_030;

struct Scene {
    pair: Pair,
    watcher: Bird,
    daemon: Daemon,
    file: String,
}

impl Scene {
    fn new(lab: &Lab, kind: Kind, restart_time: u16) -> Self {
        let pair = Pair::new(lab);
        let host = lab.host("watcher", &[&format!("{WATCHER}/24")]);
        let mut config = format!("log stderr all;\nrouter id {WATCHER};\nprotocol device {{ }}\n");
        for (name, address, asn) in [("ours", OUR_IPV4, OUR_ASN), ("theirs", PEER_IPV4, kind.asn())] {
            config += &format!(
                "protocol bgp {name} {{ local {WATCHER} as {WATCHER_ASN}; neighbor {address} as {asn};\n  \
                 connect delay time 1; connect retry time 1; error wait time 1, 2;\n  \
                 ipv4 {{ import all; export none; }}; }}\n"
            );
        }
        let watcher = Bird::start(&host, &config);
        let mut settings = settings(kind);
        settings.restart_time = Some(restart_time);
        settings.neighbours.push(Neighbour::new(WATCHER, WATCHER_ASN));
        let daemon = Daemon::start(kind, &pair.theirs, settings);
        let file = head("graceful-restart: { restart-time: 60, forwarding-preserved: true }\n")
            + &neighbor(PEER_IPV4, kind.asn(), "")
            + &neighbor(interop::PEER_IPV6, kind.asn(), "")
            + &neighbor(WATCHER, WATCHER_ASN, "");
        Self { pair, watcher, daemon, file }
    }

    /// The session is up, the daemon's route is there, and nothing is stale.
    #[track_caller]
    fn await_settled(&self, speaker: &Speaker) {
        self.daemon.await_established(OUR_IPV4);
        speaker.await_peer(PEER_IPV4, "is up and nothing is stale", |peer| {
            peer["session-state"] == "established"
                && peer["graceful-restart"]["stale-families"].is_null()
                && peer["families"][0]["accepted"].as_u64() >= Some(1)
        });
    }

    /// Kills the daemon, whose routes we keep then.
    #[track_caller]
    fn lose_daemon(&mut self, speaker: &Speaker) {
        self.daemon.kill();
        speaker.await_peer(PEER_IPV4, "is away and its routes are kept", |peer| {
            peer["session-state"] != "established"
                && peer["graceful-restart"]["stale-families"] == json!(["ipv4-unicast"])
        });
    }
}

/// The daemon dies and returns: we keep its routes, and who is behind us hears nothing.
pub(crate) fn they_restart(lab: &Lab, kind: Kind) {
    let mut scene = Scene::new(lab, kind, 60);
    let speaker = Speaker::start(&scene.pair.ours, &scene.file);
    scene.await_settled(&speaker);
    scene.watcher.await_route(PEER_ROUTE4, &["[ours"]);
    scene.lose_daemon(&speaker);
    let route = speaker.await_route("ipv4-unicast", PEER_ROUTE4);
    assert_eq!(route["paths"][0]["stale"], true, "{route}");
    scene.daemon.recover();
    scene.await_settled(&speaker);
    scene.watcher.await_route(PEER_ROUTE4, &["[ours"]);
    assert_eq!(scene.watcher.withdrawals("ours"), 0);
}

/// The daemon dies and is away for too long: its routes go.
pub(crate) fn restart_time(lab: &Lab, kind: Kind) {
    let mut scene = Scene::new(lab, kind, 3);
    let speaker = Speaker::start(&scene.pair.ours, &scene.file);
    scene.await_settled(&speaker);
    scene.watcher.await_route(PEER_ROUTE4, &["[ours"]);
    scene.lose_daemon(&speaker);
    speaker.await_no_route("ipv4-unicast", PEER_ROUTE4);
    scene.watcher.await_no_route(PEER_ROUTE4);
    assert_eq!(scene.watcher.withdrawals("ours"), 1);
}

/// We die and return: the daemon keeps our routes, and who is behind it hears nothing.
pub(crate) fn we_restart(lab: &Lab, kind: Kind) {
    let scene = Scene::new(lab, kind, 60);
    let mut speaker = Speaker::start(&scene.pair.ours, &scene.file);
    scene.await_settled(&speaker);
    scene.watcher.await_route(OUR_ROUTE4, &["[theirs"]);
    for how in ["SIGKILL", "SIGTERM"] {
        if how == "SIGKILL" {
            speaker.kill();
        } else {
            speaker.terminate();
        }
        // It has noticed, and keeps the route.
        wait::until(&format!("{} has lost the session", scene.daemon.kind().name()), || {
            scene.daemon.route(OUR_ROUTE4)?;
            if scene.daemon.is_established(OUR_IPV4)? { Err("established".to_owned()) } else { Ok(()) }
        });
        speaker = Speaker::start(&scene.pair.ours, &scene.file);
        scene.await_settled(&speaker);
        scene.watcher.await_route(OUR_ROUTE4, &["[theirs"]);
        wait::until(&format!("all is said again after {how}"), || {
            let peer = speaker.peer(PEER_IPV4)?;
            if peer["families"][0]["advertised"].as_u64() >= Some(1) { Ok(()) } else { Err(peer.to_string()) }
        });
    }
    assert_eq!(scene.watcher.withdrawals("theirs"), 0);
}
