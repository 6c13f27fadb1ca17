//! The few lines of BGP that a sender and a receiver need: OPEN, KEEPALIVE, IPv4 UPDATEs with 4-octet AS numbers.
//!
//! Written apart from our own codec, so that a fault there cannot hide here.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

use crate::table::Route;

/// The message type of OPEN.
pub(crate) const OPEN: u8 = 1;
/// The message type of KEEPALIVE.
pub(crate) const KEEPALIVE: u8 = 4;

/// Hold time of a sender or receiver of tables, in seconds.
const LONG_HOLD: u16 = 240;

/// An Established session.
pub(crate) struct Session {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    start: usize,
}

/// What a received UPDATE says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Update {
    /// AS path, all segments in a row.
    pub(crate) as_path: Vec<u32>,
    /// Standard communities, as received.
    pub(crate) communities: Vec<u32>,
    /// NEXT_HOP.
    pub(crate) next_hop: u32,
    /// Announced prefixes.
    pub(crate) announced: Vec<(u32, u8)>,
    /// Withdrawn prefixes.
    pub(crate) withdrawn: Vec<(u32, u8)>,
}

impl Session {
    /// Connects from `local` to `remote`, opens the session as `asn` and waits until it is Established.
    pub(crate) fn open(local: IpAddr, remote: SocketAddr, asn: u32, router_id: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(remote), Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(local, 0).into())?;
        socket.connect(&remote.into())?;
        let mut session = Self { stream: socket.into(), buffer: vec![0; 1 << 20], filled: 0, start: 0 };
        session.stream.set_nodelay(true)?;
        session.send(&open(asn, router_id, LONG_HOLD))?;
        session.expect(OPEN)?;
        session.send(&keepalive())?;
        session.expect(KEEPALIVE)?;
        Ok(session)
    }

    /// Sends whole messages.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    fn expect(&mut self, kind: u8) -> io::Result<()> {
        let (received, body) = self.receive()?;
        if received == kind {
            return Ok(());
        }
        Err(io::Error::other(format!("message type {received} instead of {kind}: {body:?}")))
    }

    /// The next UPDATE; KEEPALIVEs are answered on the way.
    pub(crate) fn update(&mut self) -> io::Result<Update> {
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                2 => return parse_update(body).ok_or_else(|| io::Error::other("malformed UPDATE")),
                KEEPALIVE => self.send(&keepalive())?,
                other => return Err(io::Error::other(format!("message type {other}: {body:?}"))),
            }
        }
    }

    fn receive(&mut self) -> io::Result<(u8, &[u8])> {
        loop {
            let pending = &self.buffer[self.start..self.filled];
            if pending.len() >= 19 {
                let length = usize::from(u16::from_be_bytes([pending[16], pending[17]]));
                if pending.len() >= length {
                    let (from, kind) = (self.start + 19, pending[18]);
                    self.start += length;
                    return Ok((kind, &self.buffer[from..self.start]));
                }
            }
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
            let count = self.stream.read(&mut self.buffer[self.filled..])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.filled += count;
        }
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 19).expect("at most 4096 octets");
    let mut bytes = vec![0xff; 16];
    bytes.extend(length.to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

/// A KEEPALIVE.
#[must_use]
pub(crate) fn keepalive() -> Vec<u8> {
    message(KEEPALIVE, &[])
}

/// An OPEN that offers IPv4 unicast, 4-octet AS numbers and a hold time in seconds.
#[must_use]
pub(crate) fn open(asn: u32, router_id: u32, hold_time: u16) -> Vec<u8> {
    let mut body = vec![4];
    body.extend(u16::try_from(asn).unwrap_or(23_456).to_be_bytes());
    body.extend(hold_time.to_be_bytes());
    body.extend(router_id.to_be_bytes());
    // IPv4 unicast, and 4-octet AS numbers.
    let mut capabilities = vec![1, 4, 0, 1, 0, 1, 65, 4];
    capabilities.extend(asn.to_be_bytes());
    let length = u8::try_from(capabilities.len()).expect("a dozen octets");
    body.extend([length + 2, 2, length]);
    body.extend(capabilities);
    message(OPEN, &body)
}

/// All UPDATEs for `routes`, packed as a daemon would pack them.
#[must_use]
pub(crate) fn updates(routes: &[Route], next_hop: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for route in routes {
        let attributes = attributes(route, next_hop);
        let mut prefixes = route.prefixes.iter().peekable();
        while prefixes.peek().is_some() {
            let mut nlri = Vec::new();
            while let Some(prefix) = prefixes.peek() {
                if 19 + 4 + attributes.len() + nlri.len() + 5 > 4096 {
                    break;
                }
                push_prefix(&mut nlri, **prefix);
                prefixes.next();
            }
            let mut body = vec![0, 0];
            body.extend(u16::try_from(attributes.len()).expect("short").to_be_bytes());
            body.extend(&attributes);
            body.extend(nlri);
            bytes.extend(message(2, &body));
        }
    }
    bytes
}

/// The End-of-RIB marker of IPv4 unicast (RFC 4724 section 2).
#[must_use]
pub(crate) fn end_of_rib() -> Vec<u8> {
    message(2, &[0, 0, 0, 0])
}

fn attributes(route: &Route, next_hop: u32) -> Vec<u8> {
    let mut bytes = vec![0x40, 1, 1, 0];
    let hops = u8::try_from(route.as_path.len()).expect("short");
    bytes.extend([0x40, 2, 2 + 4 * hops, 2, hops]);
    bytes.extend(route.as_path.iter().flat_map(|asn| asn.to_be_bytes()));
    bytes.extend([0x40, 3, 4]);
    bytes.extend(next_hop.to_be_bytes());
    if !route.communities.is_empty() {
        bytes.extend([0xc0, 8, u8::try_from(4 * route.communities.len()).expect("short")]);
        bytes.extend(route.communities.iter().flat_map(|community| community.to_be_bytes()));
    }
    bytes
}

fn push_prefix(bytes: &mut Vec<u8>, (address, length): (u32, u8)) {
    bytes.push(length);
    bytes.extend(&address.to_be_bytes()[..usize::from(length.div_ceil(8))]);
}

fn parse_update(body: &[u8]) -> Option<Update> {
    let mut update = Update::default();
    let (withdrawn, rest) = counted(body)?;
    let (mut attributes, nlri) = counted(rest)?;
    while let [flags, code, rest @ ..] = attributes {
        let (length, rest) = if flags & 0x10 == 0 {
            rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?
        } else {
            (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), &rest[2..])
        };
        let (value, rest) = rest.split_at_checked(length)?;
        attributes = rest;
        match code {
            2 => update.as_path = parse_as_path(value)?,
            3 => update.next_hop = u32::from_be_bytes(value.try_into().ok()?),
            8 => update.communities = words(value),
            _ => {}
        }
    }
    update.withdrawn = parse_prefixes(withdrawn)?;
    update.announced = parse_prefixes(nlri)?;
    Some(update)
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(length.try_into().ok()?)))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().expect("four octets"))).collect()
}

fn parse_as_path(mut bytes: &[u8]) -> Option<Vec<u32>> {
    let mut path = Vec::new();
    while let [_, count, rest @ ..] = bytes {
        let (segment, rest) = rest.split_at_checked(4 * usize::from(*count))?;
        path.extend(words(segment));
        bytes = rest;
    }
    Some(path)
}

fn parse_prefixes(mut bytes: &[u8]) -> Option<Vec<(u32, u8)>> {
    let mut prefixes = Vec::new();
    while let [length, rest @ ..] = bytes {
        let (address, rest) = rest.split_at_checked(usize::from(length.div_ceil(8)))?;
        let mut whole = [0; 4];
        whole.get_mut(..address.len())?.copy_from_slice(address);
        prefixes.push((u32::from_be_bytes(whole), *length));
        bytes = rest;
    }
    Some(prefixes)
}
