//! Who else wants a route. A route's entry names the owner that has it; only where several want the same prefix do
//! the others stand here, so that the common case costs nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::object::Owner;
use super::paths::{PathSets, SetId};
use crate::model::RouteKey;

/// The claims of owners that do not have the route they want.
#[derive(Debug, Default)]
pub(crate) struct Claims(BTreeMap<RouteKey, BTreeMap<Owner, SetId>>);

impl Claims {
    /// Notes a claim; the one of the same owner before it is returned.
    pub(crate) fn insert(&mut self, key: RouteKey, owner: Owner, id: SetId) -> Option<SetId> {
        self.0.entry(key).or_default().insert(owner, id)
    }

    /// Takes a claim back.
    pub(crate) fn remove(&mut self, key: &RouteKey, owner: Owner) -> Option<SetId> {
        let claims = self.0.get_mut(key)?;
        let id = claims.remove(&owner);
        if claims.is_empty() {
            self.0.remove(key);
        }
        id
    }

    /// Whether anybody else wants the route.
    pub(crate) fn any(&self, key: &RouteKey) -> bool {
        self.0.contains_key(key)
    }

    /// Takes the claim that comes next. Among ways it is the one with the greatest paths, whoever came first: what is
    /// encrypted before what is not.
    pub(crate) fn next(&mut self, key: &RouteKey, sets: &PathSets) -> Option<(Owner, SetId)> {
        let claims = self.0.get_mut(key)?;
        let order = |(owner, id): &(&Owner, &SetId)| match owner {
            Owner::Host => (0, None, **owner),
            Owner::Session => (1, None, **owner),
            Owner::Way(_) => (2, Some(Reverse(sets.paths(**id))), **owner),
            Owner::Destination => (3, None, **owner),
            // It wants peers, and no routes.
            Owner::Wireguard => (4, None, **owner),
            Owner::Srv6 => (5, None, **owner),
        };
        let first = claims.iter().min_by_key(order).map(|(owner, _)| *owner)?;
        let next = claims.remove(&first).map(|id| (first, id));
        if claims.is_empty() {
            self.0.remove(key);
        }
        next
    }
}
