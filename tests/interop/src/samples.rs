//! Routes with every attribute, as a feeder says them to one end, and as the other end must hold them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use test_support::route::{Origin, Route, Unknown};

use crate::raw;

/// AS number of the feeder.
pub const FEEDER_ASN: u32 = 65_100;
/// Where the feeder is, and the next hop of what it says.
pub const FEEDER_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 200);
/// The next hop of its IPv6 routes.
pub const FEEDER_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0xc8);

/// One set of attributes and the name by which a failure calls it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What is special about it.
    pub name: &'static str,
    /// As the feeder says it; its next hop is that of the family.
    pub route: Route,
}

/// All of them.
#[must_use]
pub fn samples() -> Vec<Sample> {
    let base = || Route::new("65100", FEEDER_IPV4.into());
    let texts = |list: &[&str]| -> Vec<String> { list.iter().map(|&text| text.to_owned()).collect() };
    let mut all = vec![
        Sample { name: "nothing but what is mandatory", route: base() },
        Sample {
            name: "ORIGIN EGP, a path with AS numbers of both sizes",
            route: Route { origin: Origin::Egp, as_path: "65100 65101 4200000001".to_owned(), ..base() },
        },
        Sample {
            name: "ORIGIN INCOMPLETE, a path that ends in a set",
            route: Route { origin: Origin::Incomplete, as_path: "65100 {65102,65103}".to_owned(), ..base() },
        },
        Sample { name: "MULTI_EXIT_DISC", route: Route { med: Some(55), ..base() } },
        Sample {
            name: "ATOMIC_AGGREGATE and AGGREGATOR",
            route: Route {
                atomic_aggregate: true,
                aggregator: Some((4_200_000_001, Ipv4Addr::new(192, 0, 2, 99))),
                ..base()
            },
        },
        Sample {
            name: "COMMUNITIES",
            route: Route { communities: texts(&["65001:1", "65001:65535", "65100:0"]), ..base() },
        },
        Sample {
            name: "LARGE_COMMUNITY",
            route: Route { large_communities: texts(&["65001:1:2", "4200000001:4294967295:0"]), ..base() },
        },
        Sample {
            name: "EXTENDED COMMUNITIES",
            route: Route {
                ext_communities: texts(&["rt 65001:100", "rt 4200000001:7", "soo 192.0.2.1:5"]),
                ..base()
            },
        },
        Sample {
            name: "an attribute that nobody knows",
            route: Route {
                unknown: vec![Unknown { code: 250, partial: false, value: vec![1, 2, 3, 4] }],
                ..base()
            },
        },
        Sample {
            name: "a long attribute that somebody did not know before",
            route: Route {
                unknown: vec![Unknown { code: 251, partial: true, value: vec![0xa5; 300] }],
                ..base()
            },
        },
    ];
    // The values of all others.
    let everything = all.iter().skip(1).fold(base(), |mut one, Sample { route, .. }| {
        if route.origin == Origin::Egp {
            one.origin = route.origin;
        }
        if route.as_path.len() > one.as_path.len() {
            one.as_path.clone_from(&route.as_path);
        }
        one.med = one.med.or(route.med);
        one.atomic_aggregate |= route.atomic_aggregate;
        one.aggregator = one.aggregator.or(route.aggregator);
        one.communities.extend_from_slice(&route.communities);
        one.large_communities.extend_from_slice(&route.large_communities);
        one.ext_communities.extend_from_slice(&route.ext_communities);
        one.unknown.extend_from_slice(&route.unknown);
        one
    });
    all.push(Sample { name: "all of it", route: everything });
    all
}

/// The prefix of the `n`th sample, of the family asked for, as the feeder says it to our speaker (`side` 1) or to the
/// daemon (`side` 2).
#[must_use]
pub fn prefix(six: bool, side: u8, n: usize) -> String {
    if six { format!("2001:db8:{side}{n:02x}::/48") } else { format!("10.{side}.{n}.0/24") }
}

/// What whoever hears `route` from the feeder passes on: inside its AS, or to another one (`external`: its own AS number).
#[must_use]
pub fn passed_on(route: &Route, external: Option<u32>, next_hop: IpAddr) -> Route {
    let mut route = Route { next_hop, ..route.clone() };
    // RFC 4271 section 5: who does not know a transitive attribute says so.
    route.unknown.iter_mut().for_each(|unknown| unknown.partial = true);
    match external {
        Some(asn) => {
            route.as_path = format!("{asn} {}", route.as_path);
            // RFC 4271 section 5.1.4: not to a third AS.
            route.med = None;
        }
        None => route.local_pref = Some(100),
    }
    route
}

/// The UPDATE that says a route of either family.
///
/// # Panics
///
/// When the prefix or a community is not written as samples are.
#[must_use]
pub fn update(prefix: &str, route: &Route) -> Vec<u8> {
    let (address, length) = prefix.split_once('/').expect("a prefix");
    let (address, length): (IpAddr, u8) =
        (address.parse().expect("an address"), length.parse().expect("a length"));
    let mut attributes = attributes(route);
    match address {
        IpAddr::V4(address) => {
            attributes.extend(raw::attribute(0x40, 3, &FEEDER_IPV4.octets()));
            raw::update(&[], &attributes, &[(address, length)])
        }
        IpAddr::V6(address) => {
            let mut reach = vec![0, 2, 1, 16];
            reach.extend(FEEDER_IPV6.octets());
            reach.extend([0, length]);
            reach.extend(&address.octets()[..usize::from(length.div_ceil(8))]);
            attributes.extend(raw::attribute(0x80, 14, &reach));
            raw::update(&[], &attributes, &[])
        }
    }
}

fn attributes(route: &Route) -> Vec<u8> {
    let mut octets = raw::attribute(0x40, 1, &[route.origin as u8]);
    octets.extend(raw::attribute(0x40, 2, &path(&route.as_path)));
    if let Some(med) = route.med {
        octets.extend(raw::attribute(0x80, 4, &med.to_be_bytes()));
    }
    if route.atomic_aggregate {
        octets.extend(raw::attribute(0x40, 6, &[]));
    }
    if let Some((asn, address)) = route.aggregator {
        octets.extend(raw::attribute(0xc0, 7, &[asn.to_be_bytes(), address.octets()].concat()));
    }
    let mut add = |code: u8, communities: &[String], encode: fn(&str) -> Vec<u8>| {
        if !communities.is_empty() {
            let value: Vec<u8> = communities.iter().flat_map(|text| encode(text)).collect();
            octets.extend(raw::attribute(0xc0, code, &value));
        }
    };
    add(8, &route.communities, |text| {
        numbers(text).flat_map(|number| (number as u16).to_be_bytes()).collect()
    });
    add(16, &route.ext_communities, |text| ext_community(text).to_vec());
    add(32, &route.large_communities, |text| numbers(text).flat_map(u32::to_be_bytes).collect());
    for unknown in &route.unknown {
        let flags = if unknown.partial { 0xe0 } else { 0xc0 };
        octets.extend(raw::attribute(flags, unknown.code, &unknown.value));
    }
    octets
}

fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.split([':', ',', ' ']).map(|number| number.parse().expect("a number"))
}

fn path(words: &str) -> Vec<u8> {
    let mut octets = Vec::new();
    let (sequence, set) = words.split_once(" {").unwrap_or((words, ""));
    for (kind, numbers) in [(2, numbers(sequence).collect()), (1, set_of(set))] {
        let numbers: Vec<u32> = numbers;
        if !numbers.is_empty() {
            octets.extend([kind, numbers.len() as u8]);
            octets.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        }
    }
    octets
}

fn set_of(text: &str) -> Vec<u32> {
    let text = text.trim_end_matches('}');
    if text.is_empty() { Vec::new() } else { numbers(text).collect() }
}

/// The octets of a community as [`Route`] writes it.
///
/// # Panics
///
/// When it is not written so.
#[must_use]
pub fn ext_community(text: &str) -> [u8; 8] {
    let (kind, rest) = text.split_once(' ').expect("a kind");
    let (global, local) = rest.split_once(':').expect("two parts");
    let local: u32 = local.parse().expect("a number");
    let sub = if kind == "soo" { 3 } else { 2 };
    let two = (local as u16).to_be_bytes();
    let octets: Vec<u8> = match (global.parse::<Ipv4Addr>(), global.parse::<u32>()) {
        (Ok(address), _) => [&[1, sub], &address.octets()[..], &two].concat(),
        (_, Ok(asn @ 0..=0xffff)) => {
            [&[0, sub], &(asn as u16).to_be_bytes()[..], &local.to_be_bytes()].concat()
        }
        (_, Ok(asn)) => [&[2, sub], &asn.to_be_bytes()[..], &two].concat(),
        _ => panic!("{text}"),
    };
    octets.try_into().expect("eight octets")
}
