//! The node agent's decisions as a value: from Kubernetes objects, best paths and the state of VPP to what the BGP speaker
//! and VPP shall hold, and the operations that get them there.
//!
//! [`Engine`] is the door. Events ([`event`]) go in; operations ([`plan`]) come out as executors have room for them.
//! Inside, handlers turn events into edits of the desired state ([`desired`]), and plans compare it with what is known
//! of the targets. Adding, changing, removing, restarting and repairing are one code path.
//!
//! *Absent on purpose:* `async`, sockets, clocks, Kubernetes types, VPP's wire format, BGP's wire format.

pub mod config;
pub mod desired;
pub mod effects;
mod engine;
pub mod event;
pub mod explain;
mod handler;
pub mod ipam;
pub mod model;
pub mod plan;
mod provider;
pub mod selector;
pub mod service;

pub use config::{BgpMode, Config, Encrypted, Encryption, Srv6Config, Srv6Pools, VppConfig};
pub use engine::{Engine, Forwarding, Sources, Status};
pub use event::{Change, Event};
pub use handler::filter_of;
