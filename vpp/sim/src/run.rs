//! The whole command but the reading of its arguments.

use std::future::Future;
use std::io;

use crate::control;
use crate::options::SimOptions;
use crate::server::handle::SimHandle;
use crate::vpp::Death;

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
