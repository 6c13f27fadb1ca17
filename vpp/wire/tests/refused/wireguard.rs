//! WireGuard, BFD, features, tables: what VPP would take and get wrong.

use std::net::IpAddr;

use ipnet::IpNet;
use vpp_wire::api::bfd::{BfdAuthSetKey, BfdAuthentication, BfdTimers, BfdUdpAdd};
use vpp_wire::api::feature::{FeatureEnableDisable, FeatureIsEnabled, FeatureIsEnabledReply};
use vpp_wire::api::ip::{IpAddressDetails, IpTableFlush};
use vpp_wire::api::vlib::{CliInband, Heal};
use vpp_wire::api::wireguard::{InterfaceCreate, PeerAdd, WireguardInterfaceCreate, WireguardPeerAdd};
use vpp_wire::types::{SwIfIndex, TableId};
use vpp_wire::{FromBytes, IntoBytes, Message, Payload, Refused, Retval};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

#[test]
fn a_wireguard_interface_needs_an_address_a_port_and_a_key() {
    let key = [7; 32];
    let make = |local, port, key| InterfaceCreate::new(ip(local), port, key).map(drop);
    assert_eq!(make("192.0.2.1", 51820, &key), Ok(()));
    assert_eq!(make("0.0.0.0", 51820, &key), Err(Refused::Unspecified(ip("0.0.0.0"))));
    assert_eq!(make("2001:db8::1", 0, &key), Err(Refused::Port(0)));
    assert_eq!(make("192.0.2.1", 51820, &[0; 32]), Err(Refused::Key(32)));
}

#[test]
fn a_key_is_in_the_frame_and_in_no_print() {
    let key = [0xab; 32];
    let create = InterfaceCreate::new(ip("192.0.2.1"), 51820, &key).expect("good");
    let mut out = Vec::new();
    create.encode(&mut out);
    let message = WireguardInterfaceCreate::parse(&out).expect("whole");
    assert_eq!(message.interface().private_key.reveal(), &key);
    assert_eq!(message.interface().listens(), Some((ip("192.0.2.1"), 51820)));
    for printed in [format!("{create:?}"), format!("{message:?}")] {
        assert!(!printed.contains("171") && !printed.contains("ab, "), "{printed}");
    }
}

#[test]
fn a_peer_needs_an_end_and_1_to_255_allowed_ips() {
    let key = [7; 32];
    let allowed = vec![net("10.0.0.1/24"); 256];
    let add = |interface, endpoint, port, key, allowed: &[IpNet]| {
        PeerAdd::new(interface, key, ip(endpoint), port, 25, TableId::DEFAULT, allowed).map(|peer| {
            let mut out = Vec::new();
            peer.encode(&mut out);
            out
        })
    };
    let own = SwIfIndex::new(3);
    let good = add(own, "192.0.2.2", 51820, &key, &allowed[..2]).expect("good");
    assert_eq!(good.len(), 77 + 2 * 18);
    let peer = &WireguardPeerAdd::parse(&good).expect("whole").peer().allowed_ips;
    assert_eq!(peer.iter().map(|prefix| prefix.net()).collect::<Vec<_>>(), [Some(net("10.0.0.0/24")); 2]);
    assert_eq!(add(own, "192.0.2.2", 51820, &key, &allowed[..255]).map(|out| out.len()), Ok(77 + 255 * 18));
    assert_eq!(add(own, "192.0.2.2", 51820, &key, &[]), Err(Refused::AllowedIps(0)));
    assert_eq!(add(own, "192.0.2.2", 51820, &key, &allowed), Err(Refused::AllowedIps(256)));
    assert_eq!(add(SwIfIndex::NONE, "192.0.2.2", 51820, &key, &allowed[..1]), Err(Refused::NoInterface));
    assert_eq!(add(own, "::", 51820, &key, &allowed[..1]), Err(Refused::Unspecified(ip("::"))));
    assert_eq!(add(own, "192.0.2.2", 0, &key, &allowed[..1]), Err(Refused::Port(0)));
    assert_eq!(add(own, "192.0.2.2", 51820, &[0; 32], &allowed[..1]), Err(Refused::Key(32)));
}

/// An address as VPP tells it.
fn told(index: SwIfIndex, prefix: &str) -> IpAddressDetails {
    let net = net(prefix);
    IpAddressDetails {
        head: FromBytes::read_from_bytes(&[0; 6]).expect("six bytes"),
        sw_if_index: index,
        prefix: vpp_wire::types::Prefix::with_host(net),
    }
}

#[test]
fn a_bfd_session_starts_at_an_address_that_vpp_has() {
    let timers = BfdTimers { desired_min_tx: 300_000, required_min_rx: 300_000, detect_mult: 3 };
    let local = told(SwIfIndex::new(1), "192.0.2.1/24");
    let add = |local: &IpAddressDetails, peer, timers| BfdUdpAdd::new(local, ip(peer), timers).map(drop);
    assert_eq!(add(&local, "192.0.2.80", timers), Ok(()));
    assert_eq!(
        add(&local, "2001:db8::1", timers),
        Err(Refused::MixedFamilies(ip("192.0.2.1"), ip("2001:db8::1")))
    );
    assert_eq!(add(&local, "192.0.2.1", timers), Err(Refused::SameEnds(ip("192.0.2.1"))));
    assert_eq!(add(&told(SwIfIndex::NONE, "192.0.2.1/24"), "192.0.2.80", timers), Err(Refused::NoInterface));
    for zero in [
        BfdTimers { desired_min_tx: 0, ..timers },
        BfdTimers { required_min_rx: 0, ..timers },
        BfdTimers { detect_mult: 0, ..timers },
    ] {
        assert_eq!(add(&local, "192.0.2.80", zero), Err(Refused::Timers));
    }
    let key = |secret: &[u8]| BfdAuthSetKey::new(7, BfdAuthentication::KeyedSha1, secret).map(drop);
    assert_eq!(key(b"bfd-test"), Ok(()));
    assert_eq!(key(&[1; 20]), Ok(()));
    assert_eq!(key(&[1; 21]), Err(Refused::Key(21)));
    assert_eq!(key(b""), Err(Refused::Key(0)));
}

#[test]
fn a_feature_is_switched_once_and_only_when_it_is_not_so_already() {
    let question = FeatureIsEnabled::new(SwIfIndex::new(1), "ip4-output", "gso-ip4").expect("short");
    let answer = |retval, on: bool| {
        let mut answer = FeatureIsEnabledReply::read_from_bytes(&[0; 15]).expect("its size");
        answer.retval = Retval::new(retval);
        answer.is_enabled = on.into();
        answer
    };
    let change = |answer, on| {
        FeatureEnableDisable::change(&question, &answer, on).map(|change| {
            assert_eq!(change.arc_name(), &question.arc_name);
            change.enable().is_true()
        })
    };
    assert_eq!(change(answer(0, false), true), Some(true));
    assert_eq!(change(answer(0, true), false), Some(false));
    assert_eq!(change(answer(0, true), true), None);
    assert_eq!(change(answer(0, false), false), None);
    assert_eq!(change(answer(-7, false), true), None);
}

#[test]
fn the_default_table_is_not_flushed() {
    assert_eq!(IpTableFlush::new(TableId::DEFAULT, false).map(drop), Err(Refused::DefaultTable));
    assert_eq!(
        IpTableFlush::new(TableId::new(9), true).map(|flush| flush.table().table_id),
        Ok(TableId::new(9))
    );
}

#[test]
fn the_one_command_line_opens_what_does_not_exist() {
    let mut out = Vec::new();
    Heal.encode(&mut out);
    let command = CliInband::parse(&out).expect("whole").cmd().to_str().into_owned();
    let path = command.strip_prefix("exec ").expect("a script");
    assert!(!std::path::Path::new(path).exists(), "{path}");
    assert_eq!(out.len(), CliInband::parse(&out).expect("whole").as_bytes().len());
}
