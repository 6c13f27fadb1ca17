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
        families: FamilySet::ALL,
        forwarding: FamilySet::ALL,
        own_families: FamilySet::ALL,
    }
}

fn both() -> Kept {
    Kept { families: FamilySet::ALL, time: Duration::from_secs(120) }
}

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
        let is_kept = |notification| kept(&agreed(notification), &reason) == both();
        assert_eq!((is_kept(false), is_kept(true)), (plain, with_n_bit), "{reason:?}");
    }
    let closed = DownReason::Closed(CloseReason::EndOfStream);
    assert_eq!(kept(&AgreedRestart { time: 0, ..agreed(true) }, &closed), Kept::NOTHING);
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
    helper.down(Instant::from_secs(0), both());
    assert_eq!(helper.deadline(), Some(Instant::from_secs(120)));
    assert!(!helper.end_of_rib(V4), "it is away");
    let up = helper.up(Instant::from_secs(100), Some(&agreed(true)), Duration::from_secs(360));
    assert_eq!((up, helper.families()), (FamilySet::EMPTY, FamilySet::ALL));
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
        helper.down(Instant::ZERO, both());
        assert_eq!(helper.expire(Instant::from_secs(119)), FamilySet::EMPTY);
        assert_eq!(helper.expire(end), FamilySet::ALL);
        assert_eq!((helper.expire(end), helper.deadline()), (FamilySet::EMPTY, None));
    }
    let mut helper = Helper::default();
    helper.down(Instant::ZERO, both());
    assert_eq!(helper.give_up(), FamilySet::ALL);
    assert_eq!(helper.give_up(), FamilySet::EMPTY);
}

#[test]
fn who_comes_back_must_have_kept_its_forwarding_state() {
    let back = |agreed: Option<AgreedRestart>| {
        let mut helper = Helper::default();
        helper.down(Instant::ZERO, both());
        (helper.up(Instant::ZERO, agreed.as_ref(), Duration::from_secs(1)), helper.families())
    };
    let (v4, none, all) = (FamilySet::only(V4), FamilySet::EMPTY, FamilySet::ALL);
    assert_eq!(back(None), (all, none));
    assert_eq!(back(Some(AgreedRestart { forwarding: none, ..agreed(true) })), (all, none));
    assert_eq!(back(Some(AgreedRestart { forwarding: v4, ..agreed(true) })), (FamilySet::only(V6), v4));
    let one = AgreedRestart { families: v4, forwarding: v4, ..agreed(true) };
    assert_eq!(back(Some(one)), (FamilySet::only(V6), v4));
}
