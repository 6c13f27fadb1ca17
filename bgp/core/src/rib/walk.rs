//! Walking over all indices of a growing array in slices.

/// A walk in a circle: it may be begun again at any time, and then ends once it has come round to where it stood. So
/// whatever was there when it was last begun is looked at after that, however much the array has grown meanwhile,
/// and beginning again and again starves nobody.
#[derive(Debug, Default)]
pub struct Walk {
    under_way: bool,
    next: usize,
    /// Where the circle ends.
    stop_at: usize,
    /// The end of the array has been passed since the walk was begun.
    wrapped: bool,
}

impl Walk {
    /// Everything is to be looked at. A walk under way goes on and comes round once more.
    pub fn begin(&mut self) {
        self.under_way = true;
        self.stop_at = self.next;
        self.wrapped = false;
    }

    /// Whether there is nothing left to look at.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        !self.under_way
    }

    /// The next index to look at, below `len`.
    pub fn step(&mut self, len: usize) -> Option<usize> {
        if self.under_way && self.next >= len {
            self.next = 0;
            self.under_way = !self.wrapped && self.stop_at > 0;
            self.wrapped = true;
        }
        if len == 0 || self.wrapped && self.next >= self.stop_at {
            self.under_way = false;
        }
        let at = self.under_way.then_some(self.next)?;
        self.next += 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(walk: &mut Walk, len: usize) -> Vec<usize> {
        std::iter::from_fn(|| walk.step(len)).collect()
    }

    #[test]
    fn a_walk_sees_everything_once() {
        let mut walk = Walk::default();
        assert!(walk.is_done() && walk.step(4).is_none());
        for _ in 0..2 {
            walk.begin();
            assert_eq!(rest(&mut walk, 4), [0, 1, 2, 3]);
            assert!(walk.is_done());
        }
    }

    #[test]
    fn a_walk_begun_again_comes_round_though_the_array_grows() {
        let mut walk = Walk::default();
        walk.begin();
        assert_eq!((walk.step(4), walk.step(4)), (Some(0), Some(1)));
        walk.begin();
        assert_eq!(walk.step(4), Some(2));
        assert_eq!(rest(&mut walk, 6), [3, 4, 5, 0, 1]);
        walk.begin();
        assert_eq!(walk.step(6), Some(2));
        walk.begin();
        assert_eq!(rest(&mut walk, 6), [3, 4, 5, 0, 1, 2]);
    }

    #[test]
    fn nothing_to_walk_over_ends_at_once() {
        let mut walk = Walk::default();
        walk.begin();
        assert_eq!((walk.step(0), walk.is_done()), (None, true));
    }
}
