use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

/// A path that loses to each of the better ones below.
fn plain() -> Candidate {
    Candidate {
        local: false,
        long_lived_stale: true,
        local_pref: 100,
        as_path_len: 3,
        origin: Origin::Incomplete,
        med: Some(50),
        neighbor_as: Some(Asn(65001)),
        external: false,
        cost: 10,
        since: 1000,
        router_id: RouterId(20),
        cluster_len: 2,
        address: ip(9),
        path_id: PathId(5),
    }
}

/// All that is equal is used.
const ALL: DecisionSettings =
    DecisionSettings { multipath: NonZeroU8::MAX, multipath_relax: true, ..DecisionSettings::RFC4271 };

fn decide(candidates: &[Candidate]) -> Option<Decision> {
    super::decide(&ALL, candidates)
}

/// One case for each rung: the better path is worse on every later rung.
#[test]
fn each_rung_decides_in_its_turn() {
    let worse_later = |rung: Rung| {
        // Worse than `plain` on every rung, then made equal on those before `rung`.
        let mut c = Candidate {
            local: false,
            long_lived_stale: true,
            local_pref: 90,
            as_path_len: 4,
            origin: Origin::Incomplete,
            med: Some(60),
            neighbor_as: Some(Asn(65001)),
            external: false,
            cost: 11,
            since: 1001,
            router_id: RouterId(21),
            cluster_len: 3,
            address: ip(10),
            path_id: PathId(6),
        };
        let p = plain();
        for earlier in Rung::ALL.into_iter().filter(|&earlier| earlier < rung) {
            match earlier {
                Rung::Only | Rung::Local | Rung::LongLivedStale | Rung::External | Rung::Origin => {}
                Rung::LocalPref => c.local_pref = p.local_pref,
                Rung::AsPathLength => c.as_path_len = p.as_path_len,
                Rung::Med => c.med = p.med,
                Rung::InteriorCost => c.cost = p.cost,
                Rung::Oldest => c.since = p.since,
                Rung::RouterId => c.router_id = p.router_id,
                Rung::ClusterList => c.cluster_len = p.cluster_len,
                Rung::PeerAddress => c.address = p.address,
                Rung::PathId => c.path_id = p.path_id,
            }
        }
        c
    };
    for rung in Rung::ALL {
        let mut better = worse_later(rung);
        let mut plain = plain();
        let mut settings = ALL;
        match rung {
            Rung::Only => continue,
            Rung::Local => better.local = true,
            Rung::LongLivedStale => better.long_lived_stale = false,
            Rung::LocalPref => better.local_pref = 101,
            Rung::AsPathLength => better.as_path_len = 2,
            Rung::Origin => better.origin = Origin::Egp,
            Rung::Med => better.med = Some(49),
            Rung::External => better.external = true,
            Rung::InteriorCost => better.cost = 9,
            Rung::Oldest => {
                (better.since, better.external, plain.external) = (999, true, true);
                settings.compare_router_id = false;
            }
            Rung::RouterId => better.router_id = RouterId(19),
            Rung::ClusterList => better.cluster_len = 1,
            Rung::PeerAddress => better.address = ip(8),
            Rung::PathId => better.path_id = PathId(4),
        }
        for (candidates, best) in [([better, plain], 0), ([plain, better], 1)] {
            let decision = super::decide(&settings, &candidates).unwrap();
            assert_eq!((decision.best, decision.rung), (best, rung), "{rung}");
            let both_equal = rung > Rung::InteriorCost;
            assert_eq!(decision.equal.len(), if both_equal { 2 } else { 1 }, "{rung}");
            let one = DecisionSettings { multipath: NonZeroU8::MIN, ..settings };
            assert_eq!(super::decide(&one, &candidates).unwrap().equal.as_slice(), [best as u32], "{rung}");
            let mut lost = [None; 2];
            lost[1 - best] = Some((rung, best));
            assert_eq!(losses(&settings, &candidates), lost, "{rung}");
        }
    }
}

/// Tables store a rung as its number.
#[test]
fn rungs_are_numbered_in_order() {
    assert!(Rung::ALL.iter().enumerate().all(|(at, &rung)| rung as usize == at));
}

#[test]
fn a_path_alone_is_best_and_none_is_none() {
    let decision = decide(&[plain()]).unwrap();
    assert_eq!((decision.best, decision.rung, decision.equal.as_slice()), (0, Rung::Only, &[0][..]));
    assert_eq!(decide(&[]), None);
}

#[test]
fn med_is_compared_within_one_neighbouring_as_only() {
    let low = Candidate { med: Some(1), router_id: RouterId(30), ..plain() };
    let other_as =
        Candidate { med: Some(99), neighbor_as: Some(Asn(65002)), router_id: RouterId(1), ..plain() };
    let decision = decide(&[low, other_as]).unwrap();
    assert_eq!((decision.best, decision.rung), (1, Rung::RouterId));
    let no_as = Candidate { med: Some(2), neighbor_as: None, ..plain() };
    let no_as_either = Candidate { med: Some(3), neighbor_as: None, ..plain() };
    assert_eq!(decide(&[no_as_either, no_as]).unwrap().rung, Rung::Med);
}

/// Pairwise, a beats b (MED), b beats c (router id) and c beats a (router id). Rung by rung b is out before router
/// ids are compared, whatever the order.
#[test]
fn med_cycles_are_resolved_by_the_set() {
    let a = Candidate { med: Some(1), router_id: RouterId(3), ..plain() };
    let b = Candidate { med: Some(2), router_id: RouterId(1), ..plain() };
    let c = Candidate { med: Some(9), neighbor_as: Some(Asn(65002)), router_id: RouterId(2), ..plain() };
    for order in [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]] {
        let decision = decide(&order).unwrap();
        assert_eq!((order[decision.best], decision.rung), (c, Rung::RouterId));
    }
}

#[test]
fn paths_equal_up_to_the_interior_cost_are_reported() {
    let a = plain();
    let b = Candidate { router_id: RouterId(7), address: ip(3), ..plain() };
    let far = Candidate { cost: 11, ..plain() };
    let decision = decide(&[far, a, b]).unwrap();
    assert_eq!((decision.best, decision.equal.as_slice()), (2, &[1, 2][..]));
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let first = (any::<(bool, bool)>(), 0u32..2, 0u32..2, any::<bool>(), proptest::option::of(0u32..3));
    let second = (proptest::option::of(0u32..3), any::<bool>(), 0u32..2, 0u32..3, (0u16..2, 0u32..2));
    (first, second).prop_map(
        |(
            ((local, long_lived_stale), local_pref, as_path_len, origin, med),
            (asn, external, cost, id, (cluster_len, since)),
        )| {
            Candidate {
                // Own routes are rare, or nothing else would be tested.
                local: local && id == 0,
                long_lived_stale,
                local_pref,
                as_path_len,
                origin: if origin { Origin::Egp } else { Origin::Igp },
                med,
                neighbor_as: asn.map(Asn),
                external,
                cost,
                since,
                router_id: RouterId(id),
                cluster_len,
                address: ip(0),
                path_id: PathId::NONE,
            }
        },
    )
}

fn settings() -> impl Strategy<Value = DecisionSettings> {
    (any::<(bool, bool, bool, bool)>(), 1u8..4).prop_map(|((always, worst, id, ignore), multipath)| {
        DecisionSettings {
            always_compare_med: always,
            missing_med_worst: worst,
            compare_router_id: id,
            ignore_as_path_length: ignore,
            multipath: NonZeroU8::new(multipath).unwrap(),
            multipath_relax: true,
        }
    })
}

proptest! {
    /// MED included: the winner, the rung and the equal paths are the same for every order of arrival.
    #[test]
    fn the_best_does_not_depend_on_the_order(
        settings in settings(),
        candidates in proptest::collection::vec(candidate(), 1..9),
        keys in proptest::collection::vec(any::<u32>(), 9),
    ) {
        // Different sources differ in address or path identifier.
        let candidates: Vec<_> = candidates
            .into_iter()
            .enumerate()
            .map(|(n, c)| Candidate { address: ip(n as u8 / 2), path_id: PathId(n as u32), ..c })
            .collect();
        let mut shuffled: Vec<_> = candidates.iter().copied().zip(keys).collect();
        shuffled.sort_by_key(|&(_, key)| key);
        let shuffled: Vec<_> = shuffled.into_iter().map(|(c, _)| c).collect();
        let decide = |of: &[Candidate]| super::decide(&settings, of).unwrap();
        let (one, other) = (decide(&candidates), decide(&shuffled));
        prop_assert_eq!(candidates[one.best], shuffled[other.best]);
        prop_assert_eq!(one.rung, other.rung);
        let ids = |decision: &Decision, of: &[Candidate]| {
            let mut ids: Vec<_> = decision.equal.iter().map(|&at| of[at as usize].path_id).collect();
            ids.sort();
            ids
        };
        prop_assert_eq!(ids(&one, &candidates), ids(&other, &shuffled));
        prop_assert!(one.equal.contains(&(one.best as u32)));
    }

    /// Against the RFC's words, rung by rung but without the machinery.
    #[test]
    fn the_best_is_what_the_rfc_says(
        settings in settings(),
        candidates in proptest::collection::vec(candidate(), 1..9),
    ) {
        let candidates: Vec<_> = candidates
            .into_iter()
            .enumerate()
            .map(|(n, c)| Candidate { path_id: PathId(n as u32), ..c })
            .collect();
        let before_med = |c: &Candidate| {
            let length = if settings.ignore_as_path_length { 0 } else { c.as_path_len };
            (!c.local, c.long_lived_stale, Reverse(c.local_pref), length, c.origin)
        };
        let least = candidates.iter().map(before_med).min();
        let tied: Vec<_> = candidates.iter().filter(|c| Some(before_med(c)) == least).collect();
        let med = |c: &Candidate| match c.med {
            Some(med) => u64::from(med),
            None if settings.missing_med_worst => u64::MAX,
            None => 0,
        };
        let rivals = |c: &Candidate, o: &Candidate| settings.always_compare_med || o.neighbor_as == c.neighbor_as;
        let beaten = |c: &Candidate| tied.iter().any(|o| rivals(c, o) && med(o) < med(c));
        let age = |c: &Candidate| if settings.compare_router_id || !c.external { 0 } else { c.since };
        let best = tied.iter().filter(|c| !beaten(c)).min_by_key(|c| {
            ((!c.external, c.cost, age(c)), c.router_id, c.cluster_len, c.address, c.path_id)
        });
        let best = *best.unwrap();
        let decision = super::decide(&settings, &candidates).unwrap();
        prop_assert_eq!(&candidates[decision.best], best);
        let at_cost = (!best.external, best.cost);
        let equal: Vec<_> = tied.iter().filter(|c| !beaten(c) && (!c.external, c.cost) == at_cost).collect();
        let first = equal.iter().min_by_key(|c| c.tail(&settings)).unwrap();
        prop_assert_eq!(first.path_id, best.path_id, "the best stands first among its equals");
        let equal: Vec<_> = equal.iter().map(|c| c.path_id.0).collect();
        if settings.uses_several() {
            prop_assert_eq!(decision.equal.to_vec(), equal);
        } else {
            prop_assert_eq!(decision.equal.to_vec(), [best.path_id.0]);
        }
        // Whoever lost did so by a rung at which somebody was better.
        let losses = losses(&settings, &candidates);
        for (at, loss) in losses.iter().enumerate() {
            prop_assert_eq!(loss.is_none(), at == decision.best);
            let Some((rung, better)) = *loss else { continue };
            let pair = [candidates[better], candidates[at]];
            prop_assert_eq!(super::decide(&settings, &pair).unwrap(), Decision {
                best: 0,
                rung,
                equal: if settings.uses_several() && rung > Rung::InteriorCost {
                    smallvec::smallvec![0, 1]
                } else {
                    smallvec::smallvec![0]
                },
            });
        }
        prop_assert_eq!(losses.iter().flatten().map(|(rung, _)| *rung).max().unwrap_or(Rung::Only), decision.rung);
    }
}

#[test]
fn the_settings_of_med() {
    let low = Candidate { med: Some(1), router_id: RouterId(30), ..plain() };
    let other_as =
        Candidate { med: Some(99), neighbor_as: Some(Asn(65002)), router_id: RouterId(1), ..plain() };
    let none = Candidate { med: None, router_id: RouterId(40), ..plain() };
    let best = |settings: DecisionSettings, candidates: &[Candidate]| {
        let decision = super::decide(&settings, candidates).unwrap();
        (decision.best, decision.rung)
    };
    let rfc = DecisionSettings::RFC4271;
    let always = DecisionSettings { always_compare_med: true, ..rfc };
    let worst = DecisionSettings { missing_med_worst: true, ..rfc };
    assert_eq!(best(rfc, &[low, other_as]), (1, Rung::RouterId));
    assert_eq!(best(always, &[low, other_as]), (0, Rung::Med));
    assert_eq!(best(rfc, &[low, none]), (1, Rung::Med));
    assert_eq!(best(worst, &[low, none]), (0, Rung::Med));
    let largest = Candidate { med: Some(u32::MAX), router_id: RouterId(50), ..plain() };
    assert_eq!(best(worst, &[largest, none]), (1, Rung::RouterId), "there is no worse");
}

#[test]
fn the_age_counts_among_external_paths_alone() {
    let settings = DecisionSettings { compare_router_id: false, ..DecisionSettings::RFC4271 };
    let old = Candidate { since: 1, router_id: RouterId(9), ..plain() };
    let new = Candidate { since: 2, router_id: RouterId(8), ..plain() };
    let external = |c: Candidate| Candidate { external: true, ..c };
    let rung = |pair: [Candidate; 2]| {
        let decision = super::decide(&settings, &pair).unwrap();
        (decision.best, decision.rung)
    };
    assert_eq!(rung([old, new]), (1, Rung::RouterId));
    assert_eq!(rung([external(old), external(new)]), (0, Rung::Oldest));
    assert_eq!(decide(&[external(old), external(new)]).unwrap().best, 1);
}
