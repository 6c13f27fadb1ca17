//! Limits in numbers and in time: how many prefixes a neighbour may announce, and how long it may take to say everything
//! again.
//!
//! A [`Gauge`] counts one family of one neighbour: the paths that it has said in the present epoch, so that neither stale
//! ones nor those of a lost session that wait to be removed count. It knows the counts at which something has to be done,
//! so an UPDATE costs two comparisons, and for a neighbour without limits nothing.
//!
//! *Absent on purpose:* limits on what is sent, which are the update groups' (`egress`).

use std::time::Duration;

use bgp_wire::{Family, FamilySet};

use super::Output;
use super::neighbour::Neighbour;
use super::state::{Speaker, for_family};
use crate::command::PeerConfig;
use crate::limit::{LimitAction, PrefixLimit};
use crate::outbox::Outbox;
use crate::peer_key::PeerIx;
use crate::query::LimitStatus;
use crate::rib::Outcome;
use crate::session::{self, DownReason};
use crate::time::Instant;

/// How far apart two requests to say everything again are at least.
const PAUSE: Duration = Duration::from_secs(60);

/// How long withdrawals have time to make room before the neighbour is asked: where there is one, more follow.
const SETTLE: Duration = Duration::from_secs(1);

/// How near a neighbour is to its limit, as far as it was logged. Falls a little later than it rises, so that one prefix that
/// comes and goes does not fill the log.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    #[default]
    Fine,
    Near,
    Over,
}

/// What one family of one neighbour counts towards its limit.
#[derive(Copy, Clone, Debug)]
pub(super) struct Gauge {
    limit: Option<PrefixLimit>,
    /// Paths said in the present epoch and not taken back.
    fresh: u64,
    /// With so many, further ones are discarded.
    cap: u64,
    /// With so many there is something to do.
    rises: u64,
    /// With fewer there is something to do.
    falls: u64,
    level: Level,
    /// Announcements that were discarded since everything was last said or asked for.
    discarded: u64,
    /// Everything is being said again (RFC 7313): a count that is small is not small for long.
    repeating: bool,
    /// When to ask for what was discarded.
    ask: Option<Instant>,
    asked: Option<Instant>,
}

impl Default for Gauge {
    fn default() -> Self {
        Self {
            limit: None,
            fresh: 0,
            cap: u64::MAX,
            rises: u64::MAX,
            falls: 0,
            level: Level::Fine,
            discarded: 0,
            repeating: false,
            ask: None,
            asked: None,
        }
    }
}

/// A little less.
const fn below(count: u64) -> u64 {
    count.saturating_sub(1) - count.saturating_sub(1) / 16
}

impl Gauge {
    /// Whether further paths are to be discarded.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.fresh >= self.cap
    }

    /// How many paths are above the limit that are to be discarded.
    pub(super) const fn surplus(&self) -> u64 {
        self.fresh.saturating_sub(self.cap)
    }

    /// A path was announced.
    #[inline]
    pub(super) fn announced(&mut self, outcome: &Outcome) {
        self.fresh += u64::from(outcome.had.is_none() || outcome.was_stale);
    }

    /// A path was withdrawn.
    #[inline]
    pub(super) fn withdrawn(&mut self, outcome: &Outcome) {
        let counted = u64::from(outcome.had.is_some() && !outcome.was_stale);
        debug_assert!(self.fresh >= counted, "a path is taken back that was not counted");
        // A count that wrapped around would end the session, or shut out everything.
        self.fresh = self.fresh.saturating_sub(counted);
    }

    /// An announcement was not kept.
    pub(super) const fn discarded(&mut self) {
        self.discarded += 1;
    }

    /// The session has ended.
    pub(super) fn down(&mut self) {
        let Self { limit, .. } = *self;
        *self = Self { limit, ..Self::default() };
        self.set_bounds();
    }

    /// Everything is about to be said again.
    pub(super) fn repeat_begins(&mut self) {
        (self.fresh, self.discarded, self.repeating) = (0, 0, true);
        self.set_bounds();
    }

    /// Everything was said again.
    pub(super) fn repeat_ends(&mut self) {
        self.repeating = false;
        self.set_bounds();
    }

    /// Everything is asked for again, whatever for.
    pub(super) const fn asked(&mut self) {
        self.discarded = 0;
    }

    /// When there is something to ask for.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.ask
    }

    /// What there is to tell.
    pub(super) fn status(&self) -> Option<LimitStatus> {
        let Self { fresh: counted, discarded, .. } = *self;
        self.limit.map(|limit| LimitStatus { limit, counted, discarded })
    }

    /// Puts another limit in force.
    fn set(&mut self, now: Instant, limit: Option<PrefixLimit>) {
        if self.limit == limit {
            return;
        }
        self.limit = limit;
        self.level = Level::Fine;
        self.set_bounds();
        if self.is_missing_some() {
            self.ask = Some(now);
        }
    }

    fn set_bounds(&mut self) {
        let Some(PrefixLimit { limit, action }) = self.limit else {
            (self.cap, self.rises, self.falls) = (u64::MAX, u64::MAX, 0);
            return;
        };
        let limit = u64::from(limit);
        self.cap = if action == LimitAction::Discard { limit } else { u64::MAX };
        (self.rises, self.falls) = match self.level {
            Level::Fine => (self.threshold(), 0),
            Level::Near => (limit + 1, below(self.threshold())),
            Level::Over => (u64::MAX, below(limit + 1)),
        };
        if self.repeating {
            self.falls = 0;
        }
    }

    fn threshold(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| u64::from(limit.threshold().max(1)))
    }

    /// Whether there is room for what was discarded.
    const fn is_missing_some(&self) -> bool {
        self.discarded > 0 && !self.is_full()
    }

    /// Whether [`Gauge::look`] would find anything.
    #[inline]
    const fn has_news(&self) -> bool {
        self.fresh >= self.rises
            || self.fresh < self.falls
            || (self.discarded > 0 && (!matches!(self.level, Level::Over) || !self.is_full()))
    }

    /// Looks where the count stands. Gives the level if it has risen.
    fn look(&mut self, now: Instant, can_ask: bool) -> Option<(Level, PrefixLimit)> {
        if self.is_missing_some() && can_ask && self.ask.is_none() {
            self.ask = Some(self.asked.map_or(now + SETTLE, |asked| (asked + PAUSE).max(now + SETTLE)));
        }
        let limit = self.limit?;
        let before = self.level;
        let falls = self.fresh < self.falls;
        let over = self.fresh > u64::from(limit.limit) || self.discarded > 0;
        self.level = if over || (before == Level::Over && !falls) {
            Level::Over
        } else if self.fresh >= self.threshold() || (before == Level::Near && !falls) {
            Level::Near
        } else {
            Level::Fine
        };
        self.set_bounds();
        (self.level > before).then_some((self.level, limit))
    }

    /// Whether it is time to ask for what was discarded; then it counts as asked for.
    fn asks(&mut self, now: Instant) -> bool {
        if self.ask.is_none_or(|at| at > now) {
            return false;
        }
        self.ask = None;
        let asks = self.is_missing_some();
        if asks {
            (self.discarded, self.asked) = (0, Some(now));
        }
        asks
    }
}

impl Neighbour {
    /// Puts the limits of its configuration in force.
    pub(super) fn set_limits(&mut self, now: Instant) {
        for family in Family::ALL {
            let limit = self.config.max_prefixes.get(&family).copied();
            self.families[family.index()].gauge.set(now, limit);
        }
        let missing = |gauge: &Gauge| gauge.discarded > 0;
        self.limited =
            !self.config.max_prefixes.is_empty() || self.families.iter().any(|state| missing(&state.gauge));
    }

    /// When something of this file is due.
    pub(super) fn limit_deadline(&self) -> Option<Instant> {
        let repeats = self.families.iter().filter_map(|state| state.repeating);
        let asks = self.families.iter().filter_map(|state| state.gauge.deadline());
        repeats.chain(asks).min()
    }

    /// Whether it is kept away for having announced too much.
    pub(super) fn is_held_by_limit(&self) -> bool {
        let status = self.session.status();
        status.idle.is_some()
            && status
                .last_error
                .is_some_and(|error| matches!(error.reason, DownReason::TooManyPrefixes { .. }))
    }

    /// Whether it is kept away for having announced what it may announce now.
    fn is_held_too_long(&self) -> bool {
        match self.session.status().last_error.map(|error| &error.reason) {
            Some(DownReason::TooManyPrefixes { family, limit }) if self.is_held_by_limit() => self
                .config
                .max_prefixes
                .get(family)
                .is_none_or(|new| new.limit > *limit || !matches!(new.action, LimitAction::Reset { .. })),
            Some(_) | None => false,
        }
    }
}

impl Speaker {
    /// The configuration of a neighbour has changed from `old`: its limits are in force at once.
    pub(super) fn change_limits(
        &mut self,
        now: Instant,
        peer: PeerIx,
        old: &PeerConfig,
        out: &mut Outbox<Output>,
    ) {
        let Some(neighbour) = self.peer_mut(peer) else { return };
        if neighbour.config.max_prefixes == old.max_prefixes {
            return;
        }
        neighbour.set_limits(now);
        let surplus: FamilySet = Family::ALL
            .into_iter()
            .filter(|family| neighbour.families[family.index()].gauge.surplus() > 0)
            .collect();
        let starts = neighbour.is_held_too_long();
        for family in surplus.iter() {
            // The walk that runs import policy again leaves behind what is too much.
            for_family!(self, family, rib => rib.begin_reimport(peer));
        }
        if starts {
            self.session(now, peer, session::Input::Start, out);
        }
        self.review_limits(now, peer, out);
        self.note(peer, out);
    }

    /// Looks whether a neighbour has come to one of its limits, and does what follows.
    #[inline]
    pub(super) fn review_limits(&mut self, now: Instant, peer: PeerIx, out: &mut Outbox<Output>) {
        if self.peer(peer).is_some_and(|neighbour| {
            neighbour.limited && neighbour.families.iter().any(|state| state.gauge.has_news())
        }) {
            self.follow_limits(now, peer, out);
        }
    }

    #[cold]
    fn follow_limits(&mut self, now: Instant, peer: PeerIx, out: &mut Outbox<Output>) {
        let Some(neighbour) = self.peer_mut(peer) else { return };
        let Some(up) = &neighbour.up else { return };
        let can_ask = up.negotiated.route_refresh;
        let mut too_many = None;
        for family in Family::ALL {
            let gauge = &mut neighbour.families[family.index()].gauge;
            let Some((level, PrefixLimit { limit, action })) = gauge.look(now, can_ask) else { continue };
            let (key, prefixes) = (neighbour.key, gauge.fresh);
            match (level, action) {
                (Level::Fine, _) => {}
                (Level::Near, _) => {
                    tracing::warn!(peer = %key, %family, prefixes, limit, %action, "close to the prefix limit");
                }
                (Level::Over, LimitAction::Warn) => {
                    tracing::warn!(peer = %key, %family, prefixes, limit, "more prefixes than the limit");
                }
                (Level::Over, LimitAction::Discard) => {
                    tracing::warn!(peer = %key, %family, prefixes, limit, "prefixes beyond the limit are not kept");
                }
                (Level::Over, LimitAction::Reset { restart }) => {
                    tracing::warn!(peer = %key, %family, prefixes, limit, ?restart, "more prefixes than the limit, the session ends");
                    too_many.get_or_insert(session::Input::TooManyPrefixes { family, limit, restart });
                }
            }
        }
        match too_many {
            Some(input) => {
                self.session(now, peer, input, out);
            }
            None => self.note(peer, out),
        }
    }

    /// Time has passed: what was discarded is asked for, and a repetition without an end is ended.
    pub(super) fn expire_limits(&mut self, now: Instant, peer: PeerIx, out: &mut Outbox<Output>) {
        for family in Family::ALL {
            let Some(neighbour) = self.peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else {
                return;
            };
            let state = &mut neighbour.families[family.index()];
            let asks = state.gauge.asks(now);
            let overdue = state.repeating.is_some_and(|until| until <= now);
            if asks {
                tracing::info!(peer = %neighbour.key, %family, "there is room for prefixes that were not kept: all are asked for again");
                self.ask_again(peer, FamilySet::only(family), out);
            }
            if overdue {
                if let Some(neighbour) = self.peer(peer) {
                    tracing::warn!(peer = %neighbour.key, %family, "a refresh does not end: what was not said again is removed");
                }
                self.repeat_over(now, peer, family, out);
            }
        }
    }

    /// A neighbour has said everything again, or has had its time to.
    pub(super) fn repeat_over(
        &mut self,
        now: Instant,
        peer: PeerIx,
        family: Family,
        out: &mut Outbox<Output>,
    ) {
        let Some(neighbour) = self.peer_mut(peer) else { return };
        let state = &mut neighbour.families[family.index()];
        if state.repeating.take().is_none() {
            return;
        }
        state.gauge.repeat_ends();
        self.shared.sources.stale_gone(peer, family);
        for_family!(self, family, rib => rib.review.begin());
        self.review_limits(now, peer, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1000);

    fn gauge(limit: u32, action: LimitAction) -> Gauge {
        let mut gauge = Gauge::default();
        gauge.set(NOW, Some(PrefixLimit { limit, action }));
        gauge
    }

    /// Lets the count be this, looks if a look is called for, and says what has risen.
    fn at(gauge: &mut Gauge, count: u64) -> Option<Level> {
        gauge.fresh = count;
        if !gauge.has_news() {
            return None;
        }
        gauge.look(NOW, true).map(|(level, _)| level)
    }

    #[test]
    fn each_crossing_is_told_once() {
        let mut gauge = gauge(1000, LimitAction::Warn);
        assert_eq!(
            [749, 750, 751, 1000].map(|count| at(&mut gauge, count)),
            [None, Some(Level::Near), None, None]
        );
        assert_eq!([1001, 5000].map(|count| at(&mut gauge, count)), [Some(Level::Over), None]);
        // One prefix that comes and goes is no news.
        assert!([1000, 1001, 1000, 1001, 960, 1001].into_iter().all(|count| at(&mut gauge, count).is_none()));
        assert_eq!([900, 1001].map(|count| at(&mut gauge, count)), [None, Some(Level::Over)]);
        assert_eq!([0, 750].map(|count| at(&mut gauge, count)), [None, Some(Level::Near)]);
        assert_eq!([0, 1001].map(|count| at(&mut gauge, count)), [None, Some(Level::Over)], "both at once");
    }

    #[test]
    fn a_count_that_begins_anew_has_not_fallen() {
        let mut gauge = gauge(1000, LimitAction::Warn);
        at(&mut gauge, 1001);
        gauge.repeat_begins();
        assert!([0, 800, 1001].into_iter().all(|count| at(&mut gauge, count).is_none()));
        gauge.repeat_ends();
        assert_eq!([100, 800].map(|count| at(&mut gauge, count)), [None, Some(Level::Near)]);
    }

    #[test]
    fn who_cannot_be_asked_is_not() {
        let mut gauge = gauge(10, LimitAction::Discard);
        gauge.fresh = 10;
        gauge.discarded();
        gauge.look(NOW, false);
        gauge.fresh = 5;
        gauge.look(NOW, false);
        assert_eq!((gauge.deadline(), gauge.discarded), (None, 1));
        gauge.look(NOW, true);
        assert_eq!(gauge.deadline(), Some(NOW + SETTLE));
        assert!(!gauge.asks(NOW) && gauge.asks(NOW + SETTLE));
        // Room that has gone again by then is none.
        gauge.discarded();
        gauge.look(NOW, true);
        gauge.fresh = 10;
        assert!(!gauge.asks(NOW + PAUSE + SETTLE) && gauge.discarded == 1);
    }

    #[test]
    fn the_largest_limit_is_no_limit() {
        let mut gauge = gauge(u32::MAX, LimitAction::Warn);
        assert_eq!(at(&mut gauge, u64::from(u32::MAX)), Some(Level::Near));
        assert_eq!(at(&mut gauge, u64::from(u32::MAX) + 1), Some(Level::Over));
    }
}
