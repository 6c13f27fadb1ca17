//! Every field of a BGPFilter's rules, on the way in and on the way out.

use agent_core::Config;
use agent_core::config::RoutePriorities;
use agent_core::model::{
    AffinityState, Direction, Encapsulation, Filter, FilterAction, FilterRule, Glob, MatchOperator,
    Operation, PeerType, Pool, PrefixMatch, RoutePriority,
};
use bgp_core::policy::{Edits, ListEdit};
use bgp_core::{Asn, Community, LargeCommunity};

use crate::bench::{
    Answer, Bench, Candidate, MASTER, accept, community, external, filtered, internal, node, own, peer_ip,
    rule,
};

const IBGP: &str = "10.192.0.3";
const EBGP: &str = "10.192.0.254";

/// A node whose sessions, one internal and one external, have the filter `f`.
fn bench(config: Config) -> Bench {
    let mut bench = Bench::configured(
        config,
        &[(MASTER, node("10.192.0.2/24", Some("fd00::2/64"))), ("kube-node-1", node("10.192.0.3/24", None))],
    );
    bench.no_mesh();
    bench.block("10.244.1.0/26", AffinityState::Confirmed);
    bench.peer("ibgp", filtered(peer_ip(IBGP, 64512), &["f"]));
    bench.peer("ebgp", filtered(peer_ip(EBGP, 65100), &["f"]));
    bench
}

/// In every list, but that rules about prefixes, which are of IPv4, are not among those of IPv6.
fn filter(rules: &[FilterRule]) -> Filter {
    let v4 = || rules.to_vec();
    let v6 = || rules.iter().filter(|rule| rule.prefixes.is_none()).cloned().collect();
    Filter { import_v4: v4(), export_v4: v4(), import_v6: v6(), export_v6: v6() }
}

/// Whether one rule matches: it rejects, and one behind it accepts everything.
struct Rules(Bench);

impl Rules {
    fn of(rule: FilterRule) -> Self {
        Self::configured(Config::new(MASTER.into()), rule)
    }

    fn configured(config: Config, rule: FilterRule) -> Self {
        let mut bench = bench(config);
        let rule = FilterRule { action: FilterAction::Reject, ..rule };
        bench.filter("f", filter(&[rule, FilterRule::every(2, accept())]));
        Self(bench)
    }

    fn answer(&self, session: &str, direction: Direction, candidate: &Candidate) -> Answer {
        match direction {
            Import => self.0.import(session, candidate),
            Export => self.0.export(session, candidate),
        }
    }

    fn matches(&self, session: &str, direction: Direction, candidate: &Candidate) -> bool {
        let answer = self.answer(session, direction, candidate);
        let (rule, list) = (if answer.passes { 2 } else { 1 }, Filter::list(direction, family(candidate)));
        assert_eq!(answer.by, format!("BGPFilter f, {list} rule {rule}"), "{candidate:?}");
        !answer.passes
    }
}

fn family(candidate: &Candidate) -> bgp_core::Family {
    candidate.prefix.parse::<bgp_core::Nlri>().unwrap().family()
}

use Direction::{Export, Import};

#[test]
fn operators_with_and_without_lengths() {
    use MatchOperator::{Equal, In, NotEqual, NotIn};
    let long = (Some(26), Some(26));
    let none = (None, None);
    let never = (Some(28), Some(24));
    // Operator, lengths, and for each prefix whether it matches.
    let prefixes = ["10.1.0.0/16", "10.1.2.0/24", "10.1.2.64/26", "10.2.0.0/26", "10.0.0.0/8"];
    for (operator, (min, max), expected) in [
        (In, none, [true, true, true, false, false]),
        (NotIn, none, [false, false, false, true, true]),
        (Equal, none, [true, false, false, false, false]),
        (NotEqual, none, [false, true, true, true, true]),
        (In, long, [false, false, true, false, false]),
        (NotIn, long, [true, true, false, true, true]),
        (Equal, long, [false; 5]),
        (NotEqual, long, [true; 5]),
        (Equal, (None, Some(24)), [true, false, false, false, false]),
        (In, never, [false; 5]),
        (NotIn, never, [true; 5]),
        (In, (Some(24), None), [false, true, true, false, false]),
        (In, (None, Some(24)), [true, true, false, false, false]),
    ] {
        let prefixes_of = PrefixMatch::new("10.1.0.0/16".parse().unwrap(), operator, min, max);
        let rules = Rules::of(FilterRule {
            prefixes: Some(prefixes_of),
            ..FilterRule::every(1, FilterAction::Reject)
        });
        for (prefix, expected) in prefixes.iter().zip(expected) {
            for direction in [Import, Export] {
                let found = rules.matches(EBGP, direction, &external(prefix));
                assert_eq!(found, expected, "{operator:?} {min:?} {max:?} {prefix}");
            }
        }
    }
}

#[test]
fn rules_of_one_family_say_nothing_of_the_other() {
    let mut bench = bench(Config::new(MASTER.into()));
    let all = || vec![FilterRule::every(1, FilterAction::Reject)];
    bench.filter("f", Filter { import_v4: all(), export_v6: all(), ..Filter::default() });
    assert!(!bench.import(EBGP, &external("44.0.0.0/8")).passes);
    assert!(bench.import(EBGP, &external("fd44::/16")).passes);
    assert!(bench.export(EBGP, &own("10.244.1.0/26")).passes);
    let answer = bench.export(EBGP, &external("fd44::/16"));
    assert_eq!((answer.passes, answer.by.as_str()), (false, "BGPFilter f, exportV6 rule 1"));
}

#[test]
fn source_is_anybody_but_us() {
    let rules = Rules::of(FilterRule { learned: true, ..FilterRule::every(1, FilterAction::Reject) });
    for session in [IBGP, EBGP] {
        assert!(rules.matches(session, Import, &external("44.0.0.0/8")));
        assert!(rules.matches(session, Export, &external("44.0.0.0/8")));
        assert!(rules.matches(session, Export, &internal("44.0.0.0/8")));
        assert!(!rules.matches(session, Export, &own("10.244.1.0/26")));
    }
}

#[test]
fn peer_type_is_that_of_the_session() {
    for (kind, session) in [(PeerType::External, EBGP), (PeerType::Internal, IBGP)] {
        let rules =
            Rules::of(FilterRule { peer_type: Some(kind), ..FilterRule::every(1, FilterAction::Reject) });
        for direction in [Import, Export] {
            for other in [EBGP, IBGP] {
                let found = rules.matches(other, direction, &external("44.0.0.0/8"));
                assert_eq!(found, other == session, "{kind:?} {other}");
            }
        }
    }
}

#[test]
fn communities_of_both_kinds() {
    for (text, standard, large) in [
        ("65000:1", vec![Community::new(65000, 1)], vec![]),
        ("65000:1:2", vec![], vec![LargeCommunity::new(65000, 1, 2)]),
    ] {
        let rules = Rules::of(FilterRule {
            community: Some(community(text)),
            ..FilterRule::every(1, FilterAction::Reject)
        });
        let with = Candidate {
            communities: [standard.clone(), vec![Community::new(1, 1)]].concat(),
            large: large.clone(),
            ..external("44.0.0.0/8")
        };
        let without = Candidate { communities: vec![Community::new(65000, 2)], ..external("44.0.0.0/8") };
        for direction in [Import, Export] {
            assert!(rules.matches(EBGP, direction, &with), "{text}");
            assert!(!rules.matches(EBGP, direction, &without), "{text}");
        }
        assert!(!rules.matches(EBGP, Export, &own("10.244.1.0/26")));
    }
}

#[test]
fn as_path_prefix_sees_our_own_number_where_it_will_be() {
    let rules = |path: &[u32]| {
        Rules::of(FilterRule {
            as_path_prefix: path.iter().copied().map(Asn).collect(),
            ..FilterRule::every(1, FilterAction::Reject)
        })
    };
    let learned = Candidate { path: vec![65100, 65200], ..external("44.0.0.0/8") };
    let block = own("10.244.1.0/26");
    // The path wanted, on import, on export outwards, on export inwards, and for a block outwards and inwards.
    for (path, expected) in [
        (&[65100][..], [true, false, true, false, false]),
        (&[65100, 65200], [true, false, true, false, false]),
        (&[65100, 65200, 1], [false; 5]),
        (&[65200], [false; 5]),
        (&[64512], [false, true, false, true, false]),
        (&[64512, 65100], [false, true, false, false, false]),
    ] {
        let rules = rules(path);
        let found = [
            rules.matches(EBGP, Import, &learned),
            rules.matches(EBGP, Export, &learned),
            rules.matches(IBGP, Export, &learned),
            rules.matches(EBGP, Export, &block),
            rules.matches(IBGP, Export, &block),
        ];
        assert_eq!(found, expected, "{path:?}");
    }
}

#[test]
fn priority_is_that_of_local_pref() {
    for priorities in [RoutePriorities::Calico, RoutePriorities::Classic] {
        let config = || Config { priorities, ..Config::new(MASTER.into()) };
        let rules = |priority| {
            Rules::configured(
                config(),
                FilterRule {
                    priority: RoutePriority::new(priority),
                    ..FilterRule::every(1, FilterAction::Reject)
                },
            )
        };
        let elevated = rules(512);
        assert!(elevated.matches(IBGP, Import, &internal("44.0.0.0/8").metric(512)));
        assert!(!elevated.matches(IBGP, Import, &internal("44.0.0.0/8").metric(1024)));
        assert!(!elevated.matches(IBGP, Import, &internal("44.0.0.0/8")));
        assert!(elevated.matches(EBGP, Export, &internal("44.0.0.0/8").metric(512)));
        let normal = rules(1024);
        // Own routes have the ordinary one, whatever is sent of it.
        let block = normal.0.originates("10.244.1.0/26");
        assert!(normal.matches(IBGP, Export, &block) && !elevated.matches(IBGP, Export, &block));
        assert!(normal.matches(IBGP, Export, &own("44.0.0.0/8")), "without metric");
        assert!(!normal.matches(IBGP, Export, &external("44.0.0.0/8")));
        // What comes without LOCAL_PREF counts with 100.
        let usual = rules(2_147_483_547);
        assert!(usual.matches(EBGP, Import, &external("44.0.0.0/8")));
        assert!(usual.matches(IBGP, Import, &internal("44.0.0.0/8")));
        assert!(!usual.matches(IBGP, Export, &block));
    }
}

#[test]
fn interfaces_are_those_that_routes_leave_through() {
    let rules = |glob: &str| {
        let uplink_names = vec!["host-eth0".into(), "eth0".into()];
        let config = Config { uplink_names, ..Config::new(MASTER.into()) };
        let mut rules = Rules::configured(
            config,
            FilterRule { interface: Glob::parse(glob), ..FilterRule::every(1, FilterAction::Reject) },
        );
        let pool = |cidr: &str| Pool::new(cidr.parse().unwrap());
        let pools = [
            ("ipip", Pool { ipip: Encapsulation::Always, ..pool("10.10.0.0/16") }),
            ("cross", Pool { ipip: Encapsulation::CrossSubnet, ..pool("10.11.0.0/16") }),
            ("vxlan", Pool { vxlan: Encapsulation::Always, ..pool("10.12.0.0/16") }),
            ("flat", pool("10.13.0.0/16")),
        ];
        for (name, pool) in pools {
            rules.0.pool(name, pool);
        }
        rules
    };
    let (near, far) = ("10.192.0.7", "198.51.100.7");
    for (glob, expected) in [
        // ipip, cross near, cross far, vxlan, flat, no pool, own
        ("tunl0", [true, false, true, false, false, false, false]),
        ("*.calico", [false, false, false, true, false, false, false]),
        ("eth0", [false, true, false, false, true, true, false]),
        ("host-*", [false, true, false, false, true, true, false]),
        ("*", [true, true, true, true, true, true, false]),
        ("cali*", [false; 7]),
    ] {
        let rules = rules(glob);
        for direction in [Import, Export] {
            let found = [
                rules.matches(EBGP, direction, &external("10.10.1.0/26").via(near)),
                rules.matches(EBGP, direction, &external("10.11.1.0/26").via(near)),
                rules.matches(EBGP, direction, &external("10.11.1.0/26").via(far)),
                rules.matches(EBGP, direction, &external("10.12.1.0/26").via(near)),
                rules.matches(EBGP, direction, &external("10.13.1.0/26").via(near)),
                rules.matches(EBGP, direction, &external("0.0.0.0/0").via(near)),
                direction == Export && rules.matches(EBGP, direction, &own("10.244.1.0/26")),
            ];
            assert_eq!(found, expected, "{glob} {direction:?}");
        }
        let of_filters = rules.0.conditions().into_iter().filter(|text| text.starts_with("BGPFilter"));
        assert_eq!(of_filters.collect::<Vec<_>>(), [""; 0], "{glob}");
    }
}

#[test]
fn an_interface_that_cannot_be_told_is_named() {
    let rules = Rules::of(FilterRule {
        interface: Glob::parse("eth0"),
        ..FilterRule::every(1, FilterAction::Reject)
    });
    assert!(!rules.matches(EBGP, Import, &external("44.0.0.0/8")));
    let conditions = rules.0.conditions();
    assert_eq!(conditions.len(), 4, "{conditions:?}");
    assert!(conditions[0].starts_with(
        "BGPFilter f spec.importV4[0].interface: importV4 rule 1 is about the interface eth0, and the name of this \
         node's uplink is not known"
    ));
}

#[test]
fn all_fields_of_a_rule_must_hold() {
    let rules = Rules::of(FilterRule {
        learned: true,
        community: Some(community("65000:1")),
        ..rule(1, MatchOperator::In, "44.0.0.0/8", FilterAction::Reject)
    });
    let marked =
        |candidate: Candidate| Candidate { communities: vec![Community::new(65000, 1)], ..candidate };
    assert!(rules.matches(EBGP, Export, &marked(external("44.1.0.0/16"))));
    assert!(!rules.matches(EBGP, Export, &external("44.1.0.0/16")));
    assert!(!rules.matches(EBGP, Export, &marked(external("45.1.0.0/16"))));
    assert!(!rules.matches(EBGP, Export, &marked(own("44.1.0.0/16"))));
}

#[test]
fn operations_change_what_passes() {
    let mut bench = bench(Config::new(MASTER.into()));
    let operations = vec![
        Operation::AddCommunity(community("65000:1")),
        Operation::AddCommunity(community("65000:1:2")),
        Operation::PrependAsPath(vec![Asn(7), Asn(8)]),
        Operation::SetPriority(RoutePriority::new(512).unwrap()),
    ];
    bench.filter("f", filter(&[FilterRule::every(1, FilterAction::Accept(operations))]));
    let expected = Edits {
        local_pref: Some(2_147_483_135),
        communities: ListEdit::adding([Community::new(65000, 1)]),
        large_communities: ListEdit::adding([LargeCommunity::new(65000, 1, 2)]),
        // The last one ends up leftmost: the path begins with 7 8.
        prepend: [(Asn(8), 1), (Asn(7), 1)].into_iter().collect(),
        ..Edits::default()
    };
    for session in [IBGP, EBGP] {
        for answer in
            [bench.import(session, &external("44.0.0.0/8")), bench.export(session, &own("44.0.0.0/8"))]
        {
            assert!(answer.passes);
            assert_eq!(answer.edits, expected);
        }
    }
}

#[test]
fn filters_run_in_the_order_of_the_peer_and_rules_in_theirs() {
    let mut bench = bench(Config::new(MASTER.into()));
    let one = |action| Filter {
        import_v4: vec![rule(1, MatchOperator::In, "44.0.0.0/8", action)],
        ..Filter::default()
    };
    bench.filter("a", one(FilterAction::Reject));
    bench.filter("b", one(accept()));
    for (filters, passes, by) in [
        (&["a", "b"][..], false, "BGPFilter a, importV4 rule 1"),
        (&["b", "a"], true, "BGPFilter b, importV4 rule 1"),
        (&["none", "a"], false, "BGPFilter a, importV4 rule 1"),
        (&[], true, "default"),
    ] {
        bench.edits = 0;
        bench.peer("ebgp", filtered(peer_ip(EBGP, 65100), filters));
        let answer = bench.import(EBGP, &external("44.0.0.0/16"));
        assert_eq!((answer.passes, answer.by.as_str()), (passes, by), "{filters:?}");
        assert!(bench.import(EBGP, &external("45.0.0.0/16")).passes);
        assert_eq!(bench.edits, 1);
    }
}

#[test]
fn an_edit_of_a_filter_touches_no_session() {
    let mut bench = bench(Config::new(MASTER.into()));
    bench.filter("f", filter(&[FilterRule::every(1, FilterAction::Reject)]));
    bench.edits = 0;
    bench.filter("f", filter(&[FilterRule::every(1, accept())]));
    assert_eq!(bench.edits, 0);
    assert!(bench.import(EBGP, &external("44.0.0.0/8")).passes);
}

#[test]
fn the_mesh_has_no_filters() {
    let mut bench = bench(Config::new(MASTER.into()));
    bench.filter("f", filter(&[FilterRule::every(1, FilterAction::Reject)]));
    bench.tell(agent_core::Event::Peer(agent_core::Change::Resync(Vec::new())));
    bench.config(agent_core::model::BgpConfig::default());
    assert_eq!(bench.keys(), [IBGP]);
    let answer = bench.import(IBGP, &internal("44.0.0.0/8"));
    assert_eq!((answer.passes, answer.by.as_str()), (true, "default"));
    assert!(bench.export(IBGP, &own("10.244.1.0/26")).passes);
}

#[test]
fn sessions_wait_for_the_filters() {
    let mut bench = Bench::of(Config::new(MASTER.into()));
    use agent_core::{Change, Event};
    bench.tell(Event::BgpConfig(Change::Resync(Vec::new())));
    bench.tell(Event::FelixConfig(Change::Resync(Vec::new())));
    bench.tell(Event::Pool(Change::Resync(Vec::new())));
    bench.tell(Event::Affinity(Change::Resync(Vec::new())));
    bench.tell(Event::Peer(Change::Resync(vec![("p".into(), filtered(peer_ip(EBGP, 65100), &["f"]))])));
    bench.tell(Event::Node(Change::Resync(vec![(MASTER.into(), node("10.192.0.2/24", None))])));
    assert_eq!(bench.keys(), [""; 0]);
    bench.tell(Event::Filter(Change::Resync(vec![("f".into(), filter(&[FilterRule::every(1, accept())]))])));
    assert_eq!(bench.keys(), [EBGP]);
    assert_eq!(bench.import(EBGP, &external("44.0.0.0/8")).by, "BGPFilter f, importV4 rule 1");
}
