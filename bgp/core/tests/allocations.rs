//! No allocation per prefix on the path from bytes to RIB to bytes.
//!
//! A speaker between two external neighbours passes a table on. What it allocates may depend on how many messages and
//! attribute sets there are, and tables grow by pages; more prefixes in messages of the same size cost next to nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use bgp_core::command::{Command, PeerConfig};
use bgp_core::outbox::Outbox;
use bgp_core::peer_key::{ConnId, InstanceName, PeerKey};
use bgp_core::session::{Direction, Link, RemoteAsn};
use bgp_core::speaker::{Input, Output, Speaker, SpeakerSettings};
use bgp_core::time::Instant;
use bgp_core::{Asn, Family, RouterId};
use bgp_wire::attr::{self, Builder, Canonical, Origin};
use bgp_wire::{Capability, EncodeOptions, Ipv4Prefix, Open, PathId, UpdateWriter, split_message};
use bytes::{Bytes, BytesMut};
use test_support::allocations::{Counting, counted};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KEEPALIVE: [u8; 19] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 19, 4,
];
/// Different attribute sets.
const SETS: u32 = 50;
/// Prefixes of one attribute set that go together.
const RUN: u32 = 200;
const SENDER: ConnId = ConnId::accepted(1);
const RECEIVER: ConnId = ConnId::accepted(2);

/// A speaker in AS 65000 with a neighbour that tells, and one that is told.
struct World {
    speaker: Speaker,
    out: Outbox<Output>,
    now: Instant,
    pulled: Vec<Bytes>,
    /// Octets that the receiver has been sent.
    told: u64,
}

impl World {
    fn new() -> Self {
        let settings = SpeakerSettings::new(InstanceName::new("test"), Asn(65000), RouterId(1), 7);
        let mut world = Self {
            speaker: Speaker::new(settings),
            out: Outbox::new(),
            now: Instant::from_secs(1),
            pulled: Vec::new(),
            told: 0,
        };
        for (conn, last) in [(SENDER, 2_u8), (RECEIVER, 3)] {
            let remote = Ipv4Addr::new(192, 0, 2, last);
            let asn = Asn(65000 + u32::from(last));
            let config = PeerConfig { passive: true, ..PeerConfig::new(RemoteAsn::External) };
            world.command(Command::PutPeer(PeerKey::new(remote.into()), config));
            let link = Link {
                local: SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 179)),
                remote: SocketAddr::from((remote, 40_000)),
                direction: Direction::Passive,
            };
            world.handle(Input::Accepted { conn, link });
            let capabilities = vec![Capability::family(Family::Ipv4Unicast), Capability::FourOctetAs(asn)];
            let mut octets = BytesMut::new();
            Open::new(asn, 0, RouterId(u32::from(last)), capabilities).encode(&mut octets).unwrap();
            octets.extend_from_slice(&KEEPALIVE);
            world.handle(Input::Received { conn, messages: &octets });
        }
        world.command(Command::LoadingDone);
        world.settle();
        world
    }

    fn command(&mut self, command: Command) {
        self.speaker.command(self.now, command, &mut self.out).unwrap();
    }

    fn handle(&mut self, input: Input<'_>) {
        self.speaker.handle(self.now, input, &mut self.out);
        self.out.drain().for_each(drop);
    }

    /// Everything that is to be said is said.
    fn settle(&mut self) {
        loop {
            while self.speaker.has_work() {
                self.speaker.work(self.now, 100_000, &mut self.out);
            }
            self.out.drain().for_each(drop);
            let mut any = false;
            for conn in [SENDER, RECEIVER] {
                self.speaker.pull(self.now, conn, 128 * 1024, &mut self.pulled);
                any |= !self.pulled.is_empty();
                for chunk in self.pulled.drain(..) {
                    self.told += if conn == RECEIVER { chunk.len() as u64 } else { 0 };
                }
            }
            if !any {
                return;
            }
        }
    }

    /// The sender says messages, and the receiver takes what follows. How many allocations that has cost.
    fn pass(&mut self, messages: &[u8]) -> u64 {
        let ((), allocations) = counted(|| {
            let mut rest = messages;
            while !rest.is_empty() {
                // About as much at a time as a reader's buffer has.
                let mut taken = 0;
                while let Ok(Some(frame)) = split_message(&rest[taken..], 4096) {
                    taken += frame.raw.len();
                    if taken > 48 * 1024 {
                        break;
                    }
                }
                let (now, later) = rest.split_at(taken);
                self.handle(Input::Received { conn: SENDER, messages: now });
                self.settle();
                rest = later;
            }
        });
        allocations
    }
}

/// Prefixes of a range, announced with the sets of a round, or withdrawn where there is no round.
fn table(range: Range<u32>, round: Option<u32>) -> Bytes {
    let mut out = BytesMut::new();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
    let prefixes = |from: u32| {
        (from..from + RUN).map(|n| (PathId::NONE, Ipv4Prefix::new(0x0100_0000 + (n << 8), 24).unwrap()))
    };
    for (run, from) in (0..).zip(range.step_by(RUN as usize)) {
        let Some(round) = round else {
            writer.withdraw_v4(prefixes(from));
            continue;
        };
        let mut builder = Builder::new(Origin::Igp);
        builder
            .prepend(Asn(60_000 + run % SETS), 1)
            .prepend(Asn(65_002), 1)
            .local_pref(None)
            .med(Some(round));
        let set = builder.build();
        let mut attrs = Vec::new();
        attr::encode(Canonical(&set), Some(Ipv4Addr::new(192, 0, 2, 2)), true, &mut attrs);
        writer.announce_v4(&attrs, prefixes(from)).unwrap();
    }
    out.freeze()
}

#[test]
fn a_prefix_costs_no_allocation() {
    let mut world = World::new();
    // All attribute sets have been seen before anything is counted.
    let warm = 0..SETS * RUN;
    for round in 0..2 {
        world.pass(&table(warm.clone(), Some(round)));
    }
    let few = warm.end..warm.end + 40_000;
    let many = few.end..few.end + 120_000;
    for (what, round) in
        [("announced", Some(0)), ("changed", Some(1)), ("changed back", Some(0)), ("withdrawn", None)]
    {
        let [at_few, at_many] = [&few, &many].map(|range| {
            let octets = table(range.clone(), round);
            let before = world.told;
            let allocations = world.pass(&octets);
            assert!(world.told - before >= 4 * range.len() as u64, "{what}: every prefix is passed on");
            allocations
        });
        let more = (many.len() - few.len()) as f64;
        let per_thousand = at_many.saturating_sub(at_few) as f64 * 1000.0 / more;
        println!(
            "{what}: {at_few} for {}, {at_many} for {}: {per_thousand:.2} per thousand more",
            few.len(),
            many.len()
        );
        assert!(per_thousand < 20.0, "{what}: {per_thousand} allocations per thousand prefixes");
    }
    assert_eq!(world.speaker.sizes().destinations[0], warm.len() as u64);
}

#[test]
fn the_allocator_counts() {
    let (boxes, allocations) = counted(|| (0..1000).map(Box::new).collect::<Vec<_>>());
    assert!((1000..1020).contains(&allocations), "{allocations}");
    assert_eq!(counted(|| drop(boxes)).1, 0);
}
