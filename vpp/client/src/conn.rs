//! The connection's task: connect, hand over to the link, and begin again when it ends.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

use crate::client::Shared;
use crate::error::ConnectError;
use crate::link::{End, Link};
use crate::notices::Teller;
use crate::settings::ClientSettings;
use crate::state::{ConnState, Generation, count};

pub(crate) struct Conn {
    path: PathBuf,
    settings: ClientSettings,
    shared: Arc<Shared>,
    teller: Teller,
    state: watch::Sender<ConnState>,
    generation: Generation,
}

impl Conn {
    pub(crate) fn new(
        path: PathBuf,
        settings: ClientSettings,
        shared: Arc<Shared>,
        teller: Teller,
        state: watch::Sender<ConnState>,
    ) -> Self {
        Self { path, settings, shared, teller, state, generation: Generation::NONE }
    }

    /// Runs until the client is closed.
    pub(crate) async fn run(mut self) {
        let mut attempt = 0;
        let mut told = String::new();
        loop {
            match self.connect().await {
                Ok(None) => return,
                Ok(Some(mut link)) => {
                    attempt = 0;
                    told.clear();
                    match self.serve(&mut link).await {
                        End::Closing => return,
                        End::Broken(error) => self.report(error, attempt, &mut told),
                    }
                    // Only now: who hears that a request is lost shall find the state changed already.
                    drop(link);
                    self.shared.outbox.refuse();
                }
                Err(error) => self.report(error, attempt, &mut told),
            }
            if self.wait(self.delay(attempt)).await {
                return;
            }
            attempt = attempt.saturating_add(1);
        }
    }

    fn report(&self, error: ConnectError, attempt: u32, told: &mut String) {
        let text = error.to_string();
        // Once per transition, not per attempt.
        if *told != text {
            warn!(path = %self.path.display(), error = %text, "no connection to VPP");
            *told = text;
        }
        self.state.send_replace(ConnState::Connecting { attempt, last_error: Some(Arc::new(error)) });
    }

    /// One attempt; `None` when the client is to close instead.
    async fn connect(&self) -> Result<Option<Link>, ConnectError> {
        let connecting = Link::connect(&self.path, &self.settings);
        let mut connecting = std::pin::pin!(tokio::time::timeout(self.settings.deadline, connecting));
        loop {
            tokio::select! {
                biased;
                () = self.shared.closing.notified() => return Ok(None),
                () = self.shared.outbox.filled.notified() => self.shared.outbox.refuse(),
                done = &mut connecting => return done.unwrap_or(Err(ConnectError::Silent)).map(Some),
            }
        }
    }

    async fn serve(&mut self, link: &mut Link) -> End {
        self.generation = self.generation.next();
        count(&self.shared.tally.connections);
        info!(generation = self.generation.number(), version = %link.version(), "connected to VPP");
        self.shared.set_table(link.table());
        self.state.send_replace(ConnState::Up { generation: self.generation, version: link.version() });
        let end = link.run(self.generation, &self.settings, &self.shared, &self.teller).await;
        self.shared.set_table(Arc::default());
        end
    }

    /// Waits, refusing requests meanwhile; tells whether the client is to close.
    async fn wait(&self, delay: Duration) -> bool {
        let mut over = std::pin::pin!(tokio::time::sleep(delay));
        loop {
            tokio::select! {
                biased;
                () = self.shared.closing.notified() => return true,
                () = self.shared.outbox.filled.notified() => self.shared.outbox.refuse(),
                () = &mut over => return false,
            }
        }
    }

    fn delay(&self, attempt: u32) -> Duration {
        let factor = 1_u32.checked_shl(attempt).unwrap_or(u32::MAX);
        self.settings.first_retry.saturating_mul(factor).min(self.settings.last_retry)
    }
}

impl Drop for Conn {
    /// However the task ends, nobody waits for it in vain.
    fn drop(&mut self) {
        self.state.send_replace(ConnState::Closed);
        self.shared.outbox.close();
    }
}
