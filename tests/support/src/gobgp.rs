//! GoBGP as a neighbour.
//!
//! Its gRPC API is on a Unix socket, which a test reaches whatever namespace it is in.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::lab::Host;
use crate::process::Process;
use crate::route::{self, Origin, Route, Unknown};
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

    /// Its best path for exactly `prefix`.
    ///
    /// # Errors
    ///
    /// There is none, or no answer.
    pub fn route(&self, prefix: &str) -> Result<Route, String> {
        let paths = self.paths(if prefix.contains(':') { "ipv6" } else { "ipv4" }, prefix)?;
        let best = paths.iter().find(|path| path["best"] == true).ok_or_else(|| format!("{paths:?}"))?;
        read(best).ok_or_else(|| best.to_string())
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

fn read(path: &Value) -> Option<Route> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let mut route = Route::new("", IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    for attribute in path["attrs"].as_array()? {
        let value = &attribute["value"];
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match attribute["type"].as_u64()? {
            1 => route.origin = Origin::from_code(value.as_u64()?.try_into().ok()?)?,
            2 => {
                let segments = list(&attribute["as_paths"]);
                let words = segments.iter().map(|segment| {
                    let asns: Vec<String> = list(&segment["asns"]).iter().map(ToString::to_string).collect();
                    if segment["segment_type"] == 1 {
                        format!("{{{}}}", asns.join(","))
                    } else {
                        asns.join(" ")
                    }
                });
                route.as_path = words.collect::<Vec<_>>().join(" ");
            }
            3 | 14 => route.next_hop = attribute["nexthop"].as_str()?.parse().ok()?,
            4 => route.med = number(&attribute["metric"]),
            5 => route.local_pref = number(value),
            6 => route.atomic_aggregate = true,
            7 => {
                route.aggregator =
                    Some((number(&attribute["as"])?, attribute["address"].as_str()?.parse().ok()?));
            }
            8 => {
                let communities = list(&attribute["communities"]);
                let pair = |number: u64| format!("{}:{}", number >> 16, number & 0xffff);
                route.communities = communities.iter().filter_map(Value::as_u64).map(pair).collect();
            }
            16 => {
                for community in list(value) {
                    let kind = if community["subtype"] == 3 { "soo" } else { "rt" };
                    route.ext_communities.push(format!("{kind} {}", plain(community["value"].as_str()?)));
                }
            }
            32 => {
                let triple = |c: &Value| format!("{}:{}:{}", c["ASN"], c["LocalData1"], c["LocalData2"]);
                route.large_communities = list(value).iter().map(triple).collect();
            }
            code => {
                let flags = attribute["flags"].as_u64()?;
                let value = route::base64(value.as_str()?);
                route.unknown.push(Unknown {
                    code: code.try_into().ok()?,
                    partial: flags & 0x20 != 0,
                    value,
                });
            }
        }
    }
    Some(route)
}

/// A community with its AS number as one number: it writes those of 4 octets as `64086.59905`.
fn plain(community: &str) -> String {
    let (global, local) = community.split_once(':').unwrap_or((community, ""));
    match global.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().as_deref() {
        Ok([high, low]) => format!("{}:{local}", high << 16 | low),
        _ => community.to_owned(),
    }
}
