//! The 53 vectors of the selector language, by their number in its reference.

#![allow(clippy::type_complexity)]

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[test]
fn selectors_that_parse() {
    let vectors: &[(&str, &[(&str, &str)], bool)] = &[
        ("", &[], true),
        ("   \t", &[("rack", "r1")], true),
        ("all()", &[], true),
        ("all( )", &[], true),
        ("global()", &[("a", "b")], true),
        ("rack == 'r1'", &[("rack", "r1")], true),
        ("rack=='r1'", &[("rack", "r2")], false),
        ("rack == \"r1\"", &[], false),
        ("rack != 'r1'", &[], true),
        ("rack != 'r1'", &[("rack", "r1")], false),
        ("has(rr)", &[("rr", "")], true),
        ("has( rr )", &[("rack", "x")], false),
        ("!has(rr)", &[], true),
        ("! ! has(rr)", &[("rr", "1")], true),
        ("!rack == 'r1'", &[("rack", "r2")], true),
        ("rack in {'r1','r2'}", &[("rack", "r2")], true),
        ("rack in{'r1', 'r2',}", &[("rack", "r1")], true),
        ("rack in {}", &[("rack", "r1")], false),
        ("rack not in {}", &[("rack", "r1")], true),
        ("rack not in {'r1'}", &[], true),
        ("rack notin {'r1'}", &[("rack", "r1")], false),
        ("zone starts with 'eu-'", &[("zone", "eu-west")], true),
        ("zone startswith 'eu-'", &[("zone", "us-east")], false),
        ("zone ends with 'west'", &[("zone", "eu-west")], true),
        ("zone contains ''", &[], false),
        ("zone contains ''", &[("zone", "any")], true),
        ("a == 'x' || b == 'y' && c == 'z'", &[("a", "x")], true),
        ("(a == 'x' || b == 'y') && c == 'z'", &[("a", "x")], false),
        ("!(a == 'x' && has(b))", &[("a", "x")], true),
        ("!has(a) && !has(b) || has(c)", &[("b", "1"), ("c", "1")], true),
        (
            "node-role.kubernetes.io/control-plane == ''",
            &[("node-role.kubernetes.io/control-plane", "")],
            true,
        ),
        ("quote == \"it's\"", &[("quote", "it's")], true),
        ("all == 'yes'", &[("all", "yes")], true),
        ("has == 'x' && in == 'y'", &[("has", "x"), ("in", "y")], true),
        ("Rack == 'r1'", &[("rack", "r1")], false),
        ("a==  'x'&&b!='y'", &[("a", "x")], true),
        ("0-9_.x/y-z == '1'", &[("0-9_.x/y-z", "1")], true),
    ];
    assert_eq!(vectors.len(), 37);
    for (number, (text, with, expected)) in (1..).zip(vectors) {
        let selector = Selector::parse(text).unwrap_or_else(|e| panic!("{number}: {text:?}: {e}"));
        assert_eq!(selector.matches(&labels(with)), *expected, "{number}: {text:?} with {with:?}");
    }
}

#[test]
fn texts_that_are_refused() {
    let long = format!("{} == 'x'", "a".repeat(513));
    let vectors: [&[&str]; 16] = [
        &["rack"],
        &["rack =="],
        &["rack = 'r1'"],
        &["rack == r1"],
        &["rack == 'r1"],
        &["rack == 'r1' & zone == 'z'"],
        &["rack == 'r1' zone == 'z'"],
        &["(rack == 'r1'", "rack == 'r1')"],
        &["()", "has()", "all(x)"],
        &["has (rr)", "all ()"],
        &["rack in ('r1')", "rack in {'r1' 'r2'}", "rack in {,}"],
        &["rack not 'r1'", "rack containsx 'r1'", "ra ck == 'r1'"],
        &["rack == 'r1' ||", "&& has(a)"],
        &["rack\n== 'r1'"],
        &["$rack == 'r1'", "'r1' == rack"],
        &[&long],
    ];
    for (number, texts) in (38..).zip(vectors) {
        for text in texts {
            assert!(Selector::parse(text).is_err(), "{number}: {text:?} should be refused");
        }
    }
    assert!(Selector::parse(&format!("{} == 'x'", "a".repeat(512))).is_ok());
}

#[test]
fn nesting_is_bounded() {
    let deep = format!("{}all(){}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(Selector::parse(&deep).unwrap_err().what, SelectorFault::TooDeep);
}

#[test]
fn a_fault_says_where() {
    let error = Selector::parse("rack == 'r1' zone == 'z'").unwrap_err();
    assert_eq!(error.at, 13);
    assert_eq!(error.to_string(), "text follows the end of the expression at byte 13");
}
