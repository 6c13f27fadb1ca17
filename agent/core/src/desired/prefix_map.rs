//! A map keyed by prefix, in prefix order, that can list what lies inside a prefix. Each IP version has a tree of its
//! own, so that an IPv4 key costs five bytes.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct PrefixMap<V> {
    v4: BTreeMap<Ipv4Net, V>,
    v6: BTreeMap<Ipv6Net, V>,
}

/// The prefix lengths that occur in a map, longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    v4: Vec<u8>,
    v6: Vec<u8>,
}

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self { v4: BTreeMap::new(), v6: BTreeMap::new() }
    }
}

impl<V> PrefixMap<V> {
    pub(crate) fn get(&self, prefix: &IpNet) -> Option<&V> {
        match prefix {
            IpNet::V4(net) => self.v4.get(net),
            IpNet::V6(net) => self.v6.get(net),
        }
    }

    pub(crate) fn get_mut(&mut self, prefix: &IpNet) -> Option<&mut V> {
        match prefix {
            IpNet::V4(net) => self.v4.get_mut(net),
            IpNet::V6(net) => self.v6.get_mut(net),
        }
    }

    pub(crate) fn insert(&mut self, prefix: IpNet, value: V) -> Option<V> {
        match prefix {
            IpNet::V4(net) => self.v4.insert(net, value),
            IpNet::V6(net) => self.v6.insert(net, value),
        }
    }

    pub(crate) fn get_or_insert(&mut self, prefix: IpNet, value: impl FnOnce() -> V) -> &mut V {
        match prefix {
            IpNet::V4(net) => self.v4.entry(net).or_insert_with(value),
            IpNet::V6(net) => self.v6.entry(net).or_insert_with(value),
        }
    }

    pub(crate) fn remove(&mut self, prefix: &IpNet) -> Option<V> {
        match prefix {
            IpNet::V4(net) => self.v4.remove(net),
            IpNet::V6(net) => self.v6.remove(net),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (IpNet, &V)> {
        let v4 = self.v4.iter().map(|(net, value)| (IpNet::V4(*net), value));
        v4.chain(self.v6.iter().map(|(net, value)| (IpNet::V6(*net), value)))
    }

    /// Drops every entry for which `keep` says no.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(IpNet, &mut V) -> bool) {
        self.v4.retain(|net, value| keep(IpNet::V4(*net), value));
        self.v6.retain(|net, value| keep(IpNet::V6(*net), value));
    }

    /// The prefixes inside `outer`, itself included.
    pub(crate) fn inside(&self, outer: &IpNet) -> Vec<IpNet> {
        match outer.trunc() {
            IpNet::V4(net) => {
                let last = Ipv4Net::new(net.broadcast(), 32).unwrap_or(net);
                let range = self.v4.range(net..=last);
                range.map(|(inner, _)| *inner).filter(|inner| net.contains(inner)).map(IpNet::V4).collect()
            }
            IpNet::V6(net) => {
                let last = Ipv6Net::new(net.broadcast(), 128).unwrap_or(net);
                let range = self.v6.range(net..=last);
                range.map(|(inner, _)| *inner).filter(|inner| net.contains(inner)).map(IpNet::V6).collect()
            }
        }
    }

    /// The longest prefix that contains `inner`, itself included: one look-up for each of `lengths`, which are all
    /// lengths in the map, longest first.
    pub(crate) fn covering(&self, inner: &IpNet, lengths: &Lengths) -> Option<(IpNet, &V)> {
        match inner {
            IpNet::V4(net) => {
                lengths.v4.iter().filter(|length| **length <= net.prefix_len()).find_map(|length| {
                    let outer = Ipv4Net::new(net.addr(), *length).ok()?.trunc();
                    self.v4.get(&outer).map(|value| (IpNet::V4(outer), value))
                })
            }
            IpNet::V6(net) => {
                lengths.v6.iter().filter(|length| **length <= net.prefix_len()).find_map(|length| {
                    let outer = Ipv6Net::new(net.addr(), *length).ok()?.trunc();
                    self.v6.get(&outer).map(|value| (IpNet::V6(outer), value))
                })
            }
        }
    }

    /// The lengths of all prefixes, for [`PrefixMap::covering`].
    pub(crate) fn lengths(&self) -> Lengths {
        let descending = |lengths: BTreeSet<u8>| lengths.into_iter().rev().collect();
        Lengths {
            v4: descending(self.v4.keys().map(Ipv4Net::prefix_len).collect()),
            v6: descending(self.v6.keys().map(Ipv6Net::prefix_len).collect()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn lists_what_lies_inside_and_finds_the_longest_cover() {
        let mut map = PrefixMap::default();
        for (n, text) in [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.0.0.0/24",
            "10.0.0.0/25",
            "10.0.1.0/24",
            "11.0.0.0/8",
            "fd00::/8",
            "fd00::/64",
        ]
        .iter()
        .enumerate()
        {
            map.insert(net(text), n);
        }
        assert_eq!(map.inside(&net("10.0.0.0/24")), [net("10.0.0.0/24"), net("10.0.0.0/25")]);
        assert_eq!(map.inside(&net("10.0.0.0/8")).len(), 4);
        assert_eq!(map.inside(&net("0.0.0.0/0")).len(), 6);
        assert_eq!(map.inside(&net("fd00::/8")), [net("fd00::/8"), net("fd00::/64")]);
        assert_eq!(map.inside(&net("255.255.255.255/32")), []);
        let lengths = map.lengths();
        assert_eq!(map.covering(&net("10.0.0.128/26"), &lengths).map(|(n, _)| n), Some(net("10.0.0.0/24")));
        assert_eq!(map.covering(&net("192.0.2.0/24"), &lengths).map(|(n, _)| n), Some(net("0.0.0.0/0")));
        assert_eq!(map.covering(&net("2001:db8::/32"), &lengths), None);
        assert_eq!((map.len(), map.is_empty()), (8, false));
    }
}
