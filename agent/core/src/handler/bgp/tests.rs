//! The gate in front of the policies, and best paths. What the policies say is tested from outside, in `tests/calico`.

#![allow(clippy::wildcard_enum_match_arm)]

use bgp_core::command::Chain;
use bgp_core::policy::{self, Library, Route, SetDef, Verdict, eval};
use bgp_core::rib::{AttrId, AttrStore, NextHopSet};
use bgp_core::{NextHop, Nlri};

use super::*;
use crate::model::{Encapsulation, FilterAction, FilterRule, RoutePriority};

fn handler() -> BgpHandler {
    BgpHandler::new(&Config::new("a".into()))
}

/// Whether a block of this node passes the policies of a chain, behind a filter that lets everything out.
fn passes(chain: &[&str], carries: bool) -> bool {
    let mut handler = handler();
    let mut fx = Effects::default();
    handler.carry(carries, &mut fx);
    assert_eq!(fx.bgp, [], "no policy before its sets");
    handler.on(Instant::ZERO, &Change::<PoolName, Pool>::Resync(Vec::new()), &mut fx);
    let all = vec![FilterRule::every(1, FilterAction::Accept(Vec::new()))];
    let filter = Filter { export_v4: all, ..Filter::default() };
    handler.on(Instant::ZERO, &Change::Upsert(FilterName::from("f"), filter), &mut fx);
    let mut library = Library::new();
    for object in own_sets(Family::Ipv4Unicast, &["10.0.0.0/26".parse().unwrap()]) {
        let BgpObject::PrefixSet(name, members) = object else { panic!() };
        library.put_set(&name, &SetDef::Prefixes(members)).unwrap();
    }
    for object in own_sets(Family::Ipv6Unicast, &[]) {
        let BgpObject::PrefixSet(name, members) = object else { panic!() };
        library.put_set(&name, &SetDef::Prefixes(members)).unwrap();
    }
    for edit in fx.bgp {
        match edit {
            BgpEdit::Put(BgpObject::PrefixSet(name, members)) => {
                library.put_set(&name, &SetDef::Prefixes(members)).unwrap();
            }
            BgpEdit::Put(BgpObject::Policy(name, definition)) => {
                library.put_policy(&name, definition).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    let chain = Chain::new(chain.iter().copied(), policy::Otherwise::Reject);
    let mut store = AttrStore::new(1);
    let id = store.intern(&[], None, Default::default);
    let route = Route {
        direction: policy::Direction::Export,
        nlri: "10.0.0.0/26".parse().unwrap(),
        attrs: store.set(id),
        learned: policy::Learned::Local,
        neighbor: "192.0.2.9".parse().unwrap(),
        peer_type: policy::PeerType::External,
        front: &[],
        interfaces: None,
    };
    let pipeline = library.pipeline(&chain.policies, chain.default).unwrap();
    matches!(eval(&pipeline, &route), Verdict::Accept(..))
}

#[test]
fn while_vpp_cannot_forward_nothing_goes_through_us_whatever_filters_say() {
    for chain in [&[EXPORT_POLICY][..], &["export-f", EXPORT_POLICY]] {
        let through = [&[THROUGH_POLICY], chain].concat();
        for carries in [true, false] {
            assert!(passes(chain, carries), "where VPP doesn't matter");
            assert_eq!(passes(&through, carries), carries);
        }
    }
}

#[test]
fn a_filter_that_goes_takes_its_policies_along() {
    let mut handler = handler();
    let gone = |handler: &mut BgpHandler, change| {
        let mut fx = Effects::default();
        handler.on(Instant::ZERO, &change, &mut fx);
        let name = |edit: BgpEdit| match edit {
            BgpEdit::Delete(BgpKey::Policy(name)) => Some(name.to_string()),
            _ => None,
        };
        fx.bgp.into_iter().filter_map(name).collect::<Vec<_>>()
    };
    let f = || FilterName::from("f");
    assert_eq!(gone(&mut handler, Change::Upsert(f(), Filter::default())), [""; 0]);
    assert_eq!(gone(&mut handler, Change::Delete(f())), ["import-f", "export-f"]);
    gone(&mut handler, Change::Upsert(f(), Filter::default()));
    assert_eq!(gone(&mut handler, Change::Resync(Vec::new())), ["import-f", "export-f"]);
    assert_eq!(filter_of(&PolicyName::new("import-f")), Some(f()));
    assert_eq!(filter_of(&PolicyName::new(EXPORT_POLICY)), None);
}

#[test]
fn a_filter_that_is_only_looked_at_is_read_as_if_it_was_in_force() {
    let mut handler = handler();
    let mut fx = Effects::default();
    let f = || FilterName::from("f");
    let pool = Pool { ipip: Encapsulation::Always, ..Pool::new("10.10.0.0/16".parse().unwrap()) };
    handler.on(Instant::ZERO, &Change::Resync(vec![(PoolName::from("p"), pool)]), &mut fx);
    let config = BgpConfig { ipv4_normal_priority: RoutePriority::new(2000), ..BgpConfig::default() };
    handler.on(Instant::ZERO, &Change::Upsert(BgpConfigName::Default, config), &mut fx);
    let rule = FilterRule {
        interface: Glob::parse("tunl0"),
        priority: RoutePriority::new(2000),
        ..FilterRule::every(1, FilterAction::Reject)
    };
    let filter = Filter { import_v4: vec![rule], ..Filter::default() };
    let looked_at = handler.compiled(&f(), &filter);
    assert_eq!(looked_at[0].1.statements.len(), 1, "there is a tunnel");
    let mut fx = Effects::default();
    handler.on(Instant::ZERO, &Change::Upsert(f(), filter), &mut fx);
    let policy = |edit| match edit {
        BgpEdit::Put(BgpObject::Policy(name, definition)) => Some((name, definition)),
        _ => None,
    };
    assert_eq!(fx.bgp.into_iter().filter_map(policy).collect::<Vec<_>>(), looked_at);
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
    let mut handler = handler();
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
    let mut handler = handler();
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
    let mut handler = handler();
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
