//! Our speaker and a daemon on one link.

use interop::daemon::{Daemon, Kind, Neighbour, Settings};
use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6};
use test_support::lab::{Host, Lab};
use test_support::route::Route;
use test_support::speaker::Speaker;
use test_support::wait;

/// AS number of our speaker.
pub(crate) const OUR_ASN: u32 = 65_010;
/// What our speaker announces.
pub(crate) const OUR_ROUTE4: &str = "198.51.100.0/24";
/// What our speaker announces.
pub(crate) const OUR_ROUTE6: &str = "2001:db8:e::/48";

/// The two ends.
pub(crate) struct Pair {
    pub(crate) ours: Host,
    pub(crate) theirs: Host,
}

impl Pair {
    pub(crate) fn new(lab: &Lab) -> Self {
        let ours = lab.host("ours", &[&format!("{OUR_IPV4}/24"), &format!("{OUR_IPV6}/64")]);
        let theirs = lab.host("theirs", &[&format!("{PEER_IPV4}/24"), &format!("{PEER_IPV6}/64")]);
        Self { ours, theirs }
    }
}

/// The daemon's neighbours that we are: one for each family.
pub(crate) fn us() -> Vec<Neighbour> {
    vec![Neighbour::new(OUR_IPV4, OUR_ASN), Neighbour::new(OUR_IPV6, OUR_ASN)]
}

/// The daemon in the AS it usually is in, with a session for each family.
pub(crate) fn settings(kind: Kind) -> Settings {
    Settings::new(kind.asn(), us())
}

/// The head of our speaker's file; `neighbors:` is its last line.
pub(crate) fn head(more: &str) -> String {
    format!(
        "asn: {OUR_ASN}\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\", \"[{OUR_IPV6}]:179\"]\n\
         require-policy: false\n{more}originate:\n\
         - {{ prefix: {OUR_ROUTE4}, med: 66, local-pref: 250, communities: [\"65010:9\", \"65010:9:99\"] }}\n\
         - {{ prefix: \"{OUR_ROUTE6}\", med: 66, local-pref: 250, communities: [\"65010:9\", \"65010:9:99\"] }}\n\
         neighbors:\n"
    )
}

/// The daemon as a neighbour in our file.
pub(crate) fn neighbor(address: &str, asn: u32, more: &str) -> String {
    let families = if more.contains("families:") {
        ""
    } else if address.contains(':') {
        ", families: [ipv6-unicast]"
    } else {
        ", families: [ipv4-unicast]"
    };
    format!("- {{ address: \"{address}\", asn: {asn}, connect-retry: 1{families}{more} }}\n")
}

/// Our file with a session for each family; `more` is added to both.
pub(crate) fn file(asn: u32, more: &str) -> String {
    head("") + &neighbor(PEER_IPV4, asn, more) + &neighbor(PEER_IPV6, asn, more)
}

/// Both ends say that both sessions are up.
#[track_caller]
pub(crate) fn both_established(daemon: &Daemon, speaker: &Speaker) {
    for (here, there) in [(OUR_IPV4, PEER_IPV4), (OUR_IPV6, PEER_IPV6)] {
        speaker.await_established(there);
        daemon.await_established(here);
    }
}

/// The name of a prefix's family.
pub(crate) fn family(prefix: &str) -> &'static str {
    if prefix.contains(':') { "ipv6-unicast" } else { "ipv4-unicast" }
}

/// Waits until our speaker has heard a route from `from` just so.
#[track_caller]
pub(crate) fn await_heard(speaker: &Speaker, from: &str, prefix: &str, what: &str, expected: &Route) {
    wait::until(&format!("we hold {prefix} ({what}) as {expected}"), || {
        same(expected, &speaker.heard(from, family(prefix), prefix)?)
    });
}

/// Waits until the daemon holds a route just so, as far as it shows it.
#[track_caller]
pub(crate) fn await_held(daemon: &Daemon, prefix: &str, what: &str, expected: &Route) {
    let kind = daemon.kind();
    let hidden: Vec<_> = kind.hides().iter().map(|(part, _)| *part).collect();
    wait::until(&format!("{} holds {prefix} ({what}) as {expected}", kind.name()), || {
        same(&expected.clone().hiding(&hidden), &daemon.route(prefix)?.hiding(&hidden))
    });
}

fn same(expected: &Route, seen: &Route) -> Result<(), String> {
    let differences = expected.differences(seen);
    if differences.is_empty() { Ok(()) } else { Err(differences.join("; ")) }
}

/// What we announce of our own, as a neighbour in another AS must hold it, or one in ours.
pub(crate) fn our_own(prefix: &str, external: bool) -> Route {
    let hop = if prefix.contains(':') { OUR_IPV6 } else { OUR_IPV4 };
    let path = if external { OUR_ASN.to_string() } else { String::new() };
    Route {
        med: Some(66),
        local_pref: (!external).then_some(250),
        communities: vec!["65010:9".to_owned()],
        large_communities: vec!["65010:9:99".to_owned()],
        ..Route::new(&path, hop.parse().expect("an address"))
    }
}

/// What a daemon announces of its own, as we must hold it.
pub(crate) fn their_own(kind: Kind, prefix: &str, external: bool) -> Route {
    let hop = if prefix.contains(':') { PEER_IPV6 } else { PEER_IPV4 };
    let path = if external { kind.asn().to_string() } else { String::new() };
    Route {
        med: Some(77),
        local_pref: (!external).then_some(150),
        communities: vec!["65001:7".to_owned()],
        ..Route::new(&path, hop.parse().expect("an address"))
    }
}

/// What a daemon shows of a route from another AS: some show the LOCAL_PREF that they gave it.
pub(crate) fn as_shown(kind: Kind, external: bool, mut route: Route) -> Route {
    if external && matches!(kind, Kind::Bird | Kind::Openbgpd) {
        route.local_pref = Some(100);
    }
    route
}

/// Both ends hold what the other has of its own.
#[track_caller]
pub(crate) fn own_routes(daemon: &Daemon, speaker: &Speaker, external: bool) {
    let kind = daemon.kind();
    for prefix in [OUR_ROUTE4, OUR_ROUTE6] {
        await_held(daemon, prefix, "our own", &as_shown(kind, external, our_own(prefix, external)));
    }
    for (prefix, from) in [(interop::PEER_ROUTE4, PEER_IPV4), (interop::PEER_ROUTE6, PEER_IPV6)] {
        await_heard(speaker, from, prefix, "their own", &their_own(kind, prefix, external));
    }
}
