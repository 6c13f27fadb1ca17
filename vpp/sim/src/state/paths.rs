//! Path lists, kept once each however many routes use them, as VPP shares them.
//!
//! A list is dead from the moment an interface it leads through is deleted until its last route is gone, even if a new
//! interface has the same index meanwhile: that is how a real VPP ends up with routes that look right and drop.

use std::collections::HashMap;
use std::sync::Arc;

use super::path::Path;
use foldhash::fast::FixedState;
use zerocopy::{FromBytes, IntoBytes};

/// An index into [`PathLists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathListId(u32);

impl PathListId {
    /// Not a list: the route takes over what its longest cover does, at the time it is asked.
    pub(crate) const OF_COVER: Self = Self(u32::MAX);
}

#[derive(Debug)]
struct Slot {
    bytes: Arc<[u8]>,
    refs: u32,
    dead: bool,
}

/// All path lists of one VPP.
#[derive(Debug)]
pub(crate) struct PathLists {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_bytes: HashMap<Arc<[u8]>, u32, FixedState>,
}

/// What [`PathLists::retain`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retained {
    /// The list is new.
    New(PathListId),
    /// The list was there.
    Shared(PathListId),
}

impl PathLists {
    /// None.
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), by_bytes: HashMap::with_hasher(FixedState::with_seed(0)) }
    }

    /// One more reference to the list of these paths, which must be in [`super::path::canonical`] form.
    pub(crate) fn retain(&mut self, paths: &[Path]) -> Retained {
        let bytes = paths.as_bytes();
        if let Some(&at) = self.by_bytes.get(bytes) {
            if let Some(slot) = self.slots.get_mut(at as usize) {
                slot.refs += 1;
            }
            return Retained::Shared(PathListId(at));
        }
        let bytes: Arc<[u8]> = bytes.into();
        let slot = Slot { bytes: Arc::clone(&bytes), refs: 1, dead: false };
        let at = match self.free.pop() {
            Some(at) => {
                if let Some(place) = self.slots.get_mut(at as usize) {
                    *place = slot;
                }
                at
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("fewer path lists than 2^32")
            }
        };
        self.by_bytes.insert(bytes, at);
        Retained::New(PathListId(at))
    }

    /// One reference less. The bytes of the paths come back when that was the last one.
    pub(crate) fn release(&mut self, id: PathListId) -> Option<Arc<[u8]>> {
        let slot = self.slots.get_mut(id.0 as usize)?;
        slot.refs = slot.refs.saturating_sub(1);
        if slot.refs > 0 {
            return None;
        }
        let bytes = std::mem::replace(&mut slot.bytes, Arc::new([]));
        self.by_bytes.remove(&bytes);
        self.free.push(id.0);
        Some(bytes)
    }

    /// The paths of a list.
    pub(crate) fn paths(&self, id: PathListId) -> &[Path] {
        self.slots.get(id.0 as usize).map_or(&[], |slot| read(&slot.bytes))
    }

    /// Whether the list leads through a deleted interface, so that its routes drop.
    pub(crate) fn is_dead(&self, id: PathListId) -> bool {
        self.slots.get(id.0 as usize).is_some_and(|slot| slot.dead)
    }

    /// Every list through this interface is dead from now on.
    pub(crate) fn interface_deleted(&mut self, sw_if_index: u32) {
        for slot in &mut self.slots {
            if slot.refs > 0 && read(&slot.bytes).iter().any(|path| path.sw_if_index.get() == sw_if_index) {
                slot.dead = true;
            }
        }
    }

    /// How many lists there are.
    #[cfg(test)]
    pub(crate) fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// Path lists as bytes, read again.
pub(crate) fn read(bytes: &[u8]) -> &[Path] {
    <[Path]>::ref_from_bytes(bytes).unwrap_or(&[])
}
