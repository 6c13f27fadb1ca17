//! What a request to VPP and its reply cost the codec, in nanoseconds of this thread on a processor.
#![allow(missing_docs, clippy::expect_used, reason = "criterion's macros; a harness")]

use std::hint::black_box;
use std::net::IpAddr;

use criterion::{Criterion, criterion_group, criterion_main};
use ipnet::IpNet;
use vpp_client::wire::api::ip::{IpRouteAddDelV2Reply, RouteDelete, RouteReplace};
use vpp_client::wire::api::ipip::{IpipAddTunnel, IpipAddTunnelReply};
use vpp_client::wire::api::vxlan::{VxlanAddDelTunnelV3, VxlanTunnel};
use vpp_client::wire::frame::{self, Cut};
use vpp_client::wire::head::{context_at, message_id};
use vpp_client::wire::types::{AddressFamily, FibPath, FibSourceId, FibTarget, SwIfIndex, TableId};
use vpp_client::wire::{Message, Payload, Reply};

use self::processor::Processor;

mod processor;

const SOURCE: FibSourceId = FibSourceId::new(30);

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// From a value to a frame in a buffer that has room.
fn encode(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("encode");
    let mut out = Vec::with_capacity(1 << 16);
    let families = [
        ("IPv4", "10.1.2.0/24", "192.0.2.1", AddressFamily::IP4),
        ("IPv6", "2001:db8:1::/48", "2001:db8::1", AddressFamily::IP6),
    ];
    for (family, prefix, next_hop, number) in families {
        let prefix: IpNet = prefix.parse().expect("a prefix");
        let paths = [
            FibTarget::Recursive(TableId::DEFAULT, address(next_hop)),
            FibTarget::Via(SwIfIndex::new(3), address(next_hop)),
            FibTarget::Attached(SwIfIndex::new(4)),
            FibTarget::Attached(SwIfIndex::new(5)),
        ];
        let paths = paths.map(|target| FibPath::new(target, number).expect("a path").weighted(2));
        for count in [1, 4] {
            group.bench_function(format!("{family} route, paths: {count}"), |b| {
                b.iter(|| {
                    out.clear();
                    let paths = black_box(&paths[..count]);
                    let route = RouteReplace::new(TableId::DEFAULT, black_box(prefix), SOURCE, paths);
                    let route = route.expect("VPP takes it");
                    frame::push(&mut out, |out| route.encode(out));
                });
            });
        }
        group.bench_function(format!("{family} route deleted"), |b| {
            b.iter(|| {
                out.clear();
                let route = RouteDelete::new(TableId::DEFAULT, black_box(prefix), SOURCE);
                let route = route.expect("VPP takes it");
                frame::push(&mut out, |out| route.encode(out));
            });
        });
    }
    let (local, remote) = (address("192.0.2.1"), address("192.0.2.2"));
    group.bench_function("IPIP tunnel", |b| {
        b.iter(|| {
            out.clear();
            let tunnel = IpipAddTunnel::new(black_box(local), black_box(remote), TableId::DEFAULT);
            let tunnel = tunnel.expect("VPP takes it");
            frame::push(&mut out, |out| tunnel.encode(out));
        });
    });
    group.bench_function("VXLAN tunnel", |b| {
        b.iter(|| {
            out.clear();
            let tunnel = VxlanTunnel {
                local: black_box(local),
                remote: black_box(remote),
                port: 4789,
                vni: 4096,
                table: TableId::DEFAULT,
            };
            let tunnel = VxlanAddDelTunnelV3::add(&tunnel, 1).expect("VPP takes it");
            frame::push(&mut out, |out| tunnel.encode(out));
        });
    });
    group.finish();
}

/// From a receive buffer to what a reply says, with what the client does to find whose it is.
fn decode(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("decode");
    let reply = |octets: usize| {
        let mut bytes = Vec::new();
        frame::push(&mut bytes, |out| out.extend((0..octets).map(|octet| u8::from(octet == 1))));
        bytes
    };
    fn read<M: Reply + Message + ?Sized>(bytes: &[u8]) -> bool {
        let Ok(Cut::Frame(payload)) = frame::cut(bytes) else { return false };
        let found = message_id(payload).zip(context_at(payload, 2));
        let good = M::parse(payload).is_ok_and(|reply| reply.retval().ok().is_ok());
        found.is_some() & good
    }
    let (route, tunnel) = (reply(14), reply(14));
    assert!(read::<IpRouteAddDelV2Reply>(&route) && read::<IpipAddTunnelReply>(&tunnel));
    group.bench_function("reply about a route", |b| {
        b.iter(|| read::<IpRouteAddDelV2Reply>(black_box(&route)));
    });
    group.bench_function("reply about a tunnel", |b| {
        b.iter(|| read::<IpipAddTunnelReply>(black_box(&tunnel)));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(Processor);
    targets = encode, decode
}
criterion_main!(benches);
