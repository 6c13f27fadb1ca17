//! Peers of WireGuard: what each node may send, from all destinations behind it.
//!
//! VPP has no message that changes what a peer may send: it is removed and added again, and its session made anew. So peers are
//! worked out once for everything that happened before operations leave, and touched only where a field differs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use bgp_core::Family;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::ConnectivityHandler;
use crate::config::Encrypted;
use crate::desired::{ObjectKey, Owner, Path, Spec, Target, Tunnel, WireguardPeer};
use crate::effects::{Effects, Origin, VppEdit};
use crate::model::{
    Condition, Encapsulation, Hop, NodeName, ObjectRef, PerFamily, Pool, PoolName, PublicKey, family_of,
};
use crate::provider::{Facts, WireguardReach, select, wireguard_interface};

/// What is wanted of peers, and which have to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// Next hops about which something changed.
    changed: BTreeSet<IpAddr>,
    /// The peer that each next hop is.
    at: BTreeMap<IpAddr, ObjectKey>,
    wanted: BTreeMap<ObjectKey, Arc<WireguardPeer>>,
}

impl Peers {
    /// Something about these next hops changed, or about what lies behind them.
    pub(super) fn look_at(&mut self, hops: &[Hop]) {
        self.changed.extend(hops.iter().map(|hop| hop.address));
    }

    /// The peer that a next hop is.
    pub(super) fn of(&self, hop: IpAddr) -> Option<ObjectKey> {
        self.at.get(&hop).copied()
    }

    /// Something about the nodes at these addresses changed.
    pub(super) fn look_at_all(&mut self, addresses: &BTreeSet<IpAddr>) {
        self.changed.extend(addresses);
    }
}

/// A path that leads to a peer.
pub(super) fn is_encrypted(path: &Path) -> bool {
    matches!(path.to, Target::TunnelVia(Tunnel::Wireguard(_), _))
}

impl ConnectivityHandler {
    /// Says what is wanted of peers now, and which nodes have none though they should.
    pub(crate) fn tell(&mut self, fx: &mut Effects) {
        // Without a node of our own nothing new is said of anything.
        if self.peers.changed.is_empty() || !self.open || self.facts.own().is_none() {
            return;
        }
        let hops = std::mem::take(&mut self.peers.changed);
        let mut gone: BTreeSet<ObjectKey> = hops.iter().filter_map(|hop| self.peers.at.remove(hop)).collect();
        for hop in &hops {
            let (peer, conditions) = (self.peer(*hop), self.hop_conditions(*hop));
            fx.conditions(Origin::Connectivity, format!("wireguard {hop}"), conditions);
            let Some((key, peer)) = peer else { continue };
            // A key that moves to another address stays one peer.
            gone.remove(&key);
            self.peers.at.insert(*hop, key);
            let before = self.peers.wanted.insert(key, Arc::clone(&peer));
            if before.as_ref() != Some(&peer) {
                // Its session begins anew, and is looked at by then.
                fx.conditions(Origin::Connectivity, session_subject(*hop), Vec::new());
                fx.vpp.push(VppEdit::Define(key, Spec::WireguardPeer(peer)));
            }
            if before.is_none() {
                fx.vpp.push(VppEdit::Want(Owner::Wireguard, key));
            }
        }
        for key in gone {
            if let Some(peer) = self.peers.wanted.remove(&key) {
                fx.conditions(Origin::Connectivity, session_subject(peer.endpoint), Vec::new());
            }
            fx.vpp.push(VppEdit::Release(Owner::Wireguard, key));
        }
    }

    /// The keys that others shall know.
    pub(crate) fn published(&self) -> PerFamily<Option<PublicKey>> {
        self.facts.published()
    }

    /// A session came up or went. One that went is missed only where VPP keeps sessions up by itself.
    pub(crate) fn session_changed(&self, peer: IpAddr, established: bool, fx: &mut Effects) {
        let missed = !established && self.facts.felix.keep_alive() > 0 && self.peers.at.contains_key(&peer);
        let name = self.facts.node_at(peer).map(|(name, _)| name);
        let condition = name.filter(|_| missed).map(|name| {
            Condition::warning(
                ObjectRef::new("Node", name.as_str()),
                "",
                format!("there is no WireGuard session with it at {peer}, so its pods are not reached"),
                "see that its agent runs, knows this node's key, and is reached by UDP at WireGuard's port",
            )
        });
        fx.conditions(Origin::Connectivity, session_subject(peer), condition.into_iter().collect());
    }

    /// Says where WireGuard is on and we have no key.
    pub(super) fn judge_keys(&self, fx: &mut Effects) {
        let without = Family::UNICAST
            .into_iter()
            .filter(|family| self.facts.felix.wireguard(*family) && self.facts.keys.of(*family).is_none());
        let conditions = without.map(|family| keyless(&self.me, family.is_ipv4())).collect();
        fx.conditions(Origin::Connectivity, "wireguard keys", conditions);
    }

    /// The peer that a next hop is, if destinations behind it are reached that way.
    fn peer(&self, hop: IpAddr) -> Option<(ObjectKey, Arc<WireguardPeer>)> {
        let WireguardReach::Usable(public) = self.facts.wireguard(hop) else { return None };
        let (interface, _) = wireguard_interface(hop, &self.facts).ok()?;
        let to = Target::TunnelVia(Tunnel::Wireguard(interface), hop);
        let mut allowed = BTreeSet::new();
        for way in self.by_hop.get(&hop)?.iter().filter_map(|id| self.at(*id)) {
            let leads_there = way.paths().iter().any(|path| path.to == to);
            allowed.extend(way.members.iter().flatten().filter(|_| leads_there));
        }
        if allowed.is_empty() {
            return None;
        }
        allowed.insert(IpNet::from(hop));
        let peer = WireguardPeer {
            interface,
            endpoint: hop,
            port: self.facts.felix.wireguard_port(family_of(hop)),
            keepalive: self.facts.felix.keep_alive(),
            allowed: self.few(allowed),
        };
        Some((ObjectKey::WireguardPeer(interface, public), Arc::new(peer)))
    }

    /// As many prefixes as VPP takes, which cover all of these: neighbours are joined where there are too many, then pools
    /// stand for what they hold.
    fn few(&self, allowed: BTreeSet<IpNet>) -> Vec<IpNet> {
        let most = WireguardPeer::MAX_ALLOWED;
        let join = |prefixes: Vec<IpNet>| {
            let mut joined = IpNet::aggregate(&prefixes);
            joined.sort_unstable();
            joined
        };
        let all: Vec<IpNet> = allowed.into_iter().collect();
        if all.len() <= most {
            return all;
        }
        let joined = join(all);
        if joined.len() <= most {
            return joined;
        }
        let pool = |prefix: &IpNet| {
            self.carriages.covering(prefix, &self.lengths).map_or(*prefix, |(outer, _)| outer)
        };
        let pools = join(joined.iter().map(pool).collect());
        if pools.len() <= most {
            return pools;
        }
        join(pools.iter().map(everything).collect())
    }

    /// What keeps traffic through a next hop from being encrypted, where it should be.
    fn hop_conditions(&self, hop: IpAddr) -> Vec<Condition> {
        let ways = self.by_hop.get(&hop).into_iter().flatten().filter_map(|id| self.at(*id));
        let mut reaches =
            ways.filter_map(|way| Some(select(way.carriage, hop, &self.facts).ok()?.unencrypted));
        let reach = reaches.find(|reach| *reach != WireguardReach::Off);
        let effect = if self.facts.encryption.or_drop { "is dropped" } else { "is not encrypted" };
        let name = || self.facts.node_at(hop).map_or_else(|| hop.to_string(), |(name, _)| name.to_string());
        let field = format!("metadata.annotations.projectcalico.org/{}", annotation(hop.is_ipv4()));
        let of_node = |reason: String, remedy| {
            vec![Condition::warning(ObjectRef::new("Node", name()), &field, reason, remedy)]
        };
        match reach {
            // Said once, of our own node.
            None | Some(WireguardReach::Off | WireguardReach::Usable(_) | WireguardReach::Keyless) => {
                Vec::new()
            }
            Some(WireguardReach::NoKey) => of_node(
                format!(
                    "WireGuard is on and this node has published no key, so traffic to its pods {effect}"
                ),
                "have its agent publish one, or set the annotation to its public key",
            ),
            Some(WireguardReach::SharedKey) => of_node(
                format!(
                    "another node has published the same key, or it is ours, so traffic to its pods {effect}"
                ),
                "give each node a key of its own",
            ),
            Some(WireguardReach::Stranger) => vec![Condition::warning(
                ObjectRef::new("NextHop", hop.to_string()),
                "",
                format!("WireGuard is on and no node has this address, so traffic through it {effect}"),
                "have whoever announces routes inside pools do so with a node's address as the next hop",
            )],
        }
    }
}

/// All addresses of a prefix's IP version.
fn everything(prefix: &IpNet) -> IpNet {
    match prefix {
        IpNet::V4(_) => IpNet::V4(Ipv4Net::default()),
        IpNet::V6(_) => IpNet::V6(Ipv6Net::default()),
    }
}

const fn annotation(ipv4: bool) -> &'static str {
    if ipv4 { "WireguardPublicKey" } else { "WireguardPublicKeyV6" }
}

fn session_subject(peer: IpAddr) -> String {
    format!("wireguard session {peer}")
}

/// This node has no key.
pub(super) fn keyless(me: &NodeName, ipv4: bool) -> Condition {
    let field = if ipv4 { "wireguardEnabled" } else { "wireguardEnabledV6" };
    Condition::error(
        ObjectRef::new("Node", me.as_str()),
        "",
        format!("{field} is set and this node has no key, so nothing is encrypted"),
        "let the agent write to its folder of state, where it keeps the key, and start it again",
    )
}

/// A pool whose traffic is not encrypted though WireGuard is on.
pub(super) fn left_out(name: &PoolName, pool: &Pool, facts: &Facts) -> Option<Condition> {
    let on = facts.felix.wireguard(crate::plan::family(&pool.cidr));
    let bare = |mode| mode == Encapsulation::Never;
    let clear = on && facts.encryption.what == Encrypted::Encapsulated && bare(pool.ipip) && bare(pool.vxlan);
    clear.then(|| {
        Condition::warning(
            ObjectRef::new("IPPool", name.as_str()),
            "spec",
            "WireGuard is on, and traffic of a pool without encapsulation is not encrypted",
            "set wireguard.traffic to pods in the agents' settings once no other agents are left, or give the pool an \
             encapsulation",
        )
    })
}
