//! Our own binary under test: its folder of manifests, its configuration, its answers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::lab::Host;
use crate::process::Process;
use crate::{programs, wait};

/// A node: the files that `peregrine agent` works from, and the running processes.
#[derive(Debug)]
pub struct Node {
    host: Host,
    agent: Option<Process>,
    sim: Option<Process>,
}

impl Node {
    /// Prepares the files of a node called like its host. `settings` is added to the configuration file.
    ///
    /// # Panics
    ///
    /// When the host's folder cannot be written.
    #[must_use]
    pub fn new(host: &Host, settings: &str) -> Self {
        let node = Self { host: host.clone(), agent: None, sim: None };
        fs::create_dir_all(node.manifests()).expect("the host's folder is ours");
        node.settings(settings);
        node
    }

    /// Writes the configuration file again, with other `settings` added. It is read when the agent starts.
    ///
    /// # Panics
    ///
    /// When the host's folder cannot be written.
    pub fn settings(&self, settings: &str) {
        let (host, dir) = (&self.host, self.host.dir().display());
        let config = format!(
            "node: {}\ndatastore: directory:{dir}/manifests\napi: {dir}/peregrine.sock\nstate: {dir}/state\n\
             health: none\n{settings}",
            host.name()
        );
        fs::write(host.dir().join("agent.yaml"), config).expect("the host's folder is ours");
    }

    /// The `vpp:` part of the configuration for a VPP whose socket lies in the host's folder.
    #[must_use]
    pub fn vpp_settings(host: &Host) -> String {
        format!(
            "vpp: {{ socket: {}, uplink: host-eth0, info-file: none }}\n",
            host.dir().join("vpp.sock").display()
        )
    }

    fn manifests(&self) -> PathBuf {
        self.host.dir().join("manifests")
    }

    /// Puts a manifest in place, atomically, as a person's editor or a configuration tool would.
    ///
    /// # Panics
    ///
    /// When the folder cannot be written.
    pub fn apply(&self, file: &str, manifest: &str) {
        let temporary = self.host.dir().join("next-manifest");
        fs::write(&temporary, manifest).expect("the host's folder is ours");
        fs::rename(temporary, self.manifests().join(file)).expect("same file system");
    }

    /// Removes a manifest.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn remove(&self, file: &str) {
        fs::remove_file(self.manifests().join(file)).expect("a manifest that was applied");
    }

    /// Starts the simulated VPP with an uplink that has the given addresses, and waits for its socket.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    pub fn start_vpp(&mut self, uplink: &str) {
        let socket = self.host.dir().join("vpp.sock");
        // It would look like readiness.
        let _ = fs::remove_file(&socket);
        let (binary, control) = (programs::peregrine(), self.host.dir().join("control.sock"));
        let argv = [
            &*binary.to_string_lossy(),
            "vpp-sim",
            "--socket",
            &socket.to_string_lossy(),
            "--control",
            &control.to_string_lossy(),
            "--interface",
            &format!("host-eth0={uplink}"),
        ];
        self.sim = Some(self.host.spawn("vpp-sim", &argv));
        wait::until_true("the simulated VPP listens", || socket.exists());
    }

    /// What the simulated VPP holds.
    ///
    /// # Errors
    ///
    /// What was printed instead of JSON.
    pub fn try_vpp_state(&self) -> Result<Value, String> {
        let (binary, control) = (programs::peregrine(), self.host.dir().join("control.sock"));
        json_of(&self.host, &[&*binary.to_string_lossy(), "vpp-sim", "--show", &control.to_string_lossy()])
    }

    /// SIGKILL to the simulated VPP: all its state is lost.
    pub fn kill_vpp(&mut self) {
        self.sim = None;
    }

    /// Starts the agent and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[track_caller]
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    /// What `peregrine agent` answers that is called with these options and ends by itself.
    #[must_use]
    pub fn run_agent(&self, options: &[&str]) -> Output {
        let config = self.host.dir().join("agent.yaml");
        let binary = programs::peregrine();
        let argv = [&*binary.to_string_lossy(), "agent", "--config", &config.to_string_lossy()];
        self.host.output(&[&argv[..], options].concat())
    }

    /// Starts the agent with further options, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[track_caller]
    pub fn start_with(&mut self, options: &[&str]) {
        let config = self.host.dir().join("agent.yaml");
        let binary = programs::peregrine();
        // It outlives a SIGKILL.
        let _ = fs::remove_file(self.socket());
        let argv = [&*binary.to_string_lossy(), "agent", "--config", &config.to_string_lossy()];
        let mut agent = self.host.spawn("agent", &[&argv[..], options].concat());
        wait::until("the agent answers", || {
            assert!(agent.ended().is_none(), "the agent ended: {}", agent.log());
            self.try_ask(&["peers"])
        });
        self.agent = Some(agent);
    }

    /// The running agent.
    ///
    /// # Panics
    ///
    /// When it was not started.
    pub fn agent(&mut self) -> &mut Process {
        self.agent.as_mut().expect("start() came first")
    }

    /// SIGKILL to the agent.
    pub fn kill(&mut self) {
        self.agent = None;
    }

    fn socket(&self) -> PathBuf {
        self.host.dir().join("peregrine.sock")
    }

    /// The folder with the node's files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.host.dir()
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

    /// Like [`Self::ask`], for polling.
    ///
    /// # Errors
    ///
    /// What the command printed instead of JSON.
    pub fn try_ask(&self, words: &[&str]) -> Result<Value, String> {
        query(&self.host, &self.socket(), words)
    }

    /// Waits until the session with `address` is established.
    #[track_caller]
    pub fn await_established(&self, address: &str) {
        wait::until(&format!("our session with {address} is established"), || {
            let peers = self.try_ask(&["peers"])?;
            let peer = peers.as_array().into_iter().flatten().find(|peer| peer["peer-address"] == address);
            let state = peer.map_or(&Value::Null, |peer| &peer["session-state"]);
            if state == "established" { Ok(()) } else { Err(peers.to_string()) }
        });
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
}

/// What a query command prints, as JSON; else what it printed instead.
pub(crate) fn query(host: &Host, socket: &Path, words: &[&str]) -> Result<Value, String> {
    let binary = programs::peregrine();
    let (binary, socket) = (binary.to_string_lossy(), socket.to_string_lossy());
    let argv: Vec<&str> = [&*binary]
        .into_iter()
        .chain(words.iter().copied())
        .chain(["-o", "json", "--socket", &*socket])
        .collect();
    json_of(host, &argv)
}

fn json_of(host: &Host, argv: &[&str]) -> Result<Value, String> {
    let output = host.output(argv);
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(text.into_owned() + &String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
}

/// Manifests, as `kubectl apply` would take them.
pub mod manifest {
    /// A Kubernetes Node with Calico's address annotations; an empty address leaves its family out.
    #[must_use]
    pub fn node(name: &str, ipv4: &str, ipv6: &str) -> String {
        let mut manifest = format!("apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  annotations:\n");
        for (key, address) in [("IPv4Address", ipv4), ("IPv6Address", ipv6)] {
            if !address.is_empty() {
                manifest += &format!("    projectcalico.org/{key}: \"{address}\"\n");
            }
        }
        manifest
    }

    /// Further annotations of a Kubernetes Node, to be put behind [`node`]: its public keys for WireGuard.
    #[must_use]
    pub fn wireguard_keys(ipv4: &str, ipv6: &str) -> String {
        format!(
            "    projectcalico.org/WireguardPublicKey: \"{ipv4}\"\n    \
             projectcalico.org/WireguardPublicKeyV6: \"{ipv6}\"\n"
        )
    }

    /// The `default` BGPConfiguration with the mesh off and the given AS number.
    #[must_use]
    pub fn bgp_configuration(asn: u32) -> String {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: BGPConfiguration\nmetadata: {{ name: default }}\n\
             spec: {{ nodeToNodeMeshEnabled: false, asNumber: {asn} }}\n"
        )
    }

    /// A global BGPPeer by address.
    #[must_use]
    pub fn bgp_peer(name: &str, address: &str, asn: u32) -> String {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata: {{ name: {name} }}\n\
             spec: {{ peerIP: \"{address}\", asNumber: {asn} }}\n"
        )
    }

    /// An IPPool; `ipip` is `Never`, `Always` or `CrossSubnet`.
    #[must_use]
    pub fn ip_pool(name: &str, cidr: &str, ipip: &str) -> String {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {{ name: {name} }}\n\
             spec: {{ cidr: \"{cidr}\", ipipMode: {ipip} }}\n"
        )
    }

    /// A confirmed BlockAffinity of a node.
    #[must_use]
    pub fn block(name: &str, node: &str, cidr: &str) -> String {
        format!(
            "apiVersion: crd.projectcalico.org/v1\nkind: BlockAffinity\nmetadata: {{ name: {name} }}\n\
             spec: {{ cidr: \"{cidr}\", node: {node}, state: confirmed, deleted: \"false\" }}\n"
        )
    }
}
