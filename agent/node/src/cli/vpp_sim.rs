//! `peregrine vpp-sim`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use vpp_sim::{InterfaceSpec, Release, SimOptions};

use super::output::{CommandError, print, run as run_command};
use crate::app::signals::{Signals, Wish};
use crate::inspect::client::{AskError, ask, post};
use crate::log::{self, LogSettings};

const EXAMPLES: &str = r#"For example:
  peregrine vpp-sim --socket /tmp/vpp.sock --control /tmp/control.sock \
      --interface host-eth0=192.0.2.1/24,2001:db8:1::1/64
  peregrine vpp-sim --show /tmp/control.sock
  peregrine vpp-sim --control /tmp/control.sock \
      --fault '{"fault": "refuse", "message": "ip_route_add_del_v2", "retval": -9, "times": 3}'
  curl --unix-socket /tmp/control.sock -X POST http://x/v1/restart

Faults: delay (millis), refuse (retval), silence; drop and restart (nth, when: before or after). All of them
take message, the name of a request, and the first three times, how often.
"#;

/// A VPP without a data plane: the real wire protocol, the same return values, state that can be shown. For trying the
/// agent without VPP, and for tests.
///
/// Its control socket speaks HTTP with JSON: GET /v1/state, /v1/meaning, /v1/stats; GET, POST and DELETE /v1/faults;
/// POST /v1/restart, /v1/down, /v1/up, /v1/hang and /v1/resume. `--show` and `--fault` ask a running one.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Unix socket for VPP's binary API.
    #[arg(long, value_name = "PATH", required_unless_present_any = ["show", "fault"])]
    socket: Option<PathBuf>,
    /// An interface that is there from the start, up, with its addresses. May be given several times.
    #[arg(long = "interface", value_name = "NAME=ADDRESS/LENGTH[,...]")]
    interfaces: Vec<InterfaceSpec>,
    /// Unix socket for looking at it and disturbing it.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// A message that it does not know, as if a plugin were not loaded. May be given several times.
    #[arg(long = "without", value_name = "MESSAGE")]
    hide: Vec<String>,
    /// The release to pose as: 25.06, 25.10, 26.02 or 26.06.
    #[arg(long, value_name = "RELEASE", default_value_t)]
    release: Release,
    /// Start again with empty state after it died of something that kills the real one.
    #[arg(long)]
    respawn: bool,
    /// Print the state of the one that runs with this control socket, and end.
    #[arg(long, value_name = "CONTROL", conflicts_with_all = ["socket", "fault"])]
    show: Option<PathBuf>,
    /// Give this fault (JSON) to the one that runs with the control socket of --control, and end.
    #[arg(long, value_name = "JSON", requires = "control", conflicts_with = "socket")]
    fault: Option<String>,
}

/// Whoever asks a simulated VPP wants to hear of that one, not of an agent.
fn of_sim(error: AskError) -> CommandError {
    match error {
        AskError::NotThere { socket, source } => CommandError::NoSim { socket, source },
        other @ (AskError::Broken(_) | AskError::Refused(_) | AskError::Unreadable(_)) => other.into(),
    }
}

pub(super) fn run(arguments: Arguments) -> ExitCode {
    let Arguments { socket, interfaces, control, hide, release, respawn, show, fault } = arguments;
    if let Some(control) = show {
        return run_command(async {
            let state: serde_json::Value = ask(&control, "/v1/state").await.map_err(of_sim)?;
            print(&format!("{state:#}\n"))
        });
    }
    if let (Some(fault), Some(control)) = (fault, &control) {
        return run_command(async { print(&post(control, "/v1/faults", fault).await.map_err(of_sim)?) });
    }
    let Some(socket) = socket else { return ExitCode::FAILURE };
    log::start(LogSettings::default());
    let options = SimOptions { control, interfaces, hide, release, respawn, ..SimOptions::new(socket) };
    crate::app::block_on(async {
        let stop = async {
            match Signals::new() {
                Ok(mut signals) => while signals.next().await != Wish::Stop {},
                Err(_) => std::future::pending().await,
            }
        };
        match vpp_sim::run(options, stop).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("peregrine vpp-sim: {error}");
                ExitCode::FAILURE
            }
        }
    })
}
