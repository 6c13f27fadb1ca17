//! What becomes of one destination on this node, for people: who carries its traffic and why, and what VPP has of it.
//!
//! The answers are worked out from what the handlers and the plan know at that moment; nothing is kept for them.

use std::net::IpAddr;

use bgp_core::time::Instant;
use ipnet::IpNet;

use crate::desired::{Path, Target, VppKey};
use crate::model::PoolName;

/// What becomes of a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explained {
    /// How its traffic is carried; absent for what was not learned by BGP.
    pub carried: Option<Carried>,
    /// Objects of VPP that it is made of, the route itself last; empty where there is no VPP.
    pub objects: Vec<ExplainedObject>,
}

/// How the traffic of a destination is carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The pool whose encapsulation counts, and its prefix.
    pub pool: Option<(PoolName, IpNet)>,
    /// One entry for each next hop.
    pub hops: Vec<CarriedHop>,
}

/// How traffic gets to one next hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedHop {
    /// The next hop.
    pub address: IpAddr,
    /// Its share of the traffic against the other ones.
    pub weight: u8,
    /// The provider; absent where none can do it.
    pub provider: Option<&'static str>,
    /// Why that one, or why none.
    pub reason: String,
}

/// An object of VPP, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedObject {
    /// The object.
    pub object: VppKey,
    /// Somebody wants it.
    pub wanted: bool,
    /// How it stands.
    pub standing: ObjectStanding,
    /// The value that it has, or shall have; empty where it has none that could be told.
    pub value: String,
    /// Why it is not there, where that is known.
    pub reason: String,
    /// Where it is blocked: how often it has been tried in vain.
    pub attempts: u8,
    /// Where it is blocked: when it, or what it waits for, is tried next; `None` where that is not a matter of time.
    pub next_try: Option<Instant>,
    /// Of a route: what is wanted of it, one text for each path.
    pub paths: Vec<String>,
}

/// How an object of VPP stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ObjectStanding {
    /// It is there as it shall be.
    Present,
    /// It is on its way.
    Pending,
    /// It cannot come, or go.
    Blocked,
    /// There is no connection to VPP, or what VPP holds is being read.
    Unknown,
    /// It is there, wanted by nobody yet: an earlier run left it.
    LeftOver,
    /// It is there, wanted by nobody any more: it goes in a moment.
    Lingering,
}

impl ObjectStanding {
    /// In one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
            Self::LeftOver => "left-over",
            Self::Lingering => "lingering",
        }
    }
}

/// A path of a route in words.
pub(crate) fn in_words(path: &Path) -> String {
    let to = match path.to {
        Target::Gateway(address) => format!("via {address}"),
        Target::Tunnel(tunnel) => format!("into {tunnel}"),
        Target::TunnelVia(tunnel, gateway) => format!("via {gateway} in {tunnel}"),
        Target::Drop => "drop".to_owned(),
    };
    if path.weight == 1 { to } else { format!("{to}, weight {}", path.weight) }
}
