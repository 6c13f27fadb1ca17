//! Route policies, as JSON, with conditions and changes in words.

use std::fmt::Display;

use bgp_core::command::Chain;
use bgp_core::policy::{
    Act, Condition, Default as Undecided, Direction, Flow, Learned, Match, Members, Otherwise, PeerType,
    PolicyDef, PolicyName, StatementDef,
};
use bgp_core::query::PolicyStatus;
use serde::{Deserialize, Serialize};

/// Everything about policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Policies {
    /// Names of the policies that run before each neighbour's own on import.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) import: Vec<String>,
    /// Names of the policies that run before each neighbour's own on export.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) export: Vec<String>,
    /// The chains of each neighbour.
    pub(crate) neighbors: Vec<NeighborPolicies>,
    /// All policies, each once, in the order of their names.
    pub(crate) policies: Vec<Policy>,
}

/// The chains of a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct NeighborPolicies {
    /// Its address, with zone and port where they matter.
    pub(crate) neighbor: String,
    /// What runs over what it sends.
    pub(crate) import: NeighborChain,
    /// What runs over what it is told.
    pub(crate) export: NeighborChain,
}

/// Policies of which the first decision counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct NeighborChain {
    /// Their names, in the order in which they run.
    pub(crate) policies: Vec<String>,
    /// What happens to a path that none decides: `accept` or `reject`.
    pub(crate) default: String,
}

/// A policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Policy {
    /// Its name.
    pub(crate) name: String,
    /// Its statements, of which the first that matches and decides counts.
    pub(crate) statements: Vec<Statement>,
    /// What happens to a path that none decides: `accept`, `reject`, or `next` for the next policy.
    pub(crate) default: String,
}

/// A statement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Statement {
    /// Its place, from 1.
    pub(crate) number: usize,
    /// The object it came from, and which rule of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<String>,
    /// What must hold, all of it.
    #[serde(rename = "if")]
    pub(crate) when: Vec<String>,
    /// What is changed.
    pub(crate) set: Vec<String>,
    /// `accept`, `reject`, `next` for the next statement, or `call NAME`.
    pub(crate) then: String,
}

impl From<&PolicyStatus> for Policies {
    fn from(status: &PolicyStatus) -> Self {
        let names = |names: &[PolicyName]| names.iter().map(ToString::to_string).collect();
        let neighbor = |peer: &bgp_core::query::PeerPolicies| NeighborPolicies {
            neighbor: peer.key.to_string(),
            import: NeighborChain::from(&peer.import),
            export: NeighborChain::from(&peer.export),
        };
        Self {
            import: names(&status.import),
            export: names(&status.export),
            neighbors: status.peers.iter().map(neighbor).collect(),
            policies: status.library.policies().map(|(name, def)| Policy::new(name, def)).collect(),
        }
    }
}

impl From<&Chain> for NeighborChain {
    fn from(chain: &Chain) -> Self {
        let default = match chain.default {
            Otherwise::Accept => "accept",
            Otherwise::Reject => "reject",
        };
        Self { policies: chain.policies.iter().map(ToString::to_string).collect(), default: default.into() }
    }
}

impl Policy {
    /// A policy as it is declared.
    pub(crate) fn new(name: &PolicyName, def: &PolicyDef) -> Self {
        let default = match def.default {
            Undecided::Accept => "accept",
            Undecided::Reject => "reject",
            Undecided::Next => "next",
        };
        Self {
            name: name.to_string(),
            statements: def.statements.iter().zip(1..).map(Statement::new).collect(),
            default: default.into(),
        }
    }
}

impl Statement {
    fn new((def, number): (&StatementDef, usize)) -> Self {
        Self {
            number,
            label: def.label.as_deref().map(str::to_owned),
            when: def.when.iter().map(condition).collect(),
            set: def.apply.iter().map(act).collect(),
            then: then(&def.then),
        }
    }
}

/// The name of a direction.
pub(crate) const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Import => "import",
        Direction::Export => "export",
    }
}

/// Where a path goes that has matched.
pub(crate) fn then(flow: &Flow) -> String {
    match flow {
        Flow::Accept => "accept".into(),
        Flow::Reject => "reject".into(),
        Flow::Next => "next".into(),
        Flow::Call(name) => format!("call {name}"),
    }
}

fn list<T: Display>(all: &[T]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join(", ")
}

fn members<T: Display>(kind: &str, how: Match, members: &Members<T>) -> String {
    let how = match how {
        Match::Any => "any",
        Match::All => "all",
    };
    match members {
        Members::Set(name) => format!("{how} of {kind} {name}"),
        Members::These(these) => format!("{how} of {kind} {}", list(these)),
    }
}

fn range(range: &std::ops::RangeInclusive<u32>) -> String {
    match (*range.start(), *range.end()) {
        (from, to) if from == to => from.to_string(),
        (0, u32::MAX) => "present".into(),
        (from, u32::MAX) => format!("at least {from}"),
        (0, to) => format!("at most {to}"),
        (from, to) => format!("{from} to {to}"),
    }
}

/// A condition in words.
fn condition(condition: &Condition) -> String {
    let several = |all: &[Condition]| all.iter().map(self::condition).collect::<Vec<_>>().join("; ");
    match condition {
        Condition::PrefixSet(name) => format!("prefix in set {name}"),
        Condition::Prefix(ranges) => format!("prefix in {}", list(ranges)),
        Condition::NeighborSet(name) => format!("neighbor in set {name}"),
        Condition::Neighbor(addresses) => format!("neighbor {}", list(addresses)),
        Condition::Community(community) => format!("community {community}"),
        Condition::LargeCommunity(community) => format!("large community {community}"),
        Condition::ExtCommunity(community) => format!("extended community {community}"),
        Condition::Communities(how, of) => members("communities", *how, of),
        Condition::LargeCommunities(how, of) => members("large communities", *how, of),
        Condition::ExtCommunities(how, of) => members("extended communities", *how, of),
        Condition::Learned(learned) => match learned {
            Learned::Local => "own route",
            Learned::External => "learned from an external neighbor",
            Learned::Internal => "learned from an internal neighbor",
        }
        .into(),
        Condition::PeerType(kind) => match kind {
            PeerType::External => "external session",
            PeerType::Internal => "internal session",
        }
        .into(),
        Condition::Family(families) => list(families),
        Condition::Rd(rd) => format!("route distinguisher {rd}"),
        Condition::Interface(glob) => format!("interface {glob}"),
        Condition::NextHop(nets) => format!("next hop in {}", list(nets)),
        Condition::Origin(origin) => format!("origin {origin}"),
        Condition::AsPathLength(lengths) => format!("AS path length {}", range(lengths)),
        Condition::AsPathSet(name) => format!("AS path in set {name}"),
        Condition::AsPath(patterns) => format!("AS path {}", list(patterns)),
        Condition::AsPathPrefix(asns) => {
            let asns: Vec<String> = asns.iter().map(ToString::to_string).collect();
            format!("AS path begins with {}", asns.join(" "))
        }
        Condition::LocalPref(values) => format!("local-pref {}", range(values)),
        Condition::Med(values) => format!("med {}", range(values)),
        Condition::Not(inner) => format!("not ({})", self::condition(inner)),
        Condition::Any(all) => format!("any of ({})", several(all)),
        Condition::All(all) => format!("all of ({})", several(all)),
    }
}

/// A change in words.
fn act(act: &Act) -> String {
    let replace = |kind: &str, with: String| match with.as_str() {
        "" => format!("no {kind}"),
        with => format!("{kind} {with} alone"),
    };
    match act {
        Act::SetLocalPref(value) => format!("local-pref {value}"),
        Act::SetMed(value) => format!("med {value}"),
        Act::AddMed(value) => format!("med {value:+}"),
        Act::RemoveMed => "no med".into(),
        Act::SetOrigin(origin) => format!("origin {origin}"),
        Act::NextHopSelf => "next hop self".into(),
        Act::SetNextHop(hop) => format!("next hop {hop}"),
        Act::Prepend(asn, 1) => format!("prepend {asn}"),
        Act::Prepend(asn, times) => format!("prepend {asn} {times} times"),
        Act::PrependPath(asns) => {
            let asns: Vec<String> = asns.iter().map(ToString::to_string).collect();
            format!("prepend {}", asns.join(" "))
        }
        Act::AddCommunity(community) => format!("add community {community}"),
        Act::AddLargeCommunity(community) => format!("add large community {community}"),
        Act::AddExtCommunity(community) => format!("add extended community {community}"),
        Act::RemoveCommunities(of) => removed("communities", of),
        Act::RemoveLargeCommunities(of) => removed("large communities", of),
        Act::RemoveExtCommunities(of) => removed("extended communities", of),
        Act::ReplaceCommunities(with) => replace("communities", list(with)),
        Act::ReplaceLargeCommunities(with) => replace("large communities", list(with)),
        Act::ReplaceExtCommunities(with) => replace("extended communities", list(with)),
    }
}

fn removed<T: Display>(kind: &str, members: &Members<T>) -> String {
    match members {
        Members::Set(name) => format!("remove {kind} of set {name}"),
        Members::These(these) => format!("remove {kind} {}", list(these)),
    }
}

#[cfg(test)]
mod tests {
    use bgp_core::Asn;
    use bgp_core::policy::Glob;

    use super::*;

    #[test]
    fn statements_in_words() {
        let when = vec![
            Condition::Family(vec![bgp_core::Family::Ipv4Unicast]),
            Condition::Prefix(vec!["10.0.0.0/8 le 24".parse().unwrap()]),
            Condition::Not(Box::new(Condition::PrefixSet("own".into()))),
            Condition::Any(vec![
                Condition::Interface(Glob::new("*.cali")),
                Condition::Learned(Learned::Local),
            ]),
            Condition::LocalPref(0..=u32::MAX),
            Condition::Med(7..=7),
            Condition::AsPathLength(3..=u32::MAX),
            Condition::AsPathPrefix(vec![Asn(65000), Asn(65001)]),
            Condition::Communities(Match::Any, Members::Set("mark".into())),
            Condition::PeerType(PeerType::External),
        ];
        let apply = vec![
            Act::AddMed(-5),
            Act::Prepend(Asn(65000), 1),
            Act::PrependPath(vec![Asn(1), Asn(2)]),
            Act::ReplaceCommunities(Vec::new()),
            Act::RemoveLargeCommunities(Members::Set("theirs".into())),
        ];
        let statement =
            StatementDef::new(when, apply, Flow::Call("other".into())).labelled("where it is from");
        let def = PolicyDef { statements: vec![statement], default: Undecided::Next };
        let policy = Policy::new(&"p".into(), &def);
        assert_eq!((policy.name.as_str(), policy.default.as_str()), ("p", "next"));
        let [statement] = &policy.statements[..] else { panic!() };
        assert_eq!(statement.label.as_deref(), Some("where it is from"));
        assert_eq!(
            statement.when,
            [
                "ipv4-unicast",
                "prefix in 10.0.0.0/8 le 24",
                "not (prefix in set own)",
                "any of (interface *.cali; own route)",
                "local-pref present",
                "med 7",
                "AS path length at least 3",
                "AS path begins with 65000 65001",
                "any of communities mark",
                "external session",
            ]
        );
        assert_eq!(
            statement.set,
            [
                "med -5",
                "prepend 65000",
                "prepend 1 2",
                "no communities",
                "remove large communities of set theirs"
            ]
        );
        assert_eq!((statement.number, statement.then.as_str()), (1, "call other"));
    }
}
