//! Recorded conversations with a real VPP 26.06, held again with the simulated one: each request that it knows is sent byte
//! for byte, and each answer is compared byte for byte.
//!
//! Not compared, because it is different in every process: message ids (translated by name), the unused header bytes,
//! process ids, version and build strings, statistics indices (only that there is one), the length of the message table, and
//! the order of route details within a dump, which is that of VPP's hash table.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;
use vpp_sim::Sim;
use wire::{Peer, payload_u32};

/// What the simulated VPP does not know, per transcript. An entry that is known by now fails the test, as does a
/// request that is missing here.
const SKIPPED: [(&str, &[&str]); 17] = [
    (
        "00-handshake",
        &[
            // known, but of the command line there is one command only
            "cli_inband",
            "get_f64_endian_value",
            "get_f64_increment_by_one",
            // known, but no module has a version here, so that one recorded answer differs
            "get_first_msg_id",
            "get_node_index",
            "show_vpe_system_time",
        ],
    ),
    ("01-interface", &[]),
    ("02-ip-table", &[]),
    ("03-ip-route", &[]),
    ("05-ipip", &[]),
    (
        "13-feature-punt",
        &[
            "add_del_ip_punt_redirect_v2",
            "ip_mroute_add_del",
            "ip_mroute_dump",
            "ip_path_mtu_get",
            "ip_path_mtu_update",
            "ip_punt_redirect_v2_dump",
            "punt_reason_dump",
            "sw_interface_ip6_enable_disable",
            "sw_interface_ip6_get_link_local_address",
            "urpf_interface_dump",
            "urpf_update_v2",
        ],
    ),
    ("15-transport", &["get_node_index"]),
    ("11-cnat", &[]),
    ("08-ikev2", &[]),
    ("10-srv6", &[]),
    ("07-wireguard", &[]),
    ("06-vxlan", &[]),
    (
        "04-ip-neighbor",
        &[
            "ip_neighbor_add_del",
            "ip_neighbor_config",
            "ip_neighbor_config_get",
            "ip_neighbor_dump",
            "ip_neighbor_flush",
            "want_ip_neighbor_events_v2",
        ],
    ),
    (
        "09-ipsec",
        &[
            "ipsec_backend_dump",
            "ipsec_itf_create",
            "ipsec_itf_delete",
            "ipsec_itf_dump",
            "ipsec_sa_v3_dump",
            "ipsec_sa_v5_dump",
            "ipsec_sad_entry_add_v2",
            "ipsec_sad_entry_del",
            "ipsec_tunnel_protect_del",
            "ipsec_tunnel_protect_dump",
            "ipsec_tunnel_protect_update",
        ],
    ),
    (
        "12-bfd",
        &[
            "bfd_auth_del_key",
            "bfd_auth_keys_dump",
            "bfd_auth_set_key",
            "bfd_udp_add",
            "bfd_udp_auth_activate",
            "bfd_udp_auth_deactivate",
            "bfd_udp_del",
            "bfd_udp_mod",
            "bfd_udp_session_dump",
            "bfd_udp_session_set_flags",
            "bfd_udp_upd",
            "want_bfd_events",
        ],
    ),
    (
        "14-npol",
        &[
            "npol_configure_policies",
            "npol_get_version",
            "npol_ipset_add_del_members",
            "npol_ipset_create",
            "npol_ipset_delete",
            "npol_policy_create",
            "npol_policy_delete",
            "npol_rule_create",
            "npol_rule_delete",
        ],
    ),
    (
        "16-established",
        &[
            // known, but what is shown depends on the other VPP that took part, and on when packets came
            "cli_inband",
            "control_ping",
            "ikev2_initiate_sa_init",
            "ikev2_sa_dump",
            "ikev2_sa_v2_dump",
            "ikev2_sa_v3_dump",
            "sw_interface_dump",
            "sw_interface_set_flags",
            "want_interface_events",
            "want_wireguard_peer_events",
            "wireguard_peers_dump",
            // not known
            "bfd_udp_add",
            "bfd_udp_session_dump",
            "bfd_udp_session_set_flags",
            "ikev2_child_sa_dump",
            "ikev2_child_sa_v2_dump",
            "ikev2_initiate_del_ike_sa",
            "ikev2_initiate_rekey_child_sa",
            "ikev2_nonce_get",
            "ikev2_traffic_selector_dump",
            "ipsec_sa_v5_dump",
            "ipsec_tunnel_protect_dump",
            "want_bfd_events",
        ],
    ),
];

/// Messages in which some bytes of the payload differ from process to process.
fn mask(message: &str, payload: &mut [u8]) {
    match message {
        "control_ping_reply" => payload[14..18].fill(0),
        "show_threads_reply" => payload[14 + 4 + 128..].fill(0), // process, processor, core, socket
        "show_version_reply" => payload[42..362].fill(0),
        // a number when there is one, all ones when not
        "ip_route_add_del_reply" | "ip_route_add_del_v2_reply" if payload_u32(payload, 10) == u32::MAX => {}
        "ip_route_add_del_reply" | "ip_route_add_del_v2_reply" => payload[10..14].fill(0),
        "ip_route_details" | "ip_route_v2_details" => payload[10..14].fill(0),
        "ip_route_lookup_reply" | "ip_route_lookup_v2_reply" => payload[14..18].fill(0),
        _ => {}
    }
}

struct Transcript {
    frames: Vec<Value>,
    /// Recorded ids by name_CRC.
    ids: BTreeMap<String, u16>,
}

impl Transcript {
    fn read(name: &str) -> Self {
        let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        path.push(format!("../catalogue/transcripts/{name}.json"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let json: Value = serde_json::from_str(&text).unwrap();
        let ids = json["ids"].as_object().unwrap().iter();
        let ids =
            ids.map(|(name, id)| (name.clone(), u16::try_from(id.as_u64().unwrap()).unwrap())).collect();
        Self { frames: json["frames"].as_array().unwrap().clone(), ids }
    }

    /// What was answered to the request at `at`: its frames in order, and the events before the next request.
    fn answers(&self, at: usize) -> Vec<(String, Vec<u8>)> {
        let request = &self.frames[at];
        let context = &request["decoded"]["context"];
        let is_ping = request["msg"] == "control_ping";
        let is_dump = request["msg"].as_str().is_some_and(|name| name.ends_with("_dump"));
        let next = self.frames[at + 1..].iter().position(|frame| frame["dir"] == "c2s").unwrap_or(usize::MAX);
        let answers = self.frames[at + 1..].iter().enumerate().filter(|(behind, frame)| {
            let name = frame["msg"].as_str().unwrap_or("");
            if frame["dir"] != "s2c" {
                false
            } else if name.ends_with("_event") {
                *behind < next
            } else {
                frame["decoded"]["context"] == *context
                    && is_ping == (name == "control_ping_reply")
                    && is_dump == name.ends_with("_details")
            }
        });
        answers.map(|(_, frame)| (frame["msg"].as_str().unwrap().to_owned(), payload(frame))).collect()
    }
}

fn payload(frame: &Value) -> Vec<u8> {
    wire::unhex(frame["frame"].as_str().unwrap())[16..].to_vec()
}

async fn replay(name: &str, skipped: &[&str]) {
    let transcript = Transcript::read(name);
    let dir = tempfile::tempdir().unwrap();
    // In one recording another VPP took part, over a link that was there before; what comes from it comes unasked.
    let alone = name != "16-established";
    let mut sim = Sim::builder(dir.path().join("api.sock"));
    if !alone {
        sim = sim.interface("memif1/0", &[]);
    }
    let sim = sim.spawn().unwrap();
    let mut peer = Peer::connect(sim.socket()).await;
    let by_recorded_id: BTreeMap<u16, String> =
        transcript.ids.iter().map(|(name, id)| (*id, name.clone())).collect();
    let mut unknown = BTreeSet::new();
    let mut compared = 0;
    for (at, frame) in transcript.frames.iter().enumerate().filter(|(_, frame)| frame["dir"] == "c2s") {
        let mut request = payload(frame);
        let recorded_id = u16::from_be_bytes([request[0], request[1]]);
        let message = frame["msg"].as_str().unwrap_or("");
        let note = format!("{name}, frame {at}, {message}: {}", frame["note"].as_str().unwrap_or(""));
        if skipped.contains(&message) {
            unknown.insert(message.to_owned());
            continue;
        }
        let id = match by_recorded_id.get(&recorded_id) {
            // has a fixed id, before there is a table
            _ if message == "sockclnt_create" => Some(15),
            Some(full_name) => peer.table.get(full_name).copied(),
            // a message too short to be decoded has a name only; an id of no message has none and stays as it is
            None if message.is_empty() => Some(recorded_id),
            None => Some(peer.id(message)),
        };
        let Some(id) = id else {
            unknown.insert(message.to_owned());
            continue;
        };
        request[..2].copy_from_slice(&id.to_be_bytes());
        peer.send(&request).await;
        let mut got = match message {
            "sockclnt_create" => vec![peer.read_greeting().await],
            "sockclnt_delete" => {
                let reply = peer.read().await.expect("a reply before the end");
                assert!(peer.read().await.is_none(), "{note}: nothing comes behind the goodbye");
                vec![reply]
            }
            _ => peer.read_to_ping().await,
        };
        let mut wanted = transcript.answers(at);
        wanted.retain(|(name, _)| alone || !name.ends_with("_event"));
        assert_eq!(got.len(), wanted.len(), "{note}: number of answers; got {got:02x?}");
        for (wanted_name, wanted) in &mut wanted {
            if wanted_name == "sockclnt_create_reply" {
                wanted.truncate(18); // the table is left out of all recordings but one
            }
            wanted[..2].fill(0);
            mask(wanted_name, wanted);
        }
        for got in &mut got {
            let id = u16::from_be_bytes([got[0], got[1]]);
            let got_name = peer.name_of(id);
            assert!(wanted.iter().any(|(name, _)| *name == got_name), "{note}: answered by {got_name}");
            if got_name == "sockclnt_create_reply" {
                got.truncate(18);
            }
            got[..2].fill(0);
            mask(&got_name, got);
        }
        if message.ends_with("route_dump") || message.ends_with("route_v2_dump") {
            got.sort();
            wanted.sort_by(|(_, a), (_, b)| a.cmp(b));
        }
        for (got, (wanted_name, wanted)) in got.iter().zip(&wanted) {
            assert_eq!(wire::hex(got), wire::hex(wanted), "{note}: {wanted_name}");
        }
        compared += 1;
    }
    assert_eq!(unknown, skipped.iter().map(|name| (*name).to_owned()).collect(), "{name}: what is not known");
    println!("{name}: {compared} requests answered as recorded");
    sim.close().await;
}

macro_rules! transcripts {
    ($($test:ident $at:literal)*) => { $(
        #[tokio::test]
        async fn $test() {
            let (name, skipped) = SKIPPED[$at];
            replay(name, skipped).await;
        }
    )* };
}

transcripts! {
    handshake 0
    interfaces 1
    tables 2
    routes 3
    tunnels 4
    features 5
    transport 6
    cnat 7
    ikev2 8
    srv6 9
    wireguard 10
    vxlan 11
    neighbors 12
    ipsec 13
    bfd 14
    npol 15
    established 16
}

#[test]
fn no_recording_is_left_out() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../catalogue/transcripts");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: BTreeSet<String> =
        files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(files, SKIPPED.iter().map(|(name, _)| (*name).to_owned()).collect());
}
