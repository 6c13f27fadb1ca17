//! Export policy and best paths.

#![allow(clippy::wildcard_enum_match_arm)]

use bgp_core::policy::{Direction, Learned, Library, Otherwise, PeerType, Route, SetDef, Verdict, eval};
use bgp_core::rib::{AttrId, AttrStore, NextHopSet};
use bgp_core::{NextHop, Nlri};

use super::*;

/// What the built-in rule says about a prefix, with these blocks and pools.
fn exported(blocks: &[&str], pools: &[Pool], prefix: &str) -> bool {
    let through = passes(THROUGH_POLICY, true, blocks, pools, prefix);
    assert_eq!(passes(EXPORT_POLICY, true, blocks, pools, prefix), through, "one rule for all sessions");
    assert_eq!(passes(EXPORT_POLICY, false, blocks, pools, prefix), through, "where VPP doesn't matter");
    assert!(!passes(THROUGH_POLICY, false, blocks, pools, prefix), "through a VPP that can't forward");
    through
}

fn passes(policy: &str, carries: bool, blocks: &[&str], pools: &[Pool], prefix: &str) -> bool {
    let mut handler = BgpHandler::default();
    let mut fx = Effects::default();
    handler.carry(carries, &mut fx);
    assert_eq!(fx.bgp, [], "no policy before its sets");
    let pools = pools.iter().enumerate().map(|(n, pool)| (PoolName::from(n.to_string()), pool.clone()));
    handler.on(Instant::ZERO, &Change::Resync(pools.collect()), &mut fx);
    for of in Family::UNICAST {
        let blocks: Vec<IpNet> =
            blocks.iter().map(|text| text.parse().unwrap()).filter(|net| family(net) == of).collect();
        fx.bgp.push(BgpEdit::Put(block_set(of, &blocks)));
        fx.bgp.push(BgpEdit::Put(host_set(of, &blocks)));
    }
    let mut library = Library::new();
    let mut found = None;
    for edit in fx.bgp {
        match edit {
            BgpEdit::Put(BgpObject::PrefixSet(name, members)) => {
                library.put_set(&name, &SetDef::Prefixes(members)).unwrap();
            }
            BgpEdit::Put(BgpObject::Policy(name, definition)) if name == PolicyName::new(policy) => {
                found = Some((name, definition));
            }
            BgpEdit::Put(BgpObject::Policy(..)) => {}
            other => panic!("{other:?}"),
        }
    }
    let (name, definition) = found.unwrap();
    library.put_policy(&name, definition).unwrap();
    let pipeline = library.pipeline([&name], Otherwise::Reject).unwrap();
    let mut store = AttrStore::new(1);
    let id = store.intern(&[], None, Default::default);
    let route = Route {
        direction: Direction::Export,
        nlri: prefix.parse().unwrap(),
        attrs: store.set(id),
        learned: Learned::Local,
        neighbor: "192.0.2.9".parse().unwrap(),
        peer_type: PeerType::Internal,
        front: &[],
        interfaces: None,
    };
    matches!(eval(&pipeline, &route), Verdict::Accept(..))
}

fn pool(cidr: &str, forbids: bool) -> Pool {
    Pool { disable_bgp_export: forbids, ..Pool::new(cidr.parse().unwrap()) }
}

#[test]
fn blocks_go_out_and_what_is_inside_them_does_not() {
    let pools = [pool("10.0.0.0/16", false), pool("fd00::/48", false)];
    for (prefix, expected) in [
        ("10.0.0.0/26", true),
        ("10.0.0.5/32", false),
        ("10.0.0.0/27", false),
        ("10.0.1.0/26", true),
        ("10.0.1.7/32", true),
        ("10.0.0.0/16", true),
        ("10.0.0.0/15", false),
        ("0.0.0.0/0", false),
        ("203.0.113.0/24", false),
        ("fd00::/122", true),
        ("fd00::5/128", false),
        ("fd00::1:0/122", true),
        ("::/0", false),
    ] {
        assert_eq!(exported(&["10.0.0.0/26", "fd00::/122"], &pools, prefix), expected, "{prefix}");
    }
}

#[test]
fn a_block_outside_every_pool_goes_out_and_one_inside_a_forbidden_pool_does_not() {
    assert!(exported(&["10.9.0.0/26"], &[], "10.9.0.0/26"));
    assert!(!exported(&["10.9.0.0/26"], &[pool("10.9.0.0/16", true)], "10.9.0.0/26"));
    assert!(!exported(&[], &[pool("10.9.0.0/16", true)], "10.9.1.0/26"));
}

#[test]
fn a_block_of_one_address_is_announced_itself() {
    assert!(exported(&["10.9.0.7/32"], &[], "10.9.0.7/32"));
}

fn id() -> AttrId {
    AttrStore::new(1).intern(&[], None, Default::default)
}

fn change(prefix: &str, hops: &[&str]) -> RibEvent {
    let nlri: Nlri = prefix.parse().unwrap();
    let hops: Vec<NextHop> = hops
        .iter()
        .map(|hop| match hop.parse().unwrap() {
            std::net::IpAddr::V4(address) => NextHop::V4(address),
            std::net::IpAddr::V6(global) => {
                NextHop::V6 { global, link_local: Some("fe80::1".parse().unwrap()) }
            }
        })
        .collect();
    let best = (!hops.is_empty()).then(id);
    let hops = NextHopSet::new(hops);
    RibEvent::Change(RibChange {
        seq: 1,
        family: nlri.family(),
        nlri,
        best,
        hops,
        local: false,
        sr_policy: None,
    })
}

#[test]
fn hops_keep_their_weights() {
    let mut handler = BgpHandler::default();
    let hop = |last: u8| NextHop::V4([192, 0, 2, last].into());
    let v6 = |link_local: &str| NextHop::V6 {
        global: "2001:db8::1".parse().unwrap(),
        link_local: Some(link_local.parse().unwrap()),
    };
    let mut weights = |hops: &[(NextHop, u8)]| {
        let set = NextHopSet::weighted(hops.iter().copied());
        handler.hops(&set).iter().map(|hop| (hop.address.to_string(), hop.weight)).collect::<Vec<_>>()
    };
    let expected = [("192.0.2.1".to_owned(), 4), ("192.0.2.2".to_owned(), 1)];
    assert_eq!(weights(&[(hop(2), 1), (hop(1), 4)]), expected);
    // VPP knows the two by one address.
    assert_eq!(weights(&[(v6("fe80::1"), 2), (v6("fe80::2"), 1)]), [("2001:db8::1".to_owned(), 3)]);
}

fn told(handler: &mut BgpHandler, event: &RibEvent) -> Vec<String> {
    let mut fx = Effects::default();
    handler.on(Instant::ZERO, event, &mut fx);
    let text = |hops: &[Hop]| hops.iter().map(|hop| hop.address.to_string()).collect::<Vec<_>>().join(" ");
    fx.then
        .into_iter()
        .flat_map(|event| match event {
            Event::Connectivity(Change::Upsert(key, to)) => {
                vec![format!("{} via {}", key.prefix, text(&to.hops))]
            }
            Event::Connectivity(Change::Delete(key)) => vec![format!("{} gone", key.prefix)],
            Event::Connectivity(Change::Resync(all)) => {
                let all = all.iter().map(|(key, to)| format!("{} via {}", key.prefix, text(&to.hops)));
                ["all:".to_owned()].into_iter().chain(all).collect()
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn best_paths_become_connectivity() {
    let mut handler = BgpHandler::default();
    assert_eq!(told(&mut handler, &change("10.0.0.0/26", &["192.0.2.2"])), ["10.0.0.0/26 via 192.0.2.2"]);
    assert_eq!(
        told(&mut handler, &change("fd00::/122", &["2001:db8::2"])),
        ["fd00::/122 via 2001:db8::2"],
        "a global and a link-local next hop are one"
    );
    assert_eq!(told(&mut handler, &change("10.0.0.0/26", &[])), ["10.0.0.0/26 gone"]);
    let RibEvent::Change(own) = change("10.0.0.0/26", &["192.0.2.2"]) else { panic!() };
    assert_eq!(told(&mut handler, &RibEvent::Change(RibChange { local: true, ..own })), ["10.0.0.0/26 gone"]);
}

#[test]
fn a_stream_that_starts_anew_is_told_as_one_complete_list() {
    let mut handler = BgpHandler::default();
    told(&mut handler, &change("10.0.0.0/26", &["192.0.2.2"]));
    assert_eq!(told(&mut handler, &RibEvent::Resync), Vec::<String>::new());
    for (prefix, hops) in [
        ("10.0.1.0/26", &["192.0.2.2"][..]),
        ("10.0.2.0/26", &["192.0.2.3"]),
        ("10.0.2.0/26", &["192.0.2.4"]),
        ("10.0.1.0/26", &[]),
    ] {
        assert_eq!(told(&mut handler, &change(prefix, hops)), Vec::<String>::new());
    }
    assert_eq!(told(&mut handler, &RibEvent::Replayed), ["all:", "10.0.2.0/26 via 192.0.2.4"]);
    assert_eq!(told(&mut handler, &RibEvent::Replayed), Vec::<String>::new());
    assert_eq!(told(&mut handler, &change("10.0.1.0/26", &["192.0.2.2"])), ["10.0.1.0/26 via 192.0.2.2"]);
}
