//! What a dry run has come to, as JSON.

use serde::{Deserialize, Serialize};

/// What a policy did to the paths of one family.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Outcome {
    /// The object that the policy was made from, or its name.
    pub(crate) object: String,
    /// `import` or `export`.
    pub(crate) direction: String,
    /// The family.
    pub(crate) family: String,
    /// Paths that it saw.
    pub(crate) paths: u64,
    /// Those that a rule accepted.
    pub(crate) accepted: u64,
    /// Those that a rule rejected.
    pub(crate) rejected: u64,
    /// Those that no rule decided: the session's next policy does.
    pub(crate) undecided: u64,
    /// Those that were changed and not rejected.
    pub(crate) changed: u64,
    /// What each rule decided.
    pub(crate) rules: Vec<Rule>,
}

/// What one rule did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Rule {
    /// Which rule.
    pub(crate) rule: String,
    /// What becomes of a path that matches.
    pub(crate) then: String,
    /// Paths that it decided.
    pub(crate) paths: u64,
    /// Those of them that were changed.
    pub(crate) changed: u64,
    /// Their destinations.
    pub(crate) prefixes: Vec<String>,
}
