//! A segment made by the test, handed over as VPP does; and the real one, where `VPP_STATS` names its socket.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::Ordering;

use rustix::fs::MemfdFlags;
use rustix::io::pwrite;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, accept,
    bind, listen, sendmsg, socket,
};
use vpp_stats::map::Map;
use vpp_stats::{Segment, Stats, StatsError, metric_name};

/// Where VPP would have the segment.
const BASE: u64 = 0x1_3000_0000;
const EPOCH_AT: u64 = 16;
const IN_PROGRESS_AT: u64 = 24;

/// Lays a segment out.
struct Made {
    bytes: Vec<u8>,
    entries: Vec<(u32, u64, &'static str)>,
}

impl Made {
    fn new() -> Self {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(&2_u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&BASE.to_ne_bytes());
        bytes[16..24].copy_from_slice(&7_u64.to_ne_bytes());
        Self { bytes, entries: Vec::new() }
    }

    /// A vector; its pointer.
    fn vector(&mut self, length: usize, elements: &[u8]) -> u64 {
        while !self.bytes.len().is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.bytes.extend_from_slice(&(length as u32).to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        let pointer = BASE + self.bytes.len() as u64;
        self.bytes.extend_from_slice(elements);
        pointer
    }

    fn words(&mut self, words: &[u64], width: usize) -> u64 {
        let elements: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.vector(words.len() / width, &elements)
    }

    fn text(&mut self, text: &str) -> u64 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.vector(bytes.len(), &bytes)
    }

    /// The segment as a file.
    fn file(mut self) -> OwnedFd {
        let mut directory = Vec::new();
        for (kind, value, name) in &self.entries {
            directory.extend_from_slice(&kind.to_ne_bytes());
            directory.extend_from_slice(&[0; 4]);
            directory.extend_from_slice(&value.to_ne_bytes());
            directory.extend_from_slice(name.as_bytes());
            directory.resize(directory.len().next_multiple_of(144), 0);
        }
        let length = self.entries.len();
        let pointer = self.vector(length, &directory);
        self.bytes[32..40].copy_from_slice(&pointer.to_ne_bytes());
        let file = rustix::fs::memfd_create("stats", MemfdFlags::CLOEXEC).expect("a file in memory");
        assert_eq!(pwrite(&file, &self.bytes, 0), Ok(self.bytes.len()));
        file
    }
}

/// Two interfaces with a hole between them, two threads, an error that has happened and one that has not.
fn usual() -> Made {
    let mut made = Made::new();
    let names = [made.text("local0"), 0, made.text("host-eth0")];
    let names = made.words(&names, 1);
    let rx = [made.words(&[1, 100, 0, 0, 2, 200], 2), made.words(&[0, 0, 0, 0, 3, 300], 2)];
    let rx = made.words(&rx, 1);
    let drops = [made.words(&[4, 0, 5], 1), 0];
    let drops = made.words(&drops, 1);
    let errors = [made.words(&[0, 9], 1), made.words(&[0, 1], 1)];
    let errors = made.words(&errors, 1);
    made.entries = vec![
        (0, 0, ""),
        (4, names, "/if/names"),
        (3, rx, "/if/rx"),
        (2, drops, "/if/rx-error"),
        (2, errors, "/node/errors"),
        (6, 4 | 1 << 32, "/err/ip4-input/bad checksum"),
        (6, 4, "/err/ip4-input/none"),
        (1, 42, "/sys/heartbeat"),
        (9, 43, "/sys/vector_rate"),
        (7, BASE, "/sys/histogram"),
    ];
    made
}

fn set(file: impl AsFd, at: u64, value: u64) {
    assert_eq!(pwrite(file, &value.to_ne_bytes(), at), Ok(8));
}

fn segment(file: &OwnedFd) -> Segment {
    Segment::new(Map::new(file).expect("mapped")).expect("a segment")
}

/// Listens as VPP does, and hands `file` to the first who comes.
fn serve(path: &Path, file: Option<OwnedFd>) -> std::thread::JoinHandle<()> {
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new(path).expect("short")).expect("bound");
    listen(&listener, 1).expect("listening");
    std::thread::spawn(move || {
        let client = accept(&listener).expect("somebody comes");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        if !files.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
            sendmsg(&client, &[IoSlice::new(&[])], &mut control, SendFlags::empty()).expect("sent");
        }
    })
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
