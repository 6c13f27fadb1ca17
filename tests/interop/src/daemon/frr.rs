//! FRR's words.

use super::Settings;
use crate::{PEER_IPV4, PEER_ROUTE4, PEER_ROUTE6};

pub(super) fn config(settings: &Settings) -> String {
    let mut config = format!(
        "log stdout informational\nroute-map own permit 10\n set metric 77\n set local-preference 150\n \
         set community 65001:7\nexit\nroute-map none deny 10\nexit\nrouter bgp {}\n bgp router-id {PEER_IPV4}\n \
         no bgp ebgp-requires-policy\n no bgp network import-check\n no bgp default ipv4-unicast\n",
        settings.asn
    );
    if let Some(time) = settings.restart_time {
        config += &format!(
            " bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n \
             bgp graceful-restart restart-time {time}\n"
        );
    }
    for neighbour in &settings.neighbours {
        let mut say = |words: &str| config += &format!(" neighbor {} {words}\n", neighbour.address);
        say(&format!("remote-as {}", neighbour.asn));
        say(&format!("update-source {}", neighbour.local()));
        say(&format!("timers {} {}", neighbour.hold_time.div_ceil(3), neighbour.hold_time));
        say("timers connect 1");
        say("advertisement-interval 0");
        if let Some(password) = &neighbour.password {
            say(&format!("password {password}"));
        }
        if neighbour.ttl_security {
            say("ttl-security hops 1");
        }
        if neighbour.passive {
            say("passive");
        }
    }
    for (at, (family, route)) in [("ipv4", PEER_ROUTE4), ("ipv6", PEER_ROUTE6)].into_iter().enumerate() {
        config += &format!(" address-family {family} unicast\n");
        if settings.originates {
            config += &format!("  network {route} route-map own\n");
        }
        for neighbour in settings.neighbours.iter().filter(|neighbour| neighbour.families[at]) {
            config += &format!("  neighbor {} activate\n", neighbour.address);
            if neighbour.asn != settings.asn {
                config += &format!("  neighbor {} next-hop-self\n", neighbour.address);
            }
            if !neighbour.hears {
                config += &format!("  neighbor {} route-map none out\n", neighbour.address);
            }
        }
        config += " exit-address-family\n";
    }
    config
}
