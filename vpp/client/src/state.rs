//! What is known of the connection from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::ConnectError;

/// Counts connections, from 1. Whatever an index or id means, it means within one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The state of the connection.
#[derive(Debug, Clone)]
pub enum ConnState {
    /// Not connected, and trying.
    Connecting {
        /// Attempts since the last connection, from 0.
        attempt: u32,
        /// Why the last one failed, or why the connection ended.
        last_error: Option<Arc<ConnectError>>,
    },
    /// Connected.
    Up {
        /// Of this connection.
        generation: Generation,
        /// VPP's release; empty if it does not tell.
        version: Arc<str>,
    },
    /// Closed by [`crate::Client::close`], or because nobody holds the client any more.
    Closed,
}

impl ConnState {
    /// The generation, when connected.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        match self {
            Self::Up { generation, .. } => Some(*generation),
            Self::Connecting { .. } | Self::Closed => None,
        }
    }
}

/// Plain counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests and dumps sent.
    pub requests: u64,
    /// Replies, details and notices received.
    pub answers: u64,
    /// Answers with a context that nobody waits for, or another message than the one waited for.
    pub unexpected: u64,
    /// Answers to requests whose deadline had passed.
    pub late: u64,
    /// Deadlines passed.
    pub timeouts: u64,
    /// Notices thrown away because nobody took them.
    pub notices_missed: u64,
    /// Connections made.
    pub connections: u64,
}

/// [`Counters`] while they count. Only the connection task writes.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: AtomicU64,
    pub(crate) answers: AtomicU64,
    pub(crate) unexpected: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) notices_missed: AtomicU64,
    pub(crate) connections: AtomicU64,
}

impl Tally {
    pub(crate) fn snapshot(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            requests: read(&self.requests),
            answers: read(&self.answers),
            unexpected: read(&self.unexpected),
            late: read(&self.late),
            timeouts: read(&self.timeouts),
            notices_missed: read(&self.notices_missed),
            connections: read(&self.connections),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
