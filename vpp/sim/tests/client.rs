//! The typed client and the simulated VPP, against each other: each is written from the same facts, but not from the other.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use vpp_client::{CallError, Client, ClientSettings, Completion, ConnState, Heard, Notices};
use vpp_sim::{Fault, Sim, SimHandle, SimOptions};
use vpp_wire::api::fib::{FibSourceAdd, FibSourceDump};
use vpp_wire::api::gso::FeatureGsoEnableDisable;
use vpp_wire::api::interface::{
    SwInterfaceEvent, SwInterfaceSetFlags, SwInterfaceSetUnnumbered, SwInterfaceTagAddDel, SwInterfaces,
    WantInterfaceEvents,
};
use vpp_wire::api::ip::{IpAddressDump, IpRouteV2Dump, IpTableAddDel, IpTableDump, RouteReplace};
use vpp_wire::api::ipip::{IpipAddTunnel, IpipDelTunnel, IpipTunnelDump};
use vpp_wire::api::vpe::ShowVersion;
use vpp_wire::types::{AddressFamily, FibPath, FibTarget, SwIfIndex, TableId};
use vpp_wire::{Message, Retval};

fn start(dir: &tempfile::TempDir) -> (SimHandle, Client, Notices) {
    let sim =
        Sim::builder(dir.path().join("api.sock")).interface("host-eth0", &["192.0.2.1/24"]).spawn().unwrap();
    let settings = ClientSettings {
        first_retry: std::time::Duration::from_millis(1),
        required: vec![ShowVersion::DESCRIPTOR.name, RouteReplaceMessage::DESCRIPTOR.name],
        ..Default::default()
    };
    let (client, notices) = Client::connect(sim.socket(), settings);
    (sim, client, notices)
}

type RouteReplaceMessage = vpp_wire::api::ip::IpRouteAddDelV2;

#[tokio::test]
async fn a_peer_is_brought_up_and_taken_down() {
    let dir = tempfile::tempdir().unwrap();
    let (sim, client, mut notices) = start(&dir);
    let generation = client.ready().await.unwrap();
    let vpp = client.at(generation);
    assert!(vpp.call(&ShowVersion::default()).await.unwrap().version.to_str().starts_with("26.06"));
    vpp.call(&WantInterfaceEvents::new(true, 1)).await.unwrap();

    let uplinks = vpp.dump_all(&SwInterfaces::named("host-eth0")).await.unwrap();
    let [uplink] = uplinks.as_slice() else { panic!("one uplink, not {uplinks:?}") };
    assert!(uplink.flags.is_admin_up() && uplink.flags.is_link_up());
    let uplink = uplink.sw_if_index;
    let addresses = vpp.dump_all(&IpAddressDump::new(uplink, false)).await.unwrap();
    assert_eq!(
        addresses.iter().map(|a| a.prefix.net().unwrap().to_string()).collect::<Vec<_>>(),
        ["192.0.2.1/24"]
    );

    vpp.call(&IpTableAddDel::add(TableId::new(1), false, "pods").unwrap()).await.unwrap();
    assert_eq!(vpp.dump_all(&IpTableDump::default()).await.unwrap().len(), 3);
    vpp.dump_all(&FibSourceDump::default()).await.unwrap();
    let source = vpp.call(&FibSourceAdd::below_api("agent", 200).unwrap()).await.unwrap().id;
    let sources = vpp.dump_all(&FibSourceDump::default()).await.unwrap();
    assert!(sources.iter().any(|details| details.src.id == source && details.src.name == *"agent"));

    let ends = (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 20)));
    let add = IpipAddTunnel::new(ends.0, ends.1, TableId::DEFAULT).unwrap();
    let tunnel = vpp.call(&add).await.unwrap().sw_if_index;
    let again = vpp.ask(&add).await.unwrap();
    assert_eq!((again.retval.value(), again.sw_if_index), (-79, tunnel));
    vpp.call(&SwInterfaceSetUnnumbered::new(uplink, tunnel, true)).await.unwrap();
    vpp.call(&FeatureGsoEnableDisable::new(tunnel, true)).await.unwrap();
    vpp.call(&SwInterfaceTagAddDel::add(tunnel, "ours").unwrap()).await.unwrap();
    vpp.call(&SwInterfaceSetFlags::new(tunnel, true)).await.unwrap();
    let Some(Heard::Notice(added)) = notices.next().await else { panic!("an event") };
    assert_eq!(added.read::<SwInterfaceEvent>().unwrap().sw_if_index, tunnel);
    let Some(Heard::Notice(up)) = notices.next().await else { panic!("an event") };
    assert!(up.read::<SwInterfaceEvent>().unwrap().flags.is_link_up());

    let block: IpNet = "10.244.20.0/26".parse().unwrap();
    let path = FibPath::new(FibTarget::Attached(tunnel), AddressFamily::IP4).unwrap();
    vpp.call(&RouteReplace::new(TableId::DEFAULT, block, source, &[path]).unwrap()).await.unwrap();
    let routes = vpp
        .dump(&IpRouteV2Dump::new(TableId::DEFAULT, false, Some(source)), Vec::new(), |all, details| {
            all.push((details.route.prefix.net(), details.route.paths.first().and_then(FibPath::target)));
        })
        .await
        .unwrap();
    assert_eq!(routes, [(Some(block), Some(FibTarget::Attached(tunnel)))]);
    assert_eq!(vpp.dump_all(&IpipTunnelDump::all()).await.unwrap().len(), 1);

    let unknown = vpp.call(&SwInterfaceSetFlags::new(SwIfIndex::new(999), true)).await;
    assert!(matches!(unknown, Err(CallError::Retval(error)) if error.code() == -2), "{unknown:?}");
    vpp.call(&IpipDelTunnel::new(tunnel)).await.unwrap();
    client.close().await;
    assert_eq!(sim.until(|stats| stats.clients == 0).await.clients, 0);
    assert_eq!(sim.carried_out()["sockclnt_delete"], 1, "it took its leave");
}

#[tokio::test]
async fn a_restart_is_a_new_generation_and_a_pipeline_sees_every_fate() {
    let dir = tempfile::tempdir().unwrap();
    let (sim, client, _notices) = start(&dir);
    let first = client.ready().await.unwrap();
    client.dump_all(&FibSourceDump::default()).await.unwrap();
    let source = client.call(&FibSourceAdd::below_api("agent", 200).unwrap()).await.unwrap().id;
    let path = [FibPath::new(FibTarget::Drop, AddressFamily::IP4).unwrap()];
    sim.fault(Fault::Restart {
        message: Some("ip_route_add_del_v2".into()),
        nth: 50,
        when: vpp_sim::When::After,
    });
    let pipeline = client.at(first).pipeline::<u32, Retval>(200);
    for number in 0..100u32 {
        let net = IpNet::new(Ipv4Addr::from((10 << 24) + (number << 8)).into(), 24).unwrap();
        pipeline.submit(&RouteReplace::new(TableId::DEFAULT, net, source, &path).unwrap(), number).unwrap();
    }
    let mut done: Vec<Completion<u32, Retval>> = Vec::new();
    while pipeline.outstanding() > 0 {
        pipeline.completions(&mut done).await;
    }
    assert_eq!(
        done.iter().map(|completion| completion.tag).collect::<Vec<_>>(),
        (0..100).collect::<Vec<_>>()
    );
    let carried_out = done.iter().take_while(|completion| completion.outcome.is_ok()).count();
    assert!(carried_out < 50, "the fiftieth was never answered");
    assert!(done[carried_out..].iter().all(|completion| completion.outcome.is_err()));

    let mut state = client.state();
    let second = state
        .wait_for(|state| matches!(state, ConnState::Up { generation, .. } if *generation != first))
        .await;
    assert!(second.is_ok());
    assert!(
        client.at(first).call(&ShowVersion::default()).await.is_err(),
        "nothing of the old is sent to the new"
    );
    assert!(client.call(&ShowVersion::default()).await.is_ok());
    assert_eq!(sim.stats().generation, 2);
}

#[tokio::test]
async fn the_command_ends_when_it_is_told_to_or_dies() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = SimOptions::new(dir.path().join("api.sock"));
    options.control = Some(dir.path().join("control.sock"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = tokio::spawn(vpp_sim::run(options.clone(), async {
        stopped.await.unwrap();
    }));
    let (client, _notices) = Client::connect(&options.socket, ClientSettings::default());
    client.ready().await.unwrap();
    assert!(options.control.as_ref().unwrap().exists());
    client.close().await;
    stop.send(()).unwrap();
    assert!(run.await.unwrap().is_ok());
    assert!(!options.socket.exists() && !options.control.unwrap().exists());

    let nowhere = SimOptions::new(dir.path().join("no/such/folder/api.sock"));
    assert!(matches!(
        vpp_sim::run(nowhere, std::future::pending()).await,
        Err(vpp_sim::SimError::Socket { .. })
    ));
}
