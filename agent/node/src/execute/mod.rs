//! Executors: operations of the engine become requests to a target, answers become events.
//!
//! One file for each target. An executor holds the operations in flight and nothing else that matters: what was wanted
//! and what is there is the engine's to know. Each hands out its free slots, and the engine never gives it more.
//!
//! Absent on purpose: retries, ordering, and any opinion on what an operation is for.

pub(crate) mod speaker;
pub(crate) mod status;
pub(crate) mod vpp;

pub(crate) use vpp::VPP_RELEASES;
