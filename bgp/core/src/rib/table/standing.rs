//! How each path of a destination fared in the decision: worked out anew when somebody asks, so that no path has to carry it.

use std::fmt;
use std::net::IpAddr;

use bgp_wire::RouterId;
use bgp_wire::attr::Origin;
use smallvec::SmallVec;

use super::decide::{candidate, is_usable};
use super::{Candidates, Context, DestId, Table, TableKey};
use crate::rib::decision::{self, Candidate, Rung};
use crate::rib::nexthop::UNREACHABLE;
use crate::rib::path::{Path, PathRejected};

/// How a path fared in the decision.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the best one.
    Best,
    /// It is used beside the best one.
    Beside,
    /// A rung of the ladder removed it.
    Lost(Loss),
    /// It takes no part: it was not let in.
    Rejected(PathRejected),
    /// It takes no part: the embedder says that its next hop cannot be reached.
    Unreachable,
    /// It takes no part: its neighbour has gone, and it is about to be removed.
    Gone,
}

/// What a path lost by.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The rung that removed it.
    pub rung: Rung,
    /// What it had there.
    pub own: RungValue,
    /// What a path had there that stayed.
    pub better: RungValue,
}

/// What a rung compares of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RungValue {
    /// A number.
    Number(u32),
    /// Nothing.
    Missing,
    /// Whether it is originated here.
    Own(bool),
    /// Whether it is long-lived stale.
    LongLivedStale(bool),
    /// Whether it is from an external neighbour.
    External(bool),
    /// ORIGIN.
    Origin(Origin),
    /// For how many seconds it has been known.
    Age(u32),
    /// An identifier.
    RouterId(RouterId),
    /// An address.
    Address(IpAddr),
}

impl fmt::Display for RungValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Missing => f.write_str("none"),
            Self::Own(own) => f.write_str(if *own { "own" } else { "learned" }),
            Self::LongLivedStale(stale) => f.write_str(if *stale { "stale" } else { "fresh" }),
            Self::External(external) => f.write_str(if *external { "external" } else { "internal" }),
            Self::Origin(origin) => origin.fmt(f),
            Self::Age(seconds) => write!(f, "{seconds}s"),
            Self::RouterId(id) => id.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl Candidate {
    fn value(&self, rung: Rung, now: u32) -> RungValue {
        match rung {
            Rung::Only => RungValue::Missing,
            Rung::Local => RungValue::Own(self.local),
            Rung::LongLivedStale => RungValue::LongLivedStale(self.long_lived_stale),
            Rung::LocalPref => RungValue::Number(self.local_pref),
            Rung::AsPathLength => RungValue::Number(self.as_path_len),
            Rung::Origin => RungValue::Origin(self.origin),
            Rung::Med => self.med.map_or(RungValue::Missing, RungValue::Number),
            Rung::External => RungValue::External(self.external),
            Rung::InteriorCost => RungValue::Number(self.cost),
            Rung::Oldest => RungValue::Age(now.saturating_sub(self.since)),
            Rung::RouterId => RungValue::RouterId(self.router_id),
            Rung::ClusterList => RungValue::Number(u32::from(self.cluster_len)),
            Rung::PeerAddress => RungValue::Address(self.address),
            Rung::PathId => RungValue::Number(self.path_id.0),
        }
    }
}

impl<K: TableKey> Table<K> {
    /// All paths of a destination, the best one first, each with how it fared. `now` is in seconds of the embedder's clock.
    pub fn standings(&self, id: DestId, now: u32, cx: &Context<'_>) -> SmallVec<[(Path, Standing); 4]> {
        let has_best = self.best(id).is_some();
        let mut candidates = Candidates::new();
        let mut places: SmallVec<[usize; 4]> = SmallVec::new();
        let paths = self.paths(id).enumerate().map(|(at, path)| {
            let standing = match (path.rejected(), path.post) {
                (Some(why), _) => Standing::Rejected(why),
                (None, Some(post)) if is_usable::<K>(path, cx) => {
                    candidates.push(candidate(path, post, cx));
                    places.push(at);
                    if at == 0 && has_best { Standing::Best } else { Standing::Beside }
                }
                (None, Some(post)) if cx.attrs.cost(post) == UNREACHABLE => Standing::Unreachable,
                (None, _) => Standing::Gone,
            };
            (*path, standing)
        });
        let mut paths: SmallVec<[(Path, Standing); 4]> = paths.collect();
        let losses = decision::losses(&self.settings, &candidates);
        for (candidate, loss) in losses.into_iter().enumerate() {
            let (path, standing) = &mut paths[places[candidate]];
            if let Some((rung, better)) = loss
                && *standing == Standing::Beside
                && !path.is_used()
            {
                let value = |at: usize| candidates[at].value(rung, now);
                *standing = Standing::Lost(Loss { rung, own: value(candidate), better: value(better) });
            }
        }
        paths
    }
}
