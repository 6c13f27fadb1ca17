//! `peregrine check`: everything that is wrong with manifests, or with the file of a speaker or an agent, before anyone runs them.
//!
//! Manifests are put together as the agent does it, and then told to an engine for each of their nodes: what only shows
//! when objects meet is found too. Nothing is connected to, and nothing changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::event::{Change, Event, SpeakerEvent};
use agent_core::model::{Condition, Filter, FilterName, Location, ObjectRef, Severity};
use agent_core::{Config, Engine, filter_of};
use bgp_core::command::{Applied, Command};
use bgp_core::policy::{Direction, PolicyName};
use bgp_core::time::Instant;

use crate::crd::Kind;
use crate::dry_run::{DryRun, Subject};
use crate::env::{self, SettingsFault};
use crate::speaker_file::SpeakerFile;
use crate::watch::{Manifests, SourceChange, event, list, read_text};
use crate::yaml::{Flaw, Line, Value, documents};

/// Nodes that an engine is made for; the rest of a large cluster hardly shows anything new.
const NODES: usize = 64;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Everything that is wrong, in the order of files and lines.
    pub(crate) problems: Vec<Condition>,
    /// Something could not be read at all; it is among the problems.
    pub(crate) unreadable: bool,
}

/// What was read, beside what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// What is wrong.
    pub(crate) findings: Findings,
    /// What was read, by the names of the files.
    pub(crate) texts: BTreeMap<Arc<str>, String>,
    /// The files of speakers that a speaker could run, each with its name.
    speakers: Vec<(Arc<str>, SpeakerFile)>,
    /// What the manifests say.
    changes: Vec<SourceChange>,
}

/// Look at files, and at the manifests in folders.
pub(crate) fn check(paths: &[PathBuf]) -> Checked {
    let mut findings = Findings::default();
    let mut texts = BTreeMap::new();
    let files = paths.iter().flat_map(|path| files(path, &mut findings)).collect::<BTreeSet<_>>();
    for path in files {
        let name: Arc<str> = path.to_string_lossy().into();
        match read_text(&path) {
            Ok(text) => drop(texts.insert(name, text)),
            Err(reason) => findings.unreadable(&name, reason),
        }
    }
    let mut checked = examine(texts);
    checked.findings.unreadable |= findings.unreadable;
    checked.findings.problems.extend(findings.problems);
    checked.findings.sort();
    checked
}

/// Look at the texts of files.
pub(crate) fn examine(texts: BTreeMap<Arc<str>, String>) -> Checked {
    let mut findings = Findings::default();
    let mut speakers = Vec::new();
    let mut manifests = Manifests::default();
    for (name, text) in &texts {
        if documents(text).is_ok_and(|documents| documents.is_empty()) {
            findings.unreadable(name, "there is nothing in it to check".into());
        } else if is_speaker_file(text) {
            let file = speaker(name, text, &mut findings);
            speakers.extend(file.map(|file| (Arc::clone(name), file)));
        } else if is_settings(text) {
            settings(name, text, &mut findings);
        } else {
            manifests.put(name, text);
        }
    }
    let changes = manifests.settle();
    for change in &changes {
        if let SourceChange::Faults(Change::Upsert(_, conditions)) = change {
            findings.problems.extend(conditions.iter().cloned());
        }
    }
    findings.problems.extend(together(&changes, &manifests, &texts));
    findings.sort();
    Checked { findings, texts, speakers, changes }
}

/// The settings of an agent have keys of their own.
fn is_settings(text: &str) -> bool {
    keys(text).is_some_and(|keys| env::is_settings(&keys.iter().map(|key| &**key).collect::<Vec<_>>()))
}

impl Checked {
    /// What there is that a table can be tried on: the BGPFilters of the manifests, and the policies of each speaker's file.
    /// `named` keeps the prefixes of each rule.
    pub(crate) fn dry_runs(&self, named: bool) -> Vec<DryRun> {
        let several = self.speakers.len() > 1;
        let speakers = self.speakers.iter().map(|(name, file)| {
            let of = if several { format!("{name}: ") } else { String::new() };
            let commands = file.commands_since(None);
            let subjects = used_policies(&commands).into_iter().map(|(policy, direction)| Subject {
                object: format!("{of}policy {policy}"),
                policy,
                direction,
            });
            DryRun::new(commands.clone(), subjects, named).in_as(file.asn)
        });
        let manifests = (!self.changes.is_empty()).then(|| {
            let commands = commands(&self.changes);
            let mut subjects = Vec::new();
            for command in &commands {
                let Command::PutPolicy(policy, _) = command else { continue };
                let Some(filter) = filter_of(policy) else { continue };
                let import = policy.as_str().starts_with("import-");
                let direction = if import { Direction::Import } else { Direction::Export };
                let object = format!("BGPFilter {filter}");
                subjects.push(Subject { object, policy: policy.clone(), direction });
            }
            subjects
                .sort_by(|one, other| (&one.object, one.direction).cmp(&(&other.object, other.direction)));
            DryRun::new(commands, subjects, named)
        });
        manifests.into_iter().chain(speakers).filter(|run| !run.is_empty()).collect()
    }
}

impl Checked {
    /// What a speaker would be told, and whether it comes from manifests.
    pub(crate) fn commands(&self) -> Vec<(Command, bool)> {
        let manifests = if self.changes.is_empty() { Vec::new() } else { commands(&self.changes) };
        let manifests = manifests.into_iter().map(|command| (command, true));
        let speakers = self.speakers.iter().flat_map(|(_, file)| file.commands_since(None));
        manifests.chain(speakers.map(|command| (command, false))).collect()
    }

    /// The BGPFilters of the manifests.
    pub(crate) fn filters(&self) -> Vec<(FilterName, Filter)> {
        let filters = self.changes.iter().cloned().filter_map(event).filter_map(|event| {
            if let Event::Filter(Change::Resync(all)) = event { Some(all) } else { None }
        });
        filters.flatten().collect()
    }
}

/// The policies of a speaker's file, each with the directions in which neighbours use it; what nobody uses, as on import.
fn used_policies(commands: &[Command]) -> BTreeSet<(PolicyName, Direction)> {
    let mut used = BTreeSet::new();
    for command in commands {
        let config = if let Command::PutPeer(_, config) = command {
            config
        } else if let Command::PutPeerRange(_, range) = command {
            &range.config
        } else if let Command::PutGlobalPolicies(direction, policies) = command {
            used.extend(policies.iter().map(|policy| (policy.clone(), *direction)));
            continue;
        } else {
            continue;
        };
        let of = |direction| move |policy: &PolicyName| (policy.clone(), direction);
        used.extend(config.import.policies.iter().map(of(Direction::Import)));
        used.extend(config.export.policies.iter().map(of(Direction::Export)));
    }
    for command in commands {
        if let Command::PutPolicy(name, _) = command
            && !used.iter().any(|(policy, _)| policy == name)
        {
            used.insert((name.clone(), Direction::Import));
        }
    }
    used
}

/// What an agent would tell its speaker of these manifests, on the first of their nodes. Sets and policies are the same on
/// every node, but for what belongs to a node.
fn commands(changes: &[SourceChange]) -> Vec<Command> {
    let node = nodes(changes).next().unwrap_or_default();
    let mut engine = Engine::new(Config { vpp: None, ..Config::new(node.into()) });
    for event in changes.iter().cloned().filter_map(event) {
        if !matches!(event, Event::Fault(_)) {
            engine.handle(Instant::ZERO, event);
        }
    }
    let mut all = Vec::new();
    loop {
        let mut some = Vec::new();
        engine.next_speaker_ops(Instant::ZERO, 1000, &mut some);
        if some.is_empty() {
            return all;
        }
        for op in some {
            all.push(op.command);
            engine.handle(Instant::ZERO, Event::Speaker(SpeakerEvent::Done(op.id, Ok(Applied::Applied))));
        }
    }
}

impl Findings {
    /// In the order of files and lines.
    fn sort(&mut self) {
        let place = |condition: &Condition| {
            condition.location.as_ref().map(|location| (Arc::clone(&location.file), location.line))
        };
        self.problems.sort_by_cached_key(place);
    }

    fn unreadable(&mut self, name: &str, reason: String) {
        self.unreadable = true;
        self.problems.push(Condition::error(ObjectRef::new("file", name), "", reason, ""));
    }
}

/// The files that a path of the command line means.
fn files(path: &Path, findings: &mut Findings) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    match list(path) {
        Ok(names) => {
            let paths = names.into_iter().map(|name| path.join(name));
            let paths: Vec<PathBuf> = paths.filter(|path| !path.is_dir()).collect();
            if paths.is_empty() {
                let reason = "there is nothing in it to check".to_owned();
                findings.unreadable(&path.to_string_lossy(), reason);
            }
            paths
        }
        Err(error) => {
            findings.unreadable(&path.to_string_lossy(), error.to_string());
            Vec::new()
        }
    }
}

/// A speaker's file has none of what every manifest begins with, and something that only it has.
fn is_speaker_file(text: &str) -> bool {
    let Some(found) = keys(text) else { return false };
    let has = |keys: &[&str]| found.iter().any(|key| keys.contains(&&**key));
    !has(&["apiVersion", "kind"]) && has(&["asn", "router-id", "neighbors", "originate", "policies"])
}

/// The keys of the one map that a text is.
fn keys(text: &str) -> Option<Vec<String>> {
    let documents = documents(text).ok()?;
    let [document] = &documents[..] else { return None };
    let Value::Map(entries) = &document.value else { return None };
    Some(entries.iter().map(|entry| entry.key.clone()).collect())
}

/// The settings of an agent.
fn settings(name: &Arc<str>, text: &str, findings: &mut Findings) {
    for fault in env::check(name, text) {
        let SettingsFault::Key { flaw, .. } = fault else { continue };
        let warning = flaw.mistake.is_warning();
        findings.problems.push(Condition {
            object: ObjectRef::new("settings", "of the agent"),
            field: flaw.field.as_str().into(),
            reason: flaw.mistake.to_string().into(),
            remedy: if warning { "" } else { "with it the agent does not start" }.into(),
            severity: if warning { Severity::Warning } else { Severity::Error },
            location: Some(Location { file: Arc::clone(name), line: flaw.line.0 }),
        });
    }
}

fn speaker(name: &Arc<str>, text: &str, findings: &mut Findings) -> Option<SpeakerFile> {
    let mut report = |object: &ObjectRef, flaws: &[Flaw], remedy: &str| {
        findings.problems.extend(flaws.iter().map(|flaw| Condition {
            object: object.clone(),
            field: flaw.field.as_str().into(),
            reason: flaw.mistake.to_string().into(),
            remedy: remedy.into(),
            severity: if flaw.mistake.is_warning() { Severity::Warning } else { Severity::Error },
            location: Some(Location { file: Arc::clone(name), line: flaw.line.0 }),
        }));
    };
    match SpeakerFile::parse(text) {
        Err(flaws) => {
            report(&ObjectRef::new("speaker", "file"), &flaws, "with it nothing of the file counts");
            None
        }
        Ok(file) => {
            for neighbor in &file.refused {
                let object = ObjectRef::new("neighbor", neighbor.address.as_str());
                report(&object, &neighbor.flaws, "this neighbor would not run");
            }
            for neighbor in &file.doubtful {
                let object = ObjectRef::new("neighbor", neighbor.address.as_str());
                report(&object, &neighbor.flaws, "say accept, reject or a policy");
            }
            Some(file)
        }
    }
}

/// The nodes that manifests name.
fn nodes(changes: &[SourceChange]) -> impl Iterator<Item = &str> {
    changes
        .iter()
        .filter_map(|change| match change {
            SourceChange::Listed(Kind::Node, all) => Some(all.iter().map(|(name, _)| name.as_str())),
            SourceChange::Listed(..)
            | SourceChange::Put(..)
            | SourceChange::Gone(..)
            | SourceChange::Faults(_) => None,
        })
        .flatten()
}

/// What shows only when all objects are there, for each of the nodes.
fn together(
    changes: &[SourceChange],
    manifests: &Manifests,
    texts: &BTreeMap<Arc<str>, String>,
) -> Vec<Condition> {
    let mut nodes: Vec<&str> = nodes(changes).take(NODES).collect();
    if nodes.is_empty() {
        nodes.push("");
    }
    let mut found: BTreeMap<String, Condition> = BTreeMap::new();
    for node in nodes {
        // What the uplink is called shows only on the node.
        let uplink_names = vec!["uplink".into()];
        let mut engine = Engine::new(Config { vpp: None, uplink_names, ..Config::new(node.into()) });
        for event in changes.iter().cloned().filter_map(event) {
            if !matches!(event, Event::Fault(_)) {
                engine.handle(Instant::ZERO, event);
            }
        }
        // Some things are said when operations are asked for.
        engine.next_speaker_ops(Instant::ZERO, 0, &mut Vec::new());
        for condition in engine.conditions() {
            let mut condition = condition.clone();
            let place = manifests.place(condition.object.kind, &condition.object.name);
            // A node that no manifest names is no mistake of theirs.
            if place.is_none() && condition.object.kind == Kind::Node.name() {
                continue;
            }
            condition.location = place.map(|(file, line)| {
                let of_field = texts.get(&file).and_then(|text| field_line(text, line, &condition.field));
                Location { file, line: of_field.unwrap_or(line).0 }
            });
            found.insert(condition.to_string(), condition);
        }
    }
    found.into_values().collect()
}

/// The line of a field, or of the innermost part of it that is there, in the document that begins at a line.
fn field_line(text: &str, document: Line, field: &str) -> Option<Line> {
    let documents = documents(text).ok()?;
    let mut at = documents.iter().find(|tree| tree.line == document)?;
    let mut found = None;
    for part in field.split('.') {
        let Value::Map(entries) = &at.value else { break };
        let Some(entry) = entries.iter().find(|entry| entry.key == part) else { break };
        found = Some(entry.line);
        at = &entry.value;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings as text, file names without their folder.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let findings = check(&[dir.path().to_owned()]).findings;
        assert!(!findings.unreadable);
        let folder = format!("{}/", dir.path().display());
        findings.problems.iter().map(|problem| problem.to_string().replace(&folder, "")).collect()
    }

    const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: a, annotations: {projectcalico.org/IPv4Address: 192.0.2.1/24}}\n";

    #[test]
    fn what_is_right_gives_nothing() {
        let peer = "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {name: tor}\nspec: {peerIP: 192.0.2.254, asNumber: 65000}\n";
        let speaker = "asn: 65000\nrouter-id: 192.0.2.1\nneighbors:\n- {address: 192.0.2.2, asn: 65001, import: accept, export: accept}\n";
        assert_eq!(found(&[("a.yaml", NODE), ("b.yaml", peer), ("s.yaml", speaker)]), [""; 0]);
    }

    #[test]
    fn mistakes_of_one_object_and_of_several_together_have_their_place() {
        let peers = "\
apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {name: one}
spec: {peerIP: 192.0.2.254, asNumber: 65000, passwrd: x}
---
apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {name: two}
spec: {peerIP: 192.0.2.253, asNumber: 65000}
---
apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {name: three}
spec: {peerIP: 192.0.2.253, asNumber: 65001}
";
        assert_eq!(
            found(&[("a.yaml", NODE), ("peers.yaml", peers), ("x.yaml", "a: [")])
                .iter()
                .map(|text| text.split(" (").next().unwrap())
                .collect::<Vec<_>>(),
            [
                "peers.yaml:4: BGPPeer one spec.passwrd: unknown field; did you mean \"password\"?",
                "peers.yaml:6: BGPPeer two: BGPPeer three already has the session with 192.0.2.253",
                "x.yaml:1: file x.yaml: not valid YAML: unclosed bracket '['",
            ]
        );
    }

    #[test]
    fn what_objects_mean_together_is_told_at_the_line_of_its_field() {
        let peer = "\
apiVersion: projectcalico.org/v3
kind: BGPPeer
metadata: {name: one}
spec: {peerIP: 192.0.2.254, asNumber: 65000,
  filters: [a]}
";
        let found = found(&[("a.yaml", NODE), ("peers.yaml", peer)]);
        assert!(
            matches!(&found[..], [one] if one.starts_with("peers.yaml:5: BGPPeer one spec.filters: there is no BGPFilter a;")),
            "{found:?}"
        );
    }

    #[test]
    fn a_filters_mistakes_are_told_with_rule_and_line() {
        let filter = "\
apiVersion: projectcalico.org/v3
kind: BGPFilter
metadata: {name: edge}
spec:
  importV4:
  - {action: Accept, interface: eth0}
  - cidr: 10.0.0.0/8
    matchOperator: In
    prefixLength: {min: 24, max: 16}
    action: Reject
  exportV6:
  - cidr: fd00::/8
    matchOperator: In
    communities: {values: [\"1:1\", \"1:2\"]}
    action: Reject
";
        assert_eq!(
            found(&[("a.yaml", NODE), ("f.yaml", filter)]),
            [
                "f.yaml:9: BGPFilter edge spec.importV4[1].prefixLength: no prefix of the cidr has such a length, so the rule \
                 matches nothing",
                "f.yaml:14: BGPFilter edge spec.exportV6[0].communities: values must hold exactly one community; write a \
                 rule for each (exportV6 rule 1: without it the rest counts)",
            ]
        );
    }

    #[test]
    fn a_speaker_file_is_known_by_its_keys() {
        let text = "asn: 65000\nrouter-id: 192.0.2.1\nneighbors:\n- {address: 192.0.2.2, asn: 0}\n";
        assert_eq!(
            found(&[("s.yaml", text), ("t.yaml", "asn: 65000\n")]),
            [
                "s.yaml:4: neighbor 192.0.2.2 neighbors[0].asn: must be an AS number above 0, such as 65000 or 6.10, not \"0\" (this neighbor would not run)",
                "t.yaml:1: speaker file router-id: is required (with it nothing of the file counts)",
            ]
        );
    }

    #[test]
    fn the_settings_of_an_agent_are_known_by_their_keys() {
        let right = include_str!("../../../deploy/examples/agent.yaml");
        assert_eq!(found(&[("agent.yaml", right)]), [""; 0]);
        assert_eq!(
            found(&[("agent.yaml", "node: a\nvpp:\n  uplnk: eth0\nhealth: here\n")]),
            [
                "agent.yaml:3: settings of the agent vpp.uplnk: unknown field; did you mean \"uplink\"? (with it the agent does not start)",
                "agent.yaml:4: settings of the agent health: must be an address such as :9090 or 127.0.0.1:9090, or none, not \"here\" (with it the agent does not start)",
            ]
        );
    }

    #[test]
    fn a_neighbor_that_exchanges_nothing_is_doubtful() {
        let text = "asn: 65000\nrouter-id: 192.0.2.1\nneighbors:\n- {address: 192.0.2.2, asn: 65001, export: accept}\n";
        assert_eq!(
            found(&[("s.yaml", text)]),
            [
                "s.yaml:4: neighbor 192.0.2.2 neighbors[0]: nothing is accepted from it: an external neighbour needs import \
              and export (require-policy, RFC 8212) (say accept, reject or a policy)"
            ]
        );
    }

    #[test]
    fn nothing_is_no_clean_bill() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("empty.yaml"), "# nothing\n").unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        for name in ["empty.yaml", "folder"] {
            let findings = check(&[dir.path().join(name)]).findings;
            assert!(findings.unreadable, "{name}");
            assert!(findings.problems[0].to_string().contains("nothing in it to check"));
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_apart() {
        let findings = check(&["/nonexistent/a.yaml".into()]).findings;
        assert!(findings.unreadable);
        assert_eq!(findings.problems.len(), 1);
    }
}
