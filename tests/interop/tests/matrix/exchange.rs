//! Every attribute, both ways, both families. A feeder, which is this test itself, says the samples to either end; the other
//! end must hold them as they are to be passed on. ExaBGP passes nothing on, so it announces them itself.

use interop::daemon::{Daemon, Kind, Settings};
use interop::samples::{FEEDER_IPV4, FEEDER_IPV6, Sample, passed_on, prefix, samples};
use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6};
use test_support::lab::Lab;
use test_support::route::Route;
use test_support::speaker::Speaker;
use test_support::wait;

use crate::feeder::{self, feed};
use crate::pair::{
    OUR_ASN, OUR_ROUTE4, OUR_ROUTE6, Pair, as_shown, await_heard, await_held, both_established, file, head,
    neighbor, our_own, own_routes, settings, their_own, us,
};

pub(crate) fn exchange_ebgp(lab: &Lab, kind: Kind) {
    exchange(lab, kind, true);
}

pub(crate) fn exchange_ibgp(lab: &Lab, kind: Kind) {
    exchange(lab, kind, false);
}

/// What an end announces no more, the other no longer holds; the rest stays.
pub(crate) fn withdrawal(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    let daemon = Daemon::start(kind, &pair.theirs, settings(kind));
    let file = file(kind.asn(), "");
    let mut speaker = Speaker::start(&pair.ours, &file);
    both_established(&daemon, &speaker);
    own_routes(&daemon, &speaker, true);
    daemon.withdraw_own();
    speaker.await_no_route("ipv4-unicast", PEER_ROUTE4);
    let left: String =
        file.lines().filter(|line| !line.contains(OUR_ROUTE4)).flat_map(|line| [line, "\n"]).collect();
    speaker.reload(&left);
    wait::until_true(&format!("{} holds {OUR_ROUTE4} no more", kind.name()), || {
        daemon.route(OUR_ROUTE4).is_err()
    });
    await_held(&daemon, OUR_ROUTE6, "the other one", &as_shown(kind, true, our_own(OUR_ROUTE6, true)));
    await_heard(&speaker, PEER_IPV6, PEER_ROUTE6, "the other one", &their_own(kind, PEER_ROUTE6, true));
    for address in [PEER_IPV4, PEER_IPV6] {
        assert_eq!(speaker.await_established(address)["established-transitions"], 1);
    }
}

/// What the feeder says, and what comes of it with `sender` in between.
fn expected(sample: &Sample, external: Option<u32>, six: bool, sender: [&str; 2]) -> Route {
    // Inside an AS the next hop stays.
    let hop = match (external.is_some(), six) {
        (true, six) => sender[usize::from(six)].parse().expect("an address"),
        (false, false) => FEEDER_IPV4.into(),
        (false, true) => FEEDER_IPV6.into(),
    };
    passed_on(&sample.route, external, hop)
}

fn exchange(lab: &Lab, kind: Kind, external: bool) {
    let pair = Pair::new(lab);
    feeder::settle();
    let asn = if external { kind.asn() } else { OUR_ASN };
    let (our_mark, their_mark) = (external.then_some(OUR_ASN), external.then_some(asn));
    let samples = samples();
    let both = [false, true];

    let mut settings = Settings::new(asn, us());
    let passes_on = kind != Kind::Exabgp;
    if passes_on {
        settings.neighbours.push(feeder::of_theirs());
    } else {
        for six in both {
            settings.announces.extend(samples.iter().enumerate().map(|(n, sample)| {
                (prefix(six, 2, n), expected(sample, their_mark, six, [PEER_IPV4, PEER_IPV6]))
            }));
        }
    }
    let daemon = Daemon::start(kind, &pair.theirs, settings);
    let file = head("") + &neighbor(PEER_IPV4, asn, "") + &neighbor(PEER_IPV6, asn, "") + &feeder::of_ours();
    let speaker = Speaker::start(&pair.ours, &file);
    both_established(&daemon, &speaker);

    let said = |side: u8| {
        let samples = samples.iter().enumerate();
        samples.flat_map(move |(n, sample)| both.map(|six| (prefix(six, side, n), &sample.route)))
    };
    let _to_us = feed(OUR_IPV4, said(1));
    let _to_them = passes_on.then(|| feed(PEER_IPV4, said(2)));

    own_routes(&daemon, &speaker, external);
    for six in both {
        for (n, sample) in samples.iter().enumerate() {
            let route = as_shown(kind, external, expected(sample, our_mark, six, [OUR_IPV4, OUR_IPV6]));
            await_held(&daemon, &prefix(six, 1, n), sample.name, &route);
            let route = expected(sample, their_mark, six, [PEER_IPV4, PEER_IPV6]);
            let from = if six { PEER_IPV6 } else { PEER_IPV4 };
            await_heard(&speaker, from, &prefix(six, 2, n), sample.name, &route);
        }
    }
}
