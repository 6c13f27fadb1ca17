//! The whole state × event table, then each rule that doesn't fit a table. `simulation` lets two peers meet.

#![allow(clippy::unwrap_used)]

mod chaos;
mod delay;
mod lone;
mod simulation;
mod table;

use std::net::SocketAddr;
use std::num::NonZeroU16;

use std::time::Duration;

use bgp_wire::notification::Reason;
use bgp_wire::{
    Asn, Capability, Family, FamilySet, MessageType, Notification, Open, RouterId, split_message,
};
use bytes::{Bytes, BytesMut};

use super::exchange::{KEEPALIVE, encoded};
use super::*;
use crate::session::{CloseReason, ConnectError, GracefulRestart, HoldTime, IdleHold, Link, RemoteAsn};

const OURS: RouterId = RouterId(0xc000_020a);
const THEIRS: RouterId = RouterId(0xc000_0214);
const START: Instant = Instant::from_secs(1000);
const OUT: ConnId = ConnId::dialled(1);
const IN: ConnId = ConnId::accepted(1);

fn settings() -> PeerSettings {
    PeerSettings::new(Asn(65010), RemoteAsn::Is(Asn(65020)), OURS)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn link(direction: Direction) -> Link {
    let (local, remote): (SocketAddr, SocketAddr) =
        ("192.0.2.10:179".parse().unwrap(), "192.0.2.20:179".parse().unwrap());
    Link { local, remote, direction }
}

/// An OPEN as the neighbour sends it, changed by `edit`.
fn open(edit: impl FnOnce(&mut Open)) -> Vec<u8> {
    let capabilities = vec![Capability::family(Family::Ipv4Unicast), Capability::RouteRefresh];
    let mut open = Open::new(Asn(65020), 90, THEIRS, capabilities);
    edit(&mut open);
    let mut bytes = BytesMut::new();
    open.encode(&mut bytes).unwrap();
    bytes.to_vec()
}

/// The neighbour's OPEN with the graceful restart capability.
fn restart_open(restarting: bool) -> Vec<u8> {
    open(|open| {
        open.capabilities.extend(GracefulRestart::USUAL.capabilities(settings().families, restarting, false));
    })
}

fn notification(code: u8, subcode: u8) -> Vec<u8> {
    encoded(&Notification { code, subcode, data: Box::default() }).to_vec()
}

fn update() -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend([0, 23, 2, 0, 0, 0, 0]);
    bytes
}

fn route_refresh() -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend([0, 23, 5, 0, 1, 0, 1]);
    bytes
}

/// A peer with its clock and the outputs nobody has looked at.
struct Bench {
    peer: Peer,
    now: Instant,
    out: Outbox<Output>,
}

impl Bench {
    fn new(settings: PeerSettings) -> Self {
        Self { peer: Peer::new(settings, 1), now: START, out: Outbox::new() }
    }

    /// A bench whose peer has reached `state` on a connection of its own.
    fn at(state: State, settings: PeerSettings) -> Self {
        let mut bench = Self::new(settings);
        if state == State::Idle {
            return bench;
        }
        bench.input(Input::Start);
        match state {
            State::Idle | State::Connect => {}
            State::Active => bench.input(Input::ConnectFailed(ConnectError::TimedOut)),
            State::OpenSent | State::OpenConfirm | State::Established => {
                bench.input(Input::Connected(OUT, link(Direction::Active)));
            }
        }
        if state >= State::OpenConfirm {
            bench.receive(OUT, &open(|_| ()));
        }
        if state == State::Established {
            bench.receive(OUT, &KEEPALIVE);
        }
        assert_eq!(bench.peer.state(), state);
        bench.out = Outbox::new();
        bench
    }

    fn input(&mut self, input: Input<'_>) {
        self.peer.handle(self.now, input, &mut self.out);
    }

    fn receive(&mut self, conn: ConnId, bytes: &[u8]) {
        match split_message(bytes, 4096) {
            Ok(Some(frame)) => self.input(Input::Received(conn, frame)),
            Ok(None) => panic!("not a whole message"),
            Err(error) => self.input(Input::Malformed(conn, error)),
        }
    }

    /// Lets time pass, with a tick at every deadline and at the end.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.peer.deadline().filter(|at| *at <= end) {
            self.now = at;
            self.input(Input::Tick);
            assert!(self.peer.deadline().is_none_or(|next| next > at), "a tick makes progress");
        }
        self.now = end;
        self.input(Input::Tick);
    }

    /// What has come out since the last look, in short words.
    fn said(&mut self) -> String {
        let words: Vec<_> = self.out.drain().map(|output| word(&output)).collect();
        words.join(", ")
    }

    /// [`Bench::said`] with the names of the connections.
    fn said_on(&mut self) -> String {
        let words: Vec<_> = self
            .out
            .drain()
            .map(|output| match output {
                Output::Send(conn, _) | Output::Close(conn) | Output::Up { conn, .. } => {
                    format!("{} {conn}", word(&output))
                }
                Output::Connect
                | Output::CancelConnect
                | Output::Deliver
                | Output::Refresh(_)
                | Output::Down(..)
                | Output::Failed(_) => word(&output),
            })
            .collect();
        words.join(", ")
    }
}

fn word(output: &Output) -> String {
    match output {
        Output::Connect => "connect".into(),
        Output::CancelConnect => "cancel".into(),
        Output::Send(_, outgoing) => match outgoing.kind {
            MessageType::Open => "OPEN".into(),
            MessageType::Keepalive => "KEEPALIVE".into(),
            MessageType::Notification => {
                let bytes = &outgoing.bytes;
                let data: String = bytes[21..].iter().map(|octet| format!("{octet:02x}")).collect();
                format!("{}/{}{}{data}", bytes[19], bytes[20], if data.is_empty() { "" } else { " " })
            }
            MessageType::Update | MessageType::RouteRefresh => panic!("not a session's to send"),
        },
        Output::Close(_) => "close".into(),
        Output::Up { .. } => "up".into(),
        Output::Deliver => "deliver".into(),
        Output::Refresh(_) => "refresh".into(),
        Output::Down(..) => "down".into(),
        Output::Failed(_) => "failed".into(),
    }
}
