//! The life of one destination, for whoever asks why. Nothing is kept for it, and the reasons come from the code that acts.

use bgp_wire::{Family, Nlri};

use super::answers::{Page, View};
use super::family::FamilyRib;
use super::ribs::for_rib;
use super::state::{Speaker, for_family};
use crate::egress::{ExportKey, Withheld};
use crate::peer_key::PeerIx;
use crate::query::{Explanation, NotTold, PathEntry, PathLife, PolicyReason, RouteEntry, Telling};
use crate::rib::{AttrSet, DestId, Path, PathRejected};
use crate::time::Instant;

impl Speaker {
    /// The life of a destination; of the longest one that holds it, where it is a prefix that is not there itself. `None` if
    /// there is none.
    pub fn explain(&mut self, now: Instant, nlri: Nlri) -> Option<Explanation> {
        let family = nlri.family();
        let dest = for_rib!(&self.ribs, family, rib => rib.holding(nlri))?;
        let RouteEntry { nlri, decided_by, paths } = self.look(now, View::LocRib, family, dest)?;
        let came: Vec<Path> = for_rib!(&self.ribs, family, rib => rib.table.paths(dest).copied().collect());
        let paths = paths.into_iter().zip(came).map(|(path, came)| {
            let received = self.shared.attrs.set(came.pre()).clone();
            let import = self.import_reason(nlri, &came, &received);
            PathLife { path, received, import }
        });
        let paths = paths.collect();
        let told = self.keys().into_iter().filter_map(|peer| {
            let key = self.peer(peer)?.key;
            Some(Telling { peer: key, told: self.told(now, peer, family, dest) })
        });
        let told = told.collect();
        Some(Explanation { nlri, decided_by, paths, told })
    }

    fn look(&mut self, now: Instant, view: View, family: Family, dest: DestId) -> Option<RouteEntry> {
        let peers = self.sources_of(family);
        let page = Page { view, family, now: now.as_secs(), peers: &peers, from: 0, limit: 1 };
        let Self { ribs, shared, .. } = self;
        for_rib!(ribs, family, rib => page.entry(rib, dest, shared))
    }

    /// What in import policy let a path in, or kept it out.
    fn import_reason(&self, nlri: Nlri, path: &Path, received: &AttrSet) -> Option<PolicyReason> {
        if path.rejected().is_some_and(|why| why != PathRejected::ImportPolicy) {
            return None;
        }
        let peer = self.shared.sources.peer(path.source())?;
        let arrival = self.peer(peer)?.arrival(peer, &self.settings, self.shared.cluster, 0)?;
        let signature = arrival.import.signature(&nlri);
        match arrival.import.run_with_reason(&arrival.route(nlri, received), &signature) {
            Ok((_, by)) | Err(Withheld::Policy(by)) => Some(by.into()),
            Err(_) => None,
        }
    }

    fn told(
        &mut self,
        now: Instant,
        peer: PeerIx,
        family: Family,
        dest: DestId,
    ) -> Result<Vec<PathEntry>, NotTold> {
        let up = self.peer(peer).and_then(|peer| Some((peer, peer.up.as_ref()?)));
        let (neighbour, up) = up.ok_or(NotTold::NoSession)?;
        let group = neighbour.families[family.index()].group;
        let group = group.filter(|_| up.negotiated.families.contains(family));
        let group = group.ok_or(NotTold::NoFamily(family))?;
        match self.look(now, View::Out(peer, group), family, dest) {
            Some(entry) => Ok(entry.paths),
            None => Err(for_family!(self, family, rib => rib.why_not(peer, group, dest, &mut self.shared))),
        }
    }
}

impl<K: ExportKey> FamilyRib<K> {
    /// The destination of this key, if it has paths; of a prefix otherwise the longest one that holds it and has some.
    fn holding(&self, nlri: Nlri) -> Option<DestId> {
        let mut at = nlri;
        loop {
            let dest = K::of(at).and_then(|key| self.table.find(key));
            if let Some(dest) = dest.filter(|dest| self.table.paths(*dest).next().is_some()) {
                return Some(dest);
            }
            at = at.unicast()?.supernet()?.into();
        }
    }
}
