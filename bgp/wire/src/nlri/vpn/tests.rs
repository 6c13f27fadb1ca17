use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn label(value: u32) -> Option<Label> {
    Label::new(value)
}

/// RFC 4364 section 4.3.4 by hand: label 0x12345, RD 65000:100, 203.0.113.0/24.
const OCTETS: [u8; 15] = [112, 0x12, 0x34, 0x51, 0, 0, 0xfd, 0xe8, 0, 0, 0, 100, 203, 0, 113];

#[test]
fn the_length_counts_label_distinguisher_and_prefix() {
    let key =
        VpnIpv4Prefix::new(RouteDistinguisher::two_octet_as(65000, 100), "203.0.113.0/24".parse().unwrap());
    assert_eq!(VpnIpv4Prefix::split_first(&OCTETS), Some((key, label(0x1_2345), &[][..])));
    let mut out = [0; 32];
    assert_eq!(key.write(label(0x1_2345), &mut out), OCTETS.len());
    assert_eq!(out[..OCTETS.len()], OCTETS);
    // The default route of a VPN is all head.
    let (default, _, rest) =
        VpnIpv6Prefix::split_first(&[88, 0, 0, 0x31, 0, 1, 192, 0, 2, 1, 0, 5, 88]).unwrap();
    assert_eq!((default.to_string().as_str(), rest), ("192.0.2.1:5:::/0", &[88][..]));
    assert_eq!(default.rd, RouteDistinguisher::ipv4(Ipv4Addr::new(192, 0, 2, 1), 5));
}

#[test]
fn bits_behind_the_length_have_no_meaning() {
    let mut octets = OCTETS;
    octets[0] = 88 + 20;
    assert_eq!(VpnIpv4Prefix::split_first(&octets).unwrap().0.to_string(), "65000:100:203.0.112.0/20");
}

#[test]
fn a_withdrawal_has_a_label_that_means_nothing() {
    let (key, ..) = VpnIpv4Prefix::split_first(&OCTETS).unwrap();
    let mut out = [0; 32];
    key.write(None, &mut out);
    assert_eq!(out[1..4], [0x80, 0, 0]);
    for (high, low) in [(0x80, 0), (0, 0), (0x12, 0x51)] {
        let mut octets = OCTETS;
        (octets[1], octets[3]) = (high, low);
        assert_eq!(VpnIpv4Prefix::split_first(&octets).unwrap().0, key, "one key, whatever its label");
    }
}

#[test]
fn too_short_for_its_head_too_long_or_cut_off_is_no_prefix() {
    for bits in 0..=255 {
        let field = [&[bits][..], &[0; 40]].concat();
        assert_eq!(VpnIpv4Prefix::split_first(&field).is_some(), (88..=88 + 32).contains(&bits), "{bits}");
        assert_eq!(VpnIpv6Prefix::split_first(&field).is_some(), (88..=88 + 128).contains(&bits), "{bits}");
    }
    for cut in 0..OCTETS.len() {
        assert_eq!(VpnIpv4Prefix::split_first(&OCTETS[..cut]), None, "{cut}");
        assert_eq!(VpnIpv6Prefix::split_first(&OCTETS[..cut]), None, "{cut}");
    }
}

#[test]
fn reads_and_shows_prefixes_of_vpns() {
    for text in [
        "65000:100:203.0.113.0/24",
        "192.0.2.1:7:0.0.0.0/0",
        "4200000000:1:2001:db8::/32",
        "0.1:1:::/0",
        "0x0003000000000001:10.0.0.0/8",
    ] {
        assert_eq!(text.parse::<Nlri>().unwrap().to_string(), text);
    }
    let host_bits = "65000:100:203.0.113.1/24".parse::<Nlri>().unwrap_err();
    assert!(matches!(host_bits, NlriParseError::HostBits(..)), "{host_bits}");
    for text in ["65000:100:", "65000:100", "1:2:3:4:10.0.0.0/8", "1:2:3:4:2001:db8::/32"] {
        assert!(text.parse::<Nlri>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn v4_goes_there_and_back(rd: u64, addr: u32, len in 0u8..=32, value in 0..=Label::MAX, behind: Vec<u8>) {
        let rd = RouteDistinguisher::from_octets(rd.to_be_bytes());
        let key = VpnIpv4Prefix { rd, prefix: Ipv4Prefix::new(addr, len).unwrap() };
        let mut octets = [0; 32];
        let count = key.write(label(value), &mut octets);
        prop_assert!(count <= VpnIpv4Prefix::MAX_ENCODED);
        let field = [&octets[..count], &behind].concat();
        prop_assert_eq!(VpnIpv4Prefix::split_first(&field), Some((key, label(value), &behind[..])));
        prop_assert_eq!(VpnIpv4Prefix::of(key.into()), Some(key));
        prop_assert_eq!(key.to_string().parse(), Ok(Nlri::from(key)));
    }

    #[test]
    fn v6_goes_there_and_back(rd: u64, addr: u128, len in 0u8..=128, value in 0..=Label::MAX, behind: Vec<u8>) {
        let rd = RouteDistinguisher::from_octets(rd.to_be_bytes());
        let key = VpnIpv6Prefix { rd, prefix: Ipv6Prefix::new(addr, len).unwrap() };
        let mut octets = [0; 32];
        let count = key.write(label(value), &mut octets);
        prop_assert!(count <= VpnIpv6Prefix::MAX_ENCODED);
        let field = [&octets[..count], &behind].concat();
        prop_assert_eq!(VpnIpv6Prefix::split_first(&field), Some((key, label(value), &behind[..])));
        prop_assert_eq!(VpnIpv6Prefix::of(key.into()), Some(key));
        prop_assert_eq!(Nlri::parse_as(Family::Ipv6Vpn, &key.to_string()), Ok(Nlri::from(key)));
    }
}
