//! Defined sets: what policies name.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use bgp_wire::Nlri;
use ipnet::IpNet;
use smallvec::SmallVec;

use super::definition::SetName;
use super::pattern::{AsPathPattern, CommunityPattern, ExtCommunityPattern, LargeCommunityPattern};
use crate::rib::trie::{Bits, Trie};

/// All prefixes inside `net` whose length is between `min` and `max`. As text: `10.0.0.0/8`, `10.0.0.0/8 le 24`,
/// `10.0.0.0/8 ge 16`, `10.0.0.0/8 ge 16 le 24`; without a bound the length is that of the net, with `ge` alone up to
/// the longest.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrefixRange {
    net: IpNet,
    min: u8,
    max: u8,
}

/// Why there is no such range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixRangeError {
    /// Not a prefix, or not followed by `ge LENGTH` and `le LENGTH`.
    #[error("not a prefix range: \"{0}\" (expected PREFIX [ge LENGTH] [le LENGTH])")]
    Syntax(String),
    /// The prefix has bits behind its length.
    #[error("{0} has bits set behind its length; write {net}", net = .0.trunc())]
    HostBits(IpNet),
    /// The lengths are no range of lengths inside the prefix.
    #[error("{net}: {}", lengths(net, *min, *max))]
    Lengths {
        /// The prefix.
        net: IpNet,
        /// The least length asked for.
        min: u8,
        /// The greatest length asked for.
        max: u8,
    },
}

fn lengths(net: &IpNet, min: u8, max: u8) -> String {
    let (least, greatest) = (net.prefix_len(), net.max_prefix_len());
    if min > max && max >= least {
        return format!("no length is from {min} to {max}; exchange the two");
    }
    format!(
        "lengths from {min} to {max} are wanted, and what is inside has lengths from {least} to {greatest}"
    )
}

impl PrefixRange {
    /// The prefixes inside `net` of length `min` to `max`.
    ///
    /// # Errors
    /// When `net` has host bits, or the lengths are not in order between that of `net` and the longest.
    pub fn new(net: IpNet, min: u8, max: u8) -> Result<Self, PrefixRangeError> {
        if net != net.trunc() {
            return Err(PrefixRangeError::HostBits(net));
        }
        if min < net.prefix_len() || min > max || max > net.max_prefix_len() {
            return Err(PrefixRangeError::Lengths { net, min, max });
        }
        Ok(Self { net, min, max })
    }

    /// This prefix alone. Host bits are cleared.
    #[must_use]
    pub fn exact(net: IpNet) -> Self {
        Self { net: net.trunc(), min: net.prefix_len(), max: net.prefix_len() }
    }

    /// This prefix and everything inside it. Host bits are cleared.
    #[must_use]
    pub fn or_longer(net: IpNet) -> Self {
        Self { net: net.trunc(), min: net.prefix_len(), max: net.max_prefix_len() }
    }

    /// The prefix.
    #[must_use]
    pub const fn net(&self) -> IpNet {
        self.net
    }

    /// The least and the greatest length.
    #[must_use]
    pub const fn lengths(&self) -> (u8, u8) {
        (self.min, self.max)
    }

    /// Whether the range holds this prefix.
    #[must_use]
    pub fn contains(&self, net: IpNet) -> bool {
        self.net.contains(&net) && (self.min..=self.max).contains(&net.prefix_len())
    }
}

impl fmt::Display for PrefixRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.net)?;
        if self.min != self.net.prefix_len() {
            write!(f, " ge {}", self.min)?;
        }
        // `ge` alone reaches up to the longest prefix.
        if self.max != if self.min == self.net.prefix_len() { self.min } else { self.net.max_prefix_len() } {
            write!(f, " le {}", self.max)?;
        }
        Ok(())
    }
}

impl FromStr for PrefixRange {
    type Err = PrefixRangeError;

    fn from_str(text: &str) -> Result<Self, PrefixRangeError> {
        let syntax = || PrefixRangeError::Syntax(text.to_owned());
        let mut words = text.split_whitespace();
        let net: IpNet = words.next().and_then(|word| word.parse().ok()).ok_or_else(syntax)?;
        let (mut min, mut max) = (None, None);
        while let Some(word) = words.next() {
            let bound = match word {
                "ge" => &mut min,
                "le" => &mut max,
                _ => return Err(syntax()),
            };
            let length = words.next().and_then(|word| word.parse().ok()).ok_or_else(syntax)?;
            if bound.replace(length).is_some() {
                return Err(syntax());
            }
        }
        let open_end = if min.is_some() { net.max_prefix_len() } else { net.prefix_len() };
        Self::new(net, min.unwrap_or(net.prefix_len()), max.unwrap_or(open_end))
    }
}

/// A set of prefixes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixSet {
    v4: Trie<Lengths>,
    v6: Trie<Lengths>,
}

/// Ranges of lengths wanted below one prefix, in order.
type Lengths = SmallVec<[(u8, u8); 1]>;

impl PrefixSet {
    /// The set of all prefixes in any of `ranges`.
    #[must_use]
    pub fn new(ranges: impl IntoIterator<Item = PrefixRange>) -> Self {
        let mut set = Self::default();
        // In order and without duplicates, so that equal sets compare equal however they were written.
        let ranges: BTreeSet<_> = ranges.into_iter().collect();
        for range in ranges {
            let trie = match range.net {
                IpNet::V4(_) => &mut set.v4,
                IpNet::V6(_) => &mut set.v6,
            };
            let at = Bits::from(range.net);
            let mut lengths = trie.remove(at).unwrap_or_default();
            lengths.push((range.min, range.max));
            trie.insert(at, lengths);
        }
        set
    }

    /// Whether the set holds this prefix, or the prefix that this is in some VPN. What is no prefix is in no set.
    #[must_use]
    pub fn contains(&self, nlri: &Nlri) -> bool {
        let Some(net) = nlri.prefix() else { return false };
        let trie = match net {
            IpNet::V4(_) => &self.v4,
            IpNet::V6(_) => &self.v6,
        };
        let wanted = Bits::from(net);
        let fits = |&(min, max): &(u8, u8)| (min..=max).contains(&wanted.len());
        trie.covering(wanted).any(|(_, lengths)| lengths.iter().any(fits))
    }
}

impl PrefixSet {
    /// How many prefixes there are with ranges of lengths.
    pub(super) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Tells of each range: whether it is of IPv4, the prefix, and the least and the greatest length.
    pub(super) fn each_range(&self, mut tell: impl FnMut(bool, Bits, (u8, u8))) {
        for (is_ipv4, trie) in [(true, &self.v4), (false, &self.v6)] {
            for (prefix, lengths) in trie.iter() {
                lengths.iter().for_each(|lengths| tell(is_ipv4, prefix, *lengths));
            }
        }
    }
}

/// A set of neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeighborSet(BTreeSet<IpAddr>);

impl NeighborSet {
    /// The set of these addresses.
    #[must_use]
    pub fn new(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self(addresses.into_iter().map(|address| address.to_canonical()).collect())
    }

    /// Whether the neighbour with this address is in the set.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }
}

/// Numbers, some by pattern: a set of communities of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberSet {
    /// In order.
    exact: Box<[u128]>,
    /// Value and mask.
    patterns: Box<[(u128, u128)]>,
}

impl NumberSet {
    pub(super) fn new(members: impl IntoIterator<Item = (u128, u128)>) -> Self {
        let members: BTreeSet<_> = members.into_iter().collect();
        let (exact, patterns): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|(_, mask)| *mask == u128::MAX);
        Self { exact: exact.into_iter().map(|(value, _)| value).collect(), patterns: patterns.into() }
    }

    /// Whether a member stands for this.
    pub(crate) fn contains(&self, number: u128) -> bool {
        let exact = match &*self.exact {
            few if few.len() <= 8 => few.contains(&number),
            many => many.binary_search(&number).is_ok(),
        };
        exact || self.patterns.iter().any(|(value, mask)| number & mask == *value)
    }

    /// The one number that the set is of, where it is of one.
    pub(super) fn only(&self) -> Option<u128> {
        match (&*self.exact, &*self.patterns) {
            ([only], []) => Some(*only),
            _ => None,
        }
    }

    /// Whether each member stands for one of these.
    pub(crate) fn is_covered_by(&self, numbers: impl Iterator<Item = u128> + Clone) -> bool {
        // Each looks at all of them: they come in no order.
        self.exact.iter().all(|value| numbers.clone().any(|number| number == *value))
            && self.patterns.iter().all(|(value, mask)| numbers.clone().any(|number| number & mask == *value))
    }
}

/// The kinds of defined sets. Each has names of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SetKind {
    /// Of prefixes.
    Prefixes,
    /// Of neighbours.
    Neighbors,
    /// Of communities.
    Communities,
    /// Of large communities.
    LargeCommunities,
    /// Of extended communities.
    ExtCommunities,
    /// Of AS paths.
    AsPaths,
}

impl fmt::Display for SetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefixes => "prefix set",
            Self::Neighbors => "neighbor set",
            Self::Communities => "community set",
            Self::LargeCommunities => "large community set",
            Self::ExtCommunities => "extended community set",
            Self::AsPaths => "AS path set",
        })
    }
}

/// A defined set as declared: its kind and its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetDef {
    /// All prefixes in any of these ranges.
    Prefixes(Vec<PrefixRange>),
    /// The neighbours with these addresses.
    Neighbors(Vec<IpAddr>),
    /// What any of these stands for.
    Communities(Vec<CommunityPattern>),
    /// What any of these stands for.
    LargeCommunities(Vec<LargeCommunityPattern>),
    /// What any of these stands for.
    ExtCommunities(Vec<ExtCommunityPattern>),
    /// What any of these matches.
    AsPaths(Vec<AsPathPattern>),
}

impl SetDef {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> SetKind {
        match self {
            Self::Prefixes(_) => SetKind::Prefixes,
            Self::Neighbors(_) => SetKind::Neighbors,
            Self::Communities(_) => SetKind::Communities,
            Self::LargeCommunities(_) => SetKind::LargeCommunities,
            Self::ExtCommunities(_) => SetKind::ExtCommunities,
            Self::AsPaths(_) => SetKind::AsPaths,
        }
    }
}

/// A defined set, ready to be asked. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Set {
    Prefixes(Arc<PrefixSet>),
    Neighbors(Arc<NeighborSet>),
    Numbers(Arc<NumberSet>),
    AsPaths(Arc<[AsPathPattern]>),
}

impl From<&SetDef> for Set {
    fn from(def: &SetDef) -> Self {
        match def {
            SetDef::Prefixes(ranges) => Self::Prefixes(Arc::new(PrefixSet::new(ranges.iter().copied()))),
            SetDef::Neighbors(all) => Self::Neighbors(Arc::new(NeighborSet::new(all.iter().copied()))),
            SetDef::Communities(all) => Self::numbers(all.iter().map(CommunityPattern::bits)),
            SetDef::LargeCommunities(all) => Self::numbers(all.iter().map(LargeCommunityPattern::bits)),
            SetDef::ExtCommunities(all) => Self::numbers(all.iter().map(ExtCommunityPattern::bits)),
            SetDef::AsPaths(all) => {
                let mut all = all.clone();
                all.sort_unstable();
                all.dedup();
                Self::AsPaths(all.into())
            }
        }
    }
}

impl Set {
    fn numbers(members: impl Iterator<Item = (u128, u128)>) -> Self {
        Self::Numbers(Arc::new(NumberSet::new(members)))
    }
}

/// The defined sets of one speaker, by kind and name.
#[derive(Clone, Debug, Default)]
pub struct Sets(BTreeMap<(SetKind, SetName), Set>);

impl Sets {
    /// Defines a set. True if it is another one than before.
    pub fn put(&mut self, name: SetName, def: &SetDef) -> bool {
        let set = Set::from(def);
        match self.0.entry((def.kind(), name)) {
            Entry::Occupied(known) if *known.get() == set => false,
            Entry::Occupied(mut known) => {
                known.insert(set);
                true
            }
            Entry::Vacant(new) => {
                new.insert(set);
                true
            }
        }
    }

    /// Removes a set; says whether there was one.
    pub fn delete(&mut self, kind: SetKind, name: &SetName) -> bool {
        self.0.remove(&(kind, name.clone())).is_some()
    }

    /// The prefix set of this name.
    #[must_use]
    pub fn prefixes(&self, name: &SetName) -> Option<&Arc<PrefixSet>> {
        match self.find(SetKind::Prefixes, name)? {
            Set::Prefixes(set) => Some(set),
            Set::Neighbors(_) | Set::Numbers(_) | Set::AsPaths(_) => None,
        }
    }

    /// The neighbour set of this name.
    #[must_use]
    pub fn neighbors(&self, name: &SetName) -> Option<&Arc<NeighborSet>> {
        match self.find(SetKind::Neighbors, name)? {
            Set::Neighbors(set) => Some(set),
            Set::Prefixes(_) | Set::Numbers(_) | Set::AsPaths(_) => None,
        }
    }

    /// The set of communities of a kind with this name.
    pub(super) fn numbers(&self, kind: SetKind, name: &SetName) -> Option<&Arc<NumberSet>> {
        match self.find(kind, name)? {
            Set::Numbers(set) => Some(set),
            Set::Prefixes(_) | Set::Neighbors(_) | Set::AsPaths(_) => None,
        }
    }

    /// The set of AS paths of this name.
    pub(super) fn as_paths(&self, name: &SetName) -> Option<&Arc<[AsPathPattern]>> {
        match self.find(SetKind::AsPaths, name)? {
            Set::AsPaths(set) => Some(set),
            Set::Prefixes(_) | Set::Neighbors(_) | Set::Numbers(_) => None,
        }
    }

    fn find(&self, kind: SetKind, name: &SetName) -> Option<&Set> {
        self.0.get(&(kind, name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(text: &str) -> PrefixRange {
        text.parse().unwrap()
    }

    #[test]
    fn text_form_is_read_back() {
        for text in [
            "10.0.0.0/8",
            "10.0.0.0/8 le 24",
            "10.0.0.0/8 ge 16",
            "10.0.0.0/8 ge 16 le 24",
            "2001:db8::/32 le 128",
        ] {
            assert_eq!(range(text).to_string(), text);
        }
        assert_eq!(range("10.0.0.0/8 ge 9").lengths(), (9, 32));
        assert_eq!(range("10.0.0.0/8 le 24 ge 16"), range("10.0.0.0/8 ge 16 le 24"));
        assert_eq!(range("10.0.0.0/8 ge 8"), PrefixRange::or_longer("10.9.9.9/8".parse().unwrap()));
    }

    #[test]
    fn what_is_no_range_is_refused_with_the_reason() {
        for text in
            ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/8 ge", "10.0.0.0/8 xx 9", "10.0.0.0/8 ge 9 ge 10"]
        {
            assert_eq!(text.parse::<PrefixRange>(), Err(PrefixRangeError::Syntax(text.to_owned())), "{text}");
        }
        assert!(matches!("10.0.0.1/8".parse::<PrefixRange>(), Err(PrefixRangeError::HostBits(_))));
        for (text, why) in [
            ("10.0.0.1/8", "10.0.0.1/8 has bits set behind its length; write 10.0.0.0/8"),
            (
                "10.0.0.0/8 le 7",
                "10.0.0.0/8: lengths from 8 to 7 are wanted, and what is inside has lengths from 8 to 32",
            ),
            ("10.0.0.0/8 ge 24 le 16", "10.0.0.0/8: no length is from 24 to 16; exchange the two"),
            (
                "10.0.0.0/8 ge 7",
                "10.0.0.0/8: lengths from 7 to 32 are wanted, and what is inside has lengths from 8 to 32",
            ),
            (
                "10.0.0.0/8 le 33",
                "10.0.0.0/8: lengths from 8 to 33 are wanted, and what is inside has lengths from 8 to 32",
            ),
        ] {
            assert_eq!(text.parse::<PrefixRange>().unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn families_do_not_mix() {
        let set = PrefixSet::new([range("::/0 le 128")]);
        assert!(set.contains(&"2001:db8::/32".parse().unwrap()));
        assert!(!set.contains(&"32.1.13.184/32".parse().unwrap()));
    }

    #[test]
    fn equal_sets_are_equal_however_they_are_written() {
        let (a, b) = (range("10.0.0.0/8 le 24"), range("10.0.0.0/8 ge 30"));
        assert_eq!(PrefixSet::new([a, b]), PrefixSet::new([b, a, b]));
        assert_ne!(PrefixSet::new([a, b]), PrefixSet::new([a]));
    }

    #[test]
    fn all_members_are_found_in_whatever_order_the_numbers_come() {
        let set = |texts: &[&str]| {
            let patterns = texts.iter().map(|text| text.parse::<CommunityPattern>().unwrap().bits());
            NumberSet::new(patterns.collect::<Vec<_>>())
        };
        let number = |high: u128, low: u128| high << 16 | low;
        let both = set(&["65000:*", "65001:*", "1:1"]);
        let carried = [number(1, 1), number(65001, 1), number(65000, 1)];
        assert!(both.is_covered_by(carried.into_iter()) && both.is_covered_by(carried.into_iter().rev()));
        assert!(set(&["*:1", "65000:*"]).is_covered_by([number(65000, 1)].into_iter()), "one may do for two");
        assert!(
            !both.is_covered_by(carried.into_iter().skip(1))
                && !both.is_covered_by(carried.into_iter().take(2))
        );
        assert!(set(&[]).is_covered_by(std::iter::empty()));
    }

    #[test]
    fn putting_the_same_set_again_changes_nothing() {
        let mut sets = Sets::default();
        let set = |ranges: &[&str]| SetDef::Prefixes(ranges.iter().map(|text| range(text)).collect());
        assert!(sets.put("a".into(), &set(&["10.0.0.0/8", "11.0.0.0/8"])));
        assert!(!sets.put("a".into(), &set(&["11.0.0.0/8", "10.0.0.0/8"])));
        assert!(sets.put("a".into(), &set(&[])));
        // Names are those of a kind.
        let mapped = SetDef::Neighbors(vec!["::ffff:192.0.2.1".parse().unwrap()]);
        assert!(sets.put("a".into(), &mapped));
        assert!(sets.neighbors(&"a".into()).unwrap().contains("192.0.2.1".parse().unwrap()));
        let delete = |sets: &mut Sets| sets.delete(SetKind::Prefixes, &"a".into());
        assert!(delete(&mut sets) && !delete(&mut sets));
        assert!(sets.prefixes(&"a".into()).is_none() && sets.neighbors(&"a".into()).is_some());
    }

    fn net() -> impl Strategy<Value = IpNet> {
        (0u32..16, 0u8..=6).prop_map(|(bits, len)| {
            IpNet::new(std::net::Ipv4Addr::from(bits << 28).into(), len).unwrap().trunc()
        })
    }

    proptest! {
        #[test]
        fn a_set_holds_what_one_of_its_ranges_holds(
            ranges in proptest::collection::vec((net(), 0u8..4, 0u8..4), 0..12),
            asked in proptest::collection::vec(net(), 30),
        ) {
            let ranges: Vec<_> = ranges
                .into_iter()
                .map(|(net, a, b)| PrefixRange::new(net, net.prefix_len() + a, net.prefix_len() + a + b).unwrap())
                .collect();
            let set = PrefixSet::new(ranges.iter().copied());
            for net in asked {
                prop_assert_eq!(set.contains(&net.into()), ranges.iter().any(|range| range.contains(net)), "{}", net);
            }
        }
    }
}
