//! `peregrine agent`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::app::agent::Takeover;

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
    /// Take over what another agent, Calico/VPP's own for one, left in VPP: its tunnels become ours, and its routes go once
    /// ours are in their place and every neighbor has sent its own. Needed once; does no harm later.
    #[arg(long)]
    adopt: bool,
    /// Give VPP back to another agent, and end: our routes become routes of VPP's own source, our tunnels lose our mark,
    /// and packets go on. No agent of ours may be running.
    #[arg(long, conflicts_with = "adopt")]
    release: bool,
}

pub(super) fn run(arguments: Arguments) -> ExitCode {
    let takeover = match (arguments.adopt, arguments.release) {
        (true, _) => Takeover::Adopt,
        (false, true) => Takeover::Release,
        (false, false) => Takeover::None,
    };
    crate::app::agent::run(arguments.config, takeover)
}
