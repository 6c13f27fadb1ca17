//! Settings, complete before the client starts.

use std::time::Duration;

use vpp_wire::MsgName;

/// How many requests may be in flight: 1 to 200.
///
/// VPP leaks descriptors once a client's socket is full, which takes about 278 unread small replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowSize(u8);

impl WindowSize {
    /// The largest that is safe for VPP.
    pub const MAX: Self = Self(200);

    /// `None` for 0 and for more than 200.
    #[must_use]
    pub const fn new(requests: u8) -> Option<Self> {
        match requests {
            1..=200 => Some(Self(requests)),
            _ => None,
        }
    }

    /// Requests.
    #[must_use]
    pub const fn requests(self) -> usize {
        self.0 as usize
    }
}

/// What a client is told at its start.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// What VPP calls this client in its own listings; cut to 63 bytes.
    pub name: String,
    /// Requests in flight.
    pub window: WindowSize,
    /// How long an answer may take. A dump's deadline starts anew with each of its details.
    pub deadline: Duration,
    /// After so long a silence VPP is asked for a sign of life; no answer within `deadline` ends the connection.
    pub ping_after: Duration,
    /// Delay before the second attempt to connect; it doubles from attempt to attempt.
    pub first_retry: Duration,
    /// Longest delay between attempts.
    pub last_retry: Duration,
    /// How long requests in flight, and then VPP's farewell, are waited for when the client closes.
    pub farewell: Duration,
    /// Messages without which a connection is of no use: while VPP lacks one, the client does not get up.
    pub required: Vec<MsgName>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            name: "peregrine".to_owned(),
            window: WindowSize::MAX,
            deadline: Duration::from_secs(10),
            ping_after: Duration::from_secs(5),
            first_retry: Duration::from_millis(100),
            last_retry: Duration::from_secs(5),
            farewell: Duration::from_secs(1),
            required: Vec::new(),
        }
    }
}
