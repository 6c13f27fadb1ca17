//! How long to wait before the next attempt.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// The pause after this many attempts have failed in a row: 100 ms, doubled each time, at most 30 s.
pub(super) fn pause(attempts: u8) -> Duration {
    let doublings = u32::from(attempts.saturating_sub(1)).min(20);
    FIRST.saturating_mul(1 << doublings).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bounded() {
        assert_eq!(pause(1), FIRST);
        assert_eq!(pause(3), FIRST * 4);
        assert_eq!(pause(u8::MAX), LONGEST);
        assert!((1..u8::MAX).all(|n| pause(n) <= pause(n + 1)));
    }
}
