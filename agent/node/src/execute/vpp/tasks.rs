//! Actions that take several requests, each carried out by a task of its own. What depends on one of them waits for its end,
//! so their requests may mingle with those of others.

use std::future::Future;

use agent_core::event::VppReply;
use agent_core::plan::{OpId, VppFailure};
use tokio::task::JoinSet;
use vpp_client::CallError;

/// How an action failed, before it is said to the engine.
#[derive(Debug)]
pub(super) enum Failed {
    /// A request did.
    Call(CallError),
    /// It can't be put into requests.
    Action(VppFailure),
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<VppFailure> for Failed {
    fn from(failure: VppFailure) -> Self {
        Self::Action(failure)
    }
}

/// What an action that takes several requests comes to.
pub(super) type Outcome = Result<VppReply, Failed>;

/// All that are under way. They end with their owner.
#[derive(Debug, Default)]
pub(super) struct Tasks(JoinSet<(OpId, Outcome)>);

impl Tasks {
    /// Begin one.
    pub(super) fn spawn(&mut self, id: OpId, action: impl Future<Output = Outcome> + Send + 'static) {
        self.0.spawn(async move { (id, action.await) });
    }

    /// Wait for one to end; for ever where there is none. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> (OpId, Outcome) {
        match self.0.join_next().await {
            Some(Ok(ended)) => ended,
            // A panic of a task is one of ours; an abort comes only with the runtime's end.
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }
}
