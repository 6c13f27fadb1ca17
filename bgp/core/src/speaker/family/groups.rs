//! The update groups of a family: who is in which, what they tell, and the work that none of their members waits for.

use bgp_wire::PathId;
use bytes::Bytes;
use smallvec::SmallVec;

use super::FamilyRib;
use crate::egress::{ExportKey, Filter, Form, Group, GroupKey, Moved, Next, Told};
use crate::peer_key::PeerIx;
use crate::query::NotTold;
use crate::rib::DestId;
use crate::speaker::state::Shared;

/// Groups.
impl<K: ExportKey> FamilyRib<K> {
    /// Puts a peer into the group of this key, with what it takes along from another group. Gives the group.
    pub(in crate::speaker) fn join(
        &mut self,
        peer: PeerIx,
        key: GroupKey,
        filter: Filter,
        moved: Option<Moved>,
        shared: &mut Shared,
    ) -> u32 {
        let (groups, mut cx) = self.split(shared);
        let known = groups.iter().position(|group| group.as_ref().is_some_and(|group| *group.key() == key));
        let at = known.unwrap_or_else(|| {
            let group = Group::new(key, filter, &mut cx);
            let free = groups.iter().position(Option::is_none).unwrap_or_else(|| {
                groups.push(None);
                groups.len() - 1
            });
            groups[free] = Some(group);
            free
        });
        if let Some(group) = &mut groups[at] {
            match moved {
                Some(moved) => group.move_in(peer, moved),
                None => group.join(peer, &mut cx),
            }
        }
        at as u32
    }

    /// Takes a peer out of its group; what it can take along to another, where it is `moving` to one.
    pub(in crate::speaker) fn leave(
        &mut self,
        peer: PeerIx,
        group: u32,
        moving: bool,
        shared: &mut Shared,
    ) -> Option<Moved> {
        let (groups, mut cx) = self.split(shared);
        let slot = groups.get_mut(group as usize)?;
        let moved = slot.as_mut()?.leave(peer, moving, &mut cx);
        if let Some(empty) = slot.take_if(|group| group.is_empty()) {
            let told = empty.dissolve(&mut cx);
            self.dissolved.push((told, 0));
        }
        moved
    }

    /// A peer that left a group does not go into another one.
    pub(in crate::speaker) fn discard(&mut self, moved: Moved, shared: &mut Shared) {
        moved.discard(&mut self.split(shared).1);
    }

    pub(in crate::speaker) fn group(&self, group: u32) -> Option<&Group> {
        self.groups.get(group as usize)?.as_ref()
    }

    pub(in crate::speaker) fn group_mut(&mut self, group: u32) -> Option<&mut Group> {
        self.groups.get_mut(group as usize)?.as_mut()
    }

    pub(in crate::speaker) fn groups_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut().flatten()
    }

    pub(in crate::speaker) fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    pub(in crate::speaker) fn group_count(&self) -> usize {
        self.groups.iter().flatten().count()
    }

    /// Octets that are encoded and wait to be read.
    pub(in crate::speaker) fn waiting_octets(&self) -> u64 {
        self.groups.iter().flatten().map(Group::waiting_octets).sum()
    }

    /// Appends the next chunks for a member of a group to `into`, about `max` octets.
    #[expect(clippy::too_many_arguments, reason = "all that a group wants to know of a pull")]
    pub(in crate::speaker) fn next(
        &mut self,
        peer: PeerIx,
        group: u32,
        loaded: bool,
        max: usize,
        budget: &mut usize,
        into: &mut Vec<Bytes>,
        shared: &mut Shared,
    ) -> Next {
        let (groups, mut cx) = self.split(shared);
        match groups.get_mut(group as usize).and_then(Option::as_mut) {
            Some(group) => group.next(peer, loaded, max, budget, into, &mut cx),
            None => Next::Nothing,
        }
    }

    /// The neighbours that have something to read now and wait for it.
    pub(in crate::speaker) fn wake(&mut self, shared: &mut Shared, loaded: bool, out: &mut Vec<PeerIx>) {
        let (groups, cx) = self.split(shared);
        for group in groups.iter_mut().flatten() {
            group.wake(loaded, &cx, out);
        }
    }

    /// Why a member of a group is told nothing of a destination, or of any if there is no such destination.
    pub(in crate::speaker) fn why_not(
        &mut self,
        peer: PeerIx,
        group: u32,
        dest: DestId,
        shared: &mut Shared,
    ) -> NotTold {
        let (groups, cx) = self.split(shared);
        match groups.get(group as usize).and_then(Option::as_ref) {
            Some(group) => NotTold::from(group.why_not(peer, dest, &cx)),
            None => NotTold::NoSession,
        }
    }

    /// Asks a group about one destination.
    pub(in crate::speaker) fn told(
        &mut self,
        peer: PeerIx,
        group: u32,
        dest: DestId,
        shared: &mut Shared,
    ) -> SmallVec<[(Option<PathId>, Told, Form); 1]> {
        let (groups, cx) = self.split(shared);
        let group = groups.get(group as usize).and_then(Option::as_ref);
        group.map(|group| group.told(peer, dest, &cx)).unwrap_or_default()
    }
}

/// Work.
impl<K: ExportKey> FamilyRib<K> {
    /// Whether there is work that does not need the neighbours.
    pub(in crate::speaker) fn has_work(&self) -> bool {
        !self.review.is_done()
            || !self.reimport.walk.is_done()
            || !self.dissolved.is_empty()
            || self.has_aggregates_due()
            || self.groups.iter().flatten().any(Group::is_busy)
    }

    /// Gives back what dissolved groups held, and encodes for groups whose members wait. Says how many destinations
    /// were looked at.
    pub(in crate::speaker) fn group_step(&mut self, budget: usize, shared: &mut Shared) -> usize {
        let mut used = 0;
        if let Some((told, next)) = self.dissolved.last_mut() {
            let before = *next;
            let done = told.release_step(next, budget, &mut shared.attrs);
            used += *next - before;
            if done {
                self.dissolved.pop();
            }
        }
        shared.stats.looked_at += used as u64;
        // Groups take turns: each step of one is as much as fits between two looks at a clock.
        let first = self.turn;
        let (groups, mut cx) = self.split(shared);
        let count = groups.len();
        let mut next = first;
        for at in (0..count).map(|n| (first + n) % count) {
            if used >= budget {
                break;
            }
            next = at + 1;
            if let Some(group) = groups[at].as_mut().filter(|group| group.is_busy()) {
                used += group.work(&mut cx);
            }
        }
        self.turn = next;
        used
    }
}
