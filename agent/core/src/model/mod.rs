//! Domain values: what watchers read, handlers reason about, and nothing else.
//!
//! A value here is already parsed and typed; where an object says something that makes no sense, the watcher or the
//! handler adds a [`Condition`] and goes on with the rest of it.
//!
//! *Absent on purpose:* Kubernetes metadata, serialisation formats, and anything a target gave out (indices).

mod affinity;
mod bgp_config;
mod condition;
mod connectivity;
mod felix;
mod filter;
mod name;
mod network;
mod node;
mod peer;
mod pool;
mod psk;
mod sr_policy;
mod wireguard;

pub use affinity::{Affinity, AffinityState};
pub use bgp_config::{
    BgpConfig, BgpConfigName, DEFAULT_ASN, PrefixAdvertisement, ProgramClusterRoutes, ServiceRanges,
};
pub use condition::{Condition, Location, ObjectRef, Severity};
pub use connectivity::{Connectivity, Hop, Origin, RouteKey, TableId, Vni};
pub use felix::{FelixConfig, FelixConfigName, PerFamily};
pub use filter::{
    AnyCommunity, Direction, Filter, FilterAction, FilterRule, Glob, MatchOperator, Operation, PeerType,
    PrefixMatch, RoutePriority,
};
pub use name::{AffinityName, FilterName, NetworkName, NodeName, PeerName, PoolName};
pub use network::Network;
pub use node::Node;
pub(crate) use node::family_of;
pub use peer::{NextHopChoice, PeerEndpoint, PeerPort, PeerSpec, SourceAddress};
pub use pool::{Encapsulation, Pool};
pub use psk::Psk;
pub use sr_policy::{OwnSid, SidList, Sids, SrBehavior, SrCandidate, SrFlaw, SrKey};
pub use wireguard::{KeyId, KeyPair, PublicKey};
