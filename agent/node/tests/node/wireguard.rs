//! WireGuard: keys are made once and kept, published and followed; peers come, change and go with them.

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;

use serde_json::Value;
use vpp_sim::SimHandle;

use crate::lab::{Lab, until};

/// The neighbour's public keys, one after the other, as text.
const KEYS: [(u8, &str); 2] = [
    (7, "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="),
    (8, "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg="),
];
const NEIGHBOUR: &str = "127.77.0.2";

fn felix(lab: &Lab, spec: &str) {
    let head =
        "apiVersion: projectcalico.org/v3\nkind: FelixConfiguration\nmetadata: {name: default}\nspec:\n";
    lab.manifest("felix.yaml", &format!("{head}  {spec}\n"));
}

fn neighbour(lab: &Lab, key: &str) {
    lab.manifest(
        "tor.yaml",
        &format!(
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: tor\n  annotations:\n    \
             projectcalico.org/IPv4Address: {NEIGHBOUR}/24\n    \
             projectcalico.org/WireguardPublicKey: \"{key}\"\n"
        ),
    );
}

/// The peers that the VPP has: key and what each may send.
fn peers(meaning: &Value) -> Vec<(String, String)> {
    let all = meaning["wireguard_peers"].as_array().cloned().unwrap_or_default();
    let text =
        |peer: &Value| (peer["public_key"].as_str().unwrap_or("").to_owned(), peer["allowed"].to_string());
    all.iter().map(text).collect()
}

async fn until_peers(sim: &SimHandle, key: u8, allowed: &str) -> Value {
    let wanted = vec![(format!("{key:02x}").repeat(32), allowed.to_owned())];
    sim.control().until_meaning(|meaning| peers(meaning) == wanted).await
}

async fn until_session(lab: &Lab, established: bool) -> Value {
    until("the session is seen", || async {
        let vpp = lab.try_ask("agent.sock", &["vpp"]).await?;
        let sessions = vpp["wireguard"]["sessions"].as_array().cloned().unwrap_or_default();
        let seen = sessions.iter().map(|session| session["established"].as_bool()).collect::<Vec<_>>();
        if seen == [Some(established)] { Ok(vpp) } else { Err(vpp.to_string()) }
    })
    .await
}

#[tokio::test]
async fn keys_outlive_agent_and_vpp_and_peers_follow_theirs() {
    let lab = Lab::new();
    let sim = lab.sim();
    let remote: IpAddr = NEIGHBOUR.parse().unwrap();
    sim.control().wireguard_peer(remote, Some([KEYS[0].0; 32]));
    felix(&lab, "wireguardEnabled: true");
    neighbour(&lab, KEYS[0].1);
    let _speaker = lab.speaker().await;
    let agent = lab.agent().await;
    lab.converged().await;
    let one = r#"["10.245.7.0/26","127.77.0.2/32"]"#;
    let meaning = until_peers(&sim, KEYS[0].0, one).await;
    let vpp = until_session(&lab, true).await;

    // The public key is there for others, the private one for nobody.
    let published = vpp["wireguard"]["public-key"].as_str().unwrap().to_owned();
    let status = std::fs::read_to_string(lab.path("state/node-status.yaml")).unwrap();
    assert!(status.contains(&format!("projectcalico.org/WireguardPublicKey: \"{published}\"")), "{status}");
    let file = lab.path("state/wireguard.key");
    assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let private = std::fs::read_to_string(&file).unwrap();
    for told in [vpp.to_string(), status, agent.log(), meaning.to_string()] {
        assert!(!told.contains(private.trim()), "the private key shows: {told}");
    }
    let text = lab.show("agent.sock", &["vpp"]).await;
    assert!(text.contains("established") && text.contains(&published), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    // An agent that is killed finds all of it again, and changes nothing.
    let added = |sim: &SimHandle| sim.control().carried_out().get("wireguard_peer_add").copied();
    let before = added(&sim);
    agent.kill().await;
    let agent = lab.agent().await;
    lab.converged().await;
    until_session(&lab, true).await;
    assert_eq!((sim.control().meaning(), added(&sim)), (meaning.clone(), before));
    // A VPP that lost everything gets it again, under the same key.
    sim.control().restart();
    sim.control().wireguard_peer(remote, Some([KEYS[0].0; 32]));
    sim.control().until_meaning(|now| *now == meaning).await;
    until_session(&lab, true).await;

    // The neighbour goes away, and comes back with another key.
    sim.control().wireguard_peer(remote, None);
    until_session(&lab, false).await;
    sim.control().wireguard_peer(remote, Some([KEYS[1].0; 32]));
    neighbour(&lab, KEYS[1].1);
    until_peers(&sim, KEYS[1].0, one).await;
    until_session(&lab, true).await;

    // Another port is another interface; off is as it was before.
    felix(&lab, "{wireguardEnabled: true, wireguardListeningPort: 1000}");
    sim.control()
        .until_meaning(|meaning| {
            let text = meaning["interfaces"].to_string();
            text.contains("port 1000") && !text.contains("port 51820")
        })
        .await;
    felix(&lab, "{}");
    sim.control()
        .until_meaning(|meaning| {
            let text = meaning["interfaces"].to_string();
            peers(meaning).is_empty() && !text.contains("wireguard") && text.contains("ipip")
        })
        .await;
    let vpp = lab.converged().await;
    assert_eq!(vpp["wireguard"], Value::Null);
    let status = std::fs::read_to_string(lab.path("state/node-status.yaml")).unwrap();
    assert!(status.contains("projectcalico.org/WireguardPublicKey: \"\""), "{status}");
    drop(agent);
}

#[tokio::test]
async fn a_vpp_without_the_plugin_says_so_and_the_rest_goes_on() {
    let lab = Lab::new();
    let mut sim = vpp_sim::Sim::builder(lab.path("vpp.sock")).interface("host-eth0", &["127.77.0.1/24"]);
    for message in ["wireguard_interface_create", "wireguard_interface_dump", "wireguard_peers_dump"] {
        sim = sim.without(message);
    }
    let sim = sim.spawn().unwrap();
    felix(&lab, "wireguardEnabled: true");
    neighbour(&lab, KEYS[0].1);
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    let vpp = until("the interface is blocked", || async {
        let vpp = lab.try_ask("agent.sock", &["vpp"]).await?;
        let text = vpp["objects"].to_string();
        if text.contains("this VPP has no wireguard_interface_create") {
            Ok(vpp)
        } else {
            Err(vpp.to_string())
        }
    })
    .await;
    assert_eq!(vpp["converged"], false);
    sim.control().until_meaning(|meaning| meaning.to_string().contains("203.0.113.0/24")).await;
}
