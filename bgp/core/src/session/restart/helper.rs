//! The stale routes of one neighbour, family by family. The diagram is in the [parent](super).

use std::time::Duration;

use bgp_wire::capability::{AgreedLongLived, AgreedRestart};
use bgp_wire::{Family, FamilySet};

use super::Kept;
use crate::time::Instant;

/// Follows the stale routes of one neighbour. It holds no route: its answers name families, and what is to happen to
/// their stale routes.
#[derive(Copy, Clone, Debug, Default)]
pub struct Helper {
    /// The session is Established.
    back: bool,
    /// By family index; absent where nothing is stale.
    families: [Option<Keeping>; Family::COUNT],
}

/// One family with stale routes.
#[derive(Copy, Clone, Debug)]
struct Keeping {
    /// When they go at the latest: the end of the restart time or of the Long-Lived Stale Time; once the neighbour is
    /// back, that of the wait for its End-of-RIB.
    until: Instant,
    /// When those that are not yet become long-lived stale.
    long_lived_from: Instant,
    /// When the Long-Lived Stale Time ends, if there is one. Once it runs it is not moved until the neighbour has said
    /// everything again (RFC 9494 section 4.2).
    long_lived_until: Instant,
    /// Some are long-lived stale.
    long_lived: bool,
    /// The Long-Lived Stale Time has ended while the neighbour says everything again: what is stale has gone, and if the
    /// session ends before it has, nothing more is kept (RFC 9494 section 4.2).
    spent: bool,
}

/// What becomes of the routes of a session that has ended.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Families whose routes are stale from now on. Routes of others go.
    pub kept: FamilySet,
    /// Those of them in which what was stale before stays too (RFC 9494 section 4.2, consecutive restarts). In the others
    /// it goes (RFC 4724 section 4.2).
    pub held: FamilySet,
}

/// What time has brought.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Families whose stale routes go.
    pub gone: FamilySet,
    /// Families whose stale routes are long-lived stale from now on.
    pub long_lived: FamilySet,
}

impl Helper {
    /// The session has ended. A look at [`Helper::expire`] is due: where there is no restart time, routes are long-lived
    /// stale at once.
    #[must_use]
    pub fn down(&mut self, now: Instant, kept: Kept) -> Lost {
        self.back = false;
        let mut lost = Lost::default();
        for family in Family::ALL {
            let place = &mut self.families[family.index()];
            let before = place.take();
            let (restart, long_lived) = (kept.time(family), kept.long_lived.time(family).duration());
            let spent = before.is_some_and(|before| before.spent);
            if spent || (restart.is_zero() && long_lived.is_zero()) {
                continue;
            }
            lost.kept.insert(family);
            let restarted = now + restart;
            let mut keeping = Keeping {
                until: restarted,
                long_lived_from: Instant::NEVER,
                long_lived_until: Instant::NEVER,
                long_lived: false,
                spent: false,
            };
            if !long_lived.is_zero() {
                lost.held.insert(family);
                let runs = before.filter(|before| before.long_lived);
                keeping.long_lived = runs.is_some();
                keeping.long_lived_from = restarted;
                keeping.long_lived_until =
                    runs.map_or(restarted + long_lived, |before| before.long_lived_until);
                keeping.until = keeping.long_lived_until;
            }
            *place = Some(keeping);
        }
        lost
    }

    /// The session is Established again. Gives the families whose stale routes go at once.
    #[must_use]
    pub fn up(
        &mut self,
        now: Instant,
        restart: Option<&AgreedRestart>,
        long_lived: Option<&AgreedLongLived>,
        stale_time: Duration,
    ) -> FamilySet {
        self.back = true;
        let mut gone = FamilySet::EMPTY;
        for family in Family::ALL {
            let Some(keeping) = &mut self.families[family.index()] else { continue };
            let named = restart.is_some_and(|agreed| agreed.families.contains(family));
            let forwarding = restart.is_some_and(|agreed| agreed.forwarding.contains(family));
            let preserved = if keeping.long_lived {
                // RFC 9494 section 4.2; and an F bit of graceful restart that is clear counts too (section 5).
                let long_lived = long_lived.is_some_and(|agreed| agreed.forwarding.contains(family));
                restart.is_some() && long_lived && (forwarding || !named)
            } else {
                named && forwarding
            };
            if preserved {
                keeping.long_lived_from = Instant::NEVER;
                keeping.until = now + stale_time;
            } else {
                self.families[family.index()] = None;
                gone.insert(family);
            }
        }
        gone
    }

    /// End-of-RIB has come. True if the family's stale routes go.
    #[must_use]
    pub fn end_of_rib(&mut self, family: Family) -> bool {
        self.back && self.families[family.index()].take().is_some_and(|keeping| !keeping.spent)
    }

    /// Time has passed.
    #[must_use]
    pub fn expire(&mut self, now: Instant) -> Expired {
        let mut expired = Expired::default();
        for family in Family::ALL {
            let place = &mut self.families[family.index()];
            let Some(keeping) = place else { continue };
            let early = self.back && now < keeping.until;
            if keeping.end() <= now {
                if !keeping.spent {
                    expired.gone.insert(family);
                }
                keeping.spent = true;
                if !early {
                    *place = None;
                }
            } else if keeping.long_lived_from <= now {
                keeping.long_lived_from = Instant::NEVER;
                keeping.long_lived = true;
                expired.long_lived.insert(family);
            }
        }
        expired
    }

    /// The neighbour is not waited for any more. Gives the families whose stale routes go.
    #[must_use]
    pub fn give_up(&mut self) -> FamilySet {
        let gone = self.families();
        self.families = Default::default();
        gone
    }

    /// When [`Helper::expire`] is next due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.families.iter().flatten().map(|keeping| keeping.end().min(keeping.long_lived_from)).min()
    }

    /// When the last stale route is gone, if the neighbour does not say it again.
    #[must_use]
    pub fn until(&self) -> Option<Instant> {
        self.families.iter().flatten().filter(|keeping| !keeping.spent).map(Keeping::end).max()
    }

    /// Families with routes that may be stale.
    #[must_use]
    pub fn families(&self) -> FamilySet {
        self.those(|keeping| !keeping.spent)
    }

    /// Families with routes that may be long-lived stale.
    #[must_use]
    pub fn long_lived(&self) -> FamilySet {
        self.those(|keeping| keeping.long_lived && !keeping.spent)
    }

    fn those(&self, which: impl Fn(&Keeping) -> bool) -> FamilySet {
        Family::ALL
            .into_iter()
            .filter(|family| self.families[family.index()].as_ref().is_some_and(&which))
            .collect()
    }
}

impl Keeping {
    /// When there is something to be done at the latest.
    fn end(&self) -> Instant {
        let runs = self.long_lived && !self.spent;
        if runs { self.until.min(self.long_lived_until) } else { self.until }
    }
}
