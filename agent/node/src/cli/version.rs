//! `peregrine version`.

use std::process::ExitCode;

use clap::Args;

use super::Format;
use super::output::{print, run as run_command};
use crate::inspect::answer::Version;

/// Version and commit of this program, and the VPP releases whose messages it speaks.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// How to show the answer.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let version = Version::own();
    run_command(async {
        match arguments.output {
            Format::Json => print(&format!("{}\n", serde_json::to_string(&version).unwrap_or_default())),
            Format::Table => print(&format!(
                "peregrine {} ({})\nVPP releases: {}\n",
                version.version,
                version.commit,
                version.vpp_releases.join(", ")
            )),
        }
    })
}
