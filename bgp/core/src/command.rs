//! What the embedder may ask of a speaker.
//!
//! Commands are declarative: `Put` states what shall be true, `Delete` that it shall not exist. Each is keyed and
//! idempotent: saying the same thing twice is answered [`Applied::Unchanged`]. A command never blocks: what takes
//! long becomes a resumable job of the speaker.
//!
//! *Absent on purpose:* any notion of who asks. Configuration files and Kubernetes objects are turned into commands
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use bgp_wire::attr::ExtCommunity;
use bgp_wire::attr::tunnel_encap::{CandidatePath, CandidatePathError};
use bgp_wire::{Asn, Family, FamilySet, Label, Nlri, RouterId};
use ipnet::IpNet;

use crate::limit::PrefixLimit;
use crate::peer_key::{InterfaceName, PeerKey};
use crate::policy::{Direction, Otherwise, PolicyDef, PolicyMistake, PolicyName, SetDef, SetKind, SetName};
use crate::rib::{DecisionSettings, NextHopState};
use crate::secret::Secret;
use crate::session::{
    AddPath, GracefulRestart, HoldTime, IdleHold, PeerRole, PeerSettings, RemoteAsn, SettingsError,
};

/// The AFI of families that have IPv4 prefixes.
const IPV4: u16 = 1;

/// One request to the speaker.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A neighbour shall exist with this configuration.
    PutPeer(PeerKey, PeerConfig),
    /// A neighbour shall not exist. Its session ends with Cease / Peer De-configured.
    DeletePeer(PeerKey),
    /// Whoever connects from an address of this prefix shall be a neighbour (a *dynamic* one), unless one is configured
    /// at that address. Of several such prefixes the longest counts.
    PutPeerRange(IpNet, PeerRange),
    /// Nobody shall be a neighbour merely for being in this prefix. Sessions of its dynamic neighbours end with Cease /
    /// Peer De-configured.
    DeletePeerRange(IpNet),
    /// This prefix shall be originated here.
    PutOrigination(Nlri, Origination),
    /// This prefix shall not be originated here.
    DeleteOrigination(Nlri),
    /// While there is a best path to something more specific than this IPv4 or IPv6 prefix, it shall be originated here. What
    /// is originated there on purpose takes its place.
    PutAggregate(IpNet, Aggregate),
    /// There shall be no such aggregate.
    DeleteAggregate(IpNet),
    /// A set shall have these members. Each kind of sets has names of its own.
    PutSet(SetName, SetDef),
    /// A set shall not exist. Refused while a policy names it.
    DeleteSet(SetKind, SetName),
    /// A policy shall read like this. The sets that it names and the policies that it calls must exist.
    PutPolicy(PolicyName, PolicyDef),
    /// A policy shall not exist. Refused while a peer, another policy or the speaker itself names it.
    DeletePolicy(PolicyName),
    /// These policies shall run before those of each neighbour, in this order, whatever the neighbour's are. A path that one
    /// of them accepts or rejects never sees the neighbour's own. Own routes on their way in meet no policy. A neighbour
    /// whose chain is [`Chain::REJECT`] stays closed: they do not run for it.
    PutGlobalPolicies(Direction, Vec<PolicyName>),
    /// What is known about reaching a next hop.
    PutNextHop(IpAddr, NextHopState),
    /// Nothing is known about this next hop any more: it counts as reachable at cost 0.
    DeleteNextHop(IpAddr),
    /// The speaker is a route reflector of this cluster (RFC 4456); `None` for its BGP Identifier, where a neighbour is its
    /// client. One identifier serves all its clients.
    PutClusterId(Option<RouterId>),
    /// The speaker's own AS number and BGP Identifier. A change resets every session that uses them.
    PutIdentity {
        /// AS number of this speaker, where a peer's configuration does not say otherwise.
        asn: Asn,
        /// BGP Identifier (RFC 6286).
        router_id: RouterId,
    },
    /// How paths are compared, and how many are used at once. What it changes is decided again, bit by bit; no session
    /// notices but by the routes that it is told.
    PutDecision(DecisionSettings),
    /// All local routes are in: End-of-RIB may be sent, and convergence may be declared.
    LoadingDone,
    /// Exchange routes with a peer again, softly or by a reset.
    ClearPeer(PeerKey, Clear),
    /// Administrative stop with a text for the other side (RFC 9003; at most 255 octets of UTF-8), and for whoever asks why.
    /// It outlives every change of the configuration but the neighbour's deletion.
    DisablePeer(PeerKey, String),
    /// Ends an administrative stop, a graceful shutdown, and any wait that keeps the neighbour idle or from the next attempt
    /// to connect.
    EnablePeer(PeerKey),
    /// The session with a neighbour is about to be shut down (RFC 8326 section 4.2): what it is told goes with the community
    /// GRACEFUL_SHUTDOWN, and with LOCAL_PREF 0 to an internal one; what it has told gets both, behind import policy. So both
    /// ends move to other paths while this one still works. It stays so until [`Command::EnablePeer`], whatever becomes of
    /// the session and the configuration. Refused for a neighbour that is disabled.
    GracefulShutdown(PeerKey),
    /// Ends every session, since the speaker is about to end. Every neighbour is disabled then.
    Stop(StopMode),
}

/// How a speaker ends its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// It will be back: connections are closed without a word where the neighbour keeps our routes meanwhile (RFC
    /// 4724), with Cease / Administrative Shutdown and the text (at most 255 octets) elsewhere.
    Graceful(String),
    /// Cease / Administrative Shutdown with a text (at most 255 octets), as by [`Command::DisablePeer`]: nobody keeps
    /// our routes.
    Notify(String),
    /// It will not be back: Cease / Peer De-configured.
    Destroy,
}

/// How a peer is cleared.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Clear {
    /// Run import policy again over what the peer sent, which is kept; and ask it to send everything again where it can (RFC
    /// 2918). [`Applied::Unchanged`] where it has sent nothing.
    SoftIn,
    /// Send every route again, between markers where that was agreed (RFC 7313). [`Applied::Unchanged`] without a session.
    SoftOut,
    /// Reset the session: Cease / Administrative Reset. Where both ends agreed to keep routes over a NOTIFICATION (RFC 8538)
    /// they keep them; who wants none kept disables and enables the peer. Without a session it is tried for at once. Refused
    /// for a peer that is disabled.
    Hard,
}

/// What a neighbour is to be like. The comment on a field says what changing it costs: *live* (nothing),
/// *refresh* (routes are evaluated again, the session stays), *reset* (the session starts again).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// The AS the neighbour must present. *Reset.*
    pub remote_asn: RemoteAsn,
    /// The AS we present instead of the speaker's own. *Reset*, but *refresh* for what becomes of AS paths.
    pub local_asn: Option<LocalAsn>,
    /// Families offered. *Reset.*
    pub families: FamilySet,
    /// Whether messages of up to 65535 octets are offered (RFC 8654). *Reset.*
    pub extended_messages: bool,
    /// Whether IPv6 next hops of IPv4 prefixes are offered (RFC 8950). *Reset.*
    pub extended_next_hop: bool,
    /// Several paths of a destination (RFC 7911), in every family offered. *Reset*, but *refresh* for how many are sent.
    pub add_path: AddPath,
    /// What we are to the neighbour, which must be an external one (RFC 9234): routes that leak are found and not passed
    /// on. *Reset.*
    pub role: Option<PeerRole>,
    /// Hold time offered. *Reset.*
    pub hold_time: HoldTime,
    /// KEEPALIVE interval in seconds; a third of the negotiated hold time where absent. *Live.*
    pub keepalive: Option<NonZeroU16>,
    /// ConnectRetryTime: pause between attempts to connect. *Live.*
    pub connect_retry: Duration,
    /// How long to stay away from the neighbour after a failure. *Live.*
    pub idle_hold: IdleHold,
    /// Wait for the neighbour to connect, never connect. *Live.*
    pub passive: bool,
    /// How long to hold back OPEN on a new connection (DelayOpen, RFC 4271 section 8.1.1): up to 4 minutes, zero for not
    /// at all. *Live*, from the next connection on.
    pub delay_open: Duration,
    /// Graceful restart (RFC 4724, with the N bit of RFC 8538; long-lived, RFC 9494), where it is offered. *Reset*, but
    /// *live* for what it has beside its restart time and long-lived stale times.
    pub graceful_restart: Option<GracefulRestart>,
    /// Our end of the connection. *Reset.*
    pub local_address: Option<IpAddr>,
    /// Our port when we connect; any where absent. *Reset.*
    pub local_port: Option<NonZeroU16>,
    /// The interface that the connection must use, whatever routes say. *Reset.*
    pub device: Option<InterfaceName>,
    /// TTL of an eBGP session that is more than one hop away; absent means directly connected. *Reset.*
    pub multihop_ttl: Option<u8>,
    /// TTL security (RFC 5082): the neighbour is at most so many hops away. What is sent has TTL 255, whatever
    /// `multihop_ttl` says, and what arrives with less than 256 minus this is not heard. *Reset.*
    pub ttl_security: Option<NonZeroU8>,
    /// Segments are signed with this key (RFC 2385), and unsigned ones are not heard. Changing it resets this session
    /// once and no other; neighbours at one address, whatever their ports, should have the same. *Reset.*
    pub password: Option<Secret>,
    /// How many prefixes the neighbour may announce in a family, before import policy. *Live*: what is too much under a
    /// lower limit is dealt with at once, what was discarded is asked for again under a higher one.
    pub max_prefixes: BTreeMap<Family, PrefixLimit>,
    /// How many prefixes the neighbour is told of in a family at the most; with ADD-PATH, how many paths. Others are held
    /// back until there is room. *Refresh.*
    pub max_prefixes_out: BTreeMap<Family, u32>,
    /// What happens to routes on the way in. *Refresh.*
    pub import: Chain,
    /// What happens to routes on the way out. *Refresh.*
    pub export: Chain,
    /// Which next hop the neighbour is told. *Refresh.*
    pub next_hop: NextHopMode,
    /// Our IPv4 address as a next hop, where the session's own address is none. *Refresh.*
    pub next_hop_v4: Option<Ipv4Addr>,
    /// Our IPv6 address as a next hop, where the session's own address is none; with an extended next hop also for
    /// IPv4 prefixes. *Refresh.*
    pub next_hop_v6: Option<Ipv6Addr>,
    /// SR policies of this neighbour count only with a route target that begins with an address, or NO_ADVERTISE (RFC 9830
    /// section 4.2.1). Nodes that speak through GoBGP 3 send neither. *Refresh.*
    pub sr_policy_strict: bool,
    /// The neighbour, which must be an internal one, is our client: what it tells goes to all internal neighbours, and what
    /// any of them tells goes to it (RFC 4456). *Refresh.*
    pub route_reflector_client: bool,
    /// How often each of our AS numbers may stand in the AS path of a route; else it has been here before. *Refresh.*
    pub allow_own_as: u8,
    /// An external neighbour's routes must have its AS number first in their paths; others count as withdrawn (RFC 4271
    /// section 6.3, RFC 7606 section 7.2). Not for those learned from a route server (RFC 7947). *Refresh.*
    pub enforce_first_as: bool,
    /// Our AS number is put in the place of an external neighbour's own, wherever it stands in the path of a route that it is
    /// told: so that sites of one AS hear of each other through us. *Refresh.*
    pub as_override: bool,
    /// Private AS numbers are taken out of the paths of routes that an external neighbour is told. *Refresh.*
    pub remove_private_as: Option<RemovePrivateAs>,
    /// Text for people. *Live.*
    pub description: String,
}

/// The AS number that we present to one neighbour instead of the speaker's own, so as if we had moved from one AS to the
/// other and this neighbour had not heard of it yet (RFC 7705).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LocalAsn {
    /// The number. *Reset.*
    pub asn: Asn,
    /// What an external neighbour tells does not get this number in front of its AS path, as if it had passed that AS.
    /// *Refresh.*
    pub no_prepend: bool,
    /// What an external neighbour is told has this number alone in front of its AS path, not the speaker's own behind it.
    /// *Refresh.*
    pub replace_as: bool,
}

impl LocalAsn {
    /// The neighbour sees this number and never the speaker's own, and nobody else sees it.
    #[must_use]
    pub const fn new(asn: Asn) -> Self {
        Self { asn, no_prepend: true, replace_as: true }
    }
}

/// Which private AS numbers (RFC 6996) are taken out of a path, and what for. The neighbour's own number always stays, so
/// that it sees its loops.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RemovePrivateAs {
    /// All of them; otherwise only those before the first that is public, or is the neighbour's own.
    pub all: bool,
    /// Our AS number is put in the place of each, so that the path stays as long as it was.
    pub replace: bool,
}

impl PeerConfig {
    /// A neighbour with the usual timers (see [`PeerSettings::new`]), IPv4 unicast, everything accepted and everything
    /// announced.
    #[must_use]
    pub fn new(remote_asn: RemoteAsn) -> Self {
        let usual = PeerSettings::new(Asn(0), remote_asn, RouterId(0));
        Self {
            remote_asn,
            local_asn: None,
            families: usual.families,
            extended_messages: usual.extended_messages,
            extended_next_hop: usual.extended_next_hop,
            add_path: usual.add_path,
            role: usual.role,
            hold_time: usual.hold_time,
            keepalive: usual.keepalive,
            connect_retry: usual.connect_retry,
            idle_hold: usual.idle_hold,
            passive: usual.passive,
            delay_open: usual.delay_open,
            graceful_restart: usual.graceful_restart,
            local_address: None,
            local_port: None,
            device: None,
            multihop_ttl: None,
            ttl_security: None,
            password: None,
            max_prefixes: BTreeMap::new(),
            max_prefixes_out: BTreeMap::new(),
            import: Chain::ACCEPT,
            export: Chain::ACCEPT,
            next_hop: NextHopMode::Default,
            next_hop_v4: None,
            next_hop_v6: None,
            sr_policy_strict: false,
            route_reflector_client: false,
            allow_own_as: 0,
            enforce_first_as: false,
            as_override: false,
            remove_private_as: None,
            description: String::new(),
        }
    }

    /// Checks what can be said of these settings alone, for a neighbour at this address, or in a prefix of such, of a
    /// speaker in AS `asn`.
    pub(crate) fn check(&self, remote: IpAddr, asn: Asn) -> Result<(), Refusal> {
        let is_host = |address: IpAddr| {
            let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
            !address.is_unspecified() && !address.is_multicast() && !broadcast
        };
        if let Some(local) = self.local_address {
            if local.is_ipv4() != remote.is_ipv4() {
                return Err(Contradiction::IpVersions { local, remote }.into());
            }
            if !is_host(local) {
                return Err(Refusal::LocalAddress(local));
            }
        }
        let own = [self.next_hop_v4.map(IpAddr::V4), self.next_hop_v6.map(IpAddr::V6)];
        if let Some(hop) = own.into_iter().flatten().find(|hop| !is_host(*hop)) {
            return Err(Refusal::OwnNextHop(hop));
        }
        if let Some(port) = self.local_port.filter(|_| self.passive) {
            return Err(Contradiction::LocalPortOfPassive(port).into());
        }
        let internal = match self.remote_asn {
            RemoteAsn::Is(theirs) => theirs == self.presented(asn),
            RemoteAsn::Internal => true,
            RemoteAsn::External => false,
        };
        if self.route_reflector_client && !internal {
            return Err(Contradiction::ExternalClient.into());
        }
        if let Some(ttl) = self.multihop_ttl.filter(|_| internal) {
            return Err(Contradiction::MultihopOfInternal(ttl).into());
        }
        let of_path =
            [(self.as_override, "as-override"), (self.remove_private_as.is_some(), "remove-private-as")];
        if let Some((_, setting)) = of_path.into_iter().find(|(wanted, _)| *wanted && internal) {
            return Err(Contradiction::PathOfInternal(setting).into());
        }
        if self.extended_next_hop && !self.families.iter().any(|family| family.afi() == IPV4) {
            return Err(Contradiction::ExtendedNextHopWithoutIpv4.into());
        }
        Ok(())
    }

    /// The AS number that we present, where the speaker's own is this.
    pub(crate) fn presented(&self, asn: Asn) -> Asn {
        self.local_asn.map_or(asn, |local| local.asn)
    }

    /// Whether what comes in may be judged differently with `new`, beside import policy.
    pub(crate) fn judges_otherwise(&self, new: &Self) -> bool {
        self.sr_policy_strict != new.sr_policy_strict
            || self.local_asn != new.local_asn
            || self.allow_own_as != new.allow_own_as
            || self.enforce_first_as != new.enforce_first_as
    }

    /// Whether connections would look different with `new`.
    pub(crate) fn has_other_transport(&self, new: &Self) -> bool {
        self.local_address != new.local_address
            || self.local_port != new.local_port
            || self.device != new.device
            || self.multihop_ttl != new.multihop_ttl
            || self.ttl_security != new.ttl_security
            || self.password != new.password
    }

    /// What the session is told.
    pub(crate) fn session(&self, asn: Asn, router_id: RouterId) -> PeerSettings {
        PeerSettings {
            local_asn: self.presented(asn),
            remote_asn: self.remote_asn,
            local_router_id: router_id,
            families: self.families,
            extended_messages: self.extended_messages,
            extended_next_hop: self.extended_next_hop,
            add_path: self.add_path,
            role: self.role,
            hold_time: self.hold_time,
            keepalive: self.keepalive,
            connect_retry: self.connect_retry,
            idle_hold: self.idle_hold,
            passive: self.passive,
            graceful_restart: self.graceful_restart,
            delay_open: self.delay_open,
        }
    }
}

/// A prefix whose addresses are welcome as neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerRange {
    /// What each of them is to be like. They are passive, whatever this says: nobody can connect to a prefix.
    pub config: PeerConfig,
    /// How many there may be at once. *Live.*
    pub limit: u32,
}

impl PeerRange {
    /// How many dynamic neighbours a prefix may have where nothing else is said.
    pub const USUAL_LIMIT: u32 = 100;

    /// A prefix with the usual limit.
    #[must_use]
    pub const fn new(config: PeerConfig) -> Self {
        Self { config, limit: Self::USUAL_LIMIT }
    }
}

/// The policies of one direction, which must exist. They run in this order, behind those of the speaker
/// ([`Command::PutGlobalPolicies`]), and the first decision counts; but a chain that is nothing but a `reject` is absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chain {
    /// The policies.
    pub policies: Vec<PolicyName>,
    /// What happens to a path that none of them decides.
    pub default: Otherwise,
}

impl Chain {
    /// Everything passes unchanged, unless a policy of the speaker says otherwise.
    pub const ACCEPT: Self = Self { policies: Vec::new(), default: Otherwise::Accept };
    /// Nothing passes, whatever a policy of the speaker says. This is what RFC 8212 asks for external neighbours without a
    /// policy.
    pub const REJECT: Self = Self { policies: Vec::new(), default: Otherwise::Reject };

    /// These policies.
    #[must_use]
    pub fn new<N: Into<PolicyName>>(policies: impl IntoIterator<Item = N>, default: Otherwise) -> Self {
        Self { policies: policies.into_iter().map(Into::into).collect(), default }
    }

    /// This policy alone; what it does not decide is rejected.
    #[must_use]
    pub fn named(policy: impl Into<PolicyName>) -> Self {
        Self::new([policy], Otherwise::Reject)
    }

    /// Whether nothing passes, whatever policies the speaker has.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        *self == Self::REJECT
    }

    /// Whether this policy is one of them.
    #[must_use]
    pub fn names(&self, policy: &PolicyName) -> bool {
        self.policies.contains(policy)
    }
}

/// Which next hop a neighbour is told.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextHopMode {
    /// RFC 4271 section 5.1.3: ourselves towards an external neighbour and for own routes, unchanged towards an
    /// internal one. In families with labels unchanged towards everyone: a label means something to its next hop only.
    #[default]
    Default,
    /// Always ourselves. A label stays what it is, so in families with labels this is for those who forward by it.
    SelfAddress,
    /// Always unchanged, where the route has one.
    Keep,
}

/// A locally originated route. ORIGIN is IGP and the AS path empty.
///
/// What a prefix of a VPN is known by, its distinguisher, is part of its [`Nlri`]; what it belongs to, its route targets,
/// are extended communities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origination {
    /// The next hop announced; absent means our own address of each session. It is of the prefix's IP version, or an IPv6 one
    /// of an IPv4 prefix: who has not agreed to such (RFC 8950) is told our own address in its place.
    pub next_hop: Option<IpAddr>,
    /// The label by which the next hop knows a prefix of a VPN, which must have one. No other route may.
    pub label: Option<Label>,
    /// MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// LOCAL_PREF towards internal neighbours; 100 where absent.
    pub local_pref: Option<u32>,
    /// Standard communities.
    pub communities: Vec<u32>,
    /// Large communities (RFC 8092): global administrator, local data 1, local data 2.
    pub large_communities: Vec<(u32, u32, u32)>,
    /// Extended communities (RFC 4360), such as the route targets of a VPN.
    pub ext_communities: Vec<ExtCommunity>,
    /// The candidate path of an SR policy, which must have one. No other route may. RFC 9830 section 4.1 wants a route
    /// target for each headend that it is meant for (`rt:` and its BGP Identifier), or the community NO_ADVERTISE; they
    /// are not added, since nodes that speak through GoBGP 3 do without.
    pub sr_policy: Option<Box<CandidatePath>>,
    /// Who may hear of it. Export policy still applies.
    pub audience: Audience,
}

impl Default for Origination {
    fn default() -> Self {
        Self {
            next_hop: None,
            label: None,
            med: None,
            local_pref: None,
            communities: Vec::new(),
            large_communities: Vec::new(),
            ext_communities: Vec::new(),
            sr_policy: None,
            audience: Audience::All,
        }
    }
}

/// What an aggregate is to be like (RFC 4271 section 9.2.2.2). Its AS path is empty (RFC 9774: no AS_SET), with
/// ATOMIC_AGGREGATE where that leaves out a path of what it stands for; ORIGIN is the worst of theirs, AGGREGATOR this
/// speaker, the next hop our own address. It has no MED, and of their communities none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// What is more specific is not told to anybody.
    pub summary_only: bool,
    /// Standard communities.
    pub communities: Vec<u32>,
    /// Large communities (RFC 8092): global administrator, local data 1, local data 2.
    pub large_communities: Vec<(u32, u32, u32)>,
}

/// Who may hear of an originated route.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// Every neighbour.
    #[default]
    All,
    /// External neighbours only.
    Ebgp,
    /// Internal neighbours only.
    Ibgp,
    /// The named neighbours only.
    Peers(BTreeSet<PeerKey>),
}

/// What a command did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was true already.
    Unchanged,
    /// It is true now; sessions stay up.
    Applied,
    /// It is true now, and at least one session had to start again.
    SessionReset,
}

/// Why a command was not carried out. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The peer does not exist.
    #[error("no peer {0}")]
    NoSuchPeer(PeerKey),
    /// The peer is administratively stopped.
    #[error("peer {0} is disabled")]
    Disabled(PeerKey),
    /// The prefix has host bits, or nothing is more specific.
    #[error("{0} cannot be an aggregate")]
    Aggregate(IpNet),
    /// The neighbour's address cannot be that of a neighbour (unspecified, multicast, broadcast).
    #[error("{0} cannot be a neighbour's address")]
    PeerAddress(IpAddr),
    /// The prefix has host bits, or holds no address of a neighbour.
    #[error("{0} cannot be a prefix of neighbours' addresses")]
    PeerRange(IpNet),
    /// What the session would be told makes no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Two settings of a neighbour contradict each other.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The address cannot be our end of a connection (unspecified, multicast, broadcast).
    #[error("{0} cannot be a local address")]
    LocalAddress(IpAddr),
    /// The address cannot be our own next hop (unspecified, multicast, broadcast).
    #[error("{0} cannot be a next hop of our own")]
    OwnNextHop(IpAddr),
    /// The next hop cannot carry the prefix, or is no unicast address.
    #[error("{0} cannot be the next hop of this prefix")]
    NextHop(IpAddr),
    /// A prefix of a VPN without a label cannot be announced (RFC 8277).
    #[error("{0} needs a label")]
    NoLabel(Nlri),
    /// The family of the route has no labels.
    #[error("{0} cannot have a label: only prefixes of VPNs have one")]
    Label(Nlri),
    /// An SR policy without a candidate path says nothing.
    #[error("SR policy {0} needs a candidate path")]
    NoCandidatePath(Nlri),
    /// The route is no SR policy.
    #[error("{0} cannot have a candidate path: only SR policies have one")]
    CandidatePath(Nlri),
    /// The candidate path says what it may not.
    #[error(transparent)]
    BadCandidatePath(#[from] CandidatePathError),
    /// A peer names a policy that does not exist.
    #[error("no policy {0}")]
    NoSuchPolicy(PolicyName),
    /// The policy cannot be compiled.
    #[error("{}", join(.0))]
    Policy(Vec<PolicyMistake>),
    /// The policy is in use.
    #[error("policy {policy} is used by peer {peer}")]
    PolicyInUse {
        /// The policy that was to go.
        policy: PolicyName,
        /// The first peer that names it.
        peer: PeerKey,
    },
    /// The policy is in use.
    #[error("policy {policy} is used by the dynamic peers of {prefix}")]
    PolicyInUseByRange {
        /// The policy that was to go.
        policy: PolicyName,
        /// The first prefix whose neighbours have it.
        prefix: IpNet,
    },
    /// The policy is in use.
    #[error("policy {policy} is called by policy {caller}")]
    PolicyInUseByPolicy {
        /// The policy that was to go.
        policy: PolicyName,
        /// The first policy that calls it.
        caller: PolicyName,
    },
    /// The policy is in use.
    #[error("policy {policy} is one of those that run for every peer on {}", way(*.direction))]
    PolicyInUseByAll {
        /// The policy that was to go.
        policy: PolicyName,
        /// Where it is used.
        direction: Direction,
    },
    /// The set is in use.
    #[error("{kind} {set} is used by policy {policy}")]
    SetInUse {
        /// The kind of the set that was to go.
        kind: SetKind,
        /// The set that was to go.
        set: SetName,
        /// The first policy that names it.
        policy: PolicyName,
    },
    /// A shutdown text longer than 255 octets (RFC 9003).
    #[error("the text has {0} octets; at most 255 fit")]
    TextTooLong(usize),
    /// The communities and paths of a route do not fit into one message.
    #[error("the attributes do not fit into one message")]
    TooLarge,
}

/// Two settings of a neighbour that cannot both be had. The words are those of the speaker's file.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// The two ends of a connection are of one IP version.
    #[error("local-address {local} and the neighbour's address {remote} are of different IP versions")]
    IpVersions {
        /// [`PeerConfig::local_address`].
        local: IpAddr,
        /// The neighbour's address, or that of its prefix.
        remote: IpAddr,
    },
    /// A link-local address means nothing without its link: the zone of the key, or [`PeerConfig::device`].
    #[error(
        "the link-local address {0} and no interface contradict each other: give it a zone, or set device"
    )]
    LinkLocalWithoutInterface(IpAddr),
    /// [`PeerConfig::local_port`] is for connections that we open; with [`PeerConfig::passive`] there are none.
    #[error("local-port {0} and passive contradict each other: a passive neighbour is never connected to")]
    LocalPortOfPassive(NonZeroU16),
    /// [`PeerConfig::multihop_ttl`] is for external neighbours; internal ones may be anywhere.
    #[error(
        "multihop {0} and an internal neighbour contradict each other: it may be any number of hops away"
    )]
    MultihopOfInternal(u8),
    /// [`PeerConfig::route_reflector_client`] is for internal neighbours (RFC 4456 section 6).
    #[error(
        "route-reflector-client and an external neighbour contradict each other: clients are of our own AS"
    )]
    ExternalClient,
    /// [`PeerConfig::as_override`] and [`PeerConfig::remove_private_as`] are for external neighbours: an internal one is told
    /// an AS path as it is.
    #[error("{0} and an internal neighbour contradict each other: paths stay as they are inside an AS")]
    PathOfInternal(&'static str),
    /// [`PeerConfig::extended_next_hop`] is about IPv4 prefixes; [`PeerConfig::families`] has none with such.
    #[error("extended-next-hop and families contradict each other: none of them has IPv4 prefixes")]
    ExtendedNextHopWithoutIpv4,
}

const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Import => "import",
        Direction::Export => "export",
    }
}

fn join(mistakes: &[PolicyMistake]) -> String {
    let mut text = String::new();
    for mistake in mistakes {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&mistake.to_string());
    }
    text
}
