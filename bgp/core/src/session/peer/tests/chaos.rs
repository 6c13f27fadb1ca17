//! Any inputs in any order: nothing panics, and what comes out makes sense to whoever carries it out.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Start,
    Stop,
    Connected(Direction),
    ConnectFailed,
    /// A message on one of the connections there ever were, the newest first.
    Receive(usize, Message),
    Closed(usize),
    Unread(usize),
    Pass(u64),
    TooMany(bool),
    Reconfigure(u16, bool),
}

#[derive(Copy, Clone, Debug)]
enum Message {
    Open(u32),
    RestartOpen(bool),
    Keepalive,
    Update,
    Refresh,
    Notification(u8, u8),
    Garbage,
}

fn step() -> impl Strategy<Value = Step> {
    let message = prop_oneof![
        3 => (1_u32..4).prop_map(Message::Open),
        3 => any::<bool>().prop_map(Message::RestartOpen),
        4 => Just(Message::Keepalive),
        1 => Just(Message::Update),
        1 => Just(Message::Refresh),
        1 => (1_u8..8, 0_u8..9).prop_map(|(code, subcode)| Message::Notification(code, subcode)),
        1 => Just(Message::Garbage),
    ];
    prop_oneof![
        2 => Just(Step::Start),
        1 => Just(Step::Stop),
        6 => prop_oneof![Just(Direction::Active), Just(Direction::Passive)].prop_map(Step::Connected),
        2 => Just(Step::ConnectFailed),
        12 => (0_usize..3, message).prop_map(|(conn, message)| Step::Receive(conn, message)),
        2 => (0_usize..3).prop_map(Step::Closed),
        1 => (0_usize..3).prop_map(Step::Unread),
        4 => (0_u64..100_000).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::TooMany),
        1 => (3_u16..6, any::<bool>()).prop_map(|(hold, passive)| Step::Reconfigure(hold, passive)),
    ]
}

/// What the surroundings know of the peer.
#[derive(Default)]
struct Surroundings {
    conns: Vec<ConnId>,
    alive: BTreeSet<ConnId>,
    dialling: bool,
    up: Option<ConnId>,
}

impl Surroundings {
    fn carry_out(&mut self, out: &mut Outbox<Output>) {
        for output in out.drain() {
            match output {
                Output::Connect => assert!(!std::mem::replace(&mut self.dialling, true)),
                Output::CancelConnect => assert!(std::mem::replace(&mut self.dialling, false)),
                Output::Send(conn, _) => assert!(self.alive.contains(&conn), "to a connection that lives"),
                Output::Close(conn) => assert!(self.alive.remove(&conn), "once"),
                Output::Up { conn, .. } => {
                    assert!(self.alive.contains(&conn) && self.up.replace(conn).is_none());
                    assert_eq!(self.alive.len(), 1, "no other connection");
                }
                Output::Down(..) => assert!(self.up.take().is_some()),
                Output::Deliver | Output::Refresh(_) => assert!(self.up.is_some()),
                Output::Failed(_) => {}
            }
        }
        assert!(self.alive.len() <= PLACES);
    }
}

fn take(bench: &mut Bench, around: &mut Surroundings, step: Step) {
    let conn = |around: &Surroundings, back: usize| {
        around.conns.iter().rev().nth(back).copied().unwrap_or(ConnId::accepted(u64::MAX))
    };
    match step {
        Step::Start => bench.input(Input::Start),
        Step::Stop => bench.input(Input::Stop(StopReason::Deconfigured)),
        Step::Connected(direction) => {
            let n = around.conns.len() as u64;
            let id = match direction {
                Direction::Active if !std::mem::replace(&mut around.dialling, false) => return,
                Direction::Active => ConnId::dialled(n),
                Direction::Passive => ConnId::accepted(n),
            };
            around.conns.push(id);
            around.alive.insert(id);
            bench.input(Input::Connected(id, link(direction)));
        }
        Step::ConnectFailed => {
            if std::mem::replace(&mut around.dialling, false) {
                bench.input(Input::ConnectFailed(ConnectError::TimedOut));
            }
        }
        Step::Receive(back, message) => {
            let bytes = match message {
                Message::Open(id) => open(|open| open.router_id = RouterId(OURS.0 + id - 2)),
                Message::RestartOpen(restarting) => restart_open(restarting),
                Message::Keepalive => KEEPALIVE.to_vec(),
                Message::Update => update(),
                Message::Refresh => route_refresh(),
                Message::Notification(code, subcode) => notification(code, subcode),
                Message::Garbage => vec![0; 19],
            };
            bench.receive(conn(around, back), &bytes);
        }
        Step::Closed(back) => {
            // What is closed already closes no more, and is closed again by the peer's own word.
            bench.input(Input::Closed(conn(around, back), CloseReason::EndOfStream));
        }
        Step::Unread(back) => bench.input(Input::Unread(conn(around, back))),
        Step::TooMany(back) => {
            let (family, restart) = (Family::Ipv4Unicast, back.then_some(secs(5)));
            bench.input(Input::TooManyPrefixes { family, limit: 1, restart });
        }
        Step::Pass(millis) => bench.pass(Duration::from_millis(millis)),
        Step::Reconfigure(hold, passive) => {
            let hold_time = HoldTime::new(hold).unwrap();
            let new = PeerSettings { hold_time, passive, ..bench.peer.settings().clone() };
            bench.peer.reconfigure(bench.now, new, &mut bench.out);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outputs_make_sense_whatever_goes_in(
        steps in prop::collection::vec(step(), 1..80),
        graceful: bool,
        delay in 0_u64..3,
    ) {
        let graceful_restart = graceful.then_some(GracefulRestart::USUAL);
        let delay_open = secs(delay);
        let mut bench = Bench::new(PeerSettings { graceful_restart, delay_open, ..settings() });
        let mut around = Surroundings::default();
        for step in steps {
            take(&mut bench, &mut around, step);
            around.carry_out(&mut bench.out);
            prop_assert_eq!(bench.peer.established_conn(), around.up);
            prop_assert_eq!(bench.peer.state() == State::Established, around.up.is_some());
            prop_assert!(around.alive.iter().all(|conn| bench.peer.holds(*conn)), "nothing is forgotten");
        }
    }
}
