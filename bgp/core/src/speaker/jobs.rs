//! What takes longer than a turn: the loss of a neighbour, policy run again, changed next hops, walks over the table.
//!
//! Work is counted in destinations looked at. The embedder decides how much of it fits between two turns.

use bgp_wire::Family;

use super::Output;
use super::family::{Concerned, Reimported};
use super::ribs::for_rib;
use super::state::{Speaker, for_family};
use crate::outbox::Outbox;
use crate::peer_key::PeerIx;
use crate::rib::Accepted;
use crate::time::Instant;

/// Destinations looked at in one step.
const STEP: usize = if cfg!(test) { 100 } else { 1024 };

impl Speaker {
    /// Whether there is something for [`Speaker::work`] to do.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.ribs.has_work() || self.has_hurried_subscribers()
    }

    /// Does about `units` of what waits, and says how much it did. A unit is a destination looked at, some tens of
    /// nanoseconds.
    pub fn work(&mut self, now: Instant, units: usize, out: &mut Outbox<Output>) -> usize {
        let (mut done, mut without) = (0, 0);
        while done < units && without < Family::COUNT {
            // Families take turns as well.
            self.family_turn = (self.family_turn + 1) % Family::COUNT;
            let did = self.work_on(now, Family::ALL[self.family_turn], STEP.min(units - done));
            without = if did == 0 { without + 1 } else { 0 };
            done += did;
        }
        self.forget_gone();
        self.review_convergence(now);
        self.settle(out);
        done
    }

    /// One step of everything that waits in one family; says how much it was.
    fn work_on(&mut self, now: Instant, family: Family, step: usize) -> usize {
        let mut used = 0;
        let (reviews, reimports) =
            for_family!(self, family, rib => (!rib.review.is_done(), !rib.reimport.walk.is_done()));
        if reviews {
            used += step;
            let peers = &mut self.peers;
            let removed = |peer: PeerIx, accepted: Accepted| {
                if let Some(neighbour) = peers.get_mut(peer.index()).and_then(Option::as_deref_mut) {
                    neighbour.families[family.index()].count_withdrawn(Some(accepted));
                }
            };
            for_family!(self, family, rib => rib.review_step(step, &mut self.shared, removed));
        }
        if reimports {
            used += step;
            self.reimport(family, step);
        }
        let own = self.identity();
        used +=
            for_family!(self, family, rib => rib.aggregate_step(step, own, now.as_secs(), &mut self.shared));
        used + for_family!(self, family, rib => rib.group_step(step, &mut self.shared))
    }

    fn reimport(&mut self, family: Family, step: usize) {
        let Self { peers, settings, ribs, shared, .. } = self;
        let cluster = shared.cluster;
        let concerned = for_rib!(&ribs, family, rib => &rib.reimport.peers);
        let mut concerned: Vec<_> = concerned
            .iter()
            .filter_map(|peer| {
                let neighbour = peers.get(peer.index())?.as_ref()?;
                let arrival = neighbour.arrival(*peer, settings, cluster, 0)?;
                let surplus = neighbour.families[family.index()].gauge.surplus();
                Some(Concerned { arrival, surplus })
            })
            .collect();
        let mut changes = Vec::new();
        let changed = |peer: PeerIx, reimported: Reimported| match reimported {
            Reimported::Judged(before, now) if before.0 == now => {}
            Reimported::Judged(..) | Reimported::Removed(_) | Reimported::Surplus(_) => {
                changes.push((peer, reimported));
            }
        };
        for_rib!(ribs, family, rib => rib.reimport_step(step, shared, &mut concerned, changed));
        drop(concerned);
        for (peer, reimported) in changes {
            if let Some(neighbour) = self.peer_mut(peer) {
                let state = &mut neighbour.families[family.index()];
                match reimported {
                    Reimported::Judged(_, true) => state.accepted += 1,
                    Reimported::Judged(_, false) => state.accepted -= 1,
                    Reimported::Removed(accepted) => state.count_withdrawn(Some(accepted)),
                    Reimported::Surplus(outcome) => {
                        state.gauge.withdrawn(&outcome);
                        state.gauge.discarded();
                        state.count_withdrawn(outcome.had);
                    }
                }
            }
        }
    }

    /// Lets go of neighbours that were deleted and whose paths are gone. Only then can their numbers be given out again.
    fn forget_gone(&mut self) {
        if !self.ribs.are_reviewed() {
            return;
        }
        for (ix, slot) in self.peers.iter_mut().enumerate() {
            if let Some(gone) = slot.take_if(|neighbour| neighbour.gone) {
                let peer = PeerIx(ix as u32);
                self.shared.sources.forget_peer(peer);
                if let Some(at) = gone.deadline {
                    self.deadlines.remove(&(at, peer));
                }
            }
        }
    }
}
