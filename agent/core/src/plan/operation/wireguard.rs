//! What to do about WireGuard.

use std::net::IpAddr;
use std::sync::Arc;

use super::VppAction;
use crate::desired::WireguardPeer;
use crate::event::SwIfIndex;
use crate::model::{KeyPair, PublicKey};

/// An operation on a WireGuard interface or a peer of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireguardAction {
    /// Make an interface. Answered by [`VppReply::SwIfIndex`](crate::event::VppReply::SwIfIndex). VPP makes another one though
    /// there is one just like it.
    AddInterface {
        /// Where packets come from.
        local: IpAddr,
        /// UDP port that it listens on.
        port: u16,
        /// Our keys.
        keys: KeyPair,
    },
    /// Delete an interface with its peers.
    DelInterface {
        /// The interface.
        index: SwIfIndex,
    },
    /// Add a peer, and ask for news of it. Answered by [`VppReply::Index`](crate::event::VppReply::Index);
    /// [`VppFailure::Taken`](super::VppFailure::Taken) if the interface has one with this key.
    AddPeer {
        /// The interface.
        interface: SwIfIndex,
        /// The peer's key.
        public: PublicKey,
        /// All else about it.
        peer: Arc<WireguardPeer>,
    },
    /// Remove a peer; [`VppFailure::Absent`](super::VppFailure::Absent) if there is none.
    DelPeer {
        /// The number that VPP gave it.
        index: u32,
    },
}

impl From<WireguardAction> for VppAction {
    fn from(action: WireguardAction) -> Self {
        Self::Wireguard(action)
    }
}
