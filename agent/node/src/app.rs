//! Wiring of the two long-running commands: what starts in which order, and what stops in which.
//!
//! BGP runs on a thread of its own; everything else of a process on the runtime made here.

pub(crate) mod agent;
mod lock;
mod release;
pub(crate) mod signals;
pub(crate) mod speaker;
mod writers;

pub(crate) use writers::Claim;

use std::collections::BTreeMap;
use std::future::Future;
use std::process::ExitCode;

use bgp_net::Handle;
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Run a future to its end on a runtime for one thread.
pub(crate) fn block_on(future: impl Future<Output = ExitCode>) -> ExitCode {
    raise_file_limit();
    keep_memory_private();
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

/// Let the process have as many open files as it may: each session is one, and the usual soft limit, 1024, is there for
/// programs that use `select`.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Have the kernel write no core of this process, and let nobody but root look into its memory: there are passwords in
/// it.
fn keep_memory_private() {
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "a core of this process would show passwords");
    }
}

/// Log what becomes of neighbours, for as long as the speaker runs.
pub(crate) async fn log_peers(speaker: Handle) {
    use bgp_core::speaker::PeerEventKind as Kind;
    use tokio::sync::broadcast::error::RecvError;
    let Ok(mut events) = speaker.peer_events() else { return };
    let mut failures = Failures::default();
    loop {
        match events.recv().await {
            Ok(event) => match event.kind {
                Kind::State(state) => tracing::debug!(peer = %event.peer, %state, "session state"),
                Kind::Up => {
                    failures.over(&event.peer.to_string());
                    tracing::info!(peer = %event.peer, "session established");
                }
                Kind::Down(reason) => {
                    failures.over(&event.peer.to_string());
                    tracing::warn!(peer = %event.peer, %reason, "session down");
                }
                Kind::Failed(reason)
                    if failures.is_news(
                        &event.peer.to_string(),
                        &reason.to_string(),
                        reason.is_disagreement(),
                    ) =>
                {
                    tracing::warn!(peer = %event.peer, %reason, "no session; trying on");
                }
                Kind::Failed(reason) => tracing::debug!(peer = %event.peer, %reason, "no session"),
            },
            Err(RecvError::Lagged(missed)) => tracing::debug!(missed, "session events missed"),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Why attempts to get sessions have failed, and how often, so that each reason is told once and not at each attempt.
#[derive(Debug, Default)]
struct Failures(BTreeMap<String, BTreeMap<String, u8>>);

impl Failures {
    /// Reasons of one neighbor may take turns, but no longer than this.
    const KEPT: usize = 16;

    /// Whether this reason is to be told of this neighbor now. A disagreement is at once; that nobody is there, or that of
    /// two connections one was given up, is when it happens again.
    fn is_news(&mut self, peer: &str, reason: &str, disagreement: bool) -> bool {
        let told = self.0.entry(peer.to_owned()).or_default();
        if told.len() >= Self::KEPT && !told.contains_key(reason) {
            return false;
        }
        let times = told.entry(reason.to_owned()).or_default();
        *times = times.saturating_add(1);
        *times == if disagreement { 1 } else { 2 }
    }

    /// The session came up, or ended: what fails from now on is news.
    fn over(&mut self, peer: &str) {
        self.0.remove(peer);
    }
}

/// A number that differs from process to process. Peers choose what is hashed with it, so it must not be known.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    #[test]
    fn a_running_command_has_its_files_and_leaves_no_core() {
        let code = block_on(async {
            let limit = getrlimit(Resource::Nofile);
            assert_eq!(limit.current, limit.maximum);
            assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
            ExitCode::SUCCESS
        });
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
    }

    #[test]
    fn a_reason_is_news_once_until_the_session_has_been_up() {
        let mut failures = Failures::default();
        let mut news = |peer, reasons: &[(&str, bool)]| -> Vec<bool> {
            reasons
                .iter()
                .map(|(reason, disagreement)| failures.is_news(peer, reason, *disagreement))
                .collect()
        };
        let (refused, asn) = (("refused", false), ("bad peer AS", true));
        assert_eq!(news("a", &[refused, asn, refused, asn, refused]), [false, true, true, false, false]);
        assert_eq!(news("b", &[asn]), [true]);
        failures.over("a");
        assert!(failures.is_news("a", "bad peer AS", true));
        assert!(!failures.is_news("b", "bad peer AS", true));
    }
}
