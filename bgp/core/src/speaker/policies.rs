//! Named sets and policies, compiled, and what is made of them for a neighbour or an update group.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use crate::command::{Chain, Refusal};
use crate::egress::Filter;
use crate::policy::{
    Changed, Direction, Interfaces, Library, Pipeline, PolicyDef, PolicyName, SetDef, SetKind, SetName,
};

/// Sets and policies of one speaker.
#[derive(Default)]
pub(super) struct Policies {
    library: Library,
    /// Those that run before each neighbour's own.
    import: Vec<PolicyName>,
    export: Vec<PolicyName>,
    /// Names of the interfaces that lead to next hops. A filter that looks at them has those of its time, so that a filter
    /// with others is another one.
    interfaces: Arc<Interfaces>,
    /// Chains that somebody uses, each made once.
    pipelines: BTreeMap<(Direction, Chain), Weak<Pipeline>>,
}

impl Policies {
    /// None yet.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The sets and policies.
    pub(super) const fn library(&self) -> &Library {
        &self.library
    }

    /// Names of the interfaces that lead to next hops.
    pub(super) fn interfaces(&self) -> Arc<Interfaces> {
        Arc::clone(&self.interfaces)
    }

    /// The filter that a chain is. No peer is configured with a policy that does not exist; if one was, nothing would pass.
    ///
    /// Where a neighbour's own chain is a plain `reject`, no policy of the speaker is asked: that is what an operator, or
    /// RFC 8212, has closed, and an `accept` meant for all must not open it.
    pub(super) fn filter(&mut self, direction: Direction, chain: &Chain) -> Filter {
        if chain.is_closed() {
            return Filter::Reject;
        }
        let global = match direction {
            Direction::Import => &self.import,
            Direction::Export => &self.export,
        };
        if global.is_empty() && chain.policies.is_empty() {
            return Filter::Accept;
        }
        let Ok(programs) = self.library.programs(global.iter().chain(&chain.policies)) else {
            return Filter::Reject;
        };
        let known = self.pipelines.get(&(direction, chain.clone())).and_then(Weak::upgrade);
        let pipeline = known.filter(|known| known.is_of(&programs)).unwrap_or_else(|| {
            let new = Arc::new(Pipeline::new(programs, chain.default));
            self.pipelines.retain(|_, pipeline| pipeline.strong_count() > 0);
            self.pipelines.insert((direction, chain.clone()), Arc::downgrade(&new));
            new
        });
        let interfaces = pipeline.depends_on_interface().then(|| Arc::clone(&self.interfaces));
        Filter::Policies { pipeline, interfaces }
    }

    /// Those that run before each neighbour's own.
    pub(super) fn global(&self, direction: Direction) -> &[PolicyName] {
        match direction {
            Direction::Import => &self.import,
            Direction::Export => &self.export,
        }
    }

    /// Other policies run before each neighbour's own. Says whether they are others.
    pub(super) fn put_global(
        &mut self,
        direction: Direction,
        policies: Vec<PolicyName>,
    ) -> Result<bool, Refusal> {
        self.check_names(&policies)?;
        let place = match direction {
            Direction::Import => &mut self.import,
            Direction::Export => &mut self.export,
        };
        Ok(std::mem::replace(place, policies.clone()) != policies)
    }

    /// Refuses policies that do not exist.
    pub(super) fn check(&self, chain: &Chain) -> Result<(), Refusal> {
        self.check_names(&chain.policies)
    }

    fn check_names(&self, policies: &[PolicyName]) -> Result<(), Refusal> {
        match policies.iter().find(|name| self.library.policy(name).is_none()) {
            Some(missing) => Err(Refusal::NoSuchPolicy(missing.clone())),
            None => Ok(()),
        }
    }

    /// Whether a chain's verdict on export depends on the neighbour.
    pub(super) fn asks_who(&self, chain: &Chain) -> bool {
        if chain.is_closed() {
            return false;
        }
        let depends =
            |name| self.library.policy(name).is_some_and(|(_, program)| program.depends_on_neighbor());
        self.export.iter().chain(&chain.policies).any(depends)
    }

    /// Whether any policy looks at interfaces.
    pub(super) fn ask_interfaces(&self) -> bool {
        self.library.depends_on_interface()
    }

    /// Declares a policy.
    pub(super) fn put(&mut self, name: &PolicyName, def: PolicyDef) -> Result<Changed, Refusal> {
        self.library.put_policy(name, def).map_err(Refusal::Policy)
    }

    /// Removes a policy that no neighbour uses; says whether there was one.
    pub(super) fn delete(&mut self, name: &PolicyName) -> Result<bool, Refusal> {
        for direction in [Direction::Import, Direction::Export] {
            if self.global(direction).contains(name) {
                return Err(Refusal::PolicyInUseByAll { policy: name.clone(), direction });
            }
        }
        let refused = |caller| Refusal::PolicyInUseByPolicy { policy: name.clone(), caller };
        self.library.delete_policy(name).map_err(refused)
    }

    /// Defines a set.
    pub(super) fn put_set(&mut self, name: &SetName, def: &SetDef) -> Result<Changed, Refusal> {
        self.library.put_set(name, def).map_err(Refusal::Policy)
    }

    /// Removes a set; says whether there was one.
    pub(super) fn delete_set(&mut self, kind: SetKind, name: &SetName) -> Result<bool, Refusal> {
        let refused = |policy| Refusal::SetInUse { kind, set: name.clone(), policy };
        self.library.delete_set(kind, name).map_err(refused)
    }

    /// A next hop is behind this interface now, or behind none that is known. Says whether it was not before.
    pub(super) fn put_interface(&mut self, next_hop: IpAddr, interface: Option<&Arc<str>>) -> bool {
        if self.interfaces.get(&next_hop) == interface {
            return false;
        }
        let interfaces = Arc::make_mut(&mut self.interfaces);
        match interface {
            Some(name) => interfaces.insert(next_hop, Arc::clone(name)),
            None => interfaces.remove(&next_hop),
        };
        true
    }
}
