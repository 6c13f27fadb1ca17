//! A daemon that knows AS numbers of 2 octets only (RFC 6793), while there are longer ones in paths, and, where the daemon
//! takes AS_TRANS as the AS of a neighbour, while we are in such an AS ourselves: BIRD and OpenBGPD refuse that in their files.

use std::net::Ipv4Addr;

use interop::daemon::{Daemon, Kind, Neighbour, Settings};
use interop::samples::FEEDER_IPV4;
use interop::{OUR_IPV4, PEER_IPV4};
use test_support::lab::Lab;
use test_support::route::Route;
use test_support::speaker::Speaker;

use crate::feeder::{self, feed};
use crate::pair::{OUR_ASN, OUR_ROUTE4, Pair, as_shown, await_heard, await_held, head, neighbor, our_own};

const BIG: u32 = 4_200_000_010;
const AS_TRANS: u32 = 23_456;

pub(crate) fn two_octet_as(lab: &Lab, kind: Kind) {
    let pair = Pair::new(lab);
    feeder::settle();
    let (our_asn, shown_asn) = if kind == Kind::Exabgp { (BIG, AS_TRANS) } else { (OUR_ASN, OUR_ASN) };
    let mut us = Neighbour::new(OUR_IPV4, shown_asn);
    us.four_octet = false;
    let mut settings = Settings::new(kind.asn(), vec![us]);
    let their = Route {
        aggregator: Some((4_200_000_001, Ipv4Addr::new(192, 0, 2, 99))),
        ..Route::new(
            &format!("{} 65100 4200000001 65101", kind.asn()),
            PEER_IPV4.parse().expect("an address"),
        )
    };
    if kind == Kind::Exabgp {
        settings.announces.push(("10.2.0.0/24".to_owned(), their.clone()));
    } else {
        settings.neighbours.push(feeder::of_theirs());
    }
    let daemon = Daemon::start(kind, &pair.theirs, settings);
    let file = head("").replace("asn: 65010\n", &format!("asn: {our_asn}\n"))
        + &neighbor(PEER_IPV4, kind.asn(), "")
        + &feeder::of_ours();
    let speaker = Speaker::start(&pair.ours, &file);
    speaker.await_established(PEER_IPV4);
    daemon.await_established(OUR_IPV4);

    let fed =
        Route { aggregator: their.aggregator, ..Route::new("65100 4200000001 65101", FEEDER_IPV4.into()) };
    let _to_us = feed(OUR_IPV4, [("10.1.0.0/24".to_owned(), &fed)]);
    let _to_them = (kind != Kind::Exabgp).then(|| feed(PEER_IPV4, [("10.2.0.0/24".to_owned(), &fed)]));

    // We merge AS4_PATH and AS4_AGGREGATOR of theirs.
    await_heard(&speaker, PEER_IPV4, "10.2.0.0/24", "a path with a number of 4 octets", &their);
    // So do they with ours.
    let own = Route { as_path: our_asn.to_string(), ..our_own(OUR_ROUTE4, true) };
    await_held(&daemon, OUR_ROUTE4, "our own", &as_shown(kind, true, own));
    let mut passed = Route {
        as_path: format!("{our_asn} 65100 4200000001 65101"),
        next_hop: OUR_IPV4.parse().expect("an address"),
        ..fed.clone()
    };
    if kind == Kind::Exabgp {
        // It reads the upper half of the number in AS4_AGGREGATOR.
        passed.aggregator = Some((4_200_000_001 >> 16, Ipv4Addr::new(192, 0, 2, 99)));
    }
    await_held(&daemon, "10.1.0.0/24", "through us", &as_shown(kind, true, passed));
}
