use super::*;
use crate::{
    Ipv6Prefix, SrPolicy6, UpdateView,
    attr::{self, Builder, Canonical, Origin},
    family::FamilySet,
    frame::split_message,
};
use std::net::{Ipv4Addr, Ipv6Addr};

fn session(add_path: FamilySet) -> Negotiated {
    Negotiated {
        families: FamilySet::ALL,
        four_octet: true,
        ebgp: true,
        add_path_receive: add_path,
        add_path_send: add_path,
        ..Negotiated::default()
    }
}

fn v4(count: u32) -> Vec<(PathId, Ipv4Prefix)> {
    (0..count).map(|n| (PathId(n), Ipv4Prefix::new(n << 8, 24 + (n % 9) as u8).unwrap())).collect()
}

fn v6(count: u32) -> Vec<(PathId, Ipv6Prefix)> {
    (0..count)
        .map(|n| (PathId(n), Ipv6Prefix::new(u128::from(n) << 64, 48 + (n % 81) as u8).unwrap()))
        .collect()
}

fn set() -> Vec<u8> {
    Builder::new(Origin::Igp).prepend(crate::Asn(65010), 3).med(Some(1)).build()
}

fn encoded(next_hop: Option<Ipv4Addr>) -> Vec<u8> {
    let mut out = Vec::new();
    attr::encode(Canonical(&set()), next_hop, true, &mut out);
    out
}

/// Reads message after message, checks what each must satisfy, and gives each view to `see`.
fn read(out: &[u8], neg: &Negotiated, mut see: impl FnMut(UpdateView<'_>)) -> usize {
    let (mut at, mut messages) = (0, 0);
    while let Some(frame) = split_message(&out[at..], usize::from(neg.max_message)).unwrap() {
        at += frame.raw.len();
        messages += 1;
        let view = UpdateView::parse(frame.body, neg).unwrap();
        assert_eq!(view.fault(), None);
        if view.has_reachable() {
            let decoded = view.decode().unwrap();
            assert_eq!((decoded.treat_as_withdraw, decoded.discarded.len()), (None, 0));
            assert_eq!(decoded.canonical, set());
        }
        see(view);
    }
    assert_eq!(at, out.len());
    messages
}

#[test]
fn messages_are_full_and_hold_every_prefix_in_order() {
    let next_hop = Ipv4Addr::new(192, 0, 2, 1);
    let hop6 = NextHop::V6 { global: Ipv6Addr::LOCALHOST, link_local: Some("fe80::1".parse().unwrap()) };
    for add_path in [FamilySet::EMPTY, FamilySet::ALL] {
        let neg = session(add_path);
        for count in [1, 2, 500, 3000] {
            let mut out = BytesMut::new();
            let mut writer = UpdateWriter::new(&mut out, EncodeOptions::of(&neg));
            let strip = |id: PathId| if add_path.is_empty() { PathId::NONE } else { id };
            let (four, six) = (v4(count), v6(count));
            let packed = [
                writer.announce_v4(&encoded(Some(next_hop)), four.clone()).unwrap(),
                writer.announce_mp(&encoded(None), hop6, six.clone()).unwrap(),
                writer.announce_mp(&encoded(None), next_hop.into(), four.clone()).unwrap(),
                writer.withdraw_v4(four.clone()),
                writer.withdraw_mp(six.clone()),
                writer.withdraw_mp(four.clone()),
            ];
            assert!(packed.iter().all(|packed| packed.prefixes == count as usize));
            let (mut a, mut b, mut c, mut d, mut e, mut f) = (vec![], vec![], vec![], vec![], vec![], vec![]);
            let mut lengths = Vec::new();
            let messages = read(&out, &neg, |view| {
                a.extend(view.announced());
                b.extend(view.mp_announced::<Ipv6Prefix>());
                c.extend(view.mp_announced::<Ipv4Prefix>());
                d.extend(view.withdrawn());
                e.extend(view.mp_withdrawn::<Ipv6Prefix>());
                f.extend(view.mp_withdrawn::<Ipv4Prefix>());
                lengths.push(view.attr_bytes().len());
                match view.mp_reach() {
                    Some(reach) if reach.family == Family::Ipv6Unicast => assert_eq!(reach.next_hop, hop6),
                    Some(reach) => assert_eq!(reach.next_hop, next_hop.into()),
                    None => {}
                }
            });
            assert_eq!(messages, packed.iter().map(|packed| packed.messages).sum::<usize>());
            let four: Vec<_> = four.into_iter().map(|(id, key)| (strip(id), key)).collect();
            let six: Vec<_> = six.into_iter().map(|(id, key)| (strip(id), key)).collect();
            assert_eq!([&a, &c, &d, &f], [&four; 4]);
            assert_eq!([&b, &e], [&six; 2]);
            // As few messages as there can be: no two neighbours would have fitted into one.
            let octets = out.len();
            assert!(messages <= 6 + octets / (4096 - 64), "{messages} messages for {octets} octets");
        }
    }
}

#[test]
fn multiprotocol_reach_comes_first() {
    let mut out = BytesMut::new();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
    writer.announce_mp(&encoded(None), Ipv6Addr::LOCALHOST.into(), v6(1)).unwrap();
    read(&out, &session(FamilySet::EMPTY), |view| {
        assert_eq!(view.attrs().map(|attr| attr.code).collect::<Vec<_>>(), [14, 1, 2, 4]);
    });
}

#[test]
fn no_prefixes_no_message() {
    let mut out = BytesMut::new();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
    assert_eq!(writer.announce_v4(&encoded(Some(Ipv4Addr::LOCALHOST)), []), Ok(Packed::default()));
    assert_eq!(writer.withdraw_v4([]), Packed::default());
    assert_eq!(writer.withdraw_mp::<Ipv6Prefix>([]), Packed::default());
    assert!(out.is_empty());
}

#[test]
fn ipv4_prefixes_with_an_ipv6_next_hop() {
    let neg = Negotiated { extended_next_hop: FamilySet::ALL, ..session(FamilySet::EMPTY) };
    let next_hop = NextHop::from(Ipv6Addr::from(1));
    let mut out = BytesMut::new();
    let packed = UpdateWriter::new(&mut out, EncodeOptions::of(&neg))
        .announce_mp(&encoded(None), next_hop, v4(3000))
        .unwrap();
    let mut got = Vec::new();
    let messages = read(&out, &neg, |view| {
        assert_eq!(view.mp_reach().unwrap().next_hop, next_hop);
        got.extend(view.mp_announced::<Ipv4Prefix>().map(|(_, prefix)| prefix));
    });
    assert_eq!((packed.messages, packed.prefixes), (messages, 3000));
    assert_eq!(got, v4(3000).into_iter().map(|(_, prefix)| prefix).collect::<Vec<_>>());
}

#[test]
fn long_messages_are_filled() {
    let neg = Negotiated { max_message: 65535, max_received: 65535, ..session(FamilySet::EMPTY) };
    let mut out = BytesMut::new();
    let packed = UpdateWriter::new(&mut out, EncodeOptions::of(&neg))
        .announce_v4(&encoded(Some(Ipv4Addr::LOCALHOST)), v4(40_000))
        .unwrap();
    let mut got = 0;
    let messages = read(&out, &neg, |view| got += view.announced().count());
    assert_eq!((packed.messages, got), (messages, 40_000));
    assert_eq!(messages, out.len().div_ceil(65535 - 5), "each is full");
}

#[test]
fn end_of_rib_of_each_family() {
    for family in Family::ALL {
        let mut out = BytesMut::new();
        UpdateWriter::new(&mut out, EncodeOptions::default()).end_of_rib(family);
        assert_eq!(
            read(&out, &session(FamilySet::EMPTY), |view| assert_eq!(view.end_of_rib(), Some(family))),
            1
        );
    }
}

#[test]
fn attributes_that_leave_no_room_are_refused_whole() {
    let mut builder = Builder::new(Origin::Igp);
    builder.add_communities((0..1100).map(attr::Community));
    let long = builder.build();
    let mut out = BytesMut::new();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
    let refused = PackError::AttributesTooLong { size: long.len(), max: 4096 };
    assert_eq!(writer.announce_v4(&long, v4(1)), Err(refused));
    assert!(writer.announce_mp(&long, Ipv6Addr::LOCALHOST.into(), v6(1)).is_err());
    assert!(out.is_empty());
    // Long messages hold them.
    let options = EncodeOptions { max_message: 65535, ..EncodeOptions::default() };
    let packed = UpdateWriter::new(&mut out, options).announce_v4(&long, v4(3000)).unwrap();
    assert_eq!(packed, Packed { messages: 1, prefixes: 3000 });
    assert_eq!(split_message(&out, 65535).unwrap().unwrap().raw.len(), out.len());
}

#[test]
fn the_longest_attributes_leave_room_for_one_prefix() {
    // A prefix takes at most five octets, nine with its path identifier.
    for (spare, add_path) in (0..64).flat_map(|spare| [(spare, FamilySet::EMPTY), (spare, FamilySet::ALL)]) {
        let least = if add_path.is_empty() { 5 } else { 9 };
        let mut attrs = encoded(Some(Ipv4Addr::LOCALHOST));
        let fill = 4096 - 23 - spare - attrs.len() - 4;
        attr::RawAttr::write(&mut attrs, AttrFlags(0xe0), 200, &vec![0; fill]);
        let mut out = BytesMut::new();
        let options = EncodeOptions { add_path, ..EncodeOptions::default() };
        match UpdateWriter::new(&mut out, options).announce_v4(&attrs, v4(20)) {
            Ok(packed) => {
                assert!(spare >= least, "{spare}");
                assert_eq!(packed.prefixes, 20);
                let mut at = 0;
                while let Some(frame) = split_message(&out[at..], 4096).unwrap() {
                    at += frame.raw.len();
                }
                assert_eq!(at, out.len());
            }
            Err(PackError::AttributesTooLong { .. }) => assert!(spare < least, "{spare}"),
        }
    }
}

/// GoBGP 3 takes what follows an SR policy in a message for a part of its endpoint.
#[test]
fn each_sr_policy_has_a_message_of_its_own() {
    let key = |color| SrPolicy6 { distinguisher: 1, color, endpoint: Ipv6Addr::LOCALHOST };
    let keys: Vec<_> = (0..3).map(|color| (PathId(color), key(color))).collect();
    for add_path in [FamilySet::EMPTY, FamilySet::only(Family::Ipv6SrPolicy)] {
        let neg = session(add_path);
        let set = Builder::new(Origin::Igp).tunnel_encap(Some(vec![0, 15, 0, 0])).build();
        let mut out = BytesMut::new();
        let mut writer = UpdateWriter::new(&mut out, EncodeOptions::of(&neg));
        let written = writer.announce_mp(&set, Ipv6Addr::LOCALHOST.into(), keys.iter().copied()).unwrap();
        assert_eq!(written, Packed { messages: 3, prefixes: 3 });
        assert_eq!(writer.withdraw_mp(keys.iter().copied()), Packed { messages: 3, prefixes: 3 });
        let (mut announced, mut withdrawn, mut rest) = (Vec::new(), Vec::new(), &out[..]);
        while let Some(frame) = split_message(rest, 4096).unwrap() {
            rest = &rest[frame.raw.len()..];
            let view = UpdateView::parse(frame.body, &neg).unwrap();
            assert_eq!(view.decode().unwrap().treat_as_withdraw, None);
            announced.extend(view.mp_announced::<SrPolicy6>());
            withdrawn.extend(view.mp_withdrawn::<SrPolicy6>());
        }
        let sent = |(id, key)| (if add_path.is_empty() { PathId::NONE } else { id }, key);
        assert_eq!(announced, keys.iter().copied().map(sent).collect::<Vec<_>>());
        assert_eq!(withdrawn, announced);
    }
}
