//! Route refresh: asked for everything again, we say it again; we ask for everything again, and lose nothing. The session stays.

use interop::daemon::{Daemon, Kind};
use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6};
use serde_json::Value;
use test_support::lab::Lab;
use test_support::route::base64;
use test_support::speaker::Speaker;
use test_support::wait;

use crate::pair::{Pair, both_established, file, own_routes, settings};

/// RFC 2918.
pub(crate) fn refresh(lab: &Lab, kind: Kind) {
    asked_again(lab, kind, false);
}

/// RFC 7313: what we say again stands between two marks.
pub(crate) fn enhanced_refresh(lab: &Lab, kind: Kind) {
    asked_again(lab, kind, true);
}

/// We ask, by `peregrine clear --soft in`, and hold what we held.
pub(crate) fn our_refresh(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    let daemon = Daemon::start(kind, &pair.theirs, settings(kind));
    let speaker = Speaker::start(&pair.ours, &file(kind.asn(), ""));
    both_established(&daemon, &speaker);
    own_routes(&daemon, &speaker, true);
    for (here, there) in [(OUR_IPV4, PEER_IPV4), (OUR_IPV6, PEER_IPV6)] {
        let before = daemon.asked(here).expect("it counts requests");
        speaker.tell(&["clear", there, "--soft", "in"]);
        wait::until(&format!("{} is asked over {here}", kind.name()), || {
            let now = daemon.asked(here)?;
            if now > before { Ok(()) } else { Err(format!("{before}, {now}")) }
        });
    }
    own_routes(&daemon, &speaker, true);
    for address in [PEER_IPV4, PEER_IPV6] {
        assert_eq!(speaker.await_established(address)["established-transitions"], 1);
    }
}

/// Whether a neighbour has offered a capability.
fn offers(peer: &Value, code: u8) -> bool {
    let capabilities = peer["remote-capabilities"].as_array().into_iter().flatten();
    let mut codes = capabilities
        .filter_map(|one| base64(one["capabilities"].as_str().unwrap_or_default()).first().copied());
    codes.any(|one| one == code)
}

fn asked_again(lab: &Lab, kind: Kind, enhanced: bool) {
    let pair = Pair::new(lab);
    let mut settings = settings(kind);
    settings.neighbours.iter_mut().for_each(|neighbour| neighbour.enhanced_refresh = enhanced);
    let daemon = Daemon::start(kind, &pair.theirs, settings);
    let speaker = Speaker::start(&pair.ours, &file(kind.asn(), ""));
    both_established(&daemon, &speaker);
    own_routes(&daemon, &speaker, true);
    for (here, there) in [(OUR_IPV4, PEER_IPV4), (OUR_IPV6, PEER_IPV6)] {
        let peer = speaker.await_established(there);
        assert!(offers(&peer, 2), "no route refresh: {peer}");
        assert!(!enhanced || offers(&peer, 70), "no enhanced route refresh: {peer}");
        let before = daemon.announcements(here).expect("it counts announcements");
        daemon.ask_again(here);
        wait::until(&format!("{} is told again over {here}", kind.name()), || {
            let now = daemon.announcements(here)?;
            if now > before { Ok(()) } else { Err(format!("{before}, {now}")) }
        });
        if enhanced {
            daemon.await_refresh_marks(here);
        }
    }
    own_routes(&daemon, &speaker, true);
    for address in [PEER_IPV4, PEER_IPV6] {
        assert_eq!(speaker.await_established(address)["established-transitions"], 1);
    }
}
