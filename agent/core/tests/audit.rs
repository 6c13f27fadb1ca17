//! What somebody else changed in VPP is found by the audit and repaired.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::time::Duration;

use agent_core::event::{FibPath, FibPathKind, VppEvent};
use agent_core::model::{Encapsulation, Node, NodeName, Pool, RouteKey, TableId};
use agent_core::plan::{Audit, VppAction, VppOp};
use agent_core::{Engine, Event};
use world::{Best, ME, World};

/// Three routes, two of them in one tunnel.
fn world_with(audit: Option<Duration>) -> World {
    let mut world = World::new();
    world.config.vpp.as_mut().unwrap().audit = audit;
    world.engine = Engine::new(world.config.clone());
    let me = Node { ipv4: Some("192.0.2.1/24".parse().unwrap()), ..Node::default() };
    world.cluster.nodes.insert(NodeName::from(ME), me);
    let pool = Pool { ipip: Encapsulation::Always, ..Pool::new("10.1.0.0/16".parse().unwrap()) };
    world.cluster.pools.insert("pool".into(), pool);
    world.connect();
    world.list();
    world.converge();
    for prefix in ["10.1.0.0/26", "10.1.1.0/26", "172.16.0.0/16"] {
        world.route(prefix, Some(Best::Via(vec!["192.0.2.2".parse().unwrap()])));
    }
    world.run();
    world.log.clear();
    world
}

fn audit(world: &mut World) -> Audit {
    let number = world.engine.audit(world.now).unwrap();
    world.settle();
    let audit = world.engine.audited().unwrap().clone();
    assert_eq!(audit.number, number);
    assert!(world.engine.status().ready());
    audit
}

fn key(prefix: &str) -> RouteKey {
    RouteKey { table: TableId::MAIN, prefix: prefix.parse().unwrap() }
}

/// The tunnel of ours.
fn tunnel(world: &World) -> u32 {
    *world.vpp.tunnels.keys().max().unwrap()
}

#[test]
fn an_audit_of_what_is_right_asks_for_nothing() {
    let mut world = world_with(None);
    let found = audit(&mut world);
    assert_eq!(found, Audit { number: 1, ..Audit::default() });
    assert_eq!(world.log, [VppAction::Dump]);
}

#[test]
fn what_is_missing_comes_back_and_what_is_too_much_goes() {
    let mut world = world_with(None);
    let before = world.vpp.canonical();
    world.vpp.routes.remove(&key("172.16.0.0/16"));
    let path = FibPath { kind: FibPathKind::Drop, weight: 1 };
    world.vpp.routes.insert(key("192.0.2.128/25"), vec![path]);
    world.vpp.routes.insert(key("10.1.0.0/26"), vec![path]);
    let ours = tunnel(&world);
    world.vpp.interfaces.get_mut(&ours).unwrap().unnumbered = None;
    world.vpp.interfaces.get_mut(&ours).unwrap().admin_up = false;
    let found = audit(&mut world);
    assert_eq!(world.vpp.canonical(), before);
    assert_eq!((found.found, found.again, found.objects.len()), (5, 0, 5), "{found:?}");
    assert_eq!(world.log.len(), 6, "{:?}", world.log);
    assert_eq!(audit(&mut world).found, 0);
}

#[test]
fn a_tunnel_that_was_deleted_comes_back_after_the_dead_routes_have_gone() {
    let mut world = world_with(None);
    let before = world.vpp.canonical();
    let ours = tunnel(&world);
    world.vpp.tunnels.remove(&ours);
    world.vpp.interfaces.remove(&ours);
    world.vpp.gso.remove(&ours);
    // Room for one, so that the order shows.
    world.window = 1;
    audit(&mut world);
    assert_eq!(world.vpp.canonical(), before);
    assert_dead_routes_go_first(&world.log);
}

#[test]
fn a_tunnel_that_was_made_anew_by_somebody_else_has_dead_routes_too() {
    let mut world = world_with(None);
    let before = world.vpp.canonical();
    let ours = tunnel(&world);
    let interface = world.vpp.interfaces.get_mut(&ours).unwrap();
    (interface.tag, interface.admin_up, interface.unnumbered) = ("".into(), true, None);
    world.vpp.gso.remove(&ours);
    audit(&mut world);
    assert_eq!(world.vpp.canonical(), before);
    assert_dead_routes_go_first(&world.log);
}

/// The deletes come before anything else, and each route is put again: two destinations and the remote node itself.
fn assert_dead_routes_go_first(log: &[VppAction]) {
    let kinds: Vec<&str> = log
        .iter()
        .map(|action| match action {
            VppAction::DelRoute { .. } => "delete",
            VppAction::PutRoute { .. } => "put",
            VppAction::Dump => "dump",
            _ => "other",
        })
        .collect();
    let (head, tail) = kinds.split_at(4);
    assert_eq!(head, ["dump", "delete", "delete", "delete"], "{kinds:?}");
    assert_eq!(tail.iter().filter(|kind| **kind == "put").count(), 3, "{kinds:?}");
    assert_eq!(tail.iter().filter(|kind| **kind == "delete").count(), 0, "{kinds:?}");
}

#[test]
fn a_route_that_stays_hidden_is_told_apart() {
    let mut world = world_with(None);
    for again in [0, 1, 1] {
        world.vpp.routes.remove(&key("172.16.0.0/16"));
        let found = audit(&mut world);
        assert_eq!((found.found, found.again), (1, again));
    }
}

#[test]
fn what_is_changed_anew_each_time_is_disputed() {
    let mut world = world_with(None);
    let ours = tunnel(&world);
    let said = |world: &World| {
        let conditions = world.engine.conditions().map(|condition| condition.reason.to_string());
        conditions.filter(|reason| reason.contains("another client of VPP")).collect::<Vec<_>>()
    };
    for disputed in [0, 2, 2] {
        let path = FibPath { kind: FibPathKind::Drop, weight: 1 };
        world.vpp.routes.insert(key("172.16.0.0/16"), vec![path]);
        world.vpp.interfaces.get_mut(&ours).unwrap().mtu = 1234;
        let found = audit(&mut world);
        assert_eq!((found.found, found.disputed), (2, disputed), "{found:?}");
        let told = said(&world);
        assert_eq!(told.len(), usize::from(disputed > 0), "{told:?}");
        assert!(
            told.iter()
                .all(|told| told.contains("mtu of ipip tunnel 192.0.2.1 to 192.0.2.2, route 172.16.0.0/16"))
        );
    }
    assert_eq!(audit(&mut world).found, 0);
    assert_eq!(said(&world), [""; 0], "it is over");
}

#[test]
fn a_client_that_begins_to_write_routes_is_told() {
    let mut world = world_with(None);
    let said = |world: &World| {
        world.engine.conditions().map(|condition| condition.reason.to_string()).collect::<Vec<_>>()
    };
    world.vpp.sources = vec!["API"];
    audit(&mut world);
    // The first look was before.
    assert_eq!(said(&world), ["another client of VPP has begun to write routes, as FIB source API"]);
    world.vpp.sources = Vec::new();
    audit(&mut world);
    assert_eq!(said(&world), [""; 0]);
    world.vpp.sources = vec!["peregrine"];
    audit(&mut world);
    let told = said(&world);
    assert!(told.len() == 1 && told[0].contains("another peregrine agent"), "{told:?}");
    // Another connection to the same VPP begins anew.
    world.lose();
    world.connect();
    world.run();
    assert_eq!(said(&world), [""; 0]);
}

#[test]
fn audits_happen_by_themselves_and_readiness_stays() {
    let mut world = world_with(Some(Duration::from_secs(300)));
    let before = world.vpp.canonical();
    let due = world.engine.deadline().unwrap();
    assert_eq!(due.saturating_since(world.now), Duration::from_secs(300));
    world.vpp.routes.remove(&key("172.16.0.0/16"));
    world.pass(Duration::from_secs(299));
    assert_eq!(world.log, []);
    world.now = due;
    world.event(Event::Tick);
    let mut ops: Vec<VppOp> = Vec::new();
    world.engine.next_vpp_ops(world.now, 16, &mut ops);
    assert!(world.engine.status().ready(), "while VPP is read");
    let result = world.vpp.execute(&ops[0].action);
    world.event(Event::Vpp(VppEvent::Done(ops[0].id, result)));
    world.run();
    assert_eq!(world.vpp.canonical(), before);
    assert_eq!(world.engine.audited().unwrap().found, 1);
    let due = world.engine.deadline().unwrap();
    assert_eq!(due.saturating_since(world.now), Duration::from_secs(300), "and again");
}

#[test]
fn nothing_is_audited_without_vpp() {
    let mut world = world_with(None);
    world.lose();
    assert_eq!(world.engine.audit(world.now), None);
    world.connect();
    assert_eq!(world.engine.audit(world.now), None, "it is being read anyway");
}
