//! FRR's bgpd as a neighbour (without zebra: sessions and routes only).

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::lab::Host;
use crate::process::Process;
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
}
