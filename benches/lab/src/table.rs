//! Synthetic tables shaped like a real one: lengths as the Internet has them, prefixes inside other prefixes, and
//! about 13 distinct attribute sets for every 100 prefixes, most of them small and a few large.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 or IPv6 unicast.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv4 unicast.
    V4,
    /// IPv6 unicast.
    V6,
}

/// A prefix of either family: the bits of its address from the left, so that both are written alike.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Prefix {
    /// The address, its first bit at the top.
    pub(crate) bits: u128,
    /// Length in bits.
    pub(crate) length: u8,
}

/// One attribute set and the prefixes that carry it.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// AS path as sent, the sender's own AS first.
    pub(crate) as_path: Vec<u32>,
    /// Standard communities, ascending.
    pub(crate) communities: Vec<u32>,
    /// What is announced with them.
    pub(crate) prefixes: Vec<Prefix>,
}

/// How many of 1,000 prefixes have which length.
const LENGTHS_V4: [(u8, u32); 10] =
    [(24, 600), (23, 100), (22, 110), (21, 50), (20, 45), (19, 30), (18, 20), (17, 15), (16, 25), (15, 5)];
const LENGTHS_V6: [(u8, u32); 8] =
    [(48, 480), (44, 120), (40, 100), (36, 60), (32, 130), (46, 50), (47, 40), (29, 20)];

/// The most that a prefix moves the next one on: what is larger has others inside.
const STRIDE_V4: u128 = 2048 << 96;
const STRIDE_V6: u128 = 1 << 88;

/// The space of one sender among several with tables that share no prefix.
const SHARE_V4: u128 = 0x0c00_0000 << 96;

/// How many communities of the sender's own AS there are.
pub(crate) const OWN_COMMUNITIES: u32 = 50;

/// Builds `count` distinct prefixes announced by `asn`, in the space of sender number `sender`. The same arguments give
/// the same table.
#[must_use]
pub(crate) fn build(family: Family, count: u32, asn: u32, sender: u32) -> Vec<Route> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ u64::from(sender));
    let mut routes = Vec::new();
    let (lengths, stride, mut base) = match family {
        Family::V4 => (
            &LENGTHS_V4[..],
            STRIDE_V4,
            left(IpAddr::V4(Ipv4Addr::new(1, 0, 0, 0))) + u128::from(sender) * SHARE_V4,
        ),
        Family::V6 => (
            &LENGTHS_V6[..],
            STRIDE_V6,
            left(IpAddr::V6(Ipv6Addr::new(0x2400, 0, 0, 0, 0, 0, 0, 0))) + (u128::from(sender) << 112),
        ),
    };
    let mut next_of_length = [0_u128; 129];
    let mut left = count;
    while left > 0 {
        // Set sizes: half of them hold one prefix, the mean is about 7.7 (13 % distinct sets).
        let size = match random.below(100) {
            0..50 => 1,
            50..75 => 2 + random.below(3),
            75..93 => 5 + random.below(10),
            _ => 20 + random.below(90),
        };
        let size = size.min(left);
        left -= size;
        let mut as_path = vec![asn];
        let hops = 1 + random.below(5);
        as_path.extend((0..hops).map(|_| 100_000 + random.below(300_000)));
        let mut communities: Vec<u32> =
            (0..random.below(6)).map(|_| (random.below(65_000) << 16) | random.below(1_000)).collect();
        if let Some(first) = communities.first_mut() {
            *first = (65_001 << 16) | random.below(OWN_COMMUNITIES);
        }
        communities.sort_unstable();
        communities.dedup();
        let mut prefixes = Vec::new();
        for _ in 0..size {
            let mut draw = random.below(1_000);
            let length = lengths.iter().find(|(_, share)| {
                let hit = draw < *share;
                draw = draw.saturating_sub(*share);
                hit
            });
            let length = length.map_or(24, |(length, _)| *length);
            let step = 1_u128 << (128 - u32::from(length));
            let next = &mut next_of_length[usize::from(length)];
            // The block that the cursor is in, or the first behind the last one of this length.
            let bits = (base & !(step - 1)).max(*next);
            *next = bits + step;
            base += step.min(stride);
            prefixes.push(Prefix { bits, length });
        }
        routes.push(Route { as_path, communities, prefixes });
    }
    routes
}

/// An address as the bits of a prefix.
#[must_use]
pub(crate) fn left(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// xorshift64*: reproducible, and good enough to shape a table.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        u32::try_from(high % u64::from(bound)).expect("less than a u32 bound")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::Family;

    #[test]
    fn the_table_has_the_promised_shape() {
        for family in [Family::V4, Family::V6] {
            let routes = super::build(family, 50_000, 65_001, 0);
            let all: HashSet<_> = routes.iter().flat_map(|route| &route.prefixes).collect();
            assert_eq!(all.len(), 50_000, "every prefix is distinct");
            let sets = routes.len() * 100 / 50_000;
            assert!((10..=16).contains(&sets), "{sets} attribute sets per 100 prefixes");
        }
    }

    #[test]
    fn senders_share_nothing_and_stay_below_loopback() {
        let tables = (0..10).map(|sender| super::build(Family::V4, 100_000, 65_001, sender));
        let all: Vec<_> = tables.flatten().flat_map(|route| route.prefixes).collect();
        let distinct: HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), 1_000_000);
        let whole = super::build(Family::V4, 1_000_000, 65_001, 0);
        let most = all.iter().chain(whole.iter().flat_map(|route| &route.prefixes)).map(|prefix| prefix.bits);
        assert!(most.max().is_some_and(|bits| bits >> 120 < 127));
    }
}
