//! What the tasks around the speaker tell it.
//!
//! Two queues, both bounded: received messages, which may be many, and everything else, which must not wait behind them.

use std::net::SocketAddr;
use std::sync::Arc;

use bgp_core::peer_key::ConnId;
use bgp_core::session::{CloseReason, ConnectError};
use bgp_core::speaker::SubscriberId;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::buffer::{Buffer, Pool};

/// How many buffers of received messages may wait for the speaker.
pub(crate) const INBOUND: usize = 16;
/// How many other events may.
const EVENTS: usize = 256;

/// What a reader hands over.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// Whole messages, or whole messages and then a fault.
    Messages(ConnId, Buffer),
    /// The connection is lost. Only [`Inbound::Gone`] follows.
    Closed(ConnId, CloseReason),
    /// A connection's socket is closed, and nothing more will be heard of it. It is said here, behind everything that was
    /// read: said earlier, it would make the rest come from nowhere, and nobody would hear of the loss.
    Gone(ConnId),
}

/// Everything else that happens.
#[derive(Debug)]
pub(crate) enum Event {
    /// A neighbour has connected.
    Accepted(TcpStream, SocketAddr),
    /// An attempt of ours has succeeded.
    Connected(ConnId, TcpStream),
    /// An attempt of ours has failed.
    ConnectFailed(ConnId, ConnectError),
    /// A batch is written.
    Written(ConnId),
    /// A subscriber has gone away.
    Unsubscribed(SubscriberId),
}

/// The ends of the queues that tasks hold. A queue is closed when the runtime has ended; then the task ends too.
#[derive(Clone, Debug)]
pub(crate) struct Inlet {
    pub(crate) inbound: mpsc::Sender<Inbound>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) pool: Arc<Pool>,
}

/// The speaker's ends.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) inbound: mpsc::Receiver<Inbound>,
    pub(crate) events: mpsc::Receiver<Event>,
}

/// New queues.
pub(crate) fn queues() -> (Inlet, Outlet) {
    let (inbound_in, inbound) = mpsc::channel(INBOUND);
    let (events_in, events) = mpsc::channel(EVENTS);
    (Inlet { inbound: inbound_in, events: events_in, pool: Arc::default() }, Outlet { inbound, events })
}
