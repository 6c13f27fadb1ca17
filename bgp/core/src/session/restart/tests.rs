#![allow(clippy::unwrap_used)]

use super::*;
use bgp_wire::notification::Reason;

const V4: Family = Family::Ipv4Unicast;
const V6: Family = Family::Ipv6Unicast;

fn agreed(notification: bool) -> AgreedRestart {
    AgreedRestart {
        restarting: false,
        notification,
        time: 120,
        families: FamilySet::UNICAST,
        forwarding: FamilySet::UNICAST,
        own_families: FamilySet::UNICAST,
    }
}

const DAY: StaleTime = StaleTime::new(86_400).unwrap();
const HOUR: StaleTime = StaleTime::new(3600).unwrap();

/// Both families, for two minutes.
fn both() -> Kept {
    Kept { families: FamilySet::UNICAST, time: Duration::from_secs(120), long_lived: LongLived::NONE }
}

/// The same, and for an hour beyond that.
fn long() -> Kept {
    Kept { long_lived: LongLived::of(FamilySet::UNICAST, HOUR), ..both() }
}

/// What two OPENs say that name these families, with F bits in `forwarding`.
fn agreed_long_lived(families: FamilySet, forwarding: FamilySet) -> AgreedLongLived {
    use bgp_wire::{Asn, Negotiated, Open, RouterId};
    let open = |forwarding| {
        let named = |family: Family| LongLivedFamily {
            afi: family.afi(),
            safi: family.safi(),
            forwarding: FamilySet::contains(forwarding, family),
            stale_time: 86_400,
        };
        let mut capabilities: Vec<_> = Family::ALL.into_iter().map(Capability::family).collect();
        capabilities.push(Capability::GracefulRestart(capability::GracefulRestart::default()));
        capabilities.push(Capability::LongLivedGracefulRestart(families.iter().map(named).collect()));
        Open::new(Asn(65010), 90, RouterId(1), capabilities)
    };
    Negotiated::agree(&open(FamilySet::EMPTY), &open(forwarding)).long_lived.unwrap()
}

fn terms(notification: bool) -> Terms {
    Terms { restart: agreed(notification), long_lived: None, longest: LongLived::NONE }
}

fn at(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

use crate::time::Instant;

#[test]
fn a_restart_time_has_twelve_bits() {
    assert_eq!(RestartTime::new(4095), Some(RestartTime::MAX));
    assert_eq!(RestartTime::new(4096), None);
    assert_eq!(RestartTime::USUAL.duration(), Duration::from_secs(120));
}

/// RFC 4724 section 4.2, RFC 8538 section 4.
#[test]
fn what_ends_a_session_decides_what_is_kept() {
    let received = |reason| DownReason::Received(Notification::new(reason));
    let stopped = DownReason::Stopped;
    let fault = bgp_wire::WireError::new(bgp_wire::Fault::UpdateLengths, &[]);
    for (reason, plain, with_n_bit) in [
        (DownReason::Closed(CloseReason::EndOfStream), true, true),
        (DownReason::Closed(CloseReason::Error(std::io::ErrorKind::ConnectionReset)), true, true),
        (DownReason::Replaced, true, true),
        (received(Reason::AdministrativeReset), false, true),
        (received(Reason::HoldTimerExpired), false, true),
        (received(Reason::HardReset), false, false),
        (DownReason::HoldTimerExpired, false, true),
        (DownReason::Closed(CloseReason::SendHoldTimerExpired), false, true),
        (DownReason::Malformed(fault), false, true),
        (DownReason::Unexpected(Notification::new(Reason::UnexpectedInEstablished)), false, true),
        (stopped(StopReason::Reset("".into())), false, true),
        (stopped(StopReason::ConfigurationChange), false, true),
        (stopped(StopReason::Shutdown("".into())), false, false),
        (stopped(StopReason::Deconfigured), false, false),
        (stopped(StopReason::Restart("".into())), false, false),
    ] {
        let is_kept = |notification| kept(&terms(notification), &reason) == both();
        assert_eq!((is_kept(false), is_kept(true)), (plain, with_n_bit), "{reason:?}");
    }
    let closed = DownReason::Closed(CloseReason::EndOfStream);
    let none = Terms { restart: AgreedRestart { time: 0, ..agreed(true) }, ..terms(true) };
    assert!(Helper::default().down(Instant::ZERO, kept(&none, &closed)).kept.is_empty());
}

/// RFC 8538 section 3.
#[test]
fn a_hard_reset_holds_the_notification_that_it_stands_for() {
    let inner = Notification::with_text(Reason::AdministrativeShutdown, "bye");
    let outer = hard_reset(&inner);
    assert_eq!((outer.code, outer.subcode, &*outer.data), (6, 9, &b"\x06\x02\x03bye"[..]));
}

#[test]
fn stale_routes_end_with_end_of_rib() {
    let mut helper = Helper::default();
    assert_eq!((helper.deadline(), helper.end_of_rib(V4)), (None, false));
    let lost = helper.down(Instant::from_secs(0), both());
    assert_eq!(lost, Lost { kept: FamilySet::UNICAST, held: FamilySet::EMPTY });
    assert_eq!(helper.deadline(), Some(Instant::from_secs(120)));
    assert!(!helper.end_of_rib(V4), "it is away");
    let up = helper.up(Instant::from_secs(100), Some(&agreed(true)), None, Duration::from_secs(360));
    assert_eq!((up, helper.families()), (FamilySet::EMPTY, FamilySet::UNICAST));
    assert_eq!(helper.deadline(), Some(Instant::from_secs(460)));
    assert!(helper.end_of_rib(V4) && !helper.end_of_rib(V4));
    assert_eq!(helper.families(), FamilySet::only(V6));
    assert!(helper.end_of_rib(V6));
    assert_eq!(helper.deadline(), None);
}

#[test]
fn stale_routes_end_with_the_time_and_when_given_up() {
    for end in [Instant::from_secs(120), Instant::NEVER] {
        let mut helper = Helper::default();
        let _ = helper.down(Instant::ZERO, both());
        assert_eq!(helper.expire(Instant::from_secs(119)), Expired::default());
        assert_eq!(helper.expire(end), Expired { gone: FamilySet::UNICAST, ..Expired::default() });
        assert_eq!((helper.expire(end), helper.deadline()), (Expired::default(), None));
    }
    let mut helper = Helper::default();
    let _ = helper.down(Instant::ZERO, both());
    assert_eq!(helper.give_up(), FamilySet::UNICAST);
    assert_eq!(helper.give_up(), FamilySet::EMPTY);
}

#[test]
fn who_comes_back_must_have_kept_its_forwarding_state() {
    let back = |agreed: Option<AgreedRestart>| {
        let mut helper = Helper::default();
        let _ = helper.down(Instant::ZERO, both());
        (helper.up(Instant::ZERO, agreed.as_ref(), None, Duration::from_secs(1)), helper.families())
    };
    let (v4, none, all) = (FamilySet::only(V4), FamilySet::EMPTY, FamilySet::UNICAST);
    assert_eq!(back(None), (all, none));
    assert_eq!(back(Some(AgreedRestart { forwarding: none, ..agreed(true) })), (all, none));
    assert_eq!(back(Some(AgreedRestart { forwarding: v4, ..agreed(true) })), (FamilySet::only(V6), v4));
    let one = AgreedRestart { families: v4, forwarding: v4, ..agreed(true) };
    assert_eq!(back(Some(one)), (FamilySet::only(V6), v4));
}

#[test]
fn a_stale_time_has_twenty_four_bits() {
    assert_eq!(StaleTime::new(0xff_ffff), Some(StaleTime::MAX));
    assert_eq!(StaleTime::new(1 << 24), None);
}

/// RFC 9494 sections 3.1, 4.1 and 5: only with the other capability, family by family, with the same F bits.
#[test]
fn what_an_open_says() {
    let v6 = FamilySet::only(V6);
    let graceful = GracefulRestart { long_lived: LongLived::of(v6, HOUR), ..GracefulRestart::USUAL };
    for (first, forwarding) in [(true, false), (false, true)] {
        let offered = graceful.capabilities(FamilySet::UNICAST, first, first);
        let [Capability::GracefulRestart(restart), Capability::LongLivedGracefulRestart(long_lived)] =
            &offered[..]
        else {
            panic!("{offered:?}");
        };
        assert!(restart.families.iter().all(|family| family.forwarding == forwarding));
        assert_eq!(long_lived[..], [LongLivedFamily { afi: 2, safi: 1, forwarding, stale_time: 3600 }]);
    }
    assert_eq!(graceful.capabilities(FamilySet::only(V4), false, false).len(), 1);
    assert_eq!(GracefulRestart::USUAL.capabilities(FamilySet::UNICAST, false, false).len(), 1);
}

/// RFC 9494 section 4.2: the time that the neighbour asks for, reduced by local configuration.
#[test]
fn nothing_is_kept_for_longer_than_we_like() {
    let agreed = agreed_long_lived(FamilySet::UNICAST, FamilySet::UNICAST);
    let kept_with = |longest| {
        let terms = Terms { long_lived: Some(agreed), longest, ..terms(true) };
        kept(&terms, &DownReason::HoldTimerExpired).long_lived
    };
    let ours = LongLived::of(FamilySet::only(V4), HOUR);
    assert_eq!(kept_with(ours), ours);
    assert_eq!(
        kept_with(LongLived::of(FamilySet::UNICAST, StaleTime::MAX)),
        LongLived::of(FamilySet::UNICAST, DAY)
    );
    let hard = DownReason::Received(Notification::new(Reason::HardReset));
    let terms = Terms { long_lived: Some(agreed), longest: ours, ..terms(true) };
    assert_eq!(kept(&terms, &hard), Kept::NOTHING, "RFC 8538 section 3");
    let without = Terms { restart: AgreedRestart { notification: false, ..terms.restart }, ..terms };
    assert_eq!(kept(&without, &DownReason::HoldTimerExpired), Kept::NOTHING, "no N bit");
}

/// RFC 9494 section 4.2: "serially: first those of GR and then those of LLGR".
#[test]
fn the_restart_time_comes_first_and_the_stale_time_behind_it() {
    let mut helper = Helper::default();
    let lost = helper.down(at(0), long());
    assert_eq!(lost, Lost { kept: FamilySet::UNICAST, held: FamilySet::UNICAST });
    assert_eq!((helper.deadline(), helper.until()), (Some(at(120)), Some(at(3720))));
    assert_eq!(helper.expire(at(119)), Expired::default());
    assert_eq!(helper.expire(at(120)), Expired { long_lived: FamilySet::UNICAST, ..Expired::default() });
    assert_eq!((helper.long_lived(), helper.families()), (FamilySet::UNICAST, FamilySet::UNICAST));
    assert_eq!((helper.expire(at(121)), helper.deadline()), (Expired::default(), Some(at(3720))));
    assert_eq!(helper.expire(at(3720)), Expired { gone: FamilySet::UNICAST, ..Expired::default() });
    assert_eq!((helper.deadline(), helper.families()), (None, FamilySet::EMPTY));
}

/// RFC 9494 sections 4.1 and 4.2: a restart time of zero, or a family that only the one capability names.
#[test]
fn each_family_has_its_own_times() {
    let mut helper = Helper::default();
    let kept = Kept {
        families: FamilySet::only(V6),
        time: Duration::from_secs(120),
        long_lived: LongLived::of(FamilySet::only(V4), HOUR),
    };
    let lost = helper.down(at(0), kept);
    assert_eq!(lost, Lost { kept: FamilySet::UNICAST, held: FamilySet::only(V4) });
    let expired = helper.expire(at(0));
    assert_eq!(expired, Expired { long_lived: FamilySet::only(V4), ..Expired::default() });
    let expired = helper.expire(at(120));
    assert_eq!(expired, Expired { gone: FamilySet::only(V6), ..Expired::default() });
    assert_eq!(helper.expire(at(3600)).gone, FamilySet::only(V4));
    let lost = helper.down(at(0), Kept { families: FamilySet::EMPTY, ..long() });
    assert_eq!(lost.kept, FamilySet::UNICAST);
    assert_eq!(helper.expire(at(0)).long_lived, FamilySet::UNICAST);
}

/// RFC 9494 section 4.2: what is removed at once when the session is back; section 5 for the other F bit.
#[test]
fn who_comes_back_late_must_have_kept_its_state_too() {
    let (v4, all, none) = (FamilySet::only(V4), FamilySet::UNICAST, FamilySet::EMPTY);
    let back = |agreed: Option<AgreedRestart>, long_lived: Option<AgreedLongLived>| {
        let mut helper = Helper::default();
        let _ = helper.down(at(0), long());
        let _ = helper.expire(at(120));
        (
            helper.up(at(200), agreed.as_ref(), long_lived.as_ref(), Duration::from_secs(360)),
            helper.families(),
        )
    };
    let agree = agreed_long_lived;
    assert_eq!(back(Some(agreed(true)), Some(agree(all, all))), (none, all));
    assert_eq!(back(Some(agreed(true)), Some(agree(all, v4))), (FamilySet::only(V6), v4), "no F bit");
    assert_eq!(back(Some(agreed(true)), Some(agree(v4, v4))), (FamilySet::only(V6), v4), "not included");
    assert_eq!(back(Some(agreed(true)), None), (all, none), "not received at all");
    assert_eq!(back(None, Some(agree(all, all))), (all, none), "without its companion");
    let skipped = AgreedRestart { families: none, forwarding: none, ..agreed(true) };
    assert_eq!(back(Some(skipped), Some(agree(all, all))), (none, all), "graceful restart is skipped");
    let clear = AgreedRestart { forwarding: none, ..agreed(true) };
    assert_eq!(back(Some(clear), Some(agree(all, all))), (all, none), "the F bit of graceful restart");
}

/// RFC 9494 section 4.2: "the timer continues to run once the session has re-established".
#[test]
fn the_stale_time_goes_on_until_end_of_rib() {
    let all = FamilySet::UNICAST;
    let mut helper = Helper::default();
    let _ = helper.down(at(0), long());
    let _ = helper.expire(at(120));
    let agreed_long_lived = agreed_long_lived(all, all);
    let up = |helper: &mut Helper, now| {
        helper.up(now, Some(&agreed(true)), Some(&agreed_long_lived), Duration::from_secs(360))
    };
    assert_eq!(up(&mut helper, at(3600)), FamilySet::EMPTY);
    assert_eq!(helper.deadline(), Some(at(3720)), "before the wait for End-of-RIB is over");
    assert!(helper.end_of_rib(V6));
    assert_eq!(helper.expire(at(3720)).gone, FamilySet::only(V4));
    assert_eq!(helper.families(), FamilySet::EMPTY);
    // "If the session subsequently resets prior to becoming synchronized, any remaining routes MUST be removed".
    let mut other = helper;
    assert_eq!(other.down(at(3730), long()).kept, FamilySet::only(V6));
    // But once it has said everything it is a neighbour like any other.
    assert!(!helper.end_of_rib(V4), "what was stale has gone");
    assert_eq!(helper.down(at(3730), long()).kept, all);
    // So it is after the wait for its End-of-RIB.
    let mut helper = Helper::default();
    let _ = helper.down(at(0), Kept { families: FamilySet::EMPTY, ..long() });
    let _ = helper.expire(at(0));
    assert_eq!(up(&mut helper, at(3500)), FamilySet::EMPTY);
    assert_eq!(helper.expire(at(3600)).gone, all);
    assert_eq!(helper.deadline(), Some(at(3860)));
    assert_eq!(helper.expire(at(3860)), Expired::default());
    assert_eq!((helper.down(at(3861), long()).kept, helper.until()), (all, Some(at(3861 + 3720))));
}

/// RFC 9494 section 4.2: consecutive restarts remove nothing, and do not move the timer that runs.
#[test]
fn a_second_loss_leaves_the_running_timer_alone() {
    let all = FamilySet::UNICAST;
    let agreed_long_lived = agreed_long_lived(all, all);
    let mut helper = Helper::default();
    let _ = helper.down(at(0), long());
    let _ = helper.expire(at(120));
    let _ = helper.up(at(1000), Some(&agreed(true)), Some(&agreed_long_lived), Duration::from_secs(360));
    assert_eq!(helper.down(at(1010), long()), Lost { kept: all, held: all });
    assert_eq!(helper.long_lived(), all, "what was so before");
    assert_eq!(helper.expire(at(1130)).long_lived, all, "now all of it");
    assert_eq!(helper.until(), Some(at(3720)));
    assert_eq!(helper.expire(at(3720)).gone, all);
    // Within the restart time no such timer runs yet.
    let mut helper = Helper::default();
    let _ = helper.down(at(0), long());
    let _ = helper.up(at(100), Some(&agreed(true)), Some(&agreed_long_lived), Duration::from_secs(360));
    assert_eq!(helper.expire(at(120)), Expired::default(), "it is back");
    assert_eq!(helper.down(at(130), long()), Lost { kept: all, held: all });
    assert_eq!(helper.until(), Some(at(130 + 3720)));
}
