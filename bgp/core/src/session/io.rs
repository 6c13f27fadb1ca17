//! What goes into a [`Peer`](super::Peer) and what comes out of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bgp_wire::{Family, Frame, MessageType, Negotiated, RouteRefresh, WireError};
use bytes::Bytes;

use super::{CloseReason, ConnectError, DownReason, Kept, StopReason};
use crate::peer_key::ConnId;

/// Who opened a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// We did.
    Active,
    /// The neighbour did.
    Passive,
}

/// The two ends of a transport connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Our end.
    pub local: SocketAddr,
    /// The neighbour's end.
    pub remote: SocketAddr,
    /// Who opened it.
    pub direction: Direction,
}

/// Everything that can happen to one neighbour. An input that names a connection the peer doesn't hold (any more) is
/// ignored, so the caller need not filter.
#[derive(Debug)]
pub enum Input<'a> {
    /// Allow the session (RFC 4271 event 1, ManualStart; event 4 where the settings say passive).
    Start,
    /// End the session and don't allow it until `Start` (event 2, ManualStop).
    Stop(StopReason),
    /// The neighbour has announced more than it may (event 8, AutomaticStop): end the session, and stay in Idle.
    TooManyPrefixes {
        /// Of which family.
        family: Family,
        /// How many there may be.
        limit: u32,
        /// How long to stay there; until `Start` where absent.
        restart: Option<Duration>,
    },
    /// The attempt that [`Output::Connect`] asked for succeeded (event 16), or the neighbour connected (event 17).
    Connected(ConnId, Link),
    /// The attempt that [`Output::Connect`] asked for failed (event 18). Not to be told after
    /// [`Output::CancelConnect`].
    ConnectFailed(ConnectError),
    /// A whole message arrived (events 19 and 25 to 27). After an UPDATE the caller looks for [`Output::Deliver`].
    Received(ConnId, Frame<'a>),
    /// What arrived isn't a message (event 21), or the UPDATE just delivered turned out to be unreadable (event 28).
    Malformed(ConnId, WireError),
    /// The connection is gone (event 18).
    Closed(ConnId, CloseReason),
    /// Whole messages of this connection have arrived and wait to be delivered. Told right before `Tick`, it keeps the
    /// hold timer from expiring while the neighbour's words are merely unheard.
    Unread(ConnId),
    /// Time has passed: at least [`Peer::deadline`](super::Peer::deadline) (events 9 to 11 and 13).
    Tick,
}

/// A message to send, complete with header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// What it is, for counters and logs.
    pub kind: MessageType,
    /// The octets.
    pub bytes: Bytes,
}

/// Everything a peer asks of its surroundings, to be carried out in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Open a connection to the neighbour; answered by [`Input::Connected`] or [`Input::ConnectFailed`]. At most one
    /// attempt is under way.
    Connect,
    /// Give the attempt up; whatever becomes of it, close it and say nothing.
    CancelConnect,
    /// Send this before anything else that waits to be sent.
    Send(ConnId, Outgoing),
    /// Close the connection once what was to be sent has been sent. The peer has forgotten it.
    Close(ConnId),
    /// The session is Established on this connection.
    Up {
        /// The connection that lives.
        conn: ConnId,
        /// What both ends agreed.
        negotiated: Arc<Negotiated>,
    },
    /// The UPDATE that was just passed in may enter the RIB.
    Deliver,
    /// The neighbour asks for our routes again, or marks begin or end of its own repetition (RFC 2918, 7313). Only
    /// where both ends have the capability.
    Refresh(RouteRefresh),
    /// The session is no longer Established; the routes learnt through it count no more, but for those kept.
    Down(DownReason, Kept),
    /// An attempt or a connection ended before it was Established. Not said of one of two connections that merely closes:
    /// that is how collisions end.
    Failed(DownReason),
}
