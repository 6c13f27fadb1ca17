use super::*;
use crate::peer_key::PeerIx;
use crate::rib::{NextHopState, PeerSource};
use bgp_wire::attr::{AttrFacts, Builder, Canonical, ExtCommunity, Origin};
use bgp_wire::{FamilySet, Ipv4Prefix, NextHop, PathId, RouterId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU8;

/// A table with what it needs around it.
struct World {
    table: Table<Ipv4Prefix>,
    attrs: AttrStore,
    sources: Sources,
}

impl World {
    /// With `peers` external neighbours, up.
    fn new(peers: u32) -> Self {
        let mut sources = Sources::new();
        for n in 0..peers {
            let address = IpAddr::from([192, 0, 2, n as u8]);
            sources.peer_up(
                PeerIx(n),
                PeerSource { external: true, router_id: RouterId(n + 1), address, client: false },
            );
        }
        let mut table = Table::new(1);
        table.set_decision(several(8));
        Self { table, attrs: AttrStore::new(2), sources }
    }

    fn source(&mut self, peer: u32) -> SourceId {
        self.sources.intern(PeerIx(peer), PathId::NONE).unwrap()
    }

    /// An attribute set whose LOCAL_PREF is `local_pref` and whose next hop ends in `hop`. The caller holds it.
    fn attrs(&mut self, local_pref: u32, hop: u8) -> AttrId {
        self.wide(local_pref, hop, 0)
    }

    /// The same over a link of this bandwidth, in megabits a second; unknown where it is 0.
    fn wide(&mut self, local_pref: u32, hop: u8, mbits: u32) -> AttrId {
        let mut builder = Builder::new(Origin::Igp);
        builder.local_pref(Some(local_pref));
        builder.add_ext_communities(bandwidth(mbits));
        let octets = builder.build();
        self.attrs.intern(&octets, Some(next_hop(hop)), || Canonical(&octets).facts())
    }

    fn announce(&mut self, key: u32, peer: u32, local_pref: u32, hop: u8) -> Outcome {
        self.announce_wide(key, peer, (local_pref, hop, 0))
    }

    fn announce_wide(&mut self, key: u32, peer: u32, (local_pref, hop, mbits): (u32, u8, u32)) -> Outcome {
        let (source, id) = (self.source(peer), self.wide(local_pref, hop, mbits));
        let offer = Offer { source, pre: id, post: Ok(id), now: 7 };
        let outcome = self.with(|table, cx| table.announce(prefix(key), offer, cx)).unwrap();
        self.attrs.release(id, 1);
        outcome
    }

    fn reject(&mut self, key: u32, peer: u32, why: PathRejected) -> Outcome {
        let (source, id) = (self.source(peer), self.attrs(100, 1));
        let offer = Offer { source, pre: id, post: Err(why), now: 7 };
        let outcome = self.with(|table, cx| table.announce(prefix(key), offer, cx)).unwrap();
        self.attrs.release(id, 1);
        outcome
    }

    fn withdraw(&mut self, key: u32, peer: u32) -> Outcome {
        let source = self.source(peer);
        self.with(|table, cx| table.withdraw(prefix(key), source, cx))
    }

    fn with<R>(&mut self, run: impl FnOnce(&mut Table<Ipv4Prefix>, &mut Context<'_>) -> R) -> R {
        run(&mut self.table, &mut Context { attrs: &mut self.attrs, sources: &self.sources })
    }

    /// LOCAL_PREF of the best path and what decided.
    fn best(&self, key: u32) -> Option<(u32, Rung)> {
        let best = self.table.best(self.table.find(prefix(key))?)?;
        Some((self.attrs.set(best.attrs).facts().local_pref?, best.rung))
    }

    fn changes(&mut self, cursor: CursorId) -> Vec<Ipv4Prefix> {
        std::iter::from_fn(|| self.table.next_change(cursor).map(|(_, id)| self.table.key(id))).collect()
    }
}

/// So many paths at once, whatever is in their AS paths.
fn several(multipath: u8) -> DecisionSettings {
    let multipath = NonZeroU8::new(multipath).unwrap();
    DecisionSettings { multipath, multipath_relax: true, ..DecisionSettings::RFC4271 }
}

/// Megabits a second as the community says them.
fn bandwidth(mbits: u32) -> Option<ExtCommunity> {
    (mbits > 0).then(|| ExtCommunity::of_link_bandwidth(65000, mbits as f32 * 125_000.0))
}

fn prefix(n: u32) -> Ipv4Prefix {
    Ipv4Prefix::new(0x0a00_0000 | n << 8, 24).unwrap()
}

fn next_hop(last: u8) -> NextHop {
    NextHop::V4(Ipv4Addr::new(198, 51, 100, last))
}

#[test]
fn a_path_replaces_the_older_one_of_its_source() {
    let mut w = World::new(1);
    let first = w.announce(1, 0, 100, 1);
    assert_eq!((first.had, first.changed), (None, true));
    let again = w.announce(1, 0, 100, 1);
    assert_eq!((again.had, again.changed, again.dest), (Some(Accepted(true)), false, first.dest));
    let other = w.announce(1, 0, 200, 1);
    assert_eq!((other.had, other.changed), (Some(Accepted(true)), true));
    assert_eq!(w.best(1), Some((200, Rung::Only)));
    assert_eq!((w.attrs.len(), w.table.len()), (1, 1), "the older set has gone");
}

#[test]
fn the_last_withdrawal_frees_everything_when_nobody_reads() {
    let mut w = World::new(2);
    w.announce(1, 0, 100, 1);
    w.announce(1, 1, 200, 2);
    assert_eq!(w.best(1), Some((200, Rung::LocalPref)));
    assert_eq!(w.withdraw(1, 1).had, Some(Accepted(true)));
    assert_eq!(w.best(1), Some((100, Rung::Only)));
    let last = w.withdraw(1, 0);
    assert!(last.changed && last.dest.is_some());
    assert_eq!((w.table.find(prefix(1)), w.table.len(), w.attrs.len()), (None, 0, 0));
    assert_eq!(w.withdraw(1, 0), Outcome { dest: None, had: None, was_stale: false, changed: false });
    // The number is given out again.
    assert_eq!(w.announce(2, 0, 100, 1).dest, last.dest);
    assert_eq!(w.table.len_ids(), 1);
}

#[test]
fn a_rejected_path_stays_and_takes_no_part() {
    let mut w = World::new(2);
    assert!(!w.reject(1, 0, PathRejected::AsLoop).changed);
    assert_eq!((w.best(1), w.table.len()), (None, 1));
    let id = w.table.find(prefix(1)).unwrap();
    assert_eq!(w.table.dest_version(id), 0);
    let path = *w.table.paths(id).next().unwrap();
    assert_eq!((path.rejected(), path.post(), path.is_used()), (Some(PathRejected::AsLoop), None, false));
    w.announce(1, 1, 50, 1);
    assert_eq!(w.best(1), Some((50, Rung::Only)));
    // Policy changes its mind about both.
    assert_eq!(w.announce(1, 0, 100, 1).had, Some(Accepted(false)));
    assert_eq!(w.best(1), Some((100, Rung::LocalPref)));
    assert!(w.reject(1, 0, PathRejected::ImportPolicy).changed);
    assert!(w.reject(1, 1, PathRejected::ImportPolicy).changed);
    assert_eq!((w.best(1), w.table.paths(id).count()), (None, 2));
    w.withdraw(1, 0);
    w.withdraw(1, 1);
    assert_eq!((w.table.is_live(id), w.attrs.is_empty()), (false, true));
}

#[test]
fn the_age_is_that_of_the_attributes() {
    let mut w = World::new(1);
    let (source, id) = (w.source(0), w.attrs(100, 1));
    let offer = Offer { source, pre: id, post: Ok(id), now: 5 };
    let dest = w.with(|table, cx| table.announce(prefix(1), offer, cx)).unwrap().dest.unwrap();
    let since = |w: &World| w.table.paths(dest).next().map(Path::since);
    w.with(|table, cx| table.announce_at(dest, Offer { now: 9, ..offer }, cx)).unwrap();
    assert_eq!(since(&w), Some(5));
    let other = w.attrs(200, 1);
    w.with(|table, cx| table.announce_at(dest, Offer { now: 9, pre: other, post: Ok(other), ..offer }, cx))
        .unwrap();
    assert_eq!(since(&w), Some(9));
    assert_eq!(w.with(|table, cx| table.announce_at(DestId::from_index(77), offer, cx)), None);
}

#[test]
fn own_routes_win() {
    let mut w = World::new(1);
    w.announce(1, 0, 500, 1);
    let id = w.attrs.intern(b"own", None, AttrFacts::default);
    let offer = Offer { source: SourceId::LOCAL, pre: id, post: Ok(id), now: 0 };
    let dest = w.with(|table, cx| table.announce(prefix(1), offer, cx)).unwrap().dest.unwrap();
    let best = w.table.best(dest).unwrap();
    assert_eq!((best.rung, best.path.source()), (Rung::Local, SourceId::LOCAL));
    assert_eq!(w.table.hops(dest, &mut w.attrs).members(), []);
    assert!(w.with(|table, cx| table.withdraw(prefix(1), SourceId::LOCAL, cx)).changed);
    assert_eq!(w.best(1), Some((500, Rung::Only)));
}

#[test]
fn equal_paths_give_their_next_hops_and_count_as_a_change() {
    let mut w = World::new(3);
    let cursor = w.table.add_cursor();
    w.announce(1, 0, 100, 1);
    w.announce(1, 1, 100, 9);
    let id = w.table.find(prefix(1)).unwrap();
    assert_eq!(w.table.hops(id, &mut w.attrs), NextHopSet::new([next_hop(1), next_hop(9)]));
    assert_eq!(w.changes(cursor), [prefix(1)]);
    assert!(!w.announce(1, 2, 50, 3).changed, "a worse path is no news");
    assert!(w.changes(cursor).is_empty());
    assert!(w.announce(1, 1, 100, 8).changed, "another next hop of an equal path is");
    assert_eq!(w.changes(cursor), [prefix(1)]);
    assert!(w.withdraw(1, 1).changed);
    assert_eq!(w.table.hops(id, &mut w.attrs), NextHopSet::new([next_hop(1)]));
}

#[test]
fn next_hops_beyond_the_bound_are_left_out_whatever_the_order() {
    let hops = |order: [u32; 3]| {
        let mut w = World::new(3);
        w.table.set_decision(several(2));
        for peer in order {
            w.announce(1, peer, 100, 10 - peer as u8);
        }
        let id = w.table.find(prefix(1)).unwrap();
        w.table.hops(id, &mut w.attrs).next_hops().collect::<Vec<_>>()
    };
    // Those of the lowest identifiers.
    assert_eq!(hops([0, 1, 2]), [next_hop(9), next_hop(10)]);
    assert_eq!(hops([2, 1, 0]), hops([0, 1, 2]));
}

/// Who reads while paths are to be used one at a time, and are not after all, is not left with one of them.
#[test]
fn a_set_is_what_was_decided_whatever_is_wanted_now() {
    let mut w = World::new(2);
    let (cursor, mut seen) = (w.table.add_cursor(), Seen::new());
    w.announce(1, 0, 100, 1);
    w.announce(1, 1, 100, 2);
    let mut review = Review::default();
    for multipath in [1, 8] {
        w.table.set_decision(several(multipath));
        review.begin_deciding();
        read(&mut w, cursor, 9, &mut seen);
    }
    w.with(|table, cx| assert!(table.review_step(&mut review, 9, cx, |_, _| {})));
    read(&mut w, cursor, 9, &mut seen);
    assert_eq!(seen[&prefix(1)].1, NextHopSet::new([next_hop(1), next_hop(2)]));
}

#[test]
fn one_path_at_a_time_is_no_set() {
    let mut w = World::new(3);
    w.table.set_decision(DecisionSettings::RFC4271);
    w.announce(1, 0, 100, 1);
    assert!(!w.announce(1, 1, 100, 2).changed, "an equal path is no news");
    assert!(!w.announce(1, 1, 100, 3).changed && !w.withdraw(1, 1).changed);
}

/// A change of the set is told, and nothing that leaves it as it is.
#[test]
fn a_set_changes_when_what_is_in_it_does() {
    let mut w = World::new(5);
    w.table.set_decision(several(2));
    let id = w.announce_wide(1, 0, (100, 1, 10)).dest.unwrap();
    assert!(w.announce_wide(1, 2, (100, 2, 10)).changed);
    assert!(!w.announce_wide(1, 3, (100, 3, 10)).changed, "there is no room for it");
    assert!(!w.announce_wide(1, 4, (100, 2, 50)).changed, "somebody else goes there already");
    let hops = |w: &mut World| w.table.hops(id, &mut w.attrs);
    assert_eq!(hops(&mut w), NextHopSet::new([next_hop(1), next_hop(2)]));
    assert!(w.announce_wide(1, 2, (100, 2, 40)).changed, "another weight");
    assert_eq!(hops(&mut w), NextHopSet::weighted([(next_hop(1), 1), (next_hop(2), 4)]));
    // The same way in other words.
    let source = w.source(2);
    let mut builder = Builder::new(Origin::Igp);
    builder
        .local_pref(Some(100))
        .add_ext_communities(bandwidth(40))
        .add_communities([bgp_wire::attr::Community(7)]);
    let octets = builder.build();
    let worded = w.attrs.intern(&octets, Some(next_hop(2)), || Canonical(&octets).facts());
    let offer = Offer { source, pre: worded, post: Ok(worded), now: 7 };
    assert!(!w.with(|table, cx| table.announce(prefix(1), offer, cx)).unwrap().changed);
    assert!(w.announce_wide(1, 2, (100, 2, 0)).changed, "without a bandwidth both are alike");
    assert_eq!(hops(&mut w), NextHopSet::new([next_hop(1), next_hop(2)]));
    assert!(w.withdraw(1, 2).changed, "the next one takes its place");
    assert_eq!(hops(&mut w), NextHopSet::weighted([(next_hop(1), 1), (next_hop(3), 1)]));
    assert!(!w.withdraw(1, 4).changed);
    assert!(w.withdraw(1, 0).changed);
    assert_eq!(hops(&mut w), NextHopSet::new([next_hop(3)]));
}

#[test]
fn without_relax_the_as_paths_must_be_the_same() {
    let mut w = World::new(3);
    let path = |w: &mut World, peer: u32, asns: [u32; 2]| {
        let source = w.source(peer);
        let mut builder = Builder::new(Origin::Igp);
        for asn in asns {
            builder.prepend(bgp_wire::Asn(asn), 1);
        }
        let octets = builder.build();
        let hop = Some(next_hop(peer as u8 + 1));
        let id = w.attrs.intern(&octets, hop, || Canonical(&octets).facts());
        let offer = Offer { source, pre: id, post: Ok(id), now: 7 };
        w.with(|table, cx| table.announce(prefix(1), offer, cx)).unwrap().dest.unwrap()
    };
    path(&mut w, 0, [65001, 65009]);
    path(&mut w, 1, [65001, 65009]);
    let id = path(&mut w, 2, [65001, 65008]);
    assert_eq!(w.table.hops(id, &mut w.attrs).members().len(), 3);
    w.table.set_decision(DecisionSettings { multipath_relax: false, ..several(8) });
    let mut review = Review::default();
    review.begin_deciding();
    let cursor = w.table.add_cursor();
    assert!(w.with(|table, cx| table.review_step(&mut review, 9, cx, |_, _| {})));
    assert_eq!(w.changes(cursor), [prefix(1)]);
    assert_eq!(w.table.hops(id, &mut w.attrs), NextHopSet::new([next_hop(1), next_hop(2)]));
}

#[test]
fn each_path_has_its_reason() {
    let mut w = World::new(6);
    w.announce(1, 0, 100, 1);
    w.announce(1, 1, 100, 2);
    w.announce(1, 2, 50, 3);
    w.announce(1, 3, 100, 2);
    w.announce(1, 4, 100, 4);
    w.reject(1, 5, PathRejected::AsLoop);
    w.attrs
        .next_hops_mut()
        .put(next_hop(4).address(), NextHopState { reachable: false, ..NextHopState::default() });
    let id = w.table.find(prefix(1)).unwrap();
    let cx = Context { attrs: &mut w.attrs, sources: &w.sources };
    let mut reasons: Vec<_> = w.table.standings(id, 9, &cx).into_iter().collect();
    reasons.sort_by_key(|(path, _)| w.sources.peer(path.source()));
    let reasons: Vec<_> = reasons.into_iter().map(|(_, standing)| standing).collect();
    let (own, better) = (RungValue::Number(50), RungValue::Number(100));
    let (mine, lower) = (RungValue::RouterId(RouterId(4)), RungValue::RouterId(RouterId(1)));
    assert_eq!(
        reasons,
        [
            Standing::Best,
            Standing::Beside,
            Standing::Lost(Loss { rung: Rung::LocalPref, own, better }),
            Standing::Lost(Loss { rung: Rung::RouterId, own: mine, better: lower }),
            Standing::Unreachable,
            Standing::Rejected(PathRejected::AsLoop),
        ]
    );
    assert_eq!(format!("{own} {mine}"), "50 0.0.0.4");
}

/// What a next hop is resolved to is told for the destinations behind it, once each, and for no others.
#[test]
fn a_next_hop_resolved_anew_is_told_once() {
    let mut w = World::new(2);
    for key in 0..3 {
        w.announce(key, 0, 100, 1);
        w.announce(key, 1, 50, 2);
    }
    w.announce(7, 1, 100, 2);
    let cursor = w.table.add_cursor();
    let mut review = Review::default();
    let tell = |w: &mut World, review: &mut Review, hop: u8, via: &[u8], steps: usize| {
        let generation = w.attrs.next_hops().generation();
        let via = via.iter().map(|hop| next_hop(*hop).address()).collect();
        let state = NextHopState { via, ..NextHopState::default() };
        if w.attrs.next_hops_mut().put(next_hop(hop).address(), state) {
            review.begin_costs(generation);
        }
        w.with(|table, cx| table.review_step(review, steps, cx, |_, _| {}))
    };
    assert!(tell(&mut w, &mut review, 1, &[11, 12], 99));
    assert_eq!(w.changes(cursor), [prefix(0), prefix(1), prefix(2)]);
    let id = w.table.find(prefix(0)).unwrap();
    assert_eq!(w.table.hops(id, &mut w.attrs), NextHopSet::new([next_hop(11), next_hop(12)]));
    assert!(tell(&mut w, &mut review, 1, &[11, 12], 99));
    assert!(tell(&mut w, &mut review, 2, &[], 99));
    assert!(w.changes(cursor).is_empty());
}

/// Gone and back before the review has come by: who was not looked at meanwhile never hears of it, and the others go away
/// once and come back once.
#[test]
fn a_next_hop_that_goes_and_comes_flaps_once_at_the_most() {
    let mut w = World::new(1);
    for key in 0..10 {
        w.announce(key, 0, 100, 1);
    }
    let cursor = w.table.add_cursor();
    let mut review = Review::default();
    let mut seen: BTreeMap<Ipv4Prefix, u32> = BTreeMap::new();
    for (reachable, steps) in [(false, 4), (true, 3), (false, 0), (true, 99)] {
        let generation = w.attrs.next_hops().generation();
        let state = NextHopState { reachable, ..NextHopState::default() };
        assert!(w.attrs.next_hops_mut().put(next_hop(1).address(), state));
        review.begin_costs(generation);
        w.with(|table, cx| table.review_step(&mut review, steps, cx, |_, _| {}));
        w.changes(cursor).into_iter().for_each(|prefix| *seen.entry(prefix).or_default() += 1);
    }
    assert!(review.is_done());
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [2; 4], "four were seen to be away");
    assert!((0..10).all(|key| w.best(key).is_some()));
}

#[test]
fn an_unreachable_next_hop_takes_its_paths_out_until_it_is_back() {
    let mut w = World::new(2);
    w.announce(1, 0, 200, 1);
    w.announce(1, 1, 100, 2);
    w.announce(2, 0, 200, 1);
    let mut review = Review::default();
    let mut tell = |w: &mut World, state: NextHopState| {
        let generation = w.attrs.next_hops().generation();
        if w.attrs.next_hops_mut().put(next_hop(1).address(), state) {
            review.begin_costs(generation);
        }
        let mut steps = 0;
        while !w.with(|table, cx| table.review_step(&mut review, 1, cx, |_, _| panic!("nothing is removed")))
        {
            steps += 1;
        }
        steps
    };
    assert_eq!(tell(&mut w, NextHopState { metric: 0, ..NextHopState::default() }), 0, "nothing new");
    assert!(tell(&mut w, NextHopState { reachable: false, ..NextHopState::default() }) > 0);
    assert_eq!((w.best(1), w.best(2)), (Some((100, Rung::Only)), None));
    tell(&mut w, NextHopState { metric: 5, ..NextHopState::default() });
    assert_eq!((w.best(1), w.best(2)), (Some((200, Rung::LocalPref)), Some((200, Rung::Only))));
    // A path that arrives while the next hop is unreachable.
    tell(&mut w, NextHopState { reachable: false, ..NextHopState::default() });
    w.announce(3, 0, 200, 1);
    assert_eq!(w.best(3), None);
}

#[test]
fn the_lower_cost_wins_and_a_change_of_cost_is_seen() {
    let mut w = World::new(2);
    w.announce(1, 0, 100, 1);
    w.announce(1, 1, 100, 2);
    assert_eq!(w.best(1), Some((100, Rung::RouterId)));
    let generation = w.attrs.next_hops().generation();
    assert!(
        w.attrs.next_hops_mut().put(next_hop(1).address(), NextHopState { metric: 9, ..Default::default() })
    );
    let mut review = Review::default();
    review.begin_costs(generation);
    assert!(w.with(|table, cx| table.review_step(&mut review, 100, cx, |_, _| {})));
    let best = w.table.best(w.table.find(prefix(1)).unwrap()).unwrap();
    assert_eq!((best.rung, w.sources.peer(best.path.source())), (Rung::InteriorCost, Some(PeerIx(1))));
}

#[test]
fn the_paths_of_a_lost_peer_go_slice_by_slice_and_new_ones_stay() {
    let mut w = World::new(2);
    for key in 0..100 {
        w.announce(key, 0, 200, 1);
        w.announce(key, 1, 100, 2);
    }
    w.sources.peer_lost(PeerIx(0), FamilySet::EMPTY, FamilySet::EMPTY);
    let mut review = Review::default();
    review.begin();
    let mut removed = 0;
    let mut step = |w: &mut World, budget| {
        w.with(|table, cx| {
            table.review_step(&mut review, budget, cx, |_, accepted| removed += u32::from(accepted.0))
        })
    };
    assert!(!step(&mut w, 40));
    assert_eq!((w.best(39), w.best(40)), (Some((100, Rung::Only)), Some((200, Rung::LocalPref))));
    // The peer comes back and announces two prefixes, one that was reviewed and one that was not.
    w.announce(3, 0, 300, 1);
    w.announce(77, 0, 300, 1);
    while !step(&mut w, 40) {}
    assert_eq!(removed, 99);
    for key in 0..100 {
        let wanted = if key == 3 || key == 77 { (300, Rung::LocalPref) } else { (100, Rung::Only) };
        assert_eq!(w.best(key), Some(wanted), "{key}");
    }
}

#[test]
fn a_decision_between_loss_and_review_does_not_count_the_lost_path() {
    let mut w = World::new(3);
    w.announce(1, 0, 200, 1);
    w.announce(1, 1, 100, 2);
    w.sources.peer_lost(PeerIx(0), FamilySet::EMPTY, FamilySet::EMPTY);
    w.announce(1, 2, 50, 3);
    assert_eq!(w.best(1), Some((100, Rung::LocalPref)));
}

#[test]
fn readers_get_fewer_and_newer_answers() {
    let mut w = World::new(1);
    let (fast, slow) = (w.table.add_cursor(), w.table.add_cursor());
    w.announce(1, 0, 100, 1);
    w.announce(2, 0, 100, 1);
    assert_eq!(w.changes(fast), [prefix(1), prefix(2)]);
    w.announce(1, 0, 200, 1);
    assert!(w.table.pending(fast) && w.table.pending(slow));
    assert_eq!(w.changes(fast), [prefix(1)]);
    assert_eq!(w.changes(slow), [prefix(2), prefix(1)]);
    assert!(!w.table.pending(fast) && !w.table.pending(slow));
    assert_eq!(w.table.log.stored(), 0, "everybody has read everything");
}

#[test]
fn a_withdrawn_destination_stays_until_everybody_knows() {
    let mut w = World::new(1);
    let (fast, slow) = (w.table.add_cursor(), w.table.add_cursor());
    w.announce(1, 0, 100, 1);
    assert_eq!((w.changes(fast), w.changes(slow)), (vec![prefix(1)], vec![prefix(1)]));
    let id = w.withdraw(1, 0).dest.unwrap();
    assert_eq!((w.table.len(), w.table.is_live(id), w.table.find(prefix(1))), (0, true, Some(id)));
    assert_eq!(w.changes(fast), [prefix(1)]);
    assert!(w.table.is_live(id));
    let (seq, gone) = w.table.next_change(slow).unwrap();
    assert_eq!((gone, w.table.key(gone), w.table.dest_version(gone)), (id, prefix(1), seq));
    assert!(w.table.best(gone).is_none() && w.table.paths(gone).next().is_none());
    assert_eq!(w.table.next_change(slow), None);
    assert_eq!((w.table.is_live(id), w.table.find(prefix(1))), (false, None));
}

/// The reader crosses from one chunk of the log into the next, whose only entry is a tombstone.
#[test]
fn a_tombstone_survives_the_call_that_reports_it() {
    let mut w = World::new(1);
    let cursor = w.table.add_cursor();
    for key in 0..1023 {
        w.announce(key, 0, 100, 1);
    }
    w.withdraw(0, 0);
    assert_eq!(w.table.last_seq(), 1024);
    for key in 1..1023 {
        assert_eq!(w.table.next_change(cursor).map(|(_, id)| w.table.key(id)), Some(prefix(key)));
    }
    let (_, id) = w.table.next_change(cursor).unwrap();
    assert_eq!((w.table.key(id), w.table.is_live(id)), (prefix(0), true));
    for _ in 0..=1024 / TIDY_AT_ONCE {
        assert_eq!(w.table.next_change(cursor), None);
    }
    assert!(!w.table.is_live(id));
}

#[test]
fn a_tombstone_that_comes_to_life_keeps_its_number() {
    let mut w = World::new(1);
    let cursor = w.table.add_cursor();
    let id = w.announce(1, 0, 100, 1).dest;
    w.withdraw(1, 0);
    assert_eq!(w.announce(1, 0, 200, 1).dest, id);
    assert_eq!((w.changes(cursor), w.table.len()), (vec![prefix(1)], 1));
    // Withdrawn without anything new for the reader: it never saw a best path change since.
    w.reject(1, 0, PathRejected::ImportPolicy);
    assert_eq!(w.changes(cursor), [prefix(1)]);
    w.withdraw(1, 0);
    assert!(!w.table.is_live(id.unwrap()));
}

#[test]
fn removing_the_last_reader_frees_the_tombstones() {
    let mut w = World::new(1);
    let cursor = w.table.add_cursor();
    let fork = w.table.fork_cursor(cursor);
    let id = w.announce(1, 0, 100, 1).dest.unwrap();
    w.withdraw(1, 0);
    w.table.remove_cursor(cursor);
    assert!(w.table.is_live(id));
    w.table.remove_cursor(fork);
    w.table.remove_cursor(fork);
    assert!(!w.table.is_live(id));
    assert_eq!((w.table.next_change(fork), w.table.pending(fork)), (None, false));
}

#[test]
fn a_cursor_moves_forward_only() {
    let mut w = World::new(1);
    let (reader, pin) = (w.table.add_cursor(), w.table.add_cursor());
    for key in 0..10 {
        w.announce(key, 0, 100, 1);
    }
    w.table.advance_cursor(reader, 8);
    w.table.advance_cursor(reader, 3);
    assert_eq!(w.table.cursor_seq(reader), 8);
    assert_eq!(w.changes(reader), [prefix(8), prefix(9)]);
    w.table.advance_cursor(pin, u64::MAX);
    assert_eq!((w.table.cursor_seq(pin), w.table.last_seq(), w.table.log.stored()), (10, 10, 0));
}

/// A reader that goes leaves a whole table of tombstones behind: they are freed bit by bit by what happens next.
#[test]
fn tombstones_are_freed_a_few_at_a_time() {
    let mut w = World::new(1);
    let cursor = w.table.add_cursor();
    for key in 0..5000 {
        w.announce(key, 0, 100, 1);
    }
    for key in 0..5000 {
        w.withdraw(key, 0);
    }
    assert_eq!(w.table.dests.tombstones, 5000);
    w.table.remove_cursor(cursor);
    assert_eq!(w.table.log.stored(), 0);
    let mut before = w.table.dests.tombstones;
    for _ in 0..90 {
        w.announce(9999, 0, 100, 1);
        assert!(before - w.table.dests.tombstones <= TIDY_AT_ONCE);
        before = w.table.dests.tombstones;
    }
    assert_eq!((w.table.dests.tombstones, w.table.index.len()), (0, 1));
}

/// A reader that stands still while others go on costs no more than a few entries per destination.
#[test]
fn the_log_is_bounded_by_the_destinations() {
    let mut w = World::new(1);
    let (_stuck, reader) = (w.table.add_cursor(), w.table.add_cursor());
    for round in 0..100 {
        for key in 0..1000 {
            // A few cold destinations change only now and then.
            if key % 10 != 0 || round % 10 == key % 3 {
                w.announce(key, 0, 100 + round, 1);
            }
        }
        assert!(w.table.log.stored() <= 2 * 1000 + 2 * 1024, "{}", w.table.log.stored());
        if round % 7 == 0 {
            w.changes(reader);
        }
    }
    assert_eq!(w.changes(_stuck).len(), 1000);
}

/// What a test does to a table.
#[derive(Clone, Debug)]
enum Step {
    Announce { key: u32, peer: u32, path: Known },
    Reach { hop: u8, state: Reach },
    Settle { multipath: u8 },
    Reject { key: u32, peer: u32 },
    Withdraw { key: u32, peer: u32 },
    Lose { peer: u32 },
    Review { budget: usize },
    Read { reader: usize, most: usize },
    Reopen { reader: usize },
}

/// A path: LOCAL_PREF, the end of its next hop, megabits a second.
type Known = (u32, u8, u32);

/// What is known of a next hop: its metric, if it can be reached, and what it is resolved to.
type Reach = (Option<u32>, Vec<u8>);

fn reach() -> impl Strategy<Value = Reach> {
    (prop::option::weighted(0.8, 0u32..2), prop::collection::vec(11u8..13, 0..3))
}

fn state((metric, via): &Reach) -> NextHopState {
    let via = via.iter().map(|hop| next_hop(*hop).address()).collect();
    NextHopState { reachable: metric.is_some(), metric: metric.unwrap_or(0), via, interface: None }
}

fn step() -> impl Strategy<Value = Step> {
    let (key, peer) = (0u32..24, 0u32..4);
    prop_oneof![
        8 => (key.clone(), peer.clone(), (100u32..103, 1u8..4, 0u32..3))
            .prop_map(|(key, peer, path)| Step::Announce { key, peer, path }),
        2 => (1u8..4, reach()).prop_map(|(hop, state)| Step::Reach { hop, state }),
        1 => (1u8..4).prop_map(|multipath| Step::Settle { multipath }),
        1 => (key.clone(), peer.clone()).prop_map(|(key, peer)| Step::Reject { key, peer }),
        6 => (key, peer.clone()).prop_map(|(key, peer)| Step::Withdraw { key, peer }),
        1 => peer.prop_map(|peer| Step::Lose { peer }),
        2 => (1usize..30).prop_map(|budget| Step::Review { budget }),
        4 => (0usize..3, 1usize..40).prop_map(|(reader, most)| Step::Read { reader, most }),
        1 => (0usize..3).prop_map(|reader| Step::Reopen { reader }),
    ]
}

/// What a reader remembers of each prefix: LOCAL_PREF and next hops of the best path.
type Seen = BTreeMap<Ipv4Prefix, (u32, NextHopSet)>;

fn look(w: &mut World, id: DestId) -> Option<(u32, NextHopSet)> {
    let best = w.table.best(id)?;
    let local_pref = w.attrs.set(best.attrs).facts().local_pref.unwrap();
    Some((local_pref, w.table.hops(id, &mut w.attrs)))
}

fn read(w: &mut World, cursor: CursorId, most: usize, seen: &mut Seen) {
    let mut last = w.table.cursor_seq(cursor);
    for _ in 0..most {
        let Some((seq, id)) = w.table.next_change(cursor) else { break };
        assert!(seq > last, "changes come in order");
        last = seq;
        let key = w.table.key(id);
        match look(w, id) {
            Some(answer) => seen.insert(key, answer),
            None => seen.remove(&key),
        };
    }
}

/// A reader that has to begin anew: everything there is, and then what changes.
fn reopen(w: &mut World, cursor: &mut CursorId, seen: &mut Seen) {
    w.table.remove_cursor(*cursor);
    *cursor = w.table.add_cursor();
    seen.clear();
    for id in (0..w.table.len_ids()).map(DestId::from_index) {
        if let Some(answer) = look(w, id) {
            seen.insert(w.table.key(id), answer);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Against a map of maps: the paths, the best of them, the counts, and what readers of any pace end up with.
    #[test]
    fn equals_a_naive_table(steps in proptest::collection::vec(step(), 1..400)) {
        let mut w = World::new(4);
        let mut model: BTreeMap<(u32, u32), Option<Known>> = BTreeMap::new();
        let mut reaches: BTreeMap<u8, Reach> = BTreeMap::new();
        let mut most_at_once = 8;
        let mut review = Review::default();
        let mut readers: Vec<_> = (0..3).map(|_| (w.table.add_cursor(), Seen::new())).collect();
        for step in steps {
            match step {
                Step::Announce { key, peer, path } => {
                    let outcome = w.announce_wide(key, peer, path);
                    let had = model.insert((key, peer), Some(path));
                    // A lost path may still be there until the review comes by.
                    prop_assert!(outcome.had == had.map(|path| Accepted(path.is_some())) || had.is_none());
                }
                Step::Reject { key, peer } => {
                    w.reject(key, peer, PathRejected::ImportPolicy);
                    model.insert((key, peer), None);
                }
                Step::Withdraw { key, peer } => {
                    w.withdraw(key, peer);
                    model.remove(&(key, peer));
                }
                Step::Lose { peer } => {
                    w.sources.peer_lost(PeerIx(peer), FamilySet::EMPTY, FamilySet::EMPTY);
                    review.begin();
                    model.retain(|&(_, of), _| of != peer);
                }
                Step::Reach { hop, state: reach } => {
                    let generation = w.attrs.next_hops().generation();
                    if w.attrs.next_hops_mut().put(next_hop(hop).address(), state(&reach)) {
                        review.begin_costs(generation);
                    }
                    reaches.insert(hop, reach);
                }
                Step::Settle { multipath } => {
                    w.table.set_decision(several(multipath));
                    review.begin_deciding();
                    most_at_once = usize::from(multipath);
                }
                Step::Review { budget } => {
                    w.with(|table, cx| table.review_step(&mut review, budget, cx, |_, _| {}));
                }
                Step::Read { reader, most } => {
                    let (cursor, seen) = &mut readers[reader];
                    read(&mut w, *cursor, most, seen);
                }
                Step::Reopen { reader } => {
                    let (cursor, seen) = &mut readers[reader];
                    reopen(&mut w, cursor, seen);
                }
            }
        }
        w.with(|table, cx| assert!(table.review_step(&mut review, usize::MAX, cx, |_, _| {})));

        let mut wanted = Seen::new();
        let mut paths = 0;
        for key in 0..24 {
            let own: Vec<_> = model.range((key, 0)..(key, 4)).map(|(&(_, peer), &path)| (peer, path)).collect();
            paths += own.len();
            let id = w.table.find(prefix(key));
            prop_assert_eq!(id.map_or(0, |id| w.table.paths(id).count()), own.len());
            // All is equal but LOCAL_PREF and the cost of the next hop; then the identifiers, which are those of the peers.
            let reach = |hop: u8| reaches.get(&hop).cloned().unwrap_or((Some(0), Vec::new()));
            let usable = own.iter().filter_map(|&(peer, path)| Some((peer, path?)));
            let usable: Vec<_> = usable.filter(|(_, path)| reach(path.1).0.is_some()).collect();
            let goodness = |path: &Known| (std::cmp::Reverse(path.0), reach(path.1).0);
            if let Some(best) = usable.iter().min_by_key(|(peer, path)| (goodness(path), *peer)) {
                let mut hops: Vec<(u8, u32)> = Vec::new();
                for (_, path) in usable.iter().filter(|(_, path)| goodness(path) == goodness(&best.1)) {
                    if hops.len() < most_at_once && hops.iter().all(|(hop, _)| *hop != path.1) {
                        hops.push((path.1, path.2));
                    }
                }
                let known = hops.len() > 1 && hops.iter().all(|(_, mbits)| *mbits > 0);
                let mut shares: BTreeMap<u8, u32> = BTreeMap::new();
                for (hop, mbits) in hops {
                    let share = if known { mbits } else { 1 } * 12;
                    let via = match reach(hop).1 {
                        via if via.is_empty() => vec![hop],
                        via => via,
                    };
                    via.iter().for_each(|to| *shares.entry(*to).or_default() += share / via.len() as u32);
                }
                let shares = shares.into_iter().map(|(hop, share)| (next_hop(hop), share as u8));
                let found = w.table.best(id.unwrap()).unwrap();
                prop_assert_eq!(w.sources.peer(found.path.source()), Some(PeerIx(best.0)));
                wanted.insert(prefix(key), (best.1.0, NextHopSet::weighted(shares)));
            } else {
                prop_assert!(id.is_none_or(|id| w.table.best(id).is_none()));
            }
        }
        let keys = model.keys().map(|&(key, _)| key).collect::<std::collections::BTreeSet<_>>();
        prop_assert_eq!(w.table.len(), keys.len());
        let lasting = w.attrs.len();
        prop_assert!(lasting <= paths);
        for (cursor, seen) in &mut readers {
            read(&mut w, *cursor, usize::MAX, seen);
            prop_assert_eq!(&*seen, &wanted);
        }
        prop_assert_eq!(w.table.next_change(readers[0].0), None);
        prop_assert_eq!(w.table.log.stored(), 0);
        while !w.table.log.is_tidy() {
            prop_assert_eq!(w.table.next_change(readers[0].0), None);
        }
        prop_assert_eq!(w.table.dests.tombstones, 0);
        // And everything is given back.
        for (key, peer) in model.into_keys() {
            w.withdraw(key, peer);
        }
        for (cursor, _) in readers {
            w.table.remove_cursor(cursor);
        }
        while !w.table.log.is_tidy() {
            w.table.tidy();
        }
        prop_assert!(w.table.is_empty() && w.attrs.is_empty() && w.table.index.is_empty());
    }
}
