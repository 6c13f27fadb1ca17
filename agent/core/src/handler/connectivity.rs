//! Destinations to objects of VPP: which provider carries the traffic, and what it needs.
//!
//! Destinations that have the same next hops and the same rule of encapsulation share one *way*: the provider is asked
//! once for it, and a destination costs one number. When our node or a setting changes, each way is asked again, when
//! another node does, those that lead to it; only the destinations of ways whose answer changed are edited. When a pool
//! changes, only the destinations inside it are looked at.
//!
//! Addresses of services are never installed, whoever announces them: traffic to them is this node's own service proxy's
//! affair, and a route would take it away.
//!
//! Nothing is wanted before the first complete lists of nodes, pools and settings are in: a restart would otherwise take routes
//! out of the tunnels they are in, and put them back.

mod networks;
mod wireguard;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use bgp_core::rib::SrPolicyPath;
use bgp_core::time::Instant;
use ipnet::IpNet;

use self::networks::Networks;
use self::wireguard::Peers;
use super::Handler;
use crate::config::{Config, Srv6Config};
use crate::desired::{
    Lengths, ObjectKey, Owner, Path, PrefixMap, Spec, Target, Territory, VppKey, WayId, Wishes,
};
use crate::effects::{Effects, Origin, VppEdit};
use crate::event::Change;
use crate::explain::{Carried, CarriedHop};
use crate::model::{
    BgpConfig, BgpConfigName, Condition, Connectivity, Encapsulation, FelixConfig, FelixConfigName, Hop,
    Node, NodeName, ObjectRef, Pool, PoolName, RouteKey, Sids, SrBehavior, SrCandidate, SrKey, TableId,
};
use crate::plan::family;
use crate::provider::{
    Carriage, Choice, DesiredSet, Facts, Kind, NodesChanged, Slot, Taken, Unserved, provider, select,
};

/// A set of next hops under one rule of encapsulation, and what a provider said about it.
#[derive(Debug)]
struct Way {
    carriage: Carriage,
    hops: Arc<[Hop]>,
    users: u32,
    /// What it needs besides the routes of its destinations.
    wishes: Wishes,
    /// How a destination is carried; in no way where no provider serves it.
    through: Option<Through>,
    /// Its destinations, where their paths lead to peers of WireGuard, which have to know them.
    members: Option<BTreeSet<IpNet>>,
}

/// How the packets of a destination leave.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Through {
    /// By a route with these paths.
    Paths(Arc<[Path]>),
    /// By the SR policy with this binding SID.
    Policy(Ipv6Addr),
}

impl Way {
    /// The paths of a destination; none where it has no route.
    fn paths(&self) -> &[Path] {
        match &self.through {
            Some(Through::Paths(paths)) => paths,
            Some(Through::Policy(_)) | None => &[],
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct ConnectivityHandler {
    me: NodeName,
    /// Another agent is to be taken over from.
    adopts: bool,
    srv6: Option<Srv6Config>,
    facts: Facts,
    pools: BTreeMap<PoolName, Pool>,
    carriages: PrefixMap<Carriage>,
    lengths: Lengths,
    /// Ranges of services.
    services: PrefixMap<()>,
    service_lengths: Lengths,
    nodes_known: bool,
    pools_known: bool,
    configs_known: bool,
    felix_known: bool,
    felix_configs: BTreeMap<FelixConfigName, FelixConfig>,
    /// Edits flow. They begin to when our node, all pools and the settings are known.
    open: bool,
    destinations: BTreeMap<TableId, PrefixMap<WayId>>,
    ways: Vec<Option<Way>>,
    free: Vec<u32>,
    by_hops: BTreeMap<(Carriage, Arc<[Hop]>), WayId>,
    /// The ways through each next hop.
    by_hop: BTreeMap<IpAddr, BTreeSet<WayId>>,
    peers: Peers,
    networks: Networks,
}

impl ConnectivityHandler {
    pub(crate) fn new(config: &Config) -> Self {
        let mut facts = Facts::new(config.node.clone(), config.encryption);
        facts.keys = config.wireguard_keys.clone();
        facts.ipsec = config.ipsec.clone();
        Self {
            me: config.node.clone(),
            adopts: config.vpp.as_ref().is_some_and(|vpp| vpp.adopt),
            srv6: config.srv6.clone(),
            facts,
            pools: BTreeMap::new(),
            carriages: PrefixMap::default(),
            lengths: Lengths::default(),
            services: PrefixMap::default(),
            service_lengths: Lengths::default(),
            nodes_known: false,
            pools_known: false,
            configs_known: false,
            felix_known: false,
            felix_configs: BTreeMap::new(),
            open: false,
            destinations: BTreeMap::new(),
            ways: Vec::new(),
            free: Vec::new(),
            by_hops: BTreeMap::new(),
            by_hop: BTreeMap::new(),
            peers: Peers::default(),
            networks: Networks::new(config.multinet),
        }
    }

    /// How many destinations and ways there are.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.destinations.values().map(PrefixMap::len).sum(), self.by_hops.len())
    }

    fn carriage(&self, key: &RouteKey) -> Carriage {
        // Pools, services and everything else are the default network's.
        if let Some(vni) = key.table.network() {
            return if self.networks.has(vni) { Carriage::Network(vni) } else { Carriage::Unknown(vni) };
        }
        let prefix = &key.prefix;
        if self.services.covering(prefix, &self.service_lengths).is_some() {
            return Carriage::Withheld;
        }
        let pooled = self.carriages.covering(prefix, &self.lengths).map(|(_, carriage)| *carriage);
        match (&self.srv6, prefix) {
            (None, _) => pooled.unwrap_or(Carriage::Outside),
            (Some(srv6), IpNet::V6(net)) if srv6.policy_pool.contains(net) => Carriage::BindingSids,
            // A prefix around all local SIDs can't be steered either: the packets that are encapsulated would be, again.
            (Some(Srv6Config { localsid_pool: pool, .. }), IpNet::V6(net))
                if pool.contains(net) || net.contains(pool) =>
            {
                Carriage::Localsids
            }
            (Some(_), _) => {
                Carriage::Steered { behavior: SrBehavior::of(family(prefix)), pooled: pooled.is_some() }
            }
        }
    }

    fn put(&mut self, key: RouteKey, hops: &Arc<[Hop]>, fx: &mut Effects) {
        if hops.is_empty() {
            self.delete(key, fx);
            return;
        }
        let way = self.way(self.carriage(&key), hops, fx);
        let before = self.destinations.entry(key.table).or_default().insert(key.prefix, way);
        if before == Some(way) {
            return;
        }
        self.enter(way, key.prefix);
        self.want(key, way, fx);
        if let Some(before) = before {
            self.leave(before, &key.prefix, fx);
        }
    }

    fn delete(&mut self, key: RouteKey, fx: &mut Effects) {
        let Some(table) = self.destinations.get_mut(&key.table) else { return };
        let Some(way) = table.remove(&key.prefix) else { return };
        if self.open {
            self.release(key, fx);
        }
        self.leave(way, &key.prefix, fx);
    }

    fn release(&self, key: RouteKey, fx: &mut Effects) {
        fx.vpp.push(VppEdit::ReleaseRoute(Owner::Destination, key));
        self.unsteer(key, fx);
    }

    fn unsteer(&self, key: RouteKey, fx: &mut Effects) {
        if self.srv6.is_some() {
            fx.vpp.push(VppEdit::Release(Owner::Destination, ObjectKey::SrSteering(key)));
        }
    }

    /// The destination's packets shall leave as its way says. What is new comes before what was goes.
    fn want(&self, key: RouteKey, way: WayId, fx: &mut Effects) {
        if !self.open {
            return;
        }
        match self.at(way).and_then(|way| way.through.as_ref()) {
            Some(Through::Paths(paths)) => {
                fx.vpp.push(VppEdit::WantRoute(Owner::Destination, key, Arc::clone(paths)));
                self.unsteer(key, fx);
            }
            Some(Through::Policy(bsid)) => {
                let steering = ObjectKey::SrSteering(key);
                fx.vpp.push(VppEdit::Define(steering, Spec::SrSteering(*bsid)));
                fx.vpp.push(VppEdit::Want(Owner::Destination, steering));
                fx.vpp.push(VppEdit::ReleaseRoute(Owner::Destination, key));
            }
            None => self.release(key, fx),
        }
    }

    /// The number of a way; a new one is asked for at once.
    fn way(&mut self, carriage: Carriage, hops: &Arc<[Hop]>, fx: &mut Effects) -> WayId {
        // The key is built once per look-up: that is two words and a count, no allocation.
        let key = (carriage, Arc::clone(hops));
        if let Some(id) = self.by_hops.get(&key) {
            return *id;
        }
        let way = Way {
            carriage,
            hops: Arc::clone(hops),
            users: 0,
            wishes: Wishes::default(),
            through: None,
            members: None,
        };
        let at = self.free.pop().unwrap_or(self.ways.len() as u32);
        match self.ways.get_mut(at as usize) {
            Some(slot) => *slot = Some(way),
            None => self.ways.push(Some(way)),
        }
        self.by_hops.insert(key, WayId(at));
        for hop in hops.iter() {
            self.by_hop.entry(hop.address).or_default().insert(WayId(at));
        }
        self.ask(WayId(at), fx);
        WayId(at)
    }

    fn at(&self, id: WayId) -> Option<&Way> {
        self.ways.get(id.0 as usize)?.as_ref()
    }

    fn enter(&mut self, id: WayId, prefix: IpNet) {
        if let Some(Some(way)) = self.ways.get_mut(id.0 as usize) {
            way.users += 1;
            if way.members.as_mut().is_some_and(|members| members.insert(prefix)) {
                self.peers.look_at(&way.hops);
            }
        }
    }

    fn leave(&mut self, id: WayId, prefix: &IpNet, fx: &mut Effects) {
        let Some(slot) = self.ways.get_mut(id.0 as usize) else { return };
        let Some(way) = slot else { return };
        way.users -= 1;
        if way.users == 0 || way.members.as_mut().is_some_and(|members| members.remove(prefix)) {
            self.peers.look_at(&way.hops);
        }
        if way.users > 0 {
            return;
        }
        if let Some(mut way) = slot.take() {
            self.by_hops.remove(&(way.carriage, Arc::clone(&way.hops)));
            for hop in way.hops.iter() {
                if let Some(ways) = self.by_hop.get_mut(&hop.address) {
                    ways.remove(&id);
                    if ways.is_empty() {
                        self.by_hop.remove(&hop.address);
                    }
                }
            }
            self.free.push(id.0);
            way.wishes.replace(Owner::Way(id), Wishes::default(), &mut fx.vpp);
            if self.open && way.through.is_none() {
                fx.conditions(Origin::Connectivity, subject(&way), Vec::new());
            }
        }
    }

    /// Asks the providers about a way, and edits what is wanted for it. True where its paths are others than before.
    fn ask(&mut self, id: WayId, fx: &mut Effects) -> bool {
        if !self.open || self.facts.own().is_none() {
            return false;
        }
        let Some(Some(way)) = self.ways.get_mut(id.0 as usize) else { return false };
        let answer = desired(way.carriage, &way.hops, &self.facts);
        let (mut set, problem) = match answer {
            Ok(set) => (set, None),
            Err(problem) => (DesiredSet::default(), Some(problem)),
        };
        let paths = std::mem::take(&mut set.paths);
        let through = match set.steer {
            Some(bsid) => Some(Through::Policy(bsid)),
            None if paths.is_empty() => None,
            None => Some(Through::Paths(paths.into_iter().collect())),
        };
        way.wishes.replace(Owner::Way(id), set.wishes(), &mut fx.vpp);
        let (served, serves) = (way.through.is_some(), through.is_some());
        let changed = way.through != through;
        way.through = through;
        let encrypted = way.paths().iter().any(wireguard::is_encrypted);
        if encrypted != way.members.is_some() {
            // Who asked fills it.
            way.members = encrypted.then(BTreeSet::new);
        }
        self.peers.look_at(&way.hops);
        if !serves || !served {
            let conditions = problem.map(|problem| condition(&self.me, problem)).into_iter().collect();
            fx.conditions(Origin::Connectivity, subject(way), conditions);
        }
        changed
    }

    /// Says what belongs to the cluster, where that is asked for.
    fn territory(&self, fx: &mut Effects) {
        if self.adopts {
            let pools = self.pools.values().map(|pool| pool.cidr).collect();
            fx.vpp.push(VppEdit::Territory(Territory { pools, nodes: self.facts.others().collect() }));
        }
    }

    /// Nodes, or the completeness of their list, changed.
    fn nodes_changed(&mut self, changed: &NodesChanged, fx: &mut Effects) {
        if !self.open {
            self.open_if_known(fx);
            return;
        }
        self.peers.look_at_all(&changed.addresses);
        // A node of ours that vanished has no address, so nothing can be carried; what is in VPP stays wanted until the
        // node says otherwise, as its object may be on its way back.
        if self.facts.own().is_none() {
            return;
        }
        let ways: BTreeSet<WayId> = if changed.own {
            self.by_hops.values().copied().collect()
        } else {
            changed
                .addresses
                .iter()
                .filter_map(|address| self.by_hop.get(address))
                .flatten()
                .copied()
                .collect()
        };
        self.ask_again(ways, fx);
    }

    /// An SR policy came, changed or went. What can't be used of it is reported, and is as good as gone.
    fn put_policy(&mut self, key: SrKey, path: Option<&SrPolicyPath>, fx: &mut Effects) -> BTreeSet<Slot> {
        let (candidate, flaw) = match path.map(SrCandidate::new) {
            Some(Ok(candidate)) => (Some(candidate), None),
            Some(Err(flaw)) => (None, Some(flaw.to_string())),
            None => (None, None),
        };
        let policies = &mut self.facts.policies;
        let slots = policies.put(key, candidate.clone());
        let taken = candidate.and_then(|candidate| {
            let bsid = candidate.bsid;
            Some(match policies.taken(&key, &candidate)? {
                Taken::ByUs => format!("its binding SID {bsid} is a SID of this node"),
                Taken::By(Slot { endpoint, behavior }) => {
                    format!("its binding SID {bsid} is that of the policy of {behavior} to {endpoint}")
                }
            })
        });
        let object = || ObjectRef::new("SRPolicy", key.to_string());
        let unusable = |why: String| Condition::warning(object(), "", format!("it is not used: {why}"), "");
        let conditions = flaw.or(taken).map(unusable).into_iter().collect();
        fx.conditions(Origin::Connectivity, format!("SRPolicy {key}"), conditions);
        slots
    }

    /// These slots have another active candidate: what leads to their nodes is looked at again.
    fn policies_changed(&mut self, slots: &BTreeSet<Slot>, fx: &mut Effects) {
        let ways = slots.iter().filter_map(|slot| self.by_hop.get(&slot.endpoint.into()));
        let ways: BTreeSet<WayId> = ways.flatten().copied().collect();
        self.ask_again(ways, fx);
    }

    /// Something changed that these ways depend on.
    fn ask_again(&mut self, ways: BTreeSet<WayId>, fx: &mut Effects) {
        let changed: BTreeSet<WayId> = ways.into_iter().filter(|id| self.ask(*id, fx)).collect();
        if changed.is_empty() {
            return;
        }
        let mut members = Vec::new();
        for (table, destinations) in &self.destinations {
            for (prefix, way) in destinations.iter() {
                if changed.contains(way) {
                    self.want(RouteKey { table: *table, prefix }, *way, fx);
                    members.push((*way, prefix));
                }
            }
        }
        self.fill(members);
    }

    /// Destinations of ways that may have begun to keep them.
    fn fill(&mut self, members: Vec<(WayId, IpNet)>) {
        for (way, prefix) in members {
            if let Some(Some(way)) = self.ways.get_mut(way.0 as usize)
                && let Some(members) = &mut way.members
            {
                members.insert(prefix);
            }
        }
    }

    fn open_if_known(&mut self, fx: &mut Effects) {
        let known = self.nodes_known && self.pools_known && self.configs_known && self.felix_known;
        if self.open || !known || self.facts.own().is_none() {
            return;
        }
        self.open = true;
        let ids: Vec<WayId> = self.by_hops.values().copied().collect();
        for id in ids {
            self.ask(id, fx);
        }
        let mut members = Vec::new();
        for key in self.keys() {
            if let Some(way) = self.destinations.get(&key.table).and_then(|table| table.get(&key.prefix)) {
                self.want(key, *way, fx);
                members.push((*way, key.prefix));
            }
        }
        self.fill(members);
    }

    fn keys(&self) -> Vec<RouteKey> {
        let tables = self.destinations.iter();
        tables
            .flat_map(|(table, all)| all.iter().map(|(prefix, _)| RouteKey { table: *table, prefix }))
            .collect()
    }

    /// How the traffic of a destination is carried, and what VPP needs for that beside the route itself.
    pub(crate) fn explain(&self, key: &RouteKey) -> Option<(Carried, Vec<VppKey>)> {
        let way = self.at(*self.destinations.get(&key.table)?.get(&key.prefix)?)?;
        let covering = self.carriages.covering(&key.prefix, &self.lengths).map(|(outer, _)| outer);
        let of = |outer: IpNet| self.pools.iter().find(|(_, pool)| pool.cidr == outer).map(|(name, _)| name);
        let pool = covering.and_then(|outer| Some((of(outer)?.clone(), outer)));
        let hops = way.hops.iter().map(|hop| {
            let (address, weight) = (hop.address, hop.weight);
            let none =
                |reason: &str| CarriedHop { address, weight, provider: None, reason: reason.to_owned() };
            if !self.open || self.facts.own().is_none() {
                return none("this node's object and the pools are not known yet");
            }
            let Choice { kind, why, unencrypted: _ } = match select(way.carriage, hop.address, &self.facts) {
                Ok(choice) => choice,
                Err(reason) => return none(reason),
            };
            let Some(provider) = provider(kind) else { return none(NO_PROVIDER) };
            match provider.desired(*hop, way.carriage, &self.facts, &mut DesiredSet::default()) {
                Ok(()) => CarriedHop { provider: Some(provider.name()), reason: why.to_owned(), ..none("") },
                Err(problem) => none(&condition(&self.me, problem).reason),
            }
        });
        let carried = Carried { pool: pool.clone(), hops: hops.collect() };
        let steering = matches!(way.through, Some(Through::Policy(_))).then(|| ObjectKey::SrSteering(*key));
        let peers =
            way.hops.iter().filter(|_| way.members.is_some()).filter_map(|hop| self.peers.of(hop.address));
        let objects = way.wishes.objects.keys().copied().chain(peers).chain(steering).map(VppKey::Object);
        Some((carried, objects.chain(way.wishes.routes.keys().copied().map(VppKey::Route)).collect()))
    }

    /// Looks again at every destination inside these prefixes.
    fn carriage_changed(&mut self, inside: &BTreeSet<IpNet>, fx: &mut Effects) {
        for outer in inside {
            let keys: Vec<RouteKey> = self
                .destinations
                .iter()
                .flat_map(|(table, all)| {
                    all.inside(outer).into_iter().map(|prefix| RouteKey { table: *table, prefix })
                })
                .collect();
            for key in keys {
                let way = self.destinations.get(&key.table).and_then(|table| table.get(&key.prefix));
                if let Some(hops) = way.and_then(|way| self.at(*way)).map(|way| Arc::clone(&way.hops)) {
                    self.put(key, &hops, fx);
                }
            }
        }
    }

    /// Says what makes no sense about the pools.
    fn judge_pools(&self, fx: &mut Effects) {
        let of_pool = |(name, pool)| {
            let in_clear = wireguard::left_out(name, pool, &self.facts);
            pool_conditions(name, pool).into_iter().chain(in_clear)
        };
        fx.conditions(Origin::Connectivity, "pools", self.pools.iter().flat_map(of_pool).collect());
    }

    /// Rebuilds the carriage of each pool's prefix; where two pools have the same, the first name counts.
    fn pools_changed(&mut self, fx: &mut Effects) {
        let mut carriages = PrefixMap::default();
        for pool in self.pools.values().rev() {
            carriages.insert(pool.cidr, Carriage::of(pool));
        }
        let mut changed = BTreeSet::new();
        for (prefix, carriage) in carriages.iter() {
            if self.carriages.get(&prefix) != Some(carriage) {
                changed.insert(prefix);
            }
        }
        for (prefix, _) in self.carriages.iter() {
            if carriages.get(&prefix).is_none() {
                changed.insert(prefix);
            }
        }
        self.lengths = carriages.lengths();
        self.carriages = carriages;
        self.carriage_changed(&changed, fx);
    }
}

/// The prefixes that are in one map only.
fn difference(one: &PrefixMap<()>, other: &PrefixMap<()>) -> BTreeSet<IpNet> {
    let only = |of: &PrefixMap<()>, not: &PrefixMap<()>| {
        of.iter()
            .map(|(prefix, ())| prefix)
            .filter(|prefix| not.get(prefix).is_none())
            .collect::<BTreeSet<_>>()
    };
    &only(one, other) | &only(other, one)
}

/// What the traffic of a pool needs that this release has not got.
const NO_PROVIDER: &str = "no provider of this release can do the pool's encapsulation";

/// Everything that must exist for a set of next hops.
fn desired(carriage: Carriage, hops: &[Hop], facts: &Facts) -> Result<DesiredSet, Unserved> {
    if matches!(carriage, Carriage::Steered { .. })
        && let Some(set) = steered(carriage, hops, facts)?
    {
        return Ok(set);
    }
    let mut set = DesiredSet::default();
    for hop in hops {
        let choice = select(carriage, hop.address, facts);
        // The pool's own condition says so.
        let Some(provider) = choice.ok().and_then(|choice| provider(choice.kind)) else {
            return Ok(DesiredSet::default());
        };
        provider.desired(*hop, carriage, facts, &mut set)?;
    }
    // What one next hop must not have, another one may.
    if set.paths.iter().any(|path| path.to != Target::Drop) {
        set.paths.retain(|path| path.to != Target::Drop);
    }
    Ok(set)
}

/// Of several next hops one carries everything, as VPP steers a prefix into one policy: of those to which a policy leads the
/// one with the greatest weight, then the first. `None` where no policy is asked for.
fn steered(carriage: Carriage, hops: &[Hop], facts: &Facts) -> Result<Option<DesiredSet>, Unserved> {
    let srv6 =
        |hop: &&Hop| select(carriage, hop.address, facts).is_ok_and(|choice| choice.kind == Kind::Srv6);
    let mut of_weight: Vec<&Hop> = hops.iter().filter(srv6).collect();
    of_weight.sort_by_key(|hop| std::cmp::Reverse(hop.weight));
    let mut problem = None;
    for hop in &of_weight {
        let mut set = DesiredSet::default();
        match provider(Kind::Srv6).map(|provider| provider.desired(**hop, carriage, facts, &mut set)) {
            Some(Ok(())) => return Ok(Some(set)),
            Some(Err(unserved)) => drop(problem.get_or_insert(unserved)),
            None => {}
        }
    }
    // The others can have it as it is.
    match problem {
        Some(problem) if of_weight.len() == hops.len() => Err(problem),
        Some(_) | None => Ok(None),
    }
}

/// What a node has to change so that a way can be used.
fn condition(me: &NodeName, problem: Unserved) -> Condition {
    match problem {
        Unserved::NoLocalAddress(hop) => {
            let family = if hop.is_ipv4() { "IPv4" } else { "IPv6" };
            Condition::error(
                ObjectRef::new("Node", me.as_str()),
                &format!("metadata.annotations.projectcalico.org/{family}Address"),
                format!("no {family} address to tunnel from, so nothing behind {hop} is reached"),
                format!("set the annotation to this node's {family} address and subnet length"),
            )
        }
        Unserved::NoLocalKey(hop) => wireguard::keyless(me, hop.is_ipv4()),
        Unserved::NoLocalIpv4(hop) => Condition::error(
            ObjectRef::new("Node", me.as_str()),
            "metadata.annotations.projectcalico.org/IPv4Address",
            format!("no IPv4 address, which IPsec tunnels need, so nothing behind {hop} is reached"),
            "set the annotation to this node's IPv4 address and subnet length, or turn features.ipsec off",
        ),
        Unserved::NoRemoteIpv4(hop) => Condition::error(
            ObjectRef::new("next hop", hop.to_string()),
            "",
            "IPsec tunnels need an IPv4 address, and no node that has one has this address",
            "give the node of this address an IPv4 address too, or turn features.ipsec off",
        ),
        Unserved::NoPreSharedKey => Condition::error(
            ObjectRef::new("setting", "ipsec.psk"),
            "",
            "features.ipsec is on and there is no key, so nothing is reached for which pools want IPIP",
            "set ipsec.psk, or CALICOVPP_IPSEC_IKEV2_PSK from a Secret, to the key that all nodes share",
        ),
        Unserved::PolicyMissing(hop) => Condition::error(
            ObjectRef::new("SRPolicy", hop.to_string()),
            "",
            format!("no SR policy that can be used leads to {hop}, so nothing behind it is reached"),
            "see that the node announces its SIDs, or that SRv6 is on there, too",
        ),
    }
}

/// What makes no sense about a pool, as far as carrying traffic goes.
fn pool_conditions(name: &PoolName, pool: &Pool) -> Vec<Condition> {
    let object = || ObjectRef::new("IPPool", name.as_str());
    let (ipip, vxlan) = (pool.ipip != Encapsulation::Never, pool.vxlan != Encapsulation::Never);
    let mut conditions = Vec::new();
    if ipip && vxlan {
        conditions.push(Condition::warning(
            object(),
            "spec.vxlanMode",
            "ipipMode and vxlanMode exclude each other; IPIP is used",
            "set one of them to Never",
        ));
    }
    if ipip && matches!(pool.cidr, IpNet::V6(_)) {
        conditions.push(Condition::warning(
            object(),
            "spec.ipipMode",
            "IPIP is meant for IPv4 pools; other nodes may not agree to it",
            "set ipipMode to Never",
        ));
    }
    conditions
}

fn subject(way: &Way) -> String {
    let hops: Vec<String> = way.hops.iter().map(|hop| hop.address.to_string()).collect();
    format!("{:?} {}", way.carriage, hops.join(" "))
}

impl Handler<Change<RouteKey, Connectivity>> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Change<RouteKey, Connectivity>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                let listed: BTreeSet<&RouteKey> = all.iter().map(|(key, _)| key).collect();
                for key in self.keys() {
                    if !listed.contains(&key) {
                        self.delete(key, fx);
                    }
                }
                for (key, connectivity) in all {
                    self.put(*key, &connectivity.hops, fx);
                }
            }
            Change::Upsert(key, connectivity) => self.put(*key, &connectivity.hops, fx),
            Change::Delete(key) => self.delete(*key, fx),
        }
    }
}

impl Handler<Change<SrKey, SrPolicyPath>> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Change<SrKey, SrPolicyPath>, fx: &mut Effects) {
        let mut slots = BTreeSet::new();
        match event {
            Change::Resync(all) => {
                let listed: BTreeSet<&SrKey> = all.iter().map(|(key, _)| key).collect();
                let gone = self.facts.policies.candidates().map(|(key, _)| *key);
                for key in gone.filter(|key| !listed.contains(key)).collect::<Vec<_>>() {
                    slots.extend(self.put_policy(key, None, fx));
                }
                for (key, path) in all {
                    slots.extend(self.put_policy(*key, Some(path), fx));
                }
            }
            Change::Upsert(key, path) => slots.extend(self.put_policy(*key, Some(path), fx)),
            Change::Delete(key) => slots.extend(self.put_policy(*key, None, fx)),
        }
        self.policies_changed(&slots, fx);
    }
}

impl Handler<Sids> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Sids, fx: &mut Effects) {
        let own = SrBehavior::ALL.map(|behavior| event.of(behavior).sid);
        let slots = self.facts.policies.set_own(own.into());
        self.policies_changed(&slots, fx);
    }
}

impl Handler<Change<NodeName, Node>> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Change<NodeName, Node>, fx: &mut Effects) {
        self.nodes_known |= matches!(event, Change::Resync(_));
        let changed = self.facts.nodes_changed(event);
        self.territory(fx);
        self.nodes_changed(&changed, fx);
    }
}

impl Handler<Change<PoolName, Pool>> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Change<PoolName, Pool>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                self.pools_known = true;
                self.pools = all.iter().cloned().collect();
            }
            Change::Upsert(name, pool) => {
                self.pools.insert(name.clone(), pool.clone());
            }
            Change::Delete(name) => {
                self.pools.remove(name);
            }
        }
        self.territory(fx);
        self.judge_pools(fx);
        self.pools_changed(fx);
        self.open_if_known(fx);
    }
}

impl Handler<Change<BgpConfigName, BgpConfig>> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Change<BgpConfigName, BgpConfig>, fx: &mut Effects) {
        let default = match event {
            Change::Resync(all) => {
                self.configs_known = true;
                all.iter().find(|(name, _)| *name == BgpConfigName::Default).map(|(_, config)| config)
            }
            Change::Upsert(BgpConfigName::Default, config) => Some(config),
            Change::Delete(BgpConfigName::Default) => None,
            Change::Upsert(..) | Change::Delete(_) => return,
        };
        let mut services = PrefixMap::default();
        for range in default.into_iter().flat_map(|config| config.services.all()) {
            services.insert(range.trunc(), ());
        }
        let changed = difference(&self.services, &services);
        self.service_lengths = services.lengths();
        self.services = services;
        self.carriage_changed(&changed, fx);
        self.open_if_known(fx);
    }
}

impl Handler<Change<FelixConfigName, FelixConfig>> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Change<FelixConfigName, FelixConfig>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                self.felix_known = true;
                self.felix_configs = all.iter().cloned().collect();
            }
            Change::Upsert(name, config) => {
                self.felix_configs.insert(name.clone(), config.clone());
            }
            Change::Delete(name) => {
                self.felix_configs.remove(name);
            }
        }
        let of = |name: &FelixConfigName| self.felix_configs.get(name).cloned().unwrap_or_default();
        let felix = of(&FelixConfigName::Node(self.me.clone())).or(&of(&FelixConfigName::Default));
        let changed = std::mem::replace(&mut self.facts.felix, felix) != self.facts.felix;
        if changed {
            self.judge_networks(fx);
            self.judge_pools(fx);
            self.judge_keys(fx);
        }
        if changed && self.open {
            self.ask_again(self.by_hops.values().copied().collect(), fx);
        }
        self.open_if_known(fx);
    }
}

#[cfg(test)]
mod tests;
