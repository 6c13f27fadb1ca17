//! What operators ask: clear, stop, start, leave gently.

use super::restart::secs;
use super::*;
use crate::command::{Chain, Clear, Refusal};
use crate::policy::{Act, Flow, PolicyDef, PolicyName, StatementDef};
use bgp_wire::attr::Community;

const V4: Family = Family::Ipv4Unicast;
const GRACEFUL_SHUTDOWN: u32 = 0xffff_0000;

/// The communities and LOCAL_PREF of a route that `node` has heard from `other`.
fn attributes(world: &mut World, node: usize, other: usize, prefix: Nlri) -> (Vec<u32>, Option<u32>) {
    let routes = world.routes(node, RouteTable::AdjRibIn(key(other)), V4);
    let route = routes.into_iter().find(|route| route.nlri == prefix).unwrap();
    let set = Canonical(route.paths[0].attrs.canonical());
    (set.communities().map(|community| community.0).collect(), set.local_pref())
}

#[test]
fn a_soft_clear_in_asks_the_neighbour_and_looks_again_at_what_is_kept() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.originate(1, nth(1), marked(1));
    world.settle();
    let before = (world.peer(0, 1).sent.route_refresh, world.peer(0, 1).received.update);
    assert_eq!(world.command(0, Command::ClearPeer(key(1), Clear::SoftIn)), Applied::Applied);
    world.settle();
    let status = world.peer(0, 1);
    assert_eq!(status.sent.route_refresh, before.0 + 2, "one for each family");
    assert_eq!(status.received.update, before.1 + 1, "it has said it again");
    assert_eq!(status.received.route_refresh, 4, "between markers, RFC 7313");
    assert_eq!((status.families[0].received, status.families[0].accepted), (1, 1));
    assert!(world.is_up(0, 1));
}

#[test]
fn a_soft_clear_without_a_session_changes_nothing() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    world.cut(0, 1, true);
    world.settle();
    for how in [Clear::SoftIn, Clear::SoftOut] {
        assert_eq!(world.command(0, Command::ClearPeer(key(1), how)), Applied::Unchanged);
    }
}

#[test]
fn a_disabled_peer_says_why_and_stays_so_whatever_its_configuration_becomes() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let text = "Wartung bis 22 Uhr: größerer Umbau";
    assert_eq!(world.command(0, Command::DisablePeer(key(1), text.into())), Applied::SessionReset);
    world.settle();
    let status = world.peer(0, 1);
    assert_eq!((status.state, status.disabled, &*status.shutdown_text), (State::Idle, true, text));
    let error = world.peer(1, 0).last_error.unwrap();
    assert!(
        error.contains("Administrative Shutdown") && error.contains(text) && error.contains("6/2"),
        "{error}"
    );
    let config = PeerConfig { description: "another".into(), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), config.clone()));
    let config = PeerConfig { hold_time: crate::session::HoldTime::new(30).unwrap(), ..config };
    world.command(0, Command::PutPeer(key(1), config));
    world.pass(secs(600));
    assert!(world.peer(0, 1).disabled && !world.is_up(0, 1));
    // Another text replaces it, and that is all.
    assert_eq!(world.command(0, Command::DisablePeer(key(1), "longer".into())), Applied::Applied);
    assert_eq!(world.peer(0, 1).shutdown_text, "longer");
    for refused in [Command::ClearPeer(key(1), Clear::Hard), Command::GracefulShutdown(key(1))] {
        assert_eq!(world.try_command(0, refused), Err(Refusal::Disabled(key(1))));
    }
    assert_eq!(world.command(0, Command::EnablePeer(key(1))), Applied::Applied);
    world.settle();
    assert!(world.is_up(0, 1), "at once");
    assert_eq!((world.peer(0, 1).disabled, &*world.peer(0, 1).shutdown_text), (false, ""));
}

/// RFC 9003 section 2: at most 255 octets of UTF-8.
#[test]
fn texts_are_counted_in_octets() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    let refusal = world.try_command(0, Command::DisablePeer(key(1), "ö".repeat(128))).unwrap_err();
    assert_eq!(refusal.to_string(), "the text has 256 octets; at most 255 fit");
    assert!(world.is_up(0, 1));
    world.command(0, Command::DisablePeer(key(1), "ö".repeat(127) + "x"));
    world.settle();
    assert!(world.peer(1, 0).last_error.unwrap().contains(&"ö".repeat(127)));
}

#[test]
fn enabling_ends_every_wait() {
    let mut world = World::joined(&[65010, 65020], &[(0, 1)]);
    // Waiting for the next attempt to connect.
    world.cut(0, 1, true);
    world.pass(secs(120));
    world.cut(0, 1, false);
    assert_eq!(world.peer(0, 1).state, State::Active);
    assert_eq!(world.command(0, Command::EnablePeer(key(1))), Applied::Applied);
    world.settle();
    assert!(world.is_up(0, 1));
    assert_eq!(world.command(0, Command::EnablePeer(key(1))), Applied::Unchanged);
    // Staying away after a disagreement.
    let config = PeerConfig { remote_asn: RemoteAsn::Is(Asn(65099)), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), config));
    world.pass(secs(20));
    assert_eq!(world.peer(0, 1).state, State::Idle);
    let config = PeerConfig { passive: true, remote_asn: RemoteAsn::External, ..world.config(0) };
    world.command(1, Command::PutPeer(key(0), config));
    assert_eq!(world.command(0, Command::EnablePeer(key(1))), Applied::Applied);
    assert_ne!(world.peer(0, 1).state, State::Idle);
}

/// RFC 8326 section 4.2: both directions, both kinds of neighbours, and back again.
#[test]
fn a_neighbour_that_is_to_be_left_is_the_last_resort_at_both_ends() {
    // 0 and 1 are in one AS, 2 is outside: it knows two ways to their route, and they two to its own.
    let mut world = World::joined(&[65010, 65010, 65020], &[(0, 1), (0, 2), (1, 2)]);
    world.originate(2, nth(2), marked(2));
    world.originate(0, nth(0), marked(1));
    world.originate(1, nth(0), marked(1));
    world.settle();
    assert_eq!(
        world
            .routes(2, RouteTable::LocRib, V4)
            .iter()
            .find(|route| route.nlri == nth(0))
            .unwrap()
            .paths
            .len(),
        2
    );
    let from = |world: &mut World, node: usize, prefix: Nlri| {
        let routes = world.routes(node, RouteTable::LocRib, V4);
        routes.into_iter().find(|route| route.nlri == prefix).unwrap().paths[0].source
    };
    assert_eq!((from(&mut world, 2, nth(0)), from(&mut world, 0, nth(2))), (Some(key(0)), Some(key(2))));

    assert_eq!(world.command(0, Command::GracefulShutdown(key(2))), Applied::Applied);
    assert_eq!(world.command(0, Command::GracefulShutdown(key(2))), Applied::Unchanged);
    world.settle();
    assert!(world.is_up(0, 2) && world.peer(0, 2).graceful_shutdown);
    // Section 4.2: what is told to it.
    let heard = attributes(&mut world, 2, 0, nth(0));
    assert_eq!(heard, (vec![1, GRACEFUL_SHUTDOWN], None));
    assert_eq!(from(&mut world, 2, nth(0)), Some(key(1)), "it obeys");
    // And what it has told.
    assert_eq!(from(&mut world, 0, nth(2)), Some(key(1)));
    let routes = world.routes(0, RouteTable::LocRib, V4);
    let route = routes.iter().find(|route| route.nlri == nth(2)).unwrap();
    let direct = route.paths.iter().find(|path| path.source == Some(key(2))).unwrap();
    let set = Canonical(direct.attrs.canonical());
    assert_eq!(set.local_pref(), Some(0));
    assert!(set.communities().any(|community| community == Community::GRACEFUL_SHUTDOWN));
    assert_eq!(attributes(&mut world, 0, 2, nth(2)), (vec![2], None), "as received");
    // Nobody else is told so: 1 has its own way to 2.
    assert!(!world.peer(0, 1).graceful_shutdown);
    assert_eq!(attributes(&mut world, 1, 0, nth(0)), (vec![1], Some(100)));

    // A new session is no way out, nor is a new configuration.
    world.cut(0, 2, true);
    world.cut(0, 2, false);
    world.pass(secs(60));
    assert!(world.is_up(0, 2));
    let config = PeerConfig { description: "another".into(), ..world.config(2) };
    world.command(0, Command::PutPeer(key(2), config));
    world.settle();
    assert_eq!(attributes(&mut world, 2, 0, nth(0)).0, [1, GRACEFUL_SHUTDOWN]);
    assert_eq!(from(&mut world, 0, nth(2)), Some(key(1)));

    assert_eq!(world.command(0, Command::EnablePeer(key(2))), Applied::Applied);
    world.settle();
    assert_eq!(attributes(&mut world, 2, 0, nth(0)), (vec![1], None));
    assert_eq!((from(&mut world, 2, nth(0)), from(&mut world, 0, nth(2))), (Some(key(0)), Some(key(2))));
    assert!(!world.peer(0, 2).graceful_shutdown);
}

/// An internal neighbour hears LOCAL_PREF 0, whatever policy says.
#[test]
fn an_internal_neighbour_that_is_to_be_left_hears_local_pref_0() {
    let mut world = World::joined(&[65010, 65010], &[(0, 1)]);
    let name = PolicyName::new("high");
    let statement =
        StatementDef { label: None, when: vec![], apply: vec![Act::SetLocalPref(500)], then: Flow::Accept };
    let def = PolicyDef { statements: vec![statement], default: crate::policy::Default::Accept };
    world.command(0, Command::PutPolicy(name.clone(), def));
    let config = PeerConfig { export: Chain::named(name), ..world.config(1) };
    world.command(0, Command::PutPeer(key(1), config));
    world.originate(0, nth(0), marked(1));
    world.settle();
    assert_eq!(attributes(&mut world, 1, 0, nth(0)), (vec![1], Some(500)));
    world.command(0, Command::GracefulShutdown(key(1)));
    world.settle();
    assert_eq!(attributes(&mut world, 1, 0, nth(0)), (vec![1, GRACEFUL_SHUTDOWN], Some(0)));
    // The shutdown itself ends it.
    world.command(0, Command::DisablePeer(key(1), "now".into()));
    world.settle();
    world.command(0, Command::EnablePeer(key(1)));
    world.settle();
    assert_eq!(attributes(&mut world, 1, 0, nth(0)), (vec![1], Some(500)));
}
