//! What an embedder hears of the Loc-RIB.

use bgp_wire::{Family, Nlri};

use super::attrs::AttrId;
use super::nexthop::NextHopSet;
use super::sr_policy::SrPolicyPath;

/// One step of the change stream. A reader is first told [`RibEvent::Resync`], then every best path there is, then
/// [`RibEvent::Replayed`]; what changes meanwhile comes in between, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RibEvent {
    /// Forget everything: it is about to be told anew. Whatever has not been mentioned when [`RibEvent::Replayed`]
    /// comes is gone.
    Resync,
    /// The current answer for one prefix.
    Change(RibChange),
    /// Everything there was has been told.
    Replayed,
    /// The initial convergence of a family has ended: every neighbour that is up and negotiated the family has sent
    /// End-of-RIB or, where it is not bound to, was quiet for a while; or the deadline has passed.
    Converged(Family),
}

/// The current answer for one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RibChange {
    /// Grows with every change of the family. During a replay the numbers are those of the last changes.
    pub seq: u64,
    /// The family.
    pub family: Family,
    /// The prefix.
    pub nlri: Nlri,
    /// Attributes of the best path; `None` if the prefix cannot be reached any more, or is an SR policy whose best path this
    /// speaker may not use (RFC 9830 section 4.2.2).
    pub best: Option<AttrId>,
    /// The whole new set of next hops. Empty without a best path and for one of this speaker's own.
    pub hops: NextHopSet,
    /// This speaker originates the best path.
    pub local: bool,
    /// What the best path says of an SR policy; absent in other families.
    pub sr_policy: Option<Box<SrPolicyPath>>,
}
