//! What VPP would die of, or take and misunderstand, cannot be built; what it sends that makes no sense cannot be read.

use ipnet::IpNet;
use proptest::prelude::*;
use vpp_wire::api::fib::FibSourceAdd;
use vpp_wire::api::interface::{SwInterfaceTagAddDel, SwInterfaces};
use vpp_wire::api::ip::{IpRouteAddDelV2, IpRouteV2Details, IpTableAddDel, RouteDelete, RouteReplace};
use vpp_wire::api::ipip::IpipAddTunnel;
use vpp_wire::api::sr::{
    SrBehavior, SrLocalsidAddDel, SrOutcome, SrPolicyAddV2, SrPolicyModV2, SrReply, SrSetEncapSource,
    SrSteeringAddDel, Srv6SidList,
};
use vpp_wire::api::vxlan::{VxlanAddDelTunnelV3, VxlanTunnel};
use vpp_wire::message::Tailed;
use vpp_wire::types::{AddressFamily, FibPath, FibSourceId, FibTarget, MAX_PATHS, SwIfIndex, TableId};
use vpp_wire::{Message, Payload, Refused, Retval, api};

#[path = "refused/wireguard.rs"]
mod wireguard;

const OWN: FibSourceId = FibSourceId::new(26);
const PATH: FibTarget = FibTarget::Attached(SwIfIndex::new(1));

fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

#[test]
fn routes_need_clean_prefixes_an_own_source_and_1_to_228_paths() {
    let paths = vec![FibPath::new(PATH, AddressFamily::IP4).expect("good"); MAX_PATHS + 1];
    let table = TableId::DEFAULT;
    let replace = |prefix: &str, source, n: usize| {
        RouteReplace::new(table, net(prefix), source, &paths[..n]).map(|route| {
            let mut out = Vec::new();
            route.encode(&mut out);
            out.len()
        })
    };
    assert_eq!(replace("10.0.0.0/8", OWN, 1), Ok(40 + 167));
    assert_eq!(replace("2001:db8::/32", OWN, MAX_PATHS), Ok(40 + MAX_PATHS * 167));
    assert_eq!(replace("10.0.0.0/8", OWN, 0), Err(Refused::Paths(0)));
    assert_eq!(replace("10.0.0.0/8", OWN, MAX_PATHS + 1), Err(Refused::Paths(MAX_PATHS + 1)));
    assert_eq!(replace("10.0.0.1/8", OWN, 1), Err(Refused::HostBits(net("10.0.0.1/8").addr(), 8)));
    assert_eq!(replace("10.0.0.0/8", FibSourceId::API, 1), Err(Refused::Source(0)));
    let delete = |prefix: &str, source| RouteDelete::new(table, net(prefix), source).map(drop);
    assert_eq!(delete("10.0.0.0/8", OWN), Ok(()));
    assert_eq!(delete("10.0.0.1/8", OWN), Err(Refused::HostBits(net("10.0.0.1/8").addr(), 8)));
    assert_eq!(delete("10.0.0.0/8", FibSourceId::API), Err(Refused::Source(0)));
}

#[test]
fn a_path_that_vpp_would_take_for_another_is_refused() {
    let (hop, none) = (net("192.0.2.1/32").addr(), net("0.0.0.0/0").addr());
    let path = |target| FibPath::new(target, AddressFamily::IP4).map(drop);
    assert_eq!(path(FibTarget::Via(SwIfIndex::new(1), hop)), Ok(()));
    assert_eq!(path(FibTarget::Via(SwIfIndex::NONE, hop)), Err(Refused::NoInterface));
    assert_eq!(path(FibTarget::Attached(SwIfIndex::NONE)), Err(Refused::NoInterface));
    assert_eq!(path(FibTarget::Via(SwIfIndex::new(1), none)), Err(Refused::NextHop(none)));
    assert_eq!(path(FibTarget::Recursive(TableId::DEFAULT, none)), Err(Refused::NextHop(none)));
}

#[test]
fn sources_lose_against_the_api() {
    for (priority, good) in [(0, false), (128, false), (129, true), (254, true), (255, false)] {
        let source = FibSourceAdd::below_api("peregrine", priority);
        assert_eq!(source.is_ok(), good, "{priority}");
    }
    assert_eq!(FibSourceAdd::below_api("", 130).map(drop), Err(Refused::NoName));
    let long = "x".repeat(64);
    assert_eq!(FibSourceAdd::below_api(&long, 130).map(drop), Err(Refused::Text { length: 64, field: 64 }));
}

#[test]
fn the_default_table_and_impossible_tunnels_are_left_alone() {
    assert_eq!(IpTableAddDel::add(TableId::DEFAULT, false, "").map(drop), Err(Refused::DefaultTable));
    assert_eq!(IpTableAddDel::del(TableId::DEFAULT, true).map(drop), Err(Refused::DefaultTable));
    let (a, b) = (net("192.0.2.1/32").addr(), net("2001:db8::1/128").addr());
    assert_eq!(IpipAddTunnel::new(a, b, TableId::DEFAULT).map(drop), Err(Refused::MixedFamilies(a, b)));
    assert_eq!(IpipAddTunnel::new(a, a, TableId::DEFAULT).map(drop), Err(Refused::SameEnds(a)));
    assert_eq!(SwInterfaceTagAddDel::add(SwIfIndex::new(1), "").map(drop), Err(Refused::NoName));
}

#[test]
fn segment_routing_takes_1_to_16_sids_and_what_vpp_knows() {
    let sid = std::net::Ipv6Addr::LOCALHOST;
    let none = std::net::Ipv6Addr::UNSPECIFIED;
    let list = |n, weight| Srv6SidList::new(&vec![sid; n], weight).map(|list| list.iter().count());
    assert_eq!((list(0, 1), list(1, 1)), (Err(Refused::Sids(0)), Ok(1)));
    assert_eq!((list(16, 1), list(17, 1)), (Ok(16), Err(Refused::Sids(17))));
    assert_eq!(
        (list(1, 0), list(1, u32::MAX)),
        (Err(Refused::NoWeight(0)), Err(Refused::NoWeight(u32::MAX)))
    );
    assert_eq!(Srv6SidList::new(&[sid, none], 1).map(drop), Err(Refused::Sid));
    let good = || Srv6SidList::new(&[sid], 1).expect("good");
    for (bsid, source) in [(none, sid), (sid, none)] {
        assert_eq!(SrPolicyAddV2::new(bsid, source, good()).map(drop), Err(Refused::Sid));
        assert_eq!(SrPolicyModV2::add_list(bsid, source, good()).map(drop), Err(Refused::Sid));
        assert_eq!(SrPolicyModV2::delete_list(bsid, source, 1).map(drop), Err(Refused::Sid));
    }
    for behavior in 0..=u8::MAX {
        let built = SrLocalsidAddDel::add(sid, SrBehavior::new(behavior)).map(drop);
        assert_eq!(built.is_ok(), behavior == 8 || behavior == 9, "{behavior}");
    }
    assert_eq!(SrLocalsidAddDel::delete(none).map(drop), Err(Refused::Sid));
    assert_eq!(SrSetEncapSource::new(none).map(drop), Err(Refused::Sid));
    let steer = |prefix: &str, bsid| SrSteeringAddDel::add(TableId::DEFAULT, net(prefix), bsid).map(drop);
    assert_eq!(steer("10.0.0.0/8", sid), Ok(()));
    assert_eq!(steer("10.0.0.1/8", sid), Err(Refused::HostBits(net("10.0.0.1/8").addr(), 8)));
    assert_eq!(steer("2001:db8::/32", none), Err(Refused::Sid));
    assert!(SrSteeringAddDel::delete(TableId::DEFAULT, net("10.0.0.1/8")).is_err());
}

#[test]
fn segment_routing_answers_in_its_own_words() {
    use SrOutcome::{Absent, Done, Exists, Failed, Missing};
    for (reply, code, outcome) in [
        (SrReply::Localsid, 0, Done),
        (SrReply::Localsid, -1, Exists),
        (SrReply::Localsid, -4, Exists),
        (SrReply::Localsid, -2, Absent),
        (SrReply::Localsid, -3, Missing),
        (SrReply::PolicyAdd, -12, Exists),
        (SrReply::PolicyAdd, -13, Missing),
        (SrReply::PolicyMod, -1, Missing),
        (SrReply::PolicyMod, -21, Failed),
        (SrReply::PolicyMod, -22, Missing),
        (SrReply::PolicyDel, -1, Absent),
        (SrReply::Steering, -1, Failed),
        (SrReply::Steering, -2, Missing),
        (SrReply::Steering, -4, Absent),
    ] {
        assert_eq!(reply.outcome(Retval::new(code)), outcome, "{reply:?} {code}");
    }
}

#[test]
fn a_count_that_lies_is_not_believed() {
    let mut out = Vec::new();
    let details = IpRouteV2Details::append(&mut out, 2).expect("2 can be counted");
    assert_eq!((details.route.n_paths, details.route.paths.len()), (2, 2));
    assert_eq!(out.len(), 34 + 2 * 167);
    assert!(IpRouteV2Details::parse(&out).is_ok());
    assert_eq!(
        IpRouteV2Details::parse(&out[..out.len() - 1]).map(drop).map_err(|error| error.needed),
        Err(34 + 2 * 167)
    );
    let before = out.clone();
    assert_eq!(IpRouteAddDelV2::append(&mut out, 256).map(drop), Err(Refused::Count(256)));
    assert_eq!(out, before);
}

#[test]
fn a_name_filter_is_written_with_its_length() {
    let mut out = Vec::new();
    SwInterfaces::named("loop").encode(&mut out);
    assert_eq!(out.len(), 19 + 4);
    assert_eq!(out[14..], *b"\x01\0\0\0\x04loop");
}

proptest! {
    /// Whatever the bytes, reading them as any message ends well, and takes no more than there is.
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        for message in api::messages() {
            if let Ok(length) = (message.measure)(&bytes) {
                prop_assert!(length <= bytes.len() && length >= message.layout.fixed);
            }
        }
        if let Ok(details) = IpRouteV2Details::parse(&bytes) {
            for path in &details.route.paths {
                let _ = (path.target(), path.labels());
            }
        }
    }

    /// A path means what it was made from.
    #[test]
    fn paths_go_both_ways(kind in 0..8, index in 0..1000_u32, hop: std::net::IpAddr, weight: u8, preference: u8) {
        prop_assume!(!hop.is_unspecified());
        let (interface, table) = (SwIfIndex::new(index), TableId::new(index));
        let target = match kind {
            0 => FibTarget::Via(interface, hop),
            1 => FibTarget::Attached(interface),
            2 => FibTarget::Recursive(table, hop),
            3 => FibTarget::Lookup(table),
            4 => FibTarget::Drop,
            5 => FibTarget::Unreachable,
            6 => FibTarget::Prohibited,
            _ => FibTarget::Local,
        };
        for family in [AddressFamily::IP4, AddressFamily::IP6] {
            let path = FibPath::new(target, family).expect("good").weighted(weight).preferred(preference);
            prop_assert_eq!(path.target(), Some(target));
            prop_assert_eq!((path.weight(), path.preference()), (weight, preference));
        }
    }
}

#[test]
fn a_vxlan_tunnel_that_vpp_would_take_for_another_is_refused() {
    let at = |text: &str| net(text).addr();
    let good = VxlanTunnel {
        local: at("192.0.2.1/32"),
        remote: at("192.0.2.2/32"),
        port: 4789,
        vni: (1 << 24) - 1,
        table: TableId::DEFAULT,
    };
    let both = |tunnel: VxlanTunnel| {
        let add = VxlanAddDelTunnelV3::add(&tunnel, 2).map(drop);
        assert_eq!(add, VxlanAddDelTunnelV3::delete(&tunnel).map(drop));
        add
    };
    assert_eq!(both(good), Ok(()));
    assert_eq!(both(VxlanTunnel { vni: 1 << 24, ..good }), Err(Refused::Vni(1 << 24)));
    assert_eq!(both(VxlanTunnel { remote: good.local, ..good }), Err(Refused::SameEnds(good.local)));
    let six = at("2001:db8::2/128");
    assert_eq!(both(VxlanTunnel { remote: six, ..good }), Err(Refused::MixedFamilies(good.local, six)));
}
