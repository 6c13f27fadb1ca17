//! The layout of messages and structs as data.
//!
//! The struct macros write these descriptions from the same field list that makes the Rust struct. The
//! catalogue test compares them, name by name and offset by offset, with the message definitions of every
//! supported release, so a field that is missing, misplaced or of the wrong width cannot pass.

use zerocopy::big_endian::{I32, I64, U16, U32, U64};

/// A packed structure: a whole message or a part of one.
#[derive(Debug)]
pub struct Layout {
    /// The Rust type's name.
    pub name: &'static str,
    /// Bytes of the fields, without a variable tail.
    pub fixed: usize,
    /// The fields in wire order, without a counted tail.
    pub fields: &'static [Field],
    /// The variable array at the end, if there is one.
    pub tail: Option<Tail>,
}

/// One field of a [`Layout`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// VPP's own name of the field; `head` stands for the head's fields.
    pub name: &'static str,
    /// Bytes from the start of the structure.
    pub at: usize,
    /// What is there.
    pub shape: Shape,
}

/// A variable array: always the last thing in its structure, with its count in an earlier field.
#[derive(Debug, Clone, Copy)]
pub struct Tail {
    /// VPP's own name of the field.
    pub name: &'static str,
    /// The shape of one element.
    pub element: Shape,
    /// The field that holds the count.
    pub count: &'static str,
}

/// How the bytes of a field are to be understood.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Big-endian unsigned integer of that many bytes.
    Unsigned(usize),
    /// Big-endian signed integer of that many bytes.
    Signed(usize),
    /// Unsigned integer with named values. Other values may come and are kept.
    Named {
        /// Bytes.
        width: usize,
        /// The names this crate knows, with their values.
        values: &'static [(&'static str, u32)],
    },
    /// A floating-point number of 8 bytes in the byte order of the machine that VPP runs on.
    Float,
    /// One byte, 0 or 1.
    Bool,
    /// NUL-padded text of that many bytes.
    Text(usize),
    /// That many raw bytes.
    Octets(usize),
    /// That many elements.
    Array(&'static Self, usize),
    /// A structure.
    Struct(&'static Layout),
    /// A `u32` length and that many bytes of text, at the end of the message.
    VarText,
}

impl Shape {
    /// Bytes this takes, without variable tails.
    #[must_use]
    pub const fn size(&self) -> usize {
        match self {
            Self::Unsigned(n) | Self::Signed(n) | Self::Text(n) | Self::Octets(n) => *n,
            Self::Named { width, .. } => *width,
            Self::Float => 8,
            Self::Bool => 1,
            Self::Array(element, n) => element.size() * *n,
            Self::Struct(layout) => layout.fixed,
            Self::VarText => 4,
        }
    }
}

/// A type that can stand as a field.
pub trait Described {
    /// Its shape on the wire.
    const SHAPE: Shape;
}

impl Described for u8 {
    const SHAPE: Shape = Shape::Unsigned(1);
}
impl Described for U16 {
    const SHAPE: Shape = Shape::Unsigned(2);
}
impl Described for U32 {
    const SHAPE: Shape = Shape::Unsigned(4);
}
impl Described for U64 {
    const SHAPE: Shape = Shape::Unsigned(8);
}
impl Described for I32 {
    const SHAPE: Shape = Shape::Signed(4);
}
impl Described for i8 {
    const SHAPE: Shape = Shape::Signed(1);
}
impl Described for I64 {
    const SHAPE: Shape = Shape::Signed(8);
}
impl<T: Described + 'static, const N: usize> Described for [T; N] {
    const SHAPE: Shape = Shape::Array(&T::SHAPE, N);
}

/// Places fields one behind the other, as packed structures have them.
pub(crate) const fn place<const N: usize>(fields: [(&'static str, Shape); N]) -> [Field; N] {
    let mut placed = [Field { name: "", at: 0, shape: Shape::Bool }; N];
    let mut at = 0;
    let mut i = 0;
    while i < N {
        placed[i] = Field { name: fields[i].0, at, shape: fields[i].1 };
        at += fields[i].1.size();
        i += 1;
    }
    placed
}

/// The bytes of all fields together.
pub(crate) const fn total(fields: &[Field]) -> usize {
    match fields.last() {
        Some(last) => last.at + last.shape.size(),
        None => 0,
    }
}

/// The field of that name. A wrong name is a compile error, as this is only called in constants.
pub(crate) const fn field(fields: &[Field], name: &str) -> Field {
    let mut i = 0;
    while i < fields.len() {
        if same(fields[i].name.as_bytes(), name.as_bytes()) {
            return fields[i];
        }
        i += 1;
    }
    panic!("no field of this name")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
