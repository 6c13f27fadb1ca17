//! Two peers on a simulated network: whatever the delays, collisions and faults, they end up on one connection, the same
//! at both ends.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug)]
enum Event {
    /// The attempt of this side gets its answer.
    Dialled(u64),
    Arrives(ConnId, Bytes),
    Closes(ConnId),
}

/// A TCP connection, named by the attempt that made it.
#[derive(Debug)]
struct Wire {
    dialler: usize,
    accepted: bool,
    /// When the last octet in each direction arrives, so that none overtakes another.
    last: [Instant; 2],
}

struct Sim {
    now: Instant,
    random: Jitter,
    peers: [Peer; 2],
    /// Each side's current attempt.
    attempt: [Option<u64>; 2],
    wires: Vec<Wire>,
    queue: BTreeMap<(Instant, u64), (usize, Event)>,
    order: u64,
    max_delay: Duration,
    established: [u32; 2],
}

impl Sim {
    fn new(seed: u64, ids: [u32; 2], max_delay: Duration) -> Self {
        let peer = |side: usize| {
            let (asn, other) = (65001 + side as u32, 65002 - side as u32);
            let settings = PeerSettings {
                hold_time: HoldTime::new(9).unwrap(),
                graceful_restart: (seed % 2 == 1).then_some(GracefulRestart::USUAL),
                ..PeerSettings::new(Asn(asn), RemoteAsn::Is(Asn(other)), RouterId(ids[side]))
            };
            Peer::new(settings, seed.wrapping_mul(2) + side as u64)
        };
        Self {
            now: START,
            random: Jitter::new(seed),
            peers: [peer(0), peer(1)],
            attempt: [None, None],
            wires: Vec::new(),
            queue: BTreeMap::new(),
            order: 0,
            max_delay,
            established: [0, 0],
        }
    }

    fn delay(&mut self) -> Duration {
        // Jitter gives 3/4 to 1; stretched to 0 to 1.
        let full = self.max_delay * 4;
        self.random.shorten(full) - self.max_delay * 3
    }

    fn id(&self, wire: u64, side: usize) -> ConnId {
        if self.wires[wire as usize].dialler == side { ConnId::dialled(wire) } else { ConnId::accepted(wire) }
    }

    fn wire(conn: ConnId) -> u64 {
        conn.0 & (u64::MAX >> 1)
    }

    fn schedule(&mut self, at: Instant, side: usize, event: Event) {
        self.order += 1;
        self.queue.insert((at, self.order), (side, event));
    }

    /// Something travels over a connection towards `side`.
    fn travel(&mut self, wire: u64, side: usize, event: Event) {
        let at = self.now + self.delay();
        let at = at.max(self.wires[wire as usize].last[side]);
        self.wires[wire as usize].last[side] = at;
        self.schedule(at, side, event);
    }

    fn input(&mut self, side: usize, input: Input<'_>) {
        let mut out = Outbox::new();
        self.peers[side].handle(self.now, input, &mut out);
        self.carry_out(side, &mut out);
    }

    fn carry_out(&mut self, side: usize, out: &mut Outbox<Output>) {
        for output in out.drain() {
            match output {
                Output::Connect => {
                    let wire = self.wires.len() as u64;
                    let last = [self.now; 2];
                    self.wires.push(Wire { dialler: side, accepted: false, last });
                    assert_eq!(self.attempt[side].replace(wire), None, "one attempt at a time");
                    // The neighbour's system accepts first, then its answer travels back.
                    self.travel(wire, 1 - side, Event::Dialled(wire));
                }
                Output::CancelConnect => {
                    let wire = self.attempt[side].take().expect("an attempt to cancel");
                    let conn = self.id(wire, 1 - side);
                    self.travel(wire, 1 - side, Event::Closes(conn));
                }
                Output::Send(conn, outgoing) => {
                    let wire = Self::wire(conn);
                    let there = self.id(wire, 1 - side);
                    self.travel(wire, 1 - side, Event::Arrives(there, outgoing.bytes));
                }
                Output::Close(conn) => {
                    let wire = Self::wire(conn);
                    let there = self.id(wire, 1 - side);
                    self.travel(wire, 1 - side, Event::Closes(there));
                }
                Output::Up { .. } => self.established[side] += 1,
                Output::Down(..) => self.established[side] -= 1,
                Output::Failed(_) => {}
                Output::Deliver | Output::Refresh(_) => panic!("nobody sent that"),
            }
            assert!(self.established[side] <= 1, "up and down alternate");
        }
    }

    fn happen(&mut self, side: usize, event: Event) {
        match event {
            Event::Dialled(wire) => {
                let dialler = self.wires[wire as usize].dialler;
                if side == dialler {
                    // Back at the one who asked.
                    if self.attempt[side] == Some(wire) {
                        self.attempt[side] = None;
                        if self.wires[wire as usize].accepted {
                            self.input(
                                side,
                                Input::Connected(ConnId::dialled(wire), link(Direction::Active)),
                            );
                        } else {
                            self.input(side, Input::ConnectFailed(ConnectError::TimedOut));
                        }
                    }
                } else {
                    self.wires[wire as usize].accepted = true;
                    self.travel(wire, dialler, Event::Dialled(wire));
                    self.input(side, Input::Connected(ConnId::accepted(wire), link(Direction::Passive)));
                }
            }
            Event::Arrives(conn, bytes) => {
                let frame = split_message(&bytes, 4096).unwrap().unwrap();
                self.input(side, Input::Received(conn, frame));
            }
            Event::Closes(conn) => self.input(side, Input::Closed(conn, CloseReason::EndOfStream)),
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let event = self.queue.keys().next().map(|(at, _)| *at);
            let deadline = self.peers.iter().filter_map(Peer::deadline).min();
            let Some(at) = [event, deadline].into_iter().flatten().min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            if event == Some(at) {
                let (_, (side, event)) = self.queue.pop_first().unwrap();
                self.happen(side, event);
            } else {
                for side in 0..2 {
                    if self.peers[side].deadline().is_some_and(|deadline| deadline <= self.now) {
                        self.input(side, Input::Tick);
                        assert!(
                            self.peers[side].deadline().is_none_or(|next| next > self.now),
                            "a tick makes progress"
                        );
                    }
                }
            }
        }
        self.now = end;
    }

    fn wire_in_use(&self, side: usize) -> Option<u64> {
        self.peers[side].established_conn().map(Self::wire)
    }

    fn assert_joined(&self) {
        let wires = (self.wire_in_use(0), self.wire_in_use(1));
        assert!(wires.0.is_some() && wires.0 == wires.1, "{wires:?} {:#?}", self.peers);
    }

    /// The neighbour of `side` loses power: it forgets everything, and nothing is said on the connections it had.
    fn crash(&mut self, side: usize, seed: u64) {
        let settings = self.peers[side].settings().clone();
        self.peers[side] = Peer::new(settings, seed);
        self.peers[side].restarted(self.now + secs(120));
        self.established[side] = 0;
        self.attempt[side] = None;
        self.queue.retain(|_, (to, _)| *to != side);
        self.input(side, Input::Start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_peers_meet_on_one_connection(
        seed: u64,
        ids in (1_u32..3, 1_u32..3),
        // From a fast wire to one on which every attempt is overtaken by the next.
        max_delay in prop::sample::select(vec![0_u64, 1, 50, 400, 1500]),
        head_start in 0_u64..300,
    ) {
        let mut sim = Sim::new(seed, [ids.0, ids.1], Duration::from_millis(max_delay));
        sim.input(0, Input::Start);
        sim.run(Duration::from_millis(head_start));
        sim.input(1, Input::Start);
        sim.run(secs(120));
        sim.assert_joined();
        let wire = sim.wire_in_use(0);
        sim.run(secs(120));
        sim.assert_joined();
        prop_assert_eq!(sim.wire_in_use(0), wire, "and stay on it");
    }

    #[test]
    fn two_peers_meet_again_after_any_fault(
        seed: u64,
        ids in (1_u32..3, 1_u32..3),
        faults in prop::collection::vec((0_u8..6, 0_usize..2, 0_u64..8000), 1..12),
    ) {
        let mut sim = Sim::new(seed, [ids.0, ids.1], Duration::from_millis(50));
        sim.input(0, Input::Start);
        sim.input(1, Input::Start);
        for (place, (fault, side, wait)) in faults.into_iter().enumerate() {
            sim.run(Duration::from_millis(wait));
            match fault {
                0 => sim.crash(side, seed.wrapping_add(place as u64)),
                1 => {
                    sim.input(side, Input::Stop(StopReason::Reset("".into())));
                    sim.input(side, Input::Start);
                }
                2 => {
                    // The path breaks under a connection, and each end hears of it.
                    if let Some(conn) = sim.peers[side].status().conn {
                        let wire = Sim::wire(conn);
                        for end in 0..2 {
                            let conn = sim.id(wire, end);
                            sim.travel(wire, end, Event::Closes(conn));
                        }
                    }
                }
                3 => {
                    // Everything under way is lost; attempts time out.
                    sim.queue.retain(|_, (_, event)| matches!(event, Event::Dialled(_)));
                }
                4 => {
                    if let Some(conn) = sim.peers[side].status().conn {
                        let bytes = Bytes::from(notification(3, 1));
                        sim.travel(Sim::wire(conn), side, Event::Arrives(conn, bytes));
                    }
                }
                _ => {
                    let mut new = sim.peers[side].settings().clone();
                    let secs = if new.hold_time.secs() == 9 { 12 } else { 9 };
                    new.hold_time = HoldTime::new(secs).unwrap();
                    let mut out = Outbox::new();
                    sim.peers[side].reconfigure(sim.now, new, &mut out);
                    sim.carry_out(side, &mut out);
                }
            }
        }
        sim.run(secs(120));
        sim.assert_joined();
    }
}
