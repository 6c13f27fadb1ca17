//! Who decides what. A handler hears events, remembers what it needs, and answers with effects; it never waits, never
//! calls another handler and never fails: what it cannot do becomes a condition on an object.
//!
//! - `peer`: which neighbours, their AS numbers and settings
//! - `bgp`: filters, pools and settings to policies; best paths to connectivity
//! - `routing`: which prefixes this node originates
//! - `connectivity`: destinations to objects of VPP
//! - `snat`: which sources are translated, and for which destinations
//! - `srv6`: this node's SIDs, and the SR policies that tell of them
//! - `host`: where VPP's uplink is to be found
//!
//! Who hears which event is listed in `engine.rs`.

mod bgp;
mod connectivity;
mod host;
mod peer;
mod routing;
mod snat;
mod srv6;

use bgp_core::time::Instant;

use crate::effects::Effects;

pub(crate) use bgp::BgpHandler;
pub use bgp::filter_of;
pub(crate) use connectivity::ConnectivityHandler;
pub(crate) use host::HostHandler;
pub(crate) use peer::PeerHandler;
pub(crate) use routing::RoutingHandler;
pub(crate) use snat::SnatHandler;
pub(crate) use srv6::Srv6Handler;

/// A handler hears an event by implementing this for its payload.
pub(crate) trait Handler<E> {
    /// Takes the event in, and says what follows from it.
    fn on(&mut self, now: Instant, event: &E, fx: &mut Effects);
}
