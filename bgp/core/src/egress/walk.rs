//! How members of an update group catch up that came late, asked again or fell off the ring.

use bgp_wire::PathId;

use super::cx::Cx;
use super::dests::Dests;
use super::field::ExportKey;
use super::group::{At, Group, STEP, Walk};
use super::queue::{RunKey, Scope};
use crate::peer_key::PeerIx;
use crate::rib::{DestId, SourceId};

/// What a member that catches up may have been told: nothing else has to be taken back.
#[derive(Debug, Default)]
pub(super) struct Had {
    /// Where a path was announced to it; `None`: anywhere. In a group that is told several paths no destination stands
    /// here: either everything is still announced that it was told of, or it may be any trace.
    pub(super) dests: Option<Dests>,
    /// It had not read everything when its walk began, so of what the log shows from there it may have been told, too.
    pub(super) behind: bool,
    /// Paths that it may have been told of in the group that it came from, by destination (RFC 7911).
    pub(super) paths: Vec<(DestId, SourceId)>,
}

impl Had {
    /// Nothing yet.
    pub(super) fn nothing() -> Self {
        Self { dests: Some(Dests::default()), ..Self::default() }
    }

    /// Nobody knows.
    pub(super) fn anything() -> Self {
        Self { behind: true, ..Self::default() }
    }

    fn may_hold(&self, dest: DestId) -> bool {
        self.dests.as_ref().is_none_or(|dests| dests.contains(dest))
    }

    fn note(&mut self, dest: DestId, announced: bool) {
        match &mut self.dests {
            Some(dests) if announced => dests.insert(dest),
            Some(dests) => dests.remove(dest),
            None => {}
        }
    }
}

impl Group {
    /// What a member holds that has read all there is.
    pub(super) fn had_by_now(&self) -> Had {
        let dests = match self.key.rules.paths {
            None => Some(self.told.announced().clone()),
            // A review that is under way leaves traces.
            Some(_) => self.review.is_none().then(Dests::default),
        };
        Had { dests, ..Had::default() }
    }

    /// Whoever walks begins again when a review is over, since the log does not show what that does.
    pub(super) fn walk_again(&mut self) {
        for member in self.members.values_mut() {
            if let At::Walk(walk) = &mut member.at {
                walk.next = Some(0);
                if self.key.rules.paths.is_some() {
                    member.had.dests = None;
                }
            }
        }
    }

    /// Goes on with a member's walk. Says how many destinations were looked at, at least 1.
    pub(super) fn walk<K: ExportKey>(&mut self, peer: PeerIx, cx: &mut Cx<'_, K>) -> usize {
        let Some(At::Walk(mut walk)) = self.members.get(&peer).map(|member| member.at) else { return 1 };
        // The group goes first, for three reasons. What a review does, the log does not show. Whoever takes things back
        // must not take back what the group merely has not looked at yet. And of a destination that has changed again
        // the log shows the last change only: if the group had not come to that one, and then found that it makes no
        // difference, the walk would miss the one before.
        if self.is_behind(cx) {
            return self.advance(cx);
        }
        // Given back below.
        let mut had =
            self.members.get_mut(&peer).map(|member| std::mem::take(&mut member.had)).unwrap_or_default();
        let mut seen = 1;
        let mut caught_up = false;
        while seen < STEP && !cx.scratch.queue.is_full() && !caught_up {
            seen += 1;
            match walk.next {
                Some(at) if at < cx.table.len_ids() => {
                    walk.next = Some(at + 1);
                    self.repeat(peer, DestId::from_index(at), &mut had, false, cx);
                }
                Some(_) => walk.next = None,
                None => match cx.table.next_change(walk.cursor) {
                    Some((_, dest)) => self.repeat(peer, dest, &mut had, true, cx),
                    None => caught_up = true,
                },
            }
        }
        cx.stats.looked_at += seen as u64;
        self.encode(cx);
        let end = self.ring.end();
        if let Some(member) = self.members.get_mut(&peer) {
            member.own.extend(cx.scratch.chunks.drain(..).map(|(bytes, messages, _)| (bytes, messages)));
            member.at = if caught_up { At::Ring(end) } else { At::Walk(walk) };
            if !caught_up {
                member.had = had;
            }
        }
        if caught_up {
            self.in_ring += 1;
            cx.table.remove_cursor(walk.cursor);
            self.tidy();
        }
        seen
    }

    /// Queues what a member should know of a destination; `logged`: the log shows a change of it.
    fn repeat<K: ExportKey>(
        &mut self,
        peer: PeerIx,
        dest: DestId,
        had: &mut Had,
        logged: bool,
        cx: &mut Cx<'_, K>,
    ) {
        if !cx.table.is_live(dest) {
            return;
        }
        if self.key.rules.paths.is_some() {
            let paths = if logged { &[] } else { &*had.paths };
            return self.repeat_paths(peer, dest, logged || had.dests.is_none(), paths, cx);
        }
        let key = cx.table.key(dest);
        let told = self.told.told(dest);
        let own = told.is_some_and(|told| told.origin.peer() == Some(peer));
        let told = told.filter(|_| !own);
        let form = told.and_then(|told| Some((told, cx.judge_in_batch(&self.filter, &self.key, key, told)?)));
        match form {
            Some((told, form)) => {
                let run = RunKey { attr: Some(told.attr), form, scope: Scope::All };
                cx.scratch.queue.push(run, (PathId::NONE, key));
                had.note(dest, true);
            }
            // What it was told of a destination before its own path became the best one is taken back when the log
            // shows that.
            None if own && !logged => {}
            None => {
                if had.may_hold(dest) || logged && had.behind {
                    cx.scratch.queue.push(RunKey::WITHDRAW, (PathId::NONE, key));
                }
                had.note(dest, false);
            }
        }
    }

    /// Takes members off the ring that hold up more than it may keep. They read on in the log.
    pub(super) fn drop_slow<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) {
        while self.ring.is_over_limit() {
            let first = self.ring.first();
            let Self { members, ring, tail, review, .. } = self;
            let next = (review.is_some() || ring.has_unlogged_from(first)).then_some(0);
            let mut slow = 0;
            for member in
                members.values_mut().filter(|member| matches!(member.at, At::Ring(at) if at == first))
            {
                let cursor = cx.table.fork_cursor(*tail);
                member.at = At::Walk(Walk { cursor, next });
                member.had = Had::anything();
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
    pub(super) fn leave_ring<K: ExportKey>(&mut self, position: u64, cx: &mut Cx<'_, K>) {
        self.in_ring -= 1;
        self.ring.leave(position);
        self.pin(cx);
    }

    /// Lets go of that part of the log that no chunk of the ring is from.
    #[inline]
    pub(super) fn pin<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) {
        let seq = self.ring.log().unwrap_or_else(|| cx.table.cursor_seq(self.head));
        if seq != self.tail_seq {
            self.tail_seq = seq;
            cx.table.advance_cursor(self.tail, seq);
        }
        self.tidy();
    }

    /// Lets go of what only members had to know that were catching up.
    #[inline]
    fn tidy(&mut self) {
        if self.members.len() == self.in_ring as usize {
            self.told.tidy(self.ring.first());
        }
    }
}
