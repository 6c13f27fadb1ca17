//! OpenBGPD as a neighbour.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::lab::Host;
use crate::process::Process;
use crate::route::{self, Origin, Route, Unknown};
use crate::wait;

/// A running bgpd with its control socket.
#[derive(Debug)]
pub struct Openbgpd {
    host: Host,
    process: Process,
}

impl Openbgpd {
    /// Starts bgpd on `host` with `config`, to which the place of its socket is added, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(host: &Host, config: &str) -> Self {
        // It wants this folder even where its socket is elsewhere.
        fs::create_dir_all("/run/openbgpd").expect("we are root");
        let (file, socket) = (host.dir().join("openbgpd.conf"), host.dir().join("bgpd.sock"));
        fs::write(&file, format!("socket \"{}\"\n{config}", socket.display()))
            .expect("the host's folder is ours");
        // It refuses a file that others can read.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a file of ours");
        // It outlives a SIGKILL; an old one would look like readiness.
        let _ = fs::remove_file(&socket);
        let process = host.spawn("openbgpd", &["/usr/sbin/bgpd", "-d", "-v", "-f", &file.to_string_lossy()]);
        let mut openbgpd = Self { host: host.clone(), process };
        wait::until("OpenBGPD answers on its control socket", || {
            assert!(openbgpd.process.ended().is_none(), "OpenBGPD ended: {}", openbgpd.process.log());
            openbgpd.ask("show neighbor")
        });
        openbgpd
    }

    /// What `bgpctl` says to these words.
    ///
    /// # Errors
    ///
    /// What it printed when it failed.
    pub fn tell(&self, words: &str) -> Result<String, String> {
        self.bgpctl(&[], words)
    }

    /// The JSON that `bgpctl -j` prints.
    ///
    /// # Errors
    ///
    /// What it printed instead of JSON.
    pub fn ask(&self, words: &str) -> Result<Value, String> {
        let text = self.bgpctl(&["-j"], words)?;
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
    }

    fn bgpctl(&self, flags: &[&str], words: &str) -> Result<String, String> {
        let output = Command::new("bgpctl")
            .args(flags)
            .arg("-s")
            .arg(self.host.dir().join("bgpd.sock"))
            .args(words.split(' '))
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(text + &String::from_utf8_lossy(&output.stderr)) }
    }

    /// What it tells of a neighbour.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn neighbor(&self, address: &str) -> Result<Value, String> {
        let answer = self.ask("show neighbor")?;
        let mut neighbors = answer["neighbors"].as_array().into_iter().flatten();
        let found = neighbors.find(|neighbor| neighbor["remote_addr"] == address);
        found.cloned().ok_or_else(|| answer.to_string())
    }

    /// Waits until the session with `neighbor` is Established.
    #[track_caller]
    pub fn await_established(&self, neighbor: &str) {
        wait::until(&format!("OpenBGPD's session with {neighbor} is Established"), || {
            let state = self.neighbor(neighbor)?["state"].clone();
            if state == "Established" { Ok(()) } else { Err(state.to_string()) }
        });
    }

    /// Its best path for exactly `prefix`.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn route(&self, prefix: &str) -> Result<Route, String> {
        let answer = self.ask(&format!("show rib detail {prefix}"))?;
        let mut paths = answer["rib"].as_array().into_iter().flatten();
        let best = paths.find(|path| path["prefix"] == prefix && path["best"] == true);
        let path = best.ok_or_else(|| answer.to_string())?;
        read(path).ok_or_else(|| path.to_string())
    }

    /// SIGKILL to all its processes at once: none can say a word for another.
    ///
    /// # Panics
    ///
    /// When the kernel does not tell which they are.
    pub fn kill(&mut self) {
        let parent = self.process.pid();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))
            .expect("a kernel that tells children");
        let children: Vec<Pid> =
            children.split_whitespace().filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw)).collect();
        for signal in [Signal::STOP, Signal::KILL] {
            for child in &children {
                // It may have ended already.
                let _ = rustix::process::kill_process(*child, signal);
            }
        }
        self.process.kill();
    }

    /// The process, for its log and its figures.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn read(path: &Value) -> Option<Route> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let mut route =
        Route::new(&route::as_path(path["aspath"].as_str()?), path["exit_nexthop"].as_str()?.parse().ok()?);
    route.origin = Origin::from_name(path["origin"].as_str()?).ok()?;
    // It shows 0 where there is none.
    route.med = number(&path["metric"]).filter(|med| *med != 0);
    route.local_pref = number(&path["localpref"]);
    route.communities = words(&path["communities"]);
    route.large_communities = words(&path["large_communities"]);
    route.ext_communities = words(&path["extended_communities"]);
    for attribute in path["attributes"].as_array().into_iter().flatten() {
        match attribute["type"].as_str()? {
            "Atomic Aggregate" => route.atomic_aggregate = true,
            "Aggregator" => {
                let address = attribute["router_id"].as_str()?.parse().ok()?;
                route.aggregator = Some((number(&attribute["AS"])?, address));
            }
            name => {
                let code = name.rsplit_once('#')?.1.parse().ok()?;
                let value = route::hex(attribute["data"].as_str()?);
                route.unknown.push(Unknown { code, partial: attribute["flags"]["partial"] == true, value });
            }
        }
    }
    Some(route)
}
