//! Each object of each provider is refused by VPP for ever, one at a time: that is visible with its cause and with its next try,
//! it is tried on with growing pauses, nothing is held back that doesn't need it, and all is well once VPP gives in.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::time::Duration;

use agent_core::config::IpsecConfig;
use agent_core::desired::VppKey;
use agent_core::explain::ObjectStanding;
use agent_core::model::{
    Encapsulation, FelixConfig, FelixConfigName, Node, OwnSid, PerFamily, Pool, Psk, PublicKey, Sids,
    SrBehavior, SrKey,
};
use agent_core::plan::{NatAction, Retval, VppAction, VppFailure};
use agent_core::{Engine, Event, Srv6Config};
use bgp_core::rib::{Originator, SrPolicyPath};
use world::{Best, ME, World};

/// Carried flat whatever carries the others, so it needs nothing but our FIB source.
const OUTSIDE: &str = "172.16.0.0/16";
const POD: &str = "10.1.0.0/26";
const POD6: &str = "fd00:1::/122";

/// This node and two others, a pool of each family.
fn cluster(world: &mut World, pool: impl Fn(Pool) -> Pool) {
    let node = |ipv4: &str, ipv6: &str, key: u8| Node {
        ipv4: Some(ipv4.parse().unwrap()),
        ipv6: Some(ipv6.parse().unwrap()),
        wireguard: PerFamily {
            v4: Some(PublicKey([key; 32])).filter(|_| key > 0),
            v6: Some(PublicKey([key + 100; 32])).filter(|_| key > 0),
        },
        ..Node::default()
    };
    let nodes = &mut world.cluster.nodes;
    nodes.insert(ME.into(), node("192.0.2.1/24", "2001:db8::1/64", 0));
    nodes.insert("far".into(), node("198.51.100.2/24", "2001:db8:9::2/64", 2));
    nodes.insert("other".into(), node("198.51.100.3/24", "2001:db8:9::3/64", 3));
    for (name, cidr) in [("pods", "10.1.0.0/16"), ("pods6", "fd00:1::/32")] {
        world.cluster.pools.insert(name.into(), pool(Pool::new(cidr.parse().unwrap())));
    }
    let via = |hop: &str| Best::Via(vec![hop.parse().unwrap()]);
    for (prefix, hop) in [
        (OUTSIDE, "192.0.2.254"),
        (POD, "198.51.100.2"),
        ("10.1.1.0/26", "198.51.100.3"),
        (POD6, "2001:db8:9::2"),
    ] {
        world.cluster.rib.insert(prefix.parse().unwrap(), via(hop));
    }
}

fn flat(world: &mut World) {
    cluster(world, |pool| pool);
}

fn ipip(world: &mut World) {
    cluster(world, |pool| Pool { ipip: Encapsulation::Always, ..pool });
}

fn vxlan(world: &mut World) {
    cluster(world, |pool| Pool { vxlan: Encapsulation::Always, ..pool });
}

fn wireguard(world: &mut World) {
    ipip(world);
    let on = PerFamily { v4: Some(true), v6: Some(true) };
    let felix = FelixConfig { wireguard_enabled: on, ..FelixConfig::default() };
    world.cluster.felix.insert(FelixConfigName::Default, felix);
}

fn ipsec(world: &mut World) {
    ipip(world);
    let psk = Psk::new(b"of all nodes".to_vec());
    world.config.ipsec = Some(IpsecConfig { psk, async_threads: 1, ..IpsecConfig::default() });
    world.vpp.ike_peer("198.51.100.2", Some("of all nodes"));
    world.vpp.ike_peer("198.51.100.3", Some("of all nodes"));
}

fn srv6(world: &mut World) {
    cluster(world, |pool| pool);
    let own = |sid: &str, bsid: &str| OwnSid { sid: sid.parse().unwrap(), bsid: bsid.parse().unwrap() };
    let sids = Sids { dt4: own("fd00:a:1::4", "fd00:b::14"), dt6: own("fd00:a:1::6", "fd00:b::16") };
    world.config.srv6 = Some(Srv6Config {
        localsid_pool: "fd00:a::/32".parse().unwrap(),
        policy_pool: "fd00:b::/64".parse().unwrap(),
        sids: Some(sids),
    });
    for (behavior, sid, bsid) in
        [(SrBehavior::Dt4, "fd00:a:2::4", "fd00:b::24"), (SrBehavior::Dt6, "fd00:a:2::6", "fd00:b::26")]
    {
        let endpoint = "2001:db8:9::2".parse().unwrap();
        let key = SrKey { endpoint, color: behavior.color(), distinguisher: 0 };
        let path = own(sid, bsid).candidate_path(behavior);
        world.cluster.policies.insert(key, SrPolicyPath { path, originator: Originator::default() });
    }
    // Under SRv6 what IPv6 next hops lead to is encapsulated.
    world.cluster.rib.insert(POD.parse().unwrap(), Best::Via(vec!["2001:db8:9::2".parse().unwrap()]));
}

type Scenario = (&'static str, fn(&mut World));

const SCENARIOS: &[Scenario] = &[
    ("flat", flat),
    ("ipip", ipip),
    ("vxlan", vxlan),
    ("wireguard", wireguard),
    ("ipsec", ipsec),
    ("srv6", srv6),
];

fn prepared(scenario: Scenario) -> World {
    let mut world = World::new();
    scenario.1(&mut world);
    world.engine = Engine::new(world.config.clone());
    world
}

fn started(scenario: Scenario, refused: Option<VppAction>) -> World {
    let mut world = prepared(scenario);
    world.refused = refused;
    world.connect();
    world.list();
    world.converge();
    world.run();
    world
}

/// Everything else stands on these.
fn is_base(action: &VppAction) -> bool {
    matches!(action, VppAction::AddFibSource)
}

fn one_refusal(scenario: Scenario, action: &VppAction) {
    let what = format!("{}: {action:?} is refused", scenario.0);
    let mut world = started(scenario, Some(action.clone()));
    let status = world.engine.status();
    let report = status.vpp.as_ref().unwrap();
    assert!(!status.ready(), "{what}");
    assert!(!report.blocked.is_empty(), "{what}: nothing is said of it");
    let culprit = report.blocked.iter().find(|blocked| blocked.reason == "VPP answered -9999");
    let culprit = culprit.unwrap_or_else(|| panic!("{what}: {:?}", report.blocked));
    assert!(culprit.attempts > 0, "{what}: {culprit:?}");
    for blocked in &report.blocked {
        assert_eq!(blocked.cause, culprit.cause, "{what}: {blocked:?}");
        assert_eq!(blocked.next_try, culprit.next_try, "{what}: {blocked:?}");
        assert!(blocked.next_try.is_some_and(|at| at > world.now), "{what}: {blocked:?}");
    }
    if let VppKey::Object(_) = culprit.object {
        let listed = world.engine.objects();
        let listed = listed.iter().find(|listed| listed.object == culprit.object).unwrap();
        assert!(listed.wanted && listed.standing == ObjectStanding::Blocked, "{what}: {listed:?}");
        assert_eq!((listed.attempts, listed.next_try), (culprit.attempts, culprit.next_try), "{what}");
    }
    // What doesn't need it is there.
    let is_outside = matches!(action, VppAction::PutRoute { prefix, .. } if prefix.to_string() == OUTSIDE);
    let outside = world.vpp.routes.keys().any(|key| key.prefix.to_string() == OUTSIDE);
    assert_eq!(outside, !is_base(action) && !is_outside, "{what}");
    let mut pauses = Vec::new();
    for _ in 0..20 {
        let at = world.engine.deadline().unwrap();
        pauses.push(at.saturating_since(world.now));
        world.now = at;
        world.event(Event::Tick);
        world.run();
    }
    assert!(pauses.is_sorted() && pauses.last() == Some(&Duration::from_secs(30)), "{what}: {pauses:?}");
    world.refused = None;
    world.settle();
    assert!(world.engine.status().ready(), "{what}: {:?}", world.engine.status());
    let mut untouched = started(scenario, None);
    untouched.settle();
    assert_eq!(world.vpp.canonical(), untouched.vpp.canonical(), "{what}");
}

#[test]
fn whatever_vpp_refuses_for_ever_holds_back_only_what_needs_it() {
    for scenario in SCENARIOS {
        let world = started(*scenario, None);
        assert!(world.engine.status().ready(), "{}: {:?}", scenario.0, world.engine.status());
        let actions: Vec<VppAction> =
            world.log.iter().filter(|action| !matches!(action, VppAction::Dump)).cloned().collect();
        assert!(actions.len() > 8, "{}: {actions:?}", scenario.0);
        for action in actions {
            one_refusal(*scenario, &action);
        }
    }
}

/// What VPP refuses for its value is tried again when all is read anew; that is said, too.
#[test]
fn a_value_that_is_refused_is_tried_again_with_the_next_audit() {
    let mut world = prepared(("ipip", ipip));
    world.config.vpp.as_mut().unwrap().audit = Some(Duration::from_secs(300));
    world.engine = Engine::new(world.config.clone());
    world.broken = |action| match action {
        VppAction::Nat(NatAction::Exclude { .. }) => {
            Some(VppFailure::Rejected(Retval { value: -7, name: "INVALID_VALUE".into() }))
        }
        _ => None,
    };
    world.connect();
    world.list();
    world.converge();
    world.run();
    let report = world.engine.status().vpp.unwrap();
    assert!(!report.blocked.is_empty());
    let due = world.engine.deadline();
    assert!(report.blocked.iter().all(|blocked| blocked.next_try == due), "{:?}", report.blocked);
    world.broken = |_| None;
    world.now = due.unwrap();
    world.event(Event::Tick);
    world.run();
    assert!(world.engine.status().ready());
}

/// What is on its way is told with what becomes of it, and an MTU with its number.
#[test]
fn what_is_on_its_way_is_told() {
    let mut world = prepared(("ipip", ipip));
    world.connect();
    world.list();
    world.converge();
    world.window = 1;
    world.step(1);
    let report = world.engine.status().vpp.unwrap();
    assert!(report.pending.iter().any(|pending| pending.course == agent_core::plan::Course::Coming));
    world.window = 16;
    world.run();
    let report = world.engine.status().vpp.unwrap();
    assert_eq!((&report.pending[..], &report.blocked[..]), (&[][..], &[][..]));
    let value = |name: &str| {
        world.engine.objects().into_iter().find(|object| object.object.to_string() == name).unwrap().value
    };
    assert_eq!(value("mtu of ipip tunnel 192.0.2.1 to 198.51.100.2"), "8980 octets");
    assert_eq!(value("ipip tunnel 192.0.2.1 to 198.51.100.2"), "");
}
