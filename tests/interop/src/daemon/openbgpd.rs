//! OpenBGPD's words. Options in braces stand on lines of their own.

use super::Settings;
use crate::{PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6};

pub(super) fn config(settings: &Settings) -> String {
    let mut config = format!(
        "AS {}\nrouter-id {PEER_IPV4}\nlisten on {PEER_IPV4}\nlisten on {PEER_IPV6}\nfib-update no\n\
         connect-retry 1\nreject as-set no\n",
        settings.asn
    );
    if settings.originates {
        for route in [PEER_ROUTE4, PEER_ROUTE6] {
            config += &format!("network {route} set {{ metric 77 localpref 150 community 65001:7 }}\n");
        }
    }
    for neighbour in &settings.neighbours {
        config += &format!(
            "neighbor {} {{\n  remote-as {}\n  local-address {}\n  holdtime {}\n",
            neighbour.address,
            neighbour.asn,
            neighbour.local(),
            neighbour.hold_time
        );
        if let Some(password) = &neighbour.password {
            config += &format!("  tcp md5sig password {password}\n");
        }
        for (set, words) in [
            (neighbour.ttl_security, "ttl-security yes"),
            (neighbour.passive, "passive"),
            (!neighbour.four_octet, "announce as-4byte no"),
            (neighbour.enhanced_refresh, "announce enhanced refresh yes"),
        ] {
            if set {
                config += &format!("  {words}\n");
            }
        }
        for (family, wanted) in ["IPv4", "IPv6"].into_iter().zip(neighbour.families) {
            config += &format!("  announce {family} {}\n", if wanted { "unicast" } else { "none" });
        }
        config += "}\n";
    }
    config += "allow from any\nallow to any\n";
    for neighbour in &settings.neighbours {
        if !neighbour.hears {
            config += &format!("deny to {}\n", neighbour.address);
        } else if neighbour.asn != settings.asn {
            config += &format!("match to {} set nexthop self\n", neighbour.address);
        }
    }
    config
}
