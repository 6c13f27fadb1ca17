//! One peer against a scripted neighbour: negotiation, faults, timers, back-off, collisions, settings.

use super::*;
use bgp_wire::capability::ExtendedNextHop;

fn hold(secs: u16) -> HoldTime {
    HoldTime::new(secs).unwrap()
}

#[test]
fn many_connections_bring_one_keepalive_a_second() {
    let mut bench = Bench::at(State::Established, settings());
    bench.said();
    let mut keepalives = 0;
    for n in 0..1000 {
        bench.now += Duration::from_millis(10);
        bench.input(Input::Connected(ConnId::accepted(100 + n), link(Direction::Passive)));
        keepalives += bench.said().matches("KEEPALIVE").count();
    }
    assert_eq!(keepalives, 10, "in ten seconds");
}

#[test]
fn a_neighbour_may_be_deaf_for_twice_the_hold_time_but_for_eight_minutes_at_least() {
    let check = |ours: u16, theirs: u16| {
        let mut bench = Bench::at(State::OpenSent, PeerSettings { hold_time: hold(ours), ..settings() });
        bench.receive(OUT, &open(|open| open.hold_time = theirs));
        assert_eq!(bench.peer.send_hold(OUT), Some(Duration::from_secs(480)), "before Established");
        bench.receive(OUT, &KEEPALIVE);
        assert_eq!(bench.peer.state(), State::Established);
        bench.peer.send_hold(OUT).map(|time| time.as_secs())
    };
    assert_eq!(check(90, 90), Some(480));
    assert_eq!(check(3600, 240), Some(480));
    assert_eq!(check(3600, 241), Some(482));
    assert_eq!(check(65535, 65535), Some(131_070));
    assert_eq!(check(90, 0), None, "no hold time, no send hold time");
}

// ---- OPEN ----

#[test]
fn our_open_says_what_the_settings_say() {
    let settings = PeerSettings {
        local_asn: Asn(70_000),
        families: FamilySet::UNICAST,
        hold_time: hold(240),
        ..settings()
    };
    let mut bench = Bench::at(State::Connect, settings.clone());
    bench.input(Input::Connected(OUT, link(Direction::Active)));
    let Some(Output::Send(OUT, sent)) = bench.out.pop() else { panic!("no OPEN") };
    let open = Open::parse(split_message(&sent.bytes, 4096).unwrap().unwrap().body).unwrap();
    assert_eq!((open.my_as, open.asn(), open.hold_time, open.router_id), (23456, Asn(70_000), 240, OURS));
    assert_eq!(
        open.capabilities,
        [
            Capability::Multiprotocol(1, 1),
            Capability::Multiprotocol(2, 1),
            Capability::RouteRefresh,
            Capability::FourOctetAs(Asn(70_000)),
            Capability::EnhancedRouteRefresh,
            Capability::ExtendedMessage,
        ]
    );
    assert_eq!(bench.peer.status().sent, Some(&open));
    let settings = PeerSettings { extended_messages: false, extended_next_hop: true, ..settings };
    let mut bench = Bench::at(State::Connect, settings);
    bench.input(Input::Connected(OUT, link(Direction::Active)));
    let Some(Output::Send(OUT, sent)) = bench.out.pop() else { panic!("no OPEN") };
    let open = Open::parse(split_message(&sent.bytes, 4096).unwrap().unwrap().body).unwrap();
    assert!(!open.capabilities.contains(&Capability::ExtendedMessage));
    let triple = ExtendedNextHop { afi: 1, safi: 1, next_hop_afi: 2 };
    assert!(open.capabilities.contains(&Capability::ExtendedNextHop(vec![triple])));
}

#[test]
fn an_open_we_cannot_accept_is_answered_as_section_6_2_says() {
    let check = |settings: PeerSettings, bytes: &[u8]| {
        let mut bench = Bench::at(State::OpenSent, settings);
        bench.receive(OUT, bytes);
        let last = bench.peer.status().last_error.map(|error| error.reason.to_string());
        (bench.said(), last.unwrap_or_default())
    };
    let ibgp = PeerSettings { remote_asn: RemoteAsn::Internal, ..settings() };
    let external = PeerSettings { remote_asn: RemoteAsn::External, ..settings() };
    let six = PeerSettings { families: FamilySet::only(Family::Ipv6Unicast), ..settings() };
    let as_of = |asn: u32| open(|open| *open = Open { my_as: Asn(asn).to_2octet(), ..open.clone() });
    for (settings, bytes, said, words) in [
        (settings(), as_of(65021), "2/2", "the neighbour is in AS 65021"),
        (ibgp.clone(), as_of(65020), "2/2", "the neighbour is in AS 65020"),
        (external.clone(), as_of(65010), "2/2", "the neighbour is in AS 65010"),
        // RFC 6286 section 2.2.
        (
            ibgp.clone(),
            open(|open| (open.my_as, open.router_id) = (65010, OURS)),
            "2/3",
            "the neighbour has our router id 192.0.2.10",
        ),
        (settings(), open(|open| open.hold_time = 1), "2/6", "hold time of 1 s"),
        (settings(), open(|open| open.hold_time = 2), "2/6", "hold time of 2 s"),
        (settings(), open(|open| open.version = 3), "2/1 0004", "version 3"),
        (settings(), open(|open| open.my_as = 0), "2/2", "AS 0"),
        // RFC 5492 section 3.
        (six, open(|_| ()), "2/7 010400020001", "no address family in common"),
    ] {
        let (got, last) = check(settings, &bytes);
        assert_eq!(got, format!("{said}, close, failed"), "{words}");
        assert!(last.contains(words), "\"{last}\" lacks \"{words}\"");
    }
    for (settings, bytes) in [
        (settings(), open(|open| open.router_id = OURS)),
        (ibgp, as_of(65010)),
        (external, as_of(64999)),
        (settings(), open(|open| open.capabilities.clear())),
        (
            settings(),
            open(|open| (open.my_as, open.capabilities) = (23456, vec![Capability::FourOctetAs(Asn(65020))])),
        ),
    ] {
        assert_eq!(check(settings, &bytes), ("KEEPALIVE".into(), String::new()));
    }
}

#[test]
fn the_smaller_hold_time_is_used() {
    for (ours, theirs, agreed, keepalive) in [
        (90, 90, 90, 30),
        (90, 30, 30, 10),
        (9, 240, 9, 3),
        (3, 3, 3, 1),
        (0, 90, 0, 0),
        (90, 0, 0, 0),
        (0, 0, 0, 0),
    ] {
        let mut bench = Bench::at(State::OpenSent, PeerSettings { hold_time: hold(ours), ..settings() });
        bench.receive(OUT, &open(|open| open.hold_time = theirs));
        bench.receive(OUT, &KEEPALIVE);
        let status = bench.peer.status();
        assert_eq!(status.state, State::Established);
        assert_eq!((status.hold_time, status.keepalive), (Some(hold(agreed)), Some(secs(keepalive))));
        assert_eq!(bench.peer.negotiated().unwrap().hold_time, agreed);
        // Without a hold time no timer is left (RFC 4271 section 4.2).
        assert_eq!(bench.peer.deadline().is_none(), agreed == 0, "{ours} {theirs}");
    }
}

// ---- hold and keepalive ----

#[test]
fn silence_ends_the_session_after_the_hold_time_and_not_before() {
    let mut bench = Bench::at(State::Established, PeerSettings { hold_time: hold(9), ..settings() });
    bench.pass(secs(5));
    bench.receive(OUT, &KEEPALIVE);
    bench.pass(secs(8));
    bench.receive(OUT, &update());
    bench.pass(Duration::from_millis(8999));
    assert_eq!(bench.peer.state(), State::Established, "{}", bench.said());
    bench.out = Outbox::new();
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.said(), "4/0, close, down");
}

#[test]
fn a_neighbour_that_never_opens_or_never_confirms_is_given_four_minutes() {
    let mut bench = Bench::at(State::OpenSent, PeerSettings { hold_time: HoldTime::NONE, ..settings() });
    bench.pass(secs(239));
    assert_eq!(bench.said(), "");
    bench.receive(OUT, &open(|_| ()));
    bench.pass(secs(239));
    assert_eq!((bench.said().as_str(), bench.peer.state()), ("KEEPALIVE", State::OpenConfirm));
    bench.pass(secs(1));
    assert_eq!(bench.said(), "4/0, close, failed");
}

#[test]
fn unread_words_count_as_heard_while_the_caller_says_so() {
    let mut bench = Bench::at(State::Established, PeerSettings { hold_time: hold(3), ..settings() });
    bench.now += secs(60);
    for _ in 0..10 {
        bench.input(Input::Unread(OUT));
        bench.input(Input::Tick);
        assert_eq!(bench.said().replace("KEEPALIVE", ""), "");
        let next = bench.peer.deadline().unwrap();
        assert!(next > bench.now && next <= bench.now + secs(1));
        bench.now = next;
    }
    bench.input(Input::Tick);
    assert!(bench.said().ends_with("4/0, close, down"));
}

#[test]
fn keepalives_come_at_jittered_thirds_and_updates_spare_them() {
    let mut bench = Bench::at(State::Established, settings());
    let mut gaps = Vec::new();
    let mut last = bench.now;
    while gaps.len() < 50 {
        bench.now = bench.peer.deadline().unwrap();
        bench.receive(OUT, &KEEPALIVE);
        bench.input(Input::Tick);
        if bench.said() == "KEEPALIVE" {
            gaps.push(bench.now.saturating_since(last));
            last = bench.now;
        }
    }
    // RFC 4271 section 10: 0.75 to 1 times the interval.
    assert!(gaps.iter().all(|gap| (Duration::from_millis(22_500)..=secs(30)).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().max().unwrap().saturating_sub(*gaps.iter().min().unwrap()) > secs(4));
    for _ in 0..20 {
        bench.receive(OUT, &KEEPALIVE);
        bench.peer.sent_update(bench.now);
        bench.pass(secs(20));
    }
    assert_eq!(bench.said(), "", "an UPDATE every 20 s is sign of life enough");
    bench.pass(secs(10));
    assert_eq!(bench.said(), "KEEPALIVE");
}

#[test]
fn keepalives_are_never_closer_than_a_second() {
    let mut bench = Bench::at(State::Established, PeerSettings { hold_time: hold(3), ..settings() });
    for _ in 0..20 {
        bench.receive(OUT, &KEEPALIVE);
        bench.pass(secs(1));
        assert_eq!(bench.said(), "KEEPALIVE");
    }
}

// ---- retry and back-off ----

#[test]
fn attempts_are_repeated_at_the_jittered_retry_time() {
    let mut bench = Bench::new(settings());
    bench.input(Input::Start);
    let mut waits = Vec::new();
    for _ in 0..50 {
        assert_eq!(bench.said(), "connect");
        bench.input(Input::ConnectFailed(ConnectError::TimedOut));
        let next = bench.peer.deadline().unwrap();
        waits.push(next.saturating_since(bench.now));
        bench.now = next;
        bench.out = Outbox::new();
        bench.input(Input::Tick);
    }
    assert!(waits.iter().all(|wait| (Duration::from_millis(3750)..=secs(5)).contains(wait)));
    assert_eq!(bench.peer.status().connect_retry_counter, 50);
}

#[test]
fn disagreements_are_damped_and_a_long_session_forgives_them() {
    let idle_hold = IdleHold { min: secs(4), max: secs(30) };
    let mut bench = Bench::new(PeerSettings { idle_hold, ..settings() });
    bench.input(Input::Start);
    let fail = |bench: &mut Bench, established: Duration| {
        bench.input(Input::Connected(OUT, link(Direction::Active)));
        bench.receive(OUT, &open(|open| open.hold_time = 0));
        bench.receive(OUT, &KEEPALIVE);
        bench.pass(established);
        bench.receive(OUT, &notification(3, 1));
        assert_eq!(bench.peer.state(), State::Idle);
        let wait = bench.peer.deadline().unwrap().saturating_since(bench.now);
        bench.out = Outbox::new();
        bench.pass(wait);
        assert_eq!(bench.said(), "connect");
        wait
    };
    for expected in [4, 8, 16, 30, 30, 30] {
        let wait = fail(&mut bench, secs(1));
        assert!((secs(expected) / 4 * 3..=secs(expected)).contains(&wait), "{wait:?} for {expected}");
    }
    for _ in 0..40 {
        fail(&mut bench, secs(1));
    }
    assert!(fail(&mut bench, secs(31)) <= secs(4));
}

#[test]
fn after_a_loss_the_neighbour_is_welcome_at_once_while_we_wait() {
    let mut bench = Bench::at(State::Established, settings());
    bench.input(Input::Closed(OUT, CloseReason::EndOfStream));
    assert_eq!(bench.peer.state(), State::Active);
    assert!(bench.peer.deadline().unwrap() <= bench.now + secs(1));
    bench.out = Outbox::new();
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    assert_eq!(bench.said(), "OPEN");
}

#[test]
fn a_neighbour_that_connects_and_says_nothing_does_not_stop_our_attempts() {
    let mut bench = Bench::at(State::Active, settings());
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.pass(secs(5));
    assert_eq!(bench.said(), "OPEN, connect");
    bench.input(Input::ConnectFailed(ConnectError::TimedOut));
    bench.pass(secs(5));
    assert_eq!(bench.said(), "failed, connect");
    bench.receive(IN, &open(|_| ()));
    bench.input(Input::ConnectFailed(ConnectError::TimedOut));
    bench.pass(secs(20));
    assert_eq!(bench.said(), "KEEPALIVE, failed", "a neighbour that has identified itself does");
}

#[test]
fn a_passive_peer_never_connects() {
    let mut bench = Bench::new(PeerSettings { passive: true, ..settings() });
    bench.input(Input::Start);
    bench.pass(secs(1000));
    assert_eq!((bench.said().as_str(), bench.peer.state(), bench.peer.deadline()), ("", State::Active, None));
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(IN, &open(|_| ()));
    bench.input(Input::Closed(IN, CloseReason::EndOfStream));
    bench.pass(secs(1000));
    assert_eq!(
        (bench.said().as_str(), bench.peer.state()),
        ("OPEN, KEEPALIVE, close, failed", State::Active)
    );
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(IN, &[0; 19]);
    assert_eq!(bench.peer.state(), State::Idle);
    bench.pass(secs(1));
    assert_eq!((bench.said().as_str(), bench.peer.state()), ("OPEN, 1/1, close, failed", State::Active));
}

#[test]
fn equal_seeds_act_alike() {
    let run = |seed| {
        let mut bench = Bench { peer: Peer::new(settings(), seed), now: START, out: Outbox::new() };
        bench.input(Input::Start);
        (0..100)
            .map(|_| {
                bench.now = bench.peer.deadline().unwrap();
                bench.input(Input::Tick);
                bench.now
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

// ---- collisions (RFC 4271 section 6.8, event 23) ----

/// Two connections, ours in OpenConfirm, and the neighbour's OPEN on its own.
fn collide(settings: PeerSettings, theirs: RouterId) -> Bench {
    let mut bench = Bench::new(settings);
    let open = open(|open| open.router_id = theirs);
    bench.input(Input::Start);
    bench.input(Input::Connected(OUT, link(Direction::Active)));
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(OUT, &open);
    assert_eq!(bench.said_on(), "connect, OPEN out1, OPEN in1, KEEPALIVE out1");
    bench.receive(IN, &open);
    bench
}

#[test]
fn the_larger_identifier_keeps_its_own_connection() {
    let mut bench = collide(settings(), RouterId(OURS.0 + 1));
    assert_eq!(bench.said_on(), "6/7 out1, close out1, KEEPALIVE in1");
    bench.receive(IN, &KEEPALIVE);
    assert_eq!(bench.said_on(), "up in1");
    let mut bench = collide(settings(), RouterId(OURS.0 - 1));
    assert_eq!(bench.said_on(), "6/7 in1, close in1");
    bench.receive(OUT, &KEEPALIVE);
    assert_eq!(bench.said_on(), "up out1");
    // RFC 6286 section 2.3: equal identifiers, larger AS. The neighbour's is.
    assert_eq!(collide(settings(), OURS).said_on(), "6/7 out1, close out1, KEEPALIVE in1");
    let external = PeerSettings { local_asn: Asn(65030), ..settings() };
    assert_eq!(collide(external, OURS).said_on(), "6/7 in1, close in1");
    assert!(bench.peer.status().last_error.is_none(), "a collision is no error");
}

#[test]
fn the_first_established_connection_ends_the_other_and_the_attempt() {
    let mut bench = Bench::at(State::OpenConfirm, settings());
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(OUT, &KEEPALIVE);
    assert_eq!(bench.said_on(), "OPEN in1, 6/7 in1, close in1, up out1");
    let mut bench = Bench::at(State::Connect, settings());
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(IN, &open(|_| ()));
    bench.receive(IN, &KEEPALIVE);
    assert_eq!(bench.said_on(), "OPEN in1, KEEPALIVE in1, cancel, up in1");
}

#[test]
fn a_second_connection_from_the_neighbour_replaces_its_first() {
    let mut bench = Bench::at(State::Active, settings());
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(IN, &open(|_| ()));
    bench.out = Outbox::new();
    bench.input(Input::Connected(ConnId::accepted(2), link(Direction::Passive)));
    assert_eq!(bench.said_on(), "6/7 in1, close in1, OPEN in2");
    assert!(!bench.peer.holds(IN) && bench.peer.holds(ConnId::accepted(2)));
}

#[test]
fn losing_one_of_two_connections_leaves_the_other() {
    let mut bench = Bench::at(State::OpenConfirm, settings());
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(IN, &[0; 19]);
    assert_eq!(bench.said_on(), "OPEN in1, 1/1 in1, close in1, failed");
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.receive(IN, &notification(6, 7));
    assert_eq!(
        bench.said_on(),
        "OPEN in1, close in1",
        "the neighbour settles a collision: nothing has failed"
    );
    bench.receive(OUT, &KEEPALIVE);
    assert_eq!(bench.said_on(), "up out1");
}

// ---- commands ----

#[test]
fn stopping_says_why_on_the_wire_and_forgets_everything_else() {
    for (reason, said) in [
        (StopReason::Shutdown("bye".into()), "6/2 03627965, close, down"),
        (StopReason::Reset("".into()), "6/4, close, down"),
        (StopReason::Deconfigured, "6/3, close, down"),
        (StopReason::ConfigurationChange, "6/6, close, down"),
    ] {
        let mut bench = Bench::at(State::Established, settings());
        bench.input(Input::Stop(reason.clone()));
        assert_eq!(bench.said(), said);
        bench.receive(OUT, &update());
        bench.pass(secs(1000));
        assert_eq!((bench.said().as_str(), bench.peer.deadline()), ("", None));
        assert_eq!(bench.peer.status().stopped, Some(&reason));
        bench.input(Input::Start);
        assert_eq!((bench.said().as_str(), bench.peer.status().stopped), ("connect", None));
    }
}

#[test]
fn what_open_says_takes_a_reset_to_change_and_timers_do_not() {
    let mut bench = Bench::at(State::Established, settings());
    let mut reconfigure = |edit: fn(&mut PeerSettings)| {
        let mut new = bench.peer.settings().clone();
        edit(&mut new);
        let done = bench.peer.reconfigure(bench.now, new, &mut bench.out);
        (done, bench.said())
    };
    assert_eq!(reconfigure(|_| ()), (Reconfigured::Unchanged, String::new()));
    assert_eq!(reconfigure(|s| s.passive = true), (Reconfigured::Live, String::new()));
    assert_eq!(reconfigure(|s| s.passive = false), (Reconfigured::Live, String::new()));
    assert_eq!(reconfigure(|s| s.connect_retry = secs(9)), (Reconfigured::Live, String::new()));
    assert_eq!(reconfigure(|s| s.keepalive = NonZeroU16::new(4)), (Reconfigured::Live, String::new()));
    bench.pass(secs(4));
    assert_eq!(bench.said(), "KEEPALIVE", "the new interval counts at once");
    let mut new = bench.peer.settings().clone();
    new.remote_asn = RemoteAsn::Is(Asn(65021));
    assert_eq!(bench.peer.reconfigure(bench.now, new, &mut bench.out), Reconfigured::Reset);
    assert_eq!(bench.said(), "6/6, close, down, connect");
}

#[test]
fn settings_of_a_peer_without_session_change_quietly() {
    let mut bench = Bench::new(settings());
    let passive = PeerSettings { passive: true, ..settings() };
    assert_eq!(bench.peer.reconfigure(bench.now, passive.clone(), &mut bench.out), Reconfigured::Live);
    bench.input(Input::Start);
    assert_eq!(bench.said(), "");
    bench.peer.reconfigure(bench.now, settings(), &mut bench.out);
    assert_eq!(bench.said(), "connect");
    bench.peer.reconfigure(bench.now, passive, &mut bench.out);
    assert_eq!((bench.said().as_str(), bench.peer.state()), ("cancel", State::Active));
    let other = PeerSettings { local_asn: Asn(65011), ..settings() };
    assert_eq!(bench.peer.reconfigure(bench.now, other, &mut bench.out), Reconfigured::Live);
    assert_eq!(bench.said(), "connect");
}

#[test]
fn a_refresh_that_was_not_agreed_is_ignored() {
    let mut bench = Bench::at(State::OpenSent, settings());
    bench.receive(OUT, &open(|open| open.capabilities.clear()));
    bench.receive(OUT, &KEEPALIVE);
    bench.out = Outbox::new();
    bench.receive(OUT, &route_refresh());
    assert_eq!((bench.said().as_str(), bench.peer.state()), ("", State::Established));
}

#[test]
fn reasons_are_said_in_words() {
    let mut bench = Bench::at(State::Established, settings());
    let text = Notification::with_text(Reason::AdministrativeShutdown, "see ticket 7");
    bench.receive(OUT, &encoded(&text));
    let error = bench.peer.status().last_error.unwrap();
    assert_eq!(error.reason.to_string(), "received Cease: Administrative Shutdown (6/2), \"see ticket 7\"");
    assert_eq!(error.at, bench.now);
    let refused = DownReason::NotConnected(ConnectError::Remote(std::io::ErrorKind::ConnectionRefused));
    assert_eq!(refused.to_string(), "can't connect: connection refused");
}

// ---- graceful restart (RFC 4724 section 5, RFC 8538) ----

fn graceful() -> PeerSettings {
    PeerSettings { graceful_restart: Some(GracefulRestart::USUAL), ..settings() }
}

fn established(settings: PeerSettings, restarting: bool) -> Bench {
    let mut bench = Bench::new(settings);
    bench.input(Input::Start);
    bench.input(Input::Connected(OUT, link(Direction::Active)));
    bench.receive(OUT, &restart_open(restarting));
    bench.receive(OUT, &KEEPALIVE);
    assert_eq!(bench.peer.state(), State::Established);
    bench.out = Outbox::new();
    bench
}

#[test]
fn a_restarted_neighbour_replaces_its_session_without_a_notification() {
    for direction in [Direction::Passive, Direction::Active] {
        let mut bench = established(graceful(), false);
        if direction == Direction::Active {
            // The session may as well be one that the neighbour opened.
            bench.peer.conns.swap(0, 1);
            bench.peer.timers.swap(Timer::Hold(0), Timer::Hold(1));
            bench.peer.timers.swap(Timer::Keepalive(0), Timer::Keepalive(1));
        }
        bench.input(Input::Connected(IN, link(Direction::Passive)));
        assert_eq!((bench.said().as_str(), bench.peer.state()), ("OPEN", State::Established));
        bench.receive(IN, &restart_open(true));
        assert_eq!(bench.said_on(), format!("close {OUT}, down, KEEPALIVE {IN}"));
        assert_eq!(bench.peer.state(), State::OpenConfirm);
        bench.receive(IN, &KEEPALIVE);
        assert_eq!(bench.said_on(), format!("up {IN}"));
        bench.pass(secs(200));
        assert!(bench.said().contains("4/0, close, down"), "its timers run");
    }
}

#[test]
fn a_neighbour_without_restart_bit_replaces_only_a_session_that_stands() {
    for (restarting, before, pass, replaces) in [
        (false, false, 1, false),
        (false, false, 6, true),
        (true, true, 1, false),
        (true, true, 6, true),
        (true, false, 1, true),
    ] {
        let mut bench = established(graceful(), before);
        bench.pass(secs(pass));
        bench.input(Input::Connected(IN, link(Direction::Passive)));
        bench.out = Outbox::new();
        bench.receive(IN, &restart_open(restarting));
        let said = bench.said_on();
        if replaces {
            assert_eq!(said, format!("close {OUT}, down, KEEPALIVE {IN}"));
        } else {
            assert_eq!(said, format!("KEEPALIVE {OUT}, 6/7 {IN}, close {IN}"), "a collision");
            assert_eq!(bench.peer.state(), State::Established);
        }
    }
}

#[test]
fn a_connection_beside_an_established_one_harms_nobody_until_its_open() {
    let mut bench = established(graceful(), false);
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.out = Outbox::new();
    bench.receive(IN, &open(|open| open.router_id = RouterId(0)));
    assert_eq!(bench.said_on(), format!("2/3 {IN}, close {IN}, failed"));
    assert_eq!(bench.peer.state(), State::Established);
    // And the end of the old one is no loss of the new one.
    bench.input(Input::Connected(IN, link(Direction::Passive)));
    bench.out = Outbox::new();
    bench.input(Input::Closed(OUT, CloseReason::EndOfStream));
    assert_eq!(bench.said_on(), format!("close {OUT}, down"));
    assert_eq!(bench.peer.state(), State::OpenSent);
    bench.receive(IN, &restart_open(false));
    bench.receive(IN, &KEEPALIVE);
    assert_eq!(bench.peer.state(), State::Established);
}

#[test]
fn a_stop_for_a_restart_is_silent_only_where_routes_are_kept() {
    let stop = |mut bench: Bench, why| {
        bench.input(Input::Stop(why));
        bench.said()
    };
    let why = || StopReason::Restart("".into());
    assert_eq!(stop(established(graceful(), false), why()), "close, down");
    assert_eq!(stop(established(settings(), false), why()), "6/2, close, down");
    assert_eq!(stop(Bench::at(State::Established, graceful()), why()), "6/2, close, down");
    assert_eq!(stop(Bench::at(State::OpenSent, graceful()), why()), "6/2, close, failed");
    let shut = StopReason::Shutdown("".into());
    assert_eq!(stop(established(graceful(), false), shut), "6/9 0602, close, down");
    assert_eq!(stop(established(graceful(), false), StopReason::Deconfigured), "6/9 0603, close, down");
    assert_eq!(stop(established(graceful(), false), StopReason::ConfigurationChange), "6/6, close, down");
}

#[test]
fn the_same_open_again_does_not_keep_a_connection() {
    let mut bench = Bench::at(State::OpenConfirm, settings());
    let begun = bench.now;
    while bench.peer.state() == State::OpenConfirm {
        assert!(bench.now < begun + Duration::from_secs(90 + 60), "nothing but OPENs for {:?}", bench.now);
        bench.receive(OUT, &open(|_| ()));
        bench.now += Duration::from_secs(30);
        bench.input(Input::Tick);
    }
    assert!(bench.said().contains("4/0"), "{}", bench.said());
}
