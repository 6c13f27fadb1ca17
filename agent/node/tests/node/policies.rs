//! `peregrine policies`, and `peregrine check` with the routes of a table or of the running process.

use serde_json::json;

use crate::lab::{Lab, run, until};

/// A BGPFilter with these rules of `importV4`.
fn filter(rules: &str) -> String {
    format!(
        "apiVersion: projectcalico.org/v3\nkind: BGPFilter\nmetadata: {{ name: f }}\nspec:\n  importV4: [{rules}]\n"
    )
}

#[tokio::test]
async fn of_the_agent_with_their_objects_and_what_others_would_change() {
    let lab = Lab::new();
    // Through which interface a route leaves depends on pools, which the file alone does not have.
    let rule = "{ action: Reject, cidr: 10.245.0.0/16, matchOperator: In, interface: tunl0 }";
    lab.manifest("filter.yaml", &filter(rule));
    lab.manifest("peer.yaml", &lab.peer_manifest("  filters: [f]\n"));
    let _sim = lab.sim();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    lab.established("agent.sock").await;
    until("both routes are there", || async {
        let routes = lab.try_ask("agent.sock", &["routes", "adj-rib-in"]).await?.to_string();
        let both = routes.contains("203.0.113.0/24") && routes.contains("10.245.7.0/26");
        if both { Ok(()) } else { Err(routes) }
    })
    .await;

    let policies = lab.ask("agent.sock", &["policies"]).await;
    let neighbor = &policies["neighbors"][0];
    assert_eq!(neighbor["import"], json!({ "policies": ["import-f"], "default": "accept" }));
    let import = policies["policies"].as_array().unwrap().iter().find(|policy| policy["name"] == "import-f");
    let rule = &import.unwrap()["statements"][0];
    assert_eq!(rule["label"], "BGPFilter f, importV4 rule 1");
    assert_eq!(
        (rule["if"][1].as_str(), rule["then"].as_str()),
        (Some("prefix in 10.245.0.0/16 le 32"), Some("reject"))
    );
    let text = lab.show("agent.sock", &["policies"]).await;
    assert!(text.contains("    1 BGPFilter f, importV4 rule 1\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    // The other way round: what is rejected would be accepted, with another community, and the reverse.
    let other = "{ action: Reject, cidr: 203.0.113.0/24, matchOperator: Equal }, \
                 { action: Accept, operations: [{ addCommunity: { value: '65000:1' } }] }";
    lab.write("other.yaml", &filter(other));
    let file = lab.path("other.yaml");
    let live = lab.ask("agent.sock", &["check", "--live", file.to_str().unwrap()]).await;
    assert_eq!(live["problems"], json!([]));
    let [outcome] = &live["routes"].as_array().unwrap()[..] else { panic!("{live}") };
    assert_eq!((&outcome["object"], &outcome["direction"]), (&json!("BGPFilter f"), &json!("import")));
    assert_eq!(
        outcome["rules"].as_array().unwrap().iter().map(|rule| &rule["prefixes"]).collect::<Vec<_>>(),
        [&json!(["203.0.113.0/24"]), &json!(["10.245.7.0/26"])]
    );
    let [change] = &live["changes"].as_array().unwrap()[..] else { panic!("{live}") };
    assert_eq!((&change["direction"], &change["paths"]), (&json!("import"), &json!(2)));
    assert_eq!(change["accepted"], json!({ "paths": 1, "prefixes": ["10.245.7.0/26"] }));
    assert_eq!(change["rejected"], json!({ "paths": 1, "prefixes": ["203.0.113.0/24"] }));
    assert_eq!(change["changed"]["paths"], 0);
    let text = lab.show("agent.sock", &["check", "--live", file.to_str().unwrap()]).await;
    assert!(text.contains("of 2 paths 1 more would be accepted, 1 rejected, 0 changed"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // What is in force changes nothing, and is still in force.
    let same = lab.path("manifests/filter.yaml");
    let live = lab.ask("agent.sock", &["check", "--live", same.to_str().unwrap()]).await;
    assert_eq!(live["changes"], json!([]));
    let routes = lab.ask("agent.sock", &["routes", "10.245.7.0/26"]).await.to_string();
    assert!(routes.contains("import policy"), "{routes}");
}

#[tokio::test]
async fn of_a_speaker_alone_and_on_a_recorded_table() {
    let policies = |local_pref: u32| {
        format!(
            "policies:\n  inward: {{ statements: [{{ if: {{ prefixes: theirs }}, set: {{ local-pref: {local_pref} }}, then: accept }}], \
             default: reject }}\nsets: {{ prefixes: {{ theirs: [10.244.0.0/16 le 32] }} }}\n"
        )
    };
    let lab = Lab::new();
    let file = |local_pref| {
        lab.speaker_file(&policies(local_pref), &["203.0.113.0/24"])
            .replace("connect-retry: 1", "connect-retry: 1, import: inward")
    };
    lab.write("speaker.yaml", &file(200));
    let _sim = lab.sim();
    let _speaker = lab.speaker().await;
    let _agent = lab.agent().await;
    lab.established("speaker.sock").await;
    lab.heard(&["10.244.1.0/26"]).await;
    lab.write("other.yaml", &file(300));
    let other = lab.path("other.yaml");
    let live = lab.ask("speaker.sock", &["check", "--live", other.to_str().unwrap()]).await;
    let [change] = &live["changes"].as_array().unwrap()[..] else { panic!("{live}") };
    assert_eq!(change["changed"], json!({ "paths": 1, "prefixes": ["10.244.1.0/26"] }));
    assert_eq!((&change["accepted"]["paths"], &change["rejected"]["paths"]), (&json!(0), &json!(0)));

    let (table, socket) = (lab.path("table.mrt"), lab.path("speaker.sock"));
    let words =
        ["routes", "adj-rib-in", "--mrt", table.to_str().unwrap(), "--socket", socket.to_str().unwrap()];
    assert!(run(&words).await.status.success());
    let words = ["check", "--routes", table.to_str().unwrap(), "-v", other.to_str().unwrap()];
    let output = run(&words).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with(
            "policy inward, import, ipv4-unicast: 1 paths, 1 accepted, 0 rejected, 0 undecided; 1 changed\n"
        ),
        "{text}"
    );
    assert!(text.contains("  statement 1: 10.244.1.0/26\n"), "{text}");
    // A table that is cut off is said to be, and what was read is shown.
    let whole = std::fs::read(&table).unwrap();
    std::fs::write(&table, &whole[..whole.len() - 1]).unwrap();
    let output = run(&words).await;
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("record 2 at octet") && said.contains("the file ends inside it"), "{said}");
    // One that has no routes is no want of policies.
    std::fs::write(&table, "").unwrap();
    let output = run(&words).await;
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is no route to try them on"), "{said}");
    std::fs::remove_file(&table).unwrap();
    assert_eq!(run(&words).await.status.code(), Some(2));
}
