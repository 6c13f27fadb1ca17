//! A statistics segment made by a test, and handed over as VPP does.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::MemfdFlags;
use rustix::io::pwrite;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketType, accept,
    bind, listen, sendmsg, socket,
};

/// Where VPP would have the segment.
pub(crate) const BASE: u64 = 0x1_3000_0000;

/// Lays a segment out.
pub(crate) struct Made {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<(u32, u64, &'static str)>,
}

impl Made {
    pub(crate) fn new() -> Self {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(&2_u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&BASE.to_ne_bytes());
        bytes[16..24].copy_from_slice(&7_u64.to_ne_bytes());
        Self { bytes, entries: Vec::new() }
    }

    /// A vector; its pointer.
    pub(crate) fn vector(&mut self, length: usize, elements: &[u8]) -> u64 {
        while !self.bytes.len().is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.bytes.extend_from_slice(&(length as u32).to_ne_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        let pointer = BASE + self.bytes.len() as u64;
        self.bytes.extend_from_slice(elements);
        pointer
    }

    pub(crate) fn words(&mut self, words: &[u64], width: usize) -> u64 {
        let elements: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.vector(words.len() / width, &elements)
    }

    pub(crate) fn text(&mut self, text: &str) -> u64 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        self.vector(bytes.len(), &bytes)
    }

    /// The segment as a file.
    pub(crate) fn file(mut self) -> OwnedFd {
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
pub(crate) fn usual() -> Made {
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

/// Listens as VPP does, and hands `file` to the first who comes.
pub(crate) fn serve(path: &Path, file: Option<OwnedFd>) -> std::thread::JoinHandle<()> {
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
