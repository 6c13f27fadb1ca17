//! What shall exist in VPP and in the speaker, by key, and who wants it.
//!
//! `object` names what can be wanted of VPP, `tunnel` the interfaces among it, `spec` the values that some of it has, and
//! `speaker` what can be wanted of the speaker. `store` holds what is wanted of VPP together with what VPP is known to
//! hold: a route is one entry for both, so a hundred thousand of them cost little. `owners` decides between several who
//! want the same route; `wishes` is what one of them wants. `noted` remembers what VPP doesn't show.
//!
//! *Absent on purpose:* operations and their order (that is [`plan`](crate::plan)), and indices that VPP gave out as
//! a way to refer to anything.

mod ike;
mod noted;
mod object;
mod owners;
mod paths;
mod prefix_map;
mod snat;
mod speaker;
mod spec;
mod store;
mod tunnel;
mod wishes;

pub use ike::{IkeHeld, IkeProfile};
pub use object::{ObjectKey, Owner, Path, Target, Territory, Uplink, VppKey, WayId};
pub(crate) use paths::SetId;
pub(crate) use prefix_map::{Lengths, PrefixMap};
pub use snat::{SnatAddresses, SnatTable};
pub use speaker::{BgpKey, BgpObject};
pub use spec::{MtuRule, Spec, WireguardPeer};
pub(crate) use store::{Actual, ObjectEntry, State, Store};
pub use tunnel::{IpipKey, Tunnel, VxlanKey, WireguardKey};
pub(crate) use wishes::Wishes;
