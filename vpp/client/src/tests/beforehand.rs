//! What is asked and done before anything else: looking first, healing, and the form that this VPP has.

use vpp_wire::api::fib::{FibSourceAdd, FibSourceDetails, FibSourceDump};
use vpp_wire::api::ikev2::{Ikev2SetIkeTransforms, Ikev2SetIkeTransforms2602};
use vpp_wire::api::interface::{SwInterfaceTxPlacementDetails, SwInterfaceTxPlacementGet};
use vpp_wire::message::Tailed;
use vpp_wire::types::SwIfIndex;
use vpp_wire::{FromBytes, IntoBytes, Message, MsgName, VppError};

use super::vpp::{id_of, plain, up_after};
use super::{Vpp, settings};
use crate::{CallError, Generation};

#[tokio::test(start_paused = true)]
async fn what_could_go_wrong_unseen_waits_for_a_look() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let add = FibSourceAdd::below_api("peregrine", 130).unwrap();
    let unprepared = Err(CallError::Unprepared(FibSourceAdd::DESCRIPTOR.name));
    assert_eq!(client.call(&add).await.map(drop), unprepared);
    let look = async |peer: &mut super::vpp::Peer| {
        let dump = FibSourceDump::default();
        let (sources, ()) = tokio::join!(client.dump_all(&dump), async {
            peer.expect("fib_source_dump").await;
            let ping = peer.expect("control_ping").await;
            peer.answer(&ping, 0).await;
        });
        assert_eq!(sources.map(|sources| sources.len()), Ok(0));
    };
    look(&mut peer).await;
    let (added, ()) = tokio::join!(client.call(&add), async {
        let asked = peer.expect("fib_source_add").await;
        let mut reply = plain(&asked, 0);
        reply.push(26);
        peer.send(&reply).await;
    });
    assert_eq!(added.map(|added| added.id.value()), Ok(26));
    // Another connection, another VPP: what the first one said does not count.
    drop(peer);
    let first: Generation = client.generation().unwrap();
    let _peer = vpp.accept().await;
    up_after(&client, first).await;
    assert_eq!(client.call(&add).await.map(drop), unprepared);
}

fn zeroed<M: FromBytes>() -> M {
    M::read_from_bytes(&vec![0; size_of::<M>()]).unwrap()
}

/// What a request names that VPP does not look for must have been told: here a table, without which VPP dies.
#[tokio::test(start_paused = true)]
async fn steering_needs_a_table_that_is_there() {
    use vpp_wire::api::ip::{IpTableAddDel, IpTableDetails, IpTableDump};
    use vpp_wire::api::sr::SrSteeringAddDel;
    use vpp_wire::types::{IpTable, TableId};
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let bsid = std::net::Ipv6Addr::LOCALHOST;
    let steer = |table, prefix: &str| {
        SrSteeringAddDel::add(TableId::new(table), prefix.parse().unwrap(), bsid).unwrap()
    };
    let (in_7, in_8) = (steer(7, "10.0.0.0/8"), steer(8, "10.0.0.0/8"));
    let refused = Err(CallError::Unprepared(SrSteeringAddDel::DESCRIPTOR.name));
    assert_eq!(client.call(&in_7).await.map(drop), refused, "nothing is told yet");
    let dump = IpTableDump::default();
    let (tables, ()) = tokio::join!(client.dump_all(&dump), async {
        let asked = peer.expect("ip_table_dump").await;
        let ping = peer.expect("control_ping").await;
        let mut details = zeroed::<IpTableDetails>();
        details.table = IpTable::of(TableId::new(7), false);
        let mut bytes = details.as_bytes().to_vec();
        bytes[..2].copy_from_slice(&id_of("ip_table_details").value().to_be_bytes());
        bytes[2..6].copy_from_slice(&asked.context().value().to_be_bytes());
        peer.send(&bytes).await;
        peer.answer(&ping, 0).await;
    });
    assert_eq!(tables.map(|tables| tables.len()), Ok(1));
    let take = async |peer: &mut super::vpp::Peer, steering: &SrSteeringAddDel| {
        let (done, ()) = tokio::join!(client.call(steering), async {
            let asked = peer.expect("sr_steering_add_del").await;
            peer.answer(&asked, 0).await;
        });
        assert_eq!(done.map(drop), Ok(()));
    };
    take(&mut peer, &in_7).await;
    take(&mut peer, &steer(0, "10.0.0.0/8")).await;
    assert_eq!(client.call(&steer(7, "2001:db8::/32")).await.map(drop), refused, "7 is one of IPv4");
    for retval in [-30, 0] {
        assert_eq!(client.call(&in_8).await.map(drop), refused, "8 isn't there");
        let add = IpTableAddDel::add(TableId::new(8), false, "").unwrap();
        let _ = tokio::join!(client.ask(&add), async {
            let asked = peer.expect("ip_table_add_del").await;
            peer.answer(&asked, retval).await;
        });
    }
    take(&mut peer, &in_8).await;
    let delete = IpTableAddDel::del(TableId::new(8), false).unwrap();
    let (deleted, steered, ()) = tokio::join!(client.call(&delete), client.call(&in_8), async {
        let asked = peer.expect("ip_table_add_del").await;
        peer.answer(&asked, 0).await;
    });
    assert_eq!((deleted.map(drop), steered.map(drop)), (Ok(()), refused), "it is about to go");
}

/// VPP takes a route of a source that nobody has made, and nobody can remove it by its name.
#[tokio::test(start_paused = true)]
async fn routes_need_a_source_that_is_there() {
    use vpp_wire::api::ip::{IpRouteAddDelV2, RouteDelete};
    use vpp_wire::types::{FibSourceId, TableId};
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let prefix = "10.0.0.0/8".parse().unwrap();
    let delete = RouteDelete::new(TableId::DEFAULT, prefix, FibSourceId::new(26)).unwrap();
    let refused = Err(CallError::Unprepared(IpRouteAddDelV2::DESCRIPTOR.name));
    assert_eq!(client.call(&delete).await.map(drop), refused);
    let dump = FibSourceDump::default();
    let (_, ()) = tokio::join!(client.dump_all(&dump), async {
        let asked = peer.expect("fib_source_dump").await;
        let ping = peer.expect("control_ping").await;
        let mut details = zeroed::<FibSourceDetails>();
        details.src.id = FibSourceId::new(26);
        let mut bytes = details.as_bytes().to_vec();
        bytes[..2].copy_from_slice(&id_of("fib_source_details").value().to_be_bytes());
        bytes[2..6].copy_from_slice(&asked.context().value().to_be_bytes());
        peer.send(&bytes).await;
        peer.answer(&ping, 0).await;
    });
    let (done, ()) = tokio::join!(client.call(&delete), async {
        let asked = peer.expect("ip_route_add_del_v2").await;
        let mut reply = plain(&asked, 0);
        reply.resize(reply.len() + 4, 0);
        peer.send(&reply).await;
    });
    assert_eq!(done.map(drop), Ok(()));
}

/// Every request that the table speaks of, on a connection that has been told nothing.
#[tokio::test(start_paused = true)]
async fn each_rule_is_kept() {
    use vpp_wire::api::bfd::BfdUdpAdd;
    use vpp_wire::api::cnat::{CnatSetSnatPolicy, CnatSnatPolicyAddDelExcludePfx};
    use vpp_wire::api::feature::FeatureEnableDisable;
    use vpp_wire::api::ikev2::Ikev2SetResponder;
    use vpp_wire::api::ipip::IpipAddTunnel;
    use vpp_wire::api::sr::{SrLocalsidAddDel, SrSteeringAddDel};
    use vpp_wire::api::wireguard::WireguardInterfaceCreate;
    let vpp = Vpp::listen();
    let (client, _notices, _peer) = vpp.client(settings()).await;
    let mut kept = Vec::new();
    macro_rules! refused {
        ($($request:ty),+ $(,)?) => {$(
            let name = <$request>::DESCRIPTOR.name;
            assert_eq!(client.call(&zeroed::<$request>()).await.map(drop), Err(CallError::Unprepared(name)));
            kept.push(name.name());
        )+};
    }
    refused!(
        CnatSetSnatPolicy,
        CnatSnatPolicyAddDelExcludePfx,
        SrSteeringAddDel,
        SrLocalsidAddDel,
        WireguardInterfaceCreate,
        FibSourceAdd,
        FeatureEnableDisable,
        Ikev2SetResponder,
        BfdUdpAdd,
        IpipAddTunnel,
    );
    let rules: Vec<_> = vpp_wire::beforehand::RULES.iter().map(|rule| rule.request).collect();
    assert_eq!(kept, rules, "a rule without a line here, or in another order");
}

/// An error is no answer to the question.
#[tokio::test(start_paused = true)]
async fn only_a_good_reply_counts_as_told() {
    use vpp_wire::api::cnat::{CnatGetSnatAddresses, CnatSnatPolicyAddDelExcludePfx};
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let exclude = CnatSnatPolicyAddDelExcludePfx::read_from_bytes(&[0; 29]).unwrap();
    let unprepared = Err(CallError::Unprepared(CnatSnatPolicyAddDelExcludePfx::DESCRIPTOR.name));
    for (retval, then) in [(-30, true), (0, false)] {
        assert_eq!(client.call(&exclude).await.map(drop), unprepared);
        let question = CnatGetSnatAddresses::default();
        let _ = tokio::join!(client.ask(&question), async {
            let asked = peer.expect("cnat_get_snat_addresses").await;
            let mut reply = plain(&asked, retval);
            reply.resize(64, 0);
            peer.send(&reply).await;
        });
        if then {
            continue;
        }
        let (done, ()) = tokio::join!(client.call(&exclude), async {
            let asked = peer.expect("cnat_snat_policy_add_del_exclude_pfx").await;
            peer.answer(&asked, 0).await;
        });
        assert_eq!(done.map(drop), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_where_vpp_left_off() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let get = SwInterfaceTxPlacementGet::new(0, SwIfIndex::NONE);
    let queues =
        client.stream(&get, Vec::new(), |all: &mut Vec<u32>, details: &SwInterfaceTxPlacementDetails| {
            all.push(details.queue_id.get());
        });
    let (queues, ()) = tokio::join!(queues, async {
        for (cursor, next, retval, queue) in [(u32::MAX, 7, -165, 1), (7, 9, -165, 2), (9, 0, 0, 3_u32)] {
            let asked = peer.expect("sw_interface_tx_placement_get").await;
            assert_eq!(asked.payload[10..14], cursor.to_be_bytes());
            let mut details = Vec::new();
            let one = SwInterfaceTxPlacementDetails::append(&mut details, 0).unwrap();
            one.queue_id = queue.into();
            details[..2].copy_from_slice(&id_of("sw_interface_tx_placement_details").value().to_be_bytes());
            details[6..10].copy_from_slice(&asked.context().value().to_be_bytes());
            peer.send(&details).await;
            let mut reply = plain(&asked, retval);
            reply.extend_from_slice(&u32::to_be_bytes(next));
            peer.send(&reply).await;
        }
    });
    assert_eq!(queues, Ok(vec![1, 2, 3]));
    let none = client.stream(&get, (), |(), _| {});
    let (standing, ()) = tokio::join!(none, async {
        let asked = peer.expect("sw_interface_tx_placement_get").await;
        let mut reply = plain(&asked, -165);
        reply.extend_from_slice(&u32::MAX.to_be_bytes());
        peer.send(&reply).await;
    });
    assert_eq!(standing, Err(CallError::Retval(VppError::EAGAIN)), "a cursor that stands still ends it");
}

#[tokio::test(start_paused = true)]
async fn the_form_is_the_one_that_this_vpp_has() {
    let newer = Ikev2SetIkeTransforms::read_from_bytes(&[0; 82]).unwrap();
    let older = Ikev2SetIkeTransforms2602::read_from_bytes(&[0; 81]).unwrap();
    assert_ne!(Ikev2SetIkeTransforms::DESCRIPTOR.name, Ikev2SetIkeTransforms2602::DESCRIPTOR.name);
    for (lacks, length) in [
        (Ikev2SetIkeTransforms2602::DESCRIPTOR.name, newer.as_bytes().len()),
        (Ikev2SetIkeTransforms::DESCRIPTOR.name, older.as_bytes().len()),
    ] {
        let mut vpp = Vpp::listen();
        vpp.lacks_form = Some(lacks);
        let (client, _notices, mut peer) = vpp.client(settings()).await;
        let (done, ()) = tokio::join!(client.call_either(&newer, &older), async {
            let asked = peer.expect("ikev2_set_ike_transforms").await;
            assert_eq!(asked.payload.len(), length);
            peer.answer(&asked, 0).await;
        });
        assert_eq!(done.map(drop), Ok(()));
    }
}

#[test]
fn names_of_forms_differ() {
    let names: Vec<MsgName> = vpp_wire::api::messages().map(|message| message.name).collect();
    let forms = names.iter().filter(|name| name.name() == "cnat_set_snat_policy").count();
    assert_eq!(forms, 2);
}
