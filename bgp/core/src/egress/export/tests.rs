//! What changes on the way out, rule by rule.

use super::*;
use crate::policy::MedEdit;
use std::net::Ipv6Addr;

use bgp_wire::RouterId;
use bgp_wire::attr::{Builder, Canonical, Community, Origin as Code};

use crate::peer_key::PeerIx;

const EXTERNAL: bool = true;

const LOCAL: Origin = Origin::LOCAL;
const OUTSIDE: Origin = Origin::from_peer(PeerIx(1), true, false);
const INSIDE: Origin = Origin::from_peer(PeerIx(2), false, false);
const CLIENT: Origin = Origin::from_peer(PeerIx(3), false, true);

fn rules(external: bool) -> Rules {
    Rules {
        long_lived: false,
        graceful_shutdown: false,
        family: Family::Ipv4Unicast,
        external,
        local_asn: Asn(65010),
        path: None,
        client: false,
        cluster: None,
        four_octet: true,
        max_message: 4096,
        next_hop: NextHopMode::Default,
        extended_next_hop: false,
        paths: None,
        role: None,
        own: Some(NextHop::V4(Ipv4Addr::new(192, 0, 2, 1))),
    }
}

fn codes(octets: &[u8]) -> Vec<u8> {
    AttrIter::new(octets).map(|attr| attr.code).collect()
}

fn written(rules: &Rules, canonical: &[u8], learned: Learned, policy_med: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let next_hop = rules.next_hop(learned, None, Some(NextHop::V4(Ipv4Addr::new(198, 51, 100, 7))));
    let route = Outgoing { learned, policy_med, next_hop, reflected: None, prepends: &[], added: &[] };
    rules.write(canonical, route, &mut out);
    assert!(codes(&out).is_sorted(), "codes ascend");
    out
}

fn full() -> Vec<u8> {
    let mut builder = Builder::new(Code::Egp);
    builder
        .prepend(Asn(65020), 1)
        .med(Some(7))
        .local_pref(Some(200))
        .add_communities([Community::new(1, 1)])
        .originator(Some(RouterId(9)))
        .prepend_cluster(RouterId(8));
    builder.build()
}

#[test]
fn to_an_external_peer() {
    let out = written(&rules(EXTERNAL), &full(), Learned::Internal, false);
    assert_eq!(codes(&out), [code::ORIGIN, code::AS_PATH, code::NEXT_HOP, code::COMMUNITIES]);
    let set = Canonical(&out);
    assert_eq!(set.as_path().to_string(), "65010 65020");
    assert_eq!(set.attr(code::NEXT_HOP).unwrap().value, [192, 0, 2, 1], "ourselves");
    for (learned, policy_med) in [(Learned::Local, false), (Learned::External, true)] {
        let out = written(&rules(EXTERNAL), &full(), learned, policy_med);
        assert_eq!(Canonical(&out).med(), Some(7), "our own MED goes out");
    }
}

/// RFC 5065: an internal neighbour may be in a confederation, those outside must not hear of that; they would withdraw.
#[test]
fn a_confederation_is_not_shown_to_those_outside() {
    let path = [3, 1, 0, 0, 0xfd, 0xe9, 2, 1, 0, 0, 0, 7];
    let set = [&[0x40, code::ORIGIN, 1, 0, 0x40, code::AS_PATH, path.len() as u8][..], &path].concat();
    let shown = |external| {
        let out = written(&rules(external), &set, Learned::Internal, false);
        Canonical(&out).as_path().to_string()
    };
    assert_eq!((shown(EXTERNAL), shown(!EXTERNAL)), ("65010 7".into(), "(65001) 7".into()));
}

/// RFC 4360 section 6.
#[test]
fn non_transitive_extended_communities_end_at_the_border() {
    let target: ExtCommunity = "rt:65020:1".parse().unwrap();
    let (inside, wanted) =
        (ExtCommunity::of_link_bandwidth(65010, 1e6), ExtCommunity::of_link_bandwidth(65010, 2e6));
    let told = |external, learned, communities: &[ExtCommunity], added: &[ExtCommunity]| {
        let set = Builder::new(Code::Igp).add_ext_communities(communities.iter().copied()).build();
        let mut out = Vec::new();
        let route =
            Outgoing { learned, policy_med: false, next_hop: None, reflected: None, prepends: &[], added };
        rules(external).write(&set, route, &mut out);
        let attr = AttrIter::new(&out).find(|attr| attr.code == code::EXT_COMMUNITIES);
        assert!(attr.is_none_or(|attr| attr.raw[0] & 0xe0 == 0xc0 && !attr.value.is_empty()));
        attr.map(|_| Canonical(&out).ext_communities().collect::<Vec<_>>())
    };
    let (far, near) = (Learned::External, Learned::Internal);
    for learned in [far, near] {
        assert_eq!(told(EXTERNAL, learned, &[inside, target, wanted], &[]), Some(vec![target]));
        assert_eq!(told(EXTERNAL, learned, &[inside, wanted], &[]), None, "the attribute goes with the last");
        assert_eq!(told(EXTERNAL, learned, &[target], &[]), Some(vec![target]));
        assert_eq!(told(!EXTERNAL, learned, &[inside, target], &[]), Some(vec![inside, target]));
        // What export policy has added is for this neighbour.
        assert_eq!(told(EXTERNAL, learned, &[inside, target, wanted], &[wanted]), Some(vec![target, wanted]));
    }
    assert_eq!(told(EXTERNAL, Learned::Local, &[inside], &[]), Some(vec![inside]), "an own route says it");
    // A list that was long, and no more is.
    let mut long: Vec<_> = (0..40).map(|n| ExtCommunity::of_link_bandwidth(n, 1e6)).collect();
    long.push(target);
    assert_eq!(told(EXTERNAL, far, &long, &[]), Some(vec![target]));
}

#[test]
fn to_an_internal_peer() {
    let out = written(&rules(!EXTERNAL), &full(), Learned::External, false);
    assert_eq!(codes(&out), [1, 2, 3, 4, 5, 8, 9, 10]);
    let set = Canonical(&out);
    assert_eq!(
        (set.as_path().to_string().as_str(), set.med(), set.local_pref()),
        ("65020", Some(7), Some(200))
    );
    assert_eq!(set.attr(code::NEXT_HOP).unwrap().value, [198, 51, 100, 7], "unchanged");
    let plain = Builder::new(Code::Igp).build();
    assert_eq!(Canonical(&written(&rules(!EXTERNAL), &plain, Learned::Local, false)).local_pref(), Some(100));
}

#[test]
fn what_is_missing_is_put_in_its_place() {
    let bare = [0xc0, 8, 4, 0, 1, 0, 1];
    let out = written(&rules(EXTERNAL), &bare, Learned::Local, false);
    assert_eq!(codes(&out), [2, 3, 8]);
    assert_eq!(Canonical(&out).as_path().to_string(), "65010");
    assert_eq!(codes(&written(&rules(!EXTERNAL), &[], Learned::Local, false)), [2, 3, 5]);
    let out =
        written(&Rules { family: Family::Ipv6Unicast, ..rules(EXTERNAL) }, &bare, Learned::Local, false);
    assert_eq!(codes(&out), [2, 8], "other families have their next hop in MP_REACH_NLRI");
}

#[test]
fn a_path_grows_by_a_segment_where_the_first_cannot_take_it() {
    let prepended = |path: &[u8]| {
        let mut out = Vec::new();
        rules(EXTERNAL).prepend(path, &[], &mut out);
        AttrIter::new(&out).next().unwrap().value.to_vec()
    };
    assert_eq!(prepended(&[]), [2, 1, 0, 0, 0xfd, 0xf2]);
    assert_eq!(prepended(&[2, 1, 0, 0, 0, 7]), [2, 2, 0, 0, 0xfd, 0xf2, 0, 0, 0, 7]);
    assert_eq!(prepended(&[1, 1, 0, 0, 0, 7]), [2, 1, 0, 0, 0xfd, 0xf2, 1, 1, 0, 0, 0, 7], "before a set");
    let full = [&[2, 255][..], &[1; 255 * 4]].concat();
    let longer = prepended(&full);
    assert_eq!((longer.len(), &longer[..8]), (full.len() + 6, &[2, 1, 0, 0, 0xfd, 0xf2, 2, 255][..]));
}

#[test]
fn the_next_hop_by_mode_source_and_family() {
    let (own, theirs) = (rules(EXTERNAL).own, Some(NextHop::V4(Ipv4Addr::new(198, 51, 100, 7))));
    let hop = |mode, external, learned, own_wanted: bool, current| {
        Rules { next_hop: mode, ..rules(external) }.next_hop(
            learned,
            own_wanted.then_some(NextHopEdit::Own),
            current,
        )
    };
    use NextHopMode::{Default, Keep, SelfAddress};
    assert_eq!(hop(Default, true, Learned::External, false, theirs), own);
    assert_eq!(hop(Default, true, Learned::Local, false, theirs), theirs, "one that was named");
    assert_eq!(hop(Default, true, Learned::Local, false, None), own);
    assert_eq!(hop(Default, false, Learned::External, false, theirs), theirs);
    assert_eq!(hop(Default, false, Learned::External, true, theirs), own, "policy says so");
    assert_eq!(hop(SelfAddress, false, Learned::External, false, theirs), own);
    assert_eq!(hop(Keep, true, Learned::External, false, theirs), theirs);
    let v6 = Rules { family: Family::Ipv6Unicast, ..rules(true) };
    assert_eq!(v6.next_hop(Learned::External, None, theirs), None, "an IPv4 address cannot carry IPv6");
    assert_eq!(Rules { own: None, ..rules(true) }.next_hop(Learned::External, None, theirs), None);
}

#[test]
fn who_may_hear_of_what() {
    let facts = |communities: &[Community]| {
        let octets = Builder::new(Code::Igp).add_communities(communities.iter().copied()).build();
        Canonical(&octets).facts()
    };
    let plain = facts(&[]);
    let client = Rules { client: true, ..rules(!EXTERNAL) };
    // RFC 4456 section 6: external, a client, another internal one.
    for (from, internal, to_client) in
        [(LOCAL, true, true), (OUTSIDE, true, true), (CLIENT, true, true), (INSIDE, false, true)]
    {
        assert!(rules(EXTERNAL).admit(from, &plain).is_ok());
        assert_eq!(rules(!EXTERNAL).admit(from, &plain).is_ok(), internal, "{from:?}");
        assert_eq!(client.admit(from, &plain).is_ok(), to_client, "{from:?}");
    }
    for (community, outside, inside) in [
        (Community::NO_EXPORT, false, true),
        (Community::NO_EXPORT_SUBCONFED, false, true),
        (Community::NO_ADVERTISE, false, false),
        (Community::NO_PEER, true, true),
    ] {
        let facts = facts(&[community]);
        for from in [OUTSIDE, INSIDE, CLIENT] {
            assert_eq!(rules(EXTERNAL).admit(from, &facts).is_ok(), outside, "{community}");
            assert_eq!(client.admit(from, &facts).is_ok(), inside, "{community}");
        }
        // RFC 1997 is about routes that were received.
        assert!(
            rules(EXTERNAL).admit(LOCAL, &facts).is_ok() && rules(!EXTERNAL).admit(LOCAL, &facts).is_ok(),
            "{community}"
        );
    }
}

/// RFC 3765 leaves it to us who is a peer; RFC 9234 has a word for it.
#[test]
fn no_peer_counts_towards_a_peer_by_role() {
    let octets = Builder::new(Code::Igp).add_communities([Community::NO_PEER]).build();
    let facts = Canonical(&octets).facts();
    let role = |role| Rules { role: Some(role), ..rules(EXTERNAL) };
    assert!(role(Role::Peer).admit(OUTSIDE, &facts).is_err());
    assert!(
        role(Role::Peer).admit(LOCAL, &facts).is_ok() && role(Role::Provider).admit(OUTSIDE, &facts).is_ok()
    );
}

/// RFC 4456 section 8: ORIGINATOR_ID where there is none, our cluster in front of CLUSTER_LIST; section 10: all else stays.
#[test]
fn what_is_reflected() {
    let reflector = Rules { cluster: Some(RouterId(0x0a00_0001)), ..rules(!EXTERNAL) };
    let next_hop = NextHop::V4(Ipv4Addr::new(198, 51, 100, 7));
    let reflected = |canonical: &[u8]| {
        let learned = Learned::Internal;
        let sender = || Some(RouterId(5));
        let reflected = reflector.reflected(learned, &Canonical(canonical).facts(), sender);
        let next_hop = reflector.next_hop(learned, None, Some(next_hop));
        let mut out = Vec::new();
        let route = Outgoing { learned, policy_med: false, next_hop, reflected, prepends: &[], added: &[] };
        reflector.write(canonical, route, &mut out);
        assert!(codes(&out).is_sorted(), "codes ascend");
        out
    };
    let out = reflected(&full());
    let set = Canonical(&out);
    assert_eq!(set.originator(), Some(RouterId(9)), "who it says");
    assert_eq!(set.cluster_list().collect::<Vec<_>>(), [RouterId(0x0a00_0001), RouterId(8)]);
    assert_eq!(
        (set.med(), set.local_pref(), set.as_path().to_string()),
        (Some(7), Some(200), "65020".into())
    );
    assert_eq!(set.attr(code::NEXT_HOP).unwrap().value, [198, 51, 100, 7]);
    let first = reflected(&Builder::new(Code::Igp).local_pref(Some(5)).build());
    assert_eq!(codes(&first), [1, 2, 3, 5, 9, 10]);
    let set = Canonical(&first);
    assert_eq!((set.originator(), set.cluster_list().count()), (Some(RouterId(5)), 1));
    // 64 clusters need a longer header.
    let mut long = Builder::new(Code::Igp);
    for n in 0..63 {
        long.prepend_cluster(RouterId(n)).originator(Some(RouterId(1)));
    }
    assert_eq!(Canonical(&reflected(&long.build())).cluster_list().count(), 64);
    // What is not reflected stays without.
    assert_eq!(reflector.reflected(Learned::External, &AttrFacts::default(), || None), None);
    let external = Rules { external: true, ..reflector };
    assert_eq!(external.reflected(Learned::Internal, &AttrFacts::default(), || Some(RouterId(5))), None);
}

/// RFC 9494 section 4.3; 4.6, which would let internal peers hear them all the same, is not used.
#[test]
fn long_lived_stale_routes_are_for_peers_that_know_what_that_is() {
    let octets = Builder::new(Code::Igp).add_communities([Community::LLGR_STALE]).build();
    let facts = Canonical(&octets).facts();
    for external in [EXTERNAL, !EXTERNAL] {
        assert!(rules(external).admit(OUTSIDE, &facts).is_err());
        assert!(Rules { long_lived: true, ..rules(external) }.admit(OUTSIDE, &facts).is_ok());
    }
}

/// RFC 8326 section 4.2.
#[test]
fn who_is_about_to_be_left_is_told_so_with_every_route() {
    let mark = |rules: &Rules, edits: Option<Edits>| {
        let mut edits = edits;
        rules.mark(&mut edits);
        edits
    };
    assert_eq!(mark(&rules(EXTERNAL), None), None);
    let leaving = Rules { graceful_shutdown: true, ..rules(EXTERNAL) };
    let marked = mark(&leaving, Some(Edits { med: Some(MedEdit::Set(1)), ..Edits::default() })).unwrap();
    assert_eq!((marked.med, marked.local_pref), (Some(MedEdit::Set(1)), Some(0)));
    assert_eq!(marked.communities.added[..], [Community::GRACEFUL_SHUTDOWN]);
    assert_eq!(mark(&leaving, Some(marked.clone())), Some(marked));
}

#[test]
fn an_ipv6_next_hop_of_an_ipv4_prefix_only_where_it_was_agreed() {
    let theirs = Some(NextHop::V6 { global: Ipv6Addr::from(7), link_local: None });
    let keep = Rules { next_hop: NextHopMode::Keep, ..rules(EXTERNAL) };
    assert_eq!(keep.next_hop(Learned::External, None, theirs), None);
    let extended = Rules { extended_next_hop: true, ..keep };
    assert_eq!(extended.next_hop(Learned::External, None, theirs), theirs);
    assert_eq!(
        extended.next_hop(Learned::External, Some(NextHopEdit::Own), theirs),
        extended.own,
        "an IPv4 one is as good"
    );
    // A route of our own is told with our own address where its next hop can't be.
    let named = |rules: &Rules| rules.next_hop(Learned::Local, None, theirs);
    assert_eq!(named(&extended), theirs);
    assert_eq!(named(&rules(EXTERNAL)), rules(EXTERNAL).own);
    assert_eq!(named(&Rules { own: None, ..rules(EXTERNAL) }), None);
    let mut out = Vec::new();
    let learned = Learned::External;
    let route =
        Outgoing { learned, policy_med: false, next_hop: theirs, reflected: None, prepends: &[], added: &[] };
    extended.write(&full(), route, &mut out);
    assert!(!codes(&out).contains(&code::NEXT_HOP), "it stands in MP_REACH_NLRI");
}
