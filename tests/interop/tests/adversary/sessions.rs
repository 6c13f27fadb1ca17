//! Silence, collisions and complaints.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use interop::raw::{self, KEEPALIVE, Raw, nth};
use interop::speaker::{Speaker, neighbour, peer, socket};
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::wait;

use super::{ASN, BYSTANDER, unharmed, usual, with_bystander};

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
