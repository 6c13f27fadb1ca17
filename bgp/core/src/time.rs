//! Time as the cores see it: a number handed in by the embedder.
//!
//! Never reads a clock: the embedder converts its own monotonic clock, a simulation counts for itself.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A point in time: nanoseconds since an epoch that the embedder chooses. Only differences mean anything.
///
/// Must never go backwards between two calls into the same core. The range is 584 years from the epoch;
/// arithmetic saturates at its end.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The point `secs` seconds after the epoch.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch; saturates at `u32::MAX` (136 years). The unit in which paths keep their age.
    #[must_use]
    pub const fn as_secs(self) -> u32 {
        let secs = self.0 / 1_000_000_000;
        if secs > u32::MAX as u64 { u32::MAX } else { secs as u32 }
    }

    /// How long after `earlier` this is; zero when it isn't after it.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

/// Seconds since the epoch with nine decimals, as in `12.000000345s`.
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let t = Instant::from_secs(5);
        assert_eq!(t + Duration::from_nanos(7), Instant::from_nanos(5_000_000_007));
        assert_eq!(t.saturating_since(Instant::from_secs(2)), Duration::from_secs(3));
        assert_eq!(Instant::ZERO.saturating_since(t), Duration::ZERO);
        assert_eq!(t + Duration::MAX, Instant::NEVER);
        assert_eq!(Instant::NEVER.as_secs(), u32::MAX);
        assert_eq!(format!("{:?}", Instant::from_nanos(1_000_000_002)), "1.000000002s");
    }
}
