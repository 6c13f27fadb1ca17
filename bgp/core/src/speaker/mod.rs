//! One input in, outputs out: the speaker joins sessions, RIB, policy and egress.
//!
//! The embedder calls [`Speaker::handle`] with what happened on its sockets, [`Speaker::pull`] when a connection can
//! take bytes, [`Speaker::work`] while [`Speaker::has_work`], and [`Input::Tick`] when [`Speaker::deadline`] has come.
//! It asks for changes with [`Speaker::command`], follows best paths with [`Speaker::subscribe`] and reads the rest
//! with the queries.
//!
//! | file | what it does |
//! |---|---|
//! | `io.rs` | what goes in and comes out |
//! | `settings.rs` | what never changes, or only by command |
//! | `state.rs` | the speaker, and one turn of it |
//! | `neighbour.rs` | one neighbour: its session, its numbers, up and down |
//! | `range.rs` | dynamic neighbours; who may connect |
//! | `receive.rs` | from bytes to the RIB |
//! | `complaint.rs` | what is said of faulty UPDATEs |
//! | `send.rs` | from the RIB to bytes |
//! | `restart.rs` | graceful restart, both roles |
//! | `limits.rs` | prefix limits, and the end of repetitions without one |
//! | `reflection.rs` | route reflection: clients and cluster |
//! | `family.rs`, `family/` | one family: table, own routes, update groups |
//! | `aggregates.rs` | own routes that are there while something inside them is |
//! | `ribs.rs` | all families, each with its own type of key |
//! | `policies.rs` | sets and policies |
//! | `commands.rs` | what the embedder may ask |
//! | `admin.rs` | the part of it that operators ask: clear, stop, start, leave gently |
//! | `jobs.rs` | what takes longer than a turn |
//! | `stream.rs` | best paths for the embedder |
//! | `convergence.rs` | when initial convergence has ended |
//! | `answers.rs` | queries |
//! | `explain.rs` | why a destination is as it is |
//!
//! *Absent on purpose:* sockets, clocks, threads, callbacks. Nothing here waits.

mod admin;
mod aggregates;
mod answers;
mod commands;
mod complaint;
mod convergence;
mod explain;
mod family;
mod io;
mod jobs;
mod limits;
mod neighbour;
mod policies;
mod range;
mod receive;
mod reflection;
mod restart;
mod ribs;
mod send;
mod settings;
mod state;
mod stream;

pub use io::{Door, Input, Output, PeerEvent, PeerEventKind, SubscriberId, Transport};
pub use settings::SpeakerSettings;
pub use state::Speaker;

#[cfg(test)]
mod tests;
