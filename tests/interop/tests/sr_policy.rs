//! SR policies with GoBGP, over its gRPC API: what it originates is read, what we originate is read by it, and what goes
//! through it comes out as it went in.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;

use interop::gobgp_api::Api;
use interop::gobgp_api::messages::{
    Any, ExtendedCommunitiesAttribute, Family, IPv4AddressSpecificExtended, NextHopAttribute,
    OriginAttribute, Path, SRBindingSID, SRPolicyNLRI, SRWeight, SRv6EndPointBehavior, SegmentFlags,
    SegmentTypeA, SegmentTypeB, TunnelEncapAttribute, TunnelEncapSubTLVSRBindingSID,
    TunnelEncapSubTLVSRCandidatePathName, TunnelEncapSubTLVSRENLP, TunnelEncapSubTLVSRPreference,
    TunnelEncapSubTLVSRPriority, TunnelEncapSubTLVSRSegmentList, TunnelEncapSubTLVUnknown, TunnelEncapTLV,
};
use interop::raw::{self, Message, Raw};
use serde_json::{Value, json};
use test_support::gobgp::Gobgp;
use test_support::lab::{Host, Lab};
use test_support::programs::{GOBGP, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

const OURS: &str = "192.0.2.1";
const THEIRS: &str = "192.0.2.254";
/// A neighbour of octets, of ours and of GoBGP.
const RAW: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);
const RAW_ASN: u16 = 65077;
/// Another speaker of ours, behind GoBGP.
const BEHIND: &str = "192.0.2.3";
const OUR_V6: &str = "2001:db8:1::1";
const THEIR_V6: &str = "2001:db8:1::fe";
const SID: &str = "fc00:0:1::4";

const V4: Family = Family { afi: 1, safi: 73 };
const V6: Family = Family { afi: 2, safi: 73 };

fn gobgp_config() -> String {
    let neighbor = |address: &str, asn: u32, passive: bool| {
        let family = |name: &str| {
            format!(
                "[[neighbors.afi-safis]]\n  [neighbors.afi-safis.config]\n    afi-safi-name = \"{name}\"\n"
            )
        };
        format!(
            "[[neighbors]]\n  [neighbors.config]\n    neighbor-address = \"{address}\"\n    peer-as = {asn}\n  \
             [neighbors.transport.config]\n    passive-mode = {passive}\n  [neighbors.timers.config]\n    \
             connect-retry = 1\n"
        ) + &family("ipv4-srpolicy")
            + &family("ipv6-srpolicy")
    };
    format!("[global.config]\n  as = 65003\n  router-id = \"{THEIRS}\"\n")
        + &neighbor(OURS, 65010, false)
        + &neighbor(BEHIND, 65011, false)
        + &neighbor(&RAW.to_string(), RAW_ASN.into(), true)
}

fn speaker_config(address: &str, asn: u32, neighbors: &[(&str, u32)], originate: &str) -> String {
    let neighbors: String = neighbors
        .iter()
        .map(|(address, asn)| {
            format!(
                "  - {{ address: {address}, asn: {asn}, connect-retry: 1, \
                 families: [ipv4-srpolicy, ipv6-srpolicy] }}\n"
            )
        })
        .collect();
    format!(
        "asn: {asn}\nrouter-id: {address}\nlisten: [\"{address}:179\"]\nrequire-policy: false\n\
         neighbors:\n{neighbors}{originate}"
    )
}

fn host(lab: &Lab, name: &str, v4: &str, v6: &str) -> Host {
    lab.host(name, &[&format!("{v4}/24"), &format!("{v6}/64")])
}

fn octets(address: &str) -> Vec<u8> {
    address.parse::<Ipv6Addr>().unwrap().octets().to_vec()
}

fn end_dt4() -> SRv6EndPointBehavior {
    SRv6EndPointBehavior { behavior: 19, ..SRv6EndPointBehavior::default() }
}

fn their_path(family: Family, distinguisher: u32, endpoint: Vec<u8>, hop: &str, tlvs: Vec<Any>) -> Path {
    let nlri = SRPolicyNLRI { length: 64 + 8 * endpoint.len() as u32, distinguisher, color: 100, endpoint };
    // For us, who go by this identifier.
    let target = IPv4AddressSpecificExtended {
        is_transitive: true,
        sub_type: 2,
        address: OURS.into(),
        local_admin: 0,
    };
    Path {
        family: Some(family),
        nlri: Some(Any::new(&nlri)),
        pattrs: vec![
            Any::new(&OriginAttribute { origin: 0 }),
            Any::new(&NextHopAttribute { next_hop: hop.into() }),
            Any::new(&ExtendedCommunitiesAttribute { communities: vec![Any::new(&target)] }),
            Any::new(&TunnelEncapAttribute { tlvs: vec![TunnelEncapTLV { r#type: 15, tlvs }] }),
        ],
        ..Path::default()
    }
}

fn binding_sid(sid: Vec<u8>) -> Any {
    let bsid = Some(Any::new(&SRBindingSID { s_flag: true, i_flag: true, sid }));
    Any::new(&TunnelEncapSubTLVSRBindingSID { bsid })
}

fn segment_list(weight: u32, segments: Vec<Any>) -> Any {
    Any::new(&TunnelEncapSubTLVSRSegmentList { weight: Some(SRWeight { flags: 0, weight }), segments })
}

fn preference_and_priority(preference: u32, priority: u32) -> [Any; 2] {
    [
        Any::new(&TunnelEncapSubTLVSRPreference { flags: 0, preference }),
        Any::new(&TunnelEncapSubTLVSRPriority { priority }),
    ]
}

/// An IPv4 policy with everything that MPLS has.
fn their_v4() -> Path {
    let flags = |v_flag| Some(SegmentFlags { v_flag, ..SegmentFlags::default() });
    let a = |label: u32, v_flag| Any::new(&SegmentTypeA { flags: flags(v_flag), label });
    let tlvs = [
        binding_sid(16100u32.to_be_bytes().to_vec()),
        segment_list(7, vec![a(16001 << 12 | 255, true), a(16002 << 12 | 7 << 9 | 64, false)]),
        segment_list(1, vec![a(16003 << 12, false)]),
        Any::new(&TunnelEncapSubTLVSRENLP { flags: 0, enlp: 3 }),
        Any::new(&TunnelEncapSubTLVSRCandidatePathName { candidate_path_name: "their path".into() }),
    ];
    let tlvs = tlvs.into_iter().chain(preference_and_priority(11, 10)).collect();
    their_path(V4, 1, vec![192, 0, 2, 9], THEIRS, tlvs)
}

/// An IPv6 policy with everything that SRv6 has, what GoBGP knows as octets included.
fn their_v6() -> Path {
    let flags = Some(SegmentFlags { s_flag: true, ..SegmentFlags::default() });
    let behavior = SRv6EndPointBehavior { block_len: 32, node_len: 16, func_len: 16, ..end_dt4() };
    let b = |sid, endpoint_behavior_structure| {
        Any::new(&SegmentTypeB { flags, sid: octets(sid), endpoint_behavior_structure })
    };
    let srv6 = [&[0xe0, 0][..], &octets("fc00::5"), &[0, 14, 0, 0, 32, 16, 16, 0]].concat();
    let tlvs = [
        binding_sid(octets(SID)),
        Any::new(&TunnelEncapSubTLVUnknown { r#type: 20, value: srv6 }),
        segment_list(12, vec![b("fc00:0:2::", None), b(SID, Some(behavior))]),
        Any::new(&TunnelEncapSubTLVUnknown { r#type: 130, value: b"\0gold".to_vec() }),
    ];
    let tlvs = tlvs.into_iter().chain(preference_and_priority(12, 200)).collect();
    their_path(V6, 2, octets(THEIR_V6), THEIR_V6, tlvs)
}

fn a(text: &str, flags: Option<&str>, label: u32, class: u8, ttl: u8) -> Value {
    let mut segment =
        json!({ "text": text, "type": "A", "label": label, "traffic-class": class, "ttl": ttl });
    if let Some(flags) = flags {
        segment["flags"] = flags.into();
    }
    segment
}

#[test]
fn what_gobgp_originates_is_read() {
    if !available("interop gobgp sr-policy originated there", &[GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let gobgp = Gobgp::start(&host(lab, "theirs", THEIRS, THEIR_V6), &gobgp_config());
        let config = speaker_config(OURS, 65010, &[(THEIRS, 65003)], "");
        let speaker = Speaker::start(&host(lab, "ours", OURS, OUR_V6), &config);
        gobgp.await_established(OURS);
        let api = Api::new(gobgp.api());
        api.add_path(their_v4()).unwrap();
        api.add_path(their_v6()).unwrap();

        let route = speaker.await_route("ipv4-srpolicy", "1:100:192.0.2.9");
        let path = &route["paths"][0];
        assert_eq!((&path["next-hop"], &path["as-path"]), (&THEIRS.into(), &"65003".into()), "{route}");
        assert_eq!(path["communities"], json!([format!("rt:{OURS}:0")]), "{route}");
        let expected = json!({
            "distinguisher": 1, "color": 100, "endpoint": "192.0.2.9", "usable": true,
            "preference": 11, "priority": 10, "name": "their path", "explicit-null": "both",
            "binding-sid": { "sid": "16100", "specified-only": true, "drop-upon-invalid": true },
            "segment-lists": [
                { "weight": 7, "segments": [
                    a("label 16001", Some("V"), 16001, 0, 255), a("label 16002", None, 16002, 7, 64),
                ] },
                { "weight": 1, "segments": [a("label 16003", None, 16003, 0, 0)] },
            ],
        });
        assert_eq!(path["sr-policy"], expected, "{route}");

        let route = speaker.await_route("ipv6-srpolicy", &format!("2:100:{THEIR_V6}"));
        let path = &route["paths"][0];
        assert_eq!(path["next-hop"], THEIR_V6, "over an IPv4 session: {route}");
        let structure = json!([32, 16, 16, 0]);
        let expected = json!({
            "distinguisher": 2, "color": 100, "endpoint": THEIR_V6, "usable": true,
            "preference": 12, "priority": 200, "policy-name": "gold",
            "binding-sid": { "sid": SID, "specified-only": true, "drop-upon-invalid": true },
            "srv6-binding-sids": [{
                "sid": "fc00::5", "specified-only": true, "drop-upon-invalid": true,
                "behavior": { "text": "End.B6.Encaps/32/16/16/0", "code": 14, "structure": structure },
            }],
            "segment-lists": [{ "weight": 12, "segments": [
                { "text": "fc00:0:2::", "type": "B", "flags": "S", "sid": "fc00:0:2::" },
                { "text": format!("{SID} End.DT4/32/16/16/0"), "type": "B", "flags": "S", "sid": SID,
                  "behavior": { "text": "End.DT4/32/16/16/0", "code": 19, "structure": structure } },
            ] }],
        });
        assert_eq!(path["sr-policy"], expected, "{route}");

        api.delete_path(their_v4()).unwrap();
        speaker.await_no_route("ipv4-srpolicy", "1:100:192.0.2.9");
        speaker.await_route("ipv6-srpolicy", &format!("2:100:{THEIR_V6}"));
    });
}

/// What we originate, without names.
const ORIGINATE: &str = "originate:
  - sr-policy:
      distinguisher: 7
      color: 100
      endpoint: 192.0.2.9
      preference: 200
      priority: 10
      explicit-null: ipv6
      binding-sid: { sid: 16100, specified-only: true }
      segment-lists:
        - { weight: 2, segments: [16001, { label: 16002, traffic-class: 7, ttl: 64, flags: V }] }
        - { segments: [16003] }
    communities: [\"65010:73\"]
  - sr-policy:
      color: 4
      endpoint: 2001:db8:1::1
      preference: 11
      priority: 10
      binding-sid: { sid: \"fc00:0:1::4\", specified-only: true, drop-upon-invalid: true }
      srv6-binding-sids: [{ sid: \"fc00::5\", behavior: End.B6.Encaps, structure: 32/16/16/0 }]
      segment-lists:
        - weight: 12
          segments: [\"fc00:0:2::\", { sid: \"fc00:0:1::4\", behavior: End.DT4, flags: S }]
  - { sr-policy: { distinguisher: 1, color: 4, endpoint: 2001:db8:1::1, segment-lists: [{ segments: [\"fc00:0:1::6\"] }] } }
";

/// The paths of GoBGP's table by NLRI, once there are so many.
fn listed(api: &Api, family: Family, count: usize) -> BTreeMap<(u32, u32), Path> {
    wait::until(&format!("GoBGP has {count} policies of AFI {}", family.afi), || {
        let table = api.list_paths(family)?;
        if table.len() != count {
            return Err(format!("{table:?}"));
        }
        let paths = table.into_iter().flat_map(|destination| destination.paths);
        Ok(paths
            .map(|path| {
                let nlri: SRPolicyNLRI = path.nlri.as_ref().and_then(Any::get).unwrap();
                ((nlri.distinguisher, nlri.color), path)
            })
            .collect())
    })
}

fn sub_tlvs(path: &Path) -> Vec<Any> {
    let attribute: TunnelEncapAttribute = path.pattrs.iter().find_map(Any::get).unwrap();
    assert_eq!(attribute.tlvs.len(), 1);
    assert_eq!(attribute.tlvs[0].r#type, 15);
    attribute.tlvs[0].tlvs.clone()
}

#[test]
fn what_we_originate_is_read_by_gobgp() {
    if !available("interop gobgp sr-policy originated here", &[GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let gobgp = Gobgp::start(&host(lab, "theirs", THEIRS, THEIR_V6), &gobgp_config());
        let ours = host(lab, "ours", OURS, OUR_V6);
        let mut speaker = Speaker::start(&ours, &speaker_config(OURS, 65010, &[(THEIRS, 65003)], ORIGINATE));
        gobgp.await_established(OURS);
        let api = Api::new(gobgp.api());

        let four = listed(&api, V4, 1);
        let path = &four[&(7, 100)];
        let nlri = path.nlri.as_ref().and_then(Any::get);
        let endpoint = vec![192, 0, 2, 9];
        assert_eq!(nlri, Some(SRPolicyNLRI { length: 12, distinguisher: 7, color: 100, endpoint }));
        let flags = |v_flag| Some(SegmentFlags { v_flag, ..SegmentFlags::default() });
        let a = |label: u32, v_flag| Any::new(&SegmentTypeA { flags: flags(v_flag), label });
        let bsid = |i_flag, sid| {
            let bsid = Some(Any::new(&SRBindingSID { s_flag: true, i_flag, sid }));
            Any::new(&TunnelEncapSubTLVSRBindingSID { bsid })
        };
        let expected = [
            // As it stands in the message, shifted.
            bsid(false, (16100u32 << 12).to_be_bytes().to_vec()),
            segment_list(2, vec![a(16001 << 12 | 255, false), a(16002 << 12 | 7 << 9 | 64, true)]),
            segment_list(1, vec![a(16003 << 12 | 255, false)]),
            Any::new(&TunnelEncapSubTLVSRENLP { flags: 0, enlp: 2 }),
        ];
        let expected: Vec<_> = expected.into_iter().chain(preference_and_priority(200, 10)).collect();
        assert_eq!(sub_tlvs(path), expected);

        let six = listed(&api, V6, 2);
        let path = &six[&(0, 4)];
        let nlri = path.nlri.as_ref().and_then(Any::get);
        let endpoint = octets(OUR_V6);
        assert_eq!(nlri, Some(SRPolicyNLRI { length: 24, distinguisher: 0, color: 4, endpoint }));
        let b = |s_flag, sid, endpoint_behavior_structure| {
            let flags = Some(SegmentFlags { s_flag, ..SegmentFlags::default() });
            Any::new(&SegmentTypeB { flags, sid: octets(sid), endpoint_behavior_structure })
        };
        let srv6 = [&[0x20, 0][..], &octets("fc00::5"), &[0, 14, 0, 0, 32, 16, 16, 0]].concat();
        let expected = [
            bsid(true, octets(SID)),
            Any::new(&TunnelEncapSubTLVUnknown { r#type: 20, value: srv6 }),
            segment_list(12, vec![b(false, "fc00:0:2::", None), b(true, SID, Some(end_dt4()))]),
        ];
        let expected: Vec<_> = expected.into_iter().chain(preference_and_priority(11, 10)).collect();
        assert_eq!(sub_tlvs(path), expected);
        let expected = [
            segment_list(1, vec![b(false, "fc00:0:1::6", None)]),
            preference_and_priority(100, 0)[0].clone(),
        ];
        assert_eq!(sub_tlvs(&six[&(1, 4)]), expected);

        // Only the second IPv6 policy stays.
        let (head, last) = ORIGINATE.split_at(ORIGINATE.rfind("  - {").unwrap());
        let head = head.lines().next().unwrap();
        speaker.reload(&speaker_config(OURS, 65010, &[(THEIRS, 65003)], &format!("{head}\n{last}")));
        listed(&api, V4, 0);
        assert_eq!(listed(&api, V6, 1).into_keys().collect::<Vec<_>>(), [(1, 4)]);
    });
}

fn open() -> Vec<u8> {
    let mut body = vec![4];
    body.extend(RAW_ASN.to_be_bytes());
    body.extend([0, 90]);
    body.extend(RAW.octets());
    let capabilities = [1, 4, 0, 1, 0, 73, 1, 4, 0, 2, 0, 73, 2, 0, 65, 4, 0, 0, 0xfe, 0x35];
    body.extend([capabilities.len() as u8 + 2, 2, capabilities.len() as u8]);
    body.extend(capabilities);
    raw::message(1, &body)
}

/// NLRI and TUNNEL_ENCAPSULATION of an UPDATE that announces a policy.
fn announced(message: &Message) -> Option<(Vec<u8>, Vec<u8>)> {
    if message.kind != 2 {
        return None;
    }
    let (_, mut rest) = message.body.split_at_checked(4)?;
    let (mut nlri, mut tunnels) = (None, None);
    while let [flags, code, after @ ..] = rest {
        let (length, after) = if flags & 0x10 == 0 {
            let (length, after) = after.split_first()?;
            (usize::from(*length), after)
        } else {
            let (length, after) = after.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), after)
        };
        let (value, after) = after.split_at_checked(length)?;
        match code {
            // AFI, SAFI, next hop and a reserved octet stand before it.
            14 => nlri = value.get(5 + usize::from(*value.get(3)?)..).map(<[u8]>::to_vec),
            23 => tunnels = Some(value.to_vec()),
            _ => {}
        }
        rest = after;
    }
    Some((nlri?, tunnels?))
}

/// What a neighbour of octets hears of policies, until it has heard of so many.
fn heard(address: &str, count: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let to = SocketAddr::from((address.parse::<Ipv4Addr>().unwrap(), 179));
    let mut raw = Raw::connect(RAW, to);
    raw.establish(&open());
    let mut policies = BTreeMap::new();
    while policies.len() < count {
        policies.extend(announced(&raw.hear()));
    }
    policies
}

fn raw_address() {
    let done = Command::new("ip").args(["addr", "add", &format!("{RAW}/24"), "dev", "br0"]).status();
    assert!(done.expect("iproute2 is installed").success());
}

#[test]
fn what_goes_through_gobgp_comes_out_as_it_went_in() {
    if !available("interop gobgp sr-policy reflected", &[GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let gobgp = Gobgp::start(&host(lab, "theirs", THEIRS, THEIR_V6), &gobgp_config());
        let raw = RAW.to_string();
        let neighbors = [(THEIRS, 65003), (&*raw, RAW_ASN.into())];
        let config = speaker_config(OURS, 65010, &neighbors, ORIGINATE);
        let speaker = Speaker::start(&host(lab, "ours", OURS, OUR_V6), &config);
        let behind = speaker_config(BEHIND, 65011, &[(THEIRS, 65003)], "");
        let behind = Speaker::start(&host(lab, "behind", BEHIND, "2001:db8:1::3"), &behind);
        raw_address();
        gobgp.await_established(OURS);
        gobgp.await_established(BEHIND);
        listed(&Api::new(gobgp.api()), V6, 2);

        let direct = heard(OURS, 3);
        assert_eq!(heard(THEIRS, 3), direct);
        // What a Calico/VPP node sends was written down; this is more, so it is compared with what we mean.
        for (family, policy) in [
            ("ipv4-srpolicy", "7:100:192.0.2.9"),
            ("ipv6-srpolicy", "0:4:2001:db8:1::1"),
            ("ipv6-srpolicy", "1:4:2001:db8:1::1"),
        ] {
            let (sent, received) = (speaker.await_route(family, policy), behind.await_route(family, policy));
            assert_eq!(received["paths"][0]["sr-policy"], sent["paths"][0]["sr-policy"]);
            assert_eq!(received["paths"][0]["as-path"], "65003 65010");
            // Always 16 octets in AFI 2.
            let hop = if family == "ipv4-srpolicy" { THEIRS.into() } else { format!("::ffff:{THEIRS}") };
            assert_eq!(received["paths"][0]["next-hop"], hop);
        }
    });
}

/// GoBGP reads three octets beyond a candidate path's name: it must not end at that, and the rest must be right.
#[test]
fn a_name_grows_on_its_way_through_gobgp() {
    if !available("interop gobgp sr-policy with a name", &[GOBGP, IP]) {
        return;
    }
    Lab::run(|lab| {
        let gobgp = Gobgp::start(&host(lab, "theirs", THEIRS, THEIR_V6), &gobgp_config());
        let originate = "originate: [{ sr-policy: { color: 100, endpoint: 192.0.2.9, name: path, policy-name: gold, \
                         segment-lists: [{ segments: [16001] }] } }]\n";
        let config = speaker_config(OURS, 65010, &[(THEIRS, 65003)], originate);
        let _speaker = Speaker::start(&host(lab, "ours", OURS, OUR_V6), &config);
        let behind = speaker_config(BEHIND, 65011, &[(THEIRS, 65003)], "");
        let behind = Speaker::start(&host(lab, "behind", BEHIND, "2001:db8:1::3"), &behind);
        let route = behind.await_route("ipv4-srpolicy", "0:100:192.0.2.9");
        let policy = &route["paths"][0]["sr-policy"];
        // Type and length of the preference, and its flags.
        assert_eq!(policy["name"], "path\u{c}\u{6}\0", "{route}");
        assert_eq!(policy["policy-name"], "gold", "{route}");
        assert_eq!(policy["preference"], 100, "{route}");
        assert_eq!(policy["segment-lists"][0]["segments"][0]["label"], 16001, "{route}");
        listed(&Api::new(gobgp.api()), V4, 1);
    });
}
