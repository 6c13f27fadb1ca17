use super::super::{Default, Learned, Match, SetDef};
use super::*;

fn policy(statements: Vec<StatementDef>) -> PolicyDef {
    PolicyDef { statements, default: Default::Reject }
}

fn statement(when: Vec<Condition>, apply: Vec<Act>, then: Flow) -> StatementDef {
    StatementDef::new(when, apply, then)
}

fn compiled(def: &PolicyDef, sets: &Sets) -> Result<Program, Vec<PolicyMistake>> {
    compile(&"p".into(), def, sets, &|_| None)
}

fn mistakes(statements: Vec<StatementDef>) -> Vec<(usize, Mistake)> {
    let mistakes = compiled(&policy(statements), &Sets::default()).unwrap_err();
    mistakes.into_iter().map(|mistake| (mistake.statement, mistake.what)).collect()
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let any = |conditions| Condition::Any(conditions);
    let found = mistakes(vec![
        statement(vec![Condition::PrefixSet("own".into())], vec![], Flow::Accept),
        statement(
            vec![Condition::Not(Box::new(Condition::NeighborSet("tor".into())))],
            vec![
                Act::Prepend(Asn(0), 1),
                Act::Prepend(Asn(7), 0),
                Act::PrependPath(vec![Asn(1), Asn(0)]),
                Act::PrependPath(vec![Asn(1); 256]),
                Act::SetNextHop("224.0.0.5".parse().unwrap()),
                Act::RemoveCommunities(Members::Set("mark".into())),
                Act::RemoveLargeCommunities(Members::Set("mark".into())),
                Act::RemoveExtCommunities(Members::Set("mark".into())),
            ],
            Flow::Reject,
        ),
        statement(vec![any(vec![Condition::AsPathSet("bogus".into()), any(vec![])])], vec![], Flow::Next),
        #[expect(clippy::reversed_empty_ranges)]
        statement(
            vec![
                Condition::LocalPref(200..=100),
                Condition::Med(2..=1),
                Condition::AsPathLength(5..=4),
                Condition::Communities(Match::Any, Members::Set("mark".into())),
            ],
            vec![],
            Flow::Call("q".into()),
        ),
    ]);
    let missing = |kind, name: &str| Mistake::NoSuchSet(kind, name.into());
    assert_eq!(
        found,
        [
            (1, missing(SetKind::Prefixes, "own")),
            (2, missing(SetKind::Neighbors, "tor")),
            (2, Mistake::PrependAsnZero),
            (2, Mistake::PrependNothing(Asn(7))),
            (2, Mistake::PrependAsnZero),
            (2, Mistake::PrependTooMany(256)),
            (2, Mistake::NoNextHop("224.0.0.5".parse().unwrap())),
            (2, missing(SetKind::Communities, "mark")),
            (2, missing(SetKind::LargeCommunities, "mark")),
            (2, missing(SetKind::ExtCommunities, "mark")),
            (2, Mistake::ActsBeforeReject),
            (3, missing(SetKind::AsPaths, "bogus")),
            (3, Mistake::NoAlternatives),
            (4, Mistake::Inverted(200, 100)),
            (4, Mistake::Inverted(2, 1)),
            (4, Mistake::Inverted(5, 4)),
            (4, missing(SetKind::Communities, "mark")),
            (4, Mistake::NoSuchPolicy("q".into())),
        ]
    );
}

#[test]
fn a_mistake_says_where_it_is_and_what_to_do() {
    let when = vec![Condition::PrefixSet("own".into())];
    let labelled = statement(when, vec![], Flow::Accept).labelled("BGPFilter no-default, importV4 rule 3");
    let mistakes = compiled(&policy(vec![labelled]), &Sets::default()).unwrap_err();
    assert_eq!(
        mistakes[0].to_string(),
        "policy p, statement 1 (BGPFilter no-default, importV4 rule 3): no prefix set \"own\"; define it first, or \
         correct the name"
    );
}

#[test]
fn prefixes_and_next_hops_of_another_family_are_refused() {
    let families = |all: &[Family]| Condition::Family(all.to_vec());
    let prefix = |all: &[&str]| Condition::Prefix(all.iter().map(|text| text.parse().unwrap()).collect());
    let of = |when| statement(when, vec![], Flow::Accept);
    let v6 = families(&[Family::Ipv6Unicast, Family::Ipv6Vpn]);
    let net = "10.0.0.0/8".parse().unwrap();
    assert_eq!(
        mistakes(vec![of(vec![v6.clone(), prefix(&["10.0.0.0/8", "11.0.0.0/8"])])]),
        [(1, Mistake::WrongFamily(net, Family::Ipv6Unicast))]
    );
    let hop = "192.0.2.1".parse().unwrap();
    let next_hop =
        statement(vec![families(&[Family::Ipv6Unicast])], vec![Act::SetNextHop(hop)], Flow::Accept);
    assert_eq!(mistakes(vec![next_hop]), [(1, Mistake::NextHopFamily(hop, Family::Ipv6Unicast))]);
    let fine = policy(vec![
        of(vec![v6.clone(), prefix(&["10.0.0.0/8", "::/0"])]),
        of(vec![v6, prefix(&[])]),
        of(vec![Condition::Not(Box::new(families(&[Family::Ipv6Unicast]))), prefix(&["10.0.0.0/8"])]),
    ]);
    assert!(compiled(&fine, &Sets::default()).is_ok());
}

#[test]
fn negations_cancel_and_labels_do_not_count() {
    let local = || Condition::Learned(Learned::Local);
    let not = |condition| Condition::Not(Box::new(condition));
    let program = |condition, label: &str| {
        let statement = statement(vec![condition], vec![], Flow::Accept).labelled(label);
        compiled(&policy(vec![statement]), &Sets::default()).unwrap()
    };
    assert_eq!(program(not(not(local())), "a"), program(local(), "b"));
    assert_eq!(program(not(not(not(local()))), ""), program(not(local()), ""));
    assert_ne!(program(not(local()), ""), program(local(), ""));
}

#[test]
fn a_program_is_another_one_when_a_set_it_names_is() {
    let def = policy(vec![statement(vec![Condition::PrefixSet("own".into())], vec![], Flow::Accept)]);
    assert_eq!(def.sets().into_iter().collect::<Vec<_>>(), [(SetKind::Prefixes, "own".into())]);
    let with = |range: &str| {
        let mut sets = Sets::default();
        sets.put("own".into(), &SetDef::Prefixes(vec![range.parse().unwrap()]));
        compiled(&def, &sets).unwrap()
    };
    assert_eq!(with("10.0.0.0/8"), with("10.0.0.0/8"));
    assert_ne!(with("10.0.0.0/8"), with("10.0.0.0/8 le 9"));
    let asks = with("10.0.0.0/8").asks;
    assert!(asks.prefix && !asks.neighbor && !asks.interface);
}
