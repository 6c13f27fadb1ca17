//! What protects sessions, against BIRD and FRR: TCP MD5 keys and their rotation, TTL security, TTLs over several hops,
//! neighbours by prefix.

use interop::{OUR_ASN, OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6};
use test_support::bird::Bird;
use test_support::frr::Frr;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, FRR, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

const KEY: &str = "correct-horse";
const OTHER_KEY: &str = "battery-staple";
const OUR_ROUTE: &str = "10.1.0.0/24";
const BIRD_ASN: u32 = 65_001;
const FRR_ASN: u32 = 65_002;

fn hosts(lab: &Lab) -> (Host, Host) {
    let ours = lab.host("ours", &[&format!("{OUR_IPV4}/24"), &format!("{OUR_IPV6}/64")]);
    let theirs = lab.host("theirs", &[&format!("{PEER_IPV4}/24"), &format!("{PEER_IPV6}/64")]);
    (ours, theirs)
}

/// The path of a file with a key.
fn key_file(host: &Host, key: &str) -> String {
    let path = host.dir().join("peer.key");
    std::fs::write(&path, format!("{key}\n")).expect("the host's folder is ours");
    path.display().to_string()
}

/// A speaker's file with one neighbour for each family; `settings` are those of both.
fn file(asn: u32, settings: &str) -> String {
    head(&format!(
        "  - {{ address: {PEER_IPV4}, asn: {asn}, connect-retry: 1, {settings} }}\n  \
         - {{ address: \"{PEER_IPV6}\", asn: {asn}, connect-retry: 1, families: [ipv6-unicast], {settings} }}\n"
    ))
}

fn head(neighbors: &str) -> String {
    format!(
        "asn: {OUR_ASN}\nrouter-id: {OUR_IPV4}\nlisten: [\"{OUR_IPV4}:179\", \"[{OUR_IPV6}]:179\"]\n\
         require-policy: false\noriginate: [{{ prefix: {OUR_ROUTE}, next-hop: self }}]\nneighbors:\n{neighbors}"
    )
}

fn signed(path: &str) -> String {
    format!("md5-password-file: {path}")
}

/// BIRD with a session for each family; `settings` are those of both.
fn bird_config(settings: &str) -> String {
    format!(
        "log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n\
         protocol static s4 {{ ipv4; route {PEER_ROUTE4} blackhole; }}\n\
         protocol static s6 {{ ipv6; route {PEER_ROUTE6} blackhole; }}\n\
         template bgp T {{ connect delay time 1; connect retry time 1; error wait time 1, 2; hold time 9; \
         keepalive time 3; {settings} }}\n\
         protocol bgp sut4 from T {{ local {PEER_IPV4} as {BIRD_ASN}; neighbor {OUR_IPV4} as {OUR_ASN};\n\
         \x20 ipv4 {{ import all; export where source = RTS_STATIC; }}; }}\n\
         protocol bgp sut6 from T {{ local {PEER_IPV6} as {BIRD_ASN}; neighbor {OUR_IPV6} as {OUR_ASN};\n\
         \x20 ipv6 {{ import all; export where source = RTS_STATIC; }}; }}\n"
    )
}

/// FRR at the usual address with a session for each family; `settings` are lines about the group `P` of both.
fn frr_config(settings: &[&str]) -> String {
    let settings: String = settings.iter().map(|line| format!(" neighbor P {line}\n")).collect();
    format!(
        "log stdout informational\nrouter bgp {FRR_ASN}\n bgp router-id {PEER_IPV4}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n no bgp default ipv4-unicast\n timers bgp 3 9\n neighbor P peer-group\n \
         neighbor P remote-as {OUR_ASN}\n neighbor P timers connect 1\n neighbor P advertisement-interval 0\n\
         {settings} neighbor {OUR_IPV4} peer-group P\n neighbor {OUR_IPV6} peer-group P\n address-family ipv4 unicast\n  \
         network {PEER_ROUTE4}\n  neighbor {OUR_IPV4} activate\n exit-address-family\n address-family ipv6 unicast\n  \
         network {PEER_ROUTE6}\n  neighbor {OUR_IPV6} activate\n exit-address-family\n"
    )
}

/// Changes settings of FRR's group while it runs.
fn frr_set(host: &Host, line: &str) {
    let (dir, router) = (host.dir().to_string_lossy().into_owned(), format!("router bgp {FRR_ASN}"));
    #[rustfmt::skip]
    let argv = [
        "vtysh", "--vty_socket", &dir, "-d", "bgpd", "-c", "configure terminal", "-c", &router, "-c",
        &format!("neighbor P {line}"),
    ];
    host.succeed(&argv);
}

fn both_established(speaker: &Speaker) {
    for address in [PEER_IPV4, PEER_IPV6] {
        speaker.await_established(address);
    }
}

/// How many segments a host has dropped for this reason.
fn dropped(host: &Host, reason: &str) -> u64 {
    let text = host.succeed(&["cat", "/proc/net/netstat"]);
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        if let Some(at) = names.split(' ').position(|word| word == reason) {
            return values.split(' ').nth(at).and_then(|value| value.parse().ok()).expect("a counter");
        }
    }
    panic!("no counter {reason}");
}

/// Waits until a host has dropped some more for this reason.
fn await_dropped(host: &Host, reason: &str, more: u64) {
    let before = dropped(host, reason);
    wait::until(&format!("{} drops for {reason}", host.name()), || {
        let now = dropped(host, reason);
        if now >= before + more { Ok(()) } else { Err(format!("{before}, {now}")) }
    });
}

/// No key is in anything that the speaker has said.
fn nothing_is_told(speaker: &Speaker) {
    let said = speaker.log() + &speaker.try_ask(&["peers"]).expect("it runs").to_string();
    for key in [KEY, OTHER_KEY] {
        assert!(!said.contains(key), "{said}");
    }
}

fn established_count(speaker: &Speaker, address: &str) -> u64 {
    speaker.peer(address).expect("a neighbour")["established-transitions"].as_u64().expect("a number")
}

#[test]
fn md5_bird_over_both_families_whoever_connects() {
    if !available("interop security bird md5", &[BIRD, IP]) {
        return;
    }
    for (ours, theirs) in [("passive: false", "passive on;"), ("passive: true", ""), ("passive: false", "")] {
        Lab::run(move |lab| {
            let (here, there) = hosts(lab);
            let key = signed(&key_file(&here, KEY));
            let bird = Bird::start(&there, &bird_config(&format!("password \"{KEY}\"; {theirs}")));
            let speaker = Speaker::start(&here, &file(BIRD_ASN, &format!("{key}, {ours}")));
            both_established(&speaker);
            let peer = speaker.await_established(PEER_IPV4);
            assert_eq!(peer["tcp-password-enabled"], true, "{peer}");
            bird.await_route(OUR_ROUTE, &[&format!("BGP.next_hop: {OUR_IPV4}")]);
            nothing_is_told(&speaker);
        });
    }
}

#[test]
fn md5_frr_over_both_families_whoever_connects() {
    if !available("interop security frr md5", &[FRR, IP]) {
        return;
    }
    let key = format!("password {KEY}");
    for (ours, theirs) in [
        ("passive: false", vec![key.clone(), "passive".to_owned()]),
        ("passive: true", vec![key.clone()]),
        ("passive: false", vec![key]),
    ] {
        Lab::run(move |lab| {
            let (here, there) = hosts(lab);
            let key = signed(&key_file(&here, KEY));
            let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
            let frr = Frr::start(&there, &frr_config(&theirs));
            let speaker = Speaker::start(&here, &file(FRR_ASN, &format!("{key}, {ours}")));
            both_established(&speaker);
            frr.await_route("ipv4", OUR_ROUTE);
            nothing_is_told(&speaker);
        });
    }
}

#[test]
fn md5_a_wrong_key_never_connects_to_bird_or_from_it() {
    if !available("interop security bird wrong key", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (here, there) = hosts(lab);
        let path = key_file(&here, OTHER_KEY);
        let _bird = Bird::start(&there, &bird_config(&format!("password \"{KEY}\";")));
        let mut speaker = Speaker::start(&here, &file(BIRD_ASN, &signed(&path)));
        // Each end drops what the other sends.
        await_dropped(&here, "TCPMD5Failure", 4);
        await_dropped(&there, "TCPMD5Failure", 4);
        for address in [PEER_IPV4, PEER_IPV6] {
            let peer = speaker.await_peer(address, "tells why not", |peer| {
                peer["last-error"].as_str().is_some_and(|error| error.contains("the passwords may differ"))
            });
            assert_eq!(peer["established-transitions"], 0, "{peer}");
        }
        // No key is as wrong as another one.
        speaker.reload(&file(BIRD_ASN, "passive: false"));
        await_dropped(&there, "TCPMD5NotFound", 2);
        await_dropped(&here, "TCPMD5Unexpected", 2);
        assert_eq!(established_count(&speaker, PEER_IPV4) + established_count(&speaker, PEER_IPV6), 0);
        key_file(&here, KEY);
        speaker.reload(&file(BIRD_ASN, &signed(&path)));
        both_established(&speaker);
        nothing_is_told(&speaker);
    });
}

#[test]
fn md5_keys_change_with_one_reset_of_that_neighbour_and_none_of_another() {
    if !available("interop security key rotation", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (here, there) = hosts(lab);
        // FRR at a third host, with a key that stays.
        let third = "192.0.2.77";
        let aside = lab.host("aside", &[&format!("{third}/24"), "2001:db8:1::77/64"]);
        let _frr = Frr::start(&aside, &frr_config(&[&format!("password {OTHER_KEY}")]));
        let bird = Bird::start(&there, &bird_config(&format!("password \"{KEY}\";")));
        let path = key_file(&here, KEY);
        let aside_key = here.dir().join("aside.key");
        std::fs::write(&aside_key, OTHER_KEY).expect("the host's folder is ours");
        let file = file(BIRD_ASN, &signed(&path))
            + &format!(
                "  - {{ address: {third}, asn: {FRR_ASN}, connect-retry: 1, {} }}\n",
                signed(&aside_key.to_string_lossy())
            );
        let mut speaker = Speaker::start(&here, &file);
        both_established(&speaker);
        speaker.await_established(third);

        // The same file; only what is in the key's file has changed. BIRD follows a little later.
        key_file(&here, "another-key-for-bird");
        speaker.reload(&file);
        speaker.await_peer(PEER_IPV4, "has ended", |peer| peer["session-state"] != "established");
        bird.reconfigure(&bird_config("password \"another-key-for-bird\";"));
        both_established(&speaker);
        for address in [PEER_IPV4, PEER_IPV6] {
            assert_eq!(established_count(&speaker, address), 2, "{address}");
        }
        assert_eq!(established_count(&speaker, third), 1);
        // Reading the same again does nothing.
        speaker.reload(&file);
        assert_eq!(speaker.await_established(PEER_IPV4)["established-transitions"], 2);
        nothing_is_told(&speaker);
    });
}

#[test]
fn md5_keys_change_with_frr() {
    if !available("interop security frr key rotation", &[FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (here, there) = hosts(lab);
        let path = key_file(&here, KEY);
        let _frr = Frr::start(&there, &frr_config(&[&format!("password {KEY}")]));
        let mut speaker = Speaker::start(&here, &file(FRR_ASN, &signed(&path)));
        both_established(&speaker);
        // This time the neighbour goes first.
        frr_set(&there, &format!("password {OTHER_KEY}"));
        speaker.await_peer(PEER_IPV4, "has ended", |peer| peer["session-state"] != "established");
        key_file(&here, OTHER_KEY);
        speaker.reload(&file(FRR_ASN, &signed(&path)));
        both_established(&speaker);
        nothing_is_told(&speaker);
    });
}

#[test]
fn gtsm_with_bird_and_who_has_it_not_is_not_heard() {
    if !available("interop security bird gtsm", &[BIRD, IP]) {
        return;
    }
    for passive in ["passive: true", "passive: false"] {
        Lab::run(move |lab| {
            let (here, there) = hosts(lab);
            let bird = Bird::start(&there, &bird_config("multihop 64;"));
            let speaker = Speaker::start(&here, &file(BIRD_ASN, &format!("ttl-security: 1, {passive}")));
            // BIRD's TTL is 64: as if it were far away.
            let reason = if passive.ends_with("true") { None } else { Some("TCPMinTTLDrop") };
            match reason {
                Some(reason) => await_dropped(&here, reason, 4),
                None => wait::until_true("connections from too far away are refused", || {
                    speaker.log().contains("a connection from too far away")
                }),
            }
            for address in [PEER_IPV4, PEER_IPV6] {
                assert_eq!(established_count(&speaker, address), 0, "{address}");
            }
            bird.reconfigure(&bird_config("direct; ttl security on;"));
            both_established(&speaker);
            let peer = speaker.await_established(PEER_IPV6);
            assert_eq!(peer["ttl-security"], 1, "{peer}");
        });
    }
}

#[test]
fn gtsm_with_frr_and_md5_on_top() {
    if !available("interop security frr gtsm", &[FRR, IP]) {
        return;
    }
    for (ours, theirs) in [("passive: true", None), ("passive: false", Some("passive"))] {
        Lab::run(move |lab| {
            let (here, there) = hosts(lab);
            let path = key_file(&here, KEY);
            let password = format!("password {KEY}");
            let mut lines = vec!["ttl-security hops 1", &password];
            lines.extend(theirs);
            let frr = Frr::start(&there, &frr_config(&lines));
            let settings = format!("{}, {ours}", signed(&path));
            let mut speaker = Speaker::start(&here, &file(FRR_ASN, &settings));
            // Ours is 1 at first, which FRR doesn't hear.
            await_dropped(&there, "TCPMinTTLDrop", 4);
            // FRR may have heard our OPEN before it set its bound, and answered it; but no more than that.
            let answer = frr.ask(&format!("show bgp neighbors {OUR_IPV4} json")).expect("it runs");
            assert_eq!(answer[OUR_IPV4]["connectionsEstablished"], 0, "{answer}");
            speaker.reload(&file(FRR_ASN, &format!("{settings}, ttl-security: 1")));
            both_established(&speaker);
        });
    }
}

#[test]
fn multihop_over_a_router_with_bird() {
    if !available("interop security multihop", &[BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        // All are on one link, but a packet from one to the other passes the router, which counts.
        let far = "198.51.100.254";
        let here = lab.host("ours", &[&format!("{OUR_IPV4}/24")]);
        let there = lab.host("theirs", &[&format!("{far}/24")]);
        let router = lab.host("router", &["192.0.2.99/24", "198.51.100.99/24"]);
        for knob in ["ip_forward=1", "conf.all.send_redirects=0", "conf.eth0.send_redirects=0"] {
            router.succeed(&["sysctl", "-qw", &format!("net.ipv4.{knob}")]);
        }
        here.succeed(&["ip", "route", "add", "198.51.100.0/24", "via", "192.0.2.99"]);
        there.succeed(&["ip", "route", "add", "192.0.2.0/24", "via", "198.51.100.99"]);
        let config = |settings: &str| {
            format!(
                "log stderr all;\nrouter id {far};\nprotocol device {{ }}\n\
                 protocol static s4 {{ ipv4; route {PEER_ROUTE4} blackhole; }}\n\
                 protocol bgp far {{ connect delay time 1; connect retry time 1; error wait time 1, 2; {settings};\n\
                 \x20 local {far} as {BIRD_ASN}; neighbor {OUR_IPV4} as {OUR_ASN};\n\
                 \x20 ipv4 {{ import all; export where source = RTS_STATIC; }}; }}\n"
            )
        };
        let ours = |settings: &str| {
            head(&format!("  - {{ address: {far}, asn: {BIRD_ASN}, connect-retry: 1, {settings} }}\n"))
                .replace(&format!(", \"[{OUR_IPV6}]:179\""), "")
        };
        let bird = Bird::start(&there, &config("multihop 2"));
        let mut speaker = Speaker::start(&here, &ours("passive: false"));
        // A neighbour is directly connected, unless something else is said.
        speaker.await_peer(far, "tells why not", |peer| peer["last-error"].is_string());
        assert_eq!(established_count(&speaker, far), 0);
        speaker.reload(&ours("multihop: 2"));
        let peer = speaker.await_established(far);
        assert_eq!(peer["ebgp-multihop-ttl"], 2, "{peer}");
        bird.await_route(OUR_ROUTE, &[&format!("BGP.next_hop: {OUR_IPV4}")]);

        // TTL security counts hops too.
        bird.reconfigure(&config("multihop 2; ttl security on"));
        speaker.reload(&ours("ttl-security: 1"));
        await_dropped(&here, "TCPMinTTLDrop", 2);
        assert_eq!(established_count(&speaker, far), 1);
        speaker.reload(&ours("ttl-security: 2"));
        speaker.await_established(far);
    });
}

#[test]
fn a_prefix_of_neighbours_with_a_key_takes_bird_and_frr_and_no_more_than_its_limit() {
    if !available("interop security dynamic neighbours", &[BIRD, FRR, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (here, there) = hosts(lab);
        let aside = lab.host("aside", &["192.0.2.77/24", "2001:db8:1::77/64"]);
        let key = signed(&key_file(&here, KEY));
        let ranges = |limit: u32| {
            head(&format!(
                "  - {{ prefix: 192.0.2.0/24, asn: external, limit: {limit}, {key} }}\n  \
                 - {{ prefix: \"2001:db8:1::/64\", asn: external, limit: {limit}, families: [ipv6-unicast], {key} }}\n"
            ))
        };
        let mut speaker = Speaker::start(&here, &ranges(1));
        assert_eq!(speaker.try_ask(&["peers"]), Ok(serde_json::json!([])), "nobody is there yet");
        let bird = Bird::start(&there, &bird_config(&format!("password \"{KEY}\";")));
        both_established(&speaker);
        let peer = speaker.await_established(PEER_IPV4);
        assert_eq!((&peer["dynamic-prefix"], &peer["peer-asn"]), (&"192.0.2.0/24".into(), &BIRD_ASN.into()));
        bird.await_route(OUR_ROUTE, &[&format!("BGP.next_hop: {OUR_IPV4}")]);

        let _frr = Frr::start(&aside, &frr_config(&[&format!("password {KEY}")]));
        wait::until_true("FRR is refused for want of room", || {
            speaker.log().contains("there are as many dynamic neighbors as may be")
        });
        assert!(speaker.peer("192.0.2.77").is_err());
        speaker.reload(&ranges(2));
        speaker.await_established("192.0.2.77");
        speaker.await_established("2001:db8:1::77");
        assert_eq!(established_count(&speaker, PEER_IPV4), 1);
        nothing_is_told(&speaker);
    });
}
