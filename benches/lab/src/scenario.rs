//! What is done to a daemon, and the figures that come out.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use std::thread;
use std::time::Instant;

use test_support::lab::Lab;
use test_support::wait;

use crate::daemon::{ADDRESS, ASN, Kind};
use crate::table::{self, Route};
use crate::wire::{self, Session};

const SENDER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 11);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 12);

/// What one run cost the daemon.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Figures {
    /// User plus system CPU seconds of the whole process, from its start to the last prefix.
    pub(crate) cpu_seconds: f64,
    /// Peak resident memory in MiB.
    pub(crate) peak_mib: f64,
    /// Seconds from the first UPDATE sent to the last one received.
    pub(crate) wall_seconds: f64,
}

/// One eBGP sender announces `count` prefixes; one eBGP receiver checks that each arrives with the right path.
#[must_use]
pub(crate) fn one_to_one(lab: &Lab, kind: Kind, count: u32) -> Figures {
    let host = lab.host("dut", &[&format!("{ADDRESS}/24")]);
    for address in [SENDER, RECEIVER] {
        let status =
            Command::new("ip").args(["addr", "add", &format!("{address}/24"), "dev", "br0"]).status();
        assert!(status.is_ok_and(|status| status.success()), "an address on the lab's bridge");
    }
    let daemon = kind.start(&host, &[(SENDER.to_string(), 65_001), (RECEIVER.to_string(), 65_002)]);
    let routes = table::build(count, 65_001);
    let remote = SocketAddr::new(ADDRESS.parse().expect("an address"), 179);
    let open = |local: Ipv4Addr, asn: u32| {
        wait::until("the daemon accepts a session", || {
            Session::open(IpAddr::V4(local), remote, asn, local.to_bits()).map_err(|error| error.to_string())
        })
    };
    let mut receiver = open(RECEIVER, 65_002);
    let mut sender = open(SENDER, 65_001);
    let bytes = [wire::updates(&routes, SENDER.to_bits()), wire::end_of_rib()].concat();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            sender.send(&bytes).expect("the daemon reads");
            // The session must stay up, so somebody has to read it until the receiver is done.
            while sender.update().is_ok() {}
        });
        check(&mut receiver, &routes, count);
        let figures = Figures {
            cpu_seconds: ticks_to_seconds(daemon.process().cpu_ticks()),
            peak_mib: daemon.process().peak_kib() as f64 / 1024.0,
            wall_seconds: start.elapsed().as_secs_f64(),
        };
        drop(daemon);
        figures
    })
}

/// Reads until every prefix of `routes` has arrived, each with the expected path and communities.
fn check(receiver: &mut Session, routes: &[Route], count: u32) {
    let mut expected: HashMap<(u32, u8), usize> = HashMap::with_capacity(routes.len());
    for (index, route) in routes.iter().enumerate() {
        expected.extend(route.prefixes.iter().map(|prefix| (*prefix, index)));
    }
    while !expected.is_empty() {
        let missing = expected.len();
        let update = receiver
            .update()
            .unwrap_or_else(|error| panic!("{missing} of {count} prefixes missing: {error}"));
        assert!(update.withdrawn.is_empty(), "nothing was withdrawn");
        for prefix in &update.announced {
            let route = &routes[expected.remove(prefix).expect("a prefix that was sent, once")];
            let path: Vec<u32> = [&[ASN][..], &route.as_path].concat();
            assert_eq!(update.as_path, path, "{prefix:?}");
            assert_eq!(update.communities, route.communities, "{prefix:?}");
        }
    }
}

/// Clock ticks of 10 ms to seconds.
pub(crate) fn ticks_to_seconds(ticks: u64) -> f64 {
    ticks as f64 / 100.0
}

/// The median of each figure.
#[must_use]
pub(crate) fn median(runs: &[Figures]) -> Figures {
    let of = |pick: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Figures {
        cpu_seconds: of(|figures| figures.cpu_seconds),
        peak_mib: of(|figures| figures.peak_mib),
        wall_seconds: of(|figures| figures.wall_seconds),
    }
}
