//! From declared statements to a program.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bgp_wire::{Asn, Family, FamilySet, NextHop};
use ipnet::IpNet;

use super::definition::{Act, Condition, Flow, Members, PolicyDef, PolicyName, SetName, StatementDef};
use super::pattern::{CommunityPattern, ExtCommunityPattern, LargeCommunityPattern, Number};
use super::program::{Asks, Change, Cond, Program, Stmt, Then};
use super::sets::{NeighborSet, NumberSet, PrefixSet, SetKind, Sets};
use super::signature::Ways;

/// Something in a policy that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyMistake {
    /// The policy.
    pub policy: PolicyName,
    /// Which of its statements, counted from 1.
    pub statement: usize,
    /// The statement's label.
    pub label: Option<Arc<str>>,
    /// What is wrong.
    pub what: Mistake,
}

impl fmt::Display for PolicyMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "policy {}, statement {}", self.policy, self.statement)?;
        if let Some(label) = &self.label {
            write!(f, " ({label})")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for PolicyMistake {}

/// What is wrong with a statement. The text says what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// There is no set of this kind and name.
    #[error("no {0} \"{1}\"; define it first, or correct the name")]
    NoSuchSet(SetKind, SetName),
    /// There is no policy of this name to call.
    #[error("no policy \"{0}\" to call; define it first, or correct the name")]
    NoSuchPolicy(PolicyName),
    /// Policies call one another in a circle: this one first, and last the one that calls it again.
    #[error("policies call one another in a circle: {}; take one of the calls out", circle(.0))]
    CallCycle(Vec<PolicyName>),
    /// More policies inside one another than may be.
    #[error("policies are called inside one another more than {MOST_DEPTH} deep; call fewer")]
    TooDeep,
    /// More statements, with those of the policies called, than may be.
    #[error(
        "with the policies that are called, a path would meet more than {MOST_STEPS} statements; call fewer"
    )]
    TooLong,
    /// AS 0 in an AS path (RFC 7607).
    #[error("AS 0 cannot be prepended; name the AS that is meant")]
    PrependAsnZero,
    /// Prepending zero times.
    #[error("AS {0} is to be prepended 0 times; say how often, or leave it out")]
    PrependNothing(Asn),
    /// Prepending more than a path can have in one segment.
    #[error("{0} AS numbers are to be prepended at once; at most 255 can be")]
    PrependTooMany(usize),
    /// Changes of a path that is then rejected.
    #[error("it changes a path and then rejects it; leave the changes out, or accept it")]
    ActsBeforeReject,
    /// A range of numbers whose end is before its beginning.
    #[error("from {0} to {1} there is nothing; exchange the two")]
    Inverted(u32, u32),
    /// Prefixes of the one IP version in routes of the other: never so.
    #[error("{0} is never in {1}; take a prefix of that family, or another family")]
    WrongFamily(IpNet, Family),
    /// A next hop that the family cannot have.
    #[error("{0} cannot be the next hop of {1}; take an address of that family, or another family")]
    NextHopFamily(IpAddr, Family),
    /// An address that is not that of a host.
    #[error("{0} cannot be a next hop; take the address of a host")]
    NoNextHop(IpAddr),
    /// An alternative of nothing: never so.
    #[error("it asks for one of several, and names none; name some, or leave the condition out")]
    NoAlternatives,
}

/// How many policies may be inside one another.
pub(super) const MOST_DEPTH: usize = 32;
/// How many statements a path may meet at most.
const MOST_STEPS: usize = 100_000;

fn circle(policies: &[PolicyName]) -> String {
    let names: Vec<&str> = policies.iter().chain(policies.first()).map(PolicyName::as_str).collect();
    names.join(" → ")
}

/// Compiles a policy. Sets that it names and policies that it calls are part of the program: when one of them changes,
/// compile again and compare. That no policy calls itself is seen to by [`super::Library`], which gives `called` too.
///
/// # Errors
/// Every mistake there is, in the order of the statements.
pub fn compile(
    policy: &PolicyName,
    def: &PolicyDef,
    sets: &Sets,
    called: &dyn Fn(&PolicyName) -> Option<Arc<Program>>,
) -> Result<Program, Vec<PolicyMistake>> {
    let mut mistakes = Vec::new();
    let mut stmts = Vec::with_capacity(def.statements.len());
    let (mut asks, mut steps, mut depth) = (Asks::default(), 0usize, 1);
    for (at, statement) in def.statements.iter().enumerate() {
        let mut found = |what| {
            let label = statement.label.clone();
            mistakes.push(PolicyMistake { policy: policy.clone(), statement: at + 1, label, what });
        };
        check_families(statement, &mut found);
        let when = compile_all(&statement.when, sets, &mut found);
        let mut apply = Vec::with_capacity(statement.apply.len());
        for act in &statement.apply {
            compile_act(act, sets, &mut apply, &mut found);
        }
        steps += 1;
        let then = match &statement.then {
            Flow::Accept => Then::Accept,
            Flow::Reject => Then::Reject,
            Flow::Next => Then::Next,
            Flow::Call(name) => match called(name) {
                Some(program) => {
                    steps = steps.saturating_add(program.steps);
                    depth = depth.max(program.depth + 1);
                    if program.depth >= MOST_DEPTH {
                        found(Mistake::TooDeep);
                    } else if steps > MOST_STEPS {
                        found(Mistake::TooLong);
                    }
                    Then::Call(program)
                }
                None => {
                    found(Mistake::NoSuchPolicy(name.clone()));
                    Then::Next
                }
            },
        };
        if then == Then::Reject && !statement.apply.is_empty() {
            found(Mistake::ActsBeforeReject);
        }
        let stmt = Stmt { label: statement.label.clone(), when, apply: apply.into(), then };
        asks = asks.or(stmt.asks());
        stmts.push(stmt);
    }
    if mistakes.is_empty() {
        let ways = Ways::new(&stmts);
        let (name, default) = (policy.clone(), def.default);
        Ok(Program { name, stmts: stmts.into(), ways, default, asks, steps, depth })
    } else {
        Err(mistakes)
    }
}

/// Finds prefixes and next hops that the families of a statement cannot have.
fn check_families(statement: &StatementDef, found: &mut dyn FnMut(Mistake)) {
    let families = statement.when.iter().filter_map(|condition| {
        if let Condition::Family(families) = condition { Some(families) } else { None }
    });
    for families in families {
        for ranges in statement.when.iter().filter_map(|condition| {
            if let Condition::Prefix(ranges) = condition { Some(ranges) } else { None }
        }) {
            let fits = |net: IpNet| families.iter().any(|family| family.is_ipv4() == net.addr().is_ipv4());
            if let (Some(first), Some(family)) = (ranges.first(), families.first())
                && !ranges.iter().any(|range| fits(range.net()))
            {
                found(Mistake::WrongFamily(first.net(), *family));
            }
        }
        for act in &statement.apply {
            if let Act::SetNextHop(address) = act
                && let Some(family) = families.first()
                && families.iter().all(|family| *family == Family::Ipv6Unicast && address.is_ipv4())
            {
                found(Mistake::NextHopFamily(*address, *family));
            }
        }
    }
}

/// Conditions that must all hold: what an inner [`Condition::All`] wants is wanted here.
fn compile_all(conditions: &[Condition], sets: &Sets, found: &mut dyn FnMut(Mistake)) -> Box<[Cond]> {
    let mut conds = Vec::with_capacity(conditions.len());
    for cond in compile_each(conditions, sets, found) {
        if let Cond::All(inner) = cond { conds.extend(inner) } else { conds.push(cond) }
    }
    conds.into()
}

/// Conditions of which one must hold: what an inner [`Condition::All`] wants is wanted together.
fn compile_any(conditions: &[Condition], sets: &Sets, found: &mut dyn FnMut(Mistake)) -> Box<[Cond]> {
    let mut conds = Vec::with_capacity(conditions.len());
    for cond in compile_each(conditions, sets, found) {
        if let Cond::Any(inner) = cond { conds.extend(inner) } else { conds.push(cond) }
    }
    conds.into()
}

fn compile_each(conditions: &[Condition], sets: &Sets, found: &mut dyn FnMut(Mistake)) -> Vec<Cond> {
    let mut conds = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match compile_condition(condition, sets, found) {
            Ok(cond) => conds.push(cond),
            Err(what) => found(what),
        }
    }
    conds
}

fn range(range: &RangeInclusive<u32>) -> Result<RangeInclusive<u32>, Mistake> {
    if range.is_empty() {
        return Err(Mistake::Inverted(*range.start(), *range.end()));
    }
    Ok(range.clone())
}

fn compile_condition(
    condition: &Condition,
    sets: &Sets,
    found: &mut dyn FnMut(Mistake),
) -> Result<Cond, Mistake> {
    let missing = |kind, name: &SetName| Mistake::NoSuchSet(kind, name.clone());
    Ok(match condition {
        Condition::PrefixSet(name) => {
            Cond::Prefix(Arc::clone(sets.prefixes(name).ok_or_else(|| missing(SetKind::Prefixes, name))?))
        }
        Condition::Prefix(ranges) => Cond::Prefix(Arc::new(PrefixSet::new(ranges.iter().copied()))),
        Condition::NeighborSet(name) => {
            Cond::Neighbor(Arc::clone(sets.neighbors(name).ok_or_else(|| missing(SetKind::Neighbors, name))?))
        }
        Condition::Neighbor(addresses) => {
            Cond::Neighbor(Arc::new(NeighborSet::new(addresses.iter().copied())))
        }
        Condition::Community(community) => Cond::Community(community.number()),
        Condition::LargeCommunity(community) => Cond::LargeCommunity(community.number()),
        Condition::ExtCommunity(community) => Cond::ExtCommunity(community.number()),
        Condition::Communities(how, members) => {
            let set = standard(members, sets)?;
            set.only().map_or_else(|| Cond::Communities(*how, Arc::clone(&set)), Cond::Community)
        }
        Condition::LargeCommunities(how, members) => {
            let set = large(members, sets)?;
            set.only().map_or_else(|| Cond::LargeCommunities(*how, Arc::clone(&set)), Cond::LargeCommunity)
        }
        Condition::ExtCommunities(how, members) => {
            let set = extended(members, sets)?;
            set.only().map_or_else(|| Cond::ExtCommunities(*how, Arc::clone(&set)), Cond::ExtCommunity)
        }
        Condition::Learned(learned) => Cond::Learned(*learned),
        Condition::PeerType(peer_type) => Cond::PeerType(*peer_type),
        Condition::Family(families) => {
            let mut set = FamilySet::EMPTY;
            families.iter().for_each(|family| set.insert(*family));
            Cond::Family(set)
        }
        Condition::Rd(rd) => Cond::Rd(*rd),
        Condition::Interface(glob) => Cond::Interface(glob.clone()),
        Condition::NextHop(nets) => Cond::NextHop(nets.iter().map(IpNet::trunc).collect()),
        Condition::Origin(origin) => Cond::Origin(*origin),
        Condition::AsPathLength(lengths) => Cond::AsPathLength(range(lengths)?),
        Condition::AsPathSet(name) => {
            Cond::AsPath(Arc::clone(sets.as_paths(name).ok_or_else(|| missing(SetKind::AsPaths, name))?))
        }
        Condition::AsPath(patterns) => Cond::AsPath(patterns.as_slice().into()),
        Condition::AsPathPrefix(asns) => Cond::AsPathPrefix(asns.as_slice().into()),
        Condition::LocalPref(wanted) => Cond::LocalPref(range(wanted)?),
        Condition::Med(wanted) => Cond::Med(range(wanted)?),
        Condition::Not(inner) => {
            let inner = compile_condition(inner, sets, found)?;
            if let Cond::Not(twice) = inner { *twice } else { Cond::Not(Box::new(inner)) }
        }
        Condition::Any(inner) if inner.is_empty() => return Err(Mistake::NoAlternatives),
        Condition::Any(inner) => Cond::Any(compile_any(inner, sets, found)),
        Condition::All(inner) => Cond::All(compile_all(inner, sets, found)),
    })
}

fn standard(members: &Members<CommunityPattern>, sets: &Sets) -> Result<Arc<NumberSet>, Mistake> {
    numbers(members, SetKind::Communities, sets, CommunityPattern::bits)
}

fn large(members: &Members<LargeCommunityPattern>, sets: &Sets) -> Result<Arc<NumberSet>, Mistake> {
    numbers(members, SetKind::LargeCommunities, sets, LargeCommunityPattern::bits)
}

fn extended(members: &Members<ExtCommunityPattern>, sets: &Sets) -> Result<Arc<NumberSet>, Mistake> {
    numbers(members, SetKind::ExtCommunities, sets, ExtCommunityPattern::bits)
}

fn numbers<T>(
    members: &Members<T>,
    kind: SetKind,
    sets: &Sets,
    bits: impl Fn(&T) -> (u128, u128),
) -> Result<Arc<NumberSet>, Mistake> {
    match members {
        Members::Set(name) => {
            sets.numbers(kind, name).cloned().ok_or_else(|| Mistake::NoSuchSet(kind, name.clone()))
        }
        Members::These(members) => Ok(Arc::new(NumberSet::new(members.iter().map(bits)))),
    }
}

fn compile_act(act: &Act, sets: &Sets, changes: &mut Vec<Change>, found: &mut dyn FnMut(Mistake)) {
    let removed = |set: Result<Arc<NumberSet>, Mistake>, of: fn(Arc<NumberSet>) -> Change| set.map(of);
    let change = match act {
        Act::SetLocalPref(local_pref) => Ok(Change::LocalPref(*local_pref)),
        Act::SetMed(med) => Ok(Change::Med(*med)),
        Act::AddMed(by) => Ok(Change::AddMed(*by)),
        Act::RemoveMed => Ok(Change::RemoveMed),
        Act::SetOrigin(origin) => Ok(Change::Origin(*origin)),
        Act::NextHopSelf => Ok(Change::NextHopSelf),
        Act::SetNextHop(address) => {
            let next_hop = NextHop::from(*address);
            if next_hop.is_host() { Ok(Change::NextHop(next_hop)) } else { Err(Mistake::NoNextHop(*address)) }
        }
        Act::Prepend(Asn(0), _) => Err(Mistake::PrependAsnZero),
        Act::Prepend(asn, 0) => Err(Mistake::PrependNothing(*asn)),
        Act::Prepend(asn, times) => Ok(Change::Prepend(*asn, *times)),
        Act::PrependPath(asns) if asns.contains(&Asn(0)) => Err(Mistake::PrependAsnZero),
        Act::PrependPath(asns) if asns.len() > 255 => Err(Mistake::PrependTooMany(asns.len())),
        Act::PrependPath(asns) => {
            // The last one stands next to what is there.
            for run in asns.chunk_by(PartialEq::eq).rev() {
                changes.extend(run.first().map(|asn| Change::Prepend(*asn, run.len() as u8)));
            }
            return;
        }
        Act::AddCommunity(community) => Ok(Change::Add(*community)),
        Act::AddLargeCommunity(community) => Ok(Change::AddLarge(*community)),
        Act::AddExtCommunity(community) => Ok(Change::AddExt(*community)),
        Act::RemoveCommunities(members) => removed(standard(members, sets), Change::Remove),
        Act::RemoveLargeCommunities(members) => removed(large(members, sets), Change::RemoveLarge),
        Act::RemoveExtCommunities(members) => removed(extended(members, sets), Change::RemoveExt),
        Act::ReplaceCommunities(all) => Ok(Change::Replace(all.as_slice().into())),
        Act::ReplaceLargeCommunities(all) => Ok(Change::ReplaceLarge(all.as_slice().into())),
        Act::ReplaceExtCommunities(all) => Ok(Change::ReplaceExt(all.as_slice().into())),
    };
    match change {
        Ok(change) => changes.push(change),
        Err(what) => found(what),
    }
}

#[cfg(test)]
mod tests;
