//! How VPP stands, for people: counts by kind, and what is blocked by what.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bgp_core::time::Instant;

use super::diff::settled;
use super::operation::VppFailure;
use super::order::Rules;
use super::run::{Link, VppPlan};
use super::standing::value_of;
use crate::desired::{Actual, ObjectEntry, ObjectKey, SetId, Spec, State, VppKey};
use crate::event::Generation;
use crate::model::{PublicKey, RouteKey};

/// At most so many objects that are blocked, and so many that are on their way, are listed; the counts are complete.
const LISTED: usize = 100;
/// At most so many steps from an object to the cause of its being blocked.
pub(super) const DEPTH: usize = 8;

/// How VPP stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VppReport {
    /// What is known of the connection.
    pub state: VppState,
    /// Which connection it is; 0 before the first.
    pub generation: Generation,
    /// Operations in flight.
    pub in_flight: usize,
    /// One entry for each kind of object, by name.
    pub kinds: Vec<(&'static str, KindCounts)>,
    /// What is blocked, with reasons; the first hundred.
    pub blocked: Vec<BlockedObject>,
    /// What is on its way, coming, changing or going; the first hundred.
    pub pending: Vec<PendingObject>,
    /// How the sessions with WireGuard peers stand.
    pub wireguard: Vec<WireguardSession>,
    /// So many of the blocked objects are improvements that this VPP has no message for, or associations that the other node
    /// takes no part in yet: this node is as good as it can be.
    pub lacking: usize,
}

impl VppReport {
    /// How many objects are not as they shall be, though they could.
    #[must_use]
    pub fn unsettled(&self) -> usize {
        let all: usize = self.kinds.iter().map(|(_, counts)| counts.pending + counts.blocked).sum();
        all.saturating_sub(self.lacking)
    }
}

/// A session with a WireGuard peer that VPP has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireguardSession {
    /// The peer's address.
    pub peer: IpAddr,
    /// Its public key.
    pub public: PublicKey,
    /// There is a session. Without one VPP makes one when there is something to send.
    pub established: bool,
}

/// What is known of the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VppState {
    /// There is none.
    Away,
    /// What VPP holds is being read.
    Reading,
    /// What VPP holds is known.
    Running,
}

/// Objects of one kind.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Wanted.
    pub desired: usize,
    /// Known to be in VPP, wanted or not.
    pub present: usize,
    /// On their way, coming or going.
    pub pending: usize,
    /// Unable to come or go: waiting for another object, failing, refused.
    pub blocked: usize,
}

/// An object that cannot come or go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedObject {
    /// The object.
    pub object: VppKey,
    /// The value that it shall have, or has; empty where it has none that could be told.
    pub value: String,
    /// Why, followed to its cause.
    pub reason: String,
    /// The cause alone: what a person has to put right. The same for everything that is blocked by the same. Empty for what
    /// waits for something that nothing is known to be wrong with.
    pub cause: String,
    /// How often it has been tried in vain.
    pub attempts: u8,
    /// When it, or what it waits for, is tried next; `None` where that is not a matter of time.
    pub next_try: Option<Instant>,
}

/// An object that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingObject {
    /// The object.
    pub object: VppKey,
    /// The value that it shall have, or has; empty where it has none that could be told.
    pub value: String,
    /// What becomes of it.
    pub course: Course,
}

/// What becomes of an object that is on its way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Course {
    /// VPP does not have it yet.
    Coming,
    /// VPP has it, with another value.
    Changing,
    /// Nobody wants it any more.
    Going,
}

impl VppPlan {
    /// How VPP stands. Costs a walk over all objects.
    pub(crate) fn report(&self) -> VppReport {
        let mut kinds: BTreeMap<&'static str, KindCounts> = BTreeMap::new();
        let (mut blocked, mut roots, mut pending) = (Vec::new(), Vec::new(), Vec::new());
        let mut lacking = 0;
        let mut count = |key: VppKey, state: State, desired: bool, present: bool, settled: bool| {
            let kind = match key {
                VppKey::Object(object) => object.kind(),
                VppKey::Route(_) => "route",
            };
            let counts = kinds.entry(kind).or_default();
            counts.desired += usize::from(desired);
            counts.present += usize::from(present);
            match state {
                State::Waiting | State::Backoff | State::Rejected => {
                    counts.blocked += 1;
                    lacking += usize::from(self.lacks(&key, DEPTH) || self.awaited(&key).is_some());
                    if blocked.len() < LISTED {
                        let why = self.why(&key, DEPTH);
                        roots.push((key, why.root));
                        blocked.push(BlockedObject {
                            object: key,
                            value: value_of(&self.store, &key),
                            reason: why.reason,
                            cause: why.cause,
                            attempts: self.attempts(&key),
                            next_try: None,
                        });
                    }
                }
                State::Idle | State::Held | State::Lingering if settled => {}
                State::Held | State::Lingering => {}
                State::Idle | State::Queued | State::InFlight => {
                    counts.pending += 1;
                    if pending.len() < LISTED {
                        let course = match (desired, present) {
                            (true, false) => Course::Coming,
                            (true, true) => Course::Changing,
                            (false, _) => Course::Going,
                        };
                        let value = value_of(&self.store, &key);
                        pending.push(PendingObject { object: key, value, course });
                    }
                }
            }
        };
        for (key, entry) in &self.store.objects {
            let present = entry.actual != Actual::Absent;
            // A setting without its tunnel, or one that stays until its tunnel goes, is as it should be.
            let settled = !entry.wanted() || settled(&self.store, key, entry);
            count(VppKey::Object(*key), entry.state, entry.wanted(), present, settled);
        }
        for (table, routes) in &self.store.routes {
            for (prefix, entry) in routes.iter() {
                let key = VppKey::Route(RouteKey { table: *table, prefix });
                let (desired, present) = (entry.desired != SetId::NONE, entry.actual != SetId::NONE);
                count(key, entry.state, desired, present, entry.desired == entry.actual);
            }
        }
        let tries = self.next_tries(&roots);
        for (blocked, next_try) in blocked.iter_mut().zip(tries) {
            blocked.next_try = next_try;
        }
        VppReport {
            state: match self.link {
                Link::Down => VppState::Away,
                // An audit that VPP answers is no reason to doubt what is known.
                Link::DumpDue(_, 0) | Link::Dumping(_, 0) if self.audits.under_way() => VppState::Running,
                Link::DumpDue(..) | Link::Dumping(..) => VppState::Reading,
                Link::Running => VppState::Running,
            },
            generation: self.generation,
            in_flight: self.in_flight(),
            kinds: kinds.into_iter().collect(),
            blocked,
            pending,
            wireguard: self.wireguard_sessions(),
            lacking,
        }
    }

    fn wireguard_sessions(&self) -> Vec<WireguardSession> {
        let session = |(key, entry): (&ObjectKey, &ObjectEntry)| {
            let ObjectKey::WireguardPeer(_, public) = key else { return None };
            let (Actual::Index(index), Some(Spec::WireguardPeer(peer))) = (entry.actual, entry.held()) else {
                return None;
            };
            let established = self.sessions.is_up(index);
            Some(WireguardSession { peer: peer.endpoint, public: *public, established })
        };
        self.store.objects.iter().filter_map(session).collect()
    }

    /// Why there is no association, where all that is missing is the other end.
    pub(super) fn awaited(&self, key: &VppKey) -> Option<String> {
        let VppKey::Object(object @ ObjectKey::IkeSession(ends)) = key else { return None };
        let entry = self.store.objects.get(object)?;
        let waits = self.waiting.get(object).is_some_and(|keys| keys.contains(key));
        match entry.state {
            _ if self.failures.contains_key(key) => None,
            State::Backoff if entry.attempts == 0 => {
                Some(format!("the association with {} has ended", ends.remote))
            }
            State::Backoff => Some(format!(
                "{} takes no part, beginnings: {}. Is it up, and is its ipsec.psk the same?",
                ends.remote, entry.attempts
            )),
            State::Waiting if waits => Some(format!("waits for {} to begin", ends.remote)),
            State::Idle
            | State::Queued
            | State::InFlight
            | State::Waiting
            | State::Rejected
            | State::Held
            | State::Lingering => None,
        }
    }

    /// Whether an object is an improvement that this VPP has no message for, or waits for such a one.
    fn lacks(&self, key: &VppKey, depth: usize) -> bool {
        let optional = matches!(key, VppKey::Object(object) if Rules::of(object).optional);
        let unsupported = || matches!(self.failures.get(key), Some(VppFailure::Unsupported(_)));
        let waits = || {
            let blocker = self.blocker(key);
            depth > 0 && blocker.is_some_and(|blocker| self.lacks(&VppKey::Object(blocker), depth - 1))
        };
        optional && (unsupported() || waits())
    }
}
