//! More than the best path: what readers need that tell several paths of a destination (RFC 7911).

use smallvec::SmallVec;

use super::decide::{candidate_of, is_usable};
use super::{Candidates, Context, DestId, Table, TableKey};
use crate::rib::attrs::AttrId;
use crate::rib::decision;
use crate::rib::source::SourceId;

/// Readers of every path.
impl<K: TableKey> Table<K> {
    /// From now on readers are shown a destination whenever one of its paths changes, not only when the best ones do.
    /// Counts: [`Table::unwatch_paths`] takes it back. What changed before is not shown.
    pub fn watch_paths(&mut self) {
        self.watched += 1;
    }

    /// One of those who wanted to know of every path does so no more.
    pub fn unwatch_paths(&mut self) {
        self.watched -= 1;
    }

    /// The paths that take part in the decision, by who they came from, with their attributes after import policy. The
    /// best one comes first.
    pub fn usable<'a>(
        &'a self,
        id: DestId,
        cx: &'a Context<'_>,
    ) -> impl Iterator<Item = (SourceId, AttrId)> + 'a {
        self.paths(id)
            .filter(|path| is_usable::<K>(path, cx))
            .filter_map(|path| Some((path.source, path.post?)))
    }

    /// The best `max` of some paths of one destination, as indices in the order of the decision: what the ladder finds best
    /// among all, then what it finds best among the others, and so on. `best_first` says that the first one is the best
    /// path of the table, which stays before all others though its rivals may not all be here.
    ///
    /// The order is not that of a comparison of pairs, since MED is none; it depends on the set of paths alone.
    #[must_use]
    pub fn rank(
        &self,
        id: DestId,
        paths: &[(SourceId, AttrId)],
        best_first: bool,
        max: usize,
        cx: &Context<'_>,
    ) -> SmallVec<[u32; 8]> {
        let since = |source| {
            let mut paths = self.paths(id).filter(|path| path.source == source);
            paths.next().map_or(0, |path| path.since)
        };
        let mut candidates: Candidates =
            paths.iter().map(|&(source, attrs)| candidate_of(source, since(source), attrs, cx)).collect();
        let mut left: SmallVec<[u32; 8]> = (0..paths.len() as u32).collect();
        let mut ranked = SmallVec::new();
        while ranked.len() < max && !left.is_empty() {
            let best = match decision::decide(&self.settings, &candidates) {
                Some(decision) if !(best_first && ranked.is_empty()) => decision.best,
                Some(_) | None => 0,
            };
            candidates.remove(best);
            ranked.push(left.remove(best));
        }
        ranked
    }
}
