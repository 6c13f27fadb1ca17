//! What neighbours tell one another.

use super::*;
use crate::command::Audience;
use bgp_wire::{EncodeOptions, Ipv4Prefix, NlriKey, PathId, UpdateWriter};
use bytes::BytesMut;

const V4: Family = Family::Ipv4Unicast;
const V6: Family = Family::Ipv6Unicast;

#[test]
fn routes_go_both_ways_in_both_families() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    assert!(world.is_up(0, 1));
    world.originate(0, nlri("203.0.113.0/24"), marked(1));
    world.originate(0, nlri("2001:db8:1::/48"), marked(2));
    world.originate(1, nlri("198.51.100.0/24"), marked(3));
    world.settle();
    assert_eq!(world.heard(1, 0, V4), [(nlri("203.0.113.0/24"), (1, "65010".into()))].into());
    assert_eq!(world.heard(1, 0, V6), [(nlri("2001:db8:1::/48"), (2, "65010".into()))].into());
    assert_eq!(world.heard(0, 1, V4), [(nlri("198.51.100.0/24"), (3, "65020".into()))].into());
    assert_eq!(world.told(0, 1, V4), world.heard(1, 0, V4), "what is shown as told is what was heard");
    assert_eq!(world.told(0, 1, V6), world.heard(1, 0, V6));
    let status = world.peer(1, 0);
    let count = |family: usize| {
        let status = status.families[family];
        (status.received, status.accepted, status.advertised)
    };
    assert_eq!((count(0), count(1)), ((1, 1, 1), (1, 1, 0)));
    assert_eq!(world.peer(0, 1).families[0].advertised, 1, "its own route does not go back");
}

#[test]
fn own_address_is_the_next_hop_unless_another_is_named() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(0, nth(1), Origination::default());
    let named = Some("192.0.2.77".parse().unwrap());
    world.originate(0, nth(2), Origination { next_hop: named, ..Origination::default() });
    world.originate(0, nlri("2001:db8:1::/48"), Origination::default());
    world.settle();
    let hops = |world: &mut World, family| -> Vec<String> {
        let routes = world.routes(1, RouteTable::LocRib, family);
        routes.iter().map(|route| route.paths[0].next_hop.unwrap().to_string()).collect()
    };
    assert_eq!(hops(&mut world, V4), ["192.0.2.1", "192.0.2.77"]);
    assert_eq!(hops(&mut world, V6), ["2001:db8:ffff::1"], "over IPv4 the configured one");
}

#[test]
fn a_withdrawal_and_a_replacement_arrive() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(0, nth(1), marked(1));
    world.originate(0, nth(2), marked(1));
    world.settle();
    world.originate(0, nth(1), marked(2));
    world.command(0, Command::DeleteOrigination(nth(2)));
    world.settle();
    assert_eq!(world.best(1, V4), [(nth(1), (2, "65010".into()))].into());
    assert_eq!(world.peer(1, 0).families[0].received, 1);
    assert_eq!(world.peer(0, 1).families[0].advertised, 1);
}

#[test]
fn what_changes_and_changes_back_before_it_is_sent_is_not_sent() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(0, nth(1), marked(1));
    world.settle();
    let before = world.nodes[0].sent.len();
    world.originate(0, nth(1), marked(2));
    world.originate(0, nth(1), marked(1));
    world.originate(0, nth(2), marked(2));
    world.command(0, Command::DeleteOrigination(nth(2)));
    world.settle();
    assert_eq!(world.nodes[0].sent.len(), before);
}

#[test]
fn losing_a_neighbour_takes_its_routes_along() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    for n in 0..500 {
        world.originate(0, nth(n), marked(n));
    }
    world.originate(1, nlri("203.0.113.0/24"), Origination::default());
    world.settle();
    assert_eq!(world.best(2, V4).len(), 501);
    world.cut(0, 1, true);
    world.settle();
    assert_eq!(world.best(2, V4).keys().copied().collect::<Vec<_>>(), [nlri("203.0.113.0/24")]);
    assert_eq!(world.peer(1, 0).families[0].received, 0);
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.best(2, V4).len(), 501);
    assert_eq!(world.peer(1, 0).families[0].received, 500);
}

#[test]
fn a_neighbour_that_comes_back_at_once_keeps_only_what_it_says_now() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    for n in 0..500 {
        world.originate(0, nth(n), marked(n));
    }
    world.settle();
    world.cut(0, 1, true);
    for n in 0..499 {
        world.command(0, Command::DeleteOrigination(nth(n)));
    }
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(60));
    assert_eq!(world.best(2, V4), [(nth(499), (499, "65020 65010".into()))].into());
    assert_eq!(world.peer(1, 0).families[0].received, 1);
    assert_eq!(world.peer(2, 1).families[0].received, 1);
}

#[test]
fn external_paths_grow_and_internal_ones_do_not_travel_on() {
    // 0 -ebgp- 1 -ibgp- 2 -ibgp- 3, and 2 -ebgp- 4
    let mut world = World::joined(&[65010, 65020, 65020, 65020, 65040], &[(0, 1), (1, 2), (2, 3), (2, 4)]);
    let prefix = nlri("203.0.113.0/24");
    let origination = Origination { med: Some(7), local_pref: Some(300), ..marked(1) };
    world.originate(0, prefix, origination);
    world.settle();
    assert_eq!(world.best(1, V4)[&prefix].1, "65010");
    assert_eq!(world.best(2, V4)[&prefix].1, "65010", "the path does not grow inside the AS");
    assert!(world.best(3, V4).is_empty(), "nothing goes from one internal neighbour to another");
    assert_eq!(world.best(4, V4)[&prefix].1, "65020 65010");
    let attrs = |world: &mut World, node| {
        let routes = world.routes(node, RouteTable::LocRib, V4);
        let path = &routes[0].paths[0];
        let set = Canonical(path.attrs.canonical());
        (set.med(), set.local_pref(), path.next_hop.unwrap().to_string())
    };
    assert_eq!(
        attrs(&mut world, 1),
        (Some(7), None, "192.0.2.1".into()),
        "own MED goes out, LOCAL_PREF does not"
    );
    assert_eq!(
        attrs(&mut world, 2),
        (Some(7), Some(100), "192.0.2.1".into()),
        "next hop unchanged inside the AS"
    );
    assert_eq!(
        attrs(&mut world, 4),
        (None, None, "192.0.2.3".into()),
        "a neighbour's MED does not leave the AS"
    );
}

#[test]
fn a_path_with_our_number_in_it_is_kept_but_not_used() {
    let mut world = World::joined(&[65010, 65020, 65010], &[(0, 1), (1, 2)]);
    world.originate(0, nth(1), marked(1));
    world.settle();
    assert!(world.best(2, V4).is_empty());
    let heard = world.routes(2, RouteTable::AdjRibIn(key(1)), V4);
    assert_eq!(heard[0].paths[0].rejected, Some(crate::rib::PathRejected::AsLoop));
    let families = world.peer(2, 1).families;
    assert_eq!((families[0].received, families[0].accepted), (1, 0));
}

#[test]
fn nobody_hears_his_own_routes_even_when_the_best_path_moves() {
    // 1 is told of one prefix by 0 and by 2; 0, 2 and 3 share one update group.
    let mut world = World::joined(&[65010, 65020, 65030, 65040], &[(0, 1), (2, 1), (3, 1)]);
    assert_eq!(world.nodes[1].speaker.sizes().update_groups, 2, "one for each family");
    let prefix = nth(1);
    world.originate(0, prefix, marked(1));
    world.settle();
    let told =
        |world: &mut World| [0, 2, 3].map(|to| world.heard(to, 1, V4).get(&prefix).map(|(mark, _)| *mark));
    assert_eq!(told(&mut world), [None, Some(1), Some(1)]);
    // A longer path at first, so that nothing moves; then the first one goes.
    world.originate(2, prefix, marked(2));
    world.settle();
    assert_eq!(told(&mut world), [None, Some(1), Some(1)], "of two equal ones the lower identifier wins");
    world.command(0, Command::DeleteOrigination(prefix));
    world.settle();
    assert_eq!(
        told(&mut world),
        [Some(2), None, Some(2)],
        "the sender of the new one had to forget the old one"
    );
    world.originate(0, prefix, marked(3));
    world.settle();
    assert_eq!(told(&mut world), [None, Some(3), Some(3)]);
    for node in [0, 2, 3] {
        assert_eq!(world.told(1, node, V4), world.heard(node, 1, V4));
        assert_eq!(world.peer(1, node).families[0].advertised, world.peer(node, 1).families[0].received);
    }
}

#[test]
fn well_known_communities_stop_routes() {
    let mut world = World::joined(&[65010, 65020, 65020, 65030], &[(0, 1), (1, 2), (1, 3)]);
    let [no_export, no_advertise] = [0xffff_ff01, 0xffff_ff02];
    world.originate(0, nth(1), marked(5));
    world.settle();
    world.inject(0, 1, update_of(&world, &[], &[(nth(2), no_export), (nth(3), no_advertise)]));
    world.settle();
    assert_eq!(world.best(1, V4).len(), 3);
    assert_eq!(world.best(2, V4).keys().copied().collect::<Vec<_>>(), [nth(1), nth(2)], "inside the AS");
    assert_eq!(world.best(3, V4).keys().copied().collect::<Vec<_>>(), [nth(1)], "outside");
}

/// An UPDATE for each: withdrawals, then announcements with a community, as node 0 (192.0.2.1, AS 65010) would send them.
fn update_of(_: &World, withdrawn: &[Nlri], announced: &[(Nlri, u32)]) -> Vec<u8> {
    let v4 = |nlri: &Nlri| (PathId::NONE, Ipv4Prefix::of(*nlri).expect("IPv4 only"));
    let mut out = BytesMut::new();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
    writer.withdraw_v4(withdrawn.iter().map(v4));
    for (prefix, community) in announced {
        let mut attrs =
            vec![0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xf2, 0x40, 3, 4, 192, 0, 2, 1, 0xc0, 8, 4];
        attrs.extend_from_slice(&community.to_be_bytes());
        writer.announce_v4(&attrs, [v4(prefix)]).unwrap();
    }
    out.to_vec()
}

/// Case F18: change and withdrawal of one prefix in one piece.
#[test]
fn of_announcement_and_withdrawal_in_one_piece_the_last_one_counts() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    let prefix = nlri("203.0.113.0/24");
    for round in 0..200 {
        let other = nth(round);
        let there_and_gone =
            [update_of(&world, &[], &[(prefix, 1), (other, 1)]), update_of(&world, &[prefix], &[])];
        world.inject(0, 1, there_and_gone.concat());
        world.settle();
        assert!(!world.best(2, V4).contains_key(&prefix), "round {round}");
        let gone_and_there =
            [update_of(&world, &[prefix, other], &[]), update_of(&world, &[], &[(prefix, 2)])];
        world.inject(0, 1, gone_and_there.concat());
        world.settle();
        assert_eq!(world.best(2, V4), [(prefix, (2, "65020 65010".into()))].into(), "round {round}");
        world.inject(
            0,
            1,
            [update_of(&world, &[], &[(prefix, 3)]), update_of(&world, &[prefix], &[])].concat(),
        );
        world.settle();
        assert!(world.best(2, V4).is_empty(), "round {round}");
    }
}

#[test]
fn a_prefix_both_withdrawn_and_announced_in_one_message_is_announced() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let mut message = vec![0xff; 16];
    let withdrawn = [24, 203, 0, 113];
    let attrs = [0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xf2, 0x40, 3, 4, 192, 0, 2, 1];
    let length = 19 + 2 + 4 + 2 + attrs.len() + 4;
    message.extend([0, length as u8, 2, 0, 4]);
    message.extend(withdrawn);
    message.extend([0, attrs.len() as u8]);
    message.extend(attrs);
    message.extend(withdrawn);
    world.inject(0, 1, message);
    assert_eq!(world.best(1, V4).len(), 1);
}

#[test]
fn end_of_rib_waits_for_loading_and_comes_after_the_routes() {
    let mut world = World::new(&[65010, 65020]);
    world.originate(0, nth(1), marked(1));
    world.join(0, 1);
    world.settle();
    assert!(world.is_up(0, 1));
    assert_eq!(world.best(1, V4).len(), 1, "routes do not wait");
    assert!(!world.peer(1, 0).families[0].end_of_rib_received);
    world.command(0, Command::LoadingDone);
    world.settle();
    for family in [0, 1] {
        assert!(world.peer(1, 0).families[family].end_of_rib_received);
        assert!(world.peer(0, 1).families[family].end_of_rib_sent);
        assert!(!world.peer(0, 1).families[family].end_of_rib_received, "the other one is still loading");
    }
}

#[test]
fn an_audience_hears_and_nobody_else() {
    // 0 has internal neighbour 1 and external neighbours 2 and 3.
    let mut world = World::joined(&[65010, 65010, 65020, 65030], &[(1, 0), (2, 0), (3, 0)]);
    let with = |audience| Origination { audience, ..Origination::default() };
    let put = |world: &mut World, audience| {
        world.originate(0, nth(1), with(audience));
        world.settle();
        [1, 2, 3].map(|node| world.best(node, V4).len())
    };
    assert_eq!(put(&mut world, Audience::All), [1, 1, 1]);
    assert_eq!(put(&mut world, Audience::Ebgp), [0, 1, 1]);
    assert_eq!(put(&mut world, Audience::Ibgp), [1, 0, 0]);
    assert_eq!(put(&mut world, Audience::Peers([key(2)].into())), [0, 1, 0]);
    assert_eq!(put(&mut world, Audience::Peers([key(1), key(3)].into())), [1, 0, 1]);
    world.originate(0, nth(2), Origination::default());
    assert_eq!(put(&mut world, Audience::Peers([].into())), [1, 1, 1], "only the other one");
    assert_eq!(put(&mut world, Audience::All), [2, 2, 2]);
}

#[test]
fn a_faulty_attribute_withdraws_and_a_broken_message_resets() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.inject(0, 1, update_of(&world, &[], &[(nth(1), 1)]));
    assert_eq!(world.best(1, V4).len(), 1);
    // ORIGIN 7 does not exist: treat-as-withdraw.
    let mut octets = update_of(&world, &[], &[(nth(1), 1)]);
    octets[26] = 7;
    world.inject(0, 1, octets);
    assert!(world.best(1, V4).is_empty());
    assert_eq!(world.nodes[1].speaker.stats().treated_as_withdraw, 1);
    assert!(world.is_up(0, 1));
    // A withdrawn length beyond the message: session reset with 3/1.
    let mut octets = vec![0xff; 16];
    octets.extend([0, 23, 2, 0, 9, 0, 0]);
    world.inject(0, 1, octets);
    world.settle();
    assert_ne!(world.peer(1, 0).state, State::Established);
    assert!(world.peer(0, 1).last_error.unwrap().contains("UPDATE"), "the neighbour was told why");
}

#[test]
fn equal_inputs_give_equal_octets() {
    let run = || {
        let mut world = World::joined(&[65010, 65020, 65030, 65020], &[(0, 1), (1, 2), (1, 3)]);
        for n in 0..300 {
            world.originate(0, nth(n * 7 % 300), marked(n % 13));
            world.originate(2, nth(n * 11 % 250), marked(n % 5));
        }
        world.settle();
        world.cut(0, 1, true);
        world.settle();
        world.cut(0, 1, false);
        world.pass(Duration::from_secs(100));
        world.nodes.into_iter().map(|node| node.sent).collect::<Vec<_>>()
    };
    assert!(run() == run());
}

#[test]
fn a_connection_from_nobody_we_know_is_closed() {
    let mut world = World::new(&[65010, 65020]);
    let config = world.config(1);
    world.command(0, Command::PutPeer(key(1), config));
    world.settle();
    assert!(world.nodes[1].conns.is_empty(), "1 does not expect 0");
    assert_ne!(world.peer(0, 1).state, State::Established);
}

#[test]
fn two_neighbours_at_one_address_are_told_apart_by_who_waits() {
    let mut world = World::new(&[65010, 65020]);
    let passive = PeerConfig { passive: true, ..world.config(0) };
    for port in [179, 1790] {
        world.command(1, Command::PutPeer(key(0).with_port(port), passive.clone()));
    }
    let config = world.config(1);
    world.command(0, Command::PutPeer(key(1), config.clone()));
    world.settle();
    world.command(0, Command::PutPeer(key(1).with_port(1790), config));
    world.settle();
    let up = |world: &World| {
        let peers = world.nodes[1].speaker.peers(world.now);
        peers.iter().filter(|peer| peer.state == State::Established).count()
    };
    assert_eq!(up(&world), 2);
}

#[test]
fn one_prefix_can_be_asked_for() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    for n in 0..10 {
        world.originate(0, nth(n), marked(n));
    }
    world.settle();
    let now = world.now;
    let mut ask = |table, family, prefix| {
        let query = RouteQuery { table, family, prefix: Some(prefix) };
        let page = world.nodes[1].speaker.routes(now, &query, None, 10);
        page.map(|page| page.routes.iter().map(shape).collect::<Vec<_>>())
    };
    assert_eq!(ask(RouteTable::LocRib, V4, nth(3)), Ok(vec![(3, "65010".into())]));
    assert_eq!(ask(RouteTable::AdjRibIn(key(0)), V4, nth(3)), Ok(vec![(3, "65010".into())]));
    assert_eq!(ask(RouteTable::AdjRibOut(key(0)), V4, nth(3)), Ok(vec![]));
    assert_eq!(ask(RouteTable::LocRib, V4, nth(30)), Ok(vec![]));
    let wrong = ask(RouteTable::LocRib, V6, nth(3)).unwrap_err();
    assert_eq!(wrong.to_string(), "10.0.3.0/24 is not of family ipv6-unicast");
    let unknown = ask(RouteTable::AdjRibIn(key(7)), V4, nth(3)).unwrap_err();
    assert_eq!(unknown.to_string(), "no peer 192.0.2.8");
}

#[test]
fn status_tells_what_was_agreed_and_counted() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.pass(Duration::from_secs(40));
    let status = world.peer(0, 1);
    assert_eq!(status.uptime, Some(Duration::from_secs(40)));
    assert_eq!((status.local_asn, status.remote_asn), (Asn(65010), Some(Asn(65020))));
    assert_eq!(status.remote_router_id, Some(RouterId(0xc000_0202)));
    assert_eq!((status.applied_hold_time, status.applied_keepalive), (Some(90), Some(30)));
    assert_eq!(status.negotiated, FamilySet::UNICAST);
    assert_eq!((status.sent.open, status.received.open), (1, 1));
    assert!(status.sent.keepalive >= 2 && status.received.keepalive >= 2);
    assert_eq!((status.sent.update, status.received.update), (2, 2), "End-of-RIB of two families");
    assert_eq!(status.local_capabilities, world.peer(1, 0).remote_capabilities);
    assert!(status.local_capabilities.contains(&vec![1, 4, 0, 2, 0, 1]), "multiprotocol IPv6 unicast");
    assert!(world.nodes[0].events.iter().any(|(peer, kind)| *peer == key(1) && *kind == PeerEventKind::Up));
}

#[test]
fn silence_ends_a_session_and_unread_words_do_not() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(1, nth(1), marked(1));
    world.settle();
    world.stall(0, 1, true);
    world.pass(Duration::from_secs(89));
    assert_eq!(world.peer(0, 1).state, State::Established);
    let conn = *world.conns(0, 1).first().unwrap();
    world.now += Duration::from_secs(1);
    world.input(0, Input::Unread { conn });
    world.input(0, Input::Tick);
    assert_eq!(world.peer(0, 1).state, State::Established);
    world.pass(Duration::from_secs(10));
    assert_ne!(world.peer(0, 1).state, State::Established);
    assert!(world.best(0, V4).is_empty());
}

/// An UPDATE that announces 203.0.113.0/24 as AS `asn` would, with more attributes behind NEXT_HOP.
fn announcement(asn: u32, next_hop: [u8; 4], more: &[u8]) -> Vec<u8> {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2, 6, 2, 1];
    attributes.extend(asn.to_be_bytes());
    attributes.extend([0x40, 3, 4]);
    attributes.extend(next_hop);
    attributes.extend(more);
    let mut body = vec![0, 0, 0, attributes.len() as u8];
    body.extend(attributes);
    body.extend([24, 203, 0, 113]);
    let mut message = vec![0xff; 16];
    message.extend((19 + body.len() as u16).to_be_bytes());
    message.push(2);
    message.extend(body);
    message
}

#[test]
fn a_next_hop_that_is_ourselves_is_remembered_but_not_used() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    let prefix = nlri("203.0.113.0/24");
    for (next_hop, rejected) in
        [([192, 0, 2, 2], true), ([192, 0, 2, 1], false), ([127, 0, 0, 1], true), ([192, 0, 2, 77], false)]
    {
        world.inject(0, 1, announcement(65010, next_hop, &[]));
        world.settle();
        let heard = world.routes(1, RouteTable::AdjRibIn(key(0)), Family::Ipv4Unicast);
        let expected = rejected.then_some(crate::rib::PathRejected::OwnNextHop);
        assert_eq!(heard[0].paths[0].rejected, expected, "{next_hop:?}");
        assert_eq!(world.best(2, Family::Ipv4Unicast).contains_key(&prefix), !rejected, "{next_hop:?}");
        assert!(world.is_up(0, 1));
    }
}

#[test]
fn faulty_attributes_are_counted_for_the_neighbour() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.inject(0, 1, announcement(65010, [224, 0, 0, 1], &[]));
    world.inject(0, 1, announcement(65010, [192, 0, 2, 1], &[0xc0, 17, 1, 2]));
    let peer = world.peer(1, 0);
    assert_eq!((peer.treated_as_withdraw, peer.attributes_discarded), (1, 1));
    assert_eq!(world.nodes[1].speaker.stats().treated_as_withdraw, 1);
    assert_eq!(world.heard(1, 0, Family::Ipv4Unicast).len(), 1);
}

#[test]
fn nobody_is_told_of_an_own_route_that_leads_to_itself() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (2, 1)]);
    let to = |next_hop| Origination { next_hop: Some(next_hop), ..marked(7) };
    world.originate(1, nth(1), to(address(0)));
    world.originate(1, nth(2), to(address(2)));
    world.originate(1, nth(3), marked(8));
    world.settle();
    let heard = |world: &mut World, node| world.heard(node, 1, V4).into_keys().collect::<Vec<_>>();
    assert_eq!(heard(&mut world, 0), [nth(2), nth(3)]);
    assert_eq!(heard(&mut world, 2), [nth(1), nth(3)]);
    // It follows the next hop.
    world.originate(1, nth(1), to(address(2)));
    world.settle();
    assert_eq!((heard(&mut world, 0).len(), heard(&mut world, 2)), (3, vec![nth(3)]));
    // With ourselves as the next hop for everything nobody is led astray.
    let next_hop = crate::command::NextHopMode::SelfAddress;
    let config = PeerConfig { passive: true, next_hop, ..world.config(2) };
    world.command(1, Command::PutPeer(key(2), config));
    world.settle();
    assert_eq!(heard(&mut world, 2).len(), 3);
    for n in [1, 2] {
        world.command(1, Command::DeleteOrigination(nth(n)));
    }
    world.settle();
    assert_eq!((heard(&mut world, 0), heard(&mut world, 2)), (vec![nth(3)], vec![nth(3)]));
}

#[test]
fn a_route_that_leads_to_another_address_of_ours_is_not_used() {
    // 0 tells 1 of a route by way of 1's own IPv6 address, which 1 has a session at with 2, or comes to have.
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1)]);
    let next_hop = Some(address6(1));
    world.originate(0, nlri("2001:db8:77::/48"), Origination { next_hop, ..marked(7) });
    world.settle();
    let rejected = |world: &mut World| {
        let routes = world.routes(1, RouteTable::AdjRibIn(key(0)), Family::Ipv6Unicast);
        routes[0].paths[0].rejected
    };
    assert_eq!(rejected(&mut world), None);
    world.join_over_ipv6(2, 1, |_| ());
    world.settle();
    assert_eq!(rejected(&mut world), Some(crate::rib::PathRejected::OwnNextHop));
    assert!(world.best(1, Family::Ipv6Unicast).is_empty());
}
