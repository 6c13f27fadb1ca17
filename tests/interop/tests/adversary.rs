//! Neighbours that mean ill, or are merely broken, over real sockets. Whatever they do, the process lives, other sessions
//! do not notice, and memory stays bounded.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use interop::raw::{self, KEEPALIVE, Message, Raw, hex, nth, told};
use interop::speaker::{self, Speaker, neighbour, peer, socket};
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::{process, wait};

const ASN: u32 = 65020;
const BYSTANDER: u8 = 20;

/// A speaker with the neighbours 192.0.2.`lasts` in AS 65020, passive, and an established bystander.
fn with_bystander(lab: &Lab, lasts: impl IntoIterator<Item = u8>) -> (Speaker, Raw) {
    let lasts: Vec<u8> = lasts.into_iter().chain([BYSTANDER]).collect();
    let file = lasts.iter().fold("neighbors:\n".to_owned(), |file, last| file + &neighbour(*last, ASN, ""));
    let speaker = Speaker::start(lab, lasts, &file);
    let mut bystander = Raw::connect(peer(BYSTANDER), socket());
    bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
    (speaker, bystander)
}

/// The speaker lives, and the bystander has noticed nothing.
#[track_caller]
fn unharmed(speaker: &mut Speaker, bystander: &mut Raw) {
    assert!(speaker.process.ended().is_none(), "the speaker ended: {}", speaker.process.log());
    assert!(bystander.is_open(), "the bystander's session has ended");
    assert_eq!(speaker.neighbour(BYSTANDER)["established-transitions"], 1);
}

fn usual(last: u8) -> Vec<u8> {
    raw::usual(&[ASN], peer(last))
}

/// UPDATEs that announce the prefixes `from..to`, 300 in each.
fn table(attributes: &[u8], from: u32, to: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    for start in (from..to).step_by(300) {
        let prefixes: Vec<_> = (start..to.min(start + 300)).map(nth).collect();
        octets.extend(raw::update(&[], attributes, &prefixes));
    }
    octets
}

/// UPDATEs that take them back.
fn taken_back(from: u32, to: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    for start in (from..to).step_by(300) {
        let prefixes: Vec<_> = (start..to.min(start + 300)).map(nth).collect();
        octets.extend(raw::update(&prefixes, &[], &[]));
    }
    octets
}

#[test]
fn every_truncation() {
    if !available("adversary truncation", &[IP]) {
        return;
    }
    let update =
        raw::update(&[nth(9)], &[usual(30), raw::attribute(0xc0, 8, &hex("fdfc0001"))].concat(), &[nth(1)]);
    let open = raw::open(ASN, 90, peer(30));
    // Cut in the stream: the rest never comes. Cut in the message: its length says that it is whole.
    let whole = |message: &[u8], at: usize| {
        let mut cut = message[..at].to_vec();
        cut[16..18].copy_from_slice(&(at as u16).to_be_bytes());
        cut
    };
    let first = 30;
    let cuts = 19..update.len();
    Lab::run(move |lab| {
        // Whoever sent a fault has to wait before it may come again, so each message has a neighbour of its own.
        let (mut speaker, mut bystander) = with_bystander(lab, first..first + cuts.len() as u8);
        for at in 1..open.len() {
            let mut raw = Raw::connect(peer(first), socket());
            raw.say(&open[..at]);
            if at % 2 == 0 {
                raw.reset();
            }
        }
        for at in 1..update.len() {
            let mut raw = Raw::connect(peer(first), socket());
            raw.say(&open);
            raw.say(&KEEPALIVE);
            raw.say(&update[..at]);
            if at % 2 == 0 {
                raw.reset();
            }
        }
        speaker.await_received(first, 0);
        for (at, last) in (29..open.len()).zip(first + 1..) {
            let mut raw = Raw::connect(peer(last), socket());
            raw.say(&whole(&open, at));
            let (code, subcode, _) = raw.farewell().expect("an OPEN that is cut is no OPEN");
            assert!(code == 2 || (code, subcode) == (1, 2), "{at}: {code}/{subcode}");
        }
        unharmed(&mut speaker, &mut bystander);
    });
    let update =
        raw::update(&[nth(9)], &[usual(30), raw::attribute(0xc0, 8, &hex("fdfc0001"))].concat(), &[nth(1)]);
    Lab::run(move |lab| {
        let (mut speaker, mut bystander) = with_bystander(lab, first..first + update.len() as u8 - 19);
        let mut refused = 0;
        for (at, last) in (19..update.len()).zip(first..) {
            let mut raw = Raw::connect(peer(last), socket());
            raw.establish(&raw::open(ASN, 90, peer(last)));
            raw.say(&whole(&update, at));
            raw.say(&KEEPALIVE);
            // Shorter prefixes may be left, or none: then it is a good message.
            if let Ok(Some(Message { kind: 3, body })) = raw.hear_within(Duration::from_millis(20)) {
                assert!(body[0] == 3 || body[..2] == [1, 2], "{at}: {body:?}");
                refused += 1;
            }
        }
        assert!(refused > 20, "{refused}");
        unharmed(&mut speaker, &mut bystander);
    });
}

#[test]
fn floods_of_connections() {
    if !available("adversary floods", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut speaker, mut bystander) = with_bystander(lab, [101]);
        let descriptors = |speaker: &Speaker| {
            std::fs::read_dir(format!("/proc/{}/fd", speaker.process.pid())).map_or(0, Iterator::count)
        };
        let before = descriptors(&speaker);
        // Strangers.
        for last in [201, 202] {
            let address = format!("{}/24", peer(last));
            let status =
                std::process::Command::new("ip").args(["addr", "add", &address, "dev", "br0"]).status();
            assert!(status.unwrap().success());
        }
        let mut held = Vec::new();
        for n in 0..2000_u32 {
            // A reset before we could bind our next socket is as good as a refusal.
            if let Ok(raw) = Raw::try_connect(peer(201 + (n % 2) as u8), socket()) {
                held.push(raw);
            }
        }
        assert!(held.len() > 1500, "{}", held.len());
        // Under such a load the kernel itself may lose some of them, which then hang: those don't count.
        let (mut ended, all) = (0, held.len());
        for mut raw in held {
            let _ = raw.try_say(&raw::open(ASN, 90, peer(201)));
            match raw.hear_within(Duration::from_millis(200)) {
                Err(_) => ended += 1,
                Ok(None) => {}
                Ok(Some(message)) => panic!("a stranger is told {message:?}"),
            }
        }
        assert!(ended * 10 > all * 9, "{ended} of {all} connections have ended");
        // A neighbour that has a session, and connects again and again without ever closing.
        let mut known = Raw::connect(peer(101), socket());
        known.establish(&raw::open(ASN, 0, peer(101)));
        let mut held: Vec<Raw> = (0..1000).map(|_| Raw::connect(peer(101), socket())).collect();
        let most = descriptors(&speaker);
        assert!(most < before + 300, "{most} descriptors after 1000 connections, {before} before");
        let mut told = 0;
        for raw in &mut held {
            if let Ok(Some(message)) = raw.hear_within(Duration::from_millis(20)) {
                assert_eq!(message.notification(), Some((6, 7, &[][..])));
                told += 1;
            }
        }
        assert!(told > 0, "nobody is told why");
        drop(held);
        wait::until("all of them are gone", || {
            let now = descriptors(&speaker);
            if now < before + 8 { Ok(()) } else { Err(format!("{now} descriptors, {before} before")) }
        });
        let mut keepalives = 0;
        while let Ok(Some(message)) = known.hear_within(Duration::from_millis(10)) {
            assert_ne!(message.kind, 3, "the session was ended by its own double");
            keepalives += u32::from(message.kind == 4);
        }
        assert!(keepalives < 60, "{keepalives} KEEPALIVEs");
        assert_eq!(speaker.neighbour(101)["established-transitions"], 1);
        // A neighbour without one: each connection replaces the one before.
        drop(known);
        let mut last = (0..300).map(|_| Raw::connect(peer(101), socket())).last().unwrap();
        last.establish(&raw::open(ASN, 0, peer(101)));
        speaker.await_state(101, "established");
        unharmed(&mut speaker, &mut bystander);
    });
}

#[test]
fn odd_messages_in_odd_states() {
    if !available("adversary odd messages", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut speaker, mut bystander) = with_bystander(lab, 101..140);
        let mut next = 101..140;
        let mut fresh = || {
            let last = next.next().expect("neighbours enough");
            (last, Raw::connect(peer(last), socket()))
        };
        let good = raw::open(ASN, 90, peer(101));
        let refresh = raw::message(5, &[0, 1, 0, 1]);
        let update = raw::update(&[], &usual(101), &[nth(1)]);
        // Before OPEN: RFC 6608 subcode 1. After OPEN: 2. Established: 3.
        for message in [&KEEPALIVE[..], &update, &refresh] {
            let (_, mut raw) = fresh();
            raw.say(message);
            assert_eq!(raw.farewell(), Some((5, 1, vec![message[18]])));
        }
        for message in [&good[..], &update, &refresh] {
            let (_, mut raw) = fresh();
            raw.say(&[&good, message].concat());
            assert_eq!(raw.farewell(), Some((5, 2, vec![message[18]])));
        }
        let (_, mut raw) = fresh();
        raw.establish(&good);
        raw.say(&good.repeat(1000));
        assert_eq!(raw.farewell(), Some((5, 3, vec![1])));
        // A NOTIFICATION is never answered, in whatever state and however short.
        for before in [vec![], good.clone(), [&good[..], &KEEPALIVE].concat()] {
            for (code, subcode) in
                [(1, 1), (2, 4), (3, 1), (4, 0), (5, 0), (6, 2), (7, 1), (0, 0), (255, 255)]
            {
                if code != 2 && code != 6 {
                    continue;
                }
                let (_, mut raw) = fresh();
                raw.say(&[&before[..], &raw::message(3, &[code, subcode, 1, 2, 3])].concat());
                assert_eq!(raw.farewell(), None, "{code}/{subcode}");
            }
        }
        // Headers.
        for (message, answer) in [
            (vec![0; 19], (1, 1, vec![])),
            ([&[0xff; 16][..], &[0, 18, 4]].concat(), (1, 2, vec![0, 18])),
            // Nothing behind the header, and nothing will come.
            ([&[0xff; 16][..], &[0x10, 1, 2]].concat(), (1, 2, vec![0x10, 1])),
            ([&[0xff; 16][..], &[0xff, 0xff, 2]].concat(), (1, 2, vec![0xff, 0xff])),
            ([&[0xff; 16][..], &[0, 19, 9]].concat(), (1, 3, vec![9])),
            ([&[0xff; 16][..], &[0, 20, 4, 0]].concat(), (1, 2, vec![0, 20])),
        ] {
            let (_, mut raw) = fresh();
            raw.establish(&good);
            raw.say(&message);
            assert_eq!(raw.farewell(), Some(answer));
        }
        // OPENs that no session can come of.
        for (open, answer) in [
            (raw::open(ASN, 1, peer(101)), (2, 6)),
            (raw::open(ASN, 2, peer(101)), (2, 6)),
            (raw::open(ASN, 90, Ipv4Addr::UNSPECIFIED), (2, 3)),
            (raw::open(65099, 90, peer(101)), (2, 2)),
            (raw::open(0, 90, peer(101)), (2, 2)),
        ] {
            let (_, mut raw) = fresh();
            raw.say(&open);
            assert_eq!(raw.farewell().map(|(code, subcode, _)| (code, subcode)), Some(answer));
        }
        unharmed(&mut speaker, &mut bystander);
    });
}

#[test]
fn hold_times() {
    if !available("adversary hold times", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let (mut speaker, mut bystander) = with_bystander(lab, 101..106);
        // Silent for three seconds.
        let mut silent = Raw::connect(peer(101), socket());
        silent.establish(&raw::open(ASN, 3, peer(101)));
        let begun = Instant::now();
        silent.say(&raw::update(&[], &usual(101), &[nth(1)]));
        // Says every octet of an UPDATE but the last, one by one: that is silence too.
        let mut slow = Raw::connect(peer(102), socket());
        slow.establish(&raw::open(ASN, 3, peer(102)));
        let update = raw::update(&[], &usual(102), &[nth(2)]);
        // Never says anything, not even OPEN; but that may take four minutes, and its neighbour may connect again.
        let half_open = Raw::connect(peer(103), socket());
        // Needs no KEEPALIVE, and gets none.
        let mut eternal = Raw::connect(peer(104), socket());
        eternal.establish(&raw::open(ASN, 0, peer(104)));
        // Has to get one a second.
        let mut lively = Raw::connect(peer(105), socket());
        lively.establish(&raw::open(ASN, 3, peer(105)));
        let mut keepalives = 0;
        for octet in &update[..update.len() - 1] {
            if slow.try_say(&[*octet]).is_err() {
                break;
            }
            lively.say(&KEEPALIVE);
            while let Ok(Some(message)) = lively.hear_within(Duration::from_millis(40)) {
                keepalives += u32::from(message.kind == 4);
            }
        }
        assert_eq!(silent.farewell(), Some((4, 0, vec![])));
        assert_eq!(slow.farewell(), Some((4, 0, vec![])));
        assert!(begun.elapsed() >= Duration::from_secs(3));
        while begun.elapsed() < Duration::from_secs(6) {
            lively.say(&KEEPALIVE);
            while let Ok(Some(message)) = lively.hear_within(Duration::from_millis(400)) {
                keepalives += u32::from(message.kind == 4);
            }
        }
        assert!((4..=8).contains(&keepalives), "{keepalives} KEEPALIVEs in six seconds");
        speaker.await_received(101, 0);
        assert!(eternal.is_open() && lively.is_open());
        assert_eq!(speaker.neighbour(103)["session-state"], "open_sent");
        let mut second = Raw::connect(peer(103), socket());
        second.establish(&raw::open(ASN, 0, peer(103)));
        drop(half_open);
        unharmed(&mut speaker, &mut bystander);
    });
}

#[test]
fn both_connect_at_once_again_and_again() {
    if !available("adversary collisions", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        // After a loss the speaker waits ever longer before it connects, so each round has a neighbour of its own.
        let rounds = 101..125;
        let file =
            rounds.clone().fold(format!("neighbors:\n{}", neighbour(BYSTANDER, ASN, "")), |file, last| {
                let address = peer(last);
                file + &format!(
                    "  - {{ address: {address}, asn: {ASN}, connect-retry: 1, families: [ipv4-unicast] }}\n"
                )
            });
        let mut speaker = Speaker::start(lab, rounds.clone().chain([BYSTANDER]), &file);
        let mut bystander = Raw::connect(peer(BYSTANDER), socket());
        bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
        for last in rounds {
            let listener = TcpListener::bind((peer(last), 179)).unwrap();
            // Every second one has a higher identifier than ours, every third one confirms before it is answered.
            let (higher, hasty, reversed) = (last % 2 == 0, last % 3 == 0, last % 4 < 2);
            let open = raw::open(ASN, 90, Ipv4Addr::new(if higher { 240 } else { 1 }, 0, 0, 1));
            let mut theirs = Raw::accept(&listener, wait::PATIENCE).expect("the speaker connects");
            let mut ours = Raw::connect(peer(last), socket());
            let mut both = [&mut theirs, &mut ours];
            if reversed {
                both.reverse();
            }
            for raw in &mut both {
                raw.say(&open);
                if hasty {
                    let _ = raw.try_say(&KEEPALIVE);
                }
            }
            for raw in &mut both {
                // OPEN, then KEEPALIVE or the end.
                let mut heard = 0;
                while heard < 2 && matches!(raw.hear_within(Duration::from_secs(5)), Ok(Some(_))) {
                    heard += 1;
                }
            }
            for raw in &mut both {
                let _ = raw.try_say(&KEEPALIVE);
            }
            speaker.await_state(last, "established");
            wait::until_true("one of the two is closed", || theirs.is_open() != ours.is_open());
            // The connection of whoever has the higher identifier lives (RFC 4271 section 6.8); where KEEPALIVE came before
            // the collision was seen, the first one is Established and stays.
            if !hasty {
                assert_eq!([theirs.is_open(), ours.is_open()], [!higher, higher], "{last}");
            }
            assert_eq!(speaker.neighbour(last)["established-transitions"], 1);
        }
        unharmed(&mut speaker, &mut bystander);
    });
}

#[test]
fn who_complains_is_not_bothered_without_pause() {
    if !available("adversary back-off", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut file = "neighbors:\n".to_owned();
        for last in [101, 102, 103] {
            file += &format!("  - {{ address: {}, asn: {ASN}, connect-retry: 1 }}\n", peer(last));
        }
        let listeners = [101, 102, 103];
        let (mut counts, begun) = ([0; 3], Instant::now());
        let mut speaker = Speaker::start(lab, listeners, &file);
        let listeners = listeners.map(|last| TcpListener::bind((peer(last), 179)).unwrap());
        while begun.elapsed() < Duration::from_secs(12) {
            for ((listener, count), last) in listeners.iter().zip(&mut counts).zip([101, 102, 103]) {
                let Some(mut raw) = Raw::accept(listener, Duration::from_millis(20)) else { continue };
                *count += 1;
                match last {
                    // Unsupported optional parameter; unsupported capability; and one that hangs up without a word.
                    101 => raw.say(&raw::message(3, &[2, 4])),
                    102 => raw.say(&raw::message(3, &[2, 7, 64, 0])),
                    _ => continue,
                }
                let _ = raw.farewell();
            }
        }
        // Waits of 0.75 to 1, 1.5 to 2, 3 to 4, 6 to 8 seconds.
        for count in counts {
            assert!((2..=5).contains(&count), "{counts:?} attempts in twelve seconds");
        }
        assert!(speaker.process.ended().is_none());
    });
}

#[test]
fn next_hops_and_paths_that_lead_nowhere() {
    if !available("adversary next hops", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let file = format!(
            "neighbors:\n{}{}{}",
            neighbour(101, ASN, ""),
            neighbour(102, speaker::ASN, ""),
            neighbour(BYSTANDER, ASN, "")
        );
        let mut speaker = Speaker::start(lab, [101, 102, BYSTANDER], &file);
        let mut bystander = Raw::connect(peer(BYSTANDER), socket());
        bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
        let mut external = Raw::connect(peer(101), socket());
        external.establish(&raw::open(ASN, 0, peer(101)));
        let mut internal = Raw::connect(peer(102), socket());
        // Our own identifier is not welcome inside the AS (RFC 6286).
        internal.say(&raw::open(speaker::ASN, 0, speaker::ADDRESS));
        assert_eq!(internal.farewell().map(|(code, subcode, _)| (code, subcode)), Some((2, 3)));
        let mut n = 0;
        let mut say = |path: &[u32], next_hop: [u8; 4]| {
            n += 1;
            external.say(&raw::update(&[], &raw::usual(path, next_hop.into()), &[nth(n)]));
            let (address, length) = nth(n);
            format!("{address}/{length}")
        };
        let refused =
            [say(&[ASN], [0, 0, 0, 0]), say(&[ASN], [224, 0, 0, 5]), say(&[ASN], [255, 255, 255, 255])];
        let unused = [
            say(&[ASN], speaker::ADDRESS.octets()),
            say(&[ASN], [127, 0, 0, 1]),
            say(&[ASN, speaker::ASN], peer(101).octets()),
            say(&[speaker::ASN], peer(101).octets()),
        ];
        let used = say(&[ASN, 1, 2, 3], peer(77).octets());
        speaker.await_heard(101, &used);
        for prefix in refused {
            assert!(speaker.heard(101, &prefix).is_none(), "{prefix}");
        }
        for prefix in unused {
            let path = speaker.heard(101, &prefix).unwrap_or_else(|| panic!("{prefix} is not remembered"));
            assert!(path["rejected"].is_string(), "{path}");
            let best = speaker.ask(&["routes", "loc-rib", &prefix]);
            assert_ne!(best[0]["paths"][0]["best"], true, "{best}");
        }
        unharmed(&mut speaker, &mut bystander);
    });
}

#[test]
fn attributes_as_large_as_a_message() {
    if !available("adversary large attributes", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let file = format!(
            "neighbors:\n{}{}{}",
            neighbour(101, ASN, ""),
            neighbour(102, 65030, ""),
            neighbour(BYSTANDER, ASN, "")
        );
        let mut speaker = Speaker::start(lab, [101, 102, BYSTANDER], &file);
        let mut bystander = Raw::connect(peer(BYSTANDER), socket());
        bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
        let mut sender = Raw::connect(peer(101), socket());
        sender.establish(&raw::open(ASN, 0, peer(101)));
        let mut receiver = Raw::connect(peer(102), socket());
        receiver.establish(&raw::open(65030, 0, peer(102)));
        let base = usual(101);
        // First something small, then so much that our own AS number doesn't fit beside it: nobody may keep the first.
        sender.say(&raw::update(&[], &base, &[nth(1)]));
        let room = 4096 - 19 - 4 - 4 - base.len() - 4;
        let full = [base.clone(), raw::attribute(0xd0, 200, &vec![7; room])].concat();
        let message = raw::update(&[], &full, &[nth(1)]);
        assert_eq!(message.len(), 4096);
        let mut holds = false;
        let until_told = |receiver: &mut Raw, holds: &mut bool, wanted: bool| {
            while *holds != wanted {
                if let Some((withdrawn, announced)) = told(&receiver.hear()) {
                    *holds = (*holds && !withdrawn.contains(&nth(1))) || announced.contains(&nth(1));
                }
            }
        };
        until_told(&mut receiver, &mut holds, true);
        sender.say(&message);
        until_told(&mut receiver, &mut holds, false);
        // As long as they fit, they arrive.
        let fits = [base.clone(), raw::attribute(0xd0, 200, &vec![7; room - 8])].concat();
        sender.say(&raw::update(&[], &fits, &[nth(1)]));
        until_told(&mut receiver, &mut holds, true);
        // Thousands of sets, each as large as can be, each different, for one prefix: only the last one is kept.
        let before = process::peak_kib(speaker.process.pid());
        for n in 0..3000_u32 {
            let mut value = vec![0; room - 8];
            value[..4].copy_from_slice(&n.to_be_bytes());
            sender.say(&raw::update(
                &[],
                &[base.clone(), raw::attribute(0xd0, 200, &value)].concat(),
                &[nth(2)],
            ));
        }
        sender.say(&raw::update(&[], &base, &[nth(3)]));
        speaker.await_heard(101, "10.0.3.0/24");
        let after = process::peak_kib(speaker.process.pid());
        assert!(after < before + 32 * 1024, "{before} KiB before, {after} KiB after 12 MB of attributes");
        // A path of 255 AS numbers takes one more segment on its way out.
        let long: Vec<u32> = (1..=255).collect();
        sender.say(&raw::update(&[], &raw::usual(&long, peer(101)), &[nth(4)]));
        loop {
            let message = receiver.hear();
            if told(&message).is_some_and(|(_, announced)| announced.contains(&nth(4))) {
                let ours = [2, 1, 0, 0, 0xfd, 0xf2, 2, 255];
                assert!(message.body.windows(8).any(|window| window == ours), "{message:?}");
                break;
            }
        }
        unharmed(&mut speaker, &mut bystander);
    });
}

#[test]
fn who_stops_reading_costs_nobody_anything() {
    const ROUTES: u32 = 60_000;
    if !available("adversary deaf neighbours", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let mut file = format!("neighbors:\n{}{}", neighbour(101, ASN, ""), neighbour(BYSTANDER, ASN, ""));
        for last in 102..108 {
            file += &neighbour(last, 65030, "");
        }
        let mut speaker = Speaker::start(lab, (101..108).chain([BYSTANDER]), &file);
        let mut bystander = Raw::connect(peer(BYSTANDER), socket());
        bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
        let mut sender = Raw::connect(peer(101), socket());
        sender.establish(&raw::open(ASN, 0, peer(101)));
        let mut receiver = Raw::connect(peer(102), socket());
        receiver.establish(&raw::open(65030, 0, peer(102)));
        // Five that never read another octet; one of them asks for everything again and again.
        let mut deaf: Vec<Raw> = (103..108)
            .map(|last| {
                let mut raw = Raw::connect(peer(last), socket());
                raw.establish(&raw::open(65030, 0, peer(last)));
                raw
            })
            .collect();
        sender.say(&table(&usual(101), 0, ROUTES));
        let mut holds = std::collections::BTreeSet::new();
        let mut follow =
            |receiver: &mut Raw, done: &dyn Fn(&std::collections::BTreeSet<(Ipv4Addr, u8)>) -> bool| {
                while !done(&holds) {
                    let Some((withdrawn, announced)) = told(&receiver.hear()) else { continue };
                    for prefix in withdrawn {
                        holds.remove(&prefix);
                    }
                    holds.extend(announced);
                }
            };
        follow(&mut receiver, &|holds| holds.len() == ROUTES as usize);
        let before = process::peak_kib(speaker.process.pid());
        // All of it changes over and over while they are deaf.
        for round in 0..10_u32 {
            let community = raw::attribute(0xc0, 8, &round.to_be_bytes());
            sender.say(&table(&[usual(101), community].concat(), 0, ROUTES));
            for _ in 0..1000 {
                deaf[0].say(&raw::message(5, &[0, 1, 0, 1]));
            }
        }
        sender.say(&taken_back(0, ROUTES));
        sender.say(&table(&usual(101), ROUTES, ROUTES + 10));
        follow(&mut receiver, &|holds| holds.len() == 10);
        let after = process::peak_kib(speaker.process.pid());
        assert!(after < before + 48 * 1024, "{before} KiB before, {after} KiB after");
        // One of them wakes up: what it holds in the end is what there is.
        let mut late = deaf.remove(1);
        let mut holds = std::collections::BTreeSet::new();
        while holds.len() != 10 || !holds.contains(&nth(ROUTES + 9)) {
            let Some((withdrawn, announced)) = told(&late.hear()) else { continue };
            for prefix in withdrawn {
                holds.remove(&prefix);
            }
            holds.extend(announced);
        }
        unharmed(&mut speaker, &mut bystander);
        assert_eq!(speaker.neighbour(102)["established-transitions"], 1);
    });
}

#[test]
fn a_neighbour_that_dies_and_comes_back_in_a_loop() {
    const ROUTES: u32 = 20_000;
    if !available("adversary flapping", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let file = format!(
            "neighbors:\n{}{}{}{}",
            neighbour(101, ASN, ""),
            neighbour(102, 65030, ""),
            neighbour(103, ASN, ""),
            neighbour(BYSTANDER, ASN, "")
        );
        let mut speaker = Speaker::start(lab, [101, 102, 103, BYSTANDER], &file);
        let mut bystander = Raw::connect(peer(BYSTANDER), socket());
        bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
        let mut receiver = Raw::connect(peer(102), socket());
        receiver.establish(&raw::open(65030, 0, peer(102)));
        // The same routes from a neighbour that stays, by a longer path.
        let mut steady = Raw::connect(peer(103), socket());
        steady.establish(&raw::open(ASN, 0, peer(103)));
        steady.say(&table(&raw::usual(&[ASN, ASN, ASN], peer(103)), 0, ROUTES / 2));
        speaker.await_received(103, u64::from(ROUTES / 2));
        let octets = table(&usual(101), 0, ROUTES);
        let refresh = raw::message(5, &[0, 1, 0, 1]);
        for round in 0..25_usize {
            // As long as the speaker has not come upon the end of the connection before, it refuses the next one.
            let mut raw = wait::until("the neighbour is welcome again", || {
                let mut raw = Raw::connect(peer(101), socket());
                raw.try_say(&raw::open(ASN, 0, peer(101))).map_err(|error| error.to_string())?;
                match raw.hear_within(Duration::from_secs(5)) {
                    Ok(Some(message)) if message.kind == 1 => Ok(raw),
                    other => Err(format!("{other:?}")),
                }
            });
            raw.say(&KEEPALIVE);
            // Sometimes everything, sometimes up to the middle of a message.
            let end = if round % 3 == 0 { octets.len() } else { octets.len() * (round + 1) / 26 };
            if raw.try_say(&octets[..end]).is_ok() && round % 4 == 0 {
                let _ = raw.try_say(&refresh.repeat(50));
            }
            if round % 2 == 0 {
                raw.reset();
            }
        }
        speaker.await_received(101, 0);
        speaker.await_received(103, u64::from(ROUTES / 2));
        let family = |last: u8| speaker.neighbour(last)["families"][0].clone();
        assert_eq!(family(101)["accepted"], 0);
        assert_eq!(family(103)["accepted"], ROUTES / 2);
        // What the receiver was told comes to the same.
        let mut holds = std::collections::BTreeMap::new();
        while let Ok(Some(message)) = receiver.hear_within(Duration::from_secs(1)) {
            let Some((withdrawn, announced)) = told(&message) else { continue };
            for prefix in withdrawn {
                holds.remove(&prefix);
            }
            let long = message.body.windows(10).any(|path| path == hex("02040000fdf20000fdfc"));
            holds.extend(announced.into_iter().map(|prefix| (prefix, long)));
        }
        assert_eq!(holds.len(), ROUTES as usize / 2);
        assert!(holds.values().all(|long| *long), "a path of the neighbour that is gone is still there");
        wait::until("our own count of it", || {
            let advertised = family(102)["advertised"].clone();
            if advertised == ROUTES / 2 { Ok(()) } else { Err(advertised.to_string()) }
        });
        unharmed(&mut speaker, &mut bystander);
    });
}

/// Neighbours and routes of each in the test below; more of them where the variable says so.
fn scale() -> (u8, u32) {
    match std::env::var("ADVERSARY_ROUTES").ok().and_then(|routes| routes.parse().ok()) {
        Some(routes) => (10, routes),
        None => (10, 5_000),
    }
}

#[test]
fn ten_neighbours_churn_at_full_speed_and_take_everything_back() {
    if !available("adversary churn", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let (neighbours, routes) = scale();
        let mut file = format!("neighbors:\n{}{}", neighbour(200, 65030, ""), neighbour(BYSTANDER, ASN, ""));
        for last in 101..101 + neighbours {
            file += &neighbour(last, ASN, "");
        }
        let mut speaker = Speaker::start(lab, (101..101 + neighbours).chain([200, BYSTANDER]), &file);
        let mut bystander = Raw::connect(peer(BYSTANDER), socket());
        bystander.establish(&raw::open(ASN, 0, peer(BYSTANDER)));
        let mut receiver = Raw::connect(peer(200), socket());
        receiver.establish(&raw::open(65030, 0, peer(200)));
        let reader = std::thread::spawn(move || {
            let mut holds = std::collections::BTreeSet::new();
            let mut seen = 0;
            loop {
                let Some((withdrawn, announced)) = told(&receiver.hear()) else { continue };
                for prefix in withdrawn {
                    holds.remove(&prefix);
                }
                seen = seen.max(holds.len());
                let end = announced.contains(&nth(0xf_0000));
                holds.extend(announced);
                if end {
                    return (holds, seen);
                }
            }
        });
        // Half of each table is shared with the next neighbour.
        let senders: Vec<_> = (0..u32::from(neighbours))
            .map(|n| {
                std::thread::spawn(move || {
                    let last = 101 + n as u8;
                    let mut raw = Raw::connect(peer(last), socket());
                    raw.establish(&raw::open(ASN, 0, peer(last)));
                    let (from, to) = (n * routes / 2, n * routes / 2 + routes);
                    raw.say(&table(&usual(last), from, to));
                    for round in 0..5_u32 {
                        let community = raw::attribute(0xc0, 8, &round.to_be_bytes());
                        raw.say(&taken_back(from, from + routes / 2));
                        raw.say(&table(&[usual(last), community].concat(), from, to));
                    }
                    raw
                })
            })
            .collect();
        let mut senders: Vec<Raw> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
        for last in 101..101 + neighbours {
            speaker.await_received(last, u64::from(routes));
        }
        let begun = Instant::now();
        for (n, raw) in (0_u32..).zip(&mut senders) {
            raw.say(&taken_back(n * routes / 2, n * routes / 2 + routes));
        }
        for last in 101..101 + neighbours {
            speaker.await_received(last, 0);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?} to take everything back", begun.elapsed());
        bystander.say(&raw::update(&[], &usual(BYSTANDER), &[nth(0xf_0000)]));
        let (holds, seen) = reader.join().unwrap();
        assert_eq!(holds.into_iter().collect::<Vec<_>>(), [nth(0xf_0000)]);
        assert!(seen > routes as usize, "the receiver has seen {seen} at once");
        unharmed(&mut speaker, &mut bystander);
    });
}
