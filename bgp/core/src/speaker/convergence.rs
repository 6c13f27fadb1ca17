//! When the initial convergence of a family has ended: nobody is due to send more routes of the beginning.
//!
//! A neighbour says so with End-of-RIB (RFC 4724 section 2), but is bound to only where both ends offered the graceful
//! restart capability; FRR, for one, never sends it otherwise. Whoever is not bound has also told everything once it has
//! been quiet for a while, that is, sent no UPDATE. Three seconds are more than real speakers let pass between two UPDATEs
//! of a first burst, and far less than [the deadline](super::SpeakerSettings::convergence_deadline), which would else be
//! waited out with every such neighbour. KEEPALIVE is no sign: it may come in the middle of a long table.

use bgp_wire::{Family, FamilySet, Open};

use super::neighbour::{Neighbour, Up};
use super::state::{Speaker, for_family};
use crate::time::Instant;

/// Code of the graceful restart capability (RFC 4724 section 3).
const GRACEFUL_RESTART: u8 = 64;

/// Since when a neighbour has sent no UPDATE.
#[derive(Copy, Clone, Debug)]
pub(super) struct Quiet {
    since: Instant,
    /// It has been so for long enough. A flag rather than a comparison, so that a deadline that has passed is none.
    enough: bool,
}

impl Quiet {
    /// The session begins.
    pub(super) const fn new(now: Instant) -> Self {
        Self { since: now, enough: false }
    }

    /// An UPDATE has come. True where it had been quiet for long enough.
    #[inline]
    pub(super) const fn heard(&mut self, now: Instant) -> bool {
        let enough = self.enough;
        *self = Self::new(now);
        enough
    }
}

impl Neighbour {
    /// Whether it will certainly say End-of-RIB.
    fn is_bound_to_end(&self) -> bool {
        let status = self.session.status();
        let offered = |open: Option<&Open>| {
            let mut codes = open.into_iter().flat_map(|open| &open.capabilities).map(|offer| offer.code());
            codes.any(|code| code == GRACEFUL_RESTART)
        };
        offered(status.sent) && offered(status.received)
    }

    /// The families of which more of the beginning is due from it, which is up.
    fn owes(&self, up: &Up) -> FamilySet {
        if up.quiet.enough && !self.is_bound_to_end() {
            return FamilySet::EMPTY;
        }
        let told = |family: &Family| self.families[family.index()].end_of_rib;
        up.negotiated.families.iter().filter(|family| !told(family)).collect()
    }
}

impl Speaker {
    /// When convergence is next to be looked at. There may be nothing to see then, as neighbours that were quiet may have
    /// spoken since; but never later than that there is.
    pub(super) const fn convergence_deadline(&self) -> Option<Instant> {
        self.converges
    }

    /// A neighbour that had been quiet for long enough has sent an UPDATE now.
    #[cold]
    pub(super) fn no_longer_quiet(&mut self, now: Instant) {
        if let Some(due) = &mut self.converges {
            *due = (*due).min(now + self.settings.convergence_quiet);
        }
    }

    /// Looks whether the initial convergence of a family has ended. It has when every neighbour that is up and agreed on
    /// the family has sent End-of-RIB, or was quiet for long enough and is not bound to send it, and no neighbour is
    /// waited for that has never been up; or at the deadline.
    ///
    /// Each session that comes up and each End-of-RIB leads here, so it is one pass over the neighbours, and the deadline
    /// is found on the way.
    pub(super) fn review_convergence(&mut self, now: Instant) {
        self.review_deferral(now);
        let Some(loaded) = self.loaded.filter(|_| self.converged.contains(&None)) else {
            self.converges = None;
            return;
        };
        let waited = now.saturating_since(loaded);
        self.grace_over |= waited >= self.settings.convergence_grace;
        let overdue = waited >= self.settings.convergence_deadline;
        // Which families somebody speaks, and of which somebody owes us more.
        let (mut spoken, mut owed) = (FamilySet::EMPTY, FamilySet::EMPTY);
        let mut first_since = None::<Instant>;
        for neighbour in self.peers.iter_mut().flatten() {
            if let Some(up) = &mut neighbour.up {
                up.quiet.enough = now.saturating_since(up.quiet.since) >= self.settings.convergence_quiet;
                if !up.quiet.enough {
                    first_since = Some(first_since.map_or(up.quiet.since, |first| first.min(up.quiet.since)));
                }
            }
            if neighbour.gone || neighbour.disabled {
                continue;
            }
            let families = neighbour.config.families;
            spoken = spoken.union(families);
            let owes = match &neighbour.up {
                Some(up) => neighbour.owes(up),
                None if self.grace_over => FamilySet::EMPTY,
                None => families,
            };
            owed = owed.union(owes.intersect(families));
        }
        for family in Family::ALL {
            if self.converged[family.index()].is_some() {
                continue;
            }
            // Without neighbours there may be some still to come.
            let expected = spoken.contains(family) || self.grace_over;
            if overdue || (expected && !owed.contains(family)) {
                if spoken.contains(family) {
                    tracing::info!(%family, overdue, "initial convergence has ended");
                } else {
                    tracing::debug!(%family, "nobody is there to converge with");
                }
                self.converged[family.index()] = Some(for_family!(self, family, rib => rib.table.last_seq()));
            }
        }
        let wait = if self.grace_over {
            self.settings.convergence_deadline
        } else {
            self.settings.convergence_grace
        };
        let quiet = first_since.map(|since| since + self.settings.convergence_quiet);
        let due = quiet.into_iter().chain([loaded + wait]).min();
        self.converges = due.filter(|_| self.converged.contains(&None));
    }
}
