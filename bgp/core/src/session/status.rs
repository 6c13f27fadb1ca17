//! What a session tells about itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bgp_wire::{Negotiated, Open};

use super::{DownReason, HoldTime, Link, StopReason};
use crate::peer_key::ConnId;
use crate::time::Instant;

/// The states of RFC 4271 section 8.2.2. Of two connections the further one counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Stopped, or waiting after a failure; refuses connections.
    Idle,
    /// Trying to connect; accepts connections.
    Connect,
    /// Waiting to try again, or passive; accepts connections.
    Active,
    /// Connected, OPEN sent.
    OpenSent,
    /// OPEN received and accepted, KEEPALIVE sent.
    OpenConfirm,
    /// Both ends have agreed; routes are exchanged.
    Established,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Idle, Self::Connect, Self::Active, Self::OpenSent, Self::OpenConfirm, Self::Established];

    /// The name in lower case, words joined by `_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connect => "connect",
            Self::Active => "active",
            Self::OpenSent => "open_sent",
            Self::OpenConfirm => "open_confirm",
            Self::Established => "established",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The last thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// When.
    pub at: Instant,
    /// What.
    pub reason: DownReason,
}

/// A snapshot of a session, borrowed from its peer.
#[derive(Copy, Clone, Debug)]
pub struct Status<'a> {
    /// The state.
    pub state: State,
    /// Since when; for Established that is the start of the uptime.
    pub since: Instant,
    /// Why it is stopped, where an operator or the embedder stopped it. `None` before the first start as well.
    pub stopped: Option<&'a StopReason>,
    /// Kept in Idle after a disagreement, though nobody stopped it: until then, or until it is started where there is no
    /// time.
    pub idle: Option<Option<Instant>>,
    /// What went wrong last; kept while the session is up.
    pub last_error: Option<&'a LastError>,
    /// The connection that counts, if there is one.
    pub conn: Option<ConnId>,
    /// Its two ends.
    pub link: Option<Link>,
    /// The OPEN we sent on it.
    pub sent: Option<&'a Open>,
    /// The OPEN we got on it.
    pub received: Option<&'a Open>,
    /// What both ends agreed, from OpenConfirm on.
    pub negotiated: Option<&'a Arc<Negotiated>>,
    /// The hold time in force, from OpenConfirm on.
    pub hold_time: Option<HoldTime>,
    /// The keepalive interval in force, before jitter; zero for none. From OpenConfirm on.
    pub keepalive: Option<Duration>,
    /// How often the session became Established.
    pub established_count: u64,
    /// RFC 4271's ConnectRetryCounter: failures since the last manual start or stop.
    pub connect_retry_counter: u32,
}
