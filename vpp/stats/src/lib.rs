//! Reads VPP's statistics segment: counters without the API, and without costing VPP anything.
//!
//! VPP hands out one file descriptor over a socket; the file is its counters, which it goes on changing. A reader maps it,
//! and reads under a protocol of two words: while VPP changes the shape of things, or has changed it since the reader began,
//! what was read is thrown away and read again.
//!
//! * [`Stats`]: connect, and what is worth knowing: [`Stats::interfaces`], [`Stats::errors`], [`Stats::scalar`]
//! * [`segment`]: header, vectors, the protocol, the directory
//! * [`map`]: the mapping, and all the unsafe code there is
//!
//! Nothing that stands in the segment is believed: each pointer becomes an offset that is checked against the size of the
//! mapping, each length is bounded. *Never here:* waiting, threads, writing.

pub mod map;
pub mod segment;
mod stats;

pub use segment::{Entry, EntryKind, Segment, StatsError};
pub use stats::{InterfaceCounters, Stats, metric_name};
