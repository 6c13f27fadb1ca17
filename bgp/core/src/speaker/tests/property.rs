//! Whatever happens, in the end everyone has what everyone else said last.

use super::*;
use crate::command::{Chain, NextHopMode};
use crate::policy::{Condition, Flow, PolicyDef, PrefixRange, StatementDef};
use proptest::prelude::*;

/// One thing that happens in a world of four: 0 and 1 originate, 2 passes on, 3 listens, 4 listens inside 2's AS.
#[derive(Clone, Debug)]
enum Happening {
    Originate(usize, u32, u32),
    Withdraw(usize, u32),
    Many(usize, u32, u32),
    ManyGone(usize, u32),
    Stall(usize, bool),
    Cut(usize, bool),
    Refresh(usize),
    /// 2 begins to keep a quarter of the prefixes to itself.
    Policy(u32),
    /// 2 configures a listener so that it belongs to another update group.
    Move(usize, bool),
    Steps(usize),
    Settle,
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        6 => (0usize..2, 0u32..40, 0u32..4).prop_map(|(node, n, mark)| Originate(node, n, mark)),
        4 => (0usize..2, 0u32..40).prop_map(|(node, n)| Withdraw(node, n)),
        2 => (0usize..2, 0u32..4, 0u32..4).prop_map(|(node, n, mark)| Many(node, n, mark)),
        1 => (0usize..2, 0u32..4).prop_map(|(node, n)| ManyGone(node, n)),
        2 => (3usize..5, any::<bool>()).prop_map(|(node, on)| Stall(node, on)),
        1 => (0usize..5, any::<bool>()).prop_map(|(node, on)| Cut(node, on)),
        1 => (3usize..5).prop_map(Refresh),
        1 => (0u32..4).prop_map(Policy),
        1 => (3usize..5, any::<bool>()).prop_map(|(node, on)| Move(node, on)),
        4 => (1usize..20).prop_map(Steps),
        2 => Just(Settle),
        1 => (1u64..30).prop_map(Wait),
    ]
}

/// The `n`th quarter of the prefixes.
fn quarter(n: u32) -> PrefixRange {
    format!("10.0.{}.0/{} le 32", if n == 3 { 0 } else { n * 64 }, if n == 3 { 32 } else { 18 })
        .parse()
        .unwrap()
}

fn keep(range: PrefixRange) -> PolicyDef {
    let statement = StatementDef {
        label: None,
        when: vec![Condition::Prefix(vec![range])],
        apply: vec![],
        then: Flow::Reject,
    };
    PolicyDef { statements: vec![statement], default: crate::policy::Default::Accept }
}

/// 2 lets a listener listen.
fn listen(world: &mut World, listener: usize, own: bool) {
    let config = PeerConfig {
        passive: true,
        export: Chain::named("out"),
        next_hop: if own { NextHopMode::SelfAddress } else { NextHopMode::Default },
        ..world.config(listener)
    };
    world.command(2, Command::PutPeer(key(listener), config));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 3, ..ProptestConfig::default() })]

    #[test]
    fn in_the_end_all_tables_are_right(
        happenings in prop::collection::vec(happening(), 1..60),
        pull in prop_oneof![Just(1usize), Just(5_000), Just(100_000)],
        graceful: bool,
    ) {
        let mut world = World::new(&[65010, 65020, 65030, 65040, 65030]);
        world.graceful_restart = graceful.then_some(GracefulRestart::USUAL);
        for node in [0, 1, 3, 4] {
            world.join(node, 2);
        }
        world.load();
        world.settle();
        world.pull_octets = pull;
        let mut said = [BTreeMap::new(), BTreeMap::new()];
        let mut kept = quarter(0);
        world.command(2, Command::PutPolicy("out".into(), keep(kept)));
        for listener in [3, 4] {
            listen(&mut world, listener, false);
        }
        for happening in happenings {
            match happening {
                Happening::Originate(node, n, mark) => {
                    world.originate(node, nth(n), marked(mark));
                    said[node].insert(nth(n), mark);
                }
                Happening::Withdraw(node, n) => {
                    world.command(node, Command::DeleteOrigination(nth(n)));
                    said[node].remove(&nth(n));
                }
                Happening::Many(node, n, mark) => {
                    for n in n * 100 + 50..n * 100 + 350 {
                        world.originate(node, nth(n), marked(mark + n % 5));
                        said[node].insert(nth(n), mark + n % 5);
                    }
                }
                Happening::ManyGone(node, n) => {
                    for n in n * 100 + 50..n * 100 + 350 {
                        world.command(node, Command::DeleteOrigination(nth(n)));
                        said[node].remove(&nth(n));
                    }
                }
                Happening::Stall(node, on) => world.stall(node, 2, on),
                Happening::Cut(2, _) => {}
                Happening::Cut(node, on) => world.cut(node, 2, on),
                Happening::Refresh(node) => {
                    world.command(2, Command::ClearPeer(key(node), crate::command::Clear::SoftOut));
                }
                Happening::Policy(n) => {
                    kept = quarter(n);
                    world.command(2, Command::PutPolicy("out".into(), keep(kept)));
                }
                Happening::Move(node, on) => listen(&mut world, node, on),
                Happening::Steps(count) => {
                    for step in 0..count {
                        world.step(step % 5);
                    }
                }
                Happening::Settle => world.settle(),
                Happening::Wait(secs) => world.pass(Duration::from_secs(secs)),
            }
        }
        for node in [0, 1, 3, 4] {
            world.stall(node, 2, false);
            world.cut(node, 2, false);
        }
        world.pass(Duration::from_secs(200));
        // 0's identifier is lower, so of two equal paths its own wins.
        let mut expected = BTreeMap::new();
        for (node, asn) in [(1, 65020), (0, 65010)] {
            expected.extend(said[node].iter().map(|(prefix, mark)| (*prefix, (*mark, asn.to_string()))));
        }
        let v4 = Family::Ipv4Unicast;
        prop_assert_eq!(world.best(2, v4), expected.clone());
        let open: BTreeMap<_, _> =
            expected.clone().into_iter().filter(|(prefix, _)| !kept.contains(prefix.unicast().expect("unicast"))).collect();
        prop_assert_eq!(world.best(4, v4), open.clone(), "inside the AS");
        let outside: BTreeMap<_, _> =
            open.iter().map(|(prefix, (mark, path))| (*prefix, (*mark, format!("65030 {path}")))).collect();
        prop_assert_eq!(world.best(3, v4), outside.clone(), "outside");
        for (node, own) in [(0, "65010"), (1, "65020")] {
            let others: BTreeMap<_, _> = expected
                .iter()
                .filter(|(_, (_, path))| path != own)
                .map(|(prefix, (mark, path))| (*prefix, (*mark, format!("65030 {path}"))))
                .collect();
            prop_assert_eq!(world.heard(node, 2, v4), others, "what it did not say itself");
        }
        for node in [0, 1, 3, 4] {
            prop_assert_eq!(world.told(2, node, v4), world.heard(node, 2, v4));
            prop_assert_eq!(
                world.peer(2, node).families[0].advertised,
                world.peer(node, 2).families[0].received
            );
        }
        // Nothing is held that nobody needs.
        let sizes = world.nodes[2].speaker.sizes();
        prop_assert_eq!(sizes.destinations[0], expected.len() as u64);
        let marks: std::collections::BTreeSet<_> =
            (0..2).flat_map(|node| said[node].values().map(move |mark| (node, *mark))).collect();
        prop_assert_eq!(sizes.attribute_sets, marks.len() as u64);
    }
}
