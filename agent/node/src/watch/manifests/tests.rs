// A test that meets an object of another kind shows it, whichever that is.
#![allow(clippy::wildcard_enum_match_arm)]

use super::*;

fn pool(name: &str, cidr: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata:\n  name: {name}\nspec:\n  cidr: {cidr}\n"
    )
}

/// Changes in words, so that a test says all of what it expects.
fn words(changes: &[SourceChange]) -> Vec<String> {
    let mut words = Vec::new();
    for change in changes {
        match change {
            SourceChange::Listed(kind, objects) => {
                let names: Vec<_> = objects.iter().map(|(name, _)| name.to_string()).collect();
                words.push(format!("list {kind} [{}]", names.join(" ")));
            }
            SourceChange::Put(name, object) => match &**object {
                Object::IpPool(pool) => words.push(format!("put {name} {}", pool.cidr)),
                Object::BgpFilter(filter) => {
                    let rules: Vec<_> = filter.import_v4.iter().map(|rule| rule.number.to_string()).collect();
                    words.push(format!("put {name} importV4 rules {}", rules.join(" ")));
                }
                other => words.push(format!("put {name} {other:?}")),
            },
            SourceChange::Gone(kind, name) => words.push(format!("gone {kind} {name}")),
            SourceChange::Faults(Change::Upsert(file, conditions)) => {
                words.extend(conditions.iter().map(|condition| format!("fault {file}: {condition}")));
            }
            SourceChange::Faults(Change::Delete(file)) => words.push(format!("clear {file}")),
            SourceChange::Faults(Change::Resync(_)) => words.push("faults".into()),
        }
    }
    words
}

struct Fixture(Manifests);

impl Fixture {
    /// A folder whose first list was told.
    fn new(files: &[(&str, &str)]) -> Self {
        let mut manifests = Manifests::default();
        for (name, text) in files {
            manifests.put(&Arc::from(*name), text);
        }
        manifests.settle();
        Self(manifests)
    }

    fn put(&mut self, name: &str, text: &str) -> Vec<String> {
        self.0.put(&Arc::from(name), text);
        words(&self.0.settle())
    }

    fn remove(&mut self, name: &str) -> Vec<String> {
        self.0.remove(name);
        words(&self.0.settle())
    }
}

#[test]
fn the_first_settling_lists_every_kind() {
    let mut manifests = Manifests::default();
    manifests.put(&Arc::from("a.yaml"), &(pool("one", "10.0.0.0/16") + &pool("two", "10.1.0.0/16")));
    assert_eq!(
        words(&manifests.settle()),
        [
            "list Node []",
            "list BGPConfiguration []",
            "list FelixConfiguration []",
            "list BGPFilter []",
            "list BGPPeer []",
            "list IPPool [one two]",
            "list Network []",
            "list BlockAffinity []"
        ]
    );
    assert_eq!(words(&manifests.settle()), [""; 0]);
}

#[test]
fn changes_moves_and_deletions() {
    let mut files = Fixture::new(&[("a.yaml", &pool("one", "10.0.0.0/16"))]);
    assert_eq!(files.put("a.yaml", &pool("one", "10.9.0.0/16")), ["put one 10.9.0.0/16"]);
    assert_eq!(files.put("a.yaml", &pool("one", "10.9.0.0/16")), [""; 0]);
    // A rename seen as a new file and then a lost one changes nothing in between but the note about the double.
    assert_eq!(
        files.put("b.yaml", &pool("one", "10.9.0.0/16")),
        [
            "fault b.yaml: b.yaml:2: IPPool one: is already given by a.yaml:2 (only the first one counts; delete or \
          rename one of them)"
        ]
    );
    assert_eq!(files.remove("a.yaml"), ["clear b.yaml"]);
    assert_eq!(files.remove("b.yaml"), ["gone IPPool one"]);
}

#[test]
fn a_file_that_does_not_parse_keeps_its_last_good_content() {
    let mut files = Fixture::new(&[("a.yaml", &pool("one", "10.0.0.0/16"))]);
    let found = files.put("a.yaml", "kind: [IPPool\nmetadata: {");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("fault a.yaml: a.yaml:"), "{found:?}");
    assert!(found[0].ends_with("(its last good content stays in force)"), "{found:?}");
    assert_eq!(files.put("a.yaml", &pool("one", "10.0.0.0/16")), ["clear a.yaml"]);
}

#[test]
fn an_object_with_a_mistake_keeps_its_last_good_version_and_hides_no_other() {
    let mut files = Fixture::new(&[("a.yaml", &pool("one", "10.0.0.0/16"))]);
    let text = pool("one", "10.0.0.0/99") + &pool("two", "10.2.0.0/16") + &pool("three", "x");
    assert_eq!(
        files.put("a.yaml", &text),
        [
            "put two 10.2.0.0/16",
            "fault a.yaml: a.yaml:7: IPPool one spec.cidr: must be a prefix such as 10.0.0.0/26 or fd00::/122, not \
             \"10.0.0.0/99\" (its last good version stays in force)",
            "fault a.yaml: a.yaml:21: IPPool three spec.cidr: must be a prefix such as 10.0.0.0/26 or fd00::/122, not \
             \"x\" (it has no effect until this is put right)",
        ]
    );
    assert_eq!(
        files.put("a.yaml", &pool("one", "10.3.0.0/16")),
        ["put one 10.3.0.0/16", "gone IPPool two", "clear a.yaml"]
    );
}

#[test]
fn an_unknown_field_is_a_mistake() {
    let mut files = Fixture::new(&[("a.yaml", &pool("one", "10.0.0.0/16"))]);
    let text = pool("one", "10.1.0.0/16") + "  ipipmode: Always\n";
    assert_eq!(
        files.put("a.yaml", &text),
        [
            "fault a.yaml: a.yaml:8: IPPool one spec.ipipmode: unknown field; did you mean \"ipipMode\"? (its last good \
         version stays in force)"
        ]
    );
}

#[test]
fn a_document_that_cannot_be_told_keeps_what_the_file_held() {
    let mut files = Fixture::new(&[("a.yaml", &(pool("one", "10.0.0.0/16") + &pool("two", "10.1.0.0/16")))]);
    let text =
        pool("one", "10.0.0.0/16") + &pool("two", "10.1.0.0/16").replace("kind: IPPool", "kind: IPPul");
    assert_eq!(
        files.put("a.yaml", &text),
        [
            "fault a.yaml: a.yaml:10: document at line 9 kind: \"IPPul\" is no kind that the agent reads; did you mean \
         \"IPPool\"?"
        ]
    );
    assert_eq!(files.put("a.yaml", &pool("one", "10.0.0.0/16")), ["gone IPPool two", "clear a.yaml"]);
}

#[test]
fn a_double_inside_one_file_is_reported() {
    let mut files = Fixture::new(&[]);
    let text = pool("one", "10.0.0.0/16") + &pool("one", "10.1.0.0/16");
    assert_eq!(
        files.put("a.yaml", &text),
        [
            "put one 10.0.0.0/16",
            "fault a.yaml: a.yaml:9: IPPool one: is already given by a.yaml:2 (only the first one counts; delete or rename \
         one of them)"
        ]
    );
}

#[test]
fn warnings_do_not_hold_an_object_back() {
    let mut files = Fixture::new(&[]);
    assert_eq!(
        files.put("a.yaml", &pool("one", "10.0.0.7/16")),
        [
            "put one 10.0.0.0/16",
            "fault a.yaml: a.yaml:7: IPPool one spec.cidr: has host bits set; read as 10.0.0.0/16"
        ]
    );
}

#[test]
fn the_examples_are_whole() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/examples");
    let mut manifests = Manifests::default();
    for entry in std::fs::read_dir(format!("{folder}/manifests")).unwrap() {
        let path = entry.unwrap().path();
        manifests.put(&path.to_string_lossy().into(), &std::fs::read_to_string(&path).unwrap());
    }
    assert_eq!(
        words(&manifests.settle()),
        [
            "list Node [node-a node-b]",
            "list BGPConfiguration [default]",
            "list FelixConfiguration []",
            "list BGPFilter [top-of-rack]",
            "list BGPPeer [top-of-rack-v4 top-of-rack-v6]",
            "list IPPool [plain plain-v6 tunnelled]",
            "list Network []",
            "list BlockAffinity [node-a-10-244-1-0-26 node-a-10-245-1-0-26 node-a-fd00-10-244-1---122]",
        ]
    );
    let loaded = crate::env::load(Some(format!("{folder}/agent.yaml").as_ref()), []);
    assert_eq!(loaded.faults, []);
    let text = std::fs::read_to_string(format!("{folder}/speaker.yaml")).unwrap();
    let speaker = crate::speaker_file::SpeakerFile::parse(&text).unwrap();
    assert_eq!((speaker.refused, speaker.peers.len()), (vec![], 2));
}

/// A filter of these rules on import.
fn filter(rules: &[&str]) -> String {
    let rules: String = rules.iter().map(|rule| format!("  - {{{rule}}}\n")).collect();
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: BGPFilter\nmetadata: {{name: f}}\nspec:\n  importV4:\n{rules}"
    )
}

const WRONG: &str = "cidr: 10.0.0.0/8, action: Reject";
const RIGHT: &str = "cidr: 10.0.0.0/8, matchOperator: In, action: Reject";

#[test]
fn a_filter_with_a_mistaken_rule_counts_with_its_last_good_version() {
    let mut files = Fixture::new(&[("f.yaml", &filter(&["action: Accept", RIGHT]))]);
    assert_eq!(
        files.put("f.yaml", &filter(&[RIGHT, WRONG, "action: Accept"])),
        [
            "fault f.yaml: f.yaml:8: BGPFilter f spec.importV4[1]: cidr needs matchOperator: Equal, NotEqual, In or NotIn \
             (importV4 rule 2: its last good version stays in force)"
        ]
    );
    assert_eq!(
        files.put("f.yaml", &filter(&[RIGHT])),
        ["put f importV4 rules 1", "clear f.yaml"],
        "and with its own content when that is right"
    );
}

#[test]
fn a_filter_that_was_never_whole_counts_without_its_mistaken_rules() {
    let mut files = Fixture::new(&[]);
    let told = files.put("f.yaml", &filter(&[RIGHT, WRONG, "action: Accept"]));
    assert_eq!(told[0], "put f importV4 rules 1 3");
    assert!(told[1].ends_with("(importV4 rule 2: without it the rest counts)"), "{told:?}");
    // What was never whole is no version to stay with.
    let told = files.put("f.yaml", &filter(&[WRONG, "action: Accept"]));
    assert_eq!(told[0], "put f importV4 rules 2");
    files.put("f.yaml", &filter(&["action: Accept"]));
    let told = files.put("f.yaml", &filter(&[WRONG, RIGHT]));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].ends_with("(importV4 rule 1: its last good version stays in force)"), "{told:?}");
}
