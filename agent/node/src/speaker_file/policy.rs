//! `sets` and `policies`.

use std::collections::BTreeMap;

use bgp_core::policy::{
    Act, Condition, Default as Otherwise, Flow, Learned, PolicyDef, PrefixRange, SetName, StatementDef,
};

use super::{AnyCommunity, any_community, asn, metric};
use crate::yaml::{Item, Mistake, nearest};

/// The defined sets of a file.
#[derive(Debug, Default)]
pub(super) struct FileSets {
    /// `prefixes`: the speaker keeps them by name.
    pub(super) prefixes: BTreeMap<SetName, Vec<PrefixRange>>,
    /// `communities`: put in place of their names.
    communities: BTreeMap<String, Vec<AnyCommunity>>,
}

/// Read `sets`.
pub(super) fn decode_sets(item: Option<Item<'_>>) -> FileSets {
    let mut sets = FileSets::default();
    let Some(mut fields) = item.and_then(|item| item.fields()) else { return sets };
    for (name, item) in fields.take("prefixes").map(|item| item.entries()).unwrap_or_default() {
        sets.prefixes.insert(SetName::new(name), prefix_ranges(&item));
    }
    for (name, item) in fields.take("communities").map(|item| item.entries()).unwrap_or_default() {
        let members = item.list().iter().filter_map(any_community).collect();
        sets.communities.insert(name.to_owned(), members);
    }
    fields.unsupported(&["as-paths"], "leave it out; conditions on AS paths come later");
    fields.finish();
    sets
}

fn prefix_ranges(item: &Item<'_>) -> Vec<PrefixRange> {
    let wanted = "a prefix with bounds of lengths if need be, such as 10.0.0.0/8 or 10.0.0.0/8 ge 16 le 24";
    item.list().iter().filter_map(|item| item.parse(wanted)).collect()
}

/// Read one policy.
pub(super) fn decode_policy(item: &Item<'_>, sets: &FileSets) -> Option<PolicyDef> {
    let mut fields = item.fields()?;
    let mut statements = Vec::new();
    for item in fields.take("statements").map(|item| item.list()).unwrap_or_default() {
        statements.extend(decode_statement(&item, sets));
    }
    let default = match fields.need("default").and_then(|item| item.word(&["accept", "reject"])) {
        Some(0) => Otherwise::Accept,
        _ => Otherwise::Reject,
    };
    fields.finish();
    Some(PolicyDef { statements, default })
}

/// One statement of the file; several of the speaker's where a set of communities has several members.
fn decode_statement(item: &Item<'_>, sets: &FileSets) -> Vec<StatementDef> {
    let Some(mut fields) = item.fields() else { return Vec::new() };
    let mut when = Vec::new();
    let mut any_of = Vec::new();
    if let Some(item) = fields.take("if") {
        conditions(&item, sets, false, &mut when, &mut any_of);
    }
    let apply = fields.take("set").map(|item| actions(&item)).unwrap_or_default();
    let then = match fields.need("then").and_then(|item| item.word(&["accept", "reject", "next"])) {
        Some(0) => Flow::Accept,
        Some(1) => Flow::Reject,
        _ => Flow::Next,
    };
    fields.finish();
    match &*any_of {
        [] => vec![StatementDef { label: None, when, apply, then }],
        [alternatives] if alternatives.len() == 1 || then != Flow::Next || apply.is_empty() => {
            let statement = |condition: &Condition| {
                let mut when = when.clone();
                when.push(condition.clone());
                StatementDef { label: None, when, apply: apply.clone(), then: then.clone() }
            };
            alternatives.iter().map(statement).collect()
        }
        _ => {
            // It would be applied once for each member that the path carries.
            item.flaw(Mistake::Unsupported {
                remedy: "use sets of one community in a statement that goes on to the next",
            });
            Vec::new()
        }
    }
}

/// `any_of`: lists of which one member must hold each.
fn conditions(
    item: &Item<'_>,
    sets: &FileSets,
    negated: bool,
    when: &mut Vec<Condition>,
    any_of: &mut Vec<Vec<Condition>>,
) {
    let Some(mut fields) = item.fields() else { return };
    let add = |condition: Condition, when: &mut Vec<Condition>| {
        when.push(if negated { Condition::Not(Box::new(condition)) } else { condition });
    };
    if let Some(item) = fields.take("prefixes") {
        if item.is_scalar() {
            if let Some(name) = item.text() {
                if !sets.prefixes.contains_key(&SetName::new(name)) {
                    unknown_set(&item, name, sets.prefixes.keys().map(SetName::as_str));
                }
                add(Condition::PrefixSet(SetName::new(name)), when);
            }
        } else {
            add(Condition::Prefix(prefix_ranges(&item)), when);
        }
    }
    if let Some(item) = fields.take("neighbors") {
        let addresses = item.list();
        let addresses = addresses.iter().filter_map(|item| item.parse("an address such as 192.0.2.2"));
        add(Condition::Neighbor(addresses.collect()), when);
    }
    if let Some(item) = fields.take("community") {
        let members = communities(&item, sets);
        if negated {
            members.into_iter().for_each(|condition| add(condition, when));
        } else {
            any_of.push(members);
        }
    }
    if let Some(item) = fields.take("source") {
        match item.word(&["local", "external", "internal"]) {
            Some(0) => add(Condition::Learned(Learned::Local), when),
            Some(1) => add(Condition::Learned(Learned::External), when),
            Some(_) => add(Condition::Learned(Learned::Internal), when),
            None => {}
        }
    }
    if let Some(item) = fields.take("not") {
        if negated {
            item.flaw(Mistake::Conflict {
                rule: "a negation inside a negation says nothing; leave both out",
            });
        } else {
            conditions(&item, sets, true, when, any_of);
        }
    }
    fields.unsupported(&["as-path"], "leave it out; conditions on AS paths come later");
    fields.finish();
}

/// The name of a set, or a community.
fn communities(item: &Item<'_>, sets: &FileSets) -> Vec<Condition> {
    let Some(text) = item.text() else { return Vec::new() };
    let members = match sets.communities.get(text) {
        Some(members) => members.clone(),
        None if text.contains(':') => any_community(item).into_iter().collect(),
        None => {
            unknown_set(item, text, sets.communities.keys().map(String::as_str));
            Vec::new()
        }
    };
    let condition = |member| match member {
        AnyCommunity::Standard(community) => Condition::Community(community),
        AnyCommunity::Large(community) => Condition::LargeCommunity(community),
    };
    members.into_iter().map(condition).collect()
}

fn unknown_set<'a>(item: &Item<'_>, name: &str, known: impl Iterator<Item = &'a str>) {
    item.flaw(Mistake::NoSuchName { found: name.to_owned(), near: nearest(name, known).map(str::to_owned) });
}

fn actions(item: &Item<'_>) -> Vec<Act> {
    let mut acts = Vec::new();
    let Some(mut fields) = item.fields() else { return acts };
    acts.extend(fields.take("local-pref").and_then(|item| metric(&item)).map(Act::SetLocalPref));
    acts.extend(fields.take("med").and_then(|item| metric(&item)).map(Act::SetMed));
    if let Some(item) = fields.take("next-hop") {
        acts.extend(item.word(&["self"]).map(|_| Act::NextHopSelf));
    }
    if let Some(mut prepend) = fields.take("prepend").and_then(|item| item.fields()) {
        let asn = prepend.need("asn").and_then(|item| asn(&item));
        let count = prepend.take("count").map_or(Some(1), |item| item.number("a count, 1 to 255", 1..=255));
        prepend.finish();
        if let (Some(asn), Some(count)) = (asn, count) {
            acts.push(Act::Prepend(asn, count));
        }
    }
    for item in fields.take("add-communities").map(|item| item.list()).unwrap_or_default() {
        acts.extend(any_community(&item).map(|community| match community {
            AnyCommunity::Standard(community) => Act::AddCommunity(community),
            AnyCommunity::Large(community) => Act::AddLargeCommunity(community),
        }));
    }
    fields.finish();
    acts
}
