//! What must hold for any octets that a BGP peer may send. The fuzz targets call it, and an ordinary test of
//! `bgp-wire` replays their corpora through it.
//!
//! The first octet of an input chooses the kind of session, the others are what the peer sends.
// Everyone who includes this file uses a part of it.
#![allow(dead_code)]

use bgp_wire::{
    Asn, Capability, EncodeOptions, Family, FamilySet, HEADER_LEN, Ipv4Prefix, Ipv6Prefix, Label, Message,
    Negotiated, NextHop, NlriKey, Notification, Open, PathId, Prefixes, RouteRefresh, RouterId, SrPolicy4,
    SrPolicy6, UpdateView, UpdateWriter, VpnIpv4Prefix, VpnIpv6Prefix,
    attr::{
        self, AttrIter, Builder, Canonical, DecodeCtx, Decoded, TunnelEncap,
        tunnel_encap::{Segment, SegmentFlags},
    },
    parse_message, split_message, whole_messages,
};
use bytes::BytesMut;
use std::net::{Ipv4Addr, Ipv6Addr};

/// How many kinds of session there are.
pub(crate) const SESSIONS: u8 = 64;

/// The session that an input's first octet chooses: one bit each for 4-octet AS numbers, external, path
/// identifiers, long messages, and the families: IPv4 and IPv6 unicast, IPv4 alone, all there are, or VPNs and SR policies
/// alone.
pub(crate) fn session(choice: u8) -> Negotiated {
    let on = |bit: u8| choice & bit != 0;
    let families = match choice & (16 | 32) {
        0 => FamilySet::UNICAST,
        16 => FamilySet::only(Family::Ipv4Unicast),
        32 => FamilySet::ALL,
        _ => [Family::Ipv4Vpn, Family::Ipv6Vpn, Family::Ipv4SrPolicy, Family::Ipv6SrPolicy]
            .into_iter()
            .collect(),
    };
    let add_path = if on(4) { families } else { FamilySet::EMPTY };
    Negotiated {
        families,
        four_octet: on(1),
        ebgp: on(2),
        add_path_receive: add_path,
        add_path_send: add_path,
        extended_next_hop: families,
        max_message: if on(8) { 65535 } else { 4096 },
        ..Negotiated::default()
    }
}

/// Octets as a stream of messages.
pub(crate) fn message(data: &[u8]) {
    let Some((choice, mut stream)) = data.split_first() else { return };
    let neg = session(*choice);
    let max_len = usize::from(neg.max_message);
    let whole = whole_messages(stream, max_len);
    let mut cut = 0;
    loop {
        match split_message(stream, max_len) {
            Ok(Some(frame)) => {
                assert_eq!(frame.body.len() + HEADER_LEN, frame.raw.len());
                cut += frame.raw.len();
                stream = &stream[frame.raw.len()..];
                match parse_message(frame, &neg) {
                    Ok(Message::Open(open)) => check_open(&open),
                    Ok(Message::Update(view)) => check_update(&view, &neg),
                    Ok(Message::Notification(notification)) => check_notification(&notification),
                    Ok(Message::RouteRefresh(refresh)) => check_refresh(refresh),
                    Ok(Message::Keepalive) => assert!(frame.body.is_empty()),
                    Err(error) => check_notification(&error.notification),
                }
            }
            Ok(None) => {
                assert!(!whole.fault);
                break;
            }
            Err(error) => {
                assert!(whole.fault);
                check_notification(&error.notification);
                break;
            }
        }
    }
    assert_eq!(cut, whole.bytes);
}

/// Octets as the body of an UPDATE.
pub(crate) fn update(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let neg = session(*choice);
    if body.len() + HEADER_LEN > usize::from(neg.max_message) {
        return;
    }
    match UpdateView::parse(body, &neg) {
        Ok(view) => check_update(&view, &neg),
        Err(error) => check_notification(&error.notification),
    }
}

fn check_open(open: &Open) {
    assert!(open.asn() != Asn::ZERO && open.router_id != RouterId(0) && !matches!(open.hold_time, 1 | 2));
    let mut out = BytesMut::new();
    // One that came in short parameters always fits; long ones may become too long when they are put
    // together.
    if open.encode(&mut out).is_ok() {
        assert_eq!(Open::parse(&out[HEADER_LEN..]).as_ref(), Ok(open));
    }
    let ours = Open::new(Asn(65010), 90, RouterId(1), vec![Capability::family(Family::Ipv4Unicast)]);
    let agreed = Negotiated::agree(&ours, open);
    assert!(agreed.hold_time <= 90 && agreed.remote_asn == open.asn());
    open.capabilities.iter().for_each(|capability| drop(capability.to_string()));
}

fn check_notification(notification: &Notification) {
    assert!(!notification.to_string().contains(char::is_control));
    let mut out = BytesMut::new();
    notification.encode(&mut out);
    let got = Notification::parse(&out[HEADER_LEN..]);
    if notification.data.len() <= Notification::MAX_DATA {
        assert_eq!(got.as_ref(), Ok(notification));
    }
}

fn check_refresh(refresh: RouteRefresh) {
    let mut out = BytesMut::new();
    refresh.encode(&mut out);
    let frame = split_message(&out, 4096);
    assert_eq!(frame.map(|frame| frame.map(RouteRefresh::parse)), Ok(Some(Ok(refresh))));
}

fn check_update(view: &UpdateView<'_>, neg: &Negotiated) {
    let key = view.attr_key();
    let mut octets = Vec::new();
    key.copy_to(&mut octets);
    assert!(key.is(&octets) && key.len() == octets.len());
    if let Some(family) = view.end_of_rib() {
        assert!(!view.has_reachable() && view.withdrawn().is_empty());
        assert!(neg.families.contains(family));
    }
    let set = match view.decode() {
        Ok(decoded) => check_decoded(&decoded, view),
        Err(error) => return check_notification(&error.notification),
    };
    check_prefixes(view.announced(), set.as_deref(), neg);
    check_prefixes(view.withdrawn(), None, neg);
    check_multiprotocol::<Ipv4Prefix>(view, set.as_deref(), neg);
    check_multiprotocol::<Ipv6Prefix>(view, set.as_deref(), neg);
    check_multiprotocol::<VpnIpv4Prefix>(view, set.as_deref(), neg);
    check_multiprotocol::<VpnIpv6Prefix>(view, set.as_deref(), neg);
    check_multiprotocol::<SrPolicy4>(view, set.as_deref(), neg);
    check_multiprotocol::<SrPolicy6>(view, set.as_deref(), neg);
}

fn check_multiprotocol<K: NlriKey>(view: &UpdateView<'_>, set: Option<&[u8]>, neg: &Negotiated) {
    check_prefixes(view.mp_announced::<K>(), set, neg);
    check_prefixes(view.mp_withdrawn::<K>(), None, neg);
}

/// What decoding gives is canonical: to decode it again, or to build it again, changes nothing.
fn check_decoded(decoded: &Decoded, view: &UpdateView<'_>) -> Option<Vec<u8>> {
    if let Some(fault) = decoded.treat_as_withdraw {
        assert!(!fault.to_string().is_empty());
        return None;
    }
    assert_eq!(view.fault(), None);
    let set = Canonical(&decoded.canonical);
    assert!(set.attrs().map(|attr| attr.code).is_sorted_by(|one, other| one < other));
    assert_eq!(set.attrs().map(|attr| attr.raw.len()).sum::<usize>(), decoded.canonical.len());
    assert_eq!(Builder::from(set).build(), decoded.canonical);
    assert_eq!(
        set.as_path().asns().count(),
        set.as_path().segments().map(|segment| segment.asns().len()).sum()
    );
    assert_eq!(decoded.facts, set.facts());
    check_candidate_path(set, view.decode_ctx());
    assert_eq!(set.as_path().length(), u32::from(decoded.facts.as_path_len));
    for four_octet in [true, false] {
        let hop = Ipv4Addr::new(192, 0, 2, 1);
        let mut sent = Vec::new();
        attr::encode(set, Some(hop), four_octet, &mut sent);
        let ctx = DecodeCtx { four_octet, classic: true, ..view.decode_ctx() };
        let again = attr::decode(AttrIter::new(&sent), ctx)
            .expect("what we send has no unknown well-known attribute");
        if view.decode_ctx().reachable {
            assert_eq!((again.treat_as_withdraw, again.next_hop), (None, Some(hop.into())));
            assert!(again.discarded.is_empty());
            let again = Canonical(&again.canonical);
            if four_octet {
                assert_eq!(again, set);
            } else if !set.as_path().to_string().contains(['(', '[']) {
                // Borders between sequences may be lost, and confederation segments lose their place.
                assert_eq!(again.as_path().to_string(), set.as_path().to_string());
                assert_eq!(again.aggregator(), set.aggregator());
            }
        }
    }
    Some(decoded.canonical.clone())
}

/// A route of an SR policy has a candidate path. What may be written of one that was read, is read as it was.
fn check_candidate_path(set: Canonical<'_>, ctx: DecodeCtx) {
    let path = set.tunnel_encap().candidate_path();
    assert!(path.is_some() || !ctx.sr_policy);
    let Some(mut path) = path else { return };
    // Without a SID it is not written, nor are flags that mean nothing.
    path.binding_sid = path.binding_sid.filter(|binding| binding.sid.is_some());
    for segment in path.segment_lists.iter_mut().flat_map(|list| &mut list.segments) {
        if let Segment::Mpls { flags, .. } | Segment::Srv6 { flags, .. } = segment {
            flags.0 &= SegmentFlags::DEFINED.0;
        }
    }
    if let Ok(octets) = path.encode() {
        assert_eq!(TunnelEncap::new(&octets).candidate_path(), Some(path));
    }
}

/// Prefixes that were read can be written, and read again.
fn check_prefixes<K: NlriKey>(prefixes: Prefixes<'_, K>, announced_with: Option<&[u8]>, neg: &Negotiated) {
    let mut out = BytesMut::new();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::of(neg));
    let mut rest = prefixes;
    let all: Vec<(PathId, K, Option<Label>)> = std::iter::from_fn(|| rest.next_labelled()).collect();
    assert!(prefixes.eq(all.iter().map(|&(id, key, _)| (id, key))));
    let mut packed = 0;
    match announced_with {
        Some(set) => {
            let mut attrs = Vec::new();
            attr::encode(Canonical(set), None, neg.four_octet, &mut attrs);
            let hop: NextHop =
                if K::FAMILY.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            // What goes together has one label.
            for run in all.chunk_by(|(.., one), (.., other)| one == other) {
                assert!(run.iter().all(|(.., label)| label.is_some() == K::LABELLED));
                let label = run.first().and_then(|(.., label)| *label);
                match writer.announce_labelled(&attrs, hop, label, run.iter().map(|&(id, key, _)| (id, key)))
                {
                    Ok(written) => packed += written.prefixes,
                    Err(_) => return,
                }
            }
        }
        None => packed = writer.withdraw_mp(prefixes).prefixes,
    }
    assert_eq!(packed, all.len());
    let mut rest = &out[..];
    let mut expected = all.into_iter();
    while let Ok(Some(frame)) = split_message(rest, usize::from(neg.max_message)) {
        rest = &rest[frame.raw.len()..];
        let view = UpdateView::parse(frame.body, neg).expect("what we send can be read");
        assert_eq!(view.fault(), None);
        let mut read = match announced_with {
            Some(_) => view.mp_announced::<K>(),
            None => view.mp_withdrawn::<K>(),
        };
        while let Some((id, key, label)) = read.next_labelled() {
            let (expected_id, expected_key, expected_label) = expected.next().expect("nothing is made up");
            assert_eq!((id, key), (expected_id, expected_key));
            assert!(announced_with.is_none() || label == expected_label);
        }
    }
    assert!(rest.is_empty() && expected.next().is_none());
}
