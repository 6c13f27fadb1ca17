//! What somebody else does to VPP is found and repaired.

use serde_json::Value;
use vpp_client::wire::api::fib::FibSourceDump;
use vpp_client::wire::api::interface::SwInterfaceSetFlags;
use vpp_client::wire::api::ip::RouteDelete;
use vpp_client::wire::api::ipip::{IpipDelTunnel, IpipTunnelDump};
use vpp_client::wire::types::TableId;
use vpp_client::{Client, ClientSettings};

use crate::lab::{Lab, until};

#[tokio::test]
async fn a_tunnel_deleted_behind_our_back_is_repaired_with_its_routes() {
    let lab = Lab::new();
    let sim = lab.sim();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.converged().await;
    let before = sim.control().until_meaning(|meaning| meaning.to_string().contains("10.245.7.0/26")).await;
    let nothing = lab.ask("agent.sock", &["vpp", "--drift"]).await;
    assert_eq!(nothing["audit"]["found"], 0, "{nothing}");

    let (other, _notices) = Client::connect(lab.path("vpp.sock"), ClientSettings::default());
    other.ready().await.unwrap();
    let tunnels = other.dump_all(&IpipTunnelDump::all()).await.unwrap();
    let [tunnel] = &tunnels[..] else { panic!("{} tunnels", tunnels.len()) };
    other.call(&IpipDelTunnel::new(tunnel.tunnel.sw_if_index())).await.unwrap();
    // VPP tells of interfaces that go, so that is noticed without being asked.
    until("VPP is as before", || async {
        let now = sim.control().meaning();
        if now == before { Ok(()) } else { Err(format!("{now:#}\ninstead of\n{before:#}")) }
    })
    .await;
    assert!(!before.to_string().contains("\"dead\":true"));
    lab.converged().await;

    // What isn't noticed by itself is found by asking.
    let sources = other.dump_all(&FibSourceDump::default()).await.unwrap();
    let ours = sources.iter().find(|source| source.src.name.to_str() == "peregrine").unwrap().src.id;
    let route = RouteDelete::new(TableId::DEFAULT, "10.245.7.0/26".parse().unwrap(), ours).unwrap();
    other.call(&route).await.unwrap();
    let text = lab.show("agent.sock", &["vpp", "--drift"]).await;
    assert!(text.contains(": not as they had been put, and put again: 1\n"), "{text}");
    assert!(text.contains("\n  route 10.245.7.0/26 table 0\n"), "{text}");
    assert_eq!(sim.control().meaning(), before);

    // A setting is repaired too.
    let tunnels = other.dump_all(&IpipTunnelDump::all()).await.unwrap();
    let index = tunnels.first().unwrap().tunnel.sw_if_index();
    other.call(&SwInterfaceSetFlags::new(index, false)).await.unwrap();
    let answer: Value = lab.ask("agent.sock", &["vpp", "--drift"]).await;
    assert_eq!(answer["audit"]["found"], 1, "{answer}");
    assert_eq!(sim.control().meaning(), before);
    other.close().await;
}

#[tokio::test]
async fn an_audit_without_vpp_is_refused_at_once() {
    let lab = Lab::new();
    let _agent = lab.agent().await;
    let text = lab.show("agent.sock", &["vpp", "--drift"]).await;
    assert!(text.starts_with("No audit: VPP can't be read now.\n"), "{text}");
}
