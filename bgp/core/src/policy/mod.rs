//! Route policy as data: what is declared, what it compiles to, and how that runs over a path.
//!
//! - [`definition`]: policies as declared, naming sets and other policies by name
//! - [`pattern`]: patterns of communities, AS paths and interface names
//! - [`sets`]: the defined sets
//! - [`program`]: the closed instruction set, all of it, and chains of programs
//! - [`mod@compile`]: declared → program, with mistakes that say where they are
//! - [`library`]: the sets and policies of a speaker, each compiled once
//! - [`mod@eval`]: a chain runs over a path; the result is a verdict and edits, never a copied attribute set
//! - `signature`: all that a chain can tell of a prefix, found in one look
//! - [`edits`]: what is to be changed of a path
//!
//! *Absent on purpose:* trait objects, patterns that are text while routes pass, knowledge of peers or tables, and any
//! meaning of *policy* other than route policy.

pub mod compile;
pub mod definition;
pub mod edits;
pub mod eval;
pub mod library;
pub mod pattern;
pub mod program;
pub mod sets;
pub(crate) mod signature;

pub use compile::{Mistake, PolicyMistake, compile};
pub use definition::{
    Act, Condition, Default, Direction, Flow, Learned, Match, Members, Otherwise, PeerType, PolicyDef,
    PolicyName, SetName, StatementDef,
};
pub use edits::{Edits, ListEdit, MedEdit, NextHopEdit};
pub(crate) use eval::eval_signed;
pub use eval::{Decider, Interfaces, Route, Verdict, eval, trace};
pub use library::{Changed, Library};
pub use pattern::{
    AsPathPattern, AsPathPatternError, CommunityPattern, CommunityPatternError, ExtCommunityPattern, Glob,
    LargeCommunityPattern,
};
pub use program::{Pipeline, Program};
pub use sets::{NeighborSet, PrefixRange, PrefixRangeError, PrefixSet, SetDef, SetKind, Sets};
pub(crate) use signature::Signature;
