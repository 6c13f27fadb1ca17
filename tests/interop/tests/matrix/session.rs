//! Sessions: transports, families, keys.

use interop::daemon::{Daemon, Kind, Neighbour, Settings};
use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6};
use test_support::lab::Lab;
use test_support::speaker::Speaker;

use crate::pair::{
    OUR_ASN, OUR_ROUTE4, OUR_ROUTE6, Pair, await_heard, await_held, both_established, file, head, neighbor,
    our_own, own_routes, settings, their_own,
};

pub(crate) fn over_ipv4(lab: &Lab, kind: Kind) {
    one_transport(lab, kind, OUR_IPV4, PEER_IPV4, [OUR_ROUTE4, PEER_ROUTE4]);
}

pub(crate) fn over_ipv6(lab: &Lab, kind: Kind) {
    one_transport(lab, kind, OUR_IPV6, PEER_IPV6, [OUR_ROUTE6, PEER_ROUTE6]);
}

fn one_transport(lab: &Lab, kind: Kind, here: &str, there: &str, routes: [&str; 2]) {
    let pair = Pair::new(lab);
    let neighbours = vec![Neighbour::new(here, OUR_ASN)];
    let daemon = Daemon::start(kind, &pair.theirs, Settings::new(kind.asn(), neighbours));
    let speaker = Speaker::start(&pair.ours, &(head("") + &neighbor(there, kind.asn(), "")));
    speaker.await_established(there);
    daemon.await_established(here);
    await_held(&daemon, routes[0], "our own", &crate::pair::as_shown(kind, true, our_own(routes[0], true)));
    await_heard(&speaker, there, routes[1], "their own", &their_own(kind, routes[1], true));
}

/// Over IPv4. What next hop an IPv6 route has then differs: see the comments.
pub(crate) fn both_families_over_one(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    let mut neighbour = Neighbour::new(OUR_IPV4, OUR_ASN);
    neighbour.families = [true, true];
    let daemon = Daemon::start(kind, &pair.theirs, Settings::new(kind.asn(), vec![neighbour]));
    let families = format!(", families: [ipv4-unicast, ipv6-unicast], next-hop-ipv6: \"{OUR_IPV6}\"");
    let speaker = Speaker::start(&pair.ours, &(head("") + &neighbor(PEER_IPV4, kind.asn(), &families)));
    speaker.await_established(PEER_IPV4);
    daemon.await_established(OUR_IPV4);
    for route in [OUR_ROUTE4, OUR_ROUTE6] {
        await_held(&daemon, route, "our own", &crate::pair::as_shown(kind, true, our_own(route, true)));
    }
    await_heard(&speaker, PEER_IPV4, PEER_ROUTE4, "their own", &their_own(kind, PEER_ROUTE4, true));
    let mut route = their_own(kind, PEER_ROUTE6, true);
    match kind {
        // What stands in the file, BIRD: of the interface.
        Kind::Bird | Kind::Gobgp | Kind::Exabgp => {}
        // They derive it from the session's own address, as well as they can.
        Kind::Frr => route.next_hop = "::ffff:192.0.2.254".parse().expect("an address"),
        Kind::Openbgpd => route.next_hop = "::1".parse().expect("an address"),
    }
    await_heard(&speaker, PEER_IPV4, PEER_ROUTE6, "their own", &route);
}

/// TCP MD5 over both transports, whoever connects; and no session with another key.
pub(crate) fn md5(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    let key = pair.ours.dir().join("peer.key");
    std::fs::write(&key, "correct-horse\n").expect("the host's folder is ours");
    let mut settings = settings(kind);
    for neighbour in &mut settings.neighbours {
        neighbour.password = Some("correct-horse".to_owned());
    }
    let daemon = Daemon::start(kind, &pair.theirs, settings);
    let file = file(kind.asn(), &format!(", md5-password-file: {}", key.display()));
    let mut speaker = Speaker::start(&pair.ours, &file);
    both_established(&daemon, &speaker);
    own_routes(&daemon, &speaker, true);
    std::fs::write(&key, "battery-staple\n").expect("the host's folder is ours");
    speaker.reload(&file);
    for address in [PEER_IPV4, PEER_IPV6] {
        speaker.await_peer(address, "tells why not", |peer| {
            peer["last-error"].as_str().is_some_and(|error| error.contains("the passwords may differ"))
        });
    }
    std::fs::write(&key, "correct-horse\n").expect("the host's folder is ours");
    speaker.reload(&file);
    both_established(&daemon, &speaker);
    own_routes(&daemon, &speaker, true);
}
