//! Graceful restart (RFC 4724, RFC 8538): what is offered, and what is kept of a neighbour that went away.
//!
//! One neighbour's routes, as the [`Helper`] sees them:
//!
//! ```text
//!            session down, families kept
//!   Fresh ────────────────────────────────► Away ── restart time over, or given up ──► Fresh: all removed
//!     ▲ ▲                                    ▲  │
//!     │ │        session down again: what    │  │ session up: families without F bit
//!     │ │        was stale by then goes      │  ▼ or not named any more are removed
//!     │ └── nothing left ◄──────────────────Back
//!     │                                       │ End-of-RIB: the family's stale routes are removed
//!     └── stale time over, or given up: all removed
//! ```
//!
//! Routes are stale because their epoch is older than the neighbour's ([`crate::rib::Sources`]); nothing here or there
//! walks over them to say so. The restarting side, which holds back routes until it has heard its neighbours, is in
//! `speaker/restart.rs`, as it concerns all neighbours at once.
//!
//! *Absent on purpose:* routes; long-lived graceful restart (RFC 9494).

use std::time::Duration;

use bgp_wire::capability::{self, AgreedRestart, GracefulFamily};
use bgp_wire::{Capability, Family, FamilySet, Notification};

use super::{CloseReason, DownReason, StopReason};
use crate::time::Instant;

/// Cease, Hard Reset (RFC 8538 section 3).
const HARD_RESET: (u8, u8) = (6, 9);

/// How long a restart takes at the most: whole seconds, up to 4095 (RFC 4724 section 3).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RestartTime(u16);

impl RestartTime {
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
    /// How long the neighbour is asked to keep our routes while we are away.
    pub restart_time: RestartTime,
    /// Families whose forwarding state outlives this process: their F bits are set in the first session after a start.
    /// In later sessions of the same process nothing has restarted, so all F bits are set (RFC 8538 section 4).
    pub forwarding: FamilySet,
    /// How long stale routes may wait for End-of-RIB once the neighbour is back.
    pub stale_time: Duration,
}

impl GracefulRestart {
    /// Two minutes for a restart, six for stale routes, no forwarding state that outlives the process.
    pub const USUAL: Self = Self {
        restart_time: RestartTime::USUAL,
        forwarding: FamilySet::EMPTY,
        stale_time: Duration::from_secs(360),
    };

    /// The capability. `restarted`: this process is new and has had no session with the neighbour yet.
    pub(super) fn capability(&self, families: FamilySet, restarted: bool, first: bool) -> Capability {
        Capability::GracefulRestart(capability::GracefulRestart {
            restarting: restarted,
            notification: true,
            time: self.restart_time.0,
            families: families
                .iter()
                .map(|family| GracefulFamily {
                    afi: family.afi(),
                    safi: family.safi(),
                    forwarding: !first || self.forwarding.contains(family),
                })
                .collect(),
        })
    }
}

/// What is kept of a neighbour when the session ends because of `reason` (RFC 4724 section 4.2; with the N bit RFC 8538
/// section 4).
pub(super) fn kept(agreed: &AgreedRestart, reason: &DownReason) -> Kept {
    let keeps = match reason {
        DownReason::Closed(CloseReason::EndOfStream | CloseReason::Error(_)) | DownReason::Replaced => true,
        DownReason::Received(notification) => {
            agreed.notification && (notification.code, notification.subcode) != HARD_RESET
        }
        DownReason::Stopped(StopReason::Reset(_) | StopReason::ConfigurationChange)
        | DownReason::Malformed(_)
        | DownReason::Unexpected(_)
        | DownReason::HoldTimerExpired
        | DownReason::Closed(CloseReason::SendHoldTimerExpired) => agreed.notification,
        // Who is told to stay away is not expected back.
        DownReason::Stopped(StopReason::Shutdown(_) | StopReason::Deconfigured | StopReason::Restart(_)) => {
            false
        }
        // These end connections that are not Established.
        DownReason::WrongAsn(_)
        | DownReason::SameRouterId(_)
        | DownReason::NoCommonFamily
        | DownReason::NotConnected(_) => false,
    };
    if keeps && agreed.time > 0 {
        Kept { families: agreed.families, time: Duration::from_secs(u64::from(agreed.time)) }
    } else {
        Kept::NOTHING
    }
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
    /// The families; routes of others go at once.
    pub families: FamilySet,
    /// How long the neighbour has time to come back.
    pub time: Duration,
}

impl Kept {
    /// All routes go at once.
    pub const NOTHING: Self = Self { families: FamilySet::EMPTY, time: Duration::ZERO };
}

/// Follows the stale routes of one neighbour. It holds no route: its answers name the families whose stale routes are
/// to be removed.
#[derive(Copy, Clone, Debug)]
pub struct Helper {
    stage: Stage,
    /// Families with routes that may be stale.
    families: FamilySet,
    /// When they go at the latest.
    until: Instant,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    Fresh,
    Away,
    Back,
}

impl Default for Helper {
    fn default() -> Self {
        Self { stage: Stage::Fresh, families: FamilySet::EMPTY, until: Instant::NEVER }
    }
}

impl Helper {
    /// The session has ended. What was stale before then is removed in any case (RFC 4724 section 4.2, consecutive
    /// restarts): that is the caller's to do, along with the families not kept.
    pub fn down(&mut self, now: Instant, kept: Kept) {
        *self = if kept.families.is_empty() {
            Self::default()
        } else {
            Self { stage: Stage::Away, families: kept.families, until: now + kept.time }
        };
    }

    /// The session is Established again. Gives the families whose stale routes go at once.
    #[must_use]
    pub fn up(&mut self, now: Instant, agreed: Option<&AgreedRestart>, stale_time: Duration) -> FamilySet {
        let preserved =
            agreed.map_or(FamilySet::EMPTY, |agreed| agreed.families.intersect(agreed.forwarding));
        let gone = minus(self.families, preserved);
        self.families = self.families.intersect(preserved);
        (self.stage, self.until) = (Stage::Back, now + stale_time);
        self.rest();
        gone
    }

    /// End-of-RIB has come. True if the family's stale routes go.
    #[must_use]
    pub fn end_of_rib(&mut self, family: Family) -> bool {
        let had = self.stage == Stage::Back && self.families.contains(family);
        if had {
            self.families.remove(family);
            self.rest();
        }
        had
    }

    /// Time has passed. Gives the families whose stale routes go because it is up.
    #[must_use]
    pub fn expire(&mut self, now: Instant) -> FamilySet {
        if self.until <= now { self.give_up() } else { FamilySet::EMPTY }
    }

    /// The neighbour is not waited for any more. Gives the families whose stale routes go.
    #[must_use]
    pub fn give_up(&mut self) -> FamilySet {
        std::mem::take(self).families
    }

    /// When [`Helper::expire`] is next due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        (self.stage != Stage::Fresh).then_some(self.until)
    }

    /// Families with routes that may be stale.
    #[must_use]
    pub const fn families(&self) -> FamilySet {
        self.families
    }

    fn rest(&mut self) {
        if self.families.is_empty() {
            *self = Self::default();
        }
    }
}

fn minus(all: FamilySet, without: FamilySet) -> FamilySet {
    all.iter().filter(|family| !without.contains(*family)).collect()
}

#[cfg(test)]
mod tests;
