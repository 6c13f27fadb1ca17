//! parse ∘ encode is the identity on generated messages of every kind.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use bgp_wire::{
    Asn, Capability, EncodeOptions, FamilySet, Ipv4Prefix, Ipv6Prefix, Message, Negotiated, NextHop,
    Notification, Open, PathId, RouteRefresh, RouterId, UpdateWriter,
    attr::{self, Aggregator, Builder, Canonical, Community, ExtCommunity, LargeCommunity, Origin},
    capability::AddPath,
    parse_message, split_message,
};
use bytes::BytesMut;
use proptest::{collection::vec, option, prelude::*};
use std::net::{Ipv4Addr, Ipv6Addr};

fn capability() -> impl Strategy<Value = Capability> {
    let add_path = (any::<u16>(), any::<u8>(), 1u8..=3).prop_map(|(afi, safi, mode)| AddPath {
        afi,
        safi,
        receive: mode & 1 != 0,
        send: mode & 2 != 0,
    });
    prop_oneof![
        (any::<u16>(), any::<u8>()).prop_map(|(afi, safi)| Capability::Multiprotocol(afi, safi)),
        Just(Capability::RouteRefresh),
        Just(Capability::ExtendedMessage),
        Just(Capability::EnhancedRouteRefresh),
        (1u32..).prop_map(|asn| Capability::FourOctetAs(Asn(asn))),
        vec(add_path, 0..6).prop_map(Capability::AddPath),
        (76u8.., vec(any::<u8>(), 0..40))
            .prop_map(|(code, value)| Capability::Unknown { code, value: value.into() }),
    ]
}

fn open() -> impl Strategy<Value = Open> {
    let hold_time = prop_oneof![Just(0u16), 3u16..];
    (1u32.., hold_time, 1u32.., vec(capability(), 0..20)).prop_map(|(asn, hold_time, id, capabilities)| {
        Open::new(Asn(asn), hold_time, RouterId(id), capabilities)
    })
}

/// An attribute set as decoding gives it, with Partial and unknown attributes: codes above 40, the highest one that has a row.
fn set() -> impl Strategy<Value = Vec<u8>> {
    let communities = (vec(any::<u32>(), 0..80), vec(any::<u64>(), 0..4), vec(any::<[u32; 3]>(), 0..4));
    (
        (0u8..3, vec((1u32.., 0u8..4), 0..6), option::of(any::<u32>()), option::of(any::<u32>())),
        communities,
        (
            any::<bool>(),
            option::of((1u32.., any::<u32>())),
            option::of(any::<u32>()),
            vec(any::<u32>(), 0..4),
        ),
        option::of((41u8.., vec(any::<u8>(), 0..300))),
    )
        .prop_map(
            |(
                (origin, path, med, local_pref),
                (plain, ext, large),
                (atomic, aggregator, originator, clusters),
                other,
            )| {
                let mut builder = Builder::new(Origin::from_code(origin).unwrap());
                for (asn, times) in path {
                    builder.prepend(Asn(asn), times);
                }
                builder
                    .med(med)
                    .local_pref(local_pref)
                    .atomic_aggregate(atomic)
                    .aggregator(
                        aggregator.map(|(asn, id)| Aggregator { asn: Asn(asn), router_id: RouterId(id) }),
                    )
                    .add_communities(plain.into_iter().map(Community))
                    .add_ext_communities(ext.into_iter().map(ExtCommunity))
                    .add_large_communities(large.into_iter().map(|[a, b, c]| LargeCommunity::new(a, b, c)))
                    .originator(originator.map(RouterId));
                for cluster in clusters {
                    builder.prepend_cluster(RouterId(cluster));
                }
                let mut set = builder.build();
                if let Some((code, value)) = other {
                    let [high, low] = (value.len() as u16).to_be_bytes();
                    if high == 0 {
                        set.extend_from_slice(&[0xe0, code, low]);
                    } else {
                        set.extend_from_slice(&[0xf0, code, high, low]);
                    }
                    set.extend_from_slice(&value);
                }
                set
            },
        )
}

fn prefixes4() -> impl Strategy<Value = Vec<(PathId, Ipv4Prefix)>> {
    let prefix = (any::<u32>(), any::<u32>(), 0u8..=32);
    vec(prefix.prop_map(|(id, addr, len)| (PathId(id), Ipv4Prefix::new(addr, len).unwrap())), 1..1500)
}

fn prefixes6() -> impl Strategy<Value = Vec<(PathId, Ipv6Prefix)>> {
    let prefix = (any::<u32>(), any::<u128>(), 0u8..=128);
    vec(prefix.prop_map(|(id, addr, len)| (PathId(id), Ipv6Prefix::new(addr, len).unwrap())), 1..600)
}

fn next_hop6() -> impl Strategy<Value = NextHop> {
    (any::<u64>(), option::of(any::<u64>())).prop_map(|(low, beside)| NextHop::V6 {
        global: Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(low)),
        link_local: beside.map(|low| Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(low))),
    })
}

/// An internal session, from which every attribute is taken.
fn session(four_octet: bool, path_ids: bool, long: bool) -> Negotiated {
    let add_path = if path_ids { FamilySet::ALL } else { FamilySet::EMPTY };
    Negotiated {
        families: FamilySet::ALL,
        four_octet,
        add_path_receive: add_path,
        add_path_send: add_path,
        max_message: if long { 65535 } else { 4096 },
        ..Negotiated::default()
    }
}

fn without_ids<K: Copy>(prefixes: &[(PathId, K)], path_ids: bool) -> Vec<(PathId, K)> {
    prefixes.iter().map(|(id, key)| (if path_ids { *id } else { PathId::NONE }, *key)).collect()
}

/// The messages of a buffer, parsed.
fn parse(out: &[u8], neg: &Negotiated, mut see: impl FnMut(Message<'_>)) {
    let mut rest = out;
    while let Some(frame) = split_message(rest, usize::from(neg.max_message)).unwrap() {
        rest = &rest[frame.raw.len()..];
        see(parse_message(frame, neg).unwrap());
    }
    assert!(rest.is_empty());
}

fn single(out: &BytesMut, see: impl FnOnce(Message<'_>)) {
    let mut see = Some(see);
    parse(out, &Negotiated::default(), |message| see.take().expect("one message")(message));
    assert!(see.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn opens(open in open()) {
        // A 4-octet number needs its capability; generated ones may contradict it, and the first one counts.
        let mut out = BytesMut::new();
        open.encode(&mut out).unwrap();
        single(&out, |message| assert!(matches!(message, Message::Open(got) if got == open)));
    }

    #[test]
    fn notifications(code: u8, subcode: u8, data in vec(any::<u8>(), 0..4076)) {
        let notification = Notification { code, subcode, data: data.into() };
        let mut out = BytesMut::new();
        notification.encode(&mut out);
        single(&out, |message| assert!(matches!(message, Message::Notification(got) if got == notification)));
    }

    #[test]
    fn refreshes(afi: u16, safi: u8, subtype: u8) {
        let refresh = RouteRefresh { afi, safi, subtype };
        let mut out = BytesMut::new();
        refresh.encode(&mut out);
        single(&out, |message| assert!(matches!(message, Message::RouteRefresh(got) if got == refresh)));
    }

    #[test]
    fn announcements(
        set in set(), four in prefixes4(), six in prefixes6(), hop in 1u32..0xe000_0000, hop6 in next_hop6(),
        four_octet: bool, path_ids: bool, long: bool,
    ) {
        let neg = session(four_octet, path_ids, long);
        let hop = Ipv4Addr::from_bits(hop);
        let (mut classic, mut inside) = (Vec::new(), Vec::new());
        attr::encode(Canonical(&set), Some(hop), four_octet, &mut classic);
        attr::encode(Canonical(&set), None, four_octet, &mut inside);
        let mut out = BytesMut::new();
        let mut writer = UpdateWriter::new(&mut out, EncodeOptions::of(&neg));
        writer.announce_v4(&classic, four.iter().copied()).unwrap();
        writer.announce_mp(&inside, hop6, six.iter().copied()).unwrap();
        let (mut got4, mut got6) = (Vec::new(), Vec::new());
        parse(&out, &neg, |message| {
            let Message::Update(view) = message else { panic!("{message:?}") };
            let decoded = view.decode().unwrap();
            assert_eq!((decoded.treat_as_withdraw, decoded.discarded.len()), (None, 0));
            assert_eq!(decoded.canonical, set);
            match view.mp_reach() {
                Some(reach) => assert_eq!((reach.next_hop, decoded.next_hop), (hop6, None)),
                None => assert_eq!(decoded.next_hop, Some(hop.into())),
            }
            got4.extend(view.announced());
            got6.extend(view.mp_announced::<Ipv6Prefix>());
        });
        prop_assert_eq!(got4, without_ids(&four, path_ids));
        prop_assert_eq!(got6, without_ids(&six, path_ids));
    }

    #[test]
    fn withdrawals(four in prefixes4(), six in prefixes6(), path_ids: bool, long: bool) {
        let neg = session(true, path_ids, long);
        let mut out = BytesMut::new();
        let mut writer = UpdateWriter::new(&mut out, EncodeOptions::of(&neg));
        writer.withdraw_v4(four.iter().copied());
        writer.withdraw_mp(six.iter().copied());
        let (mut got4, mut got6) = (Vec::new(), Vec::new());
        parse(&out, &neg, |message| {
            let Message::Update(view) = message else { panic!("{message:?}") };
            assert!(!view.has_reachable());
            got4.extend(view.withdrawn());
            got6.extend(view.mp_withdrawn::<Ipv6Prefix>());
        });
        prop_assert_eq!(got4, without_ids(&four, path_ids));
        prop_assert_eq!(got6, without_ids(&six, path_ids));
    }
}
