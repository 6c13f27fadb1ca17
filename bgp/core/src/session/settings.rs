//! What a session is told.

use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use bgp_wire::{Asn, Capability, Family, FamilySet, Role, RouterId};

use super::connection::LARGE_HOLD;
use super::{GracefulRestart, PeerRole};

/// Which AS number the neighbour must have.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum RemoteAsn {
    /// Exactly this one.
    Is(Asn),
    /// Any but ours.
    External,
    /// Ours.
    Internal,
}

impl RemoteAsn {
    /// Whether a neighbour of AS `theirs` is welcome in `ours`.
    #[must_use]
    pub fn accepts(self, theirs: Asn, ours: Asn) -> bool {
        match self {
            Self::Is(asn) => theirs == asn,
            Self::External => theirs != ours,
            Self::Internal => theirs == ours,
        }
    }
}

/// A hold time that RFC 4271 section 4.2 allows: none, or at least 3 seconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldTime(u16);

impl HoldTime {
    /// No hold time: neither hold timer nor KEEPALIVEs.
    pub const NONE: Self = Self(0);
    /// What RFC 4271 section 10 suggests.
    pub const SUGGESTED: Self = Self(90);

    /// A hold time in seconds; `None` for 1 and 2.
    #[must_use]
    pub const fn new(secs: u16) -> Option<Self> {
        if secs == 1 || secs == 2 { None } else { Some(Self(secs)) }
    }

    /// Seconds; 0 for none.
    #[must_use]
    pub const fn secs(self) -> u16 {
        self.0
    }
}

/// How long to stay away from a neighbour after a failure. The first wait is `min`, each further one twice as long up
/// to `max`, all shortened by jitter (0.75 to 1). A session that was Established for longer than `max` starts anew.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct IdleHold {
    /// The first wait.
    pub min: Duration,
    /// The longest wait.
    pub max: Duration,
}

/// Several paths of a destination on one session (RFC 7911), for each family that it carries.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AddPath {
    /// Offer to take several.
    pub receive: bool,
    /// Offer to send several: at most so many of one destination. Absent: only the best one is sent.
    pub send: Option<NonZeroU8>,
}

impl AddPath {
    /// Neither offered.
    pub const NONE: Self = Self { receive: false, send: None };

    /// Both offered, and as many sent as can be: what "all paths" comes to.
    pub const ALL: Self = Self { receive: true, send: Some(NonZeroU8::MAX) };

    /// What an OPEN says of it.
    const fn offer(self) -> (bool, bool) {
        (self.receive, self.send.is_some())
    }

    /// The capability for these families; absent where nothing is offered.
    pub(super) fn capability(self, families: FamilySet) -> Option<Capability> {
        let (receive, send) = self.offer();
        let one = |family: Family| bgp_wire::capability::AddPath {
            afi: family.afi(),
            safi: family.safi(),
            receive,
            send,
        };
        // A policy of SR has its candidate paths in its keys (RFC 9830 section 2.1), so there is nothing to add.
        let several = |family: &Family| !matches!(family, Family::Ipv4SrPolicy | Family::Ipv6SrPolicy);
        let families: Vec<_> = families.iter().filter(several).map(one).collect();
        ((receive || send) && !families.is_empty()).then_some(Capability::AddPath(families))
    }
}

/// What a session is told. All of it can change while the session runs, see [`Reconfigured`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// Our AS number towards this neighbour.
    pub local_asn: Asn,
    /// The neighbour's.
    pub remote_asn: RemoteAsn,
    /// Our BGP Identifier; not zero.
    pub local_router_id: RouterId,
    /// The families to offer; at least one.
    pub families: FamilySet,
    /// Offer to take messages of up to 65535 octets (RFC 8654). Where the neighbour does too, it is sent such.
    pub extended_messages: bool,
    /// Offer IPv6 next hops for IPv4 prefixes (RFC 8950). Where the neighbour does too, it may send such, and is sent
    /// such for want of an IPv4 one.
    pub extended_next_hop: bool,
    /// Several paths of a destination.
    pub add_path: AddPath,
    /// What we are to the neighbour (RFC 9234). For an external one only.
    pub role: Option<PeerRole>,
    /// The hold time to offer. The smaller of both ends' is used.
    pub hold_time: HoldTime,
    /// How often to send KEEPALIVE, in seconds; a third of the hold time where absent. Meant for the hold time above:
    /// where the neighbour offers a smaller one, it shrinks in proportion.
    pub keepalive: Option<NonZeroU16>,
    /// How long to wait between attempts to connect, and for one to succeed. RFC 4271 suggests 120 s; jitter shortens
    /// it (0.75 to 1).
    pub connect_retry: Duration,
    /// How long to stay away after a failure.
    pub idle_hold: IdleHold,
    /// Never connect, only accept.
    pub passive: bool,
    /// Graceful restart, where it is offered.
    pub graceful_restart: Option<GracefulRestart>,
    /// How long to hold back OPEN on a new connection, so that the neighbour may send its own first (DelayOpenTime of RFC
    /// 4271 section 8.1.1): up to 4 minutes, zero for not at all.
    pub delay_open: Duration,
}

/// Why settings make no sense.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// AS 0, for either end (RFC 7607).
    #[error("AS number 0 is reserved")]
    ZeroAsn,
    /// The BGP Identifier is zero (RFC 6286).
    #[error("the router id is zero")]
    ZeroRouterId,
    /// There is no family to offer.
    #[error("no address family is enabled")]
    NoFamily,
    /// A role towards a neighbour inside our AS (RFC 9234 section 4).
    #[error(
        "role {role} and remote AS {asn} exclude each other: that is our own AS, roles are for external neighbors"
    )]
    RoleInside {
        /// The role.
        role: Role,
        /// The AS that both ends are in.
        asn: Asn,
    },
    /// KEEPALIVEs would come too late to keep the session.
    #[error("the keepalive time ({keepalive} s) exceeds the hold time ({hold} s)")]
    KeepaliveTooLong {
        /// The keepalive time in seconds.
        keepalive: u16,
        /// The hold time in seconds.
        hold: u16,
    },
    /// OPEN would come after the neighbour has given up.
    #[error("delay-open ({} s) must not exceed 240 s, the time that a neighbour waits for OPEN", .0.as_secs())]
    DelayTooLong(Duration),
    /// Without a hold time no KEEPALIVEs are sent.
    #[error(
        "the keepalive time ({0} s) and a hold time of 0 contradict each other: no keepalives are sent then"
    )]
    KeepaliveWithoutHoldTime(u16),
    /// A retry or back-off time is zero, or the shortest back-off exceeds the longest.
    #[error("connect-retry and idle-hold times must not be zero, nor the shortest above the longest")]
    BadBackoff,
}

impl PeerSettings {
    /// Settings with the usual timers: hold 90 s, retry 5 s, back-off 1 to 30 s, active, IPv4 unicast.
    #[must_use]
    pub fn new(local_asn: Asn, remote_asn: RemoteAsn, local_router_id: RouterId) -> Self {
        Self {
            local_asn,
            remote_asn,
            local_router_id,
            families: FamilySet::only(Family::Ipv4Unicast),
            extended_messages: true,
            extended_next_hop: false,
            add_path: AddPath::NONE,
            role: None,
            hold_time: HoldTime::SUGGESTED,
            keepalive: None,
            connect_retry: Duration::from_secs(5),
            idle_hold: IdleHold { min: Duration::from_secs(1), max: Duration::from_secs(30) },
            passive: false,
            graceful_restart: None,
            delay_open: Duration::ZERO,
        }
    }

    /// Checks what the types leave open. A [`Peer`](super::Peer) doesn't check again.
    ///
    /// # Errors
    /// The first thing that makes no sense.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.local_asn == Asn::ZERO || self.remote_asn == RemoteAsn::Is(Asn::ZERO) {
            return Err(SettingsError::ZeroAsn);
        }
        if self.local_router_id == RouterId(0) {
            return Err(SettingsError::ZeroRouterId);
        }
        if self.families.is_empty() {
            return Err(SettingsError::NoFamily);
        }
        if let Some(PeerRole { role, .. }) = self.role
            && self.remote_asn.accepts(self.local_asn, self.local_asn)
        {
            return Err(SettingsError::RoleInside { role, asn: self.local_asn });
        }
        match (self.keepalive.map(NonZeroU16::get), self.hold_time.secs()) {
            (Some(keepalive), 0) => return Err(SettingsError::KeepaliveWithoutHoldTime(keepalive)),
            (Some(keepalive), hold) if keepalive > hold => {
                return Err(SettingsError::KeepaliveTooLong { keepalive, hold });
            }
            (Some(_) | None, _) => {}
        }
        let IdleHold { min, max } = self.idle_hold;
        if self.connect_retry.is_zero() || min.is_zero() || min > max {
            return Err(SettingsError::BadBackoff);
        }
        if self.delay_open > LARGE_HOLD {
            return Err(SettingsError::DelayTooLong(self.delay_open));
        }
        Ok(())
    }

    /// Whether the session would be external with a neighbour of AS `theirs`.
    #[must_use]
    pub fn is_external(&self, theirs: Asn) -> bool {
        theirs != self.local_asn
    }

    /// How often to send KEEPALIVE once `hold` is agreed: zero for never, else at least a second (RFC 4271 section 4.4).
    pub(super) fn keepalive_interval(&self, hold: HoldTime) -> Duration {
        let (agreed, offered) = (u32::from(hold.secs()), u32::from(self.hold_time.secs()));
        let secs = match (agreed, self.keepalive) {
            (0, _) => return Duration::ZERO,
            (_, None) => agreed / 3,
            (_, Some(wish)) => u32::from(wish.get()) * agreed / offered.max(agreed),
        };
        Duration::from_secs(u64::from(secs.max(1)))
    }

    /// What changing to `new` takes.
    pub(super) fn compare(&self, new: &Self) -> Reconfigured {
        let in_capabilities = |graceful: &Option<GracefulRestart>| {
            graceful.map(|graceful| (graceful.restart_time, graceful.long_lived))
        };
        // Every field is named, so that a new one can't be forgotten.
        let Self {
            local_asn,
            remote_asn,
            local_router_id,
            families,
            extended_messages,
            extended_next_hop,
            add_path,
            role,
            hold_time,
            keepalive,
            connect_retry,
            idle_hold,
            passive,
            graceful_restart,
            delay_open,
        } = self;
        let in_open = *local_asn != new.local_asn
            || *remote_asn != new.remote_asn
            || *local_router_id != new.local_router_id
            || *families != new.families
            || *extended_messages != new.extended_messages
            || *extended_next_hop != new.extended_next_hop
            || add_path.offer() != new.add_path.offer()
            || *role != new.role
            || *hold_time != new.hold_time
            || in_capabilities(graceful_restart) != in_capabilities(&new.graceful_restart);
        let live = *keepalive != new.keepalive
            || *connect_retry != new.connect_retry
            || *idle_hold != new.idle_hold
            || *passive != new.passive
            || *add_path != new.add_path
            || *delay_open != new.delay_open
            || *graceful_restart != new.graceful_restart;
        match (in_open, live) {
            (true, _) => Reconfigured::Reset,
            (false, true) => Reconfigured::Live,
            (false, false) => Reconfigured::Unchanged,
        }
    }
}

/// What new settings did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reconfigured {
    /// They are the old ones.
    Unchanged,
    /// They are in force; the session, if any, goes on. Keepalive interval, retry, back-off, passive, delay of OPEN;
    /// what graceful restart has beside its times.
    Live,
    /// What OPEN said or demanded has changed (AS numbers, identifier, families, extended messages and next hops, hold
    /// time, graceful restart and its times): a session or attempt was ended with Cease, Other Configuration Change, and a
    /// new one is under way.
    Reset,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> PeerSettings {
        PeerSettings::new(Asn(65010), RemoteAsn::Is(Asn(65020)), RouterId(0xc000_020a))
    }

    #[test]
    fn hold_times_of_one_and_two_seconds_do_not_exist() {
        let allowed: Vec<u16> = (0..6).filter_map(HoldTime::new).map(HoldTime::secs).collect();
        assert_eq!(allowed, [0, 3, 4, 5]);
    }

    #[test]
    fn keepalive_follows_the_agreed_hold_time() {
        let secs = |wish: u16, agreed: u16| {
            let settings = PeerSettings { keepalive: NonZeroU16::new(wish), ..settings() };
            settings.keepalive_interval(HoldTime(agreed)).as_secs()
        };
        assert_eq!(secs(0, 90), 30, "a third of the hold time");
        assert_eq!(secs(0, 3), 1);
        assert_eq!(secs(0, 0), 0, "no hold time, no KEEPALIVE");
        assert_eq!(secs(60, 0), 0);
        assert_eq!(secs(60, 90), 60, "the wish holds for the offered hold time");
        assert_eq!(secs(60, 30), 20, "and shrinks with it");
        assert_eq!(secs(1, 3), 1, "never more than one a second");
    }

    #[test]
    fn senseless_settings_are_named() {
        let check = |change: fn(&mut PeerSettings)| {
            let mut settings = settings();
            change(&mut settings);
            settings.check()
        };
        assert_eq!(check(|_| ()), Ok(()));
        assert_eq!(check(|s| s.local_asn = Asn(0)), Err(SettingsError::ZeroAsn));
        assert_eq!(check(|s| s.remote_asn = RemoteAsn::Is(Asn(0))), Err(SettingsError::ZeroAsn));
        assert_eq!(check(|s| s.local_router_id = RouterId(0)), Err(SettingsError::ZeroRouterId));
        assert_eq!(check(|s| s.families = FamilySet::EMPTY), Err(SettingsError::NoFamily));
        assert_eq!(
            check(|s| s.keepalive = NonZeroU16::new(91)),
            Err(SettingsError::KeepaliveTooLong { keepalive: 91, hold: 90 })
        );
        let without = |s: &mut PeerSettings| {
            s.hold_time = HoldTime::NONE;
            s.keepalive = NonZeroU16::new(30);
        };
        assert_eq!(check(without), Err(SettingsError::KeepaliveWithoutHoldTime(30)));
        assert_eq!(check(|s| s.connect_retry = Duration::ZERO), Err(SettingsError::BadBackoff));
        assert_eq!(check(|s| s.idle_hold.min = Duration::from_secs(31)), Err(SettingsError::BadBackoff));
        let role = Some(PeerRole::new(Role::Provider));
        assert_eq!(check(|s| s.role = Some(PeerRole::new(Role::Provider))), Ok(()));
        for inside in [RemoteAsn::Internal, RemoteAsn::Is(settings().local_asn)] {
            let settings = PeerSettings { role, remote_asn: inside, ..settings() };
            let asn = settings.local_asn;
            assert_eq!(settings.check(), Err(SettingsError::RoleInside { role: Role::Provider, asn }));
        }
    }

    #[test]
    fn remote_as_can_be_named_or_described() {
        let (ours, other) = (Asn(65010), Asn(65020));
        assert!(RemoteAsn::Is(other).accepts(other, ours) && !RemoteAsn::Is(other).accepts(ours, ours));
        assert!(RemoteAsn::External.accepts(other, ours) && !RemoteAsn::External.accepts(ours, ours));
        assert!(RemoteAsn::Internal.accepts(ours, ours) && !RemoteAsn::Internal.accepts(other, ours));
    }
}
