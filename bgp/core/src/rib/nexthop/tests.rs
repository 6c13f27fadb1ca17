use super::*;
use bgp_wire::attr::{Builder, Canonical, ExtCommunity, Origin};

fn hop(text: &str) -> NextHop {
    text.parse::<IpAddr>().unwrap().into()
}

fn metric(metric: u32) -> NextHopState {
    NextHopState { metric, ..NextHopState::default() }
}

#[test]
fn an_unknown_next_hop_is_reachable_at_cost_0() {
    let mut hops = NextHops::new();
    let id = hops.intern(Some(hop("192.0.2.1")));
    assert_eq!((hops.cost(id), hops.cost(NextHopId(0))), (0, 0));
    assert!(!hops.put(hop("192.0.2.1").address(), NextHopState::default()), "nothing new");
    assert!(!hops.put(hop("192.0.2.2").address(), metric(7)), "nobody uses it");
    let other = hops.intern(Some(hop("192.0.2.2")));
    assert_eq!(hops.cost(other), 7);
    assert_eq!(hops.state(hop("192.0.2.2").address()), Some(&metric(7)));
}

#[test]
fn changes_are_dated() {
    let mut hops = NextHops::new();
    let (a, b) = (hops.intern(Some(hop("192.0.2.1"))), hops.intern(Some(hop("192.0.2.2"))));
    let before = hops.generation();
    assert!(hops.put(hop("192.0.2.1").address(), metric(5)));
    assert!(hops.changed_after(a, before) && !hops.changed_after(b, before));
    let between = hops.generation();
    assert!(!hops.changed_after(a, between));
    assert!(hops.put(hop("192.0.2.1").address(), NextHopState { reachable: false, ..metric(5) }));
    assert_eq!((hops.cost(a), hops.changed_after(a, between)), (UNREACHABLE, true));
    assert!(hops.delete(hop("192.0.2.1").address()));
    assert_eq!((hops.cost(a), hops.state(hop("192.0.2.1").address())), (0, None));
    assert!(hops.put(hop("192.0.2.1").address(), metric(u32::MAX)));
    assert_ne!(hops.cost(a), UNREACHABLE);
}

#[test]
fn both_forms_of_an_ipv6_next_hop_follow_the_global_address() {
    let mut hops = NextHops::new();
    let global = "2001:db8::1".parse().unwrap();
    let one = hops.intern(Some(NextHop::V6 { global, link_local: None }));
    let two = hops.intern(Some(NextHop::V6 { global, link_local: Some("fe80::1".parse().unwrap()) }));
    let apart = hops.intern(Some(hop("2001:db8::2")));
    assert!(hops.put(global.into(), metric(3)));
    assert_eq!([one, two, apart].map(|id| hops.cost(id)), [3, 3, 0]);
}

#[test]
fn a_next_hop_goes_with_its_last_set() {
    let mut hops = NextHops::new();
    let id = hops.intern(Some(hop("192.0.2.1")));
    assert_eq!(hops.intern(Some(hop("192.0.2.1"))), id);
    hops.release(id);
    assert_eq!(hops.intern(Some(hop("192.0.2.1"))), id);
    hops.release(id);
    hops.release(id);
    assert!(hops.by_address.is_empty());
    assert_eq!(hops.intern(Some(hop("192.0.2.9"))), id);
    hops.release(NextHopId(0));
}

#[test]
fn equal_sets_share_their_memory_and_unused_ones_are_dropped() {
    let mut hops = NextHops::new();
    let (a, b) = (hop("192.0.2.1"), hop("192.0.2.2"));
    let ids = [b, a].map(|hop| (hops.intern(Some(hop)), Share::UNKNOWN));
    let set = hops.set(ids);
    assert_eq!(set.next_hops().collect::<Vec<_>>(), [a, b]);
    assert!(Arc::ptr_eq(&set.0, &hops.set([ids[1], ids[0]]).0));
    assert_eq!(set, NextHopSet::new([b, a, b]));
    assert_ne!(set, NextHopSet::default());
    for n in 0..1000u32 {
        let id = hops.intern(Some(NextHop::V4(n.into())));
        hops.set([(id, Share::UNKNOWN)]);
        hops.release(id);
    }
    assert!(hops.sets.len() <= 64, "{}", hops.sets.len());
    assert!(Arc::ptr_eq(&set.0, &hops.set(ids).0), "one in use stays");
}

#[test]
fn a_next_hop_that_is_resolved_stands_for_others() {
    let mut hops = NextHops::new();
    let (far, near, apart) = (hop("192.0.2.1"), hop("10.0.0.1"), hop("10.0.0.2"));
    let [id, other] = [far, near].map(|hop| hops.intern(Some(hop)));
    assert_eq!(hops.alone(id), NextHopSet::new([far]));
    let before = hops.generation();
    let via = |via: &[NextHop]| NextHopState {
        via: via.iter().map(|hop| hop.address()).collect(),
        ..NextHopState::default()
    };
    assert!(hops.put(far.address(), via(&[near, apart])));
    assert!(hops.resolved_after(id, before) && !hops.changed_after(id, before), "it costs the same");
    assert!(!hops.put(far.address(), via(&[near, apart])), "nothing new");
    assert_eq!(hops.alone(id), NextHopSet::new([near, apart]));
    // What goes to the same place comes together.
    let both = hops.set([(id, Share::UNKNOWN), (other, Share::UNKNOWN)]);
    assert_eq!(both, NextHopSet::weighted([(near, 3), (apart, 1)]));
    assert!(hops.delete(far.address()));
    assert_eq!(hops.alone(id), NextHopSet::new([far]));
}

#[test]
fn weights_follow_the_bandwidth() {
    let set = |octets: &[f32]| {
        let hops = octets.iter().zip(1u32..).map(|(octets, n)| {
            let community = ExtCommunity::of_link_bandwidth(65000, *octets);
            let mut builder = Builder::new(Origin::Igp);
            builder.add_ext_communities([ExtCommunity(0x0002_fdf2_0000_004d), community]);
            (NextHop::V4(n.into()), Share::of(Canonical(&builder.build())), [].as_slice())
        });
        set::members(hops).into_iter().map(|member| member.weight).collect::<Vec<_>>()
    };
    // 10, 25 and 100 Gbit/s, of which 25 is no exact number of this kind.
    assert_eq!(set(&[1.25e9, 1.25e9]), [1, 1]);
    assert_eq!(set(&[1.25e9, 12.5e9]), [1, 10]);
    assert_eq!(set(&[1.25e9, 3.125e9]), [2, 5]);
    assert_eq!(set(&[1.25e9, 5e9, 2.5e9]), [1, 4, 2]);
    // Nobody gets nothing, however small, and nothing overflows.
    assert_eq!(set(&[1.0, 12.5e9]), [1, 255]);
    assert_eq!(set(&[f32::MAX, f32::MAX, 1e-30]), [255, 255, 1]);
    // Without a number for each the numbers of the others say nothing.
    for none in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert_eq!(set(&[1.25e9, none, 5e9]), [1, 1, 1], "{none}");
    }
    // Of several the least counts, transitive or not.
    let mut builder = Builder::new(Origin::Igp);
    let fast = ExtCommunity::of_link_bandwidth(1, 9.0);
    let slow = ExtCommunity(ExtCommunity::of_link_bandwidth(2, 4.0).0 & !(0x40 << 56));
    assert!(slow.is_transitive() && !fast.is_transitive());
    builder.add_ext_communities([fast, slow]);
    let one = set::members([(NextHop::V4(1.into()), Share::of(Canonical(&builder.build())), [].as_slice())]);
    assert_eq!(one[0].weight, 1, "alone it has all");
    assert_eq!(Share::of(Canonical(&builder.build())), Share::of_octets(4));
}

#[test]
fn however_much_comes_together_it_can_be_counted() {
    let (near, apart) = (hop("10.0.0.1"), hop("10.0.0.2"));
    // A hundred, each with the most that can be said, behind one next hop.
    let most = Share::of_octets(1_000_000_000_000_000);
    let vias = [near];
    let together = (0..100u32).map(|n| (NextHop::V4(n.into()), most, vias.as_slice()));
    let members = set::members(together.chain([(apart, most, [].as_slice())]));
    let weights: Vec<_> = members.iter().map(|member| (member.next_hop, member.weight)).collect();
    assert_eq!(weights, [(near, 100), (apart, 1)]);
    // Nor is it too little, over however many it is spread.
    let many: Vec<NextHop> = (0..3000u32).map(|n| NextHop::V4(n.into())).collect();
    let spread = set::members([(near, Share::UNKNOWN, many.as_slice())]);
    assert!(spread.iter().all(|member| member.weight == 1));
}
