//! The reconciler of the speaker as a value. The speaker lives in this process and starts empty, so what it holds is
//! what it has been told; a refusal stands until something about the object, or about what it names, changes.
//!
//! Two gates hold objects back: originations while VPP cannot carry the traffic they attract, peers until the first
//! complete picture is there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bgp_core::command::{Applied, Command, Refusal};

use super::operation::{OpId, SpeakerOp};
use super::order::bgp_rank;
use crate::desired::{BgpKey, BgpObject};
use crate::effects::BgpEdit;
use crate::handler::filter_of;
use crate::model::{Condition, ObjectRef};
use ipnet::IpNet;

use bgp_core::policy::{SetDef, SetKind};
use bgp_core::{Family, FamilySet, Nlri};

/// Order of commands. What goes, goes after everything that came, in the reverse order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BgpRank {
    Identity,
    Set,
    Policy,
    Origination,
    Loaded,
    Peer,
    PeerGone,
    PolicyGone,
    SetGone,
}

const RANKS: usize = BgpRank::SetGone as usize + 1;

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Queued,
    InFlight,
}

#[derive(Debug, Default)]
struct Entry {
    desired: Option<Arc<BgpObject>>,
    told: Option<Arc<BgpObject>>,
    state: State,
    refusal: Option<Refusal>,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct SpeakerPlan {
    entries: BTreeMap<BgpKey, Entry>,
    ready: [VecDeque<BgpKey>; RANKS],
    in_flight: BTreeMap<OpId, (BgpKey, Option<Arc<BgpObject>>)>,
    refused: BTreeSet<BgpKey>,
    conditions_changed: bool,
    next_op: u64,
    originate: bool,
    peer: bool,
    /// How many peers are wanted that speak each family.
    peers: [usize; Family::COUNT],
    /// Families whose forwarding outlived the restart of this agent.
    forwarding: FamilySet,
}

impl SpeakerPlan {
    /// Applies edits.
    pub(crate) fn edit(&mut self, edits: impl Iterator<Item = BgpEdit>) {
        for edit in edits {
            let (key, desired) = match edit {
                BgpEdit::Put(object) => (object.key(), Some(Arc::new(object))),
                BgpEdit::Delete(key) => (key, None),
            };
            let entry = self.entries.entry(key.clone()).or_default();
            if entry.desired != desired {
                for family in Family::ALL {
                    let count = &mut self.peers[family.index()];
                    *count += usize::from(speaks(desired.as_deref(), family));
                    *count -= usize::from(speaks(entry.desired.as_deref(), family));
                }
                entry.desired = desired;
                entry.refusal = None;
                self.touch(&key);
            }
        }
    }

    /// Opens or closes the gate of originations; closed, they are withdrawn.
    pub(crate) fn set_originate(&mut self, open: bool) {
        if std::mem::replace(&mut self.originate, open) != open {
            self.touch_all(|key| matches!(key, BgpKey::Origination(_) | BgpKey::SrPolicy(_)));
        }
    }

    /// Whether the gate of originations is open.
    pub(crate) const fn originates(&self) -> bool {
        self.originate
    }

    /// Opens the gate of peers, for good. They are told in which families forwarding outlived the restart of this agent
    /// (RFC 4724, the F bits).
    pub(crate) fn open_peers(&mut self, forwarding: FamilySet) {
        if !std::mem::replace(&mut self.peer, true) {
            self.forwarding = forwarding;
            self.edit(std::iter::once(BgpEdit::Put(BgpObject::Loaded)));
            self.touch_all(|key| matches!(key, BgpKey::Peer(_)));
        }
    }

    /// Whether any peer is wanted that speaks a family.
    pub(crate) const fn has_peers(&self, family: Family) -> bool {
        self.peers[family.index()] > 0
    }

    /// Whether the gate of peers is open.
    pub(crate) const fn peers_open(&self) -> bool {
        self.peer
    }

    fn touch_all(&mut self, which: impl Fn(&BgpKey) -> bool) {
        let keys: Vec<BgpKey> = self.entries.keys().filter(|key| which(key)).cloned().collect();
        for key in keys {
            self.touch(&key);
        }
    }

    fn touch(&mut self, key: &BgpKey) {
        let wanted = self.wanted(key).is_some();
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.state != State::Idle {
            return;
        }
        entry.state = State::Queued;
        let rank = match (bgp_rank(key), wanted) {
            (BgpRank::Peer, false) => BgpRank::PeerGone,
            (BgpRank::Policy, false) => BgpRank::PolicyGone,
            (BgpRank::Set, false) => BgpRank::SetGone,
            (rank, _) => rank,
        };
        if let Some(ready) = self.ready.get_mut(rank as usize) {
            ready.push_back(key.clone());
        }
    }

    /// What the speaker shall hold now, gates included.
    fn wanted(&self, key: &BgpKey) -> Option<&Arc<BgpObject>> {
        let open = match key {
            BgpKey::Origination(_) | BgpKey::SrPolicy(_) => self.originate,
            BgpKey::Peer(_) => self.peer,
            BgpKey::Identity
            | BgpKey::Cluster
            | BgpKey::PrefixSet(_)
            | BgpKey::Policy(_)
            | BgpKey::Loaded => true,
        };
        self.entries.get(key)?.desired.as_ref().filter(|_| open)
    }

    /// Appends at most `slots` commands.
    pub(crate) fn next_ops(&mut self, slots: usize, out: &mut Vec<SpeakerOp>) {
        let full = out.len() + slots;
        while out.len() < full {
            let Some(key) = self.ready.iter_mut().find_map(VecDeque::pop_front) else { break };
            let wanted = self.wanted(&key).cloned();
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            entry.state = State::Idle;
            if wanted == entry.told || (wanted.is_some() && entry.refusal.is_some()) {
                self.forget_if_unused(&key);
                continue;
            }
            let Some(mut command) = command(&key, wanted.as_deref()) else { continue };
            if let Command::PutPeer(_, config) = &mut command
                && let Some(graceful) = &mut config.graceful_restart
            {
                graceful.forwarding = self.forwarding;
            }
            entry.state = State::InFlight;
            self.next_op += 1;
            let id = OpId(self.next_op);
            self.in_flight.insert(id, (key, wanted));
            out.push(SpeakerOp { id, command });
        }
    }

    fn forget_if_unused(&mut self, key: &BgpKey) {
        let unused = |e: &Entry| e.desired.is_none() && e.told.is_none() && e.state == State::Idle;
        if self.entries.get(key).is_some_and(unused) {
            self.entries.remove(key);
            self.conditions_changed |= self.refused.remove(key);
        }
    }

    /// A command was answered.
    pub(crate) fn done(&mut self, id: OpId, result: Result<Applied, Refusal>) {
        let Some((key, sent)) = self.in_flight.remove(&id) else { return };
        let Some(entry) = self.entries.get_mut(&key) else { return };
        entry.state = State::Idle;
        match result {
            Ok(_) => {
                entry.told = sent;
                entry.refusal = None;
                self.conditions_changed |= self.refused.remove(&key);
                // What was refused may have missed just this.
                for refused in self.refused.clone() {
                    if let Some(entry) = self.entries.get_mut(&refused) {
                        entry.refusal = None;
                    }
                    self.touch(&refused);
                }
            }
            Err(refusal) => {
                let gone = sent.is_none() && matches!(refusal, Refusal::NoSuchPeer(_));
                if gone {
                    entry.told = None;
                } else {
                    entry.refusal = (entry.desired == sent || sent.is_none()).then_some(refusal);
                    self.refused.insert(key.clone());
                    self.conditions_changed = true;
                    if sent.is_none() {
                        // Refused to go: tried again when anything else succeeds.
                        return;
                    }
                }
            }
        }
        self.touch(&key);
    }

    /// What the speaker refuses, if that changed.
    pub(crate) fn take_conditions(&mut self) -> Option<Vec<Condition>> {
        std::mem::take(&mut self.conditions_changed).then(|| {
            let refused = self.refused.iter().filter_map(|key| {
                let entry = self.entries.get(key)?;
                let refusal = entry.refusal.as_ref()?;
                Some(Condition::error(
                    subject(key, entry.desired.as_deref()),
                    "",
                    format!("the speaker refuses it: {refusal}"),
                    "",
                ))
            });
            refused.collect()
        })
    }

    /// Nothing is ready or in flight.
    pub(crate) fn idle(&self) -> bool {
        self.in_flight.is_empty() && self.ready.iter().all(VecDeque::is_empty)
    }
}

fn speaks(object: Option<&BgpObject>, family: Family) -> bool {
    matches!(object, Some(BgpObject::Peer(_, config, _)) if config.families.contains(family))
}

/// The object that a person would change.
fn subject(key: &BgpKey, object: Option<&BgpObject>) -> ObjectRef {
    if let Some(BgpObject::Peer(_, _, origin)) = object {
        return origin.clone();
    }
    match key {
        BgpKey::Identity => ObjectRef::new("Speaker", "identity"),
        BgpKey::Cluster => ObjectRef::new("Speaker", "cluster id"),
        BgpKey::PrefixSet(name) => ObjectRef::new("PrefixSet", name.to_string()),
        BgpKey::Policy(name) => match filter_of(name) {
            Some(filter) => ObjectRef::new("BGPFilter", filter.as_str()),
            None => ObjectRef::new("Policy", name.to_string()),
        },
        BgpKey::Origination(prefix) => ObjectRef::new("Route", prefix.to_string()),
        BgpKey::SrPolicy(policy) => ObjectRef::new("SRPolicy", policy.to_string()),
        BgpKey::Loaded => ObjectRef::new("Speaker", "loading"),
        BgpKey::Peer(key) => ObjectRef::new("Peer", key.to_string()),
    }
}

/// The command that makes it so; `None` where there is nothing to say.
fn command(key: &BgpKey, wanted: Option<&BgpObject>) -> Option<Command> {
    Some(match wanted {
        Some(BgpObject::Identity { asn, router_id }) => {
            Command::PutIdentity { asn: *asn, router_id: *router_id }
        }
        Some(BgpObject::Cluster(id)) => Command::PutClusterId(*id),
        Some(BgpObject::PrefixSet(name, members)) => {
            Command::PutSet(name.clone(), SetDef::Prefixes(members.clone()))
        }
        Some(BgpObject::Policy(name, policy)) => Command::PutPolicy(name.clone(), policy.clone()),
        Some(BgpObject::Origination(prefix, origination)) => {
            Command::PutOrigination(nlri(*prefix), origination.clone())
        }
        Some(BgpObject::SrPolicy(policy, origination)) => {
            Command::PutOrigination((*policy).into(), (**origination).clone())
        }
        Some(BgpObject::Loaded) => Command::LoadingDone,
        Some(BgpObject::Peer(key, config, _)) => Command::PutPeer(*key, (**config).clone()),
        None => match key {
            // The speaker keeps the last identity, and loading cannot be undone.
            BgpKey::Identity | BgpKey::Cluster | BgpKey::Loaded => return None,
            BgpKey::PrefixSet(name) => Command::DeleteSet(SetKind::Prefixes, name.clone()),
            BgpKey::Policy(name) => Command::DeletePolicy(name.clone()),
            BgpKey::Origination(prefix) => Command::DeleteOrigination(nlri(*prefix)),
            BgpKey::SrPolicy(policy) => Command::DeleteOrigination((*policy).into()),
            BgpKey::Peer(key) => Command::DeletePeer(*key),
        },
    })
}

fn nlri(prefix: IpNet) -> Nlri {
    match prefix {
        IpNet::V4(net) => Nlri::V4(net),
        IpNet::V6(net) => Nlri::V6(net),
    }
}

#[cfg(test)]
mod tests;
