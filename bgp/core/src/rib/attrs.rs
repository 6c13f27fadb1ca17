//! Attribute sets, each stored once.
//!
//! A set is the canonical bytes of `bgp-wire` (everything but the next hop and the prefixes), the facts that the
//! decision needs, the next hop, and the label in a family that has them: so a path needs no room for a label, and sets
//! that differ in it alone share their bytes. Equal sets have equal numbers, so equality is a comparison of integers. Sets are
//! counted: what holds an [`AttrId`] beyond the call that gave it must [`AttrStore::retain`] it, and a set that nobody
//! holds is freed at once.
//!
//! A cache from raw bytes, as they stood in a message, to numbers spares decoding what was just decoded: neighbours
//! repeat themselves. It is bounded, compares whole bytes, and keeps no set alive.
//!
//! *Never:* looks at a prefix, or changes a set that exists.

use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::sync::Arc;

use bgp_wire::attr::{AttrFacts, Canonical, DecodeCtx};
use bgp_wire::update::AttrKey;
use bgp_wire::{AttrFault, Label, NextHop, UpdateView, WireError};
use foldhash::quality::FixedState;

use super::index::Index;
use super::nexthop::{NextHopId, NextHopSet, NextHops, Share};
use super::pages::Pages;

/// The number of an attribute set in the [`AttrStore`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttrId(NonZeroU32);

impl AttrId {
    pub(super) const FIRST: Self = Self(NonZeroU32::MIN);

    /// The number as an index; dense, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The number; never 0, which is free to mean "none".
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    fn from_index(ix: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(ix))
    }
}

/// One attribute set. Cheap to clone: the bytes are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrSet {
    bytes: Arc<[u8]>,
    facts: AttrFacts,
    next_hop: Option<NextHop>,
    label: Option<Label>,
}

impl AttrSet {
    /// A set outside any store. `canonical` must be in canonical form, and `facts` its facts.
    #[must_use]
    pub fn new(canonical: &[u8], next_hop: Option<NextHop>, facts: AttrFacts) -> Self {
        Self { bytes: canonical.into(), facts, next_hop, label: None }
    }

    /// The same with this label.
    #[must_use]
    pub fn with_label(self, label: Option<Label>) -> Self {
        Self { label, ..self }
    }

    /// The octets of the attributes in canonical form.
    #[must_use]
    pub fn canonical(&self) -> &[u8] {
        &self.bytes
    }

    /// The attributes, to be read.
    #[must_use]
    pub fn view(&self) -> Canonical<'_> {
        Canonical(&self.bytes)
    }

    /// What the decision needs to know of them.
    #[must_use]
    pub const fn facts(&self) -> &AttrFacts {
        &self.facts
    }

    /// The next hop; `None` where this speaker itself is the next hop.
    #[must_use]
    pub const fn next_hop(&self) -> Option<NextHop> {
        self.next_hop
    }

    /// The label by which the next hop knows the prefix, in a family that has labels.
    #[must_use]
    pub const fn label(&self) -> Option<Label> {
        self.label
    }
}

/// All attribute sets of one speaker.
#[derive(Debug)]
pub struct AttrStore {
    slots: Pages<Slot, 256>,
    /// The first free slot: its number plus one, or 0.
    free: u32,
    live: usize,
    index: Index,
    hasher: FixedState,
    recent: RawCache,
    next_hops: NextHops,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    set: Option<AttrSet>,
    hash: u64,
    hop: NextHopId,
    /// Holders; in a free slot the next free one.
    refs: u32,
    /// Counts the sets that have lived here, so that the cache notices that its set is gone.
    generation: u32,
}

impl AttrStore {
    /// An empty store. `seed` must differ from process to process: neighbours choose the bytes that are hashed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            slots: Pages::new(),
            free: 0,
            live: 0,
            index: Index::new(),
            hasher: FixedState::with_seed(seed),
            recent: RawCache::new(),
            next_hops: NextHops::new(),
        }
    }

    /// The set of this number.
    ///
    /// # Panics
    /// When nobody holds the number any more.
    #[inline]
    #[must_use]
    pub fn set(&self, id: AttrId) -> &AttrSet {
        self.slots[id.index()].set.as_ref().expect("whoever names an attribute set holds it")
    }

    /// The same, or `None` when nobody holds the number any more and no other set has got it.
    #[must_use]
    pub fn try_set(&self, id: AttrId) -> Option<&AttrSet> {
        self.slots.get(id.index())?.set.as_ref()
    }

    /// How many sets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// What is known about next hops.
    #[must_use]
    pub fn next_hops(&self) -> &NextHops {
        &self.next_hops
    }

    /// What is known about next hops, to change it.
    pub fn next_hops_mut(&mut self) -> &mut NextHops {
        &mut self.next_hops
    }

    /// The number of a set in canonical form, with one reference for the caller. `facts` is asked for only if the set
    /// is new.
    pub fn intern(
        &mut self,
        canonical: &[u8],
        next_hop: Option<NextHop>,
        facts: impl FnOnce() -> AttrFacts,
    ) -> AttrId {
        self.intern_labelled(canonical, next_hop, None, facts)
    }

    /// The same for a set with a label.
    pub fn intern_labelled(
        &mut self,
        canonical: &[u8],
        next_hop: Option<NextHop>,
        label: Option<Label>,
        facts: impl FnOnce() -> AttrFacts,
    ) -> AttrId {
        self.intern_parts(canonical, next_hop, label, || (canonical.into(), facts()))
    }

    /// The number of the same set with this label, with one reference for the caller.
    pub fn relabel(&mut self, id: AttrId, label: Option<Label>) -> AttrId {
        let AttrSet { bytes, facts, next_hop, .. } = self.set(id).clone();
        self.intern_parts(&Arc::clone(&bytes), next_hop, label, || (bytes, facts))
    }

    fn intern_parts(
        &mut self,
        canonical: &[u8],
        next_hop: Option<NextHop>,
        label: Option<Label>,
        parts: impl FnOnce() -> (Arc<[u8]>, AttrFacts),
    ) -> AttrId {
        let hash = match label {
            None => self.hasher.hash_one((canonical, next_hop)),
            Some(label) => self.hasher.hash_one((canonical, next_hop, label)),
        };
        let slots = &self.slots;
        let found = self.index.find(hash, |at| {
            let slot = &slots[at as usize];
            let same =
                |set: &AttrSet| *set.bytes == *canonical && set.next_hop == next_hop && set.label == label;
            slot.hash == hash && slot.set.as_ref().is_some_and(same)
        });
        if let Some(at) = found {
            self.slots[at as usize].refs += 1;
            return AttrId::from_index(at);
        }
        let (bytes, facts) = parts();
        let set = AttrSet { bytes, facts, next_hop, label };
        let hop = self.next_hops.intern(next_hop);
        let at = if let Some(at) = self.free.checked_sub(1) {
            self.free = self.slots[at as usize].refs;
            at
        } else {
            self.slots.push(Slot::default()) as u32
        };
        let slot = &mut self.slots[at as usize];
        slot.set = Some(set);
        slot.hash = hash;
        slot.hop = hop;
        slot.refs = 1;
        self.live += 1;
        let slots = &self.slots;
        // A set that finds no place in the index is merely not shared: every number works without it.
        let _ = self.index.insert(hash, at, |at| slots[at as usize].hash);
        AttrId::from_index(at)
    }

    /// The attribute sets of an UPDATE, with one reference each for the caller. The same octets, decoded without a
    /// fault lately, are not decoded again.
    ///
    /// # Errors
    /// A fault that ends the session.
    pub fn from_update(&mut self, update: &UpdateView<'_>) -> Result<UpdateAttrs, WireError> {
        let key = update.attr_key();
        let hash = self.hasher.hash_one(key);
        if let Some(found) = self.recent.find(hash, &key)
            && found
                .into_iter()
                .flatten()
                .all(|(id, generation)| self.slots[id.index()].generation == generation)
        {
            let [classic, multiprotocol] = found.map(|known| known.map(|(id, _)| id));
            for id in [classic, multiprotocol].into_iter().flatten() {
                self.retain(id, 1);
            }
            return Ok(UpdateAttrs { classic, multiprotocol, ..UpdateAttrs::default() });
        }
        let decoded = update.decode()?;
        let mut sets = UpdateAttrs {
            treat_as_withdraw: decoded.treat_as_withdraw,
            discarded: decoded.discarded,
            ..UpdateAttrs::default()
        };
        if sets.treat_as_withdraw.is_some() {
            return Ok(sets);
        }
        if update.decode_ctx().classic {
            sets.classic = Some(self.intern(&decoded.canonical, decoded.next_hop, || decoded.facts));
        }
        if let Some(reach) = update.mp_reach().filter(|_| update.decode_ctx().multiprotocol) {
            sets.multiprotocol =
                Some(self.intern(&decoded.canonical, Some(reach.next_hop), || decoded.facts));
        }
        if sets.discarded.is_empty() {
            let found = [sets.classic, sets.multiprotocol];
            let found = found.map(|id| id.map(|id| (id, self.slots[id.index()].generation)));
            self.recent.put(hash, &key, found, self.live);
        }
        Ok(sets)
    }

    /// Adds `n` references.
    #[inline]
    pub fn retain(&mut self, id: AttrId, n: u32) {
        self.slots[id.index()].refs += n;
    }

    /// Gives back `n` references; the last one frees the set.
    #[inline]
    pub fn release(&mut self, id: AttrId, n: u32) {
        let slot = &mut self.slots[id.index()];
        debug_assert!(slot.set.is_some() && slot.refs >= n, "released more often than retained");
        slot.refs -= n;
        if slot.refs == 0 {
            self.free(id);
        }
    }

    /// The set of the next hop of this attribute set alone.
    pub fn next_hop_set(&mut self, id: AttrId) -> NextHopSet {
        self.next_hops.alone(self.slots[id.index()].hop)
    }

    /// The set of the next hops of these attribute sets, which are different ones, in the shares that they say.
    pub(super) fn next_hop_set_of(&mut self, ids: &[AttrId]) -> NextHopSet {
        let Self { slots, next_hops, .. } = self;
        next_hops.set(ids.iter().map(|id| {
            let slot = &slots[id.index()];
            let share = slot.set.as_ref().map_or(Share::UNKNOWN, |set| Share::of(set.view()));
            (slot.hop, share)
        }))
    }

    /// The number of the next hop.
    #[inline]
    pub(super) fn hop(&self, id: AttrId) -> NextHopId {
        self.slots[id.index()].hop
    }

    /// Whether packets go the same way, in the same share.
    pub(super) fn leads_the_same_way(&self, one: AttrId, other: AttrId) -> bool {
        self.hop(one) == self.hop(other)
            && Share::of(self.set(one).view()) == Share::of(self.set(other).view())
    }

    /// Whether the AS paths are the same.
    pub(super) fn has_same_as_path(&self, one: AttrId, other: AttrId) -> bool {
        one == other || self.set(one).view().as_path() == self.set(other).view().as_path()
    }

    /// Whether what stands in the place of the next hop changed after this generation of [`NextHops`].
    #[inline]
    pub(super) fn resolved_after(&self, id: AttrId, generation: u64) -> bool {
        self.next_hops.resolved_after(self.hop(id), generation)
    }

    /// Cost of reaching the next hop.
    #[inline]
    pub(super) fn cost(&self, id: AttrId) -> u32 {
        self.next_hops.cost(self.slots[id.index()].hop)
    }

    /// Whether the cost of reaching the next hop changed after this generation of [`NextHops`].
    #[inline]
    pub(super) fn cost_changed_after(&self, id: AttrId, generation: u64) -> bool {
        self.next_hops.changed_after(self.slots[id.index()].hop, generation)
    }

    #[cold]
    fn free(&mut self, id: AttrId) {
        let slot = &mut self.slots[id.index()];
        let (hash, hop) = (slot.hash, slot.hop);
        slot.set = None;
        slot.generation = slot.generation.wrapping_add(1);
        slot.refs = self.free;
        self.free = id.get();
        self.live -= 1;
        self.next_hops.release(hop);
        self.index.remove(hash, id.get() - 1);
    }
}

/// The attribute sets of one UPDATE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateAttrs {
    /// Of the prefixes in the UPDATE's own field; `None` if there are none.
    pub classic: Option<AttrId>,
    /// Of the prefixes in MP_REACH_NLRI; `None` if there are none.
    pub multiprotocol: Option<AttrId>,
    /// Why everything that the UPDATE announces counts as withdrawn; there are no sets then.
    pub treat_as_withdraw: Option<AttrFault>,
    /// Attributes that were dropped for a fault.
    pub discarded: Vec<AttrFault>,
}

/// A bounded map from the octets of an UPDATE to its attribute sets: one place for each hash, the latest wins.
#[derive(Debug)]
struct RawCache {
    /// A power of two.
    places: Vec<Option<RawEntry>>,
}

/// Sets with the generations of their slots, as in [`UpdateAttrs`].
type Known = [Option<(AttrId, u32)>; 2];

#[derive(Debug)]
struct RawEntry {
    hash: u64,
    ctx: DecodeCtx,
    octets: Box<[u8]>,
    known: Known,
}

impl RawCache {
    const SMALLEST: usize = 64;
    const LARGEST: usize = 16_384;

    const fn new() -> Self {
        Self { places: Vec::new() }
    }

    fn find(&self, hash: u64, key: &AttrKey<'_>) -> Option<Known> {
        let at = hash as usize & self.places.len().checked_sub(1)?;
        let entry = self.places[at].as_ref()?;
        (entry.hash == hash && entry.ctx == key.ctx() && key.is(&entry.octets)).then_some(entry.known)
    }

    /// `sets` is how many attribute sets there are: the cache grows with them up to its bound.
    fn put(&mut self, hash: u64, key: &AttrKey<'_>, known: Known, sets: usize) {
        if self.places.len() < sets.clamp(Self::SMALLEST, Self::LARGEST) {
            let larger = (self.places.len() * 2).max(Self::SMALLEST);
            let old = std::mem::take(&mut self.places);
            self.places.resize_with(larger, || None);
            for entry in old.into_iter().flatten() {
                let at = entry.hash as usize & (larger - 1);
                self.places[at] = Some(entry);
            }
        }
        let at = hash as usize & (self.places.len() - 1);
        let octets = key.pieces().concat().into();
        self.places[at] = Some(RawEntry { hash, ctx: key.ctx(), octets, known });
    }
}

#[cfg(test)]
mod tests;
