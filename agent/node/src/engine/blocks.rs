//! What is blocked in VPP, for the log: each cause once when it comes and once when it has gone, however many objects it
//! blocks and however often they are tried again.
//!
//! Says what to log and when to look; reads no clock and logs nothing itself.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use agent_core::plan::{VppReport, VppState};

/// What is blocked for less than this is no news: much waits for an answer for a moment. Also the least time between two
/// looks, as a look walks over all objects.
const SETTLE: Duration = Duration::from_secs(1);
/// So many causes are told at one look; the rest is counted.
const TOLD: usize = 5;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct BlockLog {
    troubles: u64,
    due: Option<Instant>,
    /// Causes that have been told, and at how many looks in a row each was absent: an object that is being tried again
    /// isn't blocked at that very moment.
    told: BTreeMap<String, u8>,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Something wants attention.
    Blocked { cause: String, first: String, objects: usize },
    /// More of the same kind.
    More(usize),
    /// A cause has gone.
    Cleared(String),
}

impl BlockLog {
    /// The engine's count of troubles is this now.
    pub(super) fn hear(&mut self, troubles: u64, now: Instant) {
        if std::mem::replace(&mut self.troubles, troubles) != troubles {
            self.due.get_or_insert(now + SETTLE);
        }
    }

    /// When to look next.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Compares how VPP stands with what was told.
    pub(super) fn look(&mut self, report: &VppReport, now: Instant) -> Vec<Line> {
        self.due = None;
        if report.state != VppState::Running {
            // The loss of the connection is told by others; what is blocked on the next one is news again.
            self.told.clear();
            return Vec::new();
        }
        let mut causes: BTreeMap<&str, (usize, String)> = BTreeMap::new();
        for blocked in report.blocked.iter().filter(|blocked| !blocked.cause.is_empty()) {
            let cause = causes.entry(&blocked.cause).or_insert_with(|| (0, blocked.object.to_string()));
            cause.0 += 1;
        }
        let mut lines = Vec::new();
        let mut more = 0;
        for (cause, (objects, first)) in &causes {
            if self.told.insert((*cause).to_owned(), 0).is_some() {
                continue;
            }
            if lines.len() < TOLD {
                let (cause, first, objects) = ((*cause).to_owned(), first.clone(), *objects);
                lines.push(Line::Blocked { cause, first, objects });
            } else {
                more += 1;
            }
        }
        if more > 0 {
            lines.push(Line::More(more));
        }
        let mut unsure = false;
        self.told.retain(|cause, absent| {
            if causes.contains_key(&**cause) {
                return true;
            }
            *absent += 1;
            let gone = *absent > 1;
            unsure |= !gone;
            if gone {
                lines.push(Line::Cleared(cause.clone()));
            }
            !gone
        });
        if unsure {
            self.due = Some(now + SETTLE);
        }
        lines
    }
}

impl Line {
    /// Writes it.
    pub(super) fn log(&self) {
        match self {
            Self::Blocked { .. } | Self::More(_) => tracing::warn!("{self}"),
            Self::Cleared(_) => tracing::info!("{self}"),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The object itself may be the cause.
            Self::Blocked { cause, first, objects: 1 } if cause.starts_with(first) => {
                write!(f, "vpp: blocked: {cause}")
            }
            Self::Blocked { cause, first, objects: 1 } => write!(f, "vpp: blocked: {first}: {cause}"),
            Self::Blocked { cause, first, objects } => {
                write!(f, "vpp: blocked: {first} and {} more: {cause}", objects - 1)
            }
            Self::More(causes) => {
                write!(f, "vpp: blocked for {causes} more reasons; `peregrine vpp` names them")
            }
            Self::Cleared(cause) => write!(f, "vpp: nothing is blocked any more by: {cause}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::desired::{ObjectKey, VppKey};
    use agent_core::event::Generation;
    use agent_core::model::{RouteKey, TableId};
    use agent_core::plan::BlockedObject;

    use super::*;

    fn report(blocked: &[(&str, &str)]) -> VppReport {
        let blocked = blocked.iter().map(|(prefix, cause)| BlockedObject {
            object: VppKey::Route(RouteKey { table: TableId::MAIN, prefix: prefix.parse().unwrap() }),
            reason: format!("waits for something: {cause}"),
            cause: (*cause).to_owned(),
            value: String::new(),
            attempts: 0,
            next_try: None,
        });
        VppReport {
            state: VppState::Running,
            generation: Generation(1),
            in_flight: 0,
            kinds: Vec::new(),
            blocked: blocked.collect(),
            pending: Vec::new(),
            wireguard: Vec::new(),
            lacking: 0,
        }
    }

    fn lines(log: &mut BlockLog, report: &VppReport, now: Instant) -> Vec<String> {
        log.look(report, now).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cause_is_told_once_and_once_when_it_has_gone() {
        let (mut log, start) = (BlockLog::default(), Instant::now());
        assert_eq!(log.due(), None);
        log.hear(3, start);
        log.hear(4, start + SETTLE / 2);
        assert_eq!(log.due(), Some(start + SETTLE), "a burst leads to one look");
        let both = report(&[("10.0.0.0/8", "no uplink"), ("10.1.0.0/16", "no uplink")]);
        assert_eq!(
            lines(&mut log, &both, start),
            ["vpp: blocked: route 10.0.0.0/8 table 0 and 1 more: no uplink"]
        );
        assert_eq!(log.due(), None);
        let one = report(&[("10.1.0.0/16", "no uplink")]);
        assert_eq!(lines(&mut log, &one, start), [""; 0], "not again");
        // Between two attempts.
        assert_eq!(lines(&mut log, &report(&[]), start), [""; 0]);
        assert_eq!(log.due(), Some(start + SETTLE), "it may have been a moment only");
        assert_eq!(lines(&mut log, &one, start), [""; 0]);
        assert_eq!(lines(&mut log, &report(&[]), start), [""; 0]);
        assert_eq!(lines(&mut log, &report(&[]), start), ["vpp: nothing is blocked any more by: no uplink"]);
        assert_eq!(log.due(), None);
    }

    #[test]
    fn many_causes_are_counted_and_waiting_is_none() {
        let (mut log, now) = (BlockLog::default(), Instant::now());
        let causes: Vec<String> = (0..9).map(|n| format!("cause {n}")).collect();
        let all: Vec<(&str, &str)> = causes.iter().map(|cause| ("10.0.0.0/8", cause.as_str())).collect();
        let told = lines(&mut log, &report(&all), now);
        assert_eq!(told.len(), TOLD + 1, "{told:?}");
        assert_eq!(told[TOLD], "vpp: blocked for 4 more reasons; `peregrine vpp` names them");
        assert_eq!(lines(&mut BlockLog::default(), &report(&[("10.0.0.0/8", "")]), now), [""; 0]);
    }

    #[test]
    fn a_new_connection_is_told_anew() {
        let (mut log, now) = (BlockLog::default(), Instant::now());
        let mut blocked = report(&[]);
        let object = VppKey::Object(ObjectKey::FibSource);
        let (cause, value) = ("fib source: no".to_owned(), String::new());
        let reason = "no".to_owned();
        blocked.blocked.push(BlockedObject { object, value, reason, cause, attempts: 0, next_try: None });
        assert_eq!(lines(&mut log, &blocked, now).len(), 1);
        let away = VppReport { state: VppState::Away, ..report(&[]) };
        assert_eq!(lines(&mut log, &away, now), [""; 0]);
        assert_eq!(lines(&mut log, &blocked, now), ["vpp: blocked: fib source: no"]);
    }
}
