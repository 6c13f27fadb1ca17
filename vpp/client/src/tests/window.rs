//! The window and the pipeline.

use vpp_wire::Retval;

use super::vpp::plain;
use super::{Vpp, request, settings};
use crate::{CallError, ClientSettings, Full, WindowSize};

#[tokio::test(start_paused = true)]
async fn no_more_than_a_window_is_in_flight() {
    const WINDOW: u8 = 10;
    let vpp = Vpp::listen();
    let settings = ClientSettings { window: WindowSize::new(WINDOW).unwrap(), ..settings() };
    let (client, _notices, mut peer) = vpp.client(settings).await;
    let pipeline = client.pipeline::<u32, Retval>(40);
    for index in 0..40 {
        pipeline.submit(&request(index), index).unwrap();
    }
    assert_eq!(pipeline.free(), 0);
    assert_eq!(pipeline.submit(&request(40), 40), Err(Full(40)));
    let mut completions = Vec::new();
    let mut expected = 0;
    for _ in 0..4 {
        let mut asked = Vec::new();
        for _ in 0..WINDOW {
            asked.push(peer.next().await.unwrap());
        }
        // Nothing more comes before an answer: an answered request is the next thing that lets one out.
        assert_eq!(client.counters().requests, u64::from(expected) + u64::from(WINDOW));
        for asked in &asked {
            assert_eq!(asked.index(), expected);
            expected += 1;
            peer.answer(asked, -i32::try_from(asked.index()).unwrap()).await;
        }
        while completions.len() < expected as usize {
            pipeline.completions(&mut completions).await;
        }
    }
    let values: Vec<_> =
        completions.iter().map(|done| (done.tag, done.outcome.as_ref().unwrap().value())).collect();
    assert_eq!(values, (0..40).map(|index| (index, -(index as i32))).collect::<Vec<_>>());
    assert_eq!((pipeline.free(), pipeline.outstanding()), (40, 0));
}

/// An unanswered request keeps its slot, though its caller has given up, until VPP has answered a later one.
#[tokio::test(start_paused = true)]
async fn a_request_given_up_still_counts_until_vpp_has_passed_it_by() {
    let vpp = Vpp::listen();
    let settings = ClientSettings { window: WindowSize::new(2).unwrap(), ..settings() };
    let (client, _notices, mut peer) = vpp.client(settings).await;
    let pipeline = client.pipeline::<u32, Retval>(6);
    for index in 0..6 {
        pipeline.submit(&request(index), index).unwrap();
    }
    let (first, second) = (peer.next().await.unwrap(), peer.next().await.unwrap());
    let mut completions = Vec::new();
    while completions.len() < 2 {
        pipeline.completions(&mut completions).await;
    }
    assert!(completions.iter().all(|done| done.outcome == Err(CallError::Timeout)));
    assert_eq!(client.counters().requests, 2);
    // The second is answered after all: both slots are free.
    peer.answer(&second, 0).await;
    let (third, fourth) = (peer.next().await.unwrap(), peer.next().await.unwrap());
    assert_eq!((third.index(), fourth.index()), (2, 3));
    // The answer to the first comes against all order: it is nobody's.
    peer.answer(&first, 0).await;
    peer.answer(&third, 0).await;
    peer.answer(&fourth, 0).await;
    for index in 4..6 {
        let asked = peer.next().await.unwrap();
        assert_eq!(asked.index(), index);
        peer.answer(&asked, 0).await;
    }
    while completions.len() < 6 {
        pipeline.completions(&mut completions).await;
    }
    assert!(completions[2..].iter().all(|done| done.outcome.is_ok()));
    let counters = client.counters();
    assert_eq!((counters.timeouts, counters.late, counters.unexpected), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn many_requests_pass_in_order() {
    const REQUESTS: u32 = 20_000;
    let vpp = Vpp::listen();
    let (client, _notices, mut peer) = vpp.client(settings()).await;
    let server = tokio::spawn(async move {
        for index in 0..REQUESTS {
            let asked = peer.next().await.unwrap();
            assert_eq!(asked.index(), index);
            let reply = plain(&asked, 0);
            peer.send(&reply).await;
        }
        peer
    });
    let pipeline = client.pipeline::<u32, Retval>(400);
    let (mut submitted, mut completed) = (0, 0);
    let mut batch = Vec::new();
    while completed < REQUESTS {
        while submitted < REQUESTS && pipeline.submit(&request(submitted), submitted).is_ok() {
            submitted += 1;
        }
        pipeline.completions(&mut batch).await;
        for done in batch.drain(..) {
            assert_eq!((done.tag, done.outcome), (completed, Ok(Retval::OK)));
            completed += 1;
        }
    }
    let _peer = server.await.unwrap();
    let counters = client.counters();
    assert_eq!((counters.requests, counters.unexpected), (u64::from(REQUESTS), 0));
}

#[test]
fn the_window_has_limits() {
    assert_eq!(WindowSize::new(0), None);
    assert_eq!(WindowSize::new(200), Some(WindowSize::MAX));
    assert_eq!(WindowSize::new(201), None);
}
