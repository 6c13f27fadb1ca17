//! ExaBGP as a neighbour.
//!
//! It has no table of its own: [`Exabgp`] keeps what it reports to a program, and gives it commands through the same.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::lab::Host;
use crate::process::Process;
use crate::route::{Origin, Route, Unknown};
use crate::wait;

/// A running ExaBGP and the events it has told.
#[derive(Debug)]
pub struct Exabgp {
    host: Host,
    process: Process,
}

/// What a neighbour's block must hold so that its events and commands are seen here.
pub const API: &str = "api { processes [ test ]; neighbor-changes; receive { parsed; update; notification; open; \
                       refresh; } send { parsed; notification; } }";

impl Exabgp {
    /// Starts ExaBGP on `host` with `config`, whose neighbours have [`API`], and waits until it listens at the addresses
    /// `listen` (separated by spaces) and has started its program.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(host: &Host, config: &str, listen: &str) -> Self {
        let dir = host.dir().display();
        let path = |file: &str| host.dir().join(file);
        // The program ends with ExaBGP, which closes its input.
        let program = format!(
            "#!/bin/sh\necho started >> {dir}/events\ntail -n +1 -f {dir}/commands &\ncat >> {dir}/events\nkill $!\n"
        );
        fs::write(path("program"), program).expect("the host's folder is ours");
        fs::set_permissions(path("program"), fs::Permissions::from_mode(0o755)).expect("a file of ours");
        for file in ["events", "commands"] {
            fs::write(path(file), "").expect("the host's folder is ours");
        }
        let config = format!("process test {{ run {dir}/program; encoder json; }}\n{config}");
        fs::write(path("exabgp.conf"), config).expect("the host's folder is ours");
        let (file, bind) =
            (path("exabgp.conf").to_string_lossy().into_owned(), format!("exabgp.tcp.bind={listen}"));
        #[rustfmt::skip]
        let argv = [
            "env", "exabgp.daemon.user=root", "exabgp.daemon.drop=false", "exabgp.log.destination=stdout",
            "exabgp.tcp.port=179", "exabgp.api.cli=false", &bind, "/usr/sbin/exabgp", &file,
        ];
        let process = host.spawn("exabgp", &argv);
        let mut exabgp = Self { host: host.clone(), process };
        wait::until("ExaBGP has started its program", || {
            assert!(exabgp.process.ended().is_none(), "ExaBGP ended: {}", exabgp.process.log());
            let events = exabgp.events_text();
            if events.contains("started") { Ok(()) } else { Err(exabgp.process.log()) }
        });
        exabgp
    }

    fn events_text(&self) -> String {
        fs::read_to_string(self.host.dir().join("events")).unwrap_or_default()
    }

    /// What it has told since it started, oldest first. (Its line about a refresh is no JSON, and missing here.)
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.events_text().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// How often a neighbour has asked for a family again. (Its line about that is no JSON.)
    #[must_use]
    pub fn refreshes(&self) -> usize {
        let text = self.events_text();
        let asked = |line: &&str| line.contains("\"type\": \"refresh\"") && line.contains("\"receive\"");
        text.lines().filter(asked).count()
    }

    /// Gives it a command of its API, such as `announce route 203.0.113.0/24 next-hop self`.
    ///
    /// # Panics
    ///
    /// When the folder cannot be written.
    pub fn tell(&self, command: &str) {
        let mut file =
            File::options().append(true).open(self.host.dir().join("commands")).expect("a file of ours");
        writeln!(file, "{command}").expect("the host's folder is ours");
    }

    /// Waits until the session with `neighbor` is up.
    #[track_caller]
    pub fn await_established(&self, neighbor: &str) {
        wait::until(&format!("ExaBGP's session with {neighbor} is up"), || {
            if self.is_established(neighbor) { Ok(()) } else { Err(self.process.log()) }
        });
    }

    /// Whether the session with `neighbor` is up, as far as it has told.
    #[must_use]
    pub fn is_established(&self, neighbor: &str) -> bool {
        let events = self.events();
        let mut states = events
            .iter()
            .rev()
            .filter(|event| event["type"] == "state" && event["neighbor"]["address"]["peer"] == neighbor);
        states.next().is_some_and(|event| event["neighbor"]["state"] == "up")
    }

    /// What its neighbours have announced and not taken back.
    ///
    /// # Errors
    ///
    /// An event can't be read.
    pub fn table(&self) -> Result<BTreeMap<String, Route>, String> {
        let mut table = BTreeMap::new();
        for event in self.events() {
            if event["type"] == "state" && event["neighbor"]["state"] == "down" {
                // With one neighbour for a family, or one in all, which is what tests have.
                let peer = event["neighbor"]["address"]["peer"].as_str().unwrap_or_default().contains(':');
                table.retain(|prefix: &String, _| prefix.contains(':') != peer);
            }
            let update = &event["neighbor"]["message"]["update"];
            for (_, prefixes) in update["withdraw"].as_object().into_iter().flatten() {
                for prefix in nlri(prefixes) {
                    table.remove(&prefix);
                }
            }
            for (_, hops) in update["announce"].as_object().into_iter().flatten() {
                for (hop, prefixes) in hops.as_object().into_iter().flatten() {
                    let route = read(&update["attribute"], hop).ok_or_else(|| event.to_string())?;
                    table.extend(nlri(prefixes).map(|prefix| (prefix, route.clone())));
                }
            }
        }
        Ok(table)
    }

    /// What it was told for exactly `prefix`.
    ///
    /// # Errors
    ///
    /// Nothing.
    pub fn route(&self, prefix: &str) -> Result<Route, String> {
        let mut table = self.table()?;
        table.remove(prefix).ok_or_else(|| self.events_text())
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

fn nlri(prefixes: &Value) -> impl Iterator<Item = String> {
    prefixes.as_array().into_iter().flatten().filter_map(|item| item["nlri"].as_str()).map(str::to_owned)
}

fn read(attributes: &Value, hop: &str) -> Option<Route> {
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let mut route = Route::new(&path(&attributes["as-path"]), hop.split(' ').next()?.parse().ok()?);
    route.origin = Origin::from_name(attributes["origin"].as_str()?).ok()?;
    route.med = number(&attributes["med"]);
    route.local_pref = number(&attributes["local-preference"]);
    route.atomic_aggregate = attributes["atomic-aggregate"] == true;
    if let Some((asn, address)) = attributes["aggregator"].as_str().and_then(|text| text.split_once(':')) {
        route.aggregator = Some((asn.parse().ok()?, address.parse().ok()?));
    }
    let joined = |list: &Value| -> Vec<String> {
        let parts = |item: &Value| {
            let parts: Vec<String> = item.as_array().into_iter().flatten().map(ToString::to_string).collect();
            parts.join(":")
        };
        list.as_array().into_iter().flatten().map(parts).collect()
    };
    route.communities = joined(&attributes["community"]);
    route.large_communities = joined(&attributes["large-community"]);
    for community in attributes["extended-community"].as_array().into_iter().flatten() {
        let text = community["string"].as_str()?;
        let (kind, rest) = text.split_once(':')?;
        let (global, local) = rest.split_once(':')?;
        // It writes 4-octet AS numbers as `4200000001L`, and addresses last.
        let (global, local) = if local.contains('.') { (local, global) } else { (global, local) };
        let kind = if kind == "origin" { "soo" } else { "rt" };
        route.ext_communities.push(format!("{kind} {}:{local}", global.trim_end_matches('L')));
    }
    for (name, value) in attributes.as_object()? {
        if let Some((code, flags)) = name.strip_prefix("attribute-0x").and_then(|rest| rest.split_once("-0x"))
        {
            let flags = u8::from_str_radix(flags, 16).ok()?;
            let value = crate::route::hex(value.as_str()?.trim_start_matches("0x"));
            route.unknown.push(Unknown {
                code: u8::from_str_radix(code, 16).ok()?,
                partial: flags & 0x20 != 0,
                value,
            });
        }
    }
    Some(route)
}

/// A list of numbers, without the sets; absent where it is empty.
fn path(words: &Value) -> String {
    let words = words.as_array().into_iter().flatten().map(ToString::to_string);
    words.collect::<Vec<_>>().join(" ")
}
