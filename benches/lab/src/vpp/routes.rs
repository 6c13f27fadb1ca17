//! Routes into a peer that only acknowledges: what the agent can do, whatever VPP can. First a table as fast as it goes,
//! then single prefixes change their next hop at a steady rate, whether the agent keeps up or not.
//!
//! In the end each prefix must have been asked for, with the next hop that was said last, and no other.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use test_support::lab::Lab;

use super::acker::{Acker, Heard};
use super::road::{self, Road, SENDER};
use crate::pipeline::ticks_to_seconds;
use crate::table::{self, Family, Prefix};
use crate::wire;

/// The neighbour's AS.
const ASN: u32 = 65_001;
/// Where changed prefixes lead to: another router on the neighbour's link.
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 12);
/// Changes, at this rate.
const CHANGES: u32 = 50_000;
const PER_SECOND: u32 = 10_000;
/// How long the last routes may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Routes a second that must be reached.
pub(crate) const LEAST_RATE: f64 = 300_000.0;
/// Within which 99 of 100 single changes must be acknowledged.
pub(crate) const MOST_LAG: Duration = Duration::from_millis(2);

/// What came out.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Figures {
    /// Routes a second, from the first UPDATE to the last acknowledgement.
    pub(crate) rate: f64,
    /// Within which 99 of 100 changes were acknowledged.
    pub(crate) p99: Duration,
}

/// Measures `count` routes and prints the figures.
pub(crate) fn run(lab: &Lab, count: u32) -> Figures {
    let host = road::host(lab);
    let acker = Acker::listen(&host.dir().join("vpp.sock"));
    let mut road = Road::open(&host, ASN, &[]);
    let routes = table::build(Family::V4, count, ASN, 0);
    let mut bytes = wire::updates(&routes, IpAddr::V4(SENDER), None);
    bytes.extend(wire::end_of_rib(Family::V4));
    let mut expected: HashMap<Prefix, Ipv4Addr> =
        road::prefixes(&routes).into_iter().map(|prefix| (prefix, SENDER)).collect();

    let (ticks, peer) = (road.node.agent().cpu_ticks(), acker.cpu_seconds());
    let before = acker.routes();
    let start = Instant::now();
    road.send(bytes);
    while acker.routes() - before < count as usize {
        road.turn(Duration::from_millis(1));
        assert!(start.elapsed() < PATIENCE, "{} of {count} routes came", acker.routes() - before);
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = f64::from(count) / seconds;
    println!(
        "{count} routes, from the first UPDATE to the last acknowledgement: {seconds:.2} s, {rate:.0} routes/s; \
         agent: {:.2} CPU s, peak {:.1} MiB; peer: {:.2} CPU s",
        ticks_to_seconds(road.node.agent().cpu_ticks() - ticks),
        road.node.agent().peak_kib() as f64 / 1024.0,
        acker.cpu_seconds() - peer,
    );
    let mut held = HashMap::new();
    let mut lags = Vec::new();
    judge(&acker.heard(), &mut held, &expected);

    let ticks = road.node.agent().cpu_ticks();
    let sent = change(&mut road, &routes, &mut expected);
    let before = Instant::now();
    let mut heard = acker.heard();
    // Changes may be merged, so how many come is not known; which must come last is.
    while !settled(&held, &heard, &expected) {
        road.turn(Duration::from_millis(1));
        heard.extend(acker.heard());
        assert!(before.elapsed() < PATIENCE, "changes did not come");
    }
    let ticks = road.node.agent().cpu_ticks() - ticks;
    let mut of_prefix: HashMap<Prefix, Vec<&Heard>> = HashMap::new();
    for one in &heard {
        of_prefix.entry(one.route.prefix).or_default().push(one);
    }
    for (prefix, next_hop, at) in &sent {
        let acknowledged = of_prefix.get(prefix).into_iter().flatten();
        let mut acknowledged = acknowledged.filter(|one| one.at >= *at && one.route.next_hop == *next_hop);
        lags.push(acknowledged.next().expect("it was settled").at - *at);
    }
    judge(&heard, &mut held, &expected);
    lags.sort_unstable();
    let quantile = |share: usize| lags[lags.len() * share / 1000];
    let (median, p99) = (quantile(500), quantile(990));
    println!(
        "{CHANGES} single changes at {PER_SECOND}/s: p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms; agent: {:.1} CPU us each",
        median.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        quantile(999).as_secs_f64() * 1e3,
        ticks_to_seconds(ticks) * 1e6 / f64::from(CHANGES),
    );
    Figures { rate, p99 }
}

/// Changes the next hop of one prefix after the other, and says when.
fn change(
    road: &mut Road,
    routes: &[table::Route],
    expected: &mut HashMap<Prefix, Ipv4Addr>,
) -> Vec<(Prefix, Ipv4Addr, Instant)> {
    let singles: Vec<_> =
        routes.iter().flat_map(|route| route.prefixes.iter().map(move |prefix| (route, *prefix))).collect();
    let mut sent = Vec::new();
    let pace = Duration::from_secs(1) / PER_SECOND;
    let start = Instant::now();
    for number in 0..CHANGES {
        let at = singles.len().min(CHANGES as usize / 2);
        let (route, prefix) = singles[(number as usize % at) * (singles.len() / at)];
        let next_hop = if expected.get(&prefix) == Some(&OTHER) { SENDER } else { OTHER };
        let mut bytes = Vec::new();
        let route = table::Route { prefixes: vec![prefix], ..route.clone() };
        wire::announce(&mut bytes, &route, IpAddr::V4(next_hop), None);
        loop {
            let left = (pace * number).saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            road.turn(left);
        }
        sent.push((prefix, next_hop, Instant::now()));
        road.send(bytes);
        road.turn(Duration::ZERO);
        expected.insert(prefix, next_hop);
    }
    sent
}

/// Whether the peer has been told of everything: by count, and the last word about each prefix.
fn settled(held: &HashMap<Prefix, Ipv4Addr>, heard: &[Heard], expected: &HashMap<Prefix, Ipv4Addr>) -> bool {
    let mut last: HashMap<Prefix, Ipv4Addr> = HashMap::new();
    for one in heard {
        last.insert(one.route.prefix, one.route.next_hop);
    }
    expected.iter().all(|(prefix, next_hop)| last.get(prefix).or_else(|| held.get(prefix)) == Some(next_hop))
}

/// Carries out what the peer was asked for, and compares.
fn judge(heard: &[Heard], held: &mut HashMap<Prefix, Ipv4Addr>, expected: &HashMap<Prefix, Ipv4Addr>) {
    for one in heard {
        assert!(one.route.add, "nothing was withdrawn: {:?}", one.route);
        assert!(expected.contains_key(&one.route.prefix), "nobody announced {:?}", one.route);
        held.insert(one.route.prefix, one.route.next_hop);
    }
    let wrong = expected.iter().find(|(prefix, next_hop)| held.get(prefix) != Some(next_hop));
    assert!(wrong.is_none(), "the peer was asked for something else than {wrong:?}");
}
