//! What VPP tells unasked, after a subscription.
//!
//! Reading must not stop for a slow listener, so a full queue loses notices, and says so: the listener then asks
//! for the whole state instead. Subscriptions end with their connection; subscribe again for each generation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{self, error::TrySendError};
use vpp_wire::message::Descriptor;

use crate::state::{Generation, Tally, count};

/// Notices that may wait.
const QUEUE: usize = 1024;

/// One notice.
#[derive(Debug, Clone)]
pub struct Notice {
    generation: Generation,
    descriptor: &'static Descriptor,
    payload: Box<[u8]>,
}

impl Notice {
    /// The connection it came over.
    #[must_use]
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// VPP's name of it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.descriptor.name.name()
    }

    /// The notice as that message; `None` when it is another one, or too short.
    #[must_use]
    pub fn read<M: vpp_wire::Notice>(&self) -> Option<&M> {
        (M::DESCRIPTOR.name == self.descriptor.name).then(|| M::parse(&self.payload).ok()).flatten()
    }
}

/// What [`Notices::next`] brings.
#[derive(Debug, Clone)]
pub enum Heard {
    /// A notice.
    Notice(Notice),
    /// Notices were lost here, as too many waited.
    Missed,
}

/// The listener's end.
#[derive(Debug)]
pub struct Notices {
    queue: mpsc::Receiver<Notice>,
    missed: Arc<AtomicBool>,
}

impl Notices {
    /// Waits for the next one; `None` once the client is closed and all are taken.
    pub async fn next(&mut self) -> Option<Heard> {
        if self.missed.swap(false, Ordering::AcqRel) {
            return Some(Heard::Missed);
        }
        self.queue.recv().await.map(Heard::Notice)
    }
}

/// The connection's end.
#[derive(Debug)]
pub(crate) struct Teller {
    queue: mpsc::Sender<Notice>,
    missed: Arc<AtomicBool>,
}

impl Teller {
    pub(crate) fn new() -> (Self, Notices) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let missed = Arc::new(AtomicBool::new(false));
        (Self { queue: sender, missed: Arc::clone(&missed) }, Notices { queue: receiver, missed })
    }

    pub(crate) fn tell(
        &self,
        generation: Generation,
        descriptor: &'static Descriptor,
        payload: &[u8],
        tally: &Tally,
    ) {
        match self.queue.try_reserve() {
            Ok(place) => place.send(Notice { generation, descriptor, payload: payload.into() }),
            Err(TrySendError::Full(())) => {
                self.missed.store(true, Ordering::Release);
                count(&tally.notices_missed);
            }
            // Nobody listens.
            Err(TrySendError::Closed(())) => {}
        }
    }
}
