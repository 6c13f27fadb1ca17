//! Keys on the wire. They can be sent, compared and copied out, and not printed.
//!
//! What holds a key for longer than it takes to write a message is not here: a wire struct is a view of a buffer,
//! and the buffer is its owner's to clear.

use crate::layout::{Described, Shape};

/// A key of fixed field width.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct SecretOctets<const N: usize>([u8; N]);

impl<const N: usize> SecretOctets<N> {
    /// All zero, which VPP takes for none.
    pub const NONE: Self = Self([0; N]);

    /// A key.
    #[must_use]
    pub const fn new(octets: [u8; N]) -> Self {
        Self(octets)
    }

    /// The key itself.
    #[must_use]
    pub const fn reveal(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> std::fmt::Debug for SecretOctets<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

impl<const N: usize> Described for SecretOctets<N> {
    const SHAPE: Shape = Shape::Array(&Shape::Unsigned(1), N);
}

/// One byte of a key whose length varies.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct SecretOctet(u8);

impl SecretOctet {
    /// A byte of a key.
    #[must_use]
    pub const fn new(octet: u8) -> Self {
        Self(octet)
    }

    /// The bytes of a key.
    #[must_use]
    pub fn reveal(key: &[Self]) -> &[u8] {
        zerocopy::IntoBytes::as_bytes(key)
    }
}

impl std::fmt::Debug for SecretOctet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("*")
    }
}

impl Described for SecretOctet {
    const SHAPE: Shape = Shape::Unsigned(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_printed() {
        assert_eq!(format!("{:?}", SecretOctets::new([7; 32])), "(secret)");
        assert_eq!(format!("{:?}", [SecretOctet(7); 2]), "[*, *]");
        assert_eq!(SecretOctets::new([7; 32]).reveal(), &[7; 32]);
    }
}
