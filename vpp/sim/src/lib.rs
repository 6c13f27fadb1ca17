//! A VPP without a data plane: the real wire protocol on a real Unix socket, the same return values, and state that can be
//! dumped. It answers, refuses and dies as VPP 26.06 does, as far as the messages of `vpp-wire` reach and as far as that
//! was recorded; it can pose as an older release. Packets are forwarded by nobody.
//!
//! * `options`: what it is started with
//! * `release`: what older releases lack or have in another form
//! * `vpp`: one process as a value: clients, message table, request in, answers out; `clients`, `context`: its parts
//! * `run`: the command
//! * `api`: what each message does, one file per API module
//! * `state`: interfaces, tables, routes
//! * `faults`: what is to go wrong
//! * `server`: the socket, its tasks, and [`SimHandle`] for tests in the same process
//! * [`control`]: HTTP with JSON on a socket of its own, for everybody else
//!
//! Ships as the command `peregrine vpp-sim`; [`run()`] is all of it but the reading of arguments.

mod api;
mod clients;
mod context;
pub mod control;
mod faults;
mod options;
mod release;
mod run;
mod server;
mod state;
mod vpp;

pub use crate::faults::{Fault, When};
pub use crate::options::{InterfaceSpec, InterfaceSpecError, SimOptions};
pub use crate::release::{Release, ReleaseError};
pub use crate::run::{SimError, run};
pub use crate::server::handle::{Sim, SimControl, SimHandle};
pub use crate::server::process::Stats;
pub use crate::vpp::Death;
