//! One path to a destination, in 24 octets: there may be millions of them.

use super::attrs::AttrId;
use super::source::SourceId;

/// Why a path is kept out of the decision. It stays in the Adj-RIB-In, so that a change of policy needs no help from
/// the neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathRejected {
    /// Import policy said so.
    ImportPolicy,
    /// Our AS number is in the AS path (RFC 4271 section 9.1.2).
    AsLoop,
    /// Our identifier is the ORIGINATOR_ID (RFC 4456 section 8).
    OriginatorLoop,
    /// The next hop is ourselves: our address of the session, or of any other one, or a loopback address from a neighbour that isn't there
    /// itself (RFC 4271 sections 5.1.3 and 6.3).
    OwnNextHop,
    /// A route leak: ONLY_TO_CUSTOMER is on a route that came from where it cannot have come from by right (RFC 9234
    /// section 5).
    RouteLeak,
    /// An SR policy without a route target that begins with an address and without NO_ADVERTISE, where the neighbour's
    /// configuration asks for one (RFC 9830 section 4.2.1).
    NoTarget,
    /// The path of an external neighbour's route does not begin with its AS number, where the neighbour's configuration asks
    /// for that (RFC 4271 section 6.3): the route counts as withdrawn (RFC 7606 section 7.2).
    FirstAs,
    /// Our cluster identifier is in the CLUSTER_LIST (RFC 4456 section 8).
    ClusterLoop,
    /// With what import adds, an attribute would be longer than one can be.
    TooLong,
}

/// A path as stored.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    pub(super) source: SourceId,
    /// Attributes as received.
    pub(super) pre: Option<AttrId>,
    /// Attributes after import policy; absent if it rejected the path.
    pub(super) post: Option<AttrId>,
    /// When these attributes arrived, in seconds of the embedder's clock.
    pub(super) since: u32,
    pub(super) flags: u16,
    /// The epoch of its source in which it arrived.
    pub(super) epoch: u16,
    /// The next path of the destination: its number in the table's overflow slab plus one, or 0.
    pub(super) next: u32,
}

const _: () = assert!(size_of::<Path>() == 24);

/// The path is the best one, or used beside it.
pub(super) const USED: u16 = 1;
const REJECTED_SHIFT: u16 = 8;

impl Path {
    /// Who it came from.
    #[must_use]
    pub const fn source(&self) -> SourceId {
        self.source
    }

    /// Attributes as received.
    #[must_use]
    pub fn pre(&self) -> AttrId {
        // Only destinations without paths hold a path without attributes, and they hide it.
        self.pre.unwrap_or(AttrId::FIRST)
    }

    /// Attributes after import policy; `None` if the path takes no part in the decision.
    #[must_use]
    pub const fn post(&self) -> Option<AttrId> {
        self.post
    }

    /// When these attributes arrived, in seconds of the embedder's clock.
    #[must_use]
    pub const fn since(&self) -> u32 {
        self.since
    }

    /// Whether packets go this way: it is the best path, or one of those that are used beside it.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.flags & USED != 0
    }

    /// Why it takes no part in the decision.
    #[must_use]
    pub const fn rejected(&self) -> Option<PathRejected> {
        match self.flags >> REJECTED_SHIFT {
            1 => Some(PathRejected::ImportPolicy),
            2 => Some(PathRejected::AsLoop),
            3 => Some(PathRejected::OriginatorLoop),
            4 => Some(PathRejected::OwnNextHop),
            5 => Some(PathRejected::RouteLeak),
            6 => Some(PathRejected::NoTarget),
            7 => Some(PathRejected::FirstAs),
            8 => Some(PathRejected::ClusterLoop),
            9 => Some(PathRejected::TooLong),
            _ => None,
        }
    }

    /// Flags that remember a verdict.
    pub(super) const fn verdict(post: Result<AttrId, PathRejected>) -> u16 {
        let code = match post {
            Ok(_) => 0,
            Err(PathRejected::ImportPolicy) => 1,
            Err(PathRejected::AsLoop) => 2,
            Err(PathRejected::OriginatorLoop) => 3,
            Err(PathRejected::OwnNextHop) => 4,
            Err(PathRejected::RouteLeak) => 5,
            Err(PathRejected::NoTarget) => 6,
            Err(PathRejected::FirstAs) => 7,
            Err(PathRejected::ClusterLoop) => 8,
            Err(PathRejected::TooLong) => 9,
        };
        code << REJECTED_SHIFT
    }
}
