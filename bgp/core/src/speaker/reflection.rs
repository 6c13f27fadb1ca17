//! Route reflection (RFC 4456): for which cluster, and what follows when that changes or a neighbour becomes a client.
//!
//! A speaker reflects for one cluster, whoever its clients are: every route that it reflects gets that identifier, and
//! every route of an internal neighbour that has it already is refused. A speaker without clients and without an
//! identifier of its own choice reflects nothing and looks for none.

use bgp_wire::{Family, RouterId};

use super::state::{Speaker, for_family};
use crate::command::Applied;
use crate::egress::Group;
use crate::peer_key::PeerIx;

impl Speaker {
    pub(super) fn put_cluster_id(&mut self, id: Option<RouterId>) -> Applied {
        if self.cluster_id == id {
            return Applied::Unchanged;
        }
        self.cluster_id = id;
        self.review_cluster();
        Applied::Applied
    }

    /// Neighbours, or what identifies us, may be others: routes are judged, and told, as it follows from that.
    pub(super) fn review_cluster(&mut self) {
        let cluster = match self.cluster_id {
            Some(id) => Some(id),
            None => Some(self.settings.router_id).filter(|_| self.has_clients()),
        };
        if self.shared.cluster == cluster {
            return;
        }
        self.shared.cluster = cluster;
        for peer in self.keys() {
            self.begin_reimport(peer);
            self.regroup(peer);
        }
    }

    fn has_clients(&self) -> bool {
        let peers = self.by_key.values().filter_map(|peer| self.peer(*peer)).map(|peer| &peer.config);
        let ranges = self.ranges.values().map(|range| &range.range.config);
        peers.chain(ranges).any(|config| config.route_reflector_client)
    }

    /// A neighbour whose routes were kept is back under another identifier: they are compared by that from now on, and
    /// reflected with it.
    pub(super) fn identify_again(&mut self, peer: PeerIx, external: bool) {
        let Some(families) = self.peer(peer).map(|neighbour| neighbour.stale.families()) else { return };
        for family in families.iter() {
            for_family!(self, family, rib => {
                rib.review.begin_deciding();
                if !external {
                    rib.groups_mut().filter(|group| !group.key().rules.external).for_each(Group::say_again);
                }
            });
        }
    }

    /// A neighbour has become a client of ours, or is none any more: its routes go elsewhere.
    pub(super) fn reflect_again(&mut self, peer: PeerIx) {
        let Some(neighbour) = self.peer(peer) else { return };
        let client = neighbour.config.route_reflector_client;
        let families = neighbour.families_with_routes();
        self.shared.sources.set_client(peer, client);
        for family in Family::ALL.into_iter().filter(|family| families.contains(*family)) {
            for_family!(self, family, rib => {
                rib.groups_mut().filter(|group| !group.key().rules.external).for_each(|group| group.judge_again());
            });
        }
    }
}
