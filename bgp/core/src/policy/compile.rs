//! From declared statements to a program.

use std::fmt;
use std::sync::Arc;

use bgp_wire::Asn;

use super::definition::{Condition, PolicyDef, PolicyName, SetName};
use super::program::{Act, Cond, Flow, Program, Stmt};
use super::sets::{NeighborSet, PrefixSet, Sets};

/// Something in a policy that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy}, statement {statement}: {what}")]
pub struct PolicyMistake {
    /// The policy.
    pub policy: PolicyName,
    /// Which of its statements, counted from 1.
    pub statement: usize,
    /// What is wrong.
    pub what: Mistake,
}

/// What is wrong with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// There is no prefix set of this name.
    NoSuchPrefixSet(SetName),
    /// There is no neighbour set of this name.
    NoSuchNeighborSet(SetName),
    /// AS 0 in an AS path (RFC 7607).
    PrependAsnZero,
    /// Prepending zero times.
    PrependNothing(Asn),
    /// Changes of a path that is then rejected.
    ActsBeforeReject,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchPrefixSet(name) => write!(f, "no prefix set \"{name}\""),
            Self::NoSuchNeighborSet(name) => write!(f, "no neighbour set \"{name}\""),
            Self::PrependAsnZero => f.write_str("AS 0 cannot be prepended"),
            Self::PrependNothing(asn) => write!(f, "AS {asn} is to be prepended 0 times"),
            Self::ActsBeforeReject => f.write_str("it changes a path and then rejects it"),
        }
    }
}

/// Compiles a policy. A set that it names is part of the program: when the set changes, compile again and compare.
///
/// # Errors
/// Every mistake there is, in the order of the statements.
pub fn compile(policy: &PolicyName, def: &PolicyDef, sets: &Sets) -> Result<Program, Vec<PolicyMistake>> {
    let mut mistakes = Vec::new();
    let mut stmts = Vec::with_capacity(def.statements.len());
    for (at, statement) in def.statements.iter().enumerate() {
        let mut found =
            |what| mistakes.push(PolicyMistake { policy: policy.clone(), statement: at + 1, what });
        let mut when = Vec::with_capacity(statement.when.len());
        for condition in &statement.when {
            match compile_condition(condition, sets) {
                Ok(cond) => when.push(cond),
                Err(what) => found(what),
            }
        }
        for act in &statement.apply {
            match *act {
                Act::Prepend(Asn(0), _) => found(Mistake::PrependAsnZero),
                Act::Prepend(asn, 0) => found(Mistake::PrependNothing(asn)),
                Act::Prepend(..)
                | Act::SetMed(_)
                | Act::SetLocalPref(_)
                | Act::NextHopSelf
                | Act::AddCommunity(_)
                | Act::AddLargeCommunity(_) => {}
            }
        }
        if statement.then == Flow::Reject && !statement.apply.is_empty() {
            found(Mistake::ActsBeforeReject);
        }
        stmts.push(Stmt { when: when.into(), apply: statement.apply.clone().into(), then: statement.then });
    }
    if mistakes.is_empty() {
        Ok(Program { stmts: stmts.into(), default: def.default })
    } else {
        Err(mistakes)
    }
}

fn compile_condition(condition: &Condition, sets: &Sets) -> Result<Cond, Mistake> {
    Ok(match condition {
        Condition::PrefixSet(name) => Cond::Prefix(Arc::clone(
            sets.prefixes(name).ok_or_else(|| Mistake::NoSuchPrefixSet(name.clone()))?,
        )),
        Condition::Prefix(ranges) => Cond::Prefix(Arc::new(PrefixSet::new(ranges.iter().copied()))),
        Condition::NeighborSet(name) => Cond::Neighbor(Arc::clone(
            sets.neighbors(name).ok_or_else(|| Mistake::NoSuchNeighborSet(name.clone()))?,
        )),
        Condition::Neighbor(addresses) => {
            Cond::Neighbor(Arc::new(NeighborSet::new(addresses.iter().copied())))
        }
        Condition::Community(community) => Cond::Community(*community),
        Condition::LargeCommunity(community) => Cond::LargeCommunity(*community),
        Condition::Learned(learned) => Cond::Learned(*learned),
        Condition::Not(inner) => match compile_condition(inner, sets)? {
            Cond::Not(twice) => *twice,
            once @ (Cond::Prefix(_)
            | Cond::Neighbor(_)
            | Cond::Community(_)
            | Cond::LargeCommunity(_)
            | Cond::Learned(_)) => Cond::Not(Box::new(once)),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Default, Learned, StatementDef};
    use super::*;

    fn policy(statements: Vec<StatementDef>) -> PolicyDef {
        PolicyDef { statements, default: Default::Reject }
    }

    fn statement(when: Vec<Condition>, apply: Vec<Act>, then: Flow) -> StatementDef {
        StatementDef { when, apply, then }
    }

    #[test]
    fn every_mistake_is_named_with_its_place() {
        let def = policy(vec![
            statement(vec![Condition::PrefixSet("own".into())], vec![], Flow::Accept),
            statement(
                vec![Condition::Not(Box::new(Condition::NeighborSet("tor".into())))],
                vec![Act::Prepend(Asn(0), 1), Act::Prepend(Asn(7), 0)],
                Flow::Reject,
            ),
        ]);
        let mistakes = compile(&"p".into(), &def, &Sets::default()).unwrap_err();
        let found: Vec<_> =
            mistakes.iter().map(|mistake| (mistake.statement, mistake.what.clone())).collect();
        assert_eq!(
            found,
            [
                (1, Mistake::NoSuchPrefixSet("own".into())),
                (2, Mistake::NoSuchNeighborSet("tor".into())),
                (2, Mistake::PrependAsnZero),
                (2, Mistake::PrependNothing(Asn(7))),
                (2, Mistake::ActsBeforeReject),
            ]
        );
        assert_eq!(mistakes[0].to_string(), "policy p, statement 1: no prefix set \"own\"");
    }

    #[test]
    fn negations_cancel() {
        let local = || Condition::Learned(Learned::Local);
        let not = |condition| Condition::Not(Box::new(condition));
        let def = |condition| policy(vec![statement(vec![condition], vec![], Flow::Accept)]);
        let sets = Sets::default();
        let compiled = |condition| compile(&"p".into(), &def(condition), &sets).unwrap();
        assert_eq!(compiled(not(not(local()))), compiled(local()));
        assert_eq!(compiled(not(not(not(local())))), compiled(not(local())));
        assert_ne!(compiled(not(local())), compiled(local()));
    }

    #[test]
    fn a_program_is_another_one_when_a_set_it_names_is() {
        let def = policy(vec![statement(vec![Condition::PrefixSet("own".into())], vec![], Flow::Accept)]);
        assert!(def.names_prefix_set(&"own".into()) && !def.names_neighbor_set(&"own".into()));
        let with = |range: &str| {
            let mut sets = Sets::default();
            sets.put_prefixes("own".into(), PrefixSet::new([range.parse().unwrap()]));
            compile(&"p".into(), &def, &sets).unwrap()
        };
        assert_eq!(with("10.0.0.0/8"), with("10.0.0.0/8"));
        assert_ne!(with("10.0.0.0/8"), with("10.0.0.0/8 le 9"));
        assert!(with("10.0.0.0/8").depends_on_prefix() && !with("10.0.0.0/8").depends_on_neighbor());
    }
}
