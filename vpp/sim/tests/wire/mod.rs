//! A client of bytes: it can send what no typed client would.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Marks the end of the answers to one request.
const END: u32 = 0x7fff_fff0;

/// The count field of `sockclnt_create_reply`, masked with the table behind it.
const COUNT_AT: usize = 18;

/// A connection.
pub(crate) struct Peer {
    stream: UnixStream,
    /// Ids by name_CRC.
    pub(crate) table: BTreeMap<String, u16>,
    names: BTreeMap<u16, String>,
    /// The handle.
    pub(crate) handle: u32,
}

impl Peer {
    /// Connects, without a handshake.
    pub(crate) async fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).await.expect("somebody listens");
        Self { stream, table: BTreeMap::new(), names: BTreeMap::new(), handle: 0 }
    }

    /// Connects and shakes hands.
    pub(crate) async fn greeted(path: &Path) -> Self {
        let mut peer = Self::connect(path).await;
        let mut hello = vec![0, 15, 0, 0, 0, 1];
        hello.extend_from_slice(b"test");
        hello.resize(70, 0);
        peer.send(&hello).await;
        peer.read_greeting().await;
        peer
    }

    /// Sends one frame.
    pub(crate) async fn send(&mut self, payload: &[u8]) {
        self.send_raw(&framed(payload)).await;
    }

    /// Sends bytes as they are.
    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the other side reads");
    }

    /// Sends bytes that may be refused because the other side has closed.
    pub(crate) async fn try_send_raw(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// The next payload; `None` at the end of the stream.
    pub(crate) async fn read(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).await.ok()?;
        Some(payload)
    }

    /// So many bytes of the stream.
    pub(crate) async fn read_bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await.expect("so many bytes");
        bytes
    }

    /// Reads `sockclnt_create_reply` and learns handle and table. The payload up to the count.
    pub(crate) async fn read_greeting(&mut self) -> Vec<u8> {
        let payload = self.read().await.expect("a greeting");
        self.handle = payload_u32(&payload, 14);
        let count = usize::from(u16::from_be_bytes([payload[COUNT_AT], payload[COUNT_AT + 1]]));
        let entries = payload[COUNT_AT + 2..].chunks_exact(66);
        assert_eq!(entries.len(), count);
        for entry in entries {
            let id = u16::from_be_bytes([entry[0], entry[1]]);
            let end = entry[2..].iter().position(|byte| *byte == 0).unwrap_or(64);
            let name = String::from_utf8(entry[2..2 + end].to_vec()).expect("names are text");
            self.names.insert(id, name[..name.len() - 9].to_owned());
            self.table.insert(name, id);
        }
        payload
    }

    /// The name of the message with this id, without CRC.
    pub(crate) fn name_of(&self, id: u16) -> String {
        match id {
            16 => "sockclnt_create_reply".to_owned(),
            id => self.names.get(&id).cloned().unwrap_or_else(|| format!("unknown {id}")),
        }
    }

    /// The id of a message by its name without CRC.
    pub(crate) fn id(&self, name: &str) -> u16 {
        *self
            .names
            .iter()
            .find(|(_, other)| *other == name)
            .unwrap_or_else(|| panic!("{name} is not in the table"))
            .0
    }

    /// A request with this handle.
    pub(crate) fn request(&self, name: &str, context: u32, fields: &[u8]) -> Vec<u8> {
        let mut payload = self.id(name).to_be_bytes().to_vec();
        payload.extend_from_slice(&self.handle.to_be_bytes());
        payload.extend_from_slice(&context.to_be_bytes());
        payload.extend_from_slice(fields);
        payload
    }

    /// Sends a request and reads everything up to the answer to a ping behind it.
    pub(crate) async fn ask(&mut self, name: &str, fields: &[u8]) -> Vec<Vec<u8>> {
        let request = self.request(name, 7, fields);
        self.send(&request).await;
        self.read_to_ping().await
    }

    /// Asks for something that answers with a retval first.
    pub(crate) async fn retval(&mut self, name: &str, fields: &[u8]) -> i32 {
        let answers = self.ask(name, fields).await;
        let reply = format!("{name}_reply");
        let answer =
            answers.iter().find(|answer| self.name_of(u16::from_be_bytes([answer[0], answer[1]])) == reply);
        payload_u32(answer.expect("an answer"), 6).cast_signed()
    }

    /// Pings and reads everything up to the answer.
    pub(crate) async fn read_to_ping(&mut self) -> Vec<Vec<u8>> {
        let mut ping = 23u16.to_be_bytes().to_vec();
        ping.extend_from_slice(&self.handle.to_be_bytes());
        ping.extend_from_slice(&END.to_be_bytes());
        self.send(&ping).await;
        let mut answers = Vec::new();
        loop {
            let answer = self.read().await.expect("an answer to the ping");
            if answer[..2] == [0, 24] && payload_u32(&answer, 2) == END {
                return answers;
            }
            answers.push(answer);
        }
    }
}

/// A payload with its header.
pub(crate) fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 8];
    frame.extend_from_slice(&u32::try_from(payload.len()).expect("short").to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// A number in a payload.
pub(crate) fn payload_u32(payload: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(payload[at..at + 4].try_into().expect("4 bytes"))
}

/// Bytes as text.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text as bytes.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("hexadecimal"))
        .collect()
}
