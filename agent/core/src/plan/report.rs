//! How VPP stands, for people: counts by kind, and what is blocked by what.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::diff::settled;
use super::operation::VppFailure;
use super::order::Rules;
use super::run::{Link, VppPlan};
use crate::desired::{Actual, ObjectEntry, ObjectKey, SetId, Spec, State, VppKey};
use crate::event::Generation;
use crate::explain::{ExplainedObject, ObjectStanding, in_words};
use crate::model::{PublicKey, RouteKey};

/// At most so many blocked objects are listed; the counts are complete.
const LISTED: usize = 100;
/// At most so many interfaces are named where none is the uplink.
const NAMED: usize = 8;
/// At most so many steps from an object to the cause of its being blocked.
const DEPTH: usize = 8;

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
    /// Why, followed to its cause.
    pub reason: String,
    /// The cause alone: what a person has to put right. The same for everything that is blocked by the same. Empty for what
    /// waits for something that nothing is known to be wrong with.
    pub cause: String,
}

impl VppPlan {
    /// How VPP stands. Costs a walk over all objects.
    pub(crate) fn report(&self) -> VppReport {
        let mut kinds: BTreeMap<&'static str, KindCounts> = BTreeMap::new();
        let mut blocked = Vec::new();
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
                        let (reason, cause) = self.reason(&key, DEPTH);
                        blocked.push(BlockedObject { object: key, reason, cause });
                    }
                }
                State::Idle | State::Held | State::Lingering if settled => {}
                State::Held | State::Lingering => {}
                State::Idle | State::Queued | State::InFlight => counts.pending += 1,
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
    fn awaited(&self, key: &VppKey) -> Option<String> {
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
            let blocker =
                self.waiting.iter().find(|(_, keys)| keys.contains(key)).map(|(blocker, _)| *blocker);
            depth > 0 && blocker.is_some_and(|blocker| self.lacks(&VppKey::Object(blocker), depth - 1))
        };
        optional && (unsupported() || waits())
    }

    /// How one object stands; `None` where nobody wants it and VPP does not have it.
    pub(crate) fn explain(&self, key: &VppKey) -> Option<ExplainedObject> {
        let (state, wanted, settled, paths) = match key {
            VppKey::Object(object) => {
                let entry = self.store.objects.get(object)?;
                let settled = if entry.wanted() {
                    !entry.leaving && settled(&self.store, object, entry)
                } else {
                    !entry.present()
                };
                (entry.state, entry.wanted(), settled, Vec::new())
            }
            VppKey::Route(route) => {
                let entry = self.store.route(route)?;
                let paths = self.store.sets.paths(entry.desired).iter().map(in_words).collect();
                (entry.state, entry.desired != SetId::NONE, entry.desired == entry.actual, paths)
            }
        };
        let standing = match state {
            _ if self.link != Link::Running && !self.audits.under_way() => ObjectStanding::Unknown,
            State::Waiting | State::Backoff | State::Rejected => ObjectStanding::Blocked,
            State::Held => ObjectStanding::LeftOver,
            State::Lingering => ObjectStanding::Lingering,
            State::Idle if settled => ObjectStanding::Present,
            State::Idle | State::Queued | State::InFlight => ObjectStanding::Pending,
        };
        let gone = standing == ObjectStanding::Present && !wanted;
        let reason = match standing {
            ObjectStanding::Blocked => self.reason(key, DEPTH).0,
            ObjectStanding::Present
            | ObjectStanding::Pending
            | ObjectStanding::Unknown
            | ObjectStanding::LeftOver
            | ObjectStanding::Lingering => String::new(),
        };
        (!gone).then_some(ExplainedObject { object: *key, standing, reason, paths })
    }

    /// Why an object is not as it should be, step by step, and the cause at the end of the steps; empty where nothing is
    /// known to be wrong.
    fn reason(&self, key: &VppKey, depth: usize) -> (String, String) {
        if let Some(reason) = self.awaited(key) {
            return (reason, String::new());
        }
        if let Some(failure) = self.failures.get(key) {
            let reason = failure.to_string();
            let cause = match (key, failure) {
                // The same for all objects of the kind.
                (_, VppFailure::Unsupported(_)) | (VppKey::Route(_), _) => reason.clone(),
                (VppKey::Object(object), _) => format!("{object}: {reason}"),
            };
            return (reason, cause);
        }
        let blocker = self.waiting.iter().find(|(_, keys)| keys.contains(key)).map(|(blocker, _)| *blocker);
        match blocker {
            Some(ObjectKey::Uplink) => {
                let reason = self.no_uplink();
                (reason.clone(), reason)
            }
            Some(blocker) => {
                let (reason, cause) = match depth {
                    0 => (String::new(), String::new()),
                    _ => self.reason(&VppKey::Object(blocker), depth - 1),
                };
                if reason.is_empty() {
                    (format!("waits for {blocker}"), cause)
                } else {
                    (format!("waits for {blocker}: {reason}"), cause)
                }
            }
            None => (String::new(), String::new()),
        }
    }

    /// Why there is no uplink, and what to do.
    fn no_uplink(&self) -> String {
        let Some(uplink) = &self.store.uplink else {
            return "this node's address is not known yet".to_owned();
        };
        let names: Vec<&str> = self.interfaces.iter().take(NAMED).map(|interface| &*interface.name).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        match &uplink.name {
            Some(name) => format!(
                "VPP has no interface named {name}, which vpp.uplink in the settings names; it has {there}. Name the one \
                 with this node's address, or leave vpp.uplink out to have it found by the address"
            ),
            None => {
                let addresses: Vec<String> = uplink.addresses.iter().map(ToString::to_string).collect();
                format!(
                    "no interface of VPP has this node's address ({}); it has {there}. Give one the address, or name the \
                     uplink by vpp.uplink in the settings",
                    addresses.join(", ")
                )
            }
        }
    }
}
