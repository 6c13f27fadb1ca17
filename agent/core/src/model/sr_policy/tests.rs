use super::*;
use bgp_core::tunnel_encap::Srv6BindingSid;

fn addr(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn behavior(code: u16) -> Option<EndpointBehavior> {
    Some(EndpointBehavior { code, ..EndpointBehavior::default() })
}

fn segment(sid: &str, behavior: Option<EndpointBehavior>) -> Segment {
    Segment::Srv6 { flags: SegmentFlags::S, sid: addr(sid), behavior }
}

fn list(weight: u32, segments: Vec<Segment>) -> SegmentList {
    SegmentList { weight, segments }
}

/// What Calico's nodes announce.
fn calico() -> CandidatePath {
    CandidatePath {
        preference: 11,
        priority: Some(10),
        binding_sid: Some(BindingSid {
            specified_only: true,
            drop_upon_invalid: false,
            sid: Some(Sid::Srv6(addr("fd00:b::4"))),
        }),
        segment_lists: vec![list(12, vec![segment("fd00:2::4", behavior(19))])],
        ..CandidatePath::default()
    }
}

fn read(path: CandidatePath) -> Result<SrCandidate, SrFlaw> {
    SrCandidate::new(&SrPolicyPath { path, originator: Originator::default() })
}

#[test]
fn what_calicos_nodes_announce_is_read() {
    let candidate = read(calico()).unwrap();
    assert_eq!(candidate.preference, 11);
    assert_eq!(candidate.bsid, addr("fd00:b::4"));
    assert_eq!(candidate.behavior, SrBehavior::Dt4);
    let lists = [SidList { weight: 12, sids: [addr("fd00:2::4")].into() }];
    assert_eq!(candidate.lists[..], lists);
    assert_eq!(lists[0].to_string(), "fd00:2::4, weight 12");
}

#[test]
fn lists_are_kept_apart_and_in_order() {
    let lists = vec![
        list(3, vec![segment("fd00:3::1", None), segment("fd00:2::6", behavior(18))]),
        list(1, vec![segment("fd00:2::6", behavior(18))]),
    ];
    let candidate = read(CandidatePath { segment_lists: lists, ..calico() }).unwrap();
    assert_eq!(candidate.behavior, SrBehavior::Dt6);
    assert_eq!(
        candidate.lists[..],
        [
            SidList { weight: 1, sids: [addr("fd00:2::6")].into() },
            SidList { weight: 3, sids: [addr("fd00:3::1"), addr("fd00:2::6")].into() },
        ]
    );
}

#[test]
fn the_binding_sid_may_stand_in_either_sub_tlv() {
    let other = |sid| Srv6BindingSid {
        specified_only: false,
        drop_upon_invalid: false,
        sid: addr(sid),
        behavior: None,
    };
    let label = Some(BindingSid { sid: Some(Sid::Label(16)), ..BindingSid::default() });
    for (binding_sid, srv6_binding_sids, expected) in [
        (calico().binding_sid, vec![other("fd00:b::9")], Ok(addr("fd00:b::4"))),
        (None, vec![other("fd00:b::9")], Ok(addr("fd00:b::9"))),
        (label, vec![other("fd00:b::9")], Ok(addr("fd00:b::9"))),
        (label, vec![], Err(SrFlaw::LabelBindingSid)),
        (None, vec![], Err(SrFlaw::NoBindingSid)),
        (None, vec![other("::")], Err(SrFlaw::NoBindingSid)),
        (
            Some(BindingSid { sid: Some(Sid::Srv6(addr("::"))), ..BindingSid::default() }),
            vec![],
            Err(SrFlaw::NoBindingSid),
        ),
        (Some(BindingSid::default()), vec![], Err(SrFlaw::NoBindingSid)),
    ] {
        let path = CandidatePath { binding_sid, srv6_binding_sids, ..calico() };
        assert_eq!(read(path).map(|candidate| candidate.bsid), expected);
    }
}

#[test]
fn what_vpp_could_not_take_is_refused_whole() {
    let dt4 = || segment("fd00:2::4", behavior(19));
    let good = || list(1, vec![dt4()]);
    let mpls = Segment::Mpls { flags: SegmentFlags::default(), label: 16001, traffic_class: 0, ttl: 255 };
    for (lists, flaw) in [
        (vec![], SrFlaw::NoList),
        (vec![list(0, vec![dt4()])], SrFlaw::NoList),
        (vec![good(), list(1, vec![])], SrFlaw::EmptyList),
        (vec![list(1, vec![dt4(); 17])], SrFlaw::TooManySids(17)),
        (vec![good(); 65], SrFlaw::TooManyLists(65)),
        (vec![list(1, vec![mpls, dt4()])], SrFlaw::NotSrv6("label 16001".into())),
        (vec![list(1, vec![segment("::", behavior(19))])], SrFlaw::ZeroSid),
        (vec![list(1, vec![segment("fd00:2::4", None)])], SrFlaw::NoBehavior),
        (vec![list(1, vec![segment("fd00:2::4", behavior(1))])], SrFlaw::Behavior(1)),
        (vec![good(), list(1, vec![segment("fd00:2::6", behavior(18))])], SrFlaw::MixedBehaviors),
    ] {
        assert_eq!(read(CandidatePath { segment_lists: lists, ..calico() }), Err(flaw.clone()), "{flaw}");
    }
    // The most there may be.
    let path = CandidatePath { segment_lists: vec![list(1, vec![dt4(); 16]); 64], ..calico() };
    assert_eq!(read(path).unwrap().lists.len(), 64);
}

#[test]
fn a_list_of_weight_0_is_left_out() {
    let lists = vec![
        list(0, vec![segment("fd00:3::4", behavior(19))]),
        list(2, vec![segment("fd00:2::4", behavior(19))]),
    ];
    let candidate = read(CandidatePath { segment_lists: lists, ..calico() }).unwrap();
    assert_eq!(candidate.lists.len(), 1);
}

#[test]
fn what_we_announce_is_what_calicos_nodes_do() {
    let own = OwnSid { sid: addr("fd00:2::4"), bsid: addr("fd00:b::4") };
    assert_eq!(own.candidate_path(SrBehavior::Dt4), calico());
    let octets = own.candidate_path(SrBehavior::Dt6).encode().unwrap();
    let expected = [
        // Binding SID, with the S-Flag.
        &[0, 15, 0, 72, 13, 18, 0x80, 0][..],
        &own.bsid.octets(),
        // One list: weight 12, one segment of type B, End.DT6, without structure.
        &[128, 0, 37, 0, 9, 6, 0, 0, 0, 0, 0, 12, 13, 26, 0x20, 0],
        &own.sid.octets(),
        &[0, 18, 0, 0, 0, 0, 0, 0],
        // Preference 11, priority 10.
        &[12, 6, 0, 0, 0, 0, 0, 11, 15, 2, 10, 0],
    ];
    assert_eq!(octets, expected.concat());
    assert_eq!((SrBehavior::Dt4.color(), SrBehavior::Dt6.color()), (4, 6));
}
