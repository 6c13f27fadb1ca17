//! What the recordings do not show: several clients, events, whose route wins, what a deleted tunnel leaves behind, tables in
//! use, and what ends a VPP.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};
use tempfile::TempDir;
use vpp_sim::{Death, Sim, SimHandle};
use wire::{Peer, framed, payload_u32};

fn sim() -> (TempDir, SimHandle) {
    let dir = tempfile::tempdir().unwrap();
    let sim =
        Sim::builder(dir.path().join("api.sock")).interface("host-eth0", &["192.0.2.1/24"]).spawn().unwrap();
    (dir, sim)
}

fn address(ip: IpAddr) -> Vec<u8> {
    let mut bytes = match ip {
        IpAddr::V4(ip) => [&[0][..], &ip.octets()].concat(),
        IpAddr::V6(ip) => [&[1][..], &ip.octets()].concat(),
    };
    bytes.resize(17, 0);
    bytes
}

fn prefix(text: &str) -> Vec<u8> {
    let net: IpNet = text.parse().unwrap();
    [address(net.addr()), vec![net.prefix_len()]].concat()
}

/// A path of type `kind` out of an interface, with or without a next hop.
fn path(kind: u32, sw_if_index: u32, hop: Option<&str>) -> Vec<u8> {
    let mut path = vec![0; 167];
    path[..4].copy_from_slice(&sw_if_index.to_be_bytes());
    path[14..18].copy_from_slice(&kind.to_be_bytes());
    if let Some(hop) = hop {
        path[26..42].copy_from_slice(&address(hop.parse().unwrap())[1..]);
    }
    path
}

/// The fields of `ip_route_add_del_v2`.
fn route(is_add: bool, table: u32, net: &str, source: u8, paths: &[Vec<u8>]) -> Vec<u8> {
    let count = u8::try_from(paths.len()).unwrap();
    [
        vec![u8::from(is_add), 0],
        table.to_be_bytes().to_vec(),
        vec![0; 4],
        prefix(net),
        vec![count, source],
        paths.concat(),
    ]
    .concat()
}

fn table(is_add: bool, id: u32) -> Vec<u8> {
    [vec![u8::from(is_add)], id.to_be_bytes().to_vec(), vec![0; 65]].concat()
}

fn tunnel(src: &str, dst: &str) -> Vec<u8> {
    let ends = [address(src.parse().unwrap()), address(dst.parse().unwrap())].concat();
    [u32::MAX.to_be_bytes().to_vec(), ends, u32::MAX.to_be_bytes().to_vec(), vec![0; 7]].concat()
}

fn source(priority: u8, name: &str) -> Vec<u8> {
    let mut fields = [&[priority, 0], name.as_bytes()].concat();
    fields.resize(66, 0);
    fields
}

/// The routes of a table in [`vpp_sim::SimControl::meaning`], by prefix.
fn routes(sim: &SimHandle, table: u32) -> Vec<Value> {
    let meaning = sim.meaning();
    let tables = meaning["tables"].as_array().unwrap();
    let found = tables.iter().find(|t| t["table_id"] == table && t["family"] == "ip4");
    found.map(|table| table["routes"].as_array().unwrap().clone()).unwrap_or_default()
}

#[tokio::test]
async fn two_clients_change_one_state() {
    const EACH: u32 = 2000;
    let (_dir, sim) = sim();
    let work = |table_id: u32, path: std::path::PathBuf| async move {
        let mut peer = Peer::greeted(&path).await;
        assert_eq!(peer.retval("ip_table_add_del", &table(true, table_id)).await, 0);
        let mut replies = 0;
        for window in 0..EACH / 100 {
            let frames: Vec<u8> = (0..100)
                .flat_map(|i| {
                    let number = window * 100 + i;
                    let net = format!("10.{}.{}.0/24", number / 256, number % 256);
                    let fields = route(true, table_id, &net, 0, &[path_to_hop()]);
                    framed(&peer.request("ip_route_add_del_v2", number, &fields))
                })
                .collect();
            peer.send_raw(&frames).await;
            for i in 0..100 {
                let reply = peer.read().await.unwrap();
                assert_eq!(payload_u32(&reply, 2), window * 100 + i, "in the order they were asked");
                assert_eq!(payload_u32(&reply, 6), 0);
                replies += 1;
            }
        }
        assert!(peer.read_to_ping().await.is_empty(), "nothing of the other's");
        replies
    };
    let socket = sim.socket().to_owned();
    let (one, two) = tokio::join!(tokio::spawn(work(1, socket.clone())), tokio::spawn(work(2, socket)));
    assert_eq!((one.unwrap(), two.unwrap()), (EACH, EACH));
    assert_eq!(routes(&sim, 1).len(), EACH as usize);
    assert_eq!(routes(&sim, 1), routes(&sim, 2));
    assert_eq!(sim.carried_out()["ip_route_add_del_v2"], u64::from(2 * EACH));
}

fn path_to_hop() -> Vec<u8> {
    path(0, 1, Some("192.0.2.2"))
}

#[tokio::test]
async fn the_client_index_says_who_is_answered() {
    let (_dir, sim) = sim();
    let mut one = Peer::greeted(sim.socket()).await;
    let mut two = Peer::greeted(sim.socket()).await;
    assert_ne!(one.handle, two.handle);
    let own = one.handle;
    one.handle = two.handle;
    let misdirected = one.request("show_version", 99, &[]);
    one.send(&misdirected).await;
    let reply = two.read().await.unwrap();
    assert_eq!(
        (two.name_of(u16::from_be_bytes([reply[0], reply[1]])), payload_u32(&reply, 2)),
        ("show_version_reply".into(), 99)
    );
    // nobody's handle: carried out and not answered
    one.handle = 0x8000_0077;
    let unheard = one.request("ip_table_add_del", 1, &table(true, 5));
    one.send(&unheard).await;
    one.handle = own;
    assert!(one.read_to_ping().await.is_empty());
    assert!(sim.meaning()["tables"].as_array().unwrap().iter().any(|table| table["table_id"] == 5));
}

#[tokio::test]
async fn who_wants_events_gets_them_with_its_own_pid() {
    let (_dir, sim) = sim();
    let mut actor = Peer::greeted(sim.socket()).await;
    let mut watcher = Peer::greeted(sim.socket()).await;
    let want = |enable: u32, pid: u32| [enable.to_be_bytes(), pid.to_be_bytes()].concat();
    assert_eq!(actor.retval("want_interface_events", &want(1, 11)).await, 0);
    assert_eq!(watcher.retval("want_interface_events", &want(1, 22)).await, 0);
    assert_eq!(watcher.retval("want_interface_events", &want(1, 22)).await, -31, "subscribed twice");

    let answers = actor.ask("ipip_add_tunnel", &tunnel("192.0.2.1", "192.0.2.9")).await;
    assert_eq!(payload_u32(&answers[0], 10), 2);
    let names: Vec<String> =
        answers.iter().map(|a| actor.name_of(u16::from_be_bytes([a[0], a[1]]))).collect();
    assert_eq!(
        names,
        ["ipip_add_tunnel_reply", "sw_interface_event"],
        "the event comes behind its cause's reply"
    );
    let up = [2u32.to_be_bytes(), 1u32.to_be_bytes()].concat();
    actor.ask("sw_interface_set_flags", &up).await;
    actor.ask("sw_interface_set_flags", &up).await; // changes nothing
    actor.ask("ipip_del_tunnel", &2u32.to_be_bytes()).await;

    let mut seen = Vec::new();
    for _ in 0..3 {
        let event = watcher.read().await.unwrap();
        assert_eq!((payload_u32(&event, 2), payload_u32(&event, 6)), (watcher.handle, 22));
        seen.push((payload_u32(&event, 10), payload_u32(&event, 14), event[18]));
    }
    assert_eq!(seen, [(2, 0, 0), (2, 3, 0), (2, 0, 1)]);
    assert_eq!(watcher.retval("want_interface_events", &want(0, 22)).await, 0);
    actor.ask("sw_interface_set_flags", &[1u32.to_be_bytes(), 0u32.to_be_bytes()].concat()).await;
    assert!(watcher.read_to_ping().await.is_empty(), "no event after unsubscribing");
}

#[tokio::test]
async fn the_better_source_is_forwarded_and_the_other_waits() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    let added = peer.ask("fib_source_add", &source(200, "agent")).await;
    assert_eq!((payload_u32(&added[0], 6), added[0][10]), (0, 26));
    let ours = path(0, 1, Some("192.0.2.2"));
    let theirs = path(0, 1, Some("192.0.2.3"));
    assert_eq!(peer.retval("ip_route_add_del_v2", &route(true, 0, "10.0.0.0/8", 26, &[ours])).await, 0);
    assert_eq!(peer.retval("ip_route_add_del_v2", &route(true, 0, "10.0.0.0/8", 0, &[theirs])).await, 0);
    let via = |hop: &str| json!([{ "kind": "via", "interface": "host-eth0", "next_hop": hop }]);
    assert_eq!(
        routes(&sim, 0),
        [json!({
            "prefix": "10.0.0.0/8", "source": "API", "paths": via("192.0.2.3"),
            "shadowed": [{ "source": "agent", "paths": via("192.0.2.2") }],
        })]
    );
    // a dump of one source has only the routes where it is the best
    let dump = |source: u8| [vec![source], vec![0; 69]].concat();
    assert_eq!(peer.ask("ip_route_v2_dump", &dump(26)).await.len(), 0);
    assert_eq!(peer.ask("ip_route_v2_dump", &dump(8)).await.len(), 1);
    assert_eq!(peer.retval("ip_route_add_del_v2", &route(false, 0, "10.0.0.0/8", 0, &[])).await, 0);
    assert_eq!(
        routes(&sim, 0),
        [json!({ "prefix": "10.0.0.0/8", "source": "agent", "paths": via("192.0.2.2") })]
    );
    assert_eq!(peer.ask("ip_route_v2_dump", &dump(26)).await.len(), 1);
}

#[tokio::test]
async fn routes_of_a_deleted_tunnel_drop_until_all_of_them_are_gone() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    let add = |net| route(true, 0, net, 0, &[path(0, 2, None)]);
    let index = |answers: &[Vec<u8>]| payload_u32(&answers[0], 10);
    assert_eq!(index(&peer.ask("ipip_add_tunnel", &tunnel("192.0.2.1", "192.0.2.9")).await), 2);
    for net in ["10.1.0.0/16", "10.2.0.0/16"] {
        assert_eq!(peer.retval("ip_route_add_del_v2", &add(net)).await, 0);
    }
    assert_eq!(peer.retval("ipip_del_tunnel", &2u32.to_be_bytes()).await, 0);
    let gone = |net| json!({ "prefix": net, "source": "API", "dead": true, "paths": [{ "kind": "attached", "interface": "#2" }] });
    assert_eq!(routes(&sim, 0), [gone("10.1.0.0/16"), gone("10.2.0.0/16")]);
    assert_eq!(peer.retval("ip_route_add_del_v2", &add("10.3.0.0/16")).await, -54, "no such interface");

    // another tunnel takes the index over, but not the routes, not even one that is replaced
    assert_eq!(index(&peer.ask("ipip_add_tunnel", &tunnel("192.0.2.1", "192.0.2.10")).await), 2);
    assert_eq!(peer.retval("ip_route_add_del_v2", &add("10.1.0.0/16")).await, 0);
    assert_eq!(routes(&sim, 0), [gone("10.1.0.0/16"), gone("10.2.0.0/16")]);
    for net in ["10.1.0.0/16", "10.2.0.0/16"] {
        assert_eq!(peer.retval("ip_route_add_del_v2", &route(false, 0, net, 0, &[])).await, 0);
    }
    assert_eq!(peer.retval("ip_route_add_del_v2", &add("10.1.0.0/16")).await, 0);
    let name = "ipip 192.0.2.1 -> 192.0.2.10 in table 0";
    assert_eq!(
        routes(&sim, 0),
        [
            json!({ "prefix": "10.1.0.0/16", "source": "API", "paths": [{ "kind": "attached", "interface": name }] })
        ]
    );
}

#[tokio::test]
async fn a_table_stays_until_its_last_user_goes() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(peer.retval("ip_table_add_del", &table(true, 7)).await, 0);
    assert_eq!(
        peer.retval("ip_route_add_del_v2", &route(true, 7, "10.0.0.0/8", 0, &[path(2, u32::MAX, None)]))
            .await,
        0
    );
    peer.ask("create_loopback", &[0; 6]).await;
    let bind = |table: u32| [2u32.to_be_bytes().to_vec(), vec![0], table.to_be_bytes().to_vec()].concat();
    assert_eq!(peer.retval("sw_interface_set_table", &bind(7)).await, 0);
    assert_eq!(peer.retval("ip_table_add_del", &table(false, 7)).await, 0);
    let exists = || sim.meaning()["tables"].as_array().unwrap().iter().any(|table| table["table_id"] == 7);
    assert!(exists(), "an interface is in it");
    assert_eq!(routes(&sim, 7), [] as [Value; 0], "the API's routes went with the API's hold");
    assert_eq!(peer.retval("sw_interface_set_table", &bind(0)).await, 0);
    assert!(!exists());
}

#[tokio::test]
async fn connected_routes_come_and_go_with_address_and_interface() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    let connected = || {
        let state = sim.state_json();
        let routes = state["tables"][0]["routes"].as_array().unwrap();
        let of_interface = routes.iter().filter(|route| route["source"] == "interface");
        of_interface.map(|route| route["prefix"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ["192.0.2.1/24", "192.0.2.0/32", "192.0.2.1/32", "192.0.2.255/32"];
    assert_eq!(connected(), all);
    let admin = |up: u32| [1u32.to_be_bytes(), up.to_be_bytes()].concat();
    peer.ask("sw_interface_set_flags", &admin(0)).await;
    assert_eq!(connected(), [] as [&str; 0]);
    peer.ask("sw_interface_set_flags", &admin(1)).await;
    assert_eq!(connected(), all);

    let change = |is_add: bool, net: &str| [vec![0, 0, 0, 1, u8::from(is_add), 0], prefix(net)].concat();
    assert_eq!(
        peer.retval("sw_interface_add_del_address", &change(true, "192.0.2.7/24")).await,
        0,
        "a sibling"
    );
    assert_eq!(peer.retval("sw_interface_add_del_address", &change(true, "198.51.100.4/31")).await, 0);
    assert_eq!(peer.retval("sw_interface_add_del_address", &change(false, "192.0.2.1/24")).await, 0);
    assert_eq!(
        connected(),
        [
            "192.0.2.1/24",
            "192.0.2.0/32",
            "192.0.2.7/32",
            "192.0.2.255/32",
            "198.51.100.4/32",
            "198.51.100.5/32"
        ]
    );
}

#[tokio::test]
async fn bytes_may_come_in_any_pieces() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    for byte in framed(&peer.request("show_version", 5, &[])) {
        peer.send_raw(&[byte]).await;
    }
    assert_eq!(payload_u32(&peer.read().await.unwrap(), 2), 5);
    let three: Vec<u8> =
        (1..=3).flat_map(|context| framed(&peer.request("show_version", context, &[]))).collect();
    peer.send_raw(&three).await;
    for context in 1..=3 {
        assert_eq!(payload_u32(&peer.read().await.unwrap(), 2), context);
    }
    // payloads of 0 and 1 bytes, and one that is cut off in its middle
    peer.send(&[]).await;
    peer.send(&[0]).await;
    let request = peer.request("ip_table_add_del", 9, &table(true, 3));
    peer.send(&request[..request.len() - 1]).await;
    assert!(peer.read_to_ping().await.is_empty());
}

#[tokio::test]
async fn what_kills_vpp_kills_this_one() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    let mut other = Peer::greeted(sim.socket()).await;
    let request =
        peer.request("ip_route_add_del_v2", 1, &route(true, 0, "10.0.0.0/8", 0, &[path(3, u32::MAX, None)]));
    peer.send(&request).await;
    assert!(peer.read().await.is_none() && other.read().await.is_none(), "all connections are closed");
    assert_eq!(sim.death(), Some(Death::UdpEncap));
    assert_eq!(sim.state_json()["alive"], false);
    sim.up().await;

    let mut peer = Peer::greeted(sim.socket()).await;
    let mut header = [0; 16];
    header[8..12].copy_from_slice(&0x7fff_ffffu32.to_be_bytes());
    peer.send_raw(&header).await;
    assert!(sim.stats().alive, "it only waits");
    peer.try_send_raw(b"more").await;
    assert!(peer.read().await.is_none());
    assert_eq!(sim.until(|stats| !stats.alive).await.generation, 2);
    assert_eq!(sim.death(), Some(Death::EndlessFrame));
}

/// So many clients come and vanish.
async fn leak(sim: &SimHandle, clients: usize) {
    for _ in 0..clients {
        let before = sim.stats();
        drop(Peer::greeted(sim.socket()).await);
        sim.until(|stats| stats.requests > before.requests && stats.clients == before.clients).await;
    }
}

#[tokio::test]
async fn sixteen_leaked_sockets_stop_vpp() {
    let (_dir, sim) = sim();
    // one unclean end does no harm before a socket was full
    drop(Peer::greeted(sim.socket()).await);
    sim.until(|stats| stats.clients == 0).await;

    let mut slow = Peer::greeted(sim.socket()).await;
    assert_eq!(slow.retval("fib_source_add", &source(200, "a")).await, 0);
    let dump: Vec<u8> = (0..200).flat_map(|_| framed(&slow.request("fib_source_dump", 1, &[]))).collect();
    slow.send_raw(&dump).await;
    // the answers are more than the socket holds, and nobody reads them; the last thing asked for is seen to be done
    sim.until(|stats| stats.requests >= 100).await;
    slow.read_to_ping().await;
    leak(&sim, 15).await;
    assert!(!sim.stats().hung);
    // a system call that fails lets go of them all
    let script = "exec /nowhere";
    let mut heal = u32::try_from(script.len()).unwrap().to_be_bytes().to_vec();
    heal.extend_from_slice(script.as_bytes());
    assert_eq!(slow.retval("cli_inband", &heal).await, -1);
    leak(&sim, 20).await;
    assert!(!sim.stats().hung, "no socket was full since");
    let full = sim.stats();

    slow.send_raw(&dump).await;
    sim.until(|stats| stats.requests >= full.requests + 100).await;
    slow.read_to_ping().await;
    leak(&sim, 15).await;
    assert!(!sim.stats().hung);
    drop(Peer::greeted(sim.socket()).await);
    sim.until(|stats| stats.hung).await;
    sim.restart();
    let mut fresh = Peer::greeted(sim.socket()).await;
    assert!(fresh.read_to_ping().await.is_empty());
}
