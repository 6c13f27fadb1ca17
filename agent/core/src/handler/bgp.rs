//! Export policy from pools and blocks; best paths to connectivity.
//!
//! The built-in export rule, in this order: nothing inside a pool that forbids it; own blocks; nothing else inside own
//! blocks, so no host routes; whatever is inside a pool; nothing else, so that this node is no transit between its
//! neighbours. The sets that the policy reads belong to whoever knows their members: blocks to `routing`, pools to
//! this handler. They and the policy exist before the first peer does.
//!
//! Sessions whose neighbours take this node for the next hop have a policy of their own: while VPP can't forward it lets
//! nothing out, as traffic for what this node has from elsewhere would die here too.

use std::collections::BTreeMap;
use std::sync::Arc;

use bgp_core::policy::{
    Condition, Default as Otherwise, Flow, PolicyDef, PolicyName, PrefixRange, SetName, StatementDef,
};
use bgp_core::rib::{NextHopSet, RibChange, RibEvent, WeightedNextHop};
use bgp_core::time::Instant;
use bgp_core::{Family, NextHop};
use ipnet::IpNet;

use super::Handler;
use crate::desired::{BgpObject, PrefixMap};
use crate::effects::{BgpEdit, Effects};
use crate::event::{Change, Event};
use crate::model::{Connectivity, Hop, Pool, PoolName, RouteKey, TableId};
use crate::plan::family;

/// Name of the policy of sessions that keep next hops: what VPP does is all the same to what is learned.
pub(crate) const EXPORT_POLICY: &str = "calico-export";
/// Name of the policy of sessions on which this node names itself the next hop.
pub(crate) const THROUGH_POLICY: &str = "calico-export-through";

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct BgpHandler {
    pools: BTreeMap<PoolName, Pool>,
    /// The first complete list of pools has come, so the policies may be told.
    pools_known: bool,
    /// VPP can carry the traffic that this node attracts.
    carries: bool,
    /// What has been told since the change stream started anew; `None` when it is not doing that.
    replay: Option<PrefixMap<Arc<[Hop]>>>,
    /// The last set of next hops and its form here: neighbouring changes mostly have the same.
    last: Option<(NextHopSet, Arc<[Hop]>)>,
}

impl BgpHandler {
    /// From now on VPP can, or can't, carry the traffic that this node attracts.
    pub(crate) fn carry(&mut self, carries: bool, fx: &mut Effects) {
        self.carries = carries;
        if self.pools_known {
            self.policies(fx);
        }
    }

    fn policies(&self, fx: &mut Effects) {
        let none = || PolicyDef { statements: Vec::new(), default: Otherwise::Reject };
        let through = if self.carries { export_policy() } else { none() };
        for (name, policy) in [(EXPORT_POLICY, export_policy()), (THROUGH_POLICY, through)] {
            fx.bgp.push(BgpEdit::Put(BgpObject::Policy(PolicyName::new(name), policy)));
        }
    }

    fn pool_sets(&self, fx: &mut Effects) {
        for of in Family::UNICAST {
            for (prefix, forbids) in [("pools", false), ("no-export", true)] {
                let members = self
                    .pools
                    .values()
                    .filter(|pool| family(&pool.cidr) == of && pool.disable_bgp_export == forbids);
                let members = members.map(|pool| PrefixRange::or_longer(pool.cidr)).collect();
                fx.bgp.push(BgpEdit::Put(BgpObject::PrefixSet(set_name(prefix, of), members)));
            }
        }
    }

    fn change(&mut self, change: &RibChange, fx: &mut Effects) {
        let Some(prefix) = change.nlri.unicast() else { return };
        let key = RouteKey { table: TableId::MAIN, prefix };
        let reached = change.best.is_some() && !change.local;
        let hops = if reached { self.hops(&change.hops) } else { Arc::from([]) };
        match &mut self.replay {
            Some(told) if hops.is_empty() => {
                told.remove(&key.prefix);
            }
            Some(told) => {
                told.insert(key.prefix, hops);
            }
            None if hops.is_empty() => fx.then.push_back(Event::Connectivity(Change::Delete(key))),
            None => fx.then.push_back(Event::Connectivity(Change::Upsert(key, Connectivity { hops }))),
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
        self.pool_sets(fx);
        self.policies(fx);
    }
}

impl Handler<RibEvent> for BgpHandler {
    fn on(&mut self, _now: Instant, event: &RibEvent, fx: &mut Effects) {
        match event {
            RibEvent::Resync => self.replay = Some(PrefixMap::default()),
            RibEvent::Change(change) => self.change(change, fx),
            RibEvent::Replayed => {
                let Some(told) = self.replay.take() else { return };
                let route = |(prefix, hops): (IpNet, &Arc<[Hop]>)| {
                    (RouteKey { table: TableId::MAIN, prefix }, Connectivity { hops: Arc::clone(hops) })
                };
                let all = told.iter().map(route).collect();
                fx.then.push_back(Event::Connectivity(Change::Resync(all)));
            }
            // The engine counts it towards being in sync.
            RibEvent::Converged(_) => {}
        }
    }
}

fn export_policy() -> PolicyDef {
    let rules = [
        ("no-export", Flow::Reject),
        ("aggregated", Flow::Accept),
        ("host", Flow::Reject),
        ("pools", Flow::Accept),
    ];
    let statements = rules.into_iter().flat_map(|(set, then)| {
        Family::UNICAST
            .map(|of| StatementDef::new(vec![Condition::PrefixSet(set_name(set, of))], vec![], then.clone()))
    });
    PolicyDef { statements: statements.collect(), default: Otherwise::Reject }
}

fn set_name(prefix: &str, of: Family) -> SetName {
    SetName::new(&format!("{prefix}-{}", if of.is_ipv4() { "v4" } else { "v6" }))
}

/// The set of own blocks, which are announced.
pub(super) fn block_set(of: Family, blocks: &[IpNet]) -> BgpObject {
    let members = blocks.iter().map(|block| PrefixRange::exact(*block)).collect();
    BgpObject::PrefixSet(set_name("aggregated", of), members)
}

/// The set of everything inside own blocks, which is not.
pub(super) fn host_set(of: Family, blocks: &[IpNet]) -> BgpObject {
    let members = blocks.iter().map(|block| PrefixRange::or_longer(*block)).collect();
    BgpObject::PrefixSet(set_name("host", of), members)
}

#[cfg(test)]
mod tests;
