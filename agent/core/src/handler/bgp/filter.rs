//! A BGPFilter to two policies, one for each direction, which sessions name in the order in which their object does.
//!
//! A rule becomes one statement, or none where it can match nothing. What no rule decides goes on to the session's next
//! policy. Import policies see paths as they were received; on the way out, own routes have no community, and learned ones
//! what they came with: communities by prefix are given behind all filters.

use bgp_core::policy::{
    Act, Condition as When, Default as Otherwise, Flow, PolicyDef, PolicyName, StatementDef,
};
use bgp_core::{Family, policy};

use super::interface::Interfaces;
use crate::model::{
    AnyCommunity, BgpConfig, Direction, Filter, FilterAction, FilterName, FilterRule, Operation, PeerType,
    RoutePriority,
};

/// LOCAL_PREF that a learned route without one counts with.
const USUAL_LOCAL_PREF: u32 = 100;

/// What rules mean beyond themselves.
#[derive(Copy, Clone, Debug)]
pub(super) struct Context<'a> {
    pub(super) cluster: &'a BgpConfig,
    pub(super) interfaces: &'a Interfaces,
}

/// The name of a filter's policy of one direction.
pub(in crate::handler) fn policy_name(filter: &FilterName, direction: Direction) -> PolicyName {
    let direction = match direction {
        Direction::Import => "import",
        Direction::Export => "export",
    };
    PolicyName::new(&format!("{direction}-{filter}"))
}

/// The BGPFilter that a policy of the speaker was made from, if it was made from one.
#[must_use]
pub fn filter_of(policy: &PolicyName) -> Option<FilterName> {
    let name = policy.as_str();
    name.strip_prefix("import-").or_else(|| name.strip_prefix("export-")).map(FilterName::from)
}

/// What a filter's rules of one direction say.
pub(super) fn policy(
    name: &FilterName,
    filter: &Filter,
    direction: Direction,
    context: Context<'_>,
) -> PolicyDef {
    let mut statements = Vec::new();
    for family in Family::UNICAST {
        for rule in filter.rules(direction, family) {
            let label = format!("BGPFilter {name}, {} rule {}", Filter::list(direction, family), rule.number);
            let when = conditions(rule, direction, family, context);
            statements.extend(when.map(|when| {
                let (apply, then) = action(&rule.action);
                StatementDef::new(when, apply, then).labelled(&label)
            }));
        }
    }
    PolicyDef { statements, default: Otherwise::Next }
}

/// What must hold; `None` where that never does.
fn conditions(
    rule: &FilterRule,
    direction: Direction,
    family: Family,
    context: Context<'_>,
) -> Option<Vec<When>> {
    let mut when = vec![When::Family(vec![family])];
    if let Some(prefixes) = rule.prefixes {
        match (prefixes.range, prefixes.negated) {
            (Some(range), false) => when.push(When::Prefix(vec![range])),
            (Some(range), true) => when.push(not(When::Prefix(vec![range]))),
            (None, true) => {}
            (None, false) => return None,
        }
    }
    // What comes in comes from a neighbour.
    if rule.learned && direction == Direction::Export {
        when.push(not(When::Learned(policy::Learned::Local)));
    }
    if let Some(glob) = &rule.interface {
        when.push(context.interfaces.leaves_by(glob, family)?);
    }
    when.extend(rule.peer_type.map(|kind| {
        When::PeerType(match kind {
            PeerType::External => policy::PeerType::External,
            PeerType::Internal => policy::PeerType::Internal,
        })
    }));
    when.extend(rule.community.map(|community| match community {
        AnyCommunity::Standard(community) => When::Community(community),
        AnyCommunity::Large(community) => When::LargeCommunity(community),
    }));
    if !rule.as_path_prefix.is_empty() {
        when.push(When::AsPathPrefix(rule.as_path_prefix.clone()));
    }
    when.extend(
        rule.priority.map(|priority| has_priority(priority, context.cluster.normal_priority(family))),
    );
    Some(when)
}

/// A route without LOCAL_PREF has an ordinary priority if it is ours, and that of LOCAL_PREF 100 if it was learned.
fn has_priority(priority: RoutePriority, normal: RoutePriority) -> When {
    let wanted = priority.local_pref();
    let mut ways = vec![When::LocalPref(wanted..=wanted)];
    let absent = || not(When::LocalPref(0..=u32::MAX));
    let ours = || When::Learned(policy::Learned::Local);
    if priority == normal {
        ways.push(When::All(vec![ours(), absent()]));
    }
    if wanted == USUAL_LOCAL_PREF {
        ways.push(When::All(vec![not(ours()), absent()]));
    }
    When::Any(ways)
}

fn action(action: &FilterAction) -> (Vec<Act>, Flow) {
    match action {
        FilterAction::Reject => (Vec::new(), Flow::Reject),
        FilterAction::Accept(operations) => {
            let act = |operation: &Operation| match operation {
                Operation::AddCommunity(community) => add(*community),
                Operation::PrependAsPath(path) => Act::PrependPath(path.clone()),
                Operation::SetPriority(priority) => Act::SetLocalPref(priority.local_pref()),
            };
            (operations.iter().map(act).collect(), Flow::Accept)
        }
    }
}

pub(super) fn add(community: AnyCommunity) -> Act {
    match community {
        AnyCommunity::Standard(community) => Act::AddCommunity(community),
        AnyCommunity::Large(community) => Act::AddLargeCommunity(community),
    }
}

pub(super) fn not(condition: When) -> When {
    When::Not(Box::new(condition))
}
