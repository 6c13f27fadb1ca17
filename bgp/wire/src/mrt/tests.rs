use super::*;
use crate::{
    Asn, Family, Label, MessageType, NextHop, Nlri, PathId, RouterId,
    attr::{Builder, Canonical, Origin, RawAttr},
    parse_message, split_message,
};
use proptest::prelude::*;

/// A record around a body.
fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let head = [&[0, 0, 0, 9][..], &kind.to_be_bytes(), &subtype.to_be_bytes()].concat();
    [&head, &(body.len() as u32).to_be_bytes()[..], body].concat()
}

fn only(octets: &[u8]) -> Result<Body<'_>, MrtFault> {
    let mut reader = Reader::new(octets);
    let read = reader.next().unwrap();
    assert!(reader.next().is_none());
    read.map(|record| record.body).map_err(|error| error.fault)
}

fn set() -> Vec<u8> {
    let mut builder = Builder::new(Origin::Igp);
    builder.prepend(Asn(70_000), 2).med(Some(7));
    builder.add_large_communities([crate::attr::LargeCommunity::new(1, 2, 3)]);
    builder.build()
}

fn nlri(text: &str) -> Nlri {
    text.parse().unwrap()
}

const PEERS: [Peer; 2] = [
    Peer {
        router_id: RouterId(1),
        address: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        asn: Asn(1),
    },
    Peer {
        router_id: RouterId(2),
        address: std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        asn: Asn(4_200_000_000),
    },
];

#[test]
fn the_peers_of_a_table() {
    let mut out = Vec::new();
    TableWriter::new(9).peers(RouterId(5), "name", &PEERS, &mut out).unwrap();
    let Ok(Body::PeerIndex(index)) = only(&out) else { panic!() };
    assert_eq!((index.collector, index.view), (RouterId(5), &b"name"[..]));
    assert!(index.peers().eq(PEERS));
    // A peer with an AS number of two octets.
    let body = [0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 7, 192, 0, 2, 1, 0xfd, 0xe8];
    let octets = record(13, 1, &body);
    let Ok(Body::PeerIndex(index)) = only(&octets) else { panic!() };
    let peer = Peer { router_id: RouterId(7), address: "192.0.2.1".parse().unwrap(), asn: Asn(65000) };
    assert!(index.peers().eq([peer]));
}

#[test]
fn every_family_goes_there_and_back() {
    let set = set();
    let hops =
        ["192.0.2.1", "2001:db8::1"].map(|hop| NextHop::from(hop.parse::<std::net::IpAddr>().unwrap()));
    let mut writer = TableWriter::new(9);
    for (text, hop, label) in [
        ("10.0.0.0/8", hops[0], None),
        ("10.0.0.0/8", hops[1], None),
        ("0.0.0.0/0", hops[0], None),
        ("2001:db8::/32", hops[1], None),
        ("65000:1:10.0.0.0/8", hops[0], Label::new(100)),
        ("192.0.2.1:1:2001:db8::/32", hops[1], Label::new(3)),
        ("1:100:192.0.2.9", hops[0], None),
        ("1:100:2001:db8::9", hops[1], None),
    ] {
        let nlri = nlri(text);
        for id in [None, Some(PathId(7))] {
            let path = TablePath {
                peer: 1,
                originated: 8,
                path_id: id,
                label,
                next_hop: Some(hop),
                attrs: Canonical(&set),
            };
            let mut out = Vec::new();
            writer.destination(nlri, &[path], &mut out).unwrap();
            let Ok(Body::Rib(rib)) = only(&out) else { panic!("{text}") };
            assert_eq!((rib.nlri, rib.label), (nlri, label));
            let [entry] = rib.entries().collect::<Vec<_>>()[..] else { panic!("{text}") };
            assert_eq!((entry.peer, entry.originated, entry.path_id), (1, 8, id));
            assert_eq!(entry.attrs.next_hop(), Some(hop), "{text}");
            assert!(entry.attrs.attrs().map(|attr| attr.code).is_sorted());
            let decoded = entry.attrs.decode().unwrap();
            assert_eq!(decoded.next_hop, Some(hop));
            let withdrawn = decoded.treat_as_withdraw.map(|fault| fault.code);
            if nlri.family().is_sr_policy() {
                assert_eq!(withdrawn, Some(crate::attr::code::TUNNEL_ENCAP), "{text}");
            } else {
                assert_eq!((withdrawn, &decoded.canonical), (None, &set), "{text}");
            }
        }
    }
}

#[test]
fn paths_with_and_without_identifiers_take_records_of_their_own() {
    let set = set();
    let path = |peer, path_id| TablePath {
        peer,
        originated: 0,
        path_id,
        label: None,
        next_hop: None,
        attrs: Canonical(&set),
    };
    let paths = [path(0, None), path(1, Some(PathId(2))), path(0, None), path(1, Some(PathId(1)))];
    let mut out = Vec::new();
    let mut writer = TableWriter::new(9);
    writer.destination(nlri("10.0.0.0/8"), &paths, &mut out).unwrap();
    let read: Vec<Vec<_>> = Reader::new(&out)
        .map(|record| {
            let Ok(Record { body: Body::Rib(rib), .. }) = record else { panic!() };
            rib.entries().map(|entry| (rib.sequence, entry.peer, entry.path_id)).collect()
        })
        .collect();
    assert_eq!(read[0], [(0, 0, None), (0, 0, None)]);
    assert_eq!(read[1], [(1, 1, Some(PathId(2))), (1, 1, Some(PathId(1)))]);
    assert_eq!(read.len(), 2);
    out.clear();
    writer.destination(nlri("10.0.0.0/8"), &[], &mut out).unwrap();
    assert!(out.is_empty());
}

#[test]
fn what_does_not_fit_is_not_written() {
    let set = set();
    let mut builder = Builder::from(Canonical(&set));
    builder.add_communities((0..16_383).map(crate::attr::Community));
    let long = builder.build();
    let path = TablePath {
        peer: 0,
        originated: 0,
        path_id: None,
        label: None,
        next_hop: None,
        attrs: Canonical(&long),
    };
    let mut out = vec![1];
    let mut writer = TableWriter::new(9);
    let error = writer.destination(nlri("10.0.0.0/8"), &[path], &mut out).unwrap_err();
    assert!(error.to_string().starts_with("a path to 10.0.0.0/8 has 655"), "{error}");
    assert_eq!((&out[..], writer.sequence), (&[1][..], 0));
    let many = vec![PEERS[0]; 65_536];
    assert_eq!(writer.peers(RouterId(1), "", &many, &mut out), Err(TableError::TooManyPeers(65_536)));
}

/// An entry with these attributes, in a record of 10.0.0.0/8.
fn with_attrs(subtype: u16, attrs: &[u8]) -> Vec<u8> {
    let head = [0, 0, 0, 1, 8, 10, 0, 1, 0, 0, 0, 0, 0, 9];
    record(13, subtype, &[&head, &(attrs.len() as u16).to_be_bytes()[..], attrs].concat())
}

#[test]
fn a_next_hop_alone_or_in_a_whole_attribute() {
    let hop = "2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap();
    let whole = [&[0, 1, 1, 16][..], &hop.octets(), &[0, 8, 10]].concat();
    let alone = [&[16][..], &hop.octets()].concat();
    for value in [&whole, &alone] {
        let mut attrs = set();
        RawAttr::write(&mut attrs, crate::attr::AttrFlags::OPTIONAL, 14, value);
        let octets = with_attrs(2, &attrs);
        let Ok(Body::Rib(rib)) = only(&octets) else { panic!() };
        let decoded = rib.entries().next().unwrap().attrs.decode().unwrap();
        assert_eq!((decoded.next_hop, decoded.treat_as_withdraw), (Some(hop.into()), None));
        assert_eq!(decoded.canonical, set());
    }
    for value in [&[][..], &[0], &[0, 1, 1, 16, 1], &[4, 192, 0, 2], &[5, 192, 0, 2, 1, 1]] {
        let mut attrs = set();
        RawAttr::write(&mut attrs, crate::attr::AttrFlags::OPTIONAL, 14, value);
        let octets = with_attrs(2, &attrs);
        let Ok(Body::Rib(rib)) = only(&octets) else { panic!() };
        let entry = rib.entries().next().unwrap();
        assert_eq!(entry.attrs.next_hop(), None, "{value:?}");
        assert_eq!(entry.attrs.decode().unwrap().treat_as_withdraw.unwrap().code, 3);
    }
}

#[test]
fn a_path_identifier_of_rib_generic_stands_before_the_prefix_or_in_the_entry() {
    let vpn = nlri("65000:1:10.0.0.0/8");
    let attrs = [0x40, 1, 1, 0];
    let entry = [&[0, 4][..], &attrs].concat();
    let head = [0, 0, 0, 1, 0, 1, 128];
    let octets = vpn.octets(Label::new(100));
    let first = [&head[..], &[0, 0, 0, 7], &octets, &[0, 1, 0, 0, 0, 0, 0, 9], &entry].concat();
    let inside = [&head[..], &octets, &[0, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 7], &entry].concat();
    for body in [first, inside] {
        let octets = record(13, 12, &body);
        let Ok(Body::Rib(rib)) = only(&octets) else { panic!() };
        let entry = rib.entries().next().unwrap();
        assert_eq!((rib.nlri, rib.label, entry.path_id), (vpn, Label::new(100), Some(PathId(7))));
        assert_eq!(entry.attrs.octets(), attrs);
    }
}

#[test]
fn a_path_of_an_old_table() {
    let attrs = [0x40, 1, 1, 0, 0x40, 2, 4, 2, 1, 0xfd, 0xe8, 0x40, 3, 4, 192, 0, 2, 9];
    let head = [0, 0, 0, 3, 10, 0, 0, 0, 8, 1, 0, 0, 0, 9, 192, 0, 2, 1, 0xfd, 0xe8];
    let body = [&head[..], &[0, 18], &attrs].concat();
    let octets = record(12, 1, &body);
    let Ok(Body::OldEntry(entry)) = only(&octets) else { panic!() };
    assert_eq!((entry.sequence, entry.nlri, entry.originated), (3, nlri("10.0.0.0/8"), 9));
    assert_eq!((entry.peer, entry.peer_asn), ("192.0.2.1".parse().unwrap(), Asn(65000)));
    let decoded = entry.attrs.decode().unwrap();
    assert_eq!(Canonical(&decoded.canonical).as_path().to_string(), "65000");
    assert_eq!(decoded.next_hop, Some(std::net::Ipv4Addr::new(192, 0, 2, 9).into()));
    let cut = record(12, 1, &body[..body.len() - 1]);
    assert_eq!(only(&cut).unwrap_err(), MrtFault::Path(0));
    let more = record(12, 1, &[&body[..], &[0]].concat());
    assert_eq!(only(&more).unwrap_err(), MrtFault::LeftOver(1));
    let mut bad = octets.clone();
    bad[12 + 8] = 33;
    assert_eq!(only(&bad).unwrap_err(), MrtFault::Prefix);
}

#[test]
fn an_aggregator_in_the_other_form() {
    let mandatory = [0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, 9];
    let wide = [0xc0, 7, 8, 0, 1, 0x11, 0x70, 192, 0, 2, 1];
    let narrow = [0xc0, 7, 6, 0xfd, 0xfc, 192, 0, 2, 1];
    for (attr, four_octet, expected) in [
        (&wide[..], true, "70000 192.0.2.1"),
        (&wide, false, "70000 192.0.2.1"),
        (&narrow, true, "65020 192.0.2.1"),
        (&narrow, false, "65020 192.0.2.1"),
    ] {
        let octets = [&mandatory, attr].concat();
        let decoded = TableAttrs::new(&octets, Family::Ipv4Unicast, four_octet).decode().unwrap();
        assert_eq!((decoded.treat_as_withdraw, &decoded.discarded[..]), (None, &[][..]));
        assert_eq!(Canonical(&decoded.canonical).aggregator().unwrap().to_string(), expected);
    }
    let cut = [&mandatory, &wide[..9]].concat();
    let decoded = TableAttrs::new(&cut, Family::Ipv4Unicast, true).decode().unwrap();
    assert_eq!(decoded.treat_as_withdraw.unwrap().code, 7);
}

#[test]
fn what_was_said_on_a_session() {
    let ends = [0xfd, 0xe8, 0xfd, 0xe9, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2];
    let keepalive = [&[0xff; 16][..], &[0, 19, 4]].concat();
    let octets = record(16, 1, &[&ends[..], &keepalive].concat());
    let Ok(Body::Message(message)) = only(&octets) else { panic!() };
    assert_eq!((message.peer_asn, message.local_asn), (Asn(65000), Asn(65001)));
    assert_eq!((message.four_octet, message.path_ids, message.sent), (false, false, false));
    let frame = split_message(message.octets, 4096).unwrap().unwrap();
    assert_eq!(frame.kind, MessageType::Keepalive);
    assert!(parse_message(frame, &message.negotiated()).is_ok());
    // With microseconds, and a change of state instead of a message.
    let octets = record(17, 0, &[&[0, 0, 0, 5][..], &ends, &[0, 3, 0, 6]].concat());
    let read = Reader::new(&octets).next().unwrap().unwrap();
    assert_eq!((read.timestamp, read.microseconds), (9, Some(5)));
    let Body::StateChange(change) = read.body else { panic!() };
    assert_eq!((change.old, change.new, change.local), (3, 6, "192.0.2.2".parse().unwrap()));
    let foreign = record(16, 1, &[0, 1, 0, 2, 0, 0, 0, 3]);
    assert_eq!(only(&foreign).unwrap_err(), MrtFault::PeerFamily(3));
    assert_eq!(only(&record(16, 1, &ends[..15])).unwrap_err(), MrtFault::Short);
}

#[test]
fn what_is_not_read_is_passed_over() {
    for (kind, subtype) in [(13, 3), (13, 5), (13, 7), (13, 9), (13, 99), (12, 3), (16, 2), (17, 3), (48, 0)]
    {
        let octets = record(kind, subtype, &[0; 8]);
        assert!(
            matches!(only(&octets), Ok(Body::Other { kind: k, subtype: s }) if (k, s) == (kind, subtype)),
            "{kind} {subtype}"
        );
    }
    // A family that we do not speak.
    let octets = record(13, 6, &[0, 0, 0, 1, 0, 25, 70, 1, 2, 3]);
    assert!(matches!(only(&octets), Ok(Body::Other { subtype: 6, .. })));
}

#[test]
fn lies_are_told_with_their_place() {
    let good = with_attrs(2, &set());
    let mut bad = good.clone();
    // One path more than there is.
    bad[12 + 7] = 2;
    let file = [&good[..], &bad, &good, &good[..20]].concat();
    let read: Vec<_> = Reader::new(&file).map(|record| record.err()).collect();
    let place = |record, offset: usize| Place { record, offset: offset as u64 };
    let needed = good.len() as u64;
    assert_eq!(
        read,
        [
            None,
            Some(MrtError { place: place(2, good.len()), fault: MrtFault::Path(1) }),
            None,
            Some(MrtError {
                place: place(4, 3 * good.len()),
                fault: MrtFault::Truncated { needed, left: 20 }
            }),
        ]
    );
    let error = read[1].unwrap();
    assert_eq!(error.to_string(), format!("record 2 at octet {}: path 1 runs past its end", good.len()));
    // One path less.
    bad[12 + 7] = 0;
    assert!(matches!(only(&bad), Err(MrtFault::LeftOver(_))));
    // A header that is not whole, and one that claims gigabytes.
    assert_eq!(only(&[0; 5]).unwrap_err(), MrtFault::Truncated { needed: 12, left: 5 });
    let file = [&[0; 8][..], &[0xff; 4], &good].concat();
    assert_eq!(only(&file).unwrap_err(), MrtFault::TooLong(u32::MAX));
    let peers = record(13, 1, &[0, 0, 0, 5, 0, 0, 0, 1, 2, 0, 0, 0, 7, 192, 0, 2, 1, 0, 0, 0]);
    assert_eq!(only(&peers).unwrap_err(), MrtFault::Peer(0));
}

proptest! {
    #[test]
    fn any_octets_end_somewhere(octets: Vec<u8>, kind in 11u16..18, subtype in 0u16..13) {
        for file in [octets.clone(), record(kind, subtype, &octets)] {
            let errors = Reader::new(&file).filter(|record| match record {
                Ok(Record { body: Body::Rib(rib), .. }) => rib.entries().any(|entry| entry.attrs.decode().is_err()),
                Ok(_) => false,
                Err(error) => !error.to_string().is_empty(),
            });
            prop_assert!(errors.count() <= file.len() / 12 + 1);
        }
    }
}
