//! From objects to claims: one BGPPeer, or one node of the mesh, and the sessions it asks for on this node.

use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use bgp_core::command::{Chain, LocalAsn, NextHopMode, PeerConfig};
use bgp_core::peer_key::PeerKey;
use bgp_core::policy::{Otherwise, PolicyName};
use bgp_core::session::{AddPath, GracefulRestart, RemoteAsn, RestartTime};
use bgp_core::{Asn, Family, FamilySet};

use super::Cluster;
use super::claims::{Claim, Ground};
use crate::handler::bgp::{EXPORT_POLICY, THROUGH_POLICY, policy_name};
use crate::model::{
    Condition, Direction, FilterName, NextHopChoice, Node, NodeName, ObjectRef, PeerEndpoint, PeerName,
    PeerPort, PeerSpec, SourceAddress, family_of,
};
use crate::selector::Selector;

/// TTL of external sessions: VPP is always a hop between the host and its neighbours.
const MULTIHOP_TTL: u8 = 64;

/// A BGPPeer with its selectors parsed, and what is wrong with it on its own.
#[derive(Debug)]
pub(super) struct Compiled {
    spec: PeerSpec,
    node_selector: Option<Selector>,
    peer_selector: Option<Selector>,
    /// Problems that do not depend on the cluster.
    pub(super) conditions: Vec<Condition>,
    usable: bool,
}

/// One session before its claim is made.
struct Wanted<'a> {
    ground: Ground,
    address: IpAddr,
    port: PeerPort,
    asn: Asn,
    passive: bool,
    local: Option<IpAddr>,
    origin: ObjectRef,
    description: String,
    restart_time: Option<Duration>,
    /// The remote end's cluster id, where the remote end is known to be a node that has one.
    cluster_id: Option<Ipv4Addr>,
    spec: Option<&'a PeerSpec>,
}

impl Compiled {
    pub(super) fn new(name: &PeerName, spec: PeerSpec) -> Self {
        let mut problems = Problems { object: ObjectRef::new("BGPPeer", name.as_str()), all: Vec::new() };
        let node_selector = problems.selector("spec.nodeSelector", spec.node_selector.as_deref());
        let peer_selector = problems.selector("spec.peerSelector", spec.peer_selector.as_deref());
        problems.shape(&spec);
        problems.unsupported(&spec);
        let usable =
            problems.all.iter().all(|condition| condition.severity == crate::model::Severity::Warning);
        Self { spec, node_selector, peer_selector, conditions: problems.all, usable }
    }

    /// The sessions that this object asks for on our node.
    pub(super) fn claims(
        &self,
        name: &PeerName,
        cluster: &Cluster,
        conditions: &mut Vec<Condition>,
    ) -> Vec<Claim> {
        let Some(own) = cluster.own().filter(|_| self.usable) else { return Vec::new() };
        let origin = ObjectRef::new("BGPPeer", name.as_str());
        let mut wanted = Vec::new();
        if self.belongs_to(&cluster.me, own) {
            self.explicit(&origin, cluster, conditions, &mut wanted);
        }
        if !self.spec.manual_reverse {
            self.reverse(&origin, cluster, &mut wanted);
        }
        let claims: Vec<Claim> = wanted.into_iter().filter_map(|wanted| claim(wanted, cluster)).collect();
        if !claims.is_empty() {
            for filter in self.filters().filter(|filter| !cluster.filters.contains(*filter)) {
                conditions.push(Condition::warning(
                    origin.clone(),
                    "spec.filters",
                    format!(
                        "there is no BGPFilter {filter}; until there is one, the session goes without it"
                    ),
                    "create the BGPFilter, or take its name out",
                ));
            }
        }
        claims
    }

    /// The filters that it names.
    pub(super) fn filters(&self) -> impl Iterator<Item = &FilterName> {
        self.spec.filters.iter()
    }

    fn global(&self) -> bool {
        self.spec.node.is_none() && self.node_selector.is_none()
    }

    fn belongs_to(&self, name: &NodeName, node: &Node) -> bool {
        let named = self.spec.node.as_ref().is_none_or(|wanted| wanted == name);
        named && self.node_selector.as_ref().is_none_or(|selector| selector.matches(&node.labels))
    }

    fn explicit<'a>(
        &'a self,
        origin: &ObjectRef,
        cluster: &Cluster,
        conditions: &mut Vec<Condition>,
        out: &mut Vec<Wanted<'a>>,
    ) {
        let ground = if self.global() { Ground::Global } else { Ground::Node };
        if let Some(PeerEndpoint { address, port }) = self.spec.peer_ip {
            let asn = self.asn(cluster);
            if self.spec.asn.is_none_or(|asn| asn.0 == 0) {
                conditions.push(Condition::warning(
                    origin.clone(),
                    "spec.asNumber",
                    format!("no AS number for {address}; the cluster's default {asn} is used"),
                    "set asNumber",
                ));
            }
            if cluster.own_address(family_of(address)).is_none() {
                conditions.push(Condition::warning(
                    origin.clone(),
                    "spec.peerIP",
                    format!(
                        "this node has no BGP address of the IP version of {address}, so there is no session"
                    ),
                    "give the node one, or narrow node or nodeSelector",
                ));
            }
            let remote = cluster.node_at(address);
            let listens =
                remote.filter(|(_, node)| cluster.asn_of(node) == asn).map(|(name, _)| cluster.port_of(name));
            out.push(Wanted {
                ground,
                address,
                port: port.or(listens).unwrap_or(PeerPort::BGP),
                asn,
                passive: ground == Ground::Global && remote.is_some() && waits(cluster, address),
                local: self.source(cluster, address),
                origin: origin.clone(),
                description: origin.to_string(),
                restart_time: self.spec.max_restart_time,
                // Of an address nothing more is known, even if some node has it.
                cluster_id: None,
                spec: Some(&self.spec),
            });
        }
        if let Some(selector) = &self.peer_selector {
            for (name, node) in &cluster.nodes {
                if *name != cluster.me && selector.matches(&node.labels) {
                    for address in node.addresses() {
                        out.push(self.to_node(ground, origin, cluster, name, node, address));
                    }
                }
            }
        }
    }

    /// The other half of objects that have our node as remote end.
    fn reverse<'a>(&'a self, origin: &ObjectRef, cluster: &Cluster, out: &mut Vec<Wanted<'a>>) {
        let Some(own) = cluster.own() else { return };
        let selected = match (&self.peer_selector, self.spec.peer_ip) {
            (Some(selector), _) => selector.matches(&own.labels).then_some(None),
            (None, Some(PeerEndpoint { address, port })) => {
                let ours = own.addresses().any(|own| own == address)
                    && cluster.own_asn() == self.asn(cluster)
                    && port.is_none_or(|port| port == cluster.port_of(&cluster.me));
                ours.then_some(Some(family_of(address)))
            }
            (None, None) => None,
        };
        let Some(only) = selected else { return };
        for (name, node) in &cluster.nodes {
            if *name == cluster.me || !self.belongs_to(name, node) {
                continue;
            }
            for address in
                node.addresses().filter(|address| only.is_none_or(|family| family == family_of(*address)))
            {
                out.push(self.to_node(Ground::Reverse, origin, cluster, name, node, address));
            }
        }
    }

    fn to_node<'a>(
        &'a self,
        ground: Ground,
        origin: &ObjectRef,
        cluster: &Cluster,
        name: &NodeName,
        node: &Node,
        address: IpAddr,
    ) -> Wanted<'a> {
        Wanted {
            ground,
            address,
            port: cluster.port_of(name),
            asn: cluster.asn_of(node),
            passive: false,
            local: self.source(cluster, address),
            origin: origin.clone(),
            description: format!("{origin} to node {name}"),
            restart_time: self.spec.max_restart_time,
            cluster_id: node.cluster_id,
            spec: Some(&self.spec),
        }
    }

    fn asn(&self, cluster: &Cluster) -> Asn {
        self.spec.asn.filter(|asn| asn.0 != 0).unwrap_or_else(|| cluster.default_asn())
    }

    fn source(&self, cluster: &Cluster, address: IpAddr) -> Option<IpAddr> {
        match self.spec.source_address {
            SourceAddress::UseNodeIp => cluster.own_address(family_of(address)),
            SourceAddress::Any => None,
        }
    }
}

/// The sessions of the mesh with one other node.
pub(super) fn mesh(cluster: &Cluster, name: &NodeName) -> Vec<Claim> {
    let ours = cluster.own().is_some_and(|own| own.cluster_id.is_none());
    let secret = cluster.default_config().is_some_and(|config| config.mesh_password);
    let remote = cluster.nodes.get(name).filter(|node| node.cluster_id.is_none() && *name != cluster.me);
    let Some(node) = remote.filter(|_| ours && cluster.mesh() && !secret) else { return Vec::new() };
    let session = |address: IpAddr| {
        claim(
            Wanted {
                ground: Ground::Mesh,
                address,
                port: cluster.port_of(name),
                asn: cluster.asn_of(node),
                passive: waits(cluster, address),
                local: cluster.own_address(family_of(address)),
                origin: ObjectRef::new("Node", name.as_str()),
                description: format!("mesh with node {name}"),
                restart_time: cluster.default_config().and_then(|config| config.mesh_max_restart_time),
                cluster_id: None,
                spec: None,
            },
            cluster,
        )
    };
    node.addresses().filter_map(session).collect()
}

/// Whether our side waits for the other to connect: the one whose address is smaller *as text* connects, and both
/// ends must come to the same answer, those of other implementations included.
fn waits(cluster: &Cluster, remote: IpAddr) -> bool {
    cluster.own_address(family_of(remote)).is_some_and(|local| remote.to_string() > local.to_string())
}

/// The claim for a session; none with ourselves, or in a family in which we have no address.
fn claim(wanted: Wanted<'_>, cluster: &Cluster) -> Option<Claim> {
    let family = family_of(wanted.address);
    let own = cluster.own_address(family)?;
    if own == wanted.address {
        return None;
    }
    let spec = wanted.spec;
    // The other half of an object presents the node's own AS: what the object says is about its own end.
    let own_end = spec.filter(|_| wanted.ground != Ground::Reverse);
    let local_asn = own_end.and_then(|spec| spec.local_asn).filter(|asn| asn.0 != 0);
    let external = wanted.asn != local_asn.unwrap_or_else(|| cluster.own_asn());
    let node = cluster.own()?;
    let mut config = PeerConfig::new(RemoteAsn::Is(wanted.asn));
    config.local_asn = local_asn.filter(|asn| *asn != cluster.own_asn()).map(LocalAsn::new);
    // A reflector of our own cluster has the same clients; whoever is of another, or of none that is known, is one.
    let ours = node.cluster_id.filter(|_| !external);
    config.route_reflector_client = ours.is_some() && ours != wanted.cluster_id;
    let allowed = own_end.map_or(0, |spec| spec.allowed_local_asns);
    config.allow_own_as = u8::try_from(allowed).unwrap_or(u8::MAX);
    config.families = FamilySet::only(family);
    if cluster.srv6 {
        // As every node of a cluster with SRv6 does, whatever the session runs over.
        config.families.insert(Family::Ipv6SrPolicy);
        // Nodes name their IPv6 addresses as next hops of IPv4 prefixes.
        config.extended_next_hop = family == Family::Ipv4Unicast;
    }
    if cluster.multinet {
        config.families.insert(if family.is_ipv4() { Family::Ipv4Vpn } else { Family::Ipv6Vpn });
    }
    config.add_path = AddPath::ALL;
    config.keepalive = spec.and_then(|spec| spec.keepalive_time).and_then(whole_seconds);
    config.passive = wanted.passive;
    config.graceful_restart = Some(GracefulRestart {
        restart_time: wanted.restart_time.and_then(restart_time).unwrap_or(RestartTime::USUAL),
        ..GracefulRestart::USUAL
    });
    config.local_address = wanted.local;
    config.multihop_ttl = external.then_some(MULTIHOP_TTL);
    config.ttl_security = NonZeroU8::new(spec.map_or(0, |spec| spec.ttl_security));
    config.next_hop = match spec.map(|spec| spec.next_hop).unwrap_or_default() {
        NextHopChoice::SelfAddress => NextHopMode::SelfAddress,
        NextHopChoice::Keep => NextHopMode::Keep,
        NextHopChoice::KeepExternal if external => NextHopMode::Keep,
        NextHopChoice::KeepExternal | NextHopChoice::Auto => NextHopMode::Default,
    };
    let through = match config.next_hop {
        NextHopMode::SelfAddress => true,
        NextHopMode::Default => external,
        NextHopMode::Keep => false,
    };
    let filters = spec.map_or(&[][..], |spec| &spec.filters);
    let filters: Vec<&FilterName> = filters.iter().filter(|name| cluster.filters.contains(*name)).collect();
    let of = |direction| filters.iter().map(move |name| policy_name(name, direction));
    let first = through.then(|| PolicyName::new(THROUGH_POLICY));
    let last = PolicyName::new(EXPORT_POLICY);
    config.import = Chain::new(of(Direction::Import), Otherwise::Accept);
    config.export =
        Chain::new(first.into_iter().chain(of(Direction::Export)).chain([last]), Otherwise::Reject);
    config.next_hop_v4 = node.ipv4.map(|net| net.addr());
    config.next_hop_v6 = node.ipv6.map(|net| net.addr());
    config.description = wanted.description;
    let key = PeerKey::new(wanted.address).with_port(wanted.port.0);
    // The other end would go through the same gateway from the wrong side.
    let gateway = own_end.and_then(|spec| spec.reachable_by);
    Some(Claim { ground: wanted.ground, key, config: Box::new(config), origin: wanted.origin, gateway })
}

/// A KEEPALIVE interval that a session with our hold time can have.
fn whole_seconds(time: Duration) -> Option<NonZeroU16> {
    let rounded = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    NonZeroU16::new(u16::try_from(rounded).ok().filter(|secs| *secs <= 90)?)
}

/// A restart time as a session can have it, rounded up.
pub(super) fn restart_time(time: Duration) -> Option<RestartTime> {
    let secs = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u16::try_from(secs).ok().and_then(RestartTime::new)
}

/// Collects what is wrong with one object.
struct Problems {
    object: ObjectRef,
    all: Vec<Condition>,
}

impl Problems {
    fn error(&mut self, field: &str, reason: impl AsRef<str>, remedy: &str) {
        self.all.push(Condition::error(self.object.clone(), field, reason, remedy));
    }

    fn warning(&mut self, field: &str, reason: impl AsRef<str>, remedy: &str) {
        self.all.push(Condition::warning(self.object.clone(), field, reason, remedy));
    }

    fn selector(&mut self, field: &str, text: Option<&str>) -> Option<Selector> {
        match Selector::parse(text?) {
            Ok(selector) => Some(selector),
            Err(error) => {
                self.error(field, format!("{error}, so it selects no node"), "correct the selector");
                None
            }
        }
    }

    /// Fields that exclude or need one another.
    fn shape(&mut self, spec: &PeerSpec) {
        if spec.node.is_some() && spec.node_selector.is_some() {
            self.error("spec.nodeSelector", "node and nodeSelector exclude each other", "remove one of them");
        }
        if spec.peer_ip.is_some() && spec.peer_selector.is_some() {
            self.error(
                "spec.peerSelector",
                "peerIP and peerSelector exclude each other",
                "remove one of them",
            );
        }
        if spec.peer_ip.is_none() && spec.peer_selector.is_none() && spec.local_workload_selector.is_none() {
            self.error("spec", "it names no remote end", "set peerIP or peerSelector");
        }
        if let (Some(gateway), Some(PeerEndpoint { address, .. })) = (spec.reachable_by, spec.peer_ip)
            && gateway.is_ipv4() != address.is_ipv4()
        {
            self.error(
                "spec.reachableBy",
                format!("{gateway} is of another IP version than the neighbor {address}"),
                "set a gateway of the neighbor's IP version",
            );
        }
        if let Some(PeerEndpoint { address, port }) = spec.peer_ip {
            let multicast = address.is_multicast() || address.is_unspecified();
            if multicast || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
                self.error("spec.peerIP", format!("{address} cannot be a neighbor"), "set a unicast address");
            }
            if port == Some(PeerPort(0)) {
                self.error("spec.peerIP", "port 0 cannot be connected to", "set a port from 1 to 65535");
            }
        }
        if spec.peer_selector.is_some() && spec.asn.is_some_and(|asn| asn.0 != 0) {
            self.warning(
                "spec.asNumber",
                "ignored with peerSelector: each node has its own",
                "remove asNumber",
            );
        }
        if let Some(time) = spec.keepalive_time
            && whole_seconds(time).is_none()
        {
            self.warning(
                "spec.keepaliveTime",
                format!(
                    "{time:?} is not between 1 s and the hold time of 90 s; a third of the hold time is used"
                ),
                "set a time from 1s to 90s",
            );
        }
    }

    /// Fields that this version does not act on.
    fn unsupported(&mut self, spec: &PeerSpec) {
        if spec.local_workload_selector.is_some() {
            self.error(
                "spec.localWorkloadSelector",
                "not supported yet, so there is no session",
                "use peerIP",
            );
        }
        if spec.password {
            self.error(
                "spec.password",
                "passwords are not supported yet, so there is no session",
                "remove password",
            );
        }
        if spec.max_restart_time.is_some_and(|time| restart_time(time).is_none()) {
            self.warning(
                "spec.maxRestartTime",
                format!("more than {} s does not fit; the usual time is used", RestartTime::MAX.secs()),
                "set a shorter time",
            );
        }
    }
}
