//! A growing array in fixed-size pages.
//!
//! Growth allocates one more page and moves nothing, so there is no moment at which the old and the new copy of a
//! large table exist together, and no pause that grows with the table. Indices are dense and stable.
//!
//! *Never:* shrinks before it is dropped, moves an element, or knows which of its elements are in use.

/// `N` elements a page; `N` must be a power of two, so that finding an element is a shift and a mask.
#[derive(Debug)]
pub struct Pages<T, const N: usize> {
    pages: Vec<Box<[T]>>,
    len: usize,
}

impl<T: Clone + Default, const N: usize> Pages<T, N> {
    const SHIFT: u32 = {
        assert!(N.is_power_of_two());
        N.trailing_zeros()
    };

    /// An array without elements and without pages.
    #[must_use]
    pub fn new() -> Self {
        Self { pages: Vec::new(), len: 0 }
    }

    /// How many elements have been pushed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been pushed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heap octets in use.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.pages.len() * N * size_of::<T>() + self.pages.capacity() * size_of::<Box<[T]>>()
    }

    /// Appends `value` and returns its index.
    pub fn push(&mut self, value: T) -> usize {
        let ix = self.len;
        if ix >> Self::SHIFT == self.pages.len() {
            self.pages.push(vec![T::default(); N].into_boxed_slice());
        }
        self.len += 1;
        self[ix] = value;
        ix
    }

    /// Makes index `ix` exist, filling with default values up to it.
    pub fn extend_to(&mut self, ix: usize) {
        while ix >> Self::SHIFT >= self.pages.len() {
            self.pages.push(vec![T::default(); N].into_boxed_slice());
        }
        self.len = self.len.max(ix + 1);
    }

    /// The element at `ix`, or `None` where nothing was pushed.
    #[must_use]
    pub fn get(&self, ix: usize) -> Option<&T> {
        (ix < self.len).then(|| &self[ix])
    }
}

impl<T: Clone + Default, const N: usize> Default for Pages<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Default, const N: usize> std::ops::Index<usize> for Pages<T, N> {
    type Output = T;

    #[inline]
    fn index(&self, ix: usize) -> &T {
        &self.pages[ix >> Self::SHIFT][ix & (N - 1)]
    }
}

impl<T: Clone + Default, const N: usize> std::ops::IndexMut<usize> for Pages<T, N> {
    #[inline]
    fn index_mut(&mut self, ix: usize) -> &mut T {
        &mut self.pages[ix >> Self::SHIFT][ix & (N - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_stay_valid_over_page_borders() {
        let mut pages = Pages::<u32, 4>::new();
        assert!(pages.is_empty());
        for n in 0..11 {
            assert_eq!(pages.push(n * 10), n as usize);
        }
        assert_eq!(pages.len(), 11);
        assert_eq!(
            (0..11).map(|ix| pages[ix]).collect::<Vec<_>>(),
            (0..11).map(|n| n * 10).collect::<Vec<_>>()
        );
        assert_eq!(pages.get(11), None);
    }

    #[test]
    fn extending_fills_with_the_default() {
        let mut pages = Pages::<u32, 4>::new();
        pages.extend_to(6);
        assert_eq!(pages.len(), 7);
        assert_eq!(pages[6], 0);
        assert_eq!(pages.push(9), 7);
        pages.extend_to(2);
        assert_eq!(pages.len(), 8);
    }
}
