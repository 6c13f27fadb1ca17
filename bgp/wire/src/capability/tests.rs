use super::*;
use crate::{open::Open, router_id::RouterId};

/// One of each kind, its octets behind code and length, and how it is shown.
fn samples() -> Vec<(Capability, Vec<u8>, &'static str)> {
    let family = |afi, forwarding| GracefulFamily { afi, safi: 1, forwarding };
    vec![
        (Capability::family(Family::Ipv6Unicast), vec![0, 2, 0, 1], "multiprotocol ipv6-unicast"),
        (Capability::Multiprotocol(25, 70), vec![0, 25, 0, 70], "multiprotocol 25/70"),
        (Capability::RouteRefresh, vec![], "route-refresh"),
        (
            Capability::ExtendedNextHop(vec![
                ExtendedNextHop { afi: 1, safi: 1, next_hop_afi: 2 },
                ExtendedNextHop { afi: 1, safi: 300, next_hop_afi: 7 },
            ]),
            vec![0, 1, 0, 1, 0, 2, 0, 1, 1, 44, 0, 7],
            "extended-next-hop ipv4-unicast:ipv6 1/300:7",
        ),
        (Capability::ExtendedMessage, vec![], "extended-message"),
        (Capability::Role(Role::RouteServerClient), vec![2], "role rs-client"),
        (
            Capability::GracefulRestart(GracefulRestart {
                restarting: true,
                notification: true,
                time: 120,
                families: vec![family(1, true), family(2, false)],
            }),
            vec![0xc0, 120, 0, 1, 1, 0x80, 0, 2, 1, 0],
            "graceful-restart 120 s restarting notification ipv4-unicast:forwarding ipv6-unicast",
        ),
        (Capability::FourOctetAs(Asn(70_000)), vec![0, 1, 0x11, 0x70], "4-octet-as 70000"),
        (
            Capability::AddPath(vec![
                AddPath { afi: 1, safi: 1, receive: true, send: true },
                AddPath { afi: 25, safi: 70, receive: false, send: true },
            ]),
            vec![0, 1, 1, 3, 0, 25, 70, 2],
            "add-path ipv4-unicast:both 25/70:send",
        ),
        (Capability::EnhancedRouteRefresh, vec![], "enhanced-route-refresh"),
        (
            Capability::LongLivedGracefulRestart(vec![LongLivedFamily {
                afi: 1,
                safi: 1,
                forwarding: true,
                stale_time: 3600,
            }]),
            vec![0, 1, 1, 0x80, 0, 14, 16],
            "long-lived-graceful-restart ipv4-unicast:3600 s:forwarding",
        ),
        (
            Capability::Fqdn { host: "leaf".into(), domain: "example.net".into() },
            [&[4][..], b"leaf", &[11], b"example.net"].concat(),
            "fqdn \"leaf.example.net\"",
        ),
        (
            Capability::Fqdn { host: "a\u{7}".into(), domain: "".into() },
            vec![2, b'a', 7, 0],
            "fqdn \"a\\u{7}\"",
        ),
        (
            Capability::SoftwareVersion("FRR 10.3\n".into()),
            [&[9][..], b"FRR 10.3\n"].concat(),
            "software-version \"FRR 10.3\\n\"",
        ),
        (Capability::Unknown { code: 67, value: [].into() }, vec![], "dynamic-capability"),
        (Capability::Unknown { code: 200, value: [1, 0xab].into() }, vec![1, 0xab], "capability 200 01ab"),
    ]
}

#[test]
fn each_kind_goes_there_and_back_and_is_shown() {
    for (capability, octets, shown) in samples() {
        let whole = [&[capability.code(), octets.len() as u8], &octets[..]].concat();
        assert_eq!(capability.to_octets(), Some(whole.clone()), "{shown}");
        assert_eq!(Capability::parse(capability.code(), &octets), capability);
        assert_eq!(Capability::parse_all(&whole), Some(vec![capability.clone()]));
        assert_eq!(Capability::parse_all(&whole[..whole.len() - 1]), None);
        assert_eq!(capability.to_string(), shown);
    }
}

#[test]
fn odd_content_is_kept_and_has_no_effect() {
    let open = |capabilities: Vec<Capability>| Open::new(Asn(1), 90, RouterId(1), capabilities);
    let ours = open(samples().into_iter().map(|(capability, ..)| capability).collect());
    for (code, value) in [
        (MULTIPROTOCOL, &[0, 1, 0][..]),
        (ROUTE_REFRESH, &[1]),
        (EXTENDED_NEXT_HOP, &[0, 1, 0, 1, 0]),
        (EXTENDED_MESSAGE, &[0]),
        (ROLE, &[]),
        (ROLE, &[5]),
        (ROLE, &[0, 0]),
        (GRACEFUL_RESTART, &[]),
        (GRACEFUL_RESTART, &[0]),
        (GRACEFUL_RESTART, &[0, 120, 0, 1, 1]),
        (FOUR_OCTET_AS, &[0, 0, 1]),
        (ADD_PATH, &[0, 1, 1]),
        (ADD_PATH, &[0, 1, 1, 4]),
        (ADD_PATH, &[0, 1, 1, 1, 0, 2, 1, 0]),
        (ENHANCED_ROUTE_REFRESH, &[0]),
        (LONG_LIVED_GRACEFUL_RESTART, &[0, 1, 1, 0x80, 0, 0]),
        (FQDN, &[]),
        (FQDN, &[1, b'a']),
        (FQDN, &[1, 0xff, 0]),
        (FQDN, &[0, 0, 0]),
        (SOFTWARE_VERSION, &[]),
        (SOFTWARE_VERSION, &[0]),
        (SOFTWARE_VERSION, &[9, b'x']),
        (SOFTWARE_VERSION, &[1, 0xc3]),
        (200, &[1]),
    ] {
        let got = Capability::parse(code, value);
        assert_eq!(got, Capability::Unknown { code, value: value.into() });
        let agreed = Negotiated::agree(&ours, &open(vec![got.clone()]));
        assert_eq!(agreed, Negotiated::agree(&ours, &open(vec![])), "{got}");
        assert_eq!(got.to_octets(), Some([&[code, value.len() as u8], value].concat()));
    }
}

#[test]
fn every_prefix_of_every_sample_is_read_without_fault() {
    for (capability, octets, _) in samples() {
        for cut in 0..=octets.len() {
            let got = Capability::parse(capability.code(), &octets[..cut]);
            assert_eq!(got.code(), capability.code());
            assert_eq!(Capability::parse(got.code(), &got.to_octets().unwrap()[2..]), got);
        }
    }
}

#[test]
fn what_does_not_fit_into_a_length_is_refused() {
    let long = "x".repeat(256);
    for capability in [
        Capability::SoftwareVersion("x".repeat(255).into()),
        Capability::SoftwareVersion(long.clone().into()),
        Capability::Fqdn { host: long.into(), domain: "".into() },
        Capability::AddPath(vec![AddPath { afi: 1, safi: 1, receive: true, send: true }; 64]),
    ] {
        assert_eq!(capability.to_octets(), None);
    }
    assert!(Capability::SoftwareVersion("x".repeat(254).into()).to_octets().is_some());
}
