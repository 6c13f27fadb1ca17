//! A set of destinations, one bit for each.

use crate::rib::DestId;

/// Destinations by number. It grows to the highest number that ever was in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dests(Vec<u64>);

impl Dests {
    const fn place(dest: DestId) -> (usize, u64) {
        (dest.index() / 64, 1 << (dest.index() % 64))
    }

    /// Whether `dest` is in it.
    pub(super) fn contains(&self, dest: DestId) -> bool {
        let (word, bit) = Self::place(dest);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds `dest`.
    pub(super) fn insert(&mut self, dest: DestId) {
        let (word, bit) = Self::place(dest);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    /// Takes `dest` out.
    pub(super) fn remove(&mut self, dest: DestId) {
        let (word, bit) = Self::place(dest);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_come_and_go() {
        let mut dests = Dests::default();
        let of = DestId::from_index;
        dests.remove(of(1000));
        for at in [0, 63, 64, 200] {
            assert!(!dests.contains(of(at)));
            dests.insert(of(at));
            dests.insert(of(at));
            assert!(dests.contains(of(at)));
        }
        assert_eq!([1, 62, 65, 199, 201, 100_000].map(|at| dests.contains(of(at))), [false; 6]);
        dests.remove(of(64));
        assert_eq!([0, 63, 64, 200].map(|at| dests.contains(of(at))), [true, true, false, true]);
    }
}
