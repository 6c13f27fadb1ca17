//! Which SR policy carries traffic to a node: of all candidate paths that lead there and give packets of the right family,
//! the one of the highest preference; of equal ones the lowest originator's, then the greatest distinguisher (RFC 9256
//! section 2.9), then the lowest color.
//!
//! A policy is one object in VPP for each binding SID. Where paths to different nodes, or of different behaviours, claim the
//! same one, the first in order has it, and the others count as invalid: the next candidates are in their place.
//!
//! *Absent on purpose:* what must exist in VPP for it (that is `srv6`), and colors as a choice of service.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use bgp_core::rib::Originator;

use crate::model::{SrBehavior, SrCandidate, SrKey};

/// What one policy of VPP is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    /// The node's address.
    pub(crate) endpoint: Ipv6Addr,
    /// What comes out there.
    pub(crate) behavior: SrBehavior,
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(crate) struct SrPolicies {
    candidates: BTreeMap<SrKey, SrCandidate>,
    /// How many candidates of each slot claim a binding SID.
    claims: BTreeMap<Ipv6Addr, BTreeMap<Slot, u32>>,
    active: BTreeMap<Slot, SrKey>,
    /// SIDs and addresses of this node: no policy can have them.
    own: BTreeSet<Ipv6Addr>,
}

impl SrPolicies {
    /// The candidate that carries traffic of a slot.
    pub(crate) fn active(&self, slot: Slot) -> Option<&SrCandidate> {
        self.candidates.get(self.active.get(&slot)?)
    }

    /// All candidates, in order.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (&SrKey, &SrCandidate)> {
        self.candidates.iter()
    }

    /// Why a candidate that has no flaw of its own isn't usable; `None` where it is.
    pub(crate) fn taken(&self, key: &SrKey, candidate: &SrCandidate) -> Option<Taken> {
        if self.own.contains(&candidate.bsid) {
            return Some(Taken::ByUs);
        }
        let (first, _) = self.claims.get(&candidate.bsid)?.first_key_value()?;
        (*first != slot(key, candidate)).then_some(Taken::By(*first))
    }

    /// A candidate came, changed, or went. Answers the slots whose active candidate says something else than before.
    pub(crate) fn put(&mut self, key: SrKey, candidate: Option<SrCandidate>) -> BTreeSet<Slot> {
        if self.candidates.get(&key) == candidate.as_ref() {
            return BTreeSet::new();
        }
        let mut affected = BTreeSet::new();
        let before = match candidate {
            Some(new) => {
                affected.insert(slot(&key, &new));
                affected.extend(self.claimants(new.bsid));
                self.claim(slot(&key, &new), new.bsid);
                self.candidates.insert(key, new)
            }
            None => self.candidates.remove(&key),
        };
        if let Some(before) = &before {
            let slot = slot(&key, before);
            self.disclaim(slot, before.bsid);
            affected.insert(slot);
            affected.extend(self.claimants(before.bsid));
        }
        // Compared by what they say: another candidate with the same contents is no change. The one replaced is known to
        // nobody else any more.
        affected.retain(|slot| self.select(*slot, before.as_ref().map(|before| (key, before))));
        affected
    }

    /// The SIDs and addresses of this node are these.
    pub(crate) fn set_own(&mut self, own: BTreeSet<Ipv6Addr>) -> BTreeSet<Slot> {
        let changed: Vec<Ipv6Addr> = self.own.symmetric_difference(&own).copied().collect();
        self.own = own;
        let mut affected: BTreeSet<Slot> = changed.into_iter().flat_map(|sid| self.claimants(sid)).collect();
        affected.retain(|slot| self.select(*slot, None));
        affected
    }

    /// Chooses anew for a slot; true where the choice says something else than before. `replaced` is what one key stood for
    /// until now.
    fn select(&mut self, slot: Slot, replaced: Option<(SrKey, &SrCandidate)>) -> bool {
        let key = |color, distinguisher| SrKey { endpoint: slot.endpoint, color, distinguisher };
        let of_endpoint = self.candidates.range(key(0, 0)..=key(u32::MAX, u32::MAX));
        let best = of_endpoint
            .filter(|(_, candidate)| candidate.behavior == slot.behavior)
            .filter(|(key, candidate)| self.taken(key, candidate).is_none())
            .max_by_key(|(key, candidate)| rung(key, candidate));
        let before = self.active.get(&slot).and_then(|key| match replaced {
            Some((replaced, before)) if replaced == *key => Some(before),
            Some(_) | None => self.candidates.get(key),
        });
        let says = |candidate: &SrCandidate| (candidate.bsid, candidate.lists.clone());
        let changed = before.map(says) != best.map(|(_, candidate)| says(candidate));
        match best.map(|(key, _)| *key) {
            Some(key) => self.active.insert(slot, key),
            None => self.active.remove(&slot),
        };
        changed
    }

    fn claimants(&self, bsid: Ipv6Addr) -> Vec<Slot> {
        self.claims.get(&bsid).into_iter().flat_map(BTreeMap::keys).copied().collect()
    }

    fn claim(&mut self, slot: Slot, bsid: Ipv6Addr) {
        *self.claims.entry(bsid).or_default().entry(slot).or_default() += 1;
    }

    fn disclaim(&mut self, slot: Slot, bsid: Ipv6Addr) {
        let Some(slots) = self.claims.get_mut(&bsid) else { return };
        if let Some(count) = slots.get_mut(&slot) {
            *count -= 1;
            if *count == 0 {
                slots.remove(&slot);
            }
        }
        if slots.is_empty() {
            self.claims.remove(&bsid);
        }
    }
}

/// Who has a binding SID in a candidate's place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// This node: it is one of its SIDs or addresses.
    ByUs,
    /// A policy to another node, or of another behaviour.
    By(Slot),
}

const fn slot(key: &SrKey, candidate: &SrCandidate) -> Slot {
    Slot { endpoint: key.endpoint, behavior: candidate.behavior }
}

/// The greatest is used.
fn rung(key: &SrKey, candidate: &SrCandidate) -> (u32, Reverse<Originator>, u32, Reverse<u32>) {
    (candidate.preference, Reverse(candidate.originator), key.distinguisher, Reverse(key.color))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SidList;
    use bgp_core::{Asn, RouterId};

    fn addr(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn key(endpoint: &str, color: u32, distinguisher: u32) -> SrKey {
        SrKey { endpoint: addr(endpoint), color, distinguisher }
    }

    fn candidate(bsid: &str, preference: u32) -> SrCandidate {
        SrCandidate {
            preference,
            originator: Originator::default(),
            bsid: addr(bsid),
            behavior: SrBehavior::Dt4,
            lists: [SidList { weight: 1, sids: [addr("fd00:2::4")].into() }].into(),
        }
    }

    const TO: &str = "2001:db8::2";

    fn slot_of(endpoint: &str) -> Slot {
        Slot { endpoint: addr(endpoint), behavior: SrBehavior::Dt4 }
    }

    fn active(policies: &SrPolicies) -> Option<Ipv6Addr> {
        policies.active(slot_of(TO)).map(|candidate| candidate.bsid)
    }

    /// RFC 9256 section 2.9, rung by rung: each of these beats all before it.
    #[test]
    fn the_best_candidate_is_used_and_the_next_one_after_it() {
        let from = |asn, node| Originator { asn: Asn(asn), node: RouterId(node) };
        let of = |bsid, preference, originator| SrCandidate { originator, ..candidate(bsid, preference) };
        let ladder = [
            (key(TO, 5, 1), of("fd00:b::1", 10, from(2, 2))),
            (key(TO, 4, 1), of("fd00:b::2", 10, from(2, 2))),
            (key(TO, 4, 2), of("fd00:b::3", 10, from(2, 2))),
            (key(TO, 4, 0), of("fd00:b::4", 10, from(2, 1))),
            (key(TO, 9, 0), of("fd00:b::5", 10, from(1, 9))),
            (key(TO, 7, 0), of("fd00:b::6", 11, from(9, 9))),
        ];
        let mut policies = SrPolicies::default();
        for (key, candidate) in &ladder {
            let bsid = candidate.bsid;
            assert_eq!(policies.put(*key, Some(candidate.clone())), BTreeSet::from([slot_of(TO)]));
            assert_eq!(active(&policies), Some(bsid), "{key}");
        }
        for pair in ladder.windows(2).rev() {
            assert_eq!(policies.put(pair[1].0, None), BTreeSet::from([slot_of(TO)]));
            assert_eq!(active(&policies), Some(pair[0].1.bsid), "fail over from {}", pair[1].0);
        }
        assert_eq!(policies.put(ladder[0].0, None), BTreeSet::from([slot_of(TO)]));
        assert_eq!(active(&policies), None);
        assert!(policies.claims.is_empty() && policies.active.is_empty());
    }

    #[test]
    fn what_changes_nothing_is_no_change() {
        let mut policies = SrPolicies::default();
        policies.put(key(TO, 4, 0), Some(candidate("fd00:b::2", 10)));
        assert!(policies.put(key(TO, 4, 0), Some(candidate("fd00:b::2", 10))).is_empty());
        assert!(policies.put(key(TO, 4, 1), Some(candidate("fd00:b::3", 9))).is_empty());
        // A route reflector's copy, and it winning.
        assert!(policies.put(key(TO, 4, 7), Some(candidate("fd00:b::2", 12))).is_empty());
        assert!(policies.put(key(TO, 4, 0), None).is_empty());
        assert!(policies.put(key(TO, 99, 0), None).is_empty());
        assert_eq!(active(&policies), Some(addr("fd00:b::2")));
    }

    #[test]
    fn other_lists_are_a_change() {
        let mut policies = SrPolicies::default();
        policies.put(key(TO, 4, 0), Some(candidate("fd00:b::2", 10)));
        let other = SrCandidate {
            lists: [SidList { weight: 2, sids: [addr("fd00:2::4")].into() }].into(),
            ..candidate("fd00:b::2", 10)
        };
        assert_eq!(policies.put(key(TO, 4, 0), Some(other)).len(), 1);
    }

    #[test]
    fn another_behaviour_is_another_policy() {
        let mut policies = SrPolicies::default();
        let dt6 = SrCandidate { behavior: SrBehavior::Dt6, ..candidate("fd00:b::6", 99) };
        policies.put(key(TO, 6, 0), Some(dt6.clone()));
        policies.put(key(TO, 4, 0), Some(candidate("fd00:b::4", 1)));
        assert_eq!(active(&policies), Some(addr("fd00:b::4")));
        let six = Slot { behavior: SrBehavior::Dt6, ..slot_of(TO) };
        assert_eq!(policies.active(six).unwrap().bsid, addr("fd00:b::6"));
        // The same key in another slot leaves the one it was in.
        let changed = policies.put(key(TO, 4, 0), Some(SrCandidate { preference: 100, ..dt6 }));
        assert_eq!(changed, BTreeSet::from([slot_of(TO)]));
        assert_eq!(active(&policies), None);
    }

    #[test]
    fn a_binding_sid_belongs_to_the_first_and_the_others_fall_back() {
        let mut policies = SrPolicies::default();
        policies.put(key(TO, 4, 0), Some(candidate("fd00:b::2", 10)));
        policies.put(key(TO, 4, 1), Some(candidate("fd00:b::3", 5)));
        let intruder = key("2001:db8::1", 4, 0);
        let changed = policies.put(intruder, Some(candidate("fd00:b::2", 10)));
        assert_eq!(changed, BTreeSet::from([slot_of(TO), slot_of("2001:db8::1")]));
        assert_eq!(active(&policies), Some(addr("fd00:b::3")));
        let lost = policies.candidates.get(&key(TO, 4, 0)).unwrap();
        assert_eq!(policies.taken(&key(TO, 4, 0), lost), Some(Taken::By(slot_of("2001:db8::1"))));
        policies.put(intruder, None);
        assert_eq!(active(&policies), Some(addr("fd00:b::2")));
    }

    #[test]
    fn no_policy_can_have_a_sid_of_ours() {
        let mut policies = SrPolicies::default();
        policies.put(key(TO, 4, 0), Some(candidate("fd00:b::2", 10)));
        let changed = policies.set_own(BTreeSet::from([addr("fd00:b::2"), addr("fd00:b::99")]));
        assert_eq!(changed, BTreeSet::from([slot_of(TO)]));
        assert_eq!(active(&policies), None);
        assert_eq!(policies.set_own(BTreeSet::new()), BTreeSet::from([slot_of(TO)]));
        assert_eq!(active(&policies), Some(addr("fd00:b::2")));
    }
}
