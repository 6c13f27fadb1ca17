//! GoBGP as a neighbour.
//!
//! Its gRPC API is on a Unix socket, which a test reaches whatever namespace it is in.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::lab::Host;
use crate::process::Process;
use crate::wait;

/// A running gobgpd with its API socket.
#[derive(Debug)]
pub struct Gobgp {
    host: Host,
    process: Process,
}

impl Gobgp {
    /// Starts gobgpd on `host` with `config` (TOML), and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(host: &Host, config: &str) -> Self {
        Self::start_as(host, config, &[])
    }

    /// The same after a restart that was to be graceful: GoBGP says so to its neighbours.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn recover(host: &Host, config: &str) -> Self {
        Self::start_as(host, config, &["-r"])
    }

    #[track_caller]
    fn start_as(host: &Host, config: &str, more: &[&str]) -> Self {
        let file = host.dir().join("gobgpd.toml");
        fs::write(&file, config).expect("the host's folder is ours");
        // It outlives a SIGKILL; an old one would look like readiness.
        let _ = fs::remove_file(host.dir().join("gobgp.sock"));
        let (file, api) = (file.to_string_lossy(), format!("unix://{}/gobgp.sock", host.dir().display()));
        #[rustfmt::skip]
        let argv = ["gobgpd", "-f", &file, "-p", "-l", "debug", "--pprof-disable", "--api-hosts", &api];
        let process = host.spawn("gobgpd", &[&argv, more].concat());
        let mut gobgp = Self { host: host.clone(), process };
        wait::until("GoBGP answers on its API", || {
            assert!(gobgp.process.ended().is_none(), "gobgpd ended: {}", gobgp.process.log());
            gobgp.ask(&["global"])
        });
        gobgp
    }

    /// The Unix socket of its gRPC API (`apipb.GobgpApi`, without TLS).
    #[must_use]
    pub fn api(&self) -> PathBuf {
        self.host.dir().join("gobgp.sock")
    }

    /// What `gobgp` says to these words.
    ///
    /// # Errors
    ///
    /// What it printed when it failed.
    pub fn tell(&self, words: &[&str]) -> Result<String, String> {
        let output = Command::new("gobgp")
            .arg("--target")
            .arg(format!("unix://{}", self.api().display()))
            .args(words)
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(text + &String::from_utf8_lossy(&output.stderr)) }
    }

    /// The JSON that `gobgp -j` prints.
    ///
    /// # Errors
    ///
    /// What it printed instead of JSON.
    pub fn ask(&self, words: &[&str]) -> Result<Value, String> {
        let text = self.tell(&[&["-j"], words].concat())?;
        let value: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
        // It ends with success where it could not reach the daemon.
        if value["error"].is_string() { Err(text) } else { Ok(value) }
    }

    /// Adds a route of its own: `words` are those after `gobgp global rib add`. `family` as `-a` takes it.
    ///
    /// # Panics
    ///
    /// When GoBGP refuses it.
    #[track_caller]
    pub fn announce(&self, family: &str, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        let told = self.tell(&[&["global", "rib", "-a", family, "add"], &*words].concat());
        told.unwrap_or_else(|error| panic!("gobgp global rib add {words:?}: {error}"));
    }

    /// Takes back a route of its own.
    ///
    /// # Panics
    ///
    /// When GoBGP refuses.
    #[track_caller]
    pub fn withdraw(&self, family: &str, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        let told = self.tell(&[&["global", "rib", "-a", family, "del"], &*words].concat());
        told.unwrap_or_else(|error| panic!("gobgp global rib del {words:?}: {error}"));
    }

    /// Waits until the session with `neighbor` is Established.
    #[track_caller]
    pub fn await_established(&self, neighbor: &str) {
        wait::until(&format!("GoBGP's session with {neighbor} is Established"), || {
            let peers = self.ask(&["neighbor"])?;
            let peer = peers
                .as_array()
                .into_iter()
                .flatten()
                .find(|peer| peer["conf"]["neighbor_address"] == neighbor);
            // `SessionState` of its API.
            match peer {
                Some(peer) if peer["state"]["session_state"] == 6 => Ok(()),
                _ => Err(peers.to_string()),
            }
        });
    }

    /// The paths of its table for `prefix`, as its JSON tells them. `family` as `-a` takes it.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn paths(&self, family: &str, prefix: &str) -> Result<Vec<Value>, String> {
        let table = self.ask(&["global", "rib", "-a", family])?;
        table[prefix].as_array().cloned().ok_or_else(|| table.to_string())
    }

    /// Waits until GoBGP holds a best path for `prefix` and returns its JSON. `family` as `-a` takes it.
    #[track_caller]
    pub fn await_route(&self, family: &str, prefix: &str) -> Value {
        wait::until(&format!("GoBGP holds {prefix}"), || {
            let paths = self.paths(family, prefix)?;
            paths.iter().find(|path| path["best"] == true).cloned().ok_or_else(|| format!("{paths:?}"))
        })
    }

    /// Waits until GoBGP holds no path for `prefix`.
    #[track_caller]
    pub fn await_no_route(&self, family: &str, prefix: &str) {
        wait::until(&format!("GoBGP holds no route to {prefix}"), || {
            let table = self.ask(&["global", "rib", "-a", family])?;
            if table[prefix].is_null() { Ok(()) } else { Err(table.to_string()) }
        });
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The process, for its log and its figures.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}
