//! SRv6, whole: SR policies and routes from a neighbour to VPP, this node's SIDs to the neighbour, and what happens when a
//! part of it changes, goes away or is read again.

use serde_json::{Value, json};

use crate::lab::{Lab, until};

const SETTINGS: &str = "\
bgp: { mode: v4-only }
features: { srv6: true }
srv6:
  localsid-pool: fd00:a::/64
  policy-pool: fd00:b::/64
  localsid-dt4: fd00:a::1:4
  localsid-dt6: fd00:a::1:6
  bsid-dt4: fd00:b::1:4
  bsid-dt6: fd00:b::1:6
";

/// A route of the neighbour's by its IPv6 address.
const BLOCK: &str = "  - { prefix: 10.244.9.0/26, next-hop: 2001:db8::2 }\n";

/// A policy to the neighbour's node: lists as `weight sid sid`.
fn policy(color: u32, distinguisher: u32, preference: u32, bsid: &str, lists: &[&str]) -> String {
    let behavior = if color == 4 { "End.DT4" } else { "End.DT6" };
    let lists: Vec<String> = lists
        .iter()
        .map(|list| {
            let (weight, sids) = list.split_once(' ').unwrap();
            let mut sids: Vec<String> = sids.split(' ').map(|sid| format!("\"{sid}\"")).collect();
            let last = sids.pop().unwrap();
            sids.push(format!("{{ sid: {last}, behavior: {behavior} }}"));
            format!("{{ weight: {weight}, segments: [{}] }}", sids.join(", "))
        })
        .collect();
    format!(
        "  - sr-policy: {{ distinguisher: {distinguisher}, color: {color}, endpoint: \"2001:db8::2\", preference: {preference}, \
         binding-sid: \"{bsid}\", segment-lists: [{}] }}\n    next-hop: 2001:db8::2\n",
        lists.join(", ")
    )
}

fn lab() -> Lab {
    let lab = Lab::new();
    let settings = std::fs::read_to_string(lab.path("agent.yaml")).unwrap();
    lab.write("agent.yaml", &(settings + SETTINGS));
    lab.manifest("node.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: node-a\n  annotations:\n    projectcalico.org/IPv4Address: 127.77.0.1/24\n    projectcalico.org/IPv6Address: 2001:db8::1/64\n");
    lab
}

/// The neighbour originates this.
fn originate(lab: &Lab, what: &str) {
    let text = lab.speaker_file("", &[]).replace("originate:\n", &format!("originate:\n{what}"));
    let session = "families: [ipv4-unicast, ipv6-srpolicy], extended-next-hop: true, connect-retry: 1";
    lab.write("speaker.yaml", &text.replace("connect-retry: 1", session));
}

/// What VPP holds of SRv6, but for what never changes here.
fn held(meaning: &Value) -> Value {
    json!([meaning["sr"]["policies"], meaning["sr"]["steering"]])
}

fn list(weight: u32, sids: &[&str]) -> Value {
    json!({ "weight": weight, "sids": sids })
}

fn in_vpp(bsid: &str, lists: &[Value]) -> Value {
    json!({ "bsid": bsid, "encap": true, "encap_src": "2001:db8::1", "table_id": 0, "lists": lists })
}

fn steered(prefix: &str, table: u32, bsid: &str) -> Value {
    json!({ "prefix": prefix, "table_id": table, "bsid": bsid })
}

#[tokio::test]
async fn policies_and_routes_become_steering_and_fail_over() {
    let lab = lab();
    let sim = lab.sim();
    let four = policy(4, 0, 11, "fd00:b::2:4", &["12 fd00:a::2:4"]);
    let six = policy(6, 0, 11, "fd00:b::2:6", &["12 fd00:a::2:6"]);
    originate(&lab, &format!("{four}{six}{BLOCK}"));
    let speaker = lab.speaker().await;
    let mut agent = lab.agent().await;
    lab.established("agent.sock").await;
    let expected = json!([
        [
            in_vpp("fd00:b::2:4", &[list(12, &["fd00:a::2:4"])]),
            in_vpp("fd00:b::2:6", &[list(12, &["fd00:a::2:6"])])
        ],
        [steered("10.244.9.0/26", 0, "fd00:b::2:4"), steered("2001:db8::2/128", 2, "fd00:b::2:6")],
    ]);
    let meaning = sim.control().until_meaning(|meaning| held(meaning) == expected).await;
    let sr = &meaning["sr"];
    assert_eq!(sr["encap_source"], "2001:db8::1");
    let sid =
        |sid: &str, behavior: u8| json!({ "sid": sid, "behavior": behavior, "table_id": 0, "target": 0 });
    assert_eq!(sr["localsids"], json!([sid("fd00:a::1:6", 8), sid("fd00:a::1:4", 9)]));

    // The neighbour hears of our SIDs, and that our block is reached by them.
    let told = until("the neighbour hears of our SIDs", || async {
        let routes = lab.try_ask("speaker.sock", &["routes", "loc-rib", "ipv6-srpolicy"]).await?;
        let ours = |route: &&Value| route["prefix"].as_str().is_some_and(|key| key.ends_with("2001:db8::1"));
        let ours: Vec<Value> = routes.as_array().unwrap().iter().filter(ours).cloned().collect();
        if ours.len() == 2 { Ok(ours) } else { Err(routes.to_string()) }
    })
    .await;
    assert_eq!(told[0]["prefix"], "0:4:2001:db8::1");
    assert_eq!(told[0]["paths"][0]["next-hop"], "2001:db8::1");
    lab.heard(&["10.244.1.0/26"]).await;
    let block = lab.ask("speaker.sock", &["routes", "loc-rib", "ipv4-unicast", "10.244.1.0/26"]).await;
    assert_eq!(block[0]["paths"][0]["next-hop"], "2001:db8::1");

    // A person sees it.
    lab.converged().await;
    let shown = lab.show("agent.sock", &["explain", "10.244.9.0/26"]).await;
    for words in ["srv6", "sr policy fd00:b::2:4", "steering of 10.244.9.0/26 table 0"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }

    // A better candidate of two lists takes over, other lists come, and the next candidate is there when it goes.
    let better = policy(4, 1, 200, "fd00:b::2:44", &["1 fd00:a::9 fd00:a::2:4", "3 fd00:a::2:4"]);
    for (candidate, bsid, lists) in [
        (better, "fd00:b::2:44", vec![list(3, &["fd00:a::2:4"]), list(1, &["fd00:a::9", "fd00:a::2:4"])]),
        (
            policy(4, 1, 200, "fd00:b::2:44", &["3 fd00:a::2:4", "2 fd00:a::8 fd00:a::2:4"]),
            "fd00:b::2:44",
            vec![list(3, &["fd00:a::2:4"]), list(2, &["fd00:a::8", "fd00:a::2:4"])],
        ),
        (String::new(), "fd00:b::2:4", vec![list(12, &["fd00:a::2:4"])]),
    ] {
        originate(&lab, &format!("{four}{six}{candidate}{BLOCK}"));
        speaker.signal(rustix::process::Signal::HUP);
        let now = |meaning: &Value| {
            let policies = meaning["sr"]["policies"].as_array().unwrap();
            policies.len() == 2
                && policies.contains(&in_vpp(bsid, &lists))
                && meaning["sr"]["steering"][0] == steered("10.244.9.0/26", 0, bsid)
        };
        sim.control().until_meaning(now).await;
    }
    lab.converged().await;

    // Killed and started again, the agent asks VPP for no change: the SIDs are the same, and all is adopted.
    let changes = |sim: &vpp_sim::SimHandle| {
        let mut carried_out = sim.control().carried_out();
        // Source NAT, which can't be read back, is stated again.
        carried_out.retain(|name, _| name.starts_with("sr_") || name.starts_with("ip_route"));
        carried_out.retain(|name, _| name != &"sr_set_encap_source" && !name.ends_with("_dump"));
        carried_out
    };
    let before = changes(&sim);
    let meaning = sim.control().meaning();
    agent.kill().await;
    agent = lab.agent().await;
    lab.established("agent.sock").await;
    lab.converged().await;
    assert_eq!(changes(&sim), before);
    assert_eq!(sim.control().meaning(), meaning);

    // VPP loses everything and gets it again.
    sim.control().restart();
    sim.control().until_meaning(|now| *now == meaning).await;
    lab.converged().await;

    // The neighbour takes everything back: nothing is left but our own SIDs.
    originate(&lab, "");
    speaker.signal(rustix::process::Signal::HUP);
    let meaning = sim.control().until_meaning(|meaning| held(meaning) == json!([[], []])).await;
    assert_eq!(meaning["sr"]["localsids"].as_array().unwrap().len(), 2);
    lab.converged().await;
    assert_eq!(sim.control().death(), None);
    agent.kill().await;
}
