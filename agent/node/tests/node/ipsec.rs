//! Tunnels that IKEv2 protects, and source translation, as the binary sets them up in a VPP, keeps them over restarts of
//! either, and takes them away.

use std::fs;
use std::net::Ipv4Addr;

use crate::lab::{Lab, until};

const KEY: &str = "swordfish-key";
/// Greater than ours: it begins.
const GREATER: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 2);
/// Smaller than ours: we begin.
const SMALLER: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);

/// A lab with IPsec, whose neighbour has a route behind each of the two.
fn lab() -> Lab {
    let lab = Lab::new();
    let settings = fs::read_to_string(lab.path("agent.yaml")).unwrap();
    let ipsec =
        format!("features: {{ ipsec: true }}\nipsec: {{ psk: {KEY} }}\nservice-prefixes: 10.96.0.0/12\n");
    lab.write("agent.yaml", &(settings + &ipsec));
    let speaker = lab.speaker_file("", &["10.245.7.0/26", "10.245.8.0/26"]);
    let second = "{ prefix: 10.245.8.0/26, next-hop: 127.77.0.2 }";
    assert!(speaker.contains(second));
    lab.write("speaker.yaml", &speaker.replace(second, &second.replace("127.77.0.2", "10.9.9.9")));
    lab
}

#[tokio::test]
async fn tunnels_and_source_translation_survive_restarts_of_either_side() {
    let lab = lab();
    let sim = lab.sim();
    for peer in [GREATER, SMALLER] {
        sim.ike_peer(peer, Some(KEY.as_bytes()));
    }
    let _speaker = lab.speaker().await;
    let agent = lab.agent().await;
    lab.converged().await;
    let meaning = until("both tunnels are up", || async {
        let meaning = sim.control().meaning();
        let profiles =
            meaning["ikev2"].as_array().map_or(0, |all| all.iter().filter(|one| one["up"] == true).count());
        if profiles == 2 { Ok(meaning) } else { Err(meaning.to_string()) }
    })
    .await;
    let text = meaning.to_string();
    for part in ["10.245.7.0/26", "10.245.8.0/26", "pr_127_77_0_1_to_127_77_0_2", "pr_127_77_0_1_to_10_9_9_9"]
    {
        assert!(text.contains(part), "{part}: {meaning:#}");
    }
    let snat = &meaning["snat"];
    assert_eq!((&snat["ip4"], &snat["policy"]), (&"127.77.0.1".into(), &2.into()));
    let excluded = ["10.96.0.0/12", "10.244.0.0/16", "10.245.0.0/16", "127.77.0.1/32"];
    assert_eq!(snat["excluded"], serde_json::json!(excluded));

    // An agent that starts anew adopts what there is.
    let made = |name: &str| sim.control().carried_out().get(name).copied().unwrap_or_default();
    let before = (made("ikev2_profile_add_del"), made("ikev2_initiate_sa_init"));
    agent.kill().await;
    lab.manifest("pools.yaml", &crate::lab::pool("tunnelled", "10.245.0.0/16", "Always"));
    let agent = lab.agent().await;
    lab.converged().await;
    until("the pool that went meanwhile is no longer excluded", || async {
        let now = sim.control().meaning();
        let excluded = now["snat"]["excluded"].to_string();
        if excluded.contains("10.244.0.0/16") { Err(excluded) } else { Ok(()) }
    })
    .await;
    assert_eq!((made("ikev2_profile_add_del"), made("ikev2_initiate_sa_init")), before);

    // So does a VPP that starts anew get everything.
    let before = sim.control().meaning();
    sim.restart();
    for peer in [GREATER, SMALLER] {
        sim.ike_peer(peer, Some(KEY.as_bytes()));
    }
    until("the new VPP is as the old one was", || async {
        let now = sim.control().meaning();
        if now == before { Ok(()) } else { Err(format!("{now:#}\ninstead of\n{before:#}")) }
    })
    .await;
    assert_eq!(sim.death(), None);

    // Whoever takes no part is named.
    sim.ike_peer(SMALLER, None);
    until("the missing node is named", || async {
        let shown = lab.show("agent.sock", &["vpp"]).await;
        if shown.contains("association of ipip tunnel 127.77.0.1 to 10.9.9.9") { Ok(()) } else { Err(shown) }
    })
    .await;
    let shown = lab.ask("agent.sock", &["vpp"]).await.to_string() + &agent.log();
    assert!(!shown.contains(KEY), "the key is shown nowhere");
}

#[tokio::test]
async fn a_responder_whose_tunnel_vpp_took_away_gets_it_again() {
    let lab = lab();
    let sim = lab.sim();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    let tunnel = |there: bool| {
        let sim = sim.control();
        async move {
            until("the tunnel is as it should be", || async {
                let meaning = sim.meaning();
                let found = meaning["interfaces"].to_string().contains("ipip 127.77.0.1 -> 127.77.0.2");
                if found == there { Ok(()) } else { Err(format!("{meaning:#}")) }
            })
            .await;
        }
    };
    tunnel(true).await;
    // A peer with another key fails to authenticate, and VPP deletes the interface.
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    let deleted = || sim.control().carried_out().get("ipip_add_tunnel").copied().unwrap_or_default();
    let before = deleted();
    sim.ike_peer(GREATER, Some(b"another"));
    until("it is made again", || async {
        if deleted() > before { Ok(()) } else { Err(deleted().to_string()) }
    })
    .await;
    tunnel(true).await;
    sim.ike_peer(GREATER, Some(KEY.as_bytes()));
    until("it comes up with its routes", || async {
        let meaning = sim.control().meaning();
        let up = meaning["ikev2"].as_array().into_iter().flatten().any(|one| one["up"] == true);
        let text = meaning.to_string();
        if up && !text.contains("\"dead\":true") && text.contains("10.245.7.0/26") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
}
