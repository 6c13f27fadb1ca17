//! The whole road, and what happens when a part of it goes away.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{Lab, block, exists, until};

/// Whether VPP holds routes to these prefixes, and no other learnt ones.
fn has_routes(meaning: &Value, prefixes: &[&str]) -> bool {
    let text = meaning.to_string();
    prefixes.iter().all(|prefix| text.contains(prefix))
}

#[tokio::test]
async fn routes_reach_vpp_and_blocks_reach_the_neighbour() {
    let lab = Lab::new();
    let sim = lab.sim();
    let _speaker = lab.speaker().await;
    let mut agent = lab.agent().await;

    lab.established("agent.sock").await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    let meaning = sim
        .control()
        .until_meaning(|meaning| has_routes(meaning, &["203.0.113.0/24", "10.245.7.0/26"]))
        .await;

    for path in ["/liveness", "/readiness"] {
        assert_eq!(lab.health(path).await.0, "HTTP/1.1 200 OK");
    }

    // The commands show it, to programs and to people.
    let route = lab.ask("agent.sock", &["routes", "loc-rib", "ipv4-unicast", "10.245.7.0/26"]).await;
    assert_eq!(route[0]["paths"][0]["next-hop"], "127.77.0.2");
    assert_eq!(route[0]["paths"][0]["as-path"], "65000");
    assert_eq!(route[0]["paths"][0]["best"], true);
    assert_eq!(route[0]["router-asn"], 64512);
    let sent = lab.ask("agent.sock", &["routes", "adj-rib-out", "--neighbor", "127.77.0.2"]).await;
    assert_eq!(sent.as_array().unwrap().len(), 1);
    assert_eq!(sent[0]["prefix"], "10.244.1.0/26");
    for words in [&["peers"][..], &["routes", "all"], &["vpp"]] {
        let text = lab.show("agent.sock", words).await;
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    // Killed and started again, the agent adopts what is there: VPP is asked to change nothing.
    // Offload settings and most of source translation can't be read back, so they are stated again, which changes nothing.
    let changes = |sim: &vpp_sim::SimHandle| {
        let mut carried_out = sim.control().carried_out();
        let unseen = |name: &str| name.starts_with("cnat_") || name.starts_with("feature_");
        carried_out.retain(|name, _| !unseen(name));
        carried_out
            .retain(|name, _| (name.contains("_add") || name.contains("_set_")) && !name.ends_with("_dump"));
        carried_out
    };
    let before = changes(&sim);
    agent.kill().await;
    agent = lab.agent().await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    assert_eq!(sim.control().meaning(), meaning);
    assert_eq!(changes(&sim), before);

    // VPP loses everything and gets it again.
    sim.control().restart();
    sim.control().until_meaning(|now| *now == meaning).await;
    lab.converged().await;

    // Objects come and go while it runs.
    lab.manifest("block.yaml", &(block("10.244.1.0/26") + &block("10.244.2.0/26")));
    lab.heard(&["10.244.1.0/26", "10.244.2.0/26"]).await;
    std::fs::remove_file(lab.path("manifests/block.yaml")).unwrap();
    lab.heard(&[]).await;
    lab.converged().await;

    // Asked to stop, it says goodbye, and VPP keeps what it holds.
    let held = sim.control().meaning();
    agent.signal(Signal::TERM);
    let (status, waited) = agent.end().await;
    assert!(status.success(), "{status}");
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    assert_eq!(sim.control().meaning(), held);
    assert!(!exists(&lab.path("agent.sock")));
    let peer = until("the neighbour is told", || async {
        let peers = lab.try_ask("speaker.sock", &["peers"]).await?;
        if peers[0]["session-state"] == "established" { Err(peers.to_string()) } else { Ok(peers[0].clone()) }
    })
    .await;
    assert!(peer["last-error"].as_str().unwrap().contains("the agent is stopping"), "{peer}");
}

#[tokio::test]
async fn without_vpp_sessions_run_and_own_blocks_wait() {
    let lab = Lab::new();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;

    // VPP has never been there: nothing is promised that can't be kept.
    lab.established("agent.sock").await;
    let vpp = lab.ask("agent.sock", &["vpp"]).await;
    assert_eq!(vpp["state"], "connecting");
    assert_eq!(vpp["converged"], false);
    assert_eq!(lab.health("/liveness").await.0, "HTTP/1.1 200 OK");
    let (line, report) = lab.health("/readiness").await;
    assert_eq!(line, "HTTP/1.1 503 Service Unavailable");
    assert!(report["message"].as_str().unwrap().starts_with("vpp: not connected"), "{report}");
    assert_eq!(lab.health("/status").await.0, "HTTP/1.1 200 OK");
    let routes = lab.ask("agent.sock", &["routes"]).await;
    assert!(routes.to_string().contains("203.0.113.0/24"), "{routes}");
    lab.heard(&[]).await;

    // It comes: everything is put into it, and then announced.
    let sim = lab.sim();
    lab.heard(&["10.244.1.0/26"]).await;
    let meaning = sim.control().meaning();
    assert!(has_routes(&meaning, &["203.0.113.0/24", "10.245.7.0/26"]), "{meaning}");

    // It goes for longer than the grace, and comes back.
    sim.control().down().await;
    lab.heard(&[]).await;
    assert_eq!(lab.established("agent.sock").await["established-transitions"], 1);
    sim.control().up().await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    assert_eq!(sim.control().meaning(), meaning);
}

#[tokio::test]
async fn an_unknown_return_value_is_reported_and_tried_again() {
    let lab = Lab::new();
    let sim = lab.sim();
    let fault =
        vpp_sim::Fault::Refuse { message: Some("ip_route_add_del_v2".into()), retval: -9999, times: None };
    sim.control().fault(fault);
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    until("a blocked object with its reason", || async {
        let vpp = lab.try_ask("agent.sock", &["vpp"]).await?;
        let mut objects = vpp["objects"].as_array().into_iter().flatten();
        let said = objects.any(|object| {
            // Others may be blocked by this one, with a reason of their own.
            object["state"] == "blocked"
                && object["reason"].as_str().is_some_and(|reason| reason.contains("-9999"))
        });
        if said { Ok(()) } else { Err(vpp.to_string()) }
    })
    .await;
    sim.control().clear_faults();
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
}

#[tokio::test]
async fn a_vpp_that_hangs_is_found_out_while_sessions_and_questions_go_on() {
    let lab = Lab::new();
    let sim = lab.sim();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    lab.heard(&["10.244.1.0/26"]).await;
    sim.control().hang(true);
    lab.heard(&[]).await;
    let vpp = lab.ask("agent.sock", &["vpp"]).await;
    assert_eq!(vpp["state"], "connecting", "{vpp}");
    assert!(vpp["last-error"].as_str().unwrap().contains("does not answer"), "{vpp}");
    assert_eq!(lab.established("agent.sock").await["established-transitions"], 1);
    sim.control().hang(false);
    lab.heard(&["10.244.1.0/26"]).await;
}

#[tokio::test]
async fn the_log_level_changes_live_and_a_bad_file_changes_nothing() {
    let lab = Lab::new();
    let _sim = lab.sim();
    let settings = std::fs::read_to_string(lab.path("agent.yaml")).unwrap();
    lab.write("agent.yaml", &format!("{settings}log: {{ level: warn }}\n"));
    let agent = lab.agent().await;
    let logged = |what: &'static str| {
        let log = agent.log();
        async move { if log.contains(what) { Ok(()) } else { Err(log) } }
    };
    assert!(!agent.log().contains("started"), "{}", agent.log());

    lab.write("agent.yaml", "nodes: x\n");
    agent.signal(Signal::HUP);
    until("the mistake is named", || logged("agent.yaml:1: nodes: unknown field; did you mean \"node\"?"))
        .await;
    until("nothing changes", || logged("the settings in force stay")).await;

    lab.write("agent.yaml", &format!("{settings}log: {{ level: info }}\n"));
    agent.signal(Signal::HUP);
    until("the new level is in force", || logged("settings read again")).await;
    assert!(!agent.log().contains("with a restart only"), "{}", agent.log());

    let other = settings.replace("loss-grace: 300ms", "loss-grace: 400ms");
    lab.write("agent.yaml", &format!("{other}log: {{ level: info }}\n"));
    agent.signal(Signal::HUP);
    until("what can't change is named", || logged("vpp.loss-grace")).await;
}
