//! A segment made by the test, handed over as VPP does; and the real one, where `VPP_STATS` names its socket.

mod made;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;

use made::{BASE, Made, serve, usual};
use rustix::fs::MemfdFlags;
use rustix::io::pwrite;
use vpp_stats::map::Map;
use vpp_stats::{Segment, Stats, StatsError, metric_name};

const EPOCH_AT: u64 = 16;
const IN_PROGRESS_AT: u64 = 24;

fn set(file: impl AsFd, at: u64, value: u64) {
    assert_eq!(pwrite(file, &value.to_ne_bytes(), at), Ok(8));
}

fn segment(file: &OwnedFd) -> Segment {
    Segment::new(Map::new(file).expect("mapped")).expect("a segment")
}

#[test]
fn counters_come_over_the_socket_with_their_names() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("stats.sock");
    let vpp = serve(&path, Some(usual().file()));
    let mut stats = Stats::connect(&path).expect("connected");
    vpp.join().expect("served");
    let interfaces = stats.interfaces().expect("readable");
    let counters = |all: &[(&str, u64)]| -> BTreeMap<Box<str>, u64> {
        all.iter().map(|(name, value)| ((*name).into(), *value)).collect()
    };
    assert_eq!(
        interfaces.iter().map(|one| (one.sw_if_index, &*one.name)).collect::<Vec<_>>(),
        [(0, "local0"), (2, "host-eth0")]
    );
    assert_eq!(interfaces[0].counters, counters(&[("rx_packets", 1), ("rx_bytes", 100), ("rx_error", 4)]));
    assert_eq!(interfaces[1].counters, counters(&[("rx_packets", 5), ("rx_bytes", 500), ("rx_error", 5)]));
    assert_eq!(stats.errors().expect("readable"), counters(&[("ip4-input/bad checksum", 10)]));
    assert_eq!(stats.scalar("/sys/heartbeat").expect("readable"), Some(42));
    assert_eq!(stats.scalar("/sys/vector_rate").expect("readable"), Some(43));
    assert_eq!(stats.scalar("/if/rx").expect("readable"), None);
    assert_eq!(stats.scalar("/sys/absent").expect("readable"), None);
}

#[test]
fn a_vpp_that_sends_nothing_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("stats.sock");
    let vpp = serve(&path, None);
    assert!(matches!(Stats::connect(&path), Err(StatsError::NoSegment)));
    vpp.join().expect("served");
    assert!(matches!(Stats::connect(&dir.path().join("absent")), Err(StatsError::Io(_))));
}

#[test]
fn what_changes_while_it_is_read_is_read_again() {
    let file = usual().file();
    let segment = segment(&file);
    let mut attempts = 0;
    let (read, epoch) = segment
        .consistent(|_| {
            attempts += 1;
            if attempts == 1 {
                set(&file, EPOCH_AT, 8);
            }
            Ok(attempts)
        })
        .expect("the second time nothing changes");
    assert_eq!((read, epoch), (2, 8));
    // An error in the middle of a change is no error.
    let (read, _) = segment
        .consistent(|_| {
            attempts += 1;
            if attempts == 3 {
                set(&file, EPOCH_AT, 9);
                return Err(StatsError::Corrupt);
            }
            Ok(attempts)
        })
        .expect("the second time it can be read");
    assert_eq!(read, 4);
    set(&file, IN_PROGRESS_AT, 1);
    assert!(matches!(segment.consistent(|_| Ok(())), Err(StatsError::Busy)));
}

#[test]
fn the_directory_is_read_again_when_it_has_changed() {
    let mut made = usual();
    let other = {
        let drops = [made.words(&[70, 0, 80], 1)];
        made.words(&drops, 1)
    };
    let file = made.file();
    let mut stats = Stats::new(segment(&file));
    assert_eq!(stats.interfaces().expect("readable")[0].counters["rx_error"], 4);
    // The value of the fourth entry; without a new epoch nobody looks.
    let map = Map::new(&file).expect("mapped");
    let directory = map.u64_at(32, Ordering::Relaxed).expect("a directory") - BASE;
    set(&file, directory + 3 * 144 + 8, other);
    assert_eq!(stats.interfaces().expect("readable")[0].counters["rx_error"], 4);
    set(&file, EPOCH_AT, 8);
    assert_eq!(stats.interfaces().expect("readable")[0].counters["rx_error"], 70);
}

#[test]
fn nothing_in_the_segment_is_believed() {
    type Lie = (&'static str, fn(&mut Made));
    let lies: [Lie; 6] = [
        ("a pointer before the segment", |made| made.entries[2].1 = BASE - 8),
        ("a pointer behind it", |made| made.entries[2].1 = BASE + (1 << 20)),
        ("a pointer that is not aligned", |made| made.entries[2].1 += 1),
        ("a vector that begins at the very start", |made| made.entries[2].1 = BASE),
        ("names out of nowhere", |made| made.entries[1].1 = u64::MAX),
        ("a vector longer than all", |made| {
            let at = (made.entries[2].1 - BASE) as usize;
            made.bytes[at - 8..at - 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        }),
    ];
    for (what, lie) in lies {
        let mut made = usual();
        lie(&mut made);
        let file = made.file();
        assert!(matches!(Stats::new(segment(&file)).interfaces(), Err(StatsError::Corrupt)), "{what}");
    }
    // A link that leads nowhere is no error that has happened.
    let mut made = usual();
    made.entries[5].1 = 4000 | 1 << 32;
    made.entries[6].1 = 4 | 4000 << 32;
    assert_eq!(Stats::new(segment(&made.file())).errors().expect("readable").len(), 0);
    let mut made = usual();
    made.bytes[0] = 3;
    let version = Segment::new(Map::new(made.file()).expect("mapped"));
    assert!(matches!(version, Err(StatsError::Version(3))));
    let short = rustix::fs::memfd_create("short", MemfdFlags::CLOEXEC).expect("a file in memory");
    assert!(Map::new(&short).is_err(), "empty");
    assert_eq!(pwrite(&short, &2_u64.to_ne_bytes(), 0), Ok(8));
    assert!(matches!(segment(&short).epoch(), Err(StatsError::Corrupt)));
}

#[test]
fn names_become_those_of_metrics() {
    assert_eq!(metric_name("vpp_", "/if/rx-error"), "vpp_if_rx_error");
    assert_eq!(metric_name("", "rx-no-buf"), "rx_no_buf");
}

#[test]
fn a_real_vpp_has_what_is_asked_for() {
    let Some(path) = std::env::var_os("VPP_STATS") else {
        println!("skipped: VPP_STATS names no statistics socket of a VPP");
        return;
    };
    let mut stats = Stats::connect(Path::new(&path)).expect("connected");
    let interfaces = stats.interfaces().expect("readable");
    let local = interfaces.first().expect("local0 is always there");
    assert_eq!((local.sw_if_index, &*local.name), (0, "local0"));
    for counter in ["rx_packets", "tx_bytes", "drops", "rx_error", "tx_error", "punt"] {
        assert!(local.counters.contains_key(counter), "{counter}: {:?}", local.counters.keys());
    }
    assert!(stats.scalar("/sys/heartbeat").expect("readable").is_some());
    assert!(stats.scalar("/sys/num_worker_threads").expect("readable").is_some());
    println!("errors: {:?}", stats.errors().expect("readable"));
}
