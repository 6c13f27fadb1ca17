//! Whole-process comparison of BGP speakers: opens real sessions with the daemon under test, sends it tables, checks
//! prefix by prefix what comes out at the other side, and prints the daemon's CPU seconds and peak memory.
//!
//! Every daemon runs in the same minute on the same machine, in a network namespace of its own. The figures to
//! compare are ratios of CPU seconds; wall time is printed for orientation, and where it is what counts.
//!
//! - [`scenario`]: what is done to a daemon; [`churn`]: the longest of the scenarios
//! - [`plan`]: who takes part, what is sent, and what must be heard
//! - [`table`]: the synthetic tables that are sent
//! - [`wire`]: the little BGP that senders and receivers need; [`ends`]: their sessions
//! - [`judge`]: whether what arrives is right
//! - [`daemon`]: how each daemon is configured and started
//! - [`report`]: the table, and the bounds
//! - [`pipeline`]: the road from UPDATEs to routes in a simulated VPP
//! - [`vpp`]: that road at its fastest, into a peer that only acknowledges and into a real VPP, and after a restart of VPP
//! - [`sessions`]: a thousand sessions with nothing to say

mod churn;
mod daemon;
mod ends;
mod judge;
mod pipeline;
mod plan;
mod report;
mod scenario;
mod sessions;
mod table;
mod vpp;
mod wire;

use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::Parser;
use test_support::lab::Lab;

use crate::daemon::Kind;
use crate::report::Report;
use crate::scenario::{Figures, Scenario};

/// Compares BGP speakers by CPU seconds and memory. Fails where ours misses a bound.
#[derive(Parser)]
struct Arguments {
    /// Scenarios to measure; all when left out.
    #[arg(long, value_enum, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// Daemons to measure; all that are installed when left out.
    #[arg(long, value_enum, value_delimiter = ',')]
    daemon: Vec<Kind>,
    /// Times that each daemon is measured; the table shows medians.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Divides the tables of a to e, h, i and k, for a quick look.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    scale: u32,
    /// Seconds that a part of a scenario may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    deadline: u64,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
    /// Measure the road from UPDATEs to so many routes in a simulated VPP instead.
    #[arg(long, value_name = "ROUTES", num_args = 0..=1, default_missing_value = "100000")]
    pipeline: Option<u32>,
    /// Measure so many routes into a peer that only acknowledges, and the lag of single changes, instead.
    #[arg(long, value_name = "ROUTES", num_args = 0..=1, default_missing_value = "500000")]
    routes: Option<u32>,
    /// Measure so many routes into the real VPP that `VPP_BIN` names, beside a bare loop, instead.
    #[arg(long, value_name = "ROUTES", num_args = 0..=1, default_missing_value = "500000")]
    vpp: Option<u32>,
    /// Measure how long so many routes and 1,000 tunnels take to be in a simulated VPP again after its restart instead.
    #[arg(long, value_name = "ROUTES", num_args = 0..=1, default_missing_value = "100000",
          value_parser = clap::value_parser!(u32).range(1000..=130_000))]
    replay: Option<u32>,
    /// Measure so many idle sessions instead.
    #[arg(long, value_name = "COUNT", num_args = 0..=1, default_missing_value = "1000")]
    sessions: Option<u32>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Text,
    Json,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(count) = arguments.sessions {
        return exit(in_lab(move |lab| sessions::run(lab, count)));
    }
    if let Some(count) = arguments.pipeline {
        for _ in 0..arguments.runs {
            in_lab(move |lab| pipeline::run(lab, count));
        }
        return ExitCode::SUCCESS;
    }
    if arguments.routes.is_some() || arguments.vpp.is_some() || arguments.replay.is_some() {
        return exit(to_vpp(&arguments));
    }
    let scenarios = if arguments.scenario.is_empty() { Scenario::ALL.into() } else { arguments.scenario };
    let all = arguments.daemon.is_empty();
    let daemons = if all { Kind::ALL.into() } else { arguments.daemon };
    let mut report = Report::default();
    let (scale, patience) = (arguments.scale, Duration::from_secs(arguments.deadline));
    for scenario in scenarios {
        for run in 1..=arguments.runs {
            for kind in &daemons {
                if !scenario.is_for(*kind) || (all && !kind.is_installed()) {
                    continue;
                }
                // It would only take as long to fail again.
                if *kind != Kind::Peregrine && report.has_failed(scenario, *kind) {
                    continue;
                }
                let kind = *kind;
                let figures = in_lab(move |lab| scenario::measure(lab, kind, scenario, scale, patience));
                progress(scenario, kind, run, &figures);
                report.add(scenario, kind, figures);
            }
        }
    }
    match arguments.output {
        Output::Text => print!("{}", report.text()),
        Output::Json => println!("{:#}", report.json()),
    }
    exit(report.is_good())
}

/// The bounds of the road to VPP hold, each in the best of all runs: what else the machine does is no fault of ours.
fn to_vpp(arguments: &Arguments) -> bool {
    let mut good = true;
    if let Some(count) = arguments.routes {
        let all: Vec<_> =
            (0..arguments.runs).map(|_| in_lab(move |lab| vpp::routes::run(lab, count))).collect();
        good &= all.iter().any(|figures| figures.rate >= vpp::routes::LEAST_RATE);
        good &= all.iter().any(|figures| figures.p99 < vpp::routes::MOST_LAG);
    }
    if let Some(count) = arguments.vpp {
        if test_support::vpp::binary().is_none() {
            eprintln!("VPP_BIN names no VPP to measure");
            return false;
        }
        let all: Vec<_> =
            (0..arguments.runs).map(|_| in_lab(move |lab| vpp::real::run(lab, count))).collect();
        good &= all.iter().any(|figures| figures.agent >= vpp::real::LEAST_SHARE * figures.bare);
    }
    if let Some(count) = arguments.replay {
        let all: Vec<_> =
            (0..arguments.runs).map(|_| in_lab(move |lab| vpp::replay::run(lab, count))).collect();
        good &= all.iter().any(|took| *took < vpp::replay::MOST);
    }
    good
}

fn exit(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What `work` gives, done in a lab of its own.
fn in_lab<T: Send + 'static>(work: impl FnOnce(&Lab) -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    Lab::run(move |lab| {
        // The receiver lives until the lab has ended.
        let _ = sender.send(work(lab));
    });
    receiver.recv().expect("the lab has ended without a panic")
}

fn progress(scenario: Scenario, kind: Kind, run: u32, figures: &Result<Figures, String>) {
    let what = match figures {
        Ok(figures) => format!(
            "{:.3} CPU s, {:.1} MiB, {:.3} s",
            figures.cpu_seconds, figures.peak_mib, figures.wall_seconds
        ),
        Err(why) => why.clone(),
    };
    eprintln!("{} {} run {run}: {what}", scenario.letter(), kind.name());
}
