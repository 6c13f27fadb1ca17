//! What the agent does, one behaviour a test, through its only door.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::time::Duration;

use agent_core::desired::{IpipKey, ObjectKey, Tunnel, VppKey};
use agent_core::event::{FibPath, FibPathKind, Interface, SwIfIndex, VppEvent, VppReply};
use agent_core::model::{
    Affinity, Encapsulation, FelixConfig, FelixConfigName, Node, NodeName, Pool, RouteKey, TableId,
};
use agent_core::plan::{Retval, VppAction, VppFailure};
use agent_core::{Change, Event};
use world::{Best, ME, World};

fn me() -> Node {
    Node {
        ipv4: Some("192.0.2.1/24".parse().unwrap()),
        ipv6: Some("2001:db8::1/64".parse().unwrap()),
        ..Node::default()
    }
}

/// A world in which everything is in sync, with one IPIP and one CrossSubnet pool.
fn world() -> World {
    let mut world = World::new();
    world.cluster.nodes.insert(NodeName::from(ME), me());
    for (name, cidr, ipip) in [
        ("always", "10.1.0.0/16", Encapsulation::Always),
        ("cross", "10.2.0.0/16", Encapsulation::CrossSubnet),
    ] {
        world.cluster.pools.insert(name.into(), Pool { ipip, ..Pool::new(cidr.parse().unwrap()) });
    }
    world.connect();
    world.list();
    world.converge();
    world.settle();
    world.log.clear();
    world
}

fn via(hops: &[&str]) -> Option<Best> {
    Some(Best::Via(hops.iter().map(|hop| hop.parse().unwrap()).collect()))
}

fn routes(world: &World) -> Vec<String> {
    world
        .vpp
        .canonical()
        .routes
        .into_iter()
        .map(|(key, paths)| format!("{key}: {}", paths.join(", ")))
        .collect()
}

fn tunnel(remote: &str) -> Tunnel {
    Tunnel::Ipip(IpipKey { local: "192.0.2.1".parse().unwrap(), remote: remote.parse().unwrap() })
}

fn refuse(value: i32) -> VppFailure {
    VppFailure::Retry(Retval { value, name: "".into() })
}

#[test]
fn a_route_becomes_flat_or_ipip_by_pool_and_subnet() {
    let mut world = world();
    world.route("172.16.0.0/16", via(&["192.0.2.2"]));
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.route("10.2.0.0/26", via(&["192.0.2.3"]));
    world.route("10.2.0.64/26", via(&["198.51.100.4"]));
    world.route("fd00::/122", via(&["2001:db8::2"]));
    world.settle();
    assert_eq!(
        routes(&world),
        [
            "10.1.0.0/26 table 0: tunnel 192.0.2.1 192.0.2.2 weight 1",
            "10.2.0.0/26 table 0: Recursive(192.0.2.3, TableId(0)) weight 1",
            "10.2.0.64/26 table 0: tunnel 192.0.2.1 198.51.100.4 weight 1",
            "172.16.0.0/16 table 0: Recursive(192.0.2.2, TableId(0)) weight 1",
            "192.0.2.2/32 table 2: tunnel 192.0.2.1 192.0.2.2 weight 1",
            "198.51.100.4/32 table 2: tunnel 192.0.2.1 198.51.100.4 weight 1",
            "fd00::/122 table 0: Recursive(2001:db8::2, TableId(0)) weight 1",
        ]
    );
    let canonical = world.vpp.canonical();
    assert_eq!(
        canonical.tunnels["ipip tunnel 192.0.2.1 to 192.0.2.2"],
        "peregrine ipip 192.0.2.2 up=true from=Some(\"host-eth0\") gso=true mtu=8980 cnat=true"
    );
}

#[test]
fn a_tunnel_comes_before_its_routes_and_goes_after_them() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let place = |world: &World, what: fn(&VppAction) -> bool| world.log.iter().position(what).unwrap();
    let added = place(&world, |action| matches!(action, VppAction::AddIpip { .. }));
    let tagged = place(&world, |action| matches!(action, VppAction::SetTag { .. }));
    let up = place(&world, |action| matches!(action, VppAction::SetUp { .. }));
    let routed = place(&world, |action| matches!(action, VppAction::PutRoute { .. }));
    assert!(added < tagged && tagged < up && up < routed, "{:?}", world.log);
    world.log.clear();
    world.route("10.1.0.0/26", None);
    world.settle();
    let names: Vec<&str> = world
        .log
        .iter()
        .map(|action| match action {
            VppAction::DelRoute { .. } => "route",
            VppAction::DelIpip { .. } => "tunnel",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["route", "route", "tunnel"]);
    assert_eq!(routes(&world), Vec::<String>::new());
}

#[test]
fn a_change_of_next_hop_replaces_the_route_in_one_message() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    world.log.clear();
    world.route("10.1.0.0/26", via(&["192.0.2.3"]));
    world.settle();
    let route = "10.1.0.0/26".parse().unwrap();
    let of_route = world.log.iter().filter(|action| match action {
        VppAction::PutRoute { prefix, .. } | VppAction::DelRoute { prefix, .. } => *prefix == route,
        _ => false,
    });
    assert!(matches!(of_route.collect::<Vec<_>>()[..], [VppAction::PutRoute { .. }]), "{:?}", world.log);
    assert!(matches!(world.log.last(), Some(VppAction::DelIpip { .. })), "{:?}", world.log);
}

#[test]
fn a_change_of_pool_touches_the_routes_inside_only() {
    let mut world = world();
    for n in 0..20 {
        world.route(&format!("10.1.{n}.0/26"), via(&["192.0.2.2"]));
        world.route(&format!("10.2.{n}.0/26"), via(&["192.0.2.2"]));
    }
    world.settle();
    world.log.clear();
    world.pool(
        "cross",
        Some(Pool { ipip: Encapsulation::Always, ..Pool::new("10.2.0.0/16".parse().unwrap()) }),
    );
    world.settle();
    assert_eq!(world.log.len(), 20, "the tunnel is there already: {:?}", world.log);
    let inside = "10.2.0.0/16".parse::<ipnet::IpNet>().unwrap();
    for action in &world.log {
        assert!(
            matches!(action, VppAction::PutRoute { prefix, .. } if inside.contains(prefix)),
            "{action:?}"
        );
    }
    world.log.clear();
    world.pool("always", None);
    world.settle();
    let routes = world.log.iter().filter(|action| matches!(action, VppAction::PutRoute { .. }));
    assert_eq!(routes.count(), 20, "{:?}", world.log);
}

#[test]
fn a_change_of_our_address_moves_the_tunnels_and_nothing_else() {
    let mut world = world();
    world.route("172.16.0.0/16", via(&["192.0.2.2"]));
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    world.log.clear();
    world.node(ME, Some(Node { ipv4: Some("192.0.2.77/24".parse().unwrap()), ..me() }));
    world.settle();
    assert!(
        routes(&world).contains(&"10.1.0.0/26 table 0: tunnel 192.0.2.77 192.0.2.2 weight 1".to_owned()),
        "{:?}",
        routes(&world)
    );
    let flat = "172.16.0.0/16".parse().unwrap();
    assert!(
        !world
            .log
            .iter()
            .any(|action| matches!(action, VppAction::PutRoute { prefix, .. } if *prefix == flat))
    );
    assert!(matches!(world.log.last(), Some(VppAction::DelIpip { .. })));
}

#[test]
fn a_smaller_subnet_moves_cross_subnet_routes_into_tunnels() {
    let mut world = world();
    world.route("10.2.0.0/26", via(&["192.0.2.9"]));
    world.settle();
    world.node(ME, Some(Node { ipv4: Some("192.0.2.1/29".parse().unwrap()), ..me() }));
    world.settle();
    assert!(routes(&world)[0].contains("tunnel"), "{:?}", routes(&world));
    // Without any address there is no subnet to cross: the route stays, without a tunnel.
    world.node(ME, Some(Node { ipv4: None, ..me() }));
    world.settle();
    assert!(routes(&world)[0].contains("Recursive"), "{:?}", routes(&world));
}

#[test]
fn equal_paths_become_one_route() {
    let mut world = world();
    world.route("10.2.0.0/26", via(&["192.0.2.9", "198.51.100.4"]));
    world.settle();
    assert_eq!(
        routes(&world)[0],
        "10.2.0.0/26 table 0: Recursive(192.0.2.9, TableId(0)) weight 1, tunnel 192.0.2.1 198.51.100.4 weight 1"
    );
}

#[test]
fn a_route_of_our_own_takes_the_learned_one_out() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    world.route("10.1.0.0/26", Some(Best::Local));
    world.settle();
    assert_eq!(routes(&world), Vec::<String>::new());
}

#[test]
fn own_blocks_are_announced_and_drop_what_has_no_longer_match() {
    let mut world = world();
    world.affinity("row", Some(Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME))));
    world.affinity("one", Some(Affinity::confirmed("10.1.8.1/32".parse().unwrap(), NodeName::from(ME))));
    world.settle();
    assert_eq!(world.originations(), ["10.1.7.0/26", "10.1.8.1/32"]);
    assert_eq!(routes(&world), ["10.1.7.0/26 table 0: Drop weight 1"], "a single address needs none");
    world.affinity("row", None);
    world.settle();
    assert_eq!(world.originations(), ["10.1.8.1/32"]);
    assert_eq!(routes(&world), Vec::<String>::new());
}

#[test]
fn a_restart_adopts_and_sweeps_only_when_everyone_has_spoken() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.route("10.1.1.0/26", via(&["192.0.2.3"]));
    world.route("172.16.0.0/16", via(&["192.0.2.2"]));
    world.settle();
    let before = world.vpp.canonical();
    world.log.clear();
    // While the agent is away, one route and with it its tunnel lose their reason.
    world.neighbours();
    world.restart_agent();
    world.cluster.rib.remove(&"10.1.1.0/26".parse().unwrap());
    world.connect();
    world.run();
    world.list();
    world.run();
    assert_eq!(world.vpp.canonical(), before, "nothing is deleted before the RIB has converged");
    assert!(
        world.log.iter().all(|action| matches!(
            action,
            VppAction::Dump | VppAction::SetGso { .. } | VppAction::SetCnat { .. } | VppAction::Nat(_)
        )),
        "what is there is adopted: {:?}",
        world.log
    );
    world.converge();
    world.settle();
    assert_eq!(world.vpp.canonical(), World::undisturbed(world.cluster.clone()).vpp.canonical());
    assert_eq!(world.vpp.tunnels.len(), 2, "ours and the stranger");
}

#[test]
fn a_tunnel_between_two_requests_of_its_making_is_still_ours() {
    let mut world = world();
    world.window = 1;
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    while !matches!(world.log.last(), Some(VppAction::AddIpip { .. })) {
        world.step(usize::MAX);
    }
    world.restart_agent();
    world.cluster.rib.clear();
    world.connect();
    world.list();
    world.converge();
    world.settle();
    assert_eq!(world.vpp.tunnels.len(), 1, "only the stranger is left: {:?}", world.vpp.tunnels);
}

#[test]
fn a_failure_blocks_only_what_needs_it() {
    let mut world = world();
    world.broken = |action| match action {
        VppAction::AddIpip { remote, .. } if *remote == "192.0.2.2".parse::<std::net::IpAddr>().unwrap() => {
            Some(refuse(-9999))
        }
        _ => None,
    };
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.route("10.1.1.0/26", via(&["192.0.2.3"]));
    world.route("172.16.0.0/16", via(&["192.0.2.2"]));
    world.run();
    let there = routes(&world);
    assert!(there.iter().any(|route| route.starts_with("10.1.1.0/26")), "{there:?}");
    assert!(there.iter().any(|route| route.starts_with("172.16.0.0/16")), "{there:?}");
    assert!(!there.iter().any(|route| route.starts_with("10.1.0.0/26")), "{there:?}");
    let report = world.engine.status().vpp.unwrap();
    let blocked = |key: VppKey| report.blocked.iter().find(|b| b.object == key).map(|b| b.reason.as_str());
    let key = ObjectKey::Tunnel(tunnel("192.0.2.2"));
    assert_eq!(blocked(VppKey::Object(key)), Some("VPP answered -9999"));
    let route = RouteKey { table: TableId::MAIN, prefix: "10.1.0.0/26".parse().unwrap() };
    assert_eq!(
        blocked(VppKey::Route(route)),
        Some("waits for ipip tunnel 192.0.2.1 to 192.0.2.2: VPP answered -9999")
    );
    assert!(!world.engine.status().ready());
    let cause = "ipip tunnel 192.0.2.1 to 192.0.2.2: VPP answered -9999";
    assert!(report.blocked.iter().all(|blocked| blocked.cause == cause), "{report:?}");
    // For ever, with growing pauses.
    let mut pauses = Vec::new();
    for _ in 0..40 {
        let at = world.engine.deadline().unwrap();
        pauses.push(at.saturating_since(world.now));
        world.now = at;
        world.event(Event::Tick);
        world.run();
    }
    assert!(pauses.is_sorted() && pauses[39] == Duration::from_secs(30), "{pauses:?}");
    world.broken = |_| None;
    world.settle();
    assert!(world.engine.status().ready());
    assert_eq!(world.vpp.canonical(), World::undisturbed(world.cluster.clone()).vpp.canonical());
}

#[test]
fn a_refusal_stands_until_the_value_changes() {
    let mut world = world();
    world.broken = |action| match action {
        VppAction::PutRoute { prefix, .. } if *prefix == "10.1.0.0/26".parse::<ipnet::IpNet>().unwrap() => {
            Some(VppFailure::Rejected(Retval { value: -7, name: "INVALID_VALUE".into() }))
        }
        _ => None,
    };
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let report = world.engine.status().vpp.unwrap();
    assert_eq!(report.blocked.len(), 1);
    assert_eq!(report.blocked[0].reason, "VPP answered -7 (INVALID_VALUE)");
    world.broken = |_| None;
    world.pass(Duration::from_secs(3600));
    assert_eq!(world.engine.status().vpp.unwrap().blocked.len(), 1, "time changes nothing");
    world.route("10.1.0.0/26", via(&["192.0.2.3"]));
    world.settle();
    assert!(world.engine.status().ready());
}

#[test]
fn a_missing_uplink_is_named_and_waited_for() {
    let mut world = world();
    let uplink = world.vpp.interfaces.remove(&1).unwrap();
    world.lose();
    world.connect();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.run();
    let blocked = world.engine.status().vpp.unwrap().blocked;
    let reason = "no interface of VPP has this node's address (192.0.2.1, 2001:db8::1); it has ";
    assert!(blocked.iter().any(|b| b.reason.starts_with(reason)), "{blocked:?}");
    assert!(blocked.iter().any(|b| b.reason.contains(reason) && matches!(b.object, VppKey::Route(_))));
    assert!(blocked.iter().all(|b| b.cause.starts_with(reason)), "one cause: {blocked:?}");
    let moved = Interface { index: SwIfIndex(9), ..uplink };
    world.vpp.interfaces.insert(9, moved);
    let all = world.vpp.interfaces.values().cloned().collect();
    world.event(Event::Vpp(VppEvent::Interfaces(all)));
    world.settle();
    assert!(world.engine.status().ready(), "{:?}", world.engine.status().vpp);
}

#[test]
fn a_node_of_another_name_takes_nothing_out_of_vpp() {
    let mut world = world();
    world.affinity("block", Some(Affinity::confirmed("10.9.0.0/26".parse().unwrap(), NodeName::from(ME))));
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let before = world.vpp.canonical();
    assert!(!before.routes.is_empty());

    // The agent comes back with a mistake in the name of its node, or before anything is in its folder.
    for cluster in [world.cluster.clone(), Default::default()] {
        let right = world.config.node.clone();
        world.config.node = NodeName::from("node-q");
        let whole = std::mem::replace(&mut world.cluster, cluster);
        world.restart_agent();
        world.connect();
        world.list();
        world.converge();
        world.settle();
        world.pass(Duration::from_secs(600));
        assert_eq!(world.vpp.canonical(), before);
        let status = world.engine.status();
        assert!(!status.ready() && !status.sources.in_sync(), "{status:?}");
        let condition = status.conditions.iter().find(|c| &*c.object.name == "node-q").unwrap();
        let known = if world.cluster.nodes.is_empty() { "none at all" } else { "there are: node-a" };
        assert!(condition.reason.contains(known), "{condition}");
        world.config.node = right;
        world.cluster = whole;
    }
    world.restart_agent();
    world.connect();
    world.list();
    world.converge();
    world.settle();
    assert!(world.engine.status().ready(), "{:?}", world.engine.status());
    assert_eq!(world.vpp.canonical(), before);
}

#[test]
fn a_node_whose_object_goes_says_why_its_sessions_do() {
    let mut world = world();
    world.neighbours();
    world.list();
    world.settle();
    assert_ne!(world.peers(), [""; 0]);
    let own = world.cluster.nodes[&NodeName::from(ME)].clone();
    for less in [None, Some(Node::default())] {
        world.node(ME, less);
        world.settle();
        assert_eq!(world.peers(), [""; 0]);
        let conditions = world.engine.status().conditions;
        assert!(conditions.iter().any(|c| c.reason.contains("no sessions")), "{conditions:?}");
    }
    world.node(ME, Some(own));
    world.settle();
    assert!(world.engine.status().conditions.is_empty(), "{:?}", world.engine.status().conditions);
}

#[test]
fn a_restart_of_vpp_replays_everything() {
    let mut world = world();
    for n in 0..50 {
        world.route(&format!("10.1.{n}.0/26"), via(&[&format!("192.0.2.{}", 2 + n % 7)]));
    }
    world.settle();
    let before = world.vpp.canonical();
    world.restart_vpp();
    assert_ne!(world.vpp.canonical(), before);
    world.connect();
    world.settle();
    assert_eq!(world.vpp.canonical(), before);
}

#[test]
fn a_node_without_our_address_yields_a_condition_that_says_what_to_do() {
    let mut world = world();
    world.node(ME, Some(Node { ipv4: None, ..me() }));
    world.affinity("row", Some(Affinity::confirmed("10.1.7.0/26".parse().unwrap(), NodeName::from(ME))));
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    assert_eq!(world.originations(), Vec::<&str>::new());
    let conditions: Vec<String> = world.engine.conditions().map(ToString::to_string).collect();
    assert_eq!(
        conditions,
        [
            "Node node-a metadata.annotations.projectcalico.org/IPv4Address: no IPv4 address, so blocks are not \
             announced: 10.1.7.0/26 (set the annotation to this node's IPv4 address and subnet length)",
            "Node node-a metadata.annotations.projectcalico.org/IPv4Address: no IPv4 address to tunnel from, so \
             nothing behind 192.0.2.2 is reached (set the annotation to this node's IPv4 address and subnet length)",
        ]
    );
    world.node(ME, Some(me()));
    world.settle();
    assert_eq!(world.engine.conditions().count(), 0);
    assert_eq!(world.originations(), ["10.1.7.0/26"]);
    assert!(routes(&world).iter().any(|route| route.starts_with("10.1.0.0/26")));
}

#[test]
fn many_routes_never_exceed_the_window_and_settle_with_one_operation_each() {
    let mut world = world();
    let count = 5_000;
    for n in 0..count {
        let prefix = format!("172.{}.{}.{}/28", 16 + n / 4096, (n / 16) % 256, (n % 16) * 16);
        world.route(&prefix, via(&["192.0.2.2"]));
    }
    world.settle();
    assert_eq!(world.log.len(), count + 1, "the FIB source, and each route once");
    world.log.clear();
    for n in 0..count {
        let prefix = format!("172.{}.{}.{}/28", 16 + n / 4096, (n / 16) % 256, (n % 16) * 16);
        // Flapping before anything leaves costs nothing.
        world.route(&prefix, via(&["192.0.2.3"]));
        world.route(&prefix, via(&["192.0.2.2"]));
    }
    world.settle();
    assert_eq!(world.log, []);
}

#[test]
fn thousands_of_blocks_are_told_at_once() {
    let mut world = world();
    let blocks: Vec<_> = (0..3000u32)
        .map(|n| {
            let cidr = format!("11.{}.{}.0/26", n / 256, n % 256);
            let affinity = Affinity::confirmed(cidr.parse().unwrap(), NodeName::from(ME));
            (agent_core::model::AffinityName::from(format!("row-{n}").as_str()), affinity)
        })
        .collect();
    world.commands.clear();
    for (name, affinity) in &blocks {
        world.event(Event::Affinity(Change::Upsert(name.clone(), affinity.clone())));
    }
    world.settle();
    assert_eq!(world.originations().len(), 3000);
    let sets = world.commands.iter().filter(|c| matches!(c, bgp_core::command::Command::PutSet(..)));
    assert_eq!(sets.count(), 2, "each set once, not once for each block");
    world.event(Event::Affinity(Change::Resync(Vec::new())));
    world.settle();
    assert_eq!((world.originations().len(), routes(&world).len()), (0, 0));
}

#[test]
fn a_family_in_which_there_is_no_neighbour_holds_up_no_sweep() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    world.neighbours();
    world.cluster.peers.remove(&agent_core::model::PeerName::from("tor-v6"));
    world.cluster.rib.clear();
    world.restart_agent();
    world.connect();
    world.list();
    world.settle();
    assert!(!routes(&world).is_empty());
    assert!(!world.engine.status().settled());
    world.event(Event::Rib(bgp_core::rib::RibEvent::Converged(bgp_core::Family::Ipv4Unicast)));
    world.settle();
    assert_eq!(routes(&world), Vec::<String>::new());
    assert!(world.engine.status().settled());
}

#[test]
fn a_tunnel_outlives_its_last_route_for_a_moment() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let made =
        |world: &World| world.log.iter().filter(|action| matches!(action, VppAction::AddIpip { .. })).count();
    assert_eq!((made(&world), world.vpp.tunnels.len()), (1, 2));
    world.route("10.1.0.0/26", None);
    world.run();
    assert_eq!(routes(&world), Vec::<String>::new());
    world.pass(Duration::from_millis(4999));
    assert_eq!(world.vpp.tunnels.len(), 2, "somebody may want it again");
    assert!(world.engine.status().ready(), "and that is nothing to wait for");
    let key = VppKey::Object(ObjectKey::Tunnel(tunnel("192.0.2.2")));
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.run();
    world.pass(Duration::from_secs(60));
    assert_eq!((made(&world), world.vpp.tunnels.len()), (1, 2), "it was the same one all along");
    world.route("10.1.0.0/26", None);
    world.run();
    // Neither an audit nor another connection is a reason to let it go, or to keep it longer.
    world.engine.audit(world.now);
    world.run();
    world.lose();
    world.connect();
    world.run();
    assert_eq!(world.vpp.tunnels.len(), 2);
    assert!(world.engine.audited().is_none_or(|audit| audit.objects.is_empty()), "{key}");
    world.pass(Duration::from_secs(5));
    assert_eq!(world.vpp.tunnels.len(), 1, "{:?}", world.vpp.tunnels);
}

#[test]
fn a_vpp_without_a_message_for_an_improvement_is_as_good_as_it_can_be() {
    let mut world = world();
    world.broken =
        |action| matches!(action, VppAction::SetGso { .. }).then(|| VppFailure::Unsupported("gso".into()));
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    assert_eq!(routes(&world).len(), 2);
    let status = world.engine.status();
    assert!(status.ready(), "{status:?}");
    let report = status.vpp.unwrap();
    let told: Vec<&str> = report.blocked.iter().map(|blocked| blocked.reason.as_str()).collect();
    assert_eq!((report.lacking, &told[..]), (1, &["this VPP has no gso"][..]));
}

#[test]
fn a_tunnel_that_vpp_deletes_by_itself_is_made_again() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let before = world.vpp.canonical();
    let ours = *world.vpp.tunnels.keys().max().unwrap();
    world.vpp.tunnels.remove(&ours);
    world.vpp.interfaces.remove(&ours);
    let all = world.vpp.interfaces.values().cloned().collect();
    world.event(Event::Vpp(VppEvent::Interfaces(all)));
    world.settle();
    assert_eq!(world.vpp.canonical(), before);
}

#[test]
fn a_vxlan_route_leads_through_its_other_end() {
    let mut world = world();
    let vxlan = Pool { vxlan: Encapsulation::Always, ..Pool::new("10.1.0.0/16".parse().unwrap()) };
    let cross = Pool { vxlan: Encapsulation::CrossSubnet, ..Pool::new("fd00::/16".parse().unwrap()) };
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.route("10.1.1.0/26", via(&["192.0.2.2", "192.0.2.3"]));
    world.settle();
    world.log.clear();
    // A change of provider replaces each route in one message; the tunnels of before go after it.
    world.pool("always", Some(vxlan));
    world.pool("six", Some(cross));
    world.route("fd00::/122", via(&["2001:db8:9::2"]));
    world.settle();
    let tunnel = |remote: &str| format!("vxlan tunnel 192.0.2.1 to {remote} vni 4096 port 4789");
    let (b, c) = (tunnel("192.0.2.2"), tunnel("192.0.2.3"));
    let six = "vxlan tunnel 2001:db8::1 to 2001:db8:9::2 vni 4096 port 4789";
    assert_eq!(
        routes(&world),
        [
            format!("10.1.0.0/26 table 0: 192.0.2.2 in {b} weight 1"),
            format!("10.1.1.0/26 table 0: 192.0.2.2 in {b} weight 1, 192.0.2.3 in {c} weight 1"),
            format!("192.0.2.2/32 table 2: 192.0.2.2 in {b} weight 1"),
            format!("192.0.2.3/32 table 2: 192.0.2.3 in {c} weight 1"),
            format!("2001:db8:9::2/128 table 2: 2001:db8:9::2 in {six} weight 1"),
            format!("fd00::/122 table 0: 2001:db8:9::2 in {six} weight 1"),
        ]
    );
    let canonical = world.vpp.canonical();
    let told = |mtu| format!("up=true from=Some(\"host-eth0\") gso=true mtu={mtu} cnat=true");
    assert_eq!(canonical.tunnels[&b], format!("peregrine vxlan 192.0.2.2 {}", told(8950)));
    assert_eq!(canonical.tunnels[six], format!("peregrine vxlan 2001:db8:9::2 {}", told(8930)));
    assert_eq!(canonical.tunnels.len(), 4, "and the stranger: {:?}", canonical.tunnels);
    let deleted = world.log.iter().filter(|action| matches!(action, VppAction::DelRoute { .. })).count();
    assert_eq!(deleted, 0, "{:?}", world.log);
    assert!(world.engine.status().ready());
}

#[test]
fn the_mtu_of_tunnels_follows_that_of_the_uplink() {
    let mut world = world();
    world.route("10.1.0.0/26", via(&["192.0.2.2"]));
    world.settle();
    let ours = *world.vpp.tunnels.keys().max().unwrap();
    assert_eq!(world.vpp.interfaces[&ours].mtu, 8980);
    world.vpp.interfaces.get_mut(&1).unwrap().mtu = 1500;
    let all = world.vpp.interfaces.values().cloned().collect();
    world.event(Event::Vpp(VppEvent::Interfaces(all)));
    world.settle();
    assert_eq!(world.vpp.interfaces[&ours].mtu, 1480);
    // Somebody else's idea of it is repaired.
    world.vpp.interfaces.get_mut(&ours).unwrap().mtu = 9000;
    world.engine.audit(world.now);
    world.settle();
    assert_eq!(world.vpp.interfaces[&ours].mtu, 1480);
    assert_eq!(world.engine.audited().unwrap().found, 1);
}

#[test]
fn a_change_of_felixs_settings_moves_what_depends_on_it() {
    let mut world = world();
    let vxlan = Pool { vxlan: Encapsulation::Always, ..Pool::new("10.3.0.0/16".parse().unwrap()) };
    world.pool("vxlan", Some(vxlan));
    world.route("10.3.0.0/26", via(&["192.0.2.2"]));
    world.route("10.1.0.0/26", via(&["192.0.2.3"]));
    world.settle();
    world.log.clear();
    let settings = FelixConfig { vxlan_port: Some(8472), ..FelixConfig::default() };
    world.event(Event::FelixConfig(Change::Upsert(FelixConfigName::Default, settings)));
    world.settle();
    let at = |port| format!("vxlan tunnel 192.0.2.1 to 192.0.2.2 vni 4096 port {port}");
    let there = world.vpp.canonical().tunnels;
    assert!(there.contains_key(&at(8472)) && !there.contains_key(&at(4789)), "{there:?}");
    let ipip = "192.0.2.3/32".parse::<ipnet::IpNet>().unwrap();
    let touched = world
        .log
        .iter()
        .any(|action| matches!(action, VppAction::PutRoute { prefix, .. } if *prefix == ipip));
    assert!(!touched, "{:?}", world.log);
}

/// What Calico/VPP's agent leaves: tunnels without a tag, and routes among all others under VPP's own source.
#[test]
fn what_another_agent_left_is_taken_over_ours_in_first_and_theirs_out_after() {
    let mut world = World::new();
    world.config.vpp.as_mut().unwrap().adopt = true;
    world.restart_agent();
    let ends = |remote: &str| VppAction::AddIpip {
        local: "192.0.2.1".parse().unwrap(),
        remote: remote.parse().unwrap(),
    };
    let mut tunnel = |remote: &str| {
        let Ok(VppReply::SwIfIndex(index)) = world.vpp.execute(&ends(remote)) else { panic!() };
        world.vpp.interfaces.get_mut(&index.0).unwrap().admin_up = true;
        FibPathKind::Attached(index)
    };
    let (used, unused) = (tunnel("192.0.2.2"), tunnel("192.0.2.9"));
    let uplink = FibPathKind::Via("192.0.2.254".parse().unwrap(), SwIfIndex(1));
    let flat = |gateway: &str| FibPathKind::Recursive(gateway.parse().unwrap(), TableId::MAIN);
    for (prefix, table, kind) in [
        ("10.1.0.0/26", 0, used),
        ("192.0.2.2/32", 2, used),
        // No longer in BGP.
        ("10.1.9.0/26", 0, unused),
        ("192.0.2.9/32", 2, unused),
        ("172.16.0.0/16", 0, flat("192.0.2.3")),
        // Of VPP's manager, or of anybody.
        ("0.0.0.0/0", 0, flat("192.0.2.254")),
        ("203.0.113.0/24", 0, uplink),
        ("172.31.0.0/16", 0, flat("192.0.2.77")),
        // No longer in BGP, and of the cluster: by the pool, by the node that it leads to.
        ("10.1.8.0/26", 0, flat("192.0.2.254")),
        ("172.17.0.0/16", 0, flat("192.0.2.3")),
    ] {
        let key = RouteKey { table: TableId(table), prefix: prefix.parse().unwrap() };
        world.vpp.others.insert(key, vec![FibPath { kind, weight: 1 }]);
    }
    world.cluster.nodes.insert(NodeName::from(ME), me());
    let other = Node { ipv4: Some("192.0.2.3/24".parse().unwrap()), ..Node::default() };
    world.cluster.nodes.insert("node-c".into(), other);
    let pool = Pool { ipip: Encapsulation::Always, ..Pool::new("10.1.0.0/16".parse().unwrap()) };
    world.cluster.pools.insert("always".into(), pool);
    for (prefix, hop) in
        [("10.1.0.0/26", "192.0.2.2"), ("172.16.0.0/16", "192.0.2.3"), ("0.0.0.0/0", "192.0.2.3")]
    {
        world.cluster.rib.insert(prefix.parse().unwrap(), via(&[hop]).unwrap());
    }
    world.neighbours();
    world.log.clear();
    world.connect();
    world.list();
    world.run();
    assert_eq!(world.vpp.others.len(), 10, "nothing goes before every source has spoken");
    assert_eq!(routes(&world).len(), 4, "{:?}", routes(&world));
    world.converge();
    world.settle();
    let left: Vec<String> = world.vpp.others.keys().map(|key| key.prefix.to_string()).collect();
    assert_eq!(left, ["0.0.0.0/0", "172.31.0.0/16", "203.0.113.0/24"]);
    let tunnels = world.vpp.canonical().tunnels;
    assert_eq!(tunnels.len(), 2, "ours, which was theirs, and a stranger's: {tunnels:?}");
    assert!(tunnels["ipip tunnel 192.0.2.1 to 192.0.2.2"].starts_with("peregrine ipip 192.0.2.2 up=true"));
    assert!(!world.log.iter().any(|action| matches!(action, VppAction::AddIpip { .. })), "{:?}", world.log);
    let place = |what: &dyn Fn(&VppAction) -> bool| world.log.iter().position(what).unwrap();
    let route = "10.1.0.0/26".parse::<ipnet::IpNet>().unwrap();
    let put = place(&|action| matches!(action, VppAction::PutRoute { prefix, .. } if *prefix == route));
    let taken = place(&|action| matches!(action, VppAction::DelOther { prefix, .. } if *prefix == route));
    assert!(put < taken, "{:?}", world.log);
    assert!(world.engine.status().ready(), "{:?}", world.engine.status());
}
