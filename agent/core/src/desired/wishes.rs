//! All that one owner wants of VPP, remembered so that the next answer can be compared with it: a handler works out what
//! shall be, as a whole, and what it no longer lists goes by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ObjectKey, Owner, Path, Spec};
use crate::effects::VppEdit;
use crate::model::RouteKey;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Objects, each with its value where it has one.
    pub(crate) objects: BTreeMap<ObjectKey, Option<Spec>>,
    /// Routes that go with them.
    pub(crate) routes: BTreeMap<RouteKey, Arc<[Path]>>,
}

impl Wishes {
    /// Wants an object with this value.
    pub(crate) fn define(&mut self, key: ObjectKey, spec: Spec) {
        self.objects.insert(key, Some(spec));
    }

    /// Wants `next` in place of what was wanted before, and appends the edits that say so.
    pub(crate) fn replace(&mut self, owner: Owner, next: Self, edits: &mut Vec<VppEdit>) {
        for (key, spec) in &next.objects {
            let before = self.objects.get(key);
            if let Some(spec) = spec
                && before.is_none_or(|before| before.as_ref() != Some(spec))
            {
                edits.push(VppEdit::Define(*key, spec.clone()));
            }
            if before.is_none() {
                edits.push(VppEdit::Want(owner, *key));
            }
        }
        for (key, paths) in &next.routes {
            if self.routes.get(key) != Some(paths) {
                edits.push(VppEdit::WantRoute(owner, *key, Arc::clone(paths)));
            }
        }
        let routes = self.routes.keys().filter(|key| !next.routes.contains_key(key));
        edits.extend(routes.map(|key| VppEdit::ReleaseRoute(owner, *key)));
        // Settings before the tunnel they belong to.
        let objects = self.objects.keys().rev().filter(|key| !next.objects.contains_key(key));
        edits.extend(objects.map(|key| VppEdit::Release(owner, *key)));
        *self = next;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Tunnel, WireguardKey};
    use super::*;
    use crate::desired::MtuRule;

    #[test]
    fn only_what_changed_is_edited() {
        let tunnel = Tunnel::Wireguard(WireguardKey {
            local: "192.0.2.1".parse().unwrap(),
            port: 1,
            key: crate::model::KeyId::default(),
        });
        let (up, mtu) = (ObjectKey::AdminUp(tunnel), ObjectKey::Mtu(tunnel));
        let (small, large) = (Spec::MtuRule(MtuRule::Fixed(1400)), Spec::MtuRule(MtuRule::Fixed(9000)));
        let mut wishes = Wishes::default();
        let mut edited = |next: &Wishes| {
            let mut edits = Vec::new();
            wishes.replace(Owner::Host, next.clone(), &mut edits);
            edits
        };
        let mut next = Wishes::default();
        next.objects.insert(up, None);
        next.define(mtu, small.clone());
        let (want, define) = (VppEdit::Want, VppEdit::Define);
        assert_eq!(edited(&next), [define(mtu, small), want(Owner::Host, mtu), want(Owner::Host, up)]);
        assert_eq!(edited(&next), []);
        next.define(mtu, large.clone());
        assert_eq!(edited(&next), [define(mtu, large)]);
        let (up, mtu) = (VppEdit::Release(Owner::Host, up), VppEdit::Release(Owner::Host, mtu));
        assert_eq!(edited(&Wishes::default()), [up, mtu]);
    }
}
