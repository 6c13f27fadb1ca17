//! What every family's key can do: be read from a message, be written into one.

use std::{fmt, hash::Hash};

use super::{Label, Nlri};
use crate::family::Family;

/// A path identifier (RFC 7911). Where path identifiers were not agreed, every path has [`PathId::NONE`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PathId(pub u32);

impl PathId {
    /// The identifier of a path that came without one, or leaves without one.
    pub const NONE: Self = Self(0);
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The compact key of a family's routes: what a table is indexed by. What a message carries beside it, a label, is
/// no part of the key but of the path.
pub trait NlriKey: Copy + Eq + Ord + Hash + fmt::Debug + fmt::Display + Into<Nlri> + 'static {
    /// The family.
    const FAMILY: Family;
    /// The most octets that one key takes in a message, with its label and without its path identifier.
    const MAX_ENCODED: usize;
    /// Whether messages carry a label beside the key.
    const LABELLED: bool = false;
    /// Whether a message names one of them at a time, as some receivers read only one.
    const ALONE: bool = false;

    /// Takes one key and its label, where the family has labels, off the front of a field, without its path
    /// identifier; `None` if what is there is no key.
    fn split_first(field: &[u8]) -> Option<(Self, Option<Label>, &[u8])>;

    /// Passes over something at the front of a field that is no key but says where it ends, and that its family lets
    /// one pass over; what follows it. `None` where that cannot be, so that the rest of the field cannot be read.
    fn skip(field: &[u8]) -> Option<&[u8]> {
        let _ = field;
        None
    }

    /// Writes the key into the front of `out` and says how many octets it took. Where the family has labels, none
    /// stands for a withdrawal, which needs none.
    fn write(self, label: Option<Label>, out: &mut [u8; 32]) -> usize;

    /// The key of a value, if it is of this family.
    fn of(nlri: Nlri) -> Option<Self>;
}
