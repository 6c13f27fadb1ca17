//! Which path of a destination is the best one, and which are used beside it.

use std::net::{IpAddr, Ipv4Addr};

use bgp_wire::attr::FactFlags;
use bgp_wire::{Family, RouterId};
use smallvec::SmallVec;

use super::dest::{BEST, FIRST, NO_BEST};
use super::{Candidates, Context, Table, TableKey};
use crate::rib::attrs::AttrId;
use crate::rib::decision::{self, Candidate, DEFAULT_LOCAL_PREF, Decision, DecisionSettings, Standing};
use crate::rib::nexthop::UNREACHABLE;
use crate::rib::path::{Path, USED};
use crate::rib::source::SourceId;

impl<K: TableKey> Table<K> {
    /// How paths are compared.
    #[must_use]
    pub const fn decision(&self) -> &DecisionSettings {
        &self.settings
    }

    /// From now on paths are compared like this. What has been decided stays until a review comes by; see
    /// [`super::Review::begin_deciding`]. One path at a time is used in families other than unicast: what else a path
    /// says there, a label or a candidate path, goes with it alone.
    pub fn set_decision(&mut self, settings: DecisionSettings) {
        self.settings = settings;
        if !Family::UNICAST.contains(&K::FAMILY) {
            self.settings.multipath = DecisionSettings::RFC4271.multipath;
        }
        self.several |= self.settings.uses_several();
    }

    /// Finds the best path and puts it first. `before` is the best one before what happened, and `disturbed` says that
    /// a path equal to the best one has gone or changed. True if readers have to know.
    pub(super) fn decide(
        &mut self,
        id: u32,
        before: Option<(SourceId, AttrId)>,
        disturbed: bool,
        cx: &Context<'_>,
    ) -> bool {
        let dest = &mut self.dests.pages[id as usize];
        let mut changed = disturbed;
        if dest.first.next == 0 {
            let usable = is_usable::<K>(&dest.first, cx);
            dest.first.flags = dest.first.flags & !USED | if usable { USED } else { 0 };
            dest.state = if usable { BEST } else { NO_BEST };
        } else {
            changed |= self.decide_among(id, cx);
        }
        changed |= before != self.best_of(id);
        if changed {
            self.stamp(id);
        }
        changed
    }

    /// The same for several paths. True if another set of paths is used beside the best one now.
    fn decide_among(&mut self, id: u32, cx: &Context<'_>) -> bool {
        let mut chain: SmallVec<[u32; 8]> = SmallVec::new();
        let mut candidates = Candidates::new();
        // Where in the chain each candidate stands, and its attributes.
        let mut places: SmallVec<[(u32, AttrId); 8]> = SmallVec::new();
        let mut at = FIRST;
        loop {
            let path = self.path_mut(id, at);
            if is_usable::<K>(path, cx)
                && let Some(post) = path.post
            {
                candidates.push(candidate(path, post, cx));
                places.push((chain.len() as u32, post));
            }
            chain.push(at);
            match path.next {
                0 => break,
                next => at = next,
            }
        }
        let decision = decision::decide(&self.settings, &candidates);
        let used = decision.as_ref().map(|decision| self.used_at_once(decision, &candidates, &places, cx));
        let mut used = used.iter().flatten().map(|&candidate| places[candidate as usize].0).peekable();
        let mut changed = false;
        for (place, &at) in chain.iter().enumerate() {
            let path = self.path_mut(id, at);
            let flag = if used.next_if_eq(&(place as u32)).is_some() { USED } else { 0 };
            changed |= path.flags & USED != flag;
            path.flags = path.flags & !USED | flag;
        }
        let Some(decision) = decision else {
            self.dests.pages[id as usize].state = NO_BEST;
            return changed;
        };
        self.dests.pages[id as usize].state = BEST + decision.rung as u8;
        let best = chain[places[decision.best].0 as usize];
        if best != FIRST {
            let first = &mut self.dests.pages[id as usize].first;
            let other = &mut self.more.paths[best as usize - 1];
            std::mem::swap(first, other);
            std::mem::swap(&mut first.next, &mut other.next);
        }
        changed
    }

    /// The candidates that are used at once, in ascending order: of those equal to the best one, the first of each next
    /// hop by the last rungs of the ladder, and no more than the settings say. So the set depends on the paths alone.
    fn used_at_once(
        &self,
        decision: &Decision,
        candidates: &[Candidate],
        places: &[(u32, AttrId)],
        cx: &Context<'_>,
    ) -> Standing {
        let mut used = decision.equal.clone();
        if used.len() == 1 {
            return used;
        }
        let attrs = |at: u32| places[at as usize].1;
        let best = decision.best as u32;
        if !self.settings.multipath_relax {
            used.retain(|at| cx.attrs.has_same_as_path(attrs(*at), attrs(best)));
        }
        used.sort_by_key(|at| candidates[*at as usize].tail(&self.settings));
        let mut hops: SmallVec<[_; 8]> = SmallVec::new();
        used.retain(|at| {
            let hop = cx.attrs.hop(attrs(*at));
            let takes_part = hops.len() < usize::from(self.settings.multipath.get()) && !hops.contains(&hop);
            if takes_part {
                hops.push(hop);
            }
            takes_part
        });
        used.sort_unstable();
        used
    }

    pub(super) fn best_of(&self, id: u32) -> Option<(SourceId, AttrId)> {
        let dest = &self.dests.pages[id as usize];
        if dest.state < BEST {
            return None;
        }
        Some((dest.first.source, dest.first.post?))
    }
}

/// Whether a path may take part in the decision (RFC 4271 section 9.1.2).
#[inline]
pub(super) fn is_usable<K: TableKey>(path: &Path, cx: &Context<'_>) -> bool {
    path.post.is_some_and(|post| cx.attrs.cost(post) != UNREACHABLE)
        && cx.sources.is_valid(path.source, K::FAMILY, path.epoch)
}

pub(super) fn candidate(path: &Path, post: AttrId, cx: &Context<'_>) -> Candidate {
    candidate_of(path.source, path.since, post, cx)
}

pub(super) fn candidate_of(source: SourceId, since: u32, post: AttrId, cx: &Context<'_>) -> Candidate {
    let facts = cx.attrs.set(post).facts();
    let peer = cx.sources.facts(source);
    Candidate {
        local: source.is_local(),
        long_lived_stale: facts.flags.has(FactFlags::LLGR_STALE),
        local_pref: facts.local_pref.unwrap_or(DEFAULT_LOCAL_PREF),
        as_path_len: u32::from(facts.as_path_len),
        origin: facts.origin,
        med: facts.med,
        neighbor_as: facts.neighbor_as,
        external: peer.is_some_and(|peer| peer.external),
        cost: cx.attrs.cost(post),
        since,
        router_id: facts.originator.or(peer.map(|peer| peer.router_id)).unwrap_or(RouterId(0)),
        cluster_len: facts.cluster_len,
        address: peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address),
        path_id: cx.sources.path_id(source),
    }
}
