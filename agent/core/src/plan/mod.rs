//! From what shall be to what is: operations for VPP and commands for the speaker.
//!
//! `operation` says what an executor is asked to do. `order` gives every object its rank and what it needs, `steps` the
//! actions that make, change and delete it. `diff` looks at one entry of the store and says the next step. `actual` turns a dump into what is known of
//! VPP, and `audit` says what differed from it. `run` is the reconciler of VPP as a value: what is ready, in flight (`in_flight`), retried, blocked; `report` counts for people how that stands, and
//! `standing` says it of each object. `rivals` watches for others who write into the same VPP. `speaker` is the same for
//! the speaker, which is simpler: it lives in this process and starts empty.
//!
//! *Absent on purpose:* waiting. The engine hands an operation over when the executor has a free slot, and hears of
//! its end by an event.

mod actual;
mod audit;
mod backoff;
mod diff;
mod in_flight;
mod operation;
mod order;
mod report;
mod rivals;
mod run;
mod sessions;
mod speaker;
mod standing;
mod steps;

pub use audit::Audit;
pub use operation::{
    IkeAction, IkeRequest, NatAction, OpId, Retval, SOURCE_NAME, SpeakerOp, Srv6Action, TUNNEL_TAG,
    VppAction, VppFailure, VppOp, WireguardAction, own_address, profile_ends, profile_name, tag,
};
pub(crate) use order::family;
pub use report::{BlockedObject, Course, KindCounts, PendingObject, VppReport, VppState, WireguardSession};
pub(crate) use run::VppPlan;
pub(crate) use speaker::SpeakerPlan;
