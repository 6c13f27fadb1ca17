#![allow(clippy::wildcard_enum_match_arm, clippy::type_complexity)]

use super::*;
use crate::config::Config;

const NOW: Instant = Instant::ZERO;

/// A handler, and what its edits come to.
struct World {
    handler: SnatHandler,
    wanted: BTreeSet<ObjectKey>,
    addresses: Option<Spec>,
    log: Vec<VppEdit>,
}

fn node(ipv4: Option<&str>, ipv6: Option<&str>) -> Node {
    let (ipv4, ipv6) = (ipv4.map(|net| net.parse().unwrap()), ipv6.map(|net| net.parse().unwrap()));
    Node { ipv4, ipv6, ..Node::default() }
}

fn services(cluster: &[&str]) -> Change<BgpConfigName, BgpConfig> {
    let mut config = BgpConfig::default();
    config.services.cluster = cluster.iter().map(|net| net.parse().unwrap()).collect();
    Change::Resync(vec![(BgpConfigName::Default, config)])
}

fn pool(cidr: &str) -> Pool {
    Pool::new(cidr.parse().unwrap())
}

impl World {
    fn new(fixed: &[&str]) -> Self {
        let service_prefixes = fixed.iter().map(|net| net.parse().unwrap()).collect();
        let config = Config { service_prefixes, ..Config::new("a".into()) };
        let handler = SnatHandler::new(&config);
        Self { handler, wanted: BTreeSet::new(), addresses: None, log: Vec::new() }
    }

    /// One with everything known.
    fn known(fixed: &[&str]) -> Self {
        let mut world = Self::new(fixed);
        world.on(Change::Resync(vec![(NodeName::from("a"), node(Some("192.0.2.1/24"), None))]));
        world.on(Change::<PoolName, Pool>::Resync(Vec::new()));
        world.on(services(&[]));
        world
    }

    fn on<E>(&mut self, event: E)
    where
        SnatHandler: Handler<E>,
    {
        let mut fx = Effects::default();
        self.handler.on(NOW, &event, &mut fx);
        for edit in fx.vpp {
            match &edit {
                VppEdit::Want(Owner::Host, key) => assert!(self.wanted.insert(*key), "{key} twice"),
                VppEdit::Release(Owner::Host, key) => assert!(self.wanted.remove(key), "{key} is not wanted"),
                VppEdit::Define(ObjectKey::SnatAddresses, spec) => self.addresses = Some(spec.clone()),
                other => panic!("{other:?}"),
            }
            self.log.push(edit);
        }
    }

    fn excluded(&self) -> Vec<String> {
        let prefix = |key: &ObjectKey| match key {
            ObjectKey::SnatExclusion(prefix) => Some(prefix.to_string()),
            _ => None,
        };
        self.wanted.iter().filter_map(prefix).collect()
    }
}

#[test]
fn nothing_is_wanted_before_every_claim_can_be_known() {
    let mut world = World::new(&["10.96.0.0/12"]);
    world.on(Change::Resync(vec![(PoolName::from("p"), pool("10.244.0.0/16"))]));
    world.on(services(&["10.97.0.1/16"]));
    world.on(Change::Resync(vec![(NodeName::from("b"), node(Some("192.0.2.2/24"), None))]));
    assert_eq!(world.log, []);
    world.on(Change::Upsert(NodeName::from("a"), node(Some("192.0.2.1/24"), Some("2001:db8::1/64"))));
    assert_eq!(
        world.excluded(),
        ["10.96.0.0/12", "10.97.0.0/16", "10.244.0.0/16", "192.0.2.1/32", "192.0.2.2/32", "2001:db8::1/128"]
    );
    let addresses = SnatAddresses {
        ipv4: Some("192.0.2.1".parse().unwrap()),
        ipv6: Some("2001:db8::1".parse().unwrap()),
    };
    assert_eq!(world.addresses, Some(Spec::SnatAddresses(addresses)));
    assert_eq!(world.log.last(), Some(&VppEdit::Want(Owner::Host, ObjectKey::SnatPolicy)));
    assert!(matches!(world.log.first(), Some(VppEdit::Define(..))), "a value comes before the wish");
}

#[test]
fn what_several_claim_stays_until_the_last_of_them_goes() {
    let claims: [(&str, fn(&mut World, bool)); 4] = [
        ("node", |world, add| {
            let name = NodeName::from("b");
            world.on(if add {
                Change::Upsert(name, node(Some("192.0.2.9/24"), None))
            } else {
                Change::Delete(name)
            });
        }),
        ("another node", |world, add| {
            let name = NodeName::from("c");
            let ipv4 = if add { "192.0.2.9/24" } else { "192.0.2.8/24" };
            world.on(Change::Upsert(name, node(Some(ipv4), None)));
        }),
        ("pool", |world, add| {
            let all = if add { vec![(PoolName::from("p"), pool("192.0.2.9/32"))] } else { Vec::new() };
            world.on(Change::Resync(all));
        }),
        ("services", |world, add| {
            world.on(services(if add { &["192.0.2.9/32"] } else { &[] }));
        }),
    ];
    let there = |world: &World| world.excluded().contains(&"192.0.2.9/32".to_owned());
    // Whoever goes last, and in which order the others went.
    for last in 0..claims.len() {
        let mut world = World::known(&[]);
        for (name, claim) in &claims {
            claim(&mut world, true);
            assert!(there(&world), "claimed by {name}");
        }
        for at in (0..claims.len()).filter(|at| *at != last) {
            claims[at].1(&mut world, false);
            assert!(there(&world), "{} still claims it, {} went", claims[last].0, claims[at].0);
        }
        claims[last].1(&mut world, false);
        assert!(!there(&world), "{} went last", claims[last].0);
    }
}

#[test]
fn a_claim_that_moves_takes_the_new_place_first() {
    let mut world = World::known(&[]);
    world.log.clear();
    world.on(Change::Upsert(PoolName::from("p"), pool("10.1.0.0/16")));
    world.on(Change::Upsert(PoolName::from("p"), pool("10.2.0.0/16")));
    let key = |text: &str| ObjectKey::SnatExclusion(text.parse().unwrap());
    assert_eq!(
        world.log[1..],
        [VppEdit::Want(Owner::Host, key("10.2.0.0/16")), VppEdit::Release(Owner::Host, key("10.1.0.0/16"))]
    );
    world.log.clear();
    world.on(Change::Upsert(PoolName::from("p"), Pool { nat_outgoing: true, ..pool("10.2.0.0/16") }));
    assert_eq!(world.log, [], "what the pool itself has translated is nothing to others");
}

#[test]
fn our_own_node_may_be_away_for_a_moment() {
    let mut world = World::known(&[]);
    let before = world.addresses.clone();
    world.on(Change::<NodeName, Node>::Delete("a".into()));
    world.on(Change::Upsert(NodeName::from("a"), node(None, None)));
    assert_eq!(world.addresses, before);
    world.on(Change::Upsert(NodeName::from("a"), node(Some("192.0.2.1/24"), Some("2001:db8::1/64"))));
    assert_ne!(world.addresses, before, "a second family that comes later");
    assert_eq!(world.excluded(), ["192.0.2.1/32", "2001:db8::1/128"]);
}

#[test]
fn interfaces_to_the_host_come_and_go() {
    let mut world = World::new(&[]);
    world.on(HostTaps([SwIfIndex(2)].into()));
    assert_eq!(world.log, []);
    world.on(Change::Resync(vec![(NodeName::from("a"), node(Some("192.0.2.1/24"), None))]));
    world.on(Change::<PoolName, Pool>::Resync(Vec::new()));
    world.on(services(&[]));
    let taps = |world: &World| {
        let tap = |key: &ObjectKey| match key {
            ObjectKey::SnatInterface(at, table) => Some((at.0, *table)),
            _ => None,
        };
        world.wanted.iter().filter_map(tap).collect::<Vec<_>>()
    };
    assert_eq!(taps(&world), [(2, SnatTable::Pod), (2, SnatTable::Host)]);
    world.on(HostTaps([SwIfIndex(3)].into()));
    assert_eq!(taps(&world), [(3, SnatTable::Pod), (3, SnatTable::Host)]);
}
