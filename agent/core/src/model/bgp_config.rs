//! BGPConfiguration: the cluster's settings, and the few that one node may override.

use std::sync::Arc;
use std::time::Duration;

use bgp_core::Asn;

use super::{NodeName, PeerPort};

/// The AS of a cluster that names none.
pub const DEFAULT_ASN: Asn = Asn(64512);

/// Which BGPConfiguration an object is. Other names mean nothing; the watcher reports them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BgpConfigName {
    /// `default`: the whole cluster.
    Default,
    /// `node.<name>`: one node.
    Node(NodeName),
}

impl BgpConfigName {
    /// Reads an object's name; `None` where it is neither `default` nor `node.<name>`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name.strip_prefix("node.") {
            Some("") => None,
            Some(node) => Some(Self::Node(NodeName::from(node))),
            None => (name == "default").then_some(Self::Default),
        }
    }

    /// The object's name.
    #[must_use]
    pub fn object_name(&self) -> Arc<str> {
        match self {
            Self::Default => "default".into(),
            Self::Node(node) => format!("node.{node}").into(),
        }
    }
}

/// The parts of a BGPConfiguration that this agent reads. `None` means that the field is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BgpConfig {
    /// Sessions between all nodes; true where absent. `default` only.
    pub mesh: Option<bool>,
    /// AS of nodes that have none of their own. `default` only.
    pub asn: Option<Asn>,
    /// Port that nodes listen on.
    pub listen_port: Option<PeerPort>,
    /// `bindMode: NodeIP`: nodes listen on their BGP addresses only. `default` only.
    pub bind_node_ip: bool,
    /// Sessions of the mesh ask for a password. `default` only.
    pub mesh_password: bool,
    /// Graceful-restart time of the sessions of the mesh; 120 s where absent. `default` only.
    pub mesh_max_restart_time: Option<Duration>,
}
