//! Tunnels that IKEv2 protects: what begins them, what is waited for, and what their coming and going means.

use std::collections::BTreeSet;

use bgp_core::time::Instant;

use super::super::backoff::patience;
use super::VppPlan;
use crate::desired::{Actual, IpipKey, ObjectKey, State, Tunnel, VppKey};
use crate::event::SwIfIndex;

impl VppPlan {
    /// Tunnels that IKEv2 protects go up and down with their associations, by VPP's doing.
    pub(super) fn look_at_sessions(&mut self, now: Instant) {
        let up: BTreeSet<SwIfIndex> =
            self.interfaces.iter().filter(|found| found.admin_up).map(|found| found.index).collect();
        let states = self.store.objects.iter().filter_map(|(key, entry)| {
            let ObjectKey::IkeSession(ends) = key else { return None };
            let there = entry.actual != Actual::Absent;
            let index = self.store.interface(&ObjectKey::Tunnel(Tunnel::Ipip(*ends)));
            let up = index.is_some_and(|index| up.contains(&index))
                && self.store.present(&ObjectKey::IkeProfile(*ends));
            (up != there).then_some((*key, up))
        });
        for (key, up) in states.collect::<Vec<_>>() {
            if up {
                self.session_up(key);
            } else {
                // Whoever began it does so again by itself, mostly.
                self.await_session(now, key);
            }
        }
    }

    /// The other end has taken part.
    pub(super) fn session_up(&mut self, key: ObjectKey) {
        if let Some(entry) = self.store.objects.get_mut(&key) {
            entry.actual = Actual::Present;
            entry.attempts = 0;
            if entry.state == State::Backoff {
                entry.state = State::Idle;
            }
        }
        self.failures.remove(&VppKey::Object(key));
        self.troubles += 1;
        self.wake(key);
    }

    /// VPP has begun, which says nothing of the other end.
    pub(super) fn begun(&mut self, now: Instant, key: ObjectKey) {
        let Some(entry) = self.store.objects.get_mut(&key) else { return };
        entry.state = State::Idle;
        if let ObjectKey::IkeSession(ends) = key {
            self.store.fresh.remove(&ends);
        }
        if entry.actual == Actual::Absent {
            entry.attempts = entry.attempts.saturating_add(1);
            self.await_session(now, key);
        }
    }

    /// What was begun, or is down, is given some time.
    pub(super) fn await_session(&mut self, now: Instant, key: ObjectKey) {
        let Some(entry) = self.store.objects.get_mut(&key) else { return };
        entry.actual = Actual::Absent;
        if entry.state == State::InFlight {
            return;
        }
        entry.state = State::Backoff;
        self.retries.insert((now + patience(entry.attempts), VppKey::Object(key)));
        self.troubles += 1;
    }

    /// A profile came, changed or went, for which the tunnel has been taken down.
    pub(super) fn profile_changed(&mut self, ends: IpipKey) {
        self.session_over(ends);
        let up = ObjectKey::AdminUp(Tunnel::Ipip(ends));
        if let Some(entry) = self.store.objects.get_mut(&up) {
            entry.actual = Actual::Absent;
            self.touch(VppKey::Object(up));
        }
    }

    /// Whatever association there was is no more.
    pub(super) fn session_over(&mut self, ends: IpipKey) {
        self.store.fresh.remove(&ends);
        let session = ObjectKey::IkeSession(ends);
        if let Some(entry) = self.store.objects.get_mut(&session) {
            entry.actual = Actual::Absent;
            self.touch(VppKey::Object(session));
        }
    }

    /// Associations that wait to be begun again, from when on, and how often they were begun.
    pub(super) fn patient_sessions(&self) -> Vec<(Instant, ObjectKey, u8)> {
        let waits = self.retries.iter().filter_map(|(at, key)| {
            let VppKey::Object(key @ ObjectKey::IkeSession(_)) = key else { return None };
            let entry = self.store.objects.get(key)?;
            (entry.state == State::Backoff).then_some((*at, *key, entry.attempts))
        });
        waits.collect()
    }
}
