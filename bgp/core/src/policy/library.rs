//! The sets and policies of one speaker: each compiled once, and again when what it names has changed.
//!
//! A change is made whole or not at all: what would leave a policy that cannot be compiled is refused, and the old version
//! goes on working.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::compile::{MOST_DEPTH, Mistake, PolicyMistake, compile};
use super::definition::{Flow, Otherwise, PolicyDef, PolicyName, SetName};
use super::program::{Pipeline, Program};
use super::sets::{SetDef, SetKind, Sets};

/// Sets and policies.
#[derive(Clone, Debug, Default)]
pub struct Library {
    sets: Sets,
    policies: BTreeMap<PolicyName, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    def: PolicyDef,
    program: Arc<Program>,
}

/// What a change has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Everything is as it was.
    Nothing,
    /// These policies were compiled again, none where only a set has changed that nobody names. Whether a path may come
    /// out differently shows in a comparison of programs.
    Policies(BTreeSet<PolicyName>),
}

impl Library {
    /// Without sets and policies.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Defines a set.
    ///
    /// # Errors
    /// When a policy that names it could not be compiled any more.
    pub fn put_set(&mut self, name: &SetName, def: &SetDef) -> Result<Changed, Vec<PolicyMistake>> {
        let before = self.sets.clone();
        if !self.sets.put(name.clone(), def) {
            return Ok(Changed::Nothing);
        }
        let key = (def.kind(), name.clone());
        let users = self.policies.iter().filter(|(_, entry)| entry.def.sets().contains(&key));
        let users = users.map(|(name, _)| name.clone()).collect();
        self.recompile(users).inspect_err(|_| self.sets = before)
    }

    /// Removes a set; says whether there was one.
    ///
    /// # Errors
    /// The first policy that names it.
    pub fn delete_set(&mut self, kind: SetKind, name: &SetName) -> Result<bool, PolicyName> {
        let key = (kind, name.clone());
        match self.policies.iter().find(|(_, entry)| entry.def.sets().contains(&key)) {
            Some((user, _)) => Err(user.clone()),
            None => Ok(self.sets.delete(kind, name)),
        }
    }

    /// Declares a policy.
    ///
    /// # Errors
    /// Every mistake in it, or in what calls it because of it.
    pub fn put_policy(&mut self, name: &PolicyName, def: PolicyDef) -> Result<Changed, Vec<PolicyMistake>> {
        if self.policies.get(name).is_some_and(|entry| entry.def == def) {
            return Ok(Changed::Nothing);
        }
        self.check_calls(name, &def)?;
        // The definition counts from here on; the program is made anew below, or the whole is taken back.
        let empty = || Program::empty(name.clone());
        let before = self.policies.get(name).cloned();
        let program = before.as_ref().map_or_else(|| Arc::new(empty()), |entry| Arc::clone(&entry.program));
        self.policies.insert(name.clone(), Entry { def, program });
        let result = self.recompile(BTreeSet::from([name.clone()]));
        if result.is_err() {
            match before {
                Some(before) => self.policies.insert(name.clone(), before),
                None => self.policies.remove(name),
            };
        }
        result
    }

    /// Removes a policy; says whether there was one.
    ///
    /// # Errors
    /// The first policy that calls it.
    pub fn delete_policy(&mut self, name: &PolicyName) -> Result<bool, PolicyName> {
        if let Some(caller) = self.callers(name).next() {
            return Err(caller.clone());
        }
        Ok(self.policies.remove(name).is_some())
    }

    /// A policy: as declared, and compiled.
    #[must_use]
    pub fn policy(&self, name: &PolicyName) -> Option<(&PolicyDef, &Arc<Program>)> {
        self.policies.get(name).map(|entry| (&entry.def, &entry.program))
    }

    /// All policies as declared, in the order of their names.
    pub fn policies(&self) -> impl Iterator<Item = (&PolicyName, &PolicyDef)> {
        self.policies.iter().map(|(name, entry)| (name, &entry.def))
    }

    /// The chain of these policies.
    ///
    /// # Errors
    /// The first that does not exist.
    pub fn pipeline<'n>(
        &self,
        policies: impl IntoIterator<Item = &'n PolicyName>,
        otherwise: Otherwise,
    ) -> Result<Pipeline, PolicyName> {
        Ok(Pipeline::new(self.programs(policies)?, otherwise))
    }

    /// The programs of these policies.
    pub(crate) fn programs<'n>(
        &self,
        policies: impl IntoIterator<Item = &'n PolicyName>,
    ) -> Result<Vec<Arc<Program>>, PolicyName> {
        let program = |name: &PolicyName| {
            self.policies.get(name).map(|entry| Arc::clone(&entry.program)).ok_or_else(|| name.clone())
        };
        policies.into_iter().map(program).collect()
    }

    /// Whether any policy looks at the interfaces of next hops.
    #[must_use]
    pub fn depends_on_interface(&self) -> bool {
        self.policies.values().any(|entry| entry.program.asks.interface)
    }

    fn callers(&self, name: &PolicyName) -> impl Iterator<Item = &PolicyName> {
        let calls = move |def: &PolicyDef| {
            def.statements
                .iter()
                .any(|statement| matches!(&statement.then, Flow::Call(called) if called == name))
        };
        self.policies.iter().filter(move |(_, entry)| calls(&entry.def)).map(|(caller, _)| caller)
    }

    /// Refuses calls that lead back to `name`.
    fn check_calls(&self, name: &PolicyName, def: &PolicyDef) -> Result<(), Vec<PolicyMistake>> {
        let mut mistakes = Vec::new();
        for (at, statement) in def.statements.iter().enumerate() {
            let Flow::Call(called) = &statement.then else { continue };
            let mut way = vec![name.clone()];
            let what = match self.leads_to(called, name, &mut way, &mut BTreeSet::new()) {
                Some(true) => Mistake::CallCycle(way),
                Some(false) => continue,
                None => Mistake::TooDeep,
            };
            let label = statement.label.clone();
            mistakes.push(PolicyMistake { policy: name.clone(), statement: at + 1, label, what });
        }
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }

    /// Whether calls lead from one policy to another; `None` where they are inside one another too deep to tell. `way` grows
    /// to the policies between the two.
    fn leads_to(
        &self,
        from: &PolicyName,
        to: &PolicyName,
        way: &mut Vec<PolicyName>,
        seen: &mut BTreeSet<PolicyName>,
    ) -> Option<bool> {
        if from == to {
            return Some(true);
        }
        if way.len() > MOST_DEPTH {
            return None;
        }
        let Some(entry) = self.policies.get(from).filter(|_| seen.insert(from.clone())) else {
            return Some(false);
        };
        way.push(from.clone());
        for called in entry.def.calls() {
            if self.leads_to(&called, to, way, seen)? {
                return Some(true);
            }
        }
        way.pop();
        Some(false)
    }

    /// Compiles these policies again, and those that call them; all of them or none.
    fn recompile(&mut self, mut names: BTreeSet<PolicyName>) -> Result<Changed, Vec<PolicyMistake>> {
        let mut found: Vec<PolicyName> = names.iter().cloned().collect();
        while let Some(name) = found.pop() {
            for caller in self.callers(&name) {
                if names.insert(caller.clone()) {
                    found.push(caller.clone());
                }
            }
        }
        let mut done: BTreeMap<PolicyName, Arc<Program>> = BTreeMap::new();
        let mut waiting = names.clone();
        // Who is called comes before who calls; that nobody calls himself has been checked.
        while let Some(name) = waiting
            .iter()
            .find(|name| self.policies.get(name).is_none_or(|entry| entry.def.calls().is_disjoint(&waiting)))
            .cloned()
        {
            waiting.remove(&name);
            let Some(entry) = self.policies.get(&name) else { continue };
            let called = |name: &PolicyName| {
                done.get(name).or_else(|| self.policies.get(name).map(|entry| &entry.program)).cloned()
            };
            let program = compile(&name, &entry.def, &self.sets, &called)?;
            done.insert(name, Arc::new(program));
        }
        for (name, program) in done {
            if let Some(entry) = self.policies.get_mut(&name) {
                entry.program = program;
            }
        }
        Ok(Changed::Policies(names))
    }
}

#[cfg(test)]
mod tests;
