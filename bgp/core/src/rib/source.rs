//! Where paths come from: a small number for each pair of neighbour and received path identifier (RFC 7911), and what
//! the decision must know about the neighbour.
//!
//! A neighbour's paths of a family belong to an *epoch*. Losing its session starts a new one, as does its word that it
//! says everything again (RFC 7313), so that every older path is recognised when it is looked at, without touching it. In
//! families that are kept (RFC 4724) such paths are *stale*: they count as before until they are said again, or until
//! [`Sources::stale_gone`]. Elsewhere they count no more. [`super::Table::review_step`] removes what counts no more slice
//! by slice. Stale paths may become *long-lived stale* (RFC 9494); what that does to them is the caller's business.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bgp_wire::{Family, FamilySet, PathId, RouterId};

use super::path::Path;
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

    /// The source of this index.
    pub(crate) const fn from_index(ix: u32) -> Self {
        Self(ix)
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
    /// It is a client of this route reflector (RFC 4456).
    pub client: bool,
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
    /// How many paths there are of it, in all families; not counted for path identifier 0.
    paths: u32,
}

#[derive(Copy, Clone, Debug)]
struct Peer {
    facts: PeerSource,
    /// By family index.
    epochs: [Epochs; Family::COUNT],
    /// The source of path identifier 0, which most sessions use alone.
    plain: Option<SourceId>,
    /// How many other sources it has.
    others: u32,
}

/// The epochs of one neighbour in one family, each at least as old as the one before it.
#[derive(Copy, Clone, Debug, Default)]
struct Epochs {
    /// Stamped on new paths.
    now: u16,
    /// Paths of older epochs are stale.
    stale_before: u16,
    /// Paths of older epochs are long-lived stale.
    long_lived_before: u16,
    /// Paths of older epochs are no longer valid.
    valid_from: u16,
}

impl Epochs {
    /// How many epochs may be told apart, since they wrap around: half of what half of the numbers would allow.
    const MOST: u16 = u16::MAX / 4;

    /// Whether a further epoch could be mistaken for an old one.
    const fn are_used_up(&self) -> bool {
        self.now.wrapping_sub(self.valid_from) >= Self::MOST
    }

    /// Paths of epochs older than `epoch` are no longer valid.
    const fn end(&mut self, epoch: u16) {
        self.valid_from = epoch;
        if is_before(self.long_lived_before, epoch) {
            self.long_lived_before = epoch;
        }
    }
}

impl Sources {
    /// Only [`SourceId::LOCAL`].
    #[must_use]
    pub fn new() -> Self {
        let local = Entry { peer: None, path_id: PathId::NONE, paths: 0 };
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
            slot @ None => *slot = Some(Peer::new(facts)),
        }
    }

    /// The neighbour is a client of this route reflector from now on, or is none.
    pub fn set_client(&mut self, peer: PeerIx, client: bool) {
        if let Some(known) = self.known_mut(peer) {
            known.facts.client = client;
        }
    }

    /// The neighbour's session has ended. In the families of `kept` its paths are stale from now on, and those that were
    /// stale already are invalid, but for those of `held`, where they stay; in all others every path is invalid: no new
    /// decision counts it, and reviews remove it. Paths that arrive later are not concerned.
    pub fn peer_lost(&mut self, peer: PeerIx, kept: FamilySet, held: FamilySet) {
        let Some(known) = self.known_mut(peer) else { return };
        for family in Family::ALL {
            let epochs = &mut known.epochs[family.index()];
            epochs.now = epochs.now.wrapping_add(1);
            let stale_before = std::mem::replace(&mut epochs.stale_before, epochs.now);
            if !kept.contains(family) {
                epochs.end(epochs.now);
            } else if !held.contains(family) {
                epochs.end(stale_before);
            } else if epochs.are_used_up() {
                // Lost as often as that without ever having said everything again.
                epochs.end(epochs.valid_from.wrapping_add(1));
            }
        }
    }

    /// The neighbour is about to say again what it has to say in a family (RFC 7313): its paths there are stale until
    /// it does. False if nothing was marked, and what was fresh stays so.
    #[must_use]
    pub fn mark_stale(&mut self, peer: PeerIx, family: Family) -> bool {
        let Some(known) = self.known_mut(peer) else { return false };
        let epochs = &mut known.epochs[family.index()];
        // Who begins so often and never ends is not worth more than that some of its paths stay fresh.
        if epochs.are_used_up() {
            return false;
        }
        epochs.now = epochs.now.wrapping_add(1);
        epochs.stale_before = epochs.now;
        true
    }

    /// What is stale of a neighbour's paths in a family is long-lived stale from now on (RFC 9494 section 4.2).
    pub fn mark_long_lived(&mut self, peer: PeerIx, family: Family) {
        let Some(known) = self.known_mut(peer) else { return };
        let epochs = &mut known.epochs[family.index()];
        epochs.long_lived_before = epochs.stale_before;
    }

    /// What is still stale of a neighbour's paths in a family is invalid from now on.
    pub fn stale_gone(&mut self, peer: PeerIx, family: Family) {
        let Some(known) = self.known_mut(peer) else { return };
        let epochs = &mut known.epochs[family.index()];
        epochs.end(epochs.stale_before);
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

    /// The number of this neighbour's paths with this identifier; `None` if the neighbour was never up. For another
    /// identifier than 0 the number lives as long as there are paths of it: see [`Sources::count`].
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
        let entry = Entry { peer: Some(peer), path_id, paths: 0 };
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
        } else {
            known.others += 1;
        }
        Some(id)
    }

    /// So many more paths of a source are in the tables, or fewer. When there are none the number is given out again: a
    /// neighbour may use ever new identifiers for ever. The source of path identifier 0 stays, whatever is said here.
    pub fn count(&mut self, source: SourceId, more: i32) {
        let Some(entry) = self.entries.get_mut(source.index()) else { return };
        let Some(peer) = entry.peer.filter(|_| entry.path_id != PathId::NONE) else { return };
        entry.paths = entry.paths.saturating_add_signed(more);
        if entry.paths == 0 {
            entry.peer = None;
            self.by_key.remove(&(peer, entry.path_id));
            self.free.push(source);
            if let Some(known) = self.known_mut(peer) {
                known.others -= 1;
            }
        }
    }

    /// How many path identifiers beside 0 a neighbour uses at present, over all destinations.
    #[inline]
    #[must_use]
    pub fn path_ids(&self, peer: PeerIx) -> usize {
        self.peers.get(peer.index()).and_then(Option::as_ref).map_or(0, |known| known.others as usize)
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

    /// What is known about a neighbour.
    #[must_use]
    pub fn peer_facts(&self, peer: PeerIx) -> Option<&PeerSource> {
        self.peers.get(peer.index())?.as_ref().map(|peer| &peer.facts)
    }

    /// The epoch that a path of a family belongs to that arrives now.
    pub(super) fn epoch(&self, source: SourceId, family: Family) -> u16 {
        self.known(source).map_or(0, |peer| peer.epochs[family.index()].now)
    }

    /// Whether a path of this epoch still counts in a family.
    #[inline]
    pub(super) fn is_valid(&self, source: SourceId, family: Family, epoch: u16) -> bool {
        source.is_local()
            || self
                .known(source)
                .is_some_and(|peer| !is_before(epoch, peer.epochs[family.index()].valid_from))
    }

    /// Whether a path of a family is stale: its neighbour has said nothing of it since it went away, or since it began
    /// to say everything again.
    #[must_use]
    pub fn is_stale(&self, path: &Path, family: Family) -> bool {
        self.is_older(path, family, |epochs| epochs.stale_before)
    }

    /// Whether a path of a family is long-lived stale: its neighbour went away, and has said nothing of it for longer
    /// than its restart time.
    #[must_use]
    pub fn is_long_lived(&self, path: &Path, family: Family) -> bool {
        self.is_older(path, family, |epochs| epochs.long_lived_before)
    }

    fn is_older(&self, path: &Path, family: Family, than: impl Fn(&Epochs) -> u16) -> bool {
        !path.source.is_local()
            && self
                .known(path.source)
                .is_some_and(|peer| is_before(path.epoch, than(&peer.epochs[family.index()])))
    }

    fn known_mut(&mut self, peer: PeerIx) -> Option<&mut Peer> {
        self.peers.get_mut(peer.index())?.as_mut()
    }

    fn known(&self, source: SourceId) -> Option<&Peer> {
        self.peers.get(self.peer(source)?.index())?.as_ref()
    }
}

impl Peer {
    const fn new(facts: PeerSource) -> Self {
        let none = Epochs { now: 0, stale_before: 0, long_lived_before: 0, valid_from: 0 };
        Self { facts, epochs: [none; Family::COUNT], plain: None, others: 0 }
    }
}

/// Whether an epoch is older than another: by their distance, as they wrap around.
#[inline]
const fn is_before(epoch: u16, other: u16) -> bool {
    epoch.wrapping_sub(other) >= u16::MAX / 2
}

impl Default for Sources {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: Family = Family::Ipv4Unicast;
    const V6: Family = Family::Ipv6Unicast;

    fn facts() -> PeerSource {
        PeerSource {
            external: true,
            router_id: RouterId(1),
            address: IpAddr::from([192, 0, 2, 1]),
            client: false,
        }
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
        let before = sources.epoch(source, V4);
        assert!(sources.is_valid(source, V4, before));
        sources.peer_lost(PeerIx(0), FamilySet::EMPTY, FamilySet::EMPTY);
        sources.peer_up(PeerIx(0), facts());
        assert!(!sources.is_valid(source, V4, before));
        assert!(sources.is_valid(source, V4, sources.epoch(source, V4)));
        assert!(sources.is_valid(SourceId::LOCAL, V4, 0));
    }

    #[test]
    fn kept_paths_outlive_one_session_in_their_family() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        let first = sources.epoch(source, V4);
        let path = |epoch| Path { source, epoch, ..Path::default() };
        sources.peer_lost(PeerIx(0), FamilySet::only(V4), FamilySet::EMPTY);
        assert!(sources.is_valid(source, V4, first) && !sources.is_valid(source, V6, first));
        let second = sources.epoch(source, V4);
        assert_eq!(second, sources.epoch(source, V6));
        assert!(sources.is_stale(&path(first), V4) && !sources.is_stale(&path(second), V4));
        sources.peer_lost(PeerIx(0), FamilySet::UNICAST, FamilySet::EMPTY);
        assert!(!sources.is_valid(source, V4, first), "stale a second time");
        assert!(sources.is_valid(source, V4, second) && sources.is_valid(source, V6, second));
        sources.stale_gone(PeerIx(0), V4);
        assert!(!sources.is_valid(source, V4, second) && sources.is_valid(source, V6, second));
        assert!(sources.is_valid(source, V4, sources.epoch(source, V4)));
    }

    #[test]
    fn saying_everything_again_concerns_one_family() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        let before = Path { source, epoch: sources.epoch(source, V4), ..Path::default() };
        assert!(sources.mark_stale(PeerIx(0), V4));
        let after = Path { epoch: sources.epoch(source, V4), ..before };
        let other = Path { epoch: sources.epoch(source, V6), ..before };
        assert!(sources.is_stale(&before, V4) && !sources.is_stale(&other, V6));
        assert!(!sources.is_stale(&after, V4));
        assert!(sources.is_valid(source, V4, before.epoch));
        // The session ends in the middle of it: what was not said again goes, all else is kept.
        sources.peer_lost(PeerIx(0), FamilySet::UNICAST, FamilySet::EMPTY);
        assert!(!sources.is_valid(source, V4, before.epoch) && sources.is_valid(source, V4, after.epoch));
        assert!(sources.is_valid(source, V6, other.epoch) && sources.is_stale(&other, V6));
        sources.stale_gone(PeerIx(0), V6);
        assert!(!sources.is_valid(source, V6, other.epoch) && sources.is_valid(source, V4, after.epoch));
    }

    /// RFC 9494 section 4.2: unlike RFC 4724, consecutive restarts remove nothing.
    #[test]
    fn held_paths_outlive_any_number_of_sessions_and_become_long_lived_when_told() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        let arrive = |sources: &Sources| Path { source, epoch: sources.epoch(source, V4), ..Path::default() };
        let v4 = FamilySet::only(V4);
        let first = arrive(&sources);
        sources.peer_lost(PeerIx(0), v4, v4);
        assert!(sources.is_stale(&first, V4) && !sources.is_long_lived(&first, V4));
        sources.mark_long_lived(PeerIx(0), V4);
        let second = arrive(&sources);
        assert!(sources.is_long_lived(&first, V4) && !sources.is_long_lived(&second, V4));
        sources.peer_lost(PeerIx(0), v4, v4);
        assert!(sources.is_valid(source, V4, first.epoch) && sources.is_valid(source, V4, second.epoch));
        assert!(sources.is_long_lived(&first, V4), "still");
        assert!(sources.is_stale(&second, V4) && !sources.is_long_lived(&second, V4), "a restart time first");
        sources.mark_long_lived(PeerIx(0), V4);
        assert!(sources.is_long_lived(&second, V4));
        let third = arrive(&sources);
        sources.stale_gone(PeerIx(0), V4);
        assert!(!sources.is_valid(source, V4, first.epoch) && !sources.is_valid(source, V4, second.epoch));
        assert!(sources.is_valid(source, V4, third.epoch) && !sources.is_long_lived(&third, V4));
        // Somebody who is lost again and again without ever having said everything.
        for _ in 0..70_000 {
            let path = arrive(&sources);
            assert!(sources.is_valid(source, V4, path.epoch) && !sources.is_stale(&path, V4));
            sources.peer_lost(PeerIx(0), v4, v4);
            assert!(sources.is_valid(source, V4, path.epoch) && sources.is_stale(&path, V4));
        }
    }

    #[test]
    fn refreshes_without_end_harm_neither_their_family_nor_another() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        for _ in 0..70_000 {
            let before = sources.epoch(source, V4);
            let marked = sources.mark_stale(PeerIx(0), V4);
            assert_eq!(sources.is_stale(&Path { source, epoch: before, ..Path::default() }, V4), marked);
            for family in [V4, V6] {
                let epoch = sources.epoch(source, family);
                assert!(sources.is_valid(source, family, epoch));
                assert!(!sources.is_stale(&Path { source, epoch, ..Path::default() }, family));
            }
        }
    }

    #[test]
    fn epochs_wrap_around() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        for _ in 0..70_000 {
            let before = sources.epoch(source, V4);
            sources.peer_lost(PeerIx(0), FamilySet::EMPTY, FamilySet::EMPTY);
            assert!(
                !sources.is_valid(source, V4, before)
                    && sources.is_valid(source, V4, sources.epoch(source, V4))
            );
        }
    }

    #[test]
    fn the_number_of_a_path_identifier_goes_with_its_last_path() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let plain = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        let seven = sources.intern(PeerIx(0), PathId(7)).unwrap();
        sources.count(seven, 1);
        sources.count(seven, 1);
        sources.count(seven, -1);
        assert_eq!((sources.find(PeerIx(0), PathId(7)), sources.path_ids(PeerIx(0))), (Some(seven), 1));
        sources.count(seven, -1);
        assert_eq!((sources.find(PeerIx(0), PathId(7)), sources.path_ids(PeerIx(0))), (None, 0));
        assert_eq!(sources.peer(seven), None);
        assert_eq!(sources.intern(PeerIx(0), PathId(8)), Some(seven), "given out again");
        // One that was never used goes as well.
        sources.count(seven, 0);
        assert_eq!(sources.path_ids(PeerIx(0)), 0);
        sources.count(plain, -1);
        assert_eq!(sources.intern(PeerIx(0), PathId::NONE), Some(plain));
        sources.forget_peer(PeerIx(0));
        assert_eq!(sources.path_ids(PeerIx(0)), 0);
    }

    #[test]
    fn numbers_of_a_forgotten_peer_are_given_out_again() {
        let mut sources = Sources::new();
        sources.peer_up(PeerIx(0), facts());
        let source = sources.intern(PeerIx(0), PathId::NONE).unwrap();
        sources.forget_peer(PeerIx(0));
        assert_eq!((sources.peer(source), sources.is_valid(source, V4, 0)), (None, false));
        sources.peer_up(PeerIx(5), facts());
        assert_eq!(sources.intern(PeerIx(5), PathId::NONE), Some(source));
        assert_eq!(sources.peer(source), Some(PeerIx(5)));
    }
}
