//! The binary as its users run it: real processes on loopback addresses and unprivileged ports, a simulated VPP in this
//! process, a second `peregrine speaker` as the neighbour. Needs no privileges and no network of its own.
#![allow(clippy::unwrap_used, missing_docs)]

mod audit;
mod bad_input;
mod ipsec;
mod lab;
#[path = "../../../../vpp/stats/tests/made/mod.rs"]
mod made;
mod metrics;
mod policies;
mod road;
mod secrets;
mod speaker;
mod srv6;
mod takeover;
mod told;
mod vxlan;
mod wireguard;
