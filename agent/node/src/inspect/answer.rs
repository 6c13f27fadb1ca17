//! What the inspection socket answers, as the JSON that programs read: fields may be added, none renamed.
//!
//! Peers and routes have the fields that Cilium's agents give, and plain readable ones beside them. The commands read the
//! same types back.

mod check;
mod done;
mod explain;
mod peer;
mod policy;
mod route;
mod sr_policy;
mod vpp;

use std::time::Duration;

use bgp_wire::Family;
use serde::{Deserialize, Serialize};

pub(crate) use check::{Affected, CheckQuestion, PolicyChange};
pub(crate) use done::{ClearQuestion, Done, PeerAction, PeerQuestion, Soft};
#[cfg(test)]
pub(crate) use explain::Rule;
pub(crate) use explain::{Life, Received, Told};
#[cfg(test)]
pub(crate) use peer::{AddPath, GracefulRestart};
pub(crate) use peer::{Peer, PeerFamily};
pub(crate) use policy::{NeighborChain, Policies, Policy, direction, then};
#[cfg(test)]
pub(crate) use policy::{NeighborPolicies, Statement};
pub(crate) use route::{Path, Route};
pub(crate) use sr_policy::SrPolicy;
pub(crate) use vpp::{Audited, Count, Problem, Unsettled, Vpp, VppObject, Wireguard, WireguardSession};

/// The program itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Version {
    /// Its release.
    pub(crate) version: String,
    /// The commit it was built from.
    pub(crate) commit: String,
    /// VPP releases whose messages it speaks.
    pub(crate) vpp_releases: Vec<String>,
}

impl Version {
    /// Of this very program.
    pub(crate) fn own() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("PEREGRINE_COMMIT").unwrap_or("unknown").to_owned(),
            vpp_releases: crate::execute::VPP_RELEASES.iter().map(|release| (*release).to_owned()).collect(),
        }
    }
}

/// An error answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// What is wrong with the question.
    pub(crate) error: String,
}

/// The names of a family's two parts.
fn afi_safi(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::Ipv4Unicast => ("ipv4", "unicast"),
        Family::Ipv6Unicast => ("ipv6", "unicast"),
        Family::Ipv4Vpn => ("ipv4", "mpls_vpn"),
        Family::Ipv6Vpn => ("ipv6", "mpls_vpn"),
        Family::Ipv4SrPolicy => ("ipv4", "sr_policy"),
        Family::Ipv6SrPolicy => ("ipv6", "sr_policy"),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
