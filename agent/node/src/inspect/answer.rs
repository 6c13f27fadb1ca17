//! What the inspection socket answers, as the JSON that programs read: fields may be added, none renamed.
//!
//! Peers and routes have the fields that Cilium's agents give, and plain readable ones beside them. The commands read the
//! same types back.

use std::time::Duration;

use bgp_core::query::{FamilyStatus, PathEntry, PeerStatus, RouteEntry};
use bgp_core::rib::PathRejected;
use bgp_core::session::State;
use bgp_wire::{Asn, Family, NextHop, Nlri};
use serde::{Deserialize, Serialize};

use super::base64::base64;

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
    /// Why it is not established, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_reason: Option<String>,
    /// Why the last session ended, or could not begin, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
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
}

/// Graceful restart of a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct GracefulRestart {
    /// Whether it is offered.
    pub(crate) enabled: bool,
    /// The restart time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) restart_time_seconds: Option<u16>,
}

/// A capability as on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Capability {
    /// The whole TLV in base64.
    pub(crate) capabilities: String,
}

impl From<&PeerStatus> for Peer {
    fn from(status: &PeerStatus) -> Self {
        let up = status.state == State::Established;
        let reason = match (up, status.disabled, &status.last_error) {
            (true, ..) => None,
            (false, true, _) => Some("administratively stopped".to_owned()),
            (false, false, Some(error)) => Some(error.clone()),
            (false, false, None) => Some("no session yet".to_owned()),
        };
        let capabilities = |list: &[Vec<u8>]| {
            list.iter().map(|tlv| Capability { capabilities: base64(tlv) }).collect::<Vec<_>>()
        };
        let zone = status.key.zone.map(|zone| format!("%{}", zone.index())).unwrap_or_default();
        Self {
            local_asn: status.local_asn.0,
            peer_asn: status.remote_asn.unwrap_or_default().0,
            peer_address: format!("{}{zone}", status.key.address),
            peer_port: status.key.port,
            name: status.description.clone(),
            session_state: status.state.to_string(),
            state_reason: reason,
            last_error: status.last_error.clone(),
            uptime_nanoseconds: status.uptime.map(nanoseconds),
            established_transitions: status.established_count,
            families: status.families.iter().map(PeerFamily::from).collect(),
            connect_retry_time_seconds: status.connect_retry.as_secs(),
            configured_hold_time_seconds: status.configured_hold_time,
            configured_keep_alive_time_seconds: status.configured_keepalive,
            applied_hold_time_seconds: status.applied_hold_time,
            applied_keep_alive_time_seconds: status.applied_keepalive,
            ebgp_multihop_ttl: status.multihop_ttl,
            graceful_restart: GracefulRestart::default(),
            tcp_password_enabled: false,
            router_id: status.remote_router_id.map(|id| id.to_string()),
            local_address: status.local_address.map(|address| address.to_string()),
            messages_received: status.received.total(),
            messages_sent: status.sent.total(),
            local_capabilities: capabilities(&status.local_capabilities),
            remote_capabilities: capabilities(&status.remote_capabilities),
        }
    }
}

impl From<&FamilyStatus> for PeerFamily {
    fn from(status: &FamilyStatus) -> Self {
        let (afi, safi) = afi_safi(status.family);
        let (received, accepted, advertised) = (status.received, status.accepted, status.advertised);
        Self { afi: afi.into(), safi: safi.into(), received, accepted, advertised }
    }
}

/// A destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Route {
    /// The AS number of the speaker.
    pub(crate) router_asn: u32,
    /// Whose table it is; absent for the Loc-RIB.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) neighbor: String,
    /// The prefix.
    pub(crate) prefix: String,
    /// Which rung of the decision chose the best path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decided_by: Option<String>,
    /// The paths, the best one first.
    pub(crate) paths: Vec<Path>,
}

/// A path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Path {
    /// The prefix as on the wire.
    pub(crate) nlri: Encoded,
    /// Its family.
    pub(crate) family: PathFamily,
    /// Each attribute as on the wire.
    pub(crate) path_attributes: Vec<Encoded>,
    /// Whether it is the best one.
    pub(crate) best: bool,
    /// How long we have had it.
    pub(crate) age_nanoseconds: u64,
    /// Who it came from; absent for an own route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// The next hop; unspecified for an own route that names none, as it is our address of each session.
    pub(crate) next_hop: String,
    /// The AS path in words; sets in braces.
    pub(crate) as_path: String,
    /// ORIGIN.
    pub(crate) origin: String,
    /// MULTI_EXIT_DISC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) med: Option<u32>,
    /// LOCAL_PREF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) local_pref: Option<u32>,
    /// Communities of all three kinds, as they are written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) communities: Vec<String>,
    /// Why it may not become the best one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<String>,
}

/// Octets in base64.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Encoded {
    /// The text.
    pub(crate) base64: String,
}

/// The family of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathFamily {
    /// `ipv4` or `ipv6`.
    pub(crate) afi: String,
    /// `unicast`.
    pub(crate) safi: String,
}

impl Route {
    /// A destination of the table of `neighbor`, or of the Loc-RIB.
    pub(crate) fn new(asn: Asn, neighbor: Option<&str>, entry: &RouteEntry) -> Self {
        Self {
            router_asn: asn.0,
            neighbor: neighbor.unwrap_or_default().to_owned(),
            prefix: entry.nlri.to_string(),
            decided_by: entry.decided_by.map(|rung| rung.to_string()),
            paths: entry.paths.iter().map(|path| Path::new(entry.nlri, path)).collect(),
        }
    }
}

impl Path {
    fn new(nlri: Nlri, path: &PathEntry) -> Self {
        let set = bgp_wire::attr::Canonical(path.attrs.canonical());
        let (afi, safi) = afi_safi(nlri.family());
        let mut attributes: Vec<(u8, Vec<u8>)> =
            set.attrs().map(|attr| (attr.code, attr.raw.to_vec())).collect();
        attributes.extend(path.next_hop.map(|hop| next_hop_attribute(nlri, &hop)));
        attributes.sort_by_key(|(code, _)| *code);
        let next_hop = match (path.next_hop, nlri) {
            (Some(hop), _) => hop.to_string(),
            (None, Nlri::V4(_)) => "0.0.0.0".to_owned(),
            (None, Nlri::V6(_)) => "::".to_owned(),
        };
        let rejected = path.rejected.map(|why| match why {
            PathRejected::ImportPolicy => "import policy",
            PathRejected::AsLoop => "own AS number in the AS path",
            PathRejected::OriginatorLoop => "own identifier is the originator",
        });
        let communities = set.communities().map(|community| match community.name() {
            Some(name) => name.to_owned(),
            None => community.to_string(),
        });
        let communities = communities
            .chain(set.large_communities().map(|community| community.to_string()))
            .chain(set.ext_communities().map(|community| community.to_string()))
            .collect();
        Self {
            nlri: Encoded { base64: base64(&wire_prefix(nlri)) },
            family: PathFamily { afi: afi.into(), safi: safi.into() },
            path_attributes: attributes
                .iter()
                .map(|(_, octets)| Encoded { base64: base64(octets) })
                .collect(),
            best: path.best,
            age_nanoseconds: nanoseconds(path.age),
            source: path.source.map(|source| source.to_string()),
            next_hop,
            as_path: set.as_path().to_string(),
            origin: set.origin().to_string(),
            med: set.med(),
            local_pref: set.local_pref(),
            communities,
            rejected: rejected.map(str::to_owned),
        }
    }
}

/// A prefix as UPDATE carries it: its length, and as many octets as that takes.
fn wire_prefix(nlri: Nlri) -> Vec<u8> {
    let (len, octets) = match nlri {
        Nlri::V4(net) => (net.prefix_len(), net.addr().octets().to_vec()),
        Nlri::V6(net) => (net.prefix_len(), net.addr().octets().to_vec()),
    };
    let significant = usize::from(len).div_ceil(8);
    [len].into_iter().chain(octets.into_iter().take(significant)).collect()
}

/// NEXT_HOP (RFC 4271 section 5.1.3), or MP_REACH_NLRI (RFC 4760 section 3) for this prefix alone.
fn next_hop_attribute(nlri: Nlri, hop: &NextHop) -> (u8, Vec<u8>) {
    let hop = match hop.address() {
        std::net::IpAddr::V4(hop) if nlri.family() == Family::Ipv4Unicast => {
            return (3, [0x40, 3, 4].into_iter().chain(hop.octets()).collect());
        }
        std::net::IpAddr::V4(hop) => hop.octets().to_vec(),
        std::net::IpAddr::V6(hop) => hop.octets().to_vec(),
    };
    let family = nlri.family();
    let [afi_high, afi_low] = family.afi().to_be_bytes();
    // Far less than 256 octets.
    let hop_len = hop.len() as u8;
    let value: Vec<u8> = [afi_high, afi_low, family.safi(), hop_len]
        .into_iter()
        .chain(hop)
        .chain([0])
        .chain(wire_prefix(nlri))
        .collect();
    (14, [0x80, 14, value.len() as u8].into_iter().chain(value).collect())
}

/// The names of a family's two parts.
pub(crate) fn afi_safi(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::Ipv4Unicast => ("ipv4", "unicast"),
        Family::Ipv6Unicast => ("ipv6", "unicast"),
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What the agent put into VPP, and how that stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Vpp {
    /// `up`, `connecting`, or `off` where the agent speaks BGP only.
    pub(crate) state: String,
    /// VPP's release.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// Which connection this is, counted from 1.
    pub(crate) generation: u64,
    /// Why there is no connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    /// Whether everything is as wanted and known: every source is in sync, the first routes are all in, VPP holds all
    /// that is wanted and nothing of ours that isn't, and the speaker has been told everything.
    pub(crate) converged: bool,
    /// Objects by kind.
    pub(crate) kinds: Vec<Count>,
    /// Objects that are not as they should be, with reasons; the first ones where there are very many.
    pub(crate) objects: Vec<Unsettled>,
    /// What is wrong with what was configured.
    pub(crate) conditions: Vec<Problem>,
}

/// Objects of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Count {
    /// The kind.
    pub(crate) kind: String,
    /// Wanted.
    pub(crate) desired: u64,
    /// There, as wanted.
    pub(crate) present: u64,
    /// To be made, changed or removed, or under way.
    pub(crate) pending: u64,
    /// Can't be made now.
    pub(crate) blocked: u64,
}

/// An object that is not as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Unsettled {
    /// The object.
    pub(crate) object: String,
    /// `pending` or `blocked`.
    pub(crate) state: String,
    /// Why.
    pub(crate) reason: String,
}

/// Something wrong with what was configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Problem {
    /// `error`: no effect, or the last good version stays; `warning`: in force all the same.
    pub(crate) severity: String,
    /// The object's kind.
    pub(crate) kind: String,
    /// The object's name.
    pub(crate) name: String,
    /// The field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) field: String,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    /// What is wrong.
    pub(crate) reason: String,
    /// What would put it right.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) remedy: String,
}

/// The program itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Version {
    /// Its release.
    pub(crate) version: String,
    /// The commit it was built from.
    pub(crate) commit: String,
    /// VPP releases whose messages it speaks.
    pub(crate) vpp_releases: Vec<String>,
}

impl Version {
    /// Of this very program.
    pub(crate) fn own() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("PEREGRINE_COMMIT").unwrap_or("unknown").to_owned(),
            vpp_releases: crate::execute::VPP_RELEASES.iter().map(|release| (*release).to_owned()).collect(),
        }
    }
}

/// An error answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// What is wrong with the question.
    pub(crate) error: String,
}
