//! Routes that lead nowhere, and attributes as large as can be.

use interop::raw::{self, Raw, nth, told};
use interop::speaker::{self, Speaker, neighbour, peer, socket};
use test_support::lab::Lab;
use test_support::process;
use test_support::programs::{IP, available};

use super::{ASN, BYSTANDER, unharmed, usual};

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
        let long: Vec<u32> = [ASN].into_iter().chain(1..=254).collect();
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
