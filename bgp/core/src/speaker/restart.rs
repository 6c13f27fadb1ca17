//! Graceful restart (RFC 4724, 9494) as it concerns the RIB: what is kept of neighbours that went away, and what waits until
//! this speaker, itself restarted, has heard its neighbours.
//!
//! A neighbour's stale routes are followed by its [`Helper`](crate::session::Helper), where the diagram is. Here its
//! answers become epochs and reviews. Routes that become long-lived stale pass import policy once more, slice by slice:
//! behind it they get their community, which makes them the last choice and keeps them from neighbours that do not know
//! it.
//!
//! After a restart of our own, each family starts *deferred*: neighbours are told our own routes only, no End-of-RIB,
//! and the change stream stands still, so that forwarding goes on as it was. That ends when every neighbour that is up,
//! agreed on graceful restart and the family, and has not restarted itself, has sent End-of-RIB. Neighbours that have
//! not been up are waited for during the grace after `LoadingDone`, and nothing is waited for longer than the deadline.
//!
//! *Absent on purpose:* waiting for neighbours without graceful restart, and for families that were not agreed on.

use bgp_wire::{Family, FamilySet};

use super::ribs::for_rib;
use super::state::{Speaker, for_family};
use crate::command::Chain;
use crate::egress::Filter;
use crate::peer_key::PeerIx;
use crate::policy::Direction;
use crate::session::Expired;
use crate::time::Instant;

/// The helper.
impl Speaker {
    /// Stale routes of a neighbour count no more.
    pub(super) fn stale_gone(&mut self, peer: PeerIx, families: FamilySet) {
        for family in families.iter() {
            self.shared.sources.stale_gone(peer, family);
            for_family!(self, family, rib => rib.review.begin());
        }
        if let Some(neighbour) = self.peer_mut(peer)
            && neighbour.stale.families().is_empty()
        {
            neighbour.away = None;
        }
    }

    /// Nothing is kept of a neighbour any more.
    pub(super) fn forget_stale(&mut self, peer: PeerIx) {
        if let Some(neighbour) = self.peer_mut(peer) {
            let gone = neighbour.stale.give_up();
            self.stale_gone(peer, gone);
        }
    }

    /// Time has passed for what is kept of a neighbour.
    pub(super) fn expire_stale(&mut self, now: Instant, peer: PeerIx) {
        let Some(neighbour) = self.peer_mut(peer) else { return };
        let Expired { gone, long_lived } = neighbour.stale.expire(now);
        let key = neighbour.key;
        if !gone.is_empty() {
            tracing::warn!(peer = %key, families = %gone, "stale routes removed, their time is up");
            self.stale_gone(peer, gone);
        }
        if !long_lived.is_empty() {
            tracing::warn!(peer = %key, families = %long_lived, "stale routes are kept as a last resort");
        }
        for family in long_lived.iter() {
            self.shared.sources.mark_long_lived(peer, family);
            for_family!(self, family, rib => rib.begin_reimport(peer));
        }
    }

    /// A neighbour has sent End-of-RIB.
    pub(super) fn end_of_rib(&mut self, now: Instant, peer: PeerIx, family: Family) {
        let Some(neighbour) = self.peer_mut(peer) else { return };
        neighbour.families[family.index()].end_of_rib = true;
        if neighbour.stale.end_of_rib(family) {
            self.stale_gone(peer, FamilySet::only(family));
        }
        self.review_convergence(now);
    }
}

/// The restarting side.
impl Speaker {
    /// Whether the routes of a family are complete as far as neighbours are to be told: own routes are loaded, and
    /// nothing is deferred.
    pub(super) fn is_complete(&self, family: Family) -> bool {
        let settled = for_rib!(&self.ribs, family, rib => rib.aggregates.are_settled());
        self.loaded.is_some() && !self.deferred.contains(family) && settled
    }

    /// What passes on the way out under a policy, as things stand.
    pub(super) fn export_filter(&mut self, policy: &Chain, family: Family) -> Filter {
        let filter = self.policies.filter(Direction::Export, policy);
        if self.deferred.contains(family) { Filter::OwnOnly(Box::new(filter)) } else { filter }
    }

    /// When the deferral is next to be looked at.
    pub(super) fn deferral_deadline(&self) -> Option<Instant> {
        let started = self.started.filter(|_| !self.deferred.is_empty())?;
        let grace = self.loaded.filter(|_| !self.deferral_grace_over);
        let grace = grace.map(|loaded| loaded + self.settings.deferral_grace);
        [Some(started + self.settings.selection_deferral), grace].into_iter().flatten().min()
    }

    /// Ends the deferral of families that nobody has to be waited for.
    pub(super) fn review_deferral(&mut self, now: Instant) {
        let over = |since: Option<Instant>, time| since.is_some_and(|at| now.saturating_since(at) >= time);
        let overdue = over(self.started, self.settings.selection_deferral);
        self.deferral_grace_over |= over(self.loaded, self.settings.deferral_grace);
        for family in self.deferred.iter() {
            if overdue || self.has_heard_all(family) {
                tracing::info!(%family, overdue, "the restart is over, routes are passed on");
                self.end_deferral(family);
            }
        }
    }

    fn has_heard_all(&self, family: Family) -> bool {
        if self.loaded.is_none() {
            return false;
        }
        let grace_over = self.deferral_grace_over;
        let mut neighbours = self
            .peers
            .iter()
            .flatten()
            .filter(|peer| !peer.gone && !peer.disabled && peer.config.families.contains(family))
            .peekable();
        // Without neighbours there may be some still to come.
        (neighbours.peek().is_some() || grace_over)
            && neighbours.all(|neighbour| match neighbour.up.as_ref().map(|up| (up, up.negotiated.restart)) {
                Some((up, Some(agreed))) => {
                    agreed.restarting
                        || !up.negotiated.families.contains(family)
                        || neighbour.families[family.index()].end_of_rib
                }
                Some((_, None)) => true,
                None => grace_over || neighbour.config.graceful_restart.is_none(),
            })
    }

    fn end_deferral(&mut self, family: Family) {
        self.deferred.remove(family);
        for_family!(self, family, rib => {
            for group in rib.groups_mut() {
                group.refilter(self.policies.filter(Direction::Export, &group.key().policy));
            }
        });
    }
}
