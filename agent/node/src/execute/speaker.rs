//! The executor for the speaker: operations → commands, in batches and in order.

use agent_core::event::{Event, SpeakerEvent};
use agent_core::plan::{OpId, SpeakerOp};
use bgp_core::command::{Applied, Refusal};
use bgp_net::{Handle, Stopped};
use tokio::task::JoinHandle;

/// Most commands in one batch: the speaker serves nobody else meanwhile.
const BATCH: usize = 256;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct SpeakerExecutor {
    handle: Handle,
    flight: Option<Flight>,
}

#[derive(Debug)]
struct Flight {
    ids: Vec<OpId>,
    answers: JoinHandle<Result<Vec<Result<Applied, Refusal>>, Stopped>>,
}

impl SpeakerExecutor {
    /// For this speaker.
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle, flight: None }
    }

    /// How many operations may be handed over now.
    pub(crate) fn free(&self) -> usize {
        if self.flight.is_some() { 0 } else { BATCH }
    }

    /// Carry out operations, in this order. What became of them comes from [`Self::next`].
    pub(crate) fn submit(&mut self, ops: Vec<SpeakerOp>) {
        if ops.is_empty() {
            return;
        }
        let (ids, commands) = ops.into_iter().map(|op| (op.id, op.command)).unzip();
        let handle = self.handle.clone();
        let answers = tokio::spawn(async move { handle.commands(commands).await });
        self.flight = Some(Flight { ids, answers });
    }

    /// Wait for the batch under way and say what became of it; for ever where there is none. Nothing is lost when the
    /// future is dropped.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub(crate) async fn next(&mut self) -> Result<Vec<Event>, Stopped> {
        let Some(flight) = &mut self.flight else { return std::future::pending().await };
        let answers = (&mut flight.answers).await.unwrap_or(Err(Stopped))?;
        let ids = std::mem::take(&mut flight.ids);
        self.flight = None;
        let answer = |(id, result)| Event::Speaker(SpeakerEvent::Done(id, result));
        Ok(ids.into_iter().zip(answers).map(answer).collect())
    }
}
