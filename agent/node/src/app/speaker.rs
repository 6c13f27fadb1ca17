//! `peregrine speaker`: start, run, reload, stop.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use bgp_core::command::{Applied, Command, StopMode};
use bgp_core::peer_key::InstanceName;
use bgp_core::policy::Direction;
use bgp_core::speaker::SpeakerSettings;
use bgp_net::{Handle, NetSettings, Stopped};

use super::signals::{Signals, Wish};
use crate::inspect::Inspector;
use crate::inspect::http::{Listener, serve};
use crate::log::{self, LogSettings};
use crate::speaker_file::{SpeakerFile, Standing};

/// Read the file, run until told to stop.
pub(crate) fn run(path: PathBuf, settings: LogSettings) -> ExitCode {
    let file = match read(&path) {
        Ok(file) => file,
        Err(mistakes) => {
            for mistake in mistakes {
                eprintln!("peregrine speaker: error: {mistake}");
            }
            return ExitCode::FAILURE;
        }
    };
    log::start(settings);
    super::block_on(serve_speaker(path, file))
}

/// The file, or everything that is wrong with it, each with its place.
fn read(path: &Path) -> Result<SpeakerFile, Vec<String>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| vec![format!("{name}: {error}")])?;
    SpeakerFile::parse(&text).map_err(|flaws| flaws.iter().map(|flaw| flaw.in_file(&name)).collect())
}

async fn serve_speaker(path: PathBuf, mut file: SpeakerFile) -> ExitCode {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!(%error, "cannot take signals");
            return ExitCode::FAILURE;
        }
    };
    let socket = match file.api.as_deref().map(Listener::unix).transpose() {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "cannot serve the inspection socket");
            return ExitCode::FAILURE;
        }
    };
    let settings =
        SpeakerSettings::new(InstanceName::new("speaker"), file.asn, file.router_id, super::seed());
    // Nobody tells whether another process was here before. Where forwarding outlives us it may have been so, and
    // neighbours that knew none are not harmed by the thought; elsewhere there is nothing to wait for.
    let restarted = file.graceful_restart.is_some_and(|graceful| !graceful.forwarding.is_empty());
    let settings = SpeakerSettings { restarted, ..settings };
    let speaker = match bgp_net::spawn(settings, NetSettings { listen: file.listen.clone() }) {
        Ok(speaker) => speaker,
        Err(error) => {
            tracing::error!(%error, "cannot start the speaker");
            return ExitCode::FAILURE;
        }
    };
    tokio::spawn(super::log_peers(speaker.clone()));
    let inspector = Arc::new(Inspector::new(speaker.clone(), None));
    if let Some(socket) = socket {
        tokio::spawn(serve(socket, Arc::clone(&inspector)));
    }
    list_refused(&path, &file, &inspector);
    let mut commands = file.commands_since(None);
    commands.push(Command::LoadingDone);
    let Ok(done) = apply(&speaker, commands).await else {
        tracing::error!("the speaker stopped at its start");
        return ExitCode::FAILURE;
    };
    file = file.in_force(None, done.carried_out);
    tracing::info!(asn = %file.asn, router_id = %file.router_id, neighbors = file.peers.len() + file.ranges.len(), "started");

    loop {
        match signals.next().await {
            Wish::Stop => break,
            Wish::Reload => match read(&path) {
                Ok(mut new) => {
                    new.keep_from(&file);
                    list_refused(&path, &new, &inspector);
                    let listening = if new.listen == file.listen {
                        Ok(())
                    } else {
                        speaker.listen(new.listen.clone()).await
                    };
                    let applied = apply(&speaker, new.commands_since(Some(&file))).await;
                    let Ok(done) = listening.and(applied) else {
                        tracing::error!("the speaker stopped");
                        return ExitCode::FAILURE;
                    };
                    if new.api != file.api {
                        tracing::warn!("api: changes with a restart only");
                    }
                    let api = file.api.clone();
                    file = SpeakerFile { api, ..new.in_force(Some(file), done.carried_out) };
                    match done.refused {
                        0 => tracing::info!("configuration read again"),
                        refused => tracing::warn!(
                            refused,
                            "configuration read again, but not all of it is in force; the next reload tries the rest"
                        ),
                    }
                }
                Err(mistakes) => {
                    for mistake in mistakes {
                        tracing::error!("{mistake}");
                    }
                    tracing::error!("the configuration in force stays");
                }
            },
        }
    }
    tracing::info!("stopping");
    if let Some(api) = &file.api {
        let _ = std::fs::remove_file(api);
    }
    tokio::select! {
        () = speaker.shutdown(StopMode::Graceful("the speaker is stopping".into())) => ExitCode::SUCCESS,
        () = signals.stop_again() => ExitCode::FAILURE,
    }
}

fn list_refused(path: &Path, file: &SpeakerFile, inspector: &Inspector) {
    let all: Vec<_> = file.refused.iter().chain(&file.doubtful).cloned().collect();
    for neighbor in &all {
        let address = &neighbor.address;
        for flaw in &neighbor.flaws {
            let flaw = flaw.in_file(&path.display());
            match neighbor.standing {
                Standing::Stopped => tracing::error!(neighbor = address, "not started: {flaw}"),
                Standing::Kept => tracing::error!(neighbor = address, "its old settings stay: {flaw}"),
                Standing::Runs => tracing::warn!(neighbor = address, "{flaw}"),
            }
        }
    }
    inspector.set_refused(all);
}

/// What became of commands.
struct Done {
    /// Those that the speaker carried out, in their order.
    carried_out: Vec<Command>,
    /// How many it refused.
    refused: usize,
}

/// Give commands to the speaker and log what it refuses. A refusal concerns one neighbour, policy or prefix; the others
/// go on.
async fn apply(speaker: &Handle, commands: Vec<Command>) -> Result<Done, Stopped> {
    let answers = speaker.commands(commands.clone()).await?;
    let mut done = Done { carried_out: Vec::with_capacity(commands.len()), refused: 0 };
    for (command, answer) in commands.into_iter().zip(answers) {
        let name = name(&command);
        match answer {
            Ok(Applied::Unchanged | Applied::Applied) => tracing::debug!("{name}"),
            Ok(Applied::SessionReset) => tracing::info!("{name}: the session starts again"),
            Err(refusal) => {
                tracing::error!("{name}: {refusal}");
                done.refused += 1;
                continue;
            }
        }
        done.carried_out.push(command);
    }
    Ok(done)
}

/// What a command is about, in words.
fn name(command: &Command) -> String {
    match command {
        Command::PutPeer(key, _) => format!("neighbor {key}"),
        Command::DeletePeer(key) => format!("neighbor {key} removed"),
        Command::PutPeerRange(prefix, _) => format!("neighbors {prefix}"),
        Command::DeletePeerRange(prefix) => format!("neighbors {prefix} removed"),
        Command::PutOrigination(nlri, _) => format!("originate {nlri}"),
        Command::DeleteOrigination(nlri) => format!("originate {nlri} removed"),
        Command::PutAggregate(prefix, _) => format!("aggregate {prefix}"),
        Command::DeleteAggregate(prefix) => format!("aggregate {prefix} removed"),
        Command::PutSet(name, def) => format!("{} {name}", def.kind()),
        Command::DeleteSet(kind, name) => format!("{kind} {name} removed"),
        Command::PutPolicy(name, _) => format!("policy {name}"),
        Command::DeletePolicy(name) => format!("policy {name} removed"),
        Command::PutGlobalPolicies(Direction::Import, _) => "import policies of all neighbors".into(),
        Command::PutGlobalPolicies(Direction::Export, _) => "export policies of all neighbors".into(),
        Command::PutNextHop(address, _) => format!("next hop {address}"),
        Command::DeleteNextHop(address) => format!("next hop {address} removed"),
        Command::PutIdentity { asn, router_id } => format!("AS {asn}, router id {router_id}"),
        Command::PutClusterId(Some(id)) => format!("cluster id {id}"),
        Command::PutClusterId(None) => "cluster id removed".into(),
        Command::PutDecision(_) => "how paths are compared".into(),
        Command::LoadingDone => "own routes are complete".into(),
        Command::ClearPeer(key, _) => format!("clear {key}"),
        Command::DisablePeer(key, _) => format!("disable {key}"),
        Command::EnablePeer(key) => format!("enable {key}"),
        Command::GracefulShutdown(key) => format!("graceful shutdown of {key}"),
        Command::Stop(_) => "stop".into(),
    }
}
