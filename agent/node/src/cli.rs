//! The command line: one subcommand in each file of the folder.
//!
//! The query commands ask the running process over its inspection socket; they hold no logic of their own but how
//! answers look on a terminal. Every command takes `-o json` where it answers anything.

mod agent;
mod check;
mod clear;
mod explain;
mod output;
mod peer;
mod peers;
mod policies;
mod routes;
mod speaker;
mod table;
mod version;
mod vpp;
mod vpp_sim;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Where a process answers, unless it was told otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/var/run/peregrine/peregrine.sock";

/// A BGP speaker and node agent that turns routes and Kubernetes objects into forwarding state of VPP.
#[derive(Debug, Parser)]
#[command(name = "peregrine", version, propagate_version = true, arg_required_else_help = true)]
#[command(max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Agent(agent::Arguments),
    Speaker(speaker::Arguments),
    Peers(peers::Arguments),
    Peer(peer::Arguments),
    Clear(clear::Arguments),
    Routes(routes::Arguments),
    Policies(policies::Arguments),
    Explain(explain::Arguments),
    Vpp(vpp::Arguments),
    Check(check::Arguments),
    VppSim(vpp_sim::Arguments),
    Version(version::Arguments),
}

/// How to ask, and how to show the answer.
#[derive(Clone, Debug, Args)]
struct Asking {
    /// Unix socket of the running process.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
    /// How to show the answer.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

/// What is to be changed: where it is asked for, and the question.
struct Changed<'a, Q> {
    place: &'static str,
    question: &'a Q,
}

/// How an answer is shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people: columns, at most 100 characters wide.
    Table,
    /// For programs.
    Json,
}

/// Run what the command line asks for.
pub(crate) fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Agent(arguments) => agent::run(arguments),
        Command::Speaker(arguments) => speaker::run(arguments),
        Command::Peers(arguments) => peers::run(&arguments),
        Command::Peer(arguments) => peer::run(&arguments),
        Command::Clear(arguments) => clear::run(&arguments),
        Command::Routes(arguments) => routes::run(&arguments),
        Command::Policies(arguments) => policies::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Vpp(arguments) => vpp::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::VppSim(arguments) => vpp_sim::run(arguments),
        Command::Version(arguments) => version::run(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_explains_itself() {
        fn explained(command: &mut clap::Command) {
            for sub in command.get_subcommands_mut().filter(|sub| sub.get_name() != "help") {
                let help = sub.render_long_help().to_string();
                assert!(help.len() > 200, "{help}");
                for argument in sub.get_arguments() {
                    assert!(argument.get_help().is_some(), "{} {}", sub.get_name(), argument.get_id());
                }
                explained(sub);
            }
        }
        let mut command = Arguments::command();
        command.build();
        explained(&mut command);
    }
}
