//! `peregrine check`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::Format;
use super::output::print;
use super::vpp::describe;
use crate::check::check;
use crate::engine::problem;
use crate::inspect::answer::Problem;

/// Read manifests, the settings of an agent, or the file of a speaker, and report every problem with its file, line, object, field and remedy.
///
/// Nothing runs and nothing is changed. Ends with 0 where there is nothing to report, 1 where there are problems or
/// warnings, 2 where something could not be read.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Files, and folders of manifests as `datastore: directory:PATH` takes them. All manifests are looked at together.
    #[arg(required = true, value_name = "FILE-OR-DIR")]
    paths: Vec<PathBuf>,
    /// How to show the answer.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let findings = check(&arguments.paths);
    let problems: Vec<Problem> = findings.problems.iter().map(problem).collect();
    let text = match arguments.output {
        Format::Json => serde_json::to_string(&problems).unwrap_or_default() + "\n",
        Format::Table => problems.iter().map(|problem| describe(problem) + "\n").collect(),
    };
    // Whoever reads may go away; the exit code says enough.
    let _ = print(&text);
    ExitCode::from(match (findings.unreadable, problems.is_empty()) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    })
}
