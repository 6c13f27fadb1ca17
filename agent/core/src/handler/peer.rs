//! Which neighbours this node has: the mesh between nodes, and what BGPPeer objects ask for.
//!
//! Everyone who asks for a session is a *claimant*: a BGPPeer, or another node of the mesh. Claims are kept by remote
//! address, in order of precedence: global object, node's object, the reverse half of an object, mesh; within a kind
//! by name. The first claim of each port has the session; the mesh gives way to any other claim of the address.
//! An event recomputes the claims of those that it can concern, and then only the addresses that they touch.
//!
//! Nothing is wanted before the first complete lists of nodes, peers and configurations are in: negative selectors
//! match an empty cluster.

mod claims;
mod listen;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bgp_core::time::Instant;
use bgp_core::{Asn, Family, RouterId};
use ipnet::IpNet;

use super::Handler;
use crate::config::{BgpMode, Config};
use crate::desired::{BgpKey, BgpObject, ObjectKey, Owner, Path, Target};
use crate::effects::{BgpEdit, Effects, Origin, VppEdit};
use crate::event::Change;
use crate::model::{
    BgpConfig, BgpConfigName, Condition, DEFAULT_ASN, Filter, FilterName, Node, NodeName, ObjectRef,
    PeerName, PeerPort, PeerSpec, RouteKey, TableId,
};
use claims::{Claimant, Claims};
use session::Compiled;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct PeerHandler {
    cluster: Cluster,
    peers: BTreeMap<PeerName, Compiled>,
    claims: Claims,
    /// Neighbours that are reached through gateways of their own.
    gateways: BTreeSet<IpAddr>,
    nodes_known: bool,
    peers_known: bool,
    filters_known: bool,
    configs_known: bool,
}

/// What sessions are made from, besides BGPPeer objects.
#[derive(Debug)]
struct Cluster {
    me: NodeName,
    mode: BgpMode,
    /// Segment routing over IPv6 is on.
    srv6: bool,
    /// There are networks beside the default one.
    multinet: bool,
    router_id: Option<std::net::Ipv4Addr>,
    fallback_router_id: std::net::Ipv4Addr,
    nodes: BTreeMap<NodeName, Node>,
    by_address: BTreeMap<IpAddr, NodeName>,
    configs: BTreeMap<BgpConfigName, BgpConfig>,
    /// Which BGPFilters there are.
    filters: BTreeSet<FilterName>,
}

impl Cluster {
    fn own(&self) -> Option<&Node> {
        self.nodes.get(&self.me)
    }

    /// Our address of a family, where sessions of the family are wanted at all.
    fn own_address(&self, family: Family) -> Option<IpAddr> {
        self.own().filter(|_| self.enabled(family))?.address(family)
    }

    fn enabled(&self, family: Family) -> bool {
        match self.mode {
            BgpMode::DualStack => true,
            BgpMode::V4Only => family.is_ipv4(),
            BgpMode::V6Only => !family.is_ipv4(),
        }
    }

    fn default_config(&self) -> Option<&BgpConfig> {
        self.configs.get(&BgpConfigName::Default)
    }

    fn default_asn(&self) -> Asn {
        self.default_config().and_then(|config| config.asn).filter(|asn| asn.0 != 0).unwrap_or(DEFAULT_ASN)
    }

    fn asn_of(&self, node: &Node) -> Asn {
        node.asn.filter(|asn| asn.0 != 0).unwrap_or_else(|| self.default_asn())
    }

    fn own_asn(&self) -> Asn {
        self.own().map_or_else(|| self.default_asn(), |node| self.asn_of(node))
    }

    fn port_of(&self, node: &NodeName) -> PeerPort {
        let port = |config: &BgpConfig| config.listen_port.filter(|port| port.0 != 0);
        let own = self.configs.get(&BgpConfigName::Node(node.clone())).and_then(port);
        own.or_else(|| port(self.default_config()?)).unwrap_or(PeerPort::BGP)
    }

    fn mesh(&self) -> bool {
        self.default_config().and_then(|config| config.mesh).unwrap_or(true)
    }

    /// The node that has this BGP address.
    fn node_at(&self, address: IpAddr) -> Option<(&NodeName, &Node)> {
        let name = self.by_address.get(&address)?;
        self.nodes.get(name).map(|node| (name, node))
    }

    fn router_id(&self) -> RouterId {
        let from_node = || self.own().and_then(|node| node.ipv4).map(|net| net.addr());
        RouterId::from(self.router_id.or_else(from_node).unwrap_or(self.fallback_router_id))
    }

    fn index(&mut self) {
        self.by_address = self
            .nodes
            .iter()
            .rev()
            .flat_map(|(name, node)| {
                node.addresses().map(|address| (address, name.clone())).collect::<Vec<_>>()
            })
            .collect();
    }
}

impl PeerHandler {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            cluster: Cluster {
                me: config.node.clone(),
                mode: config.mode,
                srv6: config.srv6.is_some(),
                multinet: config.multinet,
                router_id: config.router_id,
                fallback_router_id: config.fallback_router_id,
                nodes: BTreeMap::new(),
                by_address: BTreeMap::new(),
                configs: BTreeMap::new(),
                filters: BTreeSet::new(),
            },
            peers: BTreeMap::new(),
            claims: Claims::default(),
            gateways: BTreeSet::new(),
            nodes_known: false,
            peers_known: false,
            filters_known: false,
            configs_known: false,
        }
    }

    /// Where the speaker shall listen; nowhere before the first complete lists.
    pub(crate) fn listen(&self) -> Vec<SocketAddr> {
        if self.complete() { listen::addresses(&self.cluster) } else { Vec::new() }
    }

    fn complete(&self) -> bool {
        self.nodes_known && self.peers_known && self.filters_known && self.configs_known
    }

    /// Computes every claim anew.
    fn everything(&mut self, fx: &mut Effects) {
        if !self.complete() {
            return;
        }
        if self.cluster.own().is_some() {
            let (asn, router_id) = (self.cluster.own_asn(), self.cluster.router_id());
            fx.bgp.push(BgpEdit::Put(BgpObject::Identity { asn, router_id }));
            let cluster_id = self.cluster.own().and_then(|own| own.cluster_id).map(RouterId::from);
            fx.bgp.push(BgpEdit::Put(BgpObject::Cluster(cluster_id)));
        }
        let mut claimants: BTreeSet<Claimant> = self.claims.claimants().cloned().collect();
        claimants.extend(self.peers.keys().cloned().map(Claimant::Peer));
        claimants.extend(self.cluster.nodes.keys().cloned().map(Claimant::Mesh));
        self.some(claimants, fx);
    }

    /// Computes the claims of some claimants anew, and brings the sessions of the addresses they touch in line.
    fn some(&mut self, claimants: impl IntoIterator<Item = Claimant>, fx: &mut Effects) {
        if !self.complete() {
            return;
        }
        let mut addresses = BTreeSet::new();
        for claimant in claimants {
            let claims = match &claimant {
                Claimant::Mesh(node) => session::mesh(&self.cluster, node),
                Claimant::Peer(name) => match self.peers.get(name) {
                    Some(peer) => {
                        let mut conditions = peer.conditions.clone();
                        let claims = peer.claims(name, &self.cluster, &mut conditions);
                        fx.conditions(Origin::Peer, format!("BGPPeer {name}"), conditions);
                        claims
                    }
                    None => {
                        fx.conditions(Origin::Peer, format!("BGPPeer {name}"), Vec::new());
                        Vec::new()
                    }
                },
            };
            self.claims.replace(claimant, claims, &mut addresses);
        }
        for address in addresses {
            self.settle(address, fx);
        }
    }

    /// Edits what the claims of one address say about its sessions, and the route to it.
    fn settle(&mut self, address: IpAddr, fx: &mut Effects) {
        let verdict = self.claims.settle(address);
        let key = RouteKey { table: TableId::MAIN, prefix: IpNet::from(address) };
        match verdict.gateway {
            (before, now) if before == now => {}
            (_, Some(gateway)) => {
                self.gateways.insert(address);
                fx.vpp.push(VppEdit::Want(Owner::Session, ObjectKey::FibSource));
                let path = Path { to: Target::Gateway(gateway), weight: 1 };
                fx.vpp.push(VppEdit::WantRoute(Owner::Session, key, Arc::from([path])));
            }
            (_, None) => {
                self.gateways.remove(&address);
                fx.vpp.push(VppEdit::ReleaseRoute(Owner::Session, key));
                if self.gateways.is_empty() {
                    fx.vpp.push(VppEdit::Release(Owner::Session, ObjectKey::FibSource));
                }
            }
        }
        for key in verdict.gone {
            fx.bgp.push(BgpEdit::Delete(BgpKey::Peer(key)));
        }
        for (key, claim) in verdict.changed {
            fx.bgp.push(BgpEdit::Put(BgpObject::Peer(key, claim.config, claim.origin)));
        }
        if verdict.conflicts_changed {
            fx.conditions(Origin::Peer, format!("session {address}"), verdict.conflicts);
        }
    }

    /// What our own node lacks, without which there are no sessions at all.
    fn node_conditions(&self) -> Vec<Condition> {
        /// The rest of a large cluster is only counted.
        const NAMED: usize = 5;
        let me = || ObjectRef::new("Node", self.cluster.me.as_str());
        let Some(own) = self.cluster.own() else {
            let mut names: Vec<&str> = self.cluster.nodes.keys().take(NAMED).map(NodeName::as_str).collect();
            let more = format!("and {} more", self.cluster.nodes.len().saturating_sub(NAMED));
            if self.cluster.nodes.len() > NAMED {
                names.push(&more);
            }
            let known = if names.is_empty() {
                "there is none at all".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            };
            return vec![Condition::error(
                me(),
                "",
                format!(
                    "it is this node by the settings, and not among the nodes ({known}), so there are no sessions and \
                     nothing is announced"
                ),
                "set `node` in the settings (NODENAME) to this node's name as the objects have it, or bring its object",
            )];
        };
        if Family::UNICAST
            .into_iter()
            .any(|family| self.cluster.enabled(family) && own.address(family).is_some())
        {
            return Vec::new();
        }
        vec![Condition::error(
            me(),
            "metadata.annotations",
            "this node has no BGP address of an IP version that bgp.mode allows, so it has no sessions",
            "set the annotation projectcalico.org/IPv4Address or projectcalico.org/IPv6Address",
        )]
    }

    /// What makes no sense about the configurations.
    fn config_conditions(&self) -> Vec<Condition> {
        let mut conditions = Vec::new();
        for (name, config) in &self.cluster.configs {
            let object = || ObjectRef::new("BGPConfiguration", name.object_name());
            if config.listen_port == Some(PeerPort(0)) {
                conditions.push(Condition::error(
                    object(),
                    "spec.listenPort",
                    "nobody can listen on port 0; the field is taken as absent",
                    "set a port from 1 to 65535",
                ));
            }
            if *name == BgpConfigName::Default && config.mesh_password && self.cluster.mesh() {
                conditions.push(Condition::error(
                    object(),
                    "spec.nodeMeshPassword",
                    "passwords are not supported yet, so the mesh has no sessions",
                    "remove nodeMeshPassword",
                ));
            }
            let too_long =
                config.mesh_max_restart_time.is_some_and(|time| session::restart_time(time).is_none());
            if *name == BgpConfigName::Default && too_long {
                conditions.push(Condition::warning(
                    object(),
                    "spec.nodeMeshMaxRestartTime",
                    "more than 4095 s does not fit; the usual time is used",
                    "set a shorter time",
                ));
            }
        }
        conditions
    }

    /// Who names this filter.
    fn naming(&self, filter: &FilterName) -> Vec<Claimant> {
        let names = |peer: &Compiled| peer.filters().any(|named| named == filter);
        self.peers
            .iter()
            .filter(|(_, peer)| names(peer))
            .map(|(name, _)| Claimant::Peer(name.clone()))
            .collect()
    }

    /// Who may claim something else because this node changed: itself in the mesh, and every object.
    fn concerned(&self, node: &NodeName) -> Vec<Claimant> {
        let peers = self.peers.keys().cloned().map(Claimant::Peer);
        peers.chain([Claimant::Mesh(node.clone())]).collect()
    }
}

impl Handler<Change<NodeName, Node>> for PeerHandler {
    fn on(&mut self, _now: Instant, event: &Change<NodeName, Node>, fx: &mut Effects) {
        let changed = match event {
            Change::Resync(all) => {
                self.nodes_known = true;
                self.cluster.nodes = all.iter().cloned().collect();
                None
            }
            Change::Upsert(name, node) => {
                if self.cluster.nodes.insert(name.clone(), node.clone()).as_ref() == Some(node) {
                    return;
                }
                Some(name)
            }
            Change::Delete(name) => {
                if self.cluster.nodes.remove(name).is_none() {
                    return;
                }
                Some(name)
            }
        };
        self.cluster.index();
        fx.conditions(
            Origin::Peer,
            "own node",
            if self.nodes_known { self.node_conditions() } else { Vec::new() },
        );
        match changed {
            Some(name) if *name != self.cluster.me => self.some(self.concerned(name), fx),
            Some(_) | None => self.everything(fx),
        }
    }
}

impl Handler<Change<PeerName, PeerSpec>> for PeerHandler {
    fn on(&mut self, _now: Instant, event: &Change<PeerName, PeerSpec>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                self.peers_known = true;
                self.peers = all
                    .iter()
                    .map(|(name, spec)| (name.clone(), Compiled::new(name, spec.clone())))
                    .collect();
                self.everything(fx);
            }
            Change::Upsert(name, spec) => {
                self.peers.insert(name.clone(), Compiled::new(name, spec.clone()));
                self.some([Claimant::Peer(name.clone())], fx);
            }
            Change::Delete(name) => {
                self.peers.remove(name);
                self.some([Claimant::Peer(name.clone())], fx);
            }
        }
    }
}

impl Handler<Change<FilterName, Filter>> for PeerHandler {
    /// What a filter says is not our affair, only whether there is one.
    fn on(&mut self, _now: Instant, event: &Change<FilterName, Filter>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                self.filters_known = true;
                self.cluster.filters = all.iter().map(|(name, _)| name.clone()).collect();
                self.everything(fx);
            }
            Change::Upsert(name, _) => {
                if self.cluster.filters.insert(name.clone()) {
                    self.some(self.naming(name), fx);
                }
            }
            Change::Delete(name) => {
                if self.cluster.filters.remove(name) {
                    self.some(self.naming(name), fx);
                }
            }
        }
    }
}

impl Handler<Change<BgpConfigName, BgpConfig>> for PeerHandler {
    fn on(&mut self, _now: Instant, event: &Change<BgpConfigName, BgpConfig>, fx: &mut Effects) {
        match event {
            Change::Resync(all) => {
                self.configs_known = true;
                self.cluster.configs = all.iter().cloned().collect();
            }
            Change::Upsert(name, config) => {
                self.cluster.configs.insert(name.clone(), config.clone());
            }
            Change::Delete(name) => {
                self.cluster.configs.remove(name);
            }
        }
        fx.conditions(Origin::Peer, "BGPConfiguration", self.config_conditions());
        self.everything(fx);
    }
}

#[cfg(test)]
mod tests;
