//! A VPP without a data plane: the real wire protocol on a real Unix socket, the same return values, and state that can be
//! dumped. It answers, refuses and dies as VPP 26.06 does, as far as the messages of `vpp-wire` reach and as far as that
//! was recorded. Packets are forwarded by nobody.
//!
//! * [`options`]: what it is started with
//! * [`vpp`]: one process as a value: clients, message table, request in, answers out
//! * [`api`]: what each message does, one file per API module
//! * [`state`]: interfaces, tables, routes
//! * [`faults`]: what is to go wrong
//! * [`server`]: the socket, its tasks, and [`SimHandle`] for tests in the same process
//! * [`control`]: HTTP with JSON on a socket of its own, for everybody else
//!
//! Ships as the command `peregrine vpp-sim`; [`run`] is all of it but the reading of arguments.

mod api;
pub mod control;
mod faults;
mod options;
mod server;
mod state;
mod vpp;

use std::future::Future;
use std::io;

pub use crate::faults::{Fault, When};
pub use crate::options::{InterfaceSpec, InterfaceSpecError, SimOptions};
pub use crate::server::handle::{Sim, SimControl, SimHandle};
pub use crate::server::process::Stats;
pub use crate::vpp::Death;

/// Why a simulated VPP ended, or never began.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The API socket cannot be bound.
    #[error("the API socket {path} cannot be bound")]
    Socket {
        /// Where it should be.
        path: std::path::PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The control socket cannot be bound.
    #[error("the control socket {path} cannot be bound")]
    Control {
        /// Where it should be.
        path: std::path::PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It died as a real VPP would have.
    #[error("VPP died: {0}")]
    Died(Death),
}

/// Runs a simulated VPP until `stop` resolves, or until it dies and is not to start again.
///
/// # Errors
/// [`SimError`], all variants.
pub async fn run(options: SimOptions, stop: impl Future<Output = ()>) -> Result<(), SimError> {
    let control_path = options.control.clone();
    let socket = options.socket.clone();
    let sim = SimHandle::start(options).map_err(|source| SimError::Socket { path: socket, source })?;
    let _control = match control_path {
        Some(path) => {
            Some(control::serve(sim.control(), &path).map_err(|source| SimError::Control { path, source })?)
        }
        None => None,
    };
    tracing::info!(socket = %sim.socket().display(), "a VPP without a data plane is listening");
    let died = async {
        loop {
            sim.until_dead().await;
            if let Some(death) = sim.death() {
                return death;
            }
            // taken down on purpose: it may come up again
            sim.until(|stats| stats.alive).await;
        }
    };
    let ended = tokio::select! {
        () = stop => Ok(()),
        death = died => Err(SimError::Died(death)),
    };
    sim.close().await;
    ended
}
