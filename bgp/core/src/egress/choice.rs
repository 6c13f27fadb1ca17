//! Which paths of a destination a group is told that takes several (RFC 7911), and the difference to what it was told.
//!
//! Of the paths that take part in the decision those that survive export are told, at most as many as the group's key
//! says: the best path of the Loc-RIB first (RFC 7911 section 5: it should be among them), then in the order of the
//! decision. As with one path, nobody is told what came from itself, and nobody gets another path in its place.
//!
//! A path goes by its source, whose number is the path identifier: it stays the same while the path lives.

use bgp_wire::PathId;
use smallvec::SmallVec;

use super::adj_out::Told;
use super::cx::{Cx, Filter};
use super::field::ExportKey;
use super::group::{Group, GroupKey};
use super::queue::{RunKey, Scope};
use crate::peer_key::PeerIx;
use crate::rib::{Context, DestId, SourceId};

/// A path that is told, and the number of what export makes of it among the forms of the batch.
struct Choice {
    source: SourceId,
    told: Told,
    form: u32,
}

type Choices = SmallVec<[Choice; 4]>;

/// The identifier of a path on the wire.
pub(super) const fn path_id(source: SourceId) -> PathId {
    PathId(source.index() as u32)
}

/// The source that an identifier on the wire stands for.
pub(super) const fn source(path_id: PathId) -> SourceId {
    SourceId::from_index(path_id.0)
}

impl<K: ExportKey> Cx<'_, K> {
    fn choose(&mut self, filter: &Filter, group: &GroupKey, dest: DestId, max: usize) -> Choices {
        let best = self.table.best(dest).map(|best| best.path.source());
        let cx = Context { attrs: &mut *self.attrs, sources: self.sources };
        let usable: SmallVec<[_; 8]> = self.table.usable(dest, &cx).collect();
        let key = self.table.key(dest);
        let mut choices = Choices::new();
        for (source, attr) in usable {
            let told = Told { attr, origin: self.origin(source) };
            if let Some(form) = self.judge_in_batch(filter, group, key, told) {
                choices.push(Choice { source, told, form });
            }
        }
        if choices.len() > max {
            let paths: SmallVec<[_; 8]> =
                choices.iter().map(|choice| (choice.source, choice.told.attr)).collect();
            let best_first = choices.first().map(|choice| choice.source) == best;
            let cx = Context { attrs: &mut *self.attrs, sources: self.sources };
            let mut chosen = self.table.rank(dest, &paths, best_first, max, &cx);
            chosen.sort_unstable();
            let mut at = 0;
            choices.retain(|_| {
                at += 1;
                chosen.binary_search(&(at - 1)).is_ok()
            });
        }
        choices
    }
}

impl Group {
    /// Compares the paths of a destination with those that were told, and queues the difference.
    pub(super) fn consider_paths<K: ExportKey>(
        &mut self,
        dest: DestId,
        max: usize,
        review: bool,
        cx: &mut Cx<'_, K>,
    ) {
        if !cx.table.is_live(dest) && self.told.paths(dest).next().is_none() {
            return;
        }
        if cx.table.best(dest).is_none() && review && self.will_hear(dest, cx) {
            return;
        }
        let key = cx.table.key(dest);
        let want = if self.summaries.stand_for(key) {
            Choices::new()
        } else {
            cx.choose(&self.filter, &self.key, dest, max)
        };
        let gone: SmallVec<[(SourceId, Told); 4]> = self
            .told
            .paths(dest)
            .filter_map(|(source, told)| Some((source, told?)))
            .filter(|(source, _)| want.iter().all(|choice| choice.source != *source))
            .collect();
        for (source, told) in gone {
            self.take_back(dest, source, told, key, cx);
        }
        for Choice { source, told: now, form } in want {
            let before = self.told.path(dest, source);
            if let Some(told) = before
                && told == now
                && !(review && self.differs(key, told, form, cx))
            {
                continue;
            }
            if self.holds_back_from(now.origin, before.map(|told| told.origin)) {
                continue;
            }
            let item = (path_id(source), key);
            if !self.may_take_a_place(now, form, key, cx) {
                if let Some(told) = before {
                    self.take_back(dest, source, told, key, cx);
                }
                continue;
            }
            let scope = self.all_but(now.origin);
            cx.scratch.queue.push(RunKey { attr: Some(now.attr), form, scope }, item);
            cx.attrs.retain(now.attr, 1);
            if let Some(told) = before {
                // The number may have been somebody else's.
                if told.origin.peer() != now.origin.peer()
                    && let Scope::Except(peer) = scope
                {
                    cx.scratch.queue.push(RunKey { scope: Scope::Only(peer), ..RunKey::WITHDRAW }, item);
                    self.note_room();
                }
                cx.attrs.release(told.attr, 1);
            }
            self.told.set_path(dest, source, Some(now));
        }
    }

    /// Withdraws a path that was told.
    fn take_back<K: ExportKey>(
        &mut self,
        dest: DestId,
        source: SourceId,
        told: Told,
        key: K,
        cx: &mut Cx<'_, K>,
    ) {
        let run = RunKey { scope: self.all_but(told.origin), ..RunKey::WITHDRAW };
        cx.scratch.queue.push(run, (path_id(source), key));
        self.told.set_path(dest, source, None);
        cx.attrs.release(told.attr, 1);
        self.note_room();
    }

    /// Queues what a member should know of the paths of a destination. With `withdraw` it may believe in paths that are
    /// not announced any more: those that the group knows of, and those of `had`, which it brought from another group.
    pub(super) fn repeat_paths<K: ExportKey>(
        &mut self,
        peer: PeerIx,
        dest: DestId,
        withdraw: bool,
        had: &[(DestId, SourceId)],
        cx: &mut Cx<'_, K>,
    ) {
        let key = cx.table.key(dest);
        let mut announced: SmallVec<[SourceId; 4]> = SmallVec::new();
        for (source, told) in self.told.paths(dest) {
            let told = told.filter(|told| told.origin.peer() != Some(peer));
            let form =
                told.and_then(|told| Some((told, cx.judge_in_batch(&self.filter, &self.key, key, told)?)));
            let item = (path_id(source), key);
            match form {
                Some((told, form)) => {
                    announced.push(source);
                    cx.scratch.queue.push(RunKey { attr: Some(told.attr), form, scope: Scope::All }, item);
                }
                None if withdraw => cx.scratch.queue.push(RunKey::WITHDRAW, item),
                None => {}
            }
        }
        if withdraw {
            let from = had.partition_point(|(of, _)| *of < dest);
            let had = had[from..].iter().take_while(|(of, _)| *of == dest).map(|(_, source)| *source);
            for source in had.filter(|source| !announced.contains(source)) {
                cx.scratch.queue.push(RunKey::WITHDRAW, (path_id(source), key));
            }
        }
    }
}
