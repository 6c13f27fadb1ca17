//! The speaker under test, and neighbours that are nothing but octets: they say what they are told to say, and write down
//! what they hear.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bgp_wire::capability::{GracefulFamily, GracefulRestart};
use bgp_wire::{Asn, Capability, Family, FamilySet, Open, RouterId};
use bytes::BytesMut;
use ipnet::Ipv4Net;

use super::reference::{OUR_ADDRESS, OUR_ASN, OUR_ID, Peer, Reference};
use super::route::{Attrs, Update, message};
use crate::command::Command;
use crate::outbox::Outbox;
use crate::peer_key::{ConnId, InstanceName, PeerKey};
use crate::query::{Explanation, RouteEntry, RouteQuery, RouteTable};
use crate::rib::{RibChange, RibEvent};
use crate::session::{CloseReason, Direction, Link as Ends};
use crate::speaker::{Input, Output, Speaker, SpeakerSettings, SubscriberId};
use crate::time::Instant;

const OPEN: u8 = 1;
const UPDATE: u8 = 2;
const NOTIFICATION: u8 = 3;
const KEEPALIVE: u8 = 4;
const REFRESH: u8 = 5;

/// One end of a session.
pub(super) struct Session {
    conn: ConnId,
    awake: bool,
    /// The other end has sent its KEEPALIVE.
    pub(super) up: bool,
    /// What it has been told and must believe.
    pub(super) held: BTreeMap<Ipv4Net, Attrs>,
    /// What was taken back from it since the last look.
    pub(super) taken_back: BTreeSet<Ipv4Net>,
    /// It was told to forget what it did not have.
    pub(super) superfluous: BTreeSet<Ipv4Net>,
    /// It has not read for a while, at some time.
    pub(super) was_slow: bool,
    /// It asks for nothing, and is asked to say everything again.
    asked: bool,
}

/// The speaker and what is connected to it.
pub(super) struct Link {
    speaker: Speaker,
    out: Outbox<Output>,
    now: Instant,
    pub(super) sessions: BTreeMap<usize, Session>,
    accepted: u64,
    pub(super) stalled: BTreeSet<usize>,
    pub(super) pull_octets: usize,
    subscriber: SubscriberId,
    /// What the change stream has told.
    pub(super) stream: BTreeMap<Ipv4Net, RibChange>,
}

impl Link {
    pub(super) fn new(pull_octets: usize) -> Self {
        let id = RouterId(OUR_ID);
        let settings = SpeakerSettings::new(InstanceName::new("model"), Asn(OUR_ASN), id, 5);
        let mut speaker = Speaker::new(settings);
        let subscriber = speaker.subscribe(FamilySet::only(Family::Ipv4Unicast));
        Self {
            speaker,
            out: Outbox::new(),
            now: Instant::from_secs(1),
            sessions: BTreeMap::new(),
            accepted: 0,
            stalled: BTreeSet::new(),
            pull_octets,
            subscriber,
            stream: BTreeMap::new(),
        }
    }

    pub(super) fn command(&mut self, command: Command) {
        self.speaker.command(self.now, command, &mut self.out).unwrap();
    }

    /// The neighbour connects, and both say what has to be said. Waits for as long as the speaker stays away from it.
    pub(super) fn connect(&mut self, number: usize, peer: &Peer) {
        self.flush();
        for _ in 0..10 {
            self.accepted += 1;
            let conn = ConnId::accepted(self.accepted);
            let ends = |address| SocketAddr::new(IpAddr::V4(address), 179);
            let ends = Ends {
                local: ends(OUR_ADDRESS),
                remote: SocketAddr::new(peer.address.into(), 40_000),
                direction: Direction::Passive,
            };
            let session = Session {
                conn,
                awake: false,
                up: false,
                held: BTreeMap::new(),
                taken_back: BTreeSet::new(),
                superfluous: BTreeSet::new(),
                was_slow: false,
                asked: false,
            };
            self.sessions.insert(number, session);
            self.input(Input::Accepted { conn, link: ends });
            let mut capabilities = vec![
                Capability::family(Family::Ipv4Unicast),
                Capability::FourOctetAs(Asn(peer.asn)),
                Capability::RouteRefresh,
            ];
            if peer.graceful {
                // It keeps its forwarding state, whatever happens.
                capabilities.push(Capability::GracefulRestart(GracefulRestart {
                    restarting: false,
                    notification: false,
                    time: 120,
                    families: vec![GracefulFamily { afi: 1, safi: 1, forwarding: true }],
                }));
            }
            // Without a hold time nobody has to be kept alive.
            let mut open = BytesMut::new();
            Open::new(Asn(peer.asn), 0, RouterId(peer.id), capabilities).encode(&mut open).unwrap();
            self.say(number, &open);
            self.say(number, &message(KEEPALIVE, &[]));
            self.flush();
            while self.sessions.get(&number).is_some_and(|session| !session.up) && self.step() {}
            if self.sessions.contains_key(&number) {
                return;
            }
            self.pass(Duration::from_secs(1));
        }
        panic!("neighbour {number} does not come up");
    }

    pub(super) fn disconnect(&mut self, number: usize) {
        if let Some(session) = self.sessions.remove(&number) {
            self.input(Input::Closed { conn: session.conn, reason: CloseReason::EndOfStream });
        }
    }

    /// Whole messages from a neighbour.
    pub(super) fn say(&mut self, number: usize, octets: &[u8]) {
        if let Some(session) = self.sessions.get(&number) {
            self.input(Input::Received { conn: session.conn, messages: octets });
        }
    }

    /// A neighbour asks for everything again (RFC 2918).
    pub(super) fn ask(&mut self, number: usize) {
        self.say(number, &message(REFRESH, &[0, 1, 0, 1]));
    }

    pub(super) fn stall(&mut self, number: usize, stalled: bool) {
        if stalled {
            self.stalled.insert(number);
        } else {
            self.stalled.remove(&number);
        }
        if let Some(session) = self.sessions.get_mut(&number) {
            session.was_slow |= stalled;
        }
    }

    fn input(&mut self, input: Input<'_>) {
        self.speaker.handle(self.now, input, &mut self.out);
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.speaker.deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.input(Input::Tick);
            self.flush();
        }
        self.now = end;
    }

    /// Goes on until nothing is to be done, but by those who do not read.
    pub(super) fn settle(&mut self, reference: &Reference) {
        for _ in 0..100_000 {
            if !self.step() {
                let asked: Vec<usize> =
                    self.sessions.iter().filter(|(_, session)| session.asked).map(|(n, _)| *n).collect();
                if asked.is_empty() {
                    return self.listen();
                }
                for number in asked {
                    self.sessions.get_mut(&number).unwrap().asked = false;
                    let Peer { said, stale, .. } = &reference.peers[number];
                    for (prefix, attrs) in said.iter().filter(|(prefix, _)| !stale.contains(prefix)) {
                        self.say(number, &Update::announce(*prefix, attrs.clone()).write());
                    }
                }
            }
        }
        panic!("the speaker does not come to rest");
    }

    fn flush(&mut self) {
        while let Some(output) = self.out.pop() {
            match output {
                Output::Wake { conn } => {
                    if let Some(session) = self.sessions.values_mut().find(|session| session.conn == conn) {
                        session.awake = true;
                    }
                }
                Output::Close { conn } => self.sessions.retain(|_, session| session.conn != conn),
                Output::Dial { .. } => panic!("everyone is passive"),
                Output::Peer(_) | Output::RibReady(_) => {}
            }
        }
    }

    /// One round; whether anything happened.
    pub(super) fn step(&mut self) -> bool {
        self.flush();
        let awake: Vec<(usize, ConnId)> = self
            .sessions
            .iter()
            .filter(|(number, session)| session.awake && !self.stalled.contains(number))
            .map(|(number, session)| (*number, session.conn))
            .collect();
        let mut busy = !awake.is_empty();
        for (number, conn) in awake {
            let mut chunks = Vec::new();
            let more = self.speaker.pull(self.now, conn, self.pull_octets, &mut chunks);
            let session = self.sessions.get_mut(&number).unwrap();
            session.awake = more;
            session.hear(&chunks.concat());
        }
        if self.speaker.has_work() {
            busy = true;
            self.speaker.work(self.now, 50, &mut self.out);
        }
        self.flush();
        busy
    }

    /// Takes what the change stream has.
    fn listen(&mut self) {
        let mut events = Vec::new();
        loop {
            let before = events.len();
            self.speaker.take(self.subscriber, 7, &mut events);
            if events.len() == before && !self.step() {
                break;
            }
        }
        for event in events {
            match event {
                RibEvent::Resync => self.stream.clear(),
                RibEvent::Change(change) => {
                    let Some(ipnet::IpNet::V4(prefix)) = change.nlri.unicast() else { continue };
                    match change.best {
                        Some(_) => self.stream.insert(prefix, change),
                        None => self.stream.remove(&prefix),
                    };
                }
                RibEvent::Replayed | RibEvent::Converged(_) => {}
            }
        }
    }

    /// Why a prefix is as it is.
    pub(super) fn explain(&mut self, prefix: Ipv4Net) -> Option<Explanation> {
        self.speaker.explain(self.now, ipnet::IpNet::V4(prefix).into())
    }

    /// A table, by prefix.
    pub(super) fn routes(&mut self, table: RouteTable) -> BTreeMap<Ipv4Net, RouteEntry> {
        let query = RouteQuery { table, family: Family::Ipv4Unicast, prefix: None };
        let (mut routes, mut cursor) = (BTreeMap::new(), None);
        loop {
            let page = self.speaker.routes(self.now, &query, cursor, 10).unwrap();
            for route in page.routes {
                let Some(ipnet::IpNet::V4(prefix)) = route.nlri.unicast() else { panic!("{}", route.nlri) };
                assert!(routes.insert(prefix, route).is_none(), "{prefix} is there twice");
            }
            cursor = page.next;
            if cursor.is_none() {
                return routes;
            }
        }
    }
}

impl Session {
    fn hear(&mut self, mut octets: &[u8]) {
        while !octets.is_empty() {
            let (head, rest) = octets.split_at(19);
            let len = usize::from(head[16]) << 8 | usize::from(head[17]);
            let (body, rest) = rest.split_at(len - 19);
            octets = rest;
            match head[18] {
                OPEN => {}
                KEEPALIVE => self.up = true,
                UPDATE => self.update(Update::read(body)),
                // Not what is marked: that was not agreed on.
                REFRESH => self.asked = true,
                NOTIFICATION => panic!("a NOTIFICATION: {body:?}"),
                kind => panic!("a message of type {kind}"),
            }
        }
    }

    fn update(&mut self, update: Update) {
        for prefix in update.withdrawn {
            if self.held.remove(&prefix).is_some() {
                self.taken_back.insert(prefix);
            } else {
                self.superfluous.insert(prefix);
            }
        }
        for prefix in update.announced {
            self.held.insert(prefix, update.attrs.clone().expect("attributes of what is announced"));
        }
    }
}

/// How the speaker knows a neighbour.
pub(super) fn key(peer: &Peer) -> PeerKey {
    PeerKey::new(peer.address.into())
}
