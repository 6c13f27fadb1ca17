//! What executors are asked to do about source NAT. Each request is one message; VPP dies of some of them before it has
//! addresses, so those come first and are answered before anything else leaves.

use ipnet::IpNet;

use crate::desired::{SnatAddresses, SnatTable};
use crate::event::SwIfIndex;

/// What to do about source NAT.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NatAction {
    /// Set the addresses that sources become; one that is absent stays what it was. At least one is there, as VPP takes
    /// none at all for an order to forget everything.
    SetAddresses(SnatAddresses),
    /// Leave a destination alone, or no longer; done already is done.
    Exclude {
        /// The destination, host bits cleared.
        prefix: IpNet,
        /// Whether it is left alone.
        add: bool,
    },
    /// Decide by the rules for Kubernetes what is translated.
    SetPolicy,
    /// Say what an interface is; said already is said.
    Interface {
        /// The interface.
        index: SwIfIndex,
        /// What it is, or is no longer.
        table: SnatTable,
        /// Whether it is.
        add: bool,
    },
}
