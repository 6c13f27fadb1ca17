//! Everything that can happen to the agent. Watchers and executors make these values, handlers read them; adding a
//! variant makes the compiler ask `engine.rs` who hears it. What VPP is found to hold is in `dump`.

mod dump;
mod ike;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_core::command::{Applied, Refusal};
use bgp_core::rib::{RibEvent, SrPolicyPath};
use ipnet::IpNet;

use crate::model::{
    Affinity, AffinityName, BgpConfig, BgpConfigName, Condition, Connectivity, FelixConfig, FelixConfigName,
    Filter, FilterName, Network, NetworkName, Node, NodeName, Origin, PeerName, PeerSpec, Pool, PoolName,
    RouteKey, Sids, SrKey, TableId,
};
use crate::plan::{OpId, VppFailure};

pub use dump::{Dump, DumpedPeer, DumpedPolicy, DumpedTunnel, Interface, Srv6Dump};
pub use ike::DumpedProfile;

/// A change of a keyed collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<K, V> {
    /// The complete collection: what isn't listed is gone. The first one puts its source in sync.
    Resync(Vec<(K, V)>),
    /// One entry appeared or changed.
    Upsert(K, V),
    /// One entry is gone.
    Delete(K),
}

/// Everything that can happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// Nodes of the cluster, ours included.
    Node(Change<NodeName, Node>),
    /// BGPPeer objects.
    Peer(Change<PeerName, PeerSpec>),
    /// BGPFilter objects.
    Filter(Change<FilterName, Filter>),
    /// IPPool objects.
    Pool(Change<PoolName, Pool>),
    /// Network objects.
    Network(Change<NetworkName, Network>),
    /// BlockAffinity objects, by object name: two of them may hold the same block.
    Affinity(Change<AffinityName, Affinity>),
    /// BGPConfiguration objects.
    BgpConfig(Change<BgpConfigName, BgpConfig>),
    /// FelixConfiguration objects.
    FelixConfig(Change<FelixConfigName, FelixConfig>),
    /// What a watcher found wrong in what it read, complete for each file or object, whichever is the unit of reading.
    /// An empty list clears it.
    Fault(Change<Arc<str>, Vec<Condition>>),
    /// Best paths.
    Rib(RibEvent),
    /// Where destinations are reached. A follow-up of `Rib`.
    Connectivity(Change<RouteKey, Connectivity>),
    /// SR policies as BGP says them. A follow-up of `Rib`.
    SrPolicy(Change<SrKey, SrPolicyPath>),
    /// The SIDs of this node, once it has some; they never change while it runs.
    Sids(Sids),
    /// Prefixes of this node that peers shall hear of. A follow-up of `Affinity`.
    Address(Change<IpNet, Origin>),
    /// Interfaces to the host, as VPP's manager says.
    HostTaps(HostTaps),
    /// Who else writes into this VPP, as the embedder sees it; an empty list where nobody does.
    Writer(Vec<Condition>),
    /// News of VPP.
    Vpp(VppEvent),
    /// News of the BGP speaker.
    Speaker(SpeakerEvent),
    /// The time of [`Engine::deadline`](crate::Engine::deadline) has come.
    Tick,
}

/// News of VPP, from its executor.
#[derive(Clone, Debug)]
pub enum VppEvent {
    /// A connection is up. Nothing is known of what VPP holds; the engine asks for a dump next.
    Up(Generation),
    /// An operation ended. Answers of an older generation are ignored.
    Done(OpId, Result<VppReply, VppFailure>),
    /// Interfaces as VPP has them now, complete. Sent when they change after the dump.
    Interfaces(Vec<Interface>),
    /// A session with a WireGuard peer, by VPP's number, has come up or gone.
    WireguardSession {
        /// The number that VPP gave the peer.
        peer: u32,
        /// There is a session.
        established: bool,
    },
    /// The connection is gone, and with it the operations in flight; or the first attempt to make one has failed.
    Lost,
    /// VPP has been away longer than the loss grace. A follow-up that the engine makes.
    GraceOver,
    /// VPP holds everything that was wanted when it came up. A follow-up that the engine makes.
    Replayed,
}

/// Counts connections to VPP: each one starts from an unknown state.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// Index that VPP gave to an interface. Reused at once after deletion.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwIfIndex(pub u32);

impl SwIfIndex {
    /// No interface.
    pub const NONE: Self = Self(u32::MAX);
}

/// The interfaces of VPP that lead to the host, complete; none where nobody says which they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTaps(pub BTreeSet<SwIfIndex>);

/// Id of a FIB source: who a route in VPP belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FibSourceId(pub u8);

/// What a successful operation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VppReply {
    /// Nothing but success.
    Done,
    /// The index of the interface made.
    SwIfIndex(SwIfIndex),
    /// The id of the FIB source made.
    FibSource(FibSourceId),
    /// The number that VPP gave to something else.
    Index(u32),
    /// What VPP holds, answer to [`VppAction::Dump`](crate::plan::VppAction::Dump).
    Dump(Box<Dump>),
}

/// One path of a route as VPP takes and shows it, indices resolved.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FibPath {
    /// Where it leads.
    pub kind: FibPathKind,
    /// Its share of the traffic; at least 1.
    pub weight: u8,
}

/// Where a path leads.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FibPathKind {
    /// Into an interface, without a gateway.
    Attached(SwIfIndex),
    /// Through a gateway on an interface.
    Via(IpAddr, SwIfIndex),
    /// Through a gateway that is resolved in a table.
    Recursive(IpAddr, TableId),
    /// Nowhere: packets are dropped.
    Drop,
    /// Anything else that VPP may show. Never asked for.
    Other,
}

/// News of the BGP speaker, from its executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpeakerEvent {
    /// A command was answered.
    Done(OpId, Result<Applied, Refusal>),
}
