//! How sessions end and how long they last: NOTIFICATIONs in words, hold times, TTL security.

use interop::daemon::{Daemon, Kind};
use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6};
use test_support::lab::Lab;
use test_support::speaker::Speaker;
use test_support::wait;

use crate::pair::{Pair, both_established, file, head, neighbor, own_routes, settings};

/// The shorter of both is agreed on, and KEEPALIVEs hold the session.
pub(crate) fn hold_time(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    let daemon = Daemon::start(kind, &pair.theirs, settings(kind));
    let file = head("")
        + &neighbor(PEER_IPV4, kind.asn(), ", hold-time: 3")
        + &neighbor(PEER_IPV6, kind.asn(), ", hold-time: 30");
    let speaker = Speaker::start(&pair.ours, &file);
    both_established(&daemon, &speaker);
    for (address, hold, keepalive) in [(PEER_IPV4, 3, 1), (PEER_IPV6, 9, 3)] {
        let peer = speaker.await_established(address);
        assert_eq!(
            (&peer["applied-hold-time-seconds"], &peer["applied-keep-alive-time-seconds"]),
            (&hold.into(), &keepalive.into()),
            "{peer}"
        );
    }
    // Longer than the hold time of 3 seconds.
    let before = speaker.await_established(PEER_IPV4)["messages-sent"].as_u64().expect("a count");
    let peer = speaker
        .await_peer(PEER_IPV4, "has lasted", |peer| peer["messages-sent"].as_u64() >= Some(before + 6));
    assert_eq!(peer["established-transitions"], 1, "{peer}");
    daemon.await_established(OUR_IPV4);
}

/// They stop the session, and we tell why; we stop it, and they do.
pub(crate) fn notification(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    let daemon = Daemon::start(kind, &pair.theirs, settings(kind));
    let mut speaker = Speaker::start(&pair.ours, &file(kind.asn(), ""));
    both_established(&daemon, &speaker);
    daemon.shut_down(OUR_IPV4);
    // Not its state: ExaBGP connects again at once.
    speaker.await_peer(PEER_IPV4, "has been ended by the neighbour, in words", |peer| {
        peer["last-error"].as_str().is_some_and(|error| {
            error.starts_with("received Cease") && error.to_lowercase().contains("administrative shutdown")
        })
    });
    let peer = speaker.await_established(PEER_IPV6);
    assert_eq!(peer["established-transitions"], 1, "the other session: {peer}");
    // Without that neighbour.
    speaker.reload(&(head("") + &neighbor(PEER_IPV4, kind.asn(), "")));
    let heard = match kind {
        Kind::Bird => "Received: Peer de-configured",
        Kind::Frr => "\"lastErrorCodeSubcode\":\"0603\"",
        Kind::Gobgp => "subcode 3(peer deconfigured)",
        Kind::Openbgpd => "Cease, peer unconfigured",
        Kind::Exabgp => "{\"code\":6,\"data\":\"0x\",\"subcode\":3}",
    };
    wait::until(&format!("{} tells why we ended the session", kind.name()), || {
        let told = daemon.told_of_ends(OUR_IPV6)?;
        if told.contains(heard) { Ok(()) } else { Err(told) }
    });
}

/// RFC 5082 at both ends.
pub(crate) fn ttl_security(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    let mut settings = settings(kind);
    settings.neighbours.iter_mut().for_each(|neighbour| neighbour.ttl_security = true);
    let daemon = Daemon::start(kind, &pair.theirs, settings);
    let speaker = Speaker::start(&pair.ours, &file(kind.asn(), ", ttl-security: 1"));
    both_established(&daemon, &speaker);
    own_routes(&daemon, &speaker, true);
    for address in [PEER_IPV4, PEER_IPV6] {
        assert_eq!(speaker.await_established(address)["ttl-security"], 1);
    }
}
