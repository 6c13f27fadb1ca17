//! BIRD 2 as a neighbour.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use crate::lab::Host;
use crate::process::Process;
use crate::route::{self, Origin, Route, Unknown};
use crate::wait;

/// A running BIRD with its control socket.
#[derive(Debug)]
pub struct Bird {
    host: Host,
    process: Process,
}

impl Bird {
    /// Starts BIRD on `host` with `config`, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(host: &Host, config: &str) -> Self {
        Self::start_as(host, config, &[])
    }

    /// The same after a restart that was to be graceful: BIRD says so to its neighbours.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn recover(host: &Host, config: &str) -> Self {
        Self::start_as(host, config, &["-R"])
    }

    #[track_caller]
    fn start_as(host: &Host, config: &str, more: &[&str]) -> Self {
        let dir = host.dir();
        fs::write(dir.join("bird.conf"), config).expect("the host's folder is ours");
        // The socket outlives a SIGKILL; an old one would look like readiness.
        let _ = fs::remove_file(dir.join("bird.ctl"));
        let path = |file: &str| dir.join(file).to_string_lossy().into_owned();
        let (conf, ctl, pid) = (path("bird.conf"), path("bird.ctl"), path("bird.pid"));
        let argv = ["bird", "-f", "-c", &conf, "-s", &ctl, "-P", &pid];
        let process = host.spawn("bird", &[&argv, more].concat());
        let mut bird = Self { host: host.clone(), process };
        wait::until("BIRD answers on its control socket", || {
            assert!(bird.process.ended().is_none(), "BIRD ended: {}", bird.process.log());
            bird.try_ask("show status")
        });
        bird
    }

    /// The answer to a birdc command, without the greeting.
    ///
    /// # Panics
    ///
    /// When BIRD does not answer.
    #[must_use]
    pub fn ask(&self, command: &str) -> String {
        self.try_ask(command).unwrap_or_else(|error| panic!("birdc {command}: {error}"))
    }

    fn try_ask(&self, command: &str) -> Result<String, String> {
        let socket = self.host.dir().join("bird.ctl");
        let output = Command::new("birdc")
            .arg("-s")
            .arg(socket)
            .args(command.split(' '))
            .output()
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() && text.contains("ready.") {
            Ok(text.lines().skip(1).collect::<Vec<_>>().join("\n"))
        } else {
            Err(text + &String::from_utf8_lossy(&output.stderr))
        }
    }

    /// Waits until the named protocol's session is Established.
    #[track_caller]
    pub fn await_established(&self, protocol: &str) {
        wait::until(&format!("BIRD's session {protocol} is Established"), || {
            let answer = self.try_ask(&format!("show protocols {protocol}"))?;
            if answer.contains("Established") { Ok(()) } else { Err(answer) }
        });
    }

    /// Waits until BIRD holds `prefix` and every text of `wanted` stands in its detailed listing.
    #[track_caller]
    pub fn await_route(&self, prefix: &str, wanted: &[&str]) -> String {
        wait::until(&format!("BIRD holds {prefix} with {wanted:?}"), || {
            let answer = self.try_ask(&format!("show route {prefix} all"))?;
            let there = answer.contains(prefix) && wanted.iter().all(|text| answer.contains(text));
            if there { Ok(answer) } else { Err(answer) }
        })
    }

    /// Its best path for exactly `prefix`.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn route(&self, prefix: &str) -> Result<Route, String> {
        let answer = self.try_ask(&format!("show route {prefix} primary all"))?;
        read(&answer).ok_or(answer)
    }

    /// Waits until BIRD holds no route to exactly `prefix`.
    #[track_caller]
    pub fn await_no_route(&self, prefix: &str) {
        wait::until(&format!("BIRD holds no route to {prefix}"), || {
            let answer = self.try_ask(&format!("show route {prefix}"));
            // birdc answers "Network not found" through its error code.
            match answer {
                Ok(text) if text.contains(prefix) => Err(text),
                Ok(_) => Ok(()),
                Err(text) if text.contains("not found") => Ok(()),
                Err(text) => Err(text),
            }
        });
    }

    /// How many withdrawals BIRD has had in the named protocol since its session came up.
    ///
    /// # Panics
    ///
    /// When BIRD does not tell.
    #[must_use]
    pub fn withdrawals(&self, protocol: &str) -> u64 {
        let answer = self.ask(&format!("show protocols all {protocol}"));
        let counts = answer.lines().filter_map(|line| line.trim().strip_prefix("Import withdraws:"));
        let counts: Vec<u64> =
            counts.filter_map(|rest| rest.split_whitespace().next()?.parse().ok()).collect();
        assert!(!counts.is_empty(), "no counters of {protocol}: {answer}");
        counts.iter().sum()
    }

    /// Replaces the configuration and has BIRD read it.
    pub fn reconfigure(&self, config: &str) {
        fs::write(self.host.dir().join("bird.conf"), config).expect("the host's folder is ours");
        let answer = self.ask("configure");
        assert!(answer.contains("econfigur"), "BIRD refused the configuration: {answer}");
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

/// The attributes of the first path in a detailed listing: lines such as `BGP.med: 77`, or `bgp_med: 77` of BIRD 3.
fn read(listing: &str) -> Option<Route> {
    let mut route = Route::new("", IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let mut any = false;
    for line in listing.lines().map(str::trim) {
        let Some(line) = line.strip_prefix("BGP.").or_else(|| line.strip_prefix("bgp_")) else { continue };
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        any = true;
        match name.trim_end_matches(" [t]") {
            "origin" => route.origin = Origin::from_name(value).ok()?,
            "as_path" | "path" => route.as_path = route::as_path(value),
            "next_hop" => route.next_hop = value.split(' ').next()?.parse().ok()?,
            "med" => route.med = Some(value.parse().ok()?),
            "local_pref" => route.local_pref = Some(value.parse().ok()?),
            "atomic_aggr" => route.atomic_aggregate = true,
            "aggregator" => {
                let (address, asn) = value.split_once(" AS")?;
                route.aggregator = Some((asn.parse().ok()?, address.parse().ok()?));
            }
            "community" => route.communities = groups(value, ":"),
            "large_community" => route.large_communities = groups(value, ":"),
            "ext_community" => {
                // (rt, 65001, 100)
                let communities = groups(value, ":");
                let words = communities.iter().filter_map(|community| community.split_once(':'));
                let name = |kind: &str| if kind == "ro" { "soo".to_owned() } else { kind.to_owned() };
                route.ext_communities = words.map(|(kind, rest)| format!("{} {rest}", name(kind))).collect();
            }
            code => {
                // It does not tell whether it is partial.
                let code = u8::from_str_radix(code.split(' ').next()?, 16).ok()?;
                route.unknown.push(Unknown { code, partial: false, value: route::hex(value) });
            }
        }
    }
    any.then_some(route)
}

/// `(a, b) (c, d)` with something else between the parts.
fn groups(text: &str, between: &str) -> Vec<String> {
    let groups = text.split('(').skip(1).filter_map(|group| group.split_once(')'));
    groups.map(|(group, _)| group.split(',').map(str::trim).collect::<Vec<_>>().join(between)).collect()
}
