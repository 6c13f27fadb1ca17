//! Source NAT: the addresses that pods' traffic gets when it leaves the cluster, and the destinations that never see them.
//!
//! A destination is excluded as long as anybody claims it: our node and every other one for its addresses, a pool for its
//! prefix, whatever its own `natOutgoing` says, the services for theirs. Two may claim the same prefix, so claims are
//! counted by who makes them, and one that is taken back leaves the prefix to the others.
//!
//! VPP must be told in a certain order: addresses, exclusions, policy; some releases die of another one. The plan sees to
//! that (`plan/order.rs`). Nothing is wanted before all claims can be known: between a policy and an exclusion that comes
//! late, traffic between pods would be translated.
//!
//! Addresses and policy are never taken back, as VPP could only forget them together with everything that it was told of
//! single pods.
//!
//! *Absent on purpose:* interfaces of pods, which are the affair of who makes them.

use std::collections::{BTreeMap, BTreeSet};

use bgp_core::time::Instant;
use ipnet::IpNet;

use super::Handler;
use crate::config::Config;
use crate::desired::{ObjectKey, Owner, SnatAddresses, SnatTable, Spec};
use crate::effects::{Effects, VppEdit};
use crate::event::{Change, HostTaps, SwIfIndex};
use crate::model::{BgpConfig, BgpConfigName, Node, NodeName, Pool, PoolName};

/// Who wants a destination left alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claimant {
    /// A node, ours included.
    Node(NodeName),
    /// A pool.
    Pool(PoolName),
    /// The services.
    Services,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct SnatHandler {
    me: NodeName,
    /// Ranges of services from the settings.
    fixed: BTreeSet<IpNet>,
    addresses: SnatAddresses,
    /// Every claim, by who makes it.
    claims: BTreeMap<Claimant, BTreeSet<IpNet>>,
    /// How many claim each destination.
    excluded: BTreeMap<IpNet, u32>,
    taps: BTreeSet<SwIfIndex>,
    nodes_known: bool,
    pools_known: bool,
    configs_known: bool,
    /// Edits flow.
    open: bool,
}

impl SnatHandler {
    pub(crate) fn new(config: &Config) -> Self {
        let mut handler = Self {
            me: config.node.clone(),
            fixed: config.service_prefixes.iter().map(IpNet::trunc).collect(),
            addresses: SnatAddresses::default(),
            claims: BTreeMap::new(),
            excluded: BTreeMap::new(),
            taps: BTreeSet::new(),
            nodes_known: false,
            pools_known: false,
            configs_known: false,
            open: false,
        };
        handler.claim(Claimant::Services, handler.fixed.clone(), &mut Effects::default());
        handler
    }

    /// The claims of one claimant are these, and no others.
    fn claim(&mut self, claimant: Claimant, prefixes: BTreeSet<IpNet>, fx: &mut Effects) {
        let before = if prefixes.is_empty() {
            self.claims.remove(&claimant)
        } else {
            self.claims.insert(claimant, prefixes.clone())
        };
        let before = before.unwrap_or_default();
        for prefix in prefixes.difference(&before) {
            let claims = self.excluded.entry(*prefix).or_default();
            *claims += 1;
            if *claims == 1 && self.open {
                fx.vpp.push(VppEdit::Want(Owner::Host, ObjectKey::SnatExclusion(*prefix)));
            }
        }
        for prefix in before.difference(&prefixes) {
            let Some(claims) = self.excluded.get_mut(prefix) else { continue };
            *claims -= 1;
            if *claims == 0 {
                self.excluded.remove(prefix);
                if self.open {
                    fx.vpp.push(VppEdit::Release(Owner::Host, ObjectKey::SnatExclusion(*prefix)));
                }
            }
        }
    }

    /// Claimants of a kind that a complete list doesn't have any more.
    fn forget(&mut self, gone: impl Fn(&Claimant) -> bool, fx: &mut Effects) {
        let all: Vec<Claimant> = self.claims.keys().filter(|claimant| gone(claimant)).cloned().collect();
        for claimant in all {
            self.claim(claimant, BTreeSet::new(), fx);
        }
    }

    fn node(&mut self, name: &NodeName, node: &Node, fx: &mut Effects) {
        self.claim(Claimant::Node(name.clone()), node.addresses().map(IpNet::from).collect(), fx);
        if *name == self.me {
            let addresses = SnatAddresses {
                ipv4: node.ipv4.map(|net| net.addr()),
                ipv6: node.ipv6.map(|net| net.addr()),
            };
            // A node without addresses is one that is being changed: what VPP has stays.
            if addresses != SnatAddresses::default() && addresses != self.addresses {
                self.addresses = addresses;
                if self.open {
                    self.define(fx);
                }
            }
        }
    }

    fn define(&self, fx: &mut Effects) {
        fx.vpp.push(VppEdit::Define(ObjectKey::SnatAddresses, Spec::SnatAddresses(self.addresses)));
    }

    fn open_if_known(&mut self, fx: &mut Effects) {
        let known = self.nodes_known && self.pools_known && self.configs_known;
        if self.open || !known || self.addresses == SnatAddresses::default() {
            return;
        }
        self.open = true;
        self.define(fx);
        let exclusions = self.excluded.keys().map(|prefix| ObjectKey::SnatExclusion(*prefix));
        let taps = self.taps.iter().flat_map(|tap| on_tap(*tap));
        let all = [ObjectKey::SnatAddresses].into_iter().chain(exclusions).chain(taps);
        fx.vpp.extend(all.chain([ObjectKey::SnatPolicy]).map(|key| VppEdit::Want(Owner::Host, key)));
    }
}

/// What an interface to the host is to source NAT: one of the host, and, to traffic that comes from it, one of a pod.
const fn on_tap(tap: SwIfIndex) -> [ObjectKey; 2] {
    [ObjectKey::SnatInterface(tap, SnatTable::Pod), ObjectKey::SnatInterface(tap, SnatTable::Host)]
}

impl Handler<Change<NodeName, Node>> for SnatHandler {
    fn on(&mut self, _now: Instant, event: &Change<NodeName, Node>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                self.nodes_known = true;
                for (name, node) in all {
                    self.node(name, node, fx);
                }
                let listed: BTreeSet<&NodeName> = all.iter().map(|(name, _)| name).collect();
                let gone =
                    |claimant: &Claimant| matches!(claimant, Claimant::Node(name) if !listed.contains(name));
                self.forget(gone, fx);
            }
            Change::Upsert(name, node) => self.node(name, node, fx),
            Change::Delete(name) => self.claim(Claimant::Node(name.clone()), BTreeSet::new(), fx),
        }
        self.open_if_known(fx);
    }
}

impl Handler<Change<PoolName, Pool>> for SnatHandler {
    fn on(&mut self, _now: Instant, event: &Change<PoolName, Pool>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                self.pools_known = true;
                for (name, pool) in all {
                    self.claim(Claimant::Pool(name.clone()), [pool.cidr].into(), fx);
                }
                let listed: BTreeSet<&PoolName> = all.iter().map(|(name, _)| name).collect();
                let gone =
                    |claimant: &Claimant| matches!(claimant, Claimant::Pool(name) if !listed.contains(name));
                self.forget(gone, fx);
            }
            Change::Upsert(name, pool) => self.claim(Claimant::Pool(name.clone()), [pool.cidr].into(), fx),
            Change::Delete(name) => self.claim(Claimant::Pool(name.clone()), BTreeSet::new(), fx),
        }
        self.open_if_known(fx);
    }
}

impl Handler<Change<BgpConfigName, BgpConfig>> for SnatHandler {
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
        let ranges = default.into_iter().flat_map(|config| config.services.cluster.iter().map(IpNet::trunc));
        let ranges = ranges.chain(self.fixed.iter().copied()).collect();
        self.claim(Claimant::Services, ranges, fx);
        self.open_if_known(fx);
    }
}

impl Handler<HostTaps> for SnatHandler {
    fn on(&mut self, _now: Instant, event: &HostTaps, fx: &mut Effects) {
        let HostTaps(taps) = event;
        if self.open {
            let come = taps.difference(&self.taps).flat_map(|tap| on_tap(*tap));
            fx.vpp.extend(come.map(|key| VppEdit::Want(Owner::Host, key)));
            let gone = self.taps.difference(taps).flat_map(|tap| on_tap(*tap));
            fx.vpp.extend(gone.map(|key| VppEdit::Release(Owner::Host, key)));
        }
        self.taps.clone_from(taps);
    }
}

#[cfg(test)]
mod tests;
