//! Longest match: a binary trie with compressed paths, in one vector.
//!
//! For sets of prefixes and for queries, never on the way of a received prefix into a table: that is [`super::index`].
//! A node is a prefix; its children are longer prefixes inside it, told apart by the bit behind its length. Nodes
//! that lose their value stay while they still join two children.

/// Up to 128 bits of an address, left-aligned, and how many of them count. Bits behind the length are 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits {
    bits: u128,
    len: u8,
}

impl Bits {
    /// The first `len` of `bits`, counted from the most significant one; at most 128.
    #[must_use]
    pub fn new(bits: u128, len: u8) -> Self {
        let len = len.min(128);
        Self { bits: bits & mask(len), len }
    }

    /// How many bits there are.
    #[must_use]
    pub const fn len(self) -> u8 {
        self.len
    }

    /// The first `count` as a number, at most 128 of them; those behind the length are 0.
    #[must_use]
    pub fn first(self, count: u8) -> u128 {
        self.bits.checked_shr(128 - u32::from(count.min(128))).unwrap_or(0)
    }

    /// Whether there are none: the prefix of everything.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Whether `other` begins with all of these bits.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.len <= other.len && other.bits & mask(self.len) == self.bits
    }

    /// The bit behind the first `at`.
    fn bit(self, at: u8) -> usize {
        usize::from(at < 128 && self.bits << at >> 127 == 1)
    }

    fn common(self, other: Self) -> Self {
        let len = (self.bits ^ other.bits).leading_zeros() as u8;
        Self::new(self.bits, len.min(self.len).min(other.len))
    }
}

impl From<ipnet::IpNet> for Bits {
    fn from(net: ipnet::IpNet) -> Self {
        match net {
            ipnet::IpNet::V4(net) => Self::new(u128::from(net.addr().to_bits()) << 96, net.prefix_len()),
            ipnet::IpNet::V6(net) => Self::new(net.addr().to_bits(), net.prefix_len()),
        }
    }
}

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)
}

/// A map from prefixes to values that finds what covers a prefix. One family only: the bits do not tell.
#[derive(Clone, Debug)]
pub struct Trie<V> {
    nodes: Vec<Node<V>>,
    free: Vec<u32>,
    root: u32,
    len: usize,
}

#[derive(Clone, Debug)]
struct Node<V> {
    prefix: Bits,
    value: Option<V>,
    children: [u32; 2],
}

/// No node.
const NONE: u32 = u32::MAX;

impl<V> Trie<V> {
    /// An empty trie.
    #[must_use]
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: NONE, len: 0 }
    }

    /// How many prefixes have a value.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none has.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the value of a prefix and returns the one it had.
    pub fn insert(&mut self, prefix: Bits, value: V) -> Option<V> {
        let mut parent = None;
        let mut at = self.root;
        while let Some(node) = self.nodes.get(at as usize) {
            if node.prefix == prefix {
                let old = self.nodes[at as usize].value.replace(value);
                self.len += usize::from(old.is_none());
                return old;
            }
            if !node.prefix.covers(prefix) {
                break;
            }
            let side = prefix.bit(node.prefix.len);
            parent = Some((at, side));
            at = node.children[side];
        }
        // `at` is a node that the new prefix does not lie in, or none: the new one goes above or beside it.
        let above = self.nodes.get(at as usize).map(|node| (node.prefix, node.prefix.common(prefix)));
        let new = self.add(Node { prefix, value: Some(value), children: [NONE; 2] });
        let top = match above {
            None => new,
            Some((below, common)) if common == prefix => {
                self.nodes[new as usize].children[below.bit(prefix.len)] = at;
                new
            }
            Some((below, common)) => {
                let mut children = [new; 2];
                children[below.bit(common.len)] = at;
                self.add(Node { prefix: common, value: None, children })
            }
        };
        self.link(parent, top);
        self.len += 1;
        None
    }

    /// Removes the value of a prefix and returns it.
    pub fn remove(&mut self, prefix: Bits) -> Option<V> {
        let mut grandparent = None;
        let mut parent = None;
        let mut at = self.root;
        loop {
            let node = self.nodes.get(at as usize)?;
            if node.prefix == prefix {
                break;
            }
            if !node.prefix.covers(prefix) {
                return None;
            }
            let side = prefix.bit(node.prefix.len);
            grandparent = parent;
            parent = Some((at, side));
            at = node.children[side];
        }
        let value = self.nodes[at as usize].value.take()?;
        self.len -= 1;
        match self.nodes[at as usize].children {
            [NONE, NONE] => {
                self.link(parent, NONE);
                self.free.push(at);
                // The parent may have been there only to join this node and its other child.
                if let Some((above, side)) = parent
                    && self.nodes[above as usize].value.is_none()
                {
                    let other = self.nodes[above as usize].children[1 - side];
                    self.link(grandparent, other);
                    self.free.push(above);
                }
            }
            [only, NONE] | [NONE, only] => {
                self.link(parent, only);
                self.free.push(at);
            }
            [_, _] => {}
        }
        Some(value)
    }

    /// The value of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: Bits) -> Option<&V> {
        self.covering(prefix).last().filter(|(found, _)| *found == prefix).map(|(_, value)| value)
    }

    /// The longest prefix with a value that covers this one.
    #[must_use]
    pub fn longest_match(&self, prefix: Bits) -> Option<(Bits, &V)> {
        self.covering(prefix).last()
    }

    /// All prefixes with a value that cover this one, the shortest first.
    pub fn covering(&self, prefix: Bits) -> impl Iterator<Item = (Bits, &V)> {
        let step = move |at: u32| self.nodes.get(at as usize).filter(|node| node.prefix.covers(prefix));
        // At the prefix itself there is no bit left to follow.
        let down = move |node: &&Node<V>| {
            if node.prefix.len == prefix.len {
                None
            } else {
                step(node.children[prefix.bit(node.prefix.len)])
            }
        };
        std::iter::successors(step(self.root), down)
            .filter_map(|node| node.value.as_ref().map(|value| (node.prefix, value)))
    }

    /// All prefixes with a value, in order of their bits, a shorter one before those inside it.
    pub fn iter(&self) -> impl Iterator<Item = (Bits, &V)> {
        self.inside(Bits::new(0, 0))
    }

    /// The same for those inside this prefix, itself included.
    pub fn inside(&self, prefix: Bits) -> impl Iterator<Item = (Bits, &V)> {
        let mut top = self.root;
        while let Some(node) = self.nodes.get(top as usize)
            && node.prefix.covers(prefix)
            && node.prefix != prefix
        {
            top = node.children[prefix.bit(node.prefix.len)];
        }
        let mut stack = Vec::new();
        stack.extend(self.nodes.get(top as usize).filter(|node| prefix.covers(node.prefix)));
        std::iter::from_fn(move || {
            loop {
                let node = stack.pop()?;
                stack.extend(node.children.iter().rev().filter_map(|&child| self.nodes.get(child as usize)));
                if let Some(value) = &node.value {
                    return Some((node.prefix, value));
                }
            }
        })
    }

    fn add(&mut self, node: Node<V>) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    fn link(&mut self, parent: Option<(u32, usize)>, to: u32) {
        match parent {
            Some((at, side)) => self.nodes[at as usize].children[side] = to,
            None => self.root = to,
        }
    }
}

impl<V> Default for Trie<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: PartialEq> PartialEq for Trie<V> {
    /// Equal prefixes with equal values, in whatever order they came.
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for Trie<V> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn bits(text: &str) -> Bits {
        Bits::from(text.parse::<ipnet::IpNet>().unwrap())
    }

    #[test]
    fn finds_the_longest_and_all_that_cover() {
        let mut trie = Trie::new();
        for (n, text) in
            ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32"].iter().enumerate()
        {
            assert_eq!(trie.insert(bits(text), n), None);
        }
        let all: Vec<_> = trie.covering(bits("10.1.2.3/32")).map(|(_, &n)| n).collect();
        assert_eq!(all, [0, 1, 2, 3, 4]);
        assert_eq!(trie.longest_match(bits("10.1.9.0/24")), Some((bits("10.1.0.0/16"), &2)));
        assert_eq!(trie.longest_match(bits("11.0.0.0/8")), Some((bits("0.0.0.0/0"), &0)));
        assert_eq!(trie.get(bits("10.1.2.0/25")), None);
        assert_eq!(trie.insert(bits("10.1.0.0/16"), 9), Some(2));
        assert_eq!(trie.get(bits("10.1.0.0/16")), Some(&9));
        let inside: Vec<_> = trie.inside(bits("10.1.0.0/15")).map(|(_, &n)| n).collect();
        assert_eq!(inside, [9, 3, 4]);
    }

    #[test]
    fn an_empty_trie_covers_nothing() {
        let trie = Trie::<u8>::new();
        assert!(trie.is_empty());
        assert_eq!(trie.longest_match(bits("::/0")), None);
        assert_eq!(trie.iter().count(), 0);
    }

    fn prefix() -> impl Strategy<Value = Bits> {
        // Few distinct bits, so that prefixes nest and meet; at both ends of the word.
        (0u128..64, 0u8..=6, any::<bool>()).prop_map(|(value, len, long)| {
            if long { Bits::new(value, 122 + len) } else { Bits::new(value << 122, len) }
        })
    }

    proptest! {
        #[test]
        fn equals_a_naive_map(
            steps in proptest::collection::vec((prefix(), proptest::option::weighted(0.6, 0u16..9)), 0..200),
            asked in proptest::collection::vec(prefix(), 20),
        ) {
            let mut trie = Trie::new();
            let mut model = BTreeMap::new();
            for (prefix, value) in steps {
                match value {
                    Some(value) => prop_assert_eq!(trie.insert(prefix, value), model.insert(prefix, value)),
                    None => prop_assert_eq!(trie.remove(prefix), model.remove(&prefix)),
                }
                prop_assert_eq!(trie.len(), model.len());
            }
            prop_assert!(trie.iter().map(|(p, &v)| (p, v)).eq(model.iter().map(|(&p, &v)| (p, v))));
            prop_assert!(trie.nodes.len() - trie.free.len() <= 2 * model.len());
            for wanted in asked {
                let covering = model.iter().filter(|(p, _)| p.covers(wanted)).map(|(&p, &v)| (p, v));
                let mut covering: Vec<_> = covering.collect();
                covering.sort_by_key(|(p, _)| p.len());
                prop_assert_eq!(trie.get(wanted), model.get(&wanted));
                prop_assert_eq!(trie.longest_match(wanted).map(|(p, &v)| (p, v)), covering.last().copied());
                prop_assert_eq!(trie.covering(wanted).map(|(p, &v)| (p, v)).collect::<Vec<_>>(), covering);
                let inside: Vec<_> =
                    model.iter().filter(|(p, _)| wanted.covers(**p)).map(|(&p, &v)| (p, v)).collect();
                prop_assert_eq!(trie.inside(wanted).map(|(p, &v)| (p, v)).collect::<Vec<_>>(), inside);
            }
        }
    }
}
