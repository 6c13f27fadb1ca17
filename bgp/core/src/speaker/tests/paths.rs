//! What becomes of AS paths between speakers: another AS number for a neighbour (RFC 7705), our own in a path (RFC 4271
//! section 9.1.2), the neighbour's first (section 6.3), replaced, and private ones removed (RFC 6996). And which knobs
//! set neighbours apart.

use super::*;
use crate::command::{Chain, Contradiction, LocalAsn, NextHopMode, Refusal, RemovePrivateAs};
use crate::policy::{Act, Default, Flow, PolicyDef, StatementDef};
use crate::rib::PathRejected;

const V4: Family = Family::Ipv4Unicast;

/// Changes how a node treats a neighbour that connects.
fn put(world: &mut World, node: usize, other: usize, change: impl Fn(&mut PeerConfig)) -> Applied {
    let mut config = PeerConfig { passive: true, ..world.config(other) };
    change(&mut config);
    world.command(node, Command::PutPeer(key(other), config))
}

/// A policy at a node that puts these numbers in front of the paths of what it tells a neighbour, the last one leftmost.
fn prepend(world: &mut World, node: usize, other: usize, asns: &[u32]) {
    let apply = asns.iter().map(|asn| Act::Prepend(Asn(*asn), 1)).collect();
    let statement = StatementDef { label: None, when: vec![], apply, then: Flow::Accept };
    let def = PolicyDef { statements: vec![statement], default: Default::Accept };
    world.command(node, Command::PutPolicy("path".into(), def));
    let config = PeerConfig { export: Chain::named("path"), ..world.config(other) };
    world.command(node, Command::PutPeer(key(other), config));
}

fn path(world: &mut World, node: usize) -> Option<String> {
    world.best(node, V4).get(&nth(1)).map(|(_, path)| path.clone())
}

fn rejected(world: &mut World, node: usize, from: usize) -> Option<PathRejected> {
    world.routes(node, RouteTable::AdjRibIn(key(from)), V4)[0].paths[0].rejected
}

/// 0 tells 1, which tells 2: 65010, 65020, 65030. 0 and 2 connect.
fn chain() -> World {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (2, 1)]);
    world.originate(0, nth(1), marked(1));
    world.settle();
    world
}

#[test]
fn policy_prepends_before_our_own_number() {
    let mut world = chain();
    assert_eq!(path(&mut world, 2).as_deref(), Some("65020 65010"));
    prepend(&mut world, 0, 1, &[64999, 65010]);
    world.settle();
    assert_eq!(path(&mut world, 1).as_deref(), Some("65010 64999 65010"));
    // Inside an AS there is no number to stand before.
    let mut world = World::joined(&[65010, 65010], &[(0, 1)]);
    prepend(&mut world, 0, 1, &[64999]);
    world.originate(0, nth(1), marked(1));
    world.settle();
    assert_eq!(path(&mut world, 1).as_deref(), Some("64999"));
}

/// RFC 7705 section 3: 1 was 65099 once, and its neighbours still think so.
#[test]
fn another_as_number_in_each_of_its_forms() {
    let old = |no_prepend, replace_as| LocalAsn { asn: Asn(65099), no_prepend, replace_as };
    for (no_prepend, inside) in [(true, "65010"), (false, "65099 65010")] {
        for (replace_as, front) in [(true, "65099"), (false, "65099 65020")] {
            let mut world = chain();
            for other in [0, 2] {
                let as_before = PeerConfig { remote_asn: RemoteAsn::Is(Asn(65099)), ..world.config(1) };
                world.command(other, Command::PutPeer(key(1), as_before));
                put(&mut world, 1, other, |config| config.local_asn = Some(LocalAsn::new(Asn(65099))));
            }
            world.pass(Duration::from_secs(60));
            assert_eq!(path(&mut world, 2).as_deref(), Some("65099 65010"));
            // What becomes of paths changes without a new session.
            let before = world.peer(1, 0).established_count;
            for other in [0, 2] {
                put(&mut world, 1, other, |config| config.local_asn = Some(old(no_prepend, replace_as)));
            }
            world.settle();
            assert_eq!(path(&mut world, 1).as_deref(), Some(inside));
            assert_eq!(path(&mut world, 2), Some(format!("{front} {inside}")));
            assert_eq!(world.peer(1, 0).established_count, before);
        }
    }
}

/// RFC 4271 section 9.1.2: by whichever of our numbers.
#[test]
fn our_own_number_as_often_as_is_allowed() {
    let mut world = chain();
    prepend(&mut world, 0, 1, &[65020, 64999, 65020]);
    world.settle();
    assert_eq!(rejected(&mut world, 1, 0), Some(PathRejected::AsLoop));
    assert_eq!(path(&mut world, 2), None);
    for (allowed, expected) in [(1, None), (2, Some("65020 64999 65020 65010")), (0, None)] {
        assert_eq!(put(&mut world, 1, 0, |config| config.allow_own_as = allowed), Applied::Applied);
        world.settle();
        assert_eq!(path(&mut world, 1).as_deref(), expected, "{allowed}");
    }
    // The number that this neighbour knows us by is ours too; each counts alone.
    let as_before = PeerConfig { remote_asn: RemoteAsn::Is(Asn(65099)), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), as_before));
    prepend(&mut world, 0, 1, &[]);
    let as_before =
        PeerConfig { remote_asn: RemoteAsn::Is(Asn(65099)), export: Chain::named("path"), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), as_before));
    let statement = StatementDef {
        label: None,
        when: vec![],
        apply: vec![Act::Prepend(Asn(65099), 1), Act::Prepend(Asn(65020), 1)],
        then: Flow::Accept,
    };
    let def = PolicyDef { statements: vec![statement], default: Default::Accept };
    world.command(0, Command::PutPolicy("path".into(), def));
    let local = Some(LocalAsn::new(Asn(65099)));
    put(&mut world, 1, 0, |config| config.local_asn = local);
    world.pass(Duration::from_secs(60));
    assert_eq!(rejected(&mut world, 1, 0), Some(PathRejected::AsLoop));
    put(&mut world, 1, 0, |config| (config.local_asn, config.allow_own_as) = (local, 1));
    world.settle();
    assert_eq!(path(&mut world, 1).as_deref(), Some("65020 65099 65010"));
}

/// RFC 4271 section 6.3; RFC 7606 section 7.2: the route counts as withdrawn, the session stays.
#[test]
fn the_neighbours_own_number_comes_first_where_that_is_asked_for() {
    let mut world = chain();
    put(&mut world, 1, 0, |config| config.enforce_first_as = true);
    world.settle();
    assert_eq!(path(&mut world, 1).as_deref(), Some("65010"));
    prepend(&mut world, 0, 1, &[64999]);
    world.settle();
    assert_eq!(rejected(&mut world, 1, 0), Some(PathRejected::FirstAs));
    assert_eq!((path(&mut world, 1), path(&mut world, 2)), (None, None));
    assert!(world.is_up(0, 1));
    // It is kept, so that nothing need be asked for when the question is dropped.
    put(&mut world, 1, 0, |_| ());
    world.settle();
    assert_eq!(path(&mut world, 2).as_deref(), Some("65020 64999 65010"));
    // Inside an AS paths begin anyhow.
    let mut world = World::joined(&[65010, 65010], &[(0, 1)]);
    put(&mut world, 1, 0, |config| config.enforce_first_as = true);
    world.originate(0, nth(1), marked(1));
    world.settle();
    assert_eq!(path(&mut world, 1).as_deref(), Some(""));
}

#[test]
fn sites_of_one_as_hear_of_each_other() {
    // 0 and 2 are of one AS.
    let mut world = World::joined(&[65010, 65020, 65010], &[(0, 1), (2, 1)]);
    world.originate(0, nth(1), marked(1));
    world.settle();
    assert_eq!(rejected(&mut world, 2, 1), Some(PathRejected::AsLoop));
    put(&mut world, 1, 2, |config| config.as_override = true);
    world.settle();
    assert_eq!(path(&mut world, 2).as_deref(), Some("65020 65020"));
    // Or the site says that it does not mind.
    put(&mut world, 1, 2, |_| ());
    let config = PeerConfig { allow_own_as: 1, ..world.config(1) };
    world.command(2, Command::PutPeer(key(1), config));
    world.settle();
    assert_eq!(path(&mut world, 2).as_deref(), Some("65020 65010"));
}

/// RFC 6996 section 4.
#[test]
fn private_numbers_stay_behind() {
    let mut world = chain();
    prepend(&mut world, 0, 1, &[7, 64999]);
    world.settle();
    for (all, replace, expected) in [
        (false, false, "65020 7 65010"),
        (true, false, "65020 7"),
        (false, true, "65020 65020 7 65010"),
        (true, true, "65020 65020 7 65020"),
    ] {
        put(&mut world, 1, 2, |config| config.remove_private_as = Some(RemovePrivateAs { all, replace }));
        world.settle();
        assert_eq!(path(&mut world, 2).as_deref(), Some(expected));
    }
    assert_eq!(path(&mut world, 1).as_deref(), Some("64999 7 65010"), "inside nothing is lost");
}

#[test]
fn what_is_for_external_neighbours_contradicts_an_internal_one() {
    let mut world = World::new(&[65010, 65010]);
    for (change, name) in [
        ((|config| config.as_override = true) as fn(&mut PeerConfig), "as-override"),
        (
            |config| config.remove_private_as = Some(RemovePrivateAs { all: true, replace: false }),
            "remove-private-as",
        ),
    ] {
        let mut config = world.config(1);
        change(&mut config);
        let refused = world.try_command(0, Command::PutPeer(key(1), config));
        assert_eq!(refused, Err(Refusal::Contradiction(Contradiction::PathOfInternal(name))));
    }
}

/// A group's key holds every input of the export path: each knob of export sets a neighbour apart from one without it, and
/// those that have it alike share all work.
#[test]
fn every_knob_of_export_is_in_the_key_of_a_group() {
    type Change = fn(&mut PeerConfig);
    let external: &[(&str, Change)] = &[
        ("local-asn", |config| {
            config.local_asn = Some(LocalAsn { replace_as: false, ..LocalAsn::new(Asn(65099)) });
        }),
        ("as-override", |config| config.as_override = true),
        ("remove-private-as", |config| {
            config.remove_private_as = Some(RemovePrivateAs { all: false, replace: false });
        }),
        ("remove-private-as: all", |config| {
            config.remove_private_as = Some(RemovePrivateAs { all: true, replace: false });
        }),
        ("remove-private-as: replace", |config| {
            config.remove_private_as = Some(RemovePrivateAs { all: true, replace: true });
        }),
        ("next-hop: self", |config| config.next_hop = NextHopMode::SelfAddress),
        ("next-hop: keep", |config| config.next_hop = NextHopMode::Keep),
        ("next-hop-ipv4", |config| config.next_hop_v4 = Some([192, 0, 2, 99].into())),
        ("export", |config| config.export = Chain::REJECT),
    ];
    let internal: &[(&str, Change)] = &[
        ("route-reflector-client", |config| config.route_reflector_client = true),
        ("next-hop: self", |config| config.next_hop = NextHopMode::SelfAddress),
        ("next-hop: keep", |config| config.next_hop = NextHopMode::Keep),
    ];
    // Not one of these says anything about what is told.
    let inward: &[(&str, Change)] = &[
        ("allow-own-as", |config| config.allow_own_as = 3),
        ("enforce-first-as", |config| config.enforce_first_as = true),
        ("no-prepend", |config| {
            config.local_asn = Some(LocalAsn { no_prepend: false, ..LocalAsn::new(Asn(65020)) });
        }),
    ];
    let groups = |asn: u32, changes: [Option<Change>; 2]| {
        let mut world = World::new(&[65020, asn, asn]);
        world.families = FamilySet::only(V4);
        for node in [1, 2] {
            let asn = if asn == 65020 { RemoteAsn::Internal } else { RemoteAsn::External };
            let theirs = PeerConfig { remote_asn: asn, ..world.config(0) };
            world.command(node, Command::PutPeer(key(0), theirs));
            let mut config = PeerConfig { passive: true, remote_asn: asn, ..world.config(node) };
            if let Some(change) = changes[node - 1] {
                change(&mut config);
            }
            world.command(0, Command::PutPeer(key(node), config));
        }
        world.load();
        world.settle();
        assert!(world.is_up(0, 1) && world.is_up(0, 2));
        world.nodes[0].speaker.sizes().update_groups
    };
    for (asn, knobs) in [(65010, external), (65020, internal)] {
        assert_eq!(groups(asn, [None, None]), 1);
        for (n, (name, change)) in knobs.iter().enumerate() {
            assert_eq!(groups(asn, [Some(*change), Some(*change)]), 1, "{name}: alike");
            assert_eq!(groups(asn, [Some(*change), None]), 2, "{name}: with and without");
            let (other, another) = knobs[(n + 1) % knobs.len()];
            assert_eq!(groups(asn, [Some(*change), Some(another)]), 2, "{name} and {other}");
        }
    }
    for (name, change) in inward {
        assert_eq!(groups(65010, [Some(*change), None]), 1, "{name}");
    }
}
