//! A fixed table of deadlines, and the jitter that keeps neighbours from acting in step (RFC 4271 section 10).

use std::time::Duration;

use crate::time::Instant;

/// Which of a peer's two connections: the index of its place.
pub(super) type Place = usize;

/// How many connections a peer can have.
pub(super) const PLACES: usize = 2;

/// A timer of RFC 4271 section 8.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The neighbour is silent. Runs per connection.
    Hold(Place),
    /// It is time for a KEEPALIVE. Runs per connection.
    Keepalive(Place),
    /// The neighbour has had its time to send OPEN first. Runs per connection.
    DelayOpen(Place),
    /// The wait after a failure is over.
    IdleHold,
    /// Try to connect again.
    ConnectRetry,
}

impl Timer {
    /// Every timer, in the order in which those due at the same time go off: a silent neighbour needs no KEEPALIVE.
    pub(super) const ALL: [Self; 3 * PLACES + 2] = [
        Self::Hold(0),
        Self::Hold(1),
        Self::Keepalive(0),
        Self::Keepalive(1),
        Self::DelayOpen(0),
        Self::DelayOpen(1),
        Self::IdleHold,
        Self::ConnectRetry,
    ];

    const fn index(self) -> usize {
        match self {
            Self::Hold(place) => place,
            Self::Keepalive(place) => PLACES + place,
            Self::DelayOpen(place) => 2 * PLACES + place,
            Self::IdleHold => 3 * PLACES,
            Self::ConnectRetry => 3 * PLACES + 1,
        }
    }
}

/// When each timer goes off; [`Instant::NEVER`] for one that doesn't run.
#[derive(Clone, Debug)]
pub(super) struct Timers([Instant; Timer::ALL.len()]);

impl Timers {
    pub(super) const fn new() -> Self {
        Self([Instant::NEVER; Timer::ALL.len()])
    }

    pub(super) fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer.index()] = at;
    }

    pub(super) fn stop(&mut self, timer: Timer) {
        self.set(timer, Instant::NEVER);
    }

    pub(super) fn stop_all(&mut self) {
        *self = Self::new();
    }

    /// Lets two timers go off at one another's time.
    pub(super) fn swap(&mut self, one: Timer, other: Timer) {
        self.0.swap(one.index(), other.index());
    }

    /// When a timer goes off, if it runs.
    pub(super) fn at(&self, timer: Timer) -> Option<Instant> {
        Some(self.0[timer.index()]).filter(|at| *at != Instant::NEVER)
    }

    pub(super) fn is_running(&self, timer: Timer) -> bool {
        self.0[timer.index()] != Instant::NEVER
    }

    pub(super) fn is_due(&self, timer: Timer, now: Instant) -> bool {
        self.is_running(timer) && self.0[timer.index()] <= now
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.0.into_iter().min().filter(|at| *at != Instant::NEVER)
    }
}

/// A small generator (SplitMix64) for delays; not for secrets.
#[derive(Clone, Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `time` shortened by a factor from 0.75 to 1.
    pub(super) fn shorten(&mut self, time: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        time / 4 * 3 + (time / 4).mul_f64((z >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_deadline_is_the_earliest_that_runs() {
        let mut timers = Timers::new();
        assert_eq!(timers.next(), None);
        for (secs, timer) in Timer::ALL.into_iter().enumerate() {
            timers.set(timer, Instant::from_secs(10 - secs as u64));
            assert_eq!(
                timers.next(),
                Some(Instant::from_secs(10 - secs as u64)),
                "{timer:?} has a place of its own"
            );
        }
        assert!(timers.is_due(Timer::ConnectRetry, Instant::from_secs(3)));
        assert!(!timers.is_due(Timer::IdleHold, Instant::from_secs(3)));
        timers.stop(Timer::ConnectRetry);
        assert!(!timers.is_due(Timer::ConnectRetry, Instant::NEVER));
        assert_eq!(timers.next(), Some(Instant::from_secs(4)));
        assert_eq!(timers.at(Timer::IdleHold), timers.next());
        assert_eq!(timers.at(Timer::ConnectRetry), None);
        timers.stop_all();
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn jitter_spreads_over_the_last_quarter_and_follows_the_seed() {
        let time = Duration::from_secs(100);
        let run = |seed| {
            let mut jitter = Jitter::new(seed);
            (0..1000).map(|_| jitter.shorten(time)).collect::<Vec<_>>()
        };
        let delays = run(7);
        assert!(delays.iter().all(|d| (time / 4 * 3..=time).contains(d)));
        let (low, high) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(*low < Duration::from_secs(76) && *high > Duration::from_secs(99));
        assert_eq!(delays, run(7));
        assert_ne!(delays, run(8));
        assert_eq!(Jitter::new(0).shorten(Duration::ZERO), Duration::ZERO);
    }
}
