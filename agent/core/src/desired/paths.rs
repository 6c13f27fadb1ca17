//! Interned sets of paths: many routes share few of them, so a route holds numbers and equality is equality of
//! numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::object::Path;
use crate::event::FibPath;

/// Number of an interned set of paths.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetId(u32);

impl SetId {
    /// No route.
    pub(crate) const NONE: Self = Self(0);
    /// A route with paths that this agent never asks for; equal to nothing wanted.
    pub(crate) const FOREIGN: Self = Self(u32::MAX);
    /// A route into an interface that is gone: it drops everything, and would still do so when another interface got the
    /// same index, as VPP shares what hangs on a set of paths. It must be deleted before it is put again.
    pub(crate) const DEAD: Self = Self(u32::MAX - 1);

    const fn slot(self) -> Option<usize> {
        match self.0 {
            0 | u32::MAX => None,
            n if n == Self::DEAD.0 => None,
            n => Some(n as usize - 1),
        }
    }
}

/// Why a set is kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A route shall have it.
    Desired,
    /// A route has it in VPP, or may have it by an operation in flight.
    Held,
}

#[derive(Debug)]
struct Slot {
    paths: Arc<[Path]>,
    desired: u32,
    held: u32,
    /// The paths with the indices of now; forgotten when one of the tunnels changes.
    resolved: Option<Arc<[FibPath]>>,
}

/// The interned sets.
#[derive(Debug, Default)]
pub(crate) struct PathSets {
    ids: BTreeMap<Arc<[Path]>, SetId>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
}

impl PathSets {
    /// The number of a set; made if it is new. Kept only once [`PathSets::retain`] has been called.
    pub(crate) fn intern(&mut self, paths: &Arc<[Path]>) -> SetId {
        if let Some(id) = self.ids.get(paths) {
            return *id;
        }
        let slot = Slot { paths: Arc::clone(paths), desired: 0, held: 0, resolved: None };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.slots.push(None);
                self.slots.len() as u32 - 1
            }
        };
        if let Some(place) = self.slots.get_mut(at as usize) {
            *place = Some(slot);
        }
        let id = SetId(at + 1);
        self.ids.insert(Arc::clone(paths), id);
        id
    }

    /// Counts one more use. True where it is the first of its kind.
    pub(crate) fn retain(&mut self, id: SetId, why: Use) -> bool {
        let Some(slot) = self.slot_mut(id) else { return false };
        let count = if why == Use::Desired { &mut slot.desired } else { &mut slot.held };
        *count += 1;
        *count == 1
    }

    /// Counts one use less, and frees the set after the last. True where it was the last of its kind.
    pub(crate) fn release(&mut self, id: SetId, why: Use) -> bool {
        let Some(slot) = self.slot_mut(id) else { return false };
        let count = if why == Use::Desired { &mut slot.desired } else { &mut slot.held };
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if slot.desired == 0 && slot.held == 0 {
            self.forget(id);
        }
        last
    }

    /// The paths of a set that one route holds, and no other.
    pub(crate) fn last_held(&self, id: SetId) -> Option<Arc<[Path]>> {
        self.slot(id).filter(|slot| slot.held == 1).map(|slot| Arc::clone(&slot.paths))
    }

    /// The paths of a set; empty for no route and for a foreign one.
    pub(crate) fn paths(&self, id: SetId) -> Arc<[Path]> {
        self.slot(id).map_or_else(|| Arc::from([]), |slot| Arc::clone(&slot.paths))
    }

    /// The paths with indices, as resolved before.
    pub(crate) fn resolved(&self, id: SetId) -> Option<Arc<[FibPath]>> {
        self.slot(id)?.resolved.clone()
    }

    /// Remembers the paths with indices.
    pub(crate) fn set_resolved(&mut self, id: SetId, paths: Arc<[FibPath]>) {
        if let Some(slot) = self.slot_mut(id) {
            slot.resolved = Some(paths);
        }
    }

    /// Forgets all indices: some changed.
    pub(crate) fn forget_resolved(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.resolved = None;
        }
    }

    /// How many sets there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    fn forget(&mut self, id: SetId) {
        let Some(at) = id.slot() else { return };
        if let Some(slot) = self.slots.get_mut(at).and_then(Option::take) {
            self.ids.remove(&slot.paths);
            self.free.push(at as u32);
        }
    }

    fn slot(&self, id: SetId) -> Option<&Slot> {
        self.slots.get(id.slot()?)?.as_ref()
    }

    fn slot_mut(&mut self, id: SetId) -> Option<&mut Slot> {
        self.slots.get_mut(id.slot()?)?.as_mut()
    }
}
