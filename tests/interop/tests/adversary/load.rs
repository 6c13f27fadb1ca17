//! Many routes, and neighbours that do not read, die, or change everything all the time.

use std::time::Duration;

use interop::raw::{self, KEEPALIVE, Raw, hex, nth, told};
use interop::speaker::{Speaker, neighbour, peer, socket};
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::{process, wait};

use super::{ASN, BYSTANDER, table, taken_back, unharmed, usual};

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
        let mut follow = |receiver: &mut Raw, wanted: usize| {
            while holds.len() != wanted {
                let Some((withdrawn, announced)) = told(&receiver.hear()) else { continue };
                for prefix in withdrawn {
                    holds.remove(&prefix);
                }
                holds.extend(announced);
            }
        };
        follow(&mut receiver, ROUTES as usize);
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
        follow(&mut receiver, 10);
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
        // What the receiver was told comes to the same, once the last connection has been heard out, too.
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
        wait::until("our own counts of it", || {
            let counts = [&family(101)["accepted"], &family(103)["accepted"], &family(102)["advertised"]]
                .map(Clone::clone);
            if counts == [0, ROUTES / 2, ROUTES / 2] { Ok(()) } else { Err(format!("{counts:?}")) }
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
        for (n, raw) in (0_u32..).zip(&mut senders) {
            raw.say(&taken_back(n * routes / 2, n * routes / 2 + routes));
        }
        for last in 101..101 + neighbours {
            speaker.await_received(last, 0);
        }
        bystander.say(&raw::update(&[], &usual(BYSTANDER), &[nth(0xf_0000)]));
        let (holds, seen) = reader.join().unwrap();
        assert_eq!(holds.into_iter().collect::<Vec<_>>(), [nth(0xf_0000)]);
        assert!(seen > routes as usize, "the receiver has seen {seen} at once");
        unharmed(&mut speaker, &mut bystander);
    });
}
