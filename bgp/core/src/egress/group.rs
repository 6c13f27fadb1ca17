//! Update groups: peers that are told the same in the same words.
//!
//! The key of a group holds every input of the export path, so what one member is told is right for all. The group
//! follows the table's change log with one cursor, exports and encodes each change once, and keeps the chunks in a
//! bounded ring that members read at their own pace. It encodes only while a member wants more than the ring has.
//!
//! A member that joins later, asks for a refresh, or has fallen off the ring *walks*: it gets chunks of its own, made
//! from what the group has told so far, until it has caught up with the group's cursor, and goes on in the ring. A
//! walk is a pass over all destinations, or over that part of the change log that the member has missed: the group
//! pins the log at the oldest chunk of its ring, so destinations that are gone stay known until everyone was told.
//!
//! What a group does with a batch of changes is in `batch.rs`, how members catch up in `walk.rs`.
//!
//! No member is told of a route that came from itself; chunks carry a scope for that.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bgp_wire::{PathId, RouteRefresh, UpdateWriter};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use super::adj_out::{AdjOut, Told};
use super::choice::path_id;
use super::cx::{Cx, Filter, Form, Withheld};
use super::export::Rules;
use super::field::ExportKey;
use super::queue::Queue;
use super::quota::Quota;
use super::ring::Ring;
use super::summaries::Summaries;
use super::walk::Had;
use crate::command::Chain;
use crate::peer_key::{PeerIx, PeerKey};
use crate::rib::{CursorId, DestId};

/// Every input of the export path beside the route itself. Peers of equal keys share a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupKey {
    /// The rules of the session.
    pub(crate) rules: Rules,
    /// The policies, by name: their texts may change while the group stands.
    pub(crate) policy: Chain,
    /// Set for a peer that is told something of its own: originations name it or have its address as their next hop, its
    /// policy asks who it is, or there is a limit on what it is told.
    pub(crate) alone: Option<PeerKey>,
    /// How many paths it is told of at the most. Only where it is alone.
    pub(crate) max_prefixes: Option<u32>,
}

/// One update group of one family.
#[derive(Debug)]
pub(crate) struct Group {
    pub(super) key: GroupKey,
    pub(super) filter: Filter,
    /// What stands for all that is inside it: those that are in force for this group.
    pub(super) summaries: Arc<Summaries>,
    /// How far the group has followed the change log.
    pub(super) head: CursorId,
    /// Pins the change log at the oldest chunk of the ring.
    pub(super) tail: CursorId,
    pub(super) tail_seq: u64,
    /// A pass over all destinations that is under way, beside the log.
    pub(super) review: Option<Review>,
    pub(super) told: AdjOut,
    pub(super) quota: Quota,
    pub(super) ring: Ring,
    pub(super) members: BTreeMap<PeerIx, Member>,
    /// How many members read the ring; the others walk.
    pub(super) in_ring: u32,
    /// Members whose writers wait to be woken. The first `asleep` of them had nothing to read when the group was as `seen`
    /// says, so that they needn't be looked at again while it is: a thousand idle members cost nothing.
    idle: Vec<PeerIx>,
    asleep: usize,
    seen: Option<Seen>,
    /// Somebody waits for work that does not fit into a turn.
    busy: bool,
}

/// What decides whether there is something for a member that has read everything and asks for nothing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Seen {
    /// The end of the ring.
    end: u64,
    /// End-of-RIB may be said.
    loaded: bool,
}

/// A pass over all destinations, which the change log does not show.
#[derive(Debug)]
pub(super) struct Review {
    /// The next destination.
    pub(super) next: usize,
    pub(super) why: Why,
}

/// Why a review goes on.
#[derive(Debug)]
pub(super) enum Why {
    /// The group is new.
    New,
    /// There is room for what was held back. All that was told before stands as the policy in force says.
    Refill,
    /// The policy has changed; this one was in force before.
    Policy(Filter),
    /// Everything is to be said again.
    Everything,
}

/// One peer.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) at: At,
    /// Chunks of its own, to be read before those of the ring.
    pub(super) own: VecDeque<(Bytes, u32)>,
    /// While it walks.
    pub(super) had: Had,
    refresh: Option<Refresh>,
    /// It was told that everything is said again, and waits to hear that this is over (RFC 7313).
    repeating: bool,
    end_of_rib_owed: bool,
    idle: bool,
}

/// How everything is said again to a member that asks for it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refresh {
    /// Without a word before and after it (RFC 2918).
    Plain,
    /// Between a begin and an end marker (RFC 7313).
    Marked,
}

impl Member {
    /// One that stands there, and that nothing else is known of.
    fn at(at: At) -> Self {
        Self {
            at,
            own: VecDeque::new(),
            had: Had::default(),
            refresh: None,
            repeating: false,
            end_of_rib_owed: false,
            idle: false,
        }
    }

    /// Whether it is time for what it asked for. RFC 7313 section 4: no begin marker before the End-of-RIB.
    fn may_refresh(&self) -> bool {
        match self.refresh {
            None => false,
            Some(Refresh::Plain) => true,
            Some(Refresh::Marked) => !self.end_of_rib_owed,
        }
    }
}

/// Where a member stands.
#[derive(Copy, Clone, Debug)]
pub(super) enum At {
    /// The next chunk of the ring.
    Ring(u64),
    /// Catching up.
    Walk(Walk),
}

/// How a member catches up.
#[derive(Copy, Clone, Debug)]
pub(super) struct Walk {
    /// Where in the log the walk goes on after the pass.
    pub(super) cursor: CursorId,
    /// The next destination of a pass over all of them; absent when the pass is over.
    pub(super) next: Option<usize>,
}

/// What a peer takes along from one group to another.
#[derive(Debug)]
pub(crate) struct Moved {
    /// Everything before this place of the change log has been told or need not be.
    cursor: CursorId,
    had: Had,
    end_of_rib_owed: bool,
    refresh: Option<Refresh>,
    repeating: bool,
}

impl Moved {
    /// The peer does not go anywhere.
    pub(crate) fn discard<K: ExportKey>(self, cx: &mut Cx<'_, K>) {
        cx.table.remove_cursor(self.cursor);
    }
}

/// What there is for a member.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// UPDATE messages: so many octets, so many messages.
    Updates(usize, u32),
    /// A ROUTE-REFRESH that marks begin or end of a repetition.
    Marker(Bytes),
    /// It takes longer: there will be more after [`Group::work`].
    Busy,
    /// Nothing until something changes.
    Nothing,
}

/// Destinations looked at in one go.
pub(super) const STEP: usize = 2 * Queue::<u32>::CAPACITY;

/// Members.
/// Why a member of a group is told nothing of a destination.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum WhyNot<'a> {
    /// There is no best path.
    NoRoute,
    /// The best path is its own.
    FromThere,
    /// An aggregate stands for it.
    Summarised,
    /// Rules or policy keep it back.
    Withheld(Withheld<'a>),
    /// It is about to be told.
    Pending,
    /// There is no room under the limit.
    Limit,
    /// Its attributes do not fit into a message.
    TooLarge,
}

impl Group {
    /// A group without members. It will look at every destination first.
    pub(crate) fn new<K: ExportKey>(key: GroupKey, filter: Filter, cx: &mut Cx<'_, K>) -> Self {
        if key.rules.paths.is_some() {
            cx.table.watch_paths();
        }
        let head = cx.table.add_cursor();
        let tail = cx.table.fork_cursor(head);
        Self {
            key,
            filter,
            summaries: Arc::clone(cx.summaries),
            head,
            tail,
            tail_seq: cx.table.cursor_seq(tail),
            review: Some(Review { next: 0, why: Why::New }),
            quota: Quota::default(),
            told: AdjOut::new(),
            ring: Ring::new(),
            members: BTreeMap::new(),
            in_ring: 0,
            idle: Vec::new(),
            asleep: 0,
            seen: None,
            busy: false,
        }
    }

    /// What its members have in common.
    pub(crate) fn key(&self) -> &GroupKey {
        &self.key
    }

    /// Whether nobody is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a peer that has been told nothing yet.
    pub(crate) fn join<K: ExportKey>(&mut self, peer: PeerIx, cx: &mut Cx<'_, K>) {
        // Whoever is there before anything has been told reads everything from the ring.
        let (at, had) = if self.ring.end() == 0 && self.told.is_empty() {
            self.in_ring += 1;
            (At::Ring(0), Had::default())
        } else {
            let cursor = cx.table.fork_cursor(self.head);
            (At::Walk(Walk { cursor, next: Some(0) }), Had::nothing())
        };
        self.insert(peer, Member { had, end_of_rib_owed: true, ..Member::at(at) });
    }

    /// Adds a peer that comes from another group: it is told what this group announces and takes back everything else.
    pub(crate) fn move_in(&mut self, peer: PeerIx, moved: Moved) {
        let Moved { cursor, had, end_of_rib_owed, refresh, repeating } = moved;
        let walk = Walk { cursor, next: Some(0) };
        self.insert(peer, Member { had, end_of_rib_owed, refresh, repeating, ..Member::at(At::Walk(walk)) });
    }

    fn insert(&mut self, peer: PeerIx, member: Member) {
        let before = self.members.insert(peer, member);
        debug_assert!(before.is_none(), "a peer joined twice");
    }

    /// Takes a peer out; `moving` says that it goes into another group.
    pub(crate) fn leave<K: ExportKey>(
        &mut self,
        peer: PeerIx,
        moving: bool,
        cx: &mut Cx<'_, K>,
    ) -> Option<Moved> {
        // Before anything is forgotten for its being gone.
        let had = if moving { self.had_on_leaving(peer)? } else { Had::default() };
        let member = self.members.remove(&peer)?;
        self.idle.retain(|other| *other != peer);
        self.seen = None;
        let cursor = match member.at {
            At::Ring(position) => {
                let cursor = cx.table.fork_cursor(self.tail);
                self.leave_ring(position, cx);
                cursor
            }
            At::Walk(walk) => walk.cursor,
        };
        // What moves in elsewhere is told everything there anyway, but waits for the markers.
        let refresh = member.refresh.filter(|refresh| *refresh == Refresh::Marked);
        let Member { end_of_rib_owed, repeating, .. } = member;
        Some(Moved { cursor, had, end_of_rib_owed, refresh, repeating })
    }

    /// What a member may have been told that goes elsewhere now.
    fn had_on_leaving(&mut self, peer: PeerIx) -> Option<Had> {
        let mut paths = self.told.known_paths();
        let end = self.ring.end();
        let by_now = self.had_by_now();
        let member = self.members.get_mut(&peer)?;
        let mut had = match member.at {
            At::Walk(_) => std::mem::take(&mut member.had),
            At::Ring(position) if self.ring.has_unlogged_from(position) => Had::anything(),
            At::Ring(position) => Had { behind: position < end, ..by_now },
        };
        // What it does not read any more may take something back; and the traces stay here.
        if !member.own.is_empty() || self.key.rules.paths.is_some() {
            had.dests = None;
        }
        if had.paths.is_empty() {
            had.paths = paths;
        } else {
            had.paths.append(&mut paths);
            had.paths.sort_unstable();
            had.paths.dedup();
        }
        Some(had)
    }

    /// Ends the group. What it had told is still counted in the attribute store: see [`AdjOut::release_step`].
    pub(crate) fn dissolve<K: ExportKey>(self, cx: &mut Cx<'_, K>) -> AdjOut {
        debug_assert!(self.members.is_empty(), "a group is dissolved under its members");
        if self.key.rules.paths.is_some() {
            cx.table.unwatch_paths();
        }
        cx.table.remove_cursor(self.head);
        cx.table.remove_cursor(self.tail);
        self.told
    }

    /// The policies are these now. Where they treat all paths as before nothing follows from it.
    pub(crate) fn adopt(&mut self, filter: Filter) {
        if self.filter == filter {
            // Names and labels may be others.
            self.filter = filter;
        } else {
            self.refilter(filter);
        }
    }

    /// The policy reads differently now: what is announced differently because of it is announced again or withdrawn,
    /// and nothing else is said (RFC 4271 section 9.1.3).
    pub(crate) fn refilter(&mut self, filter: Filter) {
        let old = std::mem::replace(&mut self.filter, filter);
        let why = match &self.review {
            None | Some(Review { why: Why::Refill, .. }) => Why::Policy(old),
            // Nothing has been told.
            Some(Review { why: Why::New, next: 0 }) => return,
            // Some destinations stand under the policy before last.
            Some(_) => Why::Everything,
        };
        self.review = Some(Review { next: 0, why });
        self.walk_again();
    }

    /// What the rules make of some routes is another thing now, under the same policy.
    pub(crate) fn judge_again(&mut self) {
        self.refilter(self.filter.clone());
    }

    /// What is told of some routes is another thing now, though they and the policy are what they were.
    pub(crate) fn say_again(&mut self) {
        if !matches!(self.review, Some(Review { why: Why::New, next: 0 })) {
            self.review = Some(Review { next: 0, why: Why::Everything });
            self.walk_again();
        }
    }

    /// Takes over what stands for other routes. What does so no more ends at once, so that those are announced before the
    /// change log tells that it has gone; what begins to, begins once it has been announced, with all that is in the log.
    #[cold]
    fn adopt_summaries<K: ExportKey>(&mut self, cx: &Cx<'_, K>) {
        let stays = self.summaries.both(cx.summaries);
        let ends = stays != *self.summaries;
        let begins = stays != **cx.summaries;
        if begins && !ends && cx.table.pending(self.head) {
            return;
        }
        self.summaries = if ends && begins { Arc::new(stays) } else { Arc::clone(cx.summaries) };
        if ends || begins {
            self.judge_again();
        }
    }

    /// Has what stands for other routes taken over when it is time.
    pub(super) fn review_summaries<K: ExportKey>(&mut self, cx: &Cx<'_, K>) {
        if !Arc::ptr_eq(&self.summaries, cx.summaries) {
            self.adopt_summaries(cx);
        }
    }

    /// A member asks for everything again (RFC 2918), or shall have it.
    pub(crate) fn refresh(&mut self, peer: PeerIx, refresh: Refresh) {
        if let Some(member) = self.members.get_mut(&peer) {
            member.refresh = Some(refresh);
            self.seen = None;
        }
    }
}

/// Questions.
impl Group {
    /// How many paths `member` has been told of, or is about to be.
    pub(crate) fn announced_to(&self, member: PeerIx) -> u64 {
        if self.members.contains_key(&member) { self.told.announced_to(member) } else { 0 }
    }

    /// Octets that are encoded and wait for members to read them.
    pub(crate) fn waiting_octets(&self) -> u64 {
        let own = self.members.values().flat_map(|member| &member.own).map(|(bytes, _)| bytes.len());
        (self.ring.octets() + own.sum::<usize>()) as u64
    }

    /// Whether `member` has had its End-of-RIB.
    pub(crate) fn end_of_rib_sent(&self, member: PeerIx) -> bool {
        self.members.get(&member).is_some_and(|member| !member.end_of_rib_owed)
    }

    /// What `member` has been told of `dest`: each route, with its path identifier where it has one, and what export makes
    /// of it.
    pub(crate) fn told<K: ExportKey>(
        &self,
        member: PeerIx,
        dest: DestId,
        cx: &Cx<'_, K>,
    ) -> SmallVec<[(Option<PathId>, Told, Form); 1]> {
        let judge = |id, told: Told| {
            let form = cx.judge(&self.filter, &self.key, cx.table.key(dest), told).ok()?;
            (told.origin.peer() != Some(member)).then_some((id, told, form))
        };
        match self.key.rules.paths {
            None => self.told.told(dest).and_then(|told| judge(None, told)).into_iter().collect(),
            Some(_) => self
                .told
                .paths(dest)
                .filter_map(|(source, told)| judge(Some(path_id(source)), told?))
                .collect(),
        }
    }

    /// Why a member is told nothing of a destination, by the rules that told it so.
    pub(crate) fn why_not<K: ExportKey>(&self, member: PeerIx, dest: DestId, cx: &Cx<'_, K>) -> WhyNot<'_> {
        let Some(best) = cx.best(dest) else { return WhyNot::NoRoute };
        if best.origin.peer() == Some(member) {
            return WhyNot::FromThere;
        }
        if self.summaries.stand_for(cx.table.key(dest)) {
            return WhyNot::Summarised;
        }
        match cx.judge(&self.filter, &self.key, cx.table.key(dest), best) {
            Err(withheld) => WhyNot::Withheld(withheld),
            Ok(_) if self.is_behind(cx) || self.busy => WhyNot::Pending,
            Ok(_) if self.holds_back() => WhyNot::Limit,
            Ok(_) => WhyNot::TooLarge,
        }
    }

    /// Whether there may be something for a member that has read everything.
    pub(crate) fn is_behind<K: ExportKey>(&self, cx: &Cx<'_, K>) -> bool {
        self.review.is_some() || cx.table.pending(self.head) || !Arc::ptr_eq(&self.summaries, cx.summaries)
    }

    /// Whether [`Group::work`] is waited for.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// `peer`'s writer has written everything and is to be woken when there is more.
    pub(crate) fn set_idle(&mut self, peer: PeerIx) {
        if let Some(member) = self.members.get_mut(&peer)
            && !member.idle
        {
            member.idle = true;
            self.idle.push(peer);
        }
    }

    /// The members to wake now, if any; each is named once until it is idle again. Whatever gives an idle member something
    /// to read shows in [`Seen`], or forgets what was seen.
    pub(crate) fn wake<K: ExportKey>(&mut self, loaded: bool, cx: &Cx<'_, K>, out: &mut Vec<PeerIx>) {
        if self.idle.is_empty() || self.busy {
            return;
        }
        let behind = self.is_behind(cx);
        let (members, end) = (&mut self.members, self.ring.end());
        let seen = Some(Seen { end, loaded }).filter(|_| !behind);
        let asleep = if seen.is_some() && seen == self.seen { self.asleep } else { 0 };
        let mut awake = self.idle.split_off(asleep);
        awake.retain(|peer| {
            let Some(member) = members.get_mut(peer) else { return false };
            let more = match member.at {
                At::Ring(position) => position < end || behind,
                At::Walk(_) => true,
            };
            let marker = member.repeating || member.may_refresh();
            if more || !member.own.is_empty() || marker || (loaded && member.end_of_rib_owed) {
                member.idle = false;
                out.push(*peer);
            }
            member.idle
        });
        self.idle.append(&mut awake);
        self.asleep = self.idle.len();
        self.seen = seen;
    }
}

/// Bytes.
impl Group {
    /// Appends the next chunks for a member to `into`, about `max` octets. `budget` counts destinations looked at; when it
    /// is used up the answer is [`Next::Busy`].
    pub(crate) fn next<K: ExportKey>(
        &mut self,
        peer: PeerIx,
        loaded: bool,
        max: usize,
        budget: &mut usize,
        into: &mut Vec<Bytes>,
        cx: &mut Cx<'_, K>,
    ) -> Next {
        loop {
            let behind = self.is_behind(cx);
            let Some(member) = self.members.get_mut(&peer) else { return Next::Nothing };
            if let Some((bytes, messages)) = member.own.pop_front() {
                let octets = bytes.len();
                into.push(bytes);
                return Next::Updates(octets, messages);
            }
            let At::Ring(position) = &mut member.at else {
                if *budget == 0 {
                    self.busy = true;
                    return Next::Busy;
                }
                *budget = budget.saturating_sub(self.walk(peer, cx));
                continue;
            };
            let at = *position;
            if member.repeating {
                // The walk that said everything again is over, and what it found has been read.
                member.repeating = false;
                return Next::Marker(self.marker(RouteRefresh::END));
            }
            if at < self.ring.end() {
                let read = self.ring.read(at, peer, max, into);
                *position = read.position;
                self.pin(cx);
                if read.messages > 0 {
                    return Next::Updates(read.octets, read.messages);
                }
            } else if member.may_refresh() {
                let marked = member.refresh.take() == Some(Refresh::Marked);
                member.repeating = marked;
                let cursor = cx.table.fork_cursor(self.head);
                let had = self.had_by_now();
                if let Some(member) = self.members.get_mut(&peer) {
                    member.at = At::Walk(Walk { cursor, next: Some(0) });
                    member.had = had;
                }
                self.leave_ring(at, cx);
                if marked {
                    return Next::Marker(self.marker(RouteRefresh::BEGIN));
                }
            } else if behind {
                if *budget == 0 {
                    self.busy = true;
                    return Next::Busy;
                }
                *budget = budget.saturating_sub(self.advance(cx));
            } else if loaded && member.end_of_rib_owed {
                member.end_of_rib_owed = false;
                let bytes = self.end_of_rib();
                let octets = bytes.len();
                into.push(bytes);
                return Next::Updates(octets, 1);
            } else {
                return Next::Nothing;
            }
        }
    }

    /// Does some of the work that did not fit into a turn. Says how many destinations were looked at.
    pub(crate) fn work<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) -> usize {
        self.busy = false;
        if self.is_behind(cx) { self.advance(cx) } else { 1 }
    }

    fn marker(&self, subtype: u8) -> Bytes {
        let mut buffer = BytesMut::new();
        RouteRefresh::new(self.key.rules.family, subtype).encode(&mut buffer);
        buffer.freeze()
    }

    fn end_of_rib(&self) -> Bytes {
        let mut buffer = BytesMut::new();
        UpdateWriter::new(&mut buffer, self.key.rules.encoding()).end_of_rib(self.key.rules.family);
        buffer.freeze()
    }
}
