//! `peregrine agent --release`: gives VPP back to another agent, and ends.

use std::process::ExitCode;
use std::time::Duration;

use tokio::time::timeout;
use vpp_client::{Client, ClientSettings};

use super::{lock, writers};
use crate::env::Settings;
use crate::execute::vpp::release::{GivenBack, give_back};

/// How long VPP may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Give everything back, with nobody of ours running.
pub(super) async fn run(settings: &Settings) -> ExitCode {
    let Some(socket) = &settings.vpp else {
        eprintln!("peregrine agent: this agent speaks BGP only, so there is nothing to give back");
        return ExitCode::SUCCESS;
    };
    let _lock = match lock::take_in_time(&settings.state, || {}).await {
        Err(lock::LockError::Held) => {
            eprintln!("peregrine agent: an agent runs with {}; stop it first", settings.state.display());
            return ExitCode::FAILURE;
        }
        // A folder that can't be written holds no agent off, nor does it one.
        Err(lock::LockError::System(_)) => None,
        Ok(lock) => Some(lock),
    };
    let _claim = match writers::claim(socket).await {
        Ok(claim) => claim,
        Err(writer) => {
            eprintln!("peregrine agent: {writer}");
            return ExitCode::FAILURE;
        }
    };
    let (client, _notices) = Client::connect(socket, ClientSettings::default());
    if timeout(PATIENCE, client.ready()).await.ok().flatten().is_none() {
        eprintln!("peregrine agent: VPP does not answer at {}", socket.display());
        client.close().await;
        return ExitCode::FAILURE;
    }
    let outcome = give_back(&client).await;
    client.close().await;
    match outcome {
        Ok(GivenBack { routes, tunnels }) => {
            println!("given back: {routes} routes, {tunnels} tunnels");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("peregrine agent: {error}; run it again to give back the rest");
            ExitCode::FAILURE
        }
    }
}
