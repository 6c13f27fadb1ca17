//! What every receiver has to hear in the end, and how far it is from that: prefix by prefix, with attributes.
//!
//! A prefix counts when what was last heard of it is what is wanted, and no longer counts when something else is heard
//! later. So a route heard twice is no progress, and one that is withdrawn or replaced is wrong again.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use crate::table::Prefix;
use crate::wire::{self, Attributes};

/// Attributes that were told to the judge or heard by a receiver; equal ones have one number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set(u32);

impl Set {
    /// No route.
    pub(crate) const NONE: Self = Self(0);
    /// Whatever it is, it is right.
    pub(crate) const ANY: Self = Self(u32::MAX);
}

/// Number of a prefix.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

impl Slot {
    /// As an index, from 0.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// See the module's page.
#[derive(Default)]
pub(crate) struct Judge {
    slots: HashMap<Prefix, Slot, Quick>,
    prefixes: Vec<Prefix>,
    numbers: HashMap<Attributes, Set, Quick>,
    sets: Vec<Attributes>,
    views: Vec<View>,
    seen: Attributes,
    /// UPDATEs heard by all.
    pub(crate) messages: u64,
}

/// One receiver.
#[derive(Default)]
struct View {
    wanted: Vec<Set>,
    has: Vec<Set>,
    wrong: usize,
}

impl Judge {
    /// A judge of so many receivers, which want nothing yet.
    #[must_use]
    pub(crate) fn new(receivers: usize) -> Self {
        Self { views: (0..receivers).map(|_| View::default()).collect(), ..Self::default() }
    }

    /// The number of these attributes.
    pub(crate) fn set(&mut self, attributes: &Attributes) -> Set {
        if let Some(number) = self.numbers.get(attributes) {
            return *number;
        }
        self.sets.push(attributes.clone());
        let number = Set(u32::try_from(self.sets.len()).expect("few sets"));
        self.numbers.insert(attributes.clone(), number);
        number
    }

    /// The attributes of a number.
    pub(crate) fn attributes(&self, set: Set) -> Option<&Attributes> {
        self.sets.get((set.0 as usize).checked_sub(1)?)
    }

    /// The number of a prefix.
    pub(crate) fn slot(&mut self, prefix: Prefix) -> Slot {
        let next = Slot(u32::try_from(self.prefixes.len()).expect("few prefixes"));
        let slot = *self.slots.entry(prefix).or_insert(next);
        if slot == next {
            self.prefixes.push(prefix);
            for view in &mut self.views {
                view.wanted.push(Set::NONE);
                view.has.push(Set::NONE);
            }
        }
        slot
    }

    /// From now on the receiver must hold this of the prefix.
    pub(crate) fn want(&mut self, receiver: usize, slot: Slot, set: Set) {
        let view = &mut self.views[receiver];
        let was = view.is_wrong(slot);
        view.wanted[slot.index()] = set;
        view.wrong = view.wrong + usize::from(view.is_wrong(slot)) - usize::from(was);
    }

    /// The receiver has heard an UPDATE; `each` is told every prefix and what it has now.
    ///
    /// # Errors
    ///
    /// It is malformed, or about a prefix that nobody sent.
    pub(crate) fn heard(
        &mut self,
        receiver: usize,
        body: &[u8],
        mut each: impl FnMut(Slot, Set, &Attributes),
    ) -> Result<(), String> {
        self.messages += 1;
        let mut seen = std::mem::take(&mut self.seen);
        let fields = wire::read_update(body, &mut seen).ok_or("a malformed UPDATE")?;
        for (of, withdrawn) in [(fields.withdrawn, true), (fields.announced, false)] {
            let mut set = Set::NONE;
            for mut field in of {
                while let Some(prefix) = wire::next_prefix(&mut field) {
                    if !withdrawn && set == Set::NONE {
                        set = self.set(&seen);
                    }
                    let slot =
                        *self.slots.get(&prefix).ok_or_else(|| format!("{prefix:x?} was never sent"))?;
                    self.views[receiver].put(slot, set);
                    each(slot, set, &seen);
                }
                if !field.is_empty() {
                    return Err("a malformed prefix".to_owned());
                }
            }
        }
        self.seen = seen;
        Ok(())
    }

    /// Every receiver holds what it is to hold, and nothing else.
    #[must_use]
    pub(crate) fn satisfied(&self) -> bool {
        self.views.iter().all(|view| view.wrong == 0)
    }

    /// What is wrong, in words: how much, and the first prefix.
    #[must_use]
    pub(crate) fn complaint(&self) -> String {
        let wrong: usize = self.views.iter().map(|view| view.wrong).sum();
        let first = self.views.iter().enumerate().find_map(|(receiver, view)| {
            let slots = (0..self.prefixes.len()).map(|index| Slot(u32::try_from(index).unwrap_or(u32::MAX)));
            let slot = slots.into_iter().find(|slot| view.is_wrong(*slot))?;
            let of = |sets: &[Set]| self.attributes(sets[slot.index()]);
            let prefix = self.prefixes[slot.index()];
            Some(format!(
                "receiver {receiver}, {prefix:x?}: wanted {:?}, heard {:?}",
                of(&view.wanted),
                of(&view.has)
            ))
        });
        format!("{wrong} routes are wrong; {}", first.unwrap_or_default())
    }
}

impl View {
    fn is_wrong(&self, slot: Slot) -> bool {
        let wanted = self.wanted[slot.index()];
        wanted != Set::ANY && wanted != self.has[slot.index()]
    }

    fn put(&mut self, slot: Slot, set: Set) {
        let was = self.is_wrong(slot);
        self.has[slot.index()] = set;
        self.wrong = self.wrong + usize::from(self.is_wrong(slot)) - usize::from(was);
    }
}

/// A hash for what we made ourselves: nobody attacks it.
#[derive(Copy, Clone, Default)]
struct Quick;

impl BuildHasher for Quick {
    type Hasher = QuickHasher;

    fn build_hasher(&self) -> QuickHasher {
        QuickHasher(0)
    }
}

struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u128(&mut self, bits: u128) {
        let folded = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
        self.write_u64(folded);
        self.0 ^= self.0 >> 29;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{self, Family};

    fn hear(judge: &mut Judge, bytes: &[u8]) -> Result<(), String> {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let (one, rest) = bytes.split_at(usize::from(u16::from_be_bytes([bytes[16], bytes[17]])));
            bytes = rest;
            judge.heard(0, &one[wire::HEADER..], |_, _, _| {})?;
        }
        Ok(())
    }

    #[test]
    fn only_the_wanted_route_of_every_prefix_satisfies() {
        let routes = table::build(Family::V4, 100, 65_001, 0);
        let hop = "192.0.2.1".parse().expect("an address");
        let mut judge = Judge::new(1);
        for route in &routes {
            let set = judge.set(&Attributes {
                as_path: route.as_path.clone(),
                communities: route.communities.clone(),
                next_hop: Some(hop),
                ..Attributes::default()
            });
            for prefix in &route.prefixes {
                let slot = judge.slot(*prefix);
                judge.want(0, slot, set);
            }
        }
        let (first, rest) = routes.split_first().expect("a table");
        hear(&mut judge, &wire::updates(rest, hop, None)).expect("known prefixes");
        hear(&mut judge, &wire::updates(rest, hop, None)).expect("known prefixes");
        assert!(!judge.satisfied(), "the same again is no progress");
        let wrong = table::Route { as_path: vec![7], ..first.clone() };
        hear(&mut judge, &wire::updates(&[wrong], hop, None)).expect("known prefixes");
        assert!(!judge.satisfied(), "another path");
        assert!(judge.complaint().contains("are wrong") && judge.complaint().contains("[7]"));
        hear(&mut judge, &wire::updates(&routes[..1], hop, None)).expect("known prefixes");
        assert!(judge.satisfied());
        hear(&mut judge, &wire::withdrawals(Family::V4, &routes[..1])).expect("known prefixes");
        assert!(!judge.satisfied(), "gone again");
        let stranger = table::build(Family::V4, 1, 65_001, 5);
        assert!(hear(&mut judge, &wire::updates(&stranger, hop, None)).is_err());
    }
}
