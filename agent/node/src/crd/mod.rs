//! The Kubernetes resources that we read, as their YAML or JSON says them.
//!
//! One file for each kind: which fields exist, how each is spelled, what it may hold. No meaning beyond one object lives
//! here: what a BGPPeer does to this node is the engine's affair. Field names are those of the resources; a field that
//! exists in a resource but that the agent has no use for is known and skipped, so that only true mistakes are reported.
//!
//! Kinds of Calico are accepted from both layouts, `crd.projectcalico.org/v1` and `projectcalico.org/v3`.

mod bgp_configuration;
mod bgp_filter;
mod bgp_peer;
mod block_affinity;
mod felix_configuration;
mod ip_pool;
mod network;
mod node;
mod object;
mod value;

pub(crate) use bgp_configuration::{BgpConfiguration, PROGRAM};
pub(crate) use bgp_filter::rule_of;
pub(crate) use bgp_peer::{BgpPeer, NextHopMode};
pub(crate) use block_affinity::{AffinityState, BlockAffinity};
pub(crate) use felix_configuration::FelixConfiguration;
pub(crate) use ip_pool::{EncapMode, IpPool};
pub(crate) use network::Network;
pub(crate) use node::{Node, NodeAddress};
pub(crate) use object::{Decoded, Kind, Object, ObjectName, decode};
