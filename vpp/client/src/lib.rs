//! A client of VPP's binary API over its Unix socket, on tokio.
//!
//! One task owns the connection: it connects and reconnects for ever, learns the message table, keeps reading
//! while it writes, matches answers to requests, and takes leave properly, since a VPP whose clients just vanish
//! ends up spinning. Everybody else talks to that task through a [`Client`]:
//!
//! * [`Client::call`]: one request, its reply
//! * [`Client::dump`]: any number of details, folded as they arrive; [`Client::stream`]: part by part
//! * [`Client::pipeline`]: many requests in flight, completions in batches, nothing allocated per message
//! * [`Notices`]: what VPP tells unasked
//! * [`Client::state`]: connecting, or up with a [`Generation`], which a reconnect changes
//!
//! At most a window of requests is in flight (200 and fewer are safe for VPP), each with a deadline. Requests made
//! for one generation are never sent to another: the indices in them would name other things.
//!
//! At connect the client has VPP let go of connections that others leaked. A request that would hurt VPP in a state that
//! the connection has not shown yet ([`wire::beforehand`]) is not sent: [`CallError::Unprepared`].
//!
//! *Never here:* what the requests mean, retrying them, or remembering anything across a reconnect.

mod client;
mod conn;
mod error;
mod inbox;
mod link;
mod notices;
mod outbox;
mod pipeline;
mod settings;
mod state;
mod window;

pub use client::Client;
pub use error::{CallError, ConnectError};
pub use notices::{Heard, Notice, Notices};
pub use pipeline::{Completion, FromReply, Full, Pipeline};
pub use settings::{ClientSettings, WindowSize};
pub use state::{ConnState, Counters, Generation};
pub use vpp_wire as wire;

#[cfg(test)]
mod tests;
