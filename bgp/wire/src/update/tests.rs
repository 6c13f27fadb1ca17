use super::*;
use crate::{
    Ipv6Prefix, NextHop,
    asn::Asn,
    capability::{AddPath, Capability, ExtendedNextHop},
    notification::{Notification, Reason},
    open::Open,
    router_id::RouterId,
};

fn session(ours: u32, capabilities: &[Capability]) -> Negotiated {
    let open = |asn| Open::new(Asn(asn), 90, RouterId(asn), capabilities.to_vec());
    let theirs = Open { capabilities: with_as(capabilities, 65020), ..open(65020) };
    Negotiated::agree(&Open { capabilities: with_as(capabilities, ours), ..open(ours) }, &theirs)
}

fn with_as(capabilities: &[Capability], asn: u32) -> Vec<Capability> {
    [capabilities, &[Capability::FourOctetAs(Asn(asn))]].concat()
}

fn external() -> Negotiated {
    session(65010, &[Capability::family(Family::Ipv4Unicast), Capability::family(Family::Ipv6Unicast)])
}

fn body(withdrawn: &[u8], attrs: &[&[u8]], nlri: &[u8]) -> Vec<u8> {
    let attrs = attrs.concat();
    let length = |octets: &[u8]| (octets.len() as u16).to_be_bytes();
    [&length(withdrawn), withdrawn, &length(&attrs), &attrs, nlri].concat()
}

const ORIGIN: &[u8] = &[0x40, 1, 1, 0];
const AS_PATH: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xfc];
const NEXT_HOP: &[u8] = &[0x40, 3, 4, 192, 0, 2, 20];
const MED: &[u8] = &[0x80, 4, 4, 0, 0, 0, 77];
const PREFIX: &[u8] = &[24, 203, 0, 113];
const PREFIX6: &[u8] = &[48, 0x20, 1, 0xd, 0xb8, 0, 0xff];

/// Next hop 2001:db8:1::20, prefix 2001:db8:ff::/48.
fn mp_reach() -> Vec<u8> {
    let next_hop = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20];
    [&[0x80, 14, 28, 0, 2, 1, 16], &next_hop[..], &[0], PREFIX6].concat()
}

fn mp_unreach() -> Vec<u8> {
    [&[0x80, 15, 10, 0, 2, 1], PREFIX6].concat()
}

fn refusal(neg: &Negotiated, body: &[u8]) -> Notification {
    UpdateView::parse(body, neg).unwrap_err().notification
}

fn texts<K: NlriKey>(prefixes: Prefixes<'_, K>) -> Vec<String> {
    prefixes.map(|(id, key)| if id.0 == 0 { key.to_string() } else { format!("{id}:{key}") }).collect()
}

#[test]
fn sections_and_what_is_in_them() {
    let (reach, unreach) = (mp_reach(), mp_unreach());
    let body = body(&[8, 10], &[&reach, ORIGIN, AS_PATH, NEXT_HOP, &unreach, MED], PREFIX);
    let view = UpdateView::parse(&body, &external()).unwrap();
    assert_eq!(texts(view.withdrawn()), ["10.0.0.0/8"]);
    assert_eq!(texts(view.announced()), ["203.0.113.0/24"]);
    assert_eq!(texts(view.mp_announced::<Ipv6Prefix>()), ["2001:db8:ff::/48"]);
    assert_eq!(texts(view.mp_withdrawn::<Ipv6Prefix>()), ["2001:db8:ff::/48"]);
    assert!(view.mp_announced::<Ipv4Prefix>().is_empty());
    assert_eq!(
        view.mp_reach().unwrap().next_hop,
        NextHop::from("2001:db8:1::20".parse::<std::net::Ipv6Addr>().unwrap())
    );
    assert_eq!((view.end_of_rib(), view.fault(), view.foreign()), (None, None, None));
    let decoded = view.decode().unwrap();
    assert_eq!((decoded.treat_as_withdraw, decoded.facts.med), (None, Some(77)));
    assert_eq!(decoded.next_hop.unwrap().to_string(), "192.0.2.20");
}

#[test]
fn the_key_is_the_octets_without_multiprotocol_prefixes() {
    let neg = external();
    let (reach, unreach) = (mp_reach(), mp_unreach());
    let plain = [ORIGIN, AS_PATH, MED].concat();
    let head = &reach[3..23];
    for (attrs, pieces) in [
        (vec![&reach[..], ORIGIN, AS_PATH, MED], [head, &[], &plain, &[]]),
        (vec![ORIGIN, AS_PATH, MED, &reach], [head, &plain, &[], &[]]),
        (vec![ORIGIN, &reach, AS_PATH, &unreach, MED], [head, ORIGIN, AS_PATH, MED]),
        (vec![ORIGIN, &unreach, AS_PATH, &reach, MED], [head, ORIGIN, AS_PATH, MED]),
    ] {
        let body = body(&[], &attrs, &[]);
        let key = UpdateView::parse(&body, &neg).unwrap().attr_key();
        assert_eq!(key.pieces(), pieces);
        let mut octets = Vec::new();
        key.copy_to(&mut octets);
        assert_eq!(octets, [head, &plain].concat());
        assert_eq!((key.len(), key.is(&octets), key.is(&octets[1..])), (octets.len(), true, false));
        octets[20] ^= 1;
        assert!(!key.is(&octets));
    }
    let classic = body(&[], &[ORIGIN, AS_PATH, NEXT_HOP], PREFIX);
    let key = UpdateView::parse(&classic, &neg).unwrap().attr_key();
    assert_eq!(key.pieces(), [&[], &[ORIGIN, AS_PATH, NEXT_HOP].concat()[..], &[], &[]]);
    assert!(key.ctx().classic && !key.ctx().multiprotocol);
    let only = body(&[], &[&unreach], &[]);
    assert!(UpdateView::parse(&only, &neg).unwrap().attr_key().is_empty());
}

#[test]
fn end_of_rib_is_empty_and_nothing_else() {
    let neg = external();
    let end = |withdrawn: &[u8], attrs: &[&[u8]], nlri: &[u8]| {
        UpdateView::parse(&body(withdrawn, attrs, nlri), &neg).unwrap().end_of_rib()
    };
    assert_eq!(end(&[], &[], &[]), Some(Family::Ipv4Unicast));
    assert_eq!(end(&[], &[&[0x80, 15, 3, 0, 2, 1]], &[]), Some(Family::Ipv6Unicast));
    assert_eq!(end(&[], &[&[0x90, 15, 0, 3, 0, 1, 1]], &[]), Some(Family::Ipv4Unicast));
    assert_eq!(end(&[8, 10], &[], &[]), None);
    assert_eq!(end(&[], &[], PREFIX), None);
    assert_eq!(end(&[], &[&mp_unreach()], &[]), None);
    assert_eq!(end(&[], &[&[0x80, 15, 3, 0, 2, 1], ORIGIN], &[]), None);
    assert_eq!(end(&[], &[&[0x80, 15, 3, 0, 25, 70]], &[]), None);
}

#[test]
fn section_lengths_beyond_the_message_end_the_session() {
    let whole = body(&[8, 10], &[ORIGIN, AS_PATH, NEXT_HOP], PREFIX);
    let malformed = Notification::new(Reason::MalformedAttributeList);
    for cut in 0..whole.len() - PREFIX.len() {
        assert_eq!(refusal(&external(), &whole[..cut]), malformed, "{cut}");
    }
    assert!(UpdateView::parse(&whole[..whole.len() - PREFIX.len()], &external()).is_ok());
}

#[test]
fn bad_prefixes_end_the_session() {
    let network = Notification::new(Reason::InvalidNetworkField);
    assert_eq!(refusal(&external(), &body(&[33, 1, 2, 3, 4, 5], &[], &[])), network);
    assert_eq!(refusal(&external(), &body(&[], &[ORIGIN, AS_PATH, NEXT_HOP], &[24, 1])), network);
    let mut reach = mp_reach();
    reach[24] = 129;
    let optional = |attr: &[u8]| Notification::with_data(Reason::OptionalAttribute, attr);
    assert_eq!(refusal(&external(), &body(&[], &[&reach], &[])), optional(&reach));
    let mut unreach = mp_unreach();
    unreach[6] = 49;
    assert_eq!(refusal(&external(), &body(&[], &[&unreach], &[])), optional(&unreach));
}

#[test]
fn multiprotocol_attributes_that_cannot_be_read_end_the_session() {
    let optional = |attr: &[u8]| Notification::with_data(Reason::OptionalAttribute, attr);
    let mut flags = mp_reach();
    flags[0] = 0xc0;
    let mut unreach_flags = mp_unreach();
    unreach_flags[0] = 0x40;
    for attr in [
        &flags[..],
        &unreach_flags,
        &[0x80, 14, 4, 0, 2, 1, 0],
        &[0x80, 14, 5, 0, 2, 1, 4, 0],
        &[0x80, 14, 5, 0, 2, 1, 0, 0],
        &[0x80, 14, 0],
        &[0x80, 15, 2, 0, 2],
        &[0x80, 15, 0],
    ] {
        assert_eq!(refusal(&external(), &body(&[], &[attr], &[])), optional(attr), "{attr:?}");
    }
}

#[test]
fn a_multiprotocol_attribute_may_come_once() {
    let malformed = Notification::new(Reason::MalformedAttributeList);
    for attr in [mp_reach(), mp_unreach()] {
        assert_eq!(refusal(&external(), &body(&[], &[&attr, ORIGIN, AS_PATH, &attr], &[])), malformed);
    }
}

#[test]
fn families_that_were_not_agreed_are_passed_over() {
    let only_v6 = session(65010, &[Capability::family(Family::Ipv6Unicast)]);
    let all = body(&[8, 10], &[ORIGIN, AS_PATH, NEXT_HOP], PREFIX);
    let view = UpdateView::parse(&all, &only_v6).unwrap();
    assert!(view.withdrawn().is_empty() && view.announced().is_empty() && !view.has_reachable());
    assert_eq!(UpdateView::parse(&body(&[], &[], &[]), &only_v6).unwrap().end_of_rib(), None);
    let only_v4 = session(65010, &[]);
    let (reach, unreach) = (mp_reach(), mp_unreach());
    let all = body(&[], &[&reach, ORIGIN, AS_PATH, &unreach], &[]);
    let view = UpdateView::parse(&all, &only_v4).unwrap();
    assert!(view.mp_reach().is_none() && view.mp_unreach().is_none() && !view.has_reachable());
    assert_eq!(view.foreign(), Some((2, 1)));
    // What its prefixes look like is not known, so they cannot be at fault; nor can the next hop.
    let evpn = body(&[], &[&[0x80, 14, 9, 0, 25, 70, 1, 9, 0, 255, 255, 255], ORIGIN, AS_PATH], &[]);
    assert_eq!(UpdateView::parse(&evpn, &only_v4).unwrap().foreign(), Some((25, 70)));
}

#[test]
fn what_runs_past_the_attributes_is_treat_as_withdraw() {
    let neg = external();
    for (rest, code) in [
        (&[0xc0, 8, 32, 0, 1][..], 8),
        (&[0xc0, 8], 8),
        (&[0xd0, 8, 0], 8),
        (&[0x40], 0x40),
        (&[0xd0, 8, 0, 9, 1], 8),
    ] {
        let body = body(&[], &[ORIGIN, AS_PATH, NEXT_HOP, rest], PREFIX);
        let view = UpdateView::parse(&body, &neg).unwrap();
        let fault = view.fault().unwrap();
        assert_eq!((fault.code, fault.what), (code, AttrProblem::Overrun));
        assert_eq!(view.decode().unwrap().treat_as_withdraw, Some(fault));
        assert_eq!(texts(view.announced()), ["203.0.113.0/24"]);
    }
}

#[test]
fn a_multiprotocol_next_hop_that_is_no_host_is_treat_as_withdraw() {
    let mut reach = mp_reach();
    reach[7..23].fill(0);
    let body = body(&[], &[&reach, ORIGIN, AS_PATH], &[]);
    let view = UpdateView::parse(&body, &external()).unwrap();
    assert_eq!(view.fault().map(|fault| (fault.code, fault.what)), Some((14, AttrProblem::Value)));
    assert_eq!(texts(view.mp_announced::<Ipv6Prefix>()), ["2001:db8:ff::/48"]);
}

#[test]
fn an_empty_multiprotocol_reach_says_nothing() {
    let reach = [0x80, 14, 9, 0, 1, 1, 4, 0, 0, 0, 0, 0];
    let with = body(&[], &[&reach, ORIGIN, AS_PATH, NEXT_HOP], PREFIX);
    let without = body(&[], &[ORIGIN, AS_PATH, NEXT_HOP], PREFIX);
    let neg = external();
    let (with, without) =
        (UpdateView::parse(&with, &neg).unwrap(), UpdateView::parse(&without, &neg).unwrap());
    assert_eq!((with.fault(), with.decode()), (None, without.decode()));
    assert_eq!((with.decode_ctx(), with.attr_key().pieces()[0]), (without.decode_ctx(), &[][..]));
}

#[test]
fn ipv4_in_multiprotocol_attributes() {
    let reach = [&[0x80, 14, 13, 0, 1, 1, 4, 192, 0, 2, 9, 0], PREFIX].concat();
    let unreach = [0x80, 15, 5, 0, 1, 1, 8, 10];
    let body = body(&[], &[&reach, ORIGIN, AS_PATH, &unreach], &[]);
    let view = UpdateView::parse(&body, &external()).unwrap();
    assert_eq!(texts(view.mp_announced::<Ipv4Prefix>()), ["203.0.113.0/24"]);
    assert_eq!(texts(view.mp_withdrawn::<Ipv4Prefix>()), ["10.0.0.0/8"]);
    assert_eq!(view.mp_reach().unwrap().next_hop.to_string(), "192.0.2.9");
    assert_eq!(view.decode().unwrap().treat_as_withdraw, None);
}

#[test]
fn ipv6_next_hops_of_ipv4_prefixes_where_they_were_agreed() {
    let v4 = Capability::family(Family::Ipv4Unicast);
    let extended = Capability::ExtendedNextHop(vec![ExtendedNextHop { afi: 1, safi: 1, next_hop_afi: 2 }]);
    let agreed = session(65010, &[v4.clone(), extended]);
    let global = [0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20];
    let link_local = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    let update = |next_hop: &[u8]| {
        let value = [&[0, 1, 1, next_hop.len() as u8][..], next_hop, &[0], PREFIX].concat();
        body(&[], &[&[&[0x80, 14, value.len() as u8], &value[..]].concat(), ORIGIN, AS_PATH], &[])
    };
    for (next_hop, shown) in [
        (&[192, 0, 2, 9][..], NextHop::V4([192, 0, 2, 9].into())),
        (&global, NextHop::V6 { global: global.into(), link_local: None }),
        (
            &[global, link_local].concat(),
            NextHop::V6 { global: global.into(), link_local: Some(link_local.into()) },
        ),
    ] {
        let body = update(next_hop);
        let view = UpdateView::parse(&body, &agreed).unwrap();
        assert_eq!(view.mp_reach().unwrap().next_hop, shown);
        assert_eq!(texts(view.mp_announced::<Ipv4Prefix>()), ["203.0.113.0/24"]);
        assert_eq!(view.decode().unwrap().treat_as_withdraw, None, "NEXT_HOP is not mandatory");
    }
    let multicast = update(&[0xff; 16]);
    assert!(UpdateView::parse(&multicast, &agreed).unwrap().fault().is_some());
    for (neg, next_hop) in [
        (&session(65010, &[v4]), &global[..]),
        (&agreed, &global[..15]),
        (&agreed, &[global, link_local].concat()[..24]),
    ] {
        assert_eq!(refusal(neg, &update(next_hop)).reason(), Some(Reason::OptionalAttribute));
    }
}

#[test]
fn without_prefixes_a_malformed_attribute_ends_the_session() {
    let malformed = Notification::new(Reason::MalformedAttributeList);
    let bad_med: &[u8] = &[0x80, 4, 3, 0, 0, 0];
    assert_eq!(refusal(&external(), &body(&[8, 10], &[ORIGIN, bad_med], &[])), malformed);
    assert_eq!(refusal(&external(), &body(&[], &[&mp_unreach(), bad_med], &[])), malformed);
    assert_eq!(refusal(&external(), &body(&[], &[ORIGIN, &[0x40, 2]], &[])), malformed);
    // A discarded attribute is no reason, nor is it that mandatory ones are missing.
    assert!(UpdateView::parse(&body(&[8, 10], &[ORIGIN, &[0x40, 6, 1, 0]], &[]), &external()).is_ok());
    assert!(UpdateView::parse(&body(&[], &[&mp_unreach(), MED], &[]), &external()).is_ok());
    // With prefixes it is treat-as-withdraw.
    assert!(UpdateView::parse(&body(&[], &[ORIGIN, bad_med], PREFIX), &external()).is_ok());
}

#[test]
fn path_identifiers_where_they_were_agreed() {
    let both = Capability::AddPath(vec![AddPath { afi: 1, safi: 1, receive: true, send: true }]);
    let neg = session(
        65010,
        &[Capability::family(Family::Ipv4Unicast), Capability::family(Family::Ipv6Unicast), both],
    );
    let field = [0, 0, 0, 7, 24, 203, 0, 113];
    let reach = mp_reach();
    let body = body(&field, &[&reach, ORIGIN, AS_PATH, NEXT_HOP], &field);
    let view = UpdateView::parse(&body, &neg).unwrap();
    assert_eq!(
        (texts(view.withdrawn()), texts(view.announced())),
        (vec!["7:203.0.113.0/24".into()], vec!["7:203.0.113.0/24".into()])
    );
    assert_eq!(texts(view.mp_announced::<Ipv6Prefix>()), ["2001:db8:ff::/48"]);
}
