//! A VPP without wire and data plane: what it holds, and what it answers. It panics where a request would do harm.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use agent_core::desired::{IpipKey, SnatAddresses, SnatTable, Tunnel, WireguardKey, WireguardPeer};
use agent_core::event::{
    Dump, DumpedPeer, DumpedProfile, DumpedTunnel, FibPath, FibPathKind, FibSourceId, Interface, SwIfIndex,
    VppReply,
};
use agent_core::model::{Psk, PublicKey, RouteKey, TableId};
use agent_core::plan::{
    IkeAction, IkeRequest, NatAction, VppAction, VppFailure, WireguardAction, profile_name,
};
use bgp_core::Family;
use ipnet::IpNet;

use super::srv6::Srv6;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Vpp {
    pub interfaces: BTreeMap<u32, Interface>,
    pub tunnels: BTreeMap<u32, Tunnel>,
    pub gso: BTreeSet<u32>,
    pub cnat: BTreeSet<u32>,
    pub vrfs: BTreeMap<(u32, Family), TableId>,
    pub tables: BTreeSet<(TableId, Family)>,
    pub source: Option<FibSourceId>,
    /// Names of the FIB sources of others.
    pub sources: Vec<&'static str>,
    pub peers: BTreeMap<u32, Peer>,
    /// Which peer each gateway on a WireGuard interface leads to. When that one goes it leads nowhere, though another one could
    /// have its address, until a peer is added.
    pub bound: BTreeMap<(u32, IpAddr), u32>,
    pub routes: BTreeMap<RouteKey, Vec<FibPath>>,
    /// Under VPP's own source.
    pub others: BTreeMap<RouteKey, Vec<FibPath>>,
    pub snat: Option<Snat>,
    pub profiles: BTreeMap<String, IkeRequest>,
    /// Other nodes that take part in IKEv2, with their keys.
    pub ike_peers: BTreeMap<Ipv4Addr, Psk>,
    /// Exchanges begun here that VPP goes on with.
    pub exchanges: BTreeSet<String>,
    pub crypto_threads: u32,
    /// Interfaces changed without anybody's request.
    pub news: bool,
    pub srv6: Srv6,
}

/// What VPP holds of source NAT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snat {
    pub addresses: SnatAddresses,
    pub excluded: BTreeSet<IpNet>,
    pub interfaces: BTreeSet<(u32, SnatTable)>,
    pub policy: bool,
}

/// A peer of a WireGuard interface.
#[derive(Clone, Debug)]
pub struct Peer {
    pub interface: u32,
    pub public: PublicKey,
    pub value: WireguardPeer,
    pub established: bool,
}

/// What VPP holds, said without indices, so that two of them can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canonical {
    pub tunnels: BTreeMap<String, String>,
    pub peers: BTreeMap<String, String>,
    pub routes: BTreeMap<String, Vec<String>>,
    /// Of networks: the others stay for ever.
    pub tables: Vec<(TableId, Family)>,
    pub snat: Option<Snat>,
    pub srv6: Srv6,
}

impl Vpp {
    /// A VPP as its manager leaves it: an uplink with these addresses, and a tunnel that is none of our business.
    pub fn new(addresses: &[IpNet]) -> Self {
        let uplink = Interface {
            index: SwIfIndex(1),
            name: "host-eth0".into(),
            tag: "".into(),
            admin_up: true,
            mtu: 9000,
            addresses: addresses.to_vec(),
            unnumbered: None,
        };
        let foreign = Interface {
            index: SwIfIndex(2),
            name: "ipip0".into(),
            tag: "someone else".into(),
            admin_up: true,
            mtu: 9000,
            addresses: Vec::new(),
            unnumbered: None,
        };
        Self {
            interfaces: BTreeMap::from([(1, uplink), (2, foreign)]),
            tunnels: BTreeMap::from([(
                2,
                ipip("192.0.2.1".parse().unwrap(), "203.0.113.99".parse().unwrap()),
            )]),
            gso: BTreeSet::new(),
            cnat: BTreeSet::new(),
            vrfs: BTreeMap::new(),
            tables: BTreeSet::from([
                (TableId::MAIN, Family::Ipv4Unicast),
                (TableId::MAIN, Family::Ipv6Unicast),
            ]),
            source: None,
            sources: Vec::new(),
            peers: BTreeMap::new(),
            bound: BTreeMap::new(),
            routes: BTreeMap::new(),
            snat: None,
            profiles: BTreeMap::new(),
            ike_peers: BTreeMap::new(),
            exchanges: BTreeSet::new(),
            crypto_threads: 0,
            news: false,
            srv6: Srv6::default(),
            others: BTreeMap::new(),
        }
    }

    pub fn execute(&mut self, action: &VppAction) -> Result<VppReply, VppFailure> {
        match action {
            VppAction::Dump => return Ok(VppReply::Dump(Box::new(self.dump()))),
            VppAction::AddFibSource => {
                assert!(self.source.is_none(), "a second FIB source of the same name");
                self.source = Some(FibSourceId(20));
                return Ok(VppReply::FibSource(FibSourceId(20)));
            }
            VppAction::AddTable { table, family } => {
                self.tables.insert((*table, *family));
            }
            VppAction::DelTable { table, family: of } => {
                assert!(table.network().is_some(), "table {table} is none of ours");
                assert!(
                    !self.vrfs.iter().any(|((_, its), in_it)| its == of && in_it == table),
                    "a tunnel is in it"
                );
                let mut routes = self.routes.keys().filter(|key| key.table == *table);
                assert!(!routes.any(|key| family(&key.prefix) == *of), "a route is in it");
                if !self.tables.remove(&(*table, *of)) {
                    return Err(VppFailure::Absent);
                }
            }
            VppAction::AddDecapNext { family } => {
                return Ok(VppReply::Index(if *family == Family::Ipv4Unicast { 4 } else { 6 }));
            }
            VppAction::AddIpip { local, remote } => {
                let tunnel = ipip(*local, *remote);
                if let Some((index, _)) = self.tunnels.iter().find(|(_, has)| **has == tunnel) {
                    return Err(VppFailure::Exists(SwIfIndex(*index)));
                }
                return Ok(VppReply::SwIfIndex(self.add(tunnel)));
            }
            VppAction::AddVxlan { key, decap_next } => {
                assert_eq!(
                    *decap_next,
                    if key.local.is_ipv4() { 4 } else { 6 },
                    "packets would come out wrongly"
                );
                let tunnel = Tunnel::Vxlan(*key);
                if self.tunnels.values().any(|has| *has == tunnel) {
                    return Err(VppFailure::Taken);
                }
                return Ok(VppReply::SwIfIndex(self.add(tunnel)));
            }
            VppAction::DelIpip { index } => {
                if !self.tunnels.contains_key(&index.0) {
                    return Err(VppFailure::Absent);
                }
                self.remove(*index);
            }
            VppAction::DelVxlan { key, .. } => {
                let tunnel = Tunnel::Vxlan(*key);
                let Some(index) =
                    self.tunnels.iter().find(|(_, has)| **has == tunnel).map(|(index, _)| *index)
                else {
                    return Err(VppFailure::Absent);
                };
                self.remove(SwIfIndex(index));
            }
            VppAction::Wireguard(action) => return self.wireguard(action),
            VppAction::SetTag { index, tag } => self.interface(*index).tag = Arc::clone(tag),
            VppAction::SetAddress { index, address } => {
                let addresses = &mut self.interface(*index).addresses;
                if !addresses.contains(address) {
                    addresses.push(*address);
                }
            }
            VppAction::SetUnnumbered { index, lender } => self.interface(*index).unnumbered = Some(*lender),
            VppAction::SetCnat { index } => {
                self.interface(*index);
                self.cnat.insert(index.0);
            }
            VppAction::SetMtu { index, mtu } => self.interface(*index).mtu = *mtu,
            VppAction::SetVrf { index, family, table } => {
                assert!(self.tables.contains(&(*table, *family)), "no table {table}");
                assert_eq!(self.interface(*index).unnumbered, None, "VPP refuses that");
                self.vrfs.insert((index.0, *family), *table);
            }
            VppAction::Srv6(action) => self.srv6.execute(action, &self.tables)?,
            VppAction::SetUp { index } => {
                let profile = self.profiles.values().find(|profile| profile.index == *index);
                assert_eq!(profile, None, "a protected tunnel would carry traffic in the clear");
                self.interface(*index).admin_up = true;
            }
            VppAction::SetGso { index } => {
                self.interface(*index);
                self.gso.insert(index.0);
            }
            VppAction::Ike(action) => return self.ike(action),
            VppAction::Nat(action) => return self.nat(action),
            VppAction::PutRoute { source, table, prefix, paths } => {
                assert_eq!(Some(*source), self.source);
                assert!(self.tables.contains(&(*table, family(prefix))), "no table {table}");
                assert_eq!(*prefix, prefix.trunc());
                assert!(!paths.is_empty());
                for path in paths.iter() {
                    if let FibPathKind::Attached(index) | FibPathKind::Via(_, index) = path.kind {
                        self.interface(index);
                    }
                    if let FibPathKind::Via(gateway, index) = path.kind
                        && let Some(Tunnel::Wireguard(_)) = self.tunnels.get(&index.0)
                    {
                        self.bind(index.0, gateway);
                    }
                }
                self.routes.insert(RouteKey { table: *table, prefix: *prefix }, paths.to_vec());
            }
            VppAction::DelOther { table, prefix } => {
                if self.others.remove(&RouteKey { table: *table, prefix: *prefix }).is_none() {
                    return Err(VppFailure::Absent);
                }
            }
            VppAction::DelRoute { source, table, prefix } => {
                assert_eq!(Some(*source), self.source);
                if self.routes.remove(&RouteKey { table: *table, prefix: *prefix }).is_none() {
                    return Err(VppFailure::Absent);
                }
            }
        }
        Ok(VppReply::Done)
    }

    fn wireguard(&mut self, action: &WireguardAction) -> Result<VppReply, VppFailure> {
        match action {
            WireguardAction::AddInterface { local, port, keys } => {
                let key = WireguardKey { local: *local, port: *port, key: keys.public().id() };
                let tunnel = Tunnel::Wireguard(key);
                assert!(self.tunnels.values().all(|has| *has != tunnel), "VPP would make a second one");
                return Ok(VppReply::SwIfIndex(self.add(tunnel)));
            }
            WireguardAction::DelInterface { index } => {
                let gone = self.tunnels.get(&index.0);
                assert!(matches!(gone, None | Some(Tunnel::Wireguard(_))), "{gone:?}");
                if gone.is_none() {
                    return Err(VppFailure::Absent);
                }
                self.remove(*index);
                self.peers.retain(|_, peer| peer.interface != index.0);
                self.bound.retain(|(interface, _), _| *interface != index.0);
            }
            WireguardAction::AddPeer { interface, public, peer } => {
                assert!(matches!(self.tunnels.get(&interface.0), Some(Tunnel::Wireguard(_))));
                assert!((1..=WireguardPeer::MAX_ALLOWED).contains(&peer.allowed.len()));
                let mut of_interface = self.peers.values().filter(|has| has.interface == interface.0);
                if of_interface.any(|has| has.public == *public) {
                    return Err(VppFailure::Taken);
                }
                let index = (0..).find(|index| !self.peers.contains_key(index)).unwrap();
                let value = WireguardPeer::clone(peer);
                let peer = Peer { interface: interface.0, public: *public, value, established: false };
                self.peers.insert(index, peer);
                let gateways: BTreeSet<IpAddr> = self
                    .routes
                    .values()
                    .flatten()
                    .filter_map(|path| match path.kind {
                        FibPathKind::Via(gateway, at) if at == *interface => Some(gateway),
                        _ => None,
                    })
                    .collect();
                for gateway in gateways {
                    self.bind(interface.0, gateway);
                }
                return Ok(VppReply::Index(index));
            }
            WireguardAction::DelPeer { index } => {
                if self.peers.remove(index).is_none() {
                    return Err(VppFailure::Absent);
                }
                self.bound.retain(|_, peer| peer != index);
            }
        }
        Ok(VppReply::Done)
    }

    fn bind(&mut self, interface: u32, gateway: IpAddr) {
        let covers = |peer: &&Peer| {
            peer.interface == interface && peer.value.allowed.iter().any(|net| net.contains(&gateway))
        };
        let found = self.peers.iter().find(|(_, peer)| covers(peer)).map(|(index, _)| *index);
        if let Some(index) = found {
            self.bound.entry((interface, gateway)).or_insert(index);
        }
    }

    fn add(&mut self, tunnel: Tunnel) -> SwIfIndex {
        // Indices are used again at once.
        let index = (1..).find(|index| !self.interfaces.contains_key(index)).unwrap();
        self.tunnels.insert(index, tunnel);
        let interface = Interface {
            index: SwIfIndex(index),
            name: format!("tunnel{index}").into(),
            tag: "".into(),
            admin_up: false,
            mtu: 9000,
            addresses: Vec::new(),
            unnumbered: None,
        };
        self.interfaces.insert(index, interface);
        SwIfIndex(index)
    }

    fn remove(&mut self, index: SwIfIndex) {
        let user = self
            .routes
            .iter()
            .chain(&self.others)
            .find(|(_, paths)| paths.iter().any(|path| leads_into(path, index)));
        assert_eq!(user, None, "a tunnel goes while a route leads into it");
        let profile = self.profiles.values().find(|profile| profile.index == index);
        assert_eq!(profile, None, "a tunnel goes while a profile protects it");
        self.tunnels.remove(&index.0);
        self.interfaces.remove(&index.0);
        self.gso.remove(&index.0);
        self.cnat.remove(&index.0);
        self.vrfs.retain(|(of, _), _| *of != index.0);
    }

    fn ike(&mut self, action: &IkeAction) -> Result<VppReply, VppFailure> {
        match action {
            IkeAction::PutProfile(request) => self.put_profile(request),
            IkeAction::DeleteProfile { ends } => {
                let gone = self.profiles.remove(&*profile_name(ends)).ok_or(VppFailure::Absent)?;
                self.exchanges.remove(&*gone.name());
                // It may be gone.
                self.set_up(gone.index, false);
            }
            IkeAction::Initiate { profile, renew } => {
                assert!(profile.begins.is_some(), "the other one begins");
                assert!(!self.interface(profile.index).admin_up, "what is up would go down");
                if *renew {
                    self.put_profile(profile);
                } else {
                    assert!(!self.exchanges.contains(&*profile.name()), "VPP goes on with it by itself");
                }
                assert_eq!(self.profiles.get(&*profile.name()), Some(&**profile));
                self.exchanges.insert(profile.name().to_string());
                self.negotiate();
            }
            IkeAction::AsyncCrypto { threads } => self.crypto_threads = *threads,
        }
        Ok(VppReply::Done)
    }

    fn put_profile(&mut self, request: &IkeRequest) {
        self.interface(request.index);
        self.exchanges.remove(&*request.name());
        self.set_up(request.index, false);
        self.profiles.insert(request.name().to_string(), request.clone());
        self.negotiate();
    }

    /// From now on this node takes part, or doesn't.
    pub fn ike_peer(&mut self, address: &str, psk: Option<&str>) {
        let address = address.parse().unwrap();
        match psk.and_then(|psk| Psk::new(psk.as_bytes().to_vec())) {
            Some(psk) => drop(self.ike_peers.insert(address, psk)),
            None => {
                self.ike_peers.remove(&address);
                let down: Vec<_> = self.profiles.values().filter(|p| p.remote == address).cloned().collect();
                for profile in down {
                    self.set_up(profile.index, false);
                    if profile.begins.is_some() {
                        self.exchanges.insert(profile.name().to_string());
                    }
                }
            }
        }
        self.negotiate();
    }

    fn negotiate(&mut self) {
        for (name, profile) in self.profiles.clone() {
            let Some(key) = self.ike_peers.get(&profile.remote) else { continue };
            let begun = profile.begins.is_none() || self.exchanges.remove(&name);
            if begun && *key == profile.psk {
                self.set_up(profile.index, true);
            }
        }
    }

    /// A node that isn't believed takes the responder's tunnel with it.
    pub fn disbelieve(&mut self, remote: &str) {
        let remote: IpAddr = remote.parse().unwrap();
        let found = self.tunnels.iter().find(|(_, tunnel)| tunnel.remote() == Some(remote));
        let index = *found.unwrap().0;
        self.tunnels.remove(&index);
        self.interfaces.remove(&index);
        self.gso.remove(&index);
        self.cnat.remove(&index);
        self.news = true;
    }

    fn set_up(&mut self, index: SwIfIndex, up: bool) {
        if let Some(interface) = self.interfaces.get_mut(&index.0)
            && std::mem::replace(&mut interface.admin_up, up) != up
        {
            self.news = true;
        }
    }

    fn nat(&mut self, action: &NatAction) -> Result<VppReply, VppFailure> {
        if let NatAction::SetAddresses(addresses) = action {
            assert_ne!(*addresses, SnatAddresses::default(), "everything would be forgotten");
            let snat = self.snat.get_or_insert_default();
            snat.addresses = addresses.over(snat.addresses);
            return Ok(VppReply::Done);
        }
        let snat = self.snat.as_mut().expect("a VPP dies of this before it has addresses");
        match action {
            NatAction::SetAddresses(_) => {}
            NatAction::Exclude { prefix, add } => {
                assert_eq!(*prefix, prefix.trunc());
                let _ = if *add { snat.excluded.insert(*prefix) } else { snat.excluded.remove(prefix) };
            }
            NatAction::SetPolicy => snat.policy = true,
            NatAction::Interface { index, table, add } => {
                let key = (index.0, *table);
                let _ = if *add { snat.interfaces.insert(key) } else { snat.interfaces.remove(&key) };
            }
        }
        Ok(VppReply::Done)
    }

    fn interface(&mut self, index: SwIfIndex) -> &mut Interface {
        self.interfaces.get_mut(&index.0).unwrap_or_else(|| panic!("no interface {index:?}"))
    }

    pub fn dump(&self) -> Dump {
        Dump {
            interfaces: self.interfaces.values().cloned().collect(),
            tables: self.tables.iter().copied().collect(),
            fib_source: self.source,
            source_names: self
                .sources
                .iter()
                .map(|name| (*name).into())
                .chain(self.source.map(|_| "peregrine".into()))
                .collect(),
            tunnels: self
                .tunnels
                .iter()
                .map(|(index, tunnel)| DumpedTunnel { index: SwIfIndex(*index), tunnel: *tunnel })
                .collect(),
            vrfs: self
                .vrfs
                .iter()
                .map(|((index, family), table)| (SwIfIndex(*index), *family, *table))
                .collect(),
            wireguard: self
                .peers
                .iter()
                .map(|(index, peer)| DumpedPeer {
                    index: *index,
                    interface: SwIfIndex(peer.interface),
                    public: peer.public,
                    endpoint: peer.value.endpoint,
                    port: peer.value.port,
                    keepalive: peer.value.keepalive,
                    allowed: peer.value.allowed.clone(),
                    established: peer.established,
                })
                .collect(),
            srv6: self.srv6.dump(),
            routes: self.routes.iter().map(|(key, paths)| (*key, as_listed(key, paths))).collect(),
            snat: self.snat.as_ref().map(|snat| snat.addresses),
            ike: self
                .profiles
                .iter()
                .map(|(name, profile)| DumpedProfile {
                    name: name.as_str().into(),
                    index: profile.index,
                    psk: Some(profile.psk.clone()),
                    begins: profile.begins,
                    whole: true,
                })
                .collect(),
            others: self.others.iter().map(|(key, paths)| (*key, paths.clone())).collect(),
        }
    }

    pub fn canonical(&self) -> Canonical {
        let name = |index: SwIfIndex| match self.tunnels.get(&index.0) {
            Some(Tunnel::Ipip(key)) => format!("tunnel {} {}", key.local, key.remote),
            Some(tunnel) => tunnel.to_string(),
            None => self.interfaces[&index.0].name.to_string(),
        };
        let tunnels = self.tunnels.iter().map(|(index, tunnel)| {
            let interface = &self.interfaces[index];
            let lender = interface.unnumbered.map(name);
            let gso = self.gso.contains(index);
            let mut settings =
                format!("{} up={} from={lender:?} gso={gso}", interface.tag, interface.admin_up);
            if interface.mtu != 9000 {
                settings += &format!(" mtu={}", interface.mtu);
            }
            if self.cnat.contains(index) {
                settings += " cnat=true";
            }
            if !interface.addresses.is_empty() {
                settings += &format!(" addresses={}", interface.addresses.len());
            }
            for ((_, family), table) in self.vrfs.iter().filter(|((of, _), _)| of == index) {
                settings += &format!(" {family} table={table}");
            }
            (tunnel.to_string(), settings)
        });
        let routes = self.routes.iter().map(|(key, paths)| {
            let path = |path: &FibPath| match path.kind {
                FibPathKind::Attached(index) => format!("{} weight {}", name(index), path.weight),
                FibPathKind::Via(gateway, index) => {
                    // Where a WireGuard interface is led to nobody, packets are dropped.
                    let peer = self.bound.get(&(index.0, gateway)).map(|peer| self.peers[peer].public);
                    let peer = match self.tunnels.get(&index.0) {
                        Some(Tunnel::Wireguard(_)) => format!(" to {peer:?}"),
                        _ => String::new(),
                    };
                    format!("{gateway} in {} weight {}{peer}", name(index), path.weight)
                }
                FibPathKind::Recursive(..) | FibPathKind::Drop | FibPathKind::Other => {
                    format!("{:?} weight {}", path.kind, path.weight)
                }
            };
            (key.to_string(), paths.iter().map(path).collect::<Vec<_>>())
        });
        let peers = self.peers.values().map(|peer| {
            let of = name(SwIfIndex(peer.interface));
            (format!("{} of {of}", peer.public), format!("{:?}", peer.value))
        });
        // VPP never forgets an address, so which it has depends on the way.
        let snat = self.snat.clone().map(|snat| Snat { addresses: SnatAddresses::default(), ..snat });
        Canonical {
            tunnels: tunnels.collect(),
            peers: peers.collect(),
            routes: routes.collect(),
            tables: self.tables.iter().filter(|(table, _)| table.network().is_some()).copied().collect(),
            snat,
            srv6: self.srv6.clone(),
        }
    }
}

/// What was put straight into an interface for one host is listed with that host as the gateway.
fn as_listed(key: &RouteKey, paths: &[FibPath]) -> Vec<FibPath> {
    let mut paths = paths.to_vec();
    if key.prefix.prefix_len() == key.prefix.max_prefix_len() {
        for path in &mut paths {
            if let FibPathKind::Attached(index) = path.kind {
                path.kind = FibPathKind::Via(key.prefix.addr(), index);
            }
        }
    }
    paths
}

fn ipip(local: IpAddr, remote: IpAddr) -> Tunnel {
    Tunnel::Ipip(IpipKey { local, remote })
}

fn leads_into(path: &FibPath, index: SwIfIndex) -> bool {
    matches!(path.kind, FibPathKind::Attached(into) | FibPathKind::Via(_, into) if into == index)
}

const fn family(prefix: &IpNet) -> Family {
    match prefix {
        IpNet::V4(_) => Family::Ipv4Unicast,
        IpNet::V6(_) => Family::Ipv6Unicast,
    }
}
