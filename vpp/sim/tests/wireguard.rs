//! What WireGuard interfaces and peers do, as it was measured on a real VPP.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use std::net::{IpAddr, Ipv4Addr};

use vpp_sim::{Sim, SimHandle};
use wire::{Peer, payload_u32};

const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const NONE: [u8; 4] = [0xff; 4];

struct Node {
    sim: SimHandle,
    peer: Peer,
    _dir: tempfile::TempDir,
}

fn address(of: Ipv4Addr) -> Vec<u8> {
    [&[0], of.octets().as_slice(), &[0; 12]].concat()
}

impl Node {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sim =
            Sim::builder(dir.path().join("api.sock")).interface("up", &["192.0.2.1/24"]).spawn().unwrap();
        let peer = Peer::greeted(sim.socket()).await;
        Self { sim, peer, _dir: dir }
    }

    async fn interface(&mut self, key: u8) -> u32 {
        let fields =
            [&NONE[..], &NONE, &[key; 32], &[0; 32], &51820u16.to_be_bytes(), &address(LOCAL), &[0]].concat();
        let answers = self.peer.ask("wireguard_interface_create", &fields).await;
        assert_eq!(payload_u32(&answers[0], 6), 0);
        payload_u32(&answers[0], 10)
    }

    /// The return value, and the index.
    async fn add(&mut self, interface: u32, key: [u8; 32], allowed: &[Ipv4Addr]) -> (i32, u32) {
        let mut fields =
            [&[0; 4], key.as_slice(), &51820u16.to_be_bytes(), &[0; 2], &[0; 4], &address(REMOTE)].concat();
        fields.extend_from_slice(&interface.to_be_bytes());
        fields.extend_from_slice(&[0, allowed.len() as u8]);
        for net in allowed {
            fields.extend(address(*net));
            fields.push(24);
        }
        let answers = self.peer.ask("wireguard_peer_add", &fields).await;
        (payload_u32(&answers[0], 6) as i32, payload_u32(&answers[0], 10))
    }

    async fn watch(&mut self) -> i32 {
        self.peer
            .retval("want_wireguard_peer_events", &[&NONE[..], &NONE, &[0, 0, 0, 1], &[0; 4]].concat())
            .await
    }

    fn peers(&self) -> usize {
        self.sim.meaning()["wireguard_peers"].as_array().map_or(0, Vec::len)
    }
}

const PODS: &[Ipv4Addr] = &[Ipv4Addr::new(10, 244, 2, 0)];

#[tokio::test]
async fn two_interfaces_may_have_the_same_port_and_address_and_take_their_peers_along() {
    let mut node = Node::new().await;
    let (one, other) = (node.interface(1).await, node.interface(1).await);
    assert_ne!(one, other);
    assert_eq!(node.add(one, [7; 32], PODS).await.0, 0);
    assert_eq!(node.add(one, [8; 32], PODS).await.0, 0);
    assert_eq!(node.add(other, [7; 32], PODS).await.0, 0, "it is a peer of another interface");
    assert_eq!(node.peer.retval("wireguard_interface_delete", &one.to_be_bytes()).await, 0);
    assert_eq!(node.peers(), 1);
    assert_eq!(node.peer.retval("wireguard_interface_delete", &one.to_be_bytes()).await, -2);
    assert_eq!(node.peer.retval("wireguard_interface_delete", &1u32.to_be_bytes()).await, -7, "no WireGuard");
    // An index is used again at once.
    assert_eq!(node.interface(2).await, one);
}

#[tokio::test]
async fn a_key_is_one_peer_and_a_peer_needs_something_to_say() {
    let mut node = Node::new().await;
    let at = node.interface(1).await;
    assert_eq!(node.add(at, [7; 32], PODS).await, (0, 0));
    assert_eq!(node.add(at, [7; 32], PODS).await, (-116, u32::MAX));
    assert_eq!(node.add(at, [8; 32], &[]).await, (-7, u32::MAX));
    assert_eq!(node.add(99, [8; 32], PODS).await, (-2, u32::MAX));
    assert_eq!(node.peer.retval("wireguard_peer_remove", &[0; 4]).await, 0);
    assert_eq!(node.peer.retval("wireguard_peer_remove", &[0; 4]).await, -6);
}

#[tokio::test]
async fn sessions_come_and_go_with_who_answers_and_watchers_hear_of_it() {
    let mut node = Node::new().await;
    let at = node.interface(1).await;
    let (_, index) = node.add(at, [7; 32], PODS).await;
    assert_eq!(node.watch().await, 0);
    assert_eq!(node.watch().await, -31, "once is enough");
    let remote = IpAddr::V4(REMOTE);
    // Under another key it is somebody else.
    node.sim.wireguard_peer(remote, Some([9; 32]));
    node.sim.wireguard_peer(remote, Some([7; 32]));
    let up = node.peer.read().await.unwrap();
    assert_eq!((payload_u32(&up, 2), payload_u32(&up, 10), up[14]), (0, index, 2));
    node.sim.wireguard_peer(remote, None);
    let down = node.peer.read().await.unwrap();
    assert_eq!((payload_u32(&down, 10), down[14]), (index, 0));
    // Its end is told before the answer, and to those only who wanted to hear of this very peer.
    let answers = node.peer.ask("wireguard_peer_remove", &index.to_be_bytes()).await;
    assert_eq!((answers.len(), answers[0][14]), (2, 1));
    let (_, index) = node.add(at, [7; 32], PODS).await;
    let answers = node.peer.ask("wireguard_peer_remove", &index.to_be_bytes()).await;
    assert_eq!(answers.len(), 1);
}
