//! The speaker, and one turn of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use bgp_wire::{Asn, Family, FamilySet, RouterId};
use bytes::Bytes;
use ipnet::IpNet;

use super::neighbour::Neighbour;
use super::policies::Policies;
use super::range::Range;
use super::ribs::{Ribs, for_rib};
use super::stream::Subscriber;
use super::{Input, Output, PeerEvent, PeerEventKind, SpeakerSettings};
use crate::outbox::Outbox;
use crate::peer_key::{ConnId, PeerIx, PeerKey};
use crate::rib::{AttrStore, Sources};
use crate::session;
use crate::stats::SpeakerStats;
use crate::time::Instant;

/// A BGP speaker. See the [module](super).
pub struct Speaker {
    pub(super) settings: SpeakerSettings,
    /// When the first call came.
    pub(super) started: Option<Instant>,
    /// When all local routes were in.
    pub(super) loaded: Option<Instant>,
    /// Families whose learnt routes wait for neighbours to be heard, after a restart.
    pub(super) deferred: FamilySet,
    /// The grace for neighbours that have not been up since the restart has passed.
    pub(super) deferral_grace_over: bool,
    /// The grace for neighbours that have never been up has passed.
    pub(super) grace_over: bool,
    /// Neighbours that originations name, and in how many.
    pub(super) named: BTreeMap<PeerKey, u32>,
    /// Next hops that originations have, and how many have each: a neighbour there is not told of them.
    pub(super) named_next_hops: BTreeMap<IpAddr, u32>,
    /// Counts neighbours, so that each has jitter of its own.
    pub(super) made: u64,
    /// By [`PeerIx`]. A neighbour that was deleted stays, without its key, until its paths are gone.
    pub(super) peers: Vec<Option<Box<Neighbour>>>,
    pub(super) by_key: BTreeMap<PeerKey, PeerIx>,
    /// Prefixes of dynamic neighbours.
    pub(super) ranges: BTreeMap<IpNet, Range>,
    /// When which dynamic neighbour, being without a connection, is to be forgotten.
    pub(super) departures: BTreeSet<(Instant, PeerIx)>,
    /// The cluster identifier that somebody chose.
    pub(super) cluster_id: Option<RouterId>,
    pub(super) doors_version: u64,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) dialled: u64,
    /// When which neighbour's session wants to be called.
    pub(super) deadlines: BTreeSet<(Instant, PeerIx)>,
    pub(super) shared: Shared,
    pub(super) ribs: Ribs,
    pub(super) policies: Policies,
    pub(super) subscribers: Vec<Option<Subscriber>>,
    /// By family index: where in the change log its initial convergence ended.
    pub(super) converged: [Option<u64>; Family::COUNT],
    /// When that is next to be looked at.
    pub(super) converges: Option<Instant>,
    /// Which family's turn it was to work.
    pub(super) family_turn: usize,
    session_out: Outbox<session::Output>,
    woken: Vec<PeerIx>,
}

/// What every family's table and groups use.
pub(super) struct Shared {
    pub(super) attrs: AttrStore,
    pub(super) sources: Sources,
    pub(super) stats: SpeakerStats,
    /// Our ends of established sessions, and of how many each is one.
    pub(super) own_addresses: BTreeMap<IpAddr, u32>,
    /// The cluster that this speaker reflects for, if it is a route reflector at all.
    pub(super) cluster: Option<RouterId>,
}

/// One transport connection, or one that is about to be closed.
pub(super) struct Conn {
    pub(super) peer: PeerIx,
    /// Messages of the session, which go before any route.
    pub(super) control: VecDeque<Bytes>,
    /// The writer waits to be woken.
    pub(super) idle: bool,
    /// The session has done with it.
    pub(super) closing: bool,
}

/// The length of a KEEPALIVE, and of no other message.
const KEEPALIVE_LEN: usize = 19;

/// Does the same for the table of each family of a speaker.
macro_rules! for_family {
    ($speaker:expr, $family:expr, $rib:ident => $body:expr) => {
        $crate::speaker::ribs::for_rib!($speaker.ribs, $family, $rib => $body)
    };
}
pub(super) use for_family;

impl Speaker {
    /// A speaker without neighbours and routes.
    #[must_use]
    pub fn new(settings: SpeakerSettings) -> Self {
        let seed = settings.seed;
        Self {
            started: None,
            loaded: None,
            deferred: if settings.restarted { FamilySet::ALL } else { FamilySet::EMPTY },
            deferral_grace_over: false,
            grace_over: false,
            named: BTreeMap::new(),
            named_next_hops: BTreeMap::new(),
            made: 0,
            peers: Vec::new(),
            by_key: BTreeMap::new(),
            ranges: BTreeMap::new(),
            departures: BTreeSet::new(),
            cluster_id: None,
            doors_version: 0,
            conns: BTreeMap::new(),
            dialled: 0,
            deadlines: BTreeSet::new(),
            shared: Shared {
                attrs: AttrStore::new(seed ^ 0x61_7474_7273),
                sources: Sources::new(),
                stats: SpeakerStats::default(),
                own_addresses: BTreeMap::new(),
                cluster: None,
            },
            ribs: Ribs::new(seed, settings.decision),
            policies: Policies::new(),
            subscribers: Vec::new(),
            converged: [None; Family::COUNT],
            converges: None,
            family_turn: 0,
            session_out: Outbox::new(),
            woken: Vec::new(),
            settings,
        }
    }

    /// The speaker's own AS number and BGP Identifier.
    #[must_use]
    pub fn identity(&self) -> (Asn, RouterId) {
        (self.settings.asn, self.settings.router_id)
    }

    /// Takes one input and appends what it leads to.
    pub fn handle(&mut self, now: Instant, input: Input<'_>, out: &mut Outbox<Output>) {
        self.started.get_or_insert(now);
        match input {
            Input::Accepted { conn, link } => self.accepted(now, conn, link, out),
            Input::Connected { conn, link } => self.connected(now, conn, link, out),
            Input::ConnectFailed { conn, reason } => self.connect_failed(now, conn, reason, out),
            Input::Received { conn, messages } => self.received(now, conn, messages, out),
            Input::Drained { conn } => {
                self.set_idle(conn);
                if self.conns.get(&conn).is_some_and(|conn| !conn.control.is_empty()) {
                    self.wake(conn, out);
                }
            }
            Input::Closed { conn, reason } => self.closed(now, conn, reason, out),
            Input::Unread { conn } => {
                if let Some(peer) = self.conns.get(&conn).map(|conn| conn.peer) {
                    self.session(now, peer, session::Input::Unread(conn), out);
                }
            }
            Input::Tick => self.tick(now, out),
        }
        self.settle(out);
    }

    /// When [`Input::Tick`] is next due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let sessions = self.deadlines.first().map(|(at, _)| *at);
        let departures = self.departures.first().map(|(at, _)| *at);
        let others = [departures, self.convergence_deadline(), self.deferral_deadline()];
        others.into_iter().chain([sessions]).flatten().min()
    }

    /// The connections that [`Input::Tick`] would end at `now` for the neighbour's silence. It has not been silent where
    /// octets of it wait somewhere on their way: say so by [`Input::Unread`] first.
    #[must_use]
    pub fn silent(&self, now: Instant) -> Vec<ConnId> {
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        due.filter_map(|(_, peer)| self.peer(*peer)).flat_map(|peer| peer.session.silent(now)).collect()
    }

    fn tick(&mut self, now: Instant, out: &mut Outbox<Output>) {
        while let Some(&(at, peer)) = self.deadlines.first()
            && at <= now
        {
            self.expire_stale(now, peer);
            self.expire_limits(now, peer, out);
            self.session(now, peer, session::Input::Tick, out);
            // A session whose deadline does not move must not hold up the others.
            if self.deadlines.first() == Some(&(at, peer)) {
                self.deadlines.remove(&(at, peer));
                if let Some(neighbour) = self.peer_mut(peer) {
                    neighbour.deadline = None;
                }
            }
        }
        self.depart(now, out);
        self.review_convergence(now);
    }

    pub(super) fn peer(&self, peer: PeerIx) -> Option<&Neighbour> {
        self.peers.get(peer.index())?.as_deref()
    }

    pub(super) fn peer_mut(&mut self, peer: PeerIx) -> Option<&mut Neighbour> {
        self.peers.get_mut(peer.index())?.as_deref_mut()
    }

    /// Passes an input to a neighbour's session and carries out what comes of it. True if the UPDATE passed in may
    /// enter the RIB.
    pub(super) fn session(
        &mut self,
        now: Instant,
        peer: PeerIx,
        input: session::Input<'_>,
        out: &mut Outbox<Output>,
    ) -> bool {
        let mut actions = std::mem::take(&mut self.session_out);
        if let Some(neighbour) = self.peer_mut(peer) {
            neighbour.session.handle(now, input, &mut actions);
        }
        let deliver = self.carry_out(now, peer, &mut actions, out);
        self.session_out = actions;
        deliver
    }

    /// Carries out what a session asks for, and notes what has become of it.
    pub(super) fn carry_out(
        &mut self,
        now: Instant,
        peer: PeerIx,
        actions: &mut Outbox<session::Output>,
        out: &mut Outbox<Output>,
    ) -> bool {
        let mut deliver = false;
        while let Some(action) = actions.pop() {
            match action {
                session::Output::Deliver => deliver = true,
                session::Output::Connect => self.dial(peer, out),
                session::Output::CancelConnect => {
                    if let Some(conn) = self.peer_mut(peer).and_then(|neighbour| neighbour.dial.take()) {
                        out.push(Output::Close { conn });
                    }
                }
                session::Output::Send(conn, message) => {
                    if let Some(neighbour) = self.peer_mut(peer) {
                        neighbour.sent.count(message.kind, 1);
                    }
                    self.send(conn, message.bytes, out);
                }
                session::Output::Close(conn) => {
                    if let Some(entry) = self.conns.get_mut(&conn) {
                        entry.closing = true;
                        out.push(Output::Close { conn });
                    }
                }
                session::Output::Up { conn, negotiated } => self.up(now, peer, conn, negotiated, out),
                session::Output::Refresh(refresh) => self.refresh_heard(now, peer, refresh, out),
                session::Output::Down(reason, kept) => self.down(now, peer, reason, kept, out),
                session::Output::Failed(reason) => self.tell(peer, PeerEventKind::Failed(reason), out),
            }
        }
        self.note(peer, out);
        self.note_departure(now, peer);
        deliver
    }

    /// Notes a session's new state and deadline.
    pub(super) fn note(&mut self, peer: PeerIx, out: &mut Outbox<Output>) {
        let Some(neighbour) = self.peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else { return };
        let deadlines =
            [neighbour.session.deadline(), neighbour.stale.deadline(), neighbour.limit_deadline()];
        let deadline = deadlines.into_iter().flatten().min();
        if deadline != neighbour.deadline {
            if let Some(at) = neighbour.deadline {
                self.deadlines.remove(&(at, peer));
            }
            if let Some(at) = deadline {
                self.deadlines.insert((at, peer));
            }
            neighbour.deadline = deadline;
        }
        let state = neighbour.session.state();
        if state != neighbour.state {
            neighbour.state = state;
            out.push(Output::Peer(PeerEvent { peer: neighbour.key, kind: PeerEventKind::State(state) }));
        }
    }

    pub(super) fn tell(&self, peer: PeerIx, kind: PeerEventKind, out: &mut Outbox<Output>) {
        if let Some(neighbour) = self.peer(peer) {
            out.push(Output::Peer(PeerEvent { peer: neighbour.key, kind }));
        }
    }

    /// Ends a turn: wakes whoever has something to read now.
    pub(super) fn settle(&mut self, out: &mut Outbox<Output>) {
        let mut woken = std::mem::take(&mut self.woken);
        for family in Family::ALL {
            if for_rib!(&self.ribs, family, rib => rib.has_groups()) {
                let complete = self.is_complete(family);
                for_family!(self, family, rib => rib.wake(&mut self.shared, complete, &mut woken));
            }
        }
        for peer in woken.drain(..) {
            let conn = self.peer(peer).and_then(|neighbour| neighbour.up.as_ref()).map(|up| up.conn);
            if let Some(conn) = conn {
                self.wake(conn, out);
            }
        }
        self.woken = woken;
        self.wake_subscribers(out);
    }

    /// Wakes a writer that waits for it.
    pub(super) fn wake(&mut self, conn: ConnId, out: &mut Outbox<Output>) {
        if let Some(entry) = self.conns.get_mut(&conn)
            && entry.idle
        {
            entry.idle = false;
            out.push(Output::Wake { conn });
        }
    }

    pub(super) fn send(&mut self, conn: ConnId, bytes: Bytes, out: &mut Outbox<Output>) {
        if let Some(entry) = self.conns.get_mut(&conn) {
            // Whoever does not read needs no second KEEPALIVE behind the first.
            if bytes.len() != KEEPALIVE_LEN || entry.control.back() != Some(&bytes) {
                entry.control.push_back(bytes);
            }
            self.wake(conn, out);
        }
    }
}
