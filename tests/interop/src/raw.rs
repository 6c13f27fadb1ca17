//! A BGP neighbour of octets: it says exactly what a test wants said, well-formed or not, and shows what comes back.
//!
//! It shares no code with the speaker, so that both can't be wrong in the same way. It keeps no timers.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};
use test_support::wait::{self, PATIENCE};

/// A KEEPALIVE.
pub const KEEPALIVE: [u8; 19] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 19, 4,
];

/// Prefixes: address and length.
pub type Prefixes = Vec<(Ipv4Addr, u8)>;

/// A whole message as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its type code.
    pub kind: u8,
    /// What follows the header.
    pub body: Vec<u8>,
}

impl Message {
    /// Code, subcode and data, if it is a NOTIFICATION.
    #[must_use]
    pub fn notification(&self) -> Option<(u8, u8, &[u8])> {
        match (self.kind, &*self.body) {
            (3, [code, subcode, data @ ..]) => Some((*code, *subcode, data)),
            _ => None,
        }
    }
}

/// One connection to the speaker.
#[derive(Debug)]
pub struct Raw {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Raw {
    /// Connects from an address of this machine; a speaker that does not listen yet is waited for.
    ///
    /// # Panics
    ///
    /// When the speaker can't be reached.
    #[must_use]
    #[track_caller]
    pub fn connect(from: Ipv4Addr, to: SocketAddr) -> Self {
        wait::until(&format!("{from} is connected to {to}"), || {
            Self::try_connect(from, to).map_err(|error| error.to_string())
        })
    }

    /// Connects from an address of this machine.
    ///
    /// # Errors
    ///
    /// When the speaker can't be reached.
    pub fn try_connect(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        // So that thousands of connections don't run out of ports.
        socket.set_reuse_address(true)?;
        socket.bind(&SockAddr::from(SocketAddr::from((from, 0))))?;
        socket.connect_timeout(&to.into(), PATIENCE)?;
        Ok(Self::new(socket.into()))
    }

    /// The next connection that the speaker opens, within `patience`.
    #[must_use]
    pub fn accept(listener: &TcpListener, patience: Duration) -> Option<Self> {
        listener.set_nonblocking(true).expect("a socket of ours");
        let until = Instant::now() + patience;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).expect("a socket of ours");
                    return Some(Self::new(stream));
                }
                Err(_) if Instant::now() < until => std::thread::park_timeout(Duration::from_millis(2)),
                Err(_) => return None,
            }
        }
    }

    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket of ours");
        Self { stream, unread: Vec::new() }
    }

    /// Says something.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    #[track_caller]
    pub fn say(&mut self, octets: &[u8]) {
        self.try_say(octets).expect("the speaker listens");
    }

    /// Says something.
    ///
    /// # Errors
    ///
    /// When the connection is gone, or nobody reads for a long while.
    pub fn try_say(&mut self, octets: &[u8]) -> std::io::Result<()> {
        self.stream.set_write_timeout(Some(PATIENCE))?;
        self.stream.write_all(octets)
    }

    /// The next message that arrives within `patience`; `Ok(None)` if there is none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnexpectedEof`] when the speaker has closed the connection, or what else ended it.
    pub fn hear_within(&mut self, patience: Duration) -> std::io::Result<Option<Message>> {
        let until = Instant::now() + patience;
        loop {
            if let Some(message) = self.cut() {
                return Ok(Some(message));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut room = [0; 64 * 1024];
            match self.stream.read(&mut room) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(octets) => self.unread.extend_from_slice(&room[..octets]),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next message.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[track_caller]
    pub fn hear(&mut self) -> Message {
        self.hear_within(PATIENCE).expect("the speaker is there").expect("the speaker says something")
    }

    fn cut(&mut self) -> Option<Message> {
        let header: &[u8; 19] = self.unread.first_chunk()?;
        let length = usize::from(u16::from_be_bytes([header[16], header[17]]));
        let kind = header[18];
        let whole = self.unread.get(..length)?;
        let message = Message { kind, body: whole[19..].to_vec() };
        self.unread.drain(..length);
        Some(message)
    }

    /// Exchanges OPEN and KEEPALIVE. Afterwards the speaker is Established.
    ///
    /// # Panics
    ///
    /// When the speaker does not agree.
    #[track_caller]
    pub fn establish(&mut self, open: &[u8]) {
        self.say(open);
        let opened = self.hear();
        assert_eq!(opened.kind, 1, "{opened:?}");
        self.say(&KEEPALIVE);
        let confirmed = self.hear();
        assert_eq!(confirmed.kind, 4, "{confirmed:?}");
    }

    /// What the speaker says with its last breath: the NOTIFICATION before it closes, if there is one.
    ///
    /// # Panics
    ///
    /// When the speaker keeps the connection.
    #[track_caller]
    pub fn farewell(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        let mut last = None;
        let until = Instant::now() + PATIENCE;
        loop {
            match self.hear_within(PATIENCE) {
                Ok(Some(message)) => {
                    if let Some((code, subcode, data)) = message.notification() {
                        last = Some((code, subcode, data.to_vec()));
                    }
                }
                Ok(None) => panic!("the speaker keeps the connection"),
                Err(_) => return last,
            }
            assert!(Instant::now() < until, "the speaker goes on talking");
        }
    }

    /// Whether the connection stands after everything that has arrived has been read.
    pub fn is_open(&mut self) -> bool {
        loop {
            match self.hear_within(Duration::from_millis(1)) {
                Ok(Some(message)) if message.kind != 3 => {}
                Ok(None) => return true,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    }

    /// Says that nothing more will come, in an orderly way.
    ///
    /// # Panics
    ///
    /// When the connection is gone already.
    pub fn finish(&mut self) {
        self.stream.shutdown(Shutdown::Write).expect("the connection stands");
    }

    /// Ends the connection with a reset, as a process does that dies with unread octets.
    pub fn reset(self) {
        // Without it the kernel says FIN first.
        let _ = Socket::from(self.stream).set_linger(Some(Duration::ZERO));
    }
}

/// Octets written as hexadecimal digits.
///
/// # Panics
///
/// When they are not.
#[must_use]
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    let value = |digit: u8| (digit as char).to_digit(16).expect("hexadecimal digits") as u8;
    digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect()
}

/// A message with its header.
#[must_use]
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0xff; 16];
    message.extend(u16::try_from(19 + body.len()).unwrap_or(u16::MAX).to_be_bytes());
    message.push(kind);
    message.extend(body);
    message
}

/// An OPEN with IPv4 and IPv6 unicast, route refresh and a 4-octet AS number.
#[must_use]
pub fn open(asn: u32, hold_time: u16, router_id: Ipv4Addr) -> Vec<u8> {
    let short = u16::try_from(asn).unwrap_or(23456);
    let mut body = vec![4];
    body.extend(short.to_be_bytes());
    body.extend(hold_time.to_be_bytes());
    body.extend(router_id.octets());
    let mut capabilities = vec![1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 2, 0, 65, 4];
    capabilities.extend(asn.to_be_bytes());
    body.extend([capabilities.len() as u8 + 2, 2, capabilities.len() as u8]);
    body.extend(capabilities);
    message(1, &body)
}

/// A path attribute; its length takes two octets where it must.
#[must_use]
pub fn attribute(flags: u8, code: u8, value: &[u8]) -> Vec<u8> {
    let mut octets = match u8::try_from(value.len()) {
        Ok(length) => vec![flags, code, length],
        Err(_) => {
            let [high, low] = (value.len() as u16).to_be_bytes();
            vec![flags | 0x10, code, high, low]
        }
    };
    octets.extend(value);
    octets
}

/// ORIGIN IGP, an AS path and a next hop.
#[must_use]
pub fn usual(path: &[u32], next_hop: Ipv4Addr) -> Vec<u8> {
    let mut sequence = vec![2, path.len() as u8];
    sequence.extend(path.iter().flat_map(|asn| asn.to_be_bytes()));
    let path = if path.is_empty() { &[] } else { &*sequence };
    [attribute(0x40, 1, &[0]), attribute(0x40, 2, path), attribute(0x40, 3, &next_hop.octets())].concat()
}

/// An UPDATE for IPv4: prefixes taken back, attributes, prefixes announced.
#[must_use]
pub fn update(withdrawn: &[(Ipv4Addr, u8)], attributes: &[u8], announced: &[(Ipv4Addr, u8)]) -> Vec<u8> {
    let withdrawn = prefixes(withdrawn);
    let mut body = (withdrawn.len() as u16).to_be_bytes().to_vec();
    body.extend(withdrawn);
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    body.extend(prefixes(announced));
    message(2, &body)
}

fn prefixes(prefixes: &[(Ipv4Addr, u8)]) -> Vec<u8> {
    let mut octets = Vec::new();
    for (address, length) in prefixes {
        octets.push(*length);
        octets.extend(&address.octets()[..usize::from(length.div_ceil(8))]);
    }
    octets
}

/// The `n`th of many prefixes of 24 bits.
#[must_use]
pub fn nth(n: u32) -> (Ipv4Addr, u8) {
    (Ipv4Addr::from(0x0a00_0000 + (n << 8)), 24)
}

/// What an UPDATE for IPv4 says: prefixes taken back and announced. `None` for a message that is none.
#[must_use]
pub fn told(message: &Message) -> Option<(Prefixes, Prefixes)> {
    if message.kind != 2 {
        return None;
    }
    let (length, rest) = message.body.split_first_chunk::<2>()?;
    let (withdrawn, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (_, announced) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((read_prefixes(withdrawn), read_prefixes(announced)))
}

fn read_prefixes(mut octets: &[u8]) -> Prefixes {
    let mut prefixes = Vec::new();
    while let [length, rest @ ..] = octets {
        let count = usize::from(length.div_ceil(8));
        let mut address = [0; 4];
        address[..count].copy_from_slice(&rest[..count]);
        prefixes.push((address.into(), *length));
        octets = &rest[count..];
    }
    prefixes
}
