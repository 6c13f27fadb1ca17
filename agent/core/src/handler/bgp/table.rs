//! Calico's built-in export rules, which come behind the filters of a session.
//!
//! For a route that no filter has decided, in this order: nothing inside a pool that forbids it; nothing that leaves
//! through a tunnel device, unless it was learned; communities by prefix; own blocks, and of what is inside them only what
//! has an elevated priority; addresses of services that this node announces; if it reflects routes, those that others
//! announce; whatever is inside a pool; with SRv6 the SR policies of this node; nothing else, so that this node is no transit between its neighbours.
//!
//! Pools are named one by one, so that a person sees which of them it was. Sets that change with every block belong to
//! whoever knows their members, so that a block is no change of policy.

use bgp_core::Family;
use bgp_core::policy::{
    Condition as When, Default as Otherwise, Flow, Glob, Learned, PeerType, PolicyDef, PrefixRange, SetName,
    StatementDef,
};
use ipnet::IpNet;

use super::filter::add;
use crate::desired::BgpObject;
use crate::model::{BgpConfig, BgpConfigName, Pool, PoolName, PrefixAdvertisement};
use crate::plan::family;

/// What the table depends on.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) pools: Vec<(&'a PoolName, &'a Pool)>,
    pub(super) cluster: &'a BgpConfig,
    /// Communities by prefix, and the object that has them.
    pub(super) advertisements: Option<(BgpConfigName, &'a [PrefixAdvertisement])>,
    /// Segment routing over IPv6 is on.
    pub(super) srv6: bool,
    /// This node reflects routes.
    pub(super) reflector: bool,
}

impl Table<'_> {
    pub(super) fn policy(&self) -> PolicyDef {
        let mut statements = Vec::new();
        for of in Family::UNICAST {
            self.refusals(of, &mut statements);
            self.communities(of, &mut statements);
            self.own(of, &mut statements);
            self.others(of, &mut statements);
        }
        if self.srv6 {
            self.policies(&mut statements);
        }
        let last = StatementDef::new(Vec::new(), Vec::new(), Flow::Reject);
        statements
            .push(last.labelled("built-in: no block of this node, no address of a service, in no IPPool"));
        PolicyDef { statements, default: Otherwise::Reject }
    }

    /// Steps 3 to 5.
    fn refusals(&self, of: Family, out: &mut Vec<StatementDef>) {
        for (name, pool) in self.pools_of(of).filter(|(_, pool)| pool.disable_bgp_export) {
            let when = vec![When::Prefix(vec![PrefixRange::or_longer(pool.cidr)])];
            out.push(rule(of, when, Flow::Reject, &format!("IPPool {name}: disableBGPExport")));
        }
        // Learned routes leave through tunnels by their pool; what is refused is what somebody else put there.
        let device = |names: &[&str]| {
            let names = names.iter().map(|name| When::Interface(Glob::new(name))).collect();
            vec![When::Learned(Learned::Local), When::Any(names)]
        };
        let mut tunnels = vec!["*.cali", "*.calico"];
        if !self.cluster.program_cluster_routes.ipip() {
            tunnels.push("tunl0");
        }
        let mut internal = device(&tunnels);
        internal.push(When::PeerType(PeerType::Internal));
        out.push(rule(of, internal, Flow::Reject, "built-in: leaves through a tunnel device"));
        out.push(rule(
            of,
            device(&["bpf*.cali"]),
            Flow::Reject,
            "built-in: leaves through a device of the data plane",
        ));
    }

    /// Step 6.
    fn communities(&self, of: Family, out: &mut Vec<StatementDef>) {
        let Some((object, advertisements)) = &self.advertisements else { return };
        for (index, entry) in advertisements.iter().enumerate().filter(|(_, entry)| family(&entry.cidr) == of)
        {
            let label =
                format!("BGPConfiguration {}, prefixAdvertisements {}", object.object_name(), index + 1);
            let when = vec![When::Family(vec![of]), When::Prefix(vec![PrefixRange::or_longer(entry.cidr)])];
            let apply = entry.communities.iter().copied().map(add).collect();
            out.push(StatementDef::new(when, apply, Flow::Next).labelled(&label));
        }
    }

    /// Step 7.
    fn own(&self, of: Family, out: &mut Vec<StatementDef>) {
        let elevated = self.cluster.normal_priority(of).local_pref() + 1..=u32::MAX;
        let host = || When::PrefixSet(set_name("host", of));
        let block = vec![When::PrefixSet(set_name("aggregated", of))];
        out.push(rule(of, block, Flow::Accept, "built-in: block of this node"));
        let label = "built-in: elevated priority inside a block of this node";
        out.push(rule(of, vec![host(), When::LocalPref(elevated)], Flow::Accept, label));
        out.push(rule(of, vec![host()], Flow::Reject, "built-in: inside a block of this node"));
    }

    /// Steps 8 to 10.
    fn others(&self, of: Family, out: &mut Vec<StatementDef>) {
        let services = vec![When::PrefixSet(set_name("services", of))];
        out.push(rule(of, services, Flow::Accept, "built-in: address of a service"));
        if self.reflector {
            let ranges = self.cluster.services.load_balancer.iter().chain(&self.cluster.services.external);
            let ranges: Vec<_> = ranges
                .filter(|range| family(range) == of)
                .map(|range| PrefixRange::or_longer(*range))
                .collect();
            if !ranges.is_empty() {
                let label = "built-in: address of a service, reflected";
                out.push(rule(of, vec![When::Prefix(ranges)], Flow::Accept, label));
            }
        }
        for (name, pool) in self.pools_of(of).filter(|(_, pool)| !pool.disable_bgp_export) {
            let when = vec![When::Prefix(vec![PrefixRange::or_longer(pool.cidr)])];
            out.push(rule(of, when, Flow::Accept, &format!("IPPool {name}")));
        }
    }

    /// SR policies of this node, and those that it reflects. The speaker tells nobody outside of another's.
    fn policies(&self, out: &mut Vec<StatementDef>) {
        let of = Family::Ipv6SrPolicy;
        let own = vec![When::Learned(Learned::Local)];
        out.push(rule(of, own, Flow::Accept, "built-in: SR policy of this node"));
        if self.reflector {
            out.push(rule(of, Vec::new(), Flow::Accept, "built-in: SR policy, reflected"));
        }
    }

    fn pools_of(&self, of: Family) -> impl Iterator<Item = &(&PoolName, &Pool)> {
        self.pools.iter().filter(move |(_, pool)| family(&pool.cidr) == of)
    }
}

fn rule(of: Family, mut when: Vec<When>, then: Flow, label: &str) -> StatementDef {
    when.insert(0, When::Family(vec![of]));
    StatementDef::new(when, Vec::new(), then).labelled(label)
}

fn set_name(prefix: &str, of: Family) -> SetName {
    SetName::new(&format!("{prefix}-{}", if of.is_ipv4() { "v4" } else { "v6" }))
}

/// The sets of own blocks of a family, which are announced, and of everything inside them, which is not.
pub(crate) fn own_sets(of: Family, blocks: &[IpNet]) -> [BgpObject; 2] {
    let exact = blocks.iter().map(|block| PrefixRange::exact(*block)).collect();
    let inside = blocks.iter().map(|block| PrefixRange::or_longer(*block)).collect();
    [
        BgpObject::PrefixSet(set_name("aggregated", of), exact),
        BgpObject::PrefixSet(set_name("host", of), inside),
    ]
}

/// The set of addresses of services that this node announces, and of everything inside them.
pub(super) fn service_set(of: Family, prefixes: &[IpNet]) -> BgpObject {
    let members = prefixes.iter().map(|prefix| PrefixRange::or_longer(*prefix)).collect();
    BgpObject::PrefixSet(set_name("services", of), members)
}
