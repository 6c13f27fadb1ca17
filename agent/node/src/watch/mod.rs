//! Sources of events: each file turns what one source says into [`Event`](agent_core::event::Event)s, and does nothing
//! else.
//!
//! * `directory.rs` watches a folder of manifests; `manifests.rs` decides which of its objects are in force.
//! * `node.rs`, `bgp_config.rs`, `bgp_peer.rs`, `pool.rs`, `affinity.rs` map one kind of object each.
//!
//! Absent on purpose: any opinion on what an object does to this node.

mod directory;
mod manifests;
mod source;
