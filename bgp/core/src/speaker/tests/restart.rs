//! Graceful restart (RFC 4724, 8538) among speakers in memory, in both roles.

use super::*;
use crate::command::{Chain, Clear, StopMode};
use crate::policy::{Act, Flow, PolicyDef, PolicyName, StatementDef};
use crate::session::HoldTime;

const V4: Family = Family::Ipv4Unicast;
const V6: Family = Family::Ipv6Unicast;

/// Everything kept over a restart.
pub(super) const KEPT: GracefulRestart =
    GracefulRestart { forwarding: FamilySet::ALL, ..GracefulRestart::USUAL };
/// Nothing kept.
const LOST: GracefulRestart = GracefulRestart::USUAL;

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// How a process ends.
#[derive(Copy, Clone, PartialEq)]
pub(super) enum End {
    /// The kernel closes its connections.
    Closing,
    /// The machine dies: nobody hears anything.
    Silent,
}

impl World {
    /// Neighbours with graceful restart. The first of a pair connects.
    pub(super) fn graceful(asns: &[u32], pairs: &[(usize, usize)], how: GracefulRestart) -> Self {
        let mut world = Self::new(asns);
        for &(a, b) in pairs {
            world.join_gracefully(a, b, Some(how));
        }
        world.load();
        world.settle();
        world.pass(secs(10));
        world
    }

    pub(super) fn join_gracefully(&mut self, a: usize, b: usize, how: Option<GracefulRestart>) {
        for (node, other, passive) in [(b, a, true), (a, b, false)] {
            let config = PeerConfig { passive, graceful_restart: how, ..self.config(other) };
            self.command(node, Command::PutPeer(key(other), config));
        }
    }

    /// Ends a process and puts a new one in its place, which has no neighbours and routes yet.
    pub(super) fn crash(&mut self, node: usize, how: End) {
        self.settle();
        let conns = std::mem::take(&mut self.nodes[node].conns);
        for conn in conns.values() {
            if let Some(other) = self.nodes[conn.to].conns.get_mut(&conn.remote) {
                other.closed = how == End::Closing;
                other.remote = ConnId::accepted(u64::MAX >> 2);
            }
        }
        let fresh = Node::new(node, self.nodes[node].asn);
        let (asn, router_id) = fresh.speaker.identity();
        let settings = SpeakerSettings::new(InstanceName::new("test"), asn, router_id, 77 + node as u64);
        let accepted = self.nodes[node].accepted;
        let speaker = Speaker::new(SpeakerSettings { restarted: true, ..settings });
        self.nodes[node] = Node { speaker, accepted, ..fresh };
        self.settle();
    }

    /// Makes `node`, which has just begun, a neighbour of `others` again; it connects.
    pub(super) fn rejoin(&mut self, node: usize, others: &[usize], how: GracefulRestart) {
        for &other in others {
            let config = PeerConfig { graceful_restart: Some(how), ..self.config(other) };
            self.command(node, Command::PutPeer(key(other), config));
        }
    }

    pub(super) fn originate_many(&mut self, node: usize, n: std::ops::Range<u32>, mark: u32) {
        for n in n {
            self.originate(node, nth(n), marked(mark));
        }
    }

    /// UPDATEs that `node` has had from `other`.
    pub(super) fn updates(&self, node: usize, other: usize) -> u64 {
        self.peer(node, other).received.update
    }

    pub(super) fn count(&mut self, node: usize, family: Family) -> usize {
        self.best(node, family).len()
    }
}

/// 0 restarts, 1 helps, 2 must not notice.
fn chain(how: GracefulRestart) -> World {
    let mut world = World::graceful(&[65010, 65020, 65030], &[(0, 1), (1, 2)], how);
    world.originate_many(0, 0..300, 1);
    world.originate(0, nlri("2001:db8:1::/48"), marked(1));
    world.settle();
    assert_eq!((world.count(2, V4), world.count(2, V6)), (300, 1));
    world
}

#[test]
fn a_neighbour_that_restarts_loses_nothing_and_what_it_no_longer_says_goes_with_its_end_of_rib() {
    let mut world = chain(KEPT);
    let before = world.updates(2, 1);
    world.crash(0, End::Closing);
    world.pass(secs(60));
    assert_eq!((world.count(2, V4), world.count(2, V6)), (300, 1));
    let status = world.peer(1, 0);
    assert_eq!((status.stale, status.stale_for), (FamilySet::UNICAST, Some(secs(60))));
    assert_eq!(status.families[0].received, 300);
    let stale = |world: &mut World| {
        let routes = world.routes(1, RouteTable::LocRib, V4);
        routes.iter().filter(|route| route.paths[0].stale).count()
    };
    assert_eq!(stale(&mut world), 300);

    world.rejoin(0, &[1], KEPT);
    world.settle();
    assert!(world.is_up(0, 1) && world.peer(1, 0).restart_agreed.unwrap().restarting);
    assert_eq!(world.count(2, V4), 300, "its routes are still to come");
    world.originate_many(0, 0..200, 1);
    world.originate_many(0, 200..210, 2);
    world.settle();
    assert_eq!(stale(&mut world), 90);
    assert_eq!((world.count(2, V4), world.count(2, V6)), (300, 1));
    world.command(0, Command::LoadingDone);
    world.pass(secs(5));
    assert_eq!((world.count(2, V4), world.count(2, V6)), (210, 0));
    assert_eq!((stale(&mut world), world.peer(1, 0).stale), (0, FamilySet::EMPTY));
    assert_eq!(world.peer(1, 0).families[0].received, 210);
    assert!(world.updates(2, 1) - before < 10, "only what is different was said");
}

#[test]
fn a_neighbour_that_stays_away_is_given_up_after_its_restart_time() {
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    world.pass(secs(119));
    assert_eq!(world.count(2, V4), 300);
    world.pass(secs(2));
    assert_eq!((world.count(2, V4), world.count(2, V6)), (0, 0));
    assert_eq!(world.peer(1, 0).families[0].received, 0);
    assert_eq!(world.peer(1, 0).stale, FamilySet::EMPTY);
}

#[test]
fn a_neighbour_that_never_ends_its_rib_is_given_up_after_the_stale_time() {
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    world.rejoin(0, &[1], KEPT);
    world.originate_many(0, 0..20, 1);
    world.pass(secs(359));
    assert_eq!(world.count(2, V4), 300);
    world.pass(secs(2));
    assert_eq!((world.count(2, V4), world.is_up(0, 1)), (20, true));
}

#[test]
fn without_the_forwarding_bit_stale_routes_go_at_once() {
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    let only_v4 = GracefulRestart { forwarding: FamilySet::only(V4), ..KEPT };
    world.rejoin(0, &[1], only_v4);
    world.settle();
    assert_eq!((world.count(2, V4), world.count(2, V6)), (300, 0));
    assert_eq!(world.peer(1, 0).stale, FamilySet::only(V4));
}

#[test]
fn a_family_that_is_not_named_any_more_loses_its_stale_routes_at_once() {
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    let config =
        PeerConfig { graceful_restart: Some(KEPT), families: FamilySet::only(V6), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), config));
    world.settle();
    assert_eq!((world.count(2, V4), world.count(2, V6)), (0, 1));
    // And so does every family of a neighbour that has given up graceful restart.
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    let config = world.config(1);
    world.command(0, Command::PutPeer(key(1), config));
    world.settle();
    assert_eq!((world.count(2, V4), world.count(2, V6)), (0, 0));
}

#[test]
fn what_was_stale_before_a_second_restart_goes_with_it() {
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    world.rejoin(0, &[1], KEPT);
    world.originate_many(0, 0..50, 1);
    world.settle();
    assert_eq!(world.count(2, V4), 300);
    world.crash(0, End::Closing);
    assert_eq!((world.count(2, V4), world.count(2, V6)), (50, 0));
    world.rejoin(0, &[1], KEPT);
    world.settle();
    assert_eq!(world.count(2, V4), 50);
    world.command(0, Command::LoadingDone);
    world.pass(secs(5));
    assert_eq!(world.count(2, V4), 0);
}

#[test]
fn without_graceful_restart_routes_go_with_the_session() {
    for (ours, theirs) in [(None, Some(KEPT)), (Some(KEPT), None), (None, None)] {
        let mut world = World::new(&[65010, 65020]);
        world.join_gracefully(0, 1, ours);
        let config = PeerConfig { passive: true, graceful_restart: theirs, ..world.config(0) };
        world.command(1, Command::PutPeer(key(0), config));
        world.load();
        world.originate_many(0, 0..10, 1);
        world.pass(secs(40));
        assert_eq!(world.count(1, V4), 10);
        world.crash(0, End::Closing);
        assert_eq!(world.count(1, V4), 0, "{ours:?} {theirs:?}");
    }
}

#[test]
fn notifications_keep_routes_but_shutdowns_do_not() {
    let mut world = chain(KEPT);
    let before = world.updates(2, 1);
    // An ordinary Cease, RFC 8538: both ends keep what they have.
    world.originate(1, nlri("198.51.100.0/24"), marked(3));
    world.settle();
    world.command(1, Command::ClearPeer(key(0), Clear::Hard));
    world.settle();
    assert_eq!((world.count(2, V4), world.count(0, V4)), (301, 301));
    world.pass(secs(40));
    assert!(world.is_up(0, 1));
    assert_eq!((world.count(2, V4), world.peer(1, 0).stale), (301, FamilySet::EMPTY));
    assert!(world.updates(2, 1) - before <= 1, "nobody behind it notices");
    // A shutdown goes as Hard Reset: neither end keeps anything.
    world.command(1, Command::DisablePeer(key(0), "maintenance".into()));
    world.settle();
    assert_eq!((world.count(2, V4), world.count(0, V4)), (1, 300));
    let error = world.peer(0, 1).last_error.unwrap();
    assert!(error.contains("Hard Reset"), "{error}");
}

#[test]
fn an_expired_hold_timer_keeps_routes() {
    let mut world = World::new(&[65010, 65020]);
    for (node, other, passive) in [(1, 0, true), (0, 1, false)] {
        let hold_time = HoldTime::new(9).unwrap();
        let config = PeerConfig { passive, hold_time, graceful_restart: Some(KEPT), ..world.config(other) };
        world.command(node, Command::PutPeer(key(other), config));
    }
    world.load();
    world.originate_many(0, 0..10, 1);
    world.pass(secs(20));
    world.crash(0, End::Silent);
    world.pass(secs(20));
    assert_eq!(
        world.peer(1, 0).last_error.unwrap(),
        "sent Hold Timer Expired: no message within the hold time (4/0)"
    );
    assert_eq!((world.count(1, V4), world.peer(1, 0).stale), (10, FamilySet::UNICAST));
}

#[test]
fn administrative_ends_forget_what_is_kept() {
    for end in [
        Command::DeletePeer(key(0)),
        Command::DisablePeer(key(0), String::new()),
        Command::Stop(StopMode::Destroy),
    ] {
        let mut world = chain(KEPT);
        world.crash(0, End::Closing);
        assert_eq!(world.count(1, V4), 300);
        world.command(1, end);
        world.settle();
        assert_eq!(world.count(1, V4), 0);
    }
    // So does a neighbour that shall not be helped any more.
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    let config = PeerConfig { passive: true, ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    world.settle();
    assert_eq!(world.count(1, V4), 0);
}

#[test]
fn policy_runs_again_over_stale_routes_and_leaves_them_stale() {
    let mut world = chain(KEPT);
    world.crash(0, End::Closing);
    let config =
        PeerConfig { passive: true, import: Chain::REJECT, graceful_restart: Some(KEPT), ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config.clone()));
    world.settle();
    assert_eq!((world.count(1, V4), world.count(2, V4)), (0, 0));
    let config = PeerConfig { import: Chain::ACCEPT, ..config };
    world.command(1, Command::PutPeer(key(0), config));
    world.settle();
    assert_eq!((world.count(1, V4), world.count(2, V4)), (300, 300));
    world.pass(secs(121));
    assert_eq!((world.count(1, V4), world.count(2, V4)), (0, 0), "they have not become fresh by it");
}

/// Field fault F17: a new connection from a neighbour whose old session still counts as Established.
#[test]
fn a_restarted_neighbour_replaces_its_dead_connection() {
    let mut world = chain(KEPT);
    let before = world.updates(2, 1);
    let sent = world.nodes[1].sent.len();
    world.crash(0, End::Silent);
    assert!(world.peer(1, 0).state == State::Established);
    world.rejoin(0, &[1], KEPT);
    world.settle();
    assert!(world.is_up(0, 1), "at once, without waiting for the hold timer");
    assert_eq!(world.peer(1, 0).stale, FamilySet::UNICAST);
    assert_eq!((world.count(1, V4), world.count(2, V4), world.updates(2, 1)), (300, 300, before));
    assert!(world.peer(1, 0).last_error.unwrap().contains("restarted"));
    // Not one NOTIFICATION.
    let mut rest = &world.nodes[1].sent[sent..];
    while let Ok(Some(frame)) = bgp_wire::split_message(rest, 4096) {
        assert_ne!(frame.kind, bgp_wire::MessageType::Notification);
        rest = &rest[frame.raw.len()..];
    }
    world.originate_many(0, 0..300, 1);
    world.command(0, Command::LoadingDone);
    world.pass(secs(5));
    assert_eq!((world.count(2, V4), world.count(2, V6)), (300, 0));
}

/// Field fault F15: a node restarts while another one is dead.
#[test]
fn a_restart_does_not_wait_for_the_dead() {
    let mut world = World::graceful(&[65010, 65020, 65030, 65040], &[(0, 1), (0, 2), (0, 3)], KEPT);
    world.originate(1, nth(1), marked(1));
    world.originate(2, nth(2), marked(2));
    world.pass(secs(1));
    world.crash(0, End::Closing);
    world.cut(0, 3, true);
    let reader = world.nodes[0].speaker.subscribe(FamilySet::UNICAST);
    world.originate(0, nth(0), marked(9));
    world.rejoin(0, &[1, 2, 3], KEPT);
    world.command(0, Command::LoadingDone);
    world.settle();
    assert!(world.is_up(0, 1) && world.is_up(0, 2));
    assert_eq!(world.count(1, V4), 3, "own routes are told at once, and stale ones kept");
    assert!(!world.peer(0, 1).families[0].end_of_rib_sent);
    assert_eq!(world.events(0, reader), [RibEvent::Resync], "forwarding goes on as it was");
    world.pass(secs(4));
    assert_eq!((world.heard(1, 0, V4).len(), world.heard(2, 0, V4).len()), (2, 2));
    assert!(world.peer(0, 1).families.iter().all(|family| family.end_of_rib_sent));
    assert_eq!(world.peer(1, 0).stale, FamilySet::EMPTY);
    let events = world.events(0, reader);
    assert_eq!(events.iter().filter(|event| matches!(event, RibEvent::Change(_))).count(), 3);
    assert_eq!(events.iter().filter(|event| matches!(event, RibEvent::Converged(_))).count(), 2);
}

/// Field fault F16: silence towards neighbours without graceful restart, or for a family never agreed on.
#[test]
fn a_restart_waits_only_for_what_was_agreed() {
    let mut world = World::new(&[65010, 65020, 65030]);
    for (other, how, families) in [(1, Some(KEPT), FamilySet::only(V4)), (2, None, FamilySet::UNICAST)] {
        let config = PeerConfig { passive: true, graceful_restart: how, families, ..world.config(0) };
        world.command(other, Command::PutPeer(key(0), config));
    }
    world.crash(0, End::Closing);
    world.originate(1, nth(1), marked(1));
    world.originate(1, nth(2), marked(1));
    world.originate(0, nth(0), marked(9));
    world.rejoin(0, &[1, 2], KEPT);
    world.command(0, Command::LoadingDone);
    world.settle();
    assert_eq!((world.heard(1, 0, V4).len(), world.heard(2, 0, V4).len()), (1, 1), "own routes");
    assert!(!world.peer(0, 1).families[0].end_of_rib_sent);
    // 1 tells its End-of-RIB, 2 never does.
    world.command(1, Command::LoadingDone);
    world.settle();
    assert_eq!((world.heard(1, 0, V4).len(), world.heard(2, 0, V4).len()), (1, 3));
    assert!(world.peer(0, 1).families[0].end_of_rib_sent && world.peer(0, 2).families[0].end_of_rib_sent);
}

#[test]
fn a_restart_is_over_at_the_deadline_in_any_case() {
    let mut world = World::graceful(&[65010, 65020, 65030], &[(0, 1), (0, 2)], KEPT);
    world.crash(1, End::Closing);
    world.crash(0, End::Closing);
    // 1 is up and has not restarted as far as anybody knows, but never ends its RIB.
    let asn = world.nodes[1].asn;
    world.nodes[1] = Node { accepted: world.nodes[1].accepted, ..Node::new(1, asn) };
    let config = PeerConfig { passive: true, graceful_restart: Some(KEPT), ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    world.originate(1, nth(1), marked(1));
    world.rejoin(0, &[1, 2], KEPT);
    world.command(0, Command::LoadingDone);
    world.pass(secs(29));
    assert!(world.is_up(0, 1) && world.heard(2, 0, V4).is_empty());
    world.pass(secs(2));
    assert_eq!(world.heard(2, 0, V4).len(), 1);
}

#[test]
fn two_that_restart_do_not_wait_for_one_another() {
    let mut world = World::graceful(&[65010, 65020, 65030], &[(0, 1), (1, 2)], KEPT);
    world.crash(0, End::Closing);
    world.crash(1, End::Closing);
    world.rejoin(0, &[1], KEPT);
    world.rejoin(1, &[0, 2], KEPT);
    world.originate(0, nth(0), marked(1));
    world.load();
    world.settle();
    assert!(world.is_up(0, 1) && world.is_up(1, 2));
    assert_eq!(world.count(2, V4), 1, "well before any timer");
}

#[test]
fn the_restart_bit_and_the_forwarding_bit_are_said_once() {
    let mut world = World::graceful(&[65010, 65020], &[(0, 1)], LOST);
    world.crash(0, End::Closing);
    world.rejoin(0, &[1], LOST);
    world.command(0, Command::LoadingDone);
    world.settle();
    let agreed = world.peer(1, 0).restart_agreed.unwrap();
    assert!(agreed.restarting && agreed.forwarding.is_empty());
    assert_eq!((agreed.families, agreed.time, agreed.notification), (FamilySet::UNICAST, 120, true));
    // In the next session nothing has restarted.
    world.cut(0, 1, true);
    world.cut(0, 1, false);
    world.pass(secs(10));
    let agreed = world.peer(1, 0).restart_agreed.unwrap();
    assert!(!agreed.restarting && agreed.forwarding == FamilySet::UNICAST);
    // Nor later than the restart time.
    world.crash(0, End::Closing);
    world.command(0, Command::LoadingDone);
    world.pass(secs(121));
    world.rejoin(0, &[1], LOST);
    world.pass(secs(1));
    assert!(world.is_up(0, 1) && !world.peer(1, 0).restart_agreed.unwrap().restarting);
}

#[test]
fn a_policy_that_changes_during_the_restart_counts_after_it() {
    let mut world = World::graceful(&[65010, 65020, 65030], &[(0, 1), (0, 2)], KEPT);
    world.originate(1, nth(1), marked(1));
    world.pass(secs(1));
    world.crash(0, End::Closing);
    let name = PolicyName::new("med");
    let policy = |med| {
        let statement =
            StatementDef { label: None, when: vec![], apply: vec![Act::SetMed(med)], then: Flow::Accept };
        PolicyDef { statements: vec![statement], default: crate::policy::Default::Reject }
    };
    world.command(0, Command::PutPolicy(name.clone(), policy(5)));
    for other in [1, 2] {
        let config = PeerConfig {
            graceful_restart: Some(KEPT),
            export: Chain::named(name.clone()),
            ..world.config(other)
        };
        world.command(0, Command::PutPeer(key(other), config));
    }
    world.originate(0, nth(0), marked(9));
    world.settle();
    world.command(0, Command::PutPolicy(name, policy(6)));
    world.settle();
    let meds = |world: &mut World| -> Vec<_> {
        let routes = world.routes(2, RouteTable::AdjRibIn(key(0)), V4);
        routes.iter().map(|route| Canonical(route.paths[0].attrs.canonical()).med()).collect()
    };
    world.command(0, Command::LoadingDone);
    world.pass(secs(4));
    assert_eq!(meds(&mut world), [Some(6), Some(6)]);
}

#[test]
fn sessions_end_as_they_are_told_to() {
    let stop = |how: StopMode, graceful: Option<GracefulRestart>| {
        let mut world = World::new(&[65010, 65020]);
        world.join_gracefully(0, 1, graceful);
        world.load();
        world.originate_many(0, 0..10, 1);
        world.pass(secs(10));
        assert_eq!(world.count(1, V4), 10);
        assert_eq!(world.command(0, Command::Stop(how.clone())), Applied::SessionReset);
        assert_eq!(world.command(0, Command::Stop(how)), Applied::Unchanged);
        world.settle();
        (world.count(1, V4), world.peer(1, 0).last_error.unwrap())
    };
    let graceful = StopMode::Graceful("upgrade".into());
    assert_eq!(stop(graceful.clone(), Some(LOST)), (10, "the neighbour closed the connection".into()));
    let (left, error) = stop(graceful, None);
    assert!(left == 0 && error.contains("Administrative Shutdown") && error.contains("upgrade"), "{error}");
    for how in [Some(LOST), None] {
        let (left, error) = stop(StopMode::Notify("bye".into()), how);
        assert!(left == 0 && error.contains(if how.is_some() { "6/9" } else { "6/2" }), "{error}");
        let (left, error) = stop(StopMode::Destroy, how);
        assert!(left == 0 && error.contains(if how.is_some() { "6/9" } else { "6/3" }), "{error}");
    }
    let mut world = World::new(&[65010]);
    let long = Command::Stop(StopMode::Notify("x".repeat(256)));
    assert_eq!(world.try_command(0, long), Err(crate::command::Refusal::TextTooLong(256)));
}

#[test]
fn restart_settings_cost_a_session_only_where_it_must() {
    let mut world = World::graceful(&[65010, 65020], &[(0, 1)], LOST);
    let put = |world: &mut World, how| {
        let config = PeerConfig { graceful_restart: how, ..world.config(1) };
        world.command(0, Command::PutPeer(key(1), config))
    };
    assert_eq!(put(&mut world, Some(LOST)), Applied::Unchanged);
    assert_eq!(put(&mut world, Some(KEPT)), Applied::Applied);
    assert_eq!(put(&mut world, Some(GracefulRestart { stale_time: secs(9), ..KEPT })), Applied::Applied);
    assert_eq!(put(&mut world, None), Applied::SessionReset);
}

/// RFC 8326.
#[test]
fn graceful_shutdown_makes_an_external_route_the_last_resort() {
    const GRACEFUL_SHUTDOWN: u32 = 0xffff_0000;
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 2), (1, 2)]);
    world.originate(0, nth(0), marked(1));
    world.originate(1, nth(0), marked(2));
    world.settle();
    let best = |world: &mut World| world.best(2, V4)[&nth(0)].0;
    assert_eq!(best(&mut world), 1);
    world.originate(0, nth(0), marked(GRACEFUL_SHUTDOWN));
    world.settle();
    assert_eq!(best(&mut world), 2);
    world.command(1, Command::DeleteOrigination(nth(0)));
    world.settle();
    assert_eq!(best(&mut world), GRACEFUL_SHUTDOWN);
    let routes = world.routes(2, RouteTable::LocRib, V4);
    assert_eq!(Canonical(routes[0].paths[0].attrs.canonical()).local_pref(), Some(0));
}
