//! How long routes are kept as a last resort: a time for each family.

use std::time::Duration;

use bgp_wire::capability::{AgreedLongLived, LongLivedFamily};
use bgp_wire::{Family, FamilySet};

/// The Long-Lived Stale Time (RFC 9494 section 3.1): whole seconds, up to 16,777,215, some 194 days.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StaleTime(u32);

impl StaleTime {
    /// Nothing is long-lived.
    pub const ZERO: Self = Self(0);
    /// What fits into the capability.
    pub const MAX: Self = Self(LongLivedFamily::MAX_TIME);

    /// A stale time in seconds; `None` above 16,777,215.
    #[must_use]
    pub const fn new(secs: u32) -> Option<Self> {
        if secs > Self::MAX.0 { None } else { Some(Self(secs)) }
    }

    /// Seconds.
    #[must_use]
    pub const fn secs(self) -> u32 {
        self.0
    }

    /// The same as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

/// For which families, and how long. RFC 9494 section 5: nothing of this is on unless it was asked for, family by family.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LongLived {
    /// By family index; zero for families without.
    times: [StaleTime; Family::COUNT],
}

impl LongLived {
    /// For no family.
    pub const NONE: Self = Self { times: [StaleTime::ZERO; Family::COUNT] };

    /// The same time for every family of `families`.
    #[must_use]
    pub fn of(families: FamilySet, time: StaleTime) -> Self {
        families.iter().fold(Self::NONE, |all, family| all.with(family, time))
    }

    /// The same with another time for one family; zero takes it out.
    #[must_use]
    pub fn with(mut self, family: Family, time: StaleTime) -> Self {
        self.times[family.index()] = time;
        self
    }

    /// The time of a family; zero where it has none.
    #[must_use]
    pub const fn time(&self, family: Family) -> StaleTime {
        self.times[family.index()]
    }

    /// The families that have a time.
    #[must_use]
    pub fn families(&self) -> FamilySet {
        Family::ALL.into_iter().filter(|family| self.time(*family) > StaleTime::ZERO).collect()
    }

    /// The longest time of any family.
    pub(super) fn longest(&self) -> Duration {
        self.times.into_iter().max().unwrap_or_default().duration()
    }

    /// What a neighbour asks for, but not more than this (RFC 9494 section 4.2: local configuration may reduce it).
    pub(super) fn at_most(&self, asked: &AgreedLongLived) -> Self {
        asked.families.iter().fold(Self::NONE, |all, family| {
            let asked = StaleTime(asked.stale_time(family));
            all.with(family, asked.min(self.time(family)))
        })
    }
}
