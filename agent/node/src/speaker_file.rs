//! The file of `peregrine speaker`: what it says, as commands for the speaker.
//!
//! A mistake about the speaker as a whole, its sets or its policies is refused with all others, and nothing changes. A
//! mistake in a neighbour stops only that neighbour, or leaves it as it was when a file is read again; it is listed with
//! its reason. Keys that a later release will serve are known and refused in words, so that nobody believes in a
//! protection that isn't there.

mod decision;
mod neighbor;
mod policy;
mod rehearsal;
mod sr_policy;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use bgp_core::command::{Aggregate, Command, Origination, PeerConfig, PeerRange};
use bgp_core::peer_key::PeerKey;
use bgp_core::policy::{Direction, PolicyDef, PolicyName, PrefixRange, SetDef, SetKind, SetName};
use bgp_core::rib::DecisionSettings;
use bgp_core::session::{GracefulRestart, LongLived, RestartTime, StaleTime};
use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity};
use bgp_wire::{Asn, Family, FamilySet, Label, Nlri, RouteDistinguisher, RouterId};
use ipnet::IpNet;

use self::neighbor::Neighbor;
use self::rehearsal::{Place, Places, Subject};
use crate::yaml::{Fields, Flaw, Flaws, Item, Line, Mistake, documents, nearest};

/// What the file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpeakerFile {
    /// `asn`.
    pub(crate) asn: Asn,
    /// `router-id`.
    pub(crate) router_id: RouterId,
    /// `cluster-id`.
    pub(crate) cluster_id: Option<RouterId>,
    /// `listen`.
    pub(crate) listen: Vec<SocketAddr>,
    /// `multipath`, `always-compare-med` and the like.
    pub(crate) decision: DecisionSettings,
    /// `graceful-restart`, as every neighbour gets it.
    pub(crate) graceful_restart: Option<GracefulRestart>,
    /// `api`.
    pub(crate) api: Option<PathBuf>,
    /// `neighbors`, those without a mistake that have an address.
    pub(crate) peers: BTreeMap<PeerKey, PeerConfig>,
    /// `neighbors`, those without a mistake that have a prefix.
    pub(crate) ranges: BTreeMap<IpNet, PeerRange>,
    /// `neighbors` with a mistake.
    pub(crate) refused: Vec<RefusedNeighbor>,
    /// `neighbors` that run, but hardly as somebody wanted.
    pub(crate) doubtful: Vec<RefusedNeighbor>,
    /// `originate`.
    pub(crate) originations: BTreeMap<Nlri, Origination>,
    /// `aggregate`.
    pub(crate) aggregates: BTreeMap<IpNet, Aggregate>,
    /// `sets.prefixes`.
    pub(crate) prefix_sets: BTreeMap<SetName, Vec<PrefixRange>>,
    /// `policies`.
    pub(crate) policies: BTreeMap<PolicyName, PolicyDef>,
    /// `import` and `export` of the speaker itself.
    pub(crate) global: GlobalPolicies,
}

/// Policies that run before those of each neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GlobalPolicies {
    /// On the way in.
    pub(crate) import: Vec<PolicyName>,
    /// On the way out.
    pub(crate) export: Vec<PolicyName>,
}

/// A neighbour that doesn't run as the file says, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedNeighbor {
    /// Its address as written; empty where there is none.
    pub(crate) address: String,
    /// Who that is, where it can be told.
    pub(crate) whom: Option<Whom>,
    /// What is wrong with it.
    pub(crate) flaws: Vec<Flaw>,
    /// What that does to it.
    pub(crate) standing: Standing,
}

/// How a neighbour stands that something is to be said of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It does not run.
    Stopped,
    /// It runs as an older file said.
    Kept,
    /// It runs as this file says; those were warnings.
    Runs,
}

/// Whom an entry of `neighbors` is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whom {
    /// `address`, with `port`.
    Peer(PeerKey),
    /// `prefix`.
    Range(IpNet),
}

impl SpeakerFile {
    /// Read the text of a file.
    ///
    /// # Errors
    /// Everything that is wrong with the speaker as a whole, in the order of the file.
    pub(crate) fn parse(text: &str) -> Result<Self, Vec<Flaw>> {
        let flaws = Flaws::default();
        let mut documents = documents(text).map_err(|error| {
            let mistake = Mistake::Syntax { reason: error.to_string() };
            vec![Flaw { line: error.line(), field: String::new(), mistake }]
        })?;
        if documents.len() > 1 {
            let line = documents[1].line;
            let mistake = Mistake::Shape { wanted: "one document", found: "a second one" };
            return Err(vec![Flaw { line, field: String::new(), mistake }]);
        }
        let Some(document) = documents.pop() else {
            let field = "asn".to_owned();
            return Err(vec![Flaw { line: Line(1), field, mistake: Mistake::Missing }]);
        };
        let file = Self::decode(&Item::root(&document, &flaws), &flaws);
        match file {
            Some(file) if flaws.count() == 0 => Ok(file),
            Some(_) | None => Err(flaws.into_vec()),
        }
    }

    fn decode(root: &Item<'_>, flaws: &Flaws) -> Option<Self> {
        let mut fields = root.fields()?;
        let asn = fields.need("asn").and_then(|item| asn(&item));
        let wanted = "a dotted quad such as 192.0.2.1";
        let identifier = |item: &Item<'_>| {
            item.parse_with(wanted, |text| text.parse().ok().filter(|id| *id != RouterId(0)))
        };
        let router_id = fields.need("router-id").and_then(|item| identifier(&item));
        let cluster_id = fields.take("cluster-id").and_then(|item| identifier(&item));
        let listen = decode_listen(fields.take("listen"));
        let api = fields.take("api").and_then(|item| item.text()).map(PathBuf::from);
        let require_policy = fields.take("require-policy").and_then(|item| item.boolean()).unwrap_or(true);
        let enforce_first_as =
            fields.take("enforce-first-as").and_then(|item| item.boolean()).unwrap_or(true);

        let decision = decision::decode(&mut fields);
        let graceful_restart = fields.take("graceful-restart").map(|item| decode_graceful_restart(&item));

        let sets = policy::decode_sets(fields.take("sets"));
        let mut places = Places::default();
        let mut policies = BTreeMap::new();
        let declared = fields.take("policies").map(|item| item.entries()).unwrap_or_default();
        let names: BTreeSet<PolicyName> = declared.iter().map(|(name, _)| PolicyName::new(name)).collect();
        for (name, item) in declared {
            if matches!(name, "accept" | "reject") {
                let rule = "accept and reject have a meaning of their own; give the policy another name";
                item.flaw(Mistake::Conflict { rule });
            }
            places.insert(Subject::Policy(PolicyName::new(name)), Place::of(&item, ""));
            let def = policy::decode_policy(&item, &sets, &names);
            policies.extend(def.map(|def| (PolicyName::new(name), def)));
        }
        let global = GlobalPolicies {
            import: policy::decode_global(fields.take("import"), &names),
            export: policy::decode_global(fields.take("export"), &names),
        };
        let originations = decode_originations(fields.take("originate"), &mut places);
        let aggregates = decode_aggregates(fields.take("aggregate"), &mut places);
        let known = neighbor::Known {
            asn: asn.unwrap_or_default(),
            require_policy,
            enforce_first_as,
            graceful_restart,
            policies: &names,
        };
        let mut neighbors = Neighbors::default();
        let (mut refused, mut doubtful) = (Vec::new(), Vec::new());
        for item in fields.take("neighbors").map(|item| item.list()).unwrap_or_default() {
            // A list of its own, so that its mistakes stop nobody else.
            let own = Flaws::default();
            let (address, neighbor) = neighbor::decode(&item.with_flaws(&own), &known);
            let whom = neighbor.as_ref().map(Neighbor::whom);
            let silent = neighbor.as_ref().and_then(|neighbor| neighbor.lacks_policy(&item, &known));
            if let Some(neighbor) = neighbor
                && own.count() == 0
                && let Err((rule, other)) = neighbors.add(neighbor, &listen)
            {
                let place = other.and_then(|other| places.get(&Subject::Neighbor(other)));
                let place = place.map(|place| format!(" (line {})", place.line)).unwrap_or_default();
                let reason = format!("{rule}{place}");
                own.add(item.line(), item.path(), Mistake::Refused { reason });
            }
            if own.count() > 0 {
                let standing = Standing::Stopped;
                refused.push(RefusedNeighbor { address, whom, flaws: own.into_vec(), standing });
            } else if let Some(whom) = whom {
                places.insert(Subject::Neighbor(whom), Place::of(&item, &address));
                if let Some(effect) = silent {
                    let mistake = Mistake::NoPolicy { effect };
                    let flaws = vec![Flaw { line: item.line(), field: item.path().to_owned(), mistake }];
                    let (whom, standing) = (Some(whom), Standing::Runs);
                    doubtful.push(RefusedNeighbor { address, whom, flaws, standing });
                }
            }
        }
        let Neighbors { peers, ranges } = neighbors;
        fields.finish();
        if flaws.count() > 0 {
            return None;
        }
        let (asn, router_id) = (asn?, router_id?);
        let prefix_sets = sets.prefixes;
        let mut file = Self {
            asn,
            router_id,
            cluster_id,
            listen,
            decision,
            graceful_restart,
            api,
            peers,
            ranges,
            refused,
            doubtful,
            originations,
            aggregates,
            prefix_sets,
            policies,
            global,
        };
        file.rehearse(&places, flaws);
        Some(file)
    }

    /// Leaves in force what an older file said of neighbours that this one has a mistake in, with the policies and sets
    /// that they need. One that contradicts the AS number or router id of this file can't stay.
    pub(crate) fn keep_from(&mut self, old: &Self) {
        let mut stage = self.stage();
        for refused in &mut self.refused {
            let config = match refused.whom {
                Some(Whom::Peer(key)) => match (old.peers.get(&key), self.peers.entry(key)) {
                    (Some(config), Entry::Vacant(place)) if stage.takes_peer(key, config) => {
                        place.insert(config.clone())
                    }
                    _ => continue,
                },
                Some(Whom::Range(prefix)) => match (old.ranges.get(&prefix), self.ranges.entry(prefix)) {
                    (Some(range), Entry::Vacant(place)) if stage.takes_range(prefix, range) => {
                        &mut place.insert(range.clone()).config
                    }
                    _ => continue,
                },
                None => continue,
            };
            refused.standing = Standing::Kept;
            let mut named: Vec<PolicyName> =
                config.import.policies.iter().chain(&config.export.policies).cloned().collect();
            while let Some(name) = named.pop() {
                let Some(def) = old.policies.get(&name) else { continue };
                if self.policies.contains_key(&name) {
                    continue;
                }
                self.policies.insert(name, def.clone());
                named.extend(def.calls());
                let sets = def.sets();
                let of_it = |set: &SetName| sets.contains(&(SetKind::Prefixes, set.clone()));
                for (set, ranges) in old.prefix_sets.iter().filter(|(set, _)| of_it(set)) {
                    self.prefix_sets.entry(set.clone()).or_insert_with(|| ranges.clone());
                }
            }
        }
    }

    /// The commands that bring a speaker from what an older file said to what this one says, in an order in which each
    /// finds what it names. What both say alike is not mentioned.
    pub(crate) fn commands_since(&self, old: Option<&Self>) -> Vec<Command> {
        let empty = Self::empty(self.asn, self.router_id);
        let old = old.unwrap_or(&empty);
        let mut commands = Vec::new();
        let mut gone_peers: Vec<_> = gone(&self.peers, &old.peers).collect();
        let mut gone_ranges: Vec<_> = gone(&self.ranges, &old.ranges).collect();
        let (mut peers_again, mut ranges_again) = (Vec::new(), Vec::new());
        if (old.asn, old.router_id) != (self.asn, self.router_id) {
            // An identity that contradicts a neighbour is refused, so those make way first: who goes anyway, and who comes
            // again with what this file says of it.
            let mut stage = self.stage();
            peers_again = old.peers.iter().filter(|(key, config)| !stage.takes_peer(**key, config)).collect();
            ranges_again =
                old.ranges.iter().filter(|(prefix, range)| !stage.takes_range(**prefix, range)).collect();
            let peers = gone_peers.drain(..).chain(peers_again.iter().map(|(key, _)| *key));
            let peers: BTreeSet<_> = peers.collect();
            commands.extend(peers.into_iter().map(|key| Command::DeletePeer(*key)));
            let ranges = gone_ranges.drain(..).chain(ranges_again.iter().map(|(prefix, _)| *prefix));
            let ranges: BTreeSet<_> = ranges.collect();
            commands.extend(ranges.into_iter().map(|prefix| Command::DeletePeerRange(*prefix)));
            commands.push(Command::PutIdentity { asn: self.asn, router_id: self.router_id });
        }
        if old.cluster_id != self.cluster_id {
            commands.push(Command::PutClusterId(self.cluster_id));
        }
        if old.decision != self.decision {
            commands.push(Command::PutDecision(self.decision));
        }
        for (name, ranges) in changed(&self.prefix_sets, &old.prefix_sets) {
            commands.push(Command::PutSet(name.clone(), SetDef::Prefixes(ranges.clone())));
        }
        // Who is called comes before who calls.
        for name in policy::in_order(&self.policies) {
            if let Some(def) = self.policies.get(name).filter(|def| old.policies.get(name) != Some(def)) {
                commands.push(Command::PutPolicy(name.clone(), def.clone()));
            }
        }
        for (direction, new, old) in [
            (Direction::Import, &self.global.import, &old.global.import),
            (Direction::Export, &self.global.export, &old.global.export),
        ] {
            if new != old {
                commands.push(Command::PutGlobalPolicies(direction, new.clone()));
            }
        }
        for (nlri, origination) in changed(&self.originations, &old.originations) {
            commands.push(Command::PutOrigination(*nlri, origination.clone()));
        }
        for (prefix, aggregate) in changed(&self.aggregates, &old.aggregates) {
            commands.push(Command::PutAggregate(*prefix, aggregate.clone()));
        }
        let peers_again: BTreeSet<_> = peers_again.into_iter().map(|(key, _)| *key).collect();
        for (key, config) in &self.peers {
            if old.peers.get(key) != Some(config) || peers_again.contains(key) {
                commands.push(Command::PutPeer(*key, config.clone()));
            }
        }
        let ranges_again: BTreeSet<_> = ranges_again.into_iter().map(|(prefix, _)| *prefix).collect();
        for (prefix, range) in &self.ranges {
            if old.ranges.get(prefix) != Some(range) || ranges_again.contains(prefix) {
                commands.push(Command::PutPeerRange(*prefix, range.clone()));
            }
        }
        // After those that come, so that a neighbour keeps its session where it leaves a prefix for an entry of its own.
        commands.extend(gone_peers.into_iter().map(|key| Command::DeletePeer(*key)));
        commands.extend(gone_ranges.into_iter().map(|prefix| Command::DeletePeerRange(*prefix)));
        commands.extend(
            gone(&self.originations, &old.originations).map(|nlri| Command::DeleteOrigination(*nlri)),
        );
        commands
            .extend(gone(&self.aggregates, &old.aggregates).map(|prefix| Command::DeleteAggregate(*prefix)));
        let gone_policies = policy::in_order(&old.policies).into_iter().rev();
        let gone_policies = gone_policies.filter(|name| !self.policies.contains_key(*name));
        commands.extend(gone_policies.map(|name| Command::DeletePolicy(name.clone())));
        commands.extend(
            gone(&self.prefix_sets, &old.prefix_sets)
                .map(|name| Command::DeleteSet(SetKind::Prefixes, name.clone())),
        );
        commands
    }

    /// This file with what a speaker has in force instead of what it was told: what `old` said, changed by the commands
    /// that it carried out. What it refused is a difference still, so that the next reload asks for it again.
    pub(crate) fn in_force(self, old: Option<Self>, done: Vec<Command>) -> Self {
        let old = old.unwrap_or_else(|| Self::empty(self.asn, self.router_id));
        let Self { listen, graceful_restart, api, refused, doubtful, .. } = self;
        let mut file = Self { listen, graceful_restart, api, refused, doubtful, ..old };
        for command in done {
            file.note(command);
        }
        file
    }

    fn note(&mut self, done: Command) {
        match done {
            Command::PutIdentity { asn, router_id } => (self.asn, self.router_id) = (asn, router_id),
            Command::PutClusterId(id) => self.cluster_id = id,
            Command::PutDecision(settings) => self.decision = settings,
            Command::PutPeer(key, config) => drop(self.peers.insert(key, config)),
            Command::DeletePeer(key) => drop(self.peers.remove(&key)),
            Command::PutPeerRange(prefix, range) => drop(self.ranges.insert(prefix, range)),
            Command::DeletePeerRange(prefix) => drop(self.ranges.remove(&prefix)),
            Command::PutOrigination(nlri, origination) => drop(self.originations.insert(nlri, origination)),
            Command::DeleteOrigination(nlri) => drop(self.originations.remove(&nlri)),
            Command::PutAggregate(prefix, aggregate) => drop(self.aggregates.insert(prefix, aggregate)),
            Command::DeleteAggregate(prefix) => drop(self.aggregates.remove(&prefix)),
            Command::PutSet(name, SetDef::Prefixes(ranges)) => drop(self.prefix_sets.insert(name, ranges)),
            Command::DeleteSet(SetKind::Prefixes, name) => drop(self.prefix_sets.remove(&name)),
            Command::PutPolicy(name, def) => drop(self.policies.insert(name, def)),
            Command::DeletePolicy(name) => drop(self.policies.remove(&name)),
            Command::PutGlobalPolicies(Direction::Import, policies) => self.global.import = policies,
            Command::PutGlobalPolicies(Direction::Export, policies) => self.global.export = policies,
            // A file says nothing of these.
            Command::PutSet(..)
            | Command::DeleteSet(..)
            | Command::PutNextHop(..)
            | Command::DeleteNextHop(_)
            | Command::LoadingDone
            | Command::ClearPeer(..)
            | Command::DisablePeer(..)
            | Command::EnablePeer(_)
            | Command::GracefulShutdown(_)
            | Command::Stop(_) => {}
        }
    }

    fn empty(asn: Asn, router_id: RouterId) -> Self {
        Self {
            asn,
            router_id,
            cluster_id: None,
            listen: Vec::new(),
            decision: DecisionSettings::RFC4271,
            graceful_restart: None,
            api: None,
            peers: BTreeMap::new(),
            ranges: BTreeMap::new(),
            refused: Vec::new(),
            doubtful: Vec::new(),
            originations: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            prefix_sets: BTreeMap::new(),
            policies: BTreeMap::new(),
            global: GlobalPolicies::default(),
        }
    }
}

/// The neighbours so far.
#[derive(Default)]
struct Neighbors {
    peers: BTreeMap<PeerKey, PeerConfig>,
    ranges: BTreeMap<IpNet, PeerRange>,
}

impl Neighbors {
    /// Takes one more, unless it contradicts another, or where we listen; then says how.
    fn add(&mut self, neighbor: Neighbor, listen: &[SocketAddr]) -> Result<(), (&'static str, Option<Whom>)> {
        // The kernel finds a key by address, so one of its own for a port, or none inside a prefix, can't be had.
        const ONE_KEY: &str = "another neighbour has this address and another md5-password-file";
        const NO_KEY: &str = "without md5-password-file it contradicts a prefix that holds it and has one";
        match neighbor {
            Neighbor::Peer(key, config) => {
                if listen.iter().any(|own| (own.ip(), own.port()) == (key.address, key.port)) {
                    return Err(("its address and port contradict listen: we are there ourselves", None));
                }
                let at_address = self.peers.range(key.with_port(0)..=key.with_port(u16::MAX));
                let mut others = at_address.filter(|(other, _)| other.address == key.address);
                if let Some((other, _)) = others.find(|(_, other)| other.password != config.password) {
                    return Err((ONE_KEY, Some(Whom::Peer(*other))));
                }
                let signed = |(prefix, range): (&IpNet, &PeerRange)| {
                    prefix.contains(&key.address) && range.config.password.is_some()
                };
                if config.password.is_none()
                    && let Some((prefix, _)) = self.ranges.iter().find(|entry| signed(*entry))
                {
                    return Err((NO_KEY, Some(Whom::Range(*prefix))));
                }
                match self.peers.entry(key) {
                    Entry::Vacant(place) => place.insert(config),
                    Entry::Occupied(_) => {
                        return Err(("another neighbour has this address and port", Some(Whom::Peer(key))));
                    }
                };
            }
            Neighbor::Range(prefix, range) => {
                let mut inside = self.peers.iter().filter(|(key, _)| prefix.contains(&key.address));
                if range.config.password.is_some()
                    && let Some((key, _)) = inside.find(|(_, peer)| peer.password.is_none())
                {
                    let rule = "its md5-password-file contradicts a neighbour of the prefix that has none";
                    return Err((rule, Some(Whom::Peer(*key))));
                }
                match self.ranges.entry(prefix) {
                    Entry::Vacant(place) => place.insert(range),
                    Entry::Occupied(_) => {
                        return Err(("another neighbour has this prefix", Some(Whom::Range(prefix))));
                    }
                };
            }
        }
        Ok(())
    }
}

fn changed<'a, K: Ord, V: PartialEq>(
    new: &'a BTreeMap<K, V>,
    old: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (&'a K, &'a V)> {
    new.iter().filter(|(key, value)| old.get(key) != Some(value))
}

fn gone<'a, K: Ord, V>(new: &'a BTreeMap<K, V>, old: &'a BTreeMap<K, V>) -> impl Iterator<Item = &'a K> {
    old.keys().filter(|key| !new.contains_key(key))
}

fn decode_listen(item: Option<Item<'_>>) -> Vec<SocketAddr> {
    let mut listen: Vec<SocketAddr> = Vec::new();
    for item in item.map(|item| item.list()).unwrap_or_default() {
        let address: Option<SocketAddr> = item.parse("an address with a port, such as 192.0.2.1:179");
        let Some(address) = address else { continue };
        let at_port = |other: &&SocketAddr| {
            (other.port(), other.is_ipv4()) == (address.port(), address.is_ipv4()) && address.port() != 0
        };
        let every = |address: &SocketAddr| address.ip().is_unspecified();
        let rule = match listen
            .iter()
            .filter(at_port)
            .find(|other| other.ip() == address.ip() || every(other) || every(&address))
        {
            Some(other) if other.ip() == address.ip() => "another entry has this address and port",
            Some(_) => {
                "this and another entry contradict each other: one of them is every address, at the same port"
            }
            None => {
                listen.push(address);
                continue;
            }
        };
        item.flaw(Mistake::Conflict { rule });
    }
    listen
}

fn decode_originations(item: Option<Item<'_>>, places: &mut Places) -> BTreeMap<Nlri, Origination> {
    let mut originations = BTreeMap::new();
    for item in item.map(|item| item.list()).unwrap_or_default() {
        let Some(mut fields) = item.fields() else { continue };
        let mut origination = Origination::default();
        let nlri = match (fields.take("prefix"), fields.take("sr-policy")) {
            (Some(item), None) => {
                let prefix = prefix(&item);
                in_vpn(prefix, &mut fields, &mut origination)
            }
            (None, Some(item)) => sr_policy::decode(&item).map(|(nlri, path)| {
                origination.sr_policy = Some(Box::new(path));
                nlri
            }),
            (Some(_), Some(_)) | (None, None) => {
                fields.flaw(Mistake::Conflict { rule: "an own route has a prefix or an sr-policy" });
                None
            }
        };
        if let Some(hop) = fields.take("next-hop").filter(|hop| hop.text() != Some("self")) {
            origination.next_hop = hop.parse("self, or an address such as 192.0.2.1");
        }
        origination.med = fields.take("med").and_then(|item| metric(&item));
        origination.local_pref = fields.take("local-pref").and_then(|item| metric(&item));
        let Origination { communities, large_communities, ext_communities, .. } = &mut origination;
        for item in fields.take("communities").map(|item| item.list()).unwrap_or_default() {
            match ext_community(&item) {
                Some(community) => ext_communities.push(community),
                None => add_community(&item, communities, large_communities),
            }
        }
        fields.finish();
        let Some(nlri) = nlri else { continue };
        places.insert(Subject::Origination(nlri), Place::of(&item, ""));
        if originations.insert(nlri, origination).is_some() {
            item.flaw(Mistake::Conflict { rule: "this prefix or policy is originated twice" });
        }
    }
    originations
}

fn decode_aggregates(item: Option<Item<'_>>, places: &mut Places) -> BTreeMap<IpNet, Aggregate> {
    let mut aggregates = BTreeMap::new();
    for item in item.map(|item| item.list()).unwrap_or_default() {
        let Some(mut fields) = item.fields() else { continue };
        let mut aggregate = Aggregate::default();
        let net = fields.need("prefix").and_then(|item| prefix(&item)).and_then(|nlri| nlri.unicast());
        aggregate.summary_only = fields.take("summary-only").and_then(|item| item.boolean()).unwrap_or(false);
        let Aggregate { communities, large_communities, .. } = &mut aggregate;
        for item in fields.take("communities").map(|item| item.list()).unwrap_or_default() {
            add_community(&item, communities, large_communities);
        }
        fields.finish();
        let Some(net) = net else { continue };
        places.insert(Subject::Aggregate(net), Place::of(&item, ""));
        if aggregates.insert(net, aggregate).is_some() {
            item.flaw(Mistake::Conflict { rule: "another entry has this prefix" });
        }
    }
    aggregates
}

/// Adds a community to those of its size.
fn add_community(item: &Item<'_>, standard: &mut Vec<u32>, large: &mut Vec<(u32, u32, u32)>) {
    match any_community(item) {
        Some(AnyCommunity::Standard(community)) => standard.push(community.0),
        Some(AnyCommunity::Large(LargeCommunity { global, local1, local2 })) => {
            large.push((global, local1, local2));
        }
        None => {}
    }
}

/// The prefix that is originated: in a VPN where there is a route distinguisher, and then with a label.
fn in_vpn(prefix: Option<Nlri>, fields: &mut Fields<'_>, origination: &mut Origination) -> Option<Nlri> {
    let Some(rd) = fields.take("rd") else {
        if let Some(label) = fields.take("label") {
            label.flaw(Mistake::Conflict { rule: "only a prefix of a VPN, with an rd, has a label" });
        }
        return prefix;
    };
    let rd = rd.parse::<RouteDistinguisher>(
        "a route distinguisher such as 65000:100, 192.0.2.1:100 or 4200000000:100",
    );
    let label = fields.need("label").and_then(|item| item.number("a label, 0 to 1048575", 0..=Label::MAX));
    origination.label = label.and_then(Label::new);
    prefix?.in_vpn(rd?)
}

/// An extended community, which begins with its kind.
fn ext_community(item: &Item<'_>) -> Option<ExtCommunity> {
    let text = item.is_scalar().then(|| item.text()).flatten()?;
    text.parse().ok()
}

/// A community of either size; the number of colons decides.
#[derive(Copy, Clone, Debug)]
enum AnyCommunity {
    Standard(Community),
    Large(LargeCommunity),
}

fn any_community(item: &Item<'_>) -> Option<AnyCommunity> {
    item.parse_with("a community such as 65000:1, 65000:1:2, no-export or rt:65000:1", |text| {
        let standard = text.parse().ok().map(AnyCommunity::Standard);
        standard.or_else(|| text.parse().ok().map(AnyCommunity::Large))
    })
}

fn asn(item: &Item<'_>) -> Option<Asn> {
    let asn: Asn = item.parse_with("an AS number above 0, such as 65000 or 6.10", |text| {
        text.parse().ok().filter(|asn| *asn != Asn::ZERO)
    })?;
    if asn == Asn::TRANS {
        let wanted = "an AS number of somebody; this one stands for those of four octets (RFC 6793)";
        item.flaw(Mistake::Value { wanted, found: asn.to_string() });
        return None;
    }
    Some(asn)
}

fn metric(item: &Item<'_>) -> Option<u32> {
    item.number("a number, 0 to 4294967295", 0..=u32::MAX)
}

fn prefix(item: &Item<'_>) -> Option<Nlri> {
    item.parse_with("a prefix such as 203.0.113.0/24 without host bits", |text| {
        text.parse::<Nlri>().ok().filter(|nlri| nlri.unicast().is_some())
    })
}

/// `graceful-restart: { restart-time, long-lived-stale-time, forwarding-preserved }`. What is wrong in it is noted, and the
/// usual taken.
fn decode_graceful_restart(item: &Item<'_>) -> GracefulRestart {
    let mut graceful = GracefulRestart::USUAL;
    let Some(mut fields) = item.fields() else { return graceful };
    if let Some(item) = fields.take("long-lived-stale-time") {
        graceful.long_lived = decode_long_lived(&item);
    }
    if let Some(item) = fields.take("restart-time") {
        let wanted = "seconds, 0 to 4095";
        let time = item.parse_with(wanted, |text| text.parse().ok().and_then(RestartTime::new));
        graceful.restart_time = time.unwrap_or(graceful.restart_time);
        if graceful.restart_time == RestartTime::ZERO && graceful.long_lived == LongLived::NONE {
            let rule = "restart-time: 0 keeps nothing without a long-lived-stale-time";
            item.flaw(Mistake::Conflict { rule });
        }
    }
    if fields.take("forwarding-preserved").and_then(|item| item.boolean()) == Some(true) {
        graceful.forwarding = FamilySet::ALL;
    }
    fields.finish();
    graceful
}

/// `long-lived-stale-time`: seconds for every family, or `{ ipv4-unicast: 3600 }` for those named.
fn decode_long_lived(item: &Item<'_>) -> LongLived {
    let time = |item: &Item<'_>| {
        let wanted = "seconds, 0 to 16777215";
        item.parse_with(wanted, |text| text.parse().ok().and_then(StaleTime::new)).unwrap_or_default()
    };
    if item.is_scalar() {
        return LongLived::of(FamilySet::ALL, time(item));
    }
    item.entries().into_iter().fold(LongLived::NONE, |all, (name, item)| match name.parse::<Family>() {
        Ok(family) => all.with(family, time(&item)),
        Err(_) => {
            let near = nearest(name, Family::ALL.map(Family::name)).map(str::to_owned);
            item.flaw(Mistake::NoSuchName { found: name.to_owned(), near });
            all
        }
    })
}

#[cfg(test)]
mod tests;
