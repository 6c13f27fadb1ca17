//! Every way out sends the farewell, at a frame's border.

use vpp_wire::Retval;

use super::{Vpp, call, request, settings};
use crate::{CallError, ConnState};

#[tokio::test(start_paused = true)]
async fn closing_lets_what_is_in_flight_finish() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let pipeline = client.pipeline::<u32, Retval>(300);
    for index in 0..300 {
        pipeline.submit(&request(index), index).unwrap();
    }
    let first = peer.next().await.unwrap();
    let closing = client.clone();
    let closed = tokio::spawn(async move { closing.close().await });
    peer.answer(&first, 0).await;
    // What the window had let out is answered; the rest is never sent.
    let mut sent = 1;
    let mut last = peer.next().await.unwrap();
    while last.name() == "delete_loopback" {
        sent += 1;
        peer.answer(&last, 0).await;
        last = peer.next().await.unwrap();
    }
    assert_eq!(last.name(), "sockclnt_delete");
    assert!((200..300).contains(&sent), "{sent}");
    drop(peer);
    closed.await.unwrap();
    let mut completions = Vec::new();
    while completions.len() < 300 {
        pipeline.completions(&mut completions).await;
    }
    assert_eq!(completions.iter().filter(|done| done.outcome.is_ok()).count(), sent);
    assert_eq!(completions.iter().filter(|done| done.outcome == Err(CallError::NotSent)).count(), 300 - sent);
    assert!(matches!(*client.state().borrow(), ConnState::Closed));
    assert_eq!(client.call(&request(1)).await.map(drop), Err(CallError::NotSent));
    assert_eq!(client.ready().await, None);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_ever() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        peer.next().await.unwrap();
        client.close().await;
    });
    assert_eq!(reply.map(drop), Err(CallError::Lost));
    peer.part().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_takes_leave() {
    let vpp = Vpp::listen();
    let (client, _notices, peer) = vpp.client(settings()).await;
    let pipeline = client.pipeline::<u32, Retval>(1);
    let other = client.clone();
    drop(client);
    drop(other);
    drop(pipeline);
    peer.part().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_got_up_closes_too() {
    let vpp = Vpp::listen();
    let (client, _notices) = crate::Client::connect(vpp.path.with_extension("none"), settings());
    client.close().await;
    assert!(matches!(*client.state().borrow(), ConnState::Closed));
}

/// The runtime is dropped under the client's feet, in the middle of things.
#[tokio::test]
async fn a_runtime_that_goes_down_takes_leave() {
    let vpp = Vpp::listen();
    let path = vpp.path.clone();
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, _notices) = crate::Client::connect(path, settings());
            client.ready().await.unwrap();
            let pipeline = client.pipeline::<u32, Retval>(3);
            for index in 0..3 {
                pipeline.submit(&request(index), index).unwrap();
            }
            gone.await.unwrap();
            client
        });
        drop(runtime);
        drop(client);
    });
    let mut peer = vpp.accept().await;
    for _ in 0..3 {
        peer.expect("delete_loopback").await;
    }
    go.send(()).unwrap();
    peer.part().await;
    tokio::task::spawn_blocking(move || thread.join().unwrap()).await.unwrap();
}

/// As a panic hook does it: on a thread that panics, while the client's own thread goes on.
#[tokio::test]
async fn a_panic_takes_leave_from_its_own_thread() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let pipeline = client.pipeline::<u32, Retval>(1);
    pipeline.submit(&request(1), 1).unwrap();
    peer.expect("delete_loopback").await;
    let parting = client.clone();
    let thread = tokio::task::spawn_blocking(move || parting.part());
    peer.expect("sockclnt_delete").await;
    drop(peer);
    thread.await.unwrap();
    let mut completions = Vec::new();
    pipeline.completions(&mut completions).await;
    assert_eq!(completions[0].outcome, Err(CallError::Lost));
    let mut state = client.state();
    assert!(state.wait_for(|state| matches!(state, ConnState::Closed)).await.is_ok());
    // A second time there is nothing to part from.
    client.part();
}

#[tokio::test(start_paused = true)]
async fn a_vpp_that_dies_while_the_client_closes_is_not_connected_to_again() {
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let (reply, ()) = tokio::join!(call(&client, 1), async {
        peer.next().await.unwrap();
        let ((), ()) = tokio::join!(client.close(), async {
            tokio::task::yield_now().await;
            drop(peer);
        });
    });
    assert_eq!(reply.map(drop), Err(CallError::Lost));
    assert!(matches!(*client.state().borrow(), ConnState::Closed));
    assert_eq!(client.counters().connections, 1);
}
