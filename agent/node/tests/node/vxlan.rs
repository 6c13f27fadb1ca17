//! VXLAN pools, from a route of a neighbour to VPP, over restarts of both sides and a change of the settings.

use serde_json::Value;

use crate::lab::{Lab, until};

const POOL: &str = "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: { name: wrapped }\n\
                    spec: { cidr: 10.246.0.0/16, vxlanMode: Always }\n";

fn felix(spec: &str) -> String {
    format!(
        "apiVersion: projectcalico.org/v3\nkind: FelixConfiguration\nmetadata: {{ name: default }}\nspec: {spec}\n"
    )
}

/// The tunnel's interface, if it is the only VXLAN tunnel.
fn tunnel(meaning: &Value) -> Option<&Value> {
    let all = meaning["interfaces"].as_array()?;
    let mut tunnels = all.iter().filter(|interface| interface["interface"].to_string().contains("vxlan"));
    tunnels.next().filter(|_| tunnels.next().is_none())
}

#[tokio::test]
async fn a_vxlan_pool_is_carried_and_outlives_restarts() {
    let lab = Lab::new();
    let sim = lab.sim();
    lab.manifest("wrapped.yaml", POOL);
    lab.write("speaker.yaml", &lab.speaker_file("", &["10.246.7.0/26", "10.246.8.0/26"]));
    let _speaker = lab.speaker().await;
    let agent = lab.agent().await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;

    let is_there = |meaning: &Value| {
        ["10.246.7.0/26", "10.246.8.0/26", "127.77.0.2/32"]
            .iter()
            .all(|prefix| meaning.to_string().contains(prefix))
    };
    let meaning = sim.control().until_meaning(is_there).await;
    let interface = tunnel(&meaning).unwrap();
    let name = "vxlan 127.77.0.1 -> 127.77.0.2 vni 4096 ports 4789 4789 in table 0";
    assert_eq!(interface["interface"], name);
    assert_eq!(interface["tag"], "peregrine vxlan 127.77.0.2");
    assert_eq!(
        (&interface["up"], &interface["gso"], &interface["cnat"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!(interface["unnumbered"], "host-eth0");
    assert_eq!(interface["mtu"][0], 8950, "{interface}");
    assert!(!meaning.to_string().contains("\"dead\":true"), "{meaning:#}");
    // Every route names the other end; what people are told says so.
    let told = lab.ask("agent.sock", &["explain", "10.246.7.0/26"]).await.to_string();
    assert!(told.contains("vxlan") && told.contains("vxlanMode is Always"), "{told}");

    // An agent that comes back finds everything as it shall be; so does a VPP that has lost everything.
    agent.kill().await;
    let _agent = lab.agent().await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    assert_eq!(sim.control().meaning(), meaning);
    sim.control().restart();
    sim.control().until_meaning(|now| *now == meaning).await;
    lab.converged().await;

    // The settings of the cluster move the tunnel, and those of the node win over them.
    lab.manifest("felix.yaml", &felix("{ vxlanPort: 8472, vxlanVNI: 7, vxlanMTU: 1400 }"));
    until("the tunnel has moved", || async {
        let meaning = sim.control().meaning();
        match tunnel(&meaning) {
            Some(interface) if interface["interface"].to_string().contains("vni 7 ports 8472") => {
                assert_eq!(interface["mtu"][0], 1400);
                Ok(())
            }
            _ => Err(meaning.to_string()),
        }
    })
    .await;
    std::fs::remove_file(lab.path("manifests/felix.yaml")).unwrap();
    sim.control().until_meaning(|now| *now == meaning).await;
    lab.converged().await;

    // Without its pool the routes are as they are; the tunnel goes after them.
    std::fs::remove_file(lab.path("manifests/wrapped.yaml")).unwrap();
    let without = sim.control().until_meaning(|now| tunnel(now).is_none()).await;
    assert!(without.to_string().contains("10.246.7.0/26"), "{without}");
    assert!(!without.to_string().contains("\"dead\":true"), "{without:#}");
}

#[tokio::test]
async fn a_vpp_without_a_plugin_is_as_good_as_it_can_be() {
    let lab = Lab::new();
    let sim = vpp_sim::Sim::builder(lab.path("vpp.sock")).interface("host-eth0", &["127.77.0.1/24"]);
    let missing = ["feature_cnat_enable_disable", "vxlan_add_del_tunnel_v3", "vxlan_tunnel_v2_dump"];
    let sim = missing.into_iter().fold(sim, vpp_sim::Sim::without).spawn().unwrap();
    lab.manifest("wrapped.yaml", POOL);
    lab.write("speaker.yaml", &lab.speaker_file("", &["10.245.7.0/26", "10.246.7.0/26"]));
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    // IPIP works; VXLAN is blocked, and says by what.
    sim.control().until_meaning(|meaning| meaning.to_string().contains("10.245.7.0/26")).await;
    let vpp = until("what is blocked is told", || async {
        let vpp = lab.try_ask("agent.sock", &["vpp"]).await?;
        if vpp["objects"].to_string().contains("vxlan_add_del_tunnel_v3") {
            Ok(vpp)
        } else {
            Err(vpp.to_string())
        }
    })
    .await;
    assert_eq!(vpp["converged"], false);
    let meaning = sim.control().meaning();
    assert!(!meaning.to_string().contains("10.246.7.0/26"), "never in the clear: {meaning}");
    std::fs::remove_file(lab.path("manifests/wrapped.yaml")).unwrap();
    // What is only an improvement holds nothing back.
    let vpp = lab.converged().await;
    assert!(vpp["objects"].to_string().contains("feature_cnat_enable_disable"), "{vpp}");
}
