//! GoBGP's words.

use test_support::gobgp::Gobgp;

use super::Settings;
use crate::{PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6};

pub(super) fn config(settings: &Settings) -> String {
    let mut config = format!("[global.config]\n  as = {}\n  router-id = \"{PEER_IPV4}\"\n", settings.asn);
    for neighbour in &settings.neighbours {
        config += &format!(
            "[[neighbors]]\n  [neighbors.config]\n    neighbor-address = \"{}\"\n    peer-as = {}\n",
            neighbour.address, neighbour.asn
        );
        if let Some(password) = &neighbour.password {
            config += &format!("    auth-password = \"{password}\"\n");
        }
        config += &format!(
            "  [neighbors.timers.config]\n    connect-retry = 1\n    idle-hold-time-after-reset = 1\n    \
             hold-time = {}\n    keepalive-interval = {}\n  [neighbors.transport.config]\n    \
             local-address = \"{}\"\n    passive-mode = {}\n",
            neighbour.hold_time,
            neighbour.hold_time.div_ceil(3),
            neighbour.local(),
            neighbour.passive
        );
        if neighbour.ttl_security {
            config += "  [neighbors.ttl-security.config]\n    enabled = true\n    ttl-min = 255\n";
        }
        if let Some(time) = settings.restart_time {
            config += &format!(
                "  [neighbors.graceful-restart.config]\n    enabled = true\n    restart-time = {time}\n"
            );
        }
        if !neighbour.hears {
            config += "  [neighbors.apply-policy.config]\n    default-export-policy = \"reject-route\"\n";
        }
        for (family, wanted) in ["ipv4-unicast", "ipv6-unicast"].into_iter().zip(neighbour.families) {
            if wanted {
                config += &format!(
                    "  [[neighbors.afi-safis]]\n    [neighbors.afi-safis.config]\n      afi-safi-name = \"{family}\"\n"
                );
                if settings.restart_time.is_some() {
                    config += "    [neighbors.afi-safis.mp-graceful-restart.config]\n      enabled = true\n";
                }
            }
        }
    }
    config
}

/// Its file names no routes.
pub(super) fn originate(gobgp: &Gobgp) {
    for (family, route, next_hop) in [("ipv4", PEER_ROUTE4, PEER_IPV4), ("ipv6", PEER_ROUTE6, PEER_IPV6)] {
        gobgp.announce(
            family,
            &format!("{route} nexthop {next_hop} origin igp med 77 local-pref 150 community 65001:7"),
        );
    }
}
