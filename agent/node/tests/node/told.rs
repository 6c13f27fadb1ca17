//! What the log says when something doesn't work: once, with the reason, and when it is over.

use vpp_sim::Fault;

use crate::lab::{Lab, until};

#[tokio::test]
async fn what_vpp_refuses_is_told_once_and_when_it_is_over() {
    let lab = Lab::new();
    let sim = lab.sim();
    sim.fault(Fault::Refuse { message: Some("ip_route_add_del_v2".into()), retval: -107, times: None });
    let _speaker = lab.speaker().await;
    let agent = lab.agent().await;
    until("the log says what is blocked", || async {
        let log = agent.log();
        if log.contains("vpp: blocked: route ") { Ok(()) } else { Err(log) }
    })
    .await;
    let log = agent.log();
    assert!(!log.contains("vpp holds what it should"), "{log}");
    let text = lab.show("agent.sock", &["vpp"]).await;
    assert!(text.lines().next().unwrap().contains("objects are blocked; see below"), "{text}");
    assert!(text.contains("waits for "), "{text}");
    assert!(lab.health("/readiness").await.0.contains("503"));

    sim.clear_faults();
    until("the log says that it is over", || async {
        let log = agent.log();
        if log.contains("nothing is blocked any more by: VPP answered -107") { Ok(()) } else { Err(log) }
    })
    .await;
    lab.converged().await;
    let log = agent.log();
    assert_eq!(log.matches("vpp: blocked: ").count(), 1, "once, however often it was tried again: {log}");
    assert_eq!(log.matches("nothing is blocked any more").count(), 1, "{log}");
}

#[tokio::test]
async fn a_session_that_never_comes_up_says_why() {
    let lab = Lab::new();
    let _sim = lab.sim();
    // Another AS number than the one that the agent expects.
    let file = lab.speaker_file("", &["203.0.113.0/24"]).replace("asn: 65000", "asn: 65009");
    lab.write("speaker.yaml", &file);
    let speaker = lab.speaker().await;
    let agent = lab.agent().await;
    for process in [&agent, &speaker] {
        until("the log says why", || async {
            let log = process.log();
            let told =
                log.lines().any(|line| line.contains("WARN") && line.contains("no session; trying on"));
            if told { Ok(()) } else { Err(log) }
        })
        .await;
    }
}
