//! A BGP speaker for programs that run on tokio: sockets, timers, and a handle to talk through, around
//! [`bgp_core::speaker::Speaker`].
//!
//! To embed it: make [`SpeakerSettings`] and [`spawn`] a speaker; say by [`Command`](bgp_core::command::Command)s what
//! shall be true (own routes, sets, policies, neighbours, in this order, then
//! [`LoadingDone`](bgp_core::command::Command::LoadingDone)), and say it again when it changes; [`subscribe`](Handle::subscribe)
//! to the best paths; ask for [`peers`](Handle::peers) and [`routes`](Handle::routes) when somebody wants to know. What
//! each part means is told in `bgp-core`: [`command`](bgp_core::command), [`policy`](bgp_core::policy),
//! [`rib`](bgp_core::rib), [`query`](bgp_core::query).
//!
//! # A whole program
//!
//! `examples/exchange.rs`:
//!
//! ```
#![doc = include_str!("../examples/exchange.rs")]
//! ```
//!
//! # How it works
//!
//! One task owns the speaker and calls it; readers hand over whole buffers, writers take what a socket had no room for,
//! listeners and attempts to connect own a socket each, and none of them keeps a fact that matters after it ends. Waiting
//! goes one way: every task may wait for the speaker, the speaker waits for nobody.
//!
//! ```text
//! listener ─┐                     ┌─► attempt to connect
//! reader  ──┼─► queues ─► speaker ┼─► writer
//! handle  ──┘                     └─► handle
//! ```
//!
//! [`spawn`] gives a speaker a thread with a runtime of its own, which is how all of BGP stays on one core and out of the
//! way of everything else; [`task`] is for embedders that have a runtime.
//!
//! *Absent on purpose:* any decision about BGP.
//!
#![doc = include_str!("settings.md")]

mod auth;
mod buffer;
mod conn;
mod dial;
mod doors;
mod event;
mod farewell;
mod handle;
mod listen;
mod reading;
mod runtime;
mod socket;

use std::io;
use std::net::SocketAddr;

use bgp_core::speaker::SpeakerSettings;

pub use handle::{CommandError, Handle, Routes, RoutesError, Stopped, Subscription};
pub use listen::{ListenerState, ListenerStatus};

/// What the shell is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetSettings {
    /// Where to listen. IPv6 addresses are listened at for IPv6 only; port 0 takes any free one.
    pub listen: Vec<SocketAddr>,
}

/// A speaker as a task for a tokio runtime with I/O and time enabled, preferably a current-thread one. It ends after
/// [`Handle::shutdown`] or when all handles are gone.
pub fn task(settings: SpeakerSettings, net: NetSettings) -> (Handle, impl Future<Output = ()> + Send) {
    let (handle, requests) = handle::channel(settings.instance.clone());
    (handle, runtime::run(settings, net.listen, requests))
}

/// A speaker on a thread of its own, with a runtime of its own. A panic in it ends the process: its state would be lost,
/// and a fresh start is the one recovery there is.
///
/// # Errors
/// The system has no thread or no event queue left.
pub fn spawn(settings: SpeakerSettings, net: NetSettings) -> io::Result<Handle> {
    let (handle, task) = task(settings, net);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("bgp".into()).spawn(move || {
        let _abort = AbortOnPanic;
        // As a task among the others: tokio asks the kernel for events between each two turns of the future that it
        // blocks on, which would be two more system calls for each message that comes and goes.
        if let Err(error) = runtime.block_on(async { tokio::spawn(task).await })
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    })?;
    Ok(handle)
}

struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
