//! `peregrine`: the node agent, the speaker alone, and the commands that ask them.
//!
//! One binary, one folder for each concern: `cli` reads the command line, `env` and `speaker_file` the configuration,
//! `app` starts and stops, `engine` owns the decisions of agent-core, `watch` feeds them, `execute` carries them out,
//! `keys` keeps this node's own, `inspect` and `health` answer questions, `check` looks at files before anyone runs them, `dry_run` tries their policies on
//! routes, which `recording` reads.

mod app;
mod check;
mod cli;
mod crd;
mod dry_run;
mod engine;
mod env;
mod execute;
mod health;
mod inspect;
mod keys;
mod log;
mod metrics;
mod recording;
mod speaker_file;
mod watch;
mod yaml;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
