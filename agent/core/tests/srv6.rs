//! SRv6 from objects and policies to VPP: what is steered where, what happens when policies come, change and go, and that the
//! end is the same whatever goes wrong on the way.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::net::{IpAddr, Ipv6Addr};

use agent_core::model::{
    Affinity, Node, NodeName, OwnSid, Pool, RouteKey, SidList, Sids, SrBehavior, SrKey, TableId,
};
use agent_core::plan::{Srv6Action, VppAction};
use agent_core::{Engine, Srv6Config, Srv6Pools};
use bgp_core::Family;
use bgp_core::command::Command;
use bgp_core::rib::{Originator, SrPolicyPath};
use bgp_core::tunnel_encap::{CandidatePath, EndpointBehavior, Segment, SegmentFlags, SegmentList};
use world::{Best, Cluster, Fate, ME, World};

const B: &str = "2001:db8::2";
const C: &str = "2001:db8::3";

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn via(hops: &[&str]) -> Option<Best> {
    Some(Best::Via(hops.iter().map(|hop| hop.parse::<IpAddr>().unwrap()).collect()))
}

fn route(table: TableId, prefix: &str) -> RouteKey {
    RouteKey { table, prefix: prefix.parse().unwrap() }
}

/// What a node announces of one of its SIDs.
fn announced(endpoint: &str, behavior: SrBehavior, sid: &str, bsid: &str) -> (SrKey, SrPolicyPath) {
    let own = OwnSid { sid: v6(sid), bsid: v6(bsid) };
    let key = SrKey { endpoint: v6(endpoint), color: behavior.color(), distinguisher: 0 };
    (key, SrPolicyPath { path: own.candidate_path(behavior), originator: Originator::default() })
}

fn b4() -> (SrKey, SrPolicyPath) {
    announced(B, SrBehavior::Dt4, "fd00:a:2::4", "fd00:b::24")
}

fn b6() -> (SrKey, SrPolicyPath) {
    announced(B, SrBehavior::Dt6, "fd00:a:2::6", "fd00:b::26")
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    let me = Node {
        ipv4: Some("192.0.2.1/24".parse().unwrap()),
        ipv6: Some("2001:db8::1/64".parse().unwrap()),
        ..Node::default()
    };
    cluster.nodes.insert(NodeName::from(ME), me);
    for (name, cidr) in [
        ("pods4", "10.1.0.0/16"),
        ("pods6", "fd00:1::/32"),
        ("sids", "fd00:a::/32"),
        ("bsids", "fd00:b::/64"),
    ] {
        cluster.pools.insert(name.into(), Pool::new(cidr.parse().unwrap()));
    }
    cluster
        .affinities
        .insert("mine".into(), Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME)));
    cluster
}

/// A world in which nothing has happened.
fn fresh() -> World {
    let mut world = World::new();
    let own = |sid, bsid| OwnSid { sid: v6(sid), bsid: v6(bsid) };
    world.config.srv6 = Some(Srv6Config {
        localsid_pool: "fd00:a::/32".parse().unwrap(),
        policy_pool: "fd00:b::/64".parse().unwrap(),
        sids: Some(Sids { dt4: own("fd00:a:1::4", "fd00:b::14"), dt6: own("fd00:a:1::6", "fd00:b::16") }),
    });
    world.engine = Engine::new(world.config.clone());
    world
}

fn started(cluster: Cluster) -> World {
    let mut world = fresh();
    world.cluster = cluster;
    world.connect();
    world.list();
    world.converge();
    world.settle();
    world
}

/// Node b with both policies and a block of each family.
fn world_with_b() -> World {
    let mut world = started(cluster());
    for (key, path) in [b4(), b6()] {
        world.policy(key, Some(path));
    }
    world.route("10.1.2.0/26", via(&[B]));
    world.route("fd00:1:2::/122", via(&[B]));
    world.settle();
    world.log.clear();
    world
}

fn steering(world: &World) -> Vec<(String, String)> {
    world.vpp.srv6.steering.iter().map(|(key, bsid)| (key.to_string(), bsid.to_string())).collect()
}

fn pairs<const N: usize>(all: [(&str, &str); N]) -> Vec<(String, String)> {
    all.map(|(a, b)| (a.to_owned(), b.to_owned())).into()
}

/// What was asked of VPP, in a word each.
fn asked(world: &World) -> Vec<String> {
    let word = |action: &VppAction| match action {
        VppAction::Srv6(Srv6Action::AddPolicy { bsid, .. }) => format!("add {bsid}"),
        VppAction::Srv6(Srv6Action::ChangePolicy { bsid, .. }) => format!("change {bsid}"),
        VppAction::Srv6(Srv6Action::DelPolicy { bsid }) => format!("del {bsid}"),
        VppAction::Srv6(Srv6Action::Steer { route, bsid }) => format!("steer {} {bsid}", route.prefix),
        VppAction::Srv6(Srv6Action::Unsteer { route }) => format!("unsteer {}", route.prefix),
        VppAction::PutRoute { prefix, .. } => format!("put {prefix}"),
        VppAction::DelRoute { prefix, .. } => format!("del {prefix}"),
        other => format!("{other:?}"),
    };
    world.log.iter().map(word).collect()
}

#[test]
fn what_leads_to_a_node_is_steered_into_its_policies() {
    let mut world = world_with_b();
    assert_eq!(
        steering(&world),
        pairs([
            ("10.1.2.0/26 table 0", "fd00:b::24"),
            ("fd00:1:2::/122 table 0", "fd00:b::26"),
            ("2001:db8::2/128 table 2", "fd00:b::26"),
        ])
    );
    let (source, lists) = &world.vpp.srv6.policies[&v6("fd00:b::24")];
    assert_eq!(*source, v6("2001:db8::1"));
    assert_eq!(lists[..], [SidList { weight: 12, sids: [v6("fd00:a:2::4")].into() }]);
    assert!(world.vpp.tables.contains(&(TableId::PODS, Family::Ipv6Unicast)));
    assert_eq!(world.vpp.routes.keys().copied().collect::<Vec<_>>(), [route(TableId::MAIN, "10.1.7.0/26")]);
    // The last destination takes all with it, downward.
    world.route("fd00:1:2::/122", None);
    world.settle();
    assert_eq!(asked(&world), ["unsteer fd00:1:2::/122"], "the node is still steered");
    world.log.clear();
    world.route("10.1.2.0/26", None);
    world.settle();
    assert_eq!(
        asked(&world),
        ["unsteer 10.1.2.0/26", "unsteer 2001:db8::2/128", "del fd00:b::24", "del fd00:b::26"]
    );
    assert!(world.engine.status().settled());
}

#[test]
fn this_nodes_sids_are_there_and_told() {
    let world = started(cluster());
    assert_eq!(world.vpp.srv6.source, Some(v6("2001:db8::1")));
    let localsids: Vec<_> = world.vpp.srv6.localsids.iter().map(|(sid, of)| (sid.to_string(), *of)).collect();
    assert_eq!(
        localsids,
        [("fd00:a:1::4".to_owned(), SrBehavior::Dt4), ("fd00:a:1::6".to_owned(), SrBehavior::Dt6)]
    );
    assert_eq!(
        world.originations(),
        ["0:4:2001:db8::1", "0:6:2001:db8::1", "10.1.7.0/26"],
        "distinguisher, color, endpoint"
    );
    let Command::PutOrigination(_, policy) = &world.speaker["origination 0:6:2001:db8::1"] else { panic!() };
    assert_eq!(policy.next_hop, Some(v6("2001:db8::1").into()));
    let own = OwnSid { sid: v6("fd00:a:1::6"), bsid: v6("fd00:b::16") };
    assert_eq!(policy.sr_policy.as_deref(), Some(&own.candidate_path(SrBehavior::Dt6)));
    let Command::PutOrigination(_, block) = &world.speaker["origination 10.1.7.0/26"] else { panic!() };
    assert_eq!(block.next_hop, Some(v6("2001:db8::1").into()), "IPv4 is reached by the policy");
}

#[test]
fn another_address_moves_source_policies_and_announcements() {
    let mut world = world_with_b();
    let mut me = world.cluster.nodes[&NodeName::from(ME)].clone();
    me.ipv6 = Some("2001:db8::77/64".parse().unwrap());
    world.node(ME, Some(me.clone()));
    world.settle();
    assert_eq!(world.vpp.srv6.source, Some(v6("2001:db8::77")));
    assert!(world.vpp.srv6.policies.values().all(|(source, _)| *source == v6("2001:db8::77")));
    assert_eq!(world.originations()[..2], ["0:4:2001:db8::77", "0:6:2001:db8::77"]);
    me.ipv6 = None;
    world.node(ME, Some(me));
    world.settle();
    assert_eq!(world.originations(), ["10.1.7.0/26"]);
    let conditions = world.engine.status().conditions;
    assert!(
        conditions.iter().any(|it| it.reason.contains("SRv6 can neither send nor receive")),
        "{conditions:?}"
    );
}

#[test]
fn sessions_carry_policies_and_ipv6_next_hops() {
    let mut world = fresh();
    world.cluster = cluster();
    world.neighbours();
    world.connect();
    world.list();
    world.converge();
    world.settle();
    for (peer, extended) in [("peer 192.0.2.254", true), ("peer 2001:db8::fe", false)] {
        let Command::PutPeer(_, config) = &world.speaker[peer] else { panic!() };
        assert!(config.families.contains(Family::Ipv6SrPolicy), "{peer}");
        assert_eq!(config.extended_next_hop, extended, "{peer}");
    }
    let Command::PutPolicy(_, export) = &world.speaker["policy calico-export"] else { panic!() };
    let labels: Vec<_> = export.statements.iter().filter_map(|it| it.label.as_deref()).collect();
    assert!(labels.contains(&"built-in: SR policy of this node"), "{labels:?}");
}

#[test]
fn a_better_candidate_takes_over_and_the_next_one_after_it_without_a_gap() {
    let mut world = world_with_b();
    let better = SrKey { distinguisher: 7, ..b4().0 };
    let (_, mut path) = announced(B, SrBehavior::Dt4, "fd00:a:2::44", "fd00:b::99");
    path.path.preference = 200;
    world.policy(better, Some(path));
    world.settle();
    assert_eq!(asked(&world), ["add fd00:b::99", "steer 10.1.2.0/26 fd00:b::99", "del fd00:b::24"]);
    world.log.clear();
    world.policy(better, None);
    world.settle();
    assert_eq!(asked(&world), ["add fd00:b::24", "steer 10.1.2.0/26 fd00:b::24", "del fd00:b::99"]);
}

#[test]
fn other_lists_are_one_change_of_the_policy() {
    let mut world = world_with_b();
    let (key, mut path) = b4();
    let last = EndpointBehavior { code: 19, ..EndpointBehavior::default() };
    let segment = |sid, behavior| Segment::Srv6 { flags: SegmentFlags::S, sid: v6(sid), behavior };
    path.path.segment_lists = vec![
        SegmentList {
            weight: 3,
            segments: vec![segment("fd00:a:9::1", None), segment("fd00:a:2::4", Some(last))],
        },
        SegmentList { weight: 1, segments: vec![segment("fd00:a:2::4", Some(last))] },
    ];
    world.policy(key, Some(path));
    world.settle();
    assert_eq!(asked(&world), ["change fd00:b::24"]);
    assert_eq!(world.vpp.srv6.policies[&v6("fd00:b::24")].1.len(), 2);
}

#[test]
fn what_cannot_be_used_supersedes_what_could_and_is_reported() {
    let mut world = world_with_b();
    let (key, path) = b4();
    let flawed = SrPolicyPath { path: CandidatePath::default(), ..path };
    world.policy(key, Some(flawed));
    world.settle();
    assert_eq!(asked(&world), ["unsteer 10.1.2.0/26", "del fd00:b::24"]);
    let reasons: Vec<String> =
        world.engine.status().conditions.iter().map(|it| format!("{}: {}", it.object, it.reason)).collect();
    assert!(
        reasons.contains(&"SRPolicy 0:4:2001:db8::2: it is not used: it has no binding SID".to_owned()),
        "{reasons:?}"
    );
    assert!(
        reasons.iter().any(|it| it.contains("no SR policy that can be used leads to 2001:db8::2")),
        "{reasons:?}"
    );
    world.policy(key, Some(b4().1));
    world.settle();
    assert_eq!(world.engine.status().conditions, []);
    // One that claims a SID of ours, or another node's binding SID.
    world.log.clear();
    let (own, theft) = announced(C, SrBehavior::Dt4, "fd00:a:3::4", "fd00:a:1::4");
    world.policy(own, Some(theft));
    let (again, theft) = announced(C, SrBehavior::Dt6, "fd00:a:3::6", "fd00:b::26");
    world.policy(again, Some(theft));
    world.route("10.1.3.0/26", via(&[C]));
    world.settle();
    assert_eq!(asked(&world), [""; 0]);
    assert_eq!(world.engine.status().conditions.len(), 3);
}

#[test]
fn what_comes_from_outside_is_routed_as_it_is_until_a_policy_leads_there() {
    let mut world = started(cluster());
    world.route("203.0.113.0/24", via(&[B]));
    world.route("10.1.2.0/26", via(&[B]));
    world.settle();
    let routes: Vec<String> = world.vpp.routes.keys().map(|key| key.prefix.to_string()).collect();
    assert_eq!(routes, ["10.1.7.0/26", "203.0.113.0/24"], "what is in a pool waits");
    world.log.clear();
    let (key, path) = b4();
    world.policy(key, Some(path));
    world.settle();
    assert_eq!(
        asked(&world),
        [
            "add fd00:b::24",
            "steer 10.1.2.0/26 fd00:b::24",
            "steer 203.0.113.0/24 fd00:b::24",
            "del 203.0.113.0/24"
        ],
        "the route goes when what takes its place is there"
    );
    world.log.clear();
    world.policy(key, None);
    world.settle();
    assert_eq!(
        asked(&world),
        ["unsteer 10.1.2.0/26", "put 203.0.113.0/24", "unsteer 203.0.113.0/24", "del fd00:b::24"]
    );
}

#[test]
fn what_no_policy_can_carry_is_routed_as_it_is() {
    let mut world = world_with_b();
    // An IPv4 next hop, the SIDs themselves, everything around them, and the binding SIDs, which are nowhere.
    world.route("10.1.4.0/26", via(&["192.0.2.4"]));
    world.route("fd00:a:2::/122", via(&[B]));
    world.route("::/0", via(&[B]));
    world.route("fd00:b::/122", via(&[B]));
    world.settle();
    assert_eq!(asked(&world), ["put 10.1.4.0/26", "put fd00:a:2::/122", "put ::/0"]);
}

#[test]
fn of_several_nodes_the_heaviest_with_a_policy_carries_everything() {
    let mut world = world_with_b();
    world.route("10.1.5.0/26", via(&[C, B]));
    world.settle();
    assert_eq!(asked(&world), ["steer 10.1.5.0/26 fd00:b::24"], "no policy leads to the other");
    let (key, path) = announced(C, SrBehavior::Dt4, "fd00:a:3::4", "fd00:b::34");
    world.policy(key, Some(path));
    world.policy(b4().0, None);
    world.settle();
    assert_eq!(world.vpp.srv6.steering[&route(TableId::MAIN, "10.1.5.0/26")], v6("fd00:b::34"));
}

#[test]
fn what_an_earlier_run_left_goes_and_what_is_anothers_stays() {
    let mut world = world_with_b();
    let lists = [SidList { weight: 1, sids: [v6("fd00:a:9::4")].into() }];
    let policy = || (v6("2001:db8::1"), lists.clone().into());
    let sr = &mut world.vpp.srv6;
    sr.localsids.insert(v6("fd00:a:1::9"), SrBehavior::Dt4);
    sr.localsids.insert(v6("fd00:f::9"), SrBehavior::Dt4);
    sr.policies.insert(v6("fd00:b::77"), policy());
    sr.policies.insert(v6("fd00:f::77"), policy());
    sr.steering.insert(route(TableId::MAIN, "10.9.0.0/26"), v6("fd00:b::77"));
    sr.steering.insert(route(TableId::MAIN, "10.9.1.0/26"), v6("fd00:f::77"));
    // Somebody who may still have to say something.
    world.neighbours();
    world.restart_agent();
    world.log.clear();
    world.connect();
    world.list();
    world.settle();
    let touched = |action: &&VppAction| {
        let stated = VppAction::Srv6(Srv6Action::SetEncapSource(v6("2001:db8::1")));
        matches!(action, VppAction::Srv6(_)) && **action != stated
    };
    assert_eq!(world.log.iter().filter(touched).count(), 0, "{:?}", world.log);
    world.converge();
    world.settle();
    let sr = &world.vpp.srv6;
    assert!(!sr.localsids.contains_key(&v6("fd00:a:1::9")) && sr.localsids.contains_key(&v6("fd00:f::9")));
    assert_eq!(sr.localsids.len(), 3);
    assert!(!sr.policies.contains_key(&v6("fd00:b::77")) && sr.policies.contains_key(&v6("fd00:f::77")));
    assert!(sr.steering.contains_key(&route(TableId::MAIN, "10.9.1.0/26")));
    assert_eq!(sr.steering.len(), 4);
}

#[test]
fn drift_is_found_and_repaired() {
    let mut world = world_with_b();
    let before = world.vpp.canonical();
    let sr = &mut world.vpp.srv6;
    sr.localsids.insert(v6("fd00:a:1::4"), SrBehavior::Dt6);
    sr.policies.get_mut(&v6("fd00:b::24")).unwrap().1 =
        [SidList { weight: 5, sids: [v6("fd00::1")].into() }].into();
    sr.steering.remove(&route(TableId::MAIN, "10.1.2.0/26"));
    sr.steering.insert(route(TableId::MAIN, "fd00:1:2::/122"), v6("fd00:b::24"));
    sr.steering.insert(route(TableId::MAIN, "10.8.0.0/26"), v6("fd00:b::24"));
    world.engine.audit(world.now).unwrap();
    world.settle();
    assert_eq!(world.vpp.canonical(), before);
    assert_eq!(world.engine.audited().unwrap().found, 5, "{:?}", world.engine.audited());
}

type Deed = Box<dyn Fn(&mut World)>;

/// A life in which policies and destinations come, change and go.
fn life() -> Vec<Deed> {
    fn step(act: impl Fn(&mut World) + 'static) -> Deed {
        Box::new(act)
    }
    vec![
        step(|world| world.route("203.0.113.0/24", via(&[B]))),
        step(|world| world.policy(b4().0, Some(b4().1))),
        step(|world| world.route("10.1.2.0/26", via(&[B]))),
        step(|world| world.policy(b6().0, Some(b6().1))),
        step(|world| world.route("fd00:1:2::/122", via(&[B]))),
        step(|world| {
            let (key, path) = announced(B, SrBehavior::Dt4, "fd00:a:2::44", "fd00:b::99");
            let path = CandidatePath { preference: 99, ..path.path };
            let path = SrPolicyPath { path, originator: Originator::default() };
            world.policy(SrKey { distinguisher: 1, ..key }, Some(path));
        }),
        step(|world| world.route("10.1.3.0/26", via(&[C, B]))),
        step(|world| world.policy(SrKey { distinguisher: 1, ..b4().0 }, None)),
        step(|world| world.route("fd00:1:2::/122", None)),
        step(|world| world.policy(b6().0, None)),
        step(|world| world.route("203.0.113.0/24", via(&["192.0.2.254"]))),
    ]
}

type Trouble = fn(&mut World);

/// Something goes wrong after each single operation, in every way.
#[test]
fn interrupted_after_each_operation() {
    let mut calm = started(cluster());
    for step in life() {
        step(&mut calm);
        calm.settle();
    }
    let calm = started(calm.cluster.clone());
    assert!(calm.vpp.srv6.steering.len() > 1);
    let restart_agent: Trouble = |world| {
        world.restart_agent();
        world.connect();
        world.list();
        world.converge();
    };
    let restart_vpp: Trouble = |world| {
        world.restart_vpp();
        world.connect();
    };
    let lose: Trouble = |world| {
        world.lose();
        world.connect();
    };
    let unanswered: Trouble = |world| world.fates.push_back(Fate::Unanswered);
    let swallowed: Trouble = |world| world.fates.push_back(Fate::Swallowed);
    let retry: Trouble = |world| world.fates.push_back(Fate::Retry);
    let relist: Trouble = World::relist;
    let mut total = 0;
    for trouble in [restart_agent, restart_vpp, lose, unanswered, swallowed, retry, relist] {
        for operations in 0.. {
            let mut world = fresh();
            world.window = 1;
            world.cluster = cluster();
            world.connect();
            world.list();
            world.converge();
            for step in life() {
                step(&mut world);
                for _ in 0..4 {
                    if world.log.len() < operations {
                        world.step(usize::MAX);
                    }
                }
            }
            while world.log.len() < operations && world.step(usize::MAX) {}
            if world.log.len() < operations {
                assert!(operations > 15, "too short a life: {operations}");
                break;
            }
            trouble(&mut world);
            world.settle();
            assert_eq!(world.vpp.canonical(), calm.vpp.canonical(), "after {operations} operations");
            assert_eq!(world.speaker, calm.speaker, "after {operations} operations");
            total += 1;
        }
    }
    assert!(total > 100, "{total}");
}

#[test]
fn what_srv6_left_in_vpp_goes_when_it_is_off() {
    let mut world = world_with_b();
    let was = world.config.srv6.take().unwrap();
    world.config.former_sids = Some(Srv6Pools { localsids: was.localsid_pool, policies: was.policy_pool });
    world.restart_agent();
    world.connect();
    world.list();
    world.converge();
    world.settle();
    let srv6 = &world.vpp.srv6;
    assert!(srv6.localsids.is_empty() && srv6.policies.is_empty() && srv6.steering.is_empty(), "{srv6:?}");
}
