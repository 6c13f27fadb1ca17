//! What becomes of tunnels that IKEv2 protects, as it was measured between two real VPPs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use std::net::Ipv4Addr;

use serde_json::Value;
use vpp_sim::{Sim, SimHandle};
use wire::{Peer, payload_u32};

const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

struct Node {
    sim: SimHandle,
    peer: Peer,
    tunnel: u32,
    _dir: tempfile::TempDir,
}

fn name() -> Vec<u8> {
    let mut name = b"pr_192_0_2_1_to_192_0_2_2".to_vec();
    name.resize(64, 0);
    name
}

fn address(of: Ipv4Addr) -> Vec<u8> {
    [&[0], of.octets().as_slice(), &[0; 12]].concat()
}

impl Node {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sim =
            Sim::builder(dir.path().join("api.sock")).interface("up", &["192.0.2.1/24"]).spawn().unwrap();
        let mut peer = Peer::greeted(sim.socket()).await;
        let none = u32::MAX.to_be_bytes().to_vec();
        let add = [none.clone(), address(LOCAL), address(REMOTE), none, vec![0; 4], vec![0; 3]].concat();
        let answers = peer.ask("ipip_add_tunnel", &add).await;
        let tunnel = payload_u32(&answers[0], 10);
        Self { sim, peer, tunnel, _dir: dir }
    }

    async fn ok(&mut self, message: &str, fields: &[&[u8]]) {
        assert_eq!(self.peer.retval(message, &fields.concat()).await, 0, "{message}");
    }

    async fn profile(&mut self, key: &[u8], initiates: bool) {
        let name = name();
        self.ok("ikev2_profile_add_del", &[&name, &[1]]).await;
        self.ok("ikev2_set_tunnel_interface", &[&name, &self.tunnel.to_be_bytes()]).await;
        let length = (key.len() as u32).to_be_bytes();
        self.ok("ikev2_profile_set_auth", &[&name, &[2, 0], &length, key]).await;
        for (local, id) in [(1, LOCAL), (0, REMOTE)] {
            self.ok("ikev2_profile_set_id", &[&name, &[local, 1], &[0, 0, 0, 4], &id.octets()]).await;
            let (first, last) = (address(Ipv4Addr::UNSPECIFIED), address(Ipv4Addr::BROADCAST));
            let selector: &[&[u8]] = &[&name, &[0; 8], &[local], &[0, 0, 0, 0xff, 0xff], &first, &last];
            self.ok("ikev2_profile_set_ts", selector).await;
        }
        if initiates {
            self.ok("ikev2_set_responder", &[&name, &[0, 0, 0, 1], &address(REMOTE)]).await;
            self.ok("ikev2_initiate_sa_init", &[&name]).await;
        }
    }

    fn profile_is_up(&self) -> bool {
        self.sim.meaning()["ikev2"][0]["up"] == true
    }

    fn tunnel_is(&self) -> Option<bool> {
        let meaning = self.sim.meaning();
        let all = meaning["interfaces"].as_array().unwrap();
        let is_it = |one: &&Value| one["interface"].as_str().unwrap().starts_with("ipip ");
        all.iter().find(is_it).map(|one| one["up"] == true)
    }

    async fn sa_states(&mut self) -> Vec<u32> {
        let answers = self.peer.ask("ikev2_sa_v2_dump", &[]).await;
        answers.iter().map(|answer| payload_u32(answer, 10 + 68)).collect()
    }
}

#[tokio::test]
async fn a_tunnel_comes_up_with_its_association_and_says_so() {
    let mut node = Node::new().await;
    node.ok("want_interface_events", &[&[0, 0, 0, 1, 0, 0, 0, 1]]).await;
    node.profile(b"key", true).await;
    assert_eq!((node.tunnel_is(), node.sa_states().await), (Some(false), vec![]));
    // The other one comes later: VPP goes on trying by itself.
    node.sim.ike_peer(REMOTE, Some(b"key"));
    let event = node.peer.read().await.unwrap();
    assert_eq!((payload_u32(&event, 10), payload_u32(&event, 14)), (node.tunnel, 3));
    assert_eq!((node.tunnel_is(), node.sa_states().await), (Some(true), vec![4]));
    node.sim.ike_peer(REMOTE, None);
    let event = node.peer.read().await.unwrap();
    assert_eq!((payload_u32(&event, 10), payload_u32(&event, 14)), (node.tunnel, 0));
    node.sim.ike_peer(REMOTE, Some(b"key"));
    assert!(node.profile_is_up(), "who initiated begins again by itself");
    let name = name();
    node.ok("ikev2_profile_add_del", &[&name, &[0]]).await;
    assert_eq!(node.tunnel_is(), Some(false), "it goes down with its profile");
}

#[tokio::test]
async fn an_initiator_with_another_key_stays_down_until_it_initiates_anew() {
    let mut node = Node::new().await;
    node.sim.ike_peer(REMOTE, Some(b"other"));
    node.profile(b"key", true).await;
    assert_eq!((node.tunnel_is(), node.sa_states().await), (Some(false), vec![3]));
    let name = name();
    node.ok("ikev2_profile_set_auth", &[&name, &[2, 0], &[0, 0, 0, 5], b"other"]).await;
    assert_eq!(node.tunnel_is(), Some(false));
    node.ok("ikev2_initiate_sa_init", &[&name]).await;
    assert_eq!((node.tunnel_is(), node.sa_states().await), (Some(true), vec![4]));
}

#[tokio::test]
async fn a_peer_that_is_not_believed_takes_the_responders_tunnel_with_it() {
    let mut node = Node::new().await;
    node.profile(b"key", false).await;
    node.sim.ike_peer(REMOTE, Some(b"other"));
    assert_eq!(node.tunnel_is(), None);
    node.sim.ike_peer(REMOTE, Some(b"key"));
    assert!(node.profile_is_up(), "with a tunnel that is not there");
}

#[tokio::test]
async fn somebody_is_left_who_encrypts() {
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::builder(dir.path().join("api.sock")).workers(2).spawn().unwrap();
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(payload_u32(&peer.ask("show_threads", &[]).await[0], 10), 3);
    for (worker, expected) in [(0, 0), (1, 0), (2, -7)] {
        assert_eq!(peer.retval("crypto_sw_scheduler_set_worker", &[0, 0, 0, worker, 0]).await, expected);
    }
    assert_eq!(sim.meaning()["crypto"]["workers"], serde_json::json!([false, false]));
}
