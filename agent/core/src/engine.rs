//! One turn of the agent: the exhaustive list of who hears which event, in order, and then the follow-ups.
//!
//! The embedder passes events in with [`Engine::handle`], and then asks for what may leave: first
//! [`Engine::next_vpp_ops`], then [`Engine::next_speaker_ops`], as many as its executors have free slots for. It
//! calls again when an operation ended (that is an event), and at [`Engine::deadline`] with [`Event::Tick`].
//!
//! Gates between the parts are here too, since they concern all of them: nothing found in VPP is deleted before every
//! source is in sync; peers come when the first complete picture is there, which includes VPP only as long as VPP can be
//! expected to answer soon; own prefixes go while VPP is away, and with them the routes that
//! lead through this node.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bgp_core::FamilySet;
use bgp_core::policy::{PolicyDef, PolicyName};
use bgp_core::rib::RibEvent;
use bgp_core::time::Instant;
use ipnet::IpNet;

use crate::config::{Config, Srv6Pools};
use crate::desired::VppKey;
use crate::effects::{Effects, Origin, StatusPatch};
use crate::event::{Change, Event, SpeakerEvent, VppEvent};
use crate::explain::{Explained, ExplainedObject};
use crate::handler::{
    BgpHandler, ConnectivityHandler, Handler, HostHandler, PeerHandler, RoutingHandler, SnatHandler,
    Srv6Handler,
};
use crate::model::{Condition, Filter, FilterName, PerFamily, PublicKey, RouteKey, TableId};
use crate::plan::{Audit, SpeakerOp, SpeakerPlan, VppOp, VppPlan, VppReport, VppState};

/// The first sessions wait for VPP, where it can be reached, no longer than this: their first UPDATEs then hold our own
/// prefixes too.
const FIRST_PICTURE: Duration = Duration::from_secs(5);

/// The agent's decisions as one value. See the module's text.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    peer: PeerHandler,
    bgp: BgpHandler,
    routing: RoutingHandler,
    connectivity: ConnectivityHandler,
    host: HostHandler,
    snat: SnatHandler,
    srv6: Srv6Handler,
    vpp: Option<VppPlan>,
    speaker: SpeakerPlan,
    sources: Sources,
    converged: FamilySet,
    forwarding: Forwarding,
    /// VPP was tried and could not be reached, or went away again.
    unreachable: bool,
    conditions: BTreeMap<(Origin, Arc<str>), Vec<Condition>>,
    queue: VecDeque<Event>,
    fx: Effects,
}

/// Which sources have given their first complete list.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Nodes.
    pub nodes: bool,
    /// Our own node, by the name in the settings, has been among the nodes. Where it never was, the name may be wrong or
    /// the list not the whole one yet: nothing may be concluded from what is absent.
    pub own_node: bool,
    /// BGPPeers.
    pub peers: bool,
    /// BGPFilters.
    pub filters: bool,
    /// IPPools.
    pub pools: bool,
    /// BlockAffinities.
    pub affinities: bool,
    /// BGPConfigurations.
    pub bgp_configs: bool,
    /// FelixConfigurations.
    pub felix_configs: bool,
    /// Networks; from the beginning where none are served.
    pub networks: bool,
}

impl Sources {
    /// What has not been told yet, for people.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let Self { nodes, own_node, peers, filters, pools, affinities, bgp_configs, felix_configs, networks } =
            *self;
        [
            (nodes, "nodes"),
            (own_node || !nodes, "this node's own object among the nodes"),
            (peers, "peers"),
            (filters, "filters"),
            (pools, "pools"),
            (affinities, "affinities"),
            (bgp_configs, "BGP configuration"),
            (felix_configs, "Felix configuration"),
            (networks, "networks"),
        ]
        .into_iter()
        .filter_map(|(there, name)| (!there).then_some(name))
        .collect()
    }

    /// All of them have.
    #[must_use]
    pub const fn in_sync(&self) -> bool {
        self.nodes
            && self.own_node
            && self.peers
            && self.filters
            && self.pools
            && self.affinities
            && self.bgp_configs
            && self.felix_configs
            && self.networks
    }
}

/// Whether VPP can carry the traffic that own prefixes attract.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Nothing has happened yet.
    Unknown,
    /// VPP is away, or not read or written yet, since then; what was announced before still is.
    Away(Instant),
    /// VPP has been away for too long: own prefixes are withdrawn.
    Withheld,
    /// VPP holds what it should, or there is none to hold anything.
    Ready,
}

/// How the agent stands.
#[derive(Clone, Debug)]
pub struct Status {
    /// Which sources are in sync.
    pub sources: Sources,
    /// Families whose initial convergence has ended.
    pub converged: FamilySet,
    /// Families whose routes are wanted.
    pub families: FamilySet,
    /// Whether VPP can carry traffic.
    pub forwarding: Forwarding,
    /// VPP, where there is one.
    pub vpp: Option<VppReport>,
    /// Commands for the speaker are ready or under way.
    pub speaker_busy: bool,
    /// What is wrong with which object.
    pub conditions: Vec<Condition>,
}

impl Status {
    /// There is nothing left to do: [`Status::ready`], and what earlier runs left in VPP has been swept.
    #[must_use]
    pub fn settled(&self) -> bool {
        self.ready() && self.converged.intersect(self.families) == self.families
    }

    /// Every source is in sync, and VPP holds everything wanted.
    #[must_use]
    pub fn ready(&self) -> bool {
        let vpp = self.vpp.as_ref().is_none_or(|vpp| vpp.state == VppState::Running && vpp.unsettled() == 0);
        self.sources.in_sync() && self.forwarding == Forwarding::Ready && vpp && !self.speaker_busy
    }
}

impl Engine {
    /// An engine to which nothing has happened.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            peer: PeerHandler::new(&config),
            bgp: BgpHandler::new(&config),
            routing: RoutingHandler::new(&config),
            connectivity: ConnectivityHandler::new(&config),
            host: HostHandler::new(&config),
            snat: SnatHandler::new(&config),
            srv6: Srv6Handler::new(&config),
            vpp: config.vpp.as_ref().map(|vpp| VppPlan::new(vpp, &config.remembered, srv6_pools(&config))),
            speaker: SpeakerPlan::default(),
            sources: Sources { networks: !config.multinet, ..Sources::default() },
            converged: FamilySet::EMPTY,
            forwarding: Forwarding::Unknown,
            unreachable: false,
            conditions: BTreeMap::new(),
            queue: config.srv6.as_ref().and_then(|srv6| srv6.sids).map(Event::Sids).into_iter().collect(),
            fx: Effects::default(),
            config,
        }
    }

    /// Takes an event in, with everything that follows from it.
    pub fn handle(&mut self, now: Instant, event: Event) {
        self.queue.push_back(event);
        self.run(now);
    }

    /// Appends at most `slots` operations for VPP, in the order in which they must be carried out.
    pub fn next_vpp_ops(&mut self, now: Instant, slots: usize, out: &mut Vec<VppOp>) {
        self.tell();
        if let Some(vpp) = &mut self.vpp {
            vpp.next_ops(now, slots, out);
        }
        self.run(now);
        self.tell();
    }

    /// Appends at most `slots` commands for the speaker, in the order in which they must be carried out.
    pub fn next_speaker_ops(&mut self, _now: Instant, slots: usize, out: &mut Vec<SpeakerOp>) {
        self.tell();
        self.speaker.next_ops(slots, out);
    }

    /// When [`Event::Tick`] is next due, if nothing else happens.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let since = match self.forwarding {
            Forwarding::Away(since) => Some(since),
            Forwarding::Unknown | Forwarding::Withheld | Forwarding::Ready => None,
        };
        let grace = self.grace_over();
        let waits_for_vpp = self.sources.in_sync() && !self.speaker.peers_open();
        let picture = since.filter(|_| waits_for_vpp).map(|since| since + FIRST_PICTURE);
        let vpp = self.vpp.as_ref().and_then(VppPlan::deadline);
        [grace, picture, vpp].into_iter().flatten().min()
    }

    /// When own prefixes are withdrawn, unless VPP holds what it should by then. What was never announced isn't withdrawn.
    fn grace_over(&self) -> Option<Instant> {
        match (self.forwarding, &self.config.vpp) {
            (Forwarding::Away(since), Some(vpp)) if self.speaker.originates() => Some(since + vpp.loss_grace),
            (Forwarding::Unknown | Forwarding::Away(_) | Forwarding::Withheld | Forwarding::Ready, _) => None,
        }
    }

    /// How everything stands. Costs a walk over all objects.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            sources: self.sources,
            converged: self.settled_families(),
            families: self.config.families(),
            forwarding: self.forwarding,
            vpp: self.vpp.as_ref().map(VppPlan::report),
            speaker_busy: !self.speaker.idle(),
            conditions: self.conditions().cloned().collect(),
        }
    }

    /// Everything that is wrong with any object.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.conditions.values().flatten()
    }

    /// Where the speaker shall listen now; nowhere before the first complete lists, as that would be a guess.
    #[must_use]
    pub fn listen(&self) -> Vec<SocketAddr> {
        self.peer.listen()
    }

    /// The public keys that other nodes have to know to reach this one by WireGuard, by the IP version of the traffic between
    /// nodes; none where it is off. They belong on this node's object.
    #[must_use]
    pub fn published_keys(&self) -> PerFamily<Option<PublicKey>> {
        self.connectivity.published()
    }

    /// The policies that BGPFilters would be here, among all else that is known: what their rules say of interfaces and of
    /// priorities depends on pools and settings.
    #[must_use]
    pub fn policies_of(&self, filters: &[(FilterName, Filter)]) -> Vec<(PolicyName, PolicyDef)> {
        filters.iter().flat_map(|(name, filter)| self.bgp.compiled(name, filter)).collect()
    }

    /// What becomes of a destination of the main table. Costs nothing to speak of.
    #[must_use]
    pub fn explain(&self, prefix: IpNet) -> Explained {
        let key = RouteKey { table: TableId::MAIN, prefix };
        let (carried, mut keys) = self.connectivity.explain(&key).unzip();
        let keys = keys.get_or_insert_default();
        keys.push(VppKey::Route(key));
        let objects = self.vpp.iter().flat_map(|vpp| keys.iter().filter_map(|key| vpp.explain(key)));
        Explained { carried, objects: objects.collect() }
    }

    /// Every object of VPP but routes that is wanted or there, with how it stands; nothing where there is no VPP. Costs a walk over
    /// all of them.
    #[must_use]
    pub fn objects(&self) -> Vec<ExplainedObject> {
        self.vpp.as_ref().map_or_else(Vec::new, VppPlan::objects)
    }

    /// Has everything in VPP compared with what is wanted, as soon as nothing is in flight, and the difference repaired.
    /// Returns the number that [`Audit::number`] will have when that is done; `None` where VPP cannot be read now.
    pub fn audit(&mut self, now: Instant) -> Option<u64> {
        self.vpp.as_mut()?.audit(now)
    }

    /// The last comparison, once everything that it found has been repaired or has failed.
    #[must_use]
    pub fn audited(&self) -> Option<&Audit> {
        self.vpp.as_ref()?.audited()
    }

    /// Another number than before where what is blocked in VPP may have changed: [`Self::status`] says what is. Costs
    /// nothing.
    #[must_use]
    pub fn troubles(&self) -> u64 {
        self.vpp.as_ref().map_or(0, VppPlan::troubles)
    }

    /// What VPP may hold of source NAT and does not show. It must be kept where [`Config::remembered`] can be read back from
    /// before the operations leave that were handed out last.
    #[must_use]
    pub fn remembered(&self) -> Vec<IpNet> {
        self.vpp.as_ref().map_or_else(Vec::new, VppPlan::remembered)
    }

    /// Another number than before where [`Self::remembered`] says something else. Costs nothing.
    #[must_use]
    pub fn notes(&self) -> u64 {
        self.vpp.as_ref().map_or(0, VppPlan::notes)
    }

    /// Families of which no more routes of the beginning are due: the speaker says so, or nobody is there who could send
    /// any.
    fn settled_families(&self) -> FamilySet {
        let mut families = self.converged;
        for family in self.config.families().iter() {
            if self.sources.in_sync() && !self.speaker.has_peers(family) {
                families.insert(family);
            }
        }
        families
    }

    /// What is said once for many events.
    fn tell(&mut self) {
        let mut fx = std::mem::take(&mut self.fx);
        self.routing.tell(&mut fx);
        self.connectivity.tell(&mut fx);
        self.apply(&mut fx);
        self.fx = fx;
    }

    fn run(&mut self, now: Instant) {
        loop {
            while let Some(event) = self.queue.pop_front() {
                let mut fx = std::mem::take(&mut self.fx);
                self.turn(now, event, &mut fx);
                self.apply(&mut fx);
                self.fx = fx;
            }
            self.gates(now);
            if self.queue.is_empty() {
                return;
            }
        }
    }

    /// Who hears what, in order.
    fn turn(&mut self, now: Instant, event: Event, fx: &mut Effects) {
        match event {
            Event::Node(change) => {
                self.sources.nodes |= is_resync(&change);
                self.sources.own_node |= names(&change, &self.config.node);
                self.host.on(now, &change, fx);
                self.srv6.on(now, &change, fx);
                self.bgp.on(now, &change, fx);
                self.routing.on(now, &change, fx);
                self.peer.on(now, &change, fx);
                self.connectivity.on(now, &change, fx);
                self.snat.on(now, &change, fx);
            }
            Event::Peer(change) => {
                self.sources.peers |= is_resync(&change);
                self.peer.on(now, &change, fx);
            }
            Event::Filter(change) => {
                self.sources.filters |= is_resync(&change);
                self.bgp.on(now, &change, fx);
                self.peer.on(now, &change, fx);
            }
            Event::Pool(change) => {
                self.sources.pools |= is_resync(&change);
                self.bgp.on(now, &change, fx);
                self.connectivity.on(now, &change, fx);
                self.snat.on(now, &change, fx);
            }
            Event::Affinity(change) => {
                self.sources.affinities |= is_resync(&change);
                self.routing.on(now, &change, fx);
            }
            Event::BgpConfig(change) => {
                self.sources.bgp_configs |= is_resync(&change);
                self.bgp.on(now, &change, fx);
                self.routing.on(now, &change, fx);
                self.peer.on(now, &change, fx);
                self.connectivity.on(now, &change, fx);
                self.snat.on(now, &change, fx);
            }
            Event::FelixConfig(change) => {
                self.sources.felix_configs |= is_resync(&change);
                self.connectivity.on(now, &change, fx);
            }
            Event::Network(change) => {
                self.sources.networks |= is_resync(&change);
                self.connectivity.on(now, &change, fx);
            }
            Event::Rib(event) => {
                if let RibEvent::Converged(family) = event {
                    self.converged.insert(family);
                }
                self.bgp.on(now, &event, fx);
            }
            Event::Connectivity(change) => self.connectivity.on(now, &change, fx),
            Event::SrPolicy(change) => self.connectivity.on(now, &change, fx),
            Event::Sids(sids) => {
                self.srv6.on(now, &sids, fx);
                self.connectivity.on(now, &sids, fx);
            }
            Event::Address(change) => self.routing.on(now, &change, fx),
            Event::HostTaps(taps) => self.snat.on(now, &taps, fx),
            Event::Writer(conditions) => fx.conditions(Origin::Host, "writers", conditions),
            Event::Fault(change) => self.fault(change, fx),
            Event::Vpp(VppEvent::WireguardSession { peer, established }) => {
                let node = self.vpp.as_mut().and_then(|vpp| vpp.wireguard_session(peer, established));
                if let Some(node) = node {
                    self.connectivity.session_changed(node, established, fx);
                }
            }
            Event::Vpp(event) => self.vpp_event(now, event),
            Event::Speaker(SpeakerEvent::Done(id, result)) => self.speaker.done(id, result),
            Event::Tick => {}
        }
    }

    fn apply(&mut self, fx: &mut Effects) {
        if let Some(vpp) = &mut self.vpp {
            vpp.edit(fx.vpp.drain(..));
        }
        fx.vpp.clear();
        self.speaker.edit(fx.bgp.drain(..));
        for StatusPatch { origin, subject, conditions } in fx.status.drain(..) {
            if conditions.is_empty() {
                self.conditions.remove(&(origin, subject));
            } else {
                self.conditions.insert((origin, subject), conditions);
            }
        }
        self.queue.append(&mut fx.then);
    }

    fn fault(&mut self, change: Change<Arc<str>, Vec<Condition>>, fx: &mut Effects) {
        match change {
            Change::Resync(all) => {
                self.conditions.retain(|(origin, _), _| *origin != Origin::Watcher);
                for (subject, conditions) in all {
                    fx.conditions(Origin::Watcher, subject, conditions);
                }
            }
            Change::Upsert(subject, conditions) => {
                fx.conditions(Origin::Watcher, subject, conditions);
            }
            Change::Delete(subject) => fx.conditions(Origin::Watcher, subject, Vec::new()),
        }
    }

    fn vpp_event(&mut self, now: Instant, event: VppEvent) {
        let Some(vpp) = &mut self.vpp else { return };
        match event {
            VppEvent::Up(generation) => {
                vpp.up(now, generation);
                self.unreachable = false;
                // The loss of the connection before may have gone by unseen.
                if self.forwarding == Forwarding::Ready {
                    self.forwarding = Forwarding::Away(now);
                }
            }
            VppEvent::Done(id, result) => vpp.done(now, id, result),
            VppEvent::Interfaces(interfaces) => vpp.interfaces(now, &interfaces),
            // Heard in `turn`, as it concerns the handler too.
            VppEvent::WireguardSession { .. } => {}
            VppEvent::Lost => {
                vpp.lost();
                self.unreachable = true;
                if self.forwarding == Forwarding::Ready {
                    self.forwarding = Forwarding::Away(now);
                }
            }
            VppEvent::GraceOver => {
                tracing::warn!(
                    "vpp has not held what it should for longer than vpp.loss-grace: own prefixes, and routes that lead \
                     through this node, are withdrawn"
                );
                self.forwarding = Forwarding::Withheld;
                self.carry(false);
            }
            VppEvent::Replayed => {
                if self.forwarding != Forwarding::Ready {
                    match vpp.report().unsettled() {
                        0 => tracing::info!("vpp holds what it should"),
                        blocked => tracing::warn!(
                            blocked,
                            "vpp holds what it can; `peregrine vpp` says what is blocked by what"
                        ),
                    }
                }
                self.forwarding = Forwarding::Ready;
                self.carry(true);
            }
        }
    }

    /// VPP can, or can't, carry what this node attracts: its own prefixes, and those that it would be the next hop of.
    fn carry(&mut self, carries: bool) {
        self.speaker.set_originate(carries);
        let mut fx = std::mem::take(&mut self.fx);
        self.bgp.carry(carries, &mut fx);
        self.apply(&mut fx);
        self.fx = fx;
    }

    /// Conditions between the parts, looked at after every turn; each costs a comparison.
    fn gates(&mut self, now: Instant) {
        if self.forwarding == Forwarding::Unknown {
            self.forwarding = if self.vpp.is_some() { Forwarding::Away(now) } else { Forwarding::Ready };
            self.carry(self.vpp.is_none());
        }
        if self.grace_over().is_some_and(|over| now >= over) {
            self.queue.push_back(Event::Vpp(VppEvent::GraceOver));
            return;
        }
        let in_sync = self.sources.in_sync();
        if let Some(vpp) = &mut self.vpp
            && in_sync
        {
            if self
                .config
                .families()
                .iter()
                .all(|family| self.converged.contains(family) || !self.speaker.has_peers(family))
            {
                vpp.allow_deletes();
            }
            if vpp.take_replayed() {
                self.queue.push_back(Event::Vpp(VppEvent::Replayed));
                return;
            }
        }
        let complete = match self.forwarding {
            Forwarding::Ready | Forwarding::Withheld => true,
            Forwarding::Away(since) => self.unreachable || now >= since + FIRST_PICTURE,
            Forwarding::Unknown => false,
        };
        if in_sync && complete {
            // What VPP has kept it goes on forwarding by, whatever this agent did meanwhile.
            let kept = self.vpp.as_ref().is_some_and(VppPlan::was_ours);
            self.speaker.open_peers(if kept { self.config.families() } else { FamilySet::EMPTY });
        }
        if let Some(conditions) = self.vpp.as_mut().and_then(VppPlan::take_rivals) {
            let key = (Origin::Vpp, Arc::from("writers"));
            if conditions.is_empty() {
                self.conditions.remove(&key);
            } else {
                self.conditions.insert(key, conditions);
            }
        }
        if let Some(conditions) = self.speaker.take_conditions() {
            let key = (Origin::Speaker, Arc::from("refusals"));
            if conditions.is_empty() {
                self.conditions.remove(&key);
            } else {
                self.conditions.insert(key, conditions);
            }
        }
    }
}

fn srv6_pools(config: &Config) -> Option<Srv6Pools> {
    let now = config.srv6.as_ref();
    let now = now.map(|srv6| Srv6Pools { localsids: srv6.localsid_pool, policies: srv6.policy_pool });
    now.or(config.former_sids)
}

/// Whether a change lists or brings this object.
fn names<K: PartialEq, V>(change: &Change<K, V>, name: &K) -> bool {
    match change {
        Change::Resync(all) => all.iter().any(|(listed, _)| listed == name),
        Change::Upsert(changed, _) => changed == name,
        Change::Delete(_) => false,
    }
}

const fn is_resync<K, V>(change: &Change<K, V>) -> bool {
    matches!(change, Change::Resync(_))
}
