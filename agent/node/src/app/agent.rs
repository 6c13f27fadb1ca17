//! `peregrine agent`: start, run, reload, stop.
//!
//! Start: settings → inspection socket → watcher of the folder → speaker → connection to VPP. Sessions open once the
//! first complete picture is there. Nothing waits for VPP: while it is away, sessions and queries go on. Stop:
//! requests to VPP finish and VPP is taken leave of, sessions end silently where the neighbour keeps our routes (graceful
//! restart) and with Cease elsewhere; what VPP holds stays.

use std::net::Ipv4Addr;
use std::num::NonZeroU8;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent_core::config::{BgpMode, Config, VppConfig};
use agent_core::model::{DEFAULT_ASN, NodeName};
use bgp_core::RouterId;
use bgp_core::command::StopMode;
use bgp_core::peer_key::InstanceName;
use bgp_core::rib::DecisionSettings;
use bgp_core::speaker::SpeakerSettings;
use bgp_net::NetSettings;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::lock::{self, LockError};
use super::signals::{Signals, Wish};
use super::writers;
use crate::engine::{EngineTask, Files, Notes};
use crate::env::{self, Mode, RouterIdChoice, Settings};
use crate::execute::status::NodeStatus;
use crate::execute::vpp::VppExecutor;
use crate::health;
use crate::inspect::Inspector;
use crate::inspect::answer::Version;
use crate::inspect::http::{Listener, serve};
use crate::keys;
use crate::log::{self, LogControl};
use crate::metrics;
use crate::watch::{Directory, InfoFile, RibWatcher};

/// What is done about what is in VPP from another agent, or for one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    /// Nothing: what is not ours is left alone.
    None,
    /// What another agent left becomes ours.
    Adopt,
    /// What is ours is given back; nothing else happens.
    Release,
}

/// Read the settings, run until told to stop.
pub(crate) fn run(file: Option<PathBuf>, takeover: Takeover) -> ExitCode {
    let loaded = env::load(file.as_deref(), std::env::vars_os());
    for fault in &loaded.faults {
        let kind = if fault.is_warning() { "warning" } else { "error" };
        eprintln!("peregrine agent: {kind}: {fault}");
    }
    let Some(settings) = loaded.settings else { return ExitCode::FAILURE };
    let log = log::start(settings.log);
    if takeover == Takeover::Release {
        return super::block_on(async move { super::release::run(&settings).await });
    }
    super::block_on(serve_node(file, settings, log, takeover == Takeover::Adopt))
}

async fn serve_node(file: Option<PathBuf>, mut settings: Settings, log: LogControl, adopt: bool) -> ExitCode {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!(%error, "cannot take signals");
            return ExitCode::FAILURE;
        }
    };
    let state = settings.state.display().to_string();
    let _lock = match lock::take_in_time(&settings.state, || {
        tracing::info!(
            state,
            "another agent runs with this folder, and may be stopping: waiting for its end"
        );
    })
    .await
    {
        Ok(lock) => Some(lock),
        Err(error @ LockError::Held) => {
            tracing::error!(state, %error, "cannot start");
            return ExitCode::FAILURE;
        }
        Err(LockError::System(error)) => {
            tracing::warn!(state, %error, "nothing can be kept over a restart");
            None
        }
    };
    let claim = match &settings.vpp {
        Some(vpp) => match writers::claim(vpp).await {
            Ok(claim) => Some(claim),
            Err(writer) => {
                tracing::error!(%writer, "cannot start");
                return ExitCode::FAILURE;
            }
        },
        None => None,
    };
    let socket = match Listener::unix(&settings.api) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(%error, "cannot serve the inspection socket");
            return ExitCode::FAILURE;
        }
    };

    let notes = Notes::new(&settings.state);
    let config = Config {
        wireguard_keys: settings
            .vpp
            .as_ref()
            .map(|_| keys::load_or_make(&settings.state))
            .unwrap_or_default(),
        remembered: notes.read(),
        ..engine_config(&settings, adopt)
    };
    let (objects_in, objects) = mpsc::channel(16);
    let mut folder = Directory::new(settings.manifests.clone());
    tokio::spawn(async move {
        loop {
            let changes = folder.next().await;
            // Waits for the engine; changes merge in the folder meanwhile.
            if objects_in.send(changes).await.is_err() {
                return;
            }
        }
    });

    // Number and identifier are told by the engine before any session opens.
    let identity = RouterId::from(config.router_id.unwrap_or(config.fallback_router_id));
    let restarted = was_running(&settings.state);
    let speaker = match bgp_net::spawn(speaker_settings(identity, restarted), NetSettings::default()) {
        Ok(speaker) => speaker,
        Err(error) => {
            tracing::error!(%error, "cannot start the speaker");
            return ExitCode::FAILURE;
        }
    };
    let Ok(rib) = RibWatcher::new(&speaker, config.families()).await else {
        tracing::error!("the speaker stopped at its start");
        return ExitCode::FAILURE;
    };
    tokio::spawn(super::log_peers(speaker.clone()));
    let (asks_in, asks) = mpsc::channel(16);
    let inspector = Arc::new(Inspector::new(speaker.clone(), Some(asks_in.clone())));
    tokio::spawn(serve(socket, inspector));
    if let Some(address) = settings.metrics {
        tokio::spawn(metrics::run(address, asks_in.clone(), settings.stats.clone()));
    }
    if let Some(address) = settings.health {
        tokio::spawn(health::run(address, asks_in));
    }
    let Version { version, commit, .. } = Version::own();
    tracing::info!(node = settings.node, manifests = %settings.manifests.display(), version, commit, "started");

    // Last, so that every way out from here on takes leave of VPP.
    let vpp = settings.vpp.as_deref().map(|socket| VppExecutor::connect(socket, adopt));
    if let Some(vpp) = &vpp {
        vpp.part_on_panic();
    }
    let status = NodeStatus::in_folder(&settings.state, &settings.node);
    let files = Files {
        info_file: vpp.as_ref().and(settings.info_file.as_deref()).map(InfoFile::new),
        notes,
        status,
        claim,
    };
    let mut engine = EngineTask::new(config, vpp, speaker.clone(), rib, objects, files, asks);
    loop {
        tokio::select! {
            ended = engine.run() => {
                if ended.is_err() {
                    tracing::error!("the speaker stopped");
                }
                engine.close().await;
                return ExitCode::FAILURE;
            }
            wish = signals.next() => match wish {
                Wish::Reload => reload(&file, &mut settings, &log),
                Wish::Stop => break,
            },
        }
    }
    tracing::info!("stopping");
    let farewell = async {
        // Both at once; each has its own limit below two seconds.
        tokio::join!(engine.close(), speaker.shutdown(StopMode::Graceful("the agent is stopping".into())));
    };
    let _ = std::fs::remove_file(&settings.api);
    tokio::select! {
        () = farewell => ExitCode::SUCCESS,
        () = signals.stop_again() => {
            engine.part();
            ExitCode::FAILURE
        }
    }
}

/// How long routes that an earlier run left in VPP stay, at most, for neighbours that are not back yet. Neighbours may
/// wait before they connect again (BIRD does for up to a minute after an error), and what is swept before they do is
/// traffic lost.
const SWEEP_AFTER: Duration = Duration::from_secs(120);

/// How many equal paths become paths of one route of VPP, whatever is in their AS paths: as Calico's BIRD merges them.
const MULTIPATH: NonZeroU8 = NonZeroU8::new(16).expect("not zero");

fn speaker_settings(identity: RouterId, restarted: bool) -> SpeakerSettings {
    SpeakerSettings {
        convergence_grace: SWEEP_AFTER,
        convergence_deadline: SWEEP_AFTER,
        restarted,
        decision: DecisionSettings {
            multipath: MULTIPATH,
            multipath_relax: true,
            ..DecisionSettings::RFC4271
        },
        ..SpeakerSettings::new(InstanceName::new("node"), DEFAULT_ASN, identity, super::seed())
    }
}

/// Whether an agent ran here before, as the folder of state tells; from now on it does. However that one ended, its
/// neighbours may still hold its routes and must learn that it is back.
fn was_running(state: &Path) -> bool {
    let mark = state.join("was-running");
    let was = mark.exists();
    if !was && let Err(error) = std::fs::write(&mark, "") {
        tracing::warn!(file = %mark.display(), %error, "the next start will not know that it is a restart");
    }
    was
}

fn engine_config(settings: &Settings, adopt: bool) -> Config {
    let hash = hashed_router_id(&settings.node);
    Config {
        vpp: settings.vpp.as_ref().map(|_| VppConfig {
            uplink: settings.uplink.as_deref().map(Into::into),
            loss_grace: settings.loss_grace,
            audit: settings.audit,
            adopt,
            ..VppConfig::default()
        }),
        mode: match settings.mode {
            Mode::DualStack => BgpMode::DualStack,
            Mode::V4Only => BgpMode::V4Only,
            Mode::V6Only => BgpMode::V6Only,
        },
        uplink_names: uplink_names(settings.uplink.as_deref()),
        priorities: settings.priorities,
        encryption: settings.encryption,
        service_prefixes: settings.service_prefixes.clone(),
        ipsec: settings.ipsec.clone(),
        router_id: match settings.router_id {
            RouterIdChoice::Address => None,
            RouterIdChoice::Hash => Some(hash),
            RouterIdChoice::Is(id) => Some(id),
        },
        fallback_router_id: hash,
        srv6: settings.srv6.clone(),
        multinet: settings.multinet,
        former_sids: settings.former_sids,
        ..Config::new(NodeName::from(settings.node.as_str()))
    }
}

/// VPP names an interface that it shares with Linux after it; filters may mean either.
fn uplink_names(uplink: Option<&str>) -> Vec<Arc<str>> {
    let linux = uplink.and_then(|name| name.strip_prefix("host-"));
    [uplink, linux].into_iter().flatten().map(Arc::from).collect()
}

/// The identifier that Calico derives from a node's name: the first four octets of its SHA-256, brought below the
/// multicast range.
fn hashed_router_id(node: &str) -> Ipv4Addr {
    let digest: [u8; 32] = Sha256::digest(node.as_bytes()).into();
    let [first, second, third, fourth, ..] = digest;
    let first = if first > 223 { first - 32 } else { first };
    Ipv4Addr::new(first, second, third, fourth)
}

/// Read the settings again and take over what can change live. The rest is reported.
fn reload(file: &Option<PathBuf>, settings: &mut Settings, log: &LogControl) {
    let loaded = env::load(file.as_deref(), std::env::vars_os());
    for fault in &loaded.faults {
        tracing::warn!("{fault}");
    }
    let Some(new) = loaded.settings else {
        tracing::warn!("the settings in force stay");
        return;
    };
    log.set_level(new.log.level);
    settings.log.level = new.log.level;
    let waiting = settings.differences(&new);
    if waiting.is_empty() {
        tracing::info!("settings read again");
    } else {
        let keys = waiting.join(", ");
        tracing::warn!(keys, "settings read again; these differ and change with a restart only");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_that_takes_its_time_loses_no_routes() {
        let settings = speaker_settings(RouterId(1), false);
        let times = [settings.convergence_grace, settings.convergence_deadline];
        assert!(times.iter().all(|time| *time >= Duration::from_secs(90)), "{times:?}");
    }

    #[test]
    fn a_second_start_is_a_restart() {
        let state = std::env::temp_dir().join(format!("peregrine-was-running-{}", std::process::id()));
        std::fs::create_dir_all(&state).unwrap();
        assert_eq!((was_running(&state), was_running(&state)), (false, true));
        std::fs::remove_dir_all(&state).unwrap();
        assert!(!was_running(&state), "without a folder there is no memory");
    }

    #[test]
    fn the_hash_is_the_one_that_calico_computes() {
        assert_eq!(hashed_router_id("kube-master"), Ipv4Addr::new(25, 79, 212, 8));
    }
}
