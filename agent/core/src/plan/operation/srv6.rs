//! What to do in VPP about SRv6. All of it is in the main table but what is steered.

use std::net::Ipv6Addr;
use std::sync::Arc;

use crate::model::{RouteKey, SidList, SrBehavior};

/// What to do in VPP about SRv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Srv6Action {
    /// Set the source of what is encapsulated.
    SetEncapSource(Ipv6Addr),
    /// Make a SID of this node, whose packets are looked up in the main table when they have been taken out;
    /// [`VppFailure::Taken`](super::VppFailure::Taken) if there is one already.
    AddLocalsid {
        /// The SID.
        sid: Ipv6Addr,
        /// What it does.
        behavior: SrBehavior,
    },
    /// Delete a SID of this node; [`VppFailure::Absent`](super::VppFailure::Absent) if there is none.
    DelLocalsid {
        /// The SID.
        sid: Ipv6Addr,
    },
    /// Make a policy with all of its lists; [`VppFailure::Taken`](super::VppFailure::Taken) if there is one already. Nothing
    /// is left of one that can't have all of them.
    AddPolicy {
        /// Its binding SID.
        bsid: Ipv6Addr,
        /// The source of what it encapsulates.
        source: Ipv6Addr,
        /// Its lists; at least one.
        lists: Arc<[SidList]>,
    },
    /// Give a policy other lists, or another source: what is new comes before what is old goes.
    ChangePolicy {
        /// Its binding SID.
        bsid: Ipv6Addr,
        /// The source of what it encapsulates.
        source: Ipv6Addr,
        /// Its lists; at least one.
        lists: Arc<[SidList]>,
    },
    /// Delete a policy; [`VppFailure::Absent`](super::VppFailure::Absent) if there is none.
    DelPolicy {
        /// Its binding SID.
        bsid: Ipv6Addr,
    },
    /// Steer a prefix into a policy, in the place of whichever it was steered into. The table and the policy are there.
    Steer {
        /// Table and prefix.
        route: RouteKey,
        /// The policy's binding SID.
        bsid: Ipv6Addr,
    },
    /// Steer a prefix no longer; [`VppFailure::Absent`](super::VppFailure::Absent) if it isn't.
    Unsteer {
        /// Table and prefix.
        route: RouteKey,
    },
}
