//! `peregrine explain` on a node between BIRD and VPP.

use interop::{OUR_ASN, OUR_BLOCK4, OUR_IPV4, PEER_IPV4, PEER_ROUTE4};
use serde_json::{Value, json};
use test_support::bird::Bird;
use test_support::lab::Lab;
use test_support::peregrine::manifest;
use test_support::programs::{BIRD, IP, available};
use test_support::wait;

fn config(routes: &[&str]) -> String {
    let routes: String = routes.iter().map(|route| format!("route {route} blackhole; ")).collect();
    format!(
        "log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; {routes} }}\n\
         protocol bgp sut {{ local {PEER_IPV4} as 65000; neighbor {OUR_IPV4} as {OUR_ASN};\n\
         \x20 connect delay time 1; connect retry time 1; error wait time 1, 2;\n\
         \x20 ipv4 {{ import all; export where source = RTS_STATIC; }}; }}\n"
    )
}

#[test]
fn a_route_of_birds_from_its_arrival_to_vpp() {
    if !available("interop explain", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_000);
        // Inside a pool with tunnels.
        node.apply("pool4.yaml", &manifest::ip_pool("pods-v4", "10.244.0.0/16", "Always"));
        node.start_vpp(&interop::uplink());
        let bird = Bird::start(&tor, &config(&[PEER_ROUTE4, "10.244.9.0/26"]));
        node.start();
        bird.await_established("sut");
        bird.await_route(OUR_BLOCK4, &["BGP.as_path: 64512"]);
        let settled = |prefix: &str| {
            wait::until(&format!("{prefix} is in VPP"), || {
                let life = node.try_ask(&["explain", prefix])?;
                let objects = life["vpp"].as_array().into_iter().flatten();
                let states: Vec<_> = objects.map(|object| &object["state"]).collect();
                let done = !states.is_empty() && states.iter().all(|state| **state == "present");
                if done { Ok(life.clone()) } else { Err(life.to_string()) }
            })
        };

        // An address inside: the longest match, said so.
        let life = settled("203.0.113.7");
        assert_eq!((&life["asked"], &life["prefix"]), (&json!("203.0.113.7/32"), &json!(PEER_ROUTE4)));
        assert_eq!((&life["exact"], &life["decided-by"]), (&json!(false), &json!("only path")), "{life}");
        let path = &life["paths"][0];
        assert_eq!(path["path"]["source"], PEER_IPV4, "{life}");
        assert_eq!(path["import"]["accepted"], true, "{life}");
        let hop = json!({ "address": PEER_IPV4, "weight": 1, "provider": "flat", "reason": "in no pool: routed as it is" });
        assert_eq!(life["connectivity"], json!({ "hops": [hop] }), "{life}");
        let told = |life: &Value| life["peers"].as_array().unwrap()[0].clone();
        assert_eq!(told(&life)["advertised"], false, "{life}");
        assert_eq!(told(&life)["stopped-by"]["reason"], "the best path came from there", "{life}");

        // Into a tunnel, for its pool.
        let life = settled("10.244.9.0/26");
        assert_eq!(life["connectivity"]["pool"], "pods-v4", "{life}");
        assert_eq!(life["connectivity"]["hops"][0]["provider"], "ipip", "{life}");
        assert_eq!(life["connectivity"]["hops"][0]["reason"], "ipipMode is Always", "{life}");
        let route = life["vpp"].as_array().unwrap().last().unwrap();
        let tunnel = format!("into ipip tunnel {OUR_IPV4} to {PEER_IPV4}");
        assert_eq!(route["paths"], json!([tunnel]), "{life}");

        // Our own block, and who hears of it.
        let life = settled(OUR_BLOCK4);
        assert_eq!(life["paths"][0]["path"]["source"], Value::Null, "{life}");
        assert_eq!(told(&life)["advertised"], true, "{life}");
        assert_eq!(told(&life)["paths"][0]["as-path"], OUR_ASN.to_string(), "{life}");
        assert_eq!(life["vpp"][0]["paths"], json!(["drop"]), "{life}");

        // What holds nothing has no life.
        assert!(node.try_ask(&["explain", "198.51.100.0/24"]).unwrap_err().contains("no route to"));
    });
}
