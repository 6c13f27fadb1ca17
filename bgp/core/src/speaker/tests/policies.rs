//! Policies that change while routes are held: what follows is exact, and costs nobody a session.

use super::*;
use crate::command::Chain;
use crate::policy::{
    Act, Condition, Default as Undecided, Direction, Flow, Glob, Mistake, Otherwise, PolicyDef, SetDef,
    StatementDef,
};
use crate::rib::NextHopState;

const V4: Family = Family::Ipv4Unicast;

fn policy(statements: Vec<StatementDef>, default: Undecided) -> PolicyDef {
    PolicyDef { statements, default }
}

fn put(world: &mut World, node: usize, name: &str, def: PolicyDef) {
    world.command(node, Command::PutPolicy(name.into(), def));
    world.settle();
}

fn chain(world: &mut World, node: usize, other: usize, import: Chain, export: Chain) {
    let config = PeerConfig { passive: other < node, import, export, ..world.config(other) };
    world.command(node, Command::PutPeer(key(other), config));
    world.settle();
}

fn rejects(range: &str) -> StatementDef {
    StatementDef::new(vec![Condition::Prefix(vec![range.parse().unwrap()])], vec![], Flow::Reject)
}

fn have(world: &mut World, node: usize) -> Vec<Nlri> {
    world.best(node, V4).keys().copied().collect()
}

/// What the Adj-RIB-Out says is what the others have, and nobody has lost a session.
fn agree(world: &mut World, node: usize, others: &[usize]) {
    for other in others {
        assert_eq!(world.told(node, *other, V4), world.heard(*other, node, V4));
        assert_eq!(world.peer(node, *other).established_count, 1);
    }
}

/// 1 hears from 0, and tells 2 and 3.
fn world() -> World {
    let mut world = World::joined(&[65010, 65020, 65030, 65040], &[(0, 1), (1, 2), (1, 3)]);
    (1..=4).for_each(|n| world.originate(0, nth(n), marked(n)));
    world.settle();
    world
}

#[test]
fn policies_of_the_speaker_run_before_those_of_its_neighbours() {
    let mut world = world();
    let own = policy(vec![rejects("10.0.1.0/24")], Undecided::Accept);
    put(&mut world, 1, "own", own);
    chain(&mut world, 1, 2, Chain::ACCEPT, Chain::named("own"));
    let all = [nth(1), nth(2), nth(3), nth(4)];
    assert_eq!((have(&mut world, 2), have(&mut world, 3)), (all[1..].to_vec(), all.to_vec()));
    put(&mut world, 1, "all", policy(vec![rejects("10.0.2.0/24")], Undecided::Next));
    let sent = |world: &World| [2, 3].map(|other| world.peer(1, other).sent.update);
    let before = sent(&world);
    world.command(1, Command::PutGlobalPolicies(Direction::Export, vec!["all".into()]));
    world.settle();
    assert_eq!((have(&mut world, 2), have(&mut world, 3)), (all[2..].to_vec(), vec![all[0], all[2], all[3]]));
    assert_eq!(sent(&world), before.map(|sent| sent + 1), "one withdrawal each, and nothing else");
    // Its decision is the last word.
    put(&mut world, 1, "all", policy(vec![rejects("10.0.2.0/24")], Undecided::Accept));
    assert_eq!(have(&mut world, 2), [all[0], all[2], all[3]]);
    world.command(1, Command::PutGlobalPolicies(Direction::Import, vec!["own".into()]));
    world.settle();
    assert_eq!(have(&mut world, 1), all[1..]);
    let refusal = world.try_command(1, Command::DeletePolicy("all".into())).unwrap_err();
    assert_eq!(refusal.to_string(), "policy all is one of those that run for every peer on export");
    for direction in [Direction::Import, Direction::Export] {
        world.command(1, Command::PutGlobalPolicies(direction, vec![]));
    }
    world.settle();
    assert_eq!((have(&mut world, 1), have(&mut world, 2)), (all.to_vec(), all[1..].to_vec()));
    agree(&mut world, 1, &[2, 3]);
}

/// RFC 8212: what is closed for one neighbour is not opened by what is meant for all of them.
#[test]
fn a_neighbours_plain_reject_stands_whatever_the_speakers_policies_accept() {
    let mut world = world();
    let all = [nth(1), nth(2), nth(3), nth(4)];
    put(&mut world, 1, "open", policy(vec![], Undecided::Accept));
    put(&mut world, 1, "late", policy(vec![], Undecided::Next));
    let everyone = |world: &mut World, direction, names: &[&str]| {
        let names = names.iter().map(|name| (*name).into()).collect();
        world.command(1, Command::PutGlobalPolicies(direction, names));
        world.settle();
    };
    // Export: before the speaker has policies, while it has, and for a neighbour that is closed while it has.
    chain(&mut world, 1, 2, Chain::ACCEPT, Chain::REJECT);
    everyone(&mut world, Direction::Export, &["open"]);
    assert_eq!((have(&mut world, 2), have(&mut world, 3)), (vec![], all.to_vec()));
    chain(&mut world, 1, 3, Chain::ACCEPT, Chain::REJECT);
    assert_eq!(have(&mut world, 3), []);
    // One with policies of its own, even ones that decide nothing, is not closed.
    chain(&mut world, 1, 3, Chain::ACCEPT, Chain::named("late"));
    assert_eq!((have(&mut world, 2), have(&mut world, 3)), (vec![], all.to_vec()));
    agree(&mut world, 1, &[2, 3]);
    // Import.
    everyone(&mut world, Direction::Import, &["open"]);
    assert_eq!(have(&mut world, 1), all);
    chain(&mut world, 1, 0, Chain::REJECT, Chain::ACCEPT);
    assert_eq!((have(&mut world, 1), have(&mut world, 3)), (vec![], vec![]));
    everyone(&mut world, Direction::Import, &["late", "open"]);
    assert_eq!(have(&mut world, 1), []);
    chain(&mut world, 1, 0, Chain::named("late"), Chain::ACCEPT);
    assert_eq!((have(&mut world, 1), have(&mut world, 3)), (all.to_vec(), all.to_vec()));
    agree(&mut world, 1, &[0, 2, 3]);
}

#[test]
fn a_change_of_what_is_called_reaches_those_who_call() {
    let mut world = world();
    let call = |label: &str| {
        let statement = StatementDef::new(vec![], vec![], Flow::Call("leaf".into())).labelled(label);
        policy(vec![statement], Undecided::Next)
    };
    world.command(1, Command::PutSet("unwanted".into(), SetDef::Prefixes(vec![])));
    let in_set = vec![Condition::PrefixSet("unwanted".into())];
    let leaf = policy(vec![StatementDef::new(in_set, vec![], Flow::Reject)], Undecided::Next);
    put(&mut world, 1, "leaf", leaf);
    put(&mut world, 1, "caller", call("first"));
    let accepts = || Chain::new(["caller"], Otherwise::Accept);
    chain(&mut world, 1, 0, accepts(), Chain::ACCEPT);
    chain(&mut world, 1, 2, Chain::ACCEPT, accepts());
    let (looked, sent) = (world.nodes[1].speaker.stats().looked_at, world.peer(1, 2).sent.update);
    put(&mut world, 1, "caller", call("second"));
    assert_eq!(world.nodes[1].speaker.stats().looked_at, looked, "a label is nobody's business");
    world.command(
        1,
        Command::PutSet("unwanted".into(), SetDef::Prefixes(vec!["10.0.3.0/24".parse().unwrap()])),
    );
    world.settle();
    assert_eq!(have(&mut world, 1), [nth(1), nth(2), nth(4)]);
    assert_eq!(have(&mut world, 3), [nth(1), nth(2), nth(4)]);
    assert_eq!(world.peer(1, 2).sent.update, sent + 1);
    let refusal = world.try_command(1, Command::DeletePolicy("leaf".into())).unwrap_err();
    assert_eq!(refusal.to_string(), "policy leaf is called by policy caller");
    // What would be a circle is refused, and the old one works on.
    let circle =
        policy(vec![StatementDef::new(vec![], vec![], Flow::Call("caller".into()))], Undecided::Reject);
    let refusal = world.try_command(1, Command::PutPolicy("leaf".into(), circle)).unwrap_err();
    assert!(matches!(&refusal, crate::command::Refusal::Policy(mistakes)
        if matches!(mistakes[0].what, Mistake::CallCycle(_))));
    assert_eq!(have(&mut world, 2), [nth(1), nth(2), nth(4)]);
    agree(&mut world, 1, &[0, 2, 3]);
}

#[test]
fn another_interface_of_a_next_hop_is_another_verdict() {
    let mut world = world();
    let on = |glob: &str| {
        let when = vec![Condition::Not(Box::new(Condition::Interface(Glob::new(glob))))];
        policy(vec![StatementDef::new(when, vec![], Flow::Reject)], Undecided::Accept)
    };
    put(&mut world, 1, "in", on("*"));
    put(&mut world, 1, "out", on("eth*"));
    let tell = |world: &mut World, interface: Option<&str>| {
        let state = NextHopState { interface: interface.map(Into::into), ..NextHopState::default() };
        world.command(1, Command::PutNextHop(address(0), state));
        world.settle();
    };
    tell(&mut world, Some("eth0"));
    chain(&mut world, 1, 0, Chain::named("in"), Chain::ACCEPT);
    chain(&mut world, 1, 2, Chain::ACCEPT, Chain::named("out"));
    let counts = |world: &mut World| [1, 2, 3].map(|node| have(world, node).len());
    assert_eq!(counts(&mut world), [4, 4, 4]);
    tell(&mut world, Some("tap7"));
    assert_eq!(counts(&mut world), [4, 0, 4]);
    tell(&mut world, None);
    assert_eq!(counts(&mut world), [0, 0, 0]);
    tell(&mut world, Some("eth1"));
    assert_eq!(counts(&mut world), [4, 4, 4]);
    world.command(1, Command::DeleteNextHop(address(0)));
    world.settle();
    assert_eq!(counts(&mut world), [0, 0, 0]);
    agree(&mut world, 1, &[0, 2, 3]);
}

#[test]
fn policies_set_next_hops_and_take_communities_away() {
    let mut world = world();
    let hop = "192.0.2.99".parse().unwrap();
    let acts = vec![
        Act::SetNextHop(hop),
        Act::ReplaceCommunities(vec![]),
        Act::AddMed(7),
        Act::SetOrigin(bgp_wire::attr::Origin::Incomplete),
    ];
    put(&mut world, 1, "in", policy(vec![StatementDef::new(vec![], acts, Flow::Accept)], Undecided::Reject));
    put(
        &mut world,
        1,
        "out",
        policy(vec![StatementDef::new(vec![], vec![Act::SetNextHop(hop)], Flow::Accept)], Undecided::Reject),
    );
    chain(&mut world, 1, 0, Chain::named("in"), Chain::ACCEPT);
    chain(&mut world, 1, 2, Chain::ACCEPT, Chain::named("out"));
    for (node, med) in [(1, Some(7)), (2, None)] {
        let routes = world.routes(node, RouteTable::LocRib, V4);
        let path = &routes[0].paths[0];
        let set = Canonical(path.attrs.canonical());
        assert_eq!((set.communities().len(), set.med()), (0, med));
        assert_eq!(set.origin(), bgp_wire::attr::Origin::Incomplete);
        assert_eq!(path.next_hop.map(|hop| hop.address()), Some(hop));
    }
    agree(&mut world, 1, &[2, 3]);
}
