//! One neighbour as a state machine (RFC 4271 section 8).
//!
//! A [`Peer`] takes what happens to a neighbour ([`Input`]) and says what has to be done ([`Output`]). It owns at most
//! two transport connections, one opened by each side, and leaves one of them alive. It negotiates,
//! keeps the timers, answers faults and decides when to try again. It reads OPEN, KEEPALIVE, NOTIFICATION and
//! ROUTE-REFRESH; an UPDATE only passes by: it moves the hold deadline and comes back as [`Output::Deliver`].
//!
//! *Absent on purpose:* sockets, clocks, routes, any copy of a received UPDATE; the optional session attribute
//! TrackTcpState (RFC 4271 section 8.1.1), as no SYN is seen here.
//!
//! RFC 4271 sections 4.2, 4.4, 6, 8 and 10; 4486 and 9003 (Cease); 5492 (capabilities); 6286 (identifiers); 6608 (state
//! machine errors); 6793 (AS numbers of four octets); 4724, 8538 and 9494 (graceful restart); 7313 (refresh with markers), 8654
//! (long messages) and 8950 (IPv6 next hops of IPv4 prefixes), which are offered here and carried out by the speaker.

mod collision;
mod connection;
mod io;
mod peer;
mod reason;
mod restart;
pub(crate) mod role;
mod settings;
mod status;
mod timers;

pub use io::{Direction, Input, Link, Outgoing, Output};
pub use peer::Peer;
pub use reason::{CloseReason, ConnectError, DownReason, Protection, StopReason};
pub use restart::{Expired, GracefulRestart, Helper, Kept, LongLived, Lost, RestartTime, StaleTime};
pub use role::PeerRole;
pub use settings::{AddPath, HoldTime, IdleHold, PeerSettings, Reconfigured, RemoteAsn, SettingsError};
pub use status::{LastError, State, Status};
