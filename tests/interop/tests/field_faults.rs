//! What went wrong in other speakers in the field, said to ours over a real session: fourteen messages and four
//! sequences of events. Two more, F15 and F16, are tests of `bgp-core`, as they are about time.
//!
//! Every case has a neighbour of its own that first announces 203.0.113.0/24 and 198.51.100.0/24. A bystander is
//! Established all the time and must not notice.

use std::net::Ipv4Addr;
use std::time::Duration;

use interop::raw::{self, KEEPALIVE, Raw, hex, told};
use interop::speaker::{Speaker, neighbour, peer, socket};
use test_support::lab::Lab;
use test_support::programs::{IP, available};

const OPEN_A: &str = "ffffffffffffffffffffffffffffffff00390104fdfc005ac00002141c0206010400010001020601040002000102020200020641040000fdfc";
const OPEN_2: &str = "ffffffffffffffffffffffffffffffff00290104fdfc005ac00002140c020601040001000102020200";
const BASE: &str =
    "ffffffffffffffffffffffffffffffff003302000000144001010040020602010000fdfc400304c000021418cb007118c63364";
const BASE_2: &str =
    "ffffffffffffffffffffffffffffffff00310200000012400101004002040201fdfc400304c000021418cb007118c63364";
const BASE_6: &str = "ffffffffffffffffffffffffffffffff0043020000002c800e1c0002011020010db8000100000000000000000020003020010db800ff4001010040020602010000fdfc";

/// The prefix of the faulty message, and the one that nobody touches.
const FAULTY: &str = "203.0.113.0/24";
const OTHER: &str = "198.51.100.0/24";
const ASN: u32 = 65020;

/// What must become of a message.
enum Expect {
    /// The prefix is gone, the session stays.
    Withdrawn,
    /// The route is there with MED 77, the session stays.
    Accepted,
    /// NOTIFICATION with code, subcode and data; the session ends.
    Reset(u8, u8, &'static str),
}
use Expect::{Accepted, Reset, Withdrawn};

struct Case {
    name: &'static str,
    open: &'static str,
    before: &'static [&'static str],
    input: &'static str,
    expect: Expect,
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case { name: "F01 AS4_PATH of length 1", open: OPEN_A, before: &[BASE], expect: Accepted,
        input: "ffffffffffffffffffffffffffffffff003a020000001fc01101024001010040020602010000fdfc400304c00002148004040000004d18cb0071" },
    Case { name: "F01 on a 2-octet session", open: OPEN_2, before: &[BASE_2], expect: Accepted,
        input: "ffffffffffffffffffffffffffffffff0038020000001dc0110102400101004002040201fdfc400304c00002148004040000004d18cb0071" },
    Case { name: "F02 ORIGIN without Transitive", open: OPEN_A, before: &[BASE], expect: Withdrawn,
        input: "ffffffffffffffffffffffffffffffff0036020000001b0001010040020602010000fdfc400304c00002148004040000004d18cb0071" },
    Case { name: "F03 last attribute too long", open: OPEN_A, before: &[BASE], expect: Withdrawn,
        input: "ffffffffffffffffffffffffffffffff0036020000001b4001010040020602010000fdfc400304c0000214c00820fdfc000118cb0071" },
    Case { name: "F04 tunnel encapsulation overrun", open: OPEN_A, before: &[BASE], expect: Withdrawn,
        input: "ffffffffffffffffffffffffffffffff004302000000284001010040020602010000fdfc400304c00002148004040000004dc0170a0008000604bdc600000118cb0071" },
    Case { name: "F05 unknown transitive attribute", open: OPEN_A, before: &[BASE], expect: Accepted,
        input: "ffffffffffffffffffffffffffffffff0059020000003e4001010040020602010000fdfc400304c00002148004040000004de0ff20a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf18cb0071" },
    Case { name: "F06 no attributes", open: OPEN_A, before: &[BASE], expect: Withdrawn,
        input: "ffffffffffffffffffffffffffffffff001b020000000018cb0071" },
    Case { name: "F07 MP next hop too long", open: OPEN_A, before: &[BASE, BASE_6],
        expect: Reset(3, 9, "800e0800020120200 10db8"),
        input: "ffffffffffffffffffffffffffffffff002f0200000018800e080002012020010db84001010040020602010000fdfc" },
    Case { name: "F09 three zero octets", open: OPEN_A, before: &[BASE], expect: Reset(3, 2, "000000"),
        input: "ffffffffffffffffffffffffffffffff0039020000001e4001010040020602010000fdfc400304c00002148004040000004d00000018cb0071" },
    Case { name: "F12 withdrawn length too large", open: OPEN_A, before: &[BASE], expect: Reset(3, 1, ""),
        input: "ffffffffffffffffffffffffffffffff002f0200f000144001010040020602010000fdfc400304c000021418cb0071" },
    Case { name: "F13 NEXT_HOP of length 0", open: OPEN_A, before: &[BASE], expect: Withdrawn,
        input: "ffffffffffffffffffffffffffffffff003202000000174001010040020602010000fdfc4003008004040000004d18cb0071" },
    Case { name: "F13 NEXT_HOP of length 3", open: OPEN_A, before: &[BASE], expect: Withdrawn,
        input: "ffffffffffffffffffffffffffffffff0035020000001a4001010040020602010000fdfc400303c000028004040000004d18cb0071" },
    Case { name: "F13 NEXT_HOP of length 5", open: OPEN_A, before: &[BASE], expect: Withdrawn,
        input: "ffffffffffffffffffffffffffffffff0037020000001c4001010040020602010000fdfc400305c0000214008004040000004d18cb0071" },
    Case { name: "F14 Prefix-SID cut short", open: OPEN_A, before: &[BASE], expect: Accepted,
        input: "ffffffffffffffffffffffffffffffff003e02000000234001010040020602010000fdfc400304c00002148004040000004dc02805010007000018cb0071" },
];

/// The first of the cases' neighbours; those of F08, F10 and F11 come before it.
const FIRST: u8 = 101;
const BYSTANDER: u8 = 20;
const RECEIVER: u8 = 21;

/// Says a route that comes after everything else, and waits until it is there.
fn mark(speaker: &Speaker, raw: &mut Raw, last: u8, four_octet: bool) {
    let path = if four_octet { "020602010000fdfc" } else { "02040201fdfc" };
    let attributes = hex(&format!("40010100 40{path} 400304c0000214"));
    raw.say(&raw::update(&[], &attributes, &[(Ipv4Addr::new(10, 99, last, 0), 24)]));
    speaker.await_heard(last, &format!("10.99.{last}.0/24"));
}

fn run(speaker: &Speaker, case: &Case, last: u8) {
    let name = case.name;
    let mut raw = Raw::connect(peer(last), socket());
    raw.establish(&hex(case.open));
    for message in case.before {
        raw.say(&hex(message));
    }
    speaker.await_heard(last, FAULTY);
    speaker.await_heard(last, OTHER);
    raw.say(&hex(case.input));
    match case.expect {
        Withdrawn | Accepted => {
            mark(speaker, &mut raw, last, case.open == OPEN_A);
            let faulty = speaker.heard(last, FAULTY);
            match (&case.expect, &faulty) {
                (Withdrawn, found) => assert!(found.is_none(), "{name}: {found:?}"),
                (_, Some(found)) => assert_eq!(found["med"], 77, "{name}: {found}"),
                (_, None) => panic!("{name}: the route is gone"),
            }
            assert!(speaker.heard(last, OTHER).is_some(), "{name}: {OTHER} is gone too");
            assert!(raw.is_open(), "{name}: the session has ended");
        }
        Reset(code, subcode, data) => {
            assert_eq!(raw.farewell(), Some((code, subcode, hex(data))), "{name}");
            speaker.await_received(last, 0);
        }
    }
}

#[test]
fn messages() {
    if !available("interop field faults, messages", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let lasts: Vec<u8> = (FIRST..).take(CASES.len()).chain([BYSTANDER, RECEIVER]).collect();
        let mut file = "neighbors:\n".to_owned();
        for last in &lasts {
            file += &neighbour(*last, if *last == RECEIVER { 65021 } else { ASN }, "");
        }
        let mut speaker = Speaker::start(lab, lasts, &file);
        let mut bystander = Raw::connect(peer(BYSTANDER), socket());
        bystander.establish(&hex(OPEN_A));
        let mut receiver = Raw::connect(peer(RECEIVER), socket());
        receiver.establish(&raw::open(65021, 0, peer(RECEIVER)));
        for (case, last) in CASES.iter().zip(FIRST..) {
            run(&speaker, case, last);
            assert!(speaker.process.ended().is_none(), "{}: {}", case.name, speaker.process.log());
        }
        assert!(bystander.is_open(), "the bystander's session has ended");
        assert_eq!(speaker.neighbour(BYSTANDER)["established-transitions"], 1);

        // F05: what isn't understood goes on, octet for octet, and nothing that was discarded does (F01, F14).
        let payload: Vec<u8> = (0xa0..0xc0).collect();
        let passed_on = raw::attribute(0xe0, 255, &payload);
        let contains = |octets: &[u8], part: &[u8]| octets.windows(part.len()).any(|window| window == part);
        let mut seen = false;
        while let Ok(Some(message)) = receiver.hear_within(Duration::from_millis(200)) {
            seen |= contains(&message.body, &passed_on);
            assert!(!contains(&message.body, &hex("40010100c01101")), "AS4_PATH went on");
        }
        assert!(seen, "the unknown attribute did not reach the other neighbour");

        let log = speaker.process.log();
        for what in ["withdrawn", "NEXT_HOP", "192.0.2.103", FAULTY] {
            assert!(log.contains(what), "the log doesn't tell {what}: {log}");
        }
    });
}

#[test]
fn f08_both_next_hops_of_ipv6() {
    if !available("interop field faults, F08", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let speaker = Speaker::start(lab, [FIRST], &format!("neighbors:\n{}", neighbour(FIRST, ASN, "")));
        let mut raw = Raw::connect(peer(FIRST), socket());
        raw.establish(&hex(OPEN_A));
        raw.say(&hex(BASE));
        raw.say(&hex(
            "ffffffffffffffffffffffffffffffff0053020000003c800e2c00020120200 10db8000100000000000000000020fe800000000000000000000000000020003020010db800ff4001010040020602010000fdfc",
        ));
        let path = speaker.await_heard(FIRST, "2001:db8:ff::/48");
        assert_eq!(path["next-hop"], "2001:db8:1::20", "{path}");
        assert!(raw.is_open());
        assert!(!speaker.process.log().contains("ERROR"), "{}", speaker.process.log());
    });
}

#[test]
fn f10_f11_odd_capabilities() {
    if !available("interop field faults, F10 and F11", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let lasts = [101, 102, 103, 104];
        let file = lasts.iter().fold("neighbors:\n".to_owned(), |file, last| {
            let more = if *last == 104 { ", add-path: { receive: true }" } else { "" };
            file + &neighbour(*last, ASN, more)
        });
        let speaker = Speaker::start(lab, lasts, &file);
        // Capability 75 with an inner length of 0, without anything, and with an inner length beyond its end.
        for (last, software) in [(101, "02034b0100"), (102, "02024b00"), (103, "02044b02ff41")] {
            let mut parameters = hex("0206010400010001020601040002000102020200020641040000fdfc");
            parameters.extend(hex(software));
            let mut body = hex("04fdfc005ac0000214");
            body.push(parameters.len() as u8);
            body.extend(parameters);
            let mut raw = Raw::connect(peer(last), socket());
            raw.establish(&raw::message(1, &body));
            speaker.await_state(last, "established");
        }
        let mut raw = Raw::connect(peer(104), socket());
        raw.establish(&hex("ffffffffffffffffffffffffffffffff00390104fdfc005ac00002141c020601040001000102020200020641040000fdfc0206450400010103"));
        // Without its fault it is read: an identifier of four octets, then a prefix.
        raw.say(&hex("ffffffffffffffffffffffffffffffff003b02000000144001010040020602010000fdfc400304c00002140000000118cb00710000000118c63364"));
        speaker.await_heard(104, FAULTY);
        speaker.await_heard(104, OTHER);
        raw.say(&hex("ffffffffffffffffffffffffffffffff003702000000144001010040020602010000fdfc400304c00002140000000118cb007100000002"));
        assert_eq!(raw.farewell(), Some((3, 10, vec![])));
    });
}

#[test]
fn f17_a_restarted_neighbour_connects_anew() {
    /// Graceful restart for 120 s with the N bit, IPv4 and IPv6 with F bits.
    const OPEN_G: &str = "ffffffffffffffffffffffffffffffff00470104fdfc005ac00002142a0206010400010001020601040002000102020200020641040000fdfc020c400a40780001018000020180";
    if !available("interop field faults, F17", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let neighbours = neighbour(101, ASN, "") + &neighbour(102, 65030, "");
        let file = format!("graceful-restart: {{ restart-time: 60 }}\nneighbors:\n{neighbours}");
        let speaker = Speaker::start(lab, [101, 102], &file);
        let mut receiver = Raw::connect(peer(102), socket());
        receiver.establish(&raw::open(65030, 0, peer(102)));
        let mut old = Raw::connect(peer(101), socket());
        old.establish(&hex(OPEN_G));
        old.say(&hex(BASE));
        let (faulty, other) = ((Ipv4Addr::new(203, 0, 113, 0), 24), (Ipv4Addr::new(198, 51, 100, 0), 24));
        let mut announced = Vec::new();
        while !(announced.contains(&faulty) && announced.contains(&other)) {
            announced.extend(told(&receiver.hear()).into_iter().flat_map(|(_, announced)| announced));
        }

        // The restarted one has the R bit, and says one of the two routes again.
        let mut new = Raw::connect(peer(101), socket());
        new.establish(&hex(&OPEN_G.replace("400a4078", "400ac078")));
        assert_eq!(old.farewell(), None, "closed without a word");
        speaker.await_state(101, "established");
        let stale = || speaker.neighbour(101)["graceful-restart"]["stale-families"].clone();
        assert_eq!(stale(), serde_json::json!(["ipv4-unicast", "ipv6-unicast"]));
        assert!(speaker.heard(101, FAULTY).is_some() && speaker.heard(101, OTHER).is_some());
        new.say(&raw::update(&[], &raw::usual(&[ASN], Ipv4Addr::new(192, 0, 2, 20)), &[faulty]));
        new.say(&raw::update(&[], &[], &[]));
        loop {
            let Some((withdrawn, announced)) = told(&receiver.hear()) else { continue };
            assert!(!withdrawn.contains(&faulty) && announced.is_empty(), "what was said again is touched");
            if withdrawn == [other] {
                break;
            }
        }
        assert_eq!(stale(), serde_json::json!(["ipv6-unicast"]), "its End-of-RIB is still to come");
        assert!(speaker.heard(101, FAULTY).is_some() && speaker.heard(101, OTHER).is_none());
        assert!(new.is_open() && receiver.is_open());
    });
}

#[test]
fn f18_the_last_word_counts() {
    const ROUNDS: u32 = 10_000;
    if !available("interop field faults, F18", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let file = format!("neighbors:\n{}{}", neighbour(101, ASN, ""), neighbour(102, 65030, ""));
        let speaker = Speaker::start(lab, [101, 102], &file);
        let mut sender = Raw::connect(peer(101), socket());
        sender.establish(&hex(OPEN_A));
        let mut receiver = Raw::connect(peer(102), socket());
        receiver.establish(&raw::open(65030, 0, peer(102)));
        let prefix = (Ipv4Addr::new(203, 0, 113, 0), 24);
        let plain = raw::usual(&[ASN], peer(101));
        let marked = [plain.clone(), raw::attribute(0xc0, 8, &hex("fdfc0001"))].concat();
        // Announced and taken back in one write, over and over, other prefixes in between.
        let mut writes = Vec::new();
        for n in 0..ROUNDS {
            writes.extend(raw::update(&[], &marked, &[prefix]));
            writes.extend(raw::update(&[], &plain, &[raw::nth(n % 500)]));
            writes.extend(raw::update(&[prefix], &[], &[]));
        }
        sender.say(&writes);
        let end = raw::nth(60_000);
        sender.say(&raw::update(&[], &plain, &[end]));
        let holds = |receiver: &mut Raw, holds: &mut bool, end: (Ipv4Addr, u8)| loop {
            let message = receiver.hear();
            let Some((withdrawn, announced)) = told(&message) else { continue };
            if withdrawn.contains(&prefix) {
                *holds = false;
            }
            if announced.contains(&prefix) {
                *holds = true;
            }
            if announced.contains(&end) {
                return;
            }
        };
        let mut held = false;
        holds(&mut receiver, &mut held, end);
        assert!(!held, "the receiver holds what was taken back");
        assert!(speaker.heard(101, "203.0.113.0/24").is_none());

        let mut writes = Vec::new();
        for n in 0..ROUNDS {
            writes.extend(raw::update(&[prefix], &[], &[]));
            writes.extend(raw::update(&[raw::nth(n % 500)], &[], &[]));
            writes.extend(raw::update(&[], &marked, &[prefix]));
        }
        sender.say(&writes);
        let end = raw::nth(60_001);
        sender.say(&raw::update(&[], &plain, &[end]));
        holds(&mut receiver, &mut held, end);
        assert!(held, "the receiver lacks what was announced last");
        assert!(speaker.heard(101, "203.0.113.0/24").is_some());
    });
}

#[test]
fn f19_a_new_as_number_resets_that_session_only() {
    if !available("interop field faults, F19", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let file = |asn| format!("neighbors:\n{}{}", neighbour(101, asn, ""), neighbour(102, ASN, ""));
        let mut speaker = Speaker::start(lab, [101, 102], &file(ASN));
        let mut changing = Raw::connect(peer(101), socket());
        changing.establish(&hex(OPEN_A));
        changing.say(&hex(BASE));
        let mut bystander = Raw::connect(peer(102), socket());
        bystander.establish(&hex(OPEN_A));
        speaker.await_heard(101, FAULTY);
        speaker.reload(&file(65021));
        assert_eq!(changing.farewell(), Some((6, 6, vec![])));
        speaker.await_received(101, 0);
        let mut old = Raw::connect(peer(101), socket());
        old.say(&hex(OPEN_A));
        assert_eq!(old.farewell().map(|(code, subcode, _)| (code, subcode)), Some((2, 2)));
        // The disagreement is waited out before the neighbour is welcome again.
        let mut new = test_support::wait::until("the neighbour is welcome in its new AS", || {
            let mut new = Raw::connect(peer(101), socket());
            new.try_say(&raw::open(65021, 90, peer(101))).map_err(|error| error.to_string())?;
            match new.hear_within(Duration::from_secs(5)) {
                Ok(Some(message)) if message.kind == 1 => Ok(new),
                other => Err(format!("{other:?}")),
            }
        });
        new.say(&KEEPALIVE);
        speaker.await_state(101, "established");
        assert!(bystander.is_open());
        assert_eq!(speaker.neighbour(102)["established-transitions"], 1);
    });
}

#[test]
fn f20_what_policy_begins_to_reject_is_withdrawn() {
    if !available("interop field faults, F20", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let file = |rejected: &str| {
            format!(
                "neighbors:\n{}{}sets:\n  prefixes: {{ not: [\"{rejected}\"] }}\npolicies:\n  out:\n    statements:\n      \
                 - {{ if: {{ prefixes: not }}, then: reject }}\n    default: accept\n",
                neighbour(101, ASN, ""),
                neighbour(102, 65030, ", export: out")
            )
        };
        let mut speaker = Speaker::start(lab, [101, 102], &file("10.0.0.0/8"));
        let mut sender = Raw::connect(peer(101), socket());
        sender.establish(&hex(OPEN_A));
        let mut receiver = Raw::connect(peer(102), socket());
        receiver.establish(&raw::open(65030, 0, peer(102)));
        sender.say(&hex(BASE));
        let (faulty, other) = ((Ipv4Addr::new(203, 0, 113, 0), 24), (Ipv4Addr::new(198, 51, 100, 0), 24));
        let mut announced = Vec::new();
        while !(announced.contains(&faulty) && announced.contains(&other)) {
            announced.extend(told(&receiver.hear()).into_iter().flat_map(|(_, announced)| announced));
        }
        speaker.reload(&file(FAULTY));
        loop {
            let Some((withdrawn, announced)) = told(&receiver.hear()) else { continue };
            assert!(!withdrawn.contains(&other) && !announced.contains(&other), "the other one is touched");
            if withdrawn == [faulty] {
                break;
            }
        }
        let out = speaker.ask(&["routes", "adj-rib-out", "--neighbor", "192.0.2.102"]);
        let prefixes: Vec<_> = out.as_array().into_iter().flatten().map(|route| &route["prefix"]).collect();
        assert_eq!(prefixes, [OTHER]);
        assert!(receiver.is_open());
        assert_eq!(speaker.neighbour(102)["established-transitions"], 1);
    });
}
