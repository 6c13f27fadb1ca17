//! Answers: matched, late, twice, foreign, short; dumps and notices.

use vpp_wire::api::interface::{CreateLoopbackInstance, SwInterfaceEvent, SwInterfaces};
use vpp_wire::api::ip::{IpRouteV2Details, IpRouteV2Dump, IpTableDetails, IpTableDump};
use vpp_wire::frame;
use vpp_wire::message::Tailed;
use vpp_wire::types::{IpTable, SwIfIndex, TableId};
use vpp_wire::{Class, IntoBytes, Message, VppError};

use super::vpp::{id_of, plain};
use super::{Vpp, ask, call, request, settings};
use crate::{CallError, ConnState, Heard};

#[tokio::test(start_paused = true)]
async fn the_handshake_tells_the_release() {
    let vpp = Vpp::listen();
    let (client, _notices, _peer) = vpp.client(settings()).await;
    match &*client.state().borrow() {
        ConnState::Up { generation, version } => {
            assert_eq!((generation.number(), version.as_ref()), (1, "26.06-test"));
        }
        state @ (ConnState::Connecting { .. } | ConnState::Closed) => panic!("{state:?}"),
    }
    assert!(client.knows::<IpRouteV2Details>());
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_its_requests() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let loopback = CreateLoopbackInstance::new(Some(3));
    let (reply, ()) = tokio::join!(client.call(&loopback), async {
        let asked = peer.expect("create_loopback_instance").await;
        let mut reply = plain(&asked, 0);
        reply.extend_from_slice(&7_u32.to_be_bytes());
        peer.send(&reply).await;
    });
    assert_eq!(reply.map(|reply| reply.sw_if_index), Ok(SwIfIndex::new(7)));
}

#[tokio::test(start_paused = true)]
async fn a_return_value_is_an_error_for_who_calls_and_a_reply_for_who_asks() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let (called, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        peer.answer(&asked, -6).await;
    });
    assert_eq!(called.map(drop), Err(CallError::Retval(VppError::NO_SUCH_ENTRY)));
    let (asked, ()) = tokio::join!(ask(&client, 1), async {
        let asked = peer.next().await.unwrap();
        peer.answer(&asked, -4711).await;
    });
    assert_eq!(asked.map(|reply| reply.retval.value()), Ok(-4711));
    assert_eq!(CallError::Retval(VppError::new(-4711).unwrap()).class(), Class::Retry);
}

#[tokio::test(start_paused = true)]
async fn foreign_answers_are_counted_and_dropped() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        let right = plain(&asked, 0);
        // Another context; another message; an id nobody has; not even a context; nothing at all.
        let mut foreign = right.clone();
        foreign[5] ^= 1;
        peer.send(&foreign).await;
        let mut foreign = right.clone();
        foreign[1] ^= 1;
        peer.send(&foreign).await;
        let mut foreign = right.clone();
        foreign[0] = 0xea;
        peer.send(&foreign).await;
        peer.send(&right[..4]).await;
        peer.send(&[]).await;
        // The right one, twice.
        peer.send(&right).await;
        peer.send(&right).await;
    });
    assert!(reply.is_ok());
    // Another exchange, so that the second copy has been read.
    let (reply, ()) = tokio::join!(call(&client, 2), async {
        let asked = peer.next().await.unwrap();
        peer.answer(&asked, 0).await;
    });
    assert!(reply.is_ok());
    let counters = client.counters();
    assert_eq!((counters.requests, counters.answers, counters.unexpected), (2, 8, 6));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_answers_nothing_else() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let (reply, late) = tokio::join!(call(&client, 1), async { peer.next().await.unwrap() });
    assert_eq!(reply.map(drop), Err(CallError::Timeout));
    let (reply, ()) = tokio::join!(call(&client, 2), async {
        let asked = peer.next().await.unwrap();
        assert_ne!(asked.context(), late.context());
        peer.answer(&late, -1).await;
        peer.answer(&asked, 0).await;
    });
    assert!(reply.is_ok());
    let counters = client.counters();
    assert_eq!((counters.timeouts, counters.late, counters.unexpected, counters.connections), (1, 1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_short_reply_is_malformed() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        let reply = plain(&asked, 0);
        peer.send(&reply[..reply.len() - 1]).await;
    });
    assert!(matches!(reply, Err(CallError::Malformed(error)) if error.needed == 10 && error.present == 9));
}

#[tokio::test(start_paused = true)]
async fn frames_come_in_any_pieces() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let (first, second) = (request(1), request(2));
    let calls = async { tokio::join!(client.call(&first), client.call(&second)) };
    let (replies, ()) = tokio::join!(calls, async {
        let asked = [peer.next().await.unwrap(), peer.next().await.unwrap()];
        let mut bytes = Vec::new();
        for asked in asked {
            frame::push(&mut bytes, |out| out.extend_from_slice(&plain(&asked, 0)));
        }
        for byte in &bytes {
            peer.write(&[*byte]).await;
            tokio::task::yield_now().await;
        }
    });
    assert!(replies.0.is_ok() && replies.1.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_dump_ends_with_its_ping() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let dump = IpTableDump::default();
    let (tables, ()) = tokio::join!(client.dump_all(&dump), async {
        let asked = peer.expect("ip_table_dump").await;
        let ping = peer.expect("control_ping").await;
        assert_eq!(asked.context(), ping.context());
        for id in [0, 2] {
            let table = IpTable::of(TableId::new(id), false);
            let details = IpTableDetails { head: asked.reply_head::<IpTableDetails>(), table };
            peer.send(details.as_bytes()).await;
        }
        // The details of something else in between.
        let mut foreign = plain(&asked_like(&asked, "sw_interface_set_flags"), 0);
        foreign.resize(400, 0);
        peer.send(&foreign).await;
        let pong = plain(&ping, 0);
        peer.send(&pong).await;
    });
    let ids: Vec<_> = tables.unwrap().iter().map(|details| details.table.table_id.value()).collect();
    assert_eq!(ids, [0, 2]);
    assert_eq!(client.counters().unexpected, 1);

    let interfaces = SwInterfaces::all();
    let (none, ()) = tokio::join!(client.dump_all(&interfaces), async {
        peer.expect("sw_interface_dump").await;
        let ping = peer.expect("control_ping").await;
        let pong = plain(&ping, 0);
        peer.send(&pong).await;
    });
    assert_eq!(none.map(|none| none.len()), Ok(0));
}

/// The same head on another message.
fn asked_like(asked: &super::vpp::Asked, name: &str) -> super::vpp::Asked {
    let mut payload = asked.payload.clone();
    payload[..2].copy_from_slice(&id_of(name).value().to_be_bytes());
    super::vpp::Asked { payload }
}

/// VPP writes all of a dump before it reads on: who does not read meanwhile stops it.
#[tokio::test(start_paused = true)]
async fn a_large_dump_is_read_while_requests_wait_to_be_written() {
    const ROUTES: usize = 20_000;
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let pipeline = client.pipeline::<u32, vpp_wire::Retval>(150);
    let routes = IpRouteV2Dump::new(TableId::DEFAULT, false, None);
    let dump = client.dump(&routes, (0, 0), |(routes, paths), details| {
        *routes += 1;
        *paths += details.route.paths.len();
    });
    let (counted, ()) = tokio::join!(dump, async {
        let asked = peer.expect("ip_route_v2_dump").await;
        let ping = peer.expect("control_ping").await;
        for index in 0..150 {
            pipeline.submit(&request(index), index).unwrap();
        }
        let mut payload = Vec::new();
        let details = IpRouteV2Details::append(&mut payload, 3).unwrap();
        details.head = asked.reply_head::<IpRouteV2Details>();
        for _ in 0..ROUTES {
            peer.send(&payload).await;
        }
        let pong = plain(&ping, 0);
        peer.send(&pong).await;
    });
    assert_eq!(counted, Ok((ROUTES, 3 * ROUTES)));
    for index in 0..150 {
        let asked = peer.next().await.unwrap();
        assert_eq!(asked.index(), index);
        peer.answer(&asked, 0).await;
    }
    let mut completions = Vec::new();
    while completions.len() < 150 {
        pipeline.completions(&mut completions).await;
    }
    assert!(completions.iter().all(|completion| completion.outcome.is_ok()));
}

#[tokio::test(start_paused = true)]
async fn details_that_cannot_be_read_end_the_dump_but_nothing_else() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let dump = IpTableDump::default();
    let (tables, ()) = tokio::join!(client.dump_all(&dump), async {
        let asked = peer.expect("ip_table_dump").await;
        let ping = peer.expect("control_ping").await;
        peer.send(asked.reply_head::<IpTableDetails>().as_bytes()).await;
        let pong = plain(&ping, 0);
        peer.send(&pong).await;
    });
    assert!(matches!(tables, Err(CallError::Malformed(_))));
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        peer.answer(&asked, 0).await;
    });
    assert!(reply.is_ok());
    assert_eq!(client.counters().late, 1);
}

#[tokio::test(start_paused = true)]
async fn notices_come_between_answers() {
    let vpp = Vpp::listen();
    let (client, mut notices, mut peer) = vpp.client(settings()).await;
    let event = |index: u32| {
        let mut payload = id_of("sw_interface_event").value().to_be_bytes().to_vec();
        payload.extend_from_slice(&0x8000_0001_u32.to_be_bytes());
        payload.extend_from_slice(&4242_u32.to_be_bytes());
        payload.extend_from_slice(&index.to_be_bytes());
        payload.extend_from_slice(&[0, 0, 0, 3, 0]);
        payload
    };
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        peer.send(&event(5)).await;
        peer.answer(&asked, 0).await;
    });
    assert!(reply.is_ok());
    let Some(Heard::Notice(notice)) = notices.next().await else {
        panic!("nothing heard");
    };
    assert_eq!((notice.name(), notice.generation().number()), ("sw_interface_event", 1));
    let event_heard = notice.read::<SwInterfaceEvent>().unwrap();
    assert_eq!((event_heard.sw_if_index.value(), event_heard.flags.is_link_up()), (5, true));

    // Nobody listens for so long that notices are lost: the listener is told first, then gets what was kept.
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        let asked = peer.next().await.unwrap();
        for index in 0..1030 {
            peer.send(&event(index)).await;
        }
        peer.answer(&asked, 0).await;
    });
    assert!(reply.is_ok());
    assert!(matches!(notices.next().await, Some(Heard::Missed)));
    assert!(matches!(notices.next().await, Some(Heard::Notice(_))));
    assert_eq!(client.counters().notices_missed, 6);
    assert_eq!(SwInterfaceEvent::DESCRIPTOR.context_at, None);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_this_vpp_lacks_is_not_sent() {
    let mut vpp = Vpp::listen();
    vpp.lacks = vec!["delete_loopback_reply"];
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let missing = client.call(&request(1)).await;
    assert!(matches!(missing, Err(CallError::Missing(name)) if name.name() == "delete_loopback_reply"));
    // What comes behind it in the same batch is not disturbed.
    let pipeline = client.pipeline::<u32, vpp_wire::Retval>(3);
    pipeline.submit(&request(1), 1).unwrap();
    pipeline.submit(&super::other(2), 2).unwrap();
    pipeline.submit(&request(3), 3).unwrap();
    let asked = peer.expect("sw_interface_set_flags").await;
    assert_eq!(asked.index(), 2);
    peer.answer(&asked, 0).await;
    let mut completions = Vec::new();
    while completions.len() < 3 {
        pipeline.completions(&mut completions).await;
    }
    let good: Vec<_> = completions.iter().filter(|done| done.outcome.is_ok()).map(|done| done.tag).collect();
    assert_eq!(good, [2]);
}
