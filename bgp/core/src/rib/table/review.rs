//! Reviews: what has to be looked at again after a neighbour was lost, the way to a next hop changed, or what readers make
//! of paths.

use smallvec::SmallVec;

use super::{Accepted, Context, DestId, Table, TableKey};
use crate::rib::path::Path;
use crate::rib::source::SourceId;
use crate::rib::walk::Walk;

/// A walk over a table in slices. One walk serves any number of reasons.
#[derive(Debug, Default)]
pub struct Review {
    walk: Walk,
    /// Decide again where the cost of a next hop changed after this generation.
    costs_since: Option<u64>,
    /// Decide again wherever there is a choice.
    decides: bool,
    /// Readers are to look at every best path again.
    tells: bool,
}

impl Review {
    /// Every path that is no longer valid is to be removed. A review under way looks at everything once more.
    pub fn begin(&mut self) {
        self.costs_since = self.costs_since.filter(|_| !self.walk.is_done());
        self.decides &= !self.walk.is_done();
        self.tells &= !self.walk.is_done();
        self.walk.begin();
    }

    /// The same, and paths are to be compared again whose next hop changed after `generation` of
    /// [`crate::rib::NextHops`].
    pub fn begin_costs(&mut self, generation: u64) {
        self.begin();
        self.costs_since = Some(self.costs_since.map_or(generation, |earlier| earlier.min(generation)));
    }

    /// The same, and every decision is to be made again: paths are compared in another way now.
    pub fn begin_deciding(&mut self) {
        self.begin();
        self.decides = true;
    }

    /// The same, and every best path counts as changed: what readers make of it depends on more than the path.
    pub fn begin_telling(&mut self) {
        self.begin();
        self.tells = true;
    }

    /// Whether there is nothing left to look at.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.walk.is_done()
    }
}

impl<K: TableKey> Table<K> {
    /// Looks at up to `budget` more destinations: removes paths that are no longer valid (see
    /// [`crate::rib::Sources::peer_lost`]) and decides again where the cost of a next hop changed. Each path removed is reported
    /// with whether it had been accepted. True when the review has ended.
    pub fn review_step(
        &mut self,
        review: &mut Review,
        budget: usize,
        cx: &mut Context<'_>,
        mut removed: impl FnMut(SourceId, Accepted),
    ) -> bool {
        for _ in 0..budget {
            let Some(at) = review.walk.step(self.len_ids()) else { break };
            let id = at as u32;
            let stale: SmallVec<[SourceId; 4]> = self
                .paths(DestId(id))
                .filter(|path| !cx.sources.is_valid(path.source, K::FAMILY, path.epoch))
                .map(|path| path.source)
                .collect();
            for source in stale {
                if let Some(accepted) = self.take(id, source, cx).had {
                    removed(source, accepted);
                }
            }
            // Nothing is said of a next hop that has come back to where it was before anybody looked.
            let since = review.costs_since.unwrap_or(u64::MAX);
            let moved = |path: &Path| path.post.is_some_and(|post| cx.attrs.cost_changed_after(post, since));
            let resolved = |path: &Path| {
                path.is_used() && path.post.is_some_and(|post| cx.attrs.resolved_after(post, since))
            };
            let compare = review.decides && self.paths(DestId(id)).nth(1).is_some()
                || review.costs_since.is_some() && self.paths(DestId(id)).any(moved);
            let resolved = review.costs_since.is_some() && self.paths(DestId(id)).any(resolved);
            if compare || resolved {
                let before = self.best_of(id);
                // What comes behind the best path may come in another order.
                let reordered = review.decides || self.paths(DestId(id)).any(moved);
                let disturbed = resolved || self.watched > 0 && reordered;
                self.decide(id, before, disturbed, cx);
            }
            if review.tells && self.best_of(id).is_some() {
                self.stamp(id);
            }
        }
        review.is_done()
    }
}
