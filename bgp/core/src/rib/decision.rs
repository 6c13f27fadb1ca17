//! The best-path ladder (RFC 4271 section 9.1, with RFC 4456 section 9 and RFC 9494 section 4.4).
//!
//! Each rung removes the candidates that are worse than the best of those still standing, until one is left; that
//! rung is reported. MED is compared between paths of one neighbouring AS only and so is no order of pairs: rung by
//! rung over the whole set, the result depends on the set alone and never on the order in which paths arrived. (Others
//! call that *deterministic MED*; here it can't be had otherwise.)
//!
//! Before the rungs of the RFC stands our own: what this speaker originates beats everything. Where the RFC leaves a
//! choice, [`DecisionSettings`] says which.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::num::NonZeroU8;

use bgp_wire::attr::Origin;
use bgp_wire::{Asn, PathId, RouterId};
use smallvec::SmallVec;

/// How paths are compared where RFC 4271 leaves a choice, and how many are used at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct DecisionSettings {
    /// MULTI_EXIT_DISC is compared between paths of any two neighbouring ASes, not only of one and the same.
    pub always_compare_med: bool,
    /// A path without MULTI_EXIT_DISC counts as the worst there is, not as the best (RFC 4271 section 9.1.2.2 c has 0).
    pub missing_med_worst: bool,
    /// Equal external paths are told apart by the identifiers of the routers that they come from, as RFC 4271 has it, and
    /// so by what they are alone. Otherwise the oldest of them is preferred (RFC 5004), to the second: routes
    /// change less often then, and depend on what was before.
    pub compare_router_id: bool,
    /// The length of the AS path counts for nothing (rung 9.1.2.2 a is left out).
    pub ignore_as_path_length: bool,
    /// How many paths that are equal up to and including the cost of reaching the next hop are used at once, those of
    /// one next hop counting as one: equal-cost multipath.
    pub multipath: NonZeroU8,
    /// Paths whose AS paths are of equal length are used at once whatever is in those. Otherwise the AS paths must be
    /// the same.
    pub multipath_relax: bool,
}

impl DecisionSettings {
    /// RFC 4271 to the letter, one path at a time.
    pub const RFC4271: Self = Self {
        always_compare_med: false,
        missing_med_worst: false,
        compare_router_id: true,
        ignore_as_path_length: false,
        multipath: NonZeroU8::MIN,
        multipath_relax: false,
    };

    /// Whether several paths of a destination may be used at once.
    #[must_use]
    pub const fn uses_several(&self) -> bool {
        self.multipath.get() > 1
    }
}

impl Default for DecisionSettings {
    fn default() -> Self {
        Self::RFC4271
    }
}

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
    /// Lowest MULTI_EXIT_DISC among the paths of one neighbouring AS (9.1.2.2 c), or of all; 0 where there is none, or
    /// the worst, as the settings have it.
    Med,
    /// From an external neighbour (9.1.2.2 d).
    External,
    /// Lowest interior cost of the next hop (9.1.2.2 e).
    InteriorCost,
    /// Longest known, of external paths (RFC 5004), where the settings want that.
    Oldest,
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
    pub const ALL: [Self; 14] = [
        Self::Only,
        Self::Local,
        Self::LongLivedStale,
        Self::LocalPref,
        Self::AsPathLength,
        Self::Origin,
        Self::Med,
        Self::External,
        Self::InteriorCost,
        Self::Oldest,
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
            Self::Oldest => "age",
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
    pub(super) origin: Origin,
    pub(super) med: Option<u32>,
    pub(super) neighbor_as: Option<Asn>,
    pub(super) external: bool,
    pub(super) cost: u32,
    /// When it arrived, in seconds of the embedder's clock.
    pub(super) since: u32,
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
    /// The candidates that no rung up to and including [`Rung::InteriorCost`] removed; the best is among them. Where only
    /// one path is used at a time it is the best alone.
    pub(super) equal: Standing,
}

/// Indices of candidates still standing, ascending.
pub(super) type Standing = SmallVec<[u32; 8]>;

/// Runs the ladder. `None` without candidates. Of candidates equal in everything (which different sources never
/// are) the first one wins.
pub(super) fn decide(settings: &DecisionSettings, candidates: &[Candidate]) -> Option<Decision> {
    let mut standing: Standing = (0..candidates.len() as u32).collect();
    let mut decided = (standing.len() == 1).then_some(Rung::Only);
    let mut equal = None;
    for rung in Rung::ALL {
        if standing.len() == 1 {
            break;
        }
        eliminate(settings, rung, candidates, &mut standing);
        if standing.len() == 1 {
            decided = Some(rung);
        }
        if rung == Rung::InteriorCost && settings.uses_several() {
            equal = Some(standing.clone());
        }
    }
    let best = *standing.first()?;
    standing.truncate(1);
    Some(Decision {
        best: best as usize,
        rung: decided.unwrap_or(Rung::PathId),
        equal: equal.unwrap_or(standing),
    })
}

/// For each candidate that is not the best: the rung that removed it, and a candidate that was better there.
pub(super) fn losses(settings: &DecisionSettings, candidates: &[Candidate]) -> Vec<Option<(Rung, usize)>> {
    let mut losses = vec![None; candidates.len()];
    let mut standing: Standing = (0..candidates.len() as u32).collect();
    for rung in Rung::ALL {
        let before = standing.clone();
        eliminate(settings, rung, candidates, &mut standing);
        for lost in before.into_iter().filter(|at| !standing.contains(at)) {
            let own = &candidates[lost as usize];
            let beats = |other: &Candidate| {
                rung != Rung::Med || settings.always_compare_med || other.neighbor_as == own.neighbor_as
            };
            let better = standing.iter().find(|at| beats(&candidates[**at as usize]));
            losses[lost as usize] = better.map(|better| (rung, *better as usize));
        }
    }
    losses
}

impl Candidate {
    /// What tells paths apart that are equal as far as forwarding goes: the rungs below [`Rung::InteriorCost`].
    pub(super) fn tail(&self, settings: &DecisionSettings) -> impl Ord + use<> {
        let since = if settings.compare_router_id || !self.external { 0 } else { self.since };
        (since, self.router_id, self.cluster_len, self.address, self.path_id)
    }

    fn med(&self, settings: &DecisionSettings) -> u32 {
        self.med.unwrap_or(if settings.missing_med_worst { u32::MAX } else { 0 })
    }

    /// The AS that its MED is compared within.
    fn med_group(&self, settings: &DecisionSettings) -> Option<Asn> {
        self.neighbor_as.filter(|_| !settings.always_compare_med)
    }
}

fn eliminate(settings: &DecisionSettings, rung: Rung, candidates: &[Candidate], standing: &mut Standing) {
    match rung {
        Rung::Only => {}
        Rung::Local => keep_least(candidates, standing, |c| !c.local),
        Rung::LongLivedStale => keep_least(candidates, standing, |c| c.long_lived_stale),
        Rung::LocalPref => keep_least(candidates, standing, |c| Reverse(c.local_pref)),
        Rung::AsPathLength if settings.ignore_as_path_length => {}
        Rung::AsPathLength => keep_least(candidates, standing, |c| c.as_path_len),
        Rung::Origin => keep_least(candidates, standing, |c| c.origin as u8),
        Rung::Med => keep_least_med(settings, candidates, standing),
        Rung::External => keep_least(candidates, standing, |c| !c.external),
        Rung::InteriorCost => keep_least(candidates, standing, |c| c.cost),
        // All that stand here are external, or none is.
        Rung::Oldest if settings.compare_router_id => {}
        Rung::Oldest => keep_least(candidates, standing, |c| if c.external { c.since } else { 0 }),
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
fn keep_least_med(settings: &DecisionSettings, candidates: &[Candidate], standing: &mut Standing) {
    let key = |c: &Candidate| (c.med_group(settings), c.med(settings));
    let mut least: SmallVec<[(Option<Asn>, u32); 8]> =
        standing.iter().map(|&at| key(&candidates[at as usize])).collect();
    // Sorted by AS, then MED: the first entry of an AS holds its least MED.
    least.sort_unstable();
    least.dedup_by_key(|&mut (asn, _)| asn);
    standing.retain(|at| least.binary_search(&key(&candidates[*at as usize])).is_ok());
}

#[cfg(test)]
mod tests;
