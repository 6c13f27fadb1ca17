//! Whatever happens on the way, the end is the same: random edits, failures, lost connections, restarts of VPP and of the
//! agent at any point, and then VPP and the speaker hold what they would hold had nothing gone wrong.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod world;

use std::time::Duration;

use agent_core::model::{
    Affinity, AffinityState, Encapsulation, FelixConfig, Node, NodeName, PerFamily, Pool, PublicKey,
};
use agent_core::plan::{NatAction, VppAction, WireguardAction};
use proptest::prelude::*;
use world::{Best, Fate, ME, World};

#[derive(Clone, Debug)]
enum Step {
    Route(usize, Option<usize>),
    Pool(usize, Option<usize>),
    Own(usize),
    Other(usize, bool),
    Block(usize, Option<usize>),
    /// So many rounds of operations.
    Work(usize),
    /// The connection goes after so many operations of a round.
    LoseAfter(usize),
    RestartVpp,
    RestartAgent,
    /// Every watcher lists again, and the change stream starts anew.
    Relist,
    Fates(Vec<usize>),
    Wait,
    /// What FelixConfiguration says of WireGuard.
    Felix(usize),
    /// The key of one of the other nodes.
    Key(usize, Option<usize>),
}

const PREFIXES: [&str; 9] = [
    "10.1.0.0/26",
    "10.1.0.64/26",
    "10.2.0.0/26",
    "10.2.0.64/26",
    "10.3.0.0/26",
    "172.16.0.0/16",
    "0.0.0.0/0",
    "fd00:1::/122",
    "fd00:2::/122",
];

fn hops(n: usize) -> Best {
    let list: &[&str] = match n {
        0 => &["192.0.2.2"],
        1 => &["198.51.100.2"],
        2 => &["198.51.100.3"],
        3 => &["198.51.100.2", "192.0.2.2"],
        4 => &["198.51.100.2", "198.51.100.3"],
        5 => &["2001:db8::2"],
        6 => &["2001:db8:9::2"],
        _ => return Best::Local,
    };
    Best::Via(list.iter().map(|hop| hop.parse().unwrap()).collect())
}

fn pool(n: usize, mode: usize) -> Pool {
    let cidr = ["10.1.0.0/16", "10.2.0.0/16", "10.0.0.0/8", "fd00:1::/32"][n];
    use Encapsulation::{Always, CrossSubnet, Never};
    let (ipip, vxlan) =
        [(Never, Never), (Always, Never), (CrossSubnet, Never), (Never, Always), (Never, CrossSubnet)][mode];
    Pool { ipip, vxlan, ..Pool::new(cidr.parse().unwrap()) }
}

fn own(n: usize) -> Option<Node> {
    let v4 = |text: &str| Some(text.parse().unwrap());
    let v6 = Some("2001:db8::1/64".parse().unwrap());
    match n {
        0 => Some(Node { ipv4: v4("192.0.2.1/24"), ipv6: v6, ..Node::default() }),
        1 => Some(Node { ipv4: v4("192.0.2.1/32"), ipv6: v6, ..Node::default() }),
        2 => Some(Node { ipv4: v4("192.0.2.77/24"), ..Node::default() }),
        _ => Some(Node { ipv6: v6, ..Node::default() }),
    }
}

fn felix(n: usize) -> FelixConfig {
    let on = PerFamily { v4: Some(true), v6: Some(true) };
    match n {
        0 => FelixConfig::default(),
        1 => FelixConfig { wireguard_enabled: on, ..FelixConfig::default() },
        2 => FelixConfig {
            wireguard_enabled: on,
            wireguard_port: PerFamily { v4: Some(1000), v6: None },
            ..FelixConfig::default()
        },
        _ => FelixConfig {
            wireguard_enabled: on,
            wireguard_keep_alive: Some(Duration::from_secs(25)),
            ..FelixConfig::default()
        },
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..PREFIXES.len(), prop::option::weighted(0.8, 0..8usize)).prop_map(|(p, h)| Step::Route(p, h)),
        3 => (0..4usize, prop::option::weighted(0.9, 0..5usize)).prop_map(|(n, mode)| Step::Pool(n, mode)),
        1 => (0..4usize).prop_map(Step::Own),
        1 => (0..2usize, any::<bool>()).prop_map(|(n, there)| Step::Other(n, there)),
        2 => (0..3usize, prop::option::of(0..3usize)).prop_map(|(n, state)| Step::Block(n, state)),
        6 => (1..4usize).prop_map(Step::Work),
        2 => (0..6usize).prop_map(Step::LoseAfter),
        1 => Just(Step::RestartVpp),
        1 => Just(Step::RestartAgent),
        1 => Just(Step::Relist),
        2 => prop::collection::vec(0..4usize, 1..6).prop_map(Step::Fates),
        1 => Just(Step::Wait),
        2 => (0..4usize).prop_map(Step::Felix),
        3 => (0..2usize, prop::option::weighted(0.8, 0..3usize)).prop_map(|(n, key)| Step::Key(n, key)),
    ]
}

fn apply(world: &mut World, step: &Step) {
    match step {
        Step::Route(prefix, best) => world.route(PREFIXES[*prefix], best.map(hops)),
        Step::Pool(n, mode) => world.pool(&format!("pool-{n}"), mode.map(|mode| pool(*n, mode))),
        Step::Own(n) => world.node(ME, own(*n)),
        Step::Other(n, there) => {
            let address = ["192.0.2.2/24", "198.51.100.2/24"][*n];
            let node = Node { ipv4: Some(address.parse().unwrap()), ..Node::default() };
            world.node(&format!("node-{n}"), there.then_some(node));
        }
        Step::Felix(n) => world.felix(felix(*n)),
        Step::Key(n, key) => {
            let name = format!("node-{n}");
            if let Some(node) = world.cluster.nodes.get(&NodeName::from(name.as_str())) {
                let v4 = key.map(|key| PublicKey([1 + key as u8; 32]));
                let node = Node { wireguard: PerFamily { v4, v6: None }, ..node.clone() };
                world.node(&name, Some(node));
            }
        }
        Step::Block(n, state) => {
            let cidr = ["10.1.7.0/26", "10.1.0.0/26", "fd00:1::40/122"][*n];
            let state = state.map(|state| {
                [AffinityState::Confirmed, AffinityState::Pending, AffinityState::PendingDeletion][state]
            });
            let affinity = state.map(|state| Affinity {
                state,
                ..Affinity::confirmed(cidr.parse().unwrap(), NodeName::from(ME))
            });
            world.affinity(&format!("row-{n}"), affinity);
        }
        Step::Work(rounds) => {
            for _ in 0..*rounds {
                world.step(usize::MAX);
            }
        }
        Step::LoseAfter(operations) => {
            world.step(*operations);
            world.lose();
            world.connect();
        }
        Step::RestartVpp => {
            world.restart_vpp();
            world.connect();
        }
        Step::RestartAgent => {
            world.restart_agent();
            let from = world.log.len();
            // The first work may begin before, between and after the lists.
            world.connect();
            world.step(usize::MAX);
            world.step(3);
            if !world.connected {
                world.connect();
            }
            world.list();
            world.step(usize::MAX);
            let deletes = world.log[from..].iter().filter(|action| match action {
                VppAction::DelRoute { .. } | VppAction::DelIpip { .. } | VppAction::DelVxlan { .. } => true,
                VppAction::Wireguard(action) => matches!(action, WireguardAction::DelInterface { .. }),
                _ => false,
            });
            assert_eq!(deletes.count(), 0, "nothing is deleted before the RIB has converged");
            world.converge();
        }
        Step::Relist => world.relist(),
        Step::Fates(fates) => world.fates.extend(fates.iter().filter_map(|fate| match fate {
            0 => Some(Fate::Retry),
            1 => Some(Fate::Unanswered),
            2 => Some(Fate::Swallowed),
            _ => None,
        })),
        Step::Wait => {
            if let Some(at) = world.engine.deadline() {
                world.now = world.now.max(at);
                world.event(agent_core::Event::Tick);
            }
        }
    }
}

/// What VPP doesn't show, so that it is asked for by each run of the agent.
fn is_unseen(action: &VppAction) -> bool {
    matches!(
        action,
        VppAction::Dump
            | VppAction::SetGso { .. }
            | VppAction::SetCnat { .. }
            | VppAction::AddDecapNext { .. }
            | VppAction::Nat(NatAction::SetPolicy | NatAction::Exclude { add: true, .. })
    )
}

/// A world that has come through these steps, before it comes to rest.
fn after(steps: &[Step]) -> World {
    let mut world = World::new();
    world.cluster.nodes.insert(NodeName::from(ME), own(0).unwrap());
    world.neighbours();
    world.connect();
    world.list();
    world.converge();
    for step in steps {
        apply(&mut world, step);
    }
    world
}

/// What a short life of a node asks of VPP: tunnels come, change and go.
const LIFE: [Step; 12] = [
    Step::Pool(0, Some(1)),
    Step::Pool(1, Some(2)),
    Step::Block(0, Some(0)),
    Step::Route(0, Some(1)),
    Step::Route(2, Some(4)),
    Step::Route(7, Some(5)),
    Step::Work(8),
    Step::Route(0, Some(2)),
    Step::Route(2, Some(0)),
    Step::Work(8),
    Step::Pool(0, Some(3)),
    Step::Pool(1, Some(4)),
];

/// The same by WireGuard: peers come, change what they may send and their keys, and go.
const ENCRYPTED_LIFE: [Step; 14] = [
    Step::Pool(0, Some(1)),
    Step::Pool(1, Some(2)),
    Step::Other(0, true),
    Step::Other(1, true),
    Step::Key(1, Some(1)),
    Step::Felix(1),
    Step::Route(0, Some(1)),
    Step::Work(8),
    Step::Route(1, Some(1)),
    Step::Route(2, Some(4)),
    Step::Work(8),
    Step::Key(1, Some(2)),
    Step::Work(8),
    Step::Felix(3),
];

/// Something goes wrong after each single operation, in every way.
#[test]
fn interrupted_after_each_operation() {
    interrupted(&LIFE);
}

#[test]
fn interrupted_after_each_operation_with_wireguard() {
    interrupted(&ENCRYPTED_LIFE);
}

fn interrupted(life: &[Step]) {
    let calm = World::undisturbed(after(life).cluster);
    let mut total = 0;
    for what in [Step::RestartAgent, Step::RestartVpp, Step::LoseAfter(0), Step::Relist] {
        for operations in 0.. {
            let mut world = World::new();
            world.window = 1;
            world.cluster.nodes.insert(NodeName::from(ME), own(0).unwrap());
            world.neighbours();
            world.connect();
            world.list();
            world.converge();
            for step in life.iter().filter(|step| !matches!(step, Step::Work(_))) {
                apply(&mut world, step);
                for _ in 0..3 {
                    if world.log.len() < operations {
                        world.step(usize::MAX);
                    }
                }
            }
            while world.log.len() < operations && world.step(usize::MAX) {}
            if world.log.len() < operations {
                assert!(operations > 20, "too short a life: {operations}");
                break;
            }
            apply(&mut world, &what);
            world.settle();
            assert_eq!(world.vpp.canonical(), calm.vpp.canonical(), "{what:?} after {operations} operations");
            assert_eq!(world.speaker, calm.speaker, "{what:?} after {operations} operations");
            total += 1;
        }
    }
    assert!(total > 80, "{total}");
}

#[test]
fn what_vpp_refused_is_not_taken_back_by_who_comes_later() {
    let steps = [
        Step::RestartAgent,
        Step::Pool(1, Some(0)),
        Step::Fates(vec![0, 0, 0]),
        Step::Work(1),
        Step::Pool(1, None),
    ];
    let mut world = after(&steps);
    world.fates.clear();
    world.settle();
    let done = world.log.len();
    world.restart_agent();
    world.connect();
    world.list();
    world.converge();
    world.settle();
    let again: Vec<_> = world.log[done..].iter().filter(|action| !is_unseen(action)).collect();
    assert_eq!(again, Vec::<&VppAction>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_end_does_not_depend_on_the_way(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = after(&steps);
        world.fates.clear();
        world.settle();
        prop_assert!(world.engine.status().ready(), "{:?}", world.engine.status());

        let calm = World::undisturbed(world.cluster.clone());
        prop_assert_eq!(world.vpp.canonical(), calm.vpp.canonical());
        prop_assert_eq!(&world.speaker, &calm.speaker);

        // Converged means no operations, also for an agent that starts now.
        let done = world.log.len();
        world.restart_agent();
        world.connect();
        world.list();
        world.converge();
        world.settle();
        let again: Vec<_> = world.log[done..]
            .iter()
            .filter(|action| !is_unseen(action))
            .collect();
        prop_assert_eq!(again, Vec::<&VppAction>::new());
    }
    #[test]
    fn the_same_events_have_the_same_effects(steps in prop::collection::vec(step(), 1..40)) {
        let (one, other) = (after(&steps), after(&steps));
        prop_assert_eq!(one.log, other.log);
        prop_assert_eq!(one.commands, other.commands);
    }
}
