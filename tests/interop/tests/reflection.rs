//! Route reflection (RFC 4456) with BIRD, FRR and GoBGP: we reflect for them, and they for us.

use interop::OUR_IPV4;
use serde_json::{Value, json};
use test_support::bird::Bird;
use test_support::frr::Frr;
use test_support::gobgp::Gobgp;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, FRR, GOBGP, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

const ASN: u32 = 65010;
const BIRD_IPV4: &str = "192.0.2.2";
const FRR_IPV4: &str = "192.0.2.3";
const GOBGP_IPV4: &str = "192.0.2.4";
const BIRDS: &str = "203.0.113.0/24";
const FRRS: &str = "198.51.100.0/24";
const GOBGPS: &str = "100.64.0.0/24";
const OURS: &str = "100.65.0.0/24";
const CLUSTER: &str = "192.0.2.99";

fn host(lab: &Lab, name: &str, address: &str) -> Host {
    lab.host(name, &[&format!("{address}/24")])
}

/// BIRD with one neighbour; `session` is what its session has beside that.
fn bird(neighbour: &str, session: &str) -> String {
    format!(
        "log stderr all;\nrouter id {BIRD_IPV4};\nprotocol device {{ }}\nprotocol direct {{ ipv4; }}\n\
         protocol static s4 {{ ipv4; route {BIRDS} blackhole; }}\n\
         protocol bgp sut {{ local {BIRD_IPV4} as {ASN}; neighbor {neighbour} as {ASN}; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2; {session}\n\
         \x20 ipv4 {{ import all; export where source = RTS_STATIC; }}; }}\n"
    )
}

/// FRR with some neighbours, of whom `clients` are its clients in the cluster of [`CLUSTER`].
fn frr(neighbours: &[&str], clients: &[&str]) -> String {
    let mut config = format!(
        "log stdout informational\nrouter bgp {ASN}\n bgp router-id {FRR_IPV4}\n bgp cluster-id {CLUSTER}\n \
         no bgp network import-check\n no bgp default ipv4-unicast\n timers bgp 3 9\n"
    );
    for neighbour in neighbours {
        config += &format!(
            " neighbor {neighbour} remote-as {ASN}\n neighbor {neighbour} timers connect 1\n \
             neighbor {neighbour} advertisement-interval 0\n"
        );
    }
    config += &format!(" address-family ipv4 unicast\n  network {FRRS}\n");
    for neighbour in neighbours {
        config += &format!("  neighbor {neighbour} activate\n");
    }
    for client in clients {
        config += &format!("  neighbor {client} route-reflector-client\n");
    }
    config + " exit-address-family\n"
}

fn gobgp() -> String {
    format!(
        "[global.config]\n  as = {ASN}\n  router-id = \"{GOBGP_IPV4}\"\n[[neighbors]]\n  [neighbors.config]\n    \
         neighbor-address = \"{OUR_IPV4}\"\n    peer-as = {ASN}\n  [neighbors.timers.config]\n    connect-retry = 1\n"
    )
}

/// Our file: the speaker's own lines, and neighbours with theirs.
fn ours(own: &str, neighbours: &[(&str, &str)]) -> String {
    let mut file =
        format!("asn: {ASN}\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\"]\n{own}neighbors:\n");
    for (address, with) in neighbours {
        file += &format!("  - {{ address: {address}, asn: {ASN}, connect-retry: 1{with} }}\n");
    }
    file + &format!("originate: [{{ prefix: {OURS} }}]\n")
}

/// What FRR says of a route must hold.
fn frr_says(frr: &Frr, prefix: &str, originator: &str, clusters: &[&str], next_hop: &str) {
    let path = frr.await_route("ipv4", prefix);
    assert_eq!(path["originatorId"], originator, "{path}");
    let list: Vec<&str> =
        path["clusterList"]["list"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(list, clusters, "{path}");
    assert_eq!(path["nexthops"][0]["ip"], next_hop, "{path}");
}

#[test]
fn we_reflect_between_clients_and_others() {
    if !available("interop reflection by us", &[BIRD, FRR, GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        let bird = Bird::start(&host(lab, "bird", BIRD_IPV4), &bird(OUR_IPV4, ""));
        let frr = Frr::start(&host(lab, "frr", FRR_IPV4), &frr(&[OUR_IPV4], &[]));
        let gobgp = Gobgp::start(&host(lab, "gobgp", GOBGP_IPV4), &gobgp());
        gobgp.announce("ipv4", &format!("{GOBGPS} nexthop {GOBGP_IPV4} origin igp med 7 local-pref 70"));
        let client = ", route-reflector-client: true";
        // BIRD and FRR are clients, GoBGP is none.
        let own = format!("cluster-id: {CLUSTER}\n");
        let file = |frrs: &str| ours(&own, &[(BIRD_IPV4, client), (FRR_IPV4, frrs), (GOBGP_IPV4, "")]);
        let mut sut = Speaker::start(&our_host, &file(client));
        bird.await_established("sut");
        frr.await_established(OUR_IPV4);
        gobgp.await_established(OUR_IPV4);

        // FRR has the cluster identifier too, for clients that it has not, and so refuses what we reflect.
        for (prefix, from) in [(FRRS, FRR_IPV4), (GOBGPS, GOBGP_IPV4)] {
            let originator = format!("BGP.originator_id: {from}");
            let cluster = format!("BGP.cluster_list: {CLUSTER}");
            let route = bird.await_route(prefix, &[&originator, &cluster]);
            assert!(route.contains(&format!("BGP.next_hop: {from}")), "{route}");
        }
        let route = bird.await_route(GOBGPS, &["BGP.local_pref: 70"]);
        assert!(route.contains("BGP.med: 7"), "{route}");
        bird.await_route(OURS, &[]);
        for (prefix, from) in [(BIRDS, BIRD_IPV4), (FRRS, FRR_IPV4)] {
            let route = gobgp.await_route("ipv4", prefix);
            let attributes = route["attrs"].as_array().expect("attributes");
            for expected in [
                json!({ "type": 3, "nexthop": from }),
                json!({ "type": 9, "value": from }),
                json!({ "type": 10, "value": [CLUSTER] }),
            ] {
                assert!(attributes.contains(&expected), "{expected} in {route}");
            }
        }
        frr.await_route("ipv4", OURS);
        frr.await_no_route("ipv4", BIRDS);

        // With an identifier that nobody else has, FRR uses it.
        let file = |frrs: &str| ours("", &[(BIRD_IPV4, client), (FRR_IPV4, frrs), (GOBGP_IPV4, "")]);
        sut.reload(&file(client));
        frr_says(&frr, BIRDS, BIRD_IPV4, &[OUR_IPV4], BIRD_IPV4);
        frr_says(&frr, GOBGPS, GOBGP_IPV4, &[OUR_IPV4], GOBGP_IPV4);
        // One client fewer: FRR is told of clients only, and clients still of it; nobody's session ends.
        sut.reload(&file(""));
        frr.await_no_route("ipv4", GOBGPS);
        frr_says(&frr, BIRDS, BIRD_IPV4, &[OUR_IPV4], BIRD_IPV4);
        gobgp.await_no_route("ipv4", FRRS);
        bird.await_route(FRRS, &[&format!("BGP.originator_id: {FRR_IPV4}")]);
        for peer in [BIRD_IPV4, FRR_IPV4, GOBGP_IPV4] {
            assert_eq!(sut.await_established(peer)["established-transitions"], 1);
        }
    });
}

/// Waits until we refuse BIRD's route, as FRR reflects it, for its cluster, or do not.
fn refused(sut: &Speaker, refused: bool) {
    wait::until("our verdict on what FRR reflects", || {
        let asked = ["routes", "adj-rib-in", "ipv4-unicast", BIRDS, "--neighbor", FRR_IPV4];
        let routes = sut.try_ask(&asked)?;
        let why = routes[0]["paths"][0]["rejected"].as_str().unwrap_or_default();
        if why.contains("cluster") == refused { Ok(()) } else { Err(routes.to_string()) }
    });
}

#[test]
fn frr_reflects_and_a_loop_through_our_cluster_is_refused() {
    if !available("interop reflection by frr", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        let bird = Bird::start(&host(lab, "bird", BIRD_IPV4), &bird(FRR_IPV4, ""));
        let both = [OUR_IPV4, BIRD_IPV4];
        let frr = Frr::start(&host(lab, "frr", FRR_IPV4), &frr(&both, &both));
        let mut sut = Speaker::start(&our_host, &ours("", &[(FRR_IPV4, "")]));
        bird.await_established("sut");
        frr.await_established(OUR_IPV4);
        let route = sut.await_route("ipv4-unicast", BIRDS);
        assert_eq!(route["paths"][0]["next-hop"], BIRD_IPV4, "{route}");
        bird.await_route(OURS, &[&format!("BGP.originator_id: {OUR_IPV4}")]);

        // As a reflector of the same cluster we have no use for it.
        sut.reload(&ours(&format!("cluster-id: {CLUSTER}\n"), &[(FRR_IPV4, "")]));
        refused(&sut, true);
        sut.reload(&ours("", &[(FRR_IPV4, "")]));
        refused(&sut, false);
        sut.await_route("ipv4-unicast", BIRDS);
        assert_eq!(sut.await_established(FRR_IPV4)["established-transitions"], 1);
    });
}

#[test]
fn bird_reflects_for_us_as_we_for_it() {
    if !available("interop reflection by bird and us", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let our_host = host(lab, "sut", OUR_IPV4);
        // Each takes the other for its client: two clusters.
        let session = format!("rr client; rr cluster id {CLUSTER};");
        let config = bird(OUR_IPV4, &session).replace("where source = RTS_STATIC", "all");
        let bird = Bird::start(&host(lab, "bird", BIRD_IPV4), &config);
        let frr =
            Frr::start(&host(lab, "frr", FRR_IPV4), &frr(&[OUR_IPV4], &[]).replace(CLUSTER, "192.0.2.98"));
        let client = ", route-reflector-client: true";
        let sut = Speaker::start(&our_host, &ours("", &[(BIRD_IPV4, client), (FRR_IPV4, client)]));
        bird.await_established("sut");
        frr.await_established(OUR_IPV4);
        frr_says(&frr, BIRDS, BIRD_IPV4, &[OUR_IPV4], BIRD_IPV4);
        let originator = format!("BGP.originator_id: {FRR_IPV4}");
        bird.await_route(FRRS, &[&originator, &format!("BGP.cluster_list: {OUR_IPV4}")]);
        sut.await_route("ipv4-unicast", BIRDS);
    });
}
