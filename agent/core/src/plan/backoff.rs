//! How long to wait before the next attempt.

use std::time::Duration;

/// The first pause.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// The first time that another node is given to take part in what was begun with it.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// The longest.
const LONGEST_PATIENCE: Duration = Duration::from_secs(300);

/// How long to wait for another node after so many beginnings: 10 s, doubled each time, at most 5 minutes. VPP itself goes on
/// with what was begun; only what was refused has to be begun again.
pub(super) fn patience(beginnings: u8) -> Duration {
    let doublings = u32::from(beginnings.saturating_sub(1)).min(20);
    FIRST_PATIENCE.saturating_mul(1 << doublings).min(LONGEST_PATIENCE)
}

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
        assert_eq!((patience(1), patience(3)), (FIRST_PATIENCE, FIRST_PATIENCE * 4));
        assert_eq!(patience(u8::MAX), LONGEST_PATIENCE);
    }
}
