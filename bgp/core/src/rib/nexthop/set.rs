//! Sets of next hops with weights: what a destination's packets are spread over.

use std::sync::Arc;

use bgp_wire::NextHop;
use bgp_wire::attr::Canonical;
use smallvec::SmallVec;

/// One next hop of a set.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightedNextHop {
    /// Where to.
    pub next_hop: NextHop,
    /// Its share of the packets against the other ones of the set, at least 1. The weights of a set are as small as they can be.
    pub weight: u8,
}

/// A set of next hops, in order and without duplicates. Cheap to clone; sets with equal members that come from one
/// speaker share their memory.
#[derive(Clone, Debug)]
pub struct NextHopSet(pub(super) Arc<[WeightedNextHop]>);

impl NextHopSet {
    /// A set of these members, all of one weight.
    #[must_use]
    pub fn new(next_hops: impl IntoIterator<Item = NextHop>) -> Self {
        let alone = |hop| (hop, Share::UNKNOWN, [].as_slice());
        let mut next_hops: Vec<_> = next_hops.into_iter().collect();
        next_hops.sort_unstable();
        next_hops.dedup();
        Self(members(next_hops.into_iter().map(alone)).as_slice().into())
    }

    /// A set of these members. Their weights are made as small as they can be; 0 counts as 1.
    #[must_use]
    pub fn weighted(next_hops: impl IntoIterator<Item = (NextHop, u8)>) -> Self {
        let alone = |(hop, weight): (_, u8)| (hop, Share(u64::from(weight.max(1))), [].as_slice());
        Self(members(next_hops.into_iter().map(alone)).as_slice().into())
    }

    /// The members, in order. Empty where this speaker itself is the next hop.
    #[must_use]
    pub fn members(&self) -> &[WeightedNextHop] {
        &self.0
    }

    /// The members without their weights, in order.
    pub fn next_hops(&self) -> impl ExactSizeIterator<Item = NextHop> {
        self.0.iter().map(|member| member.next_hop)
    }
}

impl Default for NextHopSet {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl PartialEq for NextHopSet {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for NextHopSet {}

/// How much a path can carry against others: octets a second.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(in crate::rib) struct Share(u64);

impl Share {
    /// Nobody said.
    pub(in crate::rib) const UNKNOWN: Self = Self(0);
    /// The most that is told apart, in octets a second: as many as there will ever be.
    const MOST: f32 = 1e15;

    /// So many octets a second.
    #[cfg(test)]
    pub(super) const fn of_octets(octets: u64) -> Self {
        Self(octets)
    }

    /// What the link bandwidth communities of a set say (draft-ietf-idr-link-bandwidth), the least of several.
    pub(in crate::rib) fn of(set: Canonical<'_>) -> Self {
        let said = set.ext_communities().filter_map(|community| community.link_bandwidth());
        let least = said.filter(|octets| octets.is_finite() && *octets > 0.0).reduce(f32::min);
        least.map_or(Self::UNKNOWN, |octets| Self((octets.min(Self::MOST) as u64).max(1)))
    }
}

/// Shares are counted in parts of this many, so that what is resolved to a few next hops can be divided without a rest.
const PARTS: u128 = 2520;
/// A weight may be one part in this many away from what it stands for, so that it can be small.
const CLOSE: u128 = 200;

/// The members that these shares come to: a next hop, how much it can carry, and what stands in its place. Where it is not
/// known of one how much it can carry, all are of one weight.
pub(super) fn members<'a>(
    shares: impl IntoIterator<Item = (NextHop, Share, &'a [NextHop])>,
) -> SmallVec<[WeightedNextHop; 8]> {
    let shares: SmallVec<[(NextHop, Share, &[NextHop]); 8]> = shares.into_iter().collect();
    let known = shares.iter().all(|(_, share, _)| *share != Share::UNKNOWN);
    // Many that carry much may come together at one next hop: more than 64 bits have room for.
    let mut parts: SmallVec<[(NextHop, u128); 8]> = SmallVec::new();
    for (hop, Share(share), via) in shares {
        let part = if known { u128::from(share) } else { 1 } * PARTS;
        match via {
            [] => parts.push((hop, part)),
            via => parts.extend(via.iter().map(|hop| (*hop, (part / via.len() as u128).max(1)))),
        }
    }
    parts.sort_unstable();
    parts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    scale(&mut parts);
    parts.into_iter().map(|(next_hop, part)| WeightedNextHop { next_hop, weight: part as u8 }).collect()
}

/// Makes weights of shares: the smallest that come close enough to all of them, or the largest there are.
fn scale(parts: &mut [(NextHop, u128)]) {
    let Some(most) = parts.iter().map(|(_, part)| *part).max().filter(|most| *most > 0) else {
        return;
    };
    let weight = |part: u128, scale: u128| (part * scale + most / 2) / most;
    let is_close = |part: u128, scale: u128| {
        let exact = part * scale;
        (weight(part, scale) * most).abs_diff(exact) * CLOSE <= exact
    };
    let scales = 1..=u128::from(u8::MAX);
    let close = |scale: &u128| parts.iter().all(|(_, part)| is_close(*part, *scale));
    let scale = scales.clone().find(close).unwrap_or(*scales.end());
    parts.iter_mut().for_each(|(_, part)| *part = weight(*part, scale).max(1));
}
