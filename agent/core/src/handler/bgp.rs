//! Policies from filters, pools and settings; best paths to connectivity.
//!
//! A session's import is its filters, then everything. Its export is its filters, then Calico's built-in rules (`table.rs`);
//! each filter is a policy for each direction (`filter.rs`) that all sessions share which name it. The sets that the
//! built-in rules read belong to whoever knows their members: blocks to `routing`, addresses of services to this handler.
//! They and the policies exist before the first peer does.
//!
//! Sessions whose neighbours take this node for the next hop have one more policy in front of all: while VPP can't forward
//! it lets nothing out, as traffic for what this node has from elsewhere would die here too.

mod filter;
mod interface;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use bgp_core::policy::{Default as Otherwise, Flow, PolicyDef, PolicyName, StatementDef};
use bgp_core::rib::{NextHopSet, RibChange, RibEvent, SrPolicyPath, WeightedNextHop};
use bgp_core::time::Instant;
use bgp_core::{Family, NextHop, Nlri, RouteDistinguisher, SrPolicy6};
use ipnet::IpNet;

use super::Handler;
use crate::config::Config;
use crate::desired::{BgpKey, BgpObject, PrefixMap};
use crate::effects::{BgpEdit, Effects, Origin};
use crate::event::{Change, Event};
use crate::model::{
    BgpConfig, BgpConfigName, Condition, Connectivity, Direction, Filter, FilterName, Glob, Hop, Node,
    NodeName, ObjectRef, Pool, PoolName, RouteKey, SrKey, TableId, Vni,
};
use filter::Context;
use interface::Interfaces;
use table::{Table, service_set};

pub use filter::filter_of;
pub(super) use filter::policy_name;
pub(super) use table::own_sets;

/// Name of the policy with Calico's built-in rules, the last of every session.
pub(crate) const EXPORT_POLICY: &str = "calico-export";
/// Name of the policy that comes first on sessions on which this node names itself the next hop.
pub(crate) const THROUGH_POLICY: &str = "calico-export-through";

/// See the module's text.
#[derive(Debug)]
pub(crate) struct BgpHandler {
    me: NodeName,
    /// Names of the uplink, where the settings have them.
    uplink: Vec<Arc<str>>,
    pools: BTreeMap<PoolName, Pool>,
    filters: BTreeMap<FilterName, Filter>,
    node: Option<Node>,
    /// The cluster's settings, and our node's own.
    configs: BTreeMap<BgpConfigName, BgpConfig>,
    interfaces: Interfaces,
    /// The first complete list of pools has come, so the policies may be told.
    pools_known: bool,
    /// VPP can carry the traffic that this node attracts.
    carries: bool,
    /// Segment routing over IPv6 is on.
    srv6: bool,
    /// What has been told since the change stream started anew; `None` when it is not doing that.
    replay: Option<Replay>,
    /// Where destinations of networks are reached, by what announces them: several distinguishers may mean one network, of which the
    /// first counts.
    networks: BTreeMap<RouteKey, BTreeMap<RouteDistinguisher, Arc<[Hop]>>>,
    /// The last set of next hops and its form here: neighbouring changes mostly have the same.
    last: Option<(NextHopSet, Arc<[Hop]>)>,
}

/// What the change stream has told since it started anew.
#[derive(Debug, Default)]
struct Replay {
    routes: PrefixMap<Arc<[Hop]>>,
    policies: BTreeMap<SrKey, SrPolicyPath>,
}

impl BgpHandler {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            me: config.node.clone(),
            uplink: config.uplink_names.clone(),
            pools: BTreeMap::new(),
            filters: BTreeMap::new(),
            node: None,
            configs: BTreeMap::new(),
            interfaces: Interfaces::default(),
            pools_known: false,
            carries: false,
            srv6: config.srv6.is_some(),
            replay: None,
            networks: BTreeMap::new(),
            last: None,
        }
    }

    /// From now on VPP can, or can't, carry the traffic that this node attracts.
    pub(crate) fn carry(&mut self, carries: bool, fx: &mut Effects) {
        self.carries = carries;
        if self.pools_known {
            self.gate(fx);
        }
    }

    /// Tells all policies. Those that are as they were cost a comparison.
    fn policies(&mut self, fx: &mut Effects) {
        if !self.pools_known {
            return;
        }
        self.interfaces = Interfaces::new(&self.uplink, self.node.as_ref(), self.pools.values());
        self.gate(fx);
        self.table(fx);
        for name in self.filters.keys() {
            self.filter(name, fx);
        }
    }

    fn gate(&self, fx: &mut Effects) {
        let shut = StatementDef::new(Vec::new(), Vec::new(), Flow::Reject)
            .labelled("built-in: VPP cannot forward, and the neighbour would send traffic here");
        let statements = if self.carries { Vec::new() } else { vec![shut] };
        put(PolicyName::new(THROUGH_POLICY), PolicyDef { statements, default: Otherwise::Next }, fx);
    }

    fn table(&self, fx: &mut Effects) {
        let unset = BgpConfig::default();
        let own = BgpConfigName::Node(self.me.clone());
        // The node's own list is in the place of the cluster's, however short it is.
        let advertisements = [own, BgpConfigName::Default].into_iter().find_map(|name| {
            let entries = self.configs.get(&name)?.prefix_advertisements.as_deref()?;
            Some((name, entries))
        });
        let table = Table {
            pools: self.pools.iter().collect(),
            cluster: self.configs.get(&BgpConfigName::Default).unwrap_or(&unset),
            advertisements,
            srv6: self.srv6,
            reflector: self.node.as_ref().is_some_and(|node| node.cluster_id.is_some()),
        };
        put(PolicyName::new(EXPORT_POLICY), table.policy(), fx);
    }

    /// What a filter comes to among all else that is known, whether or not it is one of those in force.
    pub(crate) fn compiled(&self, name: &FilterName, filter: &Filter) -> [(PolicyName, PolicyDef); 2] {
        let unset = BgpConfig::default();
        let cluster = self.configs.get(&BgpConfigName::Default).unwrap_or(&unset);
        let context = Context { cluster, interfaces: &self.interfaces };
        [Direction::Import, Direction::Export]
            .map(|direction| (policy_name(name, direction), filter::policy(name, filter, direction, context)))
    }

    fn filter(&self, name: &FilterName, fx: &mut Effects) {
        let Some(filter) = self.filters.get(name).filter(|_| self.pools_known) else { return };
        for (policy, definition) in self.compiled(name, filter) {
            put(policy, definition, fx);
        }
        fx.conditions(Origin::Bgp, format!("BGPFilter {name}"), self.doubts(name, filter));
    }

    /// What in a filter cannot be meant on this node.
    fn doubts(&self, name: &FilterName, filter: &Filter) -> Vec<Condition> {
        let mut found = Vec::new();
        for family in Family::UNICAST {
            for direction in [Direction::Import, Direction::Export] {
                for rule in filter.rules(direction, family) {
                    let unknown = |glob: &&Glob| self.interfaces.unknown(glob);
                    let Some(glob) = rule.interface.as_ref().filter(unknown) else { continue };
                    let list = Filter::list(direction, family);
                    found.push(Condition::warning(
                        ObjectRef::new("BGPFilter", name.as_str()),
                        &format!("spec.{list}[{}].interface", rule.number - 1),
                        format!(
                            "{list} rule {} is about the interface {}, and the name of this node's uplink is not known",
                            rule.number,
                            glob.as_str()
                        ),
                        "set vpp.uplink in the agent's settings, or name a tunnel device",
                    ));
                }
            }
        }
        found
    }

    fn change(&mut self, change: &RibChange, fx: &mut Effects) {
        if let Nlri::SrPolicy6(policy) = change.nlri {
            let SrPolicy6 { distinguisher, color, endpoint } = policy;
            let path = change.sr_policy.as_deref().filter(|_| !change.local);
            self.policy(SrKey { endpoint, color, distinguisher }, path, fx);
            return;
        }
        let reached = change.best.is_some() && !change.local;
        let of_network = match change.nlri {
            Nlri::VpnV4(vpn) => Some((vpn.rd, IpNet::V4(vpn.prefix.into()))),
            Nlri::VpnV6(vpn) => Some((vpn.rd, IpNet::V6(vpn.prefix.into()))),
            Nlri::V4(_) | Nlri::V6(_) | Nlri::SrPolicy4(_) | Nlri::SrPolicy6(_) => None,
        };
        if let Some((distinguisher, prefix)) = of_network {
            let hops = if reached { self.hops(&change.hops) } else { Arc::from([]) };
            self.network(distinguisher, prefix, hops, fx);
            return;
        }
        let Some(prefix) = change.nlri.unicast() else { return };
        let key = RouteKey { table: TableId::MAIN, prefix };
        let hops = reached.then(|| self.hops(&change.hops)).filter(|hops| !hops.is_empty());
        match (&mut self.replay, hops) {
            (Some(told), None) => {
                told.routes.remove(&key.prefix);
            }
            (Some(told), Some(hops)) => {
                told.routes.insert(key.prefix, hops);
            }
            (None, None) => fx.then.push_back(Event::Connectivity(Change::Delete(key))),
            (None, Some(hops)) => {
                fx.then.push_back(Event::Connectivity(Change::Upsert(key, Connectivity { hops })));
            }
        }
    }

    /// A destination of a network, whose number the distinguisher has; of one that has none nothing can be made.
    fn network(&mut self, of: RouteDistinguisher, prefix: IpNet, hops: Arc<[Hop]>, fx: &mut Effects) {
        let Some(vni) = Vni::of_route(of) else { return };
        let key = RouteKey { table: TableId::of_network(vni), prefix };
        let by_distinguisher = self.networks.entry(key).or_default();
        if hops.is_empty() {
            by_distinguisher.remove(&of);
        } else {
            by_distinguisher.insert(of, hops);
        }
        let first = by_distinguisher.first_key_value().map(|(_, hops)| Arc::clone(hops));
        if first.is_none() {
            self.networks.remove(&key);
        }
        if self.replay.is_none() {
            fx.then.push_back(Event::Connectivity(match first {
                Some(hops) => Change::Upsert(key, Connectivity { hops }),
                None => Change::Delete(key),
            }));
        }
    }

    fn policy(&mut self, key: SrKey, path: Option<&SrPolicyPath>, fx: &mut Effects) {
        match (&mut self.replay, path) {
            (Some(told), Some(path)) => {
                told.policies.insert(key, path.clone());
            }
            (Some(told), None) => {
                told.policies.remove(&key);
            }
            (None, Some(path)) => {
                fx.then.push_back(Event::SrPolicy(Change::Upsert(key, path.clone())));
            }
            (None, None) => fx.then.push_back(Event::SrPolicy(Change::Delete(key))),
        }
    }

    fn hops(&mut self, set: &NextHopSet) -> Arc<[Hop]> {
        if let Some((last, hops)) = &self.last
            && last == set
        {
            return Arc::clone(hops);
        }
        let hop = |member: &WeightedNextHop| {
            let address = match member.next_hop {
                NextHop::V4(address) => address.into(),
                // The link-local one says nothing without its interface, which is not ours: VPP resolves the global.
                NextHop::V6 { global, .. } => global.into(),
            };
            Hop { address, weight: member.weight }
        };
        let mut hops: Vec<Hop> = set.members().iter().map(hop).collect();
        hops.sort_unstable();
        hops.dedup_by(|next, kept| {
            let same = next.address == kept.address;
            kept.weight = if same { kept.weight.saturating_add(next.weight) } else { kept.weight };
            same
        });
        let hops: Arc<[Hop]> = hops.into();
        self.last = Some((set.clone(), Arc::clone(&hops)));
        hops
    }
}

impl Handler<Change<PoolName, Pool>> for BgpHandler {
    fn on(&mut self, _now: Instant, event: &Change<PoolName, Pool>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                if !std::mem::replace(&mut self.pools_known, true) {
                    // The sets exist from now on; nobody announces services yet.
                    fx.bgp.extend(Family::UNICAST.map(|of| BgpEdit::Put(service_set(of, &[]))));
                }
                self.pools = all.iter().cloned().collect();
            }
            Change::Upsert(name, pool) => {
                self.pools.insert(name.clone(), pool.clone());
            }
            Change::Delete(name) => {
                self.pools.remove(name);
            }
        }
        self.policies(fx);
    }
}

impl Handler<Change<FilterName, Filter>> for BgpHandler {
    fn on(&mut self, _now: Instant, event: &Change<FilterName, Filter>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                let before = std::mem::replace(&mut self.filters, all.iter().cloned().collect());
                for name in before.keys().filter(|name| !self.filters.contains_key(*name)) {
                    forget(name, fx);
                }
                for name in self.filters.keys() {
                    self.filter(name, fx);
                }
            }
            Change::Upsert(name, filter) => {
                self.filters.insert(name.clone(), filter.clone());
                self.filter(name, fx);
            }
            Change::Delete(name) => {
                self.filters.remove(name);
                forget(name, fx);
            }
        }
    }
}

impl Handler<Change<NodeName, Node>> for BgpHandler {
    fn on(&mut self, _now: Instant, event: &Change<NodeName, Node>, fx: &mut Effects) {
        let node = match event {
            Change::Resync(all) => {
                all.iter().find(|(name, _)| *name == self.me).map(|(_, node)| node.clone())
            }
            Change::Upsert(name, node) if *name == self.me => Some(node.clone()),
            Change::Delete(name) if *name == self.me => None,
            Change::Upsert(..) | Change::Delete(_) => return,
        };
        if self.node != node {
            self.node = node;
            self.policies(fx);
        }
    }
}

impl Handler<Change<BgpConfigName, BgpConfig>> for BgpHandler {
    fn on(&mut self, _now: Instant, event: &Change<BgpConfigName, BgpConfig>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => self.configs = all.iter().cloned().collect(),
            Change::Upsert(name, config) => {
                self.configs.insert(name.clone(), config.clone());
            }
            Change::Delete(name) => {
                self.configs.remove(name);
            }
        }
        self.policies(fx);
    }
}

impl Handler<RibEvent> for BgpHandler {
    fn on(&mut self, _now: Instant, event: &RibEvent, fx: &mut Effects) {
        match event {
            RibEvent::Resync => {
                self.replay = Some(Replay::default());
                self.networks.clear();
            }
            RibEvent::Change(change) => self.change(change, fx),
            RibEvent::Replayed => {
                let Some(told) = self.replay.take() else { return };
                let route = |(prefix, hops): (IpNet, &Arc<[Hop]>)| {
                    (RouteKey { table: TableId::MAIN, prefix }, Connectivity { hops: Arc::clone(hops) })
                };
                let of_network = |(key, all): (&RouteKey, &BTreeMap<RouteDistinguisher, Arc<[Hop]>>)| {
                    let hops = Arc::clone(all.first_key_value()?.1);
                    Some((*key, Connectivity { hops }))
                };
                let networks = self.networks.iter().filter_map(of_network);
                let all = told.routes.iter().map(route).chain(networks).collect();
                // Policies first, so that no destination is looked at before what carries its traffic is known.
                if self.srv6 {
                    let policies = told.policies.into_iter().collect();
                    fx.then.push_back(Event::SrPolicy(Change::Resync(policies)));
                }
                fx.then.push_back(Event::Connectivity(Change::Resync(all)));
            }
            // The engine counts it towards being in sync.
            RibEvent::Converged(_) => {}
        }
    }
}

fn put(name: PolicyName, policy: PolicyDef, fx: &mut Effects) {
    fx.bgp.push(BgpEdit::Put(BgpObject::Policy(name, policy)));
}

/// A filter is no more: sessions that name it have been told to do without by the time its policies go.
fn forget(name: &FilterName, fx: &mut Effects) {
    for direction in [Direction::Import, Direction::Export] {
        fx.bgp.push(BgpEdit::Delete(BgpKey::Policy(policy_name(name, direction))));
    }
    fx.conditions(Origin::Bgp, format!("BGPFilter {name}"), Vec::new());
}

#[cfg(test)]
mod tests;
