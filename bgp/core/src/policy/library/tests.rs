use super::super::{Act, Condition, Default, StatementDef};
use super::*;

fn def(then: &[Flow], default: Default) -> PolicyDef {
    let statement = |then: &Flow| StatementDef::new(vec![], vec![], then.clone());
    PolicyDef { statements: then.iter().map(statement).collect(), default }
}

fn call(name: &str) -> Flow {
    Flow::Call(name.into())
}

fn names(changed: Changed) -> Vec<String> {
    match changed {
        Changed::Nothing => panic!("something has changed"),
        Changed::Policies(names) => names.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn what_calls_a_changed_policy_is_compiled_again_and_nothing_else() {
    let mut library = Library::new();
    let mut put = |name: &str, def: PolicyDef| library.put_policy(&name.into(), def).map(names);
    put("leaf", def(&[], Default::Next)).unwrap();
    put("other", def(&[], Default::Next)).unwrap();
    put("middle", def(&[call("leaf")], Default::Next)).unwrap();
    put("top", def(&[call("other"), call("middle")], Default::Accept)).unwrap();
    assert_eq!(put("leaf", def(&[Flow::Reject], Default::Next)).unwrap(), ["leaf", "middle", "top"]);
    assert_eq!(put("other", def(&[], Default::Accept)).unwrap(), ["other", "top"]);
    let changed = library.put_policy(&"other".into(), def(&[], Default::Accept));
    assert_eq!(changed, Ok(Changed::Nothing));
    let [leaf, middle] = ["leaf", "middle"].map(|name| library.policy(&name.into()).unwrap().1.clone());
    assert_eq!(middle.stmts[0].then, super::super::program::Then::Call(Arc::clone(&leaf)));
    assert_eq!(library.delete_policy(&"leaf".into()), Err("middle".into()));
    assert_eq!(library.delete_policy(&"top".into()), Ok(true));
    assert_eq!(library.delete_policy(&"top".into()), Ok(false));
}

#[test]
fn circles_are_named_and_nothing_of_them_stays() {
    let mut library = Library::new();
    library.put_policy(&"a".into(), def(&[], Default::Next)).unwrap();
    library.put_policy(&"b".into(), def(&[call("a")], Default::Next)).unwrap();
    library.put_policy(&"c".into(), def(&[call("b")], Default::Next)).unwrap();
    let before = library.policy(&"a".into()).unwrap().1.clone();
    let mistakes = library.put_policy(&"a".into(), def(&[Flow::Next, call("c")], Default::Next)).unwrap_err();
    assert_eq!(
        mistakes[0].to_string(),
        "policy a, statement 2: policies call one another in a circle: a → c → b → a; take one of the calls out"
    );
    assert!(Arc::ptr_eq(&before, library.policy(&"a".into()).unwrap().1));
    let own = library.put_policy(&"d".into(), def(&[call("d")], Default::Next)).unwrap_err();
    assert_eq!(own[0].what, Mistake::CallCycle(vec!["d".into()]));
    assert_eq!(library.policy(&"d".into()), None);
}

#[test]
fn neither_depth_nor_length_get_out_of_hand() {
    let mut library = Library::new();
    library.put_policy(&"0".into(), def(&[], Default::Next)).unwrap();
    let mut deepest = None;
    for depth in 1..=MOST_DEPTH {
        let below = (depth - 1).to_string();
        let result =
            library.put_policy(&depth.to_string().as_str().into(), def(&[call(&below)], Default::Next));
        if let Err(mistakes) = result {
            assert_eq!(mistakes[0].what, Mistake::TooDeep);
            deepest = Some(depth);
            break;
        }
    }
    assert_eq!(deepest, Some(MOST_DEPTH));
    // Each doubles what the one before it does.
    let mut library = Library::new();
    library.put_policy(&"0".into(), def(&[Flow::Next; 1].map(|then| then), Default::Next)).unwrap();
    let mut longest = None;
    for n in 1..MOST_DEPTH {
        let below = (n - 1).to_string();
        let twice = def(&[call(&below), call(&below)], Default::Next);
        if let Err(mistakes) = library.put_policy(&n.to_string().as_str().into(), twice) {
            assert_eq!(mistakes[0].what, Mistake::TooLong);
            longest = Some(n);
            break;
        }
    }
    assert_eq!(longest, Some(16));
    // What is fine alone may be too much for who calls it.
    let many = def(&vec![Flow::Next; 90_000], Default::Next);
    let mistakes = library.put_policy(&"0".into(), many).unwrap_err();
    assert_eq!((mistakes[0].policy.as_str(), &mistakes[0].what), ("1", &Mistake::TooLong));
    assert_eq!(library.policy(&"0".into()).unwrap().0.statements.len(), 1, "the old one stays");
}

#[test]
fn sets_and_those_that_name_them() {
    let mut library = Library::new();
    let set = |ranges: &[&str]| SetDef::Prefixes(ranges.iter().map(|text| text.parse().unwrap()).collect());
    let when = vec![Condition::Not(Box::new(Condition::PrefixSet("own".into())))];
    let accept = StatementDef::new(when, vec![], Flow::Accept);
    let user = PolicyDef { statements: vec![accept], default: Default::Reject };
    let mistakes = library.put_policy(&"p".into(), user.clone()).unwrap_err();
    assert_eq!(mistakes[0].what, Mistake::NoSuchSet(SetKind::Prefixes, "own".into()));
    assert_eq!(names(library.put_set(&"own".into(), &set(&[])).unwrap()), Vec::<String>::new());
    assert_eq!(names(library.put_policy(&"p".into(), user).unwrap()), ["p"]);
    assert_eq!(names(library.put_set(&"own".into(), &set(&["10.0.0.0/8"])).unwrap()), ["p"]);
    assert_eq!(library.put_set(&"own".into(), &set(&["10.0.0.0/8"])), Ok(Changed::Nothing));
    assert_eq!(library.delete_set(SetKind::Prefixes, &"own".into()), Err("p".into()));
    assert_eq!(library.delete_set(SetKind::Neighbors, &"own".into()), Ok(false));
    assert_eq!(library.delete_policy(&"p".into()), Ok(true));
    assert_eq!(library.delete_set(SetKind::Prefixes, &"own".into()), Ok(true));
}

#[test]
fn a_bad_policy_leaves_the_old_one() {
    let mut library = Library::new();
    library.put_policy(&"p".into(), def(&[Flow::Accept], Default::Reject)).unwrap();
    let acts = vec![Act::Prepend(bgp_wire::Asn(0), 1)];
    let bad = PolicyDef {
        statements: vec![StatementDef::new(vec![], acts, Flow::Accept)],
        default: Default::Reject,
    };
    assert!(library.put_policy(&"p".into(), bad).is_err());
    assert_eq!(library.policy(&"p".into()).unwrap().0, &def(&[Flow::Accept], Default::Reject));
    assert_eq!(library.pipeline([&"p".into(), &"q".into()], Otherwise::Accept), Err("q".into()));
}
