//! `sets` and `policies`, and the chains of policies that name them.
//!
//! Sets of prefixes are told to the speaker by name; members of the others are put in place of their names, so that a policy
//! with a changed set is simply another policy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use bgp_core::command::Chain;
use bgp_core::policy::{
    Act, AsPathPattern, CommunityPattern, Condition, Default as Undecided, ExtCommunityPattern, Flow,
    LargeCommunityPattern, Learned, Match, Members, Otherwise, PeerType, PolicyDef, PolicyName, PrefixRange,
    PrefixRangeError, SetName, StatementDef,
};
use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity, Origin};
use ipnet::IpNet;

use super::{asn, metric};
use crate::yaml::{Fields, Item, Mistake, nearest};

/// The defined sets of a file.
#[derive(Debug, Default)]
pub(super) struct FileSets {
    /// `prefixes`: the speaker keeps them by name.
    pub(super) prefixes: BTreeMap<SetName, Vec<PrefixRange>>,
    neighbors: BTreeMap<String, Vec<IpAddr>>,
    /// `communities`, `large-communities` and `ext-communities`; a name is one of all three.
    communities: BTreeMap<String, Patterns>,
    as_paths: BTreeMap<String, Vec<AsPathPattern>>,
}

/// Patterns of communities of every kind.
#[derive(Clone, Debug, Default)]
struct Patterns {
    standard: Vec<CommunityPattern>,
    large: Vec<LargeCommunityPattern>,
    ext: Vec<ExtCommunityPattern>,
}

/// Communities of every kind.
#[derive(Clone, Debug, Default)]
struct Communities {
    standard: Vec<Community>,
    large: Vec<LargeCommunity>,
    ext: Vec<ExtCommunity>,
}

const COMMUNITY: &str = "a community such as 65000:1, 65000:1:2, no-export or rt:65000:1";
const PATTERN: &str =
    "a community such as 65000:1, 65000:1:2, no-export or rt:65000:1, or one with * for any number";
const ADDRESS: &str = "an address such as 192.0.2.2";
/// A condition that other policies know, and none of a speaker alone.
const INTERFACE: &str = "interface";

impl Patterns {
    fn extend(&mut self, other: &Self) {
        self.standard.extend(&other.standard);
        self.large.extend(&other.large);
        self.ext.extend(&other.ext);
    }

    /// Reads one; the number of colons decides which kind it is, and `rt:`, `soo:` or `ext:`.
    fn read(&mut self, item: &Item<'_>) {
        let Some(text) = item.text() else { return };
        if let Ok(standard) = text.parse() {
            self.standard.push(standard);
        } else if let Ok(large) = text.parse() {
            self.large.push(large);
        } else if let Ok(ext) = text.parse() {
            self.ext.push(ext);
        } else {
            item.flaw(Mistake::Value { wanted: PATTERN, found: text.to_owned() });
        }
    }

    /// The conditions that a path carries one of them, by kind; several are alternatives.
    fn any(self) -> Condition {
        let Self { standard, large, ext } = self;
        let mut kinds = Vec::new();
        if !standard.is_empty() {
            kinds.push(Condition::Communities(Match::Any, Members::These(standard)));
        }
        if !large.is_empty() {
            kinds.push(Condition::LargeCommunities(Match::Any, Members::These(large)));
        }
        if !ext.is_empty() {
            kinds.push(Condition::ExtCommunities(Match::Any, Members::These(ext)));
        }
        match (kinds.pop(), kinds.is_empty()) {
            (Some(only), true) => only,
            (Some(last), false) => Condition::Any(kinds.into_iter().chain([last]).collect()),
            // A set without members: nothing is in it.
            (None, _) => Condition::Communities(Match::Any, Members::These(Vec::new())),
        }
    }

    /// The conditions that a path carries something for each of them.
    fn all(self) -> Condition {
        let Self { standard, large, ext } = self;
        Condition::All(vec![
            Condition::Communities(Match::All, Members::These(standard)),
            Condition::LargeCommunities(Match::All, Members::These(large)),
            Condition::ExtCommunities(Match::All, Members::These(ext)),
        ])
    }
}

/// Read `sets`.
pub(super) fn decode_sets(item: Option<Item<'_>>) -> FileSets {
    let mut sets = FileSets::default();
    let Some(mut fields) = item.and_then(|item| item.fields()) else { return sets };
    for (name, item) in entries(&mut fields, "prefixes") {
        sets.prefixes.insert(SetName::new(name), prefix_ranges(&item));
    }
    for (name, item) in entries(&mut fields, "neighbors") {
        let all = item.list().iter().filter_map(|item| item.parse(ADDRESS)).collect();
        sets.neighbors.insert(name.to_owned(), all);
    }
    for (name, item) in entries(&mut fields, "communities") {
        let mut all = Patterns::default();
        item.list().iter().for_each(|item| all.read(item));
        sets.communities.insert(name.to_owned(), all);
    }
    for (name, item) in entries(&mut fields, "large-communities") {
        let large = parsed(&item, "a large community such as 65000:1:2 or 65000:1:*");
        let known = sets.communities.insert(name.to_owned(), Patterns { large, ..Patterns::default() });
        one_of_all(&item, known.is_some());
    }
    for (name, item) in entries(&mut fields, "ext-communities") {
        let ext = parsed(&item, "an extended community such as rt:65000:1 or rt:65000:*");
        let known = sets.communities.insert(name.to_owned(), Patterns { ext, ..Patterns::default() });
        one_of_all(&item, known.is_some());
    }
    for (name, item) in entries(&mut fields, "as-paths") {
        sets.as_paths.insert(name.to_owned(), item.list().iter().filter_map(as_path).collect());
    }
    fields.finish();
    sets
}

fn entries<'a>(fields: &mut Fields<'a>, key: &'static str) -> Vec<(&'a str, Item<'a>)> {
    fields.take(key).map(|item| item.entries()).unwrap_or_default()
}

fn one_of_all(item: &Item<'_>, taken: bool) {
    if taken {
        item.flaw(Mistake::Conflict { rule: "sets of communities of different kinds need different names" });
    }
}

/// The members of a list, or the one value that stands in its place.
fn several<'a>(item: &Item<'a>) -> Vec<Item<'a>> {
    if item.is_scalar() { vec![item.clone()] } else { item.list() }
}

fn parsed<T: FromStr>(item: &Item<'_>, wanted: &'static str) -> Vec<T> {
    several(item).iter().filter_map(|item| item.parse(wanted)).collect()
}

fn as_path(item: &Item<'_>) -> Option<AsPathPattern> {
    match item.text()?.parse::<AsPathPattern>() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            item.flaw(Mistake::Refused { reason: error.to_string() });
            None
        }
    }
}

/// A pattern where a name may stand too. No AS path has letters, so what has the form of a name is one.
fn named_as_path(item: &Item<'_>, sets: &FileSets) -> Option<AsPathPattern> {
    let text = item.text()?;
    let in_name = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    if !(text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(in_name)) {
        return as_path(item);
    }
    if sets.as_paths.contains_key(text) {
        item.flaw(Mistake::Conflict { rule: "the name of a set stands alone, not in a list of patterns" });
    } else {
        unknown(item, text, sets.as_paths.keys().map(String::as_str));
    }
    None
}

fn prefix_ranges(item: &Item<'_>) -> Vec<PrefixRange> {
    several(item).iter().filter_map(prefix_range).collect()
}

fn prefix_range(item: &Item<'_>) -> Option<PrefixRange> {
    let wanted = "a prefix with bounds of lengths if need be, such as 10.0.0.0/8 or 10.0.0.0/8 ge 16 le 24";
    let mistake = match item.text()?.parse() {
        Ok(range) => return Some(range),
        Err(PrefixRangeError::Syntax(found)) => Mistake::Value { wanted, found },
        // It has the form that is wanted.
        Err(error @ (PrefixRangeError::HostBits(_) | PrefixRangeError::Lengths { .. })) => {
            Mistake::Refused { reason: error.to_string() }
        }
    };
    item.flaw(mistake);
    None
}

/// `import` or `export` of a neighbour: a policy, or a list of them, of which the last may be `accept` or `reject`, for what
/// none of them decides.
pub(super) fn decode_chain(item: &Item<'_>, known: &BTreeSet<PolicyName>) -> Chain {
    let mut chain = Chain::REJECT;
    let items = several(item);
    let count = items.len();
    for (at, item) in items.iter().enumerate() {
        match item.text() {
            Some("accept") if at + 1 == count => chain.default = Otherwise::Accept,
            Some("reject") if at + 1 == count => chain.default = Otherwise::Reject,
            Some("accept" | "reject") => item.flaw(Mistake::Conflict {
                rule: "accept and reject come last: what is behind them is never asked",
            }),
            Some(name) => chain.policies.extend(policy_name(item, name, known)),
            None => {}
        }
    }
    chain
}

/// `import` or `export` of the speaker: policies that run before those of each neighbour.
pub(super) fn decode_global(item: Option<Item<'_>>, known: &BTreeSet<PolicyName>) -> Vec<PolicyName> {
    let Some(item) = item else { return Vec::new() };
    let items = several(&item);
    let name = |item: &Item<'_>| item.text().and_then(|name| policy_name(item, name, known));
    items.iter().filter_map(name).collect()
}

fn policy_name(item: &Item<'_>, name: &str, known: &BTreeSet<PolicyName>) -> Option<PolicyName> {
    let named = PolicyName::new(name);
    if !known.contains(&named) {
        unknown(item, name, known.iter().map(PolicyName::as_str));
        return None;
    }
    Some(named)
}

/// The policies in an order in which each comes behind those that it calls.
pub(super) fn in_order(policies: &BTreeMap<PolicyName, PolicyDef>) -> Vec<&PolicyName> {
    let mut left: BTreeMap<&PolicyName, BTreeSet<PolicyName>> =
        policies.iter().map(|(name, def)| (name, def.calls())).collect();
    let mut order = Vec::with_capacity(policies.len());
    loop {
        let waits = |calls: &BTreeSet<PolicyName>| calls.iter().any(|name| left.contains_key(name));
        let ready: Vec<_> = left.iter().filter(|(_, calls)| !waits(calls)).map(|(name, _)| *name).collect();
        if ready.is_empty() {
            // Those that call one another in a circle: whoever is told of them says so.
            order.extend(left.into_keys());
            return order;
        }
        ready.iter().for_each(|name| drop(left.remove(name)));
        order.extend(ready);
    }
}

/// Read one policy. `known` are the names of all of them.
pub(super) fn decode_policy(
    item: &Item<'_>,
    sets: &FileSets,
    known: &BTreeSet<PolicyName>,
) -> Option<PolicyDef> {
    let mut fields = item.fields()?;
    let statements = fields.take("statements").map(|item| item.list()).unwrap_or_default();
    let statements = statements.iter().filter_map(|item| decode_statement(item, sets, known)).collect();
    let default = match fields.need("default").and_then(|item| item.word(&["accept", "reject", "next"])) {
        Some(0) => Undecided::Accept,
        Some(2) => Undecided::Next,
        _ => Undecided::Reject,
    };
    fields.finish();
    Some(PolicyDef { statements, default })
}

fn decode_statement(item: &Item<'_>, sets: &FileSets, known: &BTreeSet<PolicyName>) -> Option<StatementDef> {
    let mut fields = item.fields()?;
    let label = fields.take("label").and_then(|item| item.text()).map(Into::into);
    let mut when = Vec::new();
    if let Some(item) = fields.take("if") {
        conditions(&item, sets, false, &mut when);
    }
    let apply = fields.take("set").map(|item| actions(&item, sets)).unwrap_or_default();
    let then = fields.need("then").map_or(Flow::Next, |item| flow(&item, known));
    fields.finish();
    Some(StatementDef { label, when, apply, then })
}

fn flow(item: &Item<'_>, known: &BTreeSet<PolicyName>) -> Flow {
    if item.is_scalar() {
        return match item.word(&["accept", "reject", "next"]) {
            Some(0) => Flow::Accept,
            Some(1) => Flow::Reject,
            _ => Flow::Next,
        };
    }
    let Some(mut fields) = item.fields() else { return Flow::Next };
    let called = fields.need("call").and_then(|item| policy_name(&item, item.text()?, known));
    fields.finish();
    called.map_or(Flow::Next, Flow::Call)
}

/// Read `if`, or `not` inside it.
fn conditions(item: &Item<'_>, sets: &FileSets, negated: bool, when: &mut Vec<Condition>) {
    let Some(mut fields) = item.fields() else { return };
    let mut add = |condition: Condition| {
        when.push(if negated { Condition::Not(Box::new(condition)) } else { condition });
    };
    if let Some(item) = fields.take("prefixes") {
        if item.is_scalar() {
            if let Some(name) = item.text() {
                if !sets.prefixes.contains_key(&SetName::new(name)) {
                    unknown(&item, name, sets.prefixes.keys().map(SetName::as_str));
                }
                add(Condition::PrefixSet(SetName::new(name)));
            }
        } else {
            add(Condition::Prefix(prefix_ranges(&item)));
        }
    }
    if let Some(item) = fields.take("neighbors") {
        let named = item.is_scalar().then(|| item.text().and_then(|name| sets.neighbors.get(name))).flatten();
        let addresses = match named {
            Some(addresses) => addresses.clone(),
            None => several(&item).iter().filter_map(|item| item.parse(ADDRESS)).collect(),
        };
        add(Condition::Neighbor(addresses));
    }
    if let Some(item) = fields.take("community") {
        add(patterns(&item, sets).any());
    }
    if let Some(item) = fields.take("all-communities") {
        add(patterns(&item, sets).all());
    }
    if let Some(item) = fields.take("as-path") {
        let named = item.is_scalar().then(|| item.text().and_then(|name| sets.as_paths.get(name))).flatten();
        let all = match named {
            Some(all) => all.clone(),
            None => several(&item).iter().filter_map(|item| named_as_path(item, sets)).collect(),
        };
        add(Condition::AsPath(all));
    }
    if let Some(item) = fields.take("as-path-prefix") {
        add(Condition::AsPathPrefix(several(&item).iter().filter_map(asn).collect()));
    }
    for (key, of) in [
        ("as-path-length", Condition::AsPathLength as fn(RangeInclusive<u32>) -> Condition),
        ("local-pref", Condition::LocalPref),
        ("med", Condition::Med),
    ] {
        if let Some(range) = fields.take(key).and_then(|item| range(&item)) {
            add(of(range));
        }
    }
    if let Some(item) = fields.take("source") {
        match item.word(&["local", "external", "internal"]) {
            Some(0) => add(Condition::Learned(Learned::Local)),
            Some(1) => add(Condition::Learned(Learned::External)),
            Some(_) => add(Condition::Learned(Learned::Internal)),
            None => {}
        }
    }
    if let Some(word) = fields.take("peer-type").and_then(|item| item.word(&["external", "internal"])) {
        add(Condition::PeerType(if word == 0 { PeerType::External } else { PeerType::Internal }));
    }
    if let Some(item) = fields.take("family") {
        add(Condition::Family(parsed(&item, super::neighbor::FAMILIES)));
    }
    if let Some(item) = fields.take(INTERFACE) {
        // It would never hold, and its negation always.
        item.flaw(Mistake::Unsupported {
            remedy: "leave it out: a speaker alone is not told through which interface a next hop is reached",
        });
    }
    if let Some(item) = fields.take("next-hop") {
        let wanted = "an address or a prefix such as 192.0.2.2 or 192.0.2.0/24";
        let net =
            |text: &str| text.parse::<IpNet>().ok().or_else(|| Some(text.parse::<IpAddr>().ok()?.into()));
        let nets = several(&item);
        add(Condition::NextHop(nets.iter().filter_map(|item| item.parse_with(wanted, net)).collect()));
    }
    if let Some(origin) = fields.take("origin").and_then(|item| origin(&item)) {
        add(Condition::Origin(origin));
    }
    let wanted = "a route distinguisher such as 65000:100, 192.0.2.1:100 or 4200000000:100";
    if let Some(rd) = fields.take("rd").and_then(|item| item.parse(wanted)) {
        add(Condition::Rd(rd));
    }
    if let Some(item) = fields.take("any") {
        let one = |item: &Item<'_>| {
            let mut all = Vec::new();
            conditions(item, sets, false, &mut all);
            Condition::All(all)
        };
        add(Condition::Any(item.list().iter().map(one).collect()));
    }
    if let Some(item) = fields.take("not") {
        if negated {
            item.flaw(Mistake::Conflict {
                rule: "a negation inside a negation says nothing; leave both out",
            });
        } else {
            conditions(&item, sets, true, when);
        }
    }
    fields.finish();
}

/// `100`, or `{ min: 100, max: 200 }` with one of the two at least.
fn range(item: &Item<'_>) -> Option<RangeInclusive<u32>> {
    if item.is_scalar() {
        let number = metric(item)?;
        return Some(number..=number);
    }
    let mut fields = item.fields()?;
    let min = fields.take("min").map(|item| metric(&item));
    let max = fields.take("max").map(|item| metric(&item));
    fields.finish();
    let (min, max) = (min.unwrap_or(Some(0))?, max.unwrap_or(Some(u32::MAX))?);
    if min > max {
        item.flaw(Mistake::Conflict { rule: "min is above max, so that nothing is between them" });
        return None;
    }
    Some(min..=max)
}

fn origin(item: &Item<'_>) -> Option<Origin> {
    Some(match item.word(&["igp", "egp", "incomplete"])? {
        0 => Origin::Igp,
        1 => Origin::Egp,
        _ => Origin::Incomplete,
    })
}

/// Names of sets, and communities with or without `*`.
fn patterns(item: &Item<'_>, sets: &FileSets) -> Patterns {
    let mut all = Patterns::default();
    for item in several(item) {
        let Some(text) = item.text() else { continue };
        match sets.communities.get(text) {
            Some(members) => all.extend(members),
            None if text.contains(':') => all.read(&item),
            // A well-known one, or the name of nothing.
            None if text.parse::<CommunityPattern>().is_ok() => all.read(&item),
            None => unknown(&item, text, sets.communities.keys().map(String::as_str)),
        }
    }
    all
}

fn communities(item: &Item<'_>) -> Communities {
    let mut all = Communities::default();
    for item in several(item) {
        let Some(text) = item.text() else { continue };
        if let Ok(standard) = text.parse() {
            all.standard.push(standard);
        } else if let Ok(large) = text.parse() {
            all.large.push(large);
        } else if let Ok(ext) = text.parse() {
            all.ext.push(ext);
        } else {
            item.flaw(Mistake::Value { wanted: COMMUNITY, found: text.to_owned() });
        }
    }
    all
}

fn unknown<'a>(item: &Item<'_>, name: impl Display, known: impl Iterator<Item = &'a str>) {
    let found = name.to_string();
    let near = nearest(&found, known).map(str::to_owned);
    item.flaw(Mistake::NoSuchName { found, near });
}

fn actions(item: &Item<'_>, sets: &FileSets) -> Vec<Act> {
    let mut acts = Vec::new();
    let Some(mut fields) = item.fields() else { return acts };
    acts.extend(fields.take("local-pref").and_then(|item| metric(&item)).map(Act::SetLocalPref));
    acts.extend(fields.take("med").and_then(|item| med(&item)));
    acts.extend(fields.take("origin").and_then(|item| origin(&item)).map(Act::SetOrigin));
    if let Some(item) = fields.take("next-hop") {
        match item.text() {
            Some("self") => acts.push(Act::NextHopSelf),
            _ => acts.extend(item.parse("self, or an address such as 192.0.2.2").map(Act::SetNextHop)),
        }
    }
    if let Some(item) = fields.take("prepend") {
        prepend(&item, &mut acts);
    }
    if let Some(item) = fields.take("add-communities") {
        add(communities(&item), &mut acts);
    }
    if let Some(mut fields) = fields.take("communities").and_then(|item| item.fields()) {
        if let Some(item) = fields.take("replace") {
            let Communities { standard, large, ext } = communities(&item);
            acts.push(Act::ReplaceCommunities(standard));
            acts.push(Act::ReplaceLargeCommunities(large));
            acts.push(Act::ReplaceExtCommunities(ext));
        }
        if let Some(item) = fields.take("remove") {
            let Patterns { standard, large, ext } = patterns(&item, sets);
            if !standard.is_empty() {
                acts.push(Act::RemoveCommunities(Members::These(standard)));
            }
            if !large.is_empty() {
                acts.push(Act::RemoveLargeCommunities(Members::These(large)));
            }
            if !ext.is_empty() {
                acts.push(Act::RemoveExtCommunities(Members::These(ext)));
            }
        }
        if let Some(item) = fields.take("add") {
            add(communities(&item), &mut acts);
        }
        fields.finish();
    }
    fields.finish();
    acts
}

fn add(all: Communities, acts: &mut Vec<Act>) {
    let Communities { standard, large, ext } = all;
    acts.extend(standard.into_iter().map(Act::AddCommunity));
    acts.extend(large.into_iter().map(Act::AddLargeCommunity));
    acts.extend(ext.into_iter().map(Act::AddExtCommunity));
}

/// `5`, `remove`, or `{ add: -5 }`.
fn med(item: &Item<'_>) -> Option<Act> {
    if item.is_scalar() {
        if item.text() == Some("remove") {
            return Some(Act::RemoveMed);
        }
        return metric(item).map(Act::SetMed);
    }
    let mut fields = item.fields()?;
    let most = i64::from(u32::MAX);
    let by =
        fields.need("add").and_then(|item| item.number("a number, -4294967295 to 4294967295", -most..=most));
    fields.finish();
    by.map(Act::AddMed)
}

/// `{ asn: 65000, count: 2 }`, or a list of AS numbers that the path is to begin with.
fn prepend(item: &Item<'_>, acts: &mut Vec<Act>) {
    if !item.is_map() {
        acts.push(Act::PrependPath(several(item).iter().filter_map(asn).collect()));
        return;
    }
    let Some(mut fields) = item.fields() else { return };
    let asn = fields.need("asn").and_then(|item| asn(&item));
    let count = fields.take("count").map_or(Some(1), |item| item.number("a count, 1 to 255", 1..=255));
    fields.finish();
    if let (Some(asn), Some(count)) = (asn, count) {
        acts.push(Act::Prepend(asn, count));
    }
}
