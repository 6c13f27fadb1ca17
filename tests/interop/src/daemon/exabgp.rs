//! ExaBGP's words. It passes nothing on, and announces what its file says.

use test_support::exabgp::API;
use test_support::route::Route;

use super::{Settings, own_routes};
use crate::PEER_IPV4;
use crate::samples::ext_community;

pub(super) fn config(settings: &Settings) -> String {
    let mut config = String::new();
    for neighbour in &settings.neighbours {
        config += &format!(
            "neighbor {} {{ router-id {PEER_IPV4}; local-address {}; local-as {}; peer-as {}; hold-time {}; {API}\n",
            neighbour.address,
            neighbour.local(),
            settings.asn,
            neighbour.asn,
            neighbour.hold_time,
        );
        if let Some(password) = &neighbour.password {
            config += &format!("  md5-password '{password}';\n");
        }
        if neighbour.ttl_security {
            config += "  outgoing-ttl 255; incoming-ttl 255;\n";
        }
        if neighbour.passive {
            config += "  passive true;\n";
        }
        let restart =
            settings.restart_time.map(|time| format!("graceful-restart {time}; ")).unwrap_or_default();
        let four = if neighbour.four_octet { "enable" } else { "disable" };
        config += &format!("  capability {{ asn4 {four}; route-refresh enable; {restart}}}\n  family {{");
        for (family, wanted) in ["ipv4", "ipv6"].into_iter().zip(neighbour.families) {
            if wanted {
                config += &format!(" {family} unicast;");
            }
        }
        config += " }\n  static {\n";
        if settings.originates {
            for route in own_routes(neighbour.families) {
                config += &format!("    route {route} {};\n", own(route));
            }
        }
        for (prefix, route) in &settings.announces {
            if neighbour.families[usize::from(prefix.contains(':'))] {
                config += &format!("    route {prefix} {};\n", words(route));
            }
        }
        config += "  }\n}\n";
    }
    config
}

fn own(route: &str) -> String {
    let next_hop = if route.contains(':') { crate::PEER_IPV6 } else { PEER_IPV4 };
    format!("next-hop {next_hop} origin igp med 77 local-preference 150 community [ 65001:7 ]")
}

fn words(route: &Route) -> String {
    let hex = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
    let path = route.as_path.replace('{', "( ").replace('}', " )").replace(',', " ");
    let origin = format!("{:?}", route.origin).to_lowercase();
    let mut words = format!("next-hop {} origin {origin} as-path [ {path} ]", route.next_hop);
    for (name, value) in [("med", route.med), ("local-preference", route.local_pref)] {
        words += &value.map(|value| format!(" {name} {value}")).unwrap_or_default();
    }
    if route.atomic_aggregate {
        words += " atomic-aggregate";
    }
    if let Some((asn, address)) = route.aggregator {
        words += &format!(" aggregator ( {asn}:{address} )");
    }
    // It writes `origin:192.0.2.1:5` as a community of AS numbers, so say the octets.
    let octets = route.ext_communities.iter().map(|text| format!("0x{}", hex(&ext_community(text))));
    let lists = [
        ("community", route.communities.clone()),
        ("large-community", route.large_communities.clone()),
        ("extended-community", octets.collect()),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            words += &format!(" {name} [ {} ]", list.join(" "));
        }
    }
    for unknown in &route.unknown {
        let flags = if unknown.partial { 0xe0 } else { 0xc0 };
        words += &format!(" attribute [ 0x{:02x} 0x{flags:02x} 0x{} ]", unknown.code, hex(&unknown.value));
    }
    words
}
