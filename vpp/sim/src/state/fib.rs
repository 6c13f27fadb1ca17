//! Tables and routes: per table and prefix one contribution of each source, the best of which is what is forwarded.
//!
//! What it never does: check a request. The API modules do that and call in here with what VPP would accept.

mod list;

use std::collections::hash_map::Entry as MapEntry;
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::key::{Af, Key};
use super::path::{self, Path};
use super::paths::{PathListId, PathLists, Retained, read};
use super::pool::{Indices, Pool};
use super::sources::{API, DEFAULT_ROUTE, RECURSIVE_RESOLUTION, SPECIAL, SourceId, Sources};

pub(crate) use self::list::Listed;

/// What one source says about one prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contribution {
    /// Where to.
    pub(crate) paths: PathListId,
    /// Who says so.
    pub(crate) source: SourceId,
    /// Whether a table replace removes it unless it is added again.
    pub(crate) marked: bool,
}

/// One prefix of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Index into the statistics segment.
    pub(crate) stats_index: u32,
    /// The contribution that is forwarded.
    pub(crate) best: Contribution,
}

/// One table of one family.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its number, as the API knows it.
    pub(crate) id: u32,
    /// Its name, at most 63 bytes.
    pub(crate) name: Vec<u8>,
    routes: HashMap<Key, Entry, FixedState>,
    /// The contributions that lost, best first; only of prefixes with more than one.
    shadowed: HashMap<Key, Vec<Contribution>, FixedState>,
    /// Prefixes that were first given with host bits are listed with them.
    given: HashMap<Key, [u8; 16], FixedState>,
    /// Added by the API and not deleted by it since.
    by_api: bool,
    /// Interfaces in it, tunnels through it and path lists that look something up in it.
    users: u32,
}

impl Table {
    /// Whether there is a route to this very prefix, whoever put it there.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.routes.contains_key(&key)
    }
}

/// All tables, their routes and what these share.
#[derive(Debug)]
pub(crate) struct Fib {
    tables: [Pool<Table>; 2],
    by_id: [BTreeMap<u32, u32>; 2],
    lists: PathLists,
    /// Who may own routes.
    pub(crate) sources: Sources,
    stats: Indices,
    /// Next hops that path lists resolve through, with how many do.
    resolved: HashMap<(Af, u32, Key), u32, FixedState>,
    random: u32,
}

fn map<K, V>() -> HashMap<K, V, FixedState> {
    HashMap::with_hasher(FixedState::with_seed(0))
}

impl Fib {
    /// The two default tables with the prefixes that VPP puts into each table.
    pub(crate) fn new() -> Self {
        let mut fib = Self {
            tables: [Pool::new(), Pool::new()],
            by_id: [BTreeMap::new(), BTreeMap::new()],
            lists: PathLists::new(),
            sources: Sources::new(),
            stats: Indices::default(),
            resolved: map(),
            random: 0,
        };
        fib.add_table(Af::Ip4, 0, &[]);
        fib.add_table(Af::Ip6, 0, &[]);
        fib
    }

    /// The table with this number.
    pub(crate) fn table(&self, af: Af, id: u32) -> Option<&Table> {
        self.tables[af.index()].get(*self.by_id[af.index()].get(&id)?)
    }

    fn table_mut(&mut self, af: Af, id: u32) -> Option<&mut Table> {
        self.tables[af.index()].get_mut(*self.by_id[af.index()].get(&id)?)
    }

    /// All tables of a family, in the order of VPP's pool.
    pub(crate) fn tables(&self, af: Af) -> impl Iterator<Item = &Table> {
        self.tables[af.index()].iter().map(|(_, table)| table)
    }

    /// Adds a table for the API; nothing happens if it has added it before.
    pub(crate) fn add_table(&mut self, af: Af, id: u32, name: &[u8]) {
        if let Some(table) = self.table_mut(af, id) {
            table.by_api = true;
            return;
        }
        let name = match (name, af) {
            ([], Af::Ip4) => format!("ipv4-VRF:{id}").into_bytes(),
            ([], Af::Ip6) => format!("ipv6-VRF:{id}").into_bytes(),
            (name, _) => name.to_vec(),
        };
        let table = Table { id, name, routes: map(), shadowed: map(), given: map(), by_api: true, users: 0 };
        let at = self.tables[af.index()].insert(table);
        self.by_id[af.index()].insert(id, at);
        for (addr, len, source, path) in built_in(af) {
            self.put(af, id, Key::new(addr, len), addr, source, &mut [path]);
        }
    }

    /// The API gives a table up: its API routes go, and the table with all its routes once nothing uses it.
    pub(crate) fn delete_table(&mut self, af: Af, id: u32) {
        if id == 0 {
            return; // always there
        }
        if let Some(table) = self.table_mut(af, id) {
            table.by_api = false;
            self.flush(af, id, API);
            self.destroy_if_unused(af, id);
        }
    }

    /// A table number nobody uses, by the generator VPP has.
    pub(crate) fn unused_table(&mut self, af: Af) -> u32 {
        loop {
            self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if self.table(af, self.random).is_none() {
                return self.random;
            }
        }
    }

    /// One more user of a table.
    pub(crate) fn lock_table(&mut self, af: Af, id: u32) {
        if let Some(table) = self.table_mut(af, id) {
            table.users += 1;
        }
    }

    /// One user of a table less; it goes with the last one unless the API holds it.
    pub(crate) fn unlock_table(&mut self, af: Af, id: u32) {
        if let Some(table) = self.table_mut(af, id) {
            table.users = table.users.saturating_sub(1);
            self.destroy_if_unused(af, id);
        }
    }

    fn destroy_if_unused(&mut self, af: Af, id: u32) {
        if id == 0 || self.table(af, id).is_none_or(|table| table.by_api || table.users > 0) {
            return;
        }
        let Some(at) = self.by_id[af.index()].remove(&id) else { return };
        let Some(table) = self.tables[af.index()].remove(at) else { return };
        let mut entries: Vec<_> = table.routes.into_iter().collect();
        entries.sort_unstable_by_key(|(key, _)| *key);
        let mut shadowed: Vec<_> = table.shadowed.into_iter().collect();
        shadowed.sort_unstable_by_key(|(key, _)| *key);
        for (_, entry) in entries {
            self.stats.give_back(entry.stats_index);
            self.release(entry.best.paths);
        }
        for contribution in shadowed.into_iter().flat_map(|(_, lost)| lost) {
            self.release(contribution.paths);
        }
    }

    /// What `source` says about a prefix is now `paths`, which are brought into canonical form. The statistics index, or
    /// `None` without such a table.
    pub(crate) fn put(
        &mut self,
        af: Af,
        table: u32,
        key: Key,
        given: [u8; 16],
        source: SourceId,
        paths: &mut [Path],
    ) -> Option<u32> {
        path::canonical(paths);
        let list = self.retain(paths);
        self.contribute(af, table, key, given, source, list)
    }

    /// Adds `paths` to what `source` says about a prefix; a path that is there gets the new weight and preference.
    pub(crate) fn add_paths(
        &mut self,
        af: Af,
        table: u32,
        key: Key,
        given: [u8; 16],
        source: SourceId,
        paths: &mut Vec<Path>,
    ) -> Option<u32> {
        let old = self.contribution(af, table, key, source).map(|contribution| contribution.paths);
        if let Some(old) = old {
            let old = self.lists.paths(old);
            paths.extend(
                old.iter()
                    .filter(|old| !paths.iter().any(|new| path::same(new, old)))
                    .copied()
                    .collect::<Vec<_>>(),
            );
        }
        self.put(af, table, key, given, source, paths)
    }

    /// Removes `paths` from what `source` says about a prefix, and all it says with the last one.
    pub(crate) fn remove_paths(&mut self, af: Af, table: u32, key: Key, source: SourceId, paths: &[Path]) {
        let Some(old) = self.contribution(af, table, key, source) else { return };
        let old = self.lists.paths(old.paths);
        let mut left: Vec<Path> =
            old.iter().filter(|old| !paths.iter().any(|gone| path::same(gone, old))).copied().collect();
        if left.is_empty() {
            self.take(af, table, key, source);
        } else if left.len() < old.len() {
            self.put(af, table, key, key.addr, source, &mut left);
        }
    }

    /// `source` says nothing about a prefix any more.
    pub(crate) fn take(&mut self, af: Af, table: u32, key: Key, source: SourceId) {
        let Some(table) = self.table_mut(af, table) else { return };
        let Some(entry) = table.routes.get_mut(&key) else { return };
        let gone = if entry.best.source == source {
            let gone = entry.best.paths;
            match table.shadowed.get_mut(&key) {
                Some(lost) => {
                    entry.best = lost.remove(0);
                    if lost.is_empty() {
                        table.shadowed.remove(&key);
                    }
                }
                None => {
                    let stats_index = entry.stats_index;
                    table.routes.remove(&key);
                    table.given.remove(&key);
                    self.stats.give_back(stats_index);
                }
            }
            gone
        } else {
            let Some(lost) = table.shadowed.get_mut(&key) else { return };
            let Some(at) = lost.iter().position(|contribution| contribution.source == source) else { return };
            let gone = lost.remove(at).paths;
            if lost.is_empty() {
                table.shadowed.remove(&key);
            }
            gone
        };
        self.release(gone);
    }

    /// Removes all that `source` says in a table.
    pub(crate) fn flush(&mut self, af: Af, table: u32, source: SourceId) {
        for key in self.keys_of(af, table, |contribution| contribution.source == source) {
            self.take(af, table, key, source);
        }
    }

    /// Begins a replace: everything `source` says in a table is marked.
    pub(crate) fn mark(&mut self, af: Af, table: u32, source: SourceId) {
        let Some(table) = self.table_mut(af, table) else { return };
        let all = table.routes.values_mut().map(|entry| &mut entry.best);
        for contribution in all.chain(table.shadowed.values_mut().flatten()) {
            contribution.marked |= contribution.source == source;
        }
    }

    /// Ends a replace: what is still marked goes.
    pub(crate) fn sweep(&mut self, af: Af, table: u32, source: SourceId) {
        for key in
            self.keys_of(af, table, |contribution| contribution.source == source && contribution.marked)
        {
            self.take(af, table, key, source);
        }
    }

    /// Every path list through a deleted interface drops from now on.
    pub(crate) fn interface_deleted(&mut self, sw_if_index: u32) {
        self.lists.interface_deleted(sw_if_index);
    }

    /// The contributions to a prefix that lost, best first.
    pub(crate) fn shadowed<'a>(&'a self, table: &'a Table, key: Key) -> &'a [Contribution] {
        table.shadowed.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The paths of a contribution, as they were given.
    pub(crate) fn paths_of(&self, contribution: Contribution) -> &[Path] {
        self.lists.paths(contribution.paths)
    }

    /// Whether a contribution drops although it looks right.
    pub(crate) fn is_dead(&self, contribution: Contribution) -> bool {
        self.lists.is_dead(contribution.paths)
    }

    /// How many prefixes all tables have.
    pub(crate) fn route_count(&self) -> usize {
        self.tables.iter().flat_map(|tables| tables.iter()).map(|(_, table)| table.routes.len()).sum()
    }

    fn contribution(&self, af: Af, table: u32, key: Key, source: SourceId) -> Option<Contribution> {
        let table = self.table(af, table)?;
        let entry = table.routes.get(&key)?;
        let lost = table.shadowed.get(&key).into_iter().flatten().copied();
        std::iter::once(entry.best).chain(lost).find(|contribution| contribution.source == source)
    }

    fn contribute(
        &mut self,
        af: Af,
        table: u32,
        key: Key,
        given: [u8; 16],
        source: SourceId,
        paths: PathListId,
    ) -> Option<u32> {
        let new = Contribution { paths, source, marked: false };
        let Some(&at) = self.by_id[af.index()].get(&table) else {
            self.release(paths);
            return None;
        };
        let table = self.tables[af.index()].get_mut(at)?;
        let entry = match table.routes.entry(key) {
            MapEntry::Occupied(entry) => entry.into_mut(),
            MapEntry::Vacant(place) => {
                if given != key.addr {
                    table.given.insert(key, given);
                }
                let stats_index = self.stats.take();
                place.insert(Entry { stats_index, best: new });
                return Some(stats_index);
            }
        };
        let stats_index = entry.stats_index;
        let replaced = if entry.best.source == source {
            Some(std::mem::replace(&mut entry.best, new))
        } else {
            let lost = table.shadowed.entry(key).or_default();
            if let Some(old) = lost.iter_mut().find(|old| old.source == source) {
                Some(std::mem::replace(old, new))
            } else {
                let rank = |contribution: &Contribution| self.sources.rank(contribution.source);
                let wins = rank(&new) < rank(&entry.best);
                let loser = if wins { std::mem::replace(&mut entry.best, new) } else { new };
                lost.insert(lost.partition_point(|other| rank(other) < rank(&loser)), loser);
                None
            }
        };
        if let Some(old) = replaced {
            self.release(old.paths);
        }
        Some(stats_index)
    }

    /// One more reference to a path list. The next hops of a new list are looked up through routes of their own.
    fn retain(&mut self, paths: &[Path]) -> PathListId {
        let id = match self.lists.retain(paths) {
            Retained::Shared(id) => return id,
            Retained::New(id) => id,
        };
        for (af, table, hop) in path::looked_up(paths) {
            self.lock_table(af, table);
            let Some(hop) = hop else { continue };
            let users = self.resolved.entry((af, table, hop)).or_insert(0);
            *users += 1;
            if *users == 1 {
                self.contribute(af, table, hop, hop.addr, RECURSIVE_RESOLUTION, PathListId::OF_COVER);
            }
        }
        id
    }

    fn release(&mut self, paths: PathListId) {
        let Some(bytes) = self.lists.release(paths) else { return };
        for (af, table, hop) in path::looked_up(read(&bytes)) {
            if let Some(hop) = hop
                && let Some(users) = self.resolved.get_mut(&(af, table, hop))
            {
                *users -= 1;
                if *users == 0 {
                    self.resolved.remove(&(af, table, hop));
                    self.take(af, table, hop, RECURSIVE_RESOLUTION);
                }
            }
            self.unlock_table(af, table);
        }
    }

    fn keys_of(&self, af: Af, table: u32, wanted: impl Fn(&Contribution) -> bool) -> Vec<Key> {
        let Some(table) = self.table(af, table) else { return Vec::new() };
        let best = table.routes.iter().filter(|(_, entry)| wanted(&entry.best)).map(|(key, _)| *key);
        let lost = table.shadowed.iter().filter(|(_, lost)| lost.iter().any(&wanted)).map(|(key, _)| *key);
        let mut keys: Vec<Key> = best.chain(lost).collect();
        keys.sort_unstable();
        keys
    }
}

/// The prefixes that every table of a family has.
fn built_in(af: Af) -> Vec<([u8; 16], u8, SourceId, Path)> {
    let start = |bytes: &[u8]| {
        let mut addr = [0; 16];
        addr[..bytes.len()].copy_from_slice(bytes);
        addr
    };
    match af {
        Af::Ip4 => vec![
            (start(&[]), 0, DEFAULT_ROUTE, path::drop(af)),
            (start(&[]), 32, SPECIAL, path::drop(af)),
            (start(&[240]), 4, SPECIAL, path::drop(af)),
            (start(&[224]), 4, SPECIAL, path::drop(af)),
            (start(&[255; 4]), 32, SPECIAL, path::drop(af)),
        ],
        Af::Ip6 => vec![
            (start(&[]), 0, DEFAULT_ROUTE, path::drop(af)),
            (start(&[0xfe, 0x80]), 10, SPECIAL, path::lookup(af)),
        ],
    }
}

#[cfg(test)]
mod tests;
