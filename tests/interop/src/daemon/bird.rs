//! BIRD's words.

use test_support::bird::Bird;

use super::Settings;
use crate::{PEER_IPV4, PEER_ROUTE4, PEER_ROUTE6};

pub(super) fn config(settings: &Settings) -> String {
    let mut config = format!(
        "log stderr all;\ndebug protocols {{ events, packets }};\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n"
    );
    if settings.originates {
        config += &format!(
            "protocol static s4 {{ ipv4; route {PEER_ROUTE4} blackhole; }}\n\
             protocol static s6 {{ ipv6; route {PEER_ROUTE6} blackhole; }}\n"
        );
    }
    // LOCAL_PREF is not said to another AS.
    config += "filter own { if source = RTS_STATIC then { bgp_med = 77; bgp_local_pref = 150;\n\
               bgp_community.add((65001, 7)); } accept; }\n";
    for neighbour in &settings.neighbours {
        let name = protocol(settings, &neighbour.address);
        let mut extra = String::new();
        if let Some(time) = settings.restart_time {
            extra += &format!(" graceful restart on; graceful restart time {time};");
        }
        if let Some(password) = &neighbour.password {
            extra += &format!(" password \"{password}\";");
        }
        for (set, words) in [
            (neighbour.ttl_security, "ttl security on;"),
            (neighbour.passive, "passive on;"),
            (!neighbour.four_octet, "enable as4 off;"),
        ] {
            if set {
                extra += &format!(" {words}");
            }
        }
        let external = neighbour.asn != settings.asn;
        let next_hop = if external { " next hop self;" } else { "" };
        let export = if neighbour.hears { "filter own" } else { "none" };
        for (family, wanted) in ["ipv4", "ipv6"].into_iter().zip(neighbour.families) {
            if wanted {
                extra += &format!("\n  {family} {{ import all; export {export};{next_hop} }};");
            }
        }
        config += &format!(
            "protocol bgp {name} {{ local {} as {}; neighbor {} as {}; hold time {}; connect delay time 1;\n  \
             connect retry time 1; error wait time 1, 2;{extra} }}\n",
            neighbour.local(),
            settings.asn,
            neighbour.address,
            neighbour.asn,
            neighbour.hold_time,
        );
    }
    config
}

/// What the session with a neighbour is called.
pub(super) fn protocol(settings: &Settings, address: &str) -> String {
    let at = settings.neighbours.iter().position(|neighbour| neighbour.address == address);
    format!("n{}", at.expect("one of its neighbours"))
}

pub(super) fn announcements(bird: &Bird, protocol: &str) -> Result<u64, String> {
    let answer = bird.ask(&format!("show protocols all {protocol}"));
    let counts = answer.lines().filter_map(|line| line.trim().strip_prefix("Import updates:"));
    let mut counts = counts.filter_map(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).peekable();
    if counts.peek().is_some() { Ok(counts.sum()) } else { Err(answer) }
}
