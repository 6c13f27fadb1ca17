//! A limit on how much a neighbour is told in a family (`PeerConfig::max_prefixes_out`).
//!
//! A neighbour with such a limit is alone in its group, so others pay nothing for it. What does not fit is held back, and
//! noted as not told; when something that was told is withdrawn, a pass over all destinations tells of what was held back.
//! Which routes are told follows from the order in which they came.

use bgp_wire::{PathId, UpdateWriter};

use super::adj_out::{Origin, Told};
use super::cx::{Cx, Scratch, write_section};
use super::field::ExportKey;
use super::group::{Group, Review, Why};
use crate::peer_key::PeerIx;

/// How a group stands to its limit.
#[derive(Debug, Default)]
pub(super) struct Quota {
    /// Something is not told because of it.
    held_back: bool,
    /// Room was made while something was held back.
    room: bool,
}

impl Group {
    /// Whether something is not told because of the limit.
    pub(crate) fn holds_back(&self) -> bool {
        self.quota.held_back
    }

    /// The one member of a group with a limit.
    fn limited(&self) -> Option<(PeerIx, u32)> {
        Some((*self.members.keys().next()?, self.key.max_prefixes?))
    }

    /// Whether a route from `origin` is to be held back. `before` says where the one comes from that the member was told
    /// in its place, if any.
    #[inline]
    pub(super) fn holds_back_from(&mut self, origin: Origin, before: Option<Origin>) -> bool {
        self.key.max_prefixes.is_some() && self.is_one_too_many(origin, before)
    }

    #[cold]
    fn is_one_too_many(&mut self, origin: Origin, before: Option<Origin>) -> bool {
        let Some((member, limit)) = self.limited() else { return false };
        // A route of its own is not told to it.
        let counts = |origin: Origin| origin.peer() != Some(member);
        if !counts(origin) || before.is_some_and(counts) || self.told.announced_to(member) < u64::from(limit)
        {
            return false;
        }
        if !std::mem::replace(&mut self.quota.held_back, true)
            && let Some(peer) = self.key.alone
        {
            tracing::warn!(%peer, family = %self.key.rules.family, limit, "as many prefixes are announced as may be");
        }
        true
    }

    /// Whether a route may count against the limit, if there is one. One whose attributes do not fit into a message shows
    /// that only when it is encoded, and by then others have been held back in its favour; and would be again, whenever
    /// it made room.
    #[inline]
    pub(super) fn may_take_a_place<K: ExportKey>(
        &self,
        route: Told,
        form: u32,
        key: K,
        cx: &mut Cx<'_, K>,
    ) -> bool {
        self.key.max_prefixes.is_none() || self.fits(route, form, key, cx)
    }

    #[cold]
    fn fits<K: ExportKey>(&self, route: Told, form: u32, key: K, cx: &mut Cx<'_, K>) -> bool {
        let Scratch { forms, section, buffer, .. } = &mut *cx.scratch;
        let set = cx.attrs.set(route.attr);
        let Some(hop) = forms.form(form).and_then(|form| write_section(&self.key, form, set, section)) else {
            return false;
        };
        let mut writer = UpdateWriter::new(buffer, self.key.rules.encoding());
        let prefix = std::iter::once((PathId::NONE, key));
        let fits = K::announce(&mut writer, &section.bytes, hop, set.label(), prefix).is_ok();
        buffer.clear();
        cx.stats.too_large += u64::from(!fits);
        fits
    }

    /// Something that was told is told no more.
    #[inline]
    pub(super) fn note_room(&mut self) {
        self.quota.room |= self.quota.held_back;
    }

    /// Begins to tell of what was held back, if there is room now and nothing else is looked at.
    pub(super) fn refill(&mut self) {
        if !self.quota.room || self.review.is_some() {
            return;
        }
        if let Some((member, limit)) = self.limited()
            && self.told.announced_to(member) >= u64::from(limit)
        {
            self.quota.room = false;
            return;
        }
        (self.quota.room, self.quota.held_back) = (false, false);
        self.review = Some(Review { next: 0, why: Why::Refill });
        self.walk_again();
    }
}
