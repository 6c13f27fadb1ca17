//! Many routes: added in windows as a client with 200 requests in flight does, dumped, and deleted again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod wire;

use std::net::Ipv4Addr;
use std::time::Instant;

use ipnet::{IpNet, Ipv4Net};
use vpp_sim::Sim;
use vpp_wire::api::ip::{IpRouteAddDelV2, RouteDelete, RouteReplace};
use vpp_wire::types::{AddressFamily, FibPath, FibSourceId, FibTarget, SwIfIndex, TableId};
use vpp_wire::{ClientIndex, Context, Message, MsgId, Payload, frame, head};
use wire::{Peer, payload_u32};

const ROUTES: u32 = 100_000;
const WINDOW: u32 = 200;

fn net(number: u32) -> IpNet {
    Ipv4Net::new(Ipv4Addr::from((10 << 24) + (number << 8)), 24).unwrap().into()
}

/// Sends requests in windows and checks the answers; seconds taken.
async fn windows(peer: &mut Peer, request: impl Fn(u32, &mut Vec<u8>)) -> f64 {
    let id = MsgId::new(peer.id(IpRouteAddDelV2::DESCRIPTOR.name.name()));
    let client = ClientIndex::new(peer.handle);
    let start = Instant::now();
    let mut frames = Vec::new();
    for window in 0..ROUTES / WINDOW {
        frames.clear();
        for number in window * WINDOW..(window + 1) * WINDOW {
            frame::push(&mut frames, |out| {
                let at = out.len();
                request(number, out);
                assert!(head::address(&mut out[at..], id, client, Context::new(number)));
            });
        }
        peer.send_raw(&frames).await;
        let answers = peer.read_bytes(WINDOW as usize * 30).await;
        for (answer, number) in answers.chunks_exact(30).zip(window * WINDOW..) {
            assert_eq!((payload_u32(&answer[16..], 2), payload_u32(&answer[16..], 6)), (number, 0));
        }
    }
    start.elapsed().as_secs_f64()
}

#[tokio::test]
async fn a_full_table_comes_and_goes() {
    let dir = tempfile::tempdir().unwrap();
    let sim =
        Sim::builder(dir.path().join("api.sock")).interface("host-eth0", &["192.0.2.1/24"]).spawn().unwrap();
    let mut peer = Peer::greeted(sim.socket()).await;
    let mut source = vec![200, 0];
    source.extend_from_slice(b"agent");
    source.resize(66, 0);
    assert_eq!(peer.ask("fib_source_add", &source).await[0][10], 26);
    let source = FibSourceId::new(26);
    let path = |last: u8| {
        let hop = Ipv4Addr::new(192, 0, 2, last).into();
        [FibPath::new(FibTarget::Via(SwIfIndex::new(1), hop), AddressFamily::IP4).unwrap()]
    };
    let paths = [path(2), path(3)];
    let before = sim.stats().routes;

    let added = windows(&mut peer, |number, out| {
        let paths = &paths[number as usize % 2];
        RouteReplace::new(TableId::DEFAULT, net(number), source, paths).unwrap().encode(out);
    })
    .await;
    assert_eq!(sim.stats().routes, before + ROUTES as usize);

    let start = Instant::now();
    let dumped = peer.ask("ip_route_v2_dump", &[&[26][..], &[0; 69]].concat()).await.len();
    let dump = start.elapsed().as_secs_f64();
    assert_eq!(dumped, ROUTES as usize);

    let deleted = windows(&mut peer, |number, out| {
        RouteDelete::new(TableId::DEFAULT, net(number), source).unwrap().encode(out);
    })
    .await;
    assert_eq!(sim.stats().routes, before);
    println!(
        "{ROUTES} routes, client and VPP on one thread: {added:.3} s to add, {dump:.3} s to dump, {deleted:.3} s to delete"
    );
}
