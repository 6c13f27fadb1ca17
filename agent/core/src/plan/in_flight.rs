//! Operations that are out, by number. Numbers grow and answers come mostly in order, so this is a queue that is searched
//! from the front: nothing is allocated per operation.

use std::collections::VecDeque;

use super::operation::OpId;
use crate::desired::VppKey;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct InFlight(VecDeque<(OpId, VppKey)>);

impl InFlight {
    /// An operation for this object leaves. Its number must be greater than any before.
    pub(super) fn insert(&mut self, id: OpId, key: VppKey) {
        debug_assert!(self.0.back().is_none_or(|(last, _)| *last < id));
        self.0.push_back((id, key));
    }

    /// An operation has ended; what it was for, if it is known.
    pub(super) fn remove(&mut self, id: OpId) -> Option<VppKey> {
        let at = match self.0.front() {
            Some((first, _)) if *first == id => 0,
            _ => self.0.binary_search_by_key(&id, |(id, _)| *id).ok()?,
        };
        self.0.remove(at).map(|(_, key)| key)
    }

    /// None is answered any more.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::ObjectKey;

    #[test]
    fn answers_find_their_operation_in_any_order_and_once() {
        let mut out = InFlight::default();
        let keys = [ObjectKey::FibSource, ObjectKey::Uplink, ObjectKey::EncapSource].map(VppKey::Object);
        for (id, key) in (7..).zip(keys) {
            out.insert(OpId(id), key);
        }
        assert_eq!(out.remove(OpId(8)), Some(keys[1]));
        assert_eq!(out.remove(OpId(8)), None);
        assert_eq!(out.remove(OpId(7)), Some(keys[0]));
        assert_eq!((out.len(), out.is_empty()), (1, false));
        assert_eq!(out.remove(OpId(99)), None);
        out.clear();
        assert_eq!(out.remove(OpId(9)), None);
    }
}
