//! FelixConfiguration objects → `Event::FelixConfig`.

use agent_core::event::{Change, Event};
use agent_core::model::{FelixConfig, FelixConfigName};

use crate::crd::ObjectName;

/// `None` for names that mean nothing, which reading the object has reported.
pub(super) fn key(name: &ObjectName) -> Option<FelixConfigName> {
    FelixConfigName::parse(name.as_str())
}

pub(super) fn event(change: Change<FelixConfigName, FelixConfig>) -> Event {
    Event::FelixConfig(change)
}
