//! Prefixes of VPNs: keys with distinguishers, labels that stay with their paths, and next hops that nobody touches.

use super::restart::{End, KEPT, secs};
use super::*;
use crate::command::{Chain, NextHopMode, Refusal};
use crate::policy::{Act, Condition, Default as Otherwise, Flow, PolicyDef, StatementDef};
use bgp_wire::{Label, NextHop};

const VPN4: Family = Family::Ipv4Vpn;
const VPN6: Family = Family::Ipv6Vpn;

fn vpn(family: Family, text: &str) -> Nlri {
    Nlri::parse_as(family, text).unwrap()
}

fn labelled(label: u32, mark: u32) -> Origination {
    let ext_communities = vec!["rt:65000:100".parse().unwrap(), "rt:192.0.2.1:7".parse().unwrap()];
    Origination { label: Label::new(label), ext_communities, ..marked(mark) }
}

/// What a node has told another, or has itself: label, next hop and route targets of each best path.
fn told(world: &mut World, node: usize, table: RouteTable, family: Family) -> BTreeMap<String, String> {
    let routes = world.routes(node, table, family);
    let line = |route: &RouteEntry| {
        let path = &route.paths[0];
        let label = path.attrs.label().map_or(String::new(), |label| label.to_string());
        let hop = path.next_hop.map_or("self".into(), |hop: NextHop| hop.to_string());
        let targets: Vec<_> = path.attrs.view().ext_communities().map(|target| target.to_string()).collect();
        format!("{label} via {hop} {}", targets.join(" "))
    };
    routes.iter().map(|route| (route.nlri.to_string(), line(route))).collect()
}

fn best(world: &mut World, node: usize, family: Family) -> BTreeMap<String, String> {
    told(world, node, RouteTable::LocRib, family)
}

/// A world in which everyone speaks every family.
fn joined(asns: &[u32], pairs: &[(usize, usize)], how: Option<GracefulRestart>) -> World {
    let mut world = World::new(asns);
    (world.families, world.graceful_restart) = (FamilySet::ALL, how);
    for &(a, b) in pairs {
        world.join(a, b);
    }
    world.load();
    world.settle();
    world
}

/// AS 65010 – AS 65020 – AS 65020 – AS 65030.
fn chain() -> World {
    joined(&[65010, 65020, 65020, 65030], &[(0, 1), (1, 2), (2, 3)], None)
}

#[test]
fn one_prefix_in_several_vpns_is_several_routes() {
    let mut world = chain();
    for (at, rd) in ["65000:100", "192.0.2.1:7", "4200000001:7", "0.65000:100"].into_iter().enumerate() {
        world.originate(0, vpn(VPN4, &format!("{rd}:10.0.0.0/8")), labelled(100 + at as u32, 1));
        world.originate(0, vpn(VPN6, &format!("{rd}:2001:db8::/32")), labelled(200 + at as u32, 1));
    }
    world.originate(0, nlri("10.0.0.0/8"), marked(1));
    world.settle();
    let targets = "rt:65000:100 rt:192.0.2.1:7";
    let four = best(&mut world, 3, VPN4);
    assert_eq!(four.len(), 4);
    assert_eq!(four["65000:100:10.0.0.0/8"], format!("100 via 192.0.2.1 {targets}"));
    assert_eq!(four["4200000001:7:10.0.0.0/8"], format!("102 via 192.0.2.1 {targets}"));
    let six = best(&mut world, 3, VPN6);
    assert_eq!(six.len(), 4);
    assert_eq!(six["0.65000:100:2001:db8::/32"], format!("203 via 2001:db8:ffff::1 {targets}"));
    assert_eq!(world.best(3, Family::Ipv4Unicast).len(), 1, "a table of its own");
    assert_eq!(world.best(3, VPN4).values().next().unwrap().1, "65020 65010");
    let status = world.peer(3, 2);
    let count = |family: Family| status.families.iter().find(|of| of.family == family).unwrap().received;
    assert_eq!((count(VPN4), count(VPN6), count(Family::Ipv4SrPolicy)), (4, 4, 0));
    assert!(status.families.iter().all(|family| family.end_of_rib_received), "for each family");
}

/// RFC 4364 section 10: who changes the next hop has to give a label of its own, and this speaker has none to give.
#[test]
fn the_next_hop_of_a_label_stays_unless_it_is_told_not_to() {
    let mut world = chain();
    world.originate(0, vpn(VPN4, "65000:1:10.0.0.0/8"), labelled(100, 1));
    world.originate(0, nlri("10.0.0.0/8"), marked(1));
    world.settle();
    let hop =
        |world: &mut World, node, family| world.routes(node, RouteTable::LocRib, family)[0].paths[0].next_hop;
    assert_eq!(hop(&mut world, 3, VPN4), Some(address(0).into()), "over two borders");
    assert_eq!(hop(&mut world, 3, Family::Ipv4Unicast), Some(address(2).into()));
    let keep_not = PeerConfig { next_hop: NextHopMode::SelfAddress, ..world.config(3) };
    world.command(2, Command::PutPeer(key(3), keep_not));
    world.settle();
    assert_eq!(hop(&mut world, 3, VPN4), Some(address(2).into()));
    assert!(
        best(&mut world, 3, VPN4)["65000:1:10.0.0.0/8"].starts_with("100 via 192.0.2.3"),
        "with its label"
    );
    assert_eq!(world.peer(3, 2).established_count, 1);
}

#[test]
fn another_label_is_told_and_a_withdrawal_needs_none() {
    let mut world = chain();
    let prefix = vpn(VPN4, "65000:1:10.0.0.0/8");
    for label in [100, 0, Label::MAX, 101] {
        world.originate(0, prefix, labelled(label, 1));
        world.settle();
        let line = best(&mut world, 3, VPN4).remove("65000:1:10.0.0.0/8").unwrap();
        assert!(line.starts_with(&format!("{label} via")), "{line}");
        let out = told(&mut world, 2, RouteTable::AdjRibOut(key(3)), VPN4);
        assert_eq!(out["65000:1:10.0.0.0/8"], line, "what was told");
    }
    world.command(0, Command::DeleteOrigination(prefix));
    world.settle();
    for node in 0..4 {
        assert!(best(&mut world, node, VPN4).is_empty());
        assert_eq!(world.nodes[node].speaker.sizes().attribute_sets, 0, "nothing is left behind");
    }
}

#[test]
fn labels_of_one_message_stay_apart_and_policy_keeps_them() {
    let mut world = joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)], None);
    let statement = |range: &str, acts| StatementDef {
        label: None,
        when: vec![Condition::Prefix(vec![range.parse().unwrap()])],
        apply: acts,
        then: Flow::Accept,
    };
    // A condition on prefixes looks at the prefix behind the distinguisher.
    let low = statement("10.0.0.0/9 le 32", vec![Act::SetLocalPref(50)]);
    let policy = PolicyDef { statements: vec![low], default: Otherwise::Accept };
    world.command(1, Command::PutPolicy("in".into(), policy));
    let config = PeerConfig { import: Chain::named("in"), ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), PeerConfig { passive: true, ..config }));
    for n in 0..200u32 {
        let prefix = vpn(VPN4, &format!("65000:{}:10.{n}.0.0/16", n % 3));
        world.originate(0, prefix, labelled(n / 2, 1));
    }
    world.settle();
    let lines = best(&mut world, 2, VPN4);
    assert_eq!(lines.len(), 200);
    for n in 0..200u32 {
        let line = &lines[&format!("65000:{}:10.{n}.0.0/16", n % 3)];
        assert!(line.starts_with(&format!("{} via 192.0.2.1 rt:65000:100", n / 2)), "{n}: {line}");
    }
    let low = world.routes(1, RouteTable::LocRib, VPN4);
    assert_eq!(low.iter().filter(|route| route.paths[0].attrs.facts().local_pref == Some(50)).count(), 128);
    // A path of the same source with another label is another path.
    world.originate(0, vpn(VPN4, "65000:0:10.0.0.0/16"), labelled(7, 1));
    world.settle();
    assert!(best(&mut world, 2, VPN4)["65000:0:10.0.0.0/16"].starts_with("7 via"));
}

#[test]
fn the_best_of_several_paths_keeps_its_own_label() {
    let mut world = joined(&[65010, 65020, 65030, 65040], &[(0, 2), (1, 2), (2, 3)], None);
    let prefix = vpn(VPN6, "1:2:3::/48");
    world.originate(0, prefix, Origination { med: Some(1), ..labelled(100, 1) });
    world.originate(1, prefix, labelled(200, 2));
    world.settle();
    assert!(best(&mut world, 3, VPN6)["1:2:3::/48"].starts_with("100 via"), "the lower identifier");
    world.command(0, Command::DeleteOrigination(prefix));
    world.settle();
    assert!(best(&mut world, 3, VPN6)["1:2:3::/48"].starts_with("200 via"));
}

#[test]
fn a_label_belongs_to_a_vpn_and_a_next_hop_to_its_family() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], None);
    let four = vpn(VPN4, "65000:1:10.0.0.0/8");
    let six = vpn(VPN6, "65000:1:2001:db8::/32");
    let mut put = |nlri, own| world.try_command(0, Command::PutOrigination(nlri, own));
    assert_eq!(put(four, marked(1)), Err(Refusal::NoLabel(four)));
    assert_eq!(put(nlri("10.0.0.0/8"), labelled(1, 1)), Err(Refusal::Label(nlri("10.0.0.0/8"))));
    let via = |hop: &str| Origination { next_hop: Some(hop.parse().unwrap()), ..labelled(5, 1) };
    assert_eq!(put(four, via("2001:db8::9")), Err(Refusal::NextHop("2001:db8::9".parse().unwrap())));
    assert_eq!(put(four, via("198.51.100.9")), Ok(Applied::Applied));
    // RFC 4659 section 3.2.1.2: an IPv4 next hop of an IPv6 prefix goes in IPv6 form.
    assert_eq!(put(six, via("198.51.100.9")), Ok(Applied::Applied));
    assert_eq!(put(six, via("198.51.100.9")), Ok(Applied::Unchanged));
    world.settle();
    assert!(best(&mut world, 1, VPN4).into_values().all(|line| line.starts_with("5 via 198.51.100.9")));
    assert!(
        best(&mut world, 1, VPN6).into_values().all(|line| line.starts_with("5 via ::ffff:198.51.100.9"))
    );
    // It is the IPv4 address that can be reached, or not.
    let gone = crate::rib::NextHopState { reachable: false, ..Default::default() };
    world.command(1, Command::PutNextHop("198.51.100.9".parse().unwrap(), gone));
    world.settle();
    assert!(world.best(1, VPN6).is_empty() && world.best(1, VPN4).is_empty());
}

#[test]
fn without_an_ipv6_address_the_ipv4_one_is_the_next_hop() {
    let mut world = World::new(&[65010, 65020]);
    world.families = FamilySet::ALL;
    for (node, other, passive) in [(1, 0, true), (0, 1, false)] {
        let config = PeerConfig { passive, next_hop_v6: None, ..world.config(other) };
        world.command(node, Command::PutPeer(key(other), config));
    }
    world.load();
    world.originate(0, vpn(VPN6, "65000:1:2001:db8::/32"), labelled(5, 1));
    world.originate(0, nlri("2001:db8::/32"), marked(1));
    world.settle();
    assert!(best(&mut world, 1, VPN6)["65000:1:2001:db8::/32"].starts_with("5 via ::ffff:192.0.2.1 "));
    assert!(world.best(1, Family::Ipv6Unicast).is_empty(), "unicast has no such form");
}

/// RFC 8950: with an IPv6 session and the capability, for VPN-IPv4 as for IPv4.
#[test]
fn over_ipv6_a_vpn_ipv4_prefix_has_an_ipv6_next_hop_where_that_was_agreed() {
    for extended in [true, false] {
        let mut world = World::new(&[65010, 65020]);
        world.join_over_ipv6(0, 1, |config| {
            config.families.insert(VPN4);
            config.extended_next_hop = extended;
        });
        world.load();
        world.originate(0, vpn(VPN4, "65000:1:10.0.0.0/8"), labelled(5, 1));
        world.settle();
        let hops: Vec<_> =
            world.routes(1, RouteTable::LocRib, VPN4).iter().map(|r| r.paths[0].next_hop).collect();
        let expected = extended.then_some(Some(NextHop::from(address6(0))));
        assert_eq!(hops, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_neighbour_that_restarts_keeps_its_vpn_routes() {
    let mut world = joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)], Some(KEPT));
    for n in 0..50 {
        world.originate(0, vpn(VPN4, &format!("65000:{n}:10.0.0.0/8")), labelled(n, 1));
        world.originate(0, vpn(VPN6, &format!("65000:{n}:2001:db8::/32")), labelled(n, 1));
    }
    world.settle();
    let before = (world.updates(2, 1), best(&mut world, 2, VPN4));
    world.crash(0, End::Closing);
    world.pass(secs(60));
    assert_eq!((world.updates(2, 1), best(&mut world, 2, VPN4)), before);
    assert!(world.routes(1, RouteTable::LocRib, VPN6).iter().all(|route| route.paths[0].stale));
    world.rejoin(0, &[1], KEPT);
    world.settle();
    for n in 0..20 {
        world.originate(0, vpn(VPN4, &format!("65000:{n}:10.0.0.0/8")), labelled(n, 1));
    }
    world.command(0, Command::LoadingDone);
    world.pass(secs(5));
    assert_eq!((world.count(2, VPN4), world.count(2, VPN6)), (20, 0), "what it did not say again is gone");
}

#[test]
fn a_refresh_of_one_family_repeats_that_family() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], None);
    world.originate(0, vpn(VPN4, "65000:1:10.0.0.0/8"), labelled(5, 1));
    world.originate(0, nlri("10.0.0.0/8"), marked(1));
    world.settle();
    let before = world.updates(1, 0);
    let mut refresh = bytes::BytesMut::new();
    bgp_wire::RouteRefresh::new(VPN4, bgp_wire::RouteRefresh::REQUEST).encode(&mut refresh);
    world.inject(1, 0, refresh.to_vec());
    world.settle();
    assert_eq!(world.updates(1, 0), before + 1);
    assert_eq!((world.count(1, VPN4), world.count(1, Family::Ipv4Unicast)), (1, 1));
}

/// A malformed prefix ends the session, as everything behind it is lost (RFC 7606 sections 5.3 and 7.11); routes of all
/// families go with it, and the neighbour hears which attribute it was.
#[test]
fn a_malformed_vpn_prefix_resets_the_session() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], None);
    world.originate(0, vpn(VPN4, "65000:1:10.0.0.0/8"), labelled(5, 1));
    world.settle();
    // A length of 87 bits: less than a label and a distinguisher.
    let reach = [&[0x80, 14, 21, 0, 1, 128, 12][..], &[0; 8], &[192, 0, 2, 1, 0], &[87, 0, 0, 1]].concat();
    let attrs = [&reach[..], &[0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xf2]].concat();
    let body = [&[0, 0, 0, attrs.len() as u8][..], &attrs].concat();
    let message = [&[0xff; 16][..], &[0, 19 + body.len() as u8, 2], &body].concat();
    world.inject(0, 1, message);
    world.settle();
    let status = world.peer(1, 0);
    assert!(status.last_error.unwrap().contains("multiprotocol attribute 14"), "said in words");
    assert!(world.best(1, VPN4).is_empty());
    world.pass(secs(60));
    assert!(world.is_up(0, 1) && world.count(1, VPN4) == 1, "and it comes back");
}

/// What one end does not offer is not exchanged, and a family that we do not know is no family.
#[test]
fn families_that_one_end_lacks_are_not_negotiated() {
    let mut world = World::new(&[65010, 65020]);
    for (node, other, families) in [(1, 0, FamilySet::ALL), (0, 1, FamilySet::UNICAST)] {
        let config = PeerConfig { passive: node == 1, families, ..world.config(other) };
        world.command(node, Command::PutPeer(key(other), config));
    }
    world.load();
    world.originate(1, vpn(VPN4, "65000:1:10.0.0.0/8"), labelled(5, 1));
    world.settle();
    assert_eq!(
        (world.peer(0, 1).negotiated, world.peer(1, 0).negotiated),
        (FamilySet::UNICAST, FamilySet::UNICAST)
    );
    assert!(world.best(0, VPN4).is_empty());
    let table = RouteTable::AdjRibOut(key(0));
    assert!(world.routes(1, table, VPN4).is_empty());
}
