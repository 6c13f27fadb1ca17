//! What neighbours do differently because of what they agreed on.

use super::*;
use bgp_wire::attr::{AttrIter, Builder, Canonical, Community, Origin, code};
use bgp_wire::{
    EncodeOptions, Ipv4Prefix, MessageType, NextHop, Open, PathId, RouteRefresh, UpdateWriter, whole_messages,
};

use crate::command::NextHopMode;
use bytes::BytesMut;

const V4: Family = Family::Ipv4Unicast;
const V6: Family = Family::Ipv6Unicast;

// ---- RFC 8950 ----

fn next_hops(world: &mut World, node: usize, family: Family) -> Vec<String> {
    let routes = world.routes(node, RouteTable::LocRib, family);
    routes.iter().map(|route| route.paths[0].next_hop.unwrap().to_string()).collect()
}

#[test]
fn ipv4_prefixes_go_over_ipv6_where_extended_next_hops_were_agreed() {
    let mut world = World::new(&[65010, 65020, 65030]);
    world.join_over_ipv6(0, 1, |config| config.extended_next_hop = true);
    world.join_over_ipv6(1, 2, |_| ());
    world.load();
    world.originate(0, nth(1), marked(1));
    world.originate(0, nlri("2001:db8:1::/48"), marked(2));
    world.settle();
    assert_eq!(next_hops(&mut world, 1, V4), ["2001:db8::1"]);
    assert_eq!(next_hops(&mut world, 1, V6), ["2001:db8::1"]);
    assert_eq!(next_hops(&mut world, 2, V6), ["2001:db8::2"]);
    assert!(world.best(2, V4).is_empty(), "without the agreement there is no next hop to tell");
    let told = world.routes(0, RouteTable::AdjRibOut(key6(1)), V4);
    assert_eq!(told[0].paths[0].next_hop, Some(NextHop::from("2001:db8::1".parse::<IpAddr>().unwrap())));
    world.command(0, Command::DeleteOrigination(nth(1)));
    world.settle();
    assert!(world.best(1, V4).is_empty());
    assert!(!world.best(1, V6).is_empty());
}

#[test]
fn an_own_ipv4_route_may_name_an_ipv6_next_hop() {
    let mut world = World::new(&[65010, 65020, 65030]);
    world.join_over_ipv6(0, 1, |config| config.extended_next_hop = true);
    world.join(0, 2);
    world.load();
    let next_hop = Some("2001:db8::99".parse().unwrap());
    world.originate(0, nth(1), Origination { next_hop, ..Origination::default() });
    world.settle();
    assert_eq!(next_hops(&mut world, 1, V4), ["2001:db8::99"]);
    assert_eq!(
        next_hops(&mut world, 2, V4),
        [address(0).to_string()],
        "who has not agreed hears our own address"
    );
}

#[test]
fn an_ipv4_next_hop_is_preferred_to_an_extended_one() {
    let mut world = World::new(&[65010, 65020]);
    world.join_over_ipv6(0, 1, |config| {
        config.extended_next_hop = true;
        config.next_hop_v4 = Some("192.0.2.99".parse().unwrap());
    });
    world.load();
    world.originate(0, nth(1), Origination::default());
    world.settle();
    assert_eq!(next_hops(&mut world, 1, V4), ["192.0.2.99"]);
}

#[test]
fn one_end_alone_agrees_on_nothing() {
    let mut world = World::new(&[65010, 65020]);
    let config = |extended| PeerConfig {
        extended_next_hop: extended,
        extended_messages: extended,
        families: FamilySet::UNICAST,
        ..PeerConfig::new(RemoteAsn::External)
    };
    world.command(1, Command::PutPeer(key6(0), PeerConfig { passive: true, ..config(false) }));
    world.command(0, Command::PutPeer(key6(1), config(true)));
    world.load();
    world.originate(0, nth(1), Origination::default());
    world.settle();
    assert_eq!(next_hops(&mut world, 1, V4), [""; 0]);
}

// ---- RFC 8654 ----

/// An UPDATE of so many communities, for one prefix.
fn long_update(communities: u32) -> Vec<u8> {
    let set = Builder::new(Origin::Igp)
        .prepend(Asn(65010), 1)
        .add_communities((0..communities).map(Community))
        .build();
    let mut attrs = Vec::new();
    bgp_wire::attr::encode(Canonical(&set), Some([192, 0, 2, 1].into()), true, &mut attrs);
    let mut out = BytesMut::new();
    let options = EncodeOptions { max_message: u16::MAX, ..EncodeOptions::default() };
    let prefix = Ipv4Prefix::new(0x0a00_0100, 24).unwrap();
    UpdateWriter::new(&mut out, options).announce_v4(&attrs, [(PathId::NONE, prefix)]).unwrap();
    out.to_vec()
}

#[test]
fn a_long_message_is_taken_and_passed_on_where_it_fits() {
    // 2 takes no long messages from 1, 3 does.
    let mut world = World::new(&[65010, 65020, 65030, 65040]);
    world.join(0, 1);
    world.join(1, 3);
    for (node, other, passive) in [(2, 1, true), (1, 2, false)] {
        let config = PeerConfig { passive, extended_messages: node != 2, ..world.config(other) };
        world.command(node, Command::PutPeer(key(other), config));
    }
    world.load();
    world.settle();
    let update = long_update(12_000);
    assert!(update.len() > 48_000);
    world.inject(0, 1, update);
    world.settle();
    assert!(world.is_up(0, 1) && world.is_up(1, 2) && world.is_up(1, 3));
    assert_eq!(world.best(1, V4).len(), 1);
    assert_eq!(world.best(3, V4).len(), 1);
    let routes = world.routes(3, RouteTable::LocRib, V4);
    let path = &routes[0].paths[0];
    assert_eq!(Canonical(path.attrs.canonical()).communities().len(), 12_000);
    assert!(world.best(2, V4).is_empty());
    assert_eq!(world.nodes[1].speaker.stats().too_large, 1);
    // A shorter one reaches everybody, the longer one after it takes it back where it does not fit.
    world.inject(0, 1, long_update(10));
    world.settle();
    assert_eq!(world.best(2, V4).len(), 1);
    world.inject(0, 1, long_update(15_000));
    world.settle();
    assert!(world.best(2, V4).is_empty());
    assert_eq!(world.best(3, V4).len(), 1);
}

#[test]
fn a_long_message_that_was_not_offered_ends_the_session() {
    let mut world = World::new(&[65010, 65020]);
    for (node, other, passive) in [(1, 0, true), (0, 1, false)] {
        let config = PeerConfig { passive, extended_messages: node != 1, ..world.config(other) };
        world.command(node, Command::PutPeer(key(other), config));
    }
    world.load();
    world.settle();
    world.inject(0, 1, long_update(2000));
    world.settle();
    assert_ne!(world.peer(1, 0).state, State::Established);
    assert!(world.peer(0, 1).last_error.unwrap().contains("Bad Message Length"));
}

// ---- RFC 6793 ----

#[test]
fn a_neighbour_of_two_octets_gets_and_gives_whole_paths() {
    // A scripted neighbour that has no capabilities at all.
    let mut world = World::new(&[70_000, 80_000]);
    world.join(1, 0);
    let config = PeerConfig { passive: true, ..PeerConfig::new(RemoteAsn::Is(Asn(65030))) };
    world.command(0, Command::PutPeer(key(2), config));
    world.load();
    world.originate(1, nth(1), Origination::default());
    world.settle();
    let conn = ConnId::accepted(77);
    let link = Link {
        local: SocketAddr::new(address(0), 179),
        remote: SocketAddr::new(address(2), 40_000),
        direction: Direction::Passive,
    };
    world.input(0, Input::Accepted { conn, link });
    let mut script = BytesMut::new();
    Open::new(Asn(65030), 90, RouterId(3), vec![]).encode(&mut script).unwrap();
    bgp_wire::frame::put_keepalive(&mut script);
    // AS_PATH 65030 23456, AS4_PATH 90000: the 2-octet AS is in front of it.
    let attrs = [
        &[0x40, 1, 1, 0, 0x40, 2, 6, 2, 2, 0xfe, 6, 0x5b, 0xa0, 0x40, 3, 4, 192, 0, 2, 3][..],
        &[0xc0, 7, 6, 0x5b, 0xa0, 9, 9, 9, 9],
        &[0xc0, 17, 6, 2, 1, 0, 1, 0x5f, 0x90, 0xc0, 18, 8, 0, 1, 0x5f, 0x90, 9, 9, 9, 9],
    ]
    .concat();
    let prefix = Ipv4Prefix::new(0x0a00_0200, 24).unwrap();
    UpdateWriter::new(&mut script, EncodeOptions::default())
        .announce_v4(&attrs, [(PathId::NONE, prefix)])
        .unwrap();
    world.input(0, Input::Received { conn, messages: &script });
    world.settle();
    assert_eq!(world.best(0, V4)[&nth(2)].1, "65030 90000");
    assert_eq!(world.best(1, V4)[&nth(2)].1, "70000 65030 90000", "and so it goes on");
    let routes = world.routes(1, RouteTable::LocRib, V4);
    let aggregators: Vec<_> = routes
        .iter()
        .filter_map(|route| Canonical(route.paths[0].attrs.canonical()).aggregator())
        .map(|aggregator| aggregator.to_string())
        .collect();
    assert_eq!(aggregators, ["90000 9.9.9.9"]);
    // What the neighbour is sent: OPEN and KEEPALIVE, then the other one's route.
    let mut sent = Vec::new();
    world.nodes[0].speaker.pull(world.now, conn, 64 * 1024, &mut sent);
    let sent = sent.concat();
    assert_eq!(whole_messages(&sent, 4096).bytes, sent.len());
    let mut paths = Vec::new();
    let mut rest = &sent[..];
    while let Some(frame) = bgp_wire::split_message(rest, 4096).unwrap() {
        rest = &rest[frame.raw.len()..];
        if frame.kind == MessageType::Open {
            assert_eq!(Open::parse(frame.body).unwrap().my_as, 23456, "AS_TRANS");
        } else if frame.kind == MessageType::Update && frame.body.len() > 4 {
            let attrs = &frame.body[4..4 + usize::from(u16::from_be_bytes([frame.body[2], frame.body[3]]))];
            for attr in
                AttrIter::new(attrs).filter(|attr| matches!(attr.code, code::AS_PATH | code::AS4_PATH))
            {
                paths.push((attr.code, attr.value.to_vec()));
            }
        }
    }
    assert_eq!(
        paths,
        [
            (code::AS_PATH, vec![2, 2, 0x5b, 0xa0, 0x5b, 0xa0]),
            (code::AS4_PATH, vec![2, 2, 0, 1, 0x11, 0x70, 0, 1, 0x38, 0x80]),
        ]
    );
}

// ---- RFC 7313 ----

fn refresh(family: Family, subtype: u8) -> Vec<u8> {
    let mut out = BytesMut::new();
    RouteRefresh::new(family, subtype).encode(&mut out);
    out.to_vec()
}

/// The kinds of the messages that a node has sent since it had sent `from` octets, one letter each: begin, end and
/// UPDATE.
fn kinds(world: &World, node: usize, from: usize) -> String {
    let mut rest = &world.nodes[node].sent[from..];
    let mut kinds = String::new();
    while let Some(frame) = bgp_wire::split_message(rest, 65535).unwrap() {
        rest = &rest[frame.raw.len()..];
        kinds.push(match (frame.kind, frame.body.get(2)) {
            (MessageType::RouteRefresh, Some(1)) => 'B',
            (MessageType::RouteRefresh, Some(2)) => 'E',
            (MessageType::Update, _) => 'u',
            _ => '?',
        });
    }
    kinds
}

#[test]
fn a_refresh_stands_between_markers_and_takes_away_what_was_not_said_again() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    for n in 0..200 {
        world.originate(0, nth(n), marked(n));
    }
    world.originate(0, nlri("2001:db8:1::/48"), marked(1));
    world.settle();
    // 1 believes in a route that 0 does not have, and says so in neither family.
    let attrs = [0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xf2, 0x40, 3, 4, 192, 0, 2, 1];
    let mut ghost = BytesMut::new();
    let prefix = Ipv4Prefix::new(0x0b00_0000, 24).unwrap();
    UpdateWriter::new(&mut ghost, EncodeOptions::default())
        .announce_v4(&attrs, [(PathId::NONE, prefix)])
        .unwrap();
    world.inject(0, 1, ghost.to_vec());
    assert_eq!(world.best(1, V4).len(), 201);
    let from = world.nodes[0].sent.len();
    world.inject(1, 0, refresh(V4, RouteRefresh::REQUEST));
    world.settle();
    let said = kinds(&world, 0, from);
    assert!(
        said.starts_with('B') && said.ends_with('E') && said[1..said.len() - 1].chars().all(|c| c == 'u')
    );
    assert_eq!(world.best(1, V4).len(), 200);
    assert_eq!(world.best(1, V6).len(), 1, "the other family is not concerned");
    let status = world.peer(1, 0);
    assert_eq!((status.families[0].received, status.families[0].accepted), (200, 200));
    assert_eq!((world.peer(0, 1).sent.route_refresh, status.received.route_refresh), (2, 2));
}

#[test]
fn nothing_goes_while_a_refresh_is_under_way_or_without_its_beginning() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    for n in 0..10 {
        world.originate(0, nth(n), marked(n));
    }
    world.settle();
    let events = world.nodes[1].rib_ready;
    world.inject(0, 1, refresh(V4, RouteRefresh::END));
    world.settle();
    assert_eq!(world.best(1, V4).len(), 10, "an end without a beginning");
    world.inject(0, 1, refresh(V4, RouteRefresh::BEGIN));
    world.settle();
    assert_eq!((world.best(1, V4).len(), world.best(2, V4).len()), (10, 10), "stale routes count");
    // It begins anew, says one route again, changes another one, and ends.
    world.inject(0, 1, refresh(V4, RouteRefresh::BEGIN));
    world.originate(0, nth(3), marked(33));
    world.settle();
    world.inject(0, 1, refresh(V4, 77));
    assert_eq!(world.best(1, V4).len(), 10, "a subtype that nobody knows");
    world.inject(0, 1, refresh(V6, RouteRefresh::END));
    world.settle();
    assert_eq!(world.best(1, V4).len(), 10, "the other family");
    world.inject(0, 1, refresh(V4, RouteRefresh::END));
    world.settle();
    assert_eq!(world.best(1, V4), [(nth(3), (33, "65010".into()))].into());
    assert_eq!(world.best(2, V4).len(), 1);
    assert_eq!(world.peer(1, 0).families[0].received, 1);
    assert_eq!(world.nodes[1].rib_ready, events, "nobody had subscribed");
    // The next session knows nothing of it.
    world.inject(0, 1, refresh(V4, RouteRefresh::BEGIN));
    world.cut(0, 1, true);
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.best(1, V4).len(), 10);
    world.inject(0, 1, refresh(V4, RouteRefresh::END));
    world.settle();
    assert_eq!(world.best(1, V4).len(), 10);
}

#[test]
fn no_refresh_begins_before_end_of_rib() {
    let mut world = World::new(&[65010, 65020]);
    world.join(0, 1);
    world.command(1, Command::LoadingDone);
    world.settle();
    world.originate(0, nth(1), marked(1));
    world.settle();
    let from = world.nodes[0].sent.len();
    world.inject(1, 0, refresh(V4, RouteRefresh::REQUEST));
    world.settle();
    assert_eq!(kinds(&world, 0, from), "", "0 is still loading");
    world.command(0, Command::LoadingDone);
    world.settle();
    let said = kinds(&world, 0, from);
    assert!(["uBuEu", "uuBuE"].contains(&&*said), "End-of-RIB of this family goes before: {said}");
}

#[test]
fn a_refresh_ends_in_another_group() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    for n in 0..1000 {
        world.originate(0, nth(n), marked(n));
    }
    world.settle();
    let from = world.nodes[0].sent.len();
    world.stall(1, 0, true);
    world.inject(1, 0, refresh(V4, RouteRefresh::REQUEST));
    world.settle();
    // One chunk of it is taken, then the neighbour moves.
    let conn = world.conns(0, 1)[0];
    world.pull_octets = 1;
    assert!(world.pull(0, conn) > 0);
    assert_eq!(kinds(&world, 0, from), "B");
    let config = PeerConfig { next_hop: NextHopMode::SelfAddress, ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), config));
    world.stall(1, 0, false);
    world.settle();
    let said = kinds(&world, 0, from);
    assert_eq!((said.matches('B').count(), said.matches('E').count()), (1, 1), "{said}");
    assert!(said.ends_with('E'));
    assert_eq!(world.best(1, V4).len(), 1000);
}

#[test]
fn a_family_without_a_next_hop_of_ours_says_so() {
    for (address, lacks) in [(None, true), (Some("2001:db8::1".parse().unwrap()), false)] {
        let mut world = World::new(&[65010, 65020]);
        for (node, other, passive) in [(1, 0, true), (0, 1, false)] {
            let config = PeerConfig {
                passive,
                families: FamilySet::UNICAST,
                next_hop_v6: address,
                ..world.config(other)
            };
            world.command(node, Command::PutPeer(key(other), config));
        }
        world.load();
        world.settle();
        let now = world.now;
        let status = &world.nodes[0].speaker.peers(now)[0];
        for family in &status.families {
            let expected = lacks && family.family == Family::Ipv6Unicast;
            assert_eq!(family.lacks_next_hop, expected, "{family:?}");
            assert_eq!(family.condition().is_some_and(|text| text.contains("no IPv6 address")), expected);
        }
    }
}
