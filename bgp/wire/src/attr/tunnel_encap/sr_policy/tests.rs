use proptest::{collection::vec, option, prelude::*};
use std::net::Ipv6Addr;

use super::super::{super::DecodeCtx, SegmentFlags, TunnelEncap, check};
use super::*;
use crate::error::AttrProblem;

const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 1, 0, 0, 0, 0, 4);

fn sr_policy() -> DecodeCtx {
    DecodeCtx { sr_policy: true, ..DecodeCtx::default() }
}

/// An attribute's value: one tunnel of type 15.
fn tunnel(sub_tlvs: &[&[u8]]) -> Vec<u8> {
    let octets = sub_tlvs.concat();
    [&[0, 15], &(octets.len() as u16).to_be_bytes()[..], &octets].concat()
}

fn read(sub_tlvs: &[&[u8]]) -> CandidatePath {
    let attr = tunnel(sub_tlvs);
    assert_eq!(check(&attr, sr_policy()), Ok(()));
    TunnelEncap::new(&attr).candidate_path().unwrap()
}

fn mpls(label: u32) -> Segment {
    Segment::Mpls { flags: SegmentFlags::default(), label, traffic_class: 0, ttl: 255 }
}

/// What the agents of a Calico/VPP cluster announce for a local SID, through GoBGP 3.
fn calico() -> (Vec<u8>, CandidatePath) {
    let sid = SID.octets();
    let attr = tunnel(&[
        &[&[13, 18, 0x80, 0], &sid[..]].concat(),
        &[&[128, 0, 37, 0, 9, 6, 0, 0, 0, 0, 0, 12, 13, 26, 0x20, 0][..], &sid, &[0, 19, 0, 0, 0, 0, 0, 0]]
            .concat(),
        &[12, 6, 0, 0, 0, 0, 0, 11],
        &[15, 2, 10, 0],
    ]);
    let end_dt4 = Some(EndpointBehavior { code: 19, ..EndpointBehavior::default() });
    let path = CandidatePath {
        preference: 11,
        priority: Some(10),
        binding_sid: Some(BindingSid {
            specified_only: true,
            drop_upon_invalid: false,
            sid: Some(Sid::Srv6(SID)),
        }),
        segment_lists: vec![SegmentList {
            weight: 12,
            segments: vec![Segment::Srv6 { flags: SegmentFlags::S, sid: SID, behavior: end_dt4 }],
        }],
        ..CandidatePath::default()
    };
    (attr, path)
}

#[test]
fn what_a_calico_node_announces_is_read_and_written_octet_for_octet() {
    let (attr, path) = calico();
    assert_eq!(TunnelEncap::new(&attr).candidate_path().as_ref(), Some(&path));
    assert_eq!(path.encode().as_ref(), Ok(&attr));
    assert_eq!(path.segment_lists[0].segments[0].to_string(), "fc00:0:1::4 End.DT4");
}

#[test]
fn every_sub_tlv_is_read() {
    let sid = SID.octets();
    let path = read(&[
        &[13, 6, 0xc0, 0xff, 0x03, 0xe8, 0x0f, 0xff],
        &[&[20, 18, 0x40, 0], &sid[..]].concat(),
        &[&[20, 26, 0xa0, 0], &sid[..], &[0, 14, 9, 9, 32, 16, 16, 0]].concat(),
        &[128, 0, 9, 0xff, 1, 6, 0x90, 0, 0x03, 0xe8, 0x1e, 64],
        &[128, 0, 9, 0, 9, 6, 1, 2, 0, 0, 0, 7],
        &[128, 0, 1, 0],
        &[14, 3, 0xff, 0xff, 3],
        &[129, 0, 5, 0, b'p', b'a', b't', b'h'],
        &[130, 0, 7, 0xff, b'p', b'o', b'l', b'i', b'c', b'y'],
        &[12, 6, 0xff, 0xff, 0, 0, 1, 0],
        &[15, 2, 200, 0xff],
    ]);
    let structure = EndpointBehavior { code: 14, block: 32, node: 16, function: 16, argument: 0 };
    let expected = CandidatePath {
        preference: 256,
        binding_sid: Some(BindingSid {
            specified_only: true,
            drop_upon_invalid: true,
            sid: Some(Sid::Label(16000)),
        }),
        srv6_binding_sids: vec![
            Srv6BindingSid { specified_only: false, drop_upon_invalid: true, sid: SID, behavior: None },
            Srv6BindingSid {
                specified_only: true,
                drop_upon_invalid: false,
                sid: SID,
                behavior: Some(structure),
            },
        ],
        explicit_null: Some(3),
        priority: Some(200),
        name: Some("path".into()),
        policy_name: Some("policy".into()),
        segment_lists: vec![
            SegmentList {
                weight: 1,
                segments: vec![Segment::Mpls {
                    flags: SegmentFlags(0x90),
                    label: 16001,
                    traffic_class: 7,
                    ttl: 64,
                }],
            },
            SegmentList { weight: 7, segments: Vec::new() },
            SegmentList::default(),
        ],
        unknown: Vec::new(),
    };
    assert_eq!(path, expected);
    assert!(path.is_supported());
    assert_eq!(structure.to_string(), "End.B6.Encaps/32/16/16/0");
    assert_eq!(path.segment_lists[0].segments[0].to_string(), "label 16001");
    assert!(SegmentFlags(0x90).has(SegmentFlags::V) && !SegmentFlags(0x90).has(SegmentFlags::S));
}

#[test]
fn what_is_not_said_has_the_defaults_of_the_architecture() {
    let path = read(&[]);
    assert_eq!(path, CandidatePath { preference: 100, ..CandidatePath::default() });
    assert_eq!(
        read(&[&[13, 2, 0x80, 0]]).binding_sid,
        Some(BindingSid { specified_only: true, ..BindingSid::default() })
    );
}

/// RFC 9830 section 2.4: of those that may stand there once the first counts, and the others are no fault.
#[test]
fn of_repeated_sub_tlvs_the_first_counts() {
    let path = read(&[
        &[12, 6, 0, 0, 0, 0, 0, 1],
        &[12, 6, 0, 0, 0, 0, 0, 2],
        &[15, 2, 3, 0, 15, 2, 4, 0],
        &[13, 6, 0, 0, 0, 1, 0x10, 0, 13, 2, 0, 0],
        &[14, 3, 0, 0, 9, 14, 3, 0, 0, 2, 14, 3, 0, 0, 1],
        &[129, 0, 2, 0, b'a', 129, 0, 2, 0, b'b', 130, 0, 2, 0, b'c', 130, 0, 2, 0, b'd'],
        &[128, 0, 17, 0, 9, 6, 0, 0, 0, 0, 0, 5, 9, 6, 0, 0, 0, 0, 0, 6],
    ]);
    assert_eq!((path.preference, path.priority, path.explicit_null), (1, Some(3), Some(2)));
    assert_eq!((path.name.as_deref(), path.policy_name.as_deref()), (Some("a"), Some("c")));
    assert_eq!(path.binding_sid.unwrap().sid, Some(Sid::Label(17)));
    assert_eq!(path.segment_lists[0].weight, 5);
}

/// RFC 9830 sections 2.3 and 4.2.2: what RFC 9012 defines for other tunnels is ignored, what nobody defined makes the path
/// unfit for use. Neither is a fault.
#[test]
fn other_sub_tlvs() {
    let path = read(&[&[6, 6, 0, 0, 0, 0, 0, 0], &[4, 8, 3, 11, 0, 0, 0, 0, 0, 1], &[8, 2, 0, 1]]);
    assert!(path.is_supported() && path.unknown.is_empty());
    let path = read(&[&[99, 1, 7], &[200, 0, 2, 8, 9]]);
    assert!(!path.is_supported());
    assert_eq!(path.unknown[1], UnknownSubTlv { kind: 200, value: [8, 9].into() });
    // Segment type C, and what nobody knows.
    let path = read(&[&[128, 0, 12, 0, 3, 6, 0, 0, 192, 0, 2, 1, 77, 1, 5]]);
    assert!(!path.is_supported());
    let shown: Vec<_> = path.segment_lists[0].segments.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["type-3", "type-77"]);
}

#[test]
fn impossible_lengths_are_malformed() {
    let sid = SID.octets();
    let long =
        |kind: u8, extra: usize| [&[kind, (18 + extra) as u8, 0, 0], &sid[..], &vec![0; extra]].concat();
    for sub_tlv in [
        vec![12, 5, 0, 0, 0, 0, 0],
        vec![12, 7, 0, 0, 0, 0, 0, 0, 0],
        vec![13, 0],
        vec![13, 1, 0],
        vec![13, 5, 0, 0, 0, 0, 0],
        vec![13, 7, 0, 0, 0, 0, 0, 0, 0],
        long(13, 8),
        vec![14, 2, 0, 0],
        vec![14, 4, 0, 0, 1, 0],
        vec![15, 1, 0],
        vec![15, 3, 0, 0, 0],
        vec![20, 2, 0, 0],
        vec![20, 6, 0, 0, 0, 1, 0, 0],
        long(20, 1),
        long(20, 9),
        vec![128, 0, 0],
        // A list whose parts do not end where it ends, or are too short or too long.
        vec![128, 0, 2, 0, 9],
        vec![128, 0, 3, 0, 9, 6],
        vec![128, 0, 8, 0, 9, 5, 0, 0, 0, 0, 0],
        vec![128, 0, 8, 0, 1, 5, 0, 0, 0, 0, 0],
        vec![128, 0, 10, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0],
        vec![128, 0, 5, 0, 13, 2, 0, 0],
        [&[128, 0, 22, 0][..], &long(13, 1)].concat(),
        [&[128, 0, 30, 0][..], &long(13, 9)].concat(),
        vec![129, 0, 0],
        vec![130, 0, 0],
    ] {
        let attr = tunnel(&[&sub_tlv]);
        assert_eq!(check(&attr, sr_policy()), Err(AttrProblem::Length), "{sub_tlv:?}");
        assert_eq!(TunnelEncap::new(&attr).candidate_path(), None);
        // On a route that is no SR policy nobody looks at them.
        if !matches!(sub_tlv[..], [128, 0, 2 | 3, ..]) {
            assert_eq!(check(&attr, DecodeCtx::default()), Ok(()), "{sub_tlv:?}");
        }
    }
}

/// RFC 9830 section 2.2.
#[test]
fn one_tunnel_of_type_15_and_no_other() {
    let good = tunnel(&[&[12, 6, 0, 0, 0, 0, 0, 1]]);
    let other = [0, 8, 0, 0];
    for attr in [&[][..], &other, &[&good[..], &other].concat(), &[&good[..], &good].concat()] {
        assert_eq!(check(attr, sr_policy()), Err(AttrProblem::Value), "{attr:?}");
        assert_eq!(TunnelEncap::new(attr).candidate_path(), None);
        assert_eq!(check(attr, DecodeCtx::default()), Ok(()));
    }
}

#[test]
fn what_may_not_be_said_is_not_written() {
    let path = CandidatePath::default;
    let label = |label| Some(BindingSid { sid: Some(Sid::Label(label)), ..BindingSid::default() });
    let behavior = Some(EndpointBehavior { code: 1, block: 64, node: 64, function: 1, argument: 0 });
    let list = |segment| vec![SegmentList { weight: 1, segments: vec![segment] }];
    let srv6 = Segment::Srv6 { flags: SegmentFlags::B, sid: SID, behavior };
    let class = Segment::Mpls { flags: SegmentFlags::default(), label: 16, traffic_class: 8, ttl: 0 };
    let unknown = |count| vec![UnknownSubTlv { kind: 99, value: vec![0; count].into() }];
    for (path, error) in [
        (CandidatePath { binding_sid: label(15), ..path() }, CandidatePathError::Label(15)),
        (CandidatePath { binding_sid: label(0x10_0000), ..path() }, CandidatePathError::Label(0x10_0000)),
        (CandidatePath { segment_lists: list(mpls(1 << 20)), ..path() }, CandidatePathError::Label(1 << 20)),
        (CandidatePath { segment_lists: list(class), ..path() }, CandidatePathError::TrafficClass(8)),
        (CandidatePath { segment_lists: list(srv6), ..path() }, CandidatePathError::SidStructure(129)),
        (CandidatePath { explicit_null: Some(5), ..path() }, CandidatePathError::ExplicitNull(5)),
        (CandidatePath { name: Some(String::new()), ..path() }, CandidatePathError::Name),
        (CandidatePath { policy_name: Some("é".into()), ..path() }, CandidatePathError::Name),
        (CandidatePath { name: Some("a".repeat(256)), ..path() }, CandidatePathError::Name),
        (CandidatePath { unknown: unknown(256), ..path() }, CandidatePathError::TooLong),
        (CandidatePath { unknown: vec![unknown(255).remove(0); 300], ..path() }, CandidatePathError::TooLong),
    ] {
        assert_eq!(path.encode(), Err(error), "{path:?}");
    }
}

/// GoBGP 3 dies of a name that ends a message, of a list without weight and of a binding SID sub-TLV without SID.
#[test]
fn what_ends_gobgp_is_not_written() {
    let path = CandidatePath {
        binding_sid: Some(BindingSid { specified_only: true, ..BindingSid::default() }),
        name: Some("a".into()),
        segment_lists: vec![SegmentList::default()],
        ..CandidatePath::default()
    };
    let attr = path.encode().unwrap();
    let sub_tlvs: Vec<_> = TunnelEncap::new(&attr).tunnels().next().unwrap().sub_tlvs().collect();
    assert_eq!(sub_tlvs.iter().map(|sub_tlv| sub_tlv.kind).collect::<Vec<_>>(), [128, 129, 12]);
    assert_eq!(sub_tlvs[0].value, [0, 9, 6, 0, 0, 0, 0, 0, 1]);
}

fn behavior() -> impl Strategy<Value = Option<EndpointBehavior>> {
    option::of((any::<u16>(), 0u8..=32, 0u8..=32, 0u8..=32, 0u8..=32)).prop_map(|behavior| {
        behavior.map(|(code, block, node, function, argument)| EndpointBehavior {
            code,
            block,
            node,
            function,
            argument,
        })
    })
}

fn sid() -> impl Strategy<Value = Ipv6Addr> {
    any::<u128>().prop_map(Ipv6Addr::from_bits)
}

fn unknown(known: &'static [u8]) -> impl Strategy<Value = UnknownSubTlv> {
    let kind = any::<u8>().prop_filter("is known", |kind| !known.contains(kind) && *kind > 11);
    (kind, vec(any::<u8>(), 0..40)).prop_map(|(kind, value)| UnknownSubTlv { kind, value: value.into() })
}

fn segment() -> impl Strategy<Value = Segment> {
    let flags = || (0u8..16).prop_map(|flags| SegmentFlags(flags << 4));
    prop_oneof![
        (flags(), 0u32..1 << 20, 0u8..8, any::<u8>()).prop_map(|(flags, label, traffic_class, ttl)| {
            Segment::Mpls { flags, label, traffic_class, ttl }
        }),
        (flags(), sid(), behavior()).prop_map(|(flags, sid, behavior)| Segment::Srv6 {
            flags,
            sid,
            behavior
        }),
        unknown(&[1, 9, 13]).prop_map(Segment::Unknown),
    ]
}

prop_compose! {
    pub(crate) fn candidate_path()(
        preference: u32,
        binding_sid in option::of((
            any::<bool>(),
            any::<bool>(),
            prop_oneof![(16u32..1 << 20).prop_map(Sid::Label), sid().prop_map(Sid::Srv6)],
        )),
        srv6 in vec((any::<bool>(), any::<bool>(), sid(), behavior()), 0..3),
        explicit_null in option::of(1u8..=4),
        priority: Option<u8>,
        name in option::of("[ -~]{1,255}"),
        policy_name in option::of("[ -~]{1,255}"),
        segment_lists in vec((any::<u32>(), vec(segment(), 0..8)), 0..4),
        unknown in vec(unknown(&[12, 13, 14, 15, 20, 128, 129, 130]), 0..3),
    ) -> CandidatePath {
        CandidatePath {
            preference,
            binding_sid: binding_sid.map(|(specified_only, drop_upon_invalid, sid)| BindingSid {
                specified_only,
                drop_upon_invalid,
                sid: Some(sid),
            }),
            srv6_binding_sids: srv6
                .into_iter()
                .map(|(specified_only, drop_upon_invalid, sid, behavior)| Srv6BindingSid {
                    specified_only,
                    drop_upon_invalid,
                    sid,
                    behavior,
                })
                .collect(),
            explicit_null,
            priority,
            name,
            policy_name,
            segment_lists: segment_lists
                .into_iter()
                .map(|(weight, segments)| SegmentList { weight, segments })
                .collect(),
            unknown,
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(path in candidate_path()) {
        let attr = path.encode().unwrap();
        prop_assert_eq!(check(&attr, sr_policy()), Ok(()));
        prop_assert_eq!(TunnelEncap::new(&attr).candidate_path(), Some(path));
    }

    #[test]
    fn any_octets_are_read_or_refused(octets: Vec<u8>) {
        let attr = tunnel(&[&octets]);
        let read = TunnelEncap::new(&attr).candidate_path();
        if check(&attr, sr_policy()).is_ok() {
            prop_assert!(read.is_some());
        }
    }
}
