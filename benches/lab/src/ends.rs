//! The other ends of the daemon's sessions, all on one thread: senders and receivers connect, open their sessions, send
//! what they are given as fast as it is taken, and hand on every UPDATE that comes.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::time::Timespec;
use socket2::{Domain, Socket, Type};

use crate::table::Family;
use crate::wire::{self, HEADER};

/// Hold time of every session, in seconds: longer than any scenario keeps a daemon busy.
const HOLD_TIME: u16 = 240;
/// The most that is written to one session before another one has its turn.
const CHUNK: usize = 64 * 1024;
/// How long an end that was refused waits until it tries again.
const RETRY: Duration = Duration::from_millis(1);

/// What is told of an UPDATE: the number of the end that it came to, and its body.
pub(crate) type OnUpdate<'a> = dyn FnMut(usize, &[u8]) -> Result<(), String> + 'a;

/// Who one end is.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// Its own address.
    pub(crate) local: IpAddr,
    /// The daemon's.
    pub(crate) remote: IpAddr,
    /// Its AS number.
    pub(crate) asn: u32,
    /// Its BGP identifier.
    pub(crate) router_id: u32,
}

/// All ends.
pub(crate) struct Ends {
    family: Family,
    poll: OwnedFd,
    ends: Vec<Open>,
    /// What is read, before it is taken apart.
    room: Vec<u8>,
    up: usize,
    /// All sessions have been up at once: from then on none may end.
    complete: bool,
}

struct Open {
    who: End,
    stream: Option<TcpStream>,
    is_up: bool,
    /// Not before this moment is it worth another try.
    retry: Instant,
    /// The beginning of a message whose end has not come yet.
    rest: Vec<u8>,
    queue: VecDeque<Arc<[u8]>>,
    /// How much of the first in the queue has been written.
    offset: usize,
    written: u64,
    awaits_room: bool,
}

impl Ends {
    /// None is connected yet.
    #[must_use]
    pub(crate) fn new(family: Family, ends: Vec<End>) -> Self {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll instance");
        let open = |who| Open {
            who,
            stream: None,
            is_up: false,
            retry: Instant::now(),
            rest: Vec::new(),
            queue: VecDeque::new(),
            offset: 0,
            written: 0,
            awaits_room: false,
        };
        Self {
            family,
            poll,
            ends: ends.into_iter().map(open).collect(),
            room: vec![0; 1 << 20],
            up: 0,
            complete: false,
        }
    }

    /// Whether all sessions are Established.
    #[must_use]
    pub(crate) fn all_up(&self) -> bool {
        self.up == self.ends.len()
    }

    /// Gives an end whole messages to send.
    pub(crate) fn send(&mut self, end: usize, messages: Arc<[u8]>) {
        self.ends[end].queue.push_back(messages);
    }

    /// Octets that an end has written, since it came up.
    #[must_use]
    pub(crate) fn written(&self, end: usize) -> u64 {
        self.ends[end].written
    }

    /// Connects those that are not connected, begins with the first alone: there is no sense in a crowd in front of a
    /// daemon that does not listen yet.
    pub(crate) fn connect(&mut self) {
        let Some(first) = self.ends.first() else { return };
        let crowd = if first.stream.is_some() { self.ends.len() } else { 1 };
        let now = Instant::now();
        for number in 0..crowd {
            let end = &mut self.ends[number];
            if end.stream.is_some() || now < end.retry {
                continue;
            }
            end.retry = now + RETRY;
            let Ok(mut stream) = connected(&end.who) else { continue };
            let open = wire::open(end.who.asn, end.who.router_id, HOLD_TIME, self.family);
            if stream.write_all(&open).is_err() || stream.set_nonblocking(true).is_err() {
                continue;
            }
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&self.poll, &stream, data, epoll::EventFlags::IN).expect("a socket can be polled");
            end.stream = Some(stream);
        }
    }

    /// One turn: writes what can be written, waits until something can be read, but no longer than `wait`, and tells
    /// `each` the UPDATEs that came, with the number of the end.
    ///
    /// # Errors
    ///
    /// A session has ended after all were up, or after it had sent something; or `each` says so.
    pub(crate) fn turn(&mut self, wait: Duration, each: &mut OnUpdate<'_>) -> Result<(), String> {
        let mut more = false;
        for number in 0..self.ends.len() {
            more |= self.write(number)?;
        }
        let wait = if more { Duration::ZERO } else { wait };
        let timeout =
            Timespec { tv_sec: wait.as_secs().cast_signed(), tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut events: Vec<epoll::Event> = Vec::with_capacity(64);
        match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        for event in events {
            let number = usize::try_from(event.data.u64()).expect("our own number");
            self.read(number, each)?;
        }
        Ok(())
    }

    /// Writes a chunk. True where more could be written at once.
    fn write(&mut self, number: usize) -> Result<bool, String> {
        let end = &mut self.ends[number];
        let Some(stream) = end.stream.as_mut().filter(|_| end.is_up) else { return Ok(false) };
        let mut full = false;
        if let Some(first) = end.queue.front() {
            let rest = &first[end.offset..];
            match stream.write(&rest[..rest.len().min(CHUNK)]) {
                Ok(count) => {
                    end.offset += count;
                    end.written += count as u64;
                    if end.offset == first.len() {
                        end.queue.pop_front();
                        end.offset = 0;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => full = true,
                Err(error) => return Err(format!("session {number} ended: {error}")),
            }
        }
        if full != end.awaits_room {
            end.awaits_room = full;
            let flags =
                if full { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
            let data = epoll::EventData::new_u64(number as u64);
            epoll::modify(&self.poll, &*stream, data, flags).map_err(|error| error.to_string())?;
        }
        Ok(!full && !end.queue.is_empty())
    }

    fn read(&mut self, number: usize, each: &mut OnUpdate<'_>) -> Result<(), String> {
        let all = self.ends.len();
        let end = &mut self.ends[number];
        let Some(stream) = end.stream.as_mut() else { return Ok(()) };
        let kept = end.rest.len();
        self.room[..kept].copy_from_slice(&end.rest);
        let count = match stream.read(&mut self.room[kept..]) {
            Ok(0) => return self.ended(number, "closed"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return self.ended(number, &error.to_string()),
        };
        let mut pending = &self.room[..kept + count];
        while let [_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, high, low, kind, ..] = *pending {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let Some((message, rest)) = pending.split_at_checked(length.max(HEADER)) else { break };
            pending = rest;
            match kind {
                wire::UPDATE => each(number, &message[HEADER..])?,
                wire::KEEPALIVE => {
                    if !end.is_up {
                        end.is_up = true;
                        self.up += 1;
                        self.complete |= self.up == all;
                    } else {
                        end.queue.push_back(wire::keepalive().into());
                    }
                }
                // Ours has gone out already.
                wire::OPEN => stream.write_all(&wire::keepalive()).map_err(|error| error.to_string())?,
                other => {
                    let what = format!("message type {other}: {:x?}", &message[HEADER..]);
                    return self.ended(number, &what);
                }
            }
        }
        end.rest.clear();
        end.rest.extend_from_slice(pending);
        Ok(())
    }

    /// A session that has nothing to lose is tried again: FRR closes some of a crowd that comes at once, after their
    /// KEEPALIVE and without a word.
    fn ended(&mut self, number: usize, why: &str) -> Result<(), String> {
        let end = &mut self.ends[number];
        if end.is_up && (self.complete || end.written > 0) {
            return Err(format!("session {number} ended: {why}"));
        }
        self.up -= usize::from(end.is_up);
        end.is_up = false;
        end.awaits_room = false;
        end.stream = None;
        end.rest.clear();
        end.retry = Instant::now() + 10 * RETRY;
        Ok(())
    }
}

fn connected(who: &End) -> io::Result<TcpStream> {
    let remote = SocketAddr::new(who.remote, 179);
    let socket = Socket::new(Domain::for_address(remote), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(who.local, 0).into())?;
    socket.connect(&remote.into())?;
    socket.set_tcp_nodelay(true)?;
    Ok(socket.into())
}
