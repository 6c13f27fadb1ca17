//! `POST /v1/check`: what manifests or a speaker's file would change at the neighbours, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The files to be tried, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct CheckQuestion {
    /// Their texts.
    pub(crate) files: BTreeMap<String, String>,
    /// Whether prefixes are asked for, or only how many they are.
    #[serde(default)]
    pub(crate) named: bool,
}

/// What would change for the paths of one family at one neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct PolicyChange {
    /// The neighbour.
    pub(crate) neighbor: String,
    /// `import` or `export`.
    pub(crate) direction: String,
    /// The family.
    pub(crate) family: String,
    /// Paths that policy has seen: on import those that the neighbour sent, on export the best ones from elsewhere.
    pub(crate) paths: u64,
    /// Rejected now, accepted then.
    pub(crate) accepted: Affected,
    /// Accepted now, rejected then.
    pub(crate) rejected: Affected,
    /// Accepted now and then, with other attributes.
    pub(crate) changed: Affected,
}

/// Paths that something happens to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Affected {
    /// How many.
    pub(crate) paths: u64,
    /// Their destinations, where they are asked for.
    pub(crate) prefixes: Vec<String>,
}

impl PolicyChange {
    /// Whether there is anything to tell.
    pub(crate) const fn is_empty(&self) -> bool {
        self.accepted.paths + self.rejected.paths + self.changed.paths == 0
    }
}
