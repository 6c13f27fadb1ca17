//! What a VPP without a data plane knows: interfaces, tables and routes, and how they hang together.
//!
//! Pure: no socket, no clock, no message. The API modules read requests, ask this state and write the answers.
//!
//! * [`interface`]: interfaces, addresses, tunnels, events
//! * [`fib`]: tables and routes; [`sources`]: whose route wins; [`paths`]: the path lists they share; [`path`]: one path
//! * [`cnat`]: address translation; [`ikev2`]: keys for tunnels
//! * [`sr`]: local SIDs, SR policies, what is steered into them
//! * [`wireguard`]: keys and peers
//! * [`key`]: prefixes; [`pool`]: indices
//! * [`dump`]: all of it as JSON
//!
//! Absent on purpose: neighbours, counters, multicast, and everything the messages of `vpp-wire` cannot reach.

pub(crate) mod cnat;
pub(crate) mod dump;
pub(crate) mod fib;
pub(crate) mod graph;
pub(crate) mod ikev2;
pub(crate) mod interface;
pub(crate) mod key;
pub(crate) mod path;
pub(crate) mod paths;
pub(crate) mod pool;
pub(crate) mod sources;
pub(crate) mod sr;
pub(crate) mod wireguard;

mod connected;
mod model;

pub(crate) use self::connected::AddressError;
pub(crate) use self::model::State;
