//! Who else writes into the same VPP, as far as VPP can tell.
//!
//! VPP doesn't say who its clients are or what they did. But a client that wants its routes to be its own makes a FIB source; one
//! that appears while this agent runs is somebody who has just begun to write routes, and a second one with our name is another agent
//! of ours. And what is changed anew after an audit put it right is changed by somebody. The embedder knows more: see
//! [`Event::Writer`](crate::Event::Writer).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::audit::Audit;
use crate::event::{Dump, FibSourceId};
use crate::model::{Condition, ObjectRef};

/// So many disputed objects are named.
const NAMED: usize = 3;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    /// FIB sources by name, as first read over this connection.
    sources: Option<BTreeMap<Arc<str>, usize>>,
    /// We asked for our source since VPP was last read: one more with our name may be it.
    asked: bool,
    ours: usize,
    /// Names of sources that appeared since.
    appeared: BTreeMap<Arc<str>, usize>,
    /// Another source with our name did.
    twin: bool,
    /// What has been said.
    told: Vec<Condition>,
}

impl Rivals {
    /// The connection is gone: the next VPP may be another one.
    pub(super) fn forget(&mut self) {
        let told = std::mem::take(&mut self.told);
        *self = Self { told, ..Self::default() };
    }

    /// Our FIB source is being asked for.
    pub(super) const fn asks_for_source(&mut self) {
        self.asked = true;
    }

    /// VPP has been read.
    pub(super) fn read(&mut self, dump: &Dump, ours: &str) {
        let mut now: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for name in &dump.source_names {
            *now.entry(Arc::clone(name)).or_default() += 1;
        }
        let with_our_name = now.remove(ours).unwrap_or(0);
        match &self.sources {
            None => self.sources = Some(now),
            Some(first) => {
                let more = |(name, count): (Arc<str>, usize)| {
                    let more = count.saturating_sub(first.get(&name).copied().unwrap_or(0));
                    (more > 0).then_some((name, more))
                };
                self.appeared = now.into_iter().filter_map(more).collect();
                self.twin |= with_our_name > self.ours && !self.asked && self.ours > 0;
            }
        }
        self.ours = with_our_name;
        self.asked = false;
    }

    /// What is to be said now, where that is something else than before.
    pub(super) fn news(
        &mut self,
        audit: Option<&Audit>,
        ours: Option<FibSourceId>,
    ) -> Option<Vec<Condition>> {
        let mut conditions = Vec::new();
        let vpp = || ObjectRef::new("VPP", "other writers");
        if let Some(audit) = audit.filter(|audit| audit.disputed > 0) {
            let names: Vec<String> =
                audit.objects.iter().take(NAMED.min(audit.disputed)).map(ToString::to_string).collect();
            conditions.push(Condition::warning(
                vpp(),
                "",
                format!(
                    "changed anew after it had been put right, objects: {} ({}): another client of VPP writes them, too, or this \
                     VPP does not keep them",
                    audit.disputed,
                    names.join(", ")
                ),
                "stop the other one; `peregrine vpp --drift` names the objects",
            ));
        }
        if !self.appeared.is_empty() {
            let names: Vec<&str> = self.appeared.keys().map(|name| &**name).collect();
            conditions.push(Condition::warning(
                vpp(),
                "",
                format!("another client of VPP has begun to write routes, as FIB source {}", names.join(", ")),
                "see that it writes no routes for pods and nodes; VPP prefers the source with the smaller priority",
            ));
        }
        if self.twin {
            let own = ours.map(|id| format!(" beside ours, number {}", id.0)).unwrap_or_default();
            conditions.push(Condition::error(
                vpp(),
                "",
                format!("there is a second FIB source with our name{own}: another peregrine agent writes into this VPP"),
                "stop one of the two agents",
            ));
        }
        if conditions == self.told {
            return None;
        }
        self.told.clone_from(&conditions);
        Some(conditions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(names: &[&str]) -> Dump {
        Dump { source_names: names.iter().map(|name| Arc::from(*name)).collect(), ..Dump::default() }
    }

    fn said(rivals: &mut Rivals) -> Vec<String> {
        rivals
            .news(None, None)
            .unwrap_or_default()
            .iter()
            .map(|condition| condition.reason.to_string())
            .collect()
    }

    #[test]
    fn a_source_that_appears_is_somebody_who_begins_to_write() {
        let mut rivals = Rivals::default();
        rivals.read(&dump(&["API", "cnat", "us"]), "us");
        assert_eq!(said(&mut rivals), [""; 0]);
        rivals.read(&dump(&["API", "cnat", "us", "them"]), "us");
        assert_eq!(
            said(&mut rivals),
            ["another client of VPP has begun to write routes, as FIB source them"]
        );
        rivals.read(&dump(&["API", "cnat", "us", "them"]), "us");
        assert_eq!(rivals.news(None, None), None, "it is said once");
        rivals.forget();
        assert_eq!(rivals.news(None, None), Some(Vec::new()), "the next VPP may be another one");
        rivals.read(&dump(&["API", "cnat", "us", "them"]), "us");
        assert_eq!(rivals.news(None, None), None, "who was there before is no news");
    }

    #[test]
    fn a_twin_is_told_from_our_own_second_attempt() {
        let mut rivals = Rivals::default();
        rivals.read(&dump(&["API"]), "us");
        rivals.asks_for_source();
        rivals.read(&dump(&["API", "us"]), "us");
        rivals.asks_for_source();
        rivals.read(&dump(&["API", "us", "us"]), "us");
        assert_eq!(rivals.news(None, None), None);
        rivals.read(&dump(&["API", "us", "us", "us"]), "us");
        let told = said(&mut rivals);
        assert!(told.first().is_some_and(|told| told.contains("another peregrine agent")), "{told:?}");
    }
}
