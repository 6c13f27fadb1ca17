//! A synthetic table shaped like a real one: lengths as the Internet has them, and about 13 distinct attribute
//! sets for every 100 prefixes, most of them small and a few large.

use std::net::Ipv4Addr;

/// One attribute set and the prefixes that carry it.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// AS path as sent, the sender's own AS first.
    pub(crate) as_path: Vec<u32>,
    /// Standard communities, ascending.
    pub(crate) communities: Vec<u32>,
    /// Prefixes: address in host order, length.
    pub(crate) prefixes: Vec<(u32, u8)>,
}

/// How many of 1,000 prefixes have which length.
const LENGTHS: [(u8, u32); 10] =
    [(24, 600), (23, 100), (22, 110), (21, 50), (20, 45), (19, 30), (18, 20), (17, 15), (16, 25), (15, 5)];

/// Builds `count` distinct prefixes announced by `asn`. The same arguments give the same table.
#[must_use]
pub(crate) fn build(count: u32, asn: u32) -> Vec<Route> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut routes = Vec::new();
    let mut base = u32::from(Ipv4Addr::new(1, 0, 0, 0));
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
        as_path.extend((0..hops).map(|_| 1_000 + random.below(390_000)));
        let mut communities: Vec<u32> =
            (0..random.below(6)).map(|_| (random.below(65_000) << 16) | random.below(1_000)).collect();
        communities.sort_unstable();
        communities.dedup();
        let mut prefixes = Vec::new();
        for _ in 0..size {
            let mut draw = random.below(1_000);
            let length = LENGTHS.iter().find(|(_, share)| {
                let hit = draw < *share;
                draw = draw.saturating_sub(*share);
                hit
            });
            let length = length.map_or(24, |(length, _)| *length);
            let step = 1_u32 << (32 - length);
            // The next free block of that size; all prefixes are disjoint, so all are distinct.
            base = base.next_multiple_of(step);
            prefixes.push((base, length));
            base += step;
        }
        routes.push(Route { as_path, communities, prefixes });
    }
    routes
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

    #[test]
    fn the_table_has_the_promised_shape() {
        let routes = super::build(50_000, 65_001);
        let all: HashSet<_> = routes.iter().flat_map(|route| &route.prefixes).collect();
        assert_eq!(all.len(), 50_000, "every prefix is distinct");
        let sets = routes.len() * 100 / 50_000;
        assert!((10..=16).contains(&sets), "{sets} attribute sets per 100 prefixes");
    }
}
