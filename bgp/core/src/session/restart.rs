//! Graceful restart (RFC 4724, RFC 8538) and its long-lived form (RFC 9494): what is offered, and what is kept of a
//! neighbour that went away.
//!
//! Of each family the [`Helper`] knows how far it is:
//!
//! ```text
//!            session down, family kept                    restart time over
//!   Fresh ────────────────────────────► Stale ───────────────────────────────► Long-lived stale
//!     ▲                                   │ \  without a Long-Lived Stale Time:    │   (at once where the
//!     │                                   │  ────────────► removed                 │    restart time is 0)
//!     │                                   │                                        │
//!     │   session up, F bit set           ▼                                        ▼
//!     ├────────────── End-of-RIB ───── waiting for it ◄──────────────────── session up, F bit set
//!     │                                   │
//!     └── time up, given up, session up without the family or its F bit: what is still stale is removed
//! ```
//!
//! Routes are stale because their epoch is older than the neighbour's ([`crate::rib::Sources`]); nothing here walks
//! over them to say so. The restarting side, which holds back routes until it has heard its neighbours, is in
//! `speaker/restart.rs`, as it concerns all neighbours at once.
//!
//! *Absent on purpose:* routes.

mod helper;
mod long_lived;

use std::time::Duration;

use bgp_wire::capability::{self, AgreedLongLived, AgreedRestart, GracefulFamily, LongLivedFamily};
use bgp_wire::{Capability, Family, FamilySet, Notification};

pub use self::helper::{Expired, Helper, Lost};
pub use self::long_lived::{LongLived, StaleTime};
use super::{CloseReason, DownReason, StopReason};

/// Cease, Hard Reset (RFC 8538 section 3).
const HARD_RESET: (u8, u8) = (6, 9);

/// How long a restart takes at the most: whole seconds, up to 4095 (RFC 4724 section 3).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RestartTime(u16);

impl RestartTime {
    /// Nothing is kept for a restart.
    pub const ZERO: Self = Self(0);
    /// Two minutes.
    pub const USUAL: Self = Self(120);
    /// What fits into the capability.
    pub const MAX: Self = Self(0x0fff);

    /// A restart time in seconds; `None` above 4095.
    #[must_use]
    pub const fn new(secs: u16) -> Option<Self> {
        if secs > Self::MAX.0 { None } else { Some(Self(secs)) }
    }

    /// Seconds.
    #[must_use]
    pub const fn secs(self) -> u16 {
        self.0
    }

    /// The same as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0 as u64)
    }
}

/// Graceful restart as a neighbour is offered it: every family of the session, and the N bit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct GracefulRestart {
    /// How long the neighbour is asked to keep our routes while we are away. Zero skips this form where there is a
    /// long-lived one (RFC 9494 section 4.1).
    pub restart_time: RestartTime,
    /// Families whose routes the neighbour is asked to keep for longer, as a last resort (RFC 9494), and how long. The
    /// longest too that the neighbour's are kept so, whatever it asks for. None where this was not asked for family by
    /// family.
    pub long_lived: LongLived,
    /// Families whose forwarding state outlives this process: their F bits, of both forms, are set in the first session
    /// after a start. In later sessions of the same process nothing has restarted, so all F bits are set (RFC 8538
    /// section 4).
    pub forwarding: FamilySet,
    /// How long stale routes may wait for End-of-RIB once the neighbour is back.
    pub stale_time: Duration,
}

impl GracefulRestart {
    /// Two minutes for a restart, six for stale routes, no forwarding state that outlives the process, nothing
    /// long-lived.
    pub const USUAL: Self = Self {
        restart_time: RestartTime::USUAL,
        long_lived: LongLived::NONE,
        forwarding: FamilySet::EMPTY,
        stale_time: Duration::from_secs(360),
    };

    /// How long a neighbour keeps something of us at the most once we are away.
    pub(crate) fn longest(&self) -> Duration {
        self.restart_time.duration() + self.long_lived.longest()
    }

    /// What an OPEN says of it: the graceful-restart capability, and the long-lived one where there is such a family (RFC
    /// 9494 section 4.1 wants both then). `restarted`: this process is new and has had no session with the neighbour yet.
    pub(super) fn capabilities(&self, families: FamilySet, restarted: bool, first: bool) -> Vec<Capability> {
        // RFC 9494 section 5: where the one F bit is set, so should be the other.
        let forwarding = |family| !first || self.forwarding.contains(family);
        let graceful = Capability::GracefulRestart(capability::GracefulRestart {
            restarting: restarted,
            notification: true,
            time: self.restart_time.0,
            families: families
                .iter()
                .map(|family| GracefulFamily {
                    afi: family.afi(),
                    safi: family.safi(),
                    forwarding: forwarding(family),
                })
                .collect(),
        });
        let long_lived: Vec<_> = families
            .intersect(self.long_lived.families())
            .iter()
            .map(|family| LongLivedFamily {
                afi: family.afi(),
                safi: family.safi(),
                forwarding: forwarding(family),
                stale_time: self.long_lived.time(family).secs(),
            })
            .collect();
        let long_lived = (!long_lived.is_empty()).then_some(Capability::LongLivedGracefulRestart(long_lived));
        [graceful].into_iter().chain(long_lived).collect()
    }
}

/// What two ends agreed on, and the longest that we keep anything.
#[derive(Copy, Clone, Debug)]
pub(super) struct Terms {
    pub(super) restart: AgreedRestart,
    pub(super) long_lived: Option<AgreedLongLived>,
    pub(super) longest: LongLived,
}

/// What is kept of a neighbour when the session ends because of `reason` (RFC 4724 section 4.2; with the N bit RFC 8538
/// section 4; the same for long-lived routes, RFC 9494 section 4.2).
pub(super) fn kept(terms: &Terms, reason: &DownReason) -> Kept {
    let Terms { restart, long_lived, longest } = terms;
    let keeps = match reason {
        DownReason::Closed(CloseReason::EndOfStream | CloseReason::Error(_)) | DownReason::Replaced => true,
        DownReason::Received(notification) => {
            restart.notification && (notification.code, notification.subcode) != HARD_RESET
        }
        DownReason::Stopped(StopReason::Reset(_) | StopReason::ConfigurationChange)
        | DownReason::Malformed(_)
        | DownReason::Unexpected(_)
        | DownReason::HoldTimerExpired
        | DownReason::Closed(CloseReason::SendHoldTimerExpired) => restart.notification,
        // Who is told to stay away is not expected back.
        DownReason::Stopped(StopReason::Shutdown(_) | StopReason::Deconfigured | StopReason::Restart(_))
        | DownReason::TooManyPrefixes { .. } => false,
        // These end connections that are not Established.
        DownReason::WrongAsn(_)
        | DownReason::SameRouterId(_)
        | DownReason::NoCommonFamily
        | DownReason::RoleMismatch { .. }
        | DownReason::NotConnected(_) => false,
    };
    if !keeps {
        return Kept::NOTHING;
    }
    let families = if restart.time > 0 { restart.families } else { FamilySet::EMPTY };
    let long_lived = long_lived.map_or(LongLived::NONE, |agreed| longest.at_most(&agreed));
    Kept { families, time: Duration::from_secs(u64::from(restart.time)), long_lived }
}

/// Wraps a NOTIFICATION so that its receiver keeps no routes (RFC 8538 section 3).
pub(super) fn hard_reset(inner: &Notification) -> Notification {
    let mut data = vec![inner.code, inner.subcode];
    data.extend_from_slice(&inner.data);
    Notification { code: HARD_RESET.0, subcode: HARD_RESET.1, data: data.into() }
}

/// What of a lost neighbour's routes is kept, and how long.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Families whose routes are kept as they are; in none if there is no time.
    pub families: FamilySet,
    /// How long the neighbour has time to come back until they go, or are long-lived stale.
    pub time: Duration,
    /// Families whose routes are kept beyond that, and how long; those that are not among `families` at once.
    pub long_lived: LongLived,
}

impl Kept {
    /// All routes go at once.
    pub const NOTHING: Self =
        Self { families: FamilySet::EMPTY, time: Duration::ZERO, long_lived: LongLived::NONE };

    /// How long routes of a family are kept as they are.
    fn time(&self, family: Family) -> Duration {
        if self.families.contains(family) { self.time } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests;
