//! What a set of files says, put together: which objects are in force, what changed since it was last told, and what is
//! wrong where.
//!
//! Pure: files come in as text, changes come out. The rules:
//! * a file that doesn't parse counts with its last content that did;
//! * an object with a mistake counts with its last version that had none; a filter that had none before counts without the
//!   rules that are mistaken;
//! * a file with a document that can't be told keeps the objects it held, as the document may be one of them;
//! * of two objects with one name the first counts, in the order of file names and lines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_core::event::Change;
use agent_core::model::{Condition, Location, ObjectRef, Severity};

use super::source::SourceChange;
use crate::crd::{self, Kind, Object, ObjectName};
use crate::yaml::{Flaw, Line, documents};

/// An object's kind and name.
type Id = (Kind, ObjectName);
/// Objects in force.
type Objects = BTreeMap<Id, Arc<Object>>;
/// What is wrong, by file.
type Conditions = BTreeMap<Arc<str>, Vec<Condition>>;

/// The files and what was last told of them.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    files: BTreeMap<Arc<str>, File>,
    in_force: Objects,
    /// Those of them that count without their mistaken part.
    partial: BTreeSet<Id>,
    conditions: Conditions,
    listed: bool,
}

#[derive(Debug, Default)]
struct File {
    places: Vec<Place>,
    /// Objects of the last content that may hide behind a document that can't be told.
    held: BTreeSet<Id>,
    /// Why the newest content doesn't count.
    unread: Option<(Option<Line>, String)>,
}

/// A document of a file.
#[derive(Debug)]
struct Place {
    id: Option<Id>,
    line: Line,
    object: Option<Arc<Object>>,
    /// What counts of a mistaken object that was never whole.
    rest: Option<Arc<Object>>,
    flaws: Vec<Flaw>,
}

impl Manifests {
    /// A file has this content now.
    pub(crate) fn put(&mut self, name: &Arc<str>, text: &str) {
        match documents(text) {
            Ok(documents) => {
                let file = self.files.entry(Arc::clone(name)).or_default();
                let places: Vec<Place> = documents.iter().flat_map(crd::decode).map(Place::from).collect();
                if places.iter().any(|place| place.id.is_none()) {
                    file.held.extend(file.places.iter().filter_map(|place| place.id.clone()));
                } else {
                    file.held.clear();
                }
                file.places = places;
                file.unread = None;
            }
            Err(error) => self.unreadable(name, Some(error.line()), error.to_string()),
        }
    }

    /// A file is there but can't be read; its last content stays.
    pub(crate) fn unreadable(&mut self, name: &Arc<str>, line: Option<Line>, reason: String) {
        self.files.entry(Arc::clone(name)).or_default().unread = Some((line, reason));
    }

    /// A file has gone or become empty, perhaps for a moment only: what it gave stays in force until it is put or removed,
    /// unless another file gives it.
    pub(crate) fn doubt(&mut self, name: &str) {
        if let Some(file) = self.files.get_mut(name) {
            file.held.extend(file.places.drain(..).filter_map(|place| place.id));
            file.unread = None;
        }
    }

    /// Whether a file gives any object.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.files.get(name).is_some_and(|file| !file.places.is_empty() || !file.held.is_empty())
    }

    /// Whether a text has nothing but blanks and comments.
    pub(crate) fn says_nothing(text: &str) -> bool {
        text.lines().map(str::trim).all(|line| line.is_empty() || line == "---" || line.starts_with('#'))
    }

    /// A file is gone.
    pub(crate) fn remove(&mut self, name: &str) {
        self.files.remove(name);
    }

    /// Where an object is given: the file and the line.
    pub(crate) fn place(&self, kind: &str, name: &str) -> Option<(Arc<str>, Line)> {
        let is = |place: &&Place| {
            place.id.as_ref().is_some_and(|(of, called)| of.name() == kind && called.as_str() == name)
        };
        self.files.iter().find_map(|(file, content)| {
            content.places.iter().find(is).map(|place| (Arc::clone(file), place.line))
        })
    }

    /// What is to be told since the last call. The first call tells complete lists of every kind.
    pub(crate) fn settle(&mut self) -> Vec<SourceChange> {
        let (in_force, partial, conditions) = self.judge();
        let mut changes = Vec::new();
        if self.listed {
            for (id, object) in &in_force {
                if self.in_force.get(id).is_none_or(|told| told != object) {
                    changes.push(SourceChange::Put(id.1.clone(), Arc::clone(object)));
                }
            }
            for id in self.in_force.keys().filter(|id| !in_force.contains_key(id)) {
                changes.push(SourceChange::Gone(id.0, id.1.clone()));
            }
        } else {
            self.listed = true;
            for kind in Kind::ALL {
                let objects = in_force.iter().filter(|((of, _), _)| *of == kind);
                let objects = objects.map(|((_, name), object)| (name.clone(), Arc::clone(object))).collect();
                changes.push(SourceChange::Listed(kind, objects));
            }
        }
        for (file, found) in &conditions {
            if self.conditions.get(file) != Some(found) {
                changes.push(SourceChange::Faults(Change::Upsert(Arc::clone(file), found.clone())));
            }
        }
        for file in self.conditions.keys().filter(|file| !conditions.contains_key(*file)) {
            changes.push(SourceChange::Faults(Change::Delete(Arc::clone(file))));
        }
        self.in_force = in_force;
        self.partial = partial;
        self.conditions = conditions;
        changes
    }

    fn judge(&self) -> (Objects, BTreeSet<Id>, Conditions) {
        let mut in_force = Objects::new();
        let mut partial = BTreeSet::new();
        let mut owners: BTreeMap<&Id, (&Arc<str>, Line)> = BTreeMap::new();
        let mut conditions = Conditions::new();
        for (name, file) in &self.files {
            let mut found = Vec::new();
            if let Some((line, reason)) = &file.unread {
                let remedy = if file.places.is_empty() { "" } else { "its last good content stays in force" };
                let line = line.map_or(0, |line| line.0);
                let object = ObjectRef::new("file", name);
                found.push(condition(object, "", reason, remedy, Severity::Error, name, line));
            }
            for place in &file.places {
                let Some(id) = &place.id else {
                    place.report(name, "", &mut found);
                    continue;
                };
                if let Some((first, line)) = owners.get(id) {
                    let reason = format!("is already given by {first}:{line}");
                    let remedy = "only the first one counts; delete or rename one of them";
                    let object = ObjectRef::new(id.0.name(), id.1.as_str());
                    found.push(condition(object, "", &reason, remedy, Severity::Error, name, place.line.0));
                    continue;
                }
                owners.insert(id, (name, place.line));
                let good = self.in_force.get(id).filter(|_| !self.partial.contains(id));
                let version = place.object.as_ref().or(good).or(place.rest.as_ref());
                if let Some(version) = version {
                    in_force.insert(id.clone(), Arc::clone(version));
                }
                let remedy = match (&place.object, good, &place.rest) {
                    (Some(_), ..) => "",
                    (None, Some(_), _) => "its last good version stays in force",
                    (None, None, Some(_)) => {
                        partial.insert(id.clone());
                        "without it the rest counts"
                    }
                    (None, None, None) => "it has no effect until this is put right",
                };
                place.report(name, remedy, &mut found);
            }
            if !found.is_empty() {
                conditions.insert(Arc::clone(name), found);
            }
        }
        // Last, so that an object that moved to another file comes from there.
        for id in self.files.values().flat_map(|file| &file.held) {
            if let (false, Some(version)) = (in_force.contains_key(id), self.in_force.get(id)) {
                in_force.insert(id.clone(), Arc::clone(version));
                if self.partial.contains(id) {
                    partial.insert(id.clone());
                }
            }
        }
        (in_force, partial, conditions)
    }
}

impl From<crd::Decoded> for Place {
    fn from(decoded: crd::Decoded) -> Self {
        let (object, rest) = (decoded.object.map(Arc::new), decoded.rest.map(Arc::new));
        Self { id: decoded.id, line: decoded.line, object, rest, flaws: decoded.flaws }
    }
}

impl Place {
    fn report(&self, file: &Arc<str>, remedy: &str, found: &mut Vec<Condition>) {
        let object = match &self.id {
            Some((kind, name)) => ObjectRef::new(kind.name(), name.as_str()),
            None => ObjectRef::new("document", format!("at line {}", self.line)),
        };
        for flaw in &self.flaws {
            let (severity, remedy) =
                if flaw.mistake.is_warning() { (Severity::Warning, "") } else { (Severity::Error, remedy) };
            let reason = flaw.mistake.to_string();
            let rule = if remedy.is_empty() || object.kind != Kind::BgpFilter.name() {
                None
            } else {
                crd::rule_of(&flaw.field).map(|rule| format!("{rule}: {remedy}"))
            };
            let remedy = rule.as_deref().unwrap_or(remedy);
            found.push(condition(object.clone(), &flaw.field, &reason, remedy, severity, file, flaw.line.0));
        }
    }
}

fn condition(
    object: ObjectRef,
    field: &str,
    reason: &str,
    remedy: &str,
    severity: Severity,
    file: &Arc<str>,
    line: u32,
) -> Condition {
    let location = Some(Location { file: Arc::clone(file), line });
    Condition {
        object,
        field: field.into(),
        reason: reason.into(),
        remedy: remedy.into(),
        severity,
        location,
    }
}

#[cfg(test)]
mod tests;
