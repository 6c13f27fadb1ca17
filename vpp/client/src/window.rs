//! Requests in flight: a fixed number of slots, found by context.
//!
//! A context is a sequence number with the slot in its low byte and the top bit clear, so an answer finds its
//! request at once and a late answer to an earlier one in the same slot does not match. A request whose deadline
//! has passed keeps its slot (VPP may still be at it, and its answer may still come) until it is answered, or one
//! sent after it is: VPP answers one client strictly in order. So never more than a window is in flight.

use tokio::time::Instant;
use vpp_wire::{Context, MsgId};

use crate::settings::WindowSize;

/// Contexts of the connection's own pings end in this byte, which no slot has.
const OWN_SLOT: u32 = 0xff;
const TOP_BIT: u64 = 0x8000_0000;

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Ends the wait.
    pub(crate) last: MsgId,
    /// May come before, any number of times.
    pub(crate) details: Option<MsgId>,
}

#[derive(Debug)]
struct Slot<P> {
    sequence: u64,
    expected: Expected,
    deadline: Instant,
    /// `None` once the deadline has passed.
    pending: Option<P>,
}

/// The slots.
#[derive(Debug)]
pub(crate) struct Window<P> {
    slots: Vec<Option<Slot<P>>>,
    free: Vec<u8>,
    sequence: u64,
    abandoned: usize,
}

/// How an answer fits.
pub(crate) enum Match<'a, P> {
    /// One of several; more will come.
    Details(&'a mut P),
    /// The answer: the slot is free again. With the message of the details that came before, if it could have some.
    Last(P, Option<MsgId>),
    /// The answer to a request given up, or part of it.
    Late,
    /// To nothing that is in flight.
    Unexpected,
}

impl<P> Window<P> {
    pub(crate) fn new(size: WindowSize) -> Self {
        let slots = size.requests() as u8;
        Self {
            slots: (0..slots).map(|_| None).collect(),
            free: (0..slots).rev().collect(),
            sequence: 0,
            abandoned: 0,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether nobody waits for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() + self.abandoned == self.slots.len()
    }

    /// Takes a slot; gives the request back when there is none.
    pub(crate) fn open(&mut self, expected: Expected, deadline: Instant, pending: P) -> Result<Context, P> {
        let Some(at) = self.free.pop() else {
            return Err(pending);
        };
        let sequence = self.next();
        self.slots[usize::from(at)] = Some(Slot { sequence, expected, deadline, pending: Some(pending) });
        Ok(context(sequence, u32::from(at)))
    }

    /// A context outside the slots.
    pub(crate) fn own_context(&mut self) -> Context {
        let sequence = self.next();
        context(sequence, OWN_SLOT)
    }

    /// Finds what an answer answers. `deadline` is the new one of a dump that goes on.
    pub(crate) fn answer(&mut self, answered: Context, id: MsgId, deadline: Instant) -> Match<'_, P> {
        let at = (answered.value() & 0xff) as usize;
        let Some(place) = self.slots.get_mut(at) else {
            return Match::Unexpected;
        };
        let Some(slot) = place.as_mut() else {
            return Match::Unexpected;
        };
        if context(slot.sequence, answered.value() & 0xff) != answered {
            return Match::Unexpected;
        }
        if slot.expected.last == id {
            let sequence = slot.sequence;
            let details = slot.expected.details;
            let pending = slot.pending.take();
            *place = None;
            self.free.push(at as u8);
            self.abandoned -= usize::from(pending.is_none());
            self.answered(sequence);
            return pending.map_or(Match::Late, |pending| Match::Last(pending, details));
        }
        if slot.expected.details != Some(id) {
            return Match::Unexpected;
        }
        slot.deadline = deadline;
        // Looked up again, as a borrow that is returned cannot be given up on the way above.
        match self.slots[at].as_mut().and_then(|slot| slot.pending.as_mut()) {
            Some(pending) => Match::Details(pending),
            None => Match::Late,
        }
    }

    /// Stops waiting for an answer that is still to come.
    pub(crate) fn give_up(&mut self, context: Context) -> Option<P> {
        let slot = self.slots.get_mut((context.value() & 0xff) as usize)?.as_mut()?;
        let pending = slot.pending.take()?;
        self.abandoned += 1;
        Some(pending)
    }

    /// Gives up what is overdue; tells when to call again.
    pub(crate) fn expire(&mut self, now: Instant, mut overdue: impl FnMut(P)) -> Option<Instant> {
        let mut next = None;
        for slot in self.slots.iter_mut().flatten() {
            if slot.pending.is_none() {
                continue;
            }
            if slot.deadline <= now {
                self.abandoned += 1;
                if let Some(pending) = slot.pending.take() {
                    overdue(pending);
                }
            } else {
                next = Some(next.map_or(slot.deadline, |next: Instant| next.min(slot.deadline)));
            }
        }
        next
    }

    /// Slots of given-up requests sent before `sequence`: VPP has passed them by.
    fn answered(&mut self, sequence: u64) {
        if self.abandoned == 0 {
            return;
        }
        for (at, place) in self.slots.iter_mut().enumerate() {
            if place.as_ref().is_some_and(|slot| slot.pending.is_none() && slot.sequence < sequence) {
                *place = None;
                self.free.push(at as u8);
                self.abandoned -= 1;
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

fn context(sequence: u64, slot: u32) -> Context {
    let low = ((sequence << 8) & (TOP_BIT - 1)) as u32;
    Context::new(low | slot)
}
