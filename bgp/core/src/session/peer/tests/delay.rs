//! OPEN that is held back (DelayOpen, RFC 4271 section 8.1.1), beside what the table of states shows; and the stop for too
//! many prefixes.

use super::*;

fn delayed() -> PeerSettings {
    PeerSettings { delay_open: secs(5), ..settings() }
}

fn bench() -> Bench {
    let mut bench = Bench::at(State::Connect, delayed());
    bench.input(Input::Connected(OUT, link(Direction::Active)));
    assert_eq!(bench.said(), "");
    bench
}

#[test]
fn open_is_sent_when_its_time_has_come_and_not_before() {
    let mut bench = bench();
    assert_eq!(bench.peer.status().sent, None);
    bench.pass(Duration::from_millis(4999));
    assert_eq!((bench.said(), bench.peer.state()), (String::new(), State::Connect));
    bench.pass(Duration::from_millis(1));
    assert_eq!((bench.said(), bench.peer.state()), ("OPEN".into(), State::OpenSent));
    assert!(bench.peer.status().sent.is_some());
    // The hold timer began with OPEN.
    bench.pass(Duration::from_millis(239_999));
    assert_eq!(bench.said(), "");
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.said(), "4/0, close, failed");
}

#[test]
fn whoever_speaks_first_is_answered_at_once() {
    let mut bench = bench();
    bench.receive(OUT, &open(|_| ()));
    assert_eq!((bench.said(), bench.peer.state()), ("OPEN, KEEPALIVE".into(), State::OpenConfirm));
    bench.receive(OUT, &KEEPALIVE);
    assert_eq!(bench.said(), "up");
    bench.pass(secs(20));
    assert_eq!(bench.said(), "", "nothing is left of the delay");
}

#[test]
fn two_connections_without_open_collide_when_the_neighbour_is_known() {
    // Ours is the larger identifier when theirs is 192.0.2.1.
    for (id, lives, dies) in [(RouterId(0xc000_0201), OUT, IN), (THEIRS, IN, OUT)] {
        let mut bench = bench();
        bench.input(Input::Connected(IN, link(Direction::Passive)));
        assert_eq!(bench.said(), "", "both wait");
        bench.receive(OUT, &open(|open| open.router_id = id));
        assert_eq!(bench.said_on(), format!("OPEN {OUT}, KEEPALIVE {OUT}"));
        bench.receive(IN, &open(|open| open.router_id = id));
        let expected = if dies == OUT {
            format!("6/7 {OUT}, close {OUT}, OPEN {IN}, KEEPALIVE {IN}")
        } else {
            format!("6/7 {IN}, close {IN}")
        };
        assert_eq!(bench.said_on(), expected);
        bench.receive(lives, &KEEPALIVE);
        assert_eq!(bench.said_on(), format!("up {lives}"));
        bench.pass(secs(10));
        assert_eq!(bench.said(), "");
    }
}

#[test]
fn a_connection_that_waits_gives_way_to_an_established_one() {
    let mut bench = bench();
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(IN, &open(|_| ()));
    bench.receive(IN, &KEEPALIVE);
    let expected = format!("OPEN {IN}, KEEPALIVE {IN}, 6/7 {OUT}, close {OUT}, up {IN}");
    assert_eq!(bench.said_on(), expected);
}

#[test]
fn one_connection_that_waits_can_go_while_the_other_stays() {
    let mut bench = bench();
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.input(Input::Closed(OUT, CloseReason::EndOfStream));
    assert_eq!((bench.said_on(), bench.peer.state()), (format!("close {OUT}"), State::Active));
    bench.pass(secs(5));
    assert!(bench.said_on().contains(&format!("OPEN {IN}")));
}

#[test]
fn a_delay_is_live_and_bounded() {
    let mut bench = Bench::at(State::Connect, settings());
    assert_eq!(bench.peer.reconfigure(bench.now, delayed(), &mut bench.out), Reconfigured::Live);
    bench.input(Input::Connected(OUT, link(Direction::Active)));
    assert_eq!(bench.said(), "");
    bench.peer.reconfigure(bench.now, settings(), &mut bench.out);
    bench.pass(secs(5));
    assert_eq!(bench.said(), "OPEN", "a connection keeps the time that it began with");
    let check = |delay| PeerSettings { delay_open: delay, ..settings() }.check();
    assert_eq!(check(secs(240)), Ok(()));
    assert_eq!(check(secs(241)), Err(crate::session::SettingsError::DelayTooLong(secs(241))));
}

#[test]
fn too_many_prefixes_end_the_session_for_as_long_as_is_wanted() {
    let too_many = |restart| Input::TooManyPrefixes { family: Family::Ipv6Unicast, limit: 7, restart };
    let mut bench = Bench::at(State::Established, settings());
    bench.input(too_many(Some(secs(300))));
    assert_eq!(bench.said(), "6/1 00020100000007, close, down");
    let error = bench.peer.status().last_error.map(|error| error.reason.to_string());
    let words = "more than 7 prefixes of ipv6-unicast; sent Cease: Maximum Number of Prefixes Reached (6/1)";
    assert_eq!(error.as_deref(), Some(words));
    assert_eq!(bench.peer.status().idle, Some(Some(bench.now + secs(300))));
    bench.pass(Duration::from_millis(299_999));
    assert_eq!((bench.said(), bench.peer.state()), (String::new(), State::Idle));
    bench.pass(Duration::from_millis(1));
    assert_eq!((bench.said(), bench.peer.state()), ("connect".into(), State::Connect));

    let mut bench = Bench::at(State::Established, settings());
    bench.input(too_many(None));
    bench.said();
    bench.pass(secs(100_000));
    assert_eq!((bench.said(), bench.peer.status().idle), (String::new(), Some(None)));
    bench.input(Input::Start);
    assert_eq!((bench.said(), bench.peer.status().idle), ("connect".into(), None));
}

#[test]
fn a_neighbour_that_keeps_routes_over_notifications_is_reset_hard() {
    // RFC 8538 section 5.1.
    let settings = PeerSettings { graceful_restart: Some(GracefulRestart::USUAL), ..settings() };
    let mut bench = Bench::at(State::OpenSent, settings);
    bench.receive(OUT, &restart_open(false));
    bench.receive(OUT, &KEEPALIVE);
    bench.said();
    bench.input(Input::TooManyPrefixes { family: Family::Ipv4Unicast, limit: 7, restart: None });
    let nothing =
        |output: &Output| matches!(output, Output::Down(_, kept) if *kept == crate::session::Kept::NOTHING);
    assert!(bench.out.iter().any(nothing), "nor are its routes kept");
    assert_eq!(bench.said(), "6/9 060100010100000007, close, down");
}
