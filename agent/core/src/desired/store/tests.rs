//! Owners and uses.

use super::super::object::{Target, WayId};
use super::super::tunnel::{IpipKey, Tunnel, WireguardKey};
use super::*;

fn key(prefix: &str) -> RouteKey {
    RouteKey { table: TableId::MAIN, prefix: prefix.parse().unwrap() }
}

fn via(address: &str) -> Arc<[Path]> {
    Arc::from([Path { to: Target::Gateway(address.parse().unwrap()), weight: 1 }])
}

fn tunnel(remote: &str) -> Tunnel {
    Tunnel::Ipip(IpipKey { local: "192.0.2.1".parse().unwrap(), remote: remote.parse().unwrap() })
}

fn desired(store: &Store, key: &RouteKey) -> Vec<Path> {
    store.route(key).map(|e| store.sets.paths(e.desired).to_vec()).unwrap_or_default()
}

#[test]
fn the_smaller_owner_has_the_route_and_the_other_gets_it_back() {
    let mut store = Store::default();
    let k = key("10.0.0.0/24");
    store.edit(VppEdit::WantRoute(Owner::Destination, k, via("192.0.2.9")));
    store.edit(VppEdit::WantRoute(Owner::Host, k, Arc::from([Path { to: Target::Drop, weight: 1 }])));
    assert_eq!(desired(&store, &k)[0].to, Target::Drop);
    // The loser may change its mind meanwhile.
    store.edit(VppEdit::WantRoute(Owner::Destination, k, via("192.0.2.8")));
    assert_eq!(desired(&store, &k)[0].to, Target::Drop);
    store.edit(VppEdit::ReleaseRoute(Owner::Host, k));
    assert_eq!(desired(&store, &k), via("192.0.2.8").to_vec());
    store.edit(VppEdit::ReleaseRoute(Owner::Destination, k));
    assert_eq!(desired(&store, &k), []);
    assert_eq!(store.sets.len(), 0, "no set is kept without a user");
    assert_eq!(store.touched.len(), 4, "only what changed is touched: {:?}", store.touched);
}

#[test]
fn a_claim_can_be_taken_back() {
    let mut store = Store::default();
    let k = key("10.0.0.0/24");
    store.edit(VppEdit::WantRoute(Owner::Way(WayId(1)), k, via("192.0.2.9")));
    store.edit(VppEdit::WantRoute(Owner::Way(WayId(2)), k, via("192.0.2.9")));
    store.edit(VppEdit::ReleaseRoute(Owner::Way(WayId(2)), k));
    assert_eq!(desired(&store, &k), via("192.0.2.9").to_vec());
    store.edit(VppEdit::ReleaseRoute(Owner::Way(WayId(2)), k));
    store.edit(VppEdit::ReleaseRoute(Owner::Way(WayId(1)), k));
    assert_eq!(store.sets.len(), 0);
}

#[test]
fn of_several_ways_the_one_with_the_greatest_paths_has_the_route_whoever_came_first() {
    let k = key("192.0.2.2/32");
    let key = IpipKey { local: "192.0.2.1".parse().unwrap(), remote: "192.0.2.2".parse().unwrap() };
    let wireguard = WireguardKey { local: key.local, port: 1, key: crate::model::KeyId::default() };
    let paths = [
        via("192.0.2.9"),
        Arc::from([Path { to: Target::Tunnel(Tunnel::Ipip(key)), weight: 1 }]),
        Arc::from([Path { to: Target::Tunnel(Tunnel::Wireguard(wireguard)), weight: 1 }]),
    ];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut store = Store::default();
        for (id, which) in (0..).zip(order) {
            store.edit(VppEdit::WantRoute(Owner::Way(WayId(id)), k, Arc::clone(&paths[which])));
        }
        assert_eq!(desired(&store, &k), paths[2].to_vec(), "{order:?}");
        // The first one changes its mind; another may be first now.
        let first = (0..).zip(order).find(|(_, which)| *which == 2).unwrap().0;
        store.edit(VppEdit::WantRoute(Owner::Way(WayId(first)), k, Arc::clone(&paths[0])));
        assert_eq!(desired(&store, &k), paths[1].to_vec(), "{order:?}");
        for id in 0..3 {
            store.edit(VppEdit::ReleaseRoute(Owner::Way(WayId(id)), k));
        }
        assert_eq!((desired(&store, &k), store.sets.len()), (Vec::new(), 0));
    }
}

#[test]
fn a_tunnel_is_in_use_while_a_held_set_leads_into_it() {
    let mut store = Store::default();
    let (a, b) = (tunnel("192.0.2.2"), tunnel("192.0.2.3"));
    let both: Arc<[Path]> =
        Arc::from([Path { to: Target::Tunnel(a), weight: 1 }, Path { to: Target::Tunnel(b), weight: 1 }]);
    let one: Arc<[Path]> = Arc::from([Path { to: Target::Tunnel(a), weight: 1 }]);
    let (both, one) = (store.sets.intern(&both), store.sets.intern(&one));
    store.hold(both);
    store.hold(both);
    store.hold(one);
    store.unhold(both);
    assert!(store.in_use(&ObjectKey::Tunnel(a)) && store.in_use(&ObjectKey::Tunnel(b)));
    store.unhold(both);
    assert!(store.in_use(&ObjectKey::Tunnel(a)) && !store.in_use(&ObjectKey::Tunnel(b)));
    store.unhold(one);
    assert!(!store.in_use(&ObjectKey::Tunnel(a)));
    assert_eq!(store.touched, [VppKey::Object(ObjectKey::Tunnel(b)), VppKey::Object(ObjectKey::Tunnel(a))]);
    store.hold(SetId::FOREIGN);
    store.unhold(SetId::FOREIGN);
}

#[test]
fn an_object_is_wanted_while_anyone_wants_it() {
    let mut store = Store::default();
    let k = ObjectKey::Tunnel(tunnel("192.0.2.2"));
    let (one, two) = (Owner::Way(WayId(1)), Owner::Way(WayId(2)));
    for edit in
        [VppEdit::Want(one, k), VppEdit::Want(one, k), VppEdit::Want(two, k), VppEdit::Release(one, k)]
    {
        store.edit(edit);
    }
    assert!(store.objects[&k].wanted());
    store.edit(VppEdit::Release(two, k));
    assert!(!store.objects[&k].wanted());
    assert_eq!(store.touched.len(), 2);
}
