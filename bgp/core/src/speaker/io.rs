//! What goes into a speaker, and what comes out.

use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU8, NonZeroU16};

use crate::peer_key::{ConnId, InterfaceName, PeerKey};
use crate::secret::Secret;
use crate::session::{CloseReason, ConnectError, DownReason, Link, State};

/// Everything that can happen to a speaker.
#[derive(Debug)]
pub enum Input<'a> {
    /// A neighbour connected to us. Answered by [`Output::Close`] at once where nobody is expected from there.
    Accepted {
        /// Name of the connection, from [`ConnId::accepted`].
        conn: ConnId,
        /// Its two ends.
        link: Link,
    },
    /// An attempt to connect has succeeded.
    Connected {
        /// The attempt, now the connection.
        conn: ConnId,
        /// Its two ends.
        link: Link,
    },
    /// An attempt to connect has failed. The attempt's id means nothing from now on.
    ConnectFailed {
        /// The attempt.
        conn: ConnId,
        /// Why.
        reason: ConnectError,
    },
    /// Whole messages arrived, one after the other; a fault in the framing may end them.
    Received {
        /// On which connection.
        conn: ConnId,
        /// The messages.
        messages: &'a [u8],
    },
    /// The writer has nothing left to write and asks to be woken, by [`Output::Wake`], when there is more.
    Drained {
        /// Whose writer.
        conn: ConnId,
    },
    /// The connection is gone. Its id means nothing from now on.
    Closed {
        /// Which connection.
        conn: ConnId,
        /// Why.
        reason: CloseReason,
    },
    /// Whole messages of this connection have arrived and wait to be passed in. Said right before [`Input::Tick`] for
    /// each such connection, it keeps the hold timer from expiring while the neighbour's words are merely unheard.
    Unread {
        /// Which connection.
        conn: ConnId,
    },
    /// Time has passed. To be given when [`Speaker::deadline`](super::Speaker::deadline) has come, after
    /// [`Input::Unread`] for every connection that has something to say.
    Tick,
}

/// Everything a speaker asks of its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Connect to a neighbour; answered by [`Input::Connected`] or [`Input::ConnectFailed`].
    Dial {
        /// Name of the attempt, and of the connection that comes of it; from [`ConnId::dialled`].
        conn: ConnId,
        /// Whom to.
        peer: PeerKey,
        /// How.
        transport: Transport,
    },
    /// Close a connection after what [`Speaker::pull`](super::Speaker::pull) still gives has been written; or give up
    /// the attempt of that name. Answered by nothing: the id means nothing from now on except to `pull`, which gives
    /// its last bytes once.
    Close {
        /// Which connection or attempt.
        conn: ConnId,
    },
    /// `pull` has bytes for this connection now.
    Wake {
        /// Which connection.
        conn: ConnId,
    },
    /// A neighbour's state has changed.
    Peer(PeerEvent),
    /// `take` has events for this subscriber now. Said once until it has taken everything.
    RibReady(SubscriberId),
}

/// How a connection with a neighbour is made. Whoever can't do what it says must not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Our end; chosen by the system where absent.
    pub local: Option<IpAddr>,
    /// Our port, when we connect; chosen by the system where absent.
    pub local_port: Option<NonZeroU16>,
    /// The interface to be bound to.
    pub device: Option<InterfaceName>,
    /// The neighbour's end.
    pub remote: SocketAddr,
    /// TTL or hop limit of the packets sent: 255 with TTL security, else 1 towards a directly connected external
    /// neighbour.
    pub ttl: u8,
    /// Packets with a smaller TTL or hop limit are not heard (RFC 5082).
    pub min_ttl: Option<NonZeroU8>,
    /// The key that segments are signed with (RFC 2385).
    pub password: Option<Secret>,
}

impl Transport {
    /// A connection with nothing special about it.
    #[must_use]
    pub const fn new(remote: SocketAddr, ttl: u8) -> Self {
        Self { local: None, local_port: None, device: None, remote, ttl, min_ttl: None, password: None }
    }
}

/// From where connections are welcome. There is one for each neighbour and one for each prefix of dynamic ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// The neighbour's address as a prefix of full length, or the prefix of dynamic neighbours.
    pub from: ipnet::IpNet,
    /// The key that segments from there are signed with.
    pub password: Option<Secret>,
}

/// A change of a neighbour's state, for logs and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerEvent {
    /// Which neighbour.
    pub peer: PeerKey,
    /// What happened.
    pub kind: PeerEventKind,
}

/// What happened to a neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerEventKind {
    /// It entered another state of RFC 4271 section 8.2.2.
    State(State),
    /// The session is Established.
    Up,
    /// The session is no longer Established.
    Down(DownReason),
    /// An attempt or a connection ended before it was Established.
    Failed(DownReason),
}

/// A reader of the change stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriberId(pub(crate) u32);
