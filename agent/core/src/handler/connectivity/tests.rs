//! Ways are shared, and looked at again only where something about them changed.

#![allow(clippy::wildcard_enum_match_arm)]

use super::*;

fn key(prefix: &str) -> RouteKey {
    RouteKey { table: TableId::MAIN, prefix: prefix.parse().unwrap() }
}

fn to(hops: &[&str]) -> Connectivity {
    let hop = |text: &&str| Hop { address: text.parse().unwrap(), weight: 1 };
    Connectivity { hops: hops.iter().map(hop).collect() }
}

fn hear<E>(handler: &mut ConnectivityHandler, event: E) -> Effects
where
    ConnectivityHandler: Handler<E>,
{
    let mut fx = Effects::default();
    handler.on(Instant::ZERO, &event, &mut fx);
    fx
}

fn me() -> Node {
    Node { ipv4: Some("192.0.2.1/24".parse().unwrap()), ..Node::default() }
}

fn ipip(cidr: &str) -> Pool {
    Pool { ipip: Encapsulation::Always, ..Pool::new(cidr.parse().unwrap()) }
}

fn opened(pools: Vec<(PoolName, Pool)>) -> ConnectivityHandler {
    let mut handler = ConnectivityHandler::new(&Config::new(NodeName::from("a")));
    hear(&mut handler, Change::Resync(vec![(NodeName::from("a"), me())]));
    hear(&mut handler, Change::Resync(pools));
    hear(&mut handler, Change::<BgpConfigName, BgpConfig>::Resync(Vec::new()));
    hear(&mut handler, Change::<FelixConfigName, FelixConfig>::Resync(Vec::new()));
    handler
}

#[test]
fn nothing_is_wanted_before_our_node_the_settings_and_all_pools_are_known() {
    let mut handler = ConnectivityHandler::new(&Config::new(NodeName::from("a")));
    assert_eq!(hear(&mut handler, Change::Upsert(key("10.0.0.0/26"), to(&["192.0.2.2"]))).vpp, []);
    assert_eq!(hear(&mut handler, Change::Resync(vec![(NodeName::from("a"), me())])).vpp, []);
    assert_eq!(hear(&mut handler, Change::<BgpConfigName, BgpConfig>::Resync(Vec::new())).vpp, []);
    assert_eq!(hear(&mut handler, Change::<FelixConfigName, FelixConfig>::Resync(Vec::new())).vpp, []);
    let fx = hear(&mut handler, Change::Resync(vec![(PoolName::from("p"), ipip("10.0.0.0/16"))]));
    let routes: Vec<_> =
        fx.vpp.iter().filter(|e| matches!(e, VppEdit::WantRoute(Owner::Destination, ..))).collect();
    let [VppEdit::WantRoute(_, _, paths)] = routes[..] else { panic!("{:?}", fx.vpp) };
    assert!(matches!(paths[0].to, Target::Tunnel(_)), "in the tunnel at once, never beside it");
}

#[test]
fn destinations_behind_the_same_next_hops_share_a_way() {
    let mut handler = opened(vec![(PoolName::from("p"), ipip("10.0.0.0/16"))]);
    for n in 0..100 {
        let fx = hear(&mut handler, Change::Upsert(key(&format!("10.0.{n}.0/26")), to(&["192.0.2.2"])));
        assert_eq!(fx.vpp.len() > 1, n == 0, "the tunnel is asked for once");
    }
    assert_eq!(handler.counts(), (100, 1));
    let fx = hear(&mut handler, Change::Upsert(key("10.0.7.0/26"), to(&["192.0.2.2"])));
    assert_eq!(fx.vpp, [], "the same again is nothing new");
    for n in 0..100 {
        let fx = hear(&mut handler, Change::<RouteKey, Connectivity>::Delete(key(&format!("10.0.{n}.0/26"))));
        assert_eq!(fx.vpp.len() > 1, n == 99, "and let go once");
    }
    assert_eq!(handler.counts(), (0, 0));
}

#[test]
fn the_longest_pool_counts() {
    let mut handler = opened(vec![
        (PoolName::from("wide"), ipip("10.0.0.0/8")),
        (PoolName::from("narrow"), Pool::new("10.1.0.0/16".parse().unwrap())),
    ]);
    hear(&mut handler, Change::Upsert(key("10.0.0.0/26"), to(&["192.0.2.2"])));
    hear(&mut handler, Change::Upsert(key("10.1.0.0/26"), to(&["192.0.2.2"])));
    // Wider than the pool: not inside it.
    hear(&mut handler, Change::Upsert(key("10.0.0.0/7"), to(&["192.0.2.2"])));
    assert_eq!(handler.counts(), (3, 3), "one in each pool, one in none");
    let fx = hear(&mut handler, Change::<PoolName, Pool>::Delete(PoolName::from("narrow")));
    let touched: Vec<&RouteKey> = fx
        .vpp
        .iter()
        .filter_map(|edit| match edit {
            VppEdit::WantRoute(Owner::Destination, key, _) => Some(key),
            _ => None,
        })
        .collect();
    assert_eq!(touched, [&key("10.1.0.0/26")]);
}

#[test]
fn other_nodes_and_unchanged_ones_touch_nothing() {
    let mut handler = opened(vec![(PoolName::from("p"), ipip("10.0.0.0/16"))]);
    hear(&mut handler, Change::Upsert(key("10.0.0.0/26"), to(&["192.0.2.2"])));
    assert_eq!(hear(&mut handler, Change::Upsert(NodeName::from("b"), Node::default())).vpp, []);
    assert_eq!(hear(&mut handler, Change::Upsert(NodeName::from("a"), me())).vpp, []);
    let relabelled = Node { labels: [("x".to_owned(), "y".to_owned())].into(), ..me() };
    assert_eq!(hear(&mut handler, Change::Upsert(NodeName::from("a"), relabelled)).vpp, []);
    let gone = hear(&mut handler, Change::<NodeName, Node>::Delete(NodeName::from("a")));
    assert_eq!(gone.vpp, [], "our node's object vanishing takes no route away");
}

#[test]
fn a_pool_that_contradicts_itself_is_told_and_carried_all_the_same() {
    let vxlan = Pool { vxlan: Encapsulation::Always, ..Pool::new("10.0.0.0/16".parse().unwrap()) };
    let mut handler = opened(Vec::new());
    let into = |fx: &Effects| {
        fx.vpp.iter().find_map(|edit| match edit {
            VppEdit::WantRoute(Owner::Destination, _, paths) => paths[0].to.tunnel().map(|to| to.kind()),
            _ => None,
        })
    };
    let fx = hear(&mut handler, Change::Upsert(PoolName::from("p"), vxlan.clone()));
    assert_eq!(fx.status[0].conditions, []);
    let fx = hear(&mut handler, Change::Upsert(key("10.0.0.0/26"), to(&["192.0.2.2"])));
    assert_eq!(into(&fx), Some("vxlan-tunnel"));
    let both = Pool { ipip: Encapsulation::Always, ..vxlan };
    let fx = hear(&mut handler, Change::Upsert(PoolName::from("p"), both));
    assert_eq!((fx.status[0].conditions.len(), into(&fx)), (1, Some("ipip-tunnel")));
    let fx = hear(&mut handler, Change::<PoolName, Pool>::Delete(PoolName::from("p")));
    assert_eq!(fx.status[0].conditions, [], "conditions go with their object");
}

#[test]
fn a_complete_list_takes_away_what_it_does_not_name() {
    let mut handler = opened(Vec::new());
    for prefix in ["10.0.0.0/26", "10.0.1.0/26"] {
        hear(&mut handler, Change::Upsert(key(prefix), to(&["192.0.2.2"])));
    }
    let fx = hear(&mut handler, Change::Resync(vec![(key("10.0.1.0/26"), to(&["192.0.2.2"]))]));
    assert_eq!(fx.vpp, [VppEdit::ReleaseRoute(Owner::Destination, key("10.0.0.0/26"))]);
}

#[test]
fn addresses_of_services_are_not_installed() {
    let mut handler = opened(vec![(PoolName::from("p"), ipip("10.0.0.0/8"))]);
    let services = |cluster: &[&str], load_balancer: &[&str]| {
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let services = crate::model::ServiceRanges {
            cluster: nets(cluster),
            load_balancer: nets(load_balancer),
            // What is announced is another matter.
            single_load_balancers: true,
            ..crate::model::ServiceRanges::default()
        };
        Change::Upsert(BgpConfigName::Default, BgpConfig { services, ..BgpConfig::default() })
    };
    let told = |fx: Effects| {
        let mut routes = Vec::new();
        for edit in fx.vpp {
            match edit {
                VppEdit::WantRoute(Owner::Destination, key, _) => routes.push(format!("+{}", key.prefix)),
                VppEdit::ReleaseRoute(Owner::Destination, key) => routes.push(format!("-{}", key.prefix)),
                _ => {}
            }
        }
        routes
    };
    let put = |handler: &mut ConnectivityHandler, prefix: &str| {
        told(hear(handler, Change::Upsert(key(prefix), to(&["192.0.2.2"]))))
    };
    assert_eq!(put(&mut handler, "10.96.7.7/32"), ["+10.96.7.7/32"]);
    assert_eq!(put(&mut handler, "80.15.0.9/32"), ["+80.15.0.9/32"]);
    let ranges = services(&["10.96.0.0/12"], &["80.15.0.9/32"]);
    assert_eq!(told(hear(&mut handler, ranges)), ["-10.96.7.7/32", "-80.15.0.9/32"]);
    assert_eq!(put(&mut handler, "10.96.0.0/12"), ["-10.96.0.0/12"]);
    assert_eq!(put(&mut handler, "10.0.0.0/8"), ["+10.0.0.0/8"], "what is wider is no service's");
    let ranges = services(&[], &["80.15.0.9/32"]);
    assert_eq!(told(hear(&mut handler, ranges)), ["+10.96.0.0/12", "+10.96.7.7/32"]);
    let gone = Change::<BgpConfigName, BgpConfig>::Delete(BgpConfigName::Default);
    assert_eq!(told(hear(&mut handler, gone)), ["+80.15.0.9/32"]);
}
