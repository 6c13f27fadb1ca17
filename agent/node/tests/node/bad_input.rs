//! Bad input: reported with its place, and nothing else suffers.

use serde_json::Value;

use crate::lab::{Lab, pool, run, until};

/// Waits for a condition about this object, and returns it.
async fn condition(lab: &Lab, kind: &str, name: &str) -> Value {
    until(&format!("a condition about {kind} {name}"), || async {
        let vpp = lab.try_ask("agent.sock", &["vpp"]).await?;
        let about = |condition: &&Value| {
            condition["kind"] == kind && condition["name"].as_str().unwrap().ends_with(name)
        };
        vpp["conditions"].as_array().into_iter().flatten().find(about).cloned().ok_or_else(|| vpp.to_string())
    })
    .await
}

async fn no_conditions(lab: &Lab) {
    until("no conditions", || async {
        let vpp = lab.try_ask("agent.sock", &["vpp"]).await?;
        if vpp["conditions"] == Value::Array(vec![]) { Ok(()) } else { Err(vpp.to_string()) }
    })
    .await;
}

#[tokio::test]
async fn bad_manifests_are_named_and_their_last_good_version_stays() {
    let lab = Lab::new();
    let _sim = lab.sim();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    lab.heard(&["10.244.1.0/26"]).await;
    no_conditions(&lab).await;

    // An unknown field.
    lab.manifest("peer.yaml", &lab.peer_manifest("  keepAliveTime: 5s\n"));
    let found = condition(&lab, "BGPPeer", "tor").await;
    assert!(found["file"].as_str().unwrap().ends_with("manifests/peer.yaml"), "{found}");
    assert_eq!((&found["line"], &found["field"]), (&8.into(), &"spec.keepAliveTime".into()));
    assert_eq!(found["reason"], "unknown field; did you mean \"keepaliveTime\"?");
    assert_eq!(found["remedy"], "its last good version stays in force");

    // A bad address.
    lab.manifest("peer.yaml", &lab.peer_manifest("").replace("127.77.0.2:", "127.77.0.2.3:"));
    let found = until("the new condition", || async {
        let found = condition(&lab, "BGPPeer", "tor").await;
        if found["field"] == "spec.peerIP" { Ok(found) } else { Err(found.to_string()) }
    })
    .await;
    assert_eq!(found["line"], 6);

    // No YAML at all.
    lab.manifest("pools.yaml", "kind: [IPPool\n");
    let found = condition(&lab, "file", "pools.yaml").await;
    assert_eq!(found["remedy"], "its last good content stays in force");

    // The same object twice.
    lab.manifest("more.yaml", &pool("tunnelled", "10.246.0.0/16", "Never"));
    lab.manifest(
        "pools.yaml",
        &(pool("plain", "10.244.0.0/16", "Never") + &pool("tunnelled", "10.245.0.0/16", "Always")),
    );
    let found = condition(&lab, "IPPool", "tunnelled").await;
    assert!(found["reason"].as_str().unwrap().contains("already given by"), "{found}");

    // All the while nothing happened to what was good.
    lab.heard(&["10.244.1.0/26"]).await;
    let peer = lab.established("agent.sock").await;
    assert_eq!(peer["established-transitions"], 1, "{peer}");
    let text = lab.show("agent.sock", &["vpp"]).await;
    assert!(
        text.contains("Configuration:") && text.contains("peer.yaml:6: BGPPeer tor spec.peerIP:"),
        "{text}"
    );

    // Put right, everything is forgotten.
    lab.manifest("peer.yaml", &lab.peer_manifest(""));
    std::fs::remove_file(lab.path("manifests/more.yaml")).unwrap();
    no_conditions(&lab).await;
    assert_eq!(lab.established("agent.sock").await["established-transitions"], 1);
}

#[tokio::test]
async fn bad_settings_end_the_agent_with_every_mistake() {
    let lab = Lab::new();
    lab.write("agent.yaml", "node: a\ndatastor: directory:/m\nvpp: { sokcet: /x, loss-grace: long }\n");
    let config = lab.path("agent.yaml");
    let output = run(&["agent", "--config", config.to_str().unwrap()]).await;
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].ends_with("agent.yaml:2: datastor: unknown field; did you mean \"datastore\"?"),
        "{text}"
    );
    assert!(
        lines[1].ends_with("agent.yaml:3: vpp.sokcet: unknown field; did you mean \"socket\"?"),
        "{text}"
    );
    assert!(lines[2].contains("agent.yaml:3: vpp.loss-grace: must be a time"), "{text}");
}

#[tokio::test]
async fn questions_that_make_no_sense_are_answered() {
    let lab = Lab::new();
    let _speaker = lab.speaker().await;
    let socket = lab.path("speaker.sock");
    let socket = socket.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["routes", "loc-rip", "--socket", socket], 2, "did you mean \"loc-rib\"?"),
        (
            &["routes", "adj-rib-in", "--neighbor", "127.0.0.9", "--socket", socket],
            1,
            "no neighbor 127.0.0.9",
        ),
        (&["vpp", "--socket", socket], 1, "has no VPP"),
        (
            &["peers", "--socket", "/nonexistent.sock"],
            1,
            "is `peregrine agent` or `peregrine speaker` running",
        ),
        (
            &["vpp-sim", "--show", "/nonexistent.sock"],
            1,
            "is a `peregrine vpp-sim` running that was started with --control /nonexistent.sock?",
        ),
    ];
    for (words, code, expected) in cases {
        let output = run(words).await;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.contains(expected), "{words:?}: {text}");
    }
}
