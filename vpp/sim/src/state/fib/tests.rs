//! Against a naive model: whatever happened, the best contribution is forwarded, and what is given up leaves nothing behind.

use std::collections::BTreeMap;

use super::*;
use crate::state::path::{NO_INTERFACE, drop, lookup, neighbour};

/// A generator of numbers; the same ones each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn byte(&mut self, limit: u64) -> u8 {
        u8::try_from(self.below(limit)).expect("a small limit")
    }
}

fn v4(bytes: [u8; 4]) -> [u8; 16] {
    let mut addr = [0; 16];
    addr[..4].copy_from_slice(&bytes);
    addr
}

/// A path of one of four kinds; two of them make other routes and hold tables.
fn some_path(random: &mut Random) -> Path {
    let hop = v4([10, 0, 0, random.byte(3)]);
    match random.below(4) {
        0 => neighbour(Af::Ip4, 1, hop),
        1 => drop(Af::Ip4),
        2 => Path { table_id: u32::from(random.byte(2)).into(), ..neighbour(Af::Ip4, NO_INTERFACE, hop) },
        _ => lookup(Af::Ip4),
    }
}

#[test]
fn it_agrees_with_a_naive_model_and_leaks_nothing() {
    type Model = BTreeMap<(Key, SourceId), Path>;
    let mut random = Random(7);
    for round in 0..50 {
        let mut fib = Fib::new();
        let untouched = (fib.route_count(), fib.lists.in_use());
        fib.add_table(Af::Ip4, 1, b"one");
        let with_table = fib.route_count();
        let own = fib.sources.add(if round % 2 == 0 { 200 } else { 100 }, b"own".to_vec());
        let other = fib.sources.add(250, b"other".to_vec());
        let sources = [API, own, other];
        let mut model = Model::new();
        for _ in 0..400 {
            let source = sources[usize::from(random.byte(3))];
            let len = 24 + random.byte(9);
            let key = Key::new(v4([10, 0, 0, random.byte(8)]), len);
            if random.below(3) == 0 {
                fib.take(Af::Ip4, 0, key, source);
                model.remove(&(key, source));
            } else {
                let path = some_path(&mut random);
                fib.put(Af::Ip4, 0, key, key.addr, source, &mut [path]);
                model.insert((key, source), path);
            }
        }
        let table = fib.table(Af::Ip4, 0).expect("the default table");
        let keys: std::collections::BTreeSet<Key> = model.keys().map(|(key, _)| *key).collect();
        for key in keys {
            let best = sources.iter().filter(|source| model.contains_key(&(key, **source)));
            let best = best.min_by_key(|source| fib.sources.rank(**source)).expect("it is in the model");
            let listed = fib.lookup(Af::Ip4, table, key, true).expect("it is in the table");
            // a next hop of another route loses against all of these
            assert_eq!(listed.source, *best);
            assert_eq!(&*listed.paths, &[model[&(key, *best)]]);
        }
        for source in sources {
            fib.flush(Af::Ip4, 0, source);
        }
        assert_eq!(fib.route_count(), with_table, "next hops are gone with the routes that needed them");
        fib.delete_table(Af::Ip4, 1);
        assert_eq!((fib.route_count(), fib.lists.in_use()), untouched);
        assert!(fib.resolved.is_empty());
    }
}

#[test]
fn a_replace_removes_only_what_its_source_did_not_add_again() {
    let mut fib = Fib::new();
    let own = fib.sources.add(100, b"own".to_vec());
    let key = |last| Key::new(v4([10, 0, last, 0]), 24);
    let put = |fib: &mut Fib, last, source| {
        fib.put(Af::Ip4, 0, key(last), key(last).addr, source, &mut [drop(Af::Ip4)])
    };
    let before = fib.route_count();
    for (last, source) in [(1, API), (2, API), (2, own), (3, own)] {
        put(&mut fib, last, source);
    }
    fib.mark(Af::Ip4, 0, API);
    put(&mut fib, 1, API);
    fib.sweep(Af::Ip4, 0, API);
    assert_eq!(fib.route_count(), before + 3);
    assert!(fib.contribution(Af::Ip4, 0, key(1), API).is_some());
    assert!(fib.contribution(Af::Ip4, 0, key(2), API).is_none(), "also where another source hides it");
    assert!(fib.contribution(Af::Ip4, 0, key(2), own).is_some());
}

#[test]
fn paths_are_added_and_removed_one_by_one() {
    let mut fib = Fib::new();
    let key = Key::new(v4([10, 0, 0, 0]), 8);
    let to = |last| neighbour(Af::Ip4, 1, v4([192, 0, 2, last]));
    let paths = |fib: &Fib| {
        fib.lookup(Af::Ip4, fib.table(Af::Ip4, 0).expect("there"), key, true)
            .map(|route| route.paths.to_vec())
    };
    fib.add_paths(Af::Ip4, 0, key, key.addr, API, &mut vec![to(3)]);
    fib.add_paths(Af::Ip4, 0, key, key.addr, API, &mut vec![to(2)]);
    assert_eq!(paths(&fib), Some(vec![to(2), to(3)]));
    fib.add_paths(Af::Ip4, 0, key, key.addr, API, &mut vec![Path { weight: 5, ..to(3) }]);
    assert_eq!(paths(&fib), Some(vec![to(2), Path { weight: 5, ..to(3) }]));
    fib.remove_paths(Af::Ip4, 0, key, API, &[to(9)]);
    fib.remove_paths(Af::Ip4, 0, key, API, &[to(3)]);
    assert_eq!(paths(&fib), Some(vec![to(2)]));
    fib.remove_paths(Af::Ip4, 0, key, API, &[to(2)]);
    assert_eq!(paths(&fib), None);
}
