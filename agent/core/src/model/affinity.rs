//! A BlockAffinity: which node a block of pod addresses belongs to.

use ipnet::IpNet;

use super::NodeName;

/// One affinity row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// The block, host bits cleared.
    pub cidr: IpNet,
    /// The node it belongs to.
    pub node: NodeName,
    /// Where it is in its life.
    pub state: AffinityState,
    /// The row belongs to a node; `false` for virtual owners such as load balancers.
    pub host: bool,
    /// Marked as deleted.
    pub deleted: bool,
}

impl Affinity {
    /// A confirmed row of a node.
    #[must_use]
    pub fn confirmed(cidr: IpNet, node: NodeName) -> Self {
        Self { cidr: cidr.trunc(), node, state: AffinityState::Confirmed, host: true, deleted: false }
    }

    /// The node announces the block as one route, and suppresses the host routes inside.
    #[must_use]
    pub fn announces(&self) -> bool {
        self.host && !self.deleted && self.state == AffinityState::Confirmed
    }
}

/// `state` of a BlockAffinity.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AffinityState {
    /// Being claimed; treated as absent.
    Pending,
    /// In force. Rows of old, without a state, are too.
    Confirmed,
    /// Being released.
    PendingDeletion,
}
