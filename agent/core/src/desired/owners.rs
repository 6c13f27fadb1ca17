//! Who else wants a route. A route's entry names the owner that has it; only where several want the same prefix do
//! the others stand here, so that the common case costs nothing.

use std::collections::BTreeMap;

use super::object::Owner;
use super::paths::SetId;
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

    /// Takes the claim that comes next.
    pub(crate) fn next(&mut self, key: &RouteKey) -> Option<(Owner, SetId)> {
        let claims = self.0.get_mut(key)?;
        let next = claims.pop_first();
        if claims.is_empty() {
            self.0.remove(key);
        }
        next
    }
}
