//! `peregrine speaker`: our BGP speaker alone, from a file.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::lab::Host;
use crate::peregrine::query;
use crate::process::Process;
use crate::{programs, wait};

/// A running speaker.
#[derive(Debug)]
pub struct Speaker {
    host: Host,
    process: Process,
}

impl Speaker {
    /// Starts a speaker on `host` with `file`, to which the place of its API socket is added, and waits until it
    /// answers.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(host: &Host, file: &str) -> Self {
        let config = host.dir().join("speaker.yaml");
        let socket = host.dir().join("speaker.sock");
        // It outlives a SIGKILL.
        let _ = fs::remove_file(&socket);
        fs::write(&config, format!("api: {}\n{file}", socket.display())).expect("the host's folder is ours");
        let binary = programs::peregrine();
        let argv = [&*binary.to_string_lossy(), "speaker", "--config", &config.to_string_lossy()];
        let process = host.spawn("speaker", &argv);
        let mut speaker = Self { host: host.clone(), process };
        wait::until("the speaker answers", || {
            assert!(speaker.process.ended().is_none(), "the speaker ended: {}", speaker.process.log());
            speaker.try_ask(&["peers"])
        });
        speaker
    }

    fn socket(&self) -> PathBuf {
        self.host.dir().join("speaker.sock")
    }

    /// The JSON that a query command prints, for polling.
    ///
    /// # Errors
    ///
    /// What the command printed instead of JSON.
    pub fn try_ask(&self, words: &[&str]) -> Result<Value, String> {
        query(&self.host, &self.socket(), words)
    }

    /// Waits until the session with `address` is established, and returns what is told of it.
    #[track_caller]
    pub fn await_established(&self, address: &str) -> Value {
        wait::until(&format!("our session with {address} is established"), || {
            let peers = self.try_ask(&["peers"])?;
            let peer = peers.as_array().into_iter().flatten().find(|peer| peer["peer-address"] == address);
            match peer {
                Some(peer) if peer["session-state"] == "established" => Ok(peer.clone()),
                Some(_) | None => Err(peers.to_string()),
            }
        })
    }

    /// Waits until `prefix` is in our Loc-RIB and returns the route. `family` as the command takes it.
    #[track_caller]
    pub fn await_route(&self, family: &str, prefix: &str) -> Value {
        wait::until(&format!("our Loc-RIB holds {prefix}"), || {
            let routes = self.try_ask(&["routes", "loc-rib", family, prefix])?;
            let route = routes.as_array().into_iter().flatten().find(|route| route["prefix"] == prefix);
            route.cloned().ok_or_else(|| routes.to_string())
        })
    }

    /// Waits until `prefix` is in our Loc-RIB no more.
    #[track_caller]
    pub fn await_no_route(&self, family: &str, prefix: &str) {
        wait::until(&format!("{prefix} is gone"), || {
            let routes = self.try_ask(&["routes", "loc-rib", family, prefix])?;
            if routes == Value::Array(Vec::new()) { Ok(()) } else { Err(routes.to_string()) }
        });
    }
}
