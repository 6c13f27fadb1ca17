//! Awaiting a named condition.

use std::thread;
use std::time::{Duration, Instant};

/// How long a condition may take on a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Calls `probe` until it gives a value, and returns it.
///
/// # Panics
///
/// When `limit` has passed: the message names the condition and what the last probe saw.
#[track_caller]
pub fn until_within<T>(limit: Duration, what: &str, mut probe: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        let seen = match probe() {
            Ok(value) => return value,
            Err(seen) => seen,
        };
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}; last seen: {seen}");
        // Polling is all that a foreign process offers; the pause only keeps the cores free for it.
        thread::park_timeout(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// [`until_within`] with [`PATIENCE`].
#[track_caller]
pub fn until<T>(what: &str, probe: impl FnMut() -> Result<T, String>) -> T {
    until_within(PATIENCE, what, probe)
}

/// Awaits a plain yes-or-no condition. See [`until`].
#[track_caller]
pub fn until_true(what: &str, mut probe: impl FnMut() -> bool) {
    until(what, || if probe() { Ok(()) } else { Err("false".to_owned()) });
}
