//! One connection: handshake, the loop that reads and writes, and the farewell.
//!
//! Reading goes on whatever writing does. A request is admitted when the window has room: only then it gets its id,
//! the handle and its context, in the buffer where its caller encoded it, and only admitted bytes are written.

mod beforehand;
pub(crate) mod farewell;
mod handshake;

use std::cell::Cell;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until};
use vpp_wire::api::memclnt::{ControlPing, id};
use vpp_wire::frame::HEADER;
use vpp_wire::head::{address, context_at, message_id};
use vpp_wire::message::Descriptor;
use vpp_wire::{ClientIndex, Context, IntoBytes, Kind, MessageTable, MsgId, frame};

use crate::client::Shared;
use crate::error::{CallError, ConnectError};
use crate::inbox::Inbox;
use crate::notices::Teller;
use crate::outbox::{Answer, Batch, Entry};
use crate::settings::ClientSettings;
use crate::state::{Generation, count};
use crate::window::{Expected, Match, Window};

/// Turns of the loop after which other tasks get theirs, however much there is to do.
const TURNS: u32 = 32;

/// As good as never.
const FAR: Duration = Duration::from_secs(86_400);

/// Why a link's loop ended.
pub(crate) enum End {
    /// The client is to close; leave was taken.
    Closing,
    /// The connection is of no more use.
    Broken(ConnectError),
}

/// How a message with that id is to be looked at.
#[derive(Clone, Copy)]
enum Role {
    /// Its context stands here.
    Answer(usize),
    /// Nobody asked for it.
    Notice(&'static Descriptor),
}

/// A request and its reply, and their ids on this connection.
#[derive(Clone, Copy)]
struct Same {
    request: &'static Descriptor,
    answer: &'static Descriptor,
    ids: (MsgId, Expected),
}

impl Same {
    fn is(&self, entry: &Entry) -> bool {
        let one = entry.ping_at.is_none() && entry.end.is_none();
        one && std::ptr::eq(self.request, entry.request) && std::ptr::eq(self.answer, entry.answer)
    }
}

pub(crate) struct Link {
    /// `None` only once leave was taken.
    stream: Option<Arc<UnixStream>>,
    inbox: Inbox,
    handle: ClientIndex,
    table: Arc<MessageTable>,
    version: Arc<str>,
    /// By message id, for those that are not ordinary replies.
    roles: Vec<Role>,
    told: beforehand::Told,
    /// The ids of the last request that had one reply: mostly the next one is of the same kind.
    same: Cell<Option<Same>>,
    /// Frames: written up to here, admitted up to there, the rest waits for the window with its entries.
    staged: Batch,
    written: usize,
    admitted: usize,
    window: Window<Answer>,
    /// When the first deadline may pass.
    overdue_at: Instant,
    /// When VPP last said anything.
    heard: Instant,
    /// The ping it has not answered.
    ping: Option<(Context, Instant)>,
    /// Once the client is to close: until when what is in flight is waited for.
    closing_until: Option<Instant>,
}

impl Link {
    pub(crate) fn version(&self) -> Arc<str> {
        Arc::clone(&self.version)
    }

    pub(crate) fn table(&self) -> Arc<MessageTable> {
        Arc::clone(&self.table)
    }

    /// Serves requests until the client closes or the connection ends. What is unanswered then is answered when
    /// the link is dropped.
    pub(crate) async fn run(
        &mut self,
        generation: Generation,
        settings: &ClientSettings,
        shared: &Shared,
        teller: &Teller,
    ) -> End {
        // Shared, not taken: the farewell of a dropped task needs it in its place.
        let Some(stream) = self.stream.clone() else {
            return End::Broken(ConnectError::Closed);
        };
        shared.lifeline.hold(&stream, self.handle);
        let served = self.serve(&stream, generation, settings, shared, teller).await;
        shared.lifeline.release();
        drop(stream);
        match served {
            Ok(()) => {
                self.leave(settings.farewell).await;
                End::Closing
            }
            Err(error) => {
                self.abandon(&error);
                if self.closing_until.is_some() { End::Closing } else { End::Broken(error) }
            }
        }
    }

    /// `Ok` when the client is to close and nothing is in flight any more, or for too long.
    async fn serve(
        &mut self,
        stream: &UnixStream,
        generation: Generation,
        settings: &ClientSettings,
        shared: &Shared,
        teller: &Teller,
    ) -> Result<(), ConnectError> {
        let mut now = Instant::now();
        let mut armed = now + FAR;
        let mut alarm = std::pin::pin!(sleep_until(armed));
        let mut turns = 0;
        loop {
            let read = self.read(stream)?;
            if read {
                self.heard = now;
                self.dispatch(now + settings.deadline, generation, shared, teller)?;
            }
            self.expire(now, shared);
            if let Some(until) = self.closing_until {
                if self.window.is_idle() || now >= until {
                    return Ok(());
                }
            } else {
                self.admit(now, generation, settings, shared);
            }
            self.check_alive(now, settings)?;
            let wrote = shared.lifeline.writing(|| (self.write(stream), self.written == self.admitted))?;
            if read || wrote {
                turns += 1;
                if turns % TURNS == 0 {
                    tokio::task::yield_now().await;
                }
                now = Instant::now();
                continue;
            }
            let wake = self.wake_at(settings);
            let wake = self.closing_until.map_or(wake, |until| wake.min(until));
            // An alarm that comes too early is harmless, so one that is set is only ever moved to an earlier time.
            if wake < armed || armed <= now {
                armed = wake;
                alarm.as_mut().reset(armed);
            }
            let wants_write = self.written < self.admitted;
            let wants_more = self.closing_until.is_none() && self.staged.entries.is_empty() && !wants_write;
            tokio::select! {
                biased;
                () = shared.closing.notified(), if self.closing_until.is_none() => {
                    self.closing_until = Some(Instant::now() + settings.farewell);
                    self.staged.bytes.truncate(self.admitted);
                    self.staged.entries.clear();
                    shared.outbox.close();
                }
                ready = stream.readable() => ready?,
                ready = stream.writable(), if wants_write => ready?,
                () = shared.outbox.filled.notified(), if wants_more => {}
                () = &mut alarm => armed = now,
            }
            now = Instant::now();
        }
    }

    /// One read; `false` when there is nothing to read.
    fn read(&mut self, stream: &UnixStream) -> Result<bool, ConnectError> {
        match stream.try_read(self.inbox.room()) {
            Ok(0) => Err(ConnectError::Closed),
            Ok(bytes) => {
                self.inbox.filled(bytes);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// One write; `false` when there is nothing to write or no room for it.
    fn write(&mut self, stream: &UnixStream) -> Result<bool, ConnectError> {
        let Some(bytes) =
            self.staged.bytes.get(self.written..self.admitted).filter(|bytes| !bytes.is_empty())
        else {
            return Ok(false);
        };
        match stream.try_write(bytes) {
            Ok(bytes) => {
                self.written += bytes;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands every whole frame in the inbox to who waits for it.
    fn dispatch(
        &mut self,
        deadline: Instant,
        generation: Generation,
        shared: &Shared,
        teller: &Teller,
    ) -> Result<(), ConnectError> {
        let tally = &shared.tally;
        while let Some(payload) = self.inbox.next()? {
            count(&tally.answers);
            let Some(id) = message_id(payload) else {
                count(&tally.unexpected);
                continue;
            };
            let at = match self.roles.get(usize::from(id.value())) {
                Some(Role::Notice(descriptor)) => {
                    teller.tell(generation, descriptor, payload, tally);
                    continue;
                }
                Some(Role::Answer(at)) => *at,
                None => 2,
            };
            let Some(context) = context_at(payload, at) else {
                count(&tally.unexpected);
                continue;
            };
            match self.window.answer(context, id, deadline) {
                Match::Details(to) => {
                    self.told.list(id, payload);
                    if let Err(error) = to.details(payload)
                        && let Some(to) = self.window.give_up(context)
                    {
                        to.done(Err(CallError::Malformed(error)));
                    }
                }
                Match::Last(to, details) => {
                    // Of a dump the details were the answer, whatever stands behind them.
                    let good = context_at(payload, at + 4).is_some_and(|retval| retval.value() == 0);
                    match details {
                        Some(details) => self.told.listed(details),
                        None => self.told.hear(id, context, good, payload),
                    }
                    to.done(Ok(payload));
                }
                Match::Late => count(&tally.late),
                Match::Unexpected => {
                    let pinged = self.ping.is_some_and(|(pinged, _)| pinged == context);
                    if pinged && id == id::CONTROL_PING_REPLY {
                        self.ping = None;
                    } else {
                        count(&tally.unexpected);
                    }
                }
            }
        }
        Ok(())
    }

    fn expire(&mut self, now: Instant, shared: &Shared) {
        if now < self.overdue_at {
            return;
        }
        let next = self.window.expire(now, |to| {
            count(&shared.tally.timeouts);
            to.done(Err(CallError::Timeout));
        });
        self.overdue_at = next.unwrap_or(now + FAR);
    }

    /// Addresses as many waiting requests as the window has room for.
    fn admit(&mut self, now: Instant, generation: Generation, settings: &ClientSettings, shared: &Shared) {
        let deadline = now + settings.deadline;
        while self.window.has_room() {
            let Some(entry) = self.staged.entries.pop_front() else {
                if self.written < self.staged.bytes.len() {
                    return;
                }
                self.written = 0;
                self.admitted = 0;
                shared.outbox.take(&mut self.staged);
                if self.staged.entries.is_empty() {
                    return;
                }
                continue;
            };
            let frames = self.admitted..self.admitted + entry.bytes;
            let payload = self.staged.bytes.get(frames.start + HEADER..frames.end).unwrap_or_default();
            match self.resolve(&entry, generation, payload) {
                Ok((request, expected)) => {
                    let Ok(context) = self.window.open(expected, deadline, entry.to.sent()) else {
                        unreachable!("the window has room");
                    };
                    let payload =
                        self.staged.bytes.get(frames.start + HEADER..frames.end).unwrap_or_default();
                    self.told.ask(request, context, payload);
                    let (first, ping) =
                        self.staged.bytes[frames].split_at_mut(entry.ping_at.unwrap_or(entry.bytes));
                    for (frame, id) in [(first, request), (ping, id::CONTROL_PING)] {
                        let _ = frame
                            .get_mut(HEADER..)
                            .is_some_and(|payload| address(payload, id, self.handle, context));
                    }
                    self.admitted += entry.bytes;
                    self.overdue_at = self.overdue_at.min(deadline);
                    count(&shared.tally.requests);
                }
                Err(error) => {
                    self.staged.bytes.drain(frames);
                    entry.to.done(Err(error));
                }
            }
        }
    }

    /// The id of a request on this connection, and those of its answers.
    fn resolve(
        &self,
        entry: &Entry,
        generation: Generation,
        payload: &[u8],
    ) -> Result<(MsgId, Expected), CallError> {
        if entry.pin.is_some_and(|pin| pin != generation) {
            return Err(CallError::NotSent);
        }
        let (request, expected) = match self.same.get().filter(|same| same.is(entry)) {
            Some(same) => same.ids,
            None => self.look_up(entry)?,
        };
        if !self.told.allows(request, payload) {
            return Err(CallError::Unprepared(entry.request.name));
        }
        Ok((request, expected))
    }

    fn look_up(&self, entry: &Entry) -> Result<(MsgId, Expected), CallError> {
        let lookup =
            |message: &Descriptor| self.table.id(&message.name).ok_or(CallError::Missing(message.name));
        let request = lookup(entry.request)?;
        let answer = lookup(entry.answer)?;
        let expected = match (entry.ping_at, entry.end) {
            (Some(_), _) => Expected { last: id::CONTROL_PING_REPLY, details: Some(answer) },
            (None, Some(end)) => Expected { last: lookup(end)?, details: Some(answer) },
            (None, None) => Expected { last: answer, details: None },
        };
        let ids = (request, expected);
        if expected.details.is_none() {
            self.same.set(Some(Same { request: entry.request, answer: entry.answer, ids }));
        }
        Ok(ids)
    }

    /// Pings a silent VPP, and ends the connection to one that stays silent.
    fn check_alive(&mut self, now: Instant, settings: &ClientSettings) -> Result<(), ConnectError> {
        match self.ping {
            None if now >= self.heard + settings.ping_after => {
                let context = self.window.own_context();
                let mut ping = Vec::new();
                frame::push(&mut ping, |out| {
                    out.extend_from_slice(ControlPing::new(context, self.handle).as_bytes());
                });
                let bytes = ping.len();
                self.staged.bytes.splice(self.admitted..self.admitted, ping);
                self.admitted += bytes;
                self.ping = Some((context, now));
                Ok(())
            }
            Some((_, since)) if now >= since.max(self.heard) + settings.deadline => Err(ConnectError::Silent),
            None | Some(_) => Ok(()),
        }
    }

    fn wake_at(&self, settings: &ClientSettings) -> Instant {
        let alive = match self.ping {
            None => self.heard + settings.ping_after,
            Some((_, since)) => since.max(self.heard) + settings.deadline,
        };
        alive.min(self.overdue_at)
    }
}

/// How the messages of a table are to be looked at, where not as ordinary replies.
fn roles(table: &MessageTable) -> Vec<Role> {
    let mut roles = Vec::new();
    for message in vpp_wire::api::messages() {
        let Some(id) = table.id(&message.name) else {
            continue;
        };
        let role = match (message.kind, message.context_at) {
            (Kind::Notice, _) => Role::Notice(message),
            (Kind::Reply | Kind::Details, Some(at)) if at != 2 => Role::Answer(at),
            _ => continue,
        };
        let at = usize::from(id.value());
        if roles.len() <= at {
            roles.resize(at + 1, Role::Answer(2));
        }
        roles[at] = role;
    }
    roles
}
