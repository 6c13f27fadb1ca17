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
//! No member is told of a route that came from itself; chunks carry a scope for that.

use std::collections::{BTreeMap, VecDeque};

use bgp_wire::UpdateWriter;
use bytes::{Bytes, BytesMut};

use super::adj_out::{AdjOut, Origin, Told};
use super::cx::{Cx, Filter, Form, Scratch, write_section};
use super::export::Rules;
use super::field::ExportKey;
use super::queue::{Queue, RunKey, Scope};
use super::ring::{Chunk, Ring};
use crate::command::Policy;
use crate::peer_key::{PeerIx, PeerKey};
use crate::rib::{AttrStore, CursorId, DestId};

/// Every input of the export path beside the route itself. Peers of equal keys share a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupKey {
    /// The rules of the session.
    pub(crate) rules: Rules,
    /// The policy, by name: its text may change while the group stands.
    pub(crate) policy: Policy,
    /// Set for a peer that is told something of its own: originations name it, or its policy asks who it is.
    pub(crate) alone: Option<PeerKey>,
}

/// One update group of one family.
#[derive(Debug)]
pub(crate) struct Group {
    key: GroupKey,
    filter: Filter,
    /// How far the group has followed the change log.
    head: CursorId,
    /// Pins the change log at the oldest chunk of the ring.
    tail: CursorId,
    tail_seq: u64,
    /// A pass over all destinations that is under way, beside the log.
    review: Option<Review>,
    told: AdjOut,
    ring: Ring,
    members: BTreeMap<PeerIx, Member>,
    in_ring: u32,
    /// Members whose writers wait to be woken.
    idle: Vec<PeerIx>,
    /// Somebody waits for work that does not fit into a turn.
    busy: bool,
}

#[derive(Debug)]
struct Review {
    next: usize,
    why: Why,
}

#[derive(Debug)]
enum Why {
    /// The group is new.
    New,
    /// The policy has changed; this one was in force before.
    Policy(Filter),
    /// Everything is to be said again.
    Everything,
}

#[derive(Debug)]
struct Member {
    at: At,
    /// Chunks of its own, to be read before those of the ring.
    own: VecDeque<(Bytes, u32)>,
    refresh: bool,
    end_of_rib_owed: bool,
    idle: bool,
}

#[derive(Copy, Clone, Debug)]
enum At {
    /// The next chunk of the ring.
    Ring(u64),
    Walk(Walk),
}

#[derive(Copy, Clone, Debug)]
struct Walk {
    /// Where in the log the walk goes on after the pass.
    cursor: CursorId,
    /// The next destination of a pass over all of them; absent when the pass is over.
    next: Option<usize>,
    /// The member may have been told of routes that are not announced any more: the pass takes them back.
    withdraw: bool,
}

/// What a peer takes along from one group to another.
#[derive(Debug)]
pub(crate) struct Moved {
    /// Everything before this place of the change log has been told or need not be.
    cursor: CursorId,
    end_of_rib_owed: bool,
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
    /// UPDATE messages, so many of them.
    Updates(Bytes, u32),
    /// It takes longer: there will be more after [`Group::work`].
    Busy,
    /// Nothing until something changes.
    Nothing,
}

/// Destinations looked at in one go.
const STEP: usize = 2 * Queue::<u32>::CAPACITY;
/// A chunk is cut when it has reached this many octets.
const CHUNK: usize = if cfg!(test) { 1024 } else { 60 * 1024 };

/// Members.
impl Group {
    /// A group without members. It will look at every destination first.
    pub(crate) fn new<K: ExportKey>(key: GroupKey, filter: Filter, cx: &mut Cx<'_, K>) -> Self {
        let head = cx.table.add_cursor();
        let tail = cx.table.fork_cursor(head);
        Self {
            key,
            filter,
            head,
            tail,
            tail_seq: cx.table.cursor_seq(tail),
            review: Some(Review { next: 0, why: Why::New }),
            told: AdjOut::new(),
            ring: Ring::new(),
            members: BTreeMap::new(),
            in_ring: 0,
            idle: Vec::new(),
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
        // Whoever is there before anything has been encoded reads everything from the ring.
        let at = if self.ring.end() == 0 {
            self.in_ring += 1;
            At::Ring(0)
        } else {
            let cursor = cx.table.fork_cursor(self.head);
            At::Walk(Walk { cursor, next: Some(0), withdraw: false })
        };
        self.insert(peer, at, true);
    }

    /// Adds a peer that comes from another group: it is told what this group announces and takes back everything else.
    pub(crate) fn move_in(&mut self, peer: PeerIx, moved: Moved) {
        let Moved { cursor, end_of_rib_owed } = moved;
        let walk = Walk { cursor, next: Some(0), withdraw: true };
        self.insert(peer, At::Walk(walk), end_of_rib_owed);
    }

    fn insert(&mut self, peer: PeerIx, at: At, end_of_rib_owed: bool) {
        let member = Member { at, own: VecDeque::new(), refresh: false, end_of_rib_owed, idle: false };
        let before = self.members.insert(peer, member);
        debug_assert!(before.is_none(), "a peer joined twice");
    }

    /// Takes a peer out.
    pub(crate) fn leave<K: ExportKey>(&mut self, peer: PeerIx, cx: &mut Cx<'_, K>) -> Option<Moved> {
        let member = self.members.remove(&peer)?;
        self.idle.retain(|other| *other != peer);
        let cursor = match member.at {
            At::Ring(position) => {
                let cursor = cx.table.fork_cursor(self.tail);
                self.leave_ring(position, cx);
                cursor
            }
            At::Walk(walk) => walk.cursor,
        };
        Some(Moved { cursor, end_of_rib_owed: member.end_of_rib_owed })
    }

    /// Ends the group. What it had told is still counted in the attribute store: see [`release_step`].
    pub(crate) fn dissolve<K: ExportKey>(self, cx: &mut Cx<'_, K>) -> AdjOut {
        debug_assert!(self.members.is_empty(), "a group is dissolved under its members");
        cx.table.remove_cursor(self.head);
        cx.table.remove_cursor(self.tail);
        self.told
    }

    /// The policy reads differently now: what is announced differently because of it is announced again or withdrawn,
    /// and nothing else is said (RFC 4271 section 9.1.3).
    pub(crate) fn refilter(&mut self, filter: Filter) {
        let old = std::mem::replace(&mut self.filter, filter);
        let why = match &self.review {
            None => Why::Policy(old),
            Some(Review { why: Why::New, next: 0 }) => return,
            // Some destinations stand under the policy before last.
            Some(_) => Why::Everything,
        };
        self.review = Some(Review { next: 0, why });
        // The log does not show what a review does, so whoever walks has to begin again when it is over.
        for member in self.members.values_mut() {
            if let At::Walk(walk) = &mut member.at {
                walk.next = Some(0);
                walk.withdraw = true;
            }
        }
    }

    /// A member asks for everything again (RFC 2918), or shall have it.
    pub(crate) fn refresh(&mut self, peer: PeerIx) {
        if let Some(member) = self.members.get_mut(&peer) {
            member.refresh = true;
        }
    }
}

/// Questions.
impl Group {
    /// How many destinations `member` has been told of, or is about to be.
    pub(crate) fn announced_to(&self, member: PeerIx) -> u64 {
        if self.members.contains_key(&member) { self.told.announced_to(member) } else { 0 }
    }

    /// Whether `member` has had its End-of-RIB.
    pub(crate) fn end_of_rib_sent(&self, member: PeerIx) -> bool {
        self.members.get(&member).is_some_and(|member| !member.end_of_rib_owed)
    }

    /// What `member` has been told of `dest`: the route, and what export makes of it.
    pub(crate) fn told<K: ExportKey>(
        &self,
        member: PeerIx,
        dest: DestId,
        cx: &Cx<'_, K>,
    ) -> Option<(Told, Form)> {
        let told = self.told.told(dest).filter(|told| told.origin.peer() != Some(member))?;
        let form = cx.judge(&self.filter, &self.key, cx.table.key(dest), told)?;
        Some((told, form))
    }

    /// Whether there may be something for a member that has read everything.
    pub(crate) fn is_behind<K: ExportKey>(&self, cx: &Cx<'_, K>) -> bool {
        self.review.is_some() || cx.table.pending(self.head)
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

    /// The members to wake now, if any; each is named once until it is idle again.
    pub(crate) fn wake<K: ExportKey>(&mut self, loaded: bool, cx: &Cx<'_, K>, out: &mut Vec<PeerIx>) {
        if self.idle.is_empty() || self.busy {
            return;
        }
        let behind = self.is_behind(cx);
        let (members, end) = (&mut self.members, self.ring.end());
        self.idle.retain(|peer| {
            let Some(member) = members.get_mut(peer) else { return false };
            let more = match member.at {
                At::Ring(position) => position < end || behind,
                At::Walk(_) => true,
            };
            if more || !member.own.is_empty() || member.refresh || (loaded && member.end_of_rib_owed) {
                member.idle = false;
                out.push(*peer);
            }
            member.idle
        });
    }
}

/// Bytes.
impl Group {
    /// The next bytes for a member. `budget` counts destinations looked at; when it is used up the answer is
    /// [`Next::Busy`].
    pub(crate) fn next<K: ExportKey>(
        &mut self,
        peer: PeerIx,
        loaded: bool,
        budget: &mut usize,
        cx: &mut Cx<'_, K>,
    ) -> Next {
        loop {
            let behind = self.is_behind(cx);
            let Some(member) = self.members.get_mut(&peer) else { return Next::Nothing };
            if let Some((bytes, messages)) = member.own.pop_front() {
                return Next::Updates(bytes, messages);
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
            if let Some(chunk) = self.ring.read(at) {
                *position += 1;
                self.pin(cx);
                if chunk.scope.includes(peer) {
                    return Next::Updates(chunk.bytes, chunk.messages);
                }
            } else if member.refresh {
                member.refresh = false;
                let cursor = cx.table.fork_cursor(self.head);
                // A review that is under way may take back what the member has.
                let withdraw = self.review.is_some();
                member.at = At::Walk(Walk { cursor, next: Some(0), withdraw });
                self.leave_ring(at, cx);
            } else if behind {
                if *budget == 0 {
                    self.busy = true;
                    return Next::Busy;
                }
                *budget = budget.saturating_sub(self.advance(cx));
            } else if loaded && member.end_of_rib_owed {
                member.end_of_rib_owed = false;
                return Next::Updates(self.end_of_rib(), 1);
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

    fn end_of_rib(&self) -> Bytes {
        let mut buffer = BytesMut::new();
        UpdateWriter::new(&mut buffer, self.key.rules.encoding()).end_of_rib(self.key.rules.family);
        buffer.freeze()
    }

    /// Takes the next batch of changes, encodes it and puts it into the ring. Says how many destinations were looked
    /// at, at least 1.
    fn advance<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) -> usize {
        let log = cx.table.cursor_seq(self.head);
        let unlogged = self.review.is_some();
        let mut seen = 1;
        while seen < STEP && !cx.scratch.queue.is_full() {
            seen += 1;
            if let Some(review) = &mut self.review {
                if review.next < cx.table.len_ids() {
                    let dest = DestId::from_index(review.next);
                    review.next += 1;
                    self.consider(dest, true, cx);
                } else {
                    self.review = None;
                }
            } else if let Some((_, dest)) = cx.table.next_change(self.head) {
                self.consider(dest, false, cx);
            } else {
                break;
            }
        }
        if self.in_ring > 0 {
            self.encode(cx);
            let mut chunks = std::mem::take(&mut cx.scratch.chunks);
            for (bytes, messages, scope) in chunks.drain(..) {
                cx.stats.encoded_octets += bytes.len() as u64;
                self.ring.push(Chunk { bytes, messages, scope, log, unlogged }, self.in_ring);
            }
            cx.scratch.chunks = chunks;
            self.drop_slow(cx);
        } else {
            cx.scratch.clear();
        }
        self.pin(cx);
        seen
    }

    /// Compares what is true of a destination with what was told, and queues the difference.
    #[inline]
    fn consider<K: ExportKey>(&mut self, dest: DestId, review: bool, cx: &mut Cx<'_, K>) {
        let told = self.told.told(dest);
        let best = cx.best(dest);
        if told.is_none() && best.is_none() {
            return;
        }
        let key = cx.table.key(dest);
        let want = best.and_then(|best| Some((best, cx.judge_in_batch(&self.filter, &self.key, key, best)?)));
        match (told, want) {
            (None, None) => {}
            (Some(told), Some((best, form)))
                if told == best && !(review && self.differs(key, told, form, cx)) => {}
            (told, Some((best, form))) => {
                let scope = self.all_but(best.origin);
                cx.scratch.queue.push(RunKey { attr: Some(best.attr), form, scope }, key);
                cx.attrs.retain(best.attr, 1);
                if let Some(told) = told {
                    // Who sent us the new route would keep the older one, of somebody else's, if it was not taken back.
                    if told.origin.peer() != best.origin.peer()
                        && let Scope::Except(peer) = scope
                    {
                        cx.scratch.queue.push(RunKey { scope: Scope::Only(peer), ..RunKey::WITHDRAW }, key);
                    }
                    cx.attrs.release(told.attr, 1);
                }
                self.told.set(dest, Some(best));
            }
            (Some(told), None) => {
                cx.scratch.queue.push(RunKey { scope: self.all_but(told.origin), ..RunKey::WITHDRAW }, key);
                cx.attrs.release(told.attr, 1);
                self.told.set(dest, None);
            }
        }
    }

    /// Whether a review has to say again what was told already.
    fn differs<K: ExportKey>(&self, key: K, told: Told, form: u32, cx: &Cx<'_, K>) -> bool {
        match self.review.as_ref().map(|review| &review.why) {
            None | Some(Why::New) => false,
            Some(Why::Everything) => true,
            Some(Why::Policy(old)) => {
                cx.judge(old, &self.key, key, told).as_ref() != cx.scratch.forms.form(form)
            }
        }
    }

    /// Everyone in the group but the one that a route came from.
    fn all_but(&self, origin: Origin) -> Scope {
        match origin.peer() {
            Some(peer) if self.members.contains_key(&peer) => Scope::Except(peer),
            Some(_) | None => Scope::All,
        }
    }

    /// Encodes the queued prefixes into `cx.scratch.chunks` and forgets them.
    fn encode<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) {
        let Scratch { queue, forms, buffer, chunks, section } = &mut *cx.scratch;
        queue.sort();
        let mut messages = 0;
        let mut scope = Scope::All;
        for n in 0..queue.runs() {
            let key = queue.key(n);
            if messages > 0 && (key.scope != scope || buffer.len() >= CHUNK) {
                chunks.push((buffer.split().freeze(), messages, scope));
                messages = 0;
            }
            scope = key.scope;
            let mut writer = UpdateWriter::new(buffer, self.key.rules.encoding());
            let Some(attr) = key.attr else {
                messages += K::withdraw(&mut writer, queue.prefixes(n));
                continue;
            };
            cx.stats.exports += 1;
            let next_hop = forms
                .form(key.form)
                .and_then(|form| write_section(&self.key, form, cx.attrs.set(attr), section));
            let written =
                next_hop.map(|hop| K::announce(&mut writer, &section.bytes, hop, queue.prefixes(n)));
            if let Some(Ok(count)) = written {
                messages += count;
                continue;
            }
            // It does not fit into a message, so nobody may go on believing what was told before.
            messages += K::withdraw(&mut writer, queue.prefixes(n));
            for dest in queue.prefixes(n).filter_map(|prefix| cx.table.find(prefix)) {
                cx.stats.too_large += 1;
                if self.told.told(dest).is_some_and(|told| told.attr == attr) {
                    self.told.set(dest, None);
                    cx.attrs.release(attr, 1);
                }
            }
        }
        if messages > 0 {
            chunks.push((buffer.split().freeze(), messages, scope));
        }
        cx.scratch.clear();
    }
}

/// Those who are behind.
impl Group {
    /// Goes on with a member's walk. Says how many destinations were looked at, at least 1.
    fn walk<K: ExportKey>(&mut self, peer: PeerIx, cx: &mut Cx<'_, K>) -> usize {
        let Some(At::Walk(mut walk)) = self.members.get(&peer).map(|member| member.at) else { return 1 };
        // The group goes first, for three reasons. What a review does, the log does not show. Whoever takes things back
        // must not take back what the group merely has not looked at yet. And of a destination that has changed again
        // the log shows the last change only: if the group had not come to that one, and then found that it makes no
        // difference, the walk would miss the one before.
        if self.is_behind(cx) {
            return self.advance(cx);
        }
        let mut seen = 1;
        let mut caught_up = false;
        while seen < STEP && !cx.scratch.queue.is_full() && !caught_up {
            seen += 1;
            match walk.next {
                Some(at) if at < cx.table.len_ids() => {
                    walk.next = Some(at + 1);
                    self.repeat(peer, DestId::from_index(at), walk.withdraw, cx);
                }
                Some(_) => walk.next = None,
                None => match cx.table.next_change(walk.cursor) {
                    Some((_, dest)) => self.repeat(peer, dest, true, cx),
                    None => caught_up = true,
                },
            }
        }
        self.encode(cx);
        let end = self.ring.end();
        if let Some(member) = self.members.get_mut(&peer) {
            member.own.extend(cx.scratch.chunks.drain(..).map(|(bytes, messages, _)| (bytes, messages)));
            member.at = if caught_up { At::Ring(end) } else { At::Walk(walk) };
        }
        if caught_up {
            self.in_ring += 1;
            cx.table.remove_cursor(walk.cursor);
        }
        seen
    }

    /// Queues what a member should know of a destination.
    fn repeat<K: ExportKey>(&mut self, peer: PeerIx, dest: DestId, withdraw: bool, cx: &mut Cx<'_, K>) {
        if !cx.table.is_live(dest) {
            return;
        }
        let key = cx.table.key(dest);
        let told = self.told.told(dest).filter(|told| told.origin.peer() != Some(peer));
        let form = told.and_then(|told| Some((told, cx.judge_in_batch(&self.filter, &self.key, key, told)?)));
        match form {
            Some((told, form)) => {
                let run = RunKey { attr: Some(told.attr), form, scope: Scope::All };
                cx.scratch.queue.push(run, key);
            }
            None if withdraw => cx.scratch.queue.push(RunKey::WITHDRAW, key),
            None => {}
        }
    }

    /// Takes members off the ring that hold up more than it may keep. They read on in the log.
    fn drop_slow<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) {
        while self.ring.is_over_limit() {
            let first = self.ring.first();
            let Self { members, ring, tail, review, .. } = self;
            let next = (review.is_some() || ring.has_unlogged_from(first)).then_some(0);
            let mut slow = 0;
            for member in
                members.values_mut().filter(|member| matches!(member.at, At::Ring(at) if at == first))
            {
                let cursor = cx.table.fork_cursor(*tail);
                member.at = At::Walk(Walk { cursor, next, withdraw: true });
                slow += 1;
            }
            cx.stats.fell_behind += slow;
            for _ in 0..slow {
                self.leave_ring(first, cx);
            }
            debug_assert!(slow > 0, "a chunk that nobody has to read is still there");
        }
    }

    /// Counts a member out of the ring.
    fn leave_ring<K: ExportKey>(&mut self, position: u64, cx: &mut Cx<'_, K>) {
        self.in_ring -= 1;
        self.ring.leave(position);
        self.pin(cx);
    }

    /// Lets go of that part of the log that no chunk of the ring is from.
    #[inline]
    fn pin<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) {
        let seq = self.ring.log().unwrap_or_else(|| cx.table.cursor_seq(self.head));
        if seq != self.tail_seq {
            self.tail_seq = seq;
            cx.table.advance_cursor(self.tail, seq);
        }
    }
}

/// Gives back up to `budget` references of what a dissolved group had told, from destination `*next` on. True when
/// there are none left.
pub(crate) fn release_step(
    told: &mut AdjOut,
    next: &mut usize,
    budget: usize,
    attrs: &mut AttrStore,
) -> bool {
    let end = told.len().min(*next + budget);
    for at in *next..end {
        let dest = DestId::from_index(at);
        if let Some(told) = told.told(dest) {
            attrs.release(told.attr, 1);
        }
    }
    *next = end;
    end == told.len()
}
