//! Equal-cost multipath: two routers tell the agent of one prefix, and VPP gets one route with both of them, in the shares that
//! the link bandwidth communities say.

use interop::{OUR_ASN, OUR_IPV4, PEER_IPV4, PEER_ROUTE4};
use serde_json::{Value, json};
use test_support::bird::Bird;
use test_support::lab::Lab;
use test_support::peregrine::{Node, manifest};
use test_support::programs::{BIRD, IP, available};
use test_support::wait;

/// The second router.
const OTHER: &str = "192.0.2.253";
/// 10 Gbit/s in octets a second, as a floating-point number.
const TEN: &str = "0x4e9502f9";
/// 40 Gbit/s.
const FORTY: &str = "0x4f9502f9";

fn config(address: &str, asn: u32, bandwidth: Option<&str>) -> String {
    // BIRD keeps what is not transitive to itself, so this is the transitive form.
    let add = bandwidth.map(|octets| format!("bgp_ext_community.add((generic, 0x0004fde8, {octets}));"));
    let add = add.unwrap_or_default();
    format!(
        "log stderr all;\nrouter id {address};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {PEER_ROUTE4} blackhole; }}\n\
         protocol bgp sut {{ local {address} as {asn}; neighbor {OUR_IPV4} as {OUR_ASN};\n\
         \x20 connect delay time 1; connect retry time 1; error wait time 1, 2;\n\
         \x20 ipv4 {{ import none; export filter {{ if source != RTS_STATIC then reject; {add} accept; }}; }}; }}\n"
    )
}

/// The next hops of VPP's route, each with its weight.
fn await_hops(node: &Node, wanted: &[(&str, u64)]) {
    let wanted: Value = wanted.iter().map(|(hop, weight)| json!([hop, weight])).collect();
    wait::until(&format!("VPP's route to {PEER_ROUTE4} has {wanted}"), || {
        let state = node.try_vpp_state()?;
        let tables = state["tables"].as_array().into_iter().flatten();
        let mut routes = tables.flat_map(|table| table["routes"].as_array().into_iter().flatten());
        let route = routes.find(|route| route["prefix"] == PEER_ROUTE4);
        let route = route.ok_or_else(|| state.to_string())?;
        let paths = route["paths"].as_array().into_iter().flatten();
        let hops = paths.map(|path| (path["next_hop"].clone(), path["weight"].as_u64().unwrap_or(1)));
        let mut hops: Vec<_> = hops.map(|(address, weight)| json!([address, weight])).collect();
        hops.sort_by_key(Value::to_string);
        if json!(hops) == wanted { Ok(()) } else { Err(route.to_string()) }
    });
}

#[test]
fn two_birds_make_one_route_with_weights() {
    if !available("interop multipath", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut node, tor) = interop::hosts(lab, 65_000);
        // The AS paths differ and are of one length: Calico's BIRD merges such.
        node.apply("peer6.yaml", &manifest::bgp_peer("other", OTHER, 65_001));
        let other = lab.host("other", &[&format!("{OTHER}/24")]);
        node.start_vpp(&interop::uplink());
        let one = Bird::start(&tor, &config(PEER_IPV4, 65_000, Some(TEN)));
        let mut two = Bird::start(&other, &config(OTHER, 65_001, Some(FORTY)));
        node.start();
        one.await_established("sut");
        two.await_established("sut");
        await_hops(&node, &[(OTHER, 4), (PEER_IPV4, 1)]);
        let route = node.await_route("ipv4-unicast", PEER_ROUTE4);
        let marks: Vec<_> = route["paths"].as_array().into_iter().flatten().collect();
        assert_eq!(marks.len(), 2, "{route}");
        assert!(marks.iter().all(|path| path["multipath"] == true), "{route}");
        assert_eq!(route["decided-by"], "router id", "{route}");

        // Without a number for each they share alike.
        two.reconfigure(&config(OTHER, 65_001, None));
        await_hops(&node, &[(OTHER, 1), (PEER_IPV4, 1)]);
        // What is left when one goes, and both when it is back.
        two.kill();
        await_hops(&node, &[(PEER_IPV4, 1)]);
        let two = Bird::start(&other, &config(OTHER, 65_001, Some(TEN)));
        two.await_established("sut");
        await_hops(&node, &[(OTHER, 1), (PEER_IPV4, 1)]);
    });
}
