//! A destination with its paths, as JSON.

use bgp_core::query::{PathEntry, RouteEntry};
use bgp_core::rib::sr_policy::candidate_path;
use bgp_core::rib::{Loss, PathRejected, Standing};
use bgp_wire::{Asn, Family, Label, NextHop, Nlri, RouterId};
use serde::{Deserialize, Serialize};

use super::{SrPolicy, afi_safi, nanoseconds};
use crate::inspect::base64::base64;

/// A destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Route {
    /// The AS number of the speaker.
    pub(crate) router_asn: u32,
    /// Whose table it is; absent for the Loc-RIB.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) neighbor: String,
    /// The prefix; in a VPN behind its route distinguisher. An SR policy's distinguisher, color and endpoint.
    pub(crate) prefix: String,
    /// The route distinguisher of the VPN that the prefix is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rd: Option<String>,
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
    /// Whether it is used, beside the best one or as such: one of several equal ones.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) multipath: bool,
    /// Which rung of the decision it lost by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<Lost>,
    /// How long we have had it.
    pub(crate) age_nanoseconds: u64,
    /// Who it came from; absent for an own route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// Its path identifier, as received or, in what was sent, as sent; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_id: Option<u32>,
    /// The next hop; unspecified for an own route that names none, as it is our address of each session.
    pub(crate) next_hop: String,
    /// The label by which the next hop knows the prefix of a VPN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<u32>,
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
    /// ONLY_TO_CUSTOMER: the AS that sent it down to a customer or across to a peer (RFC 9234).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) only_to_customer: Option<u32>,
    /// What an SR policy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sr_policy: Option<SrPolicy>,
    /// Kept for a neighbour that went away, or came back and has not said it again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stale: bool,
    /// Kept for longer than its neighbour's restart time, as a last resort (RFC 9494).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) long_lived_stale: bool,
    /// Why it may not become the best one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<String>,
}

/// What a path lost by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Lost {
    /// The rung of the decision.
    pub(crate) rung: String,
    /// What it had there.
    pub(crate) own: String,
    /// What another path had there, that went on.
    pub(crate) better: String,
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
    pub(crate) fn new((asn, router_id): (Asn, RouterId), neighbor: Option<&str>, entry: &RouteEntry) -> Self {
        let mut paths: Vec<Path> =
            entry.paths.iter().map(|path| Path::new(router_id, entry.nlri, path)).collect();
        // The best one is one of several where there is another.
        if paths.iter().any(|path| path.multipath) {
            paths.iter_mut().filter(|path| path.best).for_each(|path| path.multipath = true);
        }
        Self {
            router_asn: asn.0,
            neighbor: neighbor.unwrap_or_default().to_owned(),
            prefix: entry.nlri.to_string(),
            rd: entry.nlri.rd().map(|rd| rd.to_string()),
            decided_by: entry.decided_by.map(|rung| rung.to_string()),
            paths,
        }
    }
}

impl Path {
    fn new(router_id: RouterId, nlri: Nlri, path: &PathEntry) -> Self {
        let set = bgp_wire::attr::Canonical(path.attrs.canonical());
        let (afi, safi) = afi_safi(nlri.family());
        let mut attributes: Vec<(u8, Vec<u8>)> =
            set.attrs().map(|attr| (attr.code, attr.raw.to_vec())).collect();
        let label = path.attrs.label();
        attributes.extend(path.next_hop.map(|hop| next_hop_attribute(nlri, label, &hop)));
        attributes.sort_by_key(|(code, _)| *code);
        let next_hop = match path.next_hop {
            Some(hop) => hop.to_string(),
            None if nlri.family().is_ipv4() => "0.0.0.0".to_owned(),
            None => "::".to_owned(),
        };
        let rejected = path.rejected.map(rejected);
        let rejected = rejected.or(match path.standing {
            Some(Standing::Unreachable) => Some("next hop unreachable"),
            Some(Standing::Gone) => Some("its neighbor has gone"),
            Some(Standing::Best | Standing::Beside | Standing::Lost(_) | Standing::Rejected(_)) | None => {
                None
            }
        });
        let lost = match path.standing {
            Some(Standing::Lost(Loss { rung, own, better })) => {
                Some(Lost { rung: rung.to_string(), own: own.to_string(), better: better.to_string() })
            }
            Some(
                Standing::Best
                | Standing::Beside
                | Standing::Unreachable
                | Standing::Gone
                | Standing::Rejected(_),
            )
            | None => None,
        };
        let communities = set.communities().map(|community| match community.name() {
            Some(name) => name.to_owned(),
            None => community.to_string(),
        });
        let communities = communities
            .chain(set.large_communities().map(|community| community.to_string()))
            .chain(set.ext_communities().map(|community| community.to_string()))
            .collect();
        let sr_policy = candidate_path(set, router_id)
            .and_then(|(candidate, usable)| SrPolicy::new(nlri, &candidate, usable));
        Self {
            nlri: Encoded { base64: base64(&nlri.octets(label)) },
            family: PathFamily { afi: afi.into(), safi: safi.into() },
            path_attributes: attributes
                .iter()
                .map(|(_, octets)| Encoded { base64: base64(octets) })
                .collect(),
            best: path.best,
            multipath: path.standing == Some(Standing::Beside),
            lost,
            age_nanoseconds: nanoseconds(path.age),
            source: path.source.map(|source| source.to_string()),
            path_id: path.path_id.map(|id| id.0),
            next_hop,
            label: label.map(Label::value),
            as_path: set.as_path().to_string(),
            origin: set.origin().to_string(),
            med: set.med(),
            local_pref: set.local_pref(),
            communities,
            only_to_customer: set.only_to_customer().map(|asn| asn.0),
            sr_policy,
            stale: path.stale,
            long_lived_stale: path.long_lived_stale,
            rejected: rejected.map(str::to_owned),
        }
    }
}

/// Why a path takes no part in the decision, in words.
pub(super) fn rejected(why: PathRejected) -> &'static str {
    match why {
        PathRejected::ImportPolicy => "import policy",
        PathRejected::AsLoop => "own AS number in the AS path",
        PathRejected::OriginatorLoop => "own identifier is the originator",
        PathRejected::OwnNextHop => "own address is the next hop",
        PathRejected::RouteLeak => "route leak: ONLY_TO_CUSTOMER says that it must not come from there",
        PathRejected::NoTarget => "neither a route target with an address nor no-advertise",
        PathRejected::FirstAs => "the AS path does not begin with the neighbor's AS number",
        PathRejected::ClusterLoop => "own cluster identifier in the cluster list",
        PathRejected::TooLong => "an attribute is too long with what import adds",
    }
}

/// NEXT_HOP (RFC 4271 section 5.1.3), or MP_REACH_NLRI (RFC 4760 section 3) for this prefix alone.
fn next_hop_attribute(nlri: Nlri, label: Option<Label>, hop: &NextHop) -> (u8, Vec<u8>) {
    let family = nlri.family();
    if let (Family::Ipv4Unicast, NextHop::V4(hop)) = (family, hop) {
        return (3, [0x40, 3, 4].into_iter().chain(hop.octets()).collect());
    }
    let hop = hop.octets(family);
    let [afi_high, afi_low] = family.afi().to_be_bytes();
    // Far less than 256 octets.
    let hop_len = hop.len() as u8;
    let value: Vec<u8> = [afi_high, afi_low, family.safi(), hop_len]
        .into_iter()
        .chain(hop)
        .chain([0])
        .chain(nlri.octets(label))
        .collect();
    (14, [0x80, 14, value.len() as u8].into_iter().chain(value).collect())
}
