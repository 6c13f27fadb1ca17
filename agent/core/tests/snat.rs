//! Source NAT: order, restarts, what an earlier run left.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::collections::BTreeSet;

use agent_core::Event;
use agent_core::desired::{SnatAddresses, SnatTable};
use agent_core::event::{HostTaps, SwIfIndex};
use agent_core::model::{Node, NodeName, Pool, PoolName};
use agent_core::plan::{NatAction, VppAction, VppFailure};
use ipnet::IpNet;
use world::{Cluster, Fate, ME, World};

fn node(ipv4: &str) -> Node {
    Node { ipv4: Some(ipv4.parse().unwrap()), ..Node::default() }
}

fn pool(cidr: &str) -> Pool {
    Pool::new(cidr.parse().unwrap())
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    cluster.nodes.insert(NodeName::from(ME), node("192.0.2.1/24"));
    cluster.nodes.insert(NodeName::from("node-b"), node("192.0.2.2/24"));
    cluster.pools.insert(PoolName::from("pods"), pool("10.244.0.0/16"));
    cluster
}

fn excluded(world: &World) -> Vec<String> {
    world.vpp.snat.iter().flat_map(|snat| &snat.excluded).map(ToString::to_string).collect()
}

fn nat_log(world: &World) -> Vec<NatAction> {
    let nat = |action: &VppAction| match action {
        VppAction::Nat(action) => Some(*action),
        _ => None,
    };
    world.log.iter().filter_map(nat).collect()
}

#[test]
fn addresses_come_first_and_the_policy_last() {
    let mut world = World::undisturbed(cluster());
    assert_eq!(excluded(&world), ["10.244.0.0/16", "192.0.2.1/32", "192.0.2.2/32"]);
    let log = nat_log(&world);
    let addresses = SnatAddresses { ipv4: Some("192.0.2.1".parse().unwrap()), ipv6: None };
    assert_eq!(log.first(), Some(&NatAction::SetAddresses(addresses)));
    assert_eq!(log.last(), Some(&NatAction::SetPolicy));
    world.event(Event::HostTaps(HostTaps([SwIfIndex(2)].into())));
    world.settle();
    let snat = world.vpp.snat.as_ref().unwrap();
    assert_eq!(snat.interfaces, [(2, SnatTable::Pod), (2, SnatTable::Host)].into());
    assert!(world.engine.status().ready());
}

#[test]
fn a_failure_of_the_addresses_holds_everything_else_back() {
    let mut world = World::new();
    world.cluster = cluster();
    world.broken = |action| match action {
        VppAction::Nat(NatAction::SetAddresses(_)) => {
            Some(VppFailure::Unsupported("cnat_set_snat_addresses_v2".into()))
        }
        _ => None,
    };
    world.connect();
    world.list();
    world.converge();
    world.settle();
    assert_eq!(nat_log(&world), []);
    // A VPP without the plugin is as good as it can be, and says what it lacks.
    let status = world.engine.status();
    assert!(status.ready(), "{status:?}");
    let blocked = &status.vpp.as_ref().unwrap().blocked;
    assert!(
        blocked.iter().any(|blocked| blocked.reason.contains("cnat_set_snat_addresses_v2")),
        "{blocked:?}"
    );
}

#[test]
fn what_is_not_claimed_any_more_goes_whenever_the_agent_hears_of_it() {
    // While it runs.
    let mut world = World::undisturbed(cluster());
    world.pool("more", Some(pool("10.9.0.0/16")));
    world.settle();
    assert!(excluded(&world).contains(&"10.9.0.0/16".to_owned()));
    world.pool("more", None);
    world.settle();
    assert_eq!(excluded(&world), ["10.244.0.0/16", "192.0.2.1/32", "192.0.2.2/32"]);
    // While it doesn't.
    world.neighbours();
    world.restart_agent();
    world.cluster.nodes.remove(&NodeName::from("node-b"));
    world.connect();
    world.list();
    world.run();
    assert_eq!(excluded(&world).len(), 3, "nothing goes before everybody has spoken");
    world.converge();
    world.settle();
    assert_eq!(excluded(&world), ["10.244.0.0/16", "192.0.2.1/32"]);
    // While VPP is out of reach, and the same one afterwards.
    world.lose();
    world.pool("pods", None);
    world.connect();
    world.settle();
    assert_eq!(excluded(&world), ["192.0.2.1/32"]);
}

#[test]
fn what_others_excluded_stays() {
    let mut world = World::new();
    world.cluster = cluster();
    let foreign: IpNet = "203.0.113.0/24".parse().unwrap();
    let snat = world.vpp.snat.get_or_insert_default();
    snat.addresses.ipv4 = Some("192.0.2.1".parse().unwrap());
    snat.excluded.insert(foreign);
    world.connect();
    world.list();
    world.converge();
    world.settle();
    assert!(world.vpp.snat.as_ref().unwrap().excluded.contains(&foreign));
    assert!(
        !nat_log(&world).iter().any(|action| matches!(action, NatAction::SetAddresses(_))),
        "they are right"
    );
}

#[test]
fn an_exclusion_whose_answer_got_lost_is_remembered() {
    let mut world = World::undisturbed(cluster());
    world.fates.push_back(Fate::Unanswered);
    world.pool("more", Some(pool("10.9.0.0/16")));
    world.step(1);
    // The agent dies before it has heard.
    world.restart_agent();
    world.cluster.pools.remove(&PoolName::from("more"));
    world.connect();
    world.list();
    world.converge();
    world.settle();
    assert_eq!(excluded(&world), ["10.244.0.0/16", "192.0.2.1/32", "192.0.2.2/32"]);
    assert_eq!(world.engine.remembered().len(), 3);
}

#[test]
fn a_restarted_vpp_is_told_everything_again_and_nothing_is_taken_from_it() {
    let mut world = World::undisturbed(cluster());
    world.restart_vpp();
    world.cluster.pools.remove(&PoolName::from("pods"));
    world.event(Event::Pool(agent_core::Change::Delete(PoolName::from("pods"))));
    world.log.clear();
    world.connect();
    world.settle();
    assert_eq!(excluded(&world), ["192.0.2.1/32", "192.0.2.2/32"]);
    let log = nat_log(&world);
    assert!(matches!(log.first(), Some(NatAction::SetAddresses(_))));
    assert!(!log.iter().any(|action| matches!(action, NatAction::Exclude { add: false, .. })), "{log:?}");
    assert!(world.vpp.snat.as_ref().unwrap().policy);
}

#[test]
fn addresses_change_and_are_never_taken_back() {
    let mut world = World::undisturbed(cluster());
    let with_both = Node { ipv6: Some("2001:db8::1/64".parse().unwrap()), ..node("192.0.2.77/24") };
    world.node(ME, Some(with_both));
    world.settle();
    let addresses = |world: &World| world.vpp.snat.as_ref().unwrap().addresses;
    let ipv6 = Some("2001:db8::1".parse().unwrap());
    let both = SnatAddresses { ipv4: Some("192.0.2.77".parse().unwrap()), ipv6 };
    assert_eq!(addresses(&world), both);
    world.node(ME, Some(node("192.0.2.1/24")));
    world.settle();
    assert_eq!(addresses(&world), SnatAddresses { ipv4: Some("192.0.2.1".parse().unwrap()), ipv6 });
    assert!(world.engine.status().ready(), "that VPP keeps the other family's is nobody's fault");
    let told: BTreeSet<String> = excluded(&world).into_iter().collect();
    assert!(!told.contains("2001:db8::1/128") && told.contains("192.0.2.1/32"), "{told:?}");
}
