//! Replays the corpora of the fuzz targets, and messages of the world, through what must hold for any octets.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../fuzz/src/bgp.rs"]
mod bgp;
#[path = "../../../fuzz/src/mrt.rs"]
mod fuzz_mrt;
mod mrt;
mod vectors;

use bgp_wire::{
    AttrProblem, FamilySet, Ipv4Prefix, Ipv6Prefix, Message, Negotiated, UpdateView, attr::Canonical,
    parse_message, split_message,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use vectors::from_hex;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files
}

/// A folder of recorded data, which is not part of the project; absent on most machines.
fn recorded(folder: &str) -> Option<Vec<PathBuf>> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora")).join(folder);
    if path.is_dir() {
        Some(files(&path))
    } else {
        println!("no recorded messages: ../shared/corpora/{folder} is absent");
        None
    }
}

#[test]
fn fuzz_corpora() {
    for (target, check) in
        [("message", bgp::message as fn(&[u8])), ("update", bgp::update), ("mrt", fuzz_mrt::mrt)]
    {
        for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)) {
            check(&fs::read(file).unwrap());
        }
    }
}

#[test]
fn single_messages_on_every_kind_of_session() {
    let Some(files) = recorded("messages") else { return };
    let mut refused = 0;
    for file in files {
        for line in fs::read_to_string(&file).unwrap().lines().filter(|line| !line.starts_with('#')) {
            let Some(octets) = from_hex(line) else { continue };
            for choice in 0..bgp::SESSIONS {
                let input = [&[choice], &octets[..]].concat();
                bgp::message(&input);
                bgp::update(&input);
            }
            refused += usize::from(split_message(&octets, 4096).is_err());
        }
    }
    assert!(refused > 0, "some of them are no messages");
}

/// What one file of recorded updates led to.
#[derive(Debug, Default)]
struct Tally {
    updates: usize,
    others: usize,
    announced4: usize,
    withdrawn4: usize,
    announced6: usize,
    refused: usize,
    treated_as_withdrawn: usize,
    distinct4: BTreeSet<Ipv4Prefix>,
}

/// How many messages of a file go through every check; the others are decoded only.
const THOROUGH: usize = 1000;

fn tally(file: &Path) -> Tally {
    let data = mrt::read(file);
    fuzz_mrt::mrt(&data[..data.len().min(1 << 17)]);
    let name = file.file_name().unwrap().to_string_lossy();
    // BIRD's files are of sessions with path identifiers, and their record types do not say so.
    let add_path = if name.starts_with("bird") { FamilySet::ALL } else { FamilySet::EMPTY };
    let mut tally = Tally::default();
    // A collector of 2000 sometimes left out who was at the ends of a session.
    let unreadable = bgp_wire::mrt::Reader::new(&data).filter(Result::is_err).count();
    assert_eq!(unreadable, if name.contains("2000-11-04") { 63 } else { 0 });
    for (place, record) in mrt::messages(&data).enumerate() {
        let neg = Negotiated {
            families: FamilySet::ALL,
            four_octet: record.four_octet,
            ebgp: record.peer_asn != record.local_asn,
            add_path_receive: add_path,
            max_message: 65535,
            ..Negotiated::default()
        };
        if place < THOROUGH {
            for choice in [u8::from(neg.four_octet) | u8::from(neg.ebgp) << 1 | 8, 15] {
                bgp::message(&[&[choice], record.octets].concat());
            }
        }
        let Ok(Some(frame)) = split_message(record.octets, 65535) else {
            tally.refused += 1;
            continue;
        };
        match parse_message(frame, &neg) {
            Ok(Message::Update(view)) => tally.update(&view),
            Ok(_) => tally.others += 1,
            Err(error) => {
                println!("{name}: {error}: {frame:02x?}");
                tally.refused += 1;
            }
        }
    }
    tally
}

impl Tally {
    fn update(&mut self, view: &UpdateView<'_>) {
        self.updates += 1;
        self.withdrawn4 += view.withdrawn().count();
        self.announced4 += view.announced().count();
        self.announced6 += view.mp_announced::<Ipv6Prefix>().count();
        self.distinct4.extend(view.announced().map(|(_, prefix)| prefix));
        if view.has_reachable() {
            match view.decode() {
                Ok(decoded) => self.treated_as_withdrawn += usize::from(decoded.treat_as_withdraw.is_some()),
                Err(_) => self.refused += 1,
            }
        }
    }
}

#[test]
fn recorded_updates() {
    let Some(files) = recorded("mrt") else { return };
    let mut seen = 0;
    for file in files.iter().filter(|file| file.to_string_lossy().contains("updates")) {
        let tally = tally(file);
        let Some((_, expected)) = EXPECTED.iter().find(|(name, _)| file.ends_with(name)) else {
            panic!("nothing is known of {}", file.display())
        };
        let counts = [
            tally.updates,
            tally.others,
            tally.announced4,
            tally.withdrawn4,
            tally.announced6,
            tally.distinct4.len(),
            tally.refused,
            tally.treated_as_withdrawn,
        ];
        assert_eq!(counts, *expected, "{}", file.display());
        seen += 1;
    }
    assert_eq!(seen, EXPECTED.len());
}

/// For each file: UPDATEs, other messages, IPv4 prefixes announced and withdrawn, IPv6 prefixes announced,
/// distinct IPv4 prefixes, messages refused, UPDATEs treated as withdrawals.
#[rustfmt::skip]
const EXPECTED: [(&str, [usize; 8]); 12] = [
    ("bird-updates.mrt", [8, 9, 14, 0, 0, 4, 0, 0]),
    ("bird6-updates.mrt", [8, 9, 0, 0, 14, 0, 0, 0]),
    ("openbgpd-updates.mrt", [48, 23, 33, 0, 60, 11, 0, 0]),
    ("quagga-updates.mrt", [24, 23, 6, 0, 12, 3, 0, 0]),
    ("updates-2000-11-04.gz", [266, 635, 378, 141, 0, 137, 0, 0]),
    ("updates-2002-07-22.gz", [393, 635, 825, 2419, 0, 598, 0, 0]),
    ("updates-2007-02-11.gz", [23394, 0, 46816, 1920, 4420, 2183, 0, 0]),
    ("updates-2010-02-27.gz", [6546, 49, 52468, 1318, 0, 49048, 0, 0]),
    ("updates-2015-10-23-ibgp-et.gz", [89679, 3, 577737, 3, 0, 577706, 0, 1]),
    ("updates-2016-08-11.gz", [17216, 168, 32710, 1616, 6546, 1619, 0, 0]),
    ("updates-2019-01-01.gz", [54107, 364, 150389, 2173, 9559, 18208, 0, 0]),
    ("updates-2019-long-withdrawal.gz", [1, 0, 0, 0, 0, 0, 0, 0]),
];

#[test]
fn recorded_tables() {
    let Some(files) = recorded("mrt") else { return };
    let mut seen = BTreeMap::new();
    let mut discarded = 0;
    for file in files.iter().filter(|file| file.to_string_lossy().contains("rib")) {
        let data = mrt::read(file);
        fuzz_mrt::mrt(&data);
        let mut routes = 0;
        for entry in mrt::entries(&data) {
            let decoded = entry.decode().unwrap();
            assert_eq!(Canonical(&decoded.canonical).facts(), decoded.facts);
            // AS 0, in the table of 2002.
            assert!(
                decoded.discarded.iter().all(|fault| (fault.code, fault.what) == (7, AttrProblem::Value))
            );
            discarded += decoded.discarded.len();
            // BIRD dumps its own static routes too, which have no attributes.
            let empty = entry.octets().is_empty();
            assert_eq!(decoded.treat_as_withdraw.is_some(), empty, "{:02x?}", entry.octets());
            routes += 1;
        }
        seen.insert(file.file_name().unwrap().to_str().unwrap().to_owned(), routes);
    }
    assert_eq!(discarded, 8);
    let expected = [
        ("bird-rib.mrt", 18),
        ("openbgpd-rib-v1.mrt", 31),
        ("openbgpd-rib-v2.mrt", 33),
        ("quagga-rib.mrt", 9),
        ("rib-2002-07-22-v1.gz", 115_521),
        ("rib-2016-addpath-ipv4.gz", 62),
        ("rib-2018-record-over-64k.gz", 23),
    ];
    assert!(seen.iter().map(|(name, routes)| (name.as_str(), *routes)).eq(expected), "{seen:?}");
}
