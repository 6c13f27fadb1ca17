//! `peregrine speaker` under test: its file, read again while it runs, and its answers.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;

use test_support::lab::Host;
use test_support::process::Process;
use test_support::{programs, wait};

/// A running `peregrine speaker`.
#[derive(Debug)]
pub(crate) struct Speaker {
    host: Host,
    process: Process,
}

impl Speaker {
    /// Starts a speaker on `host` from a file with this text, to which the inspection socket is added, and waits until
    /// it answers.
    #[track_caller]
    pub(crate) fn start(host: &Host, file: &str) -> Self {
        write(host, file);
        // It outlives a SIGKILL.
        let _ = fs::remove_file(socket(host));
        let (binary, config) = (programs::peregrine(), host.dir().join("speaker.yaml"));
        let argv = [
            &*binary.to_string_lossy(),
            "speaker",
            "--config",
            &config.to_string_lossy(),
            "--log-level",
            "debug",
        ];
        let mut speaker = Self { host: host.clone(), process: host.spawn("speaker", &argv) };
        wait::until("the speaker answers", || {
            assert!(speaker.process.ended().is_none(), "the speaker ended: {}", speaker.process.log());
            speaker.try_ask(&["peers"])
        });
        speaker
    }

    /// Replaces the file and has the speaker read it.
    #[track_caller]
    pub(crate) fn reload(&mut self, file: &str) {
        write(&self.host, file);
        let read = |log: &str| log.matches("configuration read again").count();
        let before = read(&self.process.log());
        self.process.signal(Signal::HUP);
        wait::until("the speaker has read its file again", || {
            let log = self.process.log();
            if read(&log) > before { Ok(()) } else { Err("no word of it".to_owned()) }
        });
    }

    /// The JSON that a query command prints, for polling.
    pub(crate) fn try_ask(&self, words: &[&str]) -> Result<Value, String> {
        let binary = programs::peregrine();
        let (binary, socket) = (binary.to_string_lossy(), socket(&self.host).to_string_lossy().into_owned());
        let argv: Vec<&str> = [&*binary]
            .into_iter()
            .chain(words.iter().copied())
            .chain(["-o", "json", "--socket", &socket])
            .collect();
        let output = self.host.output(&argv);
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(text.into_owned() + &String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
    }

    /// What it says of the neighbour at `address`.
    pub(crate) fn peer(&self, address: &str) -> Result<Value, String> {
        let peers = self.try_ask(&["peers"])?;
        let peer = peers.as_array().into_iter().flatten().find(|peer| peer["peer-address"] == address);
        peer.cloned().ok_or_else(|| peers.to_string())
    }

    /// Waits until the session with `address` is established and returns what there is to tell of it.
    #[track_caller]
    pub(crate) fn await_established(&self, address: &str) -> Value {
        self.await_peer(address, "is established", |peer| peer["session-state"] == "established")
    }

    /// Waits until something holds of the neighbour at `address` and returns what there is to tell of it.
    #[track_caller]
    pub(crate) fn await_peer(&self, address: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait::until(&format!("our session with {address} {what}"), || {
            let peer = self.peer(address)?;
            if holds(&peer) { Ok(peer) } else { Err(peer.to_string()) }
        })
    }

    /// Everything it has logged.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }
}

fn socket(host: &Host) -> PathBuf {
    host.dir().join("speaker.sock")
}

fn write(host: &Host, file: &str) {
    let text = format!("{file}\napi: {}\n", socket(host).display());
    fs::write(host.dir().join("speaker.yaml"), text).expect("the host's folder is ours");
}
