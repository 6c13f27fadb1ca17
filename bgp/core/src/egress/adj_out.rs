//! Adj-RIB-Out: what an update group has told its members, one entry for each destination.
//!
//! An entry is the Loc-RIB attribute set and the source that the announcement was made from, eight octets; what was
//! really sent follows from it by export. Entries are indexed by destination, so there is no second index.
//!
//! The caller keeps a reference on every attribute set that stands here, so that its number cannot come to mean
//! another set; entries only move numbers.

use crate::peer_key::PeerIx;
use crate::policy::Learned;
use crate::rib::{AttrId, AttrStore, DestId, Pages};

/// What was told of one destination.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The best path's attributes at that time, after import policy.
    pub(crate) attr: AttrId,
    /// Where the path came from.
    pub(crate) origin: Origin,
}

/// Where a path came from, as far as export cares; packed into four octets.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub(crate) struct Origin(u32);

const PEER_BITS: u32 = 30;

impl Origin {
    /// Originated here.
    pub(crate) const LOCAL: Self = Self(0);

    /// Learnt from a neighbour; `external` if on an external session.
    pub(crate) const fn from_peer(peer: PeerIx, external: bool) -> Self {
        Self((if external { 1 } else { 2 }) << PEER_BITS | (peer.0 & ((1 << PEER_BITS) - 1)))
    }

    /// The kind of session, for the rules and for policy.
    pub(crate) const fn learned(self) -> Learned {
        match self.0 >> PEER_BITS {
            0 => Learned::Local,
            1 => Learned::External,
            _ => Learned::Internal,
        }
    }

    /// The neighbour.
    pub(crate) const fn peer(self) -> Option<PeerIx> {
        if self.0 >> PEER_BITS == 0 { None } else { Some(PeerIx(self.0 & ((1 << PEER_BITS) - 1))) }
    }
}

impl std::fmt::Debug for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.peer() {
            None => f.write_str("local"),
            Some(peer) => write!(f, "{:?} {}", self.learned(), peer.0),
        }
    }
}

#[derive(Copy, Clone, Default)]
struct Entry {
    /// Absent: nothing was told, or it was withdrawn.
    attr: Option<AttrId>,
    origin: Origin,
}

/// What one group has told its members.
#[derive(Default)]
pub(crate) struct AdjOut {
    entries: Pages<Entry, 1024>,
    announced: u64,
    /// Announced entries by the neighbour that the path came from, who is the one member not told.
    by_peer: Vec<u32>,
}

impl AdjOut {
    /// Nothing told yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What was told of `dest`.
    #[inline]
    pub(crate) fn told(&self, dest: DestId) -> Option<Told> {
        let entry = self.entries.get(dest.index())?;
        entry.attr.map(|attr| Told { attr, origin: entry.origin })
    }

    /// Notes what is told of `dest` from now on.
    #[inline]
    pub(crate) fn set(&mut self, dest: DestId, told: Option<Told>) {
        let at = dest.index();
        if at >= self.entries.len() {
            if told.is_none() {
                return;
            }
            self.entries.extend_to(at);
        }
        let entry = &mut self.entries[at];
        let before = *entry;
        *entry = match told {
            Some(told) => Entry { attr: Some(told.attr), origin: told.origin },
            None => Entry::default(),
        };
        if before.attr.is_some() {
            self.announced -= 1;
            if let Some(peer) = before.origin.peer() {
                self.by_peer[peer.index()] -= 1;
            }
        }
        if let Some(told) = told {
            self.announced += 1;
            if let Some(peer) = told.origin.peer() {
                if peer.index() >= self.by_peer.len() {
                    self.by_peer.resize(peer.index() + 1, 0);
                }
                self.by_peer[peer.index()] += 1;
            }
        }
    }

    /// How many destinations `member` has been told of.
    pub(crate) fn announced_to(&self, member: PeerIx) -> u64 {
        self.announced - u64::from(self.by_peer.get(member.index()).copied().unwrap_or(0))
    }

    /// Whether nothing is announced.
    pub(crate) fn is_empty(&self) -> bool {
        self.announced == 0
    }

    /// Gives back the references of up to `budget` destinations, from `next` on, once nobody will ask again. True when
    /// there are none left.
    pub(crate) fn release_step(&self, next: &mut usize, budget: usize, attrs: &mut AttrStore) -> bool {
        let end = self.entries.len().min(*next + budget);
        for at in *next..end {
            if let Some(told) = self.told(DestId::from_index(at)) {
                attrs.release(told.attr, 1);
            }
        }
        *next = end;
        end == self.entries.len()
    }
}

impl std::fmt::Debug for AdjOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdjOut").field("announced", &self.announced).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bgp_wire::attr::AttrFacts;

    #[test]
    fn an_origin_keeps_its_peer_and_kind() {
        assert_eq!((Origin::LOCAL.learned(), Origin::LOCAL.peer()), (Learned::Local, None));
        let ebgp = Origin::from_peer(PeerIx(7), true);
        assert_eq!((ebgp.learned(), ebgp.peer()), (Learned::External, Some(PeerIx(7))));
        let ibgp = Origin::from_peer(PeerIx(0), false);
        assert_eq!((ibgp.learned(), ibgp.peer()), (Learned::Internal, Some(PeerIx(0))));
    }

    #[test]
    fn counts_leave_out_what_came_from_the_member() {
        let mut out = AdjOut::new();
        let attr = AttrStore::new(0).intern(&[], None, AttrFacts::default);
        let dest = |ix| DestId::from_index(ix);
        let from = |peer| Some(Told { attr, origin: Origin::from_peer(PeerIx(peer), true) });
        out.set(dest(3), from(1));
        out.set(dest(2000), from(2));
        out.set(dest(4), Some(Told { attr, origin: Origin::LOCAL }));
        assert_eq!([0, 1, 2].map(|peer| out.announced_to(PeerIx(peer))), [3, 2, 2]);
        out.set(dest(2000), from(1));
        out.set(dest(4), None);
        out.set(dest(9999), None);
        assert_eq!([0, 1, 2].map(|peer| out.announced_to(PeerIx(peer))), [2, 0, 2]);
        assert_eq!(out.told(dest(3)), from(1));
        assert_eq!(out.told(dest(4)), None);
        assert_eq!(out.told(dest(1 << 20)), None);
        assert!(!out.is_empty());
    }

    #[test]
    fn an_entry_is_eight_octets() {
        assert_eq!(size_of::<Entry>(), 8);
    }
}
