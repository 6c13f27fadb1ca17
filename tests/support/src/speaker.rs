//! `peregrine speaker`: our BGP speaker alone, from a file.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::Host;
use crate::peregrine::query;
use crate::process::Process;
use crate::route::Route;
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
        write(host, file);
        let binary = programs::peregrine();
        let config = config.to_string_lossy();
        let argv = [&*binary.to_string_lossy(), "speaker", "--config", &config, "--log-level", "debug"];
        let process = host.spawn("speaker", &argv);
        let mut speaker = Self { host: host.clone(), process };
        wait::until("the speaker answers", || {
            assert!(speaker.process.ended().is_none(), "the speaker ended: {}", speaker.process.log());
            speaker.try_ask(&["peers"])
        });
        speaker
    }

    /// Replaces the file and has the speaker read it.
    ///
    /// # Panics
    ///
    /// When it does not do so.
    #[track_caller]
    pub fn reload(&mut self, file: &str) {
        write(&self.host, file);
        let read = |log: &str| log.matches("configuration read again").count();
        let before = read(&self.process.log());
        self.process.signal(Signal::HUP);
        wait::until_true("the speaker has read its file again", || read(&self.process.log()) > before);
    }

    /// Everything it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
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

    /// Has `peregrine` tell it to do something.
    ///
    /// # Panics
    ///
    /// When it refuses.
    #[track_caller]
    pub fn tell(&self, words: &[&str]) {
        let (binary, socket) = (programs::peregrine(), self.socket());
        let (binary, socket) = (binary.to_string_lossy(), socket.to_string_lossy());
        self.host.succeed(&[&[&*binary], words, &["--socket", &*socket]].concat());
    }

    /// What is told of the neighbour at `address`.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn peer(&self, address: &str) -> Result<Value, String> {
        let peers = self.try_ask(&["peers"])?;
        let peer = peers.as_array().into_iter().flatten().find(|peer| peer["peer-address"] == address);
        peer.cloned().ok_or_else(|| peers.to_string())
    }

    /// Waits until something holds of the neighbour at `address`, and returns what is told of it.
    #[track_caller]
    pub fn await_peer(&self, address: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait::until(&format!("our session with {address} {what}"), || {
            let peer = self.peer(address)?;
            if holds(&peer) { Ok(peer) } else { Err(peer.to_string()) }
        })
    }

    /// Waits until the session with `address` is established, and returns what is told of it.
    #[track_caller]
    pub fn await_established(&self, address: &str) -> Value {
        self.await_peer(address, "is established", |peer| peer["session-state"] == "established")
    }

    /// The attributes of the path for `prefix` that the neighbour at `address` announces, from their octets. `family` as
    /// the command takes it.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn heard(&self, address: &str, family: &str, prefix: &str) -> Result<Route, String> {
        let routes = self.try_ask(&["routes", "adj-rib-in", family, prefix, "--neighbor", address])?;
        let attributes =
            routes[0]["paths"][0]["path-attributes"].as_array().ok_or_else(|| routes.to_string())?;
        let octets: Vec<Vec<u8>> = attributes
            .iter()
            .filter_map(|attribute| attribute["base64"].as_str())
            .map(crate::route::base64)
            .collect();
        Route::from_attributes(octets.iter().map(Vec::as_slice))
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Stops it in an orderly way.
    ///
    /// # Panics
    ///
    /// When it does not end well.
    #[track_caller]
    pub fn terminate(&mut self) {
        let status = self.process.terminate();
        assert!(status.success(), "{status}: {}", self.process.log());
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

fn write(host: &Host, file: &str) {
    let socket = host.dir().join("speaker.sock");
    let text = format!("api: {}\n{file}", socket.display());
    fs::write(host.dir().join("speaker.yaml"), text).expect("the host's folder is ours");
}
