//! YAML (and so JSON) as trees that remember their lines, and a reader of their fields that reports every mistake it
//! meets instead of the first.
//!
//! Manifests and both configuration files are read through here, so that all of them name a mistake in the same way:
//! line, field, what is wrong, and what would be right. It reads text only: no files, no meaning of any field.
//!
//! Absent on purpose: merge keys (`<<`), tags, and several spellings of booleans (`yes`, `on`), as kubectl has them.

mod fields;
mod nearest;
mod tree;

pub(crate) use fields::{Fields, Flaw, Flaws, Item, Mistake, duration};
pub(crate) use nearest::nearest;
pub(crate) use tree::{Line, Tree, Value, documents};
