//! A BGP speaker as a value: sessions, RIB, route policy and egress, with no socket, clock, thread or
//! random source of its own.
//!
//! The embedder owns a [`speaker::Speaker`], passes what happens into it and carries out what comes out.
//! Time is a parameter ([`time::Instant`]), jitter and hash seeds come from the settings, and iteration
//! order is defined: the same inputs and the same seed give the same output bytes.
//!
//! *Absent on purpose:* `async`, locks, clocks, callbacks, globals.

pub mod command;
mod egress;
pub mod limit;
pub mod outbox;
pub mod peer_key;
pub mod policy;
pub mod query;
pub mod rib;
pub mod secret;
pub mod session;
pub mod speaker;
pub mod stats;
pub mod time;

// What this crate's API shows of the wire crate, so that an embedder need not depend on both.
pub use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity, tunnel_encap};
pub use bgp_wire::{Asn, Family, FamilySet, Label, NextHop, Nlri, RouteDistinguisher, RouterId, SrPolicy6};
