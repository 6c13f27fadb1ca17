//! A VPP without wire and data plane: what it holds, and what it answers. It panics where a request would do harm.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use agent_core::event::{
    Dump, DumpedTunnel, FibPath, FibPathKind, FibSourceId, Interface, SwIfIndex, VppReply,
};
use agent_core::model::{RouteKey, TableId};
use agent_core::plan::{VppAction, VppFailure};
use bgp_core::Family;
use ipnet::IpNet;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Vpp {
    pub interfaces: BTreeMap<u32, Interface>,
    pub tunnels: BTreeMap<u32, (IpAddr, IpAddr)>,
    pub gso: BTreeSet<u32>,
    pub tables: BTreeSet<(TableId, Family)>,
    pub source: Option<FibSourceId>,
    pub routes: BTreeMap<RouteKey, Vec<FibPath>>,
}

/// What VPP holds, said without indices, so that two of them can be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canonical {
    pub tunnels: BTreeMap<(IpAddr, IpAddr), String>,
    pub routes: BTreeMap<String, Vec<String>>,
}

impl Vpp {
    /// A VPP as its manager leaves it: an uplink with these addresses, and a tunnel that is none of our business.
    pub fn new(addresses: &[IpNet]) -> Self {
        let uplink = Interface {
            index: SwIfIndex(1),
            name: "host-eth0".into(),
            tag: "".into(),
            admin_up: true,
            addresses: addresses.to_vec(),
            unnumbered: None,
        };
        let foreign = Interface {
            index: SwIfIndex(2),
            name: "ipip0".into(),
            tag: "someone else".into(),
            admin_up: true,
            addresses: Vec::new(),
            unnumbered: None,
        };
        Self {
            interfaces: BTreeMap::from([(1, uplink), (2, foreign)]),
            tunnels: BTreeMap::from([(2, ("192.0.2.1".parse().unwrap(), "203.0.113.99".parse().unwrap()))]),
            gso: BTreeSet::new(),
            tables: BTreeSet::from([
                (TableId::MAIN, Family::Ipv4Unicast),
                (TableId::MAIN, Family::Ipv6Unicast),
            ]),
            source: None,
            routes: BTreeMap::new(),
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
            VppAction::AddIpip { local, remote } => {
                let ends = (*local, *remote);
                if let Some((index, _)) = self.tunnels.iter().find(|(_, has)| **has == ends) {
                    return Err(VppFailure::Exists(SwIfIndex(*index)));
                }
                // Indices are used again at once.
                let index = (1..).find(|index| !self.interfaces.contains_key(index)).unwrap();
                self.tunnels.insert(index, ends);
                let interface = Interface {
                    index: SwIfIndex(index),
                    name: format!("ipip{index}").into(),
                    tag: "".into(),
                    admin_up: false,
                    addresses: Vec::new(),
                    unnumbered: None,
                };
                self.interfaces.insert(index, interface);
                return Ok(VppReply::SwIfIndex(SwIfIndex(index)));
            }
            VppAction::DelIpip { index } => {
                if self.tunnels.remove(&index.0).is_none() {
                    return Err(VppFailure::Absent);
                }
                let user =
                    self.routes.iter().find(|(_, paths)| paths.iter().any(|path| leads_into(path, *index)));
                assert_eq!(user, None, "a tunnel goes while a route leads into it");
                self.interfaces.remove(&index.0);
                self.gso.remove(&index.0);
            }
            VppAction::SetTag { index, tag } => self.interface(*index).tag = Arc::clone(tag),
            VppAction::SetUnnumbered { index, lender } => self.interface(*index).unnumbered = Some(*lender),
            VppAction::SetUp { index } => self.interface(*index).admin_up = true,
            VppAction::SetGso { index } => {
                self.interface(*index);
                self.gso.insert(index.0);
            }
            VppAction::PutRoute { source, table, prefix, paths } => {
                assert_eq!(Some(*source), self.source);
                assert!(self.tables.contains(&(*table, family(prefix))), "no table {table}");
                assert_eq!(*prefix, prefix.trunc());
                assert!(!paths.is_empty());
                for path in paths.iter() {
                    if let FibPathKind::Attached(index) = path.kind {
                        self.interface(index);
                    }
                }
                self.routes.insert(RouteKey { table: *table, prefix: *prefix }, paths.to_vec());
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

    fn interface(&mut self, index: SwIfIndex) -> &mut Interface {
        self.interfaces.get_mut(&index.0).unwrap_or_else(|| panic!("no interface {index:?}"))
    }

    pub fn dump(&self) -> Dump {
        Dump {
            interfaces: self.interfaces.values().cloned().collect(),
            tables: self.tables.iter().copied().collect(),
            fib_source: self.source,
            tunnels: self
                .tunnels
                .iter()
                .map(|(index, (local, remote))| DumpedTunnel {
                    index: SwIfIndex(*index),
                    local: *local,
                    remote: *remote,
                })
                .collect(),
            routes: self.routes.iter().map(|(key, paths)| (*key, paths.clone())).collect(),
        }
    }

    pub fn canonical(&self) -> Canonical {
        let name = |index: SwIfIndex| match self.tunnels.get(&index.0) {
            Some((local, remote)) => format!("tunnel {local} {remote}"),
            None => self.interfaces[&index.0].name.to_string(),
        };
        let tunnels = self.tunnels.iter().map(|(index, ends)| {
            let interface = &self.interfaces[index];
            let lender = interface.unnumbered.map(name);
            let gso = self.gso.contains(index);
            (*ends, format!("{} up={} from={lender:?} gso={gso}", interface.tag, interface.admin_up))
        });
        let routes = self.routes.iter().map(|(key, paths)| {
            let path = |path: &FibPath| match path.kind {
                FibPathKind::Attached(index) => format!("{} weight {}", name(index), path.weight),
                FibPathKind::Via(..)
                | FibPathKind::Recursive(..)
                | FibPathKind::Drop
                | FibPathKind::Other => {
                    format!("{:?} weight {}", path.kind, path.weight)
                }
            };
            (key.to_string(), paths.iter().map(path).collect::<Vec<_>>())
        });
        Canonical { tunnels: tunnels.collect(), routes: routes.collect() }
    }
}

fn leads_into(path: &FibPath, index: SwIfIndex) -> bool {
    path.kind == FibPathKind::Attached(index)
}

const fn family(prefix: &IpNet) -> Family {
    match prefix {
        IpNet::V4(_) => Family::Ipv4Unicast,
        IpNet::V6(_) => Family::Ipv6Unicast,
    }
}
