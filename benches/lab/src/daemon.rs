//! How each daemon under test is configured and started: AS 65000 at 198.51.100.1, two passive eBGP neighbours,
//! everything accepted and everything exported.

use std::fs;

use test_support::bird::Bird;
use test_support::lab::Host;
use test_support::process::Process;
use test_support::{programs, wait};

/// AS number of the daemon under test.
pub(crate) const ASN: u32 = 65_000;
/// Its address.
pub(crate) const ADDRESS: &str = "198.51.100.1";

/// A daemon that can be measured.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Debian's BIRD 2, the yardstick.
    Bird,
    /// Ours.
    Peregrine,
}

/// A running daemon.
pub(crate) enum Daemon {
    /// BIRD.
    Bird(Bird),
    /// `peregrine speaker`.
    Peregrine(Process),
}

impl Kind {
    /// All, the yardstick first.
    pub(crate) const ALL: [Self; 2] = [Self::Bird, Self::Peregrine];

    /// Name in the table.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bird => "BIRD 2",
            Self::Peregrine => "peregrine",
        }
    }

    /// Starts the daemon on `host` with the given neighbours: address, AS number.
    #[must_use]
    pub(crate) fn start(self, host: &Host, neighbors: &[(String, u32)]) -> Daemon {
        match self {
            Self::Bird => Daemon::Bird(Bird::start(host, &bird_conf(neighbors))),
            Self::Peregrine => {
                let config = host.dir().join("speaker.yaml");
                fs::write(&config, speaker_yaml(host, neighbors)).expect("the host's folder is ours");
                let (binary, config) = (programs::peregrine(), config.to_string_lossy().into_owned());
                let process =
                    host.spawn("peregrine", &[&binary.to_string_lossy(), "speaker", "--config", &config]);
                let socket = host.dir().join("peregrine.sock");
                wait::until_true("peregrine has made its socket", || socket.exists());
                Daemon::Peregrine(process)
            }
        }
    }
}

impl Daemon {
    /// The measured process.
    #[must_use]
    pub(crate) fn process(&self) -> &Process {
        match self {
            Self::Bird(bird) => bird.process(),
            Self::Peregrine(process) => process,
        }
    }
}

fn bird_conf(neighbors: &[(String, u32)]) -> String {
    let mut config = format!("log stderr {{ error, fatal }};\nrouter id {ADDRESS};\nprotocol device {{ }}\n");
    for (index, (address, asn)) in neighbors.iter().enumerate() {
        config += &format!(
            "protocol bgp n{index} {{ local {ADDRESS} as {ASN}; neighbor {address} as {asn}; passive on; \
             ipv4 {{ import all; export all; }}; }}\n"
        );
    }
    config
}

fn speaker_yaml(host: &Host, neighbors: &[(String, u32)]) -> String {
    let socket = host.dir().join("peregrine.sock");
    let mut config = format!(
        "asn: {ASN}\nrouter-id: {ADDRESS}\nlisten: [\"{ADDRESS}:179\"]\nrequire-policy: false\napi: {}\nneighbors:\n",
        socket.display()
    );
    for (address, asn) in neighbors {
        config +=
            &format!("  - {{ address: {address}, asn: {asn}, passive: true, families: [ipv4-unicast] }}\n");
    }
    config
}
