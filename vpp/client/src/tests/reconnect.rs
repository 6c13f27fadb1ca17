//! The end of a connection, and the next one.

use vpp_wire::api::ip::{IpRouteAddDelV2, IpTableDump};
use vpp_wire::frame::{self, HEADER, MAX_PAYLOAD};
use vpp_wire::{Class, Message};

use super::vpp::{down, plain, up_after};
use super::{Vpp, call, request, settings};
use crate::{CallError, Client, ClientSettings, Generation};

fn first(client: &Client) -> Generation {
    client.generation().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_vpp_that_is_not_there_yet_is_waited_for() {
    let vpp = Vpp::listen();
    let hidden = vpp.path.with_extension("hidden");
    std::fs::rename(&vpp.path, &hidden).unwrap();
    let (client, _notices) = Client::connect(&vpp.path, settings());
    let error = down(&client).await;
    assert!(error.contains("No such file"), "{error}");
    assert_eq!(client.call(&request(1)).await.map(drop), Err(CallError::NotSent));
    std::fs::rename(&hidden, &vpp.path).unwrap();
    let _peer = vpp.accept().await;
    assert!(client.ready().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_vpp_that_dies_in_a_frame_loses_what_was_in_flight() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let generation = first(&client);
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        let mut bytes = Vec::new();
        frame::push(&mut bytes, |out| out.extend_from_slice(&plain(&asked, 0)));
        peer.write(&bytes[..HEADER + 5]).await;
        drop(peer);
    });
    assert_eq!(reply.map(drop), Err(CallError::Lost));
    let mut peer = vpp.accept().await;
    assert!(up_after(&client, generation).await > generation);
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        peer.answer(&asked, 0).await;
    });
    assert!(reply.is_ok());
    assert_eq!(client.counters().connections, 2);
}

#[tokio::test(start_paused = true)]
async fn a_dump_ends_with_the_connection() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let dump = IpTableDump::default();
    let (tables, ()) = tokio::join!(client.dump_all(&dump), async {
        peer.expect("ip_table_dump").await;
        drop(peer);
    });
    assert_eq!(tables.map(drop), Err(CallError::Lost));
    assert_eq!(CallError::Lost.class(), Class::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_length_beyond_reason_ends_the_connection_with_a_farewell() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let generation = first(&client);
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        peer.next().await.unwrap();
        let mut header = [0; HEADER];
        header[8..12].copy_from_slice(&(MAX_PAYLOAD as u32 + 1).to_be_bytes());
        peer.write(&header).await;
        peer.expect("sockclnt_delete").await;
    });
    assert_eq!(reply.map(drop), Err(CallError::Lost));
    let _peer = vpp.accept().await;
    up_after(&client, generation).await;
}

#[tokio::test(start_paused = true)]
async fn a_vpp_that_hangs_is_left_with_a_farewell() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(ClientSettings::default()).await;
    let generation = first(&client);
    // Silence is broken by an answer to the ping, as often as asked.
    for _ in 0..3 {
        let ping = peer.expect("control_ping").await;
        peer.answer(&ping, 0).await;
    }
    assert_eq!(client.generation(), Some(generation));
    // Then it hangs.
    let reply = client.call(&request(1)).await;
    assert!(matches!(reply, Err(CallError::Timeout | CallError::Lost)), "{reply:?}");
    assert_eq!(down(&client).await, "VPP does not answer");
    let mut next = vpp.accept().await;
    up_after(&client, generation).await;
    // When it goes on, it finds the farewell in the old socket.
    let mut names = Vec::new();
    while let Some(asked) = peer.next().await {
        names.push(asked.name());
    }
    assert_eq!(names.last(), Some(&"sockclnt_delete"));
    assert_eq!(names.iter().filter(|name| **name == "delete_loopback").count(), 1);
    // The new connection is pinged like the old one.
    let ping = next.expect("control_ping").await;
    next.answer(&ping, 0).await;
    assert_eq!(client.counters().unexpected, 0);
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_generation_are_not_sent_to_the_next() {
    let vpp = Vpp::listen();
    let (client, _notices, peer) = vpp.client(settings()).await;
    let old = client.at(first(&client));
    let pipeline = old.pipeline::<u32, vpp_wire::Retval>(4);
    let generation = first(&client);
    drop(peer);
    let mut peer = vpp.accept().await;
    let now = up_after(&client, generation).await;
    assert_eq!(old.call(&request(1)).await.map(drop), Err(CallError::NotSent));
    pipeline.submit(&request(2), 2).unwrap();
    let mut completions = Vec::new();
    pipeline.completions(&mut completions).await;
    assert_eq!(completions[0].outcome, Err(CallError::NotSent));
    let current = client.at(now);
    let (reply, ()) = tokio::join!(call(&current, 3), async {
        let asked = peer.next().await.unwrap();
        assert_eq!(asked.index(), 3);
        peer.answer(&asked, 0).await;
    });
    assert!(reply.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_vpp_that_lacks_what_is_required_is_left_and_tried_again() {
    let mut vpp = Vpp::listen();
    vpp.lacks = vec!["ip_route_add_del_v2"];
    let settings = ClientSettings { required: vec![IpRouteAddDelV2::DESCRIPTOR.name], ..settings() };
    let (client, _notices) = Client::connect(&vpp.path, settings);
    let mut peer = vpp.accept_silently().await;
    peer.greet().await;
    peer.part().await;
    assert_eq!(down(&client).await, "this VPP lacks ip_route_add_del_v2_521ef330");
    // Another VPP starts.
    vpp.lacks = Vec::new();
    let _peer = vpp.accept().await;
    assert!(client.ready().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_not_answered_is_given_up() {
    let vpp = Vpp::listen();
    let (client, _notices) = Client::connect(&vpp.path, settings());
    let mut mute = vpp.accept_silently().await;
    mute.expect("sockclnt_create").await;
    assert_eq!(down(&client).await, "VPP does not answer");
    // And so is one that is answered with nonsense.
    let mut odd = vpp.accept_silently().await;
    let hello = odd.expect("sockclnt_create").await;
    let mut short = vec![0, 16, 0, 0, 0, 0];
    short.extend_from_slice(&hello.payload[2..6]);
    odd.send(&short).await;
    let mut state = client.state();
    state
        .wait_for(|state| {
            let crate::ConnState::Connecting { last_error: Some(error), .. } = state else {
                return false;
            };
            matches!(**error, crate::ConnectError::Malformed(_))
        })
        .await
        .unwrap();
    let _peer = vpp.accept().await;
    assert!(client.ready().await.is_some());
}
