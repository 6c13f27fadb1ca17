//! From best paths to messages: what each neighbour is told of the Loc-RIB (Adj-RIB-Out of RFC 4271 section 3.2).
//!
//! - `group`: update groups, where peers that are told the same share all work; `batch`: what they do with changes;
//!   `walk`: how members catch up
//! - `export`: what changes on the way out; `as_path`: the same for AS paths that need more than our number in front
//! - `field`: where in an UPDATE a family's prefixes stand
//! - `adj_out`: what has been told; `paths_out`: the same where several paths of a destination are told (RFC 7911),
//!   `choice`: which ones; `dests`: a set of destinations
//! - `queue`: pending prefixes, by attribute set
//! - `quota`: a limit on how much a neighbour is told
//! - `ring`: encoded chunks that members read at their own pace
//! - `summaries`: prefixes that stand for what is inside them
//! - `edit`: what policy's edits make of an attribute set
//! - `cx`: what a group works with, and policy on the way out
//!
//! *Absent on purpose:* sessions (a group knows its members by number and by what was negotiated), timers (changes
//! coalesce because writers pull: there is no MinRouteAdvertisementInterval, RFC 4271 section 9.2.1.1).

mod adj_out;
mod as_path;
mod batch;
mod choice;
mod cx;
mod dests;
mod edit;
mod export;
mod field;
mod group;
mod paths_out;
mod queue;
mod quota;
mod ring;
mod summaries;
mod walk;

pub(crate) use adj_out::{AdjOut, Told};
pub(crate) use as_path::PathRules;
pub(crate) use cx::{Cx, Filter, Form, Scratch, Withheld, canonical_form};
pub(crate) use edit::{edit, next_hop as edited_next_hop};
pub use export::Barred;
pub(crate) use export::Rules;
pub(crate) use field::ExportKey;
pub(crate) use group::{Group, GroupKey, Moved, Next, Refresh, WhyNot};
pub(crate) use summaries::Summaries;
