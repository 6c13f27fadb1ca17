//! What is wrong with an object, said so that a person can put it right.

use std::fmt;
use std::sync::Arc;

/// One problem of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// The object.
    pub object: ObjectRef,
    /// Path of the field inside the object, such as `spec.peerIP`; empty where the whole object is meant.
    pub field: Arc<str>,
    /// What is wrong.
    pub reason: Arc<str>,
    /// What would put it right.
    pub remedy: Arc<str>,
    /// Whether the object, or this part of it, has no effect.
    pub severity: Severity,
    /// Where the object was read, if it came from a file.
    pub location: Option<Location>,
}

impl Condition {
    /// A condition that makes a field, or the object, have no effect.
    #[must_use]
    pub fn error(object: ObjectRef, field: &str, reason: impl AsRef<str>, remedy: impl AsRef<str>) -> Self {
        Self {
            object,
            field: field.into(),
            reason: reason.as_ref().into(),
            remedy: remedy.as_ref().into(),
            severity: Severity::Error,
            location: None,
        }
    }

    /// A condition that is worth knowing; the object has its effect.
    #[must_use]
    pub fn warning(object: ObjectRef, field: &str, reason: impl AsRef<str>, remedy: impl AsRef<str>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(object, field, reason, remedy) }
    }

    /// What is wrong, without what would put it right: for when that has been done.
    #[must_use]
    pub fn stated(&self) -> Self {
        Self { remedy: "".into(), ..self.clone() }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "{}", self.object)?;
        if !self.field.is_empty() {
            write!(f, " {}", self.field)?;
        }
        write!(f, ": {}", self.reason)?;
        if !self.remedy.is_empty() {
            write!(f, " ({})", self.remedy)?;
        }
        Ok(())
    }
}

/// An object by kind and name, as users know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Kind, such as `BGPPeer`.
    pub kind: &'static str,
    /// Name; for what is not a Kubernetes object, its address or prefix.
    pub name: Arc<str>,
}

impl ObjectRef {
    /// The object of a kind with a name.
    #[must_use]
    pub fn new(kind: &'static str, name: impl AsRef<str>) -> Self {
        Self { kind, name: name.as_ref().into() }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// How much a problem matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The object has its effect all the same.
    Warning,
    /// The object, or the named part of it, has no effect; what was in force before stays.
    Error,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Path of the file.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}
