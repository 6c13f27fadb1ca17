//! Every state against every event of RFC 4271 section 8.
//!
//! A cell says what is done, the next state, and which timers then run: `r` ConnectRetry, `i` IdleHold, `h` Hold, `k`
//! Keepalive. `.` is "nothing, and nothing changes". `6/7` alone stands for a NOTIFICATION with that code and subcode,
//! and its data in hex behind it. The connection of OpenSent, OpenConfirm and Established is our own (active); event 17
//! is a second one. Events 3 to 8, 12, 14, 15 and 20 belong to optional attributes that don't exist here, but for 7 and
//! 13 (DampPeerOscillations); event 23 comes of event 19 on another connection and is tested with the collisions.

use super::*;

#[derive(Copy, Clone, Debug)]
enum Event {
    ManualStart,
    ManualStop,
    ConnectRetryTimerExpires,
    HoldTimerExpires,
    KeepaliveTimerExpires,
    IdleHoldTimerExpires,
    TcpCrAcked,
    TcpConnectionConfirmed,
    TcpConnectionFails,
    BgpOpen,
    BgpHeaderErr,
    BgpOpenMsgErr,
    NotifMsgVerErr,
    NotifMsg,
    CeaseMsg,
    KeepAliveMsg,
    UpdateMsg,
    UpdateMsgErr,
    RouteRefreshMsg,
}

/// Where a peer is before the event: the states, with both kinds of Idle.
#[derive(Copy, Clone, Debug)]
enum From {
    /// Idle, before the first start.
    Idle,
    /// Idle while the IdleHoldTimer runs.
    Held,
    Connect,
    Active,
    OpenSent,
    OpenConfirm,
    Established,
}

const FROM: [From; 7] = [
    From::Idle,
    From::Held,
    From::Connect,
    From::Active,
    From::OpenSent,
    From::OpenConfirm,
    From::Established,
];

/// The event, its number in RFC 4271 section 8.1, and a cell for each of [`FROM`].
type Row = (Event, &'static str, [&'static str; 7]);

/// Section numbers are RFC 4271's. Section 8.2.2 says for each state what follows; a remark names what it leaves open or
/// what another RFC changes.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    use Event::*;
    vec![
        // 8.2.2: ignored in every state but Idle.
        (ManualStart, "1", [
            "connect > connect r", "connect > connect r", ".", ".", ".", ".", "."]),
        // 8.2.2: ignored in Idle, but for the automatic start, which is off then (8.1.1). Cease with RFC 4486's subcode.
        (ManualStop, "2", [
            ".", "> idle", "cancel > idle", "> idle",
            "6/2, close, failed > idle", "6/2, close, failed > idle", "6/2, close, down > idle"]),
        // 8.2.2: Connect drops its attempt and begins another. Doesn't run elsewhere.
        (ConnectRetryTimerExpires, "9", [
            ".", ".", "failed, cancel, connect > connect r", "connect > connect r", ".", ".", "."]),
        // 6.5, 8.2.2. From OpenSent on; then Idle and at once event 7, so Active.
        (HoldTimerExpires, "10", [
            ".", ".", ".", ".",
            "4/0, close, failed > active r", "4/0, close, failed > active r", "4/0, close, down > active r"]),
        // 8.2.2: OpenConfirm and Established.
        (KeepaliveTimerExpires, "11", [
            ".", ".", ".", ".", ".", "KEEPALIVE > open_confirm hk", "KEEPALIVE > established hk"]),
        // 8.1.1 (DampPeerOscillations): leaves Idle as event 7 or 3 does.
        (IdleHoldTimerExpires, "13", [
            ".", "connect > connect r", ".", ".", ".", ".", "."]),
        // 8.2.2. Where no attempt is under way, the connection isn't ours.
        (TcpCrAcked, "16", [
            "6/5, close > idle", "6/5, close > idle i", "OPEN > open_sent h", "6/5, close > active r",
            "6/5, close > open_sent h", "6/5, close > open_confirm hk", "6/5, close > established hk"]),
        // 8.2.2: Idle refuses. 8.2.1: a second connection has a machine of its own. 6.8: Established closes the new one;
        // the KEEPALIVE finds out whether the old one still lives.
        (TcpConnectionConfirmed, "17", [
            "6/5, close > idle", "6/5, close > idle i", "OPEN > open_sent hr", "OPEN > open_sent hr",
            "OPEN > open_sent hh", "OPEN > open_confirm hhk", "KEEPALIVE, 6/7, close > established hk"]),
        // 8.2.2. An attempt that fails leads to Idle and at once to Active.
        (TcpConnectionFails, "18", [
            ".", ".", "failed > active r", ".",
            "close, failed > active r", "close, failed > active r", "close, down > active r"]),
        // 8.2.2; a second OPEN on the same connection is no collision but unexpected (RFC 6608 section 4).
        (BgpOpen, "19", [
            ".", ".", ".", ".",
            "KEEPALIVE > open_confirm hk", "5/2 01, close, failed > idle i", "5/3 01, close, down > idle i"]),
        // 6.1, 8.2.2.
        (BgpHeaderErr, "21", [
            ".", ".", ".", ".",
            "1/1, close, failed > idle i", "1/1, close, failed > idle i", "1/1, close, down > idle i"]),
        // 6.2, 8.2.2. Later OPENs aren't read.
        (BgpOpenMsgErr, "22", [
            ".", ".", ".", ".",
            "2/3, close, failed > idle i", "5/2 01, close, failed > idle i", "5/3 01, close, down > idle i"]),
        // 8.2.2. 6.4: a NOTIFICATION isn't answered.
        (NotifMsgVerErr, "24", [
            ".", ".", ".", ".", "close, failed > idle i", "close, failed > idle i", "close, down > idle i"]),
        // 8.2.2, which would answer in OpenSent; 6.4 forbids it.
        (NotifMsg, "25", [
            ".", ".", ".", ".", "close, failed > idle i", "close, failed > idle i", "close, down > idle i"]),
        // The same, but the neighbour has nothing against us: event 7 follows at once.
        (CeaseMsg, "25", [
            ".", ".", ".", ".", "close, failed > active r", "close, failed > active r", "close, down > active r"]),
        // 8.2.2; RFC 6608 section 4 for the subcode and the data.
        (KeepAliveMsg, "26", [
            ".", ".", ".", ".", "5/1 04, close, failed > idle i", "up > established hk", "."]),
        (UpdateMsg, "27", [
            ".", ".", ".", ".",
            "5/1 02, close, failed > idle i", "5/2 02, close, failed > idle i", "deliver > established hk"]),
        // 6.3, 8.2.2. Nobody reads an UPDATE that isn't expected.
        (UpdateMsgErr, "28", [
            ".", ".", ".", ".", "5/1 02, close, failed > idle i", "5/2 02, close, failed > idle i",
            "deliver, 3/1, close, down > idle i"]),
        // RFC 2918; RFC 6608 section 4.
        (RouteRefreshMsg, "-", [
            ".", ".", ".", ".",
            "5/1 05, close, failed > idle i", "5/2 05, close, failed > idle i", "refresh > established hk"]),
    ]
}

fn bench(from: From) -> Bench {
    match from {
        From::Idle => Bench::at(State::Idle, settings()),
        From::Held => {
            let mut bench = Bench::at(State::OpenSent, settings());
            bench.receive(OUT, &[0; 19]);
            assert_eq!(bench.peer.state(), State::Idle);
            bench.out = Outbox::new();
            bench
        }
        From::Connect => Bench::at(State::Connect, settings()),
        From::Active => Bench::at(State::Active, settings()),
        From::OpenSent => Bench::at(State::OpenSent, settings()),
        From::OpenConfirm => Bench::at(State::OpenConfirm, settings()),
        From::Established => Bench::at(State::Established, settings()),
    }
}

fn apply(bench: &mut Bench, event: Event) {
    let fire = |bench: &mut Bench, timer: Timer| {
        if bench.peer.timers.is_running(timer) {
            bench.peer.timers.set(timer, bench.now);
            for conn in bench.peer.conns.iter_mut().flatten() {
                (conn.last_received, conn.last_sent) = (Instant::ZERO, Instant::ZERO);
            }
        }
        bench.input(Input::Tick);
    };
    match event {
        Event::ManualStart => bench.input(Input::Start),
        Event::ManualStop => bench.input(Input::Stop(StopReason::Shutdown("".into()))),
        Event::ConnectRetryTimerExpires => fire(bench, Timer::ConnectRetry),
        Event::HoldTimerExpires => fire(bench, Timer::Hold(0)),
        Event::KeepaliveTimerExpires => fire(bench, Timer::Keepalive(0)),
        Event::IdleHoldTimerExpires => fire(bench, Timer::IdleHold),
        Event::TcpCrAcked => bench.input(Input::Connected(ConnId::dialled(2), link(Direction::Active))),
        Event::TcpConnectionConfirmed => {
            // Time enough since the last KEEPALIVE.
            bench.now += Duration::from_secs(1);
            bench.input(Input::Connected(IN, link(Direction::Passive)));
        }
        Event::TcpConnectionFails => match bench.peer.status().conn {
            Some(conn) => bench.input(Input::Closed(conn, CloseReason::EndOfStream)),
            None => bench.input(Input::ConnectFailed(ConnectError::TimedOut)),
        },
        Event::BgpOpen => bench.receive(OUT, &open(|_| ())),
        Event::BgpHeaderErr => bench.receive(OUT, &[0; 19]),
        Event::BgpOpenMsgErr => bench.receive(OUT, &open(|open| open.router_id = RouterId(0))),
        Event::NotifMsgVerErr => bench.receive(OUT, &notification(2, 1)),
        Event::NotifMsg => bench.receive(OUT, &notification(3, 1)),
        Event::CeaseMsg => bench.receive(OUT, &notification(6, 4)),
        Event::KeepAliveMsg => bench.receive(OUT, &KEEPALIVE),
        Event::UpdateMsg => bench.receive(OUT, &update()),
        Event::UpdateMsgErr => {
            bench.receive(OUT, &update());
            if bench.out.iter().any(|output| matches!(output, Output::Deliver)) {
                let error = bgp_wire::WireError::new(bgp_wire::Fault::UpdateLengths, &[]);
                bench.input(Input::Malformed(OUT, error));
            }
        }
        Event::RouteRefreshMsg => bench.receive(OUT, &route_refresh()),
    }
}

fn timers(bench: &Bench) -> String {
    let letters = ["h", "h", "k", "k", "i", "r"];
    let running =
        Timer::ALL.into_iter().zip(letters).filter(|(timer, _)| bench.peer.timers.is_running(*timer));
    running.map(|(_, letter)| letter).collect()
}

#[test]
fn every_event_in_every_state() {
    let mut wrong = String::new();
    for (event, number, cells) in rows() {
        for (from, expected) in FROM.into_iter().zip(cells) {
            let mut bench = bench(from);
            let before = (bench.peer.state(), timers(&bench));
            apply(&mut bench, event);
            let after = (bench.peer.state(), timers(&bench));
            let cell = match (bench.said(), before == after) {
                (said, true) if said.is_empty() => ".".to_owned(),
                (said, _) => format!("{said} > {} {}", after.0, after.1).trim().to_owned(),
            };
            if cell != expected {
                wrong.push_str(&format!(
                    "{event:?} ({number}) in {from:?}: \"{cell}\" instead of \"{expected}\"\n"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
