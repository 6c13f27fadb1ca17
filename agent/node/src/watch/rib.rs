//! Best paths of the speaker → `Event::Rib`.

use agent_core::event::Event;
use bgp_core::FamilySet;
use bgp_net::{Handle, Stopped, Subscription};

/// Most changes taken at a time: the engine's other events wait for them.
const BATCH: usize = 2048;

/// Follows the best paths.
#[derive(Debug)]
pub(crate) struct RibWatcher(Subscription);

impl RibWatcher {
    /// Begins with all best paths there are of these families.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub(crate) async fn new(speaker: &Handle, families: FamilySet) -> Result<Self, Stopped> {
        Ok(Self(speaker.subscribe(families).await?))
    }

    /// Wait for changes, in order and merged per prefix. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub(crate) async fn next(&mut self) -> Result<Vec<Event>, Stopped> {
        Ok(self.0.take(BATCH).await?.into_iter().map(Event::Rib).collect())
    }
}
