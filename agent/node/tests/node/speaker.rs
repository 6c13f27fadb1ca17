//! `peregrine speaker` alone: its file, and reading it again.

use bgp_wire::mrt::Body;
use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{Lab, run, until};

#[tokio::test]
async fn reading_the_file_again_touches_only_what_changed() {
    let lab = Lab::new();
    let _sim = lab.sim();
    let speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    lab.established("speaker.sock").await;
    lab.heard(&["10.244.1.0/26"]).await;

    // A neighbour that can't run is listed, one that can is added, a route comes and one goes.
    lab.write(
        "speaker.yaml",
        &lab.speaker_file(
            "  - { address: 127.77.0.9, asn: 65009, passive: true }\n  - { address: 127.77.0.8, asn: 65008, ttl-security: 256 }\n",
            &["203.0.113.0/24", "198.51.100.0/24"],
        ),
    );
    speaker.signal(Signal::HUP);
    let peers = until("three neighbours", || async {
        let peers = lab.try_ask("speaker.sock", &["peers"]).await?;
        if peers.as_array().unwrap().len() == 3 { Ok(peers) } else { Err(peers.to_string()) }
    })
    .await;
    let refused = peers.as_array().unwrap().iter().find(|peer| peer["peer-address"] == "127.77.0.8").unwrap();
    assert_eq!(refused["session-state"], "unknown");
    assert!(
        refused["state-reason"].as_str().unwrap().contains("neighbors[2].ttl-security: must be hops"),
        "{refused}"
    );
    until("the new routes arrive", || async {
        let routes = lab.try_ask("agent.sock", &["routes"]).await?.to_string();
        let good = routes.contains("198.51.100.0/24") && !routes.contains("10.245.7.0/26");
        if good { Ok(()) } else { Err(routes) }
    })
    .await;

    // A file with a mistake changes nothing.
    lab.write("speaker.yaml", &lab.speaker_file("originate: []\n", &["192.0.2.0/24"]));
    speaker.signal(Signal::HUP);
    until("the mistake is logged", || async {
        let log = speaker.log();
        let told = log.contains("speaker.yaml:")
            && log.contains("appears twice")
            && log.contains("configuration in force stays");
        if told { Ok(()) } else { Err(log) }
    })
    .await;
    let routes = lab.ask("speaker.sock", &["routes"]).await.to_string();
    assert!(routes.contains("198.51.100.0/24") && !routes.contains("192.0.2.0/24"), "{routes}");

    // The session never noticed.
    let peer = lab.established("speaker.sock").await;
    assert_eq!(peer["established-transitions"], 1, "{peer}");
}

#[tokio::test]
async fn a_file_with_mistakes_is_refused_with_all_of_them() {
    let lab = Lab::new();
    lab.write("speaker.yaml", "asn: 0\nrouterid: 192.0.2.1\nneighbors: {}\n");
    let config = lab.path("speaker.yaml");
    let output = run(&["speaker", "--config", config.to_str().unwrap()]).await;
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let expected = [
        "speaker.yaml:1: asn: must be an AS number above 0, such as 65000 or 6.10, not \"0\"",
        "speaker.yaml:1: router-id: is required",
        "speaker.yaml:2: routerid: unknown field; did you mean \"router-id\"?",
        "speaker.yaml:3: neighbors: must be a list, not a map",
    ];
    for line in expected {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn many_routes_stream_through_a_closed_pipe() {
    let lab = Lab::new();
    let prefixes: Vec<String> =
        (0..3000).map(|index| format!("10.{}.{}.0/24", index / 250, index % 250)).collect();
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    lab.write("speaker.yaml", &lab.speaker_file("", &prefixes));
    let _speaker = lab.speaker().await;
    let routes = lab.ask("speaker.sock", &["routes"]).await;
    assert_eq!(routes.as_array().unwrap().len(), 3000);
    let paths = |route: &Value| route["paths"].as_array().unwrap().len();
    assert!(routes.as_array().unwrap().iter().all(|route| paths(route) == 1));
    let text = lab.show("speaker.sock", &["routes"]).await;
    assert_eq!(text.lines().count(), 3001);

    let socket = lab.path("speaker.sock");
    let status = tokio::task::spawn_blocking(move || {
        let command = format!(
            "set -o pipefail; {} routes --socket {} | head -n 1",
            env!("CARGO_BIN_EXE_peregrine"),
            socket.display()
        );
        std::process::Command::new("bash").args(["-c", &command]).output().unwrap()
    })
    .await
    .unwrap();
    assert!(status.status.success(), "{status:?}");
    assert_eq!(status.stderr, b"");
}

/// What `peregrine routes --mrt` writes: destinations, each with the peer of each path and its AS path.
fn recorded(file: &std::path::Path) -> Vec<(String, Vec<(String, String)>)> {
    let octets = std::fs::read(file).unwrap();
    let mut peers = Vec::new();
    let mut routes = Vec::new();
    for record in bgp_wire::mrt::Reader::new(&octets) {
        match record.unwrap().body {
            Body::PeerIndex(index) => peers.extend(index.peers()),
            Body::Rib(rib) => {
                let path = |entry: bgp_wire::mrt::Entry<'_>| {
                    let peer = peers[usize::from(entry.peer)];
                    let decoded = entry.attrs.decode().unwrap();
                    assert_eq!(decoded.treat_as_withdraw, None);
                    let path = bgp_wire::attr::Canonical(&decoded.canonical).as_path().to_string();
                    (format!("{} {}", peer.address, peer.asn), path)
                };
                routes.push((rib.nlri.to_string(), rib.entries().map(path).collect()));
            }
            Body::OldEntry(_) | Body::Message(_) | Body::StateChange(_) | Body::Other { .. } => panic!(),
        }
    }
    routes.sort();
    routes
}

#[tokio::test]
async fn a_table_goes_into_a_file() {
    let lab = Lab::new();
    let _sim = lab.sim();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    lab.established("speaker.sock").await;
    lab.heard(&["10.244.1.0/26"]).await;
    let file = lab.path("table.mrt");
    let socket = lab.path("speaker.sock");
    let (name, socket) = (file.to_str().unwrap(), socket.to_str().unwrap());
    let output = run(&["routes", "--mrt", name, "--socket", socket]).await;
    assert!(output.status.success(), "{output:?}");
    let own = |prefix: &str| (prefix.to_owned(), vec![("0.0.0.0 65000".to_owned(), String::new())]);
    let theirs =
        |prefix: &str| (prefix.to_owned(), vec![("127.77.0.1 64512".to_owned(), "64512".to_owned())]);
    assert_eq!(recorded(&file), [theirs("10.244.1.0/26"), own("10.245.7.0/26"), own("203.0.113.0/24")]);
    // What a neighbour was told is the path as it was sent.
    let output = run(&["routes", "adj-rib-out", "--mrt", name, "--socket", socket]).await;
    assert!(output.status.success(), "{output:?}");
    let told = |prefix: &str| (prefix.to_owned(), vec![("127.77.0.1 64512".to_owned(), "65000".to_owned())]);
    assert_eq!(recorded(&file), [told("10.245.7.0/26"), told("203.0.113.0/24")]);
    // A question that is refused leaves the file as it is, and nothing beside it.
    let output =
        run(&["routes", "adj-rib-in", "--neighbor", "192.0.2.9", "--mrt", name, "--socket", socket]).await;
    assert!(!output.status.success());
    assert_eq!(recorded(&file).len(), 2);
    let names = std::fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(|name| name.to_string_lossy().contains("mrt")).count(), 1);
}

/// `peregrine clear` and `peregrine peer` on a running process, the agent's as well as the speaker's.
#[tokio::test]
async fn operators_clear_stop_and_start_neighbours() {
    let lab = Lab::new();
    let _sim = lab.sim();
    let speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    let first = lab.established("speaker.sock").await;
    let whom = first["peer-address"].as_str().unwrap().to_owned();
    let port = first["peer-port"].as_u64().unwrap();
    lab.heard(&["10.244.1.0/26"]).await;
    let only = |answer: &Value| {
        let done = &answer.as_array().unwrap()[0];
        (done["result"].as_str().unwrap().to_owned(), done["detail"].as_str().unwrap().to_owned())
    };

    // Softly, and nobody notices but the counters.
    for words in
        [vec!["clear", "all"], vec!["clear", &whom, "--soft", "in"], vec!["clear", &whom, "--soft", "out"]]
    {
        let (result, detail) = only(&lab.ask("speaker.sock", &words).await);
        assert_eq!(result, "applied", "{words:?}: {detail}");
    }
    let peer = lab.established("speaker.sock").await;
    assert_eq!(peer["established-transitions"], 1, "{peer}");
    // By a reset.
    let (result, _) = only(&lab.ask("speaker.sock", &["clear", &format!("{whom}:{port}"), "--hard"]).await);
    assert_eq!(result, "session-reset");
    until("the session is back", || async {
        let peer = lab.established("speaker.sock").await;
        if peer["established-transitions"] == 2 { Ok(()) } else { Err(peer.to_string()) }
    })
    .await;

    // What can't be is answered in words.
    for (words, expected) in [
        (vec!["clear", "192.0.2.77"], format!("no neighbor \"192.0.2.77\"; there are {whom}:{port}")),
        (
            vec!["peer", "disable", &whom, "--message", &"x".repeat(256)],
            "the text has 256 octets; at most 255 fit".into(),
        ),
        (vec!["clear", &whom, "--soft", "in", "--hard"], "cannot be used with".into()),
    ] {
        let error = lab.try_ask("speaker.sock", &words).await.unwrap_err();
        assert!(error.contains(&expected), "{words:?}: {error}");
    }

    // Stopped, with a word. A file that is read again changes nothing about it.
    let (result, _) =
        only(&lab.ask("speaker.sock", &["peer", "disable", &whom, "--message", "Umbau, bis später"]).await);
    assert_eq!(result, "session-reset");
    lab.write("speaker.yaml", &lab.speaker_file("", &["198.51.100.0/24"]));
    speaker.signal(Signal::HUP);
    until("the file is read again", || async {
        let log = speaker.log();
        if log.contains("configuration read again") { Ok(()) } else { Err(log) }
    })
    .await;
    let peers = lab.ask("speaker.sock", &["peers"]).await;
    let peer = &peers.as_array().unwrap()[0];
    assert_eq!((&peer["session-state"], &peer["disabled"]), (&"idle".into(), &true.into()), "{peer}");
    assert_eq!(peer["state-reason"], "administratively stopped: Umbau, bis später");
    let told = until("the agent knows why", || async {
        let peers = lab.try_ask("agent.sock", &["peers"]).await?;
        let told = peers.as_array().unwrap()[0]["last-error"].as_str().unwrap_or_default().to_owned();
        if told.contains("Umbau, bis später") { Ok(told) } else { Err(told) }
    })
    .await;
    assert!(told.contains("Administrative Shutdown"), "{told}");
    let error = lab.try_ask("speaker.sock", &["clear", &whom, "--hard"]).await.unwrap_err();
    assert!(error.contains("is disabled"), "{error}");
    let shown = lab.show("speaker.sock", &["peer", "enable", "all"]).await;
    assert!(shown.contains("started"), "{shown}");
    lab.established("speaker.sock").await;

    // The agent's neighbours are left in the same way.
    let agents = lab.established("agent.sock").await;
    let whom = agents["peer-address"].as_str().unwrap();
    lab.ask("agent.sock", &["peer", "gshut", whom]).await;
    until("the route is marked", || async {
        let routes = lab.try_ask("speaker.sock", &["routes", "10.244.1.0/26"]).await?;
        let path = &routes[0]["paths"][0];
        let marked = path["communities"].to_string().contains("graceful-shutdown");
        if marked && path["local-pref"] == 0 { Ok(()) } else { Err(routes.to_string()) }
    })
    .await;
    let shown = lab.show("agent.sock", &["peers"]).await;
    assert!(shown.contains("graceful shutdown"), "{shown}");
    // Another BGPPeer for the same session changes nothing about that.
    lab.manifest("peer.yaml", &lab.peer_manifest("  keepaliveTime: 20s\n"));
    until("the change is in force", || async {
        let peers = lab.try_ask("agent.sock", &["peers"]).await?;
        let peer = &peers[0];
        let there = peer["configured-keep-alive-time-seconds"] == 20 && peer["graceful-shutdown"] == true;
        if there { Ok(()) } else { Err(peer.to_string()) }
    })
    .await;
    lab.ask("agent.sock", &["peer", "enable", whom]).await;
    until("the mark is off", || async {
        let routes = lab.try_ask("speaker.sock", &["routes", "10.244.1.0/26"]).await?;
        let marked = routes.to_string().contains("graceful-shutdown");
        if marked { Err(routes.to_string()) } else { Ok(()) }
    })
    .await;
}

/// The AS number becomes that of a neighbour which the same file removes.
#[tokio::test]
async fn another_as_number_is_in_force_after_one_reload() {
    let lab = Lab::new();
    let file = |asn: u32, neighbor: &str| {
        format!(
            "asn: {asn}\nrouter-id: 127.77.0.2\napi: {}\nneighbors:\n  - {{ {neighbor}, passive: true }}\n",
            lab.path("speaker.sock").display()
        )
    };
    lab.write("speaker.yaml", &file(65000, "address: 127.77.0.3, asn: 65010, role: customer"));
    let speaker = lab.speaker().await;
    lab.write("speaker.yaml", &file(65010, "address: 127.77.0.4, asn: 65010"));
    speaker.signal(Signal::HUP);
    until("the file is read again", || async {
        let log = speaker.log();
        if log.contains("configuration read again") { Ok(()) } else { Err(log) }
    })
    .await;
    let log = speaker.log();
    assert!(!log.contains("ERROR") && !log.contains("not all of it"), "{log}");
    let peers = lab.ask("speaker.sock", &["peers"]).await;
    let peers = peers.as_array().unwrap();
    assert_eq!(peers.len(), 1, "{peers:?}");
    assert_eq!((&peers[0]["peer-address"], &peers[0]["local-asn"]), (&"127.77.0.4".into(), &65010.into()));
}
