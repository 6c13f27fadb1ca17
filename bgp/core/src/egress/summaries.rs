//! Prefixes that stand for all that is inside them, so that nothing inside them is told.

use std::collections::BTreeSet;

use bgp_wire::Nlri;
use ipnet::IpNet;

/// A set of such prefixes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summaries {
    prefixes: BTreeSet<IpNet>,
    /// The lengths that occur, ascending: each is one look into the set.
    lengths: Vec<u8>,
}

impl Summaries {
    /// The set of these prefixes, which are of one family and have no host bits.
    pub(crate) fn new(prefixes: impl IntoIterator<Item = IpNet>) -> Self {
        let prefixes: BTreeSet<IpNet> = prefixes.into_iter().collect();
        let lengths: BTreeSet<u8> = prefixes.iter().map(IpNet::prefix_len).collect();
        Self { prefixes, lengths: lengths.into_iter().collect() }
    }

    /// Adds one.
    pub(crate) fn insert(&mut self, prefix: IpNet) {
        self.prefixes.insert(prefix);
        if let Err(at) = self.lengths.binary_search(&prefix.prefix_len()) {
            self.lengths.insert(at, prefix.prefix_len());
        }
    }

    /// Takes one out. Its length is looked for further on.
    pub(crate) fn remove(&mut self, prefix: IpNet) {
        self.prefixes.remove(&prefix);
        if self.prefixes.is_empty() {
            self.lengths.clear();
        }
    }

    /// Those of them that are in `other` too.
    pub(super) fn both(&self, other: &Self) -> Self {
        Self::new(self.prefixes.intersection(&other.prefixes).copied())
    }

    /// Those that a prefix is inside of, itself not counted.
    pub(crate) fn around(&self, prefix: IpNet) -> impl Iterator<Item = IpNet> {
        let lengths = self.lengths.iter().take_while(move |len| **len < prefix.prefix_len());
        lengths.filter_map(move |len| {
            let around = IpNet::new(prefix.addr(), *len).ok()?.trunc();
            self.prefixes.contains(&around).then_some(around)
        })
    }

    /// Whether a route is inside one of them.
    #[inline]
    pub(super) fn stand_for(&self, key: impl Into<Nlri>) -> bool {
        !self.lengths.is_empty()
            && key.into().unicast().is_some_and(|prefix| self.around(prefix).next().is_some())
    }
}

impl PartialEq for Summaries {
    fn eq(&self, other: &Self) -> bool {
        self.prefixes == other.prefixes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_and_what_is_not() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let nlri = |text: &str| text.parse::<Nlri>().unwrap();
        let summaries = Summaries::new(["10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24"].map(net));
        for (inside, text) in [
            (true, "10.9.0.0/16"),
            (true, "10.1.0.0/16"),
            (true, "192.0.2.128/25"),
            (false, "10.0.0.0/8"),
            (false, "192.0.2.0/24"),
            (false, "192.0.0.0/16"),
            (false, "11.0.0.0/24"),
            (false, "1:2:10.9.0.0/16"),
        ] {
            assert_eq!(summaries.stand_for(nlri(text)), inside, "{text}");
        }
        let around: Vec<_> = summaries.around(net("10.1.2.0/24")).collect();
        assert_eq!(around, ["10.0.0.0/8", "10.1.0.0/16"].map(net));
        assert!(!Summaries::default().stand_for(nlri("10.9.0.0/16")));
        let both = summaries.both(&Summaries::new([net("10.0.0.0/8"), net("11.0.0.0/8")]));
        assert_eq!(both, Summaries::new([net("10.0.0.0/8")]));
        let mut one = both;
        one.insert(net("10.0.0.0/16"));
        one.remove(net("10.0.0.0/8"));
        assert_eq!(one, Summaries::new([net("10.0.0.0/16")]));
        assert!(one.stand_for(nlri("10.0.1.0/24")) && !one.stand_for(nlri("10.9.0.0/24")));
    }
}
