//! What a prefix costs, in nanoseconds of this thread on a processor, so that other load on the machine matters little.
//! `thrpt` is prefixes per second; its inverse is what `benches/README.md` lists.
#![allow(missing_docs, clippy::expect_used, reason = "criterion's macros; a harness")]

use std::hint::black_box;

use bench_core::{World, attributes, nth, table};
use bgp_core::Community;
use bgp_core::command::{Chain, Command, PeerConfig};
use bgp_core::peer_key::PeerKey;
use bgp_core::policy::{Act, Condition, Default, Flow, PolicyDef, PrefixRange, StatementDef};
use bgp_core::rib::AttrStore;
use bgp_core::rib::trie::{Bits, Trie};
use bgp_core::session::RemoteAsn;
use bgp_wire::attr::{self, AttrIter, DecodeCtx};
use bgp_wire::{
    EncodeOptions, FamilySet, Negotiated, PathId, RouteRefresh, UpdateView, UpdateWriter, split_message,
};
use bytes::BytesMut;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

use self::processor::Processor;

mod processor;

/// Prefixes of the larger benchmarks.
const TABLE: u32 = 100_000;

fn neg() -> Negotiated {
    Negotiated { families: FamilySet::UNICAST, four_octet: true, ebgp: true, ..Negotiated::default() }
}

/// The bodies of messages.
fn bodies(messages: &[u8]) -> Vec<&[u8]> {
    let mut rest = messages;
    let mut all = Vec::new();
    while let Ok(Some(frame)) = split_message(rest, 4096) {
        all.push(frame.body);
        rest = &rest[frame.raw.len()..];
    }
    all
}

fn wire(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("wire");
    let octets = table(0..TABLE, Some(0));
    let bodies = bodies(&octets);
    group.throughput(Throughput::Elements(u64::from(TABLE)));
    group.bench_function("decode", |b| {
        b.iter(|| {
            let views = bodies.iter().map(|body| UpdateView::parse(body, &neg()).expect("well-formed"));
            views
                .map(|view| view.announced().fold(0, |sum, (_, prefix)| sum ^ prefix.addr()))
                .fold(0, |a, b| a ^ b)
        });
    });
    let attrs = attributes(0, 0);
    let mut out = BytesMut::new();
    group.bench_function("encode", |b| {
        b.iter(|| {
            out.clear();
            let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
            writer.announce_v4(&attrs, (0..TABLE).map(|n| (PathId::NONE, nth(n)))).expect("there is room")
        });
    });
    group.throughput(Throughput::Elements(1));
    let ctx =
        DecodeCtx { four_octet: true, ebgp: true, reachable: true, classic: true, ..DecodeCtx::default() };
    group.bench_function("attributes of one message", |b| {
        b.iter(|| attr::decode(AttrIter::new(black_box(&attrs)), ctx).expect("well-formed"));
    });
    group.finish();
}

/// Attribute sets: one prefix in each message.
fn interning(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("interning");
    let messages = |sets: u32| {
        let mut out = BytesMut::new();
        let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
        for n in 0..sets {
            writer.announce_v4(&attributes(n, n), [(PathId::NONE, nth(n))]).expect("there is room");
        }
        out
    };
    let octets = messages(10_000);
    let bodies = bodies(&octets);
    let views: Vec<_> =
        bodies.iter().map(|body| UpdateView::parse(body, &neg()).expect("well-formed")).collect();
    group.throughput(Throughput::Elements(views.len() as u64));
    let mut store = AttrStore::new(7);
    for view in &views {
        store.from_update(view).expect("well-formed");
    }
    group.bench_function("hit", |b| {
        b.iter(|| {
            for view in &views {
                let sets = store.from_update(view).expect("well-formed");
                sets.classic.into_iter().for_each(|id| store.release(id, 1));
            }
        });
    });
    group.bench_function("miss", |b| {
        b.iter_with_large_drop(|| {
            let mut store = AttrStore::new(7);
            for view in &views {
                store.from_update(view).expect("well-formed");
            }
            store
        });
    });
    group.finish();
}

fn trie(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("trie");
    let bits = |n: u32| Bits::new(u128::from(nth(n).addr()) << 96, 24);
    let mut trie = Trie::new();
    for n in 0..TABLE {
        trie.insert(bits(n.wrapping_mul(7) % TABLE), n);
    }
    group.throughput(Throughput::Elements(u64::from(TABLE)));
    group.bench_function("longest match of 100,000", |b| {
        b.iter(|| {
            (0..TABLE).filter(|n| trie.longest_match(bits(n.wrapping_mul(31) % TABLE)).is_some()).count()
        });
    });
    group.finish();
}

/// From octets to the table and on to octets.
fn speaker(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("speaker");
    group.sample_size(20);
    group.throughput(Throughput::Elements(u64::from(TABLE)));
    let rounds = [table(0..TABLE, Some(0)), table(0..TABLE, Some(1))];
    let mut turn = 0;
    let mut next = || {
        turn = 1 - turn;
        turn
    };

    let mut world = World::new(2);
    world.say(0, &rounds[0]);
    group.bench_function("churn: a change, passed on", |b| b.iter(|| world.say(0, &rounds[next()])));
    let withdrawn = table(0..TABLE, None);
    group.bench_function("announced and withdrawn, passed on", |b| {
        b.iter(|| {
            world.say(0, &withdrawn);
            world.say(0, &rounds[0]);
        });
    });
    let mut refresh = BytesMut::new();
    RouteRefresh { afi: 1, safi: 1, subtype: RouteRefresh::REQUEST }.encode(&mut refresh);
    group.bench_function("packing: all said again", |b| {
        b.iter(|| {
            let before = world.told;
            world.say(1, &refresh);
            assert!(world.told > before + 4 * u64::from(TABLE));
        });
    });

    // Paths that lose, by MULTI_EXIT_DISC or by the identifier: nothing is passed on.
    let mut world = World::new(3);
    world.say(0, &rounds[0]);
    let told = world.told;
    group.bench_function("decision: a change that stays second", |b| {
        b.iter(|| world.say(1, &rounds[next()]));
    });
    assert_eq!(world.told, told, "nothing is passed on");
    group.finish();
}

/// A hundred rules for prefixes and twenty for communities, of which each that matches adds a community.
fn policy(c: &mut Criterion<Processor>) {
    let mut group = c.benchmark_group("policy");
    group.sample_size(20);
    group.throughput(Throughput::Elements(u64::from(TABLE)));
    let rounds = [table(0..TABLE, Some(0)), table(0..TABLE, Some(1))];
    let mut world = World::new(2);
    let add = |n: u32| vec![Act::AddCommunity(Community(65000 << 16 | n))];
    let prefixes = (0..100_u32).map(|n| {
        let net = ipnet::Ipv4Net::from(nth(n * TABLE / 100)).supernet().expect("it is no default route");
        StatementDef::new(
            vec![Condition::Prefix(vec![PrefixRange::or_longer(net.into())])],
            add(n),
            Flow::Next,
        )
    });
    let communities = (0..20_u32).map(|n| {
        StatementDef::new(vec![Condition::Community(Community(65001 << 16 | n))], add(100 + n), Flow::Next)
    });
    let def = PolicyDef { statements: prefixes.chain(communities).collect(), default: Default::Accept };
    world.command(Command::PutPolicy("rules".into(), def));
    let config =
        PeerConfig { passive: true, import: Chain::named("rules"), ..PeerConfig::new(RemoteAsn::External) };
    world.command(Command::PutPeer(PeerKey::new(std::net::Ipv4Addr::new(192, 0, 2, 2).into()), config));
    world.say(0, &rounds[0]);
    let mut turn = 0;
    group.bench_function("120 rules: a change, passed on", |b| {
        b.iter(|| {
            turn = 1 - turn;
            world.say(0, &rounds[turn]);
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(Processor);
    targets = wire, interning, trie, speaker, policy
}
criterion_main!(benches);
