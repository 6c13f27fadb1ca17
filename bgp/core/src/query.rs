//! Read-only answers: peers, routes, why a path lost.
//!
//! Values here own what they say, so that the embedder can send them to another thread. A table is read in pages:
//! a [`RouteCursor`] says where to go on, and a page costs time in proportion to its size, not to the table's.
//!
//! *Absent on purpose:* formatting and JSON, which belong to the command line and the inspection socket.

use std::fmt;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::time::Duration;

use bgp_wire::capability::{AgreedLongLived, AgreedRestart};
use bgp_wire::{Asn, Family, FamilySet, NextHop, Nlri, PathId, Role, RouterId};

use crate::command::Chain;
pub use crate::egress::Barred;
use crate::egress::{WhyNot, Withheld};
use crate::limit::{LimitAction, PrefixLimit};
use crate::peer_key::PeerKey;
use crate::policy::{Decider, Interfaces, Library, PolicyName};
use crate::rib::{AttrSet, PathRejected, Rung, Standing};
use crate::session::{GracefulRestart, PeerRole, State};
use crate::stats::MessageCounts;

/// One neighbour, as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerStatus {
    /// Which neighbour.
    pub key: PeerKey,
    /// Text from the configuration.
    pub description: String,
    /// The AS we present.
    pub local_asn: Asn,
    /// The AS the neighbour presented, or is configured to present; absent where neither is known.
    pub remote_asn: Option<Asn>,
    /// The neighbour's BGP Identifier, once an OPEN arrived.
    pub remote_router_id: Option<RouterId>,
    /// State of RFC 4271 section 8.2.2.
    pub state: State,
    /// Administratively stopped.
    pub disabled: bool,
    /// What the operator said who stopped it; empty for nothing.
    pub shutdown_text: String,
    /// About to be left: both ends are to prefer other paths (RFC 8326).
    pub graceful_shutdown: bool,
    /// How long the session has been Established.
    pub uptime: Option<Duration>,
    /// How often the session has become Established.
    pub established_count: u64,
    /// Kept in Idle after a disagreement, though nobody stopped it.
    pub idle: Option<Idle>,
    /// Why the last session ended or could not begin, in words.
    pub last_error: Option<String>,
    /// One entry for each family configured, in family order.
    pub families: Vec<FamilyStatus>,
    /// Families agreed with the neighbour; empty until Established.
    pub negotiated: FamilySet,
    /// ConnectRetryTime as configured.
    pub connect_retry: Duration,
    /// Hold time as configured, in seconds.
    pub configured_hold_time: u16,
    /// KEEPALIVE interval as configured or derived, in seconds.
    pub configured_keepalive: u16,
    /// Hold time agreed, in seconds; absent until an OPEN arrived.
    pub applied_hold_time: Option<u16>,
    /// KEEPALIVE interval in force, in seconds; absent until an OPEN arrived.
    pub applied_keepalive: Option<u16>,
    /// TTL of an eBGP session that is more than one hop away; 1 where it is directly connected.
    pub multihop_ttl: u8,
    /// Graceful restart as configured.
    pub graceful_restart: Option<GracefulRestart>,
    /// Graceful restart as agreed, while Established.
    pub restart_agreed: Option<AgreedRestart>,
    /// Long-lived graceful restart as agreed, while Established.
    pub long_lived_agreed: Option<AgreedLongLived>,
    /// Families whose routes are kept, or were and have not all been said again.
    pub stale: FamilySet,
    /// Those of them in which routes are kept beyond the restart time, as a last resort (RFC 9494).
    pub long_lived_stale: FamilySet,
    /// How long they are kept at the most, from now; that of the family that is kept longest.
    pub stale_for: Option<Duration>,
    /// Hops of TTL security (RFC 5082), where it is on.
    pub ttl_security: Option<NonZeroU8>,
    /// What we are to the neighbour (RFC 9234), where that is configured.
    pub role: Option<PeerRole>,
    /// What the neighbour says that it is to us, once an OPEN arrived.
    pub remote_role: Option<Role>,
    /// Whether segments are signed (RFC 2385).
    pub has_password: bool,
    /// The prefix that made it a neighbour; absent for one that is configured itself.
    pub range: Option<ipnet::IpNet>,
    /// Capabilities we offered, each a whole TLV as on the wire.
    pub local_capabilities: Vec<Vec<u8>>,
    /// Capabilities the neighbour offered, each a whole TLV as on the wire.
    pub remote_capabilities: Vec<Vec<u8>>,
    /// Our end of the established connection.
    pub local_address: Option<std::net::SocketAddr>,
    /// Messages received.
    pub received: MessageCounts,
    /// Messages sent.
    pub sent: MessageCounts,
    /// UPDATEs whose routes were treated as withdrawn (RFC 7606 section 2).
    pub treated_as_withdraw: u64,
    /// Attributes dropped from otherwise good UPDATEs (RFC 7606 section 2).
    pub attributes_discarded: u64,
}

/// What one family counts at one neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FamilyStatus {
    /// Which family.
    pub family: Family,
    /// Prefixes the neighbour has announced and not withdrawn; each of several paths of one counts.
    pub received: u64,
    /// Those of them that import policy let in.
    pub accepted: u64,
    /// Prefixes this speaker has announced to the neighbour and not withdrawn; each of several paths of one counts.
    pub advertised: u64,
    /// Whether the neighbour may send several paths of a destination (RFC 7911), as agreed; false until Established.
    pub add_path_receive: bool,
    /// How many paths of a destination the neighbour is sent at the most, where several were agreed on.
    pub add_path_send: Option<NonZeroU8>,
    /// The neighbour has sent End-of-RIB in this session.
    pub end_of_rib_received: bool,
    /// We have sent End-of-RIB in this session.
    pub end_of_rib_sent: bool,
    /// How the neighbour stands to its prefix limit, where it has one.
    pub limit: Option<LimitStatus>,
    /// How many prefixes it is told of at the most, where there is such a limit.
    pub limit_out: Option<u32>,
    /// Others are held back because of that.
    pub holds_back: bool,
    /// It is exchanged, but there is no address of ours that could be its next hop: the session is of the other address
    /// family, and none is configured.
    pub lacks_next_hop: bool,
}

impl FamilyStatus {
    /// What a person should know of what the family does not exchange, if anything.
    #[must_use]
    pub fn condition(&self) -> Option<String> {
        let limit = self.limit.and_then(|limit| limit.condition());
        let out = self.limit_out.filter(|_| self.holds_back);
        let out =
            out.map(|limit| format!("no more than {limit} prefixes are announced, others are held back"));
        let next_hop = self.lacks_next_hop.then(|| {
            let version = if self.family.is_ipv4() { "IPv4" } else { "IPv6" };
            format!(
                "routes that lead through us are not announced, as the session has no {version} address of ours: \
                 configure one as their next hop"
            )
        });
        let all: Vec<String> = [limit, out, next_hop].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// How long a neighbour is kept in Idle.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Idle {
    /// For so long, from now.
    For(Duration),
    /// Until it is cleared, enabled or configured anew.
    UntilStarted,
}

/// How a neighbour stands to its prefix limit in a family.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The limit.
    pub limit: PrefixLimit,
    /// What counts towards it: see [`crate::limit`].
    pub counted: u64,
    /// Announcements that were not kept since the neighbour last said everything, or was last asked to.
    pub discarded: u64,
}

impl LimitStatus {
    /// What a person should know, if anything: that three quarters of the limit are reached, or all of it.
    #[must_use]
    pub fn condition(&self) -> Option<String> {
        let Self { limit: PrefixLimit { limit, action }, counted, discarded } = *self;
        if discarded > 0 {
            return Some(format!(
                "{discarded} announcements beyond the limit of {limit} prefixes were not kept"
            ));
        }
        if counted > u64::from(limit) {
            return Some(format!("{counted} prefixes, more than the limit of {limit}"));
        }
        let beyond = match action {
            LimitAction::Warn => "",
            LimitAction::Discard => "; further ones are not kept then",
            LimitAction::Reset { .. } => "; beyond it the session ends",
        };
        let near = counted >= u64::from(self.limit.threshold().max(1));
        near.then(|| format!("{counted} prefixes, close to the limit of {limit}{beyond}"))
    }
}

/// Route policy as it is in force.
#[derive(Clone, Debug)]
pub struct PolicyStatus {
    /// All sets and policies: as declared, and compiled.
    pub library: Library,
    /// Policies that run before each neighbour's own on the way in.
    pub import: Vec<PolicyName>,
    /// Policies that run before each neighbour's own on the way out.
    pub export: Vec<PolicyName>,
    /// The neighbours' own, in the order of their keys.
    pub peers: Vec<PeerPolicies>,
    /// Names of the interfaces that lead to next hops, as conditions see them.
    pub interfaces: Arc<Interfaces>,
}

/// The policies of one neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerPolicies {
    /// Which neighbour.
    pub key: PeerKey,
    /// What runs on the way in, behind what runs for all.
    pub import: Chain,
    /// What runs on the way out, behind what runs for all.
    pub export: Chain,
}

/// Which table is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteTable {
    /// Every destination with all its paths and the decision.
    LocRib,
    /// What one neighbour sent, before policy.
    AdjRibIn(PeerKey),
    /// What one neighbour has been told, after policy and export rules.
    AdjRibOut(PeerKey),
}

/// What is asked of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteQuery {
    /// Which table.
    pub table: RouteTable,
    /// Which family.
    pub family: Family,
    /// Only this prefix.
    pub prefix: Option<Nlri>,
}

/// Where a walk of a table goes on. Only values that came with an answer mean anything.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteCursor(pub(crate) u32);

/// One page of a table.
#[derive(Clone, Debug, Default)]
pub struct RoutePage {
    /// The routes, in the table's internal order.
    pub routes: Vec<RouteEntry>,
    /// Where to go on; absent at the end.
    pub next: Option<RouteCursor>,
}

/// One destination.
#[derive(Clone, Debug)]
pub struct RouteEntry {
    /// Its prefix.
    pub nlri: Nlri,
    /// The rung of the decision that chose the best path; absent where there is none, or the table is not the Loc-RIB.
    pub decided_by: Option<Rung>,
    /// Its paths, the best one first.
    pub paths: Vec<PathEntry>,
}

/// One path to a destination.
#[derive(Clone, Debug)]
pub struct PathEntry {
    /// Who it came from; absent for an own route.
    pub source: Option<PeerKey>,
    /// Its path identifier (RFC 7911), where the session has such: as received, and in the Adj-RIB-Out as sent.
    pub path_id: Option<PathId>,
    /// Attributes: after import policy for the Loc-RIB (as received where policy rejected the path), as received for the
    /// Adj-RIB-In, as sent for the Adj-RIB-Out.
    pub attrs: AttrSet,
    /// The next hop; absent for an own route whose next hop is ourselves.
    pub next_hop: Option<NextHop>,
    /// It is the best path of the Loc-RIB.
    pub best: bool,
    /// How long we have had it.
    pub age: Duration,
    /// It is kept for a neighbour that has gone away, or is back and has not said it again (RFC 4724).
    pub stale: bool,
    /// It is kept for longer than the neighbour's restart time, as a last resort (RFC 9494).
    pub long_lived_stale: bool,
    /// Why it may not become best, where that is so.
    pub rejected: Option<PathRejected>,
    /// How it fared in the decision; absent in the Adj-RIB-Out.
    pub standing: Option<Standing>,
}

/// The life of one destination: what came in, what import made of it, what was decided, and who hears of it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The destination.
    pub nlri: Nlri,
    /// The rung of the decision that chose the best path; absent where there is none.
    pub decided_by: Option<Rung>,
    /// Its paths, the best one first.
    pub paths: Vec<PathLife>,
    /// One entry for each neighbour, in the order of their keys.
    pub told: Vec<Telling>,
}

/// A path, and what import made of it.
#[derive(Clone, Debug)]
pub struct PathLife {
    /// The path after import policy (as received where that rejected it), with how it fared in the decision.
    pub path: PathEntry,
    /// Its attributes as they were received.
    pub received: AttrSet,
    /// What let it in, or kept it out; absent for an own route, and where the rules of BGP kept it out before policy.
    pub import: Option<PolicyReason>,
}

/// What in a chain of policies decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyReason {
    /// The policy; absent where none decided, so that what is usual for the neighbour counts.
    pub policy: Option<PolicyName>,
    /// Which of its statements, counted from 1; absent where its default decided.
    pub statement: Option<usize>,
    /// The statement's label.
    pub label: Option<String>,
}

impl From<Decider<'_>> for PolicyReason {
    fn from(by: Decider<'_>) -> Self {
        Self { policy: by.policy().cloned(), statement: by.statement(), label: by.label().map(str::to_owned) }
    }
}

impl fmt::Display for PolicyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.policy, self.statement) {
            (None, _) => f.write_str("no policy"),
            (Some(policy), None) => write!(f, "policy {policy}, its default"),
            (Some(policy), Some(statement)) => {
                write!(f, "policy {policy}, statement {statement}")?;
                self.label.as_ref().map_or(Ok(()), |label| write!(f, " ({label})"))
            }
        }
    }
}

/// What a neighbour is told of a destination.
#[derive(Clone, Debug)]
pub struct Telling {
    /// Which neighbour.
    pub peer: PeerKey,
    /// The routes as they are sent, or why there are none.
    pub told: Result<Vec<PathEntry>, NotTold>,
}

/// Why a neighbour is told nothing of a destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTold {
    /// There is no session.
    #[error("no session")]
    NoSession,
    /// The family is not exchanged with it.
    #[error("{0} is not exchanged with it")]
    NoFamily(Family),
    /// There is no best path.
    #[error("no usable path")]
    NoRoute,
    /// The best path came from there.
    #[error("the best path came from there")]
    FromThere,
    /// An aggregate is announced in its place.
    #[error("an aggregate is announced in its place (summary-only)")]
    Summarised,
    /// The rules of BGP forbid it.
    #[error("{0}")]
    Barred(Barred),
    /// It is originated for others.
    #[error("originated for other neighbors")]
    Audience,
    /// Export policy.
    #[error("export: {0}")]
    Policy(PolicyReason),
    /// Routes of others wait until a restart is over.
    #[error("routes wait until every neighbor has been heard after a restart")]
    Deferred,
    /// There is no next hop that it could be told, or it would be the neighbour itself.
    #[error("no next hop that it could be told")]
    NextHop,
    /// It is told as much as it may be.
    #[error("as many prefixes are announced as may be")]
    Limit,
    /// The attributes do not fit into a message.
    #[error("the attributes do not fit into a message")]
    TooLarge,
    /// It is about to be told.
    #[error("about to be told")]
    Pending,
}

impl From<WhyNot<'_>> for NotTold {
    fn from(why: WhyNot<'_>) -> Self {
        match why {
            WhyNot::NoRoute => Self::NoRoute,
            WhyNot::FromThere => Self::FromThere,
            WhyNot::Withheld(Withheld::Rules(barred)) => Self::Barred(barred),
            WhyNot::Withheld(Withheld::Audience) => Self::Audience,
            WhyNot::Withheld(Withheld::Policy(by)) => Self::Policy(by.into()),
            WhyNot::Withheld(Withheld::Deferred) => Self::Deferred,
            WhyNot::Withheld(Withheld::NextHop) => Self::NextHop,
            WhyNot::Summarised => Self::Summarised,
            WhyNot::Pending => Self::Pending,
            WhyNot::Limit => Self::Limit,
            WhyNot::TooLarge => Self::TooLarge,
        }
    }
}

/// Why a query cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The peer does not exist.
    #[error("no peer {0}")]
    NoSuchPeer(PeerKey),
    /// The prefix is of another family than the table.
    #[error("{nlri} is not of family {family}")]
    WrongFamily {
        /// The prefix asked for.
        nlri: Nlri,
        /// The family asked for.
        family: Family,
    },
}
