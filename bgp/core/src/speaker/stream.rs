//! Best paths for the embedder: the change stream.

use bgp_wire::attr::Canonical;
use bgp_wire::{Family, FamilySet};

use super::family::FamilyRib;
use super::state::{Shared, Speaker, for_family};
use super::{Output, SubscriberId};
use crate::egress::ExportKey;
use crate::outbox::Outbox;
use crate::rib::sr_policy::candidate_path;
use crate::rib::{
    AttrId, CursorId, DestId, NextHopSet, Originator, RibChange, RibEvent, SourceId, SrPolicyPath,
};

/// Destinations looked at for one call of [`Speaker::take`].
const LOOKED_AT: usize = if cfg!(test) { 100 } else { 8 * 1024 };

/// A reader of the change stream.
#[derive(Debug)]
pub(super) struct Subscriber {
    resynced: bool,
    replayed: bool,
    /// It has taken everything and waits to be told of more.
    idle: bool,
    /// It has more to take, but what was looked at for it was enough for one call.
    hurried: bool,
    /// By family index; absent for families it does not follow.
    readers: [Option<Reader>; Family::COUNT],
}

#[derive(Copy, Clone, Debug)]
struct Reader {
    cursor: CursorId,
    /// The next destination of the replay.
    replay: Option<usize>,
    converged: bool,
}

impl Reader {
    fn has_events<K: ExportKey>(&self, rib: &FamilyRib<K>, converged: Option<u64>) -> bool {
        self.replay.is_some() || rib.table.pending(self.cursor) || (converged.is_some() && !self.converged)
    }
}

impl Speaker {
    /// Adds a reader of best paths: [`RibEvent::Resync`] first, then all there are, then [`RibEvent::Replayed`], then
    /// what changes. Changes of one prefix merge while they wait; a reader never holds up the speaker.
    pub fn subscribe(&mut self, families: FamilySet) -> SubscriberId {
        let mut readers = [None; Family::COUNT];
        for family in families.iter() {
            let cursor = for_family!(self, family, rib => rib.table.add_cursor());
            readers[family.index()] = Some(Reader { cursor, replay: Some(0), converged: false });
        }
        let subscriber = Subscriber { resynced: false, replayed: false, idle: true, hurried: false, readers };
        let at = self.subscribers.iter().position(Option::is_none).unwrap_or(self.subscribers.len());
        if at == self.subscribers.len() {
            self.subscribers.push(None);
        }
        self.subscribers[at] = Some(subscriber);
        SubscriberId(at as u32)
    }

    /// Removes a reader.
    pub fn unsubscribe(&mut self, id: SubscriberId) {
        let Some(subscriber) = self.subscribers.get_mut(id.0 as usize).and_then(Option::take) else { return };
        for family in Family::ALL {
            if let Some(reader) = subscriber.readers[family.index()] {
                for_family!(self, family, rib => rib.table.remove_cursor(reader.cursor));
            }
        }
    }

    /// Appends at most `max` events. Fewer mean that there are no more for now; [`Output::RibReady`] will say when there are.
    /// It takes several calls where many destinations have to be looked at for few events, or `max` is large.
    pub fn take(&mut self, id: SubscriberId, max: usize, into: &mut Vec<RibEvent>) {
        let Some(mut subscriber) = self.subscribers.get_mut(id.0 as usize).and_then(Option::take) else {
            return;
        };
        let end = into.len().saturating_add(max);
        let mut budget = LOOKED_AT;
        if !subscriber.resynced && into.len() < end {
            subscriber.resynced = true;
            into.push(RibEvent::Resync);
        }
        let own = Originator { asn: self.settings.asn, node: self.settings.router_id };
        for family in Family::ALL {
            if let Some(reader) = &mut subscriber.readers[family.index()]
                && !self.deferred.contains(family)
            {
                for_family!(self, family, rib => rib.tell(reader, own, end, into, &mut budget, &mut self.shared));
            }
        }
        let replaying = subscriber.readers.iter().flatten().any(|reader| reader.replay.is_some());
        if !subscriber.replayed && !replaying && into.len() < end {
            subscriber.replayed = true;
            into.push(RibEvent::Replayed);
        }
        for family in Family::ALL {
            if let Some(reader) = &mut subscriber.readers[family.index()]
                && subscriber.replayed
                && !reader.converged
                && into.len() < end
                && let Some(seq) = self.converged[family.index()]
                // What led there comes first.
                && for_family!(self, family, rib => rib.table.cursor_seq(reader.cursor) >= seq)
            {
                reader.converged = true;
                into.push(RibEvent::Converged(family));
            }
        }
        subscriber.idle = into.len() < end;
        subscriber.hurried = budget == 0;
        self.shared.stats.looked_at += (LOOKED_AT - budget) as u64;
        self.subscribers[id.0 as usize] = Some(subscriber);
    }

    /// Whether somebody has to be told again that there is more to take.
    pub(super) fn has_hurried_subscribers(&self) -> bool {
        self.subscribers.iter().flatten().any(|subscriber| subscriber.hurried && subscriber.idle)
    }

    pub(super) fn wake_subscribers(&mut self, out: &mut Outbox<Output>) {
        for (at, subscriber) in self.subscribers.iter_mut().enumerate() {
            let Some(subscriber) = subscriber.as_mut().filter(|subscriber| subscriber.idle) else { continue };
            let mut more = !subscriber.resynced;
            let mut replaying = false;
            for family in Family::ALL {
                let Some(reader) = &subscriber.readers[family.index()] else { continue };
                replaying |= reader.replay.is_some();
                let converged = self.converged[family.index()];
                more |= !self.deferred.contains(family)
                    && for_family!(self, family, rib => reader.has_events(rib, converged));
            }
            more |= !subscriber.replayed && !replaying;
            if more {
                (subscriber.idle, subscriber.hurried) = (false, false);
                out.push(Output::RibReady(SubscriberId(at as u32)));
            }
        }
    }
}

impl<K: ExportKey> FamilyRib<K> {
    /// Tells what has changed, then goes on with the replay. Within one call nothing changes, and a replay goes on only
    /// when all changes so far have been told: so a destination is never told twice without a reason.
    fn tell(
        &mut self,
        reader: &mut Reader,
        own: Originator,
        end: usize,
        into: &mut Vec<RibEvent>,
        budget: &mut usize,
        shared: &mut Shared,
    ) {
        while into.len() < end && *budget > 0 {
            *budget -= 1;
            if let Some((seq, dest)) = self.table.next_change(reader.cursor) {
                // What the replay has not come to yet, it will tell as it is then.
                if reader.replay.is_none_or(|next| dest.index() < next) {
                    into.push(RibEvent::Change(self.change(seq, dest, own, shared)));
                }
            } else if let Some(at) = reader.replay {
                if at >= self.table.len_ids() {
                    reader.replay = None;
                    return;
                }
                reader.replay = Some(at + 1);
                let dest = DestId::from_index(at);
                if self.table.best(dest).is_some() {
                    let seq = self.table.dest_version(dest);
                    into.push(RibEvent::Change(self.change(seq, dest, own, shared)));
                }
            } else {
                return;
            }
        }
    }

    fn change(&mut self, seq: u64, dest: DestId, own: Originator, shared: &mut Shared) -> RibChange {
        let nlri = self.table.key(dest).into();
        let best = self.table.best(dest);
        let mut change = RibChange {
            seq,
            family: K::FAMILY,
            nlri,
            best: best.map(|best| best.attrs),
            local: best.is_some_and(|best| best.path.source().is_local()),
            hops: self.table.hops(dest, &mut shared.attrs),
            sr_policy: None,
        };
        if K::FAMILY.is_sr_policy()
            && let Some(best) = best
        {
            change.sr_policy = sr_policy(best.attrs, best.path.source(), own, shared).map(Box::new);
            if change.sr_policy.is_none() {
                change.best = None;
                change.local = false;
                change.hops = NextHopSet::default();
            }
        }
        change
    }
}

/// What a path says of an SR policy, if we may use it.
fn sr_policy(attrs: AttrId, source: SourceId, own: Originator, shared: &Shared) -> Option<SrPolicyPath> {
    let set = shared.attrs.set(attrs);
    let (path, usable) = candidate_path(Canonical(set.canonical()), own.node)?;
    let said = set.facts().originator;
    let node = said.or(shared.sources.facts(source).map(|peer| peer.router_id)).unwrap_or(own.node);
    let asn = Canonical(set.canonical()).as_path().asns().last().unwrap_or(own.asn);
    usable.then_some(SrPolicyPath { path, originator: Originator { asn, node } })
}
