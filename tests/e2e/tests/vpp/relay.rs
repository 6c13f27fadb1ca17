//! A relay between the agent and VPP that can cut the conversation at any request: the same disturbance for a simulated
//! VPP and for a real one.
//!
//! It understands frames and the names in the handshake, no more. A *step* is a request that changes something in VPP:
//! only between steps does it make a difference where a conversation ends.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use vpp_client::wire::frame;

/// Where a conversation is cut.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The step with this number, from 1, does not reach VPP, nor does anything after it.
    Before(u64),
    /// VPP carries it out, and nothing after it. The agent never hears of that.
    After(u64),
}

#[derive(Debug, Default)]
struct State {
    steps: u64,
    names: Vec<String>,
    cut: Option<Cut>,
    /// The context of the last step that went through.
    awaited: Option<[u8; 4]>,
    reached: bool,
}

/// The relay; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    state: Arc<Mutex<State>>,
    held: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Relay {
    /// Listens at `socket` and passes everything on to the VPP at `vpp`. To be called inside a runtime.
    pub(crate) fn listen(socket: &Path, vpp: PathBuf) -> Self {
        let listener = UnixListener::bind(socket).expect("a socket in the host's folder");
        let state = Arc::new(Mutex::new(State::default()));
        let held = Arc::new(watch::Sender::new(false));
        let (shared, hold) = (Arc::clone(&state), Arc::clone(&held));
        let task = tokio::spawn(async move {
            while let Ok((agent, _)) = listener.accept().await {
                tokio::spawn(connection(agent, vpp.clone(), Arc::clone(&shared), hold.subscribe()));
            }
        });
        Self { state, held, task }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts steps from 1 again, and cuts at one.
    pub(crate) fn arm(&self, cut: Cut) {
        *self.lock() = State { cut: Some(cut), ..State::default() };
    }

    /// Counts steps from 1 again, and lets everything through; what was cut stays so till its connection ends.
    pub(crate) fn free(&self) {
        *self.lock() = State::default();
    }

    /// Holds back what the agent says from now on, or lets it through again.
    pub(crate) fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Whether the cut has come.
    pub(crate) fn reached(&self) -> bool {
        self.lock().reached
    }

    /// The steps since [`Self::arm`] or [`Self::free`], by name.
    pub(crate) fn steps(&self) -> Vec<String> {
        self.lock().names.clone()
    }
}

/// What VPP calls its messages.
type Names = Arc<Mutex<HashMap<[u8; 2], String>>>;

async fn connection(agent: UnixStream, vpp: PathBuf, state: Arc<Mutex<State>>, held: watch::Receiver<bool>) {
    // As long as VPP is away the agent's handshake just takes longer; an agent that leaves is seen when it is back.
    let vpp = loop {
        match UnixStream::connect(&vpp).await {
            Ok(stream) => break stream,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    let ((from_agent, to_agent), (from_vpp, to_vpp)) = (agent.into_split(), vpp.into_split());
    let names = Names::default();
    // Whichever side ends, both do: as when there is nothing in between.
    tokio::select! {
        _ = requests(from_agent, to_vpp, &names, &state, held) => {}
        _ = answers(from_vpp, to_agent, &names, &state) => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    names: &Names,
    state: &Mutex<State>,
    mut held: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut cut = false;
    loop {
        let frame = frames.next(&mut from).await?;
        if cut {
            continue;
        }
        // An error means that the test is over.
        let _ = held.wait_for(|held| !held).await;
        let id = frame.get(frame::HEADER..frame::HEADER + 2).and_then(|id| id.try_into().ok());
        let name = id.and_then(|id: [u8; 2]| lock(names).get(&id).cloned()).unwrap_or_default();
        let mut pass = true;
        if changes_something(&name) {
            let mut state = lock(state);
            state.steps += 1;
            state.names.push(name);
            match state.cut {
                Some(Cut::Before(step)) if step == state.steps => {
                    (cut, pass, state.reached) = (true, false, true);
                }
                Some(Cut::After(step)) if step == state.steps => {
                    cut = true;
                    let context = frame::HEADER + 6;
                    state.awaited =
                        frame.get(context..context + 4).and_then(|context| context.try_into().ok());
                }
                _ => {}
            }
        }
        if pass {
            to.write_all(frame).await?;
        }
    }
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    names: &Names,
    state: &Mutex<State>,
) -> io::Result<()> {
    let mut frames = Frames::default();
    loop {
        let frame = frames.next(&mut from).await?;
        let payload = &frame[frame::HEADER..];
        if payload.starts_with(&[0, 16]) {
            *lock(names) = table(payload);
        }
        {
            let mut state = lock(state);
            if let Some(awaited) = state.awaited {
                state.reached |= payload.get(2..6) == Some(&awaited);
                continue;
            }
        }
        to.write_all(frame).await?;
    }
}

/// The names in a `sockclnt_create_reply`, without their CRCs.
fn table(payload: &[u8]) -> HashMap<[u8; 2], String> {
    let (entries, _) = payload.get(20..).unwrap_or_default().as_chunks::<66>();
    let entry = |entry: &[u8; 66]| {
        let (id, name) = entry.split_at(2);
        let name: Vec<u8> = name.iter().copied().take_while(|byte| *byte != 0).collect();
        let name = String::from_utf8_lossy(&name);
        let name = name.rsplit_once('_').map_or("", |(name, _crc)| name);
        ([id[0], id[1]], name.to_owned())
    };
    entries.iter().map(entry).collect()
}

/// Whether a request changes something in VPP, by its name. What is taken for a change and is none costs a test some
/// time only.
fn changes_something(name: &str) -> bool {
    let asks = ["_dump", "_get", "_is_enabled"].iter().any(|end| name.ends_with(end))
        || ["control_ping", "sockclnt_", "cli_", "show_", "want_", "get_"]
            .iter()
            .any(|start| name.starts_with(start))
        || name.contains("_get_");
    !name.is_empty() && !asks
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames out of a stream.
#[derive(Default)]
struct Frames {
    buffer: Vec<u8>,
    /// The frame given out last.
    taken: usize,
}

impl Frames {
    /// The next whole frame, header and all.
    async fn next(&mut self, from: &mut OwnedReadHalf) -> io::Result<&[u8]> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        loop {
            if let frame::Cut::Frame(payload) = frame::cut(&self.buffer).map_err(io::Error::other)? {
                self.taken = frame::HEADER + payload.len();
                return Ok(&self.buffer[..self.taken]);
            }
            if from.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
