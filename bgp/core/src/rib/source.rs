//! Where paths come from: a small number for each pair of neighbour and received path identifier (RFC 7911), and what
//! the decision must know about the neighbour.
//!
//! A neighbour's paths belong to an *epoch*. Losing its session starts a new one, so that every older path is
//! recognised when it is looked at, without touching it; [`super::Table::review_step`] then removes such paths slice
//! by slice.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bgp_wire::{PathId, RouterId};

use crate::peer_key::PeerIx;

/// Who a path came from: the speaker itself, or a neighbour and the path identifier it chose. Also the path
/// identifier under which the path is sent on.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(u32);

impl SourceId {
    /// Originated by this speaker.
    pub const LOCAL: Self = Self(0);

    /// Whether the path was originated by this speaker.
    #[must_use]
    pub const fn is_local(self) -> bool {
        self.0 == 0
    }

    /// The number as an index; dense.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What the decision must know about a neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PeerSource {
    /// An external neighbour (RFC 4271 section 9.1.2.2 d).
    pub external: bool,
    /// The BGP Identifier of its OPEN.
    pub router_id: RouterId,
    /// The address of its end of the session.
    pub address: IpAddr,
}

/// All sources of one speaker.
#[derive(Debug)]
pub struct Sources {
    entries: Vec<Entry>,
    by_key: BTreeMap<(PeerIx, PathId), SourceId>,
    peers: Vec<Option<Peer>>,
    free: Vec<SourceId>,
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    /// Absent for the local source and for free numbers.
    peer: Option<PeerIx>,
    path_id: PathId,
}

#[derive(Copy, Clone, Debug)]
struct Peer {
    facts: PeerSource,
    /// Stamped on new paths.
    epoch: u16,
    /// Paths of older epochs are no longer valid.
    valid_from: u16,
    /// The source of path identifier 0, which most sessions use alone.
    plain: Option<SourceId>,
}

impl Sources {
    /// Only [`SourceId::LOCAL`].
    #[must_use]
    pub fn new() -> Self {
        let local = Entry { peer: None, path_id: PathId::NONE };
        Self { entries: vec![local], by_key: BTreeMap::new(), peers: Vec::new(), free: Vec::new() }
    }

    /// States what is known about a neighbour whose session has come up. Its paths of earlier sessions keep their
    /// standing; see [`Sources::peer_lost`].
    pub fn peer_up(&mut self, peer: PeerIx, facts: PeerSource) {
        let at = peer.index();
        if self.peers.len() <= at {
            self.peers.resize(at + 1, None);
        }
        match &mut self.peers[at] {
            Some(known) => known.facts = facts,
            slot @ None => *slot = Some(Peer { facts, epoch: 0, valid_from: 0, plain: None }),
        }
    }

    /// Every path that the neighbour has sent so far is invalid from now on: no new decision counts it, and reviews
    /// remove it. Paths that arrive later are not concerned.
    pub fn peer_lost(&mut self, peer: PeerIx) {
        if let Some(Some(known)) = self.peers.get_mut(peer.index()) {
            known.epoch = known.epoch.wrapping_add(1);
            known.valid_from = known.epoch;
        }
    }

    /// Forgets a neighbour and its source numbers. Only after a review of every table has ended, as a number or a
    /// [`PeerIx`] given out again must not meet paths of its former owner.
    pub fn forget_peer(&mut self, peer: PeerIx) {
        if let Some(slot) = self.peers.get_mut(peer.index()) {
            *slot = None;
        }
        let keys = (peer, PathId(0))..=(peer, PathId(u32::MAX));
        let gone: Vec<_> = self.by_key.range(keys).map(|(&key, &id)| (key, id)).collect();
        for (key, id) in gone {
            self.by_key.remove(&key);
            self.entries[id.index()].peer = None;
            self.free.push(id);
        }
    }

    /// The number of this neighbour's paths with this identifier; `None` if the neighbour was never up.
    pub fn intern(&mut self, peer: PeerIx, path_id: PathId) -> Option<SourceId> {
        let known = self.peers.get_mut(peer.index())?.as_mut()?;
        if path_id == PathId::NONE
            && let Some(plain) = known.plain
        {
            return Some(plain);
        }
        if let Some(&id) = self.by_key.get(&(peer, path_id)) {
            return Some(id);
        }
        let entry = Entry { peer: Some(peer), path_id };
        let id = if let Some(id) = self.free.pop() {
            self.entries[id.index()] = entry;
            id
        } else {
            self.entries.push(entry);
            SourceId(u32::try_from(self.entries.len() - 1).ok()?)
        };
        self.by_key.insert((peer, path_id), id);
        if path_id == PathId::NONE {
            known.plain = Some(id);
        }
        Some(id)
    }

    /// The same if there is one already: what was never announced need not be withdrawn.
    #[must_use]
    pub fn find(&self, peer: PeerIx, path_id: PathId) -> Option<SourceId> {
        self.by_key.get(&(peer, path_id)).copied()
    }

    /// The neighbour of a source; `None` for the speaker itself.
    #[must_use]
    pub fn peer(&self, source: SourceId) -> Option<PeerIx> {
        self.entries.get(source.index()).and_then(|entry| entry.peer)
    }

    /// The path identifier that the neighbour sent.
    #[must_use]
    pub fn path_id(&self, source: SourceId) -> PathId {
        self.entries.get(source.index()).map_or(PathId::NONE, |entry| entry.path_id)
    }

    /// What is known about the neighbour of a source; `None` for the speaker itself.
    #[must_use]
    pub fn facts(&self, source: SourceId) -> Option<&PeerSource> {
        self.known(source).map(|peer| &peer.facts)
    }

    /// The epoch that a path arriving now belongs to.
    pub(super) fn epoch(&self, source: SourceId) -> u16 {
        self.known(source).map_or(0, |peer| peer.epoch)
    }

    /// Whether a path of this epoch still counts.
    pub(super) fn is_valid(&self, source: SourceId, epoch: u16) -> bool {
        // A distance instead of an order, so that epochs may wrap around.
        source.is_local()
            || self.known(source).is_some_and(|peer| epoch.wrapping_sub(peer.valid_from) < u16::MAX / 2)
    }

    fn known(&self, source: SourceId) -> Option<&Peer> {
        self.peers.get(self.peer(source)?.index())?.as_ref()
    }
}

impl Default for Sources {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> PeerSource {
        PeerSource { external: true, router_id: RouterId(1), address: IpAddr::from([192, 0, 2, 1]) }
    }

    #[test]
    fn equal_pairs_have_equal_numbers() {
        let mut sources = Sources::new();
        assert_eq!(sources.intern(PeerIx(2), PathId::NONE), None, "never up");
        sources.peer_up(PeerIx(2), facts());
        let plain = sources.intern(PeerIx(2), PathId::NONE).unwrap();
        let other = sources.intern(PeerIx(2), PathId(7)).unwrap();
        assert_ne!(plain, other);
        assert_eq!(sources.find(PeerIx(2), PathId(7)), Some(other));
        assert_eq!(sources.find(PeerIx(2), PathId(8)), None);
        assert_eq!(sources.intern(PeerIx(2), PathId::NONE), Some(plain));
        assert_eq!(sources.intern(PeerIx(2), PathId(7)), Some(other));
        assert_eq!((sources.peer(other), sources.path_id(other)), (Some(PeerIx(2)), PathId(7)));
        assert_eq!((sources.peer(SourceId::LOCAL), sources.facts(SourceId::LOCAL)), (None, None));
    }

    #[test]
    fn losing_a_session_invalidates_what_was_sent_before_only() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        let before = sources.epoch(source);
        assert!(sources.is_valid(source, before));
        sources.peer_lost(PeerIx(0));
        sources.peer_up(PeerIx(0), facts());
        assert!(!sources.is_valid(source, before));
        assert!(sources.is_valid(source, sources.epoch(source)));
        assert!(sources.is_valid(SourceId::LOCAL, 0));
    }

    #[test]
    fn epochs_wrap_around() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        for _ in 0..70_000 {
            let before = sources.epoch(source);
            sources.peer_lost(PeerIx(0));
            assert!(!sources.is_valid(source, before) && sources.is_valid(source, sources.epoch(source)));
        }
    }

    #[test]
    fn numbers_of_a_forgotten_peer_are_given_out_again() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        sources.forget_peer(PeerIx(0));
        assert_eq!((sources.peer(source), sources.is_valid(source, 0)), (None, false));
        sources.peer_up(PeerIx(5), facts());
        assert_eq!(sources.intern(PeerIx(5), PathId::NONE), Some(source));
        assert_eq!(sources.peer(source), Some(PeerIx(5)));
    }
}
