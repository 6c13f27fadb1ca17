//! BlockAffinity objects → `Event::Affinity`.

use agent_core::event::{Change, Event};
use agent_core::model::{Affinity, AffinityName, AffinityState};

use crate::crd::{self, BlockAffinity, ObjectName};

pub(super) fn key(name: &ObjectName) -> AffinityName {
    name.as_str().into()
}

pub(super) fn value(row: &BlockAffinity) -> Affinity {
    Affinity {
        cidr: row.cidr,
        node: row.node.as_str().into(),
        state: match row.state {
            crd::AffinityState::Confirmed => AffinityState::Confirmed,
            crd::AffinityState::Pending => AffinityState::Pending,
            crd::AffinityState::PendingDeletion => AffinityState::PendingDeletion,
        },
        host: !row.virtual_owner,
        deleted: row.deleted,
    }
}

pub(super) fn event(change: Change<AffinityName, Affinity>) -> Event {
    Event::Affinity(change)
}
