//! `peregrine speaker` under test, for tests that play its neighbours themselves.
//!
//! The speaker lives on the host `sut`, 192.0.2.10; the test's own end of the link is a bridge that has every other
//! address of 192.0.2.0/24 that a test asks for.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use test_support::lab::{Host, Lab};
use test_support::process::Process;
use test_support::{programs, wait};

/// Where the speaker listens.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
/// Its AS number.
pub const ASN: u32 = 65010;

/// A running speaker.
#[derive(Debug)]
pub struct Speaker {
    host: Host,
    /// The process, for its log and its figures.
    pub process: Process,
}

/// The address 192.0.2.`last`.
#[must_use]
pub const fn peer(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, last)
}

/// Where neighbours connect to.
#[must_use]
pub fn socket() -> SocketAddr {
    SocketAddr::from((ADDRESS, 179))
}

/// A neighbour that only listens, as a line of the speaker's file; `more` is added to it.
#[must_use]
pub fn neighbour(last: u8, asn: u32, more: &str) -> String {
    format!(
        "  - {{ address: {}, asn: {asn}, passive: true, families: [ipv4-unicast, ipv6-unicast]{more} }}\n",
        peer(last)
    )
}

impl Speaker {
    /// Makes the link, gives this end its addresses 192.0.2.`lasts`, and starts a speaker with these neighbours.
    ///
    /// # Panics
    ///
    /// When something of it can't be had.
    #[must_use]
    #[track_caller]
    pub fn start(lab: &Lab, lasts: impl IntoIterator<Item = u8>, file: &str) -> Self {
        let host = lab.host("sut", &[&format!("{ADDRESS}/24")]);
        for last in lasts {
            let address = format!("{}/24", peer(last));
            let done = Command::new("ip").args(["addr", "add", &address, "dev", "br0"]).status();
            assert!(done.expect("iproute2 is installed").success(), "{address}");
        }
        Self::write(&host, file);
        let config = host.dir().join("speaker.yaml");
        let binary = programs::peregrine();
        let argv = [&*binary.to_string_lossy(), "speaker", "--config", &config.to_string_lossy()];
        let process = host.spawn("speaker", &argv);
        let mut speaker = Self { host, process };
        wait::until("the speaker answers", || {
            assert!(speaker.process.ended().is_none(), "the speaker ended: {}", speaker.process.log());
            speaker.try_ask(&["peers"])
        });
        speaker
    }

    fn write(host: &Host, file: &str) {
        let head = format!(
            "asn: {ASN}\nrouter-id: {ADDRESS}\nlisten: [\"{ADDRESS}:179\"]\nrequire-policy: false\napi: {}\n",
            host.dir().join("speaker.sock").display()
        );
        fs::write(host.dir().join("speaker.yaml"), head + file).expect("the host's folder is ours");
    }

    /// Replaces the file and has the speaker read it.
    ///
    /// # Panics
    ///
    /// When the folder cannot be written.
    pub fn reload(&mut self, file: &str) {
        Self::write(&self.host, file);
        self.process.signal(Signal::HUP);
    }

    /// The JSON that a query command prints.
    ///
    /// # Errors
    ///
    /// What the command printed instead of JSON.
    pub fn try_ask(&self, words: &[&str]) -> Result<Value, String> {
        let (binary, socket) = (programs::peregrine(), self.host.dir().join("speaker.sock"));
        let (binary, socket) = (binary.to_string_lossy(), socket.to_string_lossy());
        let argv: Vec<&str> = [&*binary].into_iter().chain(words.iter().copied()).collect();
        let output = self.host.output(&[&argv[..], &["-o", "json", "--socket", &socket]].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(text.into_owned() + &String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
    }

    /// Runs a command that has nothing to show.
    ///
    /// # Panics
    ///
    /// When it fails.
    #[track_caller]
    pub fn tell(&self, words: &[&str]) {
        let (binary, socket) = (programs::peregrine(), self.host.dir().join("speaker.sock"));
        let (binary, socket) = (binary.to_string_lossy(), socket.to_string_lossy());
        let argv: Vec<&str> = [&*binary].into_iter().chain(words.iter().copied()).collect();
        let output = self.host.output(&[&argv[..], &["--socket", &socket]].concat());
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The JSON that a query command prints.
    ///
    /// # Panics
    ///
    /// When the command fails.
    #[must_use]
    #[track_caller]
    pub fn ask(&self, words: &[&str]) -> Value {
        self.try_ask(words).unwrap_or_else(|error| panic!("peregrine {words:?}: {error}"))
    }

    /// What the speaker says of a neighbour.
    ///
    /// # Panics
    ///
    /// When there is no such neighbour.
    #[must_use]
    #[track_caller]
    pub fn neighbour(&self, last: u8) -> Value {
        let (peers, address) = (self.ask(&["peers"]), peer(last).to_string());
        let found = peers.as_array().into_iter().flatten().find(|peer| peer["peer-address"] == *address);
        found.cloned().unwrap_or_else(|| panic!("no neighbour {address}: {peers}"))
    }

    /// Waits until a neighbour's session is in a state.
    #[track_caller]
    pub fn await_state(&self, last: u8, wanted: &str) {
        wait::until(&format!("the session with {} is {wanted}", peer(last)), || {
            let neighbour = self.neighbour(last);
            if neighbour["session-state"] == wanted { Ok(()) } else { Err(neighbour.to_string()) }
        });
    }

    /// The path that a neighbour announces for a prefix, if there is one.
    #[must_use]
    #[track_caller]
    pub fn heard(&self, last: u8, prefix: &str) -> Option<Value> {
        let family = if prefix.contains(':') { "ipv6-unicast" } else { "ipv4-unicast" };
        let address = peer(last).to_string();
        let routes = self.ask(&["routes", "adj-rib-in", family, prefix, "--neighbor", &address]);
        routes.as_array().into_iter().flatten().next().map(|route| route["paths"][0].clone())
    }

    /// Waits until a neighbour's path for a prefix is there.
    #[track_caller]
    pub fn await_heard(&self, last: u8, prefix: &str) -> Value {
        wait::until(&format!("{prefix} from {}", peer(last)), || {
            self.heard(last, prefix).ok_or_else(|| self.neighbour(last).to_string())
        })
    }

    /// Waits until a neighbour's count of received prefixes is this.
    #[track_caller]
    pub fn await_received(&self, last: u8, wanted: u64) {
        wait::until(&format!("{wanted} prefixes from {}", peer(last)), || {
            let family = &self.neighbour(last)["families"][0];
            if family["received"] == wanted { Ok(()) } else { Err(family.to_string()) }
        });
    }
}
