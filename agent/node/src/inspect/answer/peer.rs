//! A neighbour, as JSON.

use bgp_core::FamilySet;
use bgp_core::query::{FamilyStatus, Idle, LimitStatus, PeerStatus};
use bgp_core::session::State;
use serde::{Deserialize, Serialize};

use super::{afi_safi, nanoseconds};
use crate::inspect::base64::base64;

/// A neighbour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Peer {
    /// The AS number we present.
    pub(crate) local_asn: u32,
    /// The neighbour's AS number; 0 where neither configuration nor OPEN told it.
    pub(crate) peer_asn: u32,
    /// Its address.
    pub(crate) peer_address: String,
    /// Its port.
    pub(crate) peer_port: u16,
    /// What its configuration calls it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    /// `idle`, `connect`, `active`, `open_sent`, `open_confirm` or `established`; `unknown` for one that can't run.
    pub(crate) session_state: String,
    /// Stopped by an operator.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) disabled: bool,
    /// About to be left by an operator: both ends are to prefer other paths (RFC 8326).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) graceful_shutdown: bool,
    /// Why it is not established, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_reason: Option<String>,
    /// Why the last session ended, or could not begin, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    /// What is wrong with its configuration as it was last read, where it runs all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) configuration_error: Option<String>,
    /// How long it has been established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) uptime_nanoseconds: Option<u64>,
    /// How often it became established.
    pub(crate) established_transitions: u64,
    /// Its families.
    pub(crate) families: Vec<PeerFamily>,
    /// ConnectRetryTime.
    pub(crate) connect_retry_time_seconds: u64,
    /// Hold time offered.
    pub(crate) configured_hold_time_seconds: u16,
    /// KEEPALIVE interval configured or derived.
    pub(crate) configured_keep_alive_time_seconds: u16,
    /// Hold time agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) applied_hold_time_seconds: Option<u16>,
    /// KEEPALIVE interval in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) applied_keep_alive_time_seconds: Option<u16>,
    /// TTL of an external session over several hops; 1 where it is directly connected.
    pub(crate) ebgp_multihop_ttl: u8,
    /// Graceful restart.
    pub(crate) graceful_restart: GracefulRestart,
    /// Whether segments are signed.
    pub(crate) tcp_password_enabled: bool,
    /// How many hops away it may be, where TTL security says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttl_security: Option<u8>,
    /// What we are to it (RFC 9234).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    /// What it says that it is to us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer_role: Option<String>,
    /// The prefix that made it a neighbour, where it isn't configured itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dynamic_prefix: Option<String>,
    /// The neighbour's BGP Identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) router_id: Option<String>,
    /// Our end of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) local_address: Option<String>,
    /// Messages received.
    pub(crate) messages_received: u64,
    /// Messages sent.
    pub(crate) messages_sent: u64,
    /// UPDATEs whose routes were treated as withdrawn, since they were faulty (RFC 7606).
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) updates_treated_as_withdraw: u64,
    /// Faulty attributes that were dropped from UPDATEs (RFC 7606).
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) attributes_discarded: u64,
    /// Families that both ends offer, while established.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) agreed_families: Vec<String>,
    /// Families that we offer and the neighbour doesn't, while established.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) missing_families: Vec<String>,
    /// Names of the capabilities that both ends offer, while established.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) agreed_capabilities: Vec<String>,
    /// What the neighbour offers and we make nothing of: names, or numbers where we know none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored_capabilities: Vec<String>,
    /// Capabilities offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) local_capabilities: Vec<Capability>,
    /// Capabilities received.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) remote_capabilities: Vec<Capability>,
}

/// One family of a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct PeerFamily {
    /// `ipv4` or `ipv6`.
    pub(crate) afi: String,
    /// `unicast`.
    pub(crate) safi: String,
    /// Prefixes received.
    pub(crate) received: u64,
    /// Those that import policy let in.
    pub(crate) accepted: u64,
    /// Prefixes announced.
    pub(crate) advertised: u64,
    /// What was agreed about several paths of a prefix, while established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) add_path: Option<AddPath>,
    /// How many it may announce, where there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prefix_limit: Option<PrefixLimit>,
    /// How many it is told of at the most, where there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prefix_limit_out: Option<u32>,
    /// What a person should know of its limits, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
}

/// How many prefixes a neighbour may announce in a family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct PrefixLimit {
    /// The limit.
    pub(crate) limit: u32,
    /// `warn`, `discard` or `reset`.
    pub(crate) action: String,
    /// What counts towards it: received, but not what is stale.
    pub(crate) counted: u64,
    /// Announcements that were not kept since the neighbour last said everything, or was last asked to.
    pub(crate) discarded: u64,
}

impl From<LimitStatus> for PrefixLimit {
    fn from(status: LimitStatus) -> Self {
        let LimitStatus { limit, counted, discarded } = status;
        Self { limit: limit.limit, action: limit.action.to_string(), counted, discarded }
    }
}

/// Several paths of a prefix (RFC 7911) in one family, as agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct AddPath {
    /// Whether the neighbour may send several.
    pub(crate) receive: bool,
    /// How many of one prefix it is sent at the most; absent where it is sent the best one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) send: Option<u8>,
}

/// Graceful restart of a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct GracefulRestart {
    /// Whether it is offered.
    pub(crate) enabled: bool,
    /// The restart time offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restart_time_seconds: Option<u16>,
    /// The restart time that the neighbour asks for, while established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer_restart_time_seconds: Option<u16>,
    /// Families whose routes the neighbour gets kept over a restart, while established.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) peer_families: Vec<String>,
    /// Long-lived graceful restart, family by family, where either end offers it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) long_lived: Vec<LongLivedFamily>,
    /// Families whose routes are kept though the neighbour went away, or were and have not all been said again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stale_families: Vec<String>,
    /// Those of them in which routes are kept beyond the restart time, as a last resort.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) long_lived_stale_families: Vec<String>,
    /// How much longer they are kept at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stale_seconds: Option<u64>,
}

/// Long-lived graceful restart (RFC 9494) of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct LongLivedFamily {
    /// The family.
    pub(crate) family: String,
    /// The stale time offered, which is also the longest that routes of the neighbour are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stale_time_seconds: Option<u32>,
    /// The stale time that the neighbour asks for, while established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer_stale_time_seconds: Option<u32>,
}

impl LongLivedFamily {
    fn all(status: &PeerStatus) -> Vec<Self> {
        let ours = status.graceful_restart.map(|graceful| graceful.long_lived).unwrap_or_default();
        let families = status.families.iter().map(|family| family.family);
        let one = |family| {
            let time = ours.time(family).secs();
            let theirs = status.long_lived_agreed.filter(|agreed| agreed.families.contains(family));
            Self {
                family: family.to_string(),
                stale_time_seconds: (time > 0).then_some(time),
                peer_stale_time_seconds: theirs.map(|agreed| agreed.stale_time(family)),
            }
        };
        let there = |it: &Self| it.stale_time_seconds.is_some() || it.peer_stale_time_seconds.is_some();
        families.map(one).filter(there).collect()
    }
}

impl From<&PeerStatus> for GracefulRestart {
    fn from(status: &PeerStatus) -> Self {
        let names = |families: FamilySet| families.iter().map(|family| family.to_string()).collect();
        let agreed = status.restart_agreed;
        Self {
            enabled: status.graceful_restart.is_some(),
            restart_time_seconds: status.graceful_restart.map(|graceful| graceful.restart_time.secs()),
            peer_restart_time_seconds: agreed.map(|agreed| agreed.time),
            peer_families: agreed.map(|agreed| names(agreed.families)).unwrap_or_default(),
            long_lived: LongLivedFamily::all(status),
            stale_families: names(status.stale),
            long_lived_stale_families: names(status.long_lived_stale),
            stale_seconds: status.stale_for.map(|time| time.as_secs()),
        }
    }
}

/// A capability as on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Capability {
    /// The whole TLV in base64.
    pub(crate) capabilities: String,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The names of those of `theirs` that `keep` wants, once each, in their order.
fn names(theirs: &[Vec<u8>], keep: impl Fn(u8, &[u8]) -> bool) -> Vec<String> {
    let mut names = Vec::new();
    for tlv in theirs {
        let [code, _, value @ ..] = &tlv[..] else { continue };
        let name = bgp_wire::Capability::name(*code).map_or_else(|| code.to_string(), str::to_owned);
        if keep(*code, value) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl From<&PeerStatus> for Peer {
    fn from(status: &PeerStatus) -> Self {
        let up = status.state == State::Established;
        let reason = match (up, status.disabled, &status.last_error) {
            (true, ..) => None,
            (false, true, _) if status.shutdown_text.is_empty() => {
                Some("administratively stopped".to_owned())
            }
            (false, true, _) => Some(format!("administratively stopped: {}", status.shutdown_text)),
            (false, false, Some(error)) => Some(error.clone()),
            (false, false, None) => Some("no session yet".to_owned()),
        };
        let reason = match (reason, status.idle) {
            (Some(reason), Some(Idle::For(time))) => {
                Some(format!("{reason}; kept idle for {} s", time.as_secs()))
            }
            (Some(reason), Some(Idle::UntilStarted)) => {
                Some(format!("{reason}; kept idle until it is cleared or enabled"))
            }
            (reason, _) => reason,
        };
        let reason = match (reason, status.stale_for) {
            (Some(reason), Some(time)) => {
                let how = if status.long_lived_stale.is_empty() { "" } else { ", as a last resort" };
                Some(format!("{reason}; its routes are kept for up to {} s{how}", time.as_secs()))
            }
            (reason, _) => reason,
        };
        let capabilities = |list: &[Vec<u8>]| {
            list.iter().map(|tlv| Capability { capabilities: base64(tlv) }).collect::<Vec<_>>()
        };
        let offered = |code| status.local_capabilities.iter().any(|tlv| tlv.first() == Some(&code));
        let is_unknown = |code, value: &[u8]| {
            matches!(bgp_wire::Capability::parse(code, value), bgp_wire::Capability::Unknown { .. })
        };
        let zone = status.key.zone.map(|zone| format!("%{}", zone.index())).unwrap_or_default();
        Self {
            local_asn: status.local_asn.0,
            peer_asn: status.remote_asn.unwrap_or_default().0,
            peer_address: format!("{}{zone}", status.key.address),
            peer_port: status.key.port,
            name: status.description.clone(),
            session_state: status.state.to_string(),
            disabled: status.disabled,
            graceful_shutdown: status.graceful_shutdown,
            state_reason: reason,
            last_error: status.last_error.clone(),
            configuration_error: None,
            uptime_nanoseconds: status.uptime.map(nanoseconds),
            established_transitions: status.established_count,
            families: status.families.iter().map(PeerFamily::from).collect(),
            connect_retry_time_seconds: status.connect_retry.as_secs(),
            configured_hold_time_seconds: status.configured_hold_time,
            configured_keep_alive_time_seconds: status.configured_keepalive,
            applied_hold_time_seconds: status.applied_hold_time,
            applied_keep_alive_time_seconds: status.applied_keepalive,
            ebgp_multihop_ttl: status.multihop_ttl,
            graceful_restart: GracefulRestart::from(status),
            tcp_password_enabled: status.has_password,
            ttl_security: status.ttl_security.map(std::num::NonZeroU8::get),
            role: status.role.map(|role| role.role.to_string()),
            peer_role: status.remote_role.map(|role| role.to_string()),
            dynamic_prefix: status.range.map(|prefix| prefix.to_string()),
            router_id: status.remote_router_id.map(|id| id.to_string()),
            local_address: status.local_address.map(|address| address.to_string()),
            messages_received: status.received.total(),
            messages_sent: status.sent.total(),
            updates_treated_as_withdraw: status.treated_as_withdraw,
            attributes_discarded: status.attributes_discarded,
            agreed_families: status.negotiated.iter().map(|family| family.to_string()).collect(),
            missing_families: status
                .families
                .iter()
                .map(|family| family.family)
                .filter(|family| up && !status.negotiated.contains(*family))
                .map(|family| family.to_string())
                .collect(),
            agreed_capabilities: names(&status.remote_capabilities, |code, value| {
                up && offered(code) && !is_unknown(code, value)
            }),
            ignored_capabilities: names(&status.remote_capabilities, is_unknown),
            local_capabilities: capabilities(&status.local_capabilities),
            remote_capabilities: capabilities(&status.remote_capabilities),
        }
    }
}

impl From<&FamilyStatus> for PeerFamily {
    fn from(status: &FamilyStatus) -> Self {
        let (afi, safi) = afi_safi(status.family);
        let (received, accepted, advertised) = (status.received, status.accepted, status.advertised);
        let (receive, send) = (status.add_path_receive, status.add_path_send.map(std::num::NonZeroU8::get));
        Self {
            afi: afi.into(),
            safi: safi.into(),
            received,
            accepted,
            advertised,
            add_path: (receive || send.is_some()).then_some(AddPath { receive, send }),
            prefix_limit: status.limit.map(PrefixLimit::from),
            prefix_limit_out: status.limit_out,
            condition: status.condition(),
        }
    }
}
