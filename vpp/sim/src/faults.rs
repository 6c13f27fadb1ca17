//! Faults on request: what a test wants to go wrong, and the verdict on each request.
//!
//! Pure: it counts requests and decides; the shell waits, closes and restarts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Something that shall go wrong. Faults are kept in the order they were added; the first whose `message` matches a
/// request decides about it. `message` is a message name without CRC; absent, every request matches. The handshake
/// (`sockclnt_create`) and the goodbye (`sockclnt_delete`) match only when they are named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Wait before a matching request is carried out. Later requests of the same connection wait behind it.
    Delay {
        /// Which requests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// How long each waits, in milliseconds.
        millis: u64,
        /// How many requests are delayed; absent, all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Answer a matching request with `retval` without carrying it out. Values behind the retval are all ones, as VPP
    /// answers. A dump has no retval: it is answered with no details.
    Refuse {
        /// Which requests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The value to answer, negative as VPP's errors are.
        retval: i32,
        /// How many requests are refused; absent, all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Swallow a matching request: not carried out, never answered.
    Silence {
        /// Which requests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// How many requests are swallowed; absent, all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<u32>,
    },
    /// Close the connection that sends the `nth` matching request from now (1 is the next). VPP lives on.
    Drop {
        /// Which requests are counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Which of them, from 1.
        nth: u64,
        /// Before or after it is carried out; its answer is lost either way.
        when: When,
    },
    /// End the process at the `nth` matching request from now (1 is the next) and start it again with empty state.
    Restart {
        /// Which requests are counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Which of them, from 1.
        nth: u64,
        /// Before or after it is carried out; its answer is lost either way.
        when: When,
    },
}

/// On which side of carrying out a request something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The request has no effect.
    Before,
    /// The request has its effect, but nobody hears about it.
    After,
}

/// What is to be done with one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Carry it out.
    Serve,
    /// Carry it out after this time.
    Wait(Duration),
    /// Answer this retval instead.
    Refuse(i32),
    /// Ignore it.
    Swallow,
    /// Close the connection.
    Drop(When),
    /// End the process and start it again.
    Restart(When),
}

/// The faults in force.
#[derive(Debug, Default)]
pub(crate) struct FaultPlan {
    faults: Vec<Fault>,
}

impl FaultPlan {
    /// Adds a fault behind the others.
    pub(crate) fn add(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// Forgets every fault.
    pub(crate) fn clear(&mut self) {
        self.faults.clear();
    }

    /// The faults in force, with what is left of their counts.
    pub(crate) fn list(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether nothing is to go wrong.
    pub(crate) fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// Decides about a request named `name` and counts it. A fault that is used up is gone.
    pub(crate) fn judge(&mut self, name: &str) -> Verdict {
        let Some(at) = self.faults.iter().position(|fault| fault.matches(name)) else {
            return Verdict::Serve;
        };
        let Some(fault) = self.faults.get_mut(at) else { return Verdict::Serve };
        let (verdict, used_up) = match fault {
            Fault::Delay { millis, times, .. } => {
                (Verdict::Wait(Duration::from_millis(*millis)), spend(times))
            }
            Fault::Refuse { retval, times, .. } => (Verdict::Refuse(*retval), spend(times)),
            Fault::Silence { times, .. } => (Verdict::Swallow, spend(times)),
            Fault::Drop { nth, when, .. } => count_down(nth, Verdict::Drop(*when)),
            Fault::Restart { nth, when, .. } => count_down(nth, Verdict::Restart(*when)),
        };
        if used_up {
            self.faults.remove(at);
        }
        verdict
    }
}

impl Fault {
    /// Which requests it is about, where not about all.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::Delay { message, .. }
            | Self::Refuse { message, .. }
            | Self::Silence { message, .. }
            | Self::Drop { message, .. }
            | Self::Restart { message, .. } => message.as_deref(),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self.message() {
            Some(wanted) => wanted == name,
            None => name != "sockclnt_create" && name != "sockclnt_delete",
        }
    }
}

/// Uses one of `times`; whether that was the last.
fn spend(times: &mut Option<u32>) -> bool {
    let Some(left) = times else { return false };
    *left = left.saturating_sub(1);
    *left == 0
}

/// Counts one of `nth`; the verdict falls when it reaches zero.
fn count_down(nth: &mut u64, verdict: Verdict) -> (Verdict, bool) {
    *nth = nth.saturating_sub(1);
    if *nth == 0 { (verdict, true) } else { (Verdict::Serve, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_run_out() {
        let mut plan = FaultPlan::default();
        plan.add(Fault::Refuse { message: Some("ip_table_add_del".into()), retval: -1, times: Some(2) });
        assert_eq!(plan.judge("ip_route_add_del_v2"), Verdict::Serve);
        assert_eq!(plan.judge("ip_table_add_del"), Verdict::Refuse(-1));
        assert_eq!(plan.judge("ip_table_add_del"), Verdict::Refuse(-1));
        assert_eq!(plan.judge("ip_table_add_del"), Verdict::Serve);
        assert!(plan.is_empty());
    }

    #[test]
    fn the_nth_request_is_hit_and_the_handshake_is_not_counted() {
        let mut plan = FaultPlan::default();
        plan.add(Fault::Drop { message: None, nth: 2, when: When::After });
        assert_eq!(plan.judge("sockclnt_create"), Verdict::Serve);
        assert_eq!(plan.judge("a"), Verdict::Serve);
        assert_eq!(plan.judge("b"), Verdict::Drop(When::After));
        assert_eq!(plan.judge("c"), Verdict::Serve);
    }

    #[test]
    fn a_fault_is_written_as_json() {
        let fault: Fault =
            serde_json::from_str(r#"{"fault":"restart","nth":3,"when":"before"}"#).expect("good json");
        assert_eq!(fault, Fault::Restart { message: None, nth: 3, when: When::Before });
        assert!(
            serde_json::from_str::<Fault>(r#"{"fault":"restart","nth":3,"when":"before","x":1}"#).is_err()
        );
    }
}
