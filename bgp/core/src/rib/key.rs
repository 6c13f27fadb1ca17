//! How keys lie in a table.

use std::fmt;
use std::hash::BuildHasher;

use bgp_wire::{Ipv4Prefix, Ipv6Prefix, NlriKey};
use foldhash::quality::FixedState;

/// A key that a table can store: split into whole words and the length, so that no octet is lost to padding.
pub trait TableKey: NlriKey {
    /// All of the key but its length.
    type Bits: Copy + Clone + Default + Eq + fmt::Debug;

    /// The key in two parts.
    fn split(self) -> (Self::Bits, u8);

    /// The key of two parts that [`TableKey::split`] gave.
    fn join(bits: Self::Bits, len: u8) -> Self;

    /// The hash of the key of these two parts.
    fn hash_parts(bits: Self::Bits, len: u8, hasher: &FixedState) -> u64;
}

impl TableKey for Ipv4Prefix {
    type Bits = u32;

    #[inline]
    fn split(self) -> (u32, u8) {
        (self.addr(), self.len())
    }

    #[inline]
    fn join(bits: u32, len: u8) -> Self {
        Self::new(bits, len).expect("the length came from a prefix")
    }

    #[inline]
    fn hash_parts(bits: u32, len: u8, hasher: &FixedState) -> u64 {
        hasher.hash_one(u64::from(bits) << 8 | u64::from(len))
    }
}

impl TableKey for Ipv6Prefix {
    type Bits = [u64; 2];

    #[inline]
    fn split(self) -> ([u64; 2], u8) {
        ([(self.addr() >> 64) as u64, self.addr() as u64], self.len())
    }

    #[inline]
    fn join([high, low]: [u64; 2], len: u8) -> Self {
        Self::new(u128::from(high) << 64 | u128::from(low), len).expect("the length came from a prefix")
    }

    #[inline]
    fn hash_parts(bits: [u64; 2], len: u8, hasher: &FixedState) -> u64 {
        hasher.hash_one((bits[0], bits[1], len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_there_and_back() {
        let v4 = Ipv4Prefix::new(0x0a01_0200, 23).unwrap();
        let (bits, len) = v4.split();
        assert_eq!(Ipv4Prefix::join(bits, len), v4);
        let v6 = Ipv6Prefix::new(0x2001_0db8_0000_0001_8000_0000_0000_0001, 128).unwrap();
        let (bits, len) = v6.split();
        assert_eq!(<Ipv6Prefix as TableKey>::join(bits, len), v6);
    }

    #[test]
    fn the_length_and_the_seed_are_part_of_the_hash() {
        let (one, other) = (FixedState::with_seed(1), FixedState::with_seed(2));
        let v4 = |len, seed| Ipv4Prefix::hash_parts(0, len, seed);
        assert!(v4(0, &one) != v4(1, &one) && v4(0, &one) != v4(0, &other));
        let v6 = |len, seed| Ipv6Prefix::hash_parts([0, 0], len, seed);
        assert!(v6(0, &one) != v6(1, &one) && v6(0, &one) != v6(0, &other));
    }
}
