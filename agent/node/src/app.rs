//! Wiring of the two long-running commands: what starts in which order, and what stops in which.
//!
//! BGP runs on a thread of its own; everything else of a process on the runtime made here.

pub(crate) mod agent;
mod lock;
pub(crate) mod signals;
pub(crate) mod speaker;

use std::future::Future;
use std::process::ExitCode;

use bgp_net::Handle;

/// Run a future to its end on a runtime for one thread.
pub(crate) fn block_on(future: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(future);
            // Blocking reads of a folder must not hold the end up.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            eprintln!("peregrine: cannot start: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Log what becomes of neighbours, for as long as the speaker runs.
pub(crate) async fn log_peers(speaker: Handle) {
    use bgp_core::speaker::PeerEventKind as Kind;
    use tokio::sync::broadcast::error::RecvError;
    let Ok(mut events) = speaker.peer_events() else { return };
    loop {
        match events.recv().await {
            Ok(event) => match event.kind {
                Kind::State(state) => tracing::debug!(peer = %event.peer, %state, "session state"),
                Kind::Up => tracing::info!(peer = %event.peer, "session established"),
                Kind::Down(reason) => tracing::warn!(peer = %event.peer, %reason, "session down"),
                Kind::Failed(reason) => tracing::debug!(peer = %event.peer, %reason, "no session"),
            },
            Err(RecvError::Lagged(missed)) => tracing::debug!(missed, "session events missed"),
            Err(RecvError::Closed) => return,
        }
    }
}

/// A number that differs from process to process. Peers choose what is hashed with it, so it must not be known.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
