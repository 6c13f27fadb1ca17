//! The best-path ladder (RFC 4271 section 9.1, with RFC 4456 section 9 and RFC 9494 section 4.4, and RFC 5004 left out).
//!
//! Each rung removes the candidates that are worse than the best of those still standing, until one is left; that
//! rung is reported. MED is compared between paths of one neighbouring AS only and so is no order of pairs: rung by
//! rung over the whole set, the result depends on the set alone and never on the order in which paths arrived.
//!
//! Before the rungs of the RFC stands our own: what this speaker originates beats everything.

use std::net::IpAddr;

use bgp_wire::{Asn, PathId, RouterId};
use smallvec::SmallVec;

/// The rung of the ladder that left a single path.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// There was no other path.
    Only,
    /// Originated by this speaker.
    Local,
    /// Not marked as long-lived stale, whoever did so: by the community LLGR_STALE (RFC 9494 section 4.4).
    LongLivedStale,
    /// Highest LOCAL_PREF (9.1.1); 100 where there is none.
    LocalPref,
    /// Shortest AS_PATH (9.1.2.2 a).
    AsPathLength,
    /// Lowest ORIGIN (9.1.2.2 b).
    Origin,
    /// Lowest MULTI_EXIT_DISC among the paths of one neighbouring AS (9.1.2.2 c); 0 where there is none.
    Med,
    /// From an external neighbour (9.1.2.2 d).
    External,
    /// Lowest interior cost of the next hop (9.1.2.2 e).
    InteriorCost,
    /// Lowest BGP Identifier (9.1.2.2 f), or ORIGINATOR_ID where there is one (RFC 4456).
    RouterId,
    /// Shortest CLUSTER_LIST (RFC 4456 section 9).
    ClusterList,
    /// Lowest address of the neighbour (9.1.2.2 g).
    PeerAddress,
    /// Lowest path identifier: several paths from one neighbour (RFC 7911).
    PathId,
}

impl Rung {
    /// All rungs, from the first to the last.
    pub const ALL: [Self; 13] = [
        Self::Only,
        Self::Local,
        Self::LongLivedStale,
        Self::LocalPref,
        Self::AsPathLength,
        Self::Origin,
        Self::Med,
        Self::External,
        Self::InteriorCost,
        Self::RouterId,
        Self::ClusterList,
        Self::PeerAddress,
        Self::PathId,
    ];
}

impl std::fmt::Display for Rung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Only => "only path",
            Self::Local => "local origin",
            Self::LongLivedStale => "long-lived stale",
            Self::LocalPref => "local preference",
            Self::AsPathLength => "AS path length",
            Self::Origin => "origin",
            Self::Med => "MED",
            Self::External => "external over internal",
            Self::InteriorCost => "interior cost",
            Self::RouterId => "router id",
            Self::ClusterList => "cluster list length",
            Self::PeerAddress => "neighbour address",
            Self::PathId => "path identifier",
        })
    }
}

/// LOCAL_PREF of a path without one.
pub const DEFAULT_LOCAL_PREF: u32 = 100;

/// What the ladder compares of one path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) local: bool,
    pub(super) long_lived_stale: bool,
    pub(super) local_pref: u32,
    pub(super) as_path_len: u32,
    /// 0 IGP, 1 EGP, 2 INCOMPLETE.
    pub(super) origin: u8,
    pub(super) med: u32,
    pub(super) neighbor_as: Option<Asn>,
    pub(super) external: bool,
    pub(super) cost: u32,
    pub(super) router_id: RouterId,
    pub(super) cluster_len: u16,
    pub(super) address: IpAddr,
    pub(super) path_id: PathId,
}

/// What the ladder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    /// Index of the best candidate.
    pub(super) best: usize,
    pub(super) rung: Rung,
    /// The candidates that no rung up to and including [`Rung::InteriorCost`] removed; the best is among them.
    pub(super) equal: Standing,
}

/// Indices of candidates still standing, ascending.
pub(super) type Standing = SmallVec<[u32; 8]>;

/// Runs the ladder. `None` without candidates. Of candidates equal in everything (which different sources never
/// are) the first one wins.
pub(super) fn decide(candidates: &[Candidate]) -> Option<Decision> {
    let mut standing: Standing = (0..candidates.len() as u32).collect();
    let mut decided = (standing.len() == 1).then_some(Rung::Only);
    let mut equal = None;
    for rung in Rung::ALL {
        if standing.len() == 1 {
            break;
        }
        eliminate(rung, candidates, &mut standing);
        if standing.len() == 1 {
            decided = Some(rung);
        }
        if rung == Rung::InteriorCost {
            equal = Some(standing.clone());
        }
    }
    let best = *standing.first()?;
    Some(Decision {
        best: best as usize,
        rung: decided.unwrap_or(Rung::PathId),
        equal: equal.unwrap_or(standing),
    })
}

fn eliminate(rung: Rung, candidates: &[Candidate], standing: &mut Standing) {
    match rung {
        Rung::Only => {}
        Rung::Local => keep_least(candidates, standing, |c| !c.local),
        Rung::LongLivedStale => keep_least(candidates, standing, |c| c.long_lived_stale),
        Rung::LocalPref => keep_least(candidates, standing, |c| std::cmp::Reverse(c.local_pref)),
        Rung::AsPathLength => keep_least(candidates, standing, |c| c.as_path_len),
        Rung::Origin => keep_least(candidates, standing, |c| c.origin),
        Rung::Med => keep_least_med(candidates, standing),
        Rung::External => keep_least(candidates, standing, |c| !c.external),
        Rung::InteriorCost => keep_least(candidates, standing, |c| c.cost),
        Rung::RouterId => keep_least(candidates, standing, |c| c.router_id),
        Rung::ClusterList => keep_least(candidates, standing, |c| c.cluster_len),
        Rung::PeerAddress => keep_least(candidates, standing, |c| c.address),
        Rung::PathId => keep_least(candidates, standing, |c| c.path_id),
    }
}

/// Keeps the candidates with the least key.
fn keep_least<T: Ord>(candidates: &[Candidate], standing: &mut Standing, key: impl Fn(&Candidate) -> T) {
    let least = standing.iter().map(|&at| key(&candidates[at as usize])).min();
    standing.retain(|at| Some(key(&candidates[*at as usize])) == least);
}

/// Keeps, for each neighbouring AS by itself, the candidates with the least MED.
fn keep_least_med(candidates: &[Candidate], standing: &mut Standing) {
    let mut least: SmallVec<[(Option<Asn>, u32); 8]> =
        standing.iter().map(|&at| &candidates[at as usize]).map(|c| (c.neighbor_as, c.med)).collect();
    // Sorted by AS, then MED: the first entry of an AS holds its least MED.
    least.sort_unstable();
    least.dedup_by_key(|&mut (asn, _)| asn);
    standing.retain(|at| {
        let c = &candidates[*at as usize];
        least.binary_search(&(c.neighbor_as, c.med)).is_ok()
    });
}

#[cfg(test)]
mod tests;
