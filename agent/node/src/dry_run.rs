//! What policies would do to the routes of a table that was recorded (MRT), or that a running process holds.
//!
//! Policies are those that the agent or the speaker itself would be told of: each path of the table goes through each of
//! them alone, as the only policy of its session. A path comes from the peer that the table names, over a session with
//! another AS where that peer's AS is not ours; what is told is told over a session with another AS. Interfaces of next
//! hops are not known, so that no condition on one holds.

mod outcome;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use bgp_core::command::Command;
use bgp_core::policy::{
    Condition, Decider, Direction, Learned, Library, Otherwise, PeerType, Pipeline, PolicyDef, PolicyName,
    Route, Verdict, eval,
};
use bgp_core::rib::AttrSet;
use bgp_core::{Asn, Family, FamilySet, Label, Nlri};
use bgp_wire::mrt::{Body, Peer, TableAttrs};

use crate::inspect::answer::then;
use crate::recording::{Recording, RecordingError};

pub(crate) use outcome::{Outcome, Rule};

/// Policies to be tried.
pub(crate) struct DryRun {
    /// Our AS number, where it is known.
    asn: Option<Asn>,
    trials: Vec<Trial>,
    /// Peers of the table being read.
    peers: Vec<Peer>,
    /// Whether prefixes are kept, or only counted.
    named: bool,
}

/// One policy in one direction.
struct Trial {
    /// What it is called: the object that it was made from, or its own name.
    object: String,
    policy: PolicyName,
    def: PolicyDef,
    direction: Direction,
    pipeline: Pipeline,
    /// By family.
    tallies: BTreeMap<Family, Tally>,
}

/// What became of the paths of one family.
#[derive(Default)]
struct Tally {
    paths: u64,
    accepted: u64,
    rejected: u64,
    undecided: u64,
    changed: u64,
    /// By the policy, which may be one that was called, and the statement; 0 is the policy's default.
    rules: BTreeMap<(PolicyName, usize), Matched>,
}

#[derive(Default)]
struct Matched {
    label: Option<String>,
    paths: u64,
    changed: u64,
    prefixes: Vec<Nlri>,
}

/// What is tried.
pub(crate) struct Subject {
    /// What it is called.
    pub(crate) object: String,
    /// The policy.
    pub(crate) policy: PolicyName,
    /// The direction in which it runs.
    pub(crate) direction: Direction,
}

/// A path of a table.
struct TablePath<'a> {
    nlri: Nlri,
    label: Option<Label>,
    peer: (IpAddr, Asn),
    attrs: TableAttrs<'a>,
}

/// What was wrong with a table.
#[derive(Debug, Default)]
pub(crate) struct Flaws {
    /// Records that could not be read.
    pub(crate) records: u64,
    /// Paths whose attributes could not.
    pub(crate) paths: u64,
    /// The first of them, in words.
    pub(crate) first: Option<String>,
}

impl DryRun {
    /// For policies among those that a speaker is told of. What they name, of sets and policies, is found there too; what the
    /// speaker would refuse is left out, as `check` tells of it elsewhere.
    pub(crate) fn new(
        commands: impl IntoIterator<Item = Command>,
        subjects: impl IntoIterator<Item = Subject>,
        named: bool,
    ) -> Self {
        let mut library = Library::new();
        let mut asn = None;
        for command in commands {
            if let Command::PutSet(name, def) = &command {
                let _ = library.put_set(name, def);
            } else if let Command::PutPolicy(name, def) = command {
                let _ = library.put_policy(&name, def);
            } else if let Command::PutIdentity { asn: own, .. } = command {
                asn = Some(own);
            }
        }
        let trial = |subject: Subject| {
            let (def, _) = library.policy(&subject.policy)?;
            let pipeline = library.pipeline([&subject.policy], Otherwise::Accept).ok()?;
            let tallies = families(def).iter().map(|family| (family, Tally::default())).collect();
            let Subject { object, policy, direction } = subject;
            Some(Trial { object, policy, def: def.clone(), direction, pipeline, tallies })
        };
        let trials = subjects.into_iter().filter_map(trial).filter(|trial| !trial.def.statements.is_empty());
        Self { asn, trials: trials.collect(), peers: Vec::new(), named }
    }

    /// The same for a speaker in this AS.
    pub(crate) fn in_as(self, asn: Asn) -> Self {
        Self { asn: Some(asn), ..self }
    }

    /// Whether there is nothing to be tried.
    pub(crate) const fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// Runs over a table.
    pub(crate) fn table(&mut self, mut recording: Recording) -> Result<Flaws, std::io::Error> {
        let mut flaws = Flaws::default();
        while let Some(record) = recording.next() {
            let body = match record {
                Ok(record) => record.body,
                Err(RecordingError::Io(error)) => return Err(error),
                Err(RecordingError::Record(error)) => {
                    flaws.records += 1;
                    flaws.first.get_or_insert_with(|| error.to_string());
                    continue;
                }
            };
            match body {
                Body::PeerIndex(index) => self.peers = index.peers().collect(),
                Body::Rib(rib) => {
                    for entry in rib.entries() {
                        let Some(peer) = self.peers.get(usize::from(entry.peer)) else {
                            flaws.paths += 1;
                            flaws.first.get_or_insert_with(|| {
                                format!(
                                    "a path to {}: there is no peer {} in the table",
                                    rib.nlri, entry.peer
                                )
                            });
                            continue;
                        };
                        let peer = (peer.address, peer.asn);
                        let path = TablePath { nlri: rib.nlri, label: rib.label, peer, attrs: entry.attrs };
                        self.path(&path, &mut flaws);
                    }
                }
                Body::OldEntry(entry) => {
                    let peer = (entry.peer, entry.peer_asn);
                    let path = TablePath { nlri: entry.nlri, label: None, peer, attrs: entry.attrs };
                    self.path(&path, &mut flaws);
                }
                Body::Message(_) | Body::StateChange(_) | Body::Other { .. } => {}
            }
        }
        Ok(flaws)
    }

    fn path(&mut self, path: &TablePath<'_>, flaws: &mut Flaws) {
        let fault = match path.attrs.decode() {
            Ok(decoded) => match decoded.treat_as_withdraw {
                None => {
                    let hop = decoded.next_hop.filter(|hop| !hop.address().is_unspecified());
                    let set = AttrSet::new(&decoded.canonical, hop, decoded.facts).with_label(path.label);
                    return self.run(path, &set);
                }
                Some(fault) => fault.to_string(),
            },
            Err(error) => error.to_string(),
        };
        flaws.paths += 1;
        flaws.first.get_or_insert_with(|| format!("a path to {}: {fault}", path.nlri));
    }

    fn run(&mut self, path: &TablePath<'_>, attrs: &AttrSet) {
        // Whoever recorded the table is in it with an unspecified address.
        let from = Some(path.peer).filter(|(address, _)| !address.is_unspecified());
        let own = from.is_none().then_some(path.peer.1);
        let asn = self.asn.or(own).or_else(|| self.peers.iter().find_map(own_asn));
        let learned = match from {
            None => Learned::Local,
            Some((_, theirs)) if Some(theirs) == asn => Learned::Internal,
            Some(_) => Learned::External,
        };
        let front = asn.map(|asn| [asn]);
        for trial in &mut self.trials {
            let Some(tally) = trial.tallies.get_mut(&path.nlri.family()) else { continue };
            let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
            let (neighbor, peer_type, front) = match (trial.direction, from) {
                // Own routes meet no import policy.
                (Direction::Import, None) => continue,
                (Direction::Import, Some((address, _))) => {
                    let external = learned == Learned::External;
                    (address, if external { PeerType::External } else { PeerType::Internal }, &[][..])
                }
                (Direction::Export, _) => {
                    (nobody, PeerType::External, front.as_ref().map(|front| &front[..]).unwrap_or_default())
                }
            };
            let verdict = eval(
                &trial.pipeline,
                &Route {
                    direction: trial.direction,
                    nlri: path.nlri,
                    attrs,
                    learned,
                    neighbor,
                    peer_type,
                    front,
                    interfaces: None,
                },
            );
            tally.count(&verdict, path.nlri, self.named);
        }
    }

    /// What became of all paths.
    pub(crate) fn outcomes(self) -> Vec<Outcome> {
        self.trials.into_iter().flat_map(Trial::outcomes).collect()
    }
}

fn own_asn(peer: &Peer) -> Option<Asn> {
    peer.address.is_unspecified().then_some(peer.asn)
}

/// The families that a policy is about: those of its statements, or all where one of them does not say.
fn families(def: &PolicyDef) -> FamilySet {
    let mut all = FamilySet::EMPTY;
    for statement in &def.statements {
        match statement.when.iter().find_map(named_families) {
            Some(families) => all.extend(families.iter().copied()),
            None => return FamilySet::ALL,
        }
    }
    all
}

impl Tally {
    fn count(&mut self, verdict: &Verdict<'_>, nlri: Nlri, named: bool) {
        self.paths += 1;
        let (decider, changed) = match verdict {
            Verdict::Accept(edits, decider) => (*decider, !edits.is_empty()),
            Verdict::Reject(decider) => (*decider, false),
        };
        let Some(rule) = self.rule(decider) else {
            self.undecided += 1;
            self.changed += u64::from(changed);
            return;
        };
        rule.paths += 1;
        rule.changed += u64::from(changed);
        // Paths of one destination come together.
        if named && rule.prefixes.last() != Some(&nlri) {
            rule.prefixes.push(nlri);
        }
        self.changed += u64::from(changed);
        match verdict {
            Verdict::Accept(..) => self.accepted += 1,
            Verdict::Reject(_) => self.rejected += 1,
        }
    }

    fn rule(&mut self, decider: Decider<'_>) -> Option<&mut Matched> {
        let key = (decider.policy()?.clone(), decider.statement().unwrap_or(0));
        let rule = self.rules.entry(key).or_default();
        if rule.label.is_none() {
            rule.label = decider.label().map(str::to_owned);
        }
        Some(rule)
    }
}

impl Trial {
    /// One outcome for each family that the policy is about.
    fn outcomes(self) -> Vec<Outcome> {
        let Self { object, policy, def, direction, tallies, .. } = self;
        let named = families(&def) != FamilySet::ALL;
        tallies
            .into_iter()
            // Of families that nobody has named, those that the table has.
            .filter(|(_, tally)| named || tally.paths > 0)
            .map(|(family, mut tally)| {
                let mut rules = Vec::new();
                for (at, statement) in def.statements.iter().enumerate() {
                    if !concerns(statement.when.iter(), family) {
                        continue;
                    }
                    let matched = tally.rules.remove(&(policy.clone(), at + 1)).unwrap_or_default();
                    let name = statement.label.as_deref().map(str::to_owned);
                    let name = name.unwrap_or_else(|| format!("statement {}", at + 1));
                    rules.push(rule(name, then(&statement.then), matched));
                }
                // What called policies have decided, and defaults.
                for ((name, at), matched) in std::mem::take(&mut tally.rules) {
                    let words = match (at, name == policy) {
                        (0, true) => "default".to_owned(),
                        (0, false) => format!("policy {name}, default"),
                        (at, _) => format!("policy {name}, statement {at}"),
                    };
                    let words = matched.label.clone().unwrap_or(words);
                    rules.push(rule(words, String::new(), matched));
                }
                Outcome {
                    object: object.clone(),
                    direction: crate::inspect::answer::direction(direction).to_owned(),
                    family: family.name().to_owned(),
                    paths: tally.paths,
                    accepted: tally.accepted,
                    rejected: tally.rejected,
                    undecided: tally.undecided,
                    changed: tally.changed,
                    rules,
                }
            })
            .collect()
    }
}

fn rule(rule: String, then: String, matched: Matched) -> Rule {
    let prefixes = matched.prefixes.iter().map(ToString::to_string).collect();
    Rule { rule, then, paths: matched.paths, changed: matched.changed, prefixes }
}

/// Whether a statement with these conditions may be about a family.
fn concerns<'a>(when: impl Iterator<Item = &'a Condition>, family: Family) -> bool {
    when.filter_map(named_families).all(|families| families.contains(&family))
}

fn named_families(condition: &Condition) -> Option<&[Family]> {
    if let Condition::Family(families) = condition { Some(families) } else { None }
}

#[cfg(test)]
mod tests;
