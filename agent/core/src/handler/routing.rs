//! What this node originates: its own confirmed blocks, each as one route.
//!
//! A block also becomes a drop route in VPP, so that packets for its unused addresses die here, unless it is a single
//! address. Rows of other nodes, of virtual owners, pending or on their way out say nothing. Two rows may name one
//! block; it counts while one of them does.
//!
//! Blocks may come by the thousand, and the sets that export policy reads hold all of them: those are told once for all
//! events of a turn, by [`RoutingHandler::tell`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use bgp_core::Family;
use bgp_core::command::Origination;
use bgp_core::time::Instant;
use ipnet::IpNet;

use super::Handler;
use super::bgp::own_sets;
use crate::config::{Config, RoutePriorities};
use crate::desired::{BgpKey, BgpObject, ObjectKey, Owner, Path, PrefixMap, Target};
use crate::effects::{BgpEdit, Effects, Origin as Reporter, VppEdit};
use crate::event::{Change, Event};
use crate::model::{
    Affinity, AffinityName, BgpConfig, BgpConfigName, Condition, Node, NodeName, ObjectRef, Origin, RouteKey,
    RoutePriority, TableId,
};
use crate::plan::family;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct RoutingHandler {
    me: NodeName,
    node: Node,
    /// Rows that announce a block of ours.
    rows: BTreeMap<AffinityName, IpNet>,
    /// How many rows name each block.
    blocks: PrefixMap<u32>,
    /// What peers shall hear of.
    addresses: PrefixMap<Origin>,
    /// What they do hear of, and how: the rest waits for an address of this node.
    announced: PrefixMap<Told>,
    priorities: RoutePriorities,
    /// Segment routing over IPv6 is on.
    srv6: bool,
    /// The cluster's settings, which say what the priority of an ordinary route is.
    cluster: BgpConfig,
    /// What is announced may no longer be what should be.
    stale: bool,
    drop: Arc<[Path]>,
}

/// How an own prefix is announced.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Told {
    local_pref: Option<u32>,
    /// The next hop, where it isn't our own address of each session.
    next_hop: Option<IpAddr>,
}

impl RoutingHandler {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            me: config.node.clone(),
            node: Node::default(),
            rows: BTreeMap::new(),
            blocks: PrefixMap::default(),
            addresses: PrefixMap::default(),
            announced: PrefixMap::default(),
            priorities: config.priorities,
            srv6: config.srv6.is_some(),
            cluster: BgpConfig::default(),
            stale: false,
            drop: Arc::from([Path { to: Target::Drop, weight: 1 }]),
        }
    }

    /// Says what the events since the last call come to.
    pub(crate) fn tell(&mut self, fx: &mut Effects) {
        if std::mem::take(&mut self.stale) {
            for of in Family::UNICAST {
                self.announce(of, fx);
            }
            self.report(fx);
        }
    }

    fn put_row(&mut self, name: &AffinityName, affinity: &Affinity, fx: &mut Effects) {
        let ours = affinity.node == self.me && affinity.announces();
        let cidr = ours.then(|| affinity.cidr.trunc());
        if self.rows.get(name).copied() == cidr {
            return;
        }
        if let Some(cidr) = cidr {
            let rows = self.blocks.get_or_insert(cidr, || 0);
            *rows += 1;
            if *rows == 1 {
                fx.then.push_back(Event::Address(Change::Upsert(cidr, Origin::Block)));
            }
        }
        self.delete_row(name, fx);
        if let Some(cidr) = cidr {
            self.rows.insert(name.clone(), cidr);
        }
    }

    fn delete_row(&mut self, name: &AffinityName, fx: &mut Effects) {
        let Some(cidr) = self.rows.remove(name) else { return };
        let Some(rows) = self.blocks.get_mut(&cidr) else { return };
        *rows -= 1;
        if *rows == 0 {
            self.blocks.remove(&cidr);
            fx.then.push_back(Event::Address(Change::Delete(cidr)));
        }
    }

    /// Brings what is announced, and the sets that export policy reads, in line with what is known.
    fn announce(&mut self, of: Family, fx: &mut Effects) {
        let able = self.node.address(of).is_some();
        let wanted: Vec<IpNet> =
            self.addresses.iter().map(|(prefix, _)| prefix).filter(|p| able && family(p) == of).collect();
        let how = Told { local_pref: self.local_pref(of), next_hop: self.next_hop(of) };
        let told = || self.announced.iter().filter(|(prefix, _)| family(prefix) == of);
        let before: Vec<IpNet> = told().map(|(prefix, _)| prefix).collect();
        if wanted == before && told().all(|(_, with)| *with == how) {
            return;
        }
        fx.bgp.extend(own_sets(of, &wanted).map(BgpEdit::Put));
        // Looked up, not searched for: there may be thousands of blocks, and each comes by itself.
        let gone = before.iter().filter(|prefix| !able || self.addresses.get(prefix).is_none());
        let come = wanted.iter().filter(|prefix| self.announced.get(prefix) != Some(&how));
        let (come, gone): (Vec<&IpNet>, Vec<&IpNet>) = (come.collect(), gone.collect());
        for prefix in come {
            self.announced.insert(*prefix, how);
            let Told { local_pref, next_hop } = how;
            let origination = Origination { local_pref, next_hop, ..Origination::default() };
            fx.bgp.push(BgpEdit::Put(BgpObject::Origination(*prefix, origination)));
        }
        for prefix in gone {
            self.announced.remove(prefix);
            fx.bgp.push(BgpEdit::Delete(BgpKey::Origination(*prefix)));
        }
    }

    /// With SRv6 other nodes reach our IPv4 prefixes by the policies that lead to our IPv6 address.
    fn next_hop(&self, of: Family) -> Option<IpAddr> {
        let other = self.srv6 && of == Family::Ipv4Unicast;
        self.node.address(Family::Ipv6Unicast).filter(|_| other)
    }

    /// LOCAL_PREF of own routes of a family: what their priority gives, where it is sent.
    fn local_pref(&self, of: Family) -> Option<u32> {
        match self.priorities {
            RoutePriorities::Classic => None,
            RoutePriorities::Calico => Some(RoutePriority::local_pref(self.cluster.normal_priority(of))),
        }
    }

    fn report(&self, fx: &mut Effects) {
        let conditions = Family::UNICAST.into_iter().filter_map(|of| {
            let waiting: Vec<String> = self
                .addresses
                .iter()
                .filter(|(prefix, _)| family(prefix) == of && self.announced.get(prefix).is_none())
                .map(|(prefix, _)| prefix.to_string())
                .collect();
            let name = if of == Family::Ipv4Unicast { "IPv4" } else { "IPv6" };
            (!waiting.is_empty()).then(|| {
                Condition::error(
                    ObjectRef::new("Node", self.me.as_str()),
                    &format!("metadata.annotations.projectcalico.org/{name}Address"),
                    format!("no {name} address, so blocks are not announced: {}", waiting.join(", ")),
                    format!("set the annotation to this node's {name} address and subnet length"),
                )
            })
        });
        fx.conditions(Reporter::Routing, "blocks", conditions.collect());
    }

    fn drop_route(&self, prefix: IpNet, wanted: bool, fx: &mut Effects) {
        if prefix.prefix_len() == prefix.max_prefix_len() {
            return;
        }
        let key = RouteKey { table: TableId::MAIN, prefix };
        fx.vpp.push(if wanted {
            VppEdit::WantRoute(Owner::Host, key, Arc::clone(&self.drop))
        } else {
            VppEdit::ReleaseRoute(Owner::Host, key)
        });
    }
}

impl Handler<Change<AffinityName, Affinity>> for RoutingHandler {
    fn on(&mut self, _now: Instant, event: &Change<AffinityName, Affinity>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                // The sets exist from now on, also where no block is ours.
                if self.rows.is_empty() && self.announced.is_empty() {
                    for of in Family::UNICAST {
                        fx.bgp.extend(own_sets(of, &[]).map(BgpEdit::Put));
                    }
                }
                for (name, affinity) in all {
                    self.put_row(name, affinity, fx);
                }
                let listed: BTreeSet<&AffinityName> = all.iter().map(|(name, _)| name).collect();
                let gone: Vec<AffinityName> =
                    self.rows.keys().filter(|name| !listed.contains(name)).cloned().collect();
                for name in gone {
                    self.delete_row(&name, fx);
                }
            }
            Change::Upsert(name, affinity) => self.put_row(name, affinity, fx),
            Change::Delete(name) => self.delete_row(name, fx),
        }
    }
}

impl Handler<Change<IpNet, Origin>> for RoutingHandler {
    fn on(&mut self, _now: Instant, event: &Change<IpNet, Origin>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                let listed: BTreeSet<IpNet> = all.iter().map(|(prefix, _)| *prefix).collect();
                let gone = self.addresses.iter().map(|(p, _)| p).filter(|p| !listed.contains(p));
                for prefix in gone.collect::<Vec<_>>() {
                    self.addresses.remove(&prefix);
                    self.drop_route(prefix, false, fx);
                }
                for (prefix, origin) in all {
                    self.addresses.insert(*prefix, *origin);
                    self.drop_route(*prefix, true, fx);
                }
            }
            Change::Upsert(prefix, origin) => {
                self.addresses.insert(*prefix, *origin);
                if self.addresses.len() == 1 {
                    fx.vpp.push(VppEdit::Want(Owner::Host, ObjectKey::FibSource));
                }
                self.drop_route(*prefix, true, fx);
            }
            Change::Delete(prefix) => {
                self.addresses.remove(prefix);
                self.drop_route(*prefix, false, fx);
            }
        }
        self.stale = true;
    }
}

impl Handler<Change<NodeName, Node>> for RoutingHandler {
    fn on(&mut self, _now: Instant, event: &Change<NodeName, Node>, _fx: &mut Effects) {
        let node = match event {
            Change::Resync(all) => {
                all.iter().find(|(name, _)| *name == self.me).map(|(_, node)| node.clone())
            }
            Change::Upsert(name, node) if *name == self.me => Some(node.clone()),
            Change::Delete(name) if *name == self.me => None,
            Change::Upsert(..) | Change::Delete(_) => return,
        };
        self.node = node.unwrap_or_default();
        self.stale = true;
    }
}

impl Handler<Change<BgpConfigName, BgpConfig>> for RoutingHandler {
    fn on(&mut self, _now: Instant, event: &Change<BgpConfigName, BgpConfig>, _fx: &mut Effects) {
        let default = match event {
            Change::Resync(all) => {
                let found = all.iter().find(|(name, _)| *name == BgpConfigName::Default);
                found.map(|(_, config)| config.clone())
            }
            Change::Upsert(BgpConfigName::Default, config) => Some(config.clone()),
            Change::Delete(BgpConfigName::Default) => None,
            Change::Upsert(..) | Change::Delete(_) => return,
        };
        self.cluster = default.unwrap_or_default();
        self.stale = true;
    }
}

#[cfg(test)]
mod tests;
