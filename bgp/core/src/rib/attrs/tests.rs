use super::*;
use bgp_wire::attr::{Builder, Origin};
use bgp_wire::{Asn, Family, FamilySet, Negotiated, RouterId};
use proptest::prelude::*;

fn canonical(local_pref: u32) -> Vec<u8> {
    Builder::new(Origin::Igp).local_pref(Some(local_pref)).build()
}

fn hop(last: u8) -> Option<NextHop> {
    Some(NextHop::V4([192, 0, 2, last].into()))
}

fn intern(store: &mut AttrStore, local_pref: u32, last: u8) -> AttrId {
    let canonical = canonical(local_pref);
    store.intern(&canonical, hop(last), || Canonical(&canonical).facts())
}

#[test]
fn equal_sets_have_one_number_and_others_have_others() {
    let mut store = AttrStore::new(1);
    let id = intern(&mut store, 100, 1);
    assert_eq!(intern(&mut store, 100, 1), id);
    assert_ne!(intern(&mut store, 101, 1), id);
    assert_ne!(intern(&mut store, 100, 2), id);
    assert_eq!(store.len(), 3);
    let set = store.set(id);
    assert_eq!((set.canonical(), set.next_hop()), (&canonical(100)[..], hop(1)));
    assert_eq!((set.facts().local_pref, set.view().local_pref()), (Some(100), Some(100)));
    assert_eq!(*set, AttrSet::new(&canonical(100), hop(1), *set.facts()));
}

#[test]
fn a_set_goes_with_its_last_holder_and_its_number_comes_back() {
    let mut store = AttrStore::new(1);
    let id = intern(&mut store, 100, 1);
    store.retain(id, 2);
    store.release(id, 2);
    assert_eq!(store.len(), 1);
    let kept = store.set(id).clone();
    store.release(id, 1);
    assert!(store.is_empty() && store.index.is_empty() && store.try_set(id).is_none());
    assert_eq!(intern(&mut store, 200, 1), id);
    assert_eq!(kept.facts().local_pref, Some(100), "who cloned a set keeps it");
}

#[test]
fn next_hops_are_counted_and_shared() {
    let mut store = AttrStore::new(1);
    let (a, b) = (intern(&mut store, 100, 1), intern(&mut store, 200, 1));
    let set = store.next_hop_set(a);
    assert_eq!((&set, &set), (&NextHopSet::new(hop(1)), &store.next_hop_set(b)));
    let own = store.intern(&canonical(100), None, AttrFacts::default);
    assert_eq!(store.next_hop_set(own).members(), []);
    store.release(a, 1);
    store.release(b, 1);
    // Its number is free now: another next hop does not inherit what was remembered for it.
    let c = intern(&mut store, 100, 9);
    assert_eq!(store.next_hop_set(c), NextHopSet::new(hop(9)));
}

/// An UPDATE's body: these attributes, and one IPv4 prefix if `reachable`.
fn body(attrs: &[&[u8]], reachable: bool) -> Vec<u8> {
    let attrs = attrs.concat();
    let mut body = vec![0, 0, (attrs.len() >> 8) as u8, attrs.len() as u8];
    body.extend(attrs);
    body.extend_from_slice(if reachable { &[24, 10, 1, 2] } else { &[] });
    body
}

const ORIGIN: &[u8] = &[0x40, 1, 1, 0];
const AS_PATH: &[u8] = &[0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe9];
const NEXT_HOP: &[u8] = &[0x40, 3, 4, 192, 0, 2, 1];
/// 2001:db8::/32 by way of 2001:db8::1.
const MP_REACH: &[u8] = &[
    0x80, 14, 26, 0, 2, 1, 16, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 32, 0x20, 1, 0xd,
    0xb8,
];

fn negotiated() -> Negotiated {
    Negotiated {
        families: Family::ALL.into_iter().collect::<FamilySet>(),
        four_octet: true,
        ebgp: true,
        remote_asn: Asn(65001),
        remote_router_id: RouterId(1),
        ..Negotiated::default()
    }
}

fn from_update(store: &mut AttrStore, body: &[u8]) -> Result<UpdateAttrs, WireError> {
    store.from_update(&UpdateView::parse(body, &negotiated()).unwrap())
}

#[test]
fn both_kinds_of_prefixes_have_their_own_next_hop() {
    let mut store = AttrStore::new(1);
    let both = from_update(&mut store, &body(&[ORIGIN, AS_PATH, NEXT_HOP, MP_REACH], true)).unwrap();
    let (classic, multi) = (both.classic.unwrap(), both.multiprotocol.unwrap());
    assert_eq!(store.set(classic).next_hop(), hop(1));
    assert_eq!(store.set(multi).next_hop().unwrap().address().to_string(), "2001:db8::1");
    assert_eq!(store.set(classic).canonical(), store.set(multi).canonical());
    assert_eq!(store.set(classic).facts().neighbor_as, Some(Asn(65001)));
    let one = from_update(&mut store, &body(&[ORIGIN, AS_PATH, NEXT_HOP], true)).unwrap();
    assert_eq!((one.classic, one.multiprotocol), (Some(classic), None));
    let other = from_update(&mut store, &body(&[MP_REACH, ORIGIN, AS_PATH], false)).unwrap();
    assert_eq!((other.classic, other.multiprotocol), (None, Some(multi)));
    assert_eq!(from_update(&mut store, &body(&[], false)).unwrap(), UpdateAttrs::default());
    store.release(classic, 2);
    store.release(multi, 2);
    assert!(store.is_empty());
}

#[test]
fn what_was_decoded_is_found_again_until_it_is_freed() {
    let mut store = AttrStore::new(1);
    let body = body(&[ORIGIN, AS_PATH, NEXT_HOP], true);
    let cached = |store: &AttrStore| {
        let view_body = body.clone();
        let view = UpdateView::parse(&view_body, &negotiated()).unwrap();
        store.recent.find(store.hasher.hash_one(view.attr_key()), &view.attr_key())
    };
    assert_eq!(cached(&store), None);
    let first = from_update(&mut store, &body).unwrap().classic.unwrap();
    assert_eq!(cached(&store), Some([Some((first, 0)), None]));
    assert_eq!(from_update(&mut store, &body).unwrap().classic, Some(first));
    store.release(first, 2);
    // Another set takes the number; the entry of the cache must not lead to it.
    assert_eq!(intern(&mut store, 7, 7), first);
    let again = from_update(&mut store, &body).unwrap().classic.unwrap();
    assert_ne!(again, first);
    assert_eq!(store.set(again).next_hop(), hop(1));
}

#[test]
fn faults_are_told_every_time() {
    let mut store = AttrStore::new(1);
    // ATOMIC_AGGREGATE with a value is dropped; an ORIGIN of 9 withdraws.
    let dropped = body(&[ORIGIN, AS_PATH, NEXT_HOP, &[0x40, 6, 1, 0]], true);
    for _ in 0..2 {
        let attrs = from_update(&mut store, &dropped).unwrap();
        assert_eq!((attrs.discarded.len(), attrs.classic.is_some()), (1, true));
    }
    let withdrawn = body(&[&[0x40, 1, 1, 9], AS_PATH, NEXT_HOP], true);
    for _ in 0..2 {
        let attrs = from_update(&mut store, &withdrawn).unwrap();
        assert_eq!((attrs.treat_as_withdraw.map(|fault| fault.code), attrs.classic), (Some(1), None));
    }
}

#[test]
fn the_cache_is_bounded() {
    let mut store = AttrStore::new(1);
    for n in 0..40_000u32 {
        let med = [&[0x80, 4, 4][..], &n.to_be_bytes()].concat();
        from_update(&mut store, &body(&[ORIGIN, AS_PATH, NEXT_HOP, &med], true)).unwrap();
    }
    assert_eq!((store.len(), store.recent.places.len()), (40_000, RawCache::LARGEST));
}

proptest! {
    /// Numbers are handed out, held and given back as a naive count of holders says.
    #[test]
    fn equals_a_naive_store(steps in proptest::collection::vec((any::<bool>(), 0u32..6, 0u8..3), 0..200)) {
        let mut store = AttrStore::new(1);
        let mut model = std::collections::BTreeMap::<(u32, u8), (AttrId, u32)>::new();
        for (take, local_pref, last) in steps {
            if take {
                let id = intern(&mut store, local_pref, last);
                let known = model.entry((local_pref, last)).or_insert((id, 0));
                prop_assert_eq!(known.0, id);
                known.1 += 1;
            } else if let Some((id, count)) = model.get_mut(&(local_pref, last)) {
                store.release(*id, 1);
                *count -= 1;
                if *count == 0 {
                    model.remove(&(local_pref, last));
                }
            }
            prop_assert_eq!(store.len(), model.len());
            for (&(local_pref, last), &(id, _)) in &model {
                prop_assert_eq!((store.set(id).facts().local_pref, store.set(id).next_hop()), (Some(local_pref), hop(last)));
            }
        }
    }
}
