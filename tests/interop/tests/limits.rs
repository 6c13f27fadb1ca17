//! Prefix limits against BIRD 2: ours, with each action, and BIRD's own.

use interop::{OUR_IPV4, PEER_IPV4};
use serde_json::Value;
use test_support::bird::Bird;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

const BIRD_ASN: u32 = 65_001;

fn hosts(lab: &Lab) -> (Host, Host) {
    (lab.host("sut", &[&format!("{OUR_IPV4}/24")]), lab.host("tor", &[&format!("{PEER_IPV4}/24")]))
}

/// A speaker's file with BIRD as its neighbour and these own prefixes.
fn file(limit: &str, own: u32) -> String {
    let own: Vec<String> = (0..own).map(|n| format!("{{ prefix: 198.51.{n}.0/24 }}")).collect();
    format!(
        "asn: 65010\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\"]\nrequire-policy: false\n\
         neighbors:\n  - {{ address: {PEER_IPV4}, asn: {BIRD_ASN}, connect-retry: 1, {limit} }}\noriginate: [{}]\n",
        own.join(", ")
    )
}

fn limit(action: &str) -> String {
    format!("max-prefixes: {{ ipv4-unicast: {{ limit: 10, {action} }} }}")
}

/// BIRD with eight prefixes of `few` and seven of `extra`, which is switched off at first.
fn bird(channel: &str) -> String {
    let routes = |second: u8, count: u8| -> String {
        (0..count).map(|n| format!("route 10.{second}.{n}.0/24 blackhole; ")).collect()
    };
    format!(
        "log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n\
         protocol static few {{ ipv4; {} }}\nprotocol static extra {{ disabled; ipv4; {} }}\n\
         protocol bgp sut {{ local {PEER_IPV4} as {BIRD_ASN}; neighbor {OUR_IPV4} as 65010; connect delay time 1;\n\
         \x20 connect retry time 1; error wait time 1, 2; error forget time 1;\n\
         \x20 ipv4 {{ import all; export where source = RTS_STATIC; {channel} }}; }}\n",
        routes(1, 8),
        routes(2, 7)
    )
}

fn received(peer: &Value) -> u64 {
    peer["families"][0]["received"].as_u64().unwrap_or_default()
}

fn condition(peer: &Value) -> &str {
    peer["families"][0]["condition"].as_str().unwrap_or_default()
}

#[test]
fn a_warning_is_logged_and_shown_and_nothing_else_happens() {
    if !available("interop bird prefix limit, warn", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = hosts(lab);
        let bird = Bird::start(&theirs, &bird(""));
        let sut = Speaker::start(&ours, &file(&limit("action: warn"), 0));
        let peer = sut.await_peer(PEER_IPV4, "has eight prefixes", |peer| received(peer) == 8);
        assert_eq!(condition(&peer), "8 prefixes, close to the limit of 10");
        let _ = bird.ask("enable extra");
        let peer = sut.await_peer(PEER_IPV4, "has fifteen prefixes", |peer| received(peer) == 15);
        assert_eq!(condition(&peer), "15 prefixes, more than the limit of 10");
        assert_eq!(peer["families"][0]["prefix-limit"]["limit"], 10);
        assert_eq!(peer["families"][0]["prefix-limit"]["action"], "warn");
        let _ = bird.ask("disable extra");
        let peer = sut.await_peer(PEER_IPV4, "has eight prefixes again", |peer| received(peer) == 8);
        assert_eq!(peer["established-transitions"], 1, "{peer}");
        for line in ["close to the prefix limit", "more prefixes than the limit"] {
            assert_eq!(sut.log().matches(line).count(), 1, "{line}: {}", sut.log());
        }
    });
}

#[test]
fn what_is_beyond_the_limit_is_discarded_and_fetched_when_there_is_room() {
    if !available("interop bird prefix limit, discard", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = hosts(lab);
        let bird = Bird::start(&theirs, &bird(""));
        let sut = Speaker::start(&ours, &file(&limit("action: discard"), 0));
        sut.await_peer(PEER_IPV4, "has eight prefixes", |peer| received(peer) == 8);
        let _ = bird.ask("enable extra");
        let peer = sut.await_peer(PEER_IPV4, "lacks five", |peer| {
            peer["families"][0]["prefix-limit"]["discarded"] == 5
        });
        assert_eq!((received(&peer), &peer["session-state"]), (10, &Value::from("established")));
        assert_eq!(condition(&peer), "5 announcements beyond the limit of 10 prefixes were not kept");
        let _ = bird.ask("disable few");
        let peer = sut.await_peer(PEER_IPV4, "has the other seven", |peer| {
            received(peer) == 7 && peer["families"][0]["prefix-limit"]["discarded"] == 0
        });
        assert_eq!(peer["established-transitions"], 1, "{peer}");
        for n in 0..7 {
            sut.await_route("ipv4-unicast", &format!("10.2.{n}.0/24"));
        }
    });
}

#[test]
fn a_reset_tells_bird_and_ends_after_its_time() {
    if !available("interop bird prefix limit, reset", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = hosts(lab);
        let bird = Bird::start(&theirs, &bird(""));
        let sut = Speaker::start(&ours, &file(&limit("action: reset, restart: 3"), 0));
        sut.await_peer(PEER_IPV4, "has eight prefixes", |peer| received(peer) == 8);
        let _ = bird.ask("enable extra");
        let peer = sut.await_peer(PEER_IPV4, "is idle", |peer| peer["session-state"] == "idle");
        let reason = peer["state-reason"].as_str().unwrap_or_default();
        let expected = "more than 10 prefixes of ipv4-unicast; sent Cease: Maximum Number of Prefixes Reached (6/1); kept idle for";
        assert!(reason.starts_with(expected), "{peer}");
        wait::until("BIRD has been told why", || {
            let protocol = bird.ask("show protocols all sut");
            let log = bird.process().log();
            if log.contains("Received: Maximum number of prefixes reached") {
                Ok(())
            } else {
                Err(protocol + &log)
            }
        });
        let _ = bird.ask("disable extra");
        let peer = sut.await_peer(PEER_IPV4, "is up again with eight", |peer| {
            received(peer) == 8 && peer["session-state"] == "established"
        });
        assert!(peer["established-transitions"].as_u64() >= Some(2), "{peer}");
    });
}

#[test]
fn birds_own_limit_is_shown_in_words() {
    if !available("interop bird receive limit", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = hosts(lab);
        let _bird = Bird::start(&theirs, &bird("receive limit 5 action restart;"));
        let sut = Speaker::start(&ours, &file("hold-time: 90", 6));
        let peer = sut.await_peer(PEER_IPV4, "was refused for too much", |peer| {
            peer["last-error"].as_str().is_some_and(|error| error.contains("Maximum Number of Prefixes"))
        });
        let error = peer["last-error"].as_str().unwrap_or_default();
        assert!(error.starts_with("received Cease: Maximum Number of Prefixes Reached (6/1)"), "{peer}");
    });
}
