//! What policy changes of a path.
//!
//! Edits say what is to be done, not what comes out, so that they are few however many attribute sets they are done to:
//! nothing is copied or changed here.

use std::sync::Arc;

use bgp_wire::attr::{Community, ExtCommunity, LargeCommunity, Origin};
use bgp_wire::{Asn, NextHop};
use smallvec::SmallVec;

use super::definition::Direction;
use super::pattern::Number;
use super::program::Change;
use super::sets::NumberSet;
use crate::rib::AttrSet;

/// What a policy changes of a path. Empty edits leave the attribute set as it is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Edits {
    /// What becomes of MULTI_EXIT_DISC.
    pub med: Option<MedEdit>,
    /// The new LOCAL_PREF.
    pub local_pref: Option<u32>,
    /// The new ORIGIN.
    pub origin: Option<Origin>,
    /// The new next hop.
    pub next_hop: Option<NextHopEdit>,
    /// What goes in front of the AS_PATH, in the order of the acts: the last one ends up leftmost.
    pub prepend: SmallVec<[(Asn, u8); 1]>,
    /// What becomes of communities.
    pub communities: ListEdit<Community, 4>,
    /// What becomes of large communities.
    pub large_communities: ListEdit<LargeCommunity, 2>,
    /// What becomes of extended communities.
    pub ext_communities: ListEdit<ExtCommunity, 2>,
    /// On import: the AS number that ONLY_TO_CUSTOMER gets (RFC 9234). No act of a policy sets it.
    pub only_to_customer: Option<Asn>,
}

/// What becomes of MULTI_EXIT_DISC.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MedEdit {
    /// It is this.
    Set(u32),
    /// So much is added to what there is, or to 0.
    Add(i64),
    /// It goes.
    Remove,
}

impl MedEdit {
    /// What it makes of a MULTI_EXIT_DISC.
    #[must_use]
    pub fn of(self, med: Option<u32>) -> Option<u32> {
        match self {
            Self::Set(med) => Some(med),
            Self::Add(by) => {
                let sum = i64::from(med.unwrap_or(0)).saturating_add(by);
                Some(sum.clamp(0, u32::MAX.into()) as u32)
            }
            Self::Remove => None,
        }
    }

    fn add(before: Option<Self>, by: i64) -> Self {
        match before {
            None => Self::Add(by),
            Some(Self::Add(before)) => Self::Add(before.saturating_add(by)),
            Some(before @ (Self::Set(_) | Self::Remove)) => {
                Self::Set(Self::Add(by).of(before.of(None)).unwrap_or(0))
            }
        }
    }
}

/// What becomes of the next hop.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NextHopEdit {
    /// It is our own address, as it is towards each neighbour.
    Own,
    /// It is this.
    To(NextHop),
}

/// What becomes of a list of communities: what is removed goes first, and what is added comes behind what stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEdit<T, const N: usize> {
    /// Nothing that was there stays.
    pub(crate) all_go: bool,
    /// What any of these holds goes.
    pub(crate) removed: SmallVec<[Arc<NumberSet>; 1]>,
    /// What comes. None of it twice; nor among what stays, but for non-transitive extended communities on export.
    pub(crate) added: SmallVec<[T; N]>,
}

impl<T, const N: usize> Default for ListEdit<T, N> {
    fn default() -> Self {
        Self { all_go: false, removed: SmallVec::new(), added: SmallVec::new() }
    }
}

impl<T, const N: usize> ListEdit<T, N> {
    /// These come, and whatever is there stays.
    #[must_use]
    pub fn adding(added: impl IntoIterator<Item = T>) -> Self {
        Self { added: added.into_iter().collect(), ..Self::default() }
    }

    /// Whether the list stays as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.all_go && self.removed.is_empty() && self.added.is_empty()
    }
}

impl<T: Number, const N: usize> ListEdit<T, N> {
    /// Whether a member of the list before stays.
    pub(crate) fn stays(&self, item: T) -> bool {
        !self.all_go && !self.removed.iter().any(|set| set.contains(item.number()))
    }

    /// The list afterwards, as numbers. `before` is the list before.
    pub(crate) fn numbers<'a>(
        &'a self,
        before: impl Iterator<Item = T> + Clone + 'a,
    ) -> impl Iterator<Item = u128> + Clone + 'a {
        let stay = before.filter(|item| self.stays(*item));
        stay.chain(self.added.iter().copied()).map(Number::number)
    }

    /// A member comes, unless it is there.
    pub(crate) fn add(&mut self, item: T, mut before: impl Iterator<Item = T>) {
        if !self.added.contains(&item) && !before.any(|own| own == item && self.stays(own)) {
            self.added.push(item);
        }
    }

    fn remove(&mut self, set: &Arc<NumberSet>, mut before: impl Iterator<Item = T>) {
        self.added.retain(|item| !set.contains(item.number()));
        if before.any(|own| set.contains(own.number()) && self.stays(own)) {
            self.removed.push(Arc::clone(set));
        }
    }

    fn replace(&mut self, all: &[T]) {
        self.all_go = true;
        self.removed.clear();
        self.added.clear();
        for item in all {
            if !self.added.contains(item) {
                self.added.push(*item);
            }
        }
    }
}

impl Edits {
    /// Whether there is nothing to change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            med,
            local_pref,
            origin,
            next_hop,
            prepend,
            communities,
            large_communities,
            ext_communities,
            only_to_customer,
        } = self;
        communities.is_empty()
            && prepend.is_empty()
            && large_communities.is_empty()
            && ext_communities.is_empty()
            && med.is_none()
            && local_pref.is_none()
            && origin.is_none()
            && next_hop.is_none()
            && only_to_customer.is_none()
    }

    /// How many AS numbers go in front of the AS_PATH.
    pub(super) fn prepended(&self) -> u32 {
        self.prepend.iter().map(|(_, times)| u32::from(*times)).sum()
    }

    pub(super) fn make(&mut self, change: &Change, attrs: &AttrSet, direction: Direction) {
        let view = attrs.view();
        match change {
            Change::LocalPref(local_pref) => self.local_pref = Some(*local_pref),
            Change::Med(med) => self.med = Some(MedEdit::Set(*med)),
            Change::AddMed(by) => self.med = Some(MedEdit::add(self.med, *by)),
            Change::RemoveMed => self.med = Some(MedEdit::Remove),
            Change::Origin(origin) => self.origin = Some(*origin),
            Change::NextHopSelf => match direction {
                Direction::Import => {}
                Direction::Export => self.next_hop = Some(NextHopEdit::Own),
            },
            Change::NextHop(next_hop) => self.next_hop = Some(NextHopEdit::To(*next_hop)),
            Change::Prepend(asn, times) => self.prepend.push((*asn, *times)),
            Change::Add(community) => self.communities.add(*community, view.communities()),
            Change::AddLarge(community) => self.large_communities.add(*community, view.large_communities()),
            // What of these is there already does not leave the AS, and what export adds does: so it is added all the same.
            Change::AddExt(community) if direction == Direction::Export && !community.is_transitive() => {
                self.ext_communities.add(*community, std::iter::empty());
            }
            Change::AddExt(community) => self.ext_communities.add(*community, view.ext_communities()),
            Change::Remove(set) => self.communities.remove(set, view.communities()),
            Change::RemoveLarge(set) => self.large_communities.remove(set, view.large_communities()),
            Change::RemoveExt(set) => self.ext_communities.remove(set, view.ext_communities()),
            Change::Replace(all) => self.communities.replace(all),
            Change::ReplaceLarge(all) => self.large_communities.replace(all),
            Change::ReplaceExt(all) => self.ext_communities.replace(all),
        }
    }
}
