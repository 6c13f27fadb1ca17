//! Roles and ONLY_TO_CUSTOMER (RFC 9234).

use super::*;
use crate::command::{LocalAsn, Refusal};
use crate::rib::PathRejected;
use crate::session::{PeerRole, SettingsError};
use bgp_wire::attr::{Builder, Community, Origin};
use bgp_wire::{EncodeOptions, Ipv4Prefix, PathId, Role, UpdateWriter};
use bytes::BytesMut;

const V4: Family = Family::Ipv4Unicast;
const V6: Family = Family::Ipv6Unicast;

/// Makes two nodes neighbours; `a` has `role` towards `b`, and `b` says the opposite.
fn join(world: &mut World, a: usize, b: usize, role: Role) {
    join_as(world, a, b, Some(PeerRole::new(role)), Some(PeerRole::new(role.opposite())));
}

fn join_as(world: &mut World, a: usize, b: usize, ours: Option<PeerRole>, theirs: Option<PeerRole>) {
    for (node, other, role, passive) in [(b, a, theirs, true), (a, b, ours, false)] {
        let config = PeerConfig { passive, role, ..world.config(other) };
        world.command(node, Command::PutPeer(key(other), config));
    }
}

/// ONLY_TO_CUSTOMER of a node's paths to a prefix, and why a path may not become best.
fn marks(world: &mut World, node: usize, prefix: Nlri) -> Vec<(Option<u32>, Option<PathRejected>)> {
    let routes = world.routes(node, RouteTable::LocRib, prefix.family());
    let paths = routes.iter().filter(|route| route.nlri == prefix).flat_map(|route| &route.paths);
    paths
        .map(|path| {
            let otc = Canonical(path.attrs.canonical()).only_to_customer();
            (otc.map(|asn| asn.0), path.rejected)
        })
        .collect()
}

/// An UPDATE of 10.0.1.0/24 from AS 65010, marked or not.
fn update(otc: Option<u32>) -> Vec<u8> {
    let set = Builder::new(Origin::Igp).prepend(Asn(65010), 1).only_to_customer(otc.map(Asn)).build();
    let mut attrs = Vec::new();
    bgp_wire::attr::encode(Canonical(&set), Some([192, 0, 2, 1].into()), true, &mut attrs);
    let mut out = BytesMut::new();
    let prefix = Ipv4Prefix::new(0x0a00_0100, 24).unwrap();
    UpdateWriter::new(&mut out, EncodeOptions::default())
        .announce_v4(&attrs, [(PathId::NONE, prefix)])
        .unwrap();
    out.to_vec()
}

// ---- Section 4: the session ----

#[test]
fn the_session_needs_roles_that_fit() {
    // Table 2, and section 4.2: silence is allowed but in strict mode.
    let mut cases = Vec::new();
    for ours in Role::ALL {
        for theirs in Role::ALL {
            cases.push((Some(ours), Some(theirs), false, theirs == ours.opposite()));
        }
        cases.push((Some(ours), None, false, true));
        cases.push((Some(ours), None, true, false));
        cases.push((Some(ours), Some(ours.opposite()), true, true));
        cases.push((None, Some(ours), false, true));
    }
    for (ours, theirs, strict, fits) in cases {
        let mut world = World::new(&[65010, 65020]);
        let ours = ours.map(|role| PeerRole { role, strict });
        join_as(&mut world, 0, 1, ours, theirs.map(PeerRole::new));
        world.settle();
        assert_eq!(world.is_up(0, 1), fits, "{ours:?} {theirs:?}");
        assert_eq!(world.peer(0, 1).role, ours);
        if !fits {
            let errors = [world.peer(0, 1), world.peer(1, 0)].map(|peer| peer.last_error.unwrap_or_default());
            assert!(errors.iter().all(|error| error.to_lowercase().contains("role")), "{errors:?}");
        } else {
            assert_eq!(world.peer(0, 1).remote_role, theirs);
        }
    }
}

#[test]
fn why_roles_do_not_fit_is_said_in_words() {
    let mut world = World::new(&[65010, 65020]);
    let peer = Some(PeerRole::new(Role::Peer));
    join_as(&mut world, 0, 1, Some(PeerRole::new(Role::Provider)), peer);
    world.settle();
    let error = world.peer(0, 1).last_error.unwrap();
    assert!(error.contains("we are its provider, but the neighbour is peer, not customer"), "{error}");
    let mut world = World::new(&[65010, 65020]);
    join_as(&mut world, 0, 1, Some(PeerRole { role: Role::Customer, strict: true }), None);
    world.settle();
    let error = world.peer(0, 1).last_error.unwrap();
    assert!(error.contains("the neighbour does not say that it is provider"), "{error}");
}

#[test]
fn the_capability_is_sent_where_a_role_is_configured_only() {
    let mut world = World::new(&[65010, 65020, 65030]);
    join_as(&mut world, 0, 1, Some(PeerRole::new(Role::RouteServer)), None);
    join_as(&mut world, 0, 2, None, None);
    world.settle();
    let sent = |world: &World, other| -> Vec<Vec<u8>> {
        let capabilities = world.peer(0, other).local_capabilities;
        capabilities.into_iter().filter(|tlv| tlv[0] == 9).collect()
    };
    assert_eq!(sent(&world, 1), [vec![9, 1, 1]]);
    assert!(sent(&world, 2).is_empty());
}

#[test]
fn a_role_inside_the_as_is_refused() {
    let mut world = World::new(&[65010, 65010, 65020]);
    let role = Some(PeerRole::new(Role::Peer));
    for remote_asn in [RemoteAsn::Internal, RemoteAsn::Is(Asn(65010))] {
        let config = PeerConfig { role, ..PeerConfig::new(remote_asn) };
        let refusal = world.try_command(0, Command::PutPeer(key(1), config)).unwrap_err();
        let expected = SettingsError::RoleInside { role: Role::Peer, asn: Asn(65010) };
        assert_eq!(refusal, Refusal::Settings(expected));
        let text = refusal.to_string();
        assert!(text.contains("role peer") && text.contains("remote AS 65010"), "{text}");
    }
    // Nor can the AS become that of a neighbour with a role.
    let config = PeerConfig { role, ..world.config(2) };
    world.command(0, Command::PutPeer(key(2), config));
    let identity = Command::PutIdentity { asn: Asn(65020), router_id: RouterId(7) };
    let refusal = world.try_command(0, identity).unwrap_err();
    let expected = SettingsError::RoleInside { role: Role::Peer, asn: Asn(65020) };
    assert_eq!(refusal, Refusal::Settings(expected));
    assert_eq!(world.nodes[0].speaker.identity().0, Asn(65010), "nothing has changed");
}

// ---- Section 5: ingress ----

#[test]
fn what_arrives_is_let_in_or_marked_or_found_to_leak() {
    for (neighbour, otc, expected) in [
        // 1.
        (Role::Customer, Some(65099), (Some(65099), Some(PathRejected::RouteLeak))),
        (Role::Customer, Some(65010), (Some(65010), Some(PathRejected::RouteLeak))),
        (Role::RouteServerClient, Some(65010), (Some(65010), Some(PathRejected::RouteLeak))),
        (Role::Customer, None, (None, None)),
        (Role::RouteServerClient, None, (None, None)),
        // 2.
        (Role::Peer, Some(65099), (Some(65099), Some(PathRejected::RouteLeak))),
        (Role::Peer, Some(65010), (Some(65010), None)),
        // 3.
        (Role::Provider, None, (Some(65010), None)),
        (Role::Peer, None, (Some(65010), None)),
        (Role::RouteServer, None, (Some(65010), None)),
        (Role::Provider, Some(65099), (Some(65099), None)),
        (Role::RouteServer, Some(65099), (Some(65099), None)),
    ] {
        for named in [true, false] {
            let mut world = World::new(&[65010, 65020]);
            let theirs = named.then_some(PeerRole::new(neighbour));
            // Section 4.2: the configured role counts, whether the neighbour names its own or not.
            join_as(&mut world, 1, 0, Some(PeerRole::new(neighbour.opposite())), theirs);
            world.settle();
            world.inject(0, 1, update(otc));
            assert_eq!(marks(&mut world, 1, nlri("10.0.1.0/24")), [expected], "{neighbour} {otc:?}");
            let received = world.routes(1, RouteTable::AdjRibIn(key(0)), V4);
            let path = &received[0].paths[0];
            assert_eq!(
                Canonical(path.attrs.canonical()).only_to_customer().map(|asn| asn.0),
                otc,
                "as it came"
            );
            assert_eq!(path.best, expected.1.is_none());
            let family = world.peer(1, 0).families[0];
            assert_eq!((family.received, family.accepted), (1, u64::from(expected.1.is_none())));
        }
    }
}

#[test]
fn without_a_role_the_attribute_is_carried_and_means_nothing() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    world.inject(0, 1, update(Some(65099)));
    world.settle();
    assert_eq!(marks(&mut world, 1, nlri("10.0.1.0/24")), [(Some(65099), None)]);
    assert_eq!(marks(&mut world, 2, nlri("10.0.1.0/24")), [(Some(65099), None)]);
}

#[test]
fn a_leak_gives_way_to_another_path_and_is_seen_again_when_import_runs_again() {
    let mut world = World::new(&[65010, 65020, 65030]);
    join(&mut world, 1, 0, Role::Provider);
    world.join(2, 1);
    world.load();
    world.settle();
    world.originate(2, nlri("10.0.1.0/24"), marked(1));
    world.inject(0, 1, update(None));
    world.settle();
    let best = |world: &mut World| world.best(1, V4)[&nlri("10.0.1.0/24")].1.clone();
    assert_eq!(best(&mut world), "65010");
    world.inject(0, 1, update(Some(65010)));
    world.settle();
    assert_eq!(best(&mut world), "65030");
    world.command(1, Command::ClearPeer(key(0), crate::command::Clear::SoftIn));
    world.settle();
    assert_eq!(best(&mut world), "65030");
    world.inject(0, 1, update(None));
    world.settle();
    assert_eq!(best(&mut world), "65010");
}

// ---- Section 5: egress ----

#[test]
fn what_leaves_is_marked_or_withheld() {
    // 0 is the neighbour that the route comes from, 1 speaks, 2 is the neighbour that it would go to.
    for to in Role::ALL {
        for from in Role::ALL {
            let mut world = World::new(&[65010, 65020, 65030]);
            join(&mut world, 1, 0, from.opposite());
            join(&mut world, 1, 2, to.opposite());
            world.load();
            world.originate(0, nth(1), marked(1));
            world.originate(1, nth(2), marked(2));
            world.originate(1, nlri("2001:db8:2::/48"), marked(2));
            world.settle();
            // 1. To customers, peers, clients: marked, by ourselves where nobody has marked it before.
            let ours = match to {
                Role::Customer | Role::Peer | Role::RouteServerClient => Some(65020),
                // Ingress 3 at the other end, on a session with a provider or a server, marks nothing.
                Role::Provider | Role::RouteServer => None,
            };
            assert_eq!(marks(&mut world, 2, nth(2)), [(ours, None)], "own route to {to}");
            assert_eq!(marks(&mut world, 2, nlri("2001:db8:2::/48")), [(ours, None)], "IPv6");
            // 2. What came from above or beside, and is so marked, goes to customers and clients only.
            let from_above = matches!(from, Role::Provider | Role::Peer | Role::RouteServer);
            let downwards = matches!(to, Role::Customer | Role::RouteServerClient);
            let expected = match (from_above, downwards) {
                (true, true) => vec![(Some(65010), None)],
                (true, false) => vec![],
                (false, _) => vec![(ours, None)],
            };
            assert_eq!(marks(&mut world, 2, nth(1)), expected, "from {from} to {to}");
            let told = world.told(1, 2, V4).contains_key(&nth(1));
            assert_eq!(told, !expected.is_empty(), "what is told is what is shown");
        }
    }
}

#[test]
fn inside_the_as_a_mark_travels_unchanged() {
    // 0 is a provider of 1; 2 is in 1's AS; 3 is a peer and 4 a customer of it.
    let mut world = World::new(&[65010, 65020, 65020, 65030, 65040]);
    join(&mut world, 1, 0, Role::Customer);
    world.join(1, 2);
    join(&mut world, 2, 3, Role::Peer);
    join(&mut world, 2, 4, Role::Provider);
    world.load();
    world.originate(0, nth(1), marked(1));
    world.settle();
    assert_eq!(marks(&mut world, 2, nth(1)), [(Some(65010), None)]);
    assert_eq!(marks(&mut world, 3, nth(1)), []);
    assert_eq!(marks(&mut world, 4, nth(1)), [(Some(65010), None)]);
}

#[test]
fn the_mark_is_the_as_that_the_neighbour_knows_us_by() {
    // Section 6: a router sets the number of the AS that it currently represents itself as.
    let mut world = World::new(&[65010, 65020]);
    let role = |role| Some(PeerRole::new(role));
    let config = PeerConfig {
        local_asn: Some(LocalAsn::new(Asn(65100))),
        role: role(Role::Provider),
        ..world.config(1)
    };
    world.command(0, Command::PutPeer(key(1), config));
    let config = PeerConfig {
        remote_asn: RemoteAsn::Is(Asn(65100)),
        passive: true,
        role: role(Role::Customer),
        ..world.config(0)
    };
    world.command(1, Command::PutPeer(key(0), config));
    world.load();
    world.originate(
        0,
        nth(1),
        Origination { communities: vec![Community::new(1, 1).0], ..Origination::default() },
    );
    world.originate(0, nlri("2001:db8:2::/48"), marked(2));
    world.settle();
    for prefix in [nth(1), nlri("2001:db8:2::/48")] {
        assert_eq!(marks(&mut world, 1, prefix), [(Some(65100), None)]);
    }
    let told = world.routes(0, RouteTable::AdjRibOut(key(1)), V6);
    let set = told[0].paths[0].attrs.clone();
    assert_eq!(Canonical(set.canonical()).only_to_customer(), Some(Asn(65100)), "shown as it is sent");
}

#[test]
fn a_new_role_starts_the_session_again() {
    let mut world = World::new(&[65010, 65020]);
    join(&mut world, 0, 1, Role::Peer);
    world.settle();
    assert!(world.is_up(0, 1));
    let config = PeerConfig { role: Some(PeerRole::new(Role::Provider)), ..world.config(1) };
    assert_eq!(world.command(0, Command::PutPeer(key(1), config)), Applied::SessionReset);
    world.pass(Duration::from_secs(60));
    assert!(!world.is_up(0, 1), "the other end still is a peer");
}
