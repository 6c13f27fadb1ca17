//! Route policy as data: what is declared, what it compiles to, and how that runs over a path.
//!
//! - [`definition`]: policies as declared, naming sets by name
//! - [`sets`]: the defined sets
//! - [`program`]: the closed instruction set, all of it
//! - [`mod@compile`]: declared → program, with mistakes that say where they are
//! - [`mod@eval`]: a program runs over a path; the result is a verdict and edits, never a copied attribute set
//!
//! *Absent on purpose:* trait objects, patterns that are text while routes pass, knowledge of peers or tables, and any
//! meaning of *policy* other than route policy.

pub mod compile;
pub mod definition;
pub mod eval;
pub mod program;
pub mod sets;

pub use compile::{Mistake, PolicyMistake, compile};
pub use definition::{Condition, PolicyDef, PolicyName, SetName, StatementDef};
pub use eval::{Decider, Edits, Route, Verdict, eval};
pub use program::{Act, Cond, Default, Flow, Learned, Program, Stmt};
pub use sets::{NeighborSet, PrefixRange, PrefixSet, Sets};
