//! Whole-process comparison of BGP speakers: opens real sessions with the daemon under test, sends it a table,
//! checks prefix by prefix what comes out at the other side, and prints the daemon's CPU seconds and peak memory.
//!
//! Every daemon runs in the same minute on the same machine, in network namespaces of its own. The figures to
//! compare are ratios of CPU seconds; wall time is printed for orientation only.
//!
//! - [`table`]: the synthetic table that is sent
//! - [`wire`]: the few lines of BGP that the sender and the receiver need
//! - [`daemon`]: how each daemon is configured and started
//! - [`scenario`]: what is done to it
//! - [`pipeline`]: the road from UPDATEs to routes in a simulated VPP
//! - [`sessions`]: a thousand sessions with nothing to say

mod daemon;
mod pipeline;
mod scenario;
mod sessions;
mod table;
mod wire;

use std::process::ExitCode;

use clap::Parser;
use test_support::lab::Lab;

use crate::daemon::Kind;
use crate::scenario::Figures;

/// Compares BGP speakers by CPU seconds and memory.
#[derive(Parser)]
struct Arguments {
    /// Prefixes that the sender announces.
    #[arg(long, default_value_t = 200_000)]
    prefixes: u32,
    /// Times that each daemon is measured; the table shows medians.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Measure the road from UPDATEs to routes in a simulated VPP instead.
    #[arg(long)]
    pipeline: bool,
    /// Measure so many idle sessions instead. Fails where they cost more than they may.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "1000")]
    sessions: Option<u32>,
    /// Measure this daemon only.
    #[arg(long, value_enum)]
    only: Option<Kind>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(count) = arguments.sessions {
        let (verdict, good) = std::sync::mpsc::channel();
        Lab::run(move |lab| {
            // The receiver lives until the lab has ended.
            let _ = verdict.send(sessions::run(lab, count));
        });
        return if good.recv() == Ok(true) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if arguments.pipeline {
        for _ in 0..arguments.runs {
            Lab::run(move |lab| pipeline::run(lab, arguments.prefixes));
        }
        return ExitCode::SUCCESS;
    }
    let wanted = Kind::ALL.into_iter().filter(|kind| arguments.only.is_none_or(|only| only == *kind));
    let mut all: Vec<(Kind, Vec<Figures>)> = wanted.map(|kind| (kind, Vec::new())).collect();
    for _ in 0..arguments.runs {
        for (kind, figures) in &mut all {
            let (kind, prefixes) = (*kind, arguments.prefixes);
            let (sender, receiver) = std::sync::mpsc::channel();
            Lab::run(move |lab| {
                let figures = scenario::one_to_one(lab, kind, prefixes);
                // The receiver lives until the lab has ended.
                let _ = sender.send(figures);
            });
            figures.extend(receiver.recv());
        }
    }
    print(arguments.prefixes, &all);
    ExitCode::SUCCESS
}

fn print(prefixes: u32, all: &[(Kind, Vec<Figures>)]) {
    println!(
        "1 eBGP sender x {prefixes} IPv4 prefixes -> 1 receiver, medians; every prefix checked at the receiver"
    );
    println!(
        "{:<12} {:>8} {:>10} {:>9} {:>12} {:>11}",
        "daemon", "CPU s", "peak MiB", "wall s", "CPU / BIRD", "mem / BIRD"
    );
    let medians: Vec<_> = all.iter().map(|(kind, runs)| (*kind, scenario::median(runs))).collect();
    let bird = medians.iter().find(|(kind, _)| *kind == Kind::Bird).map(|(_, figures)| *figures);
    for (kind, figures) in &medians {
        let ratio = |ours: f64, theirs: Option<f64>| {
            theirs.map_or_else(String::new, |theirs| format!("{:.2}", ours / theirs))
        };
        println!(
            "{:<12} {:>8.2} {:>10.1} {:>9.2} {:>12} {:>11}",
            kind.name(),
            figures.cpu_seconds,
            figures.peak_mib,
            figures.wall_seconds,
            ratio(figures.cpu_seconds, bird.map(|bird| bird.cpu_seconds)),
            ratio(figures.peak_mib, bird.map(|bird| bird.peak_mib)),
        );
    }
}
