//! Text on the wire.
//!
//! A fixed field is NUL padded; VPP cuts a text without a NUL and may leave garbage behind it in what it sends.
//! Some fields declared as text hold raw bytes, so nothing here insists on UTF-8.

use std::borrow::Cow;

use crate::layout::{Described, Shape};
use crate::message::{Refused, Tailed};

/// A text of fixed field width. Two are equal when their texts are, whatever stands behind the NUL.
#[derive(
    Clone,
    Copy,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct FixedString<const N: usize>([u8; N]);

impl<const N: usize> FixedString<N> {
    /// No text.
    pub const EMPTY: Self = Self([0; N]);

    /// # Errors
    /// [`Refused::Text`] when the text and a NUL do not fit, or a NUL is in the text.
    pub fn new(text: &str) -> Result<Self, Refused> {
        let refused = Refused::Text { length: text.len(), field: N };
        if text.len() >= N || text.contains('\0') {
            return Err(refused);
        }
        let mut bytes = [0; N];
        bytes.get_mut(..text.len()).ok_or(refused)?.copy_from_slice(text.as_bytes());
        Ok(Self(bytes))
    }

    /// The bytes before the first NUL, or all.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The text, with what is not UTF-8 replaced.
    #[must_use]
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.text())
    }
}

impl<const N: usize> PartialEq for FixedString<N> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl<const N: usize> Eq for FixedString<N> {}

impl<const N: usize> PartialEq<str> for FixedString<N> {
    fn eq(&self, other: &str) -> bool {
        self.text() == other.as_bytes()
    }
}

impl<const N: usize> std::fmt::Debug for FixedString<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_str())
    }
}

impl<const N: usize> std::fmt::Display for FixedString<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_str())
    }
}

impl<const N: usize> Described for FixedString<N> {
    const SHAPE: Shape = Shape::Text(N);
}

/// A text of any length at the end of a message: its length, then its bytes without a NUL.
#[derive(
    zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable, zerocopy::Unaligned,
)]
#[repr(C)]
pub struct VarText {
    length: zerocopy::big_endian::U32,
    octets: [u8],
}

impl VarText {
    /// The text, with what is not UTF-8 replaced.
    #[must_use]
    pub fn to_str(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.octets)
    }

    /// Takes over a text that is as long as the one this was made for, as [`Tailed::append`] did.
    pub(crate) fn fill(&mut self, text: &str) {
        self.octets.copy_from_slice(text.as_bytes());
    }
}

impl std::fmt::Debug for VarText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.to_str())
    }
}

impl Described for VarText {
    const SHAPE: Shape = Shape::VarText;
}

impl Tailed for VarText {
    const FIXED: usize = 4;
    const ELEMENT: usize = 1;
    const COUNT_AT: usize = 0;
    const COUNT_WIDTH: usize = 4;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_leaves_room_for_its_nul() {
        assert_eq!(FixedString::<4>::new("abc").expect("fits").text(), b"abc");
        assert_eq!(FixedString::<4>::new("abcd"), Err(Refused::Text { length: 4, field: 4 }));
        assert_eq!(FixedString::<8>::new("a\0b"), Err(Refused::Text { length: 3, field: 8 }));
    }

    #[test]
    fn garbage_behind_the_nul_does_not_count() {
        assert_eq!(FixedString(*b"ab\0x"), FixedString(*b"ab\0y"));
        assert_eq!(FixedString(*b"abcd").text(), b"abcd");
        assert_eq!(FixedString(*b"a\xff\0\0").to_str(), "a\u{fffd}");
    }
}
