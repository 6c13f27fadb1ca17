//! The feeder: a neighbour of either end, in a third AS, that the test plays itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use interop::daemon::Neighbour;
use interop::raw::{self, Raw};
use interop::samples::{FEEDER_ASN, FEEDER_IPV4, FEEDER_IPV6, update};
use test_support::route::Route;

use crate::pair::neighbor;

/// It keeps no timers, so this is longer than a test; 0 would do, but with it GoBGP 3 ends the session at once.
const QUIET: u16 = 600;

/// Gives this end of the link its addresses.
pub(crate) fn settle() {
    for address in [format!("{FEEDER_IPV4}/24"), format!("{FEEDER_IPV6}/64")] {
        let done = Command::new("ip").args(["addr", "add", &address, "dev", "br0"]).status();
        assert!(done.expect("iproute2 is installed").success(), "{address}");
    }
}

/// What the daemon knows of it.
pub(crate) fn of_theirs() -> Neighbour {
    Neighbour {
        families: [true, true],
        passive: true,
        hears: false,
        hold_time: QUIET,
        ..Neighbour::new(&FEEDER_IPV4.to_string(), FEEDER_ASN)
    }
}

/// What our speaker knows of it.
pub(crate) fn of_ours() -> String {
    let families = "families: [ipv4-unicast, ipv6-unicast]";
    let more = format!(", passive: true, {families}, export: reject, hold-time: {QUIET}");
    neighbor(&FEEDER_IPV4.to_string(), FEEDER_ASN, &more)
}

/// Says routes to the end at `to`; they stay for as long as the connection does.
pub(crate) fn feed<'a>(to: &str, routes: impl IntoIterator<Item = (String, &'a Route)>) -> Raw {
    let to: Ipv4Addr = to.parse().expect("an address");
    let mut feeder = Raw::connect(FEEDER_IPV4, SocketAddr::from((to, 179)));
    feeder.establish(&raw::open(FEEDER_ASN, QUIET, FEEDER_IPV4));
    for (prefix, route) in routes {
        feeder.say(&update(&prefix, route));
    }
    feeder
}
