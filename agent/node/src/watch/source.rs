//! What every source of objects tells, whether it is a folder or an API server: complete lists, changes, and faults.

use std::sync::Arc;

use agent_core::event::Change;
use agent_core::model::Condition;

use crate::crd::{Kind, Object, ObjectName};

/// One piece of news from a source.
#[derive(Clone, Debug)]
pub(crate) enum SourceChange {
    /// All objects of a kind: what isn't listed is gone.
    Listed(Kind, Vec<(ObjectName, Arc<Object>)>),
    /// An object appeared or changed.
    Put(ObjectName, Arc<Object>),
    /// An object is gone.
    Gone(Kind, ObjectName),
    /// What is wrong with a unit of reading, such as a file.
    Faults(Change<Arc<str>, Vec<Condition>>),
}
