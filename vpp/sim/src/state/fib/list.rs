//! Routes as they are listed and looked up.

use super::{Entry, Fib, Table};
use crate::state::key::{Af, Key};
use crate::state::path::{self, Path, Shape};
use crate::state::paths::PathListId;
use crate::state::sources::{INTERFACE, SourceId};

/// A route as dumps list it.
pub(crate) struct Listed<'a> {
    /// The prefix without host bits.
    pub(crate) key: Key,
    /// Its address as first given.
    pub(crate) given: [u8; 16],
    /// Index into the statistics segment.
    pub(crate) stats_index: u32,
    /// The source that is forwarded.
    pub(crate) source: SourceId,
    /// Its paths.
    pub(crate) paths: Paths<'a>,
    /// Whether they drop although they look right.
    pub(crate) dead: bool,
}

/// Paths kept, or made up for the occasion.
pub(crate) enum Paths<'a> {
    /// A path list.
    Kept(&'a [Path]),
    /// A next hop on a connected prefix.
    Made(Path),
}

impl std::ops::Deref for Paths<'_> {
    type Target = [Path];

    fn deref(&self) -> &[Path] {
        match self {
            Self::Kept(paths) => paths,
            Self::Made(path) => std::slice::from_ref(path),
        }
    }
}

impl Fib {
    /// The routes of a table in the order of length and address; with a source, only those where it wins.
    pub(crate) fn list<'a>(
        &'a self,
        af: Af,
        table: &'a Table,
        source: Option<SourceId>,
    ) -> impl Iterator<Item = Listed<'a>> {
        let wanted = |entry: &Entry| source.is_none_or(|source| entry.best.source == source);
        let mut keys: Vec<Key> =
            table.routes.iter().filter(|(_, entry)| wanted(entry)).map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.into_iter().filter_map(move |key| self.listed(af, table, key))
    }

    /// The route that an address range is forwarded by: the longest, or only the exact one.
    pub(crate) fn lookup<'a>(
        &'a self,
        af: Af,
        table: &'a Table,
        key: Key,
        exact: bool,
    ) -> Option<Listed<'a>> {
        let shortest = if exact { key.len } else { 0 };
        (shortest..=key.len)
            .rev()
            .map(|len| Key::new(key.addr, len))
            .find_map(|key| self.listed(af, table, key))
    }

    fn listed<'a>(&'a self, af: Af, table: &'a Table, key: Key) -> Option<Listed<'a>> {
        let entry = table.routes.get(&key)?;
        let (paths, dead) = if entry.best.paths == PathListId::OF_COVER {
            self.paths_of_cover(af, table, key)
        } else {
            (Paths::Kept(self.lists.paths(entry.best.paths)), self.lists.is_dead(entry.best.paths))
        };
        Some(Listed {
            key,
            given: table.given.get(&key).copied().unwrap_or(key.addr),
            stats_index: entry.stats_index,
            source: entry.best.source,
            paths,
            dead,
        })
    }

    /// What a next hop does: the same as the longest prefix it is in; on a connected one it is a neighbour.
    fn paths_of_cover<'a>(&'a self, af: Af, table: &'a Table, key: Key) -> (Paths<'a>, bool) {
        let cover = (0..key.len).rev().find_map(|len| {
            table
                .routes
                .get(&Key::new(key.addr, len))
                .filter(|entry| entry.best.paths != PathListId::OF_COVER)
        });
        let Some(cover) = cover else { return (Paths::Kept(&[]), false) };
        let paths = self.lists.paths(cover.best.paths);
        let dead = self.lists.is_dead(cover.best.paths);
        match paths {
            [only] if cover.best.source == INTERFACE && path::shape(only) == Shape::Attached => {
                (Paths::Made(path::neighbour(af, only.sw_if_index.get(), key.addr)), dead)
            }
            paths => (Paths::Kept(paths), dead),
        }
    }
}
