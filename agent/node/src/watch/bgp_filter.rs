//! BGPFilter objects → `Event::Filter`.

use agent_core::event::{Change, Event};
use agent_core::model::{Filter, FilterName};

use crate::crd::ObjectName;

pub(super) fn key(name: &ObjectName) -> FilterName {
    name.as_str().into()
}

/// Reading a filter gives the domain's own value: a rule has no meaning beyond its fields.
pub(super) fn value(filter: &Filter) -> Filter {
    filter.clone()
}

pub(super) fn event(change: Change<FilterName, Filter>) -> Event {
    Event::Filter(change)
}
