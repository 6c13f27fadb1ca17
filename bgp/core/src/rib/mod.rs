//! The routes: what every neighbour sent, which path is best, and who still has to hear of it.
//!
//! - [`table`]: one family's paths and best paths (Adj-RIB-In and Loc-RIB of RFC 4271 section 3.2 in one)
//! - [`attrs`]: attribute sets, each stored once
//! - [`decision`]: the best-path ladder (RFC 4271 section 9.1)
//! - [`source`], [`path`]: who a path came from, and the path itself
//! - [`nexthop`]: reachability and cost of next hops, sets of next hops
//! - [`changes`]: the version log, for readers that each go at their own pace
//! - [`index`], [`pages`], [`key`]: exact match and storage that grow without a copy
//! - [`walk`]: looking at everything in slices
//! - [`trie`]: longest match, for sets and queries
//! - [`event`]: what an embedder hears; [`sr_policy`]: what it hears of SR policies
//!
//! *Absent on purpose:* sessions, policy (paths arrive with their verdict), what has been told to whom (that is
//! `egress`), and clocks.

pub mod attrs;
pub mod changes;
pub mod decision;
pub mod event;
pub mod index;
pub mod key;
pub mod nexthop;
pub mod pages;
pub mod path;
pub mod source;
pub mod sr_policy;
pub mod table;
pub mod trie;
pub mod walk;

pub use attrs::{AttrId, AttrSet, AttrStore, UpdateAttrs};
pub use changes::CursorId;
pub use decision::{DecisionSettings, Rung};
pub use event::{RibChange, RibEvent};
pub use key::TableKey;
pub use nexthop::{NextHopSet, NextHopState, NextHops, WeightedNextHop};
pub use pages::Pages;
pub use path::{Path, PathRejected};
pub use source::{PeerSource, SourceId, Sources};
pub use sr_policy::{Originator, SrPolicyPath};
pub use table::{
    Accepted, Best, Context, DestId, Loss, Offer, Outcome, Review, RungValue, Standing, Table, TableFull,
};
pub use walk::Walk;
