//! How one object stands, for people: whether it is wanted and there, its value, why it is blocked and when it is tried again.

use std::collections::BTreeMap;

use bgp_core::time::Instant;

use super::diff::settled;
use super::operation::VppFailure;
use super::report::DEPTH;
use super::run::{Link, VppPlan};
use crate::desired::{MtuRule, ObjectKey, SetId, Spec, State, Store, VppKey};
use crate::explain::{ExplainedObject, ObjectStanding, in_words};

/// At most so many interfaces are named where none is the uplink.
const NAMED: usize = 8;

/// Why an object is not as it should be.
#[derive(Clone, Debug)]
pub(super) struct Why {
    /// Step by step.
    pub(super) reason: String,
    /// The cause at the end of the steps; see [`BlockedObject::cause`](super::BlockedObject::cause).
    pub(super) cause: String,
    /// The object at the end of the steps: when that is tried again, so is what waits for it.
    pub(super) root: VppKey,
}

impl VppPlan {
    /// How one object stands; `None` where nobody wants it and VPP does not have it.
    pub(crate) fn explain(&self, key: &VppKey) -> Option<ExplainedObject> {
        let (mut object, root) = self.stands(key)?;
        object.next_try = self.next_tries(root.as_slice()).into_iter().next().flatten();
        Some(object)
    }

    /// How one object stands, but for when it is tried next; and it with the object that this depends on, where it is blocked.
    fn stands(&self, key: &VppKey) -> Option<(ExplainedObject, Option<(VppKey, VppKey)>)> {
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
        let why = (standing == ObjectStanding::Blocked).then(|| self.why(key, DEPTH));
        let root = why.as_ref().map(|why| (*key, why.root));
        let object = ExplainedObject {
            object: *key,
            wanted,
            standing,
            value: value_of(&self.store, key),
            reason: why.map(|why| why.reason).unwrap_or_default(),
            attempts: if standing == ObjectStanding::Blocked { self.attempts(key) } else { 0 },
            next_try: None,
            paths,
        };
        (!gone).then_some((object, root))
    }

    /// Every object but routes that is wanted, or that VPP has, in the order of their kinds.
    pub(crate) fn objects(&self) -> Vec<ExplainedObject> {
        let stands = |key: &ObjectKey| self.stands(&VppKey::Object(*key));
        let (mut objects, roots): (Vec<_>, Vec<_>) = self.store.objects.keys().filter_map(stands).unzip();
        // All at once: what is to be tried again is looked through each time.
        let blocked = objects.iter_mut().zip(&roots).filter(|(_, root)| root.is_some());
        let tries = self.next_tries(&roots.iter().copied().flatten().collect::<Vec<_>>());
        for ((object, _), next_try) in blocked.zip(tries) {
            object.next_try = next_try;
        }
        objects
    }

    /// Why an object is not as it should be; empty texts where nothing is known to be wrong.
    pub(super) fn why(&self, key: &VppKey, depth: usize) -> Why {
        let root = *key;
        if let Some(reason) = self.awaited(key) {
            return Why { reason, cause: String::new(), root };
        }
        if let Some(failure) = self.failures.get(key) {
            let reason = failure.to_string();
            let cause = match (key, failure) {
                // The same for all objects of the kind.
                (_, VppFailure::Unsupported(_)) | (VppKey::Route(_), _) => reason.clone(),
                (VppKey::Object(object), _) => format!("{object}: {reason}"),
            };
            return Why { reason, cause, root };
        }
        match self.blocker(key) {
            Some(ObjectKey::Uplink) => {
                let reason = self.no_uplink();
                Why { cause: reason.clone(), reason, root: VppKey::Object(ObjectKey::Uplink) }
            }
            Some(blocker) => {
                let blocker_key = VppKey::Object(blocker);
                let why = match depth {
                    0 => Why { reason: String::new(), cause: String::new(), root: blocker_key },
                    _ => self.why(&blocker_key, depth - 1),
                };
                let reason = if why.reason.is_empty() {
                    format!("waits for {blocker}")
                } else {
                    format!("waits for {blocker}: {}", why.reason)
                };
                Why { reason, ..why }
            }
            None => Why { reason: String::new(), cause: String::new(), root },
        }
    }

    /// What an entry waits for.
    pub(super) fn blocker(&self, key: &VppKey) -> Option<ObjectKey> {
        self.waiting.iter().find(|(_, keys)| keys.contains(key)).map(|(blocker, _)| *blocker)
    }

    /// How often an entry has been tried in vain since it was last asked for afresh.
    pub(super) fn attempts(&self, key: &VppKey) -> u8 {
        match key {
            VppKey::Object(object) => self.store.objects.get(object).map_or(0, |entry| entry.attempts),
            VppKey::Route(route) => self.store.route(route).map_or(0, |entry| entry.attempts),
        }
    }

    /// When each of these is tried next: by itself, or with what it waits for. What VPP refused for good is tried again when all
    /// that VPP holds is read anew.
    pub(super) fn next_tries(&self, roots: &[(VppKey, VppKey)]) -> Vec<Option<Instant>> {
        let mut due: BTreeMap<VppKey, Option<Instant>> = BTreeMap::new();
        for (_, root) in roots {
            let refused = self.state(root) == Some(State::Rejected);
            due.insert(*root, self.audits.due.filter(|_| refused));
        }
        if due.is_empty() {
            return Vec::new();
        }
        // There may be very many, so they are looked through once.
        for (at, key) in &self.retries {
            if let Some(first @ None) = due.get_mut(key)
                && matches!(self.state(key), Some(State::Backoff))
            {
                *first = Some(*at);
            }
        }
        roots.iter().map(|(_, root)| due.get(root).copied().flatten()).collect()
    }

    fn state(&self, key: &VppKey) -> Option<State> {
        match key {
            VppKey::Object(object) => self.store.objects.get(object).map(|entry| entry.state),
            VppKey::Route(route) => self.store.route(route).map(|entry| entry.state),
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

/// The value of an object in words: the one that VPP has, else the one that is wanted. Empty for what has none, and for keys.
pub(super) fn value_of(store: &Store, key: &VppKey) -> String {
    let VppKey::Object(key) = key else { return String::new() };
    let Some(entry) = store.objects.get(key) else { return String::new() };
    entry.held().or(entry.desired.as_ref()).map(in_figures).unwrap_or_default()
}

fn in_figures(spec: &Spec) -> String {
    match spec {
        Spec::Mtu(octets) | Spec::MtuRule(MtuRule::Fixed(octets)) => format!("{octets} octets"),
        Spec::MtuRule(MtuRule::UplinkLess(overhead)) => format!("the uplink's, less {overhead} octets"),
        Spec::Lender(index) => format!("those of interface {}", index.0),
        Spec::Table(table, _) => format!("table {table}"),
        Spec::EncapSource(address) => address.to_string(),
        Spec::Localsid(behavior) => behavior.to_string(),
        Spec::SrPolicy { lists, .. } => {
            format!("{} {} of segments", lists.len(), if lists.len() == 1 { "list" } else { "lists" })
        }
        Spec::SrSteering(bsid) => format!("into sr policy {bsid}"),
        Spec::Leads(tunnel) => format!("into {tunnel}"),
        Spec::Through(gateways) => {
            let all: Vec<String> = gateways.iter().map(ToString::to_string).collect();
            format!("via {}", all.join(" and "))
        }
        Spec::WireguardPeer(peer) => {
            format!("at {} port {}, allowed prefixes: {}", peer.endpoint, peer.port, peer.allowed.len())
        }
        Spec::SnatAddresses(addresses) => {
            let ipv4 = addresses.ipv4.map(|address| address.to_string());
            let all = ipv4.into_iter().chain(addresses.ipv6.map(|address| address.to_string()));
            all.collect::<Vec<_>>().join(" and ")
        }
        Spec::CryptoThreads(threads) => format!("workers: {threads}"),
        Spec::WireguardKeys(_) | Spec::IkeProfile(_) | Spec::IkeHeld(_) | Spec::Noted => String::new(),
    }
}
