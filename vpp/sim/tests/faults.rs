//! Faults on request, restarts, and the control socket.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use vpp_sim::{Fault, Sim, SimHandle, When, control};
use wire::Peer;

fn sim() -> (TempDir, SimHandle) {
    let dir = tempfile::tempdir().unwrap();
    let sim =
        Sim::builder(dir.path().join("api.sock")).interface("host-eth0", &["192.0.2.1/24"]).spawn().unwrap();
    (dir, sim)
}

fn table(id: u32) -> Vec<u8> {
    [vec![1], id.to_be_bytes().to_vec(), vec![0; 65]].concat()
}

fn has_table(sim: &SimHandle, id: u32) -> bool {
    sim.meaning()["tables"].as_array().unwrap().iter().any(|table| table["table_id"] == id)
}

#[tokio::test]
async fn a_request_is_refused_as_often_as_asked_for() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    sim.fault(Fault::Refuse { message: Some("ip_table_add_del".into()), retval: -107, times: Some(1) });
    assert_eq!(peer.retval("ip_table_add_del", &table(5)).await, -107);
    assert!(!has_table(&sim, 5));
    assert_eq!(peer.retval("ip_table_add_del", &table(5)).await, 0);
    assert!(has_table(&sim, 5) && sim.faults().is_empty());

    sim.fault(Fault::Refuse { message: None, retval: -1, times: None });
    let refused = peer.ask("create_loopback", &[0; 6]).await;
    assert_eq!(refused[0][6..], [0xff; 8], "retval and index");
    assert_eq!(peer.ask("ip_table_dump", &[]).await.len(), 0, "a dump has no retval to refuse with");
    sim.clear_faults();
    assert_eq!(peer.ask("ip_table_dump", &[]).await.len(), 3);
}

#[tokio::test]
async fn a_connection_is_dropped_before_or_after_its_request() {
    let (_dir, sim) = sim();
    for (when, done) in [(When::Before, false), (When::After, true)] {
        let id = if done { 6 } else { 5 };
        let mut bystander = Peer::greeted(sim.socket()).await;
        let mut peer = Peer::greeted(sim.socket()).await;
        sim.fault(Fault::Drop { message: Some("ip_table_add_del".into()), nth: 2, when });
        assert_eq!(peer.retval("ip_table_add_del", &table(4)).await, 0);
        let request = peer.request("ip_table_add_del", 1, &table(id));
        peer.send(&request).await;
        assert!(peer.read().await.is_none(), "closed without an answer");
        assert_eq!(has_table(&sim, id), done);
        assert!(bystander.read_to_ping().await.is_empty(), "the process lives");
    }
}

#[tokio::test]
async fn a_restart_loses_everything_but_what_it_was_started_with() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    let mut other = Peer::greeted(sim.socket()).await;
    let first = sim.meaning();
    assert_eq!(peer.retval("ip_table_add_del", &table(5)).await, 0);
    assert_ne!(sim.meaning(), first);
    sim.fault(Fault::Restart { message: None, nth: 1, when: When::After });
    let request = peer.request("ip_table_add_del", 1, &table(6));
    peer.send(&request).await;
    assert!(peer.read().await.is_none() && other.read().await.is_none());
    assert_eq!(sim.meaning(), first);
    assert_eq!(sim.stats().generation, 2);
    let again = Peer::greeted(sim.socket()).await;
    assert_ne!(again.id("ip_table_add_del"), peer.id("ip_table_add_del"), "ids belong to the process");
}

#[tokio::test]
async fn silence_and_delay() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    sim.fault(Fault::Silence { message: Some("show_version".into()), times: Some(1) });
    assert!(peer.ask("show_version", &[]).await.is_empty());
    assert_eq!(peer.ask("show_version", &[]).await.len(), 1);

    let start = tokio::time::Instant::now();
    sim.fault(Fault::Delay { message: Some("show_version".into()), millis: 30, times: Some(1) });
    assert_eq!(peer.ask("show_version", &[]).await.len(), 1);
    assert!(start.elapsed() >= std::time::Duration::from_millis(30));
}

#[tokio::test]
async fn a_hung_process_answers_when_it_goes_on() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    sim.hang(true);
    let request = peer.request("ip_table_add_del", 1, &table(5));
    peer.send(&request).await;
    let answer = tokio::time::timeout(std::time::Duration::from_millis(20), peer.read()).await;
    assert!(answer.is_err() && !has_table(&sim, 5));
    sim.hang(false);
    assert_eq!(wire::payload_u32(&peer.read().await.unwrap(), 6), 0);
}

#[tokio::test]
async fn a_hung_process_can_be_ended() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    sim.hang(true);
    sim.close().await;
    assert!(peer.read().await.is_none());
}

#[tokio::test]
async fn a_process_starts_again_after_its_death_when_asked_to() {
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::builder(dir.path().join("api.sock")).respawn(true).spawn().unwrap();
    let mut peer = Peer::greeted(sim.socket()).await;
    let mut endless = [0; 17];
    endless[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    peer.send_raw(&endless).await;
    assert!(peer.read().await.is_none());
    let stats = sim.until(|stats| stats.generation == 2).await;
    assert!(stats.alive && sim.death().is_some());
    assert!(Peer::greeted(sim.socket()).await.read_to_ping().await.is_empty());
}

#[tokio::test]
async fn a_process_that_is_down_has_no_socket() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    sim.down().await;
    assert!(peer.read().await.is_none());
    assert!(UnixStream::connect(sim.socket()).await.is_err());
    sim.up().await;
    assert!(Peer::greeted(sim.socket()).await.read_to_ping().await.is_empty());
    let socket = sim.socket().to_owned();
    sim.close().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn a_hidden_message_is_not_in_the_table_and_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    let sim =
        Sim::builder(dir.path().join("api.sock")).without("feature_gso_enable_disable").spawn().unwrap();
    let peer = Peer::greeted(sim.socket()).await;
    assert!(!peer.table.keys().any(|name| name.starts_with("feature_gso_enable_disable_5")));
    assert!(peer.table.keys().any(|name| name.starts_with("ip_table_add_del_0")));
}

async fn http(path: &std::path::Path, method: &str, target: &str, body: &str) -> (u16, Value) {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn the_control_socket_shows_and_steers() {
    let (dir, sim) = sim();
    let path = dir.path().join("control.sock");
    let socket = control::serve(sim.control(), &path).unwrap();
    let (status, state) = http(&path, "GET", "/v1/state", "").await;
    assert_eq!((status, &state["interfaces"][1]["interface"]), (200, &json!("host-eth0")));
    assert_eq!(http(&path, "GET", "/v1/meaning", "").await, (200, sim.meaning()));
    let fault = json!({ "fault": "refuse", "message": "show_version", "retval": -9 });
    assert_eq!(http(&path, "POST", "/v1/faults", &fault.to_string()).await, (200, json!([fault])));
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(peer.retval("show_version", &[]).await, -9);
    assert_eq!(http(&path, "DELETE", "/v1/faults", "").await, (200, json!([])));
    let (status, answer) = http(&path, "POST", "/v1/faults", r#"{"fault":"nonsense"}"#).await;
    assert!(status == 400 && answer["error"].is_string());
    assert_eq!(http(&path, "POST", "/v1/restart", "").await.1["generation"], 2);
    assert_eq!(http(&path, "POST", "/v1/down", "").await.1["alive"], false);
    assert_eq!(http(&path, "GET", "/v1/state", "").await.1["alive"], false);
    assert_eq!(http(&path, "POST", "/v1/up", "").await.1["alive"], true);
    assert_eq!(http(&path, "GET", "/v1/nothing", "").await.0, 404);
    drop(socket);
    assert!(!path.exists());
}
