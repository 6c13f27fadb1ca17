//! Signals as values: stop (SIGTERM, SIGINT) and reload (SIGHUP).

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals of a long-running command.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// What a signal asks for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Stop gracefully.
    Stop,
    /// Read the configuration again.
    Reload,
}

impl Signals {
    /// From now on signals are values and end the process no longer.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Wait for the next one.
    pub(crate) async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.hangup.recv() => Wish::Reload,
        }
    }

    /// Wait for another wish to stop: somebody is in a hurry.
    pub(crate) async fn stop_again(&mut self) {
        while self.next().await != Wish::Stop {}
    }
}
