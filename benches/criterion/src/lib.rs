//! A speaker in memory between neighbours that say whole tables, for measuring what a prefix costs it.
//!
//! `benches/prefixes.rs` measures time, `tests/allocations.rs` holds that a prefix costs no allocation. Everything goes
//! through what an embedder has: octets in, octets out.

#![allow(clippy::expect_used, reason = "a harness: what it expects, it has made itself")]

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

const KEEPALIVE: [u8; 19] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 19, 4,
];
/// Different attribute sets of a table.
pub const SETS: u32 = 50;
/// Prefixes of one attribute set that go together.
pub const RUN: u32 = 200;

/// A speaker in AS 65000 with external neighbours: neighbour `n`, counted from 0, is 192.0.2.(2 + n) in AS 65002 + n.
pub struct World {
    speaker: Speaker,
    out: Outbox<Output>,
    now: Instant,
    pulled: Vec<Bytes>,
    neighbours: u8,
    /// Octets that the last neighbour has been sent.
    pub told: u64,
}

impl World {
    /// With so many neighbours, all of them established.
    ///
    /// # Panics
    ///
    /// When the speaker does not take them.
    #[must_use]
    pub fn new(neighbours: u8) -> Self {
        let settings = SpeakerSettings::new(InstanceName::new("bench"), Asn(65000), RouterId(1), 7);
        let mut world = Self {
            speaker: Speaker::new(settings),
            out: Outbox::new(),
            now: Instant::from_secs(1),
            pulled: Vec::new(),
            neighbours,
            told: 0,
        };
        for n in 0..neighbours {
            let remote = Ipv4Addr::new(192, 0, 2, 2 + n);
            let asn = Asn(65002 + u32::from(n));
            let config = PeerConfig { passive: true, ..PeerConfig::new(RemoteAsn::External) };
            world.command(Command::PutPeer(PeerKey::new(remote.into()), config));
            let link = Link {
                local: SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 179)),
                remote: SocketAddr::from((remote, 40_000)),
                direction: Direction::Passive,
            };
            world.handle(Input::Accepted { conn: conn(n), link });
            let capabilities = vec![
                Capability::family(Family::Ipv4Unicast),
                Capability::FourOctetAs(asn),
                Capability::RouteRefresh,
            ];
            let mut octets = BytesMut::new();
            let open = Open::new(asn, 0, RouterId(2 + u32::from(n)), capabilities);
            open.encode(&mut octets).expect("a short OPEN");
            octets.extend_from_slice(&KEEPALIVE);
            world.handle(Input::Received { conn: conn(n), messages: &octets });
        }
        world.command(Command::LoadingDone);
        world.settle();
        world
    }

    /// Carries out a command.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub fn command(&mut self, command: Command) {
        self.speaker.command(self.now, command, &mut self.out).expect("it is not refused");
    }

    /// The speaker itself.
    #[must_use]
    pub const fn speaker(&self) -> &Speaker {
        &self.speaker
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
            for n in 0..self.neighbours {
                self.speaker.pull(self.now, conn(n), 128 * 1024, &mut self.pulled);
                any |= !self.pulled.is_empty();
                for chunk in self.pulled.drain(..) {
                    self.told += if n + 1 == self.neighbours { chunk.len() as u64 } else { 0 };
                }
            }
            if !any {
                return;
            }
        }
    }

    /// A neighbour says messages, about as many at a time as a reader's buffer has, and the others take what follows.
    pub fn say(&mut self, neighbour: u8, messages: &[u8]) {
        let mut rest = messages;
        while !rest.is_empty() {
            let mut taken = 0;
            while let Ok(Some(frame)) = split_message(rest.get(taken..).unwrap_or_default(), 4096) {
                taken += frame.raw.len();
                if taken > 48 * 1024 {
                    break;
                }
            }
            let (now, later) = rest.split_at(taken.max(1));
            self.handle(Input::Received { conn: conn(neighbour), messages: now });
            self.settle();
            rest = later;
        }
    }
}

const fn conn(neighbour: u8) -> ConnId {
    ConnId::accepted(1 + neighbour as u64)
}

/// The `n`th of many prefixes.
///
/// # Panics
///
/// Never for fewer than fifteen million.
#[must_use]
pub fn nth(n: u32) -> Ipv4Prefix {
    Ipv4Prefix::new(0x0100_0000 + (n << 8), 24).expect("24 bits")
}

/// The attributes of the `n`th set in a round, as a neighbour sends them. Another round is another MULTI_EXIT_DISC.
#[must_use]
pub fn attributes(n: u32, round: u32) -> Vec<u8> {
    let mut builder = Builder::new(Origin::Igp);
    builder.prepend(Asn(60_000 + n), 1).prepend(Asn(65_002), 1).med(Some(round));
    let set = builder.build();
    let mut attrs = Vec::new();
    attr::encode(Canonical(&set), Some(Ipv4Addr::new(192, 0, 2, 2)), true, &mut attrs);
    attrs
}

/// Prefixes of a range, announced with the sets of a round, or withdrawn where there is no round.
///
/// # Panics
///
/// Never: a run fits into a message.
#[must_use]
pub fn table(range: Range<u32>, round: Option<u32>) -> Bytes {
    let mut out = BytesMut::new();
    let mut writer = UpdateWriter::new(&mut out, EncodeOptions::default());
    let prefixes = |from: u32| (from..from + RUN).map(|n| (PathId::NONE, nth(n)));
    for (run, from) in (0..).zip(range.step_by(RUN as usize)) {
        match round {
            Some(round) => {
                let attrs = attributes(run % SETS, round);
                writer.announce_v4(&attrs, prefixes(from)).expect("there is room");
            }
            None => drop(writer.withdraw_v4(prefixes(from))),
        }
    }
    out.freeze()
}
