//! The little of VPP's binary API that a peer which acknowledges and a loop which writes routes need: frames, the
//! handshake, the layout of a route.
//!
//! Written apart from our own codec, so that a fault there cannot hide here: names, checksums and sizes of messages are
//! read from the catalogue, what is inside a route stands below.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;

use serde_json::Value;

use crate::table::Prefix;

const CATALOGUE: &str = include_str!("../../../../vpp/catalogue/messages.json");
/// The release whose checksums are used.
const RELEASE: &str = "26.06";

/// Octets in front of a payload, of which four are its length.
pub(crate) const FRAME: usize = 16;
const LENGTH_AT: usize = 8;

/// The number of `sockclnt_create`.
pub(crate) const CREATE: u16 = 15;
/// The number of `control_ping`.
pub(crate) const PING: u16 = 23;

/// Where a request's context stands, but that of `sockclnt_create`.
const CONTEXT_AT: usize = 6;
/// Of `ip_route_add_del_v2`: whether it adds, and where `ip_route_v2` begins.
const ADD_AT: usize = 10;
const ROUTE_AT: usize = 12;
/// Inside `ip_route_v2`.
const PREFIX_AT: usize = 8;
const LENGTH_OF_PREFIX_AT: usize = PREFIX_AT + 17;
const COUNT_AT: usize = 26;
const SOURCE_AT: usize = 27;
const PATHS_AT: usize = 28;
/// Of a path.
const PATH: usize = 167;
const NEXT_HOP_AT: usize = 26;

/// A message of the catalogue.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Its name.
    pub(crate) name: String,
    /// As it stands in the table of a VPP: with the checksum.
    pub(crate) full_name: String,
    /// Octets without variable parts.
    pub(crate) size: usize,
    /// What answers it, where one message does.
    pub(crate) reply: Option<String>,
    /// Where the answer's context stands.
    pub(crate) context_at: Option<usize>,
}

/// All messages of the release.
#[must_use]
pub(crate) fn catalogue() -> BTreeMap<String, Message> {
    let all: Value = serde_json::from_str(CATALOGUE).expect("the catalogue is JSON");
    let messages = all["messages"].as_object().expect("it has messages");
    let message = |(name, message): (&String, &Value)| {
        let checksum = message["crc"][RELEASE].as_str()?;
        let at = |field: &Value| usize::try_from(field["at"].as_u64()?).ok();
        let context = message["fields"].as_array()?.iter().find(|field| field["n"] == "context");
        Some((
            name.clone(),
            Message {
                name: name.clone(),
                full_name: format!("{name}_{}", checksum.trim_start_matches("0x")),
                size: usize::try_from(message["min_size"].as_u64()?).ok()?,
                reply: message["reply"].as_str().map(str::to_owned),
                context_at: context.and_then(at),
            },
        ))
    };
    messages.iter().filter_map(message).collect()
}

/// Appends one frame.
pub(crate) fn frame(out: &mut Vec<u8>, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("no message is that long");
    out.extend([0; LENGTH_AT]);
    out.extend(length.to_be_bytes());
    out.extend([0; FRAME - LENGTH_AT - 4]);
    out.extend(payload);
}

/// The payload of the frame that `bytes` begin with, and what follows; `None` where it is not whole.
#[must_use]
pub(crate) fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = word(bytes, LENGTH_AT)? as usize;
    bytes.get(FRAME..)?.split_at_checked(length)
}

/// Four octets at `at`.
#[must_use]
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// The number of a message.
#[must_use]
pub(crate) fn number(payload: &[u8]) -> Option<u16> {
    payload.first_chunk().copied().map(u16::from_be_bytes)
}

/// What is in the request of a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// False where it is deleted.
    pub(crate) add: bool,
    /// The destination; of an IPv4 one only.
    pub(crate) prefix: Prefix,
    /// The next hop of its first path.
    pub(crate) next_hop: Ipv4Addr,
}

/// Reads an `ip_route_add_del_v2` of IPv4 with one path, or none where it deletes.
#[must_use]
pub(crate) fn route(payload: &[u8]) -> Option<Route> {
    let add = *payload.get(ADD_AT)? == 1;
    let (prefix, next_hop) = prefix_and_hop(payload.get(ROUTE_AT..)?)?;
    Some(Route { add, prefix, next_hop })
}

/// Reads an `ip_route_v2` of IPv4.
#[must_use]
pub(crate) fn prefix_and_hop(route: &[u8]) -> Option<(Prefix, Ipv4Addr)> {
    let (0, length) = (*route.get(PREFIX_AT)?, *route.get(LENGTH_OF_PREFIX_AT)?) else { return None };
    let bits = u128::from(word(route, PREFIX_AT + 1)?) << 96;
    let next_hop = word(route, PATHS_AT + NEXT_HOP_AT).unwrap_or(0);
    (*route.get(COUNT_AT)? <= 1).then_some((Prefix { bits, length }, Ipv4Addr::from(next_hop)))
}

/// A connection of the bare loop, which has shaken hands.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    handle: u32,
    numbers: BTreeMap<String, u16>,
    catalogue: BTreeMap<String, Message>,
    input: Vec<u8>,
}

impl<S: Read + Write> Connection<S> {
    /// Shakes hands.
    ///
    /// # Errors
    ///
    /// The stream ends, or what comes is no handshake.
    pub(crate) fn new(mut stream: S) -> io::Result<Self> {
        let mut hello = vec![0; 70];
        hello[..2].copy_from_slice(&CREATE.to_be_bytes());
        hello[6..11].copy_from_slice(b"bench");
        let mut out = Vec::new();
        frame(&mut out, &hello);
        stream.write_all(&out)?;
        let mut connection =
            Self { stream, handle: 0, numbers: BTreeMap::new(), catalogue: catalogue(), input: Vec::new() };
        let reply = connection.receive()?;
        connection.handle = word(&reply, 14).ok_or(io::ErrorKind::InvalidData)?;
        for entry in reply.get(20..).unwrap_or_default().chunks_exact(66) {
            let name = entry[2..].split(|octet| *octet == 0).next().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            connection.numbers.insert(name, u16::from_be_bytes([entry[0], entry[1]]));
        }
        Ok(connection)
    }

    /// A message of `size` octets and more with its head filled in.
    ///
    /// # Panics
    ///
    /// When this VPP has no such message.
    #[must_use]
    pub(crate) fn request(&self, name: &str) -> Vec<u8> {
        let message = &self.catalogue[name];
        let number = self.numbers.get(&message.full_name);
        let number = number.unwrap_or_else(|| panic!("this VPP has no {}", message.full_name));
        let mut payload = vec![0; message.size];
        payload[..2].copy_from_slice(&number.to_be_bytes());
        payload[2..6].copy_from_slice(&self.handle.to_be_bytes());
        payload
    }

    /// Requests that add routes through a next hop, or delete them, one frame behind the other, and the size of each.
    #[must_use]
    pub(crate) fn routes(
        &self,
        prefixes: &[Prefix],
        next_hop: Ipv4Addr,
        source: u8,
        add: bool,
    ) -> (Vec<u8>, usize) {
        let mut payload = self.request("ip_route_add_del_v2");
        payload[ADD_AT] = u8::from(add);
        payload[ROUTE_AT + SOURCE_AT] = source;
        if add {
            payload[ROUTE_AT + COUNT_AT] = 1;
            let mut path = [0; PATH];
            // No interface; the next hop is looked up in the main table.
            path[..4].copy_from_slice(&u32::MAX.to_be_bytes());
            path[12] = 1;
            path[NEXT_HOP_AT..NEXT_HOP_AT + 4].copy_from_slice(&next_hop.octets());
            payload.extend(path);
        }
        let mut out = Vec::with_capacity(prefixes.len() * (FRAME + payload.len()));
        for prefix in prefixes {
            let bits = u32::try_from(prefix.bits >> 96).expect("IPv4");
            payload[ROUTE_AT + PREFIX_AT + 1..ROUTE_AT + PREFIX_AT + 5].copy_from_slice(&bits.to_be_bytes());
            payload[ROUTE_AT + LENGTH_OF_PREFIX_AT] = prefix.length;
            frame(&mut out, &payload);
        }
        (out, FRAME + payload.len())
    }

    /// Sends one request and waits for one answer.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub(crate) fn ask(&mut self, payload: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        frame(&mut out, payload);
        self.stream.write_all(&out)?;
        self.receive()
    }

    /// Writes whole frames.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub(crate) fn write(&mut self, frames: &[u8]) -> io::Result<()> {
        self.stream.write_all(frames)
    }

    /// The next payload.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub(crate) fn receive(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some((payload, rest)) = split(&self.input) {
                let (payload, kept) = (payload.to_vec(), rest.len());
                self.input.drain(..self.input.len() - kept);
                return Ok(payload);
            }
            let mut room = [0; 65_536];
            let count = self.stream.read(&mut room)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend(&room[..count]);
        }
    }

    /// Writes requests of equal size as fast as answers come, at most `window` of them unanswered. Answers how many were
    /// refused.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub(crate) fn pump(&mut self, requests: &[u8], size: usize, window: usize) -> io::Result<usize> {
        let count = requests.len() / size;
        let (mut sent, mut answered, mut refused) = (0, 0, 0);
        let mut room = vec![0; 65_536];
        let mut kept = 0;
        while answered < count {
            let until = count.min(answered + window);
            if sent < until {
                self.stream.write_all(&requests[sent * size..until * size])?;
                sent = until;
            }
            let read = self.stream.read(&mut room[kept..])?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut rest = &room[..kept + read];
            while let Some((payload, behind)) = split(rest) {
                answered += 1;
                refused += usize::from(word(payload, CONTEXT_AT) != Some(0));
                rest = behind;
            }
            let whole = kept + read - rest.len();
            room.copy_within(whole..kept + read, 0);
            kept = kept + read - whole;
        }
        Ok(refused)
    }

    /// Takes leave of VPP, as one must.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub(crate) fn leave(mut self) -> io::Result<()> {
        let mut payload = vec![0; 10];
        payload[..2].copy_from_slice(&17_u16.to_be_bytes());
        payload[2..6].copy_from_slice(&self.handle.to_be_bytes());
        payload.extend(self.handle.to_be_bytes());
        self.ask(&payload).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Deaf;

    impl Read for Deaf {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
    }

    impl Write for Deaf {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_route_that_is_written_is_read_again() {
        let catalogue = catalogue();
        let name = &catalogue["ip_route_add_del_v2"].full_name;
        let numbers = BTreeMap::from([(name.clone(), 700)]);
        let connection = Connection { stream: Deaf, handle: 7, numbers, catalogue, input: Vec::new() };
        let prefixes: Vec<Prefix> =
            (0..3).map(|n| Prefix { bits: (0x0a00_0000 + (n << 8)) << 96, length: 24 }).collect();
        let next_hop = Ipv4Addr::new(192, 0, 2, 11);
        for add in [true, false] {
            let (bytes, size) = connection.routes(&prefixes, next_hop, 30, add);
            assert_eq!(bytes.len(), 3 * size);
            let mut rest = bytes.as_slice();
            for prefix in &prefixes {
                let (payload, behind) = split(rest).unwrap();
                let next_hop = if add { next_hop } else { Ipv4Addr::UNSPECIFIED };
                assert_eq!(number(payload), Some(700));
                assert_eq!(route(payload), Some(Route { add, prefix: *prefix, next_hop }));
                rest = behind;
            }
            assert!(rest.is_empty());
        }
    }
}
