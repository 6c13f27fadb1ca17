//! A peer that speaks just enough of VPP's binary API to acknowledge: it shakes hands with every release's message names,
//! answers each request with success and each dump with nothing, and notes which routes it was asked for and when.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use super::binapi::{self, CREATE, Message, PING, Route, frame, number, route, split, word};

/// The handle of every client.
const HANDLE: u32 = 0x8000_0001;
/// The number of the first message with no number of its own.
const FIRST: u16 = 100;
/// Numbers that are the same in every VPP.
const FIXED: [(&str, u16); 6] = [
    ("sockclnt_create", CREATE),
    ("sockclnt_create_reply", CREATE + 1),
    ("sockclnt_delete", 17),
    ("sockclnt_delete_reply", 18),
    ("control_ping", PING),
    ("control_ping_reply", PING + 1),
];
/// The number of every FIB source.
const SOURCE: u8 = 30;

/// A route that was asked for, and when it was acknowledged.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Heard {
    /// What was asked for.
    pub(crate) route: Route,
    /// When the answer had been written.
    pub(crate) at: Instant,
}

/// The peer, on a thread of its own.
#[derive(Debug)]
pub(crate) struct Acker {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    routes: AtomicUsize,
    cpu_nanos: AtomicU64,
    heard: Mutex<Vec<Heard>>,
}

impl Acker {
    /// Listens at a path, for one client after the other.
    ///
    /// # Panics
    ///
    /// When there is no room for a socket.
    #[must_use]
    pub(crate) fn listen(path: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("a path in a folder of ours");
        let shared = Arc::new(Shared::default());
        let inner = Arc::clone(&shared);
        thread::spawn(move || {
            let peer = Peer::new();
            while let Ok((stream, _)) = listener.accept() {
                // The client has gone, or says nonsense, which whoever waits for routes will notice.
                let _ = peer.serve(stream, &inner);
            }
        });
        Self { shared }
    }

    /// How many routes it has acknowledged.
    #[must_use]
    pub(crate) fn routes(&self) -> usize {
        self.shared.routes.load(Ordering::Acquire)
    }

    /// CPU seconds of its thread.
    #[must_use]
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.shared.cpu_nanos.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// Takes what it has acknowledged, in order.
    ///
    /// # Panics
    ///
    /// When its thread has.
    #[must_use]
    pub(crate) fn heard(&self) -> Vec<Heard> {
        std::mem::take(&mut self.shared.heard.lock().expect("its thread lives"))
    }
}

/// How a request is answered.
#[derive(Clone, Debug, Default)]
struct Answer {
    /// The whole frame, but for the context.
    frame: Vec<u8>,
    /// Where in it the context goes.
    context_at: usize,
}

struct Peer {
    create: Answer,
    /// By number.
    answers: Vec<Option<Answer>>,
    routes: u16,
}

impl Peer {
    fn new() -> Self {
        let catalogue = binapi::catalogue();
        let mut numbers: Vec<(&Message, u16)> = Vec::new();
        let mut free = FIRST..;
        for message in catalogue.values() {
            let fixed = FIXED.iter().find(|(name, _)| *name == message.name).map(|(_, number)| *number);
            numbers.extend(fixed.or_else(|| free.next()).map(|number| (message, number)));
        }
        let number_of = |name: &str| {
            let found = numbers.iter().find(|(message, _)| message.name == name);
            found.map(|(message, number)| (*message, *number)).expect("a message of the catalogue")
        };
        let mut answers = vec![None; usize::from(free.next().unwrap_or(FIRST))];
        for (message, number) in &numbers {
            let Some(reply) = message.reply.as_deref().filter(|_| message.name != "sockclnt_create") else {
                continue;
            };
            let (reply, id) = number_of(reply);
            answers[usize::from(*number)] = Some(Answer::new(reply, id, |payload| match &*reply.name {
                "fib_source_add_reply" => payload[10] = SOURCE,
                "sockclnt_delete_reply" => payload[9] = 1,
                _ => {}
            }));
        }
        let mut table = Vec::new();
        for (message, number) in &numbers {
            table.extend(number.to_be_bytes());
            let mut name = message.full_name.clone().into_bytes();
            name.resize(64, 0);
            table.extend(&name[..63]);
            table.push(0);
        }
        let count = u16::try_from(numbers.len()).expect("some hundred messages");
        let create = Answer::new(number_of("sockclnt_create_reply").0, CREATE + 1, |payload| {
            payload[14..18].copy_from_slice(&HANDLE.to_be_bytes());
            payload[18..20].copy_from_slice(&count.to_be_bytes());
            payload.extend(table);
        });
        let routes = number_of("ip_route_add_del_v2").1;
        Self { create, answers, routes }
    }

    /// Until the client has gone.
    fn serve(&self, mut stream: UnixStream, shared: &Shared) -> std::io::Result<()> {
        let mut room = vec![0; 1 << 18];
        let (mut kept, mut out, mut batch) = (0, Vec::new(), Vec::new());
        loop {
            let read = stream.read(&mut room[kept..])?;
            if read == 0 {
                return Ok(());
            }
            let mut rest = &room[..kept + read];
            while let Some((payload, behind)) = split(rest) {
                rest = behind;
                let Some(number) = number(payload) else { continue };
                if number == CREATE {
                    self.create.append(&mut out, word(payload, 2));
                } else if let Some(Some(answer)) = self.answers.get(usize::from(number)) {
                    answer.append(&mut out, word(payload, 6));
                }
                if number == self.routes
                    && let Some(route) = route(payload)
                {
                    batch.push(route);
                }
            }
            let whole = kept + read - rest.len();
            room.copy_within(whole..kept + read, 0);
            kept = kept + read - whole;
            stream.write_all(&out)?;
            out.clear();
            if !batch.is_empty() {
                let (at, count) = (Instant::now(), batch.len());
                let heard = batch.drain(..).map(|route| Heard { route, at });
                shared.heard.lock().expect("nobody panics with it").extend(heard);
                let spent = clock_gettime(ClockId::ThreadCPUTime);
                let nanos = spent.tv_sec * 1_000_000_000 + spent.tv_nsec;
                shared.cpu_nanos.store(nanos.unsigned_abs(), Ordering::Relaxed);
                shared.routes.fetch_add(count, Ordering::Release);
            }
        }
    }
}

impl Answer {
    fn new(reply: &Message, number: u16, fill: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut payload = vec![0; reply.size];
        payload[..2].copy_from_slice(&number.to_be_bytes());
        fill(&mut payload);
        let mut whole = Vec::new();
        frame(&mut whole, &payload);
        Self { frame: whole, context_at: binapi::FRAME + reply.context_at.unwrap_or(2) }
    }

    fn append(&self, out: &mut Vec<u8>, context: Option<u32>) {
        let start = out.len() + self.context_at;
        out.extend(&self.frame);
        out[start..start + 4].copy_from_slice(&context.unwrap_or(0).to_be_bytes());
    }
}
