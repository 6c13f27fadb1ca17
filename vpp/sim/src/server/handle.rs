//! What a test, the control socket or the command line holds of a running simulator.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ipnet::IpNet;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::listen;
use super::process::{Life, Process, Stats};
use crate::faults::Fault;
use crate::options::{InterfaceSpec, SimOptions};
use crate::release::Release;
use crate::state::key::bytes_of;
use crate::vpp::Death;

/// A simulated VPP to be built.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// let sim = vpp_sim::Sim::builder("/run/x/api.sock").interface("host-eth0", &["192.0.2.1/24"]).spawn()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Sim {
    options: SimOptions,
}

impl Sim {
    /// A VPP with nothing but `local0`, on this API socket.
    pub fn builder(socket: impl Into<PathBuf>) -> Self {
        Self { options: SimOptions::new(socket) }
    }

    /// Adds an interface that exists from the start and is up. Its addresses are written `192.0.2.1/24`.
    ///
    /// # Panics
    /// When an address is not one: this is a test aid.
    #[must_use]
    pub fn interface(mut self, name: &str, addresses: &[&str]) -> Self {
        let parse = |text: &&str| match (text.parse::<IpNet>(), text.parse::<IpAddr>()) {
            (Ok(net), _) => net,
            (_, Ok(ip)) => ip.into(),
            _ => panic!("`{text}` is no address"),
        };
        let addresses = addresses.iter().map(parse).collect();
        self.options.interfaces.push(InterfaceSpec { name: name.to_owned(), addresses });
        self
    }

    /// How many worker threads there are besides the main one.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// Leaves a message (its name without CRC) out of the message table.
    #[must_use]
    pub fn without(mut self, message: &str) -> Self {
        self.options.hide.push(message.to_owned());
        self
    }

    /// Poses as another release than the newest.
    #[must_use]
    pub fn release(mut self, release: Release) -> Self {
        self.options.release = release;
        self
    }

    /// Whether unclean disconnects after a full socket stop the process in the end, as they do with a real VPP.
    #[must_use]
    pub fn leaks(mut self, leaks: bool) -> Self {
        self.options.leaks = leaks;
        self
    }

    /// Whether a process that died starts again by itself.
    #[must_use]
    pub fn respawn(mut self, respawn: bool) -> Self {
        self.options.respawn = respawn;
        self
    }

    /// The options as a value.
    #[must_use]
    pub fn options(self) -> SimOptions {
        self.options
    }

    /// Starts it on the current tokio runtime. The socket can be connected to when this returns.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub fn spawn(self) -> io::Result<SimHandle> {
        SimHandle::start(self.options)
    }
}

/// A running simulator. It ends when this is dropped.
#[derive(Debug)]
pub struct SimHandle {
    control: SimControl,
    task: JoinHandle<()>,
}

/// Sees and steers a running simulator; clones are of the same one.
#[derive(Clone)]
pub struct SimControl {
    process: Arc<Process>,
    bound: watch::Receiver<bool>,
}

impl std::fmt::Debug for SimControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimControl").field("socket", &self.process.options().socket).finish_non_exhaustive()
    }
}

impl SimHandle {
    /// Starts a simulator on the current tokio runtime.
    pub(crate) fn start(options: SimOptions) -> io::Result<Self> {
        let listener = listen::bind(&options.socket)?;
        let process = Arc::new(Process::new(options));
        let (bind, bound) = watch::channel(true);
        let task = tokio::spawn(listen::run(Arc::clone(&process), listener, bind));
        Ok(Self { control: SimControl { process, bound }, task })
    }

    /// Something to steer it with that can be cloned and outlives nothing.
    #[must_use]
    pub fn control(&self) -> SimControl {
        self.control.clone()
    }

    /// Closes all connections, removes the socket and waits for the end of all tasks.
    pub async fn close(mut self) {
        self.control.process.shut_down();
        // a task that panicked has ended too
        let _ended = (&mut self.task).await;
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        self.control.process.shut_down();
    }
}

impl std::ops::Deref for SimHandle {
    type Target = SimControl;

    fn deref(&self) -> &SimControl {
        &self.control
    }
}

impl SimControl {
    /// The API socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.process.options().socket
    }

    /// Everything the process holds, with indices: interfaces, tunnels, tables with their routes, FIB sources, clients.
    /// `{"alive":false,…}` while it is dead.
    #[must_use]
    pub fn state_json(&self) -> Value {
        self.json(crate::state::dump::Detail::Full)
    }

    /// What the state means, without the numbers VPP gives out: no sw_if_index, no statistics index, no instance, tunnels
    /// by their ends, nothing built in. Two states that forward alike are equal here.
    #[must_use]
    pub fn meaning(&self) -> Value {
        self.json(crate::state::dump::Detail::Meaning)
    }

    fn json(&self, detail: crate::state::dump::Detail) -> Value {
        let stats = self.stats();
        let state = self.process.with_vpp(|vpp| vpp.json(detail));
        match (state, detail) {
            (Some(mut state), crate::state::dump::Detail::Full) => {
                state["alive"] = Value::Bool(true);
                state["generation"] = stats.generation.into();
                state
            }
            (Some(state), crate::state::dump::Detail::Meaning) => state,
            (None, _) => {
                serde_json::json!({ "alive": false, "death": self.death().map(|death| death.to_string()) })
            }
        }
    }

    /// How often each message was carried out by this process, by name. Refused and swallowed ones are not counted.
    #[must_use]
    pub fn carried_out(&self) -> std::collections::BTreeMap<&'static str, u64> {
        self.process.with_vpp(crate::vpp::Vpp::carried_out).unwrap_or_default()
    }

    /// The numbers of now.
    #[must_use]
    pub fn stats(&self) -> Stats {
        *self.process.stats().borrow()
    }

    /// Waits until the numbers are as wanted.
    pub async fn until(&self, wanted: impl FnMut(&Stats) -> bool) -> Stats {
        let mut stats = self.process.stats();
        let found = stats.wait_for(wanted).await.map(|stats| *stats);
        found.unwrap_or_else(|_| self.stats())
    }

    /// Waits until [`SimControl::meaning`] is as wanted; looks again after each batch of requests.
    pub async fn until_meaning(&self, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let mut stats = self.process.stats();
        loop {
            stats.mark_unchanged();
            let meaning = self.meaning();
            if wanted(&meaning) || stats.changed().await.is_err() {
                return meaning;
            }
        }
    }

    /// Why the last process that died did; `None` if none did.
    #[must_use]
    pub fn death(&self) -> Option<Death> {
        self.process.death()
    }

    /// Adds a fault behind those in force.
    pub fn fault(&self, fault: Fault) {
        self.process.with_faults(|plan| plan.add(fault));
    }

    /// The faults in force, with what is left of their counts.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.process.with_faults(|plan| plan.list().to_vec())
    }

    /// Forgets all faults.
    pub fn clear_faults(&self) {
        self.process.with_faults(crate::faults::FaultPlan::clear);
    }

    /// Ends the process and starts it again with the state it was first started with. All connections close; the message
    /// ids are others.
    pub fn restart(&self) {
        self.process.restart();
    }

    /// Ends the process: connections close, the state is lost, the socket is gone when this returns.
    pub async fn down(&self) {
        self.process.stop();
        self.wait_bound(false).await;
    }

    /// Starts the process after [`SimControl::down`] or a death; the socket can be connected to when this returns.
    pub async fn up(&self) {
        self.process.start();
        self.wait_bound(true).await;
    }

    /// From now on the node at this address takes part in IKEv2 with this shared key, answering and initiating as its part
    /// is; with `None` it is gone, and is found to be.
    pub fn ike_peer(&self, address: Ipv4Addr, key: Option<&[u8]>) {
        self.process.happen(|state| state.ike_peer(address.octets(), key));
    }

    /// From now on the node at this address answers to WireGuard under this public key: whoever has it as a peer gets a session;
    /// with `None` it is gone, and so are the sessions.
    pub fn wireguard_peer(&self, address: IpAddr, key: Option<[u8; 32]>) {
        let (af, address) = bytes_of(address);
        self.process.happen(|state| state.wireguard_peer(af, address, key));
    }

    /// Stops serving (connections stay and are accepted, nothing is read or answered), or goes on where it stopped.
    pub fn hang(&self, hung: bool) {
        self.process.hang(hung);
    }

    /// Waits until the process is dead or everything has ended.
    pub(crate) async fn until_dead(&self) {
        let mut life = self.process.life();
        // the sender lives as long as the process, which this holds
        let _seen = life.wait_for(|life: &Life| !life.listening || life.over).await;
    }

    async fn wait_bound(&self, wanted: bool) {
        let mut bound = self.bound.clone();
        // an error is the end of the listener, after which nothing is bound
        let _seen = bound.wait_for(|bound| *bound == wanted).await;
    }
}
