//! What every source of objects tells, whether it is a folder or an API server: complete lists, changes, and faults.

use std::sync::Arc;
use std::time::Duration;

use agent_core::event::Change;
use agent_core::model::Condition;

use crate::crd::{Kind, Object, ObjectName};

/// One piece of news from a source.
#[derive(Clone, Debug)]
pub(crate) enum SourceChange {
    /// All objects of a kind: what isn't listed is gone.
    Listed(Kind, Vec<(ObjectName, Arc<Object>)>),
    /// An object appeared or changed.
    Put(ObjectName, Arc<Object>),
    /// An object is gone.
    Gone(Kind, ObjectName),
    /// What is wrong with a unit of reading, such as a file.
    Faults(Change<Arc<str>, Vec<Condition>>),
}

/// Waiting times that double from try to try, up to a limit, until something succeeds.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    first: Duration,
    limit: Duration,
}

impl Backoff {
    /// Waits from `first` up to `limit`.
    pub(crate) const fn new(first: Duration, limit: Duration) -> Self {
        Self { next: first, first, limit }
    }

    /// How long to wait before the next try.
    pub(crate) fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (self.next * 2).min(self.limit);
        wait
    }

    /// Something succeeded.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        let millis: Vec<_> = (0..4).map(|_| backoff.wait().as_millis()).collect();
        assert_eq!(millis, [100, 200, 350, 350]);
        backoff.reset();
        assert_eq!(backoff.wait().as_millis(), 100);
    }
}
