//! A world in memory: speakers joined by queues of octets, with a clock that only moves when told.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod add_path;
mod admin;
mod aggregates;
mod bulk;
mod capabilities;
mod commands;
mod exchange;
mod explain;
mod limits;
mod long_lived;
mod model;
mod paths;
mod policies;
mod prompt;
mod property;
mod range;
mod receiver;
mod reflection;
mod restart;
mod role;
mod slow;
mod sr_policy;
mod stream;
mod vpn;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bgp_wire::attr::Canonical;
use bgp_wire::{Asn, Family, FamilySet, Nlri, RouterId};
use bytes::Bytes;

use super::{Input, Output, PeerEventKind, Speaker, SpeakerSettings};
use crate::command::{Applied, Command, Origination, PeerConfig};
use crate::outbox::Outbox;
use crate::peer_key::{ConnId, InstanceName, PeerKey};
use crate::query::{PeerStatus, RouteEntry, RouteQuery, RouteTable};
use crate::rib::RibEvent;
use crate::session::{CloseReason, ConnectError, Direction, GracefulRestart, Link, RemoteAsn, State};
use crate::time::Instant;

/// The most destinations that one call may look at; in tests, batches and steps are small. A step of long work in one family
/// and a batch of a group on top of it; or a budget of `pull` and a batch, for each of two families.
pub(super) const LONGEST_CALL: u64 = 500;

/// A speaker and the sockets it believes to have.
pub(super) struct Node {
    pub(super) speaker: Speaker,
    pub(super) asn: Asn,
    out: Outbox<Output>,
    conns: BTreeMap<ConnId, Conn>,
    accepted: u64,
    /// Every octet sent, for comparison.
    pub(super) sent: Vec<u8>,
    pub(super) events: Vec<(PeerKey, PeerEventKind)>,
    pub(super) rib_ready: usize,
    /// What it was told to withdraw without having it, and by whom.
    pub(super) superfluous: Vec<(usize, Nlri)>,
    /// The most destinations that one call has looked at.
    pub(super) longest_call: u64,
}

struct Conn {
    to: usize,
    remote: ConnId,
    awake: bool,
    arrived: VecDeque<Bytes>,
    /// The other end has closed; said after what arrived before.
    closed: bool,
    receiver: receiver::Receiver,
}

/// All of them.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Node>,
    /// Pairs of nodes whose first takes no octets from the second: it does not read.
    stalled: Vec<(usize, usize)>,
    /// Pairs of nodes that cannot reach one another.
    cut: Vec<(usize, usize)>,
    pub(super) pull_octets: usize,
    /// What everyone offers of families.
    pub(super) families: FamilySet,
    /// What everyone offers of graceful restart.
    pub(super) graceful_restart: Option<GracefulRestart>,
}

pub(super) fn nlri(text: &str) -> Nlri {
    text.parse().unwrap()
}

/// The `n`th of many prefixes.
pub(super) fn nth(n: u32) -> Nlri {
    let address = Ipv4Addr::from(0x0a00_0000 + (n << 8));
    nlri(&format!("{address}/24"))
}

/// An own route that can be told from others by a community.
pub(super) fn marked(mark: u32) -> Origination {
    Origination { communities: vec![mark], ..Origination::default() }
}

impl World {
    /// Speakers of these AS numbers, without neighbours. Node `n` has the addresses 192.0.2.`n + 1` and
    /// 2001:db8::`n + 1`.
    pub(super) fn new(asns: &[u32]) -> Self {
        let nodes = asns.iter().enumerate().map(|(n, asn)| Node::new(n, Asn(*asn))).collect();
        Self {
            now: Instant::from_secs(1),
            nodes,
            stalled: Vec::new(),
            cut: Vec::new(),
            pull_octets: 64 * 1024,
            families: FamilySet::UNICAST,
            graceful_restart: None,
        }
    }

    /// The same with everyone a neighbour of everyone named in `pairs`, IPv4 and IPv6, and all routes loaded. The first
    /// of a pair connects.
    pub(super) fn joined(asns: &[u32], pairs: &[(usize, usize)]) -> Self {
        let mut world = Self::new(asns);
        for &(a, b) in pairs {
            world.join(a, b);
        }
        world.load();
        world.settle();
        world
    }

    /// Makes two nodes neighbours.
    pub(super) fn join(&mut self, a: usize, b: usize) {
        for (node, other, passive) in [(b, a, true), (a, b, false)] {
            let config = PeerConfig { passive, ..self.config(other) };
            self.command(node, Command::PutPeer(key(other), config));
        }
    }

    /// Makes two nodes neighbours over IPv6, with changes to both configurations.
    pub(super) fn join_over_ipv6(&mut self, a: usize, b: usize, change: impl Fn(&mut PeerConfig)) {
        for (node, other, passive) in [(b, a, true), (a, b, false)] {
            let mut config =
                PeerConfig { passive, families: FamilySet::UNICAST, ..PeerConfig::new(RemoteAsn::External) };
            change(&mut config);
            self.command(node, Command::PutPeer(key6(other), config));
        }
    }

    /// How a node is configured at others.
    pub(super) fn config(&self, node: usize) -> PeerConfig {
        PeerConfig {
            families: self.families,
            graceful_restart: self.graceful_restart,
            next_hop_v6: Some("2001:db8:ffff::1".parse().unwrap()),
            ..PeerConfig::new(RemoteAsn::Is(self.nodes[node].asn))
        }
    }

    /// Says at every node that its routes are in.
    pub(super) fn load(&mut self) {
        for node in 0..self.nodes.len() {
            self.command(node, Command::LoadingDone);
        }
    }

    pub(super) fn command(&mut self, node: usize, command: Command) -> Applied {
        self.try_command(node, command).unwrap()
    }

    pub(super) fn try_command(
        &mut self,
        node: usize,
        command: Command,
    ) -> Result<Applied, crate::command::Refusal> {
        let now = self.now;
        self.nodes[node].measured(|Node { speaker, out, .. }| speaker.command(now, command, out))
    }

    pub(super) fn originate(&mut self, node: usize, prefix: Nlri, origination: Origination) {
        self.command(node, Command::PutOrigination(prefix, origination));
    }

    /// `reader` stops reading what `writer` sends, or reads on.
    pub(super) fn stall(&mut self, reader: usize, writer: usize, stalled: bool) {
        self.stalled.retain(|pair| *pair != (reader, writer));
        if stalled {
            self.stalled.push((reader, writer));
        }
    }

    /// Breaks every connection between two nodes and lets no new one come up, or lets them come up again.
    pub(super) fn cut(&mut self, a: usize, b: usize, cut: bool) {
        self.cut.retain(|pair| *pair != (a, b));
        if cut {
            self.cut.push((a, b));
            for (node, other) in [(a, b), (b, a)] {
                let conns = self.conns(node, other);
                for conn in conns {
                    self.nodes[node].conns.remove(&conn);
                    self.input(node, Input::Closed { conn, reason: CloseReason::EndOfStream });
                }
            }
        }
    }

    fn conns(&self, node: usize, other: usize) -> Vec<ConnId> {
        self.nodes[node].conns.iter().filter(|(_, conn)| conn.to == other).map(|(id, _)| *id).collect()
    }

    fn input(&mut self, node: usize, input: Input<'_>) {
        let now = self.now;
        self.nodes[node].measured(|Node { speaker, out, .. }| speaker.handle(now, input, out));
    }

    /// Octets as if `from` had sent them to `to`, in one piece.
    pub(super) fn inject(&mut self, from: usize, to: usize, octets: Vec<u8>) {
        let conn = *self.conns(to, from).first().expect("they are connected");
        self.input(to, Input::Received { conn, messages: &octets });
    }

    /// Goes on until nobody has anything to do at this moment.
    pub(super) fn settle(&mut self) {
        for _ in 0..1_000_000 {
            if !(0..self.nodes.len()).fold(false, |any, node| self.step(node) | any) {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    /// Lets time pass, and whatever falls due in it happen when it is due.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while let Some(due) = self.nodes.iter().filter_map(|node| node.speaker.deadline()).min()
            && due <= end
        {
            self.now = self.now.max(due);
            for node in 0..self.nodes.len() {
                if self.nodes[node].speaker.deadline().is_some_and(|at| at <= self.now) {
                    self.input(node, Input::Tick);
                }
            }
            self.settle();
        }
        self.now = end;
    }

    /// One round of a node; whether anything happened.
    fn step(&mut self, node: usize) -> bool {
        let mut busy = false;
        while let Some(output) = self.nodes[node].out.pop() {
            busy = true;
            self.carry_out(node, output);
        }
        let awake: Vec<(ConnId, usize)> = self.nodes[node]
            .conns
            .iter()
            .filter(|(_, conn)| conn.awake)
            .map(|(id, conn)| (*id, conn.to))
            .collect();
        for (conn, to) in awake {
            if self.stalled.contains(&(to, node)) {
                continue;
            }
            busy = true;
            self.pull(node, conn);
        }
        let ready: Vec<ConnId> = self.nodes[node]
            .conns
            .iter()
            .filter(|(_, c)| c.closed || !c.arrived.is_empty())
            .map(|(id, _)| *id)
            .collect();
        for conn in ready {
            busy = true;
            self.read(node, conn);
        }
        if self.nodes[node].speaker.has_work() {
            busy = true;
            let now = self.now;
            self.nodes[node].measured(|Node { speaker, out, .. }| speaker.work(now, 100, out));
        }
        busy
    }

    fn pull(&mut self, node: usize, conn: ConnId) -> usize {
        let mut chunks = Vec::new();
        let (now, octets) = (self.now, self.pull_octets);
        let more = self.nodes[node].measured(|node| node.speaker.pull(now, conn, octets, &mut chunks));
        let Some(entry) = self.nodes[node].conns.get_mut(&conn) else { return 0 };
        entry.awake = more;
        let (to, remote) = (entry.to, entry.remote);
        for bytes in &chunks {
            self.nodes[node].sent.extend_from_slice(bytes);
        }
        let count = chunks.len();
        if let Some(other) = self.nodes[to].conns.get_mut(&remote) {
            other.arrived.extend(chunks);
        }
        count
    }

    fn read(&mut self, node: usize, conn: ConnId) {
        let Some(entry) = self.nodes[node].conns.get_mut(&conn) else { return };
        let mut messages = Vec::new();
        // Now and then several pieces arrive as one.
        for bytes in entry.arrived.drain(..) {
            messages.extend_from_slice(&bytes);
        }
        let closed = entry.closed;
        if !messages.is_empty() {
            self.input(node, Input::Received { conn, messages: &messages });
            self.take_down(node, conn, &messages);
        }
        if closed && self.nodes[node].conns.remove(&conn).is_some() {
            self.input(node, Input::Closed { conn, reason: CloseReason::EndOfStream });
        }
    }

    /// Notes what an established session was told.
    fn take_down(&mut self, node: usize, conn: ConnId, messages: &[u8]) {
        let Node { speaker, conns, superfluous, .. } = &mut self.nodes[node];
        let Some(entry) = conns.get_mut(&conn) else { return };
        let up = speaker.conns.get(&conn).and_then(|conn| speaker.peer(conn.peer)?.up.as_ref());
        if let Some(negotiated) = up.filter(|up| up.conn == conn).map(|up| Arc::clone(&up.negotiated)) {
            let told = entry.receiver.read(messages, &negotiated);
            superfluous.extend(told.into_iter().map(|nlri| (entry.to, nlri)));
        }
    }

    fn carry_out(&mut self, node: usize, output: Output) {
        match output {
            Output::Dial { conn, transport, .. } => self.dial(node, conn, transport.remote),
            Output::Wake { conn } => {
                if let Some(entry) = self.nodes[node].conns.get_mut(&conn) {
                    assert!(!entry.awake, "a writer is woken that is awake");
                    entry.awake = true;
                }
            }
            Output::Close { conn } => {
                self.pull(node, conn);
                if let Some(entry) = self.nodes[node].conns.remove(&conn)
                    && let Some(other) = self.nodes[entry.to].conns.get_mut(&entry.remote)
                {
                    other.closed = true;
                }
            }
            Output::Peer(event) => self.nodes[node].events.push((event.peer, event.kind)),
            Output::RibReady(_) => self.nodes[node].rib_ready += 1,
        }
    }

    fn dial(&mut self, node: usize, conn: ConnId, remote: SocketAddr) {
        let at = if remote.is_ipv4() { address } else { address6 };
        let to = (0..self.nodes.len()).find(|n| at(*n) == remote.ip());
        let cut = |to| self.cut.contains(&(node, to)) || self.cut.contains(&(to, node));
        let Some(to) = to.filter(|to| !cut(*to)) else {
            self.input(node, Input::ConnectFailed { conn, reason: ConnectError::TimedOut });
            return;
        };
        let local = SocketAddr::new(at(node), 40_000);
        self.nodes[to].accepted += 1;
        let theirs = ConnId::accepted(self.nodes[to].accepted);
        let end = |to, remote| Conn {
            to,
            remote,
            awake: false,
            arrived: VecDeque::new(),
            closed: false,
            receiver: Default::default(),
        };
        self.nodes[node].conns.insert(conn, end(to, theirs));
        self.nodes[to].conns.insert(theirs, end(node, conn));
        let ours = Link { local, remote, direction: Direction::Active };
        self.input(node, Input::Connected { conn, link: ours });
        let link = Link { local: remote, remote: local, direction: Direction::Passive };
        self.input(to, Input::Accepted { conn: theirs, link });
    }
}

/// What can be asked.
impl World {
    pub(super) fn peer(&self, node: usize, other: usize) -> PeerStatus {
        let peers = self.nodes[node].speaker.peers(self.now);
        peers.into_iter().find(|peer| peer.key == key(other)).expect("a configured neighbour")
    }

    pub(super) fn is_up(&self, a: usize, b: usize) -> bool {
        self.peer(a, b).state == State::Established && self.peer(b, a).state == State::Established
    }

    pub(super) fn routes(&mut self, node: usize, table: RouteTable, family: Family) -> Vec<RouteEntry> {
        let query = RouteQuery { table, family, prefix: None };
        let mut routes = Vec::new();
        let mut cursor = None;
        loop {
            let now = self.now;
            let page =
                self.nodes[node].measured(|node| node.speaker.routes(now, &query, cursor, 100).unwrap());
            routes.extend(page.routes);
            cursor = page.next;
            if cursor.is_none() {
                return routes;
            }
        }
    }

    /// The best paths of a node, each with its first community (0 for none) and AS path.
    pub(super) fn best(&mut self, node: usize, family: Family) -> BTreeMap<Nlri, (u32, String)> {
        let routes = self.routes(node, RouteTable::LocRib, family);
        routes
            .into_iter()
            .filter(|route| route.paths[0].best)
            .map(|route| (route.nlri, shape(&route)))
            .collect()
    }

    /// The same of what a node has told a neighbour.
    pub(super) fn told(
        &mut self,
        node: usize,
        other: usize,
        family: Family,
    ) -> BTreeMap<Nlri, (u32, String)> {
        let routes = self.routes(node, RouteTable::AdjRibOut(key(other)), family);
        routes.into_iter().map(|route| (route.nlri, shape(&route))).collect()
    }

    /// The same of what a node has heard from a neighbour.
    pub(super) fn heard(
        &mut self,
        node: usize,
        other: usize,
        family: Family,
    ) -> BTreeMap<Nlri, (u32, String)> {
        let routes = self.routes(node, RouteTable::AdjRibIn(key(other)), family);
        routes.into_iter().map(|route| (route.nlri, shape(&route))).collect()
    }

    pub(super) fn events(&mut self, node: usize, id: super::SubscriberId) -> Vec<RibEvent> {
        let mut events = Vec::new();
        loop {
            let before = events.len();
            self.nodes[node].measured(|node| node.speaker.take(id, 7, &mut events));
            if events.len() - before < 7 {
                let Node { speaker, out, .. } = &mut self.nodes[node];
                if !speaker.has_work() {
                    return events;
                }
                // There may be more, which took too long to find.
                speaker.work(self.now, 100, out);
            }
        }
    }
}

fn shape(route: &RouteEntry) -> (u32, String) {
    let set = Canonical(route.paths[0].attrs.canonical());
    (set.communities().next().map_or(0, |community| community.0), set.as_path().to_string())
}

/// The IPv4 address of a node.
pub(super) fn address(node: usize) -> IpAddr {
    IpAddr::from([192, 0, 2, node as u8 + 1])
}

/// The IPv6 address of a node.
pub(super) fn address6(node: usize) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, node as u16 + 1])
}

/// How others know a node over IPv6.
pub(super) fn key6(node: usize) -> PeerKey {
    PeerKey::new(address6(node))
}

/// How others know a node.
pub(super) fn key(node: usize) -> PeerKey {
    PeerKey::new(address(node))
}

impl Node {
    /// Makes a call, and looks how many destinations it looks at. What it should be is checked here, so that every test
    /// with this world checks it.
    pub(super) fn measured<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.speaker.stats().looked_at;
        let answer = call(self);
        let looked_at = self.speaker.stats().looked_at - before;
        assert!(looked_at <= LONGEST_CALL, "one call looks at {looked_at} destinations");
        self.longest_call = self.longest_call.max(looked_at);
        answer
    }

    fn new(n: usize, asn: Asn) -> Self {
        let id = RouterId(0xc000_0201 + n as u32);
        let settings = SpeakerSettings::new(InstanceName::new("test"), asn, id, 7 + n as u64);
        Self {
            speaker: Speaker::new(settings),
            asn,
            out: Outbox::new(),
            conns: BTreeMap::new(),
            accepted: 0,
            sent: Vec::new(),
            events: Vec::new(),
            rib_ready: 0,
            superfluous: Vec::new(),
            longest_call: 0,
        }
    }
}
