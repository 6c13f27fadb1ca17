//! FRR's bgpd as a neighbour (without zebra: sessions and routes only).

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::lab::Host;
use crate::process::Process;
use crate::route::{self, Origin, Route};
use crate::wait;

/// A running bgpd with its vty socket.
#[derive(Debug)]
pub struct Frr {
    host: Host,
    process: Process,
}

impl Frr {
    /// Starts bgpd on `host` with `config`, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(host: &Host, config: &str) -> Self {
        let dir = host.dir();
        fs::write(dir.join("bgpd.conf"), config).expect("the host's folder is ours");
        // It outlives a SIGKILL; an old one would look like readiness.
        let _ = fs::remove_file(dir.join("bgpd.vty"));
        let path = |file: &str| dir.join(file).to_string_lossy().into_owned();
        let (conf, pid, vty) = (path("bgpd.conf"), path("bgpd.pid"), dir.to_string_lossy().into_owned());
        #[rustfmt::skip]
        let argv = [
            "/usr/lib/frr/bgpd", "-Z", "-n", "-S", "-f", &conf, "-i", &pid, "--vty_socket", &vty, "-P", "0",
            "-p", "179", "--log", "stdout",
        ];
        let process = host.spawn("bgpd", &argv);
        let mut frr = Self { host: host.clone(), process };
        wait::until("FRR answers on its vty", || {
            assert!(frr.process.ended().is_none(), "bgpd ended: {}", frr.process.log());
            frr.ask("show bgp summary json")
        });
        frr
    }

    /// The JSON answer to a vtysh command.
    ///
    /// # Errors
    ///
    /// What vtysh printed instead of JSON.
    pub fn ask(&self, command: &str) -> Result<Value, String> {
        let output = Command::new("vtysh")
            .arg("--vty_socket")
            .arg(self.host.dir())
            .args(["-d", "bgpd", "-c", command])
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
    }

    /// A vtysh command whose answer is of no interest.
    ///
    /// # Panics
    ///
    /// When it fails.
    #[track_caller]
    pub fn tell(&self, command: &str) {
        self.run(&["-c", command]);
    }

    /// Commands of `configure terminal`, one inside the other.
    ///
    /// # Panics
    ///
    /// When one fails.
    #[track_caller]
    pub fn configure(&self, commands: &[&str]) {
        let commands = commands.iter().flat_map(|command| ["-c", command]);
        self.run(&["-c", "configure terminal"].into_iter().chain(commands).collect::<Vec<_>>());
    }

    #[track_caller]
    fn run(&self, words: &[&str]) {
        let output = Command::new("vtysh")
            .arg("--vty_socket")
            .arg(self.host.dir())
            .args(["-d", "bgpd"])
            .args(words)
            .output()
            .expect("vtysh comes with bgpd");
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !text.contains('%'), "vtysh {words:?}: {text}");
    }

    /// Waits until the session with `neighbor` is Established.
    #[track_caller]
    pub fn await_established(&self, neighbor: &str) {
        wait::until(&format!("FRR's session with {neighbor} is Established"), || {
            let answer = self.ask(&format!("show bgp neighbors {neighbor} json"))?;
            let state = &answer[neighbor]["bgpState"];
            if state == "Established" { Ok(()) } else { Err(state.to_string()) }
        });
    }

    /// Waits until FRR holds a valid best path for `prefix` and returns its JSON. `family` is `ipv4` or `ipv6`.
    #[track_caller]
    pub fn await_route(&self, family: &str, prefix: &str) -> Value {
        wait::until(&format!("FRR holds {prefix}"), || {
            let answer = self.ask(&format!("show bgp {family} unicast {prefix} json"))?;
            let best = answer["paths"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|path| path["bestpath"]["overall"] == true);
            best.cloned().ok_or_else(|| answer.to_string())
        })
    }

    /// Its best path for exactly `prefix`. It shows no attribute that it does not know.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn route(&self, prefix: &str) -> Result<Route, String> {
        let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
        let answer = self.ask(&format!("show bgp {family} unicast {prefix} json"))?;
        let mut paths = answer["paths"].as_array().into_iter().flatten();
        let best = paths.find(|path| path["bestpath"]["overall"] == true && answer["prefix"] == prefix);
        let path = best.ok_or_else(|| answer.to_string())?;
        read(path).ok_or_else(|| path.to_string())
    }

    /// Waits until FRR holds no path for `prefix`.
    #[track_caller]
    pub fn await_no_route(&self, family: &str, prefix: &str) {
        wait::until(&format!("FRR holds no route to {prefix}"), || {
            let answer = self.ask(&format!("show bgp {family} unicast {prefix} json"))?;
            let paths = answer["paths"].as_array().map_or(0, Vec::len);
            if paths == 0 { Ok(()) } else { Err(answer.to_string()) }
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

fn read(path: &Value) -> Option<Route> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let words = |value: &Value| -> Vec<String> {
        value["string"].as_str().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    };
    let mut hops = path["nexthops"].as_array()?.iter();
    let hop = hops.find(|hop| hop["scope"] != "link-local")?["ip"].as_str()?.parse().ok()?;
    let mut route = Route::new(&route::as_path(path["aspath"]["string"].as_str()?), hop);
    if route.as_path == "Local" {
        route.as_path.clear();
    }
    route.origin = Origin::from_name(path["origin"].as_str()?).ok()?;
    route.med = number(&path["metric"]);
    route.local_pref = number(&path["locPrf"]);
    route.atomic_aggregate = path["atomicAggregate"] == true;
    if let Some(asn) = number(&path["aggregatorAs"]) {
        route.aggregator = Some((asn, path["aggregatorId"].as_str()?.parse().ok()?));
    }
    route.communities = words(&path["community"]);
    route.large_communities = words(&path["largeCommunity"]);
    route.ext_communities = words(&path["extendedCommunity"])
        .iter()
        .map(|community| community.replace("RT:", "rt ").replace("SoO:", "soo "))
        .collect();
    Some(route)
}
