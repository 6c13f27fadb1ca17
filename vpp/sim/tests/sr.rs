//! What the recording does not show of SRv6: what ends a VPP, policies that go while they are in use, lists that come and
//! go, and the routes behind it all. Each of it was seen on a real VPP.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde_json::{Value, json};
use tempfile::TempDir;
use vpp_sim::{Death, Sim, SimHandle};
use wire::{Peer, payload_u32};

fn sim() -> (TempDir, SimHandle) {
    let dir = tempfile::tempdir().unwrap();
    let sim = Sim::builder(dir.path().join("api.sock"))
        .interface("host-eth0", &["192.0.2.1/24", "2001:db8::1/64"])
        .spawn()
        .unwrap();
    (dir, sim)
}

fn v6(text: &str) -> [u8; 16] {
    text.parse::<Ipv6Addr>().unwrap().octets()
}

fn list(sids: &[&str], weight: u32) -> Vec<u8> {
    let mut bytes = vec![sids.len() as u8];
    bytes.extend_from_slice(&weight.to_be_bytes());
    for sid in sids.iter().take(16) {
        bytes.extend_from_slice(&v6(sid));
    }
    bytes.resize(261, 0);
    bytes
}

/// The fields of `sr_policy_add_v2`.
fn policy(bsid: &str, sids: &[&str], table: u32) -> Vec<u8> {
    let head = [&v6(bsid)[..], &1u32.to_be_bytes(), &[1, 0], &table.to_be_bytes()].concat();
    [head, list(sids, 1), v6("2001:db8::1").to_vec()].concat()
}

/// The fields of `sr_policy_mod_v2`.
fn change(bsid: &str, operation: u8, index: u32, sids: &[&str], weight: u32) -> Vec<u8> {
    let head = [&v6(bsid)[..], &[0; 8], &[operation], &index.to_be_bytes(), &weight.to_be_bytes()].concat();
    [head, list(sids, weight), v6("2001:db8::9").to_vec()].concat()
}

/// The fields of `sr_steering_add_del`.
fn steer(is_del: bool, bsid: &str, prefix: &str, table: u32) -> Vec<u8> {
    let net: IpNet = prefix.parse().unwrap();
    let mut address = match net.addr() {
        IpAddr::V4(addr) => [&[0][..], &addr.octets()].concat(),
        IpAddr::V6(addr) => [&[1][..], &addr.octets()].concat(),
    };
    address.resize(17, 0);
    let kind = if address[0] == 0 { 4 } else { 6 };
    [
        vec![u8::from(is_del)],
        v6(bsid).to_vec(),
        vec![0; 4],
        table.to_be_bytes().to_vec(),
        address,
        vec![net.prefix_len(), 0, 0, 0, 0, kind],
    ]
    .concat()
}

/// The fields of `sr_localsid_add_del`.
fn localsid(sid: &str, behavior: u8, table: u32) -> Vec<u8> {
    let mut fields = [&[0][..], &v6(sid), &[0, behavior], &[0; 8], &table.to_be_bytes()].concat();
    fields.resize(48, 0);
    fields
}

fn sr(sim: &SimHandle) -> Value {
    sim.meaning()["sr"].clone()
}

fn bsid_of(sim: &SimHandle, prefix: &str) -> String {
    let all = sr(sim)["steering"].as_array().unwrap().clone();
    let found = all.iter().find(|one| one["prefix"] == prefix);
    found.map(|one| one["bsid"].as_str().unwrap().to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn what_ends_a_vpp_ends_this_one() {
    let fatal = [
        ("sr_policy_add_v2", policy("fd00:b::2", &[], 0), Death::EmptySidList),
        ("sr_policy_mod_v2", change("fd00:b::1", 1, 0, &[], 1), Death::EmptySidList),
        ("sr_steering_add_del", steer(false, "fd00:b::1", "10.0.0.0/24", 77), Death::SteeringTable),
        ("sr_localsid_add_del", localsid("fd00:1::9", 14, 0), Death::LocalsidBehavior),
    ];
    for (message, fields, death) in fatal {
        let (_dir, sim) = sim();
        let mut peer = Peer::greeted(sim.socket()).await;
        assert_eq!(peer.retval("sr_policy_add_v2", &policy("fd00:b::1", &["fd00:2::4"], 0)).await, 0);
        peer.send(&peer.request(message, 1, &fields)).await;
        assert!(peer.read().await.is_none(), "{message}");
        assert_eq!(sim.death(), Some(death));
    }
}

#[tokio::test]
async fn what_looks_as_bad_is_survived() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    // behaviours without meaning, a policy for ::, seventeen SIDs, weight 0
    for behavior in [0, 4, 10] {
        let fields = localsid(&format!("fd00:1::{behavior}"), behavior, 0);
        assert_eq!(peer.retval("sr_localsid_add_del", &fields).await, 0);
    }
    assert_eq!(peer.retval("sr_policy_add_v2", &policy("::", &["fd00:2::4"; 17], 0)).await, 0);
    assert_eq!(peer.retval("sr_policy_mod_v2", &change("::", 1, 0, &["fd00:3::4"], 0)).await, 0);
    // the removal of what was never there does not look at the table
    assert_eq!(peer.retval("sr_steering_add_del", &steer(true, "::", "10.0.0.0/24", 77)).await, -4);
    assert!(sim.stats().alive);
}

#[tokio::test]
async fn a_policy_in_use_goes_and_its_successor_inherits() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(peer.retval("sr_policy_add_v2", &policy("fd00:b::2", &["fd00:2::4"], 0)).await, 0);
    assert_eq!(peer.retval("sr_steering_add_del", &steer(false, "fd00:b::2", "10.0.0.0/24", 0)).await, 0);
    assert_eq!(peer.retval("sr_policy_del", &[&v6("fd00:b::2")[..], &[0; 4]].concat()).await, 0);
    assert_eq!(bsid_of(&sim, "10.0.0.0/24"), "fd00:b::2", "it still reads so");
    assert_eq!(peer.retval("sr_policy_add_v2", &policy("fd00:b::3", &["fd00:3::4"], 0)).await, 0);
    assert_eq!(bsid_of(&sim, "10.0.0.0/24"), "fd00:b::3");
    // and the route asks for the old one
    let meaning = sim.state_json();
    let tables = meaning["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["table_id"] == 0 && table["family"] == "ip4").unwrap();
    let routes = table["routes"].as_array().unwrap();
    let route = routes.iter().find(|route| route["prefix"] == "10.0.0.0/24").unwrap();
    assert_eq!(route["paths"][0]["next_hop"], "fd00:b::2");
    // whichever policy the removal names
    assert_eq!(peer.retval("sr_steering_add_del", &steer(true, "fd00:b::9", "10.0.0.0/24", 0)).await, 0);
    assert_eq!(sr(&sim)["steering"], json!([]));
}

#[tokio::test]
async fn steering_anew_replaces_and_beats_every_other_route() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    for (bsid, sid) in [("fd00:b::2", "fd00:2::4"), ("fd00:b::3", "fd00:3::4")] {
        assert_eq!(peer.retval("sr_policy_add_v2", &policy(bsid, &[sid], 0)).await, 0);
        assert_eq!(peer.retval("sr_steering_add_del", &steer(false, bsid, "10.0.0.0/24", 0)).await, 0);
    }
    assert_eq!(bsid_of(&sim, "10.0.0.0/24"), "fd00:b::3");
    let drop = [vec![1, 0], vec![0; 8], vec![0, 10, 0, 0, 0], vec![0; 12], vec![24, 1, 0], {
        let mut path = vec![0; 167];
        path[..4].copy_from_slice(&u32::MAX.to_be_bytes());
        path[17] = 2;
        path
    }]
    .concat();
    assert_eq!(peer.retval("ip_route_add_del_v2", &drop).await, 0);
    let meaning = sim.meaning();
    let table = &meaning["tables"].as_array().unwrap()[0];
    let route = &table["routes"].as_array().unwrap()[0];
    assert_eq!((&route["prefix"], &route["source"]), (&json!("10.0.0.0/24"), &json!("SR")));
    assert_eq!(route["shadowed"][0]["source"], "API");
}

#[tokio::test]
async fn lists_come_and_go_and_the_last_one_stays() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(peer.retval("sr_policy_add_v2", &policy("fd00:b::2", &["fd00:2::4"], 0)).await, 0);
    let more = change("fd00:b::2", 1, 0, &["fd00:3::4", "fd00:2::4"], 3);
    assert_eq!(peer.retval("sr_policy_mod_v2", &more).await, 0);
    assert_eq!(sr(&sim)["policies"][0]["encap_src"], "2001:db8::9", "of the last list");
    let details = peer.ask("sr_policies_with_sl_index_dump", &[]).await;
    assert_eq!((details.len(), details[0].len()), (1, 29 + 2 * 265));
    assert_eq!(payload_u32(&details[0], 29 + 265 + 5), 1, "the index of the second");
    for (operation, index, retval) in
        [(3, 0, 0), (3, 9, -32), (2, 9, -22), (2, 0, 0), (2, 1, -21), (7, 0, -1)]
    {
        let fields = change("fd00:b::2", operation, index, &["::"], 9);
        assert_eq!(peer.retval("sr_policy_mod_v2", &fields).await, retval, "{operation} {index}");
    }
    assert_eq!(
        sr(&sim)["policies"][0]["lists"],
        json!([{ "weight": 3, "sids": ["fd00:3::4", "fd00:2::4"] }])
    );
}

#[tokio::test]
async fn a_sid_that_has_a_route_is_refused() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(peer.retval("sr_localsid_add_del", &localsid("fd00:1::4", 9, 0)).await, 0);
    for bsid in ["fd00:1::4", "2001:db8::1"] {
        assert_eq!(peer.retval("sr_policy_add_v2", &policy(bsid, &["fd00:2::4"], 0)).await, -12);
    }
    assert_eq!(peer.retval("sr_policy_add_v2", &policy("fd00:b::2", &["fd00:2::4"], 77)).await, -13);
    assert_eq!(peer.retval("sr_policy_add_v2", &policy("fd00:b::2", &["fd00:2::4"], 0)).await, 0);
    assert_eq!(peer.retval("sr_localsid_add_del", &localsid("fd00:b::2", 9, 0)).await, -4);
    assert_eq!(peer.retval("sr_localsid_add_del", &localsid("fd00:1::5", 9, 77)).await, -3);
}

#[tokio::test]
async fn tables_without_a_number_are_listed_while_there_are_policies() {
    let (_dir, sim) = sim();
    let mut peer = Peer::greeted(sim.socket()).await;
    assert_eq!(peer.ask("ip_table_dump", &[]).await.len(), 2);
    assert_eq!(peer.retval("sr_policy_add_v2", &policy("fd00:b::2", &["fd00:2::4"], 0)).await, 0);
    let tables = peer.ask("ip_table_dump", &[]).await;
    let numbers: Vec<u32> = tables.iter().map(|table| payload_u32(table, 6)).collect();
    assert_eq!(numbers, [0, 0, u32::MAX, u32::MAX]);
    assert_eq!(peer.retval("sr_policy_del", &[&v6("fd00:b::2")[..], &[0; 4]].concat()).await, 0);
    assert_eq!(peer.ask("ip_table_dump", &[]).await.len(), 2);
}
