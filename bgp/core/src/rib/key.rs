//! How keys lie in a table.

use std::fmt;
use std::hash::BuildHasher;

use bgp_wire::{
    Ipv4Prefix, Ipv6Prefix, NlriKey, RouteDistinguisher, SrPolicy4, SrPolicy6, VpnIpv4Prefix, VpnIpv6Prefix,
};
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

impl TableKey for VpnIpv4Prefix {
    /// Distinguisher and address in halves, so that a destination needs no more than four octets of alignment.
    type Bits = [u32; 3];

    #[inline]
    fn split(self) -> ([u32; 3], u8) {
        let [high, low] = halves(u64::from_be_bytes(self.rd.octets()));
        ([high, low, self.prefix.addr()], self.prefix.len())
    }

    #[inline]
    fn join([high, low, addr]: [u32; 3], len: u8) -> Self {
        Self {
            rd: RouteDistinguisher::from_octets(whole(high, low).to_be_bytes()),
            prefix: Ipv4Prefix::join(addr, len),
        }
    }

    #[inline]
    fn hash_parts([high, low, addr]: [u32; 3], len: u8, hasher: &FixedState) -> u64 {
        hasher.hash_one((whole(high, low), u64::from(addr) << 8 | u64::from(len)))
    }
}

impl TableKey for VpnIpv6Prefix {
    type Bits = [u64; 3];

    #[inline]
    fn split(self) -> ([u64; 3], u8) {
        let ([high, low], len) = self.prefix.split();
        ([u64::from_be_bytes(self.rd.octets()), high, low], len)
    }

    #[inline]
    fn join([rd, high, low]: [u64; 3], len: u8) -> Self {
        Self {
            rd: RouteDistinguisher::from_octets(rd.to_be_bytes()),
            prefix: Ipv6Prefix::join([high, low], len),
        }
    }

    #[inline]
    fn hash_parts(bits: [u64; 3], len: u8, hasher: &FixedState) -> u64 {
        hasher.hash_one((bits, len))
    }
}

impl TableKey for SrPolicy4 {
    type Bits = [u32; 3];

    #[inline]
    fn split(self) -> ([u32; 3], u8) {
        ([self.distinguisher, self.color, self.endpoint.to_bits()], 0)
    }

    #[inline]
    fn join([distinguisher, color, endpoint]: [u32; 3], _: u8) -> Self {
        Self { distinguisher, color, endpoint: endpoint.into() }
    }

    #[inline]
    fn hash_parts(bits: [u32; 3], _: u8, hasher: &FixedState) -> u64 {
        hasher.hash_one(bits)
    }
}

impl TableKey for SrPolicy6 {
    type Bits = [u32; 6];

    #[inline]
    fn split(self) -> ([u32; 6], u8) {
        let endpoint = self.endpoint.to_bits();
        let ([a, b], [c, d]) = (halves((endpoint >> 64) as u64), halves(endpoint as u64));
        ([self.distinguisher, self.color, a, b, c, d], 0)
    }

    #[inline]
    fn join([distinguisher, color, a, b, c, d]: [u32; 6], _: u8) -> Self {
        let endpoint = u128::from(whole(a, b)) << 64 | u128::from(whole(c, d));
        Self { distinguisher, color, endpoint: endpoint.into() }
    }

    #[inline]
    fn hash_parts(bits: [u32; 6], _: u8, hasher: &FixedState) -> u64 {
        hasher.hash_one(bits)
    }
}

const fn halves(whole: u64) -> [u32; 2] {
    [(whole >> 32) as u32, whole as u32]
}

const fn whole(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
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
    fn keys_of_other_kinds_go_there_and_back() {
        let rd = RouteDistinguisher::from_octets([0, 2, 3, 4, 5, 6, 7, 8]);
        let address = 0x2001_0db8_0000_0001_8000_0000_0000_0001;
        let v4 = VpnIpv4Prefix { rd, prefix: Ipv4Prefix::new(0x0a01_0200, 23).unwrap() };
        let (bits, len) = v4.split();
        assert_eq!(VpnIpv4Prefix::join(bits, len), v4);
        let v6 = VpnIpv6Prefix { rd, prefix: Ipv6Prefix::new(address, 127).unwrap() };
        let (bits, len) = v6.split();
        assert_eq!(<VpnIpv6Prefix as TableKey>::join(bits, len), v6);
        let policy = SrPolicy4 { distinguisher: 1, color: 2, endpoint: 0xc000_0201.into() };
        let (bits, len) = policy.split();
        assert_eq!(SrPolicy4::join(bits, len), policy);
        let policy = SrPolicy6 { distinguisher: 1, color: 2, endpoint: address.into() };
        let (bits, len) = policy.split();
        assert_eq!(SrPolicy6::join(bits, len), policy);
    }

    #[test]
    fn every_part_of_a_key_is_part_of_the_hash() {
        let hasher = FixedState::with_seed(1);
        let vpn = |bits, len| VpnIpv4Prefix::hash_parts(bits, len, &hasher);
        let all = [vpn([0; 3], 0), vpn([1, 0, 0], 0), vpn([0, 1, 0], 0), vpn([0, 0, 1], 0), vpn([0; 3], 1)];
        assert_eq!(all.into_iter().collect::<std::collections::BTreeSet<_>>().len(), 5);
        let policy = |bits| SrPolicy6::hash_parts(bits, 0, &hasher);
        let all = (0..6).map(|at| policy(std::array::from_fn(|part| u32::from(part == at))));
        assert_eq!(all.chain([policy([0; 6])]).collect::<std::collections::BTreeSet<_>>().len(), 7);
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
