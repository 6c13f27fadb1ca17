use super::super::{
    Act, Condition, Flow, Glob, Library, ListEdit, MedEdit, Members, PolicyDef, PrefixRange, StatementDef,
};
use super::*;
use bgp_wire::attr::{Builder, Canonical, Community, ExtCommunity, LargeCommunity, Origin};
use bgp_wire::{Family, RouteDistinguisher};

fn of(builder: &Builder<'_>, next_hop: Option<NextHop>) -> AttrSet {
    let octets = builder.build();
    AttrSet::new(&octets, next_hop, Canonical(&octets).facts())
}

fn attrs(communities: &[Community], large: &[LargeCommunity]) -> AttrSet {
    let mut builder = Builder::new(Origin::Igp);
    builder.add_communities(communities.iter().copied()).add_large_communities(large.iter().copied());
    of(&builder, None)
}

fn def(statements: Vec<(Vec<Condition>, Vec<Act>, Flow)>, default: Default) -> PolicyDef {
    let statement = |(when, apply, then)| StatementDef::new(when, apply, then);
    PolicyDef { statements: statements.into_iter().map(statement).collect(), default }
}

fn program(statements: Vec<(Vec<Condition>, Vec<Act>, Flow)>, default: Default) -> Pipeline {
    chain(&[("p", def(statements, default))], &["p"], Otherwise::Reject)
}

fn chain(policies: &[(&str, PolicyDef)], names: &[&str], otherwise: Otherwise) -> Pipeline {
    let mut library = Library::new();
    for (name, def) in policies {
        library.put_policy(&(*name).into(), def.clone()).unwrap();
    }
    let names: Vec<PolicyName> = names.iter().map(|name| (*name).into()).collect();
    library.pipeline(&names, otherwise).unwrap()
}

/// Policy and statement.
fn place(decider: Decider<'_>) -> (Option<&str>, Option<usize>) {
    (decider.policy().map(PolicyName::as_str), decider.statement())
}

/// Whether the path passes, and what decides.
fn outcome<'p>(verdict: &Verdict<'p>) -> (bool, Option<&'p str>, Option<usize>) {
    let (passes, (policy, statement)) = match verdict {
        Verdict::Accept(_, decider) => (true, place(*decider)),
        Verdict::Reject(decider) => (false, place(*decider)),
    };
    (passes, policy, statement)
}

fn edits(verdict: Verdict<'_>) -> Edits {
    match verdict {
        Verdict::Accept(edits, _) => edits,
        Verdict::Reject(decider) => panic!("rejected by {decider:?}"),
    }
}

fn route<'a>(prefix: &str, attrs: &'a AttrSet) -> Route<'a> {
    Route {
        direction: Direction::Import,
        nlri: prefix.parse().unwrap(),
        attrs,
        learned: Learned::External,
        neighbor: "192.0.2.1".parse().unwrap(),
        peer_type: PeerType::External,
        front: &[],
        interfaces: None,
    }
}

/// Whether a path with these attributes passes a policy that rejects exactly what meets the condition.
fn meets(condition: Condition, prefix: &str, attrs: &AttrSet) -> bool {
    route_meets(condition, &route(prefix, attrs))
}

fn route_meets(condition: Condition, route: &Route<'_>) -> bool {
    let program = program(vec![(vec![condition], vec![], Flow::Reject)], Default::Accept);
    outcome(&eval(&program, route)) == (false, Some("p"), Some(1))
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
fn what_is_wanted_together_stays_together_among_alternatives() {
    let (bare, marked) = (attrs(&[], &[]), attrs(&[MARK], &[]));
    let own = || Condition::Prefix(vec!["10.0.0.0/8 le 24".parse().unwrap()]);
    let both = || Condition::All(vec![own(), Condition::Community(MARK)]);
    for condition in [
        Condition::Any(vec![both()]),
        Condition::Any(vec![both(), Condition::Learned(Learned::Local)]),
        Condition::Any(vec![Condition::Any(vec![both()])]),
        Condition::All(vec![both(), Condition::Any(vec![Condition::All(vec![])])]),
    ] {
        assert!(meets(condition.clone(), "10.1.0.0/16", &marked), "{condition:?}");
        assert!(!meets(condition.clone(), "10.1.0.0/16", &bare), "{condition:?}");
        assert!(!meets(condition.clone(), "11.1.0.0/16", &marked), "{condition:?}");
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
    let verdict = |prefix, attrs| outcome(&eval(&program, &route(prefix, attrs)));
    assert_eq!(verdict("10.1.0.0/16", &marked), (false, Some("p"), Some(1)));
    assert_eq!(verdict("10.1.0.0/16", &bare), (true, Some("p"), Some(2)));
    assert_eq!(verdict("11.0.0.0/16", &marked), (false, Some("p"), None));
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
    let export = Route { direction: Direction::Export, ..route("10.0.0.0/8", &bare) };
    let edits = edits(eval(&program, &export));
    let wanted = Edits {
        med: Some(MedEdit::Set(2)),
        local_pref: Some(300),
        next_hop: Some(NextHopEdit::Own),
        prepend: [(Asn(1), 2), (Asn(2), 1)].into_iter().collect(),
        communities: ListEdit::adding([MARK]),
        large_communities: ListEdit::adding([LARGE]),
        ..Edits::default()
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
fn a_chain_without_policies_decides_by_its_default() {
    let bare = attrs(&[], &[]);
    let pipeline = Pipeline::new([], Otherwise::Reject);
    assert_eq!(outcome(&eval(&pipeline, &route("::/0", &bare))), (false, None, None));
    assert!(!pipeline.depends_on_prefix() && !pipeline.depends_on_neighbor());
}

#[test]
fn conditions_on_attributes() {
    let mut builder = Builder::new(Origin::Egp);
    builder.prepend(Asn(65030), 1).prepend(Asn(65020), 2).local_pref(Some(150)).med(Some(7));
    builder.add_communities([Community::new(65000, 1), Community::new(65000, 2)]);
    builder.add_ext_communities(["rt:65000:1".parse().unwrap()]);
    let hop: IpAddr = "198.51.100.7".parse().unwrap();
    let full = of(&builder, Some(hop.into()));
    let bare = attrs(&[], &[]);
    let full = |condition| meets(condition, "10.0.0.0/8", &full);
    let bare = |condition| meets(condition, "10.0.0.0/8", &bare);
    assert!(full(Condition::Origin(Origin::Egp)) && !full(Condition::Origin(Origin::Igp)));
    assert!(full(Condition::LocalPref(100..=150)) && !full(Condition::LocalPref(151..=200)));
    assert!(full(Condition::Med(7..=7)) && !full(Condition::Med(0..=6)));
    assert!(!bare(Condition::LocalPref(0..=u32::MAX)) && !bare(Condition::Med(0..=u32::MAX)));
    assert!(full(Condition::AsPathLength(3..=3)) && bare(Condition::AsPathLength(0..=0)));
    let path = |text: &str| Condition::AsPath(vec!["_9_".parse().unwrap(), text.parse().unwrap()]);
    assert!(full(path("^65020 65020 65030$")) && full(path("_65030_")) && !full(path("^65030")));
    assert!(bare(path("^$")) && !full(path("^$")));
    let begins = |asns: &[u32]| Condition::AsPathPrefix(asns.iter().copied().map(Asn).collect());
    assert!(full(begins(&[65020, 65020])) && full(begins(&[])) && !full(begins(&[65030])));
    assert!(!full(begins(&[65020, 65020, 65030, 1])) && !bare(begins(&[65020])));
    let hops = |text: &str| Condition::NextHop(vec![text.parse().unwrap()]);
    assert!(full(hops("198.51.100.0/24")) && !full(hops("198.51.101.0/24")) && !bare(hops("0.0.0.0/0")));
    let communities = |how, texts: &[&str]| {
        let these = texts.iter().map(|text| text.parse().unwrap()).collect();
        Condition::Communities(how, Members::These(these))
    };
    assert!(full(communities(Match::Any, &["65000:9", "65000:*"])));
    assert!(!full(communities(Match::Any, &["65000:9"])) && !full(communities(Match::Any, &[])));
    assert!(full(communities(Match::All, &["65000:1", "*:2"])) && full(communities(Match::All, &[])));
    assert!(!full(communities(Match::All, &["65000:1", "65000:3"])));
    let target =
        |text: &str| Condition::ExtCommunities(Match::Any, Members::These(vec![text.parse().unwrap()]));
    assert!(full(target("rt:65000:*")) && !full(target("soo:65000:*")));
    assert!(full(Condition::ExtCommunity("rt:65000:1".parse().unwrap())));
    let local = || Condition::Learned(Learned::Local);
    let external = || Condition::Learned(Learned::External);
    assert!(
        bare(Condition::Any(vec![local(), external()])) && !bare(Condition::All(vec![local(), external()]))
    );
    assert!(bare(Condition::Not(Box::new(Condition::All(vec![external(), local()])))));
    assert!(bare(Condition::PeerType(PeerType::External)) && !bare(Condition::PeerType(PeerType::Internal)));
}

#[test]
fn conditions_on_what_is_no_unicast_prefix() {
    let bare = attrs(&[], &[]);
    let rd: RouteDistinguisher = "65000:1".parse().unwrap();
    let vpn = "65000:1:10.1.0.0/16";
    let own = || Condition::Prefix(vec!["10.0.0.0/8 le 24".parse().unwrap()]);
    assert!(meets(own(), vpn, &bare) && meets(Condition::Rd(rd), vpn, &bare));
    assert!(!meets(Condition::Rd(rd), "10.1.0.0/16", &bare));
    let family = Condition::Family(vec![Family::Ipv4Vpn, Family::Ipv6Vpn]);
    assert!(meets(family.clone(), vpn, &bare) && !meets(family, "10.1.0.0/16", &bare));
    let policy = Nlri::parse_as(Family::Ipv4SrPolicy, "1:100:10.1.0.1").unwrap();
    let route = Route { nlri: policy, ..route("10.0.0.0/8", &bare) };
    assert!(!route_meets(Condition::Prefix(vec!["0.0.0.0/0 le 32".parse().unwrap()]), &route));
    assert!(route_meets(Condition::Family(vec![Family::Ipv4SrPolicy]), &route));
}

#[test]
fn interfaces_are_those_of_next_hops() {
    let [here, there] = ["198.51.100.7", "198.51.100.8"].map(|text| text.parse::<IpAddr>().unwrap());
    let interfaces = Interfaces::from([(here, "eth0".into())]);
    let condition = |glob: &str| Condition::Interface(Glob::new(glob));
    let set = of(&Builder::new(Origin::Igp), Some(here.into()));
    let known = Route { interfaces: Some(&interfaces), ..route("10.0.0.0/8", &set) };
    assert!(route_meets(condition("eth*"), &known) && !route_meets(condition("tap*"), &known));
    assert!(!route_meets(condition("*"), &Route { interfaces: None, ..known }));
    let own = attrs(&[], &[]);
    assert!(!route_meets(condition("*"), &Route { attrs: &own, ..known }));
    let moved = program(
        vec![
            (vec![], vec![Act::SetNextHop(there)], Flow::Next),
            (vec![condition("*")], vec![], Flow::Reject),
        ],
        Default::Accept,
    );
    assert!(outcome(&eval(&moved, &known)).0 && moved.depends_on_interface());
}

#[test]
fn later_statements_see_what_earlier_ones_did() {
    let sees = |acts: Vec<Act>, condition: Condition, attrs: &AttrSet| {
        let statements = vec![(vec![], acts, Flow::Next), (vec![condition], vec![], Flow::Reject)];
        let program = program(statements, Default::Accept);
        let route =
            Route { direction: Direction::Export, front: &[Asn(65010)], ..route("10.0.0.0/8", attrs) };
        !outcome(&eval(&program, &route)).0
    };
    let (bare, marked) = (attrs(&[], &[]), attrs(&[MARK], &[LARGE]));
    assert!(sees(vec![Act::SetLocalPref(5)], Condition::LocalPref(5..=5), &bare));
    assert!(sees(vec![Act::SetMed(5), Act::AddMed(-2)], Condition::Med(3..=3), &bare));
    assert!(sees(vec![Act::AddMed(3), Act::AddMed(4)], Condition::Med(7..=7), &bare));
    assert!(sees(vec![Act::AddMed(-3)], Condition::Med(0..=0), &bare));
    assert!(!sees(vec![Act::SetMed(5), Act::RemoveMed], Condition::Med(0..=u32::MAX), &bare));
    assert!(sees(vec![Act::RemoveMed, Act::AddMed(1)], Condition::Med(1..=1), &bare));
    assert!(sees(vec![Act::SetOrigin(Origin::Incomplete)], Condition::Origin(Origin::Incomplete), &bare));
    let path = vec![Act::Prepend(Asn(7), 2), Act::PrependPath(vec![Asn(1), Asn(2), Asn(2)])];
    let whole = Condition::AsPath(vec!["^1 2 2 7 7 65010$".parse().unwrap()]);
    assert!(sees(path.clone(), whole, &bare));
    assert!(sees(path.clone(), Condition::AsPathLength(6..=6), &bare));
    assert!(sees(path, Condition::AsPathPrefix(vec![Asn(1), Asn(2)]), &bare));
    let all = || Members::These(vec!["*:*".parse().unwrap()]);
    assert!(!sees(vec![Act::RemoveCommunities(all())], Condition::Community(MARK), &marked));
    assert!(sees(
        vec![Act::RemoveCommunities(all()), Act::AddCommunity(MARK)],
        Condition::Community(MARK),
        &marked
    ));
    assert!(!sees(
        vec![Act::AddCommunity(MARK), Act::RemoveCommunities(all())],
        Condition::Community(MARK),
        &bare
    ));
    assert!(!sees(vec![Act::ReplaceLargeCommunities(vec![])], Condition::LargeCommunity(LARGE), &marked));
    let other = ExtCommunity(5);
    assert!(sees(vec![Act::ReplaceExtCommunities(vec![other])], Condition::ExtCommunity(other), &bare));
    let hop: IpAddr = "192.0.2.9".parse().unwrap();
    assert!(sees(vec![Act::SetNextHop(hop)], Condition::NextHop(vec![hop.into()]), &bare));
    assert!(!sees(vec![Act::SetNextHop(hop), Act::NextHopSelf], Condition::NextHop(vec![hop.into()]), &bare));
}

#[test]
fn a_community_is_found_among_any_others() {
    let numbers = || (0..200).map(|n: u32| Community(n.wrapping_mul(0x0101_0007)));
    let one_of = |own: Community| {
        let text = format!("{}:{}", own.0 >> 16, own.0 & 0xffff);
        Condition::Communities(Match::Any, Members::These(vec![text.parse().unwrap()]))
    };
    // More and more of them, so that each is looked for beside some that share its sign.
    for count in [0, 1, 2, 5, 12, 40, 150] {
        let list: Vec<Community> = numbers().take(count).collect();
        let attrs = attrs(&list, &[]);
        for own in numbers() {
            let carried = list.contains(&own);
            assert_eq!(meets(Condition::Community(own), "10.0.0.0/8", &attrs), carried, "{own} in {count}");
            assert_eq!(meets(one_of(own), "10.0.0.0/8", &attrs), carried, "{own} in {count}, by a set");
        }
    }
}

#[test]
fn a_community_that_a_call_has_added_is_found() {
    let adds = def(vec![(vec![], vec![Act::AddCommunity(MARK)], Flow::Next)], Default::Next);
    let asks = vec![
        (vec![Condition::Community(MARK)], vec![], Flow::Reject),
        (vec![], vec![], Flow::Call("adds".into())),
        (vec![Condition::Community(MARK)], vec![Act::SetLocalPref(7)], Flow::Accept),
    ];
    let chain = chain(&[("adds", adds), ("p", def(asks, Default::Reject))], &["p"], Otherwise::Reject);
    let edits = edits(eval(&chain, &route("10.0.0.0/8", &attrs(&[], &[]))));
    assert_eq!((edits.local_pref, &*edits.communities.added), (Some(7), &[MARK][..]));
}

#[test]
fn edits_do_not_depend_on_what_they_need_not_change() {
    let none = Members::These(vec!["65000:9".parse().unwrap()]);
    let acts = vec![Act::RemoveCommunities(none), Act::AddCommunity(MARK)];
    let program = program(vec![(vec![], acts, Flow::Accept)], Default::Reject);
    assert!(edits(eval(&program, &route("10.0.0.0/8", &attrs(&[MARK], &[])))).is_empty());
    let own = program_of_own_next_hop();
    assert!(edits(eval(&own, &route("10.0.0.0/8", &attrs(&[], &[])))).is_empty(), "without effect on import");
}

fn program_of_own_next_hop() -> Pipeline {
    program(vec![(vec![], vec![Act::NextHopSelf], Flow::Accept)], Default::Reject)
}

#[test]
fn calls_come_back_unless_they_decide() {
    let own = || Condition::Prefix(vec!["10.0.0.0/8 le 32".parse().unwrap()]);
    let mark = || vec![Act::AddCommunity(MARK)];
    let called = def(
        vec![
            (vec![own(), Condition::Community(MARK)], vec![], Flow::Reject),
            (vec![own()], vec![], Flow::Accept),
            (vec![], mark(), Flow::Next),
        ],
        Default::Next,
    );
    let caller = def(
        vec![
            (
                vec![Condition::Not(Box::new(Condition::Med(0..=9)))],
                vec![Act::SetMed(1)],
                Flow::Call("called".into()),
            ),
            (vec![Condition::Community(MARK)], vec![], Flow::Accept),
        ],
        Default::Next,
    );
    let policies = [("called", called), ("caller", caller)];
    let run = |names: &[&str], otherwise, prefix, attrs: &AttrSet| {
        let pipeline = chain(&policies, names, otherwise);
        let verdict = eval(&pipeline, &route(prefix, attrs));
        let (passes, policy, statement) = outcome(&verdict);
        (passes, policy.map(str::to_owned), statement)
    };
    let (bare, marked) = (attrs(&[], &[]), attrs(&[MARK], &[]));
    let by = |passes, policy: &str, statement| (passes, Some(policy.to_owned()), Some(statement));
    let accept = Otherwise::Accept;
    assert_eq!(run(&["caller"], accept, "10.1.0.0/16", &marked), by(false, "called", 1));
    assert_eq!(run(&["caller"], accept, "10.1.0.0/16", &bare), by(true, "called", 2));
    assert_eq!(
        run(&["caller"], accept, "11.0.0.0/8", &bare),
        by(true, "caller", 2),
        "seen after coming back"
    );
    let mut builder = Builder::new(Origin::Igp);
    builder.med(Some(3));
    let med = of(&builder, None);
    assert_eq!(run(&["caller"], Otherwise::Reject, "11.0.0.0/8", &med), (false, None, None));
    assert_eq!(run(&["caller"], accept, "11.0.0.0/8", &med), (true, None, None));
    assert_eq!(
        run(&["caller", "called"], accept, "10.0.0.0/8", &med),
        by(true, "called", 2),
        "the next of the chain"
    );
    assert_eq!(run(&[], Otherwise::Reject, "11.0.0.0/8", &med), (false, None, None));
}

#[test]
fn labels_say_where_a_statement_comes_from() {
    let statement = StatementDef::new(vec![], vec![], Flow::Reject).labelled("BGPFilter f, importV4 rule 1");
    let def = PolicyDef { statements: vec![statement], default: Default::Accept };
    let pipeline = chain(&[("p", def)], &["p"], Otherwise::Accept);
    let bare = attrs(&[], &[]);
    let Verdict::Reject(decider) = eval(&pipeline, &route("::/0", &bare)) else { panic!("rejected") };
    assert_eq!(decider.label(), Some("BGPFilter f, importV4 rule 1"));
}
