use super::*;
use proptest::prelude::*;

const IDS: u32 = 40;

/// Destinations that are nothing but versions.
#[derive(Default)]
struct Dests {
    versions: Vec<u64>,
    tombstones: Vec<bool>,
}

impl Versions for Dests {
    fn version(&self, id: u32) -> u64 {
        self.versions[id as usize]
    }

    fn is_tombstone(&self, id: u32) -> bool {
        self.tombstones[id as usize]
    }

    fn any_tombstone(&self) -> bool {
        self.tombstones.contains(&true)
    }
}

struct World {
    log: ChangeLog,
    dests: Dests,
    readers: Vec<Reader>,
}

/// A cursor, and the version of each destination that it was told last.
#[derive(Clone)]
struct Reader {
    cursor: CursorId,
    seen: Vec<u64>,
}

impl World {
    fn new(ids: u32) -> Self {
        let dests = Dests { versions: vec![0; ids as usize], tombstones: vec![false; ids as usize] };
        Self { log: ChangeLog::default(), dests, readers: Vec::new() }
    }

    fn touch(&mut self, id: u32, tombstone: bool) {
        let old = self.dests.version(id);
        self.dests.versions[id as usize] = self.log.next_seq();
        self.dests.tombstones[id as usize] = tombstone;
        self.log.append(id, old, &self.dests);
        // A table frees at once what no reader has yet to hear of.
        self.dests.tombstones[id as usize] &= self.log.holds(self.log.last_seq());
        self.tidy(None);
    }

    /// Everything before now counts as seen.
    fn add_reader(&mut self) {
        self.readers.push(Reader { cursor: self.log.add_cursor(), seen: self.dests.versions.clone() });
    }

    /// One step of a reader; false at the end.
    fn read(&mut self, reader: usize) -> bool {
        let Some(Reader { cursor, seen }) = self.readers.get_mut(reader) else { return false };
        let before = self.log.cursor_seq(*cursor);
        let found = self.log.next(*cursor, &self.dests);
        if let Some((seq, id)) = found {
            assert!(seq > before && seq == self.dests.version(id), "in order, and only what is true");
            seen[id as usize] = seq;
        }
        self.tidy(found.map(|(_, id)| id));
        found.is_some()
    }

    /// Frees what may be freed: only tombstones that every reader has passed, and not the one just returned.
    fn tidy(&mut self, returned: Option<u32>) {
        let mut free = Vec::new();
        self.log.search_dropped(7, &self.dests, &mut free);
        for id in free {
            assert!(self.dests.is_tombstone(id) && returned != Some(id));
            assert!(
                self.readers
                    .iter()
                    .all(|reader| self.log.cursor_seq(reader.cursor) >= self.dests.version(id))
            );
            self.dests.tombstones[id as usize] = false;
        }
    }
}

#[test]
fn nothing_is_stored_without_readers() {
    let mut w = World::new(IDS);
    (0..IDS).for_each(|id| w.touch(id, false));
    assert_eq!((w.log.last_seq(), w.log.stored(), w.log.holds(u64::from(IDS))), (u64::from(IDS), 0, false));
}

/// The last entry of a chunk is the one returned: dropping the chunk has to wait.
#[test]
fn the_entry_returned_is_not_dropped_with_its_chunk() {
    let mut w = World::new(1024);
    w.add_reader();
    (1..1023).for_each(|id| w.touch(id, false));
    w.touch(0, true);
    assert_eq!(w.log.last_seq(), CHUNK - 1);
    w.touch(1023, false);
    while w.read(0) {}
    assert_eq!(w.readers[0].seen, w.dests.versions);
}

/// The end of a chunk is stale, and the next one begins with a live entry.
#[test]
fn the_first_entry_of_a_chunk_is_read() {
    let mut w = World::new(3);
    w.add_reader();
    w.touch(0, false);
    (2..CHUNK).for_each(|_| w.touch(1, false));
    assert_eq!(w.log.next_seq(), CHUNK);
    w.touch(2, false);
    w.touch(1, false);
    while w.read(0) {}
    assert_eq!(w.readers[0].seen, w.dests.versions);
}

#[derive(Clone, Debug)]
enum Step {
    /// Changes of destinations, `stride` apart.
    Touch {
        count: u32,
        from: u32,
        stride: u32,
        tombstone: bool,
    },
    Read {
        reader: usize,
        most: usize,
    },
    Add,
    Fork {
        reader: usize,
    },
    Remove {
        reader: usize,
    },
    Skip {
        reader: usize,
        by: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let touch =
        |counts| {
            (counts, 0..IDS, 0u32..9, any::<bool>())
                .prop_map(|(count, from, stride, tombstone)| Step::Touch { count, from, stride, tombstone })
        };
    prop_oneof![
        4 => touch(1u32..20),
        2 => touch(200u32..1500),
        6 => (0usize..4, 1usize..60).prop_map(|(reader, most)| Step::Read { reader, most }),
        1 => Just(Step::Add),
        1 => (0usize..4).prop_map(|reader| Step::Fork { reader }),
        1 => (0usize..4).prop_map(|reader| Step::Remove { reader }),
        1 => (0usize..4, 0u64..2000).prop_map(|(reader, by)| Step::Skip { reader, by }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever happens, a reader that goes on to the end knows the latest version of everything; the log is bounded
    /// by the destinations; and at last nothing is left.
    #[test]
    fn every_reader_learns_everything(steps in proptest::collection::vec(step(), 1..60)) {
        let mut w = World::new(IDS);
        w.add_reader();
        for step in steps {
            match step {
                Step::Touch { count, from, stride, tombstone } => {
                    (0..count).for_each(|n| w.touch((from + n * stride) % IDS, tombstone));
                }
                Step::Read { reader, most } => {
                    for _ in 0..most {
                        w.read(reader);
                    }
                }
                Step::Add => w.add_reader(),
                Step::Fork { reader } => {
                    if let Some(reader) = w.readers.get(reader).cloned() {
                        w.readers.push(Reader { cursor: w.log.fork_cursor(reader.cursor), ..reader });
                    }
                }
                Step::Remove { reader } => {
                    if reader < w.readers.len() {
                        let reader = w.readers.remove(reader);
                        w.log.remove_cursor(reader.cursor, &w.dests);
                        w.tidy(None);
                    }
                }
                Step::Skip { reader, by } => {
                    if let Some(Reader { cursor, seen }) = w.readers.get_mut(reader) {
                        let to = w.log.cursor_seq(*cursor) + by;
                        w.log.advance_cursor(*cursor, to, &w.dests);
                        let skipped = w.dests.versions.iter().zip(seen).filter(|(version, _)| **version <= to);
                        skipped.for_each(|(version, seen)| *seen = *version);
                        w.tidy(None);
                    }
                }
            }
            // One open chunk; of the others at least half is live, but for short ones.
            let bound = CHUNK as usize + IDS as usize * (WORTH_COMPACTING + 1);
            prop_assert!(w.log.stored() <= bound, "{}", w.log.stored());
        }
        for reader in 0..w.readers.len() {
            while w.read(reader) {}
            prop_assert_eq!(&w.readers[reader].seen, &w.dests.versions);
            prop_assert!(!w.log.pending(w.readers[reader].cursor));
        }
        if let Some(reader) = w.readers.first() {
            prop_assert_eq!(w.log.next(reader.cursor, &w.dests), None);
        }
        prop_assert_eq!(w.log.stored(), 0);
        while !w.log.is_tidy() {
            w.tidy(None);
        }
        prop_assert!(!w.dests.any_tombstone());
    }
}
