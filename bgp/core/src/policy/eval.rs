//! Running a program over a path.
//!
//! The result says what is to change; nothing is copied or changed here. A path that is accepted without edits keeps
//! its attribute number, so the usual case costs nothing but the tests.

use std::net::IpAddr;

use bgp_wire::attr::{Community, LargeCommunity};
use bgp_wire::{Asn, Nlri};
use smallvec::SmallVec;

use super::program::{Act, Cond, Default, Flow, Learned, Program};
use crate::rib::AttrSet;

/// What a program sees.
#[derive(Copy, Clone, Debug)]
pub struct Route<'a> {
    /// The prefix.
    pub nlri: Nlri,
    /// The attributes: as received on import, as selected on export.
    pub attrs: &'a AttrSet,
    /// Where the path came from.
    pub learned: Learned,
    /// The neighbour of the session: on import the one that sent the path, on export the one to be told.
    pub neighbor: IpAddr,
}

/// What a program says of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The path passes with these edits.
    Accept(Edits, Decider),
    /// It does not.
    Reject(Decider),
}

/// What decided about a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decider {
    /// A statement, counted from 1.
    Statement(usize),
    /// The default of the policy.
    Default,
}

/// What a program changes of a path. Empty edits leave the attribute set as it is.
#[derive(Clone, Debug, PartialEq, Eq, std::default::Default)]
pub struct Edits {
    /// The new MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// The new LOCAL_PREF.
    pub local_pref: Option<u32>,
    /// On export: this speaker is the next hop.
    pub next_hop_self: bool,
    /// What goes in front of the AS_PATH, in the order of the acts: the last one ends up leftmost.
    pub prepend: SmallVec<[(Asn, u8); 1]>,
    /// Communities to add that were not there.
    pub communities: SmallVec<[Community; 4]>,
    /// Large communities to add that were not there.
    pub large_communities: SmallVec<[LargeCommunity; 2]>,
    /// On import: the AS number that ONLY_TO_CUSTOMER gets (RFC 9234). No act of a policy sets it.
    pub only_to_customer: Option<Asn>,
}

impl Edits {
    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn act(&mut self, act: Act, attrs: &AttrSet) {
        match act {
            Act::SetMed(med) => self.med = Some(med),
            Act::SetLocalPref(local_pref) => self.local_pref = Some(local_pref),
            Act::NextHopSelf => self.next_hop_self = true,
            Act::Prepend(asn, times) => self.prepend.push((asn, times)),
            Act::AddCommunity(community) => {
                if !self.carries(attrs, community) {
                    self.communities.push(community);
                }
            }
            Act::AddLargeCommunity(community) => {
                if !self.carries_large(attrs, community) {
                    self.large_communities.push(community);
                }
            }
        }
    }

    /// Whether the path carries the community, as edited so far.
    fn carries(&self, attrs: &AttrSet, community: Community) -> bool {
        self.communities.contains(&community) || attrs.view().communities().any(|own| own == community)
    }

    fn carries_large(&self, attrs: &AttrSet, community: LargeCommunity) -> bool {
        self.large_communities.contains(&community)
            || attrs.view().large_communities().any(|own| own == community)
    }
}

/// Runs `program` over a path. Statements see what earlier ones changed.
#[must_use]
pub fn eval(program: &Program, route: &Route<'_>) -> Verdict {
    let mut edits = Edits::default();
    for (at, stmt) in program.stmts.iter().enumerate() {
        if !stmt.when.iter().all(|cond| holds(cond, route, &edits)) {
            continue;
        }
        for act in &stmt.apply {
            edits.act(*act, route.attrs);
        }
        match stmt.then {
            Flow::Accept => return Verdict::Accept(edits, Decider::Statement(at + 1)),
            Flow::Reject => return Verdict::Reject(Decider::Statement(at + 1)),
            Flow::Next => {}
        }
    }
    match program.default {
        Default::Accept => Verdict::Accept(edits, Decider::Default),
        Default::Reject => Verdict::Reject(Decider::Default),
    }
}

fn holds(cond: &Cond, route: &Route<'_>, edits: &Edits) -> bool {
    match cond {
        Cond::Prefix(set) => set.contains(&route.nlri),
        Cond::Neighbor(set) => set.contains(route.neighbor),
        Cond::Community(community) => edits.carries(route.attrs, *community),
        Cond::LargeCommunity(community) => edits.carries_large(route.attrs, *community),
        Cond::Learned(learned) => route.learned == *learned,
        Cond::Not(inner) => !holds(inner, route, edits),
    }
}

#[cfg(test)]
mod tests;
