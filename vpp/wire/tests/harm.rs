//! Every way of hurting a VPP that is known, one test for each, in the order of their harm: what ends it, what stops it, what it takes
//! and gets wrong. Each is impossible to express, or refused where it is built, or refused unsent by the client until the
//! connection has told that it does no harm (`beforehand`; that the client keeps to it is tested there).
//!
//! What only a client can do wrong is tested in `vpp-client`: a window of at most 200 requests (`window`), reading while
//! writing and a farewell on every way out (`leaving`), whole frames only (`leaving`, `reconnect`).

use std::marker::PhantomData;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use vpp_wire::api::bfd::{BfdTimers, BfdUdpAdd};
use vpp_wire::api::cnat::{CnatSetSnatAddressesV2, CnatSnatPolicyAddDelExcludePfx};
use vpp_wire::api::ikev2::{Ikev2SetEspTransforms, Ikev2SetIkeTransforms};
use vpp_wire::api::ip::{IpAddressDetails, IpRouteAddDel, IpTableFlush, RouteReplace};
use vpp_wire::api::ipip::IpipAddTunnel;
use vpp_wire::api::sr::{
    SrBehavior, SrLocalsidAddDel, SrLocalsidAddDelV2, SrPolicyAdd, SrPolicyMod, SrSteeringAddDel, Srv6SidList,
};
use vpp_wire::api::vxlan::{VxlanAddDelTunnelV3, VxlanTunnel};
use vpp_wire::api::wireguard::PeerAdd;
use vpp_wire::api::{cnat, ipsec, npol};
use vpp_wire::beforehand::{NEEDS, RULES};
use vpp_wire::types::{
    AddressFamily, FibMplsLabel, FibPath, FibSourceId, FibTarget, MAX_PATHS, SwIfIndex, TableId,
};
use vpp_wire::{FromBytes, IntoBytes, Payload, Refused, Request, frame};

/// Whether a message can be sent as a request: `Probe::<M>::CAN_BE_SENT` is the inherent constant where `M` is a request,
/// and the trait's where it is not.
struct Probe<M: ?Sized>(PhantomData<M>);

trait Otherwise {
    const CAN_BE_SENT: bool = false;
}

impl<M: ?Sized> Otherwise for Probe<M> {}

impl<M: Request + ?Sized> Probe<M> {
    const CAN_BE_SENT: bool = true;
}

fn looks_first(request: &str) -> bool {
    RULES.iter().any(|rule| rule.request == request)
}

fn must_be_told(request: &str) -> bool {
    NEEDS.iter().any(|needs| needs.message == request)
}

fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

const SID: Ipv6Addr = Ipv6Addr::LOCALHOST;
const OWN: FibSourceId = FibSourceId::new(26);

mod ends_it {
    use super::*;

    #[test]
    fn source_translation_before_its_addresses() {
        assert!(looks_first("cnat_set_snat_policy"));
        assert!(looks_first("cnat_snat_policy_add_del_exclude_pfx"));
    }

    /// The index is none of the caller's choice: it is that of the default tables.
    #[test]
    fn source_translation_in_a_table_that_does_not_exist() {
        let addresses = CnatSetSnatAddressesV2::new(Some([192, 0, 2, 1].into()), None).expect("good");
        assert_eq!((addresses.fwd_fib_index().get(), addresses.ret_fib_index().get()), (0, 0));
    }

    #[test]
    fn a_translation_without_paths() {
        const { assert!(!Probe::<cnat::CnatTranslationUpdate>::CAN_BE_SENT) };
        const { assert!(Probe::<cnat::CnatSetSnatAddresses>::CAN_BE_SENT, "the probe tells apart") };
    }

    #[test]
    fn an_empty_list_of_segments() {
        assert_eq!(Srv6SidList::new(&[], 1).map(drop), Err(Refused::Sids(0)));
        const { assert!(!Probe::<SrPolicyAdd>::CAN_BE_SENT && !Probe::<SrPolicyMod>::CAN_BE_SENT) };
    }

    #[test]
    fn steering_in_a_table_that_does_not_exist() {
        assert!(looks_first("sr_steering_add_del"));
        assert!(must_be_told("sr_steering_add_del"));
    }

    #[test]
    fn a_local_sid_with_a_behaviour_that_is_none() {
        for behavior in (0..=u8::MAX).map(SrBehavior::new) {
            let built = SrLocalsidAddDel::add(SID, behavior).map(drop);
            let known = behavior == SrBehavior::DT4 || behavior == SrBehavior::DT6;
            assert_eq!(built, if known { Ok(()) } else { Err(Refused::Behavior(behavior.value())) });
        }
        const { assert!(!Probe::<SrLocalsidAddDelV2>::CAN_BE_SENT) };
    }

    #[test]
    fn an_association_whose_key_does_not_fit() {
        const { assert!(!Probe::<ipsec::IpsecSadEntryAddV2>::CAN_BE_SENT) };
        const { assert!(!Probe::<ipsec::IpsecSadEntryAdd>::CAN_BE_SENT) };
        const { assert!(!Probe::<ipsec::IpsecSadEntryUpdate>::CAN_BE_SENT) };
    }

    /// Paths are made from what they lead to, and nothing there is an encapsulation; the request that other sources use has
    /// no sender.
    #[test]
    fn a_path_into_an_unknown_encapsulation() {
        const { assert!(!Probe::<IpRouteAddDel>::CAN_BE_SENT) };
        let targets = [
            FibTarget::Via(SwIfIndex::new(1), ip("192.0.2.1")),
            FibTarget::Attached(SwIfIndex::new(1)),
            FibTarget::Recursive(TableId::DEFAULT, ip("192.0.2.1")),
            FibTarget::Lookup(TableId::DEFAULT),
            FibTarget::Drop,
            FibTarget::Unreachable,
            FibTarget::Prohibited,
            FibTarget::Local,
        ];
        // VPP's number of UDP_ENCAP, where a path says its type.
        let udp_encap = 4_u32.to_be_bytes();
        for target in targets {
            let path = FibPath::new(target, AddressFamily::IP4).expect("good");
            assert_ne!(path.as_bytes()[11..15], udp_encap, "{target:?}");
        }
    }

    #[test]
    fn policies_whose_counts_do_not_add_up() {
        const { assert!(!Probe::<npol::NpolConfigurePolicies>::CAN_BE_SENT) };
    }

    /// A frame's length is written by whoever has just counted it.
    #[test]
    fn a_length_beyond_what_follows() {
        for length in [0, 1, 500, 70_000] {
            let mut frames = b"before".to_vec();
            frame::push(&mut frames, |out| out.resize(out.len() + length, 7));
            let header = &frames[6..6 + frame::HEADER];
            assert_eq!(header[8..12], u32::try_from(length).expect("short").to_be_bytes());
            assert_eq!(frames.len(), 6 + frame::HEADER + length);
        }
    }
}

mod is_taken_and_goes_wrong {
    use super::*;

    #[test]
    fn flushing_the_table_of_the_uplink() {
        assert_eq!(IpTableFlush::new(TableId::DEFAULT, false).map(drop), Err(Refused::DefaultTable));
    }

    #[test]
    fn more_than_16_segments() {
        assert_eq!(Srv6SidList::new(&[SID; 17], 1).map(drop), Err(Refused::Sids(17)));
        // The older forms, which take a list without its checks, have private fields and no constructor; they can be read.
        assert!(
            SrPolicyAdd::read_from_bytes(&[0; 3]).is_err() && SrPolicyMod::read_from_bytes(&[0; 3]).is_err()
        );
    }

    #[test]
    fn a_number_of_a_network_that_does_not_fit() {
        let tunnel = VxlanTunnel {
            local: ip("192.0.2.1"),
            remote: ip("192.0.2.2"),
            port: 4789,
            vni: 1 << 24,
            table: TableId::DEFAULT,
        };
        assert_eq!(VxlanAddDelTunnelV3::add(&tunnel, 1).map(drop), Err(Refused::Vni(1 << 24)));
    }

    /// A prefix has the type of prefixes, which has none that is longer than its address.
    #[test]
    fn a_length_of_a_prefix_that_does_not_fit() {
        assert!("10.0.0.0/33".parse::<IpNet>().is_err() && "::/129".parse::<IpNet>().is_err());
        let mut bytes = Vec::new();
        CnatSnatPolicyAddDelExcludePfx::new(net("10.1.2.3/32"), true).encode(&mut bytes);
        assert_eq!(bytes.last(), Some(&32));
    }

    #[test]
    fn more_than_16_labels() {
        let path = FibPath::new(FibTarget::Local, AddressFamily::IP4).expect("good");
        let label = FibMplsLabel::read_from_bytes(&[0; size_of::<FibMplsLabel>()]).expect("whole");
        assert_eq!(path.labelled(&[label; 17]).map(drop), Err(Refused::Labels(17)));
    }

    #[test]
    fn host_bits_in_a_prefix() {
        let paths = [FibPath::new(FibTarget::Drop, AddressFamily::IP4).expect("good")];
        let dirty = net("10.0.0.1/8");
        let refused = Err(Refused::HostBits(dirty.addr(), 8));
        assert_eq!(RouteReplace::new(TableId::DEFAULT, dirty, OWN, &paths).map(drop), refused);
        assert_eq!(SrSteeringAddDel::add(TableId::DEFAULT, dirty, SID).map(drop), refused);
        // Where VPP masks nothing and a set is meant, they are cleared.
        let mut peer = Vec::new();
        let (interface, key) = (SwIfIndex::new(1), [7; 32]);
        PeerAdd::new(interface, &key, ip("192.0.2.2"), 51820, 0, TableId::DEFAULT, &[dirty])
            .expect("good")
            .encode(&mut peer);
        assert_eq!(peer[peer.len() - 18..], *b"\0\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08");
    }

    #[test]
    fn a_source_that_nobody_has_made() {
        assert!(must_be_told("ip_route_add_del_v2"));
    }

    /// The inner table is the default one, which always exists.
    #[test]
    fn a_local_sid_with_an_unknown_table() {
        let sid = SrLocalsidAddDel::add(SID, SrBehavior::DT4).expect("good");
        assert_eq!((*sid.fib_table(), sid.sw_if_index().value()), (TableId::DEFAULT, 0));
    }

    /// The address of a session is one that VPP has told, with the interface that it is on.
    #[test]
    fn a_session_from_an_address_that_is_not_there() {
        let told = IpAddressDetails::read_from_bytes(&[0; size_of::<IpAddressDetails>()]).expect("whole");
        let timers = BfdTimers { desired_min_tx: 1, required_min_rx: 1, detect_mult: 3 };
        assert!(
            BfdUdpAdd::new(&told, ip("192.0.2.2"), timers)
                .is_ok_and(|add| add.sw_if_index() == &told.sw_if_index)
        );
        assert!(looks_first("bfd_udp_add"));
    }

    #[test]
    fn a_tunnel_from_an_address_that_is_not_there() {
        assert!(must_be_told("ipip_add_tunnel"));
        let (a, b) = (ip("192.0.2.1"), ip("2001:db8::1"));
        assert_eq!(IpipAddTunnel::new(a, b, TableId::DEFAULT).map(drop), Err(Refused::MixedFamilies(a, b)));
    }

    #[test]
    fn a_responder_on_an_unknown_interface() {
        assert!(must_be_told("ikev2_set_responder"));
    }

    /// No numbers of algorithms are taken from anybody: there is one agreed set, of IANA's numbers (RFC 7296, 3.3.2).
    #[test]
    fn algorithms_that_are_none() {
        let name = vpp_wire::api::ikev2::profile_name("pr").expect("good");
        let ike = Ikev2SetIkeTransforms::agreed(name);
        // ENCR_AES_CBC with 256 bits, AUTH_HMAC_SHA1_96, PRF_HMAC_SHA2_256, the group of 2048 bits.
        assert_eq!(ike.as_bytes()[74..], [12, 0, 0, 1, 0, 2, 5, 14]);
        // ENCR_AES_GCM_16 with 256 bits, which needs no AUTH.
        let esp = Ikev2SetEspTransforms::agreed(name);
        assert_eq!(esp.as_bytes()[74..], [20, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_second_interface_on_the_same_port() {
        assert!(looks_first("wireguard_interface_create"));
    }

    #[test]
    fn more_paths_than_are_forwarded_over() {
        let paths = [FibPath::new(FibTarget::Drop, AddressFamily::IP4).expect("good"); MAX_PATHS + 1];
        let route = RouteReplace::new(TableId::DEFAULT, net("10.0.0.0/8"), OWN, &paths).map(drop);
        assert_eq!((MAX_PATHS, route), (228, Err(Refused::Paths(229))));
    }

    #[test]
    fn a_feature_that_is_on_already() {
        assert!(looks_first("feature_enable_disable"));
    }

    #[test]
    fn a_source_that_exists() {
        assert!(looks_first("fib_source_add"));
    }

    #[test]
    fn purging_more_than_sessions() {
        const { assert!(!Probe::<cnat::CnatSessionPurge>::CAN_BE_SENT) };
    }

    #[test]
    fn deleting_an_association_in_use() {
        const { assert!(!Probe::<ipsec::IpsecSadEntryDel>::CAN_BE_SENT) };
    }
}
