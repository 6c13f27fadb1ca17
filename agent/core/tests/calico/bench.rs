//! An engine without VPP, and a speaker of which only the policies are there.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use agent_core::event::SpeakerEvent;
use agent_core::model::{
    Affinity, AffinityName, AffinityState, AnyCommunity, BgpConfig, BgpConfigName, Filter, FilterAction,
    FilterRule, MatchOperator, Node, NodeName, PeerEndpoint, PeerName, PeerPort, PeerSpec, Pool, PrefixMatch,
};
use agent_core::plan::SpeakerOp;
use agent_core::{Change, Config, Engine, Event};
use bgp_core::command::{Applied, Chain, Command, Origination, PeerConfig, Refusal};
use bgp_core::policy::{
    Changed, Direction, Edits, Interfaces, Learned, Library, PeerType, Route, SetDef, Verdict, eval,
};
use bgp_core::rib::AttrSet;
use bgp_core::session::RemoteAsn;
use bgp_core::time::Instant;
use bgp_core::{Asn, Community, LargeCommunity, NextHop, RouterId};
use bgp_wire::attr::{Builder, Canonical, Origin};
use ipnet::IpNet;

/// The node under test, unless said otherwise.
pub const MASTER: &str = "kube-master";
/// The blocks of Calico's tests: CIDR and state.
const BLOCKS: [(&str, AffinityState); 6] = [
    ("10.0.0.0/30", AffinityState::Confirmed),
    ("10.1.0.0/24", AffinityState::Confirmed),
    ("10.2.0.1/32", AffinityState::Confirmed),
    ("192.168.221.192/26", AffinityState::Confirmed),
    ("192.168.221.64/26", AffinityState::Confirmed),
    ("192.168.221.0/26", AffinityState::Pending),
];

pub struct Bench {
    engine: Engine,
    me: String,
    pub library: Library,
    pub sessions: BTreeMap<String, PeerConfig>,
    pub originated: BTreeMap<IpNet, Origination>,
    asn: Asn,
    pub cluster_id: Option<RouterId>,
    /// How many times a session was put or deleted.
    pub edits: usize,
    /// Interfaces of next hops, as an embedder would tell them.
    pub interfaces: Interfaces,
}

impl Bench {
    /// Nothing has been told.
    pub fn of(config: Config) -> Self {
        Self {
            me: config.node.to_string(),
            engine: Engine::new(Config { vpp: None, ..config }),
            library: Library::new(),
            sessions: BTreeMap::new(),
            originated: BTreeMap::new(),
            asn: Asn(0),
            cluster_id: None,
            edits: 0,
            interfaces: Interfaces::new(),
        }
    }

    /// These nodes, and nothing else; the first is the one under test.
    pub fn started(nodes: &[(&str, Node)]) -> Self {
        Self::configured(Config::new(nodes[0].0.into()), nodes)
    }

    /// The same with other settings.
    pub fn configured(config: Config, nodes: &[(&str, Node)]) -> Self {
        let mut bench = Self::of(config);
        let nodes = nodes.iter().map(|(name, node)| (NodeName::from(*name), node.clone())).collect();
        bench.tell(Event::BgpConfig(Change::Resync(Vec::new())));
        bench.tell(Event::FelixConfig(Change::Resync(Vec::new())));
        bench.tell(Event::Filter(Change::Resync(Vec::new())));
        bench.tell(Event::Pool(Change::Resync(Vec::new())));
        bench.tell(Event::Affinity(Change::Resync(Vec::new())));
        bench.tell(Event::Peer(Change::Resync(Vec::new())));
        bench.tell(Event::Node(Change::Resync(nodes)));
        bench
    }

    /// Three nodes, and the blocks of the first.
    pub fn fixture() -> Self {
        let mut bench = Self::started(&[
            (MASTER, node("10.192.0.2/16", None)),
            ("kube-node-1", node("10.192.0.3/16", None)),
            ("kube-node-2", node("10.192.0.4/16", None)),
        ]);
        bench.blocks();
        bench
    }

    pub fn blocks(&mut self) {
        for (cidr, state) in BLOCKS {
            self.block(cidr, state);
        }
    }

    pub fn tell(&mut self, event: Event) {
        self.engine.handle(Instant::ZERO, event);
        self.obey();
    }

    fn obey(&mut self) {
        let mut ops = Vec::new();
        loop {
            self.engine.next_speaker_ops(Instant::ZERO, 8, &mut ops);
            if ops.is_empty() {
                return;
            }
            for SpeakerOp { id, command } in ops.drain(..) {
                let result = self.carry_out(command).map(|()| Applied::Applied);
                self.engine.handle(Instant::ZERO, Event::Speaker(SpeakerEvent::Done(id, result)));
            }
        }
    }

    fn carry_out(&mut self, command: Command) -> Result<(), Refusal> {
        let policies = |result: Result<Changed, _>| result.map(|_| ()).map_err(Refusal::Policy);
        match command {
            Command::PutSet(name, members) => policies(self.library.put_set(&name, &members))?,
            Command::DeleteSet(kind, name) => assert!(self.library.delete_set(kind, &name).unwrap()),
            Command::PutPolicy(name, policy) => policies(self.library.put_policy(&name, policy))?,
            Command::DeletePolicy(name) => {
                for (key, session) in &self.sessions {
                    assert!(!session.import.names(&name) && !session.export.names(&name), "{key} has {name}");
                }
                assert!(self.library.delete_policy(&name).unwrap());
            }
            Command::PutPeer(key, config) => {
                for chain in [&config.import, &config.export] {
                    self.library.pipeline(&chain.policies, chain.default).map_err(Refusal::NoSuchPolicy)?;
                }
                self.edits += 1;
                self.sessions.insert(key.to_string(), config);
            }
            Command::DeletePeer(key) => {
                self.edits += 1;
                self.sessions.remove(&key.to_string()).unwrap();
            }
            Command::PutOrigination(nlri, origination) => {
                self.originated.insert(nlri.unicast().unwrap(), origination);
            }
            Command::DeleteOrigination(nlri) => {
                self.originated.remove(&nlri.unicast().unwrap()).unwrap();
            }
            Command::PutIdentity { asn, .. } => self.asn = asn,
            Command::PutClusterId(id) => self.cluster_id = id,
            Command::LoadingDone => {}
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    pub fn config(&mut self, config: BgpConfig) {
        self.tell(Event::BgpConfig(Change::Upsert(BgpConfigName::Default, config)));
    }

    pub fn node_config(&mut self, node: &str, config: BgpConfig) {
        self.tell(Event::BgpConfig(Change::Upsert(BgpConfigName::Node(node.into()), config)));
    }

    pub fn no_mesh(&mut self) {
        self.config(no_mesh());
    }

    pub fn node(&mut self, name: &str, node: Node) {
        self.tell(Event::Node(Change::Upsert(name.into(), node)));
    }

    pub fn peer(&mut self, name: &str, spec: PeerSpec) {
        self.tell(Event::Peer(Change::Upsert(PeerName::from(name), spec)));
    }

    pub fn filter(&mut self, name: &str, filter: Filter) {
        self.tell(Event::Filter(Change::Upsert(name.into(), filter)));
    }

    pub fn delete_filter(&mut self, name: &str) {
        self.tell(Event::Filter(Change::Delete(name.into())));
    }

    pub fn pool(&mut self, name: &str, pool: Pool) {
        self.tell(Event::Pool(Change::Upsert(name.into(), pool)));
    }

    pub fn block(&mut self, cidr: &str, state: AffinityState) {
        let row = Affinity { state, ..Affinity::confirmed(cidr.parse().unwrap(), self.me.as_str().into()) };
        self.tell(Event::Affinity(Change::Upsert(AffinityName::from(cidr), row)));
    }

    pub fn listens(&self) -> Vec<String> {
        self.engine.listen().iter().map(ToString::to_string).collect()
    }

    pub fn keys(&self) -> Vec<&str> {
        self.sessions.keys().map(String::as_str).collect()
    }

    pub fn conditions(&self) -> Vec<String> {
        self.engine.conditions().map(ToString::to_string).collect()
    }

    /// AS of the neighbour and what it knows us by.
    pub fn asns(&self, session: &str) -> (u32, u32) {
        let config = &self.sessions[session];
        let RemoteAsn::Is(remote) = config.remote_asn else { panic!("{config:?}") };
        (remote.0, local_asn(config).unwrap_or(self.asn).0)
    }

    fn external(&self, session: &str) -> bool {
        let (remote, local) = self.asns(session);
        remote != local
    }

    /// What becomes of a candidate on the way to the neighbour of a session.
    pub fn export(&self, session: &str, candidate: &Candidate) -> Answer {
        self.run(session, Direction::Export, candidate)
    }

    /// What becomes of what the neighbour of a session sends.
    pub fn import(&self, session: &str, candidate: &Candidate) -> Answer {
        self.run(session, Direction::Import, candidate)
    }

    fn run(&self, session: &str, direction: Direction, candidate: &Candidate) -> Answer {
        let config = &self.sessions[session];
        let external = self.external(session);
        let chain: &Chain = match direction {
            Direction::Import => &config.import,
            Direction::Export => &config.export,
        };
        let front = [Asn(self.asns(session).1)];
        let attrs = candidate.attrs();
        let route = Route {
            direction,
            nlri: candidate.prefix.parse().unwrap(),
            attrs: &attrs,
            learned: match (direction, external) {
                (Direction::Export, _) => candidate.learned,
                (Direction::Import, true) => Learned::External,
                (Direction::Import, false) => Learned::Internal,
            },
            neighbor: session.parse().unwrap(),
            peer_type: if external { PeerType::External } else { PeerType::Internal },
            front: if external && direction == Direction::Export { &front } else { &[] },
            interfaces: Some(&self.interfaces),
        };
        let pipeline = self.library.pipeline(&chain.policies, chain.default).unwrap();
        let label = |decider: bgp_core::policy::Decider<'_>| decider.label().unwrap_or("default").to_owned();
        match eval(&pipeline, &route) {
            Verdict::Accept(edits, by) => Answer { passes: true, by: label(by), edits },
            Verdict::Reject(by) => Answer { passes: false, by: label(by), edits: Edits::default() },
        }
    }

    /// Holds what passes on the way out against a table.
    pub fn exports(&self, session: &str, table: &[(Candidate, bool)]) {
        for (candidate, expected) in table {
            let answer = self.export(session, candidate);
            assert_eq!(answer.passes, *expected, "{session} {candidate:?}: {answer:?}");
        }
    }

    pub fn set(&mut self, name: &str, members: SetDef) {
        self.library.put_set(&name.into(), &members).unwrap();
    }

    pub fn interface(&mut self, hop: &str, name: &str) {
        self.interfaces.insert(hop.parse().unwrap(), Arc::from(name));
    }

    /// An own route as this node originates it.
    pub fn originates(&self, prefix: &str) -> Candidate {
        let origination = &self.originated[&prefix.parse().unwrap()];
        Candidate { local_pref: origination.local_pref, ..own(prefix) }
    }
}

/// What became of a candidate.
#[derive(Debug, PartialEq)]
pub struct Answer {
    pub passes: bool,
    /// The label of what decided.
    pub by: String,
    pub edits: Edits,
}

/// A route that may be told, or was received.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub prefix: String,
    pub learned: Learned,
    pub local_pref: Option<u32>,
    pub communities: Vec<Community>,
    pub large: Vec<LargeCommunity>,
    pub path: Vec<u32>,
    pub hop: Option<IpAddr>,
}

/// A route of this node, without metric.
pub fn own(prefix: &str) -> Candidate {
    Candidate {
        prefix: prefix.to_owned(),
        learned: Learned::Local,
        local_pref: None,
        communities: Vec::new(),
        large: Vec::new(),
        path: Vec::new(),
        hop: None,
    }
}

/// A route that an internal neighbour has told.
pub fn internal(prefix: &str) -> Candidate {
    Candidate {
        learned: Learned::Internal,
        local_pref: Some(100),
        hop: Some("10.192.0.4".parse().unwrap()),
        ..own(prefix)
    }
}

/// A route that an external neighbour has told.
pub fn external(prefix: &str) -> Candidate {
    Candidate {
        learned: Learned::External,
        path: vec![65100],
        hop: Some("10.192.0.9".parse().unwrap()),
        ..own(prefix)
    }
}

impl Candidate {
    /// With this priority, as LOCAL_PREF has it.
    pub fn metric(self, metric: u32) -> Self {
        Self { local_pref: Some(i32::MAX as u32 - metric), ..self }
    }

    pub fn via(self, hop: &str) -> Self {
        Self { hop: Some(hop.parse().unwrap()), ..self }
    }

    fn attrs(&self) -> AttrSet {
        let mut builder = Builder::new(Origin::Igp);
        for asn in self.path.iter().rev() {
            builder.prepend(Asn(*asn), 1);
        }
        builder.local_pref(self.local_pref);
        builder.add_communities(self.communities.iter().copied());
        builder.add_large_communities(self.large.iter().copied());
        let hop = self.hop.map(|hop| match hop {
            IpAddr::V4(hop) => NextHop::V4(hop),
            IpAddr::V6(global) => NextHop::V6 { global, link_local: None },
        });
        let octets = builder.build();
        AttrSet::new(&octets, hop, Canonical(&octets).facts())
    }
}

pub fn local_asn(config: &PeerConfig) -> Option<Asn> {
    config.local_asn.map(|local| local.asn)
}

pub fn no_mesh() -> BgpConfig {
    BgpConfig { mesh: Some(false), ..BgpConfig::default() }
}

pub fn node(v4: &str, v6: Option<&str>) -> Node {
    Node { ipv4: Some(v4.parse().unwrap()), ipv6: v6.map(|v6| v6.parse().unwrap()), ..Node::default() }
}

pub fn labelled(node: Node, key: &str, value: &str) -> Node {
    Node { labels: BTreeMap::from([(key.to_owned(), value.to_owned())]), ..node }
}

/// `peerIP`, with a port where there is one.
pub fn peer_ip(at: &str, asn: u32) -> PeerSpec {
    let endpoint = match at.parse::<std::net::SocketAddr>() {
        Ok(socket) => PeerEndpoint { address: socket.ip(), port: Some(PeerPort(socket.port())) },
        Err(_) => PeerEndpoint { address: at.parse().unwrap(), port: None },
    };
    PeerSpec { peer_ip: Some(endpoint), asn: Some(Asn(asn)), ..PeerSpec::default() }
}

pub fn selecting(nodes: Option<&str>, peers: &str) -> PeerSpec {
    PeerSpec {
        node_selector: nodes.map(str::to_owned),
        peer_selector: Some(peers.to_owned()),
        ..PeerSpec::default()
    }
}

pub fn filtered(spec: PeerSpec, filters: &[&str]) -> PeerSpec {
    PeerSpec { filters: filters.iter().map(|name| (*name).into()).collect(), ..spec }
}

pub fn accept() -> FilterAction {
    FilterAction::Accept(Vec::new())
}

/// A rule about prefixes.
pub fn rule(number: usize, operator: MatchOperator, cidr: &str, action: FilterAction) -> FilterRule {
    let prefixes = Some(PrefixMatch::new(cidr.parse().unwrap(), operator, None, None));
    FilterRule { prefixes, ..FilterRule::every(number, action) }
}

pub fn community(text: &str) -> AnyCommunity {
    match text.parse() {
        Ok(community) => AnyCommunity::Standard(community),
        Err(_) => AnyCommunity::Large(text.parse().unwrap()),
    }
}
