//! Large tables keep their promises: bounded turns, and nothing lost.

use super::*;

#[test]
fn a_table_passes_through_in_both_directions_with_churn() {
    let mut world = World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)]);
    for n in 0..5_000 {
        world.originate(0, nth(n), marked(n % 650));
    }
    world.settle();
    for n in 0..5_000 {
        world.originate(2, nth(n + 4_000), marked(n % 650));
    }
    world.settle();
    let v4 = Family::Ipv4Unicast;
    assert_eq!(world.best(2, v4).len(), 9_000);
    assert_eq!(world.best(0, v4).len(), 9_000);
    assert_eq!(world.nodes[1].speaker.sizes().destinations, [9_000, 0, 0, 0, 0, 0]);
}
