//! How many prefixes a neighbour may announce in a family, and what happens beyond that.
//!
//! Counted is the Adj-RIB-In before import policy: what a neighbour has said and not taken back, whether policy lets it in or
//! not. With ADD-PATH (RFC 7911) every path counts, that is, each pair of prefix and path identifier. A stale path (RFC 4724,
//! 7313, 9494) counts again when it is said again: a neighbour that restarts is not held to what it said before. So there
//! may be up to twice as many paths as the limit allows while a neighbour says everything again, and no more.

use std::fmt;
use std::time::Duration;

/// How many prefixes of one family a neighbour may announce.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PrefixLimit {
    /// The most that are in order; 0 for none.
    pub limit: u32,
    /// What happens beyond it.
    pub action: LimitAction,
}

impl PrefixLimit {
    /// Where a warning is due: at three quarters of the limit, rounded up.
    #[must_use]
    pub const fn threshold(&self) -> u32 {
        self.limit - self.limit / 4
    }
}

/// What happens when a neighbour announces more prefixes than it may. In every case a line is logged at three quarters of the
/// limit and one when it is exceeded, and the neighbour's status shows it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LimitAction {
    /// Nothing else.
    Warn,
    /// Further prefixes are not kept. When there is room again, the neighbour is asked to say everything again (RFC 2918),
    /// at most once a minute; one that cannot be asked has to be reset for it.
    Discard,
    /// The session ends with Cease / Maximum Number of Prefixes Reached (RFC 4486 section 4), and no route is kept.
    Reset {
        /// How long to stay away; until the neighbour is cleared, enabled or configured anew where absent.
        restart: Option<Duration>,
    },
}

impl LimitAction {
    /// The name in settings and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Discard => "discard",
            Self::Reset { .. } => "reset",
        }
    }
}

impl fmt::Display for LimitAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_due_at_three_quarters() {
        let threshold = |limit| PrefixLimit { limit, action: LimitAction::Warn }.threshold();
        assert_eq!([0, 1, 2, 3, 4, 5, 100].map(threshold), [0, 1, 2, 3, 3, 4, 75]);
        assert_eq!(threshold(u32::MAX), 3_221_225_472);
    }
}
