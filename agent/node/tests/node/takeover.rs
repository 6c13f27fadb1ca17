//! VPP changes hands: given back to another agent, and taken over from it, while packets go on.

use serde_json::Value;
use vpp_client::wire::api::fib::FibSourceDump;
use vpp_client::wire::api::ip::IpRouteV2Dump;
use vpp_client::wire::types::TableId;
use vpp_client::{Client, ClientSettings};

use crate::lab::{Lab, run};

/// What is routed where, whoever says so, and who says so: prefixes of table 0 and 2 with their sources.
async fn routes(lab: &Lab) -> Vec<(String, bool)> {
    let (client, _notices) = Client::connect(lab.path("vpp.sock"), ClientSettings::default());
    client.ready().await.unwrap();
    let sources = client.dump_all(&FibSourceDump::default()).await.unwrap();
    let named = |name: &str| sources.iter().find(|source| source.src.name.to_str() == name).unwrap().src.id;
    let (ours, api) = (named("peregrine"), named("API"));
    let mut routes = Vec::new();
    for table in [0, 2] {
        let dump = IpRouteV2Dump::new(TableId::new(table), false, None);
        routes = client
            .dump(&dump, routes, move |routes, details| {
                let prefix = details.route.prefix.truncated().unwrap();
                let source = details.route.src;
                // All others are VPP's own.
                if source == api || source == ours {
                    routes.push((format!("{prefix} {table}"), source == api));
                }
            })
            .await
            .unwrap();
    }
    client.close().await;
    routes.sort();
    routes
}

/// The tags of tunnels.
fn tags(meaning: &Value) -> Vec<&str> {
    let all = meaning["interfaces"].as_array().unwrap().iter();
    let tunnels = all.filter(|interface| interface["interface"].as_str().unwrap().starts_with("ipip"));
    tunnels.map(|interface| interface["tag"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn vpp_is_given_back_and_taken_over_without_a_gap() {
    let lab = Lab::new();
    let sim = lab.sim();
    let _speaker = lab.speaker().await;
    let agent = lab.agent().await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    let held = sim
        .control()
        .until_meaning(|meaning| {
            ["203.0.113.0/24", "10.245.7.0/26"].iter().all(|prefix| meaning.to_string().contains(prefix))
        })
        .await;
    let ours = routes(&lab).await;
    assert!(!ours.is_empty() && ours.iter().all(|(_, other)| !other), "{ours:?}");
    assert_eq!(tags(&held), ["peregrine ipip 127.77.0.2"]);

    // While an agent runs nothing is given away behind its back.
    let config = lab.path("agent.yaml");
    let release = ["agent", "--release", "--config", config.to_str().unwrap()];
    let refused = run(&release).await;
    assert!(!refused.status.success());
    assert_eq!(routes(&lab).await, ours);
    agent.kill().await;

    let given = run(&release).await;
    let told = String::from_utf8_lossy(&given.stdout).into_owned();
    assert!(given.status.success(), "{}", String::from_utf8_lossy(&given.stderr));
    assert_eq!(told, format!("given back: {} routes, 1 tunnels\n", ours.len()));
    let theirs = routes(&lab).await;
    let prefixes =
        |routes: &[(String, bool)]| routes.iter().map(|(prefix, _)| prefix.clone()).collect::<Vec<_>>();
    assert_eq!(prefixes(&theirs), prefixes(&ours));
    assert!(theirs.iter().all(|(_, other)| *other), "{theirs:?}");
    assert_eq!(tags(&sim.control().meaning()), [""]);

    // What is theirs is ours again, and the same as before.
    let _agent = lab.agent_with(&["--adopt"]).await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    assert_eq!(routes(&lab).await, ours);
    assert_eq!(sim.control().meaning(), held);
}
