//! Named sets and policies, compiled.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::command::{Policy, Refusal};
use crate::egress::Filter;
use crate::policy::{
    NeighborSet, PolicyDef, PolicyName, PrefixRange, PrefixSet, Program, SetName, Sets, compile,
};

/// What a set holds.
pub(super) enum Members {
    Prefixes(Vec<PrefixRange>),
    Neighbors(Vec<IpAddr>),
}

/// Sets and policies of one speaker.
#[derive(Default)]
pub(super) struct Policies {
    sets: Sets,
    policies: BTreeMap<PolicyName, (PolicyDef, Arc<Program>)>,
}

impl Policies {
    /// None yet.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The filter of a policy. A peer is never configured with a policy that does not exist; if it was, nothing would
    /// pass.
    pub(super) fn filter(&self, policy: &Policy) -> Filter {
        match policy {
            Policy::Accept => Filter::Accept,
            Policy::Reject => Filter::Reject,
            Policy::Named(name) => match self.policies.get(name) {
                Some((_, program)) => Filter::new(Arc::clone(program)),
                None => Filter::Reject,
            },
        }
    }

    /// Refuses a policy that does not exist.
    pub(super) fn check(&self, policy: &Policy) -> Result<(), Refusal> {
        match policy {
            Policy::Named(name) if !self.policies.contains_key(name) => {
                Err(Refusal::NoSuchPolicy(name.clone()))
            }
            Policy::Accept | Policy::Reject | Policy::Named(_) => Ok(()),
        }
    }

    /// Whether a policy's verdict depends on the neighbour.
    pub(super) fn asks_who(&self, policy: &Policy) -> bool {
        match policy {
            Policy::Accept | Policy::Reject => false,
            Policy::Named(name) => {
                self.policies.get(name).is_some_and(|(_, program)| program.depends_on_neighbor())
            }
        }
    }

    /// Declares a policy. `None` if it is the same as before; otherwise whether its program is another one.
    pub(super) fn put(&mut self, name: PolicyName, def: PolicyDef) -> Result<Option<bool>, Refusal> {
        let known = self.policies.get(&name);
        if known.is_some_and(|(known, _)| *known == def) {
            return Ok(None);
        }
        let program = compile(&name, &def, &self.sets).map_err(Refusal::Policy)?;
        let changed = known.is_none_or(|(_, known)| **known != program);
        self.policies.insert(name, (def, Arc::new(program)));
        Ok(Some(changed))
    }

    /// Removes a policy that nobody uses; says whether there was one.
    pub(super) fn delete(&mut self, name: &PolicyName) -> bool {
        self.policies.remove(name).is_some()
    }

    /// Defines a set. `None` if it is the same as before; otherwise the policies whose programs are others now.
    pub(super) fn put_set(&mut self, name: &SetName, members: Members) -> Option<Vec<PolicyName>> {
        let changed = match members {
            Members::Prefixes(ranges) => self.sets.put_prefixes(name.clone(), PrefixSet::new(ranges)),
            Members::Neighbors(addresses) => {
                self.sets.put_neighbors(name.clone(), NeighborSet::new(addresses))
            }
        };
        if !changed {
            return None;
        }
        let mut others = Vec::new();
        for (policy, (def, program)) in &mut self.policies {
            if !def.names_prefix_set(name) && !def.names_neighbor_set(name) {
                continue;
            }
            // It compiled before, and no set has gone.
            if let Ok(new) = compile(policy, def, &self.sets)
                && new != **program
            {
                *program = Arc::new(new);
                others.push(policy.clone());
            }
        }
        Some(others)
    }

    /// Removes a set; says whether there was one.
    pub(super) fn delete_prefix_set(&mut self, name: &SetName) -> Result<bool, Refusal> {
        self.refuse_used(name, PolicyDef::names_prefix_set)?;
        Ok(self.sets.delete_prefixes(name))
    }

    /// Removes a set; says whether there was one.
    pub(super) fn delete_neighbor_set(&mut self, name: &SetName) -> Result<bool, Refusal> {
        self.refuse_used(name, PolicyDef::names_neighbor_set)?;
        Ok(self.sets.delete_neighbors(name))
    }

    fn refuse_used(&self, set: &SetName, names: fn(&PolicyDef, &SetName) -> bool) -> Result<(), Refusal> {
        match self.policies.iter().find(|(_, (def, _))| names(def, set)) {
            Some((policy, _)) => Err(Refusal::SetInUse { set: set.clone(), policy: policy.clone() }),
            None => Ok(()),
        }
    }
}
