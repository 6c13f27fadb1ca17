//! The life of one destination on this node, as JSON.

use agent_core::explain::{Carried, CarriedHop, Explained, ExplainedObject};
use bgp_core::query::{Explanation, NotTold, PathLife, PolicyReason, Telling};
use bgp_core::rib::{PathRejected, Standing};
use bgp_wire::attr::Canonical;
use bgp_wire::{Asn, Nlri, RouterId};
use serde::{Deserialize, Serialize};

use super::route::{Path, Route, rejected};

/// The life of a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Life {
    /// What was asked for.
    pub(crate) asked: String,
    /// The destination that this is about: that one, or the longest prefix with routes that holds it.
    pub(crate) prefix: String,
    /// Whether the two are the same.
    pub(crate) exact: bool,
    /// Which rung of the decision chose the best path; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decided_by: Option<String>,
    /// Every path received or originated, the best one first.
    pub(crate) paths: Vec<Received>,
    /// How the agent has its traffic carried; absent where it is not learned, and from a speaker alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connectivity: Option<Connectivity>,
    /// Objects of VPP that it is made of; absent where there is no VPP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vpp: Option<Vec<Object>>,
    /// One entry for each neighbour.
    pub(crate) peers: Vec<Told>,
}

/// A path, and what import made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Received {
    /// The path after import policy, with how it fared; as `routes` has it.
    pub(crate) path: Path,
    /// What import made of it; absent for an own route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) import: Option<Import>,
}

/// What import made of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Import {
    /// Whether it was let in.
    pub(crate) accepted: bool,
    /// Which statement of which policy said so, or which rule of BGP.
    pub(crate) by: Rule,
    /// What policy changed of it, one text for each attribute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<String>,
}

/// What decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Rule {
    /// In words.
    pub(crate) reason: String,
    /// The policy, where one decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// Its statement, counted from 1; absent for its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) statement: Option<usize>,
    /// The object and the rule that the statement was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
}

/// How traffic is carried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Connectivity {
    /// The pool whose encapsulation counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<String>,
    /// Its prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool_cidr: Option<String>,
    /// One entry for each next hop.
    pub(crate) hops: Vec<Hop>,
}

/// How traffic gets to a next hop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Hop {
    /// The next hop.
    pub(crate) address: String,
    /// Its share against the others.
    pub(crate) weight: u8,
    /// `flat`, `ipip`; absent where no provider can do it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    /// Why.
    pub(crate) reason: String,
}

/// An object of VPP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Object {
    /// Which.
    pub(crate) object: String,
    /// `present`, `pending`, `blocked`, `unknown` while VPP is away, or `left-over` of an earlier run.
    pub(crate) state: String,
    /// The value that it has, or shall have; absent where it has none that could be told.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) value: String,
    /// Why it is blocked.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Of a route, its paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<String>,
}

/// What a neighbour is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Told {
    /// Which neighbour.
    pub(crate) peer: String,
    /// Whether it is told.
    pub(crate) advertised: bool,
    /// The routes as they are sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<Path>,
    /// Why it is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_by: Option<Rule>,
}

impl Life {
    /// What the speaker says, and the agent where there is one.
    pub(crate) fn new(
        identity: (Asn, RouterId),
        asked: Nlri,
        explanation: &Explanation,
        explained: Option<Explained>,
        has_vpp: bool,
    ) -> Self {
        let Explanation { nlri, decided_by, paths, told } = explanation;
        let entry = |paths: Vec<bgp_core::query::PathEntry>| bgp_core::query::RouteEntry {
            nlri: *nlri,
            decided_by: *decided_by,
            paths,
        };
        let shown = |paths| Route::new(identity, None, &entry(paths)).paths;
        let after = shown(paths.iter().map(|life| life.path.clone()).collect());
        let (carried, objects) = explained.map(|Explained { carried, objects }| (carried, objects)).unzip();
        Self {
            asked: asked.to_string(),
            prefix: nlri.to_string(),
            exact: asked == *nlri,
            decided_by: decided_by.map(|rung| rung.to_string()),
            paths: after
                .into_iter()
                .zip(paths)
                .map(|(path, life)| Received { path, import: import(life) })
                .collect(),
            connectivity: carried.flatten().map(Connectivity::from),
            vpp: objects.filter(|_| has_vpp).map(|all| all.into_iter().map(Object::from).collect()),
            peers: told
                .iter()
                .map(|Telling { peer, told }| match told {
                    Ok(paths) => Told {
                        peer: peer.to_string(),
                        advertised: true,
                        paths: shown(paths.clone()),
                        stopped_by: None,
                    },
                    Err(why) => {
                        Told { peer: peer.to_string(), stopped_by: Some(why.into()), ..Told::default() }
                    }
                })
                .collect(),
        }
    }
}

fn import(life: &PathLife) -> Option<Import> {
    life.path.source?;
    let accepted = life.path.rejected.is_none();
    let by = match (&life.import, life.path.standing) {
        (Some(by), _) => by.into(),
        (None, Some(Standing::Rejected(why))) if why != PathRejected::ImportPolicy => {
            Rule { reason: rejected(why).to_owned(), ..Rule::default() }
        }
        (None, _) => Rule { reason: "its session is gone".to_owned(), ..Rule::default() },
    };
    Some(Import { accepted, by, changes: if accepted { changes(life) } else { Vec::new() } })
}

/// What policy changed, in words.
fn changes(life: &PathLife) -> Vec<String> {
    let (before, after) = (Canonical(life.received.canonical()), Canonical(life.path.attrs.canonical()));
    let number = |value: Option<u32>| value.map_or_else(|| "none".to_owned(), |value| value.to_string());
    let communities = |set: Canonical<'_>| {
        let all = set.communities().map(|community| community.to_string());
        let all = all.chain(set.large_communities().map(|community| community.to_string()));
        let all = all.chain(set.ext_communities().map(|community| community.to_string()));
        let all: Vec<String> = all.collect();
        if all.is_empty() { "none".to_owned() } else { all.join(" ") }
    };
    let hop = |set: &bgp_core::rib::AttrSet| {
        set.next_hop().map_or_else(|| "self".to_owned(), |next_hop| next_hop.to_string())
    };
    let pairs = [
        ("next hop", hop(&life.received), hop(&life.path.attrs)),
        ("local-pref", number(before.local_pref()), number(after.local_pref())),
        ("med", number(before.med()), number(after.med())),
        ("origin", before.origin().to_string(), after.origin().to_string()),
        ("as-path", before.as_path().to_string(), after.as_path().to_string()),
        ("communities", communities(before), communities(after)),
    ];
    let changed = pairs.into_iter().filter(|(_, before, after)| before != after);
    changed.map(|(what, before, after)| format!("{what}: {before} -> {after}")).collect()
}

impl From<&PolicyReason> for Rule {
    fn from(by: &PolicyReason) -> Self {
        let PolicyReason { policy, statement, label } = by;
        Self {
            reason: by.to_string(),
            policy: policy.as_ref().map(ToString::to_string),
            statement: *statement,
            label: label.clone(),
        }
    }
}

impl From<&NotTold> for Rule {
    fn from(why: &NotTold) -> Self {
        let reason = why.to_string();
        match why {
            NotTold::Policy(by) => Self { reason, ..by.into() },
            NotTold::NoSession
            | NotTold::NoFamily(_)
            | NotTold::NoRoute
            | NotTold::FromThere
            | NotTold::Summarised
            | NotTold::Barred(_)
            | NotTold::Audience
            | NotTold::Deferred
            | NotTold::NextHop
            | NotTold::Limit
            | NotTold::TooLarge
            | NotTold::Pending => Self { reason, ..Self::default() },
        }
    }
}

impl From<Carried> for Connectivity {
    fn from(Carried { pool, hops }: Carried) -> Self {
        let (pool, pool_cidr) = pool.map(|(name, cidr)| (name.to_string(), cidr.to_string())).unzip();
        let hop = |CarriedHop { address, weight, provider, reason }| Hop {
            address: address.to_string(),
            weight,
            provider: provider.map(str::to_owned),
            reason,
        };
        Self { pool, pool_cidr, hops: hops.into_iter().map(hop).collect() }
    }
}

impl From<ExplainedObject> for Object {
    fn from(explained: ExplainedObject) -> Self {
        let ExplainedObject { object, standing, value, reason, paths, .. } = explained;
        Self { object: object.to_string(), state: standing.name().to_owned(), value, reason, paths }
    }
}
