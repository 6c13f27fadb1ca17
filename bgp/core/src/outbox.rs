//! What a core wants its embedder to do, in order.
//!
//! The embedder owns the outbox and reuses it from call to call, so that a turn of a core allocates nothing.

use std::collections::VecDeque;
use std::collections::vec_deque::Drain;

/// A first-in, first-out list of actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbox<T>(VecDeque<T>);

impl<T> Outbox<T> {
    /// An empty outbox; it allocates with the first push.
    #[must_use]
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Appends an action.
    pub fn push(&mut self, action: T) {
        self.0.push_back(action);
    }

    /// Takes the oldest action.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop_front()
    }

    /// Takes all actions, oldest first, and keeps the memory.
    pub fn drain(&mut self) -> Drain<'_, T> {
        self.0.drain(..)
    }

    /// Looks at the actions, oldest first, without taking them.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many actions wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order() {
        let mut out = Outbox::new();
        out.push(1);
        out.push(2);
        out.push(3);
        assert_eq!((out.len(), out.pop()), (3, Some(1)));
        assert_eq!(out.iter().copied().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(out.drain().collect::<Vec<_>>(), [2, 3]);
        assert!(out.is_empty());
    }
}
