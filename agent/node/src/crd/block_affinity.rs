//! `BlockAffinity`: which node a block of pod addresses belongs to.

use ipnet::IpNet;

use super::value::{non_empty, prefix};
use crate::yaml::Item;

/// The spec of a BlockAffinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockAffinity {
    /// `cidr`, host bits cleared.
    pub(crate) cidr: IpNet,
    /// `node`: whose it is.
    pub(crate) node: String,
    /// `state`.
    pub(crate) state: AffinityState,
    /// `type: virtual`: the owner is no node but the allocator of service addresses.
    pub(crate) virtual_owner: bool,
    /// `deleted`: text in one layout, a boolean in the other.
    pub(crate) deleted: bool,
}

/// How far the claim on the block has come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum AffinityState {
    /// Claimed; also what an absent state of an old row means.
    Confirmed,
    /// Being claimed; counts as absent.
    Pending,
    /// Being given back.
    PendingDeletion,
}

impl BlockAffinity {
    /// Read the `spec`. Mistakes go to the flaws of the item.
    pub(crate) fn decode(spec: &Item<'_>) -> Option<Self> {
        let mut fields = spec.fields()?;
        let cidr = fields.need("cidr").and_then(|item| prefix(&item));
        let node = fields.need("node").and_then(|item| non_empty(&item));
        let state = fields.take("state").filter(|item| item.text() != Some(""));
        let state = match state.and_then(|item| item.word(&["confirmed", "pending", "pendingDeletion"])) {
            Some(1) => AffinityState::Pending,
            Some(2) => AffinityState::PendingDeletion,
            _ => AffinityState::Confirmed,
        };
        let owner = fields.take("type").filter(|item| item.text() != Some(""));
        let virtual_owner = owner.and_then(|item| item.word(&["host", "virtual"])) == Some(1);
        let deleted = fields.take("deleted").filter(|item| item.text() != Some(""));
        let deleted = deleted.and_then(|item| item.boolean()).unwrap_or(false);
        fields.finish();
        Some(Self { cidr: cidr?, node: node?, state, virtual_owner, deleted })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::super::object::tests::{one, problems};
    use super::*;

    const HEAD: &str =
        "apiVersion: crd.projectcalico.org/v1\nkind: BlockAffinity\nmetadata: {name: b}\nspec:\n";

    fn read(spec: &str) -> BlockAffinity {
        let (_, object) = one(&format!("{HEAD}  cidr: 10.244.3.64/26\n  node: node-a\n{spec}"));
        let Object::BlockAffinity(row) = object else { panic!("{object:?}") };
        row
    }

    #[test]
    fn states_and_both_spellings_of_deleted() {
        let plain = read("");
        assert_eq!(plain.state, AffinityState::Confirmed);
        assert!(!plain.virtual_owner && !plain.deleted);
        assert_eq!(read("  state: \"\"\n  type: ''\n  deleted: \"false\"\n"), plain);
        assert_eq!(read("  state: confirmed\n  type: host\n  deleted: false\n"), plain);
        assert_eq!(read("  state: pending\n").state, AffinityState::Pending);
        assert_eq!(read("  state: pendingDeletion\n").state, AffinityState::PendingDeletion);
        assert!(read("  deleted: \"true\"\n").deleted);
        assert!(read("  deleted: true\n").deleted);
        assert!(read("  type: virtual\n").virtual_owner);
    }

    #[test]
    fn mistakes() {
        assert_eq!(
            problems(&format!("{HEAD}  cidr: 10.244.3.64\n  state: claimed\n")),
            [
                "line 5: spec.cidr: must be a prefix such as 10.0.0.0/26 or fd00::/122, not \"10.244.3.64\"",
                "line 5: spec.node: is required",
                "line 6: spec.state: must be confirmed, pending or pendingDeletion, not \"claimed\"",
            ]
        );
    }
}
