//! Calico's filters and export rules as this agent compiles them: objects go in, and real attribute sets are run through
//! the policies that come out, on the sessions that come out. The scenarios are those of Calico's own tests of its
//! configuration, by their number in the reference.

#![allow(missing_docs, unreachable_pub)]
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod bench;
mod export;
mod filters;
mod scenarios;
