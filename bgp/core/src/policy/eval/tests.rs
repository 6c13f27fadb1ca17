use super::super::{Condition, PolicyDef, PrefixRange, Sets, StatementDef, compile};
use super::*;
use bgp_wire::attr::{Builder, Origin};

fn attrs(communities: &[Community], large: &[LargeCommunity]) -> AttrSet {
    let mut builder = Builder::new(Origin::Igp);
    builder.add_communities(communities.iter().copied()).add_large_communities(large.iter().copied());
    AttrSet::new(&builder.build(), None, bgp_wire::attr::AttrFacts::default())
}

fn program(statements: Vec<(Vec<Condition>, Vec<Act>, Flow)>, default: Default) -> Program {
    let statements =
        statements.into_iter().map(|(when, apply, then)| StatementDef { when, apply, then }).collect();
    compile(&"p".into(), &PolicyDef { statements, default }, &Sets::default()).unwrap()
}

fn route<'a>(prefix: &str, attrs: &'a AttrSet) -> Route<'a> {
    let neighbor = "192.0.2.1".parse().unwrap();
    Route { nlri: prefix.parse().unwrap(), attrs, learned: Learned::External, neighbor }
}

/// Whether a path with these attributes passes a policy that rejects exactly what meets the condition.
fn meets(condition: Condition, prefix: &str, attrs: &AttrSet) -> bool {
    let program = program(vec![(vec![condition], vec![], Flow::Reject)], Default::Accept);
    matches!(eval(&program, &route(prefix, attrs)), Verdict::Reject(Decider::Statement(1)))
}

const MARK: Community = Community::new(65000, 1);
const LARGE: LargeCommunity = LargeCommunity::new(65000, 1, 2);

#[test]
fn each_condition() {
    let (bare, marked) = (attrs(&[], &[]), attrs(&[MARK], &[LARGE]));
    let not = |condition| Condition::Not(Box::new(condition));
    let own = || Condition::Prefix(vec!["10.0.0.0/8 le 24".parse::<PrefixRange>().unwrap()]);
    assert!(meets(own(), "10.1.0.0/16", &bare) && !meets(own(), "10.1.0.0/25", &bare));
    assert!(!meets(own(), "2001:db8::/32", &bare) && meets(not(own()), "2001:db8::/32", &bare));
    let neighbor = |text: &str| Condition::Neighbor(vec![text.parse().unwrap()]);
    assert!(meets(neighbor("192.0.2.1"), "10.0.0.0/8", &bare));
    assert!(!meets(neighbor("192.0.2.2"), "10.0.0.0/8", &bare));
    let community = || Condition::Community(MARK);
    assert!(meets(community(), "10.0.0.0/8", &marked) && !meets(community(), "10.0.0.0/8", &bare));
    assert!(!meets(not(community()), "10.0.0.0/8", &marked) && meets(not(community()), "10.0.0.0/8", &bare));
    let large = || Condition::LargeCommunity(LARGE);
    assert!(meets(large(), "10.0.0.0/8", &marked) && !meets(large(), "10.0.0.0/8", &bare));
    for learned in [Learned::Local, Learned::External, Learned::Internal] {
        assert_eq!(meets(Condition::Learned(learned), "10.0.0.0/8", &bare), learned == Learned::External);
    }
}

#[test]
fn the_first_statement_that_decides_decides() {
    let own = || Condition::Prefix(vec!["10.0.0.0/8 le 32".parse().unwrap()]);
    let program = program(
        vec![
            (vec![own(), Condition::Community(MARK)], vec![], Flow::Reject),
            (vec![own()], vec![], Flow::Accept),
            (vec![], vec![], Flow::Next),
        ],
        Default::Reject,
    );
    let (bare, marked) = (attrs(&[], &[]), attrs(&[MARK], &[]));
    let verdict = |prefix, attrs| eval(&program, &route(prefix, attrs));
    assert_eq!(verdict("10.1.0.0/16", &marked), Verdict::Reject(Decider::Statement(1)));
    assert_eq!(verdict("10.1.0.0/16", &bare), Verdict::Accept(Edits::default(), Decider::Statement(2)));
    assert_eq!(verdict("11.0.0.0/16", &marked), Verdict::Reject(Decider::Default));
}

#[test]
fn acts_add_up_and_later_statements_see_them() {
    let program = program(
        vec![
            (
                vec![],
                vec![
                    Act::SetMed(1),
                    Act::AddCommunity(MARK),
                    Act::AddLargeCommunity(LARGE),
                    Act::Prepend(Asn(1), 2),
                    Act::NextHopSelf,
                ],
                Flow::Next,
            ),
            (vec![Condition::Community(Community::new(9, 9))], vec![Act::SetMed(7)], Flow::Next),
            (
                vec![Condition::Community(MARK), Condition::LargeCommunity(LARGE)],
                vec![
                    Act::SetMed(2),
                    Act::SetLocalPref(300),
                    Act::AddCommunity(MARK),
                    Act::AddLargeCommunity(LARGE),
                    Act::Prepend(Asn(2), 1),
                ],
                Flow::Next,
            ),
        ],
        Default::Accept,
    );
    let bare = attrs(&[], &[]);
    let Verdict::Accept(edits, Decider::Default) = eval(&program, &route("10.0.0.0/8", &bare)) else {
        panic!("accepted by default")
    };
    let wanted = Edits {
        med: Some(2),
        local_pref: Some(300),
        next_hop_self: true,
        prepend: [(Asn(1), 2), (Asn(2), 1)].into_iter().collect(),
        communities: [MARK].into_iter().collect(),
        large_communities: [LARGE].into_iter().collect(),
        only_to_customer: None,
    };
    assert_eq!(edits, wanted);
    assert!(!edits.is_empty());
}

#[test]
fn a_community_that_is_there_is_not_added_again() {
    let program = program(
        vec![(vec![], vec![Act::AddCommunity(MARK), Act::AddLargeCommunity(LARGE)], Flow::Accept)],
        Default::Reject,
    );
    let marked = attrs(&[MARK], &[LARGE]);
    let verdict = eval(&program, &route("10.0.0.0/8", &marked));
    assert!(matches!(verdict, Verdict::Accept(edits, _) if edits.is_empty()));
}

#[test]
fn a_constant_program_decides_by_default() {
    let bare = attrs(&[], &[]);
    let program = Program::constant(Default::Reject);
    assert_eq!(eval(&program, &route("::/0", &bare)), Verdict::Reject(Decider::Default));
    assert!(!program.depends_on_prefix() && !program.depends_on_neighbor());
}
