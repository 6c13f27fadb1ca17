//! Commands: what they change, what they leave alone, what they refuse.

use super::*;
use crate::command::{Audience, Chain, Clear, LocalAsn, NextHopMode, PeerRange, Refusal};
use crate::policy::{Act, Condition, Flow, Learned, PolicyDef, SetDef, SetKind, StatementDef};
use crate::rib::NextHopState;
use crate::session::SettingsError;
use bgp_wire::attr::Community;

const V4: Family = Family::Ipv4Unicast;

fn statement(when: Vec<Condition>, apply: Vec<Act>, then: Flow) -> StatementDef {
    StatementDef { label: None, when, apply, then }
}

fn policy(statements: Vec<StatementDef>, accept: bool) -> PolicyDef {
    let default = if accept { crate::policy::Default::Accept } else { crate::policy::Default::Reject };
    PolicyDef { statements, default }
}

fn in_set(name: &str) -> Vec<Condition> {
    vec![Condition::PrefixSet(name.into())]
}

fn put_policy(world: &mut World, node: usize, name: &str, def: PolicyDef) -> Applied {
    world.command(node, Command::PutPolicy(name.into(), def))
}

fn reconfigure(world: &mut World, node: usize, other: usize, change: impl Fn(&mut PeerConfig)) -> Applied {
    let mut config = PeerConfig { passive: other < node, ..world.config(other) };
    change(&mut config);
    world.command(node, Command::PutPeer(key(other), config))
}

fn prefixes(world: &mut World, node: usize) -> Vec<Nlri> {
    world.best(node, V4).keys().copied().collect()
}

#[test]
fn saying_it_twice_changes_nothing() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    assert_eq!(reconfigure(&mut world, 0, 1, |_| ()), Applied::Unchanged);
    let twice = [
        Command::PutOrigination(nth(1), marked(1)),
        Command::PutSet("own".into(), SetDef::Prefixes(vec!["10.0.0.0/8 le 32".parse().unwrap()])),
        Command::PutSet("them".into(), SetDef::Neighbors(vec![address(1)])),
        Command::PutPolicy("p".into(), policy(vec![statement(in_set("own"), vec![], Flow::Accept)], false)),
        Command::PutNextHop(address(5), NextHopState::default()),
        Command::DisablePeer(key(1), "maintenance".into()),
        Command::EnablePeer(key(1)),
        Command::DeleteNextHop(address(5)),
        Command::DeletePolicy("p".into()),
        Command::DeleteSet(SetKind::Neighbors, "them".into()),
        Command::DeleteSet(SetKind::Prefixes, "own".into()),
        Command::DeleteOrigination(nth(1)),
        Command::DeletePeer(key(1)),
    ];
    for command in twice {
        assert_ne!(world.command(0, command.clone()), Applied::Unchanged, "{command:?}");
        world.settle();
        assert_eq!(world.command(0, command.clone()), Applied::Unchanged, "{command:?}");
    }
    let identity = Command::PutIdentity { asn: Asn(65011), router_id: RouterId(9) };
    assert_eq!(world.command(0, identity.clone()), Applied::Applied);
    assert_eq!(world.command(0, identity), Applied::Unchanged);
    assert_eq!(world.command(0, Command::LoadingDone), Applied::Unchanged, "said when the world began");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let config = world.config(1);
    let put = |world: &mut World, key: PeerKey, change: fn(&mut PeerConfig)| {
        let mut config = config.clone();
        change(&mut config);
        world.try_command(0, Command::PutPeer(key, config)).unwrap_err()
    };
    let other = PeerKey::new("192.0.2.9".parse().unwrap());
    assert!(matches!(
        put(&mut world, PeerKey::new("224.0.0.1".parse().unwrap()), |_| ()),
        Refusal::PeerAddress(_)
    ));
    assert!(matches!(
        put(&mut world, PeerKey::new("0.0.0.0".parse().unwrap()), |_| ()),
        Refusal::PeerAddress(_)
    ));
    let refusal = put(&mut world, other, |config| config.remote_asn = RemoteAsn::Is(Asn(0)));
    assert_eq!(refusal, Refusal::Settings(SettingsError::ZeroAsn));
    let refusal = put(&mut world, other, |config| config.families = FamilySet::EMPTY);
    assert_eq!(refusal, Refusal::Settings(SettingsError::NoFamily));
    let refusal = put(&mut world, other, |config| config.local_address = Some([224, 0, 0, 1].into()));
    assert!(matches!(refusal, Refusal::LocalAddress(_)));
    let refusal = put(&mut world, other, |config| config.next_hop_v4 = Some([0; 4].into()));
    assert!(matches!(refusal, Refusal::OwnNextHop(_)));
    let refusal = put(&mut world, other, |config| config.export = Chain::named("none"));
    assert_eq!(refusal.to_string(), "no policy none");
    assert_eq!(world.nodes[0].speaker.peers(world.now).len(), 1);

    let mut refused = |command| world.try_command(0, command).unwrap_err();
    for (prefix, next_hop) in
        [("2001:db8:1::/48", "192.0.2.1"), ("10.0.0.0/8", "ff02::1"), ("10.0.0.0/8", "::")]
    {
        let next_hop = Some(next_hop.parse().unwrap());
        let origination = Origination { next_hop, ..Origination::default() };
        let put = Command::PutOrigination(prefix.parse().unwrap(), origination);
        assert!(matches!(refused(put), Refusal::NextHop(_)), "{next_hop:?}");
    }
    let many = Origination { communities: (0..2000).collect(), ..Origination::default() };
    assert_eq!(refused(Command::PutOrigination(nth(1), many)), Refusal::TooLarge);
    assert_eq!(refused(Command::ClearPeer(other, Clear::Hard)), Refusal::NoSuchPeer(other));
    assert_eq!(refused(Command::DisablePeer(key(1), "x".repeat(256))), Refusal::TextTooLong(256));
    let def = policy(vec![statement(in_set("none"), vec![], Flow::Accept)], false);
    let refusal = refused(Command::PutPolicy("p".into(), def));
    assert_eq!(
        refusal.to_string(),
        "policy p, statement 1: no prefix set \"none\"; define it first, or correct the name"
    );
    let identity = Command::PutIdentity { asn: Asn(0), router_id: RouterId(1) };
    assert_eq!(refused(identity), Refusal::Settings(SettingsError::ZeroAsn));
    assert!(world.best(0, V4).is_empty());
    assert!(world.is_up(0, 1));
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_both_named() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let config = world.config(1);
    let mut refused = |address: &str, change: fn(&mut PeerConfig)| {
        let mut config = PeerConfig { passive: false, ..config.clone() };
        change(&mut config);
        let prefix = ipnet::IpNet::from(address.parse::<PeerKey>().unwrap().address);
        // A prefix is as strict as an address; its neighbours are passive anyway, and have the zone they came from.
        let range = PeerRange::new(PeerConfig { passive: true, ..config.clone() });
        let of_range = world.try_command(0, Command::PutPeerRange(prefix, range));
        let refusal = world.try_command(0, Command::PutPeer(address.parse().unwrap(), config)).unwrap_err();
        assert_eq!(of_range.unwrap_err(), refusal, "of a prefix");
        refusal.to_string()
    };
    let cases = [
        (
            refused("192.0.2.9", |config| config.local_address = Some("2001:db8::1".parse().unwrap())),
            "local-address 2001:db8::1 and the neighbour's address 192.0.2.9 are of different IP versions",
        ),
        (
            refused("192.0.2.9", |config| {
                config.passive = true;
                config.local_port = std::num::NonZeroU16::new(1179);
            }),
            "local-port 1179 and passive contradict each other: a passive neighbour is never connected to",
        ),
        (
            refused("192.0.2.9", |config| {
                config.remote_asn = RemoteAsn::Internal;
                config.multihop_ttl = Some(64);
            }),
            "multihop 64 and an internal neighbour contradict each other: it may be any number of hops away",
        ),
        (
            refused("192.0.2.9", |config| {
                config.local_asn = Some(LocalAsn::new(Asn(65099)));
                config.remote_asn = RemoteAsn::Is(Asn(65099));
                config.multihop_ttl = Some(2);
            }),
            "multihop 2 and an internal neighbour contradict each other: it may be any number of hops away",
        ),
        (
            refused("192.0.2.9", |config| {
                config.families = FamilySet::only(Family::Ipv6Unicast);
                config.extended_next_hop = true;
            }),
            "extended-next-hop and families contradict each other: none of them has IPv4 prefixes",
        ),
        (
            refused("192.0.2.9", |config| config.keepalive = std::num::NonZeroU16::new(91)),
            "the keepalive time (91 s) exceeds the hold time (90 s)",
        ),
        (
            refused("192.0.2.9", |config| {
                config.keepalive = std::num::NonZeroU16::new(30);
                config.hold_time = crate::session::HoldTime::NONE;
            }),
            "the keepalive time (30 s) and a hold time of 0 contradict each other: no keepalives are sent then",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let alone = world.try_command(0, Command::PutPeer("fe80::1".parse().unwrap(), config.clone()));
    assert_eq!(
        alone.unwrap_err().to_string(),
        "the link-local address fe80::1 and no interface contradict each other: give it a zone, or set device"
    );
    for (address, device) in [("fe80::1%2", None), ("fe80::1", Some("eth0".parse().unwrap()))] {
        let config = PeerConfig { device, ..config.clone() };
        world.command(0, Command::PutPeer(address.parse().unwrap(), config));
    }
    let config = PeerConfig { passive: true, ..config };
    world.command(0, Command::PutPeerRange("fe80::/64".parse().unwrap(), PeerRange::new(config)));
    assert_eq!(world.nodes[0].speaker.peers(world.now).len(), 3);
}

#[test]
fn what_is_in_use_stays() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.command(0, Command::PutSet("own".into(), SetDef::Prefixes(vec![])));
    put_policy(&mut world, 0, "p", policy(vec![statement(in_set("own"), vec![], Flow::Accept)], false));
    let refusal = world.try_command(0, Command::DeleteSet(SetKind::Prefixes, "own".into())).unwrap_err();
    assert_eq!(refusal.to_string(), "prefix set own is used by policy p");
    reconfigure(&mut world, 0, 1, |config| config.import = Chain::named("p"));
    let refusal = world.try_command(0, Command::DeletePolicy("p".into())).unwrap_err();
    assert_eq!(refusal.to_string(), "policy p is used by peer 192.0.2.2");
    reconfigure(&mut world, 0, 1, |_| ());
    assert_eq!(world.command(0, Command::DeletePolicy("p".into())), Applied::Applied);
    assert_eq!(world.command(0, Command::DeleteSet(SetKind::Prefixes, "own".into())), Applied::Applied);
}

/// Case F19.
#[test]
fn another_as_number_resets_that_session_only() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (0, 2)]);
    world.originate(1, nth(1), marked(1));
    world.settle();
    let done = reconfigure(&mut world, 0, 1, |config| config.remote_asn = RemoteAsn::Is(Asn(65021)));
    assert_eq!(done, Applied::SessionReset);
    world.settle();
    assert!(!world.is_up(0, 1) && world.is_up(0, 2));
    assert!(world.best(0, V4).is_empty(), "its routes are gone");
    let why = world.peer(1, 0).last_error.unwrap();
    assert!(why.contains("Cease") || why.to_lowercase().contains("configuration"), "{why}");
    world.command(1, Command::PutIdentity { asn: Asn(65021), router_id: RouterId(0xc000_0202) });
    world.nodes[1].asn = Asn(65021);
    world.pass(Duration::from_secs(120));
    assert!(world.is_up(0, 1));
    assert_eq!(world.best(0, V4)[&nth(1)].1, "65021");
    assert_eq!(world.peer(0, 2).established_count, 1);
}

#[test]
fn another_own_as_number_judges_loops_anew_where_the_session_stays() {
    let mut world = World::new(&[65010, 65020]);
    let prepend = statement(vec![], vec![Act::Prepend(Asn(65033), 1)], Flow::Accept);
    world.command(0, Command::PutPolicy("out".into(), policy(vec![prepend], false)));
    let export = Chain::named("out");
    let config = PeerConfig { export, remote_asn: RemoteAsn::Is(Asn(64999)), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), config));
    let config = PeerConfig { passive: true, local_asn: Some(LocalAsn::new(Asn(64999))), ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    world.load();
    world.originate(0, nth(1), marked(1));
    world.settle();
    let router_id = world.nodes[1].speaker.identity().1;
    // The number that is in the path, and back.
    for (asn, used) in [(65020, 1), (65033, 0), (65020, 1)] {
        world.command(1, Command::PutIdentity { asn: Asn(asn), router_id });
        world.settle();
        assert_eq!(world.best(1, V4).len(), used, "{asn}");
        assert_eq!(world.peer(1, 0).families[0].accepted, used as u64);
    }
    assert_eq!(world.peer(1, 0).established_count, 1, "the local AS number is the same");
}

#[test]
fn what_needs_no_reset_gets_none() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let done = reconfigure(&mut world, 0, 1, |config| {
        config.description = "top of rack".into();
        config.connect_retry = Duration::from_secs(30);
        config.next_hop = NextHopMode::Keep;
        config.export = Chain::REJECT;
        config.import = Chain::REJECT;
    });
    assert_eq!(done, Applied::Applied);
    world.settle();
    assert!(world.is_up(0, 1));
    assert_eq!(world.peer(0, 1).established_count, 1);
    assert_eq!(world.peer(0, 1).description, "top of rack");
}

/// Case F20.
#[test]
fn an_export_policy_that_begins_to_reject_withdraws_and_says_nothing_else() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (0, 2)]);
    world.command(0, Command::PutSet("kept".into(), SetDef::Prefixes(vec![])));
    put_policy(&mut world, 0, "out", policy(vec![], true));
    for other in [1, 2] {
        reconfigure(&mut world, 0, other, |config| config.export = Chain::named("out"));
    }
    for n in 0..200 {
        world.originate(0, nth(n), marked(n % 3));
    }
    world.settle();
    let before = world.peer(0, 1).sent.update;
    let def = policy(vec![statement(in_set("kept"), vec![], Flow::Reject)], true);
    put_policy(&mut world, 0, "out", def);
    world.settle();
    assert_eq!(world.peer(0, 1).sent.update, before, "an empty set changes nothing");
    world.command(
        0,
        Command::PutSet("kept".into(), SetDef::Prefixes(vec!["10.0.0.0/20 le 24".parse().unwrap()])),
    );
    world.settle();
    assert_eq!(world.peer(0, 1).sent.update, before + 1, "one withdrawal of 16 prefixes");
    for other in [1, 2] {
        assert_eq!(world.best(other, V4).len(), 184);
        assert_eq!(world.told(0, other, V4), world.heard(other, 0, V4));
        assert!(world.is_up(0, other));
    }
    world.command(0, Command::PutSet("kept".into(), SetDef::Prefixes(vec![])));
    world.settle();
    assert_eq!(world.best(1, V4).len(), 200);
}

#[test]
fn an_export_policy_edits_and_a_change_of_the_edits_is_told() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(0, nth(1), marked(1));
    world.originate(0, nth(2), marked(2));
    let with = |mark: u32| {
        let when = vec![Condition::Community(Community(2))];
        let acts = vec![Act::AddCommunity(Community(mark)), Act::Prepend(Asn(65010), 2), Act::SetMed(mark)];
        policy(vec![statement(when, acts, Flow::Accept)], true)
    };
    put_policy(&mut world, 0, "out", with(7));
    reconfigure(&mut world, 0, 1, |config| config.export = Chain::named("out"));
    world.settle();
    let of = |world: &mut World| {
        let routes = world.routes(1, RouteTable::LocRib, V4);
        let route = routes.iter().find(|route| route.nlri == nth(2)).unwrap();
        let set = Canonical(route.paths[0].attrs.canonical());
        let communities: Vec<u32> = set.communities().map(|community| community.0).collect();
        (communities, set.as_path().to_string(), set.med())
    };
    assert_eq!(of(&mut world), (vec![2, 7], "65010 65010 65010".into(), Some(7)));
    let before = world.peer(0, 1).sent.update;
    put_policy(&mut world, 0, "out", with(8));
    world.settle();
    assert_eq!(of(&mut world), (vec![2, 8], "65010 65010 65010".into(), Some(8)));
    assert_eq!(world.peer(0, 1).sent.update, before + 1, "the other route is not sent again");
}

#[test]
fn an_export_policy_may_ask_who_is_told_and_where_a_route_is_from() {
    let mut world = World::joined(&[65010, 65020, 65030, 65040], &[(0, 1), (0, 2), (0, 3)]);
    world.command(0, Command::PutSet("some".into(), SetDef::Neighbors(vec![address(1)])));
    let when = vec![Condition::NeighborSet("some".into()), Condition::Learned(Learned::Local)];
    put_policy(&mut world, 0, "out", policy(vec![statement(when, vec![], Flow::Accept)], false));
    for other in [1, 2] {
        reconfigure(&mut world, 0, other, |config| config.export = Chain::named("out"));
    }
    world.originate(0, nth(1), marked(1));
    world.originate(3, nth(2), marked(1));
    world.settle();
    assert_eq!(prefixes(&mut world, 1), [nth(1)]);
    assert!(prefixes(&mut world, 2).is_empty());
    assert_eq!(prefixes(&mut world, 3), [nth(1), nth(2)]);
    world.command(0, Command::PutSet("some".into(), SetDef::Neighbors(vec![address(2)])));
    world.settle();
    assert!(prefixes(&mut world, 1).is_empty());
    assert_eq!(prefixes(&mut world, 2), [nth(1)]);
}

#[test]
fn import_policy_filters_edits_and_can_change_without_asking_the_neighbour() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    for n in 0..300 {
        world.originate(0, nth(n), marked(n % 3));
    }
    world.settle();
    let heard = world.peer(1, 0).received.update;
    let wide = |mark| {
        let when = vec![Condition::Prefix(vec!["10.0.0.0/17 le 24".parse().unwrap()])];
        policy(
            vec![statement(
                when,
                vec![Act::AddCommunity(Community(mark)), Act::SetLocalPref(200)],
                Flow::Accept,
            )],
            false,
        )
    };
    put_policy(&mut world, 1, "in", wide(99));
    reconfigure(&mut world, 1, 0, |config| config.import = Chain::named("in"));
    world.settle();
    let counts = |world: &World| {
        let status = world.peer(1, 0).families[0];
        (status.received, status.accepted)
    };
    assert_eq!(counts(&world), (300, 128));
    assert_eq!(world.best(2, V4).len(), 128);
    assert_eq!(world.heard(1, 0, V4).len(), 300, "what was rejected is kept");
    put_policy(&mut world, 1, "in", policy(vec![], true));
    world.settle();
    assert_eq!(counts(&world), (300, 300));
    assert_eq!(world.best(2, V4).len(), 300);
    // And on the way in, not only afterwards.
    put_policy(&mut world, 1, "in", wide(5));
    world.settle();
    world.originate(0, nth(1), marked(0));
    world.originate(0, nth(299), marked(1));
    world.settle();
    assert_eq!(counts(&world), (300, 128));
    reconfigure(&mut world, 1, 0, |_| ());
    world.settle();
    assert_eq!(counts(&world), (300, 300));
    assert_eq!(world.peer(1, 0).received.update, heard + 2, "the neighbour has said only what was new");
}

#[test]
fn a_disabled_neighbour_is_told_why_and_stays_away() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let done = world.command(0, Command::DisablePeer(key(1), "moving house".into()));
    assert_eq!(done, Applied::SessionReset);
    world.pass(Duration::from_secs(100));
    assert!(world.peer(0, 1).disabled && world.peer(0, 1).state == State::Idle);
    let why = world.peer(1, 0).last_error.unwrap();
    assert!(why.contains("moving house"), "{why}");
    world.command(0, Command::EnablePeer(key(1)));
    world.pass(Duration::from_secs(100));
    assert!(world.is_up(0, 1));
}

#[test]
fn a_hard_clear_resets_and_comes_back() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(1, nth(1), marked(1));
    world.settle();
    assert_eq!(world.command(0, Command::ClearPeer(key(1), Clear::Hard)), Applied::SessionReset);
    world.pass(Duration::from_secs(100));
    assert!(world.is_up(0, 1));
    assert_eq!((world.peer(0, 1).established_count, prefixes(&mut world, 0).len()), (2, 1));
}

#[test]
fn a_next_hop_that_cannot_be_reached_takes_its_paths_out() {
    let mut world = World::joined(&[65010, 65020, 65030, 65040], &[(0, 1), (2, 1), (1, 3)]);
    for node in [0, 2] {
        for n in 0..50 {
            world.originate(node, nth(n), marked(node as u32 + 1));
        }
    }
    world.settle();
    let mark = |world: &mut World| world.best(3, V4).values().map(|(mark, _)| *mark).collect::<Vec<_>>();
    assert_eq!(mark(&mut world), [1; 50]);
    let gone = NextHopState { reachable: false, ..NextHopState::default() };
    world.command(1, Command::PutNextHop(address(0), gone));
    world.settle();
    assert_eq!(mark(&mut world), [3; 50]);
    world.command(1, Command::PutNextHop(address(0), NextHopState { metric: 10, ..NextHopState::default() }));
    world.settle();
    assert_eq!(mark(&mut world), [3; 50], "it is farther away");
    world.command(1, Command::DeleteNextHop(address(0)));
    world.settle();
    assert_eq!(mark(&mut world), [1; 50]);
}

#[test]
fn a_named_audience_moves_its_members_without_a_flap() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (0, 2)]);
    for n in 0..300 {
        world.originate(0, nth(n), marked(n % 3));
    }
    world.settle();
    let id = world.nodes[1].speaker.subscribe(FamilySet::UNICAST);
    world.events(1, id);
    let only = Origination { audience: Audience::Peers([key(1)].into()), ..Origination::default() };
    world.originate(0, nth(900), only);
    world.settle();
    assert_eq!(world.events(1, id).len(), 1, "nothing else has changed for 1");
    assert_eq!((world.best(1, V4).len(), world.best(2, V4).len()), (301, 300));
    world.command(0, Command::DeleteOrigination(nth(900)));
    world.command(0, Command::DeleteOrigination(nth(7)));
    world.settle();
    assert_eq!(world.events(1, id).len(), 2);
    assert_eq!((world.best(1, V4).len(), world.best(2, V4).len()), (299, 299));
    assert_eq!(world.nodes[0].speaker.sizes().update_groups, 2);
}

#[test]
fn a_route_too_large_for_a_message_is_taken_back() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let origination = |count| Origination { communities: (0..count).collect(), ..Origination::default() };
    reconfigure(&mut world, 0, 1, |config| config.extended_messages = false);
    world.pass(Duration::from_secs(60));
    world.originate(0, nth(1), origination(10));
    world.originate(0, nth(2), origination(900));
    let more = (0..200).map(|n| Act::AddCommunity(Community(5000 + n))).collect();
    put_policy(&mut world, 0, "more", policy(vec![statement(vec![], more, Flow::Accept)], true));
    world.settle();
    assert_eq!(world.best(1, V4).len(), 2);
    reconfigure(&mut world, 0, 1, |config| {
        (config.extended_messages, config.export) = (false, Chain::named("more"));
    });
    world.settle();
    assert_eq!(prefixes(&mut world, 1), [nth(1)], "1100 communities do not fit");
    assert_eq!(world.peer(0, 1).families[0].advertised, 1);
    assert!(world.nodes[0].speaker.stats().too_large > 0);
    reconfigure(&mut world, 0, 1, |config| config.extended_messages = false);
    world.settle();
    assert_eq!(world.best(1, V4).len(), 2);
}
