//! What can be wanted of the speaker, by key and with its value.

use std::fmt;

use bgp_core::command::{Origination, PeerConfig};
use bgp_core::peer_key::PeerKey;
use bgp_core::policy::{PolicyDef, PolicyName, PrefixRange, SetName};
use bgp_core::{Asn, RouterId, SrPolicy6};
use ipnet::IpNet;

use crate::model::ObjectRef;

/// An object of the speaker, by key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BgpKey {
    /// AS number and BGP Identifier.
    Identity,
    /// The cluster that this node reflects routes for.
    Cluster,
    /// A prefix set.
    PrefixSet(SetName),
    /// A route policy.
    Policy(PolicyName),
    /// An originated prefix.
    Origination(IpNet),
    /// An SR policy of this node.
    SrPolicy(SrPolicy6),
    /// All originations of the start are in.
    Loaded,
    /// A neighbour.
    Peer(PeerKey),
}

impl fmt::Display for BgpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Cluster => f.write_str("cluster id"),
            Self::PrefixSet(name) => write!(f, "prefix set {name}"),
            Self::Policy(name) => write!(f, "policy {name}"),
            Self::Origination(prefix) => write!(f, "origination {prefix}"),
            Self::SrPolicy(policy) => write!(f, "sr policy {policy}"),
            Self::Loaded => f.write_str("end of loading"),
            Self::Peer(key) => write!(f, "peer {key}"),
        }
    }
}

/// An object of the speaker with its value.
#[derive(Clone, Debug, PartialEq)]
pub enum BgpObject {
    /// AS number and BGP Identifier.
    Identity {
        /// AS of this node.
        asn: Asn,
        /// BGP Identifier.
        router_id: RouterId,
    },
    /// The cluster that this node reflects routes for; none where it doesn't.
    Cluster(Option<RouterId>),
    /// A prefix set and its members.
    PrefixSet(SetName, Vec<PrefixRange>),
    /// A route policy.
    Policy(PolicyName, PolicyDef),
    /// An originated prefix.
    Origination(IpNet, Origination),
    /// An SR policy of this node.
    SrPolicy(SrPolicy6, Box<Origination>),
    /// All originations of the start are in.
    Loaded,
    /// A neighbour, and the Kubernetes object that asks for it.
    Peer(PeerKey, Box<PeerConfig>, ObjectRef),
}

impl BgpObject {
    /// The key.
    #[must_use]
    pub fn key(&self) -> BgpKey {
        match self {
            Self::Identity { .. } => BgpKey::Identity,
            Self::Cluster(_) => BgpKey::Cluster,
            Self::PrefixSet(name, _) => BgpKey::PrefixSet(name.clone()),
            Self::Policy(name, _) => BgpKey::Policy(name.clone()),
            Self::Origination(prefix, _) => BgpKey::Origination(*prefix),
            Self::SrPolicy(policy, _) => BgpKey::SrPolicy(*policy),
            Self::Loaded => BgpKey::Loaded,
            Self::Peer(key, ..) => BgpKey::Peer(*key),
        }
    }
}
