use super::*;
use crate::capability::{ExtendedNextHop, GracefulFamily};

fn open(asn: u32, hold_time: u16, capabilities: &[Capability]) -> Open {
    Open::new(Asn(asn), hold_time, RouterId(asn), capabilities.to_vec())
}

#[test]
fn families_are_what_both_name() {
    let (v4, v6) = (Capability::family(Family::Ipv4Unicast), Capability::family(Family::Ipv6Unicast));
    let evpn = Capability::Multiprotocol(25, 70);
    let agree =
        |a: &[Capability], b: &[Capability]| Negotiated::agree(&open(1, 90, a), &open(2, 90, b)).families;
    assert_eq!(
        agree(&[v4.clone(), v6.clone()], &[v6.clone(), evpn.clone()]),
        FamilySet::only(Family::Ipv6Unicast)
    );
    assert_eq!(agree(&[v4.clone(), v6.clone()], &[]), FamilySet::only(Family::Ipv4Unicast));
    assert_eq!(agree(std::slice::from_ref(&v6), &[]), FamilySet::EMPTY);
    assert_eq!(agree(&[v4.clone(), v6.clone()], &[evpn]), FamilySet::EMPTY);
    assert_eq!(agree(&[v4.clone(), v6.clone()], &[v4, v6]), FamilySet::UNICAST);
}

#[test]
fn path_identifiers_need_a_sender_and_a_receiver() {
    let add_path = |receive, send| Capability::AddPath(vec![AddPath { afi: 1, safi: 1, receive, send }]);
    let v4 = FamilySet::only(Family::Ipv4Unicast);
    let agreed =
        Negotiated::agree(&open(1, 90, &[add_path(true, false)]), &open(2, 90, &[add_path(true, true)]));
    assert_eq!((agreed.add_path_receive, agreed.add_path_send), (v4, FamilySet::EMPTY));
    let agreed = Negotiated::agree(&open(1, 90, &[]), &open(2, 90, &[add_path(true, true)]));
    assert_eq!((agreed.add_path_receive, agreed.add_path_send), (FamilySet::EMPTY, FamilySet::EMPTY));
}

#[test]
fn what_rfc_7911_section_4_does_not_allow_has_no_effect() {
    let (v4, v6) = (FamilySet::only(Family::Ipv4Unicast), FamilySet::only(Family::Ipv6Unicast));
    let both = || [Family::Ipv4Unicast, Family::Ipv6Unicast].into_iter().map(Capability::family);
    let parse = |value: &[u8]| Capability::parse(69, value);
    let agree = |theirs: &[Capability]| {
        let all = parse(&[0, 1, 1, 3, 0, 2, 1, 3]);
        let ours: Vec<_> = both().chain([all]).collect();
        let theirs: Vec<_> = both().chain(theirs.iter().cloned()).collect();
        let agreed = Negotiated::agree(&open(1, 90, &ours), &open(2, 90, &theirs));
        (agreed.add_path_receive, agreed.add_path_send)
    };
    assert_eq!(agree(&[parse(&[0, 1, 1, 2, 0, 2, 1, 1])]), (v4, v6), "each family by itself");
    // "If any other value is received, then the capability SHOULD be treated as not understood and ignored".
    for odd in [0, 4, 255] {
        assert_eq!(
            agree(&[parse(&[0, 1, 1, 3, 0, 2, 1, odd])]),
            (FamilySet::EMPTY, FamilySet::EMPTY),
            "{odd}"
        );
    }
    for cut in 1..8 {
        let value = &[0, 1, 1, 3, 0, 2, 1, 3][..cut];
        let expected = if cut == 4 { (v4, v4) } else { (FamilySet::EMPTY, FamilySet::EMPTY) };
        assert_eq!(agree(&[parse(value)]), expected, "{cut}");
    }
    // Nobody agreed on these families, or nobody speaks them.
    assert_eq!(agree(&[parse(&[0, 25, 70, 3, 0, 1, 2, 3])]), (FamilySet::EMPTY, FamilySet::EMPTY));
    // "in a single instance": of several the last one that can be read counts. A family named twice is what both say.
    assert_eq!(agree(&[parse(&[0, 1, 1, 3]), parse(&[0, 2, 1, 3])]), (v6, v6));
    assert_eq!(agree(&[parse(&[0, 1, 1, 3]), parse(&[0, 2, 1, 9])]), (v4, v4));
    assert_eq!(agree(&[parse(&[0, 1, 1, 1, 0, 1, 1, 2])]), (v4, v4));
}

#[test]
fn times_and_kinds() {
    let four = |asn| Capability::FourOctetAs(Asn(asn));
    let agreed = Negotiated::agree(&open(7, 90, &[four(7)]), &open(7, 30, &[four(7)]));
    assert_eq!((agreed.hold_time, agreed.keepalive, agreed.ebgp, agreed.four_octet), (30, 10, false, true));
    let agreed = Negotiated::agree(&open(7, 90, &[four(70_000)]), &open(7, 0, &[]));
    assert_eq!((agreed.hold_time, agreed.keepalive, agreed.ebgp, agreed.four_octet), (0, 0, true, false));
    assert_eq!(
        (agreed.local_asn, agreed.remote_asn, agreed.remote_router_id),
        (Asn(70_000), Asn(7), RouterId(7))
    );
    assert_eq!(agreed.max_message, 4096);
    let long = [Capability::ExtendedMessage];
    let lengths = |ours: &[Capability], theirs: &[Capability]| {
        let agreed = Negotiated::agree(&open(1, 3, ours), &open(2, 3, theirs));
        (agreed.max_message, agreed.max_received)
    };
    assert_eq!(lengths(&long, &long), (65535, 65535));
    assert_eq!(lengths(&long, &[]), (4096, 65535), "what we offer, the peer may use at once");
    assert_eq!(lengths(&[], &long), (4096, 4096));
}

#[test]
fn refreshes_need_both_ends() {
    use Capability::{EnhancedRouteRefresh, RouteRefresh};
    let both = [RouteRefresh, EnhancedRouteRefresh];
    let agreed = Negotiated::agree(&open(1, 3, &both), &open(2, 3, &both));
    assert!(agreed.route_refresh && agreed.enhanced_refresh);
    let agreed = Negotiated::agree(&open(1, 3, &both), &open(2, 3, &both[..1]));
    assert!(agreed.route_refresh && !agreed.enhanced_refresh);
}

fn graceful(notification: bool, families: &[(u16, u8, bool)]) -> Capability {
    Capability::GracefulRestart(GracefulRestart {
        restarting: true,
        notification,
        time: 77,
        families: families
            .iter()
            .map(|&(afi, safi, forwarding)| GracefulFamily { afi, safi, forwarding })
            .collect(),
    })
}

#[test]
fn restart_counts_agreed_families_that_an_end_names() {
    let (v4, v6) = (Family::Ipv4Unicast, Family::Ipv6Unicast);
    let families = [Capability::family(v4), Capability::family(v6)];
    let with = |more: &[Capability]| open(1, 3, &[&families[..], more].concat());
    let ours = with(&[graceful(true, &[(2, 1, false)])]);
    let agreed =
        Negotiated::agree(&ours, &with(&[graceful(true, &[(1, 1, true), (2, 1, false), (25, 70, true)])]));
    assert_eq!(
        agreed.restart,
        Some(AgreedRestart {
            restarting: true,
            notification: true,
            time: 77,
            families: FamilySet::UNICAST,
            forwarding: FamilySet::only(v4),
            own_families: FamilySet::only(v6),
        })
    );
    // The last one of several counts; without families the peer only helps.
    let helper = Negotiated::agree(&ours, &with(&[graceful(true, &[(1, 1, true)]), graceful(false, &[])]));
    let restart = helper.restart.unwrap();
    assert_eq!((restart.families, restart.own_families), (FamilySet::EMPTY, FamilySet::only(v6)));
    assert!(!restart.notification);
    // A family that was not agreed counts for nothing.
    let only_v4 = open(2, 3, &[families[0].clone(), graceful(true, &[(2, 1, true)])]);
    let restart = Negotiated::agree(&ours, &only_v4).restart.unwrap();
    assert_eq!((restart.families, restart.own_families), (FamilySet::EMPTY, FamilySet::EMPTY));
    assert_eq!(Negotiated::agree(&ours, &with(&[])).restart, None);
    assert_eq!(Negotiated::agree(&with(&[]), &ours).restart, None);
}

#[test]
fn long_lived_restart_needs_graceful_restart() {
    let long = |entries: &[(u16, bool, u32)]| {
        Capability::LongLivedGracefulRestart(
            entries
                .iter()
                .map(|&(afi, forwarding, stale_time)| LongLivedFamily {
                    afi,
                    safi: 1,
                    forwarding,
                    stale_time,
                })
                .collect(),
        )
    };
    let (v4, v6) = (Family::Ipv4Unicast, Family::Ipv6Unicast);
    let ours = open(1, 3, &[graceful(false, &[]), long(&[(1, false, 5)])]);
    let theirs = open(2, 3, &[graceful(false, &[]), long(&[(2, true, 9), (1, true, 3600)])]);
    let agreed = Negotiated::agree(&ours, &theirs).long_lived.unwrap();
    assert_eq!((agreed.families, agreed.forwarding), (FamilySet::only(v4), FamilySet::only(v4)));
    assert_eq!(agreed.own_families, FamilySet::only(v4));
    assert_eq!((agreed.stale_time(v4), agreed.stale_time(v6)), (3600, 0));
    for capabilities in [&[long(&[(1, true, 3600)])][..], &[graceful(false, &[])]] {
        assert_eq!(Negotiated::agree(&ours, &open(2, 3, capabilities)).long_lived, None);
        assert_eq!(Negotiated::agree(&open(2, 3, capabilities), &ours).long_lived, None);
    }
}

#[test]
fn extended_next_hops_are_ipv6_ones_of_ipv4_prefixes() {
    let capability = |triples: &[(u16, u16, u16)]| {
        let one = |&(afi, safi, next_hop_afi)| ExtendedNextHop { afi, safi, next_hop_afi };
        Capability::ExtendedNextHop(triples.iter().map(one).collect())
    };
    let families = Family::ALL.map(Capability::family);
    let agree = |theirs: Capability| {
        let ours = open(1, 3, &[&families[..], &[capability(&[(1, 1, 2), (2, 1, 1)])]].concat());
        Negotiated::agree(&ours, &open(2, 3, &[&families[..], &[theirs]].concat())).extended_next_hop
    };
    let v4 = FamilySet::only(Family::Ipv4Unicast);
    assert_eq!(agree(capability(&[(1, 2, 2), (1, 1, 2)])), v4);
    for other in [(2, 1, 1), (1, 1, 1), (1, 257, 2), (2, 1, 2)] {
        assert_eq!(agree(capability(&[other])), FamilySet::EMPTY, "{other:?}");
    }
    // It does not make a family an agreed one.
    let v6_only = open(2, 3, &[families[1].clone(), capability(&[(1, 1, 2)])]);
    assert_eq!(Negotiated::agree(&v6_only, &v6_only).extended_next_hop, FamilySet::EMPTY);
}

#[test]
fn our_role_is_kept() {
    let agreed = Negotiated::agree(&open(1, 3, &[Capability::Role(Role::Customer)]), &open(2, 3, &[]));
    assert_eq!(agreed.role, Some(Role::Customer));
    let agreed = Negotiated::agree(&open(1, 3, &[]), &open(2, 3, &[Capability::Role(Role::Customer)]));
    assert_eq!(agreed.role, None);
}
