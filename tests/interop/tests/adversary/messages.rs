//! Messages that are cut, odd, or out of place, and connections without end.

use std::net::Ipv4Addr;
use std::time::Duration;

use interop::raw::{self, KEEPALIVE, Message, Raw, hex, nth};
use interop::speaker::{Speaker, peer, socket};
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::wait;

use super::{ASN, unharmed, usual, with_bystander};

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
            // Shorter prefixes may be left, or none: then it is a good message. The end of our RIB may come first.
            while let Ok(Some(Message { kind, body })) = raw.hear_within(Duration::from_millis(20)) {
                if kind == 3 {
                    assert!(body[0] == 3 || body[..2] == [1, 2], "{at}: {body:?}");
                    refused += 1;
                }
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
        // Until our KEEPALIVE is read, a second connection is a collision to be solved, and is told OPEN.
        speaker.await_state(101, "established");
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
        let mut last = Raw::connect(peer(101), socket());
        for _ in 0..300 {
            last = Raw::connect(peer(101), socket());
        }
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
        // The same OPEN once more is let be there; another one isn't.
        let another = raw::open(ASN, 30, peer(101));
        for message in [&another[..], &update, &refresh] {
            let (_, mut raw) = fresh();
            raw.say(&[&good, &good, message].concat());
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
            // Nothing behind the header, and nothing will come. We offer long messages, but these two kinds are never
            // long (RFC 8654 section 4).
            ([&[0xff; 16][..], &[0x10, 1, 1]].concat(), (1, 2, vec![0x10, 1])),
            ([&[0xff; 16][..], &[0xff, 0xff, 4]].concat(), (1, 2, vec![0xff, 0xff])),
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
