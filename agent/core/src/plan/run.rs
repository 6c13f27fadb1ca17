//! The reconciler of VPP as a value: what is ready, in flight, retried, blocked.
//!
//! While VPP is away nothing is queued; when it is back a dump says what it holds, and every entry that differs is
//! looked at. From then on only touched entries are, and now and then everything by an audit, which is a dump again. An entry has at most one operation in flight; what happens to it
//! meanwhile is looked at when that ends. What is needed and absent is waited for by key, never polled.

mod associations;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use bgp_core::time::Instant;
use ipnet::IpNet;

use super::actual;
use super::audit::{Audit, Audits, Before};
use super::backoff::pause;
use super::diff::{Step, object_step, route_step};
use super::in_flight::InFlight;
use super::operation::{
    NatAction, OpId, SOURCE_NAME, TUNNEL_TAG, VppAction, VppFailure, VppOp, WireguardAction,
};
use super::order::{Rank, family};
use super::rivals::Rivals;
use super::sessions::Sessions;
use super::steps;
use crate::config::{Srv6Pools, VppConfig};
use crate::desired::{Actual, IkeHeld, ObjectKey, SetId, Spec, State, Store, Tunnel, VppKey};
use crate::effects::VppEdit;
use crate::event::{Dump, Generation, Interface, SwIfIndex, VppReply};
use crate::model::{Condition, RouteKey};

/// An empty queue with more room than this gives its memory back.
const ROOMY: usize = 4096;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct VppPlan {
    pub(super) store: Store,
    pub(super) link: Link,
    pub(super) generation: Generation,
    window: usize,
    ready: [VecDeque<VppKey>; Rank::COUNT],
    /// What each operation is for.
    in_flight: InFlight,
    pub(super) retries: BTreeSet<(Instant, VppKey)>,
    /// Who waits for an object to be there.
    pub(super) waiting: BTreeMap<ObjectKey, BTreeSet<VppKey>>,
    pub(super) failures: BTreeMap<VppKey, VppFailure>,
    /// Counts changes of what is blocked, by whatever.
    troubles: u64,
    next_op: u64,
    may_delete: bool,
    /// A dump has been merged and not everything it asked for has been done.
    replaying: bool,
    /// Whether VPP already had our FIB source or a tunnel of ours when it was first read: it keeps them until it
    /// restarts.
    was_ours: Option<bool>,
    /// Interfaces as last seen, among which the uplink is looked for.
    pub(super) interfaces: Vec<Interface>,
    /// Interfaces that were seen while a dump was out: they are newer than those of the dump.
    newer: Option<Vec<Interface>>,
    pub(super) audits: Audits,
    rivals: Rivals,
    /// Sessions with WireGuard peers.
    pub(super) sessions: Sessions,
    /// Touched keys being looked at; empty in between.
    batch: Vec<VppKey>,
}

/// What is known of the connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none.
    Down,
    /// A dump is due at this time, as soon as nothing is in flight; so many have failed.
    DumpDue(Instant, u8),
    /// A dump is out; so many have failed before.
    Dumping(OpId, u8),
    /// What VPP holds is known.
    Running,
}

impl VppPlan {
    pub(crate) fn new(config: &VppConfig, remembered: &[IpNet], srv6: Option<Srv6Pools>) -> Self {
        let &VppConfig { window, audit, adopt, .. } = config;
        let mut store = Store::default();
        store.noted.recall(remembered.iter().copied());
        store.srv6 = srv6;
        store.adopts = adopt;
        Self {
            store,
            link: Link::Down,
            generation: Generation::default(),
            window: window.max(1),
            ready: Default::default(),
            in_flight: InFlight::default(),
            retries: BTreeSet::new(),
            waiting: BTreeMap::new(),
            failures: BTreeMap::new(),
            troubles: 0,
            next_op: 0,
            may_delete: false,
            replaying: false,
            was_ours: None,
            interfaces: Vec::new(),
            newer: None,
            audits: Audits::new(audit),
            rivals: Rivals::default(),
            sessions: Sessions::default(),
            batch: Vec::new(),
        }
    }

    /// Applies edits.
    pub(crate) fn edit(&mut self, edits: impl Iterator<Item = VppEdit>) {
        for edit in edits {
            self.store.edit(edit);
        }
        self.drain_touched();
    }

    /// Every source has said what it wants: what is found in VPP and wanted by nobody may go from now on.
    pub(crate) fn allow_deletes(&mut self) {
        if self.may_delete {
            return;
        }
        self.may_delete = true;
        let held: Vec<VppKey> = self.all_keys(|state| state == State::Held);
        for key in held {
            self.touch(key);
        }
    }

    /// A connection is up.
    pub(crate) fn up(&mut self, now: Instant, generation: Generation) {
        self.lost();
        self.generation = generation;
        self.link = Link::DumpDue(now, 0);
    }

    /// The connection is gone.
    pub(crate) fn lost(&mut self) {
        self.link = Link::Down;
        self.rivals.forget();
        self.audits.cancel();
        self.clear_work();
        actual::forget(&mut self.store);
    }

    /// A session with a WireGuard peer has come up or gone. Whose, where that is known.
    pub(crate) fn wireguard_session(&mut self, peer: u32, established: bool) -> Option<IpAddr> {
        self.sessions.heard(peer, established);
        let found = self.store.objects.iter().find(|(key, entry)| {
            // One that we remove goes down because of that.
            matches!(key, ObjectKey::WireguardPeer(..))
                && entry.actual == Actual::Index(peer)
                && entry.present()
        });
        let Some(Spec::WireguardPeer(peer)) = found?.1.held() else { return None };
        Some(peer.endpoint)
    }

    fn clear_work(&mut self) {
        self.sessions = Sessions::default();
        self.ready.iter_mut().for_each(VecDeque::clear);
        self.in_flight.clear();
        self.retries.clear();
        self.waiting.clear();
        self.failures.clear();
        self.interfaces.clear();
        self.newer = None;
        self.replaying = false;
        self.troubles += 1;
    }

    /// The interfaces of VPP changed.
    pub(crate) fn interfaces(&mut self, now: Instant, interfaces: &[Interface]) {
        match self.link {
            Link::Running => {
                self.interfaces = interfaces.to_vec();
                self.find_uplink();
                if self.lost_a_tunnel() {
                    self.dump_again(now);
                }
                self.look_at_sessions(now);
            }
            Link::Dumping(..) => self.newer = Some(interfaces.to_vec()),
            // The dump that comes says more.
            Link::Down | Link::DumpDue(..) => {}
        }
    }

    /// Everything that VPP holds is compared with what is wanted, as soon as nothing is in flight. Answers the number of
    /// the audit; `None` where VPP is away, or being read for another reason.
    pub(crate) fn audit(&mut self, now: Instant) -> Option<u64> {
        match self.link {
            Link::Running => {
                self.link = Link::DumpDue(now, 0);
                Some(self.audits.begin())
            }
            Link::DumpDue(..) | Link::Dumping(..) => self.audits.under_way().then(|| self.audits.begin()),
            Link::Down => None,
        }
    }

    /// The last audit, once nothing that it found is left to do.
    pub(crate) fn audited(&self) -> Option<&Audit> {
        self.audits.last().filter(|_| self.link == Link::Running && self.idle())
    }

    /// What is to be said of others who write into VPP, where that is something else than before.
    pub(crate) fn take_rivals(&mut self) -> Option<Vec<Condition>> {
        let source = match self.store.objects.get(&ObjectKey::FibSource).map(|entry| entry.actual) {
            Some(Actual::Source(id)) => Some(id),
            Some(Actual::Absent | Actual::Present | Actual::Interface(_) | Actual::Index(_)) | None => None,
        };
        self.rivals.news(self.audits.last(), source)
    }

    /// Whether VPP, or somebody else, has deleted a tunnel that nothing of ours deletes now.
    fn lost_a_tunnel(&self) -> bool {
        self.store.objects.iter().any(|(key, entry)| {
            let (ObjectKey::Tunnel(tunnel), Actual::Interface(index)) = (key, entry.actual) else {
                return false;
            };
            let tagged = self.store.present(&ObjectKey::Tag(*tunnel));
            let found = self.interfaces.iter().find(|interface| interface.index == index);
            entry.present() && tagged && found.is_none_or(|found| !found.tag.starts_with(TUNNEL_TAG))
        })
    }

    fn find_uplink(&mut self) {
        if !actual::find_uplink(&mut self.store, &self.interfaces) {
            return;
        }
        self.wake(ObjectKey::Uplink);
        let borrowers: Vec<ObjectKey> = self
            .store
            .objects
            .keys()
            .filter(|key| matches!(key, ObjectKey::Unnumbered(_) | ObjectKey::Mtu(_)))
            .copied()
            .collect();
        for key in borrowers {
            self.touch(VppKey::Object(key));
        }
    }

    /// Everything that VPP holds is read anew, as soon as nothing is in flight.
    fn dump_again(&mut self, at: Instant) {
        if self.link == Link::Running {
            self.link = Link::DumpDue(at, 0);
        }
    }

    /// An operation ended.
    pub(crate) fn done(&mut self, now: Instant, id: OpId, result: Result<VppReply, VppFailure>) {
        if let Link::Dumping(dump, failed) = self.link
            && dump == id
        {
            match result {
                Ok(VppReply::Dump(dump)) => self.dumped(now, &dump),
                Ok(VppReply::Done | VppReply::SwIfIndex(_) | VppReply::FibSource(_) | VppReply::Index(_))
                | Err(_) => {
                    let failed = failed.saturating_add(1);
                    self.link = Link::DumpDue(now + pause(failed), failed);
                }
            }
            return;
        }
        // Answers from before a loss find nothing here.
        let Some(key) = self.in_flight.remove(id) else { return };
        match key {
            VppKey::Route(route) => self.route_done(now, route, result),
            VppKey::Object(object) => self.object_done(now, object, result),
        }
        self.drain_touched();
    }

    fn dumped(&mut self, now: Instant, dump: &Dump) {
        let tagged = dump.interfaces.iter().any(|interface| interface.tag.starts_with(TUNNEL_TAG));
        self.was_ours.get_or_insert(tagged || dump.fib_source.is_some());
        let newer = self.newer.take();
        let before = Before::of(&self.store);
        // An audit is no reason to begin sooner what waits for another node.
        let patient = if self.audits.under_way() { self.patient_sessions() } else { Vec::new() };
        self.clear_work();
        actual::forget(&mut self.store);
        actual::merge(&mut self.store, dump);
        if self.audits.under_way() {
            before.keep_unseen(&mut self.store);
        }
        self.rivals.read(dump, SOURCE_NAME);
        self.sessions.read(dump);
        self.interfaces = newer.unwrap_or_else(|| dump.interfaces.clone());
        actual::find_uplink(&mut self.store, &self.interfaces);
        self.audits.read(now, &before, &self.store);
        self.store.touched.clear();
        self.link = Link::Running;
        self.replaying = true;
        for (at, key, attempts) in patient {
            let entry = self.store.objects.get_mut(&key);
            if let Some(entry) = entry.filter(|entry| entry.wanted() && entry.actual == Actual::Absent) {
                (entry.state, entry.attempts) = (State::Backoff, attempts);
                self.retries.insert((at, VppKey::Object(key)));
            }
        }
        for key in self.all_keys(|state| state != State::Backoff) {
            self.touch(key);
        }
    }

    fn route_done(&mut self, now: Instant, route: RouteKey, result: Result<VppReply, VppFailure>) {
        let Some(entry) = self.store.route_mut(&route) else { return };
        entry.state = State::Idle;
        let (target, before) = (std::mem::replace(&mut entry.target, SetId::NONE), entry.actual);
        match result {
            Err(failure) if failure != VppFailure::Absent || target != SetId::NONE => {
                self.store.unhold(target);
                self.failed(now, VppKey::Route(route), failure, target == SetId::NONE);
            }
            Ok(_) | Err(_) => {
                entry.actual = target;
                entry.attempts = 0;
                let settled = entry.desired == target;
                // Another agent's may have waited for it.
                let other = VppKey::Object(ObjectKey::OtherRoute(route));
                if self.store.adopts && settled {
                    self.touch(other);
                }
                if !settled {
                    self.touch(VppKey::Route(route));
                } else if target == SetId::NONE {
                    self.store.forget_route(&route);
                    // The network's table may have waited for it.
                    if route.table.network().is_some() {
                        let table = ObjectKey::Table(route.table, family(&route.prefix));
                        self.touch(VppKey::Object(table));
                    }
                }
                // The operation's own use of the target has become the route's.
                self.store.unhold(before);
            }
        }
    }

    fn object_done(&mut self, now: Instant, object: ObjectKey, result: Result<VppReply, VppFailure>) {
        let key = VppKey::Object(object);
        if matches!(object, ObjectKey::IkeSession(_)) && result.is_ok() {
            self.begun(now, object);
            return;
        }
        let Some(entry) = self.store.objects.get_mut(&object) else { return };
        entry.state = State::Idle;
        let leaving = std::mem::take(&mut entry.leaving);
        let actual = match result {
            Ok(_) | Err(VppFailure::Absent) if leaving => Actual::Absent,
            Ok(VppReply::SwIfIndex(index)) | Err(VppFailure::Exists(index)) => Actual::Interface(index),
            Ok(VppReply::FibSource(id)) => Actual::Source(id),
            Ok(VppReply::Index(index)) => Actual::Index(index),
            // A change of value leaves it what it was.
            Ok(VppReply::Done | VppReply::Dump(_)) if entry.actual == Actual::Absent => Actual::Present,
            Ok(VppReply::Done | VppReply::Dump(_)) => entry.actual,
            Err(failure) => {
                // VPP said no: it holds no more than before.
                if let ObjectKey::SnatExclusion(prefix) = object
                    && !leaving
                    && failure != VppFailure::Unanswered
                    && self.store.objects.get(&object).is_some_and(|entry| entry.actual == Actual::Absent)
                {
                    self.store.noted.strike(&prefix);
                }
                self.store.settle_sent(&object, false);
                self.failed(now, key, failure, leaving);
                return;
            }
        };
        if let ObjectKey::WireguardPeer(..) = object {
            self.sessions.peer_changed(entry.actual, actual);
        }
        let changed = std::mem::replace(&mut entry.actual, actual) != actual;
        entry.attempts = 0;
        entry.lingers = None;
        self.store.settle_sent(&object, true);
        if let (ObjectKey::SnatExclusion(prefix), Actual::Absent) = (object, actual) {
            self.store.noted.strike(&prefix);
        }
        if let ObjectKey::IkeProfile(ends) = object {
            self.profile_changed(ends);
            if !leaving {
                self.store.fresh.insert(ends);
            }
        }
        if let ObjectKey::Tunnel(tunnel) = object
            && changed
        {
            self.tunnel_changed(tunnel, actual);
        }
        if actual != Actual::Absent {
            self.wake(object);
        }
        self.touch(key);
    }

    /// A tunnel came or went: it has none of its settings and peers then, and its index is another one.
    fn tunnel_changed(&mut self, tunnel: Tunnel, actual: Actual) {
        self.store.sets.forget_resolved();
        let peers: Vec<ObjectKey> = match &tunnel {
            Tunnel::Wireguard(interface) => {
                steps::peers_of(&self.store, interface).map(|(key, _)| *key).collect()
            }
            Tunnel::Ipip(_) | Tunnel::Vxlan(_) => Vec::new(),
        };
        for setting in ObjectKey::settings(tunnel).into_iter().chain(peers) {
            self.store.set_held(&setting, None);
            if let Some(entry) = self.store.objects.get_mut(&setting) {
                entry.actual = Actual::Absent;
                if actual != Actual::Absent || !entry.wanted() {
                    self.touch(VppKey::Object(setting));
                }
            }
        }
        if let Tunnel::Ipip(ends) = tunnel {
            // It names the interface, which is another one, be it under the same index.
            let profile = ObjectKey::IkeProfile(ends);
            let held = self.store.objects.get(&profile).and_then(|entry| entry.held().cloned());
            if let Some(Spec::IkeHeld(held)) = held {
                let nowhere = IkeHeld { index: SwIfIndex::NONE, ..held };
                self.store.set_held(&profile, Some(Spec::IkeHeld(nowhere)));
            }
            self.touch(VppKey::Object(profile));
            self.session_over(ends);
        }
    }

    fn failed(&mut self, now: Instant, key: VppKey, failure: VppFailure, leaving: bool) {
        let state = match &failure {
            // What shall go has no value that could change.
            VppFailure::Rejected(_) | VppFailure::Unsupported(_) if leaving => State::Backoff,
            VppFailure::Rejected(_) | VppFailure::Unsupported(_) => State::Rejected,
            VppFailure::Retry(_) | VppFailure::Exists(_) | VppFailure::Absent => State::Backoff,
            VppFailure::Unanswered | VppFailure::Taken => {
                self.dump_again(now + pause(1));
                State::Backoff
            }
        };
        let mut attempts = 0;
        self.with_state(&key, |at, tries| {
            *at = state;
            *tries = tries.saturating_add(1);
            attempts = *tries;
        });
        if state == State::Backoff {
            self.retries.insert((now + pause(attempts), key));
        }
        self.failures.insert(key, failure);
        self.troubles += 1;
    }

    fn drain_touched(&mut self) {
        // The two lists change places, so that neither allocates again and again.
        while !self.store.touched.is_empty() {
            std::mem::swap(&mut self.store.touched, &mut self.batch);
            for at in 0..self.batch.len() {
                if let Some(key) = self.batch.get(at).copied() {
                    self.touched(key);
                }
            }
            self.batch.clear();
        }
    }

    /// The wish for an object changed: a refusal of the old wish means nothing any more.
    fn touched(&mut self, key: VppKey) {
        if key == VppKey::Object(ObjectKey::Uplink) {
            if self.link == Link::Running {
                self.find_uplink();
            }
            return;
        }
        self.enqueue(key, true);
    }

    /// An entry is to be looked at.
    fn touch(&mut self, key: VppKey) {
        self.enqueue(key, false);
    }

    fn enqueue(&mut self, key: VppKey, afresh: bool) {
        if self.link != Link::Running {
            return;
        }
        let queued = |state: &mut State, attempts: &mut u8| {
            if afresh {
                *attempts = 0;
            }
            let idle = !matches!(state, State::Queued | State::InFlight);
            if idle {
                *state = State::Queued;
            }
            idle
        };
        // One look-up for each route: there are many.
        let rank = match key {
            VppKey::Route(route) => {
                let Some(entry) = self.store.route_mut(&route) else { return };
                if !queued(&mut entry.state, &mut entry.attempts) {
                    return;
                }
                if entry.actual == SetId::DEAD { Rank::Base } else { Rank::of(&key, true) }
            }
            VppKey::Object(object) => {
                let Some(entry) = self.store.objects.get_mut(&object) else { return };
                if !queued(&mut entry.state, &mut entry.attempts) {
                    return;
                }
                Rank::of(&key, entry.wanted())
            }
        };
        self.troubles += u64::from(self.failures.remove(&key).is_some());
        if let Some(ready) = self.ready.get_mut(rank as usize) {
            ready.push_back(key);
        }
    }

    /// Something that others wait for is there.
    fn wake(&mut self, object: ObjectKey) {
        for key in self.waiting.remove(&object).unwrap_or_default() {
            self.troubles += 1;
            let mut waits = false;
            self.with_state(&key, |state, _| waits = *state == State::Waiting);
            if waits {
                self.touch(key);
            }
        }
    }

    fn with_state(&mut self, key: &VppKey, change: impl FnOnce(&mut State, &mut u8)) {
        match key {
            VppKey::Object(object) => {
                if let Some(entry) = self.store.objects.get_mut(object) {
                    change(&mut entry.state, &mut entry.attempts);
                }
            }
            VppKey::Route(route) => {
                if let Some(entry) = self.store.route_mut(route) {
                    change(&mut entry.state, &mut entry.attempts);
                }
            }
        }
    }

    fn all_keys(&self, which: impl Fn(State) -> bool) -> Vec<VppKey> {
        let objects =
            self.store.objects.iter().filter(|(_, e)| which(e.state)).map(|(k, _)| VppKey::Object(*k));
        let routes = self.store.routes.iter().flat_map(|(table, routes)| {
            let all = routes.iter().filter(|(_, e)| which(e.state));
            all.map(|(prefix, _)| VppKey::Route(RouteKey { table: *table, prefix }))
        });
        objects.chain(routes).collect()
    }

    /// When something is due although nothing happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.link {
            Link::Down | Link::Dumping(..) => None,
            Link::DumpDue(at, _) => self.in_flight.is_empty().then_some(at),
            Link::Running => {
                let retry = self.retries.first().map(|(at, _)| *at);
                [retry, self.audits.due].into_iter().flatten().min()
            }
        }
    }

    /// Appends at most `slots` operations that may leave now.
    pub(crate) fn next_ops(&mut self, now: Instant, slots: usize, out: &mut Vec<VppOp>) {
        if self.link == Link::Running && self.audits.due.is_some_and(|due| now >= due) {
            self.audit(now);
        }
        let room = slots.min(self.window.saturating_sub(self.in_flight.len()));
        match self.link {
            Link::Down | Link::Dumping(..) => {}
            Link::DumpDue(at, failed) => {
                if now >= at && self.in_flight.is_empty() && room > 0 {
                    let id = self.op_id();
                    self.link = Link::Dumping(id, failed);
                    out.push(VppOp { id, action: VppAction::Dump });
                }
            }
            Link::Running => {
                self.due_retries(now);
                let full = out.len() + room;
                while out.len() < full {
                    let Some(key) = self.next_ready() else { break };
                    if let Some(action) = self.look_at(now, key) {
                        if let VppAction::Nat(NatAction::Exclude { prefix, add: true }) = action {
                            self.store.noted.note(prefix);
                        }
                        if action == VppAction::AddFibSource {
                            self.rivals.asks_for_source();
                        }
                        let id = self.op_id();
                        self.in_flight.insert(id, key);
                        out.push(VppOp { id, action });
                    }
                }
            }
        }
    }

    fn next_ready(&mut self) -> Option<VppKey> {
        let queue = self.ready.iter_mut().find(|queue| !queue.is_empty())?;
        let key = queue.pop_front();
        // A burst leaves a queue of its size behind.
        if queue.is_empty() && queue.capacity() > ROOMY {
            *queue = VecDeque::new();
        }
        key
    }

    fn due_retries(&mut self, now: Instant) {
        while let Some(first) = self.retries.first().copied().filter(|(at, _)| *at <= now) {
            self.retries.remove(&first);
            let mut due = false;
            self.with_state(&first.1, |state, _| {
                due = matches!(state, State::Backoff | State::Lingering);
            });
            if due {
                self.touch(first.1);
            }
        }
    }

    /// Takes the next step of an entry that was ready; an action where VPP has to be asked.
    fn look_at(&mut self, now: Instant, key: VppKey) -> Option<VppAction> {
        let step = match key {
            VppKey::Route(route) => route_step(&mut self.store, route, self.may_delete),
            VppKey::Object(object) => object_step(&self.store, object, now, self.may_delete),
        };
        if let (
            VppKey::Object(object),
            Step::Emit { action: VppAction::Wireguard(WireguardAction::AddInterface { .. }), .. },
        ) = (key, &step)
            && let Some(index) = self.store.strangers.remove(&object)
            && self.interfaces.iter().any(|interface| interface.index == index)
        {
            self.with_state(&key, |state, _| *state = State::Idle);
            self.object_done(now, object, Err(VppFailure::Exists(index)));
            return None;
        }
        let state = match &step {
            Step::Settled | Step::Forget | Step::WaitForUsers => State::Idle,
            Step::Hold => State::Held,
            Step::Linger(_) => State::Lingering,
            Step::Wait(_) => State::Waiting,
            Step::Emit { .. } => State::InFlight,
        };
        let mut target = None;
        match key {
            VppKey::Route(route) => {
                if let Some(entry) = self.store.route_mut(&route) {
                    entry.state = state;
                    if let Step::Emit { leaving, .. } = step {
                        entry.target = if leaving { SetId::NONE } else { entry.desired };
                        target = Some(entry.target);
                    }
                }
            }
            VppKey::Object(object) => {
                if let Some(entry) = self.store.objects.get_mut(&object) {
                    entry.state = state;
                    entry.leaving = matches!(step, Step::Emit { leaving: true, .. });
                    if let Step::Linger(until) = step {
                        entry.lingers = Some(until);
                    }
                }
                if let Step::Emit { spec, leaving: false, .. } = &step {
                    self.store.set_sent(&object, spec.clone());
                }
            }
        }
        if let Some(target) = target {
            self.store.hold(target);
        }
        match step {
            Step::Settled | Step::Hold | Step::WaitForUsers => None,
            Step::Linger(until) => {
                self.retries.insert((until, key));
                None
            }
            Step::Forget => {
                match key {
                    VppKey::Route(route) => self.store.forget_route(&route),
                    VppKey::Object(object) => {
                        self.store.set_held(&object, None);
                        self.store.objects.remove(&object);
                        self.wake(object);
                    }
                }
                None
            }
            Step::Wait(blocker) => {
                self.waiting.entry(blocker).or_default().insert(key);
                self.troubles += 1;
                // It is in the way, and may go now.
                if matches!(
                    (key, blocker),
                    (VppKey::Object(ObjectKey::WireguardPeer(..)), ObjectKey::WireguardPeer(..))
                ) {
                    self.touch(VppKey::Object(blocker));
                }
                None
            }
            Step::Emit { action, .. } => Some(action),
        }
    }

    fn op_id(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    /// Whether VPP, when it was first read, had been written by an earlier run of this agent.
    pub(crate) fn was_ours(&self) -> bool {
        self.was_ours == Some(true)
    }

    /// True once after a dump, when everything that it asked for has been done or has failed.
    pub(crate) fn take_replayed(&mut self) -> bool {
        let quiet = self.link == Link::Running && self.idle();
        quiet && std::mem::take(&mut self.replaying)
    }

    /// Another number than before where what is blocked may have changed. Costs nothing.
    pub(crate) const fn troubles(&self) -> u64 {
        self.troubles
    }

    /// What VPP may hold and doesn't show.
    pub(crate) fn remembered(&self) -> Vec<IpNet> {
        self.store.noted.all()
    }

    /// Another number where that changed.
    pub(crate) fn notes(&self) -> u64 {
        self.store.noted.version()
    }

    /// Nothing is ready or in flight.
    pub(crate) fn idle(&self) -> bool {
        self.in_flight.is_empty() && self.ready.iter().all(VecDeque::is_empty)
    }

    /// How many operations are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len() + usize::from(matches!(self.link, Link::Dumping(..)))
    }
}
