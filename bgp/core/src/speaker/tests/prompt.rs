//! Nothing that takes long delays a KEEPALIVE: whatever is asked of a speaker is done in slices, and between two of them
//! sessions have their turn.
//!
//! That no call looks at more than a slice of destinations is checked in every test of this world (`Node::measured`). Here a
//! destination looked at *costs time*, so that timers and work compete as they do in a process, with far more work than a
//! process would have.

use super::*;
use crate::command::{Chain, Clear};
use crate::policy::{Act, Default as Otherwise, Flow, PolicyDef, PolicyName, StatementDef};
use crate::rib::NextHopState;
use crate::session::HoldTime;

const V4: Family = Family::Ipv4Unicast;

/// What a destination looked at costs: a table of [`MANY`] takes 1.2 s to walk over, once.
const COST: Duration = Duration::from_micros(400);

/// How many prefixes there are.
const MANY: u32 = 3000;

/// The neighbour that has a hold time of 3 s and nothing to say but KEEPALIVE.
const IDLE: usize = 8;

/// 0 announces a lot to 1; 2 to 7 listen, each under a policy of its own.
struct Busy {
    world: World,
    /// How many KEEPALIVEs of 1 the idle neighbour has had, and when the last one came.
    heard: (u64, Instant),
    /// The longest time between two of them.
    longest: Duration,
    /// How much time the work of 1 has taken.
    spent: Duration,
}

/// A policy that leaves its mark on every route.
fn policy(mark: u32) -> PolicyDef {
    PolicyDef {
        statements: vec![StatementDef {
            label: None,
            when: vec![],
            apply: vec![Act::SetLocalPref(mark), Act::SetMed(mark)],
            then: Flow::Accept,
        }],
        default: Otherwise::Reject,
    }
}

fn name(listener: usize) -> PolicyName {
    format!("out{listener}").as_str().into()
}

impl Busy {
    fn new() -> Self {
        let asns: Vec<u32> = (0..=IDLE as u32).map(|n| 65010 + n).collect();
        let mut world = World::new(&asns);
        for n in (0..=IDLE).filter(|n| *n != 1) {
            world.join(n, 1);
        }
        for listener in 2..IDLE {
            world.command(1, Command::PutPolicy(name(listener), policy(listener as u32)));
            let export = Chain::named(name(listener));
            let config = PeerConfig { passive: true, export, ..world.config(listener) };
            world.command(1, Command::PutPeer(key(listener), config));
        }
        let config = PeerConfig {
            passive: true,
            hold_time: HoldTime::new(3).unwrap(),
            export: Chain::REJECT,
            ..world.config(IDLE)
        };
        world.command(1, Command::PutPeer(key(IDLE), config));
        world.load();
        for n in 0..MANY {
            world.originate(0, nth(n), marked(n % 7));
        }
        world.settle();
        world.pass(Duration::from_secs(20));
        assert!(world.is_up(1, IDLE));
        let heard = (world.peer(IDLE, 1).received.keepalive, world.now);
        Self { world, heard, longest: Duration::ZERO, spent: Duration::ZERO }
    }

    /// One thing that 1 does, which takes as long as it takes; and then whatever is due.
    fn spend(&mut self, thing: impl FnOnce(&mut World)) {
        let before = self.world.nodes[1].speaker.stats().looked_at;
        thing(&mut self.world);
        let cost = COST * (self.world.nodes[1].speaker.stats().looked_at - before) as u32;
        self.world.now += cost;
        self.spent += cost;
        for node in [1, IDLE] {
            if self.world.nodes[node].speaker.deadline().is_some_and(|at| at <= self.world.now) {
                self.world.input(node, Input::Tick);
            }
        }
        // Connections that have something urgent to send come before others that have something to send.
        while let Some(output) = self.world.nodes[1].out.pop() {
            self.world.carry_out(1, output);
        }
        let conn = self.world.conns(1, IDLE);
        for conn in conn {
            self.world.pull(1, conn);
        }
        while self.world.step(IDLE) {}
        let keepalives = self.world.peer(IDLE, 1).received.keepalive;
        if keepalives > self.heard.0 {
            self.longest = self.longest.max(self.world.now.saturating_since(self.heard.1));
            self.heard = (keepalives, self.world.now);
        }
    }

    /// Does all that there is to do, one call at a time.
    fn settle(&mut self) {
        for _ in 0..1_000_000 {
            let mut busy = self.world.nodes[1].speaker.has_work();
            if busy {
                self.spend(|world| {
                    let now = world.now;
                    world.nodes[1].measured(|Node { speaker, out, .. }| speaker.work(now, 100, out));
                });
            }
            for other in (0..IDLE).filter(|n| *n != 1) {
                busy |= self.world.step(other);
                for conn in self.world.conns(1, other) {
                    if self.world.nodes[1].conns[&conn].awake {
                        busy = true;
                        self.spend(|world| {
                            world.pull(1, conn);
                        });
                    }
                    if self.world.nodes[1].conns.get(&conn).is_some_and(|conn| !conn.arrived.is_empty()) {
                        busy = true;
                        self.spend(|world| world.read(1, conn));
                    }
                }
            }
            if !busy {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    /// Something is asked of 1; and the idle neighbour hears nothing of it.
    #[track_caller]
    fn check(&mut self, what: &str, thing: impl FnOnce(&mut World)) {
        (self.longest, self.spent) = (Duration::ZERO, Duration::ZERO);
        self.heard.1 = self.world.now;
        self.spend(thing);
        self.settle();
        assert!(self.spent >= COST * MANY, "{what}: it took {:?} only, that proves nothing", self.spent);
        // A KEEPALIVE is due every second; a slice may be under way then, and another begun.
        let limit = Duration::from_secs(1) + COST * 2 * LONGEST_CALL as u32;
        assert!(self.longest <= limit, "{what}: {:?} without a KEEPALIVE", self.longest);
        assert_eq!(self.world.peer(IDLE, 1).established_count, 1, "{what}");
        assert_eq!(self.world.peer(1, IDLE).established_count, 1, "{what}");
    }
}

#[test]
fn keepalives_leave_in_time_whatever_is_asked() {
    let mut busy = Busy::new();
    busy.check("policies on the way out", |world| {
        for listener in 2..IDLE {
            world.command(1, Command::PutPolicy(name(listener), policy(100 + listener as u32)));
        }
    });
    busy.check("a policy on the way in", |world| {
        world.command(1, Command::PutPolicy("in".into(), policy(7)));
        let import = Chain::named("in");
        let config = PeerConfig { passive: true, import, ..world.config(0) };
        world.command(1, Command::PutPeer(key(0), config));
    });
    busy.check("everything sent again", |world| {
        for listener in 2..IDLE {
            world.command(1, Command::ClearPeer(key(listener), Clear::SoftOut));
        }
    });
    busy.check("everything judged again", |world| {
        world.command(1, Command::ClearPeer(key(0), Clear::SoftIn));
    });
    busy.check("a next hop", |world| {
        world.command(
            1,
            Command::PutNextHop(address(0), NextHopState { metric: 5, ..NextHopState::default() }),
        );
    });
    busy.check("groups that change", |world| {
        for listener in 2..IDLE {
            let config = PeerConfig { passive: true, ..world.config(listener) };
            world.command(1, Command::PutPeer(key(listener), config));
        }
    });
    busy.check("a lower prefix limit", |world| {
        let limit = crate::limit::PrefixLimit { limit: 10, action: crate::limit::LimitAction::Discard };
        let max_prefixes = [(V4, limit)].into();
        let config = PeerConfig { passive: true, max_prefixes, ..world.config(0) };
        world.command(1, Command::PutPeer(key(0), config));
    });
    busy.check("all of it, and the loss of the neighbour", |world| {
        let config = PeerConfig { passive: true, ..world.config(0) };
        world.command(1, Command::PutPeer(key(0), config));
        for listener in 2..IDLE {
            let export = Chain::named(name(listener));
            let config = PeerConfig { passive: true, export, ..world.config(listener) };
            world.command(1, Command::PutPeer(key(listener), config));
        }
        world.command(1, Command::DeletePeer(key(0)));
    });
}

#[test]
fn a_query_and_a_subscriber_get_their_answers_in_slices() {
    let mut busy = Busy::new();
    let speaker = &mut busy.world.nodes[1].speaker;
    let query = RouteQuery { table: RouteTable::LocRib, family: V4, prefix: None };
    let page = speaker.routes(busy.world.now, &query, None, usize::MAX).unwrap();
    assert!(page.next.is_some() && page.routes.len() <= 100, "{}", page.routes.len());
    let id = speaker.subscribe(FamilySet::UNICAST);
    let mut events = Vec::new();
    let mut calls = 0;
    while events.len() < MANY as usize + 2 {
        let before = speaker.stats().looked_at;
        speaker.take(id, usize::MAX, &mut events);
        assert!(speaker.stats().looked_at - before <= LONGEST_CALL);
        calls += 1;
        if !speaker.has_work() {
            break;
        }
        // It says that there is more.
        let mut out = Outbox::new();
        speaker.work(busy.world.now, 100, &mut out);
        assert!(out.iter().any(|output| *output == Output::RibReady(id)));
    }
    let changes = events.iter().filter(|event| matches!(event, RibEvent::Change(_))).count();
    assert_eq!(changes, MANY as usize);
    assert!(calls > 20, "{calls}");
}

#[test]
fn a_neighbour_that_does_not_read_has_one_keepalive_waiting() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.stall(0, 1, true);
    let conn = world.conns(1, 0)[0];
    for _ in 0..1000 {
        let keepalive = Bytes::from_static(&[&[0xff; 16][..], &[0, 19, 4]].concat().leak()[..]);
        let Node { speaker, out, .. } = &mut world.nodes[1];
        speaker.send(conn, keepalive, out);
    }
    assert_eq!(world.nodes[1].speaker.conns[&conn].control.len(), 1);
}
