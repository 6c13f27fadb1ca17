//! What an update group does with a batch of changes: compare what is true with what was told, and encode the
//! difference.

use bgp_wire::{PathId, UpdateWriter};

use super::adj_out::{Origin, Told};
use super::choice::source;
use super::cx::{Cx, Scratch, write_section};
use super::field::ExportKey;
use super::group::{Group, STEP, Why};
use super::queue::{RunKey, Scope};
use super::ring::Chunk;
use crate::rib::DestId;

/// A chunk is cut when it has reached this many octets.
const CHUNK: usize = if cfg!(test) { 1024 } else { 60 * 1024 };

impl Group {
    /// Takes the next batch of changes, encodes it and puts it into the ring. Says how many destinations were looked
    /// at, at least 1.
    pub(super) fn advance<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) -> usize {
        self.review_summaries(cx);
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
                    // In a batch withdrawals come first. What the log takes back may have stood for the routes that the
                    // review has announced.
                    break;
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
        self.told.read_at(self.ring.end());
        self.refill();
        self.pin(cx);
        cx.stats.looked_at += seen as u64;
        seen
    }

    /// Compares what is true of a destination with what was told, and queues the difference.
    #[inline]
    fn consider<K: ExportKey>(&mut self, dest: DestId, review: bool, cx: &mut Cx<'_, K>) {
        if let Some(max) = self.key.rules.paths {
            return self.consider_paths(dest, usize::from(max.get()), review, cx);
        }
        let told = self.told.told(dest);
        let best = cx.best(dest);
        if told.is_none() && best.is_none() {
            return;
        }
        if best.is_none() && review && self.will_hear(dest, cx) {
            return;
        }
        let key = cx.table.key(dest);
        let best = best.filter(|_| !self.summaries.stand_for(key));
        let want = best.and_then(|best| Some((best, cx.judge_in_batch(&self.filter, &self.key, key, best)?)));
        let before = told.map(|told| told.origin);
        let want = want.filter(|(best, _)| !self.holds_back_from(best.origin, before));
        let want = want.filter(|(best, form)| {
            (told == Some(*best) && !review) || self.may_take_a_place(*best, *form, key, cx)
        });
        match (told, want) {
            (None, None) => {}
            (Some(told), Some((best, form)))
                if told == best && !(review && self.differs(key, told, form, cx)) => {}
            (told, Some((best, form))) => {
                let scope = self.all_but(best.origin);
                cx.scratch.queue.push(RunKey { attr: Some(best.attr), form, scope }, (PathId::NONE, key));
                cx.attrs.retain(best.attr, 1);
                if let Some(told) = told {
                    // Who sent us the new route would keep the older one, of somebody else's, if it was not taken back.
                    if told.origin.peer() != best.origin.peer()
                        && let Scope::Except(peer) = scope
                    {
                        let run = RunKey { scope: Scope::Only(peer), ..RunKey::WITHDRAW };
                        cx.scratch.queue.push(run, (PathId::NONE, key));
                        self.note_room();
                    }
                    cx.attrs.release(told.attr, 1);
                }
                self.told.set(dest, Some(best));
            }
            (Some(told), None) => {
                let run = RunKey { scope: self.all_but(told.origin), ..RunKey::WITHDRAW };
                cx.scratch.queue.push(run, (PathId::NONE, key));
                cx.attrs.release(told.attr, 1);
                self.told.set(dest, None);
                self.note_room();
            }
        }
    }

    /// Whether the log has yet to show the last change of a destination. What has gone is left to it by reviews: it may have
    /// stood for routes that the review has not come to.
    pub(super) fn will_hear<K: ExportKey>(&self, dest: DestId, cx: &Cx<'_, K>) -> bool {
        cx.table.dest_version(dest) > cx.table.cursor_seq(self.head)
    }

    /// Whether a review has to say again what was told already.
    pub(super) fn differs<K: ExportKey>(&self, key: K, told: Told, form: u32, cx: &Cx<'_, K>) -> bool {
        match self.review.as_ref().map(|review| &review.why) {
            None | Some(Why::New | Why::Refill) => false,
            Some(Why::Everything) => true,
            Some(Why::Policy(old)) => {
                cx.judge(old, &self.key, key, told).ok().as_ref() != cx.scratch.forms.form(form)
            }
        }
    }

    /// Everyone in the group but the one that a route came from.
    pub(super) fn all_but(&self, origin: Origin) -> Scope {
        match origin.peer() {
            Some(peer) if self.members.contains_key(&peer) => Scope::Except(peer),
            Some(_) | None => Scope::All,
        }
    }

    /// Encodes the queued prefixes into `cx.scratch.chunks` and forgets them.
    pub(super) fn encode<K: ExportKey>(&mut self, cx: &mut Cx<'_, K>) {
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
            let set = cx.attrs.set(attr);
            let next_hop = forms.form(key.form).and_then(|form| write_section(&self.key, form, set, section));
            let written = next_hop
                .map(|hop| K::announce(&mut writer, &section.bytes, hop, set.label(), queue.prefixes(n)));
            if let Some(Ok(count)) = written {
                messages += count;
                continue;
            }
            // It does not fit into a message, so nobody may go on believing what was told before.
            messages += K::withdraw(&mut writer, queue.prefixes(n));
            for (id, key) in queue.prefixes(n) {
                cx.stats.too_large += 1;
                let Some(dest) = cx.table.find(key) else { continue };
                let had = match self.key.rules.paths {
                    Some(_) => self.told.retract_path(dest, source(id), attr),
                    None => self.told.retract(dest, attr),
                };
                if had {
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
