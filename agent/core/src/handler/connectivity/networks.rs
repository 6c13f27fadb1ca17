//! Networks beside the default one: which numbers are served, and what is wrong with the objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bgp_core::time::Instant;

use super::ConnectivityHandler;
use crate::effects::{Effects, Origin};
use crate::event::Change;
use crate::handler::Handler;
use crate::model::{Condition, Network, NetworkName, ObjectRef, RouteKey, TableId, Vni};

/// See the module's text.
#[derive(Debug)]
pub(super) struct Networks {
    /// The settings have them.
    on: bool,
    all: BTreeMap<NetworkName, Network>,
    served: BTreeSet<Vni>,
}

impl Networks {
    pub(super) fn new(on: bool) -> Self {
        Self { on, all: BTreeMap::new(), served: BTreeSet::new() }
    }

    /// Whether a network is served.
    pub(super) fn has(&self, vni: Vni) -> bool {
        self.served.contains(&vni)
    }

    /// Works out which are served, and what is wrong with the rest. `default` is the number of the default network.
    fn judge(&mut self, default: Vni) -> (BTreeSet<Vni>, Vec<Condition>) {
        let (mut served, mut conditions) = (BTreeMap::new(), Vec::new());
        for (name, network) in &self.all {
            let object = || ObjectRef::new("Network", name.as_str());
            let mut refuse = |field: &str, reason: String, remedy: &str| {
                conditions.push(Condition::error(object(), field, reason, remedy));
            };
            if !self.on {
                let reason = "networks are not served, as features.multinet is off".to_owned();
                conditions.push(Condition::warning(
                    object(),
                    "",
                    reason,
                    "set features.multinet, or delete the object",
                ));
                continue;
            }
            if let Some(physical) = &network.physical {
                refuse(
                    "spec.physicalNetworkName",
                    format!(
                        "the network {physical} has uplinks of its own, which this release does not serve"
                    ),
                    "leave it out to have the network use this node's uplink",
                );
                continue;
            }
            if network.vni == default {
                refuse(
                    "spec.vni",
                    format!("{default} is the number of the default network's VXLAN tunnels"),
                    "choose another one, or change vxlanVNI of the FelixConfiguration",
                );
                continue;
            }
            if let Some(first) = served.get(&network.vni) {
                refuse(
                    "spec.vni",
                    format!("the Network {first} has the number {}, too", network.vni),
                    "choose another one; only the first by name counts",
                );
                continue;
            }
            served.insert(network.vni, name.clone());
        }
        (served.into_keys().collect(), conditions)
    }
}

impl ConnectivityHandler {
    /// Looks at all networks again, and at the destinations of those that came or went.
    pub(super) fn judge_networks(&mut self, fx: &mut Effects) {
        let (served, conditions) = self.networks.judge(self.facts.vxlan_vni());
        fx.conditions(Origin::Connectivity, "networks", conditions);
        let before = std::mem::replace(&mut self.networks.served, served);
        let changed: Vec<Vni> = before.symmetric_difference(&self.networks.served).copied().collect();
        for vni in changed {
            let table = TableId::of_network(vni);
            let prefixes = self.destinations.get(&table).into_iter().flat_map(|all| all.iter());
            let keys: Vec<RouteKey> = prefixes.map(|(prefix, _)| RouteKey { table, prefix }).collect();
            for key in keys {
                let way = self.destinations.get(&key.table).and_then(|all| all.get(&key.prefix));
                if let Some(hops) = way.and_then(|way| self.at(*way)).map(|way| Arc::clone(&way.hops)) {
                    self.put(key, &hops, fx);
                }
            }
        }
    }
}

impl Handler<Change<NetworkName, Network>> for ConnectivityHandler {
    fn on(&mut self, _now: Instant, event: &Change<NetworkName, Network>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => self.networks.all = all.iter().cloned().collect(),
            Change::Upsert(name, network) => {
                self.networks.all.insert(name.clone(), network.clone());
            }
            Change::Delete(name) => {
                self.networks.all.remove(name);
            }
        }
        self.judge_networks(fx);
    }
}
