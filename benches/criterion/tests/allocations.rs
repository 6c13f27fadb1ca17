//! No allocation per prefix on the path from bytes to RIB to bytes.
//!
//! A speaker between two external neighbours passes a table on. What it allocates may depend on how many messages and
//! attribute sets there are, and tables grow by pages; more prefixes in messages of the same size cost next to nothing.

use bench_core::{RUN, SETS, World, table};
use test_support::allocations::{Counting, counted};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_prefix_costs_no_allocation() {
    let mut world = World::new(2);
    // All attribute sets have been seen before anything is counted.
    let warm = 0..SETS * RUN;
    for round in 0..2 {
        world.say(0, &table(warm.clone(), Some(round)));
    }
    let few = warm.end..warm.end + 40_000;
    let many = few.end..few.end + 120_000;
    for (what, round) in
        [("announced", Some(0)), ("changed", Some(1)), ("changed back", Some(0)), ("withdrawn", None)]
    {
        let [at_few, at_many] = [&few, &many].map(|range| {
            let octets = table(range.clone(), round);
            let before = world.told;
            let ((), allocations) = counted(|| world.say(0, &octets));
            assert!(world.told - before >= 4 * range.len() as u64, "{what}: every prefix is passed on");
            allocations
        });
        let more = (many.len() - few.len()) as f64;
        let per_thousand = at_many.saturating_sub(at_few) as f64 * 1000.0 / more;
        println!(
            "{what}: {at_few} for {}, {at_many} for {}: {per_thousand:.2} per thousand more",
            few.len(),
            many.len()
        );
        assert!(per_thousand < 20.0, "{what}: {per_thousand} allocations per thousand prefixes");
    }
    assert_eq!(world.speaker().sizes().destinations[0], warm.len() as u64);
}

#[test]
fn the_allocator_counts() {
    let (boxes, allocations) = counted(|| (0..1000).map(Box::new).collect::<Vec<_>>());
    assert!((1000..1020).contains(&allocations), "{allocations}");
    assert_eq!(counted(|| drop(boxes)).1, 0);
}
