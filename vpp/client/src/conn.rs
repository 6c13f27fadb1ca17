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
        let mut told = None;
        let shared = Arc::clone(&self.shared);
        loop {
            let error = match self.connect().await {
                Ok(None) => break,
                Ok(Some(link)) => {
                    attempt = 0;
                    told = None;
                    match self.serve(link).await {
                        End::Closing => break,
                        End::Broken(error) => error,
                    }
                }
                Err(error) => error,
            };
            let text = error.to_string();
            // Once per transition, not per attempt.
            if told.as_ref() != Some(&text) {
                warn!(path = %self.path.display(), error = %text, "no connection to VPP");
                told = Some(text);
            }
            self.state.send_replace(ConnState::Connecting { attempt, last_error: Some(Arc::new(error)) });
            if self.wait(self.delay(attempt)).await {
                break;
            }
            attempt = attempt.saturating_add(1);
        }
        shared.outbox.close();
        self.state.send_replace(ConnState::Closed);
    }

    /// One attempt; `None` when the client is to close instead.
    async fn connect(&self) -> Result<Option<Link>, ConnectError> {
        let connecting = Link::connect(&self.path, &self.settings);
        let connecting = std::pin::pin!(tokio::time::timeout(self.settings.deadline, connecting));
        let mut connecting = connecting;
        loop {
            tokio::select! {
                biased;
                () = self.shared.closing.notified() => return Ok(None),
                () = self.shared.outbox.filled.notified() => self.shared.outbox.refuse(),
                done = &mut connecting => return done.unwrap_or(Err(ConnectError::Silent)).map(Some),
            }
        }
    }

    async fn serve(&mut self, mut link: Link) -> End {
        self.generation = self.generation.next();
        count(&self.shared.tally.connections);
        info!(generation = self.generation.number(), version = %link.version(), "connected to VPP");
        self.shared.set_table(link.table());
        self.state.send_replace(ConnState::Up { generation: self.generation, version: link.version() });
        let end = link.run(self.generation, &self.settings, &self.shared, &self.teller).await;
        self.shared.set_table(Arc::default());
        // Who hears that a request is lost shall find the state changed already.
        self.state.send_replace(ConnState::Connecting { attempt: 0, last_error: None });
        drop(link);
        self.shared.outbox.refuse();
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
