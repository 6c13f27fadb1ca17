//! Every state against every event of RFC 4271 section 8.1, and RFC 9687's event 29. Each cell has the clause that it follows:
//! [`Row::clause`] says which, and a failure prints it.
//!
//! A cell says what is done, the next state, and which timers then run: `r` ConnectRetry, `i` IdleHold, `d` DelayOpen, `h`
//! Hold, `k` Keepalive. `.` is "nothing, and nothing changes". `6/7` alone stands for a NOTIFICATION with that code and
//! subcode, and its data in hex behind it. The connection of Connect with DelayOpen, OpenSent, OpenConfirm and Established is
//! our own (active), that of Active with DelayOpen the neighbour's; event 17 is a second one.
//!
//! Events that cannot happen here, and why:
//!
//! - 3, 5 and 6 (AutomaticStart, with passive TCP, with damping): whenever we start again by ourselves it is with damping and
//!   passively first, that is event 7, or the IdleHoldTimer, event 13.
//! - 14 and 15 (TcpConnection_Valid, Tcp_CR_Invalid): TrackTcpState is FALSE; nobody here sees a SYN.

use super::*;

#[derive(Copy, Clone, Debug)]
enum Event {
    ManualStart,
    ManualStop,
    PassiveStart,
    AutomaticStop,
    ConnectRetryTimerExpires,
    HoldTimerExpires,
    KeepaliveTimerExpires,
    DelayOpenTimerExpires,
    IdleHoldTimerExpires,
    TcpCrAcked,
    TcpConnectionConfirmed,
    TcpConnectionFails,
    BgpOpen,
    AnotherOpen,
    BgpHeaderErr,
    BgpOpenMsgErr,
    OpenCollisionDump,
    NotifMsgVerErr,
    NotifMsg,
    CeaseMsg,
    KeepAliveMsg,
    UpdateMsg,
    UpdateMsgErr,
    RouteRefreshMsg,
    SendHoldTimerExpires,
}

/// Where a peer is before the event: the states, with both kinds of Idle, and Connect and Active with and without the
/// DelayOpenTimer.
#[derive(Copy, Clone, Debug)]
enum From {
    /// Idle, before the first start.
    Idle,
    /// Idle while the IdleHoldTimer runs.
    Held,
    Connect,
    /// Connect while the DelayOpenTimer runs.
    ConnectDelay,
    Active,
    /// Active while the DelayOpenTimer runs.
    ActiveDelay,
    OpenSent,
    OpenConfirm,
    Established,
}

const FROM: [From; 9] = [
    From::Idle,
    From::Held,
    From::Connect,
    From::ConnectDelay,
    From::Active,
    From::ActiveDelay,
    From::OpenSent,
    From::OpenConfirm,
    From::Established,
];

/// One event in every state.
struct Row {
    event: Event,
    /// Its number in RFC 4271 section 8.1.
    number: &'static str,
    /// The clauses beside RFC 4271 section 8.2.2 under the name of the state, where the RFC leaves something open or another
    /// one changes it.
    clauses: &'static str,
    /// A cell for each of [`FROM`].
    cells: [&'static str; 9],
}

impl Row {
    /// Where it is written what a cell says.
    fn clause(&self, from: From) -> String {
        let state = match from {
            From::Idle | From::Held => "Idle",
            From::Connect | From::ConnectDelay => "Connect",
            From::Active | From::ActiveDelay => "Active",
            From::OpenSent => "OpenSent",
            From::OpenConfirm => "OpenConfirm",
            From::Established => "Established",
        };
        let beside = if self.clauses.is_empty() { "" } else { "; " };
        format!("RFC 4271 8.2.2, {state} state{beside}{}", self.clauses)
    }
}

const fn row(event: Event, number: &'static str, clauses: &'static str, cells: [&'static str; 9]) -> Row {
    Row { event, number, clauses, cells }
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    use Event::*;
    vec![
        row(ManualStart, "1", "8.1.1 DampPeerOscillations (an operator's start does not wait)", [
            "connect > connect r", "connect > connect r", ".", ".", ".", ".", ".", ".", "."]),
        row(ManualStop, "2", "8.1.2 (an automatic start is off then); RFC 4486 4 for the subcode; 8.1.1 SendNOTIFICATIONwithoutOPEN", [
            ".", "> idle", "cancel > idle", "6/2, close, failed > idle", "> idle", "6/2, close, failed > idle",
            "6/2, close, failed > idle", "6/2, close, failed > idle", "6/2, close, down > idle"]),
        row(PassiveStart, "4", "8.1.1 PassiveTcpEstablishment (no ConnectRetryTimer where nobody connects)", [
            "> active", "> active", ".", ".", ".", ".", ".", ".", "."]),
        // Too many prefixes. What isn't Established has told us nothing: the neighbour is merely refused.
        row(AutomaticStop, "8", "8.1.2 event 8; RFC 4486 4 for subcode and data", [
            ".", ".", "cancel > idle i", "6/5, close > idle i", "> idle i", "6/5, close > idle i",
            "6/5, close > idle i", "6/5, close > idle i", "6/1 00010100000064, close, down > idle i"]),
        // Runs in Connect and Active without a connection only.
        row(ConnectRetryTimerExpires, "9", "", [
            ".", ".", "failed, cancel, connect > connect r", ".", "connect > connect r", ".", ".", ".", "."]),
        row(HoldTimerExpires, "10", "6.5; 8.1.1 (then at once event 7, so Active)", [
            ".", ".", ".", ".", ".", ".",
            "4/0, close, failed > active r", "4/0, close, failed > active r", "4/0, close, down > active r"]),
        row(KeepaliveTimerExpires, "11", "", [
            ".", ".", ".", ".", ".", ".", ".", "KEEPALIVE > open_confirm hk", "KEEPALIVE > established hk"]),
        // Runs where OPEN is held back only.
        row(DelayOpenTimerExpires, "12", "8.1.1 DelayOpen", [
            ".", ".", ".", "OPEN > open_sent h", ".", "OPEN > open_sent h", ".", ".", "."]),
        row(IdleHoldTimerExpires, "13", "8.1.1 DampPeerOscillations (leaves Idle as event 7 or 3 does)", [
            ".", "connect > connect r", ".", ".", ".", ".", ".", ".", "."]),
        // Where no attempt is under way, the connection isn't ours.
        row(TcpCrAcked, "16", "RFC 4486 4 for the subcode", [
            "6/5, close > idle", "6/5, close > idle i", "OPEN > open_sent h", "6/5, close > connect d",
            "6/5, close > active r", "6/5, close > active d",
            "6/5, close > open_sent h", "6/5, close > open_confirm hk", "6/5, close > established hk"]),
        // The KEEPALIVE finds out whether the old connection still lives. A passive settings' Active has no ConnectRetryTimer.
        row(TcpConnectionConfirmed, "17", "8.2.1 (a second connection has a machine of its own); 6.8 (Established closes the new one); RFC 4486 4", [
            "6/5, close > idle", "6/5, close > idle i", "OPEN > open_sent hr", "> connect dd", "OPEN > open_sent hr",
            "6/7, close > active d",
            "OPEN > open_sent hh", "OPEN > open_confirm hhk", "KEEPALIVE, 6/7, close > established hk"]),
        row(TcpConnectionFails, "18", "8.1.1 (what leads to Idle leads on to Active by event 7)", [
            ".", ".", "failed > active r", "close, failed > active r", ".", "close, failed > active",
            "close, failed > active r", "close, failed > active r", "close, down > active r"]),
        // The same OPEN once more on the same connection is no collision.
        row(BgpOpen, "19; 20 while the DelayOpenTimer runs", "6.8; RFC 6608 4 for the subcode and the data", [
            ".", ".", ".", "OPEN, KEEPALIVE > open_confirm hk", ".", "OPEN, KEEPALIVE > open_confirm hk",
            "KEEPALIVE > open_confirm hk", ".", "5/3 01, close, down > idle i"]),
        // Another OPEN on the same connection is unexpected.
        row(AnotherOpen, "19; 20 while the DelayOpenTimer runs", "6.8; RFC 6608 4 for the subcode and the data", [
            ".", ".", ".", "OPEN, KEEPALIVE > open_confirm hk", ".", "OPEN, KEEPALIVE > open_confirm hk",
            "KEEPALIVE > open_confirm hk", "5/2 01, close, failed > idle i", "5/3 01, close, down > idle i"]),
        row(BgpHeaderErr, "21", "6.1; 8.1.1 SendNOTIFICATIONwithoutOPEN, DampPeerOscillations", [
            ".", ".", ".", "1/1, close, failed > idle i", ".", "1/1, close, failed > idle i",
            "1/1, close, failed > idle i", "1/1, close, failed > idle i", "1/1, close, down > idle i"]),
        // Later OPENs aren't read.
        row(BgpOpenMsgErr, "22", "6.2; 8.1.1 SendNOTIFICATIONwithoutOPEN, DampPeerOscillations; RFC 6608 4", [
            ".", ".", ".", "2/3, close, failed > idle i", ".", "2/3, close, failed > idle i",
            "2/3, close, failed > idle i", "5/2 01, close, failed > idle i", "5/3 01, close, down > idle i"]),
        // The other connection, which makes the decision, is left out of the picture here: see the collisions.
        row(OpenCollisionDump, "23", "6.8; RFC 4486 4 for the subcode; 8.1.1 CollisionDetectEstablishedState is FALSE", [
            ".", ".", ".", "6/7, close > active", ".", "6/7, close > active",
            "6/7, close > active", "6/7, close > active", "."]),
        row(NotifMsgVerErr, "24", "6.4 (not answered); 8.1.1 DampPeerOscillations", [
            ".", ".", ".", "close, failed > idle i", ".", "close, failed > idle i",
            "close, failed > idle i", "close, failed > idle i", "close, down > idle i"]),
        // Section 8.2.2 would answer in OpenSent.
        row(NotifMsg, "25", "6.4 (not answered); 8.1.1 DampPeerOscillations", [
            ".", ".", ".", "close, failed > idle i", ".", "close, failed > idle i",
            "close, failed > idle i", "close, failed > idle i", "close, down > idle i"]),
        // The neighbour has nothing against us.
        row(CeaseMsg, "25", "6.4 (not answered), 6.7; 8.1.1 (event 7 follows at once)", [
            ".", ".", ".", "close, failed > active r", ".", "close, failed > active",
            "close, failed > active r", "close, failed > active r", "close, down > active r"]),
        row(KeepAliveMsg, "26", "6.6; RFC 6608 4 for the subcode and the data", [
            ".", ".", ".", "5/0 04, close, failed > idle i", ".", "5/0 04, close, failed > idle i",
            "5/1 04, close, failed > idle i", "up > established hk", "."]),
        row(UpdateMsg, "27", "6.6; RFC 6608 4 for the subcode and the data", [
            ".", ".", ".", "5/0 02, close, failed > idle i", ".", "5/0 02, close, failed > idle i",
            "5/1 02, close, failed > idle i", "5/2 02, close, failed > idle i", "deliver > established hk"]),
        // Nobody reads an UPDATE that isn't expected.
        row(UpdateMsgErr, "28", "6.3, 6.6; RFC 6608 4; RFC 7606 for which faults come here", [
            ".", ".", ".", "5/0 02, close, failed > idle i", ".", "5/0 02, close, failed > idle i",
            "5/1 02, close, failed > idle i", "5/2 02, close, failed > idle i", "deliver, 3/1, close, down > idle i"]),
        row(RouteRefreshMsg, "-", "RFC 2918 4; 6.6; RFC 6608 4", [
            ".", ".", ".", "5/0 05, close, failed > idle i", ".", "5/0 05, close, failed > idle i",
            "5/1 05, close, failed > idle i", "5/2 05, close, failed > idle i", "refresh > established hk"]),
        // RFC 9687 has it in Established; a neighbour that does not even take our OPEN is left in the same way. A NOTIFICATION
        // could not leave.
        row(SendHoldTimerExpires, "29", "RFC 9687 4.3, 5; 8.1.1 (then at once event 7, so Active)", [
            ".", ".", ".", "close, failed > active r", ".", "close, failed > active",
            "close, failed > active r", "close, failed > active r", "close, down > active r"]),
    ]
}

fn delayed() -> PeerSettings {
    PeerSettings { delay_open: secs(5), ..settings() }
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
        From::ConnectDelay => {
            let mut bench = Bench::at(State::Connect, delayed());
            bench.input(Input::Connected(OUT, link(Direction::Active)));
            assert_eq!((bench.peer.state(), bench.said()), (State::Connect, String::new()));
            bench
        }
        From::Active => Bench::at(State::Active, settings()),
        From::ActiveDelay => {
            let mut bench = Bench::new(PeerSettings { passive: true, ..delayed() });
            bench.input(Input::Start);
            bench.input(Input::Connected(OUT, link(Direction::Passive)));
            assert_eq!((bench.peer.state(), bench.said()), (State::Active, String::new()));
            bench
        }
        From::OpenSent => Bench::at(State::OpenSent, settings()),
        From::OpenConfirm => Bench::at(State::OpenConfirm, settings()),
        From::Established => Bench::at(State::Established, settings()),
    }
}

/// The timer of the one connection, wherever that is.
fn of_conn(bench: &Bench, timer: fn(usize) -> Timer) -> Timer {
    timer(bench.peer.conns.iter().position(Option::is_some).unwrap_or(0))
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
        Event::PassiveStart => {
            if matches!(bench.peer.state(), State::Idle) {
                bench.peer.settings.passive = true;
            }
            bench.input(Input::Start);
        }
        Event::AutomaticStop => {
            let (family, restart) = (Family::Ipv4Unicast, Some(secs(60)));
            bench.input(Input::TooManyPrefixes { family, limit: 100, restart });
        }
        Event::ConnectRetryTimerExpires => fire(bench, Timer::ConnectRetry),
        Event::HoldTimerExpires => fire(bench, of_conn(bench, Timer::Hold)),
        Event::KeepaliveTimerExpires => fire(bench, of_conn(bench, Timer::Keepalive)),
        Event::DelayOpenTimerExpires => fire(bench, of_conn(bench, Timer::DelayOpen)),
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
        Event::AnotherOpen => bench.receive(OUT, &open(|open| open.hold_time += 1)),
        Event::BgpHeaderErr => bench.receive(OUT, &[0; 19]),
        Event::BgpOpenMsgErr => bench.receive(OUT, &open(|open| open.router_id = RouterId(0))),
        Event::OpenCollisionDump => {
            // An Established connection is never the one to go.
            if bench.peer.state() != State::Established {
                for place in 0..PLACES {
                    bench.peer.lose_collision(place, &mut bench.out);
                }
                bench.peer.note_state(bench.now);
            }
        }
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
        Event::SendHoldTimerExpires => bench.input(Input::Closed(OUT, CloseReason::SendHoldTimerExpired)),
    }
}

fn timers(bench: &Bench) -> String {
    let letters = ["h", "h", "k", "k", "d", "d", "i", "r"];
    let running =
        Timer::ALL.into_iter().zip(letters).filter(|(timer, _)| bench.peer.timers.is_running(*timer));
    running.map(|(_, letter)| letter).collect()
}

#[test]
fn every_event_in_every_state() {
    let mut wrong = String::new();
    for row in rows() {
        for (from, expected) in FROM.into_iter().zip(row.cells) {
            let mut bench = bench(from);
            let before = (bench.peer.state(), timers(&bench));
            apply(&mut bench, row.event);
            let after = (bench.peer.state(), timers(&bench));
            let cell = match (bench.said(), before == after) {
                (said, true) if said.is_empty() => ".".to_owned(),
                (said, _) => format!("{said} > {} {}", after.0, after.1).trim().to_owned(),
            };
            if cell != expected {
                wrong.push_str(&format!(
                    "{:?} ({}) in {from:?} [{}]: \"{cell}\" instead of \"{expected}\"\n",
                    row.event,
                    row.number,
                    row.clause(from),
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
