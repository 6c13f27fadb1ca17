//! A world around one engine: a cluster's objects and routes, a VPP, a speaker, and virtual time.

#![allow(dead_code, missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

pub mod srv6;
pub mod vpp;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use agent_core::event::{Generation, SpeakerEvent, VppEvent, VppReply};
use agent_core::model::{
    Affinity, AffinityName, BgpConfig, BgpConfigName, FelixConfig, FelixConfigName, Filter, FilterName,
    KeyPair, Network, NetworkName, Node, NodeName, PeerEndpoint, PeerName, PeerSpec, PerFamily, Pool,
    PoolName, PublicKey, SrKey,
};
use agent_core::plan::{Retval, SpeakerOp, VppAction, VppFailure, VppOp};
use agent_core::{Change, Config, Engine, Event};
use bgp_core::command::{Applied, Command};
use bgp_core::rib::{AttrId, AttrStore, NextHopSet, RibChange, RibEvent, SrPolicyPath};
use bgp_core::secret::Secret;
use bgp_core::time::Instant;
use bgp_core::{Asn, Family, FamilySet, NextHop, Nlri, SrPolicy6};
use ipnet::IpNet;
pub use vpp::Vpp;

pub const ME: &str = "node-a";

/// A best path of the RIB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Best {
    Local,
    Via(Vec<IpAddr>),
}

/// What watchers would read.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub nodes: BTreeMap<NodeName, Node>,
    pub peers: BTreeMap<PeerName, PeerSpec>,
    pub filters: BTreeMap<FilterName, Filter>,
    pub pools: BTreeMap<PoolName, Pool>,
    pub affinities: BTreeMap<AffinityName, Affinity>,
    pub configs: BTreeMap<BgpConfigName, BgpConfig>,
    pub felix: BTreeMap<FelixConfigName, FelixConfig>,
    pub networks: BTreeMap<NetworkName, Network>,
    pub rib: BTreeMap<IpNet, Best>,
    /// Best paths of VPNs.
    pub vpn: BTreeMap<Nlri, Best>,
    pub policies: BTreeMap<SrKey, SrPolicyPath>,
}

/// What may happen to an operation on its way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// VPP says no for now.
    Retry,
    /// VPP carries it out, but no answer comes.
    Unanswered,
    /// VPP doesn't see it, and no answer comes.
    Swallowed,
}

/// See the module's text.
pub struct World {
    pub now: Instant,
    pub config: Config,
    pub cluster: Cluster,
    pub engine: Engine,
    pub vpp: Vpp,
    pub connected: bool,
    pub generation: u64,
    pub speaker: BTreeMap<String, Command>,
    /// Every operation carried out, for tests that look at the order.
    pub log: Vec<VppAction>,
    pub commands: Vec<Command>,
    /// What happens to the next operations.
    pub fates: VecDeque<Fate>,
    /// What shall fail for ever.
    pub broken: fn(&VppAction) -> Option<VppFailure>,
    /// What VPP says no to for now, each time.
    pub refused: Option<VppAction>,
    pub window: usize,
}

pub fn uplink_addresses() -> Vec<IpNet> {
    ["192.0.2.1/24", "192.0.2.77/24", "2001:db8::1/64"].iter().map(|net| net.parse().unwrap()).collect()
}

impl World {
    pub fn new() -> Self {
        let mut config = Config::new(NodeName::from(ME));
        // A world that settles has nothing due any more.
        config.vpp.as_mut().unwrap().audit = None;
        config.wireguard_keys = PerFamily { v4: Some(keys(0xa4)), v6: Some(keys(0xa6)) };
        Self {
            now: Instant::from_secs(1),
            engine: Engine::new(config.clone()),
            config,
            cluster: Cluster::default(),
            vpp: Vpp::new(&uplink_addresses()),
            connected: false,
            generation: 0,
            speaker: BTreeMap::new(),
            log: Vec::new(),
            commands: Vec::new(),
            fates: VecDeque::new(),
            broken: |_| None,
            refused: None,
            window: 16,
        }
    }

    /// A world of this cluster in which nothing has gone wrong.
    pub fn undisturbed(cluster: Cluster) -> Self {
        let mut world = Self::new();
        world.cluster = cluster;
        world.connect();
        world.list();
        world.converge();
        world.settle();
        world
    }

    pub fn event(&mut self, event: Event) {
        self.engine.handle(self.now, event);
    }

    pub fn connect(&mut self) {
        assert!(!self.connected);
        self.connected = true;
        self.generation += 1;
        self.event(Event::Vpp(VppEvent::Up(Generation(self.generation))));
    }

    pub fn lose(&mut self) {
        if self.connected {
            self.connected = false;
            self.event(Event::Vpp(VppEvent::Lost));
        }
    }

    pub fn restart_vpp(&mut self) {
        self.lose();
        self.vpp = Vpp::new(&uplink_addresses());
    }

    pub fn restart_agent(&mut self) {
        // What the engine wants remembered is on disk.
        self.config.remembered = self.engine.remembered();
        self.engine = Engine::new(self.config.clone());
        self.connected = false;
        self.speaker.clear();
        self.fates.clear();
    }

    /// Every source gives its complete list, and the RIB tells what it has.
    pub fn list(&mut self) {
        let c = self.cluster.clone();
        self.event(Event::BgpConfig(Change::Resync(c.configs.into_iter().collect())));
        self.event(Event::FelixConfig(Change::Resync(c.felix.into_iter().collect())));
        self.event(Event::Pool(Change::Resync(c.pools.into_iter().collect())));
        self.event(Event::Affinity(Change::Resync(c.affinities.into_iter().collect())));
        self.event(Event::Filter(Change::Resync(c.filters.into_iter().collect())));
        self.event(Event::Peer(Change::Resync(c.peers.into_iter().collect())));
        self.event(Event::Node(Change::Resync(c.nodes.into_iter().collect())));
        self.event(Event::Rib(RibEvent::Resync));
        self.event(Event::Rib(RibEvent::Replayed));
        for (key, path) in c.policies {
            self.event(policy_change(key, Some(path)));
        }
        self.event(Event::Network(Change::Resync(c.networks.into_iter().collect())));
        for (prefix, best) in c.rib {
            self.event(change(prefix, Some(&best)));
        }
        for (nlri, best) in c.vpn {
            self.event(nlri_change(nlri, Some(&best)));
        }
    }

    /// Every source gives its complete list again; the change stream starts anew and tells everything in its replay.
    pub fn relist(&mut self) {
        let c = self.cluster.clone();
        self.event(Event::Rib(RibEvent::Resync));
        for (prefix, best) in &c.rib {
            self.event(change(*prefix, Some(best)));
        }
        for (nlri, best) in &c.vpn {
            self.event(nlri_change(*nlri, Some(best)));
        }
        self.event(Event::Network(Change::Resync(c.networks.into_iter().collect())));
        for (key, path) in c.policies {
            self.event(policy_change(key, Some(path)));
        }
        self.event(Event::Node(Change::Resync(c.nodes.into_iter().collect())));
        self.event(Event::Pool(Change::Resync(c.pools.into_iter().collect())));
        self.event(Event::Affinity(Change::Resync(c.affinities.into_iter().collect())));
        self.event(Event::Filter(Change::Resync(c.filters.into_iter().collect())));
        self.event(Event::Peer(Change::Resync(c.peers.into_iter().collect())));
        self.event(Event::BgpConfig(Change::Resync(c.configs.into_iter().collect())));
        self.event(Event::FelixConfig(Change::Resync(c.felix.into_iter().collect())));
        self.event(Event::Rib(RibEvent::Replayed));
    }

    pub fn converge(&mut self) {
        for family in self.config.families().iter() {
            self.event(Event::Rib(RibEvent::Converged(family)));
        }
    }

    pub fn node(&mut self, name: &str, node: Option<Node>) {
        let name = NodeName::from(name);
        match node {
            Some(node) => {
                self.cluster.nodes.insert(name.clone(), node.clone());
                self.event(Event::Node(Change::Upsert(name, node)));
            }
            None => {
                self.cluster.nodes.remove(&name);
                self.event(Event::Node(Change::Delete(name)));
            }
        }
    }

    pub fn felix(&mut self, config: FelixConfig) {
        self.cluster.felix.insert(FelixConfigName::Default, config.clone());
        self.event(Event::FelixConfig(Change::Upsert(FelixConfigName::Default, config)));
    }

    pub fn pool(&mut self, name: &str, pool: Option<Pool>) {
        let name = PoolName::from(name);
        match pool {
            Some(pool) => {
                self.cluster.pools.insert(name.clone(), pool.clone());
                self.event(Event::Pool(Change::Upsert(name, pool)));
            }
            None => {
                self.cluster.pools.remove(&name);
                self.event(Event::Pool(Change::Delete(name)));
            }
        }
    }

    pub fn affinity(&mut self, name: &str, affinity: Option<Affinity>) {
        let name = AffinityName::from(name);
        match affinity {
            Some(affinity) => {
                self.cluster.affinities.insert(name.clone(), affinity.clone());
                self.event(Event::Affinity(Change::Upsert(name, affinity)));
            }
            None => {
                self.cluster.affinities.remove(&name);
                self.event(Event::Affinity(Change::Delete(name)));
            }
        }
    }

    /// A neighbour in each family, which routes can come from.
    pub fn neighbours(&mut self) {
        for (name, address) in [("tor-v4", "192.0.2.254"), ("tor-v6", "2001:db8::fe")] {
            let peer_ip = PeerEndpoint { address: address.parse().unwrap(), port: None };
            let spec = PeerSpec { peer_ip: Some(peer_ip), asn: Some(Asn(65000)), ..PeerSpec::default() };
            self.cluster.peers.insert(PeerName::from(name), spec);
        }
    }

    pub fn peer(&mut self, name: &str, spec: Option<PeerSpec>) {
        let name = PeerName::from(name);
        match spec {
            Some(spec) => {
                self.cluster.peers.insert(name.clone(), spec.clone());
                self.event(Event::Peer(Change::Upsert(name, spec)));
            }
            None => {
                self.cluster.peers.remove(&name);
                self.event(Event::Peer(Change::Delete(name)));
            }
        }
    }

    pub fn route(&mut self, prefix: &str, best: Option<Best>) {
        let prefix: IpNet = prefix.parse().unwrap();
        match &best {
            Some(best) => self.cluster.rib.insert(prefix, best.clone()),
            None => self.cluster.rib.remove(&prefix),
        };
        self.event(change(prefix, best.as_ref()));
    }

    /// A route of a VPN, as it is written with its distinguisher.
    pub fn vpn(&mut self, nlri: &str, best: Option<Best>) {
        let nlri: Nlri = nlri.parse().unwrap();
        match &best {
            Some(best) => self.cluster.vpn.insert(nlri, best.clone()),
            None => self.cluster.vpn.remove(&nlri),
        };
        self.event(nlri_change(nlri, best.as_ref()));
    }

    pub fn network(&mut self, name: &str, network: Option<Network>) {
        let name = NetworkName::from(name);
        match network {
            Some(network) => {
                self.cluster.networks.insert(name.clone(), network.clone());
                self.event(Event::Network(Change::Upsert(name, network)));
            }
            None => {
                self.cluster.networks.remove(&name);
                self.event(Event::Network(Change::Delete(name)));
            }
        }
    }

    pub fn policy(&mut self, key: SrKey, path: Option<SrPolicyPath>) {
        match &path {
            Some(path) => self.cluster.policies.insert(key, path.clone()),
            None => self.cluster.policies.remove(&key),
        };
        self.event(policy_change(key, path));
    }

    /// Asks the engine for operations and carries them out; true if there were any. After `most` of them the rest are
    /// handed back as lost with the connection.
    pub fn step(&mut self, most: usize) -> bool {
        let mut ops: Vec<VppOp> = Vec::new();
        if self.connected {
            self.engine.next_vpp_ops(self.now, self.window, &mut ops);
        }
        assert!(ops.len() <= self.window);
        let mut done = !ops.is_empty();
        for (carried_out, op) in ops.into_iter().enumerate() {
            if carried_out >= most {
                self.lose();
                break;
            }
            let result = self.carry_out(&op.action);
            self.event(Event::Vpp(VppEvent::Done(op.id, result)));
            self.news();
        }
        let mut ops: Vec<SpeakerOp> = Vec::new();
        self.engine.next_speaker_ops(self.now, 4, &mut ops);
        done |= !ops.is_empty();
        for op in ops {
            let result = self.obey(op.command);
            self.event(Event::Speaker(SpeakerEvent::Done(op.id, Ok(result))));
        }
        done
    }

    /// The agent hears of interfaces that changed without its doing.
    pub fn news(&mut self) {
        if std::mem::take(&mut self.vpp.news) && self.connected {
            self.event(Event::Vpp(VppEvent::Interfaces(self.vpp.interfaces.values().cloned().collect())));
        }
    }

    fn carry_out(&mut self, action: &VppAction) -> Result<VppReply, VppFailure> {
        if let Some(failure) = (self.broken)(action) {
            return Err(failure);
        }
        if self.refused.as_ref() == Some(action) {
            return Err(VppFailure::Retry(Retval { value: -9999, name: "".into() }));
        }
        match self.fates.pop_front() {
            Some(Fate::Retry) => {
                return Err(VppFailure::Retry(Retval { value: -107, name: "QUEUE_FULL".into() }));
            }
            Some(Fate::Swallowed) => return Err(VppFailure::Unanswered),
            Some(Fate::Unanswered) => {
                let _ = self.vpp.execute(action);
                return Err(VppFailure::Unanswered);
            }
            None => {}
        }
        self.log.push(action.clone());
        self.vpp.execute(action)
    }

    fn obey(&mut self, mut command: Command) -> Applied {
        self.commands.push(command.clone());
        // What forwarding outlived is part of the way, not of where it ends.
        if let Command::PutPeer(_, config) = &mut command
            && let Some(graceful) = &mut config.graceful_restart
        {
            graceful.forwarding = FamilySet::EMPTY;
        }
        let key = match &command {
            Command::PutPeer(key, _) | Command::DeletePeer(key) => format!("peer {key}"),
            Command::PutOrigination(nlri, _) | Command::DeleteOrigination(nlri) => {
                format!("origination {nlri}")
            }
            Command::PutSet(name, _) | Command::DeleteSet(_, name) => format!("set {name}"),
            Command::PutPolicy(name, _) | Command::DeletePolicy(name) => format!("policy {name}"),
            Command::PutIdentity { .. } => "identity".to_owned(),
            Command::PutClusterId(_) => "cluster id".to_owned(),
            Command::LoadingDone => "loaded".to_owned(),
            other => panic!("{other:?} is not asked for"),
        };
        let gone = matches!(
            command,
            Command::DeletePeer(_)
                | Command::DeleteOrigination(_)
                | Command::DeleteSet(..)
                | Command::DeletePolicy(_)
        );
        if gone {
            self.speaker.remove(&key);
        } else {
            self.speaker.insert(key, command);
        }
        Applied::Applied
    }

    /// Goes on until nothing happens any more, time included.
    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.step(usize::MAX) {
                continue;
            }
            match self.engine.deadline() {
                Some(at) => {
                    self.now = self.now.max(at);
                    self.event(Event::Tick);
                }
                None => return,
            }
        }
        panic!("it does not settle: {:?}", self.engine.status());
    }

    /// Goes on until nothing happens any more without time passing.
    pub fn run(&mut self) {
        while self.step(usize::MAX) {}
    }

    pub fn pass(&mut self, time: Duration) {
        self.now += time;
        self.event(Event::Tick);
        self.run();
    }

    pub fn peers(&self) -> Vec<&str> {
        self.speaker.keys().filter_map(|key| key.strip_prefix("peer ")).collect()
    }

    pub fn originations(&self) -> Vec<&str> {
        self.speaker.keys().filter_map(|key| key.strip_prefix("origination ")).collect()
    }
}

/// Keys that are not worth keeping secret.
pub fn keys(fill: u8) -> KeyPair {
    KeyPair::new(Secret::new(vec![fill; 32]).unwrap(), PublicKey([fill; 32])).unwrap()
}

pub fn change(prefix: IpNet, best: Option<&Best>) -> Event {
    nlri_change(Nlri::from(prefix), best)
}

pub fn nlri_change(nlri: Nlri, best: Option<&Best>) -> Event {
    let hops = match best {
        Some(Best::Via(hops)) => hops.clone(),
        Some(Best::Local) | None => Vec::new(),
    };
    let hops = NextHopSet::new(hops.into_iter().map(|hop| match hop {
        IpAddr::V4(address) => NextHop::V4(address),
        IpAddr::V6(global) => NextHop::V6 { global, link_local: None },
    }));
    Event::Rib(RibEvent::Change(RibChange {
        seq: 1,
        family: nlri.family(),
        nlri,
        best: best.map(|_| attr_id()),
        hops,
        local: best == Some(&Best::Local),
        sr_policy: None,
    }))
}

pub fn policy_change(key: SrKey, path: Option<SrPolicyPath>) -> Event {
    let SrKey { endpoint, color, distinguisher } = key;
    Event::Rib(RibEvent::Change(RibChange {
        seq: 1,
        family: Family::Ipv6SrPolicy,
        nlri: SrPolicy6 { distinguisher, color, endpoint }.into(),
        best: path.is_some().then(attr_id),
        hops: NextHopSet::new(Vec::new()),
        local: false,
        sr_policy: path.map(Box::new),
    }))
}

/// Which attributes a best path has is all the same to the agent.
fn attr_id() -> AttrId {
    AttrStore::new(1).intern(&[], None, Default::default)
}
