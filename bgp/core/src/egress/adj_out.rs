//! Adj-RIB-Out: what an update group has told its members, one entry for each destination.
//!
//! An entry is the Loc-RIB attribute set and the source that the announcement was made from, eight octets; what was
//! really sent follows from it by export. Entries are indexed by destination, so there is no second index. A group that
//! is told several paths of a destination has entries of another kind instead: see `paths_out.rs`.
//!
//! The caller keeps a reference on every attribute set that stands here, so that its number cannot come to mean
//! another set; entries only move numbers.

use super::dests::Dests;
use super::paths_out::PathsOut;
use crate::peer_key::PeerIx;
use crate::policy::Learned;
use crate::rib::{AttrId, AttrStore, DestId, Pages, SourceId};

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
/// The kind of an origin that is an internal neighbour and our client.
const CLIENT: u32 = 3;

impl Origin {
    /// Originated here.
    pub(crate) const LOCAL: Self = Self(0);

    /// Learnt from a neighbour; `external` if on an external session, else from a `client` of ours or not.
    pub(crate) const fn from_peer(peer: PeerIx, external: bool, client: bool) -> Self {
        let kind = match (external, client) {
            (true, _) => 1,
            (false, false) => 2,
            (false, true) => CLIENT,
        };
        Self(kind << PEER_BITS | (peer.0 & ((1 << PEER_BITS) - 1)))
    }

    /// No origin, but a number in the place of one.
    pub(super) const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// The number in the place of an origin.
    pub(super) const fn number(self) -> u32 {
        self.0
    }

    /// The kind of session, for the rules and for policy.
    pub(crate) const fn learned(self) -> Learned {
        match self.0 >> PEER_BITS {
            0 => Learned::Local,
            1 => Learned::External,
            _ => Learned::Internal,
        }
    }

    /// Whether it came from a client of this route reflector (RFC 4456).
    pub(crate) const fn is_client(self) -> bool {
        self.0 >> PEER_BITS == CLIENT
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
    /// Where there is an entry, for whoever needs to know what was announced at some time.
    announced: Dests,
    /// The entries of a group that is told several paths.
    paths: PathsOut,
    counts: Counts,
}

/// How many paths are announced.
#[derive(Default)]
struct Counts {
    announced: u64,
    /// By the neighbour that the path came from, who is the one member not told.
    by_peer: Vec<u32>,
}

impl Counts {
    #[inline]
    fn replace(&mut self, before: Option<Origin>, now: Option<Origin>) {
        if let Some(before) = before {
            self.announced -= 1;
            if let Some(peer) = before.peer() {
                self.by_peer[peer.index()] -= 1;
            }
        }
        if let Some(now) = now {
            self.announced += 1;
            if let Some(peer) = now.peer() {
                if peer.index() >= self.by_peer.len() {
                    self.by_peer.resize(peer.index() + 1, 0);
                }
                self.by_peer[peer.index()] += 1;
            }
        }
    }
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
        match (before.attr, told) {
            (None, Some(_)) => self.announced.insert(dest),
            (Some(_), None) => self.announced.remove(dest),
            (Some(_), Some(_)) | (None, None) => {}
        }
        self.counts.replace(before.attr.map(|_| before.origin), told.map(|told| told.origin));
    }

    /// What was told of `dest` with these attributes cannot be told after all; says whether it was told.
    pub(super) fn retract(&mut self, dest: DestId, attr: AttrId) -> bool {
        let told = self.told(dest).is_some_and(|told| told.attr == attr);
        if told {
            self.set(dest, None);
        }
        told
    }

    /// The same of one path.
    pub(super) fn retract_path(&mut self, dest: DestId, source: SourceId, attr: AttrId) -> bool {
        let told = self.path(dest, source).is_some_and(|told| told.attr == attr);
        if told {
            self.set_path(dest, source, None);
        }
        told
    }

    /// What was told of a destination in a group that is told several paths: each with its source, without attributes where it was withdrawn
    /// and somebody may not know that yet.
    pub(super) fn paths(&self, dest: DestId) -> impl Iterator<Item = (SourceId, Option<Told>)> {
        self.paths.of(dest)
    }

    /// What was told of one path.
    pub(super) fn path(&self, dest: DestId, source: SourceId) -> Option<Told> {
        self.paths.told(dest, source)
    }

    /// Notes what is told of a path from now on; gives what was told before.
    pub(super) fn set_path(&mut self, dest: DestId, source: SourceId, told: Option<Told>) -> Option<Told> {
        let before = self.paths.set(dest, source, told);
        self.counts.replace(before.map(|before| before.origin), told.map(|told| told.origin));
        before
    }

    /// Whoever stands at `position` of the ring has heard of every path withdrawn so far.
    pub(super) fn read_at(&mut self, position: u64) {
        self.paths.read_at(position);
    }

    /// Everyone stands at `position` of the ring at least.
    #[inline]
    pub(super) fn tidy(&mut self, position: u64) {
        if self.paths.is_untidy(position) {
            self.paths.tidy(position);
        }
    }

    /// The destinations that are announced, to everyone but where they came from; of a group that is told one path.
    pub(super) fn announced(&self) -> &Dests {
        &self.announced
    }

    /// Every path that a member may believe in, by destination.
    pub(super) fn known_paths(&self) -> Vec<(DestId, SourceId)> {
        self.paths.known()
    }

    /// How many paths `member` has been told of.
    pub(crate) fn announced_to(&self, member: PeerIx) -> u64 {
        let own = self.counts.by_peer.get(member.index()).copied().unwrap_or(0);
        self.counts.announced - u64::from(own)
    }

    /// Whether nothing is announced.
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.announced == 0
    }

    /// Gives back the references of up to `budget` entries, from `next` on, once nobody will ask again. True when
    /// there are none left.
    pub(crate) fn release_step(&self, next: &mut usize, budget: usize, attrs: &mut AttrStore) -> bool {
        if self.entries.is_empty() {
            return self.paths.release_step(next, budget, attrs);
        }
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
        f.debug_struct("AdjOut").field("announced", &self.counts.announced).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bgp_wire::attr::AttrFacts;

    #[test]
    fn an_origin_keeps_its_peer_and_kind() {
        assert_eq!((Origin::LOCAL.learned(), Origin::LOCAL.peer()), (Learned::Local, None));
        let ebgp = Origin::from_peer(PeerIx(7), true, false);
        assert_eq!((ebgp.learned(), ebgp.peer()), (Learned::External, Some(PeerIx(7))));
        let ibgp = Origin::from_peer(PeerIx(0), false, false);
        assert_eq!((ibgp.learned(), ibgp.peer()), (Learned::Internal, Some(PeerIx(0))));
    }

    #[test]
    fn counts_leave_out_what_came_from_the_member() {
        let mut out = AdjOut::new();
        let attr = AttrStore::new(0).intern(&[], None, AttrFacts::default);
        let dest = |ix| DestId::from_index(ix);
        let from = |peer| Some(Told { attr, origin: Origin::from_peer(PeerIx(peer), true, false) });
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
