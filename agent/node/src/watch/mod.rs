//! Sources of events: each file turns what one source says into [`Event`](agent_core::event::Event)s, and does nothing
//! else.
//!
//! * `directory.rs` watches a folder of manifests; `manifests.rs` decides which of its objects are in force.
//! * `node.rs`, `bgp_config.rs`, `bgp_filter.rs`, `bgp_peer.rs`, `felix_config.rs`, `pool.rs`, `network.rs`, `affinity.rs` map one kind of object each; `route.rs` knows
//!   which.
//! * `info_file.rs` reads what VPP's manager has given VPP.
//! * `rib.rs` follows the speaker's best paths.
//!
//! Absent on purpose: any opinion on what an object does to this node.

mod affinity;
mod bgp_config;
mod bgp_filter;
mod bgp_peer;
mod directory;
mod felix_config;
mod info_file;
mod manifests;
mod network;
mod node;
mod pool;
mod rib;
mod route;
mod source;

pub(crate) use directory::{Directory, list, read_text};
pub(crate) use info_file::InfoFile;
pub(crate) use manifests::Manifests;
pub(crate) use rib::RibWatcher;
pub(crate) use route::event;
pub(crate) use source::SourceChange;
