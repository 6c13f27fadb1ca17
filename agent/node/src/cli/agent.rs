//! `peregrine agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// The node agent: watches the datastore, speaks BGP, programs VPP. Stays in the foreground.
///
/// SIGTERM and SIGINT stop it gracefully: neighbors keep our routes where graceful restart is agreed, other sessions
/// end with Cease, VPP keeps what it holds. SIGHUP reads the settings again; the log level changes live, the rest with
/// the next start.
#[derive(Debug, Args)]
#[command(after_long_help = crate::env::help())]
pub(super) struct Arguments {
    /// Settings as YAML. Environment variables win over it, and do without it where they say everything.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments) -> ExitCode {
    crate::app::agent::run(arguments.config)
}
