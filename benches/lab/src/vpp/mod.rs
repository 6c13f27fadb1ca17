//! The road from UPDATEs to VPP at speed: into a peer that only acknowledges, into a real VPP beside a bare loop, and all
//! again after a restart.
//!
//! - [`binapi`]: the little of VPP's API that this needs, apart from our own codec; [`acker`]: the peer
//! - [`road`]: an agent with a neighbour that has a table
//! - [`routes`]: routes into the peer, and the lag of single changes
//! - [`real`]: routes into a real VPP
//! - [`replay`]: a simulated VPP that starts again

mod acker;
mod binapi;
pub(crate) mod real;
pub(crate) mod replay;
mod road;
pub(crate) mod routes;
