//! A pool of indexed items. A freed index is the next one given out, as in VPP.

/// Items by index.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Pool<T> {
    /// An empty pool.
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }

    /// The index that the next [`Pool::insert`] will give.
    pub(crate) fn next_index(&self) -> u32 {
        self.free.last().copied().unwrap_or_else(|| u32::try_from(self.items.len()).unwrap_or(u32::MAX))
    }

    /// Adds an item; its index.
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        let at = self.next_index();
        if self.free.pop().is_none() {
            self.items.push(None);
        }
        if let Some(place) = self.items.get_mut(at as usize) {
            *place = Some(item);
        }
        at
    }

    /// Takes an item out; its index is free from now on.
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        let item = self.items.get_mut(at as usize)?.take()?;
        self.free.push(at);
        Some(item)
    }

    /// The item at this index.
    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        self.items.get(at as usize)?.as_ref()
    }

    /// The item at this index.
    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.items.get_mut(at as usize)?.as_mut()
    }

    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }

    /// All items by rising index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0u32..).zip(&self.items).filter_map(|(at, item)| Some((at, item.as_ref()?)))
    }
}

/// A pool of bare indices.
#[derive(Debug, Default)]
pub(crate) struct Indices {
    next: u32,
    free: Vec<u32>,
}

impl Indices {
    /// An index nobody has.
    pub(crate) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let index = self.next;
            self.next = self.next.wrapping_add(1);
            index
        })
    }

    /// The index is free again.
    pub(crate) fn give_back(&mut self, index: u32) {
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_freed_index_comes_first() {
        let mut pool = Pool::new();
        assert_eq!([pool.insert('a'), pool.insert('b'), pool.insert('c')], [0, 1, 2]);
        assert_eq!(pool.remove(0), Some('a'));
        assert_eq!(pool.remove(1), Some('b'));
        assert_eq!(pool.remove(1), None);
        assert_eq!([pool.insert('d'), pool.insert('e'), pool.insert('f')], [1, 0, 3]);
        assert_eq!(
            pool.iter().map(|(at, c)| (at, *c)).collect::<Vec<_>>(),
            [(0, 'e'), (1, 'd'), (2, 'c'), (3, 'f')]
        );
    }
}
