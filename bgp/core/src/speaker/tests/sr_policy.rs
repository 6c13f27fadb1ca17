//! SR policies: who hears of them, who may use them, and what an embedder is told (RFC 9830 section 4).

use super::*;
use crate::command::{NextHopMode, Refusal};
use crate::rib::{Originator, PathRejected, RibChange, SrPolicyPath};
use bgp_wire::attr::tunnel_encap::{
    BindingSid, CandidatePath, CandidatePathError, Segment, SegmentFlags, SegmentList, Sid,
};
use bgp_wire::attr::{Builder, Origin, encode};
use bgp_wire::{EncodeOptions, NextHop, NlriKey, PathId, SrPolicy4, UpdateWriter};
use bytes::BytesMut;

const SR4: Family = Family::Ipv4SrPolicy;
const SR6: Family = Family::Ipv6SrPolicy;

fn families() -> FamilySet {
    [SR4, SR6].into_iter().collect()
}

/// Speakers that exchange nothing but SR policies.
fn joined(asns: &[u32], pairs: &[(usize, usize)], change: impl Fn(&mut PeerConfig)) -> World {
    let mut world = World::new(asns);
    world.graceful_restart = Some(GracefulRestart::USUAL);
    for &(a, b) in pairs {
        for (node, other, passive) in [(b, a, true), (a, b, false)] {
            let mut config = PeerConfig { passive, families: families(), ..world.config(other) };
            change(&mut config);
            world.command(node, Command::PutPeer(key(other), config));
        }
    }
    world.load();
    world.settle();
    world
}

fn candidate(preference: u32) -> CandidatePath {
    let segment = Segment::Mpls { flags: SegmentFlags::default(), label: 16001, traffic_class: 0, ttl: 255 };
    CandidatePath {
        preference,
        binding_sid: Some(BindingSid { sid: Some(Sid::Label(16100)), ..BindingSid::default() }),
        segment_lists: vec![SegmentList { weight: 3, segments: vec![segment] }],
        ..CandidatePath::default()
    }
}

fn policy(preference: u32) -> Origination {
    Origination { sr_policy: Some(Box::new(candidate(preference))), ..marked(preference) }
}

fn with_targets(preference: u32, targets: &[&str]) -> Origination {
    let ext_communities = targets.iter().map(|text| text.parse().unwrap()).collect();
    Origination { ext_communities, ..policy(preference) }
}

/// What the change stream says of SR policies.
fn changes(world: &mut World, node: usize, id: super::super::SubscriberId) -> Vec<RibChange> {
    let events = world.events(node, id);
    events
        .into_iter()
        .filter_map(|event| match event {
            RibEvent::Change(change) => Some(change),
            RibEvent::Resync | RibEvent::Replayed | RibEvent::Converged(_) => None,
        })
        .collect()
}

fn rejected(world: &mut World, node: usize) -> Vec<Option<PathRejected>> {
    let routes = world.routes(node, RouteTable::LocRib, SR4);
    routes.iter().flat_map(|route| &route.paths).map(|path| path.rejected).collect()
}

#[test]
fn an_embedder_is_told_what_a_policy_says() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], |_| {});
    assert_eq!(world.peer(1, 0).negotiated, families());
    let id = world.nodes[1].speaker.subscribe(families());
    changes(&mut world, 1, id);
    let keys = [nlri("1:100:192.0.2.9"), nlri("0:4:2001:db8::9")];
    for nlri in keys {
        world.originate(0, nlri, policy(7));
    }
    world.settle();
    let told = changes(&mut world, 1, id);
    assert_eq!(told.len(), 2);
    for (change, nlri) in told.into_iter().zip(keys) {
        assert_eq!((change.nlri, change.family, change.local), (nlri, nlri.family(), false));
        assert!(change.best.is_some());
        let originator = Originator { asn: Asn(65010), node: RouterId(0xc000_0201) };
        let expected = SrPolicyPath { path: candidate(7), originator };
        assert_eq!(change.sr_policy, Some(Box::new(expected)));
    }
    // The own ones too.
    let id = world.nodes[0].speaker.subscribe(families());
    let own = changes(&mut world, 0, id);
    assert_eq!(own.len(), 2);
    assert!(own.iter().all(|change| change.local && change.sr_policy.is_some()));

    world.originate(0, keys[0], policy(8));
    world.command(0, Command::DeleteOrigination(keys[1]));
    world.settle();
    let id = world.nodes[1].speaker.subscribe(families());
    let told = changes(&mut world, 1, id);
    assert_eq!(told.iter().map(|change| change.nlri).collect::<Vec<_>>(), [keys[0]]);
    assert_eq!(told[0].sr_policy.as_ref().unwrap().path.preference, 8);
    for family in 4..6 {
        let at = &world.peer(1, 0).families[family - 4];
        assert_eq!((at.family.index(), at.end_of_rib_received, at.end_of_rib_sent), (family, true, true));
    }
}

/// RFC 9830 section 4.2.2: a policy that names other headends is there and passed on, but not for us.
#[test]
fn a_policy_for_other_headends_is_not_for_the_embedder() {
    // 0 -ebgp- 1 -ibgp- 2
    let mut world = joined(&[65010, 65020, 65020], &[(0, 1), (1, 2)], |_| {});
    let key = nlri("1:100:192.0.2.9");
    let ids = [1, 2].map(|node| (node, world.nodes[node].speaker.subscribe(families())));
    for (node, id) in ids {
        changes(&mut world, node, id);
    }
    let usable = |world: &mut World, targets: &[&str]| {
        world.originate(0, key, with_targets(1, targets));
        world.settle();
        assert_eq!(world.best(1, SR4).len(), 1, "{targets:?}");
        assert_eq!(world.best(2, SR4).len(), 1, "{targets:?}");
        ids.map(|(node, id)| {
            let told = changes(world, node, id);
            let change = told.last().expect("something has changed");
            assert_eq!(change.best.is_some(), change.sr_policy.is_some());
            assert!(change.best.is_some() || (change.hops.members().is_empty() && !change.local));
            change.best.is_some()
        })
    };
    assert_eq!(usable(&mut world, &["rt:192.0.2.3:0"]), [false, true]);
    assert_eq!(usable(&mut world, &["rt:192.0.2.3:0", "rt:192.0.2.2:0"]), [true, true]);
    assert_eq!(usable(&mut world, &["rt:192.0.2.9:0"]), [false, false]);
    assert_eq!(usable(&mut world, &[]), [true, true]);
}

/// RFC 9830 section 4.2.3.
#[test]
fn what_is_received_stays_in_the_as() {
    // 0 -ebgp- 1 -ibgp- 2, and 1 -ebgp- 3
    let mut world = joined(&[65010, 65020, 65020, 65030], &[(0, 1), (1, 2), (1, 3)], |_| {});
    let (received, own, closed) = (nlri("1:1:192.0.2.9"), nlri("1:2:192.0.2.9"), nlri("1:3:192.0.2.9"));
    world.originate(0, received, policy(1));
    world.originate(1, own, policy(2));
    // NO_ADVERTISE is for whoever is told, who tells nobody.
    world.originate(0, closed, Origination { communities: vec![0xffff_ff02], ..policy(3) });
    world.settle();
    let heard = |world: &mut World, node| world.heard(node, 1, SR4).into_keys().collect::<Vec<_>>();
    assert_eq!(world.best(1, SR4).len(), 3, "own routes are told, whatever they say");
    assert_eq!(heard(&mut world, 2), [received, own]);
    assert_eq!(heard(&mut world, 3), [own]);
    assert_eq!(heard(&mut world, 0), [own]);
}

/// RFC 9830 section 4.2.1, where it is asked for.
#[test]
fn a_strict_speaker_wants_to_know_for_whom_a_policy_is() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], |config| config.sr_policy_strict = true);
    let key_ = nlri("1:100:192.0.2.9");
    for (targets, verdict) in [
        (&[][..], Some(PathRejected::NoTarget)),
        (&["rt:65010:1"], Some(PathRejected::NoTarget)),
        (&["rt:192.0.2.9:0"], None),
    ] {
        world.originate(0, key_, with_targets(1, targets));
        world.settle();
        assert_eq!(rejected(&mut world, 1), [verdict], "{targets:?}");
    }
    world.originate(0, key_, policy(1));
    world.settle();
    assert!(world.best(1, SR4).is_empty());
    // A change of mind needs nothing of the neighbour.
    let (sent, config) = (world.nodes[0].sent.len(), world.config(0));
    for strict in [false, true] {
        let config =
            PeerConfig { passive: true, families: families(), sr_policy_strict: strict, ..config.clone() };
        assert_eq!(world.command(1, Command::PutPeer(key(0), config)), Applied::Applied);
        world.settle();
        assert_eq!(world.best(1, SR4).is_empty(), strict);
    }
    assert_eq!(world.nodes[0].sent.len(), sent);
}

#[test]
fn an_sr_policy_and_only_an_sr_policy_has_a_candidate_path() {
    let mut world = World::new(&[65010]);
    let (sr, unicast) = (nlri("1:100:192.0.2.9"), nlri("203.0.113.0/24"));
    let mut put = |nlri, origination| world.try_command(0, Command::PutOrigination(nlri, origination));
    assert_eq!(put(sr, Origination::default()), Err(Refusal::NoCandidatePath(sr)));
    assert_eq!(put(unicast, policy(1)), Err(Refusal::CandidatePath(unicast)));
    let bad = CandidatePath { explicit_null: Some(9), ..candidate(1) };
    let bad = Origination { sr_policy: Some(Box::new(bad)), ..Origination::default() };
    assert_eq!(put(sr, bad), Err(Refusal::BadCandidatePath(CandidatePathError::ExplicitNull(9))));
    assert_eq!(put(sr, policy(1)), Ok(Applied::Applied));
    assert_eq!(put(sr, policy(1)), Ok(Applied::Unchanged));
}

#[test]
fn the_next_hop_is_of_the_policys_version_where_there_is_one() {
    let hops = |world: &mut World| {
        world.originate(0, nlri("1:100:192.0.2.9"), policy(1));
        world.originate(0, nlri("1:100:2001:db8::9"), policy(1));
        world.settle();
        [SR4, SR6].map(|family| {
            let routes = world.routes(1, RouteTable::LocRib, family);
            routes[0].paths[0].next_hop.map(|hop| hop.to_string()).unwrap_or_default()
        })
    };
    let mut world = joined(&[65010, 65020], &[(0, 1)], |_| {});
    assert_eq!(hops(&mut world), ["192.0.2.1", "2001:db8:ffff::1"]);
    let mut world = joined(&[65010, 65020], &[(0, 1)], |config| config.next_hop_v6 = None);
    assert_eq!(hops(&mut world), ["192.0.2.1", "192.0.2.1"], "RFC 9830 section 2.1: either will do");
    // Inside the AS another's next hop is kept, of whichever version it is.
    let mut world = joined(&[65010, 65010], &[(0, 1)], |config| config.next_hop = NextHopMode::Default);
    let next_hop = Some("2001:db8::77".parse().unwrap());
    world.originate(0, nlri("2:100:192.0.2.9"), Origination { next_hop, ..policy(1) });
    world.settle();
    let routes = world.routes(1, RouteTable::LocRib, SR4);
    assert_eq!(routes[0].paths[0].next_hop.map(|hop| hop.address()), next_hop);
}

#[test]
fn policies_survive_a_restart_of_their_neighbour() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], |_| {});
    let (kept, lost) = (nlri("1:100:192.0.2.9"), nlri("2:100:192.0.2.9"));
    world.originate(0, kept, policy(1));
    world.originate(0, lost, policy(2));
    world.settle();
    world.cut(0, 1, true);
    world.settle();
    assert!(!world.is_up(0, 1));
    assert_eq!(world.best(1, SR4).len(), 2, "kept while the neighbour is away");
    world.command(0, Command::DeleteOrigination(lost));
    world.cut(0, 1, false);
    world.pass(Duration::from_secs(60));
    assert!(world.is_up(0, 1));
    assert_eq!(world.best(1, SR4).into_keys().collect::<Vec<_>>(), [kept], "swept after End-of-RIB");
}

#[test]
fn what_is_malformed_is_withdrawn_and_what_can_be_passed_over_is() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], |_| {});
    let message = |keys: &[SrPolicy4], path: Option<&CandidatePath>| {
        let mut builder = Builder::new(Origin::Igp);
        builder.prepend(Asn(65010), 1).tunnel_encap(path.map(|path| path.encode().unwrap()));
        let (mut attrs, mut out) = (Vec::new(), BytesMut::new());
        encode(Canonical(&builder.build()), None, true, &mut attrs);
        let hop = NextHop::from(Ipv4Addr::new(192, 0, 2, 1));
        let keys = keys.iter().map(|key| (PathId::NONE, *key));
        UpdateWriter::new(&mut out, EncodeOptions::default()).announce_mp(&attrs, hop, keys).unwrap();
        out.to_vec()
    };
    let key = |distinguisher| SrPolicy4 { distinguisher, color: 100, endpoint: Ipv4Addr::LOCALHOST };
    assert_eq!(SrPolicy4::of(nlri("1:100:127.0.0.1")), Some(key(1)));
    world.inject(0, 1, message(&[key(1), key(2)], Some(&candidate(1))));
    assert_eq!(world.best(1, SR4).len(), 2);
    world.inject(0, 1, message(&[key(1)], None));
    assert_eq!(world.best(1, SR4).into_keys().collect::<Vec<_>>(), [nlri("2:100:127.0.0.1")]);
    assert_eq!(world.peer(1, 0).treated_as_withdraw, 1);
    // Three octets that say how many they are, in front of a withdrawal.
    let withdrawn = [&[0, 1, 73, 24, 9, 9, 9][..], &[96, 0, 0, 0, 2, 0, 0, 0, 100, 127, 0, 0, 1]].concat();
    let attribute = [&[0x80, 15, withdrawn.len() as u8][..], &withdrawn].concat();
    let body = [&[0, 0, 0, attribute.len() as u8][..], &attribute].concat();
    let withdrawal = [&[0xff; 16][..], &[0, 19 + body.len() as u8, 2], &body].concat();
    world.inject(0, 1, withdrawal);
    assert!(world.is_up(0, 1));
    assert!(world.best(1, SR4).is_empty());
}

/// What was last told of a policy: whether it may be used, to whoever listens already and to whoever asks anew.
fn last_told(world: &mut World, node: usize, id: super::super::SubscriberId) -> [Option<bool>; 2] {
    let fresh = world.nodes[node].speaker.subscribe(families());
    [id, fresh].map(|id| changes(world, node, id).last().map(|change| change.best.is_some()))
}

#[test]
fn a_policy_that_is_not_for_the_new_identifier_is_taken_back() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], |_| {});
    let id = world.nodes[1].speaker.subscribe(families());
    world.originate(0, nlri("1:100:192.0.2.9"), with_targets(1, &["rt:192.0.2.2:0"]));
    world.settle();
    assert_eq!(last_told(&mut world, 1, id), [Some(true); 2]);
    world.command(1, Command::PutIdentity { asn: Asn(65020), router_id: RouterId(0xc000_0263) });
    world.pass(Duration::from_secs(600));
    assert!(world.is_up(0, 1));
    assert_eq!(last_told(&mut world, 1, id), [Some(false); 2]);
}

#[test]
fn an_own_policy_for_the_new_identifier_is_told() {
    let mut world = joined(&[65010, 65020], &[(0, 1)], |_| {});
    let id = world.nodes[0].speaker.subscribe(families());
    world.originate(0, nlri("1:100:192.0.2.9"), with_targets(1, &["rt:192.0.2.99:0"]));
    world.settle();
    assert_eq!(last_told(&mut world, 0, id), [Some(false); 2]);
    world.command(0, Command::PutIdentity { asn: Asn(65010), router_id: RouterId(0xc000_0263) });
    world.pass(Duration::from_secs(600));
    assert_eq!(last_told(&mut world, 0, id), [Some(true); 2]);
}

#[test]
fn the_originator_of_an_own_policy_follows_our_as_number() {
    let mut world = joined(&[65010], &[], |_| {});
    let id = world.nodes[0].speaker.subscribe(families());
    world.originate(0, nlri("1:100:192.0.2.9"), policy(1));
    world.settle();
    let asn = |world: &mut World| {
        let last = changes(world, 0, id).pop();
        last.and_then(|change| change.sr_policy).map(|policy| policy.originator.asn)
    };
    assert_eq!(asn(&mut world), Some(Asn(65010)));
    let router_id = world.nodes[0].speaker.identity().1;
    world.command(0, Command::PutIdentity { asn: Asn(65011), router_id });
    world.settle();
    assert_eq!(asn(&mut world), Some(Asn(65011)));
}
