//! When the initial convergence of a family has ended: nobody is due to send more routes of the beginning.
//!
//! A neighbour says so with End-of-RIB (RFC 4724 section 2), but is bound to only where both ends offered the graceful
//! restart capability; FRR, for one, never sends it otherwise. Whoever is not bound has also told everything once it has
//! been quiet for a while, that is, sent no UPDATE. Three seconds are more than real speakers let pass between two UPDATEs
//! of a first burst, and far less than [the deadline](super::SpeakerSettings::convergence_deadline), which would else be
//! waited out with every such neighbour. KEEPALIVE is no sign: it may come in the middle of a long table.

use bgp_wire::{Family, Open};

use super::neighbour::Neighbour;
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

    /// An UPDATE has come.
    #[inline]
    pub(super) const fn heard(&mut self, now: Instant) {
        *self = Self::new(now);
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

    /// Whether more of the beginning is due from it in a family, if it is up.
    fn owes(&self, family: Family) -> bool {
        self.up.as_ref().is_some_and(|up| {
            up.negotiated.families.contains(family)
                && !self.families[family.index()].end_of_rib
                && (!up.quiet.enough || self.is_bound_to_end())
        })
    }
}

impl Speaker {
    /// When convergence is next to be looked at.
    pub(super) fn convergence_deadline(&self) -> Option<Instant> {
        let loaded = self.loaded.filter(|_| self.converged.contains(&None))?;
        let wait = if self.grace_over {
            self.settings.convergence_deadline
        } else {
            self.settings.convergence_grace
        };
        let quiet = self
            .peers
            .iter()
            .flatten()
            .filter_map(|neighbour| neighbour.up.as_ref())
            .filter(|up| !up.quiet.enough)
            .map(|up| up.quiet.since + self.settings.convergence_quiet);
        quiet.chain([loaded + wait]).min()
    }

    /// Looks whether the initial convergence of a family has ended. It has when every neighbour that is up and agreed on
    /// the family has sent End-of-RIB, or was quiet for long enough and is not bound to send it, and no neighbour is
    /// waited for that has never been up; or at the deadline.
    pub(super) fn review_convergence(&mut self, now: Instant) {
        self.review_deferral(now);
        let Some(loaded) = self.loaded.filter(|_| self.converged.contains(&None)) else { return };
        let waited = now.saturating_since(loaded);
        self.grace_over |= waited >= self.settings.convergence_grace;
        let overdue = waited >= self.settings.convergence_deadline;
        for up in self.peers.iter_mut().flatten().filter_map(|neighbour| neighbour.up.as_mut()) {
            up.quiet.enough = now.saturating_since(up.quiet.since) >= self.settings.convergence_quiet;
        }
        for family in Family::ALL {
            if self.converged[family.index()].is_some() {
                continue;
            }
            let mut neighbours = self
                .peers
                .iter()
                .flatten()
                .filter(|peer| !peer.gone && !peer.disabled && peer.config.families.contains(family))
                .peekable();
            // Without neighbours there may be some still to come.
            let spoken = neighbours.peek().is_some();
            let expected = spoken || self.grace_over;
            let done = neighbours.all(|neighbour| {
                if neighbour.up.is_some() { !neighbour.owes(family) } else { self.grace_over }
            });
            if overdue || (expected && done) {
                if spoken {
                    tracing::info!(%family, overdue, "initial convergence has ended");
                } else {
                    tracing::debug!(%family, "nobody is there to converge with");
                }
                self.converged[family.index()] = Some(for_family!(self, family, rib => rib.table.last_seq()));
            }
        }
    }
}
