//! Aggregates (RFC 4271 section 9.2.2.2, RFC 9774).

use super::*;
use crate::command::{Aggregate, Refusal};

const V4: Family = Family::Ipv4Unicast;

fn net(text: &str) -> ipnet::IpNet {
    text.parse().unwrap()
}

fn put(world: &mut World, text: &str, summary_only: bool) -> Applied {
    let aggregate = Aggregate { summary_only, ..Aggregate::default() };
    world.command(1, Command::PutAggregate(net(text), aggregate))
}

fn heard(world: &mut World) -> Vec<String> {
    world.heard(2, 1, V4).into_keys().map(|nlri| nlri.to_string()).collect()
}

/// 0 tells 1, which tells 2; 65010, 65020, 65030.
fn chain() -> World {
    World::joined(&[65010, 65020, 65030], &[(0, 1), (1, 2)])
}

/// ATOMIC_AGGREGATE, AGGREGATOR, ORIGIN and AS path of what 2 hears.
fn shape(world: &mut World, prefix: &str) -> Option<(bool, String, u8, String)> {
    let routes = world.routes(2, RouteTable::AdjRibIn(key(1)), V4);
    let route = routes.iter().find(|route| route.nlri == nlri(prefix))?;
    let set = route.paths[0].attrs.view();
    let aggregator = set.aggregator().map(|by| by.to_string()).unwrap_or_default();
    Some((set.atomic_aggregate(), aggregator, set.origin().code(), set.as_path().to_string()))
}

#[test]
fn it_comes_with_the_first_contributor_and_goes_with_the_last() {
    let mut world = chain();
    assert_eq!(put(&mut world, "10.0.0.0/8", false), Applied::Applied);
    assert_eq!(put(&mut world, "10.0.0.0/8", false), Applied::Unchanged);
    world.settle();
    assert_eq!(heard(&mut world), Vec::<String>::new(), "nothing to aggregate");
    world.originate(0, nth(1), Origination::default());
    world.originate(0, nlri("11.0.0.0/24"), Origination::default());
    world.settle();
    assert_eq!(heard(&mut world), ["10.0.0.0/8", "10.0.1.0/24", "11.0.0.0/24"]);
    // The path of what it stands for is left out, and the route says so.
    let by = "65020 192.0.2.2".to_owned();
    assert_eq!(shape(&mut world, "10.0.0.0/8"), Some((true, by.clone(), 0, "65020".into())));
    world.originate(1, nth(2), Origination::default());
    world.command(0, Command::DeleteOrigination(nth(1)));
    world.settle();
    // Nothing is left out of own routes.
    assert_eq!(shape(&mut world, "10.0.0.0/8"), Some((false, by, 0, "65020".into())));
    world.command(1, Command::DeleteOrigination(nth(2)));
    world.settle();
    assert_eq!(heard(&mut world), ["11.0.0.0/24"]);
    // A neighbour that goes takes its contribution along.
    world.originate(0, nth(1), Origination::default());
    world.settle();
    assert_eq!(heard(&mut world).len(), 3);
    world.cut(0, 1, true);
    world.settle();
    assert_eq!(heard(&mut world), Vec::<String>::new());
    assert!(world.best(1, V4).is_empty());
}

#[test]
fn it_stands_for_what_is_inside_it() {
    let mut world = chain();
    (0..300).for_each(|n| world.originate(0, nth(n), Origination::default()));
    world.originate(1, nlri("10.0.0.0/9"), Origination::default());
    world.originate(0, nlri("10.0.0.0/7"), Origination::default());
    world.settle();
    assert_eq!(heard(&mut world).len(), 302);
    put(&mut world, "10.0.0.0/8", true);
    world.settle();
    assert_eq!(heard(&mut world), ["10.0.0.0/7", "10.0.0.0/8"]);
    assert_eq!(
        heard(&mut world),
        world.told(1, 2, V4).into_keys().map(|key| key.to_string()).collect::<Vec<_>>()
    );
    assert_eq!(world.best(1, V4).len(), 303, "inside nothing is lost");
    // What comes later is inside too; who comes later hears the same.
    world.originate(0, nth(400), Origination::default());
    world.cut(1, 2, true);
    world.cut(1, 2, false);
    world.pass(Duration::from_secs(60));
    assert_eq!(heard(&mut world), ["10.0.0.0/7", "10.0.0.0/8"]);
    put(&mut world, "10.0.0.0/8", false);
    world.settle();
    assert_eq!(heard(&mut world).len(), 304);
    put(&mut world, "10.0.0.0/8", true);
    world.settle();
    assert_eq!(heard(&mut world).len(), 2);
    assert_eq!(world.command(1, Command::DeleteAggregate(net("10.0.0.0/8"))), Applied::Applied);
    assert_eq!(world.command(1, Command::DeleteAggregate(net("10.0.0.0/8"))), Applied::Unchanged);
    world.settle();
    assert_eq!(heard(&mut world).len(), 303);
    assert_eq!(world.best(1, V4).len(), 303);
}

/// Each call does a slice of the work, as the world checks.
#[test]
fn many_of_them_are_told_slice_by_slice() {
    let mut world = chain();
    let around = |n: u32| format!("10.{}.{}.0/24", n / 256, n % 256);
    for n in 0..600 {
        world.originate(1, nlri(&around(n).replace("/24", "/25")), Origination::default());
        put(&mut world, &around(n), true);
    }
    world.settle();
    assert_eq!(heard(&mut world).len(), 600);
    assert!(heard(&mut world).iter().all(|text| text.ends_with("/24")));
    for n in 0..600 {
        world.command(1, Command::DeleteAggregate(net(&around(n))));
    }
    world.settle();
    assert_eq!(heard(&mut world).len(), 600);
    assert!(heard(&mut world).iter().all(|text| text.ends_with("/25")));
}

/// There is no moment in which somebody knows neither the aggregate nor what is inside it.
#[test]
fn nothing_is_taken_back_before_what_stands_for_it_has_been_told() {
    let mut world = chain();
    (0..300).for_each(|n| world.originate(0, nth(n), Origination::default()));
    world.settle();
    world.pull_octets = 1;
    for command in [
        Command::PutAggregate(net("10.0.0.0/8"), Aggregate { summary_only: true, ..Aggregate::default() }),
        Command::DeleteAggregate(net("10.0.0.0/8")),
    ] {
        world.command(1, command.clone());
        while (0..3).fold(false, |any, node| world.step(node) | any) {
            let heard = heard(&mut world);
            let all = heard.iter().filter(|text| text.ends_with("/24")).count() == 300;
            assert!(all || heard.contains(&"10.0.0.0/8".to_owned()), "{command:?} {}", heard.len());
        }
    }
    assert_eq!(heard(&mut world).len(), 300);
}

#[test]
fn aggregates_are_no_contributors_and_what_is_originated_on_purpose_comes_first() {
    let mut world = chain();
    put(&mut world, "10.0.0.0/8", false);
    put(&mut world, "10.0.0.0/16", true);
    world.originate(0, nth(1), Origination::default());
    world.settle();
    assert_eq!(heard(&mut world), ["10.0.0.0/8", "10.0.0.0/16"]);
    let own = Origination { med: Some(7), ..marked(7) };
    world.originate(1, nlri("10.0.0.0/16"), own);
    world.settle();
    assert_eq!(world.heard(2, 1, V4)[&nlri("10.0.0.0/16")].0, 7);
    world.command(0, Command::DeleteOrigination(nth(1)));
    world.settle();
    assert_eq!(heard(&mut world), ["10.0.0.0/8", "10.0.0.0/16"], "now it is a route as any other");
    world.command(1, Command::DeleteOrigination(nlri("10.0.0.0/16")));
    world.settle();
    assert_eq!(heard(&mut world), Vec::<String>::new());
    world.originate(1, nlri("10.0.0.0/16"), marked(7));
    world.originate(0, nth(1), Origination::default());
    world.settle();
    world.command(1, Command::DeleteOrigination(nlri("10.0.0.0/16")));
    world.settle();
    assert_eq!(
        shape(&mut world, "10.0.0.0/16").map(|(atomic, ..)| atomic),
        Some(true),
        "it comes forward again"
    );
    for text in ["10.0.0.0/8", "10.0.0.0/16"] {
        world.command(1, Command::DeleteAggregate(net(text)));
    }
    world.settle();
    assert_eq!(heard(&mut world), ["10.0.1.0/24"]);
    world.cut(0, 1, true);
    world.settle();
    let sizes = world.nodes[1].speaker.sizes();
    assert_eq!((sizes.destinations[V4.index()], sizes.attribute_sets), (0, 0), "nothing is held any more");
}

#[test]
fn what_it_says_of_itself_follows_the_settings() {
    let mut world = chain();
    world.originate(1, nlri("2001:db8:1::/48"), Origination::default());
    let aggregate = Aggregate { communities: vec![65020 << 16 | 5], ..Aggregate::default() };
    world.command(1, Command::PutAggregate(net("2001:db8::/32"), aggregate));
    world.settle();
    let best = world.best(2, Family::Ipv6Unicast);
    assert_eq!(best[&nlri("2001:db8::/32")], (65020 << 16 | 5, "65020".into()));
    world.command(1, Command::PutAggregate(net("2001:db8::/32"), Aggregate::default()));
    world.settle();
    assert_eq!(world.best(2, Family::Ipv6Unicast)[&nlri("2001:db8::/32")].0, 0);
    for bad in ["10.0.0.1/8", "10.0.0.1/32"] {
        let refused = world.try_command(1, Command::PutAggregate(net(bad), Aggregate::default()));
        assert_eq!(refused, Err(Refusal::Aggregate(net(bad))));
    }
}
