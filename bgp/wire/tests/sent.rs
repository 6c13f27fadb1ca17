//! What we send, octet for octet: `tests/golden/bgp/sent.txt` holds what the writers gave when it was
//! recorded, and what it means to a reader.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod vectors;

use bgp_wire::{
    Asn, Capability, EncodeOptions, Family, Ipv4Prefix, Ipv6Prefix, Label, NextHop, Notification, Open,
    PathId, Reason, RouteRefresh, RouterId, SrPolicy4, SrPolicy6, UpdateWriter, VpnIpv4Prefix, VpnIpv6Prefix,
    attr::{
        self, Aggregator, Builder, Canonical, Community, LargeCommunity, Origin,
        tunnel_encap::{
            BindingSid, CandidatePath, EndpointBehavior, Segment, SegmentFlags, SegmentList, Sid,
            Srv6BindingSid, UnknownSubTlv,
        },
    },
    frame::put_keepalive,
};
use bytes::BytesMut;
use std::net::{Ipv4Addr, Ipv6Addr};
use vectors::{describe, hex, load, session};

fn v4(texts: &[&str]) -> Vec<(PathId, Ipv4Prefix)> {
    let key = |text: &&str| text.parse::<ipnet::Ipv4Net>().unwrap().into();
    texts.iter().map(|text| (PathId(7), key(text))).collect()
}

fn v6(texts: &[&str]) -> Vec<(PathId, Ipv6Prefix)> {
    let key = |text: &&str| text.parse::<ipnet::Ipv6Net>().unwrap().into();
    texts.iter().map(|text| (PathId(7), key(text))).collect()
}

/// A set with one of everything.
fn rich() -> Vec<u8> {
    let mut builder = Builder::new(Origin::Incomplete);
    builder
        .prepend(Asn(4_200_000_001), 2)
        .prepend(Asn(65010), 1)
        .med(Some(50))
        .atomic_aggregate(true)
        .aggregator(Some(Aggregator { asn: Asn(4_200_000_001), router_id: RouterId(0xc000_020a) }))
        .add_communities([Community::new(65010, 1), Community::NO_EXPORT])
        .add_ext_communities(["rt:65010:9".parse().unwrap()])
        .add_large_communities([LargeCommunity::new(4_200_000_001, 1, 2)]);
    builder.build()
}

fn internal() -> Vec<u8> {
    let mut builder = Builder::new(Origin::Igp);
    builder
        .local_pref(Some(100))
        .originator(Some(RouterId(1)))
        .prepend_cluster(RouterId(2))
        .prepend_cluster(RouterId(3));
    builder.build()
}

const POLICY: SrPolicy4 = SrPolicy4 { distinguisher: 7, color: 100, endpoint: Ipv4Addr::new(192, 0, 2, 9) };

fn sr_policy(path: &CandidatePath, communities: &[Community]) -> Vec<u8> {
    let mut builder = Builder::new(Origin::Igp);
    builder.prepend(Asn(65010), 1).add_communities(communities.iter().copied());
    builder.tunnel_encap(Some(path.encode().unwrap())).build()
}

/// A local SID, as the agents of a Calico/VPP cluster announce it.
fn calico() -> CandidatePath {
    let sid = "fc00:0:1::4".parse().unwrap();
    let behavior = Some(EndpointBehavior { code: 19, ..EndpointBehavior::default() });
    let segment = Segment::Srv6 { flags: SegmentFlags::S, sid, behavior };
    CandidatePath {
        preference: 11,
        priority: Some(10),
        binding_sid: Some(BindingSid {
            specified_only: true,
            drop_upon_invalid: false,
            sid: Some(Sid::Srv6(sid)),
        }),
        segment_lists: vec![SegmentList { weight: 12, segments: vec![segment] }],
        ..CandidatePath::default()
    }
}

/// Every sub-TLV there is.
fn everything() -> CandidatePath {
    let mpls = |flags, label, ttl| Segment::Mpls { flags, label, traffic_class: 0, ttl };
    let structure = EndpointBehavior { code: 14, block: 32, node: 16, function: 16, argument: 0 };
    CandidatePath {
        preference: 200,
        binding_sid: Some(BindingSid {
            specified_only: true,
            drop_upon_invalid: true,
            sid: Some(Sid::Label(16100)),
        }),
        srv6_binding_sids: vec![Srv6BindingSid {
            specified_only: true,
            drop_upon_invalid: false,
            sid: "fc00::5".parse().unwrap(),
            behavior: Some(structure),
        }],
        explicit_null: Some(3),
        priority: Some(10),
        name: Some("path".into()),
        policy_name: Some("gold".into()),
        segment_lists: vec![
            SegmentList {
                weight: 2,
                segments: vec![
                    mpls(SegmentFlags::V, 16001, 255),
                    Segment::Mpls { flags: SegmentFlags(0x0f), label: 16002, traffic_class: 7, ttl: 64 },
                ],
            },
            SegmentList::default(),
        ],
        unknown: vec![UnknownSubTlv { kind: 99, value: [1, 2].into() }],
    }
}

/// What is sent under the name of a vector.
fn sent(name: &str) -> Option<BytesMut> {
    let mut out = BytesMut::new();
    let hop = Ipv4Addr::new(192, 0, 2, 10);
    let mut attrs = Vec::new();
    let mut encoded = |set: &[u8], hop: Option<Ipv4Addr>, four_octet: bool| {
        attr::encode(Canonical(set), hop, four_octet, &mut attrs);
        attrs.clone()
    };
    let plain = EncodeOptions::default();
    let path_ids = EncodeOptions::of(&session("D"));
    match name {
        "open" => Open::new(
            Asn(4_200_000_001),
            90,
            RouterId(0xc000_020a),
            vec![
                Capability::family(Family::Ipv4Unicast),
                Capability::family(Family::Ipv6Unicast),
                Capability::RouteRefresh,
                Capability::FourOctetAs(Asn(4_200_000_001)),
            ],
        )
        .encode(&mut out)
        .unwrap(),
        "open without capabilities" => {
            Open::new(Asn(65010), 0, RouterId(0xc000_020a), Vec::new()).encode(&mut out).unwrap();
        }
        "keepalive" => put_keepalive(&mut out),
        "notification" => {
            Notification::with_text(Reason::AdministrativeShutdown, "maintenance").encode(&mut out);
        }
        "route refresh" => RouteRefresh::new(Family::Ipv6Unicast, RouteRefresh::REQUEST).encode(&mut out),
        "announce ipv4" => {
            let attrs = encoded(&rich(), Some(hop), true);
            let mut writer = UpdateWriter::new(&mut out, plain);
            writer.announce_v4(&attrs, v4(&["203.0.113.0/24", "198.51.100.128/25", "0.0.0.0/0"])).unwrap();
        }
        "announce ipv4 to a 2-octet speaker" => {
            let attrs = encoded(&rich(), Some(hop), false);
            UpdateWriter::new(&mut out, plain).announce_v4(&attrs, v4(&["203.0.113.0/24"])).unwrap();
        }
        "announce ipv4 to an internal peer" => {
            let attrs = encoded(&internal(), Some(hop), true);
            UpdateWriter::new(&mut out, plain).announce_v4(&attrs, v4(&["10.65.0.0/26"])).unwrap();
        }
        "announce ipv4 with path identifiers" => {
            let attrs = encoded(&rich(), Some(hop), true);
            UpdateWriter::new(&mut out, path_ids).announce_v4(&attrs, v4(&["203.0.113.0/24"])).unwrap();
        }
        "announce ipv6" => {
            let attrs = encoded(&rich(), None, true);
            let global = "2001:db8:1::10".parse().unwrap();
            let next_hop = NextHop::V6 { global, link_local: Some("fe80::10".parse().unwrap()) };
            UpdateWriter::new(&mut out, plain)
                .announce_mp(&attrs, next_hop, v6(&["2001:db8:ff::/48", "::/0"]))
                .unwrap();
        }
        "withdraw ipv4" => {
            UpdateWriter::new(&mut out, plain).withdraw_v4(v4(&["203.0.113.0/24", "10.0.0.0/8"]));
        }
        "withdraw ipv6" => {
            UpdateWriter::new(&mut out, plain).withdraw_mp(v6(&["2001:db8:ff::/48"]));
        }
        "announce ipv4-vpn" => {
            let attrs = encoded(&rich(), None, true);
            let key = |rd: &str, net: &str| VpnIpv4Prefix::new(rd.parse().unwrap(), net.parse().unwrap());
            let keys = [key("65000:100", "203.0.113.0/24"), key("4200000001:7", "10.0.0.0/8")];
            let keys = keys.map(|key| (PathId::NONE, key));
            UpdateWriter::new(&mut out, plain)
                .announce_labelled(&attrs, hop.into(), Label::new(100), keys)
                .unwrap();
        }
        "withdraw ipv6-vpn" => {
            let key = VpnIpv6Prefix::new("192.0.2.1:7".parse().unwrap(), "2001:db8:ff::/48".parse().unwrap());
            UpdateWriter::new(&mut out, plain).withdraw_mp([(PathId::NONE, key)]);
        }
        "end of rib ipv6-vpn" => UpdateWriter::new(&mut out, plain).end_of_rib(Family::Ipv6Vpn),
        "end of rib ipv4" => UpdateWriter::new(&mut out, plain).end_of_rib(Family::Ipv4Unicast),
        "end of rib ipv6" => UpdateWriter::new(&mut out, plain).end_of_rib(Family::Ipv6Unicast),
        "announce ipv6-srpolicy" => {
            let attrs = encoded(&sr_policy(&calico(), &[]), None, true);
            let endpoint = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x10);
            let key = SrPolicy6 { distinguisher: 0, color: 4, endpoint };
            UpdateWriter::new(&mut out, plain)
                .announce_mp(&attrs, endpoint.into(), [(PathId::NONE, key)])
                .unwrap();
        }
        "announce ipv4-srpolicy" => {
            let attrs = encoded(&sr_policy(&everything(), &[Community::NO_ADVERTISE]), None, true);
            UpdateWriter::new(&mut out, plain)
                .announce_mp(&attrs, hop.into(), [(PathId::NONE, POLICY)])
                .unwrap();
        }
        "withdraw ipv4-srpolicy" => {
            let path_ids = EncodeOptions::of(&session("P"));
            UpdateWriter::new(&mut out, path_ids).withdraw_mp([(PathId(7), POLICY)]);
        }
        "end of rib ipv4-srpolicy" => UpdateWriter::new(&mut out, plain).end_of_rib(Family::Ipv4SrPolicy),
        _ => return None,
    }
    Some(out)
}

#[test]
fn what_we_send() {
    let mut wrong = Vec::new();
    for vector in load("sent.txt") {
        let sent =
            sent(&vector.name).unwrap_or_else(|| panic!("nothing is sent under the name {}", vector.name));
        let meaning = describe(&sent, &session(&vector.session));
        if sent != vector.octets || meaning != vector.meaning {
            let octets: Vec<String> = sent.chunks(32).map(|chunk| format!("> {}", hex(chunk))).collect();
            wrong.push(format!("[{}]\n{}\n< {}", vector.name, octets.join("\n"), meaning.join("\n< ")));
        }
    }
    assert!(wrong.is_empty(), "these are something else:\n{}", wrong.join("\n"));
}
