//! What VPP holds of SRv6.

use std::net::Ipv6Addr;
use std::sync::Arc;

use crate::model::{RouteKey, SidList, SrBehavior};

/// What VPP holds of SRv6, whoever put it there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Srv6Dump {
    /// SIDs of this node in the main table, and what they do; absent for what this agent never asks for.
    pub localsids: Vec<(Ipv6Addr, Option<SrBehavior>)>,
    /// Policies.
    pub policies: Vec<DumpedPolicy>,
    /// What is steered into which policy.
    pub steering: Vec<(RouteKey, Ipv6Addr)>,
}

/// An SR policy found in VPP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedPolicy {
    /// Its binding SID.
    pub bsid: Ipv6Addr,
    /// The source of what the last list encapsulates, and all lists, ordered; absent for a policy of a kind that this agent
    /// never asks for.
    pub says: Option<(Ipv6Addr, Arc<[SidList]>)>,
}
